/* SPDX-License-Identifier: MIT
 * Inputs that are another output of the path each time (demote_inputs.c). A recording knows the outputs of its path by
 * their addresses, so each of them needs a recording of its own. A recording counts the *moves* of each input that led
 * to it. Once there were enough moves, the input is *demoted* after the recording at the end of the path: from then on,
 * calls of the function treat it there as any moving memory, or run eagerly.
 *
 * A demotion belongs to the recording that it comes after. It ends with that recording, or with its function. There are
 * at most as many demotions as recordings are allowed.
 */
#ifndef RONDO_TREE_RECORD_DEMOTE_INPUTS_H
#define RONDO_TREE_RECORD_DEMOTE_INPUTS_H

#include "tree/tree_internal.h"

typedef struct rondo_demoted_input {
  uint32_t after;  /* recordings; 0: it is none of the demoted */
  bool is_written; /* or may be, for all that the recorded work says */
} rondo_demoted_input;

/* Of one function after one recording. */
struct rondo_demoted {
  rondo_demoted *next; /* after the same recording: the one that was asked for last comes first */
  const rondo_function *function;
  rondo_demoted_input *inputs; /* all of the function's */
  bool has_written;            /* some input may be, so that bytes in common matter */
};

/* Makes inputs of a call after the path's end moving ones that are demoted there, but for those that have bytes in
 * common with another input, where one may be written. HOT: neither allocates nor locks. */
void rondo_demoted_apply(const rondo_function *function, rondo_resolved_input *inputs);

/* A call with these inputs, whose key is in tree->words, is about to be recorded: counts what moved since other
 * recordings there, for rondo_demoted_keep_moves. *out_demoted: that was once too often for some input, which is
 * demoted now, so that the key is another one; recordings of the function that cannot come again went. */
RONDO_MUST_USE rondo_status rondo_demoted_look(rondo_function *function, const rondo_form *form,
                                               const rondo_resolved_input *inputs, size_t key_count, bool *out_demoted);

/* The counts become those of the recording that is made. */
RONDO_MUST_USE rondo_status rondo_demoted_keep_moves(const rondo_tree *tree, rondo_recorded_call *made);

/* Whether calls with such inputs are run eagerly there (RONDO_DEMOTION_SKIP). */
bool rondo_demoted_skips(const rondo_function *function, const rondo_resolved_input *inputs);

void rondo_demoted_free_all(rondo_tree *tree, rondo_recorded_call *parent); /* and its moves */
void rondo_demoted_forget(rondo_tree *tree, const rondo_function *function);

#endif

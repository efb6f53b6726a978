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
  uint32_t after;  /* recordings; 0: the input is not demoted */
  bool is_written; /* also true if the recorded work does not show whether it writes the input */
} rondo_demoted_input;

/* The demoted inputs of one function after one recording. */
struct rondo_demoted {
  rondo_demoted *next; /* after the same recording; the most recently used comes first */
  const rondo_function *function;
  rondo_demoted_input *inputs; /* one for each input of the function */
  bool has_written;            /* some input may be written, so shared bytes matter */
};

/* Treats inputs of a call after the path's end as moving if they are demoted there. Exception: an input that shares
 * bytes with another, if one of the two may be written. HOT: neither allocates nor locks. */
void rondo_demoted_apply(const rondo_function *function, rondo_resolved_input *inputs);

/* Called before a call with these inputs is recorded; its key is in tree->words. Counts which inputs moved since other
 * recordings there, for rondo_demoted_keep_moves. Sets *out_demoted if an input reached the limit and is demoted now.
 * The key then changes, and recordings of the function that no call can match any more are removed. */
RONDO_MUST_USE rondo_status rondo_demoted_update(rondo_function *function, const rondo_form *form,
                                                 const rondo_resolved_input *inputs, size_t key_count,
                                                 bool *out_demoted);

/* Stores the counts in the recording that was made. */
RONDO_MUST_USE rondo_status rondo_demoted_keep_moves(const rondo_tree *tree, rondo_recorded_call *made);

/* Whether calls with such inputs run eagerly there (RONDO_DEMOTION_SKIP). */
bool rondo_demoted_skips(const rondo_function *function, const rondo_resolved_input *inputs);

void rondo_demoted_free_all(rondo_tree *tree, rondo_recorded_call *parent); /* and its moves */
void rondo_demoted_forget(rondo_tree *tree, const rondo_function *function);

#endif

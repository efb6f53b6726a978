/* SPDX-License-Identifier: MIT
 * Inputs that are a different output of the path each time. A recording contains the addresses of these outputs, so
 * each output needs its own recording. A recording counts how often each input had *moved* when it was made. After
 * enough moves, the input is *demoted* after the recording at the end of the path: from then on, calls of the function
 * treat it there like any moving input, or run eagerly.
 *
 * A demotion is removed with the recording that it comes after, or with its function. There are at most as many
 * demotions as recordings are allowed.
 */
#ifndef RONDO_TREE_RECORD_DEMOTE_INPUTS_H
#define RONDO_TREE_RECORD_DEMOTE_INPUTS_H

#include "tree/tree_internal.h"

typedef struct rondo_demoted_input {
  uint32_t after;  /* it was demoted after so many recordings; 0: it is not demoted */
  bool is_written; /* the work writes it, or does not show whether it does */
} rondo_demoted_input;

/* The demoted inputs of one function after one recording. */
struct rondo_demoted {
  rondo_demoted *next; /* after the same recording; the most recently used comes first */
  const rondo_function *function;
  rondo_demoted_input *inputs; /* one for each input of the function */
  bool has_written;            /* some input may be written, so shared bytes matter */
};

/* Makes demoted inputs of a call after the path's end moving. Exception: an input that shares bytes with another, if
 * one of the two may be written. On the path of a replay: does not allocate or lock. */
void rondo_demoted_apply(const rondo_function *function, rondo_resolved_input *inputs);

/* Called before a call with these inputs is recorded. Its key is in tree->words. Counts the moves of each input, for
 * rondo_demoted_keep_moves. Sets *out_demoted if an input reached the limit and was demoted. The key of the call is
 * then different, and recordings that no call can match any more were removed. */
RONDO_MUST_USE rondo_status rondo_demoted_update(rondo_function *function, const rondo_form *form,
                                                 const rondo_resolved_input *inputs, size_t key_count,
                                                 bool *out_demoted);

/* Stores the counts in the recording that was made. */
RONDO_MUST_USE rondo_status rondo_demoted_keep_moves(const rondo_tree *tree, rondo_recorded_call *made);

/* Whether calls with such inputs run eagerly there (RONDO_DEMOTION_SKIP). */
bool rondo_demoted_skips(const rondo_function *function, const rondo_resolved_input *inputs);

/* Frees the demotions and moves of a recorded call. */
void rondo_demoted_free_all(rondo_tree *tree, rondo_recorded_call *parent);
/* Removes the demotions of a function. */
void rondo_demoted_forget(rondo_tree *tree, const rondo_function *function);

#endif

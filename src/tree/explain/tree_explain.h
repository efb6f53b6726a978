/* SPDX-License-Identifier: MIT
 * Explaining a tree: what tree_explain_text.c and tree_explain_json.c have in common, which each write one format. What
 * they read is the tree's own; nothing is made for an explanation but its text.
 *
 * Functions and forms come in the order of their making, which their lists do not have; recordings in a text depth
 * first.
 */
#ifndef RONDO_TREE_EXPLAIN_TREE_EXPLAIN_H
#define RONDO_TREE_EXPLAIN_TREE_EXPLAIN_H

#include "base/text.h"
#include "tree/record/demote_inputs.h"

/* The one made after `last`; the first with NULL. NULL behind the last. */
const rondo_function *rondo_explain_next_function(const rondo_tree *tree, const rondo_function *last);
const rondo_form *rondo_explain_next_form(const rondo_function *function, const rondo_form *last);
/* ... in a walk that comes to each recording behind the one before it on the path. */
const rondo_recorded_call *rondo_explain_next_recording(const rondo_tree *tree, const rondo_recorded_call *last);

/* An input of a recorded call. */
typedef struct rondo_explained_input {
  rondo_keyed_input keyed;
  const rondo_bound_input *bound;  /* MOVING with memory; else NULL */
  uint32_t nodes;                  /* ... that have its address, or a copy's source */
  const rondo_recorded_call *from; /* MANAGED: who made it; NULL otherwise */
  size_t output;                   /* ... and which of its outputs it is in */
} rondo_explained_input;

/* Reads input `index`, whose words these are, and gives the words of the next. */
const uint64_t *rondo_explain_input(const rondo_recorded_call *call, size_t index, const uint64_t *words,
                                    rondo_explained_input *out);

const char *rondo_explain_way(rondo_input_way way);              /* "moving" */
const char *rondo_explain_bound(const rondo_bound_input *bound); /* "patched" */
const char *rondo_explain_state(const rondo_form *form);         /* "warming up" */
/* What is demoted of the function behind the recording; NULL. And what that makes of it: "bound", "as it is". */
const rondo_demoted *rondo_explain_demoted(const rondo_recorded_call *behind, const rondo_function *function);
const char *rondo_explain_demotion(const rondo_function *function);
const char *rondo_explain_finding(rondo_patch_finding_kind kind);

bool rondo_explain_is_on_path(const rondo_tree *tree, const rondo_recorded_call *call);
/* Whether somebody holds the output as the path has it now. */
bool rondo_explain_is_live(const rondo_tree *tree, const rondo_recorded_call *call, const rondo_output *output);
size_t rondo_explain_offset(const rondo_tree *tree, const rondo_recorded_call *call,
                            const rondo_output *output); /* FRESH: in the arena */
uint64_t rondo_explain_nodes(const rondo_recorded_call *call);
uint64_t rondo_explain_skipped(const uint64_t skipped[RONDO_SKIP_ROOM]); /* all of them */

/* Bytes of slots of moving inputs; of patched ones alone. */
uint64_t rondo_explain_slots(const rondo_recorded_call *call, bool is_patched);

/* The findings of a segment; one of them. */
uint32_t rondo_explain_finding_count(const rondo_segment *segment);
void rondo_explain_read_finding(const rondo_segment *segment, uint32_t index, rondo_patch_finding *out);

void rondo_explain_text(rondo_tree *tree, rondo_text *out);
void rondo_explain_json(rondo_tree *tree, rondo_text *out);

#endif

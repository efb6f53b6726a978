/* SPDX-License-Identifier: MIT
 * Describes a tree as a document (base/document/document.h) for rondo_tree_explain. <rondo/tree.h> lists the keys and
 * their order. Nothing is measured or changed. Threads: the thread that is inside a call of the tree.
 */
#ifndef RONDO_TREE_EXPLAIN_TREE_EXPLAIN_H
#define RONDO_TREE_EXPLAIN_TREE_EXPLAIN_H

#include "base/document/document.h"
#include "tree/recording_key.h"
#include "tree/tree_internal.h"

/* tree_explain.c: adds the fields of an input to the open object. `phrase` is for its kind. */
void rondo_explain_input(const rondo_keyed_input *input, const char *phrase, rondo_document *out);

/* Adds a number, or null if the tree has none. */
static inline void rondo_explain_optional(rondo_document *out, const char *key, bool has, uint64_t number,
                                          const char *phrase) {
  if (has)
    rondo_document_number(out, key, number, phrase);
  else
    rondo_document_null(out, key);
}

/* recording_explain.c: adds the list of all recordings. */
void rondo_explain_recordings(const rondo_tree *tree, rondo_document *out);

#endif

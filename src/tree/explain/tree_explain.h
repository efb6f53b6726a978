/* SPDX-License-Identifier: MIT
 * Explaining a tree: what tree_explain.c (the tree, its functions) and recording_explain.c (its recordings) share. Both
 * describe what the tree holds as a document (base/document/document.h), whose keys and their order are those of
 * <rondo/tree.h>. Nothing is measured or changed. Threads: inside a call of the tree, which owns it.
 */
#ifndef RONDO_TREE_EXPLAIN_TREE_EXPLAIN_H
#define RONDO_TREE_EXPLAIN_TREE_EXPLAIN_H

#include "base/document/document.h"
#include "tree/recording_key.h"
#include "tree/tree_internal.h"

/* tree_explain.c: adds the fields of an input to the open object. The phrase is that of its kind. */
void rondo_explain_input(const rondo_keyed_input *input, const char *phrase, rondo_document *out);

/* Adds a number, or null if the tree has none. */
static inline void rondo_explain_optional(rondo_document *out, const char *key, bool has, uint64_t number,
                                          const char *phrase) {
  if (has)
    rondo_document_number(out, key, number, phrase);
  else
    rondo_document_null(out, key);
}

/* recording_explain.c: a list of all recordings. The text has each after its parent. */
void rondo_explain_recordings(const rondo_tree *tree, rondo_document *out);

#endif

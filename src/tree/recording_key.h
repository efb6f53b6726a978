/* SPDX-License-Identifier: MIT
 * Keys of recorded calls.
 */
#ifndef RONDO_TREE_RECORDING_KEY_H
#define RONDO_TREE_RECORDING_KEY_H

#include "tree/tree_internal.h"

/* What a key or a form says of an input. */
typedef struct rondo_keyed_input {
  rondo_input_way way; /* in a form, the declared way: an output of the path is MOVING or STATIC there */
  uint32_t type, rank;
  uint64_t bytes;        /* a SCALAR's value */
  const uint64_t *shape; /* in the key */
  const char *address;   /* in a key: STATIC and MANAGED */
} rondo_keyed_input;

/* recording_key.c: the most words that a call with so many inputs needs; writes to tree->words the key of a call after
 * the path's end, or the form's words, which omit the preceding call and addresses. Both return the number of words. */
size_t rondo_key_max_words(size_t input_count);
size_t rondo_key_make(const rondo_tree *tree, const rondo_function *function, const rondo_resolved_input *inputs,
                      uint64_t *words);
uint64_t rondo_key_hash(const uint64_t *words, size_t count);

/* Whether a recorded call's key is the one that rondo_key_make would make. Keys of one function that are equal in their
 * common length have the same length. */
bool rondo_key_matches(const rondo_tree *tree, const rondo_function *function, const rondo_resolved_input *inputs,
                       const uint64_t *key);

/* The same for raw inputs of a function that accepts them. */
bool rondo_key_matches_raw(const rondo_tree *tree, const rondo_function *function, const rondo_input *given,
                           const uint64_t *key);
size_t rondo_key_make_form(const rondo_function *function, const rondo_resolved_input *inputs, uint64_t *words);

/* The position of the first input in a key; in a form, it is the beginning. Reading an input returns the position of
 * the next. */
const uint64_t *rondo_key_inputs(const uint64_t *key);
const uint64_t *rondo_key_read_input(const uint64_t *words, bool is_form, rondo_keyed_input *out);

#endif

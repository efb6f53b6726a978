/* SPDX-License-Identifier: MIT
 * Keys of recorded calls.
 */
#ifndef RONDO_TREE_RECORDING_KEY_H
#define RONDO_TREE_RECORDING_KEY_H

#include "tree/tree_internal.h"

/* An input as a key or a form describes it. */
typedef struct rondo_keyed_input {
  rondo_input_role role; /* a form has the declared one, so an output of the path is MOVING or STATIC there */
  uint32_t type, rank;
  uint64_t bytes;        /* a SCALAR's value */
  const uint64_t *shape; /* points into the key */
  const char *address;   /* of STATIC and MANAGED inputs in a key; otherwise NULL */
} rondo_keyed_input;

/* The maximum number of words in the key of a call with so many inputs and words of the caller. */
size_t rondo_key_max_words(size_t input_count, size_t caller_words);
/* Makes the key of a call after the path's end; or the words of a form, which omit the preceding call and addresses.
 * Both return the number of words. */
size_t rondo_key_make(const rondo_tree *tree, const rondo_function *function, const rondo_resolved_input *inputs,
                      uint64_t *words);
size_t rondo_key_make_form(const rondo_function *function, const rondo_resolved_input *inputs, uint64_t *words);
uint64_t rondo_key_hash(const uint64_t *words, size_t count);

/* Whether `key`, of a recorded call, is the key that rondo_key_make would make. */
bool rondo_key_matches(const rondo_tree *tree, const rondo_function *function, const rondo_resolved_input *inputs,
                       const uint64_t *key);

/* The same for raw inputs of a function that accepts them. */
bool rondo_key_matches_raw(const rondo_tree *tree, const rondo_function *function, const rondo_input *given,
                           const uint64_t *key);

/* The position of the first input in a key, or in the words of a form. Reading an input returns the position of the
 * next. */
const uint64_t *rondo_key_inputs(const rondo_function *function, const uint64_t *key);
const uint64_t *rondo_key_form_inputs(const rondo_function *function, const uint64_t *words);
const uint64_t *rondo_key_read_input(const uint64_t *words, bool is_form, rondo_keyed_input *out);

#endif

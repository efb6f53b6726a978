/* SPDX-License-Identifier: MIT
 * Keys. A key begins with the numbers of the function and of the preceding recorded call. The key that the caller of a
 * region passed follows, always in the same number of words, and then the inputs. The first word of an input determines
 * how many words it has. So no key of a function is a prefix of another one.
 */
#include "tree/tree_internal.h"

#include <assert.h>
#include <string.h>

#include "tree/recording_key.h"

/* The product of two words, folded: W. Yi, "wyhash" (https://github.com/wangyi-fudan/wyhash), public domain. */
static inline uint64_t fold(uint64_t a, uint64_t b) {
  __extension__ const unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t rondo_key_hash(const uint64_t *words, size_t count) {
  uint64_t hash = UINT64_C(0xa0761d6478bd642f) ^ count;
  size_t i = 0;
  for (; i + 1 < count; i += 2) hash = fold(words[i] ^ UINT64_C(0xe7037ed1a0b428db), words[i + 1] ^ hash);
  if (i < count) hash = fold(words[i] ^ UINT64_C(0x8ebc6af09c88c6e3), hash);
  return fold(hash, UINT64_C(0x589965cc75374cc3));
}

size_t rondo_key_max_words(size_t input_count, size_t caller_words) {
  return 1 + caller_words + input_count * (3 + RONDO_TREE_MAX_RANK);
}

static uint64_t *put_caller_key(uint64_t *words, const rondo_function *function) {
  if (function->caller_words > 0) memcpy(words, function->caller_key, function->caller_words * sizeof *words);
  return function->caller_words == 0 ? words : words + function->caller_words; /* a form without words has no array */
}

/* The rest of the key if the caller's key matches; otherwise NULL. */
static inline const uint64_t *match_caller_key(const uint64_t *key, const rondo_function *function) {
  for (size_t i = 0; i < function->caller_words; i++)
    if (key[i] != function->caller_key[i]) return NULL;
  return key + function->caller_words;
}

/* The first word of an input. Type and rank are as in rondo_input, so that comparing with one reads them at once. */
static inline uint64_t head_of(uint64_t role, uint32_t type, uint32_t rank) {
  return type | (uint64_t)rank << 32 | role << 48;
}

/* Writes what distinguishes an input, except for its address. */
static uint64_t *put_form(uint64_t *words, const rondo_resolved_input *input, uint64_t role) {
  if (input->role == RONDO_ROLE_OPAQUE) {
    *words++ = head_of(role, 0, 0);
    return words;
  }
  if (input->role == RONDO_ROLE_SCALAR) {
    *words++ = head_of(role, 0, 0);
    *words++ = input->bytes;
    return words;
  }
  assert(input->rank <= RONDO_TREE_MAX_RANK);
  *words++ = head_of(role, input->type, input->rank);
  *words++ = input->bytes;
  for (uint32_t i = 0; i < input->rank; i++) *words++ = input->shape[i];
  return words;
}

/* The input's role and flags. */
static inline uint32_t role_word(const rondo_resolved_input *input) {
  return (uint32_t)input->role | (uint32_t)input->is_sole << 8 | (uint32_t)input->is_mutated << 9;
}

static inline uint64_t key_head(const rondo_tree *tree, const rondo_function *function) {
  return (uint64_t)function->number << 32 | rondo_path_last_number(tree);
}

size_t rondo_key_make(const rondo_tree *tree, const rondo_function *function, const rondo_resolved_input *inputs,
                      uint64_t *words) {
  uint64_t *at = words;
  *at++ = key_head(tree, function);
  at = put_caller_key(at, function);
  for (size_t i = 0; i < function->options.input_count; i++) {
    const rondo_resolved_input *input = &inputs[i];
    at = put_form(at, input, role_word(input));
    if (input->role == RONDO_ROLE_STATIC || input->role == RONDO_ROLE_MANAGED) *at++ = (uintptr_t)input->address;
  }
  assert((size_t)(at - words) <= rondo_key_max_words(function->options.input_count, function->caller_words));
  return (size_t)(at - words);
}

static const uint64_t *match_value(const uint64_t *key, const rondo_resolved_input *input) {
  if (key[0] != head_of(role_word(input), 0, 0)) return NULL;
  if (input->role == RONDO_ROLE_OPAQUE) return key + 1;
  return key[1] == input->bytes ? key + 2 : NULL;
}

/* The rest of the key if the input matches; otherwise NULL. */
static inline const uint64_t *match_input(const uint64_t *key, const rondo_resolved_input *input) {
  if (__builtin_expect(input->role > RONDO_ROLE_MANAGED, 0)) return match_value(key, input);
  if (key[0] != head_of(role_word(input), input->type, input->rank) || key[1] != input->bytes) return NULL;
  key += 2;
  for (uint32_t i = 0; i < input->rank; i++)
    if (*key++ != input->shape[i]) return NULL;
  if (input->role == RONDO_ROLE_MOVING) return key;
  return *key == (uintptr_t)input->address ? key + 1 : NULL;
}

bool rondo_key_matches(const rondo_tree *tree, const rondo_function *function, const rondo_resolved_input *inputs,
                       const uint64_t *key) {
  const size_t count = function->options.input_count;
  if (*key++ != key_head(tree, function)) return false;
  key = match_caller_key(key, function);
  for (size_t i = 0; i < count && key != NULL; i++) key = match_input(key, &inputs[i]);
  return key != NULL;
}

bool rondo_key_matches_raw(const rondo_tree *tree, const rondo_function *function, const rondo_input *given,
                           const uint64_t *key) {
  const size_t count = function->options.input_count;
  const uint32_t *kinds = function->options.inputs;
  if (*key++ != key_head(tree, function)) return false;
  key = match_caller_key(key, function);
  if (key == NULL) return false;
  for (size_t i = 0; i < count; i++) {
    const rondo_input *input = &given[i];
    const uint32_t role = kinds[i] & 0xff, rank = input->rank;
    if (key[0] != head_of(role, input->type, rank) || key[1] != input->bytes) return false;
    key += 2;
    if (__builtin_expect(rank > 0, 0)) {
      for (uint32_t k = 0; k < rank; k++)
        if (key[k] != input->shape[k]) return false;
      key += rank;
    }
    if (role == RONDO_ROLE_MOVING) continue;
    if (*key++ != (uintptr_t)input->address) return false;
  }
  return true;
}

size_t rondo_key_make_form(const rondo_function *function, const rondo_resolved_input *inputs, uint64_t *words) {
  uint64_t *at = put_caller_key(words, function);
  for (size_t i = 0; i < function->options.input_count; i++)
    at = put_form(at, &inputs[i], function->options.inputs[i] & 0xff);
  return (size_t)(at - words);
}

/* Keys contain ways; forms contain the declared kinds. */
static rondo_input_role role_of(uint64_t head, bool is_form) {
  static const rondo_input_role roles[] = {[RONDO_INPUT_MOVING] = RONDO_ROLE_MOVING,
                                           [RONDO_INPUT_STATIC] = RONDO_ROLE_STATIC,
                                           [RONDO_INPUT_SCALAR] = RONDO_ROLE_SCALAR,
                                           [RONDO_INPUT_OPAQUE] = RONDO_ROLE_OPAQUE};
  const uint64_t role = head >> 48 & 0xff;
  return is_form ? roles[role] : (rondo_input_role)role;
}

const uint64_t *rondo_key_read_input(const uint64_t *words, bool is_form, rondo_keyed_input *out) {
  const uint64_t head = *words++;
  *out = (rondo_keyed_input){
      .role = role_of(head, is_form), .rank = (uint32_t)(head >> 32 & 0xffff), .type = (uint32_t)head};
  if (out->role == RONDO_ROLE_OPAQUE) return words;
  out->bytes = *words++;
  out->shape = words;
  words += out->rank;
  if (!is_form && (out->role == RONDO_ROLE_STATIC || out->role == RONDO_ROLE_MANAGED))
    out->address = (const char *)(uintptr_t)*words++;
  return words;
}

const uint64_t *rondo_key_form_inputs(const rondo_function *function, const uint64_t *words) {
  return function->caller_words == 0 ? words : words + function->caller_words; /* a form without words has no array */
}

const uint64_t *rondo_key_inputs(const rondo_function *function, const uint64_t *key) {
  return rondo_key_form_inputs(function, key + 1);
}

/* SPDX-License-Identifier: MIT
 * Keys. A key begins with the numbers of the function and of the recorded call before it, and goes on with the inputs,
 * each as many words as its way says: so two keys of one function that are equal as far as they go have one length.
 */
#include "tree/tree_internal.h"

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

size_t rondo_key_room(size_t input_count) { return 1 + input_count * (3 + RONDO_TREE_MAX_RANK); }

/* What tells an input apart but its address. */
static uint64_t *put_form(uint64_t *words, const rondo_resolved_input *input, uint64_t way) {
  if (input->way == RONDO_WAY_OPAQUE) {
    *words++ = way;
    return words;
  }
  if (input->way == RONDO_WAY_SCALAR) {
    *words++ = way;
    *words++ = input->bytes;
    return words;
  }
  *words++ = way | (uint64_t)input->rank << 16 | (uint64_t)input->type << 32;
  *words++ = input->bytes;
  for (uint32_t i = 0; i < input->rank; i++) *words++ = input->shape[i];
  return words;
}

size_t rondo_key_make(const rondo_tree *tree, const rondo_function *function, const rondo_resolved_input *inputs,
                      uint64_t *words) {
  uint64_t *at = words;
  *at++ = (uint64_t)function->number << 32 | (tree->current == NULL ? 0 : tree->current->number);
  for (size_t i = 0; i < function->options.input_count; i++) {
    const rondo_resolved_input *input = &inputs[i];
    at = put_form(at, input, (uint64_t)input->way | (uint64_t)input->is_sole << 8 | (uint64_t)input->is_mutated << 9);
    if (input->way == RONDO_WAY_STATIC || input->way == RONDO_WAY_MANAGED) *at++ = (uintptr_t)input->address;
  }
  return (size_t)(at - words);
}

size_t rondo_key_make_form(const rondo_function *function, const rondo_resolved_input *inputs, uint64_t *words) {
  uint64_t *at = words;
  for (size_t i = 0; i < function->options.input_count; i++)
    at = put_form(at, &inputs[i], function->options.inputs[i] & 0xff);
  return (size_t)(at - words);
}

/* Keys have ways, forms the kinds that are declared. */
static rondo_input_way way_of(uint64_t head, bool is_form) {
  static const rondo_input_way ways[] = {[RONDO_INPUT_MOVING] = RONDO_WAY_MOVING,
                                         [RONDO_INPUT_STATIC] = RONDO_WAY_STATIC,
                                         [RONDO_INPUT_SCALAR] = RONDO_WAY_SCALAR,
                                         [RONDO_INPUT_OPAQUE] = RONDO_WAY_OPAQUE};
  return is_form ? ways[head & 0xff] : (rondo_input_way)(head & 0xff);
}

const uint64_t *rondo_key_read_input(const uint64_t *words, bool is_form, rondo_keyed_input *out) {
  const uint64_t head = *words++;
  *out = (rondo_keyed_input){
      .way = way_of(head, is_form), .rank = (uint32_t)(head >> 16 & 0xffff), .type = (uint32_t)(head >> 32)};
  if (out->way == RONDO_WAY_OPAQUE) return words;
  out->bytes = *words++;
  out->shape = words;
  words += out->rank;
  if (!is_form && (out->way == RONDO_WAY_STATIC || out->way == RONDO_WAY_MANAGED))
    out->address = (const char *)(uintptr_t)*words++;
  return words;
}

const uint64_t *rondo_key_inputs(const uint64_t *key) { return key + 1; }

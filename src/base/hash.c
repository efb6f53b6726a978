/* SPDX-License-Identifier: MIT
 * One step is the output function of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators",
 * OOPSLA 2014) on state ^ value. Its mixer is variant 13 of David Stafford's "Better Bit Mixing: Improving on
 * MurmurHash3's 64-bit Finalizer" (2011): a bijection of 64 bits in which each input bit flips each output bit with
 * probability 1/2 within 1 %. So a step loses nothing: with one state, different values give different states.
 * Fingerprints are kept and compared, so these functions never change their results.
 */
#include "base/hash.h"

#include <string.h>

uint64_t rondo_hash_part(uint64_t state, const void *bytes, size_t count) {
  const unsigned char *at = bytes;
  size_t left = count;
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), at += sizeof(uint64_t)) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    state = rondo_hash_u64(state, word);
  }
  if (left > 0) {
    uint64_t word = 0;
    memcpy(&word, at, left);
    state = rondo_hash_u64(state, word);
  }
  return state;
}

uint64_t rondo_hash_bytes(uint64_t state, const void *bytes, size_t count) {
  state = rondo_hash_part(state, bytes, count);
  return rondo_hash_u64(state, count); /* distinguishes trailing zeros from padding, and marks the end of the call */
}

uint64_t rondo_hash_text(uint64_t state, const char *text) {
  if (text == NULL) text = "";
  return rondo_hash_bytes(state, text, strlen(text));
}

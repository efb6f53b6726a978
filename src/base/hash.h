/* SPDX-License-Identifier: MIT
 * A 64-bit hash of bytes for fingerprints and tables. It is not cryptographic. It is the same on all machines with the
 * same byte order. To hash in steps, start from RONDO_HASH_START and pass the result to the next call. The boundaries
 * between calls matter: hashing "ab" and then "c" differs from hashing "abc".
 */
#ifndef RONDO_BASE_HASH_H
#define RONDO_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/component.h"

#define RONDO_HASH_START UINT64_C(0x9e3779b97f4a7c15)

/* Hashes the bytes and their number. `bytes` may be NULL when count is 0. */
RONDO_PRIVATE uint64_t rondo_hash_bytes(uint64_t state, const void *bytes, size_t count);

/* Hashes one part of a longer sequence, without its length. If the length of each part but the last is a multiple of 8,
 * then hashing the parts and then the total length with rondo_hash_u64 equals rondo_hash_bytes of the whole. */
RONDO_PRIVATE uint64_t rondo_hash_part(uint64_t state, const void *bytes, size_t count);

/* One step of the hash. With one state, different values give different results. Of a counter that grows by
 * RONDO_HASH_START, with state 0, it gives the random numbers of SplitMix64. */
static inline uint64_t rondo_hash_u64(uint64_t state, uint64_t value) {
  uint64_t mixed = (state ^ value) + RONDO_HASH_START;
  mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
  return mixed ^ (mixed >> 31);
}

/* Hashes the text with its length, so "ab","c" differs from "a","bc". NULL counts as "". */
RONDO_PRIVATE uint64_t rondo_hash_text(uint64_t state, const char *text);

#endif

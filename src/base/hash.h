/* SPDX-License-Identifier: MIT
 * A 64-bit hash of bytes, good enough for fingerprints and tables, the same on every machine of one byte order; not
 * for adversaries. Streaming: start from RONDO_HASH_START and fold; the cuts between calls count, so folding "ab" and
 * then "c" differs from folding "abc".
 */
#ifndef RONDO_BASE_HASH_H
#define RONDO_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define RONDO_HASH_START UINT64_C(0x9e3779b97f4a7c15)

/* The bytes and their number. `bytes` may be NULL when count is 0. */
uint64_t rondo_hash_bytes(uint64_t state, const void *bytes, size_t count);

/* The bytes of one part of a longer run of bytes, without their number. When each part but the last is a multiple of 8,
 * folding the parts and then the number of all bytes with rondo_hash_u64 is rondo_hash_bytes of the whole. */
uint64_t rondo_hash_part(uint64_t state, const void *bytes, size_t count);

uint64_t rondo_hash_u64(uint64_t state, uint64_t value);

/* With its length, so that "ab","c" differs from "a","bc". NULL is as "". */
uint64_t rondo_hash_text(uint64_t state, const char *text);

#endif

/* SPDX-License-Identifier: MIT
 * A hash table from one 64-bit name to another (open addressing, linear probing, multiplicative hashing, Knuth, TAOCP
 * 3, 6.4), which only grows. 0 is not a name. One thread at a time.
 */
#ifndef RONDO_EXEC_CAPTURE_HANDLE_MAP_H
#define RONDO_EXEC_CAPTURE_HANDLE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/allocation.h"
#include "base/hash.h"

typedef struct rondo_handle_pair {
  uint64_t key, value;
} rondo_handle_pair;

typedef struct rondo_handle_map {
  rondo_handle_pair *pairs; /* `capacity` of them, a power of two; key 0: free */
  size_t capacity, count;
  unsigned shift; /* 64 - log2(capacity): the upper bits of a product are the index */
} rondo_handle_map;

/* The index of the key, or the free index where it would be inserted. There is capacity. */
static inline size_t rondo_handle_map_index(const rondo_handle_map *map, uint64_t key) {
  size_t at = (size_t)(key * RONDO_HASH_START >> map->shift);
  while (map->pairs[at].key != 0 && map->pairs[at].key != key) at = (at + 1) & (map->capacity - 1);
  return at;
}

/* Reserves capacity for `more` pairs. */
RONDO_MUST_USE rondo_status rondo_handle_map_grow(const rondo_allocator *allocator, rondo_handle_map *map, size_t more);
RONDO_MUST_USE static inline rondo_status rondo_handle_map_reserve(const rondo_allocator *allocator,
                                                                   rondo_handle_map *map, size_t more) {
  return 2 * (map->count + more) > map->capacity ? rondo_handle_map_grow(allocator, map, more) : RONDO_OK;
}
/* The key is not 0 and not in the map, and capacity is reserved. */
void rondo_handle_map_put(rondo_handle_map *map, uint64_t key, uint64_t value);
/* False and 0 if the key is not in the map. */
static inline bool rondo_handle_map_get(const rondo_handle_map *map, uint64_t key, uint64_t *out) {
  *out = 0;
  if (map->count == 0) return false;
  const rondo_handle_pair *pair = &map->pairs[rondo_handle_map_index(map, key)];
  *out = pair->value;
  return pair->key != 0;
}
void rondo_handle_map_free(const rondo_allocator *allocator, rondo_handle_map *map);

#endif

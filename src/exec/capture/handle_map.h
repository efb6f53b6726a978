/* SPDX-License-Identifier: MIT
 * A hash table from one 64-bit name to another (open addressing, linear probing, Knuth, TAOCP 3, 6.4), which only
 * grows. 0 is not a name. One thread at a time.
 */
#ifndef RONDO_EXEC_CAPTURE_HANDLE_MAP_H
#define RONDO_EXEC_CAPTURE_HANDLE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/allocation.h"

typedef struct rondo_handle_pair {
  uint64_t key, value;
} rondo_handle_pair;

typedef struct rondo_handle_map {
  rondo_handle_pair *pairs; /* `capacity` of them, a power of two; key 0: free */
  size_t capacity, count;
} rondo_handle_map;

/* Reserves capacity for one more. */
RONDO_MUST_USE rondo_status rondo_handle_map_reserve(const rondo_allocator *allocator, rondo_handle_map *map);
/* The key is not 0 and not in the map, and capacity is reserved. */
void rondo_handle_map_put(rondo_handle_map *map, uint64_t key, uint64_t value);
/* False and 0 if the key is not in the map. */
bool rondo_handle_map_get(const rondo_handle_map *map, uint64_t key, uint64_t *out);
void rondo_handle_map_free(const rondo_allocator *allocator, rondo_handle_map *map);

#endif

/* SPDX-License-Identifier: MIT
 * See handle_map.h.
 */
#include "exec/capture/handle_map.h"

#include <assert.h>

#include "base/error.h"
#include "base/hash.h"

enum { FIRST_CAPACITY = 64 };

/* The index of the key, or the free index where it would be inserted. */
static size_t find(const rondo_handle_map *map, uint64_t key) {
  size_t at = (size_t)rondo_hash_u64(RONDO_HASH_START, key) & (map->capacity - 1);
  while (map->pairs[at].key != 0 && map->pairs[at].key != key) at = (at + 1) & (map->capacity - 1);
  return at;
}

static rondo_status grow(const rondo_allocator *allocator, rondo_handle_map *map) {
  rondo_handle_map larger = {.capacity = map->capacity == 0 ? FIRST_CAPACITY : 2 * map->capacity, .count = map->count};
  RONDO_TRY(rondo_allocate_items(allocator, larger.capacity, sizeof *larger.pairs, &larger.pairs));
  for (size_t i = 0; i < map->capacity; i++)
    if (map->pairs[i].key != 0) larger.pairs[find(&larger, map->pairs[i].key)] = map->pairs[i];
  rondo_release(allocator, map->pairs, map->capacity, sizeof *map->pairs);
  *map = larger;
  return RONDO_OK;
}

rondo_status rondo_handle_map_reserve(const rondo_allocator *allocator, rondo_handle_map *map) {
  return 2 * (map->count + 1) > map->capacity ? grow(allocator, map) : RONDO_OK;
}

void rondo_handle_map_put(rondo_handle_map *map, uint64_t key, uint64_t value) {
  assert(key != 0 && map->count < map->capacity);
  rondo_handle_pair *pair = &map->pairs[find(map, key)];
  assert(pair->key == 0);
  *pair = (rondo_handle_pair){key, value};
  map->count++;
}

bool rondo_handle_map_get(const rondo_handle_map *map, uint64_t key, uint64_t *out) {
  *out = 0;
  if (map->count == 0) return false;
  const rondo_handle_pair *pair = &map->pairs[find(map, key)];
  *out = pair->value;
  return pair->key != 0;
}

void rondo_handle_map_free(const rondo_allocator *allocator, rondo_handle_map *map) {
  rondo_release(allocator, map->pairs, map->capacity, sizeof *map->pairs);
  *map = (rondo_handle_map){0};
}

/* SPDX-License-Identifier: MIT
 * See handle_map.h.
 */
#include "exec/capture/handle_map.h"

#include <assert.h>

#include "base/error.h"

enum { FIRST_CAPACITY = 64, FIRST_SHIFT = 64 - 6 };

rondo_status rondo_handle_map_grow(const rondo_allocator *allocator, rondo_handle_map *map, size_t more) {
  rondo_handle_map larger = {.capacity = FIRST_CAPACITY, .count = map->count, .shift = FIRST_SHIFT};
  while (larger.capacity / 2 < map->count + more) {
    larger.capacity *= 2;
    larger.shift--;
  }
  RONDO_TRY(rondo_allocate_items(allocator, larger.capacity, sizeof *larger.pairs, &larger.pairs));
  for (size_t i = 0; i < map->capacity; i++)
    if (map->pairs[i].key != 0) larger.pairs[rondo_handle_map_index(&larger, map->pairs[i].key)] = map->pairs[i];
  rondo_release(allocator, map->pairs, map->capacity, sizeof *map->pairs);
  *map = larger;
  return RONDO_OK;
}

void rondo_handle_map_put(rondo_handle_map *map, uint64_t key, uint64_t value) {
  assert(key != 0 && map->count < map->capacity);
  rondo_handle_pair *pair = &map->pairs[rondo_handle_map_index(map, key)];
  assert(pair->key == 0);
  *pair = (rondo_handle_pair){key, value};
  map->count++;
}

void rondo_handle_map_free(const rondo_allocator *allocator, rondo_handle_map *map) {
  rondo_release(allocator, map->pairs, map->capacity, sizeof *map->pairs);
  *map = (rondo_handle_map){0};
}

/* SPDX-License-Identifier: MIT
 * The map of addresses: a sorted array with binary search.
 */
#include "memory/graph_memory/address_map.h"

#include <assert.h>
#include <string.h>

#include "base/binary_search.h"
#include "base/error.h"

size_t rondo_address_map_find(const rondo_address_map *map, const char *address) {
  size_t low = 0, high = map->count;
  RONDO_BINARY_SEARCH(low, high, middle, map->items[middle].end <= address)
  return low;
}

bool rondo_address_map_owner(const rondo_address_map *map, const char *address, uint32_t *out_owner) {
  const size_t at = rondo_address_map_find(map, address);
  if (at == map->count || map->items[at].begin > address) return false;
  *out_owner = map->items[at].owner;
  return true;
}

rondo_status rondo_address_map_cover(const rondo_allocator *allocator, rondo_address_map *map, size_t first,
                                     const char *begin, const char *end, uint32_t owner) {
  size_t past = first;
  assert(begin < end && first == rondo_address_map_find(map, begin));
  while (past < map->count && map->items[past].begin < end) past++;
  rondo_covered_range pieces[3];
  size_t count = 0;
  if (past > first && map->items[first].begin < begin) {
    pieces[count] = map->items[first];
    pieces[count++].end = begin;
  }
  pieces[count++] = (rondo_covered_range){.begin = begin, .end = end, .owner = owner};
  if (past > first && map->items[past - 1].end > end) {
    pieces[count] = map->items[past - 1];
    pieces[count++].begin = end;
  }
  const size_t after = map->count - past;
  RONDO_TRY(rondo_array_reserve(allocator, map, first + count + after));
  rondo_covered_range *items = map->items;
  memmove(items + first + count, items + past, after * sizeof *items);
  memcpy(items + first, pieces, count * sizeof *items);
  map->count = first + count + after;
  return RONDO_OK;
}

/* SPDX-License-Identifier: MIT
 * The map of addresses: a sorted array, searched by halving.
 */
#include "memory/graph_memory/address_map.h"

#include <string.h>

#include "base/binary_search.h"
#include "base/error.h"

size_t rondo_stretches_find(const rondo_stretches *stretches, const char *address) {
  size_t low = 0, high = stretches->count;
  RONDO_BINARY_SEARCH(low, high, middle, stretches->items[middle].end <= address)
  return low;
}

bool rondo_stretches_owner(const rondo_stretches *stretches, const char *address, uint32_t *out_owner) {
  const size_t at = rondo_stretches_find(stretches, address);
  if (at == stretches->count || stretches->items[at].begin > address) return false;
  *out_owner = stretches->items[at].owner;
  return true;
}

rondo_status rondo_stretches_cover(const rondo_allocator *allocator, rondo_stretches *stretches, size_t first,
                                   const char *begin, const char *end, uint32_t owner) {
  size_t past = first;
  while (past < stretches->count && stretches->items[past].begin < end) past++;
  rondo_stretch pieces[3];
  size_t count = 0;
  if (past > first && stretches->items[first].begin < begin) {
    pieces[count] = stretches->items[first];
    pieces[count++].end = begin;
  }
  pieces[count++] = (rondo_stretch){.begin = begin, .end = end, .owner = owner};
  if (past > first && stretches->items[past - 1].end > end) {
    pieces[count] = stretches->items[past - 1];
    pieces[count++].begin = end;
  }
  const size_t behind = stretches->count - past;
  RONDO_TRY(rondo_array_reserve(allocator, stretches, first + count + behind));
  rondo_stretch *items = stretches->items;
  memmove(items + first + count, items + past, behind * sizeof *items);
  memcpy(items + first, pieces, count * sizeof *items);
  stretches->count = first + count + behind;
  return RONDO_OK;
}

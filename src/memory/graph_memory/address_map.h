/* SPDX-License-Identifier: MIT
 * A map from addresses to the last owner that covered them. The caller chooses the owners' numbers. The ranges are
 * sorted and disjoint; covering bytes takes them from their previous owners. Thread-compatible.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_MAP_H
#define RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_MAP_H

#include <stdint.h>

#include "base/array.h"

typedef struct rondo_covered_range {
  const char *begin, *end;
  uint32_t owner;
} rondo_covered_range;

typedef RONDO_ARRAY(rondo_covered_range) rondo_address_map; /* freed with rondo_array_free */

/* The first range that ends after the address; the count when there is none. [address, end) overlaps the ranges from
 * there on that begin before `end`. */
size_t rondo_address_map_find(const rondo_address_map *map, const char *address);

/* The owner of the address; false when it is not covered. */
bool rondo_address_map_owner(const rondo_address_map *map, const char *address, uint32_t *out_owner);

/* `first` is the result of rondo_address_map_find for `begin`. On OUT_OF_MEMORY the map does not change. */
RONDO_MUST_USE rondo_status rondo_address_map_cover(const rondo_allocator *allocator, rondo_address_map *map,
                                                    size_t first, const char *begin, const char *end, uint32_t owner);

#endif

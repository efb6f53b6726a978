/* SPDX-License-Identifier: MIT
 * A map of addresses: which bytes were covered last by whom. Owners are the user's numbers. Stretches are sorted and
 * apart; covering some bytes takes them from who had them. Thread-compatible.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_MAP_H
#define RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_MAP_H

#include <stdint.h>

#include "base/array.h"

typedef struct rondo_stretch {
  const char *begin, *end;
  uint32_t owner;
} rondo_stretch;

typedef RONDO_ARRAY(rondo_stretch) rondo_stretches; /* freed with rondo_array_free */

/* The first stretch that ends behind the address; the count when there is none. Those from there on that begin before
 * `end` are what a range [address, end) overlaps. */
size_t rondo_stretches_find(const rondo_stretches *stretches, const char *address);

/* Whose bytes the address is among; false when nobody has covered it. */
bool rondo_stretches_owner(const rondo_stretches *stretches, const char *address, uint32_t *out_owner);

/* `first` is what rondo_stretches_find says for `begin`. Errors: OUT_OF_MEMORY, and nothing is changed. */
RONDO_MUST_USE rondo_status rondo_stretches_cover(const rondo_allocator *allocator, rondo_stretches *stretches,
                                                  size_t first, const char *begin, const char *end, uint32_t owner);

#endif

/* SPDX-License-Identifier: MIT
 * Packing what lives on one stream, as intervals, into gaps that other streams leave, which each item has its own: one
 * item after another goes to the lowest offset that is free. A demand says how much more is going to lie upon an item.
 */
#ifndef RONDO_PLAN_STREAM_PACK_H
#define RONDO_PLAN_STREAM_PACK_H

#include "base/allocation.h"
#include "plan/sort.h"

#define RONDO_PACKED_GAPS 6

typedef struct rondo_packed_gap {
  size_t low, high;
} rondo_packed_gap;

typedef struct rondo_packed {
  uint32_t item;
  uint32_t begin, end; /* positions */
  size_t bytes, alignment;
  rondo_packed_gap gaps[RONDO_PACKED_GAPS]; /* where it may lie: aligned, ascending */
  uint32_t gap_count;
  size_t demand; /* of bytes upon its top */
  size_t offset; /* where it lies */
} rondo_packed;

typedef struct rondo_stream_packer {
  rondo_packed *items; /* sorted by begin */
  uint32_t count, room;
  uint64_t work, most_work;   /* looks at what is in the way */
  rondo_sort_entry *sequence; /* by key, ascending: what is placed first; value: index of an item */
  rondo_sort_entry *scratch;
  rondo_sort_entry *pieces; /* in the way of the item in hand, by offset */
  uint32_t *ends;           /* a tree of maxima over the items: where what is placed ends */
} rondo_stream_packer;

/* For up to `room` items. Errors: OUT_OF_MEMORY; *out can be freed either way. */
RONDO_MUST_USE rondo_status rondo_stream_packer_make(const rondo_allocator *allocator, uint32_t room,
                                                     uint64_t most_work, rondo_stream_packer *out);
void rondo_stream_packer_free(const rondo_allocator *allocator, rondo_stream_packer *packer);

/* Sorts the sequence, whose `count` entries are filled, and places all items. Returns the greatest top with its demand;
 * SIZE_MAX when that is above `limit` or fits in no size_t, or work is above most_work, and then not all are placed. */
size_t rondo_stream_packer_run(rondo_stream_packer *packer, size_t limit);

#endif

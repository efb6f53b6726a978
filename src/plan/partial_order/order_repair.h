/* SPDX-License-Identifier: MIT
 * Bringing a plan below a target by ejection chains: what ends above it is out, and what is out goes in where it pushes
 * out the least, until nothing is out. One thread at a time; any number of repairs may share an index.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_REPAIR_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_REPAIR_H

#include "plan/partial_order/order_index.h"

/* A piece is an entry, or after these an obstacle. */
typedef struct rondo_order_repair {
  const rondo_order_index *index;
  size_t unit;     /* of places and bytes below: a power of two */
  uint32_t target; /* nothing that is in ends above */
  uint64_t steps;  /* taken in all; one puts an item in */
  uint64_t looks;  /* at ranges, entries and pieces, in all */
  uint32_t pieces;
  uint32_t *lows;  /* of each piece: where it begins; UINT32_MAX: it is out */
  uint32_t *highs; /* and ends */
  uint32_t *bytes; /* of each entry */
  int32_t *weight; /* what it costs to push an entry out, the first time */
  int32_t *costs;  /* of each piece: what it costs now */
  uint32_t *heap;  /* the entries that are out, the dearest first */
  uint32_t out_count;
  rondo_index_answer met; /* by the entry in hand */
  /* What of that is in, sorted into bins by its places. */
  unsigned shift; /* from a place to its bin */
  uint32_t bin_count;
  int64_t *begun, *ended;           /* of each bin: what all pieces cost that begin or end in lower ones */
  uint32_t *first_low, *first_high; /* of each bin: the first piece that begins or ends there; UINT32_MAX: none */
  uint32_t *next_low, *next_high;   /* of each piece: the next of its bin */
} rondo_order_repair;

/* Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_order_repair_make(rondo_scratch *scratch, const rondo_order_index *index,
                                                    rondo_order_repair *out);

/* Begins with a plan, of which what ends above `target` is out; NULL: everything is out. Items keep what is known of
 * how hard they are to place. */
void rondo_order_repair_begin(rondo_order_repair *repair, const size_t *offsets, size_t target);

/* Takes up to `steps` steps. True when nothing is out. */
bool rondo_order_repair_run(rondo_order_repair *repair, uint64_t steps);

/* The plan, when nothing is out; offsets of items without bytes are left alone. Returns its peak. */
size_t rondo_order_repair_read(const rondo_order_repair *repair, size_t *offsets);

/* Nothing is known any more of how hard items are to place, but for a little that is made up from the seed. */
void rondo_order_repair_forget(rondo_order_repair *repair, uint64_t seed);

#endif

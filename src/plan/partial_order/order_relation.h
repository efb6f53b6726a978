/* SPDX-License-Identifier: MIT
 * The order of a DAG's nodes: whether u comes strictly before v takes constant time, and the nodes before or after a
 * node are a few ranges. The nodes are divided three times:
 *
 *   stage  a node that is ordered with all others is a stage, and so are the nodes between two of these; stages are
 *          ordered
 *   part   a connected component of a stage; the parts of a stage are not ordered
 *   chain  nodes of a part, each before the next
 *
 * For each node and each chain of its part, a row in `past` says how much of the chain comes before the node, and a row
 * in `future` how much comes after.
 *
 * Each node has a slot, sorted by part, chain and position on the chain. Slot 0 is a beginning before all nodes, and
 * the last slot an end after all nodes. A row is as wide as its part has chains. A part with too many keeps some nodes
 * loose, on no chain: their neighbours on chains stand in for them, so a lifetime may only become longer. Memory is
 * linear in nodes, and each edge is visited once in each direction. Immutable once made.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_RELATION_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_RELATION_H

#include <rondo/plan.h>

#include "base/allocation.h"
#include "base/array.h"

#define RONDO_RELATION_LOOSE UINT32_MAX

typedef struct rondo_relation_part {
  uint32_t stage;
  uint32_t first_slot, loose_slot, end_slot; /* loose nodes have the slots from loose_slot on */
  uint32_t first_chain, chain_count;
  size_t rows; /* index of its first row in past and future; a row has chain_count entries */
} rondo_relation_part;

typedef struct rondo_relation {
  const rondo_plan_order *order;
  uint32_t slot_count; /* nodes + 2 */
  uint32_t *node_slot; /* of each node */
  uint32_t *node_row;  /* of each node: its row within the part */
  uint32_t *slot_node; /* of each slot; undefined for the beginning and the end */
  uint32_t *slot_part;
  uint32_t *slot_chain; /* of each slot; RONDO_RELATION_LOOSE: on none */
  RONDO_ARRAY(rondo_relation_part) parts;
  RONDO_ARRAY(uint32_t) stage_slot; /* of each stage, then slot_count */
  RONDO_ARRAY(uint32_t) chain_slot; /* of each chain, then slot_count */
  RONDO_ARRAY(uint32_t) past;       /* rows: the slots of a chain below the entry come before the node */
  RONDO_ARRAY(uint32_t) future;     /* rows: the slots of a chain from the entry on come after the node */
} rondo_relation;

/* The order must have been checked. `max_chains` limits the chains of a part; 0: as many as keep memory linear in
 * nodes. Errors: LIMIT_EXCEEDED (more than 2^31 nodes), OUT_OF_MEMORY. *out can be freed in any case. */
RONDO_MUST_USE rondo_status rondo_relation_make(rondo_scratch *scratch, const rondo_plan_order *order,
                                                uint32_t max_chains, rondo_relation *out);
/* Frees the arrays; the scratch has the rest. */
void rondo_relation_free(const rondo_allocator *allocator, rondo_relation *relation);

/* The slot that represents a node as the beginning or the end of a lifetime: its own or, if it is loose, that of the
 * nearest node on a chain before or after it. */
uint32_t rondo_relation_begin_slot(const rondo_relation *relation, uint32_t node);
uint32_t rondo_relation_end_slot(const rondo_relation *relation, uint32_t node);

/* Of the nodes on a part's chains: the last whose slot is below the row's entry for its chain; the first whose slot is
 * not. RONDO_RELATION_LOOSE: none. */
uint32_t rondo_relation_latest_below(const rondo_relation *relation, const rondo_relation_part *part,
                                     const uint32_t *row);
uint32_t rondo_relation_earliest_from(const rondo_relation *relation, const rondo_relation_part *part,
                                      const uint32_t *row);

/* Whether u comes strictly before v; both are on chains. */
bool rondo_relation_precedes(const rondo_relation *relation, uint32_t u, uint32_t v);

/* The number of slots strictly before or after a slot on a chain, without the loose nodes of its part. */
uint32_t rondo_relation_count_before(const rondo_relation *relation, uint32_t slot);
uint32_t rondo_relation_count_after(const rondo_relation *relation, uint32_t slot);

/* The first slot after those of a part's chain. */
static inline uint32_t rondo_relation_chain_end(const rondo_relation *relation, const rondo_relation_part *part,
                                                uint32_t chain) {
  return chain + 1 == part->chain_count ? part->loose_slot : relation->chain_slot.items[part->first_chain + chain + 1];
}

/* The rows of a slot other than the beginning and the end. */
static inline const uint32_t *rondo_relation_past(const rondo_relation *relation, uint32_t slot) {
  const rondo_relation_part *part = &relation->parts.items[relation->slot_part[slot]];
  return relation->past.items + part->rows + (size_t)relation->node_row[relation->slot_node[slot]] * part->chain_count;
}
static inline const uint32_t *rondo_relation_future(const rondo_relation *relation, uint32_t slot) {
  const rondo_relation_part *part = &relation->parts.items[relation->slot_part[slot]];
  return relation->future.items + part->rows +
         (size_t)relation->node_row[relation->slot_node[slot]] * part->chain_count;
}

#endif

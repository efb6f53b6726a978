/* SPDX-License-Identifier: MIT
 * The order of a DAG, so that "does u come strictly before v" takes constant time and the nodes before or after one
 * are a few ranges. The nodes are cut up three times:
 *
 *   stage  nodes that are ordered with all others are a stage each, and what stands between two of them is one; stages
 *          come one after another
 *   part   what hangs together within a stage; the parts of a stage are not ordered
 *   chain  nodes of a part of which each comes before the next; in a part, a row a node says for each chain how much
 *          of it comes before the node, and another how much comes after
 *
 * Sorted by part, chain and place, each node has a slot. Slot 0 is a beginning before all nodes and the last slot an
 * end after all. Rows take memory only as wide as a part has chains; a part with very many keeps some of its nodes
 * loose, on no chain: nothing is asked about them, their neighbours on chains stand in for them. So memory is at most
 * linear in nodes, and edges are looked at once each way. Immutable once made.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_RELATION_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_RELATION_H

#include <rondo/plan.h>

#include "base/allocation.h"
#include "base/array.h"

#define RONDO_RELATION_LOOSE UINT32_MAX

typedef struct rondo_relation_part {
  uint32_t stage;
  uint32_t first_slot, loose_slot, end_slot; /* loose nodes' slots come after the chains' */
  uint32_t first_chain, chain_count;
  size_t rows; /* where its first row lies in past and future; a row has chain_count entries */
} rondo_relation_part;

typedef struct rondo_relation {
  const rondo_plan_order *order;
  uint32_t slot_count; /* nodes + 2 */
  uint32_t *node_slot; /* one a node */
  uint32_t *node_row;  /* its row's number within its part */
  uint32_t *slot_node; /* one a slot; those of the beginning and the end mean nothing */
  uint32_t *slot_part;
  uint32_t *slot_chain; /* RONDO_RELATION_LOOSE: on none */
  RONDO_ARRAY(rondo_relation_part) parts;
  RONDO_ARRAY(uint32_t) stage_slot; /* first slot of each stage, and the number of slots */
  RONDO_ARRAY(uint32_t) chain_slot; /* first slot of each chain */
  RONDO_ARRAY(uint32_t) past;       /* rows: the slots of a chain below this come before the node */
  RONDO_ARRAY(uint32_t) future;     /* the slots of a chain from this on come after the node */
} rondo_relation;

/* The order must be checked already. `most_chains` is how many a part may have; 0: as many as memory linear in nodes
 * allows. Errors: LIMIT_EXCEEDED (more than 2^31 nodes), OUT_OF_MEMORY; *out can be freed either way. */
RONDO_MUST_USE rondo_status rondo_relation_make(rondo_scratch *scratch, const rondo_plan_order *order,
                                                uint32_t most_chains, rondo_relation *out);
/* Of the lists that grow; the rest is the scratch's. */
void rondo_relation_free(const rondo_allocator *allocator, rondo_relation *relation);

/* The slot that stands for a node as the beginning or the end of a lifetime: its own, or, where it is loose, that of
 * the nearest node on a chain before or after it. */
uint32_t rondo_relation_begin_slot(const rondo_relation *relation, uint32_t node);
uint32_t rondo_relation_end_slot(const rondo_relation *relation, uint32_t node);

/* Of the nodes of a part's chains whose slots are below a row's entries, that with the greatest number; of those from
 * the entries on, that with the least. RONDO_RELATION_LOOSE: none. */
uint32_t rondo_relation_latest_below(const rondo_relation *relation, const rondo_relation_part *part,
                                     const uint32_t *row);
uint32_t rondo_relation_earliest_from(const rondo_relation *relation, const rondo_relation_part *part,
                                      const uint32_t *row);

/* Whether u comes strictly before v; neither is loose. */
bool rondo_relation_precedes(const rondo_relation *relation, uint32_t u, uint32_t v);

/* How many slots come strictly before or after one that is not loose, loose ones not counted within its part. */
uint32_t rondo_relation_count_before(const rondo_relation *relation, uint32_t slot);
uint32_t rondo_relation_count_after(const rondo_relation *relation, uint32_t slot);

/* The first slot after those of a part's chain. */
static inline uint32_t rondo_relation_chain_end(const rondo_relation *relation, const rondo_relation_part *part,
                                                uint32_t chain) {
  return chain + 1 == part->chain_count ? part->loose_slot : relation->chain_slot.items[part->first_chain + chain + 1];
}

/* The rows of a slot that is neither the beginning nor the end. */
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

/* SPDX-License-Identifier: MIT
 * A node is a stage of its own if no edge passes over it: every earlier node has a successor no later than it, and
 * every later node a predecessor no earlier. The parts of a stage are its connected components, found with union-find.
 *
 * Chains are made greedily, in topological order. A node can go on any chain whose last node comes before it. It goes
 * on the one whose last node has no later successor, or the latest one, because that chain loses least. Of several it
 * takes the one with the latest last node, because chains with earlier last nodes suit more of the nodes to come. The
 * choice needs the node's row in `past`, so chains and rows are made in one pass: when a node is reached, all its
 * predecessors have propagated their rows.
 */
#include "plan/partial_order/order_relation.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

#define MAX_NODES ((uint32_t)1 << 31)
#define MIN_CHAINS 64u /* a part may always have as many as this */
#define MAX_ENTRIES ((size_t)1 << 22)
#define MAX_VISITED_SUCCESSORS 16

typedef struct builder {
  rondo_scratch *scratch;  /* of the relation */
  rondo_scratch temporary; /* released when the relation is made */
  rondo_relation *relation;
  const rondo_plan_order *order;
  uint32_t node_count;
  uint32_t max_chains;      /* of a part */
  uint32_t *node_stage;     /* of each node */
  uint32_t *node_part;      /* of each node */
  uint32_t *node_chain;     /* of each node, within its part */
  uint32_t *node_position;  /* of each node, on its chain */
  uint32_t *sorted;         /* nodes by part */
  uint32_t *part_begin;     /* of each part, in sorted */
  uint32_t *chain_length;   /* of each chain of the current part */
  uint32_t *chain_last;     /* of each chain of the current part: its last node */
  uint32_t *last_successor; /* of each node; 0: none */
} builder;

/* Stages ----------------------------------------------------------------------------------------------------------- */

/* Fills the earliest successor and the latest predecessor of each node, and last_successor. */
static void find_spans(const builder *b, uint32_t *earliest, uint32_t *latest) {
  for (uint32_t i = 0; i < b->node_count; i++) {
    earliest[i] = UINT32_MAX;
    for (uint32_t e = b->order->successor_start[i]; e < b->order->successor_start[i + 1]; e++) {
      const uint32_t successor = b->order->successors[e];
      if (successor < earliest[i]) earliest[i] = successor;
      if (successor > b->last_successor[i]) b->last_successor[i] = successor;
      latest[successor] = i + 1; /* predecessors ascend, so the last one stays; 0: none */
    }
  }
}

/* Numbers the stages from 1; the beginning is stage 0. Returns how many there are, without beginning and end. */
static uint32_t number_stages(builder *b) {
  uint32_t *earliest = b->node_chain;
  uint32_t *latest = b->node_position;
  uint32_t *latest_after = b->sorted;
  find_spans(b, earliest, latest);
  uint32_t least = UINT32_MAX; /* minimum over later nodes of their latest predecessors */
  for (uint32_t i = b->node_count; i-- > 0;) {
    latest_after[i] = least;
    if (latest[i] < least) least = latest[i];
  }
  uint32_t reach = 0; /* maximum over earlier nodes of their earliest successors */
  uint32_t stage = 0;
  bool alone = true;
  for (uint32_t i = 0; i < b->node_count; i++) {
    const bool cut = reach <= i && latest_after[i] >= i + 1;
    if (cut || alone) stage++;
    alone = cut;
    b->node_stage[i] = stage;
    if (earliest[i] > reach) reach = earliest[i];
  }
  return stage;
}

/* Parts ------------------------------------------------------------------------------------------------------------ */

static uint32_t find_root(uint32_t *parents, uint32_t node) {
  while (parents[node] != node) {
    parents[node] = parents[parents[node]];
    node = parents[node];
  }
  return node;
}

static void unite_by_edges(builder *b, uint32_t *parents) {
  for (uint32_t i = 0; i < b->node_count; i++) parents[i] = i;
  for (uint32_t i = 0; i < b->node_count; i++) {
    for (uint32_t e = b->order->successor_start[i]; e < b->order->successor_start[i + 1]; e++) {
      const uint32_t successor = b->order->successors[e];
      if (b->node_stage[successor] != b->node_stage[i]) continue;
      const uint32_t x = find_root(parents, i);
      const uint32_t y = find_root(parents, successor);
      parents[x > y ? x : y] = x > y ? y : x; /* the root is the first node of its part */
    }
  }
}

static rondo_status add_part(builder *b, uint32_t stage) {
  const rondo_relation_part part = {.stage = stage};
  return rondo_array_push(b->temporary.allocator, &b->relation->parts, &part);
}

/* Numbers the parts by their first nodes, and so by stage. Part 0 is the beginning, and the last part the end. */
static rondo_status number_parts(builder *b, uint32_t stages) {
  uint32_t *parents = b->node_chain;
  unite_by_edges(b, parents);
  RONDO_TRY(add_part(b, 0));
  for (uint32_t i = 0; i < b->node_count; i++) {
    const uint32_t root = find_root(parents, i);
    if (root == i) {
      b->node_part[i] = (uint32_t)b->relation->parts.count;
      RONDO_TRY(add_part(b, b->node_stage[i]));
    } else {
      b->node_part[i] = b->node_part[root];
    }
  }
  return add_part(b, stages + 1);
}

static rondo_status sort_by_part(builder *b) {
  const size_t parts = b->relation->parts.count;
  RONDO_TRY(rondo_scratch_take(&b->temporary, parts + 1, sizeof *b->part_begin, &b->part_begin));
  for (uint32_t i = 0; i < b->node_count; i++) b->relation->node_row[i] = b->part_begin[b->node_part[i] + 1]++;
  for (size_t i = 0; i < parts; i++) b->part_begin[i + 1] += b->part_begin[i];
  for (uint32_t i = 0; i < b->node_count; i++) b->sorted[b->part_begin[b->node_part[i]] + b->relation->node_row[i]] = i;
  return RONDO_OK;
}

/* Chains ----------------------------------------------------------------------------------------------------------- */

/* A part while its chains are made. A row has capacity for `stride` entries, of which `width` are in use. */
typedef struct part_builder {
  uint32_t part;
  const uint32_t *nodes; /* of the part */
  uint32_t node_count;
  uint32_t width, stride;
  size_t rows;
} part_builder;

static rondo_status add_rows(const builder *b, part_builder *pb, uint32_t stride) {
  const size_t end = pb->rows + (size_t)pb->node_count * stride;
  RONDO_TRY(rondo_array_reserve(b->temporary.allocator, &b->relation->past, end));
  uint32_t *rows = b->relation->past.items + pb->rows;
  const size_t had = b->relation->past.count - pb->rows;
  memset(rows + had, 0, ((size_t)pb->node_count * stride - had) * sizeof *rows);
  for (size_t i = pb->node_count; pb->stride > 0 && i-- > 0;) {
    uint32_t *to = rows + i * stride;
    memmove(to, rows + i * pb->stride, pb->stride * sizeof *rows);
    memset(to + pb->stride, 0, (stride - pb->stride) * sizeof *rows);
  }
  b->relation->past.count = end;
  pb->stride = stride;
  return RONDO_OK;
}

/* Removes the unused capacity of the rows. */
static void trim_rows(const builder *b, const part_builder *pb) {
  uint32_t *rows = b->relation->past.items + pb->rows;
  for (size_t i = 0; i < pb->node_count && pb->width < pb->stride; i++) {
    memmove(rows + i * pb->width, rows + i * pb->stride, pb->width * sizeof *rows);
  }
  b->relation->past.count = pb->rows + (size_t)pb->node_count * pb->width;
}

/* The first successor of u after a node; UINT32_MAX: none. If u has many successors, its last one. */
static uint32_t next_successor(const builder *b, uint32_t u, uint32_t node) {
  const uint32_t begin = b->order->successor_start[u], end = b->order->successor_start[u + 1];
  uint32_t next = UINT32_MAX;
  if (b->last_successor[u] <= node) return UINT32_MAX;
  if (end - begin > MAX_VISITED_SUCCESSORS) return b->last_successor[u];
  for (uint32_t e = begin; e < end; e++) {
    const uint32_t successor = b->order->successors[e];
    if (successor > node && successor < next) next = successor;
  }
  return next;
}

/* Whether the chain that ends in u suits `node` better than the one that ends in v. */
static bool suits_better(const builder *b, uint32_t node, uint32_t u, uint32_t v) {
  const uint32_t u_next = next_successor(b, u, node);
  const uint32_t v_next = next_successor(b, v, node);
  return u_next != v_next ? u_next > v_next : u > v;
}

/* The chain that the node goes on; LOOSE: none. */
static uint32_t choose_chain(const builder *b, const part_builder *pb, uint32_t node, const uint32_t *row) {
  uint32_t best = RONDO_RELATION_LOOSE;
  for (uint32_t c = 0; c < pb->width; c++) {
    if (row[c] != b->chain_length[c]) continue;
    if (best == RONDO_RELATION_LOOSE || suits_better(b, node, b->chain_last[c], b->chain_last[best])) best = c;
  }
  return best;
}

static rondo_status put_on_chain(const builder *b, part_builder *pb, uint32_t node) {
  const uint32_t *row = b->relation->past.items + pb->rows + (size_t)b->relation->node_row[node] * pb->stride;
  uint32_t chain = choose_chain(b, pb, node, row);
  if (chain == RONDO_RELATION_LOOSE && pb->width < b->max_chains) {
    if (pb->width == pb->stride) RONDO_TRY(add_rows(b, pb, 2 * pb->stride));
    chain = pb->width++;
    b->chain_length[chain] = 0;
  }
  b->node_chain[node] = chain;
  if (chain == RONDO_RELATION_LOOSE) return RONDO_OK;
  b->node_position[node] = b->chain_length[chain]++;
  b->chain_last[chain] = node;
  return RONDO_OK;
}

static void propagate(const builder *b, const part_builder *pb, uint32_t node) {
  uint32_t *rows = b->relation->past.items + pb->rows;
  const uint32_t *from = rows + (size_t)b->relation->node_row[node] * pb->stride;
  const uint32_t chain = b->node_chain[node];
  for (uint32_t e = b->order->successor_start[node]; e < b->order->successor_start[node + 1]; e++) {
    const uint32_t successor = b->order->successors[e];
    if (b->node_part[successor] != pb->part) continue;
    uint32_t *to = rows + (size_t)b->relation->node_row[successor] * pb->stride;
    for (uint32_t c = 0; c < pb->width; c++) to[c] = from[c] > to[c] ? from[c] : to[c];
    if (chain == RONDO_RELATION_LOOSE) continue;
    if (to[chain] <= b->node_position[node]) to[chain] = b->node_position[node] + 1;
  }
}

/* Assigns slots to the part's nodes, chain by chain, then to its loose nodes. */
static rondo_status give_slots(const builder *b, const part_builder *pb) {
  rondo_relation *relation = b->relation;
  rondo_relation_part *part = &relation->parts.items[pb->part];
  uint32_t slot = part->first_slot;
  for (uint32_t c = 0; c < pb->width; c++) {
    RONDO_TRY(rondo_array_push(b->temporary.allocator, &relation->chain_slot, &slot));
    slot += b->chain_length[c];
  }
  part->loose_slot = slot;
  for (uint32_t i = 0; i < pb->node_count; i++) {
    const uint32_t node = pb->nodes[i];
    const uint32_t chain = b->node_chain[node];
    const bool loose = chain == RONDO_RELATION_LOOSE;
    const uint32_t at = loose ? slot++ : relation->chain_slot.items[part->first_chain + chain] + b->node_position[node];
    relation->node_slot[node] = at;
    relation->slot_node[at] = node;
    relation->slot_part[at] = pb->part;
    relation->slot_chain[at] = loose ? RONDO_RELATION_LOOSE : part->first_chain + chain;
  }
  part->end_slot = slot;
  return RONDO_OK;
}

/* Replaces positions on chains by slots. */
static void finish_past(const builder *b, const part_builder *pb) {
  const rondo_relation_part *part = &b->relation->parts.items[pb->part];
  uint32_t *row = b->relation->past.items + pb->rows;
  for (uint32_t i = 0; i < pb->node_count; i++, row += pb->width) {
    for (uint32_t c = 0; c < pb->width; c++) row[c] += b->relation->chain_slot.items[part->first_chain + c];
  }
}

static rondo_status make_future(const builder *b, const part_builder *pb) {
  rondo_relation *relation = b->relation;
  const rondo_relation_part *part = &relation->parts.items[pb->part];
  RONDO_TRY(rondo_array_reserve(b->temporary.allocator, &relation->future, relation->past.count));
  relation->future.count = relation->past.count;
  uint32_t *rows = relation->future.items + pb->rows;
  for (uint32_t i = pb->node_count; i-- > 0;) {
    uint32_t *row = rows + (size_t)i * pb->width;
    for (uint32_t c = 0; c < pb->width; c++) {
      row[c] = relation->chain_slot.items[part->first_chain + c] + b->chain_length[c];
    }
    const uint32_t *start = &b->order->successor_start[pb->nodes[i]];
    for (uint32_t e = start[0]; e < start[1]; e++) {
      const uint32_t successor = b->order->successors[e];
      if (b->node_part[successor] != pb->part) continue;
      const uint32_t *from = rows + (size_t)relation->node_row[successor] * pb->width;
      for (uint32_t c = 0; c < pb->width; c++) row[c] = from[c] < row[c] ? from[c] : row[c];
      const uint32_t chain = b->node_chain[successor];
      const uint32_t slot = relation->node_slot[successor];
      if (chain != RONDO_RELATION_LOOSE && slot < row[chain]) row[chain] = slot;
    }
  }
  return RONDO_OK;
}

static rondo_status build_part(const builder *b, uint32_t number, uint32_t first_slot) {
  rondo_relation_part *part = &b->relation->parts.items[number];
  part_builder pb = {.part = number, .nodes = b->sorted + b->part_begin[number], .rows = b->relation->past.count};
  pb.node_count = b->part_begin[number + 1] - b->part_begin[number];
  part->first_slot = first_slot;
  part->first_chain = (uint32_t)b->relation->chain_slot.count;
  part->rows = pb.rows;
  RONDO_TRY(add_rows(b, &pb, pb.node_count == 1 ? 1 : 4));
  for (uint32_t i = 0; i < pb.node_count; i++) {
    RONDO_TRY(put_on_chain(b, &pb, pb.nodes[i]));
    propagate(b, &pb, pb.nodes[i]);
  }
  part->chain_count = pb.width;
  trim_rows(b, &pb);
  RONDO_TRY(give_slots(b, &pb));
  finish_past(b, &pb);
  return make_future(b, &pb);
}

/* Makes the part of the beginning or the end: one slot, one chain, no rows. */
static rondo_status build_end(const builder *b, uint32_t number, uint32_t slot) {
  rondo_relation *relation = b->relation;
  rondo_relation_part *part = &relation->parts.items[number];
  part->first_slot = slot;
  part->loose_slot = part->end_slot = slot + 1;
  part->first_chain = (uint32_t)relation->chain_slot.count;
  part->chain_count = 1;
  part->rows = relation->past.count;
  relation->slot_part[slot] = number;
  relation->slot_chain[slot] = part->first_chain;
  return rondo_array_push(b->temporary.allocator, &relation->chain_slot, &slot);
}

static rondo_status build_parts(const builder *b) {
  rondo_relation *relation = b->relation;
  const uint32_t last = (uint32_t)relation->parts.count - 1;
  uint32_t slot = 0;
  for (uint32_t i = 0; i <= last; i++) {
    if (i == 0 || relation->parts.items[i].stage != relation->parts.items[i - 1].stage) {
      RONDO_TRY(rondo_array_push(b->temporary.allocator, &relation->stage_slot, &slot));
    }
    const bool is_end = i == 0 || i == last;
    RONDO_TRY(is_end ? build_end(b, i, slot) : build_part(b, i, slot));
    slot = relation->parts.items[i].end_slot;
  }
  assert(slot == relation->slot_count);
  RONDO_TRY(rondo_array_push(b->temporary.allocator, &relation->chain_slot, &slot));
  return rondo_array_push(b->temporary.allocator, &relation->stage_slot, &slot);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status allocate_nodes(builder *b) {
  rondo_relation *relation = b->relation;
  const size_t nodes = b->node_count;
  const size_t slots = relation->slot_count;
  const size_t chains = b->max_chains;
  RONDO_TRY(rondo_scratch_take(b->scratch, nodes, sizeof(uint32_t), &relation->node_slot));
  RONDO_TRY(rondo_scratch_take(b->scratch, nodes, sizeof(uint32_t), &relation->node_row));
  RONDO_TRY(rondo_scratch_take(b->scratch, slots, sizeof(uint32_t), &relation->slot_node));
  RONDO_TRY(rondo_scratch_take(b->scratch, slots, sizeof(uint32_t), &relation->slot_part));
  RONDO_TRY(rondo_scratch_take(b->scratch, slots, sizeof(uint32_t), &relation->slot_chain));
  RONDO_TRY(rondo_scratch_take(&b->temporary, nodes, sizeof(uint32_t), &b->node_stage));
  RONDO_TRY(rondo_scratch_take(&b->temporary, nodes, sizeof(uint32_t), &b->node_part));
  RONDO_TRY(rondo_scratch_take(&b->temporary, nodes, sizeof(uint32_t), &b->node_chain));
  RONDO_TRY(rondo_scratch_take(&b->temporary, nodes, sizeof(uint32_t), &b->node_position));
  RONDO_TRY(rondo_scratch_take(&b->temporary, nodes, sizeof(uint32_t), &b->sorted));
  RONDO_TRY(rondo_scratch_take(&b->temporary, nodes, sizeof(uint32_t), &b->last_successor));
  RONDO_TRY(rondo_scratch_take(&b->temporary, chains, sizeof(uint32_t), &b->chain_length));
  return rondo_scratch_take(&b->temporary, chains, sizeof(uint32_t), &b->chain_last);
}

static uint32_t limit_chains(uint32_t nodes, uint32_t wanted) {
  const size_t wide = nodes == 0 ? 0 : MAX_ENTRIES / nodes;
  const size_t most = wanted > 0 ? wanted : wide > MIN_CHAINS ? wide : MIN_CHAINS;
  return most < nodes ? (uint32_t)most : nodes;
}

#ifndef NDEBUG
static void check_slots(const rondo_relation *relation) {
  for (uint32_t node = 0; node < relation->order->node_count; node++) {
    const uint32_t slot = relation->node_slot[node];
    assert(slot > 0 && slot < relation->slot_count - 1 && relation->slot_node[slot] == node);
    const uint32_t chain = relation->slot_chain[slot];
    if (chain == RONDO_RELATION_LOOSE || slot == relation->chain_slot.items[chain]) continue;
    assert(relation->slot_chain[slot - 1] == chain && relation->slot_node[slot - 1] < node);
  }
}

static void check_parts(const rondo_relation *relation) {
  uint32_t slot = 0, stage = 0;
  for (size_t i = 0; i < relation->parts.count; i++) {
    const rondo_relation_part *part = &relation->parts.items[i];
    assert(part->first_slot == slot && slot < part->loose_slot && part->loose_slot <= part->end_slot);
    assert(part->stage == stage || part->stage == stage + 1);
    assert(part->first_slot >= relation->stage_slot.items[part->stage]);
    assert(part->end_slot <= relation->stage_slot.items[part->stage + 1]);
    slot = part->end_slot;
    stage = part->stage;
  }
  assert(slot == relation->slot_count);
}
#endif

/* Asserts that nodes and slots correspond, that parts and stages are ranges of slots in order, that chains are in
 * topological order, and that the relation has each edge. Linear in nodes, edges and rows. */
static void check(const rondo_relation *relation) {
#ifdef NDEBUG
  (void)relation;
#else
  const rondo_plan_order *order = relation->order;
  check_slots(relation);
  check_parts(relation);
  for (uint32_t node = 0; node < order->node_count; node++) {
    const uint32_t from = relation->node_slot[node];
    if (relation->slot_chain[from] == RONDO_RELATION_LOOSE) continue;
    for (uint32_t i = order->successor_start[node]; i < order->successor_start[node + 1]; i++) {
      const uint32_t to = relation->node_slot[order->successors[i]];
      assert(rondo_relation_precedes(relation, from, to));
      assert(relation->slot_chain[to] == RONDO_RELATION_LOOSE || !rondo_relation_precedes(relation, to, from));
    }
  }
#endif
}

rondo_status rondo_relation_make(rondo_scratch *scratch, const rondo_plan_order *order, uint32_t max_chains,
                                 rondo_relation *out) {
  *out = (rondo_relation){0};
  if (order->node_count > MAX_NODES) {
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                      "a plan's order has %u nodes; the maximum is %u: split the plan", order->node_count, MAX_NODES);
  }
  *out = (rondo_relation){.order = order, .slot_count = order->node_count + 2};
  builder b = {.scratch = scratch,
               .temporary.allocator = scratch->allocator,
               .relation = out,
               .order = order,
               .node_count = order->node_count};
  b.max_chains = limit_chains(order->node_count, max_chains);
  rondo_status status = allocate_nodes(&b);
  if (status == RONDO_OK) status = number_parts(&b, number_stages(&b));
  if (status == RONDO_OK) status = sort_by_part(&b);
  if (status == RONDO_OK) status = build_parts(&b);
  rondo_scratch_free(&b.temporary);
  if (status == RONDO_OK) check(out);
  return status;
}

void rondo_relation_free(const rondo_allocator *allocator, rondo_relation *relation) {
  rondo_array_free(allocator, &relation->parts);
  rondo_array_free(allocator, &relation->stage_slot);
  rondo_array_free(allocator, &relation->chain_slot);
  rondo_array_free(allocator, &relation->past);
  rondo_array_free(allocator, &relation->future);
}

/* Questions -------------------------------------------------------------------------------------------------------- */

uint32_t rondo_relation_latest_below(const rondo_relation *relation, const rondo_relation_part *part,
                                     const uint32_t *row) {
  uint32_t latest = RONDO_RELATION_LOOSE;
  for (uint32_t c = 0; c < part->chain_count; c++) {
    if (row[c] == relation->chain_slot.items[part->first_chain + c]) continue;
    const uint32_t slot = row[c] - 1;
    if (latest == RONDO_RELATION_LOOSE || relation->slot_node[slot] > relation->slot_node[latest]) latest = slot;
  }
  return latest;
}

uint32_t rondo_relation_earliest_from(const rondo_relation *relation, const rondo_relation_part *part,
                                      const uint32_t *row) {
  uint32_t earliest = RONDO_RELATION_LOOSE;
  for (uint32_t c = 0; c < part->chain_count; c++) {
    if (row[c] == rondo_relation_chain_end(relation, part, c)) continue;
    if (earliest == RONDO_RELATION_LOOSE || relation->slot_node[row[c]] < relation->slot_node[earliest]) {
      earliest = row[c];
    }
  }
  return earliest;
}

uint32_t rondo_relation_begin_slot(const rondo_relation *relation, uint32_t node) {
  const uint32_t slot = relation->node_slot[node];
  if (relation->slot_chain[slot] != RONDO_RELATION_LOOSE) return slot;
  const rondo_relation_part *part = &relation->parts.items[relation->slot_part[slot]];
  const uint32_t last = rondo_relation_latest_below(relation, part, rondo_relation_past(relation, slot));
  return last != RONDO_RELATION_LOOSE ? last : relation->stage_slot.items[part->stage - 1];
}

uint32_t rondo_relation_end_slot(const rondo_relation *relation, uint32_t node) {
  const uint32_t slot = relation->node_slot[node];
  if (relation->slot_chain[slot] != RONDO_RELATION_LOOSE) return slot;
  const rondo_relation_part *part = &relation->parts.items[relation->slot_part[slot]];
  const uint32_t first = rondo_relation_earliest_from(relation, part, rondo_relation_future(relation, slot));
  return first != RONDO_RELATION_LOOSE ? first : relation->stage_slot.items[part->stage + 1];
}

bool rondo_relation_precedes(const rondo_relation *relation, uint32_t u, uint32_t v) {
  const uint32_t part = relation->slot_part[u];
  if (part != relation->slot_part[v]) {
    return relation->parts.items[part].stage < relation->parts.items[relation->slot_part[v]].stage;
  }
  if (part == 0 || v == relation->slot_count - 1) return false;
  const uint32_t chain = relation->slot_chain[u] - relation->parts.items[part].first_chain;
  return u < rondo_relation_past(relation, v)[chain];
}

uint32_t rondo_relation_count_before(const rondo_relation *relation, uint32_t slot) {
  const rondo_relation_part *part = &relation->parts.items[relation->slot_part[slot]];
  uint32_t count = relation->stage_slot.items[part->stage];
  if (slot == 0 || slot == relation->slot_count - 1) return count;
  const uint32_t *row = rondo_relation_past(relation, slot);
  for (uint32_t c = 0; c < part->chain_count; c++) count += row[c] - relation->chain_slot.items[part->first_chain + c];
  return count;
}

uint32_t rondo_relation_count_after(const rondo_relation *relation, uint32_t slot) {
  const rondo_relation_part *part = &relation->parts.items[relation->slot_part[slot]];
  uint32_t count = relation->slot_count - relation->stage_slot.items[part->stage + 1];
  if (slot == 0 || slot == relation->slot_count - 1) return count;
  const uint32_t *row = rondo_relation_future(relation, slot);
  for (uint32_t c = 0; c < part->chain_count; c++) count += rondo_relation_chain_end(relation, part, c) - row[c];
  return count;
}

/* SPDX-License-Identifier: MIT
 * Chains, clocks and masks. A mask has one bit for each of at most 256 nodes on one side of the pairs. Masks move along
 * the edges from these nodes: forward if the pairs have fewer different first nodes, backward if they have fewer
 * different second nodes.
 */
#include "graph/verify/happens_before.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

#define MOST_CLOCK_ENTRIES (SIZE_MAX >> 4 < (size_t)1 << 24 ? SIZE_MAX >> 4 : (size_t)1 << 24)
#define NODE_WORDS 4 /* words for each node in the block of chains, indices, predecessors and successors */
#define STEPS 8      /* to shorten a pair */
#define LOOK_AHEAD 8 /* successors that are compared one by one */

/* Chains ---------------------------------------------------------------------------------------------------------- */

static void begin_chain(rondo_verify_order *order, uint32_t node) {
  order->chain[node] = order->chain_count++;
  order->index[node] = 1;
}

/* Finds the chains in one walk over the edges. Each node passes its chain to its first successor without one. */
static void cover(rondo_verify_order *order) {
  const rondo_flat_edges *edges = &order->edges;
  for (uint32_t i = 0; i < edges->node_count; i++) {
    const uint32_t first = edges->successor_start[i], past = edges->successor_start[i + 1];
    bool is_last = true; /* of its chain */
    if (order->index[i] == 0) begin_chain(order, i);
    if (past - first > 0) order->only_successor[i] = past - first == 1 ? edges->successors[first] : RONDO_ORDER_MANY;
    for (uint32_t k = first; k < past; k++) {
      const uint32_t next = edges->successors[k];
      assert(next > i && next < edges->node_count); /* the numbers are a topological order */
      order->only_predecessor[next] = order->only_predecessor[next] == RONDO_ORDER_NONE ? i : RONDO_ORDER_MANY;
      if (!is_last || order->index[next] != 0) continue;
      is_last = false;
      order->chain[next] = order->chain[i];
      order->index[next] = order->index[i] + 1;
    }
  }
}

static void run_clocks(rondo_verify_order *order) {
  const rondo_flat_edges *edges = &order->edges;
  const size_t width = order->chain_count;
  for (uint32_t i = 0; i < edges->node_count; i++) {
    uint32_t *clock = order->clocks + i * width;
    clock[order->chain[i]] = order->index[i];
    for (uint32_t k = edges->successor_start[i]; k < edges->successor_start[i + 1]; k++) {
      uint32_t *next = order->clocks + edges->successors[k] * width;
      for (size_t c = 0; c < width; c++) next[c] = next[c] > clock[c] ? next[c] : clock[c];
    }
  }
}

/* Whether each node has an edge to the next one, and there are no other edges. */
static bool is_line(const rondo_flat_edges *edges) {
  const uint32_t last = (uint32_t)edges->node_count - 1;
  if (edges->successor_start[last] != last || edges->successor_start[last + 1] != last) return false;
  for (uint32_t i = 0; i < last; i++)
    if (edges->successor_start[i] != i || edges->successors[i] != i + 1) return false;
  return true;
}

rondo_status rondo_verify_order_make(const rondo_allocator *allocator, const rondo_flat_edges *edges, uint32_t widest,
                                     rondo_verify_order *out) {
  const size_t count = edges->node_count;
  *out = (rondo_verify_order){.allocator = allocator, .edges = *edges};
  if (count == 0) return RONDO_OK;
  if (is_line(edges)) {
    out->chain_count = 1;
    return RONDO_OK;
  }
  RONDO_TRY(rondo_allocate_items(allocator, NODE_WORDS * count, sizeof *out->chain, &out->chain));
  out->index = out->chain + count;
  out->only_predecessor = out->index + count;
  out->only_successor = out->only_predecessor + count;
  memset(out->only_predecessor, 0xff, 2 * count * sizeof(uint32_t)); /* RONDO_ORDER_NONE */
  cover(out);
  if (out->chain_count == 1 || out->chain_count > widest || count > MOST_CLOCK_ENTRIES / out->chain_count)
    return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(allocator, count * out->chain_count, sizeof *out->clocks, &out->clocks));
  run_clocks(out);
  return RONDO_OK;
}

void rondo_verify_order_free(rondo_verify_order *order) {
  const size_t count = order->edges.node_count;
  rondo_release(order->allocator, order->chain, NODE_WORDS * count, sizeof(uint32_t));
  rondo_release(order->allocator, order->clocks, count * order->chain_count, sizeof(uint32_t));
  *order = (rondo_verify_order){0};
}

/* One pair -------------------------------------------------------------------------------------------------------- */

/* Whether there is an edge, as in most pairs. False also if `before` has too many successors to compare. */
static bool is_edge(const rondo_flat_edges *edges, uint32_t before, uint32_t after) {
  const uint32_t first = edges->successor_start[before], past = edges->successor_start[before + 1];
  for (uint32_t k = first; k < past && past - first <= LOOK_AHEAD; k++)
    if (edges->successors[k] == after) return true;
  return false;
}

/* A node with a single predecessor is reached only through it, and a node with a single successor reaches others only
 * through that. Shortens the pair accordingly. True if this answers it. */
static bool shorten(const rondo_verify_order *order, uint32_t *before, uint32_t *after, bool *out_ordered) {
  *out_ordered = false;
  for (int step = 0; step < STEPS; step++) {
    if (*before >= *after) return true;
    const uint32_t in = order->only_predecessor[*after], out = order->only_successor[*before];
    if (in == RONDO_ORDER_NONE || out == RONDO_ORDER_NONE) return true;
    if (in == *before || out == *after || is_edge(&order->edges, *before, *after)) {
      *out_ordered = true;
      return true;
    }
    if (in == RONDO_ORDER_MANY && out == RONDO_ORDER_MANY) return false;
    if (in != RONDO_ORDER_MANY) *after = in;
    if (out != RONDO_ORDER_MANY && *before < *after) *before = out;
    if (*before == *after) {
      *out_ordered = true;
      return true;
    }
  }
  return false;
}

bool rondo_verify_order_decide(const rondo_verify_order *order, uint32_t before, uint32_t after, bool *out_ordered) {
  if (order->chain_count == 1 || order->chain[before] == order->chain[after]) {
    *out_ordered = before < after;
    return true;
  }
  if (order->clocks == NULL) return shorten(order, &before, &after, out_ordered);
  assert(order->index[before] > 0 && order->chain[before] < order->chain_count);
  *out_ordered = before < after &&
                 order->clocks[after * (size_t)order->chain_count + order->chain[before]] >= order->index[before];
  return true;
}

/* Masks ----------------------------------------------------------------------------------------------------------- */

#define MASK_WORDS 4
#define BATCH (64 * MASK_WORDS)

typedef struct node_mask {
  uint64_t words[MASK_WORDS];
} node_mask;

/* A pair that shortening did not answer. Each is listed once. */
typedef struct hard_pair {
  uint32_t before, after;
  bool ordered;
} hard_pair;

typedef struct hard_pairs {
  const rondo_verify_order *order;
  rondo_scratch scratch; /* owns the arrays */
  hard_pair *items;      /* at most as many as there are requested pairs */
  size_t count;
  uint32_t *table; /* a hash table of indices of items, each plus 1 */
  size_t table_mask;
  uint32_t *asked;  /* for each requested pair, the index of its item plus 1; 0 if it is answered */
  uint32_t *starts; /* by node: where the items with this source begin in `by_source`; one entry more than nodes */
  uint32_t *by_source;
  node_mask *masks; /* by node */
} hard_pairs;

static uint32_t enter_pair(hard_pairs *hard, uint32_t before, uint32_t after) {
  size_t at = (size_t)rondo_hash_u64(RONDO_HASH_START, (uint64_t)before << 32 | after) & hard->table_mask;
  for (; hard->table[at] != 0; at = (at + 1) & hard->table_mask) {
    const hard_pair *item = &hard->items[hard->table[at] - 1];
    if (item->before == before && item->after == after) return hard->table[at];
  }
  hard->items[hard->count++] = (hard_pair){.before = before, .after = after};
  hard->table[at] = (uint32_t)hard->count;
  return hard->table[at];
}

static void shorten_all(hard_pairs *hard, rondo_order_pair *pairs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint32_t before = pairs[i].before, after = pairs[i].after;
    if (!shorten(hard->order, &before, &after, &pairs[i].ordered)) hard->asked[i] = enter_pair(hard, before, after);
  }
}

static uint32_t source_of(const hard_pair *item, bool forward) { return forward ? item->before : item->after; }
static uint32_t target_of(const hard_pair *item, bool forward) { return forward ? item->after : item->before; }

/* Sorts the items by source. Returns how many different sources there are. */
static size_t group(hard_pairs *hard, bool forward) {
  const size_t nodes = hard->order->edges.node_count;
  size_t sources = 0;
  memset(hard->starts, 0, (nodes + 1) * sizeof *hard->starts);
  for (size_t i = 0; i < hard->count; i++) hard->starts[source_of(&hard->items[i], forward)]++;
  uint32_t sum = 0;
  for (size_t i = 0; i <= nodes; i++) {
    const uint32_t here = i < nodes ? hard->starts[i] : 0;
    sources += here > 0;
    hard->starts[i] = sum;
    sum += here;
  }
  for (size_t i = 0; i < hard->count; i++)
    hard->by_source[hard->starts[source_of(&hard->items[i], forward)]++] = (uint32_t)i;
  for (size_t i = nodes; i > 0; i--) hard->starts[i] = hard->starts[i - 1];
  hard->starts[0] = 0;
  return sources;
}

static inline void merge(node_mask *into, const node_mask *from) {
  for (int w = 0; w < MASK_WORDS; w++) into->words[w] |= from->words[w];
}

/* Moves the masks of the nodes from `low` to `high` along the edges between them. */
static void spread(const hard_pairs *hard, bool forward, uint32_t low, uint32_t high) {
  const rondo_flat_edges *edges = &hard->order->edges;
  node_mask *masks = hard->masks;
  for (uint32_t i = 0; i <= high - low; i++) {
    const uint32_t node = forward ? low + i : high - i;
    for (uint32_t k = edges->successor_start[node]; k < edges->successor_start[node + 1]; k++) {
      const uint32_t next = edges->successors[k];
      if (next > high) continue;
      if (forward)
        merge(&masks[next], &masks[node]);
      else
        merge(&masks[node], &masks[next]);
    }
  }
}

/* Answers the items of these sources, which are in ascending order. */
static void answer_batch(const hard_pairs *hard, bool forward, const uint32_t *sources, size_t count) {
  uint32_t low = sources[0], high = sources[count - 1];
  for (size_t s = 0; s < count; s++)
    for (uint32_t k = hard->starts[sources[s]]; k < hard->starts[sources[s] + 1]; k++) {
      const uint32_t target = target_of(&hard->items[hard->by_source[k]], forward);
      if (target < low) low = target;
      if (target > high) high = target;
    }
  memset(hard->masks + low, 0, (high - low + 1) * sizeof *hard->masks);
  for (size_t s = 0; s < count; s++) hard->masks[sources[s]].words[s / 64] |= UINT64_C(1) << s % 64;
  spread(hard, forward, low, high);
  for (size_t s = 0; s < count; s++)
    for (uint32_t k = hard->starts[sources[s]]; k < hard->starts[sources[s] + 1]; k++) {
      hard_pair *item = &hard->items[hard->by_source[k]];
      item->ordered = (hard->masks[target_of(item, forward)].words[s / 64] >> s % 64 & 1) != 0;
    }
}

static void answer_hard(hard_pairs *hard) {
  const size_t backward_sources = group(hard, false), forward_sources = group(hard, true);
  const bool forward = forward_sources <= backward_sources;
  if (!forward) (void)group(hard, false);
  uint32_t batch[BATCH];
  size_t filled = 0;
  for (uint32_t node = 0; node < hard->order->edges.node_count; node++) {
    if (hard->starts[node] == hard->starts[node + 1]) continue;
    batch[filled++] = node;
    if (filled < BATCH) continue;
    answer_batch(hard, forward, batch, filled);
    filled = 0;
  }
  if (filled > 0) answer_batch(hard, forward, batch, filled);
}

static rondo_status check_by_masks(hard_pairs *hard, rondo_order_pair *pairs, size_t count) {
  const size_t nodes = hard->order->edges.node_count;
  shorten_all(hard, pairs, count);
  if (hard->count == 0) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(&hard->scratch, nodes + 1, sizeof *hard->starts, &hard->starts));
  RONDO_TRY(rondo_scratch_take(&hard->scratch, count, sizeof *hard->by_source, &hard->by_source));
  RONDO_TRY(rondo_scratch_take(&hard->scratch, nodes, sizeof *hard->masks, &hard->masks));
  answer_hard(hard);
  for (size_t i = 0; i < count; i++)
    if (hard->asked[i] != 0) pairs[i].ordered = hard->items[hard->asked[i] - 1].ordered;
  return RONDO_OK;
}

static rondo_status make_table(hard_pairs *hard, size_t count) {
  size_t capacity = 16;
  while (capacity < 2 * count) capacity *= 2;
  hard->table_mask = capacity - 1;
  RONDO_TRY(rondo_scratch_take(&hard->scratch, count, sizeof *hard->items, &hard->items));
  RONDO_TRY(rondo_scratch_take(&hard->scratch, capacity, sizeof *hard->table, &hard->table));
  return rondo_scratch_take(&hard->scratch, count, sizeof *hard->asked, &hard->asked);
}

rondo_status rondo_verify_order_check(const rondo_verify_order *order, rondo_order_pair *pairs, size_t count) {
  if (order->clocks != NULL || order->chain_count <= 1 || count == 0) {
    for (size_t i = 0; i < count; i++)
      (void)rondo_verify_order_decide(order, pairs[i].before, pairs[i].after, &pairs[i].ordered);
    return RONDO_OK;
  }
  hard_pairs hard = {.order = order, .scratch = {.allocator = order->allocator}};
  rondo_status status = make_table(&hard, count);
  if (status == RONDO_OK) status = check_by_masks(&hard, pairs, count);
  rondo_scratch_free(&hard.scratch);
  return status;
}

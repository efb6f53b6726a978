/* SPDX-License-Identifier: MIT
 * Nodes are in topological order, so one pass over a range of them propagates all bits: bit k of a node is set if the
 * k-th source of the batch comes before the node.
 */
#include "plan/partial_order/order_reach.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define WORDS 4
#define SOURCES (64 * WORDS)

typedef struct bits {
  uint64_t words[WORDS];
} bits;

static int compare_queries(const void *a, const void *b) {
  const rondo_reach_query *x = a;
  const rondo_reach_query *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->to != y->to) return x->to < y->to ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

static void propagate(const rondo_plan_order *order, uint32_t node, uint32_t last, bits *reached) {
  const bits own = reached[node];
  uint64_t any = 0;
  for (size_t w = 0; w < WORDS; w++) any |= own.words[w];
  if (any == 0) return;
  for (uint32_t i = order->successor_start[node]; i < order->successor_start[node + 1]; i++) {
    const uint32_t successor = order->successors[i];
    if (successor > last) continue;
    for (size_t w = 0; w < WORDS; w++) reached[successor].words[w] |= own.words[w];
  }
}

/* The queries have at most SOURCES different `from`. A source's own bit is set too, but says nothing about it. */
static void answer_batch(const rondo_plan_order *order, rondo_reach_query *queries, size_t count, bits *reached) {
  const uint32_t first = queries[0].from;
  uint32_t last = first;
  for (size_t i = 0; i < count; i++) last = queries[i].to > last ? queries[i].to : last;
  memset(reached + first, 0, (size_t)(last - first + 1) * sizeof *reached);
  size_t next = 0; /* the query whose source comes next */
  uint32_t source = 0;
  for (uint32_t node = first; node <= last; node++) {
    if (next < count && queries[next].from == node) {
      reached[node].words[source / 64] |= (uint64_t)1 << source % 64;
      source++;
      while (next < count && queries[next].from == node) next++;
    }
    propagate(order, node, last, reached);
  }
  source = 0;
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && queries[i].from != queries[i - 1].from) source++;
    const bool bit = (reached[queries[i].to].words[source / 64] >> source % 64 & 1) != 0;
    queries[i].answer = bit && queries[i].to > queries[i].from;
  }
}

rondo_status rondo_reach_run(const rondo_allocator *allocator, const rondo_plan_order *order,
                             rondo_reach_query *queries, size_t count) {
  if (count == 0) return RONDO_OK;
  rondo_scratch scratch = {.allocator = allocator};
  bits *reached = NULL;
  qsort(queries, count, sizeof *queries, compare_queries);
  RONDO_TRY(rondo_scratch_take(&scratch, order->node_count, sizeof *reached, &reached));
  for (size_t begin = 0; begin < count;) {
    size_t end = begin + 1;
    for (size_t sources = 1; end < count; end++) {
      if (queries[end].from != queries[end - 1].from && sources++ == SOURCES) break;
    }
    answer_batch(order, queries + begin, end - begin, reached);
    begin = end;
  }
  rondo_scratch_free(&scratch);
  return RONDO_OK;
}

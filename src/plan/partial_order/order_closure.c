/* SPDX-License-Identifier: MIT
 * Finds the moment of maximum weight by its dual: each byte that an item needs when it begins may come from an item
 * that ended before. Bytes flow from the start of a node that allocates, back along the edges, to the end of a node
 * that frees. The bytes that cannot be obtained in this way are live at once.
 *
 * A first pass makes a flow: each node takes over what its predecessors have left. Dinic's algorithm then makes it
 * maximum, with distances from the sinks. Edges have unlimited capacity. So the vertices that unmet needs can reach are
 * a moment after each step, and the moment of maximum weight once the flow is maximum.
 */
#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "plan/partial_order/order_bound.h"

#define NONE UINT32_MAX
#define WORK_PER_CLOCK_READ 65536

/* Node v has two vertices: its start, 2v, and its end, 2v + 1. */
struct rondo_closure {
  const rondo_plan_problem *problem;
  const rondo_branches *branches;
  const rondo_plan_order *order; /* the problem's */
  uint32_t node_count, edge_count;
  uint32_t *predecessor_start, *predecessors; /* like the successors of the order */
  uint32_t *edge;                             /* of each entry of predecessors: its index in successors */
  size_t *needs, *frees; /* of each node: bytes that it still needs, and bytes of its items that are free */
  size_t *across;        /* of each edge: flow from the later node to the earlier */
  size_t *within;        /* of each node: flow from its end to its start */
  uint32_t *distance;    /* of each vertex: arcs to the nearest free bytes */
  uint32_t *next_arc;    /* of each vertex: the arc to try next */
  uint32_t *path;        /* vertices of the current path; also the queue of searches */
  size_t *spare;         /* in the first pass, of each node: bytes that no successor has taken over */
  uint64_t work, max_work, deadline_ns, next_clock_read;
  _Atomic bool is_stopped;
};
typedef struct rondo_closure flow;

static bool is_over(flow *f) {
  if (f->work > f->max_work || atomic_load_explicit(&f->is_stopped, memory_order_relaxed)) return true;
  if (f->deadline_ns == UINT64_MAX || f->work < f->next_clock_read) return false;
  f->next_clock_read = f->work + WORK_PER_CLOCK_READ;
  return rondo_clock_ns() > f->deadline_ns;
}

/* The first flow --------------------------------------------------------------------------------------------------- */

/* Each node takes over all spare bytes of the predecessors whose last successor it is, and from the others what it
 * needs. Afterwards `across` is what each edge carries and `spare` what nobody took over. */
static void forward_bytes(flow *f) {
  const rondo_plan_order *order = f->order;
  size_t *spare = f->spare;
  for (uint32_t v = 0; v < f->node_count; v++) {
    size_t had = 0;
    for (int round = 0; round < 2; round++) {
      for (uint32_t i = f->predecessor_start[v]; i < f->predecessor_start[v + 1]; i++) {
        const uint32_t u = f->predecessors[i];
        const bool all = order->successors[order->successor_start[u + 1] - 1] == v;
        if (all != (round == 0)) continue;
        const size_t lacks = had < f->needs[v] ? f->needs[v] - had : 0;
        const size_t taken = all || spare[u] < lacks ? spare[u] : lacks;
        f->across[f->edge[i]] += taken;
        spare[u] -= taken;
        had += taken;
      }
    }
    spare[v] = f->frees[v] + (had > f->needs[v] ? had - f->needs[v] : 0);
    f->within[v] = had < f->needs[v] ? had : f->needs[v]; /* served, for now */
  }
}

/* Removes from the edges what was taken over but not used. */
static void keep_used(flow *f) {
  for (uint32_t v = f->node_count; v-- > 0;) {
    size_t came = 0;
    for (uint32_t e = f->order->successor_start[v]; e < f->order->successor_start[v + 1]; e++) came += f->across[e];
    const size_t own = came < f->frees[v] ? came : f->frees[v];
    const size_t served = f->within[v];
    f->frees[v] -= own;
    f->needs[v] -= served;
    f->within[v] = came - own;
    size_t used = came - own + served;
    for (uint32_t i = f->predecessor_start[v]; i < f->predecessor_start[v + 1]; i++) {
      size_t *carried = &f->across[f->edge[i]];
      if (*carried > used) *carried = used;
      used -= *carried;
    }
    assert(used == 0);
  }
}

/* Searches --------------------------------------------------------------------------------------------------------- */

static void reach(flow *f, uint32_t vertex, uint32_t distance, size_t *count) {
  if (f->distance[vertex] != NONE) return;
  f->distance[vertex] = distance;
  f->path[(*count)++] = vertex;
}

/* Measures the distance of each vertex to free bytes. */
static void measure_distances(flow *f) {
  size_t count = 0;
  memset(f->distance, 0xFF, 2 * (size_t)f->node_count * sizeof *f->distance);
  for (uint32_t v = 0; v < f->node_count; v++) {
    if (f->frees[v] > 0) reach(f, 2 * v + 1, 0, &count);
  }
  for (size_t i = 0; i < count; i++) {
    const uint32_t v = f->path[i] / 2;
    const uint32_t next = f->distance[f->path[i]] + 1;
    if (f->path[i] % 2 == 1) {
      if (f->within[v] > 0) reach(f, 2 * v, next, &count);
      const uint32_t end = f->order->successor_start[v + 1];
      for (uint32_t e = f->order->successor_start[v]; e < end; e++) reach(f, 2 * f->order->successors[e], next, &count);
    } else {
      reach(f, 2 * v + 1, next, &count);
      for (uint32_t k = f->predecessor_start[v]; k < f->predecessor_start[v + 1]; k++) {
        if (f->across[f->edge[k]] > 0) reach(f, 2 * f->predecessors[k] + 1, next, &count);
      }
    }
  }
  f->work += 2 * (uint64_t)f->node_count + f->edge_count;
}

/* An arc of the residual graph. If it cancels flow, its capacity is that flow; else it has no limit. */
typedef struct arc {
  uint32_t to;
  size_t *flow;
  bool cancels;
} arc;

/* Returns false if the vertex has fewer arcs. */
static bool arc_of(const flow *f, uint32_t vertex, uint32_t number, arc *out) {
  const uint32_t v = vertex / 2;
  if (vertex % 2 == 0) {
    const uint32_t i = f->predecessor_start[v] + number;
    if (i > f->predecessor_start[v + 1]) return false;
    *out = i == f->predecessor_start[v + 1] ? (arc){2 * v + 1, &f->within[v], true}
                                            : (arc){2 * f->predecessors[i] + 1, &f->across[f->edge[i]], false};
    return true;
  }
  const uint32_t e = f->order->successor_start[v] + number - 1;
  if (number > 0 && e >= f->order->successor_start[v + 1]) return false;
  *out = number == 0 ? (arc){2 * v, &f->within[v], false} : (arc){2 * f->order->successors[e], &f->across[e], true};
  return true;
}

static size_t capacity_of(const arc *a) { return a->cancels ? *a->flow : SIZE_MAX; }

/* Sends as much as possible along the path. Returns the length of the part of the path that can still carry flow. */
static size_t send_along(flow *f, size_t length) {
  const uint32_t source = f->path[0] / 2;
  const uint32_t sink = f->path[length - 1] / 2;
  size_t bytes = f->needs[source] < f->frees[sink] ? f->needs[source] : f->frees[sink];
  arc a;
  for (size_t i = 0; i + 1 < length; i++) {
    if (arc_of(f, f->path[i], f->next_arc[f->path[i]], &a) && capacity_of(&a) < bytes) bytes = capacity_of(&a);
  }
  size_t kept = length;
  for (size_t i = length - 1; i-- > 0;) {
    if (!arc_of(f, f->path[i], f->next_arc[f->path[i]], &a)) continue;
    *a.flow = a.cancels ? *a.flow - bytes : *a.flow + bytes;
    if (capacity_of(&a) == 0) kept = i + 1;
  }
  f->needs[source] -= bytes;
  f->frees[sink] -= bytes;
  f->work += length;
  if (f->frees[sink] == 0 && kept == length) kept = length - 1;
  return kept;
}

/* Sends from one node's start along shortest paths until there are none. */
static void send_from(flow *f, uint32_t node) {
  size_t length = 1;
  f->path[0] = 2 * node;
  while (length > 0 && f->needs[node] > 0 && !is_over(f)) {
    const uint32_t vertex = f->path[length - 1];
    if (vertex % 2 == 1 && f->distance[vertex] == 0 && f->frees[vertex / 2] > 0) {
      length = send_along(f, length);
      continue;
    }
    arc a;
    f->work++;
    if (!arc_of(f, vertex, f->next_arc[vertex], &a)) {
      length--;
      if (length > 0) f->next_arc[f->path[length - 1]]++;
    } else if (capacity_of(&a) > 0 && f->distance[vertex] > 0 && f->distance[a.to] == f->distance[vertex] - 1) {
      f->path[length++] = a.to;
    } else {
      f->next_arc[vertex]++;
    }
  }
}

static bool send_all(flow *f) {
  bool sent = false;
  measure_distances(f);
  memset(f->next_arc, 0, 2 * (size_t)f->node_count * sizeof *f->next_arc);
  for (uint32_t v = 0; v < f->node_count; v++) {
    if (f->needs[v] == 0 || f->distance[2 * v] == NONE) continue;
    send_from(f, v);
    sent = true;
  }
  return sent;
}

/* Marks with distance 0 the vertices that unmet needs can reach, which are a moment. */
static void mark_moment(flow *f) {
  size_t count = 0;
  memset(f->distance, 0xFF, 2 * (size_t)f->node_count * sizeof *f->distance);
  for (uint32_t v = 0; v < f->node_count; v++) {
    if (f->needs[v] > 0) reach(f, 2 * v, 0, &count);
  }
  for (size_t i = 0; i < count; i++) {
    arc a;
    for (uint32_t k = 0; arc_of(f, f->path[i], k, &a); k++) {
      if (capacity_of(&a) > 0) reach(f, a.to, 0, &count);
    }
  }
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status allocate(rondo_scratch *scratch, flow *f) {
  const size_t nodes = f->node_count;
  const size_t edges = f->edge_count;
  RONDO_TRY(rondo_scratch_take(scratch, nodes + 2, sizeof(uint32_t), &f->predecessor_start));
  RONDO_TRY(rondo_scratch_take(scratch, edges, sizeof(uint32_t), &f->predecessors));
  RONDO_TRY(rondo_scratch_take(scratch, edges, sizeof(uint32_t), &f->edge));
  RONDO_TRY(rondo_scratch_take(scratch, nodes, sizeof(size_t), &f->needs));
  RONDO_TRY(rondo_scratch_take(scratch, nodes, sizeof(size_t), &f->frees));
  RONDO_TRY(rondo_scratch_take(scratch, edges, sizeof(size_t), &f->across));
  RONDO_TRY(rondo_scratch_take(scratch, nodes, sizeof(size_t), &f->within));
  RONDO_TRY(rondo_scratch_take(scratch, nodes, 2 * sizeof(uint32_t), &f->distance));
  RONDO_TRY(rondo_scratch_take(scratch, nodes, 2 * sizeof(uint32_t), &f->next_arc));
  RONDO_TRY(rondo_scratch_take(scratch, nodes, sizeof(size_t), &f->spare));
  return rondo_scratch_take(scratch, nodes, 2 * sizeof(uint32_t), &f->path);
}

static void list_predecessors(flow *f) {
  const rondo_plan_order *order = f->order;
  for (uint32_t e = 0; e < f->edge_count; e++) f->predecessor_start[order->successors[e] + 2]++;
  for (uint32_t v = 0; v < f->node_count; v++) f->predecessor_start[v + 2] += f->predecessor_start[v + 1];
  for (uint32_t v = 0; v < f->node_count; v++) {
    for (uint32_t e = order->successor_start[v]; e < order->successor_start[v + 1]; e++) {
      const uint32_t at = f->predecessor_start[order->successors[e] + 1]++;
      f->predecessors[at] = v;
      f->edge[at] = e;
    }
  }
}

/* True if each choice that contains the branch takes the branch on this path. */
static bool is_taken(const rondo_branches *branches, const uint32_t *taken, uint32_t branch) {
  for (; branch != 0; branch = branches->parent[branch]) {
    if (taken[branches->choice[branch]] != branch) return false;
  }
  return true;
}

static void add_items(flow *f, const uint32_t *taken) {
  for (size_t i = 0; i < f->problem->count; i++) {
    const rondo_plan_item *item = &f->problem->items[i];
    if (!is_taken(f->branches, taken, item->branch)) continue;
    f->needs[item->lower] += item->bytes;
    if (item->upper != RONDO_PLAN_FOREVER) f->frees[item->upper] += item->bytes;
  }
}

/* The bytes live at the marked moment. */
static size_t weigh(const flow *f, const uint32_t *taken) {
  size_t bytes = 0;
  for (size_t i = 0; i < f->problem->count; i++) {
    const rondo_plan_item *item = &f->problem->items[i];
    if (!is_taken(f->branches, taken, item->branch) || f->distance[2 * item->lower] == NONE) continue;
    const bool ended = item->upper != RONDO_PLAN_FOREVER && f->distance[2 * item->upper + 1] != NONE;
    if (!ended) bytes += item->bytes;
  }
  return bytes;
}

rondo_status rondo_closure_make(rondo_scratch *scratch, const rondo_plan_problem *problem,
                                const rondo_branches *branches, rondo_closure **out) {
  const rondo_plan_order *order = problem->order;
  RONDO_TRY(rondo_scratch_take(scratch, 1, sizeof **out, out));
  (*out)->problem = problem;
  (*out)->branches = branches;
  (*out)->order = order;
  (*out)->node_count = order->node_count;
  (*out)->edge_count = order->node_count == 0 ? 0 : order->successor_start[order->node_count];
  return allocate(scratch, *out);
}

void rondo_closure_stop(rondo_closure *closure) { atomic_store(&closure->is_stopped, true); }

size_t rondo_closure_run(rondo_closure *closure, const uint32_t *taken, uint64_t max_work, uint64_t deadline_ns,
                         bool *out_exact) {
  closure->max_work = max_work;
  closure->deadline_ns = deadline_ns;
  list_predecessors(closure);
  add_items(closure, taken);
  forward_bytes(closure);
  keep_used(closure);
  while (send_all(closure) && !is_over(closure)) continue;
  *out_exact = !is_over(closure);
  mark_moment(closure);
  return weigh(closure, taken);
}

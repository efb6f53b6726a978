/* SPDX-License-Identifier: MIT
 * Builds task graphs, and implements what workers do with entries.
 */
#include "base/tasks/task_graph.h"

#include <string.h>

#include "base/error.h"

/* Making ---------------------------------------------------------------------------------------------------------- */

typedef struct chains {
  rondo_task_graph *graph;
  const uint32_t *successor_start, *successors; /* by item */
  bool (*is_alone)(const void *user, uint32_t item);
  const void *user;
  uint32_t *predecessors;   /* number of predecessors of each item */
  uint32_t *predecessor_of; /* the last predecessor found of each item */
  uint32_t *task_of;
} chains;

static uint32_t successor_count(const chains *c, uint32_t item) {
  return c->successor_start[item + 1] - c->successor_start[item];
}

static bool is_alone(const chains *c, uint32_t item) { return c->is_alone != NULL && c->is_alone(c->user, item); }

static bool follows_in_chain(const chains *c, uint32_t item) {
  if (c->predecessors[item] != 1) return false;
  const uint32_t before = c->predecessor_of[item];
  return successor_count(c, before) == 1 && !is_alone(c, item) && !is_alone(c, before);
}

static void count_predecessors(chains *c) {
  for (uint32_t i = 0; i < c->graph->item_count; i++) {
    for (uint32_t k = c->successor_start[i]; k < c->successor_start[i + 1]; k++) {
      assert(c->successors[k] > i && c->successors[k] < c->graph->item_count);
      c->predecessors[c->successors[k]]++;
      c->predecessor_of[c->successors[k]] = i;
    }
  }
}

/* Lays out a chain from its first item. */
static void add_task(chains *c, uint32_t head, uint32_t *next_position) {
  rondo_task_graph *graph = c->graph;
  const uint32_t number = graph->task_count++;
  rondo_task *task = &graph->tasks[number];
  *task = (rondo_task){.first = *next_position, .predecessors = c->predecessors[head], .mark = UINT32_MAX};
  atomic_init(&task->pending, task->predecessors);
  for (uint32_t item = head;; item = c->successors[c->successor_start[item]]) {
    assert(c->task_of[item] == RONDO_NO_TASK);
    graph->position[item] = (*next_position)++;
    c->task_of[item] = number;
    task->count++;
    if (successor_count(c, item) != 1 || !follows_in_chain(c, c->successors[c->successor_start[item]])) break;
  }
}

/* The edges of a chain's last item are the edges of its task. The sources follow them. */
static void link_tasks(const chains *c) {
  rondo_task_graph *graph = c->graph;
  for (uint32_t item = 0; item < graph->item_count; item++) {
    rondo_task *task = &graph->tasks[c->task_of[item]];
    if (graph->position[item] != task->first + task->count - 1) continue;
    task->successors_first = graph->successor_count;
    for (uint32_t k = c->successor_start[item]; k < c->successor_start[item + 1]; k++)
      graph->successors[graph->successor_count++] = c->task_of[c->successors[k]];
    task->successors_end = graph->successor_count;
    if (task->successors_first == task->successors_end) graph->sink_count++;
  }
  graph->sources_first = graph->successor_count;
  for (uint32_t i = 0; i < graph->task_count; i++)
    if (graph->tasks[i].predecessors == 0) graph->successors[graph->sources_first + graph->source_count++] = i;
}

/* `lengths` holds a zero for each task. */
static void measure_longest_path(rondo_task_graph *graph, uint32_t *lengths) {
  for (uint32_t i = 0; i < graph->task_count; i++) {
    const rondo_task *task = &graph->tasks[i];
    const uint32_t length = lengths[i] + task->count;
    if (length > graph->longest_path) graph->longest_path = length;
    for (uint32_t k = task->successors_first; k < task->successors_end; k++)
      if (lengths[graph->successors[k]] < length) lengths[graph->successors[k]] = length;
  }
}

static rondo_status allocate_graph(const rondo_allocator *allocator, rondo_task_graph *graph) {
  void *memory;
  RONDO_TRY(rondo_allocate_aligned(allocator, graph->item_count, sizeof *graph->tasks, RONDO_CACHE_LINE, &memory));
  graph->tasks = memory;
  RONDO_TRY(rondo_allocate_items(allocator, graph->item_count, sizeof *graph->position, &graph->position));
  return rondo_allocate_items(allocator, (size_t)graph->edge_count + graph->item_count, sizeof *graph->successors,
                              &graph->successors);
}

/* A counting sort, filled from the end. */
void rondo_edges_invert(size_t count, const uint32_t *before_start, const uint32_t *before, uint32_t *after_start,
                        uint32_t *after) {
  for (uint32_t e = 0; e < before_start[count]; e++) {
    assert(before[e] < count);
    after_start[before[e]]++;
  }
  for (size_t i = 1; i <= count; i++) after_start[i] += after_start[i - 1];
  for (size_t to = count; to-- > 0;)
    for (uint32_t e = before_start[to]; e < before_start[to + 1]; e++) after[--after_start[before[e]]] = (uint32_t)to;
}

rondo_status rondo_task_graph_make(const rondo_allocator *allocator, uint32_t item_count,
                                   const uint32_t *successor_start, const uint32_t *successors,
                                   bool (*alone)(const void *user, uint32_t item), const void *user,
                                   rondo_task_graph *out) {
  uint32_t *numbers, next_position = 0;
  *out = (rondo_task_graph){.item_count = item_count, .edge_count = successor_start[item_count]};
  RONDO_TRY(allocate_graph(allocator, out));
  RONDO_TRY(rondo_allocate_items(allocator, item_count, 4 * sizeof *numbers, &numbers));
  chains c = {.graph = out,
              .successor_start = successor_start,
              .successors = successors,
              .is_alone = alone,
              .user = user,
              .predecessors = numbers};
  if (item_count > 0) {
    c.predecessor_of = numbers + item_count;
    c.task_of = c.predecessor_of + item_count;
    memset(c.task_of, 0xff, item_count * sizeof *c.task_of);
    count_predecessors(&c);
    for (uint32_t i = 0; i < item_count; i++) /* the rest of a chain has larger numbers than its head */
      if (c.task_of[i] == RONDO_NO_TASK) add_task(&c, i, &next_position);
    link_tasks(&c);
    measure_longest_path(out, c.task_of + item_count);
  }
  rondo_release(allocator, numbers, item_count, 4 * sizeof *numbers);
  rondo_task_graph_check(out);
  return RONDO_OK;
}

void rondo_task_graph_free(const rondo_allocator *allocator, rondo_task_graph *graph) {
  const size_t count = graph->item_count;
  rondo_release(allocator, graph->tasks, count, sizeof *graph->tasks);
  rondo_release(allocator, graph->position, count, sizeof *graph->position);
  rondo_release(allocator, graph->successors, graph->edge_count + count, sizeof *graph->successors);
  *graph = (rondo_task_graph){0};
}

#ifndef NDEBUG
static void check_task(const rondo_task_graph *graph, uint32_t number) {
  const rondo_task *task = &graph->tasks[number];
  assert(task->count > 0);
  assert(task->first == (number == 0 ? 0 : task[-1].first + task[-1].count));
  assert(atomic_load(&task->pending) == task->predecessors);
  assert(task->successors_first <= task->successors_end && task->successors_end <= graph->successor_count);
  for (uint32_t k = task->successors_first; k < task->successors_end; k++) {
    assert(graph->successors[k] > number && graph->successors[k] < graph->task_count);
    assert(graph->tasks[graph->successors[k]].predecessors > 0);
  }
}
#endif

void rondo_task_graph_check(const rondo_task_graph *graph) {
#ifdef NDEBUG
  (void)graph;
#else
  uint32_t items = 0;
  for (uint32_t i = 0; i < graph->task_count; i++) {
    check_task(graph, i);
    items += graph->tasks[i].count;
  }
  assert(items == graph->item_count);
  assert(graph->longest_path <= graph->item_count && graph->sources_first == graph->successor_count);
  assert(graph->task_count == 0 || (graph->source_count > 0 && graph->sink_count > 0 && graph->longest_path > 0));
  for (uint32_t i = 0; i < graph->item_count; i++) assert(graph->position[i] < graph->item_count);
#endif
}

/* Running --------------------------------------------------------------------------------------------------------- */

void rondo_task_list_append(rondo_task_list *list, const rondo_task_graph *graph, uint32_t task) {
  assert(task < graph->task_count);
  graph->tasks[task].next = RONDO_NO_TASK;
  if (list->first == RONDO_NO_TASK)
    list->first = task;
  else
    graph->tasks[list->last].next = task;
  list->last = task;
}

static uint32_t entry_count(uint64_t entry) { return (uint32_t)(entry >> 32) >> RONDO_TAG_BITS; }

static uint32_t put_all(rondo_task_worker *worker, const rondo_task_graph *graph, const uint64_t *entries,
                        uint32_t count) {
  const uint32_t shared = rondo_deque_push(&worker->deque, entries, count);
  for (uint32_t i = shared; i < count; i++) {
    const uint32_t first = rondo_task_entry_first(entries[i]), end = first + entry_count(entries[i]);
    for (uint32_t k = first; k < end; k++) rondo_task_list_append(&worker->list, graph, graph->successors[k]);
  }
  return shared;
}

bool rondo_task_put(rondo_task_worker *worker, const rondo_task_graph *graph, uint64_t entry) {
  return put_all(worker, graph, &entry, 1) == 1;
}

/* Splits an entry into halves, the largest first, until only its first task is left. Returns how many halves. */
static uint32_t halve(uint64_t entry, uint64_t halves[RONDO_MOST_HALVES]) {
  const uint32_t tag = rondo_task_entry_tag(entry), first = rondo_task_entry_first(entry);
  uint32_t count = entry_count(entry), made = 0;
  while (count > 1) {
    const uint32_t half = count / 2;
    count -= half;
    assert(made < RONDO_MOST_HALVES);
    halves[made++] = rondo_task_entry(tag, first + count, half);
  }
  return made;
}

uint32_t rondo_task_split(rondo_task_worker *worker, const rondo_task_graph *graph, uint64_t entry,
                          uint32_t *out_shared) {
  uint64_t halves[RONDO_MOST_HALVES];
  const uint32_t first = rondo_task_entry_first(entry), made = halve(entry, halves);
  assert(first + entry_count(entry) <= graph->successor_count + graph->source_count);
  *out_shared = made == 0 ? 0 : put_all(worker, graph, halves, made);
  return graph->successors[first];
}

void rondo_task_keep(rondo_task_worker *worker, const rondo_task_graph *graph, uint64_t entry) {
  assert(entry_count(entry) > 0 && worker->kept_count <= RONDO_MOST_KEPT);
  if (worker->kept_count < RONDO_MOST_KEPT)
    worker->kept[worker->kept_count++] = entry;
  else
    (void)rondo_task_put(worker, graph, entry);
}

static uint32_t share_all(rondo_task_worker *worker, const rondo_task_graph *graph) {
  uint64_t entries[RONDO_MOST_KEPT + RONDO_MOST_HALVES];
  const uint32_t others = worker->kept_count - 1;
  const uint64_t newest = worker->kept[others];
  memcpy(entries, worker->kept, others * sizeof *entries);
  const uint32_t count = others + halve(newest, &entries[others]);
  worker->kept[0] = rondo_task_entry(rondo_task_entry_tag(newest), rondo_task_entry_first(newest), 1);
  worker->kept_count = 1;
  return count == 0 ? 0 : put_all(worker, graph, entries, count);
}

uint32_t rondo_task_share_kept(rondo_task_worker *worker, const rondo_task_graph *graph, bool all) {
  assert(worker->kept_count > 0 && worker->kept_count <= RONDO_MOST_KEPT);
  if (all) return share_all(worker, graph);
  uint64_t *kept = worker->kept, entry = kept[0];
  const uint32_t count = entry_count(entry), half = count / 2;
  if (worker->kept_count > 1) {
    memmove(kept, kept + 1, --worker->kept_count * sizeof *kept);
  } else {
    if (half == 0) return 0;
    const uint32_t tag = rondo_task_entry_tag(entry), first = rondo_task_entry_first(entry);
    kept[0] = rondo_task_entry(tag, first, count - half);
    entry = rondo_task_entry(tag, first + count - half, half);
  }
  return put_all(worker, graph, &entry, 1);
}

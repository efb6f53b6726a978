/* SPDX-License-Identifier: MIT
 * Runs a launch in several of the orders that its edges allow, one node after another, each time from the same memory.
 * The first order is that of the list of nodes; its result stays. The second is as different as the edges allow. The
 * others are drawn at random, from the seed and the number of the launch. If the result of an order differs, one order
 * is turned into the other by exchanging neighbours, and a binary search finds the first exchange that changes the
 * result: it names the two nodes whose order matters.
 *
 * Some launches are not explored but run as on other devices: of graphs with host functions or event-wait nodes, with
 * nodes of several devices, of graphs that write unknown memory, of graphs with one order, and while nodes are timed.
 *
 * Threads: the thread that launches, with the gate closed.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/trace.h"
#include "device/check/check.h"
#include "device/check/check_findings.h"
#include "device/check/check_orders.h"
#include "device/check/check_snapshot.h"
#include "device/cpu/cpu_run.h"
#include "graph/node_name.h"

/* The gate --------------------------------------------------------------------------------------------------------- */

/* Works and changes of lifetimes pass the gate, any number at once. A thread that explores a launch closes it and is
 * alone. Host functions do not pass it, since they may wait for anything. Works do not wait for each other, so closing
 * always ends. */
#define CLOSED (UINT32_C(1) << 31)

static _Thread_local const check_state *closed_here;

bool check_gate_is_mine(void) { return closed_here != NULL; }

/* Adds to the gate, as soon as it is open. */
static void add_when_open(check_state *check, uint32_t what) {
  uint32_t inside = atomic_load(&check->gate);
  for (;;) {
    if (inside & CLOSED) {
      rondo_futex_wait(&check->gate, inside);
      inside = atomic_load(&check->gate);
    } else if (atomic_compare_exchange_weak(&check->gate, &inside, inside + what)) {
      return;
    }
  }
}

void check_gate_enter(check_state *check) { add_when_open(check, 1); }

void check_gate_leave(check_state *check) {
  const uint32_t before = atomic_fetch_sub(&check->gate, 1);
  assert((before & ~CLOSED) > 0);
  if (before == (CLOSED | 1)) rondo_futex_wake(&check->gate, UINT32_MAX);
}

static void close_gate(check_state *check) {
  uint32_t inside;
  assert(closed_here == NULL);
  add_when_open(check, CLOSED);
  while ((inside = atomic_load(&check->gate)) != CLOSED) rondo_futex_wait(&check->gate, inside);
  closed_here = check;
}

static void open_gate(check_state *check) {
  assert(closed_here == check && atomic_load(&check->gate) == CLOSED);
  closed_here = NULL;
  atomic_store(&check->gate, 0);
  rondo_futex_wake(&check->gate, UINT32_MAX);
}

/* Orders ----------------------------------------------------------------------------------------------------------- */

typedef struct explorer {
  check_state *check;
  cpu_executable *executable;
  check_snapshot snapshot;
  uint64_t random;
  uint32_t count;  /* nodes */
  uint32_t *first; /* positions in ascending order: the order whose result is kept */
  uint32_t *order; /* the order that is tried */
  uint32_t *between;
  uint32_t *rank;  /* by position: in `order` */
  uint32_t *ready; /* tasks; `taken` of each have run, `pending` predecessors have not */
  uint32_t *taken, *pending;
  uint32_t *sums; /* a tree of counts, by rank */
  uint64_t found_before;
} explorer;

enum { ARRAYS = 8 };

/* Steele, Lea, Flood 2014, "splitmix64". */
static uint64_t draw(explorer *e) {
  uint64_t z = e->random += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* The index in `ready` of the segment that runs next: a random one, or the last of all. */
static uint32_t choose(explorer *e, uint32_t ready_count, bool latest) {
  uint32_t best = 0;
  if (!latest) return (uint32_t)(draw(e) % ready_count);
  for (uint32_t i = 1; i < ready_count; i++)
    if (e->ready[i] > e->ready[best]) best = i;
  return best;
}

/* The task is done: successors without other unfinished predecessors become ready. */
static void release_successors(explorer *e, const rondo_task *task, uint32_t *ready_count) {
  for (uint32_t k = task->successors_first; k < task->successors_end; k++) {
    const uint32_t next = e->executable->graph.successors[k];
    if (--e->pending[next] == 0) e->ready[(*ready_count)++] = next;
  }
}

static void make_order(explorer *e, bool latest) {
  const cpu_executable *executable = e->executable;
  uint32_t ready_count = 0, made = 0;
  for (uint32_t i = 0; i < executable->graph.task_count; i++) {
    e->taken[i] = 0;
    e->pending[i] = executable->graph.tasks[i].predecessors;
    if (e->pending[i] == 0) e->ready[ready_count++] = i;
  }
  while (ready_count > 0) {
    const uint32_t chosen = choose(e, ready_count, latest), number = e->ready[chosen];
    const rondo_task *task = &executable->graph.tasks[number];
    e->order[made++] = task->first + e->taken[number]++;
    if (e->taken[number] < task->count) continue;
    e->ready[chosen] = e->ready[--ready_count];
    release_successors(e, task, &ready_count);
  }
  assert(made == e->count);
  for (uint32_t i = 0; i < made; i++) e->rank[e->order[i]] = i;
}

/* Exchanges -------------------------------------------------------------------------------------------------------- */

static void count_rank(explorer *e, uint32_t rank) {
  for (uint32_t i = rank + 1; i <= e->count; i += i & (~i + 1)) e->sums[i - 1]++;
}
static uint32_t ranks_below(const explorer *e, uint32_t rank) {
  uint32_t sum = 0;
  for (uint32_t i = rank; i > 0; i -= i & (~i + 1)) sum += e->sums[i - 1];
  return sum;
}

/* The number of exchanges of neighbours from the first order to `order`, if one node after another is moved to its
 * position. It stops at `limit`: then *out_at is the node being moved and *out_steps how far it was moved. */
static uint64_t count_exchanges(explorer *e, uint64_t limit, uint32_t *out_at, uint32_t *out_steps) {
  uint64_t done = 0;
  memset(e->sums, 0, e->count * sizeof *e->sums);
  for (uint32_t i = 0; i < e->count; i++) {
    const uint32_t rank = e->rank[e->first[i]];
    const uint32_t steps = i - ranks_below(e, rank); /* earlier nodes that belong after it */
    *out_at = i;
    if (done + steps >= limit) {
      *out_steps = (uint32_t)(limit - done);
      return limit;
    }
    done += steps;
    count_rank(e, rank);
    *out_steps = 0;
  }
  return done;
}

/* Writes the order after `exchanges` exchanges to `between`. The last exchange moved *out_moved before *out_passed. */
static void make_between(explorer *e, uint64_t exchanges, uint32_t *out_moved, uint32_t *out_passed) {
  uint32_t at = 0, steps = 0, sorted = 0;
  (void)count_exchanges(e, exchanges, &at, &steps);
  memcpy(e->between, e->first, e->count * sizeof *e->between);
  memset(e->sums, 0, e->count * sizeof *e->sums); /* by rank: the nodes that were moved already, plus one */
  for (uint32_t i = 0; i < at; i++) e->sums[e->rank[e->first[i]]] = e->first[i] + 1;
  for (uint32_t rank = 0; rank < e->count; rank++)
    if (e->sums[rank] != 0) e->between[sorted++] = e->sums[rank] - 1;
  for (uint32_t i = at; i > at - steps; i--) {
    *out_moved = e->between[i];
    *out_passed = e->between[i - 1];
    e->between[i - 1] = *out_moved;
    e->between[i] = *out_passed;
  }
}

/* Running ---------------------------------------------------------------------------------------------------------- */

/* All nodes except event records, which cannot be undone. */
static void run_order(explorer *e, const uint32_t *order, bool traced) {
  for (uint32_t i = 0; i < e->count; i++) {
    const cpu_node *node = &e->executable->nodes[order[i]];
    if (node->function == cpu_run_record) continue;
    if (traced) rondo_trace_here(RONDO_TRACE_BEGIN, "node", e->executable->names[order[i]]);
    node->function(node->blocks, node->args);
    if (traced) rondo_trace_here(RONDO_TRACE_END, "node", e->executable->names[order[i]]);
  }
  atomic_fetch_add_explicit(&e->check->orders_run, 1, memory_order_relaxed);
}

static bool has_findings(const explorer *e) { return atomic_load(&e->check->findings) != e->found_before; }

static const check_entry *try_order(explorer *e, const uint32_t *order, size_t *out_offset) {
  check_snapshot_restore(&e->snapshot, false);
  run_order(e, order, false);
  return check_snapshot_compare(&e->snapshot, out_offset);
}

static const char *label_node(const explorer *e, uint32_t position, char buffer[RONDO_LABEL_BYTES]) {
  const check_work *work = check_work_of(&e->executable->nodes[position]);
  if (work != NULL) return check_label(buffer, work);
  const char *name = e->executable->names[position];
  (void)snprintf(buffer, RONDO_LABEL_BYTES, name[0] == '\0' ? "a node%s" : "node '%s'", name);
  return buffer;
}

static const rondo_node_where *where_of(const explorer *e, uint32_t position) {
  static const rondo_node_where nowhere = {.number = RONDO_NO_NODE};
  const check_work *work = check_work_of(&e->executable->nodes[position]);
  return work == NULL ? &nowhere : &work->where;
}

/* "allocation 'x' (4.0 KiB)", "host memory (4.0 KiB)" */
#define MEMORY_LABEL (RONDO_ALLOCATION_LABEL + 16)
static const char *memory_label(char buffer[MEMORY_LABEL], const check_entry *entry) {
  char label[RONDO_ALLOCATION_LABEL];
  if (entry->area == NULL)
    (void)snprintf(buffer, MEMORY_LABEL, "host memory (%s)", rondo_size_text(label, entry->bytes));
  else
    (void)snprintf(buffer, MEMORY_LABEL, "allocation %s", rondo_named_size(label, entry->area->name, entry->bytes));
  return buffer;
}

static void report_pair(const explorer *e, uint32_t earlier, uint32_t later, const check_entry *entry, size_t offset) {
  char a[RONDO_LABEL_BYTES], b[RONDO_LABEL_BYTES], edge[RONDO_EDGE_TEXT], memory[MEMORY_LABEL];
  const rondo_node_where *from = where_of(e, earlier), *to = where_of(e, later);
  rondo_saved_error before;
  rondo_error_save(&before);
  if (rondo_fail_node(RONDO_EXECUTION_FAILED, RONDO_REASON_RACE, to->number,
                      "the result depends on the order of %s and %s, which no edge orders: %s "
                      "differs from byte %zu on when they are exchanged (RONDO_CHECK_SEED=%" PRIu64 ", launch %" PRIu64
                      "). Add %s, or the reverse edge",
                      label_node(e, earlier, a), label_node(e, later, b), memory_label(memory, entry), offset,
                      e->check->seed, e->executable->runs_begun, rondo_node_edge_text(edge, from, to)) != RONDO_OK)
    check_fail(e->check, e->executable->queue, &before);
}

/* If a launch is run twice in one order and the results differ, orders cannot be compared: a kernel has state
 * elsewhere, or draws random numbers. */
static bool is_repeatable(explorer *e) {
  size_t offset = 0;
  const check_entry *entry = try_order(e, e->first, &offset);
  if (entry == NULL || has_findings(e)) return entry == NULL;
  char memory[MEMORY_LABEL];
  rondo_log(RONDO_LOG_WARNING, "check",
            "a graph of %" PRIu32
            " nodes gives another result when it runs again in the same order, in %s from byte %zu on: its orders "
            "cannot be compared",
            e->count, memory_label(memory, entry), offset);
  return false;
}

/* The first order's result differs from that of `order`. */
static void find_pair(explorer *e, const check_entry *entry, size_t offset) {
  uint32_t moved = 0, passed = 0, at, steps;
  if (!is_repeatable(e)) return;
  uint64_t same = 0, other = count_exchanges(e, UINT64_MAX, &at, &steps);
  while (other - same > 1) {
    const uint64_t middle = same + (other - same) / 2;
    size_t here = 0;
    make_between(e, middle, &moved, &passed);
    const check_entry *found = try_order(e, e->between, &here);
    if (has_findings(e)) return;
    if (found == NULL) {
      same = middle;
      continue;
    }
    other = middle;
    entry = found;
    offset = here;
  }
  assert(other == same + 1);
  make_between(e, other, &moved, &passed);
  report_pair(e, passed, moved, entry, offset);
}

static void try_orders(explorer *e) {
  for (uint32_t i = 1; i < e->check->orders && !has_findings(e); i++) {
    size_t offset = 0;
    make_order(e, i == 1);
    if (memcmp(e->order, e->first, e->count * sizeof *e->order) == 0) continue;
    const check_entry *entry = try_order(e, e->order, &offset);
    if (entry != NULL && !has_findings(e)) find_pair(e, entry, offset);
  }
}

static void record_events(const explorer *e) {
  for (uint32_t i = 0; i < e->count; i++) {
    const cpu_node *node = &e->executable->nodes[i];
    if (node->function == cpu_run_record) node->function(node->blocks, node->args);
  }
}

/* Events show others the progress of the launch, so they are recorded after the last order has run. */
static void explore(explorer *e) {
  e->found_before = atomic_load(&e->check->findings);
  run_order(e, e->first, rondo_trace_on());
  if (!has_findings(e) && check_snapshot_keep_result(&e->snapshot)) {
    try_orders(e);
    check_snapshot_restore(&e->snapshot, true);
  }
  record_events(e);
}

/* Choosing --------------------------------------------------------------------------------------------------------- */

static bool has_orders(const check_state *check, const cpu_executable *executable) {
  return check->orders > 1 && executable->graph.task_count > 1 && executable->times == NULL;
}

static bool make_explorer(explorer *e, check_state *check, cpu_executable *executable, uint32_t **out_memory) {
  const size_t count = executable->node_count;
  void *memory;
  if (rondo_allocate(&check->allocator, count, ARRAYS * sizeof(uint32_t), &memory) != RONDO_OK) return false;
  uint32_t *at = *out_memory = memory;
  *e = (explorer){.check = check, .executable = executable, .count = (uint32_t)count};
  uint32_t **const arrays[ARRAYS] = {&e->first, &e->order, &e->between, &e->rank,
                                     &e->ready, &e->taken, &e->pending, &e->sums};
  for (size_t i = 0; i < ARRAYS; i++) *arrays[i] = at + i * count;
  for (uint32_t i = 0; i < e->count; i++) e->first[i] = i;
  e->random = rondo_hash_u64(rondo_hash_u64(RONDO_HASH_START, check->seed), executable->runs_begun);
  return true;
}

static void say_not_explored(check_state *check) {
  if (atomic_exchange(&check->said_once, true)) return;
  rondo_log(RONDO_LOG_INFO, "check",
            "%s: graphs with host functions, with waits for events, with nodes of several devices, that write memory "
            "which is not the device's, or that may write more than an eighth of the machine's memory are run in one "
            "order alone",
            check->device->base.name);
}

/* False if the launch is to run as on other devices. */
static bool explore_launch(check_state *check, cpu_executable *executable, cpu_queue *queue) {
  explorer e;
  uint32_t *memory;
  if (!make_explorer(&e, check, executable, &memory)) return false;
  close_gate(check);
  const bool taken = check_snapshot_take(&e.snapshot, check, executable);
  if (taken) {
    executable->queue = queue;
    executable->runs_begun++;
    explore(&e);
  }
  check_snapshot_free(&e.snapshot);
  open_gate(check);
  rondo_release(&check->allocator, memory, executable->node_count, ARRAYS * sizeof(uint32_t));
  return taken;
}

bool check_explore(cpu_executable *executable, cpu_queue *queue) {
  check_state *check = executable->device->check;
  if (!has_orders(check, executable)) return false;
  if (executable->wait_count == 0 && executable->others.count == 0 && explore_launch(check, executable, queue))
    return true;
  say_not_explored(check);
  return false;
}

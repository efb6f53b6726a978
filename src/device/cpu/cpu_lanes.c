/* SPDX-License-Identifier: MIT
 * The plan by lanes: a schedule fixed ahead. Each lane is a list of segments that one participant runs in turn; a
 * segment that depends on another lane's waits until that lane has come so far, which is one number a lane. No counter
 * is counted down and nothing is stolen, so an edge inside a lane costs nothing and one between lanes a load.
 *
 * Building is list scheduling: the segment with the longest way to the end goes first, to the lane on which it can
 * begin soonest, where what comes from another lane comes later by a hand-over (HEFT: Topcuoglu, Hariri, Wu 2002, with
 * all nodes as long). So the lanes agree with one topological order, and whoever runs one of them up to a step that
 * must wait can leave it and take the other: any number of participants, also a single one, gets to the end.
 *
 * The starter invites others by an entry a further lane; each counts as a sink until its taker has left, so that nobody
 * is at the executable when the run is over.
 */
#include <stdlib.h>

#include "device/cpu/cpu.h"
#include "device/cpu/cpu_contention.h"
#include "device/cpu/cpu_deque.h"
#include "device/cpu/cpu_lanes.h"
#include "device/cpu/cpu_pool.h"
#include "device/cpu/cpu_run.h"

enum {
  NODE_TIME = 8,
  HAND_OVER_TIME = 2,
  WAIT_TURNS = 64, /* for another lane, before looking round */
  NAP_NS = 50 * 1000
};
enum { LANE_FREE = 0, LANE_TAKEN = 1, LANE_ENDED = 2 };

/* Building -------------------------------------------------------------------------------------------------------- */

typedef struct placed {
  uint64_t rank;   /* time from its beginning to the end of the graph */
  uint64_t finish; /* when it is done */
  uint32_t segment;
  uint32_t lane, index; /* of its step in the lane */
} placed;

typedef struct scheduler {
  const cpu_executable *executable;
  const rondo_allocator *allocator;
  placed *places;   /* by segment */
  uint32_t *order;  /* segments, as they are placed */
  uint32_t *starts; /* predecessors of segment i are predecessors[starts[i] .. starts[i + 1]) */
  uint32_t *predecessors;
  uint32_t lane_count;
  uint64_t free_at[CPU_MOST_LANES];
  uint32_t lengths[CPU_MOST_LANES];
} scheduler;

static rondo_status allocate_scheduler(scheduler *s) {
  const size_t count = s->executable->segment_count;
  void *memory;
  RONDO_TRY(rondo_allocate(s->allocator, count, sizeof *s->places, &memory));
  s->places = memory;
  RONDO_TRY(rondo_allocate(s->allocator, count, sizeof *s->order, &memory));
  s->order = memory;
  RONDO_TRY(rondo_allocate(s->allocator, count + 2, sizeof *s->starts, &memory));
  s->starts = memory;
  RONDO_TRY(rondo_allocate(s->allocator, s->executable->successor_count, sizeof *s->predecessors, &memory));
  s->predecessors = memory;
  return RONDO_OK;
}

static void free_scheduler(scheduler *s) {
  const size_t count = s->executable->segment_count;
  rondo_release(s->allocator, s->places, count, sizeof *s->places);
  rondo_release(s->allocator, s->order, count, sizeof *s->order);
  rondo_release(s->allocator, s->starts, count + 2, sizeof *s->starts);
  rondo_release(s->allocator, s->predecessors, s->executable->successor_count, sizeof *s->predecessors);
}

/* Edges the other way round, by counting. */
static void turn_edges(scheduler *s) {
  const cpu_executable *executable = s->executable;
  const uint32_t count = executable->segment_count;
  uint32_t *next = s->starts + 1; /* while filling: where the next predecessor of a segment goes */
  for (uint32_t i = 0; i < count; i++) next[i + 1] = executable->segments[i].predecessors;
  for (uint32_t i = 0; i < count; i++) next[i + 1] += next[i];
  for (uint32_t i = 0; i < count; i++) {
    const cpu_segment *segment = &executable->segments[i];
    for (uint32_t k = segment->successors_first; k < segment->successors_end; k++)
      s->predecessors[next[executable->successors[k]]++] = i;
  }
}

static uint64_t time_of(const cpu_segment *segment) { return (uint64_t)NODE_TIME * segment->count; }

/* The longest way to the end. Segments are numbered in topological order. */
static void rank_segments(scheduler *s) {
  const cpu_executable *executable = s->executable;
  for (uint32_t i = executable->segment_count; i-- > 0;) {
    const cpu_segment *segment = &executable->segments[i];
    uint64_t behind = 0;
    for (uint32_t k = segment->successors_first; k < segment->successors_end; k++) {
      const uint64_t rank = s->places[executable->successors[k]].rank + HAND_OVER_TIME;
      if (rank > behind) behind = rank;
    }
    s->places[i] = (placed){.rank = behind + time_of(segment), .segment = i};
  }
}

/* How many segments are as many edges from a beginning, at most. */
static uint32_t measure_width(scheduler *s) {
  const uint32_t count = s->executable->segment_count;
  uint32_t *level = s->order, width = 0; /* the order is not there yet */
  for (uint32_t i = 0; i < count; i++) {
    level[i] = 0;
    for (uint32_t k = s->starts[i]; k < s->starts[i + 1]; k++)
      if (level[s->predecessors[k]] >= level[i]) level[i] = level[s->predecessors[k]] + 1;
    const uint32_t here = ++s->places[level[i]].index; /* counts the level, until it is placed */
    if (here > width) width = here;
  }
  return width;
}

static int compare_ranks(const void *a, const void *b) {
  const placed *x = a, *y = b;
  if (x->rank != y->rank) return x->rank > y->rank ? -1 : 1;
  return (x->segment > y->segment) - (x->segment < y->segment);
}

/* The greatest rank first: a topological order, since each is less than its predecessors'. */
static rondo_status sort_by_rank(scheduler *s) {
  const uint32_t count = s->executable->segment_count;
  void *memory;
  RONDO_TRY(rondo_allocate(s->allocator, count, sizeof(placed), &memory));
  placed *sorted = memory;
  for (uint32_t i = 0; i < count; i++) sorted[i] = s->places[i];
  qsort(sorted, count, sizeof *sorted, compare_ranks);
  for (uint32_t i = 0; i < count; i++) s->order[i] = sorted[i].segment;
  rondo_release(s->allocator, memory, count, sizeof(placed));
  return RONDO_OK;
}

static uint64_t begin_on(const scheduler *s, uint32_t segment, uint32_t lane) {
  uint64_t begin = s->free_at[lane];
  for (uint32_t k = s->starts[segment]; k < s->starts[segment + 1]; k++) {
    const placed *before = &s->places[s->predecessors[k]];
    const uint64_t there = before->finish + (before->lane == lane ? 0 : HAND_OVER_TIME);
    if (there > begin) begin = there;
  }
  return begin;
}

static void place(scheduler *s, uint32_t segment) {
  uint64_t best = UINT64_MAX;
  placed *at = &s->places[segment];
  for (uint32_t lane = 0; lane < s->lane_count; lane++) {
    const uint64_t begin = begin_on(s, segment, lane);
    if (begin >= best) continue;
    best = begin;
    at->lane = lane;
  }
  at->finish = s->free_at[at->lane] = best + time_of(&s->executable->segments[segment]);
  at->index = s->lengths[at->lane]++;
}

static rondo_status allocate_lanes(cpu_executable *executable, const scheduler *s) {
  void *memory;
  RONDO_TRY(rondo_allocate_aligned(s->allocator, s->lane_count, sizeof(cpu_lane), RONDO_CACHE_LINE, &memory));
  executable->lanes = memory;
  executable->lane_count = s->lane_count;
  RONDO_TRY(rondo_allocate(s->allocator, executable->segment_count, sizeof(cpu_step), &memory));
  executable->steps = memory;
  RONDO_TRY(rondo_allocate(s->allocator, executable->successor_count, sizeof(cpu_lane_wait), &memory));
  executable->lane_waits = memory;
  uint32_t first = 0;
  for (uint32_t lane = 0; lane < s->lane_count; lane++) {
    executable->lanes[lane].first = first;
    executable->lanes[lane].count = s->lengths[lane];
    first += s->lengths[lane];
  }
  return RONDO_OK;
}

/* What the step waits for: the farthest of each other lane, unless its own lane has waited for that before. */
static void add_waits(cpu_executable *executable, const scheduler *s, uint32_t segment,
                      uint32_t waited[CPU_MOST_LANES][CPU_MOST_LANES], uint32_t *next_wait) {
  const placed *at = &s->places[segment];
  uint32_t needed[CPU_MOST_LANES] = {0};
  cpu_step *step = &executable->steps[executable->lanes[at->lane].first + at->index];
  *step = (cpu_step){.segment = segment, .waits_first = *next_wait, .awaited = step->awaited};
  for (uint32_t k = s->starts[segment]; k < s->starts[segment + 1]; k++) {
    const placed *before = &s->places[s->predecessors[k]];
    if (before->lane != at->lane && before->index >= needed[before->lane]) needed[before->lane] = before->index + 1;
  }
  for (uint32_t lane = 0; lane < s->lane_count; lane++) {
    if (needed[lane] <= waited[at->lane][lane]) continue;
    waited[at->lane][lane] = needed[lane];
    executable->lane_waits[(*next_wait)++] = (cpu_lane_wait){.lane = lane, .done = needed[lane]};
    executable->steps[executable->lanes[lane].first + needed[lane] - 1].awaited = true;
  }
  step->waits_end = *next_wait;
}

static rondo_status build(cpu_executable *executable, scheduler *s, uint32_t most_lanes) {
  RONDO_TRY(allocate_scheduler(s));
  turn_edges(s);
  rank_segments(s);
  const uint32_t width = measure_width(s);
  s->lane_count = width < most_lanes ? width : most_lanes;
  if (s->lane_count < 2) return RONDO_OK;
  RONDO_TRY(sort_by_rank(s));
  for (uint32_t i = 0; i < executable->segment_count; i++) place(s, s->order[i]);
  RONDO_TRY(allocate_lanes(executable, s));
  uint32_t waited[CPU_MOST_LANES][CPU_MOST_LANES] = {{0}}, next_wait = 0;
  for (uint32_t i = 0; i < executable->segment_count; i++) add_waits(executable, s, s->order[i], waited, &next_wait);
  return RONDO_OK;
}

rondo_status cpu_lanes_build(cpu_executable *executable) {
  const uint32_t participants = executable->device->pool.worker_count + 1;
  if (executable->wait_count > 0 || executable->segment_count < 2) return RONDO_OK;
  scheduler s = {.executable = executable, .allocator = &executable->device->base.allocator};
  const rondo_status status =
      build(executable, &s, participants < CPU_MOST_LANES ? participants : (uint32_t)CPU_MOST_LANES);
  free_scheduler(&s);
  return status;
}

void cpu_lanes_free(cpu_executable *executable) {
  const rondo_allocator *allocator = &executable->device->base.allocator;
  rondo_release(allocator, executable->lanes, executable->lane_count, sizeof(cpu_lane));
  rondo_release(allocator, executable->steps, executable->segment_count, sizeof(cpu_step));
  rondo_release(allocator, executable->lane_waits, executable->successor_count, sizeof(cpu_lane_wait));
}

/* Running --------------------------------------------------------------------------------------------------------- */

/* Whether the other lane has come so far. Waits a little for one that is being run. */
static bool pass(const cpu_executable *executable, const cpu_lane_wait *wait, uint32_t *seen) {
  const cpu_lane *other = &executable->lanes[wait->lane];
  for (uint32_t turn = 0; *seen < wait->done; turn++) {
    *seen = atomic_load_explicit(&other->done, memory_order_acquire);
    if (*seen >= wait->done) break;
    if (turn == WAIT_TURNS || atomic_load_explicit(&other->owner, memory_order_relaxed) != LANE_TAKEN) return false;
    rondo_relax();
  }
  return true;
}

static bool pass_all(const cpu_executable *executable, const cpu_step *step, uint32_t seen[CPU_MOST_LANES]) {
  for (uint32_t k = step->waits_first; k < step->waits_end; k++) {
    const cpu_lane_wait *wait = &executable->lane_waits[k];
    if (!pass(executable, wait, &seen[wait->lane])) return false;
  }
  return true;
}

/* Runs the lane as far as it goes now. */
static void run_steps(const cpu_executable *executable, cpu_participant *self, cpu_lane *lane) {
  uint32_t seen[CPU_MOST_LANES] = {0};
  while (lane->next < lane->count) {
    const cpu_step *step = &executable->steps[lane->first + lane->next];
    if (!pass_all(executable, step, seen)) return;
    cpu_run_segment(executable, self, &executable->segments[step->segment]);
    lane->next++;
    if (step->awaited) atomic_store_explicit(&lane->done, lane->next, memory_order_release);
  }
}

/* Runs a lane that nobody runs; false when there was nothing to do in it. */
static bool visit(cpu_executable *executable, cpu_participant *self, uint32_t number) {
  cpu_lane *lane = &executable->lanes[number];
  uint32_t expected = LANE_FREE;
  if (atomic_load_explicit(&lane->owner, memory_order_relaxed) != LANE_FREE) return false;
  if (!atomic_compare_exchange_strong(&lane->owner, &expected, LANE_TAKEN)) return false;
  const uint32_t before = lane->next;
  run_steps(executable, self, lane);
  const uint32_t now = lane->next;
  const bool ended = now == lane->count;
  atomic_store_explicit(&lane->owner, ended ? LANE_ENDED : LANE_FREE, memory_order_release);
  if (ended && atomic_fetch_sub(&executable->lanes_left, 1) == 1) cpu_run_wake_starters(&executable->device->pool);
  return now != before || ended;
}

static bool visit_all(cpu_executable *executable, cpu_participant *self, uint32_t first) {
  bool any = false;
  for (uint32_t i = 0; i < executable->lane_count; i++)
    any |= visit(executable, self, (first + i) % executable->lane_count);
  return any;
}

static bool is_needed_elsewhere(const cpu_pool *pool) {
  return atomic_load_explicit(&pool->ready_summary, memory_order_relaxed) != 0 || cpu_contention_is_full(pool);
}

/* Works along, from lane `first` on, until all lanes have ended; a guest that finds nothing to do leaves when others
 * need it. */
static void work_along(cpu_executable *executable, cpu_participant *self, uint32_t first, bool guest) {
  cpu_pool *pool = &executable->device->pool;
  cpu_backoff backoff = {0};
  while (atomic_load_explicit(&executable->lanes_left, memory_order_acquire) != 0) {
    if (visit_all(executable, self, first) || cpu_pool_help_grid(pool, self, executable->queue)) {
      backoff = (cpu_backoff){0};
      continue;
    }
    if (guest && is_needed_elsewhere(pool)) return;
    if (!cpu_backoff_step(&backoff, pool)) continue;
    if (self->index >= pool->worker_count) cpu_pool_note_host(pool);
    atomic_fetch_add(&pool->starter_sleepers, 1);
    const uint32_t epoch = atomic_load(&pool->starter_epoch);
    if (atomic_load(&executable->lanes_left) != 0) rondo_futex_wait_for(&pool->starter_epoch, epoch, NAP_NS);
    atomic_fetch_sub(&pool->starter_sleepers, 1);
  }
}

static void reset(cpu_executable *executable) {
  for (uint32_t i = 0; i < executable->lane_count; i++) {
    cpu_lane *lane = &executable->lanes[i];
    lane->next = 0;
    atomic_store_explicit(&lane->done, 0, memory_order_relaxed);
    atomic_store_explicit(&lane->owner, LANE_FREE, memory_order_relaxed);
  }
  atomic_store_explicit(&executable->lanes_left, executable->lane_count, memory_order_relaxed);
  atomic_store_explicit(&executable->sinks_left, executable->lane_count - 1, memory_order_relaxed);
}

void cpu_lanes_run(cpu_executable *executable, cpu_participant *self) {
  reset(executable);
  for (uint32_t lane = executable->lane_count; lane-- > 1;) cpu_run_invite(executable, self, lane);
  work_along(executable, self, 0, false);
  while (cpu_deque_pop(&self->deque) != CPU_DEQUE_EMPTY) atomic_fetch_sub(&executable->sinks_left, 1);
}

void cpu_lanes_join(cpu_executable *executable, cpu_participant *self, uint32_t lane) {
  work_along(executable, self, lane, true);
}

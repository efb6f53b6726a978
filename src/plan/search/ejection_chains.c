/* SPDX-License-Identifier: MIT
 * Boxes that are out wait in a ring and go in first come, first served. The cost of an offset is a sum that changes
 * where a box in the way begins or ends to overlap. So one walk over these changes, sorted by offset, finds the lowest
 * of the cheapest offsets. Offsets are in units of the largest power of two that divides all sizes: they are sums of
 * sizes, and small numbers are sorted fast.
 */
#include "plan/search/ejection_chains.h"

#include "base/clock.h"
#include "base/error.h"
#include "plan/interval/placement_rules.h"

/* A cost is at most 2^20 times 2^10: with one more bit it fits in 32. */
#define LARGEST_COST 20
#define MOST_TIMES 1023U
#define DEAR_TIMES 255U

#define MOVES_PER_CLOCK_READ 16

/* A repair stops if it makes no progress for 1 / STALL_SHARE of its scans. */
#define STALL_SHARE 4

/* A box in the plan; offsets and bytes are in units. */
typedef struct seat {
  uint64_t lower, bytes;
  uint32_t cost;  /* of ejecting it; 0: it is out */
  uint32_t times; /* 1 + how many times it was ejected */
} seat;

typedef struct worker {
  const rondo_repair *of;
  uint64_t limit;
  uint32_t unit; /* logarithm */
  seat *seats;
  uint32_t *ring; /* boxes that are out */
  uint32_t first, out_count;
  uint32_t scale; /* logarithm, as by rondo_logarithm */
  uint64_t scans;
  uint64_t needed;           /* a lower bound of the scans left: the overlaps of the boxes that are out */
  uint64_t least_needed;     /* the smallest value of `needed` so far */
  uint64_t progress_scans;   /* scans when that value was reached */
  rondo_sort_entry *changes; /* (offset, twice the cost, and one more where the cost falls); 4 for each box */
  size_t change_count;
} worker;

/* Costs ------------------------------------------------------------------------------------------------------------ */

/* The logarithm of the square root of a box's area. */
static uint32_t hardness(const rondo_boxes *boxes, uint32_t box) {
  return (rondo_logarithm(boxes->boxes[box].bytes) + rondo_logarithm(boxes->steps[box])) / 2;
}

/* 2 to the power of a logarithm as by rondo_logarithm, to which 32 was added; at least 1. */
static uint32_t power_of(uint32_t logarithm) {
  const uint64_t mantissa = (UINT64_C(1) << 32) + ((uint64_t)(logarithm & 0xffff) << 16);
  const uint32_t power = (uint32_t)(mantissa >> (64 - (logarithm >> 16)));
  return power == 0 ? 1 : power;
}

static uint32_t cost_of(const worker *w, uint32_t box) {
  return power_of(hardness(w->of->boxes, box) + w->scale) * w->seats[box].times;
}

/* The hardest box costs 2^LARGEST_COST. */
static void choose_scale(worker *w) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < w->of->boxes->count; i++) {
    const uint32_t own = hardness(w->of->boxes, i);
    if (own > most) most = own;
  }
  w->scale = ((32U + LARGEST_COST) << 16) - most;
}

/* Moves ------------------------------------------------------------------------------------------------------------ */

static void eject(worker *w, uint32_t box) {
  w->seats[box].cost = 0;
  w->needed += w->of->neighbours->counts[box];
  w->ring[(w->first + w->out_count++) % w->of->boxes->count] = box;
}

static uint32_t take_first(worker *w) {
  const uint32_t box = w->ring[w->first];
  w->first = (w->first + 1) % w->of->boxes->count;
  w->out_count--;
  w->needed -= w->of->neighbours->counts[box];
  return box;
}

/* Lists the offsets where the cost changes, up to the highest offset for a box of `bytes`. Returns the cost of offset
 * 0. */
static uint64_t list_changes(worker *w, uint64_t bytes) {
  const uint64_t highest = w->limit - bytes;
  rondo_sort_entry *changes = w->changes;
  size_t count = 0;
  uint64_t cost = 0;
  for (uint32_t i = 0; i < w->of->neighbours->found_count; i++) {
    const seat *met = &w->seats[w->of->neighbours->found[i]];
    if (met->cost == 0) continue;
    if (met->lower < bytes) {
      cost += met->cost;
    } else if (met->lower - bytes < highest) {
      changes[count++] = (rondo_sort_entry){met->lower - bytes + 1, 2 * met->cost};
    }
    if (met->lower + met->bytes <= highest)
      changes[count++] = (rondo_sort_entry){met->lower + met->bytes, 2 * met->cost + 1};
  }
  w->change_count = count;
  return cost;
}

/* The lowest of the cheapest offsets, given the cost of offset 0. */
static uint64_t cheapest(worker *w, uint64_t cost) {
  uint64_t best = 0;
  uint64_t least = cost;
  if (cost > 0) rondo_sort_entries(w->changes, w->changes + w->change_count, w->change_count);
  for (size_t i = 0; i < w->change_count && least > 0;) {
    const uint64_t at = w->changes[i].key;
    for (; i < w->change_count && w->changes[i].key == at; i++) {
      const uint64_t own = w->changes[i].value / 2;
      cost = w->changes[i].value % 2 != 0 ? cost - own : cost + own;
    }
    if (cost >= least) continue;
    least = cost;
    best = at;
  }
  return best;
}

static void insert(worker *w, uint32_t box, uint64_t lower) {
  seat *own = &w->seats[box];
  own->lower = lower;
  own->cost = cost_of(w, box);
  for (uint32_t i = 0; i < w->of->neighbours->found_count; i++) {
    const uint32_t other = w->of->neighbours->found[i];
    seat *met = &w->seats[other];
    if (met->cost == 0 || met->lower >= lower + own->bytes || lower >= met->lower + met->bytes) continue;
    if (met->times < MOST_TIMES) met->times++;
    eject(w, other);
  }
}

static void move(worker *w) {
  const uint32_t box = take_first(w);
  rondo_neighbours_find(w->of->neighbours, box);
  w->scans += w->of->neighbours->found_count;
  const uint64_t cost = list_changes(w, w->seats[box].bytes);
  insert(w, box, cheapest(w, cost));
  if (w->needed >= w->least_needed) return;
  w->least_needed = w->needed;
  w->progress_scans = w->scans;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static void choose_unit(worker *w) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < w->of->boxes->count; i++) bits |= w->of->boxes->boxes[i].bytes;
  w->unit = (uint32_t)__builtin_ctzll(bits);
  w->limit = w->of->limit >> w->unit;
}

static void init_seats(worker *w, const uint64_t *offsets) {
  const rondo_boxes *boxes = w->of->boxes;
  for (uint32_t i = 0; i < boxes->count; i++) {
    seat *own = &w->seats[i];
    own->lower = offsets[i] >> w->unit;
    own->bytes = boxes->boxes[i].bytes >> w->unit;
    own->times = w->of->states[i] == RONDO_REPAIR_DEAR ? DEAR_TIMES : 1;
    own->cost = cost_of(w, i);
  }
  for (uint32_t i = 0; i < boxes->count; i++) {
    if (w->of->states[w->of->order[i]] == RONDO_REPAIR_OUT) eject(w, w->of->order[i]);
  }
}

static rondo_status make(rondo_scratch *scratch, worker *w) {
  const uint32_t count = w->of->boxes->count;
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *w->seats, &w->seats));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *w->ring, &w->ring));
  return rondo_scratch_take(scratch, count, 4 * sizeof *w->changes, &w->changes);
}

/* The repair also stops if the scans left do not suffice for the boxes that are out now. */
static bool is_over(const worker *w, uint64_t moves) {
  if (w->scans + w->needed > w->of->most_scans) return true;
  if (w->scans - w->progress_scans > w->of->most_scans / STALL_SHARE) return true;
  if (w->of->stop_scans != 0 && w->scans > w->of->stop_scans) return true;
  return moves % MOVES_PER_CLOCK_READ == 0 && rondo_clock_is_past(w->of->deadline_ns);
}

static void run(worker *w, uint64_t *inout_offsets) {
  choose_unit(w);
  choose_scale(w);
  init_seats(w, inout_offsets);
  w->least_needed = w->needed;
  for (uint64_t moves = 0; w->out_count > 0 && !is_over(w, moves); moves++) move(w);
  for (uint32_t i = 0; i < w->of->boxes->count; i++) inout_offsets[i] = w->seats[i].lower << w->unit;
}

rondo_status rondo_repair_run(const rondo_allocator *allocator, const rondo_repair *repair, uint64_t *inout_offsets,
                              bool *out_done, uint64_t *out_scans) {
  worker w = {.of = repair};
  rondo_scratch scratch = {.allocator = allocator};
  const rondo_status status = make(&scratch, &w);
  if (status == RONDO_OK) run(&w, inout_offsets);
  *out_done = status == RONDO_OK && w.out_count == 0;
  *out_scans = w.scans;
  rondo_scratch_free(&scratch);
  return status;
}

/* SPDX-License-Identifier: MIT
 * Repair by ejection chains. What is out goes in where it overlaps the least of what is in, counted in bytes times how
 * often an item was put in already, and what it overlaps goes out in its place. The counts make items that fight for
 * the same bytes look elsewhere after a while. The aim is lowered when nothing is out any more, and nearer to the best
 * peak when that does not come about.
 */
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "plan/order_search.h"
#include "plan/sort.h"

#define MOST_OBSTACLES 64
#define IMMOVABLE ((uint64_t)1 << 56)
#define COST_DIGITS 20 /* of bytes, so that a sum of costs fits in 64 bits */
#define MOST_TIMES 4096
#define STEPS_A_LOOK_AT_THE_CLOCK 16

/* What is in and in the way of the item in hand: an item, or with number UINT32_MAX an obstacle. */
typedef struct piece {
  size_t low, high;
  uint64_t cost;
  uint32_t item;
} piece;

typedef struct repair {
  rondo_order_search *search;
  const rondo_lives *lives;
  size_t target;  /* nothing that is in ends above */
  unsigned shift; /* from bytes to cost */
  bool *is_out;
  uint32_t *times; /* how often each item was put in */
  uint32_t *heap;  /* what is out, the dearest first */
  size_t out_count;
  uint32_t *places; /* of what conflicts with the item in hand */
  piece *pieces;
  size_t piece_count, piece_room;
  rondo_sort_entry *lows, *highs, *scratch; /* of the pieces, ascending */
  uint64_t *low_costs, *high_costs;         /* of the first k by low or by high */
} repair;

/* What is out ------------------------------------------------------------------------------------------------------ */

static uint64_t cost_of(const repair *r, uint32_t item) {
  return ((uint64_t)(r->lives->problem->items[item].bytes >> r->shift) + 1) * r->times[item];
}

static bool is_dearer(const repair *r, uint32_t a, uint32_t b) {
  const uint64_t x = cost_of(r, a);
  const uint64_t y = cost_of(r, b);
  return x != y ? x > y : a < b;
}

static void take_out(repair *r, uint32_t item) {
  size_t at = r->out_count++;
  r->is_out[item] = true;
  for (; at > 0 && is_dearer(r, item, r->heap[(at - 1) / 2]); at = (at - 1) / 2) r->heap[at] = r->heap[(at - 1) / 2];
  r->heap[at] = item;
}

static uint32_t choose_out(repair *r) {
  const uint32_t first = r->heap[0];
  const uint32_t last = r->heap[--r->out_count];
  size_t at = 0;
  for (size_t child = 1; child < r->out_count; child = 2 * at + 1) {
    if (child + 1 < r->out_count && is_dearer(r, r->heap[child + 1], r->heap[child])) child++;
    if (!is_dearer(r, r->heap[child], last)) break;
    r->heap[at] = r->heap[child];
    at = child;
  }
  r->heap[at] = last;
  return first;
}

/* Where to put an item --------------------------------------------------------------------------------------------- */

static void add_piece(repair *r, size_t low, size_t high, uint64_t cost, uint32_t item) {
  const uint32_t number = (uint32_t)r->piece_count;
  if (low >= r->target || low == high) return;
  r->pieces[r->piece_count++] = (piece){low, high, cost, item};
  r->lows[number] = (rondo_sort_entry){low, number};
  r->highs[number] = (rondo_sort_entry){high, number};
}

static void list_pieces(repair *r, uint32_t item) {
  const rondo_lives *lives = r->lives;
  const rondo_plan_problem *problem = lives->problem;
  const rondo_conflict conflict = rondo_conflict_of(lives, &lives->lives[item]);
  const uint32_t count = rondo_conflict_list(lives, &conflict, r->places);
  r->piece_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t other = lives->items[r->places[i]];
    const size_t low = r->search->trial[other];
    if (!r->is_out[other]) add_piece(r, low, low + problem->items[other].bytes, cost_of(r, other), other);
  }
  for (size_t i = 0; i < problem->obstacle_count; i++) {
    const rondo_plan_obstacle *obstacle = &problem->obstacles[i];
    if (!rondo_conflict_one(lives, &conflict, &lives->obstacles[i])) continue;
    add_piece(r, obstacle->offset, obstacle->offset + obstacle->bytes, IMMOVABLE, UINT32_MAX);
  }
  rondo_sort_entries(r->lows, r->scratch, r->piece_count);
  rondo_sort_entries(r->highs, r->scratch, r->piece_count);
  for (size_t i = 0; i < r->piece_count; i++) {
    r->low_costs[i + 1] = r->low_costs[i] + r->pieces[r->lows[i].value].cost;
    r->high_costs[i + 1] = r->high_costs[i] + r->pieces[r->highs[i].value].cost;
  }
}

/* Candidates are looked at in ascending order, so the pieces below them are counted on. */
typedef struct sweep {
  size_t lows, highs; /* pieces that begin below the item's end, and that end up to its offset */
  size_t offset;      /* the best so far */
  uint64_t cost;
} sweep;

static void consider(const repair *r, uint32_t item, size_t offset, sweep *s) {
  const size_t bytes = r->lives->problem->items[item].bytes;
  if (offset > r->target || bytes > r->target - offset) return;
  while (s->lows < r->piece_count && r->lows[s->lows].key < offset + bytes) s->lows++;
  while (s->highs < r->piece_count && r->highs[s->highs].key <= offset) s->highs++;
  const uint64_t cost = r->low_costs[s->lows] - r->high_costs[s->highs];
  if (cost > s->cost || (cost == s->cost && offset >= s->offset)) return;
  s->cost = cost;
  s->offset = offset;
}

/* The offset that costs least: at the bottom, upon a piece, or right below one. False when there is none. */
static bool find_offset(const repair *r, uint32_t item, size_t *out) {
  const rondo_plan_item *thing = &r->lives->problem->items[item];
  const size_t alignment = thing->alignment == 0 ? 1 : thing->alignment;
  sweep s = {.offset = SIZE_MAX, .cost = IMMOVABLE - 1};
  consider(r, item, 0, &s);
  for (size_t i = 0; i < r->piece_count; i++) {
    size_t offset = 0;
    if (rondo_checked_align(r->highs[i].key, alignment, &offset)) consider(r, item, offset, &s);
  }
  s.lows = s.highs = 0;
  for (size_t i = 0; i < r->piece_count; i++) {
    if (r->lows[i].key >= thing->bytes) consider(r, item, (r->lows[i].key - thing->bytes) / alignment * alignment, &s);
  }
  *out = s.offset;
  return s.offset != SIZE_MAX;
}

static bool put_in(repair *r, uint32_t item) {
  size_t offset = 0;
  list_pieces(r, item);
  if (!find_offset(r, item, &offset)) return false;
  const size_t end = offset + r->lives->problem->items[item].bytes;
  for (size_t i = 0; i < r->piece_count; i++) {
    const piece *other = &r->pieces[i];
    if (other->low < end && other->high > offset) take_out(r, other->item);
  }
  r->search->trial[item] = offset;
  r->is_out[item] = false;
  if (r->times[item] < MOST_TIMES) r->times[item]++;
  return true;
}

/* Attempts --------------------------------------------------------------------------------------------------------- */

/* From the best plan, what ends above the target is out. Returns how many that are. */
static size_t begin(repair *r, uint64_t seed) {
  const rondo_plan_item *items = r->lives->problem->items;
  memcpy(r->search->trial, r->search->offsets, r->lives->problem->count * sizeof *r->search->trial);
  r->out_count = 0;
  for (uint32_t i = 0; i < r->lives->count; i++) {
    const uint32_t item = r->lives->items[i];
    r->is_out[item] = false;
    r->times[item] = 4 + (uint32_t)(rondo_hash_u64(seed, item) % 4);
  }
  for (uint32_t i = 0; i < r->lives->count; i++) {
    const uint32_t item = r->lives->items[i];
    if (r->search->trial[item] + items[item].bytes > r->target) take_out(r, item);
  }
  return r->out_count;
}

/* Works towards the target for some steps. True when the plan got better. */
static bool attempt(repair *r, uint64_t end) {
  rondo_order_search *search = r->search;
  const uint64_t few = 128 + 8 * begin(r, rondo_hash_u64(search->options->seed, search->steps));
  const uint64_t last = end - search->steps < few ? end : search->steps + few;
  while (r->out_count > 0 && search->steps < last) {
    search->steps++;
    if (search->steps % STEPS_A_LOOK_AT_THE_CLOCK == 0 && !rondo_order_search_may_go_on(search)) return false;
    if (!put_in(r, choose_out(r))) return false;
  }
  if (r->out_count > 0) return false;
  rondo_order_search_offer(search, rondo_order_search_peak(search, search->trial), "order: repair");
  return true;
}

static void repair_plan(repair *r, uint64_t end) {
  rondo_order_search *search = r->search;
  while (search->steps < end && !rondo_order_search_is_done(search) && rondo_order_search_may_go_on(search)) {
    const size_t gap = search->peak - search->bound->bytes;
    const size_t less = gap >> search->caution;
    r->target = search->peak - (less > 0 ? less : 1);
    for (r->shift = 0; r->target >> r->shift >> COST_DIGITS > 0;) r->shift++;
    if (attempt(r, end)) {
      search->caution -= search->caution > 1;
    } else {
      search->caution = less > 1 ? search->caution + 1 : 1;
      search->steps++; /* so that what cannot be done ends */
    }
  }
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status allocate(const rondo_allocator *allocator, repair *r) {
  const size_t count = r->lives->problem->count;
  const size_t room = r->piece_room;
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *r->is_out, &r->is_out));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *r->times, &r->times));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *r->heap, &r->heap));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *r->places, &r->places));
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *r->pieces, &r->pieces));
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *r->lows, &r->lows));
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *r->highs, &r->highs));
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *r->scratch, &r->scratch));
  RONDO_TRY(rondo_allocate_items(allocator, room + 1, sizeof *r->low_costs, &r->low_costs));
  return rondo_allocate_items(allocator, room + 1, sizeof *r->high_costs, &r->high_costs);
}

static void release(const rondo_allocator *allocator, repair *r) {
  const size_t count = r->lives->problem->count;
  const size_t room = r->piece_room;
  rondo_release(allocator, r->is_out, count, sizeof *r->is_out);
  rondo_release(allocator, r->times, count, sizeof *r->times);
  rondo_release(allocator, r->heap, count, sizeof *r->heap);
  rondo_release(allocator, r->places, count, sizeof *r->places);
  rondo_release(allocator, r->pieces, room, sizeof *r->pieces);
  rondo_release(allocator, r->lows, room, sizeof *r->lows);
  rondo_release(allocator, r->highs, room, sizeof *r->highs);
  rondo_release(allocator, r->scratch, room, sizeof *r->scratch);
  rondo_release(allocator, r->low_costs, room + 1, sizeof *r->low_costs);
  rondo_release(allocator, r->high_costs, room + 1, sizeof *r->high_costs);
}

rondo_status rondo_order_repair(rondo_order_search *search, uint64_t steps) {
  repair r = {.search = search, .lives = search->lives};
  if (r.lives->problem->obstacle_count > MOST_OBSTACLES) return RONDO_OK;
  r.piece_room = r.lives->count + r.lives->problem->obstacle_count;
  uint64_t end = search->steps + steps;
  const uint64_t budget = search->options->budget_steps;
  if (budget > 0 && end > budget) end = budget;
  const rondo_status status = allocate(search->allocator, &r);
  if (status == RONDO_OK) repair_plan(&r, end);
  release(search->allocator, &r);
  return status;
}

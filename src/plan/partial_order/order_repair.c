/* SPDX-License-Identifier: MIT
 * Evicting an item costs the square root of its bytes times the number of times that it was placed by evicting others.
 * The counts make items that compete for the same bytes go elsewhere after a while. They stay from one target to the
 * next: what is hard to place remains known (as in "guided local search", Voudouris and Tsang 1999, and the ejection
 * chains of Glover 1996). The unplaced item with the highest cost is placed first.
 *
 * Placed pieces that conflict with an item are sorted into bins of addresses. An offset evicts the pieces that begin
 * below the item's end, without those that end at or below the offset. Sums over bins give a lower bound for all
 * offsets of a bin, so few need a closer look.
 */
#include "plan/partial_order/order_repair.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

#define UNPLACED UINT32_MAX
#define NONE UINT32_MAX
#define IMMOVABLE (1 << 28) /* cost of evicting an obstacle */
#define MAX_COST (1 << 20)
#define MAX_UNITS ((size_t)1 << 31)
#define WEIGHT_BITS 8
#define GAIN 4  /* weights by which the cost grows, each time an item evicts others */
#define NOISE 3 /* random costs have up to this many weights */
#define MIN_BIN_BITS 5
#define MAX_CANDIDATES 32 /* tried above, and below, pieces of a bin */
#define MAX_BIN_BITS 11
#define MAX_BINS (((size_t)1 << MAX_BIN_BITS) + 1)

/* Making ----------------------------------------------------------------------------------------------------------- */

static const rondo_plan_item *item_of(const rondo_order_repair *r, uint32_t entry) {
  return &r->index->lifetimes->problem->items[r->index->items[entry]];
}

static uint32_t units_of(const rondo_order_repair *r, size_t bytes) {
  return (uint32_t)(bytes / r->unit + (bytes % r->unit > 0));
}

/* The smallest alignment, or more if the sum of all items would not fit. */
static size_t choose_unit(const rondo_order_index *index) {
  const rondo_plan_item *items = index->lifetimes->problem->items;
  size_t unit = index->grain;
  size_t sum = 0;
  for (uint32_t i = 0; i < index->count; i++) sum += items[index->items[i]].bytes; /* fits, as was checked */
  while (sum / unit + index->count >= MAX_UNITS) unit *= 2;
  return unit;
}

static uint32_t root_of(uint32_t value) {
  uint32_t root = 0;
  for (uint32_t bit = UINT32_C(1) << 15; bit > 0; bit /= 2) {
    if ((uint64_t)(root + bit) * (root + bit) <= value) root += bit;
  }
  return root;
}

/* An item's weight is the square root of its bytes, scaled so that the largest item's has WEIGHT_BITS bits. */
static void weigh(rondo_order_repair *r) {
  uint32_t most = 1;
  for (uint32_t i = 0; i < r->index->count; i++) {
    r->bytes[i] = units_of(r, item_of(r, i)->bytes);
    if (r->bytes[i] > most) most = r->bytes[i];
  }
  for (uint32_t i = 0; i < r->index->count; i++) {
    const uint32_t root = root_of((uint32_t)(((uint64_t)r->bytes[i] << 2 * WEIGHT_BITS) / most));
    r->costs[i] = r->weight[i] = root > 0 ? (int32_t)root : 1;
  }
  for (uint32_t i = r->index->count; i < r->pieces; i++) r->costs[i] = IMMOVABLE;
}

static rondo_status allocate_pieces(rondo_scratch *scratch, rondo_order_repair *r) {
  RONDO_TRY(rondo_scratch_take(scratch, r->pieces, sizeof *r->lows, &r->lows));
  RONDO_TRY(rondo_scratch_take(scratch, r->pieces, sizeof *r->highs, &r->highs));
  RONDO_TRY(rondo_scratch_take(scratch, r->pieces, sizeof *r->costs, &r->costs));
  RONDO_TRY(rondo_scratch_take(scratch, r->pieces, sizeof *r->next_low, &r->next_low));
  return rondo_scratch_take(scratch, r->pieces, sizeof *r->next_high, &r->next_high);
}

static rondo_status allocate_bins(rondo_scratch *scratch, rondo_order_repair *r) {
  RONDO_TRY(rondo_scratch_take(scratch, MAX_BINS, sizeof *r->begun, &r->begun));
  RONDO_TRY(rondo_scratch_take(scratch, MAX_BINS, sizeof *r->ended, &r->ended));
  RONDO_TRY(rondo_scratch_take(scratch, MAX_BINS, sizeof *r->first_low, &r->first_low));
  return rondo_scratch_take(scratch, MAX_BINS, sizeof *r->first_high, &r->first_high);
}

rondo_status rondo_order_repair_make(rondo_scratch *scratch, const rondo_order_index *index, rondo_order_repair *out) {
  const uint32_t count = index->count;
  *out = (rondo_order_repair){.index = index, .unit = choose_unit(index)};
  out->pieces = count + (uint32_t)index->lifetimes->problem->obstacle_count;
  RONDO_TRY(allocate_pieces(scratch, out));
  RONDO_TRY(allocate_bins(scratch, out));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->bytes, &out->bytes));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->weight, &out->weight));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->heap, &out->heap));
  weigh(out);
  return rondo_index_conflicts_make(scratch, index, &out->conflicts);
}

/* Unplaced items --------------------------------------------------------------------------------------------------- */

static bool is_costlier(const rondo_order_repair *r, uint32_t a, uint32_t b) {
  return r->costs[a] != r->costs[b] ? r->costs[a] > r->costs[b] : a < b;
}

static void unplace(rondo_order_repair *r, uint32_t entry) {
  size_t at = r->unplaced_count++;
  r->lows[entry] = r->highs[entry] = UNPLACED;
  for (; at > 0 && is_costlier(r, entry, r->heap[(at - 1) / 2]); at = (at - 1) / 2) r->heap[at] = r->heap[(at - 1) / 2];
  r->heap[at] = entry;
}

static uint32_t take_unplaced(rondo_order_repair *r) {
  const uint32_t first = r->heap[0];
  const uint32_t last = r->heap[--r->unplaced_count];
  size_t at = 0;
  for (size_t child = 1; child < r->unplaced_count; child = 2 * at + 1) {
    if (child + 1 < r->unplaced_count && is_costlier(r, r->heap[child + 1], r->heap[child])) child++;
    if (!is_costlier(r, r->heap[child], last)) break;
    r->heap[at] = r->heap[child];
    at = child;
  }
  r->heap[at] = last;
  return first;
}

/* Conflicting pieces ----------------------------------------------------------------------------------------------- */

static void add_pieces(const rondo_order_repair *r, rondo_index_range range) {
  const unsigned shift = r->shift;
  for (uint32_t i = range.begin; i < range.end; i++) {
    const uint32_t low = r->lows[i] >> shift;
    const uint32_t high = r->highs[i] >> shift;
    if (r->lows[i] == UNPLACED) continue;
    r->begun[low] += r->costs[i];
    r->ended[high] += r->costs[i];
    r->next_low[i] = r->first_low[low];
    r->next_high[i] = r->first_high[high];
    r->first_low[low] = i;
    r->first_high[high] = i;
  }
}

static void add_obstacles(rondo_order_repair *r, uint32_t entry) {
  const rondo_lifetimes *lifetimes = r->index->lifetimes;
  if (r->pieces == r->index->count) return;
  r->visits += r->pieces - r->index->count;
  const rondo_conflict conflict = rondo_conflict_of(lifetimes, &r->index->by_entry[entry]);
  for (uint32_t i = r->index->count; i < r->pieces; i++) {
    const rondo_lifetime *life = &lifetimes->obstacles[i - r->index->count];
    if (rondo_conflict_one(lifetimes, &conflict, life)) add_pieces(r, (rondo_index_range){i, i + 1});
  }
}

/* Sets the number of bins: at least twice the number of pieces, up to a limit. */
static void clear_bins(rondo_order_repair *r) {
  uint32_t most = r->conflicts.other_count;
  unsigned bits = MIN_BIN_BITS;
  for (uint32_t i = 0; i < r->conflicts.range_count; i++)
    most += r->conflicts.ranges[i].end - r->conflicts.ranges[i].begin;
  r->visits += most + r->conflicts.range_count;
  while (bits < MAX_BIN_BITS && 2 * most >> bits > 0) bits++;
  for (r->shift = 0; r->target >> r->shift >> bits > 0;) r->shift++;
  r->bin_count = (r->target >> r->shift) + 1;
  memset(r->begun, 0, (r->bin_count + 1) * sizeof *r->begun);
  memset(r->ended, 0, (r->bin_count + 1) * sizeof *r->ended);
  memset(r->first_low, 0xFF, r->bin_count * sizeof *r->first_low);
  memset(r->first_high, 0xFF, r->bin_count * sizeof *r->first_high);
}

/* Sorts the placed pieces that conflict with an entry into bins, and sums up the costs of lower bins. */
static void list_pieces(rondo_order_repair *r, uint32_t entry) {
  rondo_order_index_find(r->index, entry, &r->conflicts);
  clear_bins(r);
  for (uint32_t i = 0; i < r->conflicts.range_count; i++) add_pieces(r, r->conflicts.ranges[i]);
  for (uint32_t i = 0; i < r->conflicts.other_count; i++) {
    add_pieces(r, (rondo_index_range){r->conflicts.others[i], r->conflicts.others[i] + 1});
  }
  add_obstacles(r, entry);
  int64_t begun = 0;
  int64_t ended = 0;
  for (uint32_t i = 0; i <= r->bin_count; i++) {
    const int64_t begins = r->begun[i];
    const int64_t ends = r->ended[i];
    r->begun[i] = begun;
    r->ended[i] = ended;
    begun += begins;
    ended += ends;
  }
}

/* Choosing an offset ----------------------------------------------------------------------------------------------- */

/* The best offset so far. */
typedef struct choice {
  uint32_t bytes;
  uint64_t alignment;
  uint64_t last; /* last offset considered: many pieces of a bin may begin or end together */
  uint32_t offset;
  int64_t cost;
  uint64_t visits;
} choice;

/* Considers an offset. Its cost is that of the pieces that begin below the item's end, less that of those that end at
 * or below the offset. */
static void consider(const rondo_order_repair *r, choice *c, uint64_t offset) {
  if (offset == c->last || offset + c->bytes > r->target) return;
  c->last = offset;
  const uint32_t end = (uint32_t)offset + c->bytes;
  int64_t cost = r->begun[end >> r->shift] - r->ended[offset >> r->shift];
  for (uint32_t i = r->first_low[end >> r->shift]; i != NONE; i = r->next_low[i], c->visits++) {
    if (r->lows[i] < end) cost += r->costs[i];
  }
  for (uint32_t i = r->first_high[offset >> r->shift]; i != NONE; i = r->next_high[i], c->visits++) {
    if (r->highs[i] <= offset) cost -= r->costs[i];
  }
  if (cost > c->cost || (cost == c->cost && offset >= c->offset)) return;
  c->cost = cost;
  c->offset = (uint32_t)offset;
}

/* Considers the offsets of a bin at which the item is right above or below a piece, up to MAX_CANDIDATES each. */
static void consider_bin(const rondo_order_repair *r, choice *c, uint32_t number) {
  uint32_t left = MAX_CANDIDATES;
  for (uint32_t i = r->first_high[number]; i != NONE && left > 0; i = r->next_high[i], left--) {
    consider(r, c, (r->highs[i] + c->alignment - 1) / c->alignment * c->alignment);
  }
  const uint32_t first = number + (c->bytes >> r->shift);
  left = MAX_CANDIDATES;
  for (uint32_t end = first; end <= first + 1 && end < r->bin_count; end++) {
    for (uint32_t i = r->first_low[end]; i != NONE && left > 0; i = r->next_low[i], left--) {
      if (r->lows[i] >= c->bytes) consider(r, c, (r->lows[i] - c->bytes) / c->alignment * c->alignment);
    }
  }
}

/* An offset in a bin costs at least what begins in bins below that of the item's end, less what ends in bins up to its
 * own. */
static void consider_bins(const rondo_order_repair *r, choice *c) {
  const int64_t *begun = r->begun + (c->bytes >> r->shift);
  const int64_t *ended = r->ended + 1;
  const uint32_t count = r->bin_count - (c->bytes >> r->shift);
  int64_t least = begun[0] - ended[0];
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; i++) {
    const int64_t cost = begun[i] - ended[i];
    if (cost < least) best = i;
    if (cost < least) least = cost;
  }
  consider_bin(r, c, best);
  for (uint32_t i = 0; i < count; i++) {
    if (begun[i] - ended[i] > c->cost) continue;
    if (begun[i] - ended[i] < c->cost || i << r->shift < c->offset) consider_bin(r, c, i);
  }
}

/* The offset with the lowest cost, the lowest of several. False if there is none. */
static bool find_offset(rondo_order_repair *r, uint32_t entry, uint32_t *out, bool *out_free) {
  const size_t alignment = item_of(r, entry)->alignment / r->unit;
  choice c = {.bytes = r->bytes[entry], .last = UINT64_MAX, .offset = UNPLACED, .cost = IMMOVABLE - 1};
  c.alignment = alignment == 0 ? 1 : alignment < MAX_UNITS ? alignment : MAX_UNITS;
  if (c.bytes > r->target) return false;
  list_pieces(r, entry);
  consider(r, &c, 0);
  consider(r, &c, (r->target - c.bytes) / c.alignment * c.alignment);
  consider_bins(r, &c);
  *out = c.offset;
  *out_free = c.cost == 0;
  r->visits += c.visits;
  return c.offset != UNPLACED;
}

static void evict(rondo_order_repair *r, uint32_t entry, uint32_t low, uint32_t high) {
  if (r->lows[entry] < high && r->highs[entry] > low) unplace(r, entry);
}

static void evict_conflicts(rondo_order_repair *r, uint32_t low, uint32_t high) {
  for (uint32_t i = 0; i < r->conflicts.range_count; i++) {
    for (uint32_t k = r->conflicts.ranges[i].begin; k < r->conflicts.ranges[i].end; k++) evict(r, k, low, high);
  }
  for (uint32_t i = 0; i < r->conflicts.other_count; i++) evict(r, r->conflicts.others[i], low, high);
}

static bool place(rondo_order_repair *r, uint32_t entry) {
  uint32_t low = 0;
  bool is_free = false;
  if (!find_offset(r, entry, &low, &is_free)) return false;
  const uint32_t high = low + r->bytes[entry];
  if (!is_free) {
    evict_conflicts(r, low, high);
    if (r->costs[entry] < MAX_COST) r->costs[entry] += GAIN * r->weight[entry];
  }
  r->lows[entry] = low;
  r->highs[entry] = high;
  return true;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

/* Obstacles above the target overlap nothing. */
static void place_obstacles(rondo_order_repair *r) {
  const rondo_plan_problem *problem = r->index->lifetimes->problem;
  for (uint32_t i = r->index->count; i < r->pieces; i++) {
    const rondo_plan_obstacle *obstacle = &problem->obstacles[i - r->index->count];
    const size_t end = obstacle->offset + obstacle->bytes;
    const size_t low = obstacle->offset / r->unit;
    const size_t high = end / r->unit + (end % r->unit > 0);
    const bool is_below = obstacle->bytes > 0 && low < r->target;
    r->lows[i] = is_below ? (uint32_t)low : UNPLACED;
    r->highs[i] = high < r->target ? (uint32_t)high : r->target;
  }
}

/* Asserts that placed items end at or below the target, that the heap has the unplaced ones, and its order. Linear. */
static void check(const rondo_order_repair *repair) {
#ifdef NDEBUG
  (void)repair;
#else
  uint32_t unplaced = 0;
  for (uint32_t i = 0; i < repair->index->count; i++) {
    if (repair->lows[i] == UNPLACED) {
      unplaced++;
      continue;
    }
    assert(repair->highs[i] <= repair->target && repair->highs[i] - repair->lows[i] == repair->bytes[i]);
  }
  assert(unplaced == repair->unplaced_count);
  for (uint32_t i = 0; i < repair->unplaced_count; i++) {
    assert(repair->heap[i] < repair->index->count && repair->lows[repair->heap[i]] == UNPLACED);
    assert(i == 0 || !is_costlier(repair, repair->heap[i], repair->heap[(i - 1) / 2]));
  }
#endif
}

void rondo_order_repair_begin(rondo_order_repair *repair, const size_t *offsets, size_t target) {
  const rondo_order_index *index = repair->index;
  target /= repair->unit;
  repair->target = target < MAX_UNITS ? (uint32_t)target : (uint32_t)MAX_UNITS - 1;
  repair->unplaced_count = 0;
  place_obstacles(repair);
  for (uint32_t i = 0; i < index->count; i++) {
    const size_t offset = offsets == NULL ? SIZE_MAX : offsets[index->items[i]]; /* SIZE_MAX: unplaced */
    const size_t low = offset / repair->unit;
    if (offset % repair->unit > 0 || low > repair->target || low + repair->bytes[i] > repair->target) {
      unplace(repair, i);
    } else {
      repair->lows[i] = (uint32_t)low;
      repair->highs[i] = repair->lows[i] + repair->bytes[i];
    }
  }
  check(repair);
}

bool rondo_order_repair_run(rondo_order_repair *repair, uint64_t steps) {
  for (const uint64_t end = repair->steps + steps; repair->unplaced_count > 0 && repair->steps < end;) {
    repair->steps++;
    const uint32_t entry = take_unplaced(repair);
    if (place(repair, entry)) continue;
    unplace(repair, entry);
    return false;
  }
  return repair->unplaced_count == 0;
}

size_t rondo_order_repair_read(const rondo_order_repair *repair, size_t *offsets) {
  size_t peak = 0;
  for (uint32_t i = 0; i < repair->index->count; i++) {
    const size_t offset = repair->lows[i] * repair->unit;
    offsets[repair->index->items[i]] = offset;
    if (offset + item_of(repair, i)->bytes > peak) peak = offset + item_of(repair, i)->bytes;
  }
  return peak;
}

void rondo_order_repair_reset_costs(rondo_order_repair *repair, uint64_t seed) {
  for (uint32_t i = 0; i < repair->index->count; i++) {
    repair->costs[i] = repair->weight[i] * (int32_t)(1 + rondo_hash_u64(seed, i) % NOISE);
  }
}

/* SPDX-License-Identifier: MIT
 * An item pushed out costs the root of its bytes times how often it was put in where it pushed out others. The counts
 * make items that fight for the same bytes look elsewhere after a while, and stay from one target to the next: what is
 * hard to place has learnt it (as in "guided local search", Voudouris and Tsang 1999, and the ejection chains of Glover
 * 1996). The dearest that is out goes in first.
 *
 * The pieces in the way are sorted into bins of addresses. What begins below an item's end, less what ends up to its
 * offset, is what it pushes out; sums over bins give a lower bound for all offsets of one, and few need a closer look.
 */
#include "plan/partial_order/order_repair.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

#define IS_OUT UINT32_MAX
#define NONE UINT32_MAX
#define IMMOVABLE (1 << 28) /* what an obstacle costs */
#define MOST_COST (1 << 20)
#define MOST_UNITS ((size_t)1 << 31)
#define WEIGHT_BITS 8
#define GAIN 4  /* weights, each time an item pushed out others */
#define NOISE 3 /* weights up to which costs are made up */
#define LEAST_BIN_BITS 5
#define MOST_CANDIDATES 32 /* upon, and below, pieces of one bin */
#define MOST_BIN_BITS 11
#define MOST_BINS (((size_t)1 << MOST_BIN_BITS) + 1)

/* Making ----------------------------------------------------------------------------------------------------------- */

static const rondo_plan_item *item_of(const rondo_order_repair *r, uint32_t entry) {
  return &r->index->lives->problem->items[r->index->items[entry]];
}

static uint32_t units_of(const rondo_order_repair *r, size_t bytes) {
  return (uint32_t)(bytes / r->unit + (bytes % r->unit > 0));
}

/* Of all alignments the least, or more where the sum of all items would not fit. */
static size_t choose_unit(const rondo_order_index *index) {
  const rondo_plan_item *items = index->lives->problem->items;
  size_t unit = index->grain;
  size_t sum = 0;
  for (uint32_t i = 0; i < index->count; i++) sum += items[index->items[i]].bytes; /* fits, as was checked */
  while (sum / unit + index->count >= MOST_UNITS) unit *= 2;
  return unit;
}

static uint32_t root_of(uint32_t value) {
  uint32_t root = 0;
  for (uint32_t bit = UINT32_C(1) << 15; bit > 0; bit /= 2) {
    if ((uint64_t)(root + bit) * (root + bit) <= value) root += bit;
  }
  return root;
}

/* The root of an item's bytes, the largest item's being as many bits as a weight has. */
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
  RONDO_TRY(rondo_scratch_take(scratch, MOST_BINS, sizeof *r->begun, &r->begun));
  RONDO_TRY(rondo_scratch_take(scratch, MOST_BINS, sizeof *r->ended, &r->ended));
  RONDO_TRY(rondo_scratch_take(scratch, MOST_BINS, sizeof *r->first_low, &r->first_low));
  return rondo_scratch_take(scratch, MOST_BINS, sizeof *r->first_high, &r->first_high);
}

rondo_status rondo_order_repair_make(rondo_scratch *scratch, const rondo_order_index *index, rondo_order_repair *out) {
  const uint32_t count = index->count;
  *out = (rondo_order_repair){.index = index, .unit = choose_unit(index)};
  out->pieces = count + (uint32_t)index->lives->problem->obstacle_count;
  RONDO_TRY(allocate_pieces(scratch, out));
  RONDO_TRY(allocate_bins(scratch, out));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->bytes, &out->bytes));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->weight, &out->weight));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->heap, &out->heap));
  weigh(out);
  return rondo_index_answer_make(scratch, index, &out->met);
}

/* What is out ------------------------------------------------------------------------------------------------------ */

static bool is_dearer(const rondo_order_repair *r, uint32_t a, uint32_t b) {
  return r->costs[a] != r->costs[b] ? r->costs[a] > r->costs[b] : a < b;
}

static void take_out(rondo_order_repair *r, uint32_t entry) {
  size_t at = r->out_count++;
  r->lows[entry] = r->highs[entry] = IS_OUT;
  for (; at > 0 && is_dearer(r, entry, r->heap[(at - 1) / 2]); at = (at - 1) / 2) r->heap[at] = r->heap[(at - 1) / 2];
  r->heap[at] = entry;
}

static uint32_t choose_out(rondo_order_repair *r) {
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

/* Pieces in the way ------------------------------------------------------------------------------------------------ */

static void add_pieces(const rondo_order_repair *r, rondo_index_range range) {
  const unsigned shift = r->shift;
  for (uint32_t i = range.begin; i < range.end; i++) {
    const uint32_t low = r->lows[i] >> shift;
    const uint32_t high = r->highs[i] >> shift;
    if (r->lows[i] == IS_OUT) continue;
    r->begun[low] += r->costs[i];
    r->ended[high] += r->costs[i];
    r->next_low[i] = r->first_low[low];
    r->next_high[i] = r->first_high[high];
    r->first_low[low] = i;
    r->first_high[high] = i;
  }
}

static void add_obstacles(rondo_order_repair *r, uint32_t entry) {
  const rondo_lives *lives = r->index->lives;
  if (r->pieces == r->index->count) return;
  r->looks += r->pieces - r->index->count;
  const rondo_conflict conflict = rondo_conflict_of(lives, &r->index->by_entry[entry]);
  for (uint32_t i = r->index->count; i < r->pieces; i++) {
    const rondo_life *life = &lives->obstacles[i - r->index->count];
    if (rondo_conflict_one(lives, &conflict, life)) add_pieces(r, (rondo_index_range){i, i + 1});
  }
}

/* At least twice as many bins as there may be pieces, where that is not too many: then few need a closer look. */
static void clear_bins(rondo_order_repair *r) {
  uint32_t most = r->met.other_count;
  unsigned bits = LEAST_BIN_BITS;
  for (uint32_t i = 0; i < r->met.range_count; i++) most += r->met.ranges[i].end - r->met.ranges[i].begin;
  r->looks += most + r->met.range_count;
  while (bits < MOST_BIN_BITS && 2 * most >> bits > 0) bits++;
  for (r->shift = 0; r->target >> r->shift >> bits > 0;) r->shift++;
  r->bin_count = (r->target >> r->shift) + 1;
  memset(r->begun, 0, (r->bin_count + 1) * sizeof *r->begun);
  memset(r->ended, 0, (r->bin_count + 1) * sizeof *r->ended);
  memset(r->first_low, 0xFF, r->bin_count * sizeof *r->first_low);
  memset(r->first_high, 0xFF, r->bin_count * sizeof *r->first_high);
}

/* Sorts what is in the way of an entry into bins, and sums up what begins and ends in lower bins. */
static void list_pieces(rondo_order_repair *r, uint32_t entry) {
  rondo_order_index_ask(r->index, entry, &r->met);
  clear_bins(r);
  for (uint32_t i = 0; i < r->met.range_count; i++) add_pieces(r, r->met.ranges[i]);
  for (uint32_t i = 0; i < r->met.other_count; i++) {
    add_pieces(r, (rondo_index_range){r->met.others[i], r->met.others[i] + 1});
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

/* Where to put an item --------------------------------------------------------------------------------------------- */

/* The best place so far. */
typedef struct choice {
  uint32_t bytes;
  uint64_t alignment;
  uint64_t last; /* offset considered: many pieces of one bin may begin or end together */
  uint32_t offset;
  int64_t cost;
  uint64_t looks;
} choice;

/* The cost of what begins below the item's end, less that of what ends up to its offset. */
static void consider(const rondo_order_repair *r, choice *c, uint64_t offset) {
  if (offset == c->last || offset + c->bytes > r->target) return;
  c->last = offset;
  const uint32_t end = (uint32_t)offset + c->bytes;
  int64_t cost = r->begun[end >> r->shift] - r->ended[offset >> r->shift];
  for (uint32_t i = r->first_low[end >> r->shift]; i != NONE; i = r->next_low[i], c->looks++) {
    if (r->lows[i] < end) cost += r->costs[i];
  }
  for (uint32_t i = r->first_high[offset >> r->shift]; i != NONE; i = r->next_high[i], c->looks++) {
    if (r->highs[i] <= offset) cost -= r->costs[i];
  }
  if (cost > c->cost || (cost == c->cost && offset >= c->offset)) return;
  c->cost = cost;
  c->offset = (uint32_t)offset;
}

/* Considers the offsets of a bin that are upon a piece, or right below one; not all, where very many end or begin. */
static void look_into(const rondo_order_repair *r, choice *c, uint32_t number) {
  uint32_t left = MOST_CANDIDATES;
  for (uint32_t i = r->first_high[number]; i != NONE && left > 0; i = r->next_high[i], left--) {
    consider(r, c, (r->highs[i] + c->alignment - 1) / c->alignment * c->alignment);
  }
  const uint32_t first = number + (c->bytes >> r->shift);
  left = MOST_CANDIDATES;
  for (uint32_t end = first; end <= first + 1 && end < r->bin_count; end++) {
    for (uint32_t i = r->first_low[end]; i != NONE && left > 0; i = r->next_low[i], left--) {
      if (r->lows[i] >= c->bytes) consider(r, c, (r->lows[i] - c->bytes) / c->alignment * c->alignment);
    }
  }
}

/* Any offset in a bin costs at least what begins in bins below the end's and does not end up to this one. */
static void look_into_bins(const rondo_order_repair *r, choice *c) {
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
  look_into(r, c, best);
  for (uint32_t i = 0; i < count; i++) {
    if (begun[i] - ended[i] > c->cost) continue;
    if (begun[i] - ended[i] < c->cost || i << r->shift < c->offset) look_into(r, c, i);
  }
}

/* The offset that costs least, and of these the lowest. False when there is none. */
static bool find_offset(rondo_order_repair *r, uint32_t entry, uint32_t *out, bool *out_free) {
  const size_t alignment = item_of(r, entry)->alignment / r->unit;
  choice c = {.bytes = r->bytes[entry], .last = UINT64_MAX, .offset = IS_OUT, .cost = IMMOVABLE - 1};
  c.alignment = alignment == 0 ? 1 : alignment < MOST_UNITS ? alignment : MOST_UNITS;
  if (c.bytes > r->target) return false;
  list_pieces(r, entry);
  consider(r, &c, 0);
  consider(r, &c, (r->target - c.bytes) / c.alignment * c.alignment);
  look_into_bins(r, &c);
  *out = c.offset;
  *out_free = c.cost == 0;
  r->looks += c.looks;
  return c.offset != IS_OUT;
}

static void push_out(rondo_order_repair *r, uint32_t entry, uint32_t low, uint32_t high) {
  if (r->lows[entry] < high && r->highs[entry] > low) take_out(r, entry);
}

static void push_out_met(rondo_order_repair *r, uint32_t low, uint32_t high) {
  for (uint32_t i = 0; i < r->met.range_count; i++) {
    for (uint32_t k = r->met.ranges[i].begin; k < r->met.ranges[i].end; k++) push_out(r, k, low, high);
  }
  for (uint32_t i = 0; i < r->met.other_count; i++) push_out(r, r->met.others[i], low, high);
}

static bool put_in(rondo_order_repair *r, uint32_t entry) {
  uint32_t low = 0;
  bool is_free = false;
  if (!find_offset(r, entry, &low, &is_free)) return false;
  const uint32_t high = low + r->bytes[entry];
  if (!is_free) {
    push_out_met(r, low, high);
    if (r->costs[entry] < MOST_COST) r->costs[entry] += GAIN * r->weight[entry];
  }
  r->lows[entry] = low;
  r->highs[entry] = high;
  return true;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

/* What begins above the target overlaps nothing. */
static void lay_obstacles(rondo_order_repair *r) {
  const rondo_plan_problem *problem = r->index->lives->problem;
  for (uint32_t i = r->index->count; i < r->pieces; i++) {
    const rondo_plan_obstacle *obstacle = &problem->obstacles[i - r->index->count];
    const size_t end = obstacle->offset + obstacle->bytes;
    const size_t low = obstacle->offset / r->unit;
    const size_t high = end / r->unit + (end % r->unit > 0);
    const bool is_in = obstacle->bytes > 0 && low < r->target;
    r->lows[i] = is_in ? (uint32_t)low : IS_OUT;
    r->highs[i] = high < r->target ? (uint32_t)high : r->target;
  }
}

/* Asserts that what is in ends at or below the target, that the heap has what is out, and its order. Linear. */
static void check(const rondo_order_repair *repair) {
#ifdef NDEBUG
  (void)repair;
#else
  uint32_t out = 0;
  for (uint32_t i = 0; i < repair->index->count; i++) {
    if (repair->lows[i] == IS_OUT) {
      out++;
      continue;
    }
    assert(repair->highs[i] <= repair->target && repair->highs[i] - repair->lows[i] == repair->bytes[i]);
  }
  assert(out == repair->out_count);
  for (uint32_t i = 0; i < repair->out_count; i++) {
    assert(repair->heap[i] < repair->index->count && repair->lows[repair->heap[i]] == IS_OUT);
    assert(i == 0 || !is_dearer(repair, repair->heap[i], repair->heap[(i - 1) / 2]));
  }
#endif
}

void rondo_order_repair_begin(rondo_order_repair *repair, const size_t *offsets, size_t target) {
  const rondo_order_index *index = repair->index;
  target /= repair->unit;
  repair->target = target < MOST_UNITS ? (uint32_t)target : (uint32_t)MOST_UNITS - 1;
  repair->out_count = 0;
  lay_obstacles(repair);
  for (uint32_t i = 0; i < index->count; i++) {
    const size_t offset = offsets == NULL ? SIZE_MAX : offsets[index->items[i]]; /* too high to be in */
    const size_t low = offset / repair->unit;
    if (offset % repair->unit > 0 || low > repair->target || low + repair->bytes[i] > repair->target) {
      take_out(repair, i);
    } else {
      repair->lows[i] = (uint32_t)low;
      repair->highs[i] = repair->lows[i] + repair->bytes[i];
    }
  }
  check(repair);
}

bool rondo_order_repair_run(rondo_order_repair *repair, uint64_t steps) {
  for (const uint64_t end = repair->steps + steps; repair->out_count > 0 && repair->steps < end;) {
    repair->steps++;
    const uint32_t entry = choose_out(repair);
    if (put_in(repair, entry)) continue;
    take_out(repair, entry);
    return false;
  }
  return repair->out_count == 0;
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

void rondo_order_repair_forget(rondo_order_repair *repair, uint64_t seed) {
  for (uint32_t i = 0; i < repair->index->count; i++) {
    repair->costs[i] = repair->weight[i] * (int32_t)(1 + rondo_hash_u64(seed, i) % NOISE);
  }
}

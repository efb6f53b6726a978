/* SPDX-License-Identifier: MIT
 * Were items liquid, a stream would reach as high as the highest of what is below it at any time that may be the same,
 * and its own live bytes. That tells beforehand which of several orders of the streams is good, and for each moment of
 * a stream how much is going to lie upon it. A stream is packed under several preferences; the packing that leaves most
 * room for what lies upon it stays.
 */
#include "plan/order_stack.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "plan/range_peaks.h"
#include "plan/stream_pack.h"

#define ONE 65536 /* in logarithms */
#define ORDERS 24
#define TRIES 8
#define CROSSING 64              /* times all items: the square of those that have two streams may be as much */
#define FINEST 512               /* items smaller than this part of the bound are not worth a look into gaps */
#define MOST_WORK (1u << 26)     /* looks at what is in the way of something, in one stack; of these */
#define MOST_GAP_WORK (1u << 25) /* for looking into gaps below */

struct rondo_order_stack_room {
  uint32_t *items; /* by stream, and in it by position; then those that have two */
  uint32_t first[RONDO_STREAMS_MOST + 2];
  uint32_t start[RONDO_STREAMS_MOST + 1]; /* of each stream's positions among all */
  size_t *load;                           /* live bytes at each position */
  size_t *demand;                         /* what is going to lie upon them */
  rondo_range *windows;                   /* of each position: what may be at the same time on each stream */
  uint32_t *queue;
  uint32_t *places; /* of what conflicts with the item in hand */
  rondo_sort_entry *pieces;
  rondo_range_peaks tops[RONDO_STREAMS_MOST];    /* of what is placed, by the positions at which it may live */
  rondo_range_peaks demands[RONDO_STREAMS_MOST]; /* `demand` */
  rondo_range_peaks needs[RONDO_STREAMS_MOST];   /* load and demand */
  rondo_stream_packer packer;
  size_t *best;     /* offsets of the stream in hand */
  uint32_t *needed; /* of each item of the stream in hand: the logarithm of how high it makes the stack */
  uint32_t most_items;
};
typedef struct rondo_order_stack_room room;

typedef struct stream_order {
  uint32_t streams[RONDO_STREAMS_MOST]; /* the lowest first */
} stream_order;

/* Liquid stacks ---------------------------------------------------------------------------------------------------- */

/* What is upon one stream because of another, at each of its positions: a sliding maximum. */
static void press(rondo_order_stack *stack, uint32_t below, uint32_t above) {
  room *r = stack->room;
  const uint32_t streams = stack->streams.count;
  const size_t *load = r->load + r->start[above];
  const size_t *demand = r->demand + r->start[above];
  uint32_t head = 0;
  uint32_t tail = 0;
  uint32_t next = 0;
  for (uint32_t at = r->start[below]; at < r->start[below + 1]; at++) {
    const rondo_range window = r->windows[(size_t)at * streams + above];
    for (; next < window.end; next++) {
      while (tail > head && load[r->queue[tail - 1]] + demand[r->queue[tail - 1]] <= load[next] + demand[next]) tail--;
      r->queue[tail++] = next;
    }
    while (head < tail && r->queue[head] < window.begin) head++;
    if (head == tail) continue;
    const size_t height = load[r->queue[head]] + demand[r->queue[head]];
    if (height > r->demand[at]) r->demand[at] = height;
  }
}

/* Fills demand; returns how high the stack is. */
static size_t measure_order(rondo_order_stack *stack, const stream_order *order) {
  room *r = stack->room;
  const uint32_t count = stack->streams.count;
  size_t most = 0;
  memset(r->demand, 0, r->start[count] * sizeof *r->demand);
  for (uint32_t i = count; i-- > 0;) {
    for (uint32_t k = i + 1; k < count; k++) press(stack, order->streams[i], order->streams[k]);
  }
  for (uint32_t at = 0; at < r->start[count]; at++) {
    if (r->load[at] + r->demand[at] > most) most = r->load[at] + r->demand[at];
  }
  return most;
}

static void shuffle(stream_order *order, uint32_t count, uint64_t seed) {
  for (uint32_t i = 0; i < count; i++) order->streams[i] = i;
  for (uint32_t i = count; i > 1; i--) {
    const uint32_t k = (uint32_t)(rondo_hash_u64(seed, i) % i);
    const uint32_t kept = order->streams[i - 1];
    order->streams[i - 1] = order->streams[k];
    order->streams[k] = kept;
  }
}

/* Of some orders, the one whose stack is lowest. Fills what belongs to it. */
static size_t choose_order(rondo_order_stack *stack, uint64_t round, stream_order *out) {
  size_t least = SIZE_MAX;
  const uint64_t seed = rondo_hash_u64(stack->search->options->seed, round);
  for (uint64_t i = 0; i < ORDERS; i++) {
    stream_order order;
    shuffle(&order, stack->streams.count, rondo_hash_u64(seed, i));
    const size_t height = measure_order(stack, &order);
    if (height >= least) continue;
    least = height;
    *out = order;
  }
  return measure_order(stack, out);
}

static void spread_demand(rondo_order_stack *stack) {
  room *r = stack->room;
  for (uint32_t q = 0; q < stack->streams.count; q++) {
    rondo_range_peaks_clear(&r->demands[q]);
    rondo_range_peaks_clear(&r->needs[q]);
    rondo_range_peaks_clear(&r->tops[q]);
    for (uint32_t i = 0; i < r->start[q + 1] - r->start[q]; i++) {
      const uint32_t at = r->start[q] + i;
      rondo_range_peaks_raise(&r->demands[q], i, i + 1, r->demand[at]);
      rondo_range_peaks_raise(&r->needs[q], i, i + 1, r->load[at] + r->demand[at]);
    }
  }
}

/* What lives on two streams ---------------------------------------------------------------------------------------- */

static const rondo_plan_item *item_of(const rondo_order_stack *stack, uint32_t item) {
  return &stack->streams.lives->problem->items[item];
}

static size_t alignment_of(const rondo_plan_item *item) { return item->alignment == 0 ? 1 : item->alignment; }

/* Lists what is placed and conflicts with the item, by offset; returns how many. */
static size_t list_pieces(rondo_order_stack *stack, uint32_t number) {
  room *r = stack->room;
  const rondo_lives *lives = stack->streams.lives;
  const rondo_conflict conflict = rondo_conflict_of(lives, &lives->lives[number]);
  const size_t *offsets = stack->search->trial;
  const uint32_t listed = rondo_conflict_list(lives, &conflict, r->places);
  r->packer.work += listed;
  size_t count = 0;
  for (uint32_t i = 0; i < listed; i++) {
    const uint32_t other = lives->items[r->places[i]];
    if (offsets[other] != SIZE_MAX) r->pieces[count++] = (rondo_sort_entry){offsets[other], other};
  }
  rondo_sort_entries(r->pieces, r->pieces + lives->count, count);
  return count;
}

static void add_gap(rondo_packed *packed, size_t low, size_t high) {
  size_t aligned = 0;
  if (!rondo_checked_align(low, packed->alignment, &aligned) || aligned > high) return;
  if (high - aligned >= packed->bytes) packed->gaps[packed->gap_count++] = (rondo_packed_gap){aligned, high};
}

/* Fills the lowest gaps that hold the item; the last one has no end. */
static void find_gaps(rondo_order_stack *stack, rondo_packed *packed) {
  const size_t count = list_pieces(stack, packed->item);
  const rondo_sort_entry *pieces = stack->room->pieces;
  size_t low = 0;
  packed->gap_count = 0;
  for (size_t i = 0; i < count; i++) {
    const size_t end = pieces[i].key + item_of(stack, pieces[i].value)->bytes;
    if (packed->gap_count + 1 < RONDO_PACKED_GAPS) add_gap(packed, low, pieces[i].key);
    if (end > low) low = end;
  }
  add_gap(packed, low, SIZE_MAX);
}

/* Into the lowest gap; false when its top is above the limit. */
static bool place_crossing(rondo_order_stack *stack, uint32_t number, size_t limit) {
  const rondo_plan_item *item = item_of(stack, number);
  rondo_packed packed = {.item = number, .bytes = item->bytes, .alignment = alignment_of(item)};
  find_gaps(stack, &packed);
  if (packed.gap_count == 0) return false;
  stack->search->trial[number] = packed.gaps[0].low;
  return packed.gaps[0].low + item->bytes <= limit;
}

/* Around all that is placed, and in the way of what comes. */
static bool lay_crossing(rondo_order_stack *stack) {
  room *r = stack->room;
  const uint32_t streams = stack->streams.count;
  for (uint32_t i = r->first[streams]; i < r->first[streams + 1]; i++) {
    const rondo_life *life = &stack->streams.lives->lives[r->items[i]];
    if (!place_crossing(stack, r->items[i], stack->search->peak - 1)) return false;
    const size_t top = stack->search->trial[r->items[i]] + item_of(stack, r->items[i])->bytes;
    for (uint32_t q = 0; q < streams; q++) {
      const rondo_range range = rondo_streams_range(&stack->streams, q, life->alloc, life->free);
      rondo_range_peaks_raise(&r->tops[q], range.begin, range.end, top);
    }
  }
  return true;
}

/* Stream by stream ------------------------------------------------------------------------------------------------- */

typedef struct preference {
  uint32_t bytes, length, need; /* weights of logarithms */
  uint32_t noise;
} preference;

/* The stream's items, with what is below them and what is going to lie upon them. */
static void list_items(rondo_order_stack *stack, const stream_order *order, uint32_t level) {
  room *r = stack->room;
  const rondo_lives *lives = stack->streams.lives;
  const uint32_t stream = order->streams[level];
  r->packer.count = 0;
  for (uint32_t i = r->first[stream]; i < r->first[stream + 1]; i++) {
    const rondo_plan_item *item = item_of(stack, r->items[i]);
    const rondo_life *life = &lives->lives[r->items[i]];
    rondo_packed packed = {.item = r->items[i], .bytes = item->bytes, .alignment = alignment_of(item)};
    packed.begin = stack->streams.slot_position[life->alloc];
    packed.end = stack->streams.slot_position[life->free] + 1;
    size_t floor = rondo_range_peaks_most(&r->tops[stream], packed.begin, packed.end);
    packed.demand = rondo_range_peaks_most(&r->demands[stream], packed.begin, packed.end);
    for (uint32_t k = 0; k < level; k++) {
      const uint32_t below = order->streams[k];
      const rondo_range range = rondo_streams_range(&stack->streams, below, life->alloc, life->free);
      const size_t top = rondo_range_peaks_most(&r->tops[below], range.begin, range.end);
      if (top > floor) floor = top;
    }
    add_gap(&packed, floor, SIZE_MAX);
    if (packed.bytes >= stack->search->bound->bytes / FINEST && r->packer.work < MOST_GAP_WORK) {
      find_gaps(stack, &packed);
    }
    const size_t need = floor + rondo_range_peaks_most(&r->needs[stream], packed.begin, packed.end);
    r->needed[r->packer.count] = rondo_order_logarithm(need);
    r->packer.items[r->packer.count++] = packed;
  }
}

static void sequence_by(rondo_order_stack *stack, const preference *by, uint64_t seed) {
  room *r = stack->room;
  for (uint32_t i = 0; i < r->packer.count; i++) {
    const rondo_packed *item = &r->packer.items[i];
    uint64_t key = (uint64_t)by->bytes * rondo_order_logarithm(item->bytes) +
                   (uint64_t)by->length * rondo_order_logarithm(item->end - item->begin) +
                   (uint64_t)by->need * r->needed[i];
    if (by->noise > 0) key += rondo_hash_u64(seed, item->item) % by->noise;
    r->packer.sequence[i] = (rondo_sort_entry){UINT64_MAX - key, i};
  }
}

/* Packs a stream under several preferences, until nothing is higher than `good`. Returns how high the best is with what
 * is going to lie upon it; SIZE_MAX: too high. */
static size_t pack_stream(rondo_order_stack *stack, uint64_t seed, size_t good, size_t limit) {
  static const preference bases[] = {{1, 1, 4, 0}, {1, 1, 16, 0}, {1, 0, 8, 0}, {1, 1, 8, 0}};
  enum { BASES = sizeof bases / sizeof bases[0] };
  room *r = stack->room;
  size_t best = SIZE_MAX;
  for (uint32_t i = 0; i < TRIES && (best == SIZE_MAX || best > good); i++) {
    preference by = bases[i % BASES];
    if (i >= BASES) by.noise = ONE;
    sequence_by(stack, &by, rondo_hash_u64(seed, i));
    const size_t height = rondo_stream_packer_run(&r->packer, best == SIZE_MAX ? limit : best - 1);
    if (height == SIZE_MAX) continue;
    best = height;
    for (uint32_t k = 0; k < r->packer.count; k++) r->best[k] = r->packer.items[k].offset;
  }
  return best;
}

static void keep_stream(rondo_order_stack *stack, uint32_t stream) {
  room *r = stack->room;
  for (uint32_t i = 0; i < r->packer.count; i++) {
    const rondo_packed *item = &r->packer.items[i];
    stack->search->trial[item->item] = r->best[i];
    rondo_range_peaks_raise(&r->tops[stream], item->begin, item->end, r->best[i] + item->bytes);
  }
}

/* What has no bytes lies at the bottom, and nothing else is placed. */
static void clear_trial(rondo_order_stack *stack) {
  const rondo_lives *lives = stack->streams.lives;
  size_t *offsets = stack->search->trial;
  stack->room->packer.work = 0;
  memset(offsets, 0, lives->problem->count * sizeof *offsets);
  for (uint32_t i = 0; i < lives->count; i++) offsets[lives->items[i]] = SIZE_MAX;
}

void rondo_order_stack_run(rondo_order_stack *stack, uint64_t round) {
  rondo_order_search *search = stack->search;
  stream_order order;
  if (stack->room == NULL) return;
  size_t height = choose_order(stack, round, &order);
  if (height < search->bound->bytes) height = search->bound->bytes;
  if (height >= search->peak) return;
  spread_demand(stack);
  const uint32_t crossing = round % 2 == 0 ? stack->streams.count / 2 : stack->streams.count;
  clear_trial(stack);
  for (uint32_t i = 0; i < stack->streams.count; i++) {
    if (i == crossing && !lay_crossing(stack)) return;
    list_items(stack, &order, i);
    const uint64_t seed = rondo_hash_u64(rondo_hash_u64(search->options->seed, round), i);
    const size_t packed = pack_stream(stack, seed, height, search->peak - 1);
    if (packed == SIZE_MAX) return;
    if (packed > height) height = packed;
    keep_stream(stack, order.streams[i]);
    if (round > 0) search->steps += stack->room->packer.count;
    if (round > 0 ? !rondo_order_search_may_go_on(search) : rondo_order_search_is_late(search)) return;
  }
  if (crossing == stack->streams.count && !lay_crossing(stack)) return;
  rondo_order_search_offer(search, rondo_order_search_peak(search, search->trial), "order: stack");
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static uint32_t stream_of(const rondo_streams *streams, uint32_t item) {
  const rondo_life *life = &streams->lives->lives[item];
  const uint32_t stream = streams->chain_stream[life->alloc_chain];
  return stream == streams->chain_stream[life->free_chain] ? stream : streams->count;
}

/* By stream, and in it by where they begin; those with two streams the largest first. */
static rondo_status sort_items(rondo_order_stack *stack) {
  room *r = stack->room;
  const rondo_streams *streams = &stack->streams;
  const uint32_t count = streams->lives->count;
  rondo_sort_entry *entries = NULL;
  RONDO_TRY(rondo_allocate_items(stack->allocator, count, 2 * sizeof *entries, &entries));
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t item = streams->lives->items[i];
    const uint32_t stream = stream_of(streams, item);
    uint64_t key = UINT32_MAX - rondo_order_logarithm(item_of(stack, item)->bytes);
    if (stream < streams->count) key = streams->slot_position[streams->lives->lives[item].alloc];
    entries[i] = (rondo_sort_entry){(uint64_t)stream << 32 | key, item};
    r->first[stream + 1]++;
  }
  for (uint32_t q = 0; q <= streams->count; q++) {
    if (r->first[q + 1] > r->most_items) r->most_items = r->first[q + 1];
    r->first[q + 1] += r->first[q];
  }
  if (count > 1) rondo_sort_entries(entries, entries + count, count);
  for (uint32_t i = 0; i < count; i++) r->items[i] = entries[i].value;
  rondo_release(stack->allocator, entries, count, 2 * sizeof *entries);
  return RONDO_OK;
}

static void measure_load(rondo_order_stack *stack) {
  room *r = stack->room;
  const rondo_streams *streams = &stack->streams;
  for (uint32_t q = 0; q < streams->count; q++) {
    size_t *load = r->load + r->start[q];
    const uint32_t length = r->start[q + 1] - r->start[q];
    for (uint32_t i = r->first[q]; i < r->first[q + 1]; i++) {
      const rondo_life *life = &streams->lives->lives[r->items[i]];
      const uint32_t end = streams->slot_position[life->free] + 1;
      load[streams->slot_position[life->alloc]] += item_of(stack, r->items[i])->bytes; /* modulo the word */
      if (end < length) load[end] -= item_of(stack, r->items[i])->bytes;
    }
    for (uint32_t i = 1; i < length; i++) load[i] += load[i - 1];
  }
}

static void fill_windows(rondo_order_stack *stack) {
  room *r = stack->room;
  const rondo_relation *relation = stack->streams.lives->relation;
  const uint32_t streams = stack->streams.count;
  for (uint32_t slot = 1; slot + 1 < relation->slot_count; slot++) {
    if (relation->slot_chain[slot] == RONDO_RELATION_LOOSE) continue;
    const uint32_t stream = stack->streams.chain_stream[relation->slot_chain[slot]];
    rondo_range *windows = &r->windows[(size_t)(r->start[stream] + stack->streams.slot_position[slot]) * streams];
    for (uint32_t q = 0; q < streams; q++) windows[q] = rondo_streams_range(&stack->streams, q, slot, slot);
  }
}

static rondo_status make_trees(rondo_order_stack *stack) {
  for (uint32_t q = 0; q < stack->streams.count; q++) {
    const uint32_t length = rondo_streams_length(&stack->streams, q);
    RONDO_TRY(rondo_range_peaks_make(stack->allocator, length, &stack->room->tops[q]));
    RONDO_TRY(rondo_range_peaks_make(stack->allocator, length, &stack->room->demands[q]));
    RONDO_TRY(rondo_range_peaks_make(stack->allocator, length, &stack->room->needs[q]));
  }
  return RONDO_OK;
}

static rondo_status make_positions(rondo_order_stack *stack) {
  room *r = stack->room;
  const uint32_t streams = stack->streams.count;
  for (uint32_t q = 0; q < streams; q++) r->start[q + 1] = r->start[q] + rondo_streams_length(&stack->streams, q);
  const uint32_t positions = r->start[streams];
  RONDO_TRY(rondo_allocate_items(stack->allocator, positions, sizeof(size_t), &r->load));
  RONDO_TRY(rondo_allocate_items(stack->allocator, positions, sizeof(size_t), &r->demand));
  RONDO_TRY(rondo_allocate_items(stack->allocator, positions, sizeof(uint32_t), &r->queue));
  RONDO_TRY(rondo_allocate_items(stack->allocator, (size_t)positions * streams, sizeof(rondo_range), &r->windows));
  measure_load(stack);
  fill_windows(stack);
  return make_trees(stack);
}

static rondo_status make_room(rondo_order_stack *stack) {
  const uint32_t count = stack->streams.lives->count;
  RONDO_TRY(rondo_allocate_items(stack->allocator, 1, sizeof *stack->room, &stack->room));
  room *r = stack->room;
  RONDO_TRY(rondo_allocate_items(stack->allocator, count, sizeof(uint32_t), &r->items));
  RONDO_TRY(rondo_allocate_items(stack->allocator, count, sizeof(uint32_t), &r->places));
  RONDO_TRY(rondo_allocate_items(stack->allocator, count, 2 * sizeof *r->pieces, &r->pieces));
  RONDO_TRY(sort_items(stack));
  RONDO_TRY(rondo_allocate_items(stack->allocator, r->most_items, sizeof(size_t), &r->best));
  RONDO_TRY(rondo_allocate_items(stack->allocator, r->most_items, sizeof(uint32_t), &r->needed));
  RONDO_TRY(rondo_stream_packer_make(stack->allocator, r->most_items, MOST_WORK, &r->packer));
  return make_positions(stack);
}

static bool is_for(const rondo_streams *streams) {
  const rondo_lives *lives = streams->lives;
  uint64_t crossing = 0;
  if (streams->count < 2 || lives->problem->obstacle_count > 0 || lives->branches->count > 1) return false;
  for (uint32_t i = 0; i < lives->count; i++) crossing += stream_of(streams, lives->items[i]) == streams->count;
  return crossing * crossing <= (uint64_t)CROSSING * lives->count;
}

rondo_status rondo_order_stack_make(rondo_order_search *search, rondo_order_stack *out) {
  *out = (rondo_order_stack){.allocator = search->allocator, .search = search};
  RONDO_TRY(rondo_streams_make(search->allocator, search->lives, &out->streams));
  return is_for(&out->streams) ? make_room(out) : RONDO_OK;
}

static void free_room(rondo_order_stack *stack) {
  room *r = stack->room;
  const rondo_allocator *allocator = stack->allocator;
  const uint32_t streams = stack->streams.count;
  const size_t positions = r->start[streams];
  rondo_release(allocator, r->items, stack->streams.lives->count, sizeof(uint32_t));
  rondo_release(allocator, r->places, stack->streams.lives->count, sizeof(uint32_t));
  rondo_release(allocator, r->pieces, stack->streams.lives->count, 2 * sizeof *r->pieces);
  rondo_release(allocator, r->best, r->most_items, sizeof(size_t));
  rondo_release(allocator, r->needed, r->most_items, sizeof(uint32_t));
  rondo_release(allocator, r->load, positions, sizeof(size_t));
  rondo_release(allocator, r->demand, positions, sizeof(size_t));
  rondo_release(allocator, r->queue, positions, sizeof(uint32_t));
  rondo_release(allocator, r->windows, positions * streams, sizeof(rondo_range));
  rondo_stream_packer_free(allocator, &r->packer);
  for (uint32_t q = 0; q < streams; q++) {
    rondo_range_peaks_free(allocator, &r->tops[q]);
    rondo_range_peaks_free(allocator, &r->demands[q]);
    rondo_range_peaks_free(allocator, &r->needs[q]);
  }
  rondo_release(allocator, r, 1, sizeof *r);
}

void rondo_order_stack_free(rondo_order_stack *stack) {
  if (stack->room != NULL) free_room(stack);
  if (stack->allocator != NULL) rondo_streams_free(stack->allocator, &stack->streams);
  *stack = (rondo_order_stack){0};
}

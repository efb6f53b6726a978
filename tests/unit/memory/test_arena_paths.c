/* SPDX-License-Identifier: MIT
 * Many recordings along the paths of trees, compared with a model. Each allocation and slot is written at its beginning
 * and checked at its end, and every live output is checked after every launch, so that memory with two owners is
 * detected (TR-4). The size of the arena is compared with the maximum of live bytes on any path (TR-3): at most 1.05
 * times that if each recording is planned when it begins, 1.01 times if a path is planned as a whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/capture/arena_capture.h"
#include "memory/arena/arena_guard.h"
#include "memory/arena/arena_recording_plan.h"
#include "unit/memory/arena_test.h"

#define KIB ((size_t)1024)
#define HEAD 16 /* words looked at from the beginning, and as many before the end */
#define MOST_OPS 256
#define MOST_ITEMS 128
#define MOST_PARTS 16
#define MOST_SLOTS 4
#define MOST_LIVE (MOST_ITEMS * MOST_PARTS)
#define MOST_LOOKS (MOST_ITEMS + MOST_SLOTS)

/* Shapes ---------------------------------------------------------------------------------------------------------- */

typedef enum op_kind { OP_ALLOC, OP_FREE, OP_DROP, OP_ORDER } op_kind;

/* `item` belongs to the part; for a free of a block, it is an item of an earlier part. An order lets the other stream
 * wait for this one. */
typedef struct op {
  op_kind kind;
  uint32_t part, item;
  uint32_t stream; /* 0: the one that is recorded; 1: the one that is forked off */
} op;

/* The work of a recording: its allocations, frees, and frees of blocks, in order; and the outputs of earlier parts that
 * are dropped before it. */
typedef struct part {
  op ops[MOST_OPS];
  uint32_t op_count;
  size_t bytes[MOST_ITEMS];
  bool freed[MOST_ITEMS];
  uint32_t item_count;
  size_t slots[MOST_SLOTS];
  uint32_t slot_count;
  op dropped[MOST_ITEMS];
  uint32_t dropped_count;
} part;

typedef struct shape {
  part parts[MOST_PARTS];
  uint32_t count;
} shape;

static uint32_t add_alloc(part *of, uint32_t number, size_t bytes) {
  const uint32_t item = of->item_count++;
  of->bytes[item] = bytes;
  of->ops[of->op_count++] = (op){.kind = OP_ALLOC, .part = number, .item = item};
  return item;
}

static void add_free(part *of, uint32_t number, uint32_t item) {
  of->freed[item] = true;
  of->ops[of->op_count++] = (op){.kind = OP_FREE, .part = number, .item = item};
}

static void drop_inside(part *of, uint32_t part_number, uint32_t item) {
  of->ops[of->op_count++] = (op){.kind = OP_DROP, .part = part_number, .item = item};
}

static void drop_before(part *of, uint32_t part_number, uint32_t item) {
  of->dropped[of->dropped_count++] = (op){.kind = OP_DROP, .part = part_number, .item = item};
}

/* A training step: each layer forward is a recording that saves two activations, and each backward recording frees
 * them. */
static void make_training(shape *out, uint64_t *random) {
  const uint32_t layers = 3 + test_random_below(random, 5);
  *out = (shape){.count = 2 * layers};
  uint32_t kept[MOST_PARTS][2];
  for (uint32_t i = 0; i < layers; i++) {
    part *at = &out->parts[i];
    const size_t width = (size_t)(1 + test_random_below(random, 32)) * 4 * KIB;
    if (i == 0) at->slots[at->slot_count++] = width;
    kept[i][0] = add_alloc(at, i, width);
    const uint32_t workspace = add_alloc(at, i, width * 3);
    const uint32_t gate = add_alloc(at, i, width);
    kept[i][1] = add_alloc(at, i, width * 2);
    add_free(at, i, gate);
    add_free(at, i, workspace);
  }
  uint32_t gradient = 0;
  for (uint32_t k = 0; k < layers; k++) {
    const uint32_t number = layers + k, layer = layers - 1 - k;
    part *at = &out->parts[number];
    const size_t width = out->parts[layer].bytes[kept[layer][0]];
    const uint32_t local = add_alloc(at, number, width * 2);
    drop_inside(at, layer, kept[layer][1]);
    const uint32_t weights = add_alloc(at, number, width);
    add_free(at, number, local);
    drop_inside(at, layer, kept[layer][0]);
    if (k > 0) drop_inside(at, number - 1, gradient);
    gradient = add_alloc(at, number, width);
    add_free(at, number, weights);
  }
}

/* Serving: each recording makes an output from the previous one's, which is dropped before the next begins. */
static void make_serving(shape *out, uint64_t *random) {
  *out = (shape){.count = 4 + test_random_below(random, 8)};
  uint32_t output = 0;
  for (uint32_t i = 0; i < out->count; i++) {
    part *at = &out->parts[i];
    const size_t width = (size_t)(1 + test_random_below(random, 64)) * KIB;
    at->slots[at->slot_count++] = width;
    if (i > 1) drop_before(at, i - 2, output);
    const uint32_t first = add_alloc(at, i, width), second = add_alloc(at, i, width * 4);
    add_free(at, i, first);
    const uint32_t third = add_alloc(at, i, width * 2);
    add_free(at, i, second);
    const uint32_t next = add_alloc(at, i, width);
    add_free(at, i, third);
    output = i > 0 ? out->parts[i - 1].item_count - 1 : next;
  }
}

static size_t random_bytes(uint64_t *random) {
  const size_t scale = (size_t)256 << test_random_below(random, 9);
  return scale + test_random_below(random, (uint32_t)scale);
}

/* The live items of earlier parts, by part. */
typedef struct live_set {
  op items[MOST_LIVE];
  uint32_t count;
} live_set;

static op take_live(live_set *live, uint64_t *random) {
  const uint32_t at = test_random_below(random, live->count);
  const op taken = live->items[at];
  live->items[at] = live->items[--live->count];
  return taken;
}

static void make_random_part(part *at, uint32_t number, live_set *live, uint64_t *random) {
  uint32_t open[MOST_ITEMS], open_count = 0;
  const uint32_t steps = 6 + test_random_below(random, 40);
  for (uint32_t drops = test_random_below(random, 4); drops > 0 && live->count > 0; drops--) {
    const op dead = take_live(live, random);
    drop_before(at, dead.part, dead.item);
  }
  while (at->slot_count < test_random_below(random, MOST_SLOTS)) at->slots[at->slot_count++] = random_bytes(random);
  for (uint32_t i = 0; i < steps; i++) {
    const uint32_t roll = test_random_below(random, 100);
    if (roll < 55 || open_count == 0) {
      open[open_count++] = add_alloc(at, number, random_bytes(random));
    } else if (roll < 92 || live->count == 0) {
      const uint32_t which = test_random_below(random, open_count);
      add_free(at, number, open[which]);
      open[which] = open[--open_count];
    } else {
      const op dead = take_live(live, random);
      drop_inside(at, dead.part, dead.item);
    }
  }
  while (open_count > 0) {
    if (test_random_below(random, 4) == 0)
      live->items[live->count++] = (op){.kind = OP_ALLOC, .part = number, .item = open[--open_count]};
    else
      add_free(at, number, open[--open_count]);
  }
}

/* The same on two streams: an item stays on the stream that allocates it. */
static void fork_part(part *at, uint64_t *random) {
  part forked = *at;
  uint32_t stream_of[MOST_ITEMS] = {0};
  forked.op_count = 0;
  for (uint32_t i = 0; i < at->op_count && forked.op_count < MOST_OPS - 1; i++) {
    op now = at->ops[i];
    if (now.kind == OP_ALLOC) stream_of[now.item] = test_random_below(random, 2);
    if (now.kind != OP_DROP) now.stream = stream_of[now.item];
    forked.ops[forked.op_count++] = now;
    if (test_random_below(random, 6) == 0)
      forked.ops[forked.op_count++] = (op){.kind = OP_ORDER, .stream = test_random_below(random, 2)};
  }
  *at = forked;
}

static void make_random(shape *out, uint64_t *random) {
  static live_set live;
  live.count = 0;
  *out = (shape){.count = 2 + test_random_below(random, 7)};
  for (uint32_t i = 0; i < out->count; i++) make_random_part(&out->parts[i], i, &live, random);
}

static void make_forked(shape *out, uint64_t *random) {
  make_random(out, random);
  for (uint32_t i = 0; i < out->count; i++) fork_part(&out->parts[i], random);
}

/* The size that the arena gives an allocation. */
static size_t rounded(size_t bytes) { return (bytes + 255) / 256 * 256; }

/* The maximum number of bytes that are live at the same time. */
static size_t least_bytes(const shape *of) {
  size_t now = 0, most = 0;
  for (uint32_t i = 0; i < of->count; i++) {
    const part *at = &of->parts[i];
    size_t slots = 0;
    for (uint32_t k = 0; k < at->dropped_count; k++)
      now -= rounded(of->parts[at->dropped[k].part].bytes[at->dropped[k].item]);
    for (uint32_t k = 0; k < at->slot_count; k++) slots += rounded(at->slots[k]);
    if (now + slots > most) most = now + slots;
    for (uint32_t k = 0; k < at->op_count; k++) {
      if (at->ops[k].kind == OP_ORDER) continue;
      const size_t bytes = rounded(of->parts[at->ops[k].part].bytes[at->ops[k].item]);
      now = at->ops[k].kind == OP_ALLOC ? now + bytes : now - bytes;
      if (now + slots > most) most = now + slots;
    }
  }
  return most;
}

/* Running --------------------------------------------------------------------------------------------------------- */

/* A walk along a path, with its state of each item. */
typedef struct walk {
  test_fixture *fixture;
  rondo_arena *arena;
  const shape *of;
  rondo_stream *streams[2];
  uint32_t *looks; /* device words: two blocks of HEAD for each look */
  char *addresses[MOST_PARTS][MOST_ITEMS];
  bool lives[MOST_PARTS][MOST_ITEMS];
  recorded_graph recordings[MOST_PARTS];
  rondo_noted_lifetimes *noted[MOST_PARTS];
  rondo_arena_slot slots[MOST_PARTS][MOST_SLOTS];
  bool forks;
  uint32_t departures;
  size_t least; /* of its recordings, what the one says that needs most */
} walk;

static uint32_t value_of(uint32_t part_number, uint32_t item) { return part_number * 1000 + item + 1; }
static uint64_t key_of(uint32_t part_number, uint32_t item) { return value_of(part_number, item); }

static void write_item(walk *self, char *address, size_t bytes, uint32_t value) {
  test_arena_set(self->fixture, address, HEAD, value);
  test_arena_set(self->fixture, address + (bytes / 4 - HEAD) * 4, HEAD, value);
}

static void look_at(walk *self, uint32_t look, const char *address, size_t bytes) {
  uint32_t *to = self->looks + (size_t)look * 2 * HEAD;
  test_arena_combine(self->fixture, address, address, to, HEAD);
  const char *tail = address + (bytes / 4 - HEAD) * 4;
  test_arena_combine(self->fixture, tail, tail, to + HEAD, HEAD);
}

/* The next operations go to this stream. */
static rondo_stream *go_to(walk *self, uint32_t stream) { return self->fixture->stream = self->streams[stream]; }

/* The work of a part; `slots` is NULL in a warm-up. */
static void run_body(walk *self, uint32_t number, const rondo_arena_slot *slots) {
  const part *at = &self->of->parts[number];
  for (uint32_t i = 0; slots != NULL && i < at->slot_count; i++)
    write_item(self, slots[i].address, at->slots[i], value_of(number, MOST_ITEMS + i));
  if (self->forks) test_order(self->fixture, self->streams[0], self->streams[1]);
  for (uint32_t i = 0; i < at->op_count; i++) {
    const op *now = &at->ops[i];
    rondo_stream *stream = go_to(self, now->stream);
    if (now->kind == OP_ORDER) {
      test_order(self->fixture, stream, self->streams[1 - now->stream]);
      continue;
    }
    const size_t bytes = self->of->parts[now->part].bytes[now->item];
    char **address = &self->addresses[now->part][now->item];
    if (now->kind == OP_ALLOC) {
      *address = test_arena_malloc(self->fixture, bytes, "item");
      write_item(self, *address, bytes, value_of(now->part, now->item));
      continue;
    }
    look_at(self, now->kind == OP_FREE ? now->item : MOST_ITEMS - 1 - now->item % 8, *address, bytes);
    if (slots == NULL && now->kind == OP_DROP)
      rondo_profile_note_end(stream, key_of(now->part, now->item));
    else
      assert_ok(rondo_free_async(stream, *address));
  }
  (void)go_to(self, 0);
  if (self->forks) test_order(self->fixture, self->streams[1], self->streams[0]);
  for (uint32_t i = 0; slots != NULL && i < at->slot_count; i++)
    look_at(self, MOST_ITEMS + i, slots[i].address, at->slots[i]);
}

/* Runs the body once eagerly, in pool memory, and logs it. */
static void warm_up(walk *self, uint32_t number) {
  const part *at = &self->of->parts[number];
  assert_ok(rondo_profile_begin(self->fixture->stream));
  run_body(self, number, NULL);
  assert_ok(rondo_profile_end_noted(self->fixture->stream, &self->noted[number]));
  for (uint32_t i = 0; i < at->item_count; i++)
    if (!at->freed[i]) assert_ok(rondo_free_async(self->fixture->stream, self->addresses[number][i]));
  assert_ok(rondo_stream_synchronize(self->fixture->stream));
}

static uint32_t list_blocks(walk *self, rondo_arena_block *out) {
  uint32_t count = 0;
  for (uint32_t p = 0; p < self->of->count; p++)
    for (uint32_t i = 0; i < self->of->parts[p].item_count; i++)
      if (self->lives[p][i])
        out[count++] = (rondo_arena_block){.address = self->addresses[p][i],
                                           .bytes = self->of->parts[p].bytes[i],
                                           .name = "item",
                                           .key = key_of(p, i)};
  return count;
}

static void assert_item(walk *self, const char *address, size_t bytes, uint32_t value) {
  test_arena_assert(self->fixture, address, HEAD, value);
  test_arena_assert(self->fixture, address + (bytes / 4 - HEAD) * 4, HEAD, value);
}

/* The values that the part read were right, and so are those of all live items. */
static void assert_values(walk *self, uint32_t number) {
  const part *at = &self->of->parts[number];
  uint32_t looks[MOST_LOOKS * 2 * HEAD];
  test_read(self->fixture, looks, self->looks, sizeof looks);
  for (uint32_t i = 0; i < at->item_count; i++) {
    if (!at->freed[i] || i >= MOST_ITEMS - 8) continue;
    for (uint32_t k = 0; k < 2 * HEAD; k++) assert_int_equal(looks[i * 2 * HEAD + k], value_of(number, i) * 32);
  }
  for (uint32_t i = 0; i < at->slot_count; i++)
    for (uint32_t k = 0; k < 2 * HEAD; k++)
      assert_int_equal(looks[(MOST_ITEMS + i) * 2 * HEAD + k], value_of(number, MOST_ITEMS + i) * 32);
  for (uint32_t p = 0; p <= number; p++)
    for (uint32_t i = 0; i < self->of->parts[p].item_count; i++)
      if (self->lives[p][i]) assert_item(self, self->addresses[p][i], self->of->parts[p].bytes[i], value_of(p, i));
}

static void change_lives(walk *self, uint32_t number) {
  const part *at = &self->of->parts[number];
  for (uint32_t i = 0; i < at->op_count; i++)
    if (at->ops[i].kind == OP_DROP) self->lives[at->ops[i].part][at->ops[i].item] = false;
  for (uint32_t i = 0; i < at->item_count; i++) self->lives[number][i] = !at->freed[i];
}

static void drop_outputs(walk *self, uint32_t number) {
  const part *at = &self->of->parts[number];
  for (uint32_t i = 0; i < at->dropped_count; i++) {
    const op *dead = &at->dropped[i];
    self->lives[dead->part][dead->item] = false;
    rondo_arena_end_life(self->arena, self->fixture->stream->queue, self->addresses[dead->part][dead->item]);
  }
}

/* Records the part and launches it. */
static void record_part(walk *self, uint32_t number, rondo_profile *profile, bool plan) {
  static rondo_arena_block blocks[MOST_LIVE];
  const part *at = &self->of->parts[number];
  for (uint32_t i = 0; i < at->slot_count; i++)
    self->slots[number][i] = (rondo_arena_slot){.bytes = at->slots[i], .name = "slot"};
  rondo_arena_setting setting = {.arena = self->arena,
                                 .blocks = blocks,
                                 .block_count = list_blocks(self, blocks),
                                 .slots = self->slots[number],
                                 .slot_count = at->slot_count,
                                 .lifetimes = plan ? self->noted[number] : NULL,
                                 .profile = profile};
  test_arena_begin(self->fixture, &setting);
  run_body(self, number, self->slots[number]);
  self->recordings[number] = test_arena_end(self->fixture, self->arena);
  const rondo_arena_recording *read = &self->recordings[number].read;
  self->departures += read->departed;
  if (read->least > self->least) self->least = read->least;
  if (read->least > self->least) self->least = read->least;
  uint32_t outputs = 0;
  for (uint32_t i = 0; i < at->item_count; i++) outputs += !at->freed[i];
  assert_int_equal(read->output_count, outputs);
  change_lives(self, number);
  assert_ok(rondo_exec_launch(self->recordings[number].exec, self->fixture->stream));
  assert_values(self, number);
}

static void walk_again(walk *self) {
  memset(self->lives, 0, sizeof self->lives);
  for (uint32_t i = 0; i < self->of->count; i++) {
    drop_outputs(self, i);
    change_lives(self, i);
    assert_ok(rondo_exec_launch(self->recordings[i].exec, self->fixture->stream));
    assert_values(self, i);
  }
}

static void end_walk(walk *self) {
  for (uint32_t i = 0; i < self->of->count; i++) test_recording_free(&self->recordings[i]);
  rondo_arena_destroy(self->arena);
}

typedef enum way { WAY_ONLINE, WAY_PLANNED, WAY_WHOLE } way;

/* Makes the profiles of the whole path. */
static void plan_whole(walk *self, rondo_path_part *parts, rondo_path_end (*ends)[MOST_ITEMS]) {
  const shape *of = self->of;
  for (uint32_t i = 0; i < of->count; i++)
    parts[i] = (rondo_path_part){.lifetimes = self->noted[i],
                                 .slots = of->parts[i].slots,
                                 .slot_count = of->parts[i].slot_count,
                                 .ends = ends[i]};
  for (uint32_t i = 0; i < of->count; i++) {
    const part *at = &of->parts[i];
    for (uint32_t k = 0; k < at->dropped_count; k++)
      ends[at->dropped[k].part][parts[at->dropped[k].part].end_count++] =
          (rondo_path_end){.allocation = at->dropped[k].item, .part = i};
    for (uint32_t k = 0; k < at->op_count; k++) {
      const op *now = &at->ops[k];
      if (now->kind == OP_DROP)
        ends[now->part][parts[now->part].end_count++] =
            (rondo_path_end){.allocation = now->item, .part = i, .key = key_of(now->part, now->item)};
    }
  }
  rondo_plan_info info = {.struct_size = sizeof info};
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 200000, .gap = 1.005};
  assert_ok(rondo_arena_plan_path(self->arena, NULL, 0, parts, of->count, &options, &info));
  assert_true(info.lower_bound <= info.peak);
}

/* The arena's size divided by the minimum; 0 on devices where no bytes are shared. */
static double measure(test_fixture *fixture, const shape *of, way how, bool forks) {
  static walk self;
  static rondo_path_end ends[MOST_PARTS][MOST_ITEMS];
  rondo_path_part parts[MOST_PARTS] = {{0}};
  memset(&self, 0, sizeof self);
  self.fixture = fixture;
  self.of = of;
  self.forks = forks;
  self.streams[0] = fixture->stream;
  self.streams[1] = test_stream(fixture, "side");
  self.arena = test_arena(fixture, 0);
  self.looks = test_words(fixture, (size_t)MOST_LOOKS * 2 * HEAD);
  if (how == WAY_WHOLE) { /* once to note the parts, in an arena of their own */
    for (uint32_t i = 0; i < of->count; i++) {
      drop_outputs(&self, i);
      warm_up(&self, i);
      record_part(&self, i, NULL, false);
    }
    end_walk(&self);
    self.arena = test_arena(fixture, 0);
    memset(self.lives, 0, sizeof self.lives);
    plan_whole(&self, parts, ends);
  }
  for (uint32_t i = 0; i < of->count; i++) {
    drop_outputs(&self, i);
    if (how == WAY_PLANNED) warm_up(&self, i);
    record_part(&self, i, parts[i].profile, how == WAY_PLANNED);
  }
  rondo_arena_info info;
  rondo_arena_get_info(self.arena, &info);
  walk_again(&self);
  if (!forks) assert_int_equal(self.least, least_bytes(of));
  if (how != WAY_ONLINE) assert_int_equal(self.departures, 0);
  for (uint32_t i = 0; i < of->count; i++) {
    rondo_profile_destroy(parts[i].profile);
    rondo_noted_lifetimes_release(self.noted[i]);
  }
  end_walk(&self);
  test_stream_destroy(self.streams[1]);
  test_words_free(fixture, self.looks);
  return test_is_guarded(fixture) ? 0 : (double)info.high / (double)self.least;
}

typedef struct figures {
  double sum, most;
  uint32_t count;
} figures;

static void note_figure(figures *all, double ratio) {
  all->sum += ratio;
  all->count++;
  if (ratio > all->most) all->most = ratio;
}

/* `rounds` shapes, each in all modes; *out by mode. */
static void measure_all(test_fixture *fixture, const char *name, void (*make)(shape *out, uint64_t *random),
                        uint32_t rounds, figures out[3]) {
  static const char *const ways[] = {"online", "planned", "whole"};
  static shape of;
  uint64_t random = 20261121;
  memset(out, 0, 3 * sizeof *out);
  if (test_is_guarded(fixture)) rounds /= 4;
  for (uint32_t i = 0; i < rounds; i++) {
    make(&of, &random);
    for (int how = WAY_ONLINE; how <= WAY_WHOLE; how++)
      note_figure(&out[how], measure(fixture, &of, (way)how, make == make_forked));
  }
  for (int how = WAY_ONLINE; how <= WAY_WHOLE; how++)
    printf("%s, %s: memory against the least: mean %.4f, worst %.4f of %u\n", name, ways[how],
           out[how].sum / out[how].count, out[how].most, out[how].count);
}

TEST(test_tr3_training) {
  figures found[3];
  measure_all(t, "training", make_training, 12, found);
  assert_true(found[WAY_PLANNED].most <= 1.05);
  assert_true(found[WAY_WHOLE].most <= 1.01);
}

/* Outputs end in the order of their allocation. Their addresses are fixed too early to be always the best. */
TEST(test_tr3_serving) {
  figures found[3];
  measure_all(t, "serving", make_serving, 12, found);
  assert_true(found[WAY_PLANNED].sum / found[WAY_PLANNED].count <= 1.05);
  assert_true(found[WAY_WHOLE].most <= 1.01);
}

TEST(test_tr3_random) {
  figures found[3];
  measure_all(t, "random", make_random, 20, found);
  assert_true(found[WAY_PLANNED].sum / found[WAY_PLANNED].count <= 1.05);
  assert_true(found[WAY_WHOLE].most <= 1.01);
}

/* The minimum is that of the order of execution that needs the most. */
TEST(test_tr3_forked) {
  figures found[3];
  measure_all(t, "forked", make_forked, 12, found);
  assert_true(found[WAY_PLANNED].sum / found[WAY_PLANNED].count <= 1.05);
  assert_true(found[WAY_WHOLE].sum / found[WAY_WHOLE].count <= 1.01);
}

/* SPDX-License-Identifier: MIT
 * rondo_bench decode (AD-5, AD-9): the launch loop of an engine's decoder, in several forms. The engine rebuilds its
 * work for each token: its tensors are at other addresses, two topologies alternate, and a second thread allocates
 * memory all the while. Each token's result is checked.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "bench/bench_kernels.h"
#include "bench/bench_target.h"
#include "bench_check.h"
#include "rondo_bench.h"

enum { SETS = 3, TOPOLOGIES = 2, SETTLED = 100, MOST_ROUNDS = 100, FEWEST_ROUNDS = 3 };
enum { STRIDE = 64 /* words from the word of a token to the next, so that addresses are alike in their low bits */ };

/* How the work of a token is launched. */
enum { EAGER, UPDATED, CAPTURED, REPLAYED, BARE_UPDATED, FORMS };
static const char *const form_names[FORMS] = {
    [EAGER] = "eager",
    [UPDATED] = "captured and updated by hand",
    [CAPTURED] = "region, captured always",
    [REPLAYED] = "region, replayed",
    [BARE_UPDATED] = "captured and updated by hand, bare driver",
};

/* The memory of a target: the word of each token, its result, and the sets of tensors, one of which it uses. */
typedef struct decode_memory {
  uint64_t words, results, sets[SETS];
} decode_memory;

/* The kernels of a token: the first reads the token's word, the last writes its result, and each of the others reads
 * the tensor before its own. */
typedef struct token_line {
  uint32_t nodes;
  uint64_t word, result, tensors;
} token_line;

typedef struct decode_bench {
  bench_base base;
  uint64_t tokens, nodes;
  bench_target *targets[2]; /* Rondo's, and the bare driver's */
  decode_memory memory[2];
  void *execs[2][TOPOLOGIES];
  rondo_kernel *kernel;
  rondo_tree *tree;
  rondo_region *captured, *replayed;
  uint32_t *results;
  samples times[FORMS]; /* microseconds for a token */
  uint64_t right[FORMS], asked[FORMS];
  uint64_t growth; /* bytes that are live at the end of the regions' tokens, and were not after the first */
  _Atomic bool is_over;
  _Atomic uint64_t allocated;
  pthread_mutex_t allocating; /* held while the second thread holds memory, which must not count as growth */
} decode_bench;

/* Counting bytes -------------------------------------------------------------------------------------------------- */

static _Atomic uint64_t live_bytes;

static void *allocate(void *self, size_t bytes, size_t alignment) {
  (void)self;
  atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed);
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release(void *self, void *pointer, size_t bytes) {
  (void)self;
  atomic_fetch_sub_explicit(&live_bytes, bytes, memory_order_relaxed);
  free(pointer);
}

static const rondo_allocator counting = {.allocate = allocate, .release = release};

/* Of the host for Rondo, and of its execs and recordings on the device. */
static uint64_t held_bytes(decode_bench *b) {
  rondo_tree_info info = {.struct_size = sizeof info};
  check(rondo_tree_get_info(b->tree, &info));
  (void)pthread_mutex_lock(&b->allocating);
  const uint64_t host = atomic_load(&live_bytes);
  (void)pthread_mutex_unlock(&b->allocating);
  return host + info.exec_device_bytes + info.arena_bytes;
}

/* Tokens ---------------------------------------------------------------------------------------------------------- */

static uint32_t nodes_of(const decode_bench *b, size_t topology) {
  return (uint32_t)(topology == 0 ? b->nodes : b->nodes + b->nodes / 8 + 1);
}

static uint32_t result_of(const decode_bench *b, uint64_t token) {
  uint32_t word = (uint32_t)token;
  for (uint32_t i = nodes_of(b, token % TOPOLOGIES); i > 0; i--) word = word * 3 + 1;
  return word;
}

static void token_arguments(const void *user, uint32_t index, uint64_t values[2]) {
  const token_line *of = user;
  values[0] = index == 0 ? of->word : of->tensors + (index - 1) * sizeof(uint32_t);
  values[1] = index + 1 == of->nodes ? of->result : of->tensors + index * sizeof(uint32_t);
}

static token_line line_of(const decode_bench *b, size_t target, uint64_t token) {
  const decode_memory *memory = &b->memory[target];
  return (token_line){.nodes = nodes_of(b, token % TOPOLOGIES),
                      .word = memory->words + token * STRIDE * sizeof(uint32_t),
                      .result = memory->results + token * STRIDE * sizeof(uint32_t),
                      .tensors = memory->sets[token / TOPOLOGIES % SETS]};
}

static target_line target_line_of(const token_line *line) {
  return (target_line){.nodes = line->nodes, .arguments = token_arguments, .user = line};
}

/* By hand, with an exec for each topology, which is what a careful engine does. */
static void update_by_hand(decode_bench *b, size_t which, const token_line *line, size_t topology) {
  bench_target *target = b->targets[which];
  void **exec = &b->execs[which][topology];
  const target_line work = target_line_of(line);
  target_graph graph;
  check_tool(target->calls->begin_capture(target));
  check_tool(target->calls->enqueue_line(target, &work));
  check_tool(target->calls->end_capture(target, &graph));
  if (*exec == NULL)
    check_tool(target->calls->instantiate(target, &graph, false, exec));
  else
    check_tool(target->calls->update(target, *exec, &graph));
  check_tool(target->calls->launch(target, *exec, 0));
  check_tool(target->calls->discard_graph(target, &graph));
}

static void capture_always(decode_bench *b, const token_line *line) {
  bench_target *target = b->targets[0];
  rondo_stream *stream = rondo_target_stream(target);
  const target_line work = target_line_of(line);
  rondo_call *call;
  check(rondo_region_begin(b->captured, stream, NULL, &call));
  while (call != NULL) {
    check_tool(target->calls->enqueue_line(target, &work));
    check(rondo_region_end(b->captured, stream, RONDO_OK, &call));
  }
}

static void replay(decode_bench *b, const token_line *line, size_t topology) {
  const rondo_input inputs[] = {
      {.address = (void *)(uintptr_t)line->word, .bytes = sizeof(uint32_t)},
      {.address = (void *)(uintptr_t)line->tensors, .bytes = line->nodes * sizeof(uint32_t)},
      {.address = (void *)(uintptr_t)line->result, .bytes = sizeof(uint32_t)},
  };
  const rondo_region_arguments arguments = {
      .key = &topology, .key_bytes = sizeof topology, .inputs = inputs, .input_count = 3};
  rondo_stream *stream = rondo_target_stream(b->targets[0]);
  rondo_call *call;
  check(rondo_region_begin(b->replayed, stream, &arguments, &call));
  while (call != NULL) {
    const token_line seen = {.nodes = line->nodes,
                             .word = (uintptr_t)rondo_call_input(call, 0),
                             .tensors = (uintptr_t)rondo_call_input(call, 1),
                             .result = (uintptr_t)rondo_call_input(call, 2)};
    const target_line work = target_line_of(&seen);
    check_tool(b->targets[0]->calls->enqueue_line(b->targets[0], &work));
    check(rondo_region_end(b->replayed, stream, RONDO_OK, &call));
  }
}

static void launch_token(decode_bench *b, int form, uint64_t token) {
  const size_t which = form == BARE_UPDATED, topology = token % TOPOLOGIES;
  const token_line line = line_of(b, which, token);
  const target_line work = target_line_of(&line);
  switch (form) {
    case EAGER:
      check_tool(b->targets[0]->calls->enqueue_line(b->targets[0], &work));
      return;
    case CAPTURED:
      capture_always(b, &line);
      return;
    case REPLAYED:
      replay(b, &line, topology);
      return;
    default:
      update_by_hand(b, which, &line, topology);
      return;
  }
}

/* The engine reads each token before it goes on to the next. */
static void decode(decode_bench *b, int form) {
  bench_target *target = b->targets[form == BARE_UPDATED];
  const bool is_region = form == CAPTURED || form == REPLAYED;
  uint64_t before = 0;
  const uint64_t begin = clock_ns();
  for (uint64_t token = 0; token < b->tokens; token++) {
    if (token == SETTLED && is_region) before = held_bytes(b);
    launch_token(b, form, token);
    check_tool(target->calls->wait(target, 0));
  }
  samples_add(&b->times[form], (double)(clock_ns() - begin) / 1e3 / (double)b->tokens);
  const uint64_t after = is_region ? held_bytes(b) : 0;
  if (is_region && b->tokens > SETTLED && after > before) b->growth += after - before;
}

static void count_right(decode_bench *b, int form) {
  const size_t bytes = (size_t)b->tokens * STRIDE * sizeof *b->results;
  const uint64_t at = b->memory[form == BARE_UPDATED].results;
  rondo_stream *stream = rondo_target_stream(b->targets[0]);
  const rondo_fill clear = {.dst = (void *)(uintptr_t)at, .element_bytes = 4, .width = (size_t)b->tokens * STRIDE};
  check(rondo_copy_async(stream, b->results, (const void *)(uintptr_t)at, bytes));
  check(rondo_fill_async(stream, &clear));
  check(rondo_stream_synchronize(stream));
  for (uint64_t token = 0; token < b->tokens; token++)
    b->right[form] += b->results[token * STRIDE] == result_of(b, token);
  b->asked[form] += b->tokens;
}

/* The second thread ------------------------------------------------------------------------------------------------ */

static void *allocate_all_the_while(void *bench) {
  const struct timespec pause = {.tv_nsec = 100000};
  decode_bench *b = bench;
  while (!atomic_load(&b->is_over)) {
    void *memory;
    (void)pthread_mutex_lock(&b->allocating);
    check(rondo_malloc(b->base.device, 4096, "of another thread", &memory));
    check(rondo_free(b->base.device, memory));
    (void)pthread_mutex_unlock(&b->allocating);
    atomic_fetch_add(&b->allocated, 1);
    (void)nanosleep(&pause, NULL);
  }
  return NULL;
}

/* Preparing ------------------------------------------------------------------------------------------------------- */

static void prepare_memory(decode_bench *b, size_t which) {
  bench_target *target = b->targets[which];
  decode_memory *memory = &b->memory[which];
  const size_t bytes = (size_t)b->tokens * STRIDE * sizeof(uint32_t);
  rondo_stream *stream = rondo_target_stream(b->targets[0]);
  check_tool(target->calls->allocate(target, bytes, &memory->words));
  check_tool(target->calls->allocate(target, bytes, &memory->results));
  for (size_t i = 0; i < SETS; i++)
    check_tool(target->calls->allocate(target, nodes_of(b, 1) * sizeof(uint32_t), &memory->sets[i]));
  for (uint64_t token = 0; token < b->tokens; token++) b->results[token * STRIDE] = (uint32_t)token;
  check(rondo_copy_async(stream, (void *)(uintptr_t)memory->words, b->results, bytes));
  check(rondo_stream_synchronize(stream));
}

static int prepare(void *bench) {
  static const uint32_t kinds[] = {RONDO_INPUT_MOVING, RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED,
                                   RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED};
  decode_bench *b = bench;
  const rondo_region_options always = {RONDO_REGION_OPTIONS_INIT, .name = "captured",
                                       .mode = RONDO_REGION_CAPTURE_ALWAYS};
  const rondo_region_options keyed = {
      RONDO_REGION_OPTIONS_INIT, .name = "replayed",          .inputs = kinds,
      .input_count = 3,          .key_bytes = sizeof(size_t), .binding = RONDO_BINDING_PATCH};
  b->results = bench_allocate((size_t)b->tokens * STRIDE, sizeof *b->results);
  check(rondo_tree_create(b->base.device, NULL, &b->tree));
  check(rondo_region_create(b->tree, &always, &b->captured));
  check(rondo_region_create(b->tree, &keyed, &b->replayed));
  check_tool(rondo_target_create(b->base.device, &bench_next_word, 1, &b->targets[0]));
  check_tool(bare_target_create(b->base.device_name, &bench_next_word, 1, &b->targets[1]));
  for (size_t i = 0; i < 2; i++)
    if (b->targets[i] != NULL) prepare_memory(b, i);
  for (size_t i = 0; i < FORMS; i++) bench_samples_create(&b->times[i], MOST_ROUNDS);
  return TOOL_OK;
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static int measure(void *bench) {
  decode_bench *b = bench;
  pthread_t allocating;
  const int error = pthread_create(&allocating, NULL, allocate_all_the_while, b);
  if (error) return tool_fail_thread(error);
  for (rounds r = rounds_begin(b->base.seconds, FEWEST_ROUNDS, MOST_ROUNDS); rounds_next(&r);)
    for (int form = 0; form < FORMS; form++) {
      if (form == BARE_UPDATED && b->targets[1] == NULL) continue;
      decode(b, form);
      count_right(b, form);
    }
  atomic_store(&b->is_over, true);
  (void)pthread_join(allocating, NULL);
  return TOOL_OK;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static void report(void *bench, json *out) {
  decode_bench *b = bench;
  json_integer(out, "tokens", b->tokens);
  json_integer(out, "kernels", b->nodes);
  json_integer(out, "allocated_meanwhile", atomic_load(&b->allocated));
  json_integer(out, "growth_bytes", b->growth);
  json_begin_array(out, "forms");
  for (int form = 0; form < FORMS; form++) {
    if (b->asked[form] == 0) continue;
    const summary us = samples_summarize(&b->times[form]);
    json_begin_object(out, NULL);
    json_text(out, "form", form_names[form]);
    json_summary(out, "token_us", us);
    json_real(out, "tokens_per_second", bench_ratio(1e6, us.median));
    json_integer(out, "wrong", b->asked[form] - b->right[form]);
    json_end(out);
  }
  json_end(out);
}

static const decode_bench defaults = {.base = {.device_name = "cpu", .seconds = 3},
                                      .tokens = 10000,
                                      .nodes = 64,
                                      .allocating = PTHREAD_MUTEX_INITIALIZER};

static const option_row rows[] = {
    {"tokens", "N", OPTION_COUNT, offsetof(decode_bench, tokens), 1, 1000000, "tokens of a round"},
    {"nodes", "N", OPTION_COUNT, offsetof(decode_bench, nodes), 2, 100000, "kernels of a token"},
};

const benchmark bench_decode = {
    .name = "decode",
    .summary = "the launch loop of a decoder, in several forms",
    .description =
        "Measures the launch loop of an engine's decoder: for each token it launches a line of kernels, whose\n"
        "tensors are at other addresses than before. Two topologies alternate, and a second thread allocates\n"
        "memory all the while. The loop is measured without graphs; with captures that update an exec by hand;\n"
        "with a region that is captured always; with a region that is replayed; and on a CUDA device with captures\n"
        "that update an exec by hand in the bare driver. Times are microseconds: medians, with minimum and\n"
        "maximum. Each result is checked. growth_bytes: what the regions hold more at the end than after 100\n"
        "tokens.",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .allocator = &counting,
    .prepare = prepare,
    .measure = measure,
    .report = report,
};

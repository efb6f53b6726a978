/* SPDX-License-Identifier: MIT
 * Regions compared with a model. The input is a stream of calls: regions of three modes that are begun on two streams
 * with a few keys, ended with and without a failure, left, abandoned, destroyed while they are open, and begun in
 * captures of the caller; captures that die; steps; and misuse. The model knows which region is open, and the words
 * that the code changes: each run of the code counts once, unless it was captured and dropped.
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>
#include <stdbool.h>
#include <string.h>

#include "fuzz/fuzz_target.h"

enum { WORDS = 4, REGIONS = 3, STREAMS = 2, KEYS = 3, MOST_LAUNCHES = 3, MAX_CALLS = 100 };

typedef struct fuzz_run {
  const uint8_t *data;
  size_t left;
  rondo_device *device;
  rondo_stream *streams[STREAMS];
  rondo_kernel *kernel;
  rondo_tree *tree;
  rondo_region *regions[REGIONS];
  uint32_t *words, expected[WORDS]; /* of the device, and what must be there */
  rondo_region *open;               /* NULL: none */
  rondo_stream *stream;             /* ... it is open on */
  rondo_call *call;
  uint32_t word, launches; /* what its code does */
  bool is_captured;        /* the code's run, by the tree */
} fuzz_run;

static uint8_t take(fuzz_run *run) {
  if (run->left == 0) return 0;
  run->left--;
  return *run->data++;
}

/* word = word * 3 + 1 */
static void step_cpu(rondo_blocks blocks, void *const *args) {
  uint32_t *const word = *(uint32_t **)args[0];
  (void)blocks;
  *word = *word * 3 + 1;
}

static void require_ok(rondo_status status) { REQUIRE(status == RONDO_OK); }

static void require_misuse(rondo_status status, rondo_reason reason) {
  REQUIRE(status == RONDO_INVALID_STATE && rondo_last_error()->reason == reason);
}

/* The code of regions ---------------------------------------------------------------------------------------------- */

static void count_run(fuzz_run *run) {
  for (uint32_t i = 0; i < run->launches; i++) run->expected[run->word] = run->expected[run->word] * 3 + 1;
}

static bool is_capturing(const rondo_stream *stream) {
  rondo_capture_info info = {.struct_size = sizeof info};
  require_ok(rondo_capture_get_info(stream, &info));
  return info.state != RONDO_CAPTURE_NONE;
}

/* Runs the code once. An eager run counts at once. */
static void run_code(fuzz_run *run) {
  uint32_t *const word = run->words + run->word;
  run->is_captured = is_capturing(run->stream);
  for (uint32_t i = 0; i < run->launches; i++)
    require_ok(rondo_launch(run->stream, run->kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(&word)));
  if (!run->is_captured) count_run(run);
}

static void close_open(fuzz_run *run) {
  run->open = NULL;
  run->call = NULL;
}

/* Calls ------------------------------------------------------------------------------------------------------------ */

static void make_region(fuzz_run *run, int which) {
  static const rondo_region_options options[REGIONS] = {
      {RONDO_REGION_OPTIONS_INIT, .name = "replayed", .key_bytes = sizeof(uint32_t), .max_recordings = 2},
      {RONDO_REGION_OPTIONS_INIT, .name = "small", .key_bytes = sizeof(uint32_t), .min_nodes = 2, .warm_ups = 2},
      {RONDO_REGION_OPTIONS_INIT, .name = "always", .key_bytes = sizeof(uint32_t),
       .mode = RONDO_REGION_CAPTURE_ALWAYS}};
  require_ok(rondo_region_create(run->tree, &options[which], &run->regions[which]));
}

/* The key says what the code does. That of the last region does something else in each call. */
static void call_begin(fuzz_run *run) {
  const int which = take(run) % REGIONS;
  rondo_region *const region = run->regions[which];
  rondo_stream *const stream = run->streams[take(run) % STREAMS];
  const uint32_t key = take(run) % KEYS, varying = take(run) % MOST_LAUNCHES;
  const rondo_region_arguments arguments = {.key = &key, .key_bytes = sizeof key};
  rondo_call *call;
  const rondo_status status = rondo_region_begin(region, stream, &arguments, &call);
  if (run->open != NULL) {
    const bool is_same = run->open == region;
    REQUIRE(call == NULL);
    require_misuse(status, !is_same                ? RONDO_REASON_REGION_NESTED
                           : stream == run->stream ? RONDO_REASON_REGION_LEFT
                                                   : RONDO_REASON_REGION_STREAM);
    if (is_same && stream == run->stream) close_open(run);
    return;
  }
  require_ok(status);
  run->word = key;
  run->launches = which == REGIONS - 1 ? varying : key;
  run->stream = stream;
  if (call == NULL) {
    count_run(run);
    if (take(run) % 2 == 0) require_ok(rondo_region_end(region, stream, RONDO_OK, &call));
    return;
  }
  run->open = region;
  run->call = call;
  run_code(run);
}

/* The end of a capture that died, or that the code failed in, runs the code again. */
static void call_end(fuzz_run *run) {
  const uint8_t choice = take(run);
  rondo_region *const region = run->open != NULL ? run->open : run->regions[choice % REGIONS];
  const rondo_status done = choice < 64 ? RONDO_IO_ERROR : RONDO_OK;
  rondo_call *call;
  if (run->open == NULL) {
    const rondo_status status = rondo_region_end(region, run->streams[0], RONDO_OK, &call);
    REQUIRE(call == NULL && (status == RONDO_OK || status == RONDO_INVALID_STATE));
    return;
  }
  if (choice >= 200) {
    rondo_stream *const other = run->streams[run->stream == run->streams[0]];
    require_misuse(rondo_region_end(region, other, done, &call), RONDO_REASON_REGION_STREAM);
    return;
  }
  const bool was_captured = run->is_captured;
  const rondo_status status = rondo_region_end(region, run->stream, done, &call);
  if (call != NULL) {
    REQUIRE(status == RONDO_OK && was_captured);
    run->call = call;
    run_code(run);
    REQUIRE(!run->is_captured);
    return;
  }
  REQUIRE(status == done || (was_captured && status != RONDO_OK));
  if (was_captured && status == RONDO_OK) count_run(run);
  close_open(run);
}

static void call_abandon(fuzz_run *run) {
  rondo_region *const region = run->regions[take(run) % REGIONS];
  rondo_region_abandon(region);
  if (run->open == region) close_open(run);
}

static void call_destroy(fuzz_run *run) {
  const int which = take(run) % REGIONS;
  const rondo_status status = rondo_region_destroy(run->regions[which]);
  if (run->open != NULL && run->open != run->regions[which]) {
    require_misuse(status, RONDO_REASON_CONCURRENT_USE);
    return;
  }
  require_ok(status);
  close_open(run);
  make_region(run, which);
}

/* The end then runs the code again. */
static void call_kill(fuzz_run *run) {
  if (run->open == NULL || !run->is_captured) return;
  REQUIRE(rondo_stream_synchronize(run->stream) != RONDO_OK);
}

static void call_step(fuzz_run *run) {
  const rondo_status status = rondo_tree_mark_step(run->tree);
  if (run->open != NULL)
    require_misuse(status, RONDO_REASON_CONCURRENT_USE);
  else
    require_ok(status);
}

static void call_misuse(fuzz_run *run) {
  rondo_region *const region = run->regions[take(run) % REGIONS];
  const rondo_region_arguments bad = {.key = "a key that is too long", .key_bytes = 20 + take(run)};
  rondo_call *call;
  REQUIRE(rondo_region_begin(region, run->streams[0], &bad, &call) == RONDO_INVALID_ARGUMENT && call == NULL);
  REQUIRE(rondo_region_begin(region, NULL, NULL, &call) == RONDO_INVALID_ARGUMENT && call == NULL);
  REQUIRE(rondo_region_end(region, NULL, RONDO_OK, &call) == RONDO_INVALID_ARGUMENT && call == NULL);
  REQUIRE(rondo_region_get_info(region, NULL) == RONDO_INVALID_ARGUMENT);
}

/* A region in a capture of the caller. */
static void call_in_capture(fuzz_run *run) {
  rondo_stream *const stream = run->streams[take(run) % STREAMS];
  rondo_graph *graph;
  rondo_exec *exec;
  if (run->open != NULL) return;
  require_ok(rondo_device_synchronize(run->device));
  require_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  const uint32_t key = take(run) % KEYS;
  const rondo_region_arguments arguments = {.key = &key, .key_bytes = sizeof key};
  require_ok(rondo_region_begin(run->regions[0], stream, &arguments, &run->call));
  REQUIRE(run->call != NULL);
  run->word = run->launches = key;
  run->stream = stream;
  run_code(run);
  REQUIRE(run->is_captured);
  require_ok(rondo_region_end(run->regions[0], stream, RONDO_OK, &run->call));
  REQUIRE(run->call == NULL);
  require_ok(rondo_capture_end(stream, &graph));
  require_ok(rondo_instantiate(graph, NULL, &exec));
  require_ok(rondo_graph_destroy(graph));
  require_ok(rondo_exec_launch(exec, stream));
  count_run(run);
  require_ok(rondo_stream_synchronize(stream));
  rondo_exec_destroy(exec);
}

/* Code that waits for its stream cannot be captured, so only closed regions are looked at. */
static void call_look(fuzz_run *run) {
  uint32_t words[WORDS];
  if (run->open != NULL) return;
  require_ok(rondo_device_synchronize(run->device));
  require_ok(rondo_copy_async(run->streams[0], words, run->words, sizeof words));
  require_ok(rondo_stream_synchronize(run->streams[0]));
  for (int i = 0; i < WORDS; i++) REQUIRE(words[i] == run->expected[i]);
}

/* Runs ------------------------------------------------------------------------------------------------------------- */

static void begin(fuzz_run *run, const char *device) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1};
  const rondo_kernel_options kernel = {RONDO_KERNEL_OPTIONS_INIT, .name = "step", .cpu = step_cpu,
                                       .params = {RONDO_UPDATES}};
  void *words;
  require_ok(rondo_device_open(device, &options, &run->device));
  for (int i = 0; i < STREAMS; i++) require_ok(rondo_stream_create(run->device, NULL, &run->streams[i]));
  require_ok(rondo_kernel_create(run->device, &kernel, &run->kernel));
  require_ok(rondo_tree_create(run->device, NULL, &run->tree));
  require_ok(rondo_malloc(run->device, sizeof run->expected, "words", &words));
  run->words = words;
  require_ok(rondo_fill_async(run->streams[0], &(rondo_fill){.dst = words, .element_bytes = 4, .width = WORDS}));
  require_ok(rondo_stream_synchronize(run->streams[0]));
  for (int i = 0; i < REGIONS; i++) make_region(run, i);
}

static void end(fuzz_run *run) {
  if (run->open != NULL) rondo_region_abandon(run->open);
  close_open(run);
  call_look(run);
  require_ok(rondo_tree_destroy(run->tree));
  require_ok(rondo_device_synchronize(run->device));
  require_ok(rondo_free(run->device, run->words));
  rondo_kernel_destroy(run->kernel);
  for (int i = 0; i < STREAMS; i++) require_ok(rondo_stream_destroy(run->streams[i]));
  require_ok(rondo_device_close(run->device));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static void (*const calls[])(fuzz_run *) = {call_begin,   call_end,  call_begin,      call_end,    call_abandon,
                                              call_destroy, call_kill, call_in_capture, call_misuse, call_step,
                                              call_begin,   call_end,  call_look,       call_begin,  call_end};
  fuzz_run run = {.data = data, .left = size};
  REQUIRE(setenv("RONDO_CPU_SPIN_US", "20", 0) == 0); /* spinning workers would take time from working ones */
  begin(&run, take(&run) >= 200 ? "cpu:check" : "cpu");
  for (int i = 0; i < MAX_CALLS && run.left > 0; i++) calls[take(&run) % (sizeof calls / sizeof calls[0])](&run);
  end(&run);
  return 0;
}

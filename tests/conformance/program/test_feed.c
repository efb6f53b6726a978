/* SPDX-License-Identifier: MIT
 * Staged inputs and outputs (FW-3): the copies are nodes of the graph, results have the same bits as without staging, a
 * batch that is fed during a run reaches the next run and not this one; mapping; calls that are refused while a stream
 * captures (RC-5), and every error.
 */
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { ROWS = 4, WIDTH = 8, COUNT = ROWS * WIDTH, STEPS = 60 };

static const rondo_value none = {0};

/* y = tanh(tanh(x) w) + mask, and z = softmax(x), which may run at the same time. */
static rondo_program *make_program(void) {
  rondo_program *program = test_named_program("fed");
  rondo_value x, mask, w, y, z;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){ROWS, WIDTH}, 2, &x));
  assert_ok(rondo_program_input(program, "mask", RONDO_F32, (const size_t[]){ROWS, WIDTH}, 2, &mask));
  assert_ok(rondo_program_state(program, "w", RONDO_F32, (const size_t[]){WIDTH, WIDTH}, 2, &w));
  assert_ok(rondo_op_tanh(program, x, &y));
  assert_ok(rondo_op_matmul(program, y, w, none, &y));
  assert_ok(rondo_op_tanh(program, y, &y));
  assert_ok(rondo_op_add(program, y, mask, &y));
  assert_ok(rondo_op_softmax(program, x, &z));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_output(program, "z", z));
  return program;
}

static rondo_status try_compile(test_fixture *t, const rondo_compile_options *options, rondo_compiled **out) {
  rondo_program *program = make_program();
  const rondo_status status = rondo_compile(program, t->device, options, out);
  if (status == RONDO_OK) test_leave_compiled(*out);
  rondo_program_destroy(program);
  return status;
}

static rondo_compiled *compile(test_fixture *t, rondo_staging x, rondo_staging mask, rondo_staging y) {
  const rondo_staged_value staged[] = {{"x", x}, {"mask", mask}, {"y", y}};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = staged, .staged_count = 3};
  rondo_compiled *compiled = NULL;
  float w[WIDTH * WIDTH];
  assert_ok(try_compile(t, &options, &compiled));
  for (int i = 0; i < WIDTH * WIDTH; i++) w[i] = (float)(i % 5) * 0.25f - 0.5f;
  assert_ok(rondo_compiled_write(compiled, "w", w, sizeof w));
  return compiled;
}

typedef struct batch {
  float x[COUNT], mask[COUNT];
} batch;

static batch make_batch(int number) {
  batch b;
  for (int i = 0; i < COUNT; i++) {
    b.x[i] = (float)((i * 7 + number * 13) % 17) * 0.125f - 1;
    b.mask[i] = (float)number;
  }
  return b;
}

static void feed(rondo_compiled *compiled, int number) {
  const batch b = make_batch(number);
  assert_ok(rondo_compiled_feed(compiled, "x", b.x, sizeof b.x));
  assert_ok(rondo_compiled_feed(compiled, "mask", b.mask, sizeof b.mask));
}

typedef struct result {
  float y[COUNT], z[COUNT];
} result;

static void fetch(rondo_compiled *compiled, result *out) {
  assert_ok(rondo_compiled_fetch(compiled, "y", out->y, sizeof out->y));
  assert_ok(rondo_compiled_fetch(compiled, "z", out->z, sizeof out->z));
}

static result results[STEPS]; /* of the batches, by slots */

static void make_results(test_fixture *t) {
  rondo_compiled *compiled = compile(t, RONDO_STAGING_SLOT, RONDO_STAGING_SLOT, RONDO_STAGING_SLOT);
  for (int i = 0; i < STEPS; i++) {
    feed(compiled, i);
    assert_ok(rondo_compiled_run_eager(compiled));
    fetch(compiled, &results[i]);
  }
  assert_ok(rondo_compiled_destroy(compiled));
}

static void assert_result(rondo_compiled *compiled, int number) {
  result got;
  fetch(compiled, &got);
  assert_memory_equal(&got, &results[number], sizeof got);
}

/* Ways ------------------------------------------------------------------------------------------------------------- */

static const rondo_staging ways[][3] = {
    {RONDO_STAGING_SLOT, RONDO_STAGING_SLOT, RONDO_STAGING_HOST},
    {RONDO_STAGING_HOST, RONDO_STAGING_HOST, RONDO_STAGING_SLOT},
    {RONDO_STAGING_DEVICE, RONDO_STAGING_DEVICE, RONDO_STAGING_SLOT},
    {RONDO_STAGING_DEVICE, RONDO_STAGING_HOST, RONDO_STAGING_HOST},
    {RONDO_STAGING_HOST, RONDO_STAGING_SLOT, RONDO_STAGING_HOST},
};

enum { WAYS = sizeof ways / sizeof ways[0] };

/* The next batch is fed after each run, before its results are read. */
TEST(test_fw3_every_way_gives_the_same_bits) {
  make_results(t);
  for (int way = 0; way < WAYS; way++) {
    rondo_compiled *compiled = compile(t, ways[way][0], ways[way][1], ways[way][2]);
    const bool is_early = ways[way][0] != RONDO_STAGING_SLOT && ways[way][1] != RONDO_STAGING_SLOT;
    if (is_early) feed(compiled, 0);
    for (int i = 0; i < STEPS; i++) {
      if (!is_early) feed(compiled, i);
      assert_ok(i % 3 == 2 ? rondo_compiled_run_eager(compiled) : rondo_compiled_run(compiled));
      if (is_early && i + 1 < STEPS) feed(compiled, i + 1);
      assert_result(compiled, i);
    }
    assert_ok(rondo_compiled_synchronize(compiled));
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

TEST(test_fw3_branches_wait_for_the_copies_they_read) {
  make_results(t);
  const rondo_staged_value staged[] = {
      {"x", RONDO_STAGING_DEVICE}, {"mask", RONDO_STAGING_HOST}, {"y", RONDO_STAGING_HOST}, {"z", RONDO_STAGING_HOST}};
  for (int policy = RONDO_BRANCHES_AUTO; policy <= RONDO_BRANCHES_ALWAYS; policy++) {
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .branches = (rondo_branch_policy)policy,
                                           .staged = staged, .staged_count = sizeof staged / sizeof staged[0]};
    rondo_compiled *compiled = NULL, *weights = compile(t, RONDO_STAGING_SLOT, RONDO_STAGING_SLOT, RONDO_STAGING_SLOT);
    float w[WIDTH * WIDTH];
    assert_ok(rondo_compiled_read(weights, "w", w, sizeof w));
    assert_ok(try_compile(t, &options, &compiled));
    assert_ok(rondo_compiled_write(compiled, "w", w, sizeof w));
    for (int i = 0; i < STEPS; i++) {
      feed(compiled, i);
      assert_ok(rondo_compiled_run(compiled));
      assert_result(compiled, i);
    }
    assert_ok(rondo_compiled_destroy(compiled));
    assert_ok(rondo_compiled_destroy(weights));
  }
}

/* Copies from and to the buffers, and an event after the inputs' and the output's. */
TEST(test_fw3_the_copies_are_nodes_of_the_graph) {
  enum { MOST_NODES = 32 };
  rondo_node nodes[MOST_NODES];
  size_t count = MOST_NODES, from = 0, to = 0, records = 0;
  rondo_compiled *compiled = compile(t, RONDO_STAGING_HOST, RONDO_STAGING_DEVICE, RONDO_STAGING_HOST);
  const rondo_graph *graph = rondo_compiled_graph(compiled);
  const rondo_compiled_value x = test_compiled_value(compiled, 0, "x"), y = test_compiled_value(compiled, 0, "y");
  const rondo_compiled_value mask = test_compiled_value(compiled, 0, "mask");
  assert_int_equal(x.staging, RONDO_STAGING_HOST);
  assert_int_equal(mask.staging, RONDO_STAGING_DEVICE);
  assert_int_equal(y.staging, RONDO_STAGING_HOST);
  assert_int_equal(test_compiled_value(compiled, 0, "z").staging, RONDO_STAGING_SLOT);
  assert_ok(rondo_graph_nodes(graph, nodes, &count));
  assert_true(count <= MOST_NODES);
  for (size_t i = 0; i < count; i++) {
    rondo_node_params params;
    assert_ok(rondo_graph_get_params(graph, nodes[i], &params));
    records += params.kind == RONDO_NODE_EVENT_RECORD;
    if (params.kind != RONDO_NODE_COPY) continue;
    from += params.as.copy.src == x.address || params.as.copy.src == mask.address;
    to += params.as.copy.dst == y.address;
  }
  assert_int_equal(from, 2);
  assert_int_equal(to, 1);
  assert_int_equal(records, 2);
  rondo_compiled_info info = test_compiled_info(compiled);
  assert_int_equal(info.staging_host_bytes, 512);
  assert_int_equal(info.staging_device_bytes, 256);
  assert_true(info.host_bytes > info.staging_host_bytes); /* writes and feeds go through some of it */
}

/* A slot that each run fills again is free after its last use. */
TEST(test_fw3_a_staged_slot_holds_memory_no_longer_than_it_is_read) {
  rondo_program *program = test_new_program();
  rondo_value x, y;
  size_t bytes[2];
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){64, 64}, 2, &x));
  assert_ok(rondo_op_tanh(program, x, &y));
  for (int i = 0; i < 3; i++) assert_ok(rondo_op_softmax(program, y, &y));
  assert_ok(rondo_program_output(program, "y", y));
  const rondo_staged_value staged = {"x", RONDO_STAGING_DEVICE};
  for (size_t i = 0; i < 2; i++) {
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = &staged, .staged_count = i};
    rondo_compiled *compiled = test_compile_kept(program, t->device, &options);
    bytes[i] = test_compiled_info(compiled).arena_bytes;
    assert_ok(rondo_compiled_destroy(compiled));
  }
  assert_int_equal(bytes[0], 3 * sizeof(float[64][64]));
  assert_int_equal(bytes[1], 2 * sizeof(float[64][64]));
}

/* Feeding early ---------------------------------------------------------------------------------------------------- */

/* A run that is queued and held takes what was fed before it, although more is fed while it waits; and the feed does
 * not wait for it. The first run, and one when the graph's event has been recorded before. */
TEST_WORKERS(test_fw3_what_is_fed_after_a_held_run_is_for_the_next) {
  test_skip_if_serial();
  make_results(t);
  for (int eager = 0; eager < 2; eager++) {
    rondo_compiled *compiled = compile(t, RONDO_STAGING_DEVICE, RONDO_STAGING_DEVICE, RONDO_STAGING_SLOT);
    feed(compiled, 0);
    for (int i = 0; i < 4; i++) {
      test_gate gate;
      test_gate_init(&gate);
      assert_ok(rondo_host_async(rondo_compiled_stream(compiled), test_gate_pass, &gate));
      assert_ok(eager ? rondo_compiled_run_eager(compiled) : rondo_compiled_run(compiled));
      feed(compiled, i + 1);
      test_gate_open(&gate);
      assert_result(compiled, i);
      test_gate_destroy(&gate);
    }
    assert_ok(rondo_compiled_run(compiled));
    assert_result(compiled, 4);
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

/* Runs queued without looking at any result: the last one has the last batch. */
TEST(test_fw3_many_batches_may_be_fed_in_advance) {
  make_results(t);
  for (int way = 1; way < 3; way++) {
    rondo_compiled *compiled = compile(t, ways[way][0], ways[way][1], ways[way][2]);
    for (int i = 0; i < STEPS; i++) {
      feed(compiled, i);
      assert_ok(rondo_compiled_run(compiled));
    }
    assert_result(compiled, STEPS - 1);
    feed(compiled, 3);
    feed(compiled, 5); /* instead */
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_run(compiled)); /* the same batch again */
    assert_result(compiled, 5);
    feed(compiled, 7);
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

/* Four times the bytes of the input, at most 16 MiB, whether it is staged or not. */
TEST(test_fw3_the_memory_for_feeding_is_bounded) {
  enum { MOST = 16 << 20, OTHERS = 1 << 20 };
  for (size_t bytes = 2 << 20; bytes <= 10 << 20; bytes += 4 << 20) {
    const rondo_staged_value staged[] = {{"x", RONDO_STAGING_DEVICE}};
    rondo_program *program = test_new_program();
    rondo_value y = test_value(program, 'i', "x", bytes / sizeof(float), 1);
    assert_ok(rondo_op_tanh(program, y, &y));
    assert_ok(rondo_program_output(program, "y", y));
    for (uint32_t count = 0; count < 2; count++) {
      const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = staged, .staged_count = count};
      const rondo_compiled_info info = test_compiled_info(test_compile_kept(program, t->device, &options));
      const uint64_t wanted = 4 * bytes < MOST ? 4 * bytes : MOST;
      assert_true(info.host_bytes >= wanted && info.host_bytes <= wanted + OTHERS);
    }
    rondo_program_destroy(program);
  }
}

TEST(test_fw3_outputs_are_zeros_before_the_first_run) {
  const result zeros = {0};
  result got;
  rondo_compiled *compiled = compile(t, RONDO_STAGING_HOST, RONDO_STAGING_DEVICE, RONDO_STAGING_HOST);
  fetch(compiled, &got);
  assert_memory_equal(&got, &zeros, sizeof got);
  assert_ok(rondo_compiled_read(compiled, "y", got.y, sizeof got.y));
  assert_memory_equal(&got, &zeros, sizeof got);
}

/* Mapping ---------------------------------------------------------------------------------------------------------- */

TEST(test_fw3_host_buffers_are_mapped) {
  make_results(t);
  rondo_compiled *compiled = compile(t, RONDO_STAGING_HOST, RONDO_STAGING_HOST, RONDO_STAGING_HOST);
  for (int i = 0; i < 8; i++) {
    const batch b = make_batch(i);
    void *x = NULL, *mask = NULL;
    assert_ok(rondo_compiled_map(compiled, "x", NULL, &x));
    assert_ok(rondo_compiled_map(compiled, "mask", NULL, &mask));
    memcpy(x, b.x, sizeof b.x);
    memcpy(mask, b.mask, sizeof b.mask);
    assert_ok(rondo_compiled_unmap(compiled, "x"));
    assert_error(rondo_compiled_run(compiled), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
    assert_error(rondo_compiled_run_eager(compiled), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
    assert_message("'mask'");
    assert_ok(rondo_compiled_unmap(compiled, "mask"));
    assert_ok(rondo_compiled_run(compiled));
    if (i % 2 == 0) assert_result(compiled, i);
  }
  assert_result(compiled, 7);
}

/* Another stream writes the buffers, alternating with feeds. */
TEST(test_fw3_device_buffers_are_mapped_for_a_stream) {
  make_results(t);
  rondo_compiled *compiled = compile(t, RONDO_STAGING_DEVICE, RONDO_STAGING_DEVICE, RONDO_STAGING_SLOT);
  rondo_stream *streams[] = {test_stream(t, "producer"), test_stream(t, "another")};
  static batch batches[STEPS];
  for (int i = 0; i < STEPS; i++) {
    void *x = NULL, *mask = NULL;
    rondo_stream *stream = streams[i % 2];
    batches[i] = make_batch(i);
    if (i % 5 == 1) feed(compiled, 0);
    assert_ok(rondo_compiled_map(compiled, "x", stream, &x));
    assert_ok(rondo_compiled_map(compiled, "mask", stream, &mask));
    assert_ok(rondo_copy_async(stream, x, batches[i].x, sizeof batches[i].x));
    assert_ok(rondo_copy_async(stream, mask, batches[i].mask, sizeof batches[i].mask));
    assert_ok(rondo_compiled_unmap(compiled, "x"));
    assert_ok(rondo_compiled_unmap(compiled, "mask"));
    if (i % 5 == 2) feed(compiled, i);
    if (i % 5 == 3) continue;
    assert_ok(rondo_compiled_run(compiled));
    if (i % 5 == 4) assert_result(compiled, i);
  }
  assert_result(compiled, STEPS - 1);
  assert_ok(rondo_compiled_destroy(compiled));
}

TEST(test_fw3_mapping_refuses_what_does_not_fit) {
  rondo_compiled *compiled = compile(t, RONDO_STAGING_HOST, RONDO_STAGING_DEVICE, RONDO_STAGING_SLOT);
  rondo_compiled *slots = compile(t, RONDO_STAGING_SLOT, RONDO_STAGING_SLOT, RONDO_STAGING_SLOT);
  rondo_stream *own = rondo_compiled_stream(compiled);
  void *address = &address;
  assert_invalid(rondo_compiled_map(compiled, "x", t->stream, &address), RONDO_REASON_BAD_OPTIONS);
  assert_null(address);
  assert_invalid(rondo_compiled_map(compiled, "mask", NULL, &address), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_compiled_map(compiled, "mask", own, &address), RONDO_REASON_BAD_OPTIONS);
  assert_invalid(rondo_compiled_map(slots, "x", NULL, &address), RONDO_REASON_NONE);
  assert_error(rondo_compiled_map(compiled, "y", NULL, &address), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_invalid(rondo_compiled_map(NULL, "x", NULL, &address), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_compiled_map(compiled, NULL, NULL, &address), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_compiled_map(compiled, "x", NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_compiled_unmap(compiled, "x"), RONDO_INVALID_STATE, RONDO_REASON_NONE);
  assert_ok(rondo_compiled_map(compiled, "x", NULL, &address));
  const batch b = make_batch(0);
  assert_error(rondo_compiled_map(compiled, "x", NULL, &address), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_error(rondo_compiled_feed(compiled, "x", b.x, sizeof b.x), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_error(rondo_compiled_write(compiled, "x", b.x, sizeof b.x), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
}

TEST(test_fw3_mapping_refuses_a_stream_of_another_device) {
  rondo_stream *stream = NULL;
  void *address;
  rondo_compiled *compiled = compile(t, RONDO_STAGING_DEVICE, RONDO_STAGING_SLOT, RONDO_STAGING_SLOT);
  rondo_device *device = test_device("cpu", NULL);
  assert_ok(rondo_stream_create(device, NULL, &stream));
  assert_invalid(rondo_compiled_map(compiled, "x", stream, &address), RONDO_REASON_OTHER_DEVICE);
  assert_message("use one of the same rondo_device");
  test_stream_destroy(stream);
}

/* Captures --------------------------------------------------------------------------------------------------------- */

/* Each replay takes what the buffers hold then. */
TEST(test_rc5_feeding_is_refused_while_the_stream_captures_and_replays_take_what_is_there) {
  make_results(t);
  rondo_compiled *compiled = compile(t, RONDO_STAGING_HOST, RONDO_STAGING_DEVICE, RONDO_STAGING_HOST);
  rondo_stream *stream = rondo_compiled_stream(compiled);
  const batch b = make_batch(0);
  result got;
  void *address;
  feed(compiled, 0);
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(rondo_compiled_run(compiled), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  rondo_graph *graph = test_capture_end(stream);
  test_graph_destroy(graph);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(rondo_compiled_feed(compiled, "x", b.x, sizeof b.x), RONDO_CAPTURE_REFUSED,
               RONDO_REASON_UNSUPPORTED_CALL);
  assert_error(rondo_compiled_write(compiled, "mask", b.mask, sizeof b.mask), RONDO_CAPTURE_REFUSED,
               RONDO_REASON_UNSUPPORTED_CALL);
  assert_error(rondo_compiled_fetch(compiled, "y", got.y, sizeof got.y), RONDO_CAPTURE_REFUSED,
               RONDO_REASON_UNSUPPORTED_CALL);
  assert_error(rondo_compiled_map(compiled, "x", NULL, &address), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_capture_end(stream, &graph));
  rondo_exec *exec = test_instantiate(graph);
  for (int i = 1; i < 4; i++) {
    feed(compiled, i);
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_write(compiled, "w", (const float[WIDTH * WIDTH]){0}, sizeof(float[WIDTH * WIDTH])));
    assert_ok(rondo_exec_launch(exec, stream));
    fetch(compiled, &got);
    assert_memory_equal(got.y, make_batch(i).mask, sizeof got.y);
    assert_memory_equal(got.z, results[i].z, sizeof got.z);
  }
  test_graph_destroy(graph);
}

TEST(test_rc5_mapping_for_a_stream_that_captures_is_refused) {
  void *address;
  rondo_compiled *compiled = compile(t, RONDO_STAGING_DEVICE, RONDO_STAGING_SLOT, RONDO_STAGING_SLOT);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(rondo_compiled_map(compiled, "x", t->stream, &address), RONDO_CAPTURE_REFUSED,
               RONDO_REASON_UNSUPPORTED_CALL);
  test_graph_destroy(test_capture_end(t->stream));
}

/* Sharing ---------------------------------------------------------------------------------------------------------- */

/* Staged values are not in the arena, so nobody overwrites them. */
TEST(test_fw3_staged_values_of_programs_that_share_are_their_own) {
  make_results(t);
  const rondo_staged_value staged[] = {
      {"x", RONDO_STAGING_DEVICE}, {"mask", RONDO_STAGING_HOST}, {"y", RONDO_STAGING_HOST}, {"z", RONDO_STAGING_HOST}};
  rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = staged, .staged_count = 4};
  rondo_compiled *slots = compile(t, RONDO_STAGING_SLOT, RONDO_STAGING_SLOT, RONDO_STAGING_SLOT), *both[2] = {NULL};
  options.share = slots;
  for (int i = 0; i < 2; i++) assert_ok(try_compile(t, &options, &both[i]));
  for (int i = 0; i < 4; i++) {
    feed(both[0], i);
    feed(both[1], i + 4);
    assert_ok(rondo_compiled_run(both[0]));
    assert_ok(rondo_compiled_run(both[1]));
    assert_result(both[0], i);
    assert_result(both[1], i + 4);
    assert_error(rondo_compiled_run(slots), RONDO_INVALID_STATE, RONDO_REASON_OVERWRITTEN);
  }
}

/* Errors ----------------------------------------------------------------------------------------------------------- */

TEST(test_fw3_staging_refuses_what_does_not_fit) {
  const struct {
    rondo_staged_value staged[2];
    size_t count;
    rondo_status status;
    rondo_reason reason;
  } wrong[] = {
      {{{"nothing", RONDO_STAGING_HOST}}, 1, RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME},
      {{{"w", RONDO_STAGING_HOST}}, 1, RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME},
      {{{NULL, RONDO_STAGING_HOST}}, 1, RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT},
      {{{"x", (rondo_staging)3}}, 1, RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS},
      {{{"y", RONDO_STAGING_DEVICE}}, 1, RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS},
      {{{"x", RONDO_STAGING_HOST}, {"x", RONDO_STAGING_HOST}}, 2, RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_NAME},
  };
  rondo_compiled *compiled = NULL;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = wrong[i].staged,
                                           .staged_count = wrong[i].count};
    assert_error(try_compile(t, &options, &compiled), wrong[i].status, wrong[i].reason);
    assert_null(compiled);
  }
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged_count = 1};
  assert_invalid(try_compile(t, &options, &compiled), RONDO_REASON_NULL_ARGUMENT);
}

/* An output that is an input, state or cell, or an input in another shape: there is no operator after which it could be
 * copied. A state in another shape is a copy of its value in the run. */
TEST(test_fw3_outputs_that_nothing_computes_cannot_be_staged) {
  static const struct {
    const char *output, *shown; /* NULL: it can be staged */
  } rows[] = {{"state", "'w'"}, {"input", "'x'"}, {"cell", "'c'"}, {"flat input", "'x'"}, {"flat state", NULL}};
  const float w_is[6] = {1, 2, 3, 4, 5, 6};
  const size_t shape[] = {2, 3}, flat[] = {6};
  rondo_value w, x, c, flat_w, flat_x;
  rondo_program *program = test_new_program();
  assert_ok(rondo_program_state(program, "w", RONDO_F32, shape, 2, &w));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  assert_ok(rondo_program_cell(program, "c", 1, &c));
  assert_ok(rondo_op_reshape(program, w, flat, 1, &flat_w));
  assert_ok(rondo_op_reshape(program, x, flat, 1, &flat_x));
  const rondo_value outputs[] = {w, x, c, flat_x, flat_w};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_ok(rondo_program_output(program, rows[i].output, outputs[i]));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const rondo_staged_value staged = {rows[i].output, RONDO_STAGING_HOST};
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = &staged, .staged_count = 1};
    rondo_compiled *compiled = NULL;
    if (rows[i].shown != NULL) {
      assert_invalid(rondo_compile(program, t->device, &options, &compiled), RONDO_REASON_BAD_OPTIONS);
      assert_message(rows[i].shown);
      continue;
    }
    float values[6];
    assert_ok(rondo_compile(program, t->device, &options, &compiled));
    assert_ok(rondo_compiled_write(compiled, "w", w_is, sizeof w_is));
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_fetch(compiled, rows[i].output, values, sizeof values));
    assert_memory_equal(values, w_is, sizeof w_is);
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

TEST(test_feeding_refuses_what_does_not_fit) {
  rondo_compiled *compiled = compile(t, RONDO_STAGING_HOST, RONDO_STAGING_DEVICE, RONDO_STAGING_HOST);
  batch b = make_batch(0);
  assert_invalid(rondo_compiled_feed(NULL, "x", b.x, sizeof b.x), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_compiled_feed(compiled, NULL, b.x, sizeof b.x), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_compiled_feed(compiled, "x", NULL, sizeof b.x), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_compiled_feed(compiled, "x", b.x, 4), RONDO_REASON_BAD_SIZE);
  assert_error(rondo_compiled_feed(compiled, "w", b.x, 256), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_message("x, mask");
  assert_error(rondo_compiled_fetch(compiled, "x", b.x, sizeof b.x), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_invalid(rondo_compiled_fetch(compiled, "y", b.x, 8), RONDO_REASON_BAD_SIZE);
  assert_invalid(rondo_compiled_fetch(compiled, "y", NULL, sizeof b.x), RONDO_REASON_NULL_ARGUMENT);
}

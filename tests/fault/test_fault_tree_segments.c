/* SPDX-License-Identifier: MIT
 * Lets every allocation, and every driver call, fail, once or from then on, while functions of a tree with host steps,
 * nested calls and dropped inputs warm up, are recorded, replayed, prepared, cloned and reset. Each call
 * returns an error or the right result. Nothing is left, and afterwards the same tree can do all of the work (TR-1,
 * TR-9, TR-14, TR-15).
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>
#include <string.h>

#include "fault/fault_fake.h"
#include "support/test_tree.h"

enum { WORDS = 32, BYTES = WORDS * sizeof(uint32_t), HELD = 16 };

typedef struct rig {
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *streams[2];
  rondo_tree *tree;
  rondo_function *first, *second, *stepping, *outer;
  uint32_t *x, *mutated;
  rondo_buffer *held[HELD];
  size_t held_count;
  void *unfreed[HELD]; /* by a body, after which it failed */
  size_t unfreed_count;
  bool is_in_step;
} rig;

static bool is_fake; /* the fake driver, which launches nothing: its calls fail, and contents are not compared */

/* Bodies ----------------------------------------------------------------------------------------------------------- */

static rondo_status put(rondo_call *call, size_t index, const void *from) {
  void *out;
  RONDO_TRY(rondo_call_output(call, index, BYTES, NULL, &out));
  return rondo_copy_async(rondo_call_stream(call), out, from, BYTES);
}

/* Through scratch memory; output 1 is the second half. */
static rondo_status first_body(rondo_call *call, void *user) {
  rondo_stream *stream = rondo_call_stream(call);
  rig *r = user;
  void *scratch;
  RONDO_TRY(rondo_malloc_async(stream, 3 * BYTES, NULL, &scratch));
  rondo_status status = rondo_copy_async(stream, scratch, rondo_call_input(call, 0), BYTES);
  if (status == RONDO_OK) status = put(call, 0, scratch);
  const rondo_status freed = rondo_free_async(stream, scratch);
  if (freed != RONDO_OK && r->unfreed_count < HELD) r->unfreed[r->unfreed_count++] = scratch;
  if (status == RONDO_OK) status = freed;
  RONDO_TRY(status);
  return rondo_call_output_of_output(call, 1, 0, BYTES / 2, BYTES / 2, NULL);
}

/* Its second input becomes its first, which is dropped. */
static rondo_status second_body(rondo_call *call, void *user) {
  (void)user;
  RONDO_TRY(rondo_copy_async(rondo_call_stream(call), rondo_call_input(call, 1), rondo_call_input(call, 0), BYTES));
  RONDO_TRY(rondo_call_drop_input(call, 0));
  return put(call, 0, rondo_call_input(call, 1));
}

static rondo_status stepping_body(rondo_call *call, void *user) {
  RONDO_TRY(put(call, 0, rondo_call_input(call, 0)));
  RONDO_TRY(rondo_call_host_step(call, test_host_nothing, user));
  return put(call, 1, rondo_call_input(call, 0));
}

static rondo_status outer_body(rondo_call *call, void *user) {
  const rig *r = user;
  const rondo_input input = {.address = rondo_call_input(call, 0), .bytes = BYTES};
  rondo_buffer *out;
  RONDO_TRY(rondo_function_call(r->first, rondo_call_stream(call), &input, 1, &out, 1));
  void *address;
  rondo_status status = rondo_buffer_address(out, &address);
  if (status == RONDO_OK) status = put(call, 0, address);
  rondo_buffer_release(out);
  return status;
}

/* The work --------------------------------------------------------------------------------------------------------- */

static void hold(rig *r, rondo_buffer *buffer) {
  assert_true(r->held_count < HELD);
  r->held[r->held_count++] = buffer;
}

static void release_held(rig *r) {
  while (r->held_count > 0) rondo_buffer_release(r->held[--r->held_count]);
}

static rondo_status check(rig *r, rondo_stream *stream, const rondo_buffer *buffer, uint32_t first) {
  uint32_t words[WORDS] = {0};
  rondo_buffer_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_buffer_get_info(buffer, &info));
  RONDO_TRY(rondo_buffer_copy(buffer, stream, 0, words, info.bytes));
  RONDO_TRY(rondo_stream_synchronize(stream));
  for (uint32_t i = 0; !is_fake && i < info.bytes / sizeof words[0]; i++) assert_int_equal(words[i], first + i);
  (void)r;
  return RONDO_OK;
}

static rondo_status call(rig *r, rondo_function *function, rondo_stream *stream, const rondo_input *inputs,
                         size_t count, rondo_buffer **outputs, size_t output_count) {
  RONDO_TRY(rondo_function_call(function, stream, inputs, count, outputs, output_count));
  for (size_t i = 0; i < output_count; i++) hold(r, outputs[i]);
  return RONDO_OK;
}

/* x -> first -> second, which drops its input -> stepping; and the outer one on its own. */
static rondo_status do_step(rig *r, rondo_stream *stream) {
  rondo_buffer *y[2], *z, *out[2];
  const rondo_input x = {.address = r->x, .bytes = BYTES};
  RONDO_TRY(call(r, r->first, stream, &x, 1, y, 2));
  const rondo_input of_y[] = {{.buffer = y[0]}, {.address = r->mutated, .bytes = BYTES}};
  RONDO_TRY(call(r, r->second, stream, of_y, 2, &z, 1));
  RONDO_TRY(check(r, stream, y[1], 1 + WORDS / 2));
  const rondo_input given[] = {{.buffer = z, .give = true}, {.address = r->mutated, .bytes = BYTES}};
  rondo_buffer_retain(z); /* the reference that is given is the second one */
  RONDO_TRY(call(r, r->second, stream, given, 2, &z, 1));
  const rondo_input of_z = {.buffer = z};
  RONDO_TRY(call(r, r->stepping, stream, &of_z, 1, out, 2));
  RONDO_TRY(check(r, stream, out[0], 1));
  RONDO_TRY(check(r, stream, out[1], 1));
  RONDO_TRY(call(r, r->outer, stream, &x, 1, out, 1));
  return check(r, stream, out[0], 1);
}

/* What is held of a step is cloned when the next step begins. */
static rondo_status do_steps(rig *r) {
  for (int i = 0; i < 4; i++) {
    rondo_stream *stream = r->streams[i == 3];
    rondo_buffer *kept = NULL;
    if (r->held_count > 0) rondo_buffer_retain(kept = r->held[0]);
    release_held(r);
    if (kept != NULL) hold(r, kept);
    RONDO_TRY(rondo_tree_step_begin(r->tree));
    r->is_in_step = true;
    RONDO_TRY(do_step(r, stream));
    if (kept != NULL) RONDO_TRY(check(r, stream, kept, 1));
    r->is_in_step = false;
    RONDO_TRY(rondo_tree_step_end(r->tree));
  }
  return RONDO_OK;
}

static rondo_status do_all(rig *r) {
  RONDO_TRY(do_steps(r));
  RONDO_TRY(rondo_tree_reset(r->tree));
  release_held(r);
  const rondo_input half = {.address = r->x, .bytes = BYTES};
  const rondo_status prepared = rondo_function_prepare(r->outer, r->streams[0], &half, 1);
  if (prepared != RONDO_OK) return prepared == RONDO_UNSUPPORTED ? RONDO_OUT_OF_MEMORY : prepared; /* MEMORY_LIMIT */
  rondo_buffer *out;
  RONDO_TRY(call(r, r->outer, r->streams[0], &half, 1, &out, 1));
  rondo_buffer *clone;
  RONDO_TRY(rondo_buffer_clone(out, r->streams[0], &clone));
  hold(r, clone);
  RONDO_TRY(check(r, r->streams[0], clone, 1));
  release_held(r);
  return RONDO_OK;
}

/* The rig ---------------------------------------------------------------------------------------------------------- */

static rondo_status make_function(rig *r, const char *name, rondo_function_body body, size_t inputs,
                                  rondo_function **out) {
  static const uint32_t kinds[] = {RONDO_INPUT_MOVING, RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED};
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT, .name = name, .body = body, .user = r, .inputs = kinds, .input_count = inputs};
  return rondo_function_create(r->tree, &options, out);
}

static rondo_status set_up(rig *r) {
  *r = (rig){.device = NULL};
  test_allocator_init(&r->allocator);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &r->allocator.table, .workers = 1};
  if (is_fake)
    r->device = fake_open(&r->allocator.table);
  else
    RONDO_TRY(rondo_device_open("cpu:0", &options, &r->device));
  for (int i = 0; i < 2; i++) RONDO_TRY(rondo_stream_create(r->device, NULL, &r->streams[i]));
  const rondo_tree_options tree = {RONDO_TREE_OPTIONS_INIT, .outputs = RONDO_OUTPUTS_CLONE};
  RONDO_TRY(rondo_tree_create(r->device, &tree, &r->tree));
  RONDO_TRY(make_function(r, "first", first_body, 1, &r->first));
  RONDO_TRY(make_function(r, "second", second_body, 2, &r->second));
  RONDO_TRY(make_function(r, "stepping", stepping_body, 1, &r->stepping));
  RONDO_TRY(make_function(r, "outer", outer_body, 1, &r->outer));
  void *places[2];
  for (int i = 0; i < 2; i++) RONDO_TRY(rondo_malloc(r->device, BYTES, NULL, &places[i]));
  r->x = places[0];
  r->mutated = places[1];
  uint32_t words[WORDS];
  for (uint32_t i = 0; i < WORDS; i++) words[i] = 1 + i;
  RONDO_TRY(rondo_copy_async(r->streams[0], r->x, words, BYTES));
  return rondo_stream_synchronize(r->streams[0]);
}

static void tear_down(rig *r) {
  release_held(r);
  for (size_t i = 0; i < r->unfreed_count; i++) /* what was recorded is gone already */
    rondo_status_ignore(rondo_free(r->device, r->unfreed[i]), "it may be memory of a recording");
  if (r->is_in_step) assert_ok(rondo_tree_step_end(r->tree));
  assert_ok(do_all(r));
  assert_int_equal(test_tree_info(r->tree).live_outputs, 0);
  assert_ok(rondo_tree_destroy(r->tree));
  assert_ok(rondo_free(r->device, r->x));
  assert_ok(rondo_free(r->device, r->mutated));
  for (int i = 0; i < 2; i++) assert_ok(rondo_stream_synchronize(r->streams[i]));
  assert_ok(rondo_memory_trim(r->device));
  rondo_memory_statistics left = {.struct_size = sizeof left};
  assert_ok(rondo_memory_get_statistics(r->device, &left));
  assert_int_equal(left.live_allocations + left.pool_used + left.graph_used + left.arena_backed, 0);
  for (int i = 0; i < 2; i++) assert_ok(rondo_stream_destroy(r->streams[i]));
  if (is_fake)
    assert_int_equal(fake_close(r->device), 0);
  else
    assert_ok(rondo_device_close(r->device));
  assert_true(test_allocator_is_clean(&r->allocator));
}

/* Runs the work once with a failure, and returns its status. */
static rondo_status run(fault_point *point) {
  rig r;
  assert_ok(set_up(&r));
  rondo_device *faulty = is_fake ? r.device : NULL;
  fault_fake_begin(point, faulty, &r.allocator);
  const rondo_status status = do_all(&r);
  fault_fake_end(point, faulty, &r.allocator, status);
  tear_down(&r);
  return status;
}

UNIT_TEST(test_tr15_each_allocation_fails_once) {
  is_fake = false;
  fault_sweep(run, false, false, 50);
}
UNIT_TEST(test_tr15_memory_ends_at_some_allocation) {
  is_fake = false;
  fault_sweep(run, false, true, 50);
}
UNIT_TEST(test_tr15_each_driver_call_fails_once) {
  is_fake = true;
  fault_sweep(run, true, false, 15);
}
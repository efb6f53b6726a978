/* SPDX-License-Identifier: MIT
 * Calls that cannot be recorded (TR-8): each reason has a code, a message that names the cause and a counter, and is an
 * error in a strict tree. The result of the call is still right, and a failed recording leaves nothing (TR-15). Also
 * misuse: stale buffers, two threads, a destroyed tree.
 */
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "support/test_effort.h"
#include "support/test_tree.h"

enum { WORDS = TEST_CASE_WORDS };

/* Four calls: the reason from call `from` (0 the first) on, with the text in its message. */
static void assert_skipped(test_tree_case *c, size_t from, rondo_skip skip, const char *text) {
  for (size_t i = 0; i < 4; i++) {
    test_tree_case_call(c);
    if (i < from) continue;
    const rondo_call_info info = test_last_call(c->tree);
    assert_int_equal(info.outcome, RONDO_CALL_EAGER);
    assert_string_equal(rondo_skip_name(info.skip), rondo_skip_name(skip));
    test_assert_said(c->tree, text);
  }
  const rondo_tree_info info = test_tree_info(c->tree);
  assert_int_equal(info.skipped[skip], 4 - from);
  assert_int_equal(info.recordings, 0);
  assert_int_equal(test_function_info(c->function).last_skip, skip);
}

static void assert_odd_skipped(test_fixture *t, test_case_more odd, size_t from, rondo_skip skip, const char *text) {
  test_tree_case c;
  test_tree_case_make(&c, t, NULL, NULL, odd);
  assert_skipped(&c, from, skip, text);
  test_tree_case_make(&c, t, TEST_TREE_OPTIONS(.strict = true), NULL, odd);
  for (size_t i = 0; i < from; i++) test_tree_case_call(&c);
  rondo_buffer *out;
  assert_error(test_tree_case_try(&c, &out), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED);
  assert_message(rondo_skip_name(skip));
  assert_null(out);
}

/* Reasons ---------------------------------------------------------------------------------------------------------- */

static rondo_status write_input(rondo_call *call, test_tree_case *c) {
  if (rondo_call_stream(call) == NULL) return RONDO_OK;
  test_affine(c->t, rondo_call_stream(call), rondo_call_input(call, 0), WORDS, 1, 0);
  return RONDO_OK;
}

TREE_TEST(test_tr6_undeclared_mutation) {
  if (test_is_guarded(t)) skip(); /* there the write itself is the finding */
  assert_odd_skipped(t, write_input, 1, RONDO_SKIP_MUTATED_INPUT, "input 0 of 'f'");
}

static rondo_status wait_inside(rondo_call *call, test_tree_case *c) {
  (void)c;
  return rondo_stream_synchronize(rondo_call_stream(call));
}

TREE_TEST(test_tr8_host_work) {
  assert_odd_skipped(t, wait_inside, 1, RONDO_SKIP_HOST_WORK, "rondo_stream_synchronize");
  assert_odd_skipped(t, wait_inside, 1, RONDO_SKIP_HOST_WORK, "in a host step (rondo_call_host_step): ");
}

/* Calls that a capture refuses, and one whose failure the body does not pass on. */
static rondo_status wait_and_go_on(rondo_call *call, test_tree_case *c) {
  test_note_error();
  (void)wait_inside(call, c);
  return RONDO_OK;
}

static rondo_status wait_for_device(rondo_call *call, test_tree_case *c) {
  (void)call;
  return rondo_device_synchronize(c->t->device);
}

static rondo_status allocate_at_once(rondo_call *call, test_tree_case *c) {
  (void)call;
  const rondo_status status = rondo_malloc(c->t->device, 256, "at once", &c->user);
  return status == RONDO_OK ? rondo_free(c->t->device, c->user) : status;
}

static rondo_status wait_for_event(rondo_call *call, test_tree_case *c) {
  rondo_event *event = test_event(c->t);
  rondo_status status = rondo_event_record(event, rondo_call_stream(call));
  if (status == RONDO_OK) status = rondo_event_synchronize(event);
  rondo_event_destroy(event);
  return status;
}

static rondo_status wait_for_other_event(rondo_call *call, test_tree_case *c) {
  rondo_event *event = test_event(c->t);
  const rondo_status status = rondo_stream_wait_event(rondo_call_stream(call), event);
  rondo_event_destroy(event);
  return status;
}

/* The capture is the tree's own: advice about captures would not help the tree's caller. */
TREE_TEST(test_tr8_advice_is_for_the_caller) {
  static const struct {
    test_case_more odd;
    rondo_skip skip;
    const char *said;
  } rows[] = {
      {wait_inside, RONDO_SKIP_HOST_WORK, "in a host step (rondo_call_host_step): rondo_stream_synchronize on"},
      {wait_and_go_on, RONDO_SKIP_HOST_WORK, "in a host step (rondo_call_host_step): rondo_stream_synchronize on"},
      {wait_for_device, RONDO_SKIP_HOST_WORK, "in a host step (rondo_call_host_step): rondo_device_synchronize"},
      {allocate_at_once, RONDO_SKIP_HOST_WORK, "in a host step (rondo_call_host_step): rondo_malloc"},
      {wait_for_event, RONDO_SKIP_HOST_WORK, "in a host step (rondo_call_host_step): rondo_event_synchronize"},
      {wait_for_other_event, RONDO_SKIP_OTHER_WORK, "let its stream wait before the call"},
  };
  static const char *const not_said[] = {"end it", "anew", "again", "RELAXED", "before the capture", "is now invalid"};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    test_tree_case c;
    test_tree_case_make(&c, t, NULL, NULL, rows[i].odd);
    if (rows[i].odd == wait_for_other_event) c.from_run = 2; /* a plain run waits for nothing then */
    test_tree_case_call(&c);
    test_tree_case_call(&c);
    const rondo_call_info info = test_last_call(c.tree);
    assert_string_equal(rondo_skip_name(info.skip), rondo_skip_name(rows[i].skip));
    test_assert_said(c.tree, rows[i].said);
    for (size_t k = 0; k < sizeof not_said / sizeof not_said[0]; k++) {
      if (strstr(info.message, not_said[k]) != NULL) print_error("message: %s\n", info.message);
      assert_null(strstr(info.message, not_said[k]));
    }
  }
}

/* Reads the scratch memory and the input on the host, as every profiler print and `if (loss > limit)` does. */
static rondo_status read_on_host(rondo_call *call, test_tree_case *c) {
  rondo_stream *stream = rondo_call_stream(call);
  void *scratch;
  const rondo_malloc_options options = {RONDO_MALLOC_OPTIONS_INIT, .name = "loss"};
  assert_ok(rondo_malloc_async(stream, 3 << 20, &options, &scratch));
  c->count = ((volatile uint32_t *)scratch)[(2 << 20) / sizeof(uint32_t)];
  return rondo_free_async(stream, scratch);
}

static rondo_status read_input_on_host(rondo_call *call, test_tree_case *c) {
  c->count = ((volatile uint32_t *)rondo_call_input(call, 0))[1];
  return RONDO_OK;
}

/* The value that it reads decides what the body returns. */
static rondo_status fail_by_host(rondo_call *call, test_tree_case *c) {
  assert_ok(read_input_on_host(call, c));
  return c->count == 0 ? RONDO_INVALID_DATA : RONDO_OK;
}

static bool is_memory_of_the_host(void) { return strncmp(test_device_name(), "cpu", 3) == 0; }

/* Memory of a recording is not accessible while it is recorded. */
TREE_TEST(test_tr8_host_accesses_in_the_body) {
  if (!is_memory_of_the_host()) skip();
  assert_odd_skipped(t, read_input_on_host, 1, RONDO_SKIP_HOST_WORK, "input 0");
  assert_odd_skipped(t, read_input_on_host, 1, RONDO_SKIP_HOST_WORK, "in a host step (rondo_call_host_step)");
  assert_odd_skipped(t, fail_by_host, 1, RONDO_SKIP_HOST_WORK, "input 0");
  if (test_is_guarded(t)) return; /* there even eager memory is accessible only in stream order */
  assert_odd_skipped(t, read_on_host, 1, RONDO_SKIP_HOST_WORK, "allocation 'loss' of 3.0 MiB");
}

static void open_pipe(int ends[2]) { assert_int_equal(pipe(ends), 0); }

static void close_pipe(const int ends[2]) {
  assert_int_equal(close(ends[0]), 0);
  assert_int_equal(close(ends[1]), 0);
}

/* The kernel accesses the memory, and no signal occurs. */
static rondo_status write_input_to_pipe(rondo_call *call, test_tree_case *c) {
  int ends[2];
  open_pipe(ends);
  const ssize_t written = write(ends[1], rondo_call_input(call, 0), sizeof c->count);
  close_pipe(ends);
  return written == sizeof c->count ? RONDO_OK : RONDO_IO_ERROR;
}

/* It may fail while the body runs eagerly: with cpu:check, nobody may write inputs then. */
static rondo_status read_input_from_pipe(rondo_call *call, test_tree_case *c) {
  const uint32_t first = 0; /* as the input begins */
  int ends[2];
  open_pipe(ends);
  assert_int_equal(write(ends[1], &first, sizeof first), sizeof first);
  const ssize_t got = read(ends[0], rondo_call_input(call, 0), sizeof first);
  close_pipe(ends);
  (void)c;
  (void)got;
  return RONDO_OK;
}

TREE_TEST(test_tr8_system_calls_in_the_body) {
  if (!is_memory_of_the_host() || TEST_HAS_THREAD_SANITIZER) skip(); /* the test is about the body's race */
  assert_odd_skipped(t, write_input_to_pipe, 1, RONDO_SKIP_HOST_WORK, "input 0");
  assert_odd_skipped(t, read_input_from_pipe, 1, RONDO_SKIP_HOST_WORK, "input 0");
}

static rondo_status wait_for_steps(void *user) {
  const _Atomic uint32_t *steps = user;
  while (atomic_load(steps) == 0) (void)sched_yield();
  return RONDO_OK;
}

/* Reads what its stream allocates while the stream is blocked. */
static rondo_status read_too_early(rondo_call *call, test_tree_case *c) {
  static _Atomic uint32_t steps;
  rondo_stream *stream = rondo_call_stream(call);
  if (c->work.runs > 1) return RONDO_OK;
  atomic_store(&steps, 0);
  assert_ok(rondo_host_async(stream, wait_for_steps, &steps));
  const rondo_status status = read_on_host(call, c);
  atomic_store(&steps, 1);
  return status;
}

/* cpu:check: a body that runs eagerly and does not wait for its stream. The call reports it, and the process continues.
 * */
TREE_TEST(test_early_host_accesses_while_warming_up) {
  test_tree_case c;
  rondo_buffer *out = NULL;
  if (!test_is_guarded(t)) skip();
  test_tree_case_make(&c, t, NULL, NULL, read_too_early);
  assert_error(test_tree_case_try(&c, &out), RONDO_EXECUTION_FAILED, RONDO_REASON_NOT_ALLOCATED);
  assert_message(
      "rondo_function_call: the body of 'f' reads, on the host, byte 2097152 of allocation 'loss' (3.0 MiB)");
  assert_message("synchronise the stream before, or do it in a host step (rondo_call_host_step)");
  assert_null(out);
  assert_ok(rondo_stream_synchronize(t->stream));
  for (size_t i = 0; i < 3; i++) test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

static rondo_status waited; /* by another thread, before its join */
static void wait_elsewhere(void *user) { waited = rondo_device_synchronize(user); }

/* Another thread waits for the device, in `count` runs of the body. A run that is recorded does not survive that. */
static rondo_status let_other_wait(rondo_call *call, test_tree_case *c) {
  (void)call;
  if (c->count == 0) return RONDO_OK;
  c->count--;
  test_note_error();
  test_on_thread(wait_elsewhere, c->t->device);
  return waited == RONDO_CAPTURE_REFUSED ? RONDO_OK : waited;
}

/* The recording that dies is not an error. The call runs eagerly and says which call of which thread was the reason;
 * the next one is recorded. */
TREE_TEST(test_ad5_another_thread_ends_the_capture) {
  test_tree_case c;
  test_tree_case_make(&c, t, TEST_TREE_OPTIONS(.strict = true), NULL, let_other_wait);
  c.from_run = 2;
  c.count = 1;
  for (size_t i = 0; i < 2; i++) test_tree_case_call(&c);
  assert_skip(c.tree, CAPTURE_DIED);
  test_assert_said(c.tree, "rondo_device_synchronize");
  test_assert_said(c.tree, "called by thread ");
  for (size_t i = 0; i < 2; i++) test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
  assert_int_equal(test_tree_info(c.tree).skipped[RONDO_SKIP_CAPTURE_DIED], 1);
}

static rondo_status let_other_wait_while_recorded(rondo_call *call, test_tree_case *c) {
  rondo_capture_info info = {.struct_size = sizeof info};
  assert_ok(rondo_capture_get_info(rondo_call_stream(call), &info));
  c->count = info.state == RONDO_CAPTURE_ACTIVE;
  return let_other_wait(call, c);
}

/* They are tried ever more rarely, and recorded when they do not die any more. */
TREE_TEST(test_ad5_captures_that_always_die) {
  test_tree_case c;
  test_tree_case_make(&c, t, NULL, NULL, let_other_wait_while_recorded);
  for (size_t i = 0; i < 40; i++) test_tree_case_call(&c);
  assert_skip(c.tree, CAPTURE_DIED);
  assert_int_equal(test_tree_info(c.tree).rolled_back, 6); /* in calls 2, 3, 5, 9, 17 and 33 */
  assert_int_equal(test_tree_info(c.tree).skipped[RONDO_SKIP_CAPTURE_DIED], 39);
  test_assert_said(c.tree, "called by thread ");
  c.more = NULL;
  for (size_t i = 0; i < 26; i++) test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

static _Atomic uint32_t looked;

static void look_cpu(rondo_blocks blocks, void *const *args) {
  const volatile uint32_t *const *words = args[0];
  (void)blocks;
  (void)(*words)[0];
  atomic_store(&looked, 1);
}

/* Unblocks the other stream while the body is recorded. */
static rondo_status let_other_look(rondo_call *call, test_tree_case *c) {
  (void)call;
  test_gate_open(c->user);
  return wait_for_steps(&looked);
}

/* An output that was released and that is dead by now. */
static void *make_dead_output(test_tree_case *c, test_work *work) {
  rondo_function *first = test_tree_function(c->tree, "first", RONDO_INPUT_MOVING, work);
  void *address = NULL;
  for (uint32_t i = 0; i < 3; i++) {
    rondo_buffer *out = test_call_words(c->t, first, c->words, WORDS);
    assert_ok(rondo_buffer_address(out, &address));
    rondo_buffer_release(out);
  }
  test_tree_case_call(c);
  assert_ok(rondo_device_synchronize(c->t->device));
  return address;
}

/* cpu:check: while a body is recorded, work of another stream that uses memory of the tree after its free still fails,
 * and the body is not blamed for it. */
TREE_TEST(test_use_after_free_while_recording) {
  static const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "look", .cpu = look_cpu,
                                               .params = {RONDO_READS}};
  if (!test_is_guarded(t)) skip();
  test_tree_case c;
  test_gate gate;
  test_work work = {.fixture = t, .factor = 3, .term = 1};
  test_tree_case_make(&c, t, NULL, NULL, let_other_look);
  c.from_run = 2;
  c.user = &gate;
  rondo_stream *other = test_stream(t, "other");
  const void *dead = make_dead_output(&c, &work);
  atomic_store(&looked, 0);
  rondo_kernel *look = test_kernel_make(t, &options);
  test_gate_init(&gate);
  test_gate_hold(&gate, other);
  assert_ok(rondo_launch(other, look, (rondo_grid){1, 0, 0}, RONDO_ARGS(&dead)));
  test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
  assert_error(rondo_stream_synchronize(other), RONDO_EXECUTION_FAILED, RONDO_REASON_USE_AFTER_FREE);
  test_gate_destroy(&gate);
}

static rondo_status say_unsafe(rondo_call *call, test_tree_case *c) {
  (void)c;
  return rondo_call_refuse(call, RONDO_SKIP_UNSAFE, "svd");
}
static rondo_status say_unknown(rondo_call *call, test_tree_case *c) {
  (void)c;
  return rondo_call_refuse(call, RONDO_SKIP_UNKNOWN_SHAPE, "nonzero");
}
static rondo_status say_deterministic(rondo_call *call, test_tree_case *c) {
  (void)c;
  return rondo_call_refuse(call, RONDO_SKIP_UNSAFE_DETERMINISTIC, "scatter");
}

TREE_TEST(test_tr8_unsafe) {
  assert_odd_skipped(t, say_unsafe, 1, RONDO_SKIP_UNSAFE, "svd");
  assert_odd_skipped(t, say_unknown, 1, RONDO_SKIP_UNKNOWN_SHAPE, "nonzero");
  test_tree_case c;
  test_tree_case_make(&c, t, NULL, NULL, say_deterministic);
  for (size_t i = 0; i < 3; i++) test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
  test_tree_case_make(&c, t, TEST_TREE_OPTIONS(.deterministic = true), NULL, say_deterministic);
  assert_skipped(&c, 1, RONDO_SKIP_UNSAFE_DETERMINISTIC, "scatter");
}

TREE_TEST(test_tr8_unsafe_by_options) {
  const rondo_tree_options deterministic = {RONDO_TREE_OPTIONS_INIT, .deterministic = true};
  const rondo_function_options unsafe = {RONDO_FUNCTION_OPTIONS_INIT, .unsafe_deterministic = true};
  test_tree_case c;
  test_tree_case_make(&c, t, NULL, TEST_FUNCTION_OPTIONS(.unsafe = true), NULL);
  assert_skipped(&c, 0, RONDO_SKIP_UNSAFE, "rondo_function_options.unsafe");
  test_tree_case_make(&c, t, &deterministic, &unsafe, NULL);
  assert_skipped(&c, 0, RONDO_SKIP_UNSAFE_DETERMINISTIC, "rondo_function_options.unsafe_deterministic");
  test_tree_case_make(&c, t, NULL, &unsafe, NULL);
  for (size_t i = 0; i < 3; i++) test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

/* Host steps (TR-14) ---------------------------------------------------------------------------------------------- */

static rondo_status count_step(void *user) {
  (*(uint32_t *)user)++;
  return RONDO_OK;
}

static rondo_status take_two_steps(rondo_call *call, test_tree_case *c) {
  TRY(rondo_call_host_step(call, count_step, &c->count));
  return rondo_call_host_step(call, count_step, &c->count);
}

TREE_TEST(test_tr14_host_steps_run_once_a_call) {
  test_tree_case c;
  test_tree_case_make(&c, t, NULL, NULL, take_two_steps);
  for (uint32_t i = 0; i < 4; i++) {
    test_tree_case_call(&c);
    assert_int_equal(c.count, 2 * (i + 1));
  }
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
  assert_int_equal(c.work.runs, 2);
}

TREE_TEST(test_tr8_recording_is_switched_off_and_on) {
  test_tree_case c;
  test_tree_case_make(&c, t, NULL, NULL, NULL);
  for (int i = 0; i < 2; i++) test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
  assert_ok(rondo_function_set_recording(c.function, false));
  test_tree_case_call(&c);
  assert_skip(c.tree, DISABLED);
  assert_ok(rondo_function_set_recording(c.function, true));
  assert_ok(rondo_tree_set_recording(c.tree, false));
  test_tree_case_call(&c);
  assert_skip(c.tree, DISABLED);
  assert_ok(rondo_tree_set_recording(c.tree, true));
  test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

TREE_TEST(test_tr14_trees_without_host_steps) {
  test_tree_case c;
  test_tree_case_make(&c, t, TEST_TREE_OPTIONS(.no_host_steps = true), NULL, take_two_steps);
  assert_skipped(&c, 1, RONDO_SKIP_HOST_WORK, "no_host_steps");
}

/* Bodies that fail ------------------------------------------------------------------------------------------------ */

static rondo_status fail_always(rondo_call *call, test_tree_case *c) {
  (void)call;
  (void)c;
  void *address;
  return rondo_malloc_async(NULL, 1, NULL, &address);
}

TREE_TEST(test_tr15_body_fails) {
  for (uint32_t from = 1; from <= 2; from++) {
    test_tree_case c;
    rondo_buffer *out;
    test_tree_case_make(&c, t, NULL, NULL, fail_always);
    c.from_run = from;
    if (from == 2) test_tree_case_call(&c);
    assert_reason(test_tree_case_try(&c, &out), RONDO_REASON_NULL_ARGUMENT);
    assert_null(out);
    c.from_run = UINT32_MAX;
    for (size_t i = 0; i < 3; i++) test_tree_case_call(&c);
    assert_outcome(c.tree, RONDO_CALL_REPLAYED);
  }
}

/* That status has no words: an older error's would be taken for them. */
static rondo_status is_not_ready(rondo_call *call, test_tree_case *c) {
  (void)call;
  (void)c;
  return RONDO_NOT_READY;
}

TREE_TEST(test_tr15_body_is_not_ready) {
  test_tree_case c;
  rondo_buffer *out;
  void *address;
  test_tree_case_make(&c, t, NULL, NULL, is_not_ready);
  c.from_run = 2;
  test_tree_case_call(&c);
  assert_fails(rondo_malloc(t->device, (size_t)1 << 46, NULL, &address), RONDO_OUT_OF_MEMORY);
  assert_int_equal(test_tree_case_try(&c, &out), RONDO_NOT_READY);
  assert_null(out);
  const rondo_function_info info = test_function_info(c.function);
  assert_int_equal(info.skipped[RONDO_SKIP_OTHER_WORK], 1);
  assert_int_equal(info.skipped[RONDO_SKIP_MEMORY_LIMIT], 0);
  c.from_run = UINT32_MAX;
  for (size_t i = 0; i < 3; i++) test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

static rondo_status leave_gap(rondo_call *call, test_tree_case *c) {
  void *address;
  (void)c;
  return rondo_call_output(call, 2, 16, NULL, &address);
}

TREE_TEST(test_no_output) {
  test_tree_case c;
  rondo_buffer *out[2];
  test_tree_case_make(&c, t, NULL, NULL, leave_gap);
  const rondo_input input = {.address = c.words, .bytes = WORDS * sizeof(uint32_t)};
  assert_error(test_tree_case_try(&c, out), RONDO_INVALID_STATE, RONDO_REASON_NO_OUTPUT);
  assert_null(out[0]);
  c.from_run = UINT32_MAX;
  for (size_t i = 0; i < 3; i++)
    assert_invalid(rondo_function_call(c.function, t->stream, &input, 1, out, 2), RONDO_REASON_ARGUMENT_COUNT);
  assert_invalid(rondo_function_call(c.function, t->stream, &input, 0, out, 1), RONDO_REASON_ARGUMENT_COUNT);
  for (size_t i = 0; i < 3; i++) test_tree_case_call(&c);
}

/* Limits ---------------------------------------------------------------------------------------------------------- */

/* TR-7: the least recently used recordings are freed. */
TREE_TEST(test_tr7_recordings_are_bounded) {
  test_tree_case c;
  test_tree_case_make(&c, t, TEST_TREE_OPTIONS(.max_recordings = 3), NULL, NULL);
  for (size_t words = 1; words <= 8; words++)
    for (size_t i = 0; i < 3; i++) rondo_buffer_release(test_call_words(t, c.function, c.words, words));
  const rondo_tree_info info = test_tree_info(c.tree);
  assert_int_equal(info.recordings, 3);
  assert_int_equal(info.recorded, 8);
  assert_int_equal(info.evicted, 5);
}

TREE_TEST(test_tr8_memory_limit) {
  test_tree_case c;
  test_tree_case_make(&c, t, TEST_TREE_OPTIONS(.max_bytes = 256), NULL, NULL);
  assert_skipped(&c, 1, RONDO_SKIP_MEMORY_LIMIT, "");
}

/* Other ways in --------------------------------------------------------------------------------------------------- */

static rondo_status call_inner(rondo_call *call, test_tree_case *c) {
  const rondo_input input = {.address = rondo_call_input(call, 0), .bytes = WORDS * sizeof(uint32_t)};
  rondo_buffer *out;
  assert_ok(rondo_function_call(c->user, rondo_call_stream(call), &input, 1, &out, 1));
  rondo_buffer_release(out);
  return RONDO_OK;
}

TREE_TEST(test_nested_calls_are_parts) {
  test_tree_case c;
  test_work inner = {.fixture = t, .factor = 2, .term = 2};
  test_tree_case_make(&c, t, NULL, NULL, call_inner);
  c.user = test_tree_function(c.tree, "inner", RONDO_INPUT_MOVING, &inner);
  for (size_t i = 0; i < 5; i++) test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
  assert_int_equal(inner.runs, 2);
  assert_int_equal(test_tree_info(c.tree).recordings, 1);
}

/* A capture of the caller's takes the body's work in. */
TREE_TEST(test_calls_while_capturing) {
  test_tree_case c;
  rondo_buffer *out;
  test_tree_case_make(&c, t, NULL, NULL, NULL);
  for (size_t i = 0; i < 3; i++) test_tree_case_call(&c);
  uint32_t *result = test_words(t, WORDS);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(test_tree_case_try(&c, &out));
  assert_ok(rondo_buffer_copy(out, t->stream, 0, result, WORDS * sizeof(uint32_t)));
  void *address;
  assert_ok(rondo_buffer_address(out, &address));
  assert_ok(rondo_free_async(t->stream, address));
  rondo_graph *graph = test_capture_end(t->stream);
  test_run_once(t, graph);
  uint32_t expected[WORDS];
  for (uint32_t i = 0; i < WORDS; i++) expected[i] = 3 * i + 1;
  assert_words(t, result, expected, WORDS);
  rondo_buffer_release(out);
}

static rondo_status destroy_tree(rondo_call *call, test_tree_case *c) {
  (void)call;
  assert_error(rondo_tree_destroy(c->tree), RONDO_INVALID_STATE, RONDO_REASON_CONCURRENT_USE);
  assert_error(rondo_tree_mark_step(c->tree), RONDO_INVALID_STATE, RONDO_REASON_CONCURRENT_USE);
  return RONDO_OK;
}

TREE_TEST(test_bodies_may_not_use_the_tree) {
  test_tree_case c;
  test_tree_case_make(&c, t, NULL, NULL, destroy_tree);
  for (size_t i = 0; i < 3; i++) test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

static void call_elsewhere(void *user) {
  test_tree_case *c = user;
  rondo_buffer *out;
  c->count =
      test_tree_case_try(c, &out) == RONDO_INVALID_STATE && rondo_last_error()->reason == RONDO_REASON_CONCURRENT_USE;
}
static rondo_status call_from_thread(rondo_call *call, test_tree_case *c) {
  (void)call;
  test_on_thread(call_elsewhere, c);
  assert_true(c->count);
  return RONDO_OK;
}

TREE_TEST(test_two_threads_are_found) {
  test_tree_case c;
  test_tree_case_make(&c, t, NULL, NULL, call_from_thread);
  test_tree_case_call(&c);
  test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
}

TREE_TEST(test_buffers_outlive_their_tree) {
  test_tree_case c;
  rondo_buffer *outs[4];
  test_tree_case_make(&c, t, NULL, NULL, NULL);
  for (size_t i = 0; i < 3; i++) outs[i] = test_call_words(t, c.function, c.words, WORDS);
  assert_ok(rondo_buffer_create(c.tree, 64, NULL, &outs[3]));
  test_tree_destroy(c.tree);
  for (size_t i = 0; i < 4; i++) {
    void *address;
    assert_error(rondo_buffer_address(outs[i], &address), RONDO_INVALID_STATE, RONDO_REASON_TREE_GONE);
    rondo_buffer_release(outs[i]);
  }
}

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

enum { WORDS = 32 };

/* A body that runs a case's addition and its own work: out = in * 3 + 1. */
typedef struct odd_work {
  test_work work;
  rondo_tree *tree;
  rondo_function *inner;
  rondo_status (*odd)(rondo_call *call, struct odd_work *odd);
  void *memory;
  rondo_stream *other;
  uint32_t from_run; /* the odd thing is done from this run on */
  uint32_t steps;    /* host steps taken */
  uint32_t read;     /* by the host */
} odd_work;

static rondo_status odd_body(rondo_call *call, void *user) {
  odd_work *odd = user;
  const rondo_status status = test_body_affine(call, &odd->work);
  if (status != RONDO_OK || odd->work.runs < odd->from_run) return status;
  return odd->odd(call, odd);
}

typedef struct odd_case {
  test_fixture *t;
  rondo_tree *tree;
  rondo_function *function;
  uint32_t *words;
  odd_work odd;
} odd_case;

static const rondo_tree_options usual_tree = {RONDO_TREE_OPTIONS_INIT};
static const rondo_function_options usual = {RONDO_FUNCTION_OPTIONS_INIT};

static void make_case(test_fixture *t, odd_case *c, rondo_tree_options options, rondo_function_options function,
                      rondo_status (*odd)(rondo_call *call, odd_work *odd)) {
  uint32_t values[WORDS];
  *c = (odd_case){.t = t, .words = test_words(t, WORDS)};
  for (uint32_t i = 0; i < WORDS; i++) values[i] = i;
  test_write(t, c->words, values, sizeof values);
  c->odd = (odd_work){.work = {.fixture = t, .factor = 3, .term = 1}, .odd = odd, .from_run = 1};
  c->tree = test_tree(t, &options);
  c->odd.tree = c->tree;
  function.name = "odd";
  function.body = odd_body;
  function.user = &c->odd;
  static const uint32_t moving = RONDO_INPUT_MOVING;
  if (function.inputs == NULL) function.inputs = &moving;
  function.input_count = 1;
  assert_ok(rondo_function_create(c->tree, &function, &c->function));
}

/* Calls: the result is right. */
static void call_case(odd_case *c) {
  rondo_buffer *out = test_call_words(c->t, c->function, c->words, WORDS);
  test_assert_buffer(c->t, out, 1, 3);
  rondo_buffer_release(out);
}

/* Four calls: the reason from call `from` (0 the first) on, with the text in its message. */
static void assert_skipped(odd_case *c, size_t from, rondo_skip skip, const char *text) {
  for (size_t i = 0; i < 4; i++) {
    call_case(c);
    if (i < from) continue;
    const rondo_call_info info = test_last_call(c->tree);
    assert_int_equal(info.outcome, RONDO_CALL_EAGER);
    assert_string_equal(rondo_skip_name(info.skip), rondo_skip_name(skip));
    if (strstr(info.message, text) == NULL) print_error("message: %s\n", info.message);
    assert_non_null(strstr(info.message, text));
  }
  const rondo_tree_info info = test_tree_info(c->tree);
  assert_int_equal(info.skipped[skip], 4 - from);
  assert_int_equal(info.recordings, 0);
  assert_int_equal(test_function_info(c->function).last_skip, skip);
}

static void assert_odd_skipped(test_fixture *t, rondo_status (*odd)(rondo_call *call, odd_work *odd), size_t from,
                               rondo_skip skip, const char *text) {
  odd_case c;
  make_case(t, &c, usual_tree, usual, odd);
  assert_skipped(&c, from, skip, text);
  make_case(t, &c, (rondo_tree_options){RONDO_TREE_OPTIONS_INIT, .strict = true}, usual, odd);
  for (size_t i = 0; i < from; i++) call_case(&c);
  const rondo_input input = {.address = c.words, .bytes = WORDS * sizeof(uint32_t)};
  rondo_buffer *out;
  assert_error(rondo_function_call(c.function, t->stream, &input, 1, &out, 1), RONDO_UNSUPPORTED,
               RONDO_REASON_NOT_RECORDED);
  assert_message(rondo_skip_name(skip));
  assert_null(out);
}

/* Reasons ---------------------------------------------------------------------------------------------------------- */

static rondo_status write_input(rondo_call *call, odd_work *odd) {
  if (rondo_call_stream(call) == NULL) return RONDO_OK;
  test_affine(odd->work.fixture, rondo_call_stream(call), rondo_call_input(call, 0), WORDS, 1, 0);
  return RONDO_OK;
}

TREE_TEST(test_tr6_undeclared_mutation) {
  if (test_is_guarded(t)) skip(); /* there the write itself is the finding */
  assert_odd_skipped(t, write_input, 1, RONDO_SKIP_MUTATED_INPUT, "input 0 of 'odd'");
}

static rondo_status wait_inside(rondo_call *call, odd_work *odd) {
  (void)odd;
  return rondo_stream_synchronize(rondo_call_stream(call));
}

TREE_TEST(test_tr8_host_work) {
  assert_odd_skipped(t, wait_inside, 1, RONDO_SKIP_HOST_WORK, "rondo_stream_synchronize");
  assert_odd_skipped(t, wait_inside, 1, RONDO_SKIP_HOST_WORK, "in a host step (rondo_call_host_step): ");
}

/* Calls that a capture refuses, and one whose failure the body does not pass on. */
static rondo_status wait_and_go_on(rondo_call *call, odd_work *odd) {
  test_note_error();
  (void)wait_inside(call, odd);
  return RONDO_OK;
}

static rondo_status wait_for_device(rondo_call *call, odd_work *odd) {
  (void)call;
  return rondo_device_synchronize(odd->work.fixture->device);
}

static rondo_status allocate_at_once(rondo_call *call, odd_work *odd) {
  (void)call;
  const rondo_status status = rondo_malloc(odd->work.fixture->device, 256, "at once", &odd->memory);
  return status == RONDO_OK ? rondo_free(odd->work.fixture->device, odd->memory) : status;
}

static rondo_status wait_for_event(rondo_call *call, odd_work *odd) {
  rondo_event *event = test_event(odd->work.fixture);
  rondo_status status = rondo_event_record(event, rondo_call_stream(call));
  if (status == RONDO_OK) status = rondo_event_synchronize(event);
  rondo_event_destroy(event);
  return status;
}

static rondo_status wait_for_other_event(rondo_call *call, odd_work *odd) {
  rondo_event *event = test_event(odd->work.fixture);
  const rondo_status status = rondo_stream_wait_event(rondo_call_stream(call), event);
  rondo_event_destroy(event);
  return status;
}

/* The capture is the tree's own: advice about captures would not help the tree's caller. */
TREE_TEST(test_tr8_advice_is_for_the_caller) {
  static const struct {
    rondo_status (*odd)(rondo_call *call, odd_work *odd);
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
    odd_case c;
    make_case(t, &c, usual_tree, usual, rows[i].odd);
    if (rows[i].odd == wait_for_other_event) c.odd.from_run = 2; /* a plain run waits for nothing then */
    call_case(&c);
    call_case(&c);
    const rondo_call_info info = test_last_call(c.tree);
    assert_string_equal(rondo_skip_name(info.skip), rondo_skip_name(rows[i].skip));
    if (strstr(info.message, rows[i].said) == NULL) print_error("message: %s\n", info.message);
    assert_non_null(strstr(info.message, rows[i].said));
    for (size_t k = 0; k < sizeof not_said / sizeof not_said[0]; k++) {
      if (strstr(info.message, not_said[k]) != NULL) print_error("message: %s\n", info.message);
      assert_null(strstr(info.message, not_said[k]));
    }
  }
}

/* Reads the scratch memory and the input on the host, as every profiler print and `if (loss > limit)` does. */
static rondo_status read_on_host(rondo_call *call, odd_work *odd) {
  rondo_stream *stream = rondo_call_stream(call);
  void *scratch;
  const rondo_malloc_options options = {RONDO_MALLOC_OPTIONS_INIT, .name = "loss"};
  assert_ok(rondo_malloc_async(stream, 3 << 20, &options, &scratch));
  odd->read = ((volatile uint32_t *)scratch)[(2 << 20) / sizeof(uint32_t)];
  return rondo_free_async(stream, scratch);
}

static rondo_status read_input_on_host(rondo_call *call, odd_work *odd) {
  odd->read = ((volatile uint32_t *)rondo_call_input(call, 0))[1];
  return RONDO_OK;
}

/* The value that it reads decides what the body returns. */
static rondo_status fail_by_host(rondo_call *call, odd_work *odd) {
  assert_ok(read_input_on_host(call, odd));
  return odd->read == 0 ? RONDO_INVALID_DATA : RONDO_OK;
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
static rondo_status write_input_to_pipe(rondo_call *call, odd_work *odd) {
  int ends[2];
  open_pipe(ends);
  const ssize_t written = write(ends[1], rondo_call_input(call, 0), sizeof odd->read);
  close_pipe(ends);
  return written == sizeof odd->read ? RONDO_OK : RONDO_IO_ERROR;
}

/* It may fail while the body runs eagerly: with cpu:check, nobody may write inputs then. */
static rondo_status read_input_from_pipe(rondo_call *call, odd_work *odd) {
  const uint32_t first = 0; /* as the input begins */
  int ends[2];
  open_pipe(ends);
  assert_int_equal(write(ends[1], &first, sizeof first), sizeof first);
  const ssize_t got = read(ends[0], rondo_call_input(call, 0), sizeof first);
  close_pipe(ends);
  (void)odd;
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
static rondo_status read_too_early(rondo_call *call, odd_work *odd) {
  static _Atomic uint32_t steps;
  rondo_stream *stream = rondo_call_stream(call);
  if (odd->work.runs > 1) return RONDO_OK;
  atomic_store(&steps, 0);
  assert_ok(rondo_host_async(stream, wait_for_steps, &steps));
  const rondo_status status = read_on_host(call, odd);
  atomic_store(&steps, 1);
  return status;
}

/* cpu:check: a body that runs eagerly and does not wait for its stream. The call reports it, and the process continues.
 * */
TREE_TEST(test_early_host_accesses_while_warming_up) {
  odd_case c;
  rondo_buffer *out = NULL;
  if (!test_is_guarded(t)) skip();
  make_case(t, &c, usual_tree, usual, read_too_early);
  const rondo_input input = {.address = c.words, .bytes = WORDS * sizeof(uint32_t)};
  assert_error(rondo_function_call(c.function, t->stream, &input, 1, &out, 1), RONDO_EXECUTION_FAILED,
               RONDO_REASON_NOT_ALLOCATED);
  assert_message(
      "rondo_function_call: the body of 'odd' reads, on the host, byte 2097152 of allocation 'loss' (3.0 MiB)");
  assert_message("synchronise the stream before, or do it in a host step (rondo_call_host_step)");
  assert_null(out);
  assert_ok(rondo_stream_synchronize(t->stream));
  for (size_t i = 0; i < 3; i++) call_case(&c);
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
static rondo_status let_other_look(rondo_call *call, odd_work *odd) {
  (void)call;
  test_gate_open(odd->memory);
  return wait_for_steps(&looked);
}

/* An output that was released and that is dead by now. */
static void *make_dead_output(odd_case *c, test_work *work) {
  rondo_function *first = test_tree_function(c->tree, "first", RONDO_INPUT_MOVING, work);
  void *address = NULL;
  for (uint32_t i = 0; i < 3; i++) {
    rondo_buffer *out = test_call_words(c->t, first, c->words, WORDS);
    assert_ok(rondo_buffer_address(out, &address));
    rondo_buffer_release(out);
  }
  call_case(c);
  assert_ok(rondo_device_synchronize(c->t->device));
  return address;
}

/* cpu:check: while a body is recorded, work of another stream that uses memory of the tree after its free still fails,
 * and the body is not blamed for it. */
TREE_TEST(test_use_after_free_while_recording) {
  static const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "look", .cpu = look_cpu,
                                               .params = {RONDO_READS}};
  if (!test_is_guarded(t)) skip();
  odd_case c;
  test_gate gate;
  test_work work = {.fixture = t, .factor = 3, .term = 1};
  make_case(t, &c, usual_tree, usual, let_other_look);
  c.odd.from_run = 2;
  c.odd.memory = &gate;
  rondo_stream *other = test_stream(t, "other");
  const void *dead = make_dead_output(&c, &work);
  atomic_store(&looked, 0);
  rondo_kernel *look = test_kernel_make(t, &options);
  test_gate_init(&gate);
  test_gate_hold(&gate, other);
  assert_ok(rondo_launch(other, look, (rondo_grid){1, 0, 0}, RONDO_ARGS(&dead)));
  call_case(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
  assert_error(rondo_stream_synchronize(other), RONDO_EXECUTION_FAILED, RONDO_REASON_USE_AFTER_FREE);
  test_gate_destroy(&gate);
}

static rondo_status keep_memory(rondo_call *call, odd_work *odd) {
  assert_ok(rondo_malloc_async(rondo_call_stream(call), 512, NULL, &odd->memory));
  return odd->work.runs > 1 ? RONDO_OK : rondo_free_async(rondo_call_stream(call), odd->memory);
}

/* The third run is the plain one after the recording that failed. */
TREE_TEST(test_tr15_kept_memory) {
  odd_case c;
  make_case(t, &c, usual_tree, usual, keep_memory);
  call_case(&c);
  call_case(&c);
  assert_skip(c.tree, KEPT_MEMORY);
  assert_int_equal(test_tree_info(c.tree).rolled_back, 1);
  assert_int_equal(test_tree_info(c.tree).recordings, 0);
  assert_ok(rondo_free_async(t->stream, c.odd.memory));
}

static rondo_status say_unsafe(rondo_call *call, odd_work *odd) {
  (void)odd;
  return rondo_call_refuse(call, RONDO_SKIP_UNSAFE, "svd");
}
static rondo_status say_unknown(rondo_call *call, odd_work *odd) {
  (void)odd;
  return rondo_call_refuse(call, RONDO_SKIP_UNKNOWN_SHAPE, "nonzero");
}
static rondo_status say_deterministic(rondo_call *call, odd_work *odd) {
  (void)odd;
  return rondo_call_refuse(call, RONDO_SKIP_UNSAFE_DETERMINISTIC, "scatter");
}

TREE_TEST(test_tr8_unsafe) {
  assert_odd_skipped(t, say_unsafe, 1, RONDO_SKIP_UNSAFE, "svd");
  assert_odd_skipped(t, say_unknown, 1, RONDO_SKIP_UNKNOWN_SHAPE, "nonzero");
  odd_case c;
  make_case(t, &c, usual_tree, usual, say_deterministic);
  for (size_t i = 0; i < 3; i++) call_case(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
  make_case(t, &c, (rondo_tree_options){RONDO_TREE_OPTIONS_INIT, .deterministic = true}, usual, say_deterministic);
  assert_skipped(&c, 1, RONDO_SKIP_UNSAFE_DETERMINISTIC, "scatter");
}

static rondo_status say_nothing(rondo_call *call, odd_work *odd) {
  (void)call;
  (void)odd;
  return RONDO_OK;
}

TREE_TEST(test_tr8_unsafe_by_options) {
  const rondo_tree_options deterministic = {RONDO_TREE_OPTIONS_INIT, .deterministic = true};
  const rondo_function_options unsafe = {RONDO_FUNCTION_OPTIONS_INIT, .unsafe_deterministic = true};
  odd_case c;
  make_case(t, &c, usual_tree, (rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .unsafe = true}, say_nothing);
  assert_skipped(&c, 0, RONDO_SKIP_UNSAFE, "rondo_function_options.unsafe");
  make_case(t, &c, deterministic, unsafe, say_nothing);
  assert_skipped(&c, 0, RONDO_SKIP_UNSAFE_DETERMINISTIC, "rondo_function_options.unsafe_deterministic");
  make_case(t, &c, usual_tree, unsafe, say_nothing);
  for (size_t i = 0; i < 3; i++) call_case(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

/* Host steps (TR-14) ---------------------------------------------------------------------------------------------- */

static rondo_status count_step(void *user) {
  ((odd_work *)user)->steps++;
  return RONDO_OK;
}
static rondo_status take_steps(rondo_call *call, odd_work *odd) {
  for (int i = 0; i < 2; i++) {
    assert_ok(rondo_call_host_step(call, count_step, odd));
    void *scratch = test_allocate_async(rondo_call_stream(call), 1024);
    assert_ok(rondo_copy_async(rondo_call_stream(call), scratch, rondo_call_input(call, 0), WORDS * sizeof(uint32_t)));
    assert_ok(rondo_free_async(rondo_call_stream(call), scratch));
  }
  return RONDO_OK;
}

TREE_TEST(test_tr14_segments) {
  odd_case c;
  make_case(t, &c, usual_tree, usual, take_steps);
  for (uint32_t i = 0; i < 4; i++) {
    call_case(&c);
    assert_int_equal(c.odd.steps, 2 * (i + 1));
  }
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
  assert_int_equal(c.odd.work.runs, 2);
  make_case(t, &c, (rondo_tree_options){RONDO_TREE_OPTIONS_INIT, .no_host_steps = true}, usual, take_steps);
  assert_skipped(&c, 1, RONDO_SKIP_HOST_WORK, "no_host_steps");
}

/* Bodies that fail ------------------------------------------------------------------------------------------------ */

static rondo_status fail_always(rondo_call *call, odd_work *odd) {
  (void)call;
  (void)odd;
  void *address;
  return rondo_malloc_async(NULL, 1, NULL, &address);
}

TREE_TEST(test_tr15_body_fails) {
  for (uint32_t from = 1; from <= 2; from++) {
    odd_case c;
    rondo_buffer *out;
    make_case(t, &c, usual_tree, usual, fail_always);
    const rondo_input input = {.address = c.words, .bytes = WORDS * sizeof(uint32_t)};
    c.odd.from_run = from;
    if (from == 2) call_case(&c);
    assert_reason(rondo_function_call(c.function, t->stream, &input, 1, &out, 1), RONDO_REASON_NULL_ARGUMENT);
    assert_null(out);
    c.odd.from_run = UINT32_MAX;
    for (size_t i = 0; i < 3; i++) call_case(&c);
    assert_outcome(c.tree, RONDO_CALL_REPLAYED);
  }
}

/* That status has no words: an older error's would be taken for them. */
static rondo_status is_not_ready(rondo_call *call, odd_work *odd) {
  (void)call;
  (void)odd;
  return RONDO_NOT_READY;
}

TREE_TEST(test_tr15_body_is_not_ready) {
  odd_case c;
  rondo_buffer *out;
  void *address;
  make_case(t, &c, usual_tree, usual, is_not_ready);
  const rondo_input input = {.address = c.words, .bytes = WORDS * sizeof(uint32_t)};
  c.odd.from_run = 2;
  call_case(&c);
  assert_fails(rondo_malloc(t->device, (size_t)1 << 46, NULL, &address), RONDO_OUT_OF_MEMORY);
  assert_int_equal(rondo_function_call(c.function, t->stream, &input, 1, &out, 1), RONDO_NOT_READY);
  assert_null(out);
  const rondo_function_info info = test_function_info(c.function);
  assert_int_equal(info.skipped[RONDO_SKIP_OTHER_WORK], 1);
  assert_int_equal(info.skipped[RONDO_SKIP_MEMORY_LIMIT], 0);
  c.odd.from_run = UINT32_MAX;
  for (size_t i = 0; i < 3; i++) call_case(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

static rondo_status leave_gap(rondo_call *call, odd_work *odd) {
  void *address;
  (void)odd;
  return rondo_call_output(call, 2, 16, NULL, &address);
}

TREE_TEST(test_no_output) {
  odd_case c;
  rondo_buffer *out[2];
  make_case(t, &c, usual_tree, usual, leave_gap);
  const rondo_input input = {.address = c.words, .bytes = WORDS * sizeof(uint32_t)};
  assert_error(rondo_function_call(c.function, t->stream, &input, 1, out, 1), RONDO_INVALID_STATE,
               RONDO_REASON_NO_OUTPUT);
  assert_null(out[0]);
  c.odd.from_run = UINT32_MAX;
  for (size_t i = 0; i < 3; i++)
    assert_invalid(rondo_function_call(c.function, t->stream, &input, 1, out, 2), RONDO_REASON_ARGUMENT_COUNT);
  assert_invalid(rondo_function_call(c.function, t->stream, &input, 0, out, 1), RONDO_REASON_ARGUMENT_COUNT);
  for (size_t i = 0; i < 3; i++) call_case(&c);
}

/* Limits ---------------------------------------------------------------------------------------------------------- */

static rondo_status nothing(rondo_call *call, odd_work *odd) {
  (void)call;
  (void)odd;
  return RONDO_OK;
}

/* TR-7: shapes up to the limit are recorded and continue to be replayed; others run eagerly. */
TREE_TEST(test_tr7_shape_limit) {
  odd_case c;
  make_case(t, &c, usual_tree, (rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .max_shapes = 2}, nothing);
  for (size_t round = 0; round < 4; round++) {
    for (size_t words = 4; words <= 10; words += 2) {
      rondo_buffer *out = test_call_words(t, c.function, c.words, words);
      test_assert_buffer(t, out, 1, 3);
      rondo_buffer_release(out);
      if (words > 6) assert_skip(c.tree, SHAPE_LIMIT);
      if (words <= 6 && round > 1) assert_outcome(c.tree, RONDO_CALL_REPLAYED);
    }
  }
  assert_int_equal(test_tree_info(c.tree).recordings, 2);
  make_case(t, &c, usual_tree, (rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .static_shapes = true}, nothing);
  call_case(&c);
  for (size_t i = 0; i < 3; i++) {
    rondo_buffer_release(test_call_words(t, c.function, c.words, 4));
    assert_skip(c.tree, CHANGING_SHAPES);
  }
}

/* TR-7: the least recently used recordings are freed. */
TREE_TEST(test_tr7_recordings_are_bounded) {
  odd_case c;
  make_case(t, &c, (rondo_tree_options){RONDO_TREE_OPTIONS_INIT, .max_recordings = 3}, usual, nothing);
  for (size_t words = 1; words <= 8; words++)
    for (size_t i = 0; i < 3; i++) rondo_buffer_release(test_call_words(t, c.function, c.words, words));
  const rondo_tree_info info = test_tree_info(c.tree);
  assert_int_equal(info.recordings, 3);
  assert_int_equal(info.recorded, 8);
  assert_int_equal(info.evicted, 5);
}

TREE_TEST(test_tr8_memory_limit) {
  odd_case c;
  make_case(t, &c, (rondo_tree_options){RONDO_TREE_OPTIONS_INIT, .max_bytes = 256}, usual, nothing);
  assert_skipped(&c, 1, RONDO_SKIP_MEMORY_LIMIT, "");
}

static bool say_no(void *user, const rondo_recording_question *question) {
  return *(bool *)user && question->recordings < 100;
}

TREE_TEST(test_tr8_policy) {
  odd_case c;
  bool allows = false;
  make_case(t, &c, (rondo_tree_options){RONDO_TREE_OPTIONS_INIT, .should_record = say_no, .user = &allows}, usual,
            nothing);
  assert_skipped(&c, 1, RONDO_SKIP_REFUSED, "should_record");
  allows = true;
  call_case(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
  assert_ok(rondo_function_set_recording(c.function, false));
  call_case(&c);
  assert_skip(c.tree, DISABLED);
  assert_ok(rondo_function_set_recording(c.function, true));
  assert_ok(rondo_tree_set_recording(c.tree, false));
  call_case(&c);
  assert_skip(c.tree, DISABLED);
  assert_ok(rondo_tree_set_recording(c.tree, true));
  call_case(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
  make_case(t, &c, usual_tree, (rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .min_nodes = 100}, nothing);
  assert_skipped(&c, 1, RONDO_SKIP_TOO_SMALL, "min_nodes");
}

/* Warm-ups -------------------------------------------------------------------------------------------------------- */

static rondo_status again(rondo_call *call, odd_work *odd) {
  return odd->work.runs < 3 ? rondo_call_warm_up_again(call) : RONDO_OK;
}

TREE_TEST(test_tr1_warm_up_again) {
  odd_case c;
  make_case(t, &c, usual_tree, usual, again);
  for (size_t i = 0; i < 3; i++) {
    call_case(&c);
    assert_skip(c.tree, WARM_UP);
  }
  call_case(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
}

/* Other ways in --------------------------------------------------------------------------------------------------- */

static rondo_status call_inner(rondo_call *call, odd_work *odd) {
  const rondo_input input = {.address = rondo_call_input(call, 0), .bytes = WORDS * sizeof(uint32_t)};
  rondo_buffer *out;
  assert_ok(rondo_function_call(odd->inner, rondo_call_stream(call), &input, 1, &out, 1));
  rondo_buffer_release(out);
  return RONDO_OK;
}

TREE_TEST(test_nested_calls_are_parts) {
  odd_case c;
  test_work inner = {.fixture = t, .factor = 2, .term = 2};
  make_case(t, &c, usual_tree, usual, call_inner);
  c.odd.inner = test_tree_function(c.tree, "inner", RONDO_INPUT_MOVING, &inner);
  for (size_t i = 0; i < 5; i++) call_case(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
  assert_int_equal(inner.runs, 2);
  assert_int_equal(test_tree_info(c.tree).recordings, 1);
}

/* A capture of the caller's takes the body's work in. */
TREE_TEST(test_calls_while_capturing) {
  odd_case c;
  rondo_buffer *out;
  make_case(t, &c, usual_tree, usual, nothing);
  for (size_t i = 0; i < 3; i++) call_case(&c);
  const rondo_input input = {.address = c.words, .bytes = WORDS * sizeof(uint32_t)};
  uint32_t *result = test_words(t, WORDS);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_function_call(c.function, t->stream, &input, 1, &out, 1));
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

static rondo_status destroy_tree(rondo_call *call, odd_work *odd) {
  (void)call;
  assert_error(rondo_tree_destroy(odd->tree), RONDO_INVALID_STATE, RONDO_REASON_CONCURRENT_USE);
  assert_error(rondo_tree_mark_step(odd->tree), RONDO_INVALID_STATE, RONDO_REASON_CONCURRENT_USE);
  return RONDO_OK;
}

TREE_TEST(test_bodies_may_not_use_the_tree) {
  odd_case c;
  make_case(t, &c, usual_tree, usual, destroy_tree);
  for (size_t i = 0; i < 3; i++) call_case(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

static void call_elsewhere(void *user) {
  odd_case *c = user;
  const rondo_input input = {.address = c->words, .bytes = WORDS * sizeof(uint32_t)};
  rondo_buffer *out;
  c->odd.steps = rondo_function_call(c->function, c->t->stream, &input, 1, &out, 1) == RONDO_INVALID_STATE &&
                 rondo_last_error()->reason == RONDO_REASON_CONCURRENT_USE;
}
static rondo_status call_from_thread(rondo_call *call, odd_work *odd) {
  (void)call;
  odd_case *c = (odd_case *)odd->memory;
  test_on_thread(call_elsewhere, c);
  assert_true(c->odd.steps);
  return RONDO_OK;
}

TREE_TEST(test_two_threads_are_found) {
  odd_case c;
  make_case(t, &c, usual_tree, usual, call_from_thread);
  c.odd.memory = &c;
  call_case(&c);
  call_case(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
}

TREE_TEST(test_buffers_outlive_their_tree) {
  odd_case c;
  rondo_buffer *outs[4];
  make_case(t, &c, usual_tree, usual, nothing);
  for (size_t i = 0; i < 3; i++) outs[i] = test_call_words(t, c.function, c.words, WORDS);
  assert_ok(rondo_buffer_create(c.tree, 64, NULL, &outs[3]));
  test_tree_destroy(c.tree);
  for (size_t i = 0; i < 4; i++) {
    void *address;
    assert_error(rondo_buffer_address(outs[i], &address), RONDO_INVALID_STATE, RONDO_REASON_TREE_GONE);
    rondo_buffer_release(outs[i]);
  }
}

/* SPDX-License-Identifier: MIT
 * Compiling, through internal functions: operators of the test do during capture what belongs into the warm-up, and
 * each is named by the error (FW-2); an operator without a kernel for the device is refused by name; failing allocators
 * leak nothing; weights move from one compiled program to another; constants that are tensors (ON-9).
 */
#include <rondo/placement.h>
#include <rondo/weights.h>

#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"
#include "tensor/compile/emit.h"
#include "tensor/program/operation.h"
#include "tensor/program/program.h"
#include "tensor/program/program_internal.h"

/* Operators of the test -------------------------------------------------------------------------------------------- */

typedef enum misdeed {
  NO_MISDEED,
  LATE_KERNEL,   /* a kernel that is first asked for while capturing */
  ALLOC_NODE,    /* stream-ordered allocation */
  ALLOC_AT_ONCE, /* rondo_malloc */
  ALLOC_IGNORED, /* the same, and the refusal is dropped */
  FAILURE        /* an error of its own */
} misdeed;

static misdeed chosen;
static bool warm; /* the warm-up is over: the next call is the capture's */
static rondo_device *device_of_test;

static void copy_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  **(float *const *)args[1] = **(const float *const *)args[0];
}

static const rondo_kernel_options copy_code = {RONDO_KERNEL_OPTIONS_INIT, .name = "copy_one", .cpu = copy_cpu,
                                               .params = {RONDO_READS, RONDO_WRITES}};
static const rondo_kernel_options late_code = {RONDO_KERNEL_OPTIONS_INIT, .name = "late_one", .cpu = copy_cpu,
                                               .params = {RONDO_READS, RONDO_WRITES}};
static const rondo_kernel_options elsewhere_code = {RONDO_KERNEL_OPTIONS_INIT, .name = "elsewhere",
                                                    .params = {RONDO_READS, RONDO_WRITES}};

typedef struct one_copy {
  const float *from;
  float *to;
} one_copy;

static rondo_status allocate_on_stream(rondo_stream *stream) {
  void *memory = NULL;
  const rondo_malloc_options options = {RONDO_MALLOC_OPTIONS_INIT, .name = "scratch of library"};
  const rondo_status status = rondo_malloc_async(stream, 4096, &options, &memory);
  return status == RONDO_OK ? rondo_free_async(stream, memory) : status;
}

static rondo_status allocate_at_once(void) {
  void *memory = NULL;
  const rondo_status status = rondo_malloc(device_of_test, 4096, "workspace", &memory);
  return status == RONDO_OK ? rondo_free(device_of_test, memory) : status;
}

static rondo_status commit(misdeed which, rondo_stream *stream) {
  if (which == ALLOC_NODE) return allocate_on_stream(stream);
  if (which == ALLOC_AT_ONCE) return allocate_at_once();
  if (which == ALLOC_IGNORED && allocate_at_once() != RONDO_OK) return RONDO_OK;
  if (which == FAILURE) return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER, "the library has gone away");
  return RONDO_OK;
}

static rondo_status copy_call(rondo_resources *resources, rondo_stream *stream, const void *user) {
  const one_copy *copy = user;
  rondo_kernel *kernel = NULL;
  const misdeed now = warm ? chosen : NO_MISDEED;
  warm = true;
  RONDO_TRY(rondo_resources_kernel(resources, now == LATE_KERNEL ? &late_code : &copy_code, &kernel));
  RONDO_TRY(commit(now, stream));
  return rondo_launch(stream, kernel, (rondo_grid){.x = 1}, RONDO_ARGS(&copy->from, &copy->to));
}

static rondo_status infer_copy(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  results[0] = *rondo_operation_input(program, operation, 0);
  return RONDO_OK;
}

static rondo_status emit_copy(rondo_emitter *emitter, const rondo_operation *operation) {
  const one_copy copy = {rondo_emit_address(emitter, operation->inputs[0]),
                         rondo_emit_address(emitter, operation->results[0])};
  return rondo_emit_call(emitter, copy_call, &copy, sizeof copy);
}

static const rondo_operator copy_row = {
    .name = "copy", .inputs = {"value"}, .required = 1, .result_count = 1, .infer = infer_copy, .emit = emit_copy};

static rondo_status emit_elsewhere(rondo_emitter *emitter, const rondo_operation *operation) {
  const void *from = rondo_emit_address(emitter, operation->inputs[0]);
  void *to = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &elsewhere_code, (rondo_grid){.x = 1}, RONDO_ARGS(&from, &to));
}

static const rondo_operator elsewhere_row = {.name = "elsewhere",
                                             .inputs = {"value"},
                                             .required = 1,
                                             .result_count = 1,
                                             .infer = infer_copy,
                                             .emit = emit_elsewhere};

static rondo_program *make_program(const rondo_operator *row) {
  rondo_program *program = NULL;
  rondo_value x, between, y;
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "foreign"};
  assert_ok(rondo_program_create(&options, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, NULL, 0, &x));
  assert_ok(rondo_op_tanh(program, x, &between));
  assert_ok(rondo_program_apply(program, row, &between, 1, NULL, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return program;
}

/* FW-2 ------------------------------------------------------------------------------------------------------------- */

static void compile_with(test_fixture *t, misdeed which, rondo_status status, rondo_reason reason,
                         const char *message) {
  rondo_program *program = make_program(&copy_row);
  rondo_compiled *compiled = (rondo_compiled *)1;
  const uint32_t live = test_memory_statistics(t).live_allocations;
  chosen = which;
  warm = false;
  device_of_test = t->device;
  assert_error(rondo_compile(program, t->device, NULL, &compiled), status, reason);
  assert_message("copy (operator 1 of program 'foreign')");
  assert_message(message);
  assert_null(compiled);
  assert_int_equal(test_memory_statistics(t).live_allocations, live);
  rondo_program_destroy(program);
}

TEST(test_fw2_what_the_warm_up_left_undone_is_found) {
  compile_with(t, LATE_KERNEL, RONDO_INVALID_STATE, RONDO_REASON_UNPREPARED, "kernel 'late_one'");
  compile_with(t, ALLOC_NODE, RONDO_INVALID_STATE, RONDO_REASON_UNPREPARED,
               "allocation 'scratch of library' (4.0 KiB)");
  compile_with(t, ALLOC_AT_ONCE, RONDO_INVALID_STATE, RONDO_REASON_UNPREPARED, "rondo_malloc");
  compile_with(t, ALLOC_IGNORED, RONDO_INVALID_STATE, RONDO_REASON_UNPREPARED, "rondo_malloc");
  compile_with(t, FAILURE, RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER, "gone away");
}

TEST(test_fw2_prepared_library_work_is_recorded) {
  rondo_program *program = make_program(&copy_row);
  const float x = 0.5f;
  float y = 0;
  chosen = NO_MISDEED;
  warm = false;
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  assert_ok(rondo_compiled_write(compiled, "x", &x, sizeof x));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", &y, sizeof y));
  assert_near(&y, &(float){0.46211716f}, 1, 1e-6f);
}

TEST(test_fw1_an_operator_without_a_kernel_is_named) {
  rondo_program *program = make_program(&elsewhere_row);
  rondo_compiled *compiled = NULL;
  assert_error(rondo_compile(program, t->device, NULL, &compiled), RONDO_UNSUPPORTED, RONDO_REASON_NO_FUNCTION);
  assert_message("elsewhere (operator 1 of program 'foreign')");
  assert_null(compiled);
  rondo_program_destroy(program);
}

/* Constants -------------------------------------------------------------------------------------------------------- */

enum { COUNT = 6 };
static const float constant_elements[COUNT] = {1, 2, 3, 4, 5, 6};

/* y = relu(x + c) and z = x * d, where d has the bits of c; a pattern replaces relu and the sum. */
static rondo_program *program_with_constants(bool are_borrowed) {
  const size_t shape[] = {2, 3};
  float elements[COUNT];
  rondo_value x, c, d, y, z;
  rondo_program *program = test_new_program();
  memcpy(elements, constant_elements, sizeof elements);
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  if (are_borrowed) {
    assert_ok(rondo_program_add_borrowed(program, RONDO_F32, shape, 2, constant_elements, &c));
    assert_ok(rondo_program_add_borrowed(program, RONDO_F32, shape, 2, constant_elements, &d));
  } else {
    assert_ok(rondo_program_add_tensor(program, RONDO_F32, shape, 2, elements, &c));
    assert_ok(rondo_program_add_tensor(program, RONDO_F32, shape, 2, elements, &d));
  }
  memset(elements, 0, sizeof elements); /* they were copied */
  assert_ok(rondo_op_add(program, x, c, &y));
  assert_ok(rondo_op_relu(program, y, &y));
  assert_ok(rondo_op_mul(program, x, d, &z));
  assert_ok(rondo_program_place(program, z, 1));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_output(program, "z", z));
  return program;
}

static void assert_computed(const float *x, const float *y, const float *z) {
  for (size_t i = 0; i < COUNT; i++) {
    const float sum = x[i] + constant_elements[i];
    assert_true(y[i] == (sum > 0 ? sum : 0) && z[i] == x[i] * constant_elements[i]);
  }
}

/* Constants of equal bits are one. They are memory of the compiled program, and are what they were in each run. */
static void check_constants(test_fixture *t, bool are_borrowed, uint64_t bytes) {
  static const float x[COUNT] = {-7, 2, -1, 0.5f, -9, 4};
  float y[COUNT], z[COUNT];
  rondo_compiled_info info = {.struct_size = sizeof info};
  rondo_compiled *of = test_compile_kept(program_with_constants(are_borrowed), t->device, NULL);
  assert_ok(rondo_compiled_get_info(of, &info));
  assert_int_equal(info.constant_bytes, bytes);
  assert_int_equal(info.state_bytes, bytes);
  assert_int_equal(info.parameters, 0);
  for (size_t run = 0; run < 3; run++) {
    assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
    assert_ok(run == 0 ? rondo_compiled_run_eager(of) : rondo_compiled_run(of));
    assert_ok(rondo_compiled_read(of, "y", y, sizeof y));
    assert_ok(rondo_compiled_read(of, "z", z, sizeof z));
    assert_computed(x, y, z);
  }
}

TEST(test_on9_constants_are_tensors) { check_constants(t, false, 256); }

/* A program on a CPU without checks reads them where they are. */
TEST(test_on9_constants_are_borrowed) {
  const bool is_read_in_place = test_device_is("cpu") && !test_is_guarded(t);
  check_constants(t, true, is_read_in_place ? 0 : 256);
}

/* Each part of a divided program has the constants that it reads. */
TEST(test_on9_divided_programs_have_constants) {
  static const float x[COUNT] = {-7, 2, -1, 0.5f, -9, 4};
  float y[COUNT], z[COUNT];
  rondo_device *other = NULL;
  rondo_divided *divided = NULL;
  assert_ok(rondo_device_open("cpu", NULL, &other));
  rondo_device *const devices[] = {t->device, other};
  assert_ok(rondo_compile_divided(program_with_constants(false), devices, 2, NULL, &divided));
  assert_ok(rondo_divided_write(divided, "x", x, sizeof x));
  assert_ok(rondo_divided_run(divided));
  assert_ok(rondo_divided_read(divided, "y", y, sizeof y));
  assert_ok(rondo_divided_read(divided, "z", z, sizeof z));
  assert_computed(x, y, z);
  assert_ok(rondo_divided_destroy(divided));
  assert_ok(rondo_device_close(other));
}

/* Failing allocators ----------------------------------------------------------------------------------------------- */

static rondo_status build_training(const rondo_allocator *allocator, rondo_program **out) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "swept", .allocator = allocator};
  const size_t shape[] = {3, 3}, count[] = {3};
  static const int32_t numbers[] = {2, 0, 1};
  const rondo_value none = {0};
  rondo_value tokens = {0}, table = {0}, w = {0}, y = {0}, rate = {0};
  rondo_status status = rondo_program_create(&options, out);
  if (status == RONDO_OK) status = rondo_program_input(*out, "tokens", RONDO_I32, count, 1, &tokens);
  if (status == RONDO_OK) status = rondo_program_state(*out, "table", RONDO_F32, shape, 2, &table);
  if (status == RONDO_OK) status = rondo_program_state(*out, "w", RONDO_F32, shape, 2, &w);
  if (status == RONDO_OK) status = rondo_program_cell(*out, "rate", 1, &rate);
  if (status == RONDO_OK) status = rondo_op_embedding(*out, table, tokens, &y);
  if (status == RONDO_OK) status = rondo_op_matmul(*out, y, w, none, &y);
  if (status == RONDO_OK) status = rondo_op_cross_entropy(*out, y, tokens, &y);
  if (status == RONDO_OK) status = rondo_program_output(*out, "loss", y);
  if (status == RONDO_OK) status = rondo_program_add_tensor(*out, RONDO_I32, count, 1, numbers, &tokens);
  if (status == RONDO_OK) status = rondo_op_embedding(*out, table, tokens, &w);
  if (status == RONDO_OK) status = rondo_program_output(*out, "rows", w);
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate};
  return status == RONDO_OK ? rondo_program_adam(*out, y, &adam) : status;
}

static rondo_status compile_and_run(rondo_device *device, rondo_program *program, const rondo_allocator *allocator) {
  rondo_compiled *compiled = NULL;
  rondo_weights *weights = NULL;
  float loss = 0;
  rondo_status status = rondo_compile(program, device, NULL, &compiled);
  if (status == RONDO_OK) status = rondo_compiled_run(compiled);
  if (status == RONDO_OK) status = rondo_compiled_read(compiled, "loss", &loss, sizeof loss);
  if (status == RONDO_OK) status = rondo_weights_create(allocator, &weights);
  if (status == RONDO_OK) status = rondo_weights_gather(weights, compiled, NULL, NULL);
  if (status == RONDO_OK) status = rondo_weights_apply(weights, compiled, NULL, NULL);
  rondo_weights_destroy(weights);
  const rondo_status destroyed = rondo_compiled_destroy(compiled);
  return status == RONDO_OK ? destroyed : status;
}

/* The program's allocator and the device's fail in turn, at each call. */
TEST(test_failing_allocators_leak_nothing) {
  for (int which = 0; which < 2; which++) {
    rondo_status status = RONDO_OUT_OF_MEMORY;
    for (size_t fail_at = 1; status != RONDO_OK; fail_at++) {
      test_allocator allocator;
      test_allocator_init(&allocator);
      rondo_program *program = NULL;
      assert_ok(build_training(&allocator.table, &program));
      test_allocator *failing = which == 0 ? &allocator : &t->allocator;
      atomic_store(&failing->fail_at, atomic_load(&failing->calls) + fail_at);
      status = compile_and_run(t->device, program, &allocator.table);
      atomic_store(&failing->fail_at, 0);
      assert_true(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY);
      rondo_program_destroy(program);
      assert_true(test_allocator_is_clean(&allocator));
      assert_int_equal(test_memory_statistics(t).live_allocations, 0);
      assert_true(fail_at < 2000);
    }
  }
}

/* Weights ---------------------------------------------------------------------------------------------------------- */

static bool is_not_adams(const char *name, void *user) {
  (void)user;
  return strchr(name, '.') == NULL;
}

TEST(test_states_go_from_one_program_to_another) {
  rondo_program *program = NULL;
  rondo_weights *weights = NULL;
  rondo_weight weight;
  float table[9], back[9];
  for (int i = 0; i < 9; i++) table[i] = (float)i;
  assert_ok(build_training(NULL, &program));
  rondo_compiled *from = test_compile_kept(program, t->device, NULL);
  rondo_compiled *to = test_compile(program, t->device, NULL);
  assert_ok(rondo_compiled_write(from, "table", table, sizeof table));
  assert_ok(rondo_weights_create(NULL, &weights));
  assert_ok(rondo_weights_gather(weights, from, is_not_adams, NULL));
  assert_ok(rondo_weights_at(weights, 1, &weight));
  assert_string_equal(weight.name, "w");
  assert_error(rondo_weights_at(weights, 2, &weight), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_weights_gather(weights, from, NULL, NULL), RONDO_REASON_DUPLICATE_NAME);
  assert_error(rondo_weights_at(weights, 2, &weight), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_weights_apply(weights, to, NULL, NULL), RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME);
  assert_message("'adam.step'");
  assert_ok(rondo_weights_apply(weights, to, is_not_adams, NULL));
  assert_ok(rondo_compiled_read(to, "table", back, sizeof back));
  assert_memory_equal(back, table, sizeof back);
  rondo_weights_destroy(weights);
}

static void assert_refused(rondo_compiled *compiled, rondo_type type, size_t rank, rondo_reason reason) {
  rondo_weights *weights = NULL;
  const float values[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  const rondo_weight table = {
      .name = "table", .type = RONDO_F32, .rank = 2, .shape = {3, 3}, .data = values, .bytes = sizeof values};
  const rondo_weight w = {
      .name = "w", .type = type, .rank = rank, .shape = {rank == 1 ? 9 : 3, 3}, .data = values, .bytes = sizeof values};
  assert_ok(rondo_weights_create(NULL, &weights));
  assert_ok(rondo_weights_add(weights, &table));
  assert_ok(rondo_weights_add(weights, &w));
  assert_error(rondo_weights_apply(weights, compiled, is_not_adams, NULL), RONDO_INVALID_DATA, reason);
  assert_message("'w'");
  rondo_weights_destroy(weights);
}

/* Nothing is written when one state does not fit, also not those before it. */
TEST(test_weights_that_do_not_fit_change_nothing) {
  rondo_program *program = NULL;
  float back[9];
  const float zeros[9] = {0};
  assert_ok(build_training(NULL, &program));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  assert_refused(compiled, RONDO_F32, 1, RONDO_REASON_SHAPE);
  assert_refused(compiled, RONDO_I32, 2, RONDO_REASON_TYPE);
  assert_ok(rondo_compiled_read(compiled, "table", back, sizeof back));
  assert_memory_equal(back, zeros, sizeof back);
}

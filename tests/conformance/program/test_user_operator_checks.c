/* SPDX-License-Identifier: MIT
 * What rondo_operator_check finds (PR-2): results that change when an operator is fused, results that are not written,
 * inputs that are written, accesses past values of F16 and BF16, steps and bounds that do not fit. And what
 * rondo_operator_define and rondo_op_apply refuse: kernels, names, gradients and inputs that do not fit.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { COUNT = 1000, MANY = 65536 };

static const rondo_shape line = {RONDO_F32, 1, {COUNT}};

static void destroy(void *operation) { rondo_operator_destroy(operation); }

static rondo_operator *define(const rondo_operator_definition *definition) {
  rondo_operator *operation;
  assert_ok(rondo_operator_define(definition, &operation));
  return test_leave(destroy, operation);
}

static rondo_operator *define_element(const char *name, const rondo_operator_element *element,
                                      rondo_operator_gradient gradient) {
  const rondo_operator_definition definition = {RONDO_OPERATOR_DEFINITION_INIT, .name = name, .inputs = {"x"},
                                                .element = element, .gradient = gradient};
  return define(&definition);
}

static rondo_status check_with(test_fixture *t, const rondo_operator *operation, const rondo_shape *shape,
                               rondo_operator_check_result *result) {
  const rondo_operator_check_options options = {RONDO_OPERATOR_CHECK_OPTIONS_INIT, .inputs = shape, .input_count = 1};
  return rondo_operator_check(operation, t->device, &options, result);
}

static bool is_cuda(const test_fixture *t) {
  rondo_device_info info = {0};
  assert_ok(rondo_device_get_info(t->device, &info));
  return info.cuda;
}

/* Runs ------------------------------------------------------------------------------------------------------------- */

static void twice_cpu(const float *const *in, float *y, size_t count, const float *numbers) {
  (void)numbers;
  for (size_t i = 0; i < count; i++) y[i] = 2 * in[0][i];
}
static const rondo_operator_element twice = {.cpu = twice_cpu,
                                             .cuda_source = "__device__ float twice(float x) { return 2 * x; }"};

static rondo_status twice_gradient(rondo_program *program, const rondo_operator_call *call,
                                   const rondo_operator_values *values, rondo_value *gradients) {
  (void)call;
  return rondo_op_scale(program, values->result_gradients[0], 2, &gradients[0]);
}

/* In a chain, its values are near each other on the stack. */
static void near_cpu(const float *const *in, float *y, size_t count, const float *numbers) {
  const intptr_t distance = (intptr_t)y - (intptr_t)in[0];
  const float more = distance < 65536 && distance > -65536 ? 1 : 0;
  (void)numbers;
  for (size_t i = 0; i < count; i++) y[i] = in[0][i] + more;
}

TEST(test_pr2_a_difference_by_fusing_is_found) {
  static const rondo_operator_element element = {.cpu = near_cpu};
  const rondo_shape shape = {RONDO_F32, 1, {MANY}};
  if (is_cuda(t) || test_is_guarded(t)) skip();
  assert_error(check_with(t, define_element("near", &element, NULL), &shape, NULL), RONDO_INVALID_DATA,
               RONDO_REASON_CONTRADICTED);
  assert_message("an eager run that may be fused has other bits");
}

static void partial_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(float **)args[0];
  float *y = *(float **)args[1];
  const size_t count = *(const size_t *)args[2];
  if (blocks.first > 0) return;
  for (size_t i = 0; i + 1 < count; i++) y[i] = x[i];
}

static void writes_input_cpu(rondo_blocks blocks, void *const *args) {
  float *x = *(float **)args[0], *y = *(float **)args[1];
  const size_t count = *(const size_t *)args[2];
  if (blocks.first > 0) return;
  for (size_t i = 0; i < count; i++) y[i] = x[i];
  x[count - 1] += 1;
}

static rondo_operator *define_kernel(const char *name, rondo_cpu_function cpu) {
  const rondo_kernel_options kernel = {RONDO_KERNEL_OPTIONS_INIT, .name = name, .cpu = cpu,
                                       .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)}};
  const rondo_operator_definition definition = {RONDO_OPERATOR_DEFINITION_INIT, .name = name, .inputs = {"x"},
                                                .kernels = &kernel, .kernel_count = 1};
  return define(&definition);
}

TEST(test_pr2_what_is_not_written_is_found) {
  if (!test_is_guarded(t)) skip();
  assert_error(check_with(t, define_kernel("partial", partial_cpu), &line, NULL), RONDO_INVALID_DATA,
               RONDO_REASON_CONTRADICTED);
  assert_message("it must write all of its results");
}

TEST(test_pr2_a_written_input_is_found) {
  if (!test_is_guarded(t)) skip();
  assert_error(check_with(t, define_kernel("writes_input", writes_input_cpu), &line, NULL), RONDO_INVALID_DATA,
               RONDO_REASON_CONTRADICTED);
  assert_message("operator writes_input writes its input x");
}

static void past_cpu(const float *const *in, float *y, size_t count, const float *numbers) {
  (void)numbers;
  for (size_t i = 0; i < count; i++) y[i] = in[0][i];
  y[count] = 0;
}

TEST(test_pr2_a_write_past_short_floats_is_found) {
  static const rondo_operator_element element = {.cpu = past_cpu};
  static const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16};
  rondo_operator *past = define_element("past", &element, NULL);
  if (!test_is_guarded(t)) skip();
  for (int i = 0; i < 3; i++) {
    const rondo_shape shape = {types[i], 1, {1024}};
    assert_error(check_with(t, past, &shape, NULL), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
    assert_message("result 0 of operator past");
  }
}

TEST(test_pr2_defaults_fit_short_floats) {
  rondo_operator *operation = define_element("twice", &twice, twice_gradient);
  static const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16};
  for (int i = 0; i < 3; i++) {
    const rondo_shape shape = {types[i], 2, {3, 5}};
    rondo_operator_check_result result = {RONDO_OPERATOR_CHECK_RESULT_INIT};
    assert_ok(check_with(t, operation, &shape, &result));
    assert_int_equal(result.compared, 15);
  }
}

/* Flips the signs of F16 and BF16. */
static void flip_cpu(rondo_blocks blocks, void *const *args) {
  const uint16_t *x = *(uint16_t **)args[0];
  uint16_t *y = *(uint16_t **)args[1];
  const size_t count = *(const size_t *)args[2];
  if (blocks.first > 0) return;
  for (size_t i = 0; i < count; i++) y[i] = x[i] ^ 0x8000;
}

static rondo_status flip_gradient(rondo_program *program, const rondo_operator_call *call,
                                  const rondo_operator_values *values, rondo_value *gradients) {
  (void)call;
  return rondo_op_scale(program, values->result_gradients[0], -1, &gradients[0]);
}

TEST(test_pr2_kernels_of_short_floats) {
  const rondo_kernel_options kernel = {
      RONDO_KERNEL_OPTIONS_INIT, .name = "flip", .cpu = flip_cpu,
      .cuda_source =
          "extern \"C\" __global__ void flip(const unsigned short *x, unsigned short *y,\n"
          "                                unsigned long long count) {\n"
          "  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)\n"
          "    y[i] = x[i] ^ 0x8000;\n"
          "}\n",
      .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)}};
  const rondo_operator_definition definition = {RONDO_OPERATOR_DEFINITION_INIT,
                                                .name = "flip_floats",
                                                .inputs = {"x"},
                                                .types = 1u << RONDO_F16 | 1u << RONDO_BF16,
                                                .kernels = &kernel,
                                                .kernel_count = 1,
                                                .gradient = flip_gradient};
  rondo_operator *flip = define(&definition);
  static const rondo_type types[] = {RONDO_F16, RONDO_BF16};
  for (int i = 0; i < 2; i++) {
    const rondo_shape shape = {types[i], 1, {COUNT}};
    rondo_operator_check_result result = {RONDO_OPERATOR_CHECK_RESULT_INIT};
    assert_ok(check_with(t, flip, &shape, &result));
    assert_int_equal(result.compared, 250);
  }
}

static void signs_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(float **)args[0];
  int32_t *y = *(int32_t **)args[1];
  const size_t count = *(const size_t *)args[2];
  if (blocks.first > 0) return;
  for (size_t i = 0; i < count; i++) y[i] = (x[i] > 0) - (x[i] < 0);
}

static const char *signs_shapes(const rondo_operator_call *call, rondo_shape *results) {
  (void)call;
  results[0].type = RONDO_I32;
  return NULL;
}

/* A result that is no float has no gradient to compare. */
TEST(test_pr2_integer_results_are_checked) {
  const rondo_kernel_options kernel = {
      RONDO_KERNEL_OPTIONS_INIT, .name = "signs", .cpu = signs_cpu,
      .cuda_source =
          "extern \"C\" __global__ void signs(const float *x, int *y, unsigned long long count) {\n"
          "  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)\n"
          "    y[i] = (x[i] > 0) - (x[i] < 0);\n"
          "}\n",
      .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)}};
  const rondo_operator_definition definition = {
      RONDO_OPERATOR_DEFINITION_INIT, .name = "signs",           .inputs = {"x"}, .kernels = &kernel, .kernel_count = 1,
      .shape_rule = signs_shapes,     .gradient = twice_gradient};
  rondo_operator_check_result result = {RONDO_OPERATOR_CHECK_RESULT_INIT};
  assert_ok(check_with(t, define(&definition), &line, &result));
  assert_int_equal(result.compared, 0);
}

static void positive_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(float **)args[0];
  uint8_t *y = *(uint8_t **)args[1];
  const size_t count = *(const size_t *)args[2];
  if (blocks.first > 0) return;
  for (size_t i = 0; i < count; i++) y[i] = x[i] > 0;
}

static void most_positive_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(float **)args[0];
  uint8_t *y = *(uint8_t **)args[1];
  const size_t count = *(const size_t *)args[2];
  if (blocks.first > 0) return;
  for (size_t i = 0; i + 1 < count; i++) y[i] = x[i] > 0;
}

static const char *byte_shapes(const rondo_operator_call *call, rondo_shape *results) {
  (void)call;
  results[0].type = RONDO_U8;
  return NULL;
}

static rondo_operator *define_bytes(const char *name, rondo_cpu_function cpu) {
  const rondo_kernel_options kernel = {
      RONDO_KERNEL_OPTIONS_INIT, .name = name, .cpu = cpu,
      .cuda_source =
          "extern \"C\" __global__ void positive(const float *x, unsigned char *y, unsigned long long count) {\n"
          "  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)\n"
          "    y[i] = x[i] > 0;\n"
          "}\n",
      .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)}};
  const rondo_operator_definition definition = {
      RONDO_OPERATOR_DEFINITION_INIT, .name = name, .inputs = {"x"}, .kernels = &kernel, .kernel_count = 1,
      .shape_rule = byte_shapes};
  return define(&definition);
}

/* Any number of bytes, each of which must be written. */
TEST(test_pr2_results_of_bytes_are_checked) {
  rondo_operator *positive = define_bytes("positive", positive_cpu);
  rondo_operator *most = test_is_guarded(t) ? define_bytes("most_positive", most_positive_cpu) : NULL;
  for (size_t count = 1; count <= 5; count++) {
    const rondo_shape shape = {RONDO_F32, 1, {count}};
    assert_ok(check_with(t, positive, &shape, NULL));
    if (most == NULL) continue;
    assert_error(check_with(t, most, &shape, NULL), RONDO_INVALID_DATA, RONDO_REASON_CONTRADICTED);
    assert_message("it must write all of its results");
  }
}

TEST(test_pr2_bad_check_options) {
  const rondo_operator *operation = define_element("twice", &twice, twice_gradient);
  const rondo_operator_check_options good = {RONDO_OPERATOR_CHECK_OPTIONS_INIT, .inputs = &line, .input_count = 1};
  rondo_operator_check_options bad[] = {good, good, good, good, good, good, good};
  bad[0].low = 2, bad[0].high = 1;
  bad[1].high = INFINITY;
  bad[2].low = NAN;
  bad[3].step = INFINITY;
  bad[4].step = -1;
  bad[5].tolerance = NAN;
  bad[6].input_count = 2;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_invalid(rondo_operator_check(operation, t->device, &bad[i], NULL), RONDO_REASON_OUT_OF_RANGE);
  rondo_operator_check_options large = good, nothing = good;
  large.low = large.high = 1e7f;
  assert_invalid(rondo_operator_check(operation, t->device, &large, NULL), RONDO_REASON_OUT_OF_RANGE);
  assert_message("a step of 0.01 does not change");
  nothing.inputs = NULL;
  assert_invalid(rondo_operator_check(operation, t->device, &nothing, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_operator_check(operation, t->device, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_operator_check(operation, NULL, &good, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_operator_check(NULL, t->device, &good, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_ok(rondo_operator_check(operation, t->device, &good, NULL));
}

/* Gradients that fail ---------------------------------------------------------------------------------------------- */

/* user: the status to return, or NULL for the failure of a call of Rondo. */
static rondo_status failing_gradient(rondo_program *program, const rondo_operator_call *call,
                                     const rondo_operator_values *values, rondo_value *gradients) {
  if (call->user != NULL) return *(const rondo_status *)call->user;
  return rondo_op_sum(program, values->inputs[0], (const size_t[]){7}, 1, false, &gradients[0]);
}

static rondo_status differentiate(const rondo_operator_definition *definition) {
  rondo_program *program;
  rondo_value x, y, gradient;
  rondo_operator *operation;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){3, 5}, 2, &x));
  assert_ok(rondo_operator_define(definition, &operation));
  assert_ok(rondo_op_apply(program, operation, &x, 1, NULL, &y));
  assert_ok(rondo_op_sum(program, y, NULL, 0, false, &y));
  rondo_operator_destroy(operation);
  assert_invalid(rondo_op_tanh(program, (rondo_value){0}, &gradient), RONDO_REASON_NULL_ARGUMENT); /* an old error */
  const rondo_status status = rondo_program_gradients(program, y, &x, 1, &gradient);
  rondo_program_destroy(program);
  return status;
}

TEST(test_pr2_a_failing_gradient_says_why) {
  rondo_status returned = RONDO_INVALID_ARGUMENT;
  rondo_operator_definition definition = {
      RONDO_OPERATOR_DEFINITION_INIT, .name = "twice",  .inputs = {"x"}, .element = &twice,
      .gradient = failing_gradient,   .user = &returned};
  (void)t;
  assert_error(differentiate(&definition), RONDO_INVALID_ARGUMENT, RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_message("the gradient of operator twice: the function returned INVALID_ARGUMENT, and no call of Rondo");
  returned = (rondo_status)9999;
  assert_error(differentiate(&definition), returned, RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_message("the gradient of operator twice: the function returned UNKNOWN");
  definition.user = NULL;
  assert_fails(differentiate(&definition), RONDO_INVALID_ARGUMENT);
  assert_message("the gradient of operator twice: sum(");
}

/* Definitions ------------------------------------------------------------------------------------------------------ */

static void nothing_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  (void)args;
}

static void nothing_block_cpu(rondo_blocks blocks, const rondo_thread_block *block, void *const *args) {
  (void)blocks;
  (void)block;
  (void)args;
}

static rondo_status define_with(const rondo_kernel_options *kernel) {
  const rondo_operator_definition definition = {RONDO_OPERATOR_DEFINITION_INIT, .name = "nothing", .inputs = {"x"},
                                                .kernels = kernel, .kernel_count = 1};
  rondo_operator *made;
  const rondo_status status = rondo_operator_define(&definition, &made);
  rondo_operator_destroy(made);
  return status;
}

TEST(test_pr2_kernels_are_checked) {
  const rondo_kernel_options good = {RONDO_KERNEL_OPTIONS_INIT, .name = "nothing", .cpu = nothing_cpu,
                                     .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)}};
  rondo_kernel_options bad = good;
  (void)t;
  assert_ok(define_with(&good));
  bad.struct_size = 0;
  assert_ok(define_with(&bad));
  bad.struct_size = sizeof bad + 8;
  assert_invalid(define_with(&bad), RONDO_REASON_BAD_OPTIONS);
  assert_message("kernel 0: struct_size is");
  bad = good;
  bad.params[0].bytes = 4;
  assert_invalid(define_with(&bad), RONDO_REASON_BAD_SIZE);
  assert_message("operator 'nothing': kernel 0: kernel 'nothing': parameter 0 is a pointer of 4 bytes");
  bad = good;
  bad.params[4] = bad.params[2];
  assert_invalid(define_with(&bad), RONDO_REASON_BAD_SIZE);
  bad = good;
  bad.cpu_block = nothing_block_cpu;
  assert_invalid(define_with(&bad), RONDO_REASON_BAD_OPTIONS);
  bad = good;
  bad.name = NULL;
  assert_invalid(define_with(&bad), RONDO_REASON_NULL_ARGUMENT);
  bad = good;
  bad.param_count = 100;
  assert_invalid(define_with(&bad), RONDO_REASON_BAD_OPTIONS);
}

static rondo_status define_named(const char *name) {
  const rondo_operator_element element = {.cpu = twice.cpu};
  const rondo_operator_definition definition = {RONDO_OPERATOR_DEFINITION_INIT, .name = name, .inputs = {"x"},
                                                .element = &element};
  rondo_operator *made;
  const rondo_status status = rondo_operator_define(&definition, &made);
  rondo_operator_destroy(made);
  return status;
}

TEST(test_pr2_names) {
  static const char *const bad[] = {
      "",         "2x",       "a-b",    "\xe9t\xe9", "float",
      "template", "blockIdx", "__mine", "xor",       "a_name_that_is_longer_than_forty_eight_characters"};
  (void)t;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_invalid(define_named(bad[i]), RONDO_REASON_BAD_OPTIONS);
  assert_ok(define_named("tanh")); /* of Rondo's own */
  assert_ok(define_named("tanh_gradient"));
  assert_ok(define_named("floats"));
}

TEST(test_pr2_a_gradient_operator_has_all_inputs) {
  const rondo_kernel_options kernel = {RONDO_KERNEL_OPTIONS_INIT, .name = "pair", .cpu = nothing_cpu,
                                       .params = {RONDO_READS, RONDO_READS, RONDO_WRITES}};
  const rondo_kernel_options of_gradient = {
      RONDO_KERNEL_OPTIONS_INIT, .name = "pair_gradient", .cpu = nothing_cpu,
      .params = {RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES}};
  const rondo_operator_definition gradient = {RONDO_OPERATOR_DEFINITION_INIT, .name = "pair_gradient",
                                              .inputs = {"a", "b", "y", "dy"}, .kernels = &of_gradient,
                                              .kernel_count = 1};
  rondo_operator_definition pair = {RONDO_OPERATOR_DEFINITION_INIT,
                                    .name = "pair",
                                    .inputs = {"a", "b"},
                                    .kernels = &kernel,
                                    .kernel_count = 1,
                                    .optional_inputs = 1,
                                    .gradient_operator = define(&gradient)};
  rondo_operator *made;
  (void)t;
  assert_invalid(rondo_operator_define(&pair, &made), RONDO_REASON_BAD_OPTIONS);
  assert_message("has no gradient_operator");
  pair.optional_inputs = 0;
  (void)define(&pair);
}

/* Without a rule, inputs are alike, apart from those that are left out. */
TEST(test_pr2_inputs_without_a_rule) {
  const rondo_kernel_options kernel = {RONDO_KERNEL_OPTIONS_INIT, .name = "pair", .cpu = nothing_cpu,
                                       .params = {RONDO_READS, RONDO_READS, RONDO_WRITES}};
  const rondo_operator_definition definition = {RONDO_OPERATOR_DEFINITION_INIT,
                                                .name = "pair",
                                                .inputs = {"a", "b"},
                                                .kernels = &kernel,
                                                .kernel_count = 1,
                                                .optional_inputs = 1};
  rondo_program *program = test_new_program();
  const rondo_operator *pair = define(&definition);
  const rondo_value a = test_value(program, 'i', "a", 3, 5), b = test_value(program, 'i', "b", 5, 3);
  rondo_value half, y;
  (void)t;
  assert_ok(rondo_program_input(program, "h", RONDO_F16, (const size_t[]){3, 5}, 2, &half));
  assert_ok(rondo_op_apply(program, pair, (rondo_value[]){a, a}, 2, NULL, &y));
  assert_ok(rondo_op_apply(program, pair, (rondo_value[]){a, {0}}, 2, NULL, &y));
  assert_invalid(rondo_op_apply(program, pair, (rondo_value[]){a, b}, 2, NULL, &y), RONDO_REASON_SHAPE);
  assert_message("b must have the type and shape of a");
  assert_int_equal(y.id, 0);
  assert_invalid(rondo_op_apply(program, pair, (rondo_value[]){a, half}, 2, NULL, &y), RONDO_REASON_TYPE);
}

/* The results may be the array of the inputs. */
TEST(test_pr2_results_in_place_of_inputs) {
  rondo_program *program = test_new_program();
  const rondo_operator *operation = define_element("twice", &twice, NULL);
  rondo_value y = test_value(program, 'i', "x", 3, 5);
  const float x[15] = {1, 2, 3};
  float read[15];
  assert_ok(rondo_op_apply(program, operation, &y, 1, NULL, &y));
  assert_ok(rondo_op_apply(program, operation, &y, 1, NULL, &y));
  assert_ok(rondo_program_output(program, "y", y));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", read, sizeof read));
  for (int i = 0; i < 15; i++) assert_float_equal(read[i], 4 * x[i], 0);
}

/* Lifetime --------------------------------------------------------------------------------------------------------- */

TEST(test_pr2_as_many_as_there_can_be) {
  const rondo_operator_element element = {.cpu = twice.cpu};
  static rondo_operator *made[1025];
  rondo_status status = RONDO_OK;
  size_t count = 0;
  char name[16];
  (void)t;
  while (status == RONDO_OK && count < 1025) {
    rondo_operator_definition definition = {RONDO_OPERATOR_DEFINITION_INIT, .name = name, .inputs = {"x"},
                                            .element = &element};
    (void)snprintf(name, sizeof name, "twice_%zu", count);
    status = rondo_operator_define(&definition, &made[count]);
    count += status == RONDO_OK;
  }
  assert_int_equal(count, 1024);
  assert_error(status, RONDO_LIMIT_EXCEEDED, RONDO_REASON_NONE);
  rondo_operator_destroy(made[500]);
  made[500] = define_element("another", &element, NULL);
  for (size_t i = 0; i < count; i++)
    if (i != 500) rondo_operator_destroy(made[i]);
}

static void plus_one_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(float **)args[0];
  float *y = *(float **)args[1];
  if (blocks.first == 0)
    for (size_t i = 0; i < *(const size_t *)args[2]; i++) y[i] = x[i] + 1;
}

static void plus_two_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(float **)args[0];
  float *y = *(float **)args[1];
  if (blocks.first == 0)
    for (size_t i = 0; i < *(const size_t *)args[2]; i++) y[i] = x[i] + 2;
}

#define PLUS(number)                                                                                   \
  "extern \"C\" __global__ void plus(const float *x, float *y, unsigned long long count) {\n"          \
  "  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)\n" \
  "    y[i] = x[i] + " #number                                                                         \
  ";\n"                                                                                                \
  "}\n"

/* Two kernels, of which the first size of the attributes chooses one. */
static const char *plus_launch(const rondo_operator_call *call, rondo_operator_launch *launch) {
  launch->kernel = (uint32_t)call->attributes.sizes[0];
  return NULL;
}

static rondo_operator *define_plus(bool is_swapped) {
  const rondo_kernel_options one = {RONDO_KERNEL_OPTIONS_INIT, .name = "plus", .cpu = plus_one_cpu,
                                    .cuda_source = PLUS(1),
                                    .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)}};
  rondo_kernel_options two = one;
  two.cpu = plus_two_cpu;
  two.cuda_source = PLUS(2);
  const rondo_kernel_options kernels[] = {is_swapped ? two : one, is_swapped ? one : two};
  const rondo_operator_definition definition = {
      RONDO_OPERATOR_DEFINITION_INIT, .name = "plus", .inputs = {"x"}, .kernels = kernels, .kernel_count = 2,
      .launch_rule = plus_launch};
  rondo_operator *operation;
  assert_ok(rondo_operator_define(&definition, &operation));
  return operation;
}

static rondo_program *make_plus(rondo_operator *plus, size_t kernel) {
  const rondo_operator_attributes attributes = {.sizes = {kernel}};
  rondo_program *program = test_new_program();
  rondo_value x = test_value(program, 'i', "x", 1, 4);
  assert_ok(rondo_op_apply(program, plus, &x, 1, &attributes, &x));
  assert_ok(rondo_program_output(program, "y", x));
  rondo_operator_destroy(plus);
  return program;
}

static float run_plus(rondo_compiled *compiled) {
  float x[4] = {5, 6, 7, 8};
  assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", x, sizeof x));
  return x[0];
}

/* The launch rule chooses a kernel; a later operator of the same name and number has its own, also in programs that
 * share kernels. */
TEST(test_pr2_kernels_belong_to_their_operator) {
  rondo_program *program = test_new_program();
  const rondo_value x = test_value(program, 'i', "x", 1, 4);
  assert_ok(rondo_program_output(program, "y", x));
  rondo_compiled *base = test_compile(program, t->device, NULL);
  for (size_t i = 0; i < 4; i++) {
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = base};
    rondo_compiled *compiled;
    program = make_plus(define_plus(i % 2 == 1), i / 2);
    assert_ok(rondo_compile(program, t->device, &options, &compiled));
    rondo_program_destroy(program);
    assert_float_equal(run_plus(compiled), i == 0 || i == 3 ? 6 : 7, 0);
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

TEST(test_pr2_recompiled) {
  rondo_compiled *compiled = test_compile(make_plus(define_plus(false), 0), t->device, NULL);
  rondo_recompile_result result = {0};
  assert_float_equal(run_plus(compiled), 6, 0);
  rondo_program *program = test_new_program();
  rondo_value x = test_value(program, 'i', "x", 1, 4);
  rondo_operator *operation = define_element("twice", &twice, NULL);
  assert_ok(rondo_op_apply(program, operation, &x, 1, NULL, &x));
  assert_ok(rondo_program_output(program, "y", x));
  assert_ok(rondo_compiled_recompile(compiled, program, &result));
  assert_float_equal(run_plus(compiled), 10, 0);
  rondo_operator_destroy(define_plus(false)); /* the name is free again */
}

TEST(test_pr2_explained) {
  rondo_compiled *compiled = test_compile(make_plus(define_plus(false), 0), t->device, NULL);
  char *text = NULL;
  assert_ok(rondo_compiled_explain(compiled, RONDO_EXPLAIN_TEXT, &text));
  assert_non_null(strstr(text, "1 kernel of 1 operator"));
  rondo_text_free(text);
  assert_ok(rondo_graph_to_dot(rondo_compiled_graph(compiled), false, &text));
  assert_non_null(strstr(text, "plus"));
  rondo_text_free(text);
}

/* Second-order gradients ------------------------------------------------------------------------------------------- */

static void cube_cpu(const float *const *in, float *y, size_t count, const float *numbers) {
  (void)numbers;
  for (size_t i = 0; i < count; i++) y[i] = in[0][i] * in[0][i] * in[0][i];
}

static void slope_cpu(const float *const *in, float *y, size_t count, const float *numbers) {
  (void)numbers;
  for (size_t i = 0; i < count; i++) y[i] = 3 * in[0][i] * in[0][i];
}

static rondo_status slope_gradient(rondo_program *program, const rondo_operator_call *call,
                                   const rondo_operator_values *values, rondo_value *gradients) {
  (void)call;
  TRY(rondo_op_scale(program, values->inputs[0], 6, &gradients[0]));
  return rondo_op_mul(program, values->result_gradients[0], gradients[0], &gradients[0]);
}

/* By another operator of the user, which is `user`. */
static rondo_status cube_gradient(rondo_program *program, const rondo_operator_call *call,
                                  const rondo_operator_values *values, rondo_value *gradients) {
  TRY(rondo_op_apply(program, call->user, values->inputs, 1, NULL, &gradients[0]));
  return rondo_op_mul(program, values->result_gradients[0], gradients[0], &gradients[0]);
}

TEST(test_pr2_gradients_of_gradients) {
  static const rondo_operator_element cube = {.cpu = cube_cpu,
                                              .cuda_source = "__device__ float cube(float x) { return x * x * x; }"};
  static const rondo_operator_element slope = {
      .cpu = slope_cpu, .cuda_source = "__device__ float cube_slope(float x) { return 3 * x * x; }"};
  const rondo_operator_definition definition = {RONDO_OPERATOR_DEFINITION_INIT,
                                                .name = "cube",
                                                .inputs = {"x"},
                                                .element = &cube,
                                                .gradient = cube_gradient,
                                                .user = define_element("cube_slope", &slope, slope_gradient)};
  rondo_program *program = test_new_program();
  const rondo_value x = test_value(program, 'i', "x", 1, 4);
  const float data[] = {-2, 0.5f, 1, 3};
  float first[4], second[4];
  rondo_value y;
  assert_ok(rondo_op_apply(program, define(&definition), &x, 1, NULL, &y));
  for (int order = 1; order <= 2; order++) {
    assert_ok(rondo_op_sum(program, y, NULL, 0, false, &y));
    assert_ok(rondo_program_gradients(program, y, &x, 1, &y));
    assert_ok(rondo_program_output(program, order == 1 ? "first" : "second", y));
  }
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  assert_ok(rondo_compiled_write(compiled, "x", data, sizeof data));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "first", first, sizeof first));
  assert_ok(rondo_compiled_read(compiled, "second", second, sizeof second));
  for (int i = 0; i < 4; i++) {
    assert_float_equal(first[i], 3 * data[i] * data[i], 0);
    assert_float_equal(second[i], 6 * data[i], 0);
  }
}

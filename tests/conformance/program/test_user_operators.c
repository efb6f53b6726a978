/* SPDX-License-Identifier: MIT
 * Operators of the user (PR-2): element-wise ones are broadcast, fused and differentiated, ones with kernels have shape
 * and launch rules, optional inputs and several results; both are listed, explained, shared and kept by what uses
 * them. rondo_operator_check finds wrong gradients, and on cpu:check accesses outside of a value.
 */
#include <math.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { ROWS = 3, COLUMNS = 5, COUNT = ROWS * COLUMNS };

static const rondo_shape table_shape = {RONDO_F32, 2, {ROWS, COLUMNS}};

static void destroy(void *operation) { rondo_operator_destroy(operation); }

static rondo_operator *define(const rondo_operator_definition *definition) {
  rondo_operator *operation;
  assert_ok(rondo_operator_define(definition, &operation));
  return test_leave(destroy, operation);
}

/* leaky: element by element ---------------------------------------------------------------------------------------- */

static void leaky_cpu(const float *const *in, float *y, size_t count, const float *numbers) {
  for (size_t i = 0; i < count; i++) y[i] = in[0][i] > 0 ? in[0][i] : numbers[0] * in[0][i];
}

static void leaky_gradient_cpu(const float *const *in, float *dx, size_t count, const float *numbers) {
  for (size_t i = 0; i < count; i++) dx[i] = in[0][i] > 0 ? in[2][i] : numbers[0] * in[2][i];
}

static const rondo_operator_element leaky_element = {
    .cpu = leaky_cpu,
    .cuda_source = "__device__ float leaky(float x, float slope) { return x > 0 ? x : slope * x; }",
    .numbers = 1};
static const rondo_operator_element leaky_gradient_element = {
    .cpu = leaky_gradient_cpu,
    .cuda_source =
        "__device__ float leaky_gradient(float x, float y, float dy, float slope) {\n"
        "  return x > 0 ? dy : slope * dy;\n"
        "}",
    .numbers = 1};
static const rondo_operator_attributes slope = {.numbers = {0.25f}};

static rondo_operator *define_leaky(void) {
  const rondo_operator_definition gradient = {RONDO_OPERATOR_DEFINITION_INIT, .name = "leaky_gradient",
                                              .inputs = {"x", "y", "dy"}, .element = &leaky_gradient_element};
  const rondo_operator_definition leaky = {RONDO_OPERATOR_DEFINITION_INIT, .name = "leaky", .inputs = {"x"},
                                           .element = &leaky_element, .gradient_operator = define(&gradient)};
  return define(&leaky);
}

static rondo_value apply_leaky(rondo_program *program, const rondo_operator *leaky, rondo_value x) {
  rondo_value y;
  assert_ok(rondo_op_apply(program, leaky, &x, 1, &slope, &y));
  return y;
}

static void fill(float *x, size_t count) {
  for (size_t i = 0; i < count; i++) x[i] = (float)(i % 7) - 3;
}

TEST(test_pr2_elements_are_fused_with_others) {
  rondo_program *program = test_new_program();
  const rondo_operator *leaky = define_leaky();
  float x[COUNT], y[COUNT], expected[COUNT];
  const rondo_value in = test_value(program, 'i', "x", ROWS, COLUMNS);
  rondo_value value;
  assert_ok(rondo_op_square(program, apply_leaky(program, leaky, in), &value));
  assert_ok(rondo_op_add_constant(program, apply_leaky(program, leaky, value), 0.5f, &value));
  assert_ok(rondo_program_output(program, "y", value));
  fill(x, COUNT);
  for (int i = 0; i < COUNT; i++) {
    const float l = x[i] > 0 ? x[i] : 0.25f * x[i];
    expected[i] = l * l + 0.5f;
  }
  static const rondo_fusion_policy policies[] = {RONDO_FUSION_AUTO, RONDO_FUSION_NEVER};
  for (int p = 0; p < 2; p++) {
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .fusion = policies[p]};
    rondo_compiled *compiled = test_compile_kept(program, t->device, &options);
    rondo_compiled_info info = {0};
    assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "y", y, sizeof y));
    assert_memory_equal(y, expected, sizeof y);
    assert_ok(rondo_compiled_get_info(compiled, &info));
    if (p == 0 && !test_is_guarded(t)) assert_int_equal(info.kernels, 1);
    if (p == 1) assert_int_equal(info.kernels, 4);
  }
}

/* In BF16, broadcast along rows, with the gradient of the broadcast input summed. */
static void blend_cpu(const float *const *in, float *y, size_t count, const float *numbers) {
  (void)numbers;
  for (size_t i = 0; i < count; i++) y[i] = in[0][i] * in[1][i] + in[2][i];
}

static rondo_status blend_gradient(rondo_program *program, const rondo_operator_call *call,
                                   const rondo_operator_values *values, rondo_value *gradients) {
  assert_int_equal(call->input_count, 3);
  assert_int_equal(call->results[0].dims[0], ROWS);
  const rondo_status status = rondo_op_mul(program, values->result_gradients[0], values->inputs[1], &gradients[0]);
  if (status != RONDO_OK) return status;
  gradients[2] = values->result_gradients[0];
  return rondo_op_mul(program, values->result_gradients[0], values->inputs[0], &gradients[1]);
}

static const rondo_operator_element blend_element = {
    .cpu = blend_cpu, .cuda_source = "__device__ float blend(float a, float b, float c) { return a * b + c; }"};
static const rondo_operator_definition blend_definition = {RONDO_OPERATOR_DEFINITION_INIT, .name = "blend",
                                                           .inputs = {"a", "b", "c"}, .element = &blend_element,
                                                           .gradient = blend_gradient};

TEST(test_pr2_elements_are_broadcast) {
  const rondo_operator *blend = define(&blend_definition);
  static const rondo_type types[] = {RONDO_F32, RONDO_BF16, RONDO_F16};
  static const float steps[] = {0.01f, 0.125f, 0.0625f};
  for (int i = 0; i < 3; i++) {
    const rondo_shape shapes[] = {{types[i], 2, {ROWS, COLUMNS}}, {types[i], 1, {COLUMNS}}, {types[i], 2, {ROWS, 1}}};
    const rondo_operator_check_options options = {RONDO_OPERATOR_CHECK_OPTIONS_INIT, .inputs = shapes, .input_count = 3,
                                                  .step = steps[i], .tolerance = i == 0 ? 0.002f : 0.2f};
    rondo_operator_check_result result = {RONDO_OPERATOR_CHECK_RESULT_INIT};
    assert_ok(rondo_operator_check(blend, t->device, &options, &result));
    assert_int_equal(result.compared, COUNT + COLUMNS + ROWS);
    assert_true(result.error <= options.tolerance);
  }
}

TEST(test_pr2_a_gradient_of_elements) {
  const rondo_operator_check_options options = {RONDO_OPERATOR_CHECK_OPTIONS_INIT,
                                                .inputs = &table_shape,
                                                .input_count = 1,
                                                .attributes = slope,
                                                .seed = 7,
                                                .step = 0.001f,
                                                .tolerance = 0.002f};
  rondo_operator_check_result result = {RONDO_OPERATOR_CHECK_RESULT_INIT};
  assert_ok(rondo_operator_check(define_leaky(), t->device, &options, &result));
  assert_int_equal(result.compared, COUNT);
}

/* row_norms: kernels ------------------------------------------------------------------------------------------------
 * The squares of a table summed over rows, and scaled by an optional input; the second result is the number of elements
 * above the threshold. */

typedef struct norms_shape {
  uint64_t rows, columns;
  float threshold;
  uint32_t reserved;
} norms_shape;

static void row_norms_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(float **)args[0], *scale = *(float **)args[1];
  float *norms = *(float **)args[2];
  int32_t *above = *(int32_t **)args[3];
  const norms_shape *shape = args[4];
  const size_t share = (shape->rows + blocks.grid.x - 1) / blocks.grid.x;
  for (size_t row = blocks.first * share; row < blocks.last * share && row < shape->rows; row++) {
    norms[row] = 0;
    above[row] = 0;
    for (size_t i = row * shape->columns; i < (row + 1) * shape->columns; i++) {
      norms[row] += x[i] * x[i];
      above[row] += x[i] > shape->threshold;
    }
    if (scale != NULL) norms[row] *= *scale;
  }
}

static const char row_norms_cuda[] =
    "struct norms_shape { unsigned long long rows, columns; float threshold; unsigned reserved; };\n"
    "extern \"C\" __global__ void row_norms(const float *x, const float *scale, float *norms, int *above,\n"
    "                                       norms_shape shape) {\n"
    "  for (size_t row = blockIdx.x * blockDim.x + threadIdx.x; row < shape.rows; row += gridDim.x * blockDim.x) {\n"
    "    float sum = 0;\n"
    "    int count = 0;\n"
    "    for (size_t i = row * shape.columns; i < (row + 1) * shape.columns; i++) {\n"
    "      sum += x[i] * x[i];\n"
    "      count += x[i] > shape.threshold;\n"
    "    }\n"
    "    norms[row] = scale ? sum * *scale : sum;\n"
    "    above[row] = count;\n"
    "  }\n"
    "}\n";

static const rondo_kernel_options row_norms_kernel = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "row_norms", .cpu = row_norms_cpu, .cuda_source = row_norms_cuda,
    .params = {RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_WRITES, RONDO_SCALAR(norms_shape)}};

static const char *row_norms_shapes(const rondo_operator_call *call, rondo_shape *results) {
  if (call->inputs[0]->rank != 2) return "x must have 2 dimensions";
  if (call->inputs[1] != NULL && call->inputs[1]->rank != 0) return "scale must be a scalar";
  results[0] = (rondo_shape){RONDO_F32, 1, {call->inputs[0]->dims[0]}};
  results[1] = (rondo_shape){RONDO_I32, 1, {call->inputs[0]->dims[0]}};
  return NULL;
}

static const char *row_norms_launch(const rondo_operator_call *call, rondo_operator_launch *launch) {
  const norms_shape shape = {
      .rows = call->inputs[0]->dims[0], .columns = call->inputs[0]->dims[1], .threshold = call->attributes.numbers[0]};
  if (call->attributes.sizes[0] == 1) return "it was told not to run";
  assert_int_equal(call->results[1].type, RONDO_I32);
  memcpy(launch->scalars[0], &shape, sizeof shape);
  if (!call->is_cuda) launch->grid = (rondo_grid){.x = 2};
  launch->kernel = (uint32_t)call->attributes.sizes[1];
  return NULL;
}

/* 2 scale x dy; of the scale: the sum of dy norms / scale. */
static rondo_status row_norms_gradient(rondo_program *program, const rondo_operator_call *call,
                                       const rondo_operator_values *values, rondo_value *gradients) {
  const size_t column[] = {call->inputs[0]->dims[0], 1};
  rondo_value dy = values->result_gradients[0], products;
  assert_int_equal(values->result_gradients[1].id, 0);
  TRY(rondo_op_reshape(program, dy, column, 2, &products));
  TRY(rondo_op_mul(program, products, values->inputs[0], &gradients[0]));
  TRY(rondo_op_scale(program, gradients[0], 2, &gradients[0]));
  if (call->inputs[1] == NULL) return RONDO_OK;
  TRY(rondo_op_mul(program, gradients[0], values->inputs[1], &gradients[0]));
  TRY(rondo_op_mul(program, dy, values->results[0], &products));
  TRY(rondo_op_sum(program, products, NULL, 0, false, &gradients[1]));
  return rondo_op_div(program, gradients[1], values->inputs[1], &gradients[1]);
}

static rondo_operator_definition row_norms_definition(void) {
  return (rondo_operator_definition){
      RONDO_OPERATOR_DEFINITION_INIT, .name = "row_norms", .inputs = {"x", "scale"},
      .optional_inputs = 1,           .result_count = 2,   .shape_rule = row_norms_shapes,
      .kernels = &row_norms_kernel,   .kernel_count = 1,   .launch_rule = row_norms_launch,
      .gradient = row_norms_gradient};
}

static rondo_operator *define_row_norms(void) {
  const rondo_operator_definition definition = row_norms_definition();
  return define(&definition);
}

TEST(test_pr2_kernels_with_several_results) {
  rondo_program *program = test_new_program();
  const rondo_value x = test_value(program, 'i', "x", ROWS, COLUMNS);
  rondo_value results[2];
  float data[COUNT], norms[ROWS];
  int32_t above[ROWS];
  const rondo_operator_attributes threshold = {.numbers = {0.5f}};
  assert_ok(rondo_op_apply(program, define_row_norms(), &x, 1, &threshold, results));
  assert_ok(rondo_program_output(program, "norms", results[0]));
  assert_ok(rondo_program_output(program, "above", results[1]));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  fill(data, COUNT);
  assert_ok(rondo_compiled_write(compiled, "x", data, sizeof data));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "norms", norms, sizeof norms));
  assert_ok(rondo_compiled_read(compiled, "above", above, sizeof above));
  for (int row = 0; row < ROWS; row++) {
    float sum = 0;
    int32_t count = 0;
    for (int i = row * COLUMNS; i < (row + 1) * COLUMNS; i++) {
      sum += data[i] * data[i];
      count += data[i] > 0.5f;
    }
    assert_float_equal(norms[row], sum, 0);
    assert_int_equal(above[row], count);
  }
}

TEST(test_pr2_gradients_of_kernels) {
  const rondo_shape shapes[] = {table_shape, {RONDO_F32, 0, {0}}};
  const float scale = 1.5f;
  const void *const values[] = {NULL, &scale};
  const rondo_operator *row_norms = define_row_norms();
  for (uint32_t inputs = 1; inputs <= 2; inputs++) {
    const rondo_operator_check_options options = {RONDO_OPERATOR_CHECK_OPTIONS_INIT, .inputs = shapes,
                                                  .input_count = inputs, .values = values, .tolerance = 0.005f};
    rondo_operator_check_result result = {RONDO_OPERATOR_CHECK_RESULT_INIT};
    assert_ok(rondo_operator_check(row_norms, t->device, &options, &result));
    assert_int_equal(result.compared, inputs == 1 ? COUNT : COUNT + 1);
  }
}

/* A step of the program below: the loss of the weights, which it updates. */
static float train(float *w) {
  float loss = 0;
  for (int i = 0; i < COUNT; i++) {
    const float y = w[i] > 0 ? w[i] : 0.25f * w[i];
    loss += y * y;
    w[i] -= 0.0625f * 2 * y * (w[i] > 0 ? 1 : 0.25f);
  }
  return loss;
}

/* Trained by an optimizer, with a share of memory between two programs. */
TEST(test_pr2_programs_train_with_them) {
  rondo_program *program = test_new_program();
  const rondo_operator *leaky = define_leaky();
  const rondo_value w = test_value(program, 's', "w", ROWS, COLUMNS);
  rondo_value rate, loss, norms[2];
  assert_ok(
      rondo_op_apply(program, define_row_norms(), (rondo_value[]){apply_leaky(program, leaky, w)}, 1, NULL, norms));
  assert_ok(rondo_op_sum(program, norms[0], NULL, 0, false, &loss));
  assert_ok(rondo_program_output(program, "loss", loss));
  assert_ok(rondo_program_cell(program, "rate", 0.0625f, &rate));
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_sgd(program, loss, &sgd));
  rondo_compiled *first = test_compile_kept(program, t->device, NULL);
  rondo_compiled *second =
      test_compile(program, t->device, &(rondo_compile_options){RONDO_COMPILE_OPTIONS_INIT, .share = first});
  float data[COUNT], losses[5];
  fill(data, COUNT);
  assert_ok(rondo_compiled_write(first, "w", data, sizeof data));
  assert_ok(rondo_compiled_run(first));
  const float before = test_read_number(first, "loss");
  for (int i = 0; i < 5; i++) {
    assert_ok(rondo_compiled_run(second));
    losses[i] = test_read_number(second, "loss");
  }
  assert_near(&before, (const float[]){train(data)}, 1, 1e-6f);
  for (int i = 0; i < 5; i++) {
    const float expected = train(data);
    assert_near(&losses[i], &expected, 1, 1e-5f);
  }
}

/* A step of Adam on the weights: both operators, and their gradients. The norms are on the second device, if there is
 * one. */
static rondo_program *make_step(void) {
  rondo_program *program = test_new_program();
  const rondo_value w = test_value(program, 's', "w", ROWS, COLUMNS);
  rondo_value rate, loss, norms[2], y = apply_leaky(program, define_leaky(), w);
  assert_ok(rondo_op_apply(program, define_row_norms(), &y, 1, NULL, norms));
  assert_ok(rondo_program_place(program, norms[0], 1));
  assert_ok(rondo_op_sum(program, norms[0], NULL, 0, false, &loss));
  assert_ok(rondo_program_output(program, "loss", loss));
  assert_ok(rondo_program_cell(program, "rate", 0.0625f, &rate));
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_adam(program, loss, &adam));
  return program;
}

TEST(test_pr2_divided_and_saved) {
  rondo_device *devices[] = {t->device, test_device(test_device_is("cpu") ? "cpu:1" : "cpu", NULL)};
  rondo_program *program = make_step();
  rondo_weights *saved = NULL, *checkpoint = NULL;
  float data[COUNT], whole[COUNT], got[COUNT], again[COUNT];
  fill(data, COUNT);
  rondo_compiled *one = test_compile_kept(program, t->device, NULL);
  assert_ok(rondo_compiled_write(one, "w", data, sizeof data));
  rondo_divided *divided = test_compile_divided(program, devices, 2, NULL);
  assert_ok(rondo_divided_write(divided, "w", data, sizeof data));
  for (int run = 0; run < 5; run++) {
    if (run == 3) { /* saves the moments too */
      assert_ok(rondo_weights_create(NULL, &saved));
      assert_ok(rondo_weights_gather_divided(saved, divided, NULL, NULL));
      assert_ok(rondo_weights_create(NULL, &checkpoint));
      assert_ok(rondo_checkpoint_gather(checkpoint, one));
    }
    assert_ok(rondo_compiled_run(one));
    assert_ok(rondo_divided_run(divided));
  }
  assert_ok(rondo_compiled_read(one, "w", whole, sizeof whole));
  assert_ok(rondo_divided_read(divided, "w", got, sizeof got));
  assert_near(got, whole, COUNT, 1e-5f);
  divided = test_compile_divided(program, devices, 2, NULL);
  assert_ok(rondo_weights_apply_divided(saved, divided, NULL, NULL));
  one = test_compile_kept(program, t->device, NULL);
  assert_ok(rondo_checkpoint_apply(checkpoint, one));
  for (int run = 3; run < 5; run++) {
    assert_ok(rondo_compiled_run(one));
    assert_ok(rondo_divided_run(divided));
  }
  assert_ok(rondo_divided_read(divided, "w", again, sizeof again));
  assert_memory_equal(again, got, sizeof got);
  assert_ok(rondo_compiled_read(one, "w", again, sizeof again));
  assert_memory_equal(again, whole, sizeof whole);
  rondo_weights_destroy(saved);
  rondo_weights_destroy(checkpoint);
}

/* Names ------------------------------------------------------------------------------------------------------------ */

static void doubling_cpu(const float *const *in, float *y, size_t count, const float *numbers) {
  (void)numbers;
  for (size_t i = 0; i < count; i++) y[i] = 2 * in[0][i];
}

/* An operator has the name of one of Rondo's, as if a later release had added that. Both are in one chain. */
TEST(test_pr2_a_name_of_rondos_operators) {
  static const rondo_operator_element doubling = {.cpu = doubling_cpu,
                                                  .cuda_source = "__device__ float relu(float x) { return 2 * x; }"};
  const rondo_operator_definition definition = {RONDO_OPERATOR_DEFINITION_INIT, .name = "relu", .inputs = {"x"},
                                                .element = &doubling};
  static const rondo_fusion_policy policies[] = {RONDO_FUSION_AUTO, RONDO_FUSION_NEVER};
  rondo_program *program = test_new_program();
  const rondo_operator *relu = define(&definition);
  float x[COUNT], y[COUNT], expected[COUNT];
  const rondo_value in = test_value(program, 'i', "x", ROWS, COLUMNS);
  rondo_value value, own;
  assert_ok(rondo_op_relu(program, in, &value));
  assert_ok(rondo_op_apply(program, relu, &in, 1, NULL, &own)); /* the same input: not the same result */
  assert_ok(rondo_op_sub(program, value, own, &value));
  assert_ok(rondo_program_output(program, "y", value));
  fill(x, COUNT);
  for (int i = 0; i < COUNT; i++) expected[i] = (x[i] > 0 ? x[i] : 0) - 2 * x[i];
  for (int p = 0; p < 2; p++) {
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .fusion = policies[p]};
    rondo_compiled *compiled = test_compile_kept(program, t->device, &options);
    assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "y", y, sizeof y));
    assert_memory_equal(y, expected, sizeof y);
  }
}

/* Lifetime and lists ----------------------------------------------------------------------------------------------- */

static bool is_listed(const char *name) {
  rondo_operator_info info = {RONDO_OPERATOR_INFO_INIT};
  for (size_t i = 0; rondo_operator_enumerate(i, &info) == RONDO_OK; i++)
    if (strcmp(info.name, name) == 0) return info.has_gradient && info.types == 1u << RONDO_F32;
  return false;
}

TEST(test_pr2_what_uses_an_operator_keeps_it) {
  rondo_program *program;
  rondo_operator *row_norms;
  const rondo_operator_definition definition = row_norms_definition();
  rondo_value x, results[2];
  float norms[ROWS];
  assert_ok(rondo_operator_define(&definition, &row_norms));
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, table_shape.dims, 2, &x));
  assert_ok(rondo_op_apply(program, row_norms, &x, 1, NULL, results));
  assert_ok(rondo_program_output(program, "norms", results[0]));
  rondo_operator_destroy(row_norms);
  assert_true(is_listed("row_norms"));
  rondo_compiled *compiled;
  assert_ok(rondo_compile(program, t->device, NULL, &compiled));
  rondo_program_destroy(program);
  assert_true(is_listed("row_norms"));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "norms", norms, sizeof norms));
  assert_ok(rondo_compiled_destroy(compiled));
  assert_false(is_listed("row_norms"));
}

TEST(test_pr2_equal_ones_run_once) {
  rondo_program *program = test_new_program();
  const rondo_operator *row_norms = define_row_norms();
  const rondo_value x = test_value(program, 'i', "x", ROWS, COLUMNS);
  rondo_value a[2], b[2], c[2], sum;
  const rondo_operator_attributes other = {.numbers = {2}};
  assert_ok(rondo_op_apply(program, row_norms, &x, 1, NULL, a));
  assert_ok(rondo_op_apply(program, row_norms, &x, 1, NULL, b));
  assert_ok(rondo_op_apply(program, row_norms, &x, 1, &other, c));
  assert_ok(rondo_op_add(program, a[0], b[0], &sum));
  assert_ok(rondo_op_add(program, sum, c[0], &sum));
  assert_ok(rondo_program_output(program, "sum", sum));
  rondo_compiled_info info = {0};
  assert_ok(rondo_compiled_get_info(test_compile(program, t->device, NULL), &info));
  assert_int_equal(info.kernels, 3); /* two of row_norms, and the fused additions */
}

/* Wrong ones ------------------------------------------------------------------------------------------------------- */

static rondo_status wrong_gradient(rondo_program *program, const rondo_operator_call *call,
                                   const rondo_operator_values *values, rondo_value *gradients) {
  (void)call;
  return rondo_op_scale(program, values->inputs[0], 1.5f, &gradients[0]);
}

static rondo_status short_gradient(rondo_program *program, const rondo_operator_call *call,
                                   const rondo_operator_values *values, rondo_value *gradients) {
  (void)program;
  (void)call;
  gradients[0] = values->result_gradients[0];
  return RONDO_OK;
}

TEST(test_pr2_a_wrong_gradient_is_found) {
  rondo_operator_definition definition = row_norms_definition();
  const rondo_operator_check_options options = {RONDO_OPERATOR_CHECK_OPTIONS_INIT, .inputs = &table_shape,
                                                .input_count = 1};
  rondo_operator_check_result result = {RONDO_OPERATOR_CHECK_RESULT_INIT};
  definition.gradient = wrong_gradient;
  assert_error(rondo_operator_check(define(&definition), t->device, &options, &result), RONDO_INVALID_DATA,
               RONDO_REASON_CONTRADICTED);
  assert_message("operator row_norms: its gradient of x is");
  assert_true(result.error > 0.01f);
  definition.name = "short_norms";
  definition.gradient = short_gradient;
  assert_invalid(rondo_operator_check(define(&definition), t->device, &options, NULL), RONDO_REASON_SHAPE);
  assert_message("its gradient of x does not have the shape of the input");
  definition.name = "no_norms";
  definition.gradient = NULL;
  assert_ok(rondo_operator_check(define(&definition), t->device, &options, &result));
  assert_int_equal(result.compared, 0);
}

TEST(test_pr2_a_gradient_that_is_missing) {
  rondo_program *program = test_new_program();
  rondo_operator_definition definition = row_norms_definition();
  const rondo_value x = test_value(program, 'i', "x", ROWS, COLUMNS);
  rondo_value results[2], loss, gradient;
  definition.name = "no_norms";
  definition.gradient = NULL;
  assert_ok(rondo_op_apply(program, define(&definition), &x, 1, NULL, results));
  assert_ok(rondo_op_sum(program, results[0], NULL, 0, false, &loss));
  assert_error(rondo_program_gradients(program, loss, &x, 1, &gradient), RONDO_UNSUPPORTED, RONDO_REASON_NO_FUNCTION);
  assert_message("no_norms (operator 0 of ");
  assert_message("has no gradient, but the loss depends through it on a value");
}

static void past_the_end_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(float **)args[0];
  float *y = *(float **)args[1];
  const size_t count = *(const size_t *)args[2];
  if (blocks.first == 0)
    for (size_t i = 0; i <= count; i++) y[i] = x[i < count ? i : 0];
}

TEST(test_pr2_a_write_past_the_end_is_found) {
  const rondo_kernel_options kernel = {RONDO_KERNEL_OPTIONS_INIT, .name = "spill", .cpu = past_the_end_cpu,
                                       .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)}};
  const rondo_operator_definition definition = {RONDO_OPERATOR_DEFINITION_INIT, .name = "spill", .inputs = {"x"},
                                                .kernels = &kernel, .kernel_count = 1};
  const rondo_shape shape = {RONDO_F32, 1, {64}};
  const rondo_operator_check_options options = {RONDO_OPERATOR_CHECK_OPTIONS_INIT, .inputs = &shape, .input_count = 1};
  if (!test_is_guarded(t)) skip();
  assert_error(rondo_operator_check(define(&definition), t->device, &options, NULL), RONDO_EXECUTION_FAILED,
               RONDO_REASON_OUT_OF_RANGE);
  assert_message("result 0 of operator spill");
}

TEST(test_pr2_what_does_not_fit_is_refused) {
  rondo_program *program = test_new_program();
  const rondo_operator *row_norms = define_row_norms(), *blend = define(&blend_definition);
  const rondo_value x = test_value(program, 'i', "x", ROWS, COLUMNS);
  rondo_value vector, half, results[2];
  assert_ok(rondo_program_input(program, "v", RONDO_F32, (size_t[]){COLUMNS}, 1, &vector));
  assert_ok(rondo_program_input(program, "h", RONDO_F16, (size_t[]){ROWS, COLUMNS}, 2, &half));
  assert_invalid(rondo_op_apply(program, row_norms, &vector, 1, NULL, results), RONDO_REASON_SHAPE);
  assert_message("row_norms(x 'v' [5]");
  assert_message("x must have 2 dimensions");
  assert_invalid(rondo_op_apply(program, row_norms, &half, 1, NULL, results), RONDO_REASON_TYPE);
  assert_invalid(rondo_op_apply(program, row_norms, &x, 0, NULL, results), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_apply(program, row_norms, &x, 3, NULL, results), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_apply(program, NULL, &x, 1, NULL, results), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_op_apply(program, blend, (rondo_value[]){x, x, half}, 3, NULL, results), RONDO_REASON_TYPE);
  assert_invalid(rondo_op_apply(program, blend, (rondo_value[]){x, x, {0}}, 3, NULL, results),
                 RONDO_REASON_NULL_ARGUMENT);
}

/* At compile time: the launch rule says no, or chooses a kernel that does not exist. */
TEST(test_pr2_a_launch_rule_may_refuse) {
  rondo_operator *row_norms = define_row_norms();
  for (size_t which = 0; which < 2; which++) {
    rondo_program *program = test_new_program();
    rondo_compiled *compiled;
    rondo_value results[2];
    const rondo_operator_attributes attributes = {.sizes = {[0] = 1 - which, [1] = which}};
    const rondo_value x = test_value(program, 'i', "x", ROWS, COLUMNS);
    assert_ok(rondo_op_apply(program, row_norms, &x, 1, &attributes, results));
    assert_ok(rondo_program_output(program, "norms", results[0]));
    assert_fails(rondo_compile(program, t->device, NULL, &compiled),
                 which == 0 ? RONDO_UNSUPPORTED : RONDO_INVALID_ARGUMENT);
    assert_message(which == 0 ? "it was told not to run" : "chose kernel 1, but there are 1");
  }
}

TEST(test_pr2_bad_definitions) {
  rondo_operator *made;
  rondo_operator_definition d = row_norms_definition();
  assert_invalid(rondo_operator_define(NULL, &made), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_operator_define(&d, NULL), RONDO_REASON_NULL_ARGUMENT);
  d.name = "2norms";
  assert_invalid(rondo_operator_define(&d, &made), RONDO_REASON_BAD_OPTIONS);
  d = row_norms_definition();
  (void)define(&d);
  assert_invalid(rondo_operator_define(&d, &made), RONDO_REASON_DUPLICATE_NAME);
  d.name = "norms";
  d.inputs[0] = NULL;
  assert_invalid(rondo_operator_define(&d, &made), RONDO_REASON_OUT_OF_RANGE);
  d = row_norms_definition();
  d.name = "norms";
  d.inputs[2] = "y";
  assert_invalid(rondo_operator_define(&d, &made), RONDO_REASON_BAD_OPTIONS);
  assert_message("parameter 2 must be RONDO_READS");
  d = row_norms_definition();
  d.name = "norms";
  d.kernel_count = 0;
  assert_invalid(rondo_operator_define(&d, &made), RONDO_REASON_NULL_ARGUMENT);
  d.element = &blend_element;
  assert_invalid(rondo_operator_define(&d, &made), RONDO_REASON_BAD_OPTIONS);
  d = row_norms_definition();
  d.name = "norms";
  d.types = 1u << RONDO_F64;
  assert_invalid(rondo_operator_define(&d, &made), RONDO_REASON_TYPE);
  d = blend_definition;
  d.name = "norms";
  d.gradient_operator = define_leaky();
  assert_invalid(rondo_operator_define(&d, &made), RONDO_REASON_BAD_OPTIONS);
  d.gradient = NULL;
  assert_invalid(rondo_operator_define(&d, &made), RONDO_REASON_OUT_OF_RANGE);
  d = blend_definition; /* its source defines `blend` */
  d.name = "blen";
  assert_invalid(rondo_operator_define(&d, &made), RONDO_REASON_BAD_OPTIONS);
  assert_message("defines no function with the operator's name");
  assert_null(made);
}

/* An element-wise operator without code for the device. */
TEST(test_pr2_code_for_another_device) {
  rondo_program *program = test_new_program();
  rondo_operator_element element = blend_element;
  rondo_operator_definition definition = blend_definition;
  rondo_device_info info = {0};
  rondo_compiled *compiled;
  const rondo_value x = test_value(program, 'i', "x", ROWS, COLUMNS);
  rondo_value y;
  assert_ok(rondo_device_get_info(t->device, &info));
  if (info.cuda)
    element.cuda_source = NULL;
  else
    element.cpu = NULL;
  definition.element = &element;
  assert_ok(rondo_op_apply(program, define(&definition), (rondo_value[]){x, x, x}, 3, NULL, &y));
  assert_ok(rondo_program_output(program, "y", y));
  assert_error(rondo_compile(program, t->device, NULL, &compiled), RONDO_UNSUPPORTED, RONDO_REASON_NO_FUNCTION);
  assert_message("operator blend has no code for");
}

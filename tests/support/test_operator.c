/* SPDX-License-Identifier: MIT
 * Random cases of an operator: drawing, running, comparing. The loss of the gradients is the sum of the results times
 * weights. The weights are multiples of 1/64, which every float type represents exactly.
 */
#include "support/test_operator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_effort.h"

#define GRADIENT_SAMPLES 30

/* The data of a run: inputs as doubles and as bytes, results, gradients. */
typedef struct run_data {
  double *exact[TEST_MAX_TENSORS];
  void *bytes[TEST_MAX_TENSORS];
  size_t result_count;
  rondo_type result_type;
  double *weights;
  void *result;
  void *gradients[TEST_MAX_TENSORS]; /* NULL: no gradient is compared */
} run_data;

/* Drawing ---------------------------------------------------------------------------------------------------------- */

size_t test_draw_between(uint64_t *seed, size_t low, size_t high) {
  return low + test_random_below(seed, (uint32_t)(high - low + 1));
}

void test_draw_shape(uint64_t *seed, size_t rank, size_t most, size_t *shape) {
  for (size_t i = 0; i < rank; i++) shape[i] = test_random_below(seed, 5) == 0 ? 1 : test_draw_between(seed, 1, most);
}

size_t test_elements(const size_t *shape, size_t rank) {
  size_t count = 1;
  for (size_t i = 0; i < rank; i++) count *= shape[i];
  return count;
}

size_t test_input_elements(const test_call *call, size_t input) {
  return test_elements(call->inputs[input].shape, call->inputs[input].rank);
}

static test_tensor *add_tensor(test_call *call, const size_t *shape, size_t rank) {
  assert_true(call->input_count < TEST_MAX_TENSORS);
  test_tensor *tensor = &call->inputs[call->input_count++];
  tensor->rank = rank;
  for (size_t i = 0; i < rank; i++) tensor->shape[i] = shape[i];
  return tensor;
}

test_tensor *test_add_float(test_call *call, const size_t *shape, size_t rank, double low, double high) {
  test_tensor *tensor = add_tensor(call, shape, rank);
  tensor->low = low;
  tensor->high = high;
  return tensor;
}

test_tensor *test_add_index(test_call *call, const size_t *shape, size_t rank, size_t bound) {
  test_tensor *tensor = add_tensor(call, shape, rank);
  tensor->type = RONDO_I32;
  tensor->high = (double)bound;
  return tensor;
}

/* Numbers ---------------------------------------------------------------------------------------------------------- */

static bool is_float(rondo_type type) { return type == RONDO_F32 || type == RONDO_F16 || type == RONDO_BF16; }

/* The nearest number with `digits` binary digits, the last of which is worth at least 2^least. */
static double round_to(double x, int digits, int least) {
  int exponent;
  if (x == 0 || !isfinite(x)) return x;
  (void)frexp(x, &exponent);
  const int last = exponent - digits > least ? exponent - digits : least;
  return ldexp(nearbyint(ldexp(x, -last)), last);
}

static double round_to_type(double x, rondo_type type) {
  if (type == RONDO_F16) return round_to(x, 11, -24);
  if (type == RONDO_BF16) return round_to(x, 8, -133);
  return type == RONDO_F32 ? (double)(float)x : x;
}

static uint16_t encode_f16(double x) {
  const uint16_t sign = signbit(x) ? 0x8000u : 0;
  const double magnitude = fabs(x);
  int exponent;
  if (magnitude < 0x1p-14) return (uint16_t)(sign | (uint16_t)ldexp(magnitude, 24));
  const double fraction = frexp(magnitude, &exponent); /* 1/2 <= fraction < 1 */
  return (uint16_t)(sign | ((exponent + 14) << 10) | ((int)ldexp(fraction, 11) & 0x3ff));
}

static double decode_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  const double magnitude = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                           : exponent == 0 ? ldexp(fraction, -24)
                                           : ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
}

/* A number that the type represents exactly. */
static void encode(double x, rondo_type type, void *memory, size_t at) {
  const float single = (float)x;
  uint32_t bits;
  memcpy(&bits, &single, sizeof bits);
  if (type == RONDO_F32) ((float *)memory)[at] = single;
  if (type == RONDO_F16) ((uint16_t *)memory)[at] = encode_f16(x);
  if (type == RONDO_BF16) ((uint16_t *)memory)[at] = (uint16_t)(bits >> 16);
  if (type == RONDO_I32) ((int32_t *)memory)[at] = (int32_t)x;
  if (type == RONDO_I64) ((int64_t *)memory)[at] = (int64_t)x;
  if (type == RONDO_I8) ((int8_t *)memory)[at] = (int8_t)x;
  if (type == RONDO_U8 || type == RONDO_BOOL) ((uint8_t *)memory)[at] = (uint8_t)x;
}

static double decode(rondo_type type, const void *memory, size_t at) {
  if (type == RONDO_F32) return (double)((const float *)memory)[at];
  if (type == RONDO_F16) return decode_f16(((const uint16_t *)memory)[at]);
  if (type == RONDO_I32) return (double)((const int32_t *)memory)[at];
  if (type == RONDO_I64) return (double)((const int64_t *)memory)[at];
  if (type == RONDO_I8) return (double)((const int8_t *)memory)[at];
  if (type == RONDO_U8 || type == RONDO_BOOL) return (double)((const uint8_t *)memory)[at];
  const uint32_t bits = (uint32_t)((const uint16_t *)memory)[at] << 16;
  float single;
  memcpy(&single, &bits, sizeof single);
  return (double)single;
}

/* Data ------------------------------------------------------------------------------------------------------------- */

static void *allocate(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  assert_non_null(memory);
  return memory;
}

static rondo_type type_of(const test_call *call, size_t input) {
  return call->inputs[input].type == 0 ? call->type : call->inputs[input].type;
}

static bool wants_gradient(const test_operator *op, const test_call *call, size_t input) {
  if (op->has_ties && call->type != RONDO_F32) return false;
  return !op->has_no_gradient && !op->takes_nan && !call->inputs[input].has_no_gradient &&
         is_float(type_of(call, input));
}

static double draw_number(uint64_t *seed, const test_tensor *tensor, rondo_type type) {
  if (!is_float(type)) return tensor->low + (double)test_random_below(seed, (uint32_t)(tensor->high - tensor->low));
  return tensor->low + (tensor->high - tensor->low) * (double)test_random_below(seed, 1000003) / 1000002;
}

static void draw_data(uint64_t *seed, const test_operator *op, const test_call *call, run_data *data) {
  for (size_t i = 0; i < call->input_count; i++) {
    const size_t count = test_input_elements(call, i);
    const rondo_type type = type_of(call, i);
    data->exact[i] = allocate(count, sizeof(double));
    data->bytes[i] = allocate(count, rondo_type_bytes(type));
    if (wants_gradient(op, call, i)) data->gradients[i] = allocate(count, rondo_type_bytes(type));
    for (size_t k = 0; k < count; k++) {
      const double *given = call->inputs[i].values;
      data->exact[i][k] = round_to_type(given != NULL ? given[k] : draw_number(seed, &call->inputs[i], type), type);
      if (op->takes_nan && is_float(type)) data->exact[i][k] = NAN;
      encode(data->exact[i][k], type, data->bytes[i], k);
    }
  }
  data->weights = allocate(data->result_count, sizeof(double));
  data->result = allocate(data->result_count, rondo_type_bytes(data->result_type));
  for (size_t k = 0; k < data->result_count; k++) data->weights[k] = ((double)test_random_below(seed, 129) - 64) / 64;
}

static void free_data(run_data *data) {
  for (size_t i = 0; i < TEST_MAX_TENSORS; i++) {
    free(data->exact[i]);
    free(data->bytes[i]);
    free(data->gradients[i]);
  }
  free(data->weights);
  free(data->result);
}

/* Programs --------------------------------------------------------------------------------------------------------- */

static const char *const input_names[TEST_MAX_TENSORS] = {"in 0", "in 1", "in 2", "in 3", "in 4", "in 5"};
static const char *const gradient_names[TEST_MAX_TENSORS] = {"gradient 0", "gradient 1", "gradient 2",
                                                             "gradient 3", "gradient 4", "gradient 5"};

static rondo_value add_loss(rondo_program *program, rondo_value y, size_t count) {
  const size_t row[] = {1, count}, column[] = {count, 1};
  rondo_value weights, loss;
  assert_ok(rondo_program_input(program, "weights", RONDO_F32, column, 2, &weights));
  assert_ok(rondo_op_cast(program, y, RONDO_F32, &loss));
  assert_ok(rondo_op_reshape(program, loss, row, 2, &loss));
  assert_ok(rondo_op_matmul(program, loss, weights, (rondo_value){0}, &loss));
  assert_ok(rondo_op_reshape(program, loss, NULL, 0, &loss));
  return loss;
}

/* Adds the gradients of the inputs that have one as outputs. */
static void add_gradients(const test_operator *op, const test_call *call, rondo_program *program,
                          const rondo_value *inputs, rondo_value loss) {
  for (size_t i = 0; i < call->input_count; i++) {
    rondo_value gradient;
    if (!wants_gradient(op, call, i)) continue;
    assert_ok(rondo_program_gradients(program, loss, &inputs[i], 1, &gradient));
    assert_ok(rondo_program_output(program, gradient_names[i], gradient));
  }
}

static bool has_gradients(const test_operator *op, const test_call *call) {
  bool has = false;
  for (size_t i = 0; i < call->input_count; i++) has = has || wants_gradient(op, call, i);
  return has;
}

static rondo_program *make_program(const test_operator *op, const test_call *call, run_data *data) {
  rondo_program *program = NULL;
  rondo_value inputs[TEST_MAX_TENSORS], y;
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  assert_ok(rondo_program_create(NULL, &program));
  for (size_t i = 0; i < call->input_count; i++) {
    const test_tensor *tensor = &call->inputs[i];
    assert_ok(rondo_program_input(program, input_names[i], type_of(call, i), tensor->shape, tensor->rank, &inputs[i]));
  }
  assert_ok(op->build(call, program, inputs, &y));
  assert_ok(rondo_program_output(program, "result", y));
  assert_ok(rondo_value_shape(program, y, &data->result_type, shape, &rank));
  data->result_count = test_elements(shape, rank);
  if (has_gradients(op, call)) add_gradients(op, call, program, inputs, add_loss(program, y, data->result_count));
  return program;
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static void write_inputs(const test_operator *op, const test_call *call, const run_data *data,
                         rondo_compiled *compiled) {
  for (size_t i = 0; i < call->input_count; i++) {
    const size_t bytes = test_input_elements(call, i) * rondo_type_bytes(type_of(call, i));
    assert_ok(rondo_compiled_write(compiled, input_names[i], data->bytes[i], bytes));
  }
  if (!has_gradients(op, call)) return;
  float *weights = allocate(data->result_count, sizeof(float));
  for (size_t i = 0; i < data->result_count; i++) weights[i] = (float)data->weights[i];
  assert_ok(rondo_compiled_write(compiled, "weights", weights, data->result_count * sizeof(float)));
  free(weights);
}

static void read_back(const char *name, rondo_compiled *compiled, void *into, size_t bytes) {
  assert_ok(rondo_compiled_read(compiled, name, into, bytes));
}

/* Runs again and compares the bits. */
static void check_again(const test_operator *op, const char *name, rondo_compiled *compiled, const void *first,
                        size_t bytes) {
  void *again = allocate(bytes, 1);
  read_back(name, compiled, again, bytes);
  if (memcmp(first, again, bytes) != 0) fail_msg("%s: '%s' differs recorded and eager", op->name, name);
  free(again);
}

static void run_program(test_fixture *fixture, const test_operator *op, const test_call *call, rondo_program *program,
                        run_data *data) {
  const size_t result_bytes = data->result_count * rondo_type_bytes(data->result_type);
  rondo_compiled *compiled = NULL;
  assert_ok(rondo_compile(program, fixture->device, NULL, &compiled));
  write_inputs(op, call, data, compiled);
  assert_ok(rondo_compiled_run(compiled));
  read_back("result", compiled, data->result, result_bytes);
  for (int pass = 0; pass < (op->has_state ? 1 : 2); pass++) {
    if (pass == 1) {
      assert_ok(rondo_compiled_run_eager(compiled));
      check_again(op, "result", compiled, data->result, result_bytes);
    }
    for (size_t i = 0; i < call->input_count; i++) {
      const size_t bytes = test_input_elements(call, i) * rondo_type_bytes(type_of(call, i));
      if (data->gradients[i] == NULL) continue;
      if (pass == 0) read_back(gradient_names[i], compiled, data->gradients[i], bytes);
      if (pass == 1) check_again(op, gradient_names[i], compiled, data->gradients[i], bytes);
    }
  }
  assert_ok(rondo_compiled_destroy(compiled));
}

/* Comparing -------------------------------------------------------------------------------------------------------- */

static double tolerance_of(const test_operator *op, rondo_type type) {
  const double own = op->tolerance == 0 ? 4e-6 : op->tolerance;
  if (!is_float(type)) return 0;
  return fmax(own, type == RONDO_F16 ? 0x1p-10 : type == RONDO_BF16 ? 0x1p-7 : 0);
}

/* In a 16-bit type, each of the `terms` terms that broadcasting adds may be rounded. */
static double gradient_tolerance_of(const test_operator *op, rondo_type type, size_t terms) {
  const double own = op->gradient_tolerance == 0 ? 20 * tolerance_of(op, RONDO_F32) : op->gradient_tolerance;
  return fmax(own, type == RONDO_F32 ? 0 : fmax(4, sqrt((double)terms)) * tolerance_of(op, type));
}

static void describe(const test_operator *op, const test_call *call, char *text, size_t bytes) {
  int used = snprintf(text, bytes, "%s of", op->name);
  for (size_t i = 0; i < call->input_count; i++) {
    used += snprintf(text + used, bytes - (size_t)used, " %s [", rondo_type_name(type_of(call, i)));
    for (size_t k = 0; k < call->inputs[i].rank; k++)
      used += snprintf(text + used, bytes - (size_t)used, k == 0 ? "%zu" : ", %zu", call->inputs[i].shape[k]);
    used += snprintf(text + used, bytes - (size_t)used, "]");
  }
}

static void check_number(const test_operator *op, const test_call *call, const char *what, size_t at, double got,
                         double wanted, double tolerance) {
  if (got == wanted || fabs(got - wanted) <= tolerance * fmax(1, fabs(wanted)) || (isnan(got) && isnan(wanted))) return;
  char text[512];
  describe(op, call, text, sizeof text);
  fail_msg("%s: %s %zu is %.9g, not %.9g", text, what, at, got, wanted);
}

static double reference_loss(const test_operator *op, const test_call *call, const run_data *data, double *y) {
  double loss = 0;
  op->reference(call, data->exact, y);
  for (size_t i = 0; i < data->result_count; i++) loss += y[i] * data->weights[i];
  return loss;
}

/* By central differences. */
static double slope_at(const test_operator *op, const test_call *call, run_data *data, size_t input, size_t at,
                       double *y) {
  const double step = 1e-5, here = data->exact[input][at];
  data->exact[input][at] = here + step;
  const double above = reference_loss(op, call, data, y);
  data->exact[input][at] = here - step;
  const double below = reference_loss(op, call, data, y);
  data->exact[input][at] = here;
  return (above - below) / (2 * step);
}

static void check_gradients(const test_operator *op, const test_call *call, run_data *data, uint64_t *seed, double *y) {
  const size_t samples = op->gradient_samples == 0 ? GRADIENT_SAMPLES : op->gradient_samples;
  for (size_t i = 0; i < call->input_count; i++) {
    const size_t count = test_input_elements(call, i);
    const rondo_type type = type_of(call, i), precision = call->inputs[i].has_rounded_gradient ? call->type : type;
    for (size_t s = 0; data->gradients[i] != NULL && s < count && s < samples; s++) {
      const size_t at = count <= samples ? s : test_random_below(seed, (uint32_t)count);
      check_number(op, call, gradient_names[i], at, decode(type, data->gradients[i], at),
                   slope_at(op, call, data, i, at, y),
                   gradient_tolerance_of(op, precision, data->result_count / count));
    }
  }
}

static void check_case(const test_operator *op, const test_call *call, run_data *data, uint64_t *seed) {
  double *y = allocate(data->result_count, sizeof *y);
  op->reference(call, data->exact, y);
  for (size_t i = 0; i < data->result_count; i++) {
    check_number(op, call, "result", i, decode(data->result_type, data->result, i), y[i],
                 tolerance_of(op, data->result_type));
  }
  check_gradients(op, call, data, seed, y);
  free(y);
}

/* For tests of some operators -------------------------------------------------------------------------------------- */

void test_wrong_index(test_fixture *fixture, rondo_program *program, rondo_value y, const void *indices, size_t bytes,
                      const char *message, void *result, size_t result_bytes) {
  rondo_compiled *compiled = NULL;
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_compile(program, fixture->device, NULL, &compiled));
  assert_ok(rondo_compiled_write(compiled, "indices", indices, bytes));
  assert_ok(rondo_compiled_run(compiled));
  assert_error(rondo_compiled_read(compiled, "y", result, result_bytes), RONDO_EXECUTION_FAILED,
               RONDO_REASON_OUT_OF_RANGE);
  assert_message(message);
  assert_ok(rondo_compiled_read(compiled, "y", result, result_bytes));
  assert_ok(rondo_compiled_destroy(compiled));
}

void test_run_program(test_fixture *fixture, rondo_program *program, const test_bytes *inputs,
                      const test_bytes *outputs) {
  rondo_compiled *compiled = NULL;
  assert_ok(rondo_compile(program, fixture->device, NULL, &compiled));
  for (; inputs->bytes != NULL; inputs++)
    assert_ok(rondo_compiled_write(compiled, inputs->name, inputs->bytes, inputs->count));
  assert_ok(rondo_compiled_run(compiled));
  for (; outputs->bytes != NULL; outputs++) read_back(outputs->name, compiled, outputs->bytes, outputs->count);
  assert_ok(rondo_compiled_destroy(compiled));
  rondo_program_destroy(program);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static void run_case(test_fixture *fixture, const test_operator *op, rondo_type type, uint64_t *seed) {
  test_call call = {.op = op, .type = type};
  run_data data = {0};
  op->draw(seed, &call);
  rondo_program *program = make_program(op, &call, &data);
  draw_data(seed, op, &call, &data);
  run_program(fixture, op, &call, program, &data);
  check_case(op, &call, &data, seed);
  free_data(&data);
  rondo_program_destroy(program);
}

void test_operator_cases(test_fixture *fixture, const test_operator *op) {
  static const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16};
  const char *asked = getenv("RONDO_TEST_CASES");
  const uint32_t cases = asked != NULL ? (uint32_t)atoi(asked) : test_effort(24);
  for (size_t t = 0; t < (op->only_f32 || op->takes_nan ? 1 : sizeof types / sizeof types[0]); t++) {
    uint64_t seed = 17;
    for (uint32_t i = 0; i < cases; i++) run_case(fixture, op, types[t], &seed);
  }
}

/* The current row: cmocka's state is the fixture. */
static const test_operator *current_row;

static int set_up_row(void **state) {
  current_row = *state;
  return test_setup(state);
}

static void run_row(void **state) { test_operator_cases(*state, current_row); }

int test_operator_main(const test_operator *rows, size_t row_count) {
  for (size_t i = 0; i < row_count; i++) {
    const struct CMUnitTest test = {rows[i].name, run_row, set_up_row, test_teardown, (void *)(uintptr_t)&rows[i]};
    test_register(&test, 0, true);
  }
  return test_run_registered();
}

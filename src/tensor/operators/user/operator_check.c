/* SPDX-License-Identifier: MIT
 * rondo_operator_check: an operator in three programs of its own: alone; between two operators with which it may be
 * fused; and with its gradients, which are compared with central differences. The results of all runs must have the
 * bits of the first, an eager run of the operator alone. Threads: any.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include <rondo/user_operator.h>

#include "base/allocation.h"
#include "base/error.h"
#include "base/numbers/half_float.h"
#include "base/versioned_struct.h"
#include "tensor/operators/user/isolated_values.h"
#include "tensor/program/operator_registry.h"
#include "tensor/program/shape.h"
#include "tensor/run/compiled.h"

static const char call[] = "rondo_operator_check";

/* A value of the program, with its name. */
typedef struct checked_value {
  char name[16];
  rondo_shape shape;
  rondo_value value;
  size_t bytes, elements;
  void *data;      /* inputs: the elements; results: those of the last run */
  void *first;     /* results: those of the first run */
  float *gradient; /* inputs: by the operator, or NULL; results: the weights in the loss, or NULL */
} checked_value;

typedef struct checker {
  const rondo_operator *operation;
  rondo_device *device;
  rondo_operator_check_options options;
  rondo_scratch scratch;
  uint64_t random;
  rondo_program *program;
  rondo_compiled *compiled;
  uint32_t input_count, result_count;
  checked_value inputs[RONDO_OPERATOR_INPUTS], results[RONDO_OPERATOR_RESULTS];
  rondo_operator_check_result worst;
} checker;

/* Numbers ---------------------------------------------------------------------------------------------------------- */

/* From low to high (Steele, Lea and Flood, SplitMix, OOPSLA 2014). */
static float draw(checker *c, float low, float high) {
  uint64_t z = c->random += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return low + (high - low) * (float)((z ^ z >> 31) >> 40) * 0x1p-24f;
}

static float load(rondo_type type, const void *data, size_t i) {
  if (type == RONDO_F32) return ((const float *)data)[i];
  const uint16_t half = ((const uint16_t *)data)[i];
  return type == RONDO_F16 ? rondo_from_f16(half) : rondo_from_bf16(half);
}

static void store(rondo_type type, void *data, size_t i, float number) {
  if (type == RONDO_F32)
    ((float *)data)[i] = number;
  else
    ((uint16_t *)data)[i] = type == RONDO_F16 ? rondo_to_f16(number) : rondo_to_bf16(number);
}

/* What is used in place of a step and a tolerance of 0: a type with fewer bits has more of the error of rounding, which
 * a larger step makes smaller. */
typedef struct type_default {
  float step, tolerance;
} type_default;

static const type_default *default_of(rondo_type type) {
  static const type_default wide = {0.01f, 0.01f}, f16 = {0x1p-4f, 0.1f}, bf16 = {0x1p-3f, 0.25f};
  return type == RONDO_F16 ? &f16 : type == RONDO_BF16 ? &bf16 : &wide;
}

/* The program ------------------------------------------------------------------------------------------------------ */

static void name_value(checked_value *value, char letter, uint32_t number) {
  value->name[0] = letter;
  value->name[1] = (char)('0' + number);
  value->name[2] = '\0';
}

static rondo_status make_input(checker *c, uint32_t number) {
  checked_value *input = &c->inputs[number];
  const rondo_shape *given = &c->options.inputs[number];
  const void *values = c->options.values == NULL ? NULL : c->options.values[number];
  name_value(input, 'x', number);
  if (given->type == 0) return RONDO_OK;
  RONDO_TRY(rondo_shape_make(call, given->type, given->dims, given->rank, &input->shape));
  input->elements = rondo_shape_elements(&input->shape);
  input->bytes = rondo_shape_bytes(&input->shape);
  RONDO_TRY(rondo_scratch_take(&c->scratch, input->bytes, 1, &input->data));
  if (values != NULL)
    memcpy(input->data, values, input->bytes);
  else if (rondo_shape_is_float(&input->shape))
    for (size_t i = 0; i < input->elements; i++)
      store(input->shape.type, input->data, i, draw(c, c->options.low, c->options.high));
  return RONDO_OK;
}

/* Multiplies by 1, which keeps all bits but those of signalling NaNs, so that the operator has a neighbour. */
static rondo_status add_neighbour(checker *c, const rondo_shape *shape, rondo_value *inout_value) {
  return rondo_shape_is_float(shape) ? rondo_op_scale(c->program, *inout_value, 1, inout_value) : RONDO_OK;
}

static rondo_status add_input(checker *c, checked_value *input, bool with_neighbours, rondo_value *out_operand) {
  *out_operand = (rondo_value){0};
  if (input->elements == 0) return RONDO_OK;
  RONDO_TRY(rondo_program_input(c->program, input->name, input->shape.type, input->shape.dims, input->shape.rank,
                                &input->value));
  *out_operand = input->value;
  return with_neighbours ? add_neighbour(c, &input->shape, out_operand) : RONDO_OK;
}

static rondo_status make_result(checker *c, uint32_t number, rondo_value value) {
  checked_value *result = &c->results[number];
  size_t rank;
  name_value(result, 'y', number);
  RONDO_TRY(rondo_value_shape(c->program, value, &result->shape.type, result->shape.dims, &rank));
  result->shape.rank = (uint32_t)rank;
  result->elements = rondo_shape_elements(&result->shape);
  result->bytes = rondo_shape_bytes(&result->shape);
  RONDO_TRY(rondo_scratch_take(&c->scratch, result->bytes, 1, &result->first));
  return rondo_scratch_take(&c->scratch, result->bytes, 1, &result->data);
}

static rondo_status add_result(checker *c, uint32_t number, bool with_neighbours, rondo_value value) {
  checked_value *result = &c->results[number];
  if (result->data == NULL) RONDO_TRY(make_result(c, number, value));
  result->value = value;
  if (with_neighbours) RONDO_TRY(add_neighbour(c, &result->shape, &value));
  return rondo_program_output(c->program, result->name, value);
}

/* A program of the operator in place of the one before. */
static rondo_status begin_program(checker *c, bool with_neighbours) {
  rondo_value inputs[RONDO_OPERATOR_INPUTS], results[RONDO_OPERATOR_RESULTS];
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = c->scratch.allocator};
  rondo_program_destroy(c->program);
  RONDO_TRY(rondo_program_create(&options, &c->program));
  for (uint32_t i = 0; i < c->input_count; i++) RONDO_TRY(add_input(c, &c->inputs[i], with_neighbours, &inputs[i]));
  RONDO_TRY(rondo_op_apply(c->program, c->operation, inputs, c->input_count, &c->options.attributes, results));
  for (uint32_t r = 0; r < c->result_count; r++) RONDO_TRY(add_result(c, r, with_neighbours, results[r]));
  return RONDO_OK;
}

/* Adds the sum of a result with random weights to the loss. */
static rondo_status add_to_loss(checker *c, uint32_t number, rondo_value *inout_loss) {
  checked_value *result = &c->results[number];
  const rondo_shape *shape = &result->shape;
  rondo_value wide, weights, product, sum;
  char name[] = "w0";
  name[1] = (char)('0' + number);
  RONDO_TRY(rondo_scratch_take(&c->scratch, result->elements, sizeof *result->gradient, &result->gradient));
  for (size_t i = 0; i < result->elements; i++) result->gradient[i] = draw(c, -1, 1);
  RONDO_TRY(rondo_program_input(c->program, name, RONDO_F32, shape->dims, shape->rank, &weights));
  RONDO_TRY(rondo_op_cast(c->program, result->value, RONDO_F32, &wide));
  RONDO_TRY(rondo_op_mul(c->program, wide, weights, &product));
  RONDO_TRY(rondo_op_reshape(c->program, product, &result->elements, 1, &product));
  RONDO_TRY(rondo_op_sum(c->program, product, &(const size_t){0}, 1, false, &sum));
  if (inout_loss->id != 0) return rondo_op_add(c->program, *inout_loss, sum, inout_loss);
  *inout_loss = sum;
  return RONDO_OK;
}

/* Outputs "g0", ...: the gradients of the float inputs, if there are float results too. */
static rondo_status add_gradients(checker *c) {
  rondo_value loss = {0}, values[RONDO_OPERATOR_INPUTS], gradients[RONDO_OPERATOR_INPUTS];
  uint32_t of[RONDO_OPERATOR_INPUTS], count = 0;
  for (uint32_t r = 0; r < c->result_count; r++)
    if (rondo_shape_is_float(&c->results[r].shape)) RONDO_TRY(add_to_loss(c, r, &loss));
  if (loss.id == 0) return RONDO_OK;
  for (uint32_t i = 0; i < c->input_count; i++) {
    checked_value *input = &c->inputs[i];
    if (input->elements == 0 || !rondo_shape_is_float(&input->shape)) continue;
    RONDO_TRY(rondo_scratch_take(&c->scratch, input->elements, sizeof *input->gradient, &input->gradient));
    of[count] = i;
    values[count++] = input->value;
  }
  if (count == 0) return RONDO_OK;
  RONDO_TRY(rondo_program_gradients(c->program, loss, values, count, gradients));
  for (uint32_t g = 0; g < count; g++) {
    char name[] = "g0";
    name[1] = (char)('0' + of[g]);
    RONDO_TRY(rondo_op_cast(c->program, gradients[g], RONDO_F32, &gradients[g]));
    RONDO_TRY(rondo_program_output(c->program, name, gradients[g]));
  }
  return RONDO_OK;
}

/* Runs ------------------------------------------------------------------------------------------------------------- */

static rondo_status write_inputs(checker *c) {
  for (uint32_t i = 0; i < c->input_count; i++) {
    const checked_value *input = &c->inputs[i];
    if (input->elements > 0) RONDO_TRY(rondo_compiled_write(c->compiled, input->name, input->data, input->bytes));
  }
  for (uint32_t r = 0; r < c->result_count; r++) {
    const checked_value *result = &c->results[r];
    char name[] = "w0";
    name[1] = (char)('0' + r);
    if (result->gradient == NULL) continue;
    RONDO_TRY(rondo_compiled_write(c->compiled, name, result->gradient, result->elements * sizeof(float)));
  }
  return RONDO_OK;
}

static rondo_status read_results(checker *c) {
  for (uint32_t r = 0; r < c->result_count; r++)
    RONDO_TRY(rondo_compiled_read(c->compiled, c->results[r].name, c->results[r].data, c->results[r].bytes));
  return RONDO_OK;
}

/* The loss of the results that were read, in double. */
static double loss_of(const checker *c) {
  double loss = 0;
  for (uint32_t r = 0; r < c->result_count; r++) {
    const checked_value *result = &c->results[r];
    if (result->gradient == NULL) continue;
    for (size_t i = 0; i < result->elements; i++)
      loss += (double)result->gradient[i] * (double)load(result->shape.type, result->data, i);
  }
  return loss;
}

static rondo_status compare_results(checker *c, const char *how) {
  for (uint32_t r = 0; r < c->result_count; r++) {
    if (memcmp(c->results[r].first, c->results[r].data, c->results[r].bytes) == 0) continue;
    return rondo_fail(
        RONDO_INVALID_DATA, RONDO_REASON_CONTRADICTED,
        "%s: operator %s: result %u of %s has other bits than that of an eager run of the operator alone: "
        "it must write all of its results, which must not depend on how the elements are divided, on "
        "memory that is no input, nor on earlier runs",
        call, c->operation->name, r, how);
  }
  return RONDO_OK;
}

/* The values in memory of their own are those of the last run. */
static bool is_unchanged(const checked_value *input, const rondo_isolated_values *values, const void *isolated) {
  if (!values->is_wide) return memcmp(isolated, input->data, input->bytes) == 0;
  for (size_t i = 0; i < input->elements; i++) {
    const float element = load(input->shape.type, input->data, i);
    if (memcmp((const float *)isolated + i, &element, sizeof element) != 0) return false;
  }
  return true;
}

static rondo_status compare_inputs(const checker *c) {
  const rondo_isolated_values *values = rondo_isolated_values_of(&c->compiled->resources, c->operation);
  for (uint32_t i = 0; i < c->input_count && values != NULL; i++) {
    const checked_value *input = &c->inputs[i];
    if (input->elements == 0 || is_unchanged(input, values, values->inputs[i])) continue;
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_CONTRADICTED,
                      "%s: operator %s writes its input %s: an operator only writes its results", call,
                      c->operation->name, c->operation->inputs[i]);
  }
  return RONDO_OK;
}

static rondo_status run_eager(checker *c) {
  RONDO_TRY(write_inputs(c));
  RONDO_TRY(rondo_compiled_run_eager(c->compiled));
  return read_results(c);
}

static rondo_status run_recorded(checker *c) {
  RONDO_TRY(write_inputs(c));
  RONDO_TRY(rondo_compiled_run(c->compiled));
  return read_results(c);
}

/* Differences ------------------------------------------------------------------------------------------------------ */

static rondo_status run_with(checker *c, checked_value *input, size_t element, float number, double *out_loss) {
  store(input->shape.type, input->data, element, number);
  RONDO_TRY(rondo_compiled_write(c->compiled, input->name, input->data, input->bytes));
  RONDO_TRY(rondo_compiled_run(c->compiled));
  RONDO_TRY(read_results(c));
  *out_loss = loss_of(c);
  return RONDO_OK;
}

/* About a number, in numbers that the type can represent. */
static rondo_status differ(checker *c, checked_value *input, size_t element, float *out) {
  const rondo_type type = input->shape.type;
  const float number = load(type, input->data, element);
  const float step = c->options.step != 0 ? c->options.step : default_of(type)->step;
  double above, below;
  store(type, input->data, element, number + step);
  const float high = load(type, input->data, element);
  store(type, input->data, element, number - step);
  const float low = load(type, input->data, element);
  if (high == low) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: element %zu of %s is %g, which a step of %g does not change: use a larger step or smaller "
                      "numbers",
                      call, element, input->name, (double)number, (double)step);
  }
  RONDO_TRY(run_with(c, input, element, high, &above));
  RONDO_TRY(run_with(c, input, element, low, &below));
  store(type, input->data, element, number);
  *out = (float)((above - below) / ((double)high - (double)low));
  return RONDO_OK;
}

static void note(checker *c, uint32_t input, size_t element, float gradient, float difference) {
  const float error = fabsf(gradient - difference) / fmaxf(1, fmaxf(fabsf(gradient), fabsf(difference)));
  c->worst.compared++;
  if (c->worst.compared > 1 && error <= c->worst.error) return; /* NaN is an error */
  c->worst.input = input;
  c->worst.element = element;
  c->worst.gradient = gradient;
  c->worst.difference = difference;
  c->worst.error = error;
}

static rondo_status compare_input(checker *c, uint32_t number) {
  checked_value *input = &c->inputs[number];
  const size_t most = c->options.max_elements;
  const size_t step = input->elements / most + (input->elements % most != 0);
  for (size_t i = 0; i < input->elements && !isnan(c->worst.error); i += step) {
    float difference = 0;
    RONDO_TRY(differ(c, input, i, &difference));
    note(c, number, i, input->gradient[i], difference);
  }
  return rondo_compiled_write(c->compiled, input->name, input->data, input->bytes);
}

static rondo_status read_gradients(checker *c) {
  for (uint32_t i = 0; i < c->input_count; i++) {
    checked_value *input = &c->inputs[i];
    char name[] = "g0";
    name[1] = (char)('0' + i);
    if (input->gradient == NULL) continue;
    RONDO_TRY(rondo_compiled_read(c->compiled, name, input->gradient, input->elements * sizeof(float)));
  }
  return RONDO_OK;
}

static float tolerance_of(const checker *c) {
  float tolerance = c->options.tolerance;
  for (uint32_t i = 0; i < c->input_count && c->options.tolerance == 0; i++)
    tolerance = fmaxf(tolerance, default_of(c->inputs[i].shape.type)->tolerance);
  for (uint32_t r = 0; r < c->result_count && c->options.tolerance == 0; r++)
    tolerance = fmaxf(tolerance, default_of(c->results[r].shape.type)->tolerance);
  return tolerance;
}

static rondo_status judge(const checker *c) {
  const rondo_operator_check_result *w = &c->worst;
  const float tolerance = tolerance_of(c);
  if (w->error <= tolerance) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_CONTRADICTED,
                    "%s: operator %s: its gradient of %s is %g at element %zu, but differences give %g (relative error "
                    "%g, allowed %g)",
                    call, c->operation->name, c->operation->inputs[w->input], (double)w->gradient, w->element,
                    (double)w->difference, (double)w->error, (double)tolerance);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status compile(checker *c, rondo_fusion_policy fusion) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS, .fusion = fusion};
  RONDO_TRY(rondo_compiled_destroy(c->compiled));
  c->compiled = NULL;
  return rondo_compile(c->program, c->device, &options, &c->compiled);
}

static rondo_status check_alone(checker *c) {
  for (uint32_t i = 0; i < c->input_count; i++) RONDO_TRY(make_input(c, i));
  RONDO_TRY(begin_program(c, false));
  RONDO_TRY(compile(c, RONDO_FUSION_NEVER));
  RONDO_TRY(run_eager(c));
  for (uint32_t r = 0; r < c->result_count; r++) memcpy(c->results[r].first, c->results[r].data, c->results[r].bytes);
  RONDO_TRY(compare_inputs(c));
  RONDO_TRY(run_recorded(c));
  return compare_results(c, "a recorded run");
}

static rondo_status check_fused(checker *c) {
  RONDO_TRY(begin_program(c, true));
  RONDO_TRY(compile(c, RONDO_FUSION_AUTO));
  RONDO_TRY(run_eager(c));
  RONDO_TRY(compare_results(c, "an eager run that may be fused"));
  RONDO_TRY(run_recorded(c));
  return compare_results(c, "a recorded run that may be fused");
}

static rondo_status check_gradients(checker *c) {
  RONDO_TRY(begin_program(c, false));
  RONDO_TRY(add_gradients(c));
  RONDO_TRY(compile(c, RONDO_FUSION_AUTO));
  RONDO_TRY(run_eager(c));
  RONDO_TRY(compare_results(c, "an eager run with its gradients"));
  RONDO_TRY(run_recorded(c));
  RONDO_TRY(compare_results(c, "a recorded run with its gradients"));
  RONDO_TRY(read_gradients(c));
  for (uint32_t i = 0; i < c->input_count; i++)
    if (c->inputs[i].gradient != NULL) RONDO_TRY(compare_input(c, i));
  return judge(c);
}

static rondo_status run_checks(checker *c) {
  RONDO_TRY(check_alone(c));
  RONDO_TRY(check_fused(c));
  return c->operation->differentiate == NULL ? RONDO_OK : check_gradients(c);
}

static rondo_status check_numbers(const rondo_operator_check_options *o) {
  const bool are_finite = isfinite(o->low) && isfinite(o->high) && isfinite(o->step);
  if (are_finite && o->low <= o->high && o->step >= 0 && o->tolerance >= 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: low %g, high %g and step %g must be finite, low at most high, step and tolerance %g not below "
                    "0",
                    call, (double)o->low, (double)o->high, (double)o->step, (double)o->tolerance);
}

static rondo_status read_options(const rondo_operator *operation, const rondo_operator_check_options *options,
                                 rondo_operator_check_options *out) {
  RONDO_TRY(rondo_require(call, "options", options));
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_operator_check_options", options, out));
  RONDO_TRY(rondo_require(call, "inputs", out->inputs));
  if (out->input_count > rondo_operator_input_count(operation)) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: operator %s has %u inputs, not %u", call,
                      operation->name, rondo_operator_input_count(operation), out->input_count);
  }
  if (out->low == 0 && out->high == 0) out->low = -(out->high = 1);
  if (out->max_elements == 0) out->max_elements = 256;
  return check_numbers(out);
}

rondo_status rondo_operator_check(const rondo_operator *operation, rondo_device *device,
                                  const rondo_operator_check_options *options,
                                  rondo_operator_check_result *out_result) {
  checker c = {.operation = operation, .device = device};
  RONDO_TRY(rondo_require(call, "operation", operation));
  RONDO_TRY(rondo_require(call, "device", device));
  RONDO_TRY(rondo_versioned_check("rondo_operator_check_result", out_result, sizeof *out_result));
  RONDO_TRY(read_options(operation, options, &c.options));
  c.scratch.allocator = &rondo_user_operator_of(operation)->allocator;
  c.random = c.options.seed;
  c.input_count = c.options.input_count;
  c.result_count = operation->result_count;
  rondo_status status = run_checks(&c);
  const rondo_status ended = rondo_compiled_destroy(c.compiled);
  if (status == RONDO_OK) status = ended;
  rondo_program_destroy(c.program);
  rondo_scratch_free(&c.scratch);
  if (out_result == NULL || (status != RONDO_OK && c.worst.compared == 0)) return status;
  const rondo_status written =
      rondo_versioned_write("rondo_operator_check_result", &c.worst, out_result, sizeof c.worst);
  return status == RONDO_OK ? written : status;
}

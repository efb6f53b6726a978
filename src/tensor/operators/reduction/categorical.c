/* SPDX-License-Identifier: MIT
 * categorical: draws an index for each row of logits, with temperature, top-k (Fan et al. 2018) and top-p (Holtzman et
 * al. 2020, nucleus sampling). The softmax of what top-k leaves, the best first if an order is needed, is summed up;
 * categorical_draw then finds the index in the sums. Its random number is a function of the row's seed and counter
 * (rondo_philox), so it does not depend on other rows, on what ran before, or on the device. Threads: as
 * tensor/program/operator.h says.
 */
#include <float.h>
#include <math.h>

#include <rondo/random.h>

#include "base/binary_search.h"
#include "tensor/operators/common/operator_tools.h"

enum { SUMS, SEEDS, COUNTERS }; /* inputs of categorical_draw */
enum { TOP_P };                 /* numbers */

#define LEAST_TEMPERATURE 1e-9f

/* Drawing ---------------------------------------------------------------------------------------------------------- */

/* A scalar argument of the kernel; without padding. */
typedef struct draw_shape {
  size_t rows, columns;
  float top_p;
  uint32_t reserved;
} draw_shape;

/* An index for which `sums`, which ascend, are at least the bound, or above it: the first one. */
static size_t find_at_least(const float *sums, size_t count, float bound) {
  size_t low = 0;
  RONDO_BINARY_SEARCH(low, count, middle, sums[middle] < bound)
  return low;
}
static size_t find_above(const float *sums, size_t count, float bound) {
  size_t low = 0;
  RONDO_BINARY_SEARCH(low, count, middle, sums[middle] <= bound)
  return low;
}

/* Elements of probability 0 are not drawn: those at the end come after `last`. With NaN, the first one is. */
static size_t draw_index(const draw_shape *shape, const float *sums, uint64_t seed, int32_t counter) {
  const size_t end = shape->columns - 1;
  const size_t last = find_at_least(sums, end, shape->top_p * sums[end]);
  const float uniform = (float)(rondo_philox(seed, (uint32_t)counter, 0).x[0] >> 8) * 0x1p-24f;
  return find_above(sums, last, uniform * sums[last]);
}

static void categorical_draw_cpu(rondo_blocks blocks, void *const *args) {
  const draw_shape *shape = args[0];
  const float *sums = RONDO_ARG(const float *, 1);
  const uint64_t *seeds = RONDO_ARG(const uint64_t *, 2);
  const int32_t *counters = RONDO_ARG(const int32_t *, 3);
  int32_t *to = RONDO_ARG(int32_t *, 4);
  RONDO_EACH_ITEM(row, blocks, shape->rows)
    to[row] = (int32_t)draw_index(shape, sums + row * shape->columns, seeds[row], counters[row]);
}

RONDO_UNTYPED_KERNEL(categorical_draw, categorical_draw, RONDO_SCALAR(draw_shape), RONDO_READS, RONDO_READS,
                     RONDO_READS, RONDO_WRITES);

static rondo_status infer_draw(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *sums = rondo_operation_input(program, operation, SUMS);
  RONDO_TRY(rondo_require_input(program, operation, SEEDS, RONDO_I64, 1));
  RONDO_TRY(rondo_require_input(program, operation, COUNTERS, RONDO_I32, 1));
  results[0] = rondo_shape_vector(RONDO_I32, sums->dims[0]);
  if (rondo_operation_input(program, operation, SEEDS)->dims[0] == sums->dims[0] &&
      rondo_operation_input(program, operation, COUNTERS)->dims[0] == sums->dims[0])
    return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "seeds and counters must have an element for each of the %zu rows", sums->dims[0]);
}

static rondo_status emit_draw(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *sums = rondo_emit_shape(emitter, operation->inputs[SUMS]);
  const draw_shape shape = {
      .rows = sums->dims[0], .columns = sums->dims[1], .top_p = operation->attributes.numbers[TOP_P]};
  return rondo_emit_operands(emitter, operation, &categorical_draw_code,
                             rondo_emit_grid(emitter, shape.rows, (rondo_grain){64, RONDO_CUDA_THREADS}),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(SUMS), RONDO_INPUT(SEEDS),
                                            RONDO_INPUT(COUNTERS), RONDO_RESULT(0)));
}

RONDO_OPERATOR(categorical_draw, .inputs = {"sums", "seeds", "counters"}, .required = 3, .result_count = 1,
               .infer = infer_draw, .emit = emit_draw);

/* Call ------------------------------------------------------------------------------------------------------------- */

static const char call[] = "categorical";

/* A call: its values, and the options with defaults filled in. */
typedef struct categorical_call {
  rondo_value logits, seeds, counters;
  rondo_categorical_options options;
  size_t rows, columns, temperature_rank;
} categorical_call;

static rondo_status check_logits(const rondo_program *program, categorical_call *of) {
  char text[RONDO_SHAPE_TEXT];
  uint32_t index;
  RONDO_TRY(rondo_program_resolve(program, of->logits, call, "logits", &index));
  const rondo_shape *shape = rondo_program_shape(program, index);
  if (!rondo_shape_is_float(shape))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "%s: logits are %s; they must be f32, f16 or bf16",
                      call, rondo_type_name(shape->type));
  if (shape->rank != 2 || shape->dims[1] > INT32_MAX)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "%s: logits are %s; they must be [n, v], with at most 2^31 - 1 columns", call,
                      rondo_shape_text(text, shape));
  of->rows = shape->dims[0];
  of->columns = shape->dims[1];
  return RONDO_OK;
}

static rondo_status check_temperature(const rondo_program *program, categorical_call *of) {
  char text[RONDO_SHAPE_TEXT];
  uint32_t index;
  if (of->options.temperature.id == 0) return RONDO_OK;
  RONDO_TRY(rondo_program_resolve(program, of->options.temperature, call, "temperature", &index));
  const rondo_shape *shape = rondo_program_shape(program, index);
  of->temperature_rank = shape->rank;
  if (shape->type == RONDO_F32 && (shape->rank == 0 || (shape->rank == 1 && shape->dims[0] == of->rows)))
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, shape->type == RONDO_F32 ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
                    "%s: temperature is %s; it must be f32, a scalar or [n] with n %zu", call,
                    rondo_shape_text(text, shape), of->rows);
}

static rondo_status check_options(categorical_call *of) {
  rondo_categorical_options *o = &of->options;
  if (o->top_p == 0) o->top_p = 1;
  if (o->top_k == 0) o->top_k = of->columns;
  if (o->top_k <= of->columns && o->top_p > 0 && o->top_p <= 1) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: top_k %zu and top_p %g of %zu columns: top_k must be 1 to all of them, top_p above 0 and at "
                    "most 1, and 0 of both means all",
                    call, o->top_k, (double)o->top_p, of->columns);
}

/* A temperature of 0 makes the difference of the best logit to the others so large that it is drawn. */
static rondo_status add_temperature(rondo_program *program, const categorical_call *of, rondo_value *inout_logits) {
  rondo_value divisor;
  if (of->options.temperature.id == 0) return RONDO_OK;
  RONDO_TRY(rondo_op_clamp(program, of->options.temperature, LEAST_TEMPERATURE, FLT_MAX, &divisor));
  if (of->temperature_rank == 1) RONDO_TRY(rondo_op_reshape(program, divisor, (size_t[]){of->rows, 1}, 2, &divisor));
  return rondo_op_div(program, *inout_logits, divisor, inout_logits);
}

static rondo_status add_draw(rondo_program *program, const categorical_call *of, rondo_value logits,
                             rondo_value *out_drawn) {
  const rondo_attributes attributes = {.numbers = {[TOP_P] = of->options.top_p}};
  rondo_value values[] = {logits, of->seeds, of->counters};
  RONDO_TRY(rondo_op_softmax(program, logits, &values[SUMS]));
  RONDO_TRY(rondo_op_cumsum(program, values[SUMS], 1, false, false, &values[SUMS]));
  return rondo_program_apply(program, &rondo_operator_categorical_draw, values, 3, &attributes, out_drawn);
}

/* Only top-k and top-p need the logits in an order. */
static rondo_status add_all(rondo_program *program, const categorical_call *of, rondo_value *out_drawn) {
  const bool is_sorted = of->options.top_k < of->columns || of->options.top_p < 1;
  rondo_value logits, indices;
  RONDO_TRY(rondo_op_cast(program, of->logits, RONDO_F32, &logits));
  RONDO_TRY(add_temperature(program, of, &logits));
  if (is_sorted) RONDO_TRY(rondo_op_topk(program, logits, of->options.top_k, 1, false, &logits, &indices));
  RONDO_TRY(add_draw(program, of, logits, out_drawn));
  if (!is_sorted) return RONDO_OK;
  RONDO_TRY(rondo_op_reshape(program, *out_drawn, (size_t[]){of->rows, 1}, 2, out_drawn));
  RONDO_TRY(rondo_op_gather(program, indices, *out_drawn, 1, out_drawn));
  return rondo_op_reshape(program, *out_drawn, &of->rows, 1, out_drawn);
}

rondo_status rondo_op_categorical(rondo_program *program, rondo_value logits, rondo_value seeds, rondo_value counters,
                                  const rondo_categorical_options *options, rondo_value *out_value) {
  categorical_call of = {.logits = logits, .seeds = seeds, .counters = counters};
  rondo_value drawn = {0};
  uint32_t result = RONDO_NO_VALUE;
  RONDO_TRY(rondo_program_begin(program, call, out_value));
  RONDO_TRY(rondo_versioned_read("rondo_categorical_options", options, &of.options, sizeof of.options));
  RONDO_TRY(check_logits(program, &of));
  RONDO_TRY(check_temperature(program, &of));
  RONDO_TRY(check_options(&of));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  rondo_status status = add_all(program, &of, &drawn);
  if (status == RONDO_OK) status = rondo_program_resolve(program, drawn, call, "result", &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}

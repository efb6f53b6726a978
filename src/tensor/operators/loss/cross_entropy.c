/* SPDX-License-Identifier: MIT
 * cross_entropy: the mean over rows of -log softmax(logits)[label]. A first kernel writes the loss of each row, and its
 * maximum and sum of exponentials, from which the gradient computes the softmax again. A second kernel of one block
 * computes the mean, so that the order of the sum is fixed. Threads: as tensor/program/operator.h says.
 *
 * With s = label smoothing over n columns, the row's loss is log(sum) - (1 - s) z[label] - s / n * (sum of z), where z
 * is logits - maximum: the cross entropy with (1 - s) onehot + s / n. With a weight for each class, the terms of the
 * sum over columns are multiplied by it, and the mean is divided by the sum of the labels' weights, as in PyTorch.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/common/operator_tools.h"

enum { LOGITS, LABELS, WEIGHTS };   /* inputs */
enum { LOSS, MAXIMA, SUMS, COUNT }; /* results; COUNT: the rows that are not ignored, or the sum of their weights */
enum { IGNORED };                   /* sizes: the ignored label, as a size_t */
enum { SMOOTHING };                 /* numbers */
enum { IGNORES };                   /* flags */

/* A scalar argument of the kernels; without padding. */
typedef struct rows_shape {
  size_t rows, columns;
  int64_t ignored;
  uint32_t wide_labels;
  uint16_t ignores, is_smoothed;
  float to_label, to_each; /* the weight of the label, 1 - s, in addition to that of each column, s / n */
} rows_shape;

static rows_shape shape_of(const rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *logits = rondo_emit_shape(emitter, operation->inputs[LOGITS]);
  const rondo_shape *labels = rondo_emit_shape(emitter, operation->inputs[LABELS]);
  const rondo_attributes *attributes = &operation->attributes;
  const float smoothing = attributes->numbers[SMOOTHING];
  const size_t columns = rondo_shape_last(logits);
  assert(rondo_shape_elements(labels) * columns == rondo_shape_elements(logits));
  return (rows_shape){.rows = rondo_shape_elements(labels),
                      .columns = columns,
                      .ignored = (int64_t)attributes->sizes[IGNORED],
                      .wide_labels = labels->type == RONDO_I64,
                      .ignores = attributes->flags[IGNORES],
                      .is_smoothed = smoothing > 0,
                      .to_label = 1.0f - smoothing,
                      .to_each = smoothing / (float)columns};
}

RONDO_INLINE bool is_ignored(const rows_shape *shape, int64_t label) {
  return shape->ignores != 0 && label == shape->ignored;
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

/* The sum of x - largest over a row. */
RONDO_INLINE float row_sum_below(rondo_type type, const void *x, size_t first, float largest, size_t columns) {
  float sums[RONDO_LANES] = {0}, buffer[RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, columns) {
    const float *chunk = rondo_load_chunk(type, x, first + at, length, buffer);
    RONDO_EACH_LANE(i, lane, length, sums[lane] += chunk[i] - largest);
  }
  return rondo_join_lanes(sums);
}

RONDO_INLINE float row_loss(rondo_type type, const rows_shape *shape, const void *logits, size_t first, size_t label,
                            float largest, float sum) {
  const float at_label = rondo_load_one(type, logits, first + label);
  const float loss = logf(sum) - shape->to_label * (at_label - largest);
  if (shape->is_smoothed == 0) return loss;
  return loss - shape->to_each * row_sum_below(type, logits, first, largest, shape->columns);
}

/* The sum of weight · (log(sum) - z) over a row. */
RONDO_INLINE float weighted_sum(rondo_type type, const void *x, size_t first, float largest, float log_sum,
                                const float *weights, size_t columns) {
  float sums[RONDO_LANES] = {0}, buffer[RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, columns) {
    const float *chunk = rondo_load_chunk(type, x, first + at, length, buffer), *by = weights + at;
    RONDO_EACH_LANE(i, lane, length, sums[lane] += by[i] * (log_sum - (chunk[i] - largest)));
  }
  return rondo_join_lanes(sums);
}

RONDO_INLINE float weighted_loss(rondo_type type, const rows_shape *shape, const void *logits, size_t first,
                                 size_t label, float largest, float sum, const float *weights) {
  const float log_sum = logf(sum), at_label = rondo_load_one(type, logits, first + label);
  const float loss = shape->to_label * weights[label] * (log_sum - (at_label - largest));
  if (shape->is_smoothed == 0) return loss;
  return loss + shape->to_each * weighted_sum(type, logits, first, largest, log_sum, weights, shape->columns);
}

RONDO_VECTORISED_KERNEL(cross_entropy_rows_cpu) {
  const rows_shape *shape = args[0];
  const void *logits = RONDO_ARG(const void *, 1);
  const void *labels = RONDO_ARG(const void *, 2);
  const float *weights = RONDO_ARG(const float *, 3);
  float *losses = RONDO_ARG(float *, 4);
  float *maxima = RONDO_ARG(float *, 5);
  float *sums = RONDO_ARG(float *, 6);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 7);
  RONDO_EACH_ITEM(row, blocks, shape->rows) {
    const size_t first = row * shape->columns;
    const int64_t given = rondo_index_at(labels, shape->wide_labels, row);
    maxima[row] = rondo_typed_row_max(type, logits, first, shape->columns);
    sums[row] = rondo_typed_row_exp_sum(type, logits, first, maxima[row], shape->columns);
    losses[row] = 0;
    if (is_ignored(shape, given)) continue;
    const size_t label = rondo_check_index(cell, row, given, shape->columns) ? (size_t)given : 0;
    losses[row] = weights == NULL ? row_loss(type, shape, logits, first, label, maxima[row], sums[row])
                                  : weighted_loss(type, shape, logits, first, label, maxima[row], sums[row], weights);
  }
}

RONDO_TYPED_KERNEL(cross_entropy_rows, cross_entropy, RONDO_SCALAR(rows_shape), RONDO_READS, RONDO_READS, RONDO_READS,
                   RONDO_WRITES, RONDO_WRITES, RONDO_WRITES, RONDO_CHECK_PARAMETERS);

/* A wrong label counts as 0. */
RONDO_INLINE size_t label_of(const rows_shape *shape, int64_t given) {
  return given >= 0 && (uint64_t)given < shape->columns ? (size_t)given : 0;
}

static void cross_entropy_mean_cpu(rondo_blocks blocks, void *const *args) {
  const rows_shape *shape = args[0];
  const float *losses = RONDO_ARG(const float *, 1);
  const void *labels = RONDO_ARG(const void *, 2);
  const float *weights = RONDO_ARG(const float *, 3);
  float *loss = RONDO_ARG(float *, 4);
  float *out_count = RONDO_ARG(float *, 5);
  double sum = 0, count = 0;
  (void)blocks; /* one */
  for (size_t row = 0; row < shape->rows; row++) {
    const int64_t given = rondo_index_at(labels, shape->wide_labels, row);
    sum += (double)losses[row];
    if (!is_ignored(shape, given)) count += weights == NULL ? 1.0 : (double)weights[label_of(shape, given)];
  }
  *loss = count != 0 ? (float)(sum / count) : 0;
  *out_count = (float)count;
}

RONDO_UNTYPED_KERNEL(cross_entropy_mean, cross_entropy_mean, RONDO_SCALAR(rows_shape), RONDO_READS, RONDO_READS,
                     RONDO_READS, RONDO_WRITES, RONDO_WRITES);

static rondo_status require_weights(const rondo_program *program, const rondo_operation *operation) {
  const rondo_shape *weights = rondo_operation_input(program, operation, WEIGHTS);
  RONDO_TRY(rondo_require_input(program, operation, WEIGHTS, RONDO_F32, 1));
  const size_t columns = rondo_shape_last(rondo_operation_input(program, operation, LOGITS));
  if (weights == NULL || weights->dims[0] == columns) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "weights must have %zu elements, one for a class",
                              columns);
}

/* Also for the gradient, whose first two inputs are the same. */
static rondo_status require_logits_and_labels(const rondo_program *program, const rondo_operation *operation) {
  RONDO_TRY(rondo_require_float(program, operation, LOGITS, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_indices(program, operation, LABELS, RONDO_ANY_RANK));
  const rondo_shape *logits = rondo_operation_input(program, operation, LOGITS);
  const rondo_shape *labels = rondo_operation_input(program, operation, LABELS);
  bool is_fit = logits->rank == labels->rank + 1;
  for (uint32_t i = 0; i < labels->rank && is_fit; i++) is_fit = logits->dims[i] == labels->dims[i];
  if (!is_fit) {
    return rondo_fail_operation(
        program, operation, RONDO_REASON_SHAPE,
        "labels must have the dimensions of logits without the last, which is that of the classes");
  }
  if (labels->type == RONDO_I32 && rondo_shape_last(logits) > INT32_MAX) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "the logits have %zu columns, more than an i32 can count: use i64 labels",
                                rondo_shape_last(logits));
  }
  return RONDO_OK;
}

static rondo_status infer_cross_entropy(const rondo_program *program, const rondo_operation *operation,
                                        rondo_shape *results) {
  const float smoothing = operation->attributes.numbers[SMOOTHING];
  RONDO_TRY(require_logits_and_labels(program, operation));
  RONDO_TRY(require_weights(program, operation));
  if (!(smoothing >= 0 && smoothing <= 1)) {
    return rondo_fail_operation(program, operation, RONDO_REASON_OUT_OF_RANGE,
                                "label smoothing is %g; it must be between 0 and 1", (double)smoothing);
  }
  results[LOSS] = results[COUNT] = rondo_shape_scalar(RONDO_F32);
  results[MAXIMA] = *rondo_operation_input(program, operation, LABELS);
  results[MAXIMA].type = RONDO_F32;
  results[SUMS] = results[MAXIMA];
  return RONDO_OK;
}

static rondo_status differentiate_cross_entropy(rondo_program *program, const rondo_operation *operation,
                                                const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t inputs[] = {operation->inputs[LOGITS], operation->inputs[LABELS], operation->results[MAXIMA],
                             operation->results[SUMS],  operation->results[COUNT], result_gradients[LOSS],
                             operation->inputs[WEIGHTS]};
  return rondo_program_add(program, &rondo_operator_cross_entropy_gradient, inputs, 7, &operation->attributes,
                           &input_gradients[LOGITS]);
}

/* The workspace has the loss of each row. */
static rondo_status prepare_cross_entropy(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                                          size_t *out_workspace_bytes) {
  const rondo_shape *labels = rondo_operation_input(program, &program->operations.items[operation], LABELS);
  (void)resources;
  *out_workspace_bytes = rondo_shape_elements(labels) * sizeof(float);
  return RONDO_OK;
}

static rondo_status emit_cross_entropy(rondo_emitter *emitter, const rondo_operation *operation) {
  const rows_shape shape = shape_of(emitter, operation);
  const rondo_type type = rondo_emit_shape(emitter, operation->inputs[LOGITS])->type;
  RONDO_TRY(rondo_emit_operands(
      emitter, operation, &cross_entropy_rows_code[type],
      rondo_emit_grid(emitter, shape.rows, rondo_row_grain(shape.columns)),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(LOGITS), RONDO_INPUT(LABELS), RONDO_INPUT(WEIGHTS),
                     RONDO_WORKSPACE, RONDO_RESULT(MAXIMA), RONDO_RESULT(SUMS), RONDO_CHECK(LABELS, shape.columns))));
  return rondo_emit_operands(emitter, operation, &cross_entropy_mean_code, (rondo_grid){.x = 1},
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_WORKSPACE, RONDO_INPUT(LABELS),
                                            RONDO_INPUT(WEIGHTS), RONDO_RESULT(LOSS), RONDO_RESULT(COUNT)));
}

RONDO_OPERATOR(cross_entropy, .types = RONDO_FLOATS, .inputs = {"logits", "labels", "weights"}, .required = 2,
               .result_count = 4, .checks_indices = 1,
               .index_rule = "label 0 was used instead (rondo_cross_entropy_options can ignore a label)",
               .infer = infer_cross_entropy, .differentiate = differentiate_cross_entropy,
               .prepare = prepare_cross_entropy, .emit = emit_cross_entropy);

rondo_status rondo_op_cross_entropy(rondo_program *program, rondo_value logits, rondo_value labels,
                                    rondo_value *out_value) {
  const rondo_value inputs[] = {logits, labels};
  return rondo_program_apply(program, &rondo_operator_cross_entropy, inputs, 2, NULL, out_value);
}

rondo_status rondo_op_cross_entropy_with(rondo_program *program, rondo_value logits, rondo_value labels,
                                         const rondo_cross_entropy_options *options, rondo_value *out_value) {
  rondo_cross_entropy_options given;
  if (out_value != NULL) *out_value = (rondo_value){0};
  RONDO_TRY(rondo_versioned_read("rondo_cross_entropy_options", options, &given, sizeof given));
  const rondo_attributes attributes = {.sizes = {(size_t)given.ignored_label},
                                       .size_count = 1,
                                       .numbers = {given.label_smoothing},
                                       .flags = {given.ignores_label}};
  const rondo_value inputs[] = {logits, labels, given.weights};
  return rondo_program_apply(program, &rondo_operator_cross_entropy, inputs, 3, &attributes, out_value);
}

/* Gradient --------------------------------------------------------------------------------------------------------- */

/* What the gradient of a row takes: without weights, that of the label is 1 and so is their mean. */
typedef struct row_gradient {
  float largest, factor; /* of the exponentials: the sum of all shares / the sum of the exponentials */
  float to_label, to_each;
  const float *weights; /* NULL: none */
} row_gradient;

/* `all`: the sum of the weights of all classes. */
RONDO_INLINE row_gradient row_gradient_of(const rows_shape *shape, size_t label, float largest, float sum, float scale,
                                          const float *weights, float all) {
  row_gradient row = {largest, scale / sum, shape->to_label * scale, shape->to_each * scale, weights};
  if (weights == NULL) return row;
  row.to_label *= weights[label];
  row.factor = (row.to_label + row.to_each * all) / sum;
  return row;
}

/* dlogits = (softmax(logits) - (1 - s) onehot(label) - s / n) * dloss / count; 0 in rows that are ignored. */
RONDO_INLINE void gradient_row(rondo_type type, const rows_shape *shape, const void *logits, size_t first,
                               const row_gradient *row, void *to) {
  float buffers[2][RONDO_CHUNK];
  const float share = row->to_each;
  RONDO_EACH_CHUNK(at, length, 0, shape->columns) {
    float *chunk = rondo_chunk_of(type, to, first + at, buffers[1]);
    rondo_row_scaled_exp(rondo_load_chunk(type, logits, first + at, length, buffers[0]), row->largest, row->factor,
                         chunk, length);
    if (row->weights == NULL)
      RONDO_EACH_LANE(i, lane, length, chunk[i] -= share);
    else
      RONDO_EACH_LANE(i, lane, length, chunk[i] -= share * row->weights[at + i]);
    rondo_store_chunk(type, to, first + at, length, chunk);
  }
}

/* The element of the label, computed again, because the stored one has been rounded. */
RONDO_INLINE void gradient_of_label(rondo_type type, const void *logits, size_t at, size_t label,
                                    const row_gradient *row, void *to) {
  const float x = rondo_load_one(type, logits, at);
  float made;
  rondo_row_scaled_exp(&x, row->largest, row->factor, &made, 1);
  const float share = row->weights == NULL ? row->to_each : row->to_each * row->weights[label];
  rondo_store_one(type, to, at, made - (share + row->to_label));
}

static float sum_of(const float *weights, size_t count) {
  float sum = 0;
  for (size_t i = 0; weights != NULL && i < count; i++) sum += weights[i];
  return sum;
}

RONDO_VECTORISED_KERNEL(cross_entropy_gradient_cpu) {
  const rows_shape *shape = args[0];
  const void *logits = RONDO_ARG(const void *, 1);
  const void *labels = RONDO_ARG(const void *, 2);
  const float *maxima = RONDO_ARG(const float *, 3);
  const float *sums = RONDO_ARG(const float *, 4);
  const float count = *RONDO_ARG(const float *, 5);
  const float dloss = *RONDO_ARG(const float *, 6);
  const float *weights = RONDO_ARG(const float *, 7);
  void *gradient = RONDO_ARG(void *, 8);
  const float scale = count != 0 ? dloss / count : 0, all = sum_of(weights, shape->columns);
  RONDO_EACH_ITEM(row, blocks, shape->rows) {
    const size_t first = row * shape->columns;
    const int64_t given = rondo_index_at(labels, shape->wide_labels, row);
    if (is_ignored(shape, given)) {
      memset((char *)gradient + first * rondo_type_bytes(type), 0, shape->columns * rondo_type_bytes(type));
      continue;
    }
    const size_t label = label_of(shape, given);
    const row_gradient of = row_gradient_of(shape, label, maxima[row], sums[row], scale, weights, all);
    gradient_row(type, shape, logits, first, &of, gradient);
    gradient_of_label(type, logits, first + label, label, &of, gradient);
  }
}

RONDO_TYPED_KERNEL(cross_entropy_gradient, cross_entropy, RONDO_SCALAR(rows_shape), RONDO_READS, RONDO_READS,
                   RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES);

static rondo_status infer_cross_entropy_gradient(const rondo_program *program, const rondo_operation *operation,
                                                 rondo_shape *results) {
  RONDO_TRY(require_logits_and_labels(program, operation));
  results[0] = *rondo_operation_input(program, operation, LOGITS);
  return RONDO_OK;
}

static rondo_status emit_cross_entropy_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const rows_shape shape = shape_of(emitter, operation);
  const rondo_type type = rondo_emit_shape(emitter, operation->inputs[LOGITS])->type;
  return rondo_emit_operands(
      emitter, operation, &cross_entropy_gradient_code[type],
      rondo_emit_grid(emitter, shape.rows, rondo_row_grain(shape.columns)),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(LOGITS), RONDO_INPUT(LABELS), RONDO_INPUT(2), RONDO_INPUT(3),
                     RONDO_INPUT(4), RONDO_INPUT(5), RONDO_INPUT(6), RONDO_RESULT(0)));
}

RONDO_OPERATOR(cross_entropy_gradient, .inputs = {"logits", "labels", "maxima", "sums", "count", "gradient", "weights"},
               .required = 6, .result_count = 1, .infer = infer_cross_entropy_gradient,
               .emit = emit_cross_entropy_gradient);

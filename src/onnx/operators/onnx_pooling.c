/* SPDX-License-Identifier: MIT
 * Pooling: of windows, of whole images, and its inverse.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"
#include "onnx/operators/spatial_window.h"

static rondo_status read_pooling(rondo_onnx_node *node, rondo_pooling_options *out) {
  rondo_onnx_window window;
  int64_t ceil_mode;
  RONDO_TRY(rondo_onnx_attribute_int(node, "ceil_mode", 0, &ceil_mode));
  RONDO_TRY(rondo_onnx_read_window(node, NULL, &window));
  rondo_onnx_pad_window(&window, rondo_onnx_input_shape(node, 0)->dims + 2);
  *out = (rondo_pooling_options){RONDO_POOLING_OPTIONS_INIT, .ceil_mode = ceil_mode != 0};
  memcpy(out->kernel, window.kernel, sizeof out->kernel);
  memcpy(out->stride, window.stride, sizeof out->stride);
  memcpy(out->dilation, window.dilation, sizeof out->dilation);
  memcpy(out->padding_before, window.before, sizeof out->padding_before);
  memcpy(out->padding_after, window.after, sizeof out->padding_after);
  return RONDO_OK;
}

/* MaxPool ---------------------------------------------------------------------------------------------------------- */

/* Indices in the planes of channels, with the first dimension varying fastest instead of the last. */
static rondo_status order_by_columns(rondo_program *program, const rondo_onnx_shape *have, rondo_value *inout) {
  rondo_value rest = *inout, sum = {0};
  size_t planes = 1;
  for (size_t d = 2; d < have->rank; d++) planes *= have->dims[d];
  for (size_t d = have->rank; d-- > 2;) {
    rondo_value size, index, weight;
    planes /= have->dims[d];
    RONDO_TRY(rondo_op_full(program, RONDO_I64, NULL, 0, (double)have->dims[d], &size));
    RONDO_TRY(rondo_op_full(program, RONDO_I64, NULL, 0, (double)planes, &weight));
    RONDO_TRY(rondo_op_remainder(program, rest, size, &index));
    RONDO_TRY(rondo_op_div(program, rest, size, &rest));
    RONDO_TRY(rondo_op_mul(program, index, weight, &index));
    if (sum.id != 0) RONDO_TRY(rondo_op_add(program, sum, index, &index));
    sum = index;
  }
  *inout = sum;
  return RONDO_OK;
}

/* Programs count from the begin of a channel's plane, ONNX from that of the tensor. */
static rondo_status set_indices(rondo_onnx_node *node, rondo_value indices, bool by_columns) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  size_t dims[2 + RONDO_MAX_SPATIAL] = {have->dims[0], have->dims[1], 1, 1, 1}, plane = 1;
  rondo_program *program;
  rondo_value first;
  for (size_t d = 2; d < have->rank; d++) plane *= have->dims[d];
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_cast(program, indices, RONDO_I64, &indices));
  if (by_columns) RONDO_TRY(order_by_columns(program, have, &indices));
  RONDO_TRY(rondo_op_arange(program, RONDO_I64, have->dims[0] * have->dims[1], 0, (double)plane, &first));
  RONDO_TRY(rondo_onnx_reshape(node, first, dims, have->rank, &first));
  RONDO_TRY(rondo_op_add(program, indices, first, &indices));
  return rondo_onnx_set_typed(node, 1, indices, RONDO_ONNX_INT64);
}

static rondo_status add_max_pool(rondo_onnx_node *node, const void *data) {
  rondo_pooling_options options;
  int64_t by_columns;
  rondo_program *program;
  rondo_value x, y, indices;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "storage_order", 0, &by_columns));
  RONDO_TRY(read_pooling(node, &options));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  const bool wants_indices = rondo_onnx_wants_output(node, 1);
  RONDO_TRY(rondo_op_max_pool(program, x, &options, &y, wants_indices ? &indices : NULL));
  if (wants_indices) RONDO_TRY(set_indices(node, indices, by_columns != 0));
  return rondo_onnx_set_typed(node, 0, y, rondo_onnx_input_shape(node, 0)->type);
}

/* AveragePool, LpPool ---------------------------------------------------------------------------------------------- */

static rondo_status add_average_pool(rondo_onnx_node *node, const void *data) {
  rondo_pooling_options options;
  int64_t counts_padding;
  rondo_program *program;
  rondo_value x, y;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "count_include_pad", 0, &counts_padding));
  RONDO_TRY(read_pooling(node, &options));
  options.counts_padding = counts_padding != 0;
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_avg_pool(program, x, &options, &y));
  return rondo_onnx_set_result(node, 0, y);
}

static rondo_status add_lp_pool(rondo_onnx_node *node, const void *data) {
  rondo_pooling_options options;
  int64_t order;
  rondo_program *program;
  rondo_value x, y;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "p", 2, &order));
  RONDO_TRY(read_pooling(node, &options));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_lp_pool(program, x, (float)order, &options, &y));
  return rondo_onnx_set_result(node, 0, y);
}

/* Of whole images -------------------------------------------------------------------------------------------------- */

typedef enum global_pool { GLOBAL_AVERAGE, GLOBAL_MAX, GLOBAL_LP } global_pool;

typedef struct global_form {
  global_pool pool;
} global_form;

static rondo_status add_global_pool(rondo_onnx_node *node, const void *data) {
  const global_form *form = data;
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  size_t dims[RONDO_ONNX_MOST_DIMENSIONS];
  int64_t order = 2;
  rondo_program *program;
  rondo_value y;
  if (have->rank < 3) return rondo_onnx_refuse(node, "input 0 has %zu dimensions, and 3 are needed", have->rank);
  if (form->pool == GLOBAL_LP) RONDO_TRY(rondo_onnx_attribute_int(node, "p", 2, &order));
  for (size_t d = 2; d < have->rank; d++) dims[d - 2] = d;
  RONDO_TRY(rondo_onnx_operand(node, 0, &y));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  switch (form->pool) {
    case GLOBAL_AVERAGE:
      RONDO_TRY(rondo_op_mean(program, y, dims, have->rank - 2, true, &y));
      break;
    case GLOBAL_MAX:
      RONDO_TRY(rondo_op_max(program, y, dims, have->rank - 2, true, &y));
      break;
    case GLOBAL_LP:
      RONDO_TRY(rondo_op_vector_norm(program, y, (float)order, dims, have->rank - 2, true, &y));
      break;
  }
  return rondo_onnx_set_result(node, 0, y);
}

/* MaxUnpool -------------------------------------------------------------------------------------------------------- */

/* The sizes of what was pooled, to which the indices belong: without output_shape, those of the result. */
static rondo_status find_pooled(rondo_onnx_node *node, rondo_onnx_shape *out) {
  rondo_onnx_window window;
  RONDO_TRY(rondo_onnx_read_window(node, NULL, &window));
  *out = *rondo_onnx_input_shape(node, 0);
  for (size_t i = 0; i < window.rank; i++) {
    const size_t covered = (out->dims[2 + i] - 1) * window.stride[i] + window.kernel[i];
    if (window.before[i] + window.after[i] >= covered) return rondo_onnx_refuse(node, "its padding leaves nothing");
    out->dims[2 + i] = covered - window.before[i] - window.after[i];
  }
  return RONDO_OK;
}

/* How much the result is larger than what was pooled, after it. */
static rondo_status find_extension(rondo_onnx_node *node, const rondo_onnx_shape *pooled, int64_t *out) {
  const int64_t *sizes;
  size_t count;
  if (!rondo_onnx_has_input(node, 2)) return RONDO_OK;
  RONDO_TRY(rondo_onnx_known_integers(node, 2, &sizes, &count));
  if (count != pooled->rank) return rondo_onnx_refuse(node, "%zu sizes for %zu dimensions", count, pooled->rank);
  for (size_t i = 0; i < count; i++) {
    if (sizes[i] < 0 || (uint64_t)sizes[i] < pooled->dims[i])
      return rondo_onnx_refuse(node, "its result is smaller than what was pooled");
    out[i] = sizes[i] - (int64_t)pooled->dims[i];
  }
  return RONDO_OK;
}

static rondo_status add_max_unpool(rondo_onnx_node *node, const void *data) {
  static const int64_t before[RONDO_ONNX_MOST_DIMENSIONS] = {0};
  const size_t count = rondo_onnx_shape_count(rondo_onnx_input_shape(node, 0)), row[] = {1, 1, count};
  int64_t after[RONDO_ONNX_MOST_DIMENSIONS] = {0};
  rondo_onnx_shape pooled;
  rondo_program *program;
  rondo_value x, indices;
  (void)data;
  RONDO_TRY(find_pooled(node, &pooled));
  RONDO_TRY(find_extension(node, &pooled, after));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_operand(node, 1, &indices));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  const size_t all = rondo_onnx_shape_count(&pooled);
  RONDO_TRY(rondo_onnx_reshape(node, x, row, 3, &x)); /* indices count from the begin of the tensor */
  RONDO_TRY(rondo_onnx_reshape(node, indices, row, 3, &indices));
  RONDO_TRY(rondo_op_max_unpool(program, x, indices, &all, &x));
  RONDO_TRY(rondo_onnx_reshape(node, x, pooled.dims, pooled.rank, &x));
  if (rondo_onnx_has_input(node, 2)) RONDO_TRY(rondo_op_pad(program, x, before, after, RONDO_PAD_CONSTANT, 0, &x));
  return rondo_onnx_set_typed(node, 0, x, pooled.type);
}

/* The table -------------------------------------------------------------------------------------------------------- */

static const rondo_onnx_row rows[] = {
    {"AveragePool", 1, 0, 1, 1, 0, add_average_pool, NULL},
    {"GlobalAveragePool", 1, 0, 1, 1, 0, add_global_pool, &(const global_form){GLOBAL_AVERAGE}},
    {"GlobalLpPool", 2, 0, 1, 1, 0, add_global_pool, &(const global_form){GLOBAL_LP}},
    {"GlobalMaxPool", 1, 0, 1, 1, 0, add_global_pool, &(const global_form){GLOBAL_MAX}},
    {"LpPool", 2, 0, 1, 1, 0, add_lp_pool, NULL},
    {"MaxPool", 1, 0, 1, 1, 0, add_max_pool, NULL},
    {"MaxUnpool", 9, 0, 2, 3, 0, add_max_unpool, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_pooling, rows);

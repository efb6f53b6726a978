/* SPDX-License-Identifier: MIT
 * The kernels around a library's attention with a mask, and what they need of the workspace. Threads: as
 * tensor/program/operator.h says.
 */
#include "tensor/operators/attention/attention_bias.h"

#include <string.h>

#include "tensor/operators/attention/attention_tile.h"
#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/common/operator_tools.h"

/* Kernels ---------------------------------------------------------------------------------------------------------- */

/* A scalar argument of the kernels; without padding. */
typedef struct bias_rows {
  size_t batches, heads, pitch; /* rows are counted over batches and heads of the bias */
} bias_rows;

/* Arguments: shape, rows; mask; bias. */
static void attention_bias_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_attention_shape *shape = args[0];
  const bias_rows *rows = args[1];
  const void *mask = RONDO_ARG(const void *, 2);
  void *bias = RONDO_ARG(void *, 3);
  RONDO_EACH_ITEM(row, blocks, rows->batches * rows->heads * shape->rows) {
    const size_t head = row / shape->rows, i = row % shape->rows;
    const size_t begin =
        head / rows->heads * shape->mask.batch + head % rows->heads * shape->mask.head + i * shape->mask.row;
    for (size_t j = 0; j < shape->columns; j++)
      rondo_store_one(type, bias, row * rows->pitch + j,
                      mask_value((rondo_mask_kind)shape->mask_kind, type, mask, begin + j * shape->mask.column));
  }
}

static bool sees_any(const rondo_attention_shape *shape, rondo_type type, const void *mask, size_t begin,
                     rondo_span visible) {
  for (size_t j = visible.first; j < visible.last; j++)
    if (mask_value((rondo_mask_kind)shape->mask_kind, type, mask, begin + j * shape->mask.column) != -INFINITY)
      return true;
  return false;
}

/* Heads that share a mask are looked at once. */
static size_t masked_heads(const rondo_attention_shape *shape) { return shape->mask.head == 0 ? 1 : shape->heads; }

static void hide_row(const rondo_attention_shape *shape, rondo_type type, size_t head, size_t i, char *y, float *sums) {
  const size_t bytes = rondo_type_bytes(type);
  const head_rows to = y_rows(shape, head);
  memset(y + (to.begin + i * to.stride) * bytes, 0, shape->size * bytes);
  if (sums != NULL) sums[head * shape->rows + i] = INFINITY;
}

/* Arguments: shape; mask; y, sums, which may be NULL. */
static void attention_unseeing_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_attention_shape *shape = args[0];
  const void *mask = RONDO_ARG(const void *, 1);
  const size_t heads = masked_heads(shape), each = shape->heads / heads;
  const batch_view view = rondo_attention_view(&(attention_data){.shape = shape}, 0);
  RONDO_EACH_ITEM(row, blocks, shape->batches * heads * shape->rows) {
    const size_t head = row / shape->rows, i = row % shape->rows;
    const size_t begin = head / heads * shape->mask.batch + head % heads * shape->mask.head + i * shape->mask.row;
    if (sees_any(shape, type, mask, begin, visible_columns(shape, &view, i))) continue;
    for (size_t k = 0; k < each; k++)
      hide_row(shape, type, head * each + k, i, RONDO_ARG(char *, 2), RONDO_ARG(float *, 3));
  }
}

RONDO_TYPED_KERNEL(attention_bias, attention_bias, RONDO_SCALAR(rondo_attention_shape), RONDO_SCALAR(bias_rows),
                   RONDO_READS, RONDO_WRITES);
RONDO_TYPED_KERNEL(attention_unseeing, attention_bias, RONDO_SCALAR(rondo_attention_shape), RONDO_READS, RONDO_UPDATES,
                   RONDO_UPDATES);

/* Work ------------------------------------------------------------------------------------------------------------- */

/* Whether the library can read the mask where it is. */
static bool is_bias(const rondo_attention_shape *shape) {
  const rondo_attention_plane *mask = &shape->mask;
  return shape->mask_kind == RONDO_MASK_TYPED && mask->column == 1 && mask->row > 0 &&
         mask->row % RONDO_ATTENTION_BIAS_UNIT == 0;
}

/* As a copy, in rows of whole units. */
static bool place_copy(const rondo_attention_shape *shape, rondo_type type, rondo_attention_bias *bias) {
  size_t plane, all;
  if (!rondo_checked_align(shape->columns, RONDO_ATTENTION_BIAS_UNIT, &bias->place.row) ||
      !rondo_checked_multiply(shape->rows, bias->place.row, &plane) ||
      !rondo_checked_multiply(plane, bias->heads, &all) || !rondo_checked_multiply(all, bias->batches, &bias->bytes) ||
      !rondo_checked_multiply(bias->bytes, rondo_type_bytes(type), &bias->bytes))
    return false;
  if (bias->heads > 1) bias->place.head = plane;
  if (bias->batches > 1) bias->place.batch = all;
  return bias->bytes <= RONDO_ATTENTION_BIAS_MAX &&
         rondo_checked_align(bias->bytes, RONDO_PART_ALIGNMENT, &bias->bytes);
}

bool rondo_attention_bias_plan(const rondo_attention_shape *shape, rondo_type type, rondo_attention_bias *out) {
  const rondo_attention_plane *mask = &shape->mask;
  *out = (rondo_attention_bias){.bytes = 0};
  if (shape->mask_kind == RONDO_MASK_NONE) return true;
  out->batches = mask->batch == 0 ? 1 : shape->batches;
  out->heads = mask->head == 0 ? 1 : shape->heads;
  out->is_copied = !is_bias(shape);
  if (out->is_copied) return place_copy(shape, type, out);
  out->place = (rondo_attention_place){mask->batch, mask->head, mask->row};
  return true;
}

rondo_status rondo_emit_attention_bias(rondo_emitter *emitter, const rondo_operation *operation,
                                       const rondo_attention_shape *shape, const rondo_attention_bias *bias,
                                       const void **out_bias) {
  const rondo_type type = rondo_emit_shape(emitter, operation->inputs[RONDO_ATTENTION_Q])->type;
  const bias_rows rows = {bias->batches, bias->heads, bias->place.row};
  void *const copy = bias->is_copied ? rondo_emit_workspace(emitter) : NULL;
  *out_bias = bias->is_copied ? copy : rondo_emit_address(emitter, operation->inputs[RONDO_ATTENTION_MASK]);
  if (!bias->is_copied) return RONDO_OK;
  return rondo_emit_operands(
      emitter, operation, &attention_bias_code[type],
      rondo_emit_grid(emitter, rows.batches * rows.heads * shape->rows, rondo_row_grain(shape->columns)),
      RONDO_OPERANDS(RONDO_OBJECT(*shape), RONDO_OBJECT(rows), RONDO_INPUT(RONDO_ATTENTION_MASK), RONDO_OBJECT(copy)));
}

rondo_status rondo_emit_unseeing_rows(rondo_emitter *emitter, const rondo_operation *operation,
                                      const rondo_attention_shape *shape) {
  const rondo_type type = rondo_emit_shape(emitter, operation->inputs[RONDO_ATTENTION_Q])->type;
  if (shape->mask_kind == RONDO_MASK_NONE) return RONDO_OK;
  return rondo_emit_operands(
      emitter, operation, &attention_unseeing_code[type],
      rondo_emit_grid(emitter, shape->batches * masked_heads(shape) * shape->rows, rondo_row_grain(shape->size)),
      RONDO_OPERANDS(RONDO_OBJECT(*shape), RONDO_INPUT(RONDO_ATTENTION_MASK), RONDO_RESULT(0), RONDO_RESULT(1)));
}

/* SPDX-License-Identifier: MIT
 * scatter_nd: a value in which parts that are named by indices of several dimensions are replaced by updates, or
 * combined with them. The value is a table. ravel_indices makes the number of a row of each update, and sort_indices
 * brings the updates of a row together, in their order. So rows are computed at once and in a fixed order, without
 * atomics: of replacements the last one stays, and sums are rounded once. A wrong index fails the run, and its update
 * is left out. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/sparse_rows.h"
#include "tensor/operators/elementwise/broadcast.h"
#include "tensor/operators/embedding/ravel_indices.h"
#include "tensor/operators/embedding/scatter_combine.h"
#include "tensor/operators/shape/strided.h"

enum { VALUE, KEYS, UPDATES, NUMBERS }; /* inputs; NUMBERS: of rows, for the gradient */
enum { ROWS, COLUMNS, REDUCTION };      /* sizes: of the table; a rondo_scatter_reduction */

/* A scalar argument of the kernel; without padding. */
typedef struct scatter_table {
  rondo_slots slots;
  uint64_t reduction;
} scatter_table;

/* Kernel ----------------------------------------------------------------------------------------------------------- */

/* What the kernel reads and writes. */
typedef struct scatter_memory {
  rondo_type type;
  const int64_t *keys;
  const void *updates;
  void *y;
} scatter_memory;

/* The slot after the last one of the row that begins at a slot. */
static size_t end_of_row(const rondo_slots *slots, const int64_t *keys, size_t slot) {
  const int64_t row = keys[slot] >> 32;
  while (slot < slots->count && keys[slot] >> 32 == row) slot++;
  return slot;
}

static size_t update_at(const int64_t *keys, size_t slot) { return (size_t)(keys[slot] & UINT32_MAX); }

static void replace_row(const scatter_table *table, const scatter_memory *m, size_t row, size_t last) {
  const size_t bytes = table->slots.columns * rondo_type_bytes(m->type);
  memcpy((char *)m->y + row * bytes, (const char *)m->updates + update_at(m->keys, last) * bytes, bytes);
}

/* Combines `length` columns of a row, from `at` on, with the updates of slots first .. end - 1. */
static void combine_columns(const scatter_table *table, const scatter_memory *m, size_t row, size_t first, size_t end,
                            size_t at, size_t length) {
  const uint32_t reduction = (uint32_t)table->reduction;
  const size_t columns = table->slots.columns, to = row * columns + at;
  rondo_chunk_buffer joined, buffer;
  const bool is_integer = rondo_is_integer(m->type);
  const void *old = rondo_load_numbers(m->type, m->y, to, length, &joined);
  if (old != &joined) memcpy(&joined, old, length * (is_integer ? sizeof(int64_t) : sizeof(float)));
  for (size_t slot = first; slot < end; slot++) {
    const void *x = rondo_load_numbers(m->type, m->updates, update_at(m->keys, slot) * columns + at, length, &buffer);
    const int64_t *integers = x;
    const float *floats = x;
    for (size_t i = 0; i < length && is_integer; i++)
      joined.integers[i] = rondo_combine_integers(reduction, joined.integers[i], integers[i]);
    for (size_t i = 0; i < length && !is_integer; i++)
      joined.floats[i] = rondo_combine_floats(reduction, joined.floats[i], floats[i]);
  }
  if (is_integer)
    rondo_store_integers(m->type, m->y, to, length, joined.integers);
  else
    rondo_store_floats(m->type, m->y, to, length, joined.floats);
}

static void scatter_nd_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const scatter_table *table = args[0];
  const scatter_memory memory = {type, RONDO_ARG(const int64_t *, 1), RONDO_ARG(const void *, 2), RONDO_ARG(void *, 3)};
  RONDO_EACH_ROW(slot, row, blocks, &table->slots, memory.keys) {
    const size_t end = end_of_row(&table->slots, memory.keys, slot);
    if (table->reduction == RONDO_SCATTER_REPLACE) replace_row(table, &memory, row, end - 1);
    for (size_t at = 0, length; table->reduction != RONDO_SCATTER_REPLACE && at < table->slots.columns; at += length) {
      length = rondo_chunk_length(at, table->slots.columns);
      combine_columns(table, &memory, row, slot, end, at, length);
    }
  }
}

RONDO_NUMBER_KERNEL(scatter_nd, scatter_nd, RONDO_SCALAR(scatter_table), RONDO_READS, RONDO_READS, RONDO_UPDATES);

/* Rows ------------------------------------------------------------------------------------------------------------- */

/* The gradient of the updates is read where they went; that of the value is 0 where it was replaced. */
static rondo_status differentiate_scatter_nd(rondo_program *program, const rondo_operation *operation,
                                             const uint32_t *result_gradients, uint32_t *input_gradients) {
  const size_t *sizes = operation->attributes.sizes;
  const rondo_shape updates = *rondo_operation_input(program, operation, UPDATES);
  const rondo_shape table = rondo_shape_matrix(updates.type, sizes[ROWS], sizes[COLUMNS]);
  uint32_t read[] = {RONDO_NO_VALUE, operation->inputs[NUMBERS]}, picked;
  RONDO_TRY(rondo_program_add_shaped(program, &rondo_operator_reshape, result_gradients[0], table, &read[0]));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_embedding, read, 2, NULL, &picked));
  RONDO_TRY(rondo_program_add_shaped(program, &rondo_operator_reshape, picked, updates, &input_gradients[UPDATES]));
  input_gradients[VALUE] = result_gradients[0];
  if (operation->row == &rondo_operator_scatter_nd_add) return RONDO_OK;
  uint32_t replaced[] = {result_gradients[0], operation->inputs[KEYS], RONDO_NO_VALUE, operation->inputs[NUMBERS]};
  RONDO_TRY(rondo_program_add_zeros(program, &updates, &replaced[UPDATES]));
  return rondo_program_add(program, &rondo_operator_scatter_nd, replaced, 4, &operation->attributes,
                           &input_gradients[VALUE]);
}

static rondo_status emit_scatter_nd(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[VALUE]);
  const size_t *sizes = operation->attributes.sizes;
  const scatter_table table = {
      .slots = {rondo_shape_elements(rondo_emit_shape(emitter, operation->inputs[KEYS])), sizes[ROWS], sizes[COLUMNS]},
      .reduction = sizes[REDUCTION]};
  const size_t items = table.slots.count * (rondo_emit_is_cuda(emitter) ? table.slots.columns : 1);
  const rondo_grain grain = {8192 / table.slots.columns + 1, RONDO_CUDA_THREADS};
  RONDO_TRY(rondo_emit_sum_so_far(emitter, operation->inputs[VALUE], operation->results[0]));
  return rondo_emit_operands(
      emitter, operation, &scatter_nd_code[value->type], rondo_emit_grid(emitter, items, grain),
      RONDO_OPERANDS(RONDO_OBJECT(table), RONDO_INPUT(KEYS), RONDO_INPUT(UPDATES), RONDO_RESULT(0)));
}

#define SCATTER_ROW                                                                                         \
  .inputs = {"value", "keys", "updates", "numbers"}, .required = 4, .result_count = 1, .is_in_place = true, \
  .infer = rondo_infer_same, .emit = emit_scatter_nd

RONDO_OPERATOR(scatter_nd, SCATTER_ROW, .types = RONDO_ALL_TYPES, .differentiate = differentiate_scatter_nd);
RONDO_OPERATOR(scatter_nd_add, SCATTER_ROW, .types = RONDO_NUMBERS, .differentiate = differentiate_scatter_nd);
RONDO_OPERATOR(scatter_nd_reduce, SCATTER_ROW, .types = RONDO_NUMBERS);

/* Public ----------------------------------------------------------------------------------------------------------- */

static rondo_status add_scatter(rondo_program *program, const rondo_nd_shape *nd, rondo_scatter_reduction reduction,
                                rondo_value value, rondo_value indices, rondo_value updates, rondo_value *out_value) {
  const rondo_operator *row = reduction == RONDO_SCATTER_REPLACE ? &rondo_operator_scatter_nd
                              : reduction == RONDO_SCATTER_ADD   ? &rondo_operator_scatter_nd_add
                                                                 : &rondo_operator_scatter_nd_reduce;
  const rondo_attributes sort = {.sizes = {nd->rows}, .size_count = 1};
  const rondo_attributes attributes = {.sizes = {nd->rows, nd->inner, (size_t)reduction}, .size_count = 3};
  rondo_value inputs[] = {value, {0}, updates, {0}};
  RONDO_TRY(rondo_add_ravel_indices(program, nd, indices, &inputs[NUMBERS]));
  RONDO_TRY(rondo_program_apply(program, &rondo_operator_sort_indices, &inputs[NUMBERS], 1, &sort, &inputs[KEYS]));
  return rondo_program_apply(program, row, inputs, 4, &attributes, out_value);
}

static rondo_status check_updates(const rondo_program *program, const rondo_nd_shape *nd, rondo_value updates) {
  char texts[2][RONDO_SHAPE_TEXT];
  rondo_shape given, part;
  RONDO_TRY(rondo_given_shape(program, updates, "scatter_nd", "updates", &given));
  RONDO_TRY(rondo_nd_part_shape("scatter_nd", nd, &part));
  if (!rondo_shape_same(&given, &part))
    return rondo_fail(RONDO_INVALID_ARGUMENT, given.type == part.type ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
                      "scatter_nd: the updates are %s; these indices need %s", rondo_shape_text(texts[0], &given),
                      rondo_shape_text(texts[1], &part));
  if (nd->rows <= INT32_MAX && nd->count <= INT32_MAX) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "scatter_nd: the value has %zu parts, and there are %zu updates: both are at most 2^31 - 1",
                    nd->rows, nd->count);
}

rondo_status rondo_op_scatter_nd(rondo_program *program, rondo_value value, rondo_value indices, rondo_value updates,
                                 rondo_scatter_reduction reduction, rondo_value *out_value) {
  rondo_nd_shape nd;
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, "scatter_nd", out_value));
  RONDO_TRY(rondo_require_scatter_reduction("scatter_nd", reduction));
  RONDO_TRY(rondo_nd_shape_read("scatter_nd", program, value, indices, 0, &nd));
  RONDO_TRY(check_updates(program, &nd, updates));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_scatter(program, &nd, reduction, value, indices, updates, &made);
  return rondo_compose_end(program, "scatter_nd", mark, status, made, out_value);
}

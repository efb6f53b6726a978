/* SPDX-License-Identifier: MIT
 * route_indices: sorts the indices of a table whose rows are divided between ranks (tensor/program/sharded_table.h).
 * Each owner has `slots` slots. An index takes the next slot of its owner, in the order of the indices, and the slot
 * gets the row's number in the owner's part. The second result says for each index which slot it took. Slots that
 * nobody took get different rows, because the gradients of all, zeros, are added to the rows: to one row they would all
 * be added one after the other.
 *
 * A block fills the slots of an owner, for which it reads all indices. A wrong index takes no slot, and neither does
 * one that finds none left: both make the run fail. An index from the last offset on, where offsets are given, takes
 * none either. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/embedding/embedding_bags.h"
#include "tensor/program/sharded_table.h"

enum { INDICES, OFFSETS }; /* inputs */
enum { SLOTS, PLACES };    /* results */

/* A scalar argument of the kernel; without padding. */
typedef struct route_shape {
  size_t count, ranks, slots, part, rows; /* part: rows of a rank; rows: of all */
  uint64_t is_wide;
} route_shape;

static void fill_slots(const route_shape *shape, size_t owner, const void *indices, size_t count, int32_t *slots,
                       int32_t *places, rondo_index_cell cell) {
  const size_t first = owner * shape->slots;
  size_t taken = 0;
  for (size_t i = 0; i < count; i++) {
    const int64_t index = rondo_index_at(indices, shape->is_wide != 0, i);
    const bool is_right = index >= 0 && (uint64_t)index < shape->rows;
    if ((is_right ? (size_t)index / shape->part : 0) != owner) continue;
    places[i] = (int32_t)first;
    if (!rondo_check_index(cell, i, index, is_right && taken < shape->slots ? shape->rows : 0)) continue;
    places[i] = (int32_t)(first + taken);
    slots[first + taken++] = (int32_t)((size_t)index % shape->part);
  }
  for (size_t i = owner == 0 ? count : shape->count; i < shape->count; i++) places[i] = 0;
  for (; taken < shape->slots; taken++) slots[first + taken] = (int32_t)(taken % shape->part);
}

static void route_indices_cpu(rondo_blocks blocks, void *const *args) {
  const route_shape *shape = args[0];
  const int32_t *end = RONDO_ARG(const int32_t *, 2);
  const size_t count = end == NULL ? shape->count : rondo_bag_clamp(*end, shape->count);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 5);
  RONDO_EACH_ITEM(owner, blocks, shape->ranks)
    fill_slots(shape, owner, RONDO_ARG(const void *, 1), count, RONDO_ARG(int32_t *, 3), RONDO_ARG(int32_t *, 4), cell);
}

RONDO_UNTYPED_KERNEL(route_indices, route_indices, RONDO_SCALAR(route_shape), RONDO_READS, RONDO_READS, RONDO_WRITES,
                     RONDO_WRITES, RONDO_CHECK_PARAMETERS);

static rondo_status infer_route(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const size_t *sizes = operation->attributes.sizes;
  RONDO_TRY(rondo_require_indices(program, operation, INDICES, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_input(program, operation, OFFSETS, RONDO_I32, 1));
  results[SLOTS] = rondo_shape_vector(RONDO_I32, sizes[RONDO_ROUTE_RANKS] * sizes[RONDO_ROUTE_SLOTS]);
  results[PLACES] = *rondo_operation_input(program, operation, INDICES);
  results[PLACES].type = RONDO_I32;
  return RONDO_OK;
}

static rondo_status emit_route(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *indices = rondo_emit_shape(emitter, operation->inputs[INDICES]);
  const int32_t *const end = rondo_emit_last_offset(emitter, operation->inputs[OFFSETS]);
  const size_t *sizes = operation->attributes.sizes;
  const route_shape shape = {.count = rondo_shape_elements(indices),
                             .ranks = sizes[RONDO_ROUTE_RANKS],
                             .slots = sizes[RONDO_ROUTE_SLOTS],
                             .part = sizes[RONDO_ROUTE_PART],
                             .rows = sizes[RONDO_ROUTE_ROWS],
                             .is_wide = indices->type == RONDO_I64};
  return rondo_emit_operands(
      emitter, operation, &route_indices_code, rondo_emit_grid(emitter, shape.ranks, (rondo_grain){1, 1}),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(INDICES), RONDO_OBJECT(end), RONDO_RESULT(SLOTS),
                     RONDO_RESULT(PLACES), RONDO_CHECK(INDICES, shape.rows)));
}

RONDO_OPERATOR(route_indices, .inputs = {"indices", "offsets"}, .required = 1, .result_count = 2, .checks_indices = 1,
               .index_rule = "or the rank that has the row takes no more indices (capacity_factor)",
               .infer = infer_route, .emit = emit_route);

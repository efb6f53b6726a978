/* SPDX-License-Identifier: MIT
 * Sparse gradients (common/sparse_rows.h) of several runs that make one update. accumulate_rows keeps, in two states,
 * the rows that each run of a round touched and their gradients. A run has a tile of `bound` slots, as many as its
 * number in the round says; a slot without a row has index -1. The update's run sorts all slots by their rows and adds
 * those of one row in the order of the runs, as dense gradients are added (sort_indices.c).
 *
 * The first run of a round empties the tiles of the others. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/sparse_rows.h"

enum { TILE_ROWS, TILE_SUMS, KEYS, VALUES, RUNS }; /* inputs; the first two are states */
enum { ROWS, BOUND };                              /* sizes: of the table; slots of a run */

/* A scalar argument of the kernel; without padding. */
typedef struct tile_shape {
  rondo_slots slots; /* of this run's gradient */
  size_t bound, tiles;
} tile_shape;

/* The state counts runs, but a program can write any number to it. */
static size_t tile_of(const tile_shape *shape, int32_t runs) {
  return runs < 0 ? 0 : rondo_smaller((size_t)runs, shape->tiles - 1);
}

static void fill_slot(const tile_shape *shape, size_t row, const float *values, int64_t *to_row, float *to) {
  *to_row = row < shape->slots.rows ? (int64_t)row : -1;
  if (row < shape->slots.rows) memcpy(to, values, shape->slots.columns * sizeof *to);
}

static void accumulate_rows_cpu(rondo_blocks blocks, void *const *args) {
  const tile_shape *shape = args[0];
  const int64_t *keys = RONDO_ARG(const int64_t *, 5);
  const float *values = RONDO_ARG(const float *, 6);
  int64_t *rows = RONDO_ARG(int64_t *, 7);
  float *sums = RONDO_ARG(float *, 8);
  const size_t columns = shape->slots.columns, tile = tile_of(shape, *RONDO_ARG(const int32_t *, 4));
  if (!rondo_may_update(blocks, args + 1)) return;
  RONDO_EACH_ITEM(slot, blocks, shape->bound) {
    const bool is_used = slot < shape->slots.count;
    const size_t row = is_used ? rondo_slot_row(keys, shape->slots.rows, slot) : shape->slots.rows;
    const size_t to = tile * shape->bound + slot;
    fill_slot(shape, row, values + (is_used ? slot : 0) * columns, &rows[to], sums + to * columns);
    for (size_t later = 1; tile == 0 && later < shape->tiles; later++) rows[later * shape->bound + slot] = -1;
  }
}

RONDO_UNTYPED_KERNEL(accumulate_rows, accumulate_rows, RONDO_SCALAR(tile_shape), RONDO_GATE_PARAMETERS, RONDO_READS,
                     RONDO_READS, RONDO_READS, RONDO_UPDATES, RONDO_UPDATES);

static rondo_status infer_accumulate_rows(const rondo_program *program, const rondo_operation *operation,
                                          rondo_shape *results) {
  (void)results;
  RONDO_TRY(rondo_require_input(program, operation, TILE_ROWS, RONDO_I64, 1));
  RONDO_TRY(rondo_require_input(program, operation, TILE_SUMS, RONDO_F32, 2));
  RONDO_TRY(rondo_require_input(program, operation, KEYS, RONDO_I64, 1));
  RONDO_TRY(rondo_require_input(program, operation, VALUES, RONDO_F32, 2));
  return rondo_require_input(program, operation, RUNS, RONDO_I32, 0);
}

static rondo_status emit_accumulate_rows(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *values = rondo_emit_shape(emitter, operation->inputs[VALUES]);
  const size_t *sizes = operation->attributes.sizes;
  const size_t slots = rondo_shape_elements(rondo_emit_shape(emitter, operation->inputs[TILE_ROWS]));
  const tile_shape shape = {
      .slots = {values->dims[0], sizes[ROWS], values->dims[1]}, .bound = sizes[BOUND], .tiles = slots / sizes[BOUND]};
  assert(shape.slots.count <= shape.bound && shape.tiles * shape.bound == slots);
  return rondo_emit_operands(emitter, operation, &accumulate_rows_code,
                             rondo_slot_grid(emitter, shape.bound, shape.slots.columns),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_GATE, RONDO_INPUT(RUNS), RONDO_INPUT(KEYS),
                                            RONDO_INPUT(VALUES), RONDO_INPUT(TILE_ROWS), RONDO_INPUT(TILE_SUMS)));
}

RONDO_OPERATOR(accumulate_rows, .inputs = {"rows", "sums", "keys", "gradient", "runs"}, .required = 5,
               .updates = 1u << TILE_ROWS | 1u << TILE_SUMS, .infer = infer_accumulate_rows,
               .emit = emit_accumulate_rows);

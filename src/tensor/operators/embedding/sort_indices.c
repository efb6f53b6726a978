/* SPDX-License-Identifier: MIT
 * The sparse gradient of a table (common/sparse_rows.h). sort_indices makes its keys from the indices of a look-up, and
 * embedding_rows its values from the gradient of the result: as embedding_gradient, but for the rows alone that were
 * read. Sums are in the order of the indices, and a block has whole sums, so they do not depend on the workers.
 *
 * On a CPU one block sorts all indices by their digits. On CUDA each block sorts a tile. If there are several, a second
 * kernel finds the place of each key among those of all tiles.
 *
 * sort_accumulated and accumulated_rows are the same for what accumulate_rows.c keeps. They run after it, with the
 * updates, and do nothing in a run that a control does not let update. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/sparse_rows.h"
#include "tensor/operators/embedding/embedding_bags.h"

enum { ROWS, COLUMNS };           /* sizes: of the table */
enum { SORTED, SORTING_CONTROL }; /* inputs of sorting */

#define SORT_TILE 2048 /* TILE in sort_indices.cu */

/* Sorting ---------------------------------------------------------------------------------------------------------- */

/* A scalar argument of the kernels; without padding. */
typedef struct sort_shape {
  size_t count, rows, tile;
  uint64_t is_wide;
} sort_shape;

static int64_t key_of(const sort_shape *shape, const void *indices, size_t i) {
  const int64_t index = rondo_index_at(indices, shape->is_wide != 0, i);
  const bool is_right = index >= 0 && (uint64_t)index < shape->rows;
  return (is_right ? index : (int64_t)shape->rows) << 32 | (int64_t)i;
}

/* By one digit of eight bits, in their order otherwise. */
static void sort_by_digit(const int64_t *from, int64_t *to, size_t count, unsigned shift) {
  size_t places[257] = {0};
  for (size_t i = 0; i < count; i++) places[(from[i] >> shift & 255) + 1]++;
  for (unsigned digit = 1; digit < 256; digit++) places[digit] += places[digit - 1];
  for (size_t i = 0; i < count; i++) to[places[from[i] >> shift & 255]++] = from[i];
}

static void sort_tile(const sort_shape *shape, const void *indices, size_t first, int64_t *keys, int64_t *other) {
  const size_t count = rondo_smaller(shape->tile, shape->count - first);
  int64_t *from = keys + first, *to = other + first;
  for (size_t i = 0; i < count; i++) from[i] = key_of(shape, indices, first + i);
  for (unsigned shift = 32; shape->rows >> (shift - 32) != 0; shift += 8) {
    sort_by_digit(from, to, count, shift);
    int64_t *const sorted = to;
    to = from;
    from = sorted;
  }
  if (from != keys + first) memcpy(keys + first, from, count * sizeof *keys);
}

static void sort_tiles_cpu(rondo_blocks blocks, void *const *args) {
  const sort_shape *shape = args[0];
  if (!rondo_control_applies(RONDO_ARG(const float *, 4))) return;
  RONDO_EACH_TILE(tile, blocks, rondo_divide_up(shape->count, shape->tile))
    sort_tile(shape, RONDO_ARG(const void *, 1), tile * shape->tile, RONDO_ARG(int64_t *, 2), RONDO_ARG(int64_t *, 3));
}

RONDO_UNTYPED_KERNEL(sort_tiles, sort_indices, RONDO_SCALAR(sort_shape), RONDO_READS, RONDO_WRITES, RONDO_WRITES,
                     RONDO_READS);

/* How many keys from `first` to before `last`, which are sorted, are less. */
static size_t count_less(const int64_t *keys, size_t first, size_t last, int64_t key) {
  const size_t begin = first;
  RONDO_BINARY_SEARCH(first, last, middle, keys[middle] < key)
  return first - begin;
}

static void sort_merge_cpu(rondo_blocks blocks, void *const *args) {
  const sort_shape *shape = args[0];
  const int64_t *tiles = RONDO_ARG(const int64_t *, 1);
  int64_t *keys = RONDO_ARG(int64_t *, 2);
  if (!rondo_control_applies(RONDO_ARG(const float *, 3))) return;
  RONDO_EACH_ITEM(i, blocks, shape->count) {
    size_t place = i % shape->tile;
    for (size_t first = 0; first < shape->count; first += shape->tile) {
      const size_t last = rondo_smaller(first + shape->tile, shape->count);
      if (i < first || i >= last) place += count_less(tiles, first, last, tiles[i]);
    }
    keys[place] = tiles[i];
  }
}

RONDO_UNTYPED_KERNEL(sort_merge, sort_indices, RONDO_SCALAR(sort_shape), RONDO_READS, RONDO_WRITES, RONDO_READS);

static rondo_status infer_sort(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const size_t count = rondo_shape_elements(rondo_operation_input(program, operation, SORTED));
  RONDO_TRY(rondo_require_indices(program, operation, SORTED, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_input(program, operation, SORTING_CONTROL, RONDO_F32, 1));
  assert(operation->attributes.sizes[ROWS] <= INT32_MAX);
  results[0] = rondo_shape_vector(RONDO_I64, count);
  if (count <= INT32_MAX) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "there are more indices than an i32 can count");
}

static rondo_status prepare_sort(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                                 size_t *out_workspace_bytes) {
  const rondo_operation *added = &program->operations.items[operation];
  (void)resources;
  *out_workspace_bytes = 2 * rondo_shape_bytes(rondo_program_shape(program, added->results[0]));
  return RONDO_OK;
}

/* Sorts each tile, from the indices to `to`. */
static rondo_status emit_tiles(rondo_emitter *emitter, const rondo_operation *operation, const sort_shape *shape,
                               int64_t *to) {
  int64_t *const other = (int64_t *)rondo_emit_workspace(emitter) + shape->count;
  return rondo_emit_operands(emitter, operation, &sort_tiles_code,
                             rondo_tile_grid(rondo_divide_up(shape->count, shape->tile)),
                             RONDO_OPERANDS(RONDO_OBJECT(*shape), RONDO_INPUT(SORTED), RONDO_OBJECT(to),
                                            RONDO_OBJECT(other), RONDO_INPUT(SORTING_CONTROL)));
}

static rondo_status emit_sort(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *indices = rondo_emit_shape(emitter, operation->inputs[SORTED]);
  sort_shape shape = {.count = rondo_shape_elements(indices),
                      .rows = operation->attributes.sizes[ROWS],
                      .is_wide = indices->type == RONDO_I64};
  shape.tile = rondo_emit_is_cuda(emitter) ? SORT_TILE : shape.count;
  if (shape.count <= shape.tile)
    return emit_tiles(emitter, operation, &shape, rondo_emit_address(emitter, operation->results[0]));
  int64_t *tiles = rondo_emit_workspace(emitter);
  RONDO_TRY(emit_tiles(emitter, operation, &shape, tiles));
  return rondo_emit_operands(
      emitter, operation, &sort_merge_code, rondo_emit_grid(emitter, shape.count, RONDO_ELEMENTWISE_GRAIN),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_OBJECT(tiles), RONDO_RESULT(0), RONDO_INPUT(SORTING_CONTROL)));
}

#define SORT_ROW                                                                                                    \
  .inputs = {"indices", "control"}, .required = 1, .result_count = 1, .infer = infer_sort, .prepare = prepare_sort, \
  .emit = emit_sort

RONDO_OPERATOR(sort_indices, SORT_ROW);
RONDO_OPERATOR(sort_accumulated, SORT_ROW, .is_late = true);

/* Sums ------------------------------------------------------------------------------------------------------------- */

enum { KEYS, GRADIENT, OFFSETS, WEIGHTS, INDICES, CONTROL }; /* inputs; INDICES for its shape */

/* What the kernel reads. */
typedef struct rows_memory {
  const int64_t *keys;
  const float *dy, *weights;
  const int32_t *offsets;
} rows_memory;

/* Adds the gradients of the row that begins at a slot. */
static void add_row(const rondo_bag_shape *shape, const rows_memory *memory, size_t slot, float *to) {
  const int64_t row = memory->keys[slot] >> 32;
  for (size_t k = slot; k < shape->count && memory->keys[k] >> 32 == row; k++) {
    const size_t i = (size_t)(memory->keys[k] & UINT32_MAX), bag = rondo_bag_of(shape, memory->offsets, i);
    const float weight = memory->weights == NULL ? 1.0f : memory->weights[i];
    rondo_add_scaled(memory->dy + bag * shape->columns, rondo_bag_factor(shape, memory->offsets, bag) * weight, to,
                     shape->columns);
  }
}

static void embedding_rows_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_bag_shape *shape = args[0];
  const rows_memory memory = {.keys = RONDO_ARG(const int64_t *, 1),
                              .dy = RONDO_ARG(const float *, 2),
                              .offsets = RONDO_ARG(const int32_t *, 3),
                              .weights = RONDO_ARG(const float *, 4)};
  float *values = RONDO_ARG(float *, 5);
  if (!rondo_control_applies(RONDO_ARG(const float *, 6))) return;
  RONDO_EACH_ITEM(slot, blocks, shape->count) {
    float *to = values + slot * shape->columns;
    memset(to, 0, shape->columns * sizeof *to);
    if (rondo_slot_row(memory.keys, shape->rows, slot) < shape->rows) add_row(shape, &memory, slot, to);
  }
}

RONDO_UNTYPED_KERNEL(embedding_rows, sort_indices, RONDO_SCALAR(rondo_bag_shape), RONDO_READS, RONDO_READS, RONDO_READS,
                     RONDO_READS, RONDO_WRITES, RONDO_READS);

static rondo_status infer_rows(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const size_t count = rondo_shape_elements(rondo_operation_input(program, operation, KEYS));
  RONDO_TRY(rondo_require_input(program, operation, KEYS, RONDO_I64, 1));
  RONDO_TRY(rondo_require_input(program, operation, GRADIENT, RONDO_F32, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_input(program, operation, CONTROL, RONDO_F32, 1));
  results[0] = rondo_shape_matrix(RONDO_F32, count, operation->attributes.sizes[COLUMNS]);
  return rondo_require_input(program, operation, WEIGHTS, RONDO_F32, RONDO_ANY_RANK);
}

static rondo_status emit_rows(rondo_emitter *emitter, const rondo_operation *operation) {
  const size_t *sizes = operation->attributes.sizes;
  const rondo_shape table = rondo_shape_matrix(RONDO_F32, sizes[ROWS], sizes[COLUMNS]);
  const rondo_bag_shape shape = rondo_bag_shape_of(emitter, operation, &table, INDICES, OFFSETS);
  return rondo_emit_operands(
      emitter, operation, &embedding_rows_code, rondo_slot_grid(emitter, shape.count, shape.columns),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(KEYS), RONDO_INPUT(GRADIENT), RONDO_INPUT(OFFSETS),
                     RONDO_INPUT(WEIGHTS), RONDO_RESULT(0), RONDO_INPUT(CONTROL)));
}

#define ROWS_ROW                                                                                                \
  .inputs = {"keys", "gradient", "offsets", "weights", "indices", "control"}, .required = 2, .result_count = 1, \
  .infer = infer_rows, .emit = emit_rows

RONDO_OPERATOR(embedding_rows, ROWS_ROW);
RONDO_OPERATOR(accumulated_rows, ROWS_ROW, .is_late = true);

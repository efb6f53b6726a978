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

#include "tensor/operators/common/joined.h"
#include "tensor/operators/common/sparse_rows.h"
#include "tensor/operators/embedding/embedding_bags.h"

enum { ROWS, COLUMNS };                        /* sizes: of the table */
enum { SORTED, SORTING_CONTROL, SORTED_BAGS }; /* inputs of sorting; BAGS: offsets */

#define SORT_TILE 2048 /* TILE in sort_indices.cu */

/* Sorting ---------------------------------------------------------------------------------------------------------- */

/* A scalar argument of the kernels; without padding. */
typedef struct sort_shape {
  size_t count, rows, tile;
  uint64_t is_wide;
} sort_shape;

/* `end`: the number of indices that are used, or NULL for all. */
static int64_t key_of(const sort_shape *shape, const void *indices, const int32_t *end, size_t i) {
  const int64_t index = rondo_index_at(indices, shape->is_wide != 0, i);
  const bool is_used = end == NULL || (int64_t)i < *end;
  const bool is_right = is_used && index >= 0 && (uint64_t)index < shape->rows;
  return (is_right ? index : (int64_t)shape->rows) << 32 | (int64_t)i;
}

/* By one digit of eight bits, in their order otherwise. */
static void sort_by_digit(const int64_t *from, int64_t *to, size_t count, unsigned shift) {
  size_t places[257] = {0};
  for (size_t i = 0; i < count; i++) places[(from[i] >> shift & 255) + 1]++;
  for (unsigned digit = 1; digit < 256; digit++) places[digit] += places[digit - 1];
  for (size_t i = 0; i < count; i++) to[places[from[i] >> shift & 255]++] = from[i];
}

static void sort_tile(const sort_shape *shape, const void *indices, const int32_t *end, size_t first, int64_t *keys,
                      int64_t *other) {
  const size_t count = rondo_smaller(shape->tile, shape->count - first);
  int64_t *from = keys + first, *to = other + first;
  for (size_t i = 0; i < count; i++) from[i] = key_of(shape, indices, end, first + i);
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
    sort_tile(shape, RONDO_ARG(const void *, 1), RONDO_ARG(const int32_t *, 5), tile * shape->tile,
              RONDO_ARG(int64_t *, 2), RONDO_ARG(int64_t *, 3));
}

RONDO_UNTYPED_KERNEL(sort_tiles, sort_indices, RONDO_SCALAR(sort_shape), RONDO_READS, RONDO_WRITES, RONDO_WRITES,
                     RONDO_READS, RONDO_READS);

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
  RONDO_TRY(rondo_require_input(program, operation, SORTED_BAGS, RONDO_I32, 1));
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
  const uint32_t offsets =
      operation->attributes.flags[RONDO_BAG_LAST] ? operation->inputs[SORTED_BAGS] : RONDO_NO_VALUE;
  const int32_t *const end = rondo_emit_last_offset(emitter, offsets);
  return rondo_emit_operands(emitter, operation, &sort_tiles_code,
                             rondo_tile_grid(rondo_divide_up(shape->count, shape->tile)),
                             RONDO_OPERANDS(RONDO_OBJECT(*shape), RONDO_INPUT(SORTED), RONDO_OBJECT(to),
                                            RONDO_OBJECT(other), RONDO_INPUT(SORTING_CONTROL), RONDO_OBJECT(end)));
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

#define SORT_ROW                                                                                      \
  .inputs = {"indices", "control", "offsets"}, .required = 1, .result_count = 1, .infer = infer_sort, \
  .prepare = prepare_sort, .emit = emit_sort

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

/* A scalar argument of the kernel: the shapes of each of the joined operations. */
typedef struct joined_shapes {
  rondo_bag_shape of[RONDO_FEWER_JOINED];
} joined_shapes;

/* `args` begins at the pointers of one operation: keys, dy, offsets, weights, values. */
static void sum_slots(const rondo_bag_shape *shape, void *const *args, rondo_span span) {
  const rows_memory memory = {.keys = RONDO_ARG(const int64_t *, 0),
                              .dy = RONDO_ARG(const float *, 1),
                              .offsets = RONDO_ARG(const int32_t *, 2),
                              .weights = RONDO_ARG(const float *, 3)};
  float *values = RONDO_ARG(float *, 4);
  for (size_t slot = span.first; slot < span.last; slot++) {
    float *to = values + slot * shape->columns;
    memset(to, 0, shape->columns * sizeof *to);
    if (rondo_slot_row(memory.keys, shape->rows, slot) < shape->rows) add_row(shape, &memory, slot, to);
  }
}

static void embedding_rows_cpu(rondo_blocks blocks, void *const *args) {
  const joined_shapes *shapes = args[2];
  if (!rondo_control_applies(RONDO_ARG(const float *, 1))) return;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_joined_share share = rondo_joined_share_of(args[0], block);
    sum_slots(&shapes->of[share.operation], args + 3 + 5 * share.operation, share.span);
  }
}

#define ROWS_POINTERS RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES

static const rondo_parameter rows_parameters[] = {RONDO_SCALAR(rondo_joined_table), RONDO_READS,
                                                  RONDO_SCALAR(joined_shapes),
                                                  RONDO_FEWER_JOINED_PARAMETERS(ROWS_POINTERS)};

RONDO_UNTYPED_KERNEL_LIST(embedding_rows, sort_indices, rows_parameters);

static rondo_status infer_rows(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const size_t count = rondo_shape_elements(rondo_operation_input(program, operation, KEYS));
  RONDO_TRY(rondo_require_input(program, operation, KEYS, RONDO_I64, 1));
  RONDO_TRY(rondo_require_input(program, operation, GRADIENT, RONDO_F32, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_input(program, operation, CONTROL, RONDO_F32, 1));
  results[0] = rondo_shape_matrix(RONDO_F32, count, operation->attributes.sizes[COLUMNS]);
  return rondo_require_input(program, operation, WEIGHTS, RONDO_F32, RONDO_ANY_RANK);
}

static rondo_status emit_rows(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t values[] = {KEYS, GRADIENT, OFFSETS, WEIGHTS, RONDO_RESULT_NUMBER(0)};
  joined_shapes shapes = {.of = {{0}}};
  size_t columns = 0;
  for (uint32_t i = 0; i < count; i++) {
    const size_t *sizes = operations[i]->attributes.sizes;
    const rondo_shape table = rondo_shape_matrix(RONDO_F32, sizes[ROWS], sizes[COLUMNS]);
    shapes.of[i] = rondo_bag_shape_of(emitter, operations[i], &table, INDICES, OFFSETS);
    columns = rondo_larger(columns, sizes[COLUMNS]);
  }
  const rondo_joined_kernel kernel = {&embedding_rows_code, values, 5, GRADIENT, rondo_slot_grain(columns), NULL,
                                      RONDO_FEWER_JOINED};
  return rondo_emit_joined(emitter, &kernel, operations, count,
                           RONDO_OPERANDS(RONDO_INPUT(CONTROL), RONDO_OBJECT(shapes)));
}

static const rondo_join rows_join = {
    .max = RONDO_FEWER_JOINED, .shared = 1u << CONTROL, .of_any_attributes = true, .emit = emit_rows};

#define ROWS_ROW                                                                                                \
  .inputs = {"keys", "gradient", "offsets", "weights", "indices", "control"}, .required = 2, .result_count = 1, \
  .infer = infer_rows, .join = &rows_join

RONDO_OPERATOR(embedding_rows, ROWS_ROW);
RONDO_OPERATOR(accumulated_rows, ROWS_ROW, .is_late = true);

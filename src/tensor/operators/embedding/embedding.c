/* SPDX-License-Identifier: MIT
 * embedding and embedding_bag: rows of a table, gathered by indices. The result of a bag is the sum or mean of the rows
 * of its indices, each times its weight. Bags have one size, or begin at offsets (bag_offsets.c), of which the last may
 * be the end of the last bag. An embedding consists of bags with one index each.
 *
 * The gradient of the table adds the rows of dy with the same index, in the order of the indices. A block owns rows of
 * the table, so no two blocks add to one row and the sum does not depend on the number of workers. Sums are F32 and
 * rounded once. A wrong index reads row 0, and its gradient is added to row 0. Threads: as tensor/program/operator.h
 * says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/embedding/embedding_bags.h"
#include "tensor/operators/embedding/gather.h"
#include "tensor/operators/shape/strided.h"
#include "tensor/program/sharded_table.h"

enum { TABLE, INDICES, OFFSETS, WEIGHTS };              /* inputs of the operators */
enum { OF_INDICES, OF_RESULT, OF_OFFSETS, OF_WEIGHTS }; /* inputs of the table's gradient; if added, after the sum */
enum { OF_TABLE, TABLE_INDICES, RESULT, BAG_OFFSETS };  /* inputs of the weights' gradient */
enum { ROWS, COLUMNS };                                 /* sizes of the table, for its gradient */

/* Floats of a block. */
#define GATHER_GRAIN 16384

static rondo_grain grain_of(size_t columns) {
  return (rondo_grain){GATHER_GRAIN / columns + 1, rondo_row_grain(columns).cuda};
}

static float weight_at(rondo_type type, const void *weights, size_t i) {
  return weights == NULL ? 1.0f : rondo_load_one(type, weights, i);
}

/* Embedding -------------------------------------------------------------------------------------------------------- */

static void embedding_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_bag_shape *shape = args[0];
  const char *table = RONDO_ARG(const char *, 1);
  const void *indices = RONDO_ARG(const void *, 2);
  char *y = RONDO_ARG(char *, 3);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 4);
  const size_t row_bytes = shape->columns * rondo_type_bytes(type);
  RONDO_EACH_ITEM(i, blocks, shape->count) {
    const size_t later = rondo_smaller(i + RONDO_ROWS_AHEAD, shape->count - 1);
    rondo_prefetch(table + rondo_bag_row(shape, indices, later) * row_bytes);
    const int64_t index = rondo_index_at(indices, shape->wide_indices, i);
    const size_t row = rondo_check_index(cell, i, index, shape->rows) ? (size_t)index : 0;
    memcpy(y + i * row_bytes, table + row * row_bytes, row_bytes);
  }
}

RONDO_TYPED_KERNEL(embedding, embedding, RONDO_SCALAR(rondo_bag_shape), RONDO_READS, RONDO_READS, RONDO_WRITES,
                   RONDO_CHECK_PARAMETERS);

static rondo_status require_table(const rondo_program *program, const rondo_operation *operation) {
  RONDO_TRY(rondo_require_float(program, operation, TABLE, 2));
  RONDO_TRY(rondo_require_indices(program, operation, INDICES, RONDO_ANY_RANK));
  if (rondo_operation_input(program, operation, TABLE)->dims[0] <= INT32_MAX) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "the table has more rows than i32 can count");
}

static rondo_status infer_embedding(const rondo_program *program, const rondo_operation *operation,
                                    rondo_shape *results) {
  RONDO_TRY(require_table(program, operation));
  const rondo_shape *table = rondo_operation_input(program, operation, TABLE);
  rondo_shape result = *rondo_operation_input(program, operation, INDICES);
  if (result.rank == RONDO_MAX_DIMENSIONS) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "the result would have %d dimensions",
                                RONDO_MAX_DIMENSIONS + 1);
  }
  result.type = table->type;
  result.dims[result.rank++] = table->dims[1];
  results[0] = result;
  return RONDO_OK;
}

/* For both operators. The rows are added to an existing gradient in place. Of a sparse table, all look-ups are found
 * (program/sparse_gradient.c). */
static rondo_status differentiate_table(rondo_program *program, const rondo_operation *operation,
                                        const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_shape *table = rondo_operation_input(program, operation, TABLE);
  const uint32_t after_sum[] = {input_gradients[TABLE], operation->inputs[INDICES], result_gradients[0],
                                operation->inputs[OFFSETS], operation->inputs[WEIGHTS]};
  const uint32_t *inputs = after_sum + 1;
  rondo_attributes attributes = operation->attributes;
  if (input_gradients[TABLE] != RONDO_NO_VALUE && !program->values.items[operation->inputs[TABLE]].is_sparse)
    return rondo_program_add(program, &rondo_operator_embedding_gradient_add, after_sum, 5, &attributes,
                             &input_gradients[TABLE]);
  uint32_t whole;
  attributes.sizes[ROWS] = table->dims[0];
  attributes.sizes[COLUMNS] = table->dims[1];
  attributes.size_count = 2;
  RONDO_TRY(rondo_program_add(program, &rondo_operator_embedding_gradient, inputs, 4, &attributes, &whole));
  return rondo_program_add_gradient(program, whole, &input_gradients[TABLE]);
}

/* A few rows are added by a kernel that is faster for them. */
static rondo_status differentiate_embedding(rondo_program *program, const rondo_operation *operation,
                                            const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t inputs[] = {result_gradients[0], operation->inputs[INDICES]};
  bool is_added;
  if (program->values.items[operation->inputs[TABLE]].is_sparse)
    return differentiate_table(program, operation, result_gradients, input_gradients);
  RONDO_TRY(rondo_program_add_picked_gradient(program, inputs, 0, true, &input_gradients[TABLE], &is_added));
  return is_added ? RONDO_OK : differentiate_table(program, operation, result_gradients, input_gradients);
}

static rondo_status emit_embedding(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *table = rondo_emit_shape(emitter, operation->inputs[TABLE]);
  const rondo_bag_shape shape = rondo_bag_shape_of(emitter, operation, table, INDICES, OFFSETS);
  return rondo_emit_operands(emitter, operation, &embedding_code[table->type],
                             rondo_emit_grid(emitter, shape.count, grain_of(shape.columns)),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(TABLE), RONDO_INPUT(INDICES),
                                            RONDO_RESULT(0), RONDO_CHECK(INDICES, shape.rows)));
}

RONDO_OPERATOR(embedding, .types = RONDO_FLOATS, .inputs = {"table", "indices"}, .required = 2, .result_count = 1,
               .checks_indices = 1, .adds_gradients = true, .infer = infer_embedding,
               .differentiate = differentiate_embedding, .emit = emit_embedding);

rondo_status rondo_op_embedding(rondo_program *program, rondo_value table, rondo_value indices,
                                rondo_value *out_value) {
  const rondo_operator *row = &rondo_operator_embedding;
  const rondo_value given[] = {table, indices};
  uint32_t inputs[2], result = 0;
  RONDO_TRY(rondo_program_begin(program, row->name, out_value));
  RONDO_TRY(rondo_program_resolve_inputs(program, row, given, 2, inputs));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  rondo_status status = rondo_table_fetch(program, RONDO_NO_VALUE, &inputs[TABLE], &inputs[INDICES]);
  if (status == RONDO_OK) status = rondo_program_add(program, row, inputs, 2, NULL, &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}

/* Bags' results ---------------------------------------------------------------------------------------------------- */

/* `length` columns of a bag's result, from `at` on. */
static void add_bag(rondo_type type, const rondo_bag_shape *shape, rondo_span bag, const void *table,
                    const void *indices, const void *weights, float factor, size_t at, size_t length, float *sums) {
  float buffer[RONDO_CHUNK];
  memset(sums, 0, length * sizeof *sums);
  for (size_t i = bag.first; i < bag.last; i++) {
    const size_t first = rondo_bag_row(shape, indices, i) * shape->columns + at;
    rondo_add_scaled(rondo_load_chunk(type, table, first, length, buffer), weight_at(type, weights, i), sums, length);
  }
  RONDO_EACH_LANE(i, lane, length, sums[i] *= factor);
}

/* Asks for the rows on the way. */
static void check_bag(const rondo_bag_shape *shape, rondo_span bag, const void *indices, const void *table,
                      size_t row_bytes, rondo_index_cell cell) {
  for (size_t i = bag.first; i < bag.last; i++) {
    const int64_t index = rondo_index_at(indices, shape->wide_indices, i);
    if (rondo_check_index(cell, i, index, shape->rows)) rondo_prefetch((const char *)table + (size_t)index * row_bytes);
  }
}

static void embedding_bag_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_bag_shape *shape = args[0];
  const void *table = RONDO_ARG(const void *, 1);
  const void *indices = RONDO_ARG(const void *, 2);
  const int32_t *offsets = RONDO_ARG(const int32_t *, 3);
  const void *weights = RONDO_ARG(const void *, 4);
  void *y = RONDO_ARG(void *, 5);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 6);
  float buffer[RONDO_CHUNK];
  RONDO_EACH_ITEM(bag, blocks, shape->bags) {
    const rondo_span in_bag = rondo_bag_span(shape, offsets, bag);
    check_bag(shape, in_bag, indices, table, shape->columns * rondo_type_bytes(type), cell);
    RONDO_EACH_CHUNK(at, length, 0, shape->columns) {
      float *to = rondo_chunk_of(type, y, bag * shape->columns + at, buffer);
      add_bag(type, shape, in_bag, table, indices, weights, rondo_bag_factor(shape, offsets, bag), at, length, to);
      rondo_store_chunk(type, y, bag * shape->columns + at, length, to);
    }
  }
}

RONDO_TYPED_KERNEL(embedding_bag, embedding, RONDO_SCALAR(rondo_bag_shape), RONDO_READS, RONDO_READS, RONDO_READS,
                   RONDO_READS, RONDO_WRITES, RONDO_CHECK_PARAMETERS);

static rondo_status require_weights(const rondo_program *program, const rondo_operation *operation) {
  const rondo_shape *weights = rondo_operation_input(program, operation, WEIGHTS);
  const rondo_shape *indices = rondo_operation_input(program, operation, INDICES);
  if (weights == NULL) return RONDO_OK;
  if (weights->type != rondo_operation_input(program, operation, TABLE)->type) {
    return rondo_fail_operation(program, operation, RONDO_REASON_TYPE, "weights must be of the table's type");
  }
  rondo_shape like = *indices;
  like.type = weights->type;
  if (rondo_shape_same(weights, &like)) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "weights must have the shape of indices");
}

static rondo_status infer_last_offset(const rondo_program *program, const rondo_operation *operation,
                                      rondo_shape *out) {
  if (operation->inputs[OFFSETS] == RONDO_NO_VALUE) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "include_last_offset needs offsets");
  }
  if (out->dims[0] < 2) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "with include_last_offset, offsets need the begin of a bag and its end, at least 2");
  }
  out->dims[0]--;
  return RONDO_OK;
}

/* The dimensions of the result before the columns: those of the offsets, or of the indices without the last. */
static rondo_status infer_bags(const rondo_program *program, const rondo_operation *operation, rondo_shape *out) {
  const rondo_shape *indices = rondo_operation_input(program, operation, INDICES);
  const rondo_shape *offsets = rondo_operation_input(program, operation, OFFSETS);
  *out = offsets == NULL ? *indices : *offsets;
  if (offsets != NULL && indices->rank != 1) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "indices must have 1 dimension where bags begin at offsets, not %u", indices->rank);
  }
  if (operation->attributes.flags[RONDO_BAG_LAST]) return infer_last_offset(program, operation, out);
  if (offsets != NULL) return RONDO_OK;
  if (indices->rank == 0) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "a scalar has no bags: give offsets");
  }
  out->dims[--out->rank] = 0;
  return RONDO_OK;
}

static rondo_status infer_bag(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  RONDO_TRY(require_table(program, operation));
  RONDO_TRY(require_weights(program, operation));
  RONDO_TRY(infer_bags(program, operation, &results[0]));
  const rondo_shape *table = rondo_operation_input(program, operation, TABLE);
  results[0].type = table->type;
  results[0].dims[results[0].rank++] = table->dims[1];
  return RONDO_OK;
}

static rondo_status differentiate_bag(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  RONDO_TRY(differentiate_table(program, operation, result_gradients, input_gradients));
  if (operation->inputs[WEIGHTS] == RONDO_NO_VALUE) return RONDO_OK;
  const uint32_t inputs[] = {operation->inputs[TABLE], operation->inputs[INDICES], result_gradients[0],
                             operation->inputs[OFFSETS]};
  return rondo_program_add(program, &rondo_operator_embedding_bag_weights, inputs, 4, &operation->attributes,
                           &input_gradients[WEIGHTS]);
}

static rondo_status emit_bag(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *table = rondo_emit_shape(emitter, operation->inputs[TABLE]);
  const rondo_bag_shape shape = rondo_bag_shape_of(emitter, operation, table, INDICES, OFFSETS);
  const size_t of_bag = shape.count / shape.bags + 1;
  const rondo_grain grain = {GATHER_GRAIN / of_bag / shape.columns + 1, rondo_row_grain(shape.columns).cuda};
  return rondo_emit_operands(
      emitter, operation, &embedding_bag_code[table->type], rondo_emit_grid(emitter, shape.bags, grain),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(TABLE), RONDO_INPUT(INDICES), RONDO_INPUT(OFFSETS),
                     RONDO_INPUT(WEIGHTS), RONDO_RESULT(0), RONDO_CHECK(INDICES, shape.rows)));
}

RONDO_OPERATOR(embedding_bag, .types = RONDO_FLOATS, .inputs = {"table", "indices", "offsets", "weights"},
               .required = 2, .result_count = 1, .checks_indices = 1, .adds_gradients = true, .infer = infer_bag,
               .differentiate = differentiate_bag, .emit = emit_bag);

/* A separate operation checks the offsets first. */
static rondo_status add_bag_operation(rondo_program *program, const rondo_value *given, uint32_t *inputs,
                                      const rondo_attributes *attributes, uint32_t *out_result) {
  if (given[OFFSETS].id != 0) {
    const uint32_t pair[] = {inputs[OFFSETS], inputs[INDICES]};
    RONDO_TRY(rondo_program_add(program, &rondo_operator_bag_offsets, pair, 2, NULL, &inputs[OFFSETS]));
  }
  const uint32_t end = attributes->flags[RONDO_BAG_LAST] ? inputs[OFFSETS] : RONDO_NO_VALUE;
  RONDO_TRY(rondo_table_fetch(program, end, &inputs[TABLE], &inputs[INDICES]));
  return rondo_program_add(program, &rondo_operator_embedding_bag, inputs, 4, attributes, out_result);
}

rondo_status rondo_op_embedding_bag(rondo_program *program, rondo_value table, rondo_value indices, rondo_value offsets,
                                    rondo_value weights, rondo_combine combine, rondo_value *out_value) {
  const rondo_embedding_bag_options options = {RONDO_EMBEDDING_BAG_OPTIONS_INIT, .combine = combine, .offsets = offsets,
                                               .weights = weights};
  return rondo_op_embedding_bag_with(program, table, indices, &options, out_value);
}

rondo_status rondo_op_embedding_bag_with(rondo_program *program, rondo_value table, rondo_value indices,
                                         const rondo_embedding_bag_options *options, rondo_value *out_value) {
  const rondo_operator *row = &rondo_operator_embedding_bag;
  rondo_embedding_bag_options o;
  uint32_t inputs[4], result = 0;
  RONDO_TRY(rondo_program_begin(program, row->name, out_value));
  RONDO_TRY(rondo_require(row->name, "options", options));
  RONDO_TRY(rondo_versioned_read("rondo_embedding_bag_options", options, &o, sizeof o));
  RONDO_TRY(rondo_require_combine(row->name, o.combine));
  const rondo_value given[] = {table, indices, o.offsets, o.weights};
  const rondo_attributes attributes = {.flags = {[RONDO_BAG_MEAN] = o.combine == RONDO_COMBINE_MEAN,
                                                 [RONDO_BAG_EACH] = true,
                                                 [RONDO_BAG_LAST] = o.include_last_offset}};
  RONDO_TRY(rondo_program_resolve_inputs(program, row, given, 4, inputs));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_bag_operation(program, given, inputs, &attributes, &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}

/* Gradient of the table -------------------------------------------------------------------------------------------- */

/* On a CPU each block reads all indices, so there are few blocks: enough for a typical number of workers. On CUDA a
 * piece is a row, or GRADIENT_COLUMNS columns of one. It belongs to a block or, if there are many pieces, to a warp
 * (embedding.cu). */
#define GRADIENT_BLOCKS 16
#define GRADIENT_COLUMNS 128
#define MANY_PIECES 4096

static rondo_grid gradient_grid(const rondo_emitter *emitter, const rondo_bag_shape *shape) {
  const size_t pieces = shape->rows * rondo_divide_up(shape->columns, GRADIENT_COLUMNS);
  if (rondo_emit_is_cuda(emitter)) {
    return rondo_emit_grid(emitter, pieces, (rondo_grain){.cuda = pieces < MANY_PIECES ? 1 : RONDO_CUDA_THREADS / 32});
  }
  const size_t blocks = (shape->count + shape->rows) * shape->columns / GATHER_GRAIN + 1;
  const size_t share = shape->rows / rondo_smaller(blocks, GRADIENT_BLOCKS) + 1;
  return rondo_emit_grid(emitter, shape->rows, (rondo_grain){.cpu = share});
}

/* What the kernel of the gradient reads. */
typedef struct gather_memory {
  rondo_type type;
  const void *indices, *dy, *weights;
  const int32_t *offsets;
} gather_memory;

static void add_index(const gather_memory *memory, const rondo_bag_shape *shape, size_t i, float *to) {
  float buffer[RONDO_CHUNK];
  const size_t bag = rondo_bag_of(shape, memory->offsets, i);
  const float factor = rondo_bag_factor(shape, memory->offsets, bag) * weight_at(memory->type, memory->weights, i);
  RONDO_EACH_CHUNK(at, length, 0, shape->columns) {
    rondo_add_scaled(rondo_load_chunk(memory->type, memory->dy, bag * shape->columns + at, length, buffer), factor,
                     to + at, length);
  }
}

/* `sums` is a whole table: the gradient itself if that is F32. It begins with zeros, or with the gradient if rows are
 * added to that. */
static void add_rows(const gather_memory *memory, const rondo_bag_shape *shape, rondo_span rows, bool adds, float *sums,
                     void *gradient) {
  const size_t columns = shape->columns, first = rows.first * columns, last = rows.last * columns;
  if (!adds) {
    memset(sums + first, 0, (last - first) * sizeof *sums);
  } else if (memory->type != RONDO_F32) {
    RONDO_EACH_CHUNK(at, length, first, last) (void)rondo_load_chunk(memory->type, gradient, at, length, sums + at);
  }
  for (size_t i = 0, count = rondo_bag_indices(shape, memory->offsets); i < count; i++) {
    const size_t row = rondo_bag_row(shape, memory->indices, i);
    if (row >= rows.first && row < rows.last) add_index(memory, shape, i, sums + row * columns);
  }
  assert(rows.first <= rows.last && rows.last <= shape->rows);
  if (memory->type == RONDO_F32) return;
  RONDO_EACH_CHUNK(at, length, first, last) rondo_store_chunk(memory->type, gradient, at, length, sums + at);
}

static void compute_gradient(rondo_type type, rondo_blocks blocks, void *const *args, bool adds) {
  const rondo_bag_shape *shape = args[0];
  const gather_memory memory = {.type = type,
                                .indices = RONDO_ARG(const void *, 1),
                                .dy = RONDO_ARG(const void *, 2),
                                .offsets = RONDO_ARG(const int32_t *, 3),
                                .weights = RONDO_ARG(const void *, 4)};
  void *gradient = RONDO_ARG(void *, 5);
  float *sums = type == RONDO_F32 ? gradient : RONDO_ARG(void *, 6);
  add_rows(&memory, shape, rondo_blocks_span(blocks, shape->rows, 1), adds, sums, gradient);
}

static void embedding_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  compute_gradient(type, blocks, args, false);
}

static void embedding_gradient_add_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  compute_gradient(type, blocks, args, true);
}

RONDO_TYPED_KERNEL(embedding_gradient, embedding, RONDO_SCALAR(rondo_bag_shape), RONDO_READS, RONDO_READS, RONDO_READS,
                   RONDO_READS, RONDO_WRITES, RONDO_WRITES);
RONDO_TYPED_KERNEL(embedding_gradient_add, embedding, RONDO_SCALAR(rondo_bag_shape), RONDO_READS, RONDO_READS,
                   RONDO_READS, RONDO_READS, RONDO_UPDATES, RONDO_WRITES);

static rondo_status infer_embedding_gradient(const rondo_program *program, const rondo_operation *operation,
                                             rondo_shape *results) {
  const size_t *sizes = operation->attributes.sizes;
  RONDO_TRY(rondo_require_indices(program, operation, OF_INDICES, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_float(program, operation, OF_RESULT, RONDO_ANY_RANK));
  results[0] =
      rondo_shape_matrix(rondo_operation_input(program, operation, OF_RESULT)->type, sizes[ROWS], sizes[COLUMNS]);
  return RONDO_OK;
}

/* On a CPU, the F32 sums of other types are there. */
static rondo_status prepare_embedding_gradient(rondo_resources *resources, const rondo_program *program,
                                               uint32_t operation, size_t *out_workspace_bytes) {
  const rondo_operation *added = &program->operations.items[operation];
  const rondo_shape *gradient = rondo_program_shape(program, added->results[0]);
  (void)resources;
  *out_workspace_bytes = gradient->type == RONDO_F32 ? 0 : rondo_shape_elements(gradient) * sizeof(float);
  return RONDO_OK;
}

/* `first`: the input with the indices. */
static rondo_status emit_rows(rondo_emitter *emitter, const rondo_operation *operation,
                              const rondo_kernel_options *code, uint32_t first) {
  const rondo_shape *result = rondo_emit_shape(emitter, operation->results[0]);
  const rondo_bag_shape shape = rondo_bag_shape_of(emitter, operation, result, first + OF_INDICES, first + OF_OFFSETS);
  return rondo_emit_operands(emitter, operation, &code[result->type], gradient_grid(emitter, &shape),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(first + OF_INDICES),
                                            RONDO_INPUT(first + OF_RESULT), RONDO_INPUT(first + OF_OFFSETS),
                                            RONDO_INPUT(first + OF_WEIGHTS), RONDO_RESULT(0), RONDO_WORKSPACE));
}

static rondo_status emit_embedding_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  return emit_rows(emitter, operation, embedding_gradient_code, 0);
}

static rondo_status emit_embedding_gradient_add(rondo_emitter *emitter, const rondo_operation *operation) {
  RONDO_TRY(rondo_emit_sum_so_far(emitter, operation->inputs[0], operation->results[0]));
  return emit_rows(emitter, operation, embedding_gradient_add_code, 1);
}

RONDO_OPERATOR(embedding_gradient, .inputs = {"indices", "gradient", "offsets", "weights"}, .required = 2,
               .result_count = 1, .infer = infer_embedding_gradient, .prepare = prepare_embedding_gradient,
               .emit = emit_embedding_gradient);
RONDO_OPERATOR(embedding_gradient_add, .inputs = {"sum", "indices", "gradient", "offsets", "weights"}, .required = 3,
               .result_count = 1, .is_in_place = true, .infer = rondo_infer_same, .prepare = prepare_embedding_gradient,
               .emit = emit_embedding_gradient_add);

/* Gradient of weights ---------------------------------------------------------------------------------------------- */

/* The gradient of a weight is the dot product of its row and the row of dy, times the factor of the bag, and 0 for an
 * index that is in no bag. */
RONDO_INLINE float row_dot(rondo_type type, const void *x, size_t first, const void *y, size_t second, size_t columns) {
  float sum = 0, buffers[2][RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, columns) {
    float sums[RONDO_LANES] = {0};
    const float *a = rondo_load_chunk(type, x, first + at, length, buffers[0]);
    const float *b = rondo_load_chunk(type, y, second + at, length, buffers[1]);
    RONDO_EACH_LANE(i, lane, length, sums[lane] += a[i] * b[i]);
    sum += rondo_join_lanes(sums);
  }
  return sum;
}

RONDO_VECTORISED_KERNEL(embedding_bag_weights_cpu) {
  const rondo_bag_shape *shape = args[0];
  const void *table = RONDO_ARG(const void *, 1);
  const void *indices = RONDO_ARG(const void *, 2);
  const void *dy = RONDO_ARG(const void *, 3);
  const int32_t *offsets = RONDO_ARG(const int32_t *, 4);
  void *gradient = RONDO_ARG(void *, 5);
  const size_t in_bags = rondo_bag_indices(shape, offsets);
  RONDO_EACH_ITEM(i, blocks, shape->count) {
    const size_t bag = rondo_bag_of(shape, offsets, i), at = bag * shape->columns;
    float dot = 0;
    if (i < in_bags)
      dot = row_dot(type, table, rondo_bag_row(shape, indices, i) * shape->columns, dy, at, shape->columns);
    rondo_store_one(type, gradient, i, rondo_bag_factor(shape, offsets, bag) * dot);
  }
}

RONDO_TYPED_KERNEL(embedding_bag_weights, embedding, RONDO_SCALAR(rondo_bag_shape), RONDO_READS, RONDO_READS,
                   RONDO_READS, RONDO_READS, RONDO_WRITES);

static rondo_status infer_bag_weights(const rondo_program *program, const rondo_operation *operation,
                                      rondo_shape *results) {
  RONDO_TRY(require_table(program, operation));
  results[0] = *rondo_operation_input(program, operation, TABLE_INDICES);
  results[0].type = rondo_operation_input(program, operation, OF_TABLE)->type;
  return RONDO_OK;
}

static rondo_status emit_bag_weights(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *table = rondo_emit_shape(emitter, operation->inputs[OF_TABLE]);
  const rondo_bag_shape shape = rondo_bag_shape_of(emitter, operation, table, TABLE_INDICES, BAG_OFFSETS);
  return rondo_emit_operands(emitter, operation, &embedding_bag_weights_code[table->type],
                             rondo_emit_grid(emitter, shape.count, grain_of(shape.columns)),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(OF_TABLE), RONDO_INPUT(TABLE_INDICES),
                                            RONDO_INPUT(RESULT), RONDO_INPUT(BAG_OFFSETS), RONDO_RESULT(0)));
}

RONDO_OPERATOR(embedding_bag_weights, .inputs = {"table", "indices", "gradient", "offsets"}, .required = 3,
               .result_count = 1, .infer = infer_bag_weights, .emit = emit_bag_weights);

/* SPDX-License-Identifier: MIT
 * attention_plan makes the plan of attention (attention.h): it checks the lengths, the counts of new rows and the block
 * table that a program gives, and writes what kernels rely on. A batch whose numbers are wrong has no rows, and the run
 * fails. So does one that uses a block which another batch writes, because batches are computed in any order; a first
 * kernel counts the entries that write each block, in time linear in the table, or two kernels if there are many.
 * Layers of the same lengths and shapes share one plan, as operations that compute the same run once. attention_slopes
 * is the same for slopes alone, which cannot be wrong. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/attention/attention_plan.h"

#include <string.h>

#include "tensor/operators/common/operator_tools.h"

enum { LENGTHS, COUNTS, TABLE, SLOPES, INPUTS };                                  /* inputs */
enum { BATCHES, ROWS, CAPACITY, BLOCKS, BLOCK_ROWS, APPENDS, HEADS, PLAN_SIZES }; /* sizes */

/* A scalar argument of the kernel; without padding. */
typedef struct plan_shape {
  size_t batches, rows;                    /* rows: the new ones of a batch */
  size_t capacity;                         /* of a batch: rows of the caches, or of k */
  size_t blocks, block_rows, table_blocks; /* the caches' blocks and rows of a block; blocks of a row of the table */
  size_t heads;                            /* slopes */
  uint32_t appends;                        /* bool: new rows follow those of the caches */
  uint32_t length_step;                    /* 0: one length is that of all batches */
  uint64_t count_step;
} plan_shape;

/* The rows of a batch: those that the caches hold, or that k has, and the new ones. */
typedef struct batch_rows {
  int32_t length, count;
} batch_rows;

/* As rondo_check_index; without cells the run does not fail. */
static bool is_below(const rondo_index_cell *cells, size_t input, size_t position, int64_t number, size_t bound) {
  if (cells != NULL) return rondo_check_index(cells[input], position, number, bound);
  return number >= 0 && (uint64_t)number < bound;
}

/* Without new rows there are as many rows of k, or of the caches, as the length says. */
static batch_rows check_rows(const plan_shape *shape, const int32_t *const *inputs, size_t batch,
                             const rondo_index_cell *cells) {
  const int32_t *lengths = inputs[LENGTHS], *counts = inputs[COUNTS];
  const batch_rows none = {0, 0};
  const int32_t count = counts != NULL ? counts[batch * shape->count_step] : (int32_t)shape->rows;
  const int32_t length = lengths != NULL       ? lengths[batch * shape->length_step]
                         : shape->appends != 0 ? 0
                                               : (int32_t)shape->capacity;
  if (counts != NULL && !is_below(cells, COUNTS, batch, count, shape->rows + 1)) return none;
  if (counts != NULL && count == 0) return none; /* the batch is left out, whatever its length */
  const size_t space = shape->appends != 0 ? shape->capacity - (size_t)count : shape->capacity;
  if (lengths != NULL && !is_below(cells, LENGTHS, batch, length, space + 1)) return none;
  return (batch_rows){length, count};
}

/* How many entries of its row of the table a batch uses. */
static size_t count_used(const plan_shape *shape, batch_rows rows) {
  const size_t count = (size_t)rows.length + (shape->appends != 0 ? (size_t)rows.count : 0);
  return rondo_divide_up(count, shape->block_rows);
}

/* The first of these entries that the batch writes. */
static size_t first_written(const plan_shape *shape, batch_rows rows) {
  return rows.count == 0 ? count_used(shape, rows) : (size_t)rows.length / shape->block_rows;
}

static bool is_block(const plan_shape *shape, int32_t entry) { return entry >= 0 && (size_t)entry < shape->blocks; }

/* What a kernel does: it sets the numbers to 0, or counts, or both, for which one block of threads is needed. */
typedef enum writers_part { WRITERS_WHOLE, WRITERS_CLEAR, WRITERS_COUNT } writers_part;

/* Sets how many written entries of the table name each block that is used. Other blocks have any number. */
static void count_writers(const plan_shape *shape, const int32_t *const *inputs, writers_part part, uint32_t *writers) {
  for (size_t batch = 0; batch < shape->batches && part != WRITERS_COUNT; batch++) {
    const int32_t *table = inputs[TABLE] + batch * shape->table_blocks;
    const size_t used = count_used(shape, check_rows(shape, inputs, batch, NULL));
    for (size_t i = 0; i < used; i++)
      if (is_block(shape, table[i])) writers[table[i]] = 0;
  }
  for (size_t batch = 0; batch < shape->batches && part != WRITERS_CLEAR; batch++) {
    const int32_t *table = inputs[TABLE] + batch * shape->table_blocks;
    const batch_rows rows = check_rows(shape, inputs, batch, NULL);
    const size_t used = count_used(shape, rows);
    for (size_t i = first_written(shape, rows); i < used; i++)
      if (is_block(shape, table[i])) writers[table[i]]++;
  }
}

/* Whether no entry that the batch's rows use names a block that another entry writes; the run fails otherwise. */
static bool check_written(const plan_shape *shape, const int32_t *table, const uint32_t *writers, size_t batch,
                          batch_rows rows, rondo_index_cell cell) {
  const size_t used = count_used(shape, rows), first = first_written(shape, rows);
  bool is_right = true;
  for (size_t i = 0; i < used; i++) {
    const size_t at = batch * shape->table_blocks + i;
    if (!is_block(shape, table[at]) || writers[table[at]] <= (i >= first ? 1 : 0)) continue;
    is_right = rondo_check_index(cell, at, table[at], 0);
  }
  return is_right;
}

/* Only entries that the batch's rows use are looked at. Whether all of them are blocks. */
static bool check_table(const plan_shape *shape, const int32_t *table, size_t batch, size_t used,
                        const rondo_index_cell *cells, int32_t *to) {
  bool is_right = true;
  for (size_t i = 0; i < shape->table_blocks; i++) {
    const size_t at = batch * shape->table_blocks + i;
    const bool is_block = i < used && rondo_check_index(cells[TABLE], at, table[at], shape->blocks);
    is_right = is_right && (is_block || i >= used);
    to[i] = is_block ? table[at] : 0;
  }
  return is_right;
}

static void plan_batch(const plan_shape *shape, const int32_t *const *inputs, const uint32_t *writers, size_t batch,
                       const rondo_index_cell *cells, int32_t *plan) {
  int32_t *table = plan + 2 * shape->batches + batch * shape->table_blocks;
  batch_rows rows = check_rows(shape, inputs, batch, cells);
  if (shape->table_blocks > 0) {
    const size_t used = count_used(shape, rows);
    const bool are_blocks = check_table(shape, inputs[TABLE], batch, used, cells, table);
    const bool are_own = writers == NULL || check_written(shape, inputs[TABLE], writers, batch, rows, cells[TABLE]);
    if (!are_blocks || !are_own) {
      memset(table, 0, shape->table_blocks * sizeof *table);
      rows = (batch_rows){0, 0};
    }
  }
  plan[batch] = rows.length;
  plan[shape->batches + batch] = rows.count;
}

static void plan_all(rondo_blocks blocks, void *const *args, const rondo_index_cell *cells) {
  const plan_shape *shape = args[0];
  const int32_t *inputs[INPUTS];
  const uint32_t *writers = RONDO_ARG(const uint32_t *, 1 + INPUTS);
  int32_t *plan = RONDO_ARG(int32_t *, 2 + INPUTS);
  int32_t *slopes = plan + shape->batches * (2 + shape->table_blocks);
  for (size_t i = 0; i < INPUTS; i++) inputs[i] = RONDO_ARG(const int32_t *, 1 + i);
  RONDO_EACH_ITEM(batch, blocks, shape->batches) plan_batch(shape, inputs, writers, batch, cells, plan);
  if (blocks.first == 0 && shape->heads > 0) memcpy(slopes, inputs[SLOPES], shape->heads * sizeof *slopes);
}

static void attention_plan_cpu(rondo_blocks blocks, void *const *args) {
  rondo_index_cell cells[TABLE + 1];
  for (size_t i = 0; i <= TABLE; i++) cells[i] = rondo_begin_check(blocks, args + 3 + INPUTS + 4 * i);
  plan_all(blocks, args, cells);
}

static void attention_slopes_cpu(rondo_blocks blocks, void *const *args) { plan_all(blocks, args, NULL); }

/* The first block does all. Arguments: the shape, lengths, counts, the table, what is counted and the part of it. */
static void attention_writers_cpu(rondo_blocks blocks, void *const *args) {
  const int32_t *inputs[] = {RONDO_ARG(const int32_t *, 1 + LENGTHS), RONDO_ARG(const int32_t *, 1 + COUNTS),
                             RONDO_ARG(const int32_t *, 1 + TABLE)};
  if (blocks.first == 0)
    count_writers(args[0], inputs, (writers_part)RONDO_ARG(uint32_t, 3 + TABLE), RONDO_ARG(uint32_t *, 2 + TABLE));
}

#define PLAN_PARAMETERS \
  RONDO_SCALAR(plan_shape), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES

RONDO_UNTYPED_KERNEL(attention_plan, attention_plan, PLAN_PARAMETERS, RONDO_CHECK_PARAMETERS, RONDO_CHECK_PARAMETERS,
                     RONDO_CHECK_PARAMETERS);
RONDO_UNTYPED_KERNEL(attention_slopes, attention_plan, PLAN_PARAMETERS);
RONDO_UNTYPED_KERNEL(attention_writers, attention_plan, RONDO_SCALAR(plan_shape), RONDO_READS, RONDO_READS, RONDO_READS,
                     RONDO_UPDATES, RONDO_SCALAR(uint32_t));

/* Operators -------------------------------------------------------------------------------------------------------- */

/* One number for all batches, or one for each. */
static rondo_status require_numbers(const rondo_program *program, const rondo_operation *operation, uint32_t input) {
  const rondo_shape *numbers = rondo_operation_input(program, operation, input);
  const size_t batches = operation->attributes.sizes[BATCHES];
  if (numbers == NULL || (numbers->type == RONDO_I32 && numbers->rank == 0)) return RONDO_OK;
  RONDO_TRY(rondo_require_input(program, operation, input, RONDO_I32, 1));
  if (numbers->dims[0] == batches) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "%s must be a scalar or [b], a number for each of %zu batches",
                              operation->row->inputs[input], batches);
}

static rondo_status infer_plan(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const size_t *sizes = operation->attributes.sizes;
  const rondo_shape *table = rondo_operation_input(program, operation, TABLE);
  const rondo_shape *slopes = rondo_operation_input(program, operation, SLOPES);
  size_t count = 2 * sizes[BATCHES];
  RONDO_TRY(require_numbers(program, operation, LENGTHS));
  RONDO_TRY(require_numbers(program, operation, COUNTS));
  RONDO_TRY(rondo_require_input(program, operation, TABLE, RONDO_I32, 2));
  RONDO_TRY(rondo_require_input(program, operation, SLOPES, RONDO_F32, 1));
  if (table != NULL && table->dims[0] != sizes[BATCHES])
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "the block table must be [b, blocks], with a row for each of %zu batches",
                                sizes[BATCHES]);
  if (slopes != NULL && slopes->dims[0] != sizes[HEADS])
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "there must be a slope for each of %zu heads of q", sizes[HEADS]);
  if (table != NULL) count += table->dims[0] * table->dims[1];
  if (slopes != NULL) count += sizes[HEADS];
  results[0] = rondo_shape_vector(RONDO_I32, count);
  return RONDO_OK;
}

static size_t step_of(const rondo_emitter *emitter, uint32_t value) {
  const rondo_shape *shape = rondo_emit_shape(emitter, value);
  return shape == NULL ? 0 : shape->rank;
}

static plan_shape plan_shape_of(const rondo_emitter *emitter, const rondo_operation *operation) {
  const size_t *sizes = operation->attributes.sizes;
  const rondo_shape *table = rondo_emit_shape(emitter, operation->inputs[TABLE]);
  const bool has_slopes = operation->inputs[SLOPES] != RONDO_NO_VALUE;
  return (plan_shape){.batches = sizes[BATCHES],
                      .rows = sizes[ROWS],
                      .capacity = sizes[CAPACITY],
                      .blocks = sizes[BLOCKS],
                      .block_rows = sizes[BLOCK_ROWS],
                      .table_blocks = table == NULL ? 0 : table->dims[1],
                      .heads = has_slopes ? sizes[HEADS] : 0,
                      .appends = sizes[APPENDS] != 0,
                      .length_step = (uint32_t)step_of(emitter, operation->inputs[LENGTHS]),
                      .count_step = step_of(emitter, operation->inputs[COUNTS])};
}

/* Whether rows are written to blocks of a table, which are then counted in the workspace. */
static bool writes_blocks(const rondo_operation *operation) {
  return operation->inputs[TABLE] != RONDO_NO_VALUE && operation->attributes.sizes[APPENDS] != 0;
}

static rondo_status prepare_plan(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                 size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  (void)resources;
  *out_workspace_bytes = writes_blocks(operation) ? operation->attributes.sizes[BLOCKS] * sizeof(uint32_t) : 0;
  return RONDO_OK;
}

static rondo_status emit_writers_part(rondo_emitter *emitter, const rondo_operation *operation, void *writers,
                                      uint32_t part) {
  const plan_shape shape = plan_shape_of(emitter, operation);
  const size_t entries = part == WRITERS_WHOLE ? 1 : shape.batches * shape.table_blocks;
  return rondo_emit_operands(emitter, operation, &attention_writers_code,
                             rondo_emit_grid(emitter, entries, (rondo_grain){entries, RONDO_CUDA_THREADS}),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(LENGTHS), RONDO_INPUT(COUNTS),
                                            RONDO_INPUT(TABLE), RONDO_OBJECT(writers), RONDO_OBJECT(part)));
}

/* More entries take one block of threads on CUDA longer than the launch of a second kernel. */
#define MANY_ENTRIES 4096

static rondo_status emit_writers(rondo_emitter *emitter, const rondo_operation *operation, void *writers) {
  const plan_shape shape = plan_shape_of(emitter, operation);
  if (!rondo_emit_is_cuda(emitter) || shape.batches * shape.table_blocks <= MANY_ENTRIES)
    return emit_writers_part(emitter, operation, writers, WRITERS_WHOLE);
  RONDO_TRY(emit_writers_part(emitter, operation, writers, WRITERS_CLEAR));
  return emit_writers_part(emitter, operation, writers, WRITERS_COUNT);
}

/* On CUDA, a block of threads makes the plan of a batch. */
static const rondo_grain plan_grain = {256, 1};

static rondo_status emit_plan(rondo_emitter *emitter, const rondo_operation *operation) {
  const plan_shape shape = plan_shape_of(emitter, operation);
  const size_t least = operation->inputs[COUNTS] == RONDO_NO_VALUE ? shape.rows : 1; /* new rows of a batch */
  const size_t longest = shape.appends != 0 ? shape.capacity - least : shape.capacity;
  void *writers = writes_blocks(operation) ? rondo_emit_workspace(emitter) : NULL;
  if (writers != NULL) RONDO_TRY(emit_writers(emitter, operation, writers));
  return rondo_emit_operands(
      emitter, operation, &attention_plan_code, rondo_emit_grid(emitter, shape.batches, plan_grain),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(LENGTHS), RONDO_INPUT(COUNTS), RONDO_INPUT(TABLE),
                     RONDO_INPUT(SLOPES), RONDO_OBJECT(writers), RONDO_RESULT(0), RONDO_CHECK(LENGTHS, longest + 1),
                     RONDO_CHECK(COUNTS, shape.rows + 1), RONDO_CHECK(TABLE, shape.blocks)));
}

static rondo_status emit_slopes(rondo_emitter *emitter, const rondo_operation *operation) {
  const plan_shape shape = plan_shape_of(emitter, operation);
  const void *writers = NULL;
  return rondo_emit_operands(
      emitter, operation, &attention_slopes_code, rondo_emit_grid(emitter, shape.batches, plan_grain),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(LENGTHS), RONDO_INPUT(COUNTS), RONDO_INPUT(TABLE),
                     RONDO_INPUT(SLOPES), RONDO_OBJECT(writers), RONDO_RESULT(0)));
}

#define PLAN_ROW .inputs = {"lengths", "new_rows", "block_table", "slopes"}, .result_count = 1, .infer = infer_plan

RONDO_OPERATOR(attention_plan, PLAN_ROW, .checks_indices = TABLE + 1,
               .index_rule = "new rows must fit too; the sequence was left out, and no cache was changed",
               .repeat_input = TABLE,
               .repeat_rule =
                   "a sequence writes to this block, and another entry of the table names it, too; the sequence was "
                   "left out, and no cache was changed",
               .prepare = prepare_plan, .emit = emit_plan);
RONDO_OPERATOR(attention_slopes, PLAN_ROW, .emit = emit_slopes);

rondo_status rondo_attention_add_plan(rondo_program *program, const rondo_attention_rows *rows, uint32_t *out_plan) {
  const uint32_t inputs[INPUTS] = {rows->lengths, rows->counts, rows->table, rows->slopes};
  const bool is_checked = rows->has_caches || rows->lengths != RONDO_NO_VALUE;
  rondo_attributes attributes = {.size_count = PLAN_SIZES};
  attributes.sizes[BATCHES] = rows->dims.batches;
  attributes.sizes[ROWS] = rows->dims.rows;
  attributes.sizes[CAPACITY] = rows->has_caches ? rows->caches.capacity : rows->dims.columns;
  attributes.sizes[BLOCKS] = rows->has_caches ? rows->caches.blocks : 0;
  attributes.sizes[BLOCK_ROWS] = rows->has_caches ? rows->caches.block_rows : 0;
  attributes.sizes[APPENDS] = rows->appends;
  attributes.sizes[HEADS] = rows->dims.heads;
  *out_plan = RONDO_NO_VALUE;
  if (!is_checked && rows->slopes == RONDO_NO_VALUE) return RONDO_OK;
  return rondo_program_add(program, is_checked ? &rondo_operator_attention_plan : &rondo_operator_attention_slopes,
                           inputs, INPUTS, &attributes, out_plan);
}

static const rondo_operation *maker_of(const rondo_program *program, uint32_t plan) {
  return &program->operations.items[program->values.items[plan].operation];
}

bool rondo_attention_plans_same_rows(const rondo_program *program, uint32_t plan, uint32_t other) {
  const rondo_operation *one = maker_of(program, plan), *two = maker_of(program, other);
  for (uint32_t i = 0; i <= TABLE; i++)
    if (one->inputs[i] != two->inputs[i]) return false;
  return true;
}

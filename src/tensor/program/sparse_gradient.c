/* SPDX-License-Identifier: MIT
 * Sparse gradients: the whole gradient is one of a look-up, or a sum of such. Several look-ups, of single indices, are
 * joined: their indices one after the other, and the gradients of their results. Gradients of several runs are kept in
 * two states, with as many slots for each run as it may have indices (operators/embedding/accumulate_rows.c). Of a
 * table whose rows are divided between ranks, each rank has slots for what it gets from all of them.
 */
#include "tensor/program/sparse_gradient.h"

#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "tensor/program/operation.h"
#include "tensor/program/operators.h"
#include "tensor/program/optimizer.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"
#include "tensor/program/sharded_table.h"

enum { INDICES, GRADIENT, OFFSETS, WEIGHTS }; /* inputs of embedding_gradient */
enum { ROWS, COLUMNS };                       /* its sizes */

typedef RONDO_ARRAY(uint32_t) value_list;

/* The look-ups' gradients of a table: operations, in the order of the sum. */
typedef struct look_ups {
  rondo_program *program;
  const char *call;
  uint32_t state;
  value_list found, open; /* operations; values that are still to be followed */
} look_ups;

static rondo_status fail_dense(const look_ups *l, uint32_t gradient) {
  const rondo_program *program = l->program;
  const rondo_program_value *value = &program->values.items[gradient];
  const char *by =
      value->kind == RONDO_VALUE_RESULT ? program->operations.items[value->operation].row->name : "no operator";
  char text[RONDO_CALL_TEXT];
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                    "%s: %s is sparse, but a part of its gradient is computed by %s: only embedding and embedding_bag "
                    "may read a sparse state that is trained; cast their results, not the table",
                    l->call, rondo_value_text(text, program, l->state), by);
}

/* Takes the first input of a sum last, so that what is found is in the reverse order of the sum. */
static rondo_status follow(look_ups *l, uint32_t gradient) {
  const rondo_allocator *allocator = &l->program->allocator;
  const rondo_program_value *value = &l->program->values.items[gradient];
  if (value->kind != RONDO_VALUE_RESULT) return fail_dense(l, gradient);
  const rondo_operation *made_by = &l->program->operations.items[value->operation];
  if (made_by->row == &rondo_operator_embedding_gradient)
    return rondo_array_push(allocator, &l->found, &value->operation);
  if (made_by->row != &rondo_operator_add) return fail_dense(l, gradient);
  RONDO_TRY(rondo_array_push(allocator, &l->open, &made_by->inputs[0]));
  return rondo_array_push(allocator, &l->open, &made_by->inputs[1]);
}

static rondo_status find_look_ups(look_ups *l, uint32_t gradient) {
  RONDO_TRY(rondo_array_push(&l->program->allocator, &l->open, &gradient));
  while (l->open.count > 0) RONDO_TRY(follow(l, l->open.items[--l->open.count]));
  return RONDO_OK;
}

/* Joining ---------------------------------------------------------------------------------------------------------- */

static rondo_status require_single(const look_ups *l, const rondo_operation *operation) {
  char text[RONDO_CALL_TEXT];
  const rondo_shape *indices = rondo_operation_input(l->program, operation, INDICES);
  const rondo_shape *dy = rondo_operation_input(l->program, operation, GRADIENT);
  const size_t columns = operation->attributes.sizes[COLUMNS];
  const bool is_single = rondo_shape_elements(indices) * columns == rondo_shape_elements(dy);
  if (is_single && operation->inputs[OFFSETS] == RONDO_NO_VALUE && operation->inputs[WEIGHTS] == RONDO_NO_VALUE)
    return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                    "%s: %s is sparse and read by several look-ups, of which one is an embedding_bag: use embedding, "
                    "and sum or weigh its rows",
                    l->call, rondo_value_text(text, l->program, l->state));
}

/* A look-up's indices, I64 in one dimension, or the gradient of its result, [indices, columns]. */
static rondo_status flatten(const look_ups *l, uint32_t number, uint32_t input, uint32_t *out_value) {
  static const rondo_attributes to_wide = {.sizes = {RONDO_I64}, .size_count = 1};
  const rondo_operation operation = l->program->operations.items[number];
  const size_t count = rondo_shape_elements(rondo_operation_input(l->program, &operation, INDICES));
  const bool is_indices = input == INDICES;
  *out_value = operation.inputs[input];
  if (is_indices && rondo_program_shape(l->program, *out_value)->type != RONDO_I64)
    RONDO_TRY(rondo_program_add(l->program, &rondo_operator_cast, out_value, 1, &to_wide, out_value));
  const rondo_shape shape = is_indices ? rondo_shape_vector(RONDO_I64, count)
                                       : rondo_shape_matrix(RONDO_F32, count, operation.attributes.sizes[COLUMNS]);
  return rondo_program_add_shaped(l->program, &rondo_operator_reshape, *out_value, shape, out_value);
}

static rondo_status join_all(const look_ups *l, uint32_t input, uint32_t *values, uint32_t *out_value) {
  const size_t count = l->found.count;
  for (size_t i = 0; i < count; i++) RONDO_TRY(flatten(l, l->found.items[count - 1 - i], input, &values[i]));
  RONDO_TRY(rondo_program_add_concat(l->program, values, count, 0));
  *out_value = values[0];
  return RONDO_OK;
}

/* The inputs of one look-up that stands for all. */
static rondo_status join(const look_ups *l, uint32_t *inputs) {
  const rondo_allocator *allocator = &l->program->allocator;
  uint32_t *values;
  for (size_t i = 0; i < l->found.count; i++)
    RONDO_TRY(require_single(l, &l->program->operations.items[l->found.items[i]]));
  RONDO_TRY(rondo_allocate_items(allocator, l->found.count, sizeof *values, &values));
  rondo_status status = join_all(l, INDICES, values, &inputs[INDICES]);
  if (status == RONDO_OK) status = join_all(l, GRADIENT, values, &inputs[GRADIENT]);
  rondo_release(allocator, values, l->found.count, sizeof *values);
  return status;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

bool rondo_state_is_sparse(const rondo_program *program, uint32_t state) {
  const rondo_program_value *value = &program->values.items[state];
  return value->is_sparse && (program->ranks.communicator == NULL || value->table_rows > 0);
}

static rondo_status add_rows(const look_ups *l, uint32_t *out_gradient, uint32_t *out_keys) {
  const rondo_operation first = l->program->operations.items[l->found.items[0]];
  const rondo_shape table = *rondo_program_shape(l->program, l->state);
  rondo_attributes attributes = {.sizes = {[ROWS] = table.dims[0], [COLUMNS] = table.dims[1]}, .size_count = 2};
  uint32_t of[RONDO_MAX_OPERANDS];
  memcpy(of, first.inputs, sizeof of);
  if (l->found.count > 1)
    RONDO_TRY(join(l, of));
  else
    memcpy(attributes.flags, first.attributes.flags, sizeof attributes.flags);
  const uint32_t sorted[] = {of[INDICES], RONDO_NO_VALUE, of[OFFSETS]};
  RONDO_TRY(rondo_program_add(l->program, &rondo_operator_sort_indices, sorted, 3, &attributes, out_keys));
  const uint32_t inputs[] = {*out_keys, of[GRADIENT], of[OFFSETS], of[WEIGHTS], of[INDICES]};
  return rondo_program_add(l->program, &rondo_operator_embedding_rows, inputs, 5, &attributes, out_gradient);
}

rondo_status rondo_sparse_gradient(rondo_program *program, const char *call, uint32_t state, uint32_t *inout_gradient,
                                   uint32_t *out_keys) {
  look_ups l = {.program = program, .call = call, .state = state};
  rondo_status status = find_look_ups(&l, *inout_gradient);
  if (status == RONDO_OK) status = add_rows(&l, inout_gradient, out_keys);
  rondo_array_free(&program->allocator, &l.found);
  rondo_array_free(&program->allocator, &l.open);
  return status;
}

/* Several runs ----------------------------------------------------------------------------------------------------- */

/* The slots of a run. */
static rondo_status find_bound(const rondo_program *program, const char *call, const rondo_update_part *part,
                               size_t *out_bound) {
  const size_t count = rondo_program_shape(program, part->gradient)->dims[0];
  const rondo_program_value *state = &program->values.items[part->state];
  const size_t given = state->max_indices;
  const size_t most = state->table_rows == 0 || given == 0 ? given : rondo_table_received(program, part->state, given);
  char text[RONDO_CALL_TEXT];
  *out_bound = most == 0 ? count : most;
  if (count <= *out_bound) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: %s is read at %zu indices, more than its max_indices %zu%s: raise max_indices", call,
                    rondo_value_text(text, program, part->state), count, given,
                    most == given ? "" : " is enough for with those of the other ranks");
}

static rondo_status fail_slots(const rondo_program *program, const char *call, uint32_t state, size_t bound,
                               size_t runs) {
  char text[RONDO_CALL_TEXT];
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "%s: %s has %zu indices in each of %zu accumulated runs, together more than an i32 can count: "
                    "accumulate fewer runs, or lower max_indices",
                    call, rondo_value_text(text, program, state), bound, runs);
}

/* Each rank has slots of its own, which checkpoints have one after the other, like the rows of a divided table. */
static void divide_slots(rondo_program *program, uint32_t table, uint32_t state) {
  rondo_program_value *slots = &program->values.items[state];
  slots->of_round = true;
  if (program->values.items[table].table_rows == 0) return;
  slots->is_sharded = true;
  slots->table_rows = slots->shape.dims[0] * program->ranks.count;
}

rondo_status rondo_sparse_accumulate(rondo_program *program, const char *call, size_t most, uint32_t runs,
                                     rondo_update_part *part) {
  size_t bound, slots;
  const rondo_shape table = *rondo_program_shape(program, part->state);
  RONDO_TRY(find_bound(program, call, part, &bound));
  if (!rondo_checked_multiply(bound, most, &slots) || slots > INT32_MAX)
    return fail_slots(program, call, part->state, bound, most);
  const rondo_shape of_rows = rondo_shape_vector(RONDO_I64, slots);
  const rondo_shape of_sums = rondo_shape_matrix(RONDO_F32, slots, table.dims[1]);
  const rondo_attributes attributes = {.sizes = {table.dims[0], bound}, .size_count = 2};
  uint32_t inputs[] = {0, 0, part->keys - 1, part->gradient, runs};
  RONDO_TRY(rondo_optimizer_state(program, part->state, ".accumulated_rows", &of_rows, 0, &inputs[0]));
  RONDO_TRY(rondo_optimizer_state(program, part->state, ".accumulated", &of_sums, 0, &inputs[1]));
  for (size_t i = 0; i < 2; i++) divide_slots(program, part->state, inputs[i]);
  part->keys = inputs[0] + 1;
  part->gradient = inputs[1];
  return rondo_program_add(program, &rondo_operator_accumulate_rows, inputs, 5, &attributes, NULL);
}

rondo_status rondo_sparse_sum(rondo_program *program, uint32_t control, rondo_update_part *part) {
  const rondo_shape table = *rondo_program_shape(program, part->state);
  const rondo_attributes attributes = {.sizes = {[ROWS] = table.dims[0], [COLUMNS] = table.dims[1]}, .size_count = 2};
  const rondo_attributes sizes = {.sizes = {[ROWS] = table.dims[0]}, .size_count = 1};
  const uint32_t sorted[] = {part->keys - 1, control};
  uint32_t keys;
  RONDO_TRY(rondo_program_add(program, &rondo_operator_sort_accumulated, sorted, 2, &sizes, &keys));
  const uint32_t inputs[] = {keys, part->gradient, RONDO_NO_VALUE, RONDO_NO_VALUE, part->keys - 1, control};
  part->keys = keys + 1;
  return rondo_program_add(program, &rondo_operator_accumulated_rows, inputs, 6, &attributes, &part->gradient);
}

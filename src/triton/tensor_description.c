/* SPDX-License-Identifier: MIT
 * Inputs and outputs of programs as the server describes them. A program for one row says the shapes; whether they grow
 * with the rows, the session checks when it gets the model.
 */
#include "triton/tensor_description.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

/* Types ------------------------------------------------------------------------------------------------------------ */

static const char *const type_names[] = {
    [TRITON_TYPE_INVALID] = "TYPE_INVALID", [TRITON_TYPE_BOOL] = "TYPE_BOOL",     [TRITON_TYPE_UINT8] = "TYPE_UINT8",
    [TRITON_TYPE_UINT16] = "TYPE_UINT16",   [TRITON_TYPE_UINT32] = "TYPE_UINT32", [TRITON_TYPE_UINT64] = "TYPE_UINT64",
    [TRITON_TYPE_INT8] = "TYPE_INT8",       [TRITON_TYPE_INT16] = "TYPE_INT16",   [TRITON_TYPE_INT32] = "TYPE_INT32",
    [TRITON_TYPE_INT64] = "TYPE_INT64",     [TRITON_TYPE_FP16] = "TYPE_FP16",     [TRITON_TYPE_FP32] = "TYPE_FP32",
    [TRITON_TYPE_FP64] = "TYPE_FP64",       [TRITON_TYPE_BYTES] = "TYPE_STRING",  [TRITON_TYPE_BF16] = "TYPE_BF16"};

const char *rondo_triton_type_name(triton_data_type type) {
  return (size_t)type < sizeof type_names / sizeof *type_names ? type_names[type] : type_names[TRITON_TYPE_INVALID];
}

static triton_data_type type_of(rondo_type type) {
  switch (type) {
    case RONDO_F32:
      return TRITON_TYPE_FP32;
    case RONDO_F16:
      return TRITON_TYPE_FP16;
    case RONDO_BF16:
      return TRITON_TYPE_BF16;
    case RONDO_F64:
      return TRITON_TYPE_FP64;
    case RONDO_I32:
      return TRITON_TYPE_INT32;
    case RONDO_I64:
      return TRITON_TYPE_INT64;
    case RONDO_I8:
      return TRITON_TYPE_INT8;
    case RONDO_U8:
      return TRITON_TYPE_UINT8;
    case RONDO_BOOL:
      return TRITON_TYPE_BOOL;
    default: /* floats of 8 bits */
      return TRITON_TYPE_INVALID;
  }
}

const char *rondo_triton_shape_text(char buffer[RONDO_TRITON_SHAPE_TEXT], const int64_t *dims, size_t rank) {
  size_t used = 1;
  buffer[0] = '[';
  buffer[1] = '\0';
  for (size_t i = 0; i < rank && used < RONDO_TRITON_SHAPE_TEXT - 24; i++)
    used += (size_t)snprintf(buffer + used, RONDO_TRITON_SHAPE_TEXT - used, "%s%lld", i == 0 ? "" : ", ",
                             (long long)dims[i]);
  (void)snprintf(buffer + used, RONDO_TRITON_SHAPE_TEXT - used, "]");
  return buffer;
}

const rondo_triton_tensor *rondo_triton_find_tensor(const rondo_triton_tensors *tensors, const char *name) {
  for (size_t i = 0; i < tensors->count; i++)
    if (strcmp(tensors->items[i].name, name) == 0) return &tensors->items[i];
  return NULL;
}

/* Describing ------------------------------------------------------------------------------------------------------- */

static rondo_status copy_name(rondo_scratch *scratch, const char *name, const char **out) {
  char *copy;
  RONDO_TRY(rondo_scratch_take(scratch, strlen(name) + 1, 1, &copy));
  memcpy(copy, name, strlen(name) + 1);
  *out = copy;
  return RONDO_OK;
}

/* A value as the program for one row has it, or as it is declared: `rank` dimensions of one row, of which the first may
 * be the length. */
typedef struct row_shape {
  rondo_type type;
  const size_t *dims;
  size_t rank;
  bool has_length;
} row_shape;

static rondo_status add(rondo_scratch *scratch, rondo_triton_tensors *tensors, const char *name, row_shape row) {
  rondo_triton_tensor *t = &tensors->items[tensors->count];
  *t = (rondo_triton_tensor){.type = type_of(row.type),
                             .row_bytes = rondo_type_bytes(row.type),
                             .rank = row.rank,
                             .has_length = row.has_length};
  if (t->type == TRITON_TYPE_INVALID)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "'%s' is of the type %s, which the server does not have",
                      name, rondo_type_name(row.type));
  for (size_t i = 0; i < row.rank; i++) {
    const bool is_length = row.has_length && i == 0;
    t->dims[i] = is_length ? -1 : (int64_t)row.dims[i];
    t->row_bytes *= is_length ? 1 : row.dims[i]; /* it was checked that it fits */
  }
  if (row.rank == 0) {
    t->rank = 1;
    t->dims[0] = 1;
  }
  RONDO_TRY(copy_name(scratch, name, &t->name));
  tensors->count++;
  return RONDO_OK;
}

/* The first dimension is that of the rows, times a constant. `other` is the shape for another length, or the same. */
static rondo_status add_of_program(rondo_scratch *scratch, rondo_triton_tensors *tensors, const char *name,
                                   const rondo_shape *shape, const rondo_shape *other) {
  if (shape->rank == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "'%s' is a single number for all rows: a model to serve has the rows as the first dimension of "
                      "each input and output",
                      name);
  const size_t first = shape->dims[0] == 1 ? 1 : 0;
  const bool has_length =
      first == 1 && shape->rank > 1 && other->rank == shape->rank && other->dims[1] != shape->dims[1];
  return add(scratch, tensors, name, (row_shape){shape->type, shape->dims + first, shape->rank - first, has_length});
}

static bool is_written_by_session(const rondo_row_inputs *row, const char *name) {
  const char *const names[] = {row->length, row->slot, row->start, row->source, row->positions, row->last};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i] != NULL && strcmp(names[i], name) == 0) return true;
  return false;
}

static rondo_status refuse_difference(const char *what, const char *name) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "the network has no %s '%s' for another length: build_sized makes the same inputs and outputs",
                    what, name);
}

static const rondo_shape *find_input_shape(const rondo_program *program, const char *name) {
  for (uint32_t i = 0; i < program->values.count; i++) {
    const rondo_program_value *value = &program->values.items[i];
    if (value->kind == RONDO_VALUE_INPUT && strcmp(value->name, name) == 0) return &value->shape;
  }
  return NULL;
}

static const rondo_shape *find_output_shape(const rondo_program *program, const char *name) {
  for (size_t i = 0; i < program->outputs.count; i++) {
    const rondo_named_output *output = &program->outputs.items[i];
    if (strcmp(output->name, name) == 0) return rondo_program_shape(program, output->value);
  }
  return NULL;
}

/* `other` is the program for another length, or the same one. The networks of two lengths may compute by other
 * operations, so values are found by their names. */
static rondo_status describe_program(rondo_scratch *scratch, const rondo_row_inputs *row, const rondo_program *program,
                                     const rondo_program *other, rondo_triton_tensors *inputs,
                                     rondo_triton_tensors *outputs) {
  size_t count = 0;
  for (uint32_t i = 0; i < program->values.count; i++) count += program->values.items[i].kind == RONDO_VALUE_INPUT;
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *inputs->items, &inputs->items));
  RONDO_TRY(rondo_scratch_take(scratch, program->outputs.count, sizeof *outputs->items, &outputs->items));
  for (uint32_t i = 0; i < program->values.count; i++) {
    const rondo_program_value *value = &program->values.items[i];
    if (value->kind != RONDO_VALUE_INPUT || is_written_by_session(row, value->name)) continue;
    const rondo_shape *its = find_input_shape(other, value->name);
    if (its == NULL) return refuse_difference("input", value->name);
    RONDO_TRY(add_of_program(scratch, inputs, value->name, &value->shape, its));
  }
  for (size_t i = 0; i < program->outputs.count; i++) {
    const rondo_named_output *output = &program->outputs.items[i];
    const rondo_shape *its = find_output_shape(other, output->name);
    if (its == NULL) return refuse_difference("output", output->name);
    RONDO_TRY(add_of_program(scratch, outputs, output->name, rondo_program_shape(program, output->value), its));
  }
  return RONDO_OK;
}

/* A shared object gave the value, and the session checks it only later. */
static rondo_status check_declared(const rondo_row_value *value) {
  size_t bytes = rondo_type_bytes(value->type);
  RONDO_TRY(rondo_require("rondo_triton_model", "the name of an input or output", value->name));
  if (value->rank >= RONDO_TREE_MAX_RANK)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "rondo_triton_model: a row of '%s' has %u dimensions: give it at most %d", value->name,
                      (unsigned)value->rank, RONDO_TREE_MAX_RANK - 1);
  for (size_t i = 0; i < value->rank; i++) {
    if (value->shape[i] > 0 && bytes > SIZE_MAX / value->shape[i])
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                        "rondo_triton_model: a row of '%s' has more bytes than fit into memory", value->name);
    bytes *= value->shape[i];
  }
  return RONDO_OK;
}

static rondo_status describe_declared(rondo_scratch *scratch, const rondo_row_value *values, size_t count,
                                      rondo_triton_tensors *out) {
  if (count > 0) RONDO_TRY(rondo_require("rondo_triton_model", "the list of inputs or outputs", values));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->items, &out->items));
  for (size_t i = 0; i < count; i++) {
    RONDO_TRY(check_declared(&values[i]));
    RONDO_TRY(add(scratch, out, values[i].name, (row_shape){values[i].type, values[i].shape, values[i].rank, false}));
  }
  return RONDO_OK;
}

/* The network for one row, of a length if it has lengths. */
static rondo_status build_for_a_row(const rondo_model_options *model, size_t length, rondo_program **out) {
  const rondo_model_size size = {.rows = 1, .length = length, .slots = model->slots > 0 ? 1 : 0};
  RONDO_TRY(rondo_program_create(NULL, out));
  const rondo_status status =
      model->build != NULL ? model->build(model->user, 1, *out) : model->build_sized(model->user, &size, *out);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_program_destroy(*out);
  *out = NULL;
  return status;
}

/* The lengths are those that the session tries as well: a longest one, and one less. */
static rondo_status describe_sized(rondo_scratch *scratch, const rondo_model_options *model,
                                   rondo_triton_tensors *out_inputs, rondo_triton_tensors *out_outputs) {
  rondo_program *program, *other;
  size_t length = 1;
  for (size_t i = 0; model->lengths != NULL && i < model->length_count; i++)
    if (model->lengths[i] > length) length = model->lengths[i];
  RONDO_TRY(build_for_a_row(model, length, &program));
  rondo_status status = build_for_a_row(model, length > 1 ? length - 1 : 2, &other);
  if (status == RONDO_OK)
    status = describe_program(scratch, &model->row_inputs, program, other, out_inputs, out_outputs);
  rondo_program_destroy(other);
  rondo_program_destroy(program);
  return status;
}

/* Appends inputs of the network that reads sources. */
static rondo_status append_inputs(rondo_scratch *scratch, const rondo_triton_tensors *more,
                                  rondo_triton_tensors *inout) {
  rondo_triton_tensor *all;
  if (inout->count + more->count > RONDO_SESSION_MAX_VALUES)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "the model and its source have %zu inputs: give them at most %d", inout->count + more->count,
                      RONDO_SESSION_MAX_VALUES);
  RONDO_TRY(rondo_scratch_take(scratch, inout->count + more->count, sizeof *all, &all));
  memcpy(all, inout->items, inout->count * sizeof *all);
  inout->items = all;
  for (size_t i = 0; i < more->count; i++) {
    if (rondo_triton_find_tensor(inout, more->items[i].name) != NULL)
      return rondo_fail(
          RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_NAME,
          "the model and its source both have an input '%s', and requests have the inputs of both: rename "
          "one of them",
          more->items[i].name);
    all[inout->count] = more->items[i];
    all[inout->count++].is_of_source = true;
  }
  return RONDO_OK;
}

static rondo_status describe_source(rondo_scratch *scratch, const rondo_model_options *model,
                                    rondo_triton_tensors *inout_inputs) {
  const rondo_model_options *source = model->source;
  rondo_triton_tensors inputs = {0}, outputs = {0};
  if (source == NULL || source->build_sized == NULL) return RONDO_OK; /* the session says why it is refused */
  const rondo_model_options reader = {RONDO_MODEL_OPTIONS_INIT,   .build_sized = source->build_sized,
                                      .user = source->user,       .row_inputs = source->row_inputs,
                                      .lengths = source->lengths, .length_count = source->length_count,
                                      .slots = model->slots};
  RONDO_TRY(describe_sized(scratch, &reader, &inputs, &outputs));
  return append_inputs(scratch, &inputs, inout_inputs);
}

static bool changes_states(const rondo_program *program) {
  for (size_t i = 0; i < program->operations.count; i++)
    if (program->operations.items[i].row->updates != 0) return true;
  return false;
}

rondo_status rondo_triton_describe(rondo_scratch *scratch, const rondo_model_options *model,
                                   rondo_triton_tensors *out_inputs, rondo_triton_tensors *out_outputs,
                                   bool *out_changes_states) {
  rondo_program *program;
  *out_changes_states = false;
  *out_inputs = *out_outputs = (rondo_triton_tensors){0};
  if (model->build_sized != NULL) {
    RONDO_TRY(describe_sized(scratch, model, out_inputs, out_outputs));
    return describe_source(scratch, model, out_inputs);
  }
  if (model->build == NULL) {
    RONDO_TRY(describe_declared(scratch, model->inputs, model->input_count, out_inputs));
    return describe_declared(scratch, model->outputs, model->output_count, out_outputs);
  }
  RONDO_TRY(build_for_a_row(model, 1, &program));
  const rondo_status status = describe_program(scratch, &model->row_inputs, program, program, out_inputs, out_outputs);
  *out_changes_states = changes_states(program);
  rondo_program_destroy(program);
  return status;
}

rondo_status rondo_triton_tensor_bytes(const rondo_triton_tensor *tensor, size_t rows, size_t length, size_t *out) {
  const size_t positions = tensor->has_length ? length : 1;
  *out = tensor->row_bytes;
  if ((positions == 0 || *out <= SIZE_MAX / positions) && (rows == 0 || *out * positions <= SIZE_MAX / rows)) {
    *out *= positions * rows;
    return RONDO_OK;
  }
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE, "%zu rows of '%s' are more bytes than fit into memory",
                    rows, tensor->name);
}

/* SPDX-License-Identifier: MIT
 * Models of ONNX files in sessions.
 */
#include "onnx/served_onnx.h"

#include <stdlib.h>
#include <string.h>

#include "common/tool.h"
#include "onnx/onnx_program.h"

/* A tensor of doubles is one of F32 in a program. */
struct served_onnx {
  onnx_program program;             /* the model, and its inputs for one row or for the rows of files */
  const char *rows, *length, *mask; /* of the options */
  rondo_onnx_builder *builder;
};

/* Options ---------------------------------------------------------------------------------------------------------- */

static bool is_unknown_length(const onnx_input *input, size_t d, const char *length) {
  return length && strcmp(input->value.dimensions[d].name, length) == 0 && input->tensor.shape[d] == 1;
}

/* The sizes of the dynamic dimensions in the inputs. Those that are the rows do not count: the builder has them. That
 * of the length is an example, if it is not 1 because nothing is known of it. */
static size_t list_sizes(const onnx_program *p, const char *length, rondo_onnx_dimension_size *out) {
  size_t count = 0;
  for (; count < p->length_count; count++) out[count] = p->lengths[count];
  for (size_t i = 0; i < p->input_count; i++) {
    const onnx_input *input = &p->inputs[i];
    const size_t rank = input->has_tensor && input->value.has_shape ? input->value.rank : 0;
    for (size_t d = 0; d < rank && d < input->tensor.rank; d++)
      if (input->value.dimensions[d].name[0] != '\0' && !is_unknown_length(input, d, length))
        out[count++] = (rondo_onnx_dimension_size){input->value.dimensions[d].name, input->tensor.shape[d]};
  }
  return count;
}

static bool is_dynamic(const onnx_input *input, size_t d) {
  return input->value.has_shape && d < input->value.rank && input->value.dimensions[d].is_dynamic;
}

/* Whether the rows have this name: that of --rows, or that of a dynamic first dimension. */
static bool names_rows(const onnx_program *p, const char *rows, const char *name) {
  if (rows) return strcmp(name, rows) == 0;
  for (size_t i = 0; i < p->input_count && name[0] != '\0'; i++)
    if (is_dynamic(&p->inputs[i], 0) && strcmp(p->inputs[i].value.dimensions[0].name, name) == 0) return true;
  return false;
}

/* The dimension of an input that is the rows; its rank if it has none. As rondo_onnx_builder_options.rows says. */
static size_t find_rows(const onnx_program *p, const char *rows, const onnx_input *input) {
  if (!rows && is_dynamic(input, 0)) return 0;
  for (size_t d = 0; d < input->value.rank; d++)
    if (is_dynamic(input, d) && names_rows(p, rows, input->value.dimensions[d].name)) return d;
  return input->value.rank;
}

/* Files of inputs without rows: the program may need to know them. */
static size_t list_values(const onnx_program *p, const char *rows, rondo_onnx_given_input *out) {
  size_t count = 0, given = 0;
  for (size_t i = 0; i < p->input_count; i++) {
    const onnx_input *input = &p->inputs[i];
    if (!input->is_file || !input->has_tensor || find_rows(p, rows, input) < input->value.rank) continue;
    out[count++] = onnx_program_give_input(input, &given);
  }
  return count;
}

static int create_builder(served_onnx *model, const served_onnx_settings *settings) {
  const onnx_program *p = &model->program;
  const char *rows = settings->rows;
  rondo_onnx_dimension_size *sizes = calloc(p->input_count * RONDO_MAX_DIMENSIONS + p->length_count + 1, sizeof *sizes);
  rondo_onnx_given_input *values = calloc(p->input_count + 1, sizeof *values);
  int result = sizes && values ? TOOL_OK : tool_fail_memory("the inputs");
  if (result == TOOL_OK) {
    const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT,
                                            .for_cuda = onnx_program_is_cuda(settings->device),
                                            .dimensions = sizes,
                                            .dimension_count = list_sizes(p, settings->length, sizes),
                                            .inputs = values,
                                            .input_count = list_values(p, rows, values)};
    const rondo_onnx_builder_options options = {
        RONDO_ONNX_BUILDER_OPTIONS_INIT, .rows = rows,           .build = &build,
        .length = settings->length,      .mask = settings->mask, .is_causal = settings->causal};
    tool_show_progress("building the program of %zu nodes", p->info.nodes);
    if (rondo_onnx_builder_create(p->model, &options, &model->builder)) result = onnx_program_fail(p, p->path);
  }
  free(values);
  free(sizes);
  return result;
}

/* Lifetime --------------------------------------------------------------------------------------------------------- */

int served_onnx_open(const char *path, const served_onnx_settings *settings, served_model *out) {
  const onnx_input_settings inputs = {.inputs = settings->inputs, .sizes = settings->sizes};
  served_onnx *model = calloc(1, sizeof *model);
  *out = (served_model){.name = path, .file = model};
  if (!model) return tool_fail_memory("the model");
  model->rows = settings->rows;
  model->length = settings->length;
  model->mask = settings->mask;
  int result = onnx_program_load(path, &model->program);
  if (result == TOOL_OK) result = onnx_program_take_inputs(&model->program, &inputs, NULL);
  if (result == TOOL_OK) result = create_builder(model, settings);
  rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT};
  if (result == TOOL_OK && rondo_onnx_builder_fill_model(model->builder, &options))
    result = tool_fail_status("%s", path);
  if (result != TOOL_OK) return result;
  out->build = options.build;
  out->build_sized = options.build_sized;
  out->exact_lengths = options.exact_lengths;
  out->user = options.user;
  out->weights = options.weights;
  out->hint = model->program.hint;
  return TOOL_OK;
}

int served_onnx_close(served_onnx *model) {
  if (!model) return TOOL_OK;
  rondo_onnx_builder_destroy(model->builder);
  const int result = onnx_program_destroy(&model->program);
  free(model);
  return result;
}

/* Inputs ----------------------------------------------------------------------------------------------------------- */

static onnx_input *find_input(const served_onnx *model, const char *name) {
  for (size_t i = 0; i < model->program.input_count; i++)
    if (strcmp(model->program.inputs[i].value.name, name) == 0) return &model->program.inputs[i];
  return NULL;
}

/* Copies a row to where the rows come first. They may be another dimension of the file's tensor. */
static void copy_row(const host_tensor *from, size_t dimension, size_t row, size_t row_bytes, unsigned char *out) {
  size_t outer = 1, rows = row_bytes > 0 ? from->bytes / row_bytes : 0;
  for (size_t d = 0; d < dimension && d < from->rank; d++) outer *= from->shape[d];
  const size_t inner = row_bytes / outer;
  for (size_t i = 0; i < outer; i++)
    memcpy(out + i * inner, (const unsigned char *)from->data + (i * rows + row % rows) * inner, inner);
}

/* The rows of the file, again and again. */
static int repeat_rows(const served_onnx *model, onnx_input *input, const rondo_model_value *value, size_t rows,
                       unsigned char *out) {
  if (host_tensor_convert(value->name, value->type, &input->tensor) != TOOL_OK) return TOOL_FAILURE;
  const size_t bytes = input->tensor.bytes, dimension = find_rows(&model->program, model->rows, input);
  if (bytes == 0 || bytes % value->row_bytes != 0)
    return tool_fail("input '%s': the file has %zu bytes of elements, and a row of a request %zu: give whole rows",
                     value->name, bytes, value->row_bytes);
  for (size_t i = 0; i < rows; i++)
    copy_row(&input->tensor, dimension, i, value->row_bytes, out + i * value->row_bytes);
  return TOOL_OK;
}

/* The positions of the file, again and again. The rows and the length must be its first dimensions. */
static int repeat_positions(const served_onnx *model, onnx_input *input, const rondo_model_value *value, size_t bytes,
                            unsigned char *out) {
  if (host_tensor_convert(value->name, value->type, &input->tensor) != TOOL_OK) return TOOL_FAILURE;
  const host_tensor *from = &input->tensor;
  if (find_rows(&model->program, model->rows, input) != 0 || input->value.rank < 2 || !is_dynamic(input, 1) ||
      strcmp(input->value.dimensions[1].name, model->length) != 0)
    return tool_fail("input '%s': the rows and the length are not its first dimensions: leave out its file",
                     value->name);
  if (from->bytes == 0 || from->bytes % value->position_bytes != 0)
    return tool_fail("input '%s': the file has %zu bytes of elements, and a position of a request %zu", value->name,
                     from->bytes, value->position_bytes);
  for (size_t at = 0; at < bytes; at += value->position_bytes)
    memcpy(out + at, (const unsigned char *)from->data + at % from->bytes, value->position_bytes);
  return TOOL_OK;
}

static int write_ones(host_tensor *inout) {
  static const float one = 1;
  static const int64_t integer = 1; /* its first bytes are those of a smaller one */
  const size_t bytes = inout->bytes / inout->count;
  const bool is_float = inout->type == RONDO_F32;
  const bool is_integer = inout->type == RONDO_I64 || inout->type == RONDO_I32 || inout->type == RONDO_I8 ||
                          inout->type == RONDO_U8 || inout->type == RONDO_BOOL;
  if (!is_float && !is_integer) return tool_fail("the mask is neither float nor integer: give a file for it (--input)");
  for (size_t i = 0; i < inout->count; i++)
    memcpy((unsigned char *)inout->data + i * bytes, is_float ? (const void *)&one : (const void *)&integer, bytes);
  return TOOL_OK;
}

/* Ones, or random elements. */
static int make_up(const rondo_model_value *value, size_t bytes, const char *source, bool is_mask, uint64_t seed,
                   void *out) {
  const size_t shape[] = {bytes / rondo_type_bytes(value->type)};
  host_tensor made;
  if (host_tensor_create(value->name, value->type, shape, 1, &made) != TOOL_OK) return TOOL_FAILURE;
  const int result = is_mask ? write_ones(&made) : TOOL_OK;
  if (!is_mask && strcmp(source, "zeros") != 0) host_tensor_draw(&made, seed);
  memcpy(out, made.data, made.bytes);
  host_tensor_destroy(&made);
  return result;
}

int served_onnx_fill_input(const served_model *model, const rondo_model_value *value, size_t rows, uint64_t seed,
                           void *out) {
  const served_onnx *file = model->file;
  onnx_input *input = find_input(file, value->name);
  const size_t bytes = served_model_bytes(value, rows, model->longest);
  if (input && input->is_file)
    return value->position_bytes > 0 ? repeat_positions(file, input, value, bytes, out)
                                     : repeat_rows(file, input, value, rows, out);
  const bool is_mask = file->mask && strcmp(file->mask, value->name) == 0;
  return make_up(value, bytes, input ? input->source : "random", is_mask, seed, out);
}

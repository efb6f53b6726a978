/* SPDX-License-Identifier: MIT
 * Programs of a model for numbers of rows, as sessions ask for them. Which dimensions are the rows is known once the
 * builder exists; each build has options of its own, so a builder is not changed after its creation.
 */
#include <string.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "onnx/import/build_result.h"
#include "onnx/run/kept_options.h"
#include "tensor/program/program.h"

struct rondo_onnx_builder {
  rondo_allocator allocator;
  rondo_scratch scratch; /* of the options */
  const rondo_onnx_model *model;
  rondo_onnx_build_options options;
  rondo_onnx_input_list listed;     /* the inputs of the model */
  const char *rows;                 /* NULL: first dimensions */
  size_t *input_rows, *output_rows; /* by index in `listed`, and in the model: the dimension that is the rows */
  rondo_onnx_build *first;          /* for one row: it has the weights, which are the states of all programs */
};

/* Rows ------------------------------------------------------------------------------------------------------------- */

static bool is_first_rows(const rondo_onnx_builder *builder, const rondo_onnx_value *input) {
  return input->has_shape && input->rank > 0 && input->dimensions[0].is_dynamic &&
         !rondo_onnx_has_given_value(&builder->options, input->name);
}

/* Whether the rows have this name: that of the options, or that of a dynamic first dimension. */
static bool names_rows(const rondo_onnx_builder *builder, const char *name) {
  if (builder->rows != NULL) return strcmp(name, builder->rows) == 0;
  for (size_t i = 0; i < builder->listed.count && name[0] != '\0'; i++) {
    const rondo_onnx_value *input = &builder->listed.items[i].value;
    if (is_first_rows(builder, input) && strcmp(input->dimensions[0].name, name) == 0) return true;
  }
  return false;
}

static bool is_rows(const rondo_onnx_builder *builder, const rondo_onnx_value *input, size_t index) {
  const rondo_onnx_dimension *dimension = &input->dimensions[index];
  if (!dimension->is_dynamic) return false;
  if (index == 0 && builder->rows == NULL) return is_first_rows(builder, input);
  return names_rows(builder, dimension->name);
}

static bool has_rows(const rondo_onnx_builder *builder) {
  for (size_t i = 0; i < builder->listed.count; i++) {
    const rondo_onnx_value *input = &builder->listed.items[i].value;
    for (size_t d = 0; input->has_shape && d < input->rank; d++)
      if (is_rows(builder, input, d)) return true;
  }
  return false;
}

static rondo_status require_rows(const rondo_onnx_builder *builder) {
  if (has_rows(builder)) return RONDO_OK;
  if (builder->rows != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME,
                      "no input of the model has a dynamic dimension '%s': name the one that is the number of rows",
                      builder->rows);
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "no input of the model has a dynamic first dimension, so it has one number of rows: export it with "
                    "a dynamic batch size");
}

/* Of an output, exporters do not always name the dimensions: then it is the first dynamic one. */
static size_t find_output_rows(const rondo_onnx_builder *builder, const rondo_onnx_value *output) {
  size_t found = output->rank;
  for (size_t d = output->has_shape ? output->rank : 0; d > 0; d--)
    if (output->dimensions[d - 1].is_dynamic && names_rows(builder, output->dimensions[d - 1].name)) found = d - 1;
  for (size_t d = 0; output->has_shape && d < output->rank && found == output->rank; d++)
    if (output->dimensions[d].is_dynamic) found = d;
  return found < output->rank ? found : 0;
}

static rondo_status find_rows(rondo_onnx_builder *builder) {
  const rondo_onnx_model *model = builder->model;
  const size_t inputs = builder->listed.count, outputs = model->info.outputs;
  RONDO_TRY(rondo_scratch_take(&builder->scratch, inputs, sizeof *builder->input_rows, &builder->input_rows));
  RONDO_TRY(rondo_scratch_take(&builder->scratch, outputs, sizeof *builder->output_rows, &builder->output_rows));
  for (size_t i = 0; i < inputs; i++) {
    const rondo_onnx_value *input = &builder->listed.items[i].value;
    for (size_t d = input->has_shape ? input->rank : 0; d > 0; d--)
      if (is_rows(builder, input, d - 1)) builder->input_rows[i] = d - 1;
  }
  for (size_t i = 0; i < outputs; i++) builder->output_rows[i] = find_output_rows(builder, &model->outputs[i]);
  return RONDO_OK;
}

/* Sizes ------------------------------------------------------------------------------------------------------------ */

/* A dimension without a name has no entry in the list of sizes: then the shape says it. Other dynamic dimensions
 * without names are for rondo_onnx_build_program to refuse. */
static rondo_status give_shape(rondo_scratch *scratch, const rondo_onnx_builder *builder, const rondo_onnx_value *input,
                               size_t rows, rondo_onnx_given_input *out) {
  size_t *shape;
  const bool is_given = out->shape != NULL;
  if (is_given && out->rank != input->rank) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(scratch, input->rank, sizeof *shape, &shape));
  for (size_t d = 0; d < input->rank; d++) {
    const rondo_onnx_dimension *dimension = &input->dimensions[d];
    if (!is_given && dimension->is_dynamic && !is_rows(builder, input, d)) return RONDO_OK;
    shape[d] = is_rows(builder, input, d) ? rows : is_given ? out->shape[d] : dimension->size;
  }
  out->shape = shape;
  out->rank = input->rank;
  return RONDO_OK;
}

static rondo_status give_rows(rondo_scratch *scratch, const rondo_onnx_builder *builder, size_t rows,
                              rondo_onnx_varied_options *varied) {
  for (size_t i = 0; i < builder->listed.count; i++) {
    const rondo_onnx_value *input = &builder->listed.items[i].value;
    rondo_onnx_given_input *given = rondo_onnx_varied_input(varied, input->name);
    const char *name = "";
    for (size_t d = 0; input->has_shape && d < input->rank; d++)
      if (is_rows(builder, input, d)) name = input->dimensions[d].name;
    varied->dimensions[i] = (rondo_onnx_dimension_size){.name = name, .size = rows};
    if (input->has_shape && input->rank > 0 && given->data == NULL)
      RONDO_TRY(give_shape(scratch, builder, input, rows, given));
  }
  return RONDO_OK;
}

static rondo_status build_rows(const rondo_onnx_builder *builder, size_t rows, rondo_program *program,
                               rondo_onnx_build **out) {
  rondo_scratch scratch = {.allocator = &builder->allocator};
  rondo_onnx_varied_options varied;
  rondo_status status =
      rondo_onnx_vary_options(&scratch, &builder->options, &builder->listed, builder->listed.count, &varied);
  const rondo_onnx_sharing sharing = {.states = rondo_onnx_build_weights(builder->first),
                                      .listed = &builder->listed,
                                      .input_rows = builder->input_rows,
                                      .output_rows = builder->output_rows};
  if (status == RONDO_OK) status = give_rows(&scratch, builder, rows, &varied);
  if (status == RONDO_OK) status = rondo_onnx_build_sharing(builder->model, &varied.options, &sharing, program, out);
  rondo_scratch_free(&scratch);
  return status;
}

/* Lifetime --------------------------------------------------------------------------------------------------------- */

static rondo_status build_first(rondo_onnx_builder *builder) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = &builder->allocator};
  rondo_program *program;
  RONDO_TRY(rondo_program_create(&options, &program));
  const rondo_status status = build_rows(builder, 1, program, &builder->first);
  rondo_program_destroy(program);
  return status;
}

static rondo_status fill_builder(rondo_onnx_builder *builder, const rondo_onnx_builder_options *options) {
  RONDO_TRY(rondo_scratch_text(&builder->scratch, options->rows, &builder->rows));
  RONDO_TRY(rondo_onnx_keep_options(&builder->scratch, options->build, &builder->options));
  RONDO_TRY(rondo_onnx_list_inputs(&builder->scratch, builder->model, &builder->options, &builder->listed));
  RONDO_TRY(require_rows(builder));
  RONDO_TRY(find_rows(builder));
  return build_first(builder);
}

rondo_status rondo_onnx_builder_create(const rondo_onnx_model *model, const rondo_onnx_builder_options *options,
                                       rondo_onnx_builder **out_builder) {
  static const char call[] = "rondo_onnx_builder_create";
  rondo_onnx_builder_options known;
  rondo_allocator allocator;
  rondo_onnx_builder *made;
  RONDO_TRY(rondo_require(call, "out_builder", out_builder));
  *out_builder = NULL;
  RONDO_TRY(rondo_require(call, "model", model));
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_onnx_builder_options", options, &known));
  RONDO_TRY(rondo_allocator_resolve(known.allocator, &allocator));
  RONDO_TRY(rondo_allocate_items(&allocator, 1, sizeof *made, &made));
  *made = (rondo_onnx_builder){.allocator = allocator, .model = model};
  made->scratch.allocator = &made->allocator;
  const rondo_status status = fill_builder(made, &known);
  if (status != RONDO_OK) {
    rondo_onnx_builder_destroy(made);
    return rondo_fail_context(status, "%s", call);
  }
  *out_builder = made;
  return RONDO_OK;
}

void rondo_onnx_builder_destroy(rondo_onnx_builder *builder) {
  if (builder == NULL) return;
  const rondo_allocator allocator = builder->allocator;
  rondo_onnx_build_destroy(builder->first);
  rondo_scratch_free(&builder->scratch);
  rondo_release(&allocator, builder, 1, sizeof *builder);
}

/* Building --------------------------------------------------------------------------------------------------------- */

rondo_status rondo_onnx_builder_build(void *builder, size_t rows, rondo_program *program) {
  static const char call[] = "rondo_onnx_builder_build";
  rondo_onnx_build *build = NULL;
  RONDO_TRY(rondo_require(call, "builder", builder));
  RONDO_TRY(rondo_require(call, "program", program));
  if (rows == 0) return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: no rows", call);
  const rondo_status status = build_rows(builder, rows, program, &build);
  rondo_onnx_build_destroy(build);
  return status;
}

const rondo_weights *rondo_onnx_builder_weights(const rondo_onnx_builder *builder) {
  return builder != NULL ? rondo_onnx_build_weights(builder->first) : NULL;
}

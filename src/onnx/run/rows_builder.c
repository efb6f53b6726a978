/* SPDX-License-Identifier: MIT
 * Programs of a model for numbers of rows and lengths, as sessions ask for them. Which dimensions these are is known
 * once the builder exists; each build has options of its own, so a builder is not changed after its creation. Of the
 * session, only the types of its public header are used.
 */
#include <rondo/session.h>

#include <string.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "onnx/import/build_result.h"
#include "onnx/run/kept_options.h"
#include "onnx/run/row_dimensions.h"
#include "tensor/files/weights_internal.h"
#include "tensor/program/program.h"

struct rondo_onnx_builder {
  rondo_allocator allocator;
  rondo_scratch scratch; /* of the options */
  const rondo_onnx_model *model;
  rondo_onnx_build_options options;
  rondo_onnx_input_list listed; /* the inputs of the model */
  rondo_onnx_row_names names;
  const char *mask; /* NULL: none */
  bool is_causal;
  rondo_onnx_row_dimensions *inputs;  /* by index in `listed` */
  rondo_onnx_row_dimensions *outputs; /* by index in the model; NULL while they are being found */
  rondo_onnx_build *first;            /* of one row: it has the weights, which are the states of all programs */
};

/* Sizes ------------------------------------------------------------------------------------------------------------ */

/* The size of a dimension of an input, if rows or length; else *out stays. */
static bool find_size(const rondo_onnx_builder *builder, const rondo_onnx_value *input, size_t index,
                      const rondo_model_size *size, size_t *out) {
  if (rondo_onnx_is_rows(&builder->names, input, index))
    *out = size->rows;
  else if (rondo_onnx_is_length(&builder->names, input, index))
    *out = size->length;
  else
    return false;
  return true;
}

/* A dimension without a name has no entry in the list of sizes: then the shape says it. Other dynamic dimensions
 * without names are for rondo_onnx_build_program to refuse. */
static rondo_status give_shape(rondo_scratch *scratch, const rondo_onnx_builder *builder, const rondo_onnx_value *input,
                               const rondo_model_size *size, rondo_onnx_given_input *out) {
  size_t *shape;
  const bool is_given = out->shape != NULL;
  if (is_given && out->rank != input->rank) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(scratch, input->rank, sizeof *shape, &shape));
  for (size_t d = 0; d < input->rank; d++) {
    const rondo_onnx_dimension *dimension = &input->dimensions[d];
    if (find_size(builder, input, d, size, &shape[d])) continue;
    if (!is_given && dimension->is_dynamic) return RONDO_OK;
    shape[d] = is_given ? out->shape[d] : dimension->size;
  }
  out->shape = shape;
  out->rank = input->rank;
  return RONDO_OK;
}

/* The last entry is that of the length. */
static rondo_status give_sizes(rondo_scratch *scratch, const rondo_onnx_builder *builder, const rondo_model_size *size,
                               rondo_onnx_varied_options *varied) {
  const char *length = builder->names.length;
  for (size_t i = 0; i < builder->listed.count; i++) {
    const rondo_onnx_value *input = &builder->listed.items[i].value;
    rondo_onnx_given_input *given = rondo_onnx_varied_input(varied, input->name);
    const char *name = "";
    for (size_t d = 0; input->has_shape && d < input->rank; d++)
      if (rondo_onnx_is_rows(&builder->names, input, d)) name = input->dimensions[d].name;
    varied->dimensions[i] = (rondo_onnx_dimension_size){.name = name, .size = size->rows};
    if (input->has_shape && input->rank > 0 && given->data == NULL)
      RONDO_TRY(give_shape(scratch, builder, input, size, given));
  }
  varied->dimensions[builder->listed.count] =
      (rondo_onnx_dimension_size){.name = length == NULL ? "" : length, .size = size->length};
  return RONDO_OK;
}

static rondo_status build_size(const rondo_onnx_builder *builder, const rondo_model_size *size, rondo_program *program,
                               rondo_onnx_build **out) {
  rondo_scratch scratch = {.allocator = &builder->allocator};
  rondo_onnx_varied_options varied;
  rondo_status status =
      rondo_onnx_vary_options(&scratch, &builder->options, &builder->listed, builder->listed.count + 1, &varied);
  const rondo_onnx_sharing sharing = {.states = rondo_onnx_build_weights(builder->first),
                                      .listed = &builder->listed,
                                      .inputs = builder->inputs,
                                      .outputs = builder->outputs};
  if (status == RONDO_OK) status = give_sizes(&scratch, builder, size, &varied);
  if (status == RONDO_OK) status = rondo_onnx_build_sharing(builder->model, &varied.options, &sharing, program, out);
  rondo_scratch_free(&scratch);
  return status;
}

/* Outputs ---------------------------------------------------------------------------------------------------------- */

enum { USUAL_LENGTH = 8 };

static rondo_status build_alone(const rondo_onnx_builder *builder, size_t rows, size_t length, rondo_onnx_build **out) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = &builder->allocator};
  const rondo_model_size size = {.rows = rows, .length = length};
  rondo_program *program;
  RONDO_TRY(rondo_program_create(&options, &program));
  const rondo_status status = build_size(builder, &size, program, out);
  rondo_program_destroy(program);
  const char *what = rows == 1 ? "row" : "rows";
  if (length == 0) return rondo_fail_context(status, "%zu %s", rows, what);
  return rondo_fail_context(status, "%zu %s of length %zu", rows, what, length);
}

/* The length of the first program: that of the options, which is an example. */
static size_t first_length(const rondo_onnx_builder *builder) {
  for (size_t i = 0; builder->names.length != NULL && i < builder->options.dimension_count; i++)
    if (strcmp(builder->options.dimensions[i].name, builder->names.length) == 0)
      return builder->options.dimensions[i].size;
  return builder->names.length == NULL ? 0 : USUAL_LENGTH;
}

/* Programs of one row and of two, and of another length. Constants that depend on the length are no states: a program
 * of the first length would have them, and others would not. */
static rondo_status find_outputs(rondo_onnx_builder *builder) {
  const size_t length = first_length(builder), other = length > 1 ? length - 1 : 2;
  rondo_onnx_build *more = NULL, *longer = NULL;
  rondo_onnx_row_dimensions *outputs;
  RONDO_TRY(rondo_scratch_take(&builder->scratch, builder->model->info.outputs, sizeof *outputs, &outputs));
  RONDO_TRY(build_alone(builder, 1, length, &builder->first));
  rondo_status status = build_alone(builder, 2, length, &more);
  if (status == RONDO_OK && length > 0) status = build_alone(builder, 1, other, &longer);
  const rondo_onnx_sized_build builds[] = {{builder->first, 1, length}, {more, 2, length}, {longer, 1, other}};
  if (status == RONDO_OK)
    status = rondo_onnx_find_output_dimensions(&builds[0], &builds[1], length > 0 ? &builds[2] : NULL,
                                               builder->is_causal, outputs);
  if (status == RONDO_OK && longer != NULL) rondo_weights_keep_common(builder->first->weights, longer->weights);
  rondo_onnx_build_destroy(more);
  rondo_onnx_build_destroy(longer);
  builder->outputs = outputs;
  return status;
}

/* Lifetime --------------------------------------------------------------------------------------------------------- */

static rondo_status check_mask(const rondo_onnx_builder *builder) {
  size_t at = 0;
  if (builder->mask == NULL) return RONDO_OK;
  while (at < builder->listed.count && strcmp(builder->listed.items[at].value.name, builder->mask) != 0) at++;
  if (at == builder->listed.count)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME,
                      "the model has no input '%s': name the one that says which positions are valid (mask)",
                      builder->mask);
  const rondo_onnx_row_dimensions *found = &builder->inputs[at];
  if (found->rows != RONDO_ONNX_NO_DIMENSION && found->length != RONDO_ONNX_NO_DIMENSION &&
      builder->listed.items[at].value.rank == 2)
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "the mask '%s' does not have the rows and the length as its two dimensions", builder->mask);
}

static rondo_status check_length(const rondo_onnx_builder *builder) {
  if (builder->names.length != NULL && first_length(builder) == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "the length '%s' has the size 0 as an example, and requests have at least 1: give at least 1 "
                      "(rondo_onnx_build_options.dimensions)",
                      builder->names.length);
  if (builder->names.length == NULL && (builder->mask != NULL || builder->is_causal))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "mask and is_causal are about the padding of a length, and the inputs have no dynamic dimension "
                      "besides the rows whose size is not given: name the length");
  return check_mask(builder);
}

static rondo_status find_names(rondo_onnx_builder *builder, const rondo_onnx_builder_options *options) {
  rondo_onnx_row_names *names = &builder->names;
  *names = (rondo_onnx_row_names){.listed = &builder->listed, .options = &builder->options};
  RONDO_TRY(rondo_scratch_text(&builder->scratch, options->rows, &names->rows));
  RONDO_TRY(rondo_scratch_text(&builder->scratch, options->length, &names->length));
  RONDO_TRY(rondo_scratch_text(&builder->scratch, options->mask, &builder->mask));
  builder->is_causal = options->is_causal;
  RONDO_TRY(rondo_onnx_choose_length(names));
  return rondo_onnx_check_row_names(names);
}

static rondo_status fill_builder(rondo_onnx_builder *builder, const rondo_onnx_builder_options *options) {
  RONDO_TRY(rondo_onnx_keep_options(&builder->scratch, options->build, &builder->options));
  RONDO_TRY(rondo_onnx_list_inputs(&builder->scratch, builder->model, &builder->options, &builder->listed));
  RONDO_TRY(find_names(builder, options));
  RONDO_TRY(rondo_scratch_take(&builder->scratch, builder->listed.count, sizeof *builder->inputs, &builder->inputs));
  rondo_onnx_find_input_dimensions(&builder->names, builder->inputs);
  RONDO_TRY(check_length(builder));
  return find_outputs(builder);
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

static rondo_status build_for_session(const rondo_onnx_builder *builder, const rondo_model_size *size,
                                      rondo_program *program) {
  rondo_onnx_build *build = NULL;
  const rondo_status status = build_size(builder, size, program, &build);
  rondo_onnx_build_destroy(build);
  return status;
}

rondo_status rondo_onnx_builder_build(void *builder, size_t rows, rondo_program *program) {
  static const char call[] = "rondo_onnx_builder_build";
  const rondo_onnx_builder *known = builder;
  RONDO_TRY(rondo_require(call, "builder", builder));
  RONDO_TRY(rondo_require(call, "program", program));
  if (rows == 0) return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: no rows", call);
  if (known->names.length != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: the length '%s' of the model varies: use rondo_onnx_builder_build_sized, or give its size "
                      "(rondo_onnx_build_options.dimensions)",
                      call, known->names.length);
  return build_for_session(builder, &(rondo_model_size){.rows = rows}, program);
}

rondo_status rondo_onnx_builder_build_sized(void *builder, const rondo_model_size *size, rondo_program *program) {
  static const char call[] = "rondo_onnx_builder_build_sized";
  const rondo_onnx_builder *known = builder;
  RONDO_TRY(rondo_require(call, "builder", builder));
  RONDO_TRY(rondo_require(call, "size", size));
  RONDO_TRY(rondo_require(call, "program", program));
  if (size->rows == 0 || size->length == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: no rows, or no length", call);
  if (known->names.length == NULL || size->slots > 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS, "%s: the model has no %s", call,
                      size->slots > 0 ? "caches of sequences: leave out rondo_model_options.slots"
                                      : "length: use rondo_onnx_builder_build, or name the length");
  return build_for_session(builder, size, program);
}

/* For sessions ----------------------------------------------------------------------------------------------------- */

const rondo_weights *rondo_onnx_builder_weights(const rondo_onnx_builder *builder) {
  return builder != NULL ? rondo_onnx_build_weights(builder->first) : NULL;
}

const char *rondo_onnx_builder_length(const rondo_onnx_builder *builder) {
  return builder != NULL ? builder->names.length : NULL;
}

rondo_status rondo_onnx_builder_fill_model(rondo_onnx_builder *builder, rondo_model_options *inout_options) {
  static const char call[] = "rondo_onnx_builder_fill_model";
  RONDO_TRY(rondo_require(call, "builder", builder));
  RONDO_TRY(rondo_require(call, "inout_options", inout_options));
  RONDO_TRY(rondo_versioned_check("rondo_model_options", inout_options, sizeof *inout_options));
  const bool has_length = builder->names.length != NULL;
  inout_options->build = has_length ? NULL : rondo_onnx_builder_build;
  inout_options->build_sized = has_length ? rondo_onnx_builder_build_sized : NULL;
  inout_options->user = builder;
  inout_options->weights = rondo_onnx_builder_weights(builder);
  inout_options->exact_lengths = has_length && builder->mask == NULL && !builder->is_causal;
  return RONDO_OK;
}

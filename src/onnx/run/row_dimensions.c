/* SPDX-License-Identifier: MIT
 * Rows and lengths among the dimensions of inputs and outputs.
 */
#include "onnx/run/row_dimensions.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "onnx/import/build_result.h"
#include "onnx/import/model_interface.h"
#include "onnx/run/kept_options.h"

/* Inputs ----------------------------------------------------------------------------------------------------------- */

static bool is_same(const char *a, const char *b) { return a != NULL && b != NULL && strcmp(a, b) == 0; }

static bool is_first_rows(const rondo_onnx_row_names *names, const rondo_onnx_value *input) {
  return input->has_shape && input->rank > 0 && input->dimensions[0].is_dynamic &&
         !rondo_onnx_has_given_value(names->options, input->name) && !is_same(input->dimensions[0].name, names->length);
}

/* Whether the rows have this name: that of the options, or that of a dynamic first dimension. */
static bool names_rows(const rondo_onnx_row_names *names, const char *name) {
  if (names->rows != NULL) return strcmp(name, names->rows) == 0;
  for (size_t i = 0; i < names->listed->count && name[0] != '\0'; i++) {
    const rondo_onnx_value *input = &names->listed->items[i].value;
    if (is_first_rows(names, input) && strcmp(input->dimensions[0].name, name) == 0) return true;
  }
  return false;
}

bool rondo_onnx_is_rows(const rondo_onnx_row_names *names, const rondo_onnx_value *input, size_t index) {
  const rondo_onnx_dimension *dimension = &input->dimensions[index];
  if (!dimension->is_dynamic) return false;
  if (index == 0 && names->rows == NULL) return is_first_rows(names, input);
  return names_rows(names, dimension->name);
}

bool rondo_onnx_is_length(const rondo_onnx_row_names *names, const rondo_onnx_value *input, size_t index) {
  const rondo_onnx_dimension *dimension = &input->dimensions[index];
  return dimension->is_dynamic && is_same(dimension->name, names->length) && dimension->name[0] != '\0';
}

typedef bool (*is_dimension)(const rondo_onnx_row_names *names, const rondo_onnx_value *input, size_t index);

/* The first such dimension of an input. */
static size_t find_dimension(const rondo_onnx_row_names *names, const rondo_onnx_value *input, is_dimension is_it) {
  for (size_t d = 0; input->has_shape && d < input->rank; d++)
    if (is_it(names, input, d)) return d;
  return RONDO_ONNX_NO_DIMENSION;
}

static bool has_dimension(const rondo_onnx_row_names *names, is_dimension is_it) {
  for (size_t i = 0; i < names->listed->count; i++)
    if (find_dimension(names, &names->listed->items[i].value, is_it) != RONDO_ONNX_NO_DIMENSION) return true;
  return false;
}

void rondo_onnx_find_input_dimensions(const rondo_onnx_row_names *names, rondo_onnx_row_dimensions *out) {
  for (size_t i = 0; i < names->listed->count; i++) {
    const rondo_onnx_value *input = &names->listed->items[i].value;
    out[i] = (rondo_onnx_row_dimensions){find_dimension(names, input, rondo_onnx_is_rows),
                                         find_dimension(names, input, rondo_onnx_is_length)};
  }
}

/* Names ------------------------------------------------------------------------------------------------------------ */

static const rondo_onnx_given_input *find_given(const rondo_onnx_row_names *names, const char *name) {
  for (size_t i = 0; i < names->options->input_count; i++)
    if (strcmp(names->options->inputs[i].name, name) == 0) return &names->options->inputs[i];
  return NULL;
}

/* The options give the shape or the value of the input. */
static bool is_given(const rondo_onnx_row_names *names, const rondo_onnx_value *input) {
  const rondo_onnx_given_input *given = find_given(names, input->name);
  return given != NULL && (given->shape != NULL || given->data != NULL);
}

/* Sizes of a name are given by themselves, or by the shape of an input. */
static bool has_size(const rondo_onnx_row_names *names, const char *name) {
  for (size_t i = 0; i < names->options->dimension_count; i++)
    if (strcmp(names->options->dimensions[i].name, name) == 0) return true;
  for (size_t i = 0; i < names->listed->count; i++) {
    const rondo_onnx_value *input = &names->listed->items[i].value;
    for (size_t d = 0; input->has_shape && d < input->rank && is_given(names, input); d++)
      if (strcmp(input->dimensions[d].name, name) == 0) return true;
  }
  return false;
}

/* Without a name, a dimension is for rondo_onnx_build_program to refuse. */
static bool is_open(const rondo_onnx_row_names *names, const rondo_onnx_value *input, size_t index) {
  const rondo_onnx_dimension *dimension = &input->dimensions[index];
  return dimension->is_dynamic && dimension->name[0] != '\0' && !is_given(names, input) &&
         !rondo_onnx_is_rows(names, input, index) && !has_size(names, dimension->name);
}

rondo_status rondo_onnx_choose_length(rondo_onnx_row_names *names) {
  const char *found = NULL;
  if (names->length != NULL) return RONDO_OK;
  for (size_t i = 0; i < names->listed->count; i++) {
    const rondo_onnx_value *input = &names->listed->items[i].value;
    for (size_t d = 0; input->has_shape && d < input->rank; d++) {
      if (!is_open(names, input, d) || is_same(found, input->dimensions[d].name)) continue;
      if (found != NULL)
        return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                          "the inputs have the dynamic dimensions '%s' and '%s' besides the rows: give the name of one "
                          "as the length, and the sizes of others (rondo_onnx_build_options.dimensions)",
                          found, input->dimensions[d].name);
      found = input->dimensions[d].name;
    }
  }
  names->length = found;
  return RONDO_OK;
}

rondo_status rondo_onnx_check_row_names(const rondo_onnx_row_names *names) {
  if (is_same(names->rows, names->length))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "the dimension '%s' is given as the number of rows and as the length: give two names",
                      names->rows);
  if (names->length != NULL && !has_dimension(names, rondo_onnx_is_length))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME,
                      "no input of the model has a dynamic dimension '%s': name the one that is the length",
                      names->length);
  if (has_dimension(names, rondo_onnx_is_rows)) return RONDO_OK;
  if (names->rows != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME,
                      "no input of the model has a dynamic dimension '%s': name the one that is the number of rows",
                      names->rows);
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "no input of the model has a dynamic first dimension, so it has one number of rows: export it with "
                    "a dynamic batch size");
}

/* Outputs ---------------------------------------------------------------------------------------------------------- */

/* An output in two builds. */
typedef struct compared_output {
  rondo_onnx_built_value few, other;
  const rondo_onnx_sized_build *few_size, *other_size;
} compared_output;

enum { TEXT = 200 };

static const char *shape_text(char out[TEXT], const rondo_onnx_built_value *value) {
  size_t used = (size_t)snprintf(out, TEXT, "[");
  for (size_t d = 0; d < value->rank && used < TEXT - 30; d++)
    used += (size_t)snprintf(out + used, TEXT - used, "%s%zu", d > 0 ? ", " : "", value->shape[d]);
  (void)snprintf(out + used, TEXT - used, "]");
  return out;
}

static const char *size_text(char out[TEXT], const rondo_onnx_sized_build *size) {
  const int used = snprintf(out, TEXT, "%zu %s", size->rows, size->rows == 1 ? "row" : "rows");
  if (size->length > 0) (void)snprintf(out + used, TEXT - (size_t)used, " of length %zu", size->length);
  return out;
}

static rondo_status fail_output(const compared_output *c, const char *rule) {
  char few[TEXT], few_size[TEXT], other[TEXT], other_size[TEXT];
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "the output '%s' is %s for %s and %s for %s: %s",
                    c->few.name, shape_text(few, &c->few), size_text(few_size, c->few_size),
                    shape_text(other, &c->other), size_text(other_size, c->other_size), rule);
}

/* The only dimension whose size differs, if there is one. */
static rondo_status find_changed(const compared_output *c, const char *rule, size_t *out) {
  size_t count = 0;
  *out = RONDO_ONNX_NO_DIMENSION;
  if (c->few.rank != c->other.rank) return fail_output(c, "it has other dimensions");
  for (size_t d = 0; d < c->few.rank; d++) {
    if (c->few.shape[d] == c->other.shape[d]) continue;
    count++;
    *out = d;
  }
  return count <= 1 ? RONDO_OK : fail_output(c, rule);
}

/* A sequence has one entry for all of its elements, which must agree. */
static rondo_status set_dimension(const compared_output *c, size_t found, size_t *inout) {
  if (c->few.element_index > 0 && *inout != found)
    return fail_output(c, "the elements of a sequence must have the rows and the length in the same places");
  *inout = found;
  return RONDO_OK;
}

static rondo_status find_rows(const compared_output *c, rondo_onnx_row_dimensions *out) {
  size_t at;
  if (c->few.count_name != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "the size of the output '%s' depends on data, and each output of a model in a session has the "
                      "number of rows: leave it out of the model",
                      c->few.name);
  RONDO_TRY(find_changed(c, "one dimension must be the number of rows, and no other may depend on it", &at));
  if (at == RONDO_ONNX_NO_DIMENSION)
    return fail_output(c, "it does not have the number of rows, as each output of a model in a session does");
  if (c->few.shape[at] % c->few_size->rows != 0 || c->other.shape[at] % c->other_size->rows != 0 ||
      c->few.shape[at] / c->few_size->rows != c->other.shape[at] / c->other_size->rows)
    return fail_output(c, "the dimension that depends on the rows must be their number times a constant");
  return set_dimension(c, at, &out->rows);
}

static rondo_status find_length(const compared_output *c, bool needs_length, rondo_onnx_row_dimensions *out) {
  static const char rule[] =
      "one dimension must be the length, and no other may depend on it: fix the size of the dynamic dimension that is "
      "the length (rondo_onnx_build_options.dimensions)";
  size_t at;
  RONDO_TRY(find_changed(c, rule, &at));
  if (at == RONDO_ONNX_NO_DIMENSION && needs_length)
    return fail_output(c,
                       "without the length, it may depend on the last position, which is padding in a causal model "
                       "(rondo_onnx_builder_options.is_causal)");
  if (at != RONDO_ONNX_NO_DIMENSION &&
      (at == out->rows || c->few.shape[at] != c->few_size->length || c->other.shape[at] != c->other_size->length))
    return fail_output(c, rule);
  return set_dimension(c, at, &out->length);
}

/* Output `index` of the builds. */
static rondo_status compare(const rondo_onnx_sized_build *few, const rondo_onnx_sized_build *other, size_t index,
                            compared_output *out, bool *out_is_constant) {
  char a[TEXT], b[TEXT];
  out->few_size = few;
  out->other_size = other;
  if (few->build->outputs.count != other->build->outputs.count)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "the model has %zu outputs for %s and %zu for %s: sequences must have the same elements for each "
                      "size",
                      few->build->outputs.count, size_text(a, few), other->build->outputs.count, size_text(b, other));
  out->few = few->build->outputs.items[index];
  out->other = other->build->outputs.items[index];
  *out_is_constant = out->few.program_name == NULL;
  if (*out_is_constant == (out->other.program_name == NULL)) return RONDO_OK;
  return fail_output(out, "it is the same in each run of one of them only");
}

static rondo_status find_dimensions(const rondo_onnx_sized_build *few, const rondo_onnx_sized_build *more,
                                    const rondo_onnx_sized_build *longer, bool needs_length, size_t index,
                                    rondo_onnx_row_dimensions *out) {
  compared_output c;
  bool is_constant;
  RONDO_TRY(compare(few, more, index, &c, &is_constant));
  if (is_constant) return RONDO_OK;
  RONDO_TRY(find_rows(&c, out));
  if (longer != NULL) {
    RONDO_TRY(compare(few, longer, index, &c, &is_constant));
    RONDO_TRY(find_length(&c, needs_length, out));
  }
  return rondo_fail_context(rondo_onnx_check_moves(out, c.few.rank), "output '%s'", c.few.name);
}

rondo_status rondo_onnx_find_output_dimensions(const rondo_onnx_sized_build *few, const rondo_onnx_sized_build *more,
                                               const rondo_onnx_sized_build *longer, bool needs_length,
                                               rondo_onnx_row_dimensions *out) {
  for (size_t i = 0; i < few->build->outputs.count; i++) {
    const rondo_onnx_built_value *output = &few->build->outputs.items[i];
    rondo_onnx_row_dimensions *found = &out[output->value_index];
    if (output->element_index == 0)
      *found = (rondo_onnx_row_dimensions){RONDO_ONNX_NO_DIMENSION, RONDO_ONNX_NO_DIMENSION};
    RONDO_TRY(find_dimensions(few, more, longer, needs_length, i, found));
  }
  return RONDO_OK;
}

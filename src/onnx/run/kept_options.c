/* SPDX-License-Identifier: MIT
 * Copies of options. Only pointers are checked here: the rest is for rondo_onnx_build_program to check.
 */
#include "onnx/run/kept_options.h"

#include <string.h>

#include "base/error.h"
#include "base/versioned_struct.h"

/* Keeping ---------------------------------------------------------------------------------------------------------- */

/* Not NULL, even of no bytes: a shape without dimensions and a value without elements are given, too. */
static rondo_status copy_bytes(rondo_scratch *scratch, const void *from, size_t bytes, void *out) {
  unsigned char *copy;
  RONDO_TRY(rondo_scratch_take(scratch, bytes > 0 ? bytes : 1, 1, &copy));
  if (bytes > 0) memcpy(copy, from, bytes);
  memcpy(out, &copy, sizeof copy);
  return RONDO_OK;
}

static rondo_status keep_dimensions(rondo_scratch *scratch, rondo_onnx_build_options *inout) {
  const rondo_onnx_dimension_size *given = inout->dimensions;
  rondo_onnx_dimension_size *kept;
  if (inout->dimension_count > 0) RONDO_TRY(rondo_require("rondo_onnx_build_options", "dimensions", given));
  RONDO_TRY(rondo_scratch_take(scratch, inout->dimension_count, sizeof *kept, &kept));
  for (size_t i = 0; i < inout->dimension_count; i++) {
    kept[i].size = given[i].size;
    RONDO_TRY(rondo_require("rondo_onnx_build_options", "the name of a dimension", given[i].name));
    RONDO_TRY(rondo_scratch_text(scratch, given[i].name, &kept[i].name));
  }
  inout->dimensions = kept;
  return RONDO_OK;
}

static rondo_status keep_input(rondo_scratch *scratch, const rondo_onnx_given_input *given,
                               rondo_onnx_given_input *out) {
  *out = *given;
  RONDO_TRY(rondo_require("rondo_onnx_build_options", "the name of a given input", given->name));
  RONDO_TRY(rondo_scratch_text(scratch, given->name, &out->name));
  if (given->shape != NULL && given->rank <= RONDO_ONNX_MOST_DIMENSIONS)
    RONDO_TRY(copy_bytes(scratch, given->shape, given->rank * sizeof *given->shape, &out->shape));
  return given->data == NULL ? RONDO_OK : copy_bytes(scratch, given->data, given->bytes, &out->data);
}

static rondo_status keep_inputs(rondo_scratch *scratch, rondo_onnx_build_options *inout) {
  const rondo_onnx_given_input *given = inout->inputs;
  rondo_onnx_given_input *kept;
  if (inout->input_count > 0) RONDO_TRY(rondo_require("rondo_onnx_build_options", "inputs", given));
  RONDO_TRY(rondo_scratch_take(scratch, inout->input_count, sizeof *kept, &kept));
  for (size_t i = 0; i < inout->input_count; i++) RONDO_TRY(keep_input(scratch, &given[i], &kept[i]));
  inout->inputs = kept;
  return RONDO_OK;
}

rondo_status rondo_onnx_keep_options(rondo_scratch *scratch, const rondo_onnx_build_options *given,
                                     rondo_onnx_build_options *out) {
  RONDO_TRY(rondo_versioned_read("rondo_onnx_build_options", given, out, sizeof *out));
  out->allocator = scratch->allocator;
  RONDO_TRY(keep_dimensions(scratch, out));
  return keep_inputs(scratch, out);
}

bool rondo_onnx_has_given_value(const rondo_onnx_build_options *kept, const char *name) {
  for (size_t i = 0; i < kept->input_count; i++)
    if (strcmp(kept->inputs[i].name, name) == 0 && kept->inputs[i].data != NULL) return true;
  return false;
}

/* Varying ---------------------------------------------------------------------------------------------------------- */

static bool has_input(const rondo_onnx_build_options *kept, const char *name) {
  for (size_t i = 0; i < kept->input_count; i++)
    if (strcmp(kept->inputs[i].name, name) == 0) return true;
  return false;
}

rondo_status rondo_onnx_vary_options(rondo_scratch *scratch, const rondo_onnx_build_options *kept,
                                     const rondo_onnx_input_list *listed, size_t more, rondo_onnx_varied_options *out) {
  const size_t inputs = kept->input_count + listed->count, dimensions = more + kept->dimension_count;
  out->options = *kept;
  RONDO_TRY(rondo_scratch_take(scratch, dimensions, sizeof *out->dimensions, &out->dimensions));
  RONDO_TRY(rondo_scratch_take(scratch, inputs, sizeof *out->inputs, &out->inputs));
  for (size_t i = 0; i < kept->dimension_count; i++) out->dimensions[more + i] = kept->dimensions[i];
  for (size_t i = 0; i < kept->input_count; i++) out->inputs[i] = kept->inputs[i];
  size_t count = kept->input_count;
  for (size_t i = 0; i < listed->count; i++)
    if (!has_input(kept, listed->items[i].value.name)) out->inputs[count++].name = listed->items[i].value.name;
  out->options.dimensions = out->dimensions;
  out->options.dimension_count = dimensions;
  out->options.inputs = out->inputs;
  out->options.input_count = count;
  return RONDO_OK;
}

rondo_onnx_given_input *rondo_onnx_varied_input(const rondo_onnx_varied_options *varied, const char *name) {
  size_t at = 0;
  while (strcmp(varied->inputs[at].name, name) != 0) at++;
  return &varied->inputs[at];
}

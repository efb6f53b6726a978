/* SPDX-License-Identifier: MIT
 * Makes programs of models (ON-10): bytes that are an accepted model are imported, with dynamic dimensions of size 2,
 * two elements of each sequence and small limits, with and without the values of integer inputs, which are zeros, and
 * what is imported is built again by a builder, for one row and for three. Each either succeeds, or gives a typed error
 * and leaves the program as it was. The corpus has valid models, so that most mutations are of one field.
 */
#include <rondo/onnx.h>
#include <rondo/session.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/fuzz_target.h"

enum { MOST_INPUTS = 16, NAME_BYTES = 128, MOST_ELEMENTS = 1 << 16, MOST_FOLDED = 1 << 20, MOST_NODES = 1 << 12 };

static volatile uint8_t sink; /* every byte is read */

/* The shape of an input, with 2 for each dynamic dimension. Returns false if it is too large to be worth the time. */
static bool choose_shape(const rondo_onnx_value *value, size_t out[RONDO_MAX_DIMENSIONS]) {
  size_t count = 1;
  if (!value->has_shape || value->rank > RONDO_MAX_DIMENSIONS) return false;
  for (size_t i = 0; i < value->rank; i++) {
    out[i] = value->dimensions[i].is_dynamic ? 2 : value->dimensions[i].size;
    if (out[i] > MOST_ELEMENTS / (count > 0 ? count : 1)) return false;
    count *= out[i];
  }
  return true;
}

static size_t count_elements(const size_t *shape, size_t rank) {
  size_t count = 1;
  for (size_t i = 0; i < rank; i++) count *= shape[i];
  return count;
}

/* The inputs of a program: tensors, and the elements of sequences and optionals, with a shape each. */
typedef struct chosen_inputs {
  rondo_onnx_given_input given[MOST_INPUTS];
  size_t shapes[MOST_INPUTS][RONDO_MAX_DIMENSIONS];
  char names[MOST_INPUTS][NAME_BYTES];
  size_t count;
  bool has_integers;
} chosen_inputs;

/* Adds an input, or returns false if it is too large, or one too many. */
static bool choose_input(chosen_inputs *of, const rondo_onnx_value *value, const char *name, bool gives_integers) {
  static const int64_t zeros[MOST_ELEMENTS];
  const bool is_integer = value->has_type && (value->type == RONDO_I64 || value->type == RONDO_I32);
  if (of->count == MOST_INPUTS || !choose_shape(value, of->shapes[of->count])) return false;
  rondo_onnx_given_input *given = &of->given[of->count];
  *given = (rondo_onnx_given_input){.name = name, .shape = of->shapes[of->count], .rank = value->rank};
  of->has_integers |= is_integer;
  if (is_integer && gives_integers) {
    given->data = zeros;
    given->bytes = count_elements(of->shapes[of->count], value->rank) * rondo_type_bytes(value->type);
  }
  of->count++;
  return true;
}

/* Two elements of a sequence. */
static bool choose_elements(chosen_inputs *of, const rondo_onnx_value *value, bool gives_integers) {
  for (size_t i = 0; i < 2; i++) {
    char *name = of->names[of->count < MOST_INPUTS ? of->count : 0];
    if (snprintf(name, NAME_BYTES, "%s[%zu]", value->name, i) >= NAME_BYTES) return false;
    if (!choose_input(of, value, name, gives_integers)) return false;
  }
  return true;
}

static bool choose_value(chosen_inputs *of, const rondo_onnx_value *value, bool gives_integers) {
  const rondo_onnx_value *outer = value;
  while (value->element != NULL) {
    outer = value;
    value = value->element;
  }
  return strcmp(outer->type_name, "sequence") == 0 ? choose_elements(of, value, gives_integers)
                                                   : choose_input(of, value, value->name, gives_integers);
}

static void read_text(const char *text) {
  REQUIRE(text != NULL);
  for (; *text != '\0'; text++) sink = (uint8_t)*text;
}

static void read_values(const rondo_onnx_build *build) {
  rondo_onnx_built_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_onnx_build_get_input(build, i, &value) == RONDO_OK; i++) read_text(value.name);
  for (size_t i = 0; rondo_onnx_build_get_output(build, i, &value) == RONDO_OK; i++) {
    read_text(value.name);
    for (size_t k = 0; value.data != NULL && k < value.bytes; k++) sink = ((const uint8_t *)value.data)[k];
  }
}

static void read_unsupported(const rondo_onnx_build *build) {
  rondo_onnx_unsupported item = {.struct_size = sizeof item};
  size_t count = 0;
  for (; rondo_onnx_build_get_unsupported(build, count, &item) == RONDO_OK; count++) {
    read_text(item.node);
    read_text(item.reason);
    REQUIRE(item.reason[0] != '\0');
  }
  REQUIRE(count > 0);
}

static void read_weights(const rondo_onnx_build *build) {
  rondo_weight weight;
  for (size_t i = 0; rondo_weights_at(rondo_onnx_build_weights(build), i, &weight) == RONDO_OK; i++)
    for (size_t k = 0; k < weight.bytes; k++) sink = ((const uint8_t *)weight.data)[k];
}

/* A model that could be imported may have no rows, or other constants for other rows. */
static void build_rows(const rondo_onnx_model *model, const rondo_onnx_build_options *build) {
  const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .build = build};
  rondo_onnx_builder *builder = NULL;
  rondo_program *program = NULL;
  const rondo_status created = rondo_onnx_builder_create(model, &options, &builder);
  REQUIRE((builder != NULL) == (created == RONDO_OK));
  REQUIRE(created == RONDO_OK || rondo_last_error()->message[0] != '\0');
  if (created != RONDO_OK) return;
  REQUIRE(rondo_program_create(NULL, &program) == RONDO_OK);
  const rondo_model_size size = {.rows = 3, .length = 2};
  const rondo_status status = rondo_onnx_builder_length(builder) == NULL
                                  ? rondo_onnx_builder_build(builder, 3, program)
                                  : rondo_onnx_builder_build_sized(builder, &size, program);
  REQUIRE(status == RONDO_OK || rondo_last_error()->message[0] != '\0');
  rondo_program_destroy(program);
  rondo_onnx_builder_destroy(builder);
}

/* With the values of integer inputs, zeros, if `gives_integers`. Returns whether the model has such inputs. */
static bool build_model(const rondo_onnx_model *model, bool gives_integers) {
  chosen_inputs chosen = {.count = 0};
  rondo_onnx_value value = {.struct_size = sizeof value};
  rondo_program *program = NULL;
  rondo_onnx_build *build = NULL;
  for (size_t i = 0; rondo_onnx_get_input(model, i, &value) == RONDO_OK; i++)
    if (!choose_value(&chosen, &value, gives_integers)) return false;
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = chosen.given,
                                            .input_count = chosen.count, .most_folded_bytes = MOST_FOLDED,
                                            .most_nodes = MOST_NODES};
  REQUIRE(rondo_program_create(NULL, &program) == RONDO_OK);
  const rondo_status status = rondo_onnx_build_program(model, &options, program, &build);
  REQUIRE(status == RONDO_OK || rondo_last_error()->message[0] != '\0');
  REQUIRE((build != NULL) == (status == RONDO_OK || status == RONDO_UNSUPPORTED));
  if (status == RONDO_UNSUPPORTED) read_unsupported(build);
  if (status == RONDO_OK) read_weights(build);
  if (status == RONDO_OK) read_values(build);
  if (status == RONDO_OK) build_rows(model, &options);
  rondo_onnx_build_destroy(build);
  rondo_program_destroy(program);
  return chosen.has_integers;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rondo_onnx_model *model = NULL;
  if (rondo_onnx_parse(data, size, NULL, &model) != RONDO_OK) return 0;
  if (build_model(model, false)) (void)build_model(model, true);
  rondo_onnx_destroy(model);
  return 0;
}

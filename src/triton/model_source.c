/* SPDX-License-Identifier: MIT
 * Loading models. Files are tried in the order of the table. A source is used by all sessions of a model, so it does
 * not change once it is loaded.
 */
#define _GNU_SOURCE /* dladdr */
#include "triton/model_source.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "triton/private_copy.h"

/* ONNX files ------------------------------------------------------------------------------------------------------- */

enum { MOST_SIZES = 32, MOST_LENGTH = 1 << 24 };

/* Splits "sequence=128,heads=8" in place. */
static rondo_status parse_dimensions(char *text, rondo_onnx_dimension_size *out, size_t *out_count) {
  char *rest = NULL;
  *out_count = 0;
  for (char *item = strtok_r(text, ",", &rest); item != NULL; item = strtok_r(NULL, ",", &rest)) {
    char *end = NULL, *equals = strchr(item, '=');
    errno = 0;
    const unsigned long long size = equals == NULL ? 0 : strtoull(equals + 1, &end, 10);
    if (size == 0 || errno != 0 || *end != '\0' || *out_count == MOST_SIZES)
      return rondo_fail(
          RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
          "'%s' in parameter 'dimensions' of the configuration is not NAME=SIZE with a size of at least 1 "
          "(at most %d of them)",
          item, MOST_SIZES);
    *equals = '\0';
    out[(*out_count)++] = (rondo_onnx_dimension_size){.name = item, .size = (size_t)size};
  }
  return RONDO_OK;
}

static rondo_status read_dimensions(rondo_triton_source *source, const rondo_triton_config *config,
                                    rondo_onnx_build_options *inout) {
  const char *given = rondo_triton_config_parameter(config, "dimensions");
  rondo_onnx_dimension_size *sizes;
  char *copy;
  if (given == NULL) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(&source->scratch, strlen(given) + 1, 1, &copy));
  RONDO_TRY(rondo_scratch_take(&source->scratch, MOST_SIZES, sizeof *sizes, &sizes));
  memcpy(copy, given, strlen(given) + 1);
  inout->dimensions = sizes;
  return parse_dimensions(copy, sizes, &inout->dimension_count);
}

static rondo_status refuse_lengths(const char *given, const char *name) {
  if (given == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "the length '%s' of the model varies: give the lengths to record as parameter 'lengths' of the "
                      "configuration, such as '16,64', or its size in parameter 'dimensions'",
                      name);
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "parameter 'lengths' of the configuration is '%s': give 1 to %d numbers with commas between them, "
                    "such as '16,64', each from 1 to %d",
                    given, RONDO_SESSION_MAX_LENGTHS, MOST_LENGTH);
}

/* Of a model with a length: which ones are recorded. Requests are at most as long as the longest. */
static rondo_status read_lengths(rondo_triton_source *source, const rondo_triton_config *config) {
  const char *name = rondo_onnx_builder_length(source->builder);
  const char *given = rondo_triton_config_parameter(config, "lengths");
  char *copy, *rest = NULL;
  size_t *lengths, count = 0;
  if (name == NULL && given == NULL) return RONDO_OK;
  if (name == NULL)
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
        "the configuration has the parameter 'lengths', and no length of the model varies: name a dynamic "
        "dimension as parameter 'length'");
  if (given == NULL) return refuse_lengths(given, name);
  RONDO_TRY(rondo_scratch_take(&source->scratch, strlen(given) + 1, 1, &copy));
  RONDO_TRY(rondo_scratch_take(&source->scratch, RONDO_SESSION_MAX_LENGTHS, sizeof *lengths, &lengths));
  memcpy(copy, given, strlen(given) + 1);
  for (char *item = strtok_r(copy, ",", &rest); item != NULL; item = strtok_r(NULL, ",", &rest))
    if (count == RONDO_SESSION_MAX_LENGTHS || !rondo_triton_parse_number(item, 1, MOST_LENGTH, &lengths[count++]))
      return refuse_lengths(given, name);
  if (count == 0) return refuse_lengths(given, name);
  source->options.lengths = lengths;
  source->options.length_count = count;
  return RONDO_OK;
}

/* Strings are named before the builder refuses what uses them. */
static rondo_status refuse_strings(const rondo_onnx_model *model) {
  for (int is_output = 0; is_output < 2; is_output++) {
    rondo_onnx_info info = {.struct_size = sizeof info};
    RONDO_TRY(rondo_onnx_get_info(model, &info));
    for (size_t i = 0; i < (is_output ? info.outputs : info.inputs); i++) {
      rondo_onnx_value value = {.struct_size = sizeof value};
      RONDO_TRY(is_output ? rondo_onnx_get_output(model, i, &value) : rondo_onnx_get_input(model, i, &value));
      if (strcmp(value.type_name, "string") == 0)
        return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE,
                          "%s '%s' is a string: Rondo's models have no strings, so convert them before the request",
                          is_output ? "output" : "input", value.name);
    }
  }
  return RONDO_OK;
}

static rondo_status load_onnx(rondo_triton_source *source, const char *path, const char *folder,
                              const rondo_triton_config *config) {
  rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT,
                                    .for_cuda = rondo_triton_config_has_instances(config, "KIND_GPU") &&
                                                !rondo_triton_config_has_instances(config, "KIND_CPU")};
  size_t is_causal;
  (void)folder;
  RONDO_TRY(rondo_triton_config_number(config, "causal", 0, 1, 0, &is_causal));
  const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT,
                                              .rows = rondo_triton_config_parameter(config, "rows"),
                                              .length = rondo_triton_config_parameter(config, "length"),
                                              .mask = rondo_triton_config_parameter(config, "mask"),
                                              .is_causal = is_causal == 1,
                                              .build = &build};
  RONDO_TRY(rondo_onnx_load(path, NULL, &source->onnx));
  RONDO_TRY(refuse_strings(source->onnx));
  RONDO_TRY(read_dimensions(source, config, &build));
  RONDO_TRY(rondo_onnx_builder_create(source->onnx, &options, &source->builder));
  RONDO_TRY(rondo_onnx_builder_fill_model(source->builder, &source->options));
  return read_lengths(source, config);
}

/* Shared objects --------------------------------------------------------------------------------------------------- */

typedef rondo_status (*describe_function)(const char *folder, rondo_triton_description *out);

static const char *get_parameter(const void *configuration, const char *key) {
  return rondo_triton_config_parameter(configuration, key);
}

static rondo_status describe(rondo_triton_source *source, describe_function function, const char *folder,
                             const rondo_triton_config *config) {
  rondo_triton_description described = {.struct_size = sizeof described,
                                        .model = {RONDO_MODEL_OPTIONS_INIT},
                                        .configuration = config,
                                        .parameter = get_parameter};
  const uint64_t before = rondo_error_number();
  const rondo_status status = function(folder, &described);
  if (status != RONDO_OK) return rondo_fail_callback(status, before, "rondo_triton_model");
  source->described = described;
  source->options = described.model;
  return RONDO_OK;
}

/* Of the shared object that is loaded. */
static rondo_status describe_library(rondo_triton_source *source, const char *folder,
                                     const rondo_triton_config *config) {
  describe_function function;
  void *symbol = dlsym(source->library, "rondo_triton_model");
  if (symbol == NULL)
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME,
                      "the shared object has no function rondo_triton_model (<rondo/triton.h>): export it");
  memcpy(&function, &symbol, sizeof function);
  return describe(source, function, folder, config);
}

/* The file may be another one since it was loaded last. */
static rondo_status load_library(rondo_triton_source *source, const char *path, const char *folder,
                                 const rondo_triton_config *config) {
  RONDO_TRY(rondo_triton_load_copy(path, &source->library));
  return describe_library(source, folder, config);
}

/* A model of `rondo train --save`. language_model.so is beside the backend, and describes such files. */
static rondo_status load_saved(rondo_triton_source *source, const char *path, const char *folder,
                               const rondo_triton_config *config) {
  static const char file[] = "language_model.so", place = 0;
  Dl_info backend;
  char *library;
  (void)path;
  if (dladdr(&place, &backend) == 0 || backend.dli_fname == NULL)
    return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NONE, "the folder of the backend is not known");
  const char *slash = strrchr(backend.dli_fname, '/');
  const size_t length = slash == NULL ? 0 : (size_t)(slash + 1 - backend.dli_fname);
  RONDO_TRY(rondo_scratch_take(&source->scratch, length + sizeof file, 1, &library));
  memcpy(library, backend.dli_fname, length);
  memcpy(library + length, file, sizeof file);
  source->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (source->library != NULL) return describe_library(source, folder, config);
  const char *why = dlerror();
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NONE, "language_model.so of the backend does not load: %s",
                    why == NULL ? "no reason was given" : why);
}

/* Files ------------------------------------------------------------------------------------------------------------ */

typedef struct source_kind {
  const char *file;
  rondo_status (*load)(rondo_triton_source *source, const char *path, const char *folder,
                       const rondo_triton_config *config);
} source_kind;

static const source_kind kinds[] = {
    {"model.onnx", load_onnx}, {"model.safetensors", load_saved}, {"model.so", load_library}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static rondo_status join_path(rondo_triton_source *source, const char *folder, const char *file, char **out) {
  const size_t bytes = strlen(folder) + 1 + strlen(file) + 1;
  RONDO_TRY(rondo_scratch_take(&source->scratch, bytes, 1, out));
  memcpy(*out, folder, strlen(folder));
  (*out)[strlen(folder)] = '/';
  memcpy(*out + strlen(folder) + 1, file, strlen(file) + 1);
  return RONDO_OK;
}

static rondo_status find_file(rondo_triton_source *source, const char *folder, const source_kind **out_kind,
                              char **out_path) {
  for (size_t i = 0; i < KINDS; i++) {
    *out_kind = &kinds[i];
    RONDO_TRY(join_path(source, folder, kinds[i].file, out_path));
    if (access(*out_path, F_OK) == 0) return RONDO_OK;
  }
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_NONE,
                    "the folder %s has no model: put model.onnx there, model.safetensors that `rondo train --save` "
                    "wrote, or model.so "
                    "with the function rondo_triton_model",
                    folder);
}

static void count_step_inputs(rondo_triton_source *source) {
  while (source->step_inputs < source->inputs.count && !source->inputs.items[source->step_inputs].is_of_source)
    source->step_inputs++;
}

/* What a description says of the next input. */
static rondo_status find_next(rondo_triton_source *source) {
  const char *output_name = source->described.next_output, *input_name = source->described.next_input;
  if (output_name == NULL && input_name == NULL) return RONDO_OK;
  const rondo_triton_tensor *output =
      output_name == NULL ? NULL : rondo_triton_find_tensor(&source->outputs, output_name);
  const rondo_triton_tensor *input = input_name == NULL ? NULL : rondo_triton_find_tensor(&source->inputs, input_name);
  const bool is_token = output != NULL && input != NULL && source->options.slots > 0 && !output->has_length &&
                        !input->is_of_source && input->has_length && output->type == input->type &&
                        output->row_bytes == input->row_bytes &&
                        (output->type == TRITON_TYPE_INT32 || output->type == TRITON_TYPE_INT64);
  if (!is_token)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "rondo_triton_model: next_output '%s' and next_input '%s' are not an output [rows] and an input "
                      "[rows, length] of one type, I32 or I64, of a model with sequences",
                      output_name == NULL ? "" : output_name, input_name == NULL ? "" : input_name);
  source->generates = true;
  source->next_output = (size_t)(output - source->outputs.items);
  source->next_input = (size_t)(input - source->inputs.items);
  return RONDO_OK;
}

static rondo_status check_sequences(const rondo_triton_source *source, const rondo_triton_config *config) {
  if (source->options.slots == 0 || !config->is_direct) return RONDO_OK;
  return rondo_fail(
      RONDO_UNSUPPORTED, RONDO_REASON_NONE,
      "the configuration has sequence_batching with the direct strategy: Rondo has a slot for each sequence "
      "itself, so leave it out, or give sequence_batching { oldest { } }");
}

rondo_status rondo_triton_source_load(const char *folder, const rondo_triton_config *config, rondo_triton_source *out) {
  const source_kind *kind;
  char *path;
  *out = (rondo_triton_source){.allocator = rondo_allocator_default()};
  out->scratch.allocator = &out->allocator;
  out->options = (rondo_model_options){RONDO_MODEL_OPTIONS_INIT};
  RONDO_TRY(find_file(out, folder, &kind, &path));
  rondo_status status = kind->load(out, path, folder, config);
  if (status == RONDO_OK)
    status = rondo_triton_describe(&out->scratch, &out->options, &out->inputs, &out->outputs, &out->changes_states);
  count_step_inputs(out);
  if (status == RONDO_OK) status = find_next(out);
  if (status == RONDO_OK) status = check_sequences(out, config);
  return rondo_fail_context(status, "%s", path);
}

void rondo_triton_source_free(rondo_triton_source *source) {
  if (source->described.release != NULL) source->described.release(&source->described);
  if (source->library != NULL) (void)dlclose(source->library);
  rondo_onnx_builder_destroy(source->builder);
  rondo_onnx_destroy(source->onnx);
  rondo_scratch_free(&source->scratch);
  *source = (rondo_triton_source){0};
}

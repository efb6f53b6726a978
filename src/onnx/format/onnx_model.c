/* SPDX-License-Identifier: MIT
 * Loads and destroys models.
 */
#include "onnx/format/onnx_model.h"

#include <string.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "onnx/format/model_check.h"

rondo_onnx_data_source rondo_onnx_data_of(rondo_onnx_model *model) {
  return (rondo_onnx_data_source){.scratch = &model->scratch, .file = model->bytes, .external = &model->external};
}

/* Creating --------------------------------------------------------------------------------------------------------- */

static rondo_status make_model(const rondo_onnx_options *options, rondo_onnx_model **out) {
  rondo_allocator allocator;
  rondo_onnx_model *model;
  RONDO_TRY(rondo_allocator_resolve(options->allocator, &allocator));
  RONDO_TRY(rondo_allocate_items(&allocator, 1, sizeof *model, &model));
  model->allocator = allocator;
  model->scratch.allocator = &model->allocator;
  model->external.allocator = allocator;
  *out = model;
  return RONDO_OK;
}

void rondo_onnx_destroy(rondo_onnx_model *model) {
  if (model == NULL) return;
  const rondo_allocator allocator = model->allocator;
  rondo_onnx_external_files_free(&model->external);
  rondo_scratch_free(&model->scratch);
  rondo_file_unmap(&model->mapping);
  rondo_release(&allocator, model, 1, sizeof *model);
}

static rondo_status copy_bytes(rondo_onnx_model *model, const void *bytes, size_t count, void *out) {
  unsigned char *copy;
  memset(out, 0, sizeof copy);
  RONDO_TRY(rondo_scratch_take(&model->scratch, count + 1, 1, &copy));
  if (count > 0) memcpy(copy, bytes, count);
  memcpy(out, &copy, sizeof copy);
  return RONDO_OK;
}

static rondo_status read_model(rondo_onnx_model *model, size_t count) {
  ProtobufCMessage *message;
  rondo_onnx_data_source source = rondo_onnx_data_of(model);
  source.scratch = NULL;
  RONDO_TRY(rondo_onnx_read_message(&model->scratch, model->bytes, count, &rondo_onnx__model__descriptor, &message));
  model->message = (RondoOnnx__Model *)message;
  rondo_onnx_sort_functions(model->message);
  RONDO_TRY(rondo_onnx_check_model(&model->allocator, &source, model->message));
  return rondo_onnx_describe(model);
}

/* Parsing ---------------------------------------------------------------------------------------------------------- */

static rondo_status parse(rondo_onnx_model *model, const void *bytes, size_t count, const char *folder) {
  RONDO_TRY(copy_bytes(model, bytes, count, &model->bytes));
  if (folder != NULL) RONDO_TRY(copy_bytes(model, folder, strlen(folder), &model->external.folder));
  return read_model(model, count);
}

static rondo_status hand_out(rondo_onnx_model *model, rondo_status status, rondo_onnx_model **out_model) {
  if (status == RONDO_OK)
    *out_model = model;
  else
    rondo_onnx_destroy(model);
  return status;
}

rondo_status rondo_onnx_parse(const void *bytes, size_t count, const rondo_onnx_options *options,
                              rondo_onnx_model **out_model) {
  const char *const call = "rondo_onnx_parse";
  rondo_onnx_options known;
  rondo_onnx_model *model;
  RONDO_TRY(rondo_require(call, "out_model", out_model));
  *out_model = NULL;
  if (count > 0) RONDO_TRY(rondo_require(call, "bytes", bytes));
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_onnx_options", options, &known));
  RONDO_TRY(rondo_fail_context(make_model(&known, &model), "%s", call));
  return hand_out(model, rondo_fail_context(parse(model, bytes, count, known.folder), "%s", call), out_model);
}

/* Loading ---------------------------------------------------------------------------------------------------------- */

/* The part of the path before its last '/'; "/" is a folder, too. */
static rondo_status find_folder(rondo_onnx_model *model, const char *path) {
  const char *last = strrchr(path, '/');
  const size_t length = last == NULL ? 0 : last == path ? 1 : (size_t)(last - path);
  return copy_bytes(model, path, length, &model->external.folder);
}

static rondo_status load(rondo_onnx_model *model, const char *path) {
  RONDO_TRY(rondo_file_map(path, &model->mapping));
  RONDO_TRY(find_folder(model, path));
  model->bytes = model->mapping.bytes;
  return read_model(model, model->mapping.count);
}

rondo_status rondo_onnx_load(const char *path, const rondo_onnx_options *options, rondo_onnx_model **out_model) {
  const char *const call = "rondo_onnx_load";
  rondo_onnx_options known;
  rondo_onnx_model *model;
  RONDO_TRY(rondo_require(call, "out_model", out_model));
  *out_model = NULL;
  RONDO_TRY(rondo_require(call, "path", path));
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_onnx_options", options, &known));
  RONDO_TRY(rondo_fail_context(make_model(&known, &model), "%s", call));
  return hand_out(model, rondo_fail_context(load(model, path), "the ONNX model '%s'", path), out_model);
}

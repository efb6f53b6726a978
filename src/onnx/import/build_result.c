/* SPDX-License-Identifier: MIT
 * The public calls about what was built, and the list of what is not supported.
 */
#include "onnx/import/build_result.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/versioned_struct.h"
#include "onnx/format/model_check.h"

#define LABEL_BYTES 320
#define MOST_NAMED 3 /* in the message */

void rondo_onnx_build_destroy(rondo_onnx_build *build) {
  if (build == NULL) return;
  const rondo_allocator allocator = build->allocator;
  rondo_weights_destroy(build->weights);
  rondo_array_free(&allocator, &build->inputs);
  rondo_array_free(&allocator, &build->outputs);
  rondo_array_free(&allocator, &build->unsupported);
  rondo_scratch_free(&build->scratch);
  rondo_release(&allocator, build, 1, sizeof *build);
}

/* Unsupported ------------------------------------------------------------------------------------------------------ */

static rondo_status copy_text(rondo_scratch *scratch, const char *text, const char **out) {
  char *copy;
  RONDO_TRY(rondo_scratch_take(scratch, strlen(text) + 1, 1, &copy));
  memcpy(copy, text, strlen(text));
  *out = copy;
  return RONDO_OK;
}

static rondo_status report(rondo_onnx_importer *importer, const char *label, rondo_onnx_unsupported entry) {
  rondo_saved_error error;
  rondo_onnx_build *build = importer->build;
  rondo_error_save(&error);
  RONDO_TRY(copy_text(&build->scratch, label, &entry.node));
  RONDO_TRY(copy_text(&build->scratch, error.message, &entry.reason));
  build->info.unsupported++;
  return rondo_array_push(&build->allocator, &build->unsupported, &entry);
}

/* In the body of a function, the label names the function, too. */
rondo_status rondo_onnx_report_node(rondo_onnx_importer *importer, const RondoOnnx__Node *node, size_t index,
                                    int64_t opset, const char *attribute) {
  char plain[RONDO_ONNX_NODE_LABEL], label[LABEL_BYTES];
  const RondoOnnx__Function *function = importer->scope->function;
  (void)rondo_onnx_node_label(plain, node, index);
  if (function != NULL)
    (void)snprintf(label, sizeof label, "function '%.100s': %s", rondo_onnx_text(function->name), plain);
  else
    (void)snprintf(label, sizeof label, "%s", plain);
  return report(importer, label,
                (rondo_onnx_unsupported){.domain = rondo_onnx_node_domain(node),
                                         .op = rondo_onnx_text(node->op_type),
                                         .attribute = rondo_onnx_text(attribute),
                                         .opset = opset});
}

rondo_status rondo_onnx_report_value(rondo_onnx_importer *importer, const char *what, const char *name) {
  char label[LABEL_BYTES];
  (void)snprintf(label, sizeof label, "%s '%.200s'", what, name);
  return report(importer, label, (rondo_onnx_unsupported){.domain = "", .op = "", .attribute = ""});
}

rondo_status rondo_onnx_summarize(const rondo_onnx_build *build) {
  char text[RONDO_ERROR_MESSAGE_BYTES] = "";
  size_t at = 0;
  const size_t count = build->unsupported.count;
  if (count == 0) return RONDO_OK;
  for (size_t i = 0; i < count && i < MOST_NAMED; i++) {
    const rondo_onnx_unsupported *entry = &build->unsupported.items[i];
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%.100s: %.150s", i > 0 ? "; " : "", entry->node,
                           entry->reason);
  }
  if (count > MOST_NAMED) (void)snprintf(text + at, sizeof text - at, "; and %zu more", count - MOST_NAMED);
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE, "%zu of the model's nodes cannot be imported: %s", count,
                    text);
}

/* Public calls ----------------------------------------------------------------------------------------------------- */

const rondo_weights *rondo_onnx_build_weights(const rondo_onnx_build *build) {
  return build != NULL ? build->weights : NULL;
}

static rondo_status fail_past_end(const char *call, const char *what, size_t index, size_t count) {
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "%s: there is no %s %zu among the %zu", call, what,
                    index, count);
}

rondo_status rondo_onnx_build_get_input(const rondo_onnx_build *build, size_t index,
                                        rondo_onnx_built_value *out_value) {
  static const char call[] = "rondo_onnx_build_get_input";
  RONDO_TRY(rondo_require(call, "build", build));
  RONDO_TRY(rondo_require(call, "out_value", out_value));
  if (index >= build->inputs.count) return fail_past_end(call, "input", index, build->inputs.count);
  return rondo_versioned_write("rondo_onnx_built_value", &build->inputs.items[index], out_value, sizeof *out_value);
}

rondo_status rondo_onnx_build_get_output(const rondo_onnx_build *build, size_t index,
                                         rondo_onnx_built_value *out_value) {
  static const char call[] = "rondo_onnx_build_get_output";
  RONDO_TRY(rondo_require(call, "build", build));
  RONDO_TRY(rondo_require(call, "out_value", out_value));
  if (index >= build->outputs.count) return fail_past_end(call, "output", index, build->outputs.count);
  return rondo_versioned_write("rondo_onnx_built_value", &build->outputs.items[index], out_value, sizeof *out_value);
}

rondo_status rondo_onnx_build_get_unsupported(const rondo_onnx_build *build, size_t index,
                                              rondo_onnx_unsupported *out_unsupported) {
  static const char call[] = "rondo_onnx_build_get_unsupported";
  RONDO_TRY(rondo_require(call, "build", build));
  RONDO_TRY(rondo_require(call, "out_unsupported", out_unsupported));
  if (index >= build->unsupported.count) return fail_past_end(call, "entry", index, build->unsupported.count);
  return rondo_versioned_write("rondo_onnx_unsupported", &build->unsupported.items[index], out_unsupported,
                               sizeof *out_unsupported);
}

rondo_status rondo_onnx_build_get_info(const rondo_onnx_build *build, rondo_onnx_build_info *out_info) {
  RONDO_TRY(rondo_require("rondo_onnx_build_get_info", "build", build));
  RONDO_TRY(rondo_require("rondo_onnx_build_get_info", "out_info", out_info));
  return rondo_versioned_write("rondo_onnx_build_info", &build->info, out_info, sizeof *out_info);
}

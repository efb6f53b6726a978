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
#include "onnx/import/model_part.h"
#include "tensor/files/weights_program.h"

#define LABEL_BYTES 320
#define MOST_NAMED 3 /* in the message */

void rondo_onnx_build_destroy(rondo_onnx_build *build) {
  if (build == NULL) return;
  const rondo_allocator allocator = build->allocator;
  rondo_onnx_build_free_weights(build);
  rondo_array_free(&allocator, &build->inputs);
  rondo_array_free(&allocator, &build->outputs);
  rondo_array_free(&allocator, &build->unsupported);
  rondo_onnx_part_destroy(&allocator, build->part);
  rondo_scratch_free(&build->scratch);
  rondo_release(&allocator, build, 1, sizeof *build);
}

/* Unsupported ------------------------------------------------------------------------------------------------------ */

static rondo_status report(rondo_onnx_importer *importer, const char *label, rondo_onnx_unsupported entry) {
  rondo_saved_error error;
  rondo_onnx_build *build = importer->build;
  rondo_error_save(&error);
  RONDO_TRY(rondo_scratch_text(&build->scratch, label, &entry.node));
  RONDO_TRY(rondo_scratch_text(&build->scratch, error.message, &entry.reason));
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
                (rondo_onnx_unsupported){.needs_data = importer->need.is_set,
                                         .domain = rondo_onnx_node_domain(node),
                                         .op = rondo_onnx_text(node->op_type),
                                         .attribute = rondo_onnx_text(attribute),
                                         .opset = opset});
}

rondo_status rondo_onnx_report_value(rondo_onnx_importer *importer, const char *what, const char *name) {
  char label[LABEL_BYTES];
  (void)snprintf(label, sizeof label, "%s '%.200s'", what, name);
  return report(importer, label, (rondo_onnx_unsupported){.domain = "", .op = "", .attribute = ""});
}

static bool needs_only_data(const rondo_onnx_build *build) {
  for (size_t i = 0; i < build->unsupported.count; i++)
    if (!build->unsupported.items[i].needs_data) return false;
  return true;
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
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE, "%zu of the model's nodes cannot be imported: %s%s", count,
                    text, needs_only_data(build) ? "; a runner runs the model in parts (rondo_onnx_run)" : "");
}

/* Public calls ----------------------------------------------------------------------------------------------------- */

const rondo_weights *rondo_onnx_build_weights(const rondo_onnx_build *build) {
  return build != NULL ? build->weights : NULL;
}

void rondo_onnx_build_free_weights(rondo_onnx_build *build) {
  if (build == NULL) return;
  rondo_weights_destroy(build->weights);
  build->weights = NULL;
  rondo_scratch_free(&build->elements);
}

static rondo_status move_weights(rondo_onnx_build *build, rondo_compiled *compiled) {
  const rondo_kept_values moved = {.maps = true, .moves = true};
  if (build->weights == NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE, "the weights of this build were freed or moved before");
  RONDO_TRY(rondo_weights_check_kept(build->weights, compiled, &moved));
  const rondo_status status = rondo_weights_apply_kept(build->weights, compiled, &moved);
  rondo_onnx_build_free_weights(build);
  return status;
}

rondo_status rondo_onnx_build_move_weights(rondo_onnx_build *build, rondo_compiled *compiled) {
  static const char call[] = "rondo_onnx_build_move_weights";
  RONDO_TRY(rondo_require(call, "build", build));
  RONDO_TRY(rondo_require(call, "compiled", compiled));
  return rondo_fail_context(move_weights(build, compiled), "%s", call);
}

static rondo_status fail_past_end(const char *call, const char *what, size_t index, size_t count) {
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "%s: there is no %s %zu among the %zu", call, what,
                    index, count);
}

/* One item of a list of values. */
static rondo_status get_value(const char *call, const char *what, const rondo_onnx_built_value *values, size_t count,
                              size_t index, rondo_onnx_built_value *out_value) {
  RONDO_TRY(rondo_require(call, "out_value", out_value));
  if (index >= count) return fail_past_end(call, what, index, count);
  return rondo_versioned_write("rondo_onnx_built_value", &values[index], out_value, sizeof *out_value);
}

rondo_status rondo_onnx_build_get_input(const rondo_onnx_build *build, size_t index,
                                        rondo_onnx_built_value *out_value) {
  static const char call[] = "rondo_onnx_build_get_input";
  RONDO_TRY(rondo_require(call, "build", build));
  return get_value(call, "input", build->inputs.items, build->inputs.count, index, out_value);
}

rondo_status rondo_onnx_build_get_output(const rondo_onnx_build *build, size_t index,
                                         rondo_onnx_built_value *out_value) {
  static const char call[] = "rondo_onnx_build_get_output";
  RONDO_TRY(rondo_require(call, "build", build));
  return get_value(call, "output", build->outputs.items, build->outputs.count, index, out_value);
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

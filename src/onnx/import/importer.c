/* SPDX-License-Identifier: MIT
 * rondo_onnx_build_program.
 */
#include "onnx/import/importer.h"

#include "base/error.h"
#include "base/versioned_struct.h"
#include "onnx/import/build_result.h"
#include "onnx/import/constant.h"
#include "onnx/import/folding.h"
#include "onnx/import/graph_import.h"
#include "onnx/import/model_interface.h"
#include "onnx/import/model_part.h"
#include "onnx/import/scaled_image.h"
#include "tensor/program/program.h"

/* Outputs of a part may be inputs of the model that no node has read. */
static rondo_status import_interface(rondo_onnx_importer *importer) {
  RONDO_TRY(rondo_onnx_part_end(importer));
  if (!rondo_onnx_is_cut(importer->part)) {
    if (importer->part == NULL || importer->part->before == NULL) {
      RONDO_TRY(rondo_onnx_finish_inputs(importer));
      return rondo_onnx_import_outputs(importer);
    }
    RONDO_TRY(rondo_onnx_import_outputs(importer));
  }
  return rondo_onnx_finish_inputs(importer);
}

static rondo_status import_model(rondo_onnx_importer *importer) {
  const RondoOnnx__Graph *graph = importer->model->message->graph;
  RONDO_TRY(rondo_onnx_import_initializers(importer, graph, true));
  RONDO_TRY(rondo_onnx_part_begin(importer));
  RONDO_TRY(rondo_onnx_import_inputs(importer));
  RONDO_TRY(rondo_onnx_count_readers(importer));
  RONDO_TRY(rondo_onnx_import_nodes(importer, graph->node, graph->n_node));
  RONDO_TRY(import_interface(importer));
  importer->build->info.nodes = importer->nodes;
  RONDO_TRY(rondo_onnx_summarize(importer->build));
  RONDO_TRY(rondo_onnx_part_finish(importer));
  return rondo_onnx_collect_weights(importer, importer->build->weights);
}

static rondo_status release(rondo_onnx_importer *importer) {
  const rondo_status status = rondo_onnx_folding_end(importer);
  rondo_onnx_constants_end(importer);
  rondo_onnx_name_table_free(&importer->allocator, &importer->names);
  rondo_onnx_free_readers(importer);
  rondo_array_free(&importer->allocator, &importer->values);
  rondo_array_free(&importer->allocator, &importer->handed_inputs);
  rondo_array_free(&importer->allocator, &importer->states);
  rondo_scratch_free(&importer->scratch);
  return status;
}

static rondo_status make_build(const rondo_allocator *allocator, rondo_onnx_build **out) {
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof **out, out));
  (*out)->allocator = *allocator;
  (*out)->scratch.allocator = (*out)->elements.allocator = &(*out)->allocator;
  const rondo_status status = rondo_weights_create(allocator, &(*out)->weights);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_onnx_build_destroy(*out);
  *out = NULL;
  return status;
}

/* The model's files were mapped when it was loaded: reading a tensor again maps nothing. */
static rondo_status build_program(const rondo_onnx_model *model, const rondo_onnx_build_options *options,
                                  const rondo_onnx_sharing *sharing, rondo_program *program, rondo_onnx_build *build) {
  static const rondo_onnx_scope main_scope = {0};
  rondo_onnx_external_files external = model->external;
  const rondo_program_mark mark = rondo_program_get_mark(program);
  rondo_onnx_importer importer = {.model = model,
                                  .options = options,
                                  .program = program,
                                  .sharing = sharing,
                                  .build = build,
                                  .allocator = build->allocator,
                                  .kept = &build->scratch,
                                  .scope = &main_scope};
  importer.scratch.allocator = &importer.allocator;
  importer.source = (rondo_onnx_data_source){.scratch = &build->elements, .file = model->bytes, .external = &external};
  rondo_status status = import_model(&importer);
  RONDO_THEN(status, release(&importer));
  if (status != RONDO_OK) rondo_program_roll_back(program, mark);
  return status;
}

static rondo_status build(const rondo_onnx_model *model, const rondo_onnx_build_options *options,
                          const rondo_onnx_sharing *sharing, rondo_program *program, rondo_onnx_build **out_build) {
  rondo_allocator allocator;
  rondo_onnx_build *made;
  RONDO_TRY(rondo_allocator_resolve(options->allocator, &allocator));
  RONDO_TRY(make_build(&allocator, &made));
  const rondo_status status = build_program(model, options, sharing, program, made);
  if (status == RONDO_OK || (status == RONDO_UNSUPPORTED && made->unsupported.count > 0))
    *out_build = made;
  else
    rondo_onnx_build_destroy(made);
  return status;
}

rondo_status rondo_onnx_build_sharing(const rondo_onnx_model *model, const rondo_onnx_build_options *options,
                                      const rondo_onnx_sharing *sharing, rondo_program *program,
                                      rondo_onnx_build **out_build) {
  static const char call[] = "rondo_onnx_build_program";
  rondo_onnx_build_options known;
  rondo_saved_error before;
  RONDO_TRY(rondo_require(call, "out_build", out_build));
  *out_build = NULL;
  RONDO_TRY(rondo_require(call, "model", model));
  RONDO_TRY(rondo_require(call, "program", program));
  RONDO_TRY(rondo_versioned_read("rondo_onnx_build_options", options, &known, sizeof known));
  rondo_error_save(&before);
  const rondo_status status = build(model, &known, sharing, program, out_build);
  if (status == RONDO_OK) rondo_error_restore(&before); /* of what was refused and imported in another way */
  return rondo_fail_context(status, "%s", call);
}

rondo_status rondo_onnx_build_program(const rondo_onnx_model *model, const rondo_onnx_build_options *options,
                                      rondo_program *program, rondo_onnx_build **out_build) {
  return rondo_onnx_build_sharing(model, options, NULL, program, out_build);
}

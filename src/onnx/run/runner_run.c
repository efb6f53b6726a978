/* SPDX-License-Identifier: MIT
 * Runs of whole models and of parts. Parts share an arena, so what a part hands on is copied out of it, once the host
 * knows how much of it is used.
 */
#include "onnx/run/runner_run.h"

#include <rondo/capture.h>
#include <string.h>

#include "base/error.h"
#include "onnx/format/widened_elements.h"
#include "tensor/compile/program_record.h"
#include "tensor/program/shape.h"
#include "tensor/run/arena_use.h"
#include "tensor/run/named_values.h"

/* Inputs ----------------------------------------------------------------------------------------------------------- */

static rondo_status check_input(const rondo_onnx_built_value *value, const rondo_input *input) {
  size_t bytes = rondo_type_bytes(value->type);
  for (size_t i = 0; i < value->rank; i++) bytes *= value->shape[i];
  if (input->type != 0 && input->type != (uint32_t)value->type)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "input '%s' has the type %s, and the program needs %s",
                      value->name, rondo_type_name((rondo_type)input->type), rondo_type_name(value->type));
  if (input->bytes == bytes) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "input '%s' has %zu bytes, and its shape and its type %s need %zu", value->name, input->bytes,
                    rondo_type_name(value->type), bytes);
}

static rondo_status copy_input(const rondo_onnx_runner *runner, const rondo_onnx_runner_program *program,
                               rondo_call *call, size_t index) {
  const rondo_onnx_built_value *value = &program->build->inputs.items[runner->inputs[index]];
  rondo_input input;
  if (value->program_name == NULL || program->compiled == NULL) return RONDO_OK;
  RONDO_TRY(rondo_call_get_input(call, index, &input));
  RONDO_TRY(check_input(value, &input));
  const rondo_named_value *slot = rondo_values_look_up(program->compiled, value->program_name, "i");
  return rondo_copy_async(runner->stream, slot->address, rondo_call_input(call, index), input.bytes);
}

/* Outputs ---------------------------------------------------------------------------------------------------------- */

static bool is_empty(const rondo_onnx_built_value *value) {
  for (size_t i = 0; i < value->rank; i++)
    if (value->shape[i] == 0) return true;
  return false;
}

/* Where the elements of an output are: in the program, or in host memory if they are the same in each run. */
static rondo_status find_elements(const rondo_onnx_runner_program *program, size_t index, rondo_output_options *inout,
                                  const void **out_elements, size_t *out_bytes) {
  const rondo_onnx_built_value *value = &program->build->outputs.items[index];
  const rondo_onnx_handed *handed = program->build->part->outputs.items[index];
  inout->type = (uint32_t)value->type;
  if (handed != NULL) {
    *out_elements = handed->memory;
    *out_bytes = rondo_type_bytes(value->type);
    for (size_t i = 0; i < value->rank; i++) *out_bytes *= value->shape[i];
    return RONDO_OK;
  }
  if (value->program_name != NULL) {
    const rondo_named_value *result = rondo_values_look_up(program->compiled, value->program_name, "o");
    *out_elements = result->address;
    *out_bytes = rondo_shape_bytes(&result->shape);
    return RONDO_OK;
  }
  *out_elements = value->data;
  *out_bytes = value->bytes;
  if (value->data != NULL || is_empty(value)) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "output '%s' has the type '%s' and cannot be copied",
                    value->name, value->type_name);
}

static rondo_status copy_output(const rondo_onnx_runner *runner, const rondo_onnx_runner_program *program,
                                rondo_call *call, size_t index) {
  const rondo_onnx_built_value *value = &program->build->outputs.items[index];
  rondo_output_options options = {RONDO_OUTPUT_OPTIONS_INIT, .rank = (uint32_t)value->rank, .name = value->name};
  const void *elements;
  size_t bytes;
  void *output;
  RONDO_TRY(find_elements(program, index, &options, &elements, &bytes));
  for (size_t i = 0; i < value->rank; i++) options.shape[i] = value->shape[i];
  RONDO_TRY(rondo_call_output(call, index, bytes, &options, &output));
  return bytes == 0 ? RONDO_OK : rondo_copy_async(runner->stream, output, elements, bytes);
}

/* Runs ------------------------------------------------------------------------------------------------------------- */

static rondo_status copy_outputs(const rondo_onnx_runner *runner, const rondo_onnx_runner_program *program,
                                 rondo_call *call) {
  for (size_t i = 0; i < program->build->outputs.count; i++) RONDO_TRY(copy_output(runner, program, call, i));
  return RONDO_OK;
}

rondo_status rondo_onnx_run_whole(const rondo_onnx_runner *runner, const rondo_onnx_runner_program *program,
                                  rondo_call *call) {
  rondo_capture_info capture = {.struct_size = sizeof capture};
  RONDO_TRY(rondo_capture_get_info(runner->stream, &capture));
  if (program->compiled != NULL) rondo_compiled_claim_inputs(program->compiled);
  for (size_t i = 0; i < runner->input_count; i++) RONDO_TRY(copy_input(runner, program, call, i));
  if (program->compiled != NULL)
    RONDO_TRY(capture.state == RONDO_CAPTURE_NONE ? rondo_compiled_run_eager(program->compiled)
                                                  : rondo_compiled_record_into(program->compiled));
  return copy_outputs(runner, program, call);
}

/* Parts ------------------------------------------------------------------------------------------------------------ */

/* Where the host reads a value after the part has run: the input of the call, the part's own result, or what an earlier
 * part has handed on. */
static rondo_status find_cut(const rondo_onnx_runner *runner, const rondo_onnx_runner_program *program,
                             const rondo_call *call, const rondo_onnx_cut *cut, const void **out) {
  const rondo_onnx_handed *handed = cut->handed;
  rondo_input input;
  if (handed->part == program->build->part) {
    const char *name = cut->is_count ? handed->count_name : handed->name;
    *out = rondo_values_look_up(program->compiled, name, "o")->address;
    return RONDO_OK;
  }
  *out = handed->memory;
  if (handed->part != NULL) return RONDO_OK;
  size_t index = 0;
  while (runner->inputs[index] != handed->input) index++;
  RONDO_TRY(rondo_call_get_input(call, index, &input));
  *out = rondo_call_input(call, index);
  return check_input(&program->build->inputs.items[handed->input], &input);
}

/* Waits for the part, and reads what the next one must know. */
static rondo_status read_cuts(rondo_onnx_runner *runner, rondo_onnx_runner_program *program, const rondo_call *call) {
  const rondo_onnx_model_part *part = program->build->part;
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < part->cuts.count && status == RONDO_OK; i++) {
    const rondo_onnx_cut *cut = &part->cuts.items[i];
    const void *from;
    status = find_cut(runner, program, call, cut, &from);
    if (status == RONDO_OK && cut->bytes > 0)
      status = rondo_copy_async(runner->stream, program->cut_values + cut->offset, from, cut->bytes);
  }
  RONDO_THEN(status, program->compiled != NULL ? rondo_compiled_synchronize(program->compiled)
                                               : rondo_stream_synchronize(runner->stream));
  runner->info.waits++;
  return status;
}

/* Copies a result out of the arena; of a counted one, what is used, without gaps. */
static rondo_status keep_result(const rondo_onnx_runner *runner, const rondo_onnx_runner_program *program,
                                const rondo_onnx_handed *handed) {
  const rondo_named_value *result = rondo_values_look_up(program->compiled, handed->name, "o");
  const size_t bytes = rondo_shape_bytes(&result->shape);
  size_t rows = 1;
  if (!handed->is_counted) return rondo_copy_async(runner->stream, handed->memory, result->address, bytes);
  const size_t used = rondo_onnx_cut_count(program->build->part, program->cut_values, handed);
  for (size_t i = 0; i < handed->counted_axis; i++) rows *= handed->shape.dims[i];
  const size_t pitch = bytes / rows, width = pitch / handed->shape.dims[handed->counted_axis] * used;
  if (used == 0) return RONDO_OK;
  return rondo_copy_box_async(runner->stream, &(rondo_copy){.dst = handed->memory,
                                                            .src = result->address,
                                                            .width = width,
                                                            .height = rows,
                                                            .dst_pitch = width,
                                                            .src_pitch = pitch});
}

static rondo_status copy_part_inputs(const rondo_onnx_runner *runner, const rondo_onnx_runner_program *program,
                                     rondo_call *call) {
  const rondo_onnx_model_part *part = program->build->part;
  for (size_t i = 0; i < runner->input_count; i++) RONDO_TRY(copy_input(runner, program, call, i));
  for (size_t i = 0; i < part->inputs.count; i++) {
    const rondo_onnx_part_input *input = &part->inputs.items[i];
    const rondo_named_value *slot = rondo_values_look_up(program->compiled, input->handed->name, "i");
    RONDO_TRY(rondo_copy_async(runner->stream, slot->address, input->handed->memory, input->bytes));
  }
  return RONDO_OK;
}

/* The first run of a part is eager, as in a tree, and later ones replay its recording. */
static rondo_status run_part(rondo_onnx_runner *runner, rondo_onnx_runner_program *program, rondo_call *call) {
  const bool is_eager = !program->has_run || !program->is_kept;
  if (program->compiled == NULL) return RONDO_OK;
  rondo_compiled_claim_inputs(program->compiled);
  RONDO_TRY(copy_part_inputs(runner, program, call));
  RONDO_TRY(is_eager ? rondo_compiled_run_eager(program->compiled) : rondo_compiled_run(program->compiled));
  program->has_run = true;
  return RONDO_OK;
}

static rondo_status run_until_known(rondo_onnx_runner *runner, rondo_onnx_runner_program *program, rondo_call *call) {
  const rondo_onnx_model_part *part = program->build->part;
  RONDO_TRY(run_part(runner, program, call));
  RONDO_TRY(read_cuts(runner, program, call));
  for (size_t i = 0; i < part->handed.count; i++) RONDO_TRY(keep_result(runner, program, part->handed.items[i]));
  return RONDO_OK;
}

/* No recording has a place for what the host does between two parts. */
static rondo_status refuse_capture(const rondo_onnx_runner *runner, rondo_call *call) {
  rondo_capture_info capture = {.struct_size = sizeof capture};
  RONDO_TRY(
      rondo_call_refuse(call, RONDO_SKIP_HOST_WORK,
                        "a model in parts, between which the host reads values; each part is recorded by itself"));
  RONDO_TRY(rondo_capture_get_info(runner->stream, &capture));
  if (capture.state == RONDO_CAPTURE_NONE) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_RECORDED,
                    "the stream captures, and the model must wait for values between its parts: call it outside of the "
                    "capture");
}

/* Parts that are not kept, of those after the first. */
static rondo_status free_parts(const rondo_onnx_runner *runner, rondo_onnx_runner_program *last,
                               const rondo_onnx_runner_program *first) {
  rondo_status status = RONDO_OK;
  if (last != first && !last->is_kept) status = rondo_stream_synchronize(runner->stream);
  while (last != first && !last->is_kept) {
    rondo_onnx_runner_program *before = last->before;
    RONDO_THEN(status, rondo_onnx_free_program(runner, last));
    last = before;
  }
  return status;
}

rondo_status rondo_onnx_run_parts(rondo_onnx_runner *runner, rondo_onnx_runner_program *first, rondo_call *call) {
  rondo_onnx_runner_program *program = first, *next;
  rondo_status status = refuse_capture(runner, call);
  while (status == RONDO_OK && rondo_onnx_is_cut(program->build->part)) {
    status = run_until_known(runner, program, call);
    if (status == RONDO_OK)
      status = rondo_onnx_take_program(runner, &(rondo_onnx_program_key){.before = program}, call, &next);
    if (status == RONDO_OK) program = next;
  }
  if (status == RONDO_OK) status = run_part(runner, program, call);
  if (status == RONDO_OK) status = copy_outputs(runner, program, call);
  RONDO_THEN(status, free_parts(runner, program, first));
  return status;
}

/* SPDX-License-Identifier: MIT
 * A model as the body of a tree's function. Each form of inputs has a program, whose memory has fixed addresses: a run
 * copies the inputs there, enqueues the program's work, and copies the results out. So the only addresses in a
 * recording that change are those of copies, which trees can patch. A model that must wait for values has a program for
 * each part, and runs as the part of no recording.
 *
 * Threads: one at a time, together with the stream.
 */
#include <string.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "onnx/run/runner_programs.h"
#include "onnx/run/runner_run.h"
#include "tensor/run/arena_use.h"

enum { MOST_PROGRAMS = 64 };

/* Calls ------------------------------------------------------------------------------------------------------------ */

static bool has_more_inputs(const rondo_onnx_runner *runner, const rondo_call *call) {
  rondo_input input;
  rondo_saved_error before;
  rondo_error_save(&before);
  const bool has_more = rondo_call_get_input(call, runner->input_count, &input) == RONDO_OK;
  rondo_error_restore(&before);
  return has_more;
}

static rondo_status read_forms(const rondo_onnx_runner *runner, const rondo_call *call, rondo_onnx_input_form *out) {
  rondo_input input;
  for (size_t i = 0; i < runner->input_count; i++) {
    if (rondo_call_get_input(call, i, &input) != RONDO_OK)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT,
                        "the function has %zu inputs, and the model %zu: '%s' is missing", i, runner->input_count,
                        rondo_onnx_call_input_name(runner, i));
    out[i].rank = input.rank;
    memcpy(out[i].shape, input.shape, input.rank * sizeof *input.shape);
  }
  if (!has_more_inputs(runner, call)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT,
                    "the function has more inputs than the model, which has %zu", runner->input_count);
}

static rondo_status run(rondo_onnx_runner *runner, const rondo_onnx_input_form *forms, rondo_call *call) {
  rondo_onnx_runner_program *program;
  RONDO_TRY(rondo_onnx_take_program(runner, &(rondo_onnx_program_key){.forms = forms}, call, &program));
  rondo_status status = rondo_onnx_is_cut(program->build->part) ? rondo_onnx_run_parts(runner, program, call)
                                                                : rondo_onnx_run_whole(runner, program, call);
  if (program->is_kept) return status;
  RONDO_THEN(status, rondo_stream_synchronize(runner->stream)); /* copies read what is freed next */
  RONDO_THEN(status, rondo_onnx_free_program(runner, program));
  return status;
}

static rondo_status read_and_run(rondo_onnx_runner *runner, rondo_call *call) {
  rondo_onnx_input_form *forms;
  if (rondo_call_stream(call) != runner->stream)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                      "the call is on another stream than that of the runner");
  RONDO_TRY(rondo_allocate_items(&runner->allocator, runner->input_count, sizeof *forms, &forms));
  rondo_status status = read_forms(runner, call, forms);
  if (status == RONDO_OK) status = run(runner, forms, call);
  rondo_release(&runner->allocator, forms, runner->input_count, sizeof *forms);
  return status;
}

rondo_status rondo_onnx_run(rondo_call *call, void *runner) {
  RONDO_TRY(rondo_require("rondo_onnx_run", "call", call));
  RONDO_TRY(rondo_require("rondo_onnx_run", "runner", runner));
  return rondo_fail_context(read_and_run(runner, call), "rondo_onnx_run");
}

rondo_status rondo_onnx_runner_synchronize(rondo_onnx_runner *runner) {
  RONDO_TRY(rondo_require("rondo_onnx_runner_synchronize", "runner", runner));
  rondo_status status = rondo_stream_synchronize(runner->stream);
  for (size_t i = 0; i < runner->programs.count; i++)
    if (runner->programs.items[i]->compiled != NULL)
      RONDO_THEN(status, rondo_compiled_synchronize(runner->programs.items[i]->compiled));
  return status;
}

/* Lifetime --------------------------------------------------------------------------------------------------------- */

static rondo_status list_inputs(rondo_onnx_runner *runner) {
  RONDO_TRY(rondo_onnx_list_inputs(&runner->scratch, runner->model, &runner->options, &runner->listed));
  RONDO_TRY(rondo_scratch_take(&runner->scratch, runner->listed.count, sizeof *runner->inputs, &runner->inputs));
  for (size_t i = 0; i < runner->listed.count; i++)
    if (!rondo_onnx_has_given_value(&runner->options, runner->listed.items[i].value.name))
      runner->inputs[runner->input_count++] = i;
  return RONDO_OK;
}

static rondo_status fill_runner(rondo_onnx_runner *runner, const rondo_onnx_runner_options *options) {
  rondo_device_info device = {.struct_size = sizeof device};
  RONDO_TRY(rondo_device_get_info(rondo_stream_device(runner->stream), &device));
  runner->max_programs = options->max_programs != 0 ? options->max_programs : MOST_PROGRAMS;
  RONDO_TRY(rondo_versioned_read("rondo_compile_options", options->compile, &runner->compile, sizeof runner->compile));
  runner->compile.record = RONDO_RECORD_NEVER;
  runner->compile.staged = NULL;
  runner->compile.staged_count = 0;
  runner->compile.stream = runner->stream;
  RONDO_TRY(rondo_scratch_text(&runner->scratch, runner->compile.without_patterns, &runner->compile.without_patterns));
  RONDO_TRY(rondo_onnx_keep_options(&runner->scratch, options->build, &runner->options));
  runner->options.for_cuda |= device.cuda;
  return list_inputs(runner);
}

rondo_status rondo_onnx_runner_create(const rondo_onnx_model *model, rondo_stream *stream,
                                      const rondo_onnx_runner_options *options, rondo_onnx_runner **out_runner) {
  static const char call[] = "rondo_onnx_runner_create";
  rondo_onnx_runner_options known;
  rondo_allocator allocator;
  rondo_onnx_runner *made;
  RONDO_TRY(rondo_require(call, "out_runner", out_runner));
  *out_runner = NULL;
  RONDO_TRY(rondo_require(call, "model", model));
  RONDO_TRY(rondo_require(call, "stream", stream));
  RONDO_TRY(rondo_versioned_read("rondo_onnx_runner_options", options, &known, sizeof known));
  RONDO_TRY(rondo_allocator_resolve(known.allocator, &allocator));
  RONDO_TRY(rondo_allocate_items(&allocator, 1, sizeof *made, &made));
  *made = (rondo_onnx_runner){.allocator = allocator, .model = model, .stream = stream};
  made->scratch.allocator = &made->allocator;
  rondo_status status = fill_runner(made, &known);
  if (status == RONDO_OK)
    *out_runner = made;
  else
    RONDO_THEN(status, rondo_onnx_runner_destroy(made));
  return rondo_fail_context(status, "%s", call);
}

rondo_status rondo_onnx_runner_destroy(rondo_onnx_runner *runner) {
  rondo_status status = RONDO_OK;
  if (runner == NULL) return RONDO_OK;
  const rondo_allocator allocator = runner->allocator;
  if (runner->programs.count > 0) /* copies of constants read what is freed next */
    status = rondo_stream_synchronize(runner->stream);
  for (size_t i = 0; i < runner->programs.count; i++)
    RONDO_THEN(status, rondo_onnx_free_program(runner, runner->programs.items[i]));
  rondo_array_free(&allocator, &runner->programs);
  rondo_scratch_free(&runner->scratch);
  rondo_release(&allocator, runner, 1, sizeof *runner);
  return status;
}

rondo_status rondo_onnx_runner_get_info(const rondo_onnx_runner *runner, rondo_onnx_runner_info *out_info) {
  RONDO_TRY(rondo_require("rondo_onnx_runner_get_info", "runner", runner));
  RONDO_TRY(rondo_require("rondo_onnx_runner_get_info", "out_info", out_info));
  const rondo_compiled *shared = rondo_onnx_find_shared(runner);
  rondo_onnx_runner_info info = runner->info;
  uint64_t largest;
  info.programs = (uint32_t)runner->programs.count;
  info.arena_bytes = shared == NULL ? 0 : rondo_compiled_arenas(shared, &largest);
  return rondo_versioned_write("rondo_onnx_runner_info", &info, out_info, sizeof *out_info);
}

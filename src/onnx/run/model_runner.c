/* SPDX-License-Identifier: MIT
 * A model as the body of a tree's function. Each form of inputs has a program, whose memory has fixed addresses: a run
 * copies the inputs there, enqueues the program's work, and copies the results out. So the only addresses in a
 * recording that change are those of copies, which trees can patch.
 *
 * Invariant: programs that recordings may have captured stay until the runner is destroyed. All of them are compiled
 * for the runner's stream, and share the states of the first one.
 * Threads: one at a time, together with the stream.
 */
#include <rondo/capture.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/versioned_struct.h"
#include "onnx/import/build_result.h"
#include "onnx/run/kept_options.h"
#include "tensor/compile/program_record.h"
#include "tensor/files/weights_program.h"
#include "tensor/run/arena_use.h"
#include "tensor/run/named_values.h"

enum { MOST_PROGRAMS = 64 };

/* The shape of an input of a call. */
typedef struct input_form {
  size_t rank, shape[RONDO_TREE_MAX_RANK];
} input_form;

typedef struct runner_program {
  input_form *forms; /* of the runner's inputs */
  rondo_onnx_build *build;
  rondo_compiled *compiled; /* NULL: no output depends on a run */
} runner_program;

struct rondo_onnx_runner {
  rondo_allocator allocator;
  rondo_scratch scratch; /* of the options */
  const rondo_onnx_model *model;
  rondo_stream *stream;
  rondo_onnx_build_options options;
  rondo_compile_options compile;
  rondo_onnx_input_list listed; /* the inputs of the model */
  size_t *inputs;               /* those of them that calls have */
  size_t input_count;
  uint32_t max_programs;
  RONDO_ARRAY(runner_program) programs;
  rondo_onnx_runner_info info;
};

/* Programs --------------------------------------------------------------------------------------------------------- */

static rondo_status free_program(const rondo_onnx_runner *runner, runner_program *program) {
  const rondo_status status = rondo_compiled_destroy(program->compiled);
  rondo_onnx_build_destroy(program->build);
  rondo_release(&runner->allocator, program->forms, runner->input_count, sizeof *program->forms);
  *program = (runner_program){0};
  return status;
}

/* The first program with states and an arena, which others share; NULL before it is compiled. */
static rondo_compiled *find_shared(const rondo_onnx_runner *runner) {
  for (size_t i = 0; i < runner->programs.count; i++)
    if (runner->programs.items[i].compiled != NULL) return runner->programs.items[i].compiled;
  return NULL;
}

/* rondo_weight_filter; user: the runner. Other states exist and have their values. */
static bool is_new_state(const char *name, void *user) {
  const rondo_onnx_runner *runner = user;
  for (size_t i = 0; i < runner->programs.count; i++) {
    const rondo_compiled *compiled = runner->programs.items[i].compiled;
    if (compiled != NULL && rondo_values_look_up(compiled, name, "s") != NULL) return false;
  }
  return true;
}

static rondo_status load_weights(rondo_onnx_runner *runner, const runner_program *program) {
  const rondo_kept_values fresh = {.only = is_new_state, .user = runner, .moves = true};
  RONDO_TRY(rondo_weights_check_kept(program->build->weights, program->compiled, &fresh));
  return rondo_weights_apply_kept(program->build->weights, program->compiled, &fresh);
}

static const char *input_name(const rondo_onnx_runner *runner, size_t index) {
  return runner->listed.items[runner->inputs[index]].value.name;
}

static rondo_status build_program(const rondo_onnx_runner *runner, const input_form *forms, rondo_program *program,
                                  rondo_onnx_build **out) {
  rondo_scratch scratch = {.allocator = &runner->allocator};
  rondo_onnx_varied_options varied;
  const rondo_onnx_sharing sharing = {.listed = &runner->listed};
  rondo_status status = rondo_onnx_vary_options(&scratch, &runner->options, &runner->listed, 0, &varied);
  for (size_t i = 0; i < runner->input_count && status == RONDO_OK; i++) {
    rondo_onnx_given_input *given = rondo_onnx_varied_input(&varied, input_name(runner, i));
    if (forms[i].rank == 0) continue; /* the shape is that of the options, or of the model */
    given->shape = forms[i].shape;
    given->rank = forms[i].rank;
  }
  if (status == RONDO_OK) status = rondo_onnx_build_sharing(runner->model, &varied.options, &sharing, program, out);
  rondo_scratch_free(&scratch);
  return status;
}

/* Whether an output depends on a run. A call has no place for a count, and for few dimensions. */
static rondo_status check_outputs(const rondo_onnx_build *build, bool *out_has_results) {
  *out_has_results = false;
  for (size_t i = 0; i < build->outputs.count; i++) {
    const rondo_onnx_built_value *output = &build->outputs.items[i];
    if (output->count_name != NULL)
      return rondo_fail(
          RONDO_UNSUPPORTED, RONDO_REASON_SHAPE,
          "the size of output '%s' depends on data, and a call does not return it: give the values of the "
          "inputs it depends on, or use rondo_onnx_build_program and read '%s'",
          output->name, output->count_name);
    if (output->rank > RONDO_TREE_MAX_RANK)
      return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_SHAPE, "output '%s' has %zu dimensions, and calls at most %d",
                        output->name, output->rank, RONDO_TREE_MAX_RANK);
    *out_has_results |= output->program_name != NULL;
  }
  return RONDO_OK;
}

/* No input is there whose value the options give: calls do not have it. */
static rondo_status check_inputs(const rondo_onnx_runner *runner, const rondo_onnx_build *build) {
  for (size_t i = 0; i < build->inputs.count; i++) {
    const rondo_onnx_built_value *input = &build->inputs.items[i];
    if (input->program_name != NULL && rondo_onnx_has_given_value(&runner->options, input->name))
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                        "the options give the value of input '%s', which the program does not need to know: leave it "
                        "out of the options, and pass the input to calls",
                        input->name);
  }
  return RONDO_OK;
}

/* A program that is not kept leaves no memory: only the states that exist are shared. */
static rondo_status compile(rondo_onnx_runner *runner, rondo_program *program, bool is_kept, runner_program *inout) {
  rondo_compile_options options = runner->compile;
  bool has_results;
  RONDO_TRY(build_program(runner, inout->forms, program, &inout->build));
  RONDO_TRY(check_outputs(inout->build, &has_results));
  RONDO_TRY(check_inputs(runner, inout->build));
  if (!has_results) return RONDO_OK;
  options.share = find_shared(runner);
  options.share_states_only = !is_kept && options.share != NULL;
  RONDO_TRY(rondo_compile(program, rondo_stream_device(runner->stream), &options, &inout->compiled));
  return load_weights(runner, inout);
}

static rondo_status make_program(rondo_onnx_runner *runner, const input_form *forms, bool is_kept,
                                 runner_program *out) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = runner->model->info.graph_name,
                                         .allocator = &runner->allocator};
  rondo_program *program;
  *out = (runner_program){0};
  RONDO_TRY(rondo_allocate_copy(&runner->allocator, forms, runner->input_count, sizeof *forms, &out->forms));
  rondo_status status = rondo_program_create(&options, &program);
  if (status == RONDO_OK) {
    status = compile(runner, program, is_kept, out);
    rondo_program_destroy(program);
  }
  if (status != RONDO_OK) RONDO_THEN(status, free_program(runner, out));
  return status;
}

/* Before the program is kept. */
static rondo_status count_memory(rondo_onnx_runner *runner, const runner_program *program) {
  rondo_compiled_info info = {.struct_size = sizeof info};
  if (program->compiled == NULL) return RONDO_OK;
  RONDO_TRY(rondo_compiled_get_info(program->compiled, &info));
  for (size_t i = 0; i < program->build->weights->entries.count; i++) {
    const rondo_weights_entry *weight = &program->build->weights->entries.items[i];
    if (is_new_state(weight->name, runner)) runner->info.state_bytes += rondo_shape_bytes(&weight->shape);
  }
  if (info.arena_bytes <= runner->info.planned_bytes) return RONDO_OK;
  runner->info.planned_bytes = info.arena_bytes;
  runner->info.unplanned_bytes = info.sum_bytes;
  return RONDO_OK;
}

static rondo_status keep_program(rondo_onnx_runner *runner, const input_form *forms) {
  runner_program program;
  RONDO_TRY(rondo_array_reserve(&runner->allocator, &runner->programs, runner->programs.count + 1));
  RONDO_TRY(make_program(runner, forms, true, &program));
  rondo_status status = count_memory(runner, &program);
  rondo_onnx_build_free_weights(program.build); /* the program has them */
  if (status == RONDO_OK) status = rondo_array_push(&runner->allocator, &runner->programs, &program);
  if (status != RONDO_OK) RONDO_THEN(status, free_program(runner, &program));
  return status;
}

static bool has_forms(const rondo_onnx_runner *runner, const runner_program *program, const input_form *forms) {
  for (size_t i = 0; i < runner->input_count; i++) {
    const input_form *a = &program->forms[i], *b = &forms[i];
    if (a->rank != b->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0) return false;
  }
  return true;
}

static const runner_program *find_program(const rondo_onnx_runner *runner, const input_form *forms) {
  for (size_t i = 0; i < runner->programs.count; i++)
    if (has_forms(runner, &runner->programs.items[i], forms)) return &runner->programs.items[i];
  return NULL;
}

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

static rondo_status copy_input(const rondo_onnx_runner *runner, const runner_program *program, rondo_call *call,
                               size_t index) {
  const rondo_onnx_built_value *value = &program->build->inputs.items[runner->inputs[index]];
  rondo_input input;
  if (value->program_name == NULL || program->compiled == NULL) return RONDO_OK;
  RONDO_TRY(rondo_call_get_input(call, index, &input));
  RONDO_TRY(check_input(value, &input));
  const rondo_named_value *slot = rondo_values_look_up(program->compiled, value->program_name, "i");
  return rondo_copy_async(runner->stream, slot->address, rondo_call_input(call, index), input.bytes);
}

static bool has_more_inputs(const rondo_onnx_runner *runner, const rondo_call *call) {
  rondo_input input;
  rondo_saved_error before;
  rondo_error_save(&before);
  const bool has_more = rondo_call_get_input(call, runner->input_count, &input) == RONDO_OK;
  rondo_error_restore(&before);
  return has_more;
}

static rondo_status read_forms(const rondo_onnx_runner *runner, const rondo_call *call, input_form *out) {
  rondo_input input;
  for (size_t i = 0; i < runner->input_count; i++) {
    if (rondo_call_get_input(call, i, &input) != RONDO_OK)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT,
                        "the function has %zu inputs, and the model %zu: '%s' is missing", i, runner->input_count,
                        input_name(runner, i));
    out[i].rank = input.rank;
    memcpy(out[i].shape, input.shape, input.rank * sizeof *input.shape);
  }
  if (!has_more_inputs(runner, call)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT,
                    "the function has more inputs than the model, which has %zu", runner->input_count);
}

/* Outputs ---------------------------------------------------------------------------------------------------------- */

static bool is_empty(const rondo_onnx_built_value *value) {
  for (size_t i = 0; i < value->rank; i++)
    if (value->shape[i] == 0) return true;
  return false;
}

/* Where the elements of an output are: in the program, or in host memory if they are the same in each run. */
static rondo_status find_elements(const runner_program *program, size_t index, rondo_output_options *inout,
                                  const void **out_elements, size_t *out_bytes) {
  const rondo_onnx_built_value *value = &program->build->outputs.items[index];
  inout->type = (uint32_t)value->type;
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

static rondo_status copy_output(const rondo_onnx_runner *runner, const runner_program *program, rondo_call *call,
                                size_t index) {
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

static rondo_status enqueue(const rondo_onnx_runner *runner, const runner_program *program, rondo_call *call) {
  rondo_capture_info capture = {.struct_size = sizeof capture};
  RONDO_TRY(rondo_capture_get_info(runner->stream, &capture));
  if (program->compiled != NULL) rondo_compiled_claim_inputs(program->compiled);
  for (size_t i = 0; i < runner->input_count; i++) RONDO_TRY(copy_input(runner, program, call, i));
  if (program->compiled != NULL)
    RONDO_TRY(capture.state == RONDO_CAPTURE_NONE ? rondo_compiled_run_eager(program->compiled)
                                                  : rondo_compiled_record_into(program->compiled));
  for (size_t i = 0; i < program->build->outputs.count; i++) RONDO_TRY(copy_output(runner, program, call, i));
  return RONDO_OK;
}

/* Beyond the limit of programs: no recording may have the addresses of this one. */
static rondo_status run_temporary(rondo_onnx_runner *runner, const input_form *forms, rondo_call *call) {
  runner_program program;
  RONDO_TRY(rondo_call_refuse(call, RONDO_SKIP_UNKNOWN_SHAPE,
                              "a model with more forms of inputs than rondo_onnx_runner_options.max_programs"));
  RONDO_TRY(make_program(runner, forms, false, &program));
  runner->info.temporary++;
  rondo_status status = enqueue(runner, &program, call);
  RONDO_THEN(status, rondo_stream_synchronize(runner->stream)); /* copies read what is freed next */
  RONDO_THEN(status, free_program(runner, &program));
  return status;
}

static rondo_status run(rondo_onnx_runner *runner, const input_form *forms, rondo_call *call) {
  const runner_program *program = find_program(runner, forms);
  if (program == NULL) {
    if (runner->programs.count == runner->max_programs) return run_temporary(runner, forms, call);
    RONDO_TRY(keep_program(runner, forms));
    program = find_program(runner, forms);
  }
  return enqueue(runner, program, call);
}

static rondo_status read_and_run(rondo_onnx_runner *runner, rondo_call *call) {
  input_form *forms;
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
    if (runner->programs.items[i].compiled != NULL)
      RONDO_THEN(status, rondo_compiled_synchronize(runner->programs.items[i].compiled));
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
    RONDO_THEN(status, free_program(runner, &runner->programs.items[i]));
  rondo_array_free(&allocator, &runner->programs);
  rondo_scratch_free(&runner->scratch);
  rondo_release(&allocator, runner, 1, sizeof *runner);
  return status;
}

rondo_status rondo_onnx_runner_get_info(const rondo_onnx_runner *runner, rondo_onnx_runner_info *out_info) {
  RONDO_TRY(rondo_require("rondo_onnx_runner_get_info", "runner", runner));
  RONDO_TRY(rondo_require("rondo_onnx_runner_get_info", "out_info", out_info));
  const rondo_compiled *shared = find_shared(runner);
  rondo_onnx_runner_info info = runner->info;
  uint64_t largest;
  info.programs = (uint32_t)runner->programs.count;
  info.arena_bytes = shared == NULL ? 0 : rondo_compiled_arenas(shared, &largest);
  return rondo_versioned_write("rondo_onnx_runner_info", &info, out_info, sizeof *out_info);
}

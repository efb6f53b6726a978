/* SPDX-License-Identifier: MIT
 * Making, finding and freeing the programs of a runner. A part of a model has device memory for the values that it
 * hands on, because parts share an arena.
 */
#include "onnx/run/runner_programs.h"

#include <string.h>

#include "base/error.h"
#include "onnx/format/widened_elements.h"
#include "onnx/import/constant.h"
#include "tensor/files/weights_program.h"
#include "tensor/run/named_values.h"

enum { MOST_PARTS = 4096 }; /* of a call, so that a loop in a bad file ends */

/* Freeing ---------------------------------------------------------------------------------------------------------- */

static rondo_status free_handed(const rondo_onnx_runner *runner, const rondo_onnx_model_part *part) {
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < part->handed.count; i++)
    RONDO_THEN(status, rondo_free(rondo_stream_device(runner->stream), part->handed.items[i]->memory));
  return status;
}

rondo_status rondo_onnx_free_program(const rondo_onnx_runner *runner, rondo_onnx_runner_program *program) {
  if (program == NULL) return RONDO_OK;
  rondo_status status = rondo_compiled_destroy(program->compiled);
  if (program->build != NULL && program->build->part != NULL) {
    RONDO_THEN(status, free_handed(runner, program->build->part));
    rondo_release(&runner->allocator, program->cut_values, program->build->part->cut_bytes, 1);
  }
  rondo_onnx_build_destroy(program->build);
  rondo_release(&runner->allocator, program->forms, runner->input_count, sizeof *program->forms);
  rondo_release(&runner->allocator, program, 1, sizeof *program);
  return status;
}

/* States ----------------------------------------------------------------------------------------------------------- */

rondo_compiled *rondo_onnx_find_shared(const rondo_onnx_runner *runner) {
  for (size_t i = 0; i < runner->programs.count; i++)
    if (runner->programs.items[i]->compiled != NULL) return runner->programs.items[i]->compiled;
  return NULL;
}

/* rondo_weight_filter; user: the runner. Other states exist and have their values. */
static bool is_new_state(const char *name, void *user) {
  const rondo_onnx_runner *runner = user;
  for (size_t i = 0; i < runner->programs.count; i++) {
    const rondo_compiled *compiled = runner->programs.items[i]->compiled;
    if (compiled != NULL && rondo_values_look_up(compiled, name, "s") != NULL) return false;
  }
  return true;
}

static rondo_status load_weights(rondo_onnx_runner *runner, const rondo_onnx_runner_program *program) {
  const rondo_kept_values fresh = {.only = is_new_state, .user = runner, .maps = true, .moves = true};
  RONDO_TRY(rondo_weights_check_kept(program->build->weights, program->compiled, &fresh));
  return rondo_weights_apply_kept(program->build->weights, program->compiled, &fresh);
}

/* Making ----------------------------------------------------------------------------------------------------------- */

const char *rondo_onnx_call_input_name(const rondo_onnx_runner *runner, size_t index) {
  return runner->listed.items[runner->inputs[index]].value.name;
}

/* The forms of the first part are those of all later ones. */
static const rondo_onnx_input_form *find_forms(const rondo_onnx_program_key *key) {
  const rondo_onnx_input_form *forms = key->forms;
  for (const rondo_onnx_runner_program *part = key->before; part != NULL; part = part->before) forms = part->forms;
  return forms;
}

static rondo_status build_program(const rondo_onnx_runner *runner, const rondo_onnx_program_key *key,
                                  rondo_program *program, rondo_onnx_build **out) {
  rondo_scratch scratch = {.allocator = &runner->allocator};
  rondo_onnx_varied_options varied;
  const rondo_onnx_input_form *forms = find_forms(key);
  const rondo_onnx_sharing sharing = {.listed = &runner->listed,
                                      .divides = true,
                                      .before = key->before != NULL ? key->before->build->part : NULL,
                                      .known = key->before != NULL ? key->before->cut_values : NULL};
  rondo_status status = rondo_onnx_vary_options(&scratch, &runner->options, &runner->listed, 0, &varied);
  for (size_t i = 0; i < runner->input_count && status == RONDO_OK; i++) {
    rondo_onnx_given_input *given = rondo_onnx_varied_input(&varied, rondo_onnx_call_input_name(runner, i));
    if (forms[i].rank == 0) continue; /* the shape is that of the options, or of the model */
    given->shape = forms[i].shape;
    given->rank = forms[i].rank;
  }
  if (status == RONDO_OK) status = rondo_onnx_build_sharing(runner->model, &varied.options, &sharing, program, out);
  rondo_scratch_free(&scratch);
  return status;
}

/* A call has no place for many dimensions. */
static rondo_status check_outputs(const rondo_onnx_build *build) {
  for (size_t i = 0; i < build->outputs.count; i++) {
    const rondo_onnx_built_value *output = &build->outputs.items[i];
    if (output->rank > RONDO_TREE_MAX_RANK)
      return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_SHAPE, "output '%s' has %zu dimensions, and calls at most %d",
                        output->name, output->rank, RONDO_TREE_MAX_RANK);
  }
  return RONDO_OK;
}

/* Whether there is something to run: an output of the model, or a value for later parts. */
static bool has_results(const rondo_onnx_build *build) {
  if (rondo_onnx_is_cut(build->part)) return build->part->handed.count > 0;
  for (size_t i = 0; i < build->outputs.count; i++)
    if (build->outputs.items[i].program_name != NULL && build->part->outputs.items[i] == NULL) return true;
  return false;
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

static rondo_status allocate_handed(const rondo_onnx_runner *runner, rondo_onnx_runner_program *inout) {
  const rondo_onnx_model_part *part = inout->build->part;
  RONDO_TRY(rondo_allocate_items(&runner->allocator, part->cut_bytes, 1, &inout->cut_values));
  for (size_t i = 0; i < part->handed.count; i++) {
    rondo_onnx_handed *handed = part->handed.items[i];
    const rondo_named_value *output = rondo_values_look_up(inout->compiled, handed->name, "o");
    RONDO_TRY(rondo_malloc(rondo_stream_device(runner->stream), rondo_shape_bytes(&output->shape), handed->name,
                           &handed->memory));
  }
  return RONDO_OK;
}

/* A whole model is recorded with the call, and a part by itself. A program that is not kept leaves no memory: only the
 * states that exist are shared. */
static rondo_status compile(rondo_onnx_runner *runner, const rondo_onnx_program_key *key, rondo_program *program,
                            rondo_onnx_runner_program *inout) {
  rondo_compile_options options = runner->compile;
  RONDO_TRY(build_program(runner, key, program, &inout->build));
  RONDO_TRY(check_outputs(inout->build));
  RONDO_TRY(check_inputs(runner, inout->build));
  const bool is_part = key->before != NULL || rondo_onnx_is_cut(inout->build->part);
  if (has_results(inout->build)) {
    options.share = rondo_onnx_find_shared(runner);
    options.share_states_only = !inout->is_kept && options.share != NULL;
    options.record = is_part && inout->is_kept ? RONDO_RECORD_ALWAYS : RONDO_RECORD_NEVER;
    RONDO_TRY(rondo_compile(program, rondo_stream_device(runner->stream), &options, &inout->compiled));
    RONDO_TRY(load_weights(runner, inout));
  }
  return allocate_handed(runner, inout);
}

static rondo_status check_number(const rondo_onnx_program_key *key) {
  if (key->before == NULL || key->before->build->part->number < MOST_PARTS) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                    "the model waits for values more than %d times in one call", MOST_PARTS);
}

static rondo_status make_program(rondo_onnx_runner *runner, const rondo_onnx_program_key *key, bool is_kept,
                                 rondo_onnx_runner_program **out) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = runner->model->info.graph_name,
                                         .allocator = &runner->allocator};
  rondo_program *program;
  RONDO_TRY(check_number(key));
  RONDO_TRY(rondo_allocate_items(&runner->allocator, 1, sizeof **out, out));
  **out = (rondo_onnx_runner_program){.before = key->before, .is_kept = is_kept};
  rondo_status status = RONDO_OK;
  if (key->before == NULL)
    status =
        rondo_allocate_copy(&runner->allocator, key->forms, runner->input_count, sizeof *key->forms, &(*out)->forms);
  if (status == RONDO_OK) status = rondo_program_create(&options, &program);
  if (status == RONDO_OK) {
    status = compile(runner, key, program, *out);
    rondo_program_destroy(program);
  }
  if (status != RONDO_OK) RONDO_THEN(status, rondo_onnx_free_program(runner, *out));
  return status;
}

/* Keeping ---------------------------------------------------------------------------------------------------------- */

/* Before the program is kept. */
static rondo_status count_memory(rondo_onnx_runner *runner, const rondo_onnx_runner_program *program) {
  rondo_compiled_info info = {.struct_size = sizeof info};
  if (program->compiled == NULL) return RONDO_OK;
  RONDO_TRY(rondo_compiled_get_info(program->compiled, &info));
  for (size_t i = 0; i < program->build->weights->entries.count; i++) {
    const rondo_weights_entry *weight = &program->build->weights->entries.items[i];
    if (is_new_state(weight->name, runner)) runner->info.state_bytes += rondo_shape_bytes(&weight->shape);
  }
  for (size_t i = 0; i < program->build->part->handed.count; i++) {
    const rondo_onnx_handed *handed = program->build->part->handed.items[i];
    runner->info.handed_bytes += rondo_shape_bytes(&rondo_values_look_up(program->compiled, handed->name, "o")->shape);
  }
  if (info.arena_bytes <= runner->info.planned_bytes) return RONDO_OK;
  runner->info.planned_bytes = info.arena_bytes;
  runner->info.unplanned_bytes = info.sum_bytes;
  return RONDO_OK;
}

static rondo_status keep_program(rondo_onnx_runner *runner, const rondo_onnx_program_key *key,
                                 rondo_onnx_runner_program **out) {
  RONDO_TRY(rondo_array_reserve(&runner->allocator, &runner->programs, runner->programs.count + 1));
  RONDO_TRY(make_program(runner, key, true, out));
  rondo_status status = count_memory(runner, *out);
  rondo_onnx_build_free_weights((*out)->build); /* the program has them */
  if (status == RONDO_OK) status = rondo_array_push(&runner->allocator, &runner->programs, out);
  if (status != RONDO_OK) {
    RONDO_THEN(status, rondo_onnx_free_program(runner, *out));
    return status;
  }
  runner->info.parts += (*out)->before != NULL || rondo_onnx_is_cut((*out)->build->part);
  return RONDO_OK;
}

static bool has_forms(const rondo_onnx_runner *runner, const rondo_onnx_runner_program *program,
                      const rondo_onnx_input_form *forms) {
  for (size_t i = 0; i < runner->input_count; i++) {
    const rondo_onnx_input_form *a = &program->forms[i], *b = &forms[i];
    if (a->rank != b->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0) return false;
  }
  return true;
}

static bool has_key(const rondo_onnx_runner *runner, const rondo_onnx_runner_program *program,
                    const rondo_onnx_program_key *key) {
  if (program->before != key->before) return false;
  if (key->before == NULL) return has_forms(runner, program, key->forms);
  return memcmp(program->build->part->known, key->before->cut_values, key->before->build->part->cut_bytes) == 0;
}

rondo_status rondo_onnx_take_program(rondo_onnx_runner *runner, const rondo_onnx_program_key *key, rondo_call *call,
                                     rondo_onnx_runner_program **out) {
  for (size_t i = 0; i < runner->programs.count; i++) {
    *out = runner->programs.items[i];
    if (has_key(runner, *out, key)) return RONDO_OK;
  }
  *out = NULL;
  const bool can_keep = key->before == NULL || key->before->is_kept;
  if (can_keep && runner->programs.count < runner->max_programs) return keep_program(runner, key, out);
  RONDO_TRY(rondo_call_refuse(call, RONDO_SKIP_UNKNOWN_SHAPE,
                              "a model with more forms of inputs than rondo_onnx_runner_options.max_programs"));
  RONDO_TRY(make_program(runner, key, false, out));
  runner->info.temporary++;
  return RONDO_OK;
}

/* SPDX-License-Identifier: MIT
 * Shared by the kinds of models: their table, programs with their parameters, and initial values.
 */
#include "models/model.h"

#include <stdlib.h>
#include <string.h>

#include "common/tool.h"
#include "models/model_quantized.h"

const model_size_row model_size_rows[MODEL_SIZES] = {
    [MODEL_CONTEXT] = {"context", MODEL_MAX_CONTEXT},
    [MODEL_EMBEDDING] = {"embedding", 1024},
    [MODEL_HIDDEN] = {"hidden", 16384},
    [MODEL_LAYERS] = {"layers", 64},
    [MODEL_WIDTH] = {"width", 4096},
    [MODEL_HEADS] = {"heads", 64},
};

/* Kinds ----------------------------------------------------------------------------------------------------------- */

static const model_kind *const kinds[] = {&model_character, &model_gpt};
#define KINDS (sizeof kinds / sizeof kinds[0])

const model_kind *model_kind_named(const char *name) {
  for (size_t i = 0; i < KINDS; i++) {
    if (strcmp(kinds[i]->name, name) == 0) return kinds[i];
  }
  return NULL;
}

const model_kind *model_kind_of_format(const char *format) {
  for (size_t i = 0; i < KINDS; i++) {
    if (strcmp(kinds[i]->format, format) == 0) return kinds[i];
  }
  return NULL;
}

const char *model_kind_names(void) { return "character or gpt"; }

bool model_sizes_fit(const language_model *model, char why[MODEL_WHY_BYTES]) {
  return model->kind->sizes_fit == NULL || model->kind->sizes_fit(model, why);
}

size_t model_labels(const language_model *model) {
  return model->kind->predicts_each ? model->sizes[MODEL_CONTEXT] : 1;
}

static size_t elements_of(const model_parameter *p) { return p->shape[0] * (p->rank == 2 ? p->shape[1] : 1); }

double model_parameter_elements(const language_model *model) {
  double sum = 0;
  model_parameter p;
  for (size_t i = 0; model->kind->parameter(model, i, &p); i++) sum += (double)elements_of(&p);
  return sum;
}

/* Or the scales of one. */
static bool is_of(const char *name, const char *parameter) {
  const size_t length = strlen(parameter);
  return strncmp(name, parameter, length) == 0 && (name[length] == '\0' || strcmp(name + length, ".scales") == 0);
}

bool model_is_parameter(const char *name, void *user) {
  (void)user;
  for (size_t k = 0; k < KINDS; k++) {
    const language_model any = {.kind = kinds[k], .sizes = {[MODEL_LAYERS] = model_size_rows[MODEL_LAYERS].most}};
    model_parameter p;
    for (size_t i = 0; any.kind->parameter(&any, i, &p); i++) {
      if (is_of(name, p.name)) return true;
    }
  }
  return false;
}

/* Programs -------------------------------------------------------------------------------------------------------- */

static rondo_status add_states(const language_model *model, rondo_program *program, rondo_value *states) {
  model_parameter p;
  for (size_t i = 0; model->kind->parameter(model, i, &p); i++)
    TOOL_TRY(model_add_parameter(model, program, i, &p, &states[i]));
  return RONDO_OK;
}

/* MODEL_SCALES must suffice for the kind with the most parameters. */
_Static_assert(MODEL_SCALES >= 64 * 12 + 5, "the blocks' and five others");

rondo_status model_build(const language_model *model, rondo_program *program, size_t batch, rondo_value *out_logits) {
  rondo_value states[MODEL_MAX_PARAMETERS], tokens;
  TOOL_TRY(add_states(model, program, states));
  TOOL_TRY(
      rondo_program_input(program, "tokens", RONDO_I32, (size_t[]){batch, model->sizes[MODEL_CONTEXT]}, 2, &tokens));
  return model->kind->build(model, program, states, tokens, batch, out_logits);
}

rondo_status model_build_prompt(const language_model *model, rondo_program *program, size_t length) {
  rondo_value states[MODEL_MAX_PARAMETERS];
  TOOL_TRY(add_states(model, program, states));
  return model->kind->build_prompt(model, program, states, length);
}

rondo_status model_build_next(const language_model *model, rondo_program *program) {
  rondo_value states[MODEL_MAX_PARAMETERS];
  TOOL_TRY(add_states(model, program, states));
  return model->kind->build_next(model, program, states);
}

const rondo_row_inputs model_row_inputs = {
    .length = "length", .slot = "slot", .start = "start", .positions = "positions", .last = "last"};

rondo_status model_build_steps(void *user, const rondo_model_size *size, rondo_program *program) {
  const language_model *model = user;
  rondo_value states[MODEL_MAX_PARAMETERS];
  TOOL_TRY(add_states(model, program, states));
  return model->kind->build_steps(model, program, states, size);
}

rondo_status model_build_loss(const language_model *model, rondo_program *program, size_t batch,
                              rondo_value *out_loss) {
  const size_t shape[] = {batch, model_labels(model)};
  rondo_value logits, labels, loss;
  TOOL_TRY(model_build(model, program, batch, &logits));
  TOOL_TRY(rondo_program_input(program, "labels", RONDO_I32, shape, model->kind->predicts_each ? 2 : 1, &labels));
  TOOL_TRY(rondo_op_cross_entropy(program, logits, labels, &loss));
  if (out_loss) *out_loss = loss;
  return rondo_program_output(program, "loss", loss);
}

rondo_status model_build_step(const language_model *model, rondo_program *program, size_t batch,
                              const rondo_rate_options *schedule) {
  rondo_value loss, rate = {0};
  TOOL_TRY(model_build_loss(model, program, batch, &loss));
  if (!schedule) TOOL_TRY(rondo_program_cell(program, "learning_rate", 0, &rate));
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate, .schedule = schedule,
                                   .weight_decay = model->kind->weight_decay};
  return rondo_program_adam(program, loss, &adam);
}

/* Initial values -------------------------------------------------------------------------------------------------- */

static int write_even(rondo_compiled *compiled, const model_parameter *p, draw_source *source) {
  const size_t count = elements_of(p);
  float *values = calloc(count, sizeof *values);
  if (!values) return tool_fail_memory("the initial values of '%s'", p->name);
  for (size_t i = 0; i < count; i++)
    values[i] = p->range > 0 ? p->center + (float)(p->range * (2 * draw_unit(source) - 1)) : p->center;
  const rondo_status status = rondo_compiled_write(compiled, p->name, values, count * sizeof *values);
  free(values);
  return status ? tool_fail_status("the model's initial values") : TOOL_OK;
}

static int write_zeros(rondo_compiled *compiled, const rondo_compiled_value *state) {
  void *zeros = calloc(1, state->bytes);
  if (!zeros) return tool_fail_memory("the initial values of '%s'", state->name);
  const rondo_status status = rondo_compiled_write(compiled, state->name, zeros, state->bytes);
  free(zeros);
  return status ? tool_fail_status("the model's initial values") : TOOL_OK;
}

/* Sets all states to zero, including the optimizer's. */
static int zero_states(rondo_compiled *compiled) {
  for (size_t i = 0;; i++) {
    rondo_compiled_value state = {0};
    const rondo_status status = rondo_compiled_get_value(compiled, i, &state);
    if (status == RONDO_NOT_FOUND) return TOOL_OK;
    if (status) return tool_fail_status("the model's states");
    if (state.kind == 's' && write_zeros(compiled, &state) != TOOL_OK) return TOOL_FAILURE;
  }
}

int model_initialize(const language_model *model, rondo_compiled *compiled, uint64_t seed) {
  draw_source source = draw_create(seed, DRAW_PARAMETERS);
  model_parameter p;
  if (zero_states(compiled) != TOOL_OK) return TOOL_FAILURE;
  for (size_t i = 0; model->kind->parameter(model, i, &p); i++) {
    if (write_even(compiled, &p, &source) != TOOL_OK) return TOOL_FAILURE;
  }
  return TOOL_OK;
}

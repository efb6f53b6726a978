/* SPDX-License-Identifier: MIT
 * Describing a chain: its members in their order become steps, what they read of others becomes inputs, each once for
 * each way of reading it.
 */
#include <assert.h>
#include <string.h>

#include "tensor/compile/chain_plan.h"
#include "tensor/program/operator_registry.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

_Static_assert(sizeof(rondo_chain_form) ==
                   offsetof(rondo_chain_form, steps) + sizeof(rondo_chain_step) * RONDO_CHAIN_STEPS,
               "the form has no padding");

typedef struct describer {
  const rondo_program *program;
  const uint32_t *owners;
  rondo_chain *chain;
} describer;

static const rondo_operation *member_at(const describer *d, uint32_t step) {
  return &d->program->operations.items[d->chain->members[step]];
}

/* Layouts ---------------------------------------------------------------------------------------------------------- */

static rondo_chain_layout lay_out(const rondo_shape *input, const rondo_shape *result) {
  rondo_chain_layout layout = {0};
  size_t strides[RONDO_MAX_DIMENSIONS];
  rondo_broadcast_strides(input, result, strides);
  for (uint32_t d = 0; d < result->rank; d++) {
    const size_t dim = result->dims[d];
    if (dim == 1) continue;
    if (layout.rank == 0 || layout.strides[layout.rank - 1] != strides[d] * dim) layout.dims[layout.rank++] = 1;
    layout.dims[layout.rank - 1] *= dim;
    layout.strides[layout.rank - 1] = strides[d];
  }
  return layout;
}

/* Finds the layout, or adds it if it is new, and sets *out_reading to its reading. Returns false if the form has no
 * space for another one. */
static bool find_layout(rondo_chain_form *form, const rondo_chain_layout *layout, uint8_t *out_reading) {
  uint8_t i = 0;
  while (i < form->layout_count && memcmp(&form->layouts[i], layout, sizeof *layout) != 0) i++;
  if (i == RONDO_CHAIN_LAYOUTS) return false;
  if (i == form->layout_count) form->layouts[form->layout_count++] = *layout;
  *out_reading = (uint8_t)(RONDO_CHAIN_LAYOUT + i);
  return true;
}

static bool splits_packs(const rondo_chain_layout *layout) {
  return layout->rank > 1 && layout->dims[layout->rank - 1] % RONDO_CHAIN_PACK != 0;
}

static size_t count_packs(const rondo_chain_form *form) {
  for (uint32_t i = 0; i < form->layout_count; i++) {
    if (splits_packs(&form->layouts[i])) return 0;
  }
  return form->count / RONDO_CHAIN_PACK;
}

/* Inputs ----------------------------------------------------------------------------------------------------------- */

static bool is_element(const rondo_operation *member, uint32_t term) {
  return term + member->row->element.others < member->row->required;
}

static bool find_reading(describer *d, const rondo_operation *member, uint32_t term, uint8_t *out_reading) {
  rondo_chain_form *form = &d->chain->form;
  const rondo_shape *input = rondo_program_shape(d->program, member->inputs[term]);
  *out_reading = RONDO_CHAIN_WHOLE;
  if (!is_element(member, term)) return true;
  *out_reading = RONDO_CHAIN_EACH;
  if (rondo_shape_elements(input) == form->count) return true;
  const rondo_chain_layout layout = lay_out(input, rondo_program_shape(d->program, member->results[0]));
  return find_layout(form, &layout, out_reading);
}

static bool add_input(describer *d, uint32_t value, uint8_t reading, uint8_t *out_term) {
  rondo_chain_form *form = &d->chain->form;
  uint32_t *inputs = d->chain->operation.inputs;
  uint8_t i = 0;
  while (i < form->input_count && (d->owners[inputs[i]] != d->owners[value] || form->inputs[i].reading != reading)) {
    i++;
  }
  if (i == RONDO_CHAIN_INPUTS) return false;
  if (i == form->input_count) {
    inputs[i] = value;
    form->inputs[i] =
        (rondo_chain_input){.type = (uint8_t)rondo_program_shape(d->program, value)->type, .reading = reading};
    form->input_count++;
  }
  *out_term = i;
  return true;
}

/* A step before, whose elements are all that there is of it, or an input. */
static bool add_term(describer *d, uint32_t step, uint32_t term, uint8_t *out_term) {
  const rondo_operation *member = member_at(d, step);
  const uint32_t value = member->inputs[term];
  uint8_t reading;
  for (uint32_t before = 0; before < step; before++) {
    if (member_at(d, before)->results[0] != d->owners[value]) continue;
    *out_term = (uint8_t)(RONDO_CHAIN_INPUTS + before);
    return is_element(member, term);
  }
  return find_reading(d, member, term, &reading) && add_input(d, value, reading, out_term);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static bool add_step(describer *d, uint32_t number) {
  const rondo_operation *member = member_at(d, number);
  rondo_chain_form *form = &d->chain->form;
  rondo_chain_step *step = &form->steps[number];
  step->row = rondo_operator_number(member->row);
  step->type = (uint8_t)rondo_program_shape(d->program, member->results[0])->type;
  memcpy(form->numbers[number].numbers, member->attributes.numbers, sizeof form->numbers[number].numbers);
  form->numbers[number].size = member->attributes.sizes[0];
  for (uint32_t term = 0; term < member->row->required; term++) {
    if (!add_term(d, number, term, &step->terms[term])) return false;
  }
  return true;
}

bool rondo_chain_describe(const rondo_program *program, const uint32_t *owners, rondo_chain *chain) {
  describer d = {.program = program, .owners = owners, .chain = chain};
  const rondo_operation *last = member_at(&d, chain->count - 1);
  const rondo_shape *result = rondo_program_shape(program, last->results[0]);
  chain->operation = (rondo_operation){.row = &rondo_operator_chain};
  for (uint32_t i = 0; i < RONDO_MAX_OPERANDS; i++) chain->operation.inputs[i] = RONDO_NO_VALUE;
  memcpy(chain->operation.results, last->results, sizeof last->results);
  memset(&chain->form, 0, sizeof chain->form);
  chain->form.count = rondo_shape_elements(result);
  chain->form.result_type = (uint8_t)result->type;
  chain->form.step_count = (uint8_t)chain->count;
  for (uint32_t i = 0; i < chain->count; i++) {
    if (!add_step(&d, i)) return false;
  }
  chain->form.packs = count_packs(&chain->form);
  return true;
}

rondo_chain rondo_chain_of_one(const rondo_program *program, const uint32_t *owners, uint32_t operation) {
  rondo_chain alone = {.members = {operation}, .count = 1, .place = operation};
  const bool fits = rondo_chain_describe(program, owners, &alone);
  assert(fits);
  (void)fits;
  return alone;
}

void rondo_chain_name(const rondo_program *program, const rondo_chain *chain, char *buffer, size_t capacity) {
  size_t used = 0;
  buffer[0] = '\0';
  for (uint32_t i = 0; i < chain->count; i++) {
    const char *name = program->operations.items[chain->members[i]].row->name;
    const size_t bytes = strlen(name) + (i > 0);
    if (used + bytes + sizeof "+..." > capacity) {
      memcpy(buffer + used, "+...", sizeof "+...");
      return;
    }
    if (i > 0) buffer[used++] = '+';
    memcpy(buffer + used, name, strlen(name) + 1);
    used += strlen(name);
  }
}

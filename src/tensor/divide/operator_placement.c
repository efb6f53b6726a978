/* SPDX-License-Identifier: MIT
 * Finding places. Updates are placed last, so that states lie where they are read.
 */
#include "tensor/divide/operator_placement.h"

#include <string.h>

#include "tensor/compile/schedule.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

typedef struct finder {
  const rondo_program *program;
  const rondo_placement_list *list;
  rondo_placements *places;
} finder;

static const rondo_operation *operation_at(const finder *f, uint32_t number) {
  return &f->program->operations.items[number];
}

/* The list of devices and rules ------------------------------------------------------------------------------------ */

static rondo_status list_devices(const char *caller, rondo_device *const *devices, size_t count,
                                 rondo_placement_list *out) {
  if (count == 0 || count > RONDO_MAX_PLACES)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: %zu devices are given: give 1 to %d",
                      caller, count, RONDO_MAX_PLACES);
  out->count = count;
  for (uint32_t i = 0; i < count; i++) {
    rondo_device_info info = {.struct_size = sizeof info};
    RONDO_TRY(rondo_require(caller, "a device of the list", devices[i]));
    RONDO_TRY(rondo_device_get_info(devices[i], &info));
    memcpy(out->names[i], info.name, sizeof out->names[i]);
    out->first[i] = i;
    for (uint32_t k = i; k-- > 0;)
      if (devices[k] == devices[i]) out->first[i] = k;
  }
  return RONDO_OK;
}

static rondo_status check_rules(const char *caller, const rondo_placement_list *list) {
  if (list->rule_count > 0) RONDO_TRY(rondo_require(caller, "rules", list->rules));
  for (size_t i = 0; i < list->rule_count; i++) {
    const rondo_placement_rule *rule = &list->rules[i];
    if (rule->operator_name == NULL && rule->least_bytes == 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                        "%s: rule %zu names neither an operator nor bytes of states: set operator_name or least_bytes",
                        caller, i);
    if (rule->reserved != 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS, "%s: rule %zu: 'reserved' is set: leave it 0",
                        caller, i);
    if (rule->place >= list->count)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                        "%s: rule %zu places operators at %u, but there are %zu devices", caller, i, rule->place,
                        list->count);
  }
  return RONDO_OK;
}

rondo_status rondo_placement_list_make(const char *caller, rondo_device *const *devices, size_t device_count,
                                       const rondo_placement_rule *rules, size_t rule_count,
                                       rondo_placement_list *out) {
  *out = (rondo_placement_list){.rules = rules, .rule_count = rule_count};
  RONDO_TRY(list_devices(caller, devices, device_count, out));
  return check_rules(caller, out);
}

/* Placing ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_program_place(rondo_program *program, rondo_value value, uint32_t place) {
  static const char call[] = "rondo_program_place";
  uint32_t index = 0;
  RONDO_TRY(rondo_require(call, "program", program));
  RONDO_TRY(rondo_program_resolve(program, value, call, "value", &index));
  rondo_program_value *of = &program->values.items[index];
  if (place >= RONDO_MAX_PLACES)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: place %u is not below %d", call, place,
                      RONDO_MAX_PLACES);
  if (of->kind == RONDO_VALUE_RESULT) {
    program->operations.items[of->operation].place = place + 1;
    return RONDO_OK;
  }
  if (of->kind != RONDO_VALUE_STATE)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: '%s' of %s is at every place where operators read it: place these operators, or a state",
                      call, of->name == NULL ? "a constant" : of->name, program->label);
  of->place = place + 1;
  return RONDO_OK;
}

/* Rules ------------------------------------------------------------------------------------------------------------ */

static uint32_t placed_state(const finder *f, const rondo_operation *operation) {
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
    if (!rondo_value_is_state(f->program, operation->inputs[k])) continue;
    const uint32_t place = f->program->values.items[operation->inputs[k]].place;
    if (place != 0) return f->list->first[place - 1];
  }
  return RONDO_NO_VALUE;
}

/* The place of the states that the operation changes, if it is known. */
static uint32_t changed_state(const finder *f, const rondo_operation *operation) {
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
    if (!rondo_operation_updates(operation, k) || operation->inputs[k] == RONDO_NO_VALUE) continue;
    const uint32_t place = f->places->of_value[operation->inputs[k]];
    if (place != RONDO_NO_VALUE) return place;
  }
  return RONDO_NO_VALUE;
}

static uint64_t state_bytes(const finder *f, const rondo_operation *operation) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++)
    if (rondo_value_is_state(f->program, operation->inputs[k]))
      bytes += rondo_shape_bytes(rondo_program_shape(f->program, operation->inputs[k]));
  return bytes;
}

static uint32_t ruled(const finder *f, const rondo_operation *operation) {
  const uint64_t bytes = state_bytes(f, operation);
  for (size_t i = 0; i < f->list->rule_count; i++) {
    const rondo_placement_rule *rule = &f->list->rules[i];
    const bool is_named = rule->operator_name == NULL || strcmp(rule->operator_name, operation->row->name) == 0;
    if (is_named && bytes >= rule->least_bytes) return f->list->first[rule->place];
  }
  return RONDO_NO_VALUE;
}

/* The place where all its inputs are computed, if that is one place. */
static uint32_t followed(const finder *f, const rondo_operation *operation) {
  uint32_t place = RONDO_NO_VALUE;
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
    const uint32_t input = operation->inputs[k];
    if (rondo_value_is_state(f->program, input) && operation->row->updates == 0) return RONDO_NO_VALUE;
    if (input == RONDO_NO_VALUE || f->program->values.items[input].kind != RONDO_VALUE_RESULT) continue;
    const uint32_t of = f->places->of_operation[f->program->values.items[input].operation];
    if (place != RONDO_NO_VALUE && place != of) return RONDO_NO_VALUE;
    place = of;
  }
  return place;
}

static uint32_t decide(const finder *f, const rondo_operation *operation) {
  if (operation->place != 0) return f->list->first[operation->place - 1];
  uint32_t place = changed_state(f, operation);
  if (place == RONDO_NO_VALUE) place = placed_state(f, operation);
  if (place == RONDO_NO_VALUE) place = ruled(f, operation);
  if (place == RONDO_NO_VALUE && operation->gradient_of != 0)
    place = f->places->of_operation[operation->gradient_of - 1];
  if (place == RONDO_NO_VALUE) place = followed(f, operation);
  return place == RONDO_NO_VALUE ? 0 : place;
}

/* States ----------------------------------------------------------------------------------------------------------- */

static rondo_status refuse_change(const finder *f, uint32_t number, uint32_t state) {
  const uint32_t place = f->places->of_operation[number], there = f->places->of_value[state];
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s (operator %u of %s) runs on %s and changes the state '%s', which is on %s: place "
                    "both on one device (rondo_program_place)",
                    operation_at(f, number)->row->name, number, f->program->label, f->list->names[place],
                    f->program->values.items[state].name, f->list->names[there]);
}

static rondo_status take_states(const finder *f, uint32_t number) {
  const rondo_operation *operation = operation_at(f, number);
  const bool is_update = rondo_operator_is_update(operation->row);
  for (uint32_t k = 0; f->places->runs[number] && k < RONDO_MAX_OPERANDS; k++) {
    const uint32_t state = operation->inputs[k];
    if (!rondo_value_is_state(f->program, state) || (is_update && !rondo_operation_updates(operation, k))) continue;
    uint32_t *place = &f->places->of_value[state];
    if (*place == RONDO_NO_VALUE) *place = f->places->of_operation[number];
    if (!rondo_operation_updates(operation, k)) continue;
    if (*place != f->places->of_operation[number]) return refuse_change(f, number, state);
    if (f->places->first_change[state] == RONDO_NO_VALUE) f->places->first_change[state] = number;
  }
  return RONDO_OK;
}

/* States that only updates read, and that no operation changes. */
static void take_rest(const finder *f, uint32_t number) {
  const rondo_operation *operation = operation_at(f, number);
  for (uint32_t k = 0; f->places->runs[number] && k < RONDO_MAX_OPERANDS; k++) {
    const uint32_t state = operation->inputs[k];
    if (rondo_value_is_state(f->program, state) && f->places->of_value[state] == RONDO_NO_VALUE)
      f->places->of_value[state] = f->places->of_operation[number];
  }
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status check_places(const finder *f) {
  for (uint32_t i = 0; i < f->places->operations; i++) {
    const rondo_operation *operation = operation_at(f, i);
    if (operation->place > f->list->count)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                        "%s (operator %u of %s) was placed at %u, but there are %zu devices", operation->row->name, i,
                        f->program->label, operation->place - 1, f->list->count);
  }
  for (uint32_t i = 0; i < f->places->values; i++) {
    const rondo_program_value *value = &f->program->values.items[i];
    f->places->of_value[i] = f->places->first_change[i] = RONDO_NO_VALUE;
    if (value->place > f->list->count)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                        "the state '%s' of %s was placed at %u, but there are %zu devices", value->name,
                        f->program->label, value->place - 1, f->list->count);
    if (value->place != 0) f->places->of_value[i] = f->list->first[value->place - 1];
  }
  return RONDO_OK;
}

static rondo_status find(const finder *f) {
  RONDO_TRY(check_places(f));
  for (int updates = 0; updates < 2; updates++) {
    for (uint32_t i = 0; i < f->places->operations; i++) {
      if (rondo_operator_is_update(operation_at(f, i)->row) != (updates == 1)) continue;
      f->places->of_operation[i] = decide(f, operation_at(f, i));
      RONDO_TRY(take_states(f, i));
    }
  }
  for (uint32_t i = 0; i < f->places->operations; i++) take_rest(f, i);
  return RONDO_OK;
}

rondo_status rondo_placements_find(const rondo_program *program, const rondo_placement_list *list,
                                   rondo_scratch *scratch, rondo_placements *out) {
  *out = (rondo_placements){.operations = program->operations.count, .values = program->values.count};
  const finder f = {.program = program, .list = list, .places = out};
  bool *needed;
  RONDO_TRY(rondo_scratch_take(scratch, out->operations, sizeof *out->runs, &out->runs));
  RONDO_TRY(rondo_scratch_take(scratch, out->operations, sizeof *out->of_operation, &out->of_operation));
  RONDO_TRY(rondo_scratch_take(scratch, out->values, sizeof *out->of_value, &out->of_value));
  RONDO_TRY(rondo_scratch_take(scratch, out->values, sizeof *out->first_change, &out->first_change));
  RONDO_TRY(rondo_scratch_take(scratch, out->values, sizeof *needed, &needed));
  return rondo_program_mark_runs(program, needed, out->runs) ? find(&f) : rondo_schedule_fail_empty(program);
}

bool rondo_placements_reads_changed(const rondo_program *program, const rondo_placements *places, uint32_t operation,
                                    uint32_t state) {
  return rondo_operator_is_update(program->operations.items[operation].row) && places->first_change[state] < operation;
}

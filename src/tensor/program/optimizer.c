/* SPDX-License-Identifier: MIT
 * The frame of optimizers. An optimizer differentiates the loss for the states of its lists, or for every F32 state
 * that the loss depends on and that is not frozen. It adds one update operator for each state that has a gradient, or
 * for a part of it (buckets.h). States are in groups, which have their own rate, decay and clipping. A failure rolls
 * the program back.
 */
#include "tensor/program/optimizer.h"

#include <assert.h>
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "tensor/program/gradients.h"
#include "tensor/program/operation.h"
#include "tensor/program/operators.h"
#include "tensor/program/program.h"
#include "tensor/program/program_check.h"
#include "tensor/program/shape.h"
#include "tensor/program/sparse_gradient.h"

rondo_trained_group *rondo_trainees_group(const rondo_trainees *t, const rondo_update_part *part) {
  const uint32_t group = t->program->values.items[part->state].group;
  assert(group < t->group_count);
  return &t->groups[group];
}

/* Options ---------------------------------------------------------------------------------------------------------- */

static rondo_status check_decay(float decay, const char *call) {
  if (decay >= 0 && decay <= FLT_MAX) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: weight_decay is %g: give a finite number, at least 0", call, (double)decay);
}

rondo_status rondo_optimizer_scalar(const rondo_program *program, rondo_value value, const char *call, const char *what,
                                    uint32_t *out_index) {
  char text[RONDO_SHAPE_TEXT];
  RONDO_TRY(rondo_program_resolve(program, value, call, what, out_index));
  const rondo_shape *shape = rondo_program_shape(program, *out_index);
  if (shape->type == RONDO_F32 && shape->rank == 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, shape->type != RONDO_F32 ? RONDO_REASON_TYPE : RONDO_REASON_SHAPE,
                    "%s: %s is %s, not a scalar f32, such as a cell", call, what, rondo_shape_text(text, shape));
}

/* Only the first group needs a rate. */
static rondo_status read_rate(const rondo_trainees *t, rondo_value rate, const rondo_rate_options *schedule,
                              rondo_trained_group *out) {
  out->is_scheduled = schedule != NULL;
  out->rate = RONDO_NO_VALUE;
  if (schedule == NULL && rate.id == 0 && out != t->groups) return RONDO_OK;
  if (schedule == NULL) return rondo_optimizer_scalar(t->program, rate, t->call, "learning_rate", &out->rate);
  if (rate.id == 0) return rondo_rate_read(schedule, t->call, &out->schedule);
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: both a learning_rate and a schedule are given: pass only one", t->call);
}

static rondo_status check_group(const rondo_trainees *t, size_t number, const rondo_parameter_group *given) {
  if (given->state_count > 0) RONDO_TRY(rondo_require(t->call, "states of a group", given->states));
  if (given->state_count == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS, "%s: group %zu has no states", t->call, number);
  if (given->no_decay && given->weight_decay != 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: group %zu has both a weight_decay and no_decay: set only one", t->call, number);
  if (!(given->max_norm >= 0))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: max_norm of group %zu is %g: give at least 0", t->call, number, (double)given->max_norm);
  return check_decay(given->weight_decay, t->call);
}

static rondo_status read_group(const rondo_trainees *t, size_t number, const rondo_parameter_group *given) {
  rondo_trained_group *group = &t->groups[number + 1];
  RONDO_TRY(check_group(t, number, given));
  *group = (rondo_trained_group){.states = given->states,
                                 .state_count = given->state_count,
                                 .decay = given->no_decay ? 0 : given->weight_decay,
                                 .max_norm = given->max_norm,
                                 .control = RONDO_NO_VALUE};
  if (!given->no_decay && given->weight_decay == 0) {
    group->decay = t->groups[0].decay;
    group->decay_dimensions = t->groups[0].decay_dimensions;
  }
  return rondo_fail_context(read_rate(t, given->learning_rate, given->schedule, group), "group %zu", number);
}

static rondo_status read_options(rondo_trainees *t, const rondo_training_options *options) {
  RONDO_TRY(check_decay(options->weight_decay, t->call));
  if (options->group_count > 0) RONDO_TRY(rondo_require(t->call, "groups", options->groups));
  if (options->states == NULL && options->state_count > 0) return rondo_require(t->call, "states", NULL);
  t->group_count = options->group_count + 1;
  RONDO_TRY(rondo_allocate_items(&t->program->allocator, t->group_count, sizeof *t->groups, &t->groups));
  t->groups[0] = (rondo_trained_group){.states = options->states,
                                       .state_count = options->state_count,
                                       .decay = options->weight_decay,
                                       .decay_dimensions = options->decay_dimensions,
                                       .control = RONDO_NO_VALUE};
  RONDO_TRY(read_rate(t, options->learning_rate, options->schedule, &t->groups[0]));
  for (size_t i = 0; i < options->group_count; i++) RONDO_TRY(read_group(t, i, &options->groups[i]));
  return rondo_gradients_read(t, options->gradients);
}

/* The lists -------------------------------------------------------------------------------------------------------- */

#define ENTRY_TEXT 64

/* "states entry 3", or that of a group. Returns the buffer. */
static const char *entry_text(char buffer[ENTRY_TEXT], size_t group, size_t entry) {
  if (group == 0)
    (void)snprintf(buffer, ENTRY_TEXT, "states entry %zu", entry);
  else
    (void)snprintf(buffer, ENTRY_TEXT, "states entry %zu of group %zu", entry, group - 1);
  return buffer;
}

static rondo_status fail_entry(const rondo_trainees *t, const char *entry, uint32_t state, rondo_reason reason,
                               const char *why) {
  char text[RONDO_CALL_TEXT];
  return rondo_fail(RONDO_INVALID_ARGUMENT, reason, "%s: %s is %s%s", t->call, entry,
                    rondo_value_text(text, t->program, state), why);
}

/* Looks for the entry in the lists up to its own. */
static rondo_status refuse_again(const rondo_trainees *t, size_t group, size_t entry, const char *name,
                                 uint32_t state) {
  const rondo_value wanted = t->groups[group].states[entry];
  for (size_t g = 0; g <= group; g++) {
    for (size_t i = 0; i < (g == group ? entry : t->groups[g].state_count); i++) {
      char other[ENTRY_TEXT], again[ENTRY_TEXT + 32];
      if (t->groups[g].states[i].id != wanted.id) continue;
      (void)snprintf(again, sizeof again, ", which is also %s", entry_text(other, g, i) + (g == 0 ? 7 : 0));
      return fail_entry(t, name, state, RONDO_REASON_DUPLICATE_NAME, again);
    }
  }
  return RONDO_OK;
}

static rondo_status check_entry(const rondo_trainees *t, size_t group, size_t entry) {
  char what[ENTRY_TEXT];
  uint32_t state = 0;
  (void)entry_text(what, group, entry);
  RONDO_TRY(rondo_program_resolve(t->program, t->groups[group].states[entry], t->call, what, &state));
  const rondo_program_value *value = &t->program->values.items[state];
  if (value->kind != RONDO_VALUE_STATE)
    return fail_entry(t, what, state, RONDO_REASON_TYPE, ", which is not a state: pass states only");
  if (value->shape.type != RONDO_F32)
    return fail_entry(t, what, state, RONDO_REASON_TYPE,
                      ", but optimizers update only f32 states: declare the state as f32 and cast it where it is used");
  if (value->frozen)
    return fail_entry(t, what, state, RONDO_REASON_BAD_OPTIONS, ", which is frozen (rondo_state_options)");
  return refuse_again(t, group, entry, what, state);
}

static rondo_status check_lists(const rondo_trainees *t) {
  if (t->groups[0].states != NULL && t->groups[0].state_count == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: states is an empty list: pass NULL to train all states that can be trained", t->call);
  for (size_t g = 0; g < t->group_count; g++)
    for (size_t i = 0; i < t->groups[g].state_count; i++) RONDO_TRY(check_entry(t, g, i));
  return RONDO_OK;
}

/* Whether the state is to be trained. Sets its group. */
static bool find_group(const rondo_trainees *t, uint32_t state, uint32_t *out_group) {
  const rondo_value tag = rondo_program_tag(t->program, state);
  *out_group = 0;
  for (uint32_t g = 0; g < t->group_count; g++) {
    for (size_t i = 0; i < t->groups[g].state_count; i++) {
      if (t->groups[g].states[i].id != tag.id) continue;
      *out_group = g;
      return true;
    }
  }
  return t->groups[0].states == NULL;
}

static bool has_gradient(const rondo_trainees *t, rondo_value state) {
  for (size_t i = 0; i < t->count; i++)
    if (rondo_program_tag(t->program, t->states[i]).id == state.id) return t->gradients[i] != RONDO_NO_VALUE;
  return false;
}

static rondo_status require_gradient_of(const rondo_trainees *t, size_t group, size_t entry) {
  char what[ENTRY_TEXT];
  uint32_t state = 0;
  if (has_gradient(t, t->groups[group].states[entry])) return RONDO_OK;
  RONDO_TRY(rondo_program_resolve(t->program, t->groups[group].states[entry], t->call, "states", &state));
  return fail_entry(
      t, entry_text(what, group, entry), state, RONDO_REASON_NONE,
      ", but the loss has no gradient for it: the loss does not depend on it, or only through stop_gradient");
}

static rondo_status require_gradients(const rondo_trainees *t) {
  for (size_t g = 0; g < t->group_count; g++)
    for (size_t i = 0; i < t->groups[g].state_count; i++) RONDO_TRY(require_gradient_of(t, g, i));
  return RONDO_OK;
}

/* Collecting ------------------------------------------------------------------------------------------------------- */

static void list_states(rondo_trainees *t, const bool *needed) {
  for (uint32_t i = 0; i < t->capacity; i++) {
    rondo_program_value *value = &t->program->values.items[i];
    const bool can_be = value->kind == RONDO_VALUE_STATE && value->shape.type == RONDO_F32 && !value->frozen;
    if (needed[i] && can_be && find_group(t, i, &value->group)) t->states[t->count++] = i;
  }
}

static rondo_status collect(rondo_trainees *t, uint32_t loss) {
  const rondo_program *program = t->program;
  bool *needed = NULL;
  t->capacity = program->values.count;
  RONDO_TRY(rondo_allocate_items(&program->allocator, t->capacity, sizeof *needed, &needed));
  rondo_status status = rondo_allocate_items(&program->allocator, t->capacity, sizeof *t->states, &t->states);
  if (status == RONDO_OK) {
    status = rondo_allocate_items(&program->allocator, t->capacity, sizeof *t->gradients, &t->gradients);
  }
  if (status == RONDO_OK) status = rondo_allocate_items(&program->allocator, t->capacity, sizeof *t->keys, &t->keys);
  if (status == RONDO_OK) status = rondo_allocate_items(&program->allocator, t->capacity, sizeof *t->parts, &t->parts);
  if (status == RONDO_OK) {
    rondo_program_mark_sources(program, loss, needed);
    list_states(t, needed);
  }
  rondo_release(&program->allocator, needed, t->capacity, sizeof *needed);
  return status;
}

static rondo_status refuse_assigned(const rondo_trainees *t, uint32_t state) {
  char text[RONDO_CALL_TEXT];
  if (!t->program->values.items[state].is_assigned) return RONDO_OK;
  return rondo_fail(
      RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
      "%s: %s is assigned by rondo_program_assign, so it cannot be trained: declare it as frozen, or list "
      "the states to train",
      t->call, rondo_value_text(text, t->program, state));
}

/* Drops states without a gradient, because weight decay would shrink them. All states of a list have a gradient. */
static rondo_status keep_differentiable(rondo_trainees *t) {
  size_t kept = 0;
  RONDO_TRY(require_gradients(t));
  for (size_t i = 0; i < t->count; i++) {
    if (t->gradients[i] == RONDO_NO_VALUE) continue;
    RONDO_TRY(refuse_assigned(t, t->states[i]));
    t->groups[t->program->values.items[t->states[i]].group].is_used = true;
    t->states[kept] = t->states[i];
    t->gradients[kept++] = t->gradients[i];
  }
  t->count = kept;
  if (kept > 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NONE,
                    "%s: the loss of %s has no gradient for any f32 state that is not frozen, so there is "
                    "nothing to train",
                    t->call, t->program->label);
}

/* Names ------------------------------------------------------------------------------------------------------------ */

rondo_status rondo_optimizer_state(rondo_program *program, uint32_t state, const char *suffix, const rondo_shape *shape,
                                   float initial, uint32_t *out_index) {
  const char *base = program->values.items[state].name;
  const size_t bytes = strlen(base) + strlen(suffix) + 1;
  char *name = NULL;
  RONDO_TRY(rondo_allocate_items(&program->allocator, bytes, 1, &name));
  (void)snprintf(name, bytes, "%s%s", base, suffix);
  const rondo_status status = rondo_program_declare(program, RONDO_VALUE_STATE, name, shape, initial, out_index);
  rondo_release(&program->allocator, name, bytes, 1);
  if (status == RONDO_OK) program->values.items[*out_index].of_optimizer = true;
  return status;
}

rondo_status rondo_optimizer_companion(rondo_program *program, const rondo_update_part *part, const char *suffix,
                                       float initial, uint32_t *out_index) {
  const uint32_t state = part->state;
  if (part->bucket != RONDO_NO_VALUE) {
    *out_index = rondo_buckets_state(program, part->bucket, suffix);
    return RONDO_OK;
  }
  const rondo_shape shape = *rondo_program_shape(program, state);
  RONDO_TRY(rondo_optimizer_state(program, state, suffix, &shape, initial, out_index));
  rondo_program_value *companion = &program->values.items[*out_index];
  companion->is_sharded = program->values.items[state].is_sharded;
  companion->table_rows = program->values.items[state].table_rows;
  return RONDO_OK;
}

/* Updates ---------------------------------------------------------------------------------------------------------- */

/* Uses F16 and BF16 gradients without a cast: operators that read them convert each element to F32. */
static void skip_casts(rondo_trainees *t) {
  const rondo_program *program = t->program;
  for (size_t i = 0; i < t->count; i++) {
    const rondo_program_value *value = &program->values.items[t->gradients[i]];
    if (value->kind != RONDO_VALUE_RESULT) continue;
    const rondo_operation *made_by = &program->operations.items[value->operation];
    if (made_by->row == &rondo_operator_cast && rondo_shape_is_float(rondo_program_shape(program, made_by->inputs[0])))
      t->gradients[i] = made_by->inputs[0];
  }
}

/* What a sparse gradient cannot do, because it would touch all rows. */
static rondo_status check_rows(const rondo_trainees *t, uint32_t state, const rondo_optimizer *by) {
  const rondo_trained_group *group = &t->groups[t->program->values.items[state].group];
  const bool decays = group->decay > 0 && group->decay_dimensions <= 2;
  const char *why = by->sparse_row == NULL ? "this optimizer changes rows without a gradient"
                    : decays               ? "weight decay changes rows without a gradient"
                                           : NULL;
  char text[RONDO_CALL_TEXT];
  if (why == NULL) return RONDO_OK;
  return rondo_fail(
      RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
      "%s: %s is sparse, and %s: use SGD without momentum, Adam or Adagrad, without decay, for it, or do not "
      "declare it as sparse",
      t->call, rondo_value_text(text, t->program, state), why);
}

/* Replaces the gradients of sparse states. */
static rondo_status take_rows(const rondo_trainees *t, const rondo_optimizer *by) {
  for (size_t i = 0; i < t->count; i++) {
    uint32_t keys;
    if (!rondo_state_is_sparse(t->program, t->states[i])) continue;
    RONDO_TRY(check_rows(t, t->states[i], by));
    RONDO_TRY(rondo_sparse_gradient(t->program, t->call, t->states[i], &t->gradients[i], &keys));
    t->keys[i] = keys + 1;
  }
  return RONDO_OK;
}

/* Moves the tables whose rows are divided between ranks, of which each rank has all gradients of its own rows, to the
 * end. Returns the number of others. */
static size_t sort_tables(rondo_trainees *t) {
  size_t others = 0;
  for (size_t i = 0; i < t->count; i++) {
    const rondo_update_part part = t->parts[i];
    const uint32_t gradient = t->gradients[i];
    if (t->program->values.items[part.state].table_rows > 0) continue;
    for (size_t k = i; k > others; k--) t->parts[k] = t->parts[k - 1], t->gradients[k] = t->gradients[k - 1];
    t->parts[others] = part;
    t->gradients[others++] = gradient;
  }
  return others;
}

/* A rank updates some of what is in buckets, and its rows of tables. At most one part of each state. */
static rondo_status reduce(rondo_trainees *t) {
  const size_t others = sort_tables(t), tables = t->count - others;
  size_t own;
  RONDO_TRY(rondo_buckets_make(t->program, t->parts, t->gradients, others, &t->buckets));
  rondo_update_part *of_tables = t->parts + others;
  rondo_buckets_list_parts(t->program, &t->buckets, t->parts, &own);
  memmove(t->parts + own, of_tables, tables * sizeof *of_tables);
  t->part_count = own + tables;
  return RONDO_OK;
}

/* Each state is one part; with several ranks, each has some of the reduced gradients. */
static rondo_status list_parts(rondo_trainees *t, uint32_t loss) {
  const bool has_ranks = t->program->ranks.communicator != NULL;
  if (has_ranks) RONDO_TRY(rondo_buckets_begin(t->program, loss));
  for (size_t i = 0; i < t->count; i++)
    t->parts[i] = (rondo_update_part){
        .state = t->states[i], .gradient = t->gradients[i], .keys = t->keys[i], .bucket = RONDO_NO_VALUE};
  t->part_count = t->count;
  RONDO_TRY(rondo_gradients_accumulate(t));
  if (!has_ranks) return RONDO_OK;
  RONDO_TRY(rondo_gradients_end_run(t));
  return reduce(t);
}

/* rate / (1 + decay * updates) */
static rondo_status divide_rate(rondo_program *program, uint32_t updates, float decay, uint32_t *inout_rate) {
  const rondo_attributes to_float = {.sizes = {RONDO_F32}, .size_count = 1};
  uint32_t terms[2], quotient[] = {*inout_rate, 0};
  RONDO_TRY(rondo_program_constant(program, decay, &terms[1]));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_cast, &updates, 1, &to_float, &terms[0]));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_mul, terms, 2, NULL, &terms[0]));
  RONDO_TRY(rondo_program_constant(program, 1.0f, &terms[1]));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_add, terms, 2, NULL, &quotient[1]));
  return rondo_program_add(program, &rondo_operator_div, quotient, 2, NULL, inout_rate);
}

/* `updates` is the state that counts the updates; not used if no rate depends on it. */
static rondo_status add_rate(const rondo_trainees *t, rondo_trained_group *group, uint32_t updates,
                             const rondo_optimizer *by) {
  rondo_program *program = t->program;
  if (group->is_scheduled) {
    const rondo_attributes attributes = rondo_rate_attributes(&group->schedule);
    RONDO_TRY(rondo_program_add(program, &rondo_operator_learning_rate, &updates, 1, &attributes, &group->rate));
  }
  if (group->rate == RONDO_NO_VALUE) {
    group->rate = t->groups[0].rate;
    return RONDO_OK;
  }
  if (by->rate_decay > 0) RONDO_TRY(divide_rate(program, updates, by->rate_decay, &group->rate));
  if (!group->is_scheduled || group->schedule.output == NULL) return RONDO_OK;
  return rondo_program_output(program, group->schedule.output, rondo_program_tag(program, group->rate));
}

/* The rates of all groups, and the operator that counts updates. */
static rondo_status add_rates(const rondo_trainees *t, rondo_optimizer *by) {
  rondo_program *program = t->program;
  const rondo_shape scalar = rondo_shape_scalar(RONDO_I32);
  uint32_t inputs[] = {RONDO_NO_VALUE, t->setup.control};
  bool counts = by->count != NULL || by->rate_decay > 0;
  for (size_t g = 0; g < t->group_count; g++) counts = counts || t->groups[g].is_scheduled;
  if (counts) RONDO_TRY(rondo_program_declare(program, RONDO_VALUE_STATE, by->step, &scalar, 0, &inputs[0]));
  for (size_t g = 0; g < t->group_count; g++) RONDO_TRY(add_rate(t, &t->groups[g], inputs[0], by));
  if (by->count != NULL) return by->count(program, inputs[0], inputs[1], by);
  return counts ? rondo_program_add(program, &rondo_operator_count_update, inputs, 2, NULL, NULL) : RONDO_OK;
}

static rondo_attributes attributes_of(const rondo_trainees *t, const rondo_update_part *part,
                                      const rondo_optimizer *by) {
  const rondo_trained_group *group = rondo_trainees_group(t, part);
  const uint32_t rank = rondo_program_shape(t->program, part->state)->rank;
  rondo_attributes attributes = by->attributes;
  memcpy(attributes.sizes, part->sizes, sizeof part->sizes);
  attributes.size_count = RONDO_PART_SIZES;
  attributes.numbers[by->decay] = rank < group->decay_dimensions ? 0 : group->decay;
  return attributes;
}

static rondo_status add_update(const rondo_trainees *t, const rondo_update_part *part, const rondo_optimizer *by) {
  const rondo_trained_group *group = rondo_trainees_group(t, part);
  const rondo_attributes attributes = attributes_of(t, part, by);
  uint32_t inputs[RONDO_MAX_OPERANDS] = {part->state, part->gradient, group->rate, group->control, by->extra};
  for (size_t k = 0; k < RONDO_COMPANIONS; k++) {
    uint32_t *companion = &inputs[RONDO_MAX_OPERANDS - RONDO_COMPANIONS + k];
    *companion = RONDO_NO_VALUE;
    if (by->companions[k] == NULL) continue;
    RONDO_TRY(rondo_optimizer_companion(t->program, part, by->companions[k], by->initial, companion));
  }
  if (part->keys == 0)
    return rondo_program_add(t->program, by->row, inputs, rondo_operator_input_count(by->row), &attributes, NULL);
  inputs[RONDO_MAX_OPERANDS - 1] = part->keys - 1;
  return rondo_program_add(t->program, by->sparse_row, inputs, RONDO_MAX_OPERANDS, &attributes, NULL);
}

static rondo_status update_parts(const rondo_trainees *t, const rondo_optimizer *by) {
  const bool shards = t->program->ranks.shard_states;
  for (size_t k = 0; shards && k < RONDO_COMPANIONS; k++)
    if (by->companions[k] != NULL)
      RONDO_TRY(rondo_buckets_declare(t->program, &t->buckets, by->companions[k], by->initial));
  for (size_t i = 0; i < t->part_count; i++) RONDO_TRY(add_update(t, &t->parts[i], by));
  return shards ? rondo_buckets_gather(t->program, &t->buckets, t->parts, t->part_count) : RONDO_OK;
}

/* Of what must be the same on all ranks; the rest is in operators. */
static uint64_t hash_options(const rondo_trainees *t, const rondo_optimizer *by) {
  uint64_t hash = rondo_hash_text(RONDO_HASH_START, by->row->name);
  hash = rondo_hash_bytes(hash, by->attributes.numbers, sizeof by->attributes.numbers);
  hash = rondo_hash_bytes(hash, &by->initial, sizeof by->initial);
  for (size_t g = 0; g < t->group_count; g++) {
    hash = rondo_hash_bytes(hash, &t->groups[g].decay, sizeof t->groups[g].decay);
    hash = rondo_hash_u64(hash, t->groups[g].decay_dimensions);
  }
  return hash;
}

static rondo_status add_updates(rondo_trainees *t, uint32_t loss, rondo_optimizer *by) {
  RONDO_TRY(rondo_gradients_declare(t));
  RONDO_TRY(collect(t, loss));
  RONDO_TRY(rondo_program_differentiate(t->program, loss, t->setup.scale, t->states, t->count, t->gradients));
  RONDO_TRY(keep_differentiable(t));
  RONDO_TRY(take_rows(t, by));
  skip_casts(t);
  const rondo_program_mark alike = rondo_program_get_mark(t->program);
  RONDO_TRY(list_parts(t, loss));
  RONDO_TRY(rondo_gradients_control(t));
  RONDO_TRY(add_rates(t, by));
  RONDO_TRY(update_parts(t, by));
  for (size_t i = 0; i < t->count; i++) t->program->values.items[t->states[i]].trained = true;
  if (t->program->ranks.communicator != NULL) rondo_buckets_identify(t->program, alike, hash_options(t, by));
  if (t->program->ranks.first_last > 0) t->program->ranks.end_last = t->program->operations.count;
  t->program->optimizer = by->row->name;
  return RONDO_OK;
}

static rondo_status train(rondo_trainees *t, uint32_t loss, const rondo_training_options *options,
                          rondo_optimizer *by) {
  RONDO_TRY(read_options(t, options));
  RONDO_TRY(check_lists(t));
  return add_updates(t, loss, by);
}

rondo_status rondo_optimizer_add(rondo_program *program, rondo_value loss, const rondo_training_options *options,
                                 rondo_optimizer *optimizer) {
  rondo_trainees t = {.program = program, .call = optimizer->call};
  uint32_t index = 0;
  if (program->optimizer != NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE,
                      "%s: %s has an optimizer already: list states with other "
                      "options in groups of one optimizer",
                      t.call, program->label);
  RONDO_TRY(rondo_program_resolve(program, loss, t.call, "loss", &index));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = train(&t, index, options, optimizer);
  rondo_release(&program->allocator, t.groups, t.group_count, sizeof *t.groups);
  rondo_release(&program->allocator, t.states, t.capacity, sizeof *t.states);
  rondo_release(&program->allocator, t.gradients, t.capacity, sizeof *t.gradients);
  rondo_release(&program->allocator, t.keys, t.capacity, sizeof *t.keys);
  rondo_release(&program->allocator, t.parts, t.capacity, sizeof *t.parts);
  rondo_buckets_free(program, &t.buckets);
  if (status != RONDO_OK) rondo_program_roll_back(program, mark);
  rondo_program_check(program);
  return status;
}

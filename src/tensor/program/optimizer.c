/* SPDX-License-Identifier: MIT
 * Optimizers. An optimizer differentiates the loss for the states of a list, or for every F32 state that the loss
 * depends on and that is not frozen. It adds one update operator for each state that has a gradient, or for a part of
 * it (buckets.h). A failure rolls the program back.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "tensor/program/buckets.h"
#include "tensor/program/gradients.h"
#include "tensor/program/operation.h"
#include "tensor/program/operators.h"
#include "tensor/program/optimizer_parts.h"
#include "tensor/program/program.h"
#include "tensor/program/program_check.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/shape.h"

/* The states to train, and their gradients. */
typedef struct trainees {
  rondo_program *program;
  const char *call;
  const rondo_value *list; /* NULL: all that can be trained */
  size_t list_count;
  uint32_t *states;
  uint32_t *gradients;
  size_t count;
  size_t capacity;
  rondo_update_part *parts; /* what is updated; whole states, unless the program is data-parallel */
  size_t part_count;
  rondo_buckets buckets; /* of a data-parallel program */
} trainees;

/* Values that the gradient options add to the program before the updates; RONDO_NO_VALUE: not added. */
typedef struct gradient_setup {
  rondo_gradient_options given;
  uint32_t runs, scale, good, control;
} gradient_setup;

/* Adds the update of one part; `control` may be RONDO_NO_VALUE. */
typedef rondo_status (*add_update)(const trainees *t, const rondo_update_part *part, uint32_t control,
                                   const void *user);

/* Adds what all updates share. It may need the control. NULL: nothing is shared. */
typedef rondo_status (*add_shared)(rondo_program *program, uint32_t control, void *user);

typedef struct optimizer {
  add_update add;
  add_shared prepare;
  void *user;
  const rondo_attributes *attributes;
  const char *companions[3]; /* suffixes of the states that belong to each trained one; NULL after the last */
} optimizer;

/* The list --------------------------------------------------------------------------------------------------------- */

static rondo_status fail_entry(const trainees *t, size_t entry, uint32_t state, rondo_reason reason, const char *why) {
  char text[RONDO_CALL_TEXT];
  return rondo_fail(RONDO_INVALID_ARGUMENT, reason, "%s: states entry %zu is %s%s", t->call, entry,
                    rondo_value_text(text, t->program, state), why);
}

static rondo_status check_entry(const trainees *t, size_t entry) {
  char what[48];
  uint32_t state = 0;
  (void)snprintf(what, sizeof what, "states entry %zu", entry);
  RONDO_TRY(rondo_program_resolve(t->program, t->list[entry], t->call, what, &state));
  const rondo_program_value *value = &t->program->values.items[state];
  if (value->kind != RONDO_VALUE_STATE)
    return fail_entry(t, entry, state, RONDO_REASON_TYPE, ", which is not a state: pass states only");
  if (value->shape.type != RONDO_F32)
    return fail_entry(t, entry, state, RONDO_REASON_TYPE,
                      ", but optimizers update only f32 states: declare the state as f32 and cast it where it is used");
  if (value->frozen)
    return fail_entry(t, entry, state, RONDO_REASON_BAD_OPTIONS, ", which is frozen (rondo_state_options)");
  for (size_t i = 0; i < entry; i++) {
    char again[48];
    (void)snprintf(again, sizeof again, ", which is also entry %zu", i);
    if (t->list[i].id == t->list[entry].id) return fail_entry(t, entry, state, RONDO_REASON_DUPLICATE_NAME, again);
  }
  return RONDO_OK;
}

static rondo_status check_list(const trainees *t) {
  if (t->list == NULL && t->list_count > 0) return rondo_require(t->call, "states", NULL);
  if (t->list != NULL && t->list_count == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: states is an empty list: pass NULL to train all states that can be trained", t->call);
  for (size_t i = 0; i < t->list_count; i++) RONDO_TRY(check_entry(t, i));
  return RONDO_OK;
}

static bool is_requested(const trainees *t, uint32_t state) {
  const rondo_value tag = rondo_program_tag(t->program, state);
  for (size_t i = 0; i < t->list_count; i++)
    if (t->list[i].id == tag.id) return true;
  return t->list == NULL;
}

static bool has_gradient(const trainees *t, rondo_value state) {
  for (size_t i = 0; i < t->count; i++)
    if (rondo_program_tag(t->program, t->states[i]).id == state.id) return t->gradients[i] != RONDO_NO_VALUE;
  return false;
}

static rondo_status require_gradients(const trainees *t) {
  for (size_t i = 0; i < t->list_count; i++) {
    uint32_t state = 0;
    if (has_gradient(t, t->list[i])) continue;
    RONDO_TRY(rondo_program_resolve(t->program, t->list[i], t->call, "states", &state));
    return fail_entry(
        t, i, state, RONDO_REASON_NONE,
        ", but the loss has no gradient for it: the loss does not depend on it, or only through stop_gradient");
  }
  return RONDO_OK;
}

/* Collecting ------------------------------------------------------------------------------------------------------- */

static rondo_status collect(trainees *t, uint32_t loss) {
  const rondo_program *program = t->program;
  bool *needed = NULL;
  t->capacity = program->values.count;
  RONDO_TRY(rondo_allocate_items(&program->allocator, t->capacity, sizeof *needed, &needed));
  rondo_status status = rondo_allocate_items(&program->allocator, t->capacity, sizeof *t->states, &t->states);
  if (status == RONDO_OK) {
    status = rondo_allocate_items(&program->allocator, t->capacity, sizeof *t->gradients, &t->gradients);
  }
  if (status == RONDO_OK) status = rondo_allocate_items(&program->allocator, t->capacity, sizeof *t->parts, &t->parts);
  if (status == RONDO_OK) rondo_program_mark_sources(program, loss, needed);
  for (uint32_t i = 0; status == RONDO_OK && i < t->capacity; i++) {
    const rondo_program_value *value = &program->values.items[i];
    const bool can_be = value->kind == RONDO_VALUE_STATE && value->shape.type == RONDO_F32 && !value->frozen;
    if (needed[i] && can_be && is_requested(t, i)) t->states[t->count++] = i;
  }
  rondo_release(&program->allocator, needed, t->capacity, sizeof *needed);
  return status;
}

/* Drops states without a gradient, because weight decay would shrink them. All states of a list have a gradient. */
static rondo_status keep_differentiable(trainees *t) {
  size_t kept = 0;
  RONDO_TRY(require_gradients(t));
  for (size_t i = 0; i < t->count; i++) {
    if (t->gradients[i] == RONDO_NO_VALUE) continue;
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

/* Declares a state of the same shape as the part's. Its name is that of this state with the suffix. If the bucket has a
 * flat state for all of its parts, that is the companion. */
static rondo_status declare_companion(rondo_program *program, const rondo_update_part *part, const char *suffix,
                                      uint32_t *out_index) {
  const uint32_t state = part->state;
  if (part->bucket != RONDO_NO_VALUE) {
    *out_index = rondo_buckets_state(program, part->bucket, suffix);
    return RONDO_OK;
  }
  const rondo_shape shape = *rondo_program_shape(program, state);
  const char *base = program->values.items[state].name;
  const size_t bytes = strlen(base) + strlen(suffix) + 1;
  char *name = NULL;
  RONDO_TRY(rondo_allocate_items(&program->allocator, bytes, 1, &name));
  (void)snprintf(name, bytes, "%s%s", base, suffix);
  const rondo_status status = rondo_program_declare(program, RONDO_VALUE_STATE, name, &shape, 0, out_index);
  rondo_release(&program->allocator, name, bytes, 1);
  if (status != RONDO_OK) return status;
  rondo_program_value *companion = &program->values.items[*out_index];
  companion->of_optimizer = true;
  companion->is_sharded = program->values.items[state].is_sharded;
  companion->table_rows = program->values.items[state].table_rows;
  return RONDO_OK;
}

static rondo_attributes attributes_of(const rondo_update_part *part, const rondo_attributes *of_all) {
  rondo_attributes attributes = *of_all;
  memcpy(attributes.sizes, part->sizes, sizeof part->sizes);
  attributes.size_count = RONDO_PART_SIZES;
  return attributes;
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

static rondo_status check_gradient_option(const char *call, const char *name, double value, double least, double most) {
  if (value >= least && value <= most) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: %s of rondo_gradient_options is %.10g: give %.10g to %.10g", call, name, value, least, most);
}

static rondo_status read_gradient_options(const rondo_gradient_options *options, const char *call,
                                          rondo_gradient_options *out) {
  RONDO_TRY(rondo_versioned_read("rondo_gradient_options", options, out, sizeof *out));
  if (out->accumulate == 0) out->accumulate = 1;
  if (out->initial_scale == 0) out->initial_scale = 65536.0f;
  if (out->growth_interval == 0) out->growth_interval = 2000;
  RONDO_TRY(check_gradient_option(call, "max_norm", (double)out->max_norm, 0, HUGE_VAL));
  RONDO_TRY(check_gradient_option(call, "initial_scale", (double)out->initial_scale, 0x1p-126, 0x1p126));
  RONDO_TRY(check_gradient_option(call, "accumulate", out->accumulate, 1, INT32_MAX));
  return check_gradient_option(call, "growth_interval", out->growth_interval, 1, INT32_MAX);
}

static bool is_controlled(const rondo_gradient_options *given) {
  return given->accumulate > 1 || given->max_norm > 0 || given->scale_loss || given->norm_output != NULL;
}

/* Declares the states that must exist before the loss is differentiated. */
static rondo_status declare_setup(rondo_program *program, gradient_setup *setup) {
  const rondo_shape counter = rondo_shape_scalar(RONDO_I32), scalar = rondo_shape_scalar(RONDO_F32);
  setup->runs = setup->scale = setup->good = setup->control = RONDO_NO_VALUE;
  if (!is_controlled(&setup->given)) return RONDO_OK;
  RONDO_TRY(rondo_program_declare(program, RONDO_VALUE_STATE, "gradient.runs", &counter, 0, &setup->runs));
  if (!setup->given.scale_loss) return RONDO_OK;
  RONDO_TRY(rondo_program_declare(program, RONDO_VALUE_STATE, "gradient.good_updates", &counter, 0, &setup->good));
  return rondo_program_declare(program, RONDO_VALUE_STATE, "gradient.scale", &scalar, setup->given.initial_scale,
                               &setup->scale);
}

/* Uses F16 and BF16 gradients without a cast: operators that read them convert each element to F32. */
static void skip_casts(trainees *t) {
  const rondo_program *program = t->program;
  for (size_t i = 0; i < t->count; i++) {
    const rondo_program_value *value = &program->values.items[t->gradients[i]];
    if (value->kind != RONDO_VALUE_RESULT) continue;
    const rondo_operation *made_by = &program->operations.items[value->operation];
    if (made_by->row == &rondo_operator_cast && rondo_shape_is_float(rondo_program_shape(program, made_by->inputs[0])))
      t->gradients[i] = made_by->inputs[0];
  }
}

/* Replaces the gradients of whole states by sums that are kept in states of their own. */
static rondo_status accumulate(trainees *t, const gradient_setup *setup) {
  for (size_t i = 0; i < t->part_count && setup->given.accumulate > 1; i++) {
    uint32_t inputs[] = {0, t->parts[i].gradient, setup->runs};
    RONDO_TRY(declare_companion(t->program, &t->parts[i], ".accumulated", &inputs[0]));
    RONDO_TRY(rondo_program_add(t->program, &rondo_operator_accumulate, inputs, 3, NULL, NULL));
    rondo_program_value *sums = &t->program->values.items[inputs[0]];
    sums->is_summed = t->program->ranks.communicator != NULL && !sums->is_sharded;
    t->parts[i].gradient = inputs[0];
  }
  return RONDO_OK;
}

/* Of several ranks: only the last run of a round reduces the sums, and everything from here on is only in that run. */
static rondo_status end_run(rondo_program *program, const gradient_setup *setup) {
  rondo_program_ranks *ranks = &program->ranks;
  ranks->round = setup->given.accumulate;
  ranks->runs = setup->runs;
  if (setup->given.accumulate <= 1) return RONDO_OK;
  RONDO_TRY(rondo_program_add(program, &rondo_operator_count_update, &setup->runs, 1, NULL, NULL));
  ranks->first_last = program->operations.count;
  return RONDO_OK;
}

/* Adds the squares of the next gradients. Their attributes are pairs of the first element and a count, 0 for all. */
static rondo_status add_some_squares(const trainees *t, size_t *inout_next, uint32_t *inout_parts) {
  uint32_t inputs[1 + RONDO_SQUARED_GRADIENTS] = {*inout_parts}, count = 1;
  rondo_attributes attributes = {.size_count = 2 * RONDO_SQUARED_GRADIENTS};
  for (; *inout_next < t->part_count && count <= RONDO_SQUARED_GRADIENTS; ++*inout_next) {
    const rondo_update_part *part = &t->parts[*inout_next];
    if (part->sizes[RONDO_PART_ALL] > 0 && part->own_count == 0) continue;
    attributes.sizes[2 * (count - 1)] = part->sizes[RONDO_PART_GRADIENT] + part->own_first;
    attributes.sizes[2 * (count - 1) + 1] = part->own_count;
    inputs[count++] = part->gradient;
  }
  return rondo_program_add(t->program, &rondo_operator_gradient_squares, inputs, count, &attributes, inout_parts);
}

static rondo_status add_squares(const trainees *t, uint32_t *out_parts) {
  size_t next = 0;
  *out_parts = RONDO_NO_VALUE;
  do {
    RONDO_TRY(add_some_squares(t, &next, out_parts));
  } while (next < t->part_count);
  return t->program->ranks.communicator == NULL ? RONDO_OK : rondo_buckets_join_norm(t->program, out_parts);
}

/* The norm is computed only if it is read, or if the loss is scaled: then it shows whether all gradients are finite. */
static rondo_status add_control(trainees *t, gradient_setup *setup) {
  const rondo_gradient_options *given = &setup->given;
  const uint32_t round = t->program->ranks.first_last > 0 ? 0 : given->accumulate; /* 0: the runs are counted */
  const rondo_attributes attributes = {
      .sizes = {round, given->growth_interval}, .size_count = 2, .numbers = {given->max_norm}};
  uint32_t inputs[] = {setup->runs, RONDO_NO_VALUE, setup->scale, setup->good}, results[RONDO_MAX_RESULTS];
  if (!is_controlled(given)) return RONDO_OK;
  if (given->max_norm > 0 || given->scale_loss || given->norm_output != NULL) RONDO_TRY(add_squares(t, &inputs[1]));
  RONDO_TRY(rondo_program_add(t->program, &rondo_operator_gradient_control, inputs, 4, &attributes, results));
  setup->control = results[0];
  if (given->norm_output == NULL) return RONDO_OK;
  return rondo_program_output(t->program, given->norm_output, rondo_program_tag(t->program, results[1]));
}

/* Updates ---------------------------------------------------------------------------------------------------------- */

/* Moves the tables whose rows are divided between ranks, of which each rank has all gradients of its own rows, to the
 * end. Returns the number of others. */
static size_t sort_tables(trainees *t) {
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
static rondo_status reduce(trainees *t) {
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
static rondo_status list_parts(trainees *t, uint32_t loss, const gradient_setup *setup) {
  const bool has_ranks = t->program->ranks.communicator != NULL;
  if (has_ranks) RONDO_TRY(rondo_buckets_begin(t->program, loss));
  for (size_t i = 0; i < t->count; i++)
    t->parts[i] = (rondo_update_part){.state = t->states[i], .gradient = t->gradients[i], .bucket = RONDO_NO_VALUE};
  t->part_count = t->count;
  RONDO_TRY(accumulate(t, setup));
  if (!has_ranks) return RONDO_OK;
  RONDO_TRY(end_run(t->program, setup));
  return reduce(t);
}

static rondo_status update_parts(const trainees *t, uint32_t control, const optimizer *by) {
  const bool shards = t->program->ranks.shard_states;
  for (size_t k = 0; shards && by->companions[k] != NULL; k++)
    RONDO_TRY(rondo_buckets_declare(t->program, &t->buckets, by->companions[k]));
  for (size_t i = 0; i < t->part_count; i++) RONDO_TRY(by->add(t, &t->parts[i], control, by->user));
  return shards ? rondo_buckets_gather(t->program, &t->buckets, t->parts, t->part_count) : RONDO_OK;
}

static rondo_status add_updates(trainees *t, uint32_t loss, gradient_setup *setup, const optimizer *by) {
  RONDO_TRY(declare_setup(t->program, setup));
  RONDO_TRY(collect(t, loss));
  RONDO_TRY(rondo_program_differentiate(t->program, loss, setup->scale, t->states, t->count, t->gradients));
  RONDO_TRY(keep_differentiable(t));
  skip_casts(t);
  const rondo_program_mark alike = rondo_program_get_mark(t->program);
  RONDO_TRY(list_parts(t, loss, setup));
  RONDO_TRY(add_control(t, setup));
  if (by->prepare != NULL) RONDO_TRY(by->prepare(t->program, setup->control, by->user));
  RONDO_TRY(update_parts(t, setup->control, by));
  for (size_t i = 0; i < t->count; i++) t->program->values.items[t->states[i]].trained = true;
  if (t->program->ranks.communicator != NULL) rondo_buckets_identify(t->program, alike, by->attributes, by->companions);
  if (t->program->ranks.first_last > 0) t->program->ranks.end_last = t->program->operations.count;
  t->program->has_optimizer = true;
  return RONDO_OK;
}

/* `t` has the program, the call and the list. */
static rondo_status train(trainees t, uint32_t loss, const rondo_gradient_options *gradients, const optimizer *by) {
  gradient_setup setup;
  rondo_program *program = t.program;
  const rondo_program_mark mark = rondo_program_get_mark(program);
  RONDO_TRY(read_gradient_options(gradients, t.call, &setup.given));
  RONDO_TRY(check_list(&t));
  const rondo_status status = add_updates(&t, loss, &setup, by);
  rondo_release(&program->allocator, t.states, t.capacity, sizeof *t.states);
  rondo_release(&program->allocator, t.gradients, t.capacity, sizeof *t.gradients);
  rondo_release(&program->allocator, t.parts, t.capacity, sizeof *t.parts);
  rondo_buckets_free(program, &t.buckets);
  if (status != RONDO_OK) rondo_program_roll_back(program, mark);
  rondo_program_check(program);
  return status;
}

static rondo_status resolve_scalar(const rondo_program *program, rondo_value value, const char *call, const char *what,
                                   uint32_t *out_index) {
  char text[RONDO_SHAPE_TEXT];
  RONDO_TRY(rondo_program_resolve(program, value, call, what, out_index));
  const rondo_shape *shape = rondo_program_shape(program, *out_index);
  if (shape->type == RONDO_F32 && shape->rank == 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, shape->type != RONDO_F32 ? RONDO_REASON_TYPE : RONDO_REASON_SHAPE,
                    "%s: %s is %s, not a scalar f32, such as a cell", call, what, rondo_shape_text(text, shape));
}

/* The source of an optimizer's learning rate. */
typedef struct rate_source {
  bool is_scheduled;
  rondo_rate_options schedule;
  uint32_t rate;
} rate_source;

static rondo_status read_rate(const rondo_program *program, rondo_value rate, const rondo_rate_options *schedule,
                              const char *call, rate_source *out) {
  *out = (rate_source){.is_scheduled = schedule != NULL, .rate = RONDO_NO_VALUE};
  if (schedule == NULL) return resolve_scalar(program, rate, call, "learning_rate", &out->rate);
  if (rate.id == 0) return rondo_rate_read(schedule, call, &out->schedule);
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: both a learning_rate and a schedule are given: pass only one", call);
}

/* `updates` is the state that counts the updates. */
static rondo_status add_rate(rondo_program *program, uint32_t updates, rate_source *source) {
  if (!source->is_scheduled) return RONDO_OK;
  const rondo_attributes attributes = rondo_rate_attributes(&source->schedule);
  RONDO_TRY(rondo_program_add(program, &rondo_operator_learning_rate, &updates, 1, &attributes, &source->rate));
  if (source->schedule.output == NULL) return RONDO_OK;
  return rondo_program_output(program, source->schedule.output, rondo_program_tag(program, source->rate));
}

/* The checks that both public functions share. */
static rondo_status check_call(const rondo_program *program, const void *options, rondo_value loss, const char *call,
                               uint32_t *out_loss) {
  RONDO_TRY(rondo_require(call, "program", program));
  RONDO_TRY(rondo_require(call, "options", options));
  if (program->has_optimizer) {
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE, "%s: %s has an optimizer already", call, program->label);
  }
  return rondo_program_resolve(program, loss, call, "loss", out_loss);
}

/* SGD -------------------------------------------------------------------------------------------------------------- */

typedef struct sgd_setup {
  rate_source source;
  uint32_t momentum; /* RONDO_NO_VALUE for none */
  rondo_attributes attributes;
} sgd_setup;

static const char momentum_suffix[] = ".momentum";

static rondo_status add_sgd(const trainees *t, const rondo_update_part *part, uint32_t control, const void *user) {
  const sgd_setup *setup = user;
  const rondo_attributes attributes = attributes_of(part, &setup->attributes);
  uint32_t inputs[] = {part->state, part->gradient, setup->source.rate, control, RONDO_NO_VALUE, setup->momentum};
  if (setup->momentum == RONDO_NO_VALUE)
    return rondo_program_add(t->program, &rondo_operator_sgd, inputs, 4, &attributes, NULL);
  RONDO_TRY(declare_companion(t->program, part, momentum_suffix, &inputs[4]));
  return rondo_program_add(t->program, &rondo_operator_sgd_momentum, inputs, 6, &attributes, NULL);
}

static rondo_status add_sgd_rate(rondo_program *program, uint32_t control, void *user) {
  sgd_setup *setup = user;
  const rondo_shape scalar = rondo_shape_scalar(RONDO_I32);
  uint32_t inputs[] = {0, control};
  if (!setup->source.is_scheduled) return RONDO_OK;
  RONDO_TRY(rondo_program_declare(program, RONDO_VALUE_STATE, "sgd.step", &scalar, 0, &inputs[0]));
  RONDO_TRY(add_rate(program, inputs[0], &setup->source));
  return rondo_program_add(program, &rondo_operator_count_update, inputs, 2, NULL, NULL);
}

static rondo_status check_decay(float decay, const char *call) {
  if (decay >= 0 && decay < 1) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: weight_decay %g is not in 0 <= decay < 1",
                    call, (double)decay);
}

rondo_status rondo_program_sgd(rondo_program *program, rondo_value loss, const rondo_sgd_options *options) {
  static const char call[] = "rondo_program_sgd";
  uint32_t index = 0;
  RONDO_TRY(check_call(program, options, loss, call, &index));
  rondo_sgd_options given;
  RONDO_TRY(rondo_versioned_read("rondo_sgd_options", options, &given, sizeof given));
  sgd_setup setup = {.momentum = RONDO_NO_VALUE, .attributes = {.numbers = {given.weight_decay}}};
  RONDO_TRY(read_rate(program, given.learning_rate, given.schedule, call, &setup.source));
  if (given.momentum.id != 0) RONDO_TRY(resolve_scalar(program, given.momentum, call, "momentum", &setup.momentum));
  RONDO_TRY(check_decay(given.weight_decay, call));
  const optimizer by = {.add = add_sgd,
                        .prepare = add_sgd_rate,
                        .user = &setup,
                        .attributes = &setup.attributes,
                        .companions = {setup.momentum == RONDO_NO_VALUE ? NULL : momentum_suffix}};
  const trainees t = {.program = program, .call = call, .list = given.states, .list_count = given.state_count};
  return train(t, index, given.gradients, &by);
}

/* Adam ------------------------------------------------------------------------------------------------------------- */

typedef struct adam_setup {
  rate_source source;
  uint32_t factors;
  rondo_attributes attributes; /* numbers: beta1, beta2, epsilon, decay */
} adam_setup;

static const char first_suffix[] = ".m", second_suffix[] = ".v";

static rondo_status add_adam(const trainees *t, const rondo_update_part *part, uint32_t control, const void *user) {
  const adam_setup *setup = user;
  const rondo_attributes attributes = attributes_of(part, &setup->attributes);
  uint32_t inputs[] = {part->state, 0, 0, part->gradient, setup->source.rate, setup->factors, control};
  RONDO_TRY(declare_companion(t->program, part, first_suffix, &inputs[1]));
  RONDO_TRY(declare_companion(t->program, part, second_suffix, &inputs[2]));
  return rondo_program_add(t->program, &rondo_operator_adam, inputs, 7, &attributes, NULL);
}

static rondo_status check_numbers(const rondo_adam_options *given, rondo_attributes *out) {
  const float beta1 = given->beta1 == 0 ? 0.9f : given->beta1;
  const float beta2 = given->beta2 == 0 ? 0.999f : given->beta2;
  const float epsilon = given->epsilon == 0 ? 1e-8f : given->epsilon;
  if (!(beta1 > 0 && beta1 < 1 && beta2 > 0 && beta2 < 1 && epsilon > 0)) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "rondo_program_adam: beta1 %g and beta2 %g must be between 0 and 1, epsilon %g above 0",
                      (double)beta1, (double)beta2, (double)epsilon);
  }
  *out = (rondo_attributes){.numbers = {beta1, beta2, epsilon, given->weight_decay}};
  return check_decay(given->weight_decay, "rondo_program_adam");
}

static rondo_status add_step(rondo_program *program, uint32_t control, void *user) {
  adam_setup *setup = user;
  const rondo_shape scalar = rondo_shape_scalar(RONDO_I32);
  uint32_t inputs[] = {0, control};
  RONDO_TRY(rondo_program_declare(program, RONDO_VALUE_STATE, "adam.step", &scalar, 0, &inputs[0]));
  RONDO_TRY(add_rate(program, inputs[0], &setup->source));
  return rondo_program_add(program, &rondo_operator_adam_step, inputs, 2, &setup->attributes, &setup->factors);
}

rondo_status rondo_program_adam(rondo_program *program, rondo_value loss, const rondo_adam_options *options) {
  static const char call[] = "rondo_program_adam";
  uint32_t index = 0;
  RONDO_TRY(check_call(program, options, loss, call, &index));
  rondo_adam_options given;
  adam_setup setup = {0};
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_adam_options", options, &given));
  RONDO_TRY(read_rate(program, given.learning_rate, given.schedule, call, &setup.source));
  RONDO_TRY(check_numbers(&given, &setup.attributes));
  const optimizer by = {.add = add_adam,
                        .prepare = add_step,
                        .user = &setup,
                        .attributes = &setup.attributes,
                        .companions = {first_suffix, second_suffix}};
  const trainees t = {.program = program, .call = call, .list = given.states, .list_count = given.state_count};
  return train(t, index, given.gradients, &by);
}

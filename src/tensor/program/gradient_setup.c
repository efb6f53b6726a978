/* SPDX-License-Identifier: MIT
 * What happens to gradients between differentiation and the updates: sums over runs, the scale of the loss, norms and
 * clipping (operators/optimizer/gradient_control.c).
 *
 * Groups with a max_norm are clipped by their own norm, the others together. Each of these sets of states has sums of
 * squares of its own, whose sum shows whether all gradients are finite.
 */
#include <math.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "tensor/program/operation.h"
#include "tensor/program/operators.h"
#include "tensor/program/optimizer.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"
#include "tensor/program/sparse_gradient.h"

static rondo_status check_option(const char *call, const char *name, double value, double least, double most) {
  if (value >= least && value <= most) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: %s of rondo_gradient_options is %.10g: give %.10g to %.10g", call, name, value, least, most);
}

rondo_status rondo_gradients_read(rondo_trainees *t, const rondo_gradient_options *options) {
  rondo_gradient_options *given = &t->setup.given;
  RONDO_TRY(rondo_versioned_read("rondo_gradient_options", options, given, sizeof *given));
  if (given->accumulate == 0) given->accumulate = 1;
  if (given->initial_scale == 0) given->initial_scale = 65536.0f;
  if (given->growth_interval == 0) given->growth_interval = 2000;
  RONDO_TRY(check_option(t->call, "max_norm", (double)given->max_norm, 0, HUGE_VAL));
  RONDO_TRY(check_option(t->call, "initial_scale", (double)given->initial_scale, 0x1p-126, 0x1p126));
  RONDO_TRY(check_option(t->call, "accumulate", given->accumulate, 1, INT32_MAX));
  RONDO_TRY(check_option(t->call, "growth_interval", given->growth_interval, 1, INT32_MAX));
  t->groups[0].max_norm = given->max_norm;
  return RONDO_OK;
}

static bool needs_norm(const rondo_trainees *t) {
  const rondo_gradient_options *given = &t->setup.given;
  bool needs = given->scale_loss || given->norm_output != NULL;
  for (size_t g = 0; g < t->group_count; g++) needs = needs || t->groups[g].max_norm > 0;
  return needs;
}

static bool is_controlled(const rondo_trainees *t) { return t->setup.given.accumulate > 1 || needs_norm(t); }

rondo_status rondo_gradients_declare(rondo_trainees *t) {
  const rondo_shape counter = rondo_shape_scalar(RONDO_I32), scalar = rondo_shape_scalar(RONDO_F32);
  rondo_program *program = t->program;
  rondo_gradient_setup *setup = &t->setup;
  setup->runs = setup->scale = setup->good = setup->control = RONDO_NO_VALUE;
  if (!is_controlled(t)) return RONDO_OK;
  RONDO_TRY(rondo_program_declare(program, RONDO_VALUE_STATE, RONDO_ROUND_STATE, &counter, 0, &setup->runs));
  if (!setup->given.scale_loss) return RONDO_OK;
  RONDO_TRY(rondo_program_declare(program, RONDO_VALUE_STATE, "gradient.good_updates", &counter, 0, &setup->good));
  return rondo_program_declare(program, RONDO_VALUE_STATE, "gradient.scale", &scalar, setup->given.initial_scale,
                               &setup->scale);
}

static rondo_status accumulate_whole(const rondo_trainees *t, rondo_update_part *part) {
  uint32_t inputs[] = {0, part->gradient, t->setup.runs};
  RONDO_TRY(rondo_optimizer_companion(t->program, part, ".accumulated", 0, &inputs[0]));
  RONDO_TRY(rondo_program_add(t->program, &rondo_operator_accumulate, inputs, 3, NULL, NULL));
  rondo_program_value *sums = &t->program->values.items[inputs[0]];
  sums->is_summed = t->program->ranks.communicator != NULL && !sums->is_sharded;
  part->gradient = inputs[0];
  return RONDO_OK;
}

/* Sparse sums have slots for a number of runs. Between ranks, a round whose last run fails leaves its sums to the next
 * one. So there are slots for all runs of two rounds but the failed one. */
static size_t count_slots(rondo_trainees *t) {
  const size_t accumulate = t->setup.given.accumulate, both = 2 * accumulate - 1;
  bool is_sparse = false;
  for (size_t i = 0; i < t->part_count; i++) is_sparse = is_sparse || t->parts[i].keys != 0;
  if (t->program->ranks.communicator == NULL || !is_sparse) return accumulate;
  t->setup.most_runs = both < INT32_MAX ? (uint32_t)both : INT32_MAX;
  return both;
}

rondo_status rondo_gradients_accumulate(rondo_trainees *t) {
  const size_t slots = count_slots(t);
  for (size_t i = 0; i < t->part_count && t->setup.given.accumulate > 1; i++) {
    rondo_update_part *part = &t->parts[i];
    RONDO_TRY(part->keys == 0 ? accumulate_whole(t, part)
                              : rondo_sparse_accumulate(t->program, t->call, slots, t->setup.runs, part));
  }
  return RONDO_OK;
}

/* control: NO_VALUE, if the norm needs the sums in each run. */
static rondo_status sum_rows(const rondo_trainees *t, uint32_t control) {
  for (size_t i = 0; i < t->part_count && t->setup.given.accumulate > 1; i++)
    if (t->parts[i].keys != 0) RONDO_TRY(rondo_sparse_sum(t->program, control, &t->parts[i]));
  return RONDO_OK;
}

rondo_status rondo_gradients_end_run(rondo_trainees *t) {
  rondo_program *program = t->program;
  program->ranks.round = t->setup.given.accumulate;
  program->ranks.runs = t->setup.runs;
  if (t->setup.given.accumulate <= 1) return RONDO_OK;
  const rondo_attributes attributes = {.sizes = {t->setup.most_runs}, .size_count = 1};
  RONDO_TRY(rondo_program_add(program, &rondo_operator_count_update, &t->setup.runs, 1, &attributes, NULL));
  program->ranks.first_last = program->operations.count;
  return RONDO_OK;
}

/* Norms ------------------------------------------------------------------------------------------------------------ */

/* The group by whose max_norm the group is clipped. */
static const rondo_trained_group *clipping_group(const rondo_trainees *t, const rondo_trained_group *group) {
  return group->max_norm > 0 ? group : &t->groups[0];
}

static bool clips_any(const rondo_trainees *t, const rondo_trained_group *group) {
  bool any = false;
  for (size_t g = 0; g < t->group_count; g++)
    any = any || (t->groups[g].is_used && clipping_group(t, &t->groups[g]) == group);
  return any;
}

/* Adds the squares of the next gradients of the set. Their attributes are pairs of the first element and a count, 0 for
 * all. */
static rondo_status add_some_squares(const rondo_trainees *t, const rondo_trained_group *set, size_t *inout_next,
                                     uint32_t *inout_parts) {
  uint32_t inputs[1 + RONDO_SQUARED_GRADIENTS] = {*inout_parts}, count = 1;
  rondo_attributes attributes = {.size_count = 2 * RONDO_SQUARED_GRADIENTS, .numbers = {(float)(set - t->groups)}};
  for (; *inout_next < t->part_count && count <= RONDO_SQUARED_GRADIENTS; ++*inout_next) {
    const rondo_update_part *part = &t->parts[*inout_next];
    if (clipping_group(t, rondo_trainees_group(t, part)) != set) continue;
    if (part->sizes[RONDO_PART_ALL] > 0 && part->own_count == 0) continue;
    attributes.sizes[2 * (count - 1)] = part->sizes[RONDO_PART_GRADIENT] + part->own_first;
    attributes.sizes[2 * (count - 1) + 1] = part->own_count;
    inputs[count++] = part->gradient;
  }
  return rondo_program_add(t->program, &rondo_operator_gradient_squares, inputs, count, &attributes, inout_parts);
}

static rondo_status add_squares(const rondo_trainees *t, const rondo_trained_group *set, uint32_t *out_parts) {
  size_t next = 0;
  *out_parts = RONDO_NO_VALUE;
  do {
    RONDO_TRY(add_some_squares(t, set, &next, out_parts));
  } while (next < t->part_count);
  return t->program->ranks.communicator == NULL ? RONDO_OK : rondo_buckets_join_norm(t->program, out_parts);
}

/* Adds the squares of each set, which its group's `control` then has, and the sum of all. */
static rondo_status add_all_squares(rondo_trainees *t, size_t *out_sets, uint32_t *out_sum) {
  for (size_t g = *out_sets = 0; g < t->group_count; g++) {
    rondo_trained_group *set = &t->groups[g];
    if (!clips_any(t, set)) continue;
    RONDO_TRY(add_squares(t, set, &set->control));
    const uint32_t both[] = {*out_sum, set->control};
    *out_sum = set->control;
    if (++*out_sets > 1) RONDO_TRY(rondo_program_add(t->program, &rondo_operator_squares_add, both, 2, NULL, out_sum));
  }
  return RONDO_OK;
}

/* Replaces the squares of each set by the control with which its gradients are clipped. */
static rondo_status clip_sets(const rondo_trainees *t) {
  for (size_t g = 0; g < t->group_count; g++) {
    rondo_trained_group *set = &t->groups[g];
    const uint32_t inputs[] = {t->setup.control, set->control};
    const rondo_attributes attributes = {.numbers = {set->max_norm}};
    const bool has_squares = set->control != RONDO_NO_VALUE;
    set->control = t->setup.control;
    if (set->max_norm > 0 && has_squares)
      RONDO_TRY(rondo_program_add(t->program, &rondo_operator_gradient_clip, inputs, 2, &attributes, &set->control));
  }
  return RONDO_OK;
}

static void set_controls(const rondo_trainees *t) {
  for (size_t g = 0; g < t->group_count; g++) t->groups[g].control = clipping_group(t, &t->groups[g])->control;
}

rondo_status rondo_gradients_control(rondo_trainees *t) {
  rondo_gradient_setup *setup = &t->setup;
  const rondo_gradient_options *given = &setup->given;
  const uint32_t round = t->program->ranks.first_last > 0 ? 0 : given->accumulate; /* 0: the runs are counted */
  uint32_t inputs[] = {setup->runs, RONDO_NO_VALUE, setup->scale, setup->good}, results[RONDO_MAX_RESULTS];
  size_t sets = 0;
  if (!is_controlled(t)) return RONDO_OK;
  if (needs_norm(t)) RONDO_TRY(sum_rows(t, RONDO_NO_VALUE));
  if (needs_norm(t)) RONDO_TRY(add_all_squares(t, &sets, &inputs[1]));
  const bool clips = sets > 1 || !clips_any(t, &t->groups[0]); /* by operators of their own */
  const rondo_attributes attributes = {.sizes = {round, given->growth_interval, setup->most_runs},
                                       .size_count = 3,
                                       .numbers = {clips ? 0 : given->max_norm}};
  RONDO_TRY(rondo_program_add(t->program, &rondo_operator_gradient_control, inputs, 4, &attributes, results));
  setup->control = results[0];
  if (!needs_norm(t)) RONDO_TRY(sum_rows(t, setup->control));
  if (!clips) t->groups[0].control = setup->control;
  if (clips) RONDO_TRY(clip_sets(t));
  set_controls(t);
  if (given->norm_output == NULL) return RONDO_OK;
  return rondo_program_output(t->program, given->norm_output, rondo_program_tag(t->program, results[1]));
}

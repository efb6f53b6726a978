/* SPDX-License-Identifier: MIT
 * Path warm-ups: notes eager calls as parts of a path that will be recorded. Failures here do not fail a call. After a
 * call that cannot be noted, no more calls are noted, but the calls before it are planned.
 */
#include "tree/path/path_warm_up.h"

#include <assert.h>

#include "base/log.h"
#include "tree/path/path.h"
#include "tree/path/path_plan.h"
#include "tree/recorded_calls.h"

enum { MAX_PATH_WARM_UPS = 16 };

struct rondo_path_warm_up {
  rondo_path_warm_up *next; /* in the list of ended path warm-ups, newest first */
  uint32_t after;           /* number of the recording before the first call; 0: none */
  bool is_closed;           /* no more calls are added */
  RONDO_ARRAY(rondo_recorded_call *) calls;
};

/* Life ------------------------------------------------------------------------------------------------------------- */

static void drop_calls(rondo_tree *tree, rondo_path_warm_up *warm_up) {
  for (size_t i = 0; i < warm_up->calls.count; i++) rondo_recorded_free(tree, warm_up->calls.items[i]);
  rondo_array_free(&tree->allocator, &warm_up->calls);
}

static void free_warm_up(rondo_tree *tree, rondo_path_warm_up *warm_up) {
  drop_calls(tree, warm_up);
  rondo_release(&tree->allocator, warm_up, 1, sizeof *warm_up);
}

static bool has_function(const rondo_path_warm_up *warm_up, const rondo_function *function) {
  for (size_t i = 0; i < warm_up->calls.count; i++)
    if (warm_up->calls.items[i]->function == function) return true;
  return false;
}

void rondo_path_warm_up_forget(rondo_tree *tree, const rondo_function *function) {
  for (rondo_path_warm_up **place = &tree->path_warm_ups; *place != NULL;) {
    rondo_path_warm_up *at = *place;
    if (has_function(at, function)) {
      *place = at->next;
      free_warm_up(tree, at);
    } else {
      place = &at->next;
    }
  }
  if (tree->warming_up == NULL || !has_function(tree->warming_up, function)) return;
  drop_calls(tree, tree->warming_up);
  tree->warming_up->is_closed = true; /* later calls would come after an unknown one */
}

void rondo_path_warm_up_forget_all(rondo_tree *tree) {
  for (rondo_path_warm_up *at = tree->path_warm_ups, *next; at != NULL; at = next) {
    next = at->next;
    free_warm_up(tree, at);
  }
  tree->path_warm_ups = NULL;
  if (tree->warming_up != NULL) free_warm_up(tree, tree->warming_up);
  tree->warming_up = NULL;
}

/* Adding ----------------------------------------------------------------------------------------------------------- */

/* The first bit after the path and the calls that were warmed up. */
static uint32_t next_bit(const rondo_tree *tree) {
  const rondo_path_warm_up *warm_up = tree->warming_up;
  assert(warm_up != NULL);
  if (warm_up->calls.count == 0) return (uint32_t)tree->path_bits;
  const rondo_recorded_call *last = warm_up->calls.items[warm_up->calls.count - 1];
  return last->first_bit + last->bit_count;
}

/* Finds the index of a fresh output in the noted lifetimes: it is allocation number `order` that the call leaves. */
static bool find_allocation(const rondo_noted_lifetimes *noted, uint32_t order, uint32_t *out) {
  for (size_t i = 0; i < noted->lifetimes.count; i++)
    if (noted->lifetimes.items[i].freed == RONDO_PLAN_FOREVER && order-- == 0) {
      *out = (uint32_t)i;
      return true;
    }
  return false;
}

/* Fills in the fresh outputs. False: the call also leaves other memory. */
static bool fill_outputs(const rondo_form *form, rondo_recorded_call *call) {
  uint32_t none;
  for (size_t i = 0; i < call->output_count; i++) {
    rondo_output *output = &call->outputs[i];
    if (form->output_orders[i] == 0) continue;
    output->kind = RONDO_OUTPUT_FRESH;
    output->bit = call->first_bit + call->bit_count++;
    if (!find_allocation(call->noted, form->output_orders[i] - 1, &output->allocation)) return false;
  }
  return !find_allocation(call->noted, call->bit_count, &none);
}

/* Fills in which outputs of the path and of warmed-up calls are dead when the call begins. */
static rondo_status fill_dead_before(const rondo_tree *tree, rondo_recorded_call *call) {
  RONDO_TRY(rondo_path_list_dead(tree, call->first_bit, &call->dead_before));
  for (const rondo_buffer *buffer = tree->step_buffers; buffer != NULL; buffer = buffer->after)
    if (rondo_buffer_is_of_warm_up(buffer, tree->commons) && buffer->bit < call->first_bit)
      call->dead_before[buffer->bit / 64] &= ~(UINT64_C(1) << buffer->bit % 64);
  return RONDO_OK;
}

/* Whether the input will have a slot in the recording. Outputs of the path have none. */
static bool has_slot(const rondo_tree *tree, const rondo_resolved_input *input) {
  if (input->role != RONDO_ROLE_MOVING || input->bytes == 0) return false;
  return input->buffer == NULL || !rondo_buffer_is_of_warm_up(input->buffer, tree->commons);
}

static rondo_status fill_inputs(rondo_recorded_call *call) {
  const rondo_tree *tree = call->function->tree;
  const size_t count = call->function->options.input_count;
  size_t slots = 0;
  for (size_t i = 0; i < count; i++) slots += has_slot(tree, &tree->inputs[i]);
  RONDO_TRY(rondo_allocate_items(&tree->allocator, slots, sizeof *call->bound, &call->bound));
  call->bound_count = slots;
  RONDO_TRY(rondo_allocate_items(&tree->allocator, count, sizeof *call->given, &call->given));
  call->given_capacity = count;
  for (size_t i = 0, at = 0; i < count; i++) {
    const rondo_resolved_input *input = &tree->inputs[i];
    if (has_slot(tree, input)) call->bound[at++] = (rondo_bound_input){.input = (uint32_t)i, .bytes = input->bytes};
    if (input->is_sole)
      call->given[call->given_count++] = (rondo_given_output){.key = i + 1, .bit = input->buffer->bit};
  }
  return RONDO_OK;
}

static rondo_status fill(rondo_recorded_call *call, rondo_function *function, rondo_form *form) {
  const rondo_tree *tree = function->tree;
  call->function = function;
  call->form = form;
  call->noted = form->noted[0];
  rondo_noted_lifetimes_retain(call->noted);
  call->first_bit = next_bit(tree);
  RONDO_TRY(fill_dead_before(tree, call));
  RONDO_TRY(rondo_allocate_items(&tree->allocator, form->output_count, sizeof *call->outputs, &call->outputs));
  call->output_count = form->output_count;
  return fill_inputs(call);
}

static rondo_status open_warm_up(rondo_tree *tree) {
  if (tree->warming_up != NULL) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&tree->allocator, 1, sizeof *tree->warming_up, &tree->warming_up));
  tree->warming_up->after = rondo_path_last_number(tree);
  return RONDO_OK;
}

/* Adds the call. *out is NULL if the form leaves other memory than its outputs. */
static rondo_status add(rondo_function *function, rondo_form *form, rondo_recorded_call **out) {
  rondo_tree *tree = function->tree;
  rondo_recorded_call *call;
  *out = NULL;
  RONDO_TRY(rondo_array_reserve(&tree->allocator, &tree->warming_up->calls, tree->warming_up->calls.count + 1));
  RONDO_TRY(rondo_allocate_items(&tree->allocator, 1, sizeof *call, &call));
  const rondo_status status = fill(call, function, form);
  if (status == RONDO_OK && fill_outputs(form, call)) {
    tree->warming_up->calls.items[tree->warming_up->calls.count++] = call;
    *out = call;
  } else {
    rondo_recorded_free(tree, call);
  }
  return status;
}

static void mark_outputs(const rondo_recorded_call *call, rondo_buffer *const *outputs, size_t count) {
  for (size_t i = 0; i < count && i < call->output_count; i++) {
    if (call->outputs[i].kind != RONDO_OUTPUT_FRESH || outputs[i]->kind != RONDO_BUFFER_OWNED) continue;
    outputs[i]->is_of_warm_up = true;
    outputs[i]->bit = call->outputs[i].bit;
  }
}

/* Whether a recording of the form can be part of a plan of its path. */
static bool is_plannable(const rondo_tree *tree, const rondo_form *form) {
  return form->host_steps == 0 && form->noted_count == 1 && form->has_orders &&
         (tree->current != NULL || tree->path_bits == 0);
}

void rondo_path_warm_up_add(rondo_function *function, rondo_form *form, rondo_buffer *const *outputs, size_t count) {
  rondo_tree *tree = function->tree;
  rondo_recorded_call *call = NULL;
  if (form == NULL || form->skip != RONDO_SKIP_NONE || tree->device->ops->guard != NULL) return;
  rondo_saved_error before;
  rondo_error_save(&before);
  rondo_status status = open_warm_up(tree);
  if (status == RONDO_OK && !tree->warming_up->is_closed && is_plannable(tree, form))
    status = add(function, form, &call);
  if (status != RONDO_OK) rondo_error_restore(&before);
  if (call != NULL)
    mark_outputs(call, outputs, count);
  else if (tree->warming_up != NULL)
    tree->warming_up->is_closed = true;
}

/* Ending ----------------------------------------------------------------------------------------------------------- */

/* Whether both begin with the same call. The newer one then replaces the other. */
static bool is_like(const rondo_path_warm_up *a, const rondo_path_warm_up *b) {
  return a->after == b->after && a->calls.items[0]->form == b->calls.items[0]->form;
}

/* Drops older ones with the same beginning, and those beyond the limit. */
static void drop_older(rondo_tree *tree, rondo_path_warm_up *newest) {
  size_t count = 1;
  for (rondo_path_warm_up **place = &newest->next; *place != NULL;) {
    rondo_path_warm_up *at = *place;
    if (count == MAX_PATH_WARM_UPS || is_like(at, newest)) {
      *place = at->next;
      free_warm_up(tree, at);
    } else {
      place = &at->next;
      count++;
    }
  }
}

/* A single call needs no plan of its path. */
void rondo_path_warm_up_end(rondo_tree *tree) {
  rondo_path_warm_up *warm_up = tree->warming_up;
  tree->warming_up = NULL;
  if (warm_up->calls.count < 2) {
    free_warm_up(tree, warm_up);
    return;
  }
  warm_up->next = tree->path_warm_ups;
  tree->path_warm_ups = warm_up;
  drop_older(tree, warm_up);
}

/* Planning --------------------------------------------------------------------------------------------------------- */

static rondo_path_warm_up **find(rondo_tree *tree, const rondo_form *form) {
  const uint32_t after = rondo_path_last_number(tree);
  rondo_path_warm_up **place = &tree->path_warm_ups;
  for (; *place != NULL; place = &(*place)->next) {
    const rondo_recorded_call *first = (*place)->calls.items[0];
    if ((*place)->after == after && first->form == form && first->first_bit == tree->path_bits &&
        rondo_recorded_fits(tree, first->dead_before, first->first_bit))
      break;
  }
  return place;
}

bool rondo_path_warm_up_plan(rondo_tree *tree, const rondo_form *form) {
  rondo_path_warm_up **place = find(tree, form), *warm_up = *place;
  if (warm_up == NULL) return false;
  rondo_saved_error before;
  rondo_error_save(&before);
  *place = warm_up->next;
  warm_up->calls.items[0]->parent = tree->current;
  const rondo_status status = rondo_path_plan_warmed_up(tree, warm_up->calls.items, warm_up->calls.count);
  free_warm_up(tree, warm_up);
  if (status == RONDO_OK) return true;
  rondo_log(RONDO_LOG_WARNING, "tree", "planning a path that was warmed up: %s", rondo_last_error()->message);
  rondo_error_restore(&before);
  return false;
}

/* SPDX-License-Identifier: MIT
 * Choosing packed states: first what uses each state, then what order each of its readers wants.
 */
#include "tensor/compile/state_packing.h"

#include "base/error.h"
#include "tensor/program/program.h"

typedef struct chooser {
  const rondo_program *program;
  const rondo_layout_options *options;
  rondo_layout *layout;
  bool *is_used, *reads_rows; /* by value; reads_rows: something needs the plain rows of the state */
} chooser;

static const rondo_shared_value *find_shared(const chooser *c, uint32_t state) {
  const uint32_t index = rondo_sharing_find(c->options->sharing, c->program->values.items[state].name);
  return index == RONDO_NO_VALUE ? NULL : &c->options->sharing->values.items[index];
}

/* The state that the input shows, or RONDO_NO_VALUE. */
static uint32_t state_of(const chooser *c, uint32_t value) {
  const uint32_t owner = c->layout->schedule.owners[value];
  return c->program->values.items[owner].kind == RONDO_VALUE_STATE ? owner : RONDO_NO_VALUE;
}

/* Uses ------------------------------------------------------------------------------------------------------------- */

static void mark_use(chooser *c, const rondo_operation *operation, uint32_t input) {
  const uint32_t state = state_of(c, operation->inputs[input]);
  if (state == RONDO_NO_VALUE) return;
  const bool can_pack = operation->row->pack != NULL && input == operation->row->packed_input;
  c->is_used[state] = true;
  if (!can_pack || operation->inputs[input] != state) c->reads_rows[state] = true;
}

static void mark_uses(chooser *c) {
  for (uint32_t i = 0; i < c->layout->schedule.operations; i++) {
    const rondo_operation *operation = &c->program->operations.items[i];
    if (!c->layout->schedule.runs[i]) continue;
    RONDO_EACH_INPUT(k, operation) mark_use(c, operation, k);
  }
  for (size_t i = 0; i < c->program->outputs.count; i++) {
    const uint32_t state = state_of(c, c->program->outputs.items[i].value);
    if (state != RONDO_NO_VALUE) c->is_used[state] = c->reads_rows[state] = true;
  }
}

/* Orders ----------------------------------------------------------------------------------------------------------- */

/* Takes over `packed`, the order that a reader of the state wants; NULL: plain rows. */
static rondo_status agree(chooser *c, uint32_t state, rondo_packed_state *packed) {
  rondo_location *location = &c->layout->locations[state];
  const rondo_shared_value *shared = find_shared(c, state);
  const rondo_packed_state *first = shared != NULL ? shared->packed : location->packed;
  if (packed == NULL || (first != NULL && !rondo_packed_state_is_alike(first, packed))) c->reads_rows[state] = true;
  if (packed == NULL || first != NULL) return rondo_packed_state_release(packed);
  location->packed = packed;
  return RONDO_OK;
}

/* The state that operation `number` could read packed, or RONDO_NO_VALUE. A state that is shared with plain rows keeps
 * them. */
static uint32_t packable_state(const chooser *c, uint32_t number) {
  const rondo_operation *operation = &c->program->operations.items[number];
  if (!c->layout->schedule.runs[number] || operation->row->pack == NULL) return RONDO_NO_VALUE;
  const uint32_t state = state_of(c, operation->inputs[operation->row->packed_input]);
  if (state == RONDO_NO_VALUE) return RONDO_NO_VALUE;
  const rondo_shared_value *shared = find_shared(c, state);
  return shared != NULL && shared->packed == NULL ? RONDO_NO_VALUE : state;
}

static rondo_status ask(chooser *c, uint32_t number, uint32_t state) {
  const rondo_operation *operation = &c->program->operations.items[number];
  rondo_packed_state *packed = NULL;
  const rondo_status status = operation->row->pack(c->options->resources, c->program, number, &packed);
  if (status == RONDO_OK) return agree(c, state, packed);
  return rondo_fail_context(status, "%s (operator %u of %s)", operation->row->name, operation->number,
                            c->program->label);
}

static rondo_status ask_readers(chooser *c) {
  const uint32_t count = (uint32_t)c->layout->schedule.operations;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t state = packable_state(c, i);
    if (state != RONDO_NO_VALUE && !c->reads_rows[state]) RONDO_TRY(ask(c, i, state));
  }
  for (uint32_t i = 0; i < count; i++) { /* earlier readers of a state that a later one needs the rows of */
    const uint32_t state = packable_state(c, i);
    if (state != RONDO_NO_VALUE && c->reads_rows[state])
      RONDO_TRY(rondo_resources_drop_object(c->options->resources, i));
  }
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static bool may_pack(const chooser *c) {
  return !c->options->resources->is_cuda && !c->options->plain_states && c->program->optimizer == NULL &&
         c->program->ranks.communicator == NULL;
}

/* All states of a program of several ranks have their rows, because ranks exchange them. */
static rondo_status settle(chooser *c, uint32_t state) {
  rondo_location *location = &c->layout->locations[state];
  const rondo_shared_value *shared = find_shared(c, state);
  if (shared != NULL && shared->packed != NULL) {
    location->packed = rondo_packed_state_retain(shared->packed);
    location->reads_rows = (c->is_used[state] && c->reads_rows[state]) || c->program->ranks.communicator != NULL;
    return RONDO_OK;
  }
  if (!c->reads_rows[state]) return RONDO_OK;
  rondo_packed_state *const refused = location->packed;
  location->packed = NULL;
  return rondo_packed_state_release(refused);
}

static rondo_status choose(chooser *c) {
  const bool packs = may_pack(c);
  mark_uses(c);
  for (uint32_t i = 0; !packs && i < c->layout->schedule.values; i++) c->reads_rows[i] = true;
  RONDO_TRY(ask_readers(c));
  for (uint32_t i = 0; i < c->layout->schedule.values; i++)
    if (c->program->values.items[i].kind == RONDO_VALUE_STATE) RONDO_TRY(settle(c, i));
  return RONDO_OK;
}

rondo_status rondo_state_packing_choose(const rondo_program *program, const rondo_layout_options *options,
                                        rondo_layout *layout) {
  const rondo_allocator *allocator = &program->allocator;
  const size_t values = layout->schedule.values;
  chooser c = {.program = program, .options = options, .layout = layout};
  if (options->resources == NULL) return RONDO_OK;
  rondo_status status = rondo_allocate_items(allocator, values, sizeof *c.is_used, &c.is_used);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, values, sizeof *c.reads_rows, &c.reads_rows);
  if (status == RONDO_OK) status = choose(&c);
  rondo_release(allocator, c.is_used, values, sizeof *c.is_used);
  rondo_release(allocator, c.reads_rows, values, sizeof *c.reads_rows);
  return status;
}

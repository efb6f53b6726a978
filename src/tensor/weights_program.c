/* SPDX-License-Identifier: MIT
 * States of compiled programs into sets of weights, and back.
 */
#include <rondo/weights.h>

#include "tensor/compiled.h"
#include "tensor/weights_internal.h"

typedef bool (*name_filter)(const char *name);

/* States come first among a compiled program's values. */
static const rondo_named_value *state_at(const rondo_compiled *compiled, size_t index) {
  if (index >= compiled->values.count || compiled->values.items[index].kind != 's') return NULL;
  return &compiled->values.items[index];
}

static bool accepted(const rondo_named_value *state, name_filter only) { return only == NULL || only(state->name); }

static rondo_status read_states(rondo_weights *into, rondo_compiled *compiled, name_filter only) {
  const rondo_named_value *state = NULL;
  for (size_t i = 0; (state = state_at(compiled, i)) != NULL; i++) {
    if (!accepted(state, only)) continue;
    void *data = NULL;
    RONDO_TRY(rondo_weights_append(into, state->name, &state->shape, &data));
    RONDO_TRY(rondo_compiled_read(compiled, state->name, data, rondo_shape_bytes(&state->shape)));
  }
  return RONDO_OK;
}

rondo_status rondo_weights_gather(rondo_weights *weights, rondo_compiled *compiled, bool (*only)(const char *name)) {
  RONDO_TRY(rondo_require("rondo_weights_gather", "weights", weights));
  RONDO_TRY(rondo_require("rondo_weights_gather", "compiled", compiled));
  rondo_weights *gathered = NULL;
  RONDO_TRY(rondo_weights_create(&weights->allocator, &gathered));
  rondo_status status = read_states(gathered, compiled, only);
  if (status == RONDO_OK) status = rondo_weights_move(weights, gathered);
  rondo_weights_destroy(gathered);
  return status;
}

static rondo_status check_state(const rondo_weights *weights, const rondo_named_value *state) {
  const rondo_weights_entry *entry = rondo_weights_look_up(weights, state->name);
  if (entry == NULL) {
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME, "the weights have no tensor for the state '%s'",
                      state->name);
  }
  if (rondo_shape_same(&entry->shape, &state->shape)) return RONDO_OK;
  const bool same_type = entry->shape.type == state->shape.type;
  char have[RONDO_SHAPE_TEXT];
  char want[RONDO_SHAPE_TEXT];
  return rondo_fail(RONDO_INVALID_DATA, same_type ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
                    "the weights have '%s' as %s, the program's state is %s", state->name,
                    rondo_shape_text(have, &entry->shape), rondo_shape_text(want, &state->shape));
}

rondo_status rondo_weights_apply(const rondo_weights *weights, rondo_compiled *compiled,
                                 bool (*only)(const char *name)) {
  RONDO_TRY(rondo_require("rondo_weights_apply", "weights", weights));
  RONDO_TRY(rondo_require("rondo_weights_apply", "compiled", compiled));
  const rondo_named_value *state = NULL;
  for (size_t i = 0; (state = state_at(compiled, i)) != NULL; i++) {
    if (accepted(state, only)) RONDO_TRY(check_state(weights, state));
  }
  for (size_t i = 0; (state = state_at(compiled, i)) != NULL; i++) {
    if (!accepted(state, only)) continue;
    const rondo_weights_entry *entry = rondo_weights_look_up(weights, state->name);
    RONDO_TRY(rondo_compiled_write(compiled, state->name, entry->data, rondo_shape_bytes(&state->shape)));
  }
  return RONDO_OK;
}

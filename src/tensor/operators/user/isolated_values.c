/* SPDX-License-Identifier: MIT
 * Memory of its own for each value of an operation of the user, on devices that guard allocations.
 */
#include "tensor/operators/user/isolated_values.h"

#include <stdio.h>

#include <rondo/memory.h>
#include <rondo/stream.h>

#include "base/allocation.h"
#include "base/error.h"
#include "tensor/program/operation.h"
#include "tensor/program/operator_registry.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

/* Making ----------------------------------------------------------------------------------------------------------- */

static void free_values(const rondo_isolated_values *values, void *const *addresses, uint32_t count,
                        rondo_status *inout_status) {
  for (uint32_t i = 0; i < count; i++) rondo_status_keep_first(inout_status, rondo_free(values->device, addresses[i]));
}

static rondo_status destroy(void *object) {
  rondo_isolated_values *values = object;
  const rondo_allocator allocator = values->allocator;
  rondo_status status = RONDO_OK;
  free_values(values, values->inputs, RONDO_MAX_OPERANDS, &status);
  free_values(values, values->results, RONDO_MAX_RESULTS, &status);
  rondo_operator_release(values->row);
  rondo_release(&allocator, values, 1, sizeof *values);
  return status;
}

static rondo_status allocate(rondo_isolated_values *values, const rondo_program *program,
                             const rondo_operation *operation, uint32_t value, const char *what, void **out) {
  char name[128];
  (void)snprintf(name, sizeof name, "%s of operator %s", what, operation->row->name);
  return rondo_malloc(values->device, rondo_shape_bytes(rondo_program_shape(program, value)), name, out);
}

static rondo_status allocate_all(rondo_isolated_values *values, const rondo_program *program,
                                 const rondo_operation *operation) {
  char what[80];
  RONDO_EACH_INPUT(i, operation) {
    (void)snprintf(what, sizeof what, "input %.64s", operation->row->inputs[i]);
    RONDO_TRY(allocate(values, program, operation, operation->inputs[i], what, &values->inputs[i]));
  }
  for (uint32_t r = 0; r < operation->row->result_count; r++) {
    (void)snprintf(what, sizeof what, "result %u", r);
    RONDO_TRY(allocate(values, program, operation, operation->results[r], what, &values->results[r]));
  }
  return RONDO_OK;
}

rondo_status rondo_isolate_values(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                                  size_t *out_workspace_bytes) {
  const rondo_operation *of = &program->operations.items[operation];
  rondo_isolated_values *values;
  *out_workspace_bytes = 0;
  RONDO_TRY(rondo_allocate_items(&resources->allocator, 1, sizeof *values, &values));
  values->allocator = resources->allocator;
  values->device = resources->device;
  values->row = of->row;
  rondo_operator_retain(of->row);
  rondo_status status = rondo_resources_are_guarded(resources) ? allocate_all(values, program, of) : RONDO_OK;
  if (status != RONDO_OK) {
    rondo_status_keep_first(&status, destroy(values));
    return status;
  }
  return rondo_resources_add_object(resources, operation, values, destroy);
}

/* An operation has at least one result. */
bool rondo_are_isolated(const rondo_isolated_values *values) { return values->results[0] != NULL; }

/* Copies ----------------------------------------------------------------------------------------------------------- */

typedef struct value_copy {
  void *to;
  const void *from;
  size_t bytes;
} value_copy;

static rondo_status enqueue_copy(rondo_resources *resources, rondo_stream *stream, const void *user) {
  const value_copy *copy = user;
  (void)resources;
  return rondo_copy_async(stream, copy->to, copy->from, copy->bytes);
}

static rondo_status emit_copy(rondo_emitter *emitter, uint32_t value, void *to, const void *from) {
  const value_copy copy = {to, from, rondo_shape_bytes(rondo_emit_shape(emitter, value))};
  return rondo_emit_call(emitter, enqueue_copy, &copy, sizeof copy);
}

rondo_status rondo_emit_isolating(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_isolated_values *values = rondo_emit_object(emitter);
  if (!rondo_are_isolated(values)) return RONDO_OK;
  RONDO_EACH_INPUT(i, operation) {
    const uint32_t value = operation->inputs[i];
    RONDO_TRY(emit_copy(emitter, value, values->inputs[i], rondo_emit_address(emitter, value)));
  }
  return RONDO_OK;
}

rondo_status rondo_emit_returning(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_isolated_values *values = rondo_emit_object(emitter);
  if (!rondo_are_isolated(values)) return RONDO_OK;
  for (uint32_t r = 0; r < operation->row->result_count; r++) {
    const uint32_t value = operation->results[r];
    RONDO_TRY(emit_copy(emitter, value, rondo_emit_address(emitter, value), values->results[r]));
  }
  return RONDO_OK;
}

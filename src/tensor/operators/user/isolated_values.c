/* SPDX-License-Identifier: MIT
 * Memory of its own for each value of an operation of the user, on devices that guard allocations. These are CPU
 * devices, so the conversions have no other code. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/user/isolated_values.h"

#include <stdio.h>

#include <rondo/memory.h>
#include <rondo/stream.h>

#include "base/allocation.h"
#include "base/error.h"
#include "tensor/operators/common/element.h"
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
  rondo_release(&allocator, values, 1, sizeof *values);
  return status;
}

/* Of a value in memory of its own. */
static size_t bytes_of(const rondo_isolated_values *values, const rondo_shape *shape) {
  return values->is_wide ? rondo_shape_elements(shape) * sizeof(float) : rondo_shape_bytes(shape);
}

static rondo_status allocate(rondo_isolated_values *values, const rondo_program *program,
                             const rondo_operation *operation, uint32_t value, const char *what, void **out) {
  char name[128];
  const size_t bytes = bytes_of(values, rondo_program_shape(program, value));
  (void)snprintf(name, sizeof name, "%s of operator %s", what, operation->row->name);
  return rondo_malloc(values->device, bytes, name, out);
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

rondo_status rondo_isolate_values(rondo_resources *resources, const rondo_program *program, uint32_t operation) {
  const rondo_operation *of = &program->operations.items[operation];
  rondo_isolated_values *values;
  RONDO_TRY(rondo_allocate_items(&resources->allocator, 1, sizeof *values, &values));
  values->allocator = resources->allocator;
  values->device = resources->device;
  values->row = of->row;
  values->is_wide = rondo_user_operator_of(of->row)->definition.element != NULL &&
                    rondo_program_shape(program, of->results[0])->type != RONDO_F32;
  rondo_status status = allocate_all(values, program, of);
  if (status != RONDO_OK) {
    rondo_status_keep_first(&status, destroy(values));
    return status;
  }
  return rondo_resources_add_object(resources, operation, values, destroy);
}

const rondo_isolated_values *rondo_isolated_values_of(const rondo_resources *resources, const rondo_operator *row) {
  for (size_t i = 0; i < resources->made.count; i++) {
    const rondo_ready *ready = &resources->made.items[i];
    const rondo_isolated_values *values = ready->object;
    if (ready->destroy == destroy && values->row == row) return values;
  }
  return NULL;
}

/* Copies ----------------------------------------------------------------------------------------------------------- */

typedef struct value_copy {
  void *to;
  const void *from;
  size_t bytes;
  uint32_t element_bytes; /* of a fill: 1 or 2 */
} value_copy;

static rondo_status enqueue_copy(rondo_resources *resources, rondo_stream *stream, const void *user) {
  const value_copy *copy = user;
  (void)resources;
  return rondo_copy_async(stream, copy->to, copy->from, copy->bytes);
}

/* The eager fill and the recorded one differ in every element. Both are NaNs of each float type: of 32 bits, 0x7ffc
 * twice, or 0x7ffd; of 8 bits, 0x7f or 0xff. */
static rondo_status enqueue_fill(rondo_resources *resources, rondo_stream *stream, const void *user) {
  const value_copy *copy = user;
  const bool is_byte = copy->element_bytes == 1, is_recorded = resources->capturing;
  const rondo_fill fill = {.dst = copy->to,
                           .value = is_byte ? (is_recorded ? 0xff : 0x7f) : (is_recorded ? 0x7ffd : 0x7ffc),
                           .element_bytes = copy->element_bytes,
                           .width = copy->bytes / copy->element_bytes};
  return rondo_fill_async(stream, &fill);
}

/* Conversions between a type and F32. */
typedef struct conversion {
  uint64_t count;
  uint32_t type, reserved;
} conversion;

static void widen_cpu(rondo_blocks blocks, void *const *args) {
  const conversion *of = args[2];
  (void)blocks; /* one */
  for (size_t i = 0; i < of->count; i++)
    RONDO_ARG(float *, 1)[i] = rondo_load_one((rondo_type)of->type, RONDO_ARG(const void *, 0), i);
}

static void narrow_cpu(rondo_blocks blocks, void *const *args) {
  const conversion *of = args[2];
  (void)blocks; /* one */
  for (size_t i = 0; i < of->count; i++)
    rondo_store_one((rondo_type)of->type, RONDO_ARG(void *, 1), i, RONDO_ARG(const float *, 0)[i]);
}

#define CONVERSION \
  { RONDO_READS, RONDO_WRITES, RONDO_SCALAR(conversion) }
static const rondo_kernel_options widen = {RONDO_KERNEL_OPTIONS_INIT, .name = "widen_isolated", .cpu = widen_cpu,
                                           .params = CONVERSION};
static const rondo_kernel_options narrow = {RONDO_KERNEL_OPTIONS_INIT, .name = "narrow_isolated", .cpu = narrow_cpu,
                                            .params = CONVERSION};

static rondo_status emit_conversion(rondo_emitter *emitter, const rondo_kernel_options *code, uint32_t value, void *to,
                                    const void *from) {
  const rondo_shape *shape = rondo_emit_shape(emitter, value);
  const conversion of = {.count = rondo_shape_elements(shape), .type = shape->type};
  return rondo_emit_kernel(emitter, code, (rondo_grid){.x = 1}, RONDO_ARGS(&from, &to, &of));
}

static rondo_status emit_copy(rondo_emitter *emitter, uint32_t value, void *to, const void *from) {
  const value_copy copy = {to, from, rondo_shape_bytes(rondo_emit_shape(emitter, value)), 0};
  return rondo_emit_call(emitter, enqueue_copy, &copy, sizeof copy);
}

static rondo_status emit_fill(rondo_emitter *emitter, const rondo_isolated_values *values, uint32_t value, void *to) {
  const rondo_shape *shape = rondo_emit_shape(emitter, value);
  const bool is_byte = !values->is_wide && rondo_type_bytes(shape->type) == 1;
  const value_copy copy = {.to = to, .bytes = bytes_of(values, shape), .element_bytes = is_byte ? 1 : 2};
  return rondo_emit_call(emitter, enqueue_fill, &copy, sizeof copy);
}

rondo_status rondo_emit_isolating(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_isolated_values *values = rondo_emit_object(emitter);
  if (values == NULL) return RONDO_OK;
  RONDO_EACH_INPUT(i, operation) {
    const uint32_t value = operation->inputs[i];
    void *from = rondo_emit_address(emitter, value);
    RONDO_TRY(values->is_wide ? emit_conversion(emitter, &widen, value, values->inputs[i], from)
                              : emit_copy(emitter, value, values->inputs[i], from));
  }
  for (uint32_t r = 0; r < operation->row->result_count; r++)
    RONDO_TRY(emit_fill(emitter, values, operation->results[r], values->results[r]));
  return RONDO_OK;
}

rondo_status rondo_emit_returning(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_isolated_values *values = rondo_emit_object(emitter);
  if (values == NULL) return RONDO_OK;
  for (uint32_t r = 0; r < operation->row->result_count; r++) {
    const uint32_t value = operation->results[r];
    void *to = rondo_emit_address(emitter, value);
    RONDO_TRY(values->is_wide ? emit_conversion(emitter, &narrow, value, to, values->results[r])
                              : emit_copy(emitter, value, to, values->results[r]));
  }
  return RONDO_OK;
}

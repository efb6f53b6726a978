/* SPDX-License-Identifier: MIT
 * Emitting: operations become steps. The arguments of a step are copied into one block: the list of their addresses,
 * then the bytes that each pointer argument may access, then the values, each at its alignment. A kernel accesses
 * inputs and results of its operation (from an address inside them to their end), its workspace, and memory of index
 * checks. So the address determines the bytes.
 */
#include "tensor/compile/emitter.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

#define MAX_BLOCKS 4096
#define ARGUMENT_ALIGNMENT 64 /* the largest of a parameter */

void *rondo_location_address(const rondo_location *location, const rondo_compiled *compiled) {
  switch (location->block) {
    case RONDO_BLOCK_NONE:
      break;
    case RONDO_BLOCK_STATES:
      return compiled->states + location->offset;
    case RONDO_BLOCK_OWN:
      return compiled->own + location->offset;
    case RONDO_BLOCK_SHARED:
      return location->packed == NULL ? compiled->sharing->values.items[location->offset].address
             : location->reads_rows   ? location->packed->plain
                                      : location->packed->address;
    case RONDO_BLOCK_BORROWED:
      return (void *)(uintptr_t)location->offset;
    case RONDO_BLOCK_ARENA:
      return compiled->arena->memory + location->offset;
  }
  return NULL;
}

void *rondo_layout_address(const rondo_layout *layout, const rondo_compiled *compiled, uint32_t value) {
  assert(value < layout->schedule.values);
  return rondo_location_address(&layout->locations[value], compiled);
}

void *rondo_emit_address(const rondo_emitter *emitter, uint32_t value) {
  return value == RONDO_NO_VALUE ? NULL : rondo_layout_address(emitter->layout, emitter->compiled, value);
}

const rondo_shape *rondo_emit_shape(const rondo_emitter *emitter, uint32_t value) {
  return value == RONDO_NO_VALUE ? NULL : rondo_program_shape(emitter->program, value);
}

void *rondo_emit_workspace(const rondo_emitter *emitter) {
  return rondo_location_address(&emitter->layout->workspaces[emitter->operation], emitter->compiled);
}

bool rondo_place_part(size_t *end, size_t rows, size_t columns, size_t element_bytes, size_t *out) {
  size_t bytes = 0;
  *out = *end;
  return rondo_checked_multiply(rows, columns, &bytes) && rondo_checked_multiply(bytes, element_bytes, &bytes) &&
         rondo_checked_add(*end, bytes, end) && rondo_checked_align(*end, RONDO_PART_ALIGNMENT, end);
}

void *rondo_emit_part(const rondo_emitter *emitter, size_t offset) {
  return (char *)rondo_emit_workspace(emitter) + offset;
}

const rondo_program *rondo_emit_program(const rondo_emitter *emitter) { return emitter->program; }

struct rondo_communicator *rondo_emit_communicator(const rondo_emitter *emitter) {
  return emitter->program->ranks.communicator;
}

rondo_product *rondo_emit_product(const rondo_emitter *emitter) {
  return rondo_resources_product(&emitter->compiled->resources, emitter->operation);
}

rondo_convolution *rondo_emit_convolution(const rondo_emitter *emitter) {
  return rondo_resources_convolution(&emitter->compiled->resources, emitter->operation);
}

void *rondo_emit_object(const rondo_emitter *emitter) {
  return rondo_resources_object(&emitter->compiled->resources, emitter->operation);
}

bool rondo_emit_is_cuda(const rondo_emitter *emitter) { return emitter->compiled->resources.is_cuda; }

rondo_grid rondo_emit_grid(const rondo_emitter *emitter, size_t count, rondo_grain grain) {
  const size_t share = rondo_emit_is_cuda(emitter) ? grain.cuda : grain.cpu;
  assert(count > 0 && share > 0);
  const size_t blocks = count / share + (count % share != 0);
  return (rondo_grid){.x = blocks > MAX_BLOCKS ? MAX_BLOCKS : (uint32_t)blocks};
}

static const rondo_operation *joined_operation(const rondo_emitter *emitter, uint32_t index) {
  return rondo_schedule_operation(emitter->program, &emitter->layout->schedule, emitter->joined[index]);
}

static const rondo_operation *current(const rondo_emitter *emitter) { return joined_operation(emitter, 0); }

const rondo_chain *rondo_emit_chain(const rondo_emitter *emitter) {
  const rondo_schedule *schedule = &emitter->layout->schedule;
  return &schedule->chains.items[schedule->chain_of[emitter->operation] - 1];
}

rondo_chain rondo_emit_chain_of_one(const rondo_emitter *emitter) {
  return rondo_chain_of_one(emitter->program, emitter->layout->schedule.owners, emitter->operation);
}

void rondo_emit_chain_name(const rondo_emitter *emitter, const rondo_chain *chain, char *buffer, size_t capacity) {
  rondo_chain_name(emitter->program, chain, buffer, capacity);
}

const rondo_allocator *rondo_emit_allocator(const rondo_emitter *emitter) { return &emitter->compiled->allocator; }

static rondo_status push_step(rondo_emitter *emitter, rondo_step *step) {
  rondo_compiled *compiled = emitter->compiled;
  assert((step->kernel != NULL) != (step->call != NULL));
  if (step->operator_name == NULL) step->operator_name = current(emitter)->row->name;
  step->operation = emitter->operation;
  step->number = emitter->program->operations.items[emitter->operation].number;
  const rondo_status status = rondo_array_push(&compiled->allocator, &compiled->steps, step);
  if (status != RONDO_OK) rondo_release(&compiled->allocator, step->memory, step->memory_bytes, 1);
  return status;
}

/* Bytes from the start of the arguments to the end of the last; offsets[i] is that of argument i. */
static size_t lay_out_arguments(const rondo_parameter *parameters, size_t count, size_t *offsets) {
  size_t end = 0;
  for (size_t i = 0; i < count; i++) {
    assert(parameters[i].alignment > 0 && parameters[i].alignment <= ARGUMENT_ALIGNMENT);
    offsets[i] = rondo_round_up(end, parameters[i].alignment);
    end = offsets[i] + parameters[i].bytes;
  }
  return end;
}

/* Bytes from the address to the end of the value; 0: the address is not inside the value. */
static size_t value_bytes_at(const rondo_emitter *emitter, uint32_t value, const void *address) {
  const uintptr_t begin = (uintptr_t)rondo_emit_address(emitter, value), at = (uintptr_t)address;
  const size_t bytes = begin == 0 ? 0 : rondo_shape_bytes(rondo_emit_shape(emitter, value));
  return at >= begin && at - begin < bytes ? bytes - (at - begin) : 0;
}

/* The same for the beginning of the packed elements of a state. */
static size_t packed_bytes_at(const rondo_emitter *emitter, uint32_t value, const void *address) {
  const rondo_location *location = value == RONDO_NO_VALUE ? NULL : &emitter->layout->locations[value];
  const bool is_here = location != NULL && location->packed != NULL && location->packed->address == address;
  return is_here ? rondo_packed_state_bytes(location->packed) : 0;
}

static size_t operation_bytes_at(const rondo_emitter *emitter, const rondo_operation *operation, const void *address) {
  size_t bytes = 0;
  for (size_t i = 0; i < RONDO_MAX_OPERANDS && bytes == 0; i++)
    bytes = packed_bytes_at(emitter, operation->inputs[i], address);
  for (size_t i = 0; i < RONDO_MAX_OPERANDS && bytes == 0; i++)
    bytes = value_bytes_at(emitter, operation->inputs[i], address);
  for (size_t i = 0; i < operation->row->result_count && bytes == 0; i++)
    bytes = value_bytes_at(emitter, operation->results[i], address);
  return bytes;
}

/* 0: the address is not in memory of index checks. A check has a mark; an update reads all marks. */
static size_t check_bytes_at(const rondo_emitter *emitter, const void *address) {
  const rondo_update_gate *gate = emitter->compiled->gate;
  for (uint32_t i = 0; i < emitter->check_count; i++) {
    const rondo_check_memory *check = &emitter->checks[i];
    if (address == check->cell || address == check->mark || address == check->begun) return sizeof(uint64_t);
  }
  if (gate != NULL && address == &gate->run) return sizeof(uint64_t);
  return gate != NULL && address == &gate->begun ? emitter->compiled->gate_bytes - sizeof gate->run : 0;
}

/* Bytes from the address to the end of the workspace; 0: the address is not inside. */
static size_t workspace_bytes_at(const rondo_emitter *emitter, const void *address) {
  const uintptr_t begin = (uintptr_t)rondo_emit_workspace(emitter), at = (uintptr_t)address;
  const size_t bytes = begin == 0 ? 0 : emitter->layout->workspaces[emitter->operation].bytes;
  return at >= begin && at - begin < bytes ? bytes - (at - begin) : 0;
}

/* 0: the address is not in memory of the current operations. Arguments list the operations one after another, so the
 * search begins at *inout_at, the operation in which the last address was found. */
static size_t bytes_at(const rondo_emitter *emitter, const void *address, uint32_t *inout_at) {
  size_t bytes = check_bytes_at(emitter, address);
  if (bytes == 0) bytes = workspace_bytes_at(emitter, address);
  for (uint32_t i = 0; i < emitter->joined_count && bytes == 0; i++) {
    const uint32_t at = (*inout_at + i) % emitter->joined_count;
    bytes = operation_bytes_at(emitter, joined_operation(emitter, at), address);
    if (bytes > 0) *inout_at = at;
  }
  return bytes;
}

static void note_argument_bytes(const rondo_emitter *emitter, const rondo_parameter *parameters, rondo_step *step) {
  uint32_t at = 0;
  for (size_t i = 0; i < step->arg_count; i++) {
    if (parameters[i].access == RONDO_ACCESS_SCALAR) continue;
    const void *address;
    memcpy(&address, step->args[i], sizeof address);
    step->arg_bytes[i] = address == NULL ? 0 : bytes_at(emitter, address, &at);
    /* Guarded devices give values of the user's operators allocations of their own: 0 is all of one. */
    assert(address == NULL || step->arg_bytes[i] > 0 || emitter->compiled->resources.is_guarded);
  }
}

static rondo_status copy_arguments(const rondo_allocator *allocator, const rondo_parameter *parameters,
                                   const void *const *args, rondo_step *step) {
  size_t offsets[RONDO_MAX_PARAMETERS];
  size_t list_bytes = 0;
  const size_t value_bytes = lay_out_arguments(parameters, step->arg_count, offsets);
  const size_t entry_bytes = sizeof *step->args + sizeof *step->arg_bytes;
  const bool fits = rondo_checked_align(step->arg_count * entry_bytes, ARGUMENT_ALIGNMENT, &list_bytes);
  assert(fits);
  (void)fits;
  step->memory_bytes = list_bytes + value_bytes;
  RONDO_TRY(rondo_allocate_aligned(allocator, step->memory_bytes, 1, ARGUMENT_ALIGNMENT, &step->memory));
  step->args = step->memory;
  step->arg_bytes = (size_t *)(void *)(step->args + step->arg_count);
  for (size_t i = 0; i < step->arg_count; i++) {
    unsigned char *value = (unsigned char *)step->memory + list_bytes + offsets[i];
    memcpy(value, args[i], parameters[i].bytes);
    step->args[i] = value;
  }
  return RONDO_OK;
}

static rondo_status push_kernel(rondo_emitter *emitter, rondo_step *step, const void *const *args) {
  size_t parameter_count = 0;
  const rondo_parameter *parameters = rondo_kernel_parameters(step->kernel, &parameter_count);
  assert(parameter_count == step->arg_count);
  RONDO_TRY(copy_arguments(&emitter->compiled->allocator, parameters, args, step));
  note_argument_bytes(emitter, parameters, step);
  emitter->compiled->info.kernels++;
  return push_step(emitter, step);
}

rondo_status rondo_emit_kernel(rondo_emitter *emitter, const rondo_kernel_options *code, rondo_grid grid,
                               const void *const *args, size_t arg_count) {
  rondo_step step = {.grid = grid, .arg_count = arg_count};
  RONDO_TRY(rondo_resources_kernel(&emitter->compiled->resources, code, &step.kernel));
  return push_kernel(emitter, &step, args);
}

rondo_status rondo_emit_made_kernel(rondo_emitter *emitter, const rondo_kernel_options *code, const char *key,
                                    const char *name, rondo_grid grid, const void *const *args, size_t arg_count) {
  rondo_step step = {.grid = grid, .arg_count = arg_count};
  RONDO_TRY(
      rondo_resources_made_kernel(&emitter->compiled->resources, code, key, name, &step.kernel, &step.operator_name));
  return push_kernel(emitter, &step, args);
}

bool rondo_emit_is_made(const rondo_emitter *emitter, const char *key) {
  return rondo_resources_have_made(&emitter->compiled->resources, key);
}

rondo_status rondo_emit_call(rondo_emitter *emitter, rondo_step_call call, const void *user, size_t user_bytes) {
  rondo_step step = {.call = call, .memory_bytes = user_bytes};
  RONDO_TRY(rondo_allocate(&emitter->compiled->allocator, user_bytes, 1, &step.memory));
  if (user_bytes > 0) memcpy(step.memory, user, user_bytes);
  return push_step(emitter, &step);
}

/* A rondo_step_call; user: a product. */
static rondo_status run_product(rondo_resources *resources, rondo_stream *stream, const void *user) {
  const rondo_product *product;
  (void)resources;
  memcpy(&product, user, sizeof product);
  return rondo_product_run(product, stream);
}

rondo_status rondo_emit_product_call(rondo_emitter *emitter, const rondo_product_memory *memory) {
  rondo_product *const product = rondo_emit_product(emitter);
  RONDO_TRY(rondo_product_bind(product, memory));
  return rondo_emit_call(emitter, run_product, &product, sizeof product);
}

rondo_status rondo_emit_index_check(rondo_emitter *emitter, uint32_t input, size_t bound, rondo_check_memory *out) {
  const rondo_operation *operation = current(emitter);
  const char *rule = operation->row->index_rule;
  const bool repeats = input == operation->row->repeat_input;
  const rondo_shape *indices = rondo_emit_shape(emitter, operation->inputs[input]);
  assert(emitter->check_count < operation->row->checks_indices && emitter->check_count < RONDO_MAX_CHECKS);
  const rondo_index_check check = {.operator_name = operation->row->name,
                                   .operation = operation->number,
                                   .input = operation->row->inputs[input],
                                   .rule = rule == NULL ? "row 0 was used instead" : rule,
                                   .repeat_rule = repeats ? operation->row->repeat_rule : NULL,
                                   .bounds = {bound},
                                   .columns = 1,
                                   .is_wide = indices != NULL && indices->type == RONDO_I64};
  rondo_update_gate *gate = emitter->compiled->gate;
  const size_t number = emitter->compiled->checks.items.count;
  *out = (rondo_check_memory){.cell = NULL};
  RONDO_TRY(rondo_index_checks_add(&emitter->compiled->checks, &check, &out->cell));
  if (gate != NULL)
    *out = (rondo_check_memory){out->cell, &gate->run, &gate->failed[number], number == 0 ? &gate->begun : NULL};
  emitter->checks[emitter->check_count++] = *out;
  return RONDO_OK;
}

void rondo_emit_index_bounds(rondo_emitter *emitter, const size_t *bounds, uint32_t columns) {
  rondo_index_check *check = &emitter->compiled->checks.items.items[emitter->compiled->checks.items.count - 1];
  assert(emitter->check_count > 0 && columns > 0 && columns <= RONDO_MAX_DIMENSIONS);
  memcpy(check->bounds, bounds, columns * sizeof *bounds);
  check->columns = columns;
}

/* The first update sets the number of the next run: all checks of this run are done by then. */
rondo_gate_memory rondo_emit_gate(rondo_emitter *emitter) {
  rondo_update_gate *gate = emitter->compiled->gate;
  if (gate == NULL) return (rondo_gate_memory){.count = 0};
  if (current(emitter)->row->updates == 0)
    return (rondo_gate_memory){(uint32_t)emitter->compiled->checks.items.count, &gate->begun, NULL};
  const bool is_first = !emitter->has_next;
  emitter->has_next = true;
  return (rondo_gate_memory){(uint32_t)emitter->layout->check_count, &gate->begun, is_first ? &gate->run : NULL};
}

/* Operands --------------------------------------------------------------------------------------------------------- */

/* The arguments of a kernel and what they point to. */
typedef struct argument_list {
  const void *items[RONDO_MAX_PARAMETERS];
  size_t count;
  void *addresses[RONDO_MAX_PARAMETERS];
  rondo_gate_memory gate;
  rondo_check_memory checks[RONDO_MAX_CHECKS];
  size_t check_count;
} argument_list;

static void add_arguments(argument_list *list, const void *const *arguments, size_t count) {
  assert(list->count + count <= RONDO_MAX_PARAMETERS);
  for (size_t i = 0; i < count; i++) list->items[list->count++] = arguments[i];
}

static void add_address(argument_list *list, void *address) {
  assert(list->count < RONDO_MAX_PARAMETERS);
  void **at = &list->addresses[list->count];
  *at = address;
  add_arguments(list, (const void *[]){at}, 1);
}

static rondo_status add_operand(rondo_emitter *emitter, const rondo_operation *operation, const rondo_operand *operand,
                                argument_list *list) {
  switch (operand->kind) {
    case RONDO_OPERAND_VALUE:
      add_address(list, rondo_emit_address(emitter, rondo_operand_value(operation, operand->number)));
      break;
    case RONDO_OPERAND_WORKSPACE:
      add_address(list, rondo_emit_workspace(emitter));
      break;
    case RONDO_OPERAND_OBJECT:
      add_arguments(list, &operand->object, 1);
      break;
    case RONDO_OPERAND_GATE:
      list->gate = rondo_emit_gate(emitter);
      add_arguments(list, RONDO_ARGS(RONDO_GATE_ARGUMENTS(list->gate)));
      break;
    case RONDO_OPERAND_CHECK:
      assert(list->check_count < RONDO_MAX_CHECKS);
      rondo_check_memory *check = &list->checks[list->check_count++];
      RONDO_TRY(rondo_emit_index_check(emitter, operand->number, operand->bound, check));
      add_arguments(list, RONDO_ARGS(RONDO_CHECK_ARGUMENTS(*check)));
  }
  return RONDO_OK;
}

rondo_status rondo_emit_operands(rondo_emitter *emitter, const rondo_operation *operation,
                                 const rondo_kernel_options *code, rondo_grid grid, const rondo_operand *operands,
                                 size_t count) {
  argument_list list = {.count = 0};
  for (size_t i = 0; i < count; i++) RONDO_TRY(add_operand(emitter, operation, &operands[i], &list));
  return rondo_emit_kernel(emitter, code, grid, list.items, list.count);
}

static rondo_status fail_emit(const rondo_emitter *emitter, rondo_status status) {
  char name[RONDO_CHAIN_NAME];
  rondo_schedule_name(emitter->program, &emitter->layout->schedule, emitter->operation, name, sizeof name);
  return rondo_fail_context(status, "%s (operator %u of %s)", name,
                            emitter->program->operations.items[emitter->operation].number, emitter->program->label);
}

static rondo_status emit_current(rondo_emitter *emitter) {
  const rondo_operation *operations[RONDO_MAX_JOINED];
  const rondo_operator *row = current(emitter)->row;
  if (row->emit != NULL && emitter->joined_count == 1) return row->emit(emitter, current(emitter));
  assert(row->join != NULL);
  for (uint32_t i = 0; i < emitter->joined_count; i++) operations[i] = joined_operation(emitter, i);
  return row->join->emit(emitter, operations, emitter->joined_count);
}

/* A state that has both forms is packed again after its rows were updated. Nothing guards the step: after a run that
 * failed, it packs the same rows. */
static rondo_status pack_updated(rondo_emitter *emitter, const rondo_operation *operation) {
  RONDO_EACH_INPUT(k, operation) {
    const rondo_location *location = &emitter->layout->locations[operation->inputs[k]];
    if (!rondo_operation_updates(operation, k) || location->packed == NULL) continue;
    assert(location->reads_rows);
    const rondo_pack_call call = rondo_pack_all(location->packed);
    RONDO_TRY(rondo_emit_kernel(emitter, &rondo_pack_code, rondo_pack_grid(&call), RONDO_PACK_ARGUMENTS(call)));
  }
  return RONDO_OK;
}

static rondo_status emit_with_packing(rondo_emitter *emitter) {
  RONDO_TRY(emit_current(emitter));
  for (uint32_t i = 0; i < emitter->joined_count; i++) RONDO_TRY(pack_updated(emitter, joined_operation(emitter, i)));
  return RONDO_OK;
}

rondo_status rondo_emit_all(const rondo_program *program, const rondo_layout *layout, rondo_compiled *compiled) {
  rondo_emitter emitter = {.program = program, .layout = layout, .compiled = compiled};
  const size_t made = compiled->resources.kernels->made.count;
  for (uint32_t i = 0; i < layout->schedule.count; i += emitter.joined_count) {
    emitter.joined = &layout->schedule.order[i];
    emitter.joined_count = layout->schedule.joined[i];
    emitter.operation = emitter.joined[0];
    emitter.check_count = 0;
    const rondo_status status = emit_with_packing(&emitter);
    if (status != RONDO_OK) return fail_emit(&emitter, status);
  }
  assert(emitter.has_next == (compiled->gate != NULL));
  compiled->info.chain_kernels = (uint32_t)(compiled->resources.kernels->made.count - made);
  return RONDO_OK;
}

/* SPDX-License-Identifier: MIT
 * Choosing what runs: what outputs and updates need, each computation once (tensor/program/equal_operations.h). Two
 * values are the same if they have the same bytes, so each value has an owner.
 */
#include "tensor/compile/schedule.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "base/error.h"
#include "tensor/program/equal_operations.h"
#include "tensor/program/operation.h"
#include "tensor/program/operator.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

bool rondo_value_is_transient(const rondo_program *program, uint32_t value) {
  const rondo_value_kind kind = program->values.items[value].kind;
  return kind == RONDO_VALUE_INPUT || kind == RONDO_VALUE_RESULT;
}

/* What is needed --------------------------------------------------------------------------------------------------- */

bool rondo_program_mark_runs(const rondo_program *program, bool *needed, bool *runs) {
  bool any = program->outputs.count > 0;
  for (size_t i = 0; i < program->outputs.count; i++) needed[program->outputs.items[i].value] = true;
  for (size_t i = program->operations.count; i > 0; i--) {
    const rondo_operation *operation = &program->operations.items[i - 1];
    const bool is_update = operation->row->updates != 0;
    runs[i - 1] = is_update || operation->row->always_runs || rondo_operation_makes_any(operation, needed);
    any = any || runs[i - 1];
    if (!runs[i - 1]) continue;
    RONDO_EACH_INPUT(k, operation) needed[operation->inputs[k]] = true;
  }
  return any;
}

void rondo_program_count_readers(const rondo_program *program, const bool *runs, uint32_t *readers) {
  for (size_t i = 0; i < program->operations.count; i++) {
    if (!runs[i]) continue;
    RONDO_EACH_INPUT(k, &program->operations.items[i]) readers[program->operations.items[i].inputs[k]]++;
  }
  for (size_t i = 0; i < program->outputs.count; i++) readers[program->outputs.items[i].value]++;
}

/* Owners ----------------------------------------------------------------------------------------------------------- */

static bool has_same_bits(const rondo_program_value *a, const rondo_program_value *b) {
  if (a->kind != b->kind || (a->elements == NULL) != (b->elements == NULL)) return false;
  if (a->elements == NULL) return memcmp(&a->initial, &b->initial, sizeof a->initial) == 0;
  return rondo_shape_same(&a->shape, &b->shape) && memcmp(a->elements, b->elements, rondo_shape_bytes(&a->shape)) == 0;
}

/* The first constant with the same bits. */
static uint32_t constant_owner(const rondo_program *program, uint32_t value) {
  for (uint32_t i = 0; i < value; i++)
    if (has_same_bits(&program->values.items[i], &program->values.items[value])) return i;
  return value;
}

static void own_named_values(const rondo_program *program, rondo_schedule *schedule) {
  for (uint32_t i = 0; i < schedule->values; i++) {
    const bool is_constant = program->values.items[i].kind == RONDO_VALUE_CONSTANT;
    schedule->owners[i] = is_constant ? constant_owner(program, i) : i;
  }
}

/* Whether an operation that works in place may take over the bytes of the value: a result that nothing else reads. */
static bool may_be_overwritten(const rondo_program *program, uint32_t value) {
  const rondo_program_value *of = &program->values.items[value];
  return of->kind == RONDO_VALUE_RESULT && of->readers == 1 && of->view_of == RONDO_NO_VALUE;
}

static bool is_in_place(const rondo_program *program, const rondo_operation *operation) {
  const uint32_t input = operation->inputs[0];
  return operation->row->is_in_place && input != RONDO_NO_VALUE && may_be_overwritten(program, input);
}

/* Marks results that an operation overwrites. They are not shared with operations that compute the same. */
static void mark_overwritten(const rondo_program *program, const rondo_schedule *schedule, bool *overwritten) {
  for (uint32_t i = 0; i < schedule->operations; i++) {
    const rondo_operation *operation = &program->operations.items[i];
    if (schedule->runs[i] && is_in_place(program, operation)) overwritten[operation->inputs[0]] = true;
  }
}

static void find_makers(const rondo_program *program, rondo_schedule *schedule) {
  memset(schedule->makers, 0xff, schedule->values * sizeof *schedule->makers); /* RONDO_NO_VALUE */
  for (uint32_t i = 0; i < schedule->operations; i++) {
    const rondo_operation *operation = &program->operations.items[i];
    for (uint32_t r = 0; schedule->runs[i] && r < operation->row->result_count; r++)
      schedule->makers[schedule->owners[operation->results[r]]] = i;
  }
}

static void find_owners(const rondo_program *program, const bool *overwritten, rondo_repeats *repeats,
                        rondo_schedule *schedule) {
  own_named_values(program, schedule);
  for (uint32_t i = 0; i < schedule->operations; i++) {
    const rondo_operation *operation = &program->operations.items[i];
    const rondo_operator *row = operation->row;
    if (!schedule->runs[i]) continue;
    if (row->is_view || is_in_place(program, operation))
      schedule->owners[operation->results[0]] = schedule->owners[operation->inputs[0]];
    const bool is_shared =
        rondo_operator_may_repeat(row) && !row->is_view && !rondo_operation_makes_any(operation, overwritten);
    const uint32_t first = is_shared ? rondo_repeats_find(program, schedule->owners, repeats, i) : i;
    if (first == i && !row->is_view) continue;
    schedule->runs[i] = false;
    for (uint32_t r = 0; first != i && r < row->result_count; r++)
      schedule->owners[operation->results[r]] = program->operations.items[first].results[r];
  }
}

static rondo_status share_operations(const rondo_program *program, bool *overwritten, rondo_schedule *schedule) {
  rondo_repeats repeats;
  RONDO_TRY(rondo_repeats_make(program, &repeats));
  mark_overwritten(program, schedule, overwritten);
  find_owners(program, overwritten, &repeats, schedule);
  find_makers(program, schedule);
  rondo_repeats_free(program, &repeats);
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

rondo_status rondo_schedule_fail_empty(const rondo_program *program) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NONE,
                    "%s has no output and no optimizer, so nothing of it would run: add rondo_program_output",
                    program->label);
}

static rondo_status choose(const rondo_program *program, rondo_scratch *scratch, rondo_schedule *schedule) {
  const rondo_allocator *allocator = &program->allocator;
  bool *needed, *overwritten;
  RONDO_TRY(rondo_allocate_items(allocator, schedule->operations, sizeof *schedule->runs, &schedule->runs));
  RONDO_TRY(rondo_allocate_items(allocator, schedule->operations, sizeof *schedule->chain_of, &schedule->chain_of));
  RONDO_TRY(rondo_allocate_items(allocator, schedule->values, sizeof *schedule->owners, &schedule->owners));
  RONDO_TRY(rondo_allocate_items(allocator, schedule->values, sizeof *schedule->makers, &schedule->makers));
  RONDO_TRY(rondo_scratch_take(scratch, schedule->values, sizeof *needed, &needed));
  if (!rondo_program_mark_runs(program, needed, schedule->runs)) return rondo_schedule_fail_empty(program);
  RONDO_TRY(rondo_scratch_take(scratch, schedule->values, sizeof *overwritten, &overwritten));
  return share_operations(program, overwritten, schedule);
}

rondo_status rondo_schedule_choose(const rondo_program *program, rondo_schedule *out) {
  rondo_scratch scratch = {.allocator = &program->allocator};
  *out = (rondo_schedule){.operations = program->operations.count, .values = program->values.count};
  const rondo_status status = choose(program, &scratch, out);
  rondo_scratch_free(&scratch);
  return status;
}

size_t rondo_schedule_bytes(const rondo_program *program, const rondo_schedule *schedule, uint32_t value,
                            size_t alignment) {
  const bool is_result = program->values.items[value].kind == RONDO_VALUE_RESULT;
  if (!is_result || schedule->owners[value] != value || !rondo_value_is_made(program, value)) return 0;
  return rondo_round_up(rondo_shape_bytes(rondo_program_shape(program, value)), alignment);
}

void rondo_schedule_name(const rondo_program *program, const rondo_schedule *schedule, uint32_t number, char *buffer,
                         size_t capacity) {
  const uint32_t chain = schedule->chain_of[number];
  if (chain != 0)
    rondo_chain_name(program, &schedule->chains.items[chain - 1], buffer, capacity);
  else
    (void)snprintf(buffer, capacity, "%s", program->operations.items[number].row->name);
}

void rondo_schedule_free(const rondo_program *program, rondo_schedule *schedule) {
  const rondo_allocator *allocator = &program->allocator;
  rondo_release(allocator, schedule->owners, schedule->values, sizeof *schedule->owners);
  rondo_release(allocator, schedule->makers, schedule->values, sizeof *schedule->makers);
  rondo_release(allocator, schedule->runs, schedule->operations, sizeof *schedule->runs);
  rondo_release(allocator, schedule->chain_of, schedule->operations, sizeof *schedule->chain_of);
  rondo_array_free(allocator, &schedule->chains);
  rondo_release(allocator, schedule->order, schedule->operations, sizeof *schedule->order);
  rondo_release(allocator, schedule->joined, schedule->operations, sizeof *schedule->joined);
  rondo_edges_free(allocator, &schedule->before);
  *schedule = (rondo_schedule){0};
}

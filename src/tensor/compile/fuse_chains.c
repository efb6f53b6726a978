/* SPDX-License-Identifier: MIT
 * Fusing operators into chains. The program is walked backwards, so that the readers of an operator are in their chains
 * when it is visited. It is fused if all its readers are in one chain, it fits, and the memory allows it
 * (tensor/compile/chain_plan.h).
 */
#include <assert.h>

#include "base/allocation.h"
#include "base/error.h"
#include "tensor/compile/schedule.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

#define NO_READER 0
#define SEVERAL UINT32_MAX /* readers that are not in one chain, or an output */

typedef struct fuser {
  const rondo_program *program;
  rondo_schedule *schedule;
  size_t alignment;
  uint32_t *reader; /* by value that owns bytes: the number of the only step that reads them, plus one */
  uint32_t *last;   /* by value: the last operation that reads it; UINT32_MAX: an output, or an update reads it */
} fuser;

static const rondo_operation *operation_at(const fuser *f, uint32_t number) {
  return &f->program->operations.items[number];
}

static size_t bytes_of(const fuser *f, uint32_t value) {
  return rondo_round_up(rondo_shape_bytes(rondo_program_shape(f->program, value)), f->alignment);
}

/* Readers ---------------------------------------------------------------------------------------------------------- */

static void note_reader(fuser *f, uint32_t owner, uint32_t step) {
  uint32_t *reader = &f->reader[owner];
  *reader = *reader == NO_READER || *reader == step ? step : SEVERAL;
}

/* step: a number plus one, or SEVERAL. */
static void note_inputs(fuser *f, uint32_t number, uint32_t step) {
  const rondo_operation *operation = operation_at(f, number);
  RONDO_EACH_INPUT(k, operation) note_reader(f, f->schedule->owners[operation->inputs[k]], step);
}

static void find_last_readers(fuser *f) {
  for (uint32_t i = 0; i < f->schedule->operations; i++) {
    const rondo_operation *operation = operation_at(f, i);
    const bool is_update = rondo_operator_is_update(operation->row);
    if (!f->schedule->runs[i]) continue;
    RONDO_EACH_INPUT(k, operation) {
      uint32_t *last = &f->last[f->schedule->owners[operation->inputs[k]]];
      if (*last < i || is_update) *last = is_update ? UINT32_MAX : *last == UINT32_MAX ? *last : i;
    }
  }
  for (size_t i = 0; i < f->program->outputs.count; i++) {
    const uint32_t owner = f->schedule->owners[f->program->outputs.items[i].value];
    f->reader[owner] = SEVERAL;
    f->last[owner] = UINT32_MAX;
  }
}

/* Memory ----------------------------------------------------------------------------------------------------------- */

static bool reads(const fuser *f, const rondo_operation *operation, uint32_t owner) {
  RONDO_EACH_INPUT(k, operation) {
    if (f->schedule->owners[operation->inputs[k]] == owner) return true;
  }
  return false;
}

/* The position in the base order of the operation, or of the chain that it is in. */
static uint32_t place_of(const fuser *f, uint32_t number) {
  if (number == UINT32_MAX || f->schedule->chain_of[number] == 0) return number;
  return f->schedule->chains.items[f->schedule->chain_of[number] - 1].place;
}

/* Bytes whose live range fusing would extend to the chain's position: without it, nothing there or later reads them. */
static size_t prolonged_bytes(const fuser *f, const rondo_chain *chain, uint32_t number) {
  const rondo_operation *operation = operation_at(f, number);
  size_t bytes = 0;
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS && operation->inputs[k] != RONDO_NO_VALUE; k++) {
    const uint32_t owner = f->schedule->owners[operation->inputs[k]];
    bool is_new = true;
    for (uint32_t before = 0; before < k; before++)
      is_new = is_new && f->schedule->owners[operation->inputs[before]] != owner;
    const bool is_result = f->program->values.items[owner].kind == RONDO_VALUE_RESULT;
    if (is_new && is_result && place_of(f, f->last[owner]) < chain->place && !reads(f, &chain->operation, owner))
      bytes += bytes_of(f, owner);
  }
  return bytes;
}

/* Whether everything that the chain reads, except the operation's result, is computed before the operation. */
static bool could_run_at(const fuser *f, const rondo_chain *chain, uint32_t number) {
  for (uint32_t k = 0; k < chain->form.input_count; k++) {
    const uint32_t maker = f->schedule->makers[f->schedule->owners[chain->operation.inputs[k]]];
    if (maker != RONDO_NO_VALUE && maker > number) return false;
  }
  return true;
}

/* Bytes of the smallest result that needs no memory if the operation is fused. */
static size_t smallest_result(const fuser *f, const rondo_chain *chain, uint32_t number) {
  size_t least = bytes_of(f, operation_at(f, number)->results[0]);
  for (uint32_t m = 0; m + 1 < chain->count; m++) {
    const size_t bytes = bytes_of(f, operation_at(f, chain->members[m])->results[0]);
    if (bytes < least) least = bytes;
  }
  return least;
}

/* Whether the memory allows fusing, and the position of the chain with the operation. */
static bool allows(const fuser *f, const rondo_chain *chain, uint32_t number, uint32_t *out_place) {
  *out_place = chain->place;
  if (prolonged_bytes(f, chain, number) <= bytes_of(f, operation_at(f, number)->results[0])) return true;
  *out_place = number;
  return could_run_at(f, chain, number) &&
         bytes_of(f, chain->operation.results[0]) <= smallest_result(f, chain, number);
}

/* Fusing ----------------------------------------------------------------------------------------------------------- */

/* The chain of a step. It may have only one operator so far. */
static rondo_chain chain_of(const fuser *f, uint32_t step) {
  const uint32_t chain = f->schedule->chain_of[step];
  if (chain != 0) return f->schedule->chains.items[chain - 1];
  return rondo_chain_of_one(f->program, f->schedule->owners, step);
}

/* Adds the operation as the first member of the chain; false if that is not possible. */
static bool lengthen(const fuser *f, rondo_chain *chain, uint32_t number) {
  const uint32_t result = operation_at(f, number)->results[0];
  uint32_t place;
  if (chain->count == RONDO_CHAIN_STEPS) return false;
  if (rondo_shape_elements(rondo_program_shape(f->program, result)) != chain->form.count) return false;
  if (!allows(f, chain, number, &place)) return false;
  for (uint32_t m = chain->count++; m > 0; m--) chain->members[m] = chain->members[m - 1];
  chain->members[0] = number;
  chain->place = place;
  return rondo_chain_describe(f->program, f->schedule->owners, chain);
}

static rondo_status keep(fuser *f, const rondo_chain *chain) {
  rondo_schedule *schedule = f->schedule;
  uint32_t *number = &schedule->chain_of[chain->members[chain->count - 1]];
  assert(chain->count > 1 && chain->members[0] < chain->members[1]);
  if (*number == 0) {
    RONDO_TRY(rondo_array_push(&f->program->allocator, &schedule->chains, chain));
    *number = (uint32_t)schedule->chains.count;
  }
  schedule->chains.items[*number - 1] = *chain;
  schedule->chain_of[chain->members[0]] = *number;
  schedule->runs[chain->members[0]] = false;
  return RONDO_OK;
}

static rondo_status visit(fuser *f, uint32_t number) {
  const rondo_operation *operation = operation_at(f, number);
  if (operation->row->element.compute == NULL || (operation->row->is_user && f->schedule->isolates_user_operators)) {
    note_inputs(f, number, SEVERAL);
    return RONDO_OK;
  }
  const uint32_t reader = f->reader[operation->results[0]];
  uint32_t step = number + 1;
  if (reader != NO_READER && reader != SEVERAL) {
    rondo_chain chain = chain_of(f, reader - 1);
    if (lengthen(f, &chain, number)) {
      RONDO_TRY(keep(f, &chain));
      step = reader;
    }
  }
  note_inputs(f, number, step);
  return RONDO_OK;
}

static rondo_status fuse(fuser *f, rondo_scratch *scratch) {
  RONDO_TRY(rondo_scratch_take(scratch, f->schedule->values, sizeof *f->reader, &f->reader));
  RONDO_TRY(rondo_scratch_take(scratch, f->schedule->values, sizeof *f->last, &f->last));
  find_last_readers(f);
  for (uint32_t i = (uint32_t)f->schedule->operations; i > 0; i--) {
    if (f->schedule->runs[i - 1]) RONDO_TRY(visit(f, i - 1));
  }
  return RONDO_OK;
}

rondo_status rondo_schedule_fuse(const rondo_program *program, size_t alignment, rondo_schedule *schedule) {
  rondo_scratch scratch = {.allocator = &program->allocator};
  fuser f = {.program = program, .schedule = schedule, .alignment = alignment};
  const rondo_status status = fuse(&f, &scratch);
  rondo_scratch_free(&scratch);
  return status;
}

void rondo_schedule_unfuse(rondo_schedule *schedule) {
  for (size_t i = 0; i < schedule->operations; i++) {
    if (schedule->chain_of[i] != 0) schedule->runs[i] = true;
    schedule->chain_of[i] = 0;
  }
  schedule->chains.count = 0;
}

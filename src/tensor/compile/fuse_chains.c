/* SPDX-License-Identifier: MIT
 * Joining operators into chains: backwards through the program, so that an operator's readers are in their chains when
 * it is looked at. It is joined when all of them are in one, it fits, and the memory allows
 * (tensor/compile/chain_plan.h).
 */
#include <assert.h>

#include "base/error.h"
#include "tensor/compile/schedule.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

#define NOBODY 0
#define SEVERAL UINT32_MAX /* readers that are not in one chain; or an output */

typedef struct joiner {
  const rondo_program *program;
  rondo_schedule *schedule;
  size_t alignment;
  uint32_t *reader; /* one a value: of those that own bytes, the number of the only step that reads them, plus one */
  uint32_t *last; /* one a value: the last operation that reads it; UINT32_MAX for an output, and where that updates */
} joiner;

static const rondo_operation *operation_at(const joiner *j, uint32_t number) {
  return &j->program->operations.items[number];
}

static size_t bytes_of(const joiner *j, uint32_t value) {
  const size_t bytes = rondo_shape_bytes(rondo_program_shape(j->program, value));
  return (bytes + j->alignment - 1) / j->alignment * j->alignment;
}

/* Readers ---------------------------------------------------------------------------------------------------------- */

static void note_reader(joiner *j, uint32_t owner, uint32_t step) {
  uint32_t *reader = &j->reader[owner];
  *reader = *reader == NOBODY || *reader == step ? step : SEVERAL;
}

/* step: a number plus one, or SEVERAL. */
static void note_inputs(joiner *j, uint32_t number, uint32_t step) {
  const rondo_operation *operation = operation_at(j, number);
  RONDO_EACH_INPUT(k, operation) note_reader(j, j->schedule->owners[operation->inputs[k]], step);
}

static void find_last_readers(joiner *j) {
  for (uint32_t i = 0; i < j->schedule->operations; i++) {
    const rondo_operation *operation = operation_at(j, i);
    const bool is_update = rondo_operator_is_update(operation->row);
    if (!j->schedule->runs[i]) continue;
    RONDO_EACH_INPUT(k, operation) {
      uint32_t *last = &j->last[j->schedule->owners[operation->inputs[k]]];
      if (*last < i || is_update) *last = is_update ? UINT32_MAX : *last == UINT32_MAX ? *last : i;
    }
  }
  for (size_t i = 0; i < j->program->outputs.count; i++) {
    const uint32_t owner = j->schedule->owners[j->program->outputs.items[i].value];
    j->reader[owner] = SEVERAL;
    j->last[owner] = UINT32_MAX;
  }
}

/* Memory ----------------------------------------------------------------------------------------------------------- */

static bool reads(const joiner *j, const rondo_operation *operation, uint32_t owner) {
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
    if (operation->inputs[k] != RONDO_NO_VALUE && j->schedule->owners[operation->inputs[k]] == owner) return true;
  }
  return false;
}

/* Where the operation stands in the base order, or the chain that it is in. */
static uint32_t place_of(const joiner *j, uint32_t number) {
  if (number == UINT32_MAX || j->schedule->chain_of[number] == 0) return number;
  return j->schedule->chains.items[j->schedule->chain_of[number] - 1].place;
}

/* Bytes of what would live on to the chain's place because of the join: nobody there or later reads it otherwise. */
static size_t prolonged_bytes(const joiner *j, const rondo_chain *chain, uint32_t number) {
  const rondo_operation *operation = operation_at(j, number);
  size_t bytes = 0;
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS && operation->inputs[k] != RONDO_NO_VALUE; k++) {
    const uint32_t owner = j->schedule->owners[operation->inputs[k]];
    bool is_new = true;
    for (uint32_t before = 0; before < k; before++)
      is_new = is_new && j->schedule->owners[operation->inputs[before]] != owner;
    const bool comes_and_goes = j->program->values.items[owner].kind == RONDO_VALUE_RESULT;
    if (is_new && comes_and_goes && place_of(j, j->last[owner]) < chain->place && !reads(j, &chain->operation, owner))
      bytes += bytes_of(j, owner);
  }
  return bytes;
}

/* Whether all that the chain reads beside the operation's result stands before it. */
static bool could_run_at(const joiner *j, const rondo_chain *chain, uint32_t number) {
  for (uint32_t k = 0; k < chain->form.input_count; k++) {
    const uint32_t maker = j->schedule->makers[j->schedule->owners[chain->operation.inputs[k]]];
    if (maker != RONDO_NO_VALUE && maker > number) return false;
  }
  return true;
}

static size_t least_spared(const joiner *j, const rondo_chain *chain, uint32_t number) {
  size_t least = bytes_of(j, operation_at(j, number)->results[0]);
  for (uint32_t m = 0; m + 1 < chain->count; m++) {
    const size_t bytes = bytes_of(j, operation_at(j, chain->members[m])->results[0]);
    if (bytes < least) least = bytes;
  }
  return least;
}

/* Gives the chain's place with the operation in it. */
static bool allows(const joiner *j, const rondo_chain *chain, uint32_t number, uint32_t *out_place) {
  *out_place = chain->place;
  if (prolonged_bytes(j, chain, number) <= bytes_of(j, operation_at(j, number)->results[0])) return true;
  *out_place = number;
  return could_run_at(j, chain, number) && bytes_of(j, chain->operation.results[0]) <= least_spared(j, chain, number);
}

/* Joining ---------------------------------------------------------------------------------------------------------- */

/* The chain of a step, which may be one operator so far. */
static rondo_chain chain_of(const joiner *j, uint32_t step) {
  const uint32_t chain = j->schedule->chain_of[step];
  if (chain != 0) return j->schedule->chains.items[chain - 1];
  rondo_chain alone = {.members = {step}, .count = 1, .place = step};
  const bool fits = rondo_chain_describe(j->program, j->schedule->owners, &alone);
  assert(fits);
  (void)fits;
  return alone;
}

/* The chain with the operation as its first member; false when it may not be. */
static bool lengthen(const joiner *j, rondo_chain *chain, uint32_t number) {
  const uint32_t result = operation_at(j, number)->results[0];
  uint32_t place;
  if (chain->count == RONDO_CHAIN_STEPS) return false;
  if (rondo_shape_elements(rondo_program_shape(j->program, result)) != chain->form.count) return false;
  if (!allows(j, chain, number, &place)) return false;
  for (uint32_t m = chain->count++; m > 0; m--) chain->members[m] = chain->members[m - 1];
  chain->members[0] = number;
  chain->place = place;
  return rondo_chain_describe(j->program, j->schedule->owners, chain);
}

static rondo_status keep(joiner *j, const rondo_chain *chain) {
  rondo_schedule *schedule = j->schedule;
  uint32_t *mine = &schedule->chain_of[chain->members[chain->count - 1]];
  if (*mine == 0) {
    RONDO_TRY(rondo_array_push(&j->program->allocator, &schedule->chains, chain));
    *mine = (uint32_t)schedule->chains.count;
  }
  schedule->chains.items[*mine - 1] = *chain;
  schedule->chain_of[chain->members[0]] = *mine;
  schedule->runs[chain->members[0]] = false;
  return RONDO_OK;
}

static rondo_status visit(joiner *j, uint32_t number) {
  const rondo_operation *operation = operation_at(j, number);
  if (operation->row->element.compute == NULL) {
    note_inputs(j, number, SEVERAL);
    return RONDO_OK;
  }
  const uint32_t reader = j->reader[operation->results[0]];
  uint32_t step = number + 1;
  if (reader != NOBODY && reader != SEVERAL) {
    rondo_chain chain = chain_of(j, reader - 1);
    if (lengthen(j, &chain, number)) {
      RONDO_TRY(keep(j, &chain));
      step = reader;
    }
  }
  note_inputs(j, number, step);
  return RONDO_OK;
}

static rondo_status join(joiner *j) {
  find_last_readers(j);
  for (uint32_t i = (uint32_t)j->schedule->operations; i > 0; i--) {
    if (j->schedule->runs[i - 1]) RONDO_TRY(visit(j, i - 1));
  }
  return RONDO_OK;
}

rondo_status rondo_schedule_join(const rondo_program *program, size_t alignment, rondo_schedule *schedule) {
  const rondo_allocator *allocator = &program->allocator;
  joiner j = {.program = program, .schedule = schedule, .alignment = alignment};
  rondo_status status = rondo_allocate_items(allocator, schedule->values, sizeof *j.reader, &j.reader);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, schedule->values, sizeof *j.last, &j.last);
  if (status == RONDO_OK) status = join(&j);
  rondo_release(allocator, j.reader, schedule->values, sizeof *j.reader);
  rondo_release(allocator, j.last, schedule->values, sizeof *j.last);
  return status;
}

void rondo_schedule_part(rondo_schedule *schedule) {
  for (size_t i = 0; i < schedule->operations; i++) {
    if (schedule->chain_of[i] != 0) schedule->runs[i] = true;
    schedule->chain_of[i] = 0;
  }
  schedule->chains.count = 0;
}

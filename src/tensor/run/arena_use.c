/* SPDX-License-Identifier: MIT
 * Holding an arena, and what is lost in it.
 */
#include "tensor/run/arena_use.h"

#include <assert.h>

#include "base/error.h"
#include "tensor/program/program_internal.h"

void rondo_arena_claim(rondo_compiled *compiled) {
  if (compiled->arena == NULL || compiled->arena->holder == compiled) return;
  compiled->arena->holder = compiled;
  for (size_t i = 0; i < compiled->values.count; i++) {
    rondo_named_value *value = &compiled->values.items[i];
    value->is_lost = value->in_arena;
    compiled->has_lost |= value->in_arena;
  }
}

void rondo_arena_note_written(rondo_compiled *compiled, rondo_named_value *value) {
  value->is_lost = false;
  compiled->has_lost = false;
  for (size_t i = 0; i < compiled->values.count; i++) compiled->has_lost |= compiled->values.items[i].is_lost;
}

void rondo_compiled_claim_inputs(rondo_compiled *compiled) {
  rondo_arena_claim(compiled);
  compiled->has_lost = false;
  for (size_t i = 0; i < compiled->values.count; i++) {
    rondo_named_value *value = &compiled->values.items[i];
    if (value->kind == 'i') value->is_lost = false;
    compiled->has_lost |= value->is_lost;
  }
}

static bool is_lost(const rondo_compiled *compiled, const rondo_named_value *value) {
  return value->is_lost || (value->in_arena && compiled->arena->holder != compiled);
}

/* Names one input and counts all, because a caller who forgot one forgot the others too. */
static rondo_status require_inputs(const rondo_compiled *compiled, const char *call) {
  const rondo_named_value *first = NULL;
  size_t count = 0;
  for (size_t i = 0; i < compiled->values.count; i++) {
    const rondo_named_value *value = &compiled->values.items[i];
    if (value->kind == 'i' && is_lost(compiled, value) && count++ == 0) first = value;
  }
  if (first == NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_OVERWRITTEN,
                    "%s: input '%s' of %s, the first of %zu, is in memory that another program has used since it was "
                    "written: write the inputs before each run that follows one of a program that shares the arena, or "
                    "stage them (rondo_compile_options.staged)",
                    call, first->name, compiled->label, count);
}

rondo_status rondo_arena_take(rondo_compiled *compiled, const char *call) {
  assert(compiled->arena != NULL);
  RONDO_TRY(require_inputs(compiled, call));
  compiled->arena->holder = compiled;
  compiled->has_lost = false;
  for (size_t i = 0; i < compiled->values.count; i++) compiled->values.items[i].is_lost = false;
  return RONDO_OK;
}

rondo_status rondo_arena_require(const rondo_compiled *compiled, const rondo_named_value *value, const char *call) {
  if (!is_lost(compiled, value)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_OVERWRITTEN,
                    "%s: output '%s' of %s is in memory that another program has used since it was "
                    "computed: read it before a program that shares the arena runs or is written to, or stage it "
                    "(rondo_compile_options.staged)",
                    call, value->name, compiled->label);
}

uint64_t rondo_compiled_arenas(const rondo_compiled *compiled, uint64_t *out_largest) {
  uint64_t bytes = 0;
  *out_largest = 0;
  for (size_t i = 0; i < compiled->sharing->arenas.count; i++) {
    const uint64_t more = compiled->sharing->arenas.items[i]->bytes;
    bytes += more;
    if (more > *out_largest) *out_largest = more;
  }
  return bytes;
}

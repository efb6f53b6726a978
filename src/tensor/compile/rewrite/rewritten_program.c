/* SPDX-License-Identifier: MIT
 * Finding patterns from the last operator to the first, so that the longest ones are found, and copying the program
 * without what they replace and without what does not run. Threads: any number, for different programs.
 */
#include "tensor/compile/rewrite/rewritten_program.h"

#include <string.h>

#include "base/allocation.h"
#include "base/error.h"
#include "tensor/compile/rewrite/program_copy.h"
#include "tensor/compile/schedule.h"
#include "tensor/program/program.h"
#include "tensor/program/program_check.h"
#include "tensor/program/shape.h"

#define MOST_ROUNDS 8 /* a pattern of patterns is at most this deep */

typedef struct found_pattern {
  const rondo_pattern *pattern;
  rondo_pattern_match match;
} found_pattern;

typedef struct rewriter {
  rondo_program_copier copier;
  rondo_pattern_target target;
  rondo_scratch scratch;
  bool *runs;        /* by operation of the program that is copied */
  bool *claimed;     /* likewise: a match has it as a member */
  uint32_t *readers; /* by value: inputs of operations that run, and outputs */
  uint32_t *root_of; /* by operation: the match that it is the root of, plus one; 0: none */
  RONDO_ARRAY(found_pattern) found;
} rewriter;

/* Finding ---------------------------------------------------------------------------------------------------------- */

static rondo_status find_all(rewriter *r, rondo_pattern_set set, rondo_pattern_counts *counts) {
  const rondo_pattern_search search = {r->copier.from, r->readers, r->target};
  for (uint32_t i = (uint32_t)r->copier.from->operations.count; i > 0; i--) {
    found_pattern found;
    if (!r->runs[i - 1] || r->claimed[i - 1] || r->copier.from->operations.items[i - 1].row->result_count == 0)
      continue;
    const size_t which = rondo_pattern_find(&search, set, r->claimed, i - 1, &found.match);
    if (which == RONDO_PATTERN_COUNT) continue;
    found.pattern = rondo_pattern_at(which);
    RONDO_TRY(rondo_array_push(&r->copier.from->allocator, &r->found, &found));
    r->root_of[i - 1] = (uint32_t)r->found.count;
    for (uint32_t m = 0; m < found.match.member_count; m++) r->claimed[found.match.members[m]] = true;
    counts->of[which]++;
  }
  return RONDO_OK;
}

/* Copying ---------------------------------------------------------------------------------------------------------- */

static rondo_status add_replacement(rewriter *r, const found_pattern *found) {
  const rondo_operation *root = &r->copier.from->operations.items[found->match.root];
  rondo_program *to = r->copier.to;
  const size_t first = to->operations.count;
  rondo_pattern_match match = found->match;
  rondo_value result;
  for (size_t i = 0; i < RONDO_PATTERN_VALUES; i++) {
    if (match.values[i] == RONDO_NO_VALUE) continue;
    match.values[i] = r->copier.values[match.values[i]];
    assert(match.values[i] != RONDO_NO_VALUE);
  }
  const rondo_status status = found->pattern->replace(to, &match, &result);
  if (status != RONDO_OK) return rondo_fail_context(status, "pattern '%s'", found->pattern->name);
  rondo_program_copy_origin(&r->copier, first, found->match.root);
  uint32_t *made = &r->copier.values[root->results[0]];
  RONDO_TRY(rondo_program_resolve(to, result, found->pattern->name, "the result", made));
  assert(rondo_shape_same(rondo_program_shape(to, *made), rondo_program_shape(r->copier.from, root->results[0])));
  return RONDO_OK;
}

static rondo_status copy(rewriter *r) {
  for (uint32_t i = 0; i < r->copier.from->operations.count; i++) {
    if (r->root_of[i] > 0)
      RONDO_TRY(add_replacement(r, &r->found.items[r->root_of[i] - 1]));
    else if (r->runs[i] && !r->claimed[i])
      RONDO_TRY(rondo_program_copy_operation(&r->copier, i));
  }
  return rondo_program_copy_outputs(&r->copier);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status allocate(rewriter *r) {
  const size_t operations = r->copier.from->operations.count, values = r->copier.from->values.count;
  bool *needed;
  RONDO_TRY(rondo_scratch_take(&r->scratch, operations, sizeof *r->runs, &r->runs));
  RONDO_TRY(rondo_scratch_take(&r->scratch, operations, sizeof *r->claimed, &r->claimed));
  RONDO_TRY(rondo_scratch_take(&r->scratch, operations, sizeof *r->root_of, &r->root_of));
  RONDO_TRY(rondo_scratch_take(&r->scratch, values, sizeof *r->readers, &r->readers));
  RONDO_TRY(rondo_scratch_take(&r->scratch, values, sizeof *needed, &needed));
  (void)rondo_program_mark_runs(r->copier.from, needed, r->runs);
  rondo_program_count_readers(r->copier.from, r->runs, r->readers);
  return RONDO_OK;
}

static rondo_status rewrite(rewriter *r, rondo_pattern_set set, rondo_pattern_counts *counts) {
  RONDO_TRY(allocate(r));
  RONDO_TRY(find_all(r, set, counts));
  if (r->found.count == 0) return RONDO_OK;
  RONDO_TRY(rondo_program_copy_begin(&r->copier, &r->scratch));
  RONDO_TRY(copy(r));
  rondo_program_check(r->copier.to);
  return RONDO_OK;
}

/* One round. *out: NULL if nothing was found. */
static rondo_status rewrite_once(const rondo_program *program, rondo_pattern_set set, rondo_pattern_target target,
                                 rondo_pattern_counts *counts, rondo_program **out) {
  rewriter r = {.copier = {.from = program}, .target = target, .scratch = {.allocator = &program->allocator}};
  const rondo_status status = rewrite(&r, set, counts);
  rondo_scratch_free(&r.scratch);
  rondo_array_free(&program->allocator, &r.found);
  if (status != RONDO_OK) rondo_program_destroy(r.copier.to);
  *out = status == RONDO_OK ? r.copier.to : NULL;
  return status;
}

/* Rounds, until nothing is found. */
static rondo_status rewrite_repeatedly(const rondo_program *program, rondo_pattern_set set, rondo_pattern_target target,
                                       rondo_pattern_counts *counts, rondo_program **inout) {
  for (int round = 0; round < MOST_ROUNDS; round++) {
    rondo_program *next;
    RONDO_TRY(rewrite_once(*inout == NULL ? program : *inout, set, target, counts, &next));
    if (next == NULL) break;
    rondo_program_destroy(*inout);
    *inout = next;
  }
  return RONDO_OK;
}

static rondo_status rewrite_whole(const rondo_program *program, rondo_pattern_set set, rondo_pattern_target target,
                                  rondo_pattern_counts *counts, rondo_program **inout) {
  for (size_t i = 0; i < RONDO_PATTERN_COUNT; i++) {
    const rondo_pattern *pattern = rondo_pattern_at(i);
    rondo_program *next;
    if ((set >> i & 1u) == 0 || pattern->rewrite == NULL) continue;
    const rondo_status status = pattern->rewrite(*inout == NULL ? program : *inout, target, &counts->of[i], &next);
    if (status != RONDO_OK) return rondo_fail_context(status, "pattern '%s'", pattern->name);
    if (next == NULL) continue;
    rondo_program_check(next);
    rondo_program_destroy(*inout);
    *inout = next;
  }
  return RONDO_OK;
}

rondo_status rondo_program_rewrite(const rondo_program *program, rondo_pattern_set set, rondo_pattern_target target,
                                   rondo_pattern_counts *out_counts, rondo_program **out) {
  *out = NULL;
  *out_counts = (rondo_pattern_counts){.of = {0}};
  if (set == 0 || program->optimizer != NULL || program->ranks.communicator != NULL) return RONDO_OK;
  rondo_status status = rewrite_repeatedly(program, set, target, out_counts, out);
  if (status == RONDO_OK) status = rewrite_whole(program, set, target, out_counts, out);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_program_destroy(*out);
  *out = NULL;
  return status;
}

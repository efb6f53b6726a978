/* SPDX-License-Identifier: MIT
 * A sum that is normalised, on CUDA: one kernel instead of two, each of which takes about as long as its launch. Others
 * may read the sum too, as in networks with residual connections, so this is a rewrite of the whole program. Threads:
 * any number, for different programs.
 */
#include "base/allocation.h"
#include "tensor/compile/rewrite/program_copy.h"
#include "tensor/compile/schedule.h"
#include "tensor/operators/patterns/pattern_finder.h"

enum { VALUE, SCALE, SHIFT, ADDEND, INPUTS }; /* inputs of add_layer_norm; layer_norm has the first three */
enum { RESULT, SUM = 3 };                     /* results */

typedef struct joiner {
  rondo_program_copier copier;
  rondo_scratch scratch;
  bool *runs;      /* by operation of `from`, as all of these: */
  uint32_t *norms; /* of a sum: the operation that normalises it, plus one; 0: none does */
  bool *is_joined; /* of a normalization */
  uint32_t count;
} joiner;

/* Whether the value exists when the operation runs. */
static bool is_there(const rondo_program *program, uint32_t value, uint32_t operation) {
  if (value == RONDO_NO_VALUE) return true;
  const rondo_program_value *of = &program->values.items[value];
  return of->kind != RONDO_VALUE_RESULT || of->operation < operation;
}

/* The sum of two values of one shape that the operation normalises; RONDO_NO_VALUE: none. */
static uint32_t sum_of(const rondo_program *program, const rondo_operation *norm) {
  if (norm->row != &rondo_operator_layer_norm) return RONDO_NO_VALUE;
  const rondo_program_value *value = &program->values.items[norm->inputs[VALUE]];
  if (value->kind != RONDO_VALUE_RESULT) return RONDO_NO_VALUE;
  const rondo_operation *sum = &program->operations.items[value->operation];
  const rondo_shape *shape = rondo_operation_input(program, norm, VALUE);
  const bool is_sum = sum->row == &rondo_operator_add &&
                      rondo_shape_same(rondo_operation_input(program, sum, 0), shape) &&
                      rondo_shape_same(rondo_operation_input(program, sum, 1), shape);
  return is_sum && is_there(program, norm->inputs[SCALE], value->operation) &&
                 is_there(program, norm->inputs[SHIFT], value->operation)
             ? value->operation
             : RONDO_NO_VALUE;
}

static void join(joiner *j) {
  const rondo_program *from = j->copier.from;
  for (uint32_t i = 0; i < from->operations.count; i++) {
    const uint32_t sum = j->runs[i] ? sum_of(from, &from->operations.items[i]) : RONDO_NO_VALUE;
    if (sum == RONDO_NO_VALUE || j->norms[sum] != 0) continue;
    j->norms[sum] = i + 1;
    j->is_joined[i] = true;
    j->count++;
  }
}

static rondo_status add_both(joiner *j, const rondo_operation *sum, const rondo_operation *norm) {
  uint32_t *values = j->copier.values, inputs[INPUTS], results[RONDO_MAX_RESULTS];
  for (uint32_t k = SCALE; k <= SHIFT; k++)
    inputs[k] = norm->inputs[k] == RONDO_NO_VALUE ? RONDO_NO_VALUE : values[norm->inputs[k]];
  inputs[VALUE] = values[sum->inputs[0]];
  inputs[ADDEND] = values[sum->inputs[1]];
  RONDO_TRY(
      rondo_program_add(j->copier.to, &rondo_operator_add_layer_norm, inputs, INPUTS, &norm->attributes, results));
  values[sum->results[0]] = results[SUM];
  values[norm->results[RESULT]] = results[RESULT];
  return RONDO_OK;
}

static rondo_status copy(joiner *j) {
  const rondo_program *from = j->copier.from;
  RONDO_TRY(rondo_program_copy_begin(&j->copier, &j->scratch));
  for (uint32_t i = 0; i < from->operations.count; i++) {
    const size_t first = j->copier.to->operations.count;
    const uint32_t norm = j->norms[i];
    if (!j->runs[i] || j->is_joined[i]) continue;
    RONDO_TRY(norm == 0 ? rondo_program_copy_operation(&j->copier, i)
                        : add_both(j, &from->operations.items[i], &from->operations.items[norm - 1]));
    if (norm != 0) rondo_program_copy_origin(&j->copier, first, norm - 1);
  }
  return rondo_program_copy_outputs(&j->copier);
}

static rondo_status rewrite(joiner *j) {
  const rondo_program *from = j->copier.from;
  bool *needed;
  RONDO_TRY(rondo_scratch_take(&j->scratch, from->operations.count, sizeof *j->runs, &j->runs));
  RONDO_TRY(rondo_scratch_take(&j->scratch, from->operations.count, sizeof *j->norms, &j->norms));
  RONDO_TRY(rondo_scratch_take(&j->scratch, from->operations.count, sizeof *j->is_joined, &j->is_joined));
  RONDO_TRY(rondo_scratch_take(&j->scratch, from->values.count, sizeof *needed, &needed));
  (void)rondo_program_mark_runs(from, needed, j->runs);
  join(j);
  return j->count == 0 ? RONDO_OK : copy(j);
}

static rondo_status rewrite_sums(const rondo_program *program, rondo_pattern_target target, uint32_t *out_count,
                                 rondo_program **out) {
  joiner j = {.copier = {.from = program}, .scratch = {.allocator = &program->allocator}};
  *out = NULL;
  *out_count = 0;
  if (!target.is_cuda || program->has_gradients || program->operations.count == 0) return RONDO_OK;
  const rondo_status status = rewrite(&j);
  rondo_scratch_free(&j.scratch);
  if (status != RONDO_OK) {
    rondo_program_destroy(j.copier.to);
    return status;
  }
  *out_count = j.count;
  *out = j.copier.to;
  return RONDO_OK;
}

const rondo_pattern rondo_pattern_add_layer_norm = {.name = "add_layer_norm", .rewrite = rewrite_sums};

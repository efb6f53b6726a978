/* SPDX-License-Identifier: MIT
 * Finding and computing chains that scale images. Threads: any.
 */
#include "tensor/operators/elementwise/chain_scaled.h"

#include <assert.h>

#include "tensor/operators/common/vectors.h"
#include "tensor/program/operator_registry.h"
#include "tensor/program/operators.h"

enum { MULTIPLY, ADD, RECTIFY, MOST_STEPS }; /* steps */

/* The inputs of the chain. */
typedef struct scaled {
  uint32_t x, factor, offset;
} scaled;

/* Elements that have one row of factors: `period` of them, which repeat. A longer row than RONDO_LANES is a run. */
typedef struct run {
  size_t length, period;
  uint32_t outer; /* dimensions of the layout before them */
} run;

/* Finding ---------------------------------------------------------------------------------------------------------- */

static bool is_of(const rondo_chain_form *form, uint32_t step, const rondo_operator *row) {
  return rondo_operator_at(form->steps[step].row) == row && form->steps[step].type == RONDO_F32;
}

static bool is_read_as(const rondo_chain_form *form, uint32_t input, bool has_layout) {
  if (input >= form->input_count) return false;
  const rondo_chain_input *of = &form->inputs[input];
  return of->type == RONDO_F32 && of->reading == (has_layout ? RONDO_CHAIN_LAYOUT : RONDO_CHAIN_EACH);
}

/* The other term of a step of two; RONDO_CHAIN_INPUTS: the step does not read this one. */
static uint32_t other_term(const rondo_chain_step *step, uint32_t term) {
  return step->terms[0] == term ? step->terms[1] : step->terms[1] == term ? step->terms[0] : RONDO_CHAIN_INPUTS;
}

static scaled inputs_of(const rondo_chain_form *form) {
  const rondo_chain_step *multiply = &form->steps[MULTIPLY];
  scaled s = {.x = multiply->terms[0]};
  if (!is_read_as(form, s.x, false)) s.x = multiply->terms[1];
  s.factor = other_term(multiply, s.x);
  s.offset = other_term(&form->steps[ADD], RONDO_CHAIN_INPUTS + MULTIPLY);
  return s;
}

static run run_of(const rondo_chain_layout *layout) {
  const uint32_t last = (uint32_t)layout->rank - 1;
  if (layout->strides[last] == 0) return (run){layout->dims[last], 1, last};
  if (last == 0 || layout->strides[last - 1] != 0) return (run){0};
  if (layout->dims[last] > RONDO_LANES) return (run){layout->dims[last], layout->dims[last], last};
  const bool has_blocks = RONDO_LANES % layout->dims[last] == 0;
  return has_blocks ? (run){layout->dims[last - 1] * layout->dims[last], layout->dims[last], last - 1} : (run){0};
}

bool rondo_chain_is_scaled(const rondo_chain_form *form) {
  const uint32_t steps = form->step_count;
  if (steps < RECTIFY || steps > MOST_STEPS || form->input_count != 3 || form->layout_count != 1) return false;
  if (!is_of(form, MULTIPLY, &rondo_operator_mul) || !is_of(form, ADD, &rondo_operator_add)) return false;
  if (steps > RECTIFY && !is_of(form, RECTIFY, &rondo_operator_relu)) return false;
  const scaled s = inputs_of(form);
  return is_read_as(form, s.x, false) && is_read_as(form, s.factor, true) && is_read_as(form, s.offset, true) &&
         run_of(&form->layouts[0]).length > 0;
}

/* Computing -------------------------------------------------------------------------------------------------------- */

RONDO_INLINE float scale_one(float x, float factor, float offset, bool rectifies) {
  const float sum = x * factor + offset;
  const bool is_kept = (sum > 0) | (sum != sum) | !rectifies; /* NaN stays NaN */
  return is_kept ? sum : 0.0f;
}

RONDO_INLINE void scale_by(const float *restrict x, const float *factors, const float *offsets, size_t count,
                           bool rectifies, float *restrict y) {
  RONDO_EACH_LANE(i, lane, count, y[i] = scale_one(x[i], factors[lane], offsets[lane], rectifies));
}

/* Each element has a factor of its own. */
RONDO_VECTORISED(scale_row,
                 (const float *restrict x, const float *restrict factors, const float *restrict offsets, size_t count,
                  bool rectifies, float *restrict y),
                 (x, factors, offsets, count, rectifies, y)) {
  if (rectifies)
    RONDO_EACH_LANE(i, lane, count, y[i] = scale_one(x[i], factors[i], offsets[i], true));
  else
    RONDO_EACH_LANE(i, lane, count, y[i] = scale_one(x[i], factors[i], offsets[i], false));
}

RONDO_VECTORISED(scale_run,
                 (const float *x, const float *factor, const float *offset, size_t period, size_t count, bool rectifies,
                  float *y),
                 (x, factor, offset, period, count, rectifies, y)) {
  float factors[RONDO_LANES], offsets[RONDO_LANES];
  for (size_t lane = 0; lane < RONDO_LANES; lane++) {
    factors[lane] = factor[lane % period];
    offsets[lane] = offset[lane % period];
  }
  if (rectifies)
    scale_by(x, factors, offsets, count, true, y);
  else
    scale_by(x, factors, offsets, count, false, y);
}

/* Where run `number` has its factors. */
static size_t place_of(const rondo_chain_layout *layout, uint32_t outer, size_t number) {
  size_t at = 0;
  for (uint32_t d = outer; d > 0; d--) {
    at += number % layout->dims[d - 1] * layout->strides[d - 1];
    number /= layout->dims[d - 1];
  }
  return at;
}

void rondo_chain_scaled_cpu(const rondo_chain_form *form, rondo_span span, void *const *args) {
  const scaled s = inputs_of(form);
  const rondo_chain_layout *layout = &form->layouts[0];
  const run r = run_of(layout);
  const float *x = *(const float *const *)args[1 + s.x];
  const float *factor = *(const float *const *)args[1 + s.factor], *offset = *(const float *const *)args[1 + s.offset];
  float *y = *(float *const *)args[1 + form->input_count];
  assert(span.first % RONDO_LANES == 0);
  for (size_t at = span.first, count; at < span.last; at += count) {
    count = rondo_smaller(r.length - at % r.length, span.last - at);
    const size_t place = place_of(layout, r.outer, at / r.length);
    const size_t within = place + at % r.period;
    if (r.period > RONDO_LANES)
      scale_row(x + at, factor + within, offset + within, count, form->step_count > RECTIFY, y + at);
    else
      scale_run(x + at, factor + within, offset + within, r.period, count, form->step_count > RECTIFY, y + at);
  }
}

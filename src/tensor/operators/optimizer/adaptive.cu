/* SPDX-License-Identifier: MIT
 * The CUDA kernels of adaptive.c. What an operation does not have is NULL.
 */
#include "tensor/operators/common/joined.cuh"
#include "tensor/operators/common/sparse_rows.cuh"

struct adaptive_numbers {
  float keep, epsilon, decay, add;
};

struct adaptive_rates {
  float rate, momentum, scale;
};

/* What an update changes. */
struct adaptive_states {
  float *p, *s, *mean, *v;
};

__device__ inline void adaptive_one(const adaptive_numbers &n, const adaptive_rates &rates, const adaptive_states &to,
                                    float gradient, size_t i) {
  const float g = fmaf(n.decay, to.p[i], gradient * rates.scale);
  float square = fmaf(n.keep, to.s[i], n.add * (g * g));
  to.s[i] = square;
  if (to.mean != 0) {
    const float mean = fmaf(n.keep, to.mean[i], n.add * g);
    to.mean[i] = mean;
    square = fmaxf(fmaf(-mean, mean, square), 0.0f);
  }
  float step = g / (sqrtf(square) + n.epsilon);
  if (to.v != 0) {
    step = fmaf(rates.momentum, to.v[i], step);
    to.v[i] = step;
  }
  to.p[i] = fmaf(-rates.rate, step, to.p[i]);
}

#define PARAMETERS(i) , float *p##i, float *s##i, float *mean##i, float *v##i, const void *g##i
#define PICK(i)                               \
  case i:                                     \
    to.p = p##i, to.s = s##i;                 \
    to.mean = mean##i, to.v = v##i, g = g##i; \
    break;

extern "C" __global__ void adaptive(joined_table table, GATE, adaptive_numbers numbers, const float *rate,
                                    const float *control, const float *momentum EACH_OF_FEWER_JOINED(PARAMETERS)) {
  const joined_share share = share_of(table);
  const adaptive_rates rates = {*rate, momentum == 0 ? 0.0f : *momentum, control_factor(control)};
  adaptive_states to = {0, 0, 0, 0};
  const void *g = 0;
  if (!may_update(TO_GATE) || !control_applies(control)) return;
  switch (share.operation) { EACH_OF_FEWER_JOINED(PICK) }
  each_gradient(share.type, g, share.first, share.elements, share.stride,
                [&](size_t i, float gradient) { adaptive_one(numbers, rates, to, gradient, i); });
}

extern "C" __global__ void adagrad_rows(row_slots slots, GATE, adaptive_numbers numbers, const float *rate,
                                        const float *control, const float *momentum, const long long *__restrict__ keys,
                                        const float *__restrict__ values, float *p, float *s) {
  const adaptive_rates rates = {*rate, momentum == 0 ? 0.0f : *momentum, control_factor(control)};
  const adaptive_states to = {p, s, 0, 0};
  if (!may_update(TO_GATE) || !control_applies(control)) return;
  each_row(slots, keys, team_of(slots.columns), [&](size_t row, size_t slot, unsigned lane, unsigned lanes) {
    for (size_t k = lane; k < slots.columns; k += lanes)
      adaptive_one(numbers, rates, to, values[slot * slots.columns + k], row * slots.columns + k);
  });
}

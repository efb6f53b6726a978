/* SPDX-License-Identifier: MIT
 * The CUDA kernels of adam.c.
 */
#include "tensor/operators/common/joined.cuh"
#include "tensor/operators/common/sparse_rows.cuh"

struct adam_numbers {
  float beta1, beta2, epsilon, decay;
};

/* One thread computes. */
extern "C" __global__ void adam_step(GATE, adam_numbers numbers, int *step, float *factors, const float *control) {
  if (first_element() > 0) return;
  const bool is_counted = may_update(TO_GATE) && control_applies(control);
  if (is_counted && *step < 0x7fffffff) *step += 1;
  factors[0] = (float)(1.0 / (1.0 - pow((double)numbers.beta1, (double)*step)));
  factors[1] = (float)(1.0 / (1.0 - pow((double)numbers.beta2, (double)*step)));
}

struct adam_rates {
  float rate, second, keep, scale;
};

__device__ inline adam_rates read_rates(const adam_numbers &numbers, const float *rate, const float *factors,
                                        const float *control) {
  return {*rate * factors[0], factors[1], fmaf(-*rate, numbers.decay, 1.0f), control_factor(control)};
}

__device__ inline void adam_one(const adam_numbers &numbers, const adam_rates &rates, float *p, float *m, float *v,
                                float g) {
  const float gradient = g * rates.scale;
  const float mean = fmaf(numbers.beta1, *m, (1.0f - numbers.beta1) * gradient);
  const float square = fmaf(numbers.beta2, *v, (1.0f - numbers.beta2) * (gradient * gradient));
  *m = mean;
  *v = square;
  *p = fmaf(*p, rates.keep, -(rates.rate * mean / (sqrtf(square * rates.second) + numbers.epsilon)));
}

#define PARAMETERS(i) , float *p##i, float *m##i, float *v##i, const void *g##i
#define PICK(i)                             \
  case i:                                   \
    p = p##i, m = m##i, v = v##i, g = g##i; \
    break;

extern "C" __global__ void adam(joined_table table, GATE, adam_numbers numbers, const float *rate, const float *factors,
                                const float *control EACH_JOINED(PARAMETERS)) {
  const joined_share share = share_of(table);
  const adam_rates rates = read_rates(numbers, rate, factors, control);
  float *p = 0, *m = 0, *v = 0;
  const void *g = 0;
  if (!may_update(TO_GATE) || !control_applies(control)) return;
  switch (share.operation) { EACH_JOINED(PICK) }
  each_gradient(share.type, g, share.first, share.elements, share.stride,
                [&](size_t i, float gradient) { adam_one(numbers, rates, &p[i], &m[i], &v[i], gradient); });
}

extern "C" __global__ void adam_rows(row_slots slots, GATE, adam_numbers numbers, const float *rate,
                                     const float *factors, const float *control, const long long *__restrict__ keys,
                                     const float *__restrict__ values, float *__restrict__ p, float *__restrict__ m,
                                     float *__restrict__ v) {
  const adam_rates rates = read_rates(numbers, rate, factors, control);
  if (!may_update(TO_GATE) || !control_applies(control)) return;
  each_row(slots, keys, team_of(slots.columns), [&](size_t row, size_t slot, unsigned lane, unsigned lanes) {
    for (size_t k = lane; k < slots.columns; k += lanes) {
      const size_t at = row * slots.columns + k;
      adam_one(numbers, rates, &p[at], &m[at], &v[at], values[slot * slots.columns + k]);
    }
  });
}

/* SPDX-License-Identifier: MIT
 * The CUDA kernels of sgd.c. v and momentum are NULL without momentum.
 */
#include "tensor/operators/common/joined.cuh"
#include "tensor/operators/common/sparse_rows.cuh"

struct sgd_rates {
  float rate, momentum, decay, scale;
};

__device__ inline sgd_rates read_rates(float decay, const float *rate, const float *control, const float *momentum) {
  return {*rate, momentum == 0 ? 0.0f : *momentum, decay, control_factor(control)};
}

__device__ inline void sgd_one(const sgd_rates &rates, float *p, float g, float *v, size_t i) {
  float step = fmaf(rates.decay, p[i], g * rates.scale);
  if (v != 0) {
    step = fmaf(rates.momentum, v[i], step);
    v[i] = step;
  }
  p[i] = fmaf(-rates.rate, step, p[i]);
}

#define PARAMETERS(i) , float *p##i, const void *g##i, float *v##i
#define PICK(i)                   \
  case i:                         \
    p = p##i, g = g##i, v = v##i; \
    break;

extern "C" __global__ void sgd(joined_table table, GATE, float decay, const float *rate, const float *control,
                               const float *momentum EACH_JOINED(PARAMETERS)) {
  const joined_share share = share_of(table);
  const sgd_rates rates = read_rates(decay, rate, control, momentum);
  float *p = 0, *v = 0;
  const void *g = 0;
  if (!may_update(TO_GATE) || !control_applies(control)) return;
  switch (share.operation) { EACH_JOINED(PICK) }
  each_gradient(share.type, g, share.first, share.elements, share.stride,
                [&](size_t i, float gradient) { sgd_one(rates, p, gradient, v, i); });
}

extern "C" __global__ void sgd_rows(row_slots slots, GATE, float decay, const float *rate, const float *control,
                                    const float *momentum, const long long *__restrict__ keys,
                                    const float *__restrict__ values, float *__restrict__ p) {
  const sgd_rates rates = read_rates(decay, rate, control, momentum);
  if (!may_update(TO_GATE) || !control_applies(control)) return;
  each_row(slots, keys, [&](size_t row, size_t slot, unsigned lane, unsigned lanes) {
    for (size_t k = lane; k < slots.columns; k += lanes)
      sgd_one(rates, p + row * slots.columns, values[slot * slots.columns + k], 0, k);
  });
}

/* SPDX-License-Identifier: MIT
 * The CUDA form of sgd.c.
 */
#include "tensor/operators/common/joined.cuh"

struct sgd_numbers {
  float decay;
  unsigned is_controlled;
};

struct sgd_rates {
  float rate, momentum, decay, scale;
  bool applies;
};

/* momentum may be NULL. */
__device__ inline sgd_rates read_rates(const sgd_numbers &numbers, const float *rate, const float *control,
                                       const float *momentum) {
  sgd_rates rates;
  rates.rate = *rate;
  rates.momentum = momentum == 0 ? 0.0f : *momentum;
  rates.decay = numbers.decay;
  rates.scale = numbers.is_controlled ? control[0] : 1.0f;
  rates.applies = !numbers.is_controlled || control[1] != 0;
  return rates;
}

__device__ inline void sgd_one(const sgd_rates &rates, float *p, float g) {
  *p = fmaf(-rates.rate, fmaf(rates.decay, *p, g * rates.scale), *p);
}

__device__ inline void momentum_one(const sgd_rates &rates, float *p, float g, float *v) {
  const float velocity = fmaf(rates.momentum, *v, fmaf(rates.decay, *p, g * rates.scale));
  *v = velocity;
  *p = fmaf(-rates.rate, velocity, *p);
}

extern "C" __global__ void sgd(GATE, sgd_numbers numbers, const float *__restrict__ rate,
                               const float *__restrict__ control, size_t count, float *__restrict__ p,
                               const void *__restrict__ g, unsigned type) {
  const sgd_rates rates = read_rates(numbers, rate, control, 0);
  if (!may_update(TO_GATE) || !rates.applies) return;
  each_gradient(type, g, first_element(), count, element_stride(),
                [&](size_t i, float gradient) { sgd_one(rates, &p[i], gradient); });
}

extern "C" __global__ void sgd_momentum(GATE, sgd_numbers numbers, const float *__restrict__ rate,
                                        const float *__restrict__ control, const float *__restrict__ momentum,
                                        size_t count, float *__restrict__ p, const void *__restrict__ g,
                                        float *__restrict__ v, unsigned type) {
  const sgd_rates rates = read_rates(numbers, rate, control, momentum);
  if (!may_update(TO_GATE) || !rates.applies) return;
  each_gradient(type, g, first_element(), count, element_stride(),
                [&](size_t i, float gradient) { momentum_one(rates, &p[i], gradient, &v[i]); });
}

#define SGD_PARAMETERS(i) , float *p##i, const void *g##i
#define SGD_PICK(i)     \
  case i:               \
    p = p##i, g = g##i; \
    break;

extern "C" __global__ void sgd_joined(joined_table table, GATE, sgd_numbers numbers, const float *rate,
                                      const float *control EACH_JOINED(SGD_PARAMETERS)) {
  const joined_share share = share_of(table);
  const sgd_rates rates = read_rates(numbers, rate, control, 0);
  float *p = 0;
  const void *g = 0;
  if (!may_update(TO_GATE) || !rates.applies) return;
  switch (share.operation) { EACH_JOINED(SGD_PICK) }
  each_gradient(share.type, g, share.first, share.elements, share.stride,
                [&](size_t i, float gradient) { sgd_one(rates, &p[i], gradient); });
}

#define MOMENTUM_PARAMETERS(i) , float *p##i, const void *g##i, float *v##i
#define MOMENTUM_PICK(i)          \
  case i:                         \
    p = p##i, g = g##i, v = v##i; \
    break;

extern "C" __global__ void sgd_momentum_joined(joined_table table, GATE, sgd_numbers numbers, const float *rate,
                                               const float *control,
                                               const float *momentum EACH_JOINED(MOMENTUM_PARAMETERS)) {
  const joined_share share = share_of(table);
  const sgd_rates rates = read_rates(numbers, rate, control, momentum);
  float *p = 0, *v = 0;
  const void *g = 0;
  if (!may_update(TO_GATE) || !rates.applies) return;
  switch (share.operation) { EACH_JOINED(MOMENTUM_PICK) }
  each_gradient(share.type, g, share.first, share.elements, share.stride,
                [&](size_t i, float gradient) { momentum_one(rates, &p[i], gradient, &v[i]); });
}

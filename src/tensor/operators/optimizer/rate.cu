/* SPDX-License-Identifier: MIT
 * The CUDA kernels of rate.c. One thread computes.
 */
#include "tensor/operators/common/kernel_support.cuh"

enum { RATE_CONSTANT, RATE_LINEAR, RATE_COSINE, RATE_STEPS, RATE_INVERSE_SQRT };

struct rate_numbers {
  double rate, last, factor;
  unsigned kind, warm_up, period, restarts;
};

__device__ inline double cosine(const rate_numbers &n, u64 t) {
  const u64 at = n.restarts ? t % n.period : t;
  if (at >= n.period) return n.last;
  return n.last + (n.rate - n.last) * (1 + cospi((double)at / n.period)) / 2;
}

__device__ inline double find_rate(const rate_numbers &n, u64 updates) {
  const double next = (double)updates + 1;
  if (updates < n.warm_up) return n.rate * next / n.warm_up;
  const u64 t = updates - n.warm_up;
  if (n.kind == RATE_LINEAR) return t >= n.period ? n.last : n.rate + (n.last - n.rate) * ((double)t / n.period);
  if (n.kind == RATE_COSINE) return cosine(n, t);
  if (n.kind == RATE_STEPS) return n.rate * pow(n.factor, (double)(t / n.period));
  if (n.kind == RATE_INVERSE_SQRT) return n.rate * sqrt((n.warm_up == 0 ? 1 : n.warm_up) / next);
  return n.rate;
}

extern "C" __global__ void learning_rate(rate_numbers numbers, const int *updates, float *rate) {
  if (first_element() == 0) *rate = (float)find_rate(numbers, *updates < 0 ? 0 : (u64)*updates);
}

extern "C" __global__ void count_update(GATE, int most, int *updates, const float *control) {
  if (first_element() > 0 || !may_update(TO_GATE)) return;
  if (control_applies(control) && *updates < 0x7fffffff) *updates = *updates + 1 == most ? 0 : *updates + 1;
}

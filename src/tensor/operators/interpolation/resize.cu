/* SPDX-License-Identifier: MIT
 * The CUDA kernels of interpolate.c: a thread computes an element.
 */
#include "tensor/operators/common/element.cuh"

struct resize_shape {
  size_t outer, in, out, inner;
  double factor, addend, divisor, cubic;
  unsigned mode, nearest;
};

/* As rondo_interpolation and rondo_nearest. */
enum { NEAREST, LINEAR, CUBIC };
enum { FLOOR, CEIL, ROUND_PREFER_FLOOR, ROUND_PREFER_CEIL };

#define TAPS 4

__device__ inline double nearest_of(unsigned rounding, double x) {
  if (rounding == CEIL) return ceil(x);
  if (rounding == ROUND_PREFER_FLOOR) return ceil(x - 0.5);
  if (rounding == ROUND_PREFER_CEIL) return floor(x + 0.5);
  return floor(x);
}

__device__ inline double cubic_weight(double a, double d) {
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

__device__ inline size_t inside(double index, size_t size) {
  return index < 0 ? 0 : index > (double)(size - 1) ? size - 1 : (size_t)index;
}

struct taps {
  unsigned count;
  size_t at[TAPS];
  float weights[TAPS];
};

__device__ inline taps taps_of(const resize_shape &s, size_t i) {
  const double x = __dadd_rn(__dmul_rn(s.factor, (double)i), s.addend) / s.divisor, low = floor(x), rest = x - low;
  const double first = s.mode == NEAREST ? nearest_of(s.nearest, x) : s.mode == LINEAR ? low : low - 1;
  taps t;
  t.count = s.mode == NEAREST ? 1 : s.mode == LINEAR ? 2 : TAPS;
#pragma unroll
  for (unsigned k = 0; k < TAPS; k++) {
    if (k >= t.count) break;
    t.at[k] = inside(first + k, s.in);
    t.weights[k] = s.mode == NEAREST  ? 1.0f
                   : s.mode == LINEAR ? (float)(k == 0 ? 1 - rest : rest)
                                      : (float)cubic_weight(s.cubic, fabs(rest + 1 - k));
  }
  return t;
}

/* The elements of the result that may have read element `at`. */
__device__ inline void readers_of(const resize_shape &s, size_t at, size_t *first, size_t *last) {
  *first = 0;
  *last = s.out;
  if (s.factor <= 0) return;
  const double from = floor((((double)at - 3) * s.divisor - s.addend) / s.factor);
  const double end = ceil((((double)at + 3) * s.divisor - s.addend) / s.factor) + 1;
  if (at > 0 && from > 0) *first = inside(from, s.out);
  if (at + 1 < s.in && end < (double)s.out) *last = end < 0 ? 0 : (size_t)end;
}

extern "C" __global__ void resize_TYPE(resize_shape shape, const element *__restrict__ x, element *__restrict__ y) {
  const size_t along = shape.out * shape.inner;
  for (size_t i = first_element(); i < shape.outer * along; i += element_stride()) {
    const size_t outer = i / along, at = i % along / shape.inner, inner = i % shape.inner;
    const taps t = taps_of(shape, at);
    float sum = 0;
    for (unsigned k = 0; k < t.count; k++)
      sum += t.weights[k] * to_float(x[(outer * shape.in + t.at[k]) * shape.inner + inner]);
    y[i] = to_element(sum);
  }
}

extern "C" __global__ void resize_gradient_TYPE(resize_shape shape, const element *__restrict__ dy,
                                                element *__restrict__ dx) {
  const size_t along = shape.in * shape.inner;
  for (size_t i = first_element(); i < shape.outer * along; i += element_stride()) {
    const size_t outer = i / along, at = i % along / shape.inner, inner = i % shape.inner;
    size_t first, last;
    float sum = 0;
    readers_of(shape, at, &first, &last);
    for (size_t from = first; from < last; from++) {
      const taps t = taps_of(shape, from);
      float weight = 0;
      for (unsigned k = 0; k < t.count; k++) weight += t.at[k] == at ? t.weights[k] : 0.0f;
      if (weight != 0) sum += weight * to_float(dy[(outer * shape.out + from) * shape.inner + inner]);
    }
    dx[i] = to_element(sum);
  }
}

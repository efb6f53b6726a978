/* SPDX-License-Identifier: MIT
 * The CUDA kernels of interpolate.c: a thread computes an element.
 */
#include "tensor/operators/common/element.cuh"

struct resize_shape {
  size_t outer, in, out, inner;
  double factor, addend, divisor, cubic, squeeze, outside;
  unsigned mode, nearest, excludes_outside, crops;
};

/* As rondo_interpolation and rondo_nearest. */
enum { NEAREST, LINEAR, CUBIC };
enum { FLOOR, CEIL, ROUND_PREFER_FLOOR, ROUND_PREFER_CEIL };

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

/* The neighbours of an element: indices from `first` on, at the edges the last one again. */
struct taps {
  size_t count;
  double first, rest, total;
};

__device__ inline double weight_at_distance(const resize_shape &s, double distance) {
  if (s.mode == LINEAR) return distance < 1 ? 1 - distance : 0;
  return distance < 2 ? cubic_weight(s.cubic, distance) : 0;
}

__device__ inline double raw_weight(const resize_shape &s, const taps &t, size_t k) {
  const double index = t.first + (double)k, from_low = (double)k + 1 - (double)(t.count / 2);
  if (s.excludes_outside != 0 && (index < 0 || index > (double)(s.in - 1))) return 0;
  return weight_at_distance(s, fabs(from_low - t.rest) * s.squeeze);
}

__device__ inline float weight_of_tap(const resize_shape &s, const taps &t, size_t k) {
  return t.count == 1 ? 1.0f : (float)(raw_weight(s, t, k) / t.total);
}

__device__ inline taps taps_of(const resize_shape &s, size_t i) {
  const double x = __dadd_rn(__dmul_rn(s.factor, (double)i), s.addend) / s.divisor, low = floor(x);
  taps t = {0, 0, x - low, 1};
  if (s.crops != 0 && (x < 0 || x > (double)(s.in - 1))) return t;
  if (s.mode == NEAREST) {
    t.count = 1;
    t.first = nearest_of(s.nearest, x);
    return t;
  }
  const double before = floor((s.mode == LINEAR ? -1 : -2) / s.squeeze) + 1;
  t.count = (size_t)(2 - 2 * before);
  t.first = low + before;
  if (s.squeeze == 1 && s.excludes_outside == 0) return t;
  t.total = 0;
  for (size_t k = 0; k < t.count; k++) t.total += raw_weight(s, t, k);
  if (t.total == 0) { /* all of them are outside */
    t.count = 1;
    t.first = low;
  }
  return t;
}

/* The elements of the result that may have read element `at`. */
__device__ inline void readers_of(const resize_shape &s, size_t at, size_t *first, size_t *last) {
  *first = 0;
  *last = s.out;
  if (s.factor <= 0) return;
  const double far = 1 + 2 / s.squeeze; /* more than any tap is away */
  const double from = floor((((double)at - far) * s.divisor - s.addend) / s.factor);
  const double end = ceil((((double)at + far) * s.divisor - s.addend) / s.factor) + 1;
  if (at > 0 && from > 0) *first = inside(from, s.out);
  if (at + 1 < s.in && end < (double)s.out) *last = end < 0 ? 0 : (size_t)end;
}

extern "C" __global__ void resize_TYPE(resize_shape shape, const element *__restrict__ x, element *__restrict__ y) {
  const size_t along = shape.out * shape.inner;
  for (size_t i = first_element(); i < shape.outer * along; i += element_stride()) {
    const size_t outer = i / along, at = i % along / shape.inner, inner = i % shape.inner;
    const taps t = taps_of(shape, at);
    float sum = t.count == 0 ? (float)shape.outside : 0.0f;
    for (size_t k = 0; k < t.count; k++) {
      const size_t from = outer * shape.in + inside(t.first + (double)k, shape.in);
      sum += weight_of_tap(shape, t, k) * to_float(x[from * shape.inner + inner]);
    }
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
      for (size_t k = 0; k < t.count; k++)
        weight += inside(t.first + (double)k, shape.in) == at ? weight_of_tap(shape, t, k) : 0.0f;
      if (weight != 0) sum += weight * to_float(dy[(outer * shape.out + from) * shape.inner + inner]);
    }
    dx[i] = to_element(sum);
  }
}

/* SPDX-License-Identifier: MIT
 * The CUDA kernels of grid_sample.c: a thread computes an element of the grid for all channels, or the gradient of a
 * channel.
 */
#include "tensor/operators/common/kernel_support.cuh"

#define AXES 3
#define TAPS 4

/* As rondo_interpolation and rondo_grid_padding. */
enum { NEAREST, LINEAR, CUBIC };
enum { ZEROS, BORDER, REFLECTION };

struct sample_shape {
  size_t images, channels, in[AXES], out;
  unsigned mode, padding, aligns_corners, axes;
};

struct taps {
  unsigned count;
  int at[TAPS];
  float weights[TAPS], slopes[TAPS];
};

struct coordinate {
  float at, slope;
};

__device__ inline coordinate coordinate_at(float at, float slope) {
  coordinate x;
  x.at = at;
  x.slope = slope;
  return x;
}

__device__ inline coordinate reflect(coordinate x, float low, float high) {
  const float span = high - low, from_low = fabsf(__fadd_rn(x.at, -low)), side = x.at < low ? -1.0f : 1.0f;
  if (span <= 0) return coordinate_at(0, 0);
  const float turns = floorf(from_low / span), rest = __fadd_rn(from_low, -__fmul_rn(turns, span));
  const bool is_even = fmodf(turns, 2) == 0;
  return coordinate_at(is_even ? low + rest : high - rest, x.slope * (is_even ? side : -side));
}

__device__ inline coordinate clip(coordinate x, float high) {
  if (x.at <= 0) return coordinate_at(0, 0);
  return x.at >= high ? coordinate_at(high, 0) : x;
}

__device__ inline coordinate pad(const sample_shape &s, coordinate x, size_t size) {
  const float last = (float)(size - 1);
  if (s.padding == BORDER) return clip(x, last);
  if (s.padding != REFLECTION) return x;
  return clip(s.aligns_corners != 0 ? reflect(x, 0, last) : reflect(x, -0.5f, last + 0.5f), last);
}

__device__ inline coordinate coordinate_of(const sample_shape &s, float number, size_t size) {
  const float half = (float)(s.aligns_corners != 0 ? size - 1 : size) / 2;
  const float at = __fadd_rn(__fmul_rn(number + 1, half), s.aligns_corners != 0 ? 0.0f : -0.5f);
  return fabsf(at) < 1073741824.0f ? coordinate_at(at, half) : coordinate_at(-100, 0); /* NaN too */
}

__device__ inline int index_of(float at, size_t size) { return at >= 0 && at < (float)size ? (int)at : -1; }

__device__ inline float cubic_weight(float d, float *slope) {
  const float a = -0.75f;
  *slope = d <= 1 ? (3 * (a + 2) * d - 2 * (a + 3)) * d : (3 * a * d - 10 * a) * d + 8 * a;
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

__device__ inline void set_tap(taps &t, unsigned k, int at, float weight, float slope) {
  t.at[k] = at;
  t.weights[k] = weight;
  t.slopes[k] = slope;
}

__device__ inline taps taps_of(const sample_shape &s, float number, size_t size) {
  coordinate x = coordinate_of(s, number, size);
  taps t;
  if (s.mode != CUBIC) x = pad(s, x, size);
  const float low = floorf(x.at), rest = x.at - low;
  t.count = s.mode == NEAREST ? 1 : s.mode == LINEAR ? 2 : TAPS;
  if (s.mode == NEAREST) {
    set_tap(t, 0, index_of(rintf(x.at), size), 1, 0);
  } else if (s.mode == LINEAR) {
    set_tap(t, 0, index_of(low, size), 1 - rest, -x.slope);
    set_tap(t, 1, index_of(low + 1, size), rest, x.slope);
  } else {
    for (unsigned k = 0; k < TAPS; k++) {
      float slope;
      const float from = rest + 1 - (float)k, weight = cubic_weight(fabsf(from), &slope);
      const int at = index_of(pad(s, coordinate_at(low - 1 + (float)k, 0), size).at, size);
      set_tap(t, k, at, weight, slope * (from < 0 ? -x.slope : x.slope));
    }
  }
  return t;
}

struct neighbours {
  taps axes[AXES];
};

__device__ inline neighbours neighbours_of(const sample_shape &s, const float *grid, size_t element) {
  neighbours n;
  n.axes[0].count = 1;
  set_tap(n.axes[0], 0, 0, 1, 0);
  for (unsigned i = 0; i < s.axes; i++)
    n.axes[AXES - 1 - i] = taps_of(s, grid[element * s.axes + i], s.in[AXES - 1 - i]);
  return n;
}

/* Calls visit(index in the channel, weight) for each neighbour inside. derived: the axis by whose number of the grid
 * the weight is derived; AXES: none. */
template <class function>
__device__ inline void visit_neighbours(const sample_shape &s, const neighbours &n, unsigned derived, function visit) {
  const taps &z = n.axes[0], &y = n.axes[1], &x = n.axes[2];
  for (unsigned i = 0; i < z.count; i++) {
    for (unsigned j = 0; j < y.count; j++) {
      for (unsigned k = 0; k < x.count; k++) {
        if (z.at[i] < 0 || y.at[j] < 0 || x.at[k] < 0) continue;
        const size_t row = (size_t)z.at[i] * s.in[1] + (size_t)y.at[j];
        const float of_plane = derived == 0 ? z.slopes[i] : z.weights[i];
        const float of_row = derived == 1 ? y.slopes[j] : y.weights[j];
        const float of_column = derived == 2 ? x.slopes[k] : x.weights[k];
        visit(row * s.in[2] + (size_t)x.at[k], of_plane * of_row * of_column);
      }
    }
  }
}

__device__ inline size_t elements_in(const sample_shape &s) { return s.in[0] * s.in[1] * s.in[2]; }

__device__ inline float sum_of(const sample_shape &s, const neighbours &n, unsigned derived, const float *channel) {
  float sum = 0;
  visit_neighbours(s, n, derived, [&](size_t at, float weight) { sum += weight * channel[at]; });
  return sum;
}

extern "C" __global__ void grid_sample(sample_shape s, const float *__restrict__ x, const float *__restrict__ grid,
                                       float *__restrict__ y) {
  for (size_t i = first_element(); i < s.images * s.out; i += element_stride()) {
    const neighbours n = neighbours_of(s, grid, i);
    const size_t image = i / s.out;
    for (size_t c = image * s.channels; c < (image + 1) * s.channels; c++)
      y[c * s.out + i % s.out] = sum_of(s, n, AXES, x + c * elements_in(s));
  }
}

extern "C" __global__ void grid_sample_gradient(sample_shape s, const float *__restrict__ grid,
                                                const float *__restrict__ dy, float *__restrict__ dx) {
  for (size_t c = first_element(); c < s.images * s.channels; c += element_stride()) {
    float *channel = dx + c * elements_in(s);
    for (size_t i = 0; i < elements_in(s); i++) channel[i] = 0;
    for (size_t i = 0; i < s.out; i++) {
      const float from = dy[c * s.out + i];
      visit_neighbours(s, neighbours_of(s, grid, c / s.channels * s.out + i), AXES,
                       [&](size_t at, float weight) { channel[at] += weight * from; });
    }
  }
}

extern "C" __global__ void grid_sample_coordinate_gradient(sample_shape s, const float *__restrict__ x,
                                                           const float *__restrict__ grid, const float *__restrict__ dy,
                                                           float *__restrict__ to) {
  for (size_t i = first_element(); i < s.images * s.out; i += element_stride()) {
    const neighbours n = neighbours_of(s, grid, i);
    const size_t image = i / s.out;
    for (unsigned k = 0; k < s.axes; k++) {
      float sum = 0;
      for (size_t c = image * s.channels; c < (image + 1) * s.channels; c++)
        sum += dy[c * s.out + i % s.out] * sum_of(s, n, AXES - 1 - k, x + c * elements_in(s));
      to[i * s.axes + k] = sum;
    }
  }
}

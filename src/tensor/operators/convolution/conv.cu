/* SPDX-License-Identifier: MIT
 * The CUDA kernels of conv_tile.c: implicit matrix products. A block computes a tile of 64 x 64 results. Each step of
 * 16 in depth is gathered into shared memory, from which each thread computes 4 x 4 results. One thread sums a result,
 * in the order of the depth.
 */
#include "tensor/operators/convolution/window.cuh"

#define EDGE 64
#define DEPTH 16
#define ROW (EDGE + 4)
#define SIDE 16 /* of the square of threads */
#define LOADS (EDGE * DEPTH / BLOCK_THREADS)

struct conv_shape {
  window w;
  size_t images, groups, in_channels, out_channels, edge;
};

__device__ inline size_t taps_of(const conv_shape &s) { return volume_of(s.w.kernel); }
__device__ inline size_t in_of(const conv_shape &s) { return volume_of(s.w.in); }
__device__ inline size_t out_of(const conv_shape &s) { return volume_of(s.w.out); }

/* The element of a channel at tap `tap` of window `out`; 0 in the padding. */
__device__ inline float tap_at(const conv_shape &s, const element *channel, size_t tap, size_t out) {
  position in;
  if (!window_tap(s.w, position_of(s.w.out, out), position_of(s.w.kernel, tap), in)) return 0.0f;
  return to_float(channel[index_of(s.w.in, in)]);
}

/* The three products of conv.h, and access to the elements of their factors. */
struct forward {
  const conv_shape &s;
  const element *x, *weight, *bias;
  __device__ size_t rows() const { return s.out_channels; }
  __device__ size_t columns() const { return out_of(s); }
  __device__ size_t depth() const { return s.in_channels * taps_of(s); }
  __device__ size_t count() const { return s.images * s.groups; }
  __device__ float left(size_t product, size_t row, size_t k) const {
    return to_float(weight[(product % s.groups * s.out_channels + row) * depth() + k]);
  }
  __device__ float right(size_t product, size_t k, size_t column) const {
    const size_t taps = taps_of(s);
    return tap_at(s, x + (product * s.in_channels + k / taps) * in_of(s), k % taps, column);
  }
  __device__ float first(size_t product, size_t row) const {
    return bias != NULL ? to_float(bias[product % s.groups * s.out_channels + row]) : 0.0f;
  }
};

struct input_gradient {
  const conv_shape &s;
  const element *weight, *dy;
  __device__ size_t rows() const { return s.in_channels; }
  __device__ size_t columns() const { return in_of(s); }
  __device__ size_t depth() const { return s.out_channels * taps_of(s); }
  __device__ size_t count() const { return s.images * s.groups; }
  __device__ float left(size_t product, size_t row, size_t k) const {
    const size_t taps = taps_of(s), out = product % s.groups * s.out_channels + k / taps;
    return to_float(weight[(out * s.in_channels + row) * taps + k % taps]);
  }
  __device__ float right(size_t product, size_t k, size_t column) const {
    const size_t taps = taps_of(s);
    position out;
    if (!window_at(s.w, position_of(s.w.in, column), position_of(s.w.kernel, k % taps), out)) return 0.0f;
    return to_float(dy[(product * s.out_channels + k / taps) * out_of(s) + index_of(s.w.out, out)]);
  }
  __device__ float first(size_t, size_t) const { return 0.0f; }
};

struct weight_gradient {
  const conv_shape &s;
  const element *x, *dy;
  __device__ size_t rows() const { return s.out_channels; }
  __device__ size_t columns() const { return s.in_channels * taps_of(s); }
  __device__ size_t depth() const { return s.images * out_of(s); }
  __device__ size_t count() const { return s.groups; }
  __device__ float left(size_t product, size_t row, size_t k) const {
    const size_t image = k / out_of(s) * s.groups + product;
    return to_float(dy[(image * s.out_channels + row) * out_of(s) + k % out_of(s)]);
  }
  __device__ float right(size_t product, size_t k, size_t column) const {
    const size_t image = k / out_of(s) * s.groups + product, taps = taps_of(s);
    return tap_at(s, x + (image * s.in_channels + column / taps) * in_of(s), column % taps, k % out_of(s));
  }
  __device__ float first(size_t, size_t) const { return 0.0f; }
};

struct panels {
  float left[DEPTH * ROW], right[DEPTH * ROW];
};

/* Neighbouring threads read neighbours along the depth of the left factor and along the columns of the right factor. */
template <class P>
__device__ inline void load(const P &p, size_t product, size_t row, size_t column, size_t from, panels &shared) {
#pragma unroll
  for (unsigned i = 0; i < LOADS; i++) {
    const unsigned at = threadIdx.x + i * BLOCK_THREADS;
    const size_t k = from + at % DEPTH, r = row + at / DEPTH;
    shared.left[at % DEPTH * ROW + at / DEPTH] = k < p.depth() && r < p.rows() ? p.left(product, r, k) : 0.0f;
  }
#pragma unroll
  for (unsigned i = 0; i < LOADS; i++) {
    const unsigned at = threadIdx.x + i * BLOCK_THREADS;
    const size_t k = from + at / EDGE, c = column + at % EDGE;
    shared.right[at / EDGE * ROW + at % EDGE] = k < p.depth() && c < p.columns() ? p.right(product, k, c) : 0.0f;
  }
}

__device__ inline void multiply(const panels &shared, float (*sums)[4]) {
  const unsigned down = threadIdx.x / SIDE, across = threadIdx.x % SIDE;
#pragma unroll
  for (unsigned k = 0; k < DEPTH; k++) {
    float left[4], right[4];
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
      left[i] = shared.left[k * ROW + down + SIDE * i];
      right[i] = shared.right[k * ROW + across + SIDE * i];
    }
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
#pragma unroll
      for (unsigned j = 0; j < 4; j++) sums[i][j] += left[i] * right[j];
    }
  }
}

template <class P>
__device__ inline void make_tile(const P &p, size_t product, size_t row, size_t column, panels &shared, element *to) {
  const unsigned down = threadIdx.x / SIDE, across = threadIdx.x % SIDE;
  float sums[4][4];
#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    const size_t r = row + down + SIDE * i;
    const float first = r < p.rows() ? p.first(product, r) : 0.0f;
#pragma unroll
    for (unsigned j = 0; j < 4; j++) sums[i][j] = first;
  }
  for (size_t from = 0; from < p.depth(); from += DEPTH) {
    load(p, product, row, column, from, shared);
    __syncthreads();
    multiply(shared, sums);
    __syncthreads(); /* the panels have been read */
  }
#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
#pragma unroll
    for (unsigned j = 0; j < 4; j++) {
      const size_t r = row + down + SIDE * i, c = column + across + SIDE * j;
      if (r < p.rows() && c < p.columns()) to[(product * p.rows() + r) * p.columns() + c] = to_element(sums[i][j]);
    }
  }
}

template <class P>
__device__ inline void make_tiles(const P &p, element *to) {
  __shared__ panels shared;
  const size_t across = (p.columns() + EDGE - 1) / EDGE, down = (p.rows() + EDGE - 1) / EDGE;
  for (size_t tile = blockIdx.x; tile < p.count() * across * down; tile += gridDim.x)
    make_tile(p, tile / (across * down), tile / across % down * EDGE, tile % across * EDGE, shared, to);
}

extern "C" __global__ void conv_TYPE(conv_shape shape, const element *__restrict__ x,
                                     const element *__restrict__ weight, const element *__restrict__ bias,
                                     element *__restrict__ y) {
  const forward p = {shape, x, weight, bias};
  make_tiles(p, y);
}

extern "C" __global__ void conv_input_gradient_TYPE(conv_shape shape, const element *__restrict__ weight,
                                                    const element *__restrict__ dy, element *__restrict__ dx) {
  const input_gradient p = {shape, weight, dy};
  make_tiles(p, dx);
}

extern "C" __global__ void conv_weight_gradient_TYPE(conv_shape shape, const element *__restrict__ x,
                                                     const element *__restrict__ dy, element *__restrict__ dweight) {
  const weight_gradient p = {shape, x, dy};
  make_tiles(p, dweight);
}

extern "C" __global__ void conv_bias_TYPE(size_t count, size_t places, size_t channels,
                                          const element *__restrict__ bias, element *__restrict__ y) {
  for (size_t i = first_element(); i < count; i += element_stride()) y[i] = bias[i / places % channels];
}

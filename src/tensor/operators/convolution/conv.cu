/* SPDX-License-Identifier: MIT
 * The CUDA kernels of conv_tile.c: implicit matrix products. A block computes a tile of 64 x 64 results. Each step of
 * 16 in depth is gathered into shared memory, from which each thread computes 4 x 4 results. One thread sums a result,
 * in the order of the depth. A product with few results has several parts of its depth (conv.h): blocks of their own
 * compute them, and another kernel adds them.
 */
#include "tensor/operators/convolution/window.cuh"

#define EDGE 64
#define DEPTH 16
#define ROW (EDGE + 4)
#define SIDE 16 /* of the square of threads */
#define LOADS (EDGE * DEPTH / BLOCK_THREADS)

struct conv_shape {
  window w;
  size_t images, groups, in_channels, out_channels, edge, parts, part;
};

__device__ inline size_t taps_of(const conv_shape &s) { return volume_of(s.w.kernel); }
__device__ inline size_t in_of(const conv_shape &s) { return volume_of(s.w.in); }
__device__ inline size_t out_of(const conv_shape &s) { return volume_of(s.w.out); }

/* An index of a column, or of the depth: the number of a volume, and the position in it. Finding them takes divisions,
 * so a thread does that once for all elements that have the same index. */
struct place {
  size_t volume;
  position at;
};

__device__ inline place place_of(const size_t *sizes, size_t index) {
  const size_t elements = volume_of(sizes), volume = quotient(index, elements);
  return {volume, position_of(sizes, index - volume * elements)};
}

/* The tile of a block, and the column whose right factors the thread gathers. */
struct tile {
  size_t product, group, row, column, part;
  place across;
};

/* The element of a channel at a tap of window `out`; 0 in the padding. */
__device__ inline float tap_at(const conv_shape &s, const element *channel, const position &tap, const position &out) {
  position in;
  if (!window_tap(s.w, out, tap, in)) return 0.0f;
  return to_float(channel[index_of(s.w.in, in)]);
}

/* The three products of conv.h, and access to the elements of their factors: at index k of the depth, whose place is
 * `along`. */
struct forward {
  const conv_shape &s;
  const element *x, *weight, *bias;
  __device__ size_t rows() const { return s.out_channels; }
  __device__ size_t columns() const { return out_of(s); }
  __device__ size_t depth() const { return s.in_channels * taps_of(s); }
  __device__ size_t count() const { return s.images * s.groups; }
  __device__ place along(size_t k) const { return place_of(s.w.kernel, k); }
  __device__ place across(size_t column) const { return place_of(s.w.out, column); }
  __device__ float left(const tile &t, size_t row, size_t k, const place &) const {
    return to_float(weight[(t.group * s.out_channels + row) * depth() + k]);
  }
  __device__ float right(const tile &t, const place &along) const {
    return tap_at(s, x + (t.product * s.in_channels + along.volume) * in_of(s), along.at, t.across.at);
  }
  __device__ float first(const tile &t, size_t row) const {
    return bias != NULL ? to_float(bias[t.group * s.out_channels + row]) : 0.0f;
  }
};

struct input_gradient {
  const conv_shape &s;
  const element *weight, *dy;
  __device__ size_t rows() const { return s.in_channels; }
  __device__ size_t columns() const { return in_of(s); }
  __device__ size_t depth() const { return s.out_channels * taps_of(s); }
  __device__ size_t count() const { return s.images * s.groups; }
  __device__ place along(size_t k) const { return place_of(s.w.kernel, k); }
  __device__ place across(size_t column) const { return place_of(s.w.in, column); }
  __device__ float left(const tile &t, size_t row, size_t k, const place &along) const {
    const size_t out = t.group * s.out_channels + along.volume, tap = k - along.volume * taps_of(s);
    return to_float(weight[(out * s.in_channels + row) * taps_of(s) + tap]);
  }
  __device__ float right(const tile &t, const place &along) const {
    position out;
    if (!window_at(s.w, t.across.at, along.at, out)) return 0.0f;
    return to_float(dy[(t.product * s.out_channels + along.volume) * out_of(s) + index_of(s.w.out, out)]);
  }
  __device__ float first(const tile &, size_t) const { return 0.0f; }
};

struct weight_gradient {
  const conv_shape &s;
  const element *x, *dy;
  __device__ size_t rows() const { return s.out_channels; }
  __device__ size_t columns() const { return s.in_channels * taps_of(s); }
  __device__ size_t depth() const { return s.images * out_of(s); }
  __device__ size_t count() const { return s.groups; }
  __device__ place along(size_t k) const { return place_of(s.w.out, k); }
  __device__ place across(size_t column) const { return place_of(s.w.kernel, column); }
  __device__ float left(const tile &t, size_t row, size_t k, const place &along) const {
    const size_t image = along.volume * s.groups + t.product;
    return to_float(dy[(image * s.out_channels + row) * out_of(s) + k - along.volume * out_of(s)]);
  }
  __device__ float right(const tile &t, const place &along) const {
    const size_t image = along.volume * s.groups + t.product;
    return tap_at(s, x + (image * s.in_channels + t.across.volume) * in_of(s), t.across.at, along.at);
  }
  __device__ float first(const tile &, size_t) const { return 0.0f; }
};

struct panels {
  float left[DEPTH * ROW], right[DEPTH * ROW];
};

/* Neighbouring threads read neighbours along the depth of the left factor and along the columns of the right factor.
 * Each thread has one index of the depth in the left factor, and one column of the right factor. */
template <class P>
__device__ inline void load(const P &p, const tile &t, size_t from, panels &shared) {
  const size_t k = from + threadIdx.x % DEPTH;
  const bool is_inside = k < p.depth(), has_column = t.column + threadIdx.x % EDGE < p.columns();
  const place along = p.along(k);
#pragma unroll
  for (unsigned i = 0; i < LOADS; i++) {
    const unsigned at = threadIdx.x + i * BLOCK_THREADS;
    const size_t r = t.row + at / DEPTH;
    shared.left[at % DEPTH * ROW + at / DEPTH] = is_inside && r < p.rows() ? p.left(t, r, k, along) : 0.0f;
  }
#pragma unroll
  for (unsigned i = 0; i < LOADS; i++) {
    const unsigned at = threadIdx.x + i * BLOCK_THREADS;
    const size_t of_right = from + at / EDGE;
    shared.right[at / EDGE * ROW + at % EDGE] =
        has_column && of_right < p.depth() ? p.right(t, p.along(of_right)) : 0.0f;
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

/* Stores a result or, if there are several parts, that of a part. */
__device__ inline void put(const conv_shape &s, void *to, size_t at, size_t part, float value) {
  if (s.parts > 1) {
    ((float *)to)[at * s.parts + part] = value;
  } else {
    ((element *)to)[at] = to_element(value);
  }
}

template <class P>
__device__ inline void make_tile(const P &p, const tile &t, panels &shared, void *to) {
  const unsigned down = threadIdx.x / SIDE, across = threadIdx.x % SIDE;
  const size_t end = p.depth() - t.part * p.s.part < p.s.part ? p.depth() : (t.part + 1) * p.s.part;
  float sums[4][4];
#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    const size_t r = t.row + down + SIDE * i;
    const float first = t.part == 0 && r < p.rows() ? p.first(t, r) : 0.0f;
#pragma unroll
    for (unsigned j = 0; j < 4; j++) sums[i][j] = first;
  }
  for (size_t from = t.part * p.s.part; from < end; from += DEPTH) {
    load(p, t, from, shared);
    __syncthreads();
    multiply(shared, sums);
    __syncthreads(); /* the panels have been read */
  }
#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
#pragma unroll
    for (unsigned j = 0; j < 4; j++) {
      const size_t r = t.row + down + SIDE * i, c = t.column + across + SIDE * j;
      if (r < p.rows() && c < p.columns())
        put(p.s, to, (t.product * p.rows() + r) * p.columns() + c, t.part, sums[i][j]);
    }
  }
}

template <class P>
__device__ inline void make_tiles(const P &p, void *to) {
  __shared__ panels shared;
  const size_t parts = p.s.parts, across = (p.columns() + EDGE - 1) / EDGE, down = (p.rows() + EDGE - 1) / EDGE;
  for (size_t i = blockIdx.x; i < p.count() * across * down * parts; i += gridDim.x) {
    const size_t number = i / parts, product = number / (across * down), column = number % across * EDGE;
    const tile t = {product, product % p.s.groups, number / across % down * EDGE,
                    column,  i - number * parts,   p.across(column + threadIdx.x % EDGE)};
    make_tile(p, t, shared, to);
  }
}

extern "C" __global__ void conv_TYPE(conv_shape shape, const element *__restrict__ x,
                                     const element *__restrict__ weight, const element *__restrict__ bias,
                                     void *__restrict__ y) {
  const forward p = {shape, x, weight, bias};
  make_tiles(p, y);
}

extern "C" __global__ void conv_input_gradient_TYPE(conv_shape shape, const element *__restrict__ weight,
                                                    const element *__restrict__ dy, void *__restrict__ dx) {
  const input_gradient p = {shape, weight, dy};
  make_tiles(p, dx);
}

extern "C" __global__ void conv_weight_gradient_TYPE(conv_shape shape, const element *__restrict__ x,
                                                     const element *__restrict__ dy, void *__restrict__ dweight) {
  const weight_gradient p = {shape, x, dy};
  make_tiles(p, dweight);
}

extern "C" __global__ void conv_bias_TYPE(size_t count, size_t places, size_t channels,
                                          const element *__restrict__ bias, element *__restrict__ y) {
  for (size_t i = first_element(); i < count; i += element_stride()) y[i] = bias[i / places % channels];
}

/* SPDX-License-Identifier: MIT
 * The CUDA kernels of conv_tile.c: implicit matrix products. The columns of forward products and input gradients are
 * the positions of all images of a group, so that small images share tiles. A block computes a tile of 64 x 64 results.
 * Each step of 16 in depth is gathered into shared memory, from which each thread computes 4 x 4 results, while it
 * reads the next step. One thread sums a result, in the order of the depth. A product with few results has several
 * parts of its depth (conv.h): blocks of their own compute them, and another kernel adds them.
 */
#include "tensor/operators/convolution/conv_shape.cuh"

#define EDGE 64
#define DEPTH 16
#define ROW (EDGE + 4)
#define SIDE 16 /* of the square of threads */
#define EACH 4  /* rows, and columns, of a thread */
#define LOADS (EDGE * DEPTH / BLOCK_THREADS)
#define LOAD_STEP (BLOCK_THREADS / EDGE) /* in depth, between a thread's elements of the right factor */

/* Numbers of 32 bits do where no tensor has more elements than this. They are much faster to multiply and divide. */
#define MOST_ELEMENTS 0x7fffffffu

__device__ inline bool is_small(const conv_shape &s) {
  const size_t in = s.images * s.groups * s.in_channels * volume_of(s.w.in);
  const size_t out = s.images * s.groups * s.out_channels * volume_of(s.w.out);
  const size_t weights = s.groups * s.out_channels * s.in_channels * volume_of(s.w.kernel);
  return in <= MOST_ELEMENTS && out <= MOST_ELEMENTS && weights <= MOST_ELEMENTS;
}

/* A window, and the sizes of the tensors, as numbers of this type. */
template <class number>
struct sizes {
  number in[AXES], out[AXES], kernel[AXES], stride[AXES], dilation[AXES], padding[AXES];
  number ins, outs, taps; /* elements of a channel, and of a window */
  number images, groups, in_channels, out_channels;
};

template <class number>
__device__ inline sizes<number> sizes_of(const conv_shape &s) {
  sizes<number> z;
#pragma unroll
  for (int axis = 0; axis < AXES; axis++) {
    z.in[axis] = (number)s.w.in[axis];
    z.out[axis] = (number)s.w.out[axis];
    z.kernel[axis] = (number)s.w.kernel[axis];
    z.stride[axis] = (number)s.w.stride[axis];
    z.dilation[axis] = (number)s.w.dilation[axis];
    z.padding[axis] = (number)s.w.padding[axis];
  }
  z.ins = (number)volume_of(s.w.in);
  z.outs = (number)volume_of(s.w.out);
  z.taps = (number)volume_of(s.w.kernel);
  z.images = (number)s.images;
  z.groups = (number)s.groups;
  z.in_channels = (number)s.in_channels;
  z.out_channels = (number)s.out_channels;
  return z;
}

/* An index of a column, or of the depth: the number of a volume, and the position in it. */
template <class number>
struct place {
  number volume, at[AXES];
};

template <class number>
__device__ inline place<number> place_of(const number *of, number index) {
  place<number> p;
  const number row = index / of[WIDTH], plane = row / of[HEIGHT];
  p.at[WIDTH] = index - row * of[WIDTH];
  p.at[HEIGHT] = row - plane * of[HEIGHT];
  p.volume = plane / of[DEPTH_AXIS];
  p.at[DEPTH_AXIS] = plane - p.volume * of[DEPTH_AXIS];
  return p;
}

/* Adds a distance, which is the place of its index, without a division. */
template <class number>
__device__ inline void advance(const number *of, const place<number> &distance, place<number> &p) {
  number carry = 0;
#pragma unroll
  for (int axis = AXES - 1; axis >= 0; axis--) {
    p.at[axis] += distance.at[axis] + carry;
    carry = p.at[axis] >= of[axis] ? 1 : 0;
    if (carry != 0) p.at[axis] -= of[axis];
  }
  p.volume += distance.volume + carry;
}

template <class number>
__device__ inline number index_of(const number *of, const number *at) {
  return (at[DEPTH_AXIS] * of[HEIGHT] + at[HEIGHT]) * of[WIDTH] + at[WIDTH];
}

/* What a thread keeps of its column of the right factor: where its channel or image begins, and a position. */
template <class number>
struct column {
  number begin, from[AXES];
};

/* Whether a position is inside of a volume. An axis that wrapped around below 0 is outside. */
template <class number>
__device__ inline bool is_inside(const number *of, const number *at) {
  return (at[DEPTH_AXIS] < of[DEPTH_AXIS]) & (at[HEIGHT] < of[HEIGHT]) & (at[WIDTH] < of[WIDTH]);
}

/* The three products of conv.h. `along` and `across` are the places of an index of the depth, k, and of a column.
 * Element (row, k) of the left factor lies at left_begin + row left_step. */
template <class number>
struct forward {
  sizes<number> z;
  const element *left, *right, *bias;
  __device__ number rows() const { return z.out_channels; }
  __device__ number columns() const { return z.images * z.outs; }
  __device__ number depth() const { return z.in_channels * z.taps; }
  __device__ const number *along_sizes() const { return z.kernel; }
  __device__ const number *across_sizes() const { return z.out; }
  __device__ number left_begin(number group, number k, const place<number> &) const {
    return group * z.out_channels * depth() + k;
  }
  __device__ number left_step() const { return depth(); }
  __device__ column<number> column_of(number group, const place<number> &across) const {
    column<number> c = {(across.volume * z.groups + group) * z.in_channels * z.ins, {}};
#pragma unroll
    for (int axis = 0; axis < AXES; axis++) c.from[axis] = across.at[axis] * z.stride[axis] - z.padding[axis];
    return c;
  }
  __device__ bool find_right(const column<number> &c, const place<number> &along, number &at) const {
    number in[AXES];
#pragma unroll
    for (int axis = 0; axis < AXES; axis++) in[axis] = c.from[axis] + along.at[axis] * z.dilation[axis];
    at = c.begin + along.volume * z.ins + index_of(z.in, in);
    return is_inside(z.in, in);
  }
  __device__ float first(number group, number row) const {
    return bias != NULL ? to_float(bias[group * z.out_channels + row]) : 0.0f;
  }
  __device__ number result(number group, number row, number, const place<number> &across) const {
    return ((across.volume * z.groups + group) * z.out_channels + row) * z.outs + index_of(z.out, across.at);
  }
};

template <class number>
struct input_gradient {
  sizes<number> z;
  const element *left, *right;
  __device__ number rows() const { return z.in_channels; }
  __device__ number columns() const { return z.images * z.ins; }
  __device__ number depth() const { return z.out_channels * z.taps; }
  __device__ const number *along_sizes() const { return z.kernel; }
  __device__ const number *across_sizes() const { return z.in; }
  __device__ number left_begin(number group, number k, const place<number> &along) const {
    const number out = group * z.out_channels + along.volume;
    return out * z.in_channels * z.taps + k - along.volume * z.taps;
  }
  __device__ number left_step() const { return z.taps; }
  __device__ column<number> column_of(number group, const place<number> &across) const {
    column<number> c = {(across.volume * z.groups + group) * z.out_channels * z.outs, {}};
#pragma unroll
    for (int axis = 0; axis < AXES; axis++) c.from[axis] = across.at[axis] + z.padding[axis];
    return c;
  }
  /* In the window that has the position at its tap, if there is one. */
  __device__ bool find_right(const column<number> &c, const place<number> &along, number &at) const {
    number out[AXES];
    bool is_there = true;
#pragma unroll
    for (int axis = 0; axis < AXES; axis++) {
      const number from = along.at[axis] * z.dilation[axis], distance = c.from[axis] - from;
      out[axis] = z.stride[axis] == 1 ? distance : distance / z.stride[axis];
      is_there = is_there & (c.from[axis] >= from) & (out[axis] * z.stride[axis] == distance);
    }
    at = c.begin + along.volume * z.outs + index_of(z.out, out);
    return is_there & is_inside(z.out, out);
  }
  __device__ float first(number, number) const { return 0.0f; }
  __device__ number result(number group, number row, number, const place<number> &across) const {
    return ((across.volume * z.groups + group) * z.in_channels + row) * z.ins + index_of(z.in, across.at);
  }
};

template <class number>
struct weight_gradient {
  sizes<number> z;
  const element *left, *right;
  __device__ number rows() const { return z.out_channels; }
  __device__ number columns() const { return z.in_channels * z.taps; }
  __device__ number depth() const { return z.images * z.outs; }
  __device__ const number *along_sizes() const { return z.out; }
  __device__ const number *across_sizes() const { return z.kernel; }
  __device__ number left_begin(number group, number k, const place<number> &along) const {
    return (along.volume * z.groups + group) * z.out_channels * z.outs + k - along.volume * z.outs;
  }
  __device__ number left_step() const { return z.outs; }
  __device__ column<number> column_of(number group, const place<number> &across) const {
    column<number> c = {(group * z.in_channels + across.volume) * z.ins, {}};
#pragma unroll
    for (int axis = 0; axis < AXES; axis++) c.from[axis] = across.at[axis] * z.dilation[axis] - z.padding[axis];
    return c;
  }
  __device__ bool find_right(const column<number> &c, const place<number> &along, number &at) const {
    number in[AXES];
#pragma unroll
    for (int axis = 0; axis < AXES; axis++) in[axis] = c.from[axis] + along.at[axis] * z.stride[axis];
    at = c.begin + along.volume * z.groups * z.in_channels * z.ins + index_of(z.in, in);
    return is_inside(z.in, in);
  }
  __device__ float first(number, number) const { return 0.0f; }
  __device__ number result(number group, number row, number column, const place<number> &) const {
    return (group * z.out_channels + row) * columns() + column;
  }
};

struct panels {
  float left[DEPTH * ROW], right[DEPTH * ROW];
};

/* The tile of a block. */
template <class number>
struct tile {
  number group, row, column, begin, end; /* the depth from begin to before end */
};

/* What a thread reads of the panels. Neighbouring threads read neighbours along the depth of the left factor and along
 * the columns of the right factor. A thread has one index of the depth in the left factor, and one column of the right
 * factor; it follows their places from step to step. */
template <class number, class P>
struct reader {
  place<number> left, right; /* of the next elements */
  place<number> left_distance, right_distance;
  column<number> of_right;
  number k; /* of the left factor */
  bool has_column;
  float lefts[LOADS], rights[LOADS];

  __device__ inline void begin(const P &p, const tile<number> &t) {
    const number own = t.column + threadIdx.x % EDGE;
    k = t.begin + threadIdx.x % DEPTH;
    left = place_of(p.along_sizes(), k);
    right = place_of(p.along_sizes(), (number)(t.begin + threadIdx.x / EDGE));
    left_distance = place_of(p.along_sizes(), (number)DEPTH);
    right_distance = place_of(p.along_sizes(), (number)LOAD_STEP);
    has_column = own < p.columns();
    of_right = p.column_of(t.group, place_of(p.across_sizes(), has_column ? own : 0));
  }

  __device__ inline void read(const P &p, const tile<number> &t, number from) {
    const number begin = p.left_begin(t.group, k, left);
#pragma unroll
    for (unsigned i = 0; i < LOADS; i++) {
      const number r = t.row + threadIdx.x / DEPTH + i * (BLOCK_THREADS / DEPTH);
      lefts[i] = k < t.end && r < p.rows() ? to_float(p.left[begin + r * p.left_step()]) : 0.0f;
    }
#pragma unroll
    for (unsigned i = 0; i < LOADS; i++) {
      number at;
      const bool is_there = p.find_right(of_right, right, at);
      const bool is_read = is_there & has_column & (from + threadIdx.x / EDGE + i * LOAD_STEP < t.end);
      rights[i] = is_read ? to_float(p.right[at]) : 0.0f;
      advance(p.along_sizes(), right_distance, right);
    }
    advance(p.along_sizes(), left_distance, left);
    k += DEPTH;
  }

  __device__ inline void write(panels &shared) const {
#pragma unroll
    for (unsigned i = 0; i < LOADS; i++) {
      shared.left[threadIdx.x % DEPTH * ROW + threadIdx.x / DEPTH + i * (BLOCK_THREADS / DEPTH)] = lefts[i];
      shared.right[(threadIdx.x / EDGE + i * LOAD_STEP) * ROW + threadIdx.x % EDGE] = rights[i];
    }
  }
};

__device__ inline void multiply(const panels &shared, float (*sums)[EACH]) {
  const unsigned down = threadIdx.x / SIDE * EACH, across = threadIdx.x % SIDE * EACH;
#pragma unroll
  for (unsigned k = 0; k < DEPTH; k++) {
    const float4 a = *(const float4 *)&shared.left[k * ROW + down],
                 b = *(const float4 *)&shared.right[k * ROW + across];
    const float left[EACH] = {a.x, a.y, a.z, a.w}, right[EACH] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
#pragma unroll
      for (unsigned j = 0; j < EACH; j++) sums[i][j] += left[i] * right[j];
    }
  }
}

/* The results or, if there are several parts of the depth, the sums of all results of each part. */
struct results {
  void *to;
  size_t parts, part, count;
};

__device__ inline void put(const results &r, size_t at, float value) {
  if (r.parts > 1) {
    ((float *)r.to)[r.part * r.count + at] = value;
  } else {
    ((element *)r.to)[at] = to_element(value);
  }
}

template <class number, class P>
__device__ inline void store(const P &p, const tile<number> &t, const float (*sums)[EACH], const results &to) {
#pragma unroll
  for (unsigned j = 0; j < EACH; j++) {
    const number c = t.column + threadIdx.x % SIDE * EACH + j;
    if (c >= p.columns()) continue;
    const place<number> across = place_of(p.across_sizes(), c);
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
      const number r = t.row + threadIdx.x / SIDE * EACH + i;
      if (r < p.rows()) put(to, p.result(t.group, r, c, across), sums[i][j]);
    }
  }
}

template <class number, class P>
__device__ inline void make_tile(const P &p, const tile<number> &t, panels &shared, const results &to) {
  reader<number, P> own;
  float sums[EACH][EACH];
#pragma unroll
  for (unsigned i = 0; i < EACH; i++) {
    const number r = t.row + threadIdx.x / SIDE * EACH + i;
    const float first = t.begin == 0 && r < p.rows() ? p.first(t.group, r) : 0.0f;
#pragma unroll
    for (unsigned j = 0; j < EACH; j++) sums[i][j] = first;
  }
  own.begin(p, t);
  own.read(p, t, t.begin);
  for (number from = t.begin; from < t.end; from += DEPTH) {
    own.write(shared);
    __syncthreads();
    if (from + DEPTH < t.end) own.read(p, t, from + DEPTH);
    multiply(shared, sums);
    __syncthreads(); /* the panels have been read */
  }
  store(p, t, sums, to);
}

template <class number, class P>
__device__ inline void make_tiles(const conv_shape &s, const P &p, panels &shared, void *to) {
  const size_t across = ((size_t)p.columns() + EDGE - 1) / EDGE, down = ((size_t)p.rows() + EDGE - 1) / EDGE;
  for (size_t i = blockIdx.x; i < s.groups * across * down * s.parts; i += gridDim.x) {
    const size_t number_of_tile = i / s.parts, part = i - number_of_tile * s.parts;
    const size_t group = number_of_tile / (across * down), begin = part * s.part;
    const size_t end = p.depth() - begin < s.part ? p.depth() : begin + s.part;
    const tile<number> t = {(number)group, (number)(number_of_tile / across % down * EDGE),
                            (number)(number_of_tile % across * EDGE), (number)begin, (number)end};
    make_tile(p, t, shared, {to, s.parts, part, s.groups * p.rows() * p.columns()});
  }
}

/* Computes the product with numbers of 32 bits, if they do. */
#define MAKE_TILES(product, ...)                                          \
  __shared__ __align__(16) panels shared;                                 \
  if (is_small(shape)) {                                                  \
    const product<unsigned> p = {sizes_of<unsigned>(shape), __VA_ARGS__}; \
    make_tiles<unsigned>(shape, p, shared, to);                           \
  } else {                                                                \
    const product<size_t> p = {sizes_of<size_t>(shape), __VA_ARGS__};     \
    make_tiles<size_t>(shape, p, shared, to);                             \
  }

/* Three blocks of a multiprocessor hide the time of each other's reads. Numbers of 64 bits need more registers than
 * that leaves. */
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 3)
    conv_TYPE(conv_shape shape, const element *__restrict__ x, const element *__restrict__ weight,
              const element *__restrict__ bias, void *__restrict__ to) {
  MAKE_TILES(forward, weight, x, bias)
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 3)
    conv_input_gradient_TYPE(conv_shape shape, const element *__restrict__ weight, const element *__restrict__ dy,
                             void *__restrict__ to) {
  MAKE_TILES(input_gradient, weight, dy)
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 3)
    conv_weight_gradient_TYPE(conv_shape shape, const element *__restrict__ x, const element *__restrict__ dy,
                              void *__restrict__ to) {
  MAKE_TILES(weight_gradient, dy, x)
}

extern "C" __global__ void conv_bias_TYPE(size_t count, size_t places, size_t channels,
                                          const element *__restrict__ bias, element *__restrict__ y) {
  for (size_t i = first_element(); i < count; i += element_stride()) y[i] = bias[i / places % channels];
}

/* Adds the parts of each result. Of few results, a block adds BLOCK_THREADS / segments: each thread adds a segment of
 * the parts in their order, and one adds the segments in theirs. */
extern "C" __global__ void conv_sum_TYPE(size_t count, size_t parts, size_t segments, const float *__restrict__ from,
                                         element *__restrict__ to) {
  __shared__ float sums[BLOCK_THREADS];
  const unsigned width = BLOCK_THREADS / (unsigned)segments, own = threadIdx.x % width, segment = threadIdx.x / width;
  const size_t each = (parts + segments - 1) / segments, first = segment * each;
  const size_t last = first + each < parts ? first + each : parts;
  for (size_t base = (size_t)blockIdx.x * width; base < count; base += (size_t)gridDim.x * width) {
    const size_t i = base + own;
    float sum = 0;
#pragma unroll 8
    for (size_t part = first; i < count && part < last; part++) sum += from[part * count + i];
    __syncthreads(); /* the sums before have been read */
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (segment > 0 || i >= count) continue;
    for (unsigned other = 1; other < segments; other++) sum += sums[other * width + own];
    to[i] = to_element(sum);
  }
}

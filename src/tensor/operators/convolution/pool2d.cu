/* SPDX-License-Identifier: MIT
 * The CUDA kernels of pool2d.c: a thread computes a result or, for the gradients, an element of the image.
 */
#include "tensor/operators/convolution/window.cuh"

struct pool_shape {
  window w;
  size_t planes;
  u64 counts_padding;
};

/* first <= i < last, along both axes */
struct extent {
  size_t first[2], last[2];
};

__device__ inline size_t in_of(const pool_shape &s) { return s.w.in[HEIGHT] * s.w.in[WIDTH]; }
__device__ inline size_t out_of(const pool_shape &s) { return s.w.out[HEIGHT] * s.w.out[WIDTH]; }

/* The part of a window that is inside the image. */
__device__ inline extent inside(const window &w, size_t y, size_t x) {
  const size_t out[] = {y, x};
  extent e;
#pragma unroll
  for (int axis = 0; axis < 2; axis++) {
    const size_t from = out[axis] * w.stride[axis], to = from + w.kernel[axis];
    e.first[axis] = from > w.padding[axis] ? from - w.padding[axis] : 0;
    e.last[axis] = to - w.padding[axis] < w.in[axis] ? to - w.padding[axis] : w.in[axis];
  }
  return e;
}

/* The windows that contain an element of the image. */
__device__ inline extent around(const window &w, size_t y, size_t x) {
  const size_t in[] = {y, x};
  extent e;
#pragma unroll
  for (int axis = 0; axis < 2; axis++) {
    const size_t at = in[axis] + w.padding[axis], last = at / w.stride[axis] + 1;
    e.first[axis] = at < w.kernel[axis] ? 0 : (at - w.kernel[axis]) / w.stride[axis] + 1;
    e.last[axis] = last < w.out[axis] ? last : w.out[axis];
  }
  return e;
}

__device__ inline float share_of(const pool_shape &s, const extent &e) {
  const size_t size = (e.last[HEIGHT] - e.first[HEIGHT]) * (e.last[WIDTH] - e.first[WIDTH]);
  return 1.0f / (float)(s.counts_padding != 0 ? s.w.kernel[HEIGHT] * s.w.kernel[WIDTH] : size);
}

__device__ inline size_t find_largest(const pool_shape &s, const element *plane, const extent &e) {
  size_t best = e.first[HEIGHT] * s.w.in[WIDTH] + e.first[WIDTH];
  float largest = to_float(plane[best]);
  for (size_t i = e.first[HEIGHT]; i < e.last[HEIGHT]; i++) {
    for (size_t j = e.first[WIDTH]; j < e.last[WIDTH]; j++) {
      const float here = to_float(plane[i * s.w.in[WIDTH] + j]);
      if (!(here > largest) && !(here != here && largest == largest)) continue;
      largest = here;
      best = i * s.w.in[WIDTH] + j;
    }
  }
  return best;
}

extern "C" __global__ void max_pool2d_TYPE(pool_shape s, const element *__restrict__ x, element *__restrict__ y,
                                           int *__restrict__ places) {
  for (size_t i = first_element(); i < s.planes * out_of(s); i += element_stride()) {
    const element *plane = x + i / out_of(s) * in_of(s);
    const size_t out = i % out_of(s);
    const size_t place = find_largest(s, plane, inside(s.w, out / s.w.out[WIDTH], out % s.w.out[WIDTH]));
    y[i] = plane[place];
    if (places != NULL) places[i] = (int)place;
  }
}

extern "C" __global__ void avg_pool2d_TYPE(pool_shape s, const element *__restrict__ x, element *__restrict__ y) {
  for (size_t i = first_element(); i < s.planes * out_of(s); i += element_stride()) {
    const element *plane = x + i / out_of(s) * in_of(s);
    const size_t out = i % out_of(s);
    const extent e = inside(s.w, out / s.w.out[WIDTH], out % s.w.out[WIDTH]);
    float sum = 0;
    for (size_t row = e.first[HEIGHT]; row < e.last[HEIGHT]; row++)
      for (size_t column = e.first[WIDTH]; column < e.last[WIDTH]; column++)
        sum += to_float(plane[row * s.w.in[WIDTH] + column]);
    y[i] = to_element(sum * share_of(s, e));
  }
}

/* dx at each place: the sum of what sent(out, place, y, x) gives for the windows around it. */
template <class function>
__device__ inline void gather_gradient(const pool_shape &s, element *__restrict__ dx, function sent) {
  for (size_t i = first_element(); i < s.planes * in_of(s); i += element_stride()) {
    const size_t plane = i / in_of(s) * out_of(s), in = i % in_of(s);
    const extent e = around(s.w, in / s.w.in[WIDTH], in % s.w.in[WIDTH]);
    float sum = 0;
    for (size_t y = e.first[HEIGHT]; y < e.last[HEIGHT]; y++) {
      for (size_t x = e.first[WIDTH]; x < e.last[WIDTH]; x++) sum += sent(plane + y * s.w.out[WIDTH] + x, in, y, x);
    }
    dx[i] = to_element(sum);
  }
}

extern "C" __global__ void max_pool2d_gradient_TYPE(pool_shape s, const element *__restrict__ dy,
                                                    element *__restrict__ dx, const int *__restrict__ places) {
  gather_gradient(s, dx, [&](size_t out, size_t in, size_t, size_t) {
    return (size_t)places[out] == in ? to_float(dy[out]) : 0.0f;
  });
}

extern "C" __global__ void avg_pool2d_gradient_TYPE(pool_shape s, const element *__restrict__ dy,
                                                    element *__restrict__ dx) {
  gather_gradient(s, dx, [&](size_t out, size_t, size_t y, size_t x) {
    return to_float(dy[out]) * share_of(s, inside(s.w, y, x));
  });
}

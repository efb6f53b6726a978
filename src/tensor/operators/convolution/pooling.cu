/* SPDX-License-Identifier: MIT
 * The CUDA kernels of pooling.c: a thread computes a result or, for the gradients, an element of the image.
 */
#include "tensor/operators/convolution/window.cuh"

struct pooling_shape {
  window w;
  size_t channels;
  u64 counts_padding, divisor;
};

/* Some taps, windows or elements of the image along each axis: first <= i < last. */
struct extent {
  size_t first[AXES], last[AXES];
};

__device__ inline size_t in_of(const pooling_shape &s) { return volume_of(s.w.in); }
__device__ inline size_t out_of(const pooling_shape &s) { return volume_of(s.w.out); }

/* The taps of a window that are inside the image. */
__device__ inline extent taps_inside(const window &w, const position &out) {
  extent e;
#pragma unroll
  for (int axis = 0; axis < AXES; axis++) {
    e.first[axis] = taps_before(w, axis, out.at[axis], w.padding[axis]);
    e.last[axis] = taps_before(w, axis, out.at[axis], w.padding[axis] + w.in[axis]);
  }
  return e;
}

/* The windows that may contain an element of the image; without a dilation, all of them do. */
__device__ inline extent around(const window &w, const position &in) {
  extent e;
#pragma unroll
  for (int axis = 0; axis < AXES; axis++) {
    const size_t at = in.at[axis] + w.padding[axis], last = quotient(at, w.stride[axis]) + 1;
    const size_t size = w.dilation[axis] * (w.kernel[axis] - 1) + 1;
    e.first[axis] = at < size ? 0 : quotient(at - size, w.stride[axis]) + 1;
    e.last[axis] = last < w.out[axis] ? last : w.out[axis];
  }
  return e;
}

__device__ inline bool contains(const window &w, const position &out, const position &in) {
#pragma unroll
  for (int axis = 0; axis < AXES; axis++) {
    const size_t at = in.at[axis] + w.padding[axis], from = out.at[axis] * w.stride[axis];
    if (at < from) return false;
    const size_t tap = w.dilation[axis] == 1 ? at - from : quotient(at - from, w.dilation[axis]);
    if (tap * w.dilation[axis] != at - from || tap >= w.kernel[axis]) return false;
  }
  return true;
}

/* Calls visit(place) for each place within the extent, in their order. */
template <class function>
__device__ inline void visit_all(const extent &e, function visit) {
  position p;
  for (p.at[0] = e.first[0]; p.at[0] < e.last[0]; p.at[0]++)
    for (p.at[1] = e.first[1]; p.at[1] < e.last[1]; p.at[1]++)
      for (p.at[2] = e.first[2]; p.at[2] < e.last[2]; p.at[2]++) visit(p);
}

/* What a sum is multiplied with. A window without elements has a sum of 0. */
__device__ inline float share_of(const pooling_shape &s, const position &out) {
  if (s.divisor != 0) return 1.0f / (float)s.divisor;
  const extent e = taps_inside(s.w, out);
  size_t count = 1;
#pragma unroll
  for (int axis = 0; axis < AXES; axis++) {
    const size_t end = s.w.padding[axis] + s.w.in[axis] + s.w.after[axis];
    count *= s.counts_padding != 0 ? taps_before(s.w, axis, out.at[axis], end) : e.last[axis] - e.first[axis];
  }
  return count == 0 ? 0.0f : 1.0f / (float)count;
}

/* The index of the largest element; -1 if the window has none. */
__device__ inline int find_largest(const pooling_shape &s, const element *channel, const position &out) {
  int best = -1;
  float largest = 0;
  visit_all(taps_inside(s.w, out), [&](const position &tap) {
    position in;
    window_tap(s.w, out, tap, in);
    const size_t place = index_of(s.w.in, in);
    const float here = to_float(channel[place]);
    if (best >= 0 && !(here > largest) && !(here != here && largest == largest)) return;
    largest = here;
    best = (int)place;
  });
  return best;
}

extern "C" __global__ void max_pool_TYPE(pooling_shape s, const element *__restrict__ x, element *__restrict__ y,
                                         int *__restrict__ places) {
  for (size_t i = first_element(); i < s.channels * out_of(s); i += element_stride()) {
    const size_t number = quotient(i, out_of(s));
    const element *channel = x + number * in_of(s);
    const int place = find_largest(s, channel, position_of(s.w.out, i - number * out_of(s)));
    y[i] = place < 0 ? to_element(-__int_as_float(0x7f800000)) : channel[place];
    if (places != NULL) places[i] = place;
  }
}

extern "C" __global__ void avg_pool_TYPE(pooling_shape s, const element *__restrict__ x, element *__restrict__ y) {
  for (size_t i = first_element(); i < s.channels * out_of(s); i += element_stride()) {
    const size_t number = quotient(i, out_of(s));
    const element *channel = x + number * in_of(s);
    const position out = position_of(s.w.out, i - number * out_of(s));
    float sum = 0;
    visit_all(taps_inside(s.w, out), [&](const position &tap) {
      position in;
      window_tap(s.w, out, tap, in);
      sum += to_float(channel[index_of(s.w.in, in)]);
    });
    y[i] = to_element(sum * share_of(s, out));
  }
}

/* dx at each place: the sum of what sent(index of a window, its place, place and index of the element) gives for the
 * windows that may contain it. */
template <class function>
__device__ inline void gather_gradient(const pooling_shape &s, element *__restrict__ dx, function sent) {
  for (size_t i = first_element(); i < s.channels * in_of(s); i += element_stride()) {
    const size_t channel = quotient(i, in_of(s)), first = channel * out_of(s), at = i - channel * in_of(s);
    const position in = position_of(s.w.in, at);
    float sum = 0;
    visit_all(around(s.w, in), [&](const position &out) { sum += sent(first + index_of(s.w.out, out), out, in, at); });
    dx[i] = to_element(sum);
  }
}

extern "C" __global__ void max_pool_gradient_TYPE(pooling_shape s, const element *__restrict__ dy,
                                                  element *__restrict__ dx, const int *__restrict__ places) {
  gather_gradient(s, dx, [&](size_t number, const position &, const position &, size_t at) {
    return (size_t)places[number] == at ? to_float(dy[number]) : 0.0f;
  });
}

extern "C" __global__ void avg_pool_gradient_TYPE(pooling_shape s, const element *__restrict__ dy,
                                                  element *__restrict__ dx) {
  gather_gradient(s, dx, [&](size_t number, const position &out, const position &in, size_t) {
    return contains(s.w, out, in) ? to_float(dy[number]) * share_of(s, out) : 0.0f;
  });
}

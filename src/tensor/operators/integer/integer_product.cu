/* SPDX-License-Identifier: MIT
 * The CUDA kernels of matmul_integer.c and conv_integer.c: a thread computes an element. They have no workspace.
 */
#include "tensor/operators/convolution/window.cuh"

struct integer_ending {
  unsigned a_unsigned, b_unsigned, zeros_b, scales, biases, has_scale, result_unsigned, by_row;
  unsigned result_float, bias_float, relu, b_transposed;
  float a_scale, result_scale;
};

__device__ inline int byte_at(const void *bytes, unsigned is_unsigned, size_t at) {
  return is_unsigned != 0 ? (int)((const unsigned char *)bytes)[at] : (int)((const signed char *)bytes)[at];
}

/* Operations are rounded one by one, as on a CPU. */
__device__ inline void store_sum(const integer_ending &e, int sum, size_t channel, const void *bias, const float *scale,
                                 const void *result_zero, void *result, size_t at) {
  if (e.has_scale == 0) {
    ((int *)result)[at] = sum;
    return;
  }
  const size_t of = e.biases == 1 ? 0 : channel;
  const float factor = __fmul_rn(e.a_scale, scale[e.scales == 1 ? 0 : channel]) / e.result_scale;
  const float offset = e.biases == 0 || e.bias_float == 0 ? 0.0f : ((const float *)bias)[of] / e.result_scale;
  const unsigned added = e.biases == 0 || e.bias_float != 0 ? 0 : (unsigned)((const int *)bias)[of];
  float x = __fadd_rn(__fmul_rn((float)(int)((unsigned)sum + added), factor), offset);
  if (e.relu != 0 && x < 0) x = 0;
  if (e.result_float != 0) {
    ((float *)result)[at] = x;
    return;
  }
  const float zero = result_zero == NULL ? 0.0f : (float)byte_at(result_zero, e.result_unsigned, 0);
  const float low = e.result_unsigned != 0 ? 0.0f : -128.0f, high = e.result_unsigned != 0 ? 255.0f : 127.0f;
  const float whole = rintf(x) + zero;
  ((unsigned char *)result)[at] = (unsigned char)(int)(whole > low ? (whole < high ? whole : high) : low);
}

#define LEADING 4

struct matmul_shape {
  size_t dims[LEADING], a_steps[LEADING], b_steps[LEADING];
  size_t matrices, m, k, n;
  integer_ending ending;
  size_t rows;
};

extern "C" __global__ void matmul_integer(matmul_shape s, const void *__restrict__ a, const void *__restrict__ b,
                                          const void *__restrict__ a_zero, const void *__restrict__ b_zero,
                                          const void *__restrict__ bias, const float *__restrict__ scale,
                                          const void *__restrict__ result_zero, const void *,
                                          void *__restrict__ result) {
  const integer_ending &e = s.ending;
  const int zero = a_zero == NULL ? 0 : byte_at(a_zero, e.a_unsigned, 0);
  for (size_t i = first_element(); i < s.matrices * s.m * s.n; i += element_stride()) {
    const size_t column = i % s.n, row = i / s.n % s.m;
    const size_t b_column = e.b_transposed != 0 ? s.k : 1, b_row = e.b_transposed != 0 ? 1 : s.n;
    size_t number = i / s.n / s.m, from_a = row * s.k, from_b = column * b_column;
    for (int d = LEADING - 1; d >= 0; d--) {
      from_a += number % s.dims[d] * s.a_steps[d];
      from_b += number % s.dims[d] * s.b_steps[d];
      number /= s.dims[d];
    }
    const int column_zero = b_zero == NULL ? 0 : byte_at(b_zero, e.b_unsigned, e.zeros_b == 1 ? 0 : column);
    unsigned sum = 0;
    for (size_t k = 0; k < s.k; k++)
      sum += (unsigned)((byte_at(a, e.a_unsigned, from_a + k) - zero) *
                        (byte_at(b, e.b_unsigned, from_b + k * b_row) - column_zero));
    store_sum(e, (int)sum, column, bias, scale, result_zero, result, i);
  }
}

struct conv_shape {
  window w;
  size_t images, groups, in_channels, out_channels;
  integer_ending ending;
};

extern "C" __global__ void conv_integer(conv_shape s, const void *__restrict__ x, const void *__restrict__ weight,
                                        const void *__restrict__ x_zero, const void *__restrict__ zeros,
                                        const void *__restrict__ bias, const float *__restrict__ scale,
                                        const void *__restrict__ result_zero, const void *, void *__restrict__ result) {
  const integer_ending &e = s.ending;
  const int zero = x_zero == NULL ? 0 : byte_at(x_zero, e.a_unsigned, 0);
  const size_t out = volume_of(s.w.out), in = volume_of(s.w.in), taps = volume_of(s.w.kernel);
  const size_t channels = s.groups * s.out_channels;
  for (size_t i = first_element(); i < s.images * channels * out; i += element_stride()) {
    const size_t channel = i / out % channels, image = i / out / channels, group = channel / s.out_channels;
    const int own = zeros == NULL ? 0 : byte_at(zeros, e.b_unsigned, e.zeros_b == 1 ? 0 : channel);
    const position at = position_of(s.w.out, i % out);
    unsigned sum = 0;
    for (size_t tap = 0; tap < taps; tap++) {
      position from;
      if (!window_tap(s.w, at, position_of(s.w.kernel, tap), from)) continue;
      for (size_t c = 0; c < s.in_channels; c++) {
        const size_t of = (image * s.groups + group) * s.in_channels + c;
        sum += (unsigned)((byte_at(x, e.a_unsigned, of * in + index_of(s.w.in, from)) - zero) *
                          (byte_at(weight, e.b_unsigned, (channel * s.in_channels + c) * taps + tap) - own));
      }
    }
    store_sum(e, (int)sum, channel, bias, scale, result_zero, result, i);
  }
}

/* SPDX-License-Identifier: MIT
 * The CUDA kernel of add_integer.c: a thread computes an element. Operations are rounded one by one, as on a CPU.
 */
#include "tensor/operators/common/kernel_support.cuh"
#include "tensor/operators/integer/integer_product.cu"

struct sum_shape {
  size_t count;
  unsigned a_unsigned, b_unsigned, result_unsigned, relu;
  float a_scale, b_scale, result_scale;
  unsigned unused;
};

__device__ inline int zero_at(const void *zero, unsigned is_unsigned) {
  return zero == NULL ? 0 : byte_at(zero, is_unsigned, 0);
}

extern "C" __global__ void add_integer(sum_shape s, const void *__restrict__ a, const void *__restrict__ b,
                                       const void *__restrict__ a_zero, const void *__restrict__ b_zero,
                                       const void *__restrict__ result_zero, unsigned char *__restrict__ y) {
  const int zero_a = zero_at(a_zero, s.a_unsigned), zero_b = zero_at(b_zero, s.b_unsigned);
  const float zero = (float)zero_at(result_zero, s.result_unsigned);
  const float low = s.result_unsigned != 0 ? 0.0f : -128.0f, high = s.result_unsigned != 0 ? 255.0f : 127.0f;
  for (size_t i = first_element(); i < s.count; i += element_stride()) {
    const float first = __fmul_rn((float)(byte_at(a, s.a_unsigned, i) - zero_a), s.a_scale);
    const float second = __fmul_rn((float)(byte_at(b, s.b_unsigned, i) - zero_b), s.b_scale);
    const float sum = __fadd_rn(first, second), active = s.relu != 0 && sum < 0 ? 0.0f : sum;
    const float whole = rintf(active / s.result_scale) + zero;
    y[i] = (unsigned char)(int)(whole > low ? (whole < high ? whole : high) : low);
  }
}

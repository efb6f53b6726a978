/* SPDX-License-Identifier: MIT
 * The CUDA kernel of matmul_quantized.c for few rows: a warp computes a column of the result, for all rows. Each lane
 * takes every 32nd group of eight values; the lanes' sums are added pair by pair.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/common/operator_rows.cuh"
#include "tensor/operators/matmul/matmul_problem.cuh"
#include "tensor/operators/quantized/quantized.cuh"

#define MAX_ROWS 8 /* THIN_ROWS of matmul_quantized.c */

/* sum((value - zero) x) over eight columns of a row of x, of which `left` exist. Whole groups of four are aligned. */
template <unsigned bits>
__device__ inline float float_dot(const eight_values<bits> &values, int zero, const element *x, unsigned left,
                                  bool is_aligned) {
  float sum = 0;
  if (is_aligned && left >= EIGHT) {
    const pack<element> low = ((const pack<element> *)x)[0], high = ((const pack<element> *)x)[1];
#pragma unroll
    for (unsigned k = 0; k < EIGHT; k++)
      sum += (float)(values.at(k) - zero) * to_float(k < PACK ? low.at[k % PACK] : high.at[k % PACK]);
    return sum;
  }
#pragma unroll
  for (unsigned k = 0; k < EIGHT; k++)
    if (k < left) sum += (float)(values.at(k) - zero) * to_float(x[k]);
  return sum;
}

/* The same with a row of integers, which is padded with zeros. With 4 bits, a word has its even values in the lower
 * halves of its bytes, and its odd ones in the upper halves. */
__device__ inline int integer_dot(const eight_values<8> &values, int zero, const int *x) {
  const int sum = __dp4a((int)values.words[1], x[1], __dp4a((int)values.words[0], x[0], 0));
  return zero == 0 ? sum : sum - zero * __dp4a(0x01010101, x[1], __dp4a(0x01010101, x[0], 0));
}

__device__ inline int integer_dot(const eight_values<4> &values, int zero, const int *x) {
  const int even = (int)__byte_perm((unsigned)x[0], (unsigned)x[1], 0x6420);
  const int odd = (int)__byte_perm((unsigned)x[0], (unsigned)x[1], 0x7531);
  const int low = (int)(values.words[0] & 0x0f0f0f0fu), high = (int)(values.words[0] >> 4 & 0x0f0f0f0fu);
  const int sum = __dp4a(high, odd, __dp4a(low, even, 0));
  return sum - zero * __dp4a(0x01010101, odd, __dp4a(0x01010101, even, 0));
}

struct thin_factor {
  const element *x;
  const signed char *rows; /* NULL: x is used */
  size_t padded;           /* columns of a row of integers */
};

/* A lane's sums of one row of the matrix. */
template <unsigned bits>
__device__ inline void add_products(const matmul_problem &problem, const quantized_scheme &scheme,
                                    const quantized_matrix &matrix, const thin_factor &factor, size_t j, float *sums) {
  const unsigned columns = (unsigned)scheme.columns, group = (unsigned)scheme.group;
  const unsigned char *const values = matrix.values + j * scheme.row_bytes;
  for (unsigned column = threadIdx.x % WARP * EIGHT; column < columns; column += WARP * EIGHT) {
    const size_t number = j * scheme.groups + column / group;
    const eight_values<bits> eight(values, column, (unsigned)scheme.row_bytes);
    const float scale = matrix.scales[number];
    const int zero = zero_of<bits>(matrix, number);
#pragma unroll
    for (unsigned i = 0; i < MAX_ROWS; i++) {
      if (i >= problem.m) break;
      if (factor.rows != 0)
        sums[i] += scale * (float)integer_dot(eight, zero, (const int *)(factor.rows + i * factor.padded + column));
      else
        sums[i] += scale * float_dot<bits>(eight, zero, factor.x + i * scheme.columns + column, columns - column,
                                           columns % PACK == 0);
    }
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    matmul_quantized_thin_TYPE(matmul_problem problem, quantized_scheme scheme, const element *__restrict__ x,
                               const signed char *__restrict__ rows, const float *__restrict__ row_scales,
                               const unsigned char *__restrict__ values, const float *__restrict__ scales,
                               const unsigned char *__restrict__ zeros, const element *__restrict__ bias,
                               element *__restrict__ y) {
  const matmul_memory memory = {x, x, bias, y, 0};
  const quantized_matrix matrix = {values, scales, zeros};
  const thin_factor factor = {x, rows, (scheme.columns + 31) / 32 * 32};
  for (size_t j = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP; j < problem.n; j += (size_t)gridDim.x * WARPS) {
    float sums[MAX_ROWS] = {0};
    if (scheme.bits == 4)
      add_products<4>(problem, scheme, matrix, factor, j, sums);
    else
      add_products<8>(problem, scheme, matrix, factor, j, sums);
#pragma unroll
    for (unsigned i = 0; i < MAX_ROWS; i++) {
      float sum = sums[i];
#pragma unroll
      for (unsigned apart = WARP / 2; apart > 0; apart /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, apart);
      if (threadIdx.x % WARP != i || i >= problem.m) continue;
      write_result(problem, memory, i * problem.n + j, j, rows != 0 ? sum * row_scales[i] : sum);
    }
  }
}

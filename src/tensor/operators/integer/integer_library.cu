/* SPDX-License-Identifier: MIT
 * The CUDA kernels of integer_library.c: a team of threads has a row of a, or of the sums; a block has a strip of
 * columns of b, which it transposes through shared memory.
 */
#include "tensor/operators/common/operator_rows.cuh"
#include "tensor/operators/integer/integer_product.cu"

struct factor_shape {
  size_t rows, columns, padded_n, padded_k;
  u64 is_unsigned;
};

struct join_integers {
  static __device__ int of(int a, int b) { return a + b; }
};

/* U8 less 128 is the same bits with the highest one turned. */
__device__ inline unsigned turned(const factor_shape &shape) { return shape.is_unsigned != 0 ? 0x80u : 0u; }

extern "C" __global__ void integer_rows(factor_shape shape, const unsigned char *__restrict__ from,
                                        signed char *__restrict__ to, int *__restrict__ sums) {
  const row_team team = team_of(shape.padded_k);
  for (size_t row = team.first; row < shape.rows; row += team.stride) {
    int sum = 0;
    for (size_t k = team.lane; k < shape.padded_k; k += team.lanes) {
      const signed char x = k < shape.columns ? (signed char)(from[row * shape.columns + k] ^ turned(shape)) : 0;
      to[row * shape.padded_k + k] = x;
      sum += x;
    }
    sum = team_join<join_integers>(team, sum);
    if (team.lane == 0) sums[row] = sum;
  }
}

#define STRIP 32 /* columns of b, and lanes */
#define DEEP 128 /* rows of b at once: a word for each lane */
#define STRIP_ROW (DEEP + 4)
#define OF_WARP (STRIP / WARPS) /* columns of a warp */

/* Reads DEEP rows of the strip, and zeros around b. */
__device__ inline void read_strip(const factor_shape &shape, const unsigned char *from, size_t column, size_t first,
                                  unsigned char *strip) {
  const unsigned lane = threadIdx.x % WARP;
  for (unsigned i = threadIdx.x / WARP; i < DEEP; i += WARPS) {
    const bool is_inside = first + i < shape.rows && column + lane < shape.columns;
    strip[lane * STRIP_ROW + i] =
        is_inside ? (unsigned char)(from[(first + i) * shape.columns + column + lane] ^ turned(shape)) : 0;
  }
}

__device__ inline int sum_of_bytes(unsigned word) {
  return (signed char)word + (signed char)(word >> 8) + (signed char)(word >> 16) + (signed char)(word >> 24);
}

extern "C" __global__ void integer_columns(factor_shape shape, const unsigned char *__restrict__ from,
                                           signed char *__restrict__ to, int *__restrict__ sums) {
  __shared__ __align__(4) unsigned char strip[STRIP * STRIP_ROW];
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  for (size_t column = (size_t)blockIdx.x * STRIP; column < shape.padded_n; column += (size_t)gridDim.x * STRIP) {
    int own[OF_WARP] = {0};
    for (size_t first = 0; first < shape.padded_k; first += DEEP) {
      read_strip(shape, from, column, first, strip);
      __syncthreads();
      const size_t k = first + 4 * lane;
      for (unsigned r = 0; r < OF_WARP; r++) {
        const unsigned j = warp + WARPS * r;
        const unsigned word = *(const unsigned *)(strip + j * STRIP_ROW + 4 * lane);
        if (column + j < shape.padded_n && k < shape.padded_k)
          *(unsigned *)(to + (column + j) * shape.padded_k + k) = word;
        own[r] += sum_of_bytes(word);
      }
      __syncthreads(); /* the strip has been read */
    }
    for (unsigned r = 0; r < OF_WARP; r++) {
      for (unsigned distance = WARP / 2; distance > 0; distance /= 2)
        own[r] += __shfl_xor_sync(ALL_LANES, own[r], distance);
      if (lane == 0 && column + warp + WARPS * r < shape.padded_n) sums[column + warp + WARPS * r] = own[r];
    }
  }
}

struct sums_shape {
  size_t rows, columns, pitch, depth;
  integer_ending ending;
};

/* The zero of a copy. */
__device__ inline unsigned copied_zero(const void *zeros, unsigned is_unsigned, size_t at) {
  const int zero = zeros == NULL ? 0 : byte_at(zeros, is_unsigned, at);
  return (unsigned)(is_unsigned != 0 ? zero - 128 : zero);
}

/* Products of a less its zero and b less its zero, from those of a and b; modulo 2^32. */
extern "C" __global__ void integer_sums(sums_shape s, const int *__restrict__ sums, const int *__restrict__ row_sums,
                                        const int *__restrict__ column_sums, const void *__restrict__ a_zero,
                                        const void *__restrict__ b_zero, const void *__restrict__ bias,
                                        const float *__restrict__ scale, const void *__restrict__ result_zero,
                                        void *__restrict__ result) {
  const integer_ending &e = s.ending;
  const row_team team = team_of(s.columns);
  const unsigned a = copied_zero(a_zero, e.a_unsigned, 0);
  for (size_t row = team.first; row < s.rows; row += team.stride) {
    const unsigned row_sum = (unsigned)row_sums[row];
    for (size_t j = team.lane; j < s.columns; j += team.lanes) {
      const unsigned b = copied_zero(b_zero, e.b_unsigned, e.zeros_b == 1 ? 0 : j);
      const unsigned sum =
          (unsigned)sums[row * s.pitch + j] - b * row_sum - a * (unsigned)column_sums[j] + (unsigned)s.depth * a * b;
      store_sum(e, (int)sum, j, bias, scale, result_zero, result, row * s.columns + j);
    }
  }
}

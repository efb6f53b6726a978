/* SPDX-License-Identifier: MIT
 * The CUDA kernel of matmul_scaled.c: tiles, as in gemm.cuh, whose panels become F32, times their scales, when they are
 * read.
 */
#include "tensor/operators/matmul/gemm.cuh"

typedef tile<128, 8, 16> large_tile;
typedef tile<64, 32, 8> medium_tile;
typedef tile<32, 64, 4> deep_tile;

#define SHARED_FLOATS deep_tile::FLOATS

struct scaled_factors {
  u64 a_is_e5m2, b_is_e5m2;
  u64 scales_a_rows, scales_b_rows;
};

/* A factor, by rows of the depth. */
struct float8_matrix {
  const unsigned char *values;
  const float *scales;
  size_t rows, columns;
  bool is_e5m2, scales_rows;

  __device__ float at(size_t row, size_t column) const {
    const unsigned char bits = values[row * columns + column];
    const float value = is_e5m2 ? to_float(f8_e5m2{bits}) : to_float(f8_e4m3{bits});
    return value * scales[scales_rows ? row : 0];
  }
};

/* As panel_reader<T, true>, of 8-bit floats. All elements of a thread are in one column of the panel. */
template <class T>
struct float8_reader {
  static const unsigned JUMP = BLOCK_THREADS / T::DEPTH; /* rows from one element to the next */
  float8_matrix matrix;
  size_t row, column; /* of its first element in the next panel */
  unsigned rows_left, depth, place;

  __device__ float8_reader(const float8_matrix &in, size_t corner) : matrix(in) {
    const unsigned first = threadIdx.x / (T::SPREAD * T::DEPTH) * T::SPREAD + threadIdx.x % T::SPREAD;
    depth = threadIdx.x / T::SPREAD % T::DEPTH;
    row = corner + first;
    rows_left = row >= in.rows ? 0 : in.rows - row < T::EDGE ? (unsigned)(in.rows - row) : T::EDGE;
    place = depth * T::ROW + first;
    column = depth;
  }

  __device__ void read(unsigned left, float *out) {
#pragma unroll
    for (unsigned i = 0; i < T::LOADS; i++)
      out[i] = i * JUMP < rows_left && depth < left ? matrix.at(row + i * JUMP, column) : 0.0f;
    column += T::DEPTH;
  }

  __device__ void write(const float *values, float *panel) const {
#pragma unroll
    for (unsigned i = 0; i < T::LOADS; i++) panel[place + i * JUMP] = values[i];
  }
};

template <class T>
__device__ inline void multiply_scaled_tiles(const matmul_problem &problem, const matmul_memory &memory,
                                             const float8_matrix &a, const float8_matrix &b, float *panels) {
  const tile_place place = own_place<T>();
  for (size_t tile = blockIdx.x; tile < problem.tiles.down * problem.tiles.across; tile += gridDim.x) {
    const tile_corner corner = corner_of<T>(problem, memory, tile);
    float sums[T::SUMS][T::SUMS] = {{0}};
    const float8_reader<T> left(a, corner.row), right(b, corner.column);
    multiply_all<T>(left, right, problem.k, place, panels, sums);
    write_sums<T>(problem, corner, place, sums, panels);
    __syncthreads(); /* the panels, or parts, have been read */
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    matmul_scaled_TYPE(matmul_problem problem, scaled_factors factors, const unsigned char *__restrict__ a,
                       const unsigned char *__restrict__ b, const float *__restrict__ a_scales,
                       const float *__restrict__ b_scales, const element *__restrict__ bias, element *__restrict__ y) {
  static_assert(SHARED_FLOATS >= large_tile::FLOATS && SHARED_FLOATS >= medium_tile::FLOATS, "all have room");
  __shared__ __align__(16) float panels[SHARED_FLOATS];
  const matmul_memory memory = {0, 0, bias, y, 0};
  const float8_matrix left = {a, a_scales, problem.m, problem.k, factors.a_is_e5m2 != 0, factors.scales_a_rows != 0};
  const float8_matrix right = {b, b_scales, problem.n, problem.k, factors.b_is_e5m2 != 0, factors.scales_b_rows != 0};
  if (problem.tiles.rows == large_tile::EDGE)
    multiply_scaled_tiles<large_tile>(problem, memory, left, right, panels);
  else if (problem.tiles.rows == medium_tile::EDGE)
    multiply_scaled_tiles<medium_tile>(problem, memory, left, right, panels);
  else
    multiply_scaled_tiles<deep_tile>(problem, memory, left, right, panels);
}

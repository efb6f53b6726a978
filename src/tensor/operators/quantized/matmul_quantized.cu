/* SPDX-License-Identifier: MIT
 * The CUDA kernel of matmul_quantized.c for more rows: tiles, as in gemm.cuh, whose panels are dequantised when they
 * are read.
 */
#include "tensor/operators/matmul/gemm.cuh"
#include "tensor/operators/quantized/quantized.cuh"

typedef tile<128, 8, 16> large_tile;
typedef tile<64, 32, 8> medium_tile;
typedef tile<32, 64, 4> deep_tile;

#define SHARED_FLOATS deep_tile::FLOATS

/* As panel_reader<T, true>, of a quantised matrix. All elements of a thread are in one column of the panel. */
template <class T>
struct quantized_reader {
  static const unsigned JUMP = BLOCK_THREADS / T::DEPTH; /* rows from one element to the next */
  quantized_scheme scheme;
  quantized_matrix matrix;
  size_t row;
  unsigned rows_left, depth, place;
  unsigned column; /* of its elements in the next panel */

  __device__ quantized_reader(const quantized_scheme &of, const quantized_matrix &in, size_t corner)
      : scheme(of), matrix(in) {
    const unsigned first = threadIdx.x / (T::SPREAD * T::DEPTH) * T::SPREAD + threadIdx.x % T::SPREAD;
    depth = threadIdx.x / T::SPREAD % T::DEPTH;
    row = corner + first;
    rows_left = row >= of.rows ? 0 : of.rows - row < T::EDGE ? (unsigned)(of.rows - row) : T::EDGE;
    place = depth * T::ROW + first;
    column = depth;
  }

  __device__ float one(size_t at, unsigned group) const {
    const unsigned char *const values = matrix.values + at * scheme.row_bytes;
    const size_t number = at * scheme.groups + group;
    if (scheme.bits == 4) {
      const int value = values[column / 2] >> 4 * (column % 2) & 15;
      return matrix.scales[number] * (float)(value - zero_of<4>(matrix, number));
    }
    return matrix.scales[number] * (float)((int)(signed char)values[column] - zero_of<8>(matrix, number));
  }

  __device__ void read(unsigned left, float *out) {
    const unsigned group = column / (unsigned)scheme.group;
#pragma unroll
    for (unsigned i = 0; i < T::LOADS; i++)
      out[i] = i * JUMP < rows_left && depth < left ? one(row + i * JUMP, group) : 0.0f;
    column += T::DEPTH;
  }

  __device__ void write(const float *values, float *panel) const {
#pragma unroll
    for (unsigned i = 0; i < T::LOADS; i++) panel[place + i * JUMP] = values[i];
  }
};

/* x, or its rows as integers: a matrix of 8 bits with one group in each row. */
struct left_factor {
  quantized_scheme scheme;
  quantized_matrix matrix; /* values NULL: x is used */
};

template <class T>
__device__ inline void multiply_quantized(const matmul_problem &problem, const matmul_memory &memory,
                                          const left_factor &rows, const quantized_reader<T> &right,
                                          const tile_corner &corner, float *panels) {
  const tile_place place = own_place<T>();
  float sums[T::SUMS][T::SUMS] = {{0}};
  if (rows.matrix.values != 0) {
    const quantized_reader<T> left(rows.scheme, rows.matrix, corner.row);
    multiply_all<T>(left, right, problem.k, place, panels, sums);
  } else {
    const panel_reader<T, true> left(memory.a + corner.row * problem.k, problem.m - corner.row, problem.k);
    multiply_all<T>(left, right, problem.k, place, panels, sums);
  }
  write_sums<T>(problem, corner, place, sums, panels);
}

template <class T>
__device__ inline void multiply_quantized_tiles(const matmul_problem &problem, const matmul_memory &memory,
                                                const left_factor &rows, const quantized_scheme &scheme,
                                                const quantized_matrix &matrix, float *panels) {
  for (size_t tile = blockIdx.x; tile < problem.tiles.down * problem.tiles.across; tile += gridDim.x) {
    const tile_corner corner = corner_of<T>(problem, memory, tile);
    multiply_quantized<T>(problem, memory, rows, quantized_reader<T>(scheme, matrix, corner.column), corner, panels);
    __syncthreads(); /* the panels, or parts, have been read */
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    matmul_quantized_TYPE(matmul_problem problem, quantized_scheme scheme, const element *__restrict__ x,
                          const signed char *__restrict__ rows, const float *__restrict__ row_scales,
                          const unsigned char *__restrict__ values, const float *__restrict__ scales,
                          const unsigned char *__restrict__ zeros, const element *__restrict__ bias,
                          element *__restrict__ y) {
  static_assert(SHARED_FLOATS >= large_tile::FLOATS && SHARED_FLOATS >= medium_tile::FLOATS, "all have room");
  __shared__ __align__(16) float panels[SHARED_FLOATS];
  const matmul_memory memory = {x, x, bias, y, 0};
  const quantized_matrix matrix = {values, scales, zeros};
  const quantized_scheme of_rows = {problem.m, problem.k, problem.k, 1, (problem.k + 31) / 32 * 32, 8, 0};
  const left_factor left = {of_rows, {(const unsigned char *)rows, row_scales, 0}};
  if (problem.tiles.rows == large_tile::EDGE)
    multiply_quantized_tiles<large_tile>(problem, memory, left, scheme, matrix, panels);
  else if (problem.tiles.rows == medium_tile::EDGE)
    multiply_quantized_tiles<medium_tile>(problem, memory, left, scheme, matrix, panels);
  else
    multiply_quantized_tiles<deep_tile>(problem, memory, left, scheme, matrix, panels);
}

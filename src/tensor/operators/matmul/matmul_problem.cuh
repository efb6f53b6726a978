/* SPDX-License-Identifier: MIT
 * The arguments of kernels of matrix products, as in matmul_problem.h, and how they write a result.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/elementwise/activation.cuh"

/* rondo_tiling and rondo_matmul_problem of matmul_problem.h. */
struct matmul_tiling {
  size_t rows, columns; /* of a tile */
  size_t down, across;  /* tiles */
};

#define BATCH_DIMENSIONS 4

struct matmul_problem {
  size_t m, n, k;
  matmul_tiling tiles;
  u64 transpose_a, transpose_b, activation;
  u64 of_a_cpu[3];
  size_t batches;
  size_t batch[BATCH_DIMENSIONS], a_strides[BATCH_DIMENSIONS], b_strides[BATCH_DIMENSIONS];
};

struct matmul_memory {
  const element *a, *b, *bias; /* bias may be NULL */
  element *y, *unactivated;    /* unactivated: the input of the activation; may be NULL */
};

/* The memory of product `product` of the batch. */
__device__ inline matmul_memory memory_of(const matmul_problem &problem, matmul_memory memory, size_t product) {
  const size_t c = product * problem.m * problem.n;
#pragma unroll
  for (int i = BATCH_DIMENSIONS - 1; i >= 0; i--) {
    if (problem.batch[i] == 1) continue;
    memory.a += product % problem.batch[i] * problem.a_strides[i];
    memory.b += product % problem.batch[i] * problem.b_strides[i];
    product /= problem.batch[i];
  }
  memory.y += c;
  if (memory.unactivated != NULL) memory.unactivated += c;
  return memory;
}

/* Writes the result at `place`, which is in this column. */
__device__ inline void write_result(const matmul_problem &problem, const matmul_memory &memory, size_t place,
                                    size_t column, float sum) {
  if (memory.bias != NULL) sum += to_float(memory.bias[column]);
  if (memory.unactivated != NULL) memory.unactivated[place] = to_element(sum);
  memory.y[place] = to_element(activate((unsigned)problem.activation, sum));
}

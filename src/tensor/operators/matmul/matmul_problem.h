/* SPDX-License-Identifier: MIT
 * What a matmul computes, as its kernels and libraries want it: how its batch lies in memory, how a result is cut.
 */
#ifndef RONDO_TENSOR_OPERATORS_MATMUL_MATMUL_PROBLEM_H
#define RONDO_TENSOR_OPERATORS_MATMUL_MATMUL_PROBLEM_H

#include "tensor/program/operator.h"

#define RONDO_BATCH_DIMENSIONS (RONDO_MAX_DIMENSIONS - 2)

typedef struct rondo_tiling {
  size_t rows, columns; /* of a tile */
  size_t down, across;  /* tiles */
} rondo_tiling;

/* What the kernels get as one scalar; without padding, because arguments are compared as bytes. c [m, n] = a' b' for
 * each product of the batch; a' and b' are stored transposed where it says so. Dimensions of the batch are the slowest
 * first, those that are not needed 1, and strides are elements from one index to the next; 0 repeats the matrix. */
typedef struct rondo_matmul_problem {
  size_t m, n, k;
  rondo_tiling tiles;
  uint64_t transpose_a, transpose_b, activation;
  size_t batches;
  size_t batch[RONDO_BATCH_DIMENSIONS], a_strides[RONDO_BATCH_DIMENSIONS], b_strides[RONDO_BATCH_DIMENSIONS];
} rondo_matmul_problem;

/* Of shapes that fit together. Neighbouring dimensions of the batch become one where memory allows it, and a batch of
 * matrices a that meet one b becomes one matrix of all their rows. Not cut yet. */
rondo_matmul_problem rondo_matmul_problem_of(const rondo_shape *a, const rondo_shape *b, bool transpose_a,
                                             bool transpose_b);

/* Rows and columns of a tile on a CPU at most: of F32, and of types that are converted first. */
#define RONDO_MATMUL_EDGE 1024
#define RONDO_MATMUL_CONVERTED_EDGE 128

/* Which kernel makes a product that is cut so. On a CPU it is always the first. */
typedef enum rondo_matmul_form {
  RONDO_MATMUL_TILES, /* matmul_TYPE: tiles of 32, 64 or 128 rows and columns */
  RONDO_MATMUL_SMALL, /* matmul_small_TYPE: tiles of 16, or shallow ones of 32 */
  RONDO_MATMUL_THIN,  /* matmul_thin_TYPE: few columns; whole rows */
  RONDO_MATMUL_FORMS
} rondo_matmul_form;

typedef struct rondo_matmul_work {
  rondo_matmul_form form;
  uint32_t blocks;
} rondo_matmul_work;

/* By the problem's shape and type (and RONDO_CUDA_TILE, or rondo_gemm_tiles). After rondo_gemm_prepare. */
rondo_matmul_work rondo_matmul_cut(rondo_matmul_problem *problem, rondo_type type, bool is_cuda);

/* A strided batch of products, as libraries take it, is all but the last dimension 1. */
bool rondo_matmul_is_strided(const rondo_matmul_problem *problem);

/* The CPU form of these kernels: problem, a, b, bias, y, unactivated; the last and bias may be NULL. */
void rondo_matmul_cpu(rondo_type type, rondo_blocks blocks, void *const *args);

#endif

/* SPDX-License-Identifier: MIT
 * The problem that a matmul's kernels and libraries solve: the strides of its batch and the tiles of its results.
 */
#ifndef RONDO_TENSOR_OPERATORS_MATMUL_MATMUL_PROBLEM_H
#define RONDO_TENSOR_OPERATORS_MATMUL_MATMUL_PROBLEM_H

#include "tensor/program/operator.h"

/* Attributes of the operator, whose inputs are a, b and the bias. */
enum { RONDO_MATMUL_TRANSPOSE_A, RONDO_MATMUL_TRANSPOSE_B }; /* flags */
enum { RONDO_MATMUL_ACTIVATION };                            /* sizes */

#define RONDO_BATCH_DIMENSIONS (RONDO_MAX_DIMENSIONS - 2)

typedef struct rondo_tiling {
  size_t rows, columns; /* of a tile */
  size_t down, across;  /* tiles */
} rondo_tiling;

/* A scalar argument of the kernels; without padding, because arguments are compared as bytes. c [m, n] = a' b' for each
 * product of the batch; a' and b' are stored transposed if the flags say so. The slowest dimension of the batch comes
 * first; unused dimensions are 1. Strides are the elements from one index to the next; 0 repeats the matrix. */
typedef struct rondo_matmul_problem {
  size_t m, n, k;
  rondo_tiling tiles;
  uint64_t transpose_a, transpose_b, activation;
  uint64_t single_a, single_b; /* on a CPU: whether the factor is F32, whatever the type is */
  uint64_t is_for_bf16;        /* likewise: rondo_gemm_run_bf16 multiplies */
  size_t batches;
  size_t batch[RONDO_BATCH_DIMENSIONS], a_strides[RONDO_BATCH_DIMENSIONS], b_strides[RONDO_BATCH_DIMENSIONS];
} rondo_matmul_problem;

/* For shapes that match. Neighbouring dimensions of the batch are merged where the strides allow it, and a batch of
 * matrices a with a single b becomes one matrix of all their rows. Has no tiles yet (rondo_matmul_cut). */
rondo_matmul_problem rondo_matmul_problem_of(const rondo_shape *a, const rondo_shape *b, bool transpose_a,
                                             bool transpose_b);

/* The maximum numbers of rows and columns of a tile on a CPU: of F32, of BF16 that is multiplied as it is, and of types
 * that are converted first. */
#define RONDO_MATMUL_EDGE 1024
#define RONDO_MATMUL_BF16_EDGE 256
#define RONDO_MATMUL_CONVERTED_EDGE 128

/* Which kernel computes a product. On a CPU it is always the first. */
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

/* Sets the problem's tiles, by its shape and type (and RONDO_CUDA_TILE, or rondo_gemm_tiles). After
 * rondo_gemm_prepare. */
rondo_matmul_work rondo_matmul_cut(rondo_matmul_problem *problem, rondo_type type, bool is_cuda);

/* For a kernel on CUDA that has tiles of 32, 64 and 128 rows and columns, and no other form: sets the tiles, and
 * returns their number. */
size_t rondo_matmul_cut_squares(rondo_matmul_problem *problem);

/* Whether the batch has one stride for each factor, as libraries require: all dimensions but the last are 1. */
bool rondo_matmul_is_strided(const rondo_matmul_problem *problem);

/* The CPU function of these kernels: problem, a, b, bias, y, unactivated; bias and unactivated may be NULL. */
void rondo_matmul_cpu(rondo_type type, rondo_blocks blocks, void *const *args);

#endif

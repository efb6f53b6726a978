/* SPDX-License-Identifier: MIT
 * The CUDA sources of the operators, op_<name>.cu beside op_<name>.c, as texts for rondo_kernel_options.cuda_source.
 * The build makes them from the files, with what they include in them (cmake/EmbedCuda.cmake). Constant.
 */
#ifndef RONDO_TENSOR_CUDA_SOURCES_H
#define RONDO_TENSOR_CUDA_SOURCES_H

#define RONDO_CUDA_SOURCES(ROW) \
  ROW(op_adam)                  \
  ROW(op_add)                   \
  ROW(op_column_sum)            \
  ROW(op_cross_entropy)         \
  ROW(op_embedding)             \
  ROW(op_matmul)                \
  ROW(op_matmul_bias)           \
  ROW(op_sgd)                   \
  ROW(op_softmax)               \
  ROW(op_tanh)

#define RONDO_DECLARE_CUDA_SOURCE(name) extern const char rondo_cuda_##name[];
RONDO_CUDA_SOURCES(RONDO_DECLARE_CUDA_SOURCE)
#undef RONDO_DECLARE_CUDA_SOURCE

/* Of a block of all these kernels: BLOCK_THREADS in kernel_support.cuh. */
#define RONDO_CUDA_THREADS 256

/* Members of rondo_kernel_options. */
#define RONDO_CUDA(name) .block_threads = RONDO_CUDA_THREADS, .cuda_source = rondo_cuda_##name

#endif

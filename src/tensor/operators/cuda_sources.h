/* SPDX-License-Identifier: MIT
 * The CUDA sources of the operators, <name>.cu beside <name>.c, as texts for rondo_kernel_options.cuda_source. The
 * build makes them from the files, with what they include in them (cmake/EmbedCuda.cmake). Those of the second list
 * have kernels for each type of float, and are one text a type. Constant.
 */
#ifndef RONDO_TENSOR_OPERATORS_CUDA_SOURCES_H
#define RONDO_TENSOR_OPERATORS_CUDA_SOURCES_H

#define RONDO_CUDA_SOURCES(ROW) \
  ROW(adam)                     \
  ROW(add)                      \
  ROW(cast)                     \
  ROW(concat)                   \
  ROW(cross_entropy_mean)       \
  ROW(embedding)                \
  ROW(gradient_control)         \
  ROW(pair_loss)                \
  ROW(sgd)                      \
  ROW(slice)                    \
  ROW(strided)                  \
  ROW(zeros)

#define RONDO_CUDA_TYPED_SOURCES(ROW) \
  ROW(abs)                            \
  ROW(affine)                         \
  ROW(bce_with_logits)                \
  ROW(column_sum)                     \
  ROW(cross_entropy)                  \
  ROW(exp)                            \
  ROW(gelu)                           \
  ROW(gelu_tanh)                      \
  ROW(layer_norm)                     \
  ROW(log)                            \
  ROW(matmul)                         \
  ROW(mse)                            \
  ROW(relu)                           \
  ROW(rsqrt)                          \
  ROW(sigmoid)                        \
  ROW(silu)                           \
  ROW(softmax)                        \
  ROW(sqrt)                           \
  ROW(square)                         \
  ROW(tanh)

#define RONDO_EACH_FLOAT_SOURCE(ROW, name) ROW(name##_f32) ROW(name##_f16) ROW(name##_bf16)
#define RONDO_DECLARE_CUDA_SOURCE(name) extern const char rondo_cuda_##name[];
#define RONDO_DECLARE_TYPED_SOURCE(name) RONDO_EACH_FLOAT_SOURCE(RONDO_DECLARE_CUDA_SOURCE, name)
RONDO_CUDA_SOURCES(RONDO_DECLARE_CUDA_SOURCE)
RONDO_CUDA_TYPED_SOURCES(RONDO_DECLARE_TYPED_SOURCE)
#undef RONDO_DECLARE_TYPED_SOURCE
#undef RONDO_DECLARE_CUDA_SOURCE

/* Of a block of all these kernels: BLOCK_THREADS in kernel_support.cuh. */
#define RONDO_CUDA_THREADS 256

/* Members of rondo_kernel_options. */
#define RONDO_CUDA(name) .block_threads = RONDO_CUDA_THREADS, .cuda_source = rondo_cuda_##name

#endif

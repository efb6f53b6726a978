/* SPDX-License-Identifier: MIT
 * The CUDA sources of the operators, <name>.cu beside <name>.c, as texts for rondo_kernel_options.cuda_source. The
 * build makes them from the files, with what they include in them (cmake/EmbedCuda.cmake). Those of the second list
 * have kernels for each type of float, and are one text a type; those of the third for I32 and I64 too. Constant.
 */
#ifndef RONDO_TENSOR_OPERATORS_COMMON_CUDA_SOURCES_H
#define RONDO_TENSOR_OPERATORS_COMMON_CUDA_SOURCES_H

#define RONDO_CUDA_SOURCES(ROW) \
  ROW(adam)                     \
  ROW(attention_append)         \
  ROW(bag_offsets)              \
  ROW(batch_norm_update)        \
  ROW(cast)                     \
  ROW(chain)                    \
  ROW(concat)                   \
  ROW(cross_entropy_mean)       \
  ROW(gather)                   \
  ROW(gradient_control)         \
  ROW(one_hot)                  \
  ROW(pair_loss)                \
  ROW(rate)                     \
  ROW(dropout_advance)          \
  ROW(sgd)                      \
  ROW(slice)                    \
  ROW(strided)                  \
  ROW(zeros)

#define RONDO_CUDA_TYPED_SOURCES(ROW) \
  ROW(abs)                            \
  ROW(affine)                         \
  ROW(attention)                      \
  ROW(attention_decode)               \
  ROW(batch_norm)                     \
  ROW(bce_with_logits)                \
  ROW(conv2d)                         \
  ROW(cross_entropy)                  \
  ROW(div)                            \
  ROW(dropout)                        \
  ROW(embedding)                      \
  ROW(exp)                            \
  ROW(gather_gradient)                \
  ROW(gelu)                           \
  ROW(gelu_tanh)                      \
  ROW(layer_norm)                     \
  ROW(log)                            \
  ROW(matmul)                         \
  ROW(matmul_small)                   \
  ROW(matmul_thin)                    \
  ROW(max)                            \
  ROW(maximum_gradient)               \
  ROW(min)                            \
  ROW(mse)                            \
  ROW(pool2d)                         \
  ROW(relu)                           \
  ROW(rsqrt)                          \
  ROW(select_gradient)                \
  ROW(sigmoid)                        \
  ROW(silu)                           \
  ROW(slice_add)                      \
  ROW(softmax)                        \
  ROW(sqrt)                           \
  ROW(square)                         \
  ROW(sum)                            \
  ROW(tanh)

#define RONDO_CUDA_NUMBER_SOURCES(ROW) \
  ROW(add)                             \
  ROW(argmax)                          \
  ROW(compare)                         \
  ROW(expand)                          \
  ROW(maximum)                         \
  ROW(minimum)                         \
  ROW(mul)                             \
  ROW(select)                          \
  ROW(sub)

/* Sources of operators that work element by element: the functions before their kernels are texts of their own, for
 * chains. */
#define RONDO_CUDA_FUNCTIONS(ROW) \
  ROW(abs)                        \
  ROW(add)                        \
  ROW(affine)                     \
  ROW(cast)                       \
  ROW(compare)                    \
  ROW(div)                        \
  ROW(dropout)                    \
  ROW(exp)                        \
  ROW(expand)                     \
  ROW(gelu)                       \
  ROW(gelu_tanh)                  \
  ROW(log)                        \
  ROW(maximum)                    \
  ROW(maximum_gradient)           \
  ROW(minimum)                    \
  ROW(mul)                        \
  ROW(relu)                       \
  ROW(rsqrt)                      \
  ROW(select)                     \
  ROW(select_gradient)            \
  ROW(sigmoid)                    \
  ROW(silu)                       \
  ROW(sqrt)                       \
  ROW(square)                     \
  ROW(sub)                        \
  ROW(tanh)

#define RONDO_EACH_NUMBER_SOURCE(ROW, name) RONDO_EACH_FLOAT_SOURCE(ROW, name) ROW(name##_i32) ROW(name##_i64)
#define RONDO_EACH_FLOAT_SOURCE(ROW, name) ROW(name##_f32) ROW(name##_f16) ROW(name##_bf16)
#define RONDO_DECLARE_CUDA_SOURCE(name) extern const char rondo_cuda_##name[];
#define RONDO_DECLARE_CUDA_FUNCTIONS(name) extern const char rondo_cuda_##name##_functions[];
#define RONDO_DECLARE_NUMBER_SOURCE(name) RONDO_EACH_NUMBER_SOURCE(RONDO_DECLARE_CUDA_SOURCE, name)
#define RONDO_DECLARE_TYPED_SOURCE(name) RONDO_EACH_FLOAT_SOURCE(RONDO_DECLARE_CUDA_SOURCE, name)
RONDO_CUDA_SOURCES(RONDO_DECLARE_CUDA_SOURCE)
RONDO_CUDA_TYPED_SOURCES(RONDO_DECLARE_TYPED_SOURCE)
RONDO_CUDA_NUMBER_SOURCES(RONDO_DECLARE_NUMBER_SOURCE)
RONDO_CUDA_FUNCTIONS(RONDO_DECLARE_CUDA_FUNCTIONS)
#undef RONDO_DECLARE_CUDA_FUNCTIONS
#undef RONDO_DECLARE_NUMBER_SOURCE
#undef RONDO_DECLARE_TYPED_SOURCE
#undef RONDO_DECLARE_CUDA_SOURCE

/* Of a block of all these kernels: BLOCK_THREADS in kernel_support.cuh. */
#define RONDO_CUDA_THREADS 256

/* An operator's function in the functions of a source (rondo_element). */
#define RONDO_ELEMENT(compute_chunk, name, source_name) \
  { .compute = compute_chunk, .function = #name "_of", .source = rondo_cuda_##source_name##_functions }

/* Members of rondo_kernel_options. */
#define RONDO_CUDA(name) .block_threads = RONDO_CUDA_THREADS, .cuda_source = rondo_cuda_##name

#endif

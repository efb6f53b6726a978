/* SPDX-License-Identifier: MIT
 * The CUDA sources of the operators as strings for rondo_kernel_options.cuda_source. The build makes them from the .cu
 * files and what these include (cmake/EmbedCuda.cmake). This header declares the sources with one string. A source with
 * kernels for several types or operators has several strings, which RONDO_TYPED_KERNEL and RONDO_NUMBER_KERNEL
 * (element.h) declare. Constant.
 */
#ifndef RONDO_TENSOR_OPERATORS_COMMON_CUDA_SOURCES_H
#define RONDO_TENSOR_OPERATORS_COMMON_CUDA_SOURCES_H

#define RONDO_CUDA_SOURCES(ROW) \
  ROW(accumulate_rows)          \
  ROW(adam)                     \
  ROW(adaptive)                 \
  ROW(assign)                   \
  ROW(attention_append)         \
  ROW(attention_plan)           \
  ROW(bag_offsets)              \
  ROW(batch_norm_update)        \
  ROW(cast)                     \
  ROW(categorical_draw)         \
  ROW(chain)                    \
  ROW(concat)                   \
  ROW(cross_entropy_mean)       \
  ROW(data_parallel)            \
  ROW(gather)                   \
  ROW(gradient_control)         \
  ROW(grid_sample)              \
  ROW(add_integer)              \
  ROW(integer_library)          \
  ROW(integer_product)          \
  ROW(non_max_suppression)      \
  ROW(one_hot)                  \
  ROW(pad)                      \
  ROW(pair_loss_join)           \
  ROW(quantized_parts)          \
  ROW(rate)                     \
  ROW(ravel_indices)            \
  ROW(rotary_angles)            \
  ROW(route_indices)            \
  ROW(dropout_advance)          \
  ROW(sequence_lengths)         \
  ROW(sgd)                      \
  ROW(slice)                    \
  ROW(sort_indices)             \
  ROW(strided)                  \
  ROW(zeros)

/* The functions of element-wise operators, without kernels, for chains. */
#define RONDO_CUDA_FUNCTIONS(ROW) \
  ROW(affine)                     \
  ROW(binary_operators)           \
  ROW(cast)                       \
  ROW(clamp)                      \
  ROW(dropout)                    \
  ROW(expand)                     \
  ROW(parametric_activations)     \
  ROW(select)                     \
  ROW(select_gradient)            \
  ROW(unary_operators)

#define RONDO_DECLARE_CUDA_SOURCE(name) extern const char rondo_cuda_##name[];
#define RONDO_DECLARE_CUDA_FUNCTIONS(name) extern const char rondo_cuda_##name##_functions[];
RONDO_CUDA_SOURCES(RONDO_DECLARE_CUDA_SOURCE)
RONDO_CUDA_FUNCTIONS(RONDO_DECLARE_CUDA_FUNCTIONS)

/* All strings with kernels, for tests. The last entry is {NULL, NULL}. */
typedef struct rondo_cuda_text {
  const char *name, *text;
} rondo_cuda_text;
extern const rondo_cuda_text rondo_operator_cuda_texts[];

/* The threads of a block of all these kernels: BLOCK_THREADS in kernel_support.cuh. */
#define RONDO_CUDA_THREADS 256

/* A rondo_element whose CUDA function `name`_of is among the functions of a source. */
#define RONDO_ELEMENT(compute_chunk, name, source_name) \
  { .compute = compute_chunk, .function = #name "_of", .source = rondo_cuda_##source_name##_functions }

/* Members of rondo_kernel_options. */
#define RONDO_CUDA(name) .block_threads = RONDO_CUDA_THREADS, .cuda_source = rondo_cuda_##name

#endif

/* SPDX-License-Identifier: MIT
 * The list of operators, one line each; operator_table.c makes the table of it.
 */
#ifndef RONDO_TENSOR_OPERATORS_H
#define RONDO_TENSOR_OPERATORS_H

#include <rondo/operators.h>

#include "tensor/operator.h"

#define RONDO_OPERATORS(ROW)     \
  ROW(embedding)                 \
  ROW(embedding_gradient)        \
  ROW(embedding_bag)             \
  ROW(embedding_bag_weights)     \
  ROW(bag_offsets)               \
  ROW(gather)                    \
  ROW(index_select)              \
  ROW(one_hot)                   \
  ROW(gather_gradient)           \
  ROW(reshape)                   \
  ROW(permute)                   \
  ROW(slice)                     \
  ROW(slice_gradient)            \
  ROW(concat)                    \
  ROW(split_2)                   \
  ROW(split_3)                   \
  ROW(split_4)                   \
  ROW(split_5)                   \
  ROW(split_6)                   \
  ROW(split_7)                   \
  ROW(split_8)                   \
  ROW(matmul)                    \
  ROW(matmul_activated)          \
  ROW(attention)                 \
  ROW(attention_gradient)        \
  ROW(attention_packed)          \
  ROW(attention_packed_gradient) \
  ROW(attention_decode)          \
  ROW(attention_decode_packed)   \
  ROW(attention_append)          \
  ROW(conv2d)                    \
  ROW(conv2d_input_gradient)     \
  ROW(conv2d_weight_gradient)    \
  ROW(max_pool2d)                \
  ROW(max_pool2d_gradient)       \
  ROW(avg_pool2d)                \
  ROW(avg_pool2d_gradient)       \
  ROW(column_sum)                \
  ROW(cast)                      \
  ROW(add)                       \
  ROW(sub)                       \
  ROW(mul)                       \
  ROW(div)                       \
  ROW(div_gradient)              \
  ROW(maximum)                   \
  ROW(maximum_gradient)          \
  ROW(minimum)                   \
  ROW(expand)                    \
  ROW(less)                      \
  ROW(less_equal)                \
  ROW(greater)                   \
  ROW(greater_equal)             \
  ROW(equal)                     \
  ROW(not_equal)                 \
  ROW(select)                    \
  ROW(select_gradient_a)         \
  ROW(select_gradient_b)         \
  ROW(sum)                       \
  ROW(mean)                      \
  ROW(max)                       \
  ROW(min)                       \
  ROW(argmax)                    \
  ROW(argmin)                    \
  ROW(scale)                     \
  ROW(add_constant)              \
  ROW(neg)                       \
  ROW(tanh)                      \
  ROW(tanh_gradient)             \
  ROW(relu)                      \
  ROW(relu_gradient)             \
  ROW(sigmoid)                   \
  ROW(sigmoid_gradient)          \
  ROW(silu)                      \
  ROW(silu_gradient)             \
  ROW(exp)                       \
  ROW(exp_gradient)              \
  ROW(log)                       \
  ROW(log_gradient)              \
  ROW(sqrt)                      \
  ROW(sqrt_gradient)             \
  ROW(rsqrt)                     \
  ROW(rsqrt_gradient)            \
  ROW(square)                    \
  ROW(square_gradient)           \
  ROW(abs)                       \
  ROW(abs_gradient)              \
  ROW(gelu)                      \
  ROW(gelu_gradient)             \
  ROW(gelu_tanh)                 \
  ROW(gelu_tanh_gradient)        \
  ROW(softmax)                   \
  ROW(softmax_gradient)          \
  ROW(log_softmax)               \
  ROW(log_softmax_gradient)      \
  ROW(layer_norm)                \
  ROW(layer_norm_gradient)       \
  ROW(layer_norm_parameters)     \
  ROW(rms_norm)                  \
  ROW(rms_norm_gradient)         \
  ROW(rms_norm_parameters)       \
  ROW(cross_entropy)             \
  ROW(cross_entropy_gradient)    \
  ROW(mse)                       \
  ROW(mse_gradient)              \
  ROW(bce_with_logits)           \
  ROW(bce_with_logits_gradient)  \
  ROW(batch_norm_update)         \
  ROW(dropout)                   \
  ROW(dropout_gradient)          \
  ROW(dropout_advance)           \
  ROW(zeros)                     \
  ROW(full)                      \
  ROW(arange)                    \
  ROW(accumulate)                \
  ROW(gradient_squares)          \
  ROW(gradient_control)          \
  ROW(sgd)                       \
  ROW(sgd_momentum)              \
  ROW(adam_step)                 \
  ROW(adam)

#define RONDO_DECLARE_OPERATOR(name) extern const rondo_operator rondo_operator_##name;
RONDO_OPERATORS(RONDO_DECLARE_OPERATOR)
#undef RONDO_DECLARE_OPERATOR

#endif

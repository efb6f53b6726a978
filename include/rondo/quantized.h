/* SPDX-License-Identifier: MIT
 * Quantised weights: matrices of 8-bit or 4-bit integers with a scale for each group of columns. They take a quarter or
 * an eighth of the memory of F32, and a product with few rows, which has to read all of its weight, is faster by as
 * much.
 *
 * A quantised matrix [rows, columns] consists of two or three arrays:
 *   values: 8 bits: I8 [rows, columns], -128 .. 127. 4 bits: U8 [rows, (columns + 1) / 2], each byte two numbers of
 *           0 .. 15: column 2 i is in the lower half of byte i, and column 2 i + 1 in the upper half.
 *   scales: F32 [rows, groups]. A group has `group` consecutive columns of a row; the last group may have fewer.
 *   zeros:  of the type of the values, one number in each element: [rows, groups]. Optional. Without zeros, all are 0
 *           with 8 bits, and 8 with 4 bits.
 * An element is scale * (value - zero). This is the layout of ONNX's MatMulNBits for 4 bits, apart from its padding
 * (onnxruntime, docs/ContribOperators.md).
 *
 * In a program, the arrays are usually states; scales are frozen (rondo_state_options), because they are F32. Files
 * (<rondo/weights.h>) hold them as three tensors. Arrays of another group size do not fit: their scales have another
 * shape, which adding the operator, or rondo_weights_apply, refuses by name.
 *
 * The header also has products and convolutions of 8-bit integers, and the conversions between floats and integers, as
 * ONNX's quantised models use them.
 *
 * Component: rondo-tensor.
 */
#ifndef RONDO_QUANTIZED_H
#define RONDO_QUANTIZED_H

#include <rondo/operators.h>

RONDO_EXTERN_C_BEGIN

/* How matmul_quantized reads its first factor. */
typedef enum rondo_quantized_activations {
  RONDO_QUANTIZED_FLOAT = 0, /* as it is: only the weight is quantised */
  /* Rounded to 8 bits with one scale for each row, the largest magnitude of the row / 127, in every run. Less exact,
   * and faster where the processor has instructions for products of 8-bit integers; on CUDA, where the weight has 8
   * bits and one scale for each row, too. */
  RONDO_QUANTIZED_INT8 = 1
} rondo_quantized_activations;

typedef struct rondo_quantized_options {
  uint32_t struct_size;
  uint32_t bits;                           /* 8 or 4 */
  size_t group;                            /* columns with one scale: a multiple of 32; 0: all columns of the row */
  size_t columns;                          /* of embedding_quantized and dequantize; 0: as many as the bytes hold. An
                                              odd number of 4-bit columns must be given */
  rondo_quantized_activations activations; /* of matmul_quantized */
  rondo_type type;                         /* of the result of embedding_quantized and dequantize: a float; 0: F32 */
  rondo_value bias;                        /* of matmul_quantized: [n], of x's type; no value: none */
} rondo_quantized_options;
#define RONDO_QUANTIZED_OPTIONS_INIT .struct_size = sizeof(rondo_quantized_options)

/* Sizes of the arrays: the bytes of a row of values, and the scales of a row. Thread-safe. Errors: INVALID_ARGUMENT
 * with BAD_OPTIONS (struct_size), OUT_OF_RANGE (bits, group) or SHAPE (no columns). */
RONDO_API RONDO_MUST_USE rondo_status rondo_quantized_sizes(const rondo_quantized_options *options, size_t columns,
                                                            size_t *out_row_bytes, size_t *out_groups);

/* Quantises a matrix on the host. The arrays belong to the caller, who has allocated rows * row_bytes bytes of values,
 * and rows * groups scales and zeros (rondo_quantized_sizes).
 *   out_zeros NULL: symmetric. The scale is the largest magnitude of the group / 127, or / 7 with 4 bits.
 *   Otherwise: the values cover the range from the smallest element of the group, or 0, to the largest, or 0.
 * Elements are rounded to the nearest value. Thread-safe. Errors: as rondo_quantized_sizes; OUT_OF_RANGE for an element
 * that is NaN or infinite, naming its row and column; NULL_ARGUMENT; LIMIT_EXCEEDED (too many bytes). */
RONDO_API RONDO_MUST_USE rondo_status rondo_quantize(const float *matrix, size_t rows, size_t columns,
                                                     const rondo_quantized_options *options, void *out_values,
                                                     float *out_scales, void *out_zeros);

/* Operators, as in <rondo/operators.h>, whose errors they have too; OUT_OF_RANGE for the options. zeros may be
 * (rondo_value){0}.
 *   matmul_quantized: x [.., k] and a weight [n, k] -> x weightᵀ (+ bias) [.., n], of x's type, a float. On CUDA, a
 *           product of more than 8 rows that cuBLASLt computes needs all elements of the weight, as numbers of x's
 *           type, in its workspace, and makes them in each run. With RONDO_QUANTIZED_INT8, k is at most 524,288, and a
 * row of x with a NaN or an infinity gives NaNs. The gradient of x is the product with the elements of the weight; with
 * RONDO_QUANTIZED_INT8, it passes through the rounding unchanged. A gradient of the scales is refused
 * (UNSUPPORTED/NO_FUNCTION): freeze them. embedding_quantized: a table [n, d] and indices [..] (I32 or I64) -> rows of
 * the table [.., d]. No gradient. A wrong index fails the run, like one of embedding. dequantize: the elements of a
 * matrix [n, d]. No gradient. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_matmul_quantized(rondo_program *program, rondo_value x,
                                                                rondo_value values, rondo_value scales,
                                                                rondo_value zeros,
                                                                const rondo_quantized_options *options,
                                                                rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_embedding_quantized(rondo_program *program, rondo_value values,
                                                                   rondo_value scales, rondo_value zeros,
                                                                   rondo_value indices,
                                                                   const rondo_quantized_options *options,
                                                                   rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_dequantize(rondo_program *program, rondo_value values,
                                                          rondo_value scales, rondo_value zeros,
                                                          const rondo_quantized_options *options,
                                                          rondo_value *out_value);

/* Integers ---------------------------------------------------------------------------------------------------------
 * None has a gradient, except that dequantize_linear has that of the scale.
 *   matmul_integer: a [.., m, k] and b [.., k, n], each I8 or U8 -> [.., m, n]: the sums of (a - a_zero) (b - b_zero),
 *         exact, modulo 2^32, as I32. Leading dimensions are broadcast, as in numpy.matmul. If b is constant,
 *         transpose_b and b [.., n, k] are faster, on all devices. With a scale, the result is a float or a quantised
 *         number:
 *           with a bias of I32, y = activation(a_scale scale (sum + bias));
 *           with a bias of F32, y = activation(a_scale scale sum + bias);
 *           I8 or U8: y / result_scale, rounded to the nearest integer, to even, + result_zero, limited to the range.
 *   conv_integer: x [n, c, ..] and weight [o, c / groups, ..], each I8 or U8, likewise, with a_zero of x and b_zero
 *         of the weight; the padding counts as a_zero. `options` as of rondo_op_conv, without its bias; NULL: none.
 *         No transpose_b.
 *
 * In both, zeros are scalars of their factor's type, and scale (F32) and bias (I32 or F32) are scalars. b_zero, scale
 * and bias may also have an element for each column or output channel, [n] or [o]. products may be NULL. Results in
 * I32 are the same on all devices and processors. On a CPU, Rondo's own kernels compute both. The instruction of AVX2
 * that multiplies bytes limits sums of two products to 16 bits, which is wrong for large weights; oneDNN and
 * onnxruntime use it where a processor has no VNNI. Rondo's kernels multiply 16-bit numbers instead.
 *
 *   quantize_linear: x, any float -> I8, U8 or I32: x / scale + zero, rounded and limited likewise; F32: not rounded,
 *         to be cast to a smaller float.
 *   dequantize_linear: x, of these types -> (x - zero) scale, a float. In both, scale and zero are scalars, or have an
 *         element for each index of `dimension` ([size]), or, with a block, x's rank and in that dimension a size of
 *         its size / block, rounded up. zero has the type of the quantised numbers, or is no value: 0. Chains of
 *         existing operators, in F32.
 *   dynamic_quantize_linear: x, any float -> U8, with the scale, F32, and the zero, U8, both [], for which the range
 *         of x and 0 is 0 .. 255 (DynamicQuantizeLinear of ONNX).
 *
 * The compiler makes an integer product or convolution of a matmul or conv of two dequantize_linear, with bias and
 * relu, and with a quantize_linear after them: the pattern "quantized" (rondo_compile_options.without_patterns).
 * Results may then differ by one step of the quantised result. */
typedef struct rondo_integer_product_options {
  uint32_t struct_size;
  rondo_type result_type;      /* with a scale: I8, U8 or F32; 0: U8 */
  rondo_value a_zero, b_zero;  /* no value: 0 */
  rondo_value bias;            /* with a scale; no value: 0 */
  rondo_value scale;           /* no value: the sums are the result */
  rondo_value result_zero;     /* a scalar of the result's type, with a scale; no value: 0 */
  rondo_activation activation; /* with a scale: none or RELU */
  float a_scale, result_scale; /* with a scale; the latter of I8 and U8; 0: 1 */
  bool transpose_b;            /* of matmul_integer */
} rondo_integer_product_options;
#define RONDO_INTEGER_PRODUCT_OPTIONS_INIT .struct_size = sizeof(rondo_integer_product_options)

typedef struct rondo_add_integer_options {
  uint32_t struct_size;
  rondo_type result_type; /* I8 or U8; 0: U8 */
  rondo_value a_zero, b_zero, result_zero;
  rondo_activation activation;          /* none or RELU */
  float a_scale, b_scale, result_scale; /* 0: 1 */
} rondo_add_integer_options;
#define RONDO_ADD_INTEGER_OPTIONS_INIT .struct_size = sizeof(rondo_add_integer_options)

typedef struct rondo_quantize_linear_options {
  uint32_t struct_size;
  rondo_type type;  /* of the result: 0: U8, or the zero's type, of quantize_linear, and F32 of dequantize_linear */
  size_t dimension; /* of scales that are not scalars */
  size_t block;     /* elements of the dimension with one scale; 0: 1 */
} rondo_quantize_linear_options;
#define RONDO_QUANTIZE_LINEAR_OPTIONS_INIT .struct_size = sizeof(rondo_quantize_linear_options)

RONDO_API RONDO_MUST_USE rondo_status rondo_op_matmul_integer(rondo_program *program, rondo_value a, rondo_value b,
                                                              const rondo_integer_product_options *products,
                                                              rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_conv_integer(rondo_program *program, rondo_value x, rondo_value weight,
                                                            const rondo_conv_options *options,
                                                            const rondo_integer_product_options *products,
                                                            rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_add_integer(rondo_program *program, rondo_value a, rondo_value b,
                                                           const rondo_add_integer_options *options,
                                                           rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_quantize_linear(rondo_program *program, rondo_value x, rondo_value scale,
                                                               rondo_value zero,
                                                               const rondo_quantize_linear_options *options,
                                                               rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_dequantize_linear(rondo_program *program, rondo_value x,
                                                                 rondo_value scale, rondo_value zero,
                                                                 const rondo_quantize_linear_options *options,
                                                                 rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_dynamic_quantize_linear(rondo_program *program, rondo_value x,
                                                                       rondo_value *out_value, rondo_value *out_scale,
                                                                       rondo_value *out_zero);

RONDO_EXTERN_C_END

#endif

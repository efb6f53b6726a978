/* SPDX-License-Identifier: MIT
 * The operators of programs (<rondo/program.h>). Each call adds one to the program and gives its result, whose type and
 * shape are known at once. "Float" is F32, F16 or BF16; arithmetic is done in F32 whatever the type, and rounded once
 * where a result is stored. Operators have a gradient for each float input unless their line says otherwise.
 *
 * Thread-compatible, as the program is. Errors of all: INVALID_ARGUMENT with SHAPE or TYPE, naming the operator, its
 * values by name and their shapes, UNKNOWN_NAME (a value of another program) or NULL_ARGUMENT; LIMIT_EXCEEDED (bytes do
 * not fit); OUT_OF_MEMORY. The program is then as before.
 */
#ifndef RONDO_OPERATORS_H
#define RONDO_OPERATORS_H

#include <rondo/program.h>

RONDO_EXTERN_C_BEGIN

/* Products ---------------------------------------------------------------------------------------------------------
 *   matmul: a [.., m, k] · b [.., k, n] (+ bias [n], or (rondo_value){0}: none) -> [.., m, n], floats of one type. The
 *           leading dimensions are broadcast, as numpy.matmul does it.
 *   matmul_with: the same with options: a is stored [.., k, m] or b [.., n, k], and an activation is applied to the
 *           result: relu, gelu (GELU: of the form RONDO_GELU_ERF) or silu, as below. Gradients of gelu and silu keep
 *           the result before the activation; relu's needs the result alone. options may be NULL. Errors: OUT_OF_RANGE
 *           (the activation), BAD_OPTIONS. */
typedef enum rondo_activation {
  RONDO_ACTIVATION_NONE = 0,
  RONDO_ACTIVATION_RELU = 1,
  RONDO_ACTIVATION_GELU = 2,
  RONDO_ACTIVATION_GELU_TANH = 3,
  RONDO_ACTIVATION_SILU = 4
} rondo_activation;

typedef struct rondo_matmul_options {
  uint32_t struct_size;
  rondo_activation activation;
  rondo_value bias;
  bool transpose_a, transpose_b;
} rondo_matmul_options;
#define RONDO_MATMUL_OPTIONS_INIT .struct_size = sizeof(rondo_matmul_options)

RONDO_API RONDO_MUST_USE rondo_status rondo_op_matmul(rondo_program *program, rondo_value a, rondo_value b,
                                                      rondo_value bias, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_matmul_with(rondo_program *program, rondo_value a, rondo_value b,
                                                           const rondo_matmul_options *options, rondo_value *out_value);

/* Attention --------------------------------------------------------------------------------------------------------
 *   attention: q [b, h, t, d], k and v [b, g, s, d], floats of one type, h a multiple of g (each h / g heads have k and
 *           v in common), d at most 128 -> [b, h, t, d]: softmax(scale q kᵀ) v (Vaswani et al. 2017), without ever
 *           having t x s scores in memory (Dao 2023, FlashAttention-2). causal: the last row of q sees all rows of k,
 *           the one before all but the last, and so on; t is then at most s. options may be NULL.
 *   attention_decode: the same for one row at a time, as in generating: q [b, h, 1, d], k and v [b, g, 1, d], caches
 *           [b, g, s, d], which are states, and length, a scalar I32: the row sees the first `length` rows of the
 *           caches and its own k and v, which the run then writes into the caches at `length`, for later runs. A length
 *           outside 0 <= length < s fails the run, as an index of embedding. No gradient; causal means nothing.
 *   attention_packed, attention_decode_packed: the same where q, k and v lie side by side in a row, as one product
 *           makes them: qkv [b, t, (h + 2 g) d], of the d elements each of h heads of q, then of g heads of k, then of
 *           v -> [b, t, h d], the heads side by side, as a product takes them. As many rows of q as of k; to decode,
 *           one.
 *   attention_fill_packed: begins caches [b, g, s, d], t at most s, with a prompt that attention_packed sees: at the
 *           end of the run their first t rows are k and v of qkv, and decoding goes on with a length of t, or of less,
 *           where the prompt was shorter. No result, no gradient.
 * Errors: OUT_OF_RANGE (the scale), BAD_OPTIONS; TYPE (the caches are not two states). */
typedef struct rondo_attention_options {
  uint32_t struct_size;
  bool causal;
  float scale; /* 0: 1 / sqrt(d) */
} rondo_attention_options;
#define RONDO_ATTENTION_OPTIONS_INIT .struct_size = sizeof(rondo_attention_options)

RONDO_API RONDO_MUST_USE rondo_status rondo_op_attention(rondo_program *program, rondo_value q, rondo_value k,
                                                         rondo_value v, const rondo_attention_options *options,
                                                         rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_attention_decode(rondo_program *program, rondo_value q, rondo_value k,
                                                                rondo_value v, rondo_value k_cache, rondo_value v_cache,
                                                                rondo_value length,
                                                                const rondo_attention_options *options,
                                                                rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_attention_packed(rondo_program *program, rondo_value qkv, size_t heads,
                                                                size_t groups, const rondo_attention_options *options,
                                                                rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_attention_decode_packed(rondo_program *program, rondo_value qkv,
                                                                       size_t heads, size_t groups, rondo_value k_cache,
                                                                       rondo_value v_cache, rondo_value length,
                                                                       const rondo_attention_options *options,
                                                                       rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_attention_fill_packed(rondo_program *program, rondo_value qkv,
                                                                     size_t heads, size_t groups, rondo_value k_cache,
                                                                     rondo_value v_cache);

/* Images -----------------------------------------------------------------------------------------------------------
 * of n images of c channels, any float; heights stand before widths.
 *   conv2d: x [n, c, h, w], weight [o, c / groups, kh, kw] (+ bias [o]) -> [n, o, h', w'] with h' = (h + 2 padding -
 *           dilation (kh - 1) - 1) / stride + 1, rounded down, and w' likewise: cross-correlation, zeros in the
 *           padding; c and o are multiples of groups. options may be NULL.
 *   max_pool2d: x [n, c, h, w] -> [n, c, h', w']: the largest of each window, not-a-number if one is in it; of equals
 *           the first one has the gradient.
 *   avg_pool2d: the same for the mean. */
typedef struct rondo_conv2d_options {
  uint32_t struct_size;
  uint32_t groups;                           /* 0: 1 */
  size_t stride[2], padding[2], dilation[2]; /* of stride and dilation 0: 1 */
  rondo_value bias;                          /* or no value */
} rondo_conv2d_options;
#define RONDO_CONV2D_OPTIONS_INIT .struct_size = sizeof(rondo_conv2d_options)

typedef struct rondo_pool2d_options {
  uint32_t struct_size;
  bool counts_padding; /* avg_pool2d divides by the window's size; else by what of it is in the image */
  size_t kernel[2];    /* required */
  size_t stride[2];    /* 0: the kernel's size */
  size_t padding[2];   /* less than the kernel */
} rondo_pool2d_options;
#define RONDO_POOL2D_OPTIONS_INIT .struct_size = sizeof(rondo_pool2d_options)

RONDO_API RONDO_MUST_USE rondo_status rondo_op_conv2d(rondo_program *program, rondo_value x, rondo_value weight,
                                                      const rondo_conv2d_options *options, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_max_pool2d(rondo_program *program, rondo_value x,
                                                          const rondo_pool2d_options *options, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_avg_pool2d(rondo_program *program, rondo_value x,
                                                          const rondo_pool2d_options *options, rondo_value *out_value);

/* Element by element ------------------------------------------------------------------------------------------------
 *   cast: any type to `type`; a value of that type is given back itself. Of floats to integers towards zero; what the
 *         integer cannot hold becomes its nearest, not-a-number 0. I64 to I32 keeps the lower half. To F16 and
 *         BF16 integers go by way of F32. The gradient is cast back; there is none through integers. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_cast(rondo_program *program, rondo_value value, rondo_type type,
                                                    rondo_value *out_value);

/* Of two values of one type, whose shapes are broadcast as NumPy does it: aligned at the last dimension, where they
 * must be the same, or one of them 1 or not there, which is repeated. A gradient is summed over what was repeated. add:
 * a + b; sub: a - b; mul: a b; maximum, minimum: the larger, smaller one. Any type; integers wrap around, and have no
 * gradient. Where one is not-a-number so is the larger and the smaller; where both are equal each gets half of the
 * gradient. div: a / b, any float. less, less_equal, greater, greater_equal, equal, not_equal: any type; I32, 1 where
 * it is so, else 0. No gradient flows through them. select: a where the condition, I32, is not 0, else b; all three are
 * broadcast. Any type; the condition has no gradient. expand: repeated into a shape, whose dimensions are the value's
 * or stand where the value has 1 or none; any type. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_add(rondo_program *program, rondo_value a, rondo_value b,
                                                   rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_sub(rondo_program *program, rondo_value a, rondo_value b,
                                                   rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_mul(rondo_program *program, rondo_value a, rondo_value b,
                                                   rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_maximum(rondo_program *program, rondo_value a, rondo_value b,
                                                       rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_minimum(rondo_program *program, rondo_value a, rondo_value b,
                                                       rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_div(rondo_program *program, rondo_value a, rondo_value b,
                                                   rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_less(rondo_program *program, rondo_value a, rondo_value b,
                                                    rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_less_equal(rondo_program *program, rondo_value a, rondo_value b,
                                                          rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_greater(rondo_program *program, rondo_value a, rondo_value b,
                                                       rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_greater_equal(rondo_program *program, rondo_value a, rondo_value b,
                                                             rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_equal(rondo_program *program, rondo_value a, rondo_value b,
                                                     rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_not_equal(rondo_program *program, rondo_value a, rondo_value b,
                                                         rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_select(rondo_program *program, rondo_value condition, rondo_value a,
                                                      rondo_value b, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_expand(rondo_program *program, rondo_value value, const size_t *shape,
                                                      size_t rank, rondo_value *out_value);

/* Of any float, with a gradient:
 *   scale: number · x; add_constant: x + number; neg: -x. The number is an F32.
 *   abs: |x|, its gradient is 0 at 0; square: x^2; sqrt; rsqrt: 1 / sqrt(x); exp; log: the natural logarithm.
 *   relu: max(0, x), its gradient is 0 at 0; sigmoid: 1 / (1 + exp(-x)); tanh; silu: x sigmoid(x).
 *   gelu: x Phi(x), Phi the distribution function of the normal distribution (Hendrycks and Gimpel 2016, Gaussian Error
 *         Linear Units), or by their approximation x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, which PyTorch
 *         calls gelu(approximate="tanh"). OUT_OF_RANGE for another form. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_scale(rondo_program *program, rondo_value value, float number,
                                                     rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_add_constant(rondo_program *program, rondo_value value, float number,
                                                            rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_neg(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_abs(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_square(rondo_program *program, rondo_value value,
                                                      rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_sqrt(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_rsqrt(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_exp(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_log(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_relu(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_sigmoid(rondo_program *program, rondo_value value,
                                                       rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_tanh(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_silu(rondo_program *program, rondo_value value, rondo_value *out_value);

typedef enum rondo_gelu_form { RONDO_GELU_ERF = 0, RONDO_GELU_TANH = 1 } rondo_gelu_form;
RONDO_API RONDO_MUST_USE rondo_status rondo_op_gelu(rondo_program *program, rondo_value value, rondo_gelu_form form,
                                                    rondo_value *out_value);

/* Over dimensions --------------------------------------------------------------------------------------------------
 *   sum, mean, max, min: over the `dim_count` dimensions in `dims`, counted from 0, in any order; dims NULL: over all.
 *         What is reduced is left out of the shape, or stays as 1 when `keeps`. Any float. Elements that are all the
 *         largest share the gradient of max in equal parts, as in PyTorch's amax, and the smallest that of min; where
 *         there is a not-a-number, that is the result.
 *   argmax, argmin: of any type, where along one dimension the largest, smallest element stands: I32, of equals the
 *         first, and the first not-a-number where there is one. No gradient. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_sum(rondo_program *program, rondo_value value, const size_t *dims,
                                                   size_t dim_count, bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_mean(rondo_program *program, rondo_value value, const size_t *dims,
                                                    size_t dim_count, bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_max(rondo_program *program, rondo_value value, const size_t *dims,
                                                   size_t dim_count, bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_min(rondo_program *program, rondo_value value, const size_t *dims,
                                                   size_t dim_count, bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_argmax(rondo_program *program, rondo_value value, size_t dimension,
                                                      bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_argmin(rondo_program *program, rondo_value value, size_t dimension,
                                                      bool keeps, rondo_value *out_value);

/*   softmax:     over the last dimension, any float.
 *   log_softmax: its logarithm, as precise where the softmax is nearly 0. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_softmax(rondo_program *program, rondo_value value,
                                                       rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_log_softmax(rondo_program *program, rondo_value value,
                                                           rondo_value *out_value);

/* Normalisation ----------------------------------------------------------------------------------------------------
 *   layer_norm: over the last `dimensions` dimensions, any float: (x - mean) / sqrt(variance + epsilon) (Ba, Kiros,
 *               Hinton 2016), times scale, plus shift, each of the sizes of these dimensions, or no value for none, and
 *               F32 or of the value's type. variance: the mean of (x - mean)^2. epsilon: above 0.
 *   add_layer_norm: layer_norm of value + addend, of one shape and type, and that sum, rounded to the type, which a
 *               network goes on with: what an add and a layer_norm give, bit for bit, by one kernel, and by one for the
 *               gradient. out_sum as out_value.
 *   rms_norm:   layer_norm without mean and shift: x / sqrt(mean of x^2 + epsilon) (Zhang, Sennrich 2019).
 *   batch_norm: of [n, c, ...], any float: (x - mean) / sqrt(variance + epsilon), times scale, plus shift, each [c]
 *               F32, or no value for none (Ioffe, Szegedy 2015). Mean and variance are the batch's, over all dimensions
 *               but the second; then the running ones, F32 states [c], move towards them by `momentum` at the end of
 *               the run, the variance times m / (m - 1) for m elements, as PyTorch has it. For inference they are the
 *               running ones, [c] F32, which have no gradient then, and nothing moves. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_layer_norm(rondo_program *program, rondo_value value, rondo_value scale,
                                                          rondo_value shift, size_t dimensions, float epsilon,
                                                          rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_add_layer_norm(rondo_program *program, rondo_value value,
                                                              rondo_value addend, rondo_value scale, rondo_value shift,
                                                              size_t dimensions, float epsilon, rondo_value *out_sum,
                                                              rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_rms_norm(rondo_program *program, rondo_value value, rondo_value scale,
                                                        size_t dimensions, float epsilon, rondo_value *out_value);

typedef struct rondo_batch_norm_options {
  uint32_t struct_size;
  float momentum;                             /* 0 .. 1; PyTorch has 0.1 */
  float epsilon;                              /* 0 = 1e-5 */
  bool inference;                             /* by the running statistics */
  rondo_value scale, shift;                   /* or no value */
  rondo_value running_mean, running_variance; /* both, or, when training, no value */
} rondo_batch_norm_options;
#define RONDO_BATCH_NORM_OPTIONS_INIT .struct_size = sizeof(rondo_batch_norm_options)

RONDO_API RONDO_MUST_USE rondo_status rondo_op_batch_norm(rondo_program *program, rondo_value value,
                                                          const rondo_batch_norm_options *options,
                                                          rondo_value *out_value);

/* Indices ----------------------------------------------------------------------------------------------------------
 *   embedding:     table [n, d] of any float, indices [...] I32 or I64 -> [..., d]; an index outside 0 <= i < n fails
 *                  the run (see rondo_compiled_read) and reads row 0.
 *   embedding_bag: of the rows of each bag of indices the sum or mean -> [bags, d]. Without offsets the last dimension
 *                  of indices is a bag: [..., b] -> [..., d]. With offsets [bags] I32 or I64, indices are [m] and bag i
 *                  has those from offsets[i] to the next one's begin, or to the end; none: zeros. They ascend from 0,
 *                  or fail the run. weights, of the table's type and the indices' shape, or no value: each row is
 *                  multiplied by its own; a mean is still divided by the number of indices.
 *   gather:        along a dimension: value of any type, indices I32 or I64 of the same sizes but along that dimension
 *                  -> the indices' shape: of a matrix and dimension 1, y[i, j] = x[i, indices[i, j]]; a wrong index
 *                  fails the run and picks element 0.
 *   index_select:  the same by indices [k], which serve all: -> the value's shape, with k along the dimension: of a
 *                  matrix and dimension 1, y[i, j] = x[i, indices[j]].
 *   one_hot:       of indices [...] I32 or I64 -> [..., size] of any type: 1 at the index, else 0; an index outside
 *                  0 <= i < size fails the run, and its row is zeros. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_embedding(rondo_program *program, rondo_value table, rondo_value indices,
                                                         rondo_value *out_value);

typedef enum rondo_combine { RONDO_COMBINE_MEAN, RONDO_COMBINE_SUM } rondo_combine;

RONDO_API RONDO_MUST_USE rondo_status rondo_op_embedding_bag(rondo_program *program, rondo_value table,
                                                             rondo_value indices, rondo_value offsets,
                                                             rondo_value weights, rondo_combine combine,
                                                             rondo_value *out_value);

RONDO_API RONDO_MUST_USE rondo_status rondo_op_gather(rondo_program *program, rondo_value value, rondo_value indices,
                                                      size_t dimension, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_index_select(rondo_program *program, rondo_value value,
                                                            rondo_value indices, size_t dimension,
                                                            rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_one_hot(rondo_program *program, rondo_value indices, size_t size,
                                                       rondo_type type, rondo_value *out_value);

/* Chance -----------------------------------------------------------------------------------------------------------
 *   dropout: any float: each element is 0 with the probability that `probability`, a scalar F32, holds when the program
 *            runs, else divided by 1 - probability (Srivastava et al. 2014). A cell does for it: 0 turns dropout off,
 *            as inference wants it, and makes the result the value itself; 1 drops all. It has no gradient. The numbers
 *            are those of rondo_philox (<rondo/random.h>) with the seed and offset that the I64 state "random", [2],
 *            holds: write {seed, 0} to it to begin a series, and save it with the weights to go on as if not stopped.
 *            Each run draws others, the same recorded and not, on each device. The gradient draws them again: no mask
 *            takes memory. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_dropout(rondo_program *program, rondo_value value,
                                                       rondo_value probability, rondo_value *out_value);

/* Losses -----------------------------------------------------------------------------------------------------------
 *   cross_entropy: logits [..., n] of any float, labels [...] I32 or I64 -> scalar F32: the mean over the labels of
 *                  -log softmax(logits)[label]; a label outside 0 <= i < n fails the run, as an index of embedding. Its
 *                  options: rows with a certain label count for nothing, also not in the mean, which is 0 of none; and
 *                  label smoothing s (Szegedy et al. 2016), 0 .. 1: the label's share is 1 - s, and s is spread evenly.
 *   mse:             value, target of one float type and shape -> scalar F32: the mean or sum of (value - target)^2.
 *   bce_with_logits: logits, target likewise: of the binary cross entropy of sigmoid(logits) with target, 0 .. 1, in a
 *                    form that does not overflow. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_cross_entropy(rondo_program *program, rondo_value logits,
                                                             rondo_value labels, rondo_value *out_value);

typedef struct rondo_cross_entropy_options {
  uint32_t struct_size;
  float label_smoothing;
  int64_t ignored_label; /* any number */
  bool ignores_label;    /* false: no row is ignored */
} rondo_cross_entropy_options;
#define RONDO_CROSS_ENTROPY_OPTIONS_INIT .struct_size = sizeof(rondo_cross_entropy_options)

/* options may be NULL: none. OUT_OF_RANGE for a smoothing that is not 0 .. 1. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_cross_entropy_with(rondo_program *program, rondo_value logits,
                                                                  rondo_value labels,
                                                                  const rondo_cross_entropy_options *options,
                                                                  rondo_value *out_value);

RONDO_API RONDO_MUST_USE rondo_status rondo_op_mse(rondo_program *program, rondo_value value, rondo_value target,
                                                   rondo_combine combine, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_bce_with_logits(rondo_program *program, rondo_value logits,
                                                               rondo_value target, rondo_combine combine,
                                                               rondo_value *out_value);

/* Shapes -----------------------------------------------------------------------------------------------------------
 * Of any type; integers have no gradient. Dimensions are counted from 0.
 *   reshape:   the same elements in another shape; no copy.
 *   permute:   dimensions in another order: dimension i of the result is dimension order[i] of the value. No copy where
 *              only dimensions of size 1 move.
 *   transpose: dimensions a and b exchanged.
 *   slice:     of each dimension i length[i] elements, from start[i] on, every step[i]-th (step NULL: each). No copy of
 *              all.
 *   concat:    2 or more values put together along a dimension; their other sizes are the same. out_value may be an
 *              entry of the list, here and for stack.
 *   stack:     2 or more values of one shape as slices of a new dimension.
 *   split:     into 2 or more values along a dimension, of the lengths given, which add up to its size. One operator
 *              takes 8 values, so more of them take several, one behind the other: elements are copied twice for up to
 *              64 values, three times for up to 512, and so on. The same goes for concat and stack.
 *   stop_gradient: the value itself; gradients do not pass through it, as if it were an input. No copy. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_reshape(rondo_program *program, rondo_value value, const size_t *shape,
                                                       size_t rank, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_stop_gradient(rondo_program *program, rondo_value value,
                                                             rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_permute(rondo_program *program, rondo_value value, const size_t *order,
                                                       rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_transpose(rondo_program *program, rondo_value value, size_t a, size_t b,
                                                         rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_slice(rondo_program *program, rondo_value value, const size_t *start,
                                                     const size_t *length, const size_t *step, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_concat(rondo_program *program, const rondo_value *values, size_t count,
                                                      size_t dimension, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_stack(rondo_program *program, const rondo_value *values, size_t count,
                                                     size_t dimension, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_split(rondo_program *program, rondo_value value, size_t dimension,
                                                     const size_t *lengths, size_t count, rondo_value *out_values);

/* Constants --------------------------------------------------------------------------------------------------------
 * Made anew in each run, in memory that is shared as that of all results is. Of any type, rounded to the nearest.
 *   full:   every element is `number`; zeros, ones.
 *   arange: [count]: first, first + step, ...
 * OUT_OF_RANGE: a number that an integer type does not hold; those of I64 go up to 2^53. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_full(rondo_program *program, rondo_type type, const size_t *shape,
                                                    size_t rank, double number, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_arange(rondo_program *program, rondo_type type, size_t count,
                                                      double first, double step, rondo_value *out_value);

/* The list --------------------------------------------------------------------------------------------------------- */

typedef struct rondo_operator_info {
  uint32_t struct_size; /* RONDO_OPERATOR_INFO_INIT sets it; 0 means the library's own */
  uint32_t types;       /* bit 1 << t is set when it takes values of type t; of those without inputs, gives them */
  const char *name;     /* as messages call it; static */
  bool has_gradient;
} rondo_operator_info;
#define RONDO_OPERATOR_INFO_INIT .struct_size = sizeof(rondo_operator_info)

/* What operators there are, one call each index; all run on every kind of device. Past the last: NOT_FOUND. Some
 * functions here choose among several. Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_enumerate(size_t index, rondo_operator_info *out_info);

/* Libraries that make the arithmetic of operators where they are found: cuBLASLt and cuDNN on CUDA devices, oneDNN (for
 * products, and for convolutions) and CBLAS on CPU devices. Without one of them another, or kernels of Rondo's own, do
 * its part. */
typedef struct rondo_library_info {
  uint32_t struct_size; /* RONDO_LIBRARY_INFO_INIT sets it; 0 means the library's own */
  const char *name;     /* "cuDNN" */
  const char *purpose;  /* what it makes: "convolutions on CUDA devices" */
  const char *path;     /* the name that it was found by; NULL when it is not used */
  const char *reason;   /* why it is not: what is wrong with the first name that opens, or with each; "" if it is */
  const char *note;     /* what its users should know, such as a fault of its release that Rondo works around; or "" */
} rondo_library_info;
#define RONDO_LIBRARY_INFO_INIT .struct_size = sizeof(rondo_library_info)

/* What libraries there are, one call each index. Loads the library if nothing has yet; it stays loaded, and what is
 * told of it stays the same and valid. Past the last: NOT_FOUND. Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_library_enumerate(size_t index, rondo_library_info *out_info);

RONDO_EXTERN_C_END

#endif

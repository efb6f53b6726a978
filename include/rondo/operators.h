/* SPDX-License-Identifier: MIT
 * The operators of programs (<rondo/program.h>). Each call adds an operator to the program and returns its result,
 * whose type and shape are known at once. "Float" means F32, F16 or BF16. Arithmetic is in F32 for all float types, and
 * rounded once when a result is stored. Operators have a gradient for each float input unless stated otherwise.
 *
 * Thread-compatible, as the program is. Errors of all: INVALID_ARGUMENT with SHAPE or TYPE, naming the operator, its
 * values by name and their shapes, UNKNOWN_NAME (a value of another program) or NULL_ARGUMENT; LIMIT_EXCEEDED (too many
 * bytes); OUT_OF_MEMORY. After an error the program is unchanged.
 *
 * Component: rondo-tensor.
 */
#ifndef RONDO_OPERATORS_H
#define RONDO_OPERATORS_H

#include <rondo/program.h>

RONDO_EXTERN_C_BEGIN

/* Products ---------------------------------------------------------------------------------------------------------
 *   matmul: a [.., m, k] · b [.., k, n] (+ bias [n], or (rondo_value){0}: none) -> [.., m, n], floats of one type. The
 *           leading dimensions are broadcast, as in numpy.matmul.
 *   matmul_with: the same with options: a may be stored as [.., k, m] and b as [.., n, k], and an activation may be
 *           applied to the result: relu, gelu (RONDO_GELU_ERF or RONDO_GELU_TANH) or silu, as below. For the gradients
 *           of gelu and silu, the result before the activation is kept; relu's gradient only needs the result. options
 *           may be NULL. Errors: OUT_OF_RANGE (the activation), BAD_OPTIONS. */
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

/*   matmul_scaled: a [.., k] · bᵀ, b [n, k], of 8-bit floats (F8_E4M3 or F8_E5M2 each), times a_scale and b_scale, F32
 *           (+ bias [n], of the result's type) -> [.., n], a float. A scale has one element, or one for each row of its
 *           factor: [the product of a's dimensions before k], and [n]. Sums are F32. No gradient. As torch._scaled_mm,
 *           whose second factor is the transpose of b. Numbers become 8-bit floats by cast; divide by the scale first.
 *           options may be NULL. Errors: OUT_OF_RANGE (the type), BAD_OPTIONS. */
typedef struct rondo_matmul_scaled_options {
  uint32_t struct_size;
  rondo_type type;  /* of the result: F32 (0), F16 or BF16 */
  rondo_value bias; /* no value: none */
} rondo_matmul_scaled_options;
#define RONDO_MATMUL_SCALED_OPTIONS_INIT .struct_size = sizeof(rondo_matmul_scaled_options)

RONDO_API RONDO_MUST_USE rondo_status rondo_op_matmul_scaled(rondo_program *program, rondo_value a, rondo_value b,
                                                             rondo_value a_scale, rondo_value b_scale,
                                                             const rondo_matmul_scaled_options *options,
                                                             rondo_value *out_value);

/*   einsum: products and sums of values by an equation, as numpy.einsum and Einsum of ONNX: "bij,bjk->bik" is a matmul
 *           of batches, "ii->i" a diagonal, "...i,i" a product with a vector. The values are numbers of one type, at
 *           most 32.
 *           Each term has a letter for each dimension of a value, or ... for the others, which are broadcast. Letters
 *           that are not in the result are summed; if it is left out, it has the dimensions of ..., and the letters
 *           that occur once, in alphabetical order. Values are multiplied from the first to the last. A product that
 *           sums is a matmul for floats; of integers, whose products are stored before they are summed, it needs more
 *           memory. Errors: OUT_OF_RANGE (the equation), ARGUMENT_COUNT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_einsum(rondo_program *program, const char *equation,
                                                      const rondo_value *values, size_t count, rondo_value *out_value);

/* Attention --------------------------------------------------------------------------------------------------------
 *   attention: q [b, h, t, d], k and v [b, g, s, d], floats of one type, h a multiple of g (each group of h / g heads
 *           shares k and v), d at most 256 -> [b, h, t, d]: softmax(scale q kᵀ + mask) v (Vaswani et al. 2017). The
 *           t x s scores are not stored (Dao 2023, FlashAttention-2). options may be NULL.
 *   attention_packed: the same with q, k and v side by side in each row, as one product computes them:
 *           qkv [b, t, (h + 2 g) d], each row h heads of q with d elements each, then g heads of k, then g heads of v
 *           -> [b, t, h d], the heads side by side, as the next product needs them. q has as many rows as k.
 *
 * On CUDA, cuDNN computes attention of F16 and BF16 with its gradients where it can: without lengths and slopes, with
 * a mask that is BOOL or of q's type, d a multiple of 8, and s = t if causal or with a window; masks and windows by
 * cuDNN 9.10.2 or newer. Not every GPU and version of cuDNN can for d above 128. It rounds the weights of v to the
 * type. Its gradients that have the same bits each time store scores, some heads at a time, in a workspace about as
 * large as q, k, v, the result and their gradients. A mask that is BOOL, or is broadcast to [t, s], is written to the
 * workspace in q's type, up to 1 GB. Everything else, such as the gradient of a mask, is computed by Rondo's kernels,
 * which are slower.
 *
 * Row i of q has position i + s - t among the rows of k, so that the last row of q stands at the last row of k. A row
 * of q that sees no row of k, because of lengths, the window or the mask, gives zeros, and no gradient passes through
 * it. (In PyTorch it is NaN.)
 *
 * The mask is broadcast to [b, h, t, s], as in NumPy: reshape a mask of padding, [b, s], to [b, 1, 1, s]. A BOOL mask
 * hides where it is false. A float mask, F32 or of q's type, is added to the scaled scores, and has a gradient;
 * -INFINITY hides. For both, use rondo_op_select(mask, bias, rondo_op_full(-INFINITY)). Hidden rows of k
 * and v must not be infinite or NaN; those at and after a length may be anything.
 *
 * Without caches, `lengths` says how many rows of k and v each sequence of the batch has, 0 to s; the others are
 * padding behind them. Lengths do not change positions.
 *
 * With caches, for generation, q, k and v are t new rows of sequences whose earlier rows are in the caches: k_cache and
 * v_cache, two states [b, g, s, d] that a run reads and changes. The caches of sequence i hold lengths[i] rows. Its new
 * row j has position lengths[i] + j, and sees the rows in the caches and the new rows up to its own. At the end of the
 * run, k and v are written to the caches, from row lengths[i] on, for later runs. t = 1 decodes a token; more rows are
 * a prompt, a part of one, or guesses to be checked. To drop rows, use a smaller length in the next run. new_rows[i]
 * says how many of the t rows the sequence has, 0 to t. The others give zeros and are not written. With 0 the sequence
 * is left out, whatever its length. Each sequence is computed by itself, so its result does not depend on the others of
 * the batch. There is no gradient, and `causal` has no effect. In a mask, s is the number of rows that the caches can
 * hold.
 *
 * With a block table, the caches are a pool of blocks, [blocks, g, rows of a block, d], which all sequences share, and
 * block_table, I32 [b, m], lists those of each sequence: row r of sequence i is row r % rows of block_table[i, r /
 * rows] (Kwon et al. 2023, PagedAttention). s is m times the rows of a block. Only entries that rows of the run use are
 * read. A block that a sequence writes to must be in no other entry of these, or the run fails.
 *
 * Without k and v (no values), caches are only read: row j of q sees the rows 0 to lengths[i] of the caches, whatever j
 * is, and nothing is written; without lengths all rows of the caches. new_rows then counts the rows of q. So the
 * cross-attention of a decoder reads k and v of an encoder, which were written once. causal, window and alibi_slopes
 * are refused.
 *
 *   attention_append: writes rows to caches without attention: k and v [b, g, t, d], from row lengths[i] on, at the
 *         end of the run. Of the options, k_cache and v_cache are required, and lengths, new_rows and block_table
 *         mean the same as above. So an encoder fills the caches for the cross-attention of a decoder.
 *
 * A length outside of 0 to s, one that leaves no space for the new rows, a count of new rows outside of 0 to t, an
 * entry that is no block, and one that names a block to which another entry's sequence writes, fail the run, like an
 * index of embedding; the sequence then gives zeros, and no cache changes. Errors: OUT_OF_RANGE (the scale or window),
 * BAD_OPTIONS (options that need caches, one cache alone, caches to which another attention of the program writes other
 * rows with the same lengths, new_rows and block_table: each layer needs its own); TYPE (the caches are not two
 * states).
 */
typedef struct rondo_attention_options {
  uint32_t struct_size;
  bool causal;              /* a row of q sees only the rows of k up to its position */
  float scale;              /* 0: 1 / sqrt(d) */
  size_t window;            /* a row of q sees rows of k less than this far from its position; 0: any distance */
  rondo_value mask;         /* BOOL or float, broadcast to [b, h, t, s]; no value: none */
  rondo_value alibi_slopes; /* F32 [h]: slope times distance is subtracted from a score (Press et al. 2022, ALiBi). No
                               gradient. No value: none */
  rondo_value lengths;      /* I32, [b] or a scalar for all. No value: s; with caches 0, which are empty then */
  rondo_value k_cache, v_cache; /* states; no value: no caches */
  rondo_value new_rows;         /* I32, [b] or a scalar for all; needs caches. No value: t */
  rondo_value block_table;      /* I32 [b, m]; needs caches. No value: each sequence has its own caches */
} rondo_attention_options;
#define RONDO_ATTENTION_OPTIONS_INIT .struct_size = sizeof(rondo_attention_options)

RONDO_API RONDO_MUST_USE rondo_status rondo_op_attention(rondo_program *program, rondo_value q, rondo_value k,
                                                         rondo_value v, const rondo_attention_options *options,
                                                         rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_attention_packed(rondo_program *program, rondo_value qkv, size_t heads,
                                                                size_t groups, const rondo_attention_options *options,
                                                                rondo_value *out_value);

RONDO_API RONDO_MUST_USE rondo_status rondo_op_attention_append(rondo_program *program, rondo_value k, rondo_value v,
                                                                const rondo_attention_options *options);

/*   rotary: rotary position embedding (Su et al. 2021, RoFormer): x [b, n, t, d], any float, d at most 256: rotates
 *           pairs of the first `dims` elements of each row of each head; pair i by the row's position times
 *           base^(-2 i / dims). positions: I32 [t], or [b, t] or [1, t] for each sequence, any numbers: in generation,
 *           the length of the sequence, and the numbers after it for further rows. With `heads`, x is packed rows
 *           [b, t, (h + 2 g) d] as of attention_packed, and the heads of q and k are rotated; with groups 0, all h.
 *           options may be NULL. Errors: OUT_OF_RANGE (dims, base, position_scale). */
typedef struct rondo_rotary_options {
  uint32_t struct_size;
  bool interleaved;     /* a pair is elements 2 i and 2 i + 1, as in GPT-J; else i and i + dims / 2, as in GPT-NeoX and
                           Llama */
  size_t dims;          /* even, at most d; 0: d */
  float base;           /* 0: 10000 */
  float position_scale; /* positions are multiplied by it: 1 / 4 stretches a model to four times its length. 0: 1 */
  size_t heads, groups; /* h and g of packed rows */
  rondo_value frequencies; /* F32 [dims / 2], instead of those of base, as for Llama 3. No gradient. No value: none */
} rondo_rotary_options;
#define RONDO_ROTARY_OPTIONS_INIT .struct_size = sizeof(rondo_rotary_options)

RONDO_API RONDO_MUST_USE rondo_status rondo_op_rotary(rondo_program *program, rondo_value x, rondo_value positions,
                                                      const rondo_rotary_options *options, rondo_value *out_value);

/* Recurrent networks -----------------------------------------------------------------------------------------------
 *   lstm, gru, rnn: sequences x [t, b, n], of t steps of b sequences, any float, through layers of h states, as
 *           torch.nn.LSTM, GRU and RNN define them -> y [t, b, directions h], the states of the last layer after each
 *           step, and the states of each layer and direction after the last step, [layers directions, b, h]: hidden
 *           and, of lstm, cell. out_hidden and out_cell may be NULL. rnn has tanh, or relu.
 *   weights: one entry for each layer and, within it, each direction: the backward one comes second. Their rows are in
 *           PyTorch's order of gates: input, forget, cell, output of lstm; reset, update, new of gru.
 *   options may be NULL: one layer, forward, from zeros, all steps. With lengths, a sequence ends after its number of
 *           steps, 0 .. t: then y is 0, the last states are those of its end, and the backward direction begins there.
 *           Another number fails the run, like an index of embedding.
 *   The cells are PyTorch's unless an option of ONNX's LSTM, GRU and RNN says otherwise: activations, clip, peephole,
 *           reset_first, coupled. ONNX's gates are in another order: input, output, forget, cell; update, reset, new.
 * States are rounded to the type after each step; cells are kept in F32. Gradients of all but lengths and dropout, but
 * none with an option of ONNX's: the operator is then listed as lstm_general, gru_general or rnn_general. An rnn with
 * relu is PyTorch's.
 * Errors: OUT_OF_RANGE (layers, clip, an activation), BAD_OPTIONS (bidirectional and reversed; an option of another
 * cell). */
typedef struct rondo_recurrent_weights {
  rondo_value input;       /* [g h, n] in the first layer, [g h, directions h] in others; g: 4 lstm, 3 gru, 1 rnn */
  rondo_value hidden;      /* [g h, h] */
  rondo_value input_bias;  /* [g h], or no value */
  rondo_value hidden_bias; /* likewise */
  rondo_value peephole;    /* lstm: [3 h], what the gates input, forget and output see of the cell; or no value */
} rondo_recurrent_weights;

/* What an activation computes of x (ONNX, operator LSTM). alpha and beta are used as they are: there are no defaults.
 */
typedef enum rondo_recurrent_activation_kind {
  RONDO_RECURRENT_DEFAULT = 0, /* sigmoid for gates, tanh for the others and for rnn; relu of an rnn with relu */
  RONDO_RECURRENT_SIGMOID = 1,
  RONDO_RECURRENT_TANH = 2,
  RONDO_RECURRENT_RELU = 3,
  RONDO_RECURRENT_AFFINE = 4,           /* alpha x + beta */
  RONDO_RECURRENT_LEAKY_RELU = 5,       /* x, but alpha x below 0 */
  RONDO_RECURRENT_THRESHOLDED_RELU = 6, /* x, but 0 below alpha */
  RONDO_RECURRENT_SCALED_TANH = 7,      /* alpha tanh(beta x) */
  RONDO_RECURRENT_HARD_SIGMOID = 8,     /* alpha x + beta, limited to 0 .. 1 */
  RONDO_RECURRENT_ELU = 9,              /* x, but alpha (exp(x) - 1) below 0 */
  RONDO_RECURRENT_SOFTSIGN = 10,        /* x / (1 + |x|) */
  RONDO_RECURRENT_SOFTPLUS = 11         /* log(1 + exp(x)) */
} rondo_recurrent_activation_kind;

typedef struct rondo_recurrent_activation {
  rondo_recurrent_activation_kind kind;
  float alpha, beta;
} rondo_recurrent_activation;

typedef struct rondo_recurrent_options {
  uint32_t struct_size;
  bool bidirectional, reversed; /* both directions; only the backward one */
  bool batch_first;             /* x and y are [b, t, ..] */
  bool relu;                    /* rnn has relu instead of tanh */
  size_t layers;                /* 0: 1 */
  rondo_value hidden, cell;     /* [layers directions, b, h]: the states before the first step; no value: zeros. cell:
                                   of lstm */
  rondo_value lengths;          /* [b] I32 or I64; no value: t */
  rondo_value dropout;          /* a scalar F32, the probability of dropout before all layers but the first */
  bool reset_first; /* gru: the reset gate multiplies the state, and not its product (ONNX: linear_before_reset = 0) */
  bool coupled;     /* lstm: the forget gate is 1 - the input gate (ONNX: input_forget) */
  float clip;       /* what is activated is limited to -clip .. clip; 0: no limit */
  rondo_recurrent_activation activations[2][3]; /* of each direction: of gates or rnn; of the candidate, lstm's cell or
                                                   gru's new gate; of the cell in the result of lstm (ONNX: f, g, h) */
} rondo_recurrent_options;
#define RONDO_RECURRENT_OPTIONS_INIT .struct_size = sizeof(rondo_recurrent_options)

RONDO_API RONDO_MUST_USE rondo_status rondo_op_lstm(rondo_program *program, rondo_value x,
                                                    const rondo_recurrent_weights *weights,
                                                    const rondo_recurrent_options *options, rondo_value *out_y,
                                                    rondo_value *out_hidden, rondo_value *out_cell);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_gru(rondo_program *program, rondo_value x,
                                                   const rondo_recurrent_weights *weights,
                                                   const rondo_recurrent_options *options, rondo_value *out_y,
                                                   rondo_value *out_hidden);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_rnn(rondo_program *program, rondo_value x,
                                                   const rondo_recurrent_weights *weights,
                                                   const rondo_recurrent_options *options, rondo_value *out_y,
                                                   rondo_value *out_hidden);

/* Images -----------------------------------------------------------------------------------------------------------
 * n images of c channels and one to three spatial dimensions, [n, c, w], [n, c, h, w] or [n, c, d, h, w], any float.
 * Entry i of an option's array is about spatial dimension i, so the first is the depth of volumes, the height of images
 * and the length of series; later ones than x has are ignored. `padding` is added on both sides; padding_before and
 * padding_after add more on one side, as ONNX's pads and TensorFlow's "same" need. On CUDA, cuDNN computes convolutions
 * with equal padding on both sides; others use slower kernels.
 *   conv:   x [n, c, ..], weight [o, c / groups, ..] (+ bias [o]) -> [n, o, ..]: cross-correlation with zero padding.
 *           Each size is (size + padding on both sides - dilation (kernel - 1) - 1) / stride + 1, rounded down; c and o
 *           are multiples of groups. options may be NULL.
 *   conv_transpose: x [n, c, ..], weight [c, o / groups, ..] (+ bias [o]) -> [n, o, ..]: the gradient of conv with
 *           respect to its x. Each size is (size - 1) stride - padding on both sides + dilation (kernel - 1) +
 *           output_padding + 1. The output padding is smaller than the stride. F16 and BF16 are rounded before the bias
 *           is added, too. options may be NULL.
 *   max_pool: x [n, c, ..] -> [n, c, ..]: the maximum of each window, NaN if the window contains one. The gradient goes
 *           to the first maximum. out_indices, NULL if it is not wanted, is the index of the maximum in its channel's
 *           image, I32 (PyTorch's; ONNX's also counts images and channels). Also of I8 and U8, which have no gradient.
 *           A window without elements, because of its dilation, gives -infinity, or I8's or U8's lowest, and the index
 *           -1.
 *   avg_pool: the same with the mean, or with `divisor` the sum divided by that. 0 for a window without elements.
 *   lp_pool: (sum of |x|^p)^(1/p) of each window, p at least 1: several operators, in F32. The gradient is NaN where a
 *           sum is 0 and p is above 1, as in PyTorch. Errors: OUT_OF_RANGE (p).
 *   max_unpool: x [n, c, ..] and indices of its shape, I32 or I64, as from max_pool -> [n, c, size ..]: zeros, with
 *           each element of x at its index. size has x's spatial dimensions. An index out of range fails the run; of
 *           several elements with one index, the last one stays.
 *   interpolate: value [n, c, ..] -> the same with other sizes, by the nearest element, linearly (bilinear, trilinear)
 *           or cubically. F16 and BF16 are rounded once. Element i of the result lies at coordinate (i + 0.5) / scale -
 *           0.5 of the value (half_pixel), at i (size - 1) / (size' - 1) (align_corners), at i / scale (asymmetric), or
 *           at that of half_pixel but 0 if there is one element (half_pixel_or_0, pytorch_half_pixel of ONNX). With
 *           half_pixel_symmetric, the centres of both are at one place, if the size is not the scaled one; with crop,
 *           elements lie between crop_first and crop_last (tf_crop_and_resize of ONNX). PyTorch's antialias is
 *           antialias with exclude_outside and a `cubic` of -0.5. To interpolate along dimensions before the third,
 *           reshape [a, b, ..] to [1, 1, a, b, ..].
 *           PyTorch's nearest is asymmetric with floor, its nearest-exact half_pixel with round_prefer_ceil, and its
 *           bilinear half_pixel, or align_corners. The zero options, half_pixel with floor, are neither of its nearest.
 *           OUT_OF_RANGE: another mode, coordinate or rounding, or a cubic parameter that is not finite. */
#define RONDO_MAX_SPATIAL 3

typedef struct rondo_conv_options {
  uint32_t struct_size;
  uint32_t groups;                                               /* 0: 1 */
  size_t stride[RONDO_MAX_SPATIAL], dilation[RONDO_MAX_SPATIAL]; /* 0: 1 */
  size_t padding[RONDO_MAX_SPATIAL], padding_before[RONDO_MAX_SPATIAL], padding_after[RONDO_MAX_SPATIAL];
  rondo_value bias; /* no value: none */
} rondo_conv_options;
#define RONDO_CONV_OPTIONS_INIT .struct_size = sizeof(rondo_conv_options)

typedef struct rondo_conv_transpose_options {
  uint32_t struct_size;
  uint32_t groups;                                               /* 0: 1 */
  size_t stride[RONDO_MAX_SPATIAL], dilation[RONDO_MAX_SPATIAL]; /* 0: 1 */
  size_t padding[RONDO_MAX_SPATIAL], padding_before[RONDO_MAX_SPATIAL], padding_after[RONDO_MAX_SPATIAL];
  size_t output_padding[RONDO_MAX_SPATIAL];
  rondo_value bias; /* no value: none */
} rondo_conv_transpose_options;
#define RONDO_CONV_TRANSPOSE_OPTIONS_INIT .struct_size = sizeof(rondo_conv_transpose_options)

typedef struct rondo_pooling_options {
  uint32_t struct_size;
  bool counts_padding; /* avg_pool divides by the window's size; otherwise by the part of it inside the image */
  bool ceil_mode;      /* sizes are rounded up, so that the last window may reach beyond the padding; it begins in the
                          image or the padding before it. What is beyond the padding is not counted */
  uint32_t divisor;    /* of avg_pool: divides by it; 0: by the number of elements */
  size_t kernel[RONDO_MAX_SPATIAL];   /* required */
  size_t stride[RONDO_MAX_SPATIAL];   /* 0: the kernel's size */
  size_t dilation[RONDO_MAX_SPATIAL]; /* 0: 1 */
  size_t padding[RONDO_MAX_SPATIAL], padding_before[RONDO_MAX_SPATIAL], padding_after[RONDO_MAX_SPATIAL]; /* on each
                          side less than the window: dilation (kernel - 1) + 1 */
} rondo_pooling_options;
#define RONDO_POOLING_OPTIONS_INIT .struct_size = sizeof(rondo_pooling_options)

typedef enum rondo_interpolation {
  RONDO_INTERPOLATE_NEAREST = 0,
  RONDO_INTERPOLATE_LINEAR = 1,
  RONDO_INTERPOLATE_CUBIC = 2
} rondo_interpolation;

typedef enum rondo_coordinates {
  RONDO_COORDINATES_HALF_PIXEL = 0,
  RONDO_COORDINATES_ALIGN_CORNERS = 1,
  RONDO_COORDINATES_ASYMMETRIC = 2,
  RONDO_COORDINATES_HALF_PIXEL_OR_0 = 3,
  RONDO_COORDINATES_HALF_PIXEL_SYMMETRIC = 4,
  RONDO_COORDINATES_CROP = 5
} rondo_coordinates;

/* Which element is the nearest to a coordinate between two. */
typedef enum rondo_nearest {
  RONDO_NEAREST_FLOOR = 0,
  RONDO_NEAREST_CEIL = 1,
  RONDO_NEAREST_ROUND_PREFER_FLOOR = 2,
  RONDO_NEAREST_ROUND_PREFER_CEIL = 3
} rondo_nearest;

typedef struct rondo_interpolate_options {
  uint32_t struct_size;
  rondo_interpolation mode;
  rondo_coordinates coordinates;
  rondo_nearest nearest; /* of mode nearest */
  float cubic;           /* the parameter of the cubic weights; 0: -0.75 */
  size_t size[4];        /* of the result's dimensions from the third on; 0: the value's size times the scale, rounded
                            down, as with PyTorch's scale_factor */
  double scale[4];       /* of their coordinates, 1e-9 to 1e9; 0: the ratio of the sizes */
  bool antialias;        /* linear and cubic: dimensions that shrink are smoothed by weights that are as much wider */
  bool exclude_outside;  /* linear and cubic: neighbours outside of the value have no weight, and the others more */
  float outside;         /* with RONDO_COORDINATES_CROP: the elements whose coordinates are outside of the value */
  double crop_first[4], crop_last[4]; /* the coordinates of the first and last element, -1e9 to 1e9: 0 is the value's
                                         first element and 1 its last one. Below the first: from right to left */
} rondo_interpolate_options;
#define RONDO_INTERPOLATE_OPTIONS_INIT .struct_size = sizeof(rondo_interpolate_options)

RONDO_API RONDO_MUST_USE rondo_status rondo_op_interpolate(rondo_program *program, rondo_value value,
                                                           const rondo_interpolate_options *options,
                                                           rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_conv(rondo_program *program, rondo_value x, rondo_value weight,
                                                    const rondo_conv_options *options, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_conv_transpose(rondo_program *program, rondo_value x, rondo_value weight,
                                                              const rondo_conv_transpose_options *options,
                                                              rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_max_pool(rondo_program *program, rondo_value x,
                                                        const rondo_pooling_options *options, rondo_value *out_value,
                                                        rondo_value *out_indices);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_avg_pool(rondo_program *program, rondo_value x,
                                                        const rondo_pooling_options *options, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_lp_pool(rondo_program *program, rondo_value x, float p,
                                                       const rondo_pooling_options *options, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_max_unpool(rondo_program *program, rondo_value x, rondo_value indices,
                                                          const size_t *size, rondo_value *out_value);

/* Sampling and detection -------------------------------------------------------------------------------------------
 * All compute in F32.
 *   grid_sample: value [n, c, h, w] and grid [n, h', w', 2], or [n, c, d, h, w] and [n, d', h', w', 3], any floats ->
 *           [n, c, h', w'] or [n, c, d', h', w'], of the value's type: the value at the grid's coordinates, which are
 *           x, y (and z) from -1 to 1, by the mode of interpolate. -1 and 1 are the outer edges of the outer elements,
 *           or their centres (align_corners). Outside there are zeros, the nearest element, or the value mirrored
 *           (Jaderberg et al. 2015, Spatial Transformer Networks). On CUDA, the gradient of the value is added by one
 *           thread for each channel, to have the same bits each time, which is slow for few channels. options may be
 *           NULL: nearest, zeros. OUT_OF_RANGE: another mode or padding.
 *   affine_grid: theta [n, 2, 3] or [n, 3, 4], any float -> the grid of grid_sample with theta (x, y, 1) at each
 *         element of an image with these sizes, [n, h', w', 2] or [n, d', h', w', 3]: a product.
 *   roi_align: value [n, c, h, w] of any float, rois [r, 4] F32, each x1, y1, x2, y2, and images [r], I32 or I64,
 *         the image of each -> [r, c, size[0], size[1]]: the mean or the largest product of samples in bins of
 *         equal size (He et al. 2017, Mask R-CNN; RoiAlign of ONNX). Samples outside of the image count as 0. No
 *         gradient. A wrong image fails the run. OUT_OF_RANGE: the scale or the sampling ratio.
 *   max_roi_pool: the same with rois [r, 5], each image, x1, y1, x2, y2: the maximum of the elements in each bin, 0
 *         if there are none (Girshick 2015, Fast R-CNN; MaxRoiPool of ONNX). No gradient.
 *   non_max_suppression: boxes [n, b, 4] and scores [n, classes, b], F32 -> the indices of boxes that overlap no
 *         better one of their class, [bound, 3] I32, each image, class, box: by image, by class, the best first;
 *         the rows after the last are -1. And how many there are, [1] I32. Boxes are y1, x1, y2, x2, corners in any
 *         order, or x, y of the centre, width, height. No gradient. options may be NULL. OUT_OF_RANGE: a threshold
 *         is NaN.
 *   local_response_norm: x [n, c, ..] / (bias + alpha / size * sum of x^2)^beta, summed over `size` neighbouring
 *         channels, (size - 1) / 2 before and the rest after (Krizhevsky et al. 2012). Several operators, in F32.
 *   fold: x [n, c taps, l] -> [n, c, image ..]: adds each of the l windows to its place in the image, the gradient
 *         of unfolding windows (torch.nn.functional.fold, Col2Im of ONNX): a conv_transpose with weights of 0 and
 *         1, so `taps` times as many multiplications as additions are needed. The options' bias and groups are not
 *         used.
 *   dft: x [.., m, .., 1 or 2], any float, numbers or pairs of real and imaginary parts -> [.., k, .., 2], F32: the
 *         discrete Fourier transform along `dimension` by a product with a matrix of k x m sines and cosines, so
 *         the cost grows with the square of the length. Its inverse is divided by k. options may be NULL.
 *   stft: signal [n, m, 1 or 2], any float -> [n, frames, k, 2], F32: the transforms of frames of `frame_length`
 *         elements, `frame_step` apart, multiplied by a window [frame_length], or no value: 1. By a conv. k is
 *         frame_length, or frame_length / 2 + 1 if onesided.
 *   det: x [.., m, m], any float -> [..]: the determinant of each matrix, m at most 256, by elimination with
 *         pivots. No gradient. */
typedef enum rondo_grid_padding {
  RONDO_GRID_ZEROS = 0,
  RONDO_GRID_BORDER = 1,
  RONDO_GRID_REFLECTION = 2
} rondo_grid_padding;

typedef struct rondo_grid_sample_options {
  uint32_t struct_size;
  rondo_interpolation mode;
  rondo_grid_padding padding;
  bool align_corners;
} rondo_grid_sample_options;
#define RONDO_GRID_SAMPLE_OPTIONS_INIT .struct_size = sizeof(rondo_grid_sample_options)

typedef struct rondo_roi_align_options {
  uint32_t struct_size;
  float spatial_scale;   /* of the coordinates; 0: 1 */
  size_t size[2];        /* of the result */
  size_t sampling_ratio; /* samples of a bin along each axis, at most 1024; 0: as many as it has elements, rounded up */
  bool takes_max;        /* the largest product; otherwise the mean */
  bool half_pixel;       /* coordinates are of corners, as torchvision's `aligned`; otherwise of centres */
} rondo_roi_align_options;
#define RONDO_ROI_ALIGN_OPTIONS_INIT .struct_size = sizeof(rondo_roi_align_options)

typedef struct rondo_non_max_suppression_options {
  uint32_t struct_size;
  float iou_threshold;   /* a box overlaps another if the area of both is more than this share of that of either */
  float score_threshold; /* boxes need a higher score; used if has_score_threshold */
  bool has_score_threshold;
  bool center_boxes;
  size_t per_class; /* of an image, the most boxes; 0: all */
  size_t bound;     /* rows of the result; 0: for all that can be selected */
} rondo_non_max_suppression_options;
#define RONDO_NON_MAX_SUPPRESSION_OPTIONS_INIT .struct_size = sizeof(rondo_non_max_suppression_options)

typedef struct rondo_dft_options {
  uint32_t struct_size;
  bool inverse;
  bool onesided;    /* only the first k / 2 + 1 results. An inverse has only these as its x, and k real numbers as its
                       result, [.., k, .., 1] */
  size_t dimension; /* not the last */
  size_t length;    /* k: the dimension is cut, or zeros are added; 0: its size, or 2 (size - 1) of an inverse that is
                       onesided */
} rondo_dft_options;
#define RONDO_DFT_OPTIONS_INIT .struct_size = sizeof(rondo_dft_options)

RONDO_API RONDO_MUST_USE rondo_status rondo_op_grid_sample(rondo_program *program, rondo_value value, rondo_value grid,
                                                           const rondo_grid_sample_options *options,
                                                           rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_affine_grid(rondo_program *program, rondo_value theta,
                                                           const size_t *size, bool align_corners,
                                                           rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_roi_align(rondo_program *program, rondo_value value, rondo_value rois,
                                                         rondo_value images, const rondo_roi_align_options *options,
                                                         rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_max_roi_pool(rondo_program *program, rondo_value value, rondo_value rois,
                                                            const size_t size[2], float spatial_scale,
                                                            rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_non_max_suppression(rondo_program *program, rondo_value boxes,
                                                                   rondo_value scores,
                                                                   const rondo_non_max_suppression_options *options,
                                                                   rondo_value *out_selected, rondo_value *out_count);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_local_response_norm(rondo_program *program, rondo_value x, size_t size,
                                                                   float alpha, float beta, float bias,
                                                                   rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_fold(rondo_program *program, rondo_value x, const size_t *image,
                                                    const size_t *kernel, const rondo_conv_options *options,
                                                    size_t rank, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_dft(rondo_program *program, rondo_value x,
                                                   const rondo_dft_options *options, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_stft(rondo_program *program, rondo_value signal, rondo_value window,
                                                    size_t frame_step, size_t frame_length, bool onesided,
                                                    rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_det(rondo_program *program, rondo_value x, rondo_value *out_value);

/* Element-wise -----------------------------------------------------------------------------------------------------
 *   cast: any type to `type`; a value that already has this type is returned unchanged. Floats are truncated to
 *         integers; values out of range become the nearest integer, NaN becomes 0. Integers that do not fit another
 *         integer type keep their lower bits. BOOL gets false from 0, true from all others, NaN too, and becomes 0 or
 *         1. Integers become F16 and BF16 through F32. Of 8-bit floats, numbers out of range, infinity too, become the
 *         largest number, as in ONNX's Cast; PyTorch gives NaN or infinity. The gradient is cast back; integers, BOOL
 *         and 8-bit floats have no gradient. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_cast(rondo_program *program, rondo_value value, rondo_type type,
                                                    rondo_value *out_value);

/* Operators of two values of one type. Shapes are broadcast as in NumPy: aligned at the last dimension, where the sizes
 * must be equal, or one of them 1 or absent, which is repeated. Gradients are summed over repeated elements.
 *   add: a + b; sub: a - b; mul: a b; maximum, minimum. Any type; integers wrap around, and have no gradient. maximum
 *         and minimum are NaN if one of the values is, and then both get the gradient; if both are equal, each gets
 *         half of it. Of BOOL, as in PyTorch, add and maximum are "or", mul and minimum are "and", and there is no sub.
 *   div: a / b, any number. Of integers, as in C and ONNX: rounded towards 0, like torch.div(rounding_mode="trunc"),
 *        and 0 if b is 0.
 *   remainder: what is left of a after whole multiples of b, with the sign of b, as in Python; any number. If b is 0:
 *        NaN, and 0 of integers. The gradient of b is -quotient.
 *   fmod: the same with the sign of a, as in C.
 *   pow: a^b, any number. As in C: 1 if b is 0, NaN if a is negative and b is not an integer. Of integers with a
 *        negative b: 1 or -1 if a is 1 or -1, else 0, as in PyTorch. The gradient of a is 0 where b is 0; that of b is
 *        0 where a is 0 and b is not negative.
 *   bitwise_and, bitwise_or, bitwise_xor: integers and BOOL. No gradient.
 *   shift_left, shift_right: a by b bits, integers. shift_right keeps the sign. If b is negative, or not less than the
 *        number of bits, all bits are shifted out. No gradient.
 *   less, less_equal, greater, greater_equal, equal, not_equal: any type; the result is BOOL. No gradient.
 *   logical_and, logical_or, logical_xor: any type; 0 is false, all others are true, NaN too. The result is BOOL. No
 *         gradient.
 *   select: a where the condition is true, else b; all three are broadcast. The condition is BOOL, or an integer, of
 *           which 0 is false. a and b have any type; the condition has no gradient.
 *   expand: broadcasts a value to a shape. Each size is the value's, or any number where the value's size is 1 or the
 *           dimension is missing. Any type. */
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
RONDO_API RONDO_MUST_USE rondo_status rondo_op_pow(rondo_program *program, rondo_value a, rondo_value b,
                                                   rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_remainder(rondo_program *program, rondo_value a, rondo_value b,
                                                         rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_fmod(rondo_program *program, rondo_value a, rondo_value b,
                                                    rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_bitwise_and(rondo_program *program, rondo_value a, rondo_value b,
                                                           rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_bitwise_or(rondo_program *program, rondo_value a, rondo_value b,
                                                          rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_bitwise_xor(rondo_program *program, rondo_value a, rondo_value b,
                                                           rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_shift_left(rondo_program *program, rondo_value a, rondo_value b,
                                                          rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_shift_right(rondo_program *program, rondo_value a, rondo_value b,
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
RONDO_API RONDO_MUST_USE rondo_status rondo_op_logical_and(rondo_program *program, rondo_value a, rondo_value b,
                                                           rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_logical_or(rondo_program *program, rondo_value a, rondo_value b,
                                                          rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_logical_xor(rondo_program *program, rondo_value a, rondo_value b,
                                                           rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_select(rondo_program *program, rondo_value condition, rondo_value a,
                                                      rondo_value b, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_expand(rondo_program *program, rondo_value value, const size_t *shape,
                                                      size_t rank, rondo_value *out_value);

/* Operators of one value of any type, with a BOOL as result and without a gradient:
 *   logical_not: whether it is 0; is_nan; is_inf: plus or minus infinity; is_finite: neither. Integers are finite. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_logical_not(rondo_program *program, rondo_value value,
                                                           rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_is_nan(rondo_program *program, rondo_value value,
                                                      rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_is_inf(rondo_program *program, rondo_value value,
                                                      rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_is_finite(rondo_program *program, rondo_value value,
                                                         rondo_value *out_value);

/* Operators of one number without a gradient:
 *   sign: -1, 0 or 1, 0 of NaN; floor, ceil; trunc: towards 0; round: to the nearest integer, to the even one of two
 *         that are equally near.
 *   bitwise_not: the complement of an integer or BOOL. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_sign(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_floor(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_ceil(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_round(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_trunc(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_bitwise_not(rondo_program *program, rondo_value value,
                                                           rondo_value *out_value);

/* Operators of one float value, with a gradient; neg, clamp, abs, square and relu also of integers, which wrap around
 * and have no gradient:
 *   scale: number · x; add_constant: x + number; neg: -x. The number is an F32.
 *   clamp: the number in lowest .. highest that is nearest to x; NaN stays NaN. If lowest is above highest, all become
 *          highest. Use infinities for no limit. The gradient is 0 outside. Of integers, the limits are the integers
 *          within lowest .. highest; maximum and minimum have limits that an F32 does not hold. OUT_OF_RANGE: a limit
 *          is NaN.
 *   sin, cos, tan: of x in radians; asin, acos, atan; sinh, cosh, asinh, acosh, atanh; erf: the error function.
 *   abs: |x|, its gradient is 0 at 0; square: x^2; sqrt; rsqrt: 1 / sqrt(x); reciprocal: 1 / x; exp; log: the natural
 *        logarithm; expm1: exp(x) - 1; log1p: log(1 + x), both precise near 0.
 *   relu: max(0, x), its gradient is 0 at 0; sigmoid: 1 / (1 + exp(-x)); tanh; silu: x sigmoid(x); softsign: x / (1 +
 *         |x|); mish: x tanh(log(1 + exp(x))) (Misra 2019); log_sigmoid: log(sigmoid(x)).
 *   gelu: x Phi(x), Phi the distribution function of the normal distribution (Hendrycks and Gimpel 2016, Gaussian Error
 *         Linear Units), or by their approximation x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, which PyTorch
 *         calls gelu(approximate="tanh"). OUT_OF_RANGE for another form. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_scale(rondo_program *program, rondo_value value, float number,
                                                     rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_add_constant(rondo_program *program, rondo_value value, float number,
                                                            rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_neg(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_clamp(rondo_program *program, rondo_value value, float lowest,
                                                     float highest, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_sin(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_cos(rondo_program *program, rondo_value value, rondo_value *out_value);
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
RONDO_API RONDO_MUST_USE rondo_status rondo_op_tan(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_asin(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_acos(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_atan(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_sinh(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_cosh(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_asinh(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_acosh(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_atanh(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_erf(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_reciprocal(rondo_program *program, rondo_value value,
                                                          rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_expm1(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_log1p(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_softsign(rondo_program *program, rondo_value value,
                                                        rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_mish(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_log_sigmoid(rondo_program *program, rondo_value value,
                                                           rondo_value *out_value);

typedef enum rondo_gelu_form { RONDO_GELU_ERF = 0, RONDO_GELU_TANH = 1 } rondo_gelu_form;
RONDO_API RONDO_MUST_USE rondo_status rondo_op_gelu(rondo_program *program, rondo_value value, rondo_gelu_form form,
                                                    rondo_value *out_value);

/* Activations with numbers, of one float value, with a gradient. OUT_OF_RANGE: a number that is NaN.
 *   leaky_relu:  x, but slope x below 0 (0.01 in PyTorch and ONNX).
 *   elu:         x, but alpha (exp(x) - 1) below 0 (Clevert et al. 2016); alpha is usually 1.
 *   celu:        x, but alpha (exp(x / alpha) - 1) below 0 (Barron 2017); alpha is not 0.
 *   selu:        1.0507 elu(x) with alpha 1.6733 (Klambauer et al. 2017).
 *   hardsigmoid: alpha x + beta, limited to 0 .. 1: 1 / 6 and 1 / 2 in PyTorch, 0.2 and 1 / 2 in ONNX. The gradient is
 *                0 where it is limited.
 *   hardswish:   x hardsigmoid(x) with 1 / 6 and 1 / 2 (Howard et al. 2019).
 *   softplus:    log(1 + exp(beta x)) / beta; beta is not 0, and usually 1.
 *   threshold:   x where it is above the threshold or NaN, else the replacement. ONNX's ThresholdedRelu has 0.
 *   shrink:      0 within -lambda .. lambda, else x - bias above and x + bias below; lambda is not negative. PyTorch's
 *                softshrink has a bias of lambda, its hardshrink 0.
 *   round_mantissa: the nearest number with a mantissa of `bits` bits after the first one that is a multiple of
 *                2^least_exponent, to even: 3 and -9 are the numbers of F8_E4M3, 1 and -1 those of a 4-bit float
 *                (E2M1). There is no largest number: clamp x before or after. Infinities and NaN stay. The gradient is
 *                0. OUT_OF_RANGE: bits above 23, an exponent outside of -149 .. 127. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_leaky_relu(rondo_program *program, rondo_value value, float slope,
                                                          rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_elu(rondo_program *program, rondo_value value, float alpha,
                                                   rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_celu(rondo_program *program, rondo_value value, float alpha,
                                                    rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_selu(rondo_program *program, rondo_value value, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_hardsigmoid(rondo_program *program, rondo_value value, float alpha,
                                                           float beta, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_hardswish(rondo_program *program, rondo_value value,
                                                         rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_softplus(rondo_program *program, rondo_value value, float beta,
                                                        rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_round_mantissa(rondo_program *program, rondo_value value, unsigned bits,
                                                              int least_exponent, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_threshold(rondo_program *program, rondo_value value, float threshold,
                                                         float replacement, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_shrink(rondo_program *program, rondo_value value, float lambda,
                                                      float bias, rondo_value *out_value);

/*   prelu: x, but slope x below 0, of any numbers. The slope has the value's type and is broadcast to its shape; both
 *          have a gradient (He et al. 2015). For a slope for each channel of [n, c, h, w], as in PyTorch, reshape it to
 *          [c, 1, 1]. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_prelu(rondo_program *program, rondo_value value, rondo_value slope,
                                                     rondo_value *out_value);

/* Reductions -------------------------------------------------------------------------------------------------------
 *   sum, mean, prod, max, min: over the `dim_count` dimensions in `dims`, counted from 0, in any order; dims NULL:
 *         over all. Reduced dimensions are removed from the shape, or have size 1 if `keeps`. Any number, but mean
 *         takes floats alone; max and min of BOOL too. The result has the value's type; sums and products of
 *         integers wrap around, and have no gradient: cast I8, U8 and I32 to I64 first where PyTorch does. If
 *         several elements are the maximum, they share its gradient equally, as in PyTorch's amax; likewise for
 *         min. The result is NaN if an element is NaN.
 *   any, all: whether an element is not 0, or all are not; any type -> BOOL. No gradient.
 *   log_sum_exp: log(sum of exp(x)), any float, without overflow: as torch.logsumexp, also of infinities.
 *   vector_norm: (sum of |x|^order)^(1 / order), any float, as torch.linalg.vector_norm. Infinite orders give the
 *         largest and the smallest |x|, and 0 how many elements are not 0. The gradient of zeros is 0.
 *         OUT_OF_RANGE: the order is NaN.
 *   argmax, argmin: the index of the maximum or minimum along one dimension, any type -> I32. The first one if
 *         there are several; the first NaN if there is one. No gradient.
 *   argmax_last, argmin_last: the same, but the last one. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_sum(rondo_program *program, rondo_value value, const size_t *dims,
                                                   size_t dim_count, bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_mean(rondo_program *program, rondo_value value, const size_t *dims,
                                                    size_t dim_count, bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_max(rondo_program *program, rondo_value value, const size_t *dims,
                                                   size_t dim_count, bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_min(rondo_program *program, rondo_value value, const size_t *dims,
                                                   size_t dim_count, bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_prod(rondo_program *program, rondo_value value, const size_t *dims,
                                                    size_t dim_count, bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_any(rondo_program *program, rondo_value value, const size_t *dims,
                                                   size_t dim_count, bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_all(rondo_program *program, rondo_value value, const size_t *dims,
                                                   size_t dim_count, bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_log_sum_exp(rondo_program *program, rondo_value value,
                                                           const size_t *dims, size_t dim_count, bool keeps,
                                                           rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_vector_norm(rondo_program *program, rondo_value value, float order,
                                                           const size_t *dims, size_t dim_count, bool keeps,
                                                           rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_argmax(rondo_program *program, rondo_value value, size_t dimension,
                                                      bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_argmin(rondo_program *program, rondo_value value, size_t dimension,
                                                      bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_argmax_last(rondo_program *program, rondo_value value, size_t dimension,
                                                           bool keeps, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_argmin_last(rondo_program *program, rondo_value value, size_t dimension,
                                                           bool keeps, rondo_value *out_value);

/*   cumsum: the sums of the elements up to each one along a dimension, without itself if `exclusive`, from the end if
 *         `reversed`. Floats and integers, which wrap around and have no gradient. Sums of floats are kept in F32.
 *   cumprod: the products likewise. No gradient. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_cumsum(rondo_program *program, rondo_value value, size_t dimension,
                                                      bool exclusive, bool reversed, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_cumprod(rondo_program *program, rondo_value value, size_t dimension,
                                                       bool exclusive, bool reversed, rondo_value *out_value);

/*   topk: the k largest or smallest elements along a dimension, the best first, and their indices, I32. Floats and
 *         integers. Of equal elements, the first ones come first; NaN is larger than all numbers. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_topk(rondo_program *program, rondo_value value, size_t k,
                                                    size_t dimension, bool smallest, rondo_value *out_values,
                                                    rondo_value *out_indices);

/*   categorical: draws an index for each row of logits, as a generating program chooses a token: logits [n, v], any
 *         float, seeds I64 [n] and counters I32 [n] -> [n] I32. The probabilities are the softmax of the logits over
 *         the temperature; top_k keeps the most likely indices, and top_p after that those whose probabilities sum up
 *         to it, the most likely first, including the one that reaches it. An index of probability 0 is never drawn;
 *         with a NaN in a row, any is. What is drawn depends on the row, its seed and its counter alone: the uniform
 *         number is the upper 24 bits of the first word of rondo_philox(seed, counter, 0) (<rondo/random.h>). So a
 *         sequence of a session draws the same tokens in any batch, for example with a seed that the request gives as
 *         an input, and start + length of its row inputs as the counter (<rondo/session.h>). No gradient. options may
 *         be NULL. Errors: OUT_OF_RANGE (top_k, top_p). */
typedef struct rondo_categorical_options {
  uint32_t struct_size;
  float top_p;             /* 0: 1 */
  size_t top_k;            /* 0: v */
  rondo_value temperature; /* F32, a scalar or [n]; with 0 the most likely index is drawn. No value: 1 */
} rondo_categorical_options;
#define RONDO_CATEGORICAL_OPTIONS_INIT .struct_size = sizeof(rondo_categorical_options)

RONDO_API RONDO_MUST_USE rondo_status rondo_op_categorical(rondo_program *program, rondo_value logits,
                                                           rondo_value seeds, rondo_value counters,
                                                           const rondo_categorical_options *options,
                                                           rondo_value *out_value);

/*   softmax:     over the last dimension, any float.
 *   log_softmax: its logarithm, precise even if the softmax is nearly 0. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_softmax(rondo_program *program, rondo_value value,
                                                       rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_log_softmax(rondo_program *program, rondo_value value,
                                                           rondo_value *out_value);

/* Normalization ----------------------------------------------------------------------------------------------------
 *   layer_norm: over the last `dimensions` dimensions, any float: (x - mean) / sqrt(variance + epsilon) (Ba, Kiros,
 *               Hinton 2016), times scale, plus shift. scale and shift have the sizes of these dimensions and are F32
 *               or of the value's type; no value: none. variance: the mean of (x - mean)^2. epsilon: above 0.
 *   add_layer_norm: layer_norm of value + addend, of one shape and type. Also returns the sum, rounded to the type, in
 *               out_sum. The same bits as add and layer_norm, but in one kernel, and one for the gradient.
 *   rms_norm:   layer_norm without mean and shift: x / sqrt(mean of x^2 + epsilon) (Zhang, Sennrich 2019).
 *   batch_norm: [n, c, ...], any float: (x - mean) / sqrt(variance + epsilon), times scale, plus shift, each [c] F32;
 *               no value: none (Ioffe, Szegedy 2015). In training, mean and variance are those of the batch, over all
 *               dimensions except the second. At the end of the run, the running mean and variance, F32 states [c],
 *               move towards them by `momentum`; the variance is multiplied by m / (m - 1) for m elements, as in
 *               PyTorch. In inference, mean and variance are the running ones, [c] F32, which have no gradient and do
 *               not move. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_layer_norm(rondo_program *program, rondo_value value, rondo_value scale,
                                                          rondo_value shift, size_t dimensions, float epsilon,
                                                          rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_add_layer_norm(rondo_program *program, rondo_value value,
                                                              rondo_value addend, rondo_value scale, rondo_value shift,
                                                              size_t dimensions, float epsilon, rondo_value *out_sum,
                                                              rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_rms_norm(rondo_program *program, rondo_value value, rondo_value scale,
                                                        size_t dimensions, float epsilon, rondo_value *out_value);

/*   group_norm: value [n, c, ..] of any float: the channels are divided into groups, c a multiple of their number, and
 *               each group of each image is normalised by its mean and variance (Wu and He 2018). scale and shift, [c]
 *               of the value's type or F32, or no value, are applied to the channels. epsilon 0 means 1e-5.
 *   instance_norm: the same with a group for each channel (Ulyanov et al. 2016). */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_group_norm(rondo_program *program, rondo_value value, size_t groups,
                                                          rondo_value scale, rondo_value shift, float epsilon,
                                                          rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_instance_norm(rondo_program *program, rondo_value value,
                                                             rondo_value scale, rondo_value shift, float epsilon,
                                                             rondo_value *out_value);

typedef struct rondo_batch_norm_options {
  uint32_t struct_size;
  float momentum;                             /* 0 .. 1; 0.1 in PyTorch. 0: the running statistics do not move */
  float epsilon;                              /* 0 = 1e-5 */
  bool inference;                             /* use the running statistics */
  rondo_value scale, shift;                   /* no value: none */
  rondo_value running_mean, running_variance; /* both, or, in training, no value */
} rondo_batch_norm_options;
#define RONDO_BATCH_NORM_OPTIONS_INIT .struct_size = sizeof(rondo_batch_norm_options)

RONDO_API RONDO_MUST_USE rondo_status rondo_op_batch_norm(rondo_program *program, rondo_value value,
                                                          const rondo_batch_norm_options *options,
                                                          rondo_value *out_value);

/* Indices ----------------------------------------------------------------------------------------------------------
 *   embedding:     table [n, d] of any float, indices [...] I32 or I64 -> [..., d]; an index outside 0 <= i < n fails
 *                  the run (see rondo_compiled_read) and reads row 0.
 *   embedding_bag: the sum or mean of the rows of each bag of indices -> [bags, d]. Without offsets, the last dimension
 *                  of indices is a bag: [..., b] -> [..., d]. With offsets [bags] I32 or I64, indices are [m], and bag
 *                  i consists of the indices from offsets[i] to the beginning of the next bag, or to the end; an empty
 *                  bag gives zeros. Offsets ascend from 0; otherwise the run fails. weights have the table's type and
 *                  the indices' shape, or are no value: each row is multiplied by its weight; a mean is still divided
 *                  by the number of indices.
 *   embedding_bag_with: the same with options. With include_last_offset, as in torch.nn.EmbeddingBag and in the CSR
 *                  format, offsets are [bags + 1], and the last is the end of the last bag. Indices from there on are
 *                  in no bag: they are not read and may have any value, their weights have the gradient 0, and sparse
 *                  updates leave their rows alone. So one compiled program takes batches with fewer indices.
 *   gather:        along a dimension: value of any type, indices I32 or I64 with at most the value's sizes in the other
 *                  dimensions -> the indices' shape. For a matrix and dimension 1, y[i, j] = x[i, indices[i, j]]. An
 *                  index out of range fails the run and picks element 0.
 *   index_select:  the same with indices [...] for all: -> the value's shape with the indices' dimensions instead of
 *                  the dimension, as numpy.take. For a matrix, dimension 1 and indices [k], y[i, j] = x[i, indices[j]].
 *   scatter:       the value with updates along a dimension: value of any type, indices I32 or I64 and updates of one
 *                  shape, with at most the value's sizes in the other dimensions. For a matrix and dimension 1,
 *                  y[i, indices[i, j]] becomes updates[i, j]; of several updates of an element, the last one stays. An
 *                  index out of range fails the run, and its update is left out. If several updates replace one
 *                  element, each gets its whole gradient, as in PyTorch.
 *   scatter_add:   the same, but adds the updates, in order; not of BOOL. F16 and BF16 are rounded each time.
 *   scatter_reduce: the same with any reduction; products, maxima and minima have no gradient. OUT_OF_RANGE: another
 *                  reduction.
 *   gather_nd:     parts of a value of any type: indices [b.., m.., k] I32 or I64, of which the first
 *                  `batch_dimensions` are the value's, too -> [b.., m.., the value's dimensions after its next k]. For
 *                  no common dimensions and k = 2, y[i] = x[indices[i, 0], indices[i, 1]], as GatherND of ONNX.
 *                  Negative indices count from the end. A wrong index fails the run and names row 0.
 *   scatter_nd:    the value with updates of such parts, updates [m.., the value's dimensions after the first k]: as
 *                  ScatterND of ONNX, with any reduction. The updates of a part are combined in order: of replacements
 *                  the last one stays, and sums of F16 and BF16 are rounded once. BOOL: replaced only. A wrong index
 *                  fails the run, and its update is left out. Replacements and sums have a gradient, as those of
 *                  scatter.
 *   wrap_indices:  adds the size to indices, I32 or I64, that are negative, for operators above whose indices count
 *                  from 0 alone.
 *   one_hot:       indices [...] I32 or I64 -> [..., size] of any type: 1 at the index, else 0. An index outside
 *                  0 <= i < size fails the run, and its row is zeros.
 *   one_hot_values: the same along any dimension of the result, with `on` at the index, else `off`, which are one
 *                  element each, of one type. Negative indices count from the end; a wrong one gives `off` everywhere,
 *                  and the run does not fail, as OneHot of ONNX. on and off have a gradient.
 *   non_zero:      the places of the elements of a value of any type that are not 0, in their order: I64 [rank, bound],
 *                  a row for each dimension (a scalar has one), and how many there are, an I64 scalar. Places after the
 *                  count are zeros. `bound` is the number of places that there is memory for, and 0 means all elements;
 *                  if the count is more than the bound, the others are left out. The count is right in any case. No
 *                  gradient.
 *   compress:      the parts of a value of any type along a dimension where the condition, BOOL [n], is true, n at most
 *                  the size of the dimension: as Compress of ONNX, with `bound` of them, 0 for n. Those after the count
 *                  are zeros.
 *   unique:        the different elements of a value of any type, ascending, with a bound as non_zero: as torch.unique
 *                  of the flattened value (rondo_unique). -0 equals 0; each NaN is different from all others, and they
 *                  come last. values have a gradient, which goes to the first element of each group. On CUDA a block
 *                  sorts all elements, so the time grows with the square of their number.
 *   reverse_sequence: the first lengths[i] elements along the time dimension of each i of the batch dimension in the
 *                  reversed order, the others as they are. lengths I32 or I64 [batch]. A length below 0 or above
 *                  the size fails the run; 0 and 1 change nothing. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_embedding(rondo_program *program, rondo_value table, rondo_value indices,
                                                         rondo_value *out_value);

typedef enum rondo_combine { RONDO_COMBINE_MEAN, RONDO_COMBINE_SUM } rondo_combine;

RONDO_API RONDO_MUST_USE rondo_status rondo_op_embedding_bag(rondo_program *program, rondo_value table,
                                                             rondo_value indices, rondo_value offsets,
                                                             rondo_value weights, rondo_combine combine,
                                                             rondo_value *out_value);

typedef struct rondo_embedding_bag_options {
  uint32_t struct_size;
  rondo_combine combine;        /* 0: the mean */
  rondo_value offsets, weights; /* no value: none */
  bool include_last_offset;     /* needs offsets, at least 2 */
} rondo_embedding_bag_options;
#define RONDO_EMBEDDING_BAG_OPTIONS_INIT .struct_size = sizeof(rondo_embedding_bag_options)

RONDO_API RONDO_MUST_USE rondo_status rondo_op_embedding_bag_with(rondo_program *program, rondo_value table,
                                                                  rondo_value indices,
                                                                  const rondo_embedding_bag_options *options,
                                                                  rondo_value *out_value);

RONDO_API RONDO_MUST_USE rondo_status rondo_op_gather(rondo_program *program, rondo_value value, rondo_value indices,
                                                      size_t dimension, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_index_select(rondo_program *program, rondo_value value,
                                                            rondo_value indices, size_t dimension,
                                                            rondo_value *out_value);
typedef enum rondo_scatter_reduction {
  RONDO_SCATTER_REPLACE = 0,
  RONDO_SCATTER_ADD = 1,
  RONDO_SCATTER_MUL = 2,
  RONDO_SCATTER_MAX = 3,
  RONDO_SCATTER_MIN = 4
} rondo_scatter_reduction;

RONDO_API RONDO_MUST_USE rondo_status rondo_op_scatter(rondo_program *program, rondo_value value, size_t dimension,
                                                       rondo_value indices, rondo_value updates,
                                                       rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_scatter_add(rondo_program *program, rondo_value value, size_t dimension,
                                                           rondo_value indices, rondo_value updates,
                                                           rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_scatter_reduce(rondo_program *program, rondo_value value,
                                                              size_t dimension, rondo_value indices,
                                                              rondo_value updates, rondo_scatter_reduction reduction,
                                                              rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_gather_nd(rondo_program *program, rondo_value value, rondo_value indices,
                                                         size_t batch_dimensions, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_scatter_nd(rondo_program *program, rondo_value value,
                                                          rondo_value indices, rondo_value updates,
                                                          rondo_scatter_reduction reduction, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_wrap_indices(rondo_program *program, rondo_value indices, size_t size,
                                                            rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_one_hot(rondo_program *program, rondo_value indices, size_t size,
                                                       rondo_type type, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_one_hot_values(rondo_program *program, rondo_value indices, size_t size,
                                                              size_t dimension, rondo_value off, rondo_value on,
                                                              rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_non_zero(rondo_program *program, rondo_value value, size_t bound,
                                                        rondo_value *out_indices, rondo_value *out_count);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_compress(rondo_program *program, rondo_value value,
                                                        rondo_value condition, size_t dimension, size_t bound,
                                                        rondo_value *out_value, rondo_value *out_count);

/* Results of unique. A group is the elements that are equal. */
typedef struct rondo_unique {
  rondo_value values; /* [bound], the value's type: an element of each group, ascending; zeros after the count */
  rondo_value count;  /* I64 scalar: how many groups there are, even if they are more than the bound */
  rondo_value first; /* [bound] I64: where the group's first element is in the flattened value; zeros after the count */
  rondo_value counts;  /* [bound] I64: how many elements the group has; zeros after the count */
  rondo_value inverse; /* the value's shape, I64: the group of each element, which may be the bound or more */
} rondo_unique;
RONDO_API RONDO_MUST_USE rondo_status rondo_op_unique(rondo_program *program, rondo_value value, size_t bound,
                                                      rondo_unique *out_unique);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_reverse_sequence(rondo_program *program, rondo_value value,
                                                                rondo_value lengths, size_t time_dimension,
                                                                size_t batch_dimension, rondo_value *out_value);

/* Random -----------------------------------------------------------------------------------------------------------
 *   dropout: any float: each element is 0 with a probability, else divided by 1 - probability (Srivastava et al. 2014).
 *            `probability` is a scalar F32, read when the program runs; a cell can be used. 0 turns dropout off, for
 *            inference, and the result is the value itself; 1 drops all elements. It has no gradient. The numbers are
 *            those of rondo_philox (<rondo/random.h>), with the seed and offset in the I64 state "random", [2]. Write
 *            {seed, 0} to it to start a series; save it with the weights to continue a series later. Each run draws new
 *            numbers, the same in recorded and eager runs and on each device. The gradient draws them again, so no mask
 *            is stored. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_dropout(rondo_program *program, rondo_value value,
                                                       rondo_value probability, rondo_value *out_value);

/* Losses -----------------------------------------------------------------------------------------------------------
 *   cross_entropy: logits [..., n] of any float, labels [...] I32 or I64 -> scalar F32: the mean over the labels of
 *                  -log softmax(logits)[label]. The classes are the last dimension: permute [n, c, h, w], as PyTorch
 *                  has it, to [n, h, w, c]. A label outside 0 <= i < n fails the run, like an index of embedding;
 *                  -100, which PyTorch ignores, does too unless it is the ignored label.
 *                  Options: rows with a certain label are ignored, also in the mean, which is 0 if all rows are
 *                  ignored; label smoothing s (Szegedy et al. 2016), 0 .. 1: the label's share is 1 - s, and s is
 *                  spread evenly; and a weight for each class, which multiplies its terms: the mean is the sum of the
 *                  rows divided by the sum of their labels' weights, as in PyTorch, and 0 if that is 0. Weights have
 *                  no gradient.
 *   mse:             value, target of one float type and shape -> scalar F32: the mean or sum of (value - target)^2.
 *   bce_with_logits: logits, target likewise: the mean or sum of the binary cross entropy of sigmoid(logits) with
 *                    target, 0 .. 1, in a form that does not overflow. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_cross_entropy(rondo_program *program, rondo_value logits,
                                                             rondo_value labels, rondo_value *out_value);

typedef struct rondo_cross_entropy_options {
  uint32_t struct_size;
  float label_smoothing;
  int64_t ignored_label; /* any number; used if ignores_label */
  bool ignores_label;    /* false: no row is ignored */
  rondo_value weights;   /* [n] F32, a weight for each class; no value: all are 1 */
} rondo_cross_entropy_options;
#define RONDO_CROSS_ENTROPY_OPTIONS_INIT .struct_size = sizeof(rondo_cross_entropy_options)

/* options may be NULL: none. OUT_OF_RANGE for a smoothing that is not 0 .. 1; SHAPE and TYPE for other weights. */
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
 * Any type; integers have no gradient. Dimensions are counted from 0.
 *   reshape:   the same elements in another shape, of which all sizes are given. No copy.
 *   permute:   the dimensions in another order: dimension i of the result is dimension order[i] of the value. No copy
 *              if only dimensions of size 1 move.
 *   transpose: exchanges dimensions a and b.
 *   slice:     in each dimension i, length[i] elements from start[i], every step[i]-th (step NULL: every element). No
 *              copy if it selects all elements.
 *   pad:       adds before[i] elements before dimension i and after[i] after it: a number (constant), the elements
 *              mirrored at the edge without repeating it (reflect, fewer than there are), the edge (replicate), or
 *              those of the other end (circular, no more than there are). With constant, a negative count removes
 *              elements. OUT_OF_RANGE: another mode, or a number that an integer type cannot represent.
 *   concat:    joins values along a dimension; their other sizes are equal. One value is the result itself, also for
 *              split. out_value may be an entry of the list, also for stack.
 *   stack:     joins values of one shape along a new dimension.
 *   split:     splits into values along a dimension. The lengths add up to its size. One operator handles 8 values, so
 *              more values need several operators in sequence: elements are copied twice for up to 64 values, three
 *              times for up to 512, and so on. The same holds for concat and stack.
 *   stop_gradient: the value itself; gradients do not pass through it, as if it were an input. No copy.
 *   flip:      reverses the order along the `dim_count` dimensions in `dims`.
 *   roll:      moves the elements along dimension dims[i] by shifts[i], which may be negative; those that leave at one
 *              end come back at the other, as torch.roll.
 *   tile:      repeats[i] copies of the value along each dimension i, as numpy.tile.
 *   tril, triu: matrices [.., m, n] with zeros above the diagonal, or below it. Diagonal 1 is the one above the main
 *              diagonal, 0, and -1 the one below.
 *   depth_to_space: an image [n, c, h, w] of any type -> [n, c / block^2, h block, w block]: each block of the result
 *              has an element of block^2 channels. Channel (i block + j) (c / block^2) + k goes to element [i, j] of a
 *              block of channel k (DCR of ONNX); with channels_first, channel (k block + i) block + j (CRD, and
 *              pixel_shuffle of PyTorch).
 *   space_to_depth: the inverse of it, in either order (SpaceToDepth of ONNX; channels_first: pixel_unshuffle).
 *   bitcast:   the bytes as another type, of which the last dimension then has as many. No copy, no gradient. */
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
typedef enum rondo_pad_mode {
  RONDO_PAD_CONSTANT = 0,
  RONDO_PAD_REFLECT = 1,
  RONDO_PAD_REPLICATE = 2,
  RONDO_PAD_CIRCULAR = 3
} rondo_pad_mode;

RONDO_API RONDO_MUST_USE rondo_status rondo_op_pad(rondo_program *program, rondo_value value, const int64_t *before,
                                                   const int64_t *after, rondo_pad_mode mode, double number,
                                                   rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_concat(rondo_program *program, const rondo_value *values, size_t count,
                                                      size_t dimension, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_stack(rondo_program *program, const rondo_value *values, size_t count,
                                                     size_t dimension, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_split(rondo_program *program, rondo_value value, size_t dimension,
                                                     const size_t *lengths, size_t count, rondo_value *out_values);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_flip(rondo_program *program, rondo_value value, const size_t *dims,
                                                    size_t dim_count, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_roll(rondo_program *program, rondo_value value, const int64_t *shifts,
                                                    const size_t *dims, size_t dim_count, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_tile(rondo_program *program, rondo_value value, const size_t *repeats,
                                                    rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_tril(rondo_program *program, rondo_value value, int64_t diagonal,
                                                    rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_triu(rondo_program *program, rondo_value value, int64_t diagonal,
                                                    rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_depth_to_space(rondo_program *program, rondo_value value, size_t block,
                                                              bool channels_first, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_space_to_depth(rondo_program *program, rondo_value value, size_t block,
                                                              bool channels_first, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_bitcast(rondo_program *program, rondo_value value, rondo_type type,
                                                       rondo_value *out_value);

/* Constants --------------------------------------------------------------------------------------------------------
 * Computed again in each run, in memory that is shared like that of other results. Any type, rounded to the nearest.
 *   full:   every element is `number`; zeros, ones.
 *   arange: [count]: first, first + step, ...
 *   eye:    [rows, columns]: 1 on a diagonal, else 0. Diagonal 1 is the one above the main diagonal, 0.
 * OUT_OF_RANGE: a number that an integer type cannot represent; I64 up to 2^53. */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_full(rondo_program *program, rondo_type type, const size_t *shape,
                                                    size_t rank, double number, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_arange(rondo_program *program, rondo_type type, size_t count,
                                                      double first, double step, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_op_eye(rondo_program *program, rondo_type type, size_t rows, size_t columns,
                                                   int64_t diagonal, rondo_value *out_value);

/* Lists ------------------------------------------------------------------------------------------------------------ */

typedef struct rondo_operator_info {
  uint32_t struct_size; /* RONDO_OPERATOR_INFO_INIT sets it; 0 means the library's own */
  uint32_t types;       /* bit 1 << t is set if it takes values of type t; without inputs, if it returns them */
  const char *name;     /* as in messages; static, or valid as long as the operator (<rondo/user_operator.h>) */
  bool has_gradient;
} rondo_operator_info;
#define RONDO_OPERATOR_INFO_INIT .struct_size = sizeof(rondo_operator_info)

/* Lists the operators, one for each index: those of this header, which run on every kind of device, and then those of
 * the program (<rondo/user_operator.h>). Some functions of this header choose among several operators. Past the last:
 * NOT_FOUND. Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_enumerate(size_t index, rondo_operator_info *out_info);

/* Libraries that compute operators if they are installed: cuBLASLt and cuDNN on CUDA devices, oneDNN (for products and
 * convolutions) and CBLAS on CPU devices. If one is missing, another library or Rondo's own kernels do its work. */
typedef struct rondo_library_info {
  uint32_t struct_size; /* RONDO_LIBRARY_INFO_INIT sets it; 0 means the library's own */
  const char *name;     /* "cuDNN" */
  const char *purpose;  /* what it computes: "convolutions on CUDA devices" */
  const char *path;     /* the name under which it was found; NULL if it is not used */
  const char *reason;   /* why it is not used: the problem of the first name that opens, or of each; "" if it is used */
  const char *note;     /* what its users should know, such as a bug of its release that Rondo works around; or "" */
} rondo_library_info;
#define RONDO_LIBRARY_INFO_INIT .struct_size = sizeof(rondo_library_info)

/* Lists the libraries, one for each index. Loads the library if it is not loaded yet. It stays loaded, and the
 * information stays the same and valid. Past the last: NOT_FOUND. Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_library_enumerate(size_t index, rondo_library_info *out_info);

RONDO_EXTERN_C_END

#endif

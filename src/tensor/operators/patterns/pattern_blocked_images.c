/* SPDX-License-Identifier: MIT
 * Images in blocks of channels, [n, c / block, h, w, block], between operators. oneDNN computes convolutions of F32 in
 * this layout, and would copy the images of each of them to and from the plain one. With AVX-512, a block has all
 * channels. So it has on CUDA, where cuDNN computes 16-bit ones together with a sum and a relu after them. A value in
 * blocks is an ordinary value of that shape, so element-wise operators, pooling along h and w, and concatenation of
 * channels work on it as they are.
 *
 * Images of 8-bit integers have one block of all channels, for Rondo's own convolutions (conv_integer_blocked.c).
 *
 * Operators that can take blocks and exchange images form a group. A group is rewritten if its convolutions save more
 * copies than the images that enter and leave it need. Values are converted where they are read, at most once in each
 * direction. Threads: any number, for different programs.
 */
#include <assert.h>
#include <string.h>

#include "base/allocation.h"
#include "base/environment.h"
#include "tensor/compile/rewrite/program_copy.h"
#include "tensor/compile/schedule.h"
#include "tensor/operators/convolution/conv.h"
#include "tensor/operators/convolution/conv_onednn.h"
#include "tensor/operators/integer/integer_product.h"
#include "tensor/operators/normalization/batch_norm.h"
#include "tensor/operators/patterns/pattern_batch_norm.h"
#include "tensor/operators/patterns/pattern_finder.h"
#include "tensor/operators/reduction/reduction.h"
#include "tensor/vendor/compute_libraries.h"

enum { X, WEIGHT, BIAS }; /* inputs of a convolution; most other operators have their image at X too */

enum { CHANNEL_UNIT = 8 }; /* cuDNN's engines for 16 bits read so many channels at once */

typedef struct blocker {
  rondo_program_copier copier;
  rondo_scratch scratch;
  bool is_cuda;
  size_t block;              /* channels of a block of floats; RONDO_CONV_ALL_CHANNELS, also on CUDA; 1: no blocks */
  bool *runs;                /* by operation of `from`, as all of these: */
  const struct rule **rules; /* how it takes blocks; NULL: it does not */
  uint32_t *convolutions;    /* on CUDA, the convolution that it is computed with; RONDO_NO_VALUE: none */
  bool *is_joined;           /* it is computed with a later one */
  uint32_t *groups;          /* a member of its group nearer to the first one, or itself */
  double *gains;             /* of the first of a group: elements that are not copied, less those that are converted */
  bool *leaves;              /* by value of `from`: something reads it in plain form */
  uint32_t *readers;         /* by value: inputs of operations that run, and outputs */
  uint32_t *blocked;         /* by value: that of `to` in blocks, or RONDO_NO_VALUE */
  uint32_t count;            /* of convolutions that are rewritten */
} blocker;

/* How operations of some kind take blocks. */
typedef struct rule {
  bool (*takes)(const blocker *b, const rondo_operation *operation);
  bool (*reads_blocks)(const blocker *b, const rondo_operation *operation, uint32_t input); /* of what it takes */
  rondo_status (*add)(blocker *b, const rondo_operation *operation);
} rule;

/* Values ----------------------------------------------------------------------------------------------------------- */

static const rondo_shape *shape_in(const blocker *b, uint32_t value) {
  return rondo_program_shape(b->copier.from, value);
}

static bool is_byte(rondo_type type) { return type == RONDO_I8 || type == RONDO_U8; }

/* Whether images of floats have a single block. */
static bool are_last(const blocker *b) { return b->block == RONDO_CONV_ALL_CHANNELS; }

/* The channels of a block of an image of the type that has so many. */
static size_t block_of(const blocker *b, rondo_type type, size_t channels) {
  return is_byte(type) || are_last(b) ? channels : b->block;
}

/* Whether the value can have blocks. */
static bool is_image(const blocker *b, uint32_t value) {
  const rondo_shape *shape = shape_in(b, value);
  if (shape->rank != 4) return false;
  if (b->is_cuda) return (shape->type == RONDO_F16 || shape->type == RONDO_BF16) && shape->dims[1] % CHANNEL_UNIT == 0;
  if (is_byte(shape->type)) return shape->dims[1] % 4 == 0;
  if (shape->type != RONDO_F32 || b->block == 1) return false;
  return are_last(b) ? shape->dims[1] > 1 : shape->dims[1] % b->block == 0;
}

/* An image in blocks of `block` channels, or with them at another place: [n, c / block, block, h, w]. */
static rondo_shape blocked_shape(const rondo_shape *s, size_t block) {
  return (rondo_shape){
      .type = s->type, .rank = 5, .dims = {s->dims[0], s->dims[1] / block, s->dims[2], s->dims[3], block}};
}
static rondo_shape split_shape(const rondo_shape *s, size_t block) {
  return (rondo_shape){
      .type = s->type, .rank = 5, .dims = {s->dims[0], s->dims[1] / block, block, s->dims[2], s->dims[3]}};
}

static rondo_status reshape(blocker *b, uint32_t value, rondo_shape shape, uint32_t *out) {
  return rondo_program_add_shaped(b->copier.to, &rondo_operator_reshape, value, shape, out);
}

static rondo_status permute(blocker *b, uint32_t value, const size_t order[5], uint32_t *out) {
  rondo_attributes attributes = {.size_count = 5};
  memcpy(attributes.sizes, order, 5 * sizeof *order);
  return rondo_program_add(b->copier.to, &rondo_operator_permute, &value, 1, &attributes, out);
}

/* Images of one element are the same in both forms. */
static bool is_moved(const rondo_shape *image) { return image->dims[2] * image->dims[3] > 1; }

/* Makes the plain form of a value, and returns it. */
static rondo_status find_plain(blocker *b, uint32_t value, uint32_t *out) {
  const rondo_shape shape = *shape_in(b, value);
  uint32_t *plain = &b->copier.values[value], from = b->blocked[value];
  if (*plain == RONDO_NO_VALUE) {
    assert(from != RONDO_NO_VALUE);
    if (is_moved(&shape)) RONDO_TRY(permute(b, from, (const size_t[]){0, 1, 4, 2, 3}, &from));
    RONDO_TRY(reshape(b, from, shape, plain));
  }
  *out = *plain;
  return RONDO_OK;
}

/* The same of the form in blocks. */
static rondo_status find_blocked(blocker *b, uint32_t value, uint32_t *out) {
  const rondo_shape shape = *shape_in(b, value);
  const size_t block = block_of(b, shape.type, shape.dims[1]);
  uint32_t *blocked = &b->blocked[value], from = b->copier.values[value];
  assert(is_image(b, value));
  if (*blocked == RONDO_NO_VALUE) {
    assert(from != RONDO_NO_VALUE);
    if (is_moved(&shape)) {
      RONDO_TRY(reshape(b, from, split_shape(&shape, block), &from));
      RONDO_TRY(permute(b, from, (const size_t[]){0, 1, 3, 4, 2}, blocked));
    } else {
      RONDO_TRY(reshape(b, from, blocked_shape(&shape, block), blocked));
    }
  }
  *out = *blocked;
  return RONDO_OK;
}

/* Adds an operation whose first result is that of `of` in blocks. */
static rondo_status add(blocker *b, const rondo_operation *of, const rondo_operator *row, const uint32_t *inputs,
                        uint32_t count, const rondo_attributes *attributes) {
  uint32_t results[RONDO_MAX_RESULTS];
  RONDO_TRY(rondo_program_add(b->copier.to, row, inputs, count, attributes, results));
  b->blocked[of->results[0]] = results[0];
  return RONDO_OK;
}

/* Convolutions ----------------------------------------------------------------------------------------------------- */

/* An image with fewer channels than a unit gets more, which are 0. */
static bool takes_cudnn_conv(const rondo_conv_shape *shape) {
  const double results = (double)(shape->images * shape->out_channels * rondo_conv_out(shape));
  const double products = results * (double)(shape->in_channels * rondo_conv_taps(shape));
  if (shape->groups > 1 || shape->activation != RONDO_ACTIVATION_NONE) return false;
  if (shape->in_channels > CHANNEL_UNIT && shape->in_channels % CHANNEL_UNIT != 0) return false;
  return products >= (double)rondo_option_number(RONDO_OPTION_CUDNN_LEAST);
}

static bool takes_conv(const blocker *b, const rondo_operation *operation) {
  if (operation->row != &rondo_operator_conv || !is_image(b, operation->results[0])) return false;
  const rondo_shape *x = shape_in(b, operation->inputs[X]);
  const rondo_conv_shape shape = rondo_conv_shape_of(x, shape_in(b, operation->inputs[WEIGHT]), &operation->attributes);
  if (b->is_cuda) return takes_cudnn_conv(&shape);
  const rondo_conv_blocks blocks = {.x = is_image(b, operation->inputs[X]) ? block_of(b, RONDO_F32, x->dims[1]) : 1,
                                    .y = block_of(b, RONDO_F32, shape_in(b, operation->results[0])->dims[1]),
                                    .are_last = are_last(b)};
  return rondo_onednn_makes_blocks(&shape, operation->inputs[BIAS] != RONDO_NO_VALUE, blocks);
}

static bool reads_image(const blocker *b, const rondo_operation *operation, uint32_t input) {
  return input == X && is_image(b, operation->inputs[X]);
}

/* With as many channels as a unit. */
static rondo_status pad_channels(blocker *b, uint32_t value, uint32_t *out) {
  rondo_program *to = b->copier.to;
  const int64_t before[4] = {0};
  const int64_t after[4] = {0, CHANNEL_UNIT - (int64_t)rondo_program_shape(to, value)->dims[1]};
  rondo_value padded;
  RONDO_TRY(rondo_op_pad(to, rondo_program_tag(to, value), before, after, RONDO_PAD_CONSTANT, 0, &padded));
  return rondo_program_resolve(to, padded, "conv", "its image or weight", out);
}

/* [n, c, h, w] as [n, h, w, c]. */
static rondo_status put_channels_last(blocker *b, uint32_t value, uint32_t *out) {
  const rondo_shape s = *rondo_program_shape(b->copier.to, value);
  const rondo_attributes order = {.sizes = {0, 2, 3, 1}, .size_count = 4};
  if (is_moved(&s)) return rondo_program_add(b->copier.to, &rondo_operator_permute, &value, 1, &order, out);
  return reshape(b, value, (rondo_shape){.type = s.type, .rank = 4, .dims = {s.dims[0], 1, 1, s.dims[1]}}, out);
}

/* The image and the weight as conv_channels_last reads them. */
static rondo_status find_factors_last(blocker *b, const rondo_operation *operation, uint32_t *inputs) {
  RONDO_TRY(find_plain(b, operation->inputs[WEIGHT], &inputs[WEIGHT]));
  if (is_image(b, operation->inputs[X])) {
    RONDO_TRY(find_blocked(b, operation->inputs[X], &inputs[X]));
    return put_channels_last(b, inputs[WEIGHT], &inputs[WEIGHT]);
  }
  RONDO_TRY(find_plain(b, operation->inputs[X], &inputs[X]));
  RONDO_TRY(pad_channels(b, inputs[X], &inputs[X]));
  RONDO_TRY(pad_channels(b, inputs[WEIGHT], &inputs[WEIGHT]));
  RONDO_TRY(put_channels_last(b, inputs[WEIGHT], &inputs[WEIGHT]));
  RONDO_TRY(put_channels_last(b, inputs[X], &inputs[X]));
  const rondo_shape s = *rondo_program_shape(b->copier.to, inputs[X]);
  return reshape(b, inputs[X],
                 (rondo_shape){.type = s.type, .rank = 5, .dims = {s.dims[0], 1, s.dims[1], s.dims[2], s.dims[3]}},
                 &inputs[X]);
}

/* The values that are added to the result of the convolution; RONDO_NO_VALUE: none. */
static uint32_t addend_of(const blocker *b, const rondo_operation *conv, const rondo_operation *last) {
  while (last->row == &rondo_operator_relu)
    last = &b->copier.from->operations.items[b->copier.from->values.items[last->inputs[0]].operation];
  if (last == conv) return RONDO_NO_VALUE;
  return last->inputs[last->inputs[0] == conv->results[0] ? 1 : 0];
}

/* A convolution, and the sum and relu after it, whose result is that of `last`. */
static rondo_status add_cudnn_conv(blocker *b, const rondo_operation *conv, const rondo_operation *last) {
  enum { ADDEND = BIAS + 1 };
  rondo_attributes attributes = conv->attributes;
  uint32_t inputs[ADDEND + 1] = {RONDO_NO_VALUE, RONDO_NO_VALUE, RONDO_NO_VALUE, RONDO_NO_VALUE};
  const uint32_t addend = addend_of(b, conv, last);
  RONDO_TRY(find_factors_last(b, conv, inputs));
  if (conv->inputs[BIAS] != RONDO_NO_VALUE) RONDO_TRY(find_plain(b, conv->inputs[BIAS], &inputs[BIAS]));
  if (addend != RONDO_NO_VALUE) RONDO_TRY(find_blocked(b, addend, &inputs[ADDEND]));
  if (last->row == &rondo_operator_relu) attributes.sizes[RONDO_CONV_ACTIVATION] = RONDO_ACTIVATION_RELU;
  b->count++;
  return add(b, last, &rondo_operator_conv_channels_last, inputs, ADDEND + 1, &attributes);
}

/* An image that cannot have blocks, as the first one of a network, stays plain. */
static rondo_status add_conv(blocker *b, const rondo_operation *operation) {
  if (b->is_cuda) return add_cudnn_conv(b, operation, operation);
  rondo_attributes attributes = operation->attributes;
  uint32_t inputs[BIAS + 1];
  const bool has_bias = operation->inputs[BIAS] != RONDO_NO_VALUE;
  RONDO_TRY((is_image(b, operation->inputs[X]) ? find_blocked : find_plain)(b, operation->inputs[X], &inputs[X]));
  RONDO_TRY(find_plain(b, operation->inputs[WEIGHT], &inputs[WEIGHT]));
  if (has_bias) RONDO_TRY(find_plain(b, operation->inputs[BIAS], &inputs[BIAS]));
  attributes.sizes[RONDO_CONV_BLOCK] = block_of(b, RONDO_F32, shape_in(b, operation->results[0])->dims[1]);
  attributes.sizes[RONDO_CONV_LAST] = are_last(b);
  b->count++;
  return add(b, operation, &rondo_operator_conv_blocked, inputs, has_bias ? BIAS + 1 : BIAS, &attributes);
}

/* Transposed convolutions ------------------------------------------------------------------------------------------ */

enum { T_WEIGHT, T_X }; /* inputs */

/* Those whose windows lie side by side and fill the image, where channels come last. */
static bool takes_transposed(const blocker *b, const rondo_operation *operation) {
  const size_t *sizes = operation->attributes.sizes;
  if (b->is_cuda || operation->row != &rondo_operator_conv_transpose || !are_last(b) || sizes[RONDO_CONV_GROUPS] != 1)
    return false;
  if (!is_image(b, operation->inputs[T_X]) || !is_image(b, operation->results[0])) return false;
  const rondo_shape *x = shape_in(b, operation->inputs[T_X]), *y = shape_in(b, operation->results[0]);
  for (size_t axis = RONDO_HEIGHT; axis <= RONDO_WIDTH; axis++) {
    const size_t kernel = sizes[RONDO_WINDOW_KERNEL + axis], dimension = 1 + axis;
    if (sizes[RONDO_WINDOW_STRIDE + axis] != kernel || y->dims[dimension] != x->dims[dimension] * kernel) return false;
    if (sizes[RONDO_WINDOW_PADDING + axis] != 0) return false; /* an output padding may make up for it */
    if (kernel > 1 && sizes[RONDO_WINDOW_DILATION + axis] != 1) return false;
  }
  return true;
}

static bool reads_transposed(const blocker *b, const rondo_operation *operation, uint32_t input) {
  return input == T_X && is_image(b, operation->inputs[T_X]);
}

/* The weights [c, o, kh, kw] as a matrix [c, kh kw o]. */
static rondo_status find_window_matrix(blocker *b, uint32_t value, uint32_t *out) {
  const size_t *d = shape_in(b, value)->dims, taps = d[2] * d[3];
  const rondo_attributes swap = {.size_count = 3, .sizes = {0, 2, 1}};
  uint32_t weight;
  RONDO_TRY(find_plain(b, value, &weight));
  RONDO_TRY(reshape(b, weight, (rondo_shape){.type = RONDO_F32, .rank = 3, .dims = {d[0], d[1], taps}}, &weight));
  RONDO_TRY(rondo_program_add(b->copier.to, &rondo_operator_permute, &weight, 1, &swap, &weight));
  return reshape(b, weight, (rondo_shape){.type = RONDO_F32, .rank = 2, .dims = {d[0], taps * d[1]}}, out);
}

/* A product [n h w, c] · [c, kh kw o], whose result has the rows of windows between each other. */
static rondo_status add_transposed(blocker *b, const rondo_operation *operation) {
  const rondo_shape x = *shape_in(b, operation->inputs[T_X]), y = *shape_in(b, operation->results[0]);
  const size_t *in = x.dims, down = y.dims[2] / in[2], row = y.dims[3] / in[3] * y.dims[1];
  const rondo_shape rows = {.type = RONDO_F32, .rank = 2, .dims = {in[0] * in[2] * in[3], in[1]}};
  const rondo_shape windows = {.type = RONDO_F32, .rank = 5, .dims = {in[0], in[2], in[3], down, row}};
  const rondo_attributes plain = {0};
  uint32_t factors[2], made;
  RONDO_TRY(find_blocked(b, operation->inputs[T_X], &factors[0]));
  RONDO_TRY(reshape(b, factors[0], rows, &factors[0]));
  RONDO_TRY(find_window_matrix(b, operation->inputs[T_WEIGHT], &factors[1]));
  RONDO_TRY(rondo_program_add(b->copier.to, &rondo_operator_matmul, factors, 2, &plain, &made));
  RONDO_TRY(reshape(b, made, windows, &made));
  RONDO_TRY(permute(b, made, (const size_t[]){0, 1, 3, 2, 4}, &made));
  return reshape(b, made, blocked_shape(&y, y.dims[1]), &b->blocked[operation->results[0]]);
}

/* Convolutions and sums of bytes ----------------------------------------------------------------------------------- */

static bool takes_conv_integer(const blocker *b, const rondo_operation *operation) {
  return operation->row == &rondo_operator_conv_integer && is_image(b, operation->results[0]) &&
         rondo_conv_integer_takes_blocks(shape_in(b, operation->inputs[X]), shape_in(b, operation->inputs[WEIGHT]),
                                         &operation->attributes);
}

/* Adds an operation whose inputs with blocks are `images`, the first ones. */
static rondo_status add_bytes(blocker *b, const rondo_operation *operation, const rondo_operator *row,
                              uint32_t images) {
  uint32_t inputs[RONDO_MAX_OPERANDS], count = 0;
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
    inputs[k] = RONDO_NO_VALUE;
    if (operation->inputs[k] == RONDO_NO_VALUE) continue;
    const bool has_blocks = k < images && is_image(b, operation->inputs[k]);
    RONDO_TRY((has_blocks ? find_blocked : find_plain)(b, operation->inputs[k], &inputs[k]));
    count = k + 1;
  }
  return add(b, operation, row, inputs, count, &operation->attributes);
}

static rondo_status add_conv_integer(blocker *b, const rondo_operation *operation) {
  b->count++;
  return add_bytes(b, operation, &rondo_operator_conv_integer_blocked, 1);
}

static bool takes_sum_of_bytes(const blocker *b, const rondo_operation *operation) {
  return operation->row == &rondo_operator_add_integer && is_image(b, operation->results[0]);
}

static bool reads_terms(const blocker *b, const rondo_operation *operation, uint32_t input) {
  return input < 2 && is_image(b, operation->inputs[input]);
}

static rondo_status add_sum_of_bytes(blocker *b, const rondo_operation *operation) {
  return add_bytes(b, operation, &rondo_operator_add_integer, 2);
}

/* Element-wise operators ------------------------------------------------------------------------------------------- */

/* The shape of an operand that is broadcast to an image, in blocks; false: it does not have one by reshaping. */
static bool small_shape(const blocker *b, const rondo_shape *operand, rondo_shape *out) {
  size_t d[4] = {1, 1, 1, 1};
  if (operand->rank > 4) return false;
  memcpy(d + 4 - operand->rank, operand->dims, operand->rank * sizeof *d);
  const bool has_channels = d[1] > 1;
  const size_t block = block_of(b, operand->type, d[1]);
  *out = (rondo_shape){.type = operand->type,
                       .rank = 5,
                       .dims = {d[0], has_channels ? d[1] / block : 1, d[2], d[3], has_channels ? block : 1}};
  return !has_channels || (d[1] % block == 0 && d[2] * d[3] == 1);
}

static bool is_whole(const blocker *b, const rondo_operation *operation, uint32_t input) {
  return rondo_shape_same(shape_in(b, operation->inputs[input]), shape_in(b, operation->results[0]));
}

/* Of the image's type alone. */
static bool takes_elements(const blocker *b, const rondo_operation *operation) {
  const rondo_element *element = &operation->row->element;
  bool reads_any = false;
  if (element->compute == NULL || element->others > 0 || operation->row == &rondo_operator_expand) return false;
  if (!is_image(b, operation->results[0])) return false;
  const rondo_shape *image = shape_in(b, operation->results[0]);
  RONDO_EACH_INPUT(k, operation) {
    rondo_shape unused;
    const rondo_shape *shape = shape_in(b, operation->inputs[k]);
    if (shape->type != image->type || (!is_whole(b, operation, k) && !small_shape(b, shape, &unused))) return false;
    reads_any |= is_whole(b, operation, k);
  }
  return reads_any;
}

static rondo_status add_elements(blocker *b, const rondo_operation *operation) {
  uint32_t inputs[RONDO_MAX_OPERANDS], count = 0;
  RONDO_EACH_INPUT(k, operation) {
    const uint32_t value = operation->inputs[k];
    rondo_shape shape;
    count = k + 1;
    if (is_whole(b, operation, k)) {
      RONDO_TRY(find_blocked(b, value, &inputs[k]));
      continue;
    }
    RONDO_TRY(find_plain(b, value, &inputs[k]));
    (void)small_shape(b, shape_in(b, value), &shape);
    if (rondo_shape_elements(&shape) > 1) RONDO_TRY(reshape(b, inputs[k], shape, &inputs[k]));
  }
  return add(b, operation, operation->row, inputs, count, &operation->attributes);
}

/* Pooling ---------------------------------------------------------------------------------------------------------- */

static bool is_read(const blocker *b, const rondo_operation *operation, uint32_t result) {
  return b->readers[operation->results[result]] > 0;
}

static bool takes_pooling(const blocker *b, const rondo_operation *operation) {
  if (operation->row == &rondo_operator_max_pool && is_read(b, operation, 1)) return false; /* places in plain images */
  return (operation->row == &rondo_operator_max_pool || operation->row == &rondo_operator_avg_pool ||
          operation->row == &rondo_operator_max_pool_bytes) &&
         is_image(b, operation->inputs[X]);
}

/* Moves the sizes along h and w by one axis; the window is 1 along the blocks. */
static rondo_status add_pooling(blocker *b, const rondo_operation *operation) {
  static const struct {
    size_t sizes, of_block;
  } parts[] = {{RONDO_WINDOW_KERNEL, 1},
               {RONDO_WINDOW_STRIDE, 1},
               {RONDO_WINDOW_PADDING, 0},
               {RONDO_WINDOW_AFTER, 0},
               {RONDO_WINDOW_DILATION, 1}};
  rondo_attributes attributes = operation->attributes;
  uint32_t x;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    size_t *sizes = attributes.sizes + parts[i].sizes;
    sizes[RONDO_DEPTH] = sizes[RONDO_HEIGHT];
    sizes[RONDO_HEIGHT] = sizes[RONDO_WIDTH];
    sizes[RONDO_WIDTH] = parts[i].of_block;
  }
  RONDO_TRY(find_blocked(b, operation->inputs[X], &x));
  return add(b, operation, operation->row, &x, 1, &attributes);
}

/* Concatenation ---------------------------------------------------------------------------------------------------- */

static bool takes_concat(const blocker *b, const rondo_operation *operation) {
  if (operation->row != &rondo_operator_concat || operation->attributes.sizes[0] != 1) return false;
  RONDO_EACH_INPUT(k, operation) {
    if (!is_image(b, operation->inputs[k])) return false;
  }
  return true;
}

static bool reads_all(const blocker *b, const rondo_operation *operation, uint32_t input) {
  return is_image(b, operation->inputs[input]);
}

static rondo_status add_concat(blocker *b, const rondo_operation *operation) {
  rondo_attributes attributes = operation->attributes;
  uint32_t inputs[RONDO_MAX_OPERANDS], count = 0;
  RONDO_EACH_INPUT(k, operation) RONDO_TRY(find_blocked(b, operation->inputs[k], &inputs[count++]));
  attributes.sizes[0] = is_byte(shape_in(b, operation->results[0])->type) || are_last(b) ? 4 : 1;
  return add(b, operation, operation->row, inputs, count, &attributes);
}

/* Batch normalization ---------------------------------------------------------------------------------------------- */

static bool takes_norm(const blocker *b, const rondo_operation *operation) {
  return !b->is_cuda && operation->row == &rondo_operator_batch_norm &&
         operation->attributes.flags[RONDO_BATCH_NORM_FIXED] &&
         is_image(b, operation->inputs[RONDO_BATCH_NORM_VALUE]) && !is_read(b, operation, 1) &&
         !is_read(b, operation, 2);
}

/* Gives a number for each channel the shape that is broadcast to blocks. */
static rondo_status spread_channels(blocker *b, rondo_value value, uint32_t *out) {
  uint32_t index;
  RONDO_TRY(rondo_program_resolve(b->copier.to, value, "batch_norm", "its factor or offset", &index));
  const size_t channels = rondo_program_shape(b->copier.to, index)->dims[0];
  const size_t block = block_of(b, RONDO_F32, channels);
  const rondo_shape shape = {.type = RONDO_F32, .rank = 4, .dims = {channels / block, 1, 1, block}};
  return reshape(b, index, shape, out);
}

/* factor x + offset */
static rondo_status add_norm(blocker *b, const rondo_operation *operation) {
  uint32_t values[RONDO_BATCH_NORM_VARIANCE + 1], terms[2], offset;
  rondo_value made[2];
  for (uint32_t k = RONDO_BATCH_NORM_SCALE; k <= RONDO_BATCH_NORM_VARIANCE; k++) {
    values[k] = RONDO_NO_VALUE;
    if (operation->inputs[k] != RONDO_NO_VALUE) RONDO_TRY(find_plain(b, operation->inputs[k], &values[k]));
  }
  const rondo_norm_values of = {.bias = RONDO_NO_VALUE,
                                .scale = values[RONDO_BATCH_NORM_SCALE],
                                .shift = values[RONDO_BATCH_NORM_SHIFT],
                                .mean = values[RONDO_BATCH_NORM_MEAN],
                                .variance = values[RONDO_BATCH_NORM_VARIANCE],
                                .epsilon = operation->attributes.numbers[RONDO_BATCH_NORM_EPSILON]};
  RONDO_TRY(rondo_add_norm_factors(b->copier.to, &of, &made[0], &made[1]));
  RONDO_TRY(find_blocked(b, operation->inputs[RONDO_BATCH_NORM_VALUE], &terms[0]));
  RONDO_TRY(spread_channels(b, made[0], &terms[1]));
  RONDO_TRY(spread_channels(b, made[1], &offset));
  RONDO_TRY(rondo_program_add(b->copier.to, &rondo_operator_mul, terms, 2, NULL, &terms[0]));
  terms[1] = offset;
  return add(b, operation, &rondo_operator_add, terms, 2, NULL);
}

/* Reductions over h and w ------------------------------------------------------------------------------------------ */

static bool takes_reduction(const blocker *b, const rondo_operation *operation) {
  const rondo_attributes *attributes = &operation->attributes;
  const bool is_known = operation->row == &rondo_operator_mean || operation->row == &rondo_operator_sum ||
                        operation->row == &rondo_operator_max || operation->row == &rondo_operator_min;
  return is_known && is_image(b, operation->inputs[X]) && !attributes->flags[RONDO_REDUCE_ALL] &&
         attributes->size_count == 2 && attributes->sizes[0] + attributes->sizes[1] == 5 &&
         (attributes->sizes[0] == 2 || attributes->sizes[0] == 3);
}

/* The result has one element of each channel, so its plain form is a view. */
static rondo_status add_reduction(blocker *b, const rondo_operation *operation) {
  rondo_attributes attributes = operation->attributes;
  uint32_t x;
  attributes.flags[RONDO_REDUCE_KEEPS] = true;
  RONDO_TRY(find_blocked(b, operation->inputs[X], &x));
  RONDO_TRY(add(b, operation, operation->row, &x, 1, &attributes));
  return reshape(b, b->blocked[operation->results[0]], *shape_in(b, operation->results[0]),
                 &b->copier.values[operation->results[0]]);
}

/* The rules -------------------------------------------------------------------------------------------------------- */

static const rule rules[] = {{takes_conv, reads_image, add_conv},
                             {takes_transposed, reads_transposed, add_transposed},
                             {takes_conv_integer, reads_image, add_conv_integer},
                             {takes_sum_of_bytes, reads_terms, add_sum_of_bytes},
                             {takes_elements, is_whole, add_elements},
                             {takes_pooling, reads_image, add_pooling},
                             {takes_concat, reads_all, add_concat},
                             {takes_norm, reads_image, add_norm},
                             {takes_reduction, reads_image, add_reduction}};

static const rule *find_rule(const blocker *b, const rondo_operation *operation) {
  if (operation->row->result_count == 0 || operation->row->updates != 0 || operation->row->is_user) return NULL;
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (rules[i].takes(b, operation)) return &rules[i];
  return NULL;
}

/* Groups ----------------------------------------------------------------------------------------------------------- */

static uint32_t group_of(const blocker *b, uint32_t number) {
  while (b->groups[number] != number) number = b->groups[number] = b->groups[b->groups[number]];
  return number;
}

/* The operation that makes the value in blocks; RONDO_NO_VALUE: none does. */
static uint32_t maker_of(const blocker *b, uint32_t value) {
  const rondo_program_value *of = &b->copier.from->values.items[value];
  if (of->kind != RONDO_VALUE_RESULT || b->rules[of->operation] == NULL) return RONDO_NO_VALUE;
  const bool is_made = b->copier.from->operations.items[of->operation].results[0] == value && is_image(b, value);
  return is_made ? of->operation : RONDO_NO_VALUE;
}

static bool reads_blocks(const blocker *b, uint32_t number, uint32_t input) {
  const rondo_operation *operation = &b->copier.from->operations.items[number];
  return b->rules[number] != NULL && b->rules[number]->reads_blocks(b, operation, input);
}

/* Joins the operation to the groups of the images that it reads. */
static void join_groups(blocker *b, uint32_t number) {
  const rondo_operation *operation = &b->copier.from->operations.items[number];
  RONDO_EACH_INPUT(k, operation) {
    const uint32_t maker = reads_blocks(b, number, k) ? maker_of(b, operation->inputs[k]) : RONDO_NO_VALUE;
    if (maker == RONDO_NO_VALUE) continue;
    const uint32_t one = group_of(b, number), other = group_of(b, maker);
    b->groups[one > other ? one : other] = one > other ? other : one;
  }
}

static bool is_conv(const rondo_operation *operation) {
  return operation->row == &rondo_operator_conv || operation->row == &rondo_operator_conv_integer;
}

static double elements_to_move(const blocker *b, uint32_t value) {
  const rondo_shape *shape = shape_in(b, value);
  return is_moved(shape) ? (double)rondo_shape_elements(shape) : 0;
}

/* What a convolution gains by an image in blocks: no copy. On CUDA, a convolution in plain form is also slower. */
static double gain_of(const blocker *b, uint32_t image) { return elements_to_move(b, image) * (b->is_cuda ? 2 : 1); }

/* Takes what the operation reads into account. An image that several groups read from outside counts for each. */
static void count_inputs(blocker *b, uint32_t number, uint32_t *counted) {
  const rondo_operation *operation = &b->copier.from->operations.items[number];
  const uint32_t group = group_of(b, number);
  RONDO_EACH_INPUT(k, operation) {
    const uint32_t value = operation->inputs[k];
    if (!reads_blocks(b, number, k)) {
      b->leaves[value] = true;
      continue;
    }
    if (is_conv(operation)) b->gains[group] += gain_of(b, value);
    if (maker_of(b, value) != RONDO_NO_VALUE || counted[value] == group + 1) continue;
    counted[value] = group + 1;
    b->gains[group] -= elements_to_move(b, value);
  }
}

static void count_result(blocker *b, uint32_t number) {
  const rondo_operation *operation = &b->copier.from->operations.items[number];
  const uint32_t result = operation->results[0];
  if (maker_of(b, result) != number) return;
  if (is_conv(operation)) b->gains[group_of(b, number)] += gain_of(b, result);
  if (b->leaves[result]) b->gains[group_of(b, number)] -= elements_to_move(b, result);
}

/* Finds the rules of the operations whose groups gain. */
static rondo_status choose(blocker *b) {
  const rondo_program *from = b->copier.from;
  const uint32_t count = (uint32_t)from->operations.count;
  uint32_t *counted;
  RONDO_TRY(rondo_scratch_take(&b->scratch, from->values.count, sizeof *counted, &counted));
  for (uint32_t i = 0; i < count; i++) {
    b->groups[i] = i;
    b->rules[i] = b->runs[i] ? find_rule(b, &from->operations.items[i]) : NULL;
    if (b->rules[i] != NULL) join_groups(b, i);
  }
  for (size_t i = 0; i < from->outputs.count; i++) b->leaves[from->outputs.items[i].value] = true;
  for (uint32_t i = 0; i < count; i++)
    if (b->runs[i]) count_inputs(b, i, counted);
  for (uint32_t i = 0; i < count; i++)
    if (b->rules[i] != NULL) count_result(b, i);
  for (uint32_t i = 0; i < count; i++)
    if (b->gains[group_of(b, i)] <= 0) b->rules[i] = NULL;
  return RONDO_OK;
}

/* What is computed with convolutions on CUDA ----------------------------------------------------------------------- */

/* The convolution that computes the value, alone or with a sum, and that nothing else reads; RONDO_NO_VALUE: none. */
static uint32_t joinable(const blocker *b, uint32_t value, bool with_sum) {
  const uint32_t maker = maker_of(b, value);
  if (maker == RONDO_NO_VALUE || b->readers[value] != 1) return RONDO_NO_VALUE;
  if (b->copier.from->operations.items[maker].row == &rondo_operator_conv) return maker;
  return with_sum && b->copier.from->operations.items[maker].row == &rondo_operator_add ? b->convolutions[maker]
                                                                                        : RONDO_NO_VALUE;
}

static void join(blocker *b, uint32_t number) {
  const rondo_operation *operation = &b->copier.from->operations.items[number];
  const bool is_relu = operation->row == &rondo_operator_relu;
  if (!is_relu && (operation->row != &rondo_operator_add || !is_whole(b, operation, 0) || !is_whole(b, operation, 1)))
    return;
  for (uint32_t k = 0; k < (is_relu ? 1 : 2) && b->convolutions[number] == RONDO_NO_VALUE; k++) {
    b->convolutions[number] = joinable(b, operation->inputs[k], is_relu);
    if (b->convolutions[number] != RONDO_NO_VALUE) b->is_joined[maker_of(b, operation->inputs[k])] = true;
  }
}

static void join_all(blocker *b) {
  for (uint32_t i = 0; i < b->copier.from->operations.count && b->is_cuda; i++)
    if (b->rules[i] != NULL) join(b, i);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

/* A sum or relu is added with its convolution. */
static rondo_status add_in_blocks(blocker *b, uint32_t number) {
  const rondo_operation *operation = &b->copier.from->operations.items[number];
  const uint32_t conv = b->convolutions[number];
  if (b->is_joined[number]) return RONDO_OK;
  if (conv != RONDO_NO_VALUE) return add_cudnn_conv(b, &b->copier.from->operations.items[conv], operation);
  return b->rules[number]->add(b, operation);
}

static rondo_status copy_plain(blocker *b, uint32_t number) {
  const rondo_operation *operation = &b->copier.from->operations.items[number];
  uint32_t unused;
  RONDO_EACH_INPUT(k, operation) RONDO_TRY(find_plain(b, operation->inputs[k], &unused));
  return rondo_program_copy_operation(&b->copier, number);
}

static rondo_status copy_operations(blocker *b) {
  const rondo_program *from = b->copier.from;
  for (uint32_t i = 0; i < from->operations.count; i++) {
    const size_t first = b->copier.to->operations.count;
    if (!b->runs[i]) continue;
    RONDO_TRY((b->rules[i] != NULL ? add_in_blocks : copy_plain)(b, i));
    rondo_program_copy_origin(&b->copier, first, i);
  }
  return RONDO_OK;
}

static rondo_status copy_outputs(blocker *b) {
  const rondo_program *from = b->copier.from;
  uint32_t unused;
  for (size_t i = 0; i < from->outputs.count; i++) {
    const uint32_t value = from->outputs.items[i].value;
    const size_t first = b->copier.to->operations.count;
    RONDO_TRY(find_plain(b, value, &unused));
    if (b->copier.to->operations.count > first)
      rondo_program_copy_origin(&b->copier, first, from->values.items[value].operation);
  }
  return rondo_program_copy_outputs(&b->copier);
}

static rondo_status allocate(blocker *b) {
  const size_t operations = b->copier.from->operations.count, values = b->copier.from->values.count;
  RONDO_TRY(rondo_scratch_take(&b->scratch, operations, sizeof *b->runs, &b->runs));
  RONDO_TRY(rondo_scratch_take(&b->scratch, operations, sizeof *b->rules, &b->rules));
  RONDO_TRY(rondo_scratch_take(&b->scratch, operations, sizeof *b->groups, &b->groups));
  RONDO_TRY(rondo_scratch_take(&b->scratch, operations, sizeof *b->gains, &b->gains));
  RONDO_TRY(rondo_scratch_take(&b->scratch, values, sizeof *b->leaves, &b->leaves));
  RONDO_TRY(rondo_scratch_take(&b->scratch, values, sizeof *b->readers, &b->readers));
  RONDO_TRY(rondo_scratch_take(&b->scratch, values, sizeof *b->blocked, &b->blocked));
  RONDO_TRY(rondo_scratch_take(&b->scratch, operations, sizeof *b->convolutions, &b->convolutions));
  RONDO_TRY(rondo_scratch_take(&b->scratch, operations, sizeof *b->is_joined, &b->is_joined));
  memset(b->blocked, 0xff, values * sizeof *b->blocked); /* RONDO_NO_VALUE */
  memset(b->convolutions, 0xff, operations * sizeof *b->convolutions);
  return RONDO_OK;
}

/* Finds what runs, what reads values, and the blocks of floats, which on a CPU are for several convolutions. Returns
 * whether there may be something to rewrite. */
static bool look(blocker *b, bool *needed) {
  const rondo_program *from = b->copier.from;
  size_t of_floats = 0, of_bytes = 0;
  (void)rondo_program_mark_runs(from, needed, b->runs);
  rondo_program_count_readers(from, b->runs, b->readers);
  for (size_t i = 0; i < from->operations.count; i++) {
    of_floats += b->runs[i] && from->operations.items[i].row == &rondo_operator_conv;
    of_bytes += b->runs[i] && from->operations.items[i].row == &rondo_operator_conv_integer;
  }
  b->block = 1;
  if (b->is_cuda && of_floats > 0 && rondo_library_find(&rondo_cudnn)) b->block = RONDO_CONV_ALL_CHANNELS;
  if (!b->is_cuda && of_floats > 1) b->block = rondo_onednn_image_block();
  return b->block > 1 || (!b->is_cuda && of_bytes > 1);
}

static rondo_status rewrite(blocker *b) {
  bool *needed;
  bool is_any = false;
  RONDO_TRY(allocate(b));
  RONDO_TRY(rondo_scratch_take(&b->scratch, b->copier.from->values.count, sizeof *needed, &needed));
  if (!look(b, needed)) return RONDO_OK;
  RONDO_TRY(choose(b));
  join_all(b);
  for (size_t i = 0; i < b->copier.from->operations.count; i++) is_any |= b->rules[i] != NULL;
  if (!is_any) return RONDO_OK;
  RONDO_TRY(rondo_program_copy_begin(&b->copier, &b->scratch));
  RONDO_TRY(copy_operations(b));
  return copy_outputs(b);
}

static rondo_status rewrite_blocked(const rondo_program *program, rondo_pattern_target target, uint32_t *out_count,
                                    rondo_program **out) {
  blocker b = {.is_cuda = target.is_cuda, .copier = {.from = program}, .scratch = {.allocator = &program->allocator}};
  *out = NULL;
  *out_count = 0;
  if (target.own_kernels || program->has_gradients || program->operations.count == 0) return RONDO_OK;
  const rondo_status status = rewrite(&b);
  rondo_scratch_free(&b.scratch);
  if (status != RONDO_OK) {
    rondo_program_destroy(b.copier.to);
    return status;
  }
  *out_count = b.count;
  *out = b.copier.to;
  return RONDO_OK;
}

const rondo_pattern rondo_pattern_blocked_images = {.name = "blocked_images", .rewrite = rewrite_blocked};

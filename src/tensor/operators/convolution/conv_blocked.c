/* SPDX-License-Identifier: MIT
 * conv_blocked: a convolution whose result keeps blocks of channels together, [n, o / block, h, w, block], or all of
 * them, the layout in which oneDNN computes. x is in the same blocks, or plain: [n, c, h, w]. Compiling makes it from
 * conv where neighbouring operators take such images too (pattern_blocked_images.c), and only where oneDNN computes it;
 * so it has no gradient, and no CUDA kernel. The own kernel is for what the library has no memory for. Threads: as
 * tensor/program/operator.h says.
 */
#include "tensor/operators/convolution/conv_blocked.h"

#include <assert.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/convolution/conv_onednn.h"
#include "tensor/operators/elementwise/unary_operators.h"

enum { X, WEIGHT, BIAS }; /* inputs */

/* Own kernel ------------------------------------------------------------------------------------------------------- */

/* One result, before the activation. x: an image; weight: of the result's channel. */
static float result_at(const rondo_conv_shape *s, size_t block, const float *x, const float *weight, size_t group,
                       size_t row, size_t column) {
  const rondo_window *w = &s->window;
  const size_t *kernel = w->kernel;
  float sum = 0;
  for (size_t c = 0; c < s->in_channels; c++) {
    for (size_t i = 0; i < kernel[RONDO_HEIGHT]; i++) {
      for (size_t j = 0; j < kernel[RONDO_WIDTH]; j++) {
        size_t y_in, x_in;
        if (!rondo_window_tap(w, RONDO_HEIGHT, row, i, &y_in) || !rondo_window_tap(w, RONDO_WIDTH, column, j, &x_in))
          continue;
        const size_t place = y_in * w->in[RONDO_WIDTH] + x_in;
        sum += x[rondo_conv_element(group * s->in_channels + c, place, rondo_conv_in(s), block)] *
               weight[(c * kernel[RONDO_HEIGHT] + i) * kernel[RONDO_WIDTH] + j];
      }
    }
  }
  return sum;
}

size_t rondo_conv_blocked_rows(const rondo_conv_shape *s, rondo_conv_blocks blocks) {
  return s->images * (s->groups * s->out_channels / blocks.y) * s->window.out[RONDO_HEIGHT];
}

/* An item is a row of a block of channels. */
void rondo_conv_blocked_cpu(rondo_blocks all, void *const *args) {
  const rondo_conv_shape *s = args[0];
  const rondo_conv_blocks *blocks = args[1];
  const float *x = RONDO_ARG(const float *, 2), *weight = RONDO_ARG(const float *, 3);
  const float *bias = RONDO_ARG(const float *, 4);
  const size_t height = s->window.out[RONDO_HEIGHT], width = s->window.out[RONDO_WIDTH], block = blocks->y;
  const size_t parts = s->groups * s->out_channels / block, taps = s->in_channels * rondo_conv_taps(s);
  RONDO_EACH_ITEM(item, all, rondo_conv_blocked_rows(s, *blocks)) {
    const size_t row = item % height, part = item / height % parts, image = item / height / parts;
    const float *of_image = x + image * s->groups * s->in_channels * rondo_conv_in(s);
    float *y = RONDO_ARG(float *, 5) + item * width * block;
    for (size_t i = 0; i < width * block; i++) {
      const size_t channel = part * block + i % block;
      y[i] = (bias == NULL ? 0 : bias[channel]) +
             result_at(s, blocks->x, of_image, weight + channel * taps, channel / s->out_channels, row, i / block);
    }
    rondo_activate_in_place((rondo_activation)s->activation, y, width * block);
  }
}

static const rondo_kernel_options conv_blocked_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "conv_blocked", .cpu = rondo_conv_blocked_cpu,
    .params = {RONDO_SCALAR(rondo_conv_shape), RONDO_SCALAR(rondo_conv_blocks), RONDO_READS, RONDO_READS, RONDO_READS,
               RONDO_WRITES}};

/* Row -------------------------------------------------------------------------------------------------------------- */

static rondo_conv_blocks blocks_of(const rondo_shape *x, const rondo_attributes *attributes) {
  const size_t block = attributes->sizes[RONDO_CONV_BLOCK], are_last = attributes->sizes[RONDO_CONV_LAST];
  assert(x->rank == 4 || (x->rank == 5 && (are_last != 0 ? x->dims[1] == 1 : x->dims[4] == block)));
  return (rondo_conv_blocks){.x = x->rank == 5 ? x->dims[4] : 1, .y = block, .are_last = are_last};
}

/* The shape that the values of x have in plain form. */
static rondo_shape plain_shape(const rondo_shape *x) {
  if (x->rank == 4) return *x;
  return (rondo_shape){
      .type = x->type, .rank = 4, .dims = {x->dims[0], x->dims[1] * x->dims[4], x->dims[2], x->dims[3]}};
}

static rondo_conv_shape shape_of(const rondo_shape *x, const rondo_shape *weight, const rondo_attributes *attributes) {
  const rondo_shape plain = plain_shape(x);
  return rondo_conv_shape_of(&plain, weight, attributes);
}

static rondo_status infer_blocked(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  const rondo_shape x = plain_shape(rondo_operation_input(program, operation, X));
  const rondo_shape *weight = rondo_operation_input(program, operation, WEIGHT);
  const size_t block = operation->attributes.sizes[RONDO_CONV_BLOCK];
  rondo_window w;
  assert(x.type == RONDO_F32 && block > 1 && weight->dims[0] % block == 0);
  RONDO_TRY(rondo_window_make(program, operation, &x, &w));
  results[0] =
      (rondo_shape){.type = RONDO_F32,
                    .rank = 5,
                    .dims = {x.dims[0], weight->dims[0] / block, w.out[RONDO_HEIGHT], w.out[RONDO_WIDTH], block}};
  return RONDO_OK;
}

static rondo_status prepare_blocked(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                    size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  const rondo_shape *x = rondo_operation_input(program, operation, X);
  const rondo_conv_shape shape = shape_of(x, rondo_operation_input(program, operation, WEIGHT), &operation->attributes);
  return rondo_conv_prepare_on_cpu(resources, number, RONDO_CONVOLUTION_FORWARD, &shape,
                                   blocks_of(x, &operation->attributes), operation->inputs[BIAS] != RONDO_NO_VALUE,
                                   out_workspace_bytes);
}

static rondo_status pack_blocked(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                 rondo_packed_state **out_packed) {
  const rondo_operation *operation = &program->operations.items[number];
  const rondo_shape *x = rondo_operation_input(program, operation, X);
  const rondo_conv_shape shape = shape_of(x, rondo_operation_input(program, operation, WEIGHT), &operation->attributes);
  return rondo_conv_pack_on_cpu(resources, number, &shape, blocks_of(x, &operation->attributes),
                                operation->inputs[BIAS] != RONDO_NO_VALUE, out_packed);
}

static rondo_status emit_blocked(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *x = rondo_emit_shape(emitter, operation->inputs[X]);
  const rondo_conv_shape shape =
      shape_of(x, rondo_emit_shape(emitter, operation->inputs[WEIGHT]), &operation->attributes);
  const rondo_conv_blocks blocks = blocks_of(x, &operation->attributes);
  const rondo_convolution_memory memory = {.x = rondo_emit_address(emitter, operation->inputs[X]),
                                           .weight = rondo_emit_address(emitter, operation->inputs[WEIGHT]),
                                           .y = rondo_emit_address(emitter, operation->results[0]),
                                           .workspace = rondo_emit_workspace(emitter)};
  if (rondo_emit_object(emitter) != NULL)
    return rondo_onednn_convolution_emit(emitter, rondo_emit_object(emitter), &memory,
                                         rondo_emit_address(emitter, operation->inputs[BIAS]));
  return rondo_emit_operands(emitter, operation, &conv_blocked_code,
                             rondo_emit_grid(emitter, rondo_conv_blocked_rows(&shape, blocks), (rondo_grain){1, 1}),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_OBJECT(blocks), RONDO_INPUT(X),
                                            RONDO_INPUT(WEIGHT), RONDO_INPUT(BIAS), RONDO_RESULT(0)));
}

RONDO_OPERATOR(conv_blocked, .inputs = {"x", "weight", "bias"}, .required = 2, .result_count = 1,
               .infer = infer_blocked, .prepare = prepare_blocked, .packed_input = WEIGHT, .pack = pack_blocked,
               .emit = emit_blocked);

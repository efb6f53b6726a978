/* SPDX-License-Identifier: MIT
 * conv_channels_last: a flat convolution of images [n, 1, h, w, c] with weights [o, h, w, c], whose result is
 * [n, 1, h, w, o], and what follows it: a sum with other values of that shape and relu. In this layout cuDNN computes
 * values of 16 bits. Compiling makes it from conv on CUDA where neighbouring operators take such images too
 * (pattern_blocked_images.c), so it has no gradient. The own kernel is for what the library has no engine for. Threads:
 * as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/convolution/conv.h"
#include "tensor/operators/elementwise/unary_operators.h"

enum { X, WEIGHT, BIAS, ADDEND }; /* inputs */

/* Own kernel ------------------------------------------------------------------------------------------------------- */

/* The sum of the products of one result. x: an image; weight: of the result's channel. */
static float result_at(rondo_type type, const rondo_conv_shape *s, const void *x, size_t image, const void *weight,
                       size_t channel, size_t row, size_t column) {
  const rondo_window *w = &s->window;
  const size_t height = w->kernel[RONDO_HEIGHT], width = w->kernel[RONDO_WIDTH], depth = s->in_channels;
  float sum = 0;
  for (size_t tap = 0; tap < height * width; tap++) {
    size_t y_in, x_in;
    if (!rondo_window_tap(w, RONDO_HEIGHT, row, tap / width, &y_in) ||
        !rondo_window_tap(w, RONDO_WIDTH, column, tap % width, &x_in))
      continue;
    const size_t place = (image * w->in[RONDO_HEIGHT] + y_in) * w->in[RONDO_WIDTH] + x_in;
    for (size_t c = 0; c < depth; c++)
      sum += rondo_load_one(type, x, place * depth + c) *
             rondo_load_one(type, weight, (channel * height * width + tap) * depth + c);
  }
  return sum;
}

/* An item is a result. */
static void conv_channels_last_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_conv_shape *s = args[0];
  const void *x = RONDO_ARG(const void *, 1), *weight = RONDO_ARG(const void *, 2);
  const void *bias = RONDO_ARG(const void *, 3), *addend = RONDO_ARG(const void *, 4);
  const size_t height = s->window.out[RONDO_HEIGHT], width = s->window.out[RONDO_WIDTH];
  RONDO_EACH_ITEM(i, blocks, s->images * height * width * s->out_channels) {
    const size_t channel = i % s->out_channels, place = i / s->out_channels;
    float y = bias == NULL ? 0 : rondo_load_one(type, bias, channel);
    y += result_at(type, s, x, place / width / height, weight, channel, place / width % height, place % width);
    if (addend != NULL) y += rondo_load_one(type, addend, i);
    rondo_activate_in_place((rondo_activation)s->activation, &y, 1);
    rondo_store_one(type, RONDO_ARG(void *, 5), i, y);
  }
}

RONDO_TYPED_KERNEL(conv_channels_last, conv_channels_last, RONDO_SCALAR(rondo_conv_shape), RONDO_READS, RONDO_READS,
                   RONDO_READS, RONDO_READS, RONDO_WRITES);

/* Row -------------------------------------------------------------------------------------------------------------- */

/* The shapes that x and the weight have in plain form. */
static rondo_shape plain_image(const rondo_shape *x) {
  assert(x->rank == 5 && x->dims[1] == 1);
  return (rondo_shape){.type = x->type, .rank = 4, .dims = {x->dims[0], x->dims[4], x->dims[2], x->dims[3]}};
}
static rondo_shape plain_weight(const rondo_shape *w) {
  return (rondo_shape){.type = w->type, .rank = 4, .dims = {w->dims[0], w->dims[3], w->dims[1], w->dims[2]}};
}

static rondo_conv_shape shape_of(const rondo_program *program, const rondo_operation *operation) {
  const rondo_shape x = plain_image(rondo_operation_input(program, operation, X));
  const rondo_shape weight = plain_weight(rondo_operation_input(program, operation, WEIGHT));
  return rondo_conv_shape_of(&x, &weight, &operation->attributes);
}

static rondo_status infer_channels_last(const rondo_program *program, const rondo_operation *operation,
                                        rondo_shape *results) {
  const rondo_shape x = plain_image(rondo_operation_input(program, operation, X));
  const rondo_shape *weight = rondo_operation_input(program, operation, WEIGHT);
  rondo_window w;
  assert(operation->attributes.sizes[RONDO_CONV_GROUPS] == 1 && weight->rank == 4 && weight->dims[3] == x.dims[1]);
  RONDO_TRY(rondo_window_make(program, operation, &x, &w));
  results[0] = (rondo_shape){
      .type = x.type, .rank = 5, .dims = {x.dims[0], 1, w.out[RONDO_HEIGHT], w.out[RONDO_WIDTH], weight->dims[0]}};
  return RONDO_OK;
}

/* Some engines do not apply relu as it is here; then it is a step of its own. */
static rondo_status prepare_channels_last(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                          size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  const rondo_conv_shape shape = shape_of(program, operation);
  rondo_convolution_shape made =
      rondo_conv_library_shape(&shape, RONDO_CONVOLUTION_FORWARD, rondo_operation_input(program, operation, X)->type);
  made.channels_last = true;
  made.has_bias = operation->inputs[BIAS] != RONDO_NO_VALUE;
  made.has_addend = operation->inputs[ADDEND] != RONDO_NO_VALUE;
  made.has_relu = shape.activation == RONDO_ACTIVATION_RELU;
  RONDO_TRY(rondo_resources_add_convolution(resources, number, &made, out_workspace_bytes));
  if (!made.has_relu || rondo_resources_convolution(resources, number) != NULL) return RONDO_OK;
  made.has_relu = false;
  return rondo_resources_add_convolution(resources, number, &made, out_workspace_bytes);
}

static rondo_status emit_engine(rondo_emitter *emitter, const rondo_operation *operation, rondo_activation activation) {
  rondo_convolution *convolution = rondo_emit_convolution(emitter);
  void *const y = rondo_emit_address(emitter, operation->results[0]);
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->results[0]);
  const rondo_convolution_memory memory = {.x = rondo_emit_address(emitter, operation->inputs[X]),
                                           .weight = rondo_emit_address(emitter, operation->inputs[WEIGHT]),
                                           .bias = rondo_emit_address(emitter, operation->inputs[BIAS]),
                                           .addend = rondo_emit_address(emitter, operation->inputs[ADDEND]),
                                           .y = y,
                                           .workspace = rondo_emit_workspace(emitter)};
  RONDO_TRY(rondo_conv_emit_call(emitter, convolution, &memory));
  if (activation == RONDO_ACTIVATION_NONE || rondo_convolution_has_relu(convolution)) return RONDO_OK;
  return rondo_emit_activation(emitter, activation, shape->type, y, y, rondo_shape_elements(shape));
}

static rondo_status emit_channels_last(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *y = rondo_emit_shape(emitter, operation->results[0]);
  const rondo_conv_shape shape = shape_of(rondo_emit_program(emitter), operation);
  if (rondo_emit_convolution(emitter) != NULL)
    return emit_engine(emitter, operation, (rondo_activation)shape.activation);
  return rondo_emit_operands(emitter, operation, &conv_channels_last_code[y->type],
                             rondo_emit_grid(emitter, rondo_shape_elements(y), RONDO_ELEMENTWISE_GRAIN),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(X), RONDO_INPUT(WEIGHT), RONDO_INPUT(BIAS),
                                            RONDO_INPUT(ADDEND), RONDO_RESULT(0)));
}

RONDO_OPERATOR(conv_channels_last, .inputs = {"x", "weight", "bias", "addend"}, .required = 2, .result_count = 1,
               .infer = infer_channels_last, .prepare = prepare_channels_last, .emit = emit_channels_last);

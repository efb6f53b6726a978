/* SPDX-License-Identifier: MIT
 * max_pool2d and avg_pool2d. Gradients are gathered: each element of the image adds the gradients of the windows that
 * contain it, in their order. For that, max_pool2d keeps the index of each maximum in its plane. The kernels are those
 * of pool2d_row.c and pool2d.cu. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/convolution/pool2d.h"
#include "tensor/operators/common/operator_tools.h"

enum { COUNTS_PADDING };                            /* flags */
enum { HEIGHT = RONDO_WINDOW_SIZES, WIDTH, SIZES }; /* sizes, after the window's; of x */

/* Kernels ---------------------------------------------------------------------------------------------------------- */

#define POOL_KERNEL(kernel, ...)                                                                             \
  RONDO_TYPED_KERNEL_OF(kernel, rondo_##kernel##_cpu, pool2d, RONDO_SCALAR(rondo_pool2d_shape), RONDO_READS, \
                        __VA_ARGS__)

POOL_KERNEL(max_pool2d, RONDO_WRITES, RONDO_WRITES);
POOL_KERNEL(avg_pool2d, RONDO_WRITES);
POOL_KERNEL(max_pool2d_gradient, RONDO_WRITES, RONDO_READS);
POOL_KERNEL(avg_pool2d_gradient, RONDO_WRITES);

#define POOL_GRAIN ((rondo_grain){2048, RONDO_CUDA_THREADS})

static rondo_pool2d_shape shape_of(const rondo_shape *x, const rondo_attributes *attributes) {
  return (rondo_pool2d_shape){.window = rondo_window_of(x, attributes),
                              .planes = x->dims[0] * x->dims[1],
                              .counts_padding = attributes->flags[COUNTS_PADDING]};
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

static rondo_status infer_pool(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *x = rondo_operation_input(program, operation, 0);
  const size_t *sizes = operation->attributes.sizes;
  rondo_window w;
  RONDO_TRY(rondo_require_float(program, operation, 0, 4));
  RONDO_TRY(rondo_window_make(program, operation, x, &w));
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    const size_t padding = sizes[RONDO_WINDOW_PADDING + axis], kernel = sizes[RONDO_WINDOW_KERNEL + axis];
    if (padding < kernel) continue;
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "the padding of %zu must be less than the kernel size %zu", padding, kernel);
  }
  if (x->dims[2] * x->dims[3] > INT32_MAX)
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "an image has more elements than i32 can count");
  results[0] = (rondo_shape){
      .type = x->type, .rank = 4, .dims = {x->dims[0], x->dims[1], w.out[RONDO_HEIGHT], w.out[RONDO_WIDTH]}};
  results[1] = results[0];
  results[1].type = RONDO_I32;
  return RONDO_OK;
}

static rondo_attributes with_image(const rondo_program *program, const rondo_operation *operation) {
  const rondo_shape *x = rondo_operation_input(program, operation, 0);
  rondo_attributes attributes = operation->attributes;
  attributes.sizes[HEIGHT] = x->dims[2];
  attributes.sizes[WIDTH] = x->dims[3];
  attributes.size_count = SIZES;
  return attributes;
}

static rondo_status differentiate_max(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_attributes attributes = with_image(program, operation);
  const uint32_t inputs[] = {result_gradients[0], operation->results[1]};
  if (inputs[0] == RONDO_NO_VALUE) return RONDO_OK;
  return rondo_program_add(program, &rondo_operator_max_pool2d_gradient, inputs, 2, &attributes, &input_gradients[0]);
}

static rondo_status differentiate_avg(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_attributes attributes = with_image(program, operation);
  return rondo_program_add(program, &rondo_operator_avg_pool2d_gradient, &result_gradients[0], 1, &attributes,
                           &input_gradients[0]);
}

static rondo_status infer_gradient(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  const size_t *sizes = operation->attributes.sizes;
  RONDO_TRY(rondo_require_float(program, operation, 0, 4));
  RONDO_TRY(rondo_require_input(program, operation, 1, RONDO_I32, 4));
  results[0] = *rondo_operation_input(program, operation, 0);
  results[0].dims[2] = sizes[HEIGHT];
  results[0].dims[3] = sizes[WIDTH];
  return RONDO_OK;
}

typedef struct pool_family {
  const rondo_kernel_options *code; /* one per type */
  bool has_places, is_gradient;
} pool_family;

static rondo_status emit_pool(rondo_emitter *emitter, const rondo_operation *operation) {
  const pool_family *family = operation->row->family;
  const bool is_gradient = family->is_gradient;
  const rondo_shape *image = rondo_emit_shape(emitter, is_gradient ? operation->results[0] : operation->inputs[0]);
  const rondo_pool2d_shape shape = shape_of(image, &operation->attributes);
  const size_t *plane = is_gradient ? shape.window.in : shape.window.out;
  const size_t count = shape.planes * plane[RONDO_HEIGHT] * plane[RONDO_WIDTH];
  const void *from = rondo_emit_address(emitter, operation->inputs[0]);
  void *to = rondo_emit_address(emitter, operation->results[0]), *places = NULL;
  if (family->has_places)
    places = rondo_emit_address(emitter, is_gradient ? operation->inputs[1] : operation->results[1]);
  const void *const args[] = {&shape, &from, &to, &places};
  return rondo_emit_kernel(emitter, &family->code[image->type], rondo_emit_grid(emitter, count, POOL_GRAIN), args,
                           family->has_places ? 4 : 3);
}

static const pool_family max_family = {max_pool2d_code, .has_places = true};
static const pool_family avg_family = {avg_pool2d_code, .has_places = false};
static const pool_family max_gradient_family = {max_pool2d_gradient_code, .has_places = true, .is_gradient = true};
static const pool_family avg_gradient_family = {avg_pool2d_gradient_code, .is_gradient = true};

RONDO_OPERATOR(max_pool2d, .types = RONDO_FLOATS, .inputs = {"x"}, .required = 1, .result_count = 2,
               .spare_results = 1u << 1, .infer = infer_pool, .differentiate = differentiate_max, .family = &max_family,
               .emit = emit_pool);
RONDO_OPERATOR(avg_pool2d, .types = RONDO_FLOATS, .inputs = {"x"}, .required = 1, .result_count = 1,
               .infer = infer_pool, .differentiate = differentiate_avg, .family = &avg_family, .emit = emit_pool);
RONDO_OPERATOR(max_pool2d_gradient, .inputs = {"gradient", "places"}, .required = 2, .result_count = 1,
               .infer = infer_gradient, .family = &max_gradient_family, .emit = emit_pool);
RONDO_OPERATOR(avg_pool2d_gradient, .inputs = {"gradient"}, .required = 1, .result_count = 1, .infer = infer_gradient,
               .family = &avg_gradient_family, .emit = emit_pool);

static rondo_status add_pool(rondo_program *program, const rondo_operator *row, rondo_value x,
                             const rondo_pool2d_options *options, rondo_value *out_value) {
  static const size_t ones[RONDO_WINDOW_AXES] = {1, 1};
  rondo_pool2d_options given;
  rondo_attributes attributes = {0};
  if (out_value != NULL) *out_value = (rondo_value){0};
  RONDO_TRY(rondo_require(row->name, "options", options));
  RONDO_TRY(rondo_versioned_read("rondo_pool2d_options", options, &given, sizeof given));
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    if (given.stride[axis] == 0) given.stride[axis] = given.kernel[axis];
  }
  rondo_window_attributes(given.kernel, given.stride, given.padding, ones, &attributes);
  attributes.flags[COUNTS_PADDING] = given.counts_padding;
  return rondo_program_apply(program, row, &x, 1, &attributes, out_value);
}

rondo_status rondo_op_max_pool2d(rondo_program *program, rondo_value x, const rondo_pool2d_options *options,
                                 rondo_value *out_value) {
  return add_pool(program, &rondo_operator_max_pool2d, x, options, out_value);
}

rondo_status rondo_op_avg_pool2d(rondo_program *program, rondo_value x, const rondo_pool2d_options *options,
                                 rondo_value *out_value) {
  return add_pool(program, &rondo_operator_avg_pool2d, x, options, out_value);
}

/* SPDX-License-Identifier: MIT
 * max_pool and avg_pool. Gradients are gathered: each element of the image adds the gradients of the windows that
 * contain it, in their order. For that, max_pool keeps the index of each maximum in its channel's image. The kernels
 * are those of pooling_row.c and pooling.cu. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/convolution/pooling.h"

#include <assert.h>

#include "tensor/operators/common/operator_tools.h"

enum { COUNTS_PADDING = RONDO_WINDOW_ROUNDS_UP + 1 }; /* flags, after the window's */
enum {
  DIVISOR = RONDO_WINDOW_SIZES,
  IMAGE,
  SIZES = IMAGE + RONDO_WINDOW_AXES
}; /* sizes, after the window's; IMAGE: of x */

/* Kernels ---------------------------------------------------------------------------------------------------------- */

#define POOL_KERNEL(kernel, ...)                                                                               \
  RONDO_TYPED_KERNEL_OF(kernel, rondo_##kernel##_cpu, pooling, RONDO_SCALAR(rondo_pooling_shape), RONDO_READS, \
                        __VA_ARGS__)

POOL_KERNEL(max_pool, RONDO_WRITES, RONDO_WRITES);
POOL_KERNEL(avg_pool, RONDO_WRITES);
POOL_KERNEL(max_pool_gradient, RONDO_WRITES, RONDO_READS);
POOL_KERNEL(avg_pool_gradient, RONDO_WRITES);

/* Of bytes, on a CPU: what a pattern makes of maxima between numbers of one scale (patterns/pattern_quantized.c). */
static void max_pool_i8(rondo_blocks blocks, void *const *args) { rondo_max_pool_bytes(RONDO_I8, blocks, args); }
static void max_pool_u8(rondo_blocks blocks, void *const *args) { rondo_max_pool_bytes(RONDO_U8, blocks, args); }
#define BYTES_KERNEL(function)                                                 \
  {                                                                            \
    RONDO_KERNEL_OPTIONS_INIT, .name = #function, .cpu = function, .params = { \
      RONDO_SCALAR(rondo_pooling_shape),                                       \
      RONDO_READS,                                                             \
      RONDO_WRITES                                                             \
    }                                                                          \
  }
static const rondo_kernel_options max_pool_bytes_code[] = {
    [RONDO_I8] = BYTES_KERNEL(max_pool_i8), [RONDO_U8] = BYTES_KERNEL(max_pool_u8)};

static bool is_byte(rondo_type type) { return type == RONDO_I8 || type == RONDO_U8; }

#define POOL_GRAIN ((rondo_grain){2048, RONDO_CUDA_THREADS})

static rondo_pooling_shape shape_of(const rondo_shape *x, const rondo_attributes *attributes) {
  return (rondo_pooling_shape){.window = rondo_window_of(x, attributes),
                               .channels = x->dims[0] * x->dims[1],
                               .counts_padding = attributes->flags[COUNTS_PADDING],
                               .divisor = attributes->sizes[DIVISOR]};
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

static rondo_status check_padding(const rondo_program *program, const rondo_operation *operation,
                                  const rondo_window *w) {
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    const size_t extent = w->dilation[axis] * (w->kernel[axis] - 1) + 1;
    const size_t padding = rondo_larger(w->padding[axis], w->after[axis]);
    if (padding < extent) continue;
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "the padding of %zu must be less than the window, which is %zu", padding, extent);
  }
  return RONDO_OK;
}

static rondo_status infer_pool(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *x = rondo_operation_input(program, operation, 0);
  rondo_window w;
  if (operation->row != &rondo_operator_max_pool_bytes)
    RONDO_TRY(rondo_require_float(program, operation, 0, RONDO_ANY_RANK));
  assert(operation->row != &rondo_operator_max_pool_bytes || is_byte(x->type));
  if (!rondo_window_has_rank(x->rank))
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "x has %u dimensions; it needs 3 to 5: [n, c, w], [n, c, h, w] or [n, c, d, h, w]",
                                x->rank);
  RONDO_TRY(rondo_window_make(program, operation, x, &w));
  RONDO_TRY(check_padding(program, operation, &w));
  if (rondo_window_in(&w) > INT32_MAX)
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "an image has more elements than i32 can count");
  results[0] = rondo_window_image(x->type, x->rank, x->dims[0], x->dims[1], w.out);
  if (operation->row->result_count == 1) return RONDO_OK;
  results[1] = results[0];
  results[1].type = RONDO_I32;
  return RONDO_OK;
}

static rondo_attributes with_image(const rondo_program *program, const rondo_operation *operation) {
  const rondo_shape *x = rondo_operation_input(program, operation, 0);
  rondo_attributes attributes = operation->attributes;
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++)
    attributes.sizes[IMAGE + axis] = rondo_window_image_size(x, axis);
  attributes.size_count = SIZES;
  return attributes;
}

static rondo_status differentiate_max(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_attributes attributes = with_image(program, operation);
  const uint32_t inputs[] = {result_gradients[0], operation->results[1]};
  if (inputs[0] == RONDO_NO_VALUE) return RONDO_OK;
  return rondo_program_add(program, &rondo_operator_max_pool_gradient, inputs, 2, &attributes, &input_gradients[0]);
}

static rondo_status differentiate_avg(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_attributes attributes = with_image(program, operation);
  return rondo_program_add(program, &rondo_operator_avg_pool_gradient, &result_gradients[0], 1, &attributes,
                           &input_gradients[0]);
}

static rondo_status infer_gradient(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  const rondo_shape *dy = rondo_operation_input(program, operation, 0);
  RONDO_TRY(rondo_require_float(program, operation, 0, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_input(program, operation, 1, RONDO_I32, dy->rank));
  results[0] = rondo_window_image(dy->type, dy->rank, dy->dims[0], dy->dims[1], operation->attributes.sizes + IMAGE);
  return RONDO_OK;
}

typedef struct pool_family {
  const rondo_kernel_options *code; /* one per type */
  bool has_places, is_gradient;
} pool_family;

static rondo_status emit_pool(rondo_emitter *emitter, const rondo_operation *operation) {
  const pool_family *family = operation->row->family; /* NULL: of bytes */
  const bool is_gradient = family != NULL && family->is_gradient;
  const rondo_shape *image = rondo_emit_shape(emitter, is_gradient ? operation->results[0] : operation->inputs[0]);
  const rondo_pooling_shape shape = shape_of(image, &operation->attributes);
  const size_t count =
      shape.channels * (is_gradient ? rondo_window_in(&shape.window) : rondo_window_out(&shape.window));
  const void *from = rondo_emit_address(emitter, operation->inputs[0]);
  void *to = rondo_emit_address(emitter, operation->results[0]), *places = NULL;
  if (family == NULL)
    return rondo_emit_kernel(emitter, &max_pool_bytes_code[image->type], rondo_emit_grid(emitter, count, POOL_GRAIN),
                             (const void *const[]){&shape, &from, &to}, 3);
  if (family->has_places)
    places = rondo_emit_address(emitter, is_gradient ? operation->inputs[1] : operation->results[1]);
  const void *const args[] = {&shape, &from, &to, &places};
  return rondo_emit_kernel(emitter, &family->code[image->type], rondo_emit_grid(emitter, count, POOL_GRAIN), args,
                           family->has_places ? 4 : 3);
}

static const pool_family max_family = {max_pool_code, .has_places = true};
static const pool_family avg_family = {avg_pool_code, .has_places = false};
static const pool_family max_gradient_family = {max_pool_gradient_code, .has_places = true, .is_gradient = true};
static const pool_family avg_gradient_family = {avg_pool_gradient_code, .is_gradient = true};

RONDO_OPERATOR(max_pool, .types = RONDO_FLOATS, .inputs = {"x"}, .required = 1, .result_count = 2,
               .spare_results = 1u << 1, .infer = infer_pool, .differentiate = differentiate_max, .family = &max_family,
               .emit = emit_pool);
RONDO_OPERATOR(avg_pool, .types = RONDO_FLOATS, .inputs = {"x"}, .required = 1, .result_count = 1, .infer = infer_pool,
               .differentiate = differentiate_avg, .family = &avg_family, .emit = emit_pool);
RONDO_OPERATOR(max_pool_bytes, .inputs = {"x"}, .required = 1, .result_count = 1, .infer = infer_pool,
               .emit = emit_pool);
RONDO_OPERATOR(max_pool_gradient, .inputs = {"gradient", "places"}, .required = 2, .result_count = 1,
               .infer = infer_gradient, .family = &max_gradient_family, .emit = emit_pool);
RONDO_OPERATOR(avg_pool_gradient, .inputs = {"gradient"}, .required = 1, .result_count = 1, .infer = infer_gradient,
               .family = &avg_gradient_family, .emit = emit_pool);

/* Public ----------------------------------------------------------------------------------------------------------- */

static rondo_status read_options(const rondo_shape *x, const rondo_pooling_options *options,
                                 rondo_attributes *attributes) {
  rondo_pooling_options given;
  RONDO_TRY(rondo_versioned_read("rondo_pooling_options", options, &given, sizeof given));
  for (size_t i = 0; i < RONDO_MAX_SPATIAL; i++) {
    if (given.stride[i] == 0) given.stride[i] = given.kernel[i];
  }
  const rondo_window_given window = {given.kernel,  given.stride,         given.dilation,
                                     given.padding, given.padding_before, given.padding_after};
  rondo_window_attributes(rondo_window_has_rank(x->rank) ? x->rank : 4, &window, attributes);
  attributes->flags[RONDO_WINDOW_ROUNDS_UP] = given.ceil_mode;
  attributes->flags[COUNTS_PADDING] = given.counts_padding;
  attributes->sizes[DIVISOR] = given.divisor;
  attributes->size_count = SIZES;
  return RONDO_OK;
}

/* Maxima of bytes are those of floats, exactly. */
static rondo_status add_max_pool(rondo_program *program, uint32_t x, const rondo_attributes *attributes,
                                 uint32_t *out_value, uint32_t *out_indices) {
  const rondo_type type = rondo_program_shape(program, x)->type;
  uint32_t results[2];
  if (is_byte(type)) RONDO_TRY(rondo_program_add_cast(program, RONDO_F32, &x));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_max_pool, &x, 1, attributes, results));
  *out_value = results[0];
  *out_indices = results[1];
  return rondo_program_add_cast(program, type, out_value);
}

rondo_status rondo_op_max_pool(rondo_program *program, rondo_value x, const rondo_pooling_options *options,
                               rondo_value *out_value, rondo_value *out_indices) {
  rondo_attributes attributes = {0};
  uint32_t index, result = RONDO_NO_VALUE, places = RONDO_NO_VALUE;
  if (out_indices != NULL) *out_indices = (rondo_value){0};
  RONDO_TRY(rondo_program_begin_of(program, "max_pool", x, "x", out_value, &index));
  RONDO_TRY(rondo_require("max_pool", "options", options));
  RONDO_TRY(read_options(rondo_program_shape(program, index), options, &attributes));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_max_pool(program, index, &attributes, &result, &places);
  RONDO_TRY(rondo_program_finish(program, mark, status, result, out_value));
  if (out_indices != NULL) *out_indices = rondo_program_tag(program, places);
  return RONDO_OK;
}

rondo_status rondo_op_avg_pool(rondo_program *program, rondo_value x, const rondo_pooling_options *options,
                               rondo_value *out_value) {
  rondo_attributes attributes = {0};
  uint32_t index;
  RONDO_TRY(rondo_program_begin_of(program, "avg_pool", x, "x", out_value, &index));
  RONDO_TRY(rondo_require("avg_pool", "options", options));
  RONDO_TRY(read_options(rondo_program_shape(program, index), options, &attributes));
  return rondo_program_apply(program, &rondo_operator_avg_pool, &x, 1, &attributes, out_value);
}

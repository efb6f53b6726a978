/* SPDX-License-Identifier: MIT
 * max_pool2d and avg_pool2d. Gradients are gathered: each element of the image adds the gradients of the windows that
 * contain it, in their order. For that, max_pool2d keeps the index of each maximum in its plane. Threads: as
 * tensor/program/operator.h says.
 */
#include <string.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/convolution/window.h"

enum { COUNTS_PADDING };                            /* flags */
enum { HEIGHT = RONDO_WINDOW_SIZES, WIDTH, SIZES }; /* sizes, after the window's; of x */

/* A scalar argument of the kernels; without padding. */
typedef struct pool_shape {
  rondo_window window;
  size_t planes;
  uint64_t counts_padding;
} pool_shape;

/* A range of windows, or of elements of the image, along both axes: first <= i < last. */
typedef struct extent {
  size_t first[RONDO_WINDOW_AXES], last[RONDO_WINDOW_AXES];
} extent;

static size_t in_of(const pool_shape *s) { return s->window.in[RONDO_HEIGHT] * s->window.in[RONDO_WIDTH]; }
static size_t out_of(const pool_shape *s) { return s->window.out[RONDO_HEIGHT] * s->window.out[RONDO_WIDTH]; }

/* The part of a window that is inside the image. */
static extent inside(const rondo_window *w, size_t y, size_t x) {
  const size_t out[] = {y, x};
  extent e;
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    const size_t from = out[axis] * w->stride[axis], to = from + w->kernel[axis];
    e.first[axis] = from > w->padding[axis] ? from - w->padding[axis] : 0;
    e.last[axis] = to - w->padding[axis] < w->in[axis] ? to - w->padding[axis] : w->in[axis];
  }
  return e;
}

/* The windows that contain an element of the image. */
static extent around(const rondo_window *w, size_t y, size_t x) {
  const size_t in[] = {y, x};
  extent e;
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    const size_t at = in[axis] + w->padding[axis], last = at / w->stride[axis] + 1;
    e.first[axis] = at < w->kernel[axis] ? 0 : (at - w->kernel[axis]) / w->stride[axis] + 1;
    e.last[axis] = last < w->out[axis] ? last : w->out[axis];
  }
  return e;
}

static size_t size_of(const extent *e) {
  return (e->last[RONDO_HEIGHT] - e->first[RONDO_HEIGHT]) * (e->last[RONDO_WIDTH] - e->first[RONDO_WIDTH]);
}

static float share_of(const pool_shape *s, const extent *inside_window) {
  const size_t whole = s->window.kernel[RONDO_HEIGHT] * s->window.kernel[RONDO_WIDTH];
  return 1.0f / (float)(s->counts_padding != 0 ? whole : size_of(inside_window));
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

static size_t find_largest(const pool_shape *s, rondo_type type, const void *x, size_t plane, extent e) {
  const size_t width = s->window.in[RONDO_WIDTH];
  size_t best = e.first[RONDO_HEIGHT] * width + e.first[RONDO_WIDTH];
  float largest = rondo_load_one(type, x, plane + best);
  for (size_t i = e.first[RONDO_HEIGHT]; i < e.last[RONDO_HEIGHT]; i++) {
    for (size_t j = e.first[RONDO_WIDTH]; j < e.last[RONDO_WIDTH]; j++) {
      const float here = rondo_load_one(type, x, plane + i * width + j);
      if (!(here > largest) && !(here != here && largest == largest)) continue;
      largest = here;
      best = i * width + j;
    }
  }
  return best;
}

static float find_mean(const pool_shape *s, rondo_type type, const void *x, size_t plane, extent e) {
  const size_t width = s->window.in[RONDO_WIDTH];
  float sum = 0;
  for (size_t i = e.first[RONDO_HEIGHT]; i < e.last[RONDO_HEIGHT]; i++) {
    for (size_t j = e.first[RONDO_WIDTH]; j < e.last[RONDO_WIDTH]; j++)
      sum += rondo_load_one(type, x, plane + i * width + j);
  }
  return sum * share_of(s, &e);
}

/* Arguments: the shape, x, y, and for max_pool2d the indices of the maxima, which may be NULL. */
static void pool(rondo_type type, rondo_blocks blocks, void *const *args, bool is_max) {
  const pool_shape *s = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  void *y = RONDO_ARG(void *, 2);
  int32_t *places = is_max ? RONDO_ARG(int32_t *, 3) : NULL;
  const size_t width = s->window.out[RONDO_WIDTH];
  RONDO_EACH_ITEM(i, blocks, s->planes * out_of(s)) {
    const size_t plane = i / out_of(s) * in_of(s), out = i % out_of(s);
    const extent window = inside(&s->window, out / width, out % width);
    const size_t place = is_max ? find_largest(s, type, x, plane, window) : 0;
    rondo_store_one(type, y, i, is_max ? rondo_load_one(type, x, plane + place) : find_mean(s, type, x, plane, window));
    if (places != NULL) places[i] = (int32_t)place;
  }
}

/* The gradient of an element, from the windows that contain it. places: the indices of the maxima; NULL: means. */
static float gather_gradient(const pool_shape *s, rondo_type type, const int32_t *places, const void *dy, size_t plane,
                             size_t in) {
  const rondo_window *w = &s->window;
  const size_t width = w->in[RONDO_WIDTH];
  const extent e = around(w, in / width, in % width);
  float sum = 0;
  for (size_t y = e.first[RONDO_HEIGHT]; y < e.last[RONDO_HEIGHT]; y++) {
    for (size_t x = e.first[RONDO_WIDTH]; x < e.last[RONDO_WIDTH]; x++) {
      const size_t out = plane * out_of(s) + y * w->out[RONDO_WIDTH] + x;
      if (places != NULL && (size_t)places[out] != in) continue;
      const extent window = inside(w, y, x);
      sum += rondo_load_one(type, dy, out) * (places != NULL ? 1.0f : share_of(s, &window));
    }
  }
  return sum;
}

/* Arguments: the shape, dy, dx, and for max_pool2d the indices of the maxima. */
static void pool_gradient(rondo_type type, rondo_blocks blocks, void *const *args, bool is_max) {
  const pool_shape *s = args[0];
  const void *dy = RONDO_ARG(const void *, 1);
  void *dx = RONDO_ARG(void *, 2);
  const int32_t *places = is_max ? RONDO_ARG(const int32_t *, 3) : NULL;
  RONDO_EACH_ITEM(i, blocks, s->planes * in_of(s))
    rondo_store_one(type, dx, i, gather_gradient(s, type, places, dy, i / in_of(s), i % in_of(s)));
}

#define POOL_KERNEL(kernel, function, is_max, ...)                                    \
  static void kernel##_cpu(rondo_type type, rondo_blocks blocks, void *const *args) { \
    function(type, blocks, args, is_max);                                             \
  }                                                                                   \
  RONDO_TYPED_KERNEL(kernel, pool2d, RONDO_SCALAR(pool_shape), RONDO_READS, __VA_ARGS__)

POOL_KERNEL(max_pool2d, pool, true, RONDO_WRITES, RONDO_WRITES);
POOL_KERNEL(avg_pool2d, pool, false, RONDO_WRITES);
POOL_KERNEL(max_pool2d_gradient, pool_gradient, true, RONDO_WRITES, RONDO_READS);
POOL_KERNEL(avg_pool2d_gradient, pool_gradient, false, RONDO_WRITES);

#define POOL_GRAIN ((rondo_grain){2048, RONDO_CUDA_THREADS})

static pool_shape shape_of(const rondo_shape *x, const rondo_attributes *attributes) {
  return (pool_shape){.window = rondo_window_of(x, attributes),
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
  const pool_shape shape = shape_of(image, &operation->attributes);
  const size_t count = shape.planes * (is_gradient ? in_of(&shape) : out_of(&shape));
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

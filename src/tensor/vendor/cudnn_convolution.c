/* SPDX-License-Identifier: MIT
 * Convolutions as cuDNN graphs: of one operation, or, with channels last, followed by the sum with other values, the
 * sum with a bias and relu, in the order that cuDNN's engines know. Threads: as cudnn_convolution.h says.
 */
#include "tensor/vendor/cudnn_convolution.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "device/device.h"
#include "tensor/vendor/compute_libraries.h"

enum { X, WEIGHT, Y, BIAS, ADDEND, TENSORS }; /* numbers of tensors; from TENSORS on, those that are not stored */

struct rondo_convolution {
  rondo_cudnn_plan plan;
  rondo_convolution_shape shape;
};

/* Describing ------------------------------------------------------------------------------------------------------- */

#define MOST_OPERATIONS 4

typedef struct description {
  rondo_cudnn_plan *plan;
  const rondo_convolution_shape *shape;
  cudnn_descriptor tensors[TENSORS], window;
  cudnn_descriptor operations[MOST_OPERATIONS];
  int64_t count; /* of operations */
} description;

#define AXES RONDO_CONVOLUTION_AXES
#define RANK (2 + AXES)
#define ALIGNMENT 16 /* bytes; all engines accept it, and all values have it */

/* The first axis that the library sees: flat images have no depth, for which it has more engines. */
static size_t first_axis(const rondo_convolution_shape *s) {
  return s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1 && s->padding[0] == 0 ? 1 : 0;
}

/* Copies the sizes along the axes that the library sees; returns how many. */
static int64_t copy_axes(const rondo_convolution_shape *s, const size_t *sizes, int64_t *to) {
  int64_t count = 0;
  for (size_t axis = first_axis(s); axis < AXES; axis++) to[count++] = (int64_t)sizes[axis];
  return count;
}

/* The strides of packed values, with the channels before or after the axes of the image. */
static void set_strides(const int64_t *sizes, int64_t rank, bool channels_last, int64_t *strides) {
  int64_t stride = channels_last ? sizes[1] : 1;
  for (int64_t i = rank - 1; i > 1; stride *= sizes[i--]) strides[i] = stride;
  strides[1] = channels_last ? 1 : stride;
  strides[0] = channels_last ? stride : stride * sizes[1];
}

/* The plan identifies the tensor by its number. Values between operations are F32. */
static rondo_status add_tensor(description *d, int64_t number, size_t count, size_t channels, const size_t *image,
                               cudnn_descriptor *out) {
  int64_t sizes[RANK] = {(int64_t)count, (int64_t)channels}, strides[RANK];
  const int64_t rank = 2 + copy_axes(d->shape, image, sizes + 2), alignment = ALIGNMENT;
  const bool is_virtual = number >= TENSORS;
  const int type = is_virtual ? CUDNN_F32 : rondo_cudnn_type(d->shape->type);
  set_strides(sizes, rank, d->shape->channels_last, strides);
  const rondo_cudnn_setting settings[] = {{CUDNN_TENSOR_NUMBER, CUDNN_OF_INT64, 1, &number},
                                          {CUDNN_TENSOR_TYPE, CUDNN_OF_TYPE, 1, &type},
                                          {CUDNN_TENSOR_SIZES, CUDNN_OF_INT64, rank, sizes},
                                          {CUDNN_TENSOR_STRIDES, CUDNN_OF_INT64, rank, strides},
                                          {CUDNN_TENSOR_ALIGNMENT, CUDNN_OF_INT64, 1, &alignment},
                                          {CUDNN_TENSOR_IS_VIRTUAL, CUDNN_OF_BOOLEAN, 1, &is_virtual}};
  return rondo_cudnn_add(d->plan, CUDNN_TENSOR, settings, d->shape->channels_last ? 6 : 5, out);
}

static rondo_status add_result(description *d, int64_t number, cudnn_descriptor *out) {
  const rondo_convolution_shape *s = d->shape;
  return add_tensor(d, number, s->images, s->groups * s->out_channels, s->out, out);
}

static rondo_status add_window(description *d) {
  const rondo_convolution_shape *s = d->shape;
  int64_t stride[AXES], before[AXES], after[AXES], dilation[AXES];
  const int64_t axes = copy_axes(s, s->stride, stride);
  (void)copy_axes(s, s->padding, before);
  (void)copy_axes(s, s->after, after);
  (void)copy_axes(s, s->dilation, dilation);
  const int compute = CUDNN_F32, mode = CUDNN_CORRELATION;
  return rondo_cudnn_add(
      d->plan, CUDNN_WINDOW,
      RONDO_CUDNN_SETTINGS(
          {CUDNN_WINDOW_AXES, CUDNN_OF_INT64, 1, &axes}, {CUDNN_WINDOW_COMPUTE, CUDNN_OF_TYPE, 1, &compute},
          {CUDNN_WINDOW_MODE, CUDNN_OF_MODE, 1, &mode}, {CUDNN_WINDOW_BEFORE, CUDNN_OF_INT64, axes, before},
          {CUDNN_WINDOW_AFTER, CUDNN_OF_INT64, axes, after}, {CUDNN_WINDOW_DILATION, CUDNN_OF_INT64, axes, dilation},
          {CUDNN_WINDOW_STRIDE, CUDNN_OF_INT64, axes, stride}),
      &d->window);
}

static rondo_status add_convolution(description *d, cudnn_descriptor y) {
  static const struct {
    cudnn_kind kind;
    cudnn_attribute alpha;
  } passes[] = {[RONDO_CONVOLUTION_FORWARD] = {CUDNN_FORWARD, CUDNN_FORWARD_ALPHA},
                [RONDO_CONVOLUTION_INPUT_GRADIENT] = {CUDNN_INPUT_GRADIENT, CUDNN_INPUT_GRADIENT_ALPHA},
                [RONDO_CONVOLUTION_WEIGHT_GRADIENT] = {CUDNN_WEIGHT_GRADIENT, CUDNN_WEIGHT_GRADIENT_ALPHA}};
  const cudnn_attribute first = passes[d->shape->pass].alpha;
  const float one = 1, before = d->shape->adds ? 1 : 0;
  return rondo_cudnn_add(
      d->plan, passes[d->shape->pass].kind,
      RONDO_CUDNN_SETTINGS({first, CUDNN_OF_FLOAT, 1, &one},
                           {first + CUDNN_AFTER_ALPHA_BETA, CUDNN_OF_FLOAT, 1, &before},
                           {first + CUDNN_AFTER_ALPHA_WINDOW, CUDNN_OF_DESCRIPTOR, 1, &d->window},
                           {first + CUDNN_AFTER_ALPHA_WEIGHT, CUDNN_OF_DESCRIPTOR, 1, &d->tensors[WEIGHT]},
                           {first + CUDNN_AFTER_ALPHA_X, CUDNN_OF_DESCRIPTOR, 1, &d->tensors[X]},
                           {first + CUDNN_AFTER_ALPHA_Y, CUDNN_OF_DESCRIPTOR, 1, &y}),
      &d->operations[d->count++]);
}

/* to = x + operand, or relu(x) without an operand, which keeps NaN. */
static rondo_status add_pointwise(description *d, cudnn_descriptor x, cudnn_descriptor operand, cudnn_descriptor to) {
  const int mode = operand == NULL ? CUDNN_RELU : CUDNN_ADD, compute = CUDNN_F32, keeps = CUDNN_KEEPS_NOT_NUMBER;
  cudnn_descriptor pointwise;
  const rondo_cudnn_setting of[] = {{CUDNN_POINTWISE_MODE, CUDNN_OF_POINTWISE, 1, &mode},
                                    {CUDNN_POINTWISE_COMPUTE, CUDNN_OF_TYPE, 1, &compute},
                                    {CUDNN_POINTWISE_NOT_NUMBER, CUDNN_OF_NOT_NUMBER, 1, &keeps}};
  RONDO_TRY(rondo_cudnn_add(d->plan, CUDNN_POINTWISE, of, operand == NULL ? 3 : 2, &pointwise));
  const rondo_cudnn_setting settings[] = {{CUDNN_POINTWISE_OF, CUDNN_OF_DESCRIPTOR, 1, &pointwise},
                                          {CUDNN_POINTWISE_X, CUDNN_OF_DESCRIPTOR, 1, &x},
                                          {CUDNN_POINTWISE_Y, CUDNN_OF_DESCRIPTOR, 1, &to},
                                          {CUDNN_POINTWISE_B, CUDNN_OF_DESCRIPTOR, 1, &operand}};
  return rondo_cudnn_add(d->plan, CUDNN_POINTWISE_OPERATION, settings, operand == NULL ? 3 : 4,
                         &d->operations[d->count++]);
}

/* The convolution and what follows it. The last operation writes y, the others values that are not stored. */
static rondo_status add_operations(description *d) {
  const rondo_convolution_shape *s = d->shape;
  const bool follows[] = {s->has_addend, s->has_bias, s->has_relu};
  const cudnn_descriptor operands[] = {d->tensors[ADDEND], d->tensors[BIAS], NULL};
  int64_t left = follows[0] + follows[1] + follows[2];
  cudnn_descriptor from = d->tensors[Y], to;
  if (left > 0) RONDO_TRY(add_result(d, TENSORS + left, &from));
  RONDO_TRY(add_convolution(d, from));
  for (size_t i = 0; i < 3; i++) {
    if (!follows[i]) continue;
    to = d->tensors[Y];
    if (--left > 0) RONDO_TRY(add_result(d, TENSORS + left, &to));
    RONDO_TRY(add_pointwise(d, from, operands[i], to));
    from = to;
  }
  return RONDO_OK;
}

/* The workspace limit: one copy of all tensors, in another layout or as F32, and some partial results. No engine makes
 * good use of more. */
#define MIN_WORKSPACE ((double)(4 << 20))

static double product_of(const size_t *sizes) { return (double)sizes[0] * (double)sizes[1] * (double)sizes[2]; }

static double workspace_limit(const rondo_convolution_shape *s) {
  const double channels_in = (double)s->images * (double)s->groups * (double)s->in_channels;
  const double channels_out = (double)s->images * (double)s->groups * (double)s->out_channels;
  const double weights = (double)s->groups * (double)s->out_channels * (double)s->in_channels;
  const double elements =
      channels_in * product_of(s->in) + channels_out * product_of(s->out) + weights * product_of(s->kernel);
  return MIN_WORKSPACE + 2 * elements * (double)rondo_type_bytes(s->type);
}

/* rondo_cudnn_describe. */
static rondo_status describe(rondo_cudnn_plan *plan, void *user) {
  const rondo_convolution_shape *s = user;
  static const size_t one[AXES] = {1, 1, 1};
  description d = {.plan = plan, .shape = s};
  cudnn_descriptor *const tensors = d.tensors;
  RONDO_TRY(add_tensor(&d, X, s->images, s->groups * s->in_channels, s->in, &tensors[X]));
  RONDO_TRY(add_tensor(&d, WEIGHT, s->groups * s->out_channels, s->in_channels, s->kernel, &tensors[WEIGHT]));
  RONDO_TRY(add_result(&d, Y, &tensors[Y]));
  if (s->has_bias) RONDO_TRY(add_tensor(&d, BIAS, 1, s->out_channels, one, &tensors[BIAS]));
  if (s->has_addend) RONDO_TRY(add_result(&d, ADDEND, &tensors[ADDEND]));
  RONDO_TRY(add_window(&d));
  RONDO_TRY(add_operations(&d));
  return rondo_cudnn_choose(plan, d.operations, d.count, s->type, workspace_limit(s));
}

/* Preparing -------------------------------------------------------------------------------------------------------- */

static void log_unsupported(const rondo_convolution_shape *s) {
  rondo_log(RONDO_LOG_DEBUG, "tensor",
            "cuDNN has no suitable engine for pass %d of a convolution%s of %zu images [%zu, %zu, %zu, %zu] by %zu "
            "windows [%zu, %zu, %zu, %zu] of each of %zu groups",
            (int)s->pass, s->channels_last ? " with channels last" : "", s->images, s->groups * s->in_channels,
            s->in[0], s->in[1], s->in[2], s->out_channels, s->in_channels, s->kernel[0], s->kernel[1], s->kernel[2],
            s->groups);
}

/* Exact F32 products with so few tiles leave most of a large device idle, because the library does not split their
 * depth, as own kernels do. Measured on an H200 with bench_conv, for 8 images, the library took up to 3.1 times as
 * long. It took 2 to 5 times as long for gradients of weights of one tap, or of a first layer, which has so few
 * channels. Own kernels take longer for input gradients with strides, where most of what they multiply is zero. */
#define LIBRARY_TILE 32
#define FEW_TILES 256
#define FEW_GRADIENT_TILES 224
#define LEAST_DEPTH 512
#define FEW_CHANNELS 4

static double tiles_of(double rows, double columns) { return ceil(rows / LIBRARY_TILE) * ceil(columns / LIBRARY_TILE); }

static bool leaves_idle(const rondo_convolution_shape *s) {
  const double in = (double)s->in_channels, out = (double)s->out_channels, taps = product_of(s->kernel);
  const double images = (double)s->images, groups = (double)s->groups;
  const bool has_stride = s->stride[0] > 1 || s->stride[1] > 1 || s->stride[2] > 1;
  if (s->pass == RONDO_CONVOLUTION_WEIGHT_GRADIENT)
    return s->groups == 1 && (s->in_channels <= FEW_CHANNELS || (taps <= 1 && tiles_of(in, out) <= FEW_TILES));
  if (s->pass == RONDO_CONVOLUTION_FORWARD)
    return in * taps >= LEAST_DEPTH && groups * tiles_of(out, images * product_of(s->out)) <= FEW_TILES;
  return !has_stride && out * taps >= LEAST_DEPTH &&
         groups * tiles_of(in, images * product_of(s->in)) <= FEW_GRADIENT_TILES;
}

static bool is_worth_while(const rondo_cudnn_maker *maker, const rondo_convolution_shape *s) {
  const double least = (double)rondo_option_number(RONDO_OPTION_CUDNN_LEAST);
  const double results = (double)s->images * (double)s->groups * (double)s->out_channels * product_of(s->out);
  const double each = (double)s->in_channels * product_of(s->kernel);
  if (least > 1 && s->type == RONDO_F32 && !maker->allow_tf32 && leaves_idle(s)) return false;
  return results * each >= least;
}

rondo_status rondo_convolution_create(rondo_cudnn_maker *maker, const rondo_convolution_shape *shape,
                                      rondo_convolution **out) {
  *out = NULL;
  if (!rondo_device_takes_libraries(maker->device) || !is_worth_while(maker, shape) ||
      !rondo_library_find(&rondo_cudnn))
    return RONDO_OK;
  rondo_convolution *made;
  RONDO_TRY(rondo_allocate_items(&maker->allocator, 1, sizeof *made, &made));
  *made = (rondo_convolution){.plan = {.maker = maker, .what = "a convolution"}, .shape = *shape};
  const rondo_status status = rondo_cudnn_plan_make(&made->plan, describe, &made->shape);
  if (status == RONDO_OK && made->plan.plan != NULL) {
    *out = made;
    return RONDO_OK;
  }
  if (status == RONDO_OK) log_unsupported(shape);
  rondo_convolution_destroy(made);
  return status;
}

void rondo_convolution_destroy(rondo_convolution *convolution) {
  if (convolution == NULL) return;
  rondo_cudnn_plan_free(&convolution->plan);
  const rondo_allocator allocator = convolution->plan.maker->allocator;
  rondo_release(&allocator, convolution, 1, sizeof *convolution);
}

/* Running ---------------------------------------------------------------------------------------------------------- */

size_t rondo_convolution_workspace(const rondo_convolution *convolution) { return convolution->plan.workspace_bytes; }

bool rondo_convolution_has_relu(const rondo_convolution *convolution) { return convolution->shape.has_relu; }

rondo_status rondo_convolution_bind(rondo_convolution *convolution, const rondo_convolution_memory *memory) {
  const void *const all[] = {
      [X] = memory->x, [WEIGHT] = memory->weight, [Y] = memory->y, [BIAS] = memory->bias, [ADDEND] = memory->addend};
  const void *addresses[TENSORS];
  int64_t numbers[TENSORS], count = 0;
  for (int64_t i = 0; i < TENSORS; i++) {
    if ((i == BIAS && !convolution->shape.has_bias) || (i == ADDEND && !convolution->shape.has_addend)) continue;
    numbers[count] = i;
    addresses[count++] = all[i];
  }
  return rondo_cudnn_plan_bind(&convolution->plan, numbers, addresses, count, memory->workspace);
}

rondo_status rondo_convolution_run(const rondo_convolution *convolution, rondo_stream *stream) {
  return rondo_cudnn_plan_run(&convolution->plan, stream);
}

/* SPDX-License-Identifier: MIT
 * conv: cross-correlation of images [n, c, ..] of one to three dimensions with weights [o, c / groups, ..], as matrix
 * products. One factor, the windows of an image, is gathered as needed (Chellapilla et al., "High Performance
 * Convolutional Neural Networks", 2006). The gradients are such products too: nothing is scattered.
 *
 * A library computes the convolution where it is faster: on CUDA cuDNN (cudnn_convolution.h), which in F32 adds to a
 * result that another step has filled with the bias; on a CPU oneDNN, in F32 (conv_onednn.h). Threads: as
 * tensor/program/operator.h says.
 */
#include "tensor/operators/convolution/conv.h"

#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/convolution/conv_onednn.h"
#include "tensor/operators/elementwise/unary_operators.h"
#include "tensor/operators/matmul/gemm.h"

enum { X, WEIGHT, BIAS }; /* inputs */
enum { GROUPS = RONDO_CONV_GROUPS, IMAGE = RONDO_CONV_IMAGE };

/* Kernels ---------------------------------------------------------------------------------------------------------- */

#define CONV_KERNEL(kernel, form, ...)                                                                      \
  static void kernel##_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {                       \
    (rondo_conv_is_depthwise(args[0]) ? rondo_conv_depthwise##form : rondo_conv##form)(type, blocks, args); \
  }                                                                                                         \
  RONDO_TYPED_KERNEL(kernel, conv, RONDO_SCALAR(rondo_conv_shape), RONDO_READS, RONDO_READS, __VA_ARGS__)

CONV_KERNEL(conv, _cpu, RONDO_READS, RONDO_WRITES);
CONV_KERNEL(conv_input_gradient, _input_gradient_cpu, RONDO_WRITES);
CONV_KERNEL(conv_weight_gradient, _weight_gradient_cpu, RONDO_WRITES);

/* Fills the result to which a library adds. Arguments: elements, elements of a plane, channels, bias, y. */
static void conv_bias_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const size_t count = RONDO_ARG(size_t, 0), places = RONDO_ARG(size_t, 1), channels = RONDO_ARG(size_t, 2);
  const unsigned char *bias = RONDO_ARG(const unsigned char *, 3);
  unsigned char *y = RONDO_ARG(unsigned char *, 4);
  const size_t bytes = rondo_type_bytes(type);
  RONDO_EACH_ITEM(i, blocks, count) memcpy(y + i * bytes, bias + i / places % channels * bytes, bytes);
}

RONDO_TYPED_KERNEL(conv_bias, conv, RONDO_SCALAR(size_t), RONDO_SCALAR(size_t), RONDO_SCALAR(size_t), RONDO_READS,
                   RONDO_WRITES);

/* Adds the parts of the depth. Arguments: results, parts, segments of them on CUDA, sums [parts, results], y. */
static void conv_sum_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const size_t count = RONDO_ARG(size_t, 0), parts = RONDO_ARG(size_t, 1);
  const float *from = RONDO_ARG(const float *, 3);
  RONDO_EACH_ITEM(i, blocks, count) {
    float sum = 0;
    for (size_t part = 0; part < parts; part++) sum += from[part * count + i];
    rondo_store_one(type, RONDO_ARG(void *, 4), i, sum);
  }
}

RONDO_TYPED_KERNEL(conv_sum, conv, RONDO_SCALAR(size_t), RONDO_SCALAR(size_t), RONDO_SCALAR(size_t), RONDO_READS,
                   RONDO_WRITES);

/* So many results keep the device busy if a thread adds all parts of one. */
#define MANY_RESULTS 32768
#define SEGMENTS 32

static rondo_status emit_sum(rondo_emitter *emitter, const rondo_operation *operation, size_t parts, void *from) {
  const rondo_shape *y = rondo_emit_shape(emitter, operation->results[0]);
  const size_t count = rondo_shape_elements(y), segments = count < MANY_RESULTS ? SEGMENTS : 1;
  const rondo_grid grid = rondo_emit_grid(emitter, count, (rondo_grain){8192, RONDO_CUDA_THREADS / segments});
  return rondo_emit_operands(emitter, operation, &conv_sum_code[y->type], grid,
                             RONDO_OPERANDS(RONDO_OBJECT(count), RONDO_OBJECT(parts), RONDO_OBJECT(segments),
                                            RONDO_OBJECT(from), RONDO_RESULT(0)));
}

#define ENOUGH_TILES 8

/* Chooses tiles that are as large as possible but enough for a typical number of workers; by the shape alone. */
static size_t cut_for_cpu(rondo_conv_shape *shape, rondo_conv_product product) {
  shape->edge = RONDO_CONV_EDGE;
  while (shape->edge > 32 && rondo_conv_tiles(shape, product) < ENOUGH_TILES) shape->edge /= 2;
  return rondo_conv_tiles(shape, product);
}

#define CUDA_EDGE 64 /* of a tile: conv.cu */
#define CUDA_STEP 16 /* in depth, likewise */

/* Enough blocks to keep a large GPU busy, and the minimum depth of a part. */
#define ENOUGH_BLOCKS 384
#define MIN_DEPTH 64

/* The images of a group have common tiles (conv.cu). Gradients of weights, and convolutions of small images, have few
 * tiles and a large depth. The depth of each tile is split into so many parts that there are enough blocks. */
static size_t cut_for_cuda(rondo_conv_shape *shape, rondo_conv_product product) {
  const rondo_conv_product joined = {product.rows, product.columns * (product.count / shape->groups), product.depth,
                                     shape->groups};
  shape->edge = CUDA_EDGE;
  const size_t tiles = rondo_conv_tiles(shape, joined);
  const size_t parts = rondo_smaller(ENOUGH_BLOCKS / tiles, product.depth / MIN_DEPTH);
  shape->part = parts < 2 ? product.depth : rondo_divide_up(product.depth, parts * CUDA_STEP) * CUDA_STEP;
  shape->parts = rondo_divide_up(product.depth, shape->part);
  return tiles * shape->parts;
}

rondo_conv_shape rondo_conv_shape_of(const rondo_shape *x, const rondo_shape *weight,
                                     const rondo_attributes *attributes) {
  const size_t groups = attributes->sizes[GROUPS];
  assert(groups > 0 && weight->dims[0] % groups == 0 && x->dims[1] == weight->dims[1] * groups);
  return (rondo_conv_shape){.window = rondo_window_of(x, attributes),
                            .images = x->dims[0],
                            .groups = groups,
                            .in_channels = weight->dims[1],
                            .out_channels = weight->dims[0] / groups,
                            .activation = attributes->sizes[RONDO_CONV_ACTIVATION]};
}

/* Convolutions of a library ---------------------------------------------------------------------------------------- */

/* What one of the operators computes. x, weight and y are its inputs or results (rondo_operand_value). */
typedef struct conv_pass {
  rondo_convolution_pass pass;
  uint32_t x, weight, y;
  const rondo_kernel_options *code; /* one per type */
  rondo_conv_product (*product)(const rondo_conv_shape *shape);
  size_t (*depthwise_tiles)(const rondo_conv_shape *shape);
} conv_pass;

static const conv_pass forward_pass = {RONDO_CONVOLUTION_FORWARD, X,         WEIGHT,
                                       RONDO_RESULT_NUMBER(0),    conv_code, rondo_conv_forward,
                                       rondo_conv_depthwise_tiles};
static const conv_pass input_gradient_pass = {RONDO_CONVOLUTION_INPUT_GRADIENT,
                                              RONDO_RESULT_NUMBER(0),
                                              0,
                                              1,
                                              conv_input_gradient_code,
                                              rondo_conv_input_gradient,
                                              rondo_conv_depthwise_input_gradient_tiles};
static const conv_pass weight_gradient_pass = {RONDO_CONVOLUTION_WEIGHT_GRADIENT,
                                               0,
                                               RONDO_RESULT_NUMBER(0),
                                               1,
                                               conv_weight_gradient_code,
                                               rondo_conv_weight_gradient,
                                               rondo_conv_depthwise_weight_gradient_tiles};

static rondo_grid cut(const rondo_emitter *emitter, rondo_conv_shape *shape, const conv_pass *pass) {
  const bool is_cuda = rondo_emit_is_cuda(emitter);
  const bool is_depthwise = !is_cuda && rondo_conv_is_depthwise(shape);
  const size_t tiles = is_depthwise ? pass->depthwise_tiles(shape)
                       : is_cuda    ? cut_for_cuda(shape, pass->product(shape))
                                    : cut_for_cpu(shape, pass->product(shape));
  return rondo_tile_grid(tiles);
}

static rondo_status destroy_made(void *made) {
  rondo_onednn_convolution_destroy(made);
  return RONDO_OK;
}

rondo_status rondo_conv_prepare_on_cpu(rondo_resources *resources, uint32_t number, rondo_convolution_pass pass,
                                       const rondo_conv_shape *shape, rondo_conv_blocks blocks, bool has_bias,
                                       size_t *out_workspace_bytes) {
  const rondo_onednn_convolution *const packed = rondo_resources_object(resources, number);
  rondo_onednn_convolution *made;
  *out_workspace_bytes = packed == NULL ? 0 : rondo_onednn_convolution_workspace(packed);
  if (resources->own_kernels || packed != NULL) return RONDO_OK;
  RONDO_TRY(rondo_onednn_convolution_create(&resources->allocator, pass, shape, blocks, has_bias, NULL, &made));
  if (made == NULL) return RONDO_OK;
  *out_workspace_bytes = rondo_onednn_convolution_workspace(made);
  return rondo_resources_add_object(resources, number, made, destroy_made);
}

rondo_convolution_shape rondo_conv_library_shape(const rondo_conv_shape *shape, rondo_convolution_pass pass,
                                                 rondo_type type) {
  const rondo_window *w = &shape->window;
  rondo_convolution_shape made = {.pass = pass,
                                  .type = type,
                                  .images = shape->images,
                                  .groups = shape->groups,
                                  .in_channels = shape->in_channels,
                                  .out_channels = shape->out_channels};
  memcpy(made.in, w->in, sizeof made.in);
  memcpy(made.out, w->out, sizeof made.out);
  memcpy(made.kernel, w->kernel, sizeof made.kernel);
  memcpy(made.stride, w->stride, sizeof made.stride);
  memcpy(made.padding, w->padding, sizeof made.padding);
  memcpy(made.after, w->after, sizeof made.after);
  memcpy(made.dilation, w->dilation, sizeof made.dilation);
  return made;
}

/* Without a library. The workspace has the results of the parts of the depth, if there are several. */
static size_t own_workspace(rondo_conv_shape shape, const conv_pass *pass) {
  const rondo_conv_product p = pass->product(&shape);
  (void)cut_for_cuda(&shape, p);
  return shape.parts == 1 ? 0 : p.count * p.rows * p.columns * shape.parts * sizeof(float);
}

static rondo_status prepare_on_cuda(rondo_resources *resources, uint32_t number, const rondo_operation *operation,
                                    const rondo_conv_shape *shape, rondo_type type, size_t *out_workspace_bytes) {
  const conv_pass *pass = operation->row->family;
  const bool adds = operation->inputs[BIAS] != RONDO_NO_VALUE;
  *out_workspace_bytes = 0;
  if (!adds || type == RONDO_F32) { /* the library rounds to the type before it adds */
    rondo_convolution_shape made = rondo_conv_library_shape(shape, pass->pass, type);
    made.adds = adds;
    RONDO_TRY(rondo_resources_add_convolution(resources, number, &made, out_workspace_bytes));
  }
  if (rondo_resources_convolution(resources, number) == NULL) *out_workspace_bytes = own_workspace(*shape, pass);
  return RONDO_OK;
}

static rondo_conv_shape operation_shape(const rondo_program *program, const rondo_operation *operation) {
  const conv_pass *pass = operation->row->family;
  return rondo_conv_shape_of(rondo_program_shape(program, rondo_operand_value(operation, pass->x)),
                             rondo_program_shape(program, rondo_operand_value(operation, pass->weight)),
                             &operation->attributes);
}

/* Gradients have no bias. */
static rondo_status prepare(rondo_resources *resources, const rondo_program *program, uint32_t number,
                            size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  const conv_pass *pass = operation->row->family;
  const rondo_shape *x = rondo_program_shape(program, rondo_operand_value(operation, pass->x));
  const rondo_conv_shape shape = operation_shape(program, operation);
  const bool adds = operation->inputs[BIAS] != RONDO_NO_VALUE;
  rondo_device_info info = {.struct_size = sizeof info};
  *out_workspace_bytes = 0;
  RONDO_TRY(rondo_device_get_info(resources->device, &info));
  if (info.cuda) return prepare_on_cuda(resources, number, operation, &shape, x->type, out_workspace_bytes);
  if (x->type != RONDO_F32) return RONDO_OK;
  return rondo_conv_prepare_on_cpu(resources, number, pass->pass, &shape, RONDO_CONV_PLAIN, adds, out_workspace_bytes);
}

rondo_status rondo_conv_pack_on_cpu(rondo_resources *resources, uint32_t number, const rondo_conv_shape *shape,
                                    rondo_conv_blocks blocks, bool has_bias, rondo_packed_state **out_packed) {
  rondo_onednn_convolution *made;
  *out_packed = NULL;
  if (resources->own_kernels) return RONDO_OK;
  RONDO_TRY(rondo_onednn_convolution_create(&resources->allocator, RONDO_CONVOLUTION_FORWARD, shape, blocks, has_bias,
                                            out_packed, &made));
  if (made == NULL) return RONDO_OK;
  const rondo_status status = rondo_resources_add_object(resources, number, made, destroy_made);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_status_ignore(rondo_packed_state_release(*out_packed), "it has no rows");
  *out_packed = NULL;
  return status;
}

/* Of forward convolutions on a CPU, whose weights are a state. */
static rondo_status pack(rondo_resources *resources, const rondo_program *program, uint32_t number,
                         rondo_packed_state **out_packed) {
  const rondo_operation *operation = &program->operations.items[number];
  const rondo_conv_shape shape = operation_shape(program, operation);
  *out_packed = NULL;
  if (rondo_program_shape(program, operation->inputs[X])->type != RONDO_F32) return RONDO_OK;
  return rondo_conv_pack_on_cpu(resources, number, &shape, RONDO_CONV_PLAIN, operation->inputs[BIAS] != RONDO_NO_VALUE,
                                out_packed);
}

/* A rondo_step_call; user: a convolution. */
static rondo_status run_convolution(rondo_resources *resources, rondo_stream *stream, const void *user) {
  const rondo_convolution *convolution;
  (void)resources;
  memcpy(&convolution, user, sizeof convolution);
  return rondo_convolution_run(convolution, stream);
}

rondo_status rondo_conv_emit_call(rondo_emitter *emitter, rondo_convolution *convolution,
                                  const rondo_convolution_memory *memory) {
  RONDO_TRY(rondo_convolution_bind(convolution, memory));
  return rondo_emit_call(emitter, run_convolution, &convolution, sizeof convolution);
}

static bool is_librarys(const rondo_emitter *emitter) {
  return rondo_emit_convolution(emitter) != NULL || rondo_emit_object(emitter) != NULL;
}

/* Fills the result with the bias, if any. */
static rondo_status emit_bias(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->results[0]);
  const size_t count = rondo_shape_elements(shape), places = rondo_shape_elements_of(shape, 2, shape->rank);
  if (operation->inputs[BIAS] == RONDO_NO_VALUE) return RONDO_OK;
  return rondo_emit_operands(emitter, operation, &conv_bias_code[shape->type],
                             rondo_emit_grid(emitter, count, RONDO_ELEMENTWISE_GRAIN),
                             RONDO_OPERANDS(RONDO_OBJECT(count), RONDO_OBJECT(places), RONDO_OBJECT(shape->dims[1]),
                                            RONDO_INPUT(BIAS), RONDO_RESULT(0)));
}

static rondo_status emit_library(rondo_emitter *emitter, const rondo_operation *operation) {
  const conv_pass *pass = operation->row->family;
  rondo_convolution *convolution = rondo_emit_convolution(emitter);
  const rondo_convolution_memory memory = {
      .x = rondo_emit_address(emitter, rondo_operand_value(operation, pass->x)),
      .weight = rondo_emit_address(emitter, rondo_operand_value(operation, pass->weight)),
      .y = rondo_emit_address(emitter, rondo_operand_value(operation, pass->y)),
      .workspace = rondo_emit_workspace(emitter)};
  if (rondo_emit_is_cuda(emitter)) RONDO_TRY(emit_bias(emitter, operation));
  if (convolution == NULL)
    return rondo_onednn_convolution_emit(emitter, rondo_emit_object(emitter), &memory,
                                         rondo_emit_address(emitter, operation->inputs[BIAS]));
  return rondo_conv_emit_call(emitter, convolution, &memory);
}

static rondo_status emit_own(rondo_emitter *emitter, const rondo_operation *operation) {
  const conv_pass *pass = operation->row->family;
  const rondo_shape *x = rondo_emit_shape(emitter, rondo_operand_value(operation, pass->x));
  const rondo_shape *weight = rondo_emit_shape(emitter, rondo_operand_value(operation, pass->weight));
  rondo_conv_shape shape = rondo_conv_shape_of(x, weight, &operation->attributes);
  const rondo_grid grid = cut(emitter, &shape, pass);
  if (rondo_emit_is_cuda(emitter)) shape.activation = RONDO_ACTIVATION_NONE;
  void *const result = rondo_emit_address(emitter, operation->results[0]);
  void *const to = shape.parts > 1 ? rondo_emit_workspace(emitter) : result;
  rondo_gemm_prepare();
  if (pass == &forward_pass)
    RONDO_TRY(rondo_emit_operands(
        emitter, operation, &pass->code[x->type], grid,
        RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(X), RONDO_INPUT(WEIGHT), RONDO_INPUT(BIAS), RONDO_OBJECT(to))));
  else
    RONDO_TRY(
        rondo_emit_operands(emitter, operation, &pass->code[x->type], grid,
                            RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_INPUT(1), RONDO_OBJECT(to))));
  return shape.parts < 2 ? RONDO_OK : emit_sum(emitter, operation, shape.parts, to);
}

/* On CUDA the activation changes the result in place, after all else. */
static rondo_status emit(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_activation activation = (rondo_activation)operation->attributes.sizes[RONDO_CONV_ACTIVATION];
  RONDO_TRY(is_librarys(emitter) ? emit_library(emitter, operation) : emit_own(emitter, operation));
  if (activation == RONDO_ACTIVATION_NONE || !rondo_emit_is_cuda(emitter)) return RONDO_OK;
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->results[0]);
  void *y = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_activation(emitter, activation, shape->type, y, y, rondo_shape_elements(shape));
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

static rondo_status check_bias(const rondo_program *program, const rondo_operation *operation) {
  const rondo_shape *weight = rondo_operation_input(program, operation, WEIGHT);
  const rondo_shape *bias = rondo_operation_input(program, operation, BIAS);
  if (bias == NULL) return RONDO_OK;
  RONDO_TRY(rondo_require_input(program, operation, BIAS, weight->type, 1));
  if (bias->dims[0] == weight->dims[0]) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "the bias has %zu elements; it needs one for each of the %zu channels", bias->dims[0],
                              weight->dims[0]);
}

/* x has one to three dimensions beside its images and channels, and the other input as many. */
static rondo_status require_ranks(const rondo_program *program, const rondo_operation *operation, uint32_t x,
                                  uint32_t other) {
  const rondo_shape *image = rondo_operation_input(program, operation, x);
  RONDO_TRY(rondo_require_float(program, operation, x, RONDO_ANY_RANK));
  if (!rondo_window_has_rank(image->rank))
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "x has %u dimensions; it needs 3 to 5: [n, c, w], [n, c, h, w] or [n, c, d, h, w]",
                                image->rank);
  return rondo_require_input(program, operation, other, image->type, image->rank);
}

static rondo_status infer_conv(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *x = rondo_operation_input(program, operation, X);
  const rondo_shape *weight = rondo_operation_input(program, operation, WEIGHT);
  const size_t groups = operation->attributes.sizes[GROUPS];
  rondo_window w;
  RONDO_TRY(require_ranks(program, operation, X, WEIGHT));
  RONDO_TRY(rondo_window_make(program, operation, x, &w));
  RONDO_TRY(check_bias(program, operation));
  if (weight->dims[0] % groups != 0 || x->dims[1] % groups != 0) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "x [n, c, ..] has %zu channels, and weight [o, c / groups, ..] gives %zu; both must be "
                                "multiples of the %zu groups",
                                x->dims[1], weight->dims[0], groups);
  }
  if (weight->dims[1] != x->dims[1] / groups) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "weight [o, c / groups, ..] takes %zu channels for each of %zu groups, and x [n, c, "
                                "..] has %zu channels in all",
                                weight->dims[1], groups, x->dims[1]);
  }
  results[0] = rondo_window_image(x->type, x->rank, x->dims[0], weight->dims[0], w.out);
  return RONDO_OK;
}

/* dy [n, o, ..] summed over all but o. */
static rondo_status add_bias_gradient(rondo_program *program, uint32_t dy, uint32_t *out_value) {
  const rondo_attributes but_channels = {.sizes = {0, 2, 3, 4},
                                         .size_count = rondo_program_shape(program, dy)->rank - 1};
  return rondo_program_add(program, &rondo_operator_sum, &dy, 1, &but_channels, out_value);
}

static rondo_status differentiate_conv(rondo_program *program, const rondo_operation *operation,
                                       const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_shape *x = rondo_operation_input(program, operation, X);
  const uint32_t dy = result_gradients[0];
  const uint32_t for_x[] = {operation->inputs[WEIGHT], dy}, for_weight[] = {operation->inputs[X], dy};
  rondo_attributes attributes = operation->attributes;
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++)
    attributes.sizes[IMAGE + axis] = rondo_window_image_size(x, axis);
  attributes.size_count = RONDO_CONV_SIZES;
  RONDO_TRY(
      rondo_program_add(program, &rondo_operator_conv_input_gradient, for_x, 2, &attributes, &input_gradients[X]));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_conv_weight_gradient, for_weight, 2, &attributes,
                              &input_gradients[WEIGHT]));
  if (operation->inputs[BIAS] == RONDO_NO_VALUE) return RONDO_OK;
  return add_bias_gradient(program, dy, &input_gradients[BIAS]);
}

RONDO_OPERATOR(conv, .types = RONDO_FLOATS, .family = &forward_pass, .inputs = {"x", "weight", "bias"}, .required = 2,
               .result_count = 1, .infer = infer_conv, .differentiate = differentiate_conv, .prepare = prepare,
               .packed_input = WEIGHT, .pack = pack, .emit = emit);

/* The dimensions of a weight after its channels, or zeros, which no call takes, if it has none. */
static rondo_window_given window_given(const rondo_shape *weight, const size_t *stride, const size_t *padding,
                                       const size_t *before, const size_t *after, const size_t *dilation) {
  return (rondo_window_given){.kernel = &weight->dims[2],
                              .stride = stride,
                              .padding = padding,
                              .before = before,
                              .after = after,
                              .dilation = dilation};
}

rondo_status rondo_op_conv(rondo_program *program, rondo_value x, rondo_value weight, const rondo_conv_options *options,
                           rondo_value *out_value) {
  rondo_conv_options given;
  rondo_attributes attributes = {0};
  uint32_t index = 0;
  RONDO_TRY(rondo_program_begin(program, "conv", out_value));
  RONDO_TRY(rondo_versioned_read("rondo_conv_options", options, &given, sizeof given));
  RONDO_TRY(rondo_program_resolve(program, weight, "conv", "weight", &index));
  const rondo_shape *shape = rondo_program_shape(program, index);
  const rondo_window_given window =
      window_given(shape, given.stride, given.padding, given.padding_before, given.padding_after, given.dilation);
  rondo_window_attributes(rondo_window_has_rank(shape->rank) ? shape->rank : 4, &window, &attributes);
  attributes.sizes[GROUPS] = given.groups == 0 ? 1 : given.groups;
  attributes.size_count = RONDO_CONV_SIZES;
  const rondo_value inputs[] = {x, weight, given.bias};
  return rondo_program_apply(program, &rondo_operator_conv, inputs, 3, &attributes, out_value);
}

/* Gradients: inputs are one of x and weight, and dy ---------------------------------------------------------------- */

/* The shape of dx, given the weight, or of dweight, given x. */
static rondo_shape gradient_shape(const rondo_operation *operation, const rondo_shape *given, const rondo_shape *dy) {
  const size_t *sizes = operation->attributes.sizes;
  if (operation->row->family == &input_gradient_pass)
    return rondo_window_image(dy->type, dy->rank, dy->dims[0], given->dims[1] * sizes[GROUPS], sizes + IMAGE);
  return rondo_window_image(dy->type, dy->rank, dy->dims[1], given->dims[1] / sizes[GROUPS],
                            sizes + RONDO_WINDOW_KERNEL);
}

static rondo_status infer_gradient(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  const rondo_shape *given = rondo_operation_input(program, operation, 0);
  RONDO_TRY(require_ranks(program, operation, 0, 1));
  results[0] = gradient_shape(operation, given, rondo_operation_input(program, operation, 1));
  return RONDO_OK;
}

#define GRADIENT_ROW .required = 2, .result_count = 1, .infer = infer_gradient, .prepare = prepare, .emit = emit

RONDO_OPERATOR(conv_input_gradient, .family = &input_gradient_pass, .inputs = {"weight", "gradient"}, GRADIENT_ROW);
RONDO_OPERATOR(conv_weight_gradient, .family = &weight_gradient_pass, .inputs = {"x", "gradient"}, GRADIENT_ROW);

/* Transposed: the gradient of x as an operator; its gradients are the other passes --------------------------------- */

enum { T_WEIGHT, T_X }; /* inputs */

static rondo_status differentiate_transposed(rondo_program *program, const rondo_operation *operation,
                                             const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t for_x[] = {result_gradients[0], operation->inputs[T_WEIGHT]};
  const uint32_t for_weight[] = {result_gradients[0], operation->inputs[T_X]};
  RONDO_TRY(rondo_program_add(program, &rondo_operator_conv, for_x, 2, &operation->attributes, &input_gradients[T_X]));
  return rondo_program_add(program, &rondo_operator_conv_weight_gradient, for_weight, 2, &operation->attributes,
                           &input_gradients[T_WEIGHT]);
}

/* The convolution of the result has to have the shape of x. */
static rondo_status infer_transposed(const rondo_program *program, const rondo_operation *operation,
                                     rondo_shape *results) {
  const rondo_shape *weight = rondo_operation_input(program, operation, T_WEIGHT);
  const rondo_shape *x = rondo_operation_input(program, operation, T_X);
  const size_t *sizes = operation->attributes.sizes;
  rondo_window w;
  RONDO_TRY(require_ranks(program, operation, T_X, T_WEIGHT));
  if (weight->dims[0] != x->dims[1] || x->dims[1] % sizes[GROUPS] != 0) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "x must be [n, c, ..], weight [c, o / groups, ..], with c a multiple of the %zu groups",
                                sizes[GROUPS]);
  }
  results[0] = gradient_shape(operation, weight, x);
  RONDO_TRY(rondo_window_make(program, operation, &results[0], &w));
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    if (w.out[axis] == rondo_window_image_size(x, axis)) continue;
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "the output padding must be smaller than the stride, %zu",
                                sizes[RONDO_WINDOW_STRIDE + axis]);
  }
  return RONDO_OK;
}

RONDO_OPERATOR(conv_transpose, .types = RONDO_FLOATS, .typed_input = T_X, .family = &input_gradient_pass,
               .inputs = {"weight", "x"}, .required = 2, .result_count = 1, .infer = infer_transposed,
               .differentiate = differentiate_transposed, .prepare = prepare, .emit = emit);

/* The size of the result along an axis; false if it is not positive or too large. */
static bool transposed_size(const rondo_attributes *attributes, size_t axis, size_t in, size_t output_padding,
                            size_t *out_size) {
  const size_t *sizes = attributes->sizes + axis;
  const size_t kernel = sizes[RONDO_WINDOW_KERNEL], stride = sizes[RONDO_WINDOW_STRIDE];
  const size_t before = sizes[RONDO_WINDOW_PADDING], after = sizes[RONDO_WINDOW_AFTER];
  const size_t dilation = sizes[RONDO_WINDOW_DILATION], all[] = {in, kernel, stride, before, after, dilation};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (all[i] > RONDO_WINDOW_MAX) return false;
  if (output_padding > RONDO_WINDOW_MAX || kernel == 0) return false;
  const size_t extent = (in - 1) * stride + dilation * (kernel - 1) + output_padding + 1;
  *out_size = extent - before - after;
  return extent > before + after && *out_size <= RONDO_WINDOW_MAX;
}

/* Adds the bias [o] to the result [n, o, ..]. */
static rondo_status add_bias(rondo_program *program, rondo_value bias, uint32_t *inout_result) {
  uint32_t terms[] = {*inout_result, RONDO_NO_VALUE}, bias_index;
  const rondo_shape *result = rondo_program_shape(program, *inout_result);
  RONDO_TRY(rondo_program_resolve(program, bias, "conv_transpose", "bias", &bias_index));
  const rondo_shape *given = rondo_program_shape(program, bias_index);
  const rondo_shape plane = {.type = result->type, .rank = result->rank - 1, .dims = {result->dims[1], 1, 1, 1}};
  if (given->type != result->type || given->rank != 1 || given->dims[0] != result->dims[1]) {
    char text[RONDO_SHAPE_TEXT];
    return rondo_fail(RONDO_INVALID_ARGUMENT, given->type != result->type ? RONDO_REASON_TYPE : RONDO_REASON_SHAPE,
                      "conv_transpose: the bias is %s; it needs one %s for each of the %zu channels of the result",
                      rondo_shape_text(text, given), rondo_type_name(result->type), result->dims[1]);
  }
  RONDO_TRY(rondo_program_add_shaped(program, &rondo_operator_reshape, bias_index, plane, &terms[1]));
  return rondo_program_add(program, &rondo_operator_add, terms, 2, NULL, inout_result);
}

/* Sets the sizes of the result, the image of which x is the convolution. */
static rondo_status size_result(const rondo_shape *x, const rondo_conv_transpose_options *given,
                                rondo_attributes *attributes) {
  const size_t first = rondo_window_first_axis(x->rank);
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    const size_t in = rondo_window_image_size(x, axis), more = axis < first ? 0 : given->output_padding[axis - first];
    if (transposed_size(attributes, axis, in, more, &attributes->sizes[IMAGE + axis])) continue;
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "conv_transpose: a padding of %zu before and %zu after leaves nothing of the result, or a size "
                      "is larger than %zu: use a smaller padding, stride or dilation",
                      attributes->sizes[RONDO_WINDOW_PADDING + axis], attributes->sizes[RONDO_WINDOW_AFTER + axis],
                      RONDO_WINDOW_MAX);
  }
  return RONDO_OK;
}

static rondo_status add_transposed(rondo_program *program, const uint32_t *inputs,
                                   const rondo_conv_transpose_options *given, uint32_t *out_result) {
  const rondo_shape *weight = rondo_program_shape(program, inputs[T_WEIGHT]);
  const rondo_shape *x = rondo_program_shape(program, inputs[T_X]);
  const rondo_window_given window =
      window_given(weight, given->stride, given->padding, given->padding_before, given->padding_after, given->dilation);
  const bool has_sizes = rondo_window_has_rank(x->rank) && weight->rank == x->rank;
  rondo_attributes attributes = {0};
  rondo_window_attributes(has_sizes ? x->rank : 4, &window, &attributes);
  attributes.sizes[GROUPS] = given->groups == 0 ? 1 : given->groups;
  attributes.size_count = RONDO_CONV_SIZES;
  if (has_sizes) RONDO_TRY(size_result(x, given, &attributes));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_conv_transpose, inputs, 2, &attributes, out_result));
  return given->bias.id == 0 ? RONDO_OK : add_bias(program, given->bias, out_result);
}

rondo_status rondo_op_conv_transpose(rondo_program *program, rondo_value x, rondo_value weight,
                                     const rondo_conv_transpose_options *options, rondo_value *out_value) {
  rondo_conv_transpose_options given;
  uint32_t inputs[2], result = RONDO_NO_VALUE;
  RONDO_TRY(rondo_program_begin(program, "conv_transpose", out_value));
  RONDO_TRY(rondo_versioned_read("rondo_conv_transpose_options", options, &given, sizeof given));
  RONDO_TRY(
      rondo_program_resolve_inputs(program, &rondo_operator_conv_transpose, (rondo_value[]){weight, x}, 2, inputs));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_transposed(program, inputs, &given, &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}

/* SPDX-License-Identifier: MIT
 * attention: softmax(scale q kᵀ + mask) v for each head (Vaswani et al., "Attention Is All You Need", 2017), computed
 * in tiles. The gradient computes the scores again (Dao, "FlashAttention-2", 2023); for that, the logarithm of the sum
 * of exponentials is kept for each row, or infinity for a row that sees nothing. One kernel computes the gradients, dq
 * by rows, dk and dv by columns, and that of a mask by its elements, so there are no atomics. q, k and v are three
 * values, or packed rows of one, as a product computes them.
 *
 * On CUDA a library computes values of 16 bits where it is faster (cudnn_attention.h). Threads: as
 * tensor/program/operator.h says.
 */
#include "tensor/operators/attention/attention.h"

#include <assert.h>
#include <string.h>

#include "tensor/operators/attention/attention_bias.h"
#include "tensor/operators/attention/attention_cpu.h"
#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/matmul/gemm.h"
#include "tensor/vendor/cudnn_attention.h"

enum {
  Q = RONDO_ATTENTION_Q,
  K = RONDO_ATTENTION_K,
  V = RONDO_ATTENTION_V,
  MASK = RONDO_ATTENTION_MASK,
  PLAN = RONDO_ATTENTION_PLAN,
  K_CACHE = RONDO_ATTENTION_K_CACHE,
  V_CACHE = RONDO_ATTENTION_V_CACHE
};
enum { Y = RONDO_ATTENTION_PLAN + 1, DY, SUMS };      /* further inputs of attention_gradient */
enum { OF_Q, OF_K, OF_V, OF_MASK, GRADIENT_RESULTS }; /* its results */

/* Kernels ---------------------------------------------------------------------------------------------------------- */

#define THREE_READS RONDO_READS, RONDO_READS, RONDO_READS
#define SEVEN_READS THREE_READS, THREE_READS, RONDO_READS

RONDO_TYPED_KERNEL_OF(attention, rondo_attention_cpu, attention, RONDO_SCALAR(rondo_attention_shape), SEVEN_READS,
                      RONDO_WRITES, RONDO_WRITES);
RONDO_TYPED_KERNEL_OF(attention_decode, rondo_attention_decode_cpu, attention_decode,
                      RONDO_SCALAR(rondo_attention_shape), SEVEN_READS, RONDO_WRITES);
RONDO_TYPED_KERNEL_OF(attention_gradient, rondo_attention_gradient_cpu, attention_gradient,
                      RONDO_SCALAR(rondo_attention_shape), SEVEN_READS, RONDO_READS, RONDO_WRITES, RONDO_WRITES,
                      RONDO_WRITES, RONDO_WRITES);

/* Rows and columns of a tile of the gradient on CUDA: as many as fit in shared memory (attention.cuh). */
static size_t tile_of(const rondo_emitter *emitter, size_t size) {
  if (!rondo_emit_is_cuda(emitter)) return RONDO_ATTENTION_TILE;
  return size <= 32 ? 64 : size <= 64 ? 32 : 16;
}

#define ENOUGH_TILES 132 /* for a large device */

/* The same of the forward kernel, whose tiles of columns differ (attention.cu). */
static size_t forward_tile_of(const rondo_emitter *emitter, const rondo_attention_shape *shape) {
  const size_t many = shape->size <= 64 ? 64 : shape->size <= 128 ? 32 : 16, few = 16;
  if (!rondo_emit_is_cuda(emitter)) return RONDO_ATTENTION_TILE;
  return shape->batches * shape->heads * rondo_divide_up(shape->rows, many) < ENOUGH_TILES ? few : many;
}

/* One row of q for each batch is computed row by row, more of them in tiles. */
rondo_status rondo_emit_attention(rondo_emitter *emitter, const rondo_operation *operation,
                                  const rondo_attention_shape *shape) {
  const rondo_type type = rondo_emit_shape(emitter, operation->inputs[Q])->type;
  const rondo_attention_parts of = rondo_attention_parts_of(emitter, shape, operation, operation->inputs);
  const size_t heads = shape->batches * shape->heads,
               tiles = rondo_divide_up(shape->rows, forward_tile_of(emitter, shape));
  assert(shape->groups > 0 && shape->heads % shape->groups == 0 && shape->size <= RONDO_HEAD_MAX);
  const rondo_operand operands[] = {RONDO_OBJECT(*shape), RONDO_OBJECT(of.q),   RONDO_OBJECT(of.k), RONDO_OBJECT(of.v),
                                    RONDO_INPUT(K_CACHE), RONDO_INPUT(V_CACHE), RONDO_INPUT(MASK),  RONDO_INPUT(PLAN),
                                    RONDO_RESULT(0),      RONDO_RESULT(1)};
  if (shape->rows == 1 && shape->cache.row != 0)
    return rondo_emit_operands(emitter, operation, &attention_decode_code[type],
                               rondo_emit_grid(emitter, heads, (rondo_grain){1, 1}), operands,
                               sizeof operands / sizeof *operands - 1);
  rondo_gemm_prepare();
  return rondo_emit_operands(emitter, operation, &attention_code[type], rondo_tile_grid(heads * tiles), operands,
                             sizeof operands / sizeof *operands);
}

/* Shapes ----------------------------------------------------------------------------------------------------------- */

/* Whether what the bit stands for is [b, rows, heads, size]. */
static bool has_rows(const rondo_attributes *attributes, size_t bit) {
  return (attributes->sizes[RONDO_ATTENTION_LAYOUT] & bit) != 0;
}

rondo_attention_dims rondo_attention_dims_of(const rondo_shape *q, const rondo_shape *k,
                                             const rondo_attributes *attributes) {
  const size_t heads = attributes->sizes[RONDO_ATTENTION_HEADS], groups = attributes->sizes[RONDO_ATTENTION_GROUPS];
  if (attributes->flags[RONDO_ATTENTION_PACKED])
    return (rondo_attention_dims){q->dims[0], heads, groups, q->dims[1], q->dims[1], q->dims[2] / (heads + 2 * groups)};
  const uint32_t of_q = has_rows(attributes, RONDO_ATTENTION_ROWS_OF_Q) ? 2 : 1;
  const uint32_t of_k = has_rows(attributes, RONDO_ATTENTION_ROWS_OF_K) ? 2 : 1;
  return (rondo_attention_dims){q->dims[0],        q->dims[of_q],     k->dims[of_k],
                                q->dims[3 - of_q], k->dims[3 - of_k], q->dims[3]};
}

static rondo_status require_packed(const rondo_program *program, const rondo_operation *operation) {
  const size_t heads = operation->attributes.sizes[RONDO_ATTENTION_HEADS];
  const size_t groups = operation->attributes.sizes[RONDO_ATTENTION_GROUPS];
  RONDO_TRY(rondo_require_float(program, operation, Q, 3));
  const size_t row = rondo_operation_input(program, operation, Q)->dims[2];
  /* heads is at most row and groups divides heads, so the sum does not wrap around */
  if (heads > 0 && groups > 0 && heads <= row && heads % groups == 0 && row % (heads + 2 * groups) == 0)
    return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "a row of %zu elements cannot be %zu heads of q and %zu of k and v: it must have (h + 2 "
                              "g) d elements, with h a multiple of g",
                              row, heads, groups);
}

static rondo_status require_separate(const rondo_program *program, const rondo_operation *operation) {
  const rondo_shape *q = rondo_operation_input(program, operation, Q);
  RONDO_TRY(rondo_require_float(program, operation, Q, 4));
  RONDO_TRY(rondo_require_input(program, operation, K, q->type, 4));
  RONDO_TRY(rondo_require_same_shape(program, operation, K, V));
  const rondo_shape *k = rondo_operation_input(program, operation, K);
  const rondo_attention_dims dims = rondo_attention_dims_of(q, k, &operation->attributes);
  if (q->dims[0] == k->dims[0] && dims.heads % dims.groups == 0 && q->dims[3] == k->dims[3]) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "q must be [b, h, t, d], k and v [b, g, s, d] with h a multiple of g; h is %zu and g is "
                              "%zu",
                              dims.heads, dims.groups);
}

rondo_status rondo_require_head(const rondo_program *program, const rondo_operation *operation, size_t size) {
  if (size <= RONDO_HEAD_MAX) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "a head has %zu elements; the maximum is %d: use more heads", size, RONDO_HEAD_MAX);
}

rondo_status rondo_require_attention(const rondo_program *program, const rondo_operation *operation,
                                     rondo_attention_dims *out) {
  const bool is_packed = operation->attributes.flags[RONDO_ATTENTION_PACKED];
  RONDO_TRY(is_packed ? require_packed(program, operation) : require_separate(program, operation));
  *out = rondo_attention_dims_of(rondo_operation_input(program, operation, Q),
                                 rondo_operation_input(program, operation, K), &operation->attributes);
  RONDO_TRY(rondo_require_head(program, operation, out->size));
  if (!operation->attributes.flags[RONDO_ATTENTION_CAUSAL] || out->rows <= out->columns) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "causal attention needs at least as many rows of k as of q: there are %zu and %zu",
                              out->columns, out->rows);
}

rondo_status rondo_require_mask(const rondo_program *program, const rondo_operation *operation,
                                const rondo_attention_dims *dims, size_t columns) {
  const rondo_shape *mask = rondo_operation_input(program, operation, MASK);
  const size_t full[] = {dims->batches, dims->heads, dims->rows, columns};
  if (mask == NULL) return RONDO_OK;
  if (mask->type != RONDO_BOOL && mask->type != RONDO_F32)
    RONDO_TRY(rondo_require_input(program, operation, MASK, rondo_operation_input(program, operation, Q)->type,
                                  RONDO_ANY_RANK));
  bool fits = mask->rank <= 4;
  for (size_t i = 0; fits && i < mask->rank; i++)
    fits = mask->dims[i] == 1 || mask->dims[i] == full[4 - mask->rank + i];
  if (fits) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "the mask cannot be broadcast to [b, h, t, s], which is [%zu, %zu, %zu, %zu]%s", full[0],
                              full[1], full[2], full[3],
                              mask->rank == 2 && mask->dims[0] == full[0] && mask->dims[1] == full[3]
                                  ? ": reshape [b, s] to [b, 1, 1, s]"
                                  : "");
}

static rondo_mask_kind mask_kind_of(const rondo_shape *mask) {
  if (mask == NULL) return RONDO_MASK_NONE;
  return mask->type == RONDO_BOOL ? RONDO_MASK_BOOLEAN : mask->type == RONDO_F32 ? RONDO_MASK_F32 : RONDO_MASK_TYPED;
}

void rondo_attention_set_mask(const rondo_program *program, const rondo_operation *operation,
                              rondo_attention_shape *shape) {
  const rondo_shape *mask = rondo_operation_input(program, operation, MASK);
  const rondo_shape full = {.rank = 4, .dims = {shape->batches, shape->heads, shape->rows, shape->columns}};
  size_t strides[RONDO_MAX_DIMENSIONS] = {0};
  shape->mask_kind = mask_kind_of(mask);
  if (mask == NULL) return;
  rondo_broadcast_strides(mask, &full, strides);
  shape->mask = (rondo_attention_plane){strides[0], strides[1], strides[2], strides[3]};
}

static rondo_attention_place place_of(const rondo_attributes *attributes, size_t bit, size_t heads, size_t rows,
                                      size_t size) {
  return has_rows(attributes, bit) ? rondo_attention_abreast(rows, heads * size, size)
                                   : rondo_attention_stacked(heads, rows, size);
}

/* The strides of q, k and y. */
static rondo_attention_shape placed_shape(const rondo_attention_dims *dims, const rondo_attributes *attributes) {
  const size_t row = (dims->heads + 2 * dims->groups) * dims->size;
  rondo_attention_shape shape = {.rows = dims->rows};
  if (attributes->flags[RONDO_ATTENTION_PACKED]) {
    shape.q = shape.k = rondo_attention_abreast(dims->rows, row, dims->size);
    shape.y = rondo_attention_abreast(dims->rows, dims->heads * dims->size, dims->size);
  } else {
    shape.q = place_of(attributes, RONDO_ATTENTION_ROWS_OF_Q, dims->heads, dims->rows, dims->size);
    shape.k = place_of(attributes, RONDO_ATTENTION_ROWS_OF_K, dims->groups, dims->columns, dims->size);
    shape.y = place_of(attributes, RONDO_ATTENTION_ROWS_OF_Y, dims->heads, dims->rows, dims->size);
  }
  return shape;
}

rondo_attention_shape rondo_attention_shape_of(const rondo_program *program, const rondo_operation *operation) {
  const rondo_attributes *attributes = &operation->attributes;
  const bool has_own = operation->inputs[K] != RONDO_NO_VALUE || attributes->flags[RONDO_ATTENTION_PACKED];
  const rondo_attention_dims dims =
      rondo_attention_dims_of(rondo_operation_input(program, operation, Q),
                              rondo_operation_input(program, operation, has_own ? K : K_CACHE), attributes);
  rondo_attention_shape shape = placed_shape(&dims, attributes);
  shape.batches = dims.batches;
  shape.heads = dims.heads;
  shape.groups = dims.groups;
  shape.columns = dims.columns;
  shape.size = dims.size;
  shape.window = attributes->sizes[RONDO_ATTENTION_WINDOW];
  shape.table_blocks = attributes->sizes[RONDO_ATTENTION_TABLE];
  shape.scale = attributes->numbers[RONDO_ATTENTION_SCALE];
  shape.causal = attributes->flags[RONDO_ATTENTION_CAUSAL];
  shape.has_slopes = attributes->flags[RONDO_ATTENTION_SLOPES];
  rondo_attention_set_mask(program, operation, &shape);
  return shape;
}

rondo_attention_parts rondo_attention_parts_of(const rondo_emitter *emitter, const rondo_attention_shape *shape,
                                               const rondo_operation *operation, const uint32_t *values) {
  const char *q = rondo_emit_address(emitter, values[Q]);
  if (!operation->attributes.flags[RONDO_ATTENTION_PACKED])
    return (rondo_attention_parts){q, rondo_emit_address(emitter, values[K]), rondo_emit_address(emitter, values[V])};
  if (q == NULL) return (rondo_attention_parts){NULL, NULL, NULL};
  const size_t bytes = rondo_type_bytes(rondo_emit_shape(emitter, values[Q])->type) * shape->size;
  return (rondo_attention_parts){q, q + shape->heads * bytes, q + (shape->heads + shape->groups) * bytes};
}

/* Attention of a library ------------------------------------------------------------------------------------------- */

#define LIBRARY_UNIT 8 /* the library's rows have a multiple of so many elements */

/* 0 if no distance between a row and a column reaches the window. */
static size_t effective_window(const rondo_attention_shape *shape) {
  return shape->window < rondo_larger(shape->rows, shape->columns) ? shape->window : 0;
}

/* Without lengths and slopes, which are in a plan, and masks of another type, for which own kernels are: the library
 * would read a mask of F32 as one of 16 bits. Causality and windows are from the first row of k on. */
static bool library_takes(const rondo_operation *operation, rondo_type type, const rondo_attention_shape *shape) {
  if (type != RONDO_F16 && type != RONDO_BF16) return false;
  if (operation->inputs[PLAN] != RONDO_NO_VALUE || shape->mask_kind == RONDO_MASK_F32) return false;
  if ((shape->causal != 0 || effective_window(shape) > 0) && shape->rows != shape->columns) return false;
  return shape->size % LIBRARY_UNIT == 0;
}

static rondo_attention_strides strides_of(rondo_attention_place place) {
  return (rondo_attention_strides){place.batch, place.head, place.row};
}

static rondo_fused_attention_shape fused_shape_of(const rondo_attention_shape *shape, rondo_type type,
                                                  const rondo_attention_bias *bias) {
  return (rondo_fused_attention_shape){.type = type,
                                       .causal = shape->causal != 0,
                                       .has_bias = shape->mask_kind != RONDO_MASK_NONE,
                                       .window = effective_window(shape),
                                       .batches = shape->batches,
                                       .heads = shape->heads,
                                       .groups = shape->groups,
                                       .rows = shape->rows,
                                       .columns = shape->columns,
                                       .size = shape->size,
                                       .q = strides_of(shape->q),
                                       .k = strides_of(shape->k),
                                       .y = strides_of(shape->y),
                                       .bias = strides_of(bias->place),
                                       .scale = shape->scale};
}

static rondo_status destroy_fused(void *made) {
  rondo_fused_attention_destroy(made);
  return RONDO_OK;
}

/* For a CUDA device. keeps_sums: that of the shape; ignored for gradients. In the workspace, what the bias needs is
 * before the library's part. */
static rondo_status prepare_fused(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                  bool is_gradient, bool keeps_sums, size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  const rondo_type type = rondo_operation_input(program, operation, Q)->type;
  const rondo_attention_shape of = rondo_attention_shape_of(program, operation);
  rondo_attention_bias bias;
  rondo_fused_attention *made;
  if (resources->own_kernels || !library_takes(operation, type, &of) || !rondo_attention_bias_plan(&of, type, &bias))
    return RONDO_OK;
  rondo_fused_attention_shape shape = fused_shape_of(&of, type, &bias);
  shape.is_gradient = is_gradient;
  shape.keeps_sums = keeps_sums;
  RONDO_TRY(rondo_fused_attention_create(resources->cudnn_maker, &shape, &made));
  if (made == NULL) return RONDO_OK;
  *out_workspace_bytes = bias.bytes + rondo_fused_attention_workspace(made);
  return rondo_resources_add_object(resources, number, made, destroy_fused);
}

/* A rondo_step_call; user: an attention. */
static rondo_status run_fused(rondo_resources *resources, rondo_stream *stream, const void *user) {
  const rondo_fused_attention *attention;
  (void)resources;
  memcpy(&attention, user, sizeof attention);
  return rondo_fused_attention_run(attention, stream);
}

/* Emits the library's attention or gradients, and what its mask needs before. `memory`: without bias and workspace. */
static rondo_status emit_fused(rondo_emitter *emitter, const rondo_operation *operation,
                               const rondo_attention_shape *shape, const rondo_attention_bias *bias,
                               rondo_fused_attention_memory memory) {
  rondo_fused_attention *const attention = rondo_emit_object(emitter);
  char *const workspace = rondo_emit_workspace(emitter);
  if (workspace != NULL) memory.workspace = workspace + bias->bytes;
  RONDO_TRY(rondo_emit_attention_bias(emitter, operation, shape, bias, &memory.bias));
  RONDO_TRY(rondo_fused_attention_bind(attention, &memory));
  return rondo_emit_call(emitter, run_fused, &attention, sizeof attention);
}

/* The plan of prepare_fused, which found that it fits. */
static rondo_attention_bias bias_of(const rondo_attention_shape *shape, rondo_type type) {
  rondo_attention_bias bias;
  const bool fits = rondo_attention_bias_plan(shape, type, &bias);
  assert(fits);
  (void)fits;
  return bias;
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

static rondo_status prepare_attention(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                      size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  *out_workspace_bytes = 0;
  if (!resources->is_cuda) return RONDO_OK;
  return prepare_fused(resources, program, number, false, rondo_value_is_made(program, operation->results[1]),
                       out_workspace_bytes);
}

static rondo_status infer_attention(const rondo_program *program, const rondo_operation *operation,
                                    rondo_shape *results) {
  rondo_attention_dims dims;
  RONDO_TRY(rondo_require_attention(program, operation, &dims));
  RONDO_TRY(rondo_require_mask(program, operation, &dims, dims.columns));
  results[0] = *rondo_operation_input(program, operation, Q);
  if (operation->attributes.flags[RONDO_ATTENTION_PACKED]) {
    results[0].dims[2] = dims.heads * dims.size;
  } else {
    const bool is_rows = has_rows(&operation->attributes, RONDO_ATTENTION_ROWS_OF_Y);
    results[0].dims[1] = is_rows ? dims.rows : dims.heads;
    results[0].dims[2] = is_rows ? dims.heads : dims.rows;
  }
  results[1] = (rondo_shape){.type = RONDO_F32, .rank = 3, .dims = {dims.batches, dims.heads, dims.rows}};
  return RONDO_OK;
}

static rondo_status differentiate_attention(rondo_program *program, const rondo_operation *operation,
                                            const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t *of = operation->inputs, *made = operation->results;
  const uint32_t inputs[] = {of[Q], of[K], of[V], of[MASK], of[PLAN], made[0], result_gradients[0], made[1]};
  const bool has_keys = of[K] != RONDO_NO_VALUE;
  const rondo_shape *mask = rondo_operation_input(program, operation, MASK);
  const bool has_float_mask = mask != NULL && rondo_shape_is_float(mask); /* adding an operation may move the shapes */
  uint32_t results[GRADIENT_RESULTS];
  if (result_gradients[0] == RONDO_NO_VALUE) return RONDO_OK;
  RONDO_TRY(rondo_program_add(program, &rondo_operator_attention_gradient, inputs, 8, &operation->attributes, results));
  input_gradients[Q] = results[OF_Q];
  input_gradients[K] = has_keys ? results[OF_K] : RONDO_NO_VALUE;
  input_gradients[V] = has_keys ? results[OF_V] : RONDO_NO_VALUE;
  input_gradients[MASK] = has_float_mask ? results[OF_MASK] : RONDO_NO_VALUE;
  return RONDO_OK;
}

static rondo_status emit_fused_forward(rondo_emitter *emitter, const rondo_operation *operation,
                                       const rondo_attention_shape *shape) {
  const rondo_attention_parts of = rondo_attention_parts_of(emitter, shape, operation, operation->inputs);
  const rondo_attention_bias bias = bias_of(shape, rondo_emit_shape(emitter, operation->inputs[Q])->type);
  RONDO_TRY(emit_fused(emitter, operation, shape, &bias,
                       (rondo_fused_attention_memory){.q = of.q,
                                                      .k = of.k,
                                                      .v = of.v,
                                                      .y = rondo_emit_address(emitter, operation->results[0]),
                                                      .sums = rondo_emit_address(emitter, operation->results[1])}));
  return rondo_emit_unseeing_rows(emitter, operation, shape);
}

static rondo_status emit_attention(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attention_shape shape = rondo_attention_shape_of(rondo_emit_program(emitter), operation);
  const bool is_fused = rondo_emit_object(emitter) != NULL;
  return (is_fused ? emit_fused_forward : rondo_emit_attention)(emitter, operation, &shape);
}

RONDO_OPERATOR(attention, .types = RONDO_FLOATS, .inputs = {"q", "k", "v", "mask", "plan"}, .required = 1,
               .result_count = 2, .spare_results = 1u << 1, .infer = infer_attention,
               .differentiate = differentiate_attention, .prepare = prepare_attention, .emit = emit_attention);

/* Gradients -------------------------------------------------------------------------------------------------------- */

/* Of packed rows there is one gradient; a mask without a gradient has that of q in its place, which nothing reads. */
static rondo_status infer_gradient(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  const rondo_shape *k = rondo_operation_input(program, operation, K);
  const rondo_shape *mask = rondo_operation_input(program, operation, MASK);
  rondo_attention_dims dims;
  RONDO_TRY(rondo_require_attention(program, operation, &dims));
  RONDO_TRY(rondo_require_same_shape(program, operation, Y, DY));
  results[OF_Q] = results[OF_MASK] = *rondo_operation_input(program, operation, Q);
  results[OF_K] = results[OF_V] = k != NULL ? *k : results[OF_Q];
  if (mask != NULL && rondo_shape_is_float(mask)) results[OF_MASK] = *mask;
  return RONDO_OK;
}

/* How many of the mask's elements along a dimension differ. */
static size_t distinct(size_t stride, size_t count) { return stride == 0 ? 1 : count; }

/* A block for each tile: of rows, of columns, and of the mask. */
static rondo_grid gradient_grid(const rondo_emitter *emitter, const rondo_attention_shape *shape, bool of_mask) {
  const size_t tile = tile_of(emitter, shape->size);
  const size_t down = rondo_divide_up(shape->rows, tile), across = rondo_divide_up(shape->columns, tile);
  size_t blocks = shape->batches * (shape->heads * down + shape->groups * across);
  if (of_mask)
    blocks += distinct(shape->mask.batch, shape->batches) * distinct(shape->mask.head, shape->heads) *
              distinct(shape->mask.row, down) * distinct(shape->mask.column, across);
  return rondo_tile_grid(blocks);
}

/* A library computes the gradients of q, k and v, not some of them, and not that of a mask. */
static rondo_status prepare_gradient(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                     size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  const uint32_t parts = operation->attributes.flags[RONDO_ATTENTION_PACKED] ? 1 : 3;
  bool is_whole = !rondo_value_is_made(program, operation->results[OF_MASK]);
  *out_workspace_bytes = 0;
  for (uint32_t i = 0; i < parts; i++) is_whole = is_whole && rondo_value_is_made(program, operation->results[i]);
  if (!resources->is_cuda || !is_whole) return RONDO_OK;
  return prepare_fused(resources, program, number, true, false, out_workspace_bytes);
}

static rondo_status emit_fused_gradient(rondo_emitter *emitter, const rondo_operation *operation,
                                        const rondo_attention_shape *shape, const rondo_attention_parts *of,
                                        const rondo_attention_parts *to) {
  const rondo_attention_bias bias = bias_of(shape, rondo_emit_shape(emitter, operation->inputs[Q])->type);
  return emit_fused(emitter, operation, shape, &bias,
                    (rondo_fused_attention_memory){.q = of->q,
                                                   .k = of->k,
                                                   .v = of->v,
                                                   .y = rondo_emit_address(emitter, operation->inputs[Y]),
                                                   .sums = rondo_emit_address(emitter, operation->inputs[SUMS]),
                                                   .dy = rondo_emit_address(emitter, operation->inputs[DY]),
                                                   .dq = (void *)to->q,
                                                   .dk = (void *)to->k,
                                                   .dv = (void *)to->v});
}

static rondo_status emit_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_type type = rondo_emit_shape(emitter, operation->inputs[Q])->type;
  const rondo_attention_shape shape = rondo_attention_shape_of(rondo_emit_program(emitter), operation);
  const rondo_attention_parts of = rondo_attention_parts_of(emitter, &shape, operation, operation->inputs);
  const rondo_attention_parts to = rondo_attention_parts_of(emitter, &shape, operation, operation->results);
  const bool of_mask = rondo_emit_address(emitter, operation->results[OF_MASK]) != NULL;
  if (rondo_emit_object(emitter) != NULL) return emit_fused_gradient(emitter, operation, &shape, &of, &to);
  rondo_gemm_prepare();
  return rondo_emit_operands(
      emitter, operation, &attention_gradient_code[type], gradient_grid(emitter, &shape, of_mask),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_OBJECT(of.q), RONDO_OBJECT(of.k), RONDO_OBJECT(of.v), RONDO_INPUT(MASK),
                     RONDO_INPUT(PLAN), RONDO_INPUT(Y), RONDO_INPUT(DY), RONDO_INPUT(SUMS), RONDO_OBJECT(to.q),
                     RONDO_OBJECT(to.k), RONDO_OBJECT(to.v), RONDO_RESULT(OF_MASK)));
}

RONDO_OPERATOR(attention_gradient, .inputs = {"q", "k", "v", "mask", "plan", "y", "gradient", "sums"}, .required = 1,
               .result_count = GRADIENT_RESULTS, .spare_results = (1u << GRADIENT_RESULTS) - 1, .infer = infer_gradient,
               .prepare = prepare_gradient, .emit = emit_gradient);

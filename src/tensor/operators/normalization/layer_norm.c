/* SPDX-License-Identifier: MIT
 * layer_norm, add_layer_norm, which normalises a sum and returns the sum too, and rms_norm, over the last dimensions.
 * The mean of each row (not for rms_norm) and the reciprocal of its deviation are kept for the gradient. With h = (x -
 * mean) * deviation and g = dy * scale, dx = deviation * (g - mean(g) - h mean(g h)), without mean(g) for rms_norm. The
 * gradients of scale and shift are sums over rows. The shape alone determines how rows are split into parts. The kernel
 * of dx sums each part in the order of the rows; another kernel, which may serve several operators, sums the parts.
 * Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/common/joined.h"
#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/common/operator_tools.h"

enum { DIMENSIONS };                   /* sizes */
enum { EPSILON };                      /* numbers */
enum { F32_PARAMETERS };               /* flags: scale and shift are F32, whatever type the value has */
enum { VALUE, SCALE, SHIFT, ADDEND };  /* inputs of the operators; ADDEND: add_layer_norm only */
enum { RESULT, DEVIATION, MEAN, SUM }; /* their results; DEVIATION: its reciprocal; MEAN: not of rms_norm */
enum { OF_VALUE, OF_RESULT, OF_DEVIATION, OF_MEAN, OF_SCALE, OF_SUM }; /* inputs of the gradient; the last is added */
enum { VALUE_GRADIENT, SUMS };                                         /* its results: the sums of each part are F32 */

/* Sizes of the gradient of scale and shift: parts of the sums, its type and, from the third on, its dimensions. */
enum { PARTS, RESULT_TYPE, FIRST_SIZE };

typedef struct norm_family {
  bool is_centred;
  const rondo_operator *gradient, *parameters;
} norm_family;

/* A scalar argument of the kernels; without padding. */
typedef struct norm_shape {
  size_t rows, columns;
  size_t parts, part_rows; /* part_rows: of all parts but the last */
  uint32_t is_centred, f32_parameters;
} norm_shape;

#define MIN_PART_ROWS 8
#define MAX_PARTS 256

static bool is_centred(const rondo_operation *operation) {
  const norm_family *family = operation->row->family;
  return family->is_centred;
}

static norm_shape shape_of(const rondo_shape *value, const rondo_operation *operation) {
  norm_shape shape = {.columns = 1};
  for (size_t i = 0; i < operation->attributes.sizes[DIMENSIONS]; i++)
    shape.columns *= value->dims[value->rank - 1 - i];
  shape.rows = rondo_shape_elements(value) / shape.columns;
  assert(shape.rows * shape.columns == rondo_shape_elements(value));
  shape.part_rows = rondo_larger(rondo_divide_up(shape.rows, MAX_PARTS), MIN_PART_ROWS);
  shape.parts = rondo_divide_up(shape.rows, shape.part_rows);
  shape.is_centred = is_centred(operation);
  shape.f32_parameters = operation->attributes.flags[F32_PARAMETERS];
  return shape;
}

RONDO_INLINE rondo_type parameter_type(const norm_shape *shape, rondo_type type) {
  return shape->f32_parameters != 0 ? RONDO_F32 : type;
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

RONDO_INLINE float row_sum(rondo_type type, const void *x, size_t first, size_t columns) {
  float sums[RONDO_LANES] = {0}, buffer[RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, columns) {
    const float *chunk = rondo_load_chunk(type, x, first + at, length, buffer);
    RONDO_EACH_LANE(i, lane, length, sums[lane] += chunk[i]);
  }
  return rondo_join_lanes(sums);
}

RONDO_INLINE float row_square_sum(rondo_type type, const void *x, size_t first, size_t columns, float mean) {
  float sums[RONDO_LANES] = {0}, buffer[RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, columns) {
    const float *chunk = rondo_load_chunk(type, x, first + at, length, buffer);
    RONDO_EACH_LANE(i, lane, length, sums[lane] += (chunk[i] - mean) * (chunk[i] - mean));
  }
  return rondo_join_lanes(sums);
}

RONDO_INLINE void centre_chunk(const float *restrict x, float mean, float deviation, float *restrict y, size_t count) {
  RONDO_EACH_LANE(i, lane, count, y[i] = (x[i] - mean) * deviation);
}

RONDO_INLINE void multiply_chunk(const float *restrict by, float *restrict y, size_t count) {
  RONDO_EACH_LANE(i, lane, count, y[i] *= by[i]);
}

RONDO_INLINE void add_chunk(const float *restrict x, float *restrict y, size_t count) {
  RONDO_EACH_LANE(i, lane, count, y[i] += x[i]);
}

RONDO_INLINE void sum_chunks(const float *restrict a, const float *restrict b, float *restrict sum, size_t count) {
  RONDO_EACH_LANE(i, lane, count, sum[i] = a[i] + b[i]);
}

/* Adds x and an addend; sums are rounded to the type. */
RONDO_INLINE void add_row(rondo_type type, const void *x, const void *addend, size_t first, size_t columns, void *sum) {
  float buffers[3][RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, columns) {
    const float *a = rondo_load_chunk(type, x, first + at, length, buffers[0]);
    const float *b = rondo_load_chunk(type, addend, first + at, length, buffers[1]);
    float *to = rondo_chunk_of(type, sum, first + at, buffers[2]);
    sum_chunks(a, b, to, length);
    rondo_store_chunk(type, sum, first + at, length, to);
  }
}

typedef struct norm_forward {
  rondo_type type, of_parameters;
  size_t columns;
  bool is_centred;
  float epsilon;
  const void *x, *scale, *shift; /* x: what is normalised, which may be the sum; scale, shift: NULL for none */
  void *y;
} norm_forward;

/* The mean and deviation of the row that begins at element `first`. */
RONDO_INLINE void measure_row(const norm_forward *call, size_t first, float *out_mean, float *out_deviation) {
  const size_t columns = call->columns;
  const float mean = call->is_centred ? row_sum(call->type, call->x, first, columns) / (float)columns : 0;
  const float variance = row_square_sum(call->type, call->x, first, columns, mean) / (float)columns;
  *out_mean = mean;
  *out_deviation = 1.0f / sqrtf(variance + call->epsilon);
}

RONDO_INLINE void normalise_row(const norm_forward *call, size_t first, float mean, float deviation) {
  float buffers[2][RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, call->columns) {
    float *to = rondo_chunk_of(call->type, call->y, first + at, buffers[1]);
    centre_chunk(rondo_load_chunk(call->type, call->x, first + at, length, buffers[0]), mean, deviation, to, length);
    if (call->scale != NULL)
      multiply_chunk(rondo_load_chunk(call->of_parameters, call->scale, at, length, buffers[0]), to, length);
    if (call->shift != NULL)
      add_chunk(rondo_load_chunk(call->of_parameters, call->shift, at, length, buffers[0]), to, length);
    rondo_store_chunk(call->type, call->y, first + at, length, to);
  }
}

RONDO_VECTORISED_KERNEL(layer_norm_cpu) {
  const norm_shape *shape = args[0];
  const void *x = RONDO_ARG(const void *, 2);
  float *deviations = RONDO_ARG(float *, 6);
  float *means = RONDO_ARG(float *, 7);
  const void *addend = RONDO_ARG(const void *, 8);
  void *sum = RONDO_ARG(void *, 9);
  const norm_forward call = {.type = type,
                             .of_parameters = parameter_type(shape, type),
                             .columns = shape->columns,
                             .is_centred = shape->is_centred != 0,
                             .epsilon = RONDO_ARG(float, 1),
                             .x = addend == NULL ? x : sum,
                             .scale = RONDO_ARG(const void *, 3),
                             .shift = RONDO_ARG(const void *, 4),
                             .y = RONDO_ARG(void *, 5)};
  RONDO_EACH_ITEM(row, blocks, shape->rows) {
    const size_t first = row * shape->columns;
    float mean;
    if (addend != NULL) add_row(type, x, addend, first, shape->columns, sum);
    measure_row(&call, first, &mean, &deviations[row]);
    if (means != NULL) means[row] = mean;
    normalise_row(&call, first, mean, deviations[row]);
  }
}

#define NORM_PARAMETERS                                                                                             \
  RONDO_SCALAR(norm_shape), RONDO_SCALAR(float), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_WRITES, \
      RONDO_WRITES, RONDO_READS, RONDO_WRITES

RONDO_TYPED_KERNEL(layer_norm, layer_norm, NORM_PARAMETERS);
RONDO_TYPED_KERNEL_OF(layer_norm_packed, layer_norm_cpu, layer_norm, NORM_PARAMETERS);

static rondo_status infer_parameter(const rondo_program *program, const rondo_operation *operation, uint32_t input) {
  const rondo_shape *value = rondo_operation_input(program, operation, VALUE);
  const rondo_shape *given = rondo_operation_input(program, operation, input);
  if (given == NULL) return RONDO_OK;
  RONDO_TRY(rondo_require_float(program, operation, input, RONDO_ANY_RANK));
  if (given->type != value->type && given->type != RONDO_F32) {
    return rondo_fail_operation(program, operation, RONDO_REASON_TYPE, "%s must be f32 or of the value's type",
                                operation->row->inputs[input]);
  }
  if ((given->type == RONDO_F32 && value->type != RONDO_F32) != operation->attributes.flags[F32_PARAMETERS]) {
    return rondo_fail_operation(program, operation, RONDO_REASON_TYPE, "scale and shift must have one type");
  }
  const size_t dimensions = operation->attributes.sizes[DIMENSIONS];
  const size_t *wanted = value->dims + (value->rank - dimensions);
  if (given->rank == dimensions && memcmp(given->dims, wanted, dimensions * sizeof *wanted) == 0) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "%s must have the sizes of the value's last %zu dimensions",
                              operation->row->inputs[input], dimensions);
}

static rondo_status require_value(const rondo_program *program, const rondo_operation *operation) {
  RONDO_TRY(rondo_require_float(program, operation, VALUE, RONDO_ANY_RANK));
  const size_t dimensions = operation->attributes.sizes[DIMENSIONS];
  const uint32_t rank = rondo_operation_input(program, operation, VALUE)->rank;
  if (dimensions > 0 && dimensions <= rank) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "the value has %u dimensions, so its last %zu cannot be normalised: choose 1 to the rank",
                              rank, dimensions);
}

static rondo_shape rows_shape(const rondo_shape *value, size_t dimensions) {
  rondo_shape shape = {.type = RONDO_F32, .rank = value->rank - (uint32_t)dimensions};
  memcpy(shape.dims, value->dims, shape.rank * sizeof shape.dims[0]);
  return shape;
}

static rondo_status infer_norm(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const float epsilon = operation->attributes.numbers[EPSILON];
  RONDO_TRY(require_value(program, operation));
  for (uint32_t i = SCALE; i <= SHIFT; i++) RONDO_TRY(infer_parameter(program, operation, i));
  if (!(epsilon > 0) || isinf(epsilon)) {
    return rondo_fail_operation(program, operation, RONDO_REASON_OUT_OF_RANGE,
                                "epsilon is %g; it must be finite and above 0", (double)epsilon);
  }
  results[RESULT] = *rondo_operation_input(program, operation, VALUE);
  for (uint32_t i = DEVIATION; i <= MEAN; i++)
    results[i] = rows_shape(&results[RESULT], operation->attributes.sizes[DIMENSIONS]);
  if (operation->inputs[ADDEND] == RONDO_NO_VALUE) return RONDO_OK;
  results[SUM] = results[RESULT];
  return rondo_require_same_shape(program, operation, VALUE, ADDEND);
}

/* The value that is normalised. */
static uint32_t normalised_value(const rondo_operation *operation) {
  return operation->inputs[ADDEND] == RONDO_NO_VALUE ? operation->inputs[VALUE] : operation->results[SUM];
}

/* Adds the gradients of scale and shift, from the sums of the parts. */
static rondo_status add_parameter_gradients(rondo_program *program, const rondo_operation *operation, uint32_t sums,
                                            uint32_t *gradients) {
  const norm_family *family = operation->row->family;
  const rondo_shape *value = rondo_operation_input(program, operation, VALUE);
  const norm_shape shape = shape_of(value, operation);
  const size_t dimensions = operation->attributes.sizes[DIMENSIONS];
  rondo_attributes attributes = {.sizes = {shape.parts, parameter_type(&shape, value->type)},
                                 .size_count = FIRST_SIZE + (uint32_t)dimensions};
  memcpy(attributes.sizes + FIRST_SIZE, value->dims + (value->rank - dimensions), dimensions * sizeof(size_t));
  return rondo_program_add(program, family->parameters, &sums, 1, &attributes, gradients);
}

static rondo_status differentiate_norm(rondo_program *program, const rondo_operation *operation,
                                       const uint32_t *result_gradients, uint32_t *input_gradients) {
  const norm_family *family = operation->row->family;
  const bool has_sum = operation->inputs[ADDEND] != RONDO_NO_VALUE;
  const uint32_t of_sum = has_sum ? result_gradients[SUM] : RONDO_NO_VALUE;
  const uint32_t inputs[] = {normalised_value(operation), result_gradients[RESULT], operation->results[DEVIATION],
                             operation->results[MEAN],    operation->inputs[SCALE], of_sum};
  uint32_t made[RONDO_MAX_RESULTS] = {of_sum}, gradients[RONDO_MAX_RESULTS] = {0};
  const bool is_read = result_gradients[RESULT] != RONDO_NO_VALUE;
  if (is_read) RONDO_TRY(rondo_program_add(program, family->gradient, inputs, 6, &operation->attributes, made));
  input_gradients[VALUE] = made[VALUE_GRADIENT];
  if (has_sum) input_gradients[ADDEND] = made[VALUE_GRADIENT];
  if (!is_read) return RONDO_OK;
  if (operation->inputs[SCALE] == RONDO_NO_VALUE && operation->inputs[SHIFT] == RONDO_NO_VALUE) return RONDO_OK;
  RONDO_TRY(add_parameter_gradients(program, operation, made[SUMS], gradients));
  for (uint32_t i = SCALE; i <= SHIFT; i++) {
    if (operation->inputs[i] != RONDO_NO_VALUE) input_gradients[i] = gradients[i - SCALE];
  }
  return RONDO_OK;
}

/* Rows of so many elements, in packs, have a block of threads each on CUDA: at most one pack for each thread. */
#define PACK 4
#define PACKED_LEAST 256
#define PACKED_MOST (PACK * RONDO_CUDA_THREADS)

static bool is_packed(size_t columns) {
  return columns % PACK == 0 && columns > PACKED_LEAST && columns <= PACKED_MOST;
}

static rondo_status emit_norm(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[VALUE]);
  const norm_shape shape = shape_of(value, operation);
  const bool packed = rondo_emit_is_cuda(emitter) && is_packed(shape.columns);
  const rondo_grain grain = packed ? (rondo_grain){1, 1} : rondo_row_grain(shape.columns);
  return rondo_emit_operands(
      emitter, operation, &(packed ? layer_norm_packed_code : layer_norm_code)[value->type],
      rondo_emit_grid(emitter, shape.rows, grain),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_OBJECT(operation->attributes.numbers[EPSILON]), RONDO_INPUT(VALUE),
                     RONDO_INPUT(SCALE), RONDO_INPUT(SHIFT), RONDO_RESULT(RESULT), RONDO_RESULT(DEVIATION),
                     RONDO_RESULT(MEAN), RONDO_INPUT(ADDEND), RONDO_RESULT(SUM)));
}

/* Gradient of the value -------------------------------------------------------------------------------------------- */

/* What the kernel of the gradient reads: the value, the gradient of the result, and what the forward operator kept. */
typedef struct norm_memory {
  rondo_type type, of_parameters;
  const void *x, *dy, *scale; /* scale: NULL for none */
  const float *deviations, *means;
  const void *addend; /* what is added to dx; NULL for none */
} norm_memory;

/* Computes h for `length` elements of a row; returns their dy, in place or in `buffer`. */
RONDO_INLINE const float *load_chunk(const norm_memory *memory, size_t row, size_t columns, size_t at, size_t length,
                                     float *h, float *buffer) {
  float of_x[RONDO_CHUNK];
  const size_t first = row * columns + at;
  const float mean = memory->means != NULL ? memory->means[row] : 0;
  centre_chunk(rondo_load_chunk(memory->type, memory->x, first, length, of_x), mean, memory->deviations[row], h,
               length);
  return rondo_load_chunk(memory->type, memory->dy, first, length, buffer);
}

RONDO_INLINE void product_chunk(const float *restrict a, const float *restrict b, float *restrict y, size_t count) {
  RONDO_EACH_LANE(i, lane, count, y[i] = a[i] * b[i]);
}

/* Returns g, in dy or in `buffer`. */
RONDO_INLINE const float *scale_chunk(const norm_memory *memory, size_t at, size_t length, const float *dy,
                                      float *buffer) {
  float of_scale[RONDO_CHUNK];
  if (memory->scale == NULL) return dy;
  product_chunk(dy, rondo_load_chunk(memory->of_parameters, memory->scale, at, length, of_scale), buffer, length);
  return buffer;
}

/* Adds g and g h to sums in lanes. */
RONDO_INLINE void sum_products(const float *restrict g, const float *restrict h, float *restrict of_g,
                               float *restrict of_gh, size_t count) {
  RONDO_EACH_LANE(i, lane, count, of_g[lane] += g[i]; of_gh[lane] += g[i] * h[i]);
}

/* The means of g and of g h over a row. */
RONDO_INLINE void row_means(const norm_memory *memory, size_t row, size_t columns, float *out_g, float *out_gh) {
  float sums[2][RONDO_LANES] = {{0}}, h[RONDO_CHUNK], buffers[2][RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, columns) {
    const float *dy = load_chunk(memory, row, columns, at, length, h, buffers[0]);
    const float *g = scale_chunk(memory, at, length, dy, buffers[1]);
    sum_products(g, h, sums[0], sums[1], length);
  }
  *out_g = rondo_join_lanes(sums[0]) / (float)columns;
  *out_gh = rondo_join_lanes(sums[1]) / (float)columns;
}

RONDO_INLINE void gradient_chunk(const float *restrict g, const float *restrict h, float of_g, float of_gh,
                                 float deviation, float *restrict dx, size_t count) {
  RONDO_EACH_LANE(i, lane, count, dx[i] = deviation * (g[i] - of_g - h[i] * of_gh));
}

/* dx += addend; rounded once more. */
RONDO_INLINE void add_to_row(rondo_type type, const void *addend, size_t first, size_t columns, void *dx) {
  float buffers[2][RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, columns) {
    float *to = rondo_chunk_of(type, dx, first + at, buffers[0]);
    (void)rondo_load_chunk(type, dx, first + at, length, to);
    add_chunk(rondo_load_chunk(type, addend, first + at, length, buffers[1]), to, length);
    rondo_store_chunk(type, dx, first + at, length, to);
  }
}

RONDO_INLINE void row_gradient(const norm_memory *memory, const norm_shape *shape, size_t row, void *dx) {
  float h[RONDO_CHUNK], buffers[3][RONDO_CHUNK], of_g, of_gh;
  const float deviation = memory->deviations[row];
  row_means(memory, row, shape->columns, &of_g, &of_gh);
  if (shape->is_centred == 0) of_g = 0;
  RONDO_EACH_CHUNK(at, length, 0, shape->columns) {
    const size_t first = row * shape->columns + at;
    const float *dy = load_chunk(memory, row, shape->columns, at, length, h, buffers[0]);
    const float *g = scale_chunk(memory, at, length, dy, buffers[1]);
    float *to = rondo_chunk_of(memory->type, dx, first, buffers[2]);
    gradient_chunk(g, h, of_g, of_gh, deviation, to, length);
    rondo_store_chunk(memory->type, dx, first, length, to);
  }
  if (memory->addend != NULL) add_to_row(memory->type, memory->addend, row * shape->columns, shape->columns, dx);
}

/* The size of all sums: a row for scale for each part; then, except for rms_norm, a row for shift for each part. */
static size_t sums_of(const norm_shape *shape) {
  return (shape->is_centred != 0 ? 2 : 1) * shape->parts * shape->columns;
}

RONDO_INLINE rondo_span rows_of_part(const norm_shape *shape, size_t part) {
  assert(part < shape->parts);
  return (rondo_span){part * shape->part_rows, rondo_smaller((part + 1) * shape->part_rows, shape->rows)};
}

RONDO_INLINE void add_columns(const float *restrict dy, const float *restrict h, float *restrict of_scale,
                              float *restrict of_shift, size_t count) {
  RONDO_EACH_LANE(i, lane, count, of_scale[i] += dy[i] * h[i]; of_shift[i] += dy[i]);
}

/* A chunk of the sums of a part. */
RONDO_INLINE void add_part(const norm_memory *memory, const norm_shape *shape, size_t part, size_t at, float *sums) {
  const size_t length = rondo_chunk_length(at, shape->columns);
  const rondo_span rows = rows_of_part(shape, part);
  float h[RONDO_CHUNK], buffer[RONDO_CHUNK], of_scale[RONDO_CHUNK] = {0}, of_shift[RONDO_CHUNK] = {0};
  for (size_t row = rows.first; row < rows.last; row++) {
    const float *dy = load_chunk(memory, row, shape->columns, at, length, h, buffer);
    add_columns(dy, h, of_scale, of_shift, length);
  }
  memcpy(sums + part * shape->columns + at, of_scale, length * sizeof *sums);
  if (shape->is_centred == 0) return;
  memcpy(sums + (shape->parts + part) * shape->columns + at, of_shift, length * sizeof *sums);
}

/* dx and sums are NULL if nothing reads them. */
RONDO_INLINE void part_gradient(const norm_memory *memory, const norm_shape *shape, size_t part, void *dx,
                                float *sums) {
  const rondo_span rows = rows_of_part(shape, part);
  for (size_t row = rows.first; row < rows.last && dx != NULL; row++) row_gradient(memory, shape, row, dx);
  for (size_t at = 0; at < shape->columns && sums != NULL; at += RONDO_CHUNK) add_part(memory, shape, part, at, sums);
}

RONDO_VECTORISED_KERNEL(layer_norm_gradient_cpu) {
  const norm_shape *shape = args[0];
  const norm_memory memory = {type,
                              parameter_type(shape, type),
                              RONDO_ARG(const void *, 1),
                              RONDO_ARG(const void *, 2),
                              RONDO_ARG(const void *, 3),
                              RONDO_ARG(const float *, 4),
                              RONDO_ARG(const float *, 5),
                              RONDO_ARG(const void *, 8)};
  RONDO_EACH_ITEM(part, blocks, shape->parts)
    part_gradient(&memory, shape, part, RONDO_ARG(void *, 6), RONDO_ARG(float *, 7));
}

RONDO_TYPED_KERNEL(layer_norm_gradient, layer_norm, RONDO_SCALAR(norm_shape), RONDO_READS, RONDO_READS, RONDO_READS,
                   RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_WRITES, RONDO_READS);

static rondo_status infer_gradient(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  RONDO_TRY(require_value(program, operation));
  RONDO_TRY(rondo_require_same_shape(program, operation, OF_VALUE, OF_RESULT));
  if (operation->inputs[OF_SUM] != RONDO_NO_VALUE)
    RONDO_TRY(rondo_require_same_shape(program, operation, OF_VALUE, OF_SUM));
  results[VALUE_GRADIENT] = *rondo_operation_input(program, operation, OF_VALUE);
  const norm_shape shape = shape_of(&results[VALUE_GRADIENT], operation);
  results[SUMS] = rondo_shape_vector(RONDO_F32, sums_of(&shape));
  return RONDO_OK;
}

/* A CUDA block computes a part. */
static rondo_status emit_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[OF_VALUE]);
  const norm_shape shape = shape_of(value, operation);
  const rondo_grain grain = {rondo_row_grain(shape.columns).cpu / shape.part_rows + 1, 1};
  return rondo_emit_operands(emitter, operation, &layer_norm_gradient_code[value->type],
                             rondo_emit_grid(emitter, shape.parts, grain),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(OF_VALUE), RONDO_INPUT(OF_RESULT),
                                            RONDO_INPUT(OF_SCALE), RONDO_INPUT(OF_DEVIATION), RONDO_INPUT(OF_MEAN),
                                            RONDO_RESULT(VALUE_GRADIENT), RONDO_RESULT(SUMS), RONDO_INPUT(OF_SUM)));
}

/* Gradients of scale and shift ------------------------------------------------------------------------------------- */

/* A scalar argument of their kernel; without padding. A block computes `width` columns of a result of an operator. */
typedef struct sums_shape {
  size_t columns, parts, width;
  uint32_t tiles, results;
} sums_shape;

#define WARP 32

/* Sums a chunk of all parts and stores it in this type. */
RONDO_INLINE void join_parts(rondo_type type, const float *sums, const sums_shape *shape, size_t at, void *to) {
  const size_t length = rondo_smaller(shape->columns - at, shape->width);
  float buffer[RONDO_CHUNK];
  float *chunk = rondo_chunk_of(type, to, at, buffer);
  memcpy(chunk, sums + at, length * sizeof *chunk);
  for (size_t part = 1; part < shape->parts; part++) add_chunk(sums + part * shape->columns + at, chunk, length);
  rondo_store_chunk(type, to, at, length, chunk);
}

RONDO_VECTORISED_KERNEL(layer_norm_parameters_cpu) {
  const sums_shape *shape = args[0];
  const size_t units = (size_t)shape->tiles * shape->results;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const size_t first = 1 + 3 * (block / units), result = block % units / shape->tiles;
    const float *sums = RONDO_ARG(const float *, first);
    join_parts(type, sums + result * shape->parts * shape->columns, shape, block % shape->tiles * shape->width,
               RONDO_ARG(void *, first + 1 + result));
  }
}

#define POINTERS RONDO_READS, RONDO_WRITES, RONDO_WRITES

static const rondo_parameter joined_parameters[] = {RONDO_SCALAR(sums_shape), RONDO_JOINED_PARAMETERS(POINTERS)};

RONDO_TYPED_KERNEL_LIST(layer_norm_parameters, layer_norm, joined_parameters);

static rondo_status infer_parameters(const rondo_program *program, const rondo_operation *operation,
                                     rondo_shape *results) {
  const rondo_attributes *attributes = &operation->attributes;
  assert(attributes->size_count >= FIRST_SIZE && attributes->size_count <= FIRST_SIZE + RONDO_MAX_DIMENSIONS);
  rondo_shape shape = {.type = (rondo_type)attributes->sizes[RESULT_TYPE], .rank = attributes->size_count - FIRST_SIZE};
  memcpy(shape.dims, attributes->sizes + FIRST_SIZE, shape.rank * sizeof shape.dims[0]);
  for (uint32_t i = 0; i < operation->row->result_count; i++) results[i] = shape;
  return rondo_require_input(program, operation, 0, RONDO_F32, 1);
}

/* All operations have the same attributes. Unused pointers are NULL. */
static rondo_status emit_parameters(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  const rondo_shape *result = rondo_emit_shape(emitter, operations[0]->results[0]);
  sums_shape shape = {.columns = rondo_shape_elements(result),
                      .parts = operations[0]->attributes.sizes[PARTS],
                      .width = rondo_emit_is_cuda(emitter) ? WARP : RONDO_CHUNK,
                      .results = operations[0]->row->result_count};
  assert(count > 0 && count <= RONDO_MAX_JOINED && shape.results <= 2);
  shape.tiles = (uint32_t)rondo_divide_up(shape.columns, shape.width);
  void *pointers[3 * RONDO_MAX_JOINED] = {NULL};
  const void *args[1 + 3 * RONDO_MAX_JOINED] = {&shape};
  for (uint32_t i = 0; i < count; i++) {
    pointers[3 * i] = rondo_emit_address(emitter, operations[i]->inputs[0]);
    for (uint32_t r = 0; r < shape.results; r++)
      pointers[3 * i + 1 + r] = rondo_emit_address(emitter, operations[i]->results[r]);
  }
  for (size_t i = 0; i < 3 * RONDO_MAX_JOINED; i++) args[1 + i] = &pointers[i];
  return rondo_emit_kernel(emitter, &layer_norm_parameters_code[result->type],
                           (rondo_grid){.x = count * shape.tiles * shape.results}, args, 1 + 3 * RONDO_MAX_JOINED);
}

static const rondo_join parameters_join = {.max = RONDO_MAX_JOINED, .emit = emit_parameters};

/* Rows ------------------------------------------------------------------------------------------------------------- */

static const norm_family layer_family = {true, &rondo_operator_layer_norm_gradient,
                                         &rondo_operator_layer_norm_parameters};
static const norm_family rms_family = {false, &rondo_operator_rms_norm_gradient, &rondo_operator_rms_norm_parameters};

#define NORM_ROW .infer = infer_norm, .differentiate = differentiate_norm, .emit = emit_norm
#define GRADIENT_ROW                                                                                         \
  .inputs = {"value", "gradient", "deviation", "mean", "scale", "addend"}, .required = 3, .result_count = 2, \
  .spare_results = 1u << VALUE_GRADIENT | 1u << SUMS, .infer = infer_gradient, .emit = emit_gradient
#define PARAMETERS_ROW .inputs = {"sums"}, .required = 1, .infer = infer_parameters, .join = &parameters_join

RONDO_OPERATOR(layer_norm, .types = RONDO_FLOATS, .family = &layer_family, .inputs = {"value", "scale", "shift"},
               .required = 1, .result_count = 3, NORM_ROW);
RONDO_OPERATOR(add_layer_norm, .types = RONDO_FLOATS, .family = &layer_family,
               .inputs = {"value", "scale", "shift", "addend"}, .required = 1, .result_count = 4, NORM_ROW);
RONDO_OPERATOR(layer_norm_gradient, .family = &layer_family, GRADIENT_ROW);
RONDO_OPERATOR(layer_norm_parameters, .family = &layer_family, .result_count = 2, PARAMETERS_ROW);
RONDO_OPERATOR(rms_norm, .types = RONDO_FLOATS, .family = &rms_family, .inputs = {"value", "scale"}, .required = 1,
               .result_count = 2, NORM_ROW);
RONDO_OPERATOR(rms_norm_gradient, .family = &rms_family, GRADIENT_ROW);
RONDO_OPERATOR(rms_norm_parameters, .family = &rms_family, .result_count = 1, PARAMETERS_ROW);

/* Whether a parameter is F32 and the value is not. Invalid values are left to the checks. */
static bool is_wide(const rondo_program *program, rondo_value value, rondo_value parameter) {
  rondo_type types[2];
  size_t dims[RONDO_MAX_DIMENSIONS], rank;
  if (parameter.id == 0) return false;
  if (rondo_value_shape(program, value, &types[0], dims, &rank) != RONDO_OK) return false;
  if (rondo_value_shape(program, parameter, &types[1], dims, &rank) != RONDO_OK) return false;
  return types[1] == RONDO_F32 && types[0] != RONDO_F32;
}

static rondo_attributes attributes_of(const rondo_program *program, const rondo_value *inputs, uint32_t count,
                                      size_t dimensions, float epsilon) {
  rondo_attributes attributes = {.sizes = {dimensions}, .size_count = 1, .numbers = {epsilon}};
  for (uint32_t i = SCALE; i < count && program != NULL; i++)
    attributes.flags[F32_PARAMETERS] = attributes.flags[F32_PARAMETERS] || is_wide(program, inputs[VALUE], inputs[i]);
  return attributes;
}

rondo_status rondo_op_layer_norm(rondo_program *program, rondo_value value, rondo_value scale, rondo_value shift,
                                 size_t dimensions, float epsilon, rondo_value *out_value) {
  const rondo_value inputs[] = {value, scale, shift};
  const rondo_attributes attributes = attributes_of(program, inputs, 3, dimensions, epsilon);
  return rondo_program_apply(program, &rondo_operator_layer_norm, inputs, 3, &attributes, out_value);
}

rondo_status rondo_op_add_layer_norm(rondo_program *program, rondo_value value, rondo_value addend, rondo_value scale,
                                     rondo_value shift, size_t dimensions, float epsilon, rondo_value *out_sum,
                                     rondo_value *out_value) {
  static const char name[] = "add_layer_norm";
  const rondo_value inputs[] = {value, scale, shift, addend};
  uint32_t index = 0;
  if (out_value != NULL) *out_value = (rondo_value){0};
  RONDO_TRY(rondo_require(name, "out_sum", out_sum));
  *out_sum = (rondo_value){0};
  RONDO_TRY(rondo_require(name, "program", program));
  RONDO_TRY(rondo_program_resolve(program, addend, name, "addend", &index));
  const rondo_attributes attributes = attributes_of(program, inputs, 3, dimensions, epsilon);
  RONDO_TRY(rondo_program_apply(program, &rondo_operator_add_layer_norm, inputs, 4, &attributes, out_value));
  const rondo_operation *added = &program->operations.items[program->operations.count - 1];
  *out_sum = rondo_program_tag(program, added->results[SUM]);
  return RONDO_OK;
}

rondo_status rondo_op_rms_norm(rondo_program *program, rondo_value value, rondo_value scale, size_t dimensions,
                               float epsilon, rondo_value *out_value) {
  const rondo_value inputs[] = {value, scale};
  const rondo_attributes attributes = attributes_of(program, inputs, 2, dimensions, epsilon);
  return rondo_program_apply(program, &rondo_operator_rms_norm, inputs, 2, &attributes, out_value);
}

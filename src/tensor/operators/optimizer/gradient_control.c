/* SPDX-License-Identifier: MIT
 * What happens to gradients before the optimizer, on the device:
 *   accumulate:        adds a gradient to a sum, which starts again in the first run of a round;
 *   gradient_squares:  adds the sums of squares of up to seven gradients to those of other gradients, in parts;
 *   gradient_control:  computes, from these sums, the loss scale and the counters, what optimizers do: [factor, apply],
 *                      and the norm;
 *   gradient_clip:     the same for a group of parameters, which is clipped by its own norm.
 *
 * Clipping by the global norm (Pascanu, Mikolov and Bengio 2013); dynamic loss scaling (Micikevicius et al. 2018), with
 * the rules of PyTorch's GradScaler: half after an overflow, twice after growth_interval good steps. Threads: as
 * tensor/program/operator.h says.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/common/joined.h"
#include "tensor/operators/common/operator_tools.h"
#include "tensor/program/optimizer_parts.h"

#define PARTS RONDO_NORM_PARTS

/* Accumulate ------------------------------------------------------------------------------------------------------- */

enum { SUM, ADDED, RUNS }; /* inputs */

RONDO_VECTORISED(add_span, (float *restrict sum, const float *restrict g, size_t count, bool is_first),
                 (sum, g, count, is_first)) {
  if (is_first)
    memcpy(sum, g, count * sizeof *sum);
  else
    RONDO_EACH_LANE(i, lane, count, sum[i] += g[i]);
}

/* `args` begins at the pointers of one gradient: sum and g, which has this type. */
static void accumulate_span(rondo_type type, void *const *args, rondo_span span, bool is_first) {
  float *sum = RONDO_ARG(float *, 0), buffer[RONDO_CHUNK];
  RONDO_EACH_GRADIENT(type, at, count, span.first, span.last)
  add_span(sum + at, rondo_load_chunk(type, RONDO_ARG(const void *, 1), at, count, buffer), count, is_first);
}

static void accumulate_cpu(rondo_blocks blocks, void *const *args) {
  const bool is_first = *RONDO_ARG(const int32_t *, 4) == 0;
  if (!rondo_may_update(blocks, args + 1)) return;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_joined_share share = rondo_joined_share_of(args[0], block);
    accumulate_span(share.type, args + 5 + 2 * share.operation, share.span, is_first);
  }
}

#define POINTERS RONDO_UPDATES, RONDO_READS

static const rondo_parameter accumulate_parameters[] = {RONDO_SCALAR(rondo_joined_table), RONDO_GATE_PARAMETERS,
                                                        RONDO_READS, RONDO_JOINED_PARAMETERS(POINTERS)};

RONDO_UNTYPED_KERNEL_LIST(accumulate, gradient_control, accumulate_parameters);

static rondo_status infer_accumulate(const rondo_program *program, const rondo_operation *operation,
                                     rondo_shape *results) {
  (void)results;
  RONDO_TRY(rondo_require_input(program, operation, SUM, RONDO_F32, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_gradient(program, operation, SUM, ADDED));
  return rondo_require_input(program, operation, RUNS, RONDO_I32, 0);
}

static rondo_status emit_accumulate(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t inputs[] = {SUM, ADDED};
  const rondo_joined_kernel kernel = {&accumulate_code, inputs, 2, ADDED, RONDO_ELEMENTWISE_GRAIN, NULL,
                                      RONDO_MAX_JOINED};
  return rondo_emit_joined(emitter, &kernel, operations, count, RONDO_OPERANDS(RONDO_GATE, RONDO_INPUT(RUNS)));
}

static const rondo_join accumulate_join = {.max = RONDO_MAX_JOINED, .shared = 1u << RUNS, .emit = emit_accumulate};

RONDO_OPERATOR(accumulate, .inputs = {"sum", "gradient", "runs"}, .required = 3, .updates = 1u << SUM,
               .infer = infer_accumulate, .join = &accumulate_join);

/* Squares ---------------------------------------------------------------------------------------------------------- */

enum { FIRST_GRADIENT = 1 }; /* input 0: the sums so far, if any */

#define MAX_SQUARES 16 /* operations of a kernel */
#define MAX_SQUARED (MAX_SQUARES * RONDO_SQUARED_GRADIENTS)

/* The elements and the type of each gradient. An omitted gradient has 0 elements and a NULL pointer. Without
 * padding. */
typedef struct squared_counts {
  size_t elements[MAX_SQUARED];
  uint64_t is_first; /* there are no sums so far */
  uint8_t types[MAX_SQUARED];
} squared_counts;

RONDO_VECTORISED(add_squares, (const float *restrict x, float *restrict sums, size_t count), (x, sums, count)) {
  RONDO_EACH_LANE(i, lane, count, sums[lane] += x[i] * x[i]);
}

static float squares_of(rondo_type type, const void *g, rondo_span span) {
  assert(g != NULL && span.first <= span.last);
  float sums[RONDO_LANES] = {0}, buffer[RONDO_CHUNK];
  RONDO_EACH_GRADIENT(type, at, count, span.first, span.last)
  add_squares(rondo_load_chunk(type, g, at, count, buffer), sums, count);
  for (size_t lane = 1; lane < RONDO_LANES; lane++) sums[0] += sums[lane];
  return sums[0];
}

static void gradient_squares_cpu(rondo_blocks blocks, void *const *args) {
  const squared_counts *counts = args[0];
  const float *before = RONDO_ARG(const float *, 1);
  float *parts = RONDO_ARG(float *, 2);
  assert(blocks.last <= PARTS && (counts->is_first != 0 || before != NULL));
  for (size_t part = blocks.first; part < blocks.last; part++) {
    float sum = counts->is_first != 0 ? 0.0f : before[part];
    for (size_t g = 0; g < MAX_SQUARED; g++) {
      const rondo_span span = rondo_block_span(part, blocks, counts->elements[g], RONDO_LANES);
      if (counts->elements[g] > 0)
        sum += squares_of((rondo_type)counts->types[g], RONDO_ARG(const void *, 3 + g), span);
    }
    parts[part] = sum;
  }
}

#define SEVEN_READS RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS
#define FOUR_TIMES(...) __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__

static const rondo_parameter squares_parameters[] = {RONDO_SCALAR(squared_counts), RONDO_READS, RONDO_WRITES,
                                                     FOUR_TIMES(FOUR_TIMES(SEVEN_READS))};

RONDO_UNTYPED_KERNEL_LIST(gradient_squares, gradient_control, squares_parameters);

static rondo_status infer_squares(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  RONDO_TRY(rondo_require_input(program, operation, 0, RONDO_F32, 1));
  for (uint32_t i = FIRST_GRADIENT; i < RONDO_MAX_OPERANDS; i++) {
    RONDO_TRY(rondo_require_float(program, operation, i, RONDO_ANY_RANK));
  }
  results[0] = rondo_shape_vector(RONDO_F32, PARTS);
  return RONDO_OK;
}

/* Lists the elements, types and pointers of an operation's gradients. The sizes of its attributes are pairs: the first
 * element of each, and a count, 0 for all. */
static void list_gradients(const rondo_emitter *emitter, const rondo_operation *operation, size_t *elements,
                           uint8_t *types, const void **pointers) {
  for (uint32_t g = 0; g < RONDO_SQUARED_GRADIENTS; g++) {
    const uint32_t value = operation->inputs[FIRST_GRADIENT + g];
    const size_t *part = &operation->attributes.sizes[2 * (size_t)g];
    if (value == RONDO_NO_VALUE) {
      pointers[g] = NULL, elements[g] = 0, types[g] = 0;
      continue;
    }
    const rondo_shape *shape = rondo_emit_shape(emitter, value);
    pointers[g] = (const unsigned char *)rondo_emit_address(emitter, value) + part[0] * rondo_type_bytes(shape->type);
    elements[g] = part[1] > 0 ? part[1] : rondo_shape_elements(shape);
    types[g] = (uint8_t)shape->type;
  }
}

/* The intermediate sums stay in the kernel. The first number of the attributes is that of a set of gradients: sums of
 * different sets are never joined. */
static rondo_status emit_squares(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  const void *x[MAX_SQUARED] = {NULL}, *args[3 + MAX_SQUARED];
  const float *before = rondo_emit_address(emitter, operations[0]->inputs[0]);
  float *parts = rondo_emit_address(emitter, operations[count - 1]->results[0]);
  squared_counts counts = {.is_first = before == NULL};
  assert(count > 0 && count <= MAX_SQUARES);
  for (uint32_t i = 0; i < count; i++) {
    const size_t first = (size_t)i * RONDO_SQUARED_GRADIENTS;
    list_gradients(emitter, operations[i], counts.elements + first, counts.types + first, x + first);
    /* Without a first gradient, the CUDA kernel ends the list here. A rank may have none for the last operation. */
    assert(counts.elements[first] > 0 || i + 1 == count);
  }
  args[0] = &counts;
  args[1] = &before;
  args[2] = &parts;
  for (size_t g = 0; g < MAX_SQUARED; g++) args[3 + g] = &x[g];
  return rondo_emit_kernel(emitter, &gradient_squares_code, (rondo_grid){.x = PARTS}, args, 3 + MAX_SQUARED);
}

static const rondo_join squares_join = {.max = MAX_SQUARES, .in_order = true, .of_parts = true, .emit = emit_squares};

RONDO_OPERATOR(gradient_squares,
               .inputs = {"parts", "gradient", "gradient", "gradient", "gradient", "gradient", "gradient", "gradient"},
               .required = 0, .result_count = 1, .is_late = true, .infer = infer_squares, .join = &squares_join);

/* Control ---------------------------------------------------------------------------------------------------------- */

/* Inputs: the runs of this round so far; and optional ones, the last two together: sums of squares; the scale; the good
 * updates since the scale changed. */
enum { RUNS_SO_FAR, SQUARES, SCALE, GOOD };
enum { CONTROL, NORM };                     /* results */
enum { MAX_NORM };                          /* numbers */
enum { ROUND, GROWTH_INTERVAL, MOST_RUNS }; /* sizes */

typedef struct control_numbers {
  float max_norm;
  int32_t round, growth_interval; /* round of 0: this is the last run of one, and it has been counted */
  int32_t most_runs;              /* this many counted runs are 0 (count_update) */
  uint32_t has_squares, has_scale;
} control_numbers;

/* Gradients are divided by the scale, so it must keep an inverse. A program can write any count to the state `good`. */
static void keep_scale(const control_numbers *n, bool is_finite, float *scale, int32_t *good) {
  *good = !is_finite ? 0 : *good < INT32_MAX ? *good + 1 : *good;
  if (!is_finite && *scale > 0x1p-126f) *scale *= 0.5f;
  if (*good < n->growth_interval) return;
  *good = 0;
  if (*scale < 0x1p126f) *scale *= 2.0f;
}

/* max_norm of 0: no clipping. */
static float clip_factor(float norm, float max_norm) {
  return max_norm > 0 && norm > max_norm ? max_norm / (norm + 1e-6f) : 1.0f;
}

static void gradient_control_cpu(rondo_blocks blocks, void *const *args) {
  const control_numbers *n = args[3];
  int32_t *runs = RONDO_ARG(int32_t *, 4);
  const float *parts = RONDO_ARG(const float *, 5);
  float *scale = RONDO_ARG(float *, 6);
  int32_t *good = RONDO_ARG(int32_t *, 7);
  float *control = RONDO_ARG(float *, 8);
  float *norm = RONDO_ARG(float *, 9);
  float squares = 0;
  const bool may_update = rondo_may_update(blocks, args);
  for (size_t i = 0; n->has_squares != 0 && i < PARTS; i++) squares += parts[i];
  const bool is_finite = isfinite(squares), is_last = *runs >= n->round - 1;
  const int32_t round = n->round > 0 ? n->round : *runs == 0 ? n->most_runs : *runs;
  float factor = 1.0f / (float)round;
  if (n->has_scale != 0) factor /= *scale;
  *norm = sqrtf(squares) * factor;
  control[0] = factor * clip_factor(*norm, n->max_norm);
  control[1] = is_last && is_finite && round > 0 ? 1.0f : 0.0f;
  if (!may_update) return;
  if (is_last && n->has_scale != 0) keep_scale(n, is_finite, scale, good);
  *runs = is_last ? 0 : *runs + 1;
}

RONDO_UNTYPED_KERNEL(gradient_control, gradient_control, RONDO_GATE_PARAMETERS, RONDO_SCALAR(control_numbers),
                     RONDO_UPDATES, RONDO_READS, RONDO_UPDATES, RONDO_UPDATES, RONDO_WRITES, RONDO_WRITES);

static rondo_status infer_control(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  RONDO_TRY(rondo_require_input(program, operation, RUNS_SO_FAR, RONDO_I32, 0));
  RONDO_TRY(rondo_require_input(program, operation, SQUARES, RONDO_F32, 1));
  RONDO_TRY(rondo_require_input(program, operation, SCALE, RONDO_F32, 0));
  RONDO_TRY(rondo_require_input(program, operation, GOOD, RONDO_I32, 0));
  results[CONTROL] = rondo_shape_vector(RONDO_F32, 2);
  results[NORM] = rondo_shape_scalar(RONDO_F32);
  return RONDO_OK;
}

/* The kernel never reads an omitted input. Its argument is the address of another input. */
static rondo_status emit_control(rondo_emitter *emitter, const rondo_operation *operation) {
  const control_numbers numbers = {.max_norm = operation->attributes.numbers[MAX_NORM],
                                   .round = (int32_t)operation->attributes.sizes[ROUND],
                                   .growth_interval = (int32_t)operation->attributes.sizes[GROWTH_INTERVAL],
                                   .most_runs = (int32_t)operation->attributes.sizes[MOST_RUNS],
                                   .has_squares = operation->inputs[SQUARES] != RONDO_NO_VALUE,
                                   .has_scale = operation->inputs[SCALE] != RONDO_NO_VALUE};
  assert(numbers.round >= 0);
  return rondo_emit_operands(emitter, operation, &gradient_control_code, (rondo_grid){.x = 1},
                             RONDO_OPERANDS(RONDO_GATE, RONDO_OBJECT(numbers), RONDO_INPUT(RUNS_SO_FAR),
                                            RONDO_INPUT(numbers.has_squares != 0 ? SQUARES : RUNS_SO_FAR),
                                            RONDO_INPUT(numbers.has_scale != 0 ? SCALE : RUNS_SO_FAR),
                                            RONDO_INPUT(numbers.has_scale != 0 ? GOOD : RUNS_SO_FAR),
                                            RONDO_RESULT(CONTROL), RONDO_RESULT(NORM)));
}

RONDO_OPERATOR(gradient_control, .inputs = {"runs", "squares", "scale", "good updates"}, .required = 1,
               .result_count = 2, .updates = 1u << RUNS_SO_FAR | 1u << SCALE | 1u << GOOD, .infer = infer_control,
               .emit = emit_control);

/* Clip ------------------------------------------------------------------------------------------------------------- */

enum { OF_ALL, OF_GROUP }; /* inputs: the control of all gradients, and the squares of these */

static void gradient_clip_cpu(rondo_blocks blocks, void *const *args) {
  const float max_norm = RONDO_ARG(float, 0);
  const float *of_all = RONDO_ARG(const float *, 1), *parts = RONDO_ARG(const float *, 2);
  float *control = RONDO_ARG(float *, 3), squares = 0;
  (void)blocks; /* one */
  for (size_t i = 0; i < PARTS; i++) squares += parts[i];
  control[0] = of_all[0] * clip_factor(sqrtf(squares) * of_all[0], max_norm);
  control[1] = of_all[1];
}

RONDO_UNTYPED_KERNEL(gradient_clip, gradient_control, RONDO_SCALAR(float), RONDO_READS, RONDO_READS, RONDO_WRITES);

static rondo_status infer_clip(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  results[0] = rondo_shape_vector(RONDO_F32, 2);
  RONDO_TRY(rondo_require_input(program, operation, OF_ALL, RONDO_F32, 1));
  return rondo_require_input(program, operation, OF_GROUP, RONDO_F32, 1);
}

static rondo_status emit_clip(rondo_emitter *emitter, const rondo_operation *operation) {
  const float max_norm = operation->attributes.numbers[MAX_NORM];
  return rondo_emit_operands(
      emitter, operation, &gradient_clip_code, (rondo_grid){.x = 1},
      RONDO_OPERANDS(RONDO_OBJECT(max_norm), RONDO_INPUT(OF_ALL), RONDO_INPUT(OF_GROUP), RONDO_RESULT(0)));
}

RONDO_OPERATOR(gradient_clip, .inputs = {"control", "squares"}, .required = 2, .result_count = 1, .is_late = true,
               .infer = infer_clip, .emit = emit_clip);

/* The sums of squares of two sets of gradients. */
static void squares_add_cpu(rondo_blocks blocks, void *const *args) {
  const float *a = RONDO_ARG(const float *, 0), *b = RONDO_ARG(const float *, 1);
  float *parts = RONDO_ARG(float *, 2);
  (void)blocks; /* one */
  for (size_t i = 0; i < PARTS; i++) parts[i] = a[i] + b[i];
}

RONDO_UNTYPED_KERNEL(squares_add, gradient_control, RONDO_READS, RONDO_READS, RONDO_WRITES);

static rondo_status infer_squares_add(const rondo_program *program, const rondo_operation *operation,
                                      rondo_shape *results) {
  results[0] = rondo_shape_vector(RONDO_F32, PARTS);
  return rondo_require_same_shape(program, operation, 0, 1);
}

static rondo_status emit_squares_add(rondo_emitter *emitter, const rondo_operation *operation) {
  return rondo_emit_operands(emitter, operation, &squares_add_code, (rondo_grid){.x = 1},
                             RONDO_OPERANDS(RONDO_INPUT(0), RONDO_INPUT(1), RONDO_RESULT(0)));
}

RONDO_OPERATOR(squares_add, .inputs = {"parts", "parts"}, .required = 2, .result_count = 1, .is_late = true,
               .infer = infer_squares_add, .emit = emit_squares_add);

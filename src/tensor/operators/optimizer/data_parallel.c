/* SPDX-License-Identifier: MIT
 * The operators of data-parallel programs (tensor/program/buckets.h): copies between values and flat buckets, and
 * collectives on these. A collective has a second result, its turn, which is never computed: the next collective has it
 * as an input, and so comes later on all ranks.
 *
 * `agree` makes a run fail on all ranks if an index check failed on one of them: it is itself a check, whose wrong
 * index is the rank. Threads: as tensor/program/operator.h says.
 */
#include <rondo/collective_engine.h>

#include <assert.h>
#include <string.h>

#include "tensor/operators/common/joined.h"
#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/elementwise/unary_operators.h"
#include "tensor/program/optimizer_parts.h"

enum { FLAT, COPIED };          /* inputs of copies; the flat value is omitted where it is made */
enum { VALUE, TURN };           /* inputs and results of collectives */
enum { RANKS };                 /* sizes of collectives */
enum { RANK };                  /* sizes of agree */
#define LENGTH RONDO_PART_SIZES /* a size of copies that make a flat value: its elements */

/* Copies ----------------------------------------------------------------------------------------------------------- */

static void copy_parts_cpu(rondo_blocks blocks, void *const *args) {
  if (!rondo_may_update(blocks, args + 1)) return;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_joined_share share = rondo_joined_share_of(args[0], block);
    float *to = RONDO_ARG(float *, 4 + 2 * share.operation), buffer[RONDO_CHUNK];
    RONDO_EACH_GRADIENT(share.type, at, count, share.span.first, share.span.last) {
      const void *from = RONDO_ARG(const void *, 5 + 2 * share.operation);
      memcpy(to + at, rondo_load_chunk(share.type, from, at, count, buffer), count * sizeof *to);
    }
  }
}

#define POINTERS RONDO_UPDATES, RONDO_READS

static const rondo_parameter copy_parameters[] = {RONDO_SCALAR(rondo_joined_table), RONDO_GATE_PARAMETERS,
                                                  RONDO_JOINED_PARAMETERS(POINTERS)};

RONDO_UNTYPED_KERNEL_LIST(copy_parts, data_parallel, copy_parameters);

static rondo_status infer_put(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  RONDO_TRY(rondo_require_input(program, operation, FLAT, RONDO_F32, 1));
  RONDO_TRY(rondo_require_float(program, operation, COPIED, RONDO_ANY_RANK));
  results[0] = rondo_shape_vector(RONDO_F32, operation->attributes.sizes[LENGTH]);
  return RONDO_OK;
}

/* A flat value is not a state, so nothing keeps a copy into it from happening. */
static rondo_status emit_put(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t values[] = {RONDO_RESULT_NUMBER(0), COPIED};
  static const uint32_t offsets[] = {RONDO_PART_COMPANION, RONDO_PART_GRADIENT};
  const rondo_joined_kernel kernel = {&copy_parts_code, values,          2, COPIED, RONDO_ELEMENTWISE_GRAIN,
                                      offsets,          RONDO_MAX_JOINED};
  const rondo_gate_memory open = {.count = 0};
  return rondo_emit_joined(emitter, &kernel, operations, count,
                           RONDO_OPERANDS(RONDO_OBJECT(open.count), RONDO_OBJECT(open.marks), RONDO_OBJECT(open.next)));
}

static const rondo_join put_join = {.max = RONDO_MAX_JOINED, .of_parts = true, .emit = emit_put};

/* The value may be a state that an earlier update changes. */
RONDO_OPERATOR(bucket_put, .inputs = {"bucket", "value"}, .required = 0, .result_count = 1, .is_in_place = true,
               .is_late = true, .is_urgent = true, .infer = infer_put, .join = &put_join);

enum { PARAMETER, GATHERED }; /* inputs */

static rondo_status infer_take(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  (void)results;
  RONDO_TRY(rondo_require_input(program, operation, PARAMETER, RONDO_F32, RONDO_ANY_RANK));
  return rondo_require_input(program, operation, GATHERED, RONDO_F32, 1);
}

static rondo_status emit_take(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t values[] = {PARAMETER, GATHERED};
  static const uint32_t offsets[] = {RONDO_PART_PARAMETER, RONDO_PART_GRADIENT};
  const rondo_joined_kernel kernel = {&copy_parts_code, values,          2, GATHERED, RONDO_ELEMENTWISE_GRAIN,
                                      offsets,          RONDO_MAX_JOINED};
  return rondo_emit_joined(emitter, &kernel, operations, count, RONDO_OPERANDS(RONDO_GATE));
}

static const rondo_join take_join = {.max = RONDO_MAX_JOINED, .of_parts = true, .emit = emit_take};

RONDO_OPERATOR(parameter_take, .inputs = {"parameter", "bucket"}, .required = 2, .updates = 1u << PARAMETER,
               .infer = infer_take, .join = &take_join);

/* Collectives ------------------------------------------------------------------------------------------------------ */

typedef struct collective_call {
  rondo_communicator *communicator;
  rondo_collective_operation operation;
  const void *src;
  void *dst;
  size_t count;
  rondo_type type;
  rondo_reduction reduction;
} collective_call;

/* A rondo_step_call. */
static rondo_status enqueue_collective(rondo_resources *resources, rondo_stream *stream, const void *user) {
  const collective_call *call = user;
  (void)resources;
  switch (call->operation) {
    case RONDO_COLLECTIVE_REDUCE_SCATTER:
      return rondo_reduce_scatter(call->communicator, stream, call->src, call->dst, call->count, call->type,
                                  call->reduction);
    case RONDO_COLLECTIVE_ALL_GATHER:
      return rondo_all_gather(call->communicator, stream, call->src, call->dst, call->count, call->type);
    case RONDO_COLLECTIVE_ALL_TO_ALL:
      return rondo_all_to_all(call->communicator, stream, call->src, call->dst, call->count, call->type);
    default:
      assert(call->operation == RONDO_COLLECTIVE_ALL_REDUCE);
      return rondo_all_reduce(call->communicator, stream, call->src, call->dst, call->count, call->type,
                              call->reduction);
  }
}

/* `count`: elements of a part. */
static rondo_status emit_collective(rondo_emitter *emitter, const rondo_operation *operation,
                                    rondo_collective_operation what, size_t count, rondo_reduction reduction) {
  const collective_call call = {.communicator = rondo_emit_communicator(emitter),
                                .operation = what,
                                .src = rondo_emit_address(emitter, operation->inputs[VALUE]),
                                .dst = rondo_emit_address(emitter, operation->results[VALUE]),
                                .count = count,
                                .type = rondo_emit_shape(emitter, operation->results[VALUE])->type,
                                .reduction = reduction};
  return rondo_emit_call(emitter, enqueue_collective, &call, sizeof call);
}

static size_t result_count(const rondo_emitter *emitter, const rondo_operation *operation) {
  return rondo_shape_elements(rondo_emit_shape(emitter, operation->results[VALUE]));
}

static rondo_status infer_reduce(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  RONDO_TRY(rondo_require_input(program, operation, VALUE, RONDO_F32, 1));
  results[VALUE] = *rondo_operation_input(program, operation, VALUE);
  results[TURN] = rondo_shape_scalar(RONDO_I32);
  return rondo_require_input(program, operation, TURN, RONDO_I32, 0);
}

static rondo_status infer_scatter(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  RONDO_TRY(infer_reduce(program, operation, results));
  results[VALUE].dims[0] /= operation->attributes.sizes[RANKS];
  return RONDO_OK;
}

static rondo_status infer_gather(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  RONDO_TRY(infer_reduce(program, operation, results));
  results[VALUE].dims[0] *= operation->attributes.sizes[RANKS];
  return RONDO_OK;
}

static rondo_status emit_bucket_reduce(rondo_emitter *emitter, const rondo_operation *operation) {
  return emit_collective(emitter, operation, RONDO_COLLECTIVE_ALL_REDUCE, result_count(emitter, operation),
                         RONDO_REDUCE_AVERAGE);
}

static rondo_status emit_norm_reduce(rondo_emitter *emitter, const rondo_operation *operation) {
  return emit_collective(emitter, operation, RONDO_COLLECTIVE_ALL_REDUCE, result_count(emitter, operation),
                         RONDO_REDUCE_SUM);
}

static rondo_status emit_bucket_scatter(rondo_emitter *emitter, const rondo_operation *operation) {
  return emit_collective(emitter, operation, RONDO_COLLECTIVE_REDUCE_SCATTER, result_count(emitter, operation),
                         RONDO_REDUCE_AVERAGE);
}

static rondo_status emit_bucket_gather(rondo_emitter *emitter, const rondo_operation *operation) {
  return emit_collective(emitter, operation, RONDO_COLLECTIVE_ALL_GATHER,
                         result_count(emitter, operation) / operation->attributes.sizes[RANKS], 0);
}

/* Of any type and shape. */
static rondo_status infer_all_to_all(const rondo_program *program, const rondo_operation *operation,
                                     rondo_shape *results) {
  results[VALUE] = *rondo_operation_input(program, operation, VALUE);
  results[TURN] = rondo_shape_scalar(RONDO_I32);
  return rondo_require_input(program, operation, TURN, RONDO_I32, 0);
}

/* The gradient goes back the same way. As other gradients of a data-parallel program, it is that of the mean loss. */
static rondo_status differentiate_all_to_all(rondo_program *program, const rondo_operation *operation,
                                             const uint32_t *result_gradients, uint32_t *input_gradients) {
  const size_t ranks = operation->attributes.sizes[RANKS];
  const rondo_attributes mean = rondo_scale_attributes(1.0f / (float)ranks);
  uint32_t gradient = result_gradients[VALUE];
  if (gradient == RONDO_NO_VALUE) return RONDO_OK;
  if (ranks > 1) RONDO_TRY(rondo_program_add(program, &rondo_operator_scale, &gradient, 1, &mean, &gradient));
  return rondo_program_add_collective(program, &rondo_operator_all_to_all, gradient, &input_gradients[VALUE]);
}

static rondo_status emit_all_to_all(rondo_emitter *emitter, const rondo_operation *operation) {
  return emit_collective(emitter, operation, RONDO_COLLECTIVE_ALL_TO_ALL,
                         result_count(emitter, operation) / operation->attributes.sizes[RANKS], 0);
}

#define COLLECTIVE .inputs = {"value", "turn"}, .required = 1, .result_count = 2, .is_collective = true
#define LATE COLLECTIVE, .is_late = true

RONDO_OPERATOR(bucket_reduce, LATE, .is_urgent = true, .is_in_place = true, .infer = infer_reduce,
               .emit = emit_bucket_reduce);
RONDO_OPERATOR(bucket_scatter, LATE, .is_urgent = true, .infer = infer_scatter, .emit = emit_bucket_scatter);
RONDO_OPERATOR(bucket_gather, LATE, .infer = infer_gather, .emit = emit_bucket_gather);
RONDO_OPERATOR(all_to_all, COLLECTIVE, .is_urgent = true, .infer = infer_all_to_all,
               .differentiate = differentiate_all_to_all, .emit = emit_all_to_all);
RONDO_OPERATOR(norm_reduce, LATE, .is_in_place = true, .infer = infer_reduce, .emit = emit_norm_reduce);

/* Agree ------------------------------------------------------------------------------------------------------------ */

static void agree_find_cpu(rondo_blocks blocks, void *const *args) {
  const int32_t number = RONDO_ARG(int32_t, 3);
  *RONDO_ARG(int32_t *, 4) = rondo_may_update(blocks, args) ? 0 : number;
}

RONDO_UNTYPED_KERNEL(agree_find, data_parallel, RONDO_GATE_PARAMETERS, RONDO_SCALAR(int32_t), RONDO_WRITES);

static void agree_check_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_index_cell to = rondo_begin_check(blocks, args + 1);
  const int32_t failed = *RONDO_ARG(const int32_t *, 0);
  if (failed != 0) (void)rondo_check_index(to, 0, failed - 1, 0);
}

RONDO_UNTYPED_KERNEL(agree_check, data_parallel, RONDO_READS, RONDO_CHECK_PARAMETERS);

static rondo_status infer_agree(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  results[VALUE] = results[TURN] = rondo_shape_scalar(RONDO_I32);
  return rondo_require_input(program, operation, 0, RONDO_I32, 0);
}

static rondo_status emit_agree(rondo_emitter *emitter, const rondo_operation *operation) {
  const int32_t number = (int32_t)operation->attributes.sizes[RANK] + 1;
  void *const failed = rondo_emit_address(emitter, operation->results[VALUE]);
  const collective_call call = {.communicator = rondo_emit_communicator(emitter),
                                .operation = RONDO_COLLECTIVE_ALL_REDUCE,
                                .src = failed,
                                .dst = failed,
                                .count = 1,
                                .type = RONDO_I32,
                                .reduction = RONDO_REDUCE_MAX};
  RONDO_TRY(rondo_emit_operands(emitter, operation, &agree_find_code, (rondo_grid){.x = 1},
                                RONDO_OPERANDS(RONDO_GATE, RONDO_OBJECT(number), RONDO_RESULT(VALUE))));
  RONDO_TRY(rondo_emit_call(emitter, enqueue_collective, &call, sizeof call));
  return rondo_emit_operands(emitter, operation, &agree_check_code, (rondo_grid){.x = 1},
                             RONDO_OPERANDS(RONDO_RESULT(VALUE), RONDO_CHECK(0, 0)));
}

RONDO_OPERATOR(agree, .inputs = {"turn"}, .required = 0, .result_count = 2, .is_collective = true, .is_urgent = true,
               .checks_indices = 1, .always_runs = true, .infer = infer_agree, .emit = emit_agree);

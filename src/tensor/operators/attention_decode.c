/* SPDX-License-Identifier: MIT
 * attention_decode: one token's row of q, which sees the rows of a cache up to a length that lies on the device, and
 * the token's own row of k and v; append puts these into the cache, behind all else in the run. So every run of a
 * program that generates does the same work at the same addresses.
 */
#include <string.h>

#include "tensor/operators.h"
#include "tensor/operators/attention.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

enum { Q, K, V, K_CACHE, V_CACHE, LENGTH }; /* inputs of attention_decode */
enum { CACHE, ROW, AT };                    /* inputs of append */

/* Attention -------------------------------------------------------------------------------------------------------- */

static void attention_decode_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_attention_decode_cpu(type, blocks, args);
}

RONDO_TYPED_KERNEL(attention_decode, attention_decode, RONDO_SCALAR(rondo_attention_shape), RONDO_READS, RONDO_READS,
                   RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES);

static rondo_status infer_decode(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *q = rondo_operation_input(program, operation, Q);
  const rondo_shape *k = rondo_operation_input(program, operation, K);
  const rondo_shape *cache = rondo_operation_input(program, operation, K_CACHE);
  RONDO_TRY(rondo_require_attention(program, operation));
  RONDO_TRY(rondo_require_input(program, operation, K_CACHE, q->type, 4));
  RONDO_TRY(rondo_require_same_shape(program, operation, K_CACHE, V_CACHE));
  RONDO_TRY(rondo_require_input(program, operation, LENGTH, RONDO_I32, 0));
  results[0] = *q;
  if (q->dims[2] == 1 && k->dims[2] == 1 && cache->dims[0] == k->dims[0] && cache->dims[1] == k->dims[1] &&
      cache->dims[3] == k->dims[3] && cache->dims[2] <= INT32_MAX)
    return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "q must be [b, h, 1, d], k and v [b, g, 1, d], and the caches [b, g, s, d]");
}

static rondo_status emit_decode(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attention_shape shape = rondo_attention_shape_of(emitter, operation, K_CACHE);
  const void *of[LENGTH + 1];
  for (uint32_t i = 0; i <= LENGTH; i++) of[i] = rondo_emit_address(emitter, operation->inputs[i]);
  void *y = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &attention_decode_code[rondo_emit_shape(emitter, operation->inputs[Q])->type],
                           rondo_emit_grid(emitter, shape.batches * shape.heads, (rondo_grain){1, 1}),
                           RONDO_ARGS(&shape, &of[Q], &of[K], &of[V], &of[K_CACHE], &of[V_CACHE], &of[LENGTH], &y));
}

const rondo_operator rondo_operator_attention_decode = {.name = "attention_decode",
                                                        .types = RONDO_FLOATS,
                                                        .inputs = {"q", "k", "v", "k_cache", "v_cache", "length"},
                                                        .required = 6,
                                                        .result_count = 1,
                                                        .infer = infer_decode,
                                                        .emit = emit_decode};

/* Cache ------------------------------------------------------------------------------------------------------------ */

/* What the kernel gets as one scalar: a cache [count, columns, size], of elements of so many bytes. */
typedef struct append_shape {
  size_t count, columns, size, bytes;
} append_shape;

static void attention_append_cpu(rondo_blocks blocks, void *const *args) {
  const append_shape *shape = args[0];
  const char *rows = RONDO_ARG(const char *, 1);
  const int32_t at = *RONDO_ARG(const int32_t *, 2);
  char *cache = RONDO_ARG(char *, 3);
  const size_t bytes = shape->size * shape->bytes;
  if (!rondo_check_index(RONDO_ARG(_Atomic uint64_t *, 4), 0, at, shape->columns)) return;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, shape->count, 1);
    for (size_t i = span.first; i < span.last; i++)
      memcpy(cache + (i * shape->columns + (size_t)at) * bytes, rows + i * bytes, bytes);
  }
}

static const rondo_kernel_options attention_append_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "attention_append", .cpu = attention_append_cpu, RONDO_CUDA(attention_append),
    .params = {RONDO_SCALAR(append_shape), RONDO_READS, RONDO_READS, RONDO_UPDATES, RONDO_UPDATES}};

static rondo_status infer_append(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  (void)results;
  if (program->values.items[operation->inputs[CACHE]].kind == RONDO_VALUE_STATE) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_TYPE, "the cache must be a state");
}

static rondo_status emit_append(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *cache = rondo_emit_shape(emitter, operation->inputs[CACHE]);
  const append_shape shape = {cache->dims[0] * cache->dims[1], cache->dims[2], cache->dims[3],
                              rondo_type_bytes(cache->type)};
  const void *rows = rondo_emit_address(emitter, operation->inputs[ROW]);
  const void *at = rondo_emit_address(emitter, operation->inputs[AT]);
  void *to = rondo_emit_address(emitter, operation->inputs[CACHE]), *cell = NULL;
  RONDO_TRY(rondo_emit_index_check(emitter, AT, shape.columns, &cell));
  const rondo_grain grain = {4096 / shape.size + 1, RONDO_CUDA_THREADS / 32};
  return rondo_emit_kernel(emitter, &attention_append_code, rondo_emit_grid(emitter, shape.count, grain),
                           RONDO_ARGS(&shape, &rows, &at, &to, &cell));
}

const rondo_operator rondo_operator_attention_append = {.name = "attention_append",
                                                        .inputs = {"cache", "row", "length"},
                                                        .required = 3,
                                                        .updates = 1u << CACHE,
                                                        .checks_indices = true,
                                                        .infer = infer_append,
                                                        .emit = emit_append};

static rondo_status add_appends(rondo_program *program, uint32_t result) {
  const rondo_operation decode = program->operations.items[program->values.items[result].operation];
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t inputs[] = {decode.inputs[K_CACHE + i], decode.inputs[K + i], decode.inputs[LENGTH]};
    RONDO_TRY(rondo_program_add(program, &rondo_operator_attention_append, inputs, 3, NULL, NULL));
  }
  return RONDO_OK;
}

rondo_status rondo_op_attention_decode(rondo_program *program, rondo_value q, rondo_value k, rondo_value v,
                                       rondo_value k_cache, rondo_value v_cache, rondo_value length,
                                       const rondo_attention_options *options, rondo_value *out_value) {
  static const char call[] = "attention_decode";
  const rondo_value inputs[] = {q, k, v, k_cache, v_cache, length};
  rondo_attributes attributes;
  uint32_t result = 0;
  RONDO_TRY(rondo_attention_attributes(program, call, q, options, &attributes, out_value));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  RONDO_TRY(rondo_program_apply(program, &rondo_operator_attention_decode, inputs, 6, &attributes, out_value));
  rondo_status status = rondo_program_resolve(program, *out_value, call, "the result", &result);
  if (status == RONDO_OK) status = add_appends(program, result);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_program_roll_back(program, mark);
  *out_value = (rondo_value){0};
  return status;
}

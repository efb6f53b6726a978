/* SPDX-License-Identifier: MIT
 * attention_decode: one token's row of q, which sees the rows of a cache up to a length that lies on the device, and
 * the token's own row of k and v; append puts these into the caches, behind all else in the run, whose check of the
 * length it relies on. So every run of a program that generates does the same work at the same addresses.
 * attention_decode_packed is the same where q, k and v lie side by side in a row. attention_fill begins caches with
 * many such rows.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/attention/attention.h"
#include "tensor/operators/common/operator_tools.h"

enum { Q, K, V, K_CACHE, V_CACHE, LENGTH };                  /* inputs of attention_decode */
enum { QKV, PACKED_K_CACHE, PACKED_V_CACHE, PACKED_LENGTH }; /* of attention_decode_packed */
enum { TO_K, TO_V, AT, FROM_K, FROM_V };                     /* of append; without FROM_V, FROM_K is packed */
enum { FILL_QKV, FILL_K, FILL_V, NO_PLACE };                 /* of fill; the last is left out: it fills from row 0 on */

/* Attention -------------------------------------------------------------------------------------------------------- */

RONDO_TYPED_KERNEL_OF(attention_decode, rondo_attention_decode_cpu, attention_decode,
                      RONDO_SCALAR(rondo_attention_shape), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS,
                      RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_CHECK_PARAMETERS);

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

/* The caches and the length stand behind q, k and v, or behind what has all three. */
static rondo_status emit_kernel(rondo_emitter *emitter, const rondo_operation *operation,
                                const rondo_attention_shape *shape, const rondo_attention_parts *own, uint32_t caches) {
  return rondo_emit_operands(
      emitter, operation, &attention_decode_code[rondo_emit_shape(emitter, operation->inputs[Q])->type],
      rondo_emit_grid(emitter, shape->batches * shape->heads, (rondo_grain){1, 1}),
      RONDO_OPERANDS(RONDO_OBJECT(*shape), RONDO_OBJECT(own->q), RONDO_OBJECT(own->k), RONDO_OBJECT(own->v),
                     RONDO_INPUT(caches), RONDO_INPUT(caches + 1), RONDO_INPUT(caches + 2), RONDO_RESULT(0),
                     RONDO_CHECK(caches + 2, shape->columns)));
}

static rondo_status emit_decode(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attention_shape shape = rondo_attention_shape_of(emitter, operation, K_CACHE);
  const rondo_attention_parts own = rondo_attention_parts_at(emitter, operation->inputs);
  return emit_kernel(emitter, operation, &shape, &own, K_CACHE);
}

#define DECODE_ROW                                                                       \
  .types = RONDO_FLOATS, .result_count = 1, .checks_indices = true, .always_runs = true, \
  .index_rule = "nothing was written into caches"

RONDO_OPERATOR(attention_decode, DECODE_ROW, .inputs = {"q", "k", "v", "k_cache", "v_cache", "length"}, .required = 6,
               .infer = infer_decode, .emit = emit_decode);

static rondo_status infer_packed(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *qkv = rondo_operation_input(program, operation, QKV);
  const rondo_shape *cache = rondo_operation_input(program, operation, PACKED_K_CACHE);
  const size_t *sizes = operation->attributes.sizes;
  size_t size = 0;
  RONDO_TRY(rondo_require_packed(program, operation, &size));
  RONDO_TRY(rondo_require_input(program, operation, PACKED_K_CACHE, qkv->type, 4));
  RONDO_TRY(rondo_require_same_shape(program, operation, PACKED_K_CACHE, PACKED_V_CACHE));
  RONDO_TRY(rondo_require_input(program, operation, PACKED_LENGTH, RONDO_I32, 0));
  results[0] = *qkv;
  results[0].dims[2] = sizes[RONDO_ATTENTION_HEADS] * size;
  if (qkv->dims[1] == 1 && cache->dims[0] == qkv->dims[0] && cache->dims[1] == sizes[RONDO_ATTENTION_GROUPS] &&
      cache->dims[3] == size && cache->dims[2] <= INT32_MAX)
    return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "qkv must be [b, 1, (h + 2 g) d], and the caches [b, g, s, d]: here g is %zu and d %zu",
                              sizes[RONDO_ATTENTION_GROUPS], size);
}

/* Columns are the caches'. */
static rondo_attention_shape packed_shape(const rondo_emitter *emitter, const rondo_operation *operation) {
  rondo_attention_shape shape = rondo_attention_packed_shape(emitter, operation);
  shape.columns = rondo_emit_shape(emitter, operation->inputs[PACKED_K_CACHE])->dims[2];
  shape.k = rondo_attention_stacked(shape.groups, shape.columns, shape.size);
  return shape;
}

static rondo_status emit_packed(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attention_shape shape = packed_shape(emitter, operation);
  const rondo_attention_parts own = rondo_attention_parts_of(emitter, &shape, operation->inputs[QKV]);
  return emit_kernel(emitter, operation, &shape, &own, PACKED_K_CACHE);
}

RONDO_OPERATOR(attention_decode_packed, DECODE_ROW, .inputs = {"qkv", "k_cache", "v_cache", "length"}, .required = 4,
               .infer = infer_packed, .emit = emit_packed);

/* Caches ----------------------------------------------------------------------------------------------------------- */

/* What the kernel gets as one scalar: two caches [heads, columns, size], of elements of so many bytes, heads of all
 * batches; of each head `count` rows, which lie as `from` says in batches of `groups` heads. */
typedef struct append_shape {
  size_t heads, columns, size, bytes, count, groups;
  rondo_attention_place from;
} append_shape;

static void append_row(const append_shape *shape, const char *from, char *to, size_t head, size_t row, size_t at) {
  assert(head < shape->heads);
  const rondo_attention_place *place = &shape->from;
  const size_t begin = head / shape->groups * place->batch + head % shape->groups * place->head + row * place->row;
  memcpy(to + (head * shape->columns + at + row) * shape->size * shape->bytes, from + begin * shape->bytes,
         shape->size * shape->bytes);
}

/* Without the place of the first row, it is 0. One that the caches have not is told by attention_decode, which may run
 * on another device. */
static void attention_append_cpu(rondo_blocks blocks, void *const *args) {
  const append_shape *shape = args[3];
  const char *from[] = {RONDO_ARG(const char *, 4), RONDO_ARG(const char *, 5)};
  const int32_t *given = RONDO_ARG(const int32_t *, 6);
  char *to[] = {RONDO_ARG(char *, 7), RONDO_ARG(char *, 8)};
  const size_t each = shape->heads * shape->count;
  const bool has_place = given == NULL || (*given >= 0 && (size_t)*given < shape->columns);
  if (!rondo_may_update(blocks, args) || !has_place) return;
  RONDO_EACH_ITEM(i, blocks, 2 * each)
    append_row(shape, from[i / each], to[i / each], i % each / shape->count, i % shape->count,
               given == NULL ? 0 : (size_t)*given);
}

static const rondo_kernel_options attention_append_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "attention_append", .cpu = attention_append_cpu, RONDO_CUDA(attention_append),
    .params = {RONDO_GATE_PARAMETERS, RONDO_SCALAR(append_shape), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_UPDATES,
               RONDO_UPDATES}};

static append_shape append_shape_of(const rondo_shape *cache, size_t count, rondo_attention_place from) {
  return (append_shape){.heads = cache->dims[0] * cache->dims[1],
                        .columns = cache->dims[2],
                        .size = cache->dims[3],
                        .bytes = rondo_type_bytes(cache->type),
                        .count = count,
                        .groups = cache->dims[1],
                        .from = from};
}

/* Rows of k and v into the caches; they begin at input `at`. */
static rondo_status emit_rows(rondo_emitter *emitter, const rondo_operation *operation, const append_shape *shape,
                              const rondo_attention_parts *from, uint32_t at, uint32_t k_cache) {
  const rondo_grain grain = {4096 / shape->size + 1, RONDO_CUDA_THREADS / 32};
  return rondo_emit_operands(
      emitter, operation, &attention_append_code, rondo_emit_grid(emitter, 2 * shape->heads * shape->count, grain),
      RONDO_OPERANDS(RONDO_GATE, RONDO_OBJECT(*shape), RONDO_OBJECT(from->k), RONDO_OBJECT(from->v), RONDO_INPUT(at),
                     RONDO_INPUT(k_cache), RONDO_INPUT(k_cache + 1)));
}

static rondo_status require_states(const rondo_program *program, const rondo_operation *operation, uint32_t k,
                                   uint32_t v) {
  const uint32_t *inputs = operation->inputs;
  if (program->values.items[inputs[k]].kind == RONDO_VALUE_STATE &&
      program->values.items[inputs[v]].kind == RONDO_VALUE_STATE && inputs[k] != inputs[v])
    return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_TYPE, "the caches must be two states");
}

static rondo_status infer_append(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  (void)results;
  return require_states(program, operation, TO_K, TO_V);
}

/* The last heads of packed rows are those of v, in front of them those of k. */
static rondo_status emit_append(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *cache = rondo_emit_shape(emitter, operation->inputs[TO_K]);
  const size_t size = cache->dims[3], each = cache->dims[1] * size;
  const size_t row = rondo_shape_elements(rondo_emit_shape(emitter, operation->inputs[FROM_K])) / cache->dims[0];
  const append_shape shape = append_shape_of(cache, 1, rondo_attention_abreast(1, row, size));
  rondo_attention_parts from = {.k = rondo_emit_address(emitter, operation->inputs[FROM_K]),
                                .v = rondo_emit_address(emitter, operation->inputs[FROM_V])};
  if (from.v == NULL) {
    const char *begin = from.k;
    from.k = begin + (row - 2 * each) * shape.bytes;
    from.v = begin + (row - each) * shape.bytes;
  }
  return emit_rows(emitter, operation, &shape, &from, AT, TO_K);
}

RONDO_OPERATOR(attention_append, .inputs = {"k_cache", "v_cache", "length", "k", "v"}, .required = 4,
               .updates = 1u << TO_K | 1u << TO_V, .infer = infer_append, .emit = emit_append);

static rondo_status infer_fill(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *qkv = rondo_operation_input(program, operation, FILL_QKV);
  const rondo_shape *cache = rondo_operation_input(program, operation, FILL_K);
  const size_t groups = operation->attributes.sizes[RONDO_ATTENTION_GROUPS];
  size_t size = 0;
  (void)results;
  RONDO_TRY(rondo_require_packed(program, operation, &size));
  RONDO_TRY(rondo_require_input(program, operation, FILL_K, qkv->type, 4));
  RONDO_TRY(rondo_require_same_shape(program, operation, FILL_K, FILL_V));
  RONDO_TRY(require_states(program, operation, FILL_K, FILL_V));
  if (cache->dims[0] == qkv->dims[0] && cache->dims[1] == groups && cache->dims[2] >= qkv->dims[1] &&
      cache->dims[3] == size)
    return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "the caches must be [b, g, s, d] with s not less than t: here g is %zu and d %zu", groups,
                              size);
}

static rondo_status emit_fill(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attention_shape packed = rondo_attention_packed_shape(emitter, operation);
  const rondo_attention_parts from = rondo_attention_parts_of(emitter, &packed, operation->inputs[FILL_QKV]);
  const append_shape shape =
      append_shape_of(rondo_emit_shape(emitter, operation->inputs[FILL_K]), packed.rows, packed.k);
  return emit_rows(emitter, operation, &shape, &from, NO_PLACE, FILL_K);
}

RONDO_OPERATOR(attention_fill, .types = RONDO_FLOATS, .inputs = {"qkv", "k_cache", "v_cache"}, .required = 3,
               .updates = 1u << FILL_K | 1u << FILL_V, .infer = infer_fill, .emit = emit_fill);

/* Calls ------------------------------------------------------------------------------------------------------------ */

/* The operator, then the update of its caches; both or none. */
static rondo_status add_decode(rondo_program *program, const rondo_operator *row, const rondo_value *inputs,
                               const rondo_attributes *attributes, rondo_value *out_value) {
  const uint32_t count = row->required, caches = count - 3;
  const rondo_program_mark mark = rondo_program_get_mark(program);
  uint32_t result = 0;
  RONDO_TRY(rondo_program_apply(program, row, inputs, count, attributes, out_value));
  rondo_status status = rondo_program_resolve(program, *out_value, row->name, "the result", &result);
  if (status == RONDO_OK) {
    const rondo_operation decode = program->operations.items[program->values.items[result].operation];
    const uint32_t *of = decode.inputs;
    const uint32_t appended[] = {of[caches], of[caches + 1], of[caches + 2], of[caches == K_CACHE ? K : QKV], of[V]};
    status =
        rondo_program_add(program, &rondo_operator_attention_append, appended, caches == K_CACHE ? 5 : 4, NULL, NULL);
  }
  if (status == RONDO_OK) return RONDO_OK;
  rondo_program_roll_back(program, mark);
  *out_value = (rondo_value){0};
  return status;
}

rondo_status rondo_op_attention_decode(rondo_program *program, rondo_value q, rondo_value k, rondo_value v,
                                       rondo_value k_cache, rondo_value v_cache, rondo_value length,
                                       const rondo_attention_options *options, rondo_value *out_value) {
  static const char call[] = "attention_decode";
  const rondo_value inputs[] = {q, k, v, k_cache, v_cache, length};
  rondo_attributes attributes;
  size_t size = 0;
  RONDO_TRY(rondo_attention_begin(program, call, q, "q", out_value, &size));
  RONDO_TRY(rondo_attention_attributes(call, size, options, &attributes));
  return add_decode(program, &rondo_operator_attention_decode, inputs, &attributes, out_value);
}

rondo_status rondo_op_attention_decode_packed(rondo_program *program, rondo_value qkv, size_t heads, size_t groups,
                                              rondo_value k_cache, rondo_value v_cache, rondo_value length,
                                              const rondo_attention_options *options, rondo_value *out_value) {
  static const char call[] = "attention_decode_packed";
  const rondo_value inputs[] = {qkv, k_cache, v_cache, length};
  const rondo_packed_heads of = {heads, groups};
  rondo_attributes attributes;
  size_t row = 0;
  RONDO_TRY(rondo_attention_begin(program, call, qkv, "qkv", out_value, &row));
  RONDO_TRY(rondo_packed_attributes(call, row, &of, options, &attributes));
  return add_decode(program, &rondo_operator_attention_decode_packed, inputs, &attributes, out_value);
}

rondo_status rondo_op_attention_fill_packed(rondo_program *program, rondo_value qkv, size_t heads, size_t groups,
                                            rondo_value k_cache, rondo_value v_cache) {
  static const char call[] = "attention_fill";
  const rondo_value values[] = {qkv, k_cache, v_cache};
  const rondo_packed_heads of = {heads, groups};
  rondo_attributes attributes;
  uint32_t inputs[3];
  RONDO_TRY(rondo_require(call, "program", program));
  RONDO_TRY(rondo_program_resolve_inputs(program, &rondo_operator_attention_fill, values, 3, inputs));
  RONDO_TRY(rondo_packed_attributes(call, 1, &of, NULL, &attributes));
  return rondo_program_add(program, &rondo_operator_attention_fill, inputs, 3, &attributes, NULL);
}

/* SPDX-License-Identifier: MIT
 * attention_decode: attention of one token's row of q to the first rows of a cache, and to the token's own row of k and
 * v. The number of rows is a length on the device. attention_append then appends the token's k and v to the caches,
 * after all else in the run; it relies on the check of the length. So every run of a generating program does the same
 * work at the same addresses. attention_decode_packed is the same for packed q, k and v. attention_fill fills caches
 * with many packed rows. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/attention/attention.h"
#include "tensor/operators/common/operator_tools.h"

enum { Q, K, V, K_CACHE, V_CACHE, LENGTH };                  /* inputs of attention_decode */
enum { QKV, PACKED_K_CACHE, PACKED_V_CACHE, PACKED_LENGTH }; /* inputs of attention_decode_packed */
enum { TO_K, TO_V, AT, FROM_K, FROM_V };                     /* of append; without FROM_V, FROM_K is packed */
enum { FILL_QKV, FILL_K, FILL_V, NO_PLACE };                 /* of fill; NO_PLACE is left out: it fills from row 0 on */

/* Attention -------------------------------------------------------------------------------------------------------- */

RONDO_TYPED_KERNEL_OF(attention_decode, rondo_attention_decode_cpu, attention_decode,
                      RONDO_SCALAR(rondo_attention_shape), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS,
                      RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_CHECK_PARAMETERS);

/* Checks the caches and the length, which follow q, k and v or the packed rows: the caches must be [batches, groups,
 * any, size], of the type of input 0. */
static rondo_status require_caches(const rondo_program *program, const rondo_operation *operation, uint32_t caches,
                                   bool has_length, const size_t (*dims)[3], bool *out_fits) {
  const rondo_shape *cache = rondo_operation_input(program, operation, caches);
  const rondo_type type = rondo_operation_input(program, operation, 0)->type;
  RONDO_TRY(rondo_require_input(program, operation, caches, type, 4));
  RONDO_TRY(rondo_require_same_shape(program, operation, caches, caches + 1));
  if (has_length) RONDO_TRY(rondo_require_input(program, operation, caches + 2, RONDO_I32, 0));
  *out_fits = cache->dims[0] == (*dims)[0] && cache->dims[1] == (*dims)[1] && cache->dims[3] == (*dims)[2] &&
              cache->dims[2] <= INT32_MAX;
  return RONDO_OK;
}

static rondo_status infer_decode(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *q = rondo_operation_input(program, operation, Q);
  const rondo_shape *k = rondo_operation_input(program, operation, K);
  bool fits = false;
  RONDO_TRY(rondo_require_attention(program, operation));
  const size_t dims[] = {k->dims[0], k->dims[1], k->dims[3]};
  RONDO_TRY(require_caches(program, operation, K_CACHE, true, &dims, &fits));
  results[0] = *q;
  if (fits && q->dims[2] == 1 && k->dims[2] == 1) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "q must be [b, h, 1, d], k and v [b, g, 1, d], and the caches [b, g, s, d]");
}

/* The caches and the length follow q, k and v, or the packed rows. */
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
  const size_t *sizes = operation->attributes.sizes;
  size_t size = 0;
  bool fits = false;
  RONDO_TRY(rondo_require_packed(program, operation, &size));
  const size_t dims[] = {qkv->dims[0], sizes[RONDO_ATTENTION_GROUPS], size};
  RONDO_TRY(require_caches(program, operation, PACKED_K_CACHE, true, &dims, &fits));
  results[0] = *qkv;
  results[0].dims[2] = sizes[RONDO_ATTENTION_HEADS] * size;
  if (fits && qkv->dims[1] == 1) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "qkv must be [b, 1, (h + 2 g) d], and the caches [b, g, s, d]: here g is %zu and d %zu",
                              sizes[RONDO_ATTENTION_GROUPS], size);
}

/* k, v and the columns are those of the caches. */
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

/* A scalar argument of the kernel. The caches are [heads, columns, size], with the heads of all batches, of elements of
 * `bytes` bytes. `count` rows of each head are copied, with the strides `from`, in batches of `groups` heads. */
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

/* The first row is 0 if it is not given. attention_decode, which may run on another device, reports a wrong one. */
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

RONDO_UNTYPED_KERNEL(attention_append, attention_append, RONDO_GATE_PARAMETERS, RONDO_SCALAR(append_shape), RONDO_READS,
                     RONDO_READS, RONDO_READS, RONDO_UPDATES, RONDO_UPDATES);

static append_shape append_shape_of(const rondo_shape *cache, size_t count, rondo_attention_place from) {
  return (append_shape){.heads = cache->dims[0] * cache->dims[1],
                        .columns = cache->dims[2],
                        .size = cache->dims[3],
                        .bytes = rondo_type_bytes(cache->type),
                        .count = count,
                        .groups = cache->dims[1],
                        .from = from};
}

/* Copies rows of k and v into the caches; input `at` is the first row. */
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

/* In packed rows, the heads of v are last and those of k before them. */
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
  const size_t groups = operation->attributes.sizes[RONDO_ATTENTION_GROUPS];
  size_t size = 0;
  bool fits = false;
  (void)results;
  RONDO_TRY(rondo_require_packed(program, operation, &size));
  const size_t dims[] = {qkv->dims[0], groups, size};
  RONDO_TRY(require_caches(program, operation, FILL_K, false, &dims, &fits));
  RONDO_TRY(require_states(program, operation, FILL_K, FILL_V));
  if (fits && rondo_operation_input(program, operation, FILL_K)->dims[2] >= qkv->dims[1]) return RONDO_OK;
  return rondo_fail_operation(
      program, operation, RONDO_REASON_SHAPE,
      "the caches must be [b, g, s, d] with s at least t and at most 2147483647: here g is %zu and d %zu", groups,
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

/* Adds the operator, then the update of its caches; both or none. */
static rondo_status add_decode(rondo_program *program, const rondo_operator *row, const rondo_value *inputs,
                               const rondo_attributes *attributes, rondo_value *out_value) {
  const uint32_t count = row->required, caches = count - 3;
  assert(caches == K_CACHE || caches == PACKED_K_CACHE);
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
  const rondo_value inputs[] = {q, k, v, k_cache, v_cache, length};
  rondo_attributes attributes;
  RONDO_TRY(rondo_attention_begin(program, "attention_decode", q, "q", NULL, options, out_value, &attributes));
  return add_decode(program, &rondo_operator_attention_decode, inputs, &attributes, out_value);
}

rondo_status rondo_op_attention_decode_packed(rondo_program *program, rondo_value qkv, size_t heads, size_t groups,
                                              rondo_value k_cache, rondo_value v_cache, rondo_value length,
                                              const rondo_attention_options *options, rondo_value *out_value) {
  static const char call[] = "attention_decode_packed";
  const rondo_value inputs[] = {qkv, k_cache, v_cache, length};
  const rondo_packed_heads of = {heads, groups};
  rondo_attributes attributes;
  RONDO_TRY(rondo_attention_begin(program, call, qkv, "qkv", &of, options, out_value, &attributes));
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
  RONDO_TRY(rondo_attention_attributes(call, 1, &of, NULL, &attributes));
  return rondo_program_add(program, &rondo_operator_attention_fill, inputs, 3, &attributes, NULL);
}

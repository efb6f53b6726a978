/* SPDX-License-Identifier: MIT
 * Attention with caches: attention_decode is attention of new rows to those that the caches hold, and to the new rows
 * up to their own. attention_append then appends k and v of the new rows to the caches, after all else in the run.
 * Each is also an operator of its own: without k and v, attention_decode only reads the caches, which attention_append
 * has filled, as cross-attention does. A plan says how many rows there are of both (attention_plan.c), so every run of
 * a generating program does the same work at the same addresses. The caches of a batch are its own, or blocks of a pool
 * that its row of the block table lists (Kwon et al. 2023, PagedAttention). Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/attention/attention_plan.h"
#include "tensor/operators/common/operator_tools.h"

enum {
  Q = RONDO_ATTENTION_Q,
  K = RONDO_ATTENTION_K,
  V = RONDO_ATTENTION_V,
  PLAN = RONDO_ATTENTION_PLAN,
  K_CACHE = RONDO_ATTENTION_K_CACHE,
  V_CACHE = RONDO_ATTENTION_V_CACHE
};
enum { TO_K, TO_V, AT, FROM_K, FROM_V }; /* inputs of append; without FROM_V, FROM_K is packed */

/* Attention -------------------------------------------------------------------------------------------------------- */

static rondo_status require_states(const rondo_program *program, const rondo_operation *operation, uint32_t caches) {
  const uint32_t k = operation->inputs[caches], v = operation->inputs[caches + 1];
  if (program->values.items[k].kind == RONDO_VALUE_STATE && program->values.items[v].kind == RONDO_VALUE_STATE &&
      k != v)
    return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_TYPE, "the caches must be two states");
}

/* Inputs `caches` and the next are two caches of the type of input `like`. Returns the shape of both. */
static rondo_status require_pair(const rondo_program *program, const rondo_operation *operation, uint32_t caches,
                                 uint32_t like, const rondo_shape **out) {
  RONDO_TRY(require_states(program, operation, caches));
  RONDO_TRY(rondo_require_input(program, operation, caches, rondo_operation_input(program, operation, like)->type, 4));
  RONDO_TRY(rondo_require_same_shape(program, operation, caches, caches + 1));
  *out = rondo_operation_input(program, operation, caches);
  return RONDO_OK;
}

/* What the caches hold for each of the batches. The capacity is 0 if they do not fit these. */
static rondo_attention_caches caches_of(const rondo_operation *operation, const rondo_shape *cache,
                                        const rondo_attention_dims *d) {
  const size_t table_blocks = operation->attributes.sizes[RONDO_ATTENTION_TABLE];
  const size_t blocks = table_blocks > 0 ? table_blocks : 1;
  const bool fits = cache->dims[1] == d->groups && cache->dims[3] == d->size &&
                    (table_blocks > 0 || cache->dims[0] == d->batches) && cache->dims[2] <= INT32_MAX / blocks &&
                    cache->dims[0] <= INT32_MAX;
  return (rondo_attention_caches){
      .blocks = cache->dims[0], .block_rows = cache->dims[2], .capacity = fits ? cache->dims[2] * blocks : 0};
}

static const char *shape_of_caches(const rondo_operation *operation) {
  return operation->attributes.sizes[RONDO_ATTENTION_TABLE] > 0 ? "[blocks, g, rows of a block, d]" : "[b, g, s, d]";
}

/* Caches that are only read. g is theirs. */
static rondo_status require_read(const rondo_program *program, const rondo_operation *operation,
                                 rondo_attention_dims *out_dims, rondo_attention_caches *out) {
  const rondo_shape *cache;
  RONDO_TRY(rondo_require_float(program, operation, Q, 4));
  RONDO_TRY(require_pair(program, operation, K_CACHE, Q, &cache));
  const rondo_shape *q = rondo_operation_input(program, operation, Q);
  *out_dims = (rondo_attention_dims){q->dims[0], q->dims[1], cache->dims[1], q->dims[2], 0, q->dims[3]};
  *out = caches_of(operation, cache, out_dims);
  out_dims->columns = out->capacity;
  RONDO_TRY(rondo_require_head(program, operation, out_dims->size));
  if (out->capacity > 0 && q->dims[1] % cache->dims[1] == 0) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "q must be [b, h, t, d] and the caches %s, with h a multiple of g and at most 2147483647 "
                              "rows: here b is %zu, h %zu, g %zu and d %zu",
                              shape_of_caches(operation), q->dims[0], q->dims[1], cache->dims[1], q->dims[3]);
}

rondo_status rondo_require_caches(const rondo_program *program, const rondo_operation *operation,
                                  rondo_attention_dims *out_dims, rondo_attention_caches *out) {
  const rondo_shape *cache;
  rondo_attention_dims d;
  if (operation->inputs[K] == RONDO_NO_VALUE && !operation->attributes.flags[RONDO_ATTENTION_PACKED])
    return require_read(program, operation, out_dims, out);
  RONDO_TRY(rondo_require_attention(program, operation, &d));
  RONDO_TRY(require_pair(program, operation, K_CACHE, Q, &cache));
  *out_dims = d;
  *out = caches_of(operation, cache, &d);
  if (d.columns == d.rows && out->capacity >= d.rows) return RONDO_OK;
  return rondo_fail_operation(
      program, operation, RONDO_REASON_SHAPE,
      "q, k and v must have as many rows, t, and the caches must be %s, with space for t rows and at most 2147483647: "
      "here b is %zu, g %zu, t %zu and d %zu",
      shape_of_caches(operation), d.batches, d.groups, d.rows, d.size);
}

rondo_status rondo_require_appended(const rondo_program *program, const rondo_operation *operation,
                                    rondo_attention_dims *out_dims, rondo_attention_caches *out) {
  const rondo_shape *cache;
  RONDO_TRY(rondo_require_float(program, operation, FROM_K, 4));
  RONDO_TRY(rondo_require_same_shape(program, operation, FROM_K, FROM_V));
  RONDO_TRY(require_pair(program, operation, TO_K, FROM_K, &cache));
  const rondo_shape *k = rondo_operation_input(program, operation, FROM_K);
  *out_dims = (rondo_attention_dims){k->dims[0], k->dims[1], k->dims[1], k->dims[2], k->dims[2], k->dims[3]};
  *out = caches_of(operation, cache, out_dims);
  if (out->capacity >= k->dims[2]) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "k and v must be [b, g, t, d], and the caches %s, with space for t rows and at most "
                              "2147483647: here b is %zu, g %zu, t %zu and d %zu",
                              shape_of_caches(operation), k->dims[0], k->dims[1], k->dims[2], k->dims[3]);
}

static rondo_status infer_decode(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  rondo_attention_dims dims;
  rondo_attention_caches caches;
  RONDO_TRY(rondo_require_caches(program, operation, &dims, &caches));
  RONDO_TRY(rondo_require_mask(program, operation, &dims, caches.capacity));
  results[0] = *rondo_operation_input(program, operation, Q);
  if (operation->attributes.flags[RONDO_ATTENTION_PACKED]) results[0].dims[2] = dims.heads * dims.size;
  return RONDO_OK;
}

static void set_caches(const rondo_shape *cache, rondo_attention_shape *shape) {
  const size_t blocks = shape->table_blocks > 0 ? shape->table_blocks : 1;
  shape->cache = rondo_attention_stacked(cache->dims[1], cache->dims[2], cache->dims[3]);
  shape->block_rows = cache->dims[2];
  shape->columns = cache->dims[2] * blocks;
}

static rondo_status emit_decode(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_program *program = rondo_emit_program(emitter);
  rondo_attention_shape shape = rondo_attention_shape_of(program, operation);
  set_caches(rondo_emit_shape(emitter, operation->inputs[K_CACHE]), &shape);
  rondo_attention_set_mask(program, operation, &shape); /* over the columns of the caches */
  return rondo_emit_attention(emitter, operation, &shape);
}

RONDO_OPERATOR(attention_decode, .types = RONDO_FLOATS, .inputs = {"q", "k", "v", "mask", "plan", "k_cache", "v_cache"},
               .required = 1, .result_count = 1, .infer = infer_decode, .emit = emit_decode);

/* Caches ----------------------------------------------------------------------------------------------------------- */

/* A scalar argument of the kernel. Elements have `bytes` bytes. A run appends at most `rows` rows to each batch. */
typedef struct append_shape {
  size_t batches, groups, rows, size, bytes;
  size_t block_rows, table_blocks;
  rondo_attention_place from, cache;
} append_shape;

/* A plan says where a batch's rows go. */
static void append_row(const append_shape *shape, const int32_t *plan, const char *from, char *to, size_t i) {
  const size_t row = i % shape->rows, group = i / shape->rows % shape->groups, batch = i / shape->rows / shape->groups;
  const size_t count = (size_t)plan[shape->batches + batch], at = (size_t)plan[batch] + row;
  if (row >= count) return;
  const int32_t *table = plan + 2 * shape->batches + batch * shape->table_blocks;
  const size_t block = shape->table_blocks > 0 ? (size_t)table[at / shape->block_rows] : batch;
  const size_t begin = batch * shape->from.batch + group * shape->from.head + row * shape->from.row;
  const size_t end = block * shape->cache.batch + group * shape->cache.head + at % shape->block_rows * shape->cache.row;
  memcpy(to + end * shape->bytes, from + begin * shape->bytes, shape->size * shape->bytes);
}

static void attention_append_cpu(rondo_blocks blocks, void *const *args) {
  const append_shape *shape = args[3];
  const char *from[] = {RONDO_ARG(const char *, 4), RONDO_ARG(const char *, 5)};
  const int32_t *plan = RONDO_ARG(const int32_t *, 6);
  char *to[] = {RONDO_ARG(char *, 7), RONDO_ARG(char *, 8)};
  const size_t each = shape->batches * shape->groups * shape->rows;
  if (!rondo_may_update(blocks, args)) return;
  RONDO_EACH_ITEM(i, blocks, 2 * each) append_row(shape, plan, from[i / each], to[i / each], i % each);
}

RONDO_UNTYPED_KERNEL(attention_append, attention_append, RONDO_GATE_PARAMETERS, RONDO_SCALAR(append_shape), RONDO_READS,
                     RONDO_READS, RONDO_READS, RONDO_UPDATES, RONDO_UPDATES);

static rondo_status infer_append(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  (void)program, (void)operation, (void)results; /* checked with what was given (attention_call.c) */
  return RONDO_OK;
}

/* In packed rows, the heads of v are last and those of k before them. */
static rondo_status emit_append(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *cache = rondo_emit_shape(emitter, operation->inputs[TO_K]);
  const rondo_shape *k = rondo_emit_shape(emitter, operation->inputs[FROM_K]);
  const bool is_packed = operation->inputs[FROM_V] == RONDO_NO_VALUE;
  const size_t groups = cache->dims[1], rows = k->dims[is_packed ? 1 : 2], size = cache->dims[3];
  const append_shape shape = {
      .batches = k->dims[0],
      .groups = groups,
      .rows = rows,
      .size = size,
      .bytes = rondo_type_bytes(cache->type),
      .block_rows = cache->dims[2],
      .table_blocks = operation->attributes.sizes[RONDO_ATTENTION_TABLE],
      .from = is_packed ? rondo_attention_abreast(rows, k->dims[2], size) : rondo_attention_stacked(groups, rows, size),
      .cache = rondo_attention_stacked(groups, cache->dims[2], size)};
  const rondo_grain grain = {4096 / size + 1, RONDO_CUDA_THREADS / 32};
  const char *from[] = {rondo_emit_address(emitter, operation->inputs[FROM_K]),
                        rondo_emit_address(emitter, operation->inputs[FROM_V])};
  if (is_packed) {
    const char *begin = from[0];
    from[0] = begin + (k->dims[2] - 2 * groups * size) * shape.bytes;
    from[1] = begin + (k->dims[2] - groups * size) * shape.bytes;
  }
  return rondo_emit_operands(
      emitter, operation, &attention_append_code, rondo_emit_grid(emitter, 2 * shape.batches * groups * rows, grain),
      RONDO_OPERANDS(RONDO_GATE, RONDO_OBJECT(shape), RONDO_OBJECT(from[0]), RONDO_OBJECT(from[1]), RONDO_INPUT(AT),
                     RONDO_INPUT(TO_K), RONDO_INPUT(TO_V)));
}

RONDO_OPERATOR(attention_append, .inputs = {"k_cache", "v_cache", "plan", "k", "v"}, .required = 4,
               .updates = 1u << TO_K | 1u << TO_V, .infer = infer_append, .emit = emit_append);

/* SPDX-License-Identifier: MIT
 * The public functions of attention: reads the options, and adds the operators that they need: the plan of lengths,
 * block tables and slopes, attention or attention_decode, and attention_append; all or none. Without k and v, caches
 * are only read; without q, they are only appended to. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <math.h>

#include "tensor/operators/attention/attention_plan.h"
#include "tensor/operators/common/operator_tools.h"

enum { KEYS_END = RONDO_ATTENTION_V + 1, INPUTS = RONDO_ATTENTION_V_CACHE + 1 };

/* A call: its operation, whose plan is added last, and the values that the plan is made from. */
typedef struct attention_call {
  rondo_operation operation; /* the row, inputs and attributes */
  rondo_attention_rows rows;
} attention_call;

/* Options ---------------------------------------------------------------------------------------------------------- */

static rondo_status refuse(const char *call, rondo_reason reason, const char *what) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, reason, "%s: %s", call, what);
}

static rondo_status check_options(const char *call, const rondo_attention_options *o) {
  const bool has_caches = o->k_cache.id != 0 || o->v_cache.id != 0;
  if (!(o->scale >= 0 && o->scale < INFINITY))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: scale %g must be finite and above 0, or 0 for the default", call, (double)o->scale);
  if (o->window > INT32_MAX)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: a window of %zu rows; the maximum is %d",
                      call, o->window, INT32_MAX);
  if (has_caches && (o->k_cache.id == 0 || o->v_cache.id == 0))
    return refuse(call, RONDO_REASON_BAD_OPTIONS, "k_cache and v_cache must be given together");
  if (has_caches) return RONDO_OK;
  if (o->new_rows.id != 0)
    return refuse(call, RONDO_REASON_BAD_OPTIONS,
                  "new_rows counts rows after those of caches: set k_cache and v_cache");
  if (o->block_table.id != 0)
    return refuse(call, RONDO_REASON_BAD_OPTIONS, "block_table lists blocks of caches: set k_cache and v_cache");
  return RONDO_OK;
}

/* Whether a call gives k and v. */
static bool has_keys(const rondo_operation *operation) {
  return operation->attributes.flags[RONDO_ATTENTION_PACKED] || operation->inputs[RONDO_ATTENTION_K] != RONDO_NO_VALUE;
}

/* Without k and v, the rows of q have no positions among those of the caches. */
static rondo_status check_keys(const char *call, const rondo_attention_options *o, const rondo_operation *operation) {
  if (has_keys(operation)) return RONDO_OK;
  if (o->k_cache.id == 0)
    return refuse(call, RONDO_REASON_BAD_OPTIONS, "k and v are no values: give them, or caches to read (k_cache)");
  if (!o->causal && o->window == 0 && o->alibi_slopes.id == 0) return RONDO_OK;
  return refuse(call, RONDO_REASON_BAD_OPTIONS,
                "causal, window and alibi_slopes need k and v, after which rows of q have positions: leave them out");
}

/* The index of a value of the options; RONDO_NO_VALUE if it is not given. */
static rondo_status resolve(const rondo_program *program, const char *call, rondo_value value, const char *what,
                            uint32_t *out) {
  *out = RONDO_NO_VALUE;
  return value.id == 0 ? RONDO_OK : rondo_program_resolve(program, value, call, what, out);
}

static rondo_status resolve_options(const rondo_program *program, const char *call, const rondo_attention_options *o,
                                    attention_call *of) {
  uint32_t *inputs = of->operation.inputs;
  RONDO_TRY(resolve(program, call, o->mask, "mask", &inputs[RONDO_ATTENTION_MASK]));
  RONDO_TRY(resolve(program, call, o->k_cache, "k_cache", &inputs[RONDO_ATTENTION_K_CACHE]));
  RONDO_TRY(resolve(program, call, o->v_cache, "v_cache", &inputs[RONDO_ATTENTION_V_CACHE]));
  RONDO_TRY(resolve(program, call, o->lengths, "lengths", &of->rows.lengths));
  RONDO_TRY(resolve(program, call, o->new_rows, "new_rows", &of->rows.counts));
  RONDO_TRY(resolve(program, call, o->block_table, "block_table", &of->rows.table));
  return resolve(program, call, o->alibi_slopes, "alibi_slopes", &of->rows.slopes);
}

static rondo_status set_attributes(const rondo_program *program, const rondo_attention_options *o, attention_call *of) {
  rondo_attributes *attributes = &of->operation.attributes;
  attributes->size_count = RONDO_ATTENTION_SIZES;
  attributes->sizes[RONDO_ATTENTION_WINDOW] = o->window;
  attributes->flags[RONDO_ATTENTION_CAUSAL] = o->causal || of->rows.appends;
  attributes->flags[RONDO_ATTENTION_SLOPES] = of->rows.slopes != RONDO_NO_VALUE;
  if (of->rows.table == RONDO_NO_VALUE) return RONDO_OK;
  const rondo_shape *table = rondo_program_shape(program, of->rows.table);
  attributes->sizes[RONDO_ATTENTION_TABLE] = rondo_shape_last(table);
  return RONDO_OK;
}

/* Adding ----------------------------------------------------------------------------------------------------------- */

/* attention_append with the inputs of a call. */
static rondo_operation append_of(const rondo_operation *call) {
  const bool is_packed = call->attributes.flags[RONDO_ATTENTION_PACKED];
  const uint32_t *of = call->inputs;
  return (rondo_operation){.row = &rondo_operator_attention_append,
                           .inputs = {of[RONDO_ATTENTION_K_CACHE], of[RONDO_ATTENTION_V_CACHE],
                                      of[RONDO_ATTENTION_PLAN], of[is_packed ? RONDO_ATTENTION_Q : RONDO_ATTENTION_K],
                                      of[RONDO_ATTENTION_V], RONDO_NO_VALUE, RONDO_NO_VALUE, RONDO_NO_VALUE},
                           .attributes = call->attributes};
}

/* The inputs of attention_append. */
enum { K_CACHE, V_CACHE, APPEND_PLAN, ROWS };

/* What is written to a cache: k or v, or a part of packed rows. */
typedef struct append_source {
  uint32_t value, part;
} append_source;

static append_source source_of(const rondo_operation *append, uint32_t cache) {
  if (append->attributes.flags[RONDO_ATTENTION_PACKED]) return (append_source){append->inputs[ROWS], 1 + cache};
  return (append_source){append->inputs[ROWS + cache], 0};
}

/* Whether two operations write different rows to the same place of a cache. */
static bool overwrites(const rondo_program *program, const rondo_operation *append, const rondo_operation *earlier) {
  if (!rondo_attention_plans_same_rows(program, append->inputs[APPEND_PLAN], earlier->inputs[APPEND_PLAN]))
    return false;
  for (uint32_t i = K_CACHE; i <= V_CACHE; i++)
    for (uint32_t k = K_CACHE; k <= V_CACHE; k++) {
      const append_source one = source_of(append, i), two = source_of(earlier, k);
      if (append->inputs[i] == earlier->inputs[k] && (one.value != two.value || one.part != two.part)) return true;
    }
  return false;
}

/* Caches that two layers share would hold the rows of one of them, and the other would read these. */
static rondo_status check_overwritten(const rondo_program *program, const rondo_operation *append) {
  for (size_t i = 0; i < program->operations.count; i++) {
    const rondo_operation *earlier = &program->operations.items[i];
    if (earlier->row != &rondo_operator_attention_append || !overwrites(program, append, earlier)) continue;
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "attention: an earlier attention of %s writes other rows to the same place of the caches ('%s', "
                      "'%s'): give each layer caches of its own",
                      program->label, program->values.items[append->inputs[K_CACHE]].name,
                      program->values.items[append->inputs[V_CACHE]].name);
  }
  return RONDO_OK;
}

static rondo_status add_append(rondo_program *program, const rondo_operation *call) {
  const rondo_operation append = append_of(call);
  RONDO_TRY(check_overwritten(program, &append));
  return rondo_program_add(program, append.row, append.inputs, rondo_operator_input_count(append.row),
                           &append.attributes, NULL);
}

static rondo_status add_all(rondo_program *program, attention_call *of, uint32_t *out_result) {
  uint32_t results[RONDO_MAX_RESULTS];
  rondo_operation *operation = &of->operation;
  const uint32_t count = of->rows.has_caches ? INPUTS : RONDO_ATTENTION_PLAN + 1;
  RONDO_TRY(rondo_attention_add_plan(program, &of->rows, &operation->inputs[RONDO_ATTENTION_PLAN]));
  RONDO_TRY(rondo_program_add(program, operation->row, operation->inputs, count, &operation->attributes, results));
  *out_result = results[0];
  return of->rows.appends ? add_append(program, operation) : RONDO_OK;
}

/* The shapes of the operation are checked first, because a plan is made from them. */
static rondo_status check_shapes(const rondo_program *program, attention_call *of) {
  if (of->rows.has_caches) return rondo_require_caches(program, &of->operation, &of->rows.dims, &of->rows.caches);
  return rondo_require_attention(program, &of->operation, &of->rows.dims);
}

/* `of` has the inputs q, k and v, and the attributes of packed rows. */
static rondo_status add_attention(rondo_program *program, const char *call, const rondo_attention_options *options,
                                  attention_call *of, rondo_value *out_value) {
  rondo_attention_options given;
  rondo_operation *operation = &of->operation;
  uint32_t result = 0;
  RONDO_TRY(rondo_versioned_read("rondo_attention_options", options, &given, sizeof given));
  RONDO_TRY(check_options(call, &given));
  RONDO_TRY(check_keys(call, &given, operation));
  RONDO_TRY(resolve_options(program, call, &given, of));
  of->rows.has_caches = given.k_cache.id != 0;
  of->rows.appends = of->rows.has_caches && has_keys(operation);
  operation->row = of->rows.has_caches ? &rondo_operator_attention_decode : &rondo_operator_attention;
  RONDO_TRY(set_attributes(program, &given, of));
  RONDO_TRY(check_shapes(program, of));
  operation->attributes.numbers[RONDO_ATTENTION_SCALE] =
      given.scale == 0 ? 1.0f / sqrtf((float)of->rows.dims.size) : given.scale;
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_all(program, of, &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}

static attention_call new_call(void) {
  attention_call of = {.rows = {.has_caches = false}};
  for (uint32_t i = 0; i < RONDO_MAX_OPERANDS; i++) of.operation.inputs[i] = RONDO_NO_VALUE;
  return of;
}

rondo_status rondo_op_attention(rondo_program *program, rondo_value q, rondo_value k, rondo_value v,
                                const rondo_attention_options *options, rondo_value *out_value) {
  static const char *const names[] = {"q", "k", "v"};
  static const char call[] = "attention";
  const rondo_value values[] = {q, k, v};
  attention_call of = new_call();
  const bool reads = k.id == 0 && v.id == 0; /* caches only */
  RONDO_TRY(rondo_program_begin(program, call, out_value));
  for (uint32_t i = 0; i < (reads ? RONDO_ATTENTION_K : KEYS_END); i++)
    RONDO_TRY(rondo_program_resolve(program, values[i], call, names[i], &of.operation.inputs[i]));
  return add_attention(program, call, options, &of, out_value);
}

rondo_status rondo_op_attention_packed(rondo_program *program, rondo_value qkv, size_t heads, size_t groups,
                                       const rondo_attention_options *options, rondo_value *out_value) {
  static const char call[] = "attention_packed";
  attention_call of = new_call();
  RONDO_TRY(rondo_program_begin_of(program, call, qkv, "qkv", out_value, &of.operation.inputs[RONDO_ATTENTION_Q]));
  of.operation.attributes.flags[RONDO_ATTENTION_PACKED] = true;
  of.operation.attributes.sizes[RONDO_ATTENTION_HEADS] = heads;
  of.operation.attributes.sizes[RONDO_ATTENTION_GROUPS] = groups;
  return add_attention(program, call, options, &of, out_value);
}

/* Appending alone -------------------------------------------------------------------------------------------------- */

static rondo_status check_append(const char *call, const rondo_attention_options *o) {
  RONDO_TRY(check_options(call, o));
  if (o->k_cache.id == 0) return refuse(call, RONDO_REASON_BAD_OPTIONS, "there are no caches: set k_cache and v_cache");
  if (!o->causal && o->window == 0 && o->scale == 0 && o->mask.id == 0 && o->alibi_slopes.id == 0) return RONDO_OK;
  return refuse(call, RONDO_REASON_BAD_OPTIONS,
                "nothing attends: set k_cache, v_cache, lengths, new_rows and block_table only");
}

static rondo_status add_rows(rondo_program *program, attention_call *of) {
  RONDO_TRY(rondo_attention_add_plan(program, &of->rows, &of->operation.inputs[RONDO_ATTENTION_PLAN]));
  return add_append(program, &of->operation);
}

rondo_status rondo_op_attention_append(rondo_program *program, rondo_value k, rondo_value v,
                                       const rondo_attention_options *options) {
  static const char call[] = "attention_append";
  rondo_attention_options given;
  attention_call of = new_call();
  rondo_operation *operation = &of.operation;
  RONDO_TRY(rondo_require(call, "program", program));
  RONDO_TRY(rondo_program_resolve(program, k, call, "k", &operation->inputs[RONDO_ATTENTION_K]));
  RONDO_TRY(rondo_program_resolve(program, v, call, "v", &operation->inputs[RONDO_ATTENTION_V]));
  RONDO_TRY(rondo_versioned_read("rondo_attention_options", options, &given, sizeof given));
  RONDO_TRY(check_append(call, &given));
  RONDO_TRY(resolve_options(program, call, &given, &of));
  of.rows.has_caches = of.rows.appends = true;
  RONDO_TRY(set_attributes(program, &given, &of));
  const rondo_operation append = append_of(operation);
  RONDO_TRY(rondo_require_appended(program, &append, &of.rows.dims, &of.rows.caches));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_rows(program, &of);
  if (status != RONDO_OK) rondo_program_roll_back(program, mark);
  return status;
}

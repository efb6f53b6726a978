/* SPDX-License-Identifier: MIT
 * unique: the different elements of a value, ascending, how many there are, where each is first, how often it is there,
 * and which one each element is. topk sorts the elements, equal ones in their order; an element that differs from the
 * one before begins a group. As for non_zero, results have room for a bound of groups, and zeros after the count.
 * Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/common/composition.h"

static const char call[] = "unique";

typedef struct unique_call {
  rondo_value value;
  rondo_shape shape; /* of the value */
  size_t elements, bound;
} unique_call;

/* The sorted elements, [elements] each. */
typedef struct unique_groups {
  rondo_value sorted, order; /* the elements, and where they come from, I64 */
  rondo_value begins;        /* BOOL: the element is the first of its group */
  rondo_value group;         /* I64 */
} unique_groups;

/* topk has no BOOL. */
static rondo_status add_sorted(rondo_program *program, const unique_call *of, unique_groups *out) {
  rondo_value flat;
  RONDO_TRY(rondo_op_reshape(program, of->value, &of->elements, 1, &flat));
  if (of->shape.type == RONDO_BOOL) RONDO_TRY(rondo_op_cast(program, flat, RONDO_U8, &flat));
  RONDO_TRY(rondo_op_topk(program, flat, of->elements, 0, true, &out->sorted, &out->order));
  return rondo_op_cast(program, out->order, RONDO_I64, &out->order);
}

static rondo_status add_begins(rondo_program *program, const unique_call *of, unique_groups *out) {
  const size_t one = 1, zero = 0, rest = of->elements - 1;
  rondo_value parts[2], before;
  RONDO_TRY(rondo_op_full(program, RONDO_BOOL, &one, 1, 1, &parts[0]));
  if (rest == 0) {
    out->begins = parts[0];
    return RONDO_OK;
  }
  RONDO_TRY(rondo_op_slice(program, out->sorted, &zero, &rest, NULL, &before));
  RONDO_TRY(rondo_op_slice(program, out->sorted, &one, &rest, NULL, &parts[1]));
  RONDO_TRY(rondo_op_not_equal(program, parts[1], before, &parts[1]));
  return rondo_op_concat(program, parts, 2, 0, &out->begins);
}

static rondo_status add_groups(rondo_program *program, const unique_call *of, unique_groups *out) {
  rondo_value one;
  RONDO_TRY(add_sorted(program, of, out));
  RONDO_TRY(add_begins(program, of, out));
  RONDO_TRY(rondo_compose_number(program, RONDO_I64, 1, &one));
  RONDO_TRY(rondo_op_cast(program, out->begins, RONDO_I64, &out->group));
  RONDO_TRY(rondo_op_cumsum(program, out->group, 0, false, false, &out->group));
  return rondo_op_sub(program, out->group, one, &out->group);
}

/* What `from` has at the first elements of the groups, and zeros after the last group. */
static rondo_status add_selected(rondo_program *program, rondo_value from, rondo_value places, rondo_value is_there,
                                 rondo_value *out_value) {
  rondo_value zero;
  RONDO_TRY(rondo_compose_number(program, rondo_shape_at(program, from).type, 0, &zero));
  RONDO_TRY(rondo_op_index_select(program, from, places, 0, out_value));
  return rondo_op_select(program, is_there, *out_value, zero, out_value);
}

static rondo_status add_counts(rondo_program *program, const unique_call *of, const unique_groups *groups,
                               rondo_value *out_value) {
  const size_t zero = 0;
  rondo_value ones, sums;
  RONDO_TRY(rondo_op_full(program, RONDO_I64, &of->elements, 1, 1, &ones));
  RONDO_TRY(rondo_op_full(program, RONDO_I64, &of->elements, 1, 0, &sums));
  RONDO_TRY(rondo_op_scatter_add(program, sums, 0, groups->group, ones, &sums));
  return rondo_op_slice(program, sums, &zero, &of->bound, NULL, out_value);
}

static rondo_status add_inverse(rondo_program *program, const unique_call *of, const unique_groups *groups,
                                rondo_value *out_value) {
  RONDO_TRY(rondo_op_scatter(program, groups->group, 0, groups->order, groups->group, out_value));
  return rondo_compose_reshape(program, *out_value, &of->shape, out_value);
}

static rondo_status add_unique(rondo_program *program, const unique_call *of, rondo_unique *made) {
  unique_groups groups;
  rondo_value places, positions, is_there;
  RONDO_TRY(add_groups(program, of, &groups));
  RONDO_TRY(rondo_op_non_zero(program, groups.begins, of->bound, &places, &made->count));
  RONDO_TRY(rondo_op_reshape(program, places, &of->bound, 1, &places));
  RONDO_TRY(rondo_compose_positions(program, of->bound, 0, 0, 1, &positions));
  RONDO_TRY(rondo_op_less(program, positions, made->count, &is_there));
  RONDO_TRY(add_selected(program, groups.sorted, places, is_there, &made->values));
  if (of->shape.type == RONDO_BOOL) RONDO_TRY(rondo_op_cast(program, made->values, RONDO_BOOL, &made->values));
  RONDO_TRY(add_selected(program, groups.order, places, is_there, &made->first));
  RONDO_TRY(add_counts(program, of, &groups, &made->counts));
  return add_inverse(program, of, &groups, &made->inverse);
}

static rondo_status check(const rondo_program *program, unique_call *of) {
  char text[RONDO_SHAPE_TEXT];
  RONDO_TRY(rondo_given_shape(program, of->value, call, "value", &of->shape));
  of->elements = rondo_shape_elements(&of->shape);
  if ((RONDO_TYPE_BIT(of->shape.type) & RONDO_ALL_TYPES) == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "%s: the value is %s: cast it to a type of numbers",
                      call, rondo_type_name(of->shape.type));
  if (of->bound > of->elements || of->elements > INT32_MAX)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "%s: the bound is %zu, but value %s has %zu elements: use 0 for as many, of at most 2^31 - 1",
                      call, of->bound, rondo_shape_text(text, &of->shape), of->elements);
  if (of->bound == 0) of->bound = of->elements;
  return RONDO_OK;
}

rondo_status rondo_op_unique(rondo_program *program, rondo_value value, size_t bound, rondo_unique *out_unique) {
  unique_call of = {.value = value, .bound = bound};
  rondo_unique made = {.values = {0}};
  rondo_value values;
  RONDO_TRY(rondo_require(call, "out_unique", out_unique));
  *out_unique = (rondo_unique){.values = {0}};
  RONDO_TRY(rondo_program_begin(program, call, &values));
  RONDO_TRY(check(program, &of));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_unique(program, &of, &made);
  RONDO_TRY(rondo_compose_end(program, call, mark, status, made.values, &values));
  *out_unique = made;
  return RONDO_OK;
}

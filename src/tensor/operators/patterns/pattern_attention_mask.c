/* SPDX-License-Identifier: MIT
 * The mask of attention on CUDA as cuDNN reads it: numbers of q's type in a row for each row of q. Each attention would
 * make these rows of a mask of another form (attention_bias.h). As a value of the program they are made once, for all
 * layers that have the same mask. Threads: any.
 */
#include <math.h>

#include "tensor/operators/attention/attention.h"
#include "tensor/operators/attention/attention_bias.h"
#include "tensor/operators/patterns/pattern_finder.h"
#include "tensor/vendor/compute_libraries.h"

enum { MASK = RONDO_ATTENTION_MASK, VALUES = RONDO_ATTENTION_PLAN + 1 };
enum { MASK_DIMS = 4 };

/* Whether the library computes such attention, for which the mask is copied. Rows of other sizes need padding, and a
 * single row of q has no rows that a mask of the program could have. */
static bool is_copied(const rondo_attention_shape *shape, rondo_type type) {
  rondo_attention_bias bias;
  if (shape->rows == 1) return false;
  if ((type != RONDO_F16 && type != RONDO_BF16) || shape->columns % RONDO_ATTENTION_BIAS_UNIT != 0) return false;
  if (shape->mask_kind != RONDO_MASK_BOOLEAN && shape->mask_kind != RONDO_MASK_TYPED) return false;
  return rondo_attention_bias_plan(shape, type, &bias) && bias.is_copied;
}

static bool find_mask(const rondo_pattern_search *search, rondo_pattern_match *match) {
  const rondo_pattern_finder f = {search, match};
  const rondo_operation *root = rondo_find_root(&f);
  if (!search->target.is_cuda || search->target.own_kernels || root->row != &rondo_operator_attention) return false;
  if (root->inputs[RONDO_ATTENTION_PLAN] != RONDO_NO_VALUE || !rondo_library_find(&rondo_cudnn)) return false;
  const rondo_attention_shape shape = rondo_attention_shape_of(search->program, root);
  if (!is_copied(&shape, rondo_find_shape(&f, root->inputs[RONDO_ATTENTION_Q])->type)) return false;
  for (uint32_t i = 0; i < VALUES; i++) match->values[i] = root->inputs[i];
  match->attributes = root->attributes;
  match->sizes[0] = shape.rows;
  match->sizes[1] = shape.columns;
  return true;
}

/* The mask with a row for each row of q, whatever its rank. */
static rondo_status expand_rows(rondo_program *program, const rondo_pattern_match *match, rondo_value *inout) {
  const rondo_shape given = *rondo_program_shape(program, match->values[MASK]);
  size_t dims[MASK_DIMS] = {1, 1, 1, 1};
  for (uint32_t i = 0; i < given.rank; i++) dims[MASK_DIMS - given.rank + i] = given.dims[i];
  RONDO_TRY(rondo_op_reshape(program, *inout, dims, MASK_DIMS, inout));
  dims[2] = match->sizes[0];
  dims[3] = match->sizes[1];
  return rondo_op_expand(program, *inout, dims, MASK_DIMS, inout);
}

static rondo_status add_attention(rondo_program *program, const rondo_pattern_match *match, rondo_value *out) {
  const rondo_type type = rondo_program_shape(program, match->values[RONDO_ATTENTION_Q])->type;
  rondo_value mask = rondo_program_tag(program, match->values[MASK]), zero, hidden;
  uint32_t values[VALUES], results[RONDO_MAX_RESULTS];
  if (rondo_program_shape(program, match->values[MASK])->type == RONDO_BOOL) {
    RONDO_TRY(rondo_op_full(program, type, NULL, 0, 0, &zero));
    RONDO_TRY(rondo_op_full(program, type, NULL, 0, -INFINITY, &hidden));
    RONDO_TRY(rondo_op_select(program, mask, zero, hidden, &mask));
  }
  RONDO_TRY(expand_rows(program, match, &mask));
  for (uint32_t i = 0; i < VALUES; i++) values[i] = match->values[i];
  RONDO_TRY(rondo_program_resolve(program, mask, "attention", "mask", &values[MASK]));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_attention, values, VALUES, &match->attributes, results));
  *out = rondo_program_tag(program, results[0]);
  return RONDO_OK;
}

const rondo_pattern rondo_pattern_attention_mask = {
    .name = "attention_mask", .find = find_mask, .replace = add_attention};

/* SPDX-License-Identifier: MIT
 * The layout of attention: products compute q, k and v as rows of all heads, [b, t, h, d], and read the result so. The
 * operator reads and writes this layout as well as [b, h, t, d], so the permutes between them are left out. k and v
 * have one layout. Threads: any.
 */
#include "tensor/operators/attention/attention.h"
#include "tensor/operators/patterns/pattern_finder.h"

/* The permute that exchanges heads and rows; NULL: something else makes the value. */
static const rondo_operation *find_exchange(const rondo_pattern_finder *f, uint32_t value) {
  const rondo_operation *permute = rondo_find_made_by(f, value, &rondo_operator_permute);
  const size_t *order = permute == NULL ? NULL : permute->attributes.sizes;
  const bool is_exchange = permute != NULL && rondo_find_shape(f, value)->rank == 4 && order[0] == 0 && order[1] == 2 &&
                           order[2] == 1 && order[3] == 3;
  return is_exchange ? permute : NULL;
}

/* An attention whose result is read in the other layout, or the root itself. */
static const rondo_operation *take_attention(const rondo_pattern_finder *f) {
  const rondo_operation *root = rondo_find_root(f), *permute = find_exchange(f, root->results[0]);
  const rondo_operation *attention = permute == NULL ? root : rondo_find_maker(f, permute->inputs[0]);
  if (attention == NULL || attention->row != &rondo_operator_attention) return NULL;
  if (attention->attributes.flags[RONDO_ATTENTION_PACKED]) return NULL;
  if (permute != NULL) rondo_take_operation(f, attention);
  return attention;
}

static bool find_layout(const rondo_pattern_search *search, rondo_pattern_match *match) {
  const rondo_pattern_finder f = {search, match};
  const rondo_operation *attention = take_attention(&f);
  if (attention == NULL) return false;
  match->attributes = attention->attributes;
  size_t *layout = &match->attributes.sizes[RONDO_ATTENTION_LAYOUT];
  if (attention != rondo_find_root(&f)) *layout ^= RONDO_ATTENTION_ROWS_OF_Y;
  for (uint32_t i = RONDO_ATTENTION_Q; i <= RONDO_ATTENTION_PLAN; i++) match->values[i] = attention->inputs[i];
  const rondo_operation *q = find_exchange(&f, attention->inputs[RONDO_ATTENTION_Q]);
  const rondo_operation *k = find_exchange(&f, attention->inputs[RONDO_ATTENTION_K]);
  const rondo_operation *v = find_exchange(&f, attention->inputs[RONDO_ATTENTION_V]);
  if (q != NULL && (*layout & RONDO_ATTENTION_ROWS_OF_Q) == 0) {
    match->values[RONDO_ATTENTION_Q] = q->inputs[0];
    *layout |= RONDO_ATTENTION_ROWS_OF_Q;
  }
  if (k != NULL && v != NULL && (*layout & RONDO_ATTENTION_ROWS_OF_K) == 0) {
    match->values[RONDO_ATTENTION_K] = k->inputs[0];
    match->values[RONDO_ATTENTION_V] = v->inputs[0];
    *layout |= RONDO_ATTENTION_ROWS_OF_K;
  }
  return *layout != attention->attributes.sizes[RONDO_ATTENTION_LAYOUT];
}

static rondo_status add_attention(rondo_program *program, const rondo_pattern_match *match, rondo_value *out) {
  uint32_t results[RONDO_MAX_RESULTS];
  RONDO_TRY(rondo_program_add(program, &rondo_operator_attention, match->values, RONDO_ATTENTION_PLAN + 1,
                              &match->attributes, results));
  *out = rondo_program_tag(program, results[0]);
  return RONDO_OK;
}

const rondo_pattern rondo_pattern_attention_layout = {
    .name = "attention_layout", .find = find_layout, .replace = add_attention};

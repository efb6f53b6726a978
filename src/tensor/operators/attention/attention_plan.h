/* SPDX-License-Identifier: MIT
 * What a public call of attention needs beside the operator itself: the plan (attention_plan.c), and what caches hold
 * (attention_cache.c). Threads: as tensor/program/operator.h says.
 */
#ifndef RONDO_TENSOR_OPERATORS_ATTENTION_ATTENTION_PLAN_H
#define RONDO_TENSOR_OPERATORS_ATTENTION_ATTENTION_PLAN_H

#include "tensor/operators/attention/attention.h"

typedef struct rondo_attention_caches {
  size_t blocks, block_rows; /* blocks of the caches, and rows of a block */
  size_t capacity;           /* how many rows the blocks of one batch hold */
} rondo_attention_caches;
/* SHAPE or TYPE unless the inputs of attention_decode match. Without k and v, the columns are those of the caches. */
RONDO_MUST_USE rondo_status rondo_require_caches(const rondo_program *program, const rondo_operation *operation,
                                                 rondo_attention_dims *out_dims, rondo_attention_caches *out);
/* The same for the inputs of attention_append: the dimensions of q are those of k. */
RONDO_MUST_USE rondo_status rondo_require_appended(const rondo_program *program, const rondo_operation *operation,
                                                   rondo_attention_dims *out_dims, rondo_attention_caches *out);

/* What a plan is made from (attention_plan.c); RONDO_NO_VALUE for what a call does not give. */
typedef struct rondo_attention_rows {
  uint32_t lengths, counts, table, slopes;
  rondo_attention_dims dims; /* columns: those of the caches if there are any */
  rondo_attention_caches caches;
  bool has_caches;
  bool appends; /* there are new rows after those in the caches */
} rondo_attention_rows;
/* Returns RONDO_NO_VALUE if no plan is needed. */
RONDO_MUST_USE rondo_status rondo_attention_add_plan(rondo_program *program, const rondo_attention_rows *rows,
                                                     uint32_t *out_plan);
/* Whether two plans take lengths, counts of new rows and the block table from the same values. */
bool rondo_attention_plans_same_rows(const rondo_program *program, uint32_t plan, uint32_t other);

#endif

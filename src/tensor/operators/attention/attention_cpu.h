/* SPDX-License-Identifier: MIT
 * The CPU functions of attention's kernels, with their arguments. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_ATTENTION_ATTENTION_CPU_H
#define RONDO_TENSOR_OPERATORS_ATTENTION_ATTENTION_CPU_H

#include "tensor/operators/common/element.h"

/* shape, q, k, v, k_cache, v_cache, mask, plan, y, sums */
void rondo_attention_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* shape, q, k, v, mask, plan, y, dy, sums, dq, dk, dv, dmask; the last four may be NULL */
void rondo_attention_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* As rondo_attention_cpu, without sums, for one row of q. */
void rondo_attention_decode_cpu(rondo_type type, rondo_blocks blocks, void *const *args);

#endif

/* SPDX-License-Identifier: MIT
 * Sparse gradients of tables (PR-7; operators/common/sparse_rows.h). Differentiation adds the gradient of a table as a
 * whole tensor. For a sparse state, an optimizer replaces it by the rows that look-ups read; the whole tensor is then
 * not needed and is never computed. So gradients that the caller asks for stay whole.
 */
#ifndef RONDO_TENSOR_PROGRAM_SPARSE_GRADIENT_H
#define RONDO_TENSOR_PROGRAM_SPARSE_GRADIENT_H

#include "tensor/program/optimizer_parts.h"
#include "tensor/program/program_internal.h"

/* Whether the state is sparse in this program. A table that is one rank's copy of several has a whole gradient. */
bool rondo_state_is_sparse(const rondo_program *program, uint32_t state);

/* Replaces the whole gradient of a sparse state by that of its rows. Several look-ups become one. `call` starts the
 * message. UNSUPPORTED: something else than look-ups reads the state. */
RONDO_MUST_USE rondo_status rondo_sparse_gradient(rondo_program *program, const char *call, uint32_t state,
                                                  uint32_t *inout_gradient, uint32_t *out_keys);

/* Replaces the gradient of a part by what is accumulated of it: declares the states of `most` runs, and adds the
 * operator that writes this run's. `runs`: the state that counts runs. `call` starts the message. INVALID_ARGUMENT:
 * more indices than the state's max_indices. LIMIT_EXCEEDED: more than i32 can count. */
RONDO_MUST_USE rondo_status rondo_sparse_accumulate(rondo_program *program, const char *call, size_t most,
                                                    uint32_t runs, rondo_update_part *part);

/* Replaces what is accumulated by its sums, a sparse gradient. With a control, they are computed in the runs alone that
 * it lets update; RONDO_NO_VALUE: in all. */
RONDO_MUST_USE rondo_status rondo_sparse_sum(rondo_program *program, uint32_t control, rondo_update_part *part);

#endif

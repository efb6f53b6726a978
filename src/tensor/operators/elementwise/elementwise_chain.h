/* SPDX-License-Identifier: MIT
 * Emits a chain whose values are at given addresses. Threads: as tensor/program/operator.h says.
 */
#ifndef RONDO_TENSOR_OPERATORS_ELEMENTWISE_ELEMENTWISE_CHAIN_H
#define RONDO_TENSOR_OPERATORS_ELEMENTWISE_ELEMENTWISE_CHAIN_H

#include "tensor/compile/chain_plan.h"
#include "tensor/program/operator.h"

/* addresses: those of the form's inputs, then that of the result. */
RONDO_MUST_USE rondo_status rondo_emit_chain_at(rondo_emitter *emitter, const rondo_chain *chain,
                                                void *const *addresses);

#endif

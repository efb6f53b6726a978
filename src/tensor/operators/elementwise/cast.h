/* SPDX-License-Identifier: MIT
 * Conversions that other operators need. Threads: as tensor/program/operator.h says.
 */
#ifndef RONDO_TENSOR_OPERATORS_ELEMENTWISE_CAST_H
#define RONDO_TENSOR_OPERATORS_ELEMENTWISE_CAST_H

#include "tensor/operators/common/operator_tools.h"

/* Emits the kernel that converts `count` elements of x, of type `from`, to y. */
RONDO_MUST_USE rondo_status rondo_emit_cast(rondo_emitter *emitter, rondo_type from, rondo_type to, const void *x,
                                            void *y, size_t count);

#endif

/* SPDX-License-Identifier: MIT
 * The functions of the rows of operators of the user. Threads: as tensor/program/operator.h says.
 */
#ifndef RONDO_TENSOR_OPERATORS_USER_USER_OPERATOR_H
#define RONDO_TENSOR_OPERATORS_USER_USER_OPERATOR_H

#include "tensor/program/operator_registry.h"

rondo_status rondo_infer_user_operator(const rondo_program *program, const rondo_operation *operation,
                                       rondo_shape *results);
rondo_status rondo_differentiate_user_operator(rondo_program *program, const rondo_operation *operation,
                                               const uint32_t *result_gradients, uint32_t *input_gradients);
rondo_status rondo_prepare_user_operator(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                                         size_t *out_workspace_bytes);
rondo_status rondo_emit_user_operator(rondo_emitter *emitter, const rondo_operation *operation);
void rondo_compute_user_element(const rondo_chunk_call *call);

#endif

/* SPDX-License-Identifier: MIT
 * The instance of a model that is a function. These functions do what model_instance.h describes.
 */
#ifndef RONDO_SESSION_FUNCTION_INSTANCE_H
#define RONDO_SESSION_FUNCTION_INSTANCE_H

#include "session/session_internal.h"

RONDO_MUST_USE rondo_status rondo_function_instance_open(rondo_model_instance *instance);
void rondo_function_instance_close(rondo_model_instance *instance, rondo_status *kept);

/* Calls the function of a graph, or for NULL the one for eager runs. Copies outputs to the staging memory. */
RONDO_MUST_USE rondo_status rondo_function_instance_call(rondo_model_instance *instance, rondo_function *function,
                                                         const rondo_stage *stage, size_t rows);
RONDO_MUST_USE rondo_status rondo_function_instance_record(rondo_model_instance *instance, rondo_instance_graph *g);
RONDO_MUST_USE rondo_status rondo_function_instance_write_zeros(const rondo_model_instance *instance,
                                                                const rondo_instance_graph *g);
RONDO_MUST_USE rondo_status rondo_function_instance_describe(const rondo_instance_graph *g, rondo_session_graph *out);
uint64_t rondo_function_instance_arena(const rondo_model_instance *instance);

#endif

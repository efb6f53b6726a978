/* SPDX-License-Identifier: MIT
 * A model that is a function, on a worker: a tree whose functions are its body, once for each graph and once to run
 * as it is, and memory on the device for its inputs.
 */
#ifndef RONDO_SESSION_FUNCTION_INSTANCE_H
#define RONDO_SESSION_FUNCTION_INSTANCE_H

#include "session/session_internal.h"

/* function_instance.c: the same where the model is a function. A call copies the outputs to the stage. */
RONDO_MUST_USE rondo_status rondo_function_instance_open(rondo_model_instance *instance);
void rondo_function_instance_close(rondo_model_instance *instance, rondo_status *kept);
void rondo_function_instance_reset(rondo_model_instance *instance, rondo_status *kept);

/* Calls a graph's function, or (NULL) the plain one. */
RONDO_MUST_USE rondo_status rondo_function_instance_call(rondo_model_instance *instance, rondo_function *function,
                                                         const rondo_stage *stage, size_t rows);
RONDO_MUST_USE rondo_status rondo_function_instance_record(rondo_model_instance *instance, const rondo_stage *stage,
                                                           rondo_instance_graph *g);
RONDO_MUST_USE rondo_status rondo_function_instance_write_zeros(const rondo_model_instance *instance,
                                                                const rondo_instance_graph *g);
RONDO_MUST_USE rondo_status rondo_function_instance_describe(const rondo_instance_graph *g, rondo_session_graph *out);
uint64_t rondo_function_instance_arena(const rondo_model_instance *instance);

#endif

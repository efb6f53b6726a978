/* SPDX-License-Identifier: MIT
 * The instance of a model on one stream: programs, graphs and staging memory.
 */
#ifndef RONDO_SESSION_MODEL_INSTANCE_H
#define RONDO_SESSION_MODEL_INSTANCE_H

#include "session/session_internal.h"

/* Threads: the claimant of the worker, or the thread that changes the model while nothing of it runs.
 *
 * Open and close make and free everything. Capture records a graph, and drop destroys the one that was recorded last.
 */
RONDO_MUST_USE rondo_status rondo_model_instance_open(rondo_model_instance *instance, rondo_session_model *model,
                                                      uint32_t worker, const rondo_weights *weights);
void rondo_model_instance_close(rondo_model_instance *instance, rondo_status *kept);
RONDO_MUST_USE rondo_status rondo_model_instance_capture(rondo_model_instance *instance, size_t rows);
void rondo_model_instance_drop_last_graph(rondo_model_instance *instance, rondo_status *kept);

/* Zeros all inputs of a graph; describes the graph. */
RONDO_MUST_USE rondo_status rondo_model_instance_write_zeros(rondo_model_instance *instance, size_t graph);
RONDO_MUST_USE rondo_status rondo_model_instance_describe(const rondo_model_instance *instance, size_t graph,
                                                          rondo_session_graph *out);

/* Finds or compiles the program for eager runs of exactly this number of rows and this length. It is valid until the
 * next call. */
RONDO_MUST_USE rondo_status rondo_model_instance_find_program(rondo_model_instance *instance, size_t rows,
                                                              size_t length, rondo_instance_program *out);

/* Writes a state or cell on every device that has it, and waits. */
RONDO_MUST_USE rondo_status rondo_model_instance_write_state(rondo_model_instance *instance, const char *name,
                                                             const void *data, size_t bytes);

/* Lists the addresses of the model's inputs and outputs in a compiled program; frees the list. NULL is allowed. */
RONDO_MUST_USE rondo_status rondo_instance_program_find_addresses(const rondo_session_model *model,
                                                                  const rondo_compiled *compiled, void ***out);
void rondo_instance_program_free_addresses(const rondo_session_model *model, void **addresses);

/* Runs the upstream parts of a graph, recorded or eagerly, on the contents of its staging memory. The first function
 * waits for earlier work of the instance and enqueues them. The second waits until they are done. Without upstream
 * parts both do nothing. */
RONDO_MUST_USE rondo_status rondo_model_instance_start_upstream(rondo_model_instance *instance,
                                                                const rondo_instance_graph *g, bool is_recorded);
RONDO_MUST_USE rondo_status rondo_model_instance_wait_for_upstream(const rondo_instance_graph *g, rondo_status started);

/* Does both. */
RONDO_MUST_USE rondo_status rondo_model_instance_run_upstream(rondo_model_instance *instance,
                                                              const rondo_instance_graph *g, bool is_recorded);

/* Enqueues the work of a graph, recorded or eagerly, after its upstream parts; waits for all work of the instance. */
RONDO_MUST_USE rondo_status rondo_model_instance_launch(rondo_model_instance *instance, const rondo_instance_graph *g,
                                                        bool is_recorded);
RONDO_MUST_USE rondo_status rondo_model_instance_synchronize(const rondo_model_instance *instance);

/* The options to compile programs of the instance. */
rondo_compile_options rondo_model_instance_compile_options(const rondo_model_instance *instance);

#endif

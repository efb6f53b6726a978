/* SPDX-License-Identifier: MIT
 * A model on a worker: programs that share states, arena and stream, graphs recorded of them, staging memory.
 */
#ifndef RONDO_SESSION_MODEL_INSTANCE_H
#define RONDO_SESSION_MODEL_INSTANCE_H

#include "session/session_internal.h"

/* model_instance.c: by who has claimed the worker, or changes the model while nothing of it runs. */
RONDO_MUST_USE rondo_status rondo_model_instance_open(rondo_model_instance *instance, rondo_session_model *model,
                                                      uint32_t worker, const rondo_weights *weights);
void rondo_model_instance_close(rondo_model_instance *instance, rondo_status *kept);
RONDO_MUST_USE rondo_status rondo_model_instance_capture(rondo_model_instance *instance, size_t rows);
void rondo_model_instance_drop_last_graph(rondo_model_instance *instance, rondo_status *kept);

/* Zeros in all inputs of the graph's program. */
RONDO_MUST_USE rondo_status rondo_model_instance_write_zeros(rondo_model_instance *instance, size_t graph);
RONDO_MUST_USE rondo_status rondo_model_instance_describe(const rondo_model_instance *instance, size_t graph,
                                                          rondo_session_graph *out);

/* The program for eager runs of so many rows, until the next. */
RONDO_MUST_USE rondo_status rondo_model_instance_find_program(rondo_model_instance *instance, size_t rows,
                                                              const rondo_instance_program **out);

/* Writes a state or cell wherever it is, and waits for that. */
RONDO_MUST_USE rondo_status rondo_model_instance_write_state(rondo_model_instance *instance, const char *name,
                                                             const void *data, size_t bytes);

/* Where a compiled program has the model's inputs and outputs, as rondo_instance_program.addresses; and their end. NULL
 * is fine.
 */
RONDO_MUST_USE rondo_status rondo_instance_program_find_addresses(const rondo_session_model *model,
                                                                  const rondo_compiled *compiled, void ***out);
void rondo_instance_program_free_addresses(const rondo_session_model *model, void **addresses);

/* What comes ahead of a graph, or the same eager, on what its inputs hold: waits for the place's work and queues
 * it; and waits until it is done. Nothing where nothing comes ahead. */
RONDO_MUST_USE rondo_status rondo_model_instance_start_upstream(rondo_model_instance *instance,
                                                                const rondo_instance_graph *g, bool is_recorded);
RONDO_MUST_USE rondo_status rondo_model_instance_wait_for_upstream(const rondo_instance_graph *g, rondo_status started);

/* Both. */
RONDO_MUST_USE rondo_status rondo_model_instance_run_upstream(rondo_model_instance *instance,
                                                              const rondo_instance_graph *g, bool is_recorded);

/* Behind that, queues the work of a graph, or the same eager; and waits for the place's work. */
RONDO_MUST_USE rondo_status rondo_model_instance_launch(rondo_model_instance *instance, const rondo_instance_graph *g,
                                                        bool is_recorded);
RONDO_MUST_USE rondo_status rondo_model_instance_synchronize(const rondo_model_instance *instance);

/* Adds what arenas and staging memory of the place will take with graphs of so many rows, which descend. */
RONDO_MUST_USE rondo_status rondo_model_instance_plan(const rondo_model_instance *instance, const size_t *rows,
                                                      size_t count, rondo_model_bytes *inout);

#endif

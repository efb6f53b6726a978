/* SPDX-License-Identifier: MIT
 * Staging memory of an instance: host memory for inputs and outputs, and for transfers of upstream parts.
 */
#ifndef RONDO_SESSION_STAGING_MEMORY_H
#define RONDO_SESSION_STAGING_MEMORY_H

#include "session/session_internal.h"

/* Bytes for this many rows. Find returns a block that is large enough, or makes one. Drop frees the blocks of graphs;
 * close frees all. */
size_t rondo_stage_bytes(const rondo_session_model *model, size_t rows);
RONDO_MUST_USE rondo_status rondo_model_instance_find_stage(rondo_model_instance *instance, size_t rows,
                                                            rondo_stage *out);
RONDO_MUST_USE rondo_status rondo_model_instance_find_transfer_memory(rondo_model_instance *instance, size_t bytes,
                                                                      unsigned char **out);
void rondo_model_instance_drop_stages(rondo_model_instance *instance, rondo_status *kept);
void rondo_model_instance_close_stages(rondo_model_instance *instance, rondo_status *kept);

/* Makes room for eager runs of this many rows, and for the transfers of `upstream`, which may be NULL. */
RONDO_MUST_USE rondo_status rondo_model_instance_reserve_eager(rondo_model_instance *instance, size_t rows,
                                                               const rondo_upstream *upstream);
/* Where an input or output is, in host memory or in the device memory of a function; and its first rows. */
unsigned char *rondo_stage_input(const rondo_session_model *model, const rondo_stage *stage, size_t index);
unsigned char *rondo_stage_device_input(const rondo_session_model *model, const rondo_stage *stage, size_t index);
unsigned char *rondo_stage_output(const rondo_session_model *model, const rondo_stage *stage, size_t index);
rondo_host_range rondo_stage_input_range(const rondo_session_model *model, const rondo_stage *stage, size_t index,
                                         size_t rows);
rondo_host_range rondo_stage_output_range(const rondo_session_model *model, const rondo_stage *stage, size_t index,
                                          size_t rows);

/* Enqueues copies of rows between the staging memory and a compiled program, whose addresses are as those of
 * rondo_instance_program. */
RONDO_MUST_USE rondo_status rondo_stage_copy_inputs(const rondo_session_model *model, const rondo_stage *stage,
                                                    size_t rows, void *const *addresses, rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo_stage_copy_outputs(const rondo_session_model *model, const rondo_stage *stage,
                                                     size_t rows, void *const *addresses, rondo_stream *stream);

#endif

/* SPDX-License-Identifier: MIT
 * Staging memory of an instance: host memory for inputs and outputs, and for transfers of upstream parts.
 */
#ifndef RONDO_SESSION_STAGING_MEMORY_H
#define RONDO_SESSION_STAGING_MEMORY_H

#include "session/session_internal.h"

/* Host memory for this many rows. */
size_t rondo_stage_bytes(const rondo_session_model *model, size_t rows);

/* Finds a block that is large enough, or makes one. For 0 bytes of transfers, *out is NULL. */
RONDO_MUST_USE rondo_status rondo_model_instance_find_stage(rondo_model_instance *instance, size_t rows,
                                                            rondo_stage *out);
RONDO_MUST_USE rondo_status rondo_model_instance_find_transfer_memory(rondo_model_instance *instance, size_t bytes,
                                                                      unsigned char **out);
/* Frees the blocks of graphs; frees all blocks. */
void rondo_model_instance_drop_stages(rondo_model_instance *instance, rondo_status *kept);
void rondo_model_instance_close_stages(rondo_model_instance *instance, rondo_status *kept);

/* Reserves memory for eager runs of this many rows, and for the transfers of `upstream`, which may be NULL. */
RONDO_MUST_USE rondo_status rondo_model_instance_reserve_eager(rondo_model_instance *instance, size_t rows,
                                                               const rondo_upstream *upstream);

/* The address of an input or output in host memory, or in the device memory of a function. */
unsigned char *rondo_stage_input(const rondo_session_model *model, const rondo_stage *stage, size_t index);
unsigned char *rondo_stage_device_input(const rondo_session_model *model, const rondo_stage *stage, size_t index);
unsigned char *rondo_stage_output(const rondo_session_model *model, const rondo_stage *stage, size_t index);
/* The host memory of the first rows of a value. Outputs come after inputs. */
rondo_host_range rondo_stage_range(const rondo_session_model *model, const rondo_stage *stage, size_t index,
                                   size_t rows);

/* Enqueues copies of rows between the staging memory and a compiled program, of outputs with so many positions.
 * `addresses` is that of its rondo_instance_program. */
RONDO_MUST_USE rondo_status rondo_stage_copy_inputs(const rondo_session_model *model, const rondo_stage *stage,
                                                    size_t rows, void *const *addresses, rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo_stage_copy_outputs(const rondo_session_model *model, const rondo_stage *stage,
                                                     size_t rows, size_t length, void *const *addresses,
                                                     rondo_stream *stream);

#endif

/* SPDX-License-Identifier: MIT
 * Staging memory of a place: host memory for inputs and outputs, which the largest graph's serves for all, and for
 * what parts that run ahead hand over, likewise.
 */
#ifndef RONDO_SESSION_STAGING_MEMORY_H
#define RONDO_SESSION_STAGING_MEMORY_H

#include "session/session_internal.h"

/* staging_memory.c: bytes for inputs and outputs of so many rows; one that has room, else a new one, likewise for what
 * is handed over; those of the graphs go; and those of eager runs too. */
size_t rondo_stage_bytes(const rondo_session_model *model, size_t rows);
RONDO_MUST_USE rondo_status rondo_model_instance_find_stage(rondo_model_instance *instance, size_t rows,
                                                            rondo_stage *out);
RONDO_MUST_USE rondo_status rondo_model_instance_find_transfer_memory(rondo_model_instance *instance, size_t bytes,
                                                                      unsigned char **out);
void rondo_model_instance_drop_stages(rondo_model_instance *instance, rondo_status *kept);
void rondo_model_instance_close_stages(rondo_model_instance *instance, rondo_status *kept);

/* Room in place->plain for so many rows, and in place->plain_handover for what comes ahead; NULL: nothing does. */
RONDO_MUST_USE rondo_status rondo_model_instance_reserve_eager(rondo_model_instance *instance, size_t rows,
                                                               const rondo_upstream *upstream);
unsigned char *rondo_stage_input(const rondo_session_model *model, unsigned char *memory, size_t rows, size_t index);
unsigned char *rondo_stage_output(const rondo_session_model *model, unsigned char *memory, size_t rows, size_t index);

#endif

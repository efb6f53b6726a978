/* SPDX-License-Identifier: MIT
 * Measuring runs graphs on zeros, so the states that a run changes are copied to host memory before, and back after it.
 * The caller has claimed the worker of the instance. Without such states these functions do nothing.
 */
#ifndef RONDO_SESSION_SIZING_MEASURED_STATES_H
#define RONDO_SESSION_SIZING_MEASURED_STATES_H

#include "session/session_internal.h"

typedef struct rondo_measured_state {
  rondo_compiled *compiled; /* that has the state: on the session's device, or an upstream part */
  const char *name;         /* of the model */
  void *copy;
  size_t bytes;
} rondo_measured_state;

typedef struct rondo_measured_states {
  RONDO_ARRAY(rondo_measured_state) items;
} rondo_measured_states;

/* Waits for the copies. After a failure nothing is kept. Errors: OUT_OF_MEMORY; as rondo_compiled_read. */
RONDO_MUST_USE rondo_status rondo_measured_states_keep(const rondo_model_instance *instance,
                                                       rondo_measured_states *out);

/* Puts them back, waits, and frees the copies in any case. */
RONDO_MUST_USE rondo_status rondo_measured_states_put_back(const rondo_model_instance *instance,
                                                           rondo_measured_states *states);

#endif

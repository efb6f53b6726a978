/* SPDX-License-Identifier: MIT
 * Measures how long graphs take: alone, eagerly, and on all streams at once. The caller has claimed the workers that
 * are used.
 */
#ifndef RONDO_SESSION_SIZING_MEASURE_GRAPHS_H
#define RONDO_SESSION_SIZING_MEASURE_GRAPHS_H

#include "session/session_internal.h"

/* Measures the microseconds from the launch of each graph until it is done, recorded and eager. They rise with the
 * rows. If out_eager is NULL, the times are for choosing sizes: no row costs more than in a smaller graph. */
RONDO_MUST_USE rondo_status rondo_model_instance_measure(rondo_model_instance *instance, double *out_run,
                                                         double *out_eager);

/* Measures the share of all workers' time that the graph takes while all of them run it. Its inputs must contain valid
 * indices. */
RONDO_MUST_USE rondo_status rondo_model_measure_share(rondo_session_model *model, size_t graph, double *out_us);

/* Measures how well each graph overlaps with itself on all streams. */
RONDO_MUST_USE rondo_status rondo_model_measure_overlaps(rondo_session_model *model);

#endif

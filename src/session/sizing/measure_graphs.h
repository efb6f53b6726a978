/* SPDX-License-Identifier: MIT
 * Measures how long graphs take: alone, eagerly, and on all streams at once. The caller has claimed the workers that
 * are used.
 */
#ifndef RONDO_SESSION_SIZING_MEASURE_GRAPHS_H
#define RONDO_SESSION_SIZING_MEASURE_GRAPHS_H

#include "session/session_internal.h"

/* Microseconds from the launch of each graph of the instance until it is done, recorded and eager; they rise with the
 * rows. If out_eager is NULL, the times are for choosing sizes: no row costs more than in a smaller graph. */
RONDO_MUST_USE rondo_status rondo_model_instance_measure(rondo_model_instance *instance, double *out_run,
                                                         double *out_eager);

/* The share of all workers' time that the graph takes while all of them run it. Its inputs must hold valid indices. */
RONDO_MUST_USE rondo_status rondo_model_measure_share(rondo_session_model *model, size_t graph, double *out_us);

/* Measures for each graph how well it overlaps with itself on all streams. */
RONDO_MUST_USE rondo_status rondo_model_measure_overlaps(rondo_session_model *model);

#endif

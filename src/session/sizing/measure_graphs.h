/* SPDX-License-Identifier: MIT
 * What graphs cost, measured: all graphs of a place in turn, recorded and not, round after round, so that what
 * disturbs the machine for a while disturbs all alike; graph_times.h says what becomes of the samples.
 */
#ifndef RONDO_SESSION_SIZING_MEASURE_GRAPHS_H
#define RONDO_SESSION_SIZING_MEASURE_GRAPHS_H

#include "session/session_internal.h"

/* measure_graphs.c: microseconds from a launch until it is done, by graph of the place, recorded and not; they rise
 * with the rows. With out_unrecorded NULL they are for a choice of sizes: no row costs more than one of a smaller
 * graph. Likewise. */
RONDO_MUST_USE rondo_status rondo_model_instance_measure(rondo_model_instance *instance, double *out_run,
                                                         double *out_unrecorded);

/* What the graph takes of all workers' time, when all of them run it, by who has claimed them; their inputs are zeros.
 */
RONDO_MUST_USE rondo_status rondo_model_measure_share(rondo_session_model *model, size_t graph, double *out_us);

/* Of each graph, how long it takes on all workers at once; likewise. */
RONDO_MUST_USE rondo_status rondo_model_measure_overlaps(rondo_session_model *model);

#endif

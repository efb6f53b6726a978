/* SPDX-License-Identifier: MIT
 * Sizes chosen for a history of requests, alone and together: some are recorded and measured, the costs of others
 * lie on lines between them, the best are recorded on all workers; and what is measured when all graphs stand.
 */
#ifndef RONDO_SESSION_SIZING_CHOOSE_SIZES_H
#define RONDO_SESSION_SIZING_CHOOSE_SIZES_H

#include "session/session_internal.h"

/* choose_sizes.c: times of all graphs, and the tables that follow from them; and, while the model is changing,
 * microseconds of the graphs that the first worker has, in the order in which they were recorded there. */
RONDO_MUST_USE rondo_status rondo_model_measure(rondo_session_model *model);
RONDO_MUST_USE rondo_status rondo_model_measure_alone(rondo_session_model *model, double *out_us);

#endif

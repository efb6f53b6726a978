/* SPDX-License-Identifier: MIT
 * Rondo's metrics in the server: what a session counts of a model, with the labels model, version and device. The
 * families belong to the backend. A server without metrics has none, which is not an error.
 */
#ifndef RONDO_TRITON_MODEL_METRICS_H
#define RONDO_TRITON_MODEL_METRICS_H

#include <rondo/session.h>

#include "triton/server_abi.h"

enum { RONDO_TRITON_METRICS = 18 };

typedef struct rondo_triton_metric_families {
  triton_metric_family *families[RONDO_TRITON_METRICS]; /* NULL: the server has no metrics */
} rondo_triton_metric_families;

void rondo_triton_metric_families_open(rondo_triton_metric_families *out);
void rondo_triton_metric_families_close(rondo_triton_metric_families *families);

/* The metrics of one session. One thread at a time. */
typedef struct rondo_triton_metrics {
  triton_metric *metrics[RONDO_TRITON_METRICS];
  uint64_t reported[RONDO_TRITON_METRICS]; /* of counters */
} rondo_triton_metrics;

void rondo_triton_metrics_open(const rondo_triton_metric_families *families, const char *model, uint64_t version,
                               const char *device, rondo_triton_metrics *out);
void rondo_triton_metrics_report(rondo_triton_metrics *metrics, const rondo_model_info *info);
void rondo_triton_metrics_close(rondo_triton_metrics *metrics);

#endif

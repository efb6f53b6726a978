/* SPDX-License-Identifier: MIT
 * Rondo's metrics in the server: what sessions count of a model, with the labels model, version and device. The
 * families belong to the backend. A server without metrics has none, which is not an error.
 */
#ifndef RONDO_TRITON_MODEL_METRICS_H
#define RONDO_TRITON_MODEL_METRICS_H

#include <rondo/session.h>

#include "triton/server_abi.h"

enum { RONDO_TRITON_METRICS = 20 };

typedef struct rondo_triton_metric_families {
  triton_metric_family *families[RONDO_TRITON_METRICS]; /* NULL: the server has no metrics */
} rondo_triton_metric_families;

void rondo_triton_metric_families_open(rondo_triton_metric_families *out);
void rondo_triton_metric_families_close(rondo_triton_metric_families *families);

/* The metrics of a model on a device. One thread at a time. */
typedef struct rondo_triton_metrics {
  triton_metric *metrics[RONDO_TRITON_METRICS];
} rondo_triton_metrics;

/* What is reported of a session. */
typedef struct rondo_triton_counts {
  rondo_model_info info;
  uint64_t size_choices, padded;
} rondo_triton_counts;

void rondo_triton_metrics_open(const rondo_triton_metric_families *families, const char *model, uint64_t version,
                               const char *device, rondo_triton_metrics *out);
/* `inout_reported` has a number for each metric: what was reported of the session before, at first zeros. */
void rondo_triton_metrics_report(rondo_triton_metrics *metrics, const rondo_triton_counts *counts, bool with_gauges,
                                 uint64_t *inout_reported);
void rondo_triton_metrics_close(rondo_triton_metrics *metrics);

#endif

/* SPDX-License-Identifier: MIT
 * A table says which counters and sizes of a model are metrics. The server adds to counters and sets gauges, so what a
 * counter got already is kept. A metric that the server refuses is left out, because requests do not depend
 * on it.
 */
#include "triton/model_metrics.h"

#include <stdio.h>
#include <string.h>

#include "triton/server_functions.h"

typedef struct metric_row {
  triton_metric_kind kind;
  const char *name, *help;
  size_t offset; /* of a uint64_t in rondo_triton_counts */
} metric_row;

#define COUNTER(field, name, help) \
  { TRITON_METRIC_COUNTER, "rondo_" name, help, offsetof(rondo_triton_counts, info.field) }
#define GAUGE(field, help) \
  { TRITON_METRIC_GAUGE, "rondo_" #field, help, offsetof(rondo_triton_counts, info.field) }
static const metric_row rows[] = {
    COUNTER(recorded, "recorded_requests", "Requests that one recorded graph ran"),
    COUNTER(split, "split_requests", "Requests that several recorded graphs ran"),
    COUNTER(eager, "eager_requests", "Requests that ran eagerly"),
    COUNTER(timed_out, "timed_out_requests", "Requests that did not start before their timeout"),
    COUNTER(cancelled, "cancelled_requests", "Requests that were cancelled"),
    COUNTER(failed, "failed_requests", "Requests whose work failed"),
    COUNTER(batched, "batched_requests", "Requests that ran together with others"),
    {TRITON_METRIC_COUNTER, "rondo_padded_requests", "Requests that ran with rows of padding",
     offsetof(rondo_triton_counts, padded)},
    COUNTER(rows, "request_rows", "Rows of requests"),
    COUNTER(padding_rows, "padding_rows", "Rows that were added as padding"),
    COUNTER(renewals, "dispatch_renewals", "How often graphs were chosen again because times had changed"),
    COUNTER(steps, "sequence_steps", "Steps of sequences, of the shortest length"),
    COUNTER(evicted_sequences, "evicted_sequences", "Idle sequences whose slot another one took"),
    {TRITON_METRIC_COUNTER, "rondo_size_choices", "How often sizes were chosen again while the model was served",
     offsetof(rondo_triton_counts, size_choices)},
    {TRITON_METRIC_GAUGE, "rondo_open_sequences", "Sequences that have a slot",
     offsetof(rondo_triton_counts, info.sequences)},
    GAUGE(slot_bytes, "Memory of the caches of one slot"),
    GAUGE(state_bytes, "Memory of weights and other states"),
    GAUGE(arena_bytes, "Memory of arenas, in which values of all sizes share addresses"),
    GAUGE(exec_bytes, "Memory of executable graphs"),
    GAUGE(staging_bytes, "Memory through which inputs and outputs pass"),
};
_Static_assert(sizeof rows / sizeof *rows == RONDO_TRITON_METRICS, "a row for each metric");

void rondo_triton_metric_families_open(rondo_triton_metric_families *out) {
  *out = (rondo_triton_metric_families){0};
  if (rondo_triton_server.metric_family_new == NULL || rondo_triton_server.metric_set == NULL) return;
  for (size_t i = 0; i < RONDO_TRITON_METRICS; i++) {
    triton_error *error =
        rondo_triton_server.metric_family_new(&out->families[i], rows[i].kind, rows[i].name, rows[i].help);
    if (error != NULL) out->families[i] = NULL;
    rondo_triton_ignore(error);
  }
}

void rondo_triton_metric_families_close(rondo_triton_metric_families *families) {
  for (size_t i = 0; i < RONDO_TRITON_METRICS; i++)
    if (families->families[i] != NULL)
      rondo_triton_ignore(rondo_triton_server.metric_family_delete(families->families[i]));
  *families = (rondo_triton_metric_families){0};
}

enum { LABELS = 3 };

void rondo_triton_metrics_open(const rondo_triton_metric_families *families, const char *model, uint64_t version,
                               const char *device, rondo_triton_metrics *out) {
  static const char *const keys[LABELS] = {"model", "version", "device"};
  const triton_parameter *labels[LABELS];
  char version_text[24];
  (void)snprintf(version_text, sizeof version_text, "%llu", (unsigned long long)version);
  const char *const values[LABELS] = {model, version_text, device};
  *out = (rondo_triton_metrics){0};
  if (families->families[0] == NULL) return;
  for (size_t i = 0; i < LABELS; i++)
    labels[i] = rondo_triton_server.parameter_new(keys[i], TRITON_PARAMETER_STRING, values[i]);
  for (size_t i = 0; i < RONDO_TRITON_METRICS; i++) {
    if (families->families[i] == NULL) continue;
    triton_error *error = rondo_triton_server.metric_new(&out->metrics[i], families->families[i], labels, LABELS);
    if (error != NULL) out->metrics[i] = NULL;
    rondo_triton_ignore(error);
  }
  for (size_t i = 0; i < LABELS; i++) rondo_triton_server.parameter_delete((triton_parameter *)(uintptr_t)labels[i]);
}

static uint64_t value_of(const rondo_triton_counts *counts, size_t row) {
  uint64_t value;
  memcpy(&value, (const char *)counts + rows[row].offset, sizeof value);
  return value;
}

void rondo_triton_metrics_report(rondo_triton_metrics *metrics, const rondo_triton_counts *counts, bool with_gauges,
                                 uint64_t *inout_reported) {
  for (size_t i = 0; i < RONDO_TRITON_METRICS; i++) {
    const bool is_gauge = rows[i].kind == TRITON_METRIC_GAUGE;
    const uint64_t value = value_of(counts, i), before = inout_reported[i];
    if (metrics->metrics[i] == NULL || (value == before && value > 0) || (is_gauge && !with_gauges)) continue;
    rondo_triton_ignore(is_gauge ? rondo_triton_server.metric_set(metrics->metrics[i], (double)value)
                                 : rondo_triton_server.metric_increment(metrics->metrics[i], (double)(value - before)));
    inout_reported[i] = value;
  }
}

void rondo_triton_metrics_close(rondo_triton_metrics *metrics) {
  for (size_t i = 0; i < RONDO_TRITON_METRICS; i++)
    if (metrics->metrics[i] != NULL) rondo_triton_ignore(rondo_triton_server.metric_delete(metrics->metrics[i]));
  *metrics = (rondo_triton_metrics){0};
}

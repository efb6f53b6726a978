/* SPDX-License-Identifier: MIT
 * Load on a session from inside the process. Closed loop: each client submits its next request when the previous one is
 * answered. It measures the highest rate of requests. Open loop: requests arrive independently of earlier ones, at
 * exponentially distributed intervals (a Poisson process). It measures response times at a given rate. They count from
 * the time at which a request was due, so that a delay of the load generator is included.
 */
#ifndef RONDO_TOOL_REQUEST_LOAD_H
#define RONDO_TOOL_REQUEST_LOAD_H

#include <rondo/session.h>

#include "common/timing.h"
#include "serve/answer_check.h"
#include "serve/request_sizes.h"
#include "serve/served_model.h"

typedef struct load {
  rondo_session *session;
  const char *model;
  const served_model *served; /* its inputs are those of every request */
  const answer_check *check;  /* of each answer of the closed loop, which takes time of its client; NULL: none */
  const traffic *traffic;     /* rows of the requests, used cyclically */
  size_t most_rows;
  rondo_run_mode mode;
  double seconds;
  size_t first;     /* index of the first request */
  double rate;      /* requests per second; 0: closed loop */
  uint32_t clients; /* of the closed loop */
  uint64_t seed;
} load;

/* Accumulates the results of loads. Zero-initialize it; load_summarize frees it. */
typedef struct load_tally {
  samples times, waits; /* until answered; until run */
  uint64_t answered, failed, refused, rows, batched;
  double padding; /* padding rows: each request counts its share, by rows, of its batch's */
  double seconds, busy_us, processor_seconds;
  uint64_t batches, batch_requests, graphs; /* of the session, as are the next two */
  double batching_us, enqueue_us;
  answer_tally answers; /* that were checked */
  bool has_no_memory;
} load_tally;

typedef struct load_result {
  double seconds;
  double rate; /* answers per second */
  uint64_t answered, failed, refused;
  double waited_us; /* median time from the acceptance of a request until it runs */
  double median_us, p95_us, p99_us, p999_us, maximum_us;
  uint64_t rows, padding_rows, batched; /* batched: answers of requests that ran with others */
  double batch_requests;                /* mean number of requests in a batch */
  double batching_us, enqueue_us;       /* host time to form a batch and to enqueue a graph (rondo_session_get_usage) */
  double busy;       /* share of the time during which the device was busy (rondo_session_get_usage) */
  double processors; /* processor time of this process divided by that of all processors; on a CPU device it includes
                        the workers and the clients */
} load_result;

/* Runs a load and adds its results. The session must measure times. Returns TOOL_OK, or TOOL_FAILURE after a message.
 */
int load_run(const load *l, load_tally *inout);

load_result load_summarize(load_tally *tally);

#endif

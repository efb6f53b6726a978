/* SPDX-License-Identifier: MIT
 * Load on a session from inside the process. Closed loop: some clients, each of which hands its next request in when
 * the last one is answered: how many requests a second there can be. Open loop: requests come at times of their own,
 * exponentially distributed apart (a Poisson process), whatever becomes of earlier ones: how long they take at a given
 * rate. A request's time counts from when it was due, so that nothing is left out when the load falls behind.
 */
#ifndef RONDO_TOOL_REQUEST_LOAD_H
#define RONDO_TOOL_REQUEST_LOAD_H

#include <rondo/session.h>

#include "common/timing.h"
#include "serve/request_sizes.h"

typedef struct load {
  rondo_session *session;
  const char *model;
  const void *const *inputs; /* for the largest request; all have these */
  size_t output_bytes;       /* of one row */
  const traffic *traffic;    /* rows of requests, in turn */
  size_t most_rows;
  rondo_run_mode mode;
  double seconds;
  size_t first;     /* request that it begins with */
  double rate;      /* requests a second; 0: closed loop */
  uint32_t clients; /* of the closed loop */
  uint64_t seed;
} load;

/* What loads have shown so far. Zero is nothing; load_summarize frees it. */
typedef struct load_tally {
  samples times, waits; /* until answered; until run */
  uint64_t answered, failed, refused, rows, batched;
  double padding; /* each request's share of its batch's */
  double seconds, busy_us, processor_seconds;
  uint64_t batches, batch_requests, graphs; /* of the session, as are the next */
  double batching_us, enqueue_us;
  bool has_no_memory;
} load_tally;

typedef struct load_result {
  double seconds;
  double rate; /* answers a second */
  uint64_t answered, failed, refused;
  double waited_us; /* median, from when a request was taken until it ran */
  double median_us, p95_us, p99_us, p999_us, maximum_us;
  uint64_t rows, padding_rows, batched; /* batched: answers of requests that ran with others */
  double batch_requests;                /* of a batch that was formed, at the mean; */
  double batching_us, enqueue_us; /* ... of the host, to form one, and to queue a graph (rondo_session_get_usage) */
  double busy;       /* share of the time in which work was under way on the device (rondo_session_get_usage) */
  double processors; /* processor time of this process over what the machine's processors have: on a CPU device that of
                        its workers, and of the clients, which work along */
} load_result;

/* Adds what one load shows, in a session that is timed. Returns TOOL_OK, or TOOL_FAILURE after a message. */
int load_run(const load *l, load_tally *inout);

load_result load_summarize(load_tally *tally);

#endif

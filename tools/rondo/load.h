/* SPDX-License-Identifier: MIT
 * Load on a session from inside the process. Closed loop: some clients, each of which hands its next request in when
 * the last one is answered: how many requests a second there can be. Open loop: requests come at times of their own,
 * exponentially distributed apart (a Poisson process), whatever becomes of earlier ones: how long they take at a given
 * rate. A request's time counts from when it was due, so that nothing is left out when the load falls behind.
 */
#ifndef RONDO_TOOL_LOAD_H
#define RONDO_TOOL_LOAD_H

#include <rondo/session.h>

#include "timing.h"
#include "traffic.h"

typedef struct load {
  rondo_session *session;
  const char *model;
  const void *const *inputs; /* for the largest request; all have these */
  size_t output_bytes;       /* of one row */
  const traffic *traffic;    /* rows of requests, in turn */
  size_t most_rows;
  rondo_way way;
  double seconds;
  double rate;      /* requests a second; 0: closed loop */
  uint32_t clients; /* of the closed loop */
  uint64_t seed;
} load;

typedef struct load_result {
  double seconds;
  double rate; /* answers a second */
  uint64_t answered, failed, refused;
  double median_us, p95_us, p99_us, p999_us, maximum_us;
  uint64_t rows, padding_rows, batched; /* batched: answers of requests that ran with others */
  double busy; /* times of graphs that ran, as measured, over the time it took; 0 un-recorded */
} load_result;

/* Returns TOOL_OK, or TOOL_FAILURE having said why. */
int load_run(const load *l, load_result *out);

#endif

/* SPDX-License-Identifier: MIT
 * A soak test: open-loop load on a session for a long time. Some requests are cancelled, some have deadlines that
 * cannot be met, and some are invalid: a wrong number of inputs, an index outside every table, or NaN inputs. Every
 * answer is compared with the expected one. Times in windows of the soak show whether it gets slower.
 */
#ifndef RONDO_TOOL_SOAK_TEST_H
#define RONDO_TOOL_SOAK_TEST_H

#include "models/recommender.h"
#include "serve/request_sizes.h"

enum { SOAK_MOST_WINDOWS = 64 };

typedef struct soak {
  rondo_device *device;
  rondo_session *session;
  const char *name;
  const recommender *model;
  const traffic *traffic;
  size_t most_rows;      /* of one request */
  double seconds, rate;  /* requests per second */
  double answer_seconds; /* a request without an answer after this time is stuck, and the soak ends */
  uint64_t seed;
} soak;

typedef struct soak_window {
  uint64_t answered;
  double median_us, p99_us;
} soak_window;

typedef struct soak_result {
  double seconds, window_seconds;
  uint64_t answered, cancelled, timed_out, refused_index, refused_shape, not_numbers; /* as intended */
  uint64_t full;  /* refused because the queue was full */
  uint64_t wrong; /* an unexpected answer or error */
  uint64_t stuck; /* without an answer after answer_seconds */
  soak_window windows[SOAK_MOST_WINDOWS];
  size_t window_count;
  double median_us, p99_us;
  double drift;               /* 99th percentile of the last window divided by that of the second window */
  uint64_t resident_bytes[2]; /* of the process: after the first window, and at the end */
  uint64_t mapped_bytes[2];   /* of the device: after the first window, and at the end */
} soak_result;

/* Returns TOOL_OK, or TOOL_FAILURE after a message: also for a wrong or stuck answer. */
int soak_run(const soak *s, soak_result *out);

#endif

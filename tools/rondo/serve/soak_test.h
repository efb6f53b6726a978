/* SPDX-License-Identifier: MIT
 * A soak: open-loop load on a session for a long time, with requests among it that are cancelled, that have deadlines
 * too short to be met, and that are bad: a wrong number of inputs, an index that is in no table, numbers that are none.
 * Every answer is held beside what it must be. Times by windows of the soak show whether it gets worse.
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
  size_t most_rows;      /* of a request */
  double seconds, rate;  /* requests a second */
  double answer_seconds; /* in which each request is to be answered; else it is stuck, and the soak ends */
  uint64_t seed;
} soak;

typedef struct soak_window {
  uint64_t answered;
  double median_us, p99_us;
} soak_window;

typedef struct soak_result {
  double seconds, window_seconds;
  uint64_t answered, cancelled, timed_out, refused_index, refused_shape, not_numbers; /* as they were to be */
  uint64_t full;  /* refused, as the queue was full */
  uint64_t wrong; /* an answer or error that is not what it must be */
  uint64_t stuck; /* without an answer for so long */
  soak_window windows[SOAK_MOST_WINDOWS];
  size_t window_count;
  double median_us, p99_us;
  double drift;               /* 99th percentile of the last window over that of the second */
  uint64_t resident_bytes[2]; /* of the process: after the first window, and at the end */
  uint64_t mapped_bytes[2];   /* of the device, likewise */
} soak_result;

/* Returns TOOL_OK, or TOOL_FAILURE after a message: also for a wrong or stuck answer. */
int soak_run(const soak *s, soak_result *out);

#endif

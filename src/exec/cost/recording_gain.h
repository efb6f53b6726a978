/* SPDX-License-Identifier: MIT
 * The gain of recording: deciding by it and describing it.
 */
#ifndef RONDO_EXEC_COST_RECORDING_GAIN_H
#define RONDO_EXEC_COST_RECORDING_GAIN_H

#include <rondo/exec.h>
#include <rondo/gain.h>

#include "base/component.h"
#include "base/document/document.h"

/* The minimum gain of a recording, and the number of runs that are expected. Zeros are the defaults. */
typedef struct rondo_gain_bar {
  double least;
  uint64_t runs;
} rondo_gain_bar;

/* INVALID_ARGUMENT/OUT_OF_RANGE: `least` is negative, below 1 or not finite. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_gain_bar_check(const char *call, rondo_gain_bar bar);
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_record_policy_check(const char *call, rondo_record_policy policy);

#define RONDO_GAIN_MESSAGE 400

/* Writes why recording does not pay, and what to do, into `capacity` bytes. */
RONDO_PRIVATE void rondo_gain_explain(const rondo_gain *gain, rondo_gain_bar bar, char *buffer, size_t capacity);

/* Adds the fields to an open object, in the order of rondo_gain; in the text, the rest of a line. */
RONDO_PRIVATE void rondo_gain_describe(const rondo_gain *gain, rondo_document *out);

/* Checks the stream and the number of repeats. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_gain_check(const char *call, rondo_stream *stream, uint32_t repeats);

/* As rondo_gain_measure. If there is an exec, its launches are measured and not predicted. `call` is for messages. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_gain_take(const char *call, rondo_stream *stream,
                                                          rondo_stream_work work, void *user, rondo_exec *exec,
                                                          uint32_t repeats, rondo_gain *out);

#endif

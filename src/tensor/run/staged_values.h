/* SPDX-License-Identifier: MIT
 * Staged inputs and outputs of a compiled program (<rondo/feed.h>): their buffers, the copies between these and the
 * slots, which are enqueued like the steps of a run, and the events that say which copies of a run are done. The calls
 * of users are in feed.c.
 */
#ifndef RONDO_TENSOR_RUN_STAGED_VALUES_H
#define RONDO_TENSOR_RUN_STAGED_VALUES_H

#include "tensor/compile/layout.h"
#include "tensor/run/bounce_buffer.h"

typedef struct rondo_named_value rondo_named_value;

typedef struct rondo_staged_input {
  rondo_staging staging;
  uint32_t value; /* of the program */
  void *slot, *buffer;
  size_t bytes;
  bool is_mapped, is_written;
  rondo_stream *writer; /* DEVICE: the stream that it is mapped for, */
  rondo_event *written; /* and the event after its writes; if is_written, no run waits for it yet */
} rondo_staged_input;

typedef struct rondo_staged_output {
  uint32_t output;    /* its number in the program, */
  uint32_t operation; /* and of what computes it */
  void *slot, *buffer;
  size_t bytes;
  rondo_event *ready; /* the last run's copy is done */
} rondo_staged_output;

typedef struct rondo_feeds {
  RONDO_ARRAY(rondo_staged_input) inputs;
  RONDO_ARRAY(rondo_staged_output) outputs;
  unsigned char *host, *memory; /* the buffers: pinned, and of the device */
  size_t host_bytes, memory_bytes;
  rondo_event *taken;   /* the last run has copied all inputs; NULL without inputs */
  rondo_stream *stream; /* DEVICE: fed values are copied on this stream, */
  rondo_bounce bounce;  /* through this memory; */
  rondo_event *fed;     /* and this event is recorded after the copy, */
  bool has_fed;         /* which no run waits for yet */
  bool is_free;         /* the stream waits for `taken` of the last run already */
} rondo_feeds;

/* Checks the list. Errors: NULL_ARGUMENT (a name), BAD_OPTIONS (an unknown staging, or one that outputs cannot have; an
 * output that is not the result of an operator), DUPLICATE_NAME, NOT_FOUND/UNKNOWN_NAME. */
RONDO_MUST_USE rondo_status rondo_feeds_check(const rondo_program *program, const rondo_staged_list *staged);

/* Buffers, events and the stream. The compiled program's blocks are allocated. Errors: OUT_OF_MEMORY. Freed by deinit
 * also after a failure; the work that uses it is done then. */
RONDO_MUST_USE rondo_status rondo_feeds_init(const rondo_program *program, const rondo_layout *layout,
                                             const rondo_staged_list *staged, rondo_compiled *compiled);
RONDO_MUST_USE rondo_status rondo_feeds_deinit(rondo_compiled *compiled);

/* Fills the buffers with zeros; nothing uses them. */
RONDO_MUST_USE rondo_status rondo_feeds_clear(rondo_compiled *compiled);

/* Of an input by its value, of an output by its number; NULL when it is not staged. */
rondo_staged_input *rondo_feeds_input(const rondo_feeds *feeds, uint32_t value);
rondo_staged_output *rondo_feeds_output(const rondo_feeds *feeds, uint32_t output);

/* One copy. */
RONDO_MUST_USE rondo_status rondo_feeds_enqueue_input(const rondo_staged_input *input, rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo_feeds_enqueue_output(const rondo_staged_output *output, rondo_stream *stream);

/* The copy of an output, and its event. */
RONDO_MUST_USE rondo_status rondo_feeds_fetch(const rondo_staged_output *output, rondo_stream *stream);

/* All of them, with their events, where nothing is captured. */
RONDO_MUST_USE rondo_status rondo_feeds_enqueue_inputs(const rondo_compiled *compiled);
RONDO_MUST_USE rondo_status rondo_feeds_enqueue_outputs(const rondo_compiled *compiled);

/* Gives a staged input its bytes (rondo_compiled_feed). `value` is its name. */
RONDO_MUST_USE rondo_status rondo_feeds_write(rondo_compiled *compiled, const rondo_named_value *value,
                                              const char *call, const void *data);

/* INVALID_STATE/STILL_IN_USE while an input is mapped. */
RONDO_MUST_USE rondo_status rondo_feeds_refuse_mapped(const rondo_compiled *compiled, const char *call);

/* Before a run: lets the program's stream wait for what was fed. Errors: INVALID_STATE/STILL_IN_USE (mapped),
 * CAPTURE_REFUSED/UNSUPPORTED_CALL (fed, while the stream captures). */
RONDO_MUST_USE rondo_status rondo_feeds_before_run(rondo_compiled *compiled, const char *call);

#endif

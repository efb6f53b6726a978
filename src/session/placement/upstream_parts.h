/* SPDX-License-Identifier: MIT
 * Divided models (SE-9): a program whose operators have places on several devices is the part of the session's own
 * device and, for each other device, one part that runs *ahead* of it: such a part reads inputs of the model and its
 * own states, and hands over what it computes by host memory. So the parts that run ahead for one request have nothing
 * in common with what the session's device does for another.
 *
 * Rows of the inputs that parts ahead read are put together in staging memory, from where these copy them themselves;
 * a recording of such a part is these copies, its work, and the copies of its results. All is by who has claimed the
 * worker; each worker has streams and arenas of its own on every device.
 */
#ifndef RONDO_SESSION_PLACEMENT_UPSTREAM_PARTS_H
#define RONDO_SESSION_PLACEMENT_UPSTREAM_PARTS_H

#include "session/session_internal.h"
#include "tensor/divide/division.h"

/* What the model was told of devices. */
struct rondo_model_devices {
  rondo_device *items[RONDO_MAX_PLACES]; /* the first is the session's */
  RONDO_ARRAY(rondo_placement_rule) rules;
  rondo_place_list places;
};

/* A part on a device of its own. */
typedef struct rondo_upstream_part {
  rondo_device *device;
  rondo_compiled *compiled;
  void **addresses; /* as rondo_instance_program has them */
  rondo_graph *graph;
  rondo_exec *exec; /* NULL: not recorded */
} rondo_upstream_part;

/* What a part computes and the session's device reads. */
typedef struct rondo_transfer {
  uint32_t part;
  const void *source; /* on the part's device */
  void *destination;  /* on the session's */
  size_t offset, bytes;
} rondo_transfer;

struct rondo_upstream {
  rondo_session_model *model;
  size_t rows;
  uint64_t inputs; /* bit i: a part reads the model's input i */
  size_t bytes;    /* of host memory for what is handed over */
  RONDO_ARRAY(rondo_upstream_part) parts;
  RONDO_ARRAY(rondo_transfer) transfers;
};

static inline bool rondo_upstream_reads(const rondo_upstream *upstream, size_t input) {
  return upstream != NULL && (upstream->inputs >> input & 1) != 0;
}

/* divide_model.c: checks and keeps what the options say of devices; nothing when they say nothing. */
RONDO_MUST_USE rondo_status rondo_model_devices_check(const rondo_session *session, const rondo_model_options *options);
RONDO_MUST_USE rondo_status rondo_model_devices_fill(rondo_session_model *model, const rondo_model_options *options);
void rondo_model_devices_free(rondo_session_model *model);

/* divide_model.c: the program's parts, of which the last is that of the session's device, in the shape that was said
 * above; as the place's anchor was divided, if there is one. Freed by rondo_division_free, also after a failure. */
RONDO_MUST_USE rondo_status rondo_model_divide(const rondo_model_instance *instance, const rondo_program *program,
                                               size_t rows, rondo_division *out);

/* The parts of a division that run ahead of `compiled`, which is its last one compiled; those of the same place share
 * states and arenas. *out is NULL where none does. */
RONDO_MUST_USE rondo_status rondo_upstream_compile(const rondo_model_instance *instance, size_t rows,
                                                   const rondo_division *division, const rondo_compiled *compiled,
                                                   rondo_upstream **out);
/* Errors are those of work that nobody waited for; it is gone all the same. NULL is fine. */
void rondo_upstream_destroy(rondo_upstream *upstream, rondo_status *kept);
/* The part on the device; NULL when there is none. ahead may be NULL. */
rondo_upstream_part *rondo_upstream_find(const rondo_upstream *upstream, const rondo_device *device);
/* How a part on the device of place `place` is compiled for the worker. */
rondo_compile_options rondo_upstream_compile_options(const rondo_model_instance *instance, uint32_t place_index);

/* Bytes that a division's results take on their way. */
size_t rondo_upstream_transfer_bytes(const rondo_division *division);

/* Records all parts for inputs and outputs in this staging memory, and what is handed over in `handover`. */
RONDO_MUST_USE rondo_status rondo_upstream_record(rondo_upstream *upstream, const rondo_stage *stage,
                                                  unsigned char *transfer);

/* Queues the recordings; or, kernel by kernel, the same for any staging memory. Does not wait. */
RONDO_MUST_USE rondo_status rondo_upstream_replay(const rondo_upstream *upstream);
RONDO_MUST_USE rondo_status rondo_upstream_run_eager(const rondo_upstream *upstream, const rondo_stage *stage,
                                                     unsigned char *transfer);
/* Waits for all parts. What they found wrong comes out, unless `queued` went wrong before. */
RONDO_MUST_USE rondo_status rondo_upstream_wait(const rondo_upstream *upstream, rondo_status queued);
/* Queues the copies of what was taken on the session's device. */
RONDO_MUST_USE rondo_status rondo_upstream_copy_results(const rondo_upstream *upstream, rondo_stream *stream,
                                                        const unsigned char *transfer);

/* Writes a state or cell in every part that has it, and all states; and waits for that. */
RONDO_MUST_USE rondo_status rondo_upstream_write_state(const rondo_upstream *upstream, const char *name,
                                                       const void *data, size_t bytes, bool *out_has);
RONDO_MUST_USE rondo_status rondo_upstream_apply_weights(const rondo_upstream *upstream, const rondo_weights *weights);

/* Adds what execs and arenas of the recordings are, and of all that shares memory with an anchor's parts. */
RONDO_MUST_USE rondo_status rondo_upstream_describe(const rondo_upstream *upstream, rondo_session_graph *inout);
uint64_t rondo_upstream_arena_bytes(const rondo_upstream *upstream);
uint64_t rondo_upstream_state_bytes(const rondo_upstream *upstream);

#endif

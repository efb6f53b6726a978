/* SPDX-License-Identifier: MIT
 * Divided models (SE-9): a program whose operators have places on several devices is the part of the session's own
 * device and, for each other device, one part that runs *ahead* of it: such a part reads inputs of the model and its
 * own states, and hands over what it computes by host memory. So the parts that run ahead for one request have nothing
 * in common with what the session's device does for another.
 *
 * Rows of the inputs that parts ahead read are put together in staging memory, from where these copy them themselves;
 * a recording of such a part is these copies, its work, and the copies of its results. All is by who has claimed the
 * lane; each lane has streams and arenas of its own on every device.
 */
#ifndef RONDO_SESSION_PLACEMENT_PARTS_AHEAD_H
#define RONDO_SESSION_PLACEMENT_PARTS_AHEAD_H

#include "session/session_internal.h"
#include "tensor/divide/division.h"

/* What the model was told of devices. */
struct rondo_model_devices {
  rondo_device *items[RONDO_MAX_PLACES]; /* the first is the session's */
  RONDO_ARRAY(rondo_placement_rule) rules;
  rondo_place_list places;
};

/* A part on a device of its own. */
typedef struct rondo_ahead_part {
  rondo_device *device;
  rondo_compiled *compiled;
  void **addresses; /* as rondo_placed has them */
  rondo_graph *graph;
  rondo_exec *exec; /* NULL: not recorded */
} rondo_ahead_part;

/* What a part computes and the session's device reads. */
typedef struct rondo_handover {
  uint32_t part;
  const void *source; /* on the part's device */
  void *destination;  /* on the session's */
  size_t offset, bytes;
} rondo_handover;

struct rondo_ahead {
  rondo_session_model *model;
  size_t rows;
  uint64_t inputs; /* bit i: a part reads the model's input i */
  size_t bytes;    /* of host memory for what is handed over */
  RONDO_ARRAY(rondo_ahead_part) parts;
  RONDO_ARRAY(rondo_handover) handovers;
};

static inline bool rondo_ahead_reads(const rondo_ahead *ahead, size_t input) {
  return ahead != NULL && (ahead->inputs >> input & 1) != 0;
}

/* divide_model.c: checks and keeps what the options say of devices; nothing when they say nothing. */
RONDO_MUST_USE rondo_status rondo_model_devices_check(const rondo_session *session, const rondo_model_options *options);
RONDO_MUST_USE rondo_status rondo_model_devices_fill(rondo_session_model *model, const rondo_model_options *options);
void rondo_model_devices_free(rondo_session_model *model);

/* divide_model.c: the program's parts, of which the last is that of the session's device, in the shape that was said
 * above; as the place's anchor was divided, if there is one. Freed by rondo_division_free, also after a failure. */
RONDO_MUST_USE rondo_status rondo_model_divide(const rondo_model_instance *place, const rondo_program *program,
                                               size_t rows, rondo_division *out);

/* The parts of a division that run ahead of `compiled`, which is its last one compiled; those of the same place share
 * states and arenas. *out is NULL where none does. */
RONDO_MUST_USE rondo_status rondo_ahead_compile(const rondo_model_instance *place, size_t rows,
                                                const rondo_division *division, const rondo_compiled *compiled,
                                                rondo_ahead **out);
/* Errors are those of work that nobody waited for; it is gone all the same. NULL is fine. */
void rondo_ahead_destroy(rondo_ahead *ahead, rondo_status *kept);
/* The part on the device; NULL when there is none. ahead may be NULL. */
rondo_ahead_part *rondo_ahead_find(const rondo_ahead *ahead, const rondo_device *device);
/* How a part on the device of place `place` is compiled for the lane. */
rondo_compile_options rondo_ahead_options(const rondo_model_instance *place, uint32_t of_place);

/* Bytes that a division's results take on their way. */
size_t rondo_ahead_bytes(const rondo_division *division);

/* Records all parts for inputs and outputs in this staging memory, and what is handed over in `handover`. */
RONDO_MUST_USE rondo_status rondo_ahead_record(rondo_ahead *ahead, const rondo_stage *stage, unsigned char *handover);

/* Queues the recordings; or, kernel by kernel, the same for any staging memory. Does not wait. */
RONDO_MUST_USE rondo_status rondo_ahead_replay(const rondo_ahead *ahead);
RONDO_MUST_USE rondo_status rondo_ahead_run(const rondo_ahead *ahead, const rondo_stage *stage,
                                            unsigned char *handover);
/* Waits for all parts. What they found wrong comes out, unless `queued` went wrong before. */
RONDO_MUST_USE rondo_status rondo_ahead_take(const rondo_ahead *ahead, rondo_status queued);
/* Queues the copies of what was taken on the session's device. */
RONDO_MUST_USE rondo_status rondo_ahead_hand_over(const rondo_ahead *ahead, rondo_stream *stream,
                                                  const unsigned char *handover);

/* Writes a state or cell in every part that has it, and all states; and waits for that. */
RONDO_MUST_USE rondo_status rondo_ahead_write(const rondo_ahead *ahead, const char *name, const void *data,
                                              size_t bytes, bool *out_has);
RONDO_MUST_USE rondo_status rondo_ahead_apply(const rondo_ahead *ahead, const rondo_weights *weights);

/* Adds what execs and arenas of the recordings are, and of all that shares memory with an anchor's parts. */
RONDO_MUST_USE rondo_status rondo_ahead_describe(const rondo_ahead *ahead, rondo_session_graph *inout);
uint64_t rondo_ahead_arenas(const rondo_ahead *ahead);
uint64_t rondo_ahead_states(const rondo_ahead *ahead);

#endif

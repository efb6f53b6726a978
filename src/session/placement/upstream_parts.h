/* SPDX-License-Identifier: MIT
 * Models divided over several devices (SE-9). The part of a program on the session's device is its main part. Each
 * other device has one upstream part, which runs before it: it reads inputs of the model and its own states, and its
 * results are transferred to the main part through host memory. So the upstream parts of one request and the main part
 * of another run at the same time.
 *
 * The rows of inputs that upstream parts read are collected in staging memory, and the parts copy them from there. The
 * recording of an upstream part consists of these copies, its work, and the copies of its results. Only the thread that
 * has claimed the worker uses the parts; each worker has a stream and an arena on every device.
 */
#ifndef RONDO_SESSION_PLACEMENT_UPSTREAM_PARTS_H
#define RONDO_SESSION_PLACEMENT_UPSTREAM_PARTS_H

#include "session/session_internal.h"
#include "tensor/divide/division.h"

/* The devices and placement rules of a model. */
struct rondo_model_devices {
  rondo_device *items[RONDO_MAX_PLACES]; /* the first is the session's device */
  RONDO_ARRAY(rondo_placement_rule) rules;
  rondo_placement_list places;
};

/* One upstream part, on a device of its own. */
typedef struct rondo_upstream_part {
  rondo_device *device;
  rondo_compiled *compiled;
  void **addresses; /* as in rondo_instance_program */
  rondo_graph *graph;
  rondo_exec *exec; /* NULL: not recorded */
} rondo_upstream_part;

/* A result of a part that the main part reads. */
typedef struct rondo_transfer {
  uint32_t part;
  const void *source; /* on the part's device */
  void *destination;  /* on the session's device */
  size_t offset, bytes;
} rondo_transfer;

struct rondo_upstream {
  rondo_session_model *model;
  size_t rows;
  uint64_t inputs; /* bit i: a part reads input i of the model */
  size_t bytes;    /* of host memory for all transfers */
  RONDO_ARRAY(rondo_upstream_part) parts;
  RONDO_ARRAY(rondo_transfer) transfers;
};

static inline bool rondo_upstream_reads(const rondo_upstream *upstream, size_t input) {
  return upstream != NULL && (upstream->inputs >> input & 1) != 0;
}

/* divide_model.c. Checks the devices and rules in the options; copies them into the model; frees them. Without devices
 * these functions do nothing. */
RONDO_MUST_USE rondo_status rondo_model_devices_check(const rondo_session *session, const rondo_model_options *options);
RONDO_MUST_USE rondo_status rondo_model_devices_fill(rondo_session_model *model, const rondo_model_options *options);
void rondo_model_devices_free(rondo_session_model *model);

/* divide_model.c. Divides the program; the last part is the main part. Fails if the division cannot be served, or
 * differs from that of the instance's anchor. The caller frees it with rondo_division_free, also after a failure. */
RONDO_MUST_USE rondo_status rondo_model_divide(const rondo_model_instance *instance, const rondo_program *program,
                                               size_t rows, rondo_division *out);

/* Compiles the upstream parts of a division; `compiled` is its compiled main part. Parts of one instance share states
 * and arenas. *out is NULL if there are none. */
RONDO_MUST_USE rondo_status rondo_upstream_compile(const rondo_model_instance *instance, size_t rows,
                                                   const rondo_division *division, const rondo_compiled *compiled,
                                                   rondo_upstream **out);
/* Always destroys the parts. Keeps a failure of earlier work that nobody has waited for. NULL is allowed. */
void rondo_upstream_destroy(rondo_upstream *upstream, rondo_status *kept);
/* The part on the device; NULL: there is none. `upstream` may be NULL. */
rondo_upstream_part *rondo_upstream_find(const rondo_upstream *upstream, const rondo_device *device);
/* The options to compile the part on this device for the instance. */
rondo_compile_options rondo_upstream_compile_options(const rondo_model_instance *instance, uint32_t device_index);

/* Bytes of host memory that the transfers of a division need. */
size_t rondo_upstream_transfer_bytes(const rondo_division *division);

/* Records all parts with this staging memory and this memory for transfers. */
RONDO_MUST_USE rondo_status rondo_upstream_record(rondo_upstream *upstream, const rondo_stage *stage,
                                                  unsigned char *transfer);

/* Enqueues the recordings; enqueues the parts eagerly, with any staging memory. Neither waits. */
RONDO_MUST_USE rondo_status rondo_upstream_replay(const rondo_upstream *upstream);
RONDO_MUST_USE rondo_status rondo_upstream_run_eager(const rondo_upstream *upstream, const rondo_stage *stage,
                                                     unsigned char *transfer);
/* Waits for all parts, also after a failure, because they use memory of the instance. Returns `enqueued` if that is a
 * failure, otherwise the first failure of a part. */
RONDO_MUST_USE rondo_status rondo_upstream_wait(const rondo_upstream *upstream, rondo_status enqueued);
/* Enqueues the copies of the transferred results to the session's device. */
RONDO_MUST_USE rondo_status rondo_upstream_copy_results(const rondo_upstream *upstream, rondo_stream *stream,
                                                        const unsigned char *transfer);

/* Writes a state or cell in every part that has it; applies weights to all states. Both wait until the work is done. */
RONDO_MUST_USE rondo_status rondo_upstream_write_state(const rondo_upstream *upstream, const char *name,
                                                       const void *data, size_t bytes, bool *out_has);
RONDO_MUST_USE rondo_status rondo_upstream_apply_weights(const rondo_upstream *upstream, const rondo_weights *weights);

/* Adds the sizes of the recordings to *inout; returns the bytes of arenas; returns the bytes of states that are not
 * shared. */
RONDO_MUST_USE rondo_status rondo_upstream_describe(const rondo_upstream *upstream, rondo_session_graph *inout);
uint64_t rondo_upstream_arena_bytes(const rondo_upstream *upstream);
uint64_t rondo_upstream_state_bytes(const rondo_upstream *upstream);

#endif

/* SPDX-License-Identifier: MIT
 * Recordings: one piece of work, captured once and replayed, with memory of its own. A recording is a capture
 * (<rondo/capture.h>), its graph, an exec (<rondo/exec.h>) and a private pool of graph memory in one object, for
 * programs that record by hand. Any program that puts its work on a stream can be recorded so; the first time it runs
 * as ever, because that is when libraries and allocators make themselves ready:
 *
 *   TRY(rondo_recording_create(device, NULL, &recording));
 *   for (size_t batch = 0; batch < count; batch++) {
 *     TRY(write_input(batch));                          // to memory that was allocated before the capture
 *     if (batch == 0 || is_short(batch)) {
 *       TRY(run(stream));                               // runs un-recorded
 *     } else {
 *       if (batch == 1) {
 *         TRY(rondo_recording_capture_begin(recording, stream, RONDO_CAPTURE_THREAD_LOCAL));
 *         TRY(run(stream));                             // is recorded, does not run
 *         TRY(rondo_recording_capture_end(recording, stream));
 *       }
 *       TRY(rondo_recording_replay(recording, stream));  // or this batch is never run
 *     }
 *     TRY(read_output(batch));
 *   }
 *   TRY(rondo_recording_destroy(recording));
 *
 * What is recorded is fixed: the work, its order, the addresses and the values of kernels' scalar parameters. What is
 * to change from replay to replay stands in device memory:
 * - Inputs and outputs: memory that is there before the capture, written before a replay and read behind it. Feeding
 *   from host memory and fetching to it while capturing is refused, because at a replay that host memory would be
 *   another, or gone: see rondo_recording_options.lasting_host_memory. So is waiting for the stream (C6).
 * - Numbers such as a learning rate: a cell in device memory that kernels read, written between replays
 *   (rondo_program_cell is one).
 * - Random numbers: generators (<rondo/random.h>) draw further at each replay, as plain runs do.
 * - What the host decides by looking at values cannot be recorded: rondo_recording_note_decision.
 *
 * Memory. What is allocated in the capture comes from the recording's own pool: no other graph and no allocation
 * outside ever has it. It is mapped when the capture ends, so that replays ask for nothing. What the captured work
 * does not free itself can be used behind the first replay, at the same address for ever, and is the recording's: it
 * ends with the reset. Where the device's memory does not suffice, what its pools and other streams' graph memory hold
 * idle makes room first (rondo_memory_trim does that ahead).
 *
 * A recording is thread-compatible; recordings are independent of each other, and so are their captures, within what
 * the modes forbid (C9). Destroying and resetting disturbs no other capture.
 */
#ifndef RONDO_RECORDING_H
#define RONDO_RECORDING_H

#include <rondo/capture.h>
#include <rondo/exec.h>
#include <rondo/profile.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_recording rondo_recording;

typedef struct rondo_recording_options {
  uint32_t struct_size; /* RONDO_RECORDING_OPTIONS_INIT sets it; 0 means the library's own */
  bool relocate; /* choose the addresses of what the work frees itself when the capture ends, by a plan of all of it
                    (rondo_instantiate_options.relocate) */
  bool lasting_host_memory; /* host memory that copies and fills name stays what it is, at its address, until the reset:
                               the caller sees to it. Else they may name memory of rondo_host_malloc only (on CUDA also
                               memory that others have page-locked) */
  const char *name;         /* for messages; copied; may be NULL */
  rondo_profile *profile;   /* planned addresses (rondo_graph_options.profile); held until the recording is destroyed;
                               may be NULL. Not together with relocate */
  const rondo_plan_options *plan; /* for relocate; copied; NULL = the planner's default */
} rondo_recording_options;
#define RONDO_RECORDING_OPTIONS_INIT .struct_size = sizeof(rondo_recording_options)

/* An empty recording. options may be NULL. The caller destroys it. Thread-safe. Errors: INVALID_ARGUMENT with
 * NULL_ARGUMENT, BAD_OPTIONS; OUT_OF_MEMORY, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_recording_create(rondo_device *device,
                                                             const rondo_recording_options *options,
                                                             rondo_recording **out_recording);

/* Resets it and frees it. NULL is fine. Errors: INVALID_STATE/ALREADY_CAPTURING while it captures: end that, or reset,
 * first; IN_CALLBACK. It is then as before. */
RONDO_API RONDO_MUST_USE rondo_status rondo_recording_destroy(rondo_recording *recording);

/* Begins to record what is given to the stream, as rondo_capture_begin, whose rules hold. Errors: INVALID_STATE with
 * ALREADY_CAPTURED (it holds a capture: reset it first) or ALREADY_CAPTURING (it captures now); what
 * rondo_capture_begin_with returns: CAPTURE_REFUSED/ALREADY_CAPTURING for a stream that captures; INVALID_ARGUMENT with
 * NULL_ARGUMENT, OTHER_DEVICE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_recording_capture_begin(rondo_recording *recording, rondo_stream *stream,
                                                                    rondo_capture_mode mode);

/* Ends the capture, makes it ready and maps its memory; nothing runs before the first replay. Errors, with which the
 * capture goes on: INVALID_ARGUMENT; CAPTURE_REFUSED with UNMATCHED_STREAM (it began on another stream) or
 * WRONG_THREAD. Errors with which the recording is empty, as after a reset, and nothing is held:
 *   INVALID_STATE/NOT_CAPTURING (also when somebody else ended the capture);
 *   CAPTURE_INVALID/INVALIDATED, CAPTURE_REFUSED/UNJOINED and what else rondo_capture_end returns;
 *   CAPTURE_REFUSED/WRONG_MEMORY: a copy or fill names host memory that may be another, or gone, at a replay, with the
 *     node;
 *   UNSUPPORTED/HOST_DECISION: a library captured a conditional node, with the node;
 *   what rondo_instantiate and rondo_exec_upload return, OUT_OF_MEMORY among them. */
RONDO_API RONDO_MUST_USE rondo_status rondo_recording_capture_end(rondo_recording *recording, rondo_stream *stream);

/* Queues the recorded work on any stream of the device, behind earlier replays. Does not allocate, lock or wait. What
 * the recorded work allocates and does not free stays allocated from the first replay on; its contents change at each.
 * Errors: INVALID_STATE with NOT_CAPTURED (nothing was captured yet), WAS_RESET (nothing since the reset) or
 * ALREADY_CAPTURING (the capture must end first); INVALID_LIFETIME/USE_AFTER_FREE: memory of rondo_host_malloc that the
 * recorded work names was freed, with the node; CAPTURE_REFUSED/UNSUPPORTED_CALL on a stream that captures, which makes
 * that capture invalid: a recording's memory is nobody else's; what rondo_exec_launch returns. */
RONDO_API RONDO_MUST_USE rondo_status rondo_recording_replay(rondo_recording *recording, rondo_stream *stream);

/* Makes it empty, so that it can capture anew; any number of times, in any state. Waits for its replays, then gives all
 * its memory back: what the recorded work left allocated is freed, and nothing else may use it by then. A capture that
 * goes on is ended and dropped; if another thread began it, or its stream was destroyed, it becomes invalid instead,
 * and ends with rondo_capture_end. Never fails and leaves rondo_last_error alone; does nothing in a host function. NULL
 * is fine. */
RONDO_API void rondo_recording_reset(rondo_recording *recording);

typedef enum rondo_recording_state {
  RONDO_RECORDING_EMPTY = 0,
  RONDO_RECORDING_CAPTURING = 1,
  RONDO_RECORDING_READY = 2 /* to be replayed */
} rondo_recording_state;

typedef struct rondo_recording_info {
  uint32_t struct_size;
  rondo_recording_state state;
  uint32_t node_count; /* of the captured graph, with those of child graphs; 0 unless ready, as what follows */
  uint32_t reserved;   /* 0 */
  uint64_t pool_bytes; /* physical memory of its pool */
  uint64_t host_bytes; /* of the exec (rondo_exec_info), and the next two */
  uint64_t device_bytes;
  uint64_t foreign_bytes;
  uint64_t captures; /* that ended well, of all its life, and the next two */
  uint64_t replays;
  uint64_t resets; /* that there was something to do for */
} rondo_recording_info;

/* State, sizes and counters, as they are now. Errors: INVALID_ARGUMENT, IN_CALLBACK. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_recording_get_info(const rondo_recording *recording,
                                                               rondo_recording_info *out_info);

/* The captured graph, to dump, verify and report, and the exec made of it, to measure and to change parameters of
 * (rondo_exec_set_params; what host memory these name is then the caller's care); NULL unless ready, and for NULL. They
 * go with the reset: do not destroy them. Launch by rondo_recording_replay. */
RONDO_API const rondo_graph *rondo_recording_graph(const rondo_recording *recording);
RONDO_API rondo_exec *rondo_recording_exec(const rondo_recording *recording);

/* What the host decides by looking at values while it gives work to a stream. A capture would keep one outcome for
 * ever. */
typedef enum rondo_decision {
  RONDO_DECISION_CONDITIONAL = 1, /* which of several pieces of work is given */
  RONDO_DECISION_LOOP = 2,        /* how often */
  RONDO_DECISION_LOSS_SCALE = 3   /* a new loss scale, and whether a step counts */
} rondo_decision;

/* For front ends to say where such a decision is made, by its name in the program; may be NULL. Outside of captures it
 * does nothing. While the stream captures: UNSUPPORTED/HOST_DECISION with the name and the remedy, and the capture
 * becomes invalid. Other errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS; CAPTURE_INVALID, IN_CALLBACK.
 * Thread-compatible with respect to the stream. */
RONDO_API RONDO_MUST_USE rondo_status rondo_recording_note_decision(rondo_stream *stream, rondo_decision decision,
                                                                    const char *name);

RONDO_EXTERN_C_END

#endif

/* SPDX-License-Identifier: MIT
 * Recordings: work that is captured once and replayed, with its own memory. A recording is a capture
 * (<rondo/capture.h>), its graph, an exec (<rondo/exec.h>) and a private pool of graph memory in one object, for
 * programs that record explicitly. Any program that enqueues its work on a stream can be recorded in this way. Run the
 * work eagerly once before the capture, because libraries and allocators initialize themselves in the first run:
 *
 *   TRY(rondo_recording_create(device, NULL, &recording));
 *   for (size_t batch = 0; batch < count; batch++) {
 *     TRY(write_input(batch));                          // to memory that was allocated before the capture
 *     if (batch == 0 || is_short(batch)) {
 *       TRY(run(stream));                               // runs eagerly
 *     } else {
 *       if (batch == 1) {
 *         TRY(rondo_recording_capture_begin(recording, stream, RONDO_CAPTURE_THREAD_LOCAL));
 *         TRY(run(stream));                             // is recorded, does not run
 *         TRY(rondo_recording_capture_end(recording, stream));
 *       }
 *       TRY(rondo_recording_replay(recording, stream));  // without it, this batch would not run
 *     }
 *     TRY(read_output(batch));
 *   }
 *   TRY(rondo_recording_destroy(recording));
 *
 * A recording fixes the work, its order, the addresses and the values of scalar arguments of kernels. Data that changes
 * from replay to replay must be in device memory:
 * - Inputs and outputs: memory that is allocated before the capture, written before a replay and read after it. Copies
 *   from and to host memory during the capture are refused, because at a replay the host memory may be gone or used for
 *   something else (see rondo_recording_options.lasting_host_memory). Waiting for the stream is refused too (C6).
 * - Numbers such as a learning rate: a cell in device memory that kernels read, written between replays
 *   (rondo_program_cell is one).
 * - Random numbers: at each replay, generators (<rondo/random.h>) draw new numbers, as in eager runs.
 *
 * Decisions that the host makes by reading values cannot be recorded: see rondo_recording_note_decision.
 *
 * Memory. Allocations in the capture come from the recording's own pool, which no other graph and no allocation outside
 * uses. The pool is mapped when the capture ends, so replays allocate nothing. Memory that the captured work does not
 * free can be used after the first replay, always at the same address. It belongs to the recording and is freed by the
 * reset. If the device's memory does not suffice, idle memory of its pools and of other streams' graph memory is freed
 * first (rondo_memory_trim does that in advance).
 *
 * A recording is thread-compatible. Recordings and their captures are independent of each other, except for what the
 * capture modes forbid (C9). Destroying and resetting disturbs no other capture.
 */
#ifndef RONDO_RECORDING_H
#define RONDO_RECORDING_H

#include <rondo/capture.h>
#include <rondo/exec.h>
#include <rondo/profile.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_recording rondo_recording;

typedef struct rondo_recording_options {
  uint32_t struct_size;           /* RONDO_RECORDING_OPTIONS_INIT sets it; 0 means the library's own */
  bool relocate;                  /* when the capture ends, plan new addresses for all memory that the work itself frees
                                     (rondo_instantiate_options.relocate) */
  bool lasting_host_memory;       /* the caller promises that host memory named by copies and fills stays valid, at its
                                     address, until the reset. Without it they may name only memory of
                                     rondo_host_malloc (on CUDA also memory that other libraries have page-locked) */
  const char *name;               /* for messages; copied; may be NULL */
  rondo_profile *profile;         /* planned addresses (rondo_graph_options.profile); retained until the recording is
                                     destroyed; may be NULL. Not together with relocate */
  const rondo_plan_options *plan; /* for relocate; copied; NULL = the planner's default */
} rondo_recording_options;
#define RONDO_RECORDING_OPTIONS_INIT .struct_size = sizeof(rondo_recording_options)

/* Creates an empty recording. options may be NULL. The caller destroys it. Thread-safe. Errors: INVALID_ARGUMENT with
 * NULL_ARGUMENT, BAD_OPTIONS; OUT_OF_MEMORY, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_recording_create(rondo_device *device,
                                                             const rondo_recording_options *options,
                                                             rondo_recording **out_recording);

/* Resets the recording and frees it. NULL is fine. Errors: INVALID_STATE/ALREADY_CAPTURING while it captures (end the
 * capture or reset the recording first); IN_CALLBACK. After an error nothing has changed. */
RONDO_API RONDO_MUST_USE rondo_status rondo_recording_destroy(rondo_recording *recording);

/* Begins to record the work that is enqueued on the stream, by the rules of rondo_capture_begin. Errors: INVALID_STATE
 * with ALREADY_CAPTURED (it holds a capture: reset it first) or ALREADY_CAPTURING (it is capturing); those of
 * rondo_capture_begin_with: CAPTURE_REFUSED/ALREADY_CAPTURING for a stream that captures; INVALID_ARGUMENT with
 * NULL_ARGUMENT, OTHER_DEVICE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_recording_capture_begin(rondo_recording *recording, rondo_stream *stream,
                                                                    rondo_capture_mode mode);

/* Ends the capture, instantiates the graph and maps its memory. Nothing runs before the first replay. Errors after
 * which the capture continues: INVALID_ARGUMENT; CAPTURE_REFUSED with UNMATCHED_STREAM (it began on another stream) or
 * WRONG_THREAD. Errors after which the recording is empty, as after a reset:
 *   INVALID_STATE/NOT_CAPTURING (also if the capture was ended elsewhere);
 *   CAPTURE_INVALID/INVALIDATED, CAPTURE_REFUSED/UNJOINED and other errors of rondo_capture_end;
 *   CAPTURE_REFUSED/WRONG_MEMORY: a copy or fill names host memory that may have changed or be gone at a replay, with
 *   the node;
 *   UNSUPPORTED/HOST_DECISION: a library captured a conditional node, with the node;
 *   those of rondo_instantiate and rondo_exec_upload, for example OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_recording_capture_end(rondo_recording *recording, rondo_stream *stream);

/* Enqueues the recorded work on any stream of the device, after earlier replays. Does not allocate, lock or wait.
 * Memory that the recorded work allocates and does not free is allocated from the first replay on; each replay
 * overwrites it. Errors: INVALID_STATE with NOT_CAPTURED (nothing was captured yet), WAS_RESET (nothing was captured
 * since the reset) or ALREADY_CAPTURING (end the capture first); INVALID_LIFETIME/USE_AFTER_FREE: memory of
 * rondo_host_malloc that the recorded work names was freed, with the node; CAPTURE_REFUSED/UNSUPPORTED_CALL on a stream
 * that captures, because a recording's memory cannot be part of another graph; this invalidates that capture; those of
 * rondo_exec_launch. */
RONDO_API RONDO_MUST_USE rondo_status rondo_recording_replay(rondo_recording *recording, rondo_stream *stream);

/* Makes the recording empty, so that it can capture again. May be called any number of times, in any state. Waits for
 * its replays, then frees all its memory, including what the recorded work left allocated; nothing else may use that
 * memory any more. An active capture is ended and dropped. If another thread began the capture, or its stream was
 * destroyed, the capture is invalidated instead, and must still be ended with rondo_capture_end. Never fails, and does
 * not change rondo_last_error. Does nothing in a host function. NULL is fine. */
RONDO_API void rondo_recording_reset(rondo_recording *recording);

typedef enum rondo_recording_state {
  RONDO_RECORDING_EMPTY = 0,
  RONDO_RECORDING_CAPTURING = 1,
  RONDO_RECORDING_READY = 2 /* can be replayed */
} rondo_recording_state;

typedef struct rondo_recording_info {
  uint32_t struct_size;
  rondo_recording_state state;
  uint32_t node_count; /* of the captured graph and its child graphs; like the following sizes 0 unless READY */
  uint32_t reserved;   /* 0 */
  uint64_t pool_bytes; /* physical memory of its pool */
  uint64_t host_bytes; /* of the exec, as the next two (rondo_exec_info) */
  uint64_t device_bytes;
  uint64_t foreign_bytes;
  uint64_t captures; /* successful captures since the recording was created */
  uint64_t replays;  /* since the recording was created */
  uint64_t resets;   /* resets of a recording that was not empty */
} rondo_recording_info;

/* Reads the state, sizes and counters. Errors: INVALID_ARGUMENT, IN_CALLBACK. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_recording_get_info(const rondo_recording *recording,
                                                               rondo_recording_info *out_info);

/* Return the captured graph, to dump, verify and report it, and the exec, to measure it and to change its parameters
 * (rondo_exec_set_params; the caller must keep host memory that these name valid). NULL unless the recording is READY.
 * The recording owns both: do not destroy them; a reset does. Launch the exec with rondo_recording_replay. */
RONDO_API const rondo_graph *rondo_recording_graph(const rondo_recording *recording);
RONDO_API rondo_exec *rondo_recording_exec(const rondo_recording *recording);

/* Decisions that the host makes by reading values while it enqueues work. A capture would keep one outcome for all
 * replays. */
typedef enum rondo_decision {
  RONDO_DECISION_CONDITIONAL = 1, /* which of several pieces of work to enqueue */
  RONDO_DECISION_LOOP = 2,        /* how often to enqueue it */
  RONDO_DECISION_LOSS_SCALE = 3   /* the next loss scale, and whether a step is skipped */
} rondo_decision;

/* Front ends call this where such a decision is made. `name` is its name in the program; may be NULL. Without a capture
 * the call does nothing. While the stream captures, it returns UNSUPPORTED/HOST_DECISION with the name and the fix, and
 * invalidates the capture. Other errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS; CAPTURE_INVALID,
 * IN_CALLBACK. Thread-compatible with respect to the stream. */
RONDO_API RONDO_MUST_USE rondo_status rondo_recording_note_decision(rondo_stream *stream, rondo_decision decision,
                                                                    const char *name);

RONDO_EXTERN_C_END

#endif

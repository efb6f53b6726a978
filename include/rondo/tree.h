/* SPDX-License-Identifier: MIT
 * Trees: automatic recording of any C function. A callback that is registered with a tree is a *function*. Its first
 * call is a warm-up, its second call is recorded, and later calls are replayed: one launch instead of everything that
 * the body would enqueue. The recordings of one step, in order, form a *path*. Paths with the same beginning share the
 * recordings of that beginning. All recordings of a tree share one arena, whose size is that of the largest path, not
 * the sum of all (TR-1 to TR-4).
 *
 *   static rondo_status twice(rondo_call *call, void *user) {
 *     void *y;
 *     TRY(rondo_call_output(call, 0, bytes, NULL, &y));
 *     return launch_twice(rondo_call_stream(call), rondo_call_input(call, 0), y);
 *   }
 *
 *   rondo_function_create(tree, &(rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .name = "twice", .body = twice,
 *                               RONDO_INPUTS(RONDO_INPUT_MOVING)}, &function);
 *   for (;;) {
 *     rondo_tree_mark_step(tree);
 *     rondo_function_call(function, stream, &(rondo_input){.address = x, .bytes = bytes}, 1, &y, 1);
 *     ... use y ...
 *     rondo_buffer_release(y);
 *   }
 *
 * Steps. The outputs of a step are valid until the first call of the next step (rondo_tree_options.outputs). Reading
 * one later is an error in every state, whether the call that returned it was recorded or not (TR-9). A step is
 * everything between two calls of rondo_tree_mark_step; or a scope, from rondo_tree_step_begin to rondo_tree_step_end.
 * If neither is used, every call is a step, except that calls belong to one step while a backward is pending
 * (rondo_function_kind).
 *
 * A recording is replayed if all of the following are as they were when it was recorded (TR-5): the path before it;
 * each input's bytes, type and shape; the addresses of static inputs; for an input that is an output of the path, which
 * output it is, unless that keeps changing (rondo_demotion). Also, every output of the path that nobody held at that
 * time must not be held now. Otherwise another recording is made; the old one is used again when it matches again. The
 * tree counts which calls were replayed, recorded and run eagerly, and why, and can explain it (TR-8).
 *
 * A body must enqueue the same work whenever it is called with inputs of the same form. What it reads on the host, and
 * values that it passes to kernels, are fixed by the call that was recorded. So are the addresses of host memory that
 * its copies read and write. Replays use this host memory again, so it must outlive the recording. A local variable of
 * the body no longer exists then, and a replayed copy to it writes to whatever is on the stack; no device detects that.
 * The audit does (<rondo/audit.h>); sessions run it for the functions that they serve.
 *
 * A tree is thread-compatible, and so are its functions: calls from two threads at the same time are detected and
 * refused (CONCURRENT_USE). Buffers may be retained and released from any thread. Several trees may share a device. The
 * model is PyTorch's CUDAGraph Trees (torch/_inductor/cudagraph_trees.py); where the two differ, the comments describe
 * Rondo.
 */
#ifndef RONDO_TREE_H
#define RONDO_TREE_H

#include <rondo/gain.h>
#include <rondo/memory.h>
#include <rondo/plan.h>
#include <rondo/stream.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_tree rondo_tree;
typedef struct rondo_function rondo_function;
typedef struct rondo_call rondo_call;     /* one run of a body; valid while it runs */
typedef struct rondo_buffer rondo_buffer; /* a reference-counted handle of memory */

#define RONDO_TREE_MAX_RANK 8

/* Why a call ran eagerly instead of being recorded or replayed. */
typedef enum rondo_skip {
  RONDO_SKIP_NONE = 0,
  RONDO_SKIP_WARM_UP,       /* the form of the inputs is new, or the body asked for another warm-up */
  RONDO_SKIP_AFTER_WARM_UP, /* an earlier call on the path ran eagerly, so addresses are not fixed (TR-2) */
  RONDO_SKIP_MUTATED_INPUT, /* it writes to a moving input that is not declared RONDO_INPUT_MUTATED (TR-6), or to bytes
                               that a moving input shares with another input */
  RONDO_SKIP_HOST_WORK,     /* it waits for the device or queries it, accesses memory of the device on the host, or
                               takes a host step where none is allowed */
  RONDO_SKIP_SEVERAL_DEVICES,      /* it uses the stream or memory of another device */
  RONDO_SKIP_UNKNOWN_SHAPE,        /* the body called rondo_call_refuse */
  RONDO_SKIP_UNSAFE,               /* the body called rondo_call_refuse, or the function's options say so */
  RONDO_SKIP_UNSAFE_DETERMINISTIC, /* the same, in a tree with rondo_tree_options.deterministic */
  RONDO_SKIP_CHANGING_SHAPES,      /* rondo_function_options.static_shapes: only the first form is recorded */
  RONDO_SKIP_SHAPE_LIMIT,          /* rondo_function_options.max_shapes */
  RONDO_SKIP_RECORDING_LIMIT,      /* rondo_tree_options.max_recordings_per_parent; or max_recordings, and all existing
                                      recordings belong to the path or are held */
  RONDO_SKIP_MEMORY_LIMIT,         /* rondo_tree_options.max_bytes, or the device has no more memory */
  RONDO_SKIP_TOO_SMALL,            /* fewer nodes than rondo_function_options.min_nodes */
  RONDO_SKIP_DISABLED,             /* rondo_tree_set_recording, rondo_function_set_recording */
  RONDO_SKIP_REFUSED,              /* by rondo_tree_options.should_record */
  RONDO_SKIP_CAPTURING,            /* the caller's stream captures: the body's work becomes part of that capture. Its
                                      outputs are memory of that graph; the caller frees them in the capture, or keeps
                                      them */
  RONDO_SKIP_NESTED,               /* called inside another body, and part of that body's work */
  RONDO_SKIP_OTHER_WORK,           /* the body's work cannot be recorded (the driver or verification says why), or some
                                      of it is stray: on a stream of the device that the body did not fork */
  RONDO_SKIP_KEPT_MEMORY,          /* it allocated memory that it neither freed nor returned as an output */
  RONDO_SKIP_CHANGED,       /* in the recording it did not do the same as before: other outputs, host steps or kept
                               inputs; or values that are not inputs changed */
  RONDO_SKIP_DEPARTED,      /* it made other allocations than in its warm-up; it is recorded at the next call */
  RONDO_SKIP_MOVING_OUTPUT, /* an input was too often a different output of the path (RONDO_DEMOTION_SKIP) */
  RONDO_SKIP_NO_GAIN,       /* RONDO_RECORD_AUTO predicts too small a gain: the message has the figures */
  RONDO_SKIP_CAPTURE_DIED,  /* while the call was recorded, another thread waited for the device (C6), or the driver
                               ended the capture because of a call of a library: the message says what is known of the
                               call. The next call is recorded. If that dies too, 1, 3, 7, ..., at most 1023 calls run
                               eagerly before the next recording */
  RONDO_SKIP_ROOM = 32      /* length of arrays of counters by reason */
} rondo_skip;

/* "MUTATED_INPUT"; "UNKNOWN" for another number. Thread-safe. */
RONDO_API const char *rondo_skip_name(rondo_skip skip);

/* Trees ------------------------------------------------------------------------------------------------------------ */

/* What happens to outputs that are still held when their step ends. */
typedef enum rondo_output_policy {
  RONDO_OUTPUTS_EXPIRE = 0, /* reading them is an error */
  RONDO_OUTPUTS_CLONE = 1   /* they are copied to their own memory, and stay valid until they are released */
} rondo_output_policy;

/* A function that is about to be recorded. */
typedef struct rondo_recording_question {
  uint32_t struct_size;
  uint32_t recordings; /* number of recordings that the function has */
  const char *function;
  rondo_function *asked;
} rondo_recording_question;

typedef struct rondo_tree_options {
  uint32_t struct_size; /* RONDO_TREE_OPTIONS_INIT sets it; 0 means the library's own */
  rondo_output_policy outputs;
  const char *name;        /* for messages; copied; may be NULL */
  uint64_t max_bytes;      /* of the arena; 0 = as much as the device has */
  uint64_t initial_bytes;  /* of the arena: memory that is allocated when the tree is created */
  uint32_t max_recordings; /* of the tree; beyond it, the least recently used recordings are evicted, with all
                              recordings after them on their paths; 0 = 4096 */
  uint32_t max_recordings_per_parent; /* of one function after one recording; 0 = 128 */
  uint64_t max_exec_bytes; /* host and device memory of all execs. Beyond it, recordings of the same work share an exec;
                              otherwise the least recently used recordings are evicted. No call is refused because of
                              it: if all remaining recordings belong to the path, execs are made beyond the limit
                              (exec_overruns). 0 = no limit */
  bool strict;             /* a call that cannot be recorded fails, instead of running eagerly */
  bool deterministic;      /* functions that are unsafe_deterministic are not recorded */
  bool no_host_steps;      /* bodies with host steps are not recorded (TR-14) */
  bool share_execs;        /* recordings of the same work at other addresses share one exec from the start: less device
                              memory, but an update whenever they alternate */
  bool (*should_record)(void *user,
                        const rondo_recording_question *question); /* NULL = always; must not use the tree */
  void *user;
  uint32_t plan_after; /* after this many paths in a row without a new recording, the path that needs most memory is
                          planned again (rondo_tree_plan_again), if it needs more than 1.05 times the bytes that are
                          live at once. Doubles after each such plan, up to 64. 0 = 2, so that each path was replayed
                          once */
  uint32_t plan_ms;    /* maximum search time for each such plan; 0 = 5 */
  bool no_plan_again;  /* plan again only when rondo_tree_plan_again is called */
} rondo_tree_options;
#define RONDO_TREE_OPTIONS_INIT .struct_size = sizeof(rondo_tree_options)

/* If recordings must not share memory, create a tree for each function (TR-11). An output of one tree is an input of
 * another like any other memory. */

/* Creates an empty tree. options may be NULL. The caller destroys it before it closes the device. Errors:
 * INVALID_ARGUMENT (NULL, BAD_OPTIONS), UNSUPPORTED (a device without pools or graph memory), OUT_OF_MEMORY,
 * IN_CALLBACK. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_create(rondo_device *device, const rondo_tree_options *options,
                                                        rondo_tree **out_tree);

/* Waits for the tree's work and frees the tree with its functions, its recordings and the memory of all outputs.
 * Outputs that are still held can then only be released: reading them is INVALID_STATE/TREE_GONE. NULL is fine. Errors:
 * INVALID_STATE/CONCURRENT_USE (inside a call of the tree), IN_CALLBACK, CAPTURE_REFUSED (inside a capture that forbids
 * immediate calls). After any other failure the tree is gone; the failure is one of its streams' work.
 * Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_destroy(rondo_tree *tree);

/* The next call begins a step, even while a backward is pending. After the first mark, only marks and scopes begin
 * steps. Errors: INVALID_ARGUMENT, CONCURRENT_USE. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_mark_step(rondo_tree *tree);

/* A scope is one step. Marks inside a scope are refused. Scopes may be nested: the outermost one counts. Errors:
 * INVALID_ARGUMENT, CONCURRENT_USE, INVALID_STATE (an end without a begin; a mark in a scope). Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_step_begin(rondo_tree *tree);
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_step_end(rondo_tree *tree);

/* Turns recording and replaying on or off. While it is off, calls run eagerly (DISABLED). Thread-compatible. Errors:
 * INVALID_ARGUMENT, CONCURRENT_USE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_set_recording(rondo_tree *tree, bool on);

/* Discards all recordings, and frees the arena's memory except what held outputs need. Functions stay, and are recorded
 * again by their next calls (RC-3, TR-10). The step ends, and no backward is pending. Waits for the tree's work. Errors
 * as rondo_tree_mark_step; CAPTURE_REFUSED as rondo_tree_destroy; failures of the work, OUT_OF_MEMORY (for clones): the
 * recordings stay then. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_reset(rondo_tree *tree);

/* Plans the memory of whole paths again (TR-3).
 *
 * Calls that warm up one after the other in one step are known when the first of them is recorded, so they are planned
 * together, as long as later steps make the same calls. Any other recording is planned around the memory that is live
 * on the path when it is recorded, without knowing what comes later. A path of several such recordings may need more
 * than what is live at once.
 *
 * This call selects the paths that need most of the arena, and more than 1.005 times the minimum. It plans each of them
 * again from its first recording on, with the lifetimes that outputs had on it: until the recording before which they
 * were released, or where they were passed and dropped (rondo_call_drop_input). If that saves 0.5 % or more, these
 * recordings, with all recordings after them, are discarded and recorded again at their next calls. Each of these calls
 * runs the body once, without a warm-up. Memory that the arena no longer needs is freed. A call that
 * leaves the planned path is recorded by itself.
 *
 * At the beginning of a step, the tree does the same by itself for the one path that needs most memory
 * (rondo_tree_options.plan_after), if it saves 3 % or more, and at least a page; the step then waits for the tree's
 * work. Recordings that were planned as part of their path stay until this function is called. Paths with host steps
 * are not planned, and nothing is planned on a device that watches lifetimes ("cpu:check"). The step ends. Waits for
 * the tree's work. Errors as rondo_tree_reset; OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_plan_again(rondo_tree *tree);

/* Counters and sizes of a tree. */
typedef struct rondo_tree_info {
  uint32_t struct_size;
  uint32_t functions, recordings, roots; /* roots: recordings at the beginning of a path */
  uint64_t calls, replayed, recorded;    /* each successful call was replayed, recorded or run eagerly */
  uint64_t skipped[RONDO_SKIP_ROOM];     /* calls that ran eagerly, or were refused in a strict tree, by reason */
  uint64_t steps;
  uint64_t evicted;                                     /* recordings, because of a limit */
  uint64_t rolled_back;                                 /* recordings that failed and were undone (TR-15) */
  uint64_t copied_inputs, patched_inputs, copied_bytes; /* of replays */
  uint64_t clones, cloned_bytes; /* outputs that were copied for RONDO_OUTPUTS_CLONE, and inputs kept after a step */
  uint64_t allocations;          /* of host memory by replayed calls: 0 when warm */
  uint32_t live_outputs;         /* of the path, that are held */
  uint32_t path_length;          /* recordings from the root to the current one */
  uint64_t arena_bytes;          /* physical memory of the arena */
  uint64_t arena_used;           /* ... of which the largest path needs this much */
  uint64_t eager_bytes;          /* outputs of eager calls, clones, rondo_buffer_create */
  uint64_t exec_host_bytes, exec_device_bytes;
  uint64_t prepared;                      /* recordings made by rondo_function_prepare; not included in `recorded` */
  uint64_t shared_execs;                  /* recordings that use the exec of another recording */
  uint64_t exec_switches;                 /* times a shared exec was updated for another recording */
  uint64_t arena_minimum;                 /* most bytes that are live at once on any path: the minimum for any arena */
  uint64_t planned_paths;                 /* times a path was planned again */
  uint64_t planned_before, planned_after; /* arena bytes of the latest of these paths before, and as planned */
  uint64_t checked;   /* recordings whose detected addresses were tested (rondo_function_options.find_inputs) */
  uint64_t untrusted; /* recordings that failed this test, or could not be tested: their inputs are copied, and the
                          log says why */
  uint64_t demoted;   /* demoted inputs (rondo_function_options.demotion), each after one recording */
  uint64_t warmed_up_paths; /* times a path was planned from its warm-ups, before it was recorded */
  uint64_t exec_overruns;   /* execs made beyond max_exec_bytes, because no recording could be evicted */
} rondo_tree_info;

/* Errors: INVALID_ARGUMENT, CONCURRENT_USE. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_get_info(rondo_tree *tree, rondo_tree_info *out_info);

/* Explains a tree as text: every function with the forms of its inputs and what happened to them; every recording,
 * under the recording before it; every reason with its counter and last message; every byte; and what was found while
 * searching for addresses in the work, for example values that are frozen into it. Free the text with rondo_text_free
 * (<rondo/allocator.h>). The text format is for people, with a line or more for each item. To see each decision when it
 * is made, use RONDO_LOG=tree (<rondo/log.h>).
 *
 * JSON has these fields in this order; later versions only add fields at the end of objects:
 *   {"rondo_tree":1, "name":"", "device":"cpu:0", "outputs":"expire", "recording":true, "strict":false,
 *    "deterministic":false, "host_steps":true, "share_execs":false,
 *    "bounds":{"recordings":4096, "recordings_per_parent":128, "arena_bytes":0, "exec_bytes":0},
 *    "calls":{"all":3, "replayed":1, "recorded":1, "eager":1}, "steps":3, "prepared":0, "evicted":0,
 *    "rolled_back":0, "allocations":0, "reasons":[{"reason":"WARM_UP", "calls":1}],
 *    "inputs":{"patched":1, "copied":0, "copied_bytes":0, "clones":0, "cloned_bytes":0, "demoted":0},
 *    "bytes":{"arena_backed":2097152, "arena_used":4096, "arena_minimum":4096, "eager":0, "exec_host":1432,
 *      "exec_device":0, "shared_execs":0, "exec_switches":0, "planned_paths":0, "planned_before":0,
 *      "planned_after":0, "warmed_up_paths":0,
 *      "exec_overruns":0},
 *    "path":{"step":3, "length":1, "recording":1, "live_outputs":1},
 *    "functions":[{"name":"decode", "kind":"inference", "binding":"automatic", "recording":true, "calls":3,
 *      "replayed":1, "recorded":1, "eager":1, "bodies":2, "prepared":0,
 *      "reasons":[{"reason":"WARM_UP", "calls":1, "message":""}],
 *      "forms":[{"form":1, "state":"recorded", "warm_ups":0, "recordings":1, "reason":null, "message":"",
 *        "inputs":[INPUT, ...], "gain":null, "key":null, "key_bytes":0}],
 *      "demoted":[{"after":1, "input":0, "recordings":5, "way":"bound"}], "moved":{"times":0, "message":""},
 *      "region":null}],
 *    "recordings":[{"number":1, "parent":null, "path":[1], "is_on_path":true, "function":"decode", "form":1,
 *      "replays":1, "nodes":2, "segments":1, "arena_bytes":4096, "arena_minimum":4096, "exec_host_bytes":1432,
 *      "exec_device_bytes":0, "inputs":[INPUT, ...],
 *      "outputs":[{"place":"arena", "bytes":4096, "offset":0, "is_live":true}],
 *      "findings":[{"segment":0, "kind":"frozen", "node":0, "parameter":1, "input":null, "message":"..."}],
 *      "slot_bytes":4096, "idle_slot_bytes":4096}]}
 * The gain of a form is null, or the predicted gain of recording it (rondo_function_options.record), as in
 * rondo_compiled_explain. Bounds of 0 mean no limit. A form's state is "warming up" (warm_ups: how often so far),
 * "warm" (warmed up and not recorded yet), "recorded", or "eager", with the reason. An INPUT has "kind" (moving,
 * static, managed: an output of the path, scalar, opaque). A scalar has a "value"; memory has "bytes", "type" and
 * "shape". For a recording, a moving input also has "way" (patched, copied, or copied before the launch) and "nodes"
 * (that use its address); a static input has "address" (a string); a managed input has "recording" and "output". A
 * demoted input of a function has the recording after which it is demoted, the number of recordings that this took, and
 * the way (bound, eager). An output's place is "arena", "empty", or "input" or "output" with its number as "of". A
 * finding's kind is suspected, fixed or frozen (<rondo/patch.h>); "parameter" and "input" are null for findings without
 * them. Slots are the arena memory of a recording for moving inputs; slots of patched inputs are idle except in calls
 * that must copy. A region (<rondo/region.h>) is a function whose "region" is {"max_recordings":64, "max_exec_bytes":0,
 * "exec_bytes":1432, "evicted":0, "died":0}. Its forms have the first 32 bytes of their key, as hexadecimal digits, and
 * the length of the key. Bytes of a name that are not UTF-8 are written as U+FFFD. Errors: INVALID_ARGUMENT (NULL,
 * another format), CONCURRENT_USE, IN_CALLBACK, OUT_OF_MEMORY. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_explain(rondo_tree *tree, rondo_explain_format format,
                                                         char **out_text);

/* Functions -------------------------------------------------------------------------------------------------------- */

/* The kind of an input. A call passes one value for each input (rondo_input). Add flags with |. */
enum {
  RONDO_INPUT_MOVING = 1, /* memory whose address may change from call to call: copied or patched (see `binding`) */
  RONDO_INPUT_STATIC = 2, /* memory whose address does not change: another address makes another recording */
  RONDO_INPUT_SCALAR = 3, /* a number, rondo_input.scalar: each value has its own recording */
  RONDO_INPUT_OPAQUE = 4, /* any pointer, passed to the body unchanged and never read */
  RONDO_INPUT_MUTATED = 0x100, /* the body writes to the memory: the caller sees the result, even if the input was
                                  copied */
  RONDO_INPUT_ROWS = 0x200,    /* of a moving input: the first dimension is the number of rows, which is padded */
  RONDO_INPUT_LENGTH = 0x400   /* of a moving input: the second dimension is a length, which is padded */
};

#ifndef __cplusplus
#define RONDO_INPUTS(...) \
  .inputs = (const uint32_t[]){__VA_ARGS__}, .input_count = sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)
#endif

/* For training steps with a backward pass: from the call of a FORWARD function until the next call of a BACKWARD
 * function, calls belong to one step, and no held output expires (unless a step is marked). */
typedef enum rondo_function_kind {
  RONDO_FUNCTION_INFERENCE = 0,
  RONDO_FUNCTION_FORWARD = 1,
  RONDO_FUNCTION_BACKWARD = 2
} rondo_function_kind;

/* How the recorded work gets its moving inputs. A patched input costs host time for each node that reads it. A copied
 * input costs device time for its bytes. On a CUDA device, one kernel before the work copies up to sixteen small
 * inputs. Any launch with changed arguments takes longer. A patched address must keep the alignment with which it was
 * recorded, modulo RONDO_PATCH_ALIGNMENT (<rondo/patch.h>); otherwise the input is copied for that call. So each moving
 * input has a slot in the arena, patched or not; rondo_tree_explain shows it. */
typedef enum rondo_binding {
  RONDO_BINDING_AUTOMATIC = 0, /* the cheapest by rondo_costs: patched if all readers are known, or copied */
  RONDO_BINDING_COPY = 1,
  RONDO_BINDING_PATCH = 2 /* copied if not all readers are known */
} rondo_binding;

/* What happens to an input that is a different output of the path each time. Its address is part of the recording, so
 * each output would need its own recording. The input is *demoted* after one recording of the path, for one form of
 * inputs, when `demote_after` recordings after that one were only necessary because of it: each differs from the most
 * similar one in this input. Inputs whose address does not change, and inputs that are declared static, are never
 * demoted. The work gets a demoted input like a moving input, so one recording serves all addresses. What the body
 * writes to it, declared or not, is visible after the call. If it shares bytes with another input, and one of the
 * function's inputs may be written, it remains an output of the path for that call. Its memory is not reused inside the
 * call, even if the caller gives it (rondo_input.give). Recordings of the function after that recording which no call
 * can need any more are discarded, with all recordings after them. The input stays demoted as long as the recording
 * before it exists. */
typedef enum rondo_demotion {
  RONDO_DEMOTION_BIND = 0, /* it is copied or patched after that recording (rondo_binding) */
  RONDO_DEMOTION_SKIP = 1, /* the function runs eagerly after that recording (MOVING_OUTPUT) */
  RONDO_DEMOTION_NEVER = 2 /* recordings are made up to rondo_tree_options.max_recordings_per_parent */
} rondo_demotion;

/* The body of a function. It may call Rondo with the call's stream, and with streams that it forks and joins. It may
 * allocate memory (rondo_malloc_async) that it frees again (rondo_free_async), pass the stream to libraries
 * (rondo_stream_native), and call other functions of the tree, which become part of it. If it fails, the call fails.
 *
 * Stray work. Work that a body enqueues on other streams runs at once. While the body runs eagerly, also as a warm-up,
 * this is allowed. In a recording, such work would be missing from replays. So while the body is recorded, or captured
 * by a caller, calls of its thread behave as listed below, whether or not the body checks what they return. If a call
 * is refused, the recording is abandoned and the body runs eagerly, for the reason in parentheses; a caller's capture
 * is invalidated.
 * - Calls that enqueue: launches, copies, fills, host functions, collectives; rondo_malloc_async, rondo_free_async;
 *   rondo_event_record, rondo_stream_wait_event; rondo_exec_launch, rondo_exec_measure, rondo_patch_set_launch,
 *   rondo_recording_replay; rondo_generator_reserve, rondo_random_uniform; calls and preparations of functions and
 *   callables, rondo_buffer_copy, rondo_buffer_clone; on its own stream, a compiled program's run, write and read.
 *   - On the call's stream, and on streams forked from it (C3): the work becomes part of the recording.
 *   - On a stream of another capture, for example one that the body began: the work is captured there.
 *   - On another stream, or after the recording was abandoned: CAPTURE_REFUSED/STRAY_WORK in every thread mode, naming
 *     the call, the stream and the function (OTHER_WORK; SEVERAL_DEVICES if it is another device's stream).
 *   - Waiting for an event that was recorded outside of the recording is refused by C7 (OTHER_WORK).
 * - Calls that wait or query, for any stream, event or device, and immediate calls (rondo_malloc, rondo_free, trims,
 *   states of generators) are refused as in captures, by C6 and C9 (HOST_WORK).
 * - Direct reads and writes of CPU device memory on the body's own thread, also by a system call (read, write): inputs
 *   and allocations have no memory while they are recorded. Reads return zeros, writes are lost, and the recording is
 *   abandoned (HOST_WORK); the message names the input or the allocation. Memory that an earlier recording of the tree
 *   has used does exist: cpu does not detect accesses to it. cpu:check does, but a system call may fail there with
 *   EFAULT undetected.
 * - Calls that prepare (creating, destroying, building graphs, instantiating, uploading, updating) are executed
 *   immediately, and not repeated by replays. The call's own stream cannot be destroyed (INVALID_STATE/STILL_IN_USE).
 * Work on the native handles of other streams is not detected, nor is work of other threads. A host step is not part of
 * the recorded work, and may use other streams in every run.
 *
 * Host accesses. A body that runs eagerly may access memory on the host once its stream has reached that point: after
 * rondo_stream_synchronize, or in a host step. Otherwise it reads whatever is there on cpu. On cpu:check, the call
 * fails if the body's own thread accesses an allocation that the stream has not reached yet, or has already freed:
 * EXECUTION_FAILED with NOT_ALLOCATED or USE_AFTER_FREE; the message names the allocation. If the stream was fast
 * enough, nothing is detected. A system call is not detected either; it fails with EFAULT there.
 *
 * Values. A recording keeps the values that were passed to kernels, fills, memory operations and semaphores, and the
 * sizes of grids, copies and fills: a learning rate or a number of rows that the body reads from the caller's memory
 * never changes again, and a timeline is always signalled to the same number. To detect that, the values of each run of
 * the body are compared with those of the previous run, if both enqueued the same work with the same kernels in the
 * same order. If a value differs, the call runs eagerly (CHANGED), and the message names the kernel, the argument or
 * size, and both values. The function is recorded at the next call if the value stays the same, and never after three
 * changes. To fix it, declare an input that is RONDO_INPUT_SCALAR, for which each value has its own recording, take
 * sizes from the shape of an input, store the value in device memory that the kernel reads, or signal and wait outside
 * of the body. rondo_function_options.freezes_values turns the comparison off. The following are not
 * compared: pointers and words that may be addresses, random numbers (RONDO_RANDOM_ARGS), arguments of libraries'
 * kernels, and values that change only after the recording was made. A body that computes values from the addresses of
 * its inputs needs freezes_values, because a recording has its inputs at other addresses. */
typedef rondo_status (*rondo_function_body)(rondo_call *call, void *user);

typedef struct rondo_function_options {
  uint32_t struct_size; /* RONDO_FUNCTION_OPTIONS_INIT sets it; 0 means the library's own */
  rondo_function_kind kind;
  const char *name; /* required, not empty; copied */
  rondo_function_body body;
  void *user;             /* for the body; must outlive the function */
  const uint32_t *inputs; /* RONDO_INPUTS(...): the kind of each input; copied */
  size_t input_count;     /* at most 1024 */
  rondo_binding binding;
  uint32_t warm_ups;         /* eager calls for each new form of inputs; 0 = 1, or 2 (see `record`) */
  uint32_t max_shapes;       /* maximum number of forms that are recorded; others run eagerly (SHAPE_LIMIT); 0 = 64 */
  uint32_t min_nodes;        /* work with fewer nodes is not recorded (TOO_SMALL) */
  bool static_shapes;        /* only the first form of inputs is recorded; others run eagerly (CHANGING_SHAPES) */
  bool unsafe;               /* never recorded */
  bool unsafe_deterministic; /* not recorded in a tree with rondo_tree_options.deterministic */
  bool find_inputs;    /* search for addresses of moving inputs that no parameter declares: the body is recorded three
                          times, with these inputs at two sets of addresses, and the recordings are compared
                          (<rondo/patch.h>). Words that changed and are neither an input nor memory are frozen into the
                          recording; the log names them. Before such an input is patched, the recorded work is tested.
                          It must give the same bits with its inputs at other addresses and zeros at the old ones;
                          otherwise all inputs are copied (untrusted). Side effects of the test are undone, as in
                          rondo_function_prepare, also those on outputs of the path */
  bool freezes_values; /* values that change between calls may be frozen into a recording (see "Values") */
  bool reserved[3];
  const size_t *buckets; /* numbers of rows, ascending: inputs that are RONDO_INPUT_ROWS are padded to the next one
                            (TR-7), so each bucket needs one recording; copied. More rows than the last bucket are not
                            padded, nor are calls inside a body or a capture */
  size_t bucket_count;
  const size_t *lengths; /* the same for lengths, ascending: inputs that are RONDO_INPUT_LENGTH are padded to the next
                            one (PR-5); copied. With both, a bucket is a number of rows and a length, and a call beyond
                            the last of either is not padded at all. Outputs keep the padded length. A body that must
                            tell padding from content gets a mask as another such input, or the lengths of the rows */
  size_t length_count;
  uint32_t padding; /* fills the padded rows, as a word of 4 bytes; types of other sizes are filled with its low byte */
  rondo_demotion demotion;
  uint32_t demote_after;      /* recordings, at most max_recordings_per_parent; 0 = 5 */
  rondo_record_policy record; /* AUTO (FW-8): the last warm-up is measured (on a GPU it is held back, for at
                                 most 5 ms, until all work is enqueued). There are at least two warm-ups, so that
                                 initialization does not count. A form is recorded unless the predicted gain is too
                                 small (NO_GAIN). It is also recorded if there is no prediction: with host steps, or if
                                 something is captured before the device's costs are known. NEVER: runs eagerly
                                 (DISABLED) */
  double least_gain;          /* `least` of rondo_gain_pays (<rondo/gain.h>) */
  uint64_t expected_runs;     /* `runs` of rondo_gain_pays */
} rondo_function_options;
#define RONDO_FUNCTION_OPTIONS_INIT .struct_size = sizeof(rondo_function_options)

/* Errors: INVALID_ARGUMENT (NULL, no name, no body, a bad input or flag, more than 1024 inputs, BAD_OPTIONS),
 * OUT_OF_MEMORY, CONCURRENT_USE. Thread-compatible with respect to the tree. */
RONDO_API RONDO_MUST_USE rondo_status rondo_function_create(rondo_tree *tree, const rondo_function_options *options,
                                                            rondo_function **out_function);

/* Destroys the function with its recordings, and all recordings after them; its outputs stay valid until their step
 * ends. rondo_tree_destroy destroys all functions of the tree. NULL is fine. Errors: CONCURRENT_USE, IN_CALLBACK.
 * Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_function_destroy(rondo_function *function);

/* Like rondo_tree_set_recording, for one function. */
RONDO_API RONDO_MUST_USE rondo_status rondo_function_set_recording(rondo_function *function, bool on);

typedef struct rondo_function_info {
  uint32_t struct_size;
  uint32_t recordings, shapes;                /* current numbers of recordings and of forms of inputs */
  uint64_t calls, replayed, recorded, bodies; /* bodies: how often the body ran */
  uint64_t skipped[RONDO_SKIP_ROOM];
  rondo_skip last_skip; /* of the last call that ran eagerly */
  uint32_t reserved;
  const char *last_message;  /* explains last_skip, with the fix; may be ""; valid until the next call */
  uint64_t prepared;         /* recordings made by rondo_function_prepare; not included in `recorded` */
  uint64_t demoted;          /* demoted inputs, each after one recording */
  uint64_t moved;            /* times it was, or would have been, recorded again because a static input moved (FW-7) */
  const char *moved_message; /* explains the last one: input, both addresses, fix; "" if moved is 0; valid until the
                                next call */
} rondo_function_info;

/* Calls that used one of the function's buckets. */
typedef struct rondo_bucket_info {
  uint32_t struct_size;
  uint32_t reserved;
  size_t rows; /* 0: rows are not padded */
  uint64_t calls;
  uint64_t given_rows, padded_rows;       /* of those calls: rows that were passed, and rows that were added */
  size_t length;                          /* 0: lengths are not padded */
  uint64_t given_lengths, padded_lengths; /* the same for lengths, of which each call has one */
} rondo_bucket_info;

/* With lengths, bucket i * length_count + k has the rows of buckets[i] and the length lengths[k]; without numbers of
 * rows, i is 0. Errors: INVALID_ARGUMENT (NULL, OUT_OF_RANGE). Thread-compatible with respect to the tree. */
RONDO_API RONDO_MUST_USE rondo_status rondo_function_get_bucket(const rondo_function *function, size_t index,
                                                                rondo_bucket_info *out_info);

/* Errors: INVALID_ARGUMENT, CONCURRENT_USE. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_function_get_info(const rondo_function *function,
                                                              rondo_function_info *out_info);

/* Calls ------------------------------------------------------------------------------------------------------------ */

/* The value of an input. Memory is a buffer, or an address with its bytes. Type and shape may be zero; they only
 * distinguish forms of inputs. */
typedef struct rondo_input {
  rondo_buffer *buffer; /* an output of an earlier call, or of rondo_buffer_create; NULL = use address and bytes */
  void *address;        /* memory of the tree's device; with a buffer NULL, or an address in it */
  size_t bytes;         /* with a buffer 0 = to its end */
  uint64_t scalar;      /* for RONDO_INPUT_SCALAR */
  uint32_t type;        /* a rondo_type, or any number of the caller's; 0 with a buffer = the buffer's type */
  uint32_t rank;        /* at most RONDO_TREE_MAX_RANK; with a buffer and type 0, the buffer's rank is used */
  size_t shape[RONDO_TREE_MAX_RANK];
  bool give; /* pass the reference to `buffer` to the call, even if the call fails. If nobody else holds the buffer, its
                memory can be reused inside the call after rondo_call_drop_input */
} rondo_input;

/* Calls the function. Its work is enqueued on the stream, after the tree's earlier calls on any stream. The caller owns
 * a reference to each of the first `output_count` outputs; further outputs are released. Errors, where all but the last
 * four enqueue nothing:
 *   INVALID_ARGUMENT (NULL, also an input of bytes without memory; ARGUMENT_COUNT; OTHER_DEVICE; SHAPE: too high a
 *     rank; OUT_OF_RANGE: not inside its buffer);
 *   INVALID_LIFETIME/STALE_BUFFER (an input of an earlier step: names function, output and step), INVALID_STATE with
 *     CONCURRENT_USE, TREE_GONE, IN_CALLBACK;
 *   UNSUPPORTED/NOT_RECORDED in a strict tree, with the reason (rondo_skip) in the message;
 *   what the body returns; ARGUMENT_COUNT (more outputs requested than the body creates), INVALID_STATE/NO_OUTPUT (an
 *   output is missing); DEVICE_LOST and the errors of the launch; a failure of the stream's earlier work, if the call
 *   waits for it (host steps; recording with find_inputs); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_function_call(rondo_function *function, rondo_stream *stream,
                                                          const rondo_input *inputs, size_t input_count,
                                                          rondo_buffer **outputs, size_t output_count);

/* Warms up and records what a call with these inputs would run next on the path, without making a call: it runs the
 * warm-ups that are still needed, and makes the recording, which is not launched. The first real call is then a replay.
 * Afterwards everything is as before. Inputs of any kind that are declared RONDO_INPUT_MUTATED have their previous
 * bytes, saved and restored in stream order. Generators that the calling thread drew from have their previous state
 * (<rondo/random.h>). Outputs are released. The path, its step and its valid outputs stay. `give` releases nothing, and
 * only says what the call will do. Not undone are the host steps that warm-ups execute, and what a body does to other
 * memory. If the recording exists already, nothing is done. Errors, after which only completed warm-ups
 * remain:
 *   UNSUPPORTED/NOT_RECORDED with the reason (rondo_skip) in the message: a call would run eagerly; AFTER_WARM_UP if
 *   an earlier call on the path did, so that the step must be run once more first;
 *   CAPTURE_REFUSED (the stream captures); CONCURRENT_USE (inside a body); those of rondo_function_call. */
RONDO_API RONDO_MUST_USE rondo_status rondo_function_prepare(rondo_function *function, rondo_stream *stream,
                                                             const rondo_input *inputs, size_t input_count);

/* How the tree's last call ran. */
typedef enum rondo_call_outcome {
  RONDO_CALL_NONE = 0, /* there was no call, or a strict tree refused it, for the reason `skip` */
  RONDO_CALL_REPLAYED = 1,
  RONDO_CALL_RECORDED = 2, /* and launched once */
  RONDO_CALL_EAGER = 3     /* run eagerly */
} rondo_call_outcome;

typedef struct rondo_call_info {
  uint32_t struct_size;
  rondo_call_outcome outcome;
  rondo_skip skip;    /* why it ran eagerly or was refused */
  uint32_t recording; /* number of the recording, unique in the tree; 0 unless the call was recorded or replayed */
  uint64_t step;
  const char *function; /* valid as long as the function */
  const char *message;  /* explains `skip`; may be ""; valid until the next call */
} rondo_call_info;

/* Errors: INVALID_ARGUMENT, CONCURRENT_USE. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_get_last_call(rondo_tree *tree, rondo_call_info *out_info);

/* In a body -------------------------------------------------------------------------------------------------------- */

/* The stream on which to enqueue work. It captures while the call is recorded. */
RONDO_API rondo_stream *rondo_call_stream(const rondo_call *call);

/* The address of input `index` in this run of the body; NULL for scalars and for an index that is out of range. */
RONDO_API void *rondo_call_input(const rondo_call *call, size_t index);
/* The complete input: bytes, type and shape, the scalar, or the opaque pointer in `address`; buffer is NULL. Errors:
 * INVALID_ARGUMENT with NULL_ARGUMENT, OUT_OF_RANGE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_call_get_input(const rondo_call *call, size_t index,
                                                           rondo_input *out_input);

enum {
  RONDO_OUTPUT_ROWS =
      1 /* the first dimension is the number of rows: if a call's inputs were padded
           (rondo_function_options.buckets), the output that the caller gets has only the unpadded rows */
};

typedef struct rondo_output_options {
  uint32_t struct_size;
  uint32_t type, rank;
  uint32_t flags; /* RONDO_OUTPUT_ROWS, or 0 */
  size_t shape[RONDO_TREE_MAX_RANK];
  const char *name; /* for messages; copied; may be NULL */
} rondo_output_options;
#define RONDO_OUTPUT_OPTIONS_INIT .struct_size = sizeof(rondo_output_options)

/* Allocates output `index` (at most 1023), with undefined contents. It belongs to the call; the body does not release
 * it. bytes = 0 creates an output without memory, which never expires. options may be NULL. Errors: INVALID_ARGUMENT
 * (NULL, OUT_OF_RANGE, DUPLICATE_NAME: the output exists already), OUT_OF_MEMORY, those of rondo_malloc_async. */
RONDO_API RONDO_MUST_USE rondo_status rondo_call_output(rondo_call *call, size_t index, size_t bytes,
                                                        const rondo_output_options *options, void **out_address);

/* Makes output `index` from existing memory: `bytes` bytes from `offset` on of input `input`, or of the earlier output
 * `output`. The output retains that memory. Memory of an input from an earlier step is valid until the call ends.
 * Errors: INVALID_ARGUMENT (as above; OUT_OF_RANGE), INVALID_LIFETIME/USE_AFTER_FREE (the input was dropped). */
RONDO_API RONDO_MUST_USE rondo_status rondo_call_output_of_input(rondo_call *call, size_t index, size_t input,
                                                                 size_t offset, size_t bytes,
                                                                 const rondo_output_options *options);
RONDO_API RONDO_MUST_USE rondo_status rondo_call_output_of_output(rondo_call *call, size_t index, size_t output,
                                                                  size_t offset, size_t bytes,
                                                                  const rondo_output_options *options);

/* Tells the tree that the body no longer needs input `index`. If the input was given (rondo_input.give), and neither
 * another holder nor another input or output of the call uses its memory, work that is enqueued on the call's stream
 * after this call may reuse the memory. Otherwise nothing happens. A body that reads the input nevertheless is not
 * recorded (OTHER_WORK). This is detected while nothing has reused the memory, and always on "cpu:check". Errors:
 * INVALID_ARGUMENT with NULL_ARGUMENT, OUT_OF_RANGE; CAPTURE_INVALID. */
RONDO_API RONDO_MUST_USE rondo_status rondo_call_drop_input(rondo_call *call, size_t index);

/* A host step (TR-14): calls `step` on the caller's thread when all work that the body has enqueued so far is done,
 * once in every call of the function, recorded or not. The step may read results and use other streams. It must not
 * enqueue work of the call or call functions of the tree. If it fails, the call fails. A body and its steps must
 * return: a longjmp out of them leaves the tree in use for ever. A body with host steps is recorded in segments between
 * them. While the body is recorded, this function returns at once; the work and the steps run when the body has
 * returned and the recording is complete, so an abandoned recording has executed no steps. The body must therefore not
 * read the results of its steps. Work that is enqueued after a step may read them, for example copies from the host.
 * `user` must stay valid as long as the function. Errors: INVALID_ARGUMENT, those of the step, of the work before it,
 * and of recording it. */
RONDO_API RONDO_MUST_USE rondo_status rondo_call_host_step(rondo_call *call, rondo_host_function step, void *user);

/* Tells the tree, in a warm-up, that the warm-up was not complete: the next call with this form of inputs is another
 * warm-up. This also holds for the calls that this call is nested in. No effect in other runs (TR-1). Errors:
 * INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_call_warm_up_again(rondo_call *call);

/* Tells the tree that the body, and the calls that it is nested in, must not be recorded, and why: UNKNOWN_SHAPE,
 * HOST_WORK, UNSAFE or UNSAFE_DETERMINISTIC. `what` names the operation, for messages. While the body is being
 * recorded, this function returns an error, which the body must return: the call then runs eagerly. Errors:
 * INVALID_ARGUMENT (another reason); INVALID_STATE/NOT_RECORDED. */
RONDO_API RONDO_MUST_USE rondo_status rondo_call_refuse(rondo_call *call, rondo_skip reason, const char *what);

/* Buffers ---------------------------------------------------------------------------------------------------------- */

/* Creates a buffer of the tree's device that belongs to no step: it is valid, at one address, until it is released
 * (TR-6: a static input; accumulated gradients). Contents are undefined. Errors: INVALID_ARGUMENT (NULL, 0 bytes),
 * OUT_OF_MEMORY, CONCURRENT_USE. Thread-compatible with respect to the tree. */
RONDO_API RONDO_MUST_USE rondo_status rondo_buffer_create(rondo_tree *tree, size_t bytes,
                                                          const rondo_output_options *options,
                                                          rondo_buffer **out_buffer);

/* Retain and release a reference. Do not use a buffer after its last release. The tree's next call may reuse its
 * memory, after the work that was enqueued on the stream of that call before the release. NULL is fine for release.
 * Thread-safe. */
RONDO_API void rondo_buffer_retain(rondo_buffer *buffer);
RONDO_API void rondo_buffer_release(rondo_buffer *buffer);

/* Returns the address of the memory (NULL for 0 bytes). Errors: INVALID_ARGUMENT; INVALID_LIFETIME/STALE_BUFFER if the
 * step has ended, naming function, output and step; INVALID_STATE/TREE_GONE. Thread-compatible with respect to the
 * tree. */
RONDO_API RONDO_MUST_USE rondo_status rondo_buffer_address(const rondo_buffer *buffer, void **out_address);

/* Enqueues a copy of `bytes` bytes from `offset` on to `dst`, in host or device memory. Errors: as
 * rondo_buffer_address; OUT_OF_RANGE; those of rondo_copy_async. */
RONDO_API RONDO_MUST_USE rondo_status rondo_buffer_copy(const rondo_buffer *buffer, rondo_stream *stream, size_t offset,
                                                        void *dst, size_t bytes);

/* Copies the buffer to a new buffer, which belongs to no step. Errors: as rondo_buffer_address and rondo_buffer_create;
 * OTHER_DEVICE; CAPTURE_REFUSED (the stream captures: copy in the capture instead). */
RONDO_API RONDO_MUST_USE rondo_status rondo_buffer_clone(const rondo_buffer *buffer, rondo_stream *stream,
                                                         rondo_buffer **out_buffer);

typedef struct rondo_buffer_info {
  uint32_t struct_size;
  bool is_valid;        /* may be read */
  bool is_recorded;     /* in the arena, at an address that replays keep */
  uint32_t output;      /* of its function */
  const char *function; /* that returned it; "" for rondo_buffer_create; valid as long as the buffer */
  uint64_t step;        /* 0 if it belongs to no step */
  size_t bytes;
  uint32_t type, rank;
  size_t shape[RONDO_TREE_MAX_RANK];
} rondo_buffer_info;

/* Describes a buffer, even one that must not be read. Errors: INVALID_ARGUMENT. Thread-compatible with respect to the
 * tree. */
RONDO_API RONDO_MUST_USE rondo_status rondo_buffer_get_info(const rondo_buffer *buffer, rondo_buffer_info *out_info);

RONDO_EXTERN_C_END

#endif

/* SPDX-License-Identifier: MIT
 * Trees: any C function, recorded by itself. A callback that is registered with a tree as a *function* is warmed up at
 * its first call, recorded at its second and replayed from then on: one launch instead of all it would queue. What was
 * recorded one after another in a step is a *path*; paths that begin alike share their beginning, and all recordings of
 * a tree share one arena, whose size is what the largest path needs and not the sum (TR-1 to TR-4).
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
 * Steps. The outputs of a step are valid until the first call of the next one (rondo_tree_options.outputs); reading one
 * later is an error in every state, whether the call that made it was recorded or not (TR-9). A step is what stands
 * between two rondo_tree_mark_step; or a scope, rondo_tree_step_begin to rondo_tree_step_end; or, when neither is used,
 * one call, with the exception that calls belong to one step while a backward is pending (rondo_function_kind).
 *
 * What must be the same for a recording to be replayed (TR-5): the path before it; each input's bytes, type and shape;
 * the address of static inputs; which output of the path an input is, unless that keeps changing (rondo_demotion); and
 * that each output of the path that nobody held when it was recorded is not held now. Otherwise another recording is
 * made, and the old one is used again when it fits again. Whether a call was replayed, recorded or run as it is, and
 * why, can be asked and is counted (TR-8).
 *
 * A body must queue the same work whenever it is called with the same form of inputs: what it reads on the host, and
 * values that it passes to kernels, are those of the call that was recorded. So are the addresses of host memory that
 * its copies read and write: replays use it again, so that it must outlive the recording. A variable of the body's own
 * is gone by then, and a replayed copy to it writes to whatever the stack holds there; no device finds that. The audit
 * does (<rondo/audit.h>), which a session makes of functions that it serves.
 *
 * A tree is thread-compatible, and so are its functions: calls at once from two threads are found and refused
 * (CONCURRENT_USE). Buffers may be retained and released from any thread. Several trees may share a device. The model
 * is PyTorch's CUDAGraph Trees (torch/_inductor/cudagraph_trees.py); where the two differ, the comments say what holds.
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
typedef struct rondo_buffer rondo_buffer; /* a handle of memory, counted by who holds it */

#define RONDO_TREE_MAX_RANK 8

/* Why a call was run as it is instead of being recorded or replayed. */
typedef enum rondo_skip {
  RONDO_SKIP_NONE = 0,
  RONDO_SKIP_WARM_UP,        /* the form of inputs is new, or the body asked for another warm-up */
  RONDO_SKIP_BEHIND_WARM_UP, /* a call before it on the path ran as it is, so that addresses are not fixed (TR-2) */
  RONDO_SKIP_MUTATED_INPUT,  /* it writes to a moving input that is not declared RONDO_INPUT_MUTATED (TR-6), or to bytes
                                that a moving input has in common with another one */
  RONDO_SKIP_HOST_WORK,      /* it waits for the device or asks for its state, accesses memory of the device on the
                                host, or takes a host step where there may be none */
  RONDO_SKIP_SEVERAL_DEVICES,      /* it uses another device's stream or memory */
  RONDO_SKIP_UNKNOWN_SHAPE,        /* it said so (rondo_call_refuse) */
  RONDO_SKIP_UNSAFE,               /* it said so, or its options did */
  RONDO_SKIP_UNSAFE_DETERMINISTIC, /* the same, where rondo_tree_options.deterministic is asked */
  RONDO_SKIP_CHANGING_SHAPES,      /* its options leave further shapes un-recorded */
  RONDO_SKIP_SHAPE_LIMIT,          /* rondo_function_options.max_shapes */
  RONDO_SKIP_RECORDING_LIMIT,      /* rondo_tree_options.max_recordings_per_place; or max_recordings, and all that there
                                      are belong to the path, or are held */
  RONDO_SKIP_MEMORY_LIMIT,         /* rondo_tree_options.max_bytes, or the device has no more */
  RONDO_SKIP_TOO_SMALL,            /* fewer nodes than rondo_function_options.min_nodes */
  RONDO_SKIP_DISABLED,             /* rondo_tree_set_recording, rondo_function_set_recording */
  RONDO_SKIP_REFUSED,              /* by rondo_tree_options.should_record */
  RONDO_SKIP_CAPTURING,            /* the caller's stream captures: the body's work becomes part of that, and its
                                      outputs memory of that graph, which the caller frees there, or keeps */
  RONDO_SKIP_NESTED,               /* called from inside a body, of which it becomes a part */
  RONDO_SKIP_OTHER_WORK,           /* the work of the body cannot be recorded: the driver or verification says why; or
                                      some of it is stray: on a stream of the device that it did not fork off */
  RONDO_SKIP_KEPT_MEMORY,          /* it allocated memory that it neither freed nor made an output */
  RONDO_SKIP_CHANGED,       /* it did not do in the recording what it did before: outputs, host steps, inputs kept;
                               or values that are no inputs have changed */
  RONDO_SKIP_DEPARTED,      /* it allocated otherwise than in its warm-up; it is recorded at the next call */
  RONDO_SKIP_MOVING_OUTPUT, /* an input was another output of the path too often (RONDO_DEMOTION_SKIP) */
  RONDO_SKIP_NO_GAIN,       /* RONDO_RECORD_WHERE_IT_PAYS, and it is predicted not to: the message has the figures */
  RONDO_SKIP_ROOM = 32      /* length of arrays of counters by reason */
} rondo_skip;

/* "MUTATED_INPUT"; "UNKNOWN" for another number. Thread-safe. */
RONDO_API const char *rondo_skip_name(rondo_skip skip);

/* Trees ------------------------------------------------------------------------------------------------------------ */

/* What becomes of outputs that are still held when their step is over. */
typedef enum rondo_output_policy {
  RONDO_OUTPUTS_EXPIRE = 0, /* reading them is an error */
  RONDO_OUTPUTS_CLONE = 1   /* they are copied to memory of their own, and stay valid until they are released */
} rondo_output_policy;

/* What is known of a function that is about to be recorded. */
typedef struct rondo_recording_question {
  uint32_t struct_size;
  uint32_t recordings; /* that the function has */
  const char *function;
  rondo_function *asked;
} rondo_recording_question;

typedef struct rondo_tree_options {
  uint32_t struct_size; /* RONDO_TREE_OPTIONS_INIT sets it; 0 means the library's own */
  rondo_output_policy outputs;
  const char *name;                  /* for messages; copied; may be NULL */
  uint64_t max_bytes;                /* of the arena; 0 = as the device has */
  uint64_t initial_bytes;            /* of the arena: memory had when the tree is made */
  uint32_t max_recordings;           /* of the tree: the least recently used end with all behind them; 0 = 4096 */
  uint32_t max_recordings_per_place; /* of one function behind one recording; 0 = 128 */
  uint64_t max_exec_bytes; /* host and device memory of all execs: beyond it, recordings of the same work share
                              an exec, or else the least recently used end. No call is refused for it: where the
                              recordings that are left belong to the path, execs are made beyond it
                              (exec_overruns). 0 = no limit */
  bool strict;             /* a call that cannot be recorded is an error instead of being run as it is */
  bool deterministic;      /* what is unsafe only when determinism is asked is not recorded */
  bool no_host_steps;      /* bodies with host steps are not recorded (TR-14) */
  bool share_execs;        /* recordings of the same work, which differ in addresses, share an exec from the
                              first on: less memory of the device, and an update when they take turns */
  bool (*should_record)(void *user,
                        const rondo_recording_question *question); /* NULL = always; must not use the tree */
  void *user;
  uint32_t plan_after; /* paths begun in a row without a new recording, when the one that needs most is planned again
                          (rondo_tree_plan_again) if it needs more than 1.05 of what lives at once; 0 = 2, so that one
                          path was replayed, and twice as many after each such plan, up to 64 */
  uint32_t plan_ms;    /* of search for each such plan, at most; 0 = 5 */
  bool no_plan_again;  /* only on demand */
} rondo_tree_options;
#define RONDO_TREE_OPTIONS_INIT .struct_size = sizeof(rondo_tree_options)

/* To let recordings share no memory, give each function a tree of its own (TR-11). The output of one tree is then an
 * input of another as any memory is. */

/* An empty tree. options may be NULL. The caller destroys it before the device is closed. Errors: INVALID_ARGUMENT
 * (NULL, BAD_OPTIONS), UNSUPPORTED (a device without pools or graph memory), OUT_OF_MEMORY, IN_CALLBACK. Thread-safe.
 */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_create(rondo_device *device, const rondo_tree_options *options,
                                                        rondo_tree **out_tree);

/* Waits for the tree's work and frees all it has: functions, recordings, the memory of all outputs. Outputs that are
 * still held can only be released then: reading them is INVALID_STATE/TREE_GONE. NULL is fine. Errors:
 * INVALID_STATE/CONCURRENT_USE (inside a call of the tree), IN_CALLBACK, CAPTURE_REFUSED (inside a capture that
 * forbids what acts at once); else the tree is gone, and a failure is that of work of its streams. Thread-compatible.
 */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_destroy(rondo_tree *tree);

/* The next call begins a step, and so does none before the next mark: from the first mark on, calls alone begin none. A
 * pending backward does not matter. Errors: INVALID_ARGUMENT, CONCURRENT_USE. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_mark_step(rondo_tree *tree);

/* A scope that is one step; inside, marks are refused. Scopes may be nested: the outermost counts. Errors:
 * INVALID_ARGUMENT, CONCURRENT_USE, INVALID_STATE (an end without a begin; a mark in a scope). Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_step_begin(rondo_tree *tree);
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_step_end(rondo_tree *tree);

/* Whether new recordings are made and old ones replayed; while not, calls run as they are (DISABLED).
 * Thread-compatible. Errors: INVALID_ARGUMENT, CONCURRENT_USE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_set_recording(rondo_tree *tree, bool on);

/* Forgets all recordings, and gives the arena's memory back but for what held outputs need: functions stay, and are
 * recorded again at their next calls (RC-3, TR-10). The step is over, and no backward is pending. Waits for the tree's
 * work. Errors as rondo_tree_mark_step; CAPTURE_REFUSED as rondo_tree_destroy; what failed of the work, OUT_OF_MEMORY
 * (for clones): the recordings stay then. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_reset(rondo_tree *tree);

/* Plans paths as a whole (TR-3). Calls that warm up one after another in one step are known when the first of them is
 * recorded, and planned together then, as long as they go on as they did. Any other recording is placed around what
 * lives of the path when it is made, not knowing what comes behind it, and a path of several may so need more than what
 * lives on it at once. The paths that need most of the arena, and more than 1.005 of the least, are planned anew from
 * their first recording on, each with the lives that its outputs had on it: until the recording before which they were
 * dead, or where they were given and dropped (rondo_call_drop_input). Where that saves 0.5 % or more, the recordings
 * are taken out, with all behind them, and made anew at their next calls, each of which runs the body once and does not
 * warm up; what the arena then does not need is given back. A call that finds another path than was planned is recorded
 * by itself.
 * The tree does the same by itself for the one path that needs most, at the beginning of a step
 * (rondo_tree_options.plan_after), where it saves 3 % or more, and a page; the step then waits for the tree's work.
 * Recordings that were planned as part of their path stay as they are until this is called. Paths with host steps are
 * not planned, nor is anything where lifetimes are watched ("cpu:check"). The step is over.
 * Waits for the tree's work. Errors as rondo_tree_reset; OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_plan_again(rondo_tree *tree);

/* How calls went, and what the tree holds, as it is now. */
typedef struct rondo_tree_info {
  uint32_t struct_size;
  uint32_t functions, recordings, roots; /* roots: recordings that nothing comes before */
  uint64_t calls, replayed, recorded;    /* recorded: by calls; of calls that succeed each is replayed, recorded or
                                            run as it is */
  uint64_t skipped[RONDO_SKIP_ROOM];     /* calls run as they are, or refused in a strict tree, by reason */
  uint64_t steps;
  uint64_t evicted;                                     /* recordings, for a bound */
  uint64_t rolled_back;                                 /* recordings that failed and were taken back (TR-15) */
  uint64_t copied_inputs, patched_inputs, copied_bytes; /* of replays */
  uint64_t clones, cloned_bytes; /* outputs copied out for RONDO_OUTPUTS_CLONE, and inputs saved from a step */
  uint64_t allocations;          /* of host memory by calls that were replayed: 0 once warm */
  uint32_t live_outputs;         /* of the path, held by anyone */
  uint32_t path_length;          /* recordings from the root to the current one */
  uint64_t arena_bytes;          /* memory behind the arena's addresses */
  uint64_t arena_used;           /* ... that recordings need: the largest path's */
  uint64_t unrecorded_bytes;     /* outputs of calls that ran as they are, clones, rondo_buffer_create */
  uint64_t exec_host_bytes, exec_device_bytes;
  uint64_t prepared;      /* recordings made by rondo_function_prepare, ever; not among `recorded` */
  uint64_t shared_execs;  /* recordings that had no exec made for them */
  uint64_t exec_switches; /* times that a shared one was updated for another recording */
  uint64_t arena_least;   /* most bytes that live at once on any path: no arena can do with less than these */
  uint64_t planned_paths; /* times that a path was planned again */
  uint64_t planned_before, planned_after; /* bytes of the arena that the latest of these needed, and was planned with */
  uint64_t checked;         /* recordings whose found addresses were tried (rondo_function_options.find_inputs) */
  uint64_t mistrusted;      /* ... or could not be, and whose inputs are copied for that; the log says why */
  uint64_t demoted;         /* inputs that were (rondo_function_options.demotion), each in one place */
  uint64_t warmed_up_paths; /* times that a path was planned as its calls were warmed up, before it was recorded */
  uint64_t exec_overruns;   /* execs made beyond max_exec_bytes, as no recording could end for them */
} rondo_tree_info;

/* Errors: INVALID_ARGUMENT, CONCURRENT_USE. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_get_info(rondo_tree *tree, rondo_tree_info *out_info);

/* All that a tree knows, as a text, which is freed with rondo_text_free (<rondo/allocator.h>): every function with its
 * forms of inputs and what became of them; every recording below the one before it; every reason with its counter and
 * last message; every byte; and what finding addresses in the work came upon, values that are frozen into it among
 * that. Texts have a line or more for each, for people. To read each decision as it is made, see RONDO_LOG=tree
 * (<rondo/log.h>).
 * JSON, in this order; later versions add fields behind those of an object and nothing else:
 *   {"rondo_tree":1, "name":"", "device":"cpu:0", "outputs":"expire", "recording":true, "strict":false,
 *    "deterministic":false, "host_steps":true, "share_execs":false,
 *    "bounds":{"recordings":4096, "recordings_per_place":128, "arena_bytes":0, "exec_bytes":0},
 *    "calls":{"all":3, "replayed":1, "recorded":1, "eager":1}, "steps":3, "prepared":0, "evicted":0,
 *    "rolled_back":0, "allocations":0, "reasons":[{"reason":"WARM_UP", "calls":1}],
 *    "inputs":{"patched":1, "copied":0, "copied_bytes":0, "clones":0, "cloned_bytes":0, "demoted":0},
 *    "bytes":{"arena_backed":2097152, "arena_used":4096, "arena_least":4096, "unrecorded":0, "exec_host":1432,
 *      "exec_device":0, "shared_execs":0, "exec_switches":0, "planned_paths":0, "planned_before":0,
 *      "planned_after":0, "warmed_up_paths":0,
 *      "exec_overruns":0},
 *    "path":{"step":3, "length":1, "recording":1, "live_outputs":1},
 *    "functions":[{"name":"decode", "kind":"inference", "binding":"automatic", "recording":true, "calls":3,
 *      "replayed":1, "recorded":1, "eager":1, "bodies":2, "prepared":0,
 *      "reasons":[{"reason":"WARM_UP", "calls":1, "message":""}],
 *      "forms":[{"form":1, "state":"recorded", "warm_ups":0, "recordings":1, "reason":null, "message":"",
 *        "inputs":[INPUT, ...], "gain":null}],
 *      "demoted":[{"after":1, "input":0, "recordings":5, "way":"bound"}], "moved":{"times":0, "message":""}}],
 *    "recordings":[{"number":1, "parent":null, "path":[1], "is_on_path":true, "function":"decode", "form":1,
 *      "replays":1, "nodes":2, "segments":1, "arena_bytes":4096, "arena_least":4096, "exec_host_bytes":1432,
 *      "exec_device_bytes":0, "inputs":[INPUT, ...],
 *      "outputs":[{"place":"arena", "bytes":4096, "offset":0, "is_live":true}],
 *      "findings":[{"segment":0, "kind":"frozen", "node":0, "parameter":1, "input":null, "message":"..."}],
 *      "slot_bytes":4096, "idle_slot_bytes":4096}]}
 * The gain of a form is null, or what recording it was predicted to gain (rondo_function_options.record), as in
 * rondo_compiled_explain. Bounds of 0 are none. A form's state is "warming up" (warm_ups: how often yet), "warm" (it
 * was warmed up and is not recorded), "recorded", or "eager", with the reason. An INPUT has "kind" (moving, static,
 * managed: an output of the path, scalar, opaque) and then: a scalar "value"; memory "bytes", "type", "shape"; a
 * recording's also "way" (patched, copied, copied before: the launch), "nodes" (that have its address) when it moves,
 * "address" (a text) when it is static, "recording" and "output" when it is managed. What is demoted of a function has
 * the recording that it comes after, how many recordings it took, and the way (bound, eager). An output's place is
 * "arena", "empty", or "input" or "output" with its number as "of". A finding's kind is suspected, fixed or frozen
 * (<rondo/patch.h>); "parameter" and "input" are null where there is none. Slots are what a recording has of the arena
 * for moving inputs; those of patched ones are idle but in calls that must copy. What is not UTF-8 in a name is written
 * as U+FFFD. Errors: INVALID_ARGUMENT (NULL, another format), CONCURRENT_USE, IN_CALLBACK, OUT_OF_MEMORY.
 * Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_explain(rondo_tree *tree, rondo_explain_format format,
                                                         char **out_text);

/* Functions -------------------------------------------------------------------------------------------------------- */

/* What an input is, of which a call gives one value (rondo_input); flags are added by |. */
enum {
  RONDO_INPUT_MOVING = 1, /* memory whose address may change from call to call: copied or patched (see `binding`) */
  RONDO_INPUT_STATIC = 2, /* memory that stays where it is: another address makes another recording */
  RONDO_INPUT_SCALAR = 3, /* a number, rondo_input.scalar: each value is recorded by itself */
  RONDO_INPUT_OPAQUE = 4, /* any pointer, handed to the body as it is and never looked at */
  RONDO_INPUT_MUTATED = 0x100, /* the body writes to the memory: what it wrote is there after the call, also when it was
                                 copied in */
  RONDO_INPUT_ROWS = 0x200     /* of a moving input: its shape begins with the number of rows, which is padded */
};

#ifndef __cplusplus
#define RONDO_INPUTS(...) \
  .inputs = (const uint32_t[]){__VA_ARGS__}, .input_count = sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)
#endif

/* Functions of a training step that have a backward: while one FORWARD was called and no BACKWARD since, calls belong
 * to one step, and no output that somebody holds expires (unless a step is marked). */
typedef enum rondo_function_kind {
  RONDO_FUNCTION_INFERENCE = 0,
  RONDO_FUNCTION_FORWARD = 1,
  RONDO_FUNCTION_BACKWARD = 2
} rondo_function_kind;

/* How moving inputs come to the recorded work. A patched input costs host time for each node that reads it, a copied
 * one device time for its bytes; on a CUDA device up to sixteen small ones are copied by one kernel in front of the
 * work, and a launch that was told other arguments takes longer whatever they are. A patched address must keep the
 * alignment that it was recorded with modulo RONDO_PATCH_ALIGNMENT (<rondo/patch.h>), else the input is copied for that
 * call: so each moving input has a slot of its bytes in the arena, patched or not, which rondo_tree_explain shows. */
typedef enum rondo_binding {
  RONDO_BINDING_AUTOMATIC = 0, /* what costs least by rondo_costs: patched where all readers are known, or copied */
  RONDO_BINDING_COPY = 1,
  RONDO_BINDING_PATCH = 2 /* copied where not all readers are known */
} rondo_binding;

/* What becomes of an input that is another output of the path each time, where its address makes a recording of each.
 * It is *demoted* when it made `demote_after` recordings of one form of inputs necessary in one place, which is behind
 * one recording, each of which it set apart from the one most like it. What stays where it is is never demoted, nor is
 * an input that is declared static. A demoted input comes to the work as moving memory does, so that there is one
 * recording wherever it is; what the body writes to it, declared or not, is there after the call. Where it has bytes in
 * common with another input, and one of the function's inputs may be written, it stays an output of the path for that
 * call. Its memory is not used again inside the call, though it be given. Recordings of the function in that place that
 * no call can need any more go, with all behind them. It is demoted as long as there is the recording before it. */
typedef enum rondo_demotion {
  RONDO_DEMOTION_BIND = 0, /* it is copied or patched in that place (rondo_binding) */
  RONDO_DEMOTION_SKIP = 1, /* the function runs as it is in that place (MOVING_OUTPUT) */
  RONDO_DEMOTION_NEVER = 2 /* recordings are made up to rondo_tree_options.max_recordings_per_place */
} rondo_demotion;

/* What a function does. It may call Rondo with the call's stream, and streams that it forks off and joins; allocate
 * (rondo_malloc_async) what it frees again (rondo_free_async); give work to libraries (rondo_stream_native); and call
 * other functions of the tree, which become a part of it. Its failure is the call's.
 *
 * Stray work. What a body gives to other streams runs at once. As long as the body runs as it is, also to warm up, that
 * is its own affair; recorded, such work would be missing from replays. So while its work is recorded, or captured by a
 * caller, the calls of its thread do this, whatever it makes of what they return. A recording with refused calls is
 * given up, and the body runs as it is, for the reason in brackets; a caller's capture becomes invalid.
 * - What queues: launches, copies, fills, host functions, collectives; rondo_malloc_async, rondo_free_async;
 *   rondo_event_record, rondo_stream_wait_event; rondo_exec_launch, rondo_exec_measure, rondo_patch_set_launch,
 *   rondo_recording_replay; rondo_generator_reserve, rondo_random_uniform; calls and preparations of functions and
 *   callables, rondo_buffer_copy, rondo_buffer_clone; on its own stream, a compiled program's run, write and read.
 *   - On the call's stream, and on those that were forked off from it (C3): becomes part of the recording.
 *   - On a stream of another capture, as of one that the body began: captured there.
 *   - On another stream, or after the recording was given up: CAPTURE_REFUSED/STRAY_WORK in every mode of the thread,
 *     naming call, stream and function (OTHER_WORK; SEVERAL_DEVICES where the stream is another device's).
 *   - Waiting for an event that was recorded outside of the recording: refused by C7 (OTHER_WORK).
 * - What waits or asks, for any stream, event or device, and what acts at once (rondo_malloc, rondo_free, trims, states
 *   of generators): refused as captures refuse it, C6 and C9 (HOST_WORK).
 * - What reads or writes memory of a CPU device directly, on the body's own thread, or lets a system call (read, write)
 *   do it: there is no memory behind inputs and allocations while they are recorded. It reads zeros, what it writes is
 *   lost, and the recording is given up (HOST_WORK) in words that name the input or allocation. Memory that an earlier
 *   recording of the tree has used is there: cpu does not notice accesses to it. cpu:check does, but a system call may
 *   fail there with EFAULT unnoticed.
 * - What prepares (creating, destroying, graphs by hand, instantiating, uploading, updating): is done now, and not
 *   repeated by replays. The call's own stream cannot be destroyed (INVALID_STATE/STILL_IN_USE).
 * What is given to native handles of other streams is not seen, nor is what other threads do. A host step is none of
 * the recorded work, and may use other streams in every run.
 *
 * Host accesses. A body that runs as it is may access memory on the host once its stream has come to it: after
 * rondo_stream_synchronize, or in a host step. Without that, cpu reads whatever is there. On cpu:check the call fails
 * when the body's own thread accesses an allocation that the stream has not come to yet, or has freed:
 * EXECUTION_FAILED with NOT_ALLOCATED or USE_AFTER_FREE, in words that name the allocation. Where the stream was fast
 * enough, nothing is noticed; nor is a system call, which fails with EFAULT there.
 *
 * Values. A recording keeps the values that kernels and fills were given: a learning rate that the body reads from the
 * caller's memory stays what it was. So the values of each run of the body are compared with those of the run before,
 * when both launched the same kernels over the same grids in the same order. Where one differs, the call runs as it is
 * (CHANGED), and the message names the kernel, the argument and both values. It is recorded at the next call if the
 * value stays, and never after three changes. The remedy is an input that is RONDO_INPUT_SCALAR, of which each value
 * makes a recording, or a value in device memory that the kernel reads. rondo_function_options.freezes_values switches
 * this off. Not compared: pointers and words that may be addresses, what a generator gives (RONDO_RANDOM_ARGS),
 * arguments of libraries' kernels, and values that change only after the recording was made. A body that makes values
 * of its inputs' addresses needs freezes_values, since a recording has its inputs elsewhere. */
typedef rondo_status (*rondo_function_body)(rondo_call *call, void *user);

typedef struct rondo_function_options {
  uint32_t struct_size; /* RONDO_FUNCTION_OPTIONS_INIT sets it; 0 means the library's own */
  rondo_function_kind kind;
  const char *name; /* required, not empty; copied */
  rondo_function_body body;
  void *user;             /* for the body; must outlive the function */
  const uint32_t *inputs; /* RONDO_INPUTS(...): what each input is; copied */
  size_t input_count;     /* at most 1024 */
  rondo_binding binding;
  uint32_t warm_ups;         /* calls of a new form of inputs that run as they are; 0 = 1, or 2 (`record`) */
  uint32_t max_shapes;       /* forms of inputs that are recorded; further ones run as they are (SHAPE_LIMIT); 0 = 64 */
  uint32_t min_nodes;        /* a recording of fewer nodes is not worth it (TOO_SMALL) */
  bool static_shapes;        /* only the first form of inputs is recorded, others run as they are (CHANGING_SHAPES) */
  bool unsafe;               /* never recorded */
  bool unsafe_deterministic; /* not recorded in a tree that is deterministic */
  bool find_inputs;    /* addresses of moving inputs that no parameter declares are found: the body is recorded three
                          times, with these inputs in two places, and the recordings are compared (<rondo/patch.h>). What
                          changed between them and is neither an input nor memory is frozen into the recording: the log
                          says where. Before an input is patched that was found so, the recorded work is tried, with its
                          side effects taken back as by rondo_function_prepare, and those on outputs of the path: it must
                          give bit for bit the same with its inputs elsewhere and zeros where they were, or all of them
                          are copied (mistrusted) */
  bool freezes_values; /* values that change between calls may be frozen into a recording (see "Values") */
  bool reserved[3];
  const size_t *buckets; /* numbers of rows, ascending: inputs that are RONDO_INPUT_ROWS are padded to the next one
                            (TR-7), so that there is one recording for each; copied. More rows than the last are not
                            padded, nor are calls inside a body or a capture */
  size_t bucket_count;
  uint32_t padding; /* what the rows beyond are filled with, a word of 4 bytes; where they are no such words, its low
                       byte */
  rondo_demotion demotion;
  uint32_t demote_after;      /* recordings, at most max_recordings_per_place; 0 = 5 */
  rondo_record_policy record; /* WHERE_IT_PAYS (FW-8): the last warm-up is metered, held back on a GPU for 5 ms at most
                                 until all is queued, and there are two at least, so that what a first run makes ready
                                 does not count. Forms are recorded unless that predicts too little (NO_GAIN); also
                                 where it predicts nothing: with host steps, or as something is captured before the
                                 device's costs are known. NEVER: as it is (DISABLED) */
  double least_gain;          /* ... as `least` and */
  uint64_t expected_runs;     /* ... `runs` of rondo_gain_pays (<rondo/gain.h>) */
} rondo_function_options;
#define RONDO_FUNCTION_OPTIONS_INIT .struct_size = sizeof(rondo_function_options)

/* Errors: INVALID_ARGUMENT (NULL, no name, no body, a bad input or flag, more than 1024 inputs, BAD_OPTIONS),
 * OUT_OF_MEMORY, CONCURRENT_USE. Thread-compatible with respect to the tree. */
RONDO_API RONDO_MUST_USE rondo_status rondo_function_create(rondo_tree *tree, const rondo_function_options *options,
                                                            rondo_function **out_function);

/* Forgets the function and its recordings, with all recordings behind them; its outputs stay valid for their step. A
 * tree that is destroyed does this for all its functions. NULL is fine. Errors: CONCURRENT_USE, IN_CALLBACK.
 * Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_function_destroy(rondo_function *function);

/* As rondo_tree_set_recording, for one function. */
RONDO_API RONDO_MUST_USE rondo_status rondo_function_set_recording(rondo_function *function, bool on);

typedef struct rondo_function_info {
  uint32_t struct_size;
  uint32_t recordings, shapes;                /* that there are now */
  uint64_t calls, replayed, recorded, bodies; /* bodies: times the body ran */
  uint64_t skipped[RONDO_SKIP_ROOM];
  rondo_skip last_skip; /* of the last call that ran as it is */
  uint32_t reserved;
  const char
      *last_message; /* what it was in words, with the remedy; "" when there was none; valid until the next call */
  uint64_t prepared; /* recordings made by rondo_function_prepare; not among `recorded` */
  uint64_t demoted;  /* inputs, each in one place */
  uint64_t moved;    /* times that it was, or would have been, recorded again as a static input was elsewhere (FW-7) */
  const char *moved_message; /* the last time in words: input, both addresses, remedy; "" when there was none; valid
                                until the next call */
} rondo_function_info;

/* What came to a bucket of the function's. */
typedef struct rondo_bucket_info {
  uint32_t struct_size;
  uint32_t reserved;
  size_t rows;
  uint64_t calls;
  uint64_t given_rows, padded_rows; /* of those calls: what was given, and what was added to it */
} rondo_bucket_info;

/* Errors: INVALID_ARGUMENT (NULL, OUT_OF_RANGE). Thread-compatible with respect to the tree. */
RONDO_API RONDO_MUST_USE rondo_status rondo_function_get_bucket(const rondo_function *function, size_t index,
                                                                rondo_bucket_info *out_info);

/* Errors: INVALID_ARGUMENT, CONCURRENT_USE. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_function_get_info(const rondo_function *function,
                                                              rondo_function_info *out_info);

/* Calls ------------------------------------------------------------------------------------------------------------ */

/* The value of an input. Memory is a buffer, or else an address and bytes. Type and shape may stay zero: they only tell
 * calls apart. */
typedef struct rondo_input {
  rondo_buffer *buffer; /* an output of an earlier call, or rondo_buffer_create's; NULL = address and bytes are given */
  void *address;        /* memory of the tree's device; with a buffer NULL, or a place in it */
  size_t bytes;         /* with a buffer 0 = to its end */
  uint64_t scalar;      /* for RONDO_INPUT_SCALAR */
  uint32_t type;        /* a rondo_type, or any number of the caller's; 0 with a buffer = the buffer's */
  uint32_t rank;        /* at most RONDO_TREE_MAX_RANK; with a buffer and type 0 the buffer's */
  size_t shape[RONDO_TREE_MAX_RANK];
  bool give; /* the reference to `buffer` goes to the call, also when it fails: when no one else holds it, its memory
                can be used again inside the call from rondo_call_drop_input on */
} rondo_input;

/* Calls the function with work queued on the stream, after the tree's earlier calls on any stream. The caller owns a
 * reference to each of the first `output_count` outputs; outputs that are not asked for are released. Fails before
 * anything is queued but for the last four. Errors:
 *   INVALID_ARGUMENT (NULL, also an input of bytes without memory; ARGUMENT_COUNT; OTHER_DEVICE; SHAPE: too high a
 *     rank; OUT_OF_RANGE: not inside its buffer);
 *   INVALID_LIFETIME/STALE_BUFFER (an input of an earlier step: names function, output and step), INVALID_STATE with
 *     CONCURRENT_USE, TREE_GONE, IN_CALLBACK;
 *   UNSUPPORTED/NOT_RECORDED in a strict tree, with the reason (rondo_skip) in the message;
 *   what the body returns; ARGUMENT_COUNT (more outputs asked for than the body makes), INVALID_STATE/NO_OUTPUT (a
 *     gap); DEVICE_LOST and what the launch returns; a failure of the stream's earlier work, where the call
 *     waits for it (host steps; find_inputs, when it records); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_function_call(rondo_function *function, rondo_stream *stream,
                                                          const rondo_input *inputs, size_t input_count,
                                                          rondo_buffer **outputs, size_t output_count);

/* Warms up and records now what a call with such inputs would, next on the path, without being a call: as many warm-ups
 * as are to be done, and the recording, which is not launched. So the first real call is a replay. At the end all is as
 * it was before: inputs that are declared RONDO_INPUT_MUTATED, of every kind, have their bytes, saved and restored in
 * the stream's order; generators that the calling thread drew from are where they were (<rondo/random.h>); outputs are
 * released; the path, its step and what can be read of it stay; `give` gives nothing, and only says what the call will
 * do. Warm-ups take host steps, which nobody can take back, and what a body does to other memory stays.
 * Nothing is done when it is recorded already. Errors, with nothing left behind but warm-ups that were done:
 *   UNSUPPORTED/NOT_RECORDED with the reason (rondo_skip) in the message: a call would run as it is; BEHIND_WARM_UP
 *     when one on the path did, so that the step has to be run once more before;
 *   CAPTURE_REFUSED (the stream captures); CONCURRENT_USE (inside a body); those of rondo_function_call. */
RONDO_API RONDO_MUST_USE rondo_status rondo_function_prepare(rondo_function *function, rondo_stream *stream,
                                                             const rondo_input *inputs, size_t input_count);

/* What became of the tree's last call. */
typedef enum rondo_call_outcome {
  RONDO_CALL_NONE = 0, /* there was none, or it was refused in a strict tree, for `skip` */
  RONDO_CALL_REPLAYED = 1,
  RONDO_CALL_RECORDED = 2, /* and launched once */
  RONDO_CALL_UNRECORDED = 3
} rondo_call_outcome;

typedef struct rondo_call_info {
  uint32_t struct_size;
  rondo_call_outcome outcome;
  rondo_skip skip;    /* UNRECORDED, or refused: why */
  uint32_t recording; /* its number, which no other recording of the tree has or had; 0 when there is none */
  uint64_t step;
  const char *function; /* valid as long as it */
  const char *message;  /* the reason in words; "" when there is none; valid until the next call */
} rondo_call_info;

/* Errors: INVALID_ARGUMENT, CONCURRENT_USE. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_tree_get_last_call(rondo_tree *tree, rondo_call_info *out_info);

/* In a body -------------------------------------------------------------------------------------------------------- */

/* The stream to queue work on; it captures while the call is recorded. */
RONDO_API rondo_stream *rondo_call_stream(const rondo_call *call);

/* Where input `index` is for this run of the body; NULL for scalars and for an index that is out of range. */
RONDO_API void *rondo_call_input(const rondo_call *call, size_t index);
/* All of it: bytes, type and shape, the scalar, or the opaque pointer in `address`; buffer is NULL. Errors:
 * INVALID_ARGUMENT with NULL_ARGUMENT, OUT_OF_RANGE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_call_get_input(const rondo_call *call, size_t index,
                                                           rondo_input *out_input);

enum {
  RONDO_OUTPUT_ROWS = 1 /* its shape begins with the number of rows: of a call whose inputs were padded
                           (rondo_function_options.buckets), the first ones are handed out */
};

typedef struct rondo_output_options {
  uint32_t struct_size;
  uint32_t type, rank;
  uint32_t flags; /* RONDO_OUTPUT_ROWS, or 0 */
  size_t shape[RONDO_TREE_MAX_RANK];
  const char *name; /* for messages; copied; may be NULL */
} rondo_output_options;
#define RONDO_OUTPUT_OPTIONS_INIT .struct_size = sizeof(rondo_output_options)

/* Memory for output `index` (at most 1023), contents undefined; the call's, so that the body does not release it.
 * bytes of 0 makes an output without memory, which no step ends. options may be NULL. Errors: INVALID_ARGUMENT (NULL,
 * OUT_OF_RANGE, DUPLICATE_NAME: the output was made), OUT_OF_MEMORY, what rondo_malloc_async returns. */
RONDO_API RONDO_MUST_USE rondo_status rondo_call_output(rondo_call *call, size_t index, size_t bytes,
                                                        const rondo_output_options *options, void **out_address);

/* Makes output `index` of memory that there is: `bytes` bytes from `offset` on of input `input`, or of the earlier
 * output `output`. It holds the memory of both; what is of an input from an earlier step ends with the call. Errors:
 * INVALID_ARGUMENT (as above; OUT_OF_RANGE), INVALID_LIFETIME/USE_AFTER_FREE (the input was dropped). */
RONDO_API RONDO_MUST_USE rondo_status rondo_call_output_of_input(rondo_call *call, size_t index, size_t input,
                                                                 size_t offset, size_t bytes,
                                                                 const rondo_output_options *options);
RONDO_API RONDO_MUST_USE rondo_status rondo_call_output_of_output(rondo_call *call, size_t index, size_t output,
                                                                  size_t offset, size_t bytes,
                                                                  const rondo_output_options *options);

/* The body needs input `index` no more: of an input that was given (rondo_input.give), and that no one else holds, nor
 * another input or an output of the call, the memory may be used again by what is queued after this call on the call's
 * stream. Nothing happens for others. A body that reads the input all the same is not recorded (OTHER_WORK), as far as
 * that is seen: while nothing has taken the memory, and always on "cpu:check". Errors: INVALID_ARGUMENT with
 * NULL_ARGUMENT, OUT_OF_RANGE; CAPTURE_INVALID. */
RONDO_API RONDO_MUST_USE rondo_status rondo_call_drop_input(rondo_call *call, size_t index);

/* A host step (TR-14): `step` is called on the caller's thread when all that the body queued so far is done, once in
 * every call of the function, recorded or not; it may read results and use other streams, must not queue work of the
 * call, and its failure is the call's; it calls no functions of the tree. A body with host steps is recorded in the
 * segments between them. While it is recorded, this returns at once: its work runs and its steps are taken when the
 * body is done and the recording stands, so that a recording which is given up has taken none. So a body must not look
 * at what its steps leave; work that is queued behind them may, as copies from the host. `user` must stay valid as long
 * as the function. Errors: INVALID_ARGUMENT, those of the step, of the work before it, and of recording it. */
RONDO_API RONDO_MUST_USE rondo_status rondo_call_host_step(rondo_call *call, rondo_host_function step, void *user);

/* This run, or what it is a part of, did not warm up all that there is to: the next call of this form of inputs is
 * another warm-up. Without effect in other runs (TR-1). Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_call_warm_up_again(rondo_call *call);

/* The body says that it, and what it is a part of, must not be recorded, and for what: UNKNOWN_SHAPE, HOST_WORK, UNSAFE
 * or UNSAFE_DETERMINISTIC; `what` names the operation, for messages. While it is being recorded, this ends with an
 * error, which the body returns: the call is then run as it is. Errors: INVALID_ARGUMENT (another reason);
 * INVALID_STATE/NOT_RECORDED. */
RONDO_API RONDO_MUST_USE rondo_status rondo_call_refuse(rondo_call *call, rondo_skip reason, const char *what);

/* Buffers ---------------------------------------------------------------------------------------------------------- */

/* Memory of the tree's device that belongs to no step: valid until it is released, at one address (TR-6: a static
 * input; accumulated gradients). Contents undefined. Errors: INVALID_ARGUMENT (NULL, 0 bytes), OUT_OF_MEMORY,
 * CONCURRENT_USE. Thread-compatible with respect to the tree. */
RONDO_API RONDO_MUST_USE rondo_status rondo_buffer_create(rondo_tree *tree, size_t bytes,
                                                          const rondo_output_options *options,
                                                          rondo_buffer **out_buffer);

/* Thread-safe; a buffer is not used after its last release. The memory may be used again after what is queued on the
 * stream of the tree's next call by then. NULL is fine for release. */
RONDO_API void rondo_buffer_retain(rondo_buffer *buffer);
RONDO_API void rondo_buffer_release(rondo_buffer *buffer);

/* Where the memory is (NULL for 0 bytes). Errors: INVALID_ARGUMENT; INVALID_LIFETIME/STALE_BUFFER naming function,
 * output and step when the step is over; INVALID_STATE/TREE_GONE. Thread-compatible with respect to the tree. */
RONDO_API RONDO_MUST_USE rondo_status rondo_buffer_address(const rondo_buffer *buffer, void **out_address);

/* Queues a copy of `bytes` bytes from `offset` on to `dst`, host or device memory. Errors: as rondo_buffer_address;
 * OUT_OF_RANGE; those of rondo_copy_async. */
RONDO_API RONDO_MUST_USE rondo_status rondo_buffer_copy(const rondo_buffer *buffer, rondo_stream *stream, size_t offset,
                                                        void *dst, size_t bytes);

/* A copy of the buffer in memory of its own, which belongs to no step. Errors: as rondo_buffer_address and
 * rondo_buffer_create; OTHER_DEVICE; CAPTURE_REFUSED (the stream captures: copy there). */
RONDO_API RONDO_MUST_USE rondo_status rondo_buffer_clone(const rondo_buffer *buffer, rondo_stream *stream,
                                                         rondo_buffer **out_buffer);

typedef struct rondo_buffer_info {
  uint32_t struct_size;
  bool is_valid;        /* may be read */
  bool is_recorded;     /* in the arena, at an address that replays keep */
  uint32_t output;      /* of its function */
  const char *function; /* that made it; "" for rondo_buffer_create; valid as long as the buffer */
  uint64_t step;        /* 0 for memory that belongs to no step */
  size_t bytes;
  uint32_t type, rank;
  size_t shape[RONDO_TREE_MAX_RANK];
} rondo_buffer_info;

/* Also of a buffer that may not be read. Errors: INVALID_ARGUMENT. Thread-compatible with respect to the tree. */
RONDO_API RONDO_MUST_USE rondo_status rondo_buffer_get_info(const rondo_buffer *buffer, rondo_buffer_info *out_info);

RONDO_EXTERN_C_END

#endif

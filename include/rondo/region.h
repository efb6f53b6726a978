/* SPDX-License-Identifier: MIT
 * Regions: recording and replaying code that cannot become a callback (AD-5). A region is a function of a tree whose
 * body is the code between two calls. The code runs eagerly the first time and is captured the second time. From then
 * on it does not run: the beginning of the region launches what was captured.
 *
 *   rondo_region_create(tree, &(rondo_region_options){RONDO_REGION_OPTIONS_INIT, .name = "decode",
 *                       RONDO_INPUTS(RONDO_INPUT_MOVING), .key_bytes = sizeof shape}, &region);
 *   for (;;) {
 *     const rondo_region_arguments arguments = {.key = &shape, .key_bytes = sizeof shape,
 *                                               .inputs = &(rondo_input){.address = x, .bytes = bytes},
 *                                               .input_count = 1};
 *     TRY(rondo_region_begin(region, stream, &arguments, &call));
 *     while (call != NULL) {
 *       const rondo_status done = engine_run(rondo_call_stream(call), rondo_call_input(call, 0));
 *       TRY(rondo_region_end(region, stream, done, &call));
 *     }
 *   }
 *
 * Identity. A recording is replayed for the key with which it was made, compared byte by byte, and for the same inputs
 * as a function's (<rondo/tree.h>): their bytes, types and shapes, the addresses of static inputs, the values of
 * scalars. Everything else that the code reads on the host is frozen into the recording, so what changes belongs into
 * the key or the inputs. The code reads moving inputs at rondo_call_input, not at the caller's address. Nothing is
 * recorded (OTHER_WORK) if a node or a host step has the caller's address of a moving input, even if a static input has
 * that address too, or if it may have it: a library enqueued it, and the driver does not show its addresses. Values
 * that change between the warm-up and the recording are detected as in functions (CHANGED).
 *
 * Code without inputs, such as an engine that rebuilds its graph at each call, uses RONDO_REGION_CAPTURE_ALWAYS: it
 * always runs, and each call after the warm-ups is captured. The exec of an earlier capture with the same work is
 * updated and launched. If the driver cannot update it, another exec is made. So nothing is frozen, and what is saved
 * is the launches, not the code.
 *
 * All of rondo_call_* works on the call, as in a body: inputs, outputs, refusals, host steps. Calls with the region in
 * a host step or a host function are refused (CONCURRENT_USE, REGION_NOT_OPEN, IN_CALLBACK), and rondo_region_abandon
 * does nothing there.
 *
 * A capture that dies, because of a call of another thread or of a library, is not an error. What the code enqueued in
 * it has not run, and rondo_region_end returns the call once more: the code runs again, this time eagerly.
 * rondo_region_info counts such captures and says which call it was, of which thread or library. Therefore the loop in
 * the example. What the code does on the host, it does twice then. A later call is captured again, ever more rarely if
 * those captures die too (RONDO_SKIP_CAPTURE_DIED).
 *
 * A region keeps at most max_recordings recordings in max_exec_bytes, and drops the least recently used ones first.
 * rondo_tree_explain lists the keys that it knows, with what happened to each.
 *
 * A thread has at most one open region. While a region is open, other uses of its tree are refused (CONCURRENT_USE),
 * except calls of its functions by the same thread, which become part of the region. A region inside a body of another
 * tree, or on a stream that captures, becomes part of that capture. Regions are thread-compatible with respect to the
 * tree.
 */
#ifndef RONDO_REGION_H
#define RONDO_REGION_H

#include <rondo/tree.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_region rondo_region;

typedef enum rondo_region_mode {
  RONDO_REGION_REPLAY = 0,        /* recorded once for each key, then replayed without running the code */
  RONDO_REGION_CAPTURE_ALWAYS = 1 /* captured each time */
} rondo_region_mode;

#define RONDO_REGION_MAX_KEY 4096

typedef struct rondo_region_options {
  uint32_t struct_size; /* RONDO_REGION_OPTIONS_INIT sets it; 0 means the library's own */
  rondo_region_mode mode;
  const char *name;        /* required, not empty; copied */
  const uint32_t *inputs;  /* RONDO_INPUTS(...), as rondo_function_options.inputs; copied */
  size_t input_count;      /* at most 1024 */
  size_t key_bytes;        /* maximum length of a key; at most RONDO_REGION_MAX_KEY */
  uint32_t max_recordings; /* of the region. Beyond it, the least recently used one is evicted. The region remembers as
                              many keys that are not recorded yet; a key that is forgotten warms up again. 0 = 64. The
                              tree's own limits hold as well */
  uint32_t warm_ups;       /* eager runs for each new key and form of inputs; 0 = 1 */
  uint32_t min_nodes;      /* work with fewer nodes is not recorded (TOO_SMALL) */
  rondo_binding binding;   /* of moving inputs */
  bool freezes_values;     /* as rondo_function_options.freezes_values */
  bool reserved[3];
  uint64_t max_exec_bytes; /* host and device memory of the execs of its recordings. Beyond it, the least recently used
                              recordings are evicted, but never the last one. An exec that several recordings share
                              (rondo_tree_options.share_execs) counts in equal parts. 0 = no limit but the tree's,
                              rondo_tree_options.max_exec_bytes */
} rondo_region_options;
#define RONDO_REGION_OPTIONS_INIT .struct_size = sizeof(rondo_region_options)

/* Creates a region in the tree. rondo_tree_destroy destroys it, even if the calling thread has it open. Errors:
 * INVALID_ARGUMENT (NULL, no name, BAD_OPTIONS, OUT_OF_RANGE: too many inputs or a longer key), OUT_OF_MEMORY,
 * CONCURRENT_USE. Thread-compatible with respect to the tree. */
RONDO_API RONDO_MUST_USE rondo_status rondo_region_create(rondo_tree *tree, const rondo_region_options *options,
                                                          rondo_region **out_region);

/* Destroys the region with its recordings, after rondo_region_abandon if the calling thread has it open. Outputs stay
 * valid until their step ends. NULL is fine. Errors: CONCURRENT_USE, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_region_destroy(rondo_region *region);

/* What distinguishes a call, and what it returns. */
typedef struct rondo_region_arguments {
  const void *key;
  size_t key_bytes;
  const rondo_input *inputs; /* as for rondo_function_call; giving a buffer is refused */
  size_t input_count;        /* as in the region's options */
  rondo_buffer **outputs;    /* receives the first `output_count` outputs, of which the caller owns a reference */
  size_t output_count;
} rondo_region_arguments;

/* Begins the region. If *out_call is NULL, there is nothing to run: the recording was launched, and the outputs are
 * there. Otherwise the code runs with this call, which is valid until rondo_region_end. The call's stream is `stream`.
 * Until then the arguments' inputs and outputs must stay valid too; the key is copied. `arguments` may be NULL for
 * none. The work is enqueued after the tree's earlier calls. `where` says in messages where the region was begun; the
 * pointer is kept until the end. The macro passes file and line. Errors: INVALID_STATE/REGION_LEFT: the region is open
 * in this thread since the named place, left by return or longjmp. It is abandoned now, so it can be begun again;
 *   INVALID_STATE/REGION_STREAM: it is open on another stream, and stays open;
 *   INVALID_STATE/REGION_NESTED: the thread has another region open, or is in a body of the tree;
 *   INVALID_STATE/CONCURRENT_USE: the tree is in use, for example by a region that another thread has open;
 *   INVALID_ARGUMENT (NULL; ARGUMENT_COUNT; OUT_OF_RANGE: the key is too long; BAD_OPTIONS: give; OTHER_DEVICE);
 *   those of rondo_function_call. After an error the region is not open, except for REGION_STREAM. */
RONDO_API RONDO_MUST_USE rondo_status rondo_region_begin_at(rondo_region *region, rondo_stream *stream,
                                                            const rondo_region_arguments *arguments, const char *where,
                                                            rondo_call **out_call);
#define RONDO_REGION_TEXT_(x) #x
#define RONDO_REGION_TEXT(x) RONDO_REGION_TEXT_(x)
#define rondo_region_begin(region, stream, arguments, out_call) \
  rondo_region_begin_at(region, stream, arguments, __FILE__ ":" RONDO_REGION_TEXT(__LINE__), out_call)

/* Ends a run of the code, which ended with the status `done`. If the code failed while it was captured because it
 * cannot be captured, or if the capture died, *out_call is not NULL: the code must run again, eagerly, and another end
 * is due. Otherwise the region is closed; captured work was launched. If rondo_region_begin returned no call, one end
 * may follow, which does nothing. Errors, with *out_call = NULL: INVALID_STATE/REGION_NOT_OPEN: it was not begun, or by
 * another thread; INVALID_STATE/REGION_STREAM: it was begun on another stream, and stays open; `done`, if the code ran
 * eagerly; those of rondo_function_call. The region is closed then. */
RONDO_API RONDO_MUST_USE rondo_status rondo_region_end(rondo_region *region, rondo_stream *stream, rondo_status done,
                                                       rondo_call **out_call);

/* Closes the region without its end, for example before a longjmp: a recording is dropped, and nothing of it has run.
 * Does nothing unless the calling thread has the region open, and in host steps and host functions. Does not change
 * rondo_last_error. */
RONDO_API void rondo_region_abandon(rondo_region *region);

typedef struct rondo_region_info {
  uint32_t struct_size;
  uint32_t recordings; /* current number */
  uint32_t keys;       /* current number of keys with a form of inputs that it remembers */
  rondo_skip last_skip;
  uint64_t calls;                    /* begun */
  uint64_t replayed;                 /* without running the code */
  uint64_t captured;                 /* and launched */
  uint64_t updated;                  /* ... of which the exec of an earlier capture was updated (CAPTURE_ALWAYS) */
  uint64_t bodies;                   /* runs of the code */
  uint64_t evicted;                  /* recordings, because of a limit */
  uint64_t died;                     /* captures that a call made invalid */
  uint64_t left;                     /* times it was begun and not ended */
  uint64_t skipped[RONDO_SKIP_ROOM]; /* calls that ran eagerly, by reason */
  const char *last_message;          /* explains last_skip; may be ""; valid until the next call */
  const char *died_message;          /* says which call made the last capture invalid that died; "" if none did */
  uint64_t exec_bytes;               /* host and device memory of the execs of its recordings */
} rondo_region_info;

/* Errors: INVALID_ARGUMENT, CONCURRENT_USE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_region_get_info(const rondo_region *region, rondo_region_info *out_info);

RONDO_EXTERN_C_END

#endif

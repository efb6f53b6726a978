/* SPDX-License-Identifier: MIT
 * Status codes and the detail behind them.
 *
 * Every call that can fail returns a rondo_status; the compiler warns when one is dropped. The code says which kind of
 * thing went wrong and is what programs branch on; rondo_last_error() says what it was, with names, sizes and the
 * remedy, and is what people read. A call that fails changes nothing that existed before it, unless its comment says
 * otherwise. A call that creates something sets its out-parameter to NULL (or 0) before anything else.
 */
#ifndef RONDO_STATUS_H
#define RONDO_STATUS_H

#include <stdint.h>

#include <rondo/version.h>

RONDO_EXTERN_C_BEGIN

typedef enum rondo_status {
  RONDO_OK = 0,
  RONDO_INVALID_ARGUMENT = 1,  /* an argument is wrong in itself: NULL, zero, out of range, of another owner */
  RONDO_OUT_OF_MEMORY = 2,     /* host or device memory, or address space, cannot be had */
  RONDO_NOT_FOUND = 3,         /* no file, device, node or name like that */
  RONDO_UNSUPPORTED = 4,       /* this device or build cannot do it, ever; the message names what is missing */
  RONDO_UNAVAILABLE = 5,       /* a device or library cannot be had here and now (no driver, no GPU) */
  RONDO_INVALID_STATE = 6,     /* the object exists but is not in a state that allows the call */
  RONDO_NOT_READY = 7,         /* a query: the work is still going on; no error detail is kept */
  RONDO_INVALID_GRAPH = 8,     /* a graph that cannot be executed: a cycle, a kernel without a function, a race */
  RONDO_INVALID_LIFETIME = 9,  /* memory used, freed or allocated in an order that the graph does not allow */
  RONDO_CAPTURE_REFUSED = 10,  /* the call is not allowed while a stream is capturing */
  RONDO_CAPTURE_INVALID = 11,  /* the capture was made invalid by an earlier call; end it and begin anew */
  RONDO_UPDATE_REFUSED = 12,   /* an exec cannot be updated so; it still works as before */
  RONDO_INVALID_DATA = 13,     /* bytes from outside (file, JSON) are not what they should be */
  RONDO_IO_ERROR = 14,         /* the operating system refused a read or a write */
  RONDO_LIMIT_EXCEEDED = 15,   /* a stated bound would be passed */
  RONDO_EXECUTION_FAILED = 16, /* work that ran asynchronously failed; comes out at a synchronisation */
  RONDO_DEVICE_LOST = 17       /* the device's context is gone; nothing on it will work again */
} rondo_status;

/* One per rule, so that programs and tests can tell apart what shares a status. */
typedef enum rondo_reason {
  RONDO_REASON_NONE = 0,
  RONDO_REASON_NULL_ARGUMENT,
  RONDO_REASON_BAD_SIZE,
  RONDO_REASON_BAD_OPTIONS, /* struct_size unknown, flag or enum out of range */
  RONDO_REASON_ALLOCATION_FAILED,
  RONDO_REASON_UNKNOWN_DEVICE,
  RONDO_REASON_NO_DRIVER,
  RONDO_REASON_OTHER_DEVICE, /* an object of another device */
  RONDO_REASON_ARGUMENT_COUNT,
  RONDO_REASON_NO_FUNCTION, /* a kernel that has no function for this device */
  RONDO_REASON_OUT_OF_RANGE,
  RONDO_REASON_IN_CALLBACK, /* a Rondo call from inside a host function, one of a session from a callback of its own */
  RONDO_REASON_STILL_IN_USE,
  /* graphs */
  RONDO_REASON_UNKNOWN_NODE, /* a node of another graph, or one that was removed */
  RONDO_REASON_NODE_KIND,
  RONDO_REASON_DUPLICATE_EDGE,
  RONDO_REASON_MISSING_EDGE,
  RONDO_REASON_SELF_EDGE,
  RONDO_REASON_CYCLE,
  RONDO_REASON_EDGE_IN_USE,    /* an address reuse relies on it */
  RONDO_REASON_CAPTURING_INTO, /* the graph is the target of a capture */
  /* capture */
  RONDO_REASON_ALREADY_CAPTURING,
  RONDO_REASON_NOT_CAPTURING,
  RONDO_REASON_UNSUPPORTED_CALL, /* 900: can never be captured, or is unsafe while some stream captures */
  RONDO_REASON_INVALIDATED,      /* 901 */
  RONDO_REASON_MERGE,            /* 902 */
  RONDO_REASON_UNMATCHED_STREAM, /* 903 */
  RONDO_REASON_UNJOINED,         /* 904 */
  RONDO_REASON_ISOLATION,        /* 905 */
  RONDO_REASON_CAPTURED_EVENT,   /* 907 */
  RONDO_REASON_WRONG_THREAD,     /* 908 */
  RONDO_REASON_EVENT_NOT_RECORDED,
  RONDO_REASON_NO_TIMING,
  RONDO_REASON_ALREADY_PROFILING, /* a profile was begun on the stream */
  RONDO_REASON_NOT_PROFILING,
  /* recordings */
  RONDO_REASON_ALREADY_CAPTURED, /* it holds a capture */
  RONDO_REASON_NOT_CAPTURED,     /* it never held one */
  RONDO_REASON_WAS_RESET,        /* it holds none any more */
  RONDO_REASON_HOST_DECISION,    /* what the host decides by looking at values */
  /* updates */
  RONDO_REASON_TOPOLOGY_CHANGED,
  RONDO_REASON_NODE_KIND_CHANGED,
  RONDO_REASON_PARAMETERS_CHANGED,
  RONDO_REASON_FUNCTION_CHANGED,
  RONDO_REASON_NOT_UPDATABLE,
  /* memory */
  RONDO_REASON_FOREIGN_ADDRESS,
  RONDO_REASON_DOUBLE_FREE,
  RONDO_REASON_NOT_ALLOCATED, /* used or freed before its alloc node was reached */
  RONDO_REASON_USE_AFTER_FREE,
  RONDO_REASON_STILL_ALLOCATED, /* launched again while an allocation of the last launch lives */
  RONDO_REASON_ADDRESS_SPACE,
  RONDO_REASON_INTERIOR_ADDRESS, /* inside an allocation, not where it begins */
  RONDO_REASON_WRONG_MEMORY,     /* host memory where device memory is meant, or the reverse */
  RONDO_REASON_RACE,             /* two accesses of the same bytes, one of which writes, without order */
  RONDO_REASON_NO_ACCESS,        /* memory of a device that the accessing one may not reach */
  RONDO_REASON_NO_ADDRESS,       /* of a graph of data only, dumped without its addresses */
  RONDO_REASON_NOT_RELOCATABLE,  /* an address of graph memory that relocating cannot tell the meaning of, or rewrite */
  /* tensors and files */
  RONDO_REASON_SHAPE,
  RONDO_REASON_TYPE,
  RONDO_REASON_UNKNOWN_NAME,
  RONDO_REASON_DUPLICATE_NAME,
  RONDO_REASON_TRUNCATED,
  RONDO_REASON_MALFORMED,
  RONDO_REASON_UNPREPARED, /* something the warm-up left undone was met while capturing */
  RONDO_REASON_HOST_FUNCTION_FAILED,
  RONDO_REASON_FOREIGN_WORK, /* work that a library captured, in a form that only the driver's own graph can hold */
  /* patching */
  RONDO_REASON_MISALIGNED,    /* an input's new address does not keep the alignment of the recorded one; an offset in a
                                 plan is no multiple of its item's alignment */
  RONDO_REASON_STALE_PATCHES, /* the exec's nodes have other addresses than the patch set knows */
  /* collectives */
  RONDO_REASON_RANK_TAKEN, /* another communicator is that rank of the group */
  RONDO_REASON_MISMATCH,   /* ranks differ in what they say of the group or of a collective */
  RONDO_REASON_TIMED_OUT,  /* a rank did not come */
  RONDO_REASON_PEER_LOST,  /* a rank has ended, left or failed */
  RONDO_REASON_OVERLAP,    /* two collectives of one communicator at once; ranges that must be apart */
  RONDO_REASON_ABORTED,
  /* trees */
  RONDO_REASON_STALE_BUFFER,   /* of a step that is over */
  RONDO_REASON_TREE_GONE,      /* the buffer's tree was destroyed */
  RONDO_REASON_CONCURRENT_USE, /* by two threads at once, or from inside a body */
  RONDO_REASON_SCOPE,        /* a step that was begun and not ended, or the other way round; a session's stream that was
                                not taken */
  RONDO_REASON_NOT_RECORDED, /* a call that cannot be recorded; see rondo_skip */
  RONDO_REASON_NO_OUTPUT,    /* a body left one out; a session's stream has no result yet */
  RONDO_REASON_CALL_ORDER,   /* another call is due */
  RONDO_REASON_STRAY_WORK,   /* work of a body that is recorded, on a stream that is no part of the recording */
  /* checkpoints */
  RONDO_REASON_CHECKSUM, /* data that do not have the checksum which was kept of them */
  /* programs */
  RONDO_REASON_OVERWRITTEN, /* a value in memory that is shared, which another program has used since */
  /* sessions */
  RONDO_REASON_STALE_TICKET, /* of a request that was waited for */
  /* devices */
  RONDO_REASON_NOT_SUPPORTED, /* the device, its driver or the system does not have it */
  RONDO_REASON_OTHER_PROCESS  /* a device that a parent process opened before it forked this one */
} rondo_reason;

/* What is known of the last error of the calling thread. */
typedef struct rondo_error {
  rondo_status status;
  rondo_reason reason;
  uint32_t node;           /* number of the node it is about, in the graph that the call was given: for a node inside
                              child graphs, that of the outermost child node. RONDO_NO_NODE when about none */
  int32_t driver_code;     /* the driver's or the system's own number (errno, CUresult); 0 when none */
  const char *driver_name; /* its name, "ENOMEM", "CUDA_ERROR_..."; "" when none */
  const char *message;     /* one line or more of text: what, with names and sizes, and what to do */
} rondo_error;

#define RONDO_NO_NODE UINT32_MAX

/* The detail of the last call that failed on this thread. Never NULL; status is RONDO_OK when nothing failed yet. A
 * call that succeeds leaves it as it is; RONDO_NOT_READY does too. So does what fails in a device's work: a host
 * function that a waiting thread runs, or a finding of "cpu:check", which the next synchronisation returns. What fails
 * in a function that a call calls on its caller's thread (a body, a host step, a model's builder) is a call of that
 * thread like any other; where it returns a status that no call in it failed with, the message says that. The strings
 * are the thread's own and valid until its next failing call; they are gone in destructors of the thread's own data
 * (pthread_key_create). Thread-safe (each thread has its own). */
RONDO_API const rondo_error *rondo_last_error(void);

/* "INVALID_LIFETIME" for RONDO_INVALID_LIFETIME; "UNKNOWN" for a number that is no status. Thread-safe. */
RONDO_API const char *rondo_status_name(rondo_status status);

/* "CYCLE" for RONDO_REASON_CYCLE; "UNKNOWN" for a number that is no reason. Thread-safe. */
RONDO_API const char *rondo_reason_name(rondo_reason reason);

RONDO_EXTERN_C_END

#endif

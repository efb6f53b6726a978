/* SPDX-License-Identifier: MIT
 * Status codes and error details.
 *
 * Every call that can fail returns a rondo_status; the compiler warns if it is ignored. The code is the kind of error,
 * for programs to branch on. rondo_last_error() describes the error, with names, sizes and the fix, for people to read.
 * A call that fails changes nothing, unless its comment says otherwise. A call that creates something sets its
 * out-parameter to NULL (or 0) first.
 */
#ifndef RONDO_STATUS_H
#define RONDO_STATUS_H

#include <stdint.h>

#include <rondo/version.h>

RONDO_EXTERN_C_BEGIN

typedef enum rondo_status {
  RONDO_OK = 0,
  RONDO_INVALID_ARGUMENT = 1,  /* an argument is wrong in itself: NULL, zero, out of range, of another owner */
  RONDO_OUT_OF_MEMORY = 2,     /* no host memory, device memory or address space is left */
  RONDO_NOT_FOUND = 3,         /* there is no such file, device, node or name */
  RONDO_UNSUPPORTED = 4,       /* this device or build can never do it; the message names what is missing */
  RONDO_UNAVAILABLE = 5,       /* a device or library is not available now (no driver, no GPU) */
  RONDO_INVALID_STATE = 6,     /* the object exists but is not in a state that allows the call */
  RONDO_NOT_READY = 7,         /* a query: the work is not done yet; there is no error detail */
  RONDO_INVALID_GRAPH = 8,     /* a graph that cannot be executed: a cycle, a kernel without a function, a race */
  RONDO_INVALID_LIFETIME = 9,  /* memory used, freed or allocated in an order that the graph does not allow */
  RONDO_CAPTURE_REFUSED = 10,  /* the call is not allowed while a stream is capturing */
  RONDO_CAPTURE_INVALID = 11,  /* an earlier call invalidated the capture; end it and begin again */
  RONDO_UPDATE_REFUSED = 12,   /* an exec cannot be updated in this way; it still works as before */
  RONDO_INVALID_DATA = 13,     /* bytes from outside (file, JSON) are not valid */
  RONDO_IO_ERROR = 14,         /* the operating system refused a read or a write */
  RONDO_LIMIT_EXCEEDED = 15,   /* a documented limit would be exceeded */
  RONDO_EXECUTION_FAILED = 16, /* asynchronous work failed; a synchronization returns it */
  RONDO_DEVICE_LOST = 17       /* the device's context is gone; nothing on it will work again */
} rondo_status;

/* The rule that was violated. It distinguishes errors that have the same status. */
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
  RONDO_REASON_NO_FUNCTION, /* a kernel without code for this device */
  RONDO_REASON_OUT_OF_RANGE,
  RONDO_REASON_IN_CALLBACK, /* a Rondo call in a host function, or a session call in a callback of the session */
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
  RONDO_REASON_WAS_RESET,        /* it was reset since its last capture */
  RONDO_REASON_HOST_DECISION,    /* a decision that the host makes by reading values */
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
  RONDO_REASON_STILL_ALLOCATED, /* launched again while an allocation of the last launch is not freed */
  RONDO_REASON_ADDRESS_SPACE,
  RONDO_REASON_INTERIOR_ADDRESS, /* inside an allocation, not where it begins */
  RONDO_REASON_WRONG_MEMORY,     /* host memory where device memory is required, or the reverse */
  RONDO_REASON_RACE,             /* two accesses of the same bytes without order, at least one of them a write */
  RONDO_REASON_NO_ACCESS,        /* memory of another device that this device may not access */
  RONDO_REASON_NO_ADDRESS,       /* a graph that is only data, dumped without its addresses */
  RONDO_REASON_NOT_RELOCATABLE,  /* an address of graph memory that is ambiguous, or that relocation cannot rewrite */
  /* tensors and files */
  RONDO_REASON_SHAPE,
  RONDO_REASON_TYPE,
  RONDO_REASON_UNKNOWN_NAME,
  RONDO_REASON_DUPLICATE_NAME,
  RONDO_REASON_TRUNCATED,
  RONDO_REASON_MALFORMED,
  RONDO_REASON_UNPREPARED, /* something was initialized in the capture, because the warm-up did not do it */
  RONDO_REASON_HOST_FUNCTION_FAILED,
  RONDO_REASON_FOREIGN_WORK, /* work that a library captured, in a form that only the driver's own graph can hold */
  /* patching */
  RONDO_REASON_MISALIGNED,    /* an input's new address does not keep the alignment of the recorded one; an offset in a
                                 plan is not a multiple of its item's alignment */
  RONDO_REASON_STALE_PATCHES, /* the exec's nodes have other addresses than the patch set knows */
  /* collectives */
  RONDO_REASON_MISMATCH,  /* ranks disagree about the group or a collective */
  RONDO_REASON_TIMED_OUT, /* a rank did not join or call in time */
  RONDO_REASON_PEER_LOST, /* a rank has ended, left or failed */
  RONDO_REASON_OVERLAP,   /* two collectives of one communicator at once; ranges that must not overlap */
  RONDO_REASON_ABORTED,
  /* trees */
  RONDO_REASON_STALE_BUFFER,   /* of a step that has ended */
  RONDO_REASON_TREE_GONE,      /* the buffer's tree was destroyed */
  RONDO_REASON_CONCURRENT_USE, /* by two threads at once, or from inside a body */
  RONDO_REASON_SCOPE,        /* a step that was begun and not ended, or ended and not begun; a session's stream that was
                                not taken */
  RONDO_REASON_NOT_RECORDED, /* a call that cannot be recorded; see rondo_skip */
  RONDO_REASON_NO_OUTPUT,    /* a body did not create an output; a session's stream has no result yet */
  RONDO_REASON_CALL_ORDER,   /* another call is due */
  RONDO_REASON_STRAY_WORK,   /* a body that is being recorded enqueued work on a stream outside of the recording */
  /* checkpoints */
  RONDO_REASON_CHECKSUM, /* data that does not match its checksum */
  /* programs */
  RONDO_REASON_OVERWRITTEN, /* a value in shared memory, which another program has used since */
  /* sessions */
  RONDO_REASON_STALE_TICKET, /* of a request that was waited for */
  /* devices */
  RONDO_REASON_NOT_SUPPORTED, /* the device, its driver or the system does not have it */
  RONDO_REASON_OTHER_PROCESS, /* a device that a parent process opened before it forked this one */
  RONDO_REASON_STREAM_GONE,   /* a stream that its owner has destroyed */
  /* regions */
  RONDO_REASON_REGION_LEFT,     /* it was begun and never ended */
  RONDO_REASON_REGION_NESTED,   /* a region is begun inside a region, or inside a body of its tree */
  RONDO_REASON_REGION_STREAM,   /* it was begun on another stream */
  RONDO_REASON_REGION_NOT_OPEN, /* it is ended and was not begun, or by another thread */
  /* kernels */
  RONDO_REASON_CONTRADICTED, /* the code of a kernel does with a parameter what its declared access excludes */
  /* sequences */
  RONDO_REASON_STALE_SEQUENCE /* a sequence of a session that was closed or evicted, or whose model was removed */
} rondo_reason;

/* The details of the last error of the calling thread. */
typedef struct rondo_error {
  rondo_status status;
  rondo_reason reason;
  uint32_t node;           /* number of the node that the error concerns, in the graph that was passed to the call. For
                              a node inside child graphs, that of the outermost child node. RONDO_NO_NODE if none */
  int32_t driver_code;     /* the code of the driver or the system (errno, CUresult); 0 if none */
  const char *driver_name; /* its name, "ENOMEM", "CUDA_ERROR_..."; "" if none */
  const char *message;     /* one or more lines of text: the problem, with names and sizes, and the fix */
} rondo_error;

#define RONDO_NO_NODE UINT32_MAX

/* Returns the details of the last call that failed on this thread. Never NULL; status is RONDO_OK if nothing has failed
 * yet. A successful call does not change it, nor does RONDO_NOT_READY. Failures of a device's work do not change it
 * either: a host function that a waiting thread runs, or a finding of "cpu:check"; the next synchronization returns
 * these. A callback that a call runs on its caller's thread (a body, a host step, a model's builder) counts as calls of
 * that thread. If such a callback returns a status with which no call in it failed, the message says so. The strings
 * belong to the thread and are valid until its next failing call. They are gone in destructors of thread-specific data
 * (pthread_key_create). Thread-safe. */
RONDO_API const rondo_error *rondo_last_error(void);

/* Makes a copy of `error` the last error of this thread and returns its status, for a callback that reports what failed
 * in it: "return rondo_error_set(&(rondo_error){.status = RONDO_IO_ERROR, .node = RONDO_NO_NODE, .message = text});".
 * A NULL name or message is "". A status of RONDO_OK, and NULL, change nothing and return RONDO_OK. Thread-safe. */
RONDO_API rondo_status rondo_error_set(const rondo_error *error);

/* "INVALID_LIFETIME" for RONDO_INVALID_LIFETIME; "UNKNOWN" for another number. Thread-safe. */
RONDO_API const char *rondo_status_name(rondo_status status);

/* "CYCLE" for RONDO_REASON_CYCLE; "UNKNOWN" for another number. Thread-safe. */
RONDO_API const char *rondo_reason_name(rondo_reason reason);

RONDO_EXTERN_C_END

#endif

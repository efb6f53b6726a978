/* SPDX-License-Identifier: MIT
 * The objects of the CUDA device that several files share.
 *
 * A device works in the primary context of its GPU. After each call, the caller's current context is current again
 * (cuda_context.h). Queues are streams, made here and non-blocking unless asked otherwise, or adopted (cuda_adopt.c);
 * events and graphs are the driver's own. Rondo's memory is virtual memory that is reserved, created and mapped here
 * and planned by the layers above: Rondo makes none of the driver's memory nodes. Calls that act at once run in the
 * relaxed capture mode, so that they end no capture.
 *
 * A fault in a kernel destroys the context. The first such code is kept in `lost`. From then on every call returns
 * DEVICE_LOST, with this code and the graphs that were launched last, without calling the driver. Calls that free are
 * still made.
 *
 * Threads: as driver.h says for each slot. No driver call is made while the device's lock is held. Host functions run
 * on threads of the device (cuda_host_function.h).
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_H
#define RONDO_DEVICE_CUDA_CUDA_H

#include <pthread.h>

#include "base/array.h"
#include "base/error.h"
#include "base/thread.h"
#include "device/device.h"
#include "vendor/cuda_driver.h"

typedef struct cuda_queue cuda_queue;
typedef struct cuda_executable cuda_executable;
typedef struct cuda_node cuda_node; /* cuda_executable.h */
typedef struct cuda_gate_page cuda_gate_page;
typedef struct cuda_declaration cuda_declaration; /* cuda_declared_kernels.c */
typedef struct cuda_host_thread cuda_host_thread;
typedef struct cuda_host_work cuda_host_work;
typedef struct cuda_kernel cuda_kernel;
typedef struct cuda_foreign_kernel cuda_foreign_kernel; /* cuda_foreign_nodes.h */

/* The threads that run host functions. A thread that is idle is kept for later functions. */
typedef struct cuda_hosts {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  cuda_host_work *first, *last; /* posted and not started */
  size_t posted, idle;          /* length of that list; waiting threads */
  bool is_ending;
  cuda_host_thread *threads;
} cuda_hosts;

/* The addresses of a mapping or of a reservation. */
typedef struct cuda_range {
  cu_address address;
  size_t bytes;
  const void *owner; /* of placeholder pages for a capture: whose they are; else NULL. An address may be used again */
} cuda_range;

typedef RONDO_ARRAY(cuda_range) cuda_ranges;

#define CUDA_SUSPECTS_BYTES 240

typedef struct cuda_device {
  rondo_device base;
  const cuda_api *api;
  _Atomic cu_result lost; /* the code that destroyed the context; CU_OK before */
  int ordinal;            /* N of "cuda:N" */
  cu_device handle;
  cu_context context;
  size_t page_bytes;
  int major, minor; /* compute capability */
  int processors;
  uint64_t memory_bytes;
  char description[96];
  cu_uuid uuid;
  _Atomic uint64_t mapped_bytes, maps, rebuilds, kernels_compiled, kernels_cached, cache_evictions;
  bool reads_host;             /* kernels can use the host's address of memory that host_allocate returned */
  cuda_kernel *fill;           /* runs fill nodes */
  rondo_kernel *copies;        /* copies ranges in graphs (cuda_builtin_kernels.h); NULL if the driver refused it */
  rondo_kernel *queued_copies; /* copies ranges before work; likewise */
  cuda_hosts hosts;

  /* Counts kernels whose code went out of use; see cuda_queue.settled. */
  _Atomic uint64_t epoch;
  _Atomic bool has_dead_kernels;
  _Atomic bool has_attributes; /* a launch or a node had attributes (rondo_launch_config_has_attributes) */

  /* Held while pages are mapped and unmapped. No call that is made under it waits for work. */
  pthread_mutex_t mapping;
  cu_physical placeholder; /* the page that all placeholders map (cuda_placeholder_memory.h); made at the first use */
  cuda_ranges left;        /* placeholders that the driver did not unmap */
  cuda_ranges shown;       /* placeholders of captures that have not ended */
  uint64_t reachable_by;   /* bit N: cuda:N can be given access to this device's memory */

  pthread_mutex_t lock; /* of what follows */
  uint64_t admitted;    /* bit N: cuda:N was given access */
  cuda_ranges mappings, reservations;
  cu_stream side; /* waits for executables; made at the first use */
  cuda_queue *queues;
  uint64_t kernels, launches; /* of destroyed queues */
  cuda_queue *dead_queues;    /* destroyed on a lost device; host functions may still use them */
  cuda_executable *dead;      /* destroyed, but launches may still call their host functions */
  cuda_kernel *dead_kernels;
  cuda_gate_page *gates;
  cuda_declaration *declarations;     /* of kernels that libraries launch */
  char suspects[CUDA_SUSPECTS_BYTES]; /* what may have caused the loss, for messages; written once, before `lost` */
} cuda_device;

/* A word of pinned memory that a stream waits for. */
typedef _Atomic uint32_t cuda_gate;

/* A host function that is enqueued or part of a graph. */
struct cuda_host_work {
  rondo_host_node host;
  cuda_device *device;
  cuda_queue **queue; /* points to the queue that a failure goes to */
  cuda_queue *owner;  /* the queue, if it is enqueued */
  uint32_t node;      /* for rondo_error.node; RONDO_NO_NODE if it is enqueued */
  cuda_gate *gate;    /* becomes `value` after the function has run */
  uint32_t value;
  _Atomic uint32_t state;        /* CUDA_HOST_ */
  cuda_host_work *next;          /* in the list of unused or replaced records */
  cuda_host_work *next_posted;   /* in cuda_hosts */
  cuda_host_work *next_of_queue; /* in the list of all records of its queue */
  char *label;                   /* "host function 'reader' (node 3)", owned; NULL if it is enqueued */
};
enum { CUDA_HOST_READY = 0, CUDA_HOST_BEING_QUEUED = 1, CUDA_HOST_TAKEN_BACK = 2 };

struct cuda_queue {
  rondo_queue base; /* a launch reads the first fields: they share a cache line */
  cu_stream stream;
  bool is_adopted; /* the stream is its owner's */
  bool is_legacy;  /* it is the legacy stream, which cannot be captured */
  /* Code that went out of use at some epoch is not run by a queue that is not busy, or that has been waited for since
   * (`settled` is at least this epoch). */
  _Atomic bool is_busy;
  _Atomic uint64_t settled;
  _Atomic uint64_t kernels, launches; /* enqueued so far; only the owner counts */
  _Atomic(cuda_executable *) last;    /* launched last and not waited for; NULL: none */
  char label[RONDO_STREAM_LABEL];     /* for messages: "stream 3" */
  cuda_queue *next, **link;           /* in the device's list of queues, or of dead queues */
  _Atomic(cuda_host_work *) unused;   /* pushed by the threads that ran them; popped only by the owner */
  cuda_host_work *records;            /* all records, by next_of_queue */
  uint64_t thread;                    /* whose default stream it is, so only this thread can use it; 0: of none */
  cuda_gate *gate;                    /* of its host functions; NULL before the first */
  uint32_t hosts_queued;              /* so far: the value that the gate will have */
  atomic_uint hosts_left;             /* records that a thread has or will get */
  rondo_first_failure failure;        /* of its host functions */
};

typedef struct cuda_event {
  rondo_device_event base;
  cu_event event;
} cuda_event;

typedef struct cuda_physical {
  rondo_physical base;
  cu_physical handle;
} cuda_physical;

/* A kernel's code, in rondo_kernel.driver_data. */
struct cuda_kernel {
  cuda_device *device;
  cu_module module; /* NULL: the code belongs to a library or to the user */
  cu_function function;
  int most_threads;                /* of a block; of a library's kernel 0, not known */
  _Atomic uint64_t resident;       /* the last answer for a cooperative launch (cuda_kernel.c) */
  _Atomic uint32_t shared_bytes;   /* dynamic shared memory that the driver allows now: 0 before it was asked */
  cuda_foreign_kernel *foreign;    /* if a library launched it; else NULL */
  cu_external_semaphore semaphore; /* this is not a kernel but an external semaphore; else NULL */
  struct cuda_captured *captured;  /* this is not a kernel but a captured graph that went out of use; else NULL */
  uint64_t epoch;                  /* when it went out of use */
  cuda_kernel *next;               /* of the dead ones */
};

/* DEVICE_LOST with the code that lost the device. `what` was tried. */
RONDO_MUST_USE rondo_status cuda_fail_lost(const cuda_device *device, const char *what);

static inline bool cuda_is_lost(const cuda_device *device) {
  return __builtin_expect(atomic_load_explicit(&device->lost, memory_order_relaxed) != CU_OK, 0);
}

/* For calls that need no current context (docs/cuda-probes.md, 19). */
RONDO_MUST_USE static inline rondo_status cuda_require(const cuda_device *device) {
  return cuda_is_lost(device) ? cuda_fail_lost(device, "nothing was done") : RONDO_OK;
}

/* The tables of driver.h */
extern const rondo_queue_ops cuda_queue_ops;
extern const rondo_event_ops cuda_event_ops;
extern const rondo_executable_ops cuda_executable_ops;

static inline cu_allocation_properties cuda_memory_properties(const cuda_device *device) {
  return (cu_allocation_properties){.type = CU_ALLOCATION_PINNED,
                                    .location = {.type = CU_LOCATION_DEVICE, .id = device->ordinal}};
}

/* Counts kernels or launches of a queue. */
static inline void cuda_queue_count(_Atomic uint64_t *counter, uint64_t more) {
  atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more, memory_order_relaxed);
}

/* The owner is about to enqueue a kernel or a graph. */
static inline void cuda_queue_note_work(cuda_queue *queue) {
  if (__builtin_expect(atomic_load_explicit(&queue->is_busy, memory_order_relaxed), 1)) return;
  atomic_store_explicit(&queue->settled, atomic_load(&((cuda_device *)queue->base.device)->epoch),
                        memory_order_relaxed);
  atomic_store_explicit(&queue->is_busy, true, memory_order_release);
}

static inline const cuda_foreign_kernel *cuda_foreign_of(const rondo_kernel *kernel) {
  return ((const cuda_kernel *)kernel->driver_data)->foreign;
}

#define CUDA_FILL_NAME "rondo_fill"

static inline cu_address cuda_address(const void *address) { return (cu_address)(uintptr_t)address; }
static inline cuda_device *cuda_device_of(rondo_device *device) { return (cuda_device *)device; }

#endif

/* SPDX-License-Identifier: MIT
 * The CUDA driver's objects on one page.
 *
 * A device works in the primary context of its GPU; the caller's current context is put back after each call
 * (cuda_enter, cuda_leave). Queues are non-blocking streams, events and graphs are the driver's own. Rondo's memory is
 * virtual: reserved, created, mapped and given access to here, planned above; the driver's own memory nodes are never
 * made. What acts at once runs under the relaxed capture mode, so that it breaks nobody's capture.
 *
 * A fault in a kernel takes the context with it: the first sticky code is kept in `lost`, and every later call returns
 * DEVICE_LOST with it, and with the graphs that were launched last, without asking the driver, but for what frees.
 *
 * Threads: as driver.h says for each slot. The device's lock is a leaf: no call of the driver is made under it. Host
 * functions run on threads of the device (cuda_host_function.c).
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
typedef struct cuda_host_thread cuda_host_thread;
typedef struct cuda_host_work cuda_host_work;
typedef struct cuda_kernel cuda_kernel;
typedef struct cuda_foreign_kernel cuda_foreign_kernel; /* cuda_foreign_nodes.h */

/* Threads that run host functions: one for each that is running, kept for later ones. */
typedef struct cuda_hosts {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  cuda_host_work *first, *last; /* posted and not begun */
  size_t posted, idle;
  bool is_ending;
  cuda_host_thread *threads;
} cuda_hosts;

/* Addresses: a mapping's, or a reservation's. */
typedef struct cuda_range {
  cu_address address;
  size_t bytes;
  const void
      *owner; /* of pages that are placeholders for a capture: whose they are, since addresses come again; else NULL */
} cuda_range;

typedef RONDO_ARRAY(cuda_range) cuda_ranges;

#define CUDA_SUSPECTS_BYTES 240

typedef struct cuda_device {
  rondo_device base;
  const cuda_api *api;
  _Atomic cu_result lost; /* the code that lost the context; CU_OK while it is there */
  int ordinal;            /* N of "cuda:N" */
  cu_device handle;
  cu_context context;
  size_t page_bytes;
  int major, minor; /* compute capability */
  int processors;
  uint64_t memory_bytes;
  char description[96];
  _Atomic uint64_t mapped_bytes, maps, rebuilds, kernels_compiled, kernels_cached, cache_evictions;
  bool reads_host;             /* kernels have what host_allocate gave at the host's address */
  cuda_kernel *fill;           /* behind fill nodes */
  rondo_kernel *copies;        /* for ranges (cuda_builtin_kernels.h); NULL when it could not be loaded */
  rondo_kernel *queued_copies; /* likewise, in front of work */
  cuda_hosts hosts;

  /* A number for now, raised when a kernel's code goes out of use; see cuda_queue.settled. */
  _Atomic uint64_t epoch;
  _Atomic bool has_dead_kernels;

  /* Held while pages come and go. No call that is made under it waits for work. */
  pthread_mutex_t mapping;
  cu_physical placeholder; /* see cuda_placeholders; made at the first use */
  cuda_ranges left;        /* where it still stands because the driver did not unmap it */
  cuda_ranges shown;       /* where it stands for captures that go on */
  uint64_t reachable_by;   /* bit N: cuda:N can be let access this device's memory */

  pthread_mutex_t lock; /* of what follows */
  uint64_t admitted;    /* of those, the ones that may */
  cuda_ranges mappings, reservations;
  cu_stream side; /* for waiting on an executable; made at the first use */
  cuda_queue *queues;
  uint64_t kernels, launches; /* of queues that are gone */
  cuda_queue *dead_queues;    /* of a lost device, kept for host functions that may still be called */
  cuda_executable *dead;      /* destroyed, but with host functions that are still to be called */
  cuda_kernel *dead_kernels;
  cuda_gate_page *gates;
  char suspects[CUDA_SUSPECTS_BYTES]; /* what may have lost the context, for messages; written once, before `lost` is */
} cuda_device;

/* A word of pinned memory that a stream waits for. */
typedef _Atomic uint32_t cuda_gate;

/* A host function that is queued or stands in a graph. */
struct cuda_host_work {
  rondo_host_node host;
  cuda_device *device;
  cuda_queue **queue; /* where the queue stands that a failure goes to */
  cuda_queue *owner;  /* of a queued one */
  uint32_t node;      /* for rondo_error.node; RONDO_NO_NODE for a queued one */
  cuda_gate *gate;    /* becomes `value` when the function has run */
  uint32_t value;
  _Atomic uint32_t state;        /* CUDA_HOST_ */
  cuda_host_work *next;          /* in a list of those out of use */
  cuda_host_work *next_posted;   /* in cuda_hosts */
  cuda_host_work *next_of_queue; /* in the list of all of its queue */
  char *label;                   /* "host function 'reader' (node 3)", its own; NULL for a queued one */
};
enum { CUDA_HOST_READY = 0, CUDA_HOST_BEING_QUEUED = 1, CUDA_HOST_TAKEN_BACK = 2 };

struct cuda_queue {
  rondo_queue base; /* what a launch reads comes first, in one line of the processor's cache */
  cu_stream stream;
  /* A kernel's code that went out of use in some epoch is run by no queue that is not busy, or has been waited for
   * since. */
  _Atomic bool is_busy;
  _Atomic uint64_t settled;
  _Atomic uint64_t kernels, launches; /* that it was given; the owner alone counts */
  _Atomic(cuda_executable *) last;    /* launched and not waited for; NULL: none that there still is */
  char label[RONDO_STREAM_LABEL];     /* for messages: "stream 3" */
  cuda_queue *previous, *next;        /* of the device's, or of the dead ones */
  _Atomic(cuda_host_work *) unused;   /* pushed by threads that ran them, popped by the owner alone */
  cuda_host_work *records;            /* all there are, by next_of_queue */
  cuda_gate *gate;                    /* of its host functions; NULL before the first */
  uint32_t hosts_queued;              /* so far: what the gate will be */
  atomic_uint hosts_left;             /* records that a thread still has or will get */
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
  cu_module module; /* NULL: of a library */
  cu_function function;
  cuda_foreign_kernel *foreign;   /* a library launched it; else NULL */
  struct cuda_captured *captured; /* not a kernel but a captured graph that went out of use; else NULL */
  uint64_t epoch;                 /* in which it went out of use */
  cuda_kernel *next;              /* of the dead ones */
};

/* The calling thread works in the device's context from enter to leave. */
typedef struct cuda_scope {
  cuda_device *device;
  cu_context before;
  bool has_mode; /* of capture; else it was left as it was */
  cu_capture_mode mode;
} cuda_scope;

/* DEVICE_LOST with the code that lost it. `what` was tried. */
RONDO_MUST_USE rondo_status cuda_fail_lost(const cuda_device *device, const char *what);

static inline bool cuda_is_lost(const cuda_device *device) {
  return __builtin_expect(atomic_load_explicit(&device->lost, memory_order_relaxed) != CU_OK, 0);
}

/* For calls that need no current context (docs/cuda-probes.md, 19). */
RONDO_MUST_USE static inline rondo_status cuda_require(const cuda_device *device) {
  return cuda_is_lost(device) ? cuda_fail_lost(device, "nothing was done") : RONDO_OK;
}

/* Slots of the tables in driver.h */
extern const rondo_queue_ops cuda_queue_ops;
extern const rondo_event_ops cuda_event_ops;
extern const rondo_executable_ops cuda_executable_ops;

static inline cu_allocation_properties cuda_memory_properties(const cuda_device *device) {
  return (cu_allocation_properties){.type = CU_ALLOCATION_PINNED,
                                    .location = {.type = CU_LOCATION_DEVICE, .id = device->ordinal}};
}

/* Queues (cuda_queue.c) -------------------------------------------------------------------------------------------- */

/* So many more of its kernels, or launches. */
static inline void cuda_queue_count(_Atomic uint64_t *counter, uint64_t more) {
  atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more, memory_order_relaxed);
}

/* The owner is about to give it a kernel or a graph. */
static inline void cuda_queue_note_work(cuda_queue *queue) {
  if (__builtin_expect(atomic_load_explicit(&queue->is_busy, memory_order_relaxed), 1)) return;
  atomic_store_explicit(&queue->settled, atomic_load(&((cuda_device *)queue->base.device)->epoch),
                        memory_order_relaxed);
  atomic_store_explicit(&queue->is_busy, true, memory_order_release);
}

/* Kernels (cuda_kernel.c) ------------------------------------------------------------------------------------------ */

static inline const cuda_foreign_kernel *cuda_foreign_of(const rondo_kernel *kernel) {
  return ((const cuda_kernel *)kernel->driver_data)->foreign;
}
/* Unloads what is run no longer; with `all`, everything. */
void cuda_kernels_reap(cuda_device *device, bool all);

static inline void cuda_kernels_look(cuda_device *device) {
  if (__builtin_expect(atomic_load_explicit(&device->has_dead_kernels, memory_order_relaxed), 0))
    cuda_kernels_reap(device, false);
}

/* Work in the driver's terms (cuda_launch_params.c) ------------------------------------------------------------- */

#define CUDA_FILL_NAME "rondo_fill"

static inline cu_address cuda_address(const void *address) { return (cu_address)(uintptr_t)address; }
static inline cuda_device *cuda_device_of(rondo_device *device) { return (cuda_device *)device; }

#endif

/* SPDX-License-Identifier: MIT
 * The device as the layers above see it: the beginning of every driver's device struct. It counts the objects that use
 * the device, so that a device with live objects is not closed, and has slots for the per-device state of the layers
 * above. Each layer owns its slot and frees it through its function when the device closes.
 */
#ifndef RONDO_DEVICE_DEVICE_H
#define RONDO_DEVICE_DEVICE_H

#include <stdatomic.h>

#include "base/error.h"
#include "device/driver.h"
#include "graph/graph_internal.h"

/* Per-device state of a layer above. rondo_device_close calls `release` before the driver's close, when no object is
 * left. */
typedef struct rondo_device_slot {
  _Atomic(void *) state;
  void (*release)(void *state);
} rondo_device_slot;

/* A device's own copies of its driver's tables, which its objects use. In a forked child they are filled again
 * (forked_device.c), so that no call has to ask which process it is in. */
typedef struct rondo_device_tables {
  rondo_device_ops device;
  rondo_queue_ops queue;
  rondo_event_ops event;
  rondo_executable_ops executable;
} rondo_device_tables;

/* A kind of object that keeps a device open. The layer that makes such objects defines the kind and counts them;
 * kernels are counted here. `rank` is unique and below RONDO_DEVICE_USES. It orders the kinds in messages: a kind whose
 * objects own others has a lower rank than those. */
typedef struct rondo_device_use {
  uint32_t rank;
  const char *name; /* "stream" */
} rondo_device_use;

enum { RONDO_DEVICE_USES = 16 };

/* By rank. A name is NULL until the first object of the kind. */
typedef struct rondo_device_uses {
  _Atomic(const char *) names[RONDO_DEVICE_USES];
  atomic_uint counts[RONDO_DEVICE_USES];
} rondo_device_uses;

struct rondo_device {
  const rondo_device_ops *ops; /* &tables.device */
  rondo_grid most_blocks;      /* of a grid, in each direction; by the driver */
  rondo_allocator allocator;   /* resolved; counts its calls for the statistics */
  char name[32];               /* "cpu:0" */
  uint32_t index;              /* N of the name: among the devices of its driver */
  bool synchronous;
  bool is_inherited;          /* a parent process opened it: it cannot be used in this process */
  int process;                /* that opened it */
  rondo_device_tables tables; /* constant except after a fork; nothing next to the queues' table is ever written */
  rondo_device *previous_open, *next_open;
  atomic_uint reservations;                       /* ranges of addresses that it has; memory/peer_access.c */
  rondo_device_uses uses;                         /* live objects that keep it open */
  rondo_device_slot memory;                       /* memory/: pools and heaps */
  rondo_device_slot exec;                         /* exec/: free list of events */
  rondo_device_slot random;                       /* exec/: cells of random numbers that launches still read */
  rondo_device_slot costs;                        /* exec/: what launches and nodes cost */
  _Atomic uint64_t events_created, events_reused; /* counted by exec/, read by the statistics (GX-9) */
  _Atomic uint64_t streams_created;               /* by exec/: the number of the next, by which messages name it */
  /* How many allocations have ended, by memory/: while it stays the same, what was allocated still is. Launches compare
   * it with what it was when they were checked. */
  _Atomic uint64_t allocations_ended;
};

/* Counts an object of the kind that is made or destroyed. Any thread. */
void rondo_device_begin_use(rondo_device *device, const rondo_device_use *use);
void rondo_device_end_use(rondo_device *device, const rondo_device_use *use);

/* Whether work of `device` can be given access to memory of `owner`. */
bool rondo_device_reaches(const rondo_device *device, const rondo_device *owner);

/* For drivers: the first failure of a queue's work that no synchronisation has returned yet. Any thread. */
typedef struct rondo_first_failure {
  _Atomic uint32_t state; /* 0 none, 1 being written or read, 2 there */
  rondo_saved_error error;
} rondo_first_failure;
void rondo_first_failure_keep(rondo_first_failure *first, const rondo_saved_error *failure);
/* Raises it in the calling thread. OK if there is none. */
RONDO_MUST_USE rondo_status rondo_first_failure_take(rondo_first_failure *first);

/* Creates a kernel and prepares it for the device, which does not count it. *out is NULL on failure. */
RONDO_MUST_USE rondo_status rondo_device_make_kernel(rondo_device *device, const rondo_kernel_options *options,
                                                     rondo_kernel **out);

/* INVALID_ARGUMENT/BAD_SIZE, with both sizes, if the device does not run grids of this size. */
RONDO_MUST_USE rondo_status rondo_device_check_grid(const rondo_device *device, const rondo_kernel *kernel,
                                                    rondo_grid grid);

/* Fills the tables of a device for a forked child: calls that work or wait are refused, calls that free do nothing. */
void rondo_device_inherit(rondo_device *device);

/* Called in a forked child, which has a single thread. For what a layer above knows of the parent's devices; set once.
 */
extern _Atomic(void (*)(void)) rondo_device_forget_parent;

/* INVALID_STATE/OTHER_PROCESS for `call` if the device is inherited. NULL is not. */
RONDO_MUST_USE rondo_status rondo_device_refuse_inherited(const char *call, const rondo_device *device);
RONDO_MUST_USE static inline rondo_status rondo_device_require_own(const char *call, const rondo_device *device) {
  const bool is_own = device == NULL || !device->is_inherited;
  return __builtin_expect(is_own, 1) ? RONDO_OK : rondo_device_refuse_inherited(call, device);
}

/* What a launch must know about its thread. In a library that is loaded while a program runs, each access to this costs
 * a call, so it is not accessed while no thread is watched. */
typedef struct rondo_thread_state {
  uint64_t works_queued;   /* while the thread is watched, on streams of all devices: kernels, copies, fills, host
                              functions, calls of libraries */
  unsigned callback_depth; /* nested host functions that run on the thread */
  struct rondo_launch_values *values; /* exec/: where launches note their values; or NULL */
} rondo_thread_state;
extern _Thread_local rondo_thread_state rondo_this_thread;

/* How often threads are watched: once for each running host function, meter, and thread that notes values. */
extern atomic_uint rondo_threads_watched;
static inline bool rondo_is_thread_watched(void) {
  return __builtin_expect(atomic_load_explicit(&rondo_threads_watched, memory_order_relaxed) != 0, 0);
}
static inline void rondo_thread_watch(void) {
  atomic_fetch_add_explicit(&rondo_threads_watched, 1, memory_order_relaxed);
}
static inline void rondo_thread_unwatch(void) {
  atomic_fetch_sub_explicit(&rondo_threads_watched, 1, memory_order_relaxed);
}

/* The calling thread has enqueued work. */
static inline void rondo_thread_count_work(void) {
  if (rondo_is_thread_watched()) rondo_this_thread.works_queued++;
}

/* Whether libraries of the driver can enqueue work on the device; and calling them (rondo_device_ops). */
static inline bool rondo_device_takes_libraries(const rondo_device *device) {
  return device->ops->call_library != NULL;
}
RONDO_MUST_USE static inline rondo_status rondo_device_call_library(rondo_device *device, rondo_library_use use,
                                                                    rondo_library_call call, void *user) {
  if (use == RONDO_LIBRARY_WORK) rondo_thread_count_work();
  return device->ops->call_library(device, use, call, user);
}

/* Finds the driver and opens (driver_registry.c). */
RONDO_MUST_USE rondo_status rondo_registry_open(const char *name, const rondo_device_options *options,
                                                const rondo_allocator *allocator, rondo_device **out);
RONDO_MUST_USE rondo_status rondo_registry_enumerate(size_t index, const char **out_name, const char **out_unavailable);

/* References to what a driver captured. Attaching adds a reference of the graph that `attachment` belongs to, besides
 * the earlier ones. A copy of the attachment has references to all. */
void rondo_captured_retain(void *captured);
void rondo_captured_release(void *captured);
void rondo_captured_attach(rondo_captured *captured, rondo_graph_attachment *attachment);

/* Lets what was captured keep a reference to an object, once. The reference stays the caller's if this fails or
 * *out_is_new is false. For the layer that captures. */
RONDO_MUST_USE rondo_status rondo_captured_keep(rondo_captured *captured, void *object, void (*release)(void *object),
                                                bool *out_is_new);
/* For drivers: what was captured is freed. */
void rondo_captured_let_go(rondo_captured *captured);

/* True while a host function of any device runs on this thread: then calls of the API are refused (IN_CALLBACK). */
static inline bool rondo_in_callback(void) { return rondo_is_thread_watched() && rondo_this_thread.callback_depth > 0; }
void rondo_callback_enter(void);
void rondo_callback_leave(void);

/* IN_CALLBACK for `call` if a host function runs on this thread, else OK. */
RONDO_MUST_USE rondo_status rondo_refuse_in_callback(const char *call);

#endif

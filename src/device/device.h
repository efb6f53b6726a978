/* SPDX-License-Identifier: MIT
 * The device as the layers above see it: the beginning of the device struct of every driver. It counts the objects that
 * use the device, so a device with live objects is not closed. It has slots for the state of the layers above. Each
 * layer owns its slot and frees it by its function when the device closes.
 */
#ifndef RONDO_DEVICE_DEVICE_H
#define RONDO_DEVICE_DEVICE_H

#include <stdatomic.h>

#include "base/component.h"
#include "base/error.h"
#include "device/driver.h"
#include "graph/graph_internal.h"

/* State of a layer above. rondo_device_close calls `release` before the driver's close, when no object is left. */
typedef struct rondo_device_slot {
  _Atomic(void *) state;
  void (*release)(void *state);
} rondo_device_slot;

/* The device's own copies of the tables of its driver, which its objects use. In a forked child they get other
 * functions (forked_device.c), so no call has to check which process it is in. */
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

enum { RONDO_DEVICE_USES = 20 };

/* Indexed by rank. A name is NULL until the first object of the kind is made. */
typedef struct rondo_device_uses {
  _Atomic(const char *) names[RONDO_DEVICE_USES];
  atomic_uint counts[RONDO_DEVICE_USES];
} rondo_device_uses;

/* What launches may have (rondo_launch_config). */
typedef struct rondo_launch_limits {
  uint32_t argument_bytes;                   /* of a kernel */
  uint32_t shared_bytes;                     /* of a block, static and dynamic */
  int32_t least_priority, greatest_priority; /* lower numbers are greater */
  bool clusters, cooperative;                /* it has them */
} rondo_launch_limits;

/* Memory operations that it lacks. */
typedef struct rondo_operation_limits {
  bool lacks_64, lacks_nor, lacks_flush;
} rondo_operation_limits;

struct rondo_device {
  const rondo_device_ops *ops; /* &tables.device */
  rondo_grid most_blocks;      /* of a grid, in each dimension; set by the driver, like the limits */
  rondo_launch_limits limits;
  rondo_operation_limits operations; /* set by the driver */
  rondo_allocator allocator;         /* counts its calls for the statistics */
  char name[32];                     /* "cpu:0" */
  uint32_t index;                    /* N of "cpu:N": the index among the devices of its driver */
  bool synchronous;
  bool is_inherited;                    /* a parent process opened it, so this process cannot use it */
  int process;                          /* that opened it */
  rondo_device_tables tables;           /* constant except after a fork. Nothing near the table of queues is written */
  rondo_device *next_open, **open_link; /* in the list of open devices */
  atomic_uint reservations;             /* reserved ranges of addresses; for memory/peer_access.c */
  rondo_device_uses uses;               /* live objects that keep it open */
  rondo_device_slot memory;             /* memory/: pools and heaps */
  rondo_device_slot events;             /* exec/: free list of events */
  rondo_device_slot random;             /* exec/: random numbers that launches still read */
  rondo_device_slot costs;              /* exec/: what launches and nodes cost */
  _Atomic(struct rondo_launched_objects *) retired; /* user objects that launches may still use (retired_objects.h) */
  _Atomic uint64_t events_created, events_reused;   /* counted by exec/, read by the statistics (GX-9) */
  _Atomic uint64_t queues_numbered; /* by exec/: messages name streams by this number, and execs know them by it */
  /* How many allocations have been freed, counted by memory/. While it stays the same, everything that was allocated
   * still is. A launch compares it with its value when the launch was checked. */
  _Atomic uint64_t allocations_ended;
};

/* Count an object of the kind that is made or destroyed. Any thread. */
RONDO_PRIVATE void rondo_device_begin_use(rondo_device *device, const rondo_device_use *use);
RONDO_PRIVATE void rondo_device_end_use(rondo_device *device, const rondo_device_use *use);

/* For drivers: the devices besides `own` that the nodes of an executable run on. They stay open until the second call,
 * which comes after its last launch. */
typedef RONDO_ARRAY(rondo_device *) rondo_device_list;
RONDO_MUST_USE rondo_status rondo_devices_begin_use(rondo_device *own, const rondo_lowered_graph *graph,
                                                    rondo_device_list *out);
/* Adds a device to the list, which has capacity, unless it is there. */
void rondo_devices_use(rondo_device_list *list, rondo_device *device);
void rondo_devices_end_use(rondo_device *own, rondo_device_list *list);

/* For drivers: a stream of another device waits for work of this one. And: a thread of another device uses this one for
 * a moment, for which rondo_device_close waits. */
extern const rondo_device_use rondo_wait_use, rondo_brief_use;

/* Whether both are of one driver, so that a graph may have nodes of both. Devices with checks are of another one than
 * those without. */
bool rondo_device_shares_driver(const rondo_device *a, const rondo_device *b);

/* Whether work of `device` can be given access to memory of `owner`. */
bool rondo_device_reaches(const rondo_device *device, const rondo_device *owner);

/* For drivers: the first failure of a queue's work that no synchronisation has returned yet. Any thread. */
typedef struct rondo_first_failure {
  _Atomic uint32_t state; /* 0: none; 1: it is written or read now; 2: there is one */
  rondo_saved_error error;
} rondo_first_failure;
void rondo_first_failure_keep(rondo_first_failure *first, const rondo_saved_error *failure);
/* Raises the failure in the calling thread and clears it. OK if there is none. */
RONDO_MUST_USE rondo_status rondo_first_failure_take(rondo_first_failure *first);

/* Creates a kernel and prepares it for the device, which does not count it. *out is NULL on failure. */
RONDO_MUST_USE rondo_status rondo_device_make_kernel(rondo_device *device, const rondo_kernel_options *options,
                                                     rondo_kernel **out);

/* INVALID_ARGUMENT/BAD_SIZE, with both sizes, if the grid exceeds most_blocks. */
RONDO_MUST_USE rondo_status rondo_device_refuse_grid(const rondo_device *device, const rondo_kernel_node *node);
RONDO_MUST_USE static inline rondo_status rondo_device_check_grid(const rondo_device *device,
                                                                  const rondo_kernel_node *node) {
  const rondo_grid grid = node->grid, most = device->most_blocks;
  const bool fits = grid.x <= most.x && grid.y <= most.y && grid.z <= most.z;
  return __builtin_expect(fits, 1) ? RONDO_OK : rondo_device_refuse_grid(device, node);
}

/* The same if the node's configuration, which is not NULL, exceeds the limits. For drivers. */
RONDO_MUST_USE rondo_status rondo_device_check_limits(const rondo_device *device, const rondo_kernel_node *node);

/* For drivers: `most` blocks of a cooperative launch run at once. */
RONDO_MUST_USE rondo_status rondo_device_check_cooperative(const rondo_device *device, const rondo_kernel_node *node,
                                                           uint64_t most);

/* Both, and the limits of the code. For all nodes and launches, when they are made. */
RONDO_MUST_USE static inline rondo_status rondo_device_check_launch(const rondo_device *device,
                                                                    const rondo_kernel_node *node) {
  RONDO_TRY(rondo_device_check_grid(device, node));
  return node->config == NULL ? RONDO_OK : device->ops->config_check(device, node);
}

/* UNSUPPORTED/NOT_SUPPORTED, with what is missing, unless the device has these memory operations. */
RONDO_MUST_USE rondo_status rondo_device_check_operations(const rondo_device *device,
                                                          const rondo_memory_operations_node *node);

/* Fills the tables of a device for a forked child: calls that work or wait are refused, and calls that free do nothing.
 */
void rondo_device_inherit(rondo_device *device);

/* Called in a forked child, which has a single thread. Set once, by a layer above that must forget the devices of the
 * parent. */
extern _Atomic(void (*)(void)) rondo_device_forget_parent;

/* INVALID_STATE/OTHER_PROCESS for `call` if the device is inherited. NULL is not. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_device_refuse_inherited(const char *call, const rondo_device *device);
RONDO_MUST_USE static inline rondo_status rondo_device_require_own(const char *call, const rondo_device *device) {
  const bool is_own = device == NULL || !device->is_inherited;
  return __builtin_expect(is_own, 1) ? RONDO_OK : rondo_device_refuse_inherited(call, device);
}

/* The state of a thread that launches need. In a library that is loaded while a program runs, each access to it costs a
 * call. So it is accessed only while threads are watched. */
typedef struct rondo_thread_state {
  /* while the thread is watched: kernels, copies, fills, host functions and calls of libraries, on streams of all
   * devices */
  uint64_t works_queued;
  unsigned callback_depth;            /* nested host functions that run on the thread */
  bool is_own;                        /* a thread of the library that calls it; it releases no user objects */
  struct rondo_launch_values *values; /* exec/: where launches write their values; or NULL */
} rondo_thread_state;
extern _Thread_local rondo_thread_state rondo_this_thread;

/* The calling thread is one of the library's own (is_own). */
RONDO_PRIVATE void rondo_thread_note_own(void);

/* How many reasons there are to watch threads: running host functions, meters, and threads that note values. */
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

/* Calls `visit` for each open device of this process, and of its parents, until it returns true; false if it never
 * does. It must not block or call Rondo, except that it may begin to use the device: no device is opened or closed
 * meanwhile. Any thread. */
bool rondo_device_find(bool (*visit)(rondo_device *device, void *user), void *user);

/* The calling thread has enqueued work. */
static inline void rondo_thread_count_work(void) {
  if (rondo_is_thread_watched()) rondo_this_thread.works_queued++;
}

/* Whether libraries of the driver can enqueue work on the device; and a call of such a library (rondo_device_ops). */
static inline bool rondo_device_takes_libraries(const rondo_device *device) {
  return device->ops->call_library != NULL;
}
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_device_call_library(rondo_device *device, rondo_library_use use,
                                                                    rondo_library_call call, void *user);

/* For drivers: the index in a device's name. "" is 0; else a number of at most three digits, without sign or leading
 * zeros. False for all other texts. */
bool rondo_device_parse_index(const char *text, uint32_t *out);

/* Find the driver of a name, and open the device; list the devices (driver_registry.c). */
RONDO_MUST_USE rondo_status rondo_registry_open(const char *name, const rondo_device_options *options,
                                                const rondo_allocator *allocator, rondo_device **out);
RONDO_MUST_USE rondo_status rondo_registry_enumerate(size_t index, const char **out_name, const char **out_unavailable);

/* References to a capture of a driver. Attaching adds a reference of the graph that `attachment` belongs to, in
 * addition to its earlier ones. A copy of the attachment has references to all. */
void rondo_captured_retain(void *captured);
void rondo_captured_release(void *captured);
void rondo_captured_attach(rondo_captured *captured, rondo_graph_attachment *attachment);

/* For the layer that captures: the capture retains an object. The reference stays with the caller if this fails. */
RONDO_MUST_USE rondo_status rondo_captured_keep(rondo_captured *captured, void *object, void (*release)(void *object));

/* Whether a host function of any device runs on this thread. Then calls of the API are refused (IN_CALLBACK). */
static inline bool rondo_in_callback(void) { return rondo_is_thread_watched() && rondo_this_thread.callback_depth > 0; }
void rondo_callback_enter(void);
void rondo_callback_leave(void);

/* IN_CALLBACK for `call` if a host function runs on this thread, else OK. */
RONDO_MUST_USE rondo_status rondo_refuse_in_callback(const char *call);

#endif

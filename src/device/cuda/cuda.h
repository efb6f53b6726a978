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
  const void *owner; /* of pages that stand in for a capture: whose they are, since addresses come again; else NULL */
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
  rondo_kernel *copies;        /* for ranges (cuda_input_copies.c); NULL when it could not be loaded */
  rondo_kernel *queued_copies; /* likewise, in front of work */
  cuda_hosts hosts;

  /* A number for now, raised when a kernel's code goes out of use; see cuda_queue.settled. */
  _Atomic uint64_t epoch;
  _Atomic bool has_dead_kernels;

  /* Held while pages come and go. No call that is made under it waits for work. */
  pthread_mutex_t mapping;
  cu_physical stand_in;  /* see cuda_stand_ins; made at the first use */
  cuda_ranges left;      /* where it still stands because the driver did not unmap it */
  cuda_ranges shown;     /* where it stands for captures that go on */
  uint64_t reachable_by; /* bit N: cuda:N can be let access this device's memory */

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
  const cuda_device *device;
  cu_context before;
  bool has_mode; /* of capture; else it was left as it was */
  cu_capture_mode mode;
} cuda_scope;

/* For work on streams, which a capture sees. Errors: DEVICE_LOST; what making the context current says. Nothing is to
 * be left then. */
RONDO_MUST_USE rondo_status cuda_enter_for_work(cuda_device *device, cuda_scope *out);
/* The same for calls that act at once, under the relaxed mode. */
RONDO_MUST_USE rondo_status cuda_enter(cuda_device *device, cuda_scope *out);
/* The relaxed mode, too, for what was entered for work. */
void cuda_relax(cuda_scope *scope);
/* For calls that free, on a device that may be lost. Where the context cannot be made current they are made without:
 * the driver knows it from what is freed. */
void cuda_enter_to_free(cuda_device *device, cuda_scope *out);
void cuda_leave(const cuda_scope *scope);

/* DEVICE_LOST with the code that lost it. `what` was tried. */
RONDO_MUST_USE rondo_status cuda_fail_lost(const cuda_device *device, const char *what);

static inline bool cuda_is_lost(const cuda_device *device) {
  return __builtin_expect(atomic_load_explicit(&device->lost, memory_order_relaxed) != CU_OK, 0);
}

/* For calls that need no current context (docs/cuda-probes.md, 19). */
RONDO_MUST_USE static inline rondo_status cuda_require(const cuda_device *device) {
  return cuda_is_lost(device) ? cuda_fail_lost(device, "nothing was done") : RONDO_OK;
}

/* OK for CU_OK. Else the status that the code stands for, with its number and name, behind a message that says what was
 * tried; NOT_READY keeps none. A sticky code makes the device lost. */
rondo_status cuda_check(cuda_device *device, cu_result code, const char *format, ...) RONDO_PRINTF(3, 4);
/* As cuda_check, for an error about one node: `doing` is "patching ", and the message names the node and, unless it is
 * NULL, the graph, by its label. */
struct cuda_node;
rondo_status cuda_check_node(cuda_device *device, cu_result code, const struct cuda_node *node, const char *doing,
                             const char *graph);

/* Slots of the tables in driver.h */
extern const rondo_queue_ops cuda_queue_ops;
extern const rondo_event_ops cuda_event_ops;
extern const rondo_executable_ops cuda_executable_ops;
RONDO_MUST_USE rondo_status cuda_queue_create(rondo_device *device, const char *label, rondo_queue **out);
RONDO_MUST_USE rondo_status cuda_event_create(rondo_device *device, bool timing, rondo_device_event **out);
RONDO_MUST_USE rondo_status cuda_executable_create(rondo_device *device, const rondo_lowered_graph *graph,
                                                   rondo_executable **out);
RONDO_MUST_USE rondo_status cuda_queue_launch(rondo_queue *queue, rondo_executable *executable);
RONDO_MUST_USE rondo_status cuda_queue_launch_patched(rondo_queue *queue, rondo_executable *executable,
                                                      const rondo_patch_change *changes, size_t count);
RONDO_MUST_USE rondo_status cuda_queue_upload(rondo_queue *queue, rondo_executable *executable);
RONDO_MUST_USE rondo_status cuda_kernel_prepare(rondo_device *device, rondo_kernel *kernel);
RONDO_MUST_USE rondo_status cuda_kernel_check(const rondo_device *device, const rondo_kernel_node *node);
RONDO_MUST_USE rondo_status cuda_call_library(rondo_device *device, rondo_library_use use, rondo_library_call call,
                                              void *user);
RONDO_MUST_USE rondo_status cuda_reserve(rondo_device *device, size_t bytes, size_t alignment, void **out_address);
RONDO_MUST_USE rondo_status cuda_unreserve(rondo_device *device, void *address, size_t bytes);
RONDO_MUST_USE rondo_status cuda_physical_create(rondo_device *device, size_t bytes, rondo_physical **out);
void cuda_physical_destroy(rondo_physical *physical);
RONDO_MUST_USE rondo_status cuda_map(rondo_device *device, void *address, rondo_physical *physical);
RONDO_MUST_USE rondo_status cuda_unmap(rondo_device *device, void *address, size_t bytes);
RONDO_MUST_USE rondo_status cuda_protect(rondo_device *device, void *address, size_t bytes,
                                         rondo_protection protection);
/* Stand-ins (cuda_placeholder_memory.c) --------------------------------------------------------------------------- */

/* All that a copy node or a memset node names must be mapped when the node is made, changed or instantiated, so that
 * the driver sees that it is a device's memory; other pages may stand there when it runs (docs/cuda-probes.md, 18 and
 * 30 to 38). Between begin and end pages stand in for all that is named and not mapped; nothing else is mapped or
 * unmapped meanwhile. */
typedef struct cuda_stand_ins {
  cuda_device *device;
  cuda_ranges ranges;
} cuda_stand_ins;
/* In the device's context. Errors: OUT_OF_MEMORY, DEVICE_LOST; to be ended all the same. */
RONDO_MUST_USE rondo_status cuda_stand_ins_begin(cuda_device *device, cuda_stand_ins *out);
RONDO_MUST_USE rondo_status cuda_stand_ins_add(cuda_stand_ins *self, const void *memory, size_t bytes);
RONDO_MUST_USE rondo_status cuda_stand_ins_add_copy(cuda_stand_ins *self, const rondo_copy *copy);
/* Instead of end: what was added stays until `kept`, to which it is added, is dropped, or memory is mapped there.
 * Nothing stays when it fails. */
RONDO_MUST_USE rondo_status cuda_stand_ins_keep(cuda_stand_ins *self, cuda_ranges *kept);
void cuda_stand_ins_drop(cuda_device *device, cuda_ranges *kept);
/* With the mapping lock: something is about to be mapped there, or the addresses are given back. Fails where the driver
 * refuses to unmap what is there. */
RONDO_MUST_USE rondo_status cuda_stand_ins_yield(cuda_device *device, cuda_range at);
/* With the mapping lock: room to note one mapping, and noting it: it was made in vain and could not be taken back. It
 * is unmapped later, and until then nothing else is mapped there. */
RONDO_MUST_USE rondo_status cuda_stand_ins_reserve_left(cuda_device *device);
void cuda_stand_ins_take_back(cuda_device *device, cuda_range at);
void cuda_stand_ins_end(cuda_stand_ins *self);
void cuda_stand_in_free(cuda_device *device);
/* Lets the device, and those that it has admitted, access what is mapped there. */
cu_result cuda_set_access(cuda_device *device, cu_address address, size_t bytes, int flags);
static inline cu_allocation_properties cuda_memory_properties(const cuda_device *device) {
  return (cu_allocation_properties){.type = CU_ALLOCATION_PINNED,
                                    .location = {.type = CU_LOCATION_DEVICE, .id = device->ordinal}};
}
/* The bytes from the first to the last that the copy's sides take. */
void cuda_copy_extents(const rondo_copy *copy, size_t *out_src, size_t *out_dst);

RONDO_MUST_USE rondo_status cuda_admit(rondo_device *device, uint64_t peers);
RONDO_MUST_USE rondo_status cuda_host_allocate(rondo_device *device, size_t bytes, void **out_address);
void cuda_host_release(rondo_device *device, void *address, size_t bytes);
bool cuda_knows_address(rondo_device *device, const void *address, bool *out_is_device);
bool cuda_has_address(rondo_device *device, const void *address);

/* For an executable that is about to be destroyed: no queue names it any more. */
void cuda_queues_forget(cuda_device *device, cuda_executable *executable);
/* Under the device's lock: of each queue the graph that was launched last since it was waited for, as a text that
 * stands behind others; "" when there are none. */
void cuda_queues_name_launched(const cuda_device *device, char *text, size_t bytes);

/* Queues (cuda_queue.c) -------------------------------------------------------------------------------------------- */

/* Takes the failure of one queue's host functions, if any queue has one. */
RONDO_MUST_USE rondo_status cuda_queues_take_failure(cuda_device *device);
/* All queues were waited for, since before the epoch was raised beyond this one. */
void cuda_queues_settle(cuda_device *device, uint64_t epoch);
/* The memory of queues that were destroyed on a lost device; no host function is called any more. */
void cuda_dead_queues_free(cuda_device *device);

/* So many more of its kernels, or launches. */
static inline void cuda_queue_count(_Atomic uint64_t *counter, uint64_t more) {
  atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more, memory_order_relaxed);
}

/* In the queue's order, *place becomes the queue. */
RONDO_MUST_USE rondo_status cuda_queue_tell(cuda_queue *queue, cuda_queue **place);

/* The owner is about to give it a kernel or a graph. */
static inline void cuda_queue_note_work(cuda_queue *queue) {
  if (__builtin_expect(atomic_load_explicit(&queue->is_busy, memory_order_relaxed), 1)) return;
  atomic_store_explicit(&queue->settled, atomic_load(&((cuda_device *)queue->base.device)->epoch),
                        memory_order_relaxed);
  atomic_store_explicit(&queue->is_busy, true, memory_order_release);
}

/* Host functions (cuda_host_function.c) --------------------------------------------------------------------------- */

void cuda_hosts_prepare(cuda_device *device);
/* Sees to it that there is a thread. Errors: those of rondo_thread_start. */
RONDO_MUST_USE rondo_status cuda_hosts_start(cuda_device *device);
/* Waits for the functions that were posted, and ends the threads; what is posted later is dropped. */
void cuda_hosts_stop(cuda_device *device);

/* cu_host_function of a cuda_host_work that is queued or stands in a graph: hands it to a thread. */
void cuda_post_host(void *work);
/* Frees a node's record that nobody calls any more. */
void cuda_host_free(const rondo_allocator *allocator, cuda_host_work *work);

/* A gate that is 0. Errors: OUT_OF_MEMORY, DEVICE_LOST. */
RONDO_MUST_USE rondo_status cuda_gate_take(cuda_device *device, cuda_gate **out);
void cuda_gate_give(cuda_device *device, cuda_gate *gate); /* NULL is fine */
void cuda_gates_free(cuda_device *device);                 /* in the device's context */

void cuda_host_put_unused(cuda_queue *queue, cuda_host_work *work);

/* Kernels (cuda_kernel.c) ------------------------------------------------------------------------------------------ */

/* Code as text or binary, and its function `name`. Errors: INVALID_DATA with the driver's log, and others. */
RONDO_MUST_USE rondo_status cuda_kernel_load(cuda_device *device, const char *name, const void *image,
                                             cuda_kernel **out);
/* Gives a kernel a function that somebody else keeps loaded. */
RONDO_MUST_USE rondo_status cuda_kernel_adopt(cuda_device *device, rondo_kernel *kernel, cu_function function);
static inline const cuda_foreign_kernel *cuda_foreign_of(const rondo_kernel *kernel) {
  return ((const cuda_kernel *)kernel->driver_data)->foreign;
}
/* The driver's launch. */
cu_result cuda_kernel_submit(const cuda_api *api, cu_stream stream, const rondo_kernel_node *kernel);
/* Out of use: unloaded when no queue runs it any more. NULL is fine. */
void cuda_kernel_bury(cuda_kernel *kernel);
/* Unloads what is run no longer; with `all`, everything. */
void cuda_kernels_reap(cuda_device *device, bool all);

static inline void cuda_kernels_look(cuda_device *device) {
  if (__builtin_expect(atomic_load_explicit(&device->has_dead_kernels, memory_order_relaxed), 0))
    cuda_kernels_reap(device, false);
}

/* Executables (cuda_executable.c) ---------------------------------------------------------------------------------- */

/* Destroyed executables: kept until their launches are over. Frees those that are; with `all` the others too, whose
 * memory alone is then left for cuda_executables_free. */
void cuda_executables_reap(cuda_device *device, bool all);
void cuda_executables_free(cuda_device *device);

/* Work in the driver's terms (cuda_launch_params.c, cuda_fill.c) -------------------------------------------------- */

/* A foreign kernel's are without arguments. */
void cuda_kernel_params(const rondo_kernel_node *kernel, cu_kernel_params *out);

/* A copy is done in so many parts: 1, or as many as it has slices where the driver cannot describe their distance. */
size_t cuda_copy_parts(const rondo_copy *copy);
void cuda_copy_params(const rondo_copy *copy, size_t part, cu_copy *out);
cu_result cuda_copy_submit(const cuda_api *api, cu_stream stream, const rondo_copy *copy);

#define CUDA_FILL_NAME "rondo_fill"

/* A launch of the fill kernel; `params` points into it. */
typedef struct cuda_fill {
  cu_kernel_params params;
  uint64_t dst, pitch, width, height; /* bytes, bytes, bytes, rows */
  uint32_t value;
  void *addresses[5];
} cuda_fill;

/* Loads the kernel into device->fill. */
RONDO_MUST_USE rondo_status cuda_fill_load(cuda_device *device);
void cuda_fill_params(const cuda_device *device, const rondo_fill *fill, cuda_fill *out);

/* Loads the kernels into device->copies and device->queued_copies (cuda_input_copies.c); leaves NULL there where the
 * driver does not compile them. cuda_copies_unload may follow a failure too. */
RONDO_MUST_USE rondo_status cuda_copies_load(cuda_device *device);
void cuda_copies_unload(cuda_device *device);
rondo_kernel *cuda_copy_kernel(const rondo_device *device, size_t bytes, uint32_t *out_blocks);
rondo_kernel *cuda_queued_copy_kernel(const rondo_device *device);
uint32_t cuda_queued_copy_blocks(const rondo_device *device, size_t bytes, size_t largest);

static inline cu_address cuda_address(const void *address) { return (cu_address)(uintptr_t)address; }
static inline cuda_device *cuda_device_of(rondo_device *device) { return (cuda_device *)device; }

#endif

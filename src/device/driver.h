/* SPDX-License-Identifier: MIT
 * What a driver is: a few small tables of functions. A new driver is written from this page alone.
 *
 * The functions in front of a driver (exec/, memory/, device/device.c) check arguments and states once; a driver may
 * rely on them: pointers are not NULL unless said, objects are of this device, sizes are not zero. What is captured
 * does not reach a driver, unless it has a table for that.
 *
 * Threads: "any" = may be called by several threads at once. "owner" = calls on one object come one after another, from
 * any thread (streams and execs are thread-compatible). No function that may wait is called with a lock of the
 * library's held, but for a heap's gate (memory/heap/heap.h), which is held over wait, launch, record and remapping.
 * Every slot is required unless it says "may be NULL". Each driver object's struct begins with the struct here, so that
 * the driver casts it to its own.
 */
#ifndef RONDO_DEVICE_DRIVER_H
#define RONDO_DEVICE_DRIVER_H

#include <stdatomic.h>

#include <rondo/capture.h>
#include <rondo/device.h>
#include <rondo/graph.h>

#include "base/allocation.h"
#include "base/error.h"
#include "graph/graph_internal.h"
#include "graph/kernel.h"

/* The room that a stream's label in messages takes, with its end. */
#define RONDO_STREAM_LABEL 80

typedef struct rondo_queue rondo_queue;               /* a stream as the device sees it */
typedef struct rondo_device_event rondo_device_event; /* an event as the device sees it */
typedef struct rondo_executable rondo_executable;     /* a lowered graph */
typedef struct rondo_physical rondo_physical;         /* physical memory */

/* A node ready to be lowered: children are flattened away, event nodes name the device's events. ALLOC and FREE nodes
 * do nothing when run: the address is fixed, the pages are mapped before the launch. */
typedef struct rondo_lowered_node {
  const rondo_node_params *params; /* valid during the call; see rondo_executable_ops */
  rondo_device_event *event;       /* EVENT_RECORD and EVENT_WAIT; else NULL */
  rondo_node_where where;          /* for messages */
  uint64_t captured;               /* its name in a captured graph; 0 when it has none */
} rondo_lowered_node;

/* What a lowered node becomes. */
typedef struct rondo_node_change {
  uint32_t index;
  rondo_lowered_node node;
} rondo_node_change;

/* An edge that the driver gives ports and a type, and that is no order (rondo_graph_programmatic_edges). */
typedef struct rondo_lowered_edge {
  uint32_t from, to;
  uint8_t from_port, to_port, type;
} rondo_lowered_edge;

/* Nodes in topological order; the successors of node i are successors[successor_start[i] .. successor_start[i + 1]),
 * ascending, and the same edges again by the node that they lead to, in any order. */
typedef struct rondo_lowered_graph {
  const char *name;
  size_t node_count;
  const rondo_lowered_node *nodes;
  const uint32_t *successor_start;
  const uint32_t *successors;
  const uint32_t *predecessor_start;
  const uint32_t *predecessors;
  const rondo_lowered_edge *programmatic; /* beside the successors */
  size_t programmatic_count;
  struct rondo_captured
      *captured; /* what the names of captured nodes belong to, while the graph's holder lives; NULL */
  bool is_bound; /* has FOREIGN nodes that cannot be made anew: runs as it was captured */
} rondo_lowered_graph;

/* A place in a lowered node that holds an address of an input: a word in the value of a kernel's parameter (a library's
 * kernel has one parameter, of all its arguments), or an address of a copy or fill. */
enum { RONDO_SITE_DST = UINT16_MAX - 1, RONDO_SITE_SRC = UINT16_MAX };
typedef struct rondo_patch_site {
  uint32_t node;      /* index of the lowered node */
  uint16_t parameter; /* or RONDO_SITE_DST, RONDO_SITE_SRC */
  uint16_t offset;    /* bytes into its value */
  uint64_t addend;    /* what the site has more than the input's address; may wrap */
} rondo_patch_site;

/* An input that moves: its sites, those of one node side by side. */
typedef struct rondo_patch_change {
  const rondo_patch_site *sites;
  size_t count;
  uint64_t before, address; /* of the input: what the sites hold now, less their addends, and what they get */
} rondo_patch_change;

/* Calls of a library that works with the driver. What they queue is seen by a capture of the stream. AT_ONCE: they may
 * do what captures forbid (C9), at once and unseen; WORK: they do nothing but queue; FREE: also on a lost device. */
typedef enum rondo_library_use { RONDO_LIBRARY_AT_ONCE, RONDO_LIBRARY_WORK, RONDO_LIBRARY_FREE } rondo_library_use;
typedef rondo_status (*rondo_library_call)(void *user);

typedef enum rondo_protection {
  RONDO_PROTECT_NONE = 0,
  RONDO_PROTECT_READ = 1,
  RONDO_PROTECT_READ_WRITE = 3
} rondo_protection;

/* Lifetimes of allocations, for a device that keeps accesses outside of them from happening. On such a device memory/
 * gives each allocation addresses of its own, which no other one gets again soon, and tells the device of it:
 * allocations of the pools and of rondo_malloc get their address here; alloc and free nodes are lowered as ever, with
 * addresses on pages of their own. All any; with `queue` NULL at once, else in the queue's order (owner). */
typedef struct rondo_guard_ops {
  /* Memory at an address aligned to 256, whose lifetime begins here. LIMIT_EXCEEDED, OUT_OF_MEMORY. */
  rondo_status (*allocate)(rondo_device *device, rondo_queue *queue, size_t bytes, const char *name,
                           void **out_address);
  /* Ends the lifetime of such memory, or of a graph allocation that is freed outside of graphs. */
  void (*release)(rondo_device *device, rondo_queue *queue, void *address);
  /* A graph allocation that no alloc node is of lives from now on; `release` ends that. OUT_OF_MEMORY, LIMIT_EXCEEDED.
   */
  rondo_status (*hold)(rondo_device *device, void *address, size_t bytes, const char *name);
  /* Graph memory from `address` on is to be given out again, or unmapped: what had its address there is forgotten. */
  void (*forget)(rondo_device *device, void *address, size_t bytes);
  /* Whether work may write what begins at the address and lives; until its life ends, or the other is said. */
  void (*set_read_only)(rondo_device *device, rondo_queue *queue, void *address, bool read_only);
  /* The accesses of the calling thread that are no work's. Between the two calls, one to memory that does not live does
   * not end the process: it is noted, and goes on with memory that is thrown away. `end` gets what `begin` returned,
   * and returns EXECUTION_FAILED for the first such access, which `who` made. `begin` returns NULL when it cannot
   * watch; then there is nothing to end. */
  void *(*host_begin)(rondo_device *device);
  rondo_status (*host_end)(rondo_device *device, void *watch, const char *who);
  /* The watch, which is host_watch_begin's, also notes system calls that access what begins at the address and was
   * released. Meanwhile no work may be given that address: its accesses would pass for the host's. */
  void (*host_cover)(rondo_device *device, void *watch, const void *address);
} rondo_guard_ops;

/* Something of a layer above that a captured graph's work needs. */
typedef struct rondo_kept {
  struct rondo_kept *next;
  void *object; /* a reference, given up by `release` */
  void (*release)(void *object);
} rondo_kept;

/* What a driver captures by itself: first a capture that goes on, then the graph that came of it. Begins so. */
typedef struct rondo_capture_ops rondo_capture_ops;
typedef struct rondo_captured {
  const rondo_capture_ops *ops;
  rondo_device *device;
  atomic_uint references;
  uint64_t id;                    /* the driver's number of the capture */
  struct rondo_captured *earlier; /* of the same graph; a reference, or NULL */
  rondo_kept *kept;               /* until the driver calls rondo_captured_let_go */
} rondo_captured;

/* For a device whose queues can wait for what none of them runs: semaphores are events that the layer above completes.
 * A semaphore is asked for up to a number, and raised up to one; both only grow. A wait for it, by a queue or by an
 * EVENT_WAIT node, is over once it is raised as far as it was asked for when the wait is come to; meanwhile it holds up
 * nothing but what comes behind it. It is not recorded, queried or synchronised. All any. */
typedef struct rondo_semaphore_ops {
  /* `end` is called with `user` once the event is destroyed and no queue or executable can come to it any more. */
  rondo_status (*create)(rondo_device *device, void (*end)(void *user), void *user, rondo_device_event **out);
  void (*ask)(rondo_device_event *semaphore, uint64_t value);
  void (*raise)(rondo_device_event *semaphore, uint64_t value);
  /* All waits for it are over, now and later, and each fails its queue with this error. Once. */
  void (*fail_waits)(rondo_device_event *semaphore, const rondo_saved_error *error);
} rondo_semaphore_ops;

/* A node that another one, or the next that is captured, depends on; plain, or with ports and a type. */
typedef struct rondo_captured_edge {
  uint64_t node;
  bool is_programmatic;
  uint8_t from_port, to_port, type;
} rondo_captured_edge;

/* rondo_foreign_node.what of a conditional node. */
#define RONDO_FOREIGN_CONDITIONAL "conditional"

/* What a captured node is: KERNEL, COPY, FILL, EMPTY, CHILD or FOREIGN. */
typedef struct rondo_captured_work {
  rondo_node_params params; /* a KERNEL's kernel is a reference for the caller; a CHILD's graph is NULL */
  uint64_t child;           /* a CHILD's graph, in the driver's name */
} rondo_captured_work;

/* For a device whose driver captures what libraries give to a queue's native handle. While such a capture goes on, the
 * order of its nodes is the driver's: exec/ asks it what the next node depends on, makes nodes for what it does not
 * know, and tells it of its own. Owner, like the queue; what comes after `end`, and the count, any. Lists belong to
 * `captured` and are valid until the next call with it. Calls fail as the driver says. */
struct rondo_capture_ops {
  /* What is given to the queue from now on is captured. One reference is the caller's. */
  rondo_status (*begin)(rondo_queue *queue, rondo_capture_mode mode, rondo_captured **out);
  /* The driver's number of the capture that the queue is part of now, of whoever began it; 0 when there is none. */
  uint64_t (*capture_of)(const rondo_queue *queue);
  /* What the next node of the queue will depend on. *out_is_active is false when the queue is no longer part of the
   * capture, or that was made invalid. */
  rondo_status (*frontier)(rondo_captured *captured, rondo_queue *queue, bool *out_is_active,
                           const rondo_captured_edge **out, size_t *out_count);
  rondo_status (*set_frontier)(rondo_captured *captured, rondo_queue *queue, const uint64_t *nodes, size_t count);
  /* A node in the capture's graph that stands for one of exec/'s: for a COPY the same, where the driver can have it as
   * one node; else, and for NULL, an empty one. */
  rondo_status (*place)(rondo_captured *captured, const rondo_node_params *copy, const uint64_t *before, size_t count,
                        uint64_t *out);
  /* Launches a KERNEL, which has code for the device, into the capture. */
  rondo_status (*launch)(rondo_captured *captured, rondo_queue *queue, const rondo_node_params *kernel, uint64_t *out);
  /* Graph memory that is not mapped yet: until the end, the driver takes it for the device's in whatever libraries give
   * to the queue. */
  rondo_status (*show)(rondo_captured *captured, const void *memory, size_t bytes);
  /* The capture is over, also when this fails: its graph is then gone. UNJOINED when work was forked off. `queue` is
   * the one that it began on. */
  rondo_status (*end)(rondo_captured *captured, rondo_queue *queue);

  /* The nodes of a child's graph, or of the graph itself when `graph` is 0. */
  rondo_status (*nodes)(rondo_captured *captured, uint64_t graph, const uint64_t **out, size_t *out_count);
  /* What a node depends on. */
  rondo_status (*before)(rondo_captured *captured, uint64_t node, const rondo_captured_edge **out, size_t *out_count);
  /* What it is. Names are valid as long as the kernel, or are constant; arguments until the next call. */
  rondo_status (*read)(rondo_captured *captured, uint64_t node, rondo_captured_work *out);

  /* The last reference is gone: frees it with its graph, if there is one, once no queue runs that any more; behind that
   * rondo_captured_let_go. */
  void (*release)(rondo_captured *captured);
};

/* A device. */
typedef struct rondo_device_ops {
  /* Waits for all work, stops threads, frees the struct. Called once, when no object of the device is left. Returns the
   * first asynchronous failure that no synchronisation has returned; the device is gone all the same. */
  rondo_status (*close)(rondo_device *device);

  /* Fills what it knows; the front has zeroed the struct and set struct_size. any */
  void (*info)(const rondo_device *device, rondo_device_info *out);
  void (*statistics)(const rondo_device *device, rondo_device_statistics *out);

  /* Makes a kernel ready for this device (compile, look up), into kernel->driver_data. UNSUPPORTED work is refused
   * where it is used, not here. May be NULL: nothing to make ready. any */
  rondo_status (*kernel_prepare)(rondo_device *device, rondo_kernel *kernel);

  /* The kernel that copies ranges of the device's memory inside graphs (rondo_range_copies), where that costs a launch
   * less than copy nodes that are told other sources; the device's own, NULL when it has none. With it the blocks that
   * a range of so many bytes is worth. May be NULL: there is none. any */
  rondo_kernel *(*copy_kernel)(const rondo_device *device, size_t bytes, uint32_t *out_blocks);

  /* Likewise the kernel that copies ranges in front of work (rondo_queued_ranges), also of page-locked memory that
   * host_allocate gave, where one launch costs less than copies; NULL where it cannot read such memory at the address
   * that the host has it at, or could not be loaded. May be NULL: there is none. any */
  rondo_kernel *(*queued_copy_kernel)(const rondo_device *device);

  /* The blocks of it for each range, where all ranges together have `bytes` and the largest `largest`. NULL where
   * queued_copy_kernel is. any */
  uint32_t (*queued_copy_blocks)(const rondo_device *device, size_t bytes, size_t largest);

  /* OK when the device can run the node: it has code for its kernel, else INVALID_GRAPH/NO_FUNCTION naming the kernel
   * and what to give; and its grid is within rondo_device.most_blocks (rondo_device_check_grid). The front asks before
   * each use: submit, executable_create and set_params get only what passed. any */
  rondo_status (*kernel_check)(const rondo_device *device, const rondo_kernel_node *node);

  /* The devices of this driver whose work can be let access this one's memory, by index: bit N is device N. The same
   * function for all devices of a driver. May be NULL: none. any */
  uint64_t (*peers)(const rondo_device *device);

  /* Work of these devices, by index, may access this one's memory from now on: what is mapped and what will be. Called
   * before access is granted; never taken back, since who may access which allocation is checked above. May be NULL:
   * they all may anyway. any */
  rondo_status (*admit)(rondo_device *device, uint64_t peers);

  /* Calls `call` with `user` while the device is what libraries of the driver's take for the current one, and returns
   * what it returns. What it queues on a queue's native handle is work like any other, captured or not. DEVICE_LOST
   * without calling, unless it is to free. May be NULL: the device takes no work of libraries. any */
  rondo_status (*call_library)(rondo_device *device, rondo_library_use use, rondo_library_call call, void *user);

  /* Objects. `label` is what messages call the queue ("stream 'main'", "stream 3"), less than RONDO_STREAM_LABEL bytes;
   * copied. any */
  rondo_status (*queue_create)(rondo_device *device, const char *label, rondo_queue **out);
  rondo_status (*event_create)(rondo_device *device, bool timing, rondo_device_event **out);
  rondo_status (*executable_create)(rondo_device *device, const rondo_lowered_graph *graph, rondo_executable **out);

  /* Waits for all work of all queues. Returns the first asynchronous failure and clears it. any */
  rondo_status (*synchronize)(rondo_device *device);

  /* Virtual memory. Sizes and addresses are multiples of info.page_bytes. All act at once on the host; any.
   * reserve: address space without memory, aligned to `alignment` (a power of two, 0 = page).
   * unreserve: exactly what reserve gave, with nothing mapped in it.
   * physical_create / physical_destroy: memory without an address; destroying while mapped is legal, it goes with the
   *   last mapping.
   * physical_seal: it will not be mapped once more, so that what mapping takes beside the memory can go; may be NULL.
   * map: all of `physical` at `address`, inside a reservation, nothing mapped there yet; readable and writable.
   * unmap: `bytes` from `address`, whole mappings; the range stays reserved and cannot be accessed.
   * protect: what is allowed in a mapped range. */
  rondo_status (*reserve)(rondo_device *device, size_t bytes, size_t alignment, void **out_address);
  rondo_status (*unreserve)(rondo_device *device, void *address, size_t bytes);
  rondo_status (*physical_create)(rondo_device *device, size_t bytes, rondo_physical **out);
  void (*physical_destroy)(rondo_physical *physical);
  void (*physical_seal)(rondo_physical *physical);
  rondo_status (*map)(rondo_device *device, void *address, rondo_physical *physical);
  rondo_status (*unmap)(rondo_device *device, void *address, size_t bytes);
  rondo_status (*protect)(rondo_device *device, void *address, size_t bytes, rondo_protection protection);

  /* What the calling thread does to memory that is not there. Between the two calls, an access of the host's, also by a
   * system call, to the `bytes` bytes from `address`, which are reserved and hold nothing, does not end the process: it
   * is noted, reads zeros and goes on. `end` gets what `begin` returned, and returns the first address that was
   * accessed among the first `used` bytes, as exact as *out_bytes says, or NULL; what was written there is gone.
   * `begin` returns NULL when it cannot watch; then there is nothing to end. May be NULL: the device's memory is not
   * the host's. any */
  void *(*host_watch_begin)(rondo_device *device, void *address, size_t bytes);
  void *(*host_watch_end)(rondo_device *device, void *watch, size_t bytes, size_t used, size_t *out_bytes);

  /* Host memory that copies use without a detour, aligned to 256; not zeroed. Only where the device needs it are its
   * pages made at once (pinned). any */
  rondo_status (*host_allocate)(rondo_device *device, size_t bytes, void **out_address);
  void (*host_release)(rondo_device *device, void *address, size_t bytes);

  /* Whether the driver has an address, whoever made what is there: memory of a device (*out_is_device), or page-locked
   * memory of the host. May be NULL: it has none but the device's own. any */
  bool (*knows_address)(rondo_device *device, const void *address, bool *out_is_device);

  /* Whether what is there is memory of this device, and so for its copy_kernel; whoever made it. May be NULL where that
   * is. any */
  bool (*has_address)(rondo_device *device, const void *address);

  const rondo_capture_ops *capture; /* NULL: captured work does not reach the driver */

  const rondo_semaphore_ops *semaphore; /* NULL: the device has none */

  const rondo_guard_ops *guard; /* NULL: the device does not watch lifetimes (info.guarded is false) */
} rondo_device_ops;

/* A queue: work runs in the order of the calls. owner */
typedef struct rondo_queue_ops {
  /* Waits for its work, frees it. Returns the asynchronous failure that is left; the queue is gone all the same. */
  rondo_status (*destroy)(rondo_queue *queue);

  /* KERNEL, HOST, COPY or FILL. Copies what it needs of params before it returns; they are resolved. Must not
   * allocate or lock; may wait while the queue is full. HOT */
  rondo_status (*submit)(rondo_queue *queue, const rondo_node_params *work);

  /* The event completes when what was queued so far is done. Later waits and queries mean this record. */
  rondo_status (*record)(rondo_queue *queue, rondo_device_event *event);

  /* What is queued from now on waits for the event as it is now recorded; never recorded = complete. */
  rondo_status (*wait)(rondo_queue *queue, rondo_device_event *event);

  /* Runs the executable after what is queued, and after its earlier launches on any queue of the device. Event-record
   * nodes count as recorded from this call on; event-wait nodes wait for what is recorded now. Must not allocate or
   * lock once warm. HOT */
  rondo_status (*launch)(rondo_queue *queue, rondo_executable *executable);

  /* The same with inputs at other addresses: the sites of each change get its address with this launch and keep it for
   * later ones; earlier launches run with what they had (U1). Copies and fills with sites are one-dimensional. When it
   * fails the sites are as before. HOT */
  rondo_status (*launch_patched)(rondo_queue *queue, rondo_executable *executable, const rondo_patch_change *changes,
                                 size_t count);

  /* Does ahead, in the queue's order, what a first launch of the executable would do beside running it. May be NULL:
   * there is nothing of that kind. */
  rondo_status (*upload)(rondo_queue *queue, rondo_executable *executable);

  /* Waits, working along. Returns the first asynchronous failure since the last time and clears it. */
  rondo_status (*synchronize)(rondo_queue *queue);

  /* Waits in the same way, but leaves the failure to the next synchronize: for the library's own waits. Errors: those
   * of waiting (DEVICE_LOST). */
  rondo_status (*await)(rondo_queue *queue);

  /* OK when idle, NOT_READY when not (no detail set); else as synchronize, without waiting. */
  rondo_status (*query)(rondo_queue *queue);

  /* The driver's own handle, or NULL. May be NULL. any */
  void *(*native)(rondo_queue *queue);
} rondo_queue_ops;

/* An event. Recording, by a queue's slot or by launching an executable with a node for it, is not called at once with
 * anything else on that event; the rest any. */
typedef struct rondo_event_ops {
  /* Freed at once; work that waits for its last record still does. */
  void (*destroy)(rondo_device_event *event);
  rondo_status (*query)(rondo_device_event *event);       /* OK or NOT_READY; never recorded = OK */
  rondo_status (*synchronize)(rondo_device_event *event); /* waits, working along */
  /* Nanoseconds from one completion to the other; negative when the end came first. Called for timing events of one
   * device that are complete. */
  rondo_status (*elapsed)(const rondo_device_event *begin, const rondo_device_event *end, int64_t *out_ns);
} rondo_event_ops;

/* A lowered graph. owner. `index` counts lowered nodes. Changes hold for later launches only (U1).
 *
 * A driver need not copy names, places (rondo_node_where) and the arguments of kernels. It may read them later at the
 * addresses that it was given, and launch_patched may write its sites there. They stay valid until the executable is
 * destroyed or gets others. After a successful set_params or set_many, the caller writes the new arguments to the old
 * addresses or calls rebind. */
typedef struct rondo_executable_ops {
  void (*destroy)(rondo_executable *executable); /* does not wait; freed once its launches are done (L2) */
  /* Other parameters of the same kind, checked by the front. `event` for event nodes. */
  rondo_status (*set_params)(rondo_executable *executable, size_t index, const rondo_lowered_node *node);
  /* The same of several nodes, in their order; what each of them would do about the device is done once. When it fails,
   * *out_done of them have their new parameters, and those from there on what they had. May be NULL. */
  rondo_status (*set_many)(rondo_executable *executable, const rondo_node_change *changes, size_t count,
                           size_t *out_done);
  /* The name, the place and the arguments of a node are now at other addresses, with the values that the executable
   * has. With `node` NULL they are gone, because a change could not be taken back; the next change brings others. May
   * be NULL: the driver copies them. */
  void (*rebind)(rondo_executable *executable, size_t index, const rondo_lowered_node *node);
  rondo_status (*set_enabled)(rondo_executable *executable, size_t index, bool enabled);
  /* Waits until all launches so far are done. */
  rondo_status (*synchronize)(rondo_executable *executable);
  uint64_t (*host_bytes)(const rondo_executable *executable);
  uint64_t (*device_bytes)(const rondo_executable *executable);
  /* While it is on, launches keep how long each node ran. Called with no launch under way, as far as waiting for them
   * succeeded; switching it off only frees. */
  rondo_status (*set_timing)(rondo_executable *executable, bool on);
  /* Of the last launch, which is done: nanoseconds by index, from a node's begin to the end of all its blocks; what an
   * event-wait node waited is not counted. Called while timing is on. */
  void (*times)(const rondo_executable *executable, uint64_t *out_ns);
} rondo_executable_ops;

/* The beginnings of the drivers' structs. */
struct rondo_queue {
  const rondo_queue_ops *ops;
  rondo_device *device;
};
struct rondo_device_event {
  const rondo_event_ops *ops;
  rondo_device *device;
  bool timing;
};
struct rondo_executable {
  const rondo_executable_ops *ops;
  rondo_device *device;
};
struct rondo_physical {
  rondo_device *device;
  size_t bytes;
};

/* A driver, in the registry. */
typedef struct rondo_driver {
  const char *name; /* "cpu": opens "cpu", "cpu:N" and "cpu:<word>" */
  /* `rest` is what follows "cpu:" in the name, "" when nothing does. options is not NULL; its allocator is resolved
   * into `allocator`. Sets ops, allocator, name and index of the struct. NOT_FOUND/UNKNOWN_DEVICE for a rest it does
   * not know. any */
  rondo_status (*open)(const char *rest, const rondo_device_options *options, const rondo_allocator *allocator,
                       rondo_device **out);
  /* The names that can be opened, by index; false past the last. See rondo_device_enumerate. any */
  bool (*enumerate)(size_t index, const char **out_name, const char **out_unavailable);
} rondo_driver;

#endif

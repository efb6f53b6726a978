/* SPDX-License-Identifier: MIT
 * A driver is a few small tables of functions. This header is all that is needed to write a new one.
 *
 * The callers of a driver (exec/, memory/, device/device.c) check arguments and states once, so a driver may rely on
 * them: pointers are not NULL unless a slot says so, objects belong to this device, sizes are not zero. Captured work
 * does not reach a driver, unless it has a table for capture.
 *
 * Threads: "any" means that several threads may call at once. "owner" means that calls on one object come one after
 * another, from any thread (streams and execs are thread-compatible). A function that may wait is not called while a
 * lock of the library is held, except the gate of a heap (memory/heap/graph_heap.h), which is held during wait, launch,
 * record and remapping. Every slot is required unless it says "may be NULL". The struct of each driver object begins
 * with the struct here, so that the driver can cast it to its own. "HOT" marks slots on the path of a launch.
 */
#ifndef RONDO_DEVICE_DRIVER_H
#define RONDO_DEVICE_DRIVER_H

#include <stdatomic.h>

#include <rondo/capture.h>
#include <rondo/device.h>
#include <rondo/external_semaphore.h>
#include <rondo/graph.h>

#include "base/allocation.h"
#include "base/error.h"
#include "graph/graph_internal.h"
#include "graph/kernel.h"

/* The size of a stream's label in messages, with the terminating zero. */
#define RONDO_STREAM_LABEL 80

typedef struct rondo_queue rondo_queue;               /* a stream as the device sees it */
typedef struct rondo_device_event rondo_device_event; /* an event as the device sees it */
typedef struct rondo_executable rondo_executable;     /* a lowered graph */
typedef struct rondo_physical rondo_physical;         /* physical memory */

/* How often physical memory is mapped at the same time. A driver may choose cheaper memory for ONCE. */
typedef enum rondo_physical_use { RONDO_PHYSICAL_AGAIN, RONDO_PHYSICAL_ONCE } rondo_physical_use;

/* How a queue is made. Zeros are the defaults. */
typedef struct rondo_queue_options {
  bool adopts;      /* the queue is the stream `native`, which its owner made and will destroy; no other field is set */
  void *native;     /* of the driver, or what the `native` of another queue returned; see rondo_stream_adopt */
  int32_t priority; /* lower numbers first */
  bool is_blocking; /* synchronises with the driver's legacy stream */
} rondo_queue_options;

typedef struct rondo_lowered_graph rondo_lowered_graph;

/* A node as a driver gets it: child graphs are flattened, unless the graph is exported, and event nodes name the
 * device's events. ALLOC and FREE nodes do nothing when they run: the address is fixed, and the pages are mapped before
 * the launch. */
typedef struct rondo_lowered_node {
  const rondo_node_params *params; /* valid during the call; see rondo_executable_ops */
  union {
    rondo_device_event *event;        /* of EVENT_RECORD and EVENT_WAIT; else NULL */
    const rondo_lowered_graph *child; /* of CHILD */
  };
  rondo_device *device;   /* that it runs on, of this driver; NULL for nodes that run on none */
  rondo_node_where where; /* for messages */
  uint64_t captured;      /* its id in a captured graph; 0 if it has none */
} rondo_lowered_node;

/* What a lowered node is changed to. */
typedef struct rondo_node_change {
  uint32_t index;
  rondo_lowered_node node;
} rondo_node_change;

/* An edge with ports and a type (rondo_graph_programmatic_edges). If it orders its nodes, it is among the successors
 * too, for drivers without such edges; others make this one in place of that. */
typedef struct rondo_lowered_edge {
  uint32_t from, to;
  uint8_t from_port, to_port, type;
  bool orders;
} rondo_lowered_edge;

/* The nodes are in topological order. The successors of node i are successors[successor_start[i] ..
 * successor_start[i + 1]), ascending. The same edges are listed again by the node that they lead to, in any order. */
struct rondo_lowered_graph {
  const char *name;
  size_t node_count;
  const rondo_lowered_node *nodes;
  const uint32_t *successor_start;
  const uint32_t *successors;
  const uint32_t *predecessor_start;
  const uint32_t *predecessors;
  const rondo_lowered_edge *programmatic; /* besides the successors */
  size_t programmatic_count;
  struct rondo_captured *captured; /* owns the captured nodes, as long as the graph's owner lives; or NULL */
  bool is_bound;                   /* has FOREIGN nodes that exist only as captured */
};

/* A word of a lowered node that holds the address of an input: in the value of a kernel's parameter (a library's kernel
 * has one parameter for all its arguments), or an address of a copy or fill. */
enum { RONDO_SITE_DST = UINT16_MAX - 1, RONDO_SITE_SRC = UINT16_MAX };
typedef struct rondo_patch_site {
  uint32_t node;      /* index of the lowered node */
  uint16_t parameter; /* or RONDO_SITE_DST, RONDO_SITE_SRC */
  uint16_t offset;    /* bytes into its value */
  uint64_t addend;    /* the site's value minus the input's address; may wrap */
} rondo_patch_site;

/* An input that moves. Its sites are grouped by node. */
typedef struct rondo_patch_change {
  const rondo_patch_site *sites;
  size_t count;
  uint64_t before, address; /* of the input: the value of the sites now, without their addends; and the new value */
} rondo_patch_change;

/* Calls of a library that uses the driver. A capture of the stream sees what they enqueue. AT_ONCE: they may do what
 * captures forbid (C9), at once and unseen. WORK: they only enqueue. FREE: they free, also on a lost device. */
typedef enum rondo_library_use { RONDO_LIBRARY_AT_ONCE, RONDO_LIBRARY_WORK, RONDO_LIBRARY_FREE } rondo_library_use;
typedef rondo_status (*rondo_library_call)(void *user);

typedef enum rondo_protection {
  RONDO_PROTECT_NONE = 0,
  RONDO_PROTECT_READ = 1,
  RONDO_PROTECT_READ_WRITE = 3
} rondo_protection;

/* Lifetimes of allocations, for a device that prevents accesses outside of them. On such a device, memory/ gives each
 * allocation its own addresses, which no other allocation gets soon, and reports them to the device. Allocations of
 * pools and of rondo_malloc get their address here. Alloc and free nodes are lowered as usual, with addresses on their
 * own pages. All any. With `queue` NULL at once, else in the order of the queue (owner). */
typedef struct rondo_guard_ops {
  /* Memory at an address aligned to 256. Its lifetime begins. LIMIT_EXCEEDED, OUT_OF_MEMORY. */
  rondo_status (*allocate)(rondo_device *device, rondo_queue *queue, size_t bytes, const char *name,
                           void **out_address);
  /* Ends the lifetime of such memory, or of a graph allocation that is freed outside of graphs. */
  void (*release)(rondo_device *device, rondo_queue *queue, void *address);
  /* Begins the lifetime of a graph allocation without an alloc node. `release` ends it. OUT_OF_MEMORY, LIMIT_EXCEEDED.
   */
  rondo_status (*hold)(rondo_device *device, void *address, size_t bytes, const char *name);
  /* The graph memory from `address` on will be used again or unmapped: forgets the allocations there. */
  void (*forget)(rondo_device *device, void *address, size_t bytes);
  /* Sets whether work may write the live allocation that begins at the address. Holds until the allocation ends or this
   * is called again. */
  void (*set_read_only)(rondo_device *device, rondo_queue *queue, void *address, bool read_only);
  /* Watches accesses of the calling thread outside of work. Between the two calls, an access to memory that is not
   * allocated does not end the process: it is noted and continues on temporary memory. `end` gets what `begin`
   * returned. It returns EXECUTION_FAILED for the first such access, which the message attributes to `who`. If `begin`
   * returns NULL, it cannot watch, and `end` is not called. */
  void *(*host_begin)(rondo_device *device);
  rondo_status (*host_end)(rondo_device *device, void *watch, const char *who);
  /* A watch from host_watch_begin also notes system calls that access the released allocation that begins at the
   * address. Meanwhile no work may use this address: its accesses would be attributed to the host. */
  void (*host_cover)(rondo_device *device, void *watch, const void *address);
} rondo_guard_ops;

/* What a driver captures: first the capture, then its graph. A driver's struct begins with this one. */
typedef struct rondo_capture_ops rondo_capture_ops;
typedef struct rondo_captured {
  const rondo_capture_ops *ops;
  rondo_device *device;
  atomic_uint references;
  uint64_t id;                    /* the driver's number of the capture; 0: the graph was imported */
  bool owns_graph;                /* the driver's graph is destroyed with it */
  struct rondo_captured *earlier; /* an earlier capture into the same graph: a reference; or NULL */
  rondo_object_list objects;      /* of layers above, which its work needs; the driver frees the list at last */
} rondo_captured;

/* For a device whose queues can wait for something that no queue runs. A semaphore is an event that the layer above
 * completes. It has two numbers that only grow: a requested one and a raised one. A wait for it, by a queue or by an
 * EVENT_WAIT node, ends when the raised number reaches the number that was requested when the wait began. Meanwhile
 * only later work of the queue or graph waits. It is not recorded, queried or synchronised. All any. */
typedef struct rondo_semaphore_ops {
  /* `end` is called with `user` after the event was destroyed and no queue or executable can wait for it any more.
   * `poll`: see begin_polling; NULL without. */
  rondo_status (*create)(rondo_device *device, void (*end)(void *user), bool (*poll)(void *user), void *user,
                         rondo_device_event **out);
  void (*ask)(rondo_device_event *semaphore, uint64_t value);
  void (*raise)(rondo_device_event *semaphore, uint64_t value);
  /* From now on, threads of the device that have nothing to do call `poll`, one at a time, until it returns true, and
   * stay awake longer if it is expected to take long. The semaphore ends after a poll in progress. False: too many are
   * polled already. */
  bool (*begin_polling)(rondo_device_event *semaphore, uint64_t expected_ns);
  /* Ends all waits for it, now and later. Each fails its queue with this error. Called once. */
  void (*fail_waits)(rondo_device_event *semaphore, const rondo_saved_error *error);
} rondo_semaphore_ops;

/* A dependency of a node, or of the next node that is captured. A full one, or one with ports and a type. */
typedef struct rondo_captured_edge {
  uint64_t node;
  bool is_programmatic;
  uint8_t from_port, to_port, type;
} rondo_captured_edge;

/* rondo_foreign_node.what of a conditional node. */
#define RONDO_FOREIGN_CONDITIONAL "conditional"

/* A captured node: KERNEL, COPY, FILL, EMPTY, CHILD or FOREIGN. */
typedef struct rondo_captured_work {
  rondo_node_params params; /* a CHILD's graph is NULL */
  uint64_t child;           /* the driver's id of a CHILD's graph */
} rondo_captured_work;

/* For a device whose driver has graphs, and captures what libraries enqueue on the native handle of a queue. During
 * such a capture, the driver keeps the order of the nodes. exec/ asks it what the next node depends on, makes nodes for
 * work that the driver does not know, and reports its own nodes. Owner, like the queue; any after `end` and `import`,
 * and for the references. Lists belong to `captured` and are valid until the next call with it. Errors are those of the
 * driver.
 */
struct rondo_capture_ops {
  /* Captures what is enqueued from now on. The caller gets a reference. */
  rondo_status (*begin)(rondo_queue *queue, rondo_capture_mode mode, rondo_captured **out);
  /* The driver's number of the capture that the queue is part of, also if other code began it. 0 if there is none. */
  uint64_t (*capture_of)(const rondo_queue *queue);
  /* What the next node of the queue will depend on. *out_is_active is false if the queue is no longer part of the
   * capture, or the capture is invalid. */
  rondo_status (*frontier)(rondo_captured *captured, rondo_queue *queue, bool *out_is_active,
                           const rondo_captured_edge **out, size_t *out_count);
  rondo_status (*set_frontier)(rondo_captured *captured, rondo_queue *queue, const uint64_t *nodes, size_t count);
  /* Adds a node to the capture's graph for a node of exec/. For a COPY that the driver can make in one node, a copy;
   * else, and for NULL, an empty node. */
  rondo_status (*place)(rondo_captured *captured, const rondo_node_params *copy, const uint64_t *before, size_t count,
                        uint64_t *out);
  /* Launches a KERNEL, which has code for the device, into the capture. */
  rondo_status (*launch)(rondo_captured *captured, rondo_queue *queue, const rondo_node_params *kernel, uint64_t *out);
  /* Makes the driver treat graph memory that is not mapped yet as memory of the device, in work of libraries, until the
   * capture ends. */
  rondo_status (*show)(rondo_captured *captured, const void *memory, size_t bytes);
  /* Ends the capture. If this fails, its graph is destroyed. UNJOINED if forked work was not joined. `queue` is the one
   * that the capture began on. */
  rondo_status (*end)(rondo_captured *captured, rondo_queue *queue);

  /* A graph that was made elsewhere, as a capture that has ended: a copy, which the capture owns, or the graph itself,
   * which it does not own yet (owns_graph). The caller gets a reference. UNSUPPORTED/FOREIGN_WORK if the driver cannot
   * copy the graph. any */
  rondo_status (*import)(rondo_device *device, void *graph, bool copies, rondo_captured **out);
  /* The driver's graph of a capture that has ended. */
  void *(*native)(const rondo_captured *captured);
  /* Makes a graph of the driver from a lowered one whose CHILD nodes have `child`, for callers who instantiate it
   * themselves. It has no bound nodes. The only slot that may be called for *out is `destroy`. any */
  rondo_status (*export)(rondo_device *device, const rondo_lowered_graph *graph, rondo_executable **out,
                         void **out_native);
  /* The same for a graph that differs from `native` in some kernels only: a copy of it, in which those are as `changed`
   * says, a lowered graph without edges. `native` is the graph of `exported`, or an imported one, with the nodes that
   * `captured` of the kernels names, if that is NULL. Configurations of launches are as they were. `native` and
   * `exported` must stay as long as *out. any */
  rondo_status (*revise)(rondo_device *device, void *native, const rondo_executable *exported,
                         const rondo_lowered_graph *changed, rondo_executable **out, void **out_native);

  /* From now on, kernels of libraries that are read have the parameters of the declaration, if they have its function,
   * or else its name. The device keeps a reference to the declaration, which replaces an earlier one. any */
  rondo_status (*declare)(rondo_device *device, rondo_kernel *declaration);

  /* The nodes of a child graph, or of the graph itself if `graph` is 0. */
  rondo_status (*nodes)(rondo_captured *captured, uint64_t graph, const uint64_t **out, size_t *out_count);
  /* What a node depends on. */
  rondo_status (*before)(rondo_captured *captured, uint64_t node, const rondo_captured_edge **out, size_t *out_count);
  /* Reads a node. Names are valid as long as the kernel, or are constant; kernels and arguments until the next call. */
  rondo_status (*read)(rondo_captured *captured, uint64_t node, rondo_captured_work *out);
  /* For now no node will be read: releases what reading has kept. */
  void (*end_reading)(rondo_captured *captured);

  /* The last reference was released: frees it and its graph after the last queue has run it, and then the list
   * of its objects. */
  void (*release)(rondo_captured *captured);
};

/* A device. */
typedef struct rondo_device_ops {
  /* Waits for all work, stops threads, and frees the struct. Called once, when the device has no objects. Returns the
   * first asynchronous failure that no synchronisation has returned. The device is freed in any case. */
  rondo_status (*close)(rondo_device *device);

  /* Fills in what it knows. The struct is zero, with struct_size set. any */
  void (*info)(const rondo_device *device, rondo_device_info *out);
  void (*statistics)(const rondo_device *device, rondo_device_statistics *out);

  /* Prepares a kernel for this device (compiles, looks up), into kernel->driver_data. A kernel that cannot run here is
   * refused where it is used. May be NULL: there is nothing to prepare. any */
  rondo_status (*kernel_prepare)(rondo_device *device, rondo_kernel *kernel);

  /* The kernel that copies ranges of the device's memory in graphs (rondo_range_copies), if a launch with it costs less
   * than with copy nodes whose sources change. It belongs to the device. NULL if there is none. *out_blocks is how many
   * blocks a range of `bytes` should have. May be NULL: there is none. any */
  rondo_kernel *(*copy_kernel)(const rondo_device *device, size_t bytes, uint32_t *out_blocks);

  /* The kernel that copies ranges before work (rondo_queued_ranges), also from page-locked memory of host_allocate, if
   * one launch costs less than copies. NULL if it cannot read such memory at the host's address, or could not be
   * loaded. May be NULL: there is none. any */
  rondo_kernel *(*queued_copy_kernel)(const rondo_device *device);

  /* How many blocks of this kernel each range should have, if all ranges together have `bytes` and the largest has
   * `largest`. NULL if queued_copy_kernel is. any */
  uint32_t (*queued_copy_blocks)(const rondo_device *device, size_t bytes, size_t largest);

  /* OK if the device can run the node. INVALID_GRAPH/NO_FUNCTION, with the kernel's name and what to provide, if there
   * is no code for its kernel; INVALID_ARGUMENT if its grid exceeds rondo_device.most_blocks (rondo_device_check_grid).
   * Called before each use: submit, executable_create and set_params only get nodes that have passed. any */
  rondo_status (*kernel_check)(const rondo_device *device, const rondo_kernel_node *node);

  /* OK if a launch of the node may have its configuration, which is not NULL: rondo_device_check_limits, and the limits
   * of its code, if it has code for the device. Prepares what launches need, such as the function's attributes. Called
   * before nodes are made or changed, and before launches on queues. any */
  rondo_status (*config_check)(const rondo_device *device, const rondo_kernel_node *node);

  /* The devices of this driver that can be given access to this one's memory: bit N is device N. The same function for
   * all devices of a driver. May be NULL: none. any */
  uint64_t (*peers)(const rondo_device *device);

  /* Lets work of these devices access this one's memory from now on, what is mapped and what will be. Called before
   * access is granted. Never undone, because the layer above checks the access to each allocation. May be NULL: all
   * devices have access. any */
  rondo_status (*admit)(rondo_device *device, uint64_t peers);

  /* Calls `call` with `user` while the device is the current one for the driver's libraries, and returns its result.
   * What it enqueues on a queue's native handle is work like any other, captured or not. DEVICE_LOST without the call,
   * unless it frees. May be NULL: the device takes no work of libraries. any */
  rondo_status (*call_library)(rondo_device *device, rondo_library_use use, rondo_library_call call, void *user);

  /* Objects. `label` is what messages call the queue ("stream 'main'", "stream 3"), less than RONDO_STREAM_LABEL bytes;
   * copied. `options` NULL: the defaults. any */
  rondo_status (*queue_create)(rondo_device *device, const char *label, const rondo_queue_options *options,
                               rondo_queue **out);
  rondo_status (*event_create)(rondo_device *device, bool timing, rondo_device_event **out);
  rondo_status (*executable_create)(rondo_device *device, const rondo_lowered_graph *graph, rondo_executable **out);

  /* Waits for all work of all queues. Returns the first asynchronous failure and clears it. any */
  rondo_status (*synchronize)(rondo_device *device);

  /* Waits for the launches of destroyed executables with nodes of other devices, and frees these executables. May be
   * NULL: they are freed when they are destroyed. any */
  void (*settle)(rondo_device *device);

  /* Virtual memory. Sizes and addresses are multiples of info.page_bytes. All act at once on the host; any.
   * reserve: address space without memory, aligned to `alignment` (a power of two, 0 = page).
   * unreserve: exactly one reservation, with nothing mapped in it.
   * physical_create / physical_destroy: memory without an address. It may be destroyed while mapped: it is then freed
   *   with its last mapping. `use` says how often it is mapped.
   * map: all of `physical` at `address`, in a reservation where nothing is mapped; readable and writable.
   * unmap: `bytes` from `address`, whole mappings. The range stays reserved and cannot be accessed.
   * protect: the access that is allowed in a mapped range.
   * map_file: replaces the whole pages among `bytes` from `address`, which are mapped once, by those of a file that the
   *   host has mapped privately at `from` and keeps mapped, at the same offset in a page. They are read from the file
   *   when they are first accessed; what is written to them does not reach the file. The pages from *out_first on,
   *   *out_bytes of them, are the file's; 0: it cannot, and they are as before, or zero if the system failed halfway.
   *   May be NULL: it never can. */
  rondo_status (*reserve)(rondo_device *device, size_t bytes, size_t alignment, void **out_address);
  rondo_status (*unreserve)(rondo_device *device, void *address, size_t bytes);
  rondo_status (*physical_create)(rondo_device *device, size_t bytes, rondo_physical_use use, rondo_physical **out);
  void (*physical_destroy)(rondo_physical *physical);
  rondo_status (*map)(rondo_device *device, void *address, rondo_physical *physical);
  rondo_status (*unmap)(rondo_device *device, void *address, size_t bytes);
  rondo_status (*protect)(rondo_device *device, void *address, size_t bytes, rondo_protection protection);
  rondo_status (*map_file)(rondo_device *device, void *address, const void *from, size_t bytes, size_t *out_first,
                           size_t *out_bytes);
  bool has_zero_pages; /* memory that is mapped once is zero until it is written */

  /* Watches accesses of the calling thread to `bytes` bytes from `address`, which are reserved and not mapped. Between
   * the two calls, an access of the host, also by a system call, does not end the process: it is noted, reads zeros and
   * continues. `end` gets what `begin` returned. It returns the first address that was accessed among the first `used`
   * bytes, exact to *out_bytes, or NULL. What was written is lost. If `begin` returns NULL, it cannot watch, and `end`
   * is not called. May be NULL: the device's memory is not the host's. any */
  void *(*host_watch_begin)(rondo_device *device, void *address, size_t bytes);
  void *(*host_watch_end)(rondo_device *device, void *watch, size_t bytes, size_t used, size_t *out_bytes);

  /* Host memory that copies use directly, aligned to 256, not zeroed. Its pages are made at once (pinned) only if the
   * device needs that. any */
  rondo_status (*host_allocate)(rondo_device *device, size_t bytes, void **out_address);
  void (*host_release)(rondo_device *device, void *address, size_t bytes);

  /* Whether the driver knows an address, also if other code allocated it: memory of a device (*out_is_device), or
   * page-locked host memory. May be NULL: it only knows the device's own. any */
  bool (*knows_address)(rondo_device *device, const void *address, bool *out_is_device);

  /* Whether the address is memory of this device, which its copy_kernel can use, also if other code allocated it. May
   * be NULL if copy_kernel is. any */
  bool (*has_address)(rondo_device *device, const void *address);

  const rondo_capture_ops *capture; /* NULL: captured work does not reach the driver */

  const rondo_semaphore_ops *semaphore; /* NULL: the device has none */

  /* Imports an external semaphore: sets driver_data and driver_release. The descriptor belongs to the driver if that
   * succeeds. NULL: the device has none. any */
  rondo_status (*import_semaphore)(rondo_device *device, rondo_semaphore_type type, int descriptor,
                                   rondo_external_semaphore *semaphore);

  const rondo_guard_ops *guard; /* NULL: the device does not watch lifetimes (info.guarded is false) */
} rondo_device_ops;

/* A queue: work runs in the order of the calls. owner */
typedef struct rondo_queue_ops {
  /* Waits for its work and frees it, but not a stream that it adopted. Returns the last asynchronous failure. The queue
   * is freed in any case. */
  rondo_status (*destroy)(rondo_queue *queue);

  /* Enqueues a KERNEL, HOST, COPY, FILL, MEMORY_OPERATIONS or SEMAPHORE_ with resolved params. Copies what it needs of
   * them. Must not allocate or lock, except for MEMORY_OPERATIONS; may wait while the queue is full. HOT */
  rondo_status (*submit)(rondo_queue *queue, const rondo_node_params *work);

  /* The event completes when the work so far is done. Later waits and queries mean this record. */
  rondo_status (*record)(rondo_queue *queue, rondo_device_event *event);

  /* Work from now on waits for the event's current record. An event that was never recorded is complete. */
  rondo_status (*wait)(rondo_queue *queue, rondo_device_event *event);

  /* Runs the executable after the work so far, and after its earlier launches on any queue of the device. Event-record
   * nodes are recorded by this call; event-wait nodes wait for the current records. Must not allocate or lock once
   * warm. HOT */
  rondo_status (*launch)(rondo_queue *queue, rondo_executable *executable);

  /* The same with inputs at other addresses. The sites of each change get its address for this and later launches;
   * earlier launches keep theirs (U1). Copies and fills with sites are one-dimensional. After a failure the sites are
   * as before. HOT */
  rondo_status (*launch_patched)(rondo_queue *queue, rondo_executable *executable, const rondo_patch_change *changes,
                                 size_t count);

  /* Does in advance, in the order of the queue, what the first launch of the executable would do besides running it.
   * May be NULL: there is nothing to do. */
  rondo_status (*upload)(rondo_queue *queue, rondo_executable *executable);

  /* Waits, and helps with the work. Returns the first asynchronous failure since the last time, and clears it. */
  rondo_status (*synchronize)(rondo_queue *queue);

  /* Waits in the same way, but leaves the failure to the next synchronize. For the library's own waits. Errors:
   * DEVICE_LOST. */
  rondo_status (*await)(rondo_queue *queue);

  /* OK if idle, NOT_READY if not (without an error); else like synchronize, without waiting. */
  rondo_status (*query)(rondo_queue *queue);

  /* The driver's own handle, which queue_create adopts; or NULL. May be NULL. any */
  void *(*native)(rondo_queue *queue);

  /* Fails with WRONG_THREAD on a thread where the native handle means another stream. NULL: it never does. */
  rondo_status (*require_thread)(const rondo_queue *queue);
} rondo_queue_ops;

/* An event. While it is recorded, by a queue or by launching an executable, nothing else is called on it; the rest any.
 */
typedef struct rondo_event_ops {
  /* Frees it at once. Work that waits for its last record still does. */
  void (*destroy)(rondo_device_event *event);
  rondo_status (*query)(rondo_device_event *event);       /* OK or NOT_READY; never recorded = OK */
  rondo_status (*synchronize)(rondo_device_event *event); /* waits, and helps with the work */
  /* Nanoseconds from one completion to the other; negative if the end came first. Called for complete timing events of
   * one device. */
  rondo_status (*elapsed)(const rondo_device_event *begin, const rondo_device_event *end, int64_t *out_ns);
} rondo_event_ops;

/* A lowered graph. owner. `index` counts lowered nodes. Changes hold for later launches only (U1).
 *
 * A driver need not copy names, positions (rondo_node_where) and the arguments of kernels. It may read them later at
 * the addresses that it was given, and launch_patched may write its sites there. They stay valid until the executable
 * is destroyed or gets others. After a successful set_params or set_many, the caller writes the new arguments to the
 * old addresses or calls rebind. */
typedef struct rondo_executable_ops {
  void (*destroy)(rondo_executable *executable); /* does not wait: it is freed after its launches (L2) */
  /* Other parameters of the same kind, which are checked. `event` for event nodes. */
  rondo_status (*set_params)(rondo_executable *executable, size_t index, const rondo_lowered_node *node);
  /* The same for several nodes, in order, with what must be done for the device done once. If it fails, the first
   * *out_done nodes have their new parameters, and the others their old ones. May be NULL. */
  rondo_status (*set_many)(rondo_executable *executable, const rondo_node_change *changes, size_t count,
                           size_t *out_done);
  /* The name, the position and the arguments of a node are now at other addresses, with the values that the executable
   * has. With `node` NULL they do not exist any more, because a change could not be undone; the next change brings
   * others. May be NULL: the driver copies them. */
  void (*rebind)(rondo_executable *executable, size_t index, const rondo_lowered_node *node);
  rondo_status (*set_enabled)(rondo_executable *executable, size_t index, bool enabled);
  /* Waits until all launches so far are done. */
  rondo_status (*synchronize)(rondo_executable *executable);
  /* The event completes when all launches so far are done. It stays valid without the executable. */
  rondo_status (*record)(rondo_executable *executable, rondo_device_event *event);
  uint64_t (*host_bytes)(const rondo_executable *executable);
  uint64_t (*device_bytes)(const rondo_executable *executable);
  /* While it is on, launches measure how long each node runs. Called when no launch is running, unless waiting for the
   * launches failed. Turning it off only frees. */
  rondo_status (*set_timing)(rondo_executable *executable, bool on);
  /* The times of the last launch, which is done: nanoseconds by index, from the beginning of a node to the end of all
   * its blocks. The time that an event-wait node waits does not count. Called while timing is on. */
  void (*times)(const rondo_executable *executable, uint64_t *out_ns);
  /* The driver's handle, which the caller launches by calls of the driver; until the executable is changed or
   * destroyed. Earlier launches have ended when it returns. UNSUPPORTED if a launch needs more than one call of the
   * driver. NULL: the device has no handles of a driver. */
  rondo_status (*native)(rondo_executable *executable, void **out);
} rondo_executable_ops;

/* The beginnings of the drivers' structs. */
struct rondo_queue {
  const rondo_queue_ops *ops; /* of the device's tables, or functions that call those */
  rondo_device *device;
  uint64_t number;  /* exec/ sets it: from 1, of the device's queues. Unlike an address it is never used again */
  bool is_blocking; /* synchronises with the driver's legacy stream */
};
struct rondo_device_event {
  const rondo_event_ops *ops;
  rondo_device *device;
  bool timing;
};
struct rondo_executable {
  const rondo_executable_ops *ops;
  rondo_device *device;
  bool is_handed_out; /* `native` has returned its handle, so that callers may launch it too; set by the driver */
};
struct rondo_physical {
  rondo_device *device;
  size_t bytes;
};

/* A driver, in the registry. */
typedef struct rondo_driver {
  const char *name; /* "cpu": opens "cpu", "cpu:N" and "cpu:<word>" */
  /* `rest` is what follows "cpu:" in the name, or "". `options` is not NULL; its allocator is resolved into
   * `allocator`. Sets ops, allocator, name and index of the struct. NOT_FOUND/UNKNOWN_DEVICE if it does not know the
   * rest. any */
  rondo_status (*open)(const char *rest, const rondo_device_options *options, const rondo_allocator *allocator,
                       rondo_device **out);
  /* The names that can be opened, by index. False after the last. See rondo_device_enumerate. any */
  bool (*enumerate)(size_t index, const char **out_name, const char **out_unavailable);
} rondo_driver;

#endif

/* SPDX-License-Identifier: MIT
 * Graphs as data: nodes, edges and queries. A graph comes from a capture (<rondo/capture.h>) or is built node by node
 * with this header; both give the same graph for the same work. rondo_instantiate (<rondo/exec.h>) creates an
 * executable graph from it.
 *
 * A graph is thread-compatible: one thread at a time may use it, different graphs are independent. Rules and their
 * names (B1 to B12) follow the documentation of the CUDA driver's graphs; docs/rules.md explains each name. If a
 * comment does not say that a pointer may be NULL, the call returns INVALID_ARGUMENT/NULL_ARGUMENT for NULL; this is
 * not repeated below.
 */
#ifndef RONDO_GRAPH_H
#define RONDO_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rondo/allocator.h>
#include <rondo/kernel.h>
#include <rondo/status.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_graph rondo_graph;
typedef struct rondo_event rondo_event;
typedef struct rondo_profile rondo_profile;                       /* <rondo/profile.h> */
typedef struct rondo_external_semaphore rondo_external_semaphore; /* <rondo/external_semaphore.h> */

/* A handle of a node: a plain value, valid in one graph until the node is removed. Handles of another graph or of a
 * removed node are detected and refused. The zero value is no node. */
typedef struct rondo_node {
  uint64_t id;
} rondo_node;

/* The number that messages and dumps print: 0, 1, 2, ... in the order of creation. RONDO_NO_NODE for no node. */
RONDO_API uint32_t rondo_node_number(rondo_node node);

typedef enum rondo_node_kind {
  RONDO_NODE_KERNEL = 1,
  RONDO_NODE_HOST = 2,
  RONDO_NODE_COPY = 3,
  RONDO_NODE_FILL = 4,
  RONDO_NODE_EMPTY = 5,
  RONDO_NODE_CHILD = 6,
  RONDO_NODE_EVENT_RECORD = 7,
  RONDO_NODE_EVENT_WAIT = 8,
  RONDO_NODE_ALLOC = 9,
  RONDO_NODE_FREE = 10,
  RONDO_NODE_FOREIGN = 11, /* captured work of a library that no other kind can represent; see rondo_foreign_node */
  RONDO_NODE_MEMORY_OPERATIONS = 12,
  RONDO_NODE_SEMAPHORE_SIGNAL = 13,
  RONDO_NODE_SEMAPHORE_WAIT = 14
} rondo_node_kind;

/* "kernel", "event_record", ...; "unknown" for another number. Thread-safe. */
RONDO_API const char *rondo_node_kind_name(rondo_node_kind kind);

/* A host function. It runs on a thread of the library, must not call Rondo (IN_CALLBACK), and may return a failure. The
 * next synchronization of the stream returns that failure; later work runs nevertheless. */
typedef rondo_status (*rondo_host_function)(void *user);

typedef struct rondo_kernel_node {
  rondo_kernel *kernel;
  rondo_grid grid;
  const void *const *args; /* addresses of the values, in the order of the parameters; copied by the call */
  size_t arg_count;
  const size_t *arg_bytes; /* maximum number of bytes that the kernel accesses through each pointer, arg_count entries,
                              for verification; 0: not known, or a scalar. NULL: none is known. Copied */
  const rondo_launch_config *config; /* copied; NULL: the default. rondo_graph_get_params returns NULL for the default,
                                        and a block without zeros for another */
} rondo_kernel_node;

typedef struct rondo_host_node {
  rondo_host_function function;
  void *user;
} rondo_host_node;

/* A box of width (bytes) × height (rows) × depth (slices). height and depth of 0 count as 1. A pitch is the bytes from
 * one row to the next, 0 = width, at least width; a slice pitch from one slice to the next, 0 = pitch × height, at
 * least the bytes that a slice covers. A pitch that has no effect (one row, one slice) is ignored. Source and
 * destination may be host or device memory. They must not overlap; this is checked row by row (OUT_OF_RANGE), except
 * for boxes of different pitches that both have more than 65536 rows. If a side begins in an allocation of the device
 * (rondo_malloc, rondo_malloc_async, rondo_host_malloc, an alloc node), it must end in it, otherwise the call returns
 * INVALID_ARGUMENT/OUT_OF_RANGE (B4). A side that begins in recently freed memory is refused too:
 * INVALID_LIFETIME/USE_AFTER_FREE. Other addresses are not checked. */
typedef struct rondo_copy {
  void *dst;
  const void *src;
  size_t width, height, depth;
  size_t dst_pitch, src_pitch;
  size_t dst_slice_pitch, src_slice_pitch;
} rondo_copy;

/* Sets width × height elements of element_bytes (1, 2 or 4) to the low bytes of value. height of 0 counts as 1; pitch
 * in bytes, 0 = width × element_bytes. dst and pitch are multiples of element_bytes. The fill must end in the
 * allocation in which it begins, like the sides of a copy. */
typedef struct rondo_fill {
  void *dst;
  uint32_t value;
  uint32_t element_bytes;
  size_t width, height;
  size_t pitch;
} rondo_fill;

/* Graph memory. `address` is set when the node is created, and does not change (GM-2). */
typedef struct rondo_alloc_node {
  size_t bytes;
  void *address;    /* out */
  const char *name; /* of the allocation, for messages and dumps; copied; NULL = the node's name */
  uint64_t peers;   /* other devices that may access it: rondo_device_peer_bit(a) | rondo_device_peer_bit(b) (GM-17).
                       The graph's own device needs no bit */
} rondo_alloc_node;

/* Work that a library enqueued through the driver while a stream captured, of a kind for which Rondo has no node: the
 * library's host functions and events, copies of arrays, memory that the driver manages (<rondo/capture.h>). Only
 * captures create such nodes. They run like others; which memory they access is not known. A bound node cannot be
 * created a second time, so its graph runs as the driver captured it: it can be instantiated once, and it cannot be
 * cloned, become a child, be used for an update, or lose nodes and edges (UNSUPPORTED/FOREIGN_WORK; the message names
 * the node and the fix). */
typedef struct rondo_foreign_node {
  const char *what; /* "host function", "memory allocation", ...; never NULL */
  uint64_t bytes;   /* of a memory allocation; else 0 */
  void *address;    /* of memory that is allocated or freed; else NULL */
  bool is_bound;
  bool is_opaque; /* it may use memory at addresses that nothing here shows */
  void *user;     /* the argument of a host function; else NULL */
} rondo_foreign_node;

/* The numbers are CUDA's. */
typedef enum rondo_memory_operation_kind {
  RONDO_OPERATION_WAIT_32 = 1, /* later work waits until the word at `address` fulfils the condition */
  RONDO_OPERATION_WRITE_32 = 2,
  RONDO_OPERATION_FLUSH = 3, /* makes remote writes visible that have reached the device (GPUDirect RDMA) */
  RONDO_OPERATION_WAIT_64 = 4,
  RONDO_OPERATION_WRITE_64 = 5
} rondo_memory_operation_kind;

typedef enum rondo_wait_condition {
  RONDO_WAIT_GREATER_OR_EQUAL = 0, /* (int32_t)(word - value) >= 0, or int64_t: wrapping around does not matter */
  RONDO_WAIT_EQUAL = 1,
  RONDO_WAIT_AND = 2, /* (word & value) != 0 */
  RONDO_WAIT_NOR = 3  /* ~(word | value) != 0 */
} rondo_wait_condition;

/* An operation on a word of 4 or 8 bytes in memory of the device, in host memory that the device can access, or, on
 * CUDA, in memory of another process or device that is mapped. */
typedef struct rondo_memory_operation {
  rondo_memory_operation_kind kind;
  rondo_wait_condition condition; /* of a wait; else 0 */
  void *address;                  /* aligned to its size; NULL for FLUSH */
  uint64_t value;                 /* below 2^32 for a word of 4 bytes; 0 for FLUSH */
} rondo_memory_operation;

#define RONDO_MAX_MEMORY_OPERATIONS 128

/* Memory operations, which run one after another. What comes before a write is visible to whoever sees the word, on any
 * device and on the host (a write with release order). What comes after a wait sees what was written before the write
 * that ended the wait. A wait takes no thread and no processor of a GPU. Without a write that fulfils its condition, it
 * never ends. On CUDA, streams share hardware queues (CUDA_DEVICE_MAX_CONNECTIONS, 8 by default), so with many streams
 * a write that ends a wait should be enqueued before it. Other threads, processes, devices and unordered nodes may
 * access the words meanwhile: that is what they are for. So verification finds no races of operations, only accesses
 * outside the lifetime or the end of an allocation. */
typedef struct rondo_memory_operations_node {
  const rondo_memory_operation *operations; /* copied */
  size_t count;                             /* 1 to RONDO_MAX_MEMORY_OPERATIONS */
} rondo_memory_operations_node;

/* A semaphore, and the value of a timeline to which it is signalled or for which is waited. A binary semaphore has the
 * value 0. */
typedef struct rondo_semaphore_value {
  rondo_external_semaphore *semaphore; /* a node keeps it, so it may be destroyed before the graph */
  uint64_t value;
} rondo_semaphore_value;

#define RONDO_MAX_SEMAPHORES 64

typedef struct rondo_semaphores_node {
  const rondo_semaphore_value *values; /* copied */
  size_t count;                        /* 1 to RONDO_MAX_SEMAPHORES */
} rondo_semaphores_node;

/* A node runs on `device`: the graph's, or another device of the same kind (both CUDA, both CPU, or both CPU with
 * checks). NULL stands for the device of the kernel, event, semaphores or child graph, and for copies, fills and memory
 * operations for the graph's. A device that contradicts these is refused. Nodes of the kinds HOST, EMPTY, ALLOC and
 * FREE have the graph's device, because host functions run on no device and graph memory belongs to the graph's.
 *
 * A graph is launched on streams of its own device. Edges order nodes of all its devices. Later work on a stream of
 * another device is not ordered after the launch: record an event on the stream of the launch and let the other stream
 * wait for it (rondo_stream_wait_event), as in CUDA. A node may access memory of its own device, and memory of others
 * that grant access (rondo_alloc_node.peers, rondo_pool_set_access, rondo_memory_set_access); without it, instantiating
 * returns INVALID_GRAPH/NO_ACCESS. A graph, and its execs, keep all its devices open. */
typedef struct rondo_node_params {
  rondo_node_kind kind;
  const char *name;     /* optional, copied; default: the kernel's name for a kernel node, the allocation's name for an
                           alloc node */
  rondo_device *device; /* see above; rondo_graph_get_params returns NULL for the graph's */
  union {
    rondo_kernel_node kernel;
    rondo_host_node host;
    rondo_copy copy;
    rondo_fill fill;
    rondo_graph *child; /* cloned when the node is created (B9). One of another device has no graph memory and draws no
                           random numbers */
    rondo_event *event; /* record and wait; the graph keeps it, so it may be destroyed before the graph (B12) */
    rondo_alloc_node alloc;
    void *free_address;
    rondo_foreign_node foreign; /* read only */
    rondo_memory_operations_node memory_operations;
    rondo_semaphores_node semaphores; /* signal and wait */
  } as;
} rondo_node_params;

typedef struct rondo_graph_options {
  uint32_t struct_size;
  uint32_t reserved;
  const rondo_allocator *allocator; /* used when device is NULL */
  const char *name;                 /* for messages and dumps; copied; may be NULL */
  rondo_profile *profile; /* planned addresses for the alloc nodes, matched in the order of creation, with their sizes.
                             A departure from the profile (another size, an additional node, an order in which the
                             planned bytes are not free) is detected when the node is created; this node and all later
                             ones get addresses as without a profile. Does not apply to clones and children, which have
                             their own addresses, nor on a device with guard pages (rondo_device_info.guarded). May be
                             NULL */
  bool relocate;          /* the graph, and every graph that it becomes a child of, is only instantiated with relocate
                             (rondo_instantiate_options): alloc nodes share no addresses, so any edge and node may be
                             removed. Not together with a profile. Clones inherit it */
} rondo_graph_options;
#define RONDO_GRAPH_OPTIONS_INIT .struct_size = sizeof(rondo_graph_options)

/* Creates an empty graph for `device`. With device = NULL the graph is only data, for dumps and diffs: its kernels
 * belong to no device, alloc and free nodes cannot be added to it (rondo_graph_from_json may create some), and it
 * cannot be instantiated. options may be NULL. The caller destroys the graph.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_create(rondo_device *device, const rondo_graph_options *options,
                                                         rondo_graph **out_graph);

/* Destroys a graph. Its execs live on, and so does memory that its alloc nodes have allocated (GM-4). A graph that
 * belongs to a child node, or into which a stream captures, is not destroyed (INVALID_STATE). NULL is fine. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_destroy(rondo_graph *graph);

/* Adds a node that depends on `count` nodes of the graph. Everything is checked before anything changes (B2).
 * dependencies may be NULL if count is 0. A graph may become a child of itself: the child is the graph as it was before
 * the call (B9). Kinds ALLOC and FREE need a graph with a device; for ALLOC, params->as.alloc.address is set, so params
 * is not const. Errors: INVALID_ARGUMENT with NULL_ARGUMENT (a NULL address, function, event, kernel or child),
 * NODE_KIND (no kind, or FOREIGN), UNKNOWN_NODE (a node of another graph, or a removed one), DUPLICATE_EDGE (twice in
 * the list), ARGUMENT_COUNT, BAD_SIZE (B4: zero width, pitch below width, element size, a bad grid, bytes of a scalar
 * argument, sizes that do not fit the address space), OUT_OF_RANGE (a copy onto itself), OTHER_DEVICE (a device of
 * another kind than the graph's, or one that the node cannot have; see rondo_node_params), FOREIGN_ADDRESS,
 * DOUBLE_FREE (a second free node of an allocation in one graph; or one in its own graph and one in another, unless its
 * own graph was cloned: M6); INVALID_LIFETIME/USE_AFTER_FREE (see rondo_copy); LIMIT_EXCEEDED (child graphs more than
 * 16 deep, or 2^32 nodes); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                                      rondo_node_params *params, rondo_node *out_node);

/* Shorter forms of rondo_graph_add for each kind. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_kernel(rondo_graph *graph, const rondo_node *dependencies,
                                                             size_t count, rondo_kernel *kernel, rondo_grid grid,
                                                             const void *const *args, size_t arg_count,
                                                             rondo_node *out_node);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_host(rondo_graph *graph, const rondo_node *dependencies,
                                                           size_t count, rondo_host_function function, void *user,
                                                           rondo_node *out_node);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_copy(rondo_graph *graph, const rondo_node *dependencies,
                                                           size_t count, const rondo_copy *copy, rondo_node *out_node);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_fill(rondo_graph *graph, const rondo_node *dependencies,
                                                           size_t count, const rondo_fill *fill, rondo_node *out_node);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_empty(rondo_graph *graph, const rondo_node *dependencies,
                                                            size_t count, rondo_node *out_node);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_child(rondo_graph *graph, const rondo_node *dependencies,
                                                            size_t count, rondo_graph *child, rondo_node *out_node);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_event_record(rondo_graph *graph, const rondo_node *dependencies,
                                                                   size_t count, rondo_event *event,
                                                                   rondo_node *out_node);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_event_wait(rondo_graph *graph, const rondo_node *dependencies,
                                                                 size_t count, rondo_event *event,
                                                                 rondo_node *out_node);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_alloc(rondo_graph *graph, const rondo_node *dependencies,
                                                            size_t count, size_t bytes, const char *name,
                                                            void **out_address, rondo_node *out_node);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_free(rondo_graph *graph, const rondo_node *dependencies,
                                                           size_t count, void *address, rondo_node *out_node);

/* Errors besides those of rondo_graph_add, which eager operations have too: INVALID_ARGUMENT with BAD_SIZE (no or too
 * many operations, an address that is not aligned, a value that does not fit the word), BAD_OPTIONS (no such kind or
 * condition; a condition, address or value that the kind does not have), NULL_ARGUMENT, OUT_OF_RANGE (a word that is
 * not in the allocation in which it begins); UNSUPPORTED/NOT_SUPPORTED (the GPU has no 64-bit operations, no NOR or no
 * FLUSH). CPU devices have all; a FLUSH has nothing to do there. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_memory_operations(rondo_graph *graph,
                                                                        const rondo_node *dependencies, size_t count,
                                                                        const rondo_memory_operation *operations,
                                                                        size_t operation_count, rondo_node *out_node);

/* Nodes that signal external semaphores or wait for them. Errors besides those of rondo_graph_add, which eager calls
 * have too: INVALID_ARGUMENT with BAD_SIZE (no or too many semaphores), NULL_ARGUMENT, OTHER_DEVICE (a semaphore of
 * another device), BAD_OPTIONS (a binary semaphore with a value). */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_semaphore_signal(rondo_graph *graph,
                                                                       const rondo_node *dependencies, size_t count,
                                                                       const rondo_semaphore_value *values,
                                                                       size_t value_count, rondo_node *out_node);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_semaphore_wait(rondo_graph *graph, const rondo_node *dependencies,
                                                                     size_t count, const rondo_semaphore_value *values,
                                                                     size_t value_count, rondo_node *out_node);

/* Removes a node and its edges. Errors: UNKNOWN_NODE; INVALID_STATE/EDGE_IN_USE if a reuse of addresses relies on the
 * node, naming the pair of nodes; CAPTURING_INTO; OUT_OF_MEMORY, only if clones or execs of the graph still share its
 * nodes. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_remove(rondo_graph *graph, rondo_node node);

/* Adds edges from[i] -> to[i], all or none. Cycles are not detected here but when the graph is instantiated or sorted
 * (B6). Errors: UNKNOWN_NODE, SELF_EDGE, DUPLICATE_EDGE (the edge exists already, or is twice in the lists);
 * OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_edges(rondo_graph *graph, const rondo_node *from,
                                                            const rondo_node *to, size_t count);

/* Removes edges; all or none. Errors: UNKNOWN_NODE, MISSING_EDGE, EDGE_IN_USE (not with
 * rondo_graph_options.relocate), OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_remove_edges(rondo_graph *graph, const rondo_node *from,
                                                               const rondo_node *to, size_t count);

/* The type of an edge, and when its first node lets the second begin (its port). The numbers are CUDA's. */
typedef enum rondo_edge_type {
  RONDO_EDGE_FULL = 0,        /* the second node begins when the first has ended */
  RONDO_EDGE_PROGRAMMATIC = 1 /* between kernels: programmatic dependent launch */
} rondo_edge_type;

typedef enum rondo_edge_port {
  RONDO_PORT_END = 0,          /* for FULL */
  RONDO_PORT_PROGRAMMATIC = 1, /* all blocks have called cudaTriggerProgrammaticLaunchCompletion, or have ended */
  RONDO_PORT_LAUNCH_ORDER = 2  /* all blocks have begun */
} rondo_edge_port;

/* Zeros are a full edge. */
typedef struct rondo_edge_data {
  uint8_t from_port;   /* rondo_edge_port */
  uint8_t to_port;     /* 0 */
  uint8_t type;        /* rondo_edge_type */
  uint8_t reserved[5]; /* zeros */
} rondo_edge_data;

/* rondo_graph_add_edges and rondo_graph_remove_edges for edges with data[i], all or none; data = NULL: full ones. A
 * pair of nodes has one edge, full or programmatic.
 *
 * A programmatic edge is a promise: the second kernel calls cudaGridDependencySynchronize (griddepcontrol.wait in PTX)
 * before it accesses memory that work before it accesses. Verification and the plan of memory that moves rely on it,
 * and take the edge for a full one. On CPU devices it is one. On CUDA devices, kernels may overlap. It becomes a full
 * edge where another full edge, for example through an empty node, orders the two kernels, and while nodes are timed.
 *
 * Errors: as there; INVALID_ARGUMENT with BAD_OPTIONS (another type; a port that the type does not have: PROGRAMMATIC
 * has from_port PROGRAMMATIC or LAUNCH_ORDER, and to_port 0; reserved bytes), NODE_KIND (a programmatic edge of a node
 * that is not a kernel); MISSING_EDGE also if an edge has other data. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_edges_with(rondo_graph *graph, const rondo_node *from,
                                                                 const rondo_node *to, const rondo_edge_data *data,
                                                                 size_t count);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_remove_edges_with(rondo_graph *graph, const rondo_node *from,
                                                                    const rondo_node *to, const rondo_edge_data *data,
                                                                    size_t count);

/* Returns a node's parameters as they were given, with defaults in place of zeros: no grid, height, depth or pitch is
 * 0, and names are not NULL. Pointers in *out_params belong to the node and are valid until it changes. `child` of a
 * child node is the node's own graph; it may be edited until the graph is instantiated (B9). Errors: UNKNOWN_NODE;
 * OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_params(const rondo_graph *graph, rondo_node node,
                                                             rondo_node_params *out_params);

/* Replaces the parameters of a node, including its name; the kind must be the same. *params may come from
 * rondo_graph_get_params. Errors as rondo_graph_add; NODE_KIND (another kind); UNSUPPORTED for kinds CHILD (edit its
 * graph), ALLOC and FREE. After an error the node is unchanged. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_set_params(rondo_graph *graph, rondo_node node,
                                                             const rondo_node_params *params);

/* Replaces one argument of a kernel node, counted from 0. `value` is the address of its new value, which is copied; the
 * other parameters stay, including the bytes that the kernel accesses (arg_bytes). Errors as rondo_graph_set_params;
 * INVALID_ARGUMENT with NODE_KIND (not a kernel node), ARGUMENT_COUNT (no such argument). */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_set_argument(rondo_graph *graph, rondo_node node, size_t number,
                                                               const void *value);

/* Queries fill at most *inout_count entries and set *inout_count to the total number. A NULL array asks for the number
 * only. Entries past the last are set to no node (B7). Nodes are ordered by number, edges by `from`, then `to`; the two
 * arrays of edges are both NULL or both not. Errors: UNKNOWN_NODE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_nodes(const rondo_graph *graph, rondo_node *nodes,
                                                        size_t *inout_count);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_roots(const rondo_graph *graph, rondo_node *nodes,
                                                        size_t *inout_count);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_edges(const rondo_graph *graph, rondo_node *from, rondo_node *to,
                                                        size_t *inout_count);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_dependencies(const rondo_graph *graph, rondo_node node,
                                                               rondo_node *nodes, size_t *inout_count);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_dependents(const rondo_graph *graph, rondo_node node,
                                                             rondo_node *nodes, size_t *inout_count);

/* Edges by which a kernel may begin before another kernel has ended (programmatic dependent launch in CUDA), which
 * captures and rondo_graph_add_edges_with create, and which the other queries omit. Those of a captured library do not
 * order the two kernels, because nothing is known about them: neither verification nor memory planning relies on such
 * an edge, and work that was captured after the later kernel depends on both. They are ordered by `to`, then `from`;
 * arrays as in rondo_graph_edges; `data` may be NULL. Errors: as there. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_programmatic_edges(const rondo_graph *graph, rondo_node *from,
                                                                     rondo_node *to, rondo_edge_data *data,
                                                                     size_t *inout_count);

/* Nodes in topological order; if there is a choice, the lowest number comes first (Kahn 1962). Nodes of child graphs
 * are not included. The array as in queries. Takes O((nodes + edges) log nodes). Errors: INVALID_GRAPH/CYCLE, naming a
 * node of the cycle and, if the cycle is short, all its nodes (B6); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_sort(const rondo_graph *graph, rondo_node *nodes,
                                                       size_t *inout_count);

/* Creates a deep copy with its own child graphs, for the same device. Nodes keep their numbers. Alloc nodes keep their
 * addresses: a graph and its clones share them. The caller destroys the clone. Errors: OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_clone(const rondo_graph *graph, rondo_graph **out_clone);

/* Finds the node of `clone` that was created from `node` of the original graph, even if that graph or its node no
 * longer exists. A child node's graph is a clone of the graph that was passed. Errors: UNKNOWN_NODE if `clone` is not a
 * clone of that graph, or the clone's node was removed. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_find_in_clone(const rondo_graph *clone, rondo_node node,
                                                                rondo_node *out_node);

/* A hash of the topology, kinds, kernels by name and parameters, grids, launch configurations, sizes (including those
 * of kernel arguments), fill values and names of nodes, and of the numbers of devices other than the graph's.
 * Addresses, argument values and the graph's name do not count. So the same work captured twice, in this or another
 * process, has the same fingerprint. Two graphs that differ in one of these have different fingerprints, except by
 * coincidence. Errors: CYCLE, OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_fingerprint(const rondo_graph *graph, uint64_t *out_fingerprint);

typedef enum rondo_difference_kind {
  RONDO_DIFFERENCE_NODE_MISSING = 1, /* only in a */
  RONDO_DIFFERENCE_NODE_EXTRA = 2,   /* only in b */
  RONDO_DIFFERENCE_KIND = 3,
  RONDO_DIFFERENCE_EDGES = 4,  /* other dependencies */
  RONDO_DIFFERENCE_KERNEL = 5, /* another kernel, grid or launch configuration */
  RONDO_DIFFERENCE_PARAMS = 6  /* other argument values, addresses, sizes, functions, events, names, devices, or child
                                  graphs */
} rondo_difference_kind;

typedef struct rondo_difference {
  rondo_difference_kind kind;
  rondo_node a, b; /* the corresponding nodes; the zero value for a node that is missing */
} rondo_difference;

/* Compares two graphs. Nodes correspond in topological order (as in rondo_graph_sort), as in an update; numbers and the
 * graphs' names do not count. Each pair has at most one difference in itself and one in its edges. Child graphs are
 * compared in the same way. `ignore_addresses` ignores pointers: pointer arguments, addresses of copies and fills,
 * events, addresses of alloc and free nodes, and the user pointer of a host function. Kernels are then equal if their
 * names, parameters and block_threads are, so the same work captured twice has no difference. The array as in queries:
 * *inout_count becomes the number of differences. Errors: CYCLE, OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_diff(const rondo_graph *a, const rondo_graph *b,
                                                       bool ignore_addresses, rondo_difference *differences,
                                                       size_t *inout_count);

/* Text dumps in a stable order (GX-7); graphs with a cycle can be dumped too. *out_text is freed with rondo_text_free
 * (<rondo/allocator.h>). with_addresses = false omits pointers, so that two runs give the same text. DOT is for
 * Graphviz: a shape for each kind, a cluster for each child graph; names longer than 239 bytes are truncated. JSON is
 * the format that rondo_graph_from_json reads:
 *   {"rondo_graph":1, "name":"step",
 *    "kernels":[{"name":"saxpy", "block_threads":256,
 *                "parameters":[{"access":"scalar", "bytes":4, "alignment":4}, {"access":"read", ...}]}],
 *    "nodes":[{"number":0, "kind":"kernel", "name":"saxpy", "kernel":0, "grid":[4,1,1],
 *              "arguments":["0000803f", "0x7f00"], "dependencies":[]}, ...]}
 * "kernel" is an index in "kernels". A scalar argument is its bytes in memory order; a pointer is its address or null.
 * "argument_bytes", a list of numbers, may follow "arguments", and "config", the fields of rondo_launch_config that are
 * not zero: dimensions as [x,y,z], flags as true. A node of another device than the graph's has the number of that
 * device (N of "cuda:N") as "device", after "name". The other kinds have these fields in place of "kernel"
 * to "arguments": host "function", "user"; copy the fields of rondo_copy and fill those of rondo_fill, with the numbers
 * that rondo_graph_get_params returns; child "child":{"name", "nodes"}; event_record and event_wait "event"; alloc
 * "bytes", "allocation" (its name), "peers" (numbers of devices, if any), "address"; free "address"; foreign "what",
 * "bytes", "bound" (true or false), "address"; memory_operations "operations", a list of {"kind", "condition",
 * "address", "value"}, where "kind" is "wait_32" and so on, and only a wait has a "condition": ">=", "==", "&" or
 * "nor"; semaphore_signal and semaphore_wait "semaphores", a list of {"name", "value"}. "programmatic", a list of
 * [from, from port, to port, type], may follow "dependencies"; a fifth number, 1, says that the edge orders the
 * kernels. Fields that are addresses are strings, and may be absent. "symbols", a list of
 * {"name", "bytes"}, may follow the "parameters" of a kernel. An address in a symbol is {"kernel":0, "symbol":"table",
 * "offset":16} in place of a string, and always there. Bytes of a name that are not UTF-8 are written as U+FFFD.
 * Errors: OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_to_dot(const rondo_graph *graph, bool with_addresses,
                                                         char **out_text);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_to_json(const rondo_graph *graph, bool with_addresses,
                                                          char **out_text);

/* Reads what rondo_graph_to_json wrote. The result is a graph that is only data: its kernels have names, grids and
 * parameters but no code. Written again (without addresses) it gives the same text. Addresses of memory are kept as
 * numbers; functions, their user pointers and events become NULL, and semaphores names. `bytes` need not end in NUL.
 * The caller destroys the graph. Thread-safe. Errors: INVALID_DATA with line and column, or with the node and field;
 * INVALID_GRAPH (edges to nodes that do not exist, to the node itself, or given twice); LIMIT_EXCEEDED (more than 2^20
 * nodes in all, 2^16 unused numbers, or child graphs more than 16 deep); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_from_json(const char *bytes, size_t count, rondo_graph **out_graph);

RONDO_EXTERN_C_END

#endif

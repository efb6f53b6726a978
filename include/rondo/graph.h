/* SPDX-License-Identifier: MIT
 * Graphs as data: nodes, edges, and what can be asked of them. A graph comes from a capture (<rondo/capture.h>) or is
 * built here node by node; both give the same graph for the same work. rondo_instantiate (<rondo/exec.h>) makes an
 * executable of it.
 *
 * A graph is thread-compatible: one thread at a time may use it, different graphs are independent. Rules and their
 * names (B1 to B12) follow the CUDA driver's graphs, where they are documented; docs/rules.md says what each name in
 * these headers stands for. Every call that takes a pointer which its comment does not allow to be NULL returns
 * INVALID_ARGUMENT/NULL_ARGUMENT for NULL; this is not repeated below.
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
typedef struct rondo_profile rondo_profile; /* <rondo/profile.h> */

/* A node's name tag: plain value, valid in one graph until the node is removed; a tag of another graph or of a removed
 * node is found and refused. The zero value is no node. */
typedef struct rondo_node {
  uint64_t id;
} rondo_node;

/* The number that messages and dumps print: 0, 1, 2, ... in the order of making. RONDO_NO_NODE for no node. */
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
  RONDO_NODE_FOREIGN = 11 /* what a library left in a capture and no other kind can say; see rondo_foreign_node */
} rondo_node_kind;

/* "kernel", "event_record", ...; "unknown" for another number. Thread-safe. */
RONDO_API const char *rondo_node_kind_name(rondo_node_kind kind);

/* A host function. Runs on a thread of the library, must not call Rondo (IN_CALLBACK), and may return a failure, which
 * sticks to the stream and comes out at its next synchronisation; later work runs all the same. */
typedef rondo_status (*rondo_host_function)(void *user);

typedef struct rondo_kernel_node {
  rondo_kernel *kernel;
  rondo_grid grid;
  const void *const *args; /* addresses of the values, in the order of the parameters; copied when the node is made */
  size_t arg_count;
  const size_t *arg_bytes; /* how many bytes behind each pointer the kernel may access at most, arg_count of them, for
                              verification; 0: not known, and for scalars. NULL: none is known. Copied */
} rondo_kernel_node;

typedef struct rondo_host_node {
  rondo_host_function function;
  void *user;
} rondo_host_node;

/* A box of width (bytes) × height (rows) × depth (slices). height and depth of 0 count as 1. A pitch is the bytes from
 * one row to the next, 0 = width, at least width; a slice pitch from one slice to the next, 0 = pitch × height, at
 * least what a slice covers. A pitch that nothing depends on (one row, one slice) is not looked at. Source and
 * destination may be host or device memory. They must have no byte in common; that is checked row by row
 * (OUT_OF_RANGE), but not for boxes of different pitches that both have more than 65536 rows. A side that begins in an
 * allocation of the device's (rondo_malloc, rondo_malloc_async, rondo_host_malloc, an alloc node) must end in it:
 * INVALID_ARGUMENT/OUT_OF_RANGE otherwise (B4). One that begins in memory that was freed lately is refused too:
 * INVALID_LIFETIME/USE_AFTER_FREE. Other addresses are taken on trust. */
typedef struct rondo_copy {
  void *dst;
  const void *src;
  size_t width, height, depth;
  size_t dst_pitch, src_pitch;
  size_t dst_slice_pitch, src_slice_pitch;
} rondo_copy;

/* Sets width × height elements of element_bytes (1, 2 or 4) to the low bytes of value. height of 0 counts as 1; pitch
 * in bytes, 0 = width × element_bytes. dst and pitch are multiples of element_bytes. Must end in the allocation it
 * begins in, as a copy's sides. */
typedef struct rondo_fill {
  void *dst;
  uint32_t value;
  uint32_t element_bytes;
  size_t width, height;
  size_t pitch;
} rondo_fill;

/* Graph memory. `address` is set when the node is made and stays (GM-2). */
typedef struct rondo_alloc_node {
  size_t bytes;
  void *address;    /* out */
  const char *name; /* the allocation's, for messages and dumps; copied; NULL = the node's */
  uint64_t peers;   /* devices that may access it beside the graph's own, which needs no entry:
                       rondo_device_peer_bit(a) | rondo_device_peer_bit(b) (GM-17) */
} rondo_alloc_node;

/* Work that a library gave to the driver while a stream captured, of a kind that Rondo has no node for: host functions
 * and events of its own, copies of arrays, memory that the driver manages (<rondo/capture.h>). Only captures make such
 * nodes; they run like others, and what they access is not known. A bound one cannot be made a second time, so that
 * its graph runs as the driver captured it: it can be instantiated once, and not be cloned, become a child, be updated
 * from or lose nodes and edges (UNSUPPORTED/FOREIGN_WORK, which names the node and what helps). */
typedef struct rondo_foreign_node {
  const char *what; /* "host function", "memory allocation", ...; never NULL */
  uint64_t bytes;   /* of a memory allocation; else 0 */
  void *address;    /* of memory that is allocated or freed; else NULL */
  bool is_bound;
} rondo_foreign_node;

typedef struct rondo_node_params {
  rondo_node_kind kind;
  const char *name; /* optional, copied; a kernel node's is its kernel's and an alloc node's its allocation's unless
                       given */
  union {
    rondo_kernel_node kernel;
    rondo_host_node host;
    rondo_copy copy;
    rondo_fill fill;
    rondo_graph *child; /* cloned when the node is made (B9); for the same device */
    rondo_event *event; /* record and wait; may be destroyed before the graph, which keeps it (B12) */
    rondo_alloc_node alloc;
    void *free_address;
    rondo_foreign_node foreign; /* read only */
  } as;
} rondo_node_params;

typedef struct rondo_graph_options {
  uint32_t struct_size;
  uint32_t reserved;
  const rondo_allocator *allocator; /* used when device is NULL */
  const char *name;                 /* for messages and dumps; copied; may be NULL */
  rondo_profile *profile; /* planned addresses for the alloc nodes, matched in the order of making, with their sizes. A
                             departure (another size, one node more, an order in which the planned bytes are not free)
                             is found when the node is made: it and all later ones are placed as without a profile. Not
                             for clones and children, which have or get addresses of their own, and not on a device
                             that guards its memory (rondo_device_info.guarded). May be NULL */
  bool relocate;          /* the graph is only ever instantiated with relocate (rondo_instantiate_options), and so is
                             what it is a child of: alloc nodes share no addresses, so that any edge and node may be
                             removed. Not together with a profile. Clones inherit it */
} rondo_graph_options;
#define RONDO_GRAPH_OPTIONS_INIT .struct_size = sizeof(rondo_graph_options)

/* An empty graph for `device`; NULL makes one that is data only (dumps, diffs; it takes kernels of no device, alloc and
 * free nodes cannot be added to it, though rondo_graph_from_json may give it some, and it cannot be instantiated).
 * options may be NULL. The caller destroys it.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_create(rondo_device *device, const rondo_graph_options *options,
                                                         rondo_graph **out_graph);

/* Execs made from it live on, and so does memory that its alloc nodes handed out (GM-4). A graph that belongs to a
 * child node, or into which a stream captures, is not destroyed (INVALID_STATE). NULL is fine. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_destroy(rondo_graph *graph);

/* Adds a node that depends on `count` nodes of the graph. All is checked before anything changes (B2). dependencies may
 * be NULL when count is 0. A graph may become a child of itself: the child is what it was before the call (B9).
 * Kinds ALLOC and FREE need a graph with a device; for ALLOC params->as.alloc.address is set (so params is not const).
 * Errors: INVALID_ARGUMENT with NULL_ARGUMENT (a NULL address, function, event, kernel or child), NODE_KIND (no kind,
 * or FOREIGN),
 * UNKNOWN_NODE (a node of another graph, or a removed one), DUPLICATE_EDGE (twice in the list), ARGUMENT_COUNT,
 * BAD_SIZE (B4: zero width, pitch below width, element size, a bad grid, bytes of a scalar argument, sizes that do not
 * fit the address space), OUT_OF_RANGE (a copy onto itself), OTHER_DEVICE, FOREIGN_ADDRESS, DOUBLE_FREE (a second free
 * node of an allocation in a graph; one in its own graph beside one in another, unless the own one was cloned: M6);
 * INVALID_LIFETIME/USE_AFTER_FREE (see rondo_copy); LIMIT_EXCEEDED (child graphs more than 16 deep, or 2^32 nodes);
 * OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                                      rondo_node_params *params, rondo_node *out_node);

/* Short forms of rondo_graph_add. */
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

/* Removes a node and its edges. Errors: UNKNOWN_NODE; INVALID_STATE/EDGE_IN_USE for nodes that an address reuse relies
 * on, naming the pair; CAPTURING_INTO. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_remove(rondo_graph *graph, rondo_node node);

/* Adds edges from[i] -> to[i]. A cycle is not looked for here but when the graph is instantiated or sorted (B6). All or
 * none. Errors: UNKNOWN_NODE, SELF_EDGE, DUPLICATE_EDGE (there already, or twice in the lists); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_edges(rondo_graph *graph, const rondo_node *from,
                                                            const rondo_node *to, size_t count);

/* Removes edges; all or none. Errors: UNKNOWN_NODE, MISSING_EDGE, EDGE_IN_USE (not with
 * rondo_graph_options.relocate). */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_remove_edges(rondo_graph *graph, const rondo_node *from,
                                                               const rondo_node *to, size_t count);

/* Reads a node's parameters back as they were given, with the defaults in the place of zeros: no grid, height, depth or
 * pitch is 0, names are not NULL. Pointers in *out_params belong to the node and are valid until it changes; for a
 * child node `child` is the node's own graph, whose edits count until instantiation (B9). Errors: UNKNOWN_NODE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_params(const rondo_graph *graph, rondo_node node,
                                                             rondo_node_params *out_params);

/* Replaces the parameters of a node, its name too; the kind must be the same. *params may come from
 * rondo_graph_get_params. Errors as rondo_graph_add, and the node is then as before; NODE_KIND (another kind);
 * UNSUPPORTED for kinds CHILD (edit its graph), ALLOC and FREE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_set_params(rondo_graph *graph, rondo_node node,
                                                             const rondo_node_params *params);

/* Queries fill at most *inout_count entries and set *inout_count to how many there are; a NULL array asks for the
 * number only; entries past the last are set to no node (B7). Order: by number; for edges by `from`, then `to`, whose
 * arrays are both NULL or neither. Errors: UNKNOWN_NODE. */
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

/* Edges by which a library's kernel may begin before another one has ended (programmatic dependent launch, in CUDA).
 * Captures alone make them, and execs of the graph keep them. They give no order between the two: neither verification
 * nor the placing of memory relies on one, and the other queries leave them out; what was captured behind the later
 * kernel depends on both. Order and arrays as for rondo_graph_edges. Errors: as there. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_programmatic_edges(const rondo_graph *graph, rondo_node *from,
                                                                     rondo_node *to, size_t *inout_count);

/* Nodes in an order in which each comes after all it depends on; among those that are free to choose, the lowest number
 * first (Kahn 1962). Child graphs are not looked into. The array as in queries. Work is O((nodes + edges) log nodes).
 * Errors: INVALID_GRAPH/CYCLE, naming a node on a cycle and, of a short one, all its nodes (B6); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_sort(const rondo_graph *graph, rondo_node *nodes,
                                                       size_t *inout_count);

/* A deep copy with its own child graphs, for the same device; nodes keep their numbers. Alloc nodes keep their
 * addresses: a graph and its clones share them. The caller destroys it. Errors: OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_clone(const rondo_graph *graph, rondo_graph **out_clone);

/* The node of `clone` that was made from `node` of the graph it was cloned from, also when that graph or its node is
 * gone meanwhile. A child node's own graph is a clone of the graph that was given. Errors: UNKNOWN_NODE when the graphs
 * are not related so, or the clone's node was removed. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_find_in_clone(const rondo_graph *clone, rondo_node node,
                                                                rondo_node *out_node);

/* A hash of topology, kinds, kernels by name and parameters, grids, sizes (also those behind the arguments of kernels),
 * fill values and names of nodes, without addresses, argument values and the graph's name: equal for the same work
 * captured twice, in this or another process. Two graphs that differ in one of these have different fingerprints but by
 * accident. Errors: CYCLE, OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_fingerprint(const rondo_graph *graph, uint64_t *out_fingerprint);

typedef enum rondo_difference_kind {
  RONDO_DIFFERENCE_NODE_MISSING = 1, /* only in a */
  RONDO_DIFFERENCE_NODE_EXTRA = 2,   /* only in b */
  RONDO_DIFFERENCE_KIND = 3,
  RONDO_DIFFERENCE_EDGES = 4,  /* other dependencies */
  RONDO_DIFFERENCE_KERNEL = 5, /* another kernel or grid */
  RONDO_DIFFERENCE_PARAMS = 6  /* other argument values, addresses, sizes, functions, events, names, or child graphs */
} rondo_difference_kind;

typedef struct rondo_difference {
  rondo_difference_kind kind;
  rondo_node a, b; /* the paired nodes; no node where there is none */
} rondo_difference;

/* Compares two graphs. Nodes are paired in topological order (as rondo_graph_sort), which is how an update pairs them;
 * numbers and the graphs' own names do not matter. A pair has at most one difference in itself, and one in its edges;
 * child graphs are compared the same way. `ignore_addresses` leaves out pointers (arguments of pointer parameters, copy
 * and fill addresses, events, alloc and free addresses, a host function's user), and kernels are then the same when
 * their names, parameters and block_threads are, so that the same work captured twice gives no difference. The array
 * as in queries: *inout_count becomes the number of differences. Errors: CYCLE, OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_diff(const rondo_graph *a, const rondo_graph *b,
                                                       bool ignore_addresses, rondo_difference *differences,
                                                       size_t *inout_count);

/* Text dumps in a stable order (GX-7), of graphs with a cycle too. *out_text is freed with rondo_text_free
 * (<rondo/allocator.h>).
 * with_addresses = false leaves pointers out, so that two runs give the same text. DOT is for Graphviz: a shape for
 * each kind, a cluster for each child graph; names longer than 239 bytes are cut. JSON is what rondo_graph_from_json
 * reads:
 *   {"rondo_graph":1, "name":"step",
 *    "kernels":[{"name":"saxpy", "block_threads":256,
 *                "parameters":[{"access":"scalar", "bytes":4, "alignment":4}, {"access":"read", ...}]}],
 *    "nodes":[{"number":0, "kind":"kernel", "name":"saxpy", "kernel":0, "grid":[4,1,1],
 *              "arguments":["0000803f", "0x7f00"], "dependencies":[]}, ...]}
 * "kernel" counts in "kernels"; a scalar argument is its bytes in memory order, a pointer its address or null;
 * "argument_bytes", a list of numbers, may follow "arguments". The other kinds have, in the place of "kernel" to
 * "arguments": host "function", "user"; copy the fields of rondo_copy and fill those of rondo_fill, with the numbers
 * that rondo_graph_get_params gives; child "child":{"name", "nodes"}; event_record and event_wait "event"; alloc
 * "bytes", "allocation" (its name), "peers" (numbers of devices, when there are any), "address"; free "address";
 * foreign "what", "bytes", "bound" (true or false), "address". "programmatic", a list of [from, from port, to port,
 * type], may follow "dependencies". Fields that are addresses are texts, and may be missing. What is not UTF-8 in a
 * name is written as U+FFFD. Errors: OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_to_dot(const rondo_graph *graph, bool with_addresses,
                                                         char **out_text);
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_to_json(const rondo_graph *graph, bool with_addresses,
                                                          char **out_text);

/* Reads what rondo_graph_to_json wrote: a graph of data only, whose kernels have names, grids and parameters but no
 * code, and which gives the same text again (without addresses). Addresses of memory are kept as numbers; functions,
 * their users and events become NULL. `bytes` need not end in NUL. The caller destroys the graph. Thread-safe. Errors:
 * INVALID_DATA with line and column or the node and field; INVALID_GRAPH (edges to nodes that are not there, to itself,
 * or given twice); LIMIT_EXCEEDED (more than 2^20 nodes in all, 2^16 numbers left out, or child graphs more than 16
 * deep); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_from_json(const char *bytes, size_t count, rondo_graph **out_graph);

RONDO_EXTERN_C_END

#endif

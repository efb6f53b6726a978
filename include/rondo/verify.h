/* SPDX-License-Identifier: MIT
 * Verification: finds races and lifetime errors of a graph before it runs.
 *
 * The accesses of a node are known from its parameters: copies and fills exactly, including their pitches; kernels from
 * the access of their pointer parameters, and exactly if the node says how many bytes each may access
 * (rondo_kernel_node, rondo_launch_with). Two accesses are ordered if the graph's edges lead from one to the other,
 * also into and out of child graphs. Nothing else orders them: not the order in which nodes were created, not event
 * nodes (a wait node waits for what was recorded before the launch), not the effects of host functions.
 *
 * Errors follow from what the graph declares. The first one makes rondo_instantiate refuse the graph:
 *   an access of an alloc node's memory not ordered after the alloc        INVALID_LIFETIME, NOT_ALLOCATED
 *   ... not ordered before the free                                        INVALID_LIFETIME, USE_AFTER_FREE
 *   a free not ordered after its alloc                                     INVALID_LIFETIME, NOT_ALLOCATED
 *   two frees of one allocation                                            INVALID_LIFETIME, DOUBLE_FREE
 *   a free of what no alloc node of this or another graph allocates        INVALID_LIFETIME, FOREIGN_ADDRESS or
 *                                                                          INTERIOR_ADDRESS
 *   an access of memory that was freed outside of the graph, while the     INVALID_LIFETIME, USE_AFTER_FREE
 *   device still has its addresses
 *   two allocations of the same bytes that may be alive at once            INVALID_LIFETIME, STILL_ALLOCATED
 *   two accesses of the same bytes without order, of which one writes      INVALID_GRAPH, RACE
 *   an access that begins in an allocation and passes its end              INVALID_GRAPH, OUT_OF_RANGE
 *   an access of memory that the device cannot reach                       INVALID_GRAPH, NO_ACCESS
 * Warnings never refuse a graph. There are three kinds:
 * - races in which the extent of an access is not known: a pointer without a number of bytes may access everything from
 *   its address to the end of its allocation;
 * - lifetimes of pointers in scalar parameters: aligned words of 8 bytes that point into memory of an alloc node;
 * - what cannot be known for a graph that is only data: an address that it frees and does not allocate; and, once for
 *   each graph, that nothing was verified, because it was dumped without addresses (NO_ADDRESS).
 * Kernels that update the same bytes atomically, without order between them, race by what they declare. Do not declare
 * their bytes: they then get a warning instead of an error.
 *
 * Memory of another graph need not be allocated yet: rondo_exec_launch checks that, and checks other memory again.
 *
 * Verification knows the allocations of the graph's alloc nodes and, if the graph has a device, all allocations of the
 * device. Other addresses are not checked, but exact accesses to them are compared with each other. Nodes that are
 * disabled in an exec count as enabled, because nothing is verified again when they are enabled.
 */
#ifndef RONDO_VERIFY_H
#define RONDO_VERIFY_H

#include <rondo/exec.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_findings rondo_findings;

typedef enum rondo_severity { RONDO_SEVERITY_WARNING = 1, RONDO_SEVERITY_ERROR = 2 } rondo_severity;

/* "warning", "error"; "unknown" for another number. Thread-safe. */
RONDO_API const char *rondo_severity_name(rondo_severity severity);

/* One finding. Nodes belong to the graph that was verified, or to a child graph in it. */
typedef struct rondo_finding {
  uint32_t struct_size;
  rondo_severity severity;
  rondo_status status; /* what rondo_instantiate returns for it */
  rondo_reason reason;
  rondo_node node;           /* the node with the error: the access, the free, the later of two accesses */
  rondo_node other;          /* the alloc, the free or the access that it conflicts with; the zero value without one */
  rondo_node before, after;  /* the missing order; zero values if no order is missing */
  rondo_node from, to;       /* an edge that adds this order, between nodes of one graph: `before` and `after`, or the
                                child nodes that contain them; no nodes if no edge can */
  rondo_node alloc;          /* the alloc node of the allocation; no node if the graph has none */
  const char *allocation;    /* its name; "" if it has none */
  uint64_t allocation_bytes; /* 0 if the address is in no known allocation */
  const void *address;       /* first byte of the access; for findings about an allocation or a free, its address */
  const char *message;       /* the complete finding as text, with the fix */
} rondo_finding;

/* An allocation that the graph does not make itself. If several contain an address, the first one that begins there
 * counts, otherwise the one that reaches farthest. */
typedef struct rondo_verify_allocation {
  const void *address;
  size_t bytes;
  const char *name;      /* for messages; may be NULL */
  const char *no_access; /* its device's name, if the graph's device may not access it; else NULL */
} rondo_verify_allocation;

typedef struct rondo_verify_options {
  uint32_t struct_size;
  uint32_t max_findings;                      /* maximum number that is kept, errors first; 0 = 100. All are counted */
  const rondo_verify_allocation *allocations; /* in addition to the device's; read during the call */
  size_t allocation_count;
} rondo_verify_options;
#define RONDO_VERIFY_OPTIONS_INIT .struct_size = sizeof(rondo_verify_options)

/* Verifies a graph. For a graph that is only data, addresses are compared as numbers. Findings are not failures of the
 * call: *out_findings contains them, errors first, each kind in the order in which the graph may run. options may be
 * NULL. The caller destroys the findings. The time grows with nodes, edges and accesses: some milliseconds for 10,000
 * nodes. Errors: INVALID_ARGUMENT, INVALID_GRAPH/CYCLE, OUT_OF_MEMORY. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_verify(const rondo_graph *graph, const rondo_verify_options *options,
                                                         rondo_findings **out_findings);

/* NULL is fine. */
RONDO_API void rondo_findings_destroy(rondo_findings *findings);

/* Return how many findings can be read, and how many there are, of which max_findings are kept; either out-parameter
 * may be NULL. 0 for NULL. Thread-safe. */
RONDO_API size_t rondo_findings_count(const rondo_findings *findings);
RONDO_API void rondo_findings_totals(const rondo_findings *findings, uint64_t *out_errors, uint64_t *out_warnings);

/* Returns finding `index`, errors first. Its strings are valid as long as the findings. Errors: INVALID_ARGUMENT (NULL,
 * OUT_OF_RANGE). Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_findings_get(const rondo_findings *findings, size_t index,
                                                         rondo_finding *out_finding);

/* Returns the warnings of the last rondo_instantiate or rondo_exec_update of this exec; a line in the log
 * (<rondo/log.h>) also counts them. They belong to the exec, and are valid until it is updated or destroyed; NULL if
 * there are no warnings, or the graph was not verified. Errors: INVALID_ARGUMENT. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_get_findings(const rondo_exec *exec,
                                                              const rondo_findings **out_findings);

RONDO_EXTERN_C_END

#endif

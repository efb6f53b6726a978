/* SPDX-License-Identifier: MIT
 * Looking for ordering and lifetime mistakes of a graph before it runs.
 *
 * What each node reads and writes is known from its parameters: copies and fills exactly, with their pitches; kernels
 * by the access of their pointer parameters, and exactly where the node says how many bytes each may touch
 * (rondo_kernel_node, rondo_launch_with). Two accesses are in order when the graph's edges lead from one to the other,
 * into and out of child graphs too. Nothing else orders them: not the order in which nodes were made, not event nodes
 * (a wait node waits for what was recorded before the launch), not what host functions do.
 *
 * Errors are mistakes by what the graph declares; the first one makes rondo_instantiate refuse it:
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
 * Warnings never refuse a graph: races in which the extent of an access is not known (a pointer without bytes may touch
 * all from its address to the end of its allocation), lifetimes of pointers that stand in scalar parameters (words of
 * 8 bytes, aligned to 8, that point into memory of an alloc node), and what a graph of data only cannot know: an
 * address that it frees and does not allocate, and, once for a graph, that none of its nodes has an address
 * (NO_ADDRESS: it was dumped without them), so that nothing was looked at. Kernels that update the same bytes
 * atomically without order between them race by what they declare: leave their bytes unknown, and they get a warning.
 *
 * Memory of another graph need not be allocated yet: rondo_exec_launch checks that, and the rest once more.
 *
 * Allocations are those of the graph's alloc nodes and, where the graph has a device, all of the device's; other
 * addresses are taken on trust, and exact accesses of them are compared with each other. Nodes that are disabled in an
 * exec count as enabled, because nothing is looked at again when they are.
 */
#ifndef RONDO_VERIFY_H
#define RONDO_VERIFY_H

#include <rondo/exec.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_findings rondo_findings;

typedef enum rondo_severity { RONDO_SEVERITY_WARNING = 1, RONDO_SEVERITY_ERROR = 2 } rondo_severity;

/* "warning", "error"; "unknown" for another number. Thread-safe. */
RONDO_API const char *rondo_severity_name(rondo_severity severity);

/* One mistake. Nodes are tags of the graph that was verified, or of a child graph in it. */
typedef struct rondo_finding {
  uint32_t struct_size;
  rondo_severity severity;
  rondo_status status; /* what rondo_instantiate returns for it */
  rondo_reason reason;
  rondo_node node;           /* whose mistake it is: the access, the free, the later of two */
  rondo_node other;          /* the alloc, the free or the access that it clashes with; no node when there is none */
  rondo_node before, after;  /* the order that is missing; no nodes when none is */
  rondo_node from, to;       /* an edge that gives this order, between nodes of one graph: `before` and `after`, or the
                                child nodes they stand in; no nodes when no edge can */
  rondo_node alloc;          /* the alloc node of the allocation; no node when the graph has none */
  const char *allocation;    /* its name; "" when it has none */
  uint64_t allocation_bytes; /* 0 when the address is in no known allocation */
  const void *address;       /* first byte of the access; where allocation or free are meant, their address */
  const char *message;       /* the whole of it in words, with the remedy */
} rondo_finding;

/* An allocation that the graph does not make itself. Of several at one address the first that begins there counts, else
 * the one that reaches farthest. */
typedef struct rondo_verify_allocation {
  const void *address;
  size_t bytes;
  const char *name;      /* for messages; may be NULL */
  const char *no_access; /* the name of the device it is on, when the graph's device may not access it; else NULL */
} rondo_verify_allocation;

typedef struct rondo_verify_options {
  uint32_t struct_size;
  uint32_t max_findings;                      /* how many are kept, errors first; 0 = 100. All are counted */
  const rondo_verify_allocation *allocations; /* known beside the device's; read during the call */
  size_t allocation_count;
} rondo_verify_options;
#define RONDO_VERIFY_OPTIONS_INIT .struct_size = sizeof(rondo_verify_options)

/* Verifies a graph; also one of data only, whose addresses are compared as numbers. Mistakes are no failure of the
 * call: *out_findings has them, errors first, each in the order in which the graph may run. options may be NULL. The
 * caller destroys the findings. Work grows with nodes, edges and accesses, and some milliseconds do for 10,000 nodes.
 * Errors: INVALID_ARGUMENT, INVALID_GRAPH/CYCLE, OUT_OF_MEMORY. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_verify(const rondo_graph *graph, const rondo_verify_options *options,
                                                         rondo_findings **out_findings);

/* NULL is fine. */
RONDO_API void rondo_findings_destroy(rondo_findings *findings);

/* How many findings can be read, and how many were found, of which max_findings are kept; either out-parameter may be
 * NULL. 0 for NULL. Thread-safe. */
RONDO_API size_t rondo_findings_count(const rondo_findings *findings);
RONDO_API void rondo_findings_totals(const rondo_findings *findings, uint64_t *out_errors, uint64_t *out_warnings);

/* Finding `index`, errors first; its texts are valid as long as the findings. Errors: INVALID_ARGUMENT (NULL,
 * OUT_OF_RANGE). Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_findings_get(const rondo_findings *findings, size_t index,
                                                         rondo_finding *out_finding);

/* The warnings that the last rondo_instantiate or rondo_exec_update of this exec had; they are also counted in one line
 * of the log (<rondo/log.h>). They belong to the exec and are valid until it is updated or destroyed; NULL when there
 * were none, or verification was left out. Errors: INVALID_ARGUMENT. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_get_findings(const rondo_exec *exec,
                                                              const rondo_findings **out_findings);

RONDO_EXTERN_C_END

#endif

/* SPDX-License-Identifier: MIT
 * The audit of a captured graph's copies. A capture records the work that was enqueued, but nothing that the host did
 * in between. A copy from host memory that the caller did not declare is a sign of host work that the capture missed:
 * each launch would copy whatever is there at that time. So every copy from the host must read an input or a constant,
 * and every copy to the host must write an output. Otherwise the graph is refused, and the error names the copy (SE-4).
 * The copies of inputs are then removed, because the next inputs are at other addresses. The caller makes these copies
 * before each launch, using a map from host source to device destination (SE-5).
 *
 * Component: rondo-session.
 */
#ifndef RONDO_AUDIT_H
#define RONDO_AUDIT_H

#include <rondo/graph.h>

RONDO_EXTERN_C_BEGIN

/* A range of host memory, and its name for messages, which may be NULL. */
typedef struct rondo_host_range {
  const void *address;
  size_t bytes;
  const char *name;
} rondo_host_range;

typedef struct rondo_audit_options {
  uint32_t struct_size; /* RONDO_AUDIT_OPTIONS_INIT sets it; 0 means the library's own */
  bool keep_inputs;     /* remove no copies; the map describes the copies that stay */
  const rondo_host_range *inputs;
  size_t input_count;
  const rondo_host_range *constants; /* must stay unchanged as long as the graph has execs */
  size_t constant_count;
  const rondo_host_range *outputs;
  size_t output_count;
} rondo_audit_options;
#define RONDO_AUDIT_OPTIONS_INIT .struct_size = sizeof(rondo_audit_options)

/* An entry of the map: before each launch, the bytes of `inputs[input]` from `offset` on must be copied to copy.dst.
 * `copy` is the node's copy (rondo_copy), with the source that was captured. */
typedef struct rondo_input_copy {
  size_t input;
  size_t offset;
  rondo_copy copy;
} rondo_input_copy;

typedef struct rondo_audit_info {
  uint32_t struct_size;
  uint32_t inputs;         /* copies of inputs, each an entry of the map */
  uint32_t constants;      /* copies of constants, which stay in the graph */
  uint32_t outputs;        /* copies to outputs and fills of outputs, which stay */
  uint32_t device_copies;  /* copies from device to device, which stay */
  uint32_t edges;          /* edges that were added in place of the removed nodes */
  uint64_t input_bytes;    /* that the caller copies for each launch, by the map */
  uint64_t constant_bytes; /* of the other copies, for each launch */
  uint64_t output_bytes;
} rondo_audit_info;

/* Checks every copy and fill of the graph and of its child graphs, and removes the copies of inputs. Nodes after such a
 * copy are then ordered after the nodes before it. The graph must have a device. It is changed completely or not at
 * all. `copies` is an array as in queries (B7), in the order of rondo_graph_sort. If it is too short or NULL, the call
 * only returns the number of copies and removes nothing. out_info may be NULL. Memory counts as host memory unless a
 * Rondo device, the device's driver or a node of the graph owns it. A copy from host to host must read an input or
 * constant and write an output; it stays. Kernels, host functions and foreign nodes are not checked, although their
 * arguments may point to host memory. Thread-compatible.
 * CAPTURE_REFUSED/WRONG_MEMORY with the node (a source that is not within one input or constant, or a destination that
 * is not within one output); INVALID_GRAPH/RACE with the node (an input cannot be copied before the graph, because a
 * node that does not depend on the copy accesses or frees the destination; it is named); INVALID_LIFETIME/NOT_ALLOCATED
 * with the node (likewise, because the graph itself allocates the destination); UNSUPPORTED/NODE_KIND with the node (an
 * input copy in a child graph, which cannot be removed); UNSUPPORTED/FOREIGN_WORK (the graph is bound to what the
 * driver captured, <rondo/capture.h>); INVALID_ARGUMENT with NULL_ARGUMENT, BAD_SIZE (a range of no bytes), OVERLAP (an
 * input or constant overlaps an output); INVALID_GRAPH/CYCLE; INVALID_STATE/CAPTURING_INTO; OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_audit_copies(rondo_graph *graph, const rondo_audit_options *options,
                                                               rondo_input_copy *copies, size_t *inout_count,
                                                               rondo_audit_info *out_info);

RONDO_EXTERN_C_END

#endif

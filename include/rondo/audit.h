/* SPDX-License-Identifier: MIT
 * The audit of a captured graph's copies. A capture keeps what was given to the device, and nothing of what the host
 * did in between: a copy out of host memory that nobody vouches for is a sign of host work that the capture has missed,
 * and its launches would copy whatever is there then. So every copy from the host must come from an input or from a
 * constant that is held, and every copy to the host must go to an output; else the graph is refused, naming the copy
 * (SE-4). Copies of inputs are then taken out, because the next inputs are elsewhere: whoever launches the graph copies
 * them, by a map of host source to device destination, in front of it (SE-5).
 */
#ifndef RONDO_AUDIT_H
#define RONDO_AUDIT_H

#include <rondo/graph.h>

RONDO_EXTERN_C_BEGIN

/* Host memory, and what it is called in messages; name may be NULL. */
typedef struct rondo_host_range {
  const void *address;
  size_t bytes;
  const char *name;
} rondo_host_range;

typedef struct rondo_audit_options {
  uint32_t struct_size; /* RONDO_AUDIT_OPTIONS_INIT sets it; 0 means the library's own */
  bool keep_inputs;     /* take nothing out: the map is of what stays */
  const rondo_host_range *inputs;
  size_t input_count;
  const rondo_host_range *constants; /* the caller keeps them as they are, as long as there are execs of the graph */
  size_t constant_count;
  const rondo_host_range *outputs;
  size_t output_count;
} rondo_audit_options;
#define RONDO_AUDIT_OPTIONS_INIT .struct_size = sizeof(rondo_audit_options)

/* A row of the map: what stands in `inputs[input]` from `offset` on goes to copy.dst before each launch. `copy` is the
 * node's (rondo_copy), with the source as it was captured. */
typedef struct rondo_input_copy {
  size_t input;
  size_t offset;
  rondo_copy copy;
} rondo_input_copy;

typedef struct rondo_audit_info {
  uint32_t struct_size;
  uint32_t inputs;         /* copies of inputs, each a row of the map */
  uint32_t constants;      /* copies of constants, which stay */
  uint32_t outputs;        /* copies and fills of outputs, which stay */
  uint32_t device_copies;  /* copies from device to device, which stay */
  uint32_t edges;          /* that were put in the place of nodes taken out */
  uint64_t input_bytes;    /* of the map, of one launch */
  uint64_t constant_bytes; /* of the others, likewise */
  uint64_t output_bytes;
} rondo_audit_info;

/* Looks at every copy and fill of the graph, in child graphs too, and takes the copies of inputs out. What came behind
 * such a copy comes behind all that it came behind. The graph is changed whole or not at all; it must have a device.
 * `copies` is an array as in queries (B7), in the order of rondo_graph_sort: with one that is too short, or NULL, the
 * number is told and nothing is taken out. out_info may be NULL. Memory is the host's unless some device of the
 * library's, the device's driver or a node of the graph has it. A copy from host to host needs a source among inputs
 * and constants and a destination among outputs; it stays. Kernels, host functions and foreign nodes are not looked at:
 * arguments may be host memory. Thread-compatible. Errors, with which the graph is as before:
 *   CAPTURE_REFUSED/WRONG_MEMORY with the node: a source that is in none of inputs and constants as a whole, or a
 *     destination that is in no output as a whole;
 *   INVALID_GRAPH/RACE with the node: an input cannot be copied in front, because a node that does not come behind the
 *     copy accesses the destination, or frees it; it is named;
 *   INVALID_LIFETIME/NOT_ALLOCATED with the node: nor can this one, because the graph itself allocates the destination;
 *   UNSUPPORTED/NODE_KIND with the node: it stands in a child graph, which cannot lose it;
 *   UNSUPPORTED/FOREIGN_WORK: the graph is bound to what the driver captured (<rondo/capture.h>);
 *   INVALID_ARGUMENT with NULL_ARGUMENT, BAD_SIZE (a range of no bytes), OVERLAP (an input or constant and an output
 *     have bytes in common); INVALID_GRAPH/CYCLE; INVALID_STATE/CAPTURING_INTO; OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_audit_copies(rondo_graph *graph, const rondo_audit_options *options,
                                                               rondo_input_copy *copies, size_t *inout_count,
                                                               rondo_audit_info *out_info);

RONDO_EXTERN_C_END

#endif

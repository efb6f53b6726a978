/* SPDX-License-Identifier: MIT
 * What libraries give to a stream that captures: the driver's capture and its graph, kernels of theirs, and graphs that
 * only the captured one can be an executable of.
 *
 * Handles of captured nodes are good as long as their rondo_captured, which graphs, executables and kernels count.
 * Threads: as driver.h says; a foreign kernel is immutable.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_FOREIGN_NODES_H
#define RONDO_DEVICE_CUDA_CUDA_FOREIGN_NODES_H

#include "base/array.h"
#include "device/cuda/cuda.h"
#include "device/cuda/cuda_executable.h"

typedef RONDO_ARRAY(cu_graph_node) cuda_graph_nodes;

typedef struct cuda_captured {
  rondo_captured base;
  cu_graph graph; /* the capture's while it goes on, then its own; NULL when it failed */
  bool is_over;
  cuda_kernel *grave;   /* what it is put aside by when it goes out of use */
  atomic_bool is_taken; /* an executable was made of the graph itself */
  cuda_ranges shown;    /* graph memory that pages stand in for while the capture goes on */
  /* Lists handed out; working memory. */
  RONDO_ARRAY(rondo_captured_edge) edges;
  RONDO_ARRAY(uint64_t) nodes;
  cuda_graph_nodes handles;
  RONDO_ARRAY(cu_edge_data) data;
  RONDO_ARRAY(unsigned char) values;
  const void *arguments; /* of the kernel that was read last: `values`, or the driver's memory */
} cuda_captured;

/* A kernel that a library launched, with its launch. All its arguments are one scalar of the rondo_kernel, `bytes`
 * long, as the kernel gets them. */
struct cuda_foreign_kernel {
  rondo_captured *captured; /* a reference: the library may hang what the kernel needs on the graph */
  cu_kernel_params params;  /* without arguments and grid */
  bool has_buffer;          /* the arguments were given as one buffer, else one by one */
  size_t count;             /* of arguments; 0 when they are a buffer */
  uint32_t *offsets;
  size_t bytes;
};

extern const rondo_capture_ops cuda_capture_ops;

static inline cu_graph_node cuda_captured_handle(uint64_t name) { return (cu_graph_node)(uintptr_t)name; }

/* The nodes of a captured graph. */
RONDO_MUST_USE rondo_status cuda_list_nodes(cuda_device *device, cu_graph graph, cuda_graph_nodes *out);

/* A captured kernel node as a rondo_kernel. The caller gets a reference to it. out->args is valid until the next call
 * with `captured`. */
RONDO_MUST_USE rondo_status cuda_foreign_kernel_read(cuda_captured *captured, cu_graph_node node,
                                                     rondo_kernel_node *out);
void cuda_foreign_kernel_free(cuda_device *device, cuda_foreign_kernel *foreign); /* NULL is fine, here and below */
/* A captured graph that nothing runs any more. */
void cuda_captured_free(cuda_captured *captured);

/* Lets `out` have the arguments at `values` as one buffer, or, if they were given so, one by one; through a list that
 * the caller has and keeps, like the values: CUDA_BUFFER_LIST pointers for a buffer, else one each. */
enum { CUDA_BUFFER_LIST = 5 };
void cuda_foreign_arguments(const cuda_foreign_kernel *foreign, bool as_buffer, const void *values, void **list,
                            cu_kernel_params *out);

/* A copy in Rondo's words; false when there are none for it (arrays, overlaps). */
bool cuda_foreign_copy_read(const cu_copy *from, rondo_copy *out);
/* The driver's own description of a captured copy that is still `copy`, which may say more. */
cu_result cuda_foreign_copy_find(const cuda_device *device, uint64_t captured, const rondo_copy *copy,
                                 bool *out_is_found, cu_copy *out);

/* Adds a FOREIGN node that can be made anew: as `source` is. CU_NOT_SUPPORTED for the others. */
cu_result cuda_foreign_add(const cuda_device *device, cu_graph_node source, cu_graph graph, const cu_graph_node *before,
                           size_t count, cu_graph_node *out);

/* The driver's graph of an executable that has bound nodes: the captured one, to which is added what is not in it yet.
 * In the device's context, when the executable is made. */
RONDO_MUST_USE rondo_status cuda_bound_build(cuda_executable *executable, cuda_built *out, cu_graph_node *handles);

#endif

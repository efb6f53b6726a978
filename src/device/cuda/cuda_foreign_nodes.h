/* SPDX-License-Identifier: MIT
 * Work that libraries enqueue on a stream that captures: the driver's capture and its graph, the libraries' kernels,
 * and executables of graphs that exist only as captured.
 *
 * Handles of captured nodes are valid as long as their rondo_captured, to which graphs, executables and kernels have
 * references. Threads: as driver.h says. A foreign kernel is immutable.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_FOREIGN_NODES_H
#define RONDO_DEVICE_CUDA_CUDA_FOREIGN_NODES_H

#include "base/array.h"
#include "device/cuda/cuda.h"
#include "device/cuda/cuda_executable.h"

typedef RONDO_ARRAY(cu_graph_node) cuda_graph_nodes;

typedef struct cuda_captured {
  rondo_captured base;
  cu_graph graph; /* the capture's until it ends, then owned; NULL if the capture failed */
  bool is_over;
  cuda_kernel *grave;   /* puts it on the list of dead kernels when it goes out of use */
  atomic_bool is_taken; /* the graph became an executable's */
  cuda_ranges shown;    /* placeholders for graph memory until the capture ends */
  /* Lists that were returned; working memory. */
  RONDO_ARRAY(rondo_captured_edge) edges;
  RONDO_ARRAY(uint64_t) nodes;
  cuda_graph_nodes handles;
  RONDO_ARRAY(cu_edge_data) data;
  RONDO_ARRAY(unsigned char) values;
  RONDO_ARRAY(uint32_t) offsets;
  const void *arguments;      /* of the kernel that was read last: `values`, or the driver's memory */
  rondo_launch_config config; /* likewise */
} cuda_captured;

/* A kernel that a library launched. All its arguments together are one scalar of the rondo_kernel, of `bytes` bytes,
 * laid out as the kernel reads them. */
struct cuda_foreign_kernel {
  rondo_captured *captured; /* a reference: the library may attach what the kernel needs to the graph */
  cu_kernel_params params;  /* without arguments and grid */
  bool has_buffer;          /* the arguments were given as one buffer, else one by one */
  size_t count;             /* of arguments; 0 when they are a buffer */
  uint32_t *offsets;
  size_t bytes;
  rondo_launch_config config; /* of the launch */
};

extern const rondo_capture_ops cuda_capture_ops;

static inline cu_graph_node cuda_captured_handle(uint64_t name) { return (cu_graph_node)(uintptr_t)name; }

/* The nodes of a captured graph. */
RONDO_MUST_USE rondo_status cuda_list_nodes(cuda_device *device, cu_graph graph, cuda_graph_nodes *out);

/* A captured kernel node as a rondo_kernel. The caller gets a reference to it. out->args is valid until the next call
 * with `captured`. */
RONDO_MUST_USE rondo_status cuda_foreign_kernel_read(cuda_captured *captured, cu_graph_node node,
                                                     rondo_kernel_node *out);
void cuda_foreign_kernel_free(cuda_device *device, cuda_foreign_kernel *foreign); /* may be NULL, here and below */
/* Frees a captured graph that nothing runs any more. */
void cuda_captured_free(cuda_captured *captured);

/* Gives `out` the arguments at `values`: as one buffer, or one by one. The list has CUDA_BUFFER_LIST pointers for a
 * buffer, else one for each argument. The caller keeps the list and the values. */
enum { CUDA_BUFFER_LIST = 5 };
void cuda_foreign_arguments(const cuda_foreign_kernel *foreign, bool as_buffer, const void *values, void **list,
                            cu_kernel_params *out);

/* Translates a copy. False if Rondo has no such copy (arrays, overlaps). */
bool cuda_foreign_copy_read(const cu_copy *from, rondo_copy *out);
/* The driver's description of a captured copy, which may say more. *out_is_found is false if it no longer is `copy`. */
cu_result cuda_foreign_copy_find(const cuda_device *device, uint64_t captured, const rondo_copy *copy,
                                 bool *out_is_found, cu_copy *out);

/* Adds a copy of a FOREIGN node. CU_NOT_SUPPORTED if it is bound. */
cu_result cuda_foreign_add(const cuda_device *device, cu_graph_node source, cu_graph graph, const cu_graph_node *before,
                           size_t count, cu_graph_node *out);

/* Makes the captured graph the graph of an executable with bound nodes, and adds what it lacks. In the device's
 * context, when the executable is made. */
RONDO_MUST_USE rondo_status cuda_build_captured(cuda_executable *executable, cuda_built *out, cu_graph_node *handles);

#endif

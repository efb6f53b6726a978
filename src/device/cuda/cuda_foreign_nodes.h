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

/* An argument of a kernel, among the bytes that it reads. */
typedef struct cuda_argument {
  uint32_t offset, bytes;
} cuda_argument;

enum { CUDA_KERNELS_KEPT = 64 };

typedef struct cuda_captured {
  rondo_captured base;
  cu_graph graph; /* the capture's until it ends, then owned if base.owns_graph; NULL if the capture failed */
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
  RONDO_ARRAY(cuda_argument) places;
  const void *argument_values;             /* of the kernel that was read last: `values`, or the driver's memory */
  RONDO_ARRAY(const void *) argument_list; /* the arguments of a declared kernel that was read last */
  rondo_memory_operation operations[RONDO_MAX_MEMORY_OPERATIONS]; /* of the node that was read last */
  rondo_device_list others; /* of kernels that were read, until the reading ends */
  uint64_t edges_of;        /* the node that `edges` lead to; 0: they are a frontier */
  /* Kernels that were read lately: references, until the reading ends, because each refers to this. A node whose kernel
   * is launched alike uses the same one. */
  rondo_kernel *kernels[CUDA_KERNELS_KEPT];
} cuda_captured;

/* A kernel that a library launched. Unless it is declared (cuda_declared_kernels.h), all its arguments together are one
 * scalar of the rondo_kernel, of `bytes` bytes, laid out as the kernel reads them. */
struct cuda_foreign_kernel {
  rondo_captured *captured; /* a reference: the library may attach what the kernel needs to the graph */
  cu_kernel_params params;  /* without arguments and grid */
  bool is_declared;         /* the rondo_kernel has the declared parameters in place of that scalar */
  bool has_buffer;          /* the arguments were given as one buffer, else one by one */
  bool has_gaps;            /* some of `bytes` belong to no argument */
  size_t count;             /* of arguments; 0 when they are a buffer */
  cuda_argument *arguments;
  size_t bytes;
  rondo_launch_config config; /* of the launch, resolved */
  bool is_configured;         /* it is not the default */
};

extern const rondo_capture_ops cuda_capture_ops;

static inline cu_graph_node cuda_captured_handle(uint64_t name) { return (cu_graph_node)(uintptr_t)name; }

/* The nodes of a captured graph. */
RONDO_MUST_USE rondo_status cuda_list_nodes(cuda_device *device, cu_graph graph, cuda_graph_nodes *out);

/* A captured kernel node as a rondo_kernel. It and out->args are valid until the next call with `captured`. */
RONDO_MUST_USE rondo_status cuda_foreign_kernel_read(cuda_captured *captured, cu_graph_node node,
                                                     rondo_kernel_node *out);
void cuda_foreign_forget_kernels(cuda_captured *captured);                        /* the reading has ended */
void cuda_foreign_kernel_free(cuda_device *device, cuda_foreign_kernel *foreign); /* may be NULL, here and below */
/* Frees a captured graph that nothing runs any more. */
void cuda_captured_free(cuda_captured *captured);

/* Gives `out` the arguments of a rondo_kernel_node: as one buffer, or one by one. The list has CUDA_BUFFER_LIST
 * pointers for a buffer, else one for each argument; a declared kernel needs no list. The caller keeps the list and the
 * arguments. */
enum { CUDA_BUFFER_LIST = 5 };
void cuda_foreign_arguments(const cuda_foreign_kernel *foreign, bool as_buffer, const void *const *arguments,
                            void **list, cu_kernel_params *out);

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

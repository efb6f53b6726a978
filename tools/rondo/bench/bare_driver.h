/* SPDX-License-Identifier: MIT
 * The CUDA driver without Rondo, as a baseline for benchmarks. Its functions are loaded with dlopen from the same
 * library that Rondo uses (RONDO_CUDA_LIBRARY, or libcuda.so.1), and NVRTC compiles one kernel. The types are the
 * subset of cuda.h that the calls need.
 */
#ifndef RONDO_TOOL_BARE_DRIVER_H
#define RONDO_TOOL_BARE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rondo/kernel.h>

typedef struct bare_context_ *bare_context;
typedef struct bare_module_ *bare_module;
typedef struct bare_function_ *bare_function;
typedef struct bare_stream_ *bare_stream;
typedef struct bare_event_ *bare_event;
typedef struct bare_graph_ *bare_graph;
typedef struct bare_exec_ *bare_exec;
typedef struct bare_node_ *bare_node;

/* CUDA_GRAPH_INSTANTIATE_PARAMS */
typedef struct bare_instantiate_params {
  uint64_t flags;
  bare_stream upload_stream;
  bare_node error_node;
  int result;
} bare_instantiate_params;

/* CUDA_KERNEL_NODE_PARAMS of CUDA 12 */
typedef struct bare_kernel_params {
  bare_function function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void **params, **extra;
  void *kernel;
  bare_context context;
} bare_kernel_params;

/* CUgraphEdgeData */
typedef struct bare_edge_data {
  unsigned char from_port, to_port, type, reserved[5];
} bare_edge_data;

/* CUlaunchAttributeValue */
typedef union bare_attribute_value {
  char padding[64];
  int number;
} bare_attribute_value;

/* CUgraphExecUpdateResultInfo */
typedef struct bare_update_result {
  int result;
  bare_node error_node, error_from_node;
} bare_update_result;

enum {
  BARE_UPLOAD = 2,            /* CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD */
  BARE_NON_BLOCKING = 1,      /* CU_STREAM_NON_BLOCKING */
  BARE_NO_TIMING = 2,         /* CU_EVENT_DISABLE_TIMING */
  BARE_CAPTURE_THREAD = 1,    /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */
  BARE_CAPABILITY_MAJOR = 75, /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
  BARE_CAPABILITY_MINOR = 76,
  BARE_GRAPH_MEMORY_HIGH = 3 /* CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, uint64_t */
};

/* ROW(member, "symbol", version, (arguments)); each returns a CUresult. */
#define BARE_FUNCTIONS(ROW)                                                                                           \
  ROW(init, "cuInit", 2000, (unsigned flags))                                                                         \
  ROW(device_get, "cuDeviceGet", 2000, (int *device, int ordinal))                                                    \
  ROW(device_get_attribute, "cuDeviceGetAttribute", 2000, (int *value, int attribute, int device))                    \
  ROW(primary_retain, "cuDevicePrimaryCtxRetain", 7000, (bare_context * context, int device))                         \
  ROW(primary_release, "cuDevicePrimaryCtxRelease", 11000, (int device))                                              \
  ROW(context_set_current, "cuCtxSetCurrent", 4000, (bare_context context))                                           \
  ROW(mem_alloc_async, "cuMemAllocAsync", 11020, (uint64_t * address, size_t bytes, bare_stream stream))              \
  ROW(mem_free_async, "cuMemFreeAsync", 11020, (uint64_t address, bare_stream stream))                                \
  ROW(copy_async, "cuMemcpyAsync", 4000, (uint64_t dst, uint64_t src, size_t bytes, bare_stream stream))              \
  ROW(module_load, "cuModuleLoadDataEx", 2010,                                                                        \
      (bare_module * module, const void *image, unsigned count, int *options, void **values))                         \
  ROW(module_unload, "cuModuleUnload", 2000, (bare_module module))                                                    \
  ROW(module_get_function, "cuModuleGetFunction", 2000,                                                               \
      (bare_function * function, bare_module module, const char *name))                                               \
  ROW(stream_create, "cuStreamCreate", 2000, (bare_stream * stream, unsigned flags))                                  \
  ROW(stream_destroy, "cuStreamDestroy", 4000, (bare_stream stream))                                                  \
  ROW(stream_synchronize, "cuStreamSynchronize", 2000, (bare_stream stream))                                          \
  ROW(stream_wait_event, "cuStreamWaitEvent", 3020, (bare_stream stream, bare_event event, unsigned flags))           \
  ROW(event_create, "cuEventCreate", 2000, (bare_event * event, unsigned flags))                                      \
  ROW(event_destroy, "cuEventDestroy", 4000, (bare_event event))                                                      \
  ROW(event_record, "cuEventRecord", 2000, (bare_event event, bare_stream stream))                                    \
  ROW(event_elapsed, "cuEventElapsedTime", 2000, (float *ms, bare_event begin, bare_event end))                       \
  ROW(launch_kernel, "cuLaunchKernel", 4000,                                                                          \
      (bare_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_bytes, bare_stream stream, void **params, void **extra))                     \
  ROW(begin_capture, "cuStreamBeginCapture", 10010, (bare_stream stream, int mode))                                   \
  ROW(end_capture, "cuStreamEndCapture", 10000, (bare_stream stream, bare_graph * graph))                             \
  ROW(instantiate, "cuGraphInstantiateWithParams", 12000,                                                             \
      (bare_exec * exec, bare_graph graph, bare_instantiate_params * params))                                         \
  ROW(graph_launch, "cuGraphLaunch", 10000, (bare_exec exec, bare_stream stream))                                     \
  ROW(graph_create, "cuGraphCreate", 10000, (bare_graph * graph, unsigned flags))                                     \
  ROW(graph_add_kernel, "cuGraphAddKernelNode", 12000,                                                                \
      (bare_node * node, bare_graph graph, const bare_node *before, size_t count, const bare_kernel_params *params))  \
  ROW(graph_clone, "cuGraphClone", 10000, (bare_graph * copy, bare_graph graph))                                      \
  ROW(graph_get_nodes, "cuGraphGetNodes", 10000, (bare_graph graph, bare_node * nodes, size_t * count))               \
  ROW(graph_kernel_get_params, "cuGraphKernelNodeGetParams", 12000, (bare_node node, bare_kernel_params * params))    \
  ROW(graph_node_get_type, "cuGraphNodeGetType", 10000, (bare_node node, int *type))                                  \
  ROW(graph_node_get_dependencies, "cuGraphNodeGetDependencies", 12030,                                               \
      (bare_node node, bare_node * before, bare_edge_data * data, size_t * count))                                    \
  ROW(graph_kernel_get_attribute, "cuGraphKernelNodeGetAttribute", 11000,                                             \
      (bare_node node, int id, bare_attribute_value *value))                                                          \
  ROW(exec_update, "cuGraphExecUpdate", 12000, (bare_exec exec, bare_graph graph, bare_update_result * result))       \
  ROW(exec_set_kernel, "cuGraphExecKernelNodeSetParams", 12000,                                                       \
      (bare_exec exec, bare_node node, const bare_kernel_params *params))                                             \
  ROW(graph_destroy, "cuGraphDestroy", 10000, (bare_graph graph))                                                     \
  ROW(exec_destroy, "cuGraphExecDestroy", 10000, (bare_exec exec))

/* The same for functions that a driver may lack; their pointer is then NULL. */
#define BARE_OPTIONAL_FUNCTIONS(ROW)                                                                      \
  ROW(graph_mem_get, "cuDeviceGetGraphMemAttribute", 11040, (int device, int attribute, uint64_t *value)) \
  ROW(graph_mem_set, "cuDeviceSetGraphMemAttribute", 11040, (int device, int attribute, uint64_t *value)) \
  ROW(graph_mem_trim, "cuDeviceGraphMemTrim", 11040, (int device))

typedef struct bare_driver {
#define BARE_MEMBER(member, symbol, version, arguments) int(*member) arguments;
  BARE_FUNCTIONS(BARE_MEMBER)
  BARE_OPTIONAL_FUNCTIONS(BARE_MEMBER)
#undef BARE_MEMBER
} bare_driver;

/* A device with one kernel. Its primary context is current on the thread that opened it. */
typedef struct bare_device {
  bare_driver driver;
  int device;
  bare_context context;
  bare_module module;
  bare_function kernel;
} bare_device;

/* Whether a Rondo device name is that of a CUDA device. */
bool bare_is_cuda(const char *name);

/* Opens the CUDA device that `name` names and compiles the kernel from Rondo's options. Returns TOOL_OK, or
 * TOOL_FAILURE after a message; close *out in both cases. The driver stays loaded. */
int bare_device_open(const char *name, const rondo_kernel_options *kernel, bare_device *out);
void bare_device_close(bare_device *device); /* may be zeroed */

/* Returns TOOL_OK if code is 0; otherwise prints a message that names `what` and returns TOOL_FAILURE. */
int bare_check(int code, const char *what);

#endif

/* SPDX-License-Identifier: MIT
 * Compares the prototypes of vendor/cuda_driver_symbols.h with those of a real cudaTypedefs.h, at the version that each
 * row requests. The compiler does it: a row that differs is an assignment of incompatible pointers. Here the names of
 * cuda_driver_abi.h are the real types; abi_layout.c shows that they are the same.
 */
#include <cuda.h>
#include <cudaTypedefs.h>
#include <stddef.h>
#include <stdint.h>

#include <rondo/kernel.h>

typedef CUresult cu_result;
typedef CUdevice cu_device;
typedef CUuuid cu_uuid;
typedef CUdeviceptr cu_address;
typedef CUmemGenericAllocationHandle cu_physical;
typedef CUcontext cu_context;
typedef CUmodule cu_module;
typedef CUfunction cu_function;
typedef CUkernel cu_kernel;
typedef CUstream cu_stream;
typedef CUevent cu_event;
typedef CUgraph cu_graph;
typedef CUgraphNode cu_graph_node;
typedef CUgraphExec cu_graph_exec;
typedef CUhostFn cu_host_function;
typedef CUdevice_attribute cu_attribute;
typedef CUfunction_attribute cu_function_attribute;
typedef CUmemAllocationGranularity_flags cu_granularity;
typedef CUpointer_attribute cu_pointer_attribute;
typedef CUjit_option cu_jit_option;
typedef CUstreamCaptureMode cu_capture_mode;
typedef CUstreamCaptureStatus cu_capture_status;
typedef CUmemAllocationProp cu_allocation_properties;
typedef CUmemAccessDesc cu_access;
typedef CUDA_MEMCPY3D cu_copy;
typedef CUDA_KERNEL_NODE_PARAMS_v2 cu_kernel_params;
typedef CUDA_MEMSET_NODE_PARAMS cu_memset_params;
typedef CUlaunchConfig cu_launch_config;
typedef CUlaunchAttributeID cu_launch_attribute_id;
typedef CUlaunchAttributeValue cu_launch_value;
typedef CUDA_HOST_NODE_PARAMS cu_host_params;
typedef CUDA_MEM_ALLOC_NODE_PARAMS cu_alloc_params;
typedef CUDA_BATCH_MEM_OP_NODE_PARAMS cu_memory_operations_params;
typedef CUstreamBatchMemOpParams cu_memory_operation;
typedef CUexternalSemaphore cu_external_semaphore;
typedef CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC cu_semaphore_handle;
typedef CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS cu_signal_params;
typedef CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS cu_wait_params;
typedef CUDA_EXT_SEM_SIGNAL_NODE_PARAMS cu_signals_params;
typedef CUDA_EXT_SEM_WAIT_NODE_PARAMS cu_waits_params;
typedef CUgraphEdgeData cu_edge_data;
typedef CUgraphNodeType cu_node_type;
typedef CUDA_GRAPH_INSTANTIATE_PARAMS cu_instantiate_params;
typedef CUgraphExecUpdateResultInfo cu_update_result;

/* The fake driver's own. */
typedef CUresult (*PFN_rondoTestKernel_v12040)(const char *, rondo_cpu_function, rondo_cpu_block_function, size_t,
                                               const rondo_parameter *);
typedef CUresult (*PFN_rondoTestSymbol_v12040)(const char *, void *, size_t);

#define required(member, symbol, version, arguments) PFN_##symbol##_v##version member;
#define optional required
static const struct {
#include "vendor/cuda_driver_symbols.h"
} prototypes = {
#undef required
#define required(member, symbol, version, arguments) .member = (cu_result(*) arguments)NULL,
#include "vendor/cuda_driver_symbols.h"
};

int main(void) { return prototypes.init != NULL; }

/* SPDX-License-Identifier: MIT
 * The table of the driver's functions that Rondo calls: row(member, symbol, version, (arguments)). All are requested
 * from cuGetProcAddress at the given version. That fixes the behaviour of each: a newer driver returns the function as
 * it was in that version. `required`: without it there is no CUDA device. `optional`: NULL if it is missing, and
 * features that need it report that. This file is included where rows are expanded, with both macros defined, so it has
 * no include guard. tests/gpu/abi_calls.c compares each row with the prototypes of a real cudaTypedefs.h.
 */
/* clang-format off */

/* The driver and its devices */
required(init, cuInit, 2000, (unsigned flags))
required(driver_get_version, cuDriverGetVersion, 2020, (int *version))
required(get_error_name, cuGetErrorName, 6000, (cu_result code, const char **name))
required(device_get_count, cuDeviceGetCount, 2000, (int *count))
required(device_get, cuDeviceGet, 2000, (cu_device *device, int ordinal))
required(device_get_name, cuDeviceGetName, 2000, (char *name, int bytes, cu_device device))
required(device_get_uuid, cuDeviceGetUuid, 11040, (cu_uuid *uuid, cu_device device))
required(device_get_attribute, cuDeviceGetAttribute, 2000, (int *value, cu_attribute attribute, cu_device device))
required(device_total_mem, cuDeviceTotalMem, 3020, (size_t *bytes, cu_device device))
required(device_can_access_peer, cuDeviceCanAccessPeer, 4000, (int *can, cu_device device, cu_device peer))

/* Contexts */
required(primary_retain, cuDevicePrimaryCtxRetain, 7000, (cu_context *context, cu_device device))
required(primary_release, cuDevicePrimaryCtxRelease, 11000, (cu_device device))
required(context_get_current, cuCtxGetCurrent, 4000, (cu_context *context))
required(context_set_current, cuCtxSetCurrent, 4000, (cu_context context))
required(context_get_device, cuCtxGetDevice, 2000, (cu_device *device))
required(context_synchronize, cuCtxSynchronize, 2000, (void))

/* Memory */
required(mem_get_info, cuMemGetInfo, 3020, (size_t *free_bytes, size_t *total))
required(mem_granularity, cuMemGetAllocationGranularity, 10020,
         (size_t *bytes, const cu_allocation_properties *properties, cu_granularity option))
required(mem_reserve, cuMemAddressReserve, 10020,
         (cu_address *address, size_t bytes, size_t alignment, cu_address hint, unsigned long long flags))
required(mem_unreserve, cuMemAddressFree, 10020, (cu_address address, size_t bytes))
required(mem_create, cuMemCreate, 10020,
         (cu_physical *handle, size_t bytes, const cu_allocation_properties *properties, unsigned long long flags))
required(mem_release, cuMemRelease, 10020, (cu_physical handle))
required(mem_map, cuMemMap, 10020,
         (cu_address address, size_t bytes, size_t offset, cu_physical handle, unsigned long long flags))
required(mem_unmap, cuMemUnmap, 10020, (cu_address address, size_t bytes))
required(mem_set_access, cuMemSetAccess, 10020,
         (cu_address address, size_t bytes, const cu_access *access, size_t count))
required(host_alloc, cuMemHostAlloc, 2020, (void **address, size_t bytes, unsigned flags))
required(host_free, cuMemFreeHost, 2000, (void *address))
required(pointer_get_attribute, cuPointerGetAttribute, 4000,
         (void *value, cu_pointer_attribute attribute, cu_address address))
required(pointer_get_attributes, cuPointerGetAttributes, 7000,
         (unsigned count, cu_pointer_attribute *attributes, void **values, cu_address address))

/* Streams and events */
required(stream_create, cuStreamCreate, 2000, (cu_stream *stream, unsigned flags))
required(stream_create_with_priority, cuStreamCreateWithPriority, 5050,
         (cu_stream *stream, unsigned flags, int priority))
required(stream_priorities, cuCtxGetStreamPriorityRange, 5050, (int *least, int *greatest))
required(stream_get_context, cuStreamGetCtx, 9020, (cu_stream stream, cu_context *context))
required(stream_get_flags, cuStreamGetFlags, 5050, (cu_stream stream, unsigned *flags))
required(stream_destroy, cuStreamDestroy, 4000, (cu_stream stream))
required(stream_synchronize, cuStreamSynchronize, 2000, (cu_stream stream))
required(stream_query, cuStreamQuery, 2000, (cu_stream stream))
required(stream_wait_event, cuStreamWaitEvent, 3020, (cu_stream stream, cu_event event, unsigned flags))
required(event_create, cuEventCreate, 2000, (cu_event *event, unsigned flags))
required(event_destroy, cuEventDestroy, 4000, (cu_event event))
required(event_record, cuEventRecord, 2000, (cu_event event, cu_stream stream))
required(event_query, cuEventQuery, 2000, (cu_event event))
required(event_synchronize, cuEventSynchronize, 2000, (cu_event event))
required(event_elapsed_time, cuEventElapsedTime, 2000, (float *milliseconds, cu_event begin, cu_event end))

/* Work */
required(copy_async, cuMemcpyAsync, 4000, (cu_address dst, cu_address src, size_t bytes, cu_stream stream))
required(copy_3d_async, cuMemcpy3DAsync, 3020, (const cu_copy *copy, cu_stream stream))
required(memset_8_async, cuMemsetD8Async, 3020,
         (cu_address dst, unsigned char value, size_t count, cu_stream stream))
required(memset_16_async, cuMemsetD16Async, 3020,
         (cu_address dst, unsigned short value, size_t count, cu_stream stream))
required(memset_32_async, cuMemsetD32Async, 3020, (cu_address dst, unsigned value, size_t count, cu_stream stream))
required(memset_2d_8_async, cuMemsetD2D8Async, 3020,
         (cu_address dst, size_t pitch, unsigned char value, size_t width, size_t height, cu_stream stream))
required(memset_2d_16_async, cuMemsetD2D16Async, 3020,
         (cu_address dst, size_t pitch, unsigned short value, size_t width, size_t height, cu_stream stream))
required(memset_2d_32_async, cuMemsetD2D32Async, 3020,
         (cu_address dst, size_t pitch, unsigned value, size_t width, size_t height, cu_stream stream))
required(import_external_semaphore, cuImportExternalSemaphore, 10000,
         (cu_external_semaphore *semaphore, const cu_semaphore_handle *handle))
required(destroy_external_semaphore, cuDestroyExternalSemaphore, 10000, (cu_external_semaphore semaphore))
required(signal_semaphores_async, cuSignalExternalSemaphoresAsync, 10000,
         (const cu_external_semaphore *semaphores, const cu_signal_params *params, unsigned count, cu_stream stream))
required(wait_semaphores_async, cuWaitExternalSemaphoresAsync, 10000,
         (const cu_external_semaphore *semaphores, const cu_wait_params *params, unsigned count, cu_stream stream))
required(stream_batch_mem_op, cuStreamBatchMemOp, 11070,
         (cu_stream stream, unsigned count, cu_memory_operation *operations, unsigned flags))
required(stream_wait_value_32, cuStreamWaitValue32, 11070,
         (cu_stream stream, cu_address address, uint32_t value, unsigned flags))
required(launch_host_function, cuLaunchHostFunc, 10000, (cu_stream stream, cu_host_function function, void *user))
required(launch_kernel, cuLaunchKernel, 4000,
         (cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
          unsigned block_z, unsigned shared_bytes, cu_stream stream, void **params, void **extra))

required(launch_kernel_ex, cuLaunchKernelEx, 11060,
         (const cu_launch_config *config, cu_function function, void **params, void **extra))

/* Code */
required(module_load, cuModuleLoadDataEx, 2010,
         (cu_module *module, const void *image, unsigned option_count, cu_jit_option *options, void **values))
required(module_unload, cuModuleUnload, 2000, (cu_module module))
required(module_get_function, cuModuleGetFunction, 2000,
         (cu_function *function, cu_module module, const char *name))
required(module_get_global, cuModuleGetGlobal, 3020,
         (cu_address *address, size_t *bytes, cu_module module, const char *name))
required(function_get_module, cuFuncGetModule, 11000, (cu_module *module, cu_function function))
required(function_get_attribute, cuFuncGetAttribute, 2020,
         (int *value, cu_function_attribute attribute, cu_function function))
required(function_most_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050,
         (int *blocks, cu_function function, int threads, size_t shared_bytes))
required(function_set_attribute, cuFuncSetAttribute, 9000,
         (cu_function function, cu_function_attribute attribute, int value))
optional(function_load, cuFuncLoad, 12040, (cu_function function))
optional(function_param_info, cuFuncGetParamInfo, 12040,
         (cu_function function, size_t index, size_t *offset, size_t *bytes))

/* Graphs */
required(graph_create, cuGraphCreate, 10000, (cu_graph *graph, unsigned flags))
required(graph_destroy, cuGraphDestroy, 10000, (cu_graph graph))
required(graph_add_kernel, cuGraphAddKernelNode, 12000,
         (cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count,
          const cu_kernel_params *params))
required(graph_add_copy, cuGraphAddMemcpyNode, 10000,
         (cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count, const cu_copy *params,
          cu_context context))
required(graph_add_host, cuGraphAddHostNode, 10000,
         (cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count,
          const cu_host_params *params))
required(graph_add_memory_operations, cuGraphAddBatchMemOpNode, 11070,
         (cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count,
          const cu_memory_operations_params *params))
required(graph_add_semaphore_signal, cuGraphAddExternalSemaphoresSignalNode, 11020,
         (cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count,
          const cu_signals_params *params))
required(graph_add_semaphore_wait, cuGraphAddExternalSemaphoresWaitNode, 11020,
         (cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count,
          const cu_waits_params *params))
required(graph_add_empty, cuGraphAddEmptyNode, 10000,
         (cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count))
required(graph_add_event_record, cuGraphAddEventRecordNode, 11010,
         (cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count, cu_event event))
required(graph_add_event_wait, cuGraphAddEventWaitNode, 11010,
         (cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count, cu_event event))
required(graph_add_memset, cuGraphAddMemsetNode, 10000,
         (cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count,
          const cu_memset_params *params, cu_context context))
required(graph_add_child, cuGraphAddChildGraphNode, 10000,
         (cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count, cu_graph child))
required(graph_clone, cuGraphClone, 10000, (cu_graph *clone, cu_graph graph))
required(graph_get_nodes, cuGraphGetNodes, 10000, (cu_graph graph, cu_graph_node *nodes, size_t *count))
required(graph_get_edges, cuGraphGetEdges, 12030,
         (cu_graph graph, cu_graph_node *from, cu_graph_node *to, cu_edge_data *data, size_t *count))
required(graph_node_get_type, cuGraphNodeGetType, 10000, (cu_graph_node node, cu_node_type *type))
required(graph_find_in_clone, cuGraphNodeFindInClone, 10000, (cu_graph_node *node, cu_graph_node of, cu_graph clone))
required(graph_kernel_get_params, cuGraphKernelNodeGetParams, 12000, (cu_graph_node node, cu_kernel_params *params))
required(graph_kernel_set_params, cuGraphKernelNodeSetParams, 12000,
         (cu_graph_node node, const cu_kernel_params *params))
required(graph_copy_get_params, cuGraphMemcpyNodeGetParams, 10000, (cu_graph_node node, cu_copy *params))
required(graph_memset_get_params, cuGraphMemsetNodeGetParams, 10000, (cu_graph_node node, cu_memset_params *params))
required(graph_host_get_params, cuGraphHostNodeGetParams, 10000, (cu_graph_node node, cu_host_params *params))
required(graph_memory_operations_get_params, cuGraphBatchMemOpNodeGetParams, 11070,
         (cu_graph_node node, cu_memory_operations_params *params))
required(graph_child_get_graph, cuGraphChildGraphNodeGetGraph, 10000, (cu_graph_node node, cu_graph *graph))
required(graph_instantiate, cuGraphInstantiateWithParams, 12000,
         (cu_graph_exec *exec, cu_graph graph, cu_instantiate_params *params))
required(exec_destroy, cuGraphExecDestroy, 10000, (cu_graph_exec exec))
required(exec_upload, cuGraphUpload, 11010, (cu_graph_exec exec, cu_stream stream))
required(exec_launch, cuGraphLaunch, 10000, (cu_graph_exec exec, cu_stream stream))
required(exec_set_kernel, cuGraphExecKernelNodeSetParams, 12000,
         (cu_graph_exec exec, cu_graph_node node, const cu_kernel_params *params))
required(exec_set_copy, cuGraphExecMemcpyNodeSetParams, 10020,
         (cu_graph_exec exec, cu_graph_node node, const cu_copy *params, cu_context context))
required(exec_set_memory_operations, cuGraphExecBatchMemOpNodeSetParams, 11070,
         (cu_graph_exec exec, cu_graph_node node, const cu_memory_operations_params *params))
required(exec_set_semaphore_signal, cuGraphExecExternalSemaphoresSignalNodeSetParams, 11020,
         (cu_graph_exec exec, cu_graph_node node, const cu_signals_params *params))
required(exec_set_semaphore_wait, cuGraphExecExternalSemaphoresWaitNodeSetParams, 11020,
         (cu_graph_exec exec, cu_graph_node node, const cu_waits_params *params))
required(exec_set_host, cuGraphExecHostNodeSetParams, 10020,
         (cu_graph_exec exec, cu_graph_node node, const cu_host_params *params))
required(exec_set_event_record, cuGraphExecEventRecordNodeSetEvent, 11010,
         (cu_graph_exec exec, cu_graph_node node, cu_event event))
required(exec_set_event_wait, cuGraphExecEventWaitNodeSetEvent, 11010,
         (cu_graph_exec exec, cu_graph_node node, cu_event event))
required(exec_set_enabled, cuGraphNodeSetEnabled, 11060, (cu_graph_exec exec, cu_graph_node node, unsigned enabled))

/* Capture */
required(capture_begin, cuStreamBeginCapture, 10010, (cu_stream stream, cu_capture_mode mode))
required(capture_end, cuStreamEndCapture, 10000, (cu_stream stream, cu_graph *graph))
required(capture_info, cuStreamGetCaptureInfo, 12030,
         (cu_stream stream, cu_capture_status *status, uint64_t *id, cu_graph *graph, const cu_graph_node **frontier,
          const cu_edge_data **data, size_t *count))
required(capture_set_dependencies, cuStreamUpdateCaptureDependencies, 12030,
         (cu_stream stream, cu_graph_node *nodes, const cu_edge_data *data, size_t count, unsigned flags))
required(capture_exchange_mode, cuThreadExchangeStreamCaptureMode, 10010, (cu_capture_mode *mode))

/* Reading captured nodes, and adding them to another graph */
required(graph_node_get_dependencies, cuGraphNodeGetDependencies, 12030,
         (cu_graph_node node, cu_graph_node *before, cu_edge_data *data, size_t *count))
required(graph_add_edges, cuGraphAddDependencies, 12030,
         (cu_graph graph, const cu_graph_node *from, const cu_graph_node *to, const cu_edge_data *data, size_t count))
required(graph_kernel_copy_attributes, cuGraphKernelNodeCopyAttributes, 11000,
         (cu_graph_node node, cu_graph_node source))
required(graph_kernel_get_attribute, cuGraphKernelNodeGetAttribute, 11000,
         (cu_graph_node node, cu_launch_attribute_id id, cu_launch_value *value))
required(graph_kernel_set_attribute, cuGraphKernelNodeSetAttribute, 11000,
         (cu_graph_node node, cu_launch_attribute_id id, const cu_launch_value *value))
required(graph_event_record_get, cuGraphEventRecordNodeGetEvent, 11010, (cu_graph_node node, cu_event *event))
required(graph_event_wait_get, cuGraphEventWaitNodeGetEvent, 11010, (cu_graph_node node, cu_event *event))
required(graph_alloc_get_params, cuGraphMemAllocNodeGetParams, 11040, (cu_graph_node node, cu_alloc_params *params))
required(graph_free_get_params, cuGraphMemFreeNodeGetParams, 11040, (cu_graph_node node, cu_address *address))
required(function_get_name, cuFuncGetName, 12030, (const char **name, cu_function function))
required(kernel_get_function, cuKernelGetFunction, 12000, (cu_function *function, cu_kernel kernel))

/* Only the fake driver of the tests has this: it runs kernels as their CPU functions. */
optional(test_kernel, rondoTestKernel, 12040,
         (const char *name, rondo_cpu_function function, rondo_cpu_block_function block_function, size_t count,
          const rondo_parameter *parameters))
optional(test_symbol, rondoTestSymbol, 12040, (const char *name, void *address, size_t bytes))

    /* clang-format on */

/* SPDX-License-Identifier: MIT
 * Functions of the driver that Rondo itself does not call, for tests that act as a foreign library. It is included in
 * the same way as vendor/cuda_driver_symbols.h.
 */
/* clang-format off */
required(context_enable_peer, cuCtxEnablePeerAccess, 4000, (cu_context peer, unsigned flags))
required(exec_set_memset, cuGraphExecMemsetNodeSetParams, 10020,
         (cu_graph_exec exec, cu_graph_node node, const cu_memset_params *params, cu_context context))
required(graph_remove_edges, cuGraphRemoveDependencies, 12030,
         (cu_graph graph, const cu_graph_node *from, const cu_graph_node *to, const cu_edge_data *data, size_t count))
required(graph_destroy_node, cuGraphDestroyNode, 10000, (cu_graph_node node))
required(mem_alloc_async, cuMemAllocAsync, 11020, (cu_address *address, size_t bytes, cu_stream stream))
required(mem_free_async, cuMemFreeAsync, 11020, (cu_address address, cu_stream stream))
required(event_record_with_flags, cuEventRecordWithFlags, 11010, (cu_event event, cu_stream stream, unsigned flags))
required(exec_update, cuGraphExecUpdate, 12000, (cu_graph_exec exec, cu_graph graph, cu_update_result *result))
required(stream_get_priority, cuStreamGetPriority, 5050, (cu_stream stream, int *priority))
required(stream_is_capturing, cuStreamIsCapturing, 10000, (cu_stream stream, cu_capture_status *status))
    /* clang-format on */

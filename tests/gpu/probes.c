/* SPDX-License-Identifier: MIT
 * What the CUDA driver does where its documentation is silent: each probe sets up one situation and prints the returned
 * codes as rows of a table. Nothing is asserted: developers read the rows and make the CPU device and the fake driver
 * do the same. docs/cuda-probes.md has the results of one driver. Not part of the build: it needs the real cuda.h and a
 * GPU: cc -I<CUDA>/include tests/gpu/probes.c -lcuda.
 *
 * Each probe runs in a separate process, because some break a capture or a context.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int probe_number;
static CUdevice device;
static CUcontext context;
static CUstream stream, other;

static const char *name_of(CUresult code) {
  const char *name = NULL;
  return cuGetErrorName(code, &name) == CUDA_SUCCESS && name != NULL ? name : "?";
}

static void row(CUresult code, const char *format, ...) {
  char what[240];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  printf("| %d | %s | %d %s |\n", probe_number, what, (int)code, name_of(code));
  fflush(stdout);
}

static void note(const char *format, ...) {
  char what[240];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  printf("| %d | %s | |\n", probe_number, what);
  fflush(stdout);
}

static void must_(CUresult code, const char *call, int line) {
  if (code == CUDA_SUCCESS) return;
  printf("| %d | SET-UP FAILED at line %d: %.100s | %d %s |\n", probe_number, line, call, (int)code, name_of(code));
  fflush(stdout);
  _exit(1);
}
#define must(call) must_(call, #call, __LINE__)

/* Building --------------------------------------------------------------------------------------------------------- */

static CUgraph new_graph(void) {
  CUgraph graph;
  must(cuGraphCreate(&graph, 0));
  return graph;
}

static CUresult try_add_alloc(CUgraph graph, const CUgraphNode *before, CUgraphNode *node, CUdeviceptr *address) {
  CUDA_MEM_ALLOC_NODE_PARAMS params;
  memset(&params, 0, sizeof params);
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  params.poolProps.location.id = device;
  params.bytesize = 4 << 20;
  const CUresult code = cuGraphAddMemAllocNode(node, graph, before, before == NULL ? 0 : 1, &params);
  *address = params.dptr;
  return code;
}

static CUgraphNode add_alloc(CUgraph graph, const CUgraphNode *before, CUdeviceptr *address) {
  CUgraphNode node;
  must(try_add_alloc(graph, before, &node, address));
  return node;
}

static CUgraphNode add_free(CUgraph graph, const CUgraphNode *before, CUdeviceptr address) {
  CUgraphNode node;
  must(cuGraphAddMemFreeNode(&node, graph, before, before == NULL ? 0 : 1, address));
  return node;
}

static CUgraphNode add_empty(CUgraph graph, const CUgraphNode *before) {
  CUgraphNode node;
  must(cuGraphAddEmptyNode(&node, graph, before, before == NULL ? 0 : 1));
  return node;
}

static CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec exec;
  must(cuGraphInstantiate(&exec, graph, 0));
  return exec;
}

static CUresult try_child(CUgraph parent, CUgraph child, CUgraphChildGraphNodeOwnership ownership, CUgraphNode *node) {
  CUgraphNodeParams params;
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = child;
  params.graph.ownership = ownership;
  return cuGraphAddNode(node, parent, NULL, NULL, 0, &params);
}

/* An IF with a body; the handle's default is 1. */
static CUgraphNode add_conditional(CUgraph graph, CUgraph *body) {
  CUgraphNodeParams params;
  CUgraphNode node;
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  must(cuGraphConditionalHandleCreate(&params.conditional.handle, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
  params.conditional.type = CU_GRAPH_COND_TYPE_IF;
  params.conditional.size = 1;
  params.conditional.ctx = context;
  must(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
  *body = params.conditional.phGraph_out[0];
  return node;
}

static void finish(const char *what) { row(cuStreamSynchronize(stream), "%s: then synchronizing", what); }

static uint64_t memory_attribute(CUgraphMem_attribute attribute) {
  cuuint64_t value = 0;
  must(cuDeviceGetGraphMemAttribute(device, attribute, &value));
  return value;
}

/* A graph of one kernel, and an exec of it ------------------------------------------------------------------------- */

static const char empty_kernel[] = ".version 6.3\n.target sm_52\n.address_size 64\n.visible .entry empty()\n{ ret; }\n";

static struct {
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec exec;
  CUDA_KERNEL_NODE_PARAMS params;
} one_kernel;

static CUDA_KERNEL_NODE_PARAMS empty_kernel_params(void) {
  CUDA_KERNEL_NODE_PARAMS params;
  CUmodule module;
  memset(&params, 0, sizeof params);
  must(cuModuleLoadData(&module, empty_kernel));
  must(cuModuleGetFunction(&params.func, module, "empty"));
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  return params;
}

static void make_one_kernel(void) {
  if (one_kernel.params.func == NULL) one_kernel.params = empty_kernel_params();
  one_kernel.graph = new_graph();
  must(cuGraphAddKernelNode(&one_kernel.node, one_kernel.graph, NULL, 0, &one_kernel.params));
  one_kernel.exec = instantiate(one_kernel.graph);
}

/* The probes ------------------------------------------------------------------------------------------------------- */

static void free_before_alloc(void) {
  CUdeviceptr address;
  CUgraph alloc = new_graph(), release = new_graph();
  add_alloc(alloc, NULL, &address);
  add_free(release, NULL, address);
  CUgraphExec first = instantiate(alloc), second = instantiate(release);
  row(cuGraphLaunch(second, stream), "free graph launched before its allocation is live");
  finish("that");
  must(cuGraphLaunch(first, stream));
  row(cuGraphLaunch(second, stream), "alloc graph, then free graph");
  row(cuGraphLaunch(second, stream), "free graph launched a second time");
  finish("that");
  row(cuGraphLaunch(first, stream), "alloc graph again");
  row(cuGraphLaunch(first, stream), "alloc graph while its allocation is live");
  finish("that");
}

static void free_outside_never_launched(void) {
  CUdeviceptr address;
  CUgraph graph = new_graph();
  add_alloc(graph, NULL, &address);
  row(cuMemFreeAsync(address, stream), "stream-ordered free of a graph allocation, not instantiated");
  row(cuMemFree(address), "immediate free of it");
  CUgraphExec exec = instantiate(graph);
  row(cuMemFreeAsync(address, stream), "stream-ordered free of a graph allocation never launched");
  row(cuMemFree(address), "immediate free of it");
  must(cuGraphLaunch(exec, stream));
  row(cuMemFreeAsync(address, stream), "stream-ordered free after the launch");
  row(cuMemFreeAsync(address, stream), "and again");
  row(cuMemFree(address), "and immediately");
  finish("that");
}

static void memory_nodes_inside(void) {
  CUdeviceptr address;
  CUgraphNode node, child_node;
  CUgraph parent = new_graph(), child = new_graph(), embedded, body;
  add_empty(child, NULL);
  must(try_child(parent, child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE, &child_node));
  must(cuGraphChildGraphNodeGetGraph(child_node, &embedded));
  row(try_add_alloc(embedded, NULL, &node, &address), "alloc node added to a child's graph");
  CUgraph conditional = new_graph();
  add_conditional(conditional, &body);
  row(try_add_alloc(body, NULL, &node, &address), "alloc node added to a conditional's body");
  CUgraph top = new_graph();
  add_alloc(top, NULL, &address);
  row(cuGraphAddMemFreeNode(&node, embedded, NULL, 0, address), "free node added to a child's graph");
  row(cuGraphAddMemFreeNode(&node, body, NULL, 0, address), "free node added to a conditional's body");
}

static CUgraph memory_graph(CUdeviceptr *address) {
  CUgraph graph = new_graph();
  CUgraphNode node = add_alloc(graph, NULL, address);
  add_free(graph, &node, *address);
  return graph;
}

static void clones_and_moves(void) {
  CUdeviceptr address;
  CUgraph graph = memory_graph(&address), copy, parent = new_graph(), second = new_graph();
  CUgraphNode node;
  CUgraphExec exec, again;
  row(cuGraphClone(&copy, graph), "cuGraphClone of a graph with memory nodes");
  row(try_child(parent, graph, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE, &node), "child by CLONE of such a graph");
  row(cuGraphInstantiate(&exec, graph, 0), "one exec of it");
  row(cuGraphInstantiate(&again, graph, 0), "a second exec of it");
  CUgraph fresh = memory_graph(&address);
  row(try_child(parent, fresh, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, &node), "child by MOVE of such a graph");
  row(try_child(second, fresh, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, &node), "moved a second time, elsewhere");
  row(try_child(second, fresh, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE, &node), "cloned as a child after the move");
  row(cuGraphInstantiate(&again, fresh, 0), "the moved graph instantiated by itself");
  row(cuGraphClone(&copy, parent), "cuGraphClone of the parent");
  row(cuGraphInstantiate(&again, parent, 0), "the parent instantiated");
  row(try_child(parent, graph, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, &node), "MOVE of a graph that has an exec");
  row(try_child(second, second, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, &node), "MOVE of a graph into itself");
  row(cuGraphDestroy(fresh), "the moved graph destroyed");
}

static void conditionals(void) {
  CUgraph graph = new_graph(), body, copy, parent = new_graph();
  CUgraphNode node;
  CUgraphExec exec, again;
  add_conditional(graph, &body);
  add_empty(body, NULL);
  row(cuGraphClone(&copy, graph), "cuGraphClone of a graph with a conditional");
  row(try_child(parent, graph, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE, &node), "child by CLONE of it");
  row(cuGraphInstantiate(&exec, graph, 0), "one exec of it");
  row(cuGraphInstantiate(&again, graph, 0), "a second exec of it");
  CUgraph fresh = new_graph();
  add_conditional(fresh, &body);
  row(try_child(parent, fresh, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, &node),
      "child by MOVE of a graph with a conditional");
}

static void update_with_memory(void) {
  CUdeviceptr address;
  CUgraph graph = memory_graph(&address), same = memory_graph(&address), empty = new_graph();
  CUgraphNode first = add_empty(empty, NULL);
  add_empty(empty, &first);
  CUgraphExec exec = instantiate(graph);
  CUgraphExecUpdateResultInfo info;
  memset(&info, 0, sizeof info);
  CUresult code = cuGraphExecUpdate(exec, same, &info);
  row(code, "update with an equal graph with memory nodes: result %d", (int)info.result);
  code = cuGraphExecUpdate(exec, graph, &info);
  row(code, "update with the graph it came from: result %d", (int)info.result);
  code = cuGraphExecUpdate(exec, empty, &info);
  row(code, "update with a graph without memory nodes: result %d", (int)info.result);
  CUgraphExec plain = instantiate(empty);
  CUgraph fresh = memory_graph(&address);
  code = cuGraphExecUpdate(plain, fresh, &info);
  row(code, "a plain exec updated with a graph with memory nodes: result %d", (int)info.result);
}

static void CUDA_CB host_callback(CUstream which, CUresult code, void *data) {
  (void)which;
  (void)code;
  (void)data;
}
static void CUDA_CB host_function(void *data) { (void)data; }

static void begin(CUstreamCaptureMode mode) { must(cuStreamBeginCapture(stream, mode)); }

static void end(const char *what) {
  CUgraph graph = NULL;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult asked = cuStreamIsCapturing(stream, &status);
  const CUresult code = cuStreamEndCapture(stream, &graph);
  row(code, "%s: capture ended (was %s, asking gave %d, graph %s)", what,
      status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? "active"
      : status == CU_STREAM_CAPTURE_STATUS_NONE ? "none"
                                                : "invalid",
      (int)asked, graph == NULL ? "NULL" : "there");
}

static CUevent event, captured_event;
static CUdeviceptr plain_memory;

static CUresult call_stream_query(void) { return cuStreamQuery(stream); }
static CUresult call_other_query(void) { return cuStreamQuery(other); }
static CUresult call_event_query(void) { return cuEventQuery(captured_event); }
static CUresult call_plain_event_query(void) { return cuEventQuery(event); }
static CUresult call_event_synchronize(void) { return cuEventSynchronize(captured_event); }
static CUresult call_synchronize(void) { return cuStreamSynchronize(stream); }
static CUresult call_other_synchronize(void) { return cuStreamSynchronize(other); }
static CUresult call_context_synchronize(void) { return cuCtxSynchronize(); }
static CUresult call_malloc(void) {
  CUdeviceptr address;
  return cuMemAlloc(&address, 4096);
}
static CUresult call_free(void) { return cuMemFree(plain_memory); }
static CUresult call_host_alloc(void) {
  void *address;
  return cuMemHostAlloc(&address, 4096, 0);
}
static CUresult call_callback(void) { return cuStreamAddCallback(stream, host_callback, NULL, 0); }
static CUresult call_attach(void) {
  CUdeviceptr managed;
  const CUresult code = cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL);
  return code != CUDA_SUCCESS ? code : cuStreamAttachMemAsync(stream, managed, 4096, CU_MEM_ATTACH_SINGLE);
}
static CUresult call_memcpy(void) {
  char bytes[16];
  return cuMemcpyDtoH(bytes, plain_memory, sizeof bytes);
}
static CUresult call_memset(void) { return cuMemsetD8(plain_memory, 0, 16); }
static CUresult call_legacy(void) { return cuMemsetD8Async(plain_memory, 0, 16, CU_STREAM_LEGACY); }
static CUresult call_capture_info(void) {
  CUstreamCaptureStatus status;
  cuuint64_t id;
  return cuStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL);
}
static CUresult call_begin_again(void) { return cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); }
static CUresult call_address_reserve(void) {
  CUdeviceptr address;
  return cuMemAddressReserve(&address, 2 << 20, 0, 0, 0);
}
static CUresult call_physical_create(void) {
  CUmemGenericAllocationHandle handle;
  CUmemAllocationProp properties;
  memset(&properties, 0, sizeof properties);
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return cuMemCreate(&handle, 2 << 20, &properties, 0);
}
static CUresult call_stream_create(void) {
  CUstream made;
  return cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);
}
static CUresult call_event_create(void) {
  CUevent made;
  return cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);
}
static CUresult call_graph_instantiate(void) {
  CUgraphExec made;
  return cuGraphInstantiate(&made, new_graph(), 0);
}
static CUresult call_trim(void) { return cuDeviceGraphMemTrim(device); }
static CUresult call_graph_create(void) {
  CUgraph made;
  return cuGraphCreate(&made, 0);
}
static CUresult call_add_kernel(void) {
  CUgraphNode made;
  return cuGraphAddKernelNode(&made, one_kernel.graph, NULL, 0, &one_kernel.params);
}
static CUresult call_set_node(void) { return cuGraphKernelNodeSetParams(one_kernel.node, &one_kernel.params); }
static CUresult call_set_exec_node(void) {
  return cuGraphExecKernelNodeSetParams(one_kernel.exec, one_kernel.node, &one_kernel.params);
}
static CUresult call_update(void) {
  CUgraphExecUpdateResultInfo info;
  return cuGraphExecUpdate(one_kernel.exec, one_kernel.graph, &info);
}
static CUresult call_exec_destroy(void) { return cuGraphExecDestroy(one_kernel.exec); }
static CUresult call_memory_info(void) {
  size_t left, total;
  return cuMemGetInfo(&left, &total);
}

static void refused_calls(void) {
  static const struct {
    const char *name;
    CUresult (*call)(void);
  } calls[] = {
      {"cuStreamQuery of the capturing stream", call_stream_query},
      {"cuStreamQuery of another stream", call_other_query},
      {"cuEventQuery of a captured event", call_event_query},
      {"cuEventQuery of another event", call_plain_event_query},
      {"cuEventSynchronize of a captured event", call_event_synchronize},
      {"cuStreamSynchronize of the capturing stream", call_synchronize},
      {"cuStreamSynchronize of another stream", call_other_synchronize},
      {"cuCtxSynchronize", call_context_synchronize},
      {"cuMemAlloc", call_malloc},
      {"cuMemFree", call_free},
      {"cuMemHostAlloc", call_host_alloc},
      {"cuStreamAddCallback", call_callback},
      {"cuStreamAttachMemAsync", call_attach},
      {"cuMemcpyDtoH", call_memcpy},
      {"cuMemsetD8", call_memset},
      {"cuMemsetD8Async on the legacy stream", call_legacy},
      {"cuStreamGetCaptureInfo", call_capture_info},
      {"cuStreamBeginCapture again", call_begin_again},
      {"cuMemAddressReserve", call_address_reserve},
      {"cuMemCreate", call_physical_create},
      {"cuStreamCreate", call_stream_create},
      {"cuEventCreate", call_event_create},
      {"cuGraphInstantiate", call_graph_instantiate},
      {"cuDeviceGraphMemTrim", call_trim},
      {"cuMemGetInfo", call_memory_info},
      {"cuGraphCreate", call_graph_create},
      {"cuGraphAddKernelNode", call_add_kernel},
      {"cuGraphKernelNodeSetParams", call_set_node},
      {"cuGraphExecKernelNodeSetParams", call_set_exec_node},
      {"cuGraphExecUpdate", call_update},
      {"cuGraphExecDestroy", call_exec_destroy},
  };
  static const struct {
    CUstreamCaptureMode mode;
    const char *name;
  } modes[] = {{CU_STREAM_CAPTURE_MODE_GLOBAL, "global"},
               {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, "thread-local"},
               {CU_STREAM_CAPTURE_MODE_RELAXED, "relaxed"}};
  for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
      must(cuMemAlloc(&plain_memory, 4096));
      make_one_kernel();
      begin(modes[m].mode);
      must(cuEventRecord(captured_event, stream));
      const CUresult code = calls[i].call();
      CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
      (void)cuStreamIsCapturing(stream, &status);
      CUgraph graph = NULL;
      const CUresult ended = cuStreamEndCapture(stream, &graph);
      row(code, "%s: %s: capture then %s, its end gave %d", modes[m].name, calls[i].name,
          status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? "active" : "invalid", (int)ended);
    }
  }
}

static void legacy_and_relaxed(void) {
  CUstream blocking;
  must(cuStreamCreate(&blocking, 0));
  begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  must(cuEventRecord(captured_event, stream));
  row(cuStreamWaitEvent(CU_STREAM_LEGACY, captured_event, 0), "the legacy stream waits for a captured event (relaxed)");
  end("that");
  begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  row(call_memcpy(), "synchronous copy under relaxed, non-blocking stream capturing");
  end("that");
  must(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  row(call_memcpy(), "synchronous copy under relaxed, blocking stream capturing");
  CUgraph graph;
  row(cuStreamEndCapture(blocking, &graph), "that: capture ended");
  must(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  row(call_legacy(), "asynchronous memset on the legacy stream, blocking stream capturing");
  row(cuStreamEndCapture(blocking, &graph), "that: capture ended");
  row(cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_RELAXED), "capture of the legacy stream");
}

static void exchange_null(void) {
  /* The driver may write through NULL: its own process, so that a crash is an answer. */
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const CUresult code = cuThreadExchangeStreamCaptureMode(NULL);
    _exit(code == CUDA_SUCCESS ? 100 : (int)code % 100);
  }
  int status = 0;
  (void)waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    note("cuThreadExchangeStreamCaptureMode(NULL): signal %d", WTERMSIG(status));
  else
    note("cuThreadExchangeStreamCaptureMode(NULL): exit %d (100 is success)", WEXITSTATUS(status));
  CUstreamCaptureMode mode = (CUstreamCaptureMode)7;
  row(cuThreadExchangeStreamCaptureMode(&mode), "an unknown mode (7)");
}

static void device_launch_with_auto_free(void) {
  CUgraph graph = new_graph(), memory;
  CUdeviceptr address;
  CUgraphExec exec;
  add_empty(graph, NULL);
  memory = memory_graph(&address);
  row(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH), "device launch, an empty node");
  row(cuGraphInstantiate(&exec, graph,
                         CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH),
      "device launch and auto-free");
  row(cuGraphInstantiate(&exec, memory, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH), "device launch with memory nodes");
  row(cuGraphInstantiate(&exec, graph, 1u << 30), "an unknown flag");
}

static void launch_while_capturing(void) {
  CUgraph graph = new_graph();
  add_empty(graph, NULL);
  CUgraphExec exec = instantiate(graph);
  begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  row(cuGraphLaunch(exec, stream), "an exec launched into a capturing stream");
  row(cuGraphLaunch(exec, stream), "that: launched again, into what is no longer valid");
  row(cuStreamSynchronize(stream), "that: waited for");
  row(cuEventRecord(event, stream), "that: an event recorded");
  row(cuMemsetD8Async(plain_memory, 0, 1, stream), "that: a fill");
  CUstreamCaptureStatus status;
  CUgraph captured;
  size_t nodes = 0;
  must(cuStreamIsCapturing(stream, &status));
  const CUresult ended = cuStreamEndCapture(stream, &captured);
  if (ended == CUDA_SUCCESS) must(cuGraphGetNodes(captured, NULL, &nodes));
  row(ended, "that: capture ended, %zu nodes", nodes);
  CUdeviceptr address;
  CUgraphExec memory = instantiate(memory_graph(&address));
  begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  row(cuGraphLaunch(memory, stream), "an exec with memory nodes launched into a capturing stream");
  end("that");
  begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  row(cuGraphUpload(exec, stream), "an exec uploaded on a capturing stream");
  end("that");
}

static void null_functions(void) {
  CUgraph graph = new_graph();
  CUgraphNode node;
  CUDA_KERNEL_NODE_PARAMS kernel;
  CUDA_HOST_NODE_PARAMS host;
  memset(&kernel, 0, sizeof kernel);
  memset(&host, 0, sizeof host);
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  row(cuGraphAddKernelNode(&node, graph, NULL, 0, &kernel), "kernel node without a function");
  row(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), "launch without a function");
  row(cuGraphAddHostNode(&node, graph, NULL, 0, &host), "host node without a function");
  row(cuLaunchHostFunc(stream, NULL, NULL), "host function NULL on a stream");
  begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  row(cuLaunchHostFunc(stream, NULL, NULL), "host function NULL on a capturing stream");
  end("that");
}

static void destroy_while_capturing(void) {
  CUstreamCaptureStatus status;
  CUgraph graph;
  const CUgraphNode *frontier;
  size_t count, nodes = 0;
  begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  must(cuLaunchHostFunc(stream, host_function, NULL));
  must(cuLaunchHostFunc(stream, host_function, NULL));
  must(cuStreamGetCaptureInfo(stream, &status, NULL, &graph, &frontier, NULL, &count));
  row(cuGraphDestroyNode(frontier[0]), "the last captured node destroyed in mid-capture");
  row(cuLaunchHostFunc(stream, host_function, NULL), "then another call captured");
  const CUresult ended = cuStreamEndCapture(stream, &graph);
  if (ended == CUDA_SUCCESS) must(cuGraphGetNodes(graph, NULL, &nodes));
  row(ended, "that: capture ended, %zu nodes", nodes);
  begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  must(cuLaunchHostFunc(stream, host_function, NULL));
  must(cuStreamGetCaptureInfo(stream, &status, NULL, &graph, NULL, NULL, NULL));
  row(cuGraphDestroy(graph), "the graph destroyed in mid-capture");
  CUgraphNode added;
  row(cuGraphAddEmptyNode(&added, graph, NULL, 0), "a node added explicitly in mid-capture");
  end("that");
}

static void used_after_destroy(void) {
  CUdeviceptr address;
  CUgraph graph = memory_graph(&address);
  note("used %llu reserved %llu before", (unsigned long long)memory_attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT),
       (unsigned long long)memory_attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT));
  CUgraphExec exec = instantiate(graph);
  static const char *const moments[] = {"after instantiate", "after launch and wait", "after exec destroy",
                                        "after graph destroy", "after trim"};
  for (int moment = 0; moment < 5; moment++) {
    if (moment == 1) {
      must(cuGraphLaunch(exec, stream));
      must(cuStreamSynchronize(stream));
    }
    if (moment == 2) must(cuGraphExecDestroy(exec));
    if (moment == 3) must(cuGraphDestroy(graph));
    if (moment == 4) must(cuDeviceGraphMemTrim(device));
    note("used %llu reserved %llu %s", (unsigned long long)memory_attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT),
         (unsigned long long)memory_attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), moments[moment]);
  }
}

static void reuse_across_a_moved_child(void) {
  CUdeviceptr inside, after, again;
  CUgraph child = memory_graph(&inside), parent = new_graph();
  CUgraphNode node;
  must(try_child(parent, child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, &node));
  CUgraphNode alloc = add_alloc(parent, &node, &after);
  alloc = add_free(parent, &alloc, after);
  add_alloc(parent, &alloc, &again);
  note("an alloc node after a moved child that frees the same size: %s address; after a free in the parent: %s",
       after == inside ? "the same" : "another", again == after ? "the same" : "another");
  CUgraphExec exec;
  row(cuGraphInstantiate(&exec, parent, 0), "instantiated");
}

static void memset_on_graph_memory(void) {
  CUdeviceptr address;
  CUgraph graph = new_graph();
  CUgraphNode alloc = add_alloc(graph, NULL, &address), node;
  CUDA_MEMSET_NODE_PARAMS params;
  memset(&params, 0, sizeof params);
  params.dst = address;
  params.value = 0x5a;
  params.elementSize = 1;
  params.width = 4096;
  params.height = 1;
  row(cuGraphAddMemsetNode(&node, graph, &alloc, 1, &params, context), "memset node on graph memory");
  CUgraphExec exec = instantiate(graph);
  unsigned char bytes[16] = {0};
  row(cuGraphLaunch(exec, stream), "launched");
  must(cuMemcpyDtoHAsync(bytes, address, sizeof bytes, stream));
  must(cuStreamSynchronize(stream));
  note("the bytes read back are %s", bytes[0] == 0x5a && bytes[15] == 0x5a ? "right" : "wrong");
}

/* Memory that is mapped later -------------------------------------------------------------------------------------- */

enum { PAGE = 2 << 20 };

static CUdeviceptr reserve(void) {
  CUdeviceptr address;
  must(cuMemAddressReserve(&address, PAGE, 0, 0, 0));
  return address;
}

static void map_page(CUdeviceptr address) {
  CUmemGenericAllocationHandle handle;
  CUmemAllocationProp properties;
  CUmemAccessDesc access;
  memset(&properties, 0, sizeof properties);
  memset(&access, 0, sizeof access);
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  must(cuMemCreate(&handle, PAGE, &properties, 0));
  must(cuMemMap(address, PAGE, 0, handle, 0));
  must(cuMemSetAccess(address, PAGE, &access, 1));
  must(cuMemRelease(handle));
}

static CUDA_MEMCPY3D copy_to(CUdeviceptr address, CUmemorytype type) {
  CUDA_MEMCPY3D copy;
  memset(&copy, 0, sizeof copy);
  copy.srcMemoryType = type;
  copy.srcDevice = plain_memory;
  copy.dstMemoryType = type;
  copy.dstDevice = address;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = 64;
  copy.srcHeight = copy.dstHeight = copy.Height = copy.Depth = 1;
  return copy;
}

static CUDA_MEMSET_NODE_PARAMS set_at(CUdeviceptr address) {
  CUDA_MEMSET_NODE_PARAMS params;
  memset(&params, 0, sizeof params);
  params.dst = address;
  params.value = 0x5a;
  params.elementSize = 1;
  params.width = 64;
  params.height = 1;
  return params;
}

static unsigned char byte_at(CUdeviceptr address) {
  unsigned char byte = 0;
  must(cuStreamSynchronize(stream));
  must(cuMemcpyDtoH(&byte, address, 1));
  return byte;
}

static void unmapped_addresses_in_nodes(void) {
  const CUdeviceptr address = reserve();
  const CUDA_MEMSET_NODE_PARAMS set = set_at(address), set_plain = set_at(plain_memory);
  const CUDA_MEMCPY3D unified = copy_to(address, CU_MEMORYTYPE_UNIFIED), typed = copy_to(address, CU_MEMORYTYPE_DEVICE);
  const CUDA_MEMCPY3D plain = copy_to(plain_memory + 128, CU_MEMORYTYPE_DEVICE);
  CUgraph graph = new_graph();
  CUgraphNode set_node, copy_node, node;
  row(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context), "memset node on a reserved, unmapped address");
  row(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &unified, context), "copy node, type unified, to it");
  row(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &typed, context), "copy node, type device, to it");
  graph = new_graph();
  must(cuGraphAddMemsetNode(&set_node, graph, NULL, 0, &set_plain, context));
  must(cuGraphAddMemcpyNode(&copy_node, graph, &set_node, 1, &plain, context));
  CUgraphExec exec = instantiate(graph);
  row(cuGraphExecMemsetNodeSetParams(exec, set_node, &set, context), "an exec's memset set to an unmapped address");
  row(cuGraphExecMemcpyNodeSetParams(exec, copy_node, &typed, context), "an exec's copy set to an unmapped address");
  map_page(address);
  row(cuGraphExecMemsetNodeSetParams(exec, set_node, &set, context), "an exec's memset set to it once mapped");
  row(cuGraphExecMemcpyNodeSetParams(exec, copy_node, &typed, context), "an exec's copy set to it once mapped");
}

static void remapped_under_an_exec(void) {
  const CUdeviceptr address = reserve();
  map_page(address);
  const CUDA_MEMSET_NODE_PARAMS set = set_at(address);
  const CUDA_MEMCPY3D copy = copy_to(address + 4096, CU_MEMORYTYPE_DEVICE);
  CUgraph graph = new_graph();
  CUgraphNode node;
  must(cuMemsetD8(plain_memory, 0x33, 64));
  must(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
  must(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context));
  CUgraphExec exec = instantiate(graph);
  row(cuGraphLaunch(exec, stream), "a memset and a copy on mapped memory");
  note("bytes %02x %02x (5a 33 expected)", byte_at(address), byte_at(address + 4096));
  must(cuMemUnmap(address, PAGE));
  row(cuGraphUpload(exec, stream), "uploaded while unmapped");
  must(cuStreamSynchronize(stream));
  map_page(address);
  must(cuMemsetD8(address, 0, PAGE));
  row(cuGraphLaunch(exec, stream), "launched after other pages were mapped there");
  note("bytes %02x %02x (5a 33 expected)", byte_at(address), byte_at(address + 4096));
}

static void no_current_context(void) {
  CUgraph graph = new_graph();
  add_empty(graph, NULL);
  CUgraphExec exec = instantiate(graph);
  must(cuGraphLaunch(exec, stream));
  must(cuCtxSetCurrent(NULL));
  row(cuGraphLaunch(exec, stream), "cuGraphLaunch without a current context");
  row(cuStreamSynchronize(stream), "cuStreamSynchronize");
  row(cuEventRecord(event, stream), "cuEventRecord");
  row(cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
  row(cuEventQuery(event), "cuEventQuery");
  row(cuMemsetD8Async(plain_memory, 0, 16, stream), "cuMemsetD8Async");
  row(cuLaunchHostFunc(stream, host_function, NULL), "cuLaunchHostFunc");
}

static void CUDA_CB wait_for_flag(void *data) {
  for (int i = 0; i < 300 && *(volatile int *)data == 0; i++) usleep(1000);
}
static void CUDA_CB set_flag(void *data) { *(volatile int *)data = 1; }

static void host_functions_of_two_streams(void) {
  static int flag;
  must(cuLaunchHostFunc(stream, wait_for_flag, &flag));
  must(cuLaunchHostFunc(other, set_flag, &flag));
  int waited = 0;
  while (cuStreamQuery(other) == CUDA_ERROR_NOT_READY && waited < 1000) {
    usleep(1000);
    waited++;
  }
  note("a host function on one stream waits (300 ms at most) for one on another: the other ran after about %d ms",
       waited);
}

/* While a stream is held ------------------------------------------------------------------------------------------- */

/* What the calls below work on, made before the stream is held. */
static struct {
  CUmodule module, fresh_module;
  CUfunction function, fresh_function;
  void *pinned, *fresh_pinned;
  CUdeviceptr reserved, fresh_reserved;
  CUmemGenericAllocationHandle handle, fresh_handle;
  CUstream fresh_stream;
  CUevent fresh_event;
  CUgraph graph, fresh_graph;
  CUgraphNode node;
  CUgraphExec exec, held_exec, fresh_exec;
  CUDA_KERNEL_NODE_PARAMS params;
  unsigned char bytes[4096];
} held;

static volatile uint32_t *held_word;
static uint32_t held_number;

static void CUDA_CB wait_for_word(void *number) {
  while ((int32_t)(*held_word - (uint32_t)(uintptr_t)number) < 0) usleep(100);
}

static void *open_later(void *number) {
  usleep(300000);
  *held_word = (uint32_t)(uintptr_t)number;
  return NULL;
}

static double now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static CUmemAllocationProp device_memory(void) {
  CUmemAllocationProp prop;
  memset(&prop, 0, sizeof prop);
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  return prop;
}

static CUresult allow(CUdeviceptr address, size_t bytes) {
  CUmemAccessDesc access;
  memset(&access, 0, sizeof access);
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return cuMemSetAccess(address, bytes, &access, 1);
}

static CUgraph kernel_graph(CUgraphNode *node) {
  CUgraph graph = new_graph();
  memset(&held.params, 0, sizeof held.params);
  held.params.func = held.function;
  held.params.gridDimX = held.params.gridDimY = held.params.gridDimZ = 1;
  held.params.blockDimX = held.params.blockDimY = held.params.blockDimZ = 1;
  must(cuGraphAddKernelNode(node, graph, NULL, 0, &held.params));
  return graph;
}

#define CALLS_WHILE_HELD(call)                                                                                        \
  call(cuModuleLoadData(&held.fresh_module, empty_kernel)) call(                                                      \
      cuModuleGetFunction(&held.fresh_function, held.fresh_module, "empty")) call(cuFuncLoad(held.fresh_function))    \
      call(cuLaunchKernel(held.fresh_function, 1, 1, 1, 1, 1, 1, 0, other, NULL, NULL)) call(                         \
          cuLaunchKernel(held.function, 1, 1, 1, 1, 1, 1, 0, other, NULL, NULL)) call(cuStreamSynchronize(other))     \
          call(cuMemHostAlloc(&held.fresh_pinned, 4096, CU_MEMHOSTALLOC_PORTABLE)) call(cuMemFreeHost(held.pinned))   \
              call(cuMemAddressReserve(&held.fresh_reserved, PAGE, 0, 0, 0)) call(                                    \
                  cuMemMap(held.fresh_reserved, PAGE, 0, held.handle, 0)) call(allow(held.fresh_reserved, PAGE))      \
                  call(cuMemsetD8Async(held.fresh_reserved, 1, 16, other)) call(                                      \
                      cuMemcpyAsync((CUdeviceptr)(uintptr_t)held.bytes, held.fresh_reserved, 4096, other))            \
                      call(cuMemcpyAsync(held.fresh_reserved, (CUdeviceptr)(uintptr_t)held.bytes, 4096, other)) call( \
                          cuMemUnmap(held.fresh_reserved, PAGE)) call(cuMemAddressFree(held.fresh_reserved, PAGE))    \
                          call(cuStreamCreate(&held.fresh_stream, CU_STREAM_NON_BLOCKING))                            \
                              call(cuStreamDestroy(held.fresh_stream)) call(cuEventCreate(                            \
                                  &held.fresh_event, CU_EVENT_DISABLE_TIMING)) call(cuEventDestroy(held.fresh_event)) \
                                  call(cuGraphInstantiate(&held.fresh_exec, held.graph, 0)) call(cuGraphUpload(       \
                                      held.fresh_exec, other)) call(cuGraphLaunch(held.fresh_exec, other))            \
                                      call(cuGraphExecKernelNodeSetParams(held.fresh_exec, held.node, &held.params))  \
                                          call(cuGraphExecDestroy(held.fresh_exec))                                   \
                                              call(cuGraphLaunch(held.held_exec, stream))                             \
                                                  call(cuGraphExecKernelNodeSetParams(held.held_exec, held.node,      \
                                                                                      &held.params))                  \
                                                      call(cuGraphExecDestroy(held.held_exec))                        \
                                                          call(cuMemGetInfo(&(size_t){0}, &(size_t){0}))              \
                                                              call(cuStreamQuery(other))                              \
                                                                  call(cuLaunchHostFunc(other, host_function, NULL))  \
                                                                      call(cuModuleUnload(held.fresh_module))         \
                                                                          call(cuMemRelease(held.handle))

static void hold(bool by_host_function) {
  pthread_t opener;
  held_number++;
  if (by_host_function)
    must(cuLaunchHostFunc(stream, wait_for_word, (void *)(uintptr_t)held_number));
  else
    must(cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)held_word, held_number, CU_STREAM_WAIT_VALUE_GEQ));
  if (pthread_create(&opener, NULL, open_later, (void *)(uintptr_t)held_number) == 0) (void)pthread_detach(opener);
}

static void calls_while_held(bool by_host_function) {
  const CUmemAllocationProp prop = device_memory();
  must(cuMemHostAlloc((void **)(uintptr_t)&held_word, 4096, CU_MEMHOSTALLOC_PORTABLE));
  *held_word = 0;
  must(cuMemHostAlloc(&held.pinned, 4096, CU_MEMHOSTALLOC_PORTABLE));
  must(cuModuleLoadData(&held.module, empty_kernel));
  must(cuModuleGetFunction(&held.function, held.module, "empty"));
  must(cuLaunchKernel(held.function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
  must(cuMemCreate(&held.handle, PAGE, &prop, 0));
  held.graph = kernel_graph(&held.node);
  held.held_exec = instantiate(held.graph);
  must(cuGraphLaunch(held.held_exec, stream));
  must(cuCtxSynchronize());
#define timed(call)                                                                                            \
  do {                                                                                                         \
    hold(by_host_function);                                                                                    \
    const double begin = now();                                                                                \
    const CUresult code = call;                                                                                \
    const double seconds = now() - begin;                                                                      \
    row(code, "%s: %s%s", by_host_function ? "host function" : "value", seconds > 0.2 ? "WAITS " : "", #call); \
    while ((int32_t)(*held_word - held_number) < 0) usleep(1000);                                              \
    must(cuStreamSynchronize(stream));                                                                         \
  } while (0);
  CALLS_WHILE_HELD(timed)
}

static void calls_while_a_value_is_waited_for(void) { calls_while_held(false); }
static void calls_while_a_host_function_runs(void) { calls_while_held(true); }

/* A graph: a host function that lets a word be written from elsewhere, then a wait for it. */
static void *write_word(void *unused) {
  (void)unused;
  usleep(50000);
  *held_word = 1;
  return NULL;
}

static void CUDA_CB reset_word(void *unused) {
  pthread_t writer;
  (void)unused;
  *held_word = 0;
  if (pthread_create(&writer, NULL, write_word, NULL) == 0) (void)pthread_detach(writer);
}

static void value_waits_in_graphs(void) {
  CUgraph graph = new_graph();
  CUgraphNode host, wait;
  must(cuMemHostAlloc((void **)(uintptr_t)&held_word, 4096, CU_MEMHOSTALLOC_PORTABLE));
  const CUDA_HOST_NODE_PARAMS host_params = {.fn = reset_word};
  CUstreamBatchMemOpParams operation;
  memset(&operation, 0, sizeof operation);
  operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operation.waitValue.address = (CUdeviceptr)(uintptr_t)held_word;
  operation.waitValue.value = 1;
  operation.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.ctx = context, .count = 1, .paramArray = &operation};
  row(cuGraphAddHostNode(&host, graph, NULL, 0, &host_params), "host node");
  row(cuGraphAddBatchMemOpNode(&wait, graph, &host, 1, &params), "wait node after it");
  CUgraphExec exec = instantiate(graph);
  for (int i = 0; i < 3; i++) {
    const double begin = now();
    row(cuGraphLaunch(exec, stream), "launched");
    row(cuStreamSynchronize(stream), "waited for");
    note("took %.0f ms (50 expected)", (now() - begin) * 1e3);
  }
  row(cuGraphExecDestroy(exec), "destroyed");
}

/* Gates inside graphs ---------------------------------------------------------------------------------------------- */

/* Graphs of a kernel, a host function that notes the time, a gate that the caller opens, and a kernel; and how the gate
 * is made. */
enum { GATES = 8 };
typedef enum gate_kind { GATE_VALUE, GATE_KERNEL, GATE_EVENT, GATE_HOST_FUNCTION, GATE_KINDS } gate_kind;
static const char *const gate_names[GATE_KINDS] = {"a node that waits for a value", "a kernel that watches a word",
                                                   "an event-wait node", "a host function that waits"};

static const char watching_kernel[] =
    ".version 6.3\n.target sm_70\n.address_size 64\n.visible .entry watch(.param .u64 p_word)\n{\n"
    ".reg .pred %done; .reg .b64 %word; .reg .b32 %value;\n"
    "ld.param.u64 %word, [p_word];\n"
    "again: ld.relaxed.sys.u32 %value, [%word]; setp.ne.u32 %done, %value, 0; @%done bra over;\n"
    "nanosleep.u32 1000; bra again;\n"
    "over: ret;\n}\n";

static struct {
  volatile uint32_t *words;
  volatile double reached[GATES];
  CUfunction watch;
  CUstream streams[GATES], helpers[GATES];
  CUevent events[GATES];
} gates;

static void CUDA_CB note_reached(void *number) { gates.reached[(uintptr_t)number] = now(); }
static void CUDA_CB wait_at_gate(void *number) {
  while (gates.words[16 * (uintptr_t)number] == 0) usleep(100);
}

static CUgraphNode add_gate(CUgraph graph, CUgraphNode before, gate_kind kind, uintptr_t number) {
  CUdeviceptr word = (CUdeviceptr)(uintptr_t)&gates.words[16 * number];
  CUgraphNode node;
  if (kind == GATE_VALUE) {
    CUstreamBatchMemOpParams operation;
    memset(&operation, 0, sizeof operation);
    operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    operation.waitValue.address = word;
    operation.waitValue.value = 1;
    operation.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.ctx = context, .count = 1, .paramArray = &operation};
    must(cuGraphAddBatchMemOpNode(&node, graph, &before, 1, &params));
  } else if (kind == GATE_KERNEL) {
    void *args[] = {&word};
    CUDA_KERNEL_NODE_PARAMS params = held.params;
    params.func = gates.watch;
    params.kernelParams = args;
    must(cuGraphAddKernelNode(&node, graph, &before, 1, &params));
  } else if (kind == GATE_EVENT) {
    must(cuGraphAddEventWaitNode(&node, graph, &before, 1, gates.events[number]));
  } else {
    const CUDA_HOST_NODE_PARAMS params = {.fn = wait_at_gate, .userData = (void *)number};
    must(cuGraphAddHostNode(&node, graph, &before, 1, &params));
  }
  return node;
}

static void add_gated_line(CUgraph graph, gate_kind kind, uintptr_t number) {
  const CUDA_HOST_NODE_PARAMS note = {.fn = note_reached, .userData = (void *)number};
  CUgraphNode node, after;
  must(cuGraphAddKernelNode(&node, graph, NULL, 0, &held.params));
  must(cuGraphAddHostNode(&after, graph, &node, 1, &note));
  node = add_gate(graph, after, kind, number);
  must(cuGraphAddKernelNode(&after, graph, &node, 1, &held.params));
}

/* What an event-wait node waits for has to be recorded before the launch. */
static void arm_event(uintptr_t number) {
  must(cuStreamWaitValue32(gates.helpers[number], (CUdeviceptr)(uintptr_t)&gates.words[16 * number], 1,
                           CU_STREAM_WAIT_VALUE_EQ));
  must(cuEventRecord(gates.events[number], gates.helpers[number]));
}

/* Opens the gates after half a second, the last first, 50 ms apart. */
static void *open_gates(void *count) {
  usleep(500000);
  for (uintptr_t i = (uintptr_t)count; i-- > 0;) {
    gates.words[16 * i] = 1;
    usleep(50000);
  }
  return NULL;
}

static void say_reached(const char *what, gate_kind kind, size_t count, double begin) {
  size_t at_once = 0;
  for (size_t i = 0; i < count; i++) at_once += gates.reached[i] > 0 && gates.reached[i] - begin < 0.4;
  note("%s, %s: %zu of %zu host functions ran while all gates were closed; all done after %.0f ms", what,
       gate_names[kind], at_once, count, (now() - begin) * 1e3);
}

static void close_gates(gate_kind kind, size_t count) {
  for (size_t i = 0; i < count; i++) {
    gates.words[16 * i] = 0;
    gates.reached[i] = 0;
    if (kind == GATE_EVENT) arm_event(i);
  }
}

/* `count` graphs on streams of their own, or one graph of as many lines. */
static void run_gated(gate_kind kind, size_t count, bool together) {
  CUgraphExec execs[GATES];
  pthread_t opener;
  const size_t graphs = together ? 1 : count;
  close_gates(kind, count);
  for (size_t i = 0; i < graphs; i++) {
    CUgraph graph = new_graph();
    for (size_t line = i; line < (together ? count : i + 1); line++) add_gated_line(graph, kind, line);
    execs[i] = instantiate(graph);
    must(cuGraphUpload(execs[i], gates.streams[i]));
  }
  for (size_t i = 0; i < graphs; i++) must(cuStreamSynchronize(gates.streams[i]));
  must(pthread_create(&opener, NULL, open_gates, (void *)(uintptr_t)count) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
  const double begin = now();
  for (size_t i = 0; i < graphs; i++) must(cuGraphLaunch(execs[i], gates.streams[i]));
  const double launched = now();
  for (size_t i = 0; i < graphs; i++) must(cuStreamSynchronize(gates.streams[i]));
  say_reached(together ? "lines of one graph" : "graphs on streams", kind, count, begin);
  if (launched - begin > 0.2) note("the launches themselves took %.0f ms", (launched - begin) * 1e3);
  (void)pthread_join(opener, NULL);
}

static void gates_inside_graphs(gate_kind kind) {
  CUgraphNode node;
  void *memory;
  must(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_PORTABLE));
  gates.words = memory;
  must(cuModuleLoadData(&held.module, empty_kernel));
  must(cuModuleGetFunction(&held.function, held.module, "empty"));
  must(cuModuleLoadData(&held.fresh_module, watching_kernel));
  must(cuModuleGetFunction(&gates.watch, held.fresh_module, "watch"));
  must(cuFuncLoad(held.function));
  must(cuFuncLoad(gates.watch));
  (void)kernel_graph(&node);
  for (size_t i = 0; i < GATES; i++) {
    must(cuStreamCreate(&gates.streams[i], CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&gates.helpers[i], CU_STREAM_NON_BLOCKING));
    must(cuEventCreate(&gates.events[i], CU_EVENT_DISABLE_TIMING));
  }
  for (size_t count = 2; count <= GATES; count *= 4) {
    run_gated(kind, count, false);
    run_gated(kind, count, true);
  }
}

static void gates_by_value(void) { gates_inside_graphs(GATE_VALUE); }
static void gates_by_kernel(void) { gates_inside_graphs(GATE_KERNEL); }
static void gates_by_event(void) { gates_inside_graphs(GATE_EVENT); }
static void gates_by_host_function(void) { gates_inside_graphs(GATE_HOST_FUNCTION); }

/* Copies of what a graph allocates --------------------------------------------------------------------------------- */

static int type_of(CUdeviceptr address) {
  unsigned type = 0;
  return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS ? (int)type : -1;
}

static CUresult add_copy(CUgraph graph, const CUgraphNode *before, CUdeviceptr dst, CUdeviceptr src, CUmemorytype type,
                         CUgraphNode *node) {
  CUDA_MEMCPY3D copy = copy_to(dst, type);
  copy.srcDevice = src;
  return cuGraphAddMemcpyNode(node, graph, before, before == NULL ? 0 : 1, &copy, context);
}

static void try_copies(CUgraph graph, const CUgraphNode *before, CUdeviceptr memory, const char *moment) {
  CUgraphNode node;
  note("memory type by the address, %s: %d", moment, type_of(memory));
  row(add_copy(graph, before, plain_memory, memory, CU_MEMORYTYPE_UNIFIED, &node), "a unified copy from it, %s",
      moment);
  row(add_copy(graph, before, plain_memory, memory, CU_MEMORYTYPE_DEVICE, &node), "a device copy from it, %s", moment);
  row(add_copy(graph, before, memory + 64, plain_memory, CU_MEMORYTYPE_UNIFIED, &node), "a unified copy to it, %s",
      moment);
  row(add_copy(graph, before, memory + 64, plain_memory, CU_MEMORYTYPE_DEVICE, &node), "a device copy to it, %s",
      moment);
}

static CUgraphNode frontier_of(CUgraph *graph) {
  CUstreamCaptureStatus status;
  const CUgraphNode *nodes = NULL;
  size_t count = 0;
  must(cuStreamGetCaptureInfo(stream, &status, NULL, graph, &nodes, NULL, &count));
  return nodes[0];
}

static void run_graph(CUgraph graph, const char *what) {
  CUgraphExec exec = NULL;
  CUDA_GRAPH_INSTANTIATE_PARAMS params;
  memset(&params, 0, sizeof params);
  params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  const CUresult code = cuGraphInstantiateWithParams(&exec, graph, &params);
  row(code, "%s instantiated: result %d", what, (int)params.result_out);
  if (code != CUDA_SUCCESS) return;
  row(cuGraphLaunch(exec, stream), "launched");
  finish(what);
}

static void copies_of_allocated_memory(void) {
  CUdeviceptr memory;
  CUgraph graph = new_graph();
  CUgraphNode alloc = add_alloc(graph, NULL, &memory), middle = add_empty(graph, &alloc);
  try_copies(graph, &middle, memory, "before the free node");
  add_free(graph, &middle, memory);
  try_copies(graph, &middle, memory, "after the free node");
  run_graph(graph, "that graph");
}

static void copies_of_captured_memory(void) {
  CUdeviceptr memory;
  CUgraph graph;
  CUgraphNode copy;
  CUDA_MEMCPY3D captured;
  begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  must(cuMemAllocAsync(&memory, 1 << 20, stream));
  must(cuMemcpyAsync(memory, plain_memory, 64, stream));
  copy = frontier_of(&graph);
  must(cuGraphMemcpyNodeGetParams(copy, &captured));
  note("a captured copy to it has types %d, %d", (int)captured.dstMemoryType, (int)captured.srcMemoryType);
  const CUgraphNode middle = add_empty(graph, &copy);
  try_copies(graph, &middle, memory, "while it is captured");
  must(cuStreamUpdateCaptureDependencies(stream, (CUgraphNode *)&middle, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  must(cuMemFreeAsync(memory, stream));
  try_copies(graph, &middle, memory, "after the captured free");
  must(cuStreamEndCapture(stream, &graph));
  try_copies(graph, &middle, memory, "when the capture is over");
  must(cuGraphMemcpyNodeGetParams(copy, &captured));
  CUgraphNode node;
  row(cuGraphAddMemcpyNode(&node, graph, &middle, 1, &captured, context), "the captured copy added again");
  row(add_copy(graph, &middle, plain_memory, plain_memory + 128, CU_MEMORYTYPE_UNIFIED, &node), "another copy");
  captured.dstDevice = plain_memory + 256;
  captured.srcDevice = memory;
  row(cuGraphMemcpyNodeSetParams(node, &captured), "and set to read from it");
  run_graph(graph, "that graph");
}

/* Placeholder pages ------------------------------------------------------------------------------------------------ */

enum { PAGES = 8 };

static void map_placeholder(CUdeviceptr address, int pages, CUmemGenericAllocationHandle handle) {
  for (int i = 0; i < pages; i++) must(cuMemMap(address + (size_t)i * PAGE, PAGE, 0, handle, 0));
  row(allow(address, (size_t)pages * PAGE), "access to %d mappings at once", pages);
}

static CUdeviceptr reserve_pages(void) {
  CUdeviceptr address;
  must(cuMemAddressReserve(&address, (size_t)PAGES * PAGE, 0, 0, 0));
  return address;
}

static CUDA_MEMCPY3D long_copy(CUdeviceptr dst, CUdeviceptr src, bool rows) {
  CUDA_MEMCPY3D copy = copy_to(dst, CU_MEMORYTYPE_UNIFIED);
  copy.srcDevice = src;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = (size_t)PAGES * PAGE;
  if (!rows) return copy;
  copy.srcPitch = copy.dstPitch = PAGE;
  copy.WidthInBytes = PAGE / 2;
  copy.Height = copy.srcHeight = copy.dstHeight = PAGES;
  return copy;
}

/* A copy to memory of which some pages are there when it is made, and others when it runs. */
static void copy_with_placeholders(const char *which, uint64_t pages, bool rows) {
  const CUdeviceptr address = reserve_pages();
  CUdeviceptr source;
  CUmemGenericAllocationHandle handle;
  const CUmemAllocationProp properties = device_memory();
  CUgraph graph = new_graph();
  CUgraphNode node;
  CUgraphExec exec;
  must(cuMemAlloc(&source, (size_t)PAGES * PAGE));
  must(cuMemsetD8(source, 0x33, (size_t)PAGES * PAGE));
  must(cuMemCreate(&handle, PAGE, &properties, 0));
  for (int i = 0; i < PAGES; i++)
    if (pages >> i & 1) map_placeholder(address + (size_t)i * PAGE, 1, handle);
  const CUDA_MEMCPY3D copy = long_copy(address, source, rows);
  CUresult code = cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context);
  row(code, "a copy of %d pages%s, %s there", PAGES, rows ? " by rows" : "", which);
  if (code != CUDA_SUCCESS) return;
  code = cuGraphInstantiate(&exec, graph, 0);
  row(code, "instantiated");
  if (code != CUDA_SUCCESS) return;
  row(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context), "set again");
  for (int i = 0; i < PAGES; i++)
    if (pages >> i & 1) must(cuMemUnmap(address + (size_t)i * PAGE, PAGE));
  for (int i = 0; i < PAGES; i++) map_page(address + (size_t)i * PAGE);
  must(cuMemsetD8(address, 0, (size_t)PAGES * PAGE));
  row(cuGraphLaunch(exec, stream), "launched when all pages are there");
  const double begun = now();
  const unsigned char first = byte_at(address), middle = byte_at(address + PAGE * 4 + 1);
  note("bytes %02x %02x %02x (33 33 33 expected), after %d us", first, middle, byte_at(address + 7 * (size_t)PAGE + 9),
       (int)((now() - begun) * 1e6));
}

static void no_page_is_placeholder(void) { copy_with_placeholders("none", 0, false); }
static void the_first_is_placeholder(void) { copy_with_placeholders("the first", 1, false); }
static void the_last_is_placeholder(void) { copy_with_placeholders("the last", 1 << (PAGES - 1), false); }
static void first_and_last_are_placeholders(void) {
  copy_with_placeholders("first and last", 1 | 1 << (PAGES - 1), false);
}
static void the_first_of_rows_is_placeholder(void) { copy_with_placeholders("the first", 1, true); }

static void many_mappings_at_once(void) {
  const CUdeviceptr address = reserve_pages();
  CUmemGenericAllocationHandle one, eight;
  const CUmemAllocationProp properties = device_memory();
  must(cuMemCreate(&one, PAGE, &properties, 0));
  must(cuMemCreate(&eight, (size_t)PAGES * PAGE, &properties, 0));
  map_placeholder(address, PAGES, one);
  row(cuMemUnmap(address, (size_t)PAGES * PAGE), "and unmapped by one call");
  row(cuMemUnmap(address, (size_t)PAGES * PAGE), "and again, when nothing is mapped");
  for (int count = 1; count <= PAGES; count *= 2) {
    const double begun = now();
    for (int i = 0; i < count; i++) must(cuMemMap(address + (size_t)i * PAGE, PAGE, 0, one, 0));
    const double mapped = now();
    must(allow(address, (size_t)count * PAGE));
    const double allowed = now();
    must(cuMemUnmap(address, (size_t)count * PAGE));
    note("%d pages: mapping them took %d us, access %d, unmapping %d", count, (int)((mapped - begun) * 1e6),
         (int)((allowed - mapped) * 1e6), (int)((now() - allowed) * 1e6));
  }
  row(cuMemMap(address, PAGE, 0, eight, 0), "one page of eight mapped");
  must(cuMemMap(address, (size_t)PAGES * PAGE, 0, eight, 0));
  row(allow(address, PAGE), "access to a page of a mapping of eight");
  const double begun = now();
  must(allow(address, (size_t)PAGES * PAGE));
  const double allowed = now();
  must(cuMemUnmap(address, (size_t)PAGES * PAGE));
  note("8 pages in one piece: access took %d us, unmapping %d", (int)((allowed - begun) * 1e6),
       (int)((now() - allowed) * 1e6));
}

/* A copy node is made while a page is there that nobody may access. */
static void placeholder_without_access(void) {
  const CUdeviceptr address = reserve();
  CUmemGenericAllocationHandle page;
  const CUmemAllocationProp properties = device_memory();
  const CUDA_MEMCPY3D copy = copy_to(address, CU_MEMORYTYPE_UNIFIED);
  CUgraph graph = new_graph();
  CUgraphNode node;
  CUgraphExec exec;
  must(cuMemCreate(&page, PAGE, &properties, 0));
  must(cuMemMap(address, PAGE, 0, page, 0));
  CUresult code = cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context);
  row(code, "a copy to a page without access");
  if (code != CUDA_SUCCESS) return;
  code = cuGraphInstantiate(&exec, graph, 0);
  row(code, "instantiated");
  if (code != CUDA_SUCCESS) return;
  must(cuMemUnmap(address, PAGE));
  map_page(address);
  must(cuMemsetD8(plain_memory, 0x33, 64));
  row(cuGraphLaunch(exec, stream), "launched when another page is there");
  note("byte %02x (33 expected)", byte_at(address));
}

/* What a capture takes of memory that is not mapped, in each form of call. */
static void captured_calls_on_unmapped_memory(void) {
  const CUdeviceptr address = reserve();
  const CUDA_MEMCPY3D typed = copy_to(address + 1024, CU_MEMORYTYPE_DEVICE);
  CUgraph graph;
  CUgraphExec exec = NULL;
  begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  row(cuMemcpyAsync(address, plain_memory, 64, stream), "cuMemcpyAsync to unmapped memory captured");
  row(cuMemcpyDtoDAsync(address + 512, plain_memory, 64, stream), "cuMemcpyDtoDAsync to it");
  row(cuMemcpyDtoDAsync(plain_memory + 512, address, 64, stream), "cuMemcpyDtoDAsync from it");
  row(cuMemcpy3DAsync(&typed, stream), "cuMemcpy3DAsync to it, types device");
  row(cuMemsetD32Async(address + 64, 5, 16, stream), "cuMemsetD32Async");
  row(cuMemsetD2D8Async(address + 128, 16, 5, 8, 4, stream), "cuMemsetD2D8Async");
  must(cuStreamEndCapture(stream, &graph));
  map_page(address);
  must(cuMemsetD8(plain_memory, 0x44, 64));
  row(cuGraphInstantiate(&exec, graph, 0), "instantiated while mapped");
  if (exec == NULL) return;
  must(cuMemUnmap(address, PAGE));
  map_page(address);
  must(cuMemsetD8(address, 0, PAGE));
  row(cuGraphLaunch(exec, stream), "launched when other pages are there");
  note("bytes %02x %02x %02x %02x %02x (44 44 44 05 05 expected)", byte_at(address), byte_at(address + 512),
       byte_at(address + 1024), byte_at(address + 64), byte_at(address + 144));
}

/* What libraries do with memory that is not mapped, while a stream captures. */
static void captured_on_unmapped_memory(void) {
  const CUdeviceptr address = reserve_pages();
  CUmemGenericAllocationHandle handle;
  const CUmemAllocationProp properties = device_memory();
  CUgraph graph;
  CUDA_MEMCPY3D captured;
  must(cuMemCreate(&handle, PAGE, &properties, 0));
  begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  row(cuMemcpyAsync(address, plain_memory, 64, stream), "a copy to unmapped memory captured");
  must(cuGraphMemcpyNodeGetParams(frontier_of(&graph), &captured));
  note("it has types %d, %d", (int)captured.dstMemoryType, (int)captured.srcMemoryType);
  row(cuMemsetD32Async(address + 64, 5, 16, stream), "a memset of unmapped memory captured");
  end("that");
  begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  row(cuMemMap(address, PAGE, 0, handle, 0), "a page mapped meanwhile, thread-local");
  row(allow(address, PAGE), "and given access to");
  row(cuMemcpyAsync(address, plain_memory, 64, stream), "a copy to it captured");
  must(cuGraphMemcpyNodeGetParams(frontier_of(&graph), &captured));
  note("it has types %d, %d", (int)captured.dstMemoryType, (int)captured.srcMemoryType);
  row(cuMemsetD32Async(address + 64, 5, 16, stream), "a memset of it captured");
  row(cuMemUnmap(address, PAGE), "the page unmapped, still capturing");
  must(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = NULL;
  row(cuGraphInstantiate(&exec, graph, 0), "instantiated while unmapped");
  map_page(address);
  if (exec == NULL) row(cuGraphInstantiate(&exec, graph, 0), "instantiated while mapped");
  must(cuMemsetD8(address, 0, PAGE));
  must(cuMemsetD8(plain_memory, 0x33, 64));
  row(cuGraphLaunch(exec, stream), "launched when other pages are there");
  note("bytes %02x %02x (33 05 expected)", byte_at(address), byte_at(address + 64));
}

/* Device memory of execs ------------------------------------------------------------------------------------------- */

static size_t free_memory(void) {
  size_t left, total;
  must(cuMemGetInfo(&left, &total));
  return left;
}

typedef CUgraphNode (*add_node)(CUgraph graph, const CUgraphNode *before);

static CUgraphNode add_kernel(CUgraph graph, const CUgraphNode *before) {
  CUgraphNode node;
  must(cuGraphAddKernelNode(&node, graph, before, before == NULL ? 0 : 1, &one_kernel.params));
  return node;
}

static CUgraphNode add_plain_copy(CUgraph graph, const CUgraphNode *before) {
  CUgraphNode node;
  const CUDA_MEMCPY3D copy = copy_to(plain_memory + 1024, CU_MEMORYTYPE_DEVICE);
  must(cuGraphAddMemcpyNode(&node, graph, before, before == NULL ? 0 : 1, &copy, context));
  return node;
}

static CUgraphNode add_event(CUgraph graph, const CUgraphNode *before) {
  CUgraphNode node;
  must(cuGraphAddEventRecordNode(&node, graph, before, before == NULL ? 0 : 1, event));
  return node;
}

/* What instantiating execs of lines of `count` nodes, uploading and keeping them takes. */
static void memory_of(const char *what, add_node add, int execs, int count) {
  const size_t before = free_memory();
  for (int i = 0; i < execs; i++) {
    CUgraph graph = new_graph();
    CUgraphNode last = NULL;
    for (int node = 0; node < count; node++) last = add(graph, node == 0 ? NULL : &last);
    must(cuGraphUpload(instantiate(graph), stream));
  }
  must(cuStreamSynchronize(stream));
  note("%d execs of %d %s: %d bytes each", execs, count, what, (int)((before - free_memory()) / (size_t)execs));
}

static void memory_of_execs(void) {
  one_kernel.params = empty_kernel_params();
  memory_of("kernels", add_kernel, 400, 1);
  memory_of("kernels", add_kernel, 200, 32);
  memory_of("kernels", add_kernel, 100, 320);
  memory_of("kernels", add_kernel, 50, 1000);
}
static void memory_of_execs_of_copies(void) { memory_of("copies", add_plain_copy, 50, 1000); }
static void memory_of_execs_of_events(void) { memory_of("event records", add_event, 50, 1000); }
static void memory_of_empty_execs(void) { memory_of("empty nodes", add_empty, 50, 1000); }

static void set_without_context(void) {
  make_one_kernel();
  must(cuCtxSetCurrent(NULL));
  row(call_update(), "cuGraphExecUpdate without a current context");
  row(call_set_exec_node(), "cuGraphExecKernelNodeSetParams");
}

/* Attributes of kernel nodes --------------------------------------------------------------------------------------- */

static CUlaunchAttributeValue value_of(int x, int y, int z) {
  const int words[] = {x, y, z};
  CUlaunchAttributeValue value;
  memset(&value, 0, sizeof value);
  memcpy(&value, words, sizeof words);
  return value;
}

static void set_attribute(CUgraphNode node, int id, const char *name, int x, int y, int z) {
  const CUlaunchAttributeValue value = value_of(x, y, z);
  row(cuGraphKernelNodeSetAttribute(node, (CUlaunchAttributeID)id, &value), "%s of a node: %d, %d, %d", name, x, y, z);
}

static void read_attributes(CUgraphNode node, const char *which) {
  static const int ids[] = {2, 4, 8, 10, 14};
  for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
    CUlaunchAttributeValue value = value_of(0, 0, 0);
    int first;
    const CUresult code = cuGraphKernelNodeGetAttribute(node, (CUlaunchAttributeID)ids[i], &value);
    memcpy(&first, &value, sizeof first);
    row(code, "attribute %d of %s is %d", ids[i], which, first);
  }
}

static void set_bad_attributes(CUgraphNode node) {
  set_attribute(node, 6, "programmatic serialization", 1, 0, 0);
  set_attribute(node, 4, "a cluster that does not divide the grid of 8", 3, 1, 1);
  set_attribute(node, 4, "a cluster", 16, 1, 1);
  set_attribute(node, 8, "priority", -9, 0, 0);
  set_attribute(node, 14, "share of shared memory", 101, 0, 0);
  set_attribute(node, 14, "share of shared memory", -1, 0, 0);
  set_attribute(node, 10, "memory domain", 7, 0, 0);
}

static void attributes_of_kernel_nodes(void) {
  CUDA_KERNEL_NODE_PARAMS params = empty_kernel_params();
  CUgraph graph = new_graph();
  CUgraphNode node;
  CUgraphExecUpdateResultInfo result;
  params.gridDimX = 8;
  must(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
  read_attributes(node, "a new node");
  set_attribute(node, 2, "cooperative", 1, 0, 0);
  set_attribute(node, 4, "cluster", 4, 1, 1);
  set_attribute(node, 8, "priority", -3, 0, 0);
  set_attribute(node, 10, "memory domain", 1, 0, 0);
  set_attribute(node, 14, "share of shared memory", 50, 0, 0);
  set_bad_attributes(node);
  read_attributes(node, "the node then");
  CUgraphExec exec = instantiate(graph);
  params.gridDimX = 6;
  row(cuGraphExecKernelNodeSetParams(exec, node, &params), "a grid of 6 in an exec with clusters of 4");
  set_attribute(node, 4, "cluster", 2, 1, 1);
  row(cuGraphExecUpdate(exec, graph, &result), "cuGraphExecUpdate with other attributes (result %d)", result.result);
  set_attribute(node, 4, "no cluster", 0, 0, 0);
  CUgraph clone;
  CUgraphNode copy;
  must(cuGraphClone(&clone, graph));
  must(cuGraphNodeFindInClone(&copy, node, clone));
  row(cuGraphKernelNodeSetParams(copy, &params), "a grid of 6 in a clone of the graph");
  read_attributes(copy, "the node in the clone then");
}

static void run_probe(void (*probe)(void)) {
  enum { SECONDS = 20 };
  alarm(SECONDS);
  must(cuInit(0));
  must(cuDeviceGet(&device, 0));
  must(cuDevicePrimaryCtxRetain(&context, device));
  must(cuCtxSetCurrent(context));
  must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  must(cuEventCreate(&captured_event, CU_EVENT_DISABLE_TIMING));
  must(cuMemAlloc(&plain_memory, 4096));
  probe();
}

static void (*const probes[])(void) = {
    free_before_alloc,
    free_outside_never_launched,
    memory_nodes_inside,
    clones_and_moves,
    conditionals,
    update_with_memory,
    refused_calls,
    legacy_and_relaxed,
    exchange_null,
    device_launch_with_auto_free,
    launch_while_capturing,
    null_functions,
    destroy_while_capturing,
    used_after_destroy,
    reuse_across_a_moved_child,
    memset_on_graph_memory,
    unmapped_addresses_in_nodes,
    remapped_under_an_exec,
    no_current_context,
    host_functions_of_two_streams,
    value_waits_in_graphs,
    calls_while_a_value_is_waited_for,
    calls_while_a_host_function_runs,
    gates_by_value,
    gates_by_kernel,
    gates_by_event,
    gates_by_host_function,
    copies_of_allocated_memory,
    copies_of_captured_memory,
    no_page_is_placeholder,
    the_first_is_placeholder,
    the_last_is_placeholder,
    first_and_last_are_placeholders,
    the_first_of_rows_is_placeholder,
    many_mappings_at_once,
    captured_on_unmapped_memory,
    placeholder_without_access,
    captured_calls_on_unmapped_memory,
    set_without_context,
    memory_of_execs,
    memory_of_execs_of_copies,
    memory_of_execs_of_events,
    memory_of_empty_execs,
    attributes_of_kernel_nodes,
};

/* All probes, or those whose numbers are given. */
static bool is_asked_for(int number, int count, char **numbers) {
  for (int i = 1; i < count; i++)
    if (atoi(numbers[i]) == number) return true;
  return count < 2;
}

int main(int argc, char **argv) {
  printf("| probe | what was done | code |\n|---|---|---|\n");
  fflush(stdout);
  for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
    probe_number = (int)i + 1;
    if (!is_asked_for(probe_number, argc, argv)) continue;
    const pid_t child = fork();
    if (child == 0) {
      run_probe(probes[i]);
      _exit(0);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) note("ended by signal %d", WTERMSIG(status));
  }
  return 0;
}

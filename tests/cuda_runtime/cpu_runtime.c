/* SPDX-License-Identifier: MIT
 * The CUDA run time on a CPU, which stands on Rondo's CPU device: a stream of the program is a stream of Rondo's that
 * the run time owns, a graph is one of Rondo's. So a sample runs with and without Rondo's doors where there is no
 * CUDA driver at all. Three calls of the program are wrapped by the linker, because a CPU has no driver under Rondo:
 * rondo_device_open returns the run time's device; a stream that is adopted gets what the program enqueues on its own
 * handle from then on, as a stream of the driver would; and declared accesses are known already, from the types of the
 * kernels. RONDO_TEST_DEVICE names the device. Threads: as Rondo's calls; one lock guards loading and the list of
 * adopted streams.
 */
#include <pthread.h>
#include <rondo/rondo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime/cuda_runtime.h"

enum { MANY = 64 };

/* What cudaStream_t points to. Of several handles that adopted it, the last one counts. */
typedef struct cpu_stream {
  rondo_stream *own, *adopted;
} cpu_stream;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rondo_device *device;
static rondo_stream *own; /* in place of the legacy default stream */
static cpu_stream streams[MANY];
static rondo_kernel *kernels[MANY];
static size_t kernel_count;
static _Thread_local cudaError_t last_error;

rondo_status __real_rondo_device_open(const char *name, const rondo_device_options *options, rondo_device **out);
rondo_status __real_rondo_device_close(rondo_device *closed);
rondo_status __real_rondo_stream_adopt(rondo_device *on, void *native, const rondo_stream_options *options,
                                       rondo_stream **out);
rondo_status __real_rondo_stream_destroy(rondo_stream *stream);
void *__real_rondo_stream_native(rondo_stream *stream);
rondo_status __wrap_rondo_device_open(const char *name, const rondo_device_options *options, rondo_device **out);
rondo_status __wrap_rondo_device_close(rondo_device *closed);
rondo_status __wrap_rondo_stream_adopt(rondo_device *on, void *native, const rondo_stream_options *options,
                                       rondo_stream **out);
rondo_status __wrap_rondo_stream_destroy(rondo_stream *stream);
void *__wrap_rondo_stream_native(rondo_stream *stream);
rondo_status __wrap_rondo_access_declare(rondo_device *on, const rondo_access_declaration *declaration);

/* Beginning and end ------------------------------------------------------------------------------------------------ */

static void end(void) {
  for (size_t i = 0; i < kernel_count; i++) rondo_kernel_destroy(kernels[i]);
  if (__real_rondo_stream_destroy(own) == RONDO_OK && __real_rondo_device_close(device) == RONDO_OK) return;
  fprintf(stderr, "%s\n", rondo_last_error()->message);
  _Exit(1);
}

static void begin(void) {
  const char *name = getenv("RONDO_TEST_DEVICE");
  if (__real_rondo_device_open(name != NULL ? name : "cpu", NULL, &device) != RONDO_OK ||
      rondo_stream_create(device, NULL, &own) != RONDO_OK)
    exit(77);
  (void)atexit(end);
}

static rondo_device *cpu(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, begin);
  return device;
}

static cudaError_t code_of(rondo_status status) { return (cudaError_t)status; }

/* What the linker puts in place of Rondo's calls ------------------------------------------------------------------- */

rondo_status __wrap_rondo_device_open(const char *name, const rondo_device_options *options, rondo_device **out) {
  (void)name;
  (void)options;
  *out = cpu();
  return RONDO_OK;
}

rondo_status __wrap_rondo_device_close(rondo_device *closed) {
  (void)closed;
  return RONDO_OK;
}

rondo_status __wrap_rondo_stream_adopt(rondo_device *on, void *native, const rondo_stream_options *options,
                                       rondo_stream **out) {
  cpu_stream *stream = native;
  const rondo_status status = __real_rondo_stream_adopt(on, __real_rondo_stream_native(stream->own), options, out);
  if (status == RONDO_OK) stream->adopted = *out;
  return status;
}

static cpu_stream *find_adopted(const rondo_stream *handle) {
  for (size_t i = 0; i < MANY && handle != NULL; i++)
    if (streams[i].adopted == handle) return &streams[i];
  return NULL;
}

rondo_status __wrap_rondo_stream_destroy(rondo_stream *handle) {
  cpu_stream *stream = find_adopted(handle);
  if (stream != NULL) stream->adopted = NULL;
  return __real_rondo_stream_destroy(handle);
}

void *__wrap_rondo_stream_native(rondo_stream *handle) { return find_adopted(handle); }

rondo_status __wrap_rondo_access_declare(rondo_device *on, const rondo_access_declaration *declaration) {
  (void)on;
  (void)declaration;
  return RONDO_OK;
}

/* Errors and waiting ----------------------------------------------------------------------------------------------- */

const char *cudaGetErrorString(cudaError_t error) {
  (void)error;
  return rondo_last_error()->message;
}

cudaError_t cudaGetLastError(void) {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaDeviceSynchronize(void) { return code_of(rondo_device_synchronize(cpu())); }

/* The handle that the program's work goes to. */
static rondo_stream *handle_of(cudaStream_t stream) {
  const cpu_stream *of = (const cpu_stream *)(void *)stream;
  return of->adopted != NULL ? of->adopted : of->own;
}

/* Memory ----------------------------------------------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **out, size_t bytes) { return code_of(rondo_malloc(cpu(), bytes, NULL, out)); }
cudaError_t cudaFree(void *memory) { return code_of(rondo_free(cpu(), memory)); }
cudaError_t cudaMallocHost(void **out, size_t bytes) { return code_of(rondo_host_malloc(cpu(), bytes, out)); }
cudaError_t cudaFreeHost(void *memory) { return code_of(rondo_host_free(cpu(), memory)); }
cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream) {
  return code_of(rondo_malloc_async(handle_of(stream), bytes, NULL, out));
}
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
  return code_of(rondo_free_async(handle_of(stream), memory));
}

/* The device has as much memory as one likes. */
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
  rondo_memory_statistics figures = {.struct_size = sizeof figures};
  const rondo_status status = rondo_memory_get_statistics(cpu(), &figures);
  *total = SIZE_MAX;
  *free_bytes = SIZE_MAX - (size_t)(figures.pool_reserved + figures.graph_reserved);
  return code_of(status);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
  (void)kind;
  return code_of(rondo_copy_async(handle_of(stream), to, from, bytes));
}

/* After a call on the run time's own stream. */
static cudaError_t wait_for(rondo_status status) {
  return code_of(status == RONDO_OK ? rondo_stream_synchronize(own) : status);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  (void)kind;
  (void)cpu();
  return wait_for(rondo_copy_async(own, to, from, bytes));
}

static rondo_status fill(rondo_stream *stream, void *to, int value, size_t bytes) {
  const rondo_fill what = {.dst = to, .value = (uint32_t)(value & 255), .element_bytes = 1, .width = bytes};
  return rondo_fill_async(stream, &what);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  return code_of(fill(handle_of(stream), to, value, bytes));
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) {
  (void)cpu();
  return wait_for(fill(own, to, value, bytes));
}

/* Streams and events ----------------------------------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
  size_t i = 0;
  (void)flags;
  pthread_mutex_lock(&lock);
  while (i < MANY - 1 && streams[i].own != NULL) i++;
  const rondo_status status = rondo_stream_create(cpu(), NULL, &streams[i].own);
  pthread_mutex_unlock(&lock);
  *out = (cudaStream_t)&streams[i];
  return code_of(status);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  cpu_stream *of = (cpu_stream *)(void *)stream;
  const rondo_status status = __real_rondo_stream_destroy(of->own);
  of->own = NULL;
  return code_of(status);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return code_of(rondo_stream_synchronize(handle_of(stream))); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  (void)flags;
  return code_of(rondo_stream_wait_event(handle_of(stream), (rondo_event *)(void *)event));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  (void)flags;
  return code_of(rondo_event_create(cpu(), NULL, (rondo_event **)(void *)out));
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  rondo_event_destroy((rondo_event *)(void *)event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return code_of(rondo_event_record((rondo_event *)(void *)event, handle_of(stream)));
}

/* A host function of CUDA, which returns nothing. It lives as long as the process, as its graph may. */
typedef struct host_call {
  cudaHostFn_t function;
  void *user;
} host_call;

static rondo_status call_host(void *user) {
  const host_call *call = user;
  call->function(call->user);
  return RONDO_OK;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user) {
  static host_call calls[MANY];
  static size_t count;
  pthread_mutex_lock(&lock);
  host_call *call = count < MANY ? &calls[count++] : NULL;
  pthread_mutex_unlock(&lock);
  if (call == NULL) return code_of(RONDO_LIMIT_EXCEEDED);
  *call = (host_call){function, user};
  return code_of(rondo_host_async(handle_of(stream), call_host, call));
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

static rondo_status load(runtime_kernel *kernel) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = kernel->name, .cpu_block = kernel->run,
                                        .param_list = kernel->parameters, .param_count = (uint32_t)kernel->count};
  if (kernel_count == MANY) return RONDO_LIMIT_EXCEEDED;
  const rondo_status status = rondo_kernel_create(cpu(), &options, &kernels[kernel_count]);
  if (status == RONDO_OK) kernel->loaded = kernels[kernel_count++];
  return status;
}

cudaError_t cuda_runtime_launch(runtime_kernel *kernel, rondo_grid grid, rondo_dimensions block, size_t shared_bytes,
                                cudaStream_t stream, void *const *args) {
  const rondo_launch_config config = {.block = block, .shared_bytes = (uint32_t)shared_bytes};
  const rondo_launch_options options = {RONDO_LAUNCH_OPTIONS_INIT, .config = &config};
  pthread_mutex_lock(&lock);
  rondo_status status = kernel->loaded == NULL ? load(kernel) : RONDO_OK;
  pthread_mutex_unlock(&lock);
  if (status == RONDO_OK)
    status =
        rondo_launch_with(handle_of(stream), kernel->loaded, grid, (const void *const *)args, kernel->count, &options);
  if (status != RONDO_OK) last_error = code_of(status);
  return code_of(status);
}

/* Graphs ----------------------------------------------------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  (void)mode;
  return code_of(rondo_capture_begin(handle_of(stream), RONDO_CAPTURE_THREAD_LOCAL));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
  return code_of(rondo_capture_end(handle_of(stream), (rondo_graph **)(void *)out));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return code_of(rondo_graph_destroy((rondo_graph *)(void *)graph)); }

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  (void)flags;
  return code_of(rondo_instantiate((rondo_graph *)(void *)graph, NULL, (rondo_exec **)(void *)out));
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *result) {
  (void)result;
  return code_of(rondo_exec_update((rondo_exec *)(void *)exec, (rondo_graph *)(void *)graph, NULL));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  rondo_exec_destroy((rondo_exec *)(void *)exec);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return code_of(rondo_exec_launch((rondo_exec *)(void *)exec, handle_of(stream)));
}

/* SPDX-License-Identifier: MIT
 * The CUDA run time on the fake driver: it finds the driver's functions and works in the primary context, as CUDA's own
 * run time does, and knows nothing of Rondo. The driver gets the CPU function of each kernel at its first launch. What
 * CUDA does on the legacy default stream is done on a stream of the run time's own, and waited for. All threads; one
 * lock guards the loading of kernels.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime/cuda_runtime.h"
#include "fake_cuda/image.h"
#include "vendor/cuda_driver_abi.h"

enum { MODULES = 64 };

static struct {
#define required(member, symbol, version, arguments) cu_result(*member) arguments;
#define optional required
#include "fake_cuda/foreign_symbols.h"
#include "vendor/cuda_driver_symbols.h"
#undef required
#undef optional
} driver;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cu_context context;
static cu_stream own; /* in place of the legacy default stream */
static cu_module modules[MODULES];
static size_t module_count;
static _Thread_local cudaError_t last_error;

/* Beginning and end ------------------------------------------------------------------------------------------------ */

typedef cu_result (*get_address_fn)(const char *symbol, void **out, int version, uint64_t flags, int *found);

static void require(bool is_so, const char *what) {
  if (is_so) return;
  fprintf(stderr, "the CUDA run time of the tests: %s\n", what);
  exit(77);
}

static void find_functions(void) {
  const char *path = getenv("RONDO_CUDA_LIBRARY");
  void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  void *symbol = library != NULL ? dlsym(library, "cuGetProcAddress_v2") : NULL;
  get_address_fn get_address;
  require(symbol != NULL, "RONDO_CUDA_LIBRARY names no driver");
  memcpy(&get_address, &symbol, sizeof get_address);
#define required(member, name, version, arguments)                                                        \
  if (get_address(#name, &symbol, version, 0, NULL) == CU_OK || (symbol = dlsym(library, #name)) != NULL) \
    memcpy(&driver.member, &symbol, sizeof symbol);
#define optional required
#include "fake_cuda/foreign_symbols.h"
#include "vendor/cuda_driver_symbols.h"
#undef required
#undef optional
  require(driver.test_kernel != NULL, "the driver is not the fake one");
}

static void end(void) {
  for (size_t i = 0; i < module_count; i++) (void)driver.module_unload(modules[i]);
  (void)driver.stream_destroy(own);
  (void)driver.primary_release(0);
}

static void begin(void) {
  find_functions();
  require(driver.init(0) == CU_OK && driver.primary_retain(&context, 0) == CU_OK &&
              driver.context_set_current(context) == CU_OK &&
              driver.stream_create(&own, cudaStreamNonBlocking) == CU_OK,
          "the driver does not start");
  (void)atexit(end);
}

/* Each call begins with it: the context becomes the thread's. */
static void enter(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static _Thread_local bool has_context;
  (void)pthread_once(&once, begin);
  if (!has_context) (void)driver.context_set_current(context);
  has_context = true;
}

#define CALL(call) (enter(), (cudaError_t)driver.call)

static cu_address address_of(const void *memory) { return (cu_address)(uintptr_t)memory; }

/* Errors and waiting ----------------------------------------------------------------------------------------------- */

const char *cudaGetErrorString(cudaError_t error) {
  const char *name;
  return CALL(get_error_name((cu_result)error, &name)) == cudaSuccess ? name : "unknown error";
}

cudaError_t cudaGetLastError(void) {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaDeviceSynchronize(void) { return CALL(context_synchronize()); }

/* After a call on the run time's own stream. */
static cudaError_t wait_for(cudaError_t error) { return error == cudaSuccess ? CALL(stream_synchronize(own)) : error; }

/* Memory ----------------------------------------------------------------------------------------------------------- */

static cudaError_t allocate(void **out, size_t bytes, cu_stream stream) {
  cu_address address = 0;
  const cudaError_t error = CALL(mem_alloc_async(&address, bytes, stream));
  *out = (void *)(uintptr_t)address;
  return error;
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
  enter();
  return allocate(out, bytes, own);
}

/* Unlike CUDA's, it does not wait for other streams, which the driver refuses during a capture. The samples do. */
cudaError_t cudaFree(void *memory) { return wait_for(CALL(mem_free_async(address_of(memory), own))); }

cudaError_t cudaMallocHost(void **out, size_t bytes) { return CALL(host_alloc(out, bytes, 0)); }
cudaError_t cudaFreeHost(void *memory) { return CALL(host_free(memory)); }
cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream) { return allocate(out, bytes, stream); }
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
  return CALL(mem_free_async(address_of(memory), stream));
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) { return CALL(mem_get_info(free_bytes, total)); }

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
  (void)kind;
  return CALL(copy_async(address_of(to), address_of(from), bytes, stream));
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  enter();
  return wait_for(cudaMemcpyAsync(to, from, bytes, kind, own));
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  return CALL(memset_8_async(address_of(to), (unsigned char)value, bytes, stream));
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) {
  enter();
  return wait_for(cudaMemsetAsync(to, value, bytes, own));
}

/* Streams and events ----------------------------------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) { return CALL(stream_create(out, flags)); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return CALL(stream_destroy(stream)); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return CALL(stream_synchronize(stream)); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return CALL(stream_wait_event(stream, event, flags));
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) { return CALL(event_create(out, flags)); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return CALL(event_destroy(event)); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return CALL(event_record(event, stream)); }
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user) {
  return CALL(launch_host_function(stream, function, user));
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

/* A module of its own. Loading is no matter of a capture's (docs/cuda-probes.md). */
static cu_result load(runtime_kernel *kernel) {
  char image[256];
  cu_function function;
  cu_capture_mode mode = CU_CAPTURE_MODE_RELAXED;
  if (module_count == MODULES) return CU_OUT_OF_MEMORY;
  cu_result code = driver.test_kernel(kernel->name, NULL, kernel->run, kernel->count, kernel->parameters);
  if (code != CU_OK) return code;
  (void)snprintf(image, sizeof image, FAKE_IMAGE_HEAD "%s\n", kernel->name);
  (void)driver.capture_exchange_mode(&mode);
  code = driver.module_load(&modules[module_count], image, 0, NULL, NULL);
  if (code == CU_OK) code = driver.module_get_function(&function, modules[module_count++], kernel->name);
  if (code == CU_OK) kernel->loaded = function;
  (void)driver.capture_exchange_mode(&mode);
  return code;
}

cudaError_t cuda_runtime_launch(runtime_kernel *kernel, rondo_grid grid, rondo_dimensions block, size_t shared_bytes,
                                cudaStream_t stream, void *const *args) {
  void *arguments[RONDO_MAX_INLINE_PARAMETERS] = {NULL};
  memcpy(arguments, args, kernel->count * sizeof *args);
  enter();
  pthread_mutex_lock(&lock);
  cu_result code = kernel->loaded == NULL ? load(kernel) : CU_OK;
  pthread_mutex_unlock(&lock);
  if (code == CU_OK)
    code = driver.launch_kernel(kernel->loaded, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                (unsigned)shared_bytes, stream, arguments, NULL);
  if (code != CU_OK) last_error = (cudaError_t)code;
  return (cudaError_t)code;
}

/* Graphs ----------------------------------------------------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  return CALL(capture_begin(stream, (cu_capture_mode)mode));
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) { return CALL(capture_end(stream, out)); }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return CALL(graph_destroy(graph)); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return CALL(exec_destroy(exec)); }
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) { return CALL(exec_launch(exec, stream)); }

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  cu_instantiate_params params = {.flags = flags};
  return CALL(graph_instantiate(out, graph, &params));
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *result) {
  cu_update_result updated = {0};
  const cudaError_t error = CALL(exec_update(exec, graph, &updated));
  result->result = updated.result;
  return error;
}

/* SPDX-License-Identifier: MIT
 * A CUDA run time without a GPU, for examples/cuda_samples: the part of CUDA's C++ API that they use, under its names.
 * A host compiler compiles the samples with it, after `kernel<<<grid, block>>>(x)` has become
 * `CUDA_LAUNCH(kernel, grid, block)(x)`. A kernel runs as a C++ function, once for each thread, one after another; so
 * it cannot wait for other threads.
 *
 * There are two forms, of which a program is linked with one: driver_runtime.c calls the CUDA driver that
 * RONDO_CUDA_LIBRARY names, as CUDA's own run time does, so that its work is foreign to Rondo. cpu_runtime.c uses
 * Rondo's CPU device. Threads: any.
 */
#ifndef RONDO_TESTS_CUDA_RUNTIME_H
#define RONDO_TESTS_CUDA_RUNTIME_H

#include <stddef.h>

#include "cuda_runtime/runtime_kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The errors are the driver's codes. cudaErrorUnknown is the greatest, so an object of the type holds any of them. */
typedef enum cudaError_t { cudaSuccess = 0, cudaErrorUnknown = 999 } cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct cudaGraphExecUpdateResultInfo {
  int result;
  void *errorNode, *errorFromNode;
} cudaGraphExecUpdateResultInfo;
typedef void (*cudaHostFn_t)(void *user);

enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };

const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void); /* of launches; forgets it */
cudaError_t cudaDeviceSynchronize(void);

cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocHost(void **out, size_t bytes);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemset(void *to, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *result);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);

/* What CUDA_LAUNCH calls. */
cudaError_t cuda_runtime_launch(runtime_kernel *kernel, rondo_grid grid, rondo_dimensions block, size_t shared_bytes,
                                cudaStream_t stream, void *const *args);

#ifdef __cplusplus
}

#include <type_traits>
#include <utility>

#define __global__

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

inline thread_local dim3 gridDim, blockDim, blockIdx, threadIdx;

template <class T>
cudaError_t cudaMalloc(T **out, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void **>(out), bytes);
}
template <class T>
cudaError_t cudaMallocHost(T **out, size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void **>(out), bytes);
}
template <class T>
cudaError_t cudaMallocAsync(T **out, size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void **>(out), bytes, stream);
}

namespace cuda_runtime {

template <class T>
constexpr rondo_access access_of() {
  if constexpr (!std::is_pointer_v<T>) return RONDO_ACCESS_SCALAR;
  return std::is_const_v<std::remove_pointer_t<T>> ? RONDO_ACCESS_READ : RONDO_ACCESS_READ_WRITE;
}

/* A kernel, and the threads of its blocks. */
template <auto function, class... P>
struct kernel_of {
  template <size_t... index>
  static void run_thread(void *const *args, std::index_sequence<index...>) {
    function(*static_cast<const P *>(args[index])...);
  }

  static void run(rondo_blocks blocks, const rondo_thread_block *block, void *const *args) {
    gridDim = dim3(blocks.grid.x, blocks.grid.y, blocks.grid.z);
    blockDim = dim3(block->threads.x, block->threads.y, block->threads.z);
    for (size_t b = blocks.first; b < blocks.last; b++) {
      blockIdx = dim3(unsigned(b % gridDim.x), unsigned(b / gridDim.x % gridDim.y),
                      unsigned(b / (size_t(gridDim.x) * gridDim.y)));
      for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)
        for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
          for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
            run_thread(args, std::index_sequence_for<P...>());
    }
  }
};

template <auto function, class... P>
struct launcher {
  const char *name;
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;

  void operator()(P... arguments) const {
    static const rondo_parameter parameters[] = {RONDO_PARAMETER(access_of<P>(), sizeof(P), alignof(P))...};
    static runtime_kernel kernel = {name, kernel_of<function, P...>::run, parameters, sizeof...(P), nullptr};
    void *const args[] = {&arguments...};
    (void)cuda_runtime_launch(&kernel, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes, stream,
                              args);
  }
};

template <auto function, class... P>
constexpr launcher<function, P...> launch(void (*)(P...), const char *name, dim3 grid, dim3 block,
                                          size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return {name, grid, block, shared_bytes, stream};
}

}  // namespace cuda_runtime

#define CUDA_LAUNCH(kernel, ...) cuda_runtime::launch<kernel>(kernel, #kernel, __VA_ARGS__)

#endif
#endif

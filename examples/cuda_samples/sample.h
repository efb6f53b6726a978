/* SPDX-License-Identifier: MIT
 * What the samples share: the check of CUDA's calls, device memory, and the figures that the test compares.
 */
#ifndef RONDO_EXAMPLES_CUDA_SAMPLE_H
#define RONDO_EXAMPLES_CUDA_SAMPLE_H

#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <cuda_runtime.h>

/* What a call returned, as an exception. */
inline void check(cudaError_t error, const char *call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}
#define CHECK(call) check((call), #call)

template <class T>
T *device_array(std::size_t count, const T *values = nullptr) {
  T *array;
  CHECK(cudaMalloc(&array, count * sizeof(T)));
  if (values != nullptr) CHECK(cudaMemcpy(array, values, count * sizeof(T), cudaMemcpyHostToDevice));
  if (values == nullptr) CHECK(cudaMemset(array, 0, count * sizeof(T)));
  return array;
}

/* Host memory that copies use directly. */
template <class T>
T *host_array(std::size_t count) {
  T *array;
  CHECK(cudaMallocHost(&array, count * sizeof(T)));
  return array;
}

/* Bytes of the device that are in use, by anyone. */
inline std::size_t used_bytes() {
  std::size_t unused, total;
  CHECK(cudaMemGetInfo(&unused, &total));
  return total - unused;
}

inline cudaStream_t new_stream() {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaDeviceSynchronize()); /* the copies before are not ordered with this stream */
  return stream;
}

#endif

/* SPDX-License-Identifier: MIT
 * reduce_graph.cu with Rondo: the graph is verified before it runs. If the fill began in what the copy writes,
 * rondo::exec would throw an error that names both and the bytes.
 */
#include <rondo/rondo.hpp>

#include "sample.h"

constexpr int capacity = 1 << 14, count = capacity - 1000, parts = 128, launches = 20;

/* Each thread adds up one part. */
extern "C" __global__ void add_parts(const float *x, float *sums) {
  const int part = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int i = part; i < capacity; i += parts) sum += x[i];
  sums[part] = sum;
}

extern "C" __global__ void add_sums(const float *sums, float *total) {
  *total = 0;
  for (int i = 0; i < parts; i++) *total += sums[i];
}

struct arrays {
  float *host, *x, *sums, *total, *host_total;
  double added;
};

static void add_total(void *user) {
  arrays *a = static_cast<arrays *>(user);
  a->added += *a->host_total;
}

/* What the copy leaves is filled, beside it. */
static void enqueue(cudaStream_t stream, cudaStream_t beside, cudaEvent_t begun, cudaEvent_t filled, arrays *a) {
  CHECK(cudaEventRecord(begun, stream));
  CHECK(cudaStreamWaitEvent(beside, begun, 0));
  CHECK(cudaMemsetAsync(a->x + count, 0, (capacity - count) * sizeof(float), beside));
  CHECK(cudaEventRecord(filled, beside));
  CHECK(cudaMemcpyAsync(a->x, a->host, count * sizeof(float), cudaMemcpyHostToDevice, stream));
  CHECK(cudaStreamWaitEvent(stream, filled, 0));
  add_parts<<<parts / 32, 32, 0, stream>>>(a->x, a->sums);
  add_sums<<<1, 1, 0, stream>>>(a->sums, a->total);
  CHECK(cudaMemcpyAsync(a->host_total, a->total, sizeof(float), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaLaunchHostFunc(stream, add_total, a));
}

static void run(cudaStream_t stream, cudaStream_t beside, cudaEvent_t begun, cudaEvent_t filled, arrays *a) {
  const rondo::device device("cuda:0");
  const rondo::stream adopted = rondo::stream::adopt(device, stream);
  const rondo::graph graph = rondo::capture_graph(adopted, [&] { enqueue(stream, beside, begun, filled, a); });
  const rondo::exec exec(graph); /* verified */
  for (int launch = 0; launch < launches; launch++) {
    for (int i = 0; i < count; i++) a->host[i] = static_cast<float>(launch % 3);
    exec.launch(adopted);
    CHECK(cudaStreamSynchronize(stream));
  }
}

int main() {
  arrays a = {host_array<float>(count), device_array<float>(capacity), device_array<float>(parts),
              device_array<float>(1),   host_array<float>(1),          0};
  const cudaStream_t stream = new_stream(), beside = new_stream();
  cudaEvent_t begun, filled;
  CHECK(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
  run(stream, beside, begun, filled, &a);
  std::printf("%d launches added up %g\n", launches, a.added);
  for (cudaEvent_t event : {begun, filled}) CHECK(cudaEventDestroy(event));
  for (cudaStream_t each : {stream, beside}) CHECK(cudaStreamDestroy(each));
  for (void *array : {a.x, a.sums, a.total}) CHECK(cudaFree(array));
  for (void *array : {a.host, a.host_total}) CHECK(cudaFreeHost(array));
  return 0;
}

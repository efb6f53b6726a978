/* SPDX-License-Identifier: MIT
 * jacobi.cu with Rondo: a sweep is a region, which is recorded once in each direction and then replayed. The host
 * enqueues a sweep with one launch.
 *
 * Fewer: calls that enqueue
 */
#include <algorithm>
#include <vector>

#include <rondo/rondo.hpp>

#include "sample.h"

constexpr int n = 256;
constexpr double small_enough = 1e-6;

/* A row for each thread. */
extern "C" __global__ void sweep_rows(const double *a, const double *b, const double *x, double *next,
                                      double *changes) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  double sum = b[row];
  for (int column = 0; column < n; column++)
    if (column != row) sum -= a[row * n + column] * x[column];
  next[row] = sum / a[row * n + row];
  changes[row] = next[row] > x[row] ? next[row] - x[row] : x[row] - next[row];
}

extern "C" __global__ void add_changes(const double *changes, double *change) {
  *change = 0;
  for (int row = 0; row < n; row++) *change += changes[row];
}

struct equations {
  double *a, *b, *x[2], *changes, *change, *host_change;
  int enqueued; /* operations */
};

static void sweep(equations *e, int number, cudaStream_t stream) {
  sweep_rows<<<n / 64, 64, 0, stream>>>(e->a, e->b, e->x[number % 2], e->x[1 - number % 2], e->changes);
  add_changes<<<1, 1, 0, stream>>>(e->changes, e->change);
  CHECK(cudaMemcpyAsync(e->host_change, e->change, sizeof(double), cudaMemcpyDeviceToHost, stream));
  e->enqueued += 3;
}

/* A matrix whose diagonal dominates; the solution is all ones. */
static equations new_equations() {
  std::vector<double> a(n * n, 1), b(n, 2.1 * n - 1);
  for (int row = 0; row < n; row++) a[row * n + row] = 1.1 * n;
  return {device_array(n * n, a.data()),
          device_array(n, b.data()),
          {device_array<double>(n), device_array<double>(n)},
          device_array<double>(n),
          device_array<double>(1),
          host_array<double>(1),
          0};
}

/* Returns the number of sweeps. */
static int solve(equations *e, cudaStream_t stream) {
  const rondo::device device("cuda:0");
  const rondo::stream adopted = rondo::stream::adopt(device, stream);
  const rondo::tree tree(device);
  const rondo::region<int> region(tree, "sweep", {});
  int sweeps = 0;
  do {
    region.run(adopted, sweeps % 2, {}, [&](rondo::call &) { sweep(e, sweeps, stream); });
    CHECK(cudaStreamSynchronize(stream));
    sweeps++;
  } while (*e->host_change > small_enough);
  e->enqueued += static_cast<int>(region.info().replayed);
  return sweeps;
}

int main() {
  equations e = new_equations();
  const cudaStream_t stream = new_stream();
  const int sweeps = solve(&e, stream);

  double first;
  CHECK(cudaMemcpy(&first, e.x[sweeps % 2], sizeof first, cudaMemcpyDeviceToHost));
  std::printf("calls that enqueue: %d\n", e.enqueued);
  std::printf("%d sweeps, x[0] = %.4f\n", sweeps, first);
  CHECK(cudaStreamDestroy(stream));
  for (void *array : {e.a, e.b, e.x[0], e.x[1], e.changes, e.change}) CHECK(cudaFree(array));
  CHECK(cudaFreeHost(e.host_change));
  return 0;
}

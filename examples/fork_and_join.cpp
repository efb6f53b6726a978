/* SPDX-License-Identifier: MIT
 * Two streams become two branches of one graph. An event forks the second stream from the capturing one, and another
 * event joins it again. As fork_and_join.c, in C++.
 *
 *   fork_and_join [DEVICE]
 *
 * Prints the graph's edges and: sum[3] = 3*3 + 3*3*3 = 36
 */
#include <cstdio>
#include <vector>

#include <rondo/rondo.hpp>

constexpr std::size_t block = 64, n = 1024, max_edges = 16;

/* A block has as many threads on a CUDA device as it has elements on the CPU. */
static const rondo::kernel_code power_cuda = {
    "extern \"C\" __global__ void power(int exponent, const float *x, float *y) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  y[i] = 1;\n"
    "  for (int e = 0; e < exponent; e++) y[i] *= x[i];\n"
    "}\n",
    nullptr, nullptr, block};
static const rondo::kernel_code add_cuda = {
    "extern \"C\" __global__ void add(const float *a, const float *b, float *sum) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  sum[i] = a[i] + b[i];\n"
    "}\n",
    nullptr, nullptr, block};

static std::size_t print_edges(const rondo::graph &graph) {
  rondo_node from[max_edges], to[max_edges];
  std::size_t count = max_edges;
  rondo::check(rondo_graph_edges(graph.get(), from, to, &count));
  for (std::size_t i = 0; i < count; i++)
    std::printf("%u -> %u\n", rondo_node_number(from[i]), rondo_node_number(to[i]));
  return count;
}

static bool run(const char *name) {
  const rondo::device device(name);
  const rondo::stream left(device), right(device);
  const rondo::event fork(device), join(device);
  const rondo::kernel<int, const float *, rondo::out<float *>> power(
      device, "power",
      [](rondo_blocks blocks, int exponent, const float *x, float *y) {
        for (std::size_t i = blocks.first * block; i < blocks.last * block; i++) {
          y[i] = 1;
          for (int e = 0; e < exponent; e++) y[i] *= x[i];
        }
      },
      power_cuda);
  const rondo::kernel<const float *, const float *, rondo::out<float *>> add(
      device, "add",
      [](rondo_blocks blocks, const float *a, const float *b, float *sum) {
        for (std::size_t i = blocks.first * block; i < blocks.last * block; i++) sum[i] = a[i] + b[i];
      },
      add_cuda);
  const rondo::memory<float> x(device, n, "x"), squares(device, n, "squares"), cubes(device, n, "cubes"),
      sum(device, n, "sum");
  std::vector<float> host(n);
  for (std::size_t i = 0; i < n; i++) host[i] = static_cast<float>(i);

  const rondo_grid grid = rondo::grid(n / block);
  const rondo::graph graph = rondo::capture_graph(left, [&] {
    left.copy(x, host);
    left.record(fork);
    right.wait(fork); /* from here on, `right` captures too */
    left.launch(power, grid, 2, x, squares);
    right.launch(power, grid, 3, x, cubes);
    right.record(join);
    left.wait(join); /* and is joined to `left` */
    left.launch(add, grid, squares, cubes, sum);
  });
  const std::size_t edges = print_edges(graph);
  const rondo::exec exec(graph);
  exec.launch(left);
  std::vector<float> result(n);
  left.copy(result, sum);
  left.synchronize();
  std::printf("sum[3] = 3*3 + 3*3*3 = %g\n", static_cast<double>(result[3]));
  return result[3] == 36 && edges == 4;
}

int main(int argc, char **argv) {
  try {
    return run(argc > 1 ? argv[1] : "cpu") ? 0 : 1;
  } catch (const rondo::error &error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

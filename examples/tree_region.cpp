/* SPDX-License-Identifier: MIT
 * A region: an engine that enqueues its own work is recorded and replayed. How much the engine enqueues depends on the
 * number of rows, which is the region's key. As tree_region.c, in C++.
 *
 *   tree_region [DEVICE]
 *
 * Prints: 1000 calls, 994 replayed; y = 7 8 9
 */
#include <cstdio>

#include <rondo/rondo.hpp>

constexpr int max_rows = 3, calls = 1000;
constexpr std::size_t n = 1 << 12, block = 256;

static const rondo::kernel_code add_cuda = {
    "extern \"C\" __global__ void add(const float *in, float *out, float number) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  out[i] = in[i] + number;\n"
    "}\n",
    nullptr, nullptr, block};
using add_kernel = rondo::kernel<const float *, rondo::out<float *>, float>;

/* y = x + 1 + 1 ..., once for each row */
static void engine_run(const add_kernel &add, rondo::stream_ref stream, const float *x, float *y, int rows) {
  for (int i = 0; i < rows; i++) stream.launch(add, rondo::grid(n / block), i == 0 ? x : y, y, 1.0f);
}

static void run(const char *name) {
  const rondo::device device(name);
  const rondo::stream stream(device);
  const add_kernel add(
      device, "add",
      [](rondo_blocks blocks, const float *in, float *out, float number) {
        for (std::size_t i = blocks.first * block; i < blocks.last * block; i++) out[i] = in[i] + number;
      },
      add_cuda);
  const rondo::memory<float> x[2] = {{device, n, "x"}, {device, n, "x"}};
  for (const rondo::memory<float> &input : x) stream.fill(input, 6.0f);

  const rondo::tree tree(device);
  const rondo::region<int> region(tree, "engine", {RONDO_INPUT_MOVING});
  float first[max_rows] = {};
  for (int i = 0; i < calls; i++) {
    const int rows = 1 + i % max_rows;
    /* each number of rows runs once eagerly, is captured once, and is replayed afterwards */
    const auto [y] = region.run<1>(stream, rows, {rondo::input(x[i % 2])}, [&](rondo::call &call) {
      engine_run(add, call.stream(), call.input<float>(0), call.output<float>(0, n), rows);
    });
    y.copy_to(stream, rondo::span(&first[i % max_rows], 1));
  }
  stream.synchronize();
  std::printf("%d calls, %d replayed; y = %g %g %g\n", calls, static_cast<int>(region.info().replayed),
              static_cast<double>(first[0]), static_cast<double>(first[1]), static_cast<double>(first[2]));
}

int main(int argc, char **argv) {
  try {
    run(argc > 1 ? argv[1] : "cpu");
    return 0;
  } catch (const rondo::error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

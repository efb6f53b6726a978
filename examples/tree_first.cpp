/* SPDX-License-Identifier: MIT
 * The smallest tree: one function, which runs as a warm-up at its first call, is recorded at its second and replayed
 * afterwards. Its input is at a different address at each call. As tree_first.c, in C++.
 *
 *   tree_first [DEVICE]
 *
 * Prints: 1000 calls, 998 replayed; y[0] = 1000
 */
#include <cstdio>
#include <vector>

#include <rondo/rondo.hpp>

constexpr std::size_t elements = 1 << 16, block = 256;
constexpr int calls = 1000;
static const rondo_grid grid = rondo::grid(elements / block);

static const rondo::kernel_code multiply_cuda = {
    "extern \"C\" __global__ void multiply(const float *a, const float *b, float *out) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  out[i] = a[i] * b[i];\n"
    "}\n"};

static rondo::memory<float> make_input(const rondo::device &device, const rondo::stream &stream) {
  rondo::memory<float> input(device, elements, "x");
  stream.fill(input, 10.0f);
  return input;
}

static void run(const char *name) {
  const rondo::device device(name); /* "cpu" or "cuda:0": nothing else changes */
  const rondo::stream stream(device);
  const rondo::kernel<const float *, const float *, rondo::out<float *>> multiply(
      device, "multiply",
      [](rondo_blocks blocks, const float *a, const float *b, float *out) {
        for (std::size_t i = blocks.first * block; i < blocks.last * block; i++) out[i] = a[i] * b[i];
      },
      multiply_cuda);
  const rondo::memory<float> x[2] = {make_input(device, stream), make_input(device, stream)};

  const rondo::tree tree(device);
  /* y = x * x * x */
  const rondo::function cube(tree, "cube", {RONDO_INPUT_MOVING}, [&](rondo::call &call) {
    const float *const input = call.input<float>(0);
    const rondo::scratch<float> square(call.stream(), elements); /* part of the recording, at a planned address */
    float *const y = call.output<float>(0, elements);
    call.stream().launch(multiply, grid, input, input, square);
    call.stream().launch(multiply, grid, square, input, y);
  });

  float first = 0;
  for (int i = 0; i < calls; i++) {
    const rondo::buffer y =
        cube(stream, {rondo::input(x[i % 2])}); /* the 1st runs, the 2nd is recorded, then replayed */
    y.copy_to(stream, rondo::span(&first, 1));
  }
  stream.synchronize();
  std::printf("%d calls, %d replayed; y[0] = %g\n", calls, static_cast<int>(tree.info().replayed),
              static_cast<double>(first));
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

/* SPDX-License-Identifier: MIT
 * Gradient accumulation. The weight and its gradient are buffers of the tree with fixed addresses that belong to no
 * step, so recordings update them in place. Each step accumulates the gradients of four small batches and then updates
 * the weight. Every batch is at another address, which is patched into the recording. The model is y = w x with w = 3.
 * As tree_accumulation.c, in C++.
 *
 *   tree_accumulation [DEVICE]
 *
 * Prints: 40 steps of 4 batches: w = 3.00, 2 recordings, 196 of 200 calls replayed
 */
#include <cstdio>
#include <vector>

#include <rondo/rondo.hpp>

constexpr int batch_size = 16, batches = 4, steps = 40;

static const rondo::kernel_code gradient_cuda = {
    "extern \"C\" __global__ void gradient(const float *x, const float *w, float *sum) {\n"
    "  for (int i = 0; i < 16; i++) *sum += 2 * (*w * x[i] - 3 * x[i]) * x[i] / 64;\n"
    "}\n",
    nullptr, nullptr, 1};
static const rondo::kernel_code update_cuda = {
    "extern \"C\" __global__ void update(float *w, float *sum) { *w -= 0.5f * *sum; *sum = 0; }\n", nullptr, nullptr,
    1};

static rondo::buffer make_zero(const rondo::tree &tree, const rondo::stream &stream) {
  auto buffer = rondo::make<rondo::buffer>(rondo_buffer_create, tree.get(), sizeof(float), nullptr);
  stream.fill(rondo::span(buffer.address<float>(), 1), 0.0f);
  return buffer;
}

static rondo::memory<float> make_batch(const rondo::device &device, const rondo::stream &stream, int batch) {
  rondo::memory<float> memory(device, batch_size, "batch");
  std::vector<float> host(batch_size);
  for (int i = 0; i < batch_size; i++)
    host[static_cast<std::size_t>(i)] = static_cast<float>((batch * batch_size + i) % 7 - 3) / 3;
  stream.copy(memory, host);
  stream.synchronize();
  return memory;
}

static void run(const char *name) {
  const rondo::device device(name);
  const rondo::stream stream(device);
  /* One block, so that the order of the sum is fixed. */
  const rondo::kernel<const float *, const float *, float *> gradient(
      device, "gradient",
      [](rondo_blocks, const float *x, const float *w, float *sum) {
        for (int i = 0; i < batch_size; i++) *sum += 2 * (*w * x[i] - 3 * x[i]) * x[i] / (batch_size * batches);
      },
      gradient_cuda);
  const rondo::kernel<float *, float *> update(
      device, "update", [](rondo_blocks, float *w, float *sum) { *w -= 0.5f * *sum, *sum = 0; }, update_cuda);
  std::vector<rondo::memory<float>> data;
  for (int i = 0; i < batches; i++) data.push_back(make_batch(device, stream, i));

  /* No outputs of these functions are kept, so each call begins a path. */
  const rondo::tree tree(device);
  constexpr std::uint32_t updated = RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED;
  const rondo::function backward(tree, "backward", {RONDO_INPUT_MOVING, RONDO_INPUT_STATIC, updated},
                                 [&](rondo::call &call) {
                                   call.stream().launch(gradient, rondo::grid(1), call.input<float>(0),
                                                        call.input<float>(1), call.input<float>(2));
                                 });
  const rondo::function optimizer(tree, "optimizer", {updated, updated}, [&](rondo::call &call) {
    call.stream().launch(update, rondo::grid(1), call.input<float>(0), call.input<float>(1));
  });
  const rondo::buffer weight = make_zero(tree, stream), sum = make_zero(tree, stream);

  for (int step = 0; step < steps; step++) {
    tree.mark_step();
    for (const rondo::memory<float> &x : data)
      backward.call<0>(stream, {rondo::input(x), rondo::input(weight), rondo::input(sum)});
    optimizer.call<0>(stream, {rondo::input(weight), rondo::input(sum)});
  }
  float w = 0;
  weight.copy_to(stream, rondo::span(&w, 1));
  stream.synchronize();
  const rondo_tree_info info = tree.info();
  std::printf("%d steps of %d batches: w = %.2f, %u recordings, %llu of %llu calls replayed\n", steps, batches,
              static_cast<double>(w), info.recordings, static_cast<unsigned long long>(info.replayed),
              static_cast<unsigned long long>(info.calls));
}

int main(int argc, char **argv) {
  try {
    run(argc > 1 ? argv[1] : "cpu");
    return 0;
  } catch (const rondo::error &error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

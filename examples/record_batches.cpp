/* SPDX-License-Identifier: MIT
 * Records an existing batch loop from its second batch on. The first batch runs eagerly, as a warm-up. The second is
 * captured and replayed, and later batches are only replayed. The last batch is shorter and runs eagerly. As
 * record_batches.c, in C++.
 *
 *   record_batches [DEVICE]
 *
 * Prints: out[0] = 10.5 after 6 batches: 2 run, 4 replayed
 */
#include <cstdio>
#include <vector>

#include <rondo/rondo.hpp>

constexpr std::size_t block = 64, rows = 1024, last_rows = 640;
constexpr int batches = 6, first_captured = 1;

static const char step_cuda[] =
    "extern \"C\" __global__ void step(const float *rate, const float *in, float *out) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  out[i] += *rate * in[i];\n"
    "}\n";

/* Everything that a batch uses is created before the first capture. */
struct program {
  explicit program(const char *name) : device(name) { stream.fill(out, 0.0f); }

  rondo::device device;
  rondo::stream stream{device};
  rondo::kernel<const float *, const float *, float *> step{
      device, "step",
      [](rondo_blocks blocks, const float *factor, const float *from, float *to) {
        for (std::size_t i = blocks.first * block; i < blocks.last * block; i++) to[i] += *factor * from[i];
      },
      rondo::kernel_code{step_cuda, nullptr, nullptr, block}};
  rondo::memory<float> in{device, rows, "in"}, out{device, rows, "out"}, rate{device, 1, "rate"};
  rondo::recording recording{device}; /* destroyed first, it waits for its replays */
  int runs = 0, replays = 0;
};

/* Runs before the batch, not in the capture: a capture would keep the address of `host`. */
static void feed(const program &p, int batch, std::size_t count) {
  const float rate = 1.0f / static_cast<float>(1 << batch); /* a decreasing learning rate */
  const std::vector<float> host(count, static_cast<float>(1 << batch) * 1.75f);
  p.stream.copy(rondo::span(p.in).first(count), host);
  p.stream.copy(p.rate, rondo::span(&rate, 1));
  p.stream.synchronize();
}

/* One batch. The code is the same with and without recording. */
static void run(const program &p, std::size_t count) {
  const rondo::scratch<float> scratch(p.stream, count);
  p.stream.copy(scratch, rondo::span(p.in).first(count));
  p.stream.launch(p.step, rondo::grid(static_cast<std::uint32_t>(count / block)), p.rate, scratch, p.out);
}

static void run_batch(program &p, int batch) {
  const bool is_last = batch == batches - 1;
  const std::size_t count = is_last ? last_rows : rows;
  feed(p, batch, count);
  if (batch < first_captured || is_last) {
    run(p, count);
    p.runs++;
    return;
  }
  if (batch == first_captured) p.recording.capture(p.stream, [&] { run(p, count); }); /* recorded, not run */
  p.recording.replay(p.stream); /* otherwise the captured batch would never run */
  p.replays++;
}

int main(int argc, char **argv) {
  try {
    program p(argc > 1 ? argv[1] : "cpu");
    float first = 0;
    for (int batch = 0; batch < batches; batch++) run_batch(p, batch);
    p.stream.copy(rondo::span(&first, 1), rondo::span(p.out).first(1));
    p.stream.synchronize();
    std::printf("out[0] = %g after %d batches: %d run, %d replayed\n", static_cast<double>(first), batches, p.runs,
                p.replays);
    return first == 10.5f ? 0 : 1;
  } catch (const rondo::error &error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

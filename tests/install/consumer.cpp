// SPDX-License-Identifier: MIT
// The same as consumer.c, from C++: the eager and the recorded run of one kernel agree.
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <rondo/rondo.h>

namespace {

constexpr std::size_t kBlock = 256;
constexpr std::size_t kCount = 4 * kBlock;

void scale(rondo_blocks blocks, void *const *args) {
  const float factor = *static_cast<const float *>(args[0]);
  float *values = *static_cast<float *const *>(args[1]);
  for (std::size_t i = blocks.first * kBlock; i < blocks.last * kBlock; i++) values[i] *= factor;
}

struct Failure {};

void check(rondo_status status) {
  if (status == RONDO_OK) return;
  std::fprintf(stderr, "%s\n", rondo_last_error()->message);
  throw Failure();
}

struct Closer {
  void operator()(rondo_device *device) const { check(rondo_device_close(device)); }
  void operator()(rondo_stream *stream) const { check(rondo_stream_destroy(stream)); }
  void operator()(rondo_kernel *kernel) const { rondo_kernel_destroy(kernel); }
  void operator()(rondo_graph *graph) const { check(rondo_graph_destroy(graph)); }
  void operator()(rondo_exec *exec) const { rondo_exec_destroy(exec); }
};
template <class T>
using Owned = std::unique_ptr<T, Closer>;

void run() {
  rondo_device *device = nullptr;
  check(rondo_device_open("cpu", nullptr, &device));
  const Owned<rondo_device> device_owner(device);

  rondo_stream *stream = nullptr;
  check(rondo_stream_create(device, nullptr, &stream));
  const Owned<rondo_stream> stream_owner(stream);

  rondo_kernel_options options = {};
  options.name = "scale";
  options.cpu = scale;
  options.params[0] = RONDO_SCALAR(float);
  options.params[1] = RONDO_UPDATES;
  rondo_kernel *kernel = nullptr;
  check(rondo_kernel_create(device, &options, &kernel));
  const Owned<rondo_kernel> kernel_owner(kernel);

  std::vector<float> storage(kCount, 1.0f);
  float *values = storage.data();
  const float factor = 2.0f;
  const rondo_grid grid = {kCount / kBlock, 1, 1};
  check(rondo_launch(stream, kernel, grid, RONDO_ARGS(&factor, &values)));

  check(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  check(rondo_launch(stream, kernel, grid, RONDO_ARGS(&factor, &values)));
  rondo_graph *graph = nullptr;
  check(rondo_capture_end(stream, &graph));
  const Owned<rondo_graph> graph_owner(graph);
  rondo_exec *exec = nullptr;
  check(rondo_instantiate(graph, nullptr, &exec));
  const Owned<rondo_exec> exec_owner(exec);
  check(rondo_exec_launch(exec, stream));
  check(rondo_stream_synchronize(stream));

  if (values[0] != 4.0f || values[kCount - 1] != 4.0f) throw Failure();
}

}  // namespace

int main() {
  if (std::strcmp(rondo_version(), RONDO_VERSION_STRING) != 0) return 1;
  try {
    run();
  } catch (const Failure &) {
    std::printf("%s wrong\n", rondo_version());
    return 1;
  }
  std::printf("%s ok\n", rondo_version());
  return 0;
}

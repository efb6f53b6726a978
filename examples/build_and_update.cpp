/* SPDX-License-Identifier: MIT
 * Builds a graph node by node and updates its exec in place: first one argument of one node, then the parameters of all
 * nodes, taken from another graph. An update from a graph with another topology is refused. As build_and_update.c, in
 * C++.
 *
 *   build_and_update [DEVICE]
 *
 * Prints: first 10, one node 30, whole graph 250, then TOPOLOGY_CHANGED, still 250
 */
#include <cstdio>

#include <rondo/rondo.hpp>

static const rondo::kernel_code multiply_cuda = {
    "extern \"C\" __global__ void multiply(int *value, int factor) { if (threadIdx.x == 0) *value *= factor; }"};

struct program {
  explicit program(const char *name) : device(name) {}

  rondo::device device;
  rondo::stream stream{device};
  /* `value` is filled in by the first node, multiplied by the second. */
  rondo::kernel<int *, int> multiply{device, "multiply",
                                     [](rondo_blocks, int *number, int factor) { *number *= factor; }, multiply_cuda};
  rondo::memory<int> value{device, 1, "value"};
};

/* fill -> multiply */
static rondo::graph build(const program &p, int start, int factor, rondo_node *out_multiply) {
  rondo::graph graph(p.device);
  const rondo_node fill = graph.add_fill({}, p.value, start);
  *out_multiply = graph.add_kernel({fill}, p.multiply, rondo::grid(1), p.value, factor);
  return graph;
}

static int launch_and_read(const program &p, const rondo::exec &exec) {
  int read = 0;
  exec.launch(p.stream);
  p.stream.copy(rondo::span(&read, 1), p.value);
  p.stream.synchronize();
  return read;
}

static bool run(const char *name) {
  const program p(name);
  rondo_node multiply;
  const rondo::graph graph = build(p, 5, 2, &multiply);
  rondo::exec exec(graph);
  const int first = launch_and_read(p, exec), six = 6;
  rondo::check(rondo_exec_set_argument(exec.get(), multiply, 1, &six));
  const int one_node = launch_and_read(p, exec);

  /* Takes the parameters of another graph with the same topology. */
  rondo::graph other = build(p, 25, 10, &multiply);
  exec.update(other);
  const int whole = launch_and_read(p, exec);

  /* Another topology is refused with a reason, and the exec stays as it was. */
  rondo_reason reason = RONDO_REASON_NONE;
  other.add_empty({multiply});
  try {
    exec.update(other);
  } catch (const rondo::error &refused) {
    reason = refused.reason();
  }
  const int after = launch_and_read(p, exec);
  std::printf("first %d, one node %d, whole graph %d, then %s, still %d\n", first, one_node, whole,
              rondo_reason_name(reason), after);
  return after == 250;
}

int main(int argc, char **argv) {
  try {
    return run(argc > 1 ? argv[1] : "cpu") ? 0 : 1;
  } catch (const rondo::error &error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

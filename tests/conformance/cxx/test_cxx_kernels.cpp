/* SPDX-License-Identifier: MIT
 * rondo.hpp: spans, memory, and kernels whose arguments are checked when the program is compiled (AD-6), launched with
 * a configuration (AD-3).
 */
#include <array>
#include <cstdint>
#include <vector>

#include "conformance/cxx/test_cxx.hpp"

/* A lambda that takes anything is not asked whether it takes a block, which its body could not. */
DEVICE_TEST(test_ad6_a_generic_lambda_is_a_kernel) {
  const rondo::device device(test_device_name());
  const rondo::kernel<float *, float *> zero(device, "zero",
                                             [](rondo_blocks, auto... pointers) { ((*pointers = 0.0F), ...); });
  assert_string_equal(rondo_kernel_name(zero.get()), "zero");
}

/* A name that no kernel has, for a kernel that is launched without Rondo. */
DEVICE_TEST(test_ad4_accesses_are_declared) {
  const rondo::device device(test_device_name());
  const auto declare = [&] {
    rondo::declare_access<float, const float *, rondo::out<float *>>(device, "of_a_library");
  };
  if (std::strncmp(test_device_name(), "cuda", 4) == 0)
    declare();
  else
    assert_int_equal(thrown_by(declare).reason(), RONDO_REASON_NOT_SUPPORTED);
}

namespace {

constexpr std::uint32_t kBlock = 64, kBlocks = 4;
constexpr std::size_t kCount = kBlock * kBlocks;

using saxpy_kernel = rondo::kernel<float, const float *, float *>;

saxpy_kernel make_saxpy(const rondo::device &device) {
  rondo::kernel_code code;
  code.block_threads = kBlock;
  code.cuda_source =
      "extern \"C\" __global__ void saxpy(float a, const float *x, float *y) {\n"
      "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  y[i] += a * x[i];\n"
      "}\n";
  return saxpy_kernel(
      device, "saxpy",
      [](rondo_blocks blocks, float a, const float *x, float *y) {
        for (std::size_t i = blocks.first * kBlock; i < blocks.last * kBlock; i++) y[i] += a * x[i];
      },
      code);
}

int cxx_symbol[4]; /* a variable of a kernel's code */

/* What is a stream's launch, as an object that is_invocable can ask. */
struct launch_saxpy {
  template <class... A>
  auto operator()(A &&...arguments) const
      -> decltype(std::declval<rondo::stream &>().launch(std::declval<saxpy_kernel &>(), rondo_grid{},
                                                         std::forward<A>(arguments)...));
};
using floats = rondo::memory<float>;
static_assert(std::is_invocable_v<launch_saxpy, float, const float *, float *>);
static_assert(std::is_invocable_v<launch_saxpy, float, floats &, floats &>);
static_assert(std::is_invocable_v<launch_saxpy, float, float *, rondo::scratch<float> &>);
static_assert(!std::is_invocable_v<launch_saxpy, float, const float *, const float *>);           /* y is written */
static_assert(!std::is_invocable_v<launch_saxpy, float, const double *, float *>);                /* another type */
static_assert(!std::is_invocable_v<launch_saxpy, const float *, float, float *>);                 /* another order */
static_assert(!std::is_invocable_v<launch_saxpy, float, const float *>);                          /* too few */
static_assert(!std::is_invocable_v<launch_saxpy, float, const float *, float *, float>);          /* too many */
static_assert(!std::is_invocable_v<launch_saxpy, float, const float *, rondo::memory<double> &>); /* other memory */

static_assert(std::is_convertible_v<std::vector<int> &, rondo::span<int>>);
static_assert(std::is_convertible_v<const std::vector<int> &, rondo::span<const int>>);
static_assert(!std::is_convertible_v<const std::vector<int> &, rondo::span<int>>);
static_assert(!std::is_convertible_v<std::vector<long> &, rondo::span<int>>);
static_assert(std::is_convertible_v<rondo::span<int>, rondo::span<const int>>);

std::size_t size_of(rondo::span<const int> values) { return values.size(); }

}  // namespace

UNIT_TEST(test_ad6_spans_of_what_holds_elements) {
  std::vector<int> vector = {1, 2, 3};
  const std::array<int, 4> array = {1, 2, 3, 4};
  int plain[] = {5, 6};
  assert_int_equal(size_of(vector), 3);
  assert_int_equal(size_of(array), 4);
  assert_int_equal(size_of(plain), 2);
  assert_int_equal(size_of({7, 8, 9, 10, 11}), 5);
  assert_int_equal(size_of({}), 0);
  assert_int_equal(size_of({plain, 1}), 1);
  rondo::span part = rondo::span(vector).subspan(1, 2);
  part[1] = 30;
  assert_int_equal(vector[2], 30);
  assert_int_equal(part.bytes(), 2 * sizeof(int));
  assert_yes(rondo::span<int>().empty());
}

/* The types say how the parameters are used. */
UNIT_TEST(test_ad6_kernel_parameters_follow_from_types) {
  const rondo::device device("cpu");
  const rondo::kernel<std::uint64_t, const float *, float *, rondo::out<char *>> kernel(
      device, "all", [](rondo_blocks, std::uint64_t, const float *, float *, char *) {});
  std::size_t count = 0;
  const rondo_parameter *parameters = rondo_kernel_parameters(kernel.get(), &count);
  const rondo_access expected[] = {RONDO_ACCESS_SCALAR, RONDO_ACCESS_READ, RONDO_ACCESS_READ_WRITE, RONDO_ACCESS_WRITE};
  assert_int_equal(count, 4);
  for (std::size_t i = 0; i < count; i++) {
    assert_int_equal(parameters[i].access, expected[i]);
    assert_int_equal(parameters[i].bytes, 8);
  }
}

DEVICE_TEST(test_ad6_typed_kernels_run_and_are_captured) {
  const rondo::device device(test_device_name());
  const rondo::stream stream(device);
  const saxpy_kernel saxpy = make_saxpy(device);
  const rondo::memory<float> x(device, kCount, "x"), y(device, kCount, "y");
  std::vector<float> host(kCount, 2.0f);
  stream.copy(x, host);
  stream.fill(y, 1.0f);
  stream.launch(saxpy, rondo::grid(kBlocks), 0.5f, x, y);
  rondo::graph graph(device);
  const rondo_node first = graph.add_kernel({}, saxpy, rondo::grid(kBlocks), 2.0f, x, y);
  const rondo_node second = graph.add_copy({first}, x, y);
  const rondo_node third = graph.add_fill({second}, rondo::span(x).first(1), 9.0f);
  graph.add_edge(third, graph.add_empty({first, second}));
  const rondo_edge_data early = {RONDO_PORT_PROGRAMMATIC, 0, RONDO_EDGE_PROGRAMMATIC, {}};
  assert_int_equal(thrown_by([&] { graph.add_edge(second, third, early); }).reason(), RONDO_REASON_NODE_KIND);
  assert_int_equal(graph.nodes().size(), 4);
  assert_contains(graph.to_json().c_str(), "saxpy");
  assert_contains(graph.to_dot().c_str(), "saxpy");
  rondo::exec exec(graph);
  exec.launch(stream);
  stream.copy(host, x);
  stream.synchronize();
  assert_true(host[0] == 9.0f && host[1] == 6.0f && host[kCount - 1] == 6.0f);
}

/* Skips where there is no second device, or it has no access to memory of the first. */
DEVICE_TEST(test_ad8_nodes_of_another_device) {
  const std::string first = test_device_name();
  const std::string name = (first.compare(0, 4, "cuda") == 0        ? "cuda:1"
                            : first.compare(0, 9, "cpu:check") == 0 ? "cpu:check:1"
                                                                    : "cpu:1");
  const rondo::device device(first.c_str());
  rondo_device *opened = nullptr;
  if (rondo_device_open(name.c_str(), nullptr, &opened) != RONDO_OK) skip();
  const rondo::device other(opened);
  bool can = false;
  rondo::check(rondo_device_can_access_peer(other.get(), device.get(), &can));
  if (!can) skip();
  rondo::check(rondo_memory_set_access(device.get(), other.get(), true));
  const rondo::stream stream(device);
  const saxpy_kernel saxpy = make_saxpy(other);
  const rondo::memory<float> x(device, kCount, "x"), y(device, kCount, "y");
  const rondo::memory<std::uint32_t> word(device, 1, "word");
  rondo::graph graph(device);
  const rondo_memory_operation written = {RONDO_OPERATION_WRITE_32, {}, word.data(), 5};
  const rondo_node nodes[] = {graph.add_fill({}, x, 2.0f, other), graph.add_fill({}, y, 1.0f)};
  const rondo_node sum = graph.add_kernel(nodes, saxpy, rondo::grid(kBlocks), 0.5f, x, y);
  const rondo_node copy = graph.add_copy({sum}, x, y, other);
  graph.add_memory_operations({copy}, rondo::span<const rondo_memory_operation>(&written, 1), other);
  assert_contains(graph.to_dot().c_str(), "on device 1");
  rondo::exec exec(graph);
  exec.launch(stream);
  std::vector<float> host(kCount);
  std::vector<std::uint32_t> host_word(1);
  stream.copy(host, x);
  stream.copy(host_word, word);
  stream.synchronize();
  assert_true(host[0] == 2.0f && host[kCount - 1] == 2.0f && host_word[0] == 5);
}

DEVICE_TEST(test_ad6_kernels_without_parameters_or_cpu_code) {
  const rondo::device device(test_device_name());
  const rondo::kernel<float *> without(device, "without", nullptr);
  const rondo::error error = thrown_by([&] { rondo::stream(device).launch(without, rondo::grid(1), nullptr); });
  assert_int_equal(error.reason(), RONDO_REASON_NO_FUNCTION);
  rondo::kernel_code code;
  code.cuda_source = "extern \"C\" __global__ void nothing() {}\n";
  const rondo::kernel<> nothing(
      device, "nothing", [](rondo_blocks) {}, code);
  const rondo::stream stream(device);
  stream.launch(nothing, rondo::grid(2));
  stream.synchronize();
}

DEVICE_TEST(test_ad8_symbols_are_spans) {
  const rondo::device device(test_device_name());
  const rondo_symbol listed = {"cxx_symbol", cxx_symbol, sizeof cxx_symbol};
  rondo::kernel_code code;
  code.cuda_source =
      "extern \"C\" __device__ int cxx_symbol[4];\n"
      "extern \"C\" __global__ void cxx_keeper() { cxx_symbol[0] = 0; }\n";
  code.symbols = {&listed, 1};
  const rondo::kernel<> keeper(
      device, "cxx_keeper", [](rondo_blocks) {}, code);
  const rondo::span<int> words = keeper.symbol<int>("cxx_symbol");
  assert_int_equal(words.size(), 4);
  const rondo::stream stream(device);
  rondo::host_memory<int> host(device, 4);
  for (int i = 0; i < 4; i++) host[i] = i + 1;
  stream.copy(words, host);
  stream.synchronize();
  for (int i = 0; i < 4; i++) host[i] = 0;
  stream.copy(host, words);
  stream.synchronize();
  assert_int_equal(host[3], 4);
  const rondo::error error = thrown_by([&] { (void)keeper.symbol<int>("other"); });
  assert_int_equal(error.reason(), RONDO_REASON_UNKNOWN_NAME);
}

DEVICE_TEST(test_ad6_memory_moves_and_is_freed) {
  rondo::device device(test_device_name());
  {
    const rondo::stream stream(device);
    rondo::memory<int> a(device, 8), b(device, 16);
    int *const kept = b.get();
    a = std::move(b);
    assert_ptr_equal(a.get(), kept);
    assert_int_equal(a.size(), 16);
    assert_int_equal(b.size(), 0);
    rondo::host_memory<int> host(device, 16);
    for (int i = 0; i < 16; i++) host[i] = i;
    const rondo::scratch<int> scratch(stream, 16, "scratch");
    stream.copy(scratch, host);
    stream.copy(host, scratch);
    stream.synchronize();
    assert_int_equal(host[15], 15);
    const rondo::error error = thrown_by([&] { rondo::memory<int>(device, SIZE_MAX / 2); });
    assert_int_equal(error.status(), RONDO_OUT_OF_MEMORY);
  }
  device.close(); /* everything was freed */
}

DEVICE_TEST(test_ad6_copies_and_fills_check_their_ranges) {
  const rondo::device device(test_device_name());
  const rondo::stream stream(device);
  const rondo::memory<std::uint16_t> memory(device, 4);
  std::uint16_t host[4] = {};
  const rondo::error error = thrown_by([&] { stream.copy(memory, rondo::span(host).first(3)); });
  assert_int_equal(error.reason(), RONDO_REASON_BAD_SIZE);
  assert_contains(error.what(), "3 elements to 4");
  stream.fill(memory, std::uint16_t{0xabcd});
  stream.copy(rondo::span(host).first(2), rondo::span(memory).first(2));
  stream.synchronize();
  assert_int_equal(host[1], 0xabcd);
  assert_int_equal(host[2], 0);
}

/* AD-3: the block and its shared memory reach a lambda that asks for them. */
DEVICE_TEST(test_ad3_launches_and_nodes_take_a_configuration) {
  constexpr std::uint32_t kX = 4, kY = 8, kWords = kX * kY;
  const rondo::device device(test_device_name());
  const rondo::stream stream(device);
  const rondo::memory<std::uint32_t> words(device, kWords);
  rondo::kernel_code code;
  code.cuda_source =
      "extern \"C\" __global__ void mirror(unsigned *words) {\n"
      "  extern __shared__ unsigned shared[];\n"
      "  const unsigned n = blockDim.x * blockDim.y, t = threadIdx.x + blockDim.x * threadIdx.y;\n"
      "  shared[t] = words[t] + blockDim.y;\n"
      "  __syncthreads();\n"
      "  words[t] = shared[n - 1 - t];\n"
      "}\n";
  const rondo::kernel<std::uint32_t *> mirror(
      device, "mirror",
      [](rondo_blocks, const rondo_thread_block &block, std::uint32_t *of) {
        const std::uint32_t count = block.threads.x * block.threads.y;
        auto *const shared = static_cast<std::uint32_t *>(block.shared);
        for (std::uint32_t i = 0; i < count; i++) shared[i] = of[i] + block.threads.y;
        for (std::uint32_t i = 0; i < count; i++) of[i] = shared[count - 1 - i];
      },
      code);
  rondo_launch_config config = {};
  config.block = {kX, kY, 1};
  config.shared_bytes = kWords * sizeof(std::uint32_t);
  std::uint32_t host[kWords];
  for (std::uint32_t i = 0; i < kWords; i++) host[i] = 100 * i;
  stream.copy(words, rondo::span(host));
  stream.launch(mirror, rondo::grid(1), config, words);
  rondo::graph graph(device);
  graph.add_kernel({}, mirror, rondo::grid(1), config, words);
  rondo::exec(graph).launch(stream);
  stream.copy(rondo::span(host), words);
  stream.synchronize();
  for (std::uint32_t i = 0; i < kWords; i++) assert_int_equal(host[i], 100 * i + 2 * kY);
  config.block = {kX, 1024, 1};
  const rondo::error error = thrown_by([&] { stream.launch(mirror, rondo::grid(1), config, words); });
  assert_int_equal(error.reason(), RONDO_REASON_BAD_SIZE);
}

DEVICE_TEST(test_ad8_memory_operations_in_cxx) {
  const rondo::device device(test_device_name());
  const rondo::stream stream(device);
  const rondo::memory<std::uint32_t> words(device, 2);
  const rondo_memory_operation operations[] = {
      {RONDO_OPERATION_WRITE_32, RONDO_WAIT_GREATER_OR_EQUAL, words.get(), 6},
      {RONDO_OPERATION_WAIT_32, RONDO_WAIT_EQUAL, words.get(), 6},
      {RONDO_OPERATION_WRITE_32, RONDO_WAIT_GREATER_OR_EQUAL, words.get() + 1, 7}};
  stream.memory_operations(operations);
  rondo::graph graph(device);
  graph.add_memory_operations({}, operations);
  rondo::host_memory<std::uint32_t> host(device, 2);
  stream.copy(host, words);
  stream.synchronize();
  assert_int_equal(host[1], 7);
}

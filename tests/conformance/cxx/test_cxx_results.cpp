/* SPDX-License-Identifier: MIT
 * rondo.hpp without exceptions: calls return results, objects come from create (AD-6). This file is compiled with
 * -fno-exceptions.
 */
#include "conformance/cxx/test_cxx.hpp"

DEVICE_TEST(test_ad6_results_hold_a_value) {
  rondo::device device = must(rondo::device::create(test_device_name()));
  rondo::stream stream = must(rondo::stream::create(device, "s"));
  const rondo::event event = must(rondo::event::create(device));
  must(stream.record(event));
  must(stream.synchronize());
  assert_yes(must(event.is_complete()));
  stream.reset();
  assert_int_equal(must(device.info()).index, 0);
}

UNIT_TEST(test_ad6_results_hold_an_error) {
  rondo::result<rondo::device> device = rondo::device::create("no such device");
  assert_no(device);
  assert_int_equal(device.status(), RONDO_NOT_FOUND);
  assert_int_equal(device.error().reason(), RONDO_REASON_UNKNOWN_DEVICE);
  assert_contains(device.error().what(), "no such device");
}

UNIT_TEST(test_ad6_results_of_nothing) {
  const rondo::result<void> failed = rondo::check(rondo_device_synchronize(nullptr));
  assert_no(failed);
  assert_int_equal(failed.status(), RONDO_INVALID_ARGUMENT);
  assert_yes(rondo::check(RONDO_OK));
}

static_assert(std::is_same_v<rondo::returns<int>, rondo::result<int>>);
static_assert(!std::is_constructible_v<rondo::device, const char *>);

DEVICE_TEST(test_ad6_captures_return_what_their_lambda_returns) {
  const rondo::device device = must(rondo::device::create(test_device_name()));
  const rondo::stream stream = must(rondo::stream::create(device));
  int runs = 0;
  rondo::graph graph =
      must(rondo::capture_graph(stream, [&]() -> rondo::result<void> { return stream.host([&runs] { runs++; }); }));
  const rondo::exec exec = must(rondo::exec::create(graph));
  must(exec.launch(stream));
  must(stream.synchronize());
  assert_int_equal(runs, 1);
  const rondo::result<rondo::graph> failed = rondo::capture_graph(stream, [&] { return stream.synchronize(); });
  assert_int_equal(failed.status(), RONDO_CAPTURE_REFUSED);
  must(stream.host([] { return RONDO_IO_ERROR; }));
  assert_int_equal(stream.synchronize().status(), RONDO_EXECUTION_FAILED);
}

DEVICE_TEST(test_ad6_functions_return_what_their_body_returns) {
  const rondo::device device = must(rondo::device::create(test_device_name()));
  const rondo::stream stream = must(rondo::stream::create(device));
  const rondo::tree tree = must(rondo::tree::create(device));
  const rondo::function function =
      must(rondo::function::create(tree, "f", {RONDO_INPUT_SCALAR}, [](rondo::call &call) -> rondo::result<void> {
        rondo::result<int *> output = call.output<int>(0, 4);
        if (!output) return output.error();
        const rondo::result<void> stepped = call.host_step([] {});
        if (!stepped) return stepped;
        return rondo::check(must(call.input_details(0)).scalar == 1 ? RONDO_OK : rondo_stream_synchronize(nullptr));
      }));
  for (int i = 0; i < 3; i++) must(function(stream, {rondo::scalar_input(1)}));
  rondo::result<rondo::buffer> failed = function(stream, {rondo::scalar_input(2)});
  assert_int_equal(failed.error().reason(), RONDO_REASON_NULL_ARGUMENT);
  must(tree.step([&] { return tree.info().status(); }));
}

DEVICE_TEST(test_ad6_regions_and_adopted_streams_return_results) {
  const rondo::device device = must(rondo::device::create(test_device_name()));
  const rondo::stream stream = must(rondo::stream::create(device));
  const rondo::stream adopted = must(rondo::stream::adopt(device, stream.native()));
  const rondo::tree tree = must(rondo::tree::create(device));
  const rondo::region<int> region = must(rondo::region<int>::create(tree, "r", {}));
  for (int i = 0; i < 4; i++)
    must(
        region.run<1>(adopted, 1, {}, [](rondo::call &call) { return rondo::check(call.output<int>(0, 4).status()); }));
  assert_int_equal(must(region.info()).replayed, 2);
  rondo::result<std::array<rondo::buffer, 0>> failed =
      region.run(adopted, 2, {}, [](rondo::call &) { return rondo_stream_synchronize(nullptr); });
  assert_int_equal(failed.error().reason(), RONDO_REASON_NULL_ARGUMENT);
}

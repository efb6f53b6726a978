/* SPDX-License-Identifier: MIT
 * rondo.hpp: handles that move and destroy, and errors as exceptions (AD-6).
 */
#include "conformance/cxx/test_cxx.hpp"

DEVICE_TEST(test_ad6_handles_move_and_close) {
  rondo::device device(test_device_name());
  rondo::stream first(device, "first");
  rondo_stream *const handle = first.get();
  rondo::stream second = std::move(first);
  assert_no(first);
  assert_ptr_equal(second.get(), handle);
  rondo::stream third(device);
  third = std::move(second); /* destroys what it had */
  assert_ptr_equal(third.release(), handle);
  assert_no(third);
  third = rondo::stream(handle); /* takes a handle of C code */
  third.reset();
  device.close();
  assert_no(device);
}

DEVICE_TEST(test_ad6_errors_have_status_reason_and_message) {
  const rondo::error error = thrown_by([] { rondo::device("no such device"); });
  assert_int_equal(error.status(), RONDO_NOT_FOUND);
  assert_int_equal(error.reason(), RONDO_REASON_UNKNOWN_DEVICE);
  assert_int_equal(error.node(), RONDO_NO_NODE);
  assert_contains(error.what(), "no such device");
  assert_string_equal(error.what(), rondo_last_error()->message);
}

/* The destructor of a device that is in use ignores the failure; close() returns it, and the device stays open. */
DEVICE_TEST(test_ad6_a_close_that_fails_keeps_the_device) {
  rondo::device device(test_device_name());
  const rondo::stream stream(device);
  const rondo::error error = thrown_by([&] { device.close(); });
  assert_int_equal(error.reason(), RONDO_REASON_STILL_IN_USE);
  assert_yes(device);
  stream.synchronize();
}

DEVICE_TEST(test_ad6_events_and_streams) {
  const rondo::device device(test_device_name());
  const rondo::stream a(device), b(device);
  const rondo::event event(device);
  a.record(event);
  b.wait(event);
  b.synchronize();
  assert_yes(event.is_complete());
  assert_yes(b.is_complete());
  device.synchronize();
  assert_yes(device.info().name[0] != '\0');
}

/* Where the driver has graphs, its form of a graph is imported. */
DEVICE_TEST(test_ad2_forms_of_the_driver) {
  const rondo::device device(test_device_name());
  const rondo::graph graph(device);
  rondo_node node;
  rondo::check(rondo_graph_add_empty(graph.get(), nullptr, 0, &node));
  const rondo::exec exec(graph);
  if (std::strncmp(test_device_name(), "cuda", 4) != 0) {
    assert_int_equal(thrown_by([&] { (void)graph.native<char *>(); }).reason(), RONDO_REASON_NOT_SUPPORTED);
    assert_int_equal(thrown_by([&] { (void)exec.native<char *>(); }).reason(), RONDO_REASON_NOT_SUPPORTED);
    return;
  }
  assert_non_null(exec.native<char *>());
  assert_int_equal(rondo::graph::from_native(device, graph.native<char *>()).nodes().size(), 1);
}

DEVICE_TEST(test_ad6_a_graph_is_instantiated_and_launched) {
  const rondo::device device(test_device_name());
  const rondo::stream stream(device);
  rondo::graph graph(device);
  rondo_node node;
  rondo::check(rondo_graph_add_empty(graph.get(), nullptr, 0, &node));
  assert_int_equal(graph.nodes().size(), 1);
  rondo::exec exec(graph);
  exec.upload(stream);
  exec.launch(stream);
  exec.update(graph);
  stream.synchronize();
}

/* Handles without a class of their own. */
DEVICE_TEST(test_ad6_make_owns_any_handle) {
  const rondo::device device(test_device_name());
  const auto pool = rondo::make<rondo::pool>(rondo_pool_create, device.get(), nullptr);
  assert_yes(pool);
  const rondo::error error = thrown_by([&] { rondo::make<rondo::pool>(rondo_pool_create, nullptr, nullptr); });
  assert_int_equal(error.reason(), RONDO_REASON_NULL_ARGUMENT);
}

static_assert(!std::is_copy_constructible_v<rondo::graph> && std::is_nothrow_move_constructible_v<rondo::graph> &&
              std::is_nothrow_move_assignable_v<rondo::exec> && std::is_nothrow_copy_constructible_v<rondo::error> &&
              sizeof(rondo::stream) == sizeof(void *));

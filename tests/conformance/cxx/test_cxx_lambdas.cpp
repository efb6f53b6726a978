/* SPDX-License-Identifier: MIT
 * rondo.hpp: lambdas as host functions, as the work of captures, and as bodies and host steps of functions; how long
 * they live, and what becomes of what they throw (AD-6).
 */
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "conformance/cxx/test_cxx.hpp"

namespace {

struct mistake : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/* A device that must close, so that a test leaks no object of it, and a stream. */
struct scene {
  rondo::device device{test_device_name()};
  rondo::stream stream{device};

  ~scene() {
    stream.reset();
    try {
      device.close();
    } catch (const rondo::error &error) {
      fail_msg("%s", error.what());
    }
  }
};

rondo_capture_state state_of(const rondo::stream &stream) {
  rondo_capture_info info = {};
  rondo::check(rondo_capture_get_info(stream.get(), &info));
  return info.state;
}

const std::uint32_t no_inputs[] = {RONDO_INPUT_SCALAR};

}  // namespace

/* Host functions --------------------------------------------------------------------------------------------------- */

DEVICE_TEST(test_ad6_a_host_lambda_runs_once_and_is_destroyed) {
  scene s;
  auto counter = std::make_shared<std::atomic<int>>(0);
  s.stream.host([counter] { (*counter)++; });
  s.stream.host([counter]() -> rondo_status { return ++*counter, RONDO_OK; });
  s.stream.synchronize();
  assert_int_equal(*counter, 2);
  for (int i = 0; i < 1000 && counter.use_count() > 1; i++) s.stream.synchronize();
  assert_int_equal(counter.use_count(), 1);
}

DEVICE_TEST(test_ad6_what_a_host_lambda_throws_comes_out_of_a_synchronization) {
  scene s;
  s.stream.host([] { throw mistake("in a host function"); });
  const mistake thrown = thrown_by<mistake>([&] { s.stream.synchronize(); });
  assert_string_equal(thrown.what(), "in a host function");
  s.stream.synchronize();
  s.stream.host([] { return RONDO_IO_ERROR; });
  const rondo::error error = thrown_by([&] { s.device.synchronize(); });
  assert_int_equal(error.reason(), RONDO_REASON_HOST_FUNCTION_FAILED);
  s.stream.host([] { throw mistake("again"); });
  assert_string_equal(thrown_by<mistake>([&] { s.device.synchronize(); }).what(), "again");
}

DEVICE_TEST(test_ad6_a_captured_lambda_lives_as_long_as_graph_and_execs) {
  scene s;
  auto counter = std::make_shared<std::atomic<int>>(0);
  rondo::graph graph = rondo::capture_graph(s.stream, [&] { s.stream.host([counter] { (*counter)++; }); });
  graph.add_host({}, [counter] { (*counter)++; });
  rondo::exec exec(graph), other(graph);
  graph.reset();
  graph = rondo::graph();
  for (int i = 0; i < 3; i++) exec.launch(s.stream);
  exec = rondo::exec(); /* its launches continue */
  other.launch(s.stream);
  other = rondo::exec();
  s.stream.synchronize();
  assert_int_equal(*counter, 8);
  assert_int_equal(counter.use_count(), 1);
}

/* In a child graph, by the explicit form and by a launch that is captured; and by an update. */
DEVICE_TEST(test_ad6_lambdas_go_with_child_graphs_and_updates) {
  scene s;
  auto counter = std::make_shared<std::atomic<int>>(0);
  rondo::exec all;
  {
    rondo::graph inner(s.device), outer(s.device);
    inner.add_host({}, [counter] { *counter += 1; });
    rondo::exec exec(inner);
    outer.add_child({}, inner);
    rondo::graph captured = rondo::capture_graph(s.stream, [&] { exec.launch(s.stream); });
    outer.add_child({}, captured);
    all = rondo::exec(outer);
    rondo::graph third(s.device), changed(s.device);
    third.add_host({}, [counter] { *counter += 100; });
    changed.add_child({}, third);
    changed.add_child({}, inner);
    all.update(changed);
  }
  all.launch(s.stream);
  s.stream.synchronize();
  assert_int_equal(*counter, 101);
  all = rondo::exec();
  assert_int_equal(counter.use_count(), 1);
}

DEVICE_TEST(test_ad8_a_child_is_replaced_with_its_lambdas) {
  scene s;
  auto counter = std::make_shared<std::atomic<int>>(0);
  rondo::graph outer(s.device), inner(s.device), fresh(s.device);
  inner.add_host({}, [counter] { *counter += 1; });
  fresh.add_host({}, [counter] { *counter += 10; });
  const rondo_node child = outer.add_child({}, inner);
  rondo::exec exec(outer);
  exec.launch(s.stream);
  exec.replace_child(child, fresh);
  exec.launch(s.stream);
  s.stream.synchronize();
  assert_int_equal(*counter, 11);
}

/* An update replaces the lambdas, as soon as earlier launches no longer need them. One that is refused keeps them. */
DEVICE_TEST(test_ad6_updates_replace_lambdas) {
  scene s;
  auto counter = std::make_shared<std::atomic<int>>(0);
  rondo::exec exec;
  for (int i = 0; i < 50; i++) {
    rondo::graph graph(s.device), other(s.device);
    graph.add_host({}, [counter] { *counter += 1; });
    other.add_empty({other.add_host({}, [counter] { *counter += 1000; })});
    if (i == 0)
      exec = rondo::exec(graph);
    else
      exec.update(graph);
    exec.update(graph); /* its own again */
    (void)thrown_by([&] { exec.update(other); });
    exec.launch(s.stream);
    if (i % 10 == 9) s.stream.synchronize();
  }
  s.stream.synchronize();
  assert_int_equal(*counter, 50);
  exec.launch(s.stream);
  s.stream.synchronize();
  assert_int_equal(counter.use_count(), 2);
}

/* Launches before the update still call what they were launched with. */
DEVICE_TEST(test_ad6_an_update_waits_for_nothing) {
  scene s;
  std::vector<int> order;
  std::atomic<bool> may_go{false};
  rondo::graph first(s.device);
  first.add_host({}, [&order, &may_go] {
    while (!may_go) continue;
    order.push_back(1);
  });
  rondo::exec exec(first);
  first = rondo::graph();
  exec.launch(s.stream);
  {
    rondo::graph second(s.device);
    second.add_host({}, [&order] { order.push_back(2); });
    exec.update(second);
  }
  may_go = true;
  exec.launch(s.stream);
  s.stream.synchronize();
  assert_true(order == std::vector<int>({1, 2}));
}

DEVICE_TEST(test_ad6_what_a_captured_lambda_throws_comes_out_at_each_launch) {
  scene s;
  rondo::graph graph(s.device);
  int launches = 0;
  graph.add_host({}, [&launches] {
    if (++launches == 2) throw mistake("second launch");
  });
  rondo::exec exec(graph);
  exec.launch(s.stream);
  s.stream.synchronize();
  exec.launch(s.stream);
  assert_string_equal(thrown_by<mistake>([&] { s.stream.synchronize(); }).what(), "second launch");
  exec.launch(s.stream);
  s.stream.synchronize();
  assert_int_equal(launches, 3);
}

/* Also what C code captures. */
DEVICE_TEST(test_ad6_lambdas_in_captures_of_c_code) {
  scene s;
  auto counter = std::make_shared<std::atomic<int>>(0);
  rondo_graph *graph = nullptr;
  rondo::check(rondo_capture_begin(s.stream.get(), RONDO_CAPTURE_THREAD_LOCAL));
  s.stream.host([counter] { ++*counter; });
  rondo::check(rondo_capture_end(s.stream.get(), &graph));
  rondo::exec exec{rondo::graph(graph)};
  exec.launch(s.stream);
  s.stream.synchronize();
  assert_int_equal(*counter, 1);
  exec = rondo::exec();
  s.stream.synchronize();
  assert_int_equal(counter.use_count(), 1);
}

/* The owner in C code may launch later. */
DEVICE_TEST(test_ad6_released_handles_keep_their_lambdas) {
  scene s;
  auto counter = std::make_shared<std::atomic<int>>(0);
  rondo::graph graph(s.device);
  graph.add_host({}, [counter] { ++*counter; });
  rondo::exec exec(graph);
  rondo_graph *const c_graph = graph.release();
  rondo_exec *const c_exec = exec.release();
  rondo::check(rondo_exec_launch(c_exec, s.stream.get()));
  s.stream.synchronize();
  assert_int_equal(*counter, 1);
  rondo_exec_destroy(c_exec);
  assert_int_equal(counter.use_count(), 2);
  rondo::check(rondo_graph_destroy(c_graph));
  s.stream.synchronize();
  assert_int_equal(counter.use_count(), 1);
}

/* What cannot be added is not retained. */
DEVICE_TEST(test_ad6_a_lambda_that_is_not_added_is_destroyed) {
  scene s;
  auto counter = std::make_shared<int>(0);
  rondo::graph graph(s.device), other(s.device);
  const rondo_node theirs = other.add_empty({});
  const rondo::error why = thrown_by([&] { graph.add_host({theirs}, [counter] { ++*counter; }); });
  assert_int_equal(why.reason(), RONDO_REASON_UNKNOWN_NODE);
  assert_int_equal(counter.use_count(), 1);
  graph.add_host({}, [counter] { ++*counter; });
  assert_int_equal(counter.use_count(), 2);
}

/* Any value, not only lambdas (AD-8). */
DEVICE_TEST(test_ad8_a_graph_retains_values) {
  scene s;
  auto counter = std::make_shared<int>(0);
  std::weak_ptr<int> watched = counter;
  rondo::graph graph(s.device);
  graph.add_empty({});
  graph.retain(std::move(counter));
  graph.retain(std::vector<int>{1, 2, 3});
  rondo::exec exec(graph);
  graph = rondo::graph();
  exec.launch(s.stream);
  assert_false(watched.expired());
  exec = rondo::exec();
  s.stream.synchronize();
  assert_true(watched.expired());
}

/* Captures --------------------------------------------------------------------------------------------------------- */

DEVICE_TEST(test_ad6_what_is_thrown_in_a_capture_drops_it) {
  scene s;
  const rondo::stream other(s.device);
  const rondo::event event(s.device);
  auto counter = std::make_shared<int>(0);
  const mistake thrown = thrown_by<mistake>([&] {
    rondo::capture_graph(s.stream, [&] {
      const rondo::scratch<int> memory(s.stream, 64);
      s.stream.fill(memory, 1);
      s.stream.host([counter] { ++*counter; });
      s.stream.record(event);
      other.wait(event); /* never joined */
      throw mistake("in a capture");
    });
  });
  assert_string_equal(thrown.what(), "in a capture");
  assert_int_equal(state_of(s.stream), RONDO_CAPTURE_NONE);
  assert_int_equal(state_of(other), RONDO_CAPTURE_NONE);
  assert_int_equal(counter.use_count(), 1);
  s.stream.synchronize();
  other.synchronize();
  assert_int_equal(*counter, 0);
}

DEVICE_TEST(test_ad6_a_lambda_of_a_capture_may_return_a_failure) {
  scene s;
  const rondo::error error =
      thrown_by([&] { rondo::capture_graph(s.stream, [&] { return rondo_stream_synchronize(s.stream.get()); }); });
  assert_int_equal(error.status(), RONDO_CAPTURE_REFUSED);
  const rondo::error result = thrown_by([&] {
    rondo::capture_graph(s.stream,
                         [&]() -> rondo::result<void> { return rondo::error(rondo_stream_synchronize(nullptr)); });
  });
  assert_int_equal(result.reason(), RONDO_REASON_NULL_ARGUMENT);
  assert_int_equal(state_of(s.stream), RONDO_CAPTURE_NONE);
}

DEVICE_TEST(test_ad6_a_capture_is_a_scope) {
  scene s;
  {
    rondo::capture dropped(s.stream);
    assert_int_equal(state_of(s.stream), RONDO_CAPTURE_ACTIVE);
  }
  rondo::capture capture(s.stream);
  assert_int_equal(thrown_by([&] { rondo::capture(s.stream); }).reason(), RONDO_REASON_ALREADY_CAPTURING);
  assert_int_equal(state_of(s.stream), RONDO_CAPTURE_ACTIVE);
  assert_int_equal(capture.end().nodes().size(), 0);
  assert_int_equal(state_of(s.stream), RONDO_CAPTURE_NONE);
}

DEVICE_TEST(test_ad6_a_recording_captures_a_lambda) {
  scene s;
  auto counter = std::make_shared<std::atomic<int>>(0);
  rondo::recording recording(s.device);
  thrown_by<mistake>([&] { recording.capture(s.stream, [] { throw mistake("in a recording"); }); });
  assert_int_equal(state_of(s.stream), RONDO_CAPTURE_NONE);
  recording.capture(s.stream, [&] { s.stream.host([counter] { (*counter)++; }); });
  for (int i = 0; i < 3; i++) recording.replay(s.stream);
  rondo::recording moved = std::move(recording);
  moved.clear(); /* waits */
  assert_int_equal(*counter, 3);
  assert_int_equal(counter.use_count(), 1);
}

/* Functions of trees ----------------------------------------------------------------------------------------------- */

DEVICE_TEST(test_ad6_a_lambda_is_the_body_of_a_function) {
  scene s;
  const rondo::tree tree(s.device);
  const rondo::memory<std::uint32_t> x(s.device, 256);
  s.stream.fill(x, 7u);
  int bodies = 0;
  const rondo::function copy(tree, "copy", {RONDO_INPUT_MOVING}, [&](rondo::call &call) {
    bodies++;
    assert_int_equal(call.input_details(0).bytes, x.bytes());
    const auto *from = call.input<std::uint32_t>(0);
    std::uint32_t *const to = call.output<std::uint32_t>(0, 256);
    call.stream().copy(rondo::span(to, 256), rondo::span(from, 256));
    call.stream().fill(rondo::span(call.output<char>(1, 4), 4), 'x');
  });
  std::vector<std::uint32_t> host(2);
  for (int i = 0; i < 5; i++) {
    const rondo::buffer y = copy(s.stream, {rondo::input(x)});
    y.copy_to(s.stream, host, 254);
  }
  const auto [first, second] = copy.call<2>(s.stream, {rondo::input(x)});
  char last[1];
  second.copy_to(s.stream, last, 3);
  const rondo::buffer shared = first.share(), cloned = first.clone(s.stream);
  s.stream.synchronize();
  assert_ptr_equal(shared.address<void>(), first.address<void>());
  assert_ptr_not_equal(cloned.address<void>(), first.address<void>());
  assert_int_equal(host[1], 7);
  assert_int_equal(last[0], 'x');
  assert_int_equal(bodies, 2);
  assert_int_equal(tree.info().replayed, 4);
  assert_contains(tree.explain().c_str(), "copy");
}

/* At the warm-up, and while the body is recorded: the call fails, and the function works afterwards. */
DEVICE_TEST(test_ad6_what_a_body_throws_comes_out_of_the_call) {
  scene s;
  const rondo::tree tree(s.device);
  int bodies = 0, failing = 0;
  const rondo::function function(tree, "throws", no_inputs, [&](rondo::call &call) {
    char *const output = call.output<char>(0, 64);
    call.stream().fill(rondo::span(output, 64), 'y');
    if (++bodies == failing) throw mistake("body " + std::to_string(bodies));
  });
  const auto call = [&] { (void)function(s.stream, {rondo::scalar_input(1)}); };
  failing = 1;
  assert_string_equal(thrown_by<mistake>(call).what(), "body 1");
  call(); /* warm-up */
  failing = bodies + 1;
  assert_string_equal(thrown_by<mistake>(call).what(), "body 3");
  assert_int_equal(state_of(s.stream), RONDO_CAPTURE_NONE);
  for (int i = 0; i < 3; i++) call();
  assert_true(tree.info().replayed > 0);
}

/* What comes out is why the call failed, and not what was thrown before in it. */
DEVICE_TEST(test_ad6_no_other_exception_comes_out_of_a_call) {
  scene s;
  rondo_tree_options strict = {};
  strict.strict = true;
  const rondo::tree tree(s.device), strict_tree(s.device, strict);
  const rondo::function failing(tree, "failing", no_inputs, [](rondo::call &call) -> rondo_status {
    try {
      call.host_step([] { throw mistake("handled by the body"); });
    } catch (const mistake &) {
    }
    return rondo_stream_synchronize(nullptr);
  });
  assert_int_equal(thrown_by([&] { (void)failing.call<0>(s.stream, {rondo::scalar_input(1)}); }).status(),
                   RONDO_INVALID_ARGUMENT);
  const rondo::function waiting(strict_tree, "waiting", no_inputs,
                                [](rondo::call &call) { call.stream().synchronize(); });
  const auto call = [&] { (void)waiting.call<0>(s.stream, {rondo::scalar_input(1)}); };
  call();
  assert_int_equal(thrown_by(call).reason(), RONDO_REASON_NOT_RECORDED);
  assert_int_equal(state_of(s.stream), RONDO_CAPTURE_NONE);
}

/* A body that goes on after a step has thrown fails with what the step threw. */
DEVICE_TEST(test_ad6_what_a_step_throws_is_not_lost_by_the_body) {
  scene s;
  const rondo::tree tree(s.device);
  bool is_failing = false;
  const rondo::function function(tree, "steps", no_inputs, [&](rondo::call &call) {
    call.output<char>(0, 64);
    try {
      call.host_step([&] {
        if (is_failing) throw mistake("first step");
      });
    } catch (const mistake &) {
    }
    call.host_step([] {});
  });
  const auto call = [&] { (void)function(s.stream, {rondo::scalar_input(1)}); };
  for (int i = 0; i < 3; i++) {
    is_failing = true;
    assert_string_equal(thrown_by<mistake>(call).what(), "first step");
    is_failing = false;
    call();
  }
}

/* The call waits for earlier work, and so finds that it has failed. Nothing is left for the next failure. */
DEVICE_TEST(test_ad6_what_a_host_lambda_throws_comes_out_of_a_call_that_waits) {
  scene s;
  const rondo::tree tree(s.device);
  const rondo::function function(tree, "waits", no_inputs, [&](rondo::call &call) {
    call.output<char>(0, 64);
    call.host_step([] {});
  });
  const auto call = [&] { (void)function(s.stream, {rondo::scalar_input(1)}); };
  for (int i = 0; i < 5; i++) {
    s.stream.host([] { throw mistake("in earlier work"); });
    assert_string_equal(thrown_by<mistake>(call).what(), "in earlier work");
    s.stream.host([] { return RONDO_IO_ERROR; });
    (void)thrown_by([&] { s.stream.synchronize(); });
    call();
  }
}

/* Each call waits for its own work on a synchronous device. */
DEVICE_TEST(test_ad6_what_a_host_lambda_throws_comes_out_of_synchronous_calls) {
  rondo_device_options options = {};
  options.synchronous = true;
  const rondo::device device(test_device_name(), options);
  const rondo::stream stream(device);
  assert_string_equal(thrown_by<mistake>([&] { stream.host([] { throw mistake("enqueued"); }); }).what(), "enqueued");
  rondo::graph graph(device);
  graph.add_host({}, [] { throw mistake("launched"); });
  const rondo::exec exec(graph);
  assert_string_equal(thrown_by<mistake>([&] { exec.launch(stream); }).what(), "launched");
  rondo::recording recording(device);
  recording.capture(stream, [&] { stream.host([] { throw mistake("replayed"); }); });
  assert_string_equal(thrown_by<mistake>([&] { recording.replay(stream); }).what(), "replayed");
  stream.synchronize();
}

/* C code that calls the function gets a status and the text. */
DEVICE_TEST(test_ad6_what_a_body_throws_is_an_error_for_c_code) {
  scene s;
  const rondo::tree tree(s.device);
  const rondo::function function(tree, "throws", no_inputs, [](rondo::call &call) {
    if (call.input_details(0).scalar == 1) throw mistake("for C");
    if (call.input_details(0).scalar == 2) throw 2;
    if (call.input_details(0).scalar == 3) throw std::bad_alloc();
    rondo::check(rondo_stream_synchronize(nullptr));
  });
  const rondo_status expected[] = {RONDO_EXECUTION_FAILED, RONDO_EXECUTION_FAILED, RONDO_OUT_OF_MEMORY,
                                   RONDO_INVALID_ARGUMENT};
  const char *const texts[] = {"for C", "no std::exception", "bad_alloc", "rondo_stream_synchronize"};
  for (std::uint64_t i = 0; i < 4; i++) {
    const rondo_input input = rondo::scalar_input(i + 1);
    assert_int_equal(rondo_function_call(function.get(), s.stream.get(), &input, 1, nullptr, 0), expected[i]);
    assert_contains(rondo_last_error()->message, texts[i]);
  }
}

DEVICE_TEST(test_ad6_host_lambdas_of_a_body_run_in_every_call) {
  auto counter = std::make_shared<std::atomic<int>>(0);
  {
    scene s;
    const rondo::tree tree(s.device);
    const rondo::function function(tree, "hosts", no_inputs, [counter](rondo::call &call) {
      call.output<char>(0, 64);
      call.stream().host([counter] { *counter += 1; });
    });
    for (int i = 0; i < 6; i++) (void)function(s.stream, {rondo::scalar_input(1)});
    s.stream.synchronize();
    assert_int_equal(*counter, 6);
    assert_int_equal(tree.info().replayed, 4);
  }
  assert_int_equal(counter.use_count(), 1);
}

DEVICE_TEST(test_ad6_host_steps_are_lambdas) {
  scene s;
  const rondo::tree tree(s.device);
  auto counter = std::make_shared<int>(0);
  {
    const rondo::function function(tree, "steps", no_inputs, [counter](rondo::call &call) {
      call.output<char>(0, 64);
      call.host_step([counter] {
        if (++*counter % 4 == 0) throw mistake("step " + std::to_string(*counter));
      });
    });
    const auto call = [&] { (void)function(s.stream, {rondo::scalar_input(1)}); };
    for (int i = 1; i <= 9; i++) {
      if (i % 4 != 0)
        call();
      else
        assert_string_equal(thrown_by<mistake>(call).what(), ("step " + std::to_string(i)).c_str());
    }
    assert_int_equal(*counter, 9);
    assert_true(counter.use_count() < 5); /* the function's, the test's and one for each recording */
  }
  s.stream.synchronize();
  assert_int_equal(counter.use_count(), 1);
}

/* Recordings that are evicted take their lambdas along, in calls of C code too. */
DEVICE_TEST(test_ad6_lambdas_go_with_their_recordings) {
  scene s;
  rondo_tree_options options = {};
  options.max_recordings = 2;
  const rondo::tree tree(s.device, options);
  auto hosts = std::make_shared<std::atomic<int>>(0), steps = std::make_shared<std::atomic<int>>(0);
  {
    const rondo::function function(tree, "lambdas", no_inputs, [hosts, steps](rondo::call &call) {
      call.output<char>(0, 64);
      call.stream().host([hosts] { ++*hosts; });
      call.host_step([steps] { ++*steps; });
    });
    for (std::uint64_t value = 0; value < 20; value++)
      for (int i = 0; i < 4; i++) {
        const rondo_input input = rondo::scalar_input(value);
        tree.mark_step();
        if (value % 2 == 0)
          (void)function(s.stream, {input});
        else
          rondo::check(rondo_function_call(function.get(), s.stream.get(), &input, 1, nullptr, 0));
      }
    s.stream.synchronize();
    assert_int_equal(*hosts, 80);
    assert_int_equal(*steps, 80);
    assert_int_equal(tree.info().recorded, 20);
    assert_true(hosts.use_count() <= 8); /* the test's and the body's, and those of the last recordings */
    assert_true(steps.use_count() <= 8);
  }
  assert_int_equal(hosts.use_count(), 1);
  assert_int_equal(steps.use_count(), 1);
}

/* The frame of the call is missing then. */
DEVICE_TEST(test_ad6_c_code_calls_functions_with_host_steps) {
  scene s;
  const rondo::tree tree(s.device);
  int steps = 0;
  const rondo::function function(tree, "steps", no_inputs, [&](rondo::call &call) {
    call.host_step([&] {
      if (++steps == 4) throw mistake("fourth step");
    });
  });
  const rondo_input input = rondo::scalar_input(1);
  const auto call = [&] { return rondo_function_call(function.get(), s.stream.get(), &input, 1, nullptr, 0); };
  for (int i = 0; i < 3; i++) assert_int_equal(call(), RONDO_OK);
  assert_int_equal(call(), RONDO_EXECUTION_FAILED);
  assert_contains(rondo_last_error()->message, "fourth step");
  assert_int_equal(call(), RONDO_OK);
  assert_int_equal(steps, 5);
}

/* What a recording refuses is a rondo::error: the tree runs the body again, as for C code. */
DEVICE_TEST(test_ad6_a_refused_recording_runs_eagerly) {
  scene s;
  const rondo::tree tree(s.device);
  int bodies = 0;
  const rondo::function function(tree, "waits", no_inputs, [&](rondo::call &call) {
    bodies++;
    call.stream().synchronize();
  });
  for (int i = 0; i < 3; i++) (void)function.call<0>(s.stream, {rondo::scalar_input(1)});
  assert_int_equal(tree.info().recorded, 0);
  assert_true(bodies >= 3);
  assert_true(tree.info().skipped[RONDO_SKIP_HOST_WORK] > 0);
}

/* The steps of a function that is never recorded do not add up. */
DEVICE_TEST(test_ad6_lambdas_of_eager_calls_are_destroyed) {
  scene s;
  const rondo::tree tree(s.device);
  auto counter = std::make_shared<int>(0);
  rondo_function_options options = {};
  options.unsafe = true;
  const rondo::function inner(
      tree, "inner", no_inputs, [counter](rondo::call &call) { call.host_step([counter] { ++*counter; }); }, options);
  const rondo::function outer(
      tree, "outer", no_inputs,
      [&](rondo::call &call) { (void)inner.call<0>(call.stream(), {rondo::scalar_input(1)}); }, options);
  for (int i = 0; i < 10; i++) (void)outer.call<0>(s.stream, {rondo::scalar_input(1)});
  assert_int_equal(*counter, 10);
  assert_int_equal(counter.use_count(), 2);
}

DEVICE_TEST(test_ad6_a_step_ends_when_it_throws) {
  scene s;
  const rondo::tree tree(s.device);
  thrown_by<mistake>([&] { tree.step([] { throw mistake("in a step"); }); });
  tree.step([&] {});
  const rondo::error error = thrown_by([&] { rondo::check(rondo_tree_step_end(tree.get())); });
  assert_int_equal(error.reason(), RONDO_REASON_SCOPE);
  tree.mark_step();
}

/* Regions and adopted streams -------------------------------------------------------------------------------------- */

DEVICE_TEST(test_ad6_the_code_of_a_region_is_a_lambda) {
  scene s;
  const rondo::tree tree(s.device);
  const rondo::memory<std::uint32_t> x(s.device, 64);
  s.stream.fill(x, 7u);
  auto counter = std::make_shared<std::atomic<int>>(0);
  int runs = 0;
  {
    const rondo::region<int> region(tree, "engine", {RONDO_INPUT_MOVING});
    for (int i = 0; i < 8; i++) {
      std::uint32_t first = 0;
      const auto [y] = region.run<1>(s.stream, i % 2, {rondo::input(x)}, [&](rondo::call &call) {
        runs++;
        const rondo::span to(call.output<std::uint32_t>(0, 64), 64);
        call.stream().copy(to, rondo::span(call.input<std::uint32_t>(0), 64));
        call.stream().fill(to.first(1), static_cast<std::uint32_t>(i % 2));
        call.stream().host([counter] { ++*counter; });
      });
      y.copy_to(s.stream, rondo::span(&first, 1));
      s.stream.synchronize();
      assert_int_equal(first, i % 2);
    }
    assert_int_equal(runs, 4); /* each key's warm-up and recording */
    assert_int_equal(region.info().replayed, 4);
    assert_int_equal(*counter, 8);
  }
  assert_int_equal(counter.use_count(), 1);
}

/* In the warm-up, in the capture, and in code that waits, which runs again eagerly. */
DEVICE_TEST(test_ad6_what_the_code_of_a_region_throws_comes_out) {
  scene s;
  const rondo::tree tree(s.device);
  auto counter = std::make_shared<std::atomic<int>>(0);
  const rondo::region<> region(tree, "throws", {});
  int runs = 0, failing = 1;
  const auto run = [&] {
    region.run(s.stream, {}, {}, [&](rondo::call &call) {
      const rondo::scratch<char> memory(call.stream(), 64);
      call.stream().fill(memory, 'x');
      call.stream().host([counter] {});
      if (++runs == failing) throw mistake("run " + std::to_string(runs));
    });
  };
  assert_string_equal(thrown_by<mistake>(run).what(), "run 1");
  run();
  failing = runs + 1;
  assert_string_equal(thrown_by<mistake>(run).what(), ("run " + std::to_string(failing)).c_str());
  assert_int_equal(state_of(s.stream), RONDO_CAPTURE_NONE);
  for (int i = 0; i < 3; i++) run();
  assert_true(region.info().replayed > 0);
  assert_int_equal(region.info().left, 0);
  const rondo::region<> waiting(tree, "waits", {});
  for (int i = 0; i < 3; i++) waiting.run(s.stream, {}, {}, [](rondo::call &call) { call.stream().synchronize(); });
  assert_int_equal(waiting.info().captured, 0);
  thrown_by([&] { waiting.run(s.stream, {}, {}, [](rondo::call &) { return rondo_stream_synchronize(nullptr); }); });
}

/* Then each call of the code fails, and a program throws what it likes. */
DEVICE_TEST(test_ad6_code_that_throws_because_its_capture_died_runs_again) {
  scene s;
  const rondo::tree tree(s.device);
  const rondo::region<> region(tree, "dies", {});
  int runs = 0;
  for (int i = 0; i < 4; i++)
    region.run(s.stream, {}, {}, [&](rondo::call &call) {
      const rondo::scratch<char> memory(call.stream(), 64);
      call.stream().fill(memory, 'x');
      if (++runs != 2) return;
      std::thread([&] { thrown_by([&] { s.device.synchronize(); }); }).join();
      throw mistake("its calls fail");
    });
  assert_int_equal(runs, 4); /* eager, captured and eager, captured */
  assert_int_equal(region.info().died, 1);
  assert_int_equal(region.info().replayed, 1);
}

DEVICE_TEST(test_ad6_adopted_streams) {
  scene s;
  const rondo::memory<int> x(s.device, 4);
  int read[4] = {};
  {
    const rondo::stream adopted = rondo::stream::adopt(s.device, s.stream.native(), "adopted");
    assert_ptr_equal(s.stream.native<char>(), rondo_stream_native(s.stream.get()));
    s.stream.fill(x, 3);
    rondo::exec(rondo::capture_graph(adopted, [&] { adopted.fill(rondo::span(x).first(2), 4); })).launch(adopted);
    s.stream.copy(read, x);
    adopted.synchronize();
  }
  s.stream.synchronize();
  assert_int_equal(read[0], 4);
  assert_int_equal(read[3], 3);
  int nothing = 0;
  rondo::capture capture(s.stream);
  assert_int_equal(thrown_by([&] { rondo::stream::adopt(s.device, s.stream.native()); }).reason(),
                   RONDO_REASON_ALREADY_CAPTURING);
  (void)capture.end();
  if (std::strncmp(test_device_name(), "cpu", 3) == 0)
    assert_int_equal(thrown_by([&] { rondo::stream::adopt(s.device, &nothing); }).reason(), RONDO_REASON_STREAM_GONE);
}

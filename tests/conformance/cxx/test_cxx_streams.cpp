/* SPDX-License-Identifier: MIT
 * rondo.hpp: a session and a compiled program on a stream that another handle of the device owns (AD-1, AD-6).
 */
#include "conformance/cxx/test_cxx.hpp"

/* y = tanh(x) of so many rows. */
static rondo_status build(void *, size_t rows, rondo_program *program) {
  rondo_value value;
  rondo::check(rondo_program_input(program, "x", RONDO_F32, &rows, 1, &value));
  rondo::check(rondo_op_tanh(program, value, &value));
  return rondo_program_output(program, "y", value);
}

DEVICE_TEST(test_ad1_sessions_and_programs_on_adopted_streams) {
  const rondo::device owner(test_device_name()), device(test_device_name());
  const rondo::stream theirs(owner);
  rondo::stream stream = rondo::stream::adopt(device, theirs.native());
  const float x[] = {0, 100};
  float y[] = {5, 5};
  {
    rondo_stream *const streams[] = {stream.get()};
    rondo_session_options options{};
    options.stream_list = streams;
    const auto session = rondo::make<rondo::session>(rondo_session_create, device.get(), &options);
    rondo_model_options model{};
    model.build = build;
    rondo::check(rondo_session_add_model(session.get(), "tanh", &model));
    const void *const inputs[] = {x};
    void *const outputs[] = {y};
    rondo_request request{};
    request.rows = 2;
    request.inputs = inputs;
    request.outputs = outputs;
    rondo::check(rondo_session_run(session.get(), "tanh", &request, nullptr));
    assert_true(y[0] == 0 && y[1] == 1);
    assert_int_equal(rondo_stream_destroy(stream.get()), RONDO_INVALID_STATE);
  }
  const auto program = rondo::make<rondo::program>(rondo_program_create, nullptr);
  rondo::check(build(nullptr, 2, program.get()));
  rondo_compile_options on{};
  on.stream = stream.get();
  const auto compiled = rondo::make<rondo::compiled>(rondo_compile, program.get(), device.get(), &on);
  rondo::check(rondo_compiled_write(compiled.get(), "x", x, sizeof x));
  rondo::check(rondo_compiled_run(compiled.get()));
  stream.synchronize();
  rondo::check(rondo_compiled_read(compiled.get(), "y", y, sizeof y));
  assert_true(y[0] == 0 && y[1] == 1);
}

/* SPDX-License-Identifier: MIT
 * Random numbers in functions (TR-13): warmed up, recorded and replayed calls draw the same numbers as eager ones.
 * After the tests of PyTorch's CUDAGraph Trees, whose names and numbers the tests have. The peer saves and restores the
 * state of its generator inside a graph; a call of Rondo sets it before. In assert_seen, each letter is a call: e
 * eager, r recorded, p replayed.
 */
#include <string.h>

#include "support/test_random_work.h"
#include "support/test_scene.h"

/* out = uniform numbers, and out 1 = the input and those, bit by bit. */
static rondo_status draw_body(rondo_call *call, void *user) {
  rondo_generator *generator = user;
  void *out;
  assert_ok(rondo_call_output(call, 0, SCENE_BYTES, NULL, &out));
  assert_ok(rondo_random_uniform(generator, rondo_call_stream(call), out, SCENE_WORDS, 0, 1));
  scene_combine(call, 1, scene_input(call, 0), out);
  return RONDO_OK;
}

static rondo_function *make_draw(test_scene *s, const char *name, rondo_function_kind kind,
                                 rondo_generator *generator) {
  return SCENE_FUNCTION(s, name, draw_body, generator, .kind = kind, RONDO_INPUTS(RONDO_INPUT_MOVING));
}

/* Calls the function, and asserts that `drawn` has the numbers of the seed at the offset. */
static void call_draw(test_scene *s, rondo_function *f, const uint32_t *x, uint64_t seed, uint64_t offset) {
  rondo_buffer *outs[2];
  float drawn[SCENE_WORDS], expected[SCENE_WORDS];
  uint32_t mixed[SCENE_WORDS], bits[SCENE_WORDS];
  SCENE_CALL(s, f, outs, 2, scene_at(x));
  assert_ok(rondo_buffer_copy(outs[0], s->stream, 0, drawn, sizeof drawn));
  assert_ok(rondo_buffer_copy(outs[1], s->stream, 0, mixed, sizeof mixed));
  assert_ok(rondo_stream_synchronize(s->stream));
  test_expect_uniform(expected, SCENE_WORDS, seed, offset, 0, 1);
  assert_memory_equal(drawn, expected, sizeof drawn);
  memcpy(bits, expected, sizeof bits);
  for (uint32_t i = 0; i < SCENE_WORDS; i++) assert_int_equal(mixed[i], (1 + i) * 31 + bits[i]);
  for (int k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
}

/* 13 test_rng_trees, 14 test_rng_non_trees: seeding again repeats the numbers, with any mix of warm-ups, recordings and
 * replays. */
SCENE_TEST(test_tr13_peer_13_14_the_same_numbers) {
  rondo_generator *generator = test_generator(s->fixture, "g", 3);
  rondo_function *f = make_draw(s, "f", RONDO_FUNCTION_INFERENCE, generator);
  const uint32_t *x = scene_words(s, 1);
  for (uint64_t i = 0; i < 5; i++) call_draw(s, f, x, 3, 4 * i);
  assert_seen(s, "erppp");
  for (uint64_t seed = 3; seed < 6; seed++) {
    assert_ok(rondo_generator_seed(generator, seed));
    for (uint64_t i = 0; i < 4; i++) {
      assert_ok(rondo_function_set_recording(f, i % 2 == 0));
      call_draw(s, f, x, seed, 4 * i);
    }
  }
  assert_seen(s, "pepepepepepe");
}

/* An abandoned recording draws nothing: the eager run after it does. */
static rondo_status refusing_body(rondo_call *call, void *user) {
  const rondo_status status = draw_body(call, user);
  return status == RONDO_OK ? rondo_call_refuse(call, RONDO_SKIP_UNSAFE, "draw") : status;
}
SCENE_TEST(test_tr13_what_is_taken_back_draws_nothing) {
  rondo_generator *generator = test_generator(s->fixture, "g", 9);
  rondo_function *f = SCENE_FUNCTION(s, "f", draw_body, generator, .min_nodes = 100, RONDO_INPUTS(RONDO_INPUT_MOVING));
  rondo_function *refusing = SCENE_FUNCTION(s, "refusing", refusing_body, generator, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (uint64_t i = 0; i < 8; i++) call_draw(s, i % 2 == 0 ? f : refusing, x, 9, 4 * i);
  assert_seen(s, "eeeeeeee");
}

/* 231 TestSAC test_simple, 239 test_retain_graph: a backward computes its forward again from the forward's state, once
 * or twice, and draws the same numbers; the next step draws others. 232 test_cudagraph_uneven_forward_backward: with a
 * recording that was made at another state. */
SCENE_TEST(test_tr13_peer_231_232_239_drawn_again) {
  rondo_generator *generator = test_generator(s->fixture, "g", 5);
  rondo_function *forward = make_draw(s, "forward", RONDO_FUNCTION_FORWARD, generator);
  rondo_function *backward = make_draw(s, "backward", RONDO_FUNCTION_BACKWARD, generator);
  const uint32_t *x = scene_words(s, 1);
  for (uint64_t i = 0; i < 5; i++) {
    rondo_generator_state then = {RONDO_GENERATOR_STATE_INIT}, now = {RONDO_GENERATOR_STATE_INIT};
    assert_ok(rondo_generator_get_state(generator, &then));
    call_draw(s, forward, x, 5, 4 * i);
    assert_ok(rondo_generator_get_state(generator, &now));
    for (int twice = 0; twice < 2; twice++) {
      assert_ok(rondo_generator_set_state(generator, &then));
      call_draw(s, backward, x, 5, 4 * i);
    }
    assert_ok(rondo_generator_set_state(generator, &now));
  }
  assert_outcome(s->tree, RONDO_CALL_REPLAYED);
}

/* 234 test_uneven_forward_backward: three forwards, whose backwards run in each of six orders. */
SCENE_TEST(test_tr13_peer_234_backwards_in_any_order) {
  static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  rondo_generator *generator = test_generator(s->fixture, "g", 5);
  rondo_function *forward = make_draw(s, "forward", RONDO_FUNCTION_FORWARD, generator);
  rondo_function *backward = make_draw(s, "backward", RONDO_FUNCTION_BACKWARD, generator);
  const uint32_t *x = scene_words(s, 1);
  uint64_t offset = 0;
  for (int order = 0; order < 6; order++) {
    rondo_generator_state states[3], now = {RONDO_GENERATOR_STATE_INIT};
    const uint64_t begin = offset;
    scene_begin(s);
    for (int i = 0; i < 3; i++, offset += 4) {
      states[i] = (rondo_generator_state){RONDO_GENERATOR_STATE_INIT};
      assert_ok(rondo_generator_get_state(generator, &states[i]));
      call_draw(s, forward, x, 5, offset);
    }
    assert_ok(rondo_generator_get_state(generator, &now));
    for (int i = 0; i < 3; i++) {
      assert_ok(rondo_generator_set_state(generator, &states[orders[order][i]]));
      call_draw(s, backward, x, 5, begin + 4 * (uint64_t)orders[order][i]);
    }
    assert_ok(rondo_generator_set_state(generator, &now));
    scene_end(s);
  }
}

/* 235 test_cudagraphs_aot_eager_compat_equal, 237 test_graph_partition_...: seeded steps with recording and without are
 * equal to the bit, with a host step between draws, too. */
static rondo_status stepping_body(rondo_call *call, void *user) {
  void *out;
  assert_ok(rondo_call_output(call, 0, SCENE_BYTES, NULL, &out));
  assert_ok(rondo_random_uniform(user, rondo_call_stream(call), out, SCENE_WORDS / 2, 0, 1));
  const rondo_status status = rondo_call_host_step(call, test_host_nothing, NULL);
  if (status != RONDO_OK) return status;
  assert_ok(rondo_random_uniform(user, rondo_call_stream(call), (float *)out + SCENE_WORDS / 2, SCENE_WORDS / 2, 0, 1));
  scene_combine(call, 1, scene_input(call, 0), out);
  return RONDO_OK;
}
SCENE_TEST(test_tr13_peer_235_237_recorded_or_not) {
  enum { STEPS = 5 };
  const rondo_function_body bodies[] = {draw_body, stepping_body};
  const uint32_t *x = scene_words(s, 1);
  for (int body = 0; body < 2; body++) {
    rondo_generator *generator = test_generator(s->fixture, "g", 0);
    uint32_t drawn[2][STEPS][SCENE_WORDS];
    rondo_function *f = SCENE_FUNCTION(s, "f", bodies[body], generator, RONDO_INPUTS(RONDO_INPUT_MOVING));
    for (int on = 0; on < 2; on++) {
      assert_ok(rondo_tree_set_recording(s->tree, on != 0));
      assert_ok(rondo_generator_seed(generator, 77));
      for (int i = 0; i < STEPS; i++) {
        rondo_buffer *outs[2];
        SCENE_CALL(s, f, outs, 2, scene_at(x));
        assert_ok(rondo_buffer_copy(outs[1], s->stream, 0, drawn[on][i], SCENE_BYTES));
        assert_ok(rondo_stream_synchronize(s->stream));
        for (int k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
      }
    }
    assert_memory_equal(drawn[0], drawn[1], sizeof drawn[0]);
    assert_seen(s, "eeeeeerppp");
    rondo_generator_destroy(generator);
  }
}

/* 233 test_cpu_and_cuda_rng, 238 test_multi_device: a tree and a generator on each of two devices, of two kinds if
 * available. Both draw the same numbers, and a backward repeats the numbers that the forward of the other device drew.
 * */
typedef struct drawer {
  rondo_stream *stream;
  rondo_tree *tree;
  rondo_generator *generator;
  rondo_function *forward, *backward;
} drawer;

static rondo_status draw_alone_body(rondo_call *call, void *user) {
  void *out;
  assert_ok(rondo_call_output(call, 0, SCENE_BYTES, NULL, &out));
  return rondo_random_uniform(user, rondo_call_stream(call), out, SCENE_WORDS, 0, 1);
}

static void open_drawer(drawer *d, rondo_device *device) {
  const rondo_generator_options options = {RONDO_GENERATOR_OPTIONS_INIT, .name = "g", .seed = 5};
  assert_ok(rondo_stream_create(device, NULL, &d->stream));
  assert_ok(rondo_tree_create(device, NULL, &d->tree));
  assert_ok(rondo_generator_create(device, &options, &d->generator));
  rondo_function_options function = {RONDO_FUNCTION_OPTIONS_INIT, .kind = RONDO_FUNCTION_FORWARD, .name = "forward",
                                     .body = draw_alone_body, .user = d->generator};
  assert_ok(rondo_function_create(d->tree, &function, &d->forward));
  function.kind = RONDO_FUNCTION_BACKWARD;
  function.name = "backward";
  assert_ok(rondo_function_create(d->tree, &function, &d->backward));
}

static void close_drawer(const drawer *d) {
  assert_ok(rondo_tree_destroy(d->tree));
  rondo_generator_destroy(d->generator);
  assert_ok(rondo_stream_destroy(d->stream));
}

/* Calls it; its numbers are those of the seed at the offset. */
static void draw_alone(const drawer *d, rondo_function *f, uint64_t offset) {
  rondo_buffer *out;
  float drawn[SCENE_WORDS], expected[SCENE_WORDS];
  assert_ok(rondo_function_call(f, d->stream, NULL, 0, &out, 1));
  assert_ok(rondo_buffer_copy(out, d->stream, 0, drawn, sizeof drawn));
  assert_ok(rondo_stream_synchronize(d->stream));
  test_expect_uniform(expected, SCENE_WORDS, 5, offset, 0, 1);
  assert_memory_equal(drawn, expected, sizeof drawn);
  rondo_buffer_release(out);
}

static void draw_on_both(const drawer drawers[2]) {
  for (uint64_t i = 0; i < 5; i++) {
    rondo_generator_state then[2], now = {RONDO_GENERATOR_STATE_INIT};
    for (int k = 0; k < 2; k++) {
      then[k] = (rondo_generator_state){RONDO_GENERATOR_STATE_INIT};
      assert_ok(rondo_generator_get_state(drawers[k].generator, &then[k]));
      draw_alone(&drawers[k], drawers[k].forward, 4 * i);
    }
    assert_ok(rondo_generator_get_state(drawers[0].generator, &now));
    for (int k = 0; k < 2; k++) {
      assert_ok(rondo_generator_set_state(drawers[k].generator, &then[1 - k]));
      draw_alone(&drawers[k], drawers[k].backward, 4 * i);
      assert_ok(rondo_generator_set_state(drawers[k].generator, &now));
    }
  }
  for (int k = 0; k < 2; k++) assert_outcome(drawers[k].tree, RONDO_CALL_REPLAYED);
}

SCENE_TEST(test_tr13_peer_233_238_on_two_devices) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1,
                                        .allocator = &s->fixture->allocator.table};
  const char *const names[] = {test_device_is("cuda") ? "cuda:1" : "cpu:1", "cpu:2"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    rondo_device *other = NULL;
    drawer drawers[2];
    const rondo_status opened = rondo_device_open(names[i], &options, &other);
    if (opened == RONDO_NOT_FOUND && i == 0 && test_device_is("cuda")) continue; /* one GPU */
    assert_ok(opened);
    open_drawer(&drawers[0], s->fixture->device);
    open_drawer(&drawers[1], other);
    draw_on_both(drawers);
    for (int k = 0; k < 2; k++) close_drawer(&drawers[k]);
    assert_ok(rondo_device_close(other));
  }
}

/* SPDX-License-Identifier: MIT
 * TR-13 for combined graphs: execs in flight on several streams, graphs in graphs, clones, updates, relocation and
 * patching, generators that are destroyed, launches that fail, threads. The numbers are always those of eager runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/foreign_library.h"
#include "support/test_effort.h"
#include "support/test_random_work.h"

enum { FLOATS = 13 };

/* Buffers with different draws, and the floats that they should hold. */
typedef struct draws {
  float *values;
  float *expected;
  size_t count;
} draws;

static draws make_draws(test_fixture *t, size_t count) {
  return (draws){test_floats(t, count * FLOATS), test_host(count * FLOATS, sizeof(float)), count};
}

static float *draw_at(const draws *d, size_t i) { return d->values + i * FLOATS; }

static void expect(draws *d, size_t i, uint64_t seed, uint64_t offset) {
  test_expect_uniform(d->expected + i * FLOATS, FLOATS, seed, offset, 0, 1);
}

static void assert_draws(test_fixture *t, const draws *d) {
  assert_floats(t, d->values, d->expected, d->count * FLOATS);
}

static void free_draws(test_fixture *t, draws *d) {
  test_floats_free(t, d->values);
  test_host_free(d->expected);
}

static void fill(rondo_generator *generator, rondo_stream *stream, float *values) {
  assert_ok(rondo_random_uniform(generator, stream, values, FLOATS, 0, 1));
}

static void begin(rondo_stream *stream) { assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL)); }

/* A graph of one fill. */
static rondo_graph *record_fill(test_fixture *t, rondo_generator *generator, float *values) {
  begin(t->stream);
  fill(generator, t->stream, values);
  return test_capture_end(t->stream);
}

static void copy_floats(rondo_stream *stream, float *to, const float *from) {
  assert_ok(rondo_copy_async(stream, to, from, FLOATS * sizeof *to));
}

/* In flight ------------------------------------------------------------------------------------------------------- */

/* L1: launches of one exec on two streams, all queued while the first cannot begin: none finds another's cells. */
TEST_WORKERS(test_tr13_one_exec_on_two_streams) {
  test_skip_if_serial();
  enum { LAUNCHES = 40 };
  rondo_stream *const streams[2] = {t->stream, test_stream(t, "other")};
  rondo_generator *generator = test_generator(t, "g", 1);
  draws d = make_draws(t, LAUNCHES + 1);
  begin(t->stream);
  fill(generator, t->stream, draw_at(&d, LAUNCHES));
  rondo_graph *graph = test_capture_end(t->stream);
  rondo_exec *exec = test_instantiate(graph);
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  for (uint64_t i = 0; i < LAUNCHES; i++) {
    rondo_stream *stream = streams[i / 3 % 2];
    assert_ok(rondo_exec_launch(exec, stream));
    if (i % 5 == 4) assert_ok(rondo_generator_seed(generator, i));
    if (i + 1 < LAUNCHES && i % 3 == 2) test_order(t, stream, streams[(i + 1) / 3 % 2]);
  }
  assert_ok(rondo_generator_seed(generator, 77));
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(streams[1]));
  expect(&d, LAUNCHES, 34, 16); /* the last one's: seeded with 34 before, and four launches since */
  assert_ok(rondo_stream_synchronize(t->stream));
  float read[FLOATS];
  test_read(t, read, draw_at(&d, LAUNCHES), sizeof read);
  assert_memory_equal(read, d.expected + LAUNCHES * FLOATS, sizeof read);
  test_stream_destroy(streams[1]);
  free_draws(t, &d);
}

/* Every launch's numbers are kept by a copy in the graph's stream; the streams change without any other order. */
TEST_WORKERS(test_tr13_streams_change_without_waiting) {
  enum { LAUNCHES = 60 };
  rondo_stream *const streams[3] = {t->stream, test_stream(t, "second"), test_stream(t, "third")};
  rondo_generator *generator = test_generator(t, "g", 5);
  rondo_kernel *kernel = test_draw_kernel(t);
  uint32_t *sum = test_words(t, 1), *word = test_words(t, 1), *out = test_words(t, 1), expected = 0;
  begin(t->stream);
  test_draw(t, kernel, generator, t->stream, word, 1, 4);
  assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){1, 0, 0},
                         RONDO_ARGS(&sum, &word, &out)));
  assert_ok(rondo_copy_async(t->stream, sum, out, sizeof *sum));
  rondo_graph *graph = test_capture_end(t->stream);
  rondo_exec *exec = test_instantiate(graph);
  uint64_t random = 3;
  for (uint64_t i = 0; i < LAUNCHES; i++) {
    assert_ok(rondo_exec_launch(exec, streams[test_random_below(&random, 3)]));
    expected = expected * 31 + rondo_philox(5, 0, 4 * i).x[0];
  }
  for (int i = 0; i < 3; i++) assert_ok(rondo_stream_synchronize(streams[i]));
  assert_words(t, sum, &expected, 1);
  test_stream_destroy(streams[2]);
  test_stream_destroy(streams[1]);
}

/* Two execs of one graph, and one of its clone, have separate cells: while one is blocked on its stream, the other
 * continues. */
TEST_WORKERS(test_tr13_execs_of_one_graph_are_independent) {
  test_skip_if_serial();
  rondo_stream *side = test_stream(t, "side");
  rondo_generator *generator = test_generator(t, "g", 9);
  draws d = make_draws(t, 4);
  rondo_graph *graph = record_fill(t, generator, draw_at(&d, 3)), *clone;
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_increment(clone, generator, 4);
  rondo_exec *execs[3] = {test_instantiate(graph), test_instantiate(graph), test_instantiate(clone)};
  test_graph_destroy(clone);
  test_graph_destroy(graph);
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  assert_ok(rondo_exec_launch(execs[0], t->stream)); /* waits, with the first numbers */
  copy_floats(t->stream, draw_at(&d, 0), draw_at(&d, 3));
  for (size_t i = 1; i < 3; i++) {
    assert_ok(rondo_exec_launch(execs[i], side));
    copy_floats(side, draw_at(&d, i), draw_at(&d, 3));
  }
  assert_ok(rondo_stream_synchronize(side));
  test_gate_open(gate);
  for (uint64_t i = 0; i < 3; i++) expect(&d, i, 9, 4 * i);
  expect(&d, 3, 9, 0);
  assert_draws(t, &d);
  for (int i = 0; i < 3; i++) rondo_exec_destroy(execs[i]);
  free_draws(t, &d);
}

/* L2: an exec is destroyed while its launches wait; nothing is left of its cells once they are done. */
TEST_WORKERS(test_tr13_execs_destroyed_in_flight) {
  test_skip_if_serial();
  rondo_generator *generator = test_generator(t, "g", 9);
  draws d = make_draws(t, 6);
  const uint32_t live = test_memory_statistics(t).live_allocations;
  test_gate *gate = test_gate_make();
  rondo_exec *execs[6];
  for (size_t i = 0; i < 6; i++) execs[i] = test_fill_exec(t, generator, draw_at(&d, i), FLOATS);
  test_gate_hold(gate, t->stream);
  for (size_t i = 0; i < 6; i++) {
    assert_ok(rondo_exec_launch(execs[i], t->stream));
    rondo_exec_destroy(execs[i]);
  }
  rondo_generator_destroy(generator); /* the numbers were drawn */
  test_gate_open(gate);
  for (uint64_t i = 0; i < 6; i++) expect(&d, i, 9, 4 * i);
  assert_draws(t, &d);
  rondo_generator *next = test_generator(t, "next", 1);
  rondo_exec_destroy(test_fill_exec(t, next, draw_at(&d, 0), FLOATS));
  assert_int_equal(test_memory_statistics(t).live_allocations, live);
  rondo_generator_destroy(next);
  free_draws(t, &d);
}

/* Destroyed while launches may still run. The teardown asserts that the device closes and leaves no host memory. */
TEST(test_tr13_closing_after_launches) {
  rondo_stream *stream;
  rondo_generator *generator;
  void *memory;
  rondo_device *device = test_device(test_device_name(), &(rondo_device_options){.allocator = &t->allocator.table});
  assert_ok(rondo_stream_create(device, NULL, &stream));
  assert_ok(rondo_malloc(device, FLOATS * sizeof(float), NULL, &memory));
  assert_ok(rondo_generator_create(device, NULL, &generator));
  begin(stream);
  fill(generator, stream, memory);
  rondo_graph *graph = test_capture_end(stream);
  rondo_exec *exec = test_instantiate(graph);
  for (int i = 0; i < 10; i++) assert_ok(rondo_exec_launch(exec, stream));
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  rondo_generator_destroy(generator);
  assert_ok(rondo_stream_destroy(stream));
  assert_ok(rondo_free(device, memory));
}

/* Graphs and execs keep their generators alive, and continue from their current state. */
TEST(test_tr13_destroyed_generators) {
  rondo_generator *generator = test_generator(t, "g", 4);
  draws d = make_draws(t, 3);
  rondo_graph *graph = record_fill(t, generator, draw_at(&d, 2));
  fill(generator, t->stream, draw_at(&d, 0));
  rondo_generator_destroy(generator);
  rondo_exec *exec = test_exec_of(graph);
  for (uint64_t i = 0; i < 2; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    copy_floats(t->stream, draw_at(&d, 1), draw_at(&d, 2));
    expect(&d, 0, 4, 0);
    expect(&d, 1, 4, 4 + 4 * i);
    expect(&d, 2, 4, 4 + 4 * i);
    assert_draws(t, &d);
  }
  free_draws(t, &d);
}

/* A hit allocates nothing: launches of an exec that is warm, and reservations. */
TEST(test_tr13_launches_allocate_nothing) {
  rondo_generator *generator = test_generator(t, "g", 1);
  draws d = make_draws(t, 1);
  rondo_exec *exec = test_fill_exec(t, generator, draw_at(&d, 0), FLOATS);
  rondo_random random;
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  fill(generator, t->stream, draw_at(&d, 0));
  assert_ok(rondo_stream_synchronize(t->stream));
  const uint64_t before = test_statistics(t).host_allocations;
  for (int i = 0; i < 100; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_ok(rondo_generator_reserve(generator, t->stream, 1, &random));
    fill(generator, t->stream, draw_at(&d, 0));
    if (i % 10 == 9) assert_ok(rondo_stream_synchronize(t->stream));
  }
  if (test_device_is("cpu") && !test_is_guarded(t)) assert_int_equal(test_statistics(t).host_allocations, before);
  rondo_exec_destroy(exec);
  free_draws(t, &d);
}

/* A launch that is refused draws nothing (TR-15). */
TEST(test_tr13_refused_launches_draw_nothing) {
  if (!test_device_info(t->device).graph_memory) skip();
  rondo_stream *side = test_stream(t, "side");
  rondo_generator *generator = test_generator(t, "g", 12);
  draws d = make_draws(t, 1);
  begin(t->stream);
  fill(generator, t->stream, draw_at(&d, 0));
  void *kept = test_allocate_async(t->stream, 4096);
  rondo_graph *graph = test_capture_end(t->stream);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_state(generator, 12, 4);
  for (int i = 0; i < 3; i++) {
    assert_error(rondo_exec_launch(exec, i == 1 ? side : t->stream), RONDO_INVALID_LIFETIME,
                 RONDO_REASON_STILL_ALLOCATED);
    assert_state(generator, 12, 4);
  }
  assert_ok(rondo_free_async(t->stream, kept));
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_free_async(t->stream, kept));
  assert_state(generator, 12, 8);
  expect(&d, 0, 12, 4);
  assert_draws(t, &d);
  assert_ok(rondo_stream_synchronize(side));
  free_draws(t, &d);
}

/* Graphs in graphs ------------------------------------------------------------------------------------------------ */

/* GX-2, the form of GM-20 for cells: a graph is twice in another, with draws before, between and after, and that graph
 * is in a third; a launch draws in the order in which the nodes were added. */
TEST(test_tr13_child_graphs) {
  rondo_generator *generator = test_generator(t, "g", 6), *second = test_generator(t, "second", 60);
  draws d = make_draws(t, 10);
  rondo_graph *inner, *middle, *outer;
  float *shared = draw_at(&d, 9);
  begin(t->stream);
  fill(generator, t->stream, shared);
  fill(second, t->stream, draw_at(&d, 8));
  inner = test_capture_end(t->stream);
  rondo_exec *inner_exec = test_instantiate(inner);

  begin(t->stream);
  fill(generator, t->stream, draw_at(&d, 0));
  assert_ok(rondo_exec_launch(inner_exec, t->stream));
  copy_floats(t->stream, draw_at(&d, 1), shared);
  fill(generator, t->stream, draw_at(&d, 2));
  assert_ok(rondo_exec_launch(inner_exec, t->stream));
  copy_floats(t->stream, draw_at(&d, 3), shared);
  middle = test_capture_end(t->stream);
  assert_increment(middle, generator, 16);
  assert_increment(middle, second, 8);
  rondo_exec *middle_exec = test_instantiate(middle);

  begin(t->stream);
  fill(generator, t->stream, draw_at(&d, 4));
  assert_ok(rondo_exec_launch(middle_exec, t->stream));
  assert_ok(rondo_exec_launch(inner_exec, t->stream));
  copy_floats(t->stream, draw_at(&d, 5), shared);
  fill(generator, t->stream, draw_at(&d, 6));
  outer = test_capture_end(t->stream);
  assert_increment(outer, generator, 28);
  assert_increment(outer, second, 12);
  rondo_exec_destroy(middle_exec);
  rondo_exec_destroy(inner_exec);
  test_graph_destroy(middle);
  test_graph_destroy(inner);
  assert_state(generator, 6, 0);

  rondo_exec *exec = test_exec_of(outer);
  static const size_t order[] = {4, 0, 1, 2, 3, 5, 6}; /* buffers, as a plain run draws them */
  for (uint64_t launch = 0; launch < 3; launch++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    for (uint64_t i = 0; i < 7; i++) expect(&d, order[i], 6, 28 * launch + 4 * i);
    expect(&d, 8, 60, 12 * launch + 8);
    expect(&d, 9, 6, 28 * launch + 20);
    assert_draws(t, &d);
  }
  free_draws(t, &d);
}

/* One graph in two parallel branches. */
TEST(test_tr13_children_side_by_side) {
  rondo_generator *generator = test_generator(t, "g", 7);
  draws d = make_draws(t, 4);
  rondo_graph *children[2], *graph = test_graph(t);
  for (size_t i = 0; i < 2; i++) children[i] = record_fill(t, generator, draw_at(&d, i));
  for (size_t i = 0; i < 4; i++) {
    rondo_node node, fill_of;
    assert_ok(rondo_graph_add_child(graph, NULL, 0, children[i % 2], &node));
    const rondo_copy copy = {.dst = draw_at(&d, 2 + i % 2), .src = draw_at(&d, i % 2), .width = FLOATS * sizeof(float)};
    if (i < 2) assert_ok(rondo_graph_add_copy(graph, &node, 1, &copy, &fill_of));
    if (i >= 2) assert_ok(rondo_graph_remove(graph, node)); /* its place stays taken */
  }
  assert_increment(graph, generator, 16);
  rondo_exec *exec = test_instantiate(graph);
  for (uint64_t launch = 0; launch < 2; launch++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    for (uint64_t i = 0; i < 4; i++) expect(&d, i, 7, 16 * launch + 4 * (i % 2));
    assert_draws(t, &d);
  }
  for (size_t i = 0; i < 2; i++) test_graph_destroy(children[i]);
  free_draws(t, &d);
}

/* A graph contains its own earlier state; a child that is also a separate graph begins at 0. */
TEST(test_tr13_a_graph_in_itself) {
  rondo_generator *generator = test_generator(t, "g", 8);
  draws d = make_draws(t, 2);
  rondo_graph *graph = record_fill(t, generator, draw_at(&d, 0)), *copy;
  rondo_node nodes[2] = {{0}}, child;
  size_t count = 2;
  assert_ok(rondo_graph_nodes(graph, nodes, &count));
  assert_int_equal(count, 1);
  const rondo_copy keep = {.dst = draw_at(&d, 1), .src = draw_at(&d, 0), .width = FLOATS * sizeof(float)};
  assert_ok(rondo_graph_add_copy(graph, &nodes[0], 1, &keep, &nodes[1]));
  assert_ok(rondo_graph_add_child(graph, &nodes[1], 1, graph, &child));
  assert_increment(graph, generator, 8);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  expect(&d, 0, 8, 4);
  expect(&d, 1, 8, 4);
  assert_draws(t, &d); /* the child ran last */
  rondo_node_params params = test_node_params(graph, child);
  rondo_random random;
  assert_error(rondo_generator_reserve_in_graph(generator, params.as.child, 4, &random), RONDO_INVALID_STATE,
               RONDO_REASON_STILL_IN_USE);
  assert_ok(rondo_graph_clone(params.as.child, &copy));
  assert_ok(rondo_generator_reserve_in_graph(generator, copy, 4, &random));
  assert_int_equal(random.offset, 4);
  assert_increment(copy, generator, 8);
  assert_increment(graph, generator, 8);
  test_run_once(t, copy);
  expect(&d, 0, 8, 8);
  expect(&d, 1, 8, 8);
  assert_draws(t, &d);
  test_graph_destroy(copy);
  test_graph_destroy(graph);
  free_draws(t, &d);
}

/* GX-2: captured and built by hand are the same graph, with the same needs; a second capture into it continues the
 * count. */
TEST(test_tr13_built_by_hand) {
  rondo_generator *generator = test_generator(t, "g", 3);
  rondo_kernel *kernel = test_draw_kernel(t);
  uint32_t *words = test_words(t, 3);
  begin(t->stream);
  test_draw(t, kernel, generator, t->stream, words, 1, 2);
  test_draw(t, kernel, generator, t->stream, words + 1, 1, 5);
  rondo_graph *captured = test_capture_end(t->stream), *built = test_graph(t), *clone;
  rondo_node last = {0};
  for (size_t i = 0; i < 2; i++) {
    rondo_random random;
    uint32_t *out = words + i;
    assert_ok(rondo_generator_reserve_in_graph(generator, built, i == 0 ? 4 : 8, &random));
    assert_ok(rondo_graph_add_kernel(built, &last, i > 0, kernel, (rondo_grid){1, 0, 0},
                                     RONDO_ARGS(RONDO_RANDOM_ARGS(random), &out), &last));
  }
  assert_same_graph(captured, built);
  assert_increment(built, generator, 12);
  assert_ok(rondo_graph_clone(built, &clone));
  assert_ok(rondo_capture_begin_to_graph(t->stream, built, &last, 1, RONDO_CAPTURE_THREAD_LOCAL));
  test_draw(t, kernel, generator, t->stream, words + 2, 1, 1);
  assert_ok(rondo_capture_end(t->stream, &built));
  assert_increment(built, generator, 16);
  assert_increment(clone, generator, 12);
  test_run_once(t, built);
  const uint32_t expected[3] = {rondo_philox(3, 0, 0).x[0], rondo_philox(3, 0, 4).x[0], rondo_philox(3, 0, 12).x[0]};
  assert_words(t, words, expected, 3);
  test_run_once(t, clone);
  assert_int_equal(test_word(t, words), rondo_philox(3, 0, 16).x[0]);
  test_graph_destroy(clone);
}

/* A kernel may have what it draws from in a parameter of any form, but must have reserved it in its own graph. */
TEST(test_tr13_where_cells_are_found) {
  rondo_generator *generator = test_generator(t, "g", 31);
  rondo_kernel *kernel = test_draw_kernel(t), *packed = test_packed_draw_kernel(t);
  uint32_t *words = test_words(t, 1);
  rondo_random random;
  rondo_graph *graph = test_graph(t), *around = test_graph(t);
  rondo_node node;
  assert_ok(rondo_generator_reserve_in_graph(generator, graph, 4, &random));
  assert_ok(rondo_generator_reserve_in_graph(generator, graph, 4, &random));
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, packed, (rondo_grid){1, 0, 0}, RONDO_ARGS(&random, &words), &node));
  test_run_once(t, graph);
  assert_int_equal(test_word(t, words), rondo_philox(31, 0, 4).x[0]);
  test_graph_destroy(graph);
  graph = test_graph(t);
  assert_ok(rondo_generator_reserve_in_graph(generator, around, 4, &random));
  assert_invalid(rondo_graph_add_kernel(graph, NULL, 0, kernel, (rondo_grid){1, 0, 0},
                                        RONDO_ARGS(RONDO_RANDOM_ARGS(random), &words), &node),
                 RONDO_REASON_FOREIGN_ADDRESS);
  assert_message("generator 'g'");
  assert_invalid(
      rondo_graph_add_kernel(graph, NULL, 0, packed, (rondo_grid){1, 0, 0}, RONDO_ARGS(&random, &words), &node),
      RONDO_REASON_FOREIGN_ADDRESS);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL)); /* reserved for another graph */
  assert_invalid(rondo_launch(t->stream, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(RONDO_RANDOM_ARGS(random), &words)),
                 RONDO_REASON_FOREIGN_ADDRESS);
  test_graph_destroy(test_capture_end(t->stream));
}

/* Changes --------------------------------------------------------------------------------------------------------- */

static void update(rondo_exec *exec, rondo_graph *graph) {
  rondo_update_result result = {.struct_size = sizeof result};
  assert_ok(rondo_exec_update(exec, graph, &result));
  assert_int_equal(result.reason, RONDO_REASON_NONE);
}

/* GX-5: an exec takes the needs of a graph of the same form: of the same generator, of others, of none; launches that
 * are queued keep theirs. */
TEST(test_tr13_updates) {
  rondo_generator *first = test_generator(t, "first", 1), *second = test_generator(t, "second", 2);
  rondo_kernel *kernel = test_draw_kernel(t);
  uint32_t *words = test_words(t, 10);
  rondo_generator *const draws_from[][2] = {{first, first}, {first, second}, {second, first},
                                            {NULL, first},  {NULL, NULL},    {second, second}};
  enum { FORMS = sizeof draws_from / sizeof *draws_from };
  rondo_graph *graphs[FORMS];
  for (size_t i = 0; i < FORMS; i++) {
    begin(t->stream);
    for (size_t k = 0; k < 2; k++) {
      uint32_t *word = words + k;
      const rondo_random constant = {.seed = 100 + k};
      if (draws_from[i][k] != NULL)
        test_draw(t, kernel, draws_from[i][k], t->stream, word, 1, 1);
      else
        assert_ok(
            rondo_launch(t->stream, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(RONDO_RANDOM_ARGS(constant), &word)));
    }
    graphs[i] = test_capture_end(t->stream);
  }
  rondo_exec *exec = test_instantiate(graphs[0]);
  rondo_stream *side = test_stream(t, "side");
  uint64_t random = 17, offsets[2] = {0, 0};
  size_t form = 0;
  for (int i = 0; i < 60; i++) {
    uint32_t expected[2];
    rondo_stream *stream = i % 7 < 4 ? t->stream : side;
    for (size_t k = 0; k < 2; k++) {
      const rondo_generator *of = draws_from[form][k];
      const size_t number = of == second;
      expected[k] = of == NULL ? rondo_philox(100 + k, 0, 0).x[0] : rondo_philox(number + 1, 0, offsets[number]).x[0];
      if (of != NULL) offsets[number] += 4;
    }
    assert_ok(rondo_exec_launch(exec, stream));
    assert_ok(rondo_copy_async(stream, words + 2, words, 2 * sizeof *words));
    form = test_random_below(&random, FORMS);
    update(exec, graphs[form]); /* while the launch may be in flight */
    assert_ok(rondo_stream_synchronize(stream));
    assert_words(t, words + 2, expected, 2);
  }
  assert_state(first, 1, offsets[0]);
  assert_state(second, 2, offsets[1]);
}

typedef struct draw_params {
  rondo_random random;
  uint32_t *out;
  const void *args[4];
  rondo_node_params params;
} draw_params;

static void set_draw_params(draw_params *self, rondo_kernel *kernel, rondo_random random, uint32_t *out) {
  *self = (draw_params){.random = random, .out = out};
  const void *const args[4] = {RONDO_RANDOM_ARGS(self->random), &self->out};
  memcpy(self->args, args, sizeof args);
  self->params =
      (rondo_node_params){.kind = RONDO_NODE_KERNEL,
                          .as.kernel = {.kernel = kernel, .grid = {1, 0, 0}, .args = self->args, .arg_count = 4}};
}

/* One node of an exec draws from another place, from its own cells still; other generators' cells are refused. */
TEST(test_tr13_one_nodes_parameters) {
  rondo_generator *generator = test_generator(t, "g", 13), *other = test_generator(t, "other", 14);
  rondo_kernel *kernel = test_draw_kernel(t), *packed = test_packed_draw_kernel(t);
  uint32_t *words = test_words(t, 2), *out = words;
  rondo_random random, foreign;
  rondo_graph *graph = test_graph(t), *elsewhere = test_graph(t);
  rondo_node node;
  draw_params changed;
  assert_ok(rondo_generator_reserve_in_graph(generator, graph, 8, &random));
  assert_ok(rondo_generator_reserve_in_graph(other, elsewhere, 8, &foreign));
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, kernel, (rondo_grid){1, 0, 0},
                                   RONDO_ARGS(RONDO_RANDOM_ARGS(random), &out), &node));
  rondo_exec *exec = test_instantiate(graph);
  rondo_random moved = random;
  moved.offset += 4;
  set_draw_params(&changed, kernel, moved, words + 1);
  assert_ok(rondo_exec_set_params(exec, node, &changed.params));
  assert_ok(rondo_exec_launch(exec, t->stream));
  uint32_t expected[2] = {0, rondo_philox(13, 0, 4).x[0]};
  assert_words(t, words, expected, 2);
  set_draw_params(&changed, packed, random, words + 1);
  changed.args[0] = &changed.random;
  changed.args[1] = &changed.out;
  changed.params.as.kernel.arg_count = 2;
  assert_error(rondo_exec_set_params(exec, node, &changed.params), RONDO_UPDATE_REFUSED,
               RONDO_REASON_PARAMETERS_CHANGED);
  assert_message("RONDO_READS");
  set_draw_params(&changed, kernel, foreign, words + 1);
  assert_invalid(rondo_exec_set_params(exec, node, &changed.params), RONDO_REASON_FOREIGN_ADDRESS);
  assert_invalid(rondo_graph_set_params(graph, node, &changed.params), RONDO_REASON_FOREIGN_ADDRESS);
  assert_ok(rondo_exec_launch(exec, t->stream));
  expected[1] = rondo_philox(13, 0, 12).x[0];
  assert_words(t, words, expected, 2);
  assert_ok(rondo_exec_set_enabled(exec, node, false));
  assert_ok(rondo_exec_launch(exec, t->stream)); /* its numbers are left out */
  assert_words(t, words, expected, 2);
  assert_state(generator, 13, 24);
  update(exec, graph);
  assert_ok(rondo_exec_set_enabled(exec, node, true));
  assert_ok(rondo_exec_launch(exec, t->stream));
  expected[0] = rondo_philox(13, 0, 24).x[0];
  assert_words(t, words, expected, 2);
}

/* GM-20: relocated, with memory of its own, and with cells; and not relocated with memory. */
TEST(test_tr13_with_graph_memory) {
  if (!test_device_info(t->device).graph_memory) skip();
  rondo_generator *generator = test_generator(t, "g", 2);
  draws d = make_draws(t, 2);
  begin(t->stream);
  void *scratch = test_allocate_async(t->stream, FLOATS * sizeof(float));
  fill(generator, t->stream, scratch);
  copy_floats(t->stream, draw_at(&d, 0), scratch);
  fill(generator, t->stream, scratch);
  copy_floats(t->stream, draw_at(&d, 1), scratch);
  assert_ok(rondo_free_async(t->stream, scratch));
  rondo_graph *graph = test_capture_end(t->stream);
  const rondo_instantiate_options relocating = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = true};
  rondo_exec *execs[2];
  assert_ok(rondo_instantiate(graph, NULL, &execs[0]));
  assert_ok(rondo_instantiate(graph, &relocating, &execs[1]));
  for (uint64_t i = 0; i < 6; i++) {
    assert_ok(rondo_exec_launch(execs[i % 2], t->stream));
    expect(&d, 0, 2, 8 * i);
    expect(&d, 1, 2, 8 * i + 4);
    assert_draws(t, &d);
    if (i == 3) update(execs[0], graph);
    if (i == 3) update(execs[1], graph);
  }
  for (int i = 0; i < 2; i++) {
    rondo_exec_info sizes = test_exec_info(execs[i]);
    assert_true(sizes.device_bytes >= 16); /* GX-12 */
    rondo_exec_destroy(execs[i]);
  }
  free_draws(t, &d);
}

/* TR-6: draws are written to the current address of the buffer. */
TEST(test_tr13_patched_launches) {
  rondo_generator *generator = test_generator(t, "g", 3);
  float *places[3], expected[FLOATS];
  for (size_t i = 0; i < 3; i++) places[i] = test_floats(t, 64);
  rondo_exec *exec = test_fill_exec(t, generator, places[0], FLOATS);
  const rondo_patch_input input = {.address = places[0], .bytes = FLOATS * sizeof(float)};
  rondo_patch_set *set;
  assert_ok(rondo_patch_set_create(exec, &input, 1, NULL, &set));
  for (uint64_t i = 0; i < 9; i++) {
    const void *const address = places[i * 2 % 3];
    assert_ok(rondo_patch_set_launch(set, t->stream, &address));
    test_expect_uniform(expected, FLOATS, 3, 4 * i, 0, 1);
    assert_floats(t, places[i * 2 % 3], expected, FLOATS);
  }
  rondo_patch_set_destroy(set);
}

/* Measuring really launches; its nodes are the user's only. */
TEST(test_tr13_measured_launches) {
  rondo_generator *generator = test_generator(t, "g", 3);
  draws d = make_draws(t, 1);
  rondo_exec *exec = test_fill_exec(t, generator, draw_at(&d, 0), FLOATS);
  rondo_node_time times[3];
  size_t count = 3;
  assert_ok(rondo_exec_measure(exec, t->stream, 4, times, &count));
  assert_int_equal(count, 1);
  assert_state(generator, 3, 20);
  expect(&d, 0, 3, 16);
  assert_draws(t, &d);
  rondo_exec_destroy(exec);
  free_draws(t, &d);
}

/* RC-1: recordings draw as their plain work does. */
TEST(test_tr13_recordings) {
  rondo_generator *generator = test_generator(t, "g", 44);
  draws d = make_draws(t, 1);
  rondo_recording *recording = test_recording(t, NULL);
  fill(generator, t->stream, draw_at(&d, 0));
  assert_ok(rondo_recording_capture_begin(recording, t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  fill(generator, t->stream, draw_at(&d, 0));
  assert_ok(rondo_recording_capture_end(recording, t->stream));
  for (uint64_t i = 1; i < 4; i++) {
    assert_ok(rondo_recording_replay(recording, t->stream));
    expect(&d, 0, 44, 4 * i);
    assert_draws(t, &d);
  }
  assert_ok(rondo_recording_destroy(recording));
  free_draws(t, &d);
}

/* Work of libraries (GX-8): a kernel that a library launches with the cells among its arguments has the exec's; a
 * graph that only the driver can hold cannot draw. */
TEST(test_tr13_foreign_work) {
  if (!test_device_is("cuda")) skip();
  foreign_library *library = foreign_open();
  rondo_generator *generator = test_generator(t, "g", 19);
  uint32_t *words = test_words(t, 64);
  void *native = rondo_stream_native(t->stream), *theirs;
  rondo_exec *exec;
  rondo_random random;
  begin(t->stream);
  assert_ok(rondo_generator_reserve(generator, t->stream, 4, &random));
  assert_int_equal(foreign_affine(library, native, 1, 1, (uint32_t *)(uintptr_t)random.cells), 0);
  rondo_graph *graph = test_capture_end(t->stream);
  exec = test_instantiate(graph); /* where it adds 1 to the exec's cells, to no effect */
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  begin(t->stream);
  fill(generator, t->stream, (float *)(void *)words);
  assert_int_equal(foreign_allocate(library, native, 4096, &theirs), 0);
  assert_int_equal(foreign_free(library, native, theirs), 0);
  graph = test_capture_end(t->stream);
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  test_graph_destroy(graph);
  test_words_free(t, words);
  foreign_close(library);
}

/* Threads --------------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 64 };

typedef struct drawer {
  rondo_stream *stream;
  rondo_generator *generator;
  rondo_exec *exec;
  uint32_t *word, *kept;
  bool failed;
} drawer;

/* Alternately by a launch and plainly; every word is kept. */
static void draw_many(void *user) {
  drawer *self = user;
  rondo_random random;
  for (size_t i = 0; i < ROUNDS && !self->failed; i++) {
    rondo_status status = rondo_exec_launch(self->exec, self->stream);
    if (status == RONDO_OK) status = rondo_copy_async(self->stream, self->kept + i, self->word, sizeof *self->word);
    if (status == RONDO_OK && i % 8 == 0) status = rondo_generator_reserve(self->generator, self->stream, 1, &random);
    self->failed = status != RONDO_OK;
  }
}

static int compare_words(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* GX-10: launches of several execs from several threads draw each range once, and all that were drawn are from the
 * generator's sequence. */
TEST(test_tr13_threads_draw_each_number_once) {
  enum { DRAWN = THREADS * ROUNDS, TAKEN = DRAWN + THREADS * ROUNDS / 8 };
  rondo_generator *generator = test_generator(t, "g", 23);
  rondo_kernel *kernel = test_draw_kernel(t);
  uint32_t *words = test_words(t, THREADS), *kept = test_words(t, DRAWN), read[DRAWN], possible[TAKEN];
  drawer drawers[THREADS];
  test_thread threads[THREADS];
  for (size_t i = 0; i < THREADS; i++) {
    begin(t->stream);
    test_draw(t, kernel, generator, t->stream, words + i, 1, 1);
    rondo_graph *graph = test_capture_end(t->stream);
    drawers[i] = (drawer){.stream = test_stream(t, "drawer"),
                          .generator = generator,
                          .exec = test_instantiate(graph),
                          .word = words + i,
                          .kept = kept + i * ROUNDS};
    test_graph_destroy(graph);
    threads[i] = (test_thread){draw_many, &drawers[i]};
  }
  test_on_threads(threads, THREADS);
  for (size_t i = 0; i < THREADS; i++) {
    assert_false(drawers[i].failed);
    assert_ok(rondo_stream_synchronize(drawers[i].stream));
    rondo_exec_destroy(drawers[i].exec);
    test_stream_destroy(drawers[i].stream);
  }
  assert_state(generator, 23, 4 * TAKEN);
  test_read(t, read, kept, sizeof read);
  for (uint64_t i = 0; i < TAKEN; i++) possible[i] = rondo_philox(23, 0, 4 * i).x[0];
  qsort(possible, TAKEN, sizeof *possible, compare_words);
  qsort(read, DRAWN, sizeof *read, compare_words);
  for (size_t i = 0; i < DRAWN; i++) {
    assert_non_null(bsearch(&read[i], possible, TAKEN, sizeof *possible, compare_words));
    if (i > 0) assert_int_not_equal(read[i], read[i - 1]); /* no two of these words are the same */
  }
}

typedef struct capturer {
  rondo_stream *stream;
  rondo_generator *generator;
  float *values;
  rondo_graph *graph;
  char failure[512]; /* empty: none */
} capturer;

static void capture_many(void *user) {
  capturer *self = user;
  rondo_status status = RONDO_OK;
  for (int i = 0; i < 20 && status == RONDO_OK; i++) {
    rondo_graph *graph = NULL;
    status = rondo_capture_begin(self->stream, RONDO_CAPTURE_THREAD_LOCAL);
    for (int k = 0; k < 3 && status == RONDO_OK; k++)
      status = rondo_random_uniform(self->generator, self->stream, self->values, FLOATS, 0, 1);
    if (status == RONDO_OK) status = rondo_capture_end(self->stream, &graph);
    if (status == RONDO_OK && self->graph != NULL) status = rondo_graph_destroy(self->graph);
    self->graph = graph;
  }
  if (status != RONDO_OK)
    (void)snprintf(self->failure, sizeof self->failure, "%s: %s", rondo_status_name(status),
                   rondo_last_error()->message);
}

/* Of kernels that are made at once one is kept, and under CUDA's memcheck unloading the others breaks the captures of
 * other threads (docs/cuda-sanitizers.md). */
static void load_first(test_fixture *t, rondo_generator *generator, float *values) {
  assert_ok(rondo_random_uniform(generator, t->stream, values, FLOATS, 0, 1));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_generator_seed(generator, 29));
}

/* Item 56, as of #176752: captures of one generator from several threads at once are independent. */
TEST(test_tr13_threads_capture_at_once) {
  rondo_generator *generator = test_generator(t, "g", 29);
  draws d = make_draws(t, THREADS);
  capturer capturers[THREADS];
  if (test_is_serial()) load_first(t, generator, draw_at(&d, 0));
  test_thread threads[THREADS];
  for (size_t i = 0; i < THREADS; i++) {
    capturers[i] = (capturer){.stream = test_stream(t, "c"), .generator = generator, .values = draw_at(&d, i)};
    threads[i] = (test_thread){capture_many, &capturers[i]};
  }
  test_on_threads(threads, THREADS);
  for (size_t i = 0; i < THREADS; i++) {
    assert_string_equal(capturers[i].failure, "");
    assert_increment(capturers[i].graph, generator, 12);
    test_run_once(t, capturers[i].graph);
    expect(&d, i, 29, 12 * (uint64_t)i + 8);
    test_graph_destroy(capturers[i].graph);
    test_stream_destroy(capturers[i].stream);
  }
  assert_draws(t, &d);
  assert_state(generator, 29, 12 * THREADS);
  free_draws(t, &d);
}

/* SPDX-License-Identifier: MIT
 * User objects: who retains them, when and where they are released, and what is refused (AD-8).
 */
#include <pthread.h>

#include "support/rondo_test.h"

/* What an object stands for. The release function of a live one may be called once, by the test's thread. */
typedef struct thing {
  pthread_t thread;
  uint32_t released;
  uint32_t runs;
  bool was_used_late;
} thing;

static void release_thing(void *user) {
  thing *it = user;
  it->released++;
  if (!pthread_equal(it->thread, pthread_self())) it->released += 100;
}

static rondo_status use_thing(void *user) {
  thing *it = user;
  it->runs++;
  it->was_used_late = it->released > 0;
  return RONDO_OK;
}

static rondo_user_object *make_object(thing *it, uint32_t count) {
  rondo_user_object *object;
  *it = (thing){.thread = pthread_self()};
  assert_ok(rondo_user_object_create(it, release_thing, count, NULL, &object));
  return object;
}

/* The graph gets the only reference. */
static void give_thing(rondo_graph *graph, thing *it) {
  assert_ok(rondo_graph_retain_object(graph, make_object(it, 1), 1, true));
}

static rondo_graph *graph_with(test_fixture *t, thing *it) {
  rondo_node node;
  rondo_graph *graph = test_graph(t);
  give_thing(graph, it);
  assert_ok(rondo_graph_add_host(graph, NULL, 0, use_thing, it, &node));
  return graph;
}

/* References ------------------------------------------------------------------------------------------------------ */

TEST(test_ad8_the_last_reference_releases) {
  thing it;
  rondo_user_object *object = make_object(&it, 2);
  (void)t;
  assert_ok(rondo_user_object_retain(object, 3));
  assert_ok(rondo_user_object_release(object, 4));
  assert_int_equal(it.released, 0);
  assert_ok(rondo_user_object_release(object, 1));
  assert_int_equal(it.released, 1);
}

TEST(test_ad8_a_graph_retains_and_releases) {
  thing it;
  rondo_graph *graph = test_graph(t);
  rondo_user_object *object = make_object(&it, 1);
  assert_ok(rondo_graph_retain_object(graph, object, 2, false));
  assert_ok(rondo_graph_retain_object(graph, object, 1, true));
  assert_invalid(rondo_user_object_release(object, 1), RONDO_REASON_OUT_OF_RANGE); /* the graph has all of them */
  assert_ok(rondo_user_object_retain(object, 1));
  assert_ok(rondo_graph_release_object(graph, object, 3));
  assert_int_equal(it.released, 0);
  assert_ok(rondo_user_object_release(object, 1));
  assert_int_equal(it.released, 1);
}

TEST(test_ad8_refusals_change_nothing) {
  thing it;
  rondo_graph *graph = test_graph(t);
  rondo_user_object *object = make_object(&it, 2), *none = object;
  assert_invalid(rondo_user_object_create(&it, NULL, 1, NULL, &none), RONDO_REASON_NULL_ARGUMENT);
  assert_null(none);
  assert_invalid(rondo_user_object_create(&it, release_thing, 0, NULL, &none), RONDO_REASON_BAD_SIZE);
  assert_invalid(rondo_user_object_create(&it, release_thing, 1, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_user_object_retain(NULL, 1), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_user_object_retain(object, 0), RONDO_REASON_BAD_SIZE);
  assert_error(rondo_user_object_retain(object, UINT32_MAX), RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_user_object_release(NULL, 1), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_user_object_release(object, 0), RONDO_REASON_BAD_SIZE);
  assert_invalid(rondo_user_object_release(object, 3), RONDO_REASON_OUT_OF_RANGE);
  assert_message("the caller has only 2");
  assert_invalid(rondo_graph_retain_object(NULL, object, 1, false), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_retain_object(graph, NULL, 1, false), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_retain_object(graph, object, 0, false), RONDO_REASON_BAD_SIZE);
  assert_invalid(rondo_graph_retain_object(graph, object, 3, true), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_graph_release_object(graph, object, 1), RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_graph_retain_object(graph, object, 1, false));
  assert_invalid(rondo_graph_release_object(graph, object, 0), RONDO_REASON_BAD_SIZE);
  assert_invalid(rondo_graph_release_object(graph, object, 2), RONDO_REASON_OUT_OF_RANGE);
  assert_message("the graph has only 1");
  assert_int_equal(it.released, 0);
  test_graph_destroy(graph);
  assert_ok(rondo_user_object_release(object, 2));
  assert_int_equal(it.released, 1);
}

/* References of one graph may be more than one number counts. */
TEST(test_ad8_many_references) {
  thing it;
  rondo_graph *graph = test_graph(t);
  rondo_user_object *object = make_object(&it, 1);
  for (int i = 0; i < 2; i++) assert_ok(rondo_graph_retain_object(graph, object, UINT32_MAX, false));
  assert_ok(rondo_graph_release_object(graph, object, UINT32_MAX));
  assert_ok(rondo_user_object_release(object, 1));
  assert_ok(rondo_graph_release_object(graph, object, UINT32_MAX - 1));
  assert_int_equal(it.released, 0);
  assert_ok(rondo_graph_release_object(graph, object, 1));
  assert_int_equal(it.released, 1);
}

/* Graphs, clones, children ----------------------------------------------------------------------------------------- */

TEST(test_ad8_clones_and_children_retain) {
  thing it;
  rondo_node node;
  rondo_graph *graph = graph_with(t, &it), *clone, *parent = test_graph(t);
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_ok(rondo_graph_add_child(parent, NULL, 0, graph, &node));
  test_graph_destroy(graph);
  test_graph_destroy(clone);
  assert_int_equal(it.released, 0);
  assert_ok(rondo_graph_remove(parent, node));
  assert_int_equal(it.released, 1);
}

TEST(test_ad8_a_capture_retains) {
  thing it;
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  give_thing(test_capture_info(t->stream).graph, &it);
  assert_ok(rondo_host_async(t->stream, use_thing, &it));
  rondo_exec *exec = test_exec_of(test_capture_end(t->stream));
  assert_int_equal(it.released, 0);
  test_launch(t, exec);
  assert_int_equal(it.runs, 1);
  rondo_exec_destroy(exec);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(it.released, 1);
}

/* A capture that ends without a graph releases at its end. */
TEST(test_ad8_a_failed_capture_releases) {
  thing it;
  rondo_graph *graph;
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  give_thing(test_capture_info(t->stream).graph, &it);
  assert_fails(rondo_stream_synchronize(t->stream), RONDO_CAPTURE_REFUSED);
  assert_int_equal(it.released, 0);
  assert_fails(rondo_capture_end(t->stream, &graph), RONDO_CAPTURE_INVALID);
  assert_int_equal(it.released, 1);
}

/* Execs ----------------------------------------------------------------------------------------------------------- */

TEST_WORKERS(test_ad8_an_exec_retains_until_its_launch_ends) {
  test_skip_if_serial();
  thing it;
  test_gate *gate = test_gate_make();
  rondo_exec *exec = test_exec_of(graph_with(t, &it));
  test_gate_hold(gate, t->stream);
  assert_ok(rondo_exec_launch(exec, t->stream));
  rondo_exec_destroy(exec);
  rondo_exec_destroy(test_exec_of(test_graph(t)));
  assert_int_equal(it.released, 0);
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(it.runs, 1);
  assert_false(it.was_used_late);
  assert_int_equal(it.released, 1);
}

/* Its launches are on several streams, one of which is destroyed. */
TEST_WORKERS(test_ad8_launches_on_several_streams) {
  test_skip_if_serial();
  thing it;
  test_gate *gate = test_gate_make();
  rondo_stream *other = test_stream(t, "other");
  rondo_exec *exec = test_exec_of(graph_with(t, &it));
  test_gate_hold(gate, t->stream);
  assert_ok(rondo_exec_launch(exec, other));
  test_stream_destroy(other);
  assert_ok(rondo_exec_launch(exec, t->stream));
  rondo_exec_destroy(exec);
  rondo_exec_destroy(test_exec_of(test_graph(t)));
  assert_int_equal(it.released, 0);
  test_gate_open(gate);
  assert_ok(rondo_device_synchronize(t->device));
  assert_int_equal(it.runs, 2);
  assert_false(it.was_used_late);
  assert_int_equal(it.released, 1);
}

/* The objects of children too, and of an exec that was never launched. */
TEST(test_ad8_execs_retain_what_children_do) {
  thing inner, outer;
  rondo_node node;
  rondo_graph *graph = graph_with(t, &outer), *child = graph_with(t, &inner);
  assert_ok(rondo_graph_add_child(graph, NULL, 0, child, &node));
  test_graph_destroy(child);
  rondo_exec *exec = test_exec_of(graph);
  assert_int_equal(inner.released + outer.released, 0);
  rondo_exec_destroy(exec);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(inner.released, 1);
  assert_int_equal(outer.released, 1);
}

/* An update exchanges them, and earlier launches keep theirs. */
TEST_WORKERS(test_ad8_an_update_exchanges_objects) {
  test_skip_if_serial();
  thing old, fresh;
  test_gate *gate = test_gate_make();
  rondo_graph *then = graph_with(t, &fresh);
  rondo_exec *exec = test_exec_of(graph_with(t, &old));
  test_gate_hold(gate, t->stream);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_exec_update(exec, then, NULL));
  test_graph_destroy(then);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(old.released, 0);
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(old.runs, 1);
  assert_int_equal(fresh.runs, 1);
  assert_int_equal(old.released, 1);
  assert_int_equal(fresh.released, 0);
  rondo_exec_destroy(exec);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(fresh.released, 1);
}

/* Objects without a node that needs them count in updates too; a refused update leaves the exec its own. */
TEST(test_ad8_updates_that_change_objects_alone) {
  thing first, second, refused;
  rondo_node node;
  rondo_graph *graph = test_graph(t), *other = test_graph(t), *longer = graph_with(t, &refused);
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &node));
  assert_ok(rondo_graph_add_empty(other, NULL, 0, &node));
  assert_ok(rondo_graph_add_empty(longer, NULL, 0, &node));
  give_thing(graph, &first);
  give_thing(other, &second);
  rondo_exec *exec = test_exec_of(graph);
  assert_error(rondo_exec_update(exec, longer, NULL), RONDO_UPDATE_REFUSED, RONDO_REASON_TOPOLOGY_CHANGED);
  test_graph_destroy(longer);
  assert_int_equal(refused.released, 1);
  assert_int_equal(first.released, 0);
  test_launch(t, exec);
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_update(exec, other, NULL));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(first.released, 1);
  rondo_graph *none = test_graph(t);
  assert_ok(rondo_graph_add_empty(none, NULL, 0, &node));
  test_graph_destroy(other);
  assert_ok(rondo_exec_update(exec, none, NULL));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(second.released, 1);
}

/* An exec that becomes a child graph of a capture. */
TEST(test_ad8_an_exec_in_a_capture_retains) {
  thing it;
  rondo_exec *inner = test_exec_of(graph_with(t, &it));
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_exec_launch(inner, t->stream));
  rondo_exec *exec = test_exec_of(test_capture_end(t->stream));
  rondo_exec_destroy(inner);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(it.released, 0);
  test_launch(t, exec);
  assert_int_equal(it.runs, 1);
  rondo_exec_destroy(exec);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(it.released, 1);
}

/* Where ------------------------------------------------------------------------------------------------------------ */

/* At the latest. */
TEST(test_ad8_closing_the_device_releases) {
  thing it;
  rondo_graph *graph;
  rondo_exec *exec;
  rondo_node node;
  (void)t;
  rondo_device *device = test_device(test_device_name(), NULL);
  assert_ok(rondo_graph_create(device, NULL, &graph));
  give_thing(graph, &it);
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &node));
  assert_ok(rondo_instantiate(graph, NULL, &exec));
  assert_ok(rondo_graph_destroy(graph));
  rondo_exec_destroy(exec);
  assert_ok(rondo_device_close(device));
  assert_int_equal(it.released, 1);
}

/* Releases of one object destroy other objects of Rondo, whose objects are released in turn. */
typedef struct chain {
  rondo_exec *exec;
  uint32_t *order, *count, number;
} chain;

static void release_chain(void *user) {
  chain *link = user;
  link->order[(*link->count)++] = link->number;
  if (link->exec != NULL) rondo_exec_destroy(link->exec);
}

TEST(test_ad8_a_release_may_destroy_objects) {
  enum { LINKS = 4 };
  uint32_t order[LINKS], count = 0;
  chain links[LINKS];
  rondo_exec *last = NULL;
  for (uint32_t i = 0; i < LINKS; i++) {
    rondo_graph *graph = test_graph(t);
    rondo_user_object *object;
    links[i] = (chain){.exec = last, .order = order, .count = &count, .number = i};
    assert_ok(rondo_user_object_create(&links[i], release_chain, 1, NULL, &object));
    assert_ok(rondo_graph_retain_object(graph, object, 1, true));
    last = test_exec_of(graph);
    test_launch(t, last);
  }
  rondo_exec_destroy(last);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(count, LINKS);
  for (uint32_t i = 0; i < LINKS; i++) assert_int_equal(order[i], LINKS - 1 - i);
}

/* Host functions run on the library's threads, where nothing is released. */
typedef struct try_inside {
  rondo_user_object *object;
  rondo_graph *graph;
  rondo_reason reasons[5];
} try_inside;

static rondo_status call_inside(void *user) {
  try_inside *inside = user;
  rondo_user_object *none;
  rondo_status statuses[5];
  for (int i = 0; i < 5; i++) {
    if (i == 0) statuses[i] = rondo_user_object_create(user, release_thing, 1, NULL, &none);
    if (i == 1) statuses[i] = rondo_user_object_retain(inside->object, 1);
    if (i == 2) statuses[i] = rondo_user_object_release(inside->object, 1);
    if (i == 3) statuses[i] = rondo_graph_retain_object(inside->graph, inside->object, 1, false);
    if (i == 4) statuses[i] = rondo_graph_release_object(inside->graph, inside->object, 1);
    inside->reasons[i] = statuses[i] == RONDO_OK ? RONDO_REASON_NONE : rondo_last_error()->reason;
  }
  return RONDO_OK;
}

TEST(test_ad8_host_functions_are_refused) {
  thing it;
  try_inside inside = {.object = make_object(&it, 1), .graph = test_graph(t)};
  assert_ok(rondo_host_async(t->stream, call_inside, &inside));
  assert_ok(rondo_stream_synchronize(t->stream));
  for (int i = 0; i < 5; i++) assert_int_equal(inside.reasons[i], RONDO_REASON_IN_CALLBACK);
  assert_int_equal(it.released, 0);
  assert_ok(rondo_user_object_release(inside.object, 1));
  assert_int_equal(it.released, 1);
}

/* Graphs that are only data retain too. */
TEST(test_ad8_graphs_of_data_retain) {
  thing it;
  rondo_graph *graph;
  (void)t;
  assert_ok(rondo_graph_create(NULL, NULL, &graph));
  give_thing(graph, &it);
  assert_ok(rondo_graph_destroy(graph));
  assert_int_equal(it.released, 1);
}

/* Threads --------------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 300 };

typedef struct shared {
  rondo_device *device;
  rondo_user_object *object;
  rondo_status status;
} shared;

static rondo_status retain_and_launch(const shared *of, rondo_stream *stream) {
  rondo_graph *graph;
  rondo_exec *exec;
  rondo_node node;
  TRY(rondo_user_object_retain(of->object, 2));
  TRY(rondo_graph_create(of->device, NULL, &graph));
  TRY(rondo_graph_retain_object(graph, of->object, 1, true));
  TRY(rondo_graph_add_empty(graph, NULL, 0, &node));
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(rondo_graph_destroy(graph));
  TRY(rondo_exec_launch(exec, stream));
  rondo_exec_destroy(exec);
  return rondo_user_object_release(of->object, 1);
}

static void run_thread(void *user) {
  shared *of = user;
  rondo_stream *stream;
  of->status = rondo_stream_create(of->device, NULL, &stream);
  for (int i = 0; i < ROUNDS && of->status == RONDO_OK; i++) of->status = retain_and_launch(of, stream);
  if (of->status == RONDO_OK) of->status = rondo_stream_synchronize(stream);
  if (of->status == RONDO_OK) of->status = rondo_stream_destroy(stream);
}

TEST_WORKERS(test_ad8_threads_share_an_object) {
  thing it;
  shared all[THREADS];
  test_thread threads[THREADS];
  rondo_user_object *object = make_object(&it, 1);
  for (int i = 0; i < THREADS; i++) {
    all[i] = (shared){t->device, object, RONDO_OK};
    threads[i] = (test_thread){run_thread, &all[i]};
  }
  test_on_threads(threads, THREADS);
  for (int i = 0; i < THREADS; i++) assert_ok(all[i].status);
  assert_ok(rondo_device_synchronize(t->device));
  assert_int_equal(it.released, 0);
  assert_ok(rondo_user_object_release(object, 1));
  assert_int_equal(it.released, 1);
}

/* SPDX-License-Identifier: MIT
 * Lets every driver call and every allocation fail, once or from then on, while graphs are built, captured,
 * instantiated, uploaded, launched and updated, with memory of all kinds. Each failure returns an error with a message,
 * unless the library rightly works around it. What existed before still works, and nothing is left.
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>

#include "fault/fault_fake.h"
#include "graph/kernel.h"
#include "support/rondo_test.h"

enum { PAGE = 4096 };

/* Nodes of a built graph. */
enum { KERNEL, CHILD, NODES };

/* What the work uses: created before the failures begin, and used again afterwards. */
typedef struct rig {
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *stream;
  rondo_event *event;
  rondo_kernel *kernel;
  rondo_graph *old_graph;
  rondo_exec *old_exec;
  void *old_kept;
} rig;

/* What the work creates. */
typedef struct things {
  rondo_stream *side;
  rondo_event *event, *external;
  rondo_graph *built, *inner, *captured, *clone, *changed;
  rondo_exec *exec, *captured_exec;
  void *immediate, *large, *ordered, *host, *kept;
  rondo_node nodes[NODES];
  int live_objects; /* user objects that were not released yet */
} things;

static void add_one(rondo_blocks blocks, void *const *args) {
  uint32_t *word = *(uint32_t *const *)args[0];
  (void)blocks;
  (*word)++;
}

/* alloc -> kernel -> child -> record -> free, and an allocation that stays. */
static rondo_status build(const rig *r, rondo_graph *inner, rondo_event *event, rondo_graph **out, void **out_kept,
                          rondo_node *out_nodes) {
  rondo_node node = {0}, kept = {0};
  void *scratch = NULL;
  RONDO_TRY(rondo_graph_create(r->device, &(rondo_graph_options){.name = "built"}, out));
  RONDO_TRY(rondo_graph_add_alloc(*out, NULL, 0, 3 * PAGE, "scratch", &scratch, &node));
  RONDO_TRY(rondo_graph_add_alloc(*out, &node, 1, PAGE, "kept", out_kept, &kept));
  RONDO_TRY(rondo_graph_add_kernel(*out, &kept, 1, r->kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&scratch),
                                   &out_nodes[KERNEL]));
  node = out_nodes[KERNEL];
  if (inner != NULL) RONDO_TRY(rondo_graph_add_child(*out, &node, 1, inner, &node));
  out_nodes[CHILD] = node;
  if (event != NULL) RONDO_TRY(rondo_graph_add_event_record(*out, &node, 1, event, &node));
  return rondo_graph_add_free(*out, &node, 1, scratch, &node);
}

static void release_object(void *count) { --*(int *)count; }

static rondo_status retain(const rig *r, things *t, rondo_graph *graph) {
  rondo_user_object *object;
  RONDO_TRY(rondo_user_object_create(&t->live_objects, release_object, 1, &r->allocator.table, &object));
  t->live_objects++;
  const rondo_status status = rondo_graph_retain_object(graph, object, 1, true);
  if (status != RONDO_OK) assert_ok(rondo_user_object_release(object, 1));
  return status;
}

/* A programmatic edge between two kernels. */
static rondo_status link_kernels(const rig *r, rondo_graph *graph) {
  const rondo_edge_data early = {.from_port = RONDO_PORT_PROGRAMMATIC, .type = RONDO_EDGE_PROGRAMMATIC};
  rondo_node nodes[2];
  rondo_exec *exec;
  for (int i = 0; i < 2; i++)
    RONDO_TRY(
        rondo_graph_add_kernel(graph, NULL, 0, r->kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&r->old_kept), &nodes[i]));
  for (int i = 0; i < 2; i++) {
    RONDO_TRY(rondo_graph_add_edges_with(graph, &nodes[0], &nodes[1], &early, 1));
    if (i == 0) RONDO_TRY(rondo_graph_remove_edges_with(graph, &nodes[0], &nodes[1], &early, 1));
  }
  RONDO_TRY(rondo_instantiate(graph, NULL, &exec));
  rondo_exec_destroy(exec);
  return RONDO_OK;
}

static rondo_status do_edges(const rig *r) {
  rondo_graph *graph;
  RONDO_TRY(rondo_graph_create(r->device, NULL, &graph));
  const rondo_status status = link_kernels(r, graph);
  assert_ok(rondo_graph_destroy(graph));
  return status;
}

static rondo_status do_building(const rig *r, things *t) {
  rondo_node node = {0}, extra = {0};
  RONDO_TRY(rondo_graph_create(r->device, NULL, &t->inner));
  RONDO_TRY(retain(r, t, t->inner));
  RONDO_TRY(rondo_graph_add_host(t->inner, NULL, 0, test_host_nothing, NULL, &node));
  RONDO_TRY(rondo_event_create(r->device, NULL, &t->external));
  RONDO_TRY(build(r, t->inner, t->external, &t->built, &t->kept, t->nodes));
  RONDO_TRY(retain(r, t, t->built));
  RONDO_TRY(rondo_graph_add_empty(t->built, NULL, 0, &extra));
  RONDO_TRY(rondo_graph_add_edges(t->built, &t->nodes[KERNEL], &extra, 1));
  RONDO_TRY(rondo_graph_remove_edges(t->built, &t->nodes[KERNEL], &extra, 1));
  RONDO_TRY(rondo_graph_remove(t->built, extra));
  RONDO_TRY(do_edges(r));
  const rondo_node_params params = {.kind = RONDO_NODE_HOST, .as.host = {.function = test_host_nothing, .user = t}};
  RONDO_TRY(rondo_graph_set_params(t->inner, node, &params));
  RONDO_TRY(rondo_graph_set_argument(t->built, t->nodes[KERNEL], 0, &t->kept));
  RONDO_TRY(rondo_graph_clone(t->built, &t->clone));
  RONDO_TRY(rondo_instantiate(t->built, &(rondo_instantiate_options){.upload_stream = r->stream}, &t->exec));
  return RONDO_OK;
}

static rondo_status capture(const rig *r, things *t) {
  void *scratch = NULL;
  RONDO_TRY(rondo_malloc_async(r->stream, 2 * PAGE, &(rondo_malloc_options){.name = "captured"}, &scratch));
  RONDO_TRY(rondo_launch(r->stream, r->kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&scratch)));
  RONDO_TRY(rondo_event_record(t->event, r->stream));
  RONDO_TRY(rondo_stream_wait_event(t->side, t->event));
  RONDO_TRY(rondo_host_async(t->side, test_host_nothing, NULL));
  RONDO_TRY(rondo_event_record(t->event, t->side));
  RONDO_TRY(rondo_stream_wait_event(r->stream, t->event));
  RONDO_TRY(rondo_event_record_external(t->external, r->stream));
  return rondo_free_async(r->stream, scratch);
}

static rondo_status do_capturing(const rig *r, things *t) {
  RONDO_TRY(rondo_stream_create(r->device, NULL, &t->side));
  RONDO_TRY(rondo_event_create(r->device, NULL, &t->event));
  RONDO_TRY(rondo_capture_begin(r->stream, RONDO_CAPTURE_THREAD_LOCAL));
  const rondo_status status = capture(r, t);
  const rondo_status ended = rondo_capture_end(r->stream, &t->captured);
  RONDO_TRY(status);
  RONDO_TRY(ended);
  return rondo_instantiate(t->captured, NULL, &t->captured_exec);
}

static rondo_status do_launching(const rig *r, things *t) {
  rondo_node nodes[NODES];
  void *kept = NULL;
  for (int i = 0; i < 2; i++) {
    RONDO_TRY(rondo_exec_launch(t->exec, i == 0 ? r->stream : t->side));
    RONDO_TRY(rondo_free_async(t->side, t->kept));
    RONDO_TRY(rondo_exec_launch(t->captured_exec, r->stream));
    RONDO_TRY(rondo_exec_upload(t->exec, t->side));
  }
  RONDO_TRY(build(r, t->inner, t->external, &t->changed, &kept, nodes));
  RONDO_TRY(retain(r, t, t->changed));
  RONDO_TRY(rondo_exec_update(t->exec, t->clone, NULL));
  RONDO_TRY(rondo_exec_update(t->exec, t->changed, NULL));
  RONDO_TRY(rondo_exec_launch(t->exec, r->stream));
  t->kept = kept;
  const void *address = &kept;
  const rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = r->kernel, .grid = {1, 0, 0}, .args = &address, .arg_count = 1}};
  RONDO_TRY(rondo_exec_set_params(t->exec, t->nodes[KERNEL], &params));
  RONDO_TRY(rondo_exec_set_argument(t->exec, t->nodes[KERNEL], 0, address));
  RONDO_TRY(rondo_exec_set_enabled(t->exec, t->nodes[KERNEL], false));
  const rondo_node_params child = {.kind = RONDO_NODE_CHILD, .as.child = t->inner};
  RONDO_TRY(rondo_exec_set_params(t->exec, t->nodes[CHILD], &child));
  rondo_node_time times[4];
  size_t count = sizeof times / sizeof times[0];
  RONDO_TRY(rondo_exec_measure(t->captured_exec, r->stream, 2, times, &count));
  return rondo_graph_memory_trim(r->device);
}

static rondo_status do_memory(const rig *r, things *t) {
  RONDO_TRY(rondo_malloc(r->device, 100, "immediate", &t->immediate));
  RONDO_TRY(rondo_malloc(r->device, (size_t)3 << 20, "large", &t->large));
  RONDO_TRY(rondo_host_malloc(r->device, 100, &t->host));
  for (int i = 0; i < 3; i++) {
    RONDO_TRY(rondo_malloc_async(r->stream, 3000, NULL, &t->ordered));
    RONDO_TRY(rondo_free_async(r->stream, t->ordered));
    t->ordered = NULL;
  }
  RONDO_TRY(rondo_malloc_async(r->stream, (size_t)5 << 20, NULL, &t->ordered));
  rondo_pool *pool = NULL;
  RONDO_TRY(rondo_device_get_default_pool(r->device, &pool));
  return rondo_pool_trim(pool, 0);
}

static rondo_status do_all(const rig *r, things *t) {
  RONDO_TRY(do_building(r, t));
  RONDO_TRY(do_capturing(r, t));
  RONDO_TRY(do_launching(r, t));
  return do_memory(r, t);
}

/* Nothing fails any more. Whatever the device still counts as allocated can be freed. */
static void tear_down(const rig *r, things *t) {
  rondo_exec_destroy(t->exec);
  rondo_exec_destroy(t->captured_exec);
  assert_ok(rondo_graph_destroy(t->built));
  assert_ok(rondo_graph_destroy(t->inner));
  assert_ok(rondo_graph_destroy(t->captured));
  assert_ok(rondo_graph_destroy(t->clone));
  assert_ok(rondo_graph_destroy(t->changed));
  rondo_event_destroy(t->event);
  rondo_event_destroy(t->external);
  assert_ok(rondo_stream_destroy(t->side));
  assert_ok(rondo_free(r->device, t->immediate));
  assert_ok(rondo_free(r->device, t->large));
  assert_ok(rondo_free(r->device, t->ordered));
  assert_ok(rondo_host_free(r->device, t->host));
  if (t->kept != NULL) rondo_status_ignore(rondo_free(r->device, t->kept), "lives or not, as far as the work came");
}

static void set_up(rig *r) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "add_one", .cpu = add_one,
                                        .params = {RONDO_UPDATES}};
  memset(r, 0, sizeof *r);
  test_allocator_init(&r->allocator);
  r->device = fake_open(&r->allocator.table);
  assert_ok(rondo_stream_create(r->device, NULL, &r->stream));
  assert_ok(rondo_event_create(r->device, NULL, &r->event));
  assert_ok(rondo_kernel_make(r->device, &r->allocator.table, &options, &r->kernel));
  rondo_node nodes[NODES];
  assert_ok(build(r, NULL, NULL, &r->old_graph, &r->old_kept, nodes));
  assert_ok(rondo_instantiate(r->old_graph, NULL, &r->old_exec));
  assert_ok(rondo_exec_launch(r->old_exec, r->stream));
  *(uint32_t *)r->old_kept = 4711;
}

/* What existed before the failure: its memory is unchanged, and another round of its life succeeds. */
static void assert_old_works(const rig *r) {
  assert_int_equal(*(uint32_t *)r->old_kept, 4711);
  assert_ok(rondo_free_async(r->stream, r->old_kept));
  assert_ok(rondo_exec_launch(r->old_exec, r->stream));
  *(uint32_t *)r->old_kept = 4711;
  assert_ok(rondo_event_record(r->event, r->stream));
  assert_ok(rondo_event_synchronize(r->event));
  assert_ok(rondo_stream_synchronize(r->stream));
}

static void close_rig(rig *r) {
  assert_ok(rondo_free(r->device, r->old_kept));
  rondo_exec_destroy(r->old_exec);
  assert_ok(rondo_graph_destroy(r->old_graph));
  rondo_event_destroy(r->event);
  rondo_kernel_release(r->kernel);
  assert_ok(rondo_stream_destroy(r->stream));
  fault_fake_close(r->device, &r->allocator);
}

/* Runs the work once with a failure, and returns its status. */
static rondo_status run(fault_point *point) {
  rig r;
  things t = {0};
  set_up(&r);
  fault_fake_begin(point, r.device, &r.allocator);
  const rondo_status status = do_all(&r, &t);
  if (status != RONDO_OK) assert_int_equal(rondo_last_error()->status, status);
  fault_fake_end(point, r.device, &r.allocator, status);
  assert_old_works(&r);
  tear_down(&r, &t);
  assert_old_works(&r);
  close_rig(&r);
  assert_int_equal(t.live_objects, 0); /* whatever failed */
  return status;
}

static void sweep(bool of_driver, bool rest) {
  fault_point none = {0};
  size_t failures = 0;
  assert_int_equal(run(&none), RONDO_OK);
  const size_t count = of_driver ? none.calls : none.allocations;
  assert_true(count > 50);
  for (size_t at = 1; at <= count; at++) {
    fault_point point = {.driver_at = of_driver ? at : 0, .allocation_at = of_driver ? 0 : at, .rest = rest};
    const rondo_status status = run(&point);
    failures += status != RONDO_OK;
    if (status != RONDO_OK && status != RONDO_OUT_OF_MEMORY && status != RONDO_CAPTURE_REFUSED)
      fail_msg("failure at %zu came out as %s", at, rondo_status_name(status));
  }
  /* The library asks the device for memory twice, and waits for a launch whose event cannot be recorded. */
  assert_true(failures > count * (rest ? 8 : 5) / 10);
}

UNIT_TEST(test_each_driver_call_fails_once) { sweep(true, false); }
UNIT_TEST(test_the_driver_fails_from_some_call_on) { sweep(true, true); }
UNIT_TEST(test_each_allocation_fails_once) { sweep(false, false); }
UNIT_TEST(test_memory_ends_at_some_allocation) { sweep(false, true); }

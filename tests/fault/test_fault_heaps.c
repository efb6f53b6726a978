/* SPDX-License-Identifier: MIT
 * Lets every driver call and every allocation fail, once or from then on, while graphs with memory are launched: heaps
 * that grow, chunks that are cut around memory that stays, moves between streams, frees elsewhere, memory that is
 * embedded and freed separately, spaces that retire in flight, trimming. A failure changes nothing: live memory keeps
 * its bytes, everything can be launched afterwards, and nothing is left at the end (GM-12 to GM-15).
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>

#include "fault/fault_fake.h"
#include "support/rondo_test.h"

#define PAGE FAKE_PAGE

enum { STREAMS = 3, SMALL = 0, LARGE, HOLED, RELATIVE, NESTED, LOOPING, PARTS };

/* An exec of a graph, the bytes that it frees itself, and the bytes that it leaves allocated. */
typedef struct part {
  rondo_exec *exec;
  char *scratch, *kept; /* kept: NULL when it frees all */
  size_t bytes;         /* of scratch */
  bool live;
  unsigned char mark; /* in what lives */
} part;

typedef struct rig {
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *streams[STREAMS];
  part parts[PARTS];
  unsigned char last_mark;
} rig;

/* Making ---------------------------------------------------------------------------------------------------------- */

static char *add_alloc(rondo_graph *graph, rondo_node *node, size_t bytes) {
  void *address = NULL;
  assert_ok(rondo_graph_add_alloc(graph, node, node->id != 0, bytes, "block", &address, node));
  return address;
}

/* scratch, kept, more scratch, child, each if there is one; then the scratch is freed. */
static rondo_graph *build(rig *r, part *self, size_t kept_bytes, size_t more, rondo_graph *child) {
  rondo_graph *graph = NULL;
  rondo_node node = {0};
  char *after = NULL;
  assert_ok(rondo_graph_create(r->device, NULL, &graph));
  if (self->bytes > 0) self->scratch = add_alloc(graph, &node, self->bytes);
  if (kept_bytes > 0) self->kept = add_alloc(graph, &node, kept_bytes);
  if (more > 0) after = add_alloc(graph, &node, more);
  if (child != NULL) assert_ok(rondo_graph_add_child(graph, &node, 1, child, &node));
  if (self->scratch != NULL) assert_ok(rondo_graph_add_free(graph, &node, 1, self->scratch, &node));
  if (after != NULL) assert_ok(rondo_graph_add_free(graph, &node, 1, after, &node));
  return graph;
}

static void make_exec(part *self, rondo_graph *graph, bool auto_free) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .auto_free_on_launch = auto_free};
  assert_ok(rondo_instantiate(graph, &options, &self->exec));
  assert_ok(rondo_graph_destroy(graph));
}

/* Two execs of one graph; the second frees what the first leaves allocated. */
static void make_relatives(part *holed, part *relative, rondo_graph *graph) {
  rondo_node nodes[8];
  size_t count = sizeof nodes / sizeof *nodes;
  assert_ok(rondo_instantiate(graph, NULL, &holed->exec));
  assert_ok(rondo_graph_nodes(graph, nodes, &count));
  assert_ok(rondo_graph_add_free(graph, &nodes[count - 1], 1, holed->kept, &nodes[count]));
  make_exec(relative, graph, false);
}

static void make_parts(rig *r) {
  part *parts = r->parts, inner = {.bytes = 5 * PAGE};
  parts[SMALL].bytes = 4 * PAGE;
  parts[LARGE].bytes = 9 * PAGE;
  parts[HOLED].bytes = 3 * PAGE;
  parts[NESTED].bytes = 2 * PAGE;
  make_exec(&parts[SMALL], build(r, &parts[SMALL], 0, 0, NULL), false);
  make_exec(&parts[LARGE], build(r, &parts[LARGE], 0, 0, NULL), false);
  make_relatives(&parts[HOLED], &parts[RELATIVE], build(r, &parts[HOLED], PAGE, 3 * PAGE, NULL));
  rondo_graph *child = build(r, &inner, 0, 0, NULL);
  make_exec(&parts[NESTED], build(r, &parts[NESTED], 0, 0, child), false);
  assert_ok(rondo_graph_destroy(child));
  make_exec(&parts[LOOPING], build(r, &parts[LOOPING], 2 * PAGE, 0, NULL), true);
}

/* The work -------------------------------------------------------------------------------------------------------- */

static void assert_marks(const rig *r) {
  for (int i = 0; i < PARTS; i++)
    if (r->parts[i].live) assert_int_equal(*(unsigned char *)r->parts[i].kept, r->parts[i].mark);
}

/* Writes all of the memory that the launch may use, as the graph's kernels would. */
static rondo_status launch(rig *r, int which, int stream) {
  part *self = &r->parts[which];
  RONDO_TRY(rondo_exec_launch(self->exec, r->streams[stream]));
  if (self->scratch != NULL) memset(self->scratch, 0xee, self->bytes);
  if (self->kept != NULL) {
    self->live = true;
    self->mark = ++r->last_mark;
    *(unsigned char *)self->kept = self->mark;
  }
  assert_marks(r);
  return RONDO_OK;
}

static rondo_status give(rig *r, int which, int stream) {
  part *self = &r->parts[which];
  if (!self->live) return RONDO_OK;
  RONDO_TRY(rondo_free_async(r->streams[stream], self->kept));
  self->live = false;
  return RONDO_OK;
}

/* Graph and exec are destroyed while their launch is in flight. */
static rondo_status launch_and_forget(rig *r, int stream) {
  rondo_graph *graph = NULL;
  rondo_exec *exec = NULL;
  rondo_node node;
  void *address = NULL;
  rondo_status status = rondo_graph_create(r->device, NULL, &graph);
  if (status == RONDO_OK) status = rondo_graph_add_alloc(graph, NULL, 0, 6 * PAGE, "fleeting", &address, &node);
  if (status == RONDO_OK) status = rondo_graph_add_free(graph, &node, 1, address, &node);
  if (status == RONDO_OK) status = rondo_instantiate(graph, NULL, &exec);
  if (status == RONDO_OK) status = rondo_exec_launch(exec, r->streams[stream]);
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_destroy(graph));
  return status;
}

/* Launches that do not complete before a caller waits for them. */
static rondo_status do_stalled(rig *r) {
  RONDO_TRY(launch(r, LOOPING, 1));
  RONDO_TRY(launch_and_forget(r, 1));
  RONDO_TRY(rondo_exec_upload(r->parts[LARGE].exec, r->streams[2]));
  RONDO_TRY(launch(r, LARGE, 2));
  RONDO_TRY(give(r, HOLED, 1));
  RONDO_TRY(launch(r, RELATIVE, 2));
  RONDO_TRY(launch(r, HOLED, 0));
  return launch(r, SMALL, 2);
}

static rondo_status do_all(rig *r) {
  RONDO_TRY(give(r, HOLED, 0));
  RONDO_TRY(launch(r, SMALL, 0));
  RONDO_TRY(launch(r, HOLED, 0));
  RONDO_TRY(launch(r, LARGE, 0));
  RONDO_TRY(launch(r, NESTED, 0));
  fake_of(r->device)->stalled = true;
  const rondo_status status = do_stalled(r);
  fake_of(r->device)->stalled = false;
  RONDO_TRY(status);
  RONDO_TRY(launch(r, LOOPING, 2));
  RONDO_TRY(launch(r, NESTED, 1));
  RONDO_TRY(rondo_stream_synchronize(r->streams[0]));
  RONDO_TRY(rondo_graph_memory_trim(r->device));
  RONDO_TRY(launch(r, LARGE, 1));
  RONDO_TRY(give(r, HOLED, 2));
  RONDO_TRY(launch(r, HOLED, 1));
  return rondo_graph_memory_trim(r->device);
}

/* Runs ------------------------------------------------------------------------------------------------------------ */

static void set_up(rig *r) {
  memset(r, 0, sizeof *r);
  test_allocator_init(&r->allocator);
  r->device = fake_open(&r->allocator.table);
  for (int i = 0; i < STREAMS; i++) assert_ok(rondo_stream_create(r->device, NULL, &r->streams[i]));
  make_parts(r);
}

static size_t physical(const rig *r) {
  rondo_memory_statistics now = {.struct_size = sizeof now};
  assert_ok(rondo_memory_get_statistics(r->device, &now));
  assert_int_equal(now.graph_reserved, fake_of(r->device)->physical_bytes);
  return (size_t)now.graph_reserved;
}

/* Nothing fails any more: live memory is unchanged, all of the work is done again, and nothing is left. */
static void tear_down(rig *r) {
  assert_marks(r);
  (void)physical(r);
  assert_ok(do_all(r));
  for (int i = 0; i < PARTS; i++) assert_ok(give(r, i, 0));
  assert_ok(rondo_stream_synchronize(r->streams[0]));
  assert_ok(rondo_graph_memory_trim(r->device));
  assert_int_equal(physical(r), 0);
  for (int i = 0; i < PARTS; i++) rondo_exec_destroy(r->parts[i].exec);
  for (int i = 0; i < STREAMS; i++) assert_ok(rondo_stream_destroy(r->streams[i]));
  fault_fake_close(r->device, &r->allocator);
}

/* Runs the work once with a failure, and returns its status. */
static rondo_status run(fault_point *point) {
  rig r;
  set_up(&r);
  fault_fake_begin(point, r.device, &r.allocator);
  const rondo_status status = do_all(&r);
  fault_fake_end(point, r.device, &r.allocator, status);
  tear_down(&r);
  return status;
}

/* A launch gives back idle memory and then asks for physical memory again; it trims its heap and then maps again; and
 * the library waits for a launch whose event cannot be recorded. So the library recovers from many failures. */
UNIT_TEST(test_gm12_each_driver_call_fails_once) { fault_sweep(run, true, false, 30); }
UNIT_TEST(test_gm12_the_driver_fails_from_some_call_on) { fault_sweep(run, true, true, 70); }
UNIT_TEST(test_gm12_each_allocation_fails_once) { fault_sweep(run, false, false, 50); }
UNIT_TEST(test_gm12_memory_ends_at_some_allocation) { fault_sweep(run, false, true, 50); }

/* Memory that stays mapped does not block later launches. */
UNIT_TEST(test_gm13_unmapping_fails_for_a_while) {
  rig r;
  set_up(&r);
  assert_ok(do_all(&r));
  assert_ok(launch(&r, LARGE, 0));
  fake_of(r.device)->fail_unmaps = true;
  assert_fails(rondo_exec_upload(r.parts[LARGE].exec, r.streams[0]), RONDO_OUT_OF_MEMORY);
  assert_fails(rondo_graph_memory_trim(r.device), RONDO_OUT_OF_MEMORY);
  rondo_status_ignore(do_all(&r), "it ends where it needs to unmap");
  fake_of(r.device)->fail_unmaps = false;
  tear_down(&r);
}

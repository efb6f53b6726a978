/* SPDX-License-Identifier: MIT
 * GX-1: each kind of node runs and gives the right bytes, in each mode in which work can reach the device: enqueued,
 * captured, built node by node, and in a child graph.
 */
#include "support/rondo_test.h"

#include <stdio.h>
#include <string.h>

typedef enum way { DIRECT, CAPTURED, BUILT, NESTED, WAY_COUNT } way;

static rondo_status try_queue(rondo_stream *stream, const rondo_node_params *params) {
  const rondo_kernel_node *kernel = &params->as.kernel;
  switch (params->kind) {
    case RONDO_NODE_KERNEL:
      return rondo_launch(stream, kernel->kernel, kernel->grid, kernel->args, kernel->arg_count);
    case RONDO_NODE_COPY:
      return rondo_copy_box_async(stream, &params->as.copy);
    case RONDO_NODE_FILL:
      return rondo_fill_async(stream, &params->as.fill);
    case RONDO_NODE_HOST:
      return rondo_host_async(stream, params->as.host.function, params->as.host.user);
    default:
      fail_msg("kind %d cannot be queued", (int)params->kind);
  }
  return RONDO_INVALID_ARGUMENT;
}

static rondo_graph *graph_of(test_fixture *t, way how, const rondo_node_params *params) {
  if (how == CAPTURED) {
    assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
    assert_ok(try_queue(t->stream, params));
    return test_capture_end(t->stream);
  }
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  rondo_node_params copy = *params;
  assert_ok(rondo_graph_add(graph, NULL, 0, &copy, &node));
  return graph;
}

/* The graph as the only child of a child. */
static rondo_graph *nest(test_fixture *t, rondo_graph *inner) {
  rondo_graph *middle = test_graph(t), *outer = test_graph(t);
  rondo_node node = {0};
  assert_ok(rondo_graph_add_child(middle, NULL, 0, inner, &node));
  assert_ok(rondo_graph_add_child(outer, NULL, 0, middle, &node));
  test_graph_destroy(inner);
  test_graph_destroy(middle);
  return outer;
}

/* Does one piece of work in one mode, and waits for it. */
static void run(test_fixture *t, way how, const rondo_node_params *params) {
  if (how == DIRECT) {
    assert_ok(try_queue(t->stream, params));
  } else {
    rondo_graph *graph = graph_of(t, how, params);
    if (how == NESTED) graph = nest(t, graph);
    rondo_exec *exec = test_exec_of(graph);
    assert_ok(rondo_exec_launch(exec, t->stream));
    rondo_exec_destroy(exec);
  }
  assert_ok(rondo_stream_synchronize(t->stream));
}

/* Copies ---------------------------------------------------------------------------------------------------------- */

/* A box in memory of one side, with the image of all its bytes that the host compares with. */
typedef struct side {
  bool on_device;
  size_t bytes;
  unsigned char *image;
  unsigned char *memory;
} side;

static side side_make(test_fixture *t, bool on_device, size_t bytes, uint64_t *random) {
  side self = {.on_device = on_device, .bytes = bytes, .image = test_malloc(bytes)};
  for (size_t i = 0; i < bytes; i++) self.image[i] = (unsigned char)test_random(random);
  if (on_device) {
    self.memory = (unsigned char *)test_words(t, (bytes + 3) / 4);
    test_write(t, self.memory, self.image, bytes);
  } else {
    self.memory = test_malloc(bytes);
    memcpy(self.memory, self.image, bytes);
  }
  return self;
}

static void side_end(test_fixture *t, side *self) {
  unsigned char *found = test_malloc(self->bytes);
  if (self->on_device) {
    test_read(t, found, self->memory, self->bytes);
    test_words_free(t, (uint32_t *)self->memory);
  } else {
    memcpy(found, self->memory, self->bytes);
    test_free(self->memory);
  }
  assert_memory_equal(found, self->image, self->bytes);
  test_free(found);
  test_free(self->image);
}

typedef struct box {
  size_t width, height, depth;
  size_t pitch[2], slice_pitch[2]; /* of destination and source; 0 = packed */
} box;

static size_t or_default(size_t value, size_t otherwise) { return value != 0 ? value : otherwise; }

static size_t box_bytes(const box *b, int which) {
  const size_t pitch = or_default(b->pitch[which], b->width);
  const size_t slice = or_default(b->slice_pitch[which], pitch * or_default(b->height, 1));
  return slice * or_default(b->depth, 1) + 13; /* and some after it that must stay */
}

/* The copy, done on the images. */
static void copy_images(const box *b, const side *dst, const side *src) {
  const size_t height = or_default(b->height, 1), depth = or_default(b->depth, 1);
  const size_t dst_pitch = or_default(b->pitch[0], b->width), src_pitch = or_default(b->pitch[1], b->width);
  const size_t dst_slice = or_default(b->slice_pitch[0], dst_pitch * height);
  const size_t src_slice = or_default(b->slice_pitch[1], src_pitch * height);
  for (size_t z = 0; z < depth; z++)
    for (size_t y = 0; y < height; y++)
      memcpy(dst->image + z * dst_slice + y * dst_pitch, src->image + z * src_slice + y * src_pitch, b->width);
}

static void copy_one_box(test_fixture *t, way how, const box *b, bool dst_on_device, bool src_on_device) {
  uint64_t random = 7 + b->width;
  side dst = side_make(t, dst_on_device, box_bytes(b, 0), &random);
  side src = side_make(t, src_on_device, box_bytes(b, 1), &random);
  const rondo_node_params params = {.kind = RONDO_NODE_COPY,
                                    .as.copy = {.dst = dst.memory,
                                                .src = src.memory,
                                                .width = b->width,
                                                .height = b->height,
                                                .depth = b->depth,
                                                .dst_pitch = b->pitch[0],
                                                .src_pitch = b->pitch[1],
                                                .dst_slice_pitch = b->slice_pitch[0],
                                                .src_slice_pitch = b->slice_pitch[1]}};
  copy_images(b, &dst, &src);
  run(t, how, &params);
  side_end(t, &dst);
  side_end(t, &src);
}

static void copy_box(test_fixture *t, const box *b) {
  for (way how = DIRECT; how < WAY_COUNT; how++)
    for (int sides = 0; sides < 4; sides++) copy_one_box(t, how, b, (sides & 1) != 0, (sides & 2) != 0);
}

TEST(test_gx1_copies_in_one_dimension) {
  static const size_t widths[] = {1, 3, 64, 4097, 1000003};
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) copy_box(t, &(box){.width = widths[i]});
}

TEST(test_gx1_copies_in_two_dimensions) {
  copy_box(t, &(box){.width = 5, .height = 7});
  copy_box(t, &(box){.width = 5, .height = 7, .pitch = {8, 5}});
  copy_box(t, &(box){.width = 5, .height = 7, .pitch = {0, 16}});
  copy_box(t, &(box){.width = 300, .height = 100, .pitch = {301, 512}});
}

TEST(test_gx1_copies_in_three_dimensions) {
  copy_box(t, &(box){.width = 4, .height = 3, .depth = 5});
  copy_box(t, &(box){.width = 4, .height = 3, .depth = 5, .pitch = {7, 4}});
  copy_box(t, &(box){.width = 4, .height = 3, .depth = 5, .pitch = {7, 9}, .slice_pitch = {21, 40}});
  copy_box(t, &(box){.width = 6, .depth = 4, .slice_pitch = {11, 6}});
}

/* Boxes of random shapes, so that no form of pitch is left out. */
TEST(test_gx1_copies_of_random_boxes) {
  uint64_t random = 42;
  for (int i = 0; i < 40; i++) {
    box b = {.width = 1 + test_random_below(&random, 70),
             .height = test_random_below(&random, 9),
             .depth = test_random_below(&random, 6)};
    for (int k = 0; k < 2; k++) {
      if (test_random_below(&random, 2)) b.pitch[k] = b.width + test_random_below(&random, 20);
      const size_t packed = or_default(b.pitch[k], b.width) * or_default(b.height, 1);
      if (test_random_below(&random, 2)) b.slice_pitch[k] = packed + test_random_below(&random, 50);
    }
    copy_box(t, &b);
  }
}

/* Fills ----------------------------------------------------------------------------------------------------------- */

static void fill_image(const rondo_fill *fill, unsigned char *image) {
  const size_t row = fill->width * fill->element_bytes;
  const size_t pitch = or_default(fill->pitch, row);
  for (size_t y = 0; y < or_default(fill->height, 1); y++)
    for (size_t x = 0; x < fill->width; x++)
      for (uint32_t k = 0; k < fill->element_bytes; k++)
        image[y * pitch + x * fill->element_bytes + k] = (unsigned char)(fill->value >> (8 * k));
}

/* The value's low bytes count, in the byte order of the machines that Rondo runs on (least significant first). */
static void fill_one(test_fixture *t, way how, const rondo_fill *shape) {
  uint64_t random = 3;
  const size_t pitch = or_default(shape->pitch, shape->width * shape->element_bytes);
  side dst = side_make(t, true, pitch * or_default(shape->height, 1) + 13, &random);
  rondo_node_params params = {.kind = RONDO_NODE_FILL, .as.fill = *shape};
  params.as.fill.dst = dst.memory;
  fill_image(shape, dst.image);
  run(t, how, &params);
  side_end(t, &dst);
}

TEST(test_gx1_fills) {
  static const rondo_fill shapes[] = {
      {.value = 0xab, .element_bytes = 1, .width = 1},
      {.value = 0x12345678, .element_bytes = 1, .width = 1000},
      {.value = 0x12345678, .element_bytes = 2, .width = 333},
      {.value = 0x12345678, .element_bytes = 4, .width = 100001},
      {.value = 0xdeadbeef, .element_bytes = 4, .width = 7, .height = 5},
      {.value = 0xdeadbeef, .element_bytes = 4, .width = 7, .height = 5, .pitch = 32},
      {.value = 0xbeef, .element_bytes = 2, .width = 3, .height = 9, .pitch = 10},
      {.value = 0x7f, .element_bytes = 1, .width = 3, .height = 9, .pitch = 4},
  };
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    for (way how = DIRECT; how < WAY_COUNT; how++) fill_one(t, how, &shapes[i]);
  }
}

/* The rest -------------------------------------------------------------------------------------------------------- */

TEST(test_gx1_kernels) {
  enum { COUNT = 500 };
  for (way how = DIRECT; how < WAY_COUNT; how++) {
    uint32_t *words = test_words(t, COUNT), expected[COUNT];
    const uint32_t factor = 3, term = (uint32_t)how + 1;
    const void *args[] = {&factor, &term, &words};
    const rondo_node_params params = {
        .kind = RONDO_NODE_KERNEL,
        .as.kernel = {
            .kernel = test_kernel(t, TEST_KERNEL_AFFINE), .grid = {COUNT, 0, 0}, .args = args, .arg_count = 3}};
    run(t, how, &params);
    run(t, how, &params);
    for (int i = 0; i < COUNT; i++) expected[i] = 4 * term;
    assert_words(t, words, expected, COUNT);
    test_words_free(t, words);
  }
}

TEST(test_gx1_host_functions) {
  for (way how = DIRECT; how < WAY_COUNT; how++) {
    uint32_t calls = 0;
    const rondo_node_params params = {.kind = RONDO_NODE_HOST,
                                      .as.host = {.function = test_host_count, .user = &calls}};
    run(t, how, &params);
    assert_int_equal(calls, 1);
  }
}

/* Empty nodes carry order: out of two sources, through a chain of them, to the sink. */
TEST(test_gx1_empty_nodes_carry_order) {
  uint32_t *words = test_words(t, 3);
  rondo_graph *graph = test_graph(t);
  rondo_node sources[2], join = {0}, sink = {0};
  for (int i = 0; i < 2; i++) sources[i] = test_add_affine(t, graph, NULL, 0, words + i, 2, 3);
  assert_ok(rondo_graph_add_empty(graph, sources, 2, &join));
  for (int i = 0; i < 3; i++) assert_ok(rondo_graph_add_empty(graph, &join, 1, &join));
  uint32_t *left = words, *right = words + 1, *out = words + 2;
  assert_ok(rondo_graph_add_kernel(graph, &join, 1, test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){1, 0, 0},
                                   RONDO_ARGS(&left, &right, &out), &sink));
  rondo_exec *exec = test_instantiate(graph);
  uint32_t expected[3] = {0, 0, 0};
  for (int i = 0; i < 100; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    expected[0] = expected[1] = expected[0] * 2 + 3;
    expected[2] = expected[0] * 32;
    assert_words(t, words, expected, 3);
  }
}

/* A graph used twice as a child runs twice, in its place between the nodes around it. */
TEST(test_gx1_child_graphs_run_in_their_place) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *inner = test_graph(t), *outer = test_graph(t);
  rondo_node a = test_add_affine(t, inner, NULL, 0, word, 3, 1), child = {0};
  test_add_affine(t, inner, &a, 1, word, 5, 2);
  a = test_add_affine(t, outer, NULL, 0, word, 7, 11);
  assert_ok(rondo_graph_add_child(outer, &a, 1, inner, &child));
  a = test_add_affine(t, outer, &child, 1, word, 13, 17);
  assert_ok(rondo_graph_add_child(outer, &a, 1, inner, &child));
  test_add_affine(t, outer, &child, 1, word, 19, 23);
  test_graph_destroy(inner);
  rondo_exec *exec = test_instantiate(outer);
  uint32_t expected = 0;
  for (int i = 0; i < 40; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    expected = ((expected * 7 + 11) * 3 + 1) * 5 + 2;
    expected = (((expected * 13 + 17) * 3 + 1) * 5 + 2) * 19 + 23;
  }
  assert_int_equal(test_word(t, word), expected);
}

/* An empty child orders what is before it before what is after it. */
TEST(test_gx1_an_empty_child_carries_order) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *nothing = test_graph(t), *graph = test_graph(t);
  const rondo_node first = test_add_affine(t, graph, NULL, 0, word, 0, 4);
  rondo_node child = {0};
  assert_ok(rondo_graph_add_child(graph, &first, 1, nothing, &child));
  test_add_affine(t, graph, &child, 1, word, 10, 2);
  rondo_exec *exec = test_instantiate(graph);
  for (int i = 0; i < 20; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, word), 42);
}

/* An event-record node releases a stream outside as soon as its position in the graph is reached. */
TEST_WORKERS(test_gx1_event_record_nodes) {
  test_skip_if_serial();
  rondo_stream *follower = test_stream(t, "follower");
  rondo_event *event = test_event(t);
  uint32_t *word = test_words(t, 1);
  test_gate *gate = test_gate_make();
  rondo_graph *graph = test_graph(t);
  rondo_node node = test_add_affine(t, graph, NULL, 0, word, 0, 6);
  assert_ok(rondo_graph_add_event_record(graph, &node, 1, event, &node));
  assert_ok(rondo_graph_add_host(graph, &node, 1, test_gate_pass, gate, &node));
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_wait_event(follower, event));
  test_affine(t, follower, word, 1, 10, 0);
  assert_ok(rondo_stream_synchronize(follower));
  assert_ok(rondo_event_query(event));
  assert_status(rondo_stream_query(t->stream), RONDO_NOT_READY);
  test_gate_open(gate);
  assert_int_equal(test_word(t, word), 60);
}

/* An event-wait node waits for the event as it is recorded when the graph is launched. */
TEST_WORKERS(test_gx1_event_wait_nodes) {
  test_skip_if_serial();
  rondo_stream *leader = test_stream(t, "leader");
  rondo_event *event = test_event(t);
  uint32_t *words = test_words(t, 2);
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  assert_ok(rondo_graph_add_event_wait(graph, NULL, 0, event, &node));
  test_add_affine(t, graph, &node, 1, words, 10, 1);
  test_add_affine(t, graph, NULL, 0, words + 1, 1, 1); /* does not wait */
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream)); /* never recorded: complete */
  assert_int_equal(test_word(t, words), 1);
  for (uint32_t i = 2; i < 5; i++) {
    test_gate *gate = test_gate_make();
    test_gate_hold(gate, leader);
    test_affine(t, leader, words, 1, 0, i);
    assert_ok(rondo_event_record(event, leader));
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_status(rondo_stream_query(t->stream), RONDO_NOT_READY);
    test_gate_open(gate);
    assert_int_equal(test_word(t, words), 10 * i + 1);
  }
  assert_int_equal(test_word(t, words + 1), 4);
}

/* Alloc and free nodes around work on the memory. */
TEST(test_gx1_alloc_and_free_nodes) {
  enum { COUNT = 2000 };
  uint32_t *out = test_words(t, COUNT), expected[COUNT];
  rondo_graph *graph = test_graph(t);
  void *scratch = NULL;
  rondo_node node = {0};
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, COUNT * 4, "scratch", &scratch, &node));
  const rondo_fill fill = {.dst = scratch, .value = 9, .element_bytes = 4, .width = COUNT};
  assert_ok(rondo_graph_add_fill(graph, &node, 1, &fill, &node));
  assert_ok(rondo_graph_add_kernel(graph, &node, 1, test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){COUNT, 0, 0},
                                   RONDO_ARGS(&scratch, &scratch, &out), &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, scratch, &node));
  rondo_exec *exec = test_instantiate(graph);
  for (int i = 0; i < COUNT; i++) expected[i] = 9 * 32;
  for (int i = 0; i < 10; i++) {
    assert_ok(rondo_fill_async(t->stream, &(rondo_fill){.dst = out, .element_bytes = 4, .width = COUNT}));
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_words(t, out, expected, COUNT);
  }
}

/* A copy within one matrix, as a node and enqueued: allowed where source and destination share no byte. */
static void check_within(test_fixture *t, const rondo_copy *copy, bool apart) {
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  size_t count = 0;
  if (apart) {
    assert_ok(rondo_graph_add_copy(graph, NULL, 0, copy, &node));
    assert_ok(rondo_copy_box_async(t->stream, copy));
    assert_ok(rondo_stream_synchronize(t->stream));
  } else {
    assert_invalid(rondo_graph_add_copy(graph, NULL, 0, copy, &node), RONDO_REASON_OUT_OF_RANGE);
    assert_message("overlap");
    assert_invalid(rondo_copy_box_async(t->stream, copy), RONDO_REASON_OUT_OF_RANGE);
    assert_message("overlap");
  }
  assert_ok(rondo_graph_nodes(graph, NULL, &count));
  assert_int_equal(count, apart);
}

/* B4: a copy's source and destination are apart; columns and planes of one matrix are. */
TEST(test_b4_copies_that_overlap_themselves) {
  enum { PITCH = 64, ROWS = 16, SLICE = PITCH * ROWS, SLICES = 4 };
  uint32_t *words = test_words(t, SLICES * SLICE / 4);
  char *m = (char *)words;
  const rondo_copy columns = {
      .dst = m + 16, .src = m, .width = 16, .height = ROWS, .dst_pitch = PITCH, .src_pitch = PITCH};
  rondo_copy copy = columns;
  check_within(t, &copy, true);
  copy.width = 17;
  check_within(t, &copy, false);
  copy = columns;
  copy.dst = m + PITCH; /* one row further on */
  check_within(t, &copy, false);
  copy.dst = m + PITCH + 32;
  check_within(t, &copy, true);
  copy.dst = m;
  check_within(t, &copy, false);
  copy = columns;
  copy.height = 2;
  copy.dst_pitch = 3 * PITCH / 2; /* the second row begins in the middle of the source's third */
  check_within(t, &copy, true);
  copy.height = 3; /* the third is the source's fourth from the middle on, which is not read */
  check_within(t, &copy, true);
  copy.dst = m + PITCH - 16;
  copy.width = 32; /* runs into the source's second row */
  check_within(t, &copy, false);
  copy = columns;
  copy.depth = 2;
  copy.dst = m + 2 * SLICE;
  copy.dst_slice_pitch = copy.src_slice_pitch = SLICE;
  check_within(t, &copy, true);
  copy.dst = m + SLICE;
  check_within(t, &copy, false);
  copy.dst = m + SLICE + 16;
  check_within(t, &copy, true);
}

/* A copy of too many bytes between neighbors also overlaps: the message says that it passes an end. An allocation
 * without a name is called one. */
TEST(test_b4_too_many_bytes_are_not_called_an_overlap) {
  enum { BYTES = 4096 };
  void *pair[2];
  for (int i = 0; i < 2; i++) assert_ok(rondo_malloc(t->device, BYTES, i == 0 ? "a" : NULL, &pair[i]));
  for (int i = 0; i < 2; i++) {
    assert_invalid(rondo_copy_async(t->stream, pair[i], pair[1 - i], 64 * BYTES), RONDO_REASON_OUT_OF_RANGE);
    assert_message(i == 0 ? "passes the end of allocation 'a' of 4096 bytes"
                          : "passes the end of an allocation of 4096 bytes");
  }
  for (int i = 0; i < 2; i++) assert_ok(rondo_free(t->device, pair[i]));
  assert_error(rondo_free(t->device, pair[1]), RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE);
  assert_message("allocation (no name, 4.0 KiB)");
}

TEST(test_gx1_kinds_have_names) {
  assert_string_equal(rondo_node_kind_name(RONDO_NODE_KERNEL), "kernel");
  assert_string_equal(rondo_node_kind_name(RONDO_NODE_EVENT_RECORD), "event_record");
  assert_string_equal(rondo_node_kind_name((rondo_node_kind)0), "unknown");
  for (int i = RONDO_NODE_KERNEL; i <= RONDO_NODE_FREE; i++)
    assert_string_not_equal(rondo_node_kind_name((rondo_node_kind)i), "unknown");
}

/* Mistakes -------------------------------------------------------------------------------------------------------- */

/* The call that was given the mistake, and what it says. */
static const char *words_of(const char *call) {
  const char *message = rondo_last_error()->message;
  const size_t length = strlen(call);
  assert_int_equal(strncmp(message, call, length), 0);
  assert_int_equal(strncmp(message + length, ": ", 2), 0);
  return message + length + 2;
}

static void check_mistake(test_fixture *t, const char *call, const rondo_node_params *params) {
  char queued[512];
  rondo_node node;
  rondo_node_params copy = *params;
  assert_fails(try_queue(t->stream, params), RONDO_INVALID_ARGUMENT);
  (void)snprintf(queued, sizeof queued, "%s", words_of(call));
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_fails(try_queue(t->stream, params), RONDO_INVALID_ARGUMENT);
  assert_string_equal(words_of(call), queued);
  rondo_graph *graph = test_capture_end(t->stream);
  assert_fails(rondo_graph_add(graph, NULL, 0, &copy, &node), RONDO_INVALID_ARGUMENT);
  assert_string_equal(words_of("rondo_graph_add"), queued);
  test_graph_destroy(graph);
}

TEST(test_gx2_b2_a_mistake_reads_the_same_in_each_way) {
  char bytes[8];
  const rondo_node_params copy = {.kind = RONDO_NODE_COPY, .as.copy = {.dst = bytes, .src = bytes + 4}};
  const rondo_node_params fill = {.kind = RONDO_NODE_FILL, .as.fill = {.dst = bytes, .width = 1, .element_bytes = 3}};
  const rondo_node_params host = {.kind = RONDO_NODE_HOST};
  const rondo_node_params kernel = {.kind = RONDO_NODE_KERNEL,
                                    .as.kernel = {.kernel = test_kernel(t, TEST_KERNEL_AFFINE)}};
  check_mistake(t, "rondo_copy_box_async", &copy);
  check_mistake(t, "rondo_fill_async", &fill);
  check_mistake(t, "rondo_host_async", &host);
  check_mistake(t, "rondo_launch", &kernel);
}

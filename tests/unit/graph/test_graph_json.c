/* SPDX-License-Identifier: MIT
 * Graphs from JSON: a text is written again as it was. Every error in a text is refused with a message, in each field
 * and at each byte. Nothing leaks.
 */
#include <stdio.h>

#include "graph/graph.h"
#include "graph/graph_json_read.h"
#include "unit/graph/graph_tests.h"

static rondo_status read_text(graph_fixture *fixture, const char *text, rondo_graph **out) {
  return rondo_graph_read_json(&fixture->allocator.table, text, strlen(text), out);
}

#define HEAD "{\"rondo_graph\":1,\"name\":\"g\",\"kernels\":["
#define KERNEL                                            \
  "{\"name\":\"k\",\"block_threads\":64,\"parameters\":[" \
  "{\"access\":\"scalar\",\"bytes\":4,\"alignment\":4},{\"access\":\"write\",\"bytes\":8,\"alignment\":8}]}"
#define MIDDLE "],\"nodes\":["
#define TAIL "]}"

/* A document with one kernel and these nodes. */
#define NODES(nodes) HEAD KERNEL MIDDLE nodes TAIL
#define KERNELS(kernels) HEAD kernels MIDDLE TAIL
#define EMPTY(number, dependencies) \
  "{\"number\":" number ",\"kind\":\"empty\",\"name\":\"\",\"dependencies\":[" dependencies "]}"
#define NODE(fields) "{\"number\":0,\"name\":\"n\",\"dependencies\":[]," fields "}"
#define KERNEL_NODE(kernel, grid, arguments) \
  NODE("\"kind\":\"kernel\",\"kernel\":" kernel ",\"grid\":" grid ",\"arguments\":" arguments)
#define COPY_NODE(width, pitch)                                                              \
  NODE("\"kind\":\"copy\",\"width\":" width ",\"height\":2,\"depth\":1,\"dst_pitch\":" pitch \
       ",\"src_pitch\":0,\"dst_slice_pitch\":0,\"src_slice_pitch\":0")
#define FILL_NODE(element, width) \
  NODE("\"kind\":\"fill\",\"value\":7,\"element_bytes\":" element ",\"width\":" width ",\"height\":0,\"pitch\":0")

static void expect_round_trip(graph_fixture *fixture, const rondo_graph *graph) {
  const size_t kept = fixture->kept_count;
  const char *const text = json(fixture, graph, false);
  assert_string_equal(text, json(fixture, read_back(fixture, text), false));
  free_kept(fixture, kept);
}

GRAPH_TEST(test_gx7_round_trip) {
  expect_round_trip(fixture, fixture->graph);
  add_all_kinds(fixture, fixture->graph);
  expect_round_trip(fixture, fixture->graph);
  add_child(fixture->graph, fixture->graph);
  assert_ok(rondo_graph_erase(fixture->graph, 0));
  assert_ok(rondo_graph_erase(fixture->graph, 5));
  add_edge(fixture->graph, fixture->nodes[9], fixture->nodes[6]); /* against the numbers, and a cycle */
  expect_round_trip(fixture, fixture->graph);
}

/* Graphs of the maximum depth and number that can be written can be read. */
GRAPH_TEST(test_round_trip_of_the_deepest) {
  rondo_graph *at = fixture->graph, *leaf = make_graph(fixture, "leaf");
  const rondo_node_params kernel = kernel_params(fixture);
  for (int depth = 0; depth < 16; depth++) {
    rondo_node_params params = test_node_params(at, add_child(at, leaf));
    at = params.as.child;
    add_node(at, &kernel, NULL, 0);
  }
  expect_round_trip(fixture, fixture->graph);
}

GRAPH_TEST(test_round_trip_of_hostile_names) {
  static const char *const names[] = {"\"]}", "\\u0000", "\x01\x1f\x7f", "\xff\xc0\x80", "\xe2\x82\xac", "a\nb\tc"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const rondo_node_params params = {.kind = RONDO_NODE_EMPTY, .name = names[i]};
    add_node(fixture->graph, &params, NULL, 0);
  }
  expect_round_trip(fixture, fixture->graph);
}

/* The pitch of one row and the bytes of a value beyond its element come back as they were given. */
GRAPH_TEST(test_round_trip_of_numbers_without_effect) {
  rondo_node_params copy = copy_params(fixture), fill = fill_params(fixture), read;
  copy.as.copy.height = 0;
  copy.as.copy.dst_pitch = 40;
  copy.as.copy.src_pitch = SIZE_MAX;
  copy.as.copy.src_slice_pitch = 77;
  fill.as.fill = (rondo_fill){
      .dst = fill.as.fill.dst, .value = 0x12345678, .element_bytes = 1, .width = 10, .height = 1, .pitch = 24};
  add_node(fixture->graph, &copy, NULL, 0);
  add_node(fixture->graph, &fill, NULL, 0);
  expect_round_trip(fixture, fixture->graph);
  rondo_graph *back = read_back(fixture, json(fixture, fixture->graph, true));
  read = test_node_params(back, rondo_graph_id(back, 0));
  assert_int_equal(read.as.copy.dst_pitch, 40);
  assert_true(read.as.copy.src_pitch == SIZE_MAX);
  assert_int_equal(read.as.copy.src_slice_pitch, 77);
  read = test_node_params(back, rondo_graph_id(back, 1));
  assert_int_equal(read.as.fill.pitch, 24);
  assert_int_equal(read.as.fill.value, 0x12345678);
}

/* The graph that is read is only data, has the same fingerprint, and is the same except for what only a process knows.
 */
GRAPH_TEST(test_what_is_read) {
  add_all_kinds(fixture, fixture->graph);
  rondo_graph *back = read_back(fixture, json(fixture, fixture->graph, true));
  assert_int_equal(fingerprint(fixture->graph), fingerprint(back));
  rondo_difference difference;
  size_t count = 1;
  assert_ok(rondo_graph_diff(fixture->graph, back, true, &difference, &count));
  assert_int_equal(count, 1); /* the host function */
  assert_int_equal(difference.a.id, fixture->nodes[1].id);
  assert_null(back->device);
  assert_true(back->has_memory);
  const rondo_graph_node *kernel = rondo_graph_at(back, 0), *copy = rondo_graph_at(back, 2);
  assert_null(kernel->params.as.kernel.kernel->device);
  assert_null(kernel->params.as.kernel.kernel->cpu);
  assert_ptr_equal(*(float *const *)kernel->params.as.kernel.args[2], fixture->y);
  assert_ptr_equal(copy->params.as.copy.src, fixture->memory);
  assert_ptr_equal(kernel->params.as.kernel.kernel,
                   rondo_graph_at(rondo_graph_at(back, 5)->params.as.child, 0)->params.as.kernel.kernel);
  assert_ptr_equal(rondo_graph_at(back, 8)->params.as.alloc.address, fixture->memory + 3072);
  assert_null(rondo_graph_at(back, 1)->params.as.host.function);
  assert_null(rondo_graph_at(back, 6)->params.as.event);
}

GRAPH_TEST(test_public_reader) {
  rondo_graph *graph = (rondo_graph *)1;
  assert_error(rondo_graph_from_json(NULL, 0, &graph), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  assert_null(graph);
  assert_error(rondo_graph_from_json("", 0, NULL), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  static const char text[] = {'{', '}', 'x'}; /* no NUL at the end, and a byte that is not counted */
  assert_error(rondo_graph_from_json(text, 2, &graph), RONDO_INVALID_DATA, RONDO_REASON_MALFORMED);
  assert_message("graph from JSON: field 'rondo_graph' is missing");
  assert_ok(rondo_graph_from_json(KERNELS(""), sizeof(KERNELS("")) - 1, &graph));
  keep(fixture, graph, false);
}

typedef struct bad_text {
  const char *text;
  const char *message; /* part of it */
} bad_text;

#define TEN "0,0,0,0,0,0,0,0,0,0,"
#define FORTY TEN TEN TEN TEN

static const bad_text bad_documents[] = {
    {"", "line 1, column 1"},
    {"nonsense", "line 1"},
    {"{\"rondo_graph\":1,\n  \"name\" 2}", "line 2"},
    {"[]", "an object is expected"},
    {"7", "line 1"},
    {KERNELS("") " x", "line 1"},
    {"{\"a\":1,\"a\":1}", "duplicate object key"},
    {"{\"name\":\"\\u0000\"}", "line 1"},
    {"{\"name\":\"\xff\"}", "line 1"},
    {"{\"rondo_graph\":\"1\"}", "'rondo_graph' must be a whole number"},
    {"{\"rondo_graph\":1.0}", "'rondo_graph' must be a whole number"},
    {"{\"rondo_graph\":-1}", "'rondo_graph' is -1"},
    {"{\"rondo_graph\":4294967296}", "'rondo_graph' is 4294967296"},
    {"{\"rondo_graph\":99999999999999999999}", "does not fit 64 bits"},
    {"{\"rondo_graph\":2,\"new\":0}", "reads format 1"},
    {"{\"rondo_graph\":1,\"evil\\n\\u001b[2J\":0}", "'evil\\n\\u001b[2J' is not known"},
    {"{\"rondo_graph\":1,\"name\":\"\",\"nodes\":[]}", "'kernels' is missing"},
    {"{\"rondo_graph\":1,\"name\":\"\",\"kernels\":{},\"nodes\":[]}", "'kernels' must be an array"},
    {"{\"rondo_graph\":1,\"name\":\"\",\"kernels\":[]}", "'nodes' is missing"},
    {"{\"rondo_graph\":1,\"name\":7,\"kernels\":[],\"nodes\":[]}", "'name' must be a string"},
    {"{\"rondo_graph\":1,\"kernels\":[],\"nodes\":[]}", "'name' is missing"},
    {KERNELS("7"), "kernels[0]: an object is expected"},
    {KERNELS("{}"), "kernels[0]: field 'name' is missing"},
    {KERNELS("{\"name\":\"\",\"block_threads\":0,\"parameters\":[]}"), "kernels[0]: the kernel has no name"},
    {KERNELS("{\"name\":\"k\",\"block_threads\":2000,\"parameters\":[]}"), "2000 threads"},
    {KERNELS("{\"name\":\"k\",\"block_threads\":0,\"parameters\":[7]}"), "parameters[0]: an object"},
    {KERNELS("{\"name\":\"k\",\"block_threads\":0,\"parameters\":[{\"access\":\"\",\"bytes\":4,\"alignment\":4}]}"),
     "'access' must be \"scalar\", \"read\", \"write\" or \"read_write\""},
    {KERNELS("{\"name\":\"k\",\"block_threads\":0,\"parameters\":[{\"access\":\"read\",\"bytes\":4,\"alignment\":4}]}"),
     "pointer of 4 bytes"},
    {KERNELS("{\"name\":\"k\",\"block_threads\":0,\"parameters\":[{\"access\":\"scalar\",\"bytes\":0,\"alignment\":4}]"
             "}"),
     "'bytes' is 0"},
    {KERNELS("{\"name\":\"k\",\"block_threads\":0,\"parameters\":[{\"access\":\"scalar\",\"bytes\":4,\"alignment\":3}]"
             "}"),
     "alignment 3"},
    {KERNELS("{\"name\":\"k\",\"block_threads\":0,\"parameters\":[" FORTY FORTY FORTY "0,0,0,0,0,0,0,0,0]}"),
     "has 129 entries"},
};

static const bad_text bad_nodes[] = {
    {NODES("[]"), "nodes[0]: an object is expected"},
    {NODES("{}"), "nodes[0]: field 'kind' is missing"},
    {NODES("{\"kind\":\"unknown\"}"), "'unknown', which is not a kind"},
    {NODES("{\"kind\":\"empty\",\"name\":\"\",\"dependencies\":[]}"), "'number' is missing"},
    {NODES("{\"kind\":\"empty\",\"number\":0,\"dependencies\":[]}"), "'name' is missing"},
    {NODES("{\"kind\":\"empty\",\"number\":0,\"name\":\"\"}"), "'dependencies' is missing"},
    {NODES(EMPTY("0", "") "," EMPTY("0", "")), "nodes[1]: field 'number' is 0 after 0"},
    {NODES(EMPTY("0", "\"1\"")), "'dependencies' must be a whole number"},
    {NODES(EMPTY("0", "-1")), "'dependencies' is -1"},
    {NODES(NODE("\"kind\":\"empty\",\"extra\":1")), "'extra' is not known"},
    {NODES(NODE("\"kind\":\"free\",\"dst\":\"0x0\"")), "'dst' is not known"},
    {NODES(NODE("\"kind\":\"host\",\"device\":1")), "'device' is of a node that cannot have one"},
    {NODES(NODE("\"kind\":\"alloc\",\"device\":1")), "'device' is of a node that cannot have one"},
    {NODES(NODE("\"kind\":\"event_wait\",\"device\":-1")), "'device' is -1"},
    {NODES(NODE("\"kind\":\"event_wait\",\"device\":65535")), "'device' is 65535"},
    {NODES(NODE("\"kind\":\"event_wait\",\"device\":\"cuda:1\"")), "'device' must be a whole number"},
    {NODES(KERNEL_NODE("1", "[1,1,1]", "[\"00000000\",null]")), "'kernel' is 1 but the document has 1 kernels"},
    {NODES(KERNEL_NODE("0", "[1,1]", "[\"00000000\",null]")), "'grid' must have three entries"},
    {NODES(KERNEL_NODE("0", "7", "[\"00000000\",null]")), "'grid' must be an array"},
    {NODES(KERNEL_NODE("0", "[0,1,1]", "[\"00000000\",null]")), "a grid of 0 blocks"},
    {NODES(KERNEL_NODE("0", "[4294967295,4294967295,1]", "[\"00000000\",null]")), "at most 2^40"},
    {NODES(KERNEL_NODE("0", "[1,1,1]", "[\"00000000\"]")), "'arguments' has 1 entries, but the kernel has 2"},
    {NODES(KERNEL_NODE("0", "[1,1,1]", "[\"0000000\",null]")), "arguments[0]: must be the 8 hexadecimal digits"},
    {NODES(KERNEL_NODE("0", "[1,1,1]", "[\"0000000G\",null]")), "arguments[0]: must be the 8 hexadecimal digits"},
    {NODES(KERNEL_NODE("0", "[1,1,1]", "[null,null]")), "arguments[0]: must be the 8 hexadecimal digits"},
    {NODES(KERNEL_NODE("0", "[1,1,1]", "[\"00000000\",\"7f\"]")), "arguments[1]: field 'arguments' must be an address"},
    {NODES(KERNEL_NODE("0", "[1,1,1]", "[\"00000000\",\"0x\"]")), "must be an address"},
    {NODES(KERNEL_NODE("0", "[1,1,1]", "[\"00000000\",\"0x11112222333344445\"]")), "must be an address"},
    {NODES(KERNEL_NODE("0", "[1,1,1]", "[\"00000000\",7]")), "must be an address"},
    {NODES(NODE("\"kind\":\"host\",\"function\":1")), "'function' must be an address"},
    {NODES(NODE("\"kind\":\"event_wait\",\"event\":null")), "'event' must be an address"},
    {NODES(NODE("\"kind\":\"foreign\",\"what\":\"w\",\"bytes\":4")), "'bound' is missing"},
    {NODES(NODE("\"kind\":\"foreign\",\"what\":\"w\",\"bytes\":4,\"bound\":1")), "'bound' must be true or false"},
    {NODES(NODE("\"kind\":\"empty\",\"programmatic\":[[0,1,0]]")),
     "'programmatic' must contain arrays of four numbers"},
    {NODES(NODE("\"kind\":\"copy\"")), "'width' is missing"},
    {NODES(COPY_NODE("0", "0")), "its parameters: a copy of 0 bytes x 2 rows x 1 slices"},
    {NODES(COPY_NODE("16", "15")), "a pitch of 15"},
    {NODES(COPY_NODE("9223372036854775807", "0")), "does not fit the address space"},
    {NODES(COPY_NODE("9223372036854775808", "0")), "must be between 0 and 9223372036854775807"},
    {NODES(COPY_NODE("18446744073709551616", "0")), "does not fit 64 bits"},
    {NODES(FILL_NODE("3", "4")), "elements of 3 bytes"},
    {NODES(FILL_NODE("4", "9223372036854775807")), "does not fit the address space"},
    {NODES(NODE("\"kind\":\"alloc\",\"bytes\":0,\"allocation\":\"\"")), "an allocation of 0 bytes"},
    {NODES(NODE("\"kind\":\"alloc\",\"bytes\":8")), "'allocation' is missing"},
    {NODES(NODE("\"kind\":\"child\"")), "'child' is missing"},
    {NODES(NODE("\"kind\":\"child\",\"child\":[]")), "child: an object is expected"},
    {NODES(NODE("\"kind\":\"child\",\"child\":{\"name\":\"\",\"nodes\":[],\"kernels\":[]}")), "'kernels' is not known"},
    {NODES(NODE("\"kind\":\"child\",\"child\":{\"name\":\"\",\"nodes\":[" EMPTY("0", "") ",7]}")),
     "nodes[0]: child: nodes[1]: an object is expected"},
};

static void expect_all_refused(graph_fixture *fixture, const bad_text *texts, size_t count) {
  const size_t live = fixture->allocator.live;
  for (size_t i = 0; i < count; i++) {
    rondo_graph *graph = fixture->graph;
    const rondo_status status = read_text(fixture, texts[i].text, &graph);
    if (status != RONDO_INVALID_DATA) print_error("text %zu: %s\n", i, texts[i].text);
    assert_int_equal(status, RONDO_INVALID_DATA);
    assert_message("graph from JSON: ");
    assert_message(texts[i].message);
    assert_null(graph);
    assert_int_equal(fixture->allocator.live, live);
  }
}

GRAPH_TEST(test_bad_documents) {
  expect_all_refused(fixture, bad_documents, sizeof bad_documents / sizeof *bad_documents);
}

GRAPH_TEST(test_bad_nodes) { expect_all_refused(fixture, bad_nodes, sizeof bad_nodes / sizeof *bad_nodes); }

GRAPH_TEST(test_bad_edges) {
  rondo_graph *graph;
  const rondo_status bad = RONDO_INVALID_GRAPH;
  assert_error(read_text(fixture, NODES(EMPTY("0", "") "," EMPTY("2", "0,1")), &graph), bad, RONDO_REASON_UNKNOWN_NODE);
  assert_message("nodes[1]: dependencies[1]: graph 'g' has no node 1");
  assert_error(read_text(fixture, NODES(EMPTY("0", "9")), &graph), bad, RONDO_REASON_UNKNOWN_NODE);
  assert_error(read_text(fixture, NODES(EMPTY("0", "0")), &graph), bad, RONDO_REASON_SELF_EDGE);
  assert_error(read_text(fixture, NODES(EMPTY("0", "") "," EMPTY("1", "0,0")), &graph), bad,
               RONDO_REASON_DUPLICATE_EDGE);
  assert_error(read_text(fixture, NODES(NODE("\"kind\":\"empty\",\"programmatic\":[[0,1,0,1,1]]")), &graph), bad,
               RONDO_REASON_NODE_KIND);
  graph = read_back(fixture, NODES(EMPTY("1", "5") "," EMPTY("5", "1"))); /* a cycle is a graph */
  assert_int_equal(test_edge_count(graph), 2);
}

GRAPH_TEST(test_bounds) {
  rondo_graph *graph;
  read_back(fixture, NODES(EMPTY("65536", "")));
  assert_error(read_text(fixture, NODES(EMPTY("65537", "")), &graph), RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE);
  assert_error(read_text(fixture, NODES(EMPTY("4294967295", "")), &graph), RONDO_LIMIT_EXCEEDED,
               RONDO_REASON_OUT_OF_RANGE);
  assert_error(read_text(fixture, NODES(EMPTY("40000", "") "," EMPTY("80000", "")), &graph), RONDO_LIMIT_EXCEEDED,
               RONDO_REASON_OUT_OF_RANGE);
  assert_message("skip at most 65536 numbers");
}

GRAPH_TEST(test_nesting_bound) {
  static char text[16384];
  for (int levels = 16; levels <= 18; levels++) {
    size_t used = (size_t)snprintf(text, sizeof text, "%s", HEAD MIDDLE);
    for (int i = 0; i < levels; i++)
      used += (size_t)snprintf(text + used, sizeof text - used,
                               "{\"number\":0,\"kind\":\"child\",\"name\":\"\",\"dependencies\":[],"
                               "\"child\":{\"name\":\"\",\"nodes\":[");
    for (int i = 0; i < levels; i++) used += (size_t)snprintf(text + used, sizeof text - used, "]}}");
    snprintf(text + used, sizeof text - used, TAIL);
    rondo_graph *graph;
    const rondo_status status = read_text(fixture, text, &graph);
    if (levels == 16) {
      assert_ok(status);
      expect_round_trip(fixture, keep(fixture, graph, false));
    } else {
      assert_error(status, RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE);
    }
  }
  memset(text, '[', sizeof text - 1); /* deeper than the parser goes */
  text[sizeof text - 1] = '\0';
  rondo_graph *graph;
  assert_error(read_text(fixture, text, &graph), RONDO_INVALID_DATA, RONDO_REASON_MALFORMED);
}

/* Big enough that anything quadratic would be noticed by the test's timeout. */
GRAPH_TEST(test_many_nodes) {
  enum { NODES = 250000, ROOM = 80 };
  char *const text = test_malloc(ROOM * (size_t)NODES + ROOM);
  char *at = text + sprintf(text, "%s", HEAD MIDDLE);
  for (int i = 0; i < NODES; i++)
    at += sprintf(at, "%s{\"number\":%d,\"kind\":\"empty\",\"name\":\"\",\"dependencies\":[%.*d]}", i == 0 ? "" : ",",
                  i, i > 0, i > 0 ? i - 1 : 0);
  (void)strcpy(at, TAIL);
  rondo_graph *graph;
  assert_ok(read_text(fixture, text, &graph));
  assert_int_equal(graph->live_count, NODES);
  rondo_graph_free(graph);
  test_free(text);
}

/* Truncated anywhere, or with any byte changed, a text is refused or is another graph. */
GRAPH_TEST(test_every_byte) {
  add_all_kinds(fixture, fixture->graph);
  char *text;
  assert_ok(rondo_graph_to_json(fixture->graph, true, &text));
  const size_t length = strlen(text), live = fixture->allocator.live;
  char *cut = test_malloc(length);
  rondo_graph *graph;
  for (size_t i = 0; i + 1 < length; i++) { /* the last byte is the line's end */
    memcpy(cut, text, i);
    assert_error(rondo_graph_read_json(&fixture->allocator.table, cut, i, &graph), RONDO_INVALID_DATA,
                 RONDO_REASON_MALFORMED);
  }
  static const char others[] = {'\0', '"', '9', '-', '{', ']', ',', 'a', (char)0xff};
  for (size_t i = 0; i < length; i++) {
    const char kept = text[i];
    text[i] = others[i % sizeof others];
    if (rondo_graph_read_json(&fixture->allocator.table, text, length, &graph) == RONDO_OK)
      expect_round_trip(fixture, graph);
    else
      assert_null(graph);
    rondo_graph_free(graph);
    text[i] = kept;
  }
  assert_int_equal(fixture->allocator.live, live);
  test_free(cut);
  rondo_text_free(text);
}

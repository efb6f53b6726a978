/* SPDX-License-Identifier: MIT
 * Dumps (GX-7): the exact texts of a small graph, which are the same in each run, and names with special characters.
 */
#include <stdio.h>

#include "graph/graph.h"
#include "unit/graph/graph_tests.h"

GRAPH_TEST(test_gx7_dot) {
  add_all_kinds(fixture, fixture->graph);
  const char *text = dot(fixture, fixture->graph, false);
  assert_string_equal(text,
                      "digraph \"test\" {\n"
                      "  n0 [shape=box, label=\"0 kernel saxpy\\n4 x 1 x 1 blocks\"];\n"
                      "  n1 [shape=ellipse, label=\"1 host log\"];\n"
                      "  n2 [shape=parallelogram, label=\"2 copy\\n16 bytes x 4 rows x 1 slices\"];\n"
                      "  n3 [shape=trapezium, label=\"3 fill\\n8 x 2 bytes x 3 rows of 0x2345\"];\n"
                      "  n4 [shape=circle, label=\"4 empty join\"];\n"
                      "  subgraph cluster_n5 {\n"
                      "    n5 [shape=folder, label=\"5 child layer\"];\n"
                      "    label=\"inside\";\n"
                      "    n5_0 [shape=box, label=\"0 kernel saxpy\\n4 x 1 x 1 blocks\"];\n"
                      "  }\n"
                      "  n6 [shape=cds, label=\"6 event_record\"];\n"
                      "  n7 [shape=octagon, label=\"7 event_wait\"];\n"
                      "  n8 [shape=house, label=\"8 alloc scratch\\n512 bytes\"];\n"
                      "  n9 [shape=invhouse, label=\"9 free\"];\n"
                      "  n0 -> n1;\n  n1 -> n2;\n  n2 -> n3;\n  n3 -> n4;\n  n4 -> n5;\n"
                      "  n5 -> n6;\n  n6 -> n7;\n  n7 -> n8;\n  n8 -> n9;\n"
                      "}\n");
}

GRAPH_TEST(test_gx7_json) {
  add_all_kinds(fixture, fixture->graph);
  const char *text = json(fixture, fixture->graph, false);
  assert_string_equal(
      text,
      "{\"rondo_graph\":1,\"name\":\"test\",\"kernels\":[\n"
      "{\"name\":\"saxpy\",\"block_threads\":256,\"parameters\":["
      "{\"access\":\"scalar\",\"bytes\":4,\"alignment\":4},{\"access\":\"read\",\"bytes\":8,\"alignment\":8},"
      "{\"access\":\"read_write\",\"bytes\":8,\"alignment\":8}]}],\"nodes\":[\n"
      "{\"number\":0,\"kind\":\"kernel\",\"name\":\"saxpy\",\"kernel\":0,\"grid\":[4,1,1],"
      "\"arguments\":[\"00000040\",null,null],\"dependencies\":[]}\n"
      ",{\"number\":1,\"kind\":\"host\",\"name\":\"log\",\"dependencies\":[0]}\n"
      ",{\"number\":2,\"kind\":\"copy\",\"name\":\"\",\"width\":16,\"height\":4,\"depth\":1,\"dst_pitch\":32,"
      "\"src_pitch\":16,\"dst_slice_pitch\":128,\"src_slice_pitch\":64,\"dependencies\":[1]}\n"
      ",{\"number\":3,\"kind\":\"fill\",\"name\":\"\",\"value\":74565,\"element_bytes\":2,\"width\":8,\"height\":3,"
      "\"pitch\":16,\"dependencies\":[2]}\n"
      ",{\"number\":4,\"kind\":\"empty\",\"name\":\"join\",\"dependencies\":[3]}\n"
      ",{\"number\":5,\"kind\":\"child\",\"name\":\"layer\",\"child\":{\"name\":\"inside\",\"nodes\":[\n"
      "{\"number\":0,\"kind\":\"kernel\",\"name\":\"saxpy\",\"kernel\":0,\"grid\":[4,1,1],"
      "\"arguments\":[\"00000040\",null,null],\"dependencies\":[]}]},\"dependencies\":[4]}\n"
      ",{\"number\":6,\"kind\":\"event_record\",\"name\":\"\",\"dependencies\":[5]}\n"
      ",{\"number\":7,\"kind\":\"event_wait\",\"name\":\"\",\"dependencies\":[6]}\n"
      ",{\"number\":8,\"kind\":\"alloc\",\"name\":\"scratch\",\"bytes\":512,\"allocation\":\"scratch\","
      "\"dependencies\":[7]}\n"
      ",{\"number\":9,\"kind\":\"free\",\"name\":\"\",\"dependencies\":[8]}]}\n");
}

/* How addresses of the program appear in either text. */
static void expect_address(const char *text, const void *address) {
  char printed[32];
  snprintf(printed, sizeof printed, "0x%llx", (unsigned long long)(uintptr_t)address);
  if (strstr(text, printed) == NULL) fail_msg("%s is not in:\n%s", printed, text);
}

GRAPH_TEST(test_gx7_with_addresses) {
  add_all_kinds(fixture, fixture->graph);
  const char *const texts[] = {dot(fixture, fixture->graph, true), json(fixture, fixture->graph, true)};
  for (size_t i = 0; i < 2; i++) {
    expect_address(texts[i], fixture->x);
    expect_address(texts[i], fixture->y);
    expect_address(texts[i], fixture);                /* the host function's user */
    expect_address(texts[i], fixture->memory + 2048); /* the copy's destination */
    expect_address(texts[i], TEST_EVENT);
    expect_address(texts[i], fixture->memory + 3072); /* alloc and free */
  }
}

/* The same work with other kernels, buffers and graphs gives the same text. */
GRAPH_TEST(test_gx7_stable) {
  add_all_kinds(fixture, fixture->graph);
  rondo_graph *again = make_graph(fixture, "test");
  rondo_kernel *kernel = fixture->kernel;
  fixture->kernel = make_kernel(fixture, TEST_DEVICE, "saxpy");
  fixture->x += 17;
  add_all_kinds(fixture, again);
  rondo_graph *const graphs[] = {fixture->graph, again, clone_of(fixture, fixture->graph)};
  for (size_t i = 0; i < 3; i++) {
    assert_string_equal(dot(fixture, fixture->graph, false), dot(fixture, graphs[i], false));
    assert_string_equal(json(fixture, fixture->graph, false), json(fixture, graphs[i], false));
  }
  rondo_kernel_release(fixture->kernel);
  fixture->kernel = kernel;
}

GRAPH_TEST(test_kernels_are_listed_once) {
  static const char *const names[] = {"c", "a", "b", "d"};
  rondo_kernel *kernels[4];
  rondo_node_params params = kernel_params(fixture);
  for (size_t i = 0; i < 4; i++) kernels[i] = make_kernel(fixture, TEST_DEVICE, names[i]);
  for (size_t i = 0; i < 12; i++) {
    params.as.kernel.kernel = kernels[(i * 3) % 4]; /* 0, 3, 2, 1 */
    add_node(fixture->graph, &params, NULL, 0);
  }
  const char *text = json(fixture, fixture->graph, false);
  const char *at = text;
  for (size_t i = 0; i < 4; i++) {
    at = strstr(at, "{\"name\":\"");
    assert_non_null(at);
    assert_int_equal(at[9], names[(i * 3) % 4][0]);
    at++;
  }
  assert_null(strstr(at, "{\"name\":\""));
  assert_non_null(strstr(text, "\"number\":11,\"kind\":\"kernel\",\"name\":\"a\",\"kernel\":3"));
  for (size_t i = 0; i < 4; i++) rondo_kernel_release(kernels[i]);
}

/* A graph that cannot be instantiated can still be dumped. */
GRAPH_TEST(test_gx7_of_a_cycle) {
  const rondo_node a = add_empty(fixture->graph, NULL, 0), b = add_empty(fixture->graph, &a, 1);
  add_edge(fixture->graph, b, a);
  const char *text = dot(fixture, fixture->graph, false);
  assert_non_null(strstr(text, "n0 -> n1;\n  n1 -> n0;"));
  text = json(fixture, fixture->graph, false);
  assert_non_null(strstr(text, "\"dependencies\":[1]"));
}

/* In the DOT text quotes come in pairs on every line, and nothing but the quoted part holds the name. */
static void expect_quotes_in_pairs(const char *text) {
  bool quoted = false;
  for (; *text != '\0'; text++) {
    if (quoted && *text == '\\') {
      assert_int_not_equal(*++text, '\0');
      continue;
    }
    if (*text == '"') quoted = !quoted;
    assert_true((unsigned char)*text >= 0x20 || (*text == '\n' && !quoted));
  }
  assert_false(quoted);
}

GRAPH_TEST(test_hostile_names) {
  char all[256], much[2000];
  for (int i = 0; i < 255; i++) all[i] = (char)(i + 1);
  all[255] = '\0';
  memset(much, '"', sizeof much - 1);
  much[sizeof much - 1] = '\0';
  const char *const names[] = {"\"];}\n evil [label=\"", "\\", "\\\"", "a\\N\\G", "\xff\xfe\xc3", "</svg>", all, much};
  const size_t count = sizeof names / sizeof *names;
  for (size_t i = 0; i < count; i++) {
    rondo_graph *child = make_graph(fixture, names[i]);
    rondo_node_params params = {.kind = RONDO_NODE_CHILD, .name = names[i], .as.child = child};
    add_node(fixture->graph, &params, NULL, 0);
    rondo_kernel *kernel = make_kernel(fixture, TEST_DEVICE, names[i]);
    params = kernel_params(fixture);
    params.as.kernel.kernel = kernel;
    params.name = names[(i + 1) % count];
    add_node(fixture->graph, &params, NULL, 0);
    rondo_kernel_release(kernel);
    params = alloc_params(fixture->memory, 8, names[i]);
    params.name = names[(i + 2) % count];
    add_node(fixture->graph, &params, NULL, 0);
  }
  const char *text = dot(fixture, fixture->graph, true);
  expect_quotes_in_pairs(text);
  assert_null(strstr(text, "\n evil"));
  assert_null(strstr(text, "\xff"));
  assert_non_null(strstr(text, "\xef\xbf\xbd"));
  text = json(fixture, fixture->graph, true);
  expect_quotes_in_pairs(text);
  assert_null(strstr(text, "\xff"));
}

GRAPH_TEST(test_bad_dumps) {
  char *text = fixture->memory;
  assert_invalid(rondo_graph_to_dot(NULL, false, &text), RONDO_REASON_NULL_ARGUMENT);
  assert_null(text);
  text = fixture->memory;
  assert_invalid(rondo_graph_to_json(NULL, false, &text), RONDO_REASON_NULL_ARGUMENT);
  assert_null(text);
  assert_invalid(rondo_graph_to_dot(fixture->graph, false, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_to_json(fixture->graph, false, NULL), RONDO_REASON_NULL_ARGUMENT);
  rondo_text_free(NULL);
}

/* A text outlives its graph and goes back to the graph's allocator. */
GRAPH_TEST(test_texts_carry_their_allocator) {
  rondo_graph *graph = make_graph(fixture, "gone");
  const size_t live = fixture->allocator.live;
  char *text;
  assert_ok(rondo_graph_to_dot(graph, false, &text));
  assert_int_equal(fixture->allocator.live, live + 1);
  free_now(fixture, graph);
  assert_string_equal(text, "digraph \"gone\" {\n}\n");
  const size_t left = fixture->allocator.live;
  rondo_text_free(text);
  assert_int_equal(fixture->allocator.live, left - 1);
}

/* SPDX-License-Identifier: MIT
 * GX-7: DOT and JSON dumps are complete, stable, and JSON reads back to the same graph.
 */
#include "support/rondo_test.h"

#include <string.h>

/* A graph with every kind of node. */
static rondo_graph *graph_of_all_kinds(test_fixture *t, uint32_t *words, rondo_event *event) {
  rondo_graph *graph = NULL, *inner = test_graph(t);
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .name = "step"};
  rondo_node node = {0};
  void *scratch = NULL;
  assert_ok(rondo_graph_create(t->device, &options, &graph));
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 4096, "scratch", &scratch, &node));
  const rondo_fill fill = {.dst = scratch, .value = 1, .element_bytes = 2, .width = 8, .height = 3, .pitch = 32};
  assert_ok(rondo_graph_add_fill(graph, &node, 1, &fill, &node));
  const rondo_copy copy = {.dst = words, .src = scratch, .width = 16, .height = 2, .src_pitch = 32};
  assert_ok(rondo_graph_add_copy(graph, &node, 1, &copy, &node));
  const rondo_node copied = test_add_affine(t, graph, &node, 1, words, 3, 4);
  assert_ok(rondo_graph_add_free(graph, &copied, 1, scratch, &node));
  rondo_node_params host = {
      .kind = RONDO_NODE_HOST, .name = "say \"done\"", .as.host = {.function = test_host_nothing}};
  assert_ok(rondo_graph_add(graph, &copied, 1, &host, &node));
  assert_ok(rondo_graph_add_event_record(graph, &node, 1, event, &node));
  assert_ok(rondo_graph_add_event_wait(graph, &node, 1, event, &node));
  assert_ok(rondo_graph_add_empty(graph, &node, 1, &node));
  test_add_affine(t, inner, NULL, 0, words, 1, 1);
  assert_ok(rondo_graph_add_child(graph, &node, 1, inner, &node));
  test_graph_destroy(inner);
  return graph;
}

static char *dump(const rondo_graph *graph, bool json, bool with_addresses) {
  char *text = NULL;
  assert_ok((json ? rondo_graph_to_json : rondo_graph_to_dot)(graph, with_addresses, &text));
  assert_non_null(text);
  return text;
}

TEST(test_gx7_dumps_name_every_node) {
  uint32_t *words = test_words(t, 64);
  rondo_event *event = test_event(t);
  rondo_graph *graph = graph_of_all_kinds(t, words, event);
  for (int json = 0; json < 2; json++) {
    char *text = dump(graph, json == 1, true);
    static const char *const said[] = {"step", "scratch", "test_affine", "4096"};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) assert_non_null(strstr(text, said[i]));
    rondo_text_free(text);
  }
  char *text = dump(graph, true, false);
  for (int kind = RONDO_NODE_KERNEL; kind <= RONDO_NODE_FREE; kind++) {
    assert_non_null(strstr(text, rondo_node_kind_name((rondo_node_kind)kind)));
  }
  assert_non_null(strstr(text, "say \\\"done\\\""));
  rondo_text_free(text);
  text = dump(graph, false, false);
  assert_memory_equal(text, "digraph", 7);
  assert_non_null(strstr(text, "->"));
  rondo_text_free(text);
  test_graph_destroy(graph);
}

/* JSON is read back to a graph of data that dumps to the same text and has the same fingerprint. */
TEST(test_gx7_json_reads_back) {
  uint32_t *words = test_words(t, 64);
  rondo_event *event = test_event(t);
  rondo_graph *graph = graph_of_all_kinds(t, words, event), *copy = NULL;
  char *text = dump(graph, true, false);
  assert_ok(rondo_graph_from_json(text, strlen(text), &copy));
  char *again = dump(copy, true, false);
  uint64_t a = 0, b = 0;
  assert_string_equal(text, again);
  assert_ok(rondo_graph_fingerprint(graph, &a));
  assert_ok(rondo_graph_fingerprint(copy, &b));
  assert_true(a == b);
  rondo_text_free(again);
  test_graph_destroy(copy);
  rondo_text_free(text);
  test_graph_destroy(graph);
}

TEST(test_gx7_bad_json_is_refused) {
  static const char *const texts[] = {"", "{", "[]", "null", "{\"nodes\": 3}", "{\"version\": 1}", "{} {}"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    rondo_graph *graph = (rondo_graph *)&graph;
    assert_fails(rondo_graph_from_json(texts[i], strlen(texts[i]), &graph), RONDO_INVALID_DATA);
    assert_null(graph);
  }
}

TEST(test_gx7_a_dump_of_nothing) {
  rondo_graph *graph = test_graph(t);
  for (int json = 0; json < 2; json++) {
    char *text = dump(graph, json == 1, false);
    assert_true(strlen(text) > 0);
    rondo_text_free(text);
  }
  test_graph_destroy(graph);
  char *text = (char *)&text;
  assert_fails(rondo_graph_to_json(NULL, true, &text), RONDO_INVALID_ARGUMENT);
  assert_null(text);
}

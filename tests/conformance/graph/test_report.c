/* SPDX-License-Identifier: MIT
 * GX-7: the page of a graph: well-formed, self-contained, with every node, allocation, time and error, whatever the
 * names, and bounded in bytes whatever the size.
 */
#include <rondo/report.h>
#include <rondo/verify.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_markup.h"

enum { PAGE_BYTES = 4096 };

static char *page_of(const rondo_graph *graph, const rondo_report_options *options) {
  char *text = NULL;
  assert_ok(rondo_graph_report(graph, options, &text));
  assert_non_null(text);
  assert_well_formed(text);
  assert_self_contained(text);
  return text;
}

#define assert_says(text, part) assert_contains((text), (part), true, __LINE__)
#define assert_is_silent(text, part) assert_contains((text), (part), false, __LINE__)
static void assert_contains(const char *text, const char *part, bool expected, int line) {
  if ((strstr(text, part) != NULL) == expected) return;
  print_error("line %d: the page %s '%s'\n", line, expected ? "lacks" : "has", part);
  fail();
}

/* Every kind of node, with memory that is freed and memory that is not. */
typedef struct all_kinds {
  rondo_graph *graph;
  rondo_event *event;
  uint32_t *words;
  void *kept;
  size_t nodes; /* with the child's */
} all_kinds;

static all_kinds make_all_kinds(test_fixture *t) {
  all_kinds a = {.event = test_event(t), .words = test_words(t, 64)};
  rondo_graph *inner = test_graph(t);
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .name = "step"};
  rondo_node node = {0};
  void *scratch = NULL;
  assert_ok(rondo_graph_create(t->device, &options, &a.graph));
  assert_ok(rondo_graph_add_alloc(a.graph, NULL, 0, PAGE_BYTES, "scratch", &scratch, &node));
  const rondo_fill fill = {.dst = scratch, .value = 1, .element_bytes = 2, .width = 8, .height = 3, .pitch = 32};
  assert_ok(rondo_graph_add_fill(a.graph, &node, 1, &fill, &node));
  const rondo_copy copy = {.dst = a.words, .src = scratch, .width = 16, .height = 2, .src_pitch = 32};
  assert_ok(rondo_graph_add_copy(a.graph, &node, 1, &copy, &node));
  const rondo_node copied = test_add_affine(t, a.graph, &node, 1, a.words, 3, 4);
  assert_ok(rondo_graph_add_free(a.graph, &copied, 1, scratch, &node));
  assert_ok(rondo_graph_add_alloc(a.graph, &copied, 1, 3 * PAGE_BYTES, "kept", &a.kept, &node));
  assert_ok(rondo_graph_add_host(a.graph, &node, 1, test_host_nothing, NULL, &node));
  assert_ok(rondo_graph_add_event_record(a.graph, &node, 1, a.event, &node));
  assert_ok(rondo_graph_add_event_wait(a.graph, &node, 1, a.event, &node));
  assert_ok(rondo_graph_add_empty(a.graph, &node, 1, &node));
  test_add_affine(t, inner, NULL, 0, a.words, 1, 1);
  assert_ok(rondo_graph_add_child(a.graph, &node, 1, inner, &node));
  test_graph_destroy(inner);
  a.nodes = 12;
  return a;
}

static void destroy_all_kinds(test_fixture *t, all_kinds *a) {
  test_graph_destroy(a->graph);
  rondo_event_destroy(a->event);
  test_words_free(t, a->words);
}

TEST(test_gx7_each_node_is_on_the_page) {
  all_kinds a = make_all_kinds(t);
  char *text = page_of(a.graph, NULL), id[40];
  for (size_t i = 0; i + 1 < a.nodes; i++) {
    snprintf(id, sizeof id, " id=\"n%zu\"", i);
    assert_int_equal(test_count(text, id), 1);
    snprintf(id, sizeof id, " id=\"row-n%zu\"", i);
    assert_int_equal(test_count(text, id), 1);
  }
  assert_says(text, " id=\"n10_0\"");
  assert_says(text, " id=\"row-n10_0\"");
  for (int kind = RONDO_NODE_KERNEL; kind <= RONDO_NODE_FREE; kind++)
    assert_says(text, rondo_node_kind_name((rondo_node_kind)kind));
  static const char *const said[] = {"<title>step</title>",  "<h1>step</h1>",
                                     "12 nodes, 10 edges",   "alloc scratch (node 0)",
                                     "4,096 bytes",          "16 bytes \xC3\x97 2 rows",
                                     "In node 10",           "(node 10.0)",
                                     "0 errors, 0 warnings", "prefers-color-scheme:dark"};
  for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) assert_says(text, said[i]);
  assert_int_equal(test_count(text, "class=\"edge"), 10);
  rondo_text_free(text);
  destroy_all_kinds(t, &a);
}

TEST(test_gx7_the_memory_map_has_each_allocation) {
  all_kinds a = make_all_kinds(t);
  char *text = page_of(a.graph, NULL);
  assert_says(text, "scratch: 4,096 bytes at offset ");
  assert_says(text, "allocated by node 0, freed by node 4");
  assert_says(text, "kept: 12,288 bytes at offset ");
  assert_says(text, "allocated by node 5, not freed in the graph");
  assert_says(text, "<dt>Allocations</dt><dd>2</dd>");
  assert_says(text, "16,384 bytes, without sharing");
  assert_says(text, "bytes, live at once");
  assert_says(text, "peak over lower bound");
  rondo_text_free(text);
  destroy_all_kinds(t, &a);
}

/* Two graphs of the same work give the same page, but for addresses. */
TEST(test_gx7_pages_are_stable) {
  all_kinds graphs[2] = {make_all_kinds(t), make_all_kinds(t)};
  const rondo_report_options bare = {RONDO_REPORT_OPTIONS_INIT, .no_addresses = true};
  char *first = page_of(graphs[0].graph, &bare), *second = page_of(graphs[1].graph, &bare);
  char *located = page_of(graphs[0].graph, NULL), *again = page_of(graphs[0].graph, NULL);
  assert_string_equal(first, second);
  assert_string_equal(located, again);
  assert_string_not_equal(first, located);
  char address[40];
  snprintf(address, sizeof address, "%p", graphs[0].kept);
  assert_says(located, address);
  assert_is_silent(first, address);
  rondo_text_free(first);
  rondo_text_free(second);
  rondo_text_free(located);
  rondo_text_free(again);
  for (int i = 0; i < 2; i++) destroy_all_kinds(t, &graphs[i]);
}

TEST(test_gx7_names_are_escaped) {
  static const char hostile[] = "</title><script>alert('&')</script>\"\x01\xFF\xE2\x82";
  static const char shown[] =
      "&lt;/title&gt;&lt;script&gt;alert('&amp;')&lt;/script&gt;&quot;\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD";
  char longest[2000];
  rondo_graph *graph = NULL, *inner = NULL;
  rondo_node node = {0};
  void *address = NULL;
  memset(longest, 'x', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  assert_ok(rondo_graph_create(t->device, &(rondo_graph_options){RONDO_GRAPH_OPTIONS_INIT, .name = hostile}, &graph));
  assert_ok(rondo_graph_create(t->device, &(rondo_graph_options){RONDO_GRAPH_OPTIONS_INIT, .name = hostile}, &inner));
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 64, hostile, &address, &node));
  rondo_node_params params = {.kind = RONDO_NODE_EMPTY, .name = hostile};
  assert_ok(rondo_graph_add(graph, &node, 1, &params, &node));
  params.name = longest;
  assert_ok(rondo_graph_add(graph, &node, 1, &params, &node));
  assert_ok(rondo_graph_add(inner, NULL, 0, &params, &node));
  params = (rondo_node_params){.kind = RONDO_NODE_CHILD, .name = hostile, .as.child = inner};
  assert_ok(rondo_graph_add(graph, NULL, 0, &params, &node));
  char *text = page_of(graph, NULL);
  assert_true(test_count(text, shown) >= 8);
  assert_int_equal(test_count(text, "<script>"), 1); /* the page's own */
  assert_is_silent(text, "alert('&')");
  longest[121] = '\0';
  assert_is_silent(text, longest); /* cut at 120 bytes */
  rondo_text_free(text);
  text = page_of(graph, &(rondo_report_options){RONDO_REPORT_OPTIONS_INIT, .title = "<b>"});
  assert_says(text, "<title>&lt;b&gt;</title>");
  rondo_text_free(text);
  test_graph_destroy(inner);
  test_graph_destroy(graph);
}

/* Times ------------------------------------------------------------------------------------------------------------ */

static rondo_status sleep_a_little(void *user) {
  (void)user;
  test_sleep_ms(2);
  return RONDO_OK;
}

/* first -> sleeper -> child of one node, and a node next to them. */
TEST(test_gx7_measured_times_are_shown) {
  uint32_t *words = test_words(t, 2);
  rondo_graph *graph = test_graph(t), *inner = test_graph(t);
  rondo_node node = test_add_affine(t, graph, NULL, 0, words, 1, 1), sleeper = {0};
  test_add_affine(t, inner, NULL, 0, words, 1, 1);
  assert_ok(rondo_graph_add_host(graph, &node, 1, sleep_a_little, NULL, &sleeper));
  assert_ok(rondo_graph_add_child(graph, &sleeper, 1, inner, &node));
  test_add_affine(t, graph, NULL, 0, words + 1, 1, 1);
  rondo_exec *exec = test_instantiate(graph);
  rondo_node_time times[4];
  size_t count = 4;
  assert_ok(rondo_exec_measure(exec, t->stream, 3, times, &count));
  assert_int_equal(count, 4);
  rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .times = times, .time_count = count};
  char *text = page_of(graph, &options);
  assert_int_equal(test_count(text, "class=\"time\""), 4);
  assert_says(text, "<dt>All nodes</dt>");
  assert_says(text, "<dt>Parallelism</dt>");
  assert_says(text, "<small>of 3 nodes</small>"); /* the critical path is by time, through the child */
  assert_says(text, "class=\"node host critical\" id=\"n1\"");
  assert_says(text, "class=\"node child critical\" id=\"n2\"");
  assert_says(text, "class=\"node kernel critical\" id=\"n2_0\"");
  assert_says(text, "class=\"node kernel\" id=\"n3\"");
  rondo_text_free(text);
  text = page_of(graph, NULL);
  assert_int_equal(test_count(text, "class=\"time\""), 0);
  assert_says(text, "no times were measured");
  rondo_text_free(text);
  times[0].node = (rondo_node){0};
  assert_invalid(rondo_graph_report(graph, &options, &text), RONDO_REASON_UNKNOWN_NODE);
  assert_null(text);
}

/* Mistakes --------------------------------------------------------------------------------------------------------- */

TEST(test_gx7_mistakes_are_shown) {
  rondo_graph *graph = test_graph(t);
  rondo_node alloc = {0}, used = {0}, freed = {0};
  void *address = NULL;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 64, "early", &address, &alloc));
  used = test_add_affine(t, graph, &alloc, 1, address, 1, 1);
  assert_ok(rondo_graph_add_free(graph, &alloc, 1, address, &freed));
  char *text = page_of(graph, NULL);
  assert_says(text, "1 error, 0 warnings.");
  assert_says(text, "USE_AFTER_FREE");
  assert_says(text, " faulty\" id=\"n1\"");
  assert_int_equal(test_count(text, " faulty\" id="), 1);
  rondo_text_free(text);
  text = page_of(graph, &(rondo_report_options){RONDO_REPORT_OPTIONS_INIT, .skip_verify = true});
  assert_is_silent(text, "id=\"findings\"");
  rondo_text_free(text);
  assert_ok(rondo_graph_add_edges(graph, &used, &freed, 1));
  text = page_of(graph, NULL);
  assert_says(text, "0 errors, 0 warnings.");
  assert_is_silent(text, "faulty\" id=");
  rondo_text_free(text);
}

/* Messages name objects without a name by their address, except on a page that omits addresses. */
TEST(test_gx7_mistakes_without_addresses) {
  rondo_graph *graph = test_graph(t);
  rondo_node alloc = {0}, freed = {0};
  void *address = NULL;
  char digits[40];
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 64, NULL, &address, &alloc));
  (void)test_add_affine(t, graph, &alloc, 1, address, 1, 1);
  assert_ok(rondo_graph_add_free(graph, &alloc, 1, address, &freed));
  snprintf(digits, sizeof digits, "%p", address);
  char *text = page_of(graph, &(rondo_report_options){RONDO_REPORT_OPTIONS_INIT, .no_addresses = true});
  assert_says(text, "the allocation at 0x? (64 B, node 0) but is not ordered before its free (node 2)");
  assert_is_silent(text, digits);
  rondo_text_free(text);
  text = page_of(graph, NULL);
  assert_says(text, digits);
  rondo_text_free(text);
}

/* Ranges ----------------------------------------------------------------------------------------------------------- */

TEST(test_gx7_ranges_are_drawn) {
  static char arena[256];
  rondo_graph *graph = test_graph(t);
  rondo_node nodes[3], other = {0};
  for (size_t i = 0; i < 3; i++)
    assert_ok(rondo_graph_add_empty(graph, i > 0 ? &nodes[i - 1] : NULL, i > 0, &nodes[i]));
  rondo_report_range ranges[] = {
      {.name = "input", .address = arena, .bytes = 128, .first = nodes[0], .last = nodes[1]},
      {.address = arena, .bytes = 100, .first = nodes[2], .last = nodes[2]},
      {.name = "output", .address = arena + 128, .bytes = 64, .first = nodes[1], .last = nodes[2]},
  };
  rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .ranges = ranges, .range_count = 3};
  char *text = page_of(graph, &options);
  assert_says(text, "input: 128 bytes at offset 0");
  assert_says(text, ", from node 0 through node 1");
  assert_says(text, "(no name): 100 bytes at offset 0");
  assert_says(text, "output: 64 bytes at offset 128");
  assert_says(text, "192 bytes, of addresses taken");
  assert_says(text, "192 bytes, live at once");
  rondo_text_free(text);
  ranges[0].last = ranges[0].first;
  ranges[0].first = nodes[1];
  assert_invalid(rondo_graph_report(graph, &options, &text), RONDO_REASON_OUT_OF_RANGE);
  assert_message("'input'");
  rondo_graph *foreign = test_graph(t);
  assert_ok(rondo_graph_add_empty(foreign, NULL, 0, &other));
  ranges[0].first = ranges[0].last = other;
  assert_invalid(rondo_graph_report(graph, &options, &text), RONDO_REASON_UNKNOWN_NODE);
}

/* Memory far from the rest does not stretch the map. */
TEST(test_gx7_far_memory_is_put_together) {
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &node));
  const rondo_report_range ranges[] = {
      {.name = "low", .address = (void *)0x10000, .bytes = 100, .first = node, .last = node},
      {.name = "high", .address = (void *)(UINTPTR_MAX - 0xFFF), .bytes = 50, .first = node, .last = node},
  };
  char *text = page_of(graph, &(rondo_report_options){RONDO_REPORT_OPTIONS_INIT, .ranges = ranges, .range_count = 2});
  assert_says(text, "high: 50 bytes at offset 100");
  assert_says(text, "150 bytes, of addresses taken");
  rondo_text_free(text);
}

/* Shapes ----------------------------------------------------------------------------------------------------------- */

TEST(test_gx7_an_empty_graph_has_a_page) {
  rondo_graph *graph = test_graph(t);
  char *text = page_of(graph, NULL);
  assert_says(text, "The graph has no nodes.");
  assert_says(text, "No node allocates memory.");
  rondo_text_free(text);
}

TEST(test_gx7_nested_graphs_are_drawn) {
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &node));
  for (int depth = 0; depth < 8; depth++) assert_ok(rondo_graph_add_child(graph, &node, 1, graph, &node));
  char *text = page_of(graph, NULL);
  assert_says(text, "(node 8.7.6.5.4.3.2.1.0)");
  assert_says(text, "id=\"n8_7_6_5_4_3_2_1_0\"");
  rondo_text_free(text);
}

TEST(test_gx7_a_graph_of_data_has_a_page) {
  all_kinds a = make_all_kinds(t);
  rondo_graph *read = NULL;
  for (int with_addresses = 0; with_addresses < 2; with_addresses++) {
    char *json = NULL;
    assert_ok(rondo_graph_to_json(a.graph, with_addresses == 1, &json));
    const rondo_status status = rondo_graph_from_json(json, strlen(json), &read);
    rondo_text_free(json);
    if (status == RONDO_UNSUPPORTED) break;
    assert_ok(status);
    char *text = page_of(read, &(rondo_report_options){RONDO_REPORT_OPTIONS_INIT, .skip_verify = true});
    assert_says(text, " id=\"row-n10_0\"");
    assert_says(text, with_addresses ? "kept: 12,288 bytes at offset" : "2 allocations have no address here");
    rondo_text_free(text);
    test_graph_destroy(read);
  }
  destroy_all_kinds(t, &a);
}

/* Layers of `width` empty nodes, each depending on three of the layer before. */
static rondo_graph *make_large(size_t layers, size_t width) {
  rondo_graph *graph = NULL;
  rondo_node *before = calloc(width, sizeof *before), *now = calloc(width, sizeof *now);
  assert_true(before != NULL && now != NULL);
  assert_ok(rondo_graph_create(NULL, NULL, &graph));
  for (size_t layer = 0; layer < layers; layer++) {
    for (size_t i = 0; i < width; i++) {
      const rondo_node dependencies[] = {before[i], before[(i + 1) % width], before[(i + width / 2) % width]};
      assert_ok(rondo_graph_add_empty(graph, dependencies, layer == 0 ? 0 : 3, &now[i]));
    }
    memcpy(before, now, width * sizeof *now);
  }
  free(before);
  free(now);
  return graph;
}

DEVICE_TEST(test_gx7_large_pages_are_bounded) {
  rondo_graph *graph = make_large(300, 100);
  char *text = page_of(graph, NULL);
  assert_int_equal(test_count(text, "class=\"node "), 20000);
  assert_int_equal(test_count(text, "<tr id=\"row-"), 2000);
  assert_says(text, "10000 more nodes are not drawn.");
  assert_says(text, "28000 more nodes are not listed.");
  assert_true(strlen(text) < (size_t)8 << 20);
  rondo_text_free(text);
  test_graph_destroy(graph);
  graph = make_large(50, 40); /* all of it drawn and listed */
  text = page_of(graph, NULL);
  assert_int_equal(test_count(text, "class=\"node "), 2000);
  assert_is_silent(text, "are not drawn");
  assert_is_silent(text, "are not listed");
  assert_says(text, "data-d=\"1920 1921 1940\"");
  rondo_text_free(text);
  test_graph_destroy(graph);
}

/* All of one layer, more than fit on a line of the drawing. */
DEVICE_TEST(test_gx7_wide_graphs_are_drawn) {
  rondo_graph *graph = make_large(2, 6000);
  char *text = page_of(graph, NULL);
  assert_int_equal(test_count(text, "class=\"node "), 12000);
  assert_says(text, "width=\"1112\"");
  rondo_text_free(text);
  test_graph_destroy(graph);
}

/* The host's sections ---------------------------------------------------------------------------------------------- */

TEST(test_sections_of_the_host_come_first) {
  rondo_graph *graph = make_large(2, 6);
  const rondo_report_section sections[] = {{"Losses & <times>", "<p class=\"note\">as it is</p>"}, {"Second", ""}};
  const rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .sections = sections, .section_count = 2};
  char *text = page_of(graph, &options);
  assert_says(text, "<li><a href=\"#host-0\">Losses &amp; &lt;times&gt;</a></li><li><a href=\"#host-1\">Second</a>");
  assert_says(text, "<section id=\"host-0\"><h2>Losses &amp; &lt;times&gt;</h2>\n<p class=\"note\">as it is</p>");
  assert_true(strstr(text, "<section id=\"host-1\">") < strstr(text, "<section id=\"figures\">"));
  rondo_text_free(text);
  test_graph_destroy(graph);
}

/* Bad input -------------------------------------------------------------------------------------------------------- */

TEST(test_gx7_bad_reports_are_refused) {
  rondo_graph *graph = test_graph(t);
  rondo_node nodes[2];
  char *text = NULL;
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &nodes[0]));
  assert_ok(rondo_graph_add_empty(graph, &nodes[0], 1, &nodes[1]));
  assert_invalid(rondo_graph_report(NULL, NULL, &text), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_report(graph, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .time_count = 1};
  assert_invalid(rondo_graph_report(graph, &options, &text), RONDO_REASON_NULL_ARGUMENT);
  options = (rondo_report_options){RONDO_REPORT_OPTIONS_INIT, .range_count = 1};
  assert_invalid(rondo_graph_report(graph, &options, &text), RONDO_REASON_NULL_ARGUMENT);
  options = (rondo_report_options){RONDO_REPORT_OPTIONS_INIT, .section_count = 1};
  assert_invalid(rondo_graph_report(graph, &options, &text), RONDO_REASON_NULL_ARGUMENT);
  options.sections = &(rondo_report_section){.title = "no markup"};
  assert_invalid(rondo_graph_report(graph, &options, &text), RONDO_REASON_NULL_ARGUMENT);
  options.sections = &(rondo_report_section){.markup = "no title"};
  assert_invalid(rondo_graph_report(graph, &options, &text), RONDO_REASON_NULL_ARGUMENT);
  struct {
    rondo_report_options known;
    uint64_t tail;
  } later = {.known = {.struct_size = sizeof later}, .tail = 1};
  assert_invalid(rondo_graph_report(graph, &later.known, &text), RONDO_REASON_BAD_OPTIONS);
  assert_null(text);
  later.tail = 0;
  text = page_of(graph, &later.known);
  rondo_text_free(text);
  text = NULL;
  assert_ok(rondo_graph_add_edges(graph, &nodes[1], &nodes[0], 1));
  assert_error(rondo_graph_report(graph, NULL, &text), RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE);
  assert_null(text);
}

DEVICE_TEST(test_gx7_reports_survive_a_lack_of_memory) {
  static char arena[8];
  test_allocator allocator;
  rondo_graph *graph = NULL;
  rondo_node node = {0};
  test_allocator_init(&allocator);
  assert_ok(rondo_graph_create(
      NULL, &(rondo_graph_options){RONDO_GRAPH_OPTIONS_INIT, .allocator = &allocator.table, .name = "g"}, &graph));
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &node));
  assert_ok(rondo_graph_add_child(graph, &node, 1, graph, &node));
  const rondo_report_range range = {.name = "r", .address = arena, .bytes = 8, .first = node, .last = node};
  const rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .ranges = &range, .range_count = 1};
  const size_t live = allocator.live;
  for (size_t at = 1;; at++) {
    char *text = NULL;
    allocator.fail_at = allocator.calls + at;
    const rondo_status status = rondo_graph_report(graph, &options, &text);
    const bool reached = allocator.calls >= allocator.fail_at;
    assert_int_equal(status, reached ? RONDO_OUT_OF_MEMORY : RONDO_OK);
    assert_true((text == NULL) == reached);
    rondo_text_free(text);
    assert_int_equal(allocator.live, live);
    if (!reached) break;
  }
  allocator.fail_at = 0;
  test_graph_destroy(graph);
  assert_true(test_allocator_is_clean(&allocator));
}

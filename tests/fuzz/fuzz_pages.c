/* SPDX-License-Identifier: MIT
 * Pages and pictures with arbitrary names. The input is names, each up to a NUL, for the graph, its nodes, kernels,
 * allocations, children and ranges, the buffers of a plan, and the titles. Pages and pictures are well-formed and self-
 * contained, and names add no markup: the number of tags and quotes is the same as with names of as many letters. A DOT
 * dump has the same number of quotes; a JSON dump reads back, and has a page.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

#include "fuzz/fuzz_target.h"
#include "support/test_markup.h"

enum { NAMES = 10, NAME_BYTES = 400, ITEMS = 4 };

/* What each name is used for. */
enum { GRAPH, ALLOCATION, KERNEL, NODE, CHILD, RANGE, TITLE, INNER, LEAKED, PICTURE };

typedef struct names {
  char text[NAMES][NAME_BYTES];
} names;

static void take_names(const uint8_t *data, size_t size, names *out) {
  memset(out, 0, sizeof *out);
  for (size_t i = 0, at = 0; i < NAMES && size > 0; i++) {
    const uint8_t *nul = memchr(data + at, 0, size - at);
    const size_t length = nul ? (size_t)(nul - data) - at : size - at;
    memcpy(out->text[i], data + at, length < NAME_BYTES ? length : NAME_BYTES - 1);
    at += length + (nul != NULL);
  }
}

/* The same number of bytes, all letters. */
static void make_harmless(const names *from, names *out) {
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < NAMES; i++) memset(out->text[i], 'n', strlen(from->text[i]));
}

static rondo_device *the_device(void) {
  static rondo_device *device; /* as long as the process */
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1};
  if (device == NULL) REQUIRE(rondo_device_open("cpu", &options, &device) == RONDO_OK);
  return device;
}

static void run_nothing(rondo_blocks blocks, void *const *arguments) {
  (void)blocks;
  (void)arguments;
}

static void add_kernel(rondo_graph *graph, const rondo_node *after, const char *name, const char *node_name,
                       rondo_node *out) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = name[0] ? name : "k", .cpu = run_nothing};
  rondo_kernel *kernel = NULL;
  REQUIRE(rondo_kernel_create(the_device(), &options, &kernel) == RONDO_OK);
  rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL, .name = node_name, .as.kernel = {.kernel = kernel, .grid = {1, 1, 1}}};
  REQUIRE(rondo_graph_add(graph, after, after != NULL, &params, out) == RONDO_OK);
  rondo_kernel_destroy(kernel);
}

static rondo_graph *make_inner(const names *n) {
  rondo_graph *graph = NULL;
  rondo_node node;
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .name = n->text[INNER]};
  REQUIRE(rondo_graph_create(the_device(), &options, &graph) == RONDO_OK);
  add_kernel(graph, NULL, n->text[KERNEL], n->text[INNER], &node);
  return graph;
}

/* An allocation that is used, one that is freed too early, a child, and nodes with times. */
static rondo_graph *make_graph(const names *n, rondo_node nodes[ITEMS]) {
  rondo_graph *graph = NULL, *inner = make_inner(n);
  void *address = NULL, *leaked = NULL;
  rondo_node node;
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .name = n->text[GRAPH]};
  REQUIRE(rondo_graph_create(the_device(), &options, &graph) == RONDO_OK);
  REQUIRE(rondo_graph_add_alloc(graph, NULL, 0, 256, n->text[ALLOCATION], &address, &nodes[0]) == RONDO_OK);
  const rondo_fill fill = {.dst = address, .value = 1, .element_bytes = 1, .width = 16, .height = 1};
  REQUIRE(rondo_graph_add_fill(graph, &nodes[0], 1, &fill, &nodes[1]) == RONDO_OK);
  REQUIRE(rondo_graph_add_free(graph, &nodes[0], 1, address, &node) == RONDO_OK);
  REQUIRE(rondo_graph_add_alloc(graph, &nodes[1], 1, 128, n->text[LEAKED], &leaked, &node) == RONDO_OK);
  add_kernel(graph, &nodes[1], n->text[KERNEL], n->text[NODE], &nodes[2]);
  rondo_node_params child = {.kind = RONDO_NODE_CHILD, .name = n->text[CHILD], .as.child = inner};
  REQUIRE(rondo_graph_add(graph, &nodes[2], 1, &child, &nodes[3]) == RONDO_OK);
  REQUIRE(rondo_graph_destroy(inner) == RONDO_OK);
  return graph;
}

static char *make_page(const rondo_graph *graph, const names *n, const rondo_node nodes[ITEMS]) {
  const rondo_node_time times[] = {{.node = nodes[1], .microseconds = 2}, {.node = nodes[2], .microseconds = 3}};
  const rondo_report_range range = {n->text[RANGE], &the_device, 512, nodes[0], nodes[3]};
  const rondo_report_section section = {.title = n->text[TITLE], .markup = "<p>text</p>"};
  const rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT,
                                        .no_addresses = true,
                                        .title = n->text[TITLE][0] ? n->text[TITLE] : NULL,
                                        .times = nodes ? times : NULL,
                                        .time_count = nodes ? 2 : 0,
                                        .ranges = &range,
                                        .range_count = 1,
                                        .sections = &section,
                                        .section_count = 1};
  char *text = NULL;
  REQUIRE(rondo_graph_report(graph, &options, &text) == RONDO_OK);
  assert_well_formed(text);
  return text;
}

static char *make_picture(const names *n) {
  const rondo_plan_item items[ITEMS] = {
      {.bytes = 64, .upper = 2}, {.bytes = 32, .lower = 1, .upper = 3}, {.bytes = 8, .upper = 1}, {.upper = 3}};
  const char *const labels[ITEMS] = {n->text[GRAPH], n->text[NODE], NULL, n->text[PICTURE]};
  const size_t offsets[ITEMS] = {0, 64, 64, 0};
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = ITEMS};
  const rondo_plan_picture_options options = {RONDO_PLAN_PICTURE_OPTIONS_INIT, .title = n->text[PICTURE],
                                              .names = labels};
  char *text = NULL;
  REQUIRE(rondo_plan_to_svg(&problem, offsets, &options, &text) == RONDO_OK);
  assert_well_formed(text);
  return text;
}

/* Quotes that are not escaped by a backslash. */
static size_t count_quotes(const char *text) {
  size_t count = 0;
  for (; *text; text++) {
    if (*text == '\\' && text[1])
      text++;
    else
      count += *text == '"';
  }
  return count;
}

static void require_same_markup(const char *a, const char *b) {
  REQUIRE(test_count(a, "<") == test_count(b, "<"));
  REQUIRE(test_count(a, ">") == test_count(b, ">"));
  REQUIRE(test_count(a, "\"") == test_count(b, "\""));
}

/* The outputs for the names; freed with rondo_text_free. */
typedef struct outcome {
  char *page, *picture, *dot, *json;
} outcome;

static outcome make_outcome(const names *n) {
  rondo_node nodes[ITEMS];
  rondo_graph *graph = make_graph(n, nodes);
  outcome out = {.page = make_page(graph, n, nodes), .picture = make_picture(n)};
  REQUIRE(rondo_graph_to_dot(graph, false, &out.dot) == RONDO_OK);
  REQUIRE(rondo_graph_to_json(graph, false, &out.json) == RONDO_OK);
  REQUIRE(rondo_graph_destroy(graph) == RONDO_OK);
  return out;
}

static void free_outcome(outcome *out) {
  rondo_text_free(out->page);
  rondo_text_free(out->picture);
  rondo_text_free(out->dot);
  rondo_text_free(out->json);
}

/* Like `rondo report`. */
static void require_page_of_dump(const char *json) {
  rondo_graph *graph = NULL;
  char *text = NULL;
  REQUIRE(rondo_graph_from_json(json, strlen(json), &graph) == RONDO_OK);
  REQUIRE(rondo_graph_report(graph, NULL, &text) == RONDO_OK);
  assert_well_formed(text);
  rondo_text_free(text);
  REQUIRE(rondo_graph_destroy(graph) == RONDO_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static names given, harmless;
  take_names(data, size, &given);
  make_harmless(&given, &harmless);
  outcome is = make_outcome(&given), plain = make_outcome(&harmless);
  assert_self_contained(plain.page);
  require_same_markup(is.page, plain.page);
  require_same_markup(is.picture, plain.picture);
  REQUIRE(count_quotes(is.dot) == count_quotes(plain.dot));
  require_page_of_dump(is.json);
  free_outcome(&is);
  free_outcome(&plain);
  return 0;
}

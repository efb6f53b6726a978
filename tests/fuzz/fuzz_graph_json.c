/* SPDX-License-Identifier: MIT
 * The JSON reader: any bytes either fail with a message, or give a graph whose text reads back as the same graph, and
 * on which every query works. Nothing is left afterwards.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fuzz/fuzz_target.h"
#include "graph/graph.h"
#include "graph/graph_internal.h"
#include "graph/graph_json_read.h"
#include "support/test_allocator.h"

static void require_round_trip(test_allocator *allocator, const rondo_graph *graph, bool with_addresses) {
  char *first, *second;
  rondo_graph *back;
  REQUIRE(rondo_graph_to_json(graph, with_addresses, &first) == RONDO_OK);
  REQUIRE(rondo_graph_read_json(&allocator->table, first, strlen(first), &back) == RONDO_OK);
  REQUIRE(rondo_graph_to_json(back, with_addresses, &second) == RONDO_OK);
  REQUIRE(strcmp(first, second) == 0);
  rondo_text_free(first);
  rondo_text_free(second);
  rondo_graph_free(back);
}

static void require_clone(const rondo_graph *graph) {
  rondo_graph *clone;
  uint64_t a, b;
  size_t differences = 0;
  REQUIRE(rondo_graph_clone(graph, &clone) == RONDO_OK);
  const rondo_status status = rondo_graph_fingerprint(graph, &a);
  if (status == RONDO_OK) {
    REQUIRE(rondo_graph_fingerprint(clone, &b) == RONDO_OK && a == b);
    REQUIRE(rondo_graph_diff(graph, clone, false, NULL, &differences) == RONDO_OK && differences == 0);
  } else {
    REQUIRE(rondo_last_error()->reason == RONDO_REASON_CYCLE);
  }
  rondo_graph_free(clone);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  test_allocator allocator;
  rondo_graph *graph;
  char *text;
  test_allocator_init(&allocator);
  const rondo_status status = rondo_graph_read_json(&allocator.table, (const char *)data, size, &graph);
  if (status == RONDO_OK) {
    require_round_trip(&allocator, graph, false);
    require_round_trip(&allocator, graph, true);
    require_clone(graph);
    REQUIRE(rondo_graph_to_dot(graph, true, &text) == RONDO_OK);
    rondo_text_free(text);
  } else {
    REQUIRE(graph == NULL && rondo_last_error()->status == status && rondo_last_error()->message[0] != '\0');
  }
  rondo_graph_free(graph);
  REQUIRE(allocator.live == 0 && allocator.faults == 0);
  return 0;
}

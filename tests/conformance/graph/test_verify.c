/* SPDX-License-Identifier: MIT
 * GM-5, GM-18: verification. Each kind of error is found once, by name, with the nodes and the missing order, and the
 * suggested edge corrects it; correct graphs pass. rondo_instantiate refuses the graph with the first error.
 */
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"

enum { WORDS = 256, BYTES = WORDS * 4 };

static const rondo_node none = {0};

/* Building -------------------------------------------------------------------------------------------------------- */

static rondo_node add_alloc(rondo_graph *graph, rondo_node after, size_t bytes, const char *name, uint32_t **out) {
  rondo_node node = {0};
  void *address = NULL;
  assert_ok(rondo_graph_add_alloc(graph, &after, after.id != 0, bytes, name, &address, &node));
  *out = address;
  return node;
}

static rondo_node add_free(rondo_graph *graph, const rondo_node *after, size_t count, void *address) {
  rondo_node node = {0};
  assert_ok(rondo_graph_add_free(graph, after, count, address, &node));
  return node;
}

/* words = value; `bytes` declared, 0 for not known. */
static rondo_node add_set(test_fixture *t, rondo_graph *graph, rondo_node after, uint32_t *words, size_t bytes) {
  const uint32_t value = 1;
  const void *const args[] = {&value, &words};
  const size_t arg_bytes[] = {0, bytes};
  rondo_node node = {0};
  rondo_node_params params = {.kind = RONDO_NODE_KERNEL,
                              .as.kernel = {.kernel = test_kernel(t, TEST_KERNEL_SET),
                                            .grid = {WORDS, 0, 0},
                                            .args = args,
                                            .arg_count = 2,
                                            .arg_bytes = arg_bytes}};
  assert_ok(rondo_graph_add(graph, &after, after.id != 0, &params, &node));
  return node;
}

/* to = from * 31 + from; `bytes` of each declared, 0 for not known. */
static rondo_node add_combine(test_fixture *t, rondo_graph *graph, rondo_node after, uint32_t *from, uint32_t *to,
                              size_t bytes) {
  const void *const args[] = {&from, &from, &to};
  const size_t arg_bytes[] = {bytes, bytes, bytes};
  rondo_node node = {0};
  rondo_node_params params = {.kind = RONDO_NODE_KERNEL,
                              .as.kernel = {.kernel = test_kernel(t, TEST_KERNEL_COMBINE),
                                            .grid = {WORDS, 0, 0},
                                            .args = args,
                                            .arg_count = 3,
                                            .arg_bytes = arg_bytes}};
  assert_ok(rondo_graph_add(graph, &after, after.id != 0, &params, &node));
  return node;
}

static rondo_node add_fill(rondo_graph *graph, rondo_node after, void *dst, size_t width, size_t height, size_t pitch) {
  rondo_node node = {0};
  const rondo_fill fill = {.dst = dst, .element_bytes = 1, .width = width, .height = height, .pitch = pitch};
  assert_ok(rondo_graph_add_fill(graph, &after, after.id != 0, &fill, &node));
  return node;
}

/* Looking --------------------------------------------------------------------------------------------------------- */

static bool same(rondo_node a, rondo_node b) { return a.id == b.id; }

static void assert_counts(rondo_graph *graph, uint64_t errors, uint64_t warnings) {
  rondo_findings *findings = NULL;
  uint64_t found_errors, found_warnings;
  rondo_finding finding = {.message = ""};
  assert_ok(rondo_graph_verify(graph, NULL, &findings));
  rondo_findings_totals(findings, &found_errors, &found_warnings);
  if (rondo_findings_count(findings) > 0) assert_ok(rondo_findings_get(findings, 0, &finding));
  if (found_errors != errors || found_warnings != warnings) print_error("  first finding: %s\n", finding.message);
  assert_int_equal(found_errors, errors);
  assert_int_equal(found_warnings, warnings);
  assert_int_equal(rondo_findings_count(findings), errors + warnings);
  rondo_findings_destroy(findings);
}

static void assert_clean(rondo_graph *graph) { assert_counts(graph, 0, 0); }

/* The expected finding. Nodes that are not given are not compared. */
typedef struct expectation {
  rondo_severity severity;
  rondo_status status;
  rondo_reason reason;
  rondo_node node, other, from, to;
  const char *allocation;
} expectation;

/* The first finding; its edge is none when none is expected. */
static rondo_finding assert_finds(rondo_graph *graph, const expectation *expected, char message[512]) {
  rondo_findings *findings = NULL;
  rondo_finding finding = {.struct_size = sizeof finding};
  assert_ok(rondo_graph_verify(graph, NULL, &findings));
  assert_true(rondo_findings_count(findings) > 0);
  assert_ok(rondo_findings_get(findings, 0, &finding));
  print_message("  %s: %s\n", rondo_severity_name(finding.severity), finding.message);
  assert_int_equal(finding.severity, expected->severity);
  assert_int_equal(finding.status, expected->status);
  assert_string_equal(rondo_reason_name(finding.reason), rondo_reason_name(expected->reason));
  assert_true(same(finding.node, expected->node));
  if (expected->other.id != 0) assert_true(same(finding.other, expected->other));
  assert_true(same(finding.from, expected->from) && same(finding.to, expected->to));
  assert_string_equal(finding.allocation, expected->allocation);
  if (expected->allocation[0] != '\0') assert_non_null(strstr(finding.message, expected->allocation));
  snprintf(message, 512, "%s", finding.message);
  rondo_findings_destroy(findings);
  finding.message = finding.allocation = NULL;
  return finding;
}

/* The graph is refused for this error, and accepted without verification when `runs`. */
static void assert_refused(rondo_graph *graph, const expectation *expected) {
  rondo_exec *exec = NULL;
  assert_error(rondo_instantiate(graph, NULL, &exec), expected->status, expected->reason);
  assert_null(exec);
  assert_int_equal(rondo_last_error()->node, rondo_node_number(expected->node));
}

/* Finds the error, adds the edge that it suggests, and finds nothing. */
static void assert_mends(rondo_graph *graph, const expectation *expected) {
  char message[512];
  const rondo_finding finding = assert_finds(graph, expected, message);
  if (expected->severity == RONDO_SEVERITY_ERROR) assert_refused(graph, expected);
  assert_non_null(strstr(message, "Add an edge"));
  assert_ok(rondo_graph_add_edges(graph, &finding.from, &finding.to, 1));
  assert_clean(graph);
  rondo_exec_destroy(test_instantiate(graph));
}

/* Lifetimes ------------------------------------------------------------------------------------------------------- */

/* The CUDA guide's figure: a, b and c use the allocation while it lives; d is ordered after c, e after nothing. */
TEST(test_gm5_the_figure_of_the_document) {
  uint32_t *out = test_words(t, 4 * WORDS), *dptr;
  rondo_graph *graph = test_graph(t);
  char message[512];
  const rondo_node alloc = add_alloc(graph, none, BYTES, "dptr", &dptr);
  const rondo_node a = add_set(t, graph, alloc, dptr, 0);
  const rondo_node b = add_combine(t, graph, a, dptr, out, BYTES),
                   c = add_combine(t, graph, a, dptr, out + WORDS, BYTES);
  const rondo_node users[] = {b, c};
  const rondo_node freed = add_free(graph, users, 2, dptr);
  assert_clean(graph);
  test_run_once(t, graph);
  const rondo_node d = add_combine(t, graph, c, dptr, out + 2 * WORDS, BYTES);
  assert_mends(graph, &(expectation){RONDO_SEVERITY_ERROR, RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE, d,
                                     freed, d, freed, "dptr"});
  const rondo_node e = add_combine(t, graph, none, dptr, out + 3 * WORDS, BYTES);
  const expectation early = {
      RONDO_SEVERITY_ERROR, RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED, e, alloc, alloc, e, "dptr"};
  const rondo_finding finding = assert_finds(graph, &early, message);
  assert_true(same(finding.alloc, alloc) && finding.allocation_bytes == BYTES && finding.address == dptr);
  assert_non_null(strstr(message, "test_combine"));
  assert_ok(rondo_graph_add_edges(graph, &a, &e, 1));
  assert_ok(rondo_graph_add_edges(graph, &e, &freed, 1));
  assert_clean(graph);
}

/* The figure, captured. */
TEST(test_gm5_the_figure_captured) {
  uint32_t *out = test_words(t, 3 * WORDS);
  rondo_stream *side = test_stream(t, "side");
  rondo_event *fork = test_event(t), *joined = test_event(t);
  for (int with_d = 0; with_d < 2; with_d++) {
    void *memory = NULL;
    assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
    assert_ok(rondo_malloc_async(t->stream, BYTES, &(rondo_malloc_options){RONDO_MALLOC_OPTIONS_INIT, .name = "dptr"},
                                 &memory));
    uint32_t *dptr = memory, *other = out + WORDS, *third = out + 2 * WORDS;
    test_affine(t, t->stream, dptr, WORDS, 1, 1);
    assert_ok(rondo_event_record(fork, t->stream));
    assert_ok(rondo_stream_wait_event(side, fork));
    const rondo_launch_options options = {RONDO_LAUNCH_OPTIONS_INIT,
                                          .arg_bytes = (const size_t[]){BYTES, BYTES, BYTES}};
    rondo_kernel *combine = test_kernel(t, TEST_KERNEL_COMBINE);
    const rondo_grid grid = {WORDS, 0, 0};
    assert_ok(rondo_launch_with(t->stream, combine, grid, RONDO_ARGS(&dptr, &dptr, &out), &options));
    assert_ok(rondo_launch_with(side, combine, grid, RONDO_ARGS(&dptr, &dptr, &other), &options));
    if (with_d == 0) test_order(t, side, t->stream);
    if (with_d == 1) assert_ok(rondo_event_record(joined, side));
    if (with_d == 1) assert_ok(rondo_stream_wait_event(t->stream, joined));
    if (with_d == 1) assert_ok(rondo_launch_with(side, combine, grid, RONDO_ARGS(&dptr, &dptr, &third), &options));
    assert_ok(rondo_free_async(t->stream, dptr));
    if (with_d == 1) test_order(t, side, t->stream);
    rondo_graph *graph = test_capture_end(t->stream);
    if (with_d == 0)
      assert_clean(graph);
    else
      assert_error(rondo_instantiate(graph, NULL, &(rondo_exec *){NULL}), RONDO_INVALID_LIFETIME,
                   RONDO_REASON_USE_AFTER_FREE);
    test_graph_destroy(graph);
  }
}

/* GM-18: an access that the edges order after the free, or before the alloc: no edge corrects it. */
TEST(test_gm18_what_no_edge_mends) {
  char message[512];
  uint32_t *late, *early;
  rondo_graph *graph = test_graph(t);
  const rondo_node alloc = add_alloc(graph, none, BYTES, "late", &late);
  const rondo_node freed = add_free(graph, &alloc, 1, late);
  const rondo_node user = add_set(t, graph, freed, late, BYTES);
  const expectation after = {
      RONDO_SEVERITY_ERROR, RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE, user, freed, none, none, "late"};
  assert_finds(graph, &after, message);
  assert_non_null(strstr(message, "is ordered after its free (node 1). Remove the edge 1 -> 2 or free after node 2"));
  assert_refused(graph, &after);
  const rondo_instantiate_options unverified = {RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true};
  rondo_exec_destroy(test_instantiate_with(graph, &unverified));
  test_graph_destroy(graph);
  graph = test_graph(t);
  const rondo_node second = add_alloc(graph, none, BYTES, "early", &early);
  const rondo_node first = add_set(t, graph, none, early, BYTES);
  assert_ok(rondo_graph_add_edges(graph, &first, &second, 1));
  const expectation before = {
      RONDO_SEVERITY_ERROR, RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED, first, second, none, none, "early"};
  assert_finds(graph, &before, message);
  assert_non_null(strstr(message, "is ordered before its alloc (node 0). Remove the edge 1 -> 0"));
  assert_refused(graph, &before);
}

/* GM-18: a free without order after its alloc. */
TEST(test_gm18_a_free_before_its_alloc) {
  uint32_t *words;
  rondo_graph *graph = test_graph(t);
  const rondo_node alloc = add_alloc(graph, none, BYTES, "memory", &words);
  const rondo_node freed = add_free(graph, NULL, 0, words);
  assert_mends(graph, &(expectation){RONDO_SEVERITY_ERROR, RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED, freed,
                                     alloc, alloc, freed, "memory"});
}

/* Races ----------------------------------------------------------------------------------------------------------- */

/* Two writers, and a reader and a writer, of one allocation; in graph memory and in the device's own. */
TEST(test_races_are_found_and_mended) {
  uint32_t *out = test_words(t, 2 * WORDS), *words;
  rondo_graph *graph = test_graph(t);
  const rondo_node alloc = add_alloc(graph, none, BYTES, "shared", &words);
  const rondo_node first = add_set(t, graph, alloc, words, BYTES), second = add_fill(graph, alloc, words, BYTES, 1, 0);
  assert_mends(graph, &(expectation){RONDO_SEVERITY_ERROR, RONDO_INVALID_GRAPH, RONDO_REASON_RACE, second, first, first,
                                     second, "shared"});
  const rondo_node reader = add_combine(t, graph, second, words, out, BYTES);
  const rondo_node writer = add_fill(graph, second, words + 10, 4, 1, 0);
  assert_mends(graph, &(expectation){RONDO_SEVERITY_ERROR, RONDO_INVALID_GRAPH, RONDO_REASON_RACE, writer, reader,
                                     reader, writer, "shared"});
  const rondo_node outside = add_fill(graph, none, out + WORDS - 1, 8, 1, 0);
  const expectation race = {
      RONDO_SEVERITY_ERROR, RONDO_INVALID_GRAPH, RONDO_REASON_RACE, outside, reader, reader, outside, ""};
  rondo_findings *findings = NULL;
  rondo_finding finding = {.struct_size = sizeof finding};
  assert_ok(rondo_graph_verify(graph, NULL, &findings));
  assert_int_equal(rondo_findings_count(findings), 1);
  assert_ok(rondo_findings_get(findings, 0, &finding));
  assert_int_equal(finding.reason, race.reason);
  assert_non_null(strstr(finding.message, "bytes 1020 to 1024"));
  rondo_findings_destroy(findings);
}

/* Readers may run in parallel, and so may writers of disjoint bytes, also in columns of one matrix. */
TEST(test_what_is_no_race) {
  uint32_t *out = test_words(t, 3 * WORDS), *words;
  rondo_graph *graph = test_graph(t);
  const rondo_node alloc = add_alloc(graph, none, BYTES, "matrix", &words);
  const rondo_node left = add_fill(graph, alloc, words, 32, 16, 64);
  add_fill(graph, alloc, words + 8, 32, 16, 64);
  add_combine(t, graph, none, out, out + WORDS, BYTES);
  add_combine(t, graph, none, out, out + 2 * WORDS, BYTES);
  assert_clean(graph);
  const rondo_node clash = add_fill(graph, alloc, words + 7, 8, 4, 64);
  assert_counts(graph, 2, 0);
  (void)left;
  assert_ok(rondo_graph_remove(graph, clash));
  const rondo_node row = add_fill(graph, alloc, words + 16 * 15, 4, 1, 0);
  assert_mends(graph, &(expectation){RONDO_SEVERITY_ERROR, RONDO_INVALID_GRAPH, RONDO_REASON_RACE, row, left, left, row,
                                     "matrix"});
}

/* A pointer without bytes may reach to the end of its allocation: a warning, which refuses nothing. */
TEST(test_unknown_extents_are_warned_about) {
  char message[512];
  uint32_t *words;
  rondo_graph *graph = test_graph(t);
  const rondo_node alloc = add_alloc(graph, none, BYTES, "guess", &words);
  const rondo_node first = add_set(t, graph, alloc, words, 0), second = add_set(t, graph, alloc, words + 32, 0);
  const expectation race = {
      RONDO_SEVERITY_WARNING, RONDO_INVALID_GRAPH, RONDO_REASON_RACE, second, first, first, second, "guess"};
  assert_finds(graph, &race, message);
  assert_non_null(strstr(message, "declare how many bytes"));
  rondo_exec *exec = test_instantiate(graph);
  const rondo_findings *kept = NULL;
  uint64_t errors, warnings;
  assert_ok(rondo_exec_get_findings(exec, &kept));
  rondo_findings_totals(kept, &errors, &warnings);
  assert_true(errors == 0 && warnings == 1 && rondo_findings_count(kept) == 1);
  rondo_exec_destroy(exec);
  assert_mends(graph, &race);
}

/* Extents and frees ----------------------------------------------------------------------------------------------- */

/* More bytes than there are: declared bytes of a kernel; creating such copies and fills fails (B4). */
TEST(test_an_access_beyond_its_allocation) {
  char message[512];
  uint32_t *words;
  rondo_graph *graph = test_graph(t);
  const rondo_node alloc = add_alloc(graph, none, BYTES, "short", &words);
  const rondo_node user = add_set(t, graph, alloc, words + 1, BYTES);
  const expectation beyond = {
      RONDO_SEVERITY_ERROR, RONDO_INVALID_GRAPH, RONDO_REASON_OUT_OF_RANGE, user, none, none, none, "short"};
  assert_finds(graph, &beyond, message);
  assert_refused(graph, &beyond);
}

/* Undeclared pointers --------------------------------------------------------------------------------------------- */

/* A kernel that receives a pointer in a scalar parameter: checked for lifetimes only, and only with a warning. */
TEST(test_pointers_in_scalars_are_warned_about) {
  char message[512];
  uint32_t *words;
  rondo_graph *graph = test_graph(t);
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "opaque",
                                        .cpu = test_kernel_options(TEST_KERNEL_EMPTY)->cpu,
                                        .cuda_source =
                                            "struct block { unsigned long long words[3]; };\n"
                                            "extern \"C\" __global__ void opaque(struct block) {}\n",
                                        .params = {RONDO_PARAMETER(RONDO_ACCESS_SCALAR, 24, 8)}};
  rondo_kernel *kernel = test_kernel_make(t, &options);
  const rondo_node alloc = add_alloc(graph, none, BYTES, "hidden", &words);
  const uint64_t block[3] = {7, (uint64_t)(uintptr_t)(words + 3), 9};
  rondo_node inside, outside;
  assert_ok(rondo_graph_add_kernel(graph, &alloc, 1, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(block), &inside));
  const rondo_node freed = add_free(graph, &inside, 1, words);
  assert_clean(graph);
  assert_ok(rondo_graph_add_kernel(graph, &freed, 1, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(block), &outside));
  assert_finds(graph,
               &(expectation){RONDO_SEVERITY_WARNING, RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE, outside,
                              freed, none, none, "hidden"},
               message);
  assert_non_null(strstr(message, "byte 8 of parameter 0"));
  rondo_exec_destroy(test_instantiate(graph));
}

/* Every way to an exec ------------------------------------------------------------------------------------------- */

/* alloc, and a free next to a user: the order between the two is missing. */
static rondo_node make_unordered(test_fixture *t, rondo_graph *graph, uint32_t **out_words, rondo_node *out_user) {
  const rondo_node alloc = add_alloc(graph, none, BYTES, "hasty", out_words);
  *out_user = add_set(t, graph, alloc, *out_words, BYTES);
  return add_free(graph, &alloc, 1, *out_words);
}

/* Clones, and graphs that a wrong exec was launched into while they were captured. */
TEST(test_clones_and_captured_execs_are_verified) {
  rondo_graph *graph = test_graph(t), *clone = NULL;
  rondo_node user, in_clone;
  uint32_t *words;
  make_unordered(t, graph, &words, &user);
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_ok(rondo_graph_find_in_clone(clone, user, &in_clone));
  assert_refused(clone, &(expectation){RONDO_SEVERITY_ERROR, RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE,
                                       in_clone, none, none, none, "hasty"});
  test_graph_destroy(clone);
  rondo_exec *exec = NULL;
  assert_ok(rondo_instantiate(graph, &(rondo_instantiate_options){RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true},
                              &exec));
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_exec_launch(exec, t->stream));
  rondo_graph *captured = test_capture_end(t->stream);
  assert_error(rondo_instantiate(captured, NULL, &(rondo_exec *){NULL}), RONDO_INVALID_LIFETIME,
               RONDO_REASON_USE_AFTER_FREE);
  assert_message("(node 1 of child (node 0))");
  rondo_exec_destroy(exec);
}

/* A mistake inside a child is mended there; one between a child's node and a node next to it, around the child. */
TEST(test_child_graphs_are_verified) {
  uint32_t *out = test_words(t, WORDS), *words;
  rondo_graph *graph = test_graph(t), *inner = test_graph(t);
  rondo_node_params params;
  rondo_node node, user;
  rondo_finding finding = {.struct_size = sizeof finding};
  rondo_findings *findings = NULL;
  make_unordered(t, inner, &words, &user);
  add_fill(inner, user, out, BYTES, 1, 0);
  assert_ok(rondo_graph_add_child(graph, NULL, 0, inner, &node));
  assert_ok(rondo_graph_get_params(graph, node, &params));
  assert_ok(rondo_graph_verify(graph, NULL, &findings));
  assert_int_equal(rondo_findings_count(findings), 1);
  assert_ok(rondo_findings_get(findings, 0, &finding));
  assert_int_equal(finding.reason, RONDO_REASON_USE_AFTER_FREE);
  assert_ok(rondo_graph_add_edges(params.as.child, &finding.from, &finding.to, 1));
  rondo_findings_destroy(findings);
  assert_clean(graph);
  const rondo_node beside = add_fill(graph, none, out, 4, 1, 0);
  assert_ok(rondo_graph_verify(graph, NULL, &findings));
  assert_int_equal(rondo_findings_count(findings), 1);
  assert_ok(rondo_findings_get(findings, 0, &finding));
  assert_int_equal(finding.reason, RONDO_REASON_RACE);
  assert_true((same(finding.from, node) && same(finding.to, beside)) ||
              (same(finding.from, beside) && same(finding.to, node)));
  assert_ok(rondo_graph_add_edges(graph, &finding.from, &finding.to, 1));
  rondo_findings_destroy(findings);
  assert_clean(graph);
  rondo_exec_destroy(test_instantiate(graph));
}

/* A graph of the same topology whose addresses make a race: the update is refused, and the exec runs as before. */
TEST(test_updates_are_verified) {
  uint32_t *out = test_words(t, 2 * WORDS), expected[WORDS];
  rondo_graph *graph = test_graph(t), *racing = test_graph(t);
  rondo_update_result result = {.struct_size = sizeof result};
  add_set(t, graph, none, out, BYTES);
  add_set(t, graph, none, out + WORDS, BYTES);
  add_set(t, racing, none, out, BYTES);
  add_set(t, racing, none, out, BYTES);
  rondo_exec *exec = test_instantiate(graph);
  assert_error(rondo_exec_update(exec, racing, &result), RONDO_UPDATE_REFUSED, RONDO_REASON_NOT_UPDATABLE);
  assert_message("nothing orders the two");
  assert_int_equal(result.reason, RONDO_REASON_NOT_UPDATABLE);
  assert_ok(rondo_exec_launch(exec, t->stream));
  for (size_t i = 0; i < WORDS; i++) expected[i] = 1;
  assert_words(t, out + WORDS, expected, WORDS);
}

static rondo_status set_words(test_fixture *t, rondo_exec *exec, rondo_node node, uint32_t *words, size_t bytes) {
  const uint32_t value = 3;
  const void *const args[] = {&value, &words};
  const size_t arg_bytes[] = {0, bytes};
  return rondo_exec_set_params(exec, node,
                               &(rondo_node_params){.kind = RONDO_NODE_KERNEL,
                                                    .as.kernel = {.kernel = test_kernel(t, TEST_KERNEL_SET),
                                                                  .grid = {WORDS, 0, 0},
                                                                  .args = args,
                                                                  .arg_count = 2,
                                                                  .arg_bytes = arg_bytes}});
}

/* One node's new accesses are checked separately: two nodes can exchange what they write, one after the other. */
TEST(test_one_nodes_parameters_are_verified) {
  uint32_t *out = test_words(t, 2 * WORDS), *words;
  rondo_graph *graph = test_graph(t);
  const rondo_node alloc = add_alloc(graph, none, BYTES, "inside", &words);
  const rondo_node user = add_set(t, graph, alloc, words, BYTES), freed = add_free(graph, &user, 1, words);
  const rondo_node first = add_set(t, graph, freed, out, BYTES), second = add_set(t, graph, none, out + WORDS, BYTES);
  rondo_exec *exec = test_instantiate(graph);
  assert_error(set_words(t, exec, first, words, BYTES), RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE);
  assert_message("rondo_exec_set_params: ");
  assert_message("inside");
  assert_int_equal(rondo_last_error()->node, rondo_node_number(first));
  assert_error(set_words(t, exec, second, words, BYTES), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
  assert_error(set_words(t, exec, user, words + 1, BYTES), RONDO_INVALID_GRAPH, RONDO_REASON_OUT_OF_RANGE);
  assert_error(set_words(t, exec, second, out + WORDS + 1, BYTES), RONDO_INVALID_GRAPH, RONDO_REASON_OUT_OF_RANGE);
  assert_ok(set_words(t, exec, first, out + WORDS, BYTES));
  assert_ok(set_words(t, exec, second, out, BYTES));
  rondo_exec_destroy(exec);
  assert_ok(rondo_instantiate(graph, &(rondo_instantiate_options){RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true},
                              &exec));
  assert_ok(set_words(t, exec, first, words, BYTES));
  rondo_exec_destroy(exec);
}

/* Dumps ----------------------------------------------------------------------------------------------------------- */

/* The only finding of the graph's dump, by name; "" for none. A build without JSON cannot read it. */
static void assert_dump_finds(const rondo_graph *graph, bool with_addresses, const char *reason) {
  char *json = NULL;
  rondo_graph *read = NULL;
  assert_ok(rondo_graph_to_json(graph, with_addresses, &json));
  const rondo_status status = rondo_graph_from_json(json, strlen(json), &read);
  rondo_text_free(json);
  if (status == RONDO_UNSUPPORTED) return;
  assert_ok(status);
  rondo_findings *findings = NULL;
  rondo_finding finding = {.struct_size = sizeof finding};
  assert_ok(rondo_graph_verify(read, NULL, &findings));
  assert_int_equal(rondo_findings_count(findings), reason[0] != '\0');
  if (reason[0] != '\0') {
    assert_ok(rondo_findings_get(findings, 0, &finding));
    assert_string_equal(rondo_reason_name(finding.reason), reason);
    assert_int_equal(finding.severity, with_addresses ? RONDO_SEVERITY_ERROR : RONDO_SEVERITY_WARNING);
  }
  rondo_findings_destroy(findings);
  test_graph_destroy(read);
}

/* An access that cannot be checked does not count as correct. */
TEST(test_gm5_dumped_graphs) {
  rondo_graph *graph = test_graph(t), *empty = test_graph(t);
  uint32_t *scratch = NULL;
  rondo_node node = add_alloc(graph, none, BYTES, "scratch", &scratch);
  node = add_free(graph, &node, 1, scratch);
  add_set(t, graph, node, scratch, BYTES);
  assert_dump_finds(graph, true, "USE_AFTER_FREE");
  assert_dump_finds(graph, false, "NO_ADDRESS");
  assert_ok(rondo_graph_add_empty(empty, NULL, 0, &node));
  assert_dump_finds(empty, false, "");
}

/* The finding for a fill of `bytes` at `address`, in a graph of data with a list of allocations; "" when nothing is
 * found. */
static void check_given(uintptr_t address, size_t bytes, rondo_reason reason, const char *words) {
  static const rondo_verify_allocation given[] = {
      {.address = (void *)0x50000, .bytes = 0x1000, .name = "far", .no_access = "cpu:7"},
      {.address = (void *)0x10000, .bytes = 0x4000, .name = "outer"},
      {.address = (void *)0x11000, .bytes = 0x100, .name = "inner"},
      {.address = (void *)0x11000, .bytes = 0x200, .name = "inner too"},
      {.address = (void *)0x12000, .bytes = 0, .name = "empty"},
      {.address = (void *)0x30000, .bytes = SIZE_MAX, .name = "vast"},
  };
  const rondo_verify_options options = {RONDO_VERIFY_OPTIONS_INIT, .allocations = given, .allocation_count = 6};
  rondo_findings *findings = NULL;
  rondo_graph *graph = NULL;
  rondo_finding finding = {.struct_size = sizeof finding};
  assert_ok(rondo_graph_create(NULL, NULL, &graph));
  add_fill(graph, none, (void *)address, bytes, 1, 0);
  assert_ok(rondo_graph_verify(graph, &options, &findings));
  assert_int_equal(rondo_findings_count(findings), words[0] != '\0');
  if (words[0] != '\0') {
    assert_ok(rondo_findings_get(findings, 0, &finding));
    assert_string_equal(rondo_reason_name(finding.reason), rondo_reason_name(reason));
    assert_non_null(strstr(finding.message, words));
  }
  rondo_findings_destroy(findings);
  test_graph_destroy(graph);
}

/* GM-18: allocations that only the user knows, in any order and nested: the one that begins at an address counts, or
 * else, of those that contain it, the one that ends last. */
TEST(test_gm18_given_allocations) {
  check_given(0x10000, 0x4000, RONDO_REASON_NONE, "");
  check_given(0x10000, 0x4001, RONDO_REASON_OUT_OF_RANGE, "'outer'");
  check_given(0x11000, 0x100, RONDO_REASON_NONE, "");
  check_given(0x11000, 0x101, RONDO_REASON_OUT_OF_RANGE, "'inner'");
  check_given(0x110c0, 0x80, RONDO_REASON_NONE, "");
  check_given(0x11300, 0x3000, RONDO_REASON_OUT_OF_RANGE, "'outer'");
  check_given(0x12000, 0x1000, RONDO_REASON_NONE, "");
  check_given(0x14000, 0x10000, RONDO_REASON_NONE, ""); /* in none */
  check_given(0x50000, 0x10, RONDO_REASON_NO_ACCESS, "cpu:7");
  check_given(0x40000, 0x100000, RONDO_REASON_NONE, "");
}

/* A dump may name the last address there is, where an allocation has no end to be compared. */
TEST(test_gm18_an_allocation_at_the_last_address) {
  static const char json[] =
      "{\"rondo_graph\":1,\"name\":\"\",\"kernels\":[],\"nodes\":[{\"number\":0,\"kind\":\"alloc\",\"name\":\"\","
      "\"bytes\":64,\"allocation\":\"\",\"address\":\"0xffffffffffffffff\",\"dependencies\":[]}]}";
  rondo_graph *graph = NULL;
  rondo_findings *findings = NULL;
  assert_ok(rondo_graph_from_json(json, sizeof json - 1, &graph));
  assert_ok(rondo_graph_verify(graph, NULL, &findings));
  assert_int_equal(rondo_findings_count(findings), 0);
  rondo_findings_destroy(findings);
  assert_ok(rondo_graph_destroy(graph));
}

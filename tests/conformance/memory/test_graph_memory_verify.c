/* SPDX-License-Identifier: MIT
 * GM-5, GM-18: what instantiating finds out about accesses of graph memory: each must be ordered after the alloc node
 * and before the free node. The error names the kernel, the allocation and the missing order.
 */
#include "support/test_graph_memory.h"

enum { WORDS = 4096, BYTES = WORDS * 4 };

static void assert_all(test_fixture *t, const uint32_t *words, uint32_t value) {
  test_assert_all(t, words, WORDS, value);
}

/* The figure of the CUDA guide: alloc -> a -> {b, c} -> free, with d after c and e without order. */
typedef struct figure {
  rondo_graph *graph;
  test_allocation memory;
  rondo_node a, b, c, freed;
} figure;

static figure make_figure(test_fixture *t, uint32_t *out) {
  figure self = {.graph = test_graph(t)};
  self.memory = test_add_alloc(self.graph, NULL, 0, BYTES, "dptr");
  self.a = test_add_set(t, self.graph, self.memory.node, self.memory.words, WORDS, 1);
  self.b = test_add_read(t, self.graph, self.a, self.memory.words, out, WORDS);
  self.c = test_add_read(t, self.graph, self.a, self.memory.words, out + WORDS, WORDS);
  const rondo_node users[2] = {self.b, self.c};
  assert_ok(rondo_graph_add_free(self.graph, users, 2, self.memory.words, &self.freed));
  return self;
}

/* GM-5: accepted without d and e, refused with either, naming kernel, allocation and the missing order. */
static void test_gm5_the_guides_figure_with_a_to_e(void **state) {
  test_fixture *t = *state;
  uint32_t *out = test_words(t, 3 * WORDS);
  figure plain = make_figure(t, out), with_d = make_figure(t, out), with_e = make_figure(t, out);
  rondo_exec *exec = test_instantiate(plain.graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_all(t, out + WORDS, 32);
  rondo_exec_destroy(exec);
  const rondo_node d = test_add_read(t, with_d.graph, with_d.c, with_d.memory.words, out + 2 * WORDS, WORDS);
  exec = (rondo_exec *)t;
  assert_fails(rondo_instantiate(with_d.graph, NULL, &exec), RONDO_INVALID_LIFETIME);
  assert_null(exec);
  assert_int_equal(rondo_last_error()->node, rondo_node_number(d));
  assert_message("test_combine");
  assert_message("dptr");
  test_add_set(t, with_e.graph, (rondo_node){0}, with_e.memory.words, WORDS, 2);
  assert_fails(rondo_instantiate(with_e.graph, NULL, &exec), RONDO_INVALID_LIFETIME);
  assert_message("test_set");
  assert_message("dptr");
  test_graph_destroy(plain.graph);
  test_graph_destroy(with_d.graph);
  test_graph_destroy(with_e.graph);
}

/* GM-18: use after free and use before alloc say so; skip_verify takes the graph all the same. */
static void test_gm18_use_outside_the_life_is_refused(void **state) {
  test_fixture *t = *state;
  uint32_t *out = test_words(t, WORDS);
  rondo_exec *exec = NULL;
  rondo_graph *late = test_graph(t), *early = test_graph(t);
  test_allocation memory = test_add_alloc(late, NULL, 0, BYTES, "late");
  const rondo_node freed = test_add_free(late, memory.node, memory.words);
  test_add_read(t, late, freed, memory.words, out, WORDS);
  assert_error(rondo_instantiate(late, NULL, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE);
  assert_message("late");
  memory = test_add_alloc(early, NULL, 0, BYTES, "early");
  const rondo_node user = test_add_set(t, early, (rondo_node){0}, memory.words, WORDS, 1);
  assert_ok(rondo_graph_add_edges(early, &user, &memory.node, 1));
  assert_error(rondo_instantiate(early, NULL, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
  assert_message("early");
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true};
  assert_ok(rondo_instantiate(late, &options, &exec));
  rondo_exec_destroy(exec);
}

/* GM-18: what no launch could keep account of is refused without verification too. */
static void test_gm18_frees_are_paired_without_verification(void **state) {
  test_fixture *t = *state;
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true};
  rondo_exec *exec = NULL;
  rondo_graph *backwards = test_graph(t), *twice = test_graph(t), *inside = test_graph(t);
  test_allocation memory = test_add_alloc(backwards, NULL, 0, BYTES, "backwards");
  const rondo_node freed = test_add_free(backwards, (rondo_node){0}, memory.words);
  assert_ok(rondo_graph_add_edges(backwards, &freed, &memory.node, 1));
  assert_error(rondo_instantiate(backwards, &options, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
  assert_message("is not ordered after its alloc node");
  assert_null(exec);

  memory = test_add_alloc(twice, NULL, 0, BYTES, "twice");
  (void)test_add_free(inside, (rondo_node){0}, memory.words);
  rondo_node first, second;
  assert_ok(rondo_graph_add_child(twice, &memory.node, 1, inside, &first));
  assert_ok(rondo_graph_add_child(twice, &first, 1, inside, &second));
  assert_error(rondo_instantiate(twice, &options, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE);
  assert_message("remove one of them");
  assert_null(exec);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      test_case(test_gm5_the_guides_figure_with_a_to_e),
      test_case(test_gm18_use_outside_the_life_is_refused),
      test_case(test_gm18_frees_are_paired_without_verification),
  };
  return test_main(tests);
}

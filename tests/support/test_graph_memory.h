/* SPDX-License-Identifier: MIT
 * Support for the tests of graph memory: nodes that allocate, write, read and free, and graphs of them.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_GRAPH_MEMORY_H
#define RONDO_TESTS_SUPPORT_TEST_GRAPH_MEMORY_H

#include "support/rondo_test.h"

typedef struct test_allocation {
  rondo_node node;
  uint32_t *words;
} test_allocation;

test_allocation test_add_alloc(rondo_graph *graph, const rondo_node *dependencies, size_t count, size_t bytes,
                               const char *name);

/* Each node depends on `dependency`, or on no node if that has no id. test_add_set: words[i] = value. test_add_read:
 * out[i] = words[i] * 32. */
rondo_node test_add_free(rondo_graph *graph, rondo_node dependency, uint32_t *words);
rondo_node test_add_set(test_fixture *fixture, rondo_graph *graph, rondo_node dependency, uint32_t *words,
                        uint32_t count, uint32_t value);
rondo_node test_add_read(test_fixture *fixture, rondo_graph *graph, rondo_node dependency, uint32_t *words,
                         uint32_t *out, uint32_t count);

/* A graph: allocate `bytes`, write `value` to the first `count` words, read them into `out`, free. */
rondo_graph *test_scratch_graph(test_fixture *fixture, uint32_t *out, uint32_t count, size_t bytes, uint32_t value);
rondo_exec *test_scratch_exec(test_fixture *fixture, uint32_t *out, uint32_t count, size_t bytes, uint32_t value);

/* The same graph, which waits at the gate between writing and reading. The contents must stay meanwhile. */
rondo_graph *test_gated_graph(test_fixture *fixture, uint32_t *out, uint32_t count, size_t bytes, uint32_t value,
                              test_gate *gate);
/* Launches the two execs so that both wait at their gates at the same time, then calls `standing` (may be NULL), opens
 * the gates, and waits for the device. */
void test_launch_at_once(test_fixture *fixture, rondo_exec *const execs[2], rondo_stream *const streams[2],
                         test_gate gates[2], void (*standing)(test_fixture *fixture));

/* All `count` words are `value`. */
void test_assert_all(test_fixture *fixture, const uint32_t *words, size_t count, uint32_t value);

#endif

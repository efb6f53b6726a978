/* SPDX-License-Identifier: MIT
 * Random calls of functions, compared with a model of trees (TR-1 to TR-10, TR-14): outputs that are kept, given to
 * a call, dropped in its body, or cloned; steps by marks, scopes and calls; several streams. tests/fuzz/fuzz_tree.c
 * fuzzes the same engine.
 */
#include <stdio.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_tree_model.h"

enum { BYTES = 1500 };

static void run_seeds(uint64_t from, uint32_t count) {
  for (uint64_t seed = from; seed < from + count; seed++) {
    uint8_t data[BYTES];
    char name[24];
    uint64_t random = seed;
    for (size_t i = 0; i < BYTES; i++) data[i] = (uint8_t)test_random(&random);
    (void)snprintf(name, sizeof name, "seed %u", (unsigned)seed);
    test_tree_model_run(test_device_name(), name, data, sizeof data);
  }
}

DEVICE_TEST(test_tr1_to_tr10_random_calls) {
  run_seeds(1, test_effort(test_device_is("cpu:check") ? 15 : 150)); /* where each order is run, few */
}

/* SPDX-License-Identifier: MIT
 * Functions and their recordings: the input is a stream of calls on a tree, compared with a model of it
 * (support/test_tree_model.h).
 */
#define _GNU_SOURCE
#include <stdbool.h>

#include "fuzz/fuzz_target.h"
#include "support/test_tree_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  REQUIRE(setenv("RONDO_CPU_SPIN_US", "20", 0) == 0); /* spinning workers would take time from working ones */
  const bool checks = size > 0 && data[0] >= 200;
  test_tree_model_run(checks ? "cpu:check" : "cpu", "fuzz", data, size);
  return 0;
}

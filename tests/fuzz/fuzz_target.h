/* SPDX-License-Identifier: MIT
 * What every fuzz target has: its entry, which libFuzzer or the replay of a corpus calls, and the assertion that makes
 * a finding.
 */
#ifndef RONDO_TESTS_FUZZ_FUZZ_TARGET_H
#define RONDO_TESTS_FUZZ_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)     \
  do {                         \
    if (!(condition)) abort(); \
  } while (0)

#endif

/* SPDX-License-Identifier: MIT
 * Common parts of the fuzz targets: the entry function, which libFuzzer or the replay of a corpus calls, and the
 * assertion that reports a finding.
 */
#ifndef RONDO_TESTS_FUZZ_FUZZ_TARGET_H
#define RONDO_TESTS_FUZZ_FUZZ_TARGET_H

#include <rondo/status.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                                \
  do {                                                                                                    \
    if (!(condition)) {                                                                                   \
      fprintf(stderr, "%s:%d: not so: %s; the thread's last error: %s\n", __FILE__, __LINE__, #condition, \
              rondo_last_error()->message);                                                               \
      abort();                                                                                            \
    }                                                                                                     \
  } while (0)

#endif

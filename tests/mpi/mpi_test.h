/* SPDX-License-Identifier: MIT
 * What the tests on MPI share: the rank, and how a case fails.
 */
#ifndef RONDO_MPI_TEST_H
#define RONDO_MPI_TEST_H

#include <rondo/rondo.h>
#include <stdio.h>

enum { PASSED = 0, FAILED = 1 };

static int rank, size;

#define REQUIRE(condition)                                                                               \
  do {                                                                                                   \
    if (condition) break;                                                                                \
    (void)fprintf(stderr, "rank %d, line %d: %s is false; last error: %s\n", rank, __LINE__, #condition, \
                  rondo_last_error()->message);                                                          \
    return FAILED;                                                                                       \
  } while (0)

#endif

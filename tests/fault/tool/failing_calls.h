/* SPDX-License-Identifier: MIT
 * Memory that the sweep of the tool shares with the library that it preloads into the tool: a file that both map, so
 * that the counts survive the tool's death.
 */
#ifndef RONDO_TESTS_FAULT_TOOL_FAILING_CALLS_H
#define RONDO_TESTS_FAULT_TOOL_FAILING_CALLS_H

#include <stddef.h>

/* The preloaded library finds the file by this variable. Without it, no call fails. */
#define FAILING_CALLS_VARIABLE "RONDO_TEST_FAILING_CALLS"

enum { FAILING_STACK_BYTES = 8192 };

typedef enum failing_kind {
  FAILING_MEMORY, /* allocations of the C library */
  FAILING_SYSTEM, /* files, mappings and threads */
  FAILING_KINDS
} failing_kind;

typedef struct failing_calls {
  failing_kind kind; /* which calls fail */
  size_t at;         /* the first that fails, counted from 1; 0: none */
  int rest;          /* all later ones too */
  size_t counts[FAILING_KINDS];
  size_t failed;
  char name[32];                   /* of the first call that failed */
  char stack[FAILING_STACK_BYTES]; /* where it was made: a line "library symbol+offset" for each frame */
} failing_calls;

#endif

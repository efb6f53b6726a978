/* SPDX-License-Identifier: MIT
 * Asserts that a check of a data structure finds a fault. The check runs in a child process, which it ends.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_ASSERTION_H
#define RONDO_TESTS_SUPPORT_TEST_ASSERTION_H

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test_cases.h"

/* The assertion of `condition`, or of one that begins so, fails in act(object). What act changes is the child's own.
 * Builds without assertions do nothing. The message of the child is compared, because a sanitizer may turn the signal
 * SIGABRT into an exit status of its own. */
static inline void test_assertion_fails(void (*act)(void *object), void *object, const char *condition) {
#ifdef NDEBUG
  (void)act;
  (void)object;
  (void)condition;
#else
  char message[4096] = "", expected[256];
  size_t bytes = 0;
  int ends[2], status = 0;
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    (void)dup2(ends[1], STDERR_FILENO);
    act(object);
    _exit(0);
  }
  (void)close(ends[1]);
  for (ssize_t count; (count = read(ends[0], message + bytes, sizeof message - 1 - bytes)) > 0;) bytes += (size_t)count;
  (void)close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  (void)snprintf(expected, sizeof expected, "Assertion `%s", condition);
  if (strstr(message, expected) == NULL) fail_msg("not the assertion of '%s': %s", condition, message);
#endif
}

#endif

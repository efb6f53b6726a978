/* SPDX-License-Identifier: MIT
 * Limits of the process that the memory of CPU devices can reach: the message names the limit, and the process
 * continues. Each test runs in its own process, in which signals have their default effect.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/rondo_test.h"

enum { SMALL = 1 << 20, LARGE = 8 << 20, REFUSED = 42 };

/* A limit on the size of files, or on the number of open files. */
static int set_limit(bool of_size, rlim_t most) {
  struct rlimit limit;
  if ((of_size ? getrlimit(RLIMIT_FSIZE, &limit) : getrlimit(RLIMIT_NOFILE, &limit)) != 0) return -1;
  limit.rlim_cur = most;
  return of_size ? setrlimit(RLIMIT_FSIZE, &limit) : setrlimit(RLIMIT_NOFILE, &limit);
}

/* Allocates under a limit, in this process, and ends it with REFUSED when the message names the limit. */
static void allocate_and_exit(const char *name, bool of_size, rlim_t most, const char *said) {
  rondo_device *device;
  void *memory;
  if (rondo_device_open(name, NULL, &device) != RONDO_OK) _exit(1);
  if (set_limit(of_size, most) != 0) _exit(2);
  if (rondo_malloc(device, LARGE, "large", &memory) != RONDO_OUT_OF_MEMORY) _exit(3);
  const bool is_said = strstr(rondo_last_error()->message, said) != NULL;
  _exit(is_said && rondo_device_close(device) == RONDO_OK ? REFUSED : 4);
}

static void assert_refused(bool of_size, rlim_t most, const char *said) {
  static const char *const names[] = {"cpu", "cpu:check"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    int status = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) allocate_and_exit(names[i], of_size, most, said);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFSIGNALED(status));
    assert_int_equal(WEXITSTATUS(status), REFUSED);
  }
}

/* The kernel applies it to the memory of the device, and sends SIGXFSZ. */
UNIT_TEST(test_the_limit_on_the_size_of_files) { assert_refused(true, SMALL, "(ulimit -f)"); }

UNIT_TEST(test_the_limit_on_open_files) { assert_refused(false, 3, "(ulimit -n)"); }

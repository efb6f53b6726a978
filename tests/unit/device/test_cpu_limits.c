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

#include "base/error.h"
#include "support/rondo_test.h"

enum { SMALL = 1 << 20, LARGE = 8 << 20, REFUSED = 42 };

/* A limit on the size of files, or on the number of open files. */
static int set_limit(bool of_size, rlim_t most) {
  struct rlimit limit;
  if ((of_size ? getrlimit(RLIMIT_FSIZE, &limit) : getrlimit(RLIMIT_NOFILE, &limit)) != 0) return -1;
  limit.rlim_cur = most;
  return of_size ? setrlimit(RLIMIT_FSIZE, &limit) : setrlimit(RLIMIT_NOFILE, &limit);
}

/* A graph with a temporary allocation, run once. */
static rondo_status use_graph_memory(rondo_device *device) {
  rondo_stream *stream;
  rondo_graph *graph;
  rondo_exec *exec;
  void *memory;
  if (rondo_stream_create(device, NULL, &stream) != RONDO_OK ||
      rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL) != RONDO_OK ||
      rondo_malloc_async(stream, LARGE, NULL, &memory) != RONDO_OK || rondo_free_async(stream, memory) != RONDO_OK ||
      rondo_capture_end(stream, &graph) != RONDO_OK || rondo_instantiate(graph, NULL, &exec) != RONDO_OK)
    _exit(5);
  const rondo_status status = rondo_exec_launch(exec, stream);
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_exec_destroy(exec);
  if (rondo_graph_destroy(graph) != RONDO_OK || rondo_stream_destroy(stream) != RONDO_OK) _exit(6);
  rondo_error_restore(&error);
  return status;
}

/* Graphs map their memory more than once, which needs a file. So does the checker, for all memory. */
static void allocate_and_exit(const char *name, bool of_size, rlim_t most, const char *said) {
  rondo_device *device;
  void *memory = NULL;
  if (rondo_device_open(name, NULL, &device) != RONDO_OK) _exit(1);
  if (set_limit(of_size, most) != 0) _exit(2);
  const bool is_checking = strcmp(name, "cpu:check") == 0;
  const rondo_status wanted = is_checking ? RONDO_OUT_OF_MEMORY : RONDO_OK;
  if (rondo_malloc(device, LARGE, "large", &memory) != wanted) _exit(3);
  if (memory != NULL && rondo_free(device, memory) != RONDO_OK) _exit(7);
  if (!is_checking && use_graph_memory(device) != RONDO_OUT_OF_MEMORY) _exit(8);
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

/* The kernel applies it to memory that is a file, and sends SIGXFSZ. */
UNIT_TEST(test_the_limit_on_the_size_of_files) { assert_refused(true, SMALL, "(ulimit -f)"); }

UNIT_TEST(test_the_limit_on_open_files) { assert_refused(false, 3, "(ulimit -n)"); }

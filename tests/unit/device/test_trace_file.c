/* SPDX-License-Identifier: MIT
 * RONDO_TRACE: there is a trace while a device is open, even if other threads open and close devices.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/trace.h"
#include "device_tests.h"

enum { THREADS = 3, ROUNDS = 200 };

static void *open_and_close(void *untraced) {
  for (int i = 0; i < ROUNDS; i++) {
    rondo_device *device;
    if (rondo_device_open("cpu", &(rondo_device_options){.workers = 1}, &device) != RONDO_OK) return NULL;
    if (!rondo_trace_on()) atomic_fetch_add((atomic_uint *)untraced, 1);
    if (rondo_device_close(device) != RONDO_OK) return NULL;
  }
  return untraced;
}

UNIT_TEST(an_open_device_is_traced) {
  pthread_t threads[THREADS];
  atomic_uint untraced = 0;
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &untraced), 0);
  for (int i = 0; i < THREADS; i++) {
    void *result;
    assert_int_equal(pthread_join(threads[i], &result), 0);
    assert_non_null(result);
  }
  assert_int_equal(atomic_load(&untraced), 0);
  assert_false(rondo_trace_on());
}

/* Opening and closing succeed, so they leave the last error as it was. */
UNIT_TEST(a_trace_file_that_cannot_be_opened_is_only_logged) {
  const char *path = getenv("RONDO_TRACE");
  rondo_device *device;
  assert_int_equal(remove(path), 0);
  assert_int_equal(mkdir(path, 0700), 0);
  const rondo_status failure = rondo_device_open("no such device", NULL, &device);
  assert_int_not_equal(failure, RONDO_IO_ERROR);
  assert_int_equal(rondo_device_open("cpu", NULL, &device), RONDO_OK);
  assert_false(rondo_trace_on());
  assert_int_equal(rondo_last_error()->status, failure);
  assert_int_equal(rondo_device_close(device), RONDO_OK);
  assert_int_equal(rondo_last_error()->status, failure);
}

int main(void) {
  char path[] = "/tmp/rondo_trace_XXXXXX";
  const int file = mkstemp(path);
  if (file < 0 || close(file) != 0 || setenv("RONDO_TRACE", path, 1) != 0) return 1;
  const int failed = test_run_registered();
  (void)remove(path);
  return failed;
}

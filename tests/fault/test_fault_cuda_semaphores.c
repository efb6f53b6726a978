/* SPDX-License-Identifier: MIT
 * AD-8: Lets every call of the CUDA driver and every host allocation fail while an external semaphore is imported,
 * signalled and waited for on a stream, captured, added, changed and updated. Either an error is returned or the
 * results are right. Nothing is left in the driver or in host memory, no descriptor is left, and nothing is misused.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "fault/fault_cuda_sweep.h"

static test_allocator allocator;

static struct {
  rondo_device *device;
  rondo_stream *stream;
  int file, own; /* `own` is the library's, until it is imported */
  rondo_external_semaphore *semaphore;
  rondo_graph *built, *captured;
  rondo_exec *exec;
  char *text;
  uint64_t state;
} work;

static rondo_status import_semaphore(void) {
  const rondo_semaphore_import_options options = {RONDO_SEMAPHORE_IMPORT_OPTIONS_INIT,
                                                  .type = RONDO_SEMAPHORE_TIMELINE_FD};
  const uint64_t zero = 0;
  work.file = memfd_create("semaphore", MFD_CLOEXEC);
  assert_int_equal(pwrite(work.file, &zero, sizeof zero, 0), sizeof zero);
  work.own = dup(work.file);
  TRY(rondo_external_semaphore_import(work.device, work.own, &options, &work.semaphore));
  work.own = -1;
  return RONDO_OK;
}

static rondo_status make(const char *device) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &allocator.table};
  TRY(rondo_device_open(device, &options, &work.device));
  TRY(rondo_stream_create(work.device, NULL, &work.stream));
  return import_semaphore();
}

static rondo_semaphore_value value_of(uint64_t value) {
  return (rondo_semaphore_value){.semaphore = work.semaphore, .value = value};
}

static rondo_status build(void) {
  rondo_semaphore_value values[] = {value_of(2), value_of(2), value_of(3)};
  rondo_node signal, wait;
  TRY(rondo_graph_create(work.device, NULL, &work.built));
  TRY(rondo_graph_add_semaphore_signal(work.built, NULL, 0, &values[0], 1, &signal));
  TRY(rondo_graph_add_semaphore_wait(work.built, &signal, 1, &values[1], 1, &wait));
  void *native;
  TRY(rondo_instantiate(work.built, NULL, &work.exec));
  TRY(rondo_exec_native(work.exec, &native)); /* so that launches by the driver may use what is replaced next */
  TRY(rondo_exec_launch(work.exec, work.stream));
  const rondo_node_params params = {.kind = RONDO_NODE_SEMAPHORE_SIGNAL,
                                    .as.semaphores = {.values = &values[2], .count = 1}};
  TRY(rondo_exec_set_params(work.exec, signal, &params));
  TRY(rondo_graph_set_params(work.built, signal, &params));
  TRY(rondo_exec_launch(work.exec, work.stream));
  return rondo_graph_to_json(work.built, false, &work.text);
}

static rondo_status capture_and_update(void) {
  const rondo_semaphore_value values[] = {value_of(4), value_of(4)};
  TRY(rondo_capture_begin(work.stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_semaphore_signal_async(work.stream, &values[0], 1));
  TRY(rondo_semaphore_wait_async(work.stream, &values[1], 1));
  TRY(rondo_capture_end(work.stream, &work.captured));
  TRY(rondo_exec_update(work.exec, work.captured, NULL));
  return rondo_exec_launch(work.exec, work.stream);
}

static rondo_status run(const char *device) {
  memset(&work, 0, sizeof work);
  work.file = work.own = -1;
  TRY(make(device));
  const rondo_semaphore_value first = value_of(1);
  TRY(rondo_semaphore_signal_async(work.stream, &first, 1));
  TRY(rondo_semaphore_wait_async(work.stream, &first, 1));
  TRY(build());
  TRY(capture_and_update());
  TRY(rondo_stream_synchronize(work.stream));
  assert_int_equal(pread(work.file, &work.state, sizeof work.state, 0), sizeof work.state);
  return RONDO_OK;
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_status status;
  rondo_text_free(work.text);
  rondo_exec_destroy(work.exec);
  status = work.stream == NULL ? RONDO_OK : rondo_stream_destroy(work.stream);
  status = rondo_graph_destroy(work.captured);
  status = rondo_graph_destroy(work.built);
  rondo_external_semaphore_destroy(work.semaphore);
  status = rondo_device_close(work.device);
  (void)status;
  if (work.own >= 0) assert_int_equal(close(work.own), 0);
  if (work.file >= 0) assert_int_equal(close(work.file), 0);
}

static void assert_whole(void) { assert_int_equal(work.state, 4); }

static fault_work tested = {.run = run,
                            .tear_down = tear_down,
                            .assert_whole = assert_whole,
                            .results = &work.state,
                            .result_bytes = sizeof work.state,
                            .least = 15,
                            .memory = &allocator};

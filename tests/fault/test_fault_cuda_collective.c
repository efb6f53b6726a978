/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver, by Rondo or by NCCL, and every host allocation fail while a rank joins groups,
 * enqueues and captures collectives, divides a group, and leaves. Either an error is returned or the numbers are right.
 * Nothing is left in the driver, in NCCL, in the environment or in host memory, and nothing is misused (TR-16, MM-2,
 * MM-3).
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "fake_cuda/fake_nccl.h"
#include "fault/fault_cuda_sweep.h"

enum { WORDS = 100 };

static const fake_nccl_control *nccl;
static test_allocator allocator;

/* Groups of one rank; the conformance suite tests waiting for other ranks. */
static struct {
  rondo_device *device;
  rondo_stream *stream;
  rondo_communicator *communicator, *launched, *part;
  rondo_graph *graph;
  rondo_exec *exec;
  void *words, *others;
  int32_t result[WORDS];
} work;

/* There and back, so that the words stay. */
static rondo_status exchange(rondo_communicator *communicator) {
  TRY(rondo_all_to_all(communicator, work.stream, work.words, work.others, WORDS, RONDO_I32));
  return rondo_send_receive(communicator, work.stream, work.others, 0, work.words, 0, WORDS, RONDO_I32);
}

static rondo_status join(void) {
  TRY(rondo_communicator_create_all(&work.device, 1, NULL, &work.communicator));
  TRY(rondo_communicator_from_environment(work.device, NULL, &work.launched));
  return rondo_communicator_split(work.launched, 3, 2, &work.part);
}

static rondo_status record(void) {
  TRY(rondo_capture_begin(work.stream, RONDO_CAPTURE_THREAD_LOCAL));
  rondo_status status =
      rondo_all_reduce(work.communicator, work.stream, work.words, work.words, WORDS, RONDO_I32, RONDO_REDUCE_MAX);
  if (status == RONDO_OK) status = rondo_barrier(work.communicator, work.stream);
  if (status == RONDO_OK) status = exchange(work.part);
  const rondo_status ended = rondo_capture_end(work.stream, &work.graph);
  TRY(status);
  TRY(ended);
  return rondo_instantiate(work.graph, NULL, &work.exec);
}

static rondo_status run(const char *device) {
  memset(&work, 0, sizeof work);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &allocator.table};
  TRY(rondo_device_open(device, &options, &work.device));
  TRY(rondo_stream_create(work.device, NULL, &work.stream));
  TRY(rondo_malloc(work.device, sizeof work.result, NULL, &work.words));
  TRY(rondo_malloc(work.device, sizeof work.result, NULL, &work.others));
  TRY(join());
  const rondo_fill fill = {.dst = work.words, .value = 7, .element_bytes = 4, .width = WORDS};
  TRY(rondo_fill_async(work.stream, &fill));
  TRY(rondo_all_reduce(work.communicator, work.stream, work.words, work.words, WORDS, RONDO_I32, RONDO_REDUCE_SUM));
  TRY(rondo_all_reduce(work.launched, work.stream, work.others, work.others, WORDS, RONDO_F32, RONDO_REDUCE_AVERAGE));
  TRY(exchange(work.part));
  TRY(record());
  TRY(rondo_exec_launch(work.exec, work.stream));
  TRY(rondo_copy_async(work.stream, work.result, work.words, sizeof work.result));
  return rondo_stream_synchronize(work.stream);
}

/* Teardown may return errors, too. The objects are destroyed in any case. The graph outlives the communicator.
 * */
static void tear_down(void) {
  rondo_status status = rondo_communicator_destroy(work.part);
  status = rondo_communicator_destroy(work.launched);
  status = rondo_communicator_destroy(work.communicator);
  rondo_exec_destroy(work.exec);
  status = rondo_graph_destroy(work.graph);
  if (work.words != NULL) status = rondo_free(work.device, work.words);
  if (work.others != NULL) status = rondo_free(work.device, work.others);
  status = rondo_stream_destroy(work.stream);
  status = rondo_device_close(work.device);
  (void)status;
}

/* When waiting is no longer possible, NCCL's work may still run while it is destroyed. */
static size_t count_running(const char *text) {
  static const char misuse[] = "fake_nccl_collective runs after its module was unloaded";
  size_t count = 0;
  while ((text = strstr(text, misuse)) != NULL) {
    text += sizeof misuse - 1;
    count++;
  }
  return count;
}

static void check(const fault_failure *of, rondo_status status) {
  char text[2048];
  const char *call = fake->failed();
  const size_t at = (size_t)(of->driver_at + of->allocation_at);
  fake->list_violations(text, sizeof text);
  const size_t excused = of->onward ? count_running(text) : 0;
  if (fake->violations() > excused) fail_msg("failure %zu (%s): misuse: %s", at, call == NULL ? "" : call, text);
  fake->list(text, sizeof text);
  if (fake->live(FAKE_CUDA_ANY) > 0 && !fault_may_be_left(of, call))
    fail_msg("failure %zu (%s): left: %s", at, call == NULL ? "" : call, text);
  if (fake->live(FAKE_CUDA_ANY) > 0) fake->reset();
  const char *const address = getenv("NCCL_COMM_ID");
  if (address == NULL || strcmp(address, "kept:1") != 0) fail_msg("failure %zu: another address is left", at);
  if (nccl->live() > 0) fail_msg("failure %zu (%s): %zu communicators of NCCL left", at, call, nccl->live());
  if (atomic_load(&allocator.live) > 0 || atomic_load(&allocator.faults) > 0)
    fail_msg("failure %zu (%s): %zu blocks of host memory left", at, call, atomic_load(&allocator.live));
  for (int i = 0; i < WORDS && status == RONDO_OK; i++) assert_int_equal(work.result[i], 7);
}

static void open_library(void) {
  nccl = fake_nccl_get();
  assert_non_null(nccl);
  assert_int_equal(setenv("RANK", "0", 1) | setenv("WORLD_SIZE", "1", 1) | setenv("NCCL_COMM_ID", "kept:1", 1), 0);
}

static fault_work tested = {.open_library = open_library,
                            .run = run,
                            .tear_down = tear_down,
                            .check = check,
                            .least = 40,
                            .memory = &allocator};

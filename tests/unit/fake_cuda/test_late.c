/* SPDX-License-Identifier: MIT
 * Delayed work of the fake CUDA driver: results of work that was waited for are there, other results may not be, and
 * pageable host memory may be read when a copy is enqueued.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <time.h>

#include "unit/fake_cuda/fake_test.h"

enum { ROUNDS = 100, MOST_ROUNDS = 100000 };

FAKE_TEST(what_is_waited_for_is_there) {
  const cu_address memory = make_memory(f);
  cu_event event = NULL;
  assert_cu_ok(f->api->event_create(&event, CU_EVENT_FLAG_DISABLE_TIMING));
  for (uint32_t i = 0; i < ROUNDS; i++) {
    assert_cu_ok(f->api->memset_32_async(memory, i, 1, f->stream));
    assert_cu_ok(f->api->event_record(event, f->stream));
    if (i % 3 == 0) assert_cu_ok(f->api->event_synchronize(event));
    if (i % 3 == 1) assert_cu_ok(f->api->stream_wait_event(f->other, event, 0));
    if (i % 3 == 2) assert_cu_ok(f->api->stream_synchronize(f->stream));
    assert_int_equal(read_word(f, f->other, memory), i);
  }
  assert_cu_ok(f->api->event_destroy(event));
  free_memory(f, memory);
}

FAKE_TEST(asking_again_and_again_ends) {
  const cu_address memory = make_memory(f);
  for (uint32_t i = 0; i < ROUNDS; i++) {
    cu_result code = CU_NOT_READY;
    assert_cu_ok(f->api->memset_32_async(memory, i, 1, f->stream));
    while (code == CU_NOT_READY) code = f->api->stream_query(f->stream);
    assert_cu_ok(code);
    assert_int_equal(read_word(f, f->other, memory), i);
  }
  free_memory(f, memory);
}

FAKE_TEST(what_nobody_waits_for_is_late) {
  const cu_address memory = make_memory(f), apart = make_memory(f);
  const struct timespec millisecond = {.tv_nsec = 1000000};
  cu_result code = CU_OK;
  for (uint32_t i = 0; code == CU_OK && i < MOST_ROUNDS; i++) {
    assert_cu_ok(f->api->memset_32_async(memory, i, 1, f->stream));
    assert_cu_ok(f->api->memset_32_async(apart, i, 1, f->other));
    assert_int_equal(read_word(f, f->other, apart), i); /* while nobody waits for the other stream */
    (void)nanosleep(&millisecond, NULL);
    code = f->api->stream_query(f->stream);
    assert_cu_ok(f->api->stream_synchronize(f->stream));
  }
  assert_code(code, CU_NOT_READY);
  free_memory(f, memory);
  free_memory(f, apart);
}

/* What a copy gives whose source is 1 when it is queued, and 2 when it runs. */
static uint32_t copy_changed(const fixture *f, cu_address memory, uint32_t *source) {
  sem_t gate;
  *source = 1;
  close_gate(f, f->stream, &gate);
  assert_cu_ok(f->api->copy_async(memory, (cu_address)(uintptr_t)source, sizeof *source, f->stream));
  *source = 2;
  sem_post(&gate);
  return read_word(f, f->stream, memory);
}

FAKE_TEST(memory_that_is_not_page_locked_is_read_at_any_time) {
  const cu_address memory = make_memory(f);
  uint32_t early = 0, late = 0, pageable;
  void *locked = NULL;
  for (uint32_t i = 0; (early == 0 || late == 0) && i < MOST_ROUNDS; i++)
    ++*(copy_changed(f, memory, &pageable) == 1 ? &early : &late);
  assert_true(early > 0 && late > 0);
  assert_cu_ok(f->api->host_alloc(&locked, sizeof pageable, 0));
  for (uint32_t i = 0; i < ROUNDS; i++) assert_int_equal(copy_changed(f, memory, locked), 2);
  assert_cu_ok(f->api->host_free(locked));
  free_memory(f, memory);
}

int main(void) {
  if (setenv("RONDO_TEST_FAKE_CUDA_LATE", "5", 1) != 0) return 1; /* read when the driver is loaded */
  return test_run_registered();
}

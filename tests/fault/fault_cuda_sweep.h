/* SPDX-License-Identifier: MIT
 * Failing each call of the CUDA driver in turn, with each kind of code, and each allocation of host memory, while a
 * piece of work is done from its beginning to its end: the same six tests for each such work. What the work must do
 * about it, its `check` asserts where that is more than to leave nothing and to give no wrong answer.
 */
#ifndef RONDO_TESTS_FAULT_FAULT_CUDA_SWEEP_H
#define RONDO_TESTS_FAULT_FAULT_CUDA_SWEEP_H

#include "fault/fault_cuda.h"
#include "support/test_effort.h"

typedef struct fault_failure {
  const char *device;
  uint64_t driver_at, allocation_at; /* 0: none */
  unsigned code;
  bool onward;
} fault_failure;

/* A piece of work. */
typedef struct fault_work {
  rondo_status (*run)(const char *device); /* from the beginning, with what a run before left of its state forgotten */
  void (*take_down)(void);                 /* however far it came */
  void (*check)(const fault_failure *of, rondo_status status); /* NULL: nothing is left, which is all */
  const bool *is_wrong;   /* an answer that was given: none is, whatever failed; or NULL */
  size_t least;           /* failures of each kind */
  size_t stride;          /* of the points at which a failure comes in this build (test_failure_step), one in so many */
  const char *other;      /* a device next to cuda:0 on which allocations fail too; or NULL */
  test_allocator *memory; /* of the device that it opens */
} fault_work;

/* What the driver refused to take back may be left, or all once every call is refused; `call` is the one that failed,
 * NULL when none did. */
static inline bool fault_may_be_left(const fault_failure *of, const char *call) {
  if (of->code == LAUNCH_FAILED || call == NULL) return false;
  return of->onward || fault_cuda_gives_back(call);
}

/* For a work's check: nothing is left, or in the driver only what may be; and nothing of `library`, which has `left`
 * objects, where one is used. */
static inline void fault_work_assert_clean(const fault_work *work, const fault_failure *of, const char *library,
                                           size_t left) {
  const char *call = fake->failed(), *const what = call == NULL ? "allocation" : call;
  const size_t at = (size_t)(of->driver_at + of->allocation_at);
  fault_cuda_assert_clean(work->memory, fault_may_be_left(of, call) ? SIZE_MAX : 0, what, at);
  if (fake->live(FAKE_CUDA_ANY) > 0) fake->reset();
  if (left > 0) fail_msg("%s, failure %zu: %zu objects of %s left", what, at, left, library);
}

/* Finds the fake driver, and does the work once: what fails at the first loading of a library is kept for good. */
static inline void fault_work_begin(fault_work *work) {
  fake = fake_cuda_get();
  assert_non_null(fake);
  fake->reset();
  test_allocator_init(work->memory);
  assert_ok(work->run("cuda:0"));
}

/* Whether the failure came. */
static inline bool fault_work_try(const fault_work *work, const fault_failure *of) {
  test_allocator_init(work->memory);
  atomic_store(&work->memory->fail_at, of->allocation_at);
  atomic_store(&work->memory->fail_on, of->onward);
  fake->forget();
  fake->fail_call(NULL, of->driver_at, of->code, of->onward);
  const rondo_status status = work->run(of->device);
  const bool came = of->driver_at > 0 ? fake->failed() != NULL : atomic_load(&work->memory->calls) >= of->allocation_at;
  work->take_down();
  if (work->check == NULL)
    fault_work_assert_clean(work, of, NULL, 0);
  else
    work->check(of, status);
  assert_false(work->is_wrong != NULL && *work->is_wrong);
  return came;
}

static inline void fault_work_sweep(const fault_work *work, fault_failure of, bool of_driver) {
  uint64_t *at = of_driver ? &of.driver_at : &of.allocation_at;
  size_t count = 0;
  fake->reset();
  const size_t step = test_failure_step(), stride = step * (work->stride == 0 ? 1 : work->stride);
  for (*at = 1 + of.code % stride; fault_work_try(work, &of); *at += stride) count++;
  assert_true(count > work->least / step);
}

static inline void fault_work_fail_allocations(const fault_work *work, bool onward) {
  fault_work_sweep(work, (fault_failure){.device = "cuda:0", .onward = onward}, false);
  if (work->other != NULL) fault_work_sweep(work, (fault_failure){.device = work->other, .onward = onward}, false);
}

/* The tests; the group's state is the work. */
static inline void each_call_is_refused(void **state) {
  fault_work_sweep(*state, (fault_failure){.device = "cuda:0", .code = REFUSED}, true);
}

static inline void each_call_runs_out_of_memory(void **state) {
  fault_work_sweep(*state, (fault_failure){.device = "cuda:0", .code = NO_MEMORY}, true);
}

static inline void each_call_and_all_after_it_are_refused(void **state) {
  fault_work_sweep(*state, (fault_failure){.device = "cuda:0", .code = REFUSED, .onward = true}, true);
}

static inline void each_call_loses_the_device(void **state) {
  fault_work_sweep(*state, (fault_failure){.device = "cuda:0", .code = LAUNCH_FAILED}, true);
}

static inline void each_allocation_fails(void **state) { fault_work_fail_allocations(*state, false); }

static inline void each_allocation_and_all_after_it_fail(void **state) { fault_work_fail_allocations(*state, true); }

/* The body of main. `set_up` sets the state to the work, once begun. */
static inline int fault_work_main(const char *name, CMFixtureFunction set_up) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_call_is_refused),
      cmocka_unit_test(each_call_runs_out_of_memory),
      cmocka_unit_test(each_call_and_all_after_it_are_refused),
      cmocka_unit_test(each_call_loses_the_device),
      cmocka_unit_test(each_allocation_fails),
      cmocka_unit_test(each_allocation_and_all_after_it_fail),
  };
  return cmocka_run_group_tests_name(name, tests, set_up, NULL);
}

#endif

/* SPDX-License-Identifier: MIT
 * The tests and the main of a program that defines `tested`, a piece of work. In one run of the work after another,
 * the next call of the CUDA driver fails, with each kind of code, or the next allocation of host memory. A run must
 * leave nothing and must not give a wrong answer. A `check` replaces fault_work_assert_clean, so it must call it or
 * look for leaks itself.
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

/* A piece of work. Members that are not needed are NULL. */
typedef struct fault_work {
  void (*open_library)(void);              /* before the first run; sets `live` */
  rondo_status (*run)(const char *device); /* from the beginning; forgets the state of the run before */
  void (*tear_down)(void);                 /* from any state in which the run stopped */
  void (*assert_whole)(void);              /* after the first run, which has no failure */
  void (*check)(const fault_failure *of, rondo_status status); /* instead of fault_work_assert_clean */
  const void *results;                                         /* of a run: the same bits in each run that succeeds */
  size_t result_bytes;
  const char *library;    /* that the work uses in addition to the driver */
  size_t (*live)(void);   /* objects of the library that are alive */
  const bool *is_wrong;   /* whether a run gave a wrong answer, which no failure may cause */
  size_t least;           /* the minimum number of failures of each kind */
  size_t stride;          /* only each `stride`-th point fails; 0: each of test_failure_step() */
  const char *other;      /* a second device on which allocations fail, too */
  test_allocator *memory; /* of the device that the work opens */
} fault_work;

static fault_work tested; /* which the program defines */
static void *right;       /* a copy of the results of the first run */

/* Returns whether objects of the driver may be left: if a call that gives memory back failed, or every call from one
 * on. `call` failed, or is NULL. */
static inline bool fault_may_be_left(const fault_failure *of, const char *call) {
  if (of->code == LAUNCH_FAILED || call == NULL) return false;
  return of->onward || fault_cuda_gives_back(call);
}

/* Asserts that nothing is left except what the driver may keep. */
static inline void fault_work_assert_clean(const fault_failure *of) {
  const char *call = fake->failed(), *const what = call == NULL ? "allocation" : call;
  const size_t at = (size_t)(of->driver_at + of->allocation_at), left = tested.live == NULL ? 0 : tested.live();
  fault_cuda_assert_clean(tested.memory, fault_may_be_left(of, call) ? SIZE_MAX : 0, what, at);
  if (fake->live(FAKE_CUDA_ANY) > 0) fake->reset();
  if (left > 0) fail_msg("%s, failure %zu: %zu objects of %s left", what, at, left, tested.library);
}

/* The setup of the group: runs the work once without a failure, because a library whose first load fails stays
 * unavailable for the whole process. */
static inline int fault_work_begin(void **state) {
  (void)state;
  fake = fake_cuda_get();
  assert_non_null(fake);
  fake->reset();
  test_allocator_init(tested.memory);
  if (tested.open_library != NULL) tested.open_library();
  assert_ok(tested.run("cuda:0"));
  if (tested.assert_whole != NULL) tested.assert_whole();
  right = malloc(tested.result_bytes + 1);
  assert_non_null(right);
  if (tested.result_bytes > 0) memcpy(right, tested.results, tested.result_bytes);
  tested.tear_down();
  return 0;
}

static inline int fault_work_end(void **state) {
  (void)state;
  free(right);
  return 0;
}

/* Returns whether the failure occurred. */
static inline bool fault_work_try(const fault_failure *of) {
  test_allocator_init(tested.memory);
  atomic_store(&tested.memory->fail_at, of->allocation_at);
  atomic_store(&tested.memory->fail_on, of->onward);
  fake->forget();
  fake->fail_call(NULL, of->driver_at, of->code, of->onward);
  const rondo_status status = tested.run(of->device);
  const bool came =
      of->driver_at > 0 ? fake->failed() != NULL : atomic_load(&tested.memory->calls) >= of->allocation_at;
  tested.tear_down();
  if (tested.check == NULL)
    fault_work_assert_clean(of);
  else
    tested.check(of, status);
  if (status == RONDO_OK && tested.result_bytes > 0) assert_memory_equal(tested.results, right, tested.result_bytes);
  assert_false(tested.is_wrong != NULL && *tested.is_wrong);
  return came;
}

static inline void fault_work_sweep(fault_failure of, bool of_driver) {
  uint64_t *at = of_driver ? &of.driver_at : &of.allocation_at;
  size_t count = 0;
  fake->reset();
  const size_t step = test_failure_step(), stride = step * (tested.stride == 0 ? 1 : tested.stride);
  for (*at = 1 + of.code % stride; fault_work_try(&of); *at += stride) count++;
  assert_true(count > tested.least / step);
}

static inline void fault_work_fail_calls(unsigned code, bool onward) {
  fault_work_sweep((fault_failure){.device = "cuda:0", .code = code, .onward = onward}, true);
}

static inline void fault_work_fail_allocations(bool onward) {
  fault_work_sweep((fault_failure){.device = "cuda:0", .onward = onward}, false);
  if (tested.other != NULL) fault_work_sweep((fault_failure){.device = tested.other, .onward = onward}, false);
}

UNIT_TEST(each_call_is_refused) { fault_work_fail_calls(REFUSED, false); }
UNIT_TEST(each_call_runs_out_of_memory) { fault_work_fail_calls(NO_MEMORY, false); }
UNIT_TEST(each_call_and_all_after_it_are_refused) { fault_work_fail_calls(REFUSED, true); }
UNIT_TEST(each_call_loses_the_device) { fault_work_fail_calls(LAUNCH_FAILED, false); }
UNIT_TEST(each_allocation_fails) { fault_work_fail_allocations(false); }
UNIT_TEST(each_allocation_and_all_after_it_fail) { fault_work_fail_allocations(true); }

int main(void) { return test_run_registered_in(fault_work_begin, fault_work_end); }

#endif

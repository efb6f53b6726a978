/* SPDX-License-Identifier: MIT
 * Calls of the fake driver: finds functions by name and version, does what every call does at its begin and end, counts
 * calls, fails the call that a test chose, and keeps the text of each violation.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fake_cuda/fake.h"

typedef void (*any_function)(void);

typedef struct call_row {
  const char *name;
  int version;
  any_function function;
} call_row;

static const call_row rows[CALL_COUNT] = {
#define required(member, symbol, version, arguments) {#symbol, version, (any_function)fake_##member},
#define optional(member, symbol, version, arguments) {#symbol, version, (any_function)fake_##member},
#include "fake_cuda/foreign_symbols.h"
#include "vendor/cuda_driver_symbols.h"
#undef required
#undef optional
};

enum { KEPT_VIOLATIONS = 8, VIOLATION_BYTES = 200 };

static struct {
  uint64_t made[CALL_COUNT];
  bool is_hidden[CALL_COUNT];
  int failing;       /* a call, or CALL_COUNT for any */
  uint64_t fails_in; /* 0: none fails */
  bool fails_onward;
  const char *failed; /* the first call that did */
  cu_result failure;
  size_t violations;
  char violation[KEPT_VIOLATIONS][VIOLATION_BYTES];
} calls;

_Thread_local fake_thread fake_self;

/* The row of a name, or CALL_COUNT. */
static int find_row(const char *name) {
  int i = 0;
  while (i < CALL_COUNT && strcmp(rows[i].name, name) != 0) i++;
  return i;
}

enum { FOUND = 0, NO_SUCH_SYMBOL = 1, VERSION_TOO_LOW = 2 };

FAKE_EXPORT cu_result fake_get_proc_address(const char *symbol, void **out, int version, uint64_t flags,
                                            int *found) __asm__("cuGetProcAddress_v2");

cu_result fake_get_proc_address(const char *symbol, void **out, int version, uint64_t flags, int *found) {
  int state = NO_SUCH_SYMBOL;
  if (symbol == NULL || out == NULL || flags > 2 || version > fake_driver_version) return CU_INVALID_VALUE;
  *out = NULL;
  pthread_mutex_lock(&fake_lock);
  const int i = find_row(symbol);
  if (i < CALL_COUNT && !calls.is_hidden[i] && rows[i].version <= fake_driver_version)
    state = version < rows[i].version ? VERSION_TOO_LOW : FOUND;
  if (state == FOUND) memcpy(out, &rows[i].function, sizeof *out);
  pthread_mutex_unlock(&fake_lock);
  if (found != NULL) *found = state;
  return CU_OK;
}

/* The current context; or all where the call needs none: it may be about a stream of any, whatever is current. */
static void lose_contexts(cu_result code, unsigned flags) {
  const bool is_of_current = fake_self.current != NULL && (flags & FAKE_IN_CONTEXT) != 0;
  for (int i = 0; i < fake_device_count; i++) {
    fake_context *context = &fake_devices[i].context;
    if (!is_of_current || fake_self.current == context) fake_context_lose(context, code);
  }
}

/* The code with which this call is to fail, CU_OK for none. */
static cu_result take_failure(fake_call call, unsigned flags) {
  if (calls.fails_in == 0 || (calls.failing != CALL_COUNT && calls.failing != (int)call)) return CU_OK;
  if (calls.fails_in > 1) {
    calls.fails_in--;
    return CU_OK;
  }
  if (!calls.fails_onward) calls.fails_in = 0;
  if (calls.failed == NULL) calls.failed = rows[call].name;
  if (fake_is_losing(calls.failure)) lose_contexts(calls.failure, flags);
  return calls.failure;
}

static cu_result check_context(fake_call call, unsigned flags) {
  const fake_context *context = fake_self.current;
  if (context == NULL && (flags & FAKE_IN_CONTEXT) != 0)
    return fake_violation(CU_INVALID_CONTEXT, "%s without a current context", rows[call].name);
  if (context == NULL) return CU_OK;
  if (context->retained == 0 && (flags & FAKE_IN_CONTEXT) != 0)
    return fake_violation(CU_CONTEXT_IS_DESTROYED, "%s in a context that was released", rows[call].name);
  return (flags & FAKE_BEFORE_START) == 0 ? context->lost : CU_OK;
}

/* What it ends with, were it not a call that does its work all the same. */
static cu_result check_call(fake_call call, unsigned flags) {
  const cu_result failure = take_failure(call, flags);
  if (failure != CU_OK) return failure;
  if (fake_self.is_in_callback)
    return fake_violation(CU_NOT_PERMITTED, "%s from within a host function", rows[call].name);
  if ((flags & FAKE_BEFORE_START) == 0 && !fake_is_initialized)
    return fake_violation(CU_NOT_INITIALIZED, "%s before cuInit", rows[call].name);
  return check_context(call, flags);
}

static bool does_its_work(cu_result code, unsigned flags) {
  if ((flags & FAKE_WHEN_LOST) != 0) return fake_is_losing(code);
  return (flags & FAKE_ALL_THE_SAME) != 0 && code != CU_NOT_PERMITTED && code != CU_NOT_INITIALIZED &&
         code != CU_INVALID_CONTEXT && code != CU_CONTEXT_IS_DESTROYED;
}

cu_result fake_begin(fake_call call, unsigned flags) {
  pthread_mutex_lock(&fake_lock);
  calls.made[call]++;
  fake_self.result = CU_OK;
  const cu_result code = check_call(call, flags);
  if (code == CU_OK || !does_its_work(code, flags)) return code;
  fake_self.result = code;
  return CU_OK;
}

cu_result fake_end(cu_result code) {
  pthread_mutex_unlock(&fake_lock);
  return code == CU_OK ? fake_self.result : code;
}

cu_result fake_violation(cu_result code, const char *format, ...) {
  if (calls.violations < KEPT_VIOLATIONS) {
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(calls.violation[calls.violations], VIOLATION_BYTES, format, arguments);
    va_end(arguments);
  }
  calls.violations++;
  return code;
}

bool fake_is_losing(cu_result code) {
  return code == CU_ECC_UNCORRECTABLE || code == CU_NVLINK_UNCORRECTABLE || code == CU_ILLEGAL_ADDRESS ||
         code == CU_LAUNCH_TIMEOUT || (code >= CU_ASSERT && code <= CU_LAUNCH_FAILED);
}

void fake_calls_forget(void) { memset(&calls, 0, sizeof calls); }

uint64_t fake_calls_of(const char *name) {
  uint64_t sum = 0;
  for (int i = 0; i < CALL_COUNT; i++) {
    if (name == NULL || strcmp(rows[i].name, name) == 0) sum += calls.made[i];
  }
  return sum;
}

void fake_calls_fail(const char *name, uint64_t nth, cu_result code, bool onward) {
  calls.failing = name != NULL ? find_row(name) : CALL_COUNT;
  const bool is_known = name == NULL || calls.failing < CALL_COUNT;
  if (!is_known) (void)fake_violation(code, "no call is named %s", name);
  calls.fails_in = is_known ? nth : 0;
  calls.failure = code;
  calls.fails_onward = onward;
  calls.failed = NULL;
}

const char *fake_calls_failed(void) { return calls.failed; }

void fake_calls_hide(const char *symbol) {
  const int i = find_row(symbol);
  if (i < CALL_COUNT) calls.is_hidden[i] = true;
}

size_t fake_violation_count(void) { return calls.violations; }

void fake_violation_list(char *text, size_t bytes) {
  size_t used = 0;
  if (bytes > 0) text[0] = '\0';
  for (size_t i = 0; i < calls.violations && i < KEPT_VIOLATIONS && used < bytes; i++)
    used += (size_t)snprintf(text + used, bytes - used, "%s\n", calls.violation[i]);
}

/* SPDX-License-Identifier: MIT
 * The text of findings: which work, which allocation, what is wrong and what to do. They are made after the work's
 * function has returned, on the thread that ran it. A failure goes to the work's queue. If the work has none, it goes
 * to the device, whose next synchronisation returns it.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "device/check/check.h"
#include "device/check/check_findings.h"
#include "device/check/check_memory.h"
#include "graph/node_name.h"

enum { ALLOCATION_TEXT = CHECK_NAME_BYTES + RONDO_SIZE_TEXT + 32 };

const char *check_label(char buffer[CHECK_LABEL_BYTES], const check_work *work) {
  const cpu_queue *queue = *work->queue;
  if (work->where.number != RONDO_NO_NODE) return rondo_kind_label(buffer, work->kind, work->name, &work->where);
  rondo_kind_label(buffer, work->kind, work->name, NULL);
  const size_t used = strlen(buffer);
  if (queue != NULL) (void)snprintf(buffer + used, CHECK_LABEL_BYTES - used, " on %s", queue->label);
  return buffer;
}

/* How a mistake is reported: at a byte of the allocation, or at a distance `where` from it. */
static const struct {
  rondo_reason reason;
  const char *where; /* NULL: inside */
  const char *advice;
} reports[] = {
    [CHECK_MISTAKE_EARLY] = {RONDO_REASON_NOT_ALLOCATED, NULL,
                             " before its alloc was reached: order it after the alloc"},
    [CHECK_MISTAKE_ENDED] = {RONDO_REASON_USE_AFTER_FREE, NULL,
                             " after it was freed: order it before the free, or free later"},
    [CHECK_MISTAKE_AFTER_END] = {RONDO_REASON_OUT_OF_RANGE, "past the end of", ": look at its sizes and indices"},
    [CHECK_MISTAKE_BEFORE_BEGIN] = {RONDO_REASON_OUT_OF_RANGE, "before the beginning of",
                                    ": look at its sizes and indices"},
    [CHECK_MISTAKE_READ_ONLY] = {RONDO_REASON_NO_ACCESS, NULL,
                                 ", which it was given to read: declare that it is written, or write a copy"},
    [CHECK_MISTAKE_FOREIGN] = {RONDO_REASON_FOREIGN_ADDRESS, NULL, ""},
};

static const char early_on_host[] =
    " before its alloc was reached: synchronise the stream before, or do it in a host step "
    "(rondo_call_host_step)";

/* "allocation 'scratch' (4.0 KiB)" */
static const char *allocation_text(char buffer[ALLOCATION_TEXT], const check_fault *fault) {
  char size[RONDO_SIZE_TEXT];
  rondo_size_text(size, fault->bytes);
  if (fault->name[0] == '\0')
    (void)snprintf(buffer, ALLOCATION_TEXT, "an unnamed allocation (%s)", size);
  else
    (void)snprintf(buffer, ALLOCATION_TEXT, "allocation '%s' (%s)", fault->name, size);
  return buffer;
}

static void describe(char *buffer, size_t bytes, const check_fault *fault, const check_state *check, bool is_host) {
  char allocation[ALLOCATION_TEXT];
  assert(fault->mistake < sizeof reports / sizeof reports[0]);
  const bool is_early_on_host = is_host && fault->mistake == CHECK_MISTAKE_EARLY;
  const char *const where = reports[fault->mistake].where;
  const char *const advice = is_early_on_host ? early_on_host : reports[fault->mistake].advice;
  allocation_text(allocation, fault);
  if (fault->mistake == CHECK_MISTAKE_FOREIGN)
    (void)snprintf(buffer, bytes, "%p, where no allocation of device %s is: look at the pointers it is given",
                   (const void *)fault->address, check->device->base.name);
  else if (where == NULL)
    (void)snprintf(buffer, bytes, "byte %zu of %s%s", fault->distance, allocation, advice);
  else
    (void)snprintf(buffer, bytes, "%zu byte%s %s %s%s", fault->distance, fault->distance == 1 ? "" : "s", where,
                   allocation, advice);
}

static const char *verb_of(const check_fault *fault) {
  return !fault->known ? "accesses" : (fault->writes ? "writes" : "reads");
}

static rondo_status fail_fault(const check_fault *fault, const check_work *work) {
  char label[CHECK_LABEL_BYTES], what[320];
  describe(what, sizeof what, fault, work->check, false);
  return rondo_fail_node(RONDO_EXECUTION_FAILED, reports[fault->mistake].reason, work->where.number, "%s %s %s",
                         check_label(label, work), verb_of(fault), what);
}

rondo_status check_fail_host(const check_state *check, const check_fault *fault, const char *who) {
  char what[400];
  describe(what, sizeof what, fault, check, true);
  return rondo_fail(RONDO_EXECUTION_FAILED, reports[fault->mistake].reason, "%s %s, on the host, %s", who,
                    verb_of(fault), what);
}

void check_report_faults(const check_run *run, const rondo_saved_error *before) {
  for (uint32_t i = 0; i < run->count && i < CHECK_FAULTS; i++) {
    if (fail_fault(&run->faults[i], run->work) != RONDO_OK) check_fail(run->work->check, *run->work->queue, before);
  }
}

void check_fail(check_state *check, cpu_queue *queue, const rondo_saved_error *before) {
  rondo_saved_error finding;
  rondo_error_save(&finding);
  rondo_error_restore(before);
  atomic_fetch_add_explicit(&check->findings, 1, memory_order_relaxed);
  rondo_log(RONDO_LOG_WARNING, "check", "%s", finding.message);
  if (queue != NULL) {
    rondo_first_failure_keep(&queue->failure, &finding);
    return;
  }
  check_lock(check);
  if (atomic_load_explicit(&check->failed, memory_order_relaxed) == 0) check->failure = finding;
  atomic_store_explicit(&check->failed, 1, memory_order_release);
  check_unlock(check);
}

rondo_status check_take_failure(check_state *check) {
  if (atomic_load_explicit(&check->failed, memory_order_acquire) == 0) return RONDO_OK;
  check_lock(check);
  const bool failed = atomic_exchange(&check->failed, 0) != 0;
  const rondo_status status = failed ? rondo_error_raise(&check->failure) : RONDO_OK;
  check_unlock(check);
  return status;
}

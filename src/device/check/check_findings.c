/* SPDX-License-Identifier: MIT
 * The text of findings: which work, which allocation, what is wrong and what to do. They are made after the function of
 * the work has returned, on the thread that ran it. A failure goes to the queue of the work. If there is none, it goes
 * to the device, whose next synchronisation returns it.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "device/check/check.h"
#include "device/check/check_findings.h"
#include "graph/node_name.h"

const char *check_label(char buffer[RONDO_LABEL_BYTES], const check_work *work) {
  const cpu_queue *queue = *work->queue;
  if (work->where.number != RONDO_NO_NODE) return rondo_kind_label(buffer, work->kind, work->name, &work->where);
  rondo_kind_label(buffer, work->kind, work->name, NULL);
  const size_t used = strlen(buffer);
  if (queue != NULL) (void)snprintf(buffer + used, RONDO_LABEL_BYTES - used, " on %s", queue->label);
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
    [CHECK_MISTAKE_AFTER_END] = {RONDO_REASON_OUT_OF_RANGE, "past the end of", ": check its sizes and indices"},
    [CHECK_MISTAKE_BEFORE_BEGIN] = {RONDO_REASON_OUT_OF_RANGE, "before the beginning of",
                                    ": check its sizes and indices"},
    [CHECK_MISTAKE_READ_ONLY] = {RONDO_REASON_NO_ACCESS, NULL,
                                 ", which it may only read: declare that it is written, or write a copy"},
    [CHECK_MISTAKE_FOREIGN] = {RONDO_REASON_FOREIGN_ADDRESS, NULL, ""},
};

static const char early_on_host[] =
    " before its alloc was reached: synchronise the stream before, or do it in a host step "
    "(rondo_call_host_step)";

static void describe(char *buffer, size_t bytes, const check_fault *fault, const check_state *check, bool is_host) {
  char allocation[RONDO_ALLOCATION_LABEL];
  assert(fault->mistake < sizeof reports / sizeof reports[0]);
  const bool is_early_on_host = is_host && fault->mistake == CHECK_MISTAKE_EARLY;
  const char *const where = reports[fault->mistake].where;
  const char *const advice = is_early_on_host ? early_on_host : reports[fault->mistake].advice;
  rondo_named_size(allocation, fault->name, fault->bytes);
  if (fault->mistake == CHECK_MISTAKE_FOREIGN)
    (void)snprintf(buffer, bytes, "%p, where device %s has no allocation: check the pointers that it gets",
                   (const void *)fault->address, check->device->base.name);
  else if (where == NULL)
    (void)snprintf(buffer, bytes, "byte %zu of allocation %s%s", fault->distance, allocation, advice);
  else
    (void)snprintf(buffer, bytes, "%zu byte%s %s allocation %s%s", fault->distance, fault->distance == 1 ? "" : "s",
                   where, allocation, advice);
}

static const char *verb_of(const check_fault *fault) {
  return !fault->known ? "accesses" : (fault->writes ? "writes" : "reads");
}

static rondo_status fail_fault(const check_fault *fault, const check_work *work) {
  char label[RONDO_LABEL_BYTES], what[320];
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
  rondo_first_failure_keep(queue != NULL ? &queue->failure : &check->failure, &finding);
}

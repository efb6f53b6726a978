/* SPDX-License-Identifier: MIT
 * Findings in words: which work, which allocation, what is wrong and what mends it. Made after the work's function has
 * returned, on the thread that ran it. A failure goes to the work's queue, or, when the work has none, to the device,
 * whose next synchronisation returns it.
 */
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

static rondo_reason reason_of(check_mistake mistake) {
  switch (mistake) {
    case CHECK_MISTAKE_EARLY:
      return RONDO_REASON_NOT_ALLOCATED;
    case CHECK_MISTAKE_ENDED:
      return RONDO_REASON_USE_AFTER_FREE;
    case CHECK_MISTAKE_BEHIND:
    case CHECK_MISTAKE_AHEAD:
      return RONDO_REASON_OUT_OF_RANGE;
    case CHECK_MISTAKE_FOREIGN:
      return RONDO_REASON_FOREIGN_ADDRESS;
    case CHECK_MISTAKE_READ_ONLY:
      return RONDO_REASON_NO_ACCESS;
  }
  return RONDO_REASON_NONE;
}

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
  const char *const plural = fault->distance == 1 ? "" : "s";
  allocation_text(allocation, fault);
  switch (fault->mistake) {
    case CHECK_MISTAKE_EARLY:
      (void)snprintf(buffer, bytes, "byte %zu of %s before its alloc was reached: %s", fault->distance, allocation,
                     is_host ? "synchronise the stream before, or do it in a host step (rondo_call_host_step)"
                             : "order it after the alloc");
      break;
    case CHECK_MISTAKE_ENDED:
      (void)snprintf(buffer, bytes, "byte %zu of %s after it was freed: order it before the free, or free later",
                     fault->distance, allocation);
      break;
    case CHECK_MISTAKE_BEHIND:
      (void)snprintf(buffer, bytes, "%zu byte%s past the end of %s: look at its sizes and indices", fault->distance,
                     plural, allocation);
      break;
    case CHECK_MISTAKE_AHEAD:
      (void)snprintf(buffer, bytes, "%zu byte%s before the beginning of %s: look at its sizes and indices",
                     fault->distance, plural, allocation);
      break;
    case CHECK_MISTAKE_READ_ONLY:
      (void)snprintf(buffer, bytes,
                     "byte %zu of %s, which it was given to read: declare that it is written, or "
                     "write a copy",
                     fault->distance, allocation);
      break;
    case CHECK_MISTAKE_FOREIGN:
      (void)snprintf(buffer, bytes, "%p, where no allocation of device %s is: look at the pointers it is given",
                     (const void *)fault->address, check->device->base.name);
      break;
  }
}

static const char *verb_of(const check_fault *fault) {
  return !fault->known ? "accesses" : (fault->writes ? "writes" : "reads");
}

static rondo_status fail_fault(const check_fault *fault, const check_work *work) {
  char label[CHECK_LABEL_BYTES], what[320];
  describe(what, sizeof what, fault, work->check, false);
  return rondo_fail_node(RONDO_EXECUTION_FAILED, reason_of(fault->mistake), work->where.number, "%s %s %s",
                         check_label(label, work), verb_of(fault), what);
}

rondo_status check_fail_host(const check_state *check, const check_fault *fault, const char *who) {
  char what[400];
  describe(what, sizeof what, fault, check, true);
  return rondo_fail(RONDO_EXECUTION_FAILED, reason_of(fault->mistake), "%s %s, on the host, %s", who, verb_of(fault),
                    what);
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

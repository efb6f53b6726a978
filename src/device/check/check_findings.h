/* SPDX-License-Identifier: MIT
 * The text of findings: which work, which allocation, what is wrong and what to do.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_FINDINGS_H
#define RONDO_DEVICE_CHECK_CHECK_FINDINGS_H

#include "device/check/check.h"

const char *check_label(char buffer[RONDO_LABEL_BYTES], const check_work *work);

/* Makes the run's faults its queue's failure. `before` is as of check_fail. */
void check_report_faults(const check_run *run, const rondo_saved_error *before);

/* The thread's last error becomes the failure of the queue, or of the device if `queue` is NULL. `before` becomes the
 * thread's last error again, because the current call may succeed. */
void check_fail(check_state *check, cpu_queue *queue, const rondo_saved_error *before);

/* EXECUTION_FAILED for a fault of host code, outside of works. */
RONDO_MUST_USE rondo_status check_fail_host(const check_state *check, const check_fault *fault, const char *who);

#endif

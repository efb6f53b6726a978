/* SPDX-License-Identifier: MIT
 * The handler of SIGSEGV and SIGBUS: takes the faults of works.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_FAULT_H
#define RONDO_DEVICE_CHECK_CHECK_FAULT_H

#include "device/check/check.h"

RONDO_MUST_USE rondo_status check_handler_enter(check_state *check); /* from now on the device's faults are taken */
void check_handler_leave(check_state *check);

/* Installs the handler again if another one was installed meanwhile. */
void check_handler_renew(void);
const char *check_handler_unavailable(void); /* why it cannot be set in this process; "" if it can */
void check_run_begin(check_run *run, const check_work *work);
void check_run_end(check_run *run);

#endif

/* SPDX-License-Identifier: MIT
 * Whether recording a form pays (FW-8): its last warm-up is metered, and what that says is inspected when it would be
 * recorded. For functions with RONDO_RECORD_AUTO alone. What cannot be metered is recorded.
 */
#ifndef RONDO_TREE_RECORD_RECORD_GAIN_H
#define RONDO_TREE_RECORD_RECORD_GAIN_H

#include "tree/tree_internal.h"

/* Around the body of a run that may be the last warm-up of the form. */
void rondo_estimate_begin(rondo_form *form, rondo_call *call);
void rondo_estimate_end(rondo_form *form, rondo_call *call, rondo_status status);

/* Before the form is recorded: makes it one that is skipped, NO_GAIN, when that does not pay. May wait for the form's
 * last run. Fails only where the device is lost. */
RONDO_MUST_USE rondo_status rondo_estimate_decide(const rondo_function *function, rondo_form *form);

#endif

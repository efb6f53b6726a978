/* SPDX-License-Identifier: MIT
 * Decides whether recording a form pays (FW-8). The last warm-up is metered, and the result is evaluated when the form
 * is about to be recorded. Only for functions with RONDO_RECORD_AUTO. A form that cannot be metered is recorded.
 */
#ifndef RONDO_TREE_RECORD_RECORD_GAIN_H
#define RONDO_TREE_RECORD_RECORD_GAIN_H

#include "tree/tree_internal.h"

/* Called before and after the body of a run that may be the last warm-up of the form. */
void rondo_estimate_begin(rondo_form *form, rondo_call *call);
void rondo_estimate_end(rondo_form *form, rondo_call *call, rondo_status status);

/* Called before the form is recorded. If recording does not pay, the form is skipped with NO_GAIN. May wait for the
 * last run of the form. Fails only if the device is lost. */
RONDO_MUST_USE rondo_status rondo_estimate_decide(const rondo_function *function, rondo_form *form);

#endif

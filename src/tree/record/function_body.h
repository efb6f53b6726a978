/* SPDX-License-Identifier: MIT
 * What a body sees of its call: stream, inputs, places for outputs, host steps, and ways to say what it must not
 * be recorded for.
 */
#ifndef RONDO_TREE_RECORD_FUNCTION_BODY_H
#define RONDO_TREE_RECORD_FUNCTION_BODY_H

#include "tree/tree_internal.h"

/* Calls the body. A failure but NOT_READY has words, if only that no call of the library says why. Its outputs are
 * in call->outputs, without gaps. */
RONDO_MUST_USE rondo_status rondo_body_run(rondo_call *call);
void rondo_body_free(rondo_call *call);

/* Keeps the values that the call's launches were given as the form's. True: some are not those of the run before, and
 * the message says which. */
bool rondo_body_compare_values(rondo_form *form, rondo_call *call, char message[RONDO_TREE_MESSAGE]);
rondo_call *rondo_call_outermost(rondo_call *call); /* that this one is a part of, or itself */

/* Takes a host step, which is no body: it calls no functions. */
RONDO_MUST_USE rondo_status rondo_body_take_step(rondo_call *call, rondo_host_function step, void *user);

#endif

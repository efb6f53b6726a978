/* SPDX-License-Identifier: MIT
 * Why calls are run eagerly: names, counters, the log's line, and the error that a strict tree makes of it.
 */
#ifndef RONDO_TREE_SKIP_REASON_H
#define RONDO_TREE_SKIP_REASON_H

#include "tree/tree_internal.h"

/* skip_reason.c: why a call is run eagerly. Counts it, keeps message and reason, and logs it. */
void rondo_skip_note(rondo_function *function, rondo_skip skip, const char *message);
void rondo_skip_forget(rondo_function *function); /* frees what was kept */

/* Whether the reason is an error in a strict tree; and that error. */
bool rondo_skip_is_strict(rondo_skip skip);
rondo_status rondo_skip_refuse(const rondo_function *function, rondo_skip skip, const char *message);

#endif

/* SPDX-License-Identifier: MIT
 * Why calls run eagerly: names, counters, the log line, and the error in a strict tree.
 */
#ifndef RONDO_TREE_SKIP_REASON_H
#define RONDO_TREE_SKIP_REASON_H

#include "tree/tree_internal.h"

/* skip_reason.c: notes why a call runs eagerly. Counts it, keeps message and reason, and logs it. */
void rondo_skip_note(rondo_function *function, rondo_skip skip, const char *message);
void rondo_skip_forget(rondo_function *function); /* frees what was kept */

/* Whether the reason is an error in a strict tree; and that error. */
bool rondo_skip_is_strict(rondo_skip skip);
rondo_status rondo_skip_refuse(const rondo_function *function, rondo_skip skip, const char *message);

#endif

/* SPDX-License-Identifier: MIT
 * Why calls run eagerly: names, counters, the log line, and the error in a strict tree.
 */
#ifndef RONDO_TREE_SKIP_REASON_H
#define RONDO_TREE_SKIP_REASON_H

#include "tree/tree_internal.h"

/* Counts and logs why a call runs eagerly, and keeps the message. */
void rondo_skip_note(rondo_function *function, rondo_skip skip, const char *message);
/* Frees the kept messages. */
void rondo_skip_forget(rondo_function *function);

/* Whether the reason is an error in a strict tree; and that error. */
bool rondo_skip_is_strict(rondo_skip skip);
rondo_status rondo_skip_refuse(const rondo_function *function, rondo_skip skip, const char *message);

#endif

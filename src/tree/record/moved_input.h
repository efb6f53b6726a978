/* SPDX-License-Identifier: MIT
 * Static inputs that were elsewhere when the function was recorded (FW-7): which, where, and what to do about it.
 */
#ifndef RONDO_TREE_RECORD_MOVED_INPUT_H
#define RONDO_TREE_RECORD_MOVED_INPUT_H

#include "tree/tree_internal.h"

/* The call whose key is in tree->words is about to be recorded, or is not as there are as many as there may be:
 * compares it with the latest recording of the form in the same place. Whether a static input is not where it was,
 * which then is noted in function->moved. */
bool rondo_moved_look(rondo_function *function, const rondo_form *form, bool is_full);

#endif

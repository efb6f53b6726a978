/* SPDX-License-Identifier: MIT
 * Checks whether comparing recordings found all uses of the inputs' addresses.
 */
#ifndef RONDO_TREE_RECORD_CHECK_INPUTS_H
#define RONDO_TREE_RECORD_CHECK_INPUTS_H

#include "tree/record/record_call.h"

/* Checks a recorded call before its first launch. If it fails the check, its inputs are copied. Returns an error only
 * if the device is lost. */
RONDO_MUST_USE rondo_status rondo_recorder_check(rondo_recorder *recorder);

#endif

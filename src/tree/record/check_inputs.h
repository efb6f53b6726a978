/* SPDX-License-Identifier: MIT
 * Checks whether the addresses that were found by comparing recordings are all that the work uses.
 */
#ifndef RONDO_TREE_RECORD_CHECK_INPUTS_H
#define RONDO_TREE_RECORD_CHECK_INPUTS_H

#include "tree/record/record_call.h"

/* check_inputs.c: tests these addresses before they are used. The recorded call is complete except for its first
 * launch. If the work fails the check, its inputs are copied. Fails only if the device fails. */
RONDO_MUST_USE rondo_status rondo_recorder_check(rondo_recorder *recorder);

#endif

/* SPDX-License-Identifier: MIT
 * Whether addresses that were found by comparing recordings are all there are.
 */
#ifndef RONDO_TREE_RECORD_CHECK_INPUTS_H
#define RONDO_TREE_RECORD_CHECK_INPUTS_H

#include "tree/record/record_call.h"

/* check_inputs.c: what was found so is tried before it is trusted, with the recorded call made but for its first
 * launch; inputs of work that does not pass are copied. Fails only with the device. */
RONDO_MUST_USE rondo_status rondo_recorder_check(rondo_recorder *recorder);

#endif

/* SPDX-License-Identifier: MIT
 * Finds addresses that no parameter declares. The body is recorded twice more, with its moving inputs elsewhere and
 * then at their first addresses, and the patch set compares the recordings.
 */
#ifndef RONDO_TREE_RECORD_FIND_INPUTS_H
#define RONDO_TREE_RECORD_FIND_INPUTS_H

#include "tree/record/record_call.h"

/* find_inputs.c: records the body twice more, with `blocks` from the first recording. If that fails, only declared
 * sites are used. Logs what it found. */
void rondo_recorder_find(rondo_recorder *recorder);
void rondo_recorder_find_free(rondo_recorder *recorder);
void rondo_recorder_log_findings(const rondo_recorder *recorder, const rondo_patch_set *patches);

#endif

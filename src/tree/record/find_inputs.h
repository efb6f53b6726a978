/* SPDX-License-Identifier: MIT
 * Finds uses of addresses that no parameter declares, by capturing the body twice more and comparing the graphs.
 */
#ifndef RONDO_TREE_RECORD_FIND_INPUTS_H
#define RONDO_TREE_RECORD_FIND_INPUTS_H

#include "tree/record/record_call.h"

/* Captures the body twice more. If that fails, only declared uses are patched, and the log says why. */
void rondo_recorder_find(rondo_recorder *recorder);
/* Frees these graphs. */
void rondo_recorder_find_free(rondo_recorder *recorder);
/* Logs what comparing the graphs found. */
void rondo_recorder_log_findings(const rondo_recorder *recorder, const rondo_patch_set *patches);

#endif

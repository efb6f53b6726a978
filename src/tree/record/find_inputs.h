/* SPDX-License-Identifier: MIT
 * Finding what no parameter declares: the body is recorded twice more, with its moving inputs elsewhere and then
 * where they were, and the patch set compares the recordings.
 */
#ifndef RONDO_TREE_RECORD_FIND_INPUTS_H
#define RONDO_TREE_RECORD_FIND_INPUTS_H

#include "tree/record/record_call.h"

/* find_inputs.c: records the body twice more, with `blocks` the blocks of the first recording. Where that fails, there
 * is nothing to compare with, and sites are what is declared. What was found is said in the log. */
void rondo_recorder_find(rondo_recorder *recorder);
void rondo_recorder_find_free(rondo_recorder *recorder);
void rondo_recorder_say_findings(const rondo_recorder *recorder, const rondo_patch_set *patches);

#endif

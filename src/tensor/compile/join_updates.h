/* SPDX-License-Identifier: MIT
 * Horizontal fusion: operations of a row that has a `join` (tensor/program/operator.h) run as one kernel where that
 * costs hardly any memory. So a network of fifty parameters is not updated by fifty launches.
 */
#ifndef RONDO_TENSOR_COMPILE_JOIN_UPDATES_H
#define RONDO_TENSOR_COMPILE_JOIN_UPDATES_H

#include "tensor/compile/earlier_plans.h"
#include "tensor/compile/schedule.h"

/* For a schedule that has its order: moves operations next to each other, and updates `joined`, the order, its
 * dependencies and its peak. The peak rises by at most one part in RONDO_JOIN_SHARE. With RONDO_FUSION_NEVER each
 * operation is a kernel of its own. Errors: OUT_OF_MEMORY. */
#define RONDO_JOIN_SHARE 64
RONDO_MUST_USE rondo_status rondo_joins_make(const rondo_program *program, const rondo_schedule_sizes *sizes,
                                             rondo_fusion_policy fusion, rondo_schedule *schedule);

/* Replaces the order and what is joined by those of an earlier program of the same structure, if the peak rises by at
 * most one part in RONDO_EARLIER_SHARE and all of that may be joined here, too. Errors: OUT_OF_MEMORY. */
#define RONDO_EARLIER_SHARE 100
RONDO_MUST_USE rondo_status rondo_joins_prefer(const rondo_program *program, const rondo_schedule_sizes *sizes,
                                               const rondo_earlier_plan *earlier, rondo_schedule *schedule,
                                               bool *out_taken);

#endif

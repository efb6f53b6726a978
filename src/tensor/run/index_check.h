/* SPDX-License-Identifier: MIT
 * How a wrong index makes a run fail, and how that keeps the run from changing states. A kernel cannot return an error,
 * so it writes the wrong index into a cell (rondo_check_index), one cell for each operation. A call that waits for the
 * program reads the cells. The cells are sticky: a later run does not clear what an earlier one found. A finding is
 * returned once, and the cells are cleared.
 *
 * The cells are host memory that kernels write directly (pinned on CUDA). A run without wrong indices does not access
 * them, and no replay copies them to the host. A run with wrong indices makes a few accesses across the bus. Only one
 * device writes a cell and the host reads it when the device is idle, so device-scope atomics are enough.
 *
 * A host function at the end of the graph would add a round trip to every replay for a rare mistake. It is not needed:
 * row 0, which the kernels use instead, is harmless until the host checks.
 *
 * Updates cannot wait for the host, so kernels that check leave a mark in device memory as well: the gate, which a
 * program has if it has both checks and updates. Updates come after all checks (tensor/compile/operator_order.c), read
 * the marks, and do nothing if one says that this run failed. Runs have numbers, so nothing has to be reset between
 * them and no kernel or copy is added: a check that fails writes the number plus one; the first check copies the number
 * to where updates read it, and the first update sets the number of the next run.
 */
#ifndef RONDO_TENSOR_RUN_INDEX_CHECK_H
#define RONDO_TENSOR_RUN_INDEX_CHECK_H

#include <rondo/device.h>
#include <rondo/program.h>

#include "base/array.h"

typedef struct rondo_index_check {
  const char *operator_name; /* static */
  uint32_t operation;
  const char *input;                   /* the name of the operator's indices; static */
  const char *rule;                    /* the end of the message; static */
  const char *repeat_rule;             /* if the index is in range: why it is wrong; static; NULL: it never is */
  size_t bounds[RONDO_MAX_DIMENSIONS]; /* right: 0 <= index < bound; 0: the index is a rank on which the run failed */
  uint32_t columns;                    /* an index at position i has bound i % columns */
  bool is_wide;                        /* indices are I64; the cell holds the nearest I32 */
} rondo_index_check;

/* In device memory; zeroed before the first run. Updates read it from `begun` on. Checks that find nothing write
 * nothing there, because several run concurrently. */
typedef struct rondo_update_gate {
  uint64_t run;      /* the number of the next run, or of the current one until one of its updates has begun */
  uint64_t begun;    /* the number of the current run, once the first check has begun */
  uint64_t failed[]; /* one for each check: the number plus one of the last run in which it failed; 0: none */
} rondo_update_gate;

typedef struct rondo_index_checks {
  rondo_allocator allocator;
  rondo_device *device;
  uint64_t *cells; /* of rondo_host_malloc; zero: no finding */
  size_t capacity; /* 0: there are no cells */
  RONDO_ARRAY(rondo_index_check) items;
} rondo_index_checks;

/* For `capacity` cells. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_index_checks_init(rondo_index_checks *checks, const rondo_allocator *allocator,
                                                    rondo_device *device, size_t capacity);
/* No work uses the cells. A zeroed one is fine. */
RONDO_MUST_USE rondo_status rondo_index_checks_deinit(rondo_index_checks *checks);

RONDO_MUST_USE rondo_status rondo_index_checks_add(rondo_index_checks *checks, const rondo_index_check *check,
                                                   void **out_cell);

/* For both, work that writes the cells has been waited for. Judge: EXECUTION_FAILED with OUT_OF_RANGE if there is a
 * finding, naming the operator, the index and its position; the cells are clear then. */
void rondo_index_checks_clear(rondo_index_checks *checks);
RONDO_MUST_USE rondo_status rondo_index_checks_judge(rondo_index_checks *checks);

#endif

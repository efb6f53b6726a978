/* SPDX-License-Identifier: MIT
 * How a wrong index makes a run fail. A kernel cannot return an error, so it writes the wrong index into a cell on the
 * device (rondo_check_index), one cell an operation; whoever waits for the program copies the cells to the host and
 * looks. The cells are sticky: a run that is right does not take back what an earlier one found. A finding is told once
 * and the cells are cleared.
 *
 * Not a host function at the end of the graph: that would put a host round trip into every replay, for a mistake that
 * is rare, and what the kernels do in its stead (row 0) is harmless until the host looks.
 */
#ifndef RONDO_TENSOR_INDEX_CHECK_H
#define RONDO_TENSOR_INDEX_CHECK_H

#include <rondo/stream.h>

#include "base/array.h"

typedef struct rondo_index_check {
  const char *operator_name; /* static */
  uint32_t operation;
  const char *input; /* what the operator calls its indices; static */
  const char *rule;  /* what is told beside its range; static */
  size_t bound;      /* right: 0 <= index < bound */
  bool is_wide;      /* indices of 64 bits, of which the cell holds the nearest of 32 */
} rondo_index_check;

typedef struct rondo_index_checks {
  rondo_allocator allocator;
  void *cells;      /* on the device; zero at first */
  uint64_t *copies; /* on the host */
  size_t room;
  RONDO_ARRAY(rondo_index_check) items;
} rondo_index_checks;

/* `cells` has `room` cells of 8 bytes. */
RONDO_MUST_USE rondo_status rondo_index_checks_init(rondo_index_checks *checks, const rondo_allocator *allocator,
                                                    void *cells, size_t room);
void rondo_index_checks_deinit(rondo_index_checks *checks); /* a zeroed one is fine */

RONDO_MUST_USE rondo_status rondo_index_checks_add(rondo_index_checks *checks, const rondo_index_check *check,
                                                   void **out_cell);

/* Queues the copy to the host; after the stream is synchronised, judge says what was found: EXECUTION_FAILED with
 * OUT_OF_RANGE, naming the operator, the index and its position, and queues clearing the cells. */
RONDO_MUST_USE rondo_status rondo_index_checks_queue(rondo_index_checks *checks, rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo_index_checks_judge(rondo_index_checks *checks, rondo_stream *stream);

#endif

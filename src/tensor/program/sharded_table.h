/* SPDX-License-Identifier: MIT
 * Tables whose rows are divided between the ranks of a data-parallel program (<rondo/data_parallel.h>, Tables). A rank
 * has as many rows as every other: rank r those from r * rows on. The last ranks may have some that nobody looks up.
 *
 * A look-up sorts indices into slots, `slots` for each owner, sends the slots to the owners by all-to-all, and gets the
 * rows back by all-to-all. It then is a look-up of the rows that came back. All of these operators have a gradient, the
 * look-ups and the all-to-all their usual one, so an owner adds the gradients of its rows in the order of the ranks
 * and, of one rank, in that of the indices. An all-gather of the indices would need no sorting, but then an owner would
 * have to answer to each rank with as many rows as that has indices.
 */
#ifndef RONDO_TENSOR_PROGRAM_SHARDED_TABLE_H
#define RONDO_TENSOR_PROGRAM_SHARDED_TABLE_H

#include "tensor/program/program_internal.h"

/* Checks the options of a table, and returns the shape of a rank's part. */
RONDO_MUST_USE rondo_status rondo_table_divide(const char *call, const rondo_program *program, rondo_type type,
                                               const size_t *shape, size_t rank, const rondo_state_options *options,
                                               size_t part[2]);

/* If the table is sharded, adds the look-up and replaces the table by the rows that came back, and the indices by
 * theirs. `offsets`: of bags whose last offset is the number of indices that are looked up; RONDO_NO_VALUE: all are. */
RONDO_MUST_USE rondo_status rondo_table_fetch(rondo_program *program, uint32_t offsets, uint32_t *inout_table,
                                              uint32_t *inout_indices);

/* How many indices an owner gets from all ranks, of look-ups of so many in a sharded table. SIZE_MAX: too many. */
size_t rondo_table_received(const rondo_program *program, uint32_t table, size_t indices);

/* SHAPE if a public operator reads a sharded table otherwise. */
RONDO_MUST_USE rondo_status rondo_table_check_reader(const rondo_program *program, const rondo_operation *operation);

/* The sizes of the attributes of route_indices. */
enum { RONDO_ROUTE_RANKS, RONDO_ROUTE_SLOTS, RONDO_ROUTE_PART, RONDO_ROUTE_ROWS, RONDO_ROUTE_SIZES };

#endif

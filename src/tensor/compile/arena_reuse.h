/* SPDX-License-Identifier: MIT
 * What an arena that was planned for one order asks of all others: where two values, or a workspace, share bytes, all
 * that uses the first must be over before what first writes the second begins.
 */
#ifndef RONDO_TENSOR_COMPILE_ARENA_REUSE_H
#define RONDO_TENSOR_COMPILE_ARENA_REUSE_H

#include "base/array.h"
#include "tensor/compile/layout.h"

/* `from` comes before `to`: positions of the order, each that of the first operation of its kernel. */
typedef struct rondo_reuse_edge {
  uint32_t from, to;
} rondo_reuse_edge;

typedef RONDO_ARRAY(rondo_reuse_edge) rondo_reuse_edges;

/* Adds those that, with the schedule's dependencies, imply all; an edge perhaps twice. Errors: OUT_OF_MEMORY; the list
 * is then to be freed as well. */
RONDO_MUST_USE rondo_status rondo_reuse_list(const rondo_program *program, const rondo_layout *layout,
                                             rondo_reuse_edges *inout_edges);

#endif

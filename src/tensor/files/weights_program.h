/* SPDX-License-Identifier: MIT
 * What sets of weights and compiled programs exchange: the states, for checkpoints the cells too.
 */
#ifndef RONDO_TENSOR_FILES_WEIGHTS_PROGRAM_H
#define RONDO_TENSOR_FILES_WEIGHTS_PROGRAM_H

#include "tensor/files/weights_internal.h"
#include "tensor/run/compiled.h"

/* Which values of a compiled program. */
typedef struct rondo_kept_values {
  bool cells;                     /* beside the states */
  bool (*only)(const char *name); /* those whose name it accepts; NULL: all */
} rondo_kept_values;

/* As the public functions of these names. Apply is for weights that were checked. */
RONDO_MUST_USE rondo_status rondo_weights_gather_kept(rondo_weights *weights, rondo_compiled *compiled,
                                                      const rondo_kept_values *kept);
RONDO_MUST_USE rondo_status rondo_weights_check_kept(const rondo_weights *weights, const rondo_compiled *compiled,
                                                     const rondo_kept_values *kept);
RONDO_MUST_USE rondo_status rondo_weights_apply_kept(const rondo_weights *weights, rondo_compiled *compiled,
                                                     const rondo_kept_values *kept);

#endif

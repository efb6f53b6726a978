/* SPDX-License-Identifier: MIT
 * The values that sets of weights and compiled programs exchange: states, and for checkpoints also cells.
 */
#ifndef RONDO_TENSOR_FILES_WEIGHTS_PROGRAM_H
#define RONDO_TENSOR_FILES_WEIGHTS_PROGRAM_H

#include "base/component.h"
#include "tensor/files/weights_internal.h"
#include "tensor/run/compiled.h"

/* Selects values of a compiled program. */
typedef struct rondo_kept_values {
  bool cells;                /* in addition to the states */
  rondo_weight_filter only;  /* only values that it chooses; NULL: all */
  void *user;                /* of `only` */
  const char *const *except; /* and no value with one of these names */
  size_t except_count;
  bool maps;           /* apply maps large states from files of the set that do not change while the program exists */
  bool moves;          /* apply frees each tensor of the set as soon as it is written */
  bool between_rounds; /* and none that has a meaning only within a round of accumulated runs; set by gather */
} rondo_kept_values;

/* Whether `only` chooses the value. */
static inline bool rondo_chosen(const rondo_kept_values *kept, const char *name) {
  return kept->only == NULL || kept->only(name, kept->user);
}

/* Whether the set lacks the state because it was gathered between two rounds of accumulated runs. */
bool rondo_weights_leave_out(const rondo_weights *weights, const rondo_named_value *value, const char *name);

/* As the public functions with these names. The weights passed to apply must have been checked. */
RONDO_MUST_USE rondo_status rondo_weights_gather_kept(rondo_weights *weights, rondo_compiled *compiled,
                                                      const rondo_kept_values *kept);
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_weights_check_kept(const rondo_weights *weights,
                                                                   const rondo_compiled *compiled,
                                                                   const rondo_kept_values *kept);
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_weights_apply_kept(const rondo_weights *weights,
                                                                   rondo_compiled *compiled,
                                                                   const rondo_kept_values *kept);

#endif

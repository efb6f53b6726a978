/* SPDX-License-Identifier: MIT
 * Where the operations of a program run and its states lie, by the rules of <rondo/placement.h>. Places are indices of
 * the device list; only the names of devices are used, for messages. Pure.
 */
#ifndef RONDO_TENSOR_DIVIDE_OPERATOR_PLACEMENT_H
#define RONDO_TENSOR_DIVIDE_OPERATOR_PLACEMENT_H

#include <rondo/placement.h>

#include "base/component.h"
#include "tensor/program/program_internal.h"

/* The devices of a list. */
typedef struct rondo_placement_list {
  size_t count;
  uint32_t first[RONDO_MAX_PLACES]; /* by place: the first place of the same device */
  char names[RONDO_MAX_PLACES][32];
  const rondo_placement_rule *rules;
  size_t rule_count;
} rondo_placement_list;

/* Of these devices, with these rules, which stay the caller's. Errors, `caller` first:
 * INVALID_ARGUMENT with NULL_ARGUMENT, OUT_OF_RANGE and BAD_OPTIONS as rondo_compile_divided. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_placement_list_make(const char *caller, rondo_device *const *devices,
                                                                    size_t device_count,
                                                                    const rondo_placement_rule *rules,
                                                                    size_t rule_count, rondo_placement_list *out);

/* Each place is the first one of its device. */
typedef struct rondo_placements {
  size_t operations, values; /* of the program */
  bool *runs;                /* by operation: whether it runs; also views */
  uint32_t *of_operation;
  uint32_t *of_value;     /* of states; RONDO_NO_VALUE: no operation that runs reads it, and it was not placed */
  uint32_t *first_change; /* of states: the first operation that changes it; RONDO_NO_VALUE: none */
} rondo_placements;

/* The arrays are scratch memory. Errors: INVALID_ARGUMENT with NONE (no output and no update), OUT_OF_RANGE,
 * BAD_OPTIONS; OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_placements_find(const rondo_program *program, const rondo_placement_list *list,
                                                  rondo_scratch *scratch, rondo_placements *out);

/* Whether the operation sees the state after a change in the same run. */
bool rondo_placements_reads_changed(const rondo_program *program, const rondo_placements *places, uint32_t operation,
                                    uint32_t state);

static inline bool rondo_value_is_state(const rondo_program *program, uint32_t value) {
  return value != RONDO_NO_VALUE && program->values.items[value].kind == RONDO_VALUE_STATE;
}

#endif

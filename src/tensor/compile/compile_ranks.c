/* SPDX-License-Identifier: MIT
 * Checks of a data-parallel program, before ranks wait for each other.
 */
#include "tensor/compile/compile_ranks.h"

#include "exec/collective/communicator.h"
#include "tensor/program/operators.h"

static rondo_status check_policies(const char *call, const rondo_program *program, const rondo_compile_options *given) {
  const bool records_by_time = given->record == RONDO_RECORD_AUTO;
  if (!records_by_time && (given->executor == NULL || given->executor_policy != RONDO_EXECUTOR_AUTO)) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                    "%s: with %s, ranks would measure, and run %s a different number of times: use %s", call,
                    records_by_time ? "RONDO_RECORD_AUTO" : "RONDO_EXECUTOR_AUTO", program->label,
                    records_by_time ? "RONDO_RECORD_ALWAYS or _NEVER" : "RONDO_EXECUTOR_ALWAYS, or no executor");
}

/* A check that comes after the agreement of all ranks could fail on one of them alone. */
static rondo_status check_checks(const char *call, const rondo_program *program) {
  bool agreed = false;
  for (size_t i = 0; i < program->operations.count; i++) {
    const rondo_operator *row = program->operations.items[i].row;
    if (row->checks_indices && (agreed || program->ranks.turn == RONDO_NO_VALUE))
      return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                        "%s: %s (operator %zu of %s) checks indices and was added after the optimizer: add it before, "
                        "so that a wrong index stops the run on all ranks",
                        call, row->name, i, program->label);
    agreed = agreed || row == &rondo_operator_agree || row == &rondo_operator_bucket_put;
  }
  return RONDO_OK;
}

rondo_status rondo_compile_check_ranks(const char *call, const rondo_program *program, const rondo_device *device,
                                       const rondo_compile_options *given) {
  const rondo_communicator *communicator = program->ranks.communicator;
  if (communicator == NULL) return RONDO_OK;
  if (program->optimizer == NULL && program->ranks.turn == RONDO_NO_VALUE)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE,
                      "%s: %s is data-parallel, but has no gradients to reduce: add rondo_program_adam or "
                      "rondo_program_sgd",
                      call, program->label);
  if (communicator->device != device)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                      "%s: the communicator of %s is of device '%s', and it is compiled for '%s': both must be of one "
                      "rondo_device",
                      call, program->label, communicator->device->name, device->name);
  RONDO_TRY(check_policies(call, program, given));
  return check_checks(call, program);
}

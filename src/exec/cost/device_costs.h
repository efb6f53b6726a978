/* SPDX-License-Identifier: MIT
 * What a device costs, measured once or given. The device keeps it in a slot.
 *
 * Threads: any. One thread measures, without a lock; others that ask in the meantime wait for it.
 */
#ifndef RONDO_EXEC_COST_DEVICE_COSTS_H
#define RONDO_EXEC_COST_DEVICE_COSTS_H

#include "exec/cost/meter.h"

/* The costs as they are known now; of what is not known, those that are not measured alone. */
void rondo_costs_known(rondo_device *device, rondo_costs *out);

RONDO_MUST_USE rondo_status rondo_costs_gates(rondo_device *device, rondo_gates **out);

/* Medians: sorts the samples. 0 of none. */
double rondo_median(double *samples, size_t count);

#endif

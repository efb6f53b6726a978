/* SPDX-License-Identifier: MIT
 * The costs of a device, measured once or set by the user. The device keeps them in a slot.
 *
 * Threads: any. One thread measures, without a lock. Others that need the costs meanwhile wait for it.
 */
#ifndef RONDO_EXEC_COST_DEVICE_COSTS_H
#define RONDO_EXEC_COST_DEVICE_COSTS_H

#include "exec/cost/meter.h"

/* The costs that are known now, without measuring. Unknown costs are 0, except for those of moving inputs. */
void rondo_costs_known(rondo_device *device, rondo_costs *out);

RONDO_MUST_USE rondo_status rondo_costs_gates(rondo_device *device, rondo_gates **out);

/* The median; sorts the samples. 0 if there are none. */
double rondo_median(double *samples, size_t count);

#endif

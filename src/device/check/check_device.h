/* SPDX-License-Identifier: MIT
 * Making a CPU device a checking one, and taking it down: its tables of functions are the plain device's but for
 * what is different here, so that plain devices know nothing of checking.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_DEVICE_H
#define RONDO_DEVICE_CHECK_CHECK_DEVICE_H

#include "device/check/check.h"

/* Makes the device a checking one (check_device.c). UNAVAILABLE when the process's signal handlers cannot be set. */
RONDO_MUST_USE rondo_status check_open(cpu_device *device, const rondo_device_options *options);

#endif

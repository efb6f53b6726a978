/* SPDX-License-Identifier: MIT
 * Running a launch in several of the orders that its edges allow, one node after another, from the same memory
 * each time.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_ORDERS_H
#define RONDO_DEVICE_CHECK_CHECK_ORDERS_H

#include "device/check/check.h"

/* Runs a launch in several orders; false when it is to be run as on other devices. */
bool check_explore(cpu_executable *executable, cpu_queue *queue);

#endif

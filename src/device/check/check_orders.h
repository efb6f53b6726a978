/* SPDX-License-Identifier: MIT
 * Runs a launch in several of the orders that its edges allow.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_ORDERS_H
#define RONDO_DEVICE_CHECK_CHECK_ORDERS_H

#include "device/check/check.h"

/* Runs a launch in several orders. False if it is to run as on other devices. */
bool check_explore(cpu_executable *executable, cpu_queue *queue);

#endif

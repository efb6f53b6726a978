/* SPDX-License-Identifier: MIT
 * Runs a launch in several of the orders that its edges allow; and the gate that keeps other work away meanwhile.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_ORDERS_H
#define RONDO_DEVICE_CHECK_CHECK_ORDERS_H

#include "device/check/check.h"

void check_gate_enter(check_state *check);
void check_gate_leave(check_state *check);
bool check_gate_is_mine(void); /* the calling thread closed it */

/* Runs a launch in several orders. False if it is to run as on other devices. */
bool check_explore(cpu_executable *executable, cpu_queue *queue);

#endif

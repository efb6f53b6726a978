/* SPDX-License-Identifier: MIT
 * The gate of a checking device: works pass it, any number at once. A thread that explores a launch closes it.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_GATE_H
#define RONDO_DEVICE_CHECK_CHECK_GATE_H

#include "device/check/check.h"

void check_gate_enter(check_state *check);
void check_gate_leave(check_state *check);
void check_gate_close(check_state *check); /* waits until nobody is inside */
void check_gate_open(check_state *check);
bool check_gate_is_mine(void); /* the calling thread closed it */

#endif

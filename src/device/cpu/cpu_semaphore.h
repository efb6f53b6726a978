/* SPDX-License-Identifier: MIT
 * Semaphores: timelines that the layers above advance, from any thread.
 */
#ifndef RONDO_DEVICE_CPU_CPU_SEMAPHORE_H
#define RONDO_DEVICE_CPU_CPU_SEMAPHORE_H

#include "device/cpu/cpu.h"

/* Behind a wait for the point: fails the queue where that is a semaphore's which failed. */
void cpu_point_settle(cpu_point point, cpu_queue *queue);

#endif

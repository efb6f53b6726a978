/* SPDX-License-Identifier: MIT
 * Host threads that wait for a queue or a point on a timeline: they work along, for that queue alone, and sleep
 * when there is nothing to do for them; and what wakes those who sleep when there is (cpu.h, cpu_queue_doze).
 */
#ifndef RONDO_DEVICE_CPU_CPU_WAIT_H
#define RONDO_DEVICE_CPU_CPU_WAIT_H

#include "device/cpu/cpu.h"

/* Those who sleep over a queue though they would work along: hosts that wait for it, the starter of its graph. One who
 * is about to sleep reads the number that it sleeps on, dozes, looks once more whether there is something to do, sleeps
 * if there is not, and rises; true then means that it was roused. Whoever makes something ready rouses them after that;
 * false when nobody dozed.
 *
 * No wake is lost. Making ready and dozing are sequentially consistent, and so are the looks at each other after them:
 * either the one who rouses sees the other doze, or that one, looking once more, sees what is ready. Dozing comes after
 * the number was read, and rousing changes it, so that one who is roused before it sleeps does not fall asleep. Rousing
 * ends the doze of all, so that of several who make something ready one pays for waking them; whoever is awake looks
 * again before it sleeps. */
uint32_t cpu_queue_doze(cpu_queue *queue);
bool cpu_queue_rise(cpu_queue *queue, uint32_t doze);
bool cpu_queue_rouse(cpu_queue *queue);

/* Waits until item number `target` is done, working along. */
void cpu_queue_await(cpu_queue *queue, uint64_t target);

/* Waits for a point; when it is a queue's, working along. */
void cpu_point_await(cpu_device *device, cpu_point point);

#endif

/* SPDX-License-Identifier: MIT
 * Events, which are points on timelines, and semaphores, which are events too.
 */
#ifndef RONDO_DEVICE_CPU_CPU_EVENT_H
#define RONDO_DEVICE_CPU_CPU_EVENT_H

#include "device/cpu/cpu.h"

RONDO_MUST_USE rondo_status cpu_event_create(rondo_device *device, bool timing, rondo_device_event **out);
void cpu_event_retain(cpu_event *event);
void cpu_event_release(cpu_event *event);
void cpu_event_stamp(cpu_event *event, uint64_t serial);

/* A timeline without a queue, for event-record nodes. */
RONDO_MUST_USE rondo_status cpu_timeline_create(cpu_device *device, cpu_timeline **out);
void cpu_event_record_at(cpu_event *event, cpu_timeline *timeline, uint64_t value);

/* Call it after a wait for a point: passes a failure of its semaphore to the queue. */
void cpu_point_settle(cpu_point point, cpu_queue *queue);

#endif

/* SPDX-License-Identifier: MIT
 * Works and nodes of a checking device.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_WORK_H
#define RONDO_DEVICE_CHECK_CHECK_WORK_H

#include "device/check/check.h"

/* Slots of rondo_device_ops and rondo_guard_ops. A watch is a run without a work: faults go to the caller. */
void *check_host_watch_begin(rondo_device *device, void *address, size_t bytes);
void *check_host_watch_end(rondo_device *device, void *watch, size_t bytes, size_t used, size_t *out_bytes);
const char *check_work_name(rondo_cpu_function function, void *const *args); /* for traces; NULL: not wrapped */

/* Wraps a node whose storage has capacity for a check_work. Alloc and free nodes get a function. */
RONDO_MUST_USE rondo_status check_wrap_node(cpu_executable *executable, cpu_node_detail *detail,
                                            const rondo_lowered_node *node);
RONDO_MUST_USE rondo_status check_submit(rondo_queue *queue, const rondo_node_params *params);

#endif

/* SPDX-License-Identifier: MIT
 * Works and nodes of a checking device: the function that runs is the one here, the real one stands in the
 * check_work that is its argument.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_WORK_H
#define RONDO_DEVICE_CHECK_CHECK_WORK_H

#include "device/check/check.h"

/* See rondo_device_ops. A run that is no work's: its faults are told to the caller, not to a queue. */
void *check_host_watch_begin(rondo_device *device, void *address, size_t bytes);
void check_host_cover(rondo_device *device, void *watch, const void *address);
void *check_host_watch_end(rondo_device *device, void *watch, size_t bytes, size_t used, size_t *out_bytes);
const char *check_work_name(rondo_cpu_function function, void *const *args); /* for traces; NULL: not wrapped */

/* Wraps a node whose storage has room for it; gives alloc and free nodes something to do. */
RONDO_MUST_USE rondo_status check_wrap_node(cpu_executable *executable, cpu_node_detail *detail,
                                            const rondo_node_params *params);
RONDO_MUST_USE rondo_status check_submit(rondo_queue *queue, const rondo_node_params *params);

#endif

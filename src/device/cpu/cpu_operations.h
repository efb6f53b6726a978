/* SPDX-License-Identifier: MIT
 * Memory operations. All of a node, or of one call on a queue, are a batch. A queue or an executable waits for its
 * batch as for a semaphore: when the wait begins, the batch runs up to a condition that is not fulfilled. Then a thread
 * of the device, the watcher, looks at the word again and again, and runs the rest. So no worker waits.
 *
 * Threads: a batch runs once at a time, on the thread that begins its wait or on the watcher. The watcher is started
 * with the device's first batch. Beginning a wait takes no lock.
 */
#ifndef RONDO_DEVICE_CPU_CPU_OPERATIONS_H
#define RONDO_DEVICE_CPU_CPU_OPERATIONS_H

#include "device/cpu/cpu.h"

/* Makes an event whose waits run the operations, which are copied. With `once`, they run only for the first wait that
 * begins. The batch lives as long as the event, and as waits for it. */
RONDO_MUST_USE rondo_status cpu_operations_make(cpu_device *device, const rondo_memory_operations_node *node, bool once,
                                                rondo_device_event **out);

/* Stops the watcher. No queue waits any more. */
void cpu_operations_stop(cpu_device *device);

#endif

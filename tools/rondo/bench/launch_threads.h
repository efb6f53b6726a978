/* SPDX-License-Identifier: MIT
 * The benchmark of launches from several threads at once (GX-10).
 */
#ifndef RONDO_TOOL_LAUNCH_THREADS_H
#define RONDO_TOOL_LAUNCH_THREADS_H

#include <rondo/rondo.h>

#include "common/timing.h"

/* Launches from `threads` threads for `seconds`. Each has its own stream and its own exec of 32 kernels, and waits
 * after each launch. Checks that every kernel ran once for each launch. *out_host: the launch call, over all threads.
 * Returns TOOL_OK, or TOOL_FAILURE after a message. */
int launch_from_threads(rondo_device *device, uint32_t threads, double seconds, summary *out_host);

#endif

/* SPDX-License-Identifier: MIT
 * Events.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_EVENT_H
#define RONDO_DEVICE_CUDA_CUDA_EVENT_H

#include "device/cuda/cuda.h"

RONDO_MUST_USE rondo_status cuda_event_create(rondo_device *device, bool timing, rondo_device_event **out);

#endif

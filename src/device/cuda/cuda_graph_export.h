/* SPDX-License-Identifier: MIT
 * A graph of the driver for callers who instantiate and launch it themselves.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_GRAPH_EXPORT_H
#define RONDO_DEVICE_CUDA_CUDA_GRAPH_EXPORT_H

#include "device/cuda/cuda.h"

/* Slots of rondo_capture_ops. */
RONDO_MUST_USE rondo_status cuda_graph_export(rondo_device *device, const rondo_lowered_graph *graph,
                                              rondo_executable **out, void **out_native);
RONDO_MUST_USE rondo_status cuda_graph_revise(rondo_device *device, void *native, const rondo_executable *exported,
                                              const rondo_lowered_graph *changed, rondo_executable **out,
                                              void **out_native);

#endif

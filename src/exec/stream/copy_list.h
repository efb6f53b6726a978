/* SPDX-License-Identifier: MIT
 * Copies that are enqueued together, from page-locked host memory or device memory to the device. One launch of a
 * kernel of the device makes as many copies as fit into its argument. If the device has no such kernel, or the kernel
 * would take longer, each is a separate copy or fill. No two of them access a common byte, and their order is
 * undefined.
 *
 * Nothing here allocates or locks. A list belongs to one thread at a time; zeros are valid. Its stream does not
 * capture.
 */
#ifndef RONDO_EXEC_STREAM_COPY_LIST_H
#define RONDO_EXEC_STREAM_COPY_LIST_H

#include <rondo/stream.h>

#include "base/component.h"
#include "graph/kernel.h"

typedef struct rondo_copy_list {
  rondo_stream *stream;
  rondo_kernel *kernel; /* NULL: separate copies */
  uint64_t bytes;       /* of all ranges */
  uint64_t largest;     /* of the largest range */
  rondo_queued_ranges ranges;
} rondo_copy_list;

/* Begins an empty list, for copies of `bytes` in total. Host memory must come from a device of the stream's driver
 * (rondo_host_malloc). */
RONDO_PRIVATE void rondo_copy_list_begin(rondo_copy_list *list, rondo_stream *stream, size_t bytes);
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_copy_list_add(rondo_copy_list *list, void *dst, const void *src,
                                                              size_t bytes);
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_copy_list_add_zeros(rondo_copy_list *list, void *dst, size_t bytes);
/* Enqueues the remaining copies. After a failure the rest is not enqueued. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_copy_list_end(rondo_copy_list *list);

#endif

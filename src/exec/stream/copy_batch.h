/* SPDX-License-Identifier: MIT
 * Copies that are enqueued together, before work that reads what they write. They copy from page-locked memory of the
 * host, or from a device's memory, to the device. The device's kernel for such copies makes as many of them at once as
 * its argument has room for. Where the device has no such kernel, or where that would take longer, each is a copy or a
 * fill by itself. No two of them write or read a common byte, and their order is not defined.
 *
 * Nothing here allocates or locks. A list belongs to one thread at a time; a zeroed one is valid. Its stream does not
 * capture.
 */
#ifndef RONDO_EXEC_STREAM_COPY_BATCH_H
#define RONDO_EXEC_STREAM_COPY_BATCH_H

#include <rondo/stream.h>

#include "graph/kernel.h"

typedef struct rondo_copy_list {
  rondo_stream *stream;
  rondo_kernel *kernel; /* NULL: each by itself */
  uint64_t bytes;       /* of the ranges, */
  uint64_t largest;     /* and of one of them */
  rondo_queued_ranges ranges;
} rondo_copy_list;

/* Begins an empty list, for so many bytes in all. Memory of the host must come from a device of the stream's driver
 * (rondo_host_malloc). */
void rondo_copy_list_begin(rondo_copy_list *list, rondo_stream *stream, size_t bytes);
RONDO_MUST_USE rondo_status rondo_copy_list_add(rondo_copy_list *list, void *dst, const void *src, size_t bytes);
RONDO_MUST_USE rondo_status rondo_copy_list_add_zeros(rondo_copy_list *list, void *dst, size_t bytes);
/* Enqueues what is left. After a failure the rest is not enqueued. */
RONDO_MUST_USE rondo_status rondo_copy_list_end(rondo_copy_list *list);

#endif

/* SPDX-License-Identifier: MIT
 * Copies that are queued together, in front of work that reads what they write: page-locked memory of the host, or a
 * device's, to the device. By launches of its kernel for them, each for as many as its argument holds, or, where the
 * device has none or that would take longer, each as a copy or fill by itself. They have no byte in common and come in
 * any order.
 *
 * Nothing here allocates or locks. A list belongs to one thread at a time; zeroed it is one. Its stream does not
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

/* Begins anew, for so many bytes in all. What the host has of them must be memory that a device of the stream's driver
 * gave (rondo_host_malloc). */
void rondo_copy_list_begin(rondo_copy_list *list, rondo_stream *stream, size_t bytes);
RONDO_MUST_USE rondo_status rondo_copy_list_add(rondo_copy_list *list, void *dst, const void *src, size_t bytes);
RONDO_MUST_USE rondo_status rondo_copy_list_add_zeros(rondo_copy_list *list, void *dst, size_t bytes);
/* Queues what is left. What was not queued when something failed is not. */
RONDO_MUST_USE rondo_status rondo_copy_list_end(rondo_copy_list *list);

#endif

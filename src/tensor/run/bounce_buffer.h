/* SPDX-License-Identifier: MIT
 * Copying bytes to the device without waiting for its stream: they are copied into host memory that is not changed
 * until the copy to the device has run. The memory has two halves, used in alternation. A half is filled again only
 * after the event that was recorded at its end. More bytes than a half has are copied in pieces.
 */
#ifndef RONDO_TENSOR_RUN_BOUNCE_BUFFER_H
#define RONDO_TENSOR_RUN_BOUNCE_BUFFER_H

#include <rondo/stream.h>

typedef struct rondo_bounce {
  rondo_device *device;
  unsigned char *memory; /* two halves */
  size_t half_bytes;
  size_t used;            /* of the current half */
  uint32_t current;       /* 0 or 1 */
  rondo_event *events[2]; /* recorded when half i was left: work that reads it is done */
} rondo_bounce;

/* `bytes`: what is usually written between two runs. */
RONDO_MUST_USE rondo_status rondo_bounce_init(rondo_bounce *bounce, rondo_device *device, size_t bytes);
/* The stream's work is done. A zeroed one, or one whose init failed, is allowed. */
RONDO_MUST_USE rondo_status rondo_bounce_deinit(rondo_bounce *bounce);

/* Of both halves; a zeroed one has none. */
static inline size_t rondo_bounce_bytes(const rondo_bounce *bounce) { return 2 * bounce->half_bytes; }

/* Copies the first of `bytes` bytes into the memory, and returns where, and how many: all, or a multiple of 64. Work of
 * the stream may read them if it is enqueued before the next call. */
RONDO_MUST_USE rondo_status rondo_bounce_put(rondo_bounce *bounce, rondo_stream *stream, const void *src, size_t bytes,
                                             const void **out_at, size_t *out_bytes);

/* Enqueues a copy of `bytes` bytes to `dst`; `src` may be reused at once. */
RONDO_MUST_USE rondo_status rondo_bounce_write(rondo_bounce *bounce, rondo_stream *stream, void *dst, const void *src,
                                               size_t bytes);

#endif

/* SPDX-License-Identifier: MIT
 * The two halves of bounce memory.
 */
#include "tensor/run/bounce_buffer.h"

#include <assert.h>
#include <string.h>

#include <rondo/memory.h>
#include "base/error.h"

#define MIN_HALF ((size_t)64 << 10)
#define MAX_HALF ((size_t)8 << 20)
#define PIECE_ALIGNMENT 64

rondo_status rondo_bounce_init(rondo_bounce *bounce, rondo_device *device, size_t bytes) {
  size_t half = bytes < MAX_HALF / 2 ? 2 * bytes : MAX_HALF;
  if (half < MIN_HALF) half = MIN_HALF;
  half = half / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
  *bounce = (rondo_bounce){.device = device, .half_bytes = half};
  void *memory;
  RONDO_TRY(rondo_host_malloc(device, 2 * half, &memory));
  bounce->memory = memory;
  for (size_t i = 0; i < 2; i++) RONDO_TRY(rondo_event_create(device, NULL, &bounce->events[i]));
  return RONDO_OK;
}

rondo_status rondo_bounce_deinit(rondo_bounce *bounce) {
  for (size_t i = 0; i < 2; i++) rondo_event_destroy(bounce->events[i]);
  unsigned char *memory = bounce->memory;
  rondo_device *device = bounce->device;
  *bounce = (rondo_bounce){0};
  return memory == NULL ? RONDO_OK : rondo_host_free(device, memory);
}

static rondo_status change_halves(rondo_bounce *bounce, rondo_stream *stream) {
  RONDO_TRY(rondo_event_record(bounce->events[bounce->current], stream));
  bounce->current ^= 1;
  bounce->used = 0;
  return rondo_event_synchronize(bounce->events[bounce->current]);
}

rondo_status rondo_bounce_put(rondo_bounce *bounce, rondo_stream *stream, const void *src, size_t bytes,
                              const void **out_at, size_t *out_bytes) {
  if (bounce->used >= bounce->half_bytes) RONDO_TRY(change_halves(bounce, stream));
  assert(bounce->used < bounce->half_bytes && bounce->used % PIECE_ALIGNMENT == 0);
  const size_t capacity = bounce->half_bytes - bounce->used;
  unsigned char *at = bounce->memory + bounce->current * bounce->half_bytes + bounce->used;
  *out_bytes = bytes < capacity ? bytes : capacity;
  *out_at = at;
  memcpy(at, src, *out_bytes);
  bounce->used += (*out_bytes + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
  return RONDO_OK;
}

rondo_status rondo_bounce_write(rondo_bounce *bounce, rondo_stream *stream, void *dst, const void *src, size_t bytes) {
  size_t piece;
  for (size_t done = 0; done < bytes; done += piece) {
    const void *at;
    RONDO_TRY(rondo_bounce_put(bounce, stream, (const unsigned char *)src + done, bytes - done, &at, &piece));
    RONDO_TRY(rondo_copy_async(stream, (unsigned char *)dst + done, at, piece));
  }
  return RONDO_OK;
}

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
  size_t half = bytes < MAX_HALF ? 2 * bytes : MAX_HALF;
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

rondo_status rondo_bounce_write(rondo_bounce *bounce, rondo_stream *stream, void *dst, const void *src, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    if (bounce->used >= bounce->half_bytes) RONDO_TRY(change_halves(bounce, stream));
    assert(bounce->used < bounce->half_bytes && bounce->used % PIECE_ALIGNMENT == 0);
    const size_t capacity = bounce->half_bytes - bounce->used;
    const size_t piece = bytes - done < capacity ? bytes - done : capacity;
    unsigned char *at = bounce->memory + bounce->current * bounce->half_bytes + bounce->used;
    memcpy(at, (const unsigned char *)src + done, piece);
    RONDO_TRY(rondo_copy_async(stream, (unsigned char *)dst + done, at, piece));
    bounce->used += (piece + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
    done += piece;
  }
  return RONDO_OK;
}

/* SPDX-License-Identifier: MIT
 * The two halves of staging memory.
 */
#include "tensor/staging.h"

#include <string.h>

#include <rondo/memory.h>
#include "base/error.h"

#define LEAST_HALF ((size_t)64 << 10)
#define MOST_HALF ((size_t)8 << 20)
#define PIECE_ALIGNMENT 64

rondo_status rondo_staging_init(rondo_staging *staging, rondo_device *device, size_t bytes) {
  size_t half = bytes < MOST_HALF ? 2 * bytes : MOST_HALF;
  if (half < LEAST_HALF) half = LEAST_HALF;
  half = half / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
  *staging = (rondo_staging){.device = device, .half_bytes = half};
  void *memory;
  RONDO_TRY(rondo_host_malloc(device, 2 * half, &memory));
  staging->memory = memory;
  for (size_t i = 0; i < 2; i++) RONDO_TRY(rondo_event_create(device, NULL, &staging->events[i]));
  return RONDO_OK;
}

rondo_status rondo_staging_deinit(rondo_staging *staging) {
  for (size_t i = 0; i < 2; i++) rondo_event_destroy(staging->events[i]);
  unsigned char *memory = staging->memory;
  rondo_device *device = staging->device;
  *staging = (rondo_staging){0};
  return memory == NULL ? RONDO_OK : rondo_host_free(device, memory);
}

static rondo_status change_halves(rondo_staging *staging, rondo_stream *stream) {
  RONDO_TRY(rondo_event_record(staging->events[staging->current], stream));
  staging->current ^= 1;
  staging->used = 0;
  return rondo_event_synchronize(staging->events[staging->current]);
}

rondo_status rondo_staging_write(rondo_staging *staging, rondo_stream *stream, void *dst, const void *src,
                                 size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    if (staging->used >= staging->half_bytes) RONDO_TRY(change_halves(staging, stream));
    const size_t room = staging->half_bytes - staging->used;
    const size_t piece = bytes - done < room ? bytes - done : room;
    unsigned char *at = staging->memory + staging->current * staging->half_bytes + staging->used;
    memcpy(at, (const unsigned char *)src + done, piece);
    RONDO_TRY(rondo_copy_async(stream, (unsigned char *)dst + done, at, piece));
    staging->used += (piece + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
    done += piece;
  }
  return RONDO_OK;
}

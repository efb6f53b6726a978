/* SPDX-License-Identifier: MIT
 * Why a caller never uses a slot that is being changed: the caller increments the slot's count and then reads
 * `current`; the thread that changes the sink writes `current` and then reads the count. All four are sequentially
 * consistent. So either the caller sees the new `current` and uses the other slot, or the changing thread sees the
 * caller and waits for it.
 */
#include "base/sink.h"

#include <limits.h>
#include <stddef.h>

#include "base/thread.h"

rondo_sink_slot *rondo_sink_enter(rondo_sink *sink) {
  for (;;) {
    const uint32_t current = atomic_load(&sink->current);
    rondo_sink_slot *slot = &sink->slots[current];
    atomic_fetch_add(&slot->calls, 1);
    if (atomic_load(&sink->current) == current) {
      if (slot->fn != NULL) return slot;
      rondo_sink_leave(sink, slot);
      return NULL;
    }
    rondo_sink_leave(sink, slot);
  }
}

void rondo_sink_leave(rondo_sink *sink, rondo_sink_slot *slot) {
  if (atomic_fetch_sub(&slot->calls, 1) == 1 && atomic_load(&sink->draining) != 0)
    rondo_futex_wake(&slot->calls, UINT_MAX);
}

static void drain(rondo_sink *sink, rondo_sink_slot *slot) {
  atomic_store(&sink->draining, 1);
  for (uint32_t calls; (calls = atomic_load(&slot->calls)) != 0;) rondo_futex_wait(&slot->calls, calls);
  atomic_store(&sink->draining, 0);
}

void rondo_sink_set(rondo_sink *sink, rondo_sink_fn fn, void *user, int level) {
  const uint32_t old = atomic_load(&sink->current);
  rondo_sink_slot *next = &sink->slots[1 - old];
  /* Unused since the last change. Only late callers may still be counted here. They read the slot only if they then
   * find it current, and in that case they use the new content. */
  next->fn = fn;
  next->user = user;
  next->level = level;
  atomic_store(&sink->current, 1 - old);
  drain(sink, &sink->slots[old]);
}

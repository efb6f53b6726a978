/* SPDX-License-Identifier: MIT
 * A function that the user installs and any thread calls. It can be replaced without a lock around its calls: the
 * function is in one of two slots, and each slot counts the calls that use it. Replacing it fills the other slot, makes
 * that one current, and waits for the calls in the old slot.
 * Threads: any thread may enter and leave; one at a time may set (its callers hold a mutex, which a sink never takes).
 * A zeroed sink is empty.
 */
#ifndef RONDO_BASE_SINK_H
#define RONDO_BASE_SINK_H

#include <stdatomic.h>
#include <stdint.h>

typedef void (*rondo_sink_fn)(void); /* the caller casts it back to its real type */

typedef struct rondo_sink_slot {
  rondo_sink_fn fn;
  void *user;
  int level;
  _Atomic uint32_t calls;
} rondo_sink_slot;

typedef struct rondo_sink {
  rondo_sink_slot slots[2];
  _Atomic uint32_t current;
  _Atomic uint32_t draining; /* a thread waits for a slot's last call */
} rondo_sink;

/* The slot to call, which does not change until rondo_sink_leave. NULL if no function is installed; then do not call
 * rondo_sink_leave. */
rondo_sink_slot *rondo_sink_enter(rondo_sink *sink);
void rondo_sink_leave(rondo_sink *sink, rondo_sink_slot *slot);

/* Installs `fn`; NULL removes it. On return no call of the previous function is in progress. */
void rondo_sink_set(rondo_sink *sink, rondo_sink_fn fn, void *user, int level);

#endif

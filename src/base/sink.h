/* SPDX-License-Identifier: MIT
 * A function that the user installs and any thread calls, changed without a lock around its calls: what is installed
 * stands in one of two slots, each counting the calls under way in it. To change it, the other slot is filled and made
 * the current one, and then the calls in the old slot are waited for.
 * Threads: enter and leave from any; set from one at a time (its callers keep a mutex, which sinks never take).
 * A zeroed sink is empty.
 */
#ifndef RONDO_BASE_SINK_H
#define RONDO_BASE_SINK_H

#include <stdatomic.h>
#include <stdint.h>

typedef void (*rondo_sink_fn)(void); /* cast back to its own type by those who call it */

typedef struct rondo_sink_slot {
  rondo_sink_fn fn;
  void *user;
  int level;
  _Atomic uint32_t calls;
} rondo_sink_slot;

typedef struct rondo_sink {
  rondo_sink_slot slots[2];
  _Atomic uint32_t current;
  _Atomic uint32_t draining; /* somebody waits for a slot's last call */
} rondo_sink;

/* The slot to call, which stays as it is until rondo_sink_leave; NULL (and nothing to leave) when none is installed. */
rondo_sink_slot *rondo_sink_enter(rondo_sink *sink);
void rondo_sink_leave(rondo_sink *sink, rondo_sink_slot *slot);

/* Installs; fn = NULL empties. On return no call to what was installed before is under way. */
void rondo_sink_set(rondo_sink *sink, rondo_sink_fn fn, void *user, int level);

#endif

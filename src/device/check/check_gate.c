/* SPDX-License-Identifier: MIT
 * The gate of a checking device. Works and changes of lifetimes pass it, any number at once. A thread that explores a
 * launch closes it and is alone. Host functions do not pass it, since they may wait for anything. Works do not wait for
 * each other, so closing always ends. Threads: any.
 */
#include "device/check/check_gate.h"

#include <assert.h>

#define CLOSED (UINT32_C(1) << 31)

static _Thread_local const check_state *closed_here;

bool check_gate_is_mine(void) { return closed_here != NULL; }

/* Adds to the gate, as soon as it is open. */
static void add_when_open(check_state *check, uint32_t what) {
  uint32_t inside = atomic_load(&check->gate);
  for (;;) {
    if (inside & CLOSED) {
      rondo_futex_wait(&check->gate, inside);
      inside = atomic_load(&check->gate);
    } else if (atomic_compare_exchange_weak(&check->gate, &inside, inside + what)) {
      return;
    }
  }
}

void check_gate_enter(check_state *check) { add_when_open(check, 1); }

void check_gate_leave(check_state *check) {
  const uint32_t before = atomic_fetch_sub(&check->gate, 1);
  assert((before & ~CLOSED) > 0);
  if (before == (CLOSED | 1)) rondo_futex_wake(&check->gate, UINT32_MAX);
}

void check_gate_close(check_state *check) {
  uint32_t inside;
  assert(closed_here == NULL);
  add_when_open(check, CLOSED);
  while ((inside = atomic_load(&check->gate)) != CLOSED) rondo_futex_wait(&check->gate, inside);
  closed_here = check;
}

void check_gate_open(check_state *check) {
  assert(closed_here == check && atomic_load(&check->gate) == CLOSED);
  closed_here = NULL;
  atomic_store(&check->gate, 0);
  rondo_futex_wake(&check->gate, UINT32_MAX);
}

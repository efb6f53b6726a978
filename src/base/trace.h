/* SPDX-License-Identifier: MIT
 * Emitting trace events (<rondo/trace.h>) from inside the library. With no sink each call is one relaxed load and a
 * branch that is not taken.
 */
#ifndef RONDO_BASE_TRACE_H
#define RONDO_BASE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <rondo/trace.h>

#include "base/thread.h"

extern atomic_bool rondo_trace_active;

/* Called by rondo_trace if a sink is installed. The strings are never NULL and need to live only during the call. Only
 * counters use `value`. */
void rondo_trace_emit(rondo_trace_kind kind, const char *area, const char *name, uint64_t track, double value);

static inline bool rondo_trace_on(void) { return atomic_load_explicit(&rondo_trace_active, memory_order_relaxed); }

static inline void rondo_trace(rondo_trace_kind kind, const char *area, const char *name, uint64_t track,
                               double value) {
  if (__builtin_expect(rondo_trace_on(), 0)) rondo_trace_emit(kind, area, name, track, value);
}

/* Emits an event on the calling thread's track. */
static inline void rondo_trace_here(rondo_trace_kind kind, const char *area, const char *name) {
  if (__builtin_expect(rondo_trace_on(), 0)) rondo_trace_emit(kind, area, name, rondo_thread_id(), 0);
}

#endif

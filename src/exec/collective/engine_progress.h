/* SPDX-License-Identifier: MIT
 * Starting a collective in the engine, polling it and failing.
 */
#ifndef RONDO_EXEC_COLLECTIVE_ENGINE_PROGRESS_H
#define RONDO_EXEC_COLLECTIVE_ENGINE_PROGRESS_H

#include "exec/collective/engine_link.h"

/* What the kernels do. Buffers may be NULL. */
void rondo_engine_link_start(rondo_engine_link *link, const rondo_engine_call *call, const void *src, void *dst);

/* Makes the progress thread look at once. */
void rondo_engine_link_ring(rondo_engine_link *link);

/* Fails once: all waits here end with this error, and the other ranks are told. */
void rondo_engine_link_fail(rondo_engine_link *link, rondo_reason reason, const char *format, ...) RONDO_PRINTF(3, 4);
static inline bool rondo_engine_link_has_failed(const rondo_engine_link *link) {
  return atomic_load_explicit(&link->failed, memory_order_acquire) != 0;
}

/* For threads of the device that have nothing to do; the argument is the link. True if nothing is in progress. */
bool rondo_engine_link_poll(void *link);

/* The progress thread's function; the argument is the link. */
void *rondo_engine_link_progress(void *link);

/* Asserts the invariants; nothing is in progress. */
void rondo_engine_link_check(const rondo_engine_link *link);

#endif

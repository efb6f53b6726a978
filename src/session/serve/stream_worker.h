/* SPDX-License-Identifier: MIT
 * The thread of a worker: while nobody else has claimed the worker, it runs batches of what waits, then parts of
 * others' batches, makes tables anew where times have changed, and sleeps until it is called or something waiting
 * gets ripe.
 */
#ifndef RONDO_SESSION_SERVE_STREAM_WORKER_H
#define RONDO_SESSION_SERVE_STREAM_WORKER_H

#include "session/session_internal.h"

/* The main function of a worker's thread. */
void *rondo_stream_worker_main(void *worker);

#endif

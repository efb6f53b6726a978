/* SPDX-License-Identifier: MIT
 * The thread of a lane: while nobody else has claimed the lane, it runs batches of what waits, then parts of
 * others' batches, makes tables anew where times have changed, and sleeps until it is called or something waiting
 * gets ripe.
 */
#ifndef RONDO_SESSION_SERVE_LANE_H
#define RONDO_SESSION_SERVE_LANE_H

#include "session/session_internal.h"

/* The main function of a lane's thread. */
void *rondo_lane_main(void *lane);

#endif

/* SPDX-License-Identifier: MIT
 * Captures into an arena (memory/arena/arena.h), planned from a profile: the lifetimes that were logged in an earlier
 * run of the same work. The capture ends with rondo_capture_end, and rondo_arena_recording_read reads its graph.
 *
 * During the capture rondo_malloc_async on its streams returns addresses of the arena. rondo_free_async frees
 * those, and blocks of the setting, whose bytes the recording may use again after the free.
 *
 * Threads: as for captures.
 */
#ifndef RONDO_EXEC_CAPTURE_ARENA_CAPTURE_H
#define RONDO_EXEC_CAPTURE_ARENA_CAPTURE_H

#include "exec/stream/stream_internal.h"
#include "memory/arena/arena.h"

/* As rondo_capture_begin_with. On success the slots have their addresses; of the setting, only the arena must stay
 * alive. On a guarded device the slots are backed and live from then on. Errors in addition to those of
 * rondo_capture_begin: INVALID_ARGUMENT/FOREIGN_ADDRESS (a block that is not the arena's, or overlaps another),
 * OUT_OF_MEMORY, those of rondo_plan_make. */
RONDO_MUST_USE rondo_status rondo_capture_begin_in_arena(rondo_stream *stream, rondo_capture_mode mode,
                                                         rondo_arena_setting *setting);

/* As rondo_profile_end, but the run is planned later. The caller releases it. */
RONDO_MUST_USE rondo_status rondo_profile_end_noted(rondo_stream *stream, rondo_noted_lifetimes **out);

/* Notes, in the order of the stream, that memory from before the profile is no longer used. Its owner identifies it
 * by `key`, which is not 0; only the first note of a key counts. Does nothing if the stream is in no profile. */
void rondo_profile_note_end(rondo_stream *stream, uint64_t key);

#endif

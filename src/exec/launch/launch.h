/* SPDX-License-Identifier: MIT
 * Launching.
 */
#ifndef RONDO_EXEC_LAUNCH_LAUNCH_H
#define RONDO_EXEC_LAUNCH_LAUNCH_H

#include "exec/launch/exec_internal.h"

/* rondo_exec_launch behind its front, on a stream that does not capture. `moves` may be NULL. */
RONDO_MUST_USE rondo_status rondo_exec_launch_patched(rondo_exec *exec, rondo_stream *stream, rondo_moves *moves);

#endif

/* SPDX-License-Identifier: MIT
 * The collective engine for ranks of one process.
 */
#ifndef RONDO_EXEC_COLLECTIVE_PROCESS_ENGINE_H
#define RONDO_EXEC_COLLECTIVE_PROCESS_ENGINE_H

#include "exec/collective/engine_link.h"

/* Makes the engines of a group, one for each rank. The last one that is closed frees the group. Errors: OUT_OF_MEMORY.
 */
RONDO_MUST_USE rondo_status rondo_process_engine_make(const rondo_allocator *allocator, uint32_t count,
                                                      rondo_collective_engine *out);

/* The link that is rung when a collective of this rank is done. Call it once the link is open. */
void rondo_process_engine_attach(rondo_engine_link *link);

#endif

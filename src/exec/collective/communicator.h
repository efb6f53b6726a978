/* SPDX-License-Identifier: MIT
 * A communicator and its link to the other ranks. A transport is a table of functions for links: the engine transport
 * (engine_link.h) runs a collective engine on devices whose queues wait for semaphores, and NCCL's (nccl_transport.c)
 * enqueues NCCL's work. collective.c checks arguments once; transports rely on that.
 *
 * Threads: a communicator is thread-compatible. `in_call` detects two calls at once.
 */
#ifndef RONDO_EXEC_COLLECTIVE_COMMUNICATOR_H
#define RONDO_EXEC_COLLECTIVE_COMMUNICATOR_H

#include <rondo/collective_engine.h>

#include "exec/stream/stream_internal.h"

/* The options of a communicator with defaults resolved. The name is not NULL. */
typedef struct rondo_communicator_plan {
  rondo_device *device;
  const char *name;
  uint32_t rank, world_size;
  uint32_t join_timeout_ms;
  uint64_t timeout_ns;
} rondo_communicator_plan;

typedef struct rondo_transport rondo_transport;

/* What a transport makes for one rank; begins so. */
typedef struct rondo_link {
  const rondo_transport *transport;
} rondo_link;

struct rondo_transport {
  /* Enqueues or captures a collective. */
  rondo_status (*run)(rondo_link *link, rondo_stream *stream, const char *call, const rondo_collective *work);
  rondo_status (*cancel)(rondo_link *link); /* fails the link */
  void (*info)(const rondo_link *link, rondo_communicator_info *out);
  /* Sets the rank and the size of the plan, which has all else. */
  rondo_status (*split)(rondo_link *link, uint32_t color, uint32_t key, rondo_communicator_plan *plan,
                        rondo_link **out);
  /* Waits for what was enqueued, and releases the user's reference. */
  rondo_status (*close)(rondo_link *link);
};

/* NCCL's links of `count` ranks of one process: all or none. `id` is that of the group. */
RONDO_MUST_USE rondo_status rondo_nccl_open(const rondo_communicator_plan *plans, uint32_t count,
                                            const rondo_communicator_id *id, rondo_link **out);
RONDO_MUST_USE rondo_status rondo_nccl_make_id(rondo_device *device, rondo_communicator_id *out);
/* One rank of the group that meets at "host:port". */
RONDO_MUST_USE rondo_status rondo_nccl_open_at(const rondo_communicator_plan *plan, const char *address,
                                               rondo_link **out);

struct rondo_communicator {
  rondo_device *device;
  rondo_link *link;
  char *name;
  rondo_communicator_plan plan; /* its name is `name` */
  atomic_bool in_call;
  _Atomic uint64_t collectives;
};

/* Around a call that uses the communicator. INVALID_STATE/CONCURRENT_USE. */
RONDO_MUST_USE rondo_status rondo_communicator_enter(rondo_communicator *communicator, const char *call);
void rondo_communicator_leave(rondo_communicator *communicator);

#endif

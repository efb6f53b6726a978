/* SPDX-License-Identifier: MIT
 * A communicator and its transport, which is a table of functions: the exchange through shared memory (exchange.h), or
 * NCCL (nccl_transport.c). collective.c checks arguments once; transports rely on that.
 */
#ifndef RONDO_EXEC_COLLECTIVE_COMMUNICATOR_H
#define RONDO_EXEC_COLLECTIVE_COMMUNICATOR_H

#include <rondo/collective.h>

#include "exec/collective/group.h"
#include "exec/stream/stream_internal.h"

typedef enum rondo_operation {
  RONDO_ALL_REDUCE = 1,
  RONDO_BROADCAST,
  RONDO_ALL_GATHER,
  RONDO_REDUCE_SCATTER,
  RONDO_BARRIER
} rondo_operation;

/* "all_reduce"; "unknown" for an invalid number, which a faulty process may write to shared memory. */
const char *rondo_operation_name(rondo_operation operation);

/* A checked collective: the buffers that the operation needs on this rank exist, and no size overflows. */
typedef struct rondo_collective {
  rondo_operation operation;
  rondo_type type;
  rondo_reduction reduction; /* 0 when there is none */
  uint32_t root;
  size_t count; /* 0 for a barrier */
  const void *src;
  void *dst;
} rondo_collective;

/* The options of a communicator with defaults resolved. */
typedef struct rondo_communicator_plan {
  rondo_device *device;
  const char *name;
  uint32_t rank, world_size;
  uint64_t timeout_ns;
} rondo_communicator_plan;

typedef struct rondo_transport rondo_transport;

/* What a transport makes for one rank; begins so. */
typedef struct rondo_link {
  const rondo_transport *transport;
} rondo_link;

struct rondo_transport {
  uint32_t kind;  /* all ranks of a group have the same */
  bool has_slots; /* data goes through the group's memory */
  /* Called before joining; NULL: there is nothing to prepare. `token` is what rank 0 tells the others by the group's
   * head: filled when `is_first`. */
  rondo_status (*prepare)(rondo_device *device, bool is_first, unsigned char token[RONDO_GROUP_TOKEN_BYTES]);
  /* Makes the links of ranks of one process in groups that are complete: all or none. They own their groups. */
  rondo_status (*open)(const rondo_communicator_plan *plans, rondo_group **groups, uint32_t count, rondo_link **out);
  /* UNSUPPORTED for what it cannot do. NULL: it can do all. */
  rondo_status (*check)(const rondo_link *link, const char *call, const rondo_collective *work);
  /* Enqueues or captures it. */
  rondo_status (*run)(rondo_link *link, rondo_stream *stream, const char *call, const rondo_collective *work);
  rondo_status (*break_off)(rondo_link *link);
  void (*info)(const rondo_link *link, rondo_communicator_info *out);
  /* Waits for what was enqueued, and releases the user's reference. */
  rondo_status (*close)(rondo_link *link);
};

/* The first is for devices whose queues wait for semaphores, the second for devices that run libraries' work. */
extern const rondo_transport rondo_exchange_transport;
extern const rondo_transport rondo_nccl_transport;

struct rondo_communicator {
  rondo_device *device;
  rondo_link *link;
  uint32_t rank, world_size;
  _Atomic uint64_t collectives;
};

#endif

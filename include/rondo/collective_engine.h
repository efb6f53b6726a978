/* SPDX-License-Identifier: MIT
 * Collective engines: what moves the data of collectives on CPU devices. A program rarely needs this header: Rondo has
 * an engine for the ranks of one process (rondo_communicator_create_all), and the component rondo-mpi has one for MPI
 * (<rondo/mpi.h>). Write an engine to run Rondo's collectives on another library.
 *
 * An engine is a table of functions for one rank of a group. Rondo checks the arguments of each collective, records it,
 * starts it when the stream or a replay reaches it, polls it, and makes later work of the stream wait for it. A
 * communicator runs one collective at a time, so an engine has at most one in progress.
 *
 * Threads. `start`, `test`, `watch` and `absent` are called by one thread at a time, but by different threads: workers
 * of the device, and the communicator's progress thread. `check` and `notify` may be called by another thread at the
 * same time. No function may wait for another rank, except `split`.
 *
 * Errors. A function that fails calls rondo_error_set and returns the status. A failure of `start`, `test` or `watch`
 * makes the communicator fail permanently, and Rondo then calls `notify`, once.
 */
#ifndef RONDO_COLLECTIVE_ENGINE_H
#define RONDO_COLLECTIVE_ENGINE_H

#include <rondo/collective.h>

RONDO_EXTERN_C_BEGIN

typedef enum rondo_collective_operation {
  RONDO_COLLECTIVE_ALL_REDUCE = 1,
  RONDO_COLLECTIVE_BROADCAST,
  RONDO_COLLECTIVE_ALL_GATHER,
  RONDO_COLLECTIVE_REDUCE_SCATTER,
  RONDO_COLLECTIVE_ALL_TO_ALL,
  RONDO_COLLECTIVE_SEND_RECEIVE, /* between pairs of ranks; the other ranks do not call it */
  RONDO_COLLECTIVE_BARRIER
} rondo_collective_operation;

/* "all_reduce"; "unknown" for another number. Thread-safe. */
RONDO_API const char *rondo_collective_operation_name(rondo_collective_operation operation);

/* What one rank passes to a collective. Rondo has checked it: the buffers that the operation needs on this rank exist,
 * are aligned to the element and overlap only as <rondo/collective.h> allows, and no size overflows. */
typedef struct rondo_collective {
  uint32_t struct_size;
  rondo_collective_operation operation;
  rondo_type type;
  rondo_reduction reduction; /* 0: none. Never AVERAGE: Rondo divides the sum */
  uint32_t root;             /* BROADCAST */
  uint32_t to, from;         /* SEND_RECEIVE: the ranks that `src` is sent to, and that `dst` is received from */
  uint32_t is_average;       /* 1: Rondo divides the sum by the number of ranks, so all ranks must have 1; else 0 */
  size_t count;              /* elements of a part; 0 for BARRIER */
  const void *src;           /* NULL: this rank sends nothing */
  void *dst;                 /* NULL: this rank receives nothing */
} rondo_collective;

/* "all_reduce (sum) of 4096 f32", cut to `bytes`. Thread-safe. */
RONDO_API void rondo_collective_describe(const rondo_collective *work, char *text, size_t bytes);

/* dst[i] = dst[i] combined with src[i], for `count` elements. The two do not overlap. If one is a NaN, the result is.
 * F16 and BF16 are combined as F32 and rounded to nearest even. */
typedef void (*rondo_combine_function)(void *dst, const void *src, size_t count);

/* NULL: not a type, or not RONDO_REDUCE_SUM, _MAX or _MIN. Thread-safe. */
RONDO_API rondo_combine_function rondo_combine_find(rondo_type type, rondo_reduction reduction);

typedef struct rondo_collective_engine {
  uint32_t struct_size; /* RONDO_COLLECTIVE_ENGINE_INIT sets it; 0 means the library's own */
  uint32_t rank, world_size;
  const char *name; /* of the engine, for messages: "MPI"; copied */
  void *user;       /* the first argument of all functions */
  /* Refuses a collective that the engine cannot do, when it is called: UNSUPPORTED or LIMIT_EXCEEDED. NULL: it can do
   * all. */
  rondo_status (*check)(void *user, const rondo_collective *work);
  /* Starts a collective. Its buffers stay until `test` reports that it is done, or until the communicator has failed.
   * is_captured: a replay starts it, so the same collective is likely to come again, perhaps at other addresses, and an
   * engine may keep what it wants to make only once for collectives of this description. */
  rondo_status (*start)(void *user, const rondo_collective *work, bool is_captured);
  /* Sets whether the collective that was started last is done. */
  rondo_status (*test)(void *user, bool *out_is_done);
  /* Called by the progress thread from time to time, whether a collective is in progress or not, to answer other ranks
   * and to learn that one has failed. NULL: nothing to do. */
  rondo_status (*watch)(void *user);
  /* Writes which ranks the collective in progress waits for, and why if known: "rank 2 has not called it". Used when
   * the timeout has passed. NULL: unknown. */
  void (*absent)(void *user, char *text, size_t bytes);
  /* Tells the other ranks that this one has failed, or that after `split` it has no communicator. NULL: they find out
   * by themselves. */
  void (*notify)(void *user, const char *message);
  /* Makes the engine of the subgroup of ranks with the same color, ordered by key and then by rank. All ranks call it.
   * May wait for them, until the timeout. NULL: UNSUPPORTED. */
  rondo_status (*split)(void *user, uint32_t color, uint32_t key, uint32_t timeout_ms,
                        struct rondo_collective_engine *out_engine);
  /* Frees the engine. Nothing is in progress, unless the communicator has failed. Required. */
  void (*close)(void *user);
} rondo_collective_engine;
#define RONDO_COLLECTIVE_ENGINE_INIT .struct_size = sizeof(rondo_collective_engine)

/* Makes the communicator of one rank on an engine. The communicator owns the engine, and calls `close` when it and all
 * graphs and execs that captured its collectives are gone. If the call fails, the caller still owns the engine. options
 * may be NULL. Errors: INVALID_ARGUMENT (NULL_ARGUMENT; BAD_OPTIONS: start, test or close is missing; OUT_OF_RANGE:
 * rank is not below world_size); UNSUPPORTED/OTHER_DEVICE (not a CPU device); OUT_OF_MEMORY; LIMIT_EXCEEDED (threads).
 * Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_from_engine(rondo_device *device,
                                                                     const rondo_collective_engine *engine,
                                                                     const rondo_communicator_options *options,
                                                                     rondo_communicator **out_communicator);

RONDO_EXTERN_C_END

#endif

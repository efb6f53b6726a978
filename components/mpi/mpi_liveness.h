/* SPDX-License-Identifier: MIT
 * What ranks tell each other besides collectives: how far they are, when a collective waits long, and that they have
 * failed. Messages go over the control communicator, from rank to rank, and nobody waits for them.
 *
 * Threads: begin, watch and end belong to the thread with the engine's turn; notify and absent to any one thread at a
 * time, which is also why `report` and `heard_in` have a lock.
 */
#ifndef RONDO_MPI_LIVENESS_H
#define RONDO_MPI_LIVENESS_H

#include <mpi.h>
#include <pthread.h>
#include <rondo/status.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "mpi/mpi_description.h"

struct rondo_mpi_engine;

enum { RONDO_MPI_FAILURE_TEXT = 400, RONDO_MPI_HISTORY = 8 };

/* A message: what a rank waits in, or why it failed. */
typedef struct rondo_mpi_report {
  rondo_mpi_description waits_in;      /* operation 0: nothing; its number is that of the last collective */
  uint64_t history[RONDO_MPI_HISTORY]; /* by number, modulo: hashes of all collectives up to that one */
  uint32_t asks;                       /* answer with a report */
  uint32_t has_failed;
  char failure[RONDO_MPI_FAILURE_TEXT];
} rondo_mpi_report;

/* What is known of another rank, and what is sent to it. */
typedef struct rondo_mpi_peer {
  rondo_mpi_report report;
  uint64_t heard_in; /* the value of `begun` when its last message came */
  bool owes_answer;
  MPI_Request send; /* of `sent` */
  rondo_mpi_report sent;
} rondo_mpi_peer;

typedef struct rondo_mpi_liveness {
  rondo_mpi_peer *peers; /* by rank */
  pthread_mutex_t lock;  /* of `report` and `heard_in` of peers */
  MPI_Request *failures; /* by rank */
  rondo_mpi_report failure;
  atomic_bool was_told, has_sent;  /* by another rank that it has failed; a message to any rank */
  uint64_t asked_ns, ask_after_ns; /* when the ranks were asked; how long a collective waits before that */
  uint64_t first_ask_ns;           /* ask_after_ns when a collective begins */
  uint64_t first_asked_ns;         /* when the ranks were asked first by the collective in progress; 0: not yet */
  uint64_t began_ns;               /* when the collective in progress began; 0: none */
  uint64_t begun;                  /* collectives, with sends and receives */
} rondo_mpi_liveness;

/* `timeout_ms` is that of a collective: the ranks are asked early enough to answer before. */
RONDO_MUST_USE rondo_status rondo_mpi_liveness_make(rondo_mpi_liveness *liveness, int ranks, uint32_t timeout_ms);
/* False: messages are still on their way, so MPI may read them, and nothing was freed. */
bool rondo_mpi_liveness_free(rondo_mpi_liveness *liveness, int ranks, bool has_mpi);

/* A collective begins; and ends. */
void rondo_mpi_liveness_begin(rondo_mpi_liveness *liveness);
static inline void rondo_mpi_liveness_end(rondo_mpi_liveness *liveness) { liveness->began_ns = 0; }

/* The engine's functions of these names. */
rondo_status rondo_mpi_watch(void *user);
void rondo_mpi_absent(void *user, char *text, size_t bytes);
void rondo_mpi_notify(void *user, const char *message);

#endif

/* SPDX-License-Identifier: MIT
 * See the header.
 */
#include "mpi/mpi_liveness.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpi/mpi_engine.h"

enum { TAG = 1, DESCRIPTION_BYTES = 96 };

/* A collective that waits longer, or for a part of the timeout, makes the rank ask the others; then after twice the
 * time, and so on. A rank that answers does so within ANSWER_NS: each side looks for messages when it watches. */
static const uint64_t ASK_NS = UINT64_C(250000000), MAX_ASK_NS = UINT64_C(8000000000);
static const uint64_t NS_A_MS = UINT64_C(1000000), ANSWER_NS = UINT64_C(200000000);
enum { TIMEOUT_PARTS = 4 };
static const uint64_t PUSH_NS = UINT64_C(200000000); /* how long a failure is pushed on its way, at most */

static uint64_t now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Life ------------------------------------------------------------------------------------------------------------ */

rondo_status rondo_mpi_liveness_make(rondo_mpi_liveness *liveness, int ranks, uint32_t timeout_ms) {
  const uint64_t part_ns = timeout_ms * NS_A_MS / TIMEOUT_PARTS;
  *liveness = (rondo_mpi_liveness){.first_ask_ns = part_ns < ASK_NS ? part_ns : ASK_NS};
  liveness->peers = calloc((size_t)ranks, sizeof *liveness->peers);
  liveness->failures = calloc((size_t)ranks, sizeof *liveness->failures);
  if (liveness->peers == NULL || liveness->failures == NULL) {
    free(liveness->peers);
    free(liveness->failures);
    return rondo_mpi_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED, "no memory for the state of %d ranks",
                          ranks);
  }
  (void)pthread_mutex_init(&liveness->lock, NULL);
  for (int i = 0; i < ranks; i++) liveness->peers[i].send = liveness->failures[i] = MPI_REQUEST_NULL;
  return RONDO_OK;
}

static bool is_sent(MPI_Request *request) {
  int is_done = 0;
  return *request == MPI_REQUEST_NULL || (MPI_Test(request, &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS && is_done);
}

/* Not cancelled: OpenMPI cannot, and MPICH waits for the other rank's answer. */
bool rondo_mpi_liveness_free(rondo_mpi_liveness *liveness, int ranks, bool has_mpi) {
  for (int i = 0; has_mpi && i < ranks; i++)
    if (!is_sent(&liveness->peers[i].send) || !is_sent(&liveness->failures[i])) return false;
  (void)pthread_mutex_destroy(&liveness->lock);
  free(liveness->peers);
  free(liveness->failures);
  return true;
}

void rondo_mpi_liveness_begin(rondo_mpi_liveness *liveness) {
  liveness->begun++;
  liveness->began_ns = liveness->asked_ns = 1; /* the clock is read when somebody watches */
  liveness->ask_after_ns = liveness->first_ask_ns;
  liveness->first_asked_ns = 0;
}

/* Messages -------------------------------------------------------------------------------------------------------- */

static rondo_mpi_report report_of(const rondo_mpi_engine *engine, bool asks) {
  rondo_mpi_report report = {.asks = asks};
  memcpy(report.history, engine->history, sizeof report.history);
  report.waits_in.number = engine->number;
  if (engine->phase != RONDO_MPI_IDLE) report.waits_in = engine->own;
  return report;
}

/* Omitted while the last message is on its way. */
static rondo_status send_report(rondo_mpi_engine *engine, int rank, bool asks) {
  rondo_mpi_peer *peer = &engine->liveness.peers[rank];
  int is_done = 0;
  rondo_status status =
      rondo_mpi_check_peer(MPI_Test(&peer->send, &is_done, MPI_STATUS_IGNORE), rank, "sending a report");
  if (status != RONDO_OK || !is_done) return status;
  peer->sent = report_of(engine, asks);
  atomic_store(&engine->liveness.has_sent, true);
  status = rondo_mpi_check_peer(
      MPI_Isend(&peer->sent, (int)sizeof peer->sent, MPI_BYTE, rank, TAG, engine->group.control, &peer->send), rank,
      "sending a report");
  peer->owes_answer = false;
  return status;
}

/* Receives one message if there is one. */
static rondo_status receive(rondo_mpi_engine *engine, int *out_rank) {
  MPI_Status status;
  rondo_mpi_report report;
  int is_there = 0;
  *out_rank = -1;
  RONDO_MPI_TRY(MPI_Iprobe(MPI_ANY_SOURCE, TAG, engine->group.control, &is_there, &status), "looking for reports");
  if (!is_there) return RONDO_OK;
  RONDO_MPI_TRY(
      MPI_Recv(&report, (int)sizeof report, MPI_BYTE, status.MPI_SOURCE, TAG, engine->group.control, MPI_STATUS_IGNORE),
      "receiving a report");
  report.failure[sizeof report.failure - 1] = '\0';
  rondo_mpi_peer *peer = &engine->liveness.peers[status.MPI_SOURCE];
  pthread_mutex_lock(&engine->liveness.lock);
  peer->report = report;
  peer->heard_in = engine->liveness.begun;
  pthread_mutex_unlock(&engine->liveness.lock);
  peer->owes_answer = peer->owes_answer || report.asks != 0;
  *out_rank = status.MPI_SOURCE;
  return RONDO_OK;
}

/* Watching -------------------------------------------------------------------------------------------------------- */

/* Whether the ranks called different collectives up to the last one that both know. */
static bool differs(const rondo_mpi_engine *engine, const rondo_mpi_report *report) {
  const uint64_t own = engine->number, other = report->waits_in.number, last = own < other ? own : other;
  const bool is_known = last > 0 && own - last < RONDO_MPI_HISTORY && other - last < RONDO_MPI_HISTORY;
  return is_known && engine->history[last % RONDO_MPI_HISTORY] != report->history[last % RONDO_MPI_HISTORY];
}

/* Names both if they wait in the same one, which then is the one that differs, or comes after it. */
static rondo_status fail_difference(const rondo_mpi_engine *engine, int rank) {
  const rondo_mpi_description *other = &engine->liveness.peers[rank].report.waits_in, *own = &engine->own;
  char of_own[DESCRIPTION_BYTES], of_other[DESCRIPTION_BYTES];
  const bool is_first = engine->group.rank < rank;
  if (engine->phase == RONDO_MPI_IDLE || other->operation == 0 || own->number != other->number)
    return rondo_mpi_fail(RONDO_EXECUTION_FAILED, RONDO_REASON_MISMATCH,
                          "rank %d called other collectives than rank %d: call the same collectives in the same order "
                          "on all ranks",
                          rank, engine->group.rank);
  rondo_mpi_description_text(own, of_own, sizeof of_own);
  rondo_mpi_description_text(other, of_other, sizeof of_other);
  return rondo_mpi_fail(RONDO_EXECUTION_FAILED, RONDO_REASON_MISMATCH,
                        "rank %d calls %s, but rank %d calls %s (collective %llu): call the same collectives in the "
                        "same order on all ranks",
                        is_first ? engine->group.rank : rank, is_first ? of_own : of_other,
                        is_first ? rank : engine->group.rank, is_first ? of_other : of_own,
                        (unsigned long long)own->number);
}

static rondo_status judge(rondo_mpi_engine *engine, int rank) {
  const rondo_mpi_report *report = &engine->liveness.peers[rank].report;
  if (report->has_failed != 0) engine->liveness.was_told = true;
  if (report->has_failed != 0)
    return rondo_mpi_fail(RONDO_EXECUTION_FAILED, RONDO_REASON_PEER_LOST, "rank %d has failed: %s", rank,
                          report->failure);
  return differs(engine, report) ? fail_difference(engine, rank) : RONDO_OK;
}

static rondo_status ask(rondo_mpi_engine *engine) {
  rondo_mpi_liveness *l = &engine->liveness;
  const uint64_t now = now_ns();
  if (l->began_ns == 1) l->began_ns = l->asked_ns = now;
  if (now - l->asked_ns < l->ask_after_ns) return RONDO_OK;
  l->asked_ns = now;
  if (l->first_asked_ns == 0) l->first_asked_ns = now;
  l->ask_after_ns = 2 * l->ask_after_ns < MAX_ASK_NS ? 2 * l->ask_after_ns : MAX_ASK_NS;
  for (int i = 0; i < engine->group.size; i++) {
    const rondo_status status = i == engine->group.rank ? RONDO_OK : send_report(engine, i, true);
    if (status != RONDO_OK) return status;
  }
  return RONDO_OK;
}

static rondo_status watch(rondo_mpi_engine *engine) {
  rondo_status status = RONDO_OK;
  int rank;
  do {
    status = receive(engine, &rank);
    if (status == RONDO_OK && rank >= 0) status = judge(engine, rank);
  } while (status == RONDO_OK && rank >= 0);
  for (int i = 0; i < engine->group.size && status == RONDO_OK; i++)
    if (engine->liveness.peers[i].owes_answer) status = send_report(engine, i, false);
  if (status == RONDO_OK && engine->liveness.began_ns != 0) status = ask(engine);
  return status;
}

rondo_status rondo_mpi_watch(void *user) {
  rondo_mpi_engine *engine = user;
  if (!rondo_mpi_enter_turn(&engine->state)) return rondo_mpi_fail_ended();
  const rondo_status status = watch(engine);
  rondo_mpi_leave_turn(&engine->state);
  return status;
}

/* Failing --------------------------------------------------------------------------------------------------------- */

/* Whether the collective in progress waits for that rank. */
static bool waits_for(const rondo_mpi_engine *engine, int rank) {
  const rondo_collective *work = &engine->work;
  if (rank == engine->group.rank) return false;
  if (work->operation != RONDO_COLLECTIVE_SEND_RECEIVE) return true;
  return (work->src != NULL && (int)work->to == rank) || (work->dst != NULL && (int)work->from == rank);
}

/* Why the collective in progress waits for a rank, as the message says it. */
typedef enum absence { PRESENT, DID_NOT_CALL, DID_NOT_ANSWER, HAD_NO_TIME, ABSENCES } absence;
static const char *const absences[ABSENCES] = {
    [DID_NOT_CALL] = "did not call it",
    [DID_NOT_ANSWER] = "did not answer (it has ended, is stopped, or has destroyed its communicator)",
    [HAD_NO_TIME] = "had no time to answer: with a longer timeout_ms, the message says which rank is missing",
};

/* With the lock. */
static absence absence_of(const rondo_mpi_engine *engine, int rank, bool had_time) {
  const rondo_mpi_liveness *l = &engine->liveness;
  const rondo_mpi_peer *peer = &l->peers[rank];
  const bool is_pair = engine->work.operation == RONDO_COLLECTIVE_SEND_RECEIVE;
  if (!waits_for(engine, rank)) return PRESENT;
  if (peer->heard_in != l->begun) return had_time ? DID_NOT_ANSWER : HAD_NO_TIME;
  return is_pair || peer->report.waits_in.number < engine->own.number ? DID_NOT_CALL : PRESENT;
}

/* Appends "rank 1, 3 did not call it". A list without room for all ends with dots. */
static void append_ranks(const rondo_mpi_engine *engine, absence which, bool had_time, char *text, size_t bytes) {
  const size_t needed = sizeof "; rank 65535" + sizeof ", ... " + strlen(absences[which]);
  size_t used = strlen(text);
  int listed = 0;
  for (int i = 0; i < engine->group.size; i++) {
    if (absence_of(engine, i, had_time) != which) continue;
    if (used + needed > bytes) {
      if (listed > 0) used += (size_t)snprintf(text + used, bytes - used, ", ...");
      break;
    }
    const char *const before = listed++ > 0 ? ", " : used > 0 ? "; rank " : "rank ";
    used += (size_t)snprintf(text + used, bytes - used, "%s%d", before, i);
  }
  if (listed > 0) (void)snprintf(text + used, bytes - used, " %s", absences[which]);
}

void rondo_mpi_absent(void *user, char *text, size_t bytes) {
  rondo_mpi_engine *engine = user;
  rondo_mpi_liveness *l = &engine->liveness;
  const bool had_time = l->first_asked_ns != 0 && now_ns() - l->first_asked_ns >= ANSWER_NS;
  text[0] = '\0';
  pthread_mutex_lock(&l->lock);
  for (absence which = DID_NOT_CALL; which < ABSENCES; which++) append_ranks(engine, which, had_time, text, bytes);
  pthread_mutex_unlock(&l->lock);
  if (text[0] == '\0') (void)snprintf(text, bytes, "all ranks wait in it");
}

/* Messages leave when MPI is called, and nobody calls it for this group any more: gives them a moment. */
static void push(rondo_mpi_liveness *l, int ranks) {
  const uint64_t end_ns = now_ns() + PUSH_NS;
  for (int i = 0; i < ranks; i++)
    while (!is_sent(&l->failures[i]) && now_ns() < end_ns) (void)sched_yield();
}

/* A rank that was told does not tell it again: the first one tells all. */
void rondo_mpi_notify(void *user, const char *message) {
  rondo_mpi_engine *engine = user;
  rondo_mpi_liveness *l = &engine->liveness;
  if (l->was_told || !rondo_mpi_enter(&engine->state)) return;
  l->failure = (rondo_mpi_report){.has_failed = 1};
  l->has_sent = true;
  (void)snprintf(l->failure.failure, sizeof l->failure.failure, "%s", message);
  for (int i = 0; i < engine->group.size; i++)
    if (i != engine->group.rank)
      (void)MPI_Isend(&l->failure, (int)sizeof l->failure, MPI_BYTE, i, TAG, engine->group.control, &l->failures[i]);
  push(l, engine->group.size);
  rondo_mpi_leave(&engine->state);
}

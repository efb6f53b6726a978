/* SPDX-License-Identifier: MIT
 * The engine's table: the phases of a collective, dividing the group, and the engine's life.
 */
#include "mpi/mpi_engine.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/mpi_communicator.h"

/* The ranks also agree on every so many-th collective, so that one that differs without any effect on MPI is found. */
enum { AGREEMENT_INTERVAL = 256, DESCRIPTION_BYTES = 96 };

/* Agreeing -------------------------------------------------------------------------------------------------------- */

/* The maximum of the hash and that of its complement tell whether the minimum and the maximum are equal. */
static rondo_status start_agreement(rondo_mpi_engine *e, uint64_t hash) {
  e->phase = RONDO_MPI_AGREES;
  e->sent_hash[0] = hash;
  e->sent_hash[1] = ~hash;
  return rondo_mpi_check(
      MPI_Iallreduce(e->sent_hash, e->max_hash, 2, MPI_UINT64_T, MPI_MAX, e->group.control, &e->agreement),
      "comparing what the ranks call");
}

/* They differ: every rank tells all others what it calls. */
static rondo_status start_difference(rondo_mpi_engine *e) {
  e->phase = RONDO_MPI_DIFFERS;
  e->all = calloc((size_t)e->group.size, sizeof *e->all);
  if (e->all == NULL)
    return rondo_mpi_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED, "no memory to name ranks that differ");
  return rondo_mpi_check(MPI_Iallgather(&e->own, (int)sizeof e->own, MPI_BYTE, e->all, (int)sizeof e->own, MPI_BYTE,
                                        e->group.control, &e->agreement),
                         "comparing what the ranks call");
}

static rondo_status fail_difference(const rondo_mpi_engine *e) {
  char of_first[DESCRIPTION_BYTES], of_other[DESCRIPTION_BYTES];
  int other = 1;
  while (other < e->group.size && memcmp(&e->all[other], &e->all[0], sizeof e->all[0]) == 0) other++;
  if (other == e->group.size)
    return rondo_mpi_fail(RONDO_EXECUTION_FAILED, RONDO_REASON_MISMATCH,
                          "the ranks called different collectives among the last %d: call the same collectives in the "
                          "same order on all ranks",
                          AGREEMENT_INTERVAL);
  rondo_mpi_description_text(&e->all[0], of_first, sizeof of_first);
  rondo_mpi_description_text(&e->all[other], of_other, sizeof of_other);
  return rondo_mpi_fail(
      RONDO_EXECUTION_FAILED, RONDO_REASON_MISMATCH,
      "rank 0 calls %s, but rank %d calls %s (collective %llu): call the same collectives in the same "
      "order on all ranks",
      of_first, other, of_other, (unsigned long long)e->own.number);
}

/* Moving data ----------------------------------------------------------------------------------------------------- */

static rondo_status start_data(rondo_mpi_engine *e, rondo_mpi_known *known, uint64_t hash) {
  e->phase = RONDO_MPI_MOVES;
  return rondo_mpi_operation_start(&e->operation, &e->cache, &e->group, known, &e->work, hash);
}

/* The ranks have agreed. */
static rondo_status start_agreed(rondo_mpi_engine *e) {
  const uint64_t hash = rondo_mpi_description_hash(&e->own);
  rondo_mpi_known *known = rondo_mpi_cache_find(&e->cache, &e->own, hash);
  if (known == NULL) {
    const rondo_status status = rondo_mpi_cache_add(&e->cache, &e->group, &e->work, &e->own, hash, &known);
    if (status != RONDO_OK) return status;
  }
  return start_data(e, known, hash);
}

static rondo_status start(rondo_mpi_engine *e) {
  if (e->work.operation == RONDO_COLLECTIVE_SEND_RECEIVE) {
    e->own = rondo_mpi_describe(&e->work, e->number);
    return start_data(e, NULL, 0);
  }
  e->own = rondo_mpi_describe(&e->work, ++e->number);
  rondo_mpi_known *known = rondo_mpi_cache_find_again(&e->cache, &e->own);
  const uint64_t hash = known != NULL ? known->hash : rondo_mpi_description_hash(&e->own);
  if (known == NULL) known = rondo_mpi_cache_find(&e->cache, &e->own, hash);
  const uint64_t history = (e->history[(e->number - 1) % RONDO_MPI_HISTORY] ^ hash) * UINT64_C(0x9e3779b97f4a7c15);
  e->history[e->number % RONDO_MPI_HISTORY] = history;
  if (known == NULL || e->number % AGREEMENT_INTERVAL == 0) return start_agreement(e, history);
  return start_data(e, known, hash);
}

static rondo_status mpi_start(void *user, const rondo_collective *work, bool is_captured) {
  rondo_mpi_engine *e = user;
  (void)is_captured; /* one rank may replay what another calls */
  if (!rondo_mpi_enter_turn(&e->state)) return rondo_mpi_fail_ended();
  e->work = *work;
  rondo_mpi_liveness_begin(&e->liveness);
  const rondo_status status = start(e);
  rondo_mpi_leave_turn(&e->state);
  return status;
}

/* The agreement, or the exchange of descriptions, is done. */
static rondo_status go_on(rondo_mpi_engine *e) {
  if (e->phase == RONDO_MPI_DIFFERS) return fail_difference(e);
  return e->max_hash[0] == ~e->max_hash[1] ? start_agreed(e) : start_difference(e);
}

static rondo_status test(rondo_mpi_engine *e, bool *out_is_done) {
  if (e->phase == RONDO_MPI_MOVES) return rondo_mpi_operation_test(&e->operation, out_is_done);
  int is_done = 0;
  RONDO_MPI_TRY(MPI_Test(&e->agreement, &is_done, MPI_STATUS_IGNORE), "comparing what the ranks call");
  return is_done ? go_on(e) : RONDO_OK;
}

static rondo_status mpi_test(void *user, bool *out_is_done) {
  rondo_mpi_engine *e = user;
  *out_is_done = false;
  if (!rondo_mpi_enter_turn(&e->state)) return rondo_mpi_fail_ended();
  const rondo_status status = test(e, out_is_done);
  rondo_mpi_leave_turn(&e->state);
  if (*out_is_done) {
    e->phase = RONDO_MPI_IDLE;
    rondo_mpi_liveness_end(&e->liveness);
  }
  return status;
}

static rondo_status mpi_check_work(void *user, const rondo_collective *work) {
  const rondo_mpi_engine *e = user;
  return rondo_mpi_operation_check(work, e->group.size);
}

/* Life ------------------------------------------------------------------------------------------------------------ */

static rondo_status mpi_split(void *user, uint32_t color, uint32_t key, uint32_t timeout_ms,
                              rondo_collective_engine *out) {
  rondo_mpi_engine *e = user;
  rondo_mpi_group group;
  if (e->has_failed_split)
    return rondo_mpi_fail(RONDO_INVALID_STATE, e->split_reason,
                          "an earlier rondo_communicator_split of this group failed: create the group again");
  if (!rondo_mpi_enter(&e->state)) return rondo_mpi_fail_ended();
  rondo_status status = rondo_mpi_group_divide(&e->group, color, key, timeout_ms, &group);
  e->has_failed_split = status != RONDO_OK && status != RONDO_OUT_OF_MEMORY;
  if (e->has_failed_split) e->split_reason = rondo_last_error()->reason;
  if (status == RONDO_OK)
    status = rondo_mpi_group_make_engine(&group, e->timeout_ms, timeout_ms, "rondo_communicator_split", out);
  rondo_mpi_leave(&e->state);
  return status;
}

/* A late message must not reach another group, so the communicator of ranks that sent one is not freed: then none of
 * its ranks that talked to each other gets its number again. */
static void free_group(rondo_mpi_engine *e) {
  if (atomic_load(&e->liveness.has_sent)) e->group.control = MPI_COMM_NULL;
  if (e->has_failed_split) e->group.division = MPI_COMM_NULL;
  rondo_mpi_group_free(&e->group);
}

/* What is in progress after a failure stays, with its memory, because MPI cannot cancel a collective. Freeing the
 * communicators waits for nobody. */
static void mpi_close(void *user) {
  rondo_mpi_engine *e = user;
  const bool has_mpi = rondo_mpi_enter(&e->state), is_idle = e->phase == RONDO_MPI_IDLE || !has_mpi;
  const bool is_free = rondo_mpi_liveness_free(&e->liveness, e->group.size, has_mpi) && is_idle;
  if (is_idle) rondo_mpi_cache_free(&e->cache, has_mpi);
  if (is_idle && has_mpi) free_group(e);
  if (has_mpi) {
    rondo_mpi_leave(&e->state);
    rondo_mpi_state_end(&e->state);
  }
  if (!is_free) return;
  free(e->all);
  free(e);
}

rondo_status rondo_mpi_engine_make(const rondo_mpi_group *group, uint32_t timeout_ms, rondo_collective_engine *out) {
  rondo_mpi_engine *e = calloc(1, sizeof *e);
  if (e == NULL) return rondo_mpi_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED, "no memory for the engine");
  e->group = *group;
  e->timeout_ms = timeout_ms;
  rondo_status status = rondo_mpi_liveness_make(&e->liveness, group->size, timeout_ms);
  if (status == RONDO_OK) {
    status = rondo_mpi_state_begin(&e->state);
    if (status != RONDO_OK) (void)rondo_mpi_liveness_free(&e->liveness, group->size, true);
  }
  if (status != RONDO_OK) {
    free(e);
    return status;
  }
  *out = (rondo_collective_engine){RONDO_COLLECTIVE_ENGINE_INIT,
                                   .rank = (uint32_t)group->rank,
                                   .world_size = (uint32_t)group->size,
                                   .name = "MPI",
                                   .user = e,
                                   .check = mpi_check_work,
                                   .start = mpi_start,
                                   .test = mpi_test,
                                   .watch = rondo_mpi_watch,
                                   .absent = rondo_mpi_absent,
                                   .notify = rondo_mpi_notify,
                                   .split = mpi_split,
                                   .close = mpi_close};
  return RONDO_OK;
}

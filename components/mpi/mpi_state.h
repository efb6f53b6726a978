/* SPDX-License-Identifier: MIT
 * MPI's own state and errors. MPI_Finalize begins by deleting the attributes of MPI_COMM_SELF, so an attribute there
 * tells each engine that MPI ends: from then on the engine calls MPI no more. The attribute's deletion waits for a call
 * in progress, which does not wait for other ranks, except a split.
 */
#ifndef RONDO_MPI_STATE_H
#define RONDO_MPI_STATE_H

#include <mpi.h>
#include <rondo/status.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct rondo_mpi_state {
  atomic_bool is_ended; /* MPI_Finalize was called */
  atomic_bool has_turn; /* the thread with the engine's turn is in MPI: start, test or watch */
  atomic_uint calls;    /* of other threads, in progress */
  int key;              /* of the attribute */
} rondo_mpi_state;

/* INVALID_STATE before MPI_Init_thread and after MPI_Finalize: some functions of MPI end the program then. */
RONDO_MUST_USE rondo_status rondo_mpi_require_running(void);
/* Also INVALID_STATE without MPI_THREAD_MULTIPLE. */
RONDO_MUST_USE rondo_status rondo_mpi_require_ready(void);

/* Attach to MPI_COMM_SELF, and detach. */
RONDO_MUST_USE rondo_status rondo_mpi_state_begin(rondo_mpi_state *state);
void rondo_mpi_state_end(rondo_mpi_state *state);

/* Around calls of MPI. False if MPI has ended: then there is nothing to leave. */
static inline bool rondo_mpi_enter(rondo_mpi_state *state) {
  atomic_fetch_add(&state->calls, 1);
  if (!atomic_load(&state->is_ended)) return true;
  atomic_fetch_sub(&state->calls, 1);
  return false;
}
static inline void rondo_mpi_leave(rondo_mpi_state *state) { atomic_fetch_sub(&state->calls, 1); }
/* The same with the engine's turn, which one thread has at a time. For each test, so without a second atomic exchange.
 */
static inline bool rondo_mpi_enter_turn(rondo_mpi_state *state) {
  (void)atomic_exchange(&state->has_turn, true);
  if (!atomic_load(&state->is_ended)) return true;
  atomic_store(&state->has_turn, false);
  return false;
}
static inline void rondo_mpi_leave_turn(rondo_mpi_state *state) {
  atomic_store_explicit(&state->has_turn, false, memory_order_release);
}

/* INVALID_STATE: MPI_Finalize came first. */
rondo_status rondo_mpi_fail_ended(void);

/* Sets the last error. The message is formatted. */
rondo_status rondo_mpi_fail(rondo_status status, rondo_reason reason, const char *format, ...) RONDO_PRINTF(3, 4);

/* Sets the last error to EXECUTION_FAILED with the code and the text of MPI. */
RONDO_MUST_USE rondo_status rondo_mpi_fail_code(int code, const char *what);
static inline RONDO_MUST_USE rondo_status rondo_mpi_check(int code, const char *what) {
  return __builtin_expect(code == MPI_SUCCESS, 1) ? RONDO_OK : rondo_mpi_fail_code(code, what);
}
/* The same for a call that sends to one rank: MPI has found out that the rank is gone. */
RONDO_MUST_USE rondo_status rondo_mpi_fail_peer(int code, int rank, const char *what);
static inline RONDO_MUST_USE rondo_status rondo_mpi_check_peer(int code, int rank, const char *what) {
  return __builtin_expect(code == MPI_SUCCESS, 1) ? RONDO_OK : rondo_mpi_fail_peer(code, rank, what);
}
#define RONDO_MPI_TRY(code, what)                                     \
  do {                                                                \
    const rondo_status mpi_status_ = rondo_mpi_check((code), (what)); \
    if (mpi_status_ != RONDO_OK) return mpi_status_;                  \
  } while (0)

#endif

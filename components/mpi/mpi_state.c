/* SPDX-License-Identifier: MIT
 * See the header.
 */
#include "mpi/mpi_state.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

rondo_status rondo_mpi_fail(rondo_status status, rondo_reason reason, const char *format, ...) {
  char message[768];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return rondo_error_set(&(rondo_error){.status = status, .reason = reason, .node = RONDO_NO_NODE, .message = message});
}

rondo_status rondo_mpi_fail_code(int code, const char *what) {
  char text[MPI_MAX_ERROR_STRING] = "", message[MPI_MAX_ERROR_STRING + 128];
  int length = 0, class = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) text[0] = '\0';
  if (MPI_Error_class(code, &class) != MPI_SUCCESS) class = code;
  const bool is_truncated = class == MPI_ERR_TRUNCATE;
  (void)snprintf(
      message, sizeof message, "%s: MPI says: %s%s", what, text,
      is_truncated
          ? ": ranks pass different numbers of elements: call the same collectives in the same order on all ranks"
          : "");
  return rondo_error_set(&(rondo_error){.status = RONDO_EXECUTION_FAILED,
                                        .reason = is_truncated ? RONDO_REASON_MISMATCH : RONDO_REASON_NONE,
                                        .node = RONDO_NO_NODE,
                                        .driver_code = class,
                                        .driver_name = "MPI",
                                        .message = message});
}

rondo_status rondo_mpi_fail_peer(int code, int rank, const char *what) {
  char text[MPI_MAX_ERROR_STRING + 128];
  const rondo_status status = rondo_mpi_fail_code(code, what);
  (void)snprintf(text, sizeof text, "%s", rondo_last_error()->message);
  return rondo_mpi_fail(status, RONDO_REASON_PEER_LOST, "rank %d cannot be reached: %s", rank, text);
}

rondo_status rondo_mpi_fail_ended(void) {
  return rondo_mpi_fail(RONDO_INVALID_STATE, RONDO_REASON_CALL_ORDER,
                        "MPI_Finalize was called before the communicator was destroyed: destroy the communicator, and "
                        "all graphs and execs that captured its collectives, first");
}

rondo_status rondo_mpi_require_running(void) {
  int is_initialized = 0, is_finalized = 0;
  if (MPI_Initialized(&is_initialized) != MPI_SUCCESS || !is_initialized)
    return rondo_mpi_fail(RONDO_INVALID_STATE, RONDO_REASON_CALL_ORDER,
                          "MPI is not initialized: call MPI_Init_thread with MPI_THREAD_MULTIPLE first");
  if (MPI_Finalized(&is_finalized) != MPI_SUCCESS || is_finalized)
    return rondo_mpi_fail(RONDO_INVALID_STATE, RONDO_REASON_CALL_ORDER,
                          "MPI is finalized: call MPI_Finalize after all calls of Rondo");
  return RONDO_OK;
}

rondo_status rondo_mpi_require_ready(void) {
  int level = MPI_THREAD_SINGLE;
  const rondo_status status = rondo_mpi_require_running();
  if (status != RONDO_OK) return status;
  if (MPI_Query_thread(&level) == MPI_SUCCESS && level == MPI_THREAD_MULTIPLE) return RONDO_OK;
  return rondo_mpi_fail(RONDO_INVALID_STATE, RONDO_REASON_CONCURRENT_USE,
                        "MPI was initialized with thread level %d, but workers and the progress thread call MPI: call "
                        "MPI_Init_thread with MPI_THREAD_MULTIPLE (%d)",
                        level, MPI_THREAD_MULTIPLE);
}

/* MPI_Comm_delete_attr_function. */
static int end_state(MPI_Comm communicator, int key, void *value, void *extra) {
  rondo_mpi_state *state = value;
  (void)communicator, (void)key, (void)extra;
  atomic_store(&state->is_ended, true);
  while (atomic_load(&state->has_turn) || atomic_load(&state->calls) != 0) (void)sched_yield();
  return MPI_SUCCESS;
}

rondo_status rondo_mpi_state_begin(rondo_mpi_state *state) {
  state->key = MPI_KEYVAL_INVALID;
  const int code = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_state, &state->key, NULL);
  RONDO_MPI_TRY(code, "creating an attribute");
  return rondo_mpi_check(MPI_Comm_set_attr(MPI_COMM_SELF, state->key, state), "setting an attribute");
}

void rondo_mpi_state_end(rondo_mpi_state *state) {
  if (state->key == MPI_KEYVAL_INVALID || atomic_load(&state->is_ended)) return;
  (void)MPI_Comm_delete_attr(MPI_COMM_SELF, state->key); /* which calls end_state */
  (void)MPI_Comm_free_keyval(&state->key);
}

/* SPDX-License-Identifier: MIT
 * The server's functions, which are looked up once, when the backend is loaded; and errors from one side to the other.
 */
#ifndef RONDO_TRITON_SERVER_FUNCTIONS_H
#define RONDO_TRITON_SERVER_FUNCTIONS_H

#include "base/error.h"
#include "triton/server_abi.h"

#define TRITON_MEMBER(result, member, symbol, arguments) result(*member) arguments;
typedef struct rondo_triton_functions {
  TRITON_FUNCTIONS(TRITON_MEMBER)
  TRITON_OPTIONAL_FUNCTIONS(TRITON_MEMBER)
} rondo_triton_functions;

/* Written by rondo_triton_find_server before any other use; constant once that has succeeded. After a failure it has
 * the functions that are there. */
extern rondo_triton_functions rondo_triton_server;

/* Looks the functions up in the process. Thread-safe. Errors: UNAVAILABLE with NO_DRIVER, naming the first function
 * that is missing; UNSUPPORTED/NONE (the server has another major version of the interface). */
RONDO_MUST_USE rondo_status rondo_triton_find_server(void);

/* A status, with the message of the thread's last error, as an error of the server; NULL for RONDO_OK. */
triton_error *rondo_triton_error(rondo_status status);

/* An error of the server as a status: "what: message". Deletes the error. RONDO_OK for NULL. */
RONDO_MUST_USE rondo_status rondo_triton_check(triton_error *error, const char *what);

/* Deletes an error that nobody can be told of. */
void rondo_triton_ignore(triton_error *error);

/* Writes a line to the server's log. */
void rondo_triton_log(triton_log_level level, const char *format, ...) RONDO_PRINTF(2, 3);

#endif

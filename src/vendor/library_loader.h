/* SPDX-License-Identifier: MIT
 * One library that is loaded at run time: its names, the functions that it must have, and whether it was found.
 * A library is searched for at the first request: by the files that its environment variable names, else by its usual
 * names. The value "none" turns it off. It is never unloaded, because other users in the process may hold its state. If
 * a library is not used, the reason is kept.
 *
 * Threads: any. The upper part of the structure is constant. The search writes the lower part, under `search`; after
 * that it is constant. Messages of the search are logged after the lock is released.
 */
#ifndef RONDO_VENDOR_LIBRARY_LOADER_H
#define RONDO_VENDOR_LIBRARY_LOADER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/component.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/shared_library.h"

/* A row of an ABI header's list of functions: as a member of the table of functions, as its name, and as 1 in their
 * number. A table begins with the functions of its list, in order. */
#define RONDO_LIBRARY_MEMBER(result, member, symbol, arguments) result(*member) arguments;
#define RONDO_LIBRARY_NAME(result, member, symbol, arguments) #symbol,
#define RONDO_LIBRARY_COUNT(result, member, symbol, arguments) +1

/* Initializers of the fields that describe the functions. `list` is an array of names. */
#define RONDO_LIBRARY_FUNCTIONS(list, table) \
  .symbols = (list), .symbol_count = sizeof(list) / sizeof *(list), .functions = &(table)

#define RONDO_LIBRARY_NAMES 3

typedef struct rondo_library rondo_library;
struct rondo_library {
  const char *name, *purpose;
  const char *needed;  /* the product that has all the functions */
  const char *missing; /* how the message begins if no file opens; may be NULL */
  rondo_option option;
  const char *usual[RONDO_LIBRARY_NAMES]; /* NULL after the last */
  const char *const *symbols;             /* names */
  size_t symbol_count;
  size_t optional_count;        /* so many of the last functions may be missing, and are NULL then */
  void *functions;              /* the table; written once, before any thread reads it */
  rondo_library *base;          /* the library that this is a part of, and whose file it uses; may be NULL */
  const char *(*why_not)(void); /* returns why it is not searched for, or NULL; may be NULL */
  /* Refuses or prepares a file that has all functions. Errors: UNAVAILABLE with NO_DRIVER. May be NULL. */
  rondo_status (*accept)(const rondo_dylib *file);
  bool stays_loaded; /* even if it is refused: it does not survive being unloaded */

  pthread_mutex_t search;
  atomic_int state; /* 0: not searched for yet */
  rondo_dylib file;
  const char *note;          /* what users of a library that was found should know; NULL: nothing */
  bool is_faulty;            /* accept found a fault, which is logged as a warning */
  rondo_saved_error failure; /* why it is not used; its message is "" if it is */
};

/* Whether the functions can be called. A missing library is not an error. It is logged once, as a warning if the
 * environment names the library or the library is faulty. The last error of the thread stays. */
RONDO_PRIVATE bool rondo_library_find(rondo_library *library);

/* The same for a caller that requires the library. Logs nothing. Errors: UNAVAILABLE with NO_DRIVER, whose message
 * names each file that was tried. */
RONDO_MUST_USE rondo_status rondo_library_require(rondo_library *library);

/* The value of its environment variable: "" if it is not set. */
RONDO_PRIVATE const char *rondo_library_asked(const rondo_library *library);

#endif

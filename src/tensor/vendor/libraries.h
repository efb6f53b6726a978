/* SPDX-License-Identifier: MIT
 * Libraries that make the arithmetic of operators. Each is found by dlopen (its environment variable, else its usual
 * names; "none": it is not used) at the first question for it, and never unloaded: other users of it in the process may
 * hold its state. Why one is not used is kept.
 *
 * Threads: any. What is not part of the search is constant, and so is all the rest once the library was asked for. A
 * search holds its library's lock; what it has to say goes to the log behind that.
 */
#ifndef RONDO_TENSOR_VENDOR_LIBRARIES_H
#define RONDO_TENSOR_VENDOR_LIBRARIES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/environment.h"
#include "base/error.h"
#include "base/shared_library.h"

/* A function, and where its address belongs. */
typedef struct rondo_library_symbol {
  const char *name;
  size_t offset; /* in the library's table of functions */
} rondo_library_symbol;

#define RONDO_LIBRARY_NAMES 3

typedef struct rondo_library rondo_library;
struct rondo_library {
  const char *name, *purpose;
  const char *needed; /* what has all the functions */
  rondo_option option;
  const char *usual[RONDO_LIBRARY_NAMES]; /* NULL behind the last */
  const rondo_library_symbol *symbols;
  size_t symbol_count;
  void *functions;                                /* the table; written once, before any thread reads it */
  rondo_library *base;                            /* it is another part of this one, whose file is its; may be NULL */
  const char *(*why_not)(void);                   /* why it is not looked for, or NULL; may be NULL */
  const char *(*accept)(const rondo_dylib *file); /* what is wrong with one that has all functions; may be NULL */

  pthread_mutex_t search;
  atomic_int state; /* 0: nobody asked for it yet */
  rondo_dylib file;
  const char *note;                       /* of one that is used: what its users should know; NULL: nothing */
  bool is_faulty;                         /* accept met what should not be: said as a warning */
  char reason[RONDO_ERROR_MESSAGE_BYTES]; /* why it is not used; "" when it is */
};

/* Whether its functions can be called. That it is not there is no error of the call that looked for it; it is said once
 * through the log, as a warning where a library was asked for by name or has a fault. */
bool rondo_library_find(rondo_library *library);

/* What its environment variable says: "" when it is not set. */
const char *rondo_library_asked(const rondo_library *library);

extern rondo_library rondo_cublaslt, rondo_cudnn; /* on CUDA */
/* On a CPU (operators/): oneDNN's products, and its convolutions. */
extern rondo_library rondo_onednn_library, rondo_onednn_convolutions, rondo_cblas_library;

#endif

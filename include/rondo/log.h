/* SPDX-License-Identifier: MIT
 * Where the library says what is not an error. It never prints by itself: without a sink, nothing is said.
 */
#ifndef RONDO_LOG_H
#define RONDO_LOG_H

#include <rondo/version.h>

RONDO_EXTERN_C_BEGIN

typedef enum rondo_log_level {
  RONDO_LOG_ERROR = 0, /* something went wrong where no status can be returned */
  RONDO_LOG_WARNING = 1,
  RONDO_LOG_INFO = 2,
  RONDO_LOG_DEBUG = 3
} rondo_log_level;

/* Called with one line of text without a line end; `area` names the layer or a part of one: "check" (findings of
 * cpu:check), "cuda", "device", "exec", "memory", "options", "tensor", "trace", "tree" (each call of a function: what
 * became of it and why), "vendor" (libraries that were not found). May be called from any thread, also from several at
 * once; must not call Rondo. The strings live for the call only. */
typedef void (*rondo_log_fn)(void *user, rondo_log_level level, const char *area, const char *message);

/* Installs the process's one sink for messages up to `level`; fn = NULL takes it away. When it returns, the old sink is
 * no longer running: it waits for calls that are under way, so never call it from the sink or with a lock held that the
 * sink takes. The environment overrides `level`: RONDO_LOG=warning for all areas, RONDO_LOG=tree=info for one,
 * RONDO_LOG=tree for all that it says (debug); several are separated by commas, as in RONDO_LOG=error,tree,memory=info.
 * Thread-safe. */
RONDO_API void rondo_log_set_sink(rondo_log_fn fn, void *user, rondo_log_level level);

RONDO_EXTERN_C_END

#endif

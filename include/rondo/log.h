/* SPDX-License-Identifier: MIT
 * Log messages. The library never prints. It passes messages to a sink that the program installs; without a sink, they
 * are dropped.
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

/* Called with one line of text without a newline. `area` is the layer or a part of one: "check" (findings of
 * cpu:check), "cuda", "device", "exec", "memory", "options", "tensor", "trace", "tree" (for each call of a function
 * whether it was recorded, and why), "vendor" (libraries that were not found). May be called from any thread, also from
 * several at once. Must not call Rondo. The strings are valid during the call. */
typedef void (*rondo_log_fn)(void *user, rondo_log_level level, const char *area, const char *message);

/* Installs the sink of the process, for messages up to `level`; fn = NULL removes it. When the call returns, the
 * previous sink is no longer running: the call waits for it. So never call it from the sink, or while holding a lock
 * that the sink takes. The environment overrides `level`: RONDO_LOG=warning for all areas, RONDO_LOG=tree=info for one
 * area, RONDO_LOG=tree for all messages of an area (debug). Separate several by commas:
 * RONDO_LOG=error,tree,memory=info. Thread-safe. */
RONDO_API void rondo_log_set_sink(rondo_log_fn fn, void *user, rondo_log_level level);

RONDO_EXTERN_C_END

#endif

/* SPDX-License-Identifier: MIT
 * The log: one sink for the process. `wanted` is the highest level that the sink takes, so that a message nobody wants
 * costs one load.
 * Threads: any; `change` orders those that install sinks and is never taken by those that log.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include "base/logging.h"
#include "base/options.h"
#include "base/sink.h"
#include "base/text.h"

#define NO_LEVEL (-1)
#define LINE_BYTES 1024

static rondo_sink sink;
static _Atomic int wanted = NO_LEVEL;
static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;

/* What RONDO_LOG says, else `level`. */
static int effective_level(rondo_log_level level) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  const char *text = rondo_option_text(RONDO_OPTION_LOG);
  for (int i = 0; i <= RONDO_LOG_DEBUG; i++)
    if (strcmp(text, names[i]) == 0) return i;
  return (int)level;
}

void rondo_log_set_sink(rondo_log_fn fn, void *user, rondo_log_level level) {
  const int highest = fn == NULL ? NO_LEVEL : effective_level(level);
  pthread_mutex_lock(&change);
  rondo_sink_set(&sink, (rondo_sink_fn)fn, user, highest);
  atomic_store(&wanted, highest);
  pthread_mutex_unlock(&change);
  if (fn != NULL) rondo_options_report();
}

bool rondo_log_on(rondo_log_level level) { return (int)level <= atomic_load_explicit(&wanted, memory_order_relaxed); }

void rondo_log(rondo_log_level level, const char *area, const char *format, ...) {
  if (!rondo_log_on(level)) return;
  char line[LINE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  rondo_format_cut(line, sizeof line, format, arguments);
  va_end(arguments);
  for (char *end = line; (end = strpbrk(end, "\r\n")) != NULL;) *end = ' ';
  rondo_sink_slot *slot = rondo_sink_enter(&sink);
  if (slot == NULL) return;
  if ((int)level <= slot->level) ((rondo_log_fn)slot->fn)(slot->user, level, area, line);
  rondo_sink_leave(&sink, slot);
}

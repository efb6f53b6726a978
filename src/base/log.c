/* SPDX-License-Identifier: MIT
 * The log: one sink for the process. `wanted` is the highest level that the sink accepts for any area, so a message
 * that is not logged costs one load.
 * Threads: any. Installing a sink takes `change`; logging never does.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include "base/environment.h"
#include "base/log.h"
#include "base/sink.h"
#include "base/text.h"

#define NO_LEVEL (-1)
#define LINE_BYTES 1024

static rondo_sink sink;
static _Atomic int wanted = NO_LEVEL;
static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;

/* The areas for which RONDO_LOG can set a level. The levels change only when the environment is read again. */
static const char *const areas[] = {RONDO_LOG_AREAS};
#define AREA_COUNT (sizeof areas / sizeof areas[0])
static _Atomic int area_levels[AREA_COUNT];

static int find_word(const char *const *words, size_t count, const char *text, size_t length) {
  for (size_t i = 0; i < count; i++)
    if (strlen(words[i]) == length && memcmp(words[i], text, length) == 0) return (int)i;
  return -1;
}

static int find_level(const char *text, size_t length) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  return find_word(names, sizeof names / sizeof names[0], text, length);
}

/* Reads "LEVEL" (for all areas without their own level), "AREA" (all levels of it) or "AREA=LEVEL". */
static bool read_entry(const char *entry, size_t length, int levels[AREA_COUNT], int *inout_general) {
  const char *equals = memchr(entry, '=', length);
  const size_t name = equals == NULL ? length : (size_t)(equals - entry);
  const int area = find_word(areas, AREA_COUNT, entry, name);
  const int level = equals == NULL ? area >= 0 ? RONDO_LOG_DEBUG : find_level(entry, length)
                                   : find_level(equals + 1, length - name - 1);
  if (level < 0 || (equals != NULL && area < 0)) return false;
  *(area >= 0 ? &levels[area] : inout_general) = level;
  return true;
}

static bool read_entries(const char *text, int levels[AREA_COUNT], int *inout_general) {
  for (size_t i = 0; i < AREA_COUNT; i++) levels[i] = NO_LEVEL;
  for (;;) {
    const size_t length = strcspn(text, ",");
    if (!read_entry(text, length, levels, inout_general)) return false;
    if (text[length] == '\0') return true;
    text += length + 1;
  }
}

bool rondo_log_is_setting(const char *text) {
  int levels[AREA_COUNT], general = NO_LEVEL;
  return read_entries(text, levels, &general);
}

/* The level for areas without their own level: that of RONDO_LOG, or `level`. *out_highest is the highest level of all
 * areas. */
static int read_setting(rondo_log_level level, int *out_highest) {
  const char *text = rondo_option_text(RONDO_OPTION_LOG);
  int levels[AREA_COUNT], general = (int)level;
  for (size_t i = 0; i < AREA_COUNT; i++) levels[i] = NO_LEVEL;
  if (text[0] != '\0') (void)read_entries(text, levels, &general); /* it was validated when the environment was read */
  *out_highest = general;
  for (size_t i = 0; i < AREA_COUNT; i++) {
    atomic_store_explicit(&area_levels[i], levels[i], memory_order_relaxed);
    if (levels[i] > *out_highest) *out_highest = levels[i];
  }
  return general;
}

/* The highest level that is logged for an area. */
static int level_of(const char *area, int general) {
  const int index = find_word(areas, AREA_COUNT, area, strlen(area));
  const int own = index < 0 ? NO_LEVEL : atomic_load_explicit(&area_levels[index], memory_order_relaxed);
  return own == NO_LEVEL ? general : own;
}

void rondo_log_set_sink(rondo_log_fn fn, void *user, rondo_log_level level) {
  int general = NO_LEVEL, highest = NO_LEVEL;
  if (fn != NULL) general = read_setting(level, &highest);
  pthread_mutex_lock(&change);
  rondo_sink_set(&sink, (rondo_sink_fn)fn, user, general);
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
  if ((int)level <= level_of(area, slot->level)) ((rondo_log_fn)slot->fn)(slot->user, level, area, line);
  rondo_sink_leave(&sink, slot);
}

/* SPDX-License-Identifier: MIT
 * Finding a library and its functions. The header states the rules.
 */
#include "vendor/library_loader.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

enum { UNKNOWN, FOUND, MISSING }; /* states */

static rondo_status find_functions(rondo_library *library) {
  static_assert(sizeof(void *) == sizeof(void (*)(void)), "a table of functions is an array of addresses");
  for (size_t i = 0; i < library->symbol_count; i++) {
    void *address = rondo_dylib_symbol(&library->file, library->symbols[i]);
    if (address == NULL && i + library->optional_count < library->symbol_count)
      return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER, "%s has no %s: %s is needed", library->file.path,
                        library->symbols[i], library->needed);
    memcpy((char *)library->functions + i * sizeof address, &address, sizeof address);
  }
  return RONDO_OK;
}

/* The table of a refused library may be partly filled. Its functions are never called. */
static rondo_status take(rondo_library *library) {
  assert(library->symbol_count > 0 && library->functions != NULL);
  RONDO_TRY(find_functions(library));
  return library->accept == NULL ? RONDO_OK : library->accept(&library->file);
}

const char *rondo_library_asked(const rondo_library *library) { return rondo_option_text(library->option); }

static bool is_turned_off(const rondo_library *library) { return strcmp(rondo_library_asked(library), "none") == 0; }

static const char *variable_of(const rondo_library *library) {
  size_t count;
  return rondo_option_table(&count)[library->option].name;
}

static rondo_status fail_missing(const rondo_library *library, const char *why) {
  const char *const begin = library->missing == NULL ? "" : library->missing;
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER, "%s%s%s", begin, *begin == '\0' ? "" : ": ", why);
}

static size_t index_of(const char *const *names, const char *path) {
  size_t index = 0;
  while (names[index] == NULL || strcmp(names[index], path) != 0) index++;
  return index;
}

/* If a file opens but is refused, the search continues with the next name. The first refusal is reported. */
static rondo_status open_any(rondo_library *library, const char *const *names, size_t count) {
  assert(count > 0);
  if (rondo_dylib_open(names, count, &library->file) != RONDO_OK)
    return fail_missing(library, rondo_last_error()->message);
  const rondo_status status = take(library);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_saved_error first;
  rondo_error_save(&first);
  const size_t tried = index_of(names, library->file.path) + 1;
  if (!library->stays_loaded) rondo_dylib_close(&library->file);
  if (tried < count && open_any(library, names + tried, count - tried) == RONDO_OK) return RONDO_OK;
  rondo_error_restore(&first);
  return status;
}

static bool is_found(const rondo_library *library) {
  return atomic_load_explicit(&library->state, memory_order_acquire) == FOUND;
}

static rondo_status open_part(rondo_library *library) {
  const char *const path = library->base->file.path;
  return is_found(library->base) ? open_any(library, &path, 1) : rondo_error_raise(&library->base->failure);
}

static rondo_status open_library(rondo_library *library) {
  const char *const asked = rondo_library_asked(library);
  char off[64];
  if (is_turned_off(library)) {
    (void)snprintf(off, sizeof off, "%s=none turns it off", variable_of(library));
    return fail_missing(library, off);
  }
  const char *why_not = library->why_not == NULL ? NULL : library->why_not();
  if (why_not != NULL) return fail_missing(library, why_not);
  if (library->base != NULL) return open_part(library);
  return asked[0] != '\0' ? open_any(library, &asked, 1) : open_any(library, library->usual, RONDO_LIBRARY_NAMES);
}

/* Keeps the thread's last error. */
static int search(rondo_library *library) {
  rondo_saved_error before;
  rondo_error_save(&before);
  const rondo_status status = open_library(library);
  if (status != RONDO_OK) rondo_error_save(&library->failure);
  rondo_error_restore(&before);
  return status == RONDO_OK ? FOUND : MISSING;
}

/* True if this call made the search. Holds no lock when it returns. */
static bool search_once(rondo_library *library) {
  if (atomic_load_explicit(&library->state, memory_order_acquire) != UNKNOWN) return false;
  pthread_mutex_lock(&library->search);
  const bool is_first = atomic_load(&library->state) == UNKNOWN;
  if (is_first) atomic_store(&library->state, search(library));
  pthread_mutex_unlock(&library->search);
  return is_first;
}

static void log_missing(const rondo_library *library) {
  const bool is_named = rondo_library_asked(library)[0] != '\0';
  if (is_turned_off(library) || (library->base != NULL && !is_found(library->base))) return; /* the base logs it */
  rondo_log(is_named || library->is_faulty ? RONDO_LOG_WARNING : RONDO_LOG_DEBUG, "vendor", "no %s from %s: %s",
            library->purpose, library->name, library->failure.message);
}

bool rondo_library_find(rondo_library *library) {
  if (library->base != NULL) (void)rondo_library_find(library->base);
  if (search_once(library) && !is_found(library)) log_missing(library);
  return is_found(library);
}

rondo_status rondo_library_require(rondo_library *library) {
  (void)search_once(library);
  assert(is_found(library) == (library->failure.status == RONDO_OK));
  return rondo_error_raise(&library->failure);
}

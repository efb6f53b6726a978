/* SPDX-License-Identifier: MIT
 * Finding libraries, and telling what was found.
 */
#include "tensor/vendor/libraries.h"

#include <rondo/operators.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/versioned_struct.h"

enum { UNKNOWN, FOUND, MISSING }; /* states */

static rondo_status find_functions(rondo_library *library) {
  for (size_t i = 0; i < library->symbol_count; i++) {
    const rondo_library_symbol *symbol = &library->symbols[i];
    void *address = rondo_dylib_symbol(&library->file, symbol->name);
    if (address == NULL)
      return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER, "%s has no %s: %s is needed", library->file.path,
                        symbol->name, library->needed);
    memcpy((char *)library->functions + symbol->offset, &address, sizeof address);
  }
  return RONDO_OK;
}

/* Functions are there for good once a library is taken; one that is not leaves some that nobody calls. */
static rondo_status take(rondo_library *library) {
  RONDO_TRY(find_functions(library));
  const char *wrong = library->accept == NULL ? NULL : library->accept(&library->file);
  if (wrong == NULL) return RONDO_OK;
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER, "%s: %s", library->file.path, wrong);
}

const char *rondo_library_asked(const rondo_library *library) { return rondo_option_text(library->option); }

static bool is_refused(const rondo_library *library) { return strcmp(rondo_library_asked(library), "none") == 0; }

static const char *variable_of(const rondo_library *library) {
  size_t count;
  return rondo_option_table(&count)[library->option].name;
}

static size_t place_of(const char *const *names, const char *path) {
  size_t place = 0;
  while (names[place] == NULL || strcmp(names[place], path) != 0) place++;
  return place;
}

/* One that opens and will not do is passed over for those behind it; the first trouble is the one that is told. */
static rondo_status open_any(rondo_library *library, const char *const *names, size_t count) {
  RONDO_TRY(rondo_dylib_open(names, count, &library->file));
  const rondo_status status = take(library);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_saved_error trouble;
  rondo_error_save(&trouble);
  const size_t tried = place_of(names, library->file.path) + 1;
  rondo_dylib_close(&library->file);
  if (tried < count && open_any(library, names + tried, count - tried) == RONDO_OK) return RONDO_OK;
  rondo_error_restore(&trouble);
  return status;
}

static bool is_found(const rondo_library *library) {
  return atomic_load_explicit(&library->state, memory_order_acquire) == FOUND;
}

static rondo_status open_part(rondo_library *library) {
  const char *const path = library->base->file.path;
  if (!is_found(library->base)) return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NONE, "%s", library->base->reason);
  return open_any(library, &path, 1);
}

static rondo_status open_library(rondo_library *library) {
  const char *const asked = rondo_library_asked(library);
  if (is_refused(library)) return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NONE, "%s is none", variable_of(library));
  const char *why_not = library->why_not == NULL ? NULL : library->why_not();
  if (why_not != NULL) return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NONE, "%s", why_not);
  if (library->base != NULL) return open_part(library);
  return asked[0] != '\0' ? open_any(library, &asked, 1) : open_any(library, library->usual, RONDO_LIBRARY_NAMES);
}

/* The thread's last error stays as it was. */
static int search(rondo_library *library) {
  rondo_saved_error before;
  rondo_error_save(&before);
  const rondo_status status = open_library(library);
  if (status != RONDO_OK) (void)snprintf(library->reason, sizeof library->reason, "%s", rondo_last_error()->message);
  rondo_error_restore(&before);
  return status == RONDO_OK ? FOUND : MISSING;
}

static void say_missing(const rondo_library *library) {
  const bool is_named = rondo_library_asked(library)[0] != '\0';
  if (is_refused(library) || (library->base != NULL && !is_found(library->base))) return; /* the base has said it */
  rondo_log(is_named || library->is_faulty ? RONDO_LOG_WARNING : RONDO_LOG_DEBUG, "tensor", "no %s from %s: %s",
            library->purpose, library->name, library->reason);
}

bool rondo_library_find(rondo_library *library) {
  if (atomic_load_explicit(&library->state, memory_order_acquire) == UNKNOWN) {
    if (library->base != NULL) (void)rondo_library_find(library->base); /* and what it says, with no lock held */
    pthread_mutex_lock(&library->search);
    const bool is_first = atomic_load(&library->state) == UNKNOWN;
    if (is_first) atomic_store(&library->state, search(library));
    pthread_mutex_unlock(&library->search);
    if (is_first && atomic_load(&library->state) == MISSING) say_missing(library);
  }
  return is_found(library);
}

/* A part of another library says what the whole says. */
static const char *note_of(const rondo_library *library) {
  const char *note = library->base != NULL ? library->base->note : library->note;
  return note == NULL || !is_found(library) ? "" : note;
}

rondo_status rondo_library_enumerate(size_t index, rondo_library_info *out_info) {
  static rondo_library *const all[] = {&rondo_cublaslt, &rondo_cudnn, &rondo_onednn_library, &rondo_onednn_convolutions,
                                       &rondo_cblas_library};
  RONDO_TRY(rondo_require("rondo_library_enumerate", "out_info", out_info));
  if (index >= sizeof all / sizeof all[0])
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "there are no more libraries");
  rondo_library *library = all[index];
  const bool found = rondo_library_find(library);
  const rondo_library_info info = {.name = library->name,
                                   .purpose = library->purpose,
                                   .path = found ? library->file.path : NULL,
                                   .reason = library->reason,
                                   .note = note_of(library)};
  return rondo_versioned_write("rondo_library_info", &info, out_info, sizeof info);
}

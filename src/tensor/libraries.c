/* SPDX-License-Identifier: MIT
 * Finding libraries, and telling what was found.
 */
#include "tensor/libraries.h"

#include <rondo/operators.h>
#include <stdio.h>
#include <string.h>

#include "base/logging.h"
#include "base/versioned.h"

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

static bool is_refused(const rondo_library *library) { return strcmp(rondo_option_text(library->option), "none") == 0; }

static const char *variable_of(const rondo_library *library) {
  size_t count;
  return rondo_option_table(&count)[library->option].name;
}

static rondo_status open_library(rondo_library *library) {
  const char *const asked = rondo_option_text(library->option);
  if (is_refused(library)) return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NONE, "%s is none", variable_of(library));
  RONDO_TRY(asked[0] != '\0' ? rondo_dylib_open(&asked, 1, &library->file)
                             : rondo_dylib_open(library->usual, RONDO_LIBRARY_NAMES, &library->file));
  return find_functions(library);
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
  const bool is_named = rondo_option_text(library->option)[0] != '\0';
  if (is_refused(library)) return;
  rondo_log(is_named ? RONDO_LOG_WARNING : RONDO_LOG_DEBUG, "tensor", "no %s from %s: %s", library->purpose,
            library->name, library->reason);
}

bool rondo_library_find(rondo_library *library) {
  if (atomic_load_explicit(&library->state, memory_order_acquire) == UNKNOWN) {
    pthread_mutex_lock(&library->search);
    const bool is_first = atomic_load(&library->state) == UNKNOWN;
    if (is_first) atomic_store(&library->state, search(library));
    pthread_mutex_unlock(&library->search);
    if (is_first && atomic_load(&library->state) == MISSING) say_missing(library);
  }
  return atomic_load_explicit(&library->state, memory_order_acquire) == FOUND;
}

rondo_status rondo_library_enumerate(size_t index, rondo_library_info *out_info) {
  static rondo_library *const all[] = {&rondo_cublaslt, &rondo_cudnn};
  RONDO_TRY(rondo_require("rondo_library_enumerate", "out_info", out_info));
  if (index >= sizeof all / sizeof all[0])
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "there are no more libraries");
  rondo_library *library = all[index];
  const bool found = rondo_library_find(library);
  const rondo_library_info info = {.name = library->name,
                                   .purpose = library->purpose,
                                   .path = found ? library->file.path : NULL,
                                   .reason = library->reason};
  return rondo_versioned_write("rondo_library_info", &info, out_info, sizeof info);
}

/* SPDX-License-Identifier: MIT
 * dlopen over a list of candidates. A library is opened with RTLD_NOW and RTLD_LOCAL, so a missing symbol is an error
 * here and not during later work.
 */
#include "base/shared_library.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

typedef struct complaints {
  char text[RONDO_ERROR_MESSAGE_BYTES];
  size_t length;
} complaints;

static void complain(complaints *all, const char *format, ...) RONDO_PRINTF(2, 3);
static void complain(complaints *all, const char *format, ...) {
  const size_t capacity = sizeof all->text - all->length;
  if (capacity < 8) return;
  va_list arguments;
  va_start(arguments, format);
  all->length += rondo_format_cut(all->text + all->length, capacity, format, arguments);
  va_end(arguments);
}

/* dlerror mostly begins with the name, which the message has already. */
static void complain_of(complaints *all, const char *candidate, const char *error) {
  const size_t length = strlen(candidate);
  if (error == NULL) error = "no reason given";
  if (strncmp(error, candidate, length) == 0 && strncmp(error + length, ": ", 2) == 0) error += length + 2;
  complain(all, "%s%s: %s", all->length == 0 ? "" : "; ", candidate, error);
}

static bool open_one(const char *candidate, rondo_dylib *out, complaints *all) {
  const size_t length = strlen(candidate);
  if (length >= sizeof out->path) {
    complain(all, "%s%.40s...: a name of %zu bytes is longer than %zu", all->length == 0 ? "" : "; ", candidate, length,
             sizeof out->path - 1);
    return false;
  }
  out->handle = dlopen(candidate, RTLD_NOW | RTLD_LOCAL);
  if (out->handle == NULL) {
    complain_of(all, candidate, dlerror());
    return false;
  }
  memcpy(out->path, candidate, length + 1);
  return true;
}

rondo_status rondo_dylib_open(const char *const *candidates, size_t count, rondo_dylib *out) {
  *out = (rondo_dylib){0};
  complaints all = {.length = 0};
  for (size_t i = 0; i < count; i++) {
    if (candidates[i] == NULL || *candidates[i] == '\0') continue;
    if (open_one(candidates[i], out, &all)) return RONDO_OK;
  }
  if (all.length == 0)
    return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NONE, "no library was named: give at least one file or path");
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NONE, "none of the libraries opens: %s", all.text);
}

void rondo_dylib_close(rondo_dylib *library) {
  if (library->handle != NULL) dlclose(library->handle);
  *library = (rondo_dylib){0};
}

void *rondo_dylib_symbol(const rondo_dylib *library, const char *name) {
  return library->handle == NULL ? NULL : dlsym(library->handle, name);
}

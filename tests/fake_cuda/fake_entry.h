/* SPDX-License-Identifier: MIT
 * Finds a fake library's control interface: the pointer to void that its only additional export returns.
 */
#ifndef RONDO_TESTS_FAKE_ENTRY_H
#define RONDO_TESTS_FAKE_ENTRY_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* What the library that `variable` names returns by `entry`; NULL when it names no fake one. It stays loaded. */
static inline const void *fake_entry_call(const char *variable, const char *entry) {
  const char *path = getenv(variable);
  void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  void *symbol = library != NULL ? dlsym(library, entry) : NULL;
  const void *(*function)(void);
  if (symbol == NULL) return NULL;
  memcpy(&function, &symbol, sizeof function);
  return function();
}

#endif

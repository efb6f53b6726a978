/* SPDX-License-Identifier: MIT
 * Reading and filling structs that grow at their end. Only whole bytes are compared and copied, so that padding at the
 * end of an older version's struct is carried along harmlessly. No state; thread-safe.
 */
#include "base/versioned_struct.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"

/* More than any version will have, so that an uninitialized size is refused and does not cause reads past the struct.
 */
#define MOST_BYTES 4096

static size_t size_of(const void *versioned, size_t known) {
  uint32_t size;
  memcpy(&size, versioned, sizeof size);
  return size == 0 ? known : size;
}

static bool is_size(size_t size, size_t known) { return size >= known && size <= MOST_BYTES; }

static rondo_status refuse_size(const char *what, size_t size, size_t known) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: struct_size is %zu, and this version's struct has %zu bytes: set it by the struct's INIT "
                    "macro or to 0",
                    what, size, known);
}

rondo_status rondo_versioned_read(const char *what, const void *given, void *out, size_t bytes) {
  memset(out, 0, bytes);
  if (given == NULL) return RONDO_OK;
  const size_t size = size_of(given, bytes);
  if (!is_size(size, bytes)) return refuse_size(what, size, bytes);
  const unsigned char *tail = (const unsigned char *)given;
  for (size_t i = bytes; i < size; i++) {
    if (tail[i] == 0) continue;
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: byte %zu is set, but this version of the library knows %zu bytes only: leave newer fields "
                      "zero, or use a newer library",
                      what, i, bytes);
  }
  const uint32_t known = (uint32_t)bytes; /* the copy is of this version, whoever it is passed on to */
  memcpy(out, given, bytes);
  memcpy(out, &known, sizeof known);
  return RONDO_OK;
}

rondo_status rondo_versioned_read_reserved(const char *what, const void *given, void *out, size_t bytes, size_t offset,
                                           size_t reserved_bytes) {
  RONDO_TRY(rondo_versioned_read(what, given, out, bytes));
  const unsigned char *reserved = (const unsigned char *)out + offset;
  for (size_t i = 0; i < reserved_bytes; i++) {
    if (reserved[i] == 0) continue;
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: 'reserved' is set: leave it zero (begin the struct with its INIT macro)", what);
  }
  return RONDO_OK;
}

rondo_status rondo_versioned_check(const char *what, const void *out, size_t bytes) {
  const size_t size = out == NULL ? bytes : size_of(out, bytes);
  return is_size(size, bytes) ? RONDO_OK : refuse_size(what, size, bytes);
}

rondo_status rondo_versioned_write(const char *what, const void *value, void *out, size_t bytes) {
  RONDO_TRY(rondo_versioned_check(what, out, bytes));
  const uint32_t kept = (uint32_t)size_of(out, bytes);
  memcpy(out, value, bytes);
  memcpy(out, &kept, sizeof kept);
  return RONDO_OK;
}

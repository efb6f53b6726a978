/* SPDX-License-Identifier: MIT
 * Structs that grow at their end (see <rondo/rondo.h>, "Options"): reading a struct that a program of another version
 * passes, and filling one for it. The first field of such a struct is a uint32_t struct_size; 0 means this version's.
 * Each 0.x version has its own binary interface, so no struct can be shorter than this version's; a longer one, of at
 * most 4096 bytes, may come from a later version. Other sizes are refused: INVALID_ARGUMENT/BAD_OPTIONS.
 */
#ifndef RONDO_BASE_VERSIONED_STRUCT_H
#define RONDO_BASE_VERSIONED_STRUCT_H

#include <stddef.h>

#include <rondo/status.h>

#include "base/component.h"

/* Copies `given` (NULL = all zero) over *out of `bytes` bytes; the copy's struct_size is `bytes`, so that it can be
 * passed on. Any bytes of `given` beyond that must be zero, else INVALID_ARGUMENT/BAD_OPTIONS. `what` names the struct
 * in the message. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_versioned_read(const char *what, const void *given, void *out,
                                                               size_t bytes);

/* The same for a struct with a field `reserved`, which must be zero. */
#define RONDO_VERSIONED_READ(what, given, out)                                                                       \
  rondo_versioned_read_reserved(what, given, out, sizeof *(out), (size_t)((char *)&(out)->reserved - (char *)(out)), \
                                sizeof(out)->reserved)
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_versioned_read_reserved(const char *what, const void *given, void *out,
                                                                        size_t bytes, size_t offset,
                                                                        size_t reserved_bytes);

/* Whether rondo_versioned_write can fill `out` (NULL: yes), for calls that do something before they write. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_versioned_check(const char *what, const void *out, size_t bytes);

/* Fills `out` with the `bytes` bytes of `value`. Its struct_size is kept, or set to `bytes` if it was 0. Bytes of *out
 * beyond `bytes` are not changed. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_versioned_write(const char *what, const void *value, void *out,
                                                                size_t bytes);

#endif

/* SPDX-License-Identifier: MIT
 * Structs that grow at their end (see <rondo/rondo.h>, "Options"): reading what a program of another version handed in,
 * and filling what it asked for. The first field of such a struct is a uint32_t struct_size; 0 means this version's. A
 * size too small to hold struct_size itself, or of more than 4096 bytes, is refused: INVALID_ARGUMENT/BAD_OPTIONS.
 */
#ifndef RONDO_BASE_VERSIONED_H
#define RONDO_BASE_VERSIONED_H

#include <stddef.h>

#include <rondo/status.h>

/* Copies `given` (NULL = all zero) over *out of `bytes` bytes: what it lacks becomes zero; what it has more must be
 * zero, else INVALID_ARGUMENT/BAD_OPTIONS. `what` names the struct in the message. */
RONDO_MUST_USE rondo_status rondo_versioned_read(const char *what, const void *given, void *out, size_t bytes);

/* Copies as much of `value` (`bytes` bytes) as the struct at `out` asks for by its struct_size, which stays as it was,
 * or becomes `bytes` when it was 0. */
RONDO_MUST_USE rondo_status rondo_versioned_write(const char *what, const void *value, void *out, size_t bytes);

#endif

/* SPDX-License-Identifier: MIT
 * Fingerprints of bytes, by which two texts or series of losses are known to be the same.
 */
#ifndef RONDO_TOOL_FINGERPRINT_H
#define RONDO_TOOL_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#define FINGERPRINT_START UINT64_C(0xcbf29ce484222325)

/* The fingerprint of what was added so far and these bytes: FNV-1a (Fowler, Noll and Vo). */
uint64_t fingerprint_add(uint64_t fingerprint, const void *bytes, size_t count);

/* 16 hexadecimal digits. */
#define FINGERPRINT_TEXT 17
void fingerprint_write(uint64_t fingerprint, char out[FINGERPRINT_TEXT]);

#endif

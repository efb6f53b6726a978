/* SPDX-License-Identifier: MIT
 * Fingerprints of bytes, to compare texts or sequences of losses: 64-bit FNV-1a (Fowler, Noll and Vo).
 */
#ifndef RONDO_TOOL_FINGERPRINT_H
#define RONDO_TOOL_FINGERPRINT_H

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#define FINGERPRINT_START UINT64_C(0xcbf29ce484222325)
#define FINGERPRINT_TEXT 17

/* Extends the fingerprint of the bytes so far by these bytes. */
static inline uint64_t fingerprint_add(uint64_t fingerprint, const void *bytes, size_t count) {
  const unsigned char *at = bytes;
  for (size_t i = 0; i < count; i++) fingerprint = (fingerprint ^ at[i]) * UINT64_C(0x100000001b3);
  return fingerprint;
}

/* Writes 16 hexadecimal digits. */
static inline void fingerprint_write(uint64_t fingerprint, char out[FINGERPRINT_TEXT]) {
  snprintf(out, FINGERPRINT_TEXT, "%016" PRIx64, fingerprint);
}

#endif

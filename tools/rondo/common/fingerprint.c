/* SPDX-License-Identifier: MIT
 * FNV-1a of 64 bits.
 */
#include "common/fingerprint.h"

#include <inttypes.h>
#include <stdio.h>

uint64_t fingerprint_add(uint64_t fingerprint, const void *bytes, size_t count) {
  const unsigned char *at = bytes;
  for (size_t i = 0; i < count; i++) fingerprint = (fingerprint ^ at[i]) * UINT64_C(0x100000001b3);
  return fingerprint;
}

void fingerprint_write(uint64_t fingerprint, char out[FINGERPRINT_TEXT]) {
  snprintf(out, FINGERPRINT_TEXT, "%016" PRIx64, fingerprint);
}

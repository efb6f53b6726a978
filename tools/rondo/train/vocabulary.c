/* SPDX-License-Identifier: MIT
 * Numbering of the bytes that occur.
 */
#include "train/vocabulary.h"

vocabulary vocabulary_create(const unsigned char occurs[256]) {
  vocabulary found = {0};
  for (unsigned byte = 0; byte < 256; byte++) {
    found.token_of[byte] = occurs[byte] ? (int16_t)found.count : -1;
    if (occurs[byte]) found.byte_of[found.count++] = (unsigned char)byte;
  }
  return found;
}

/* SPDX-License-Identifier: MIT
 * Texts handed to the user. Each lies behind a header with its allocator and size, so that rondo_text_free needs the
 * text alone.
 */
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "graph/node.h"

typedef struct handed_text {
  rondo_allocator allocator;
  size_t bytes; /* of the whole block */
  char text[];
} handed_text;

rondo_status rondo_text_hand_out(rondo_text *text, char **out) {
  *out = NULL;
  if (text->failed != RONDO_OK) return rondo_text_take(text, out);
  void *memory;
  const size_t bytes = offsetof(handed_text, text) + text->count + 1;
  const rondo_status status = rondo_allocate(&text->allocator, bytes, 1, &memory);
  if (status == RONDO_OK) {
    handed_text *handed = memory;
    handed->allocator = text->allocator;
    handed->bytes = bytes;
    if (text->count > 0) memcpy(handed->text, text->bytes, text->count);
    *out = handed->text;
  }
  rondo_text_deinit(text);
  return status;
}

void rondo_text_free(char *text) {
  if (text == NULL) return;
  handed_text *handed = (handed_text *)(void *)(text - offsetof(handed_text, text));
  const rondo_allocator allocator = handed->allocator;
  rondo_release(&allocator, handed, handed->bytes, 1);
}

/* SPDX-License-Identifier: MIT
 * Quoting.
 */
#include "common/shell.h"

#include <stdbool.h>
#include <string.h>

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+@%-";

static bool is_printable(const char *word) {
  for (const unsigned char *at = (const unsigned char *)word; *at; at++) {
    if (*at < ' ' || *at > '~') return false;
  }
  return true;
}

static void print_quoted(FILE *stream, const char *word) {
  fputc('\'', stream);
  for (; *word; word++) {
    if (*word == '\'')
      fputs("'\\''", stream);
    else
      fputc(*word, stream);
  }
  fputc('\'', stream);
}

static void print_escaped(FILE *stream, const char *word) {
  fputs("$'", stream);
  for (const unsigned char *at = (const unsigned char *)word; *at; at++) {
    if (*at < ' ' || *at > '~' || *at == '\'' || *at == '\\')
      fprintf(stream, "\\x%02x", *at);
    else
      fputc(*at, stream);
  }
  fputc('\'', stream);
}

void shell_print(FILE *stream, const char *word) {
  if (!is_printable(word))
    print_escaped(stream, word);
  else if (word[0] != '\0' && strspn(word, plain) == strlen(word))
    fputs(word, stream);
  else
    print_quoted(stream, word);
}

/* SPDX-License-Identifier: MIT
 * Quoting of words for a shell.
 */
#ifndef RONDO_TOOL_SHELL_H
#define RONDO_TOOL_SHELL_H

#include <stdio.h>

/* Prints a word so that it can be pasted into bash: quoted if necessary, with control characters and bytes that are not
 * ASCII as $'\xNN'. */
void shell_print(FILE *stream, const char *word);

#endif

/* SPDX-License-Identifier: MIT
 * Words of a command as a shell reads them.
 */
#ifndef RONDO_TOOL_SHELL_H
#define RONDO_TOOL_SHELL_H

#include <stdio.h>

/* Writes a word so that bash, copying it from a terminal, reads it as it is: quoted where need be, control characters
 * and bytes that are not ASCII as $'\xNN'. */
void shell_print(FILE *stream, const char *word);

#endif

/* SPDX-License-Identifier: MIT
 * Prints the JSON object of a command as tables. Both forms have the same figures, and a command describes its results
 * once. Each array of objects becomes a table with one line for each element. Objects inside an element become lines of
 * their own, which begin with the element's first field. NAME, NAME_min and NAME_max together are one column, "median
 * (minimum to maximum)". Everything else is a list of names and values.
 */
#ifndef RONDO_TOOL_TABLE_H
#define RONDO_TOOL_TABLE_H

#include "common/json.h"

/* Ends the object, prints it to standard output and frees it. Returns the command's exit status, like json_print. */
int table_print(json *out);

/* Prints the text of a JSON object as tables. Prints any other text unchanged. */
int table_print_text(const char *text);

#endif

/* SPDX-License-Identifier: MIT
 * Results for people: prints the JSON object that a command wrote as tables, so that both forms have the same figures
 * and a command describes its results once. Each array of objects becomes a table with one line for each element;
 * objects inside an element become lines of their own, which begin with the element's first field. NAME, NAME_min and
 * NAME_max together are one column, "median (minimum to maximum)". Everything else is a list of names and values.
 */
#ifndef RONDO_TOOL_TABLE_H
#define RONDO_TOOL_TABLE_H

#include "common/json.h"

/* Ends the object, prints it to standard output and frees it, as json_print does. Returns the command's exit status. */
int table_print(json *out);

/* Prints the text of a JSON object as tables; any other text as it is. */
int table_print_text(const char *text);

#endif

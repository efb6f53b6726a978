/* SPDX-License-Identifier: MIT
 * Tables from JSON. The text comes from json.c and is well-formed. First, each object with values becomes a row. Then
 * rows of one scope with the same columns are printed together, in the order of their first appearance.
 */
#define _GNU_SOURCE
#include "common/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"

typedef struct cell {
  char name[48], value[160];
  bool is_number;
} cell;

typedef struct row {
  char scope[96]; /* path of the enclosing arrays */
  char label[96]; /* the element and the enclosing objects; "" for an element itself */
  bool in_array, is_printed;
  cell *cells;
  size_t count;
} row;

typedef struct row_list {
  row *rows;
  size_t count;
  bool lacks_memory;
} row_list;

/* Reading ---------------------------------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *at) { return at + strspn(at, " ,:\n"); }

static const char *skip_text(const char *at) {
  for (at++; *at != '"'; at++)
    if (*at == '\\') at++;
  return at + 1;
}

/* The end of the value that begins at `at`. */
static const char *skip_value(const char *at) {
  if (*at == '"') return skip_text(at);
  if (*at != '{' && *at != '[') return at + strcspn(at, ",]} \n");
  size_t depth = 0;
  do {
    depth += *at == '{' || *at == '[';
    depth -= *at == '}' || *at == ']';
    at = *at == '"' ? skip_text(at) : at + 1;
  } while (depth > 0);
  return at;
}

/* Whether the value is an object or an array of objects. Other arrays are printed as values. */
static bool is_group(const char *at) {
  const char *first = at + 1 + strspn(at + 1, " \n");
  return *at == '{' || (*at == '[' && (*first == '{' || *first == ']'));
}

static void copy_text(char *to, size_t room, const char *from, const char *end) {
  snprintf(to, room, "%.*s", (int)(end - from), from);
}

static void format_value(cell *to, const char *at, const char *end) {
  char *rest;
  const double number = strtod(at, &rest), size = fabs(number);
  to->is_number = rest == end;
  if (*at == '"')
    copy_text(to->value, sizeof to->value, at + 1, end - 1);
  else if (!to->is_number || strcspn(at, ".e") >= (size_t)(end - at))
    copy_text(to->value, sizeof to->value, at, end);
  else
    snprintf(to->value, sizeof to->value, "%.*f", size < 10 ? 4 : size < 1000 ? 2 : 0, number);
}

/* Adds a value to its row. The minimum and maximum of a summary are appended to the median before them. */
static bool add_cell(row *to, const char *name, const char *at, const char *end) {
  cell *last = to->count > 0 ? &to->cells[to->count - 1] : NULL;
  const size_t length = last ? strlen(last->name) : 0;
  cell made = {.is_number = false};
  snprintf(made.name, sizeof made.name, "%s", name);
  format_value(&made, at, end);
  const char *end_of_name = last && strncmp(name, last->name, length) == 0 ? name + length : "";
  const bool is_minimum = strcmp(end_of_name, "_min") == 0, is_maximum = strcmp(end_of_name, "_max") == 0;
  if (is_minimum || is_maximum) {
    const size_t used = strlen(last->value);
    snprintf(last->value + used, sizeof last->value - used, is_minimum ? " (%s to " : "%s)", made.value);
    return true;
  }
  cell *cells = realloc(to->cells, (to->count + 1) * sizeof *cells);
  if (!cells) return false;
  cells[to->count++] = made;
  to->cells = cells;
  return true;
}

/* Called for each member of an object, or for each element of an array with the name "". */
typedef void (*use_member)(row_list *list, size_t index, const char *name, const char *at, const char *end);

static void each_member(row_list *list, size_t index, const char *at, use_member use) {
  const char *end_of_group = skip_value(at) - 1;
  const bool has_names = *at == '{';
  for (at = skip_blanks(at + 1); at < end_of_group; at = skip_blanks(at)) {
    char name[48] = "";
    if (has_names) {
      const char *end = skip_text(at);
      copy_text(name, sizeof name, at + 1, end - 1);
      at = skip_blanks(end);
    }
    const char *end = skip_value(at);
    use(list, index, name, at, end);
    at = end;
  }
}

static void take_value(row_list *list, size_t index, const char *name, const char *at, const char *end) {
  if (!is_group(at) && !add_cell(&list->rows[index], name, at, end)) list->lacks_memory = true;
}

static void take_group(row_list *list, size_t index, const char *name, const char *at, const char *end);

/* Adds a row for the object, then rows for the objects in it. */
static void take_object(row_list *list, const char *scope, const char *label, bool in_array, const char *at) {
  row *rows = realloc(list->rows, (list->count + 1) * sizeof *rows);
  if (!rows) {
    list->lacks_memory = true;
    return;
  }
  const size_t index = list->count++;
  list->rows = rows;
  rows[index] = (row){.in_array = in_array};
  snprintf(rows[index].scope, sizeof rows[index].scope, "%s", scope);
  snprintf(rows[index].label, sizeof rows[index].label, "%s", label);
  each_member(list, index, at, take_value);
  each_member(list, index, at, take_group);
}

/* The label of the objects inside an element: its first text, or else its first two whole numbers. */
static void label_element(const row *element, char out[96]) {
  snprintf(out, 96, "%s", element->label);
  if (!element->in_array || out[0] != '\0' || element->count == 0) return;
  const cell *first = element->cells;
  const bool has_second =
      first->is_number && element->count > 1 && strcspn(first[1].value, ".(") == strlen(first[1].value);
  snprintf(out, 96, has_second ? "%.40s x %.40s" : "%.40s", first->value, has_second ? first[1].value : "");
}

static void take_group(row_list *list, size_t index, const char *name, const char *at, const char *end) {
  char label[96], path[200];
  (void)end;
  if (!is_group(at)) return;
  const row outer = list->rows[index];
  label_element(&outer, label);
  if (*at == '{') {
    snprintf(path, sizeof path, "%s%s%s", label, label[0] ? (outer.in_array ? "  " : ".") : "", name);
    take_object(list, outer.scope, path, outer.in_array, at);
    return;
  }
  snprintf(path, sizeof path, "%s%s%s%s%s", outer.scope, outer.scope[0] ? "." : "", label, label[0] ? "." : "", name);
  const char *end_of_array = skip_value(at) - 1;
  for (at = skip_blanks(at + 1); at < end_of_array; at = skip_blanks(skip_value(at)))
    take_object(list, path, "", true, at);
}

/* Printing --------------------------------------------------------------------------------------------------------- */

static bool has_same_columns(const row *a, const row *b) {
  if (a->count != b->count || (a->label[0] == '\0') != (b->label[0] == '\0') || strcmp(a->scope, b->scope) != 0)
    return false;
  for (size_t i = 0; i < a->count; i++)
    if (strcmp(a->cells[i].name, b->cells[i].name) != 0) return false;
  return true;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static void print_list(const row *of) {
  for (size_t i = 0; i < of->count; i++) {
    printf("%-24s ", of->cells[i].name);
    tool_print_text(of->cells[i].value);
    putchar('\n');
  }
}

static void print_line(const row *of, const size_t *widths, bool is_head) {
  size_t blanks = 0;
  if (of->label[0]) printf("%-*s", (int)widths[of->count], is_head ? "" : of->label);
  for (size_t i = 0; i < of->count; i++) {
    const char *text = is_head ? of->cells[i].name : of->cells[i].value;
    const bool is_left = !of->cells[i].is_number, is_first = i == 0 && !of->label[0];
    const size_t pad = widths[i] - strlen(text);
    printf("%*s%s", (int)((is_first ? 0 : 2 + blanks) + (is_left ? 0 : pad)), "", text);
    blanks = is_left ? pad : 0;
  }
  putchar('\n');
}

/* Prints the table that begins with the row at `first`. */
static bool print_table(row_list *list, size_t first) {
  row *head = &list->rows[first];
  size_t *widths = calloc(head->count + 1, sizeof *widths);
  if (!widths) return false;
  for (size_t i = first; i < list->count; i++) {
    const row *of = &list->rows[i];
    if (!has_same_columns(of, head)) continue;
    for (size_t k = 0; k < of->count; k++)
      widths[k] = larger(widths[k], larger(strlen(of->cells[k].name), strlen(of->cells[k].value)));
    widths[of->count] = larger(widths[of->count], strlen(of->label));
  }
  print_line(head, widths, true);
  for (size_t i = first; i < list->count; i++) {
    row *of = &list->rows[i];
    if (!has_same_columns(of, head)) continue;
    print_line(of, widths, false);
    of->is_printed = true;
  }
  free(widths);
  return true;
}

static bool is_alone(const row_list *list, size_t index) {
  for (size_t i = 0; i < list->count; i++)
    if (i != index && has_same_columns(&list->rows[i], &list->rows[index])) return false;
  return !list->rows[index].in_array;
}

static bool print_rows(row_list *list) {
  for (size_t i = 0; i < list->count; i++) {
    const row *of = &list->rows[i];
    const bool is_new = i == 0 || strcmp(of->scope, list->rows[i - 1].scope) != 0;
    if (of->is_printed || of->count == 0) continue;
    if (i > 0) putchar('\n');
    if (is_new && of->scope[0]) printf("%s\n", of->scope);
    if (!is_alone(list, i)) {
      if (!print_table(list, i)) return false;
      continue;
    }
    if (of->label[0]) printf("%s\n", of->label);
    print_list(of);
  }
  return true;
}

int table_print_text(const char *text) {
  row_list list = {0};
  if (*text != '{') {
    fputs(text, stdout);
    return tool_check_output();
  }
  take_object(&list, "", "", false, text);
  const bool is_printed = !list.lacks_memory && print_rows(&list);
  for (size_t i = 0; i < list.count; i++) free(list.rows[i].cells);
  free(list.rows);
  return is_printed ? tool_check_output() : tool_fail_memory("the tables");
}

int table_print(json *out) {
  char *text = json_take(out);
  if (!text) return tool_fail_memory("the output");
  const int result = table_print_text(text);
  free(text);
  return result;
}

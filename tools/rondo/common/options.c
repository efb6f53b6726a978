/* SPDX-License-Identifier: MIT
 * Command lines with getopt_long, but with our own messages: those of getopt name neither the range nor the fix.
 */
#define _GNU_SOURCE
#include "common/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/tool.h"

/* getopt_long returns FIRST_ROW + i for row i; no character has such a value. */
enum { FIRST_ROW = 1000, HELP = 999 };

/* The layout of --help: the usual width of a terminal, and the column at which the descriptions begin. */
enum { LINE_COLUMNS = 80, HELP_COLUMN = 27 };

static char letter_of(const option_table *table, size_t row) {
  return table->letters && row < strlen(table->letters) ? table->letters[row] : '\0';
}

/* The length of the next unit that is not broken across lines: a word, or "(default ...)". */
static size_t unit_length(const char *text) {
  const bool is_default = strncmp(text, "(default ", strlen("(default ")) == 0;
  return is_default ? strcspn(text, ")") + 1 : strcspn(text, " \n");
}

/* Prints text wrapped and indented by `indent`, and ends the last line. The cursor is already at `indent` in the first
 * line. Empty lines between paragraphs are kept. */
static void print_filled(size_t indent, const char *text) {
  size_t column = indent;
  while (*text != '\0') {
    const size_t word = unit_length(text), blanks = strspn(text + word, " \n");
    const bool is_first = column == indent, ends_paragraph = strncmp(text + word, "\n\n", 2) == 0;
    if (!is_first && column + 1 + word > LINE_COLUMNS) {
      printf("\n%*s", (int)indent, "");
      column = indent;
    } else if (!is_first) {
      putchar(' ');
      column++;
    }
    printf("%.*s", (int)word, text);
    column += word;
    text += word + blanks;
    if (!ends_paragraph) continue;
    printf("\n\n%*s", (int)indent, "");
    column = indent;
  }
  putchar('\n');
}

/* Prints an option or operand with its description and its default, unless `value` is "". */
static void print_row(const char *left, const char *help, const char *value) {
  char text[400];
  snprintf(text, sizeof text, "%s%s%s%s", help, value[0] ? " (default " : "", value, value[0] ? ")" : "");
  printf("  %-*s ", HELP_COLUMN - 3, left);
  print_filled(HELP_COLUMN, text);
}

static bool is_text(option_kind kind) {
  return kind == OPTION_TEXT || kind == OPTION_INPUT || kind == OPTION_OUTPUT || kind == OPTION_UPDATED;
}

/* A number out of range means that the option has no default. */
static void format_default(const option_row *row, const void *defaults, char *out, size_t bytes) {
  const void *value = (const char *)defaults + row->offset;
  const char *text = is_text(row->kind) ? *(const char *const *)value : NULL;
  const uint64_t count = row->kind == OPTION_COUNT ? *(const uint64_t *)value : 0;
  const double real = row->kind == OPTION_REAL ? *(const double *)value : 0;
  out[0] = '\0';
  if (text) snprintf(out, bytes, "%s", text);
  if (row->kind == OPTION_COUNT && (double)count >= row->minimum &&
      (row->maximum == 0 || (double)count <= row->maximum))
    snprintf(out, bytes, "%llu", (unsigned long long)count);
  if (row->kind == OPTION_REAL && real >= row->minimum) snprintf(out, bytes, "%g", real);
}

static void print_option(const option_table *table, size_t index) {
  const option_row *row = &table->rows[index];
  const char letter = letter_of(table, index);
  char left[64], also[8] = "", value[160];
  if (letter) snprintf(also, sizeof also, ", -%c", letter);
  snprintf(left, sizeof left, "--%s%s%s%s", row->name, also, row->argument ? " " : "",
           row->argument ? row->argument : "");
  format_default(row, table->defaults, value, sizeof value);
  print_row(left, row->help, value);
}

static void print_usage(const option_table *table) {
  printf("Usage: %s", table->command);
  if (table->operand)
    printf(table->operand_default ? " [%s]" : " %s%s", table->operand, table->repeats_operand ? "..." : "");
  printf(" [OPTION]...\n\n");
  print_filled(0, table->description);
  putchar('\n');
}

static void print_help(const option_table *table) {
  print_usage(table);
  if (table->operand)
    print_row(table->operand, table->operand_help, table->operand_default ? table->operand_default : "");
  for (size_t i = 0; i < table->count; i++) print_option(table, i);
  print_row("--help, -h", "print this and exit", "");
}

bool options_ask_for_help(const char *argument) {
  return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static bool parse_count(const option_row *row, const char *text, uint64_t *out) {
  char *end = NULL;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  const bool is_number = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
  if (is_number && (double)value >= row->minimum && (row->maximum == 0 || (double)value <= row->maximum)) {
    *out = value;
    return true;
  }
  char range[64] = "";
  if (row->maximum > 0) snprintf(range, sizeof range, " from %.0f to %.0f", row->minimum, row->maximum);
  tool_fail_usage("--%s takes a whole number%s, not '%s'", row->name, range, text);
  return false;
}

static bool parse_real(const option_row *row, const char *text, double *out) {
  char *end = NULL;
  const double value = strtod(text, &end);
  if (end != text && *end == '\0' && value >= row->minimum && value <= row->maximum) {
    *out = value;
    return true;
  }
  tool_fail_usage("--%s takes a number from %g to %g, not '%s'", row->name, row->minimum, row->maximum, text);
  return false;
}

static bool add_to_list(const option_row *row, const char *text, option_list *list) {
  if (list->count == OPTION_LIST_MAX) {
    tool_fail_usage("--%s can be given %d times at most", row->name, OPTION_LIST_MAX);
    return false;
  }
  list->items[list->count++] = text;
  return true;
}

static bool parse_value(const option_row *row, const char *text, void *settings) {
  void *value = (char *)settings + row->offset;
  switch (row->kind) {
    case OPTION_FLAG:
      *(bool *)value = true;
      return true;
    case OPTION_TEXT:
    case OPTION_INPUT:
    case OPTION_OUTPUT:
    case OPTION_UPDATED:
      *(const char **)value = text;
      return true;
    case OPTION_COUNT:
      return parse_count(row, text, value);
    case OPTION_REAL:
      return parse_real(row, text, value);
    case OPTION_LIST:
      return add_to_list(row, text, value);
  }
  return false;
}

static int take_operands(const option_table *table, int count, char **rest, const char **out_operands) {
  const int wanted = table->operand ? 1 : 0, most = table->repeats_operand ? OPERANDS_MAX : wanted;
  if (count > most) return tool_fail_usage("unexpected argument '%s'", rest[most]);
  if (count < wanted && !table->operand_default) return tool_fail_usage("%s is missing", table->operand);
  out_operands[0] = count > 0 ? rest[0] : table->operand_default;
  for (int i = 1; i < count; i++) out_operands[i] = rest[i];
  return OPTIONS_RUN;
}

/* Reports what getopt_long rejected. */
static int refuse(int found, char *const *argv) {
  const char *text = argv[optind - 1];
  if (found == ':') return tool_fail_usage("%s needs a value", text);
  if (optopt >= HELP) return tool_fail_usage("%s: this option takes no value", text);
  if (optopt > 0) return tool_fail_usage("there is no option '-%c'", optopt);
  return tool_fail_usage("there is no option '%s'", text);
}

/* Builds the string of short options for getopt_long. */
static void list_letters(const option_table *table, char letters[2 * OPTIONS_MAX + 3]) {
  size_t count = 0;
  letters[count++] = ':';
  letters[count++] = 'h';
  for (size_t i = 0; i < table->count; i++) {
    if (!letter_of(table, i)) continue;
    letters[count++] = letter_of(table, i);
    if (table->rows[i].kind != OPTION_FLAG) letters[count++] = ':';
  }
  letters[count] = '\0';
}

/* The row of an option that getopt_long returned, by its number or its letter. */
static const option_row *find_row(const option_table *table, int found) {
  if (found >= FIRST_ROW) return &table->rows[found - FIRST_ROW];
  size_t i = 0;
  while (letter_of(table, i) != found) i++;
  return &table->rows[i];
}

/* Looking --------------------------------------------------------------------------------------------------------- */

static const option_row help_row = {.name = "help"};

/* As getopt_long finds it: the option of this name, else the only one that begins so. */
static const option_row *find_name(const option_table *table, const char *name, size_t length) {
  const option_row *found = NULL;
  size_t matches = 0;
  for (size_t i = 0; i <= table->count; i++) {
    const option_row *row = i < table->count ? &table->rows[i] : &help_row;
    if (strncmp(row->name, name, length) != 0) continue;
    if (row->name[length] == '\0') return row;
    found = row;
    matches++;
  }
  return matches == 1 ? found : NULL;
}

option_use options_look(const option_table *table, int count, char *const *arguments) {
  option_use use = {.arguments = 1};
  const char *text = arguments[0];
  if (strcmp(text, "-h") == 0) use.row = &help_row;
  if (strncmp(text, "--", 2) != 0) return use;
  const size_t length = strcspn(text + 2, "=");
  use.row = find_name(table, text + 2, length);
  if (text[2 + length] == '=') {
    use.value = text + 2 + length + 1;
  } else if (use.row && use.row->kind != OPTION_FLAG && count > 1) {
    use.value = arguments[1];
    use.arguments = 2;
  }
  return use;
}

/* Files ------------------------------------------------------------------------------------------------------------ */

/* A file that the command line names. */
typedef struct named_file {
  const char *path;
  char what[48]; /* "the file of --save" */
  option_kind kind;
  bool is_operand, is_trace;
} named_file;

static named_file *add_file(named_file *files, size_t *count, const char *path, option_kind kind) {
  named_file *added = &files[(*count)++];
  const bool is_standard = kind == OPTION_INPUT && strcmp(path, "-") == 0;
  *added = (named_file){.path = is_standard ? "/dev/stdin" : path, .kind = kind};
  return added;
}

static size_t list_files(const option_table *table, const void *settings, const char *const *operands,
                         named_file *out) {
  size_t count = 0;
  const char *trace = secure_getenv("RONDO_TRACE");
  for (size_t i = 0; i < table->count; i++) {
    const option_row *row = &table->rows[i];
    const bool is_file = row->kind == OPTION_INPUT || row->kind == OPTION_OUTPUT || row->kind == OPTION_UPDATED;
    const char *path = is_file ? *(const char *const *)((const char *)settings + row->offset) : NULL;
    if (!path) continue;
    snprintf(add_file(out, &count, path, row->kind)->what, sizeof out->what, "the file of --%s", row->name);
  }
  for (size_t i = 0; table->reads_operand && i < OPERANDS_MAX && operands[i]; i++) {
    named_file *added = add_file(out, &count, operands[i], OPTION_INPUT);
    added->is_operand = true;
    snprintf(added->what, sizeof added->what, "the %s that is read", table->operand);
  }
  if (trace && trace[0]) {
    named_file *added = add_file(out, &count, trace, OPTION_OUTPUT);
    added->is_trace = true;
    snprintf(added->what, sizeof added->what, "RONDO_TRACE");
  }
  return count;
}

static int check_apart(const named_file *output, const named_file *other) {
  const bool may_be_same = output->kind == OPTION_UPDATED && other->kind == OPTION_INPUT && !other->is_operand;
  if (may_be_same || !file_is_same(output->path, other->path)) return TOOL_OK;
  return tool_fail("%s cannot be written: it is %s; name another file", output->path, other->what);
}

/* The library opens the file of RONDO_TRACE and reports errors itself. */
static int check_files(const option_table *table, const void *settings, const char *const *operands) {
  named_file files[OPTIONS_MAX + OPERANDS_MAX + 1];
  const size_t count = list_files(table, settings, operands, files);
  for (size_t i = 0; i < count; i++) {
    if (files[i].path[0] == '\0') return tool_fail_usage("%s has an empty name", files[i].what);
    if (files[i].kind == OPTION_INPUT) continue;
    if (!files[i].is_trace && file_check_writable(files[i].path) != TOOL_OK) return TOOL_FAILURE;
    for (size_t k = 0; k < count; k++) {
      const bool is_other = k > i || files[k].kind == OPTION_INPUT; /* compares each pair of outputs once */
      if (is_other && check_apart(&files[i], &files[k]) != TOOL_OK) return TOOL_FAILURE;
    }
  }
  return OPTIONS_RUN;
}

/* Parsing ---------------------------------------------------------------------------------------------------------- */

static int parse_options(const option_table *table, int argc, char **argv, void *settings) {
  assert(table->count <= OPTIONS_MAX);
  struct option known[OPTIONS_MAX + 2] = {{"help", no_argument, NULL, HELP}};
  for (size_t i = 0; i < table->count; i++) {
    const int takes = table->rows[i].kind == OPTION_FLAG ? no_argument : required_argument;
    known[i + 1] = (struct option){table->rows[i].name, takes, NULL, FIRST_ROW + (int)i};
  }
  char letters[2 * OPTIONS_MAX + 3];
  list_letters(table, letters);
  int found = 0;
  while ((found = getopt_long(argc, argv, letters, known, NULL)) != -1) {
    if (found == HELP || found == 'h') {
      print_help(table);
      return TOOL_OK;
    }
    if (found == ':' || found == '?') return refuse(found, argv);
    if (!parse_value(find_row(table, found), optarg, settings)) return TOOL_USAGE;
  }
  return OPTIONS_RUN;
}

const char *option_value_of(const char *item, const char *name) {
  const size_t length = strlen(name);
  return strncmp(item, name, length) == 0 && item[length] == '=' ? item + length + 1 : NULL;
}

int options_parse(const option_table *table, int argc, char **argv, void *settings, const char **out_operand) {
  const char *operands[OPERANDS_MAX] = {NULL};
  int result = parse_options(table, argc, argv, settings);
  if (result == OPTIONS_RUN) result = take_operands(table, argc - optind, argv + optind, operands);
  for (size_t i = 0; out_operand && i < (table->repeats_operand ? OPERANDS_MAX : 1); i++) out_operand[i] = operands[i];
  return result == OPTIONS_RUN ? check_files(table, settings, operands) : result;
}

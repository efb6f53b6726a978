/* SPDX-License-Identifier: MIT
 * Command lines by getopt_long, with messages of our own: getopt's name neither the remedy nor the range.
 */
#include "options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* What getopt_long returns for row i, above all characters. */
enum { FIRST_ROW = 1000, HELP = 999 };

/* What --help fills: lines of a terminal's usual width, the meanings of options from a column on. */
enum { LINE_COLUMNS = 80, HELP_COLUMN = 27 };

static char letter_of(const option_table *table, size_t row) {
  return table->letters && row < strlen(table->letters) ? table->letters[row] : '\0';
}

/* Of what is not parted at the end of a line: a word, or a default. */
static size_t unit_length(const char *text) {
  const bool is_default = strncmp(text, "(default ", strlen("(default ")) == 0;
  return is_default ? strcspn(text, ")") + 1 : strcspn(text, " \n");
}

/* Prints the words of a text in filled lines that begin at `indent`, where the first one is already, and ends the last
 * line. An empty line between paragraphs stays. */
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

/* An option or operand, what it means, and, where `value` is not "", its default. */
static void print_row(const char *left, const char *help, const char *value) {
  char text[400];
  snprintf(text, sizeof text, "%s%s%s%s", help, value[0] ? " (default " : "", value, value[0] ? ")" : "");
  printf("  %-*s ", HELP_COLUMN - 3, left);
  print_filled(HELP_COLUMN, text);
}

/* A number below the minimum is none: the option has no default. */
static void format_default(const option_row *row, const void *defaults, char *out, size_t bytes) {
  const void *value = (const char *)defaults + row->offset;
  const char *text = row->kind == OPTION_TEXT ? *(const char *const *)value : NULL;
  const uint64_t count = row->kind == OPTION_COUNT ? *(const uint64_t *)value : 0;
  const double real = row->kind == OPTION_REAL ? *(const double *)value : 0;
  out[0] = '\0';
  if (text) snprintf(out, bytes, "%s", text);
  if (row->kind == OPTION_COUNT && (double)count >= row->minimum)
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
  if (table->operand) printf(table->operand_default ? " [%s]" : " %s", table->operand);
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

static bool parse_value(const option_row *row, const char *text, void *settings) {
  void *value = (char *)settings + row->offset;
  switch (row->kind) {
    case OPTION_FLAG:
      *(bool *)value = true;
      return true;
    case OPTION_TEXT:
      *(const char **)value = text;
      return true;
    case OPTION_COUNT:
      return parse_count(row, text, value);
    case OPTION_REAL:
      return parse_real(row, text, value);
  }
  return false;
}

static option_result take_operand(const option_table *table, int count, char **rest, const char **out_operand) {
  const int wanted = table->operand ? 1 : 0;
  if (count > wanted) {
    tool_fail_usage("'%s' is one argument too many", rest[wanted]);
    return OPTIONS_WRONG;
  }
  if (count < wanted && !table->operand_default) {
    tool_fail_usage("%s is missing", table->operand);
    return OPTIONS_WRONG;
  }
  if (out_operand) *out_operand = count > 0 ? rest[0] : table->operand_default;
  return OPTIONS_RUN;
}

/* Says what getopt_long did not understand. */
static option_result refuse(int found, char *const *argv) {
  const char *text = argv[optind - 1];
  if (found == ':') {
    tool_fail_usage("%s needs a value", text);
  } else if (optopt >= HELP) {
    tool_fail_usage("%s: this option takes no value", text);
  } else if (optopt > 0) {
    tool_fail_usage("there is no option '-%c'", optopt);
  } else {
    tool_fail_usage("there is no option '%s'", text);
  }
  return OPTIONS_WRONG;
}

/* What getopt_long takes the letters of the options from. */
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

/* The row that getopt_long found, by its number or its letter. */
static const option_row *find_row(const option_table *table, int found) {
  if (found >= FIRST_ROW) return &table->rows[found - FIRST_ROW];
  size_t i = 0;
  while (letter_of(table, i) != found) i++;
  return &table->rows[i];
}

option_result options_parse(const option_table *table, int argc, char **argv, void *settings,
                            const char **out_operand) {
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
      return OPTIONS_DONE;
    }
    if (found == ':' || found == '?') return refuse(found, argv);
    if (!parse_value(find_row(table, found), optarg, settings)) return OPTIONS_WRONG;
  }
  return take_operand(table, argc - optind, argv + optind, out_operand);
}

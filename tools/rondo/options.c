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

#define HELP_COLUMN 26

static char letter_of(const option_table *table, size_t row) {
  return table->letters && row < strlen(table->letters) ? table->letters[row] : '\0';
}

static void print_row(const char *name, char letter, const char *argument, const char *help) {
  char left[64], also[8] = "";
  if (letter) snprintf(also, sizeof also, ", -%c", letter);
  snprintf(left, sizeof left, "  --%s%s%s%s", name, also, argument ? " " : "", argument ? argument : "");
  printf("%-*s %s", HELP_COLUMN, left, help);
}

/* A number below the minimum is none: the option has no default. */
static void print_default(const option_row *row, const void *defaults) {
  const void *value = (const char *)defaults + row->offset;
  const char *text = row->kind == OPTION_TEXT ? *(const char *const *)value : NULL;
  const uint64_t count = row->kind == OPTION_COUNT ? *(const uint64_t *)value : 0;
  const double real = row->kind == OPTION_REAL ? *(const double *)value : 0;
  if (text && text[0]) printf(" (default %s)", text);
  if (row->kind == OPTION_COUNT && (double)count >= row->minimum) printf(" (default %llu)", (unsigned long long)count);
  if (row->kind == OPTION_REAL && real >= row->minimum) printf(" (default %g)", real);
}

static void print_usage(const option_table *table) {
  printf("Usage: %s", table->command);
  if (table->operand) printf(table->operand_default ? " [%s]" : " %s", table->operand);
  printf(" [OPTION]...\n\n%s\n\n", table->description);
}

static void print_help(const option_table *table) {
  print_usage(table);
  if (table->operand) printf("  %-*s %s", HELP_COLUMN - 2, table->operand, table->operand_help);
  if (table->operand_default) printf(" (default %s)", table->operand_default);
  if (table->operand) putchar('\n');
  for (size_t i = 0; i < table->count; i++) {
    print_row(table->rows[i].name, letter_of(table, i), table->rows[i].argument, table->rows[i].help);
    print_default(&table->rows[i], table->defaults);
    putchar('\n');
  }
  print_row("help", 0, NULL, "print this and exit\n");
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
static void list_letters(const option_table *table, char letters[2 * OPTIONS_MAX + 2]) {
  size_t count = 0;
  letters[count++] = ':';
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
  char letters[2 * OPTIONS_MAX + 2];
  list_letters(table, letters);
  int found = 0;
  while ((found = getopt_long(argc, argv, letters, known, NULL)) != -1) {
    if (found == HELP) {
      print_help(table);
      return OPTIONS_DONE;
    }
    if (found == ':' || found == '?') return refuse(found, argv);
    if (!parse_value(find_row(table, found), optarg, settings)) return OPTIONS_WRONG;
  }
  return take_operand(table, argc - optind, argv + optind, out_operand);
}

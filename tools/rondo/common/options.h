/* SPDX-License-Identifier: MIT
 * The command line of one command. One table defines both what is parsed and what --help prints. A row points into the
 * command's struct of settings.
 */
#ifndef RONDO_TOOL_OPTIONS_H
#define RONDO_TOOL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum option_kind {
  OPTION_FLAG,    /* bool */
  OPTION_TEXT,    /* const char * */
  OPTION_INPUT,   /* const char *: a file to read; NULL: none */
  OPTION_OUTPUT,  /* const char *: a file to write; NULL: none */
  OPTION_UPDATED, /* like OPTION_OUTPUT, but may be the same file as an OPTION_INPUT */
  OPTION_COUNT,   /* uint64_t, from minimum to maximum */
  OPTION_REAL,    /* double, from minimum to maximum */
  OPTION_LIST     /* option_list: texts, one each time that the option is given */
} option_kind;

#define OPTION_LIST_MAX 64

typedef struct option_list {
  const char *items[OPTION_LIST_MAX];
  size_t count;
} option_list;

typedef struct option_row {
  const char *name;     /* "steps" for --steps */
  const char *argument; /* "N" as --help shows it; NULL for a flag */
  option_kind kind;
  size_t offset;           /* of the value in the settings */
  double minimum, maximum; /* a maximum of 0 means that a count has no limit */
  const char *help;        /* description; --help appends the default */
} option_row;

/* Rows that several commands share. The settings have a member `seconds` or `json`. */
#define OPTION_ROW_DEVICE(settings, member) \
  { "device", "NAME", OPTION_TEXT, offsetof(settings, member), 0, 0, "device to measure" }
#define OPTION_ROW_SECONDS(settings, help) \
  { "seconds", "X", OPTION_REAL, offsetof(settings, seconds), 0.01, 3600, help }
#define OPTION_ROW_JSON(settings) \
  { "json", NULL, OPTION_FLAG, offsetof(settings, json), 0, 0, "print one JSON object" }

#define OPTIONS_MAX 32
#define OPERANDS_MAX 8

/* The members of a table for its rows and its defaults. */
#define OPTION_ROWS(rows_, defaults_) \
  .defaults = &(defaults_), .rows = (rows_), .count = sizeof(rows_) / sizeof(rows_)[0]

typedef struct option_table {
  const char *command;         /* "rondo train" */
  const char *operand;         /* name of the operand, "TEXT", or NULL */
  bool repeats_operand;        /* there may be up to OPERANDS_MAX of them */
  const char *operand_help;    /* likewise */
  const char *operand_default; /* used if there is no operand; NULL: the operand is required */
  bool reads_operand;          /* the operand is the path of a file, or "-" for standard input */
  const char *description;     /* of the command: paragraphs separated by empty lines, which --help wraps */
  const void *defaults;        /* settings without any option; --help omits defaults that are out of range */
  const option_row *rows;
  size_t count;        /* at most OPTIONS_MAX */
  const char *letters; /* of the first rows, for example "o" for -o; not "h", which is --help; NULL: none */
} option_table;

/* The result of options_parse if the command must run. */
enum { OPTIONS_RUN = -1 };

/* Whether the argument is --help or -h. */
bool options_ask_for_help(const char *argument);

/* What an argument of a command line gives, before anything is parsed: `row` is NULL if it is no long option of the
 * table or of --help, or if it abbreviates several. */
typedef struct option_use {
  const option_row *row;
  const char *value; /* NULL: none */
  int arguments;     /* 2: the value is the next one */
} option_use;
option_use options_look(const option_table *table, int count, char *const *arguments);

/* The text after "NAME=" of an item of a list for this name; names may have '='. NULL: it is for another name. */
const char *option_value_of(const char *item, const char *name);

/* Parses argv[1] and the following arguments into the settings, which hold the defaults, and the operand or its default
 * into *out_operand, which may be NULL for a table without an operand, and is an array of OPERANDS_MAX for one that
 * repeats it: the operands, then NULL. The strings point into argv. Then checks that no
 * file name is empty, that each output file can be written, and that it is not the same file as an input or another
 * output. RONDO_TRACE counts as an output. Returns OPTIONS_RUN, or the exit status with which the command must end:
 * TOOL_OK after printing the help, otherwise TOOL_USAGE or TOOL_FAILURE after a message. */
int options_parse(const option_table *table, int argc, char **argv, void *settings, const char **out_operand);

#endif

/* SPDX-License-Identifier: MIT
 * The command line of one command: one table gives both what is understood and what --help prints. A row points into
 * the command's struct of settings.
 */
#ifndef RONDO_TOOL_OPTIONS_H
#define RONDO_TOOL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum option_kind {
  OPTION_FLAG,    /* bool */
  OPTION_TEXT,    /* const char * */
  OPTION_INPUT,   /* const char *: a file that is read; NULL: none */
  OPTION_OUTPUT,  /* const char *: a file that is written; NULL: none */
  OPTION_UPDATED, /* as OPTION_OUTPUT, and it may be the file of an OPTION_INPUT */
  OPTION_COUNT,   /* uint64_t, from minimum to maximum */
  OPTION_REAL     /* double, from minimum to maximum */
} option_kind;

typedef struct option_row {
  const char *name;     /* "steps" for --steps */
  const char *argument; /* "N" as --help shows it; NULL for a flag */
  option_kind kind;
  size_t offset;           /* of the value in the settings */
  double minimum, maximum; /* a maximum of 0 for a count means any */
  const char *help;        /* what it means; --help appends the default */
} option_row;

/* Rows that several commands have; the value is the settings' member of that name. */
#define OPTION_ROW_DEVICE(settings) \
  { "device", "NAME", OPTION_TEXT, offsetof(settings, device), 0, 0, "device to measure" }
#define OPTION_ROW_SECONDS(settings, help) \
  { "seconds", "X", OPTION_REAL, offsetof(settings, seconds), 0.01, 3600, help }
#define OPTION_ROW_JSON(settings) \
  { "json", NULL, OPTION_FLAG, offsetof(settings, json), 0, 0, "print one JSON object" }

#define OPTIONS_MAX 32

/* The members of a table that name its rows and the defaults. */
#define OPTION_ROWS(rows_, defaults_) \
  .defaults = &(defaults_), .rows = (rows_), .count = sizeof(rows_) / sizeof(rows_)[0]

typedef struct option_table {
  const char *command;         /* "rondo train" */
  const char *operand;         /* name of the one operand, "TEXT", or NULL */
  const char *operand_help;    /* likewise */
  const char *operand_default; /* what stands for one that is not given; NULL: there must be one */
  bool reads_operand;          /* it is the path of a file, or "-" for standard input */
  const char *description;     /* of the command: paragraphs, with empty lines between; --help fills their lines */
  const void *defaults; /* settings as they are when no option is given; numbers out of range are shown as none */
  const option_row *rows;
  size_t count;        /* at most OPTIONS_MAX */
  const char *letters; /* of the first rows, "o" for -o; not "h", which is --help; NULL: none */
} option_table;

/* What options_parse returns when the command is to run. */
enum { OPTIONS_RUN = -1 };

/* Whether the argument is --help or -h. */
bool options_ask_for_help(const char *argument);

/* Reads argv[1] and what follows into the settings, which hold the defaults, and the operand or its default into
 * *out_operand, which may be NULL for a table without. The texts are argv's own. Then checks, before anything is done,
 * that no file's name is empty, and that each file to write can be written and is not the same file as another one to
 * write or to read; RONDO_TRACE counts as a file to write. Returns OPTIONS_RUN, or the exit status of a command that is
 * done: TOOL_OK after printing the help, else TOOL_USAGE or TOOL_FAILURE after a message. */
int options_parse(const option_table *table, int argc, char **argv, void *settings, const char **out_operand);

#endif

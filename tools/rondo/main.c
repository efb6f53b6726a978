/* SPDX-License-Identifier: MIT
 * The command-line tool `rondo`: finds the command and reports lost output.
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands/commands.h"
#include "common/options.h"
#include "common/tool.h"

typedef struct command {
  const char *name;
  const char *full_name; /* prefix of its messages */
  int (*run)(int argc, char **argv);
  const char *summary;
} command;

#ifndef RONDO_TOOL_ONNX
static int lacks_onnx(int argc, char **argv) {
  (void)argc;
  (void)argv;
  return tool_fail_without_onnx();
}
#define command_run lacks_onnx
#define command_info lacks_onnx
#endif

static const command commands[] = {
    {"run", "rondo run", command_run, "run a model in an ONNX file"},
    {"info", "rondo info", command_info, "describe a model in an ONNX file"},
    {"train", "rondo train", command_train, "train a language model on a text, eager and recorded"},
    {"generate", "rondo generate", command_generate, "write text with a trained model"},
    {"quantize", "rondo quantize", command_quantize, "make a trained model smaller, with weights of 8 or 4 bits"},
    {"bench", "rondo bench", command_bench, "measure launches, memory, models and the gain of recording"},
    {"devices", "rondo devices", command_devices, "list devices and libraries, and why some are unavailable"},
    {"graph", "rondo graph", command_graph, "show or convert the dump of a graph"},
    {"check", "rondo check", command_check, "find ordering and lifetime mistakes in a graph"},
    {"report", "rondo report", command_report, "write an HTML page about a graph, or one that compares trainings"},
    {"serve", "rondo serve", command_serve, "serve a model from recordings, and measure it under load"},
    {"session", "rondo session", command_session, "choose the batch sizes to record for a history of requests"},
    {"plan", "rondo plan", command_plan, "plan the offsets of buffers with lifetimes, in the least memory"},
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static void write_help(FILE *file) {
  fputs("Usage: rondo COMMAND [ARGUMENT]...\n\nRecords work for a GPU or a CPU once, as a graph, and replays it.\n\n",
        file);
  for (size_t i = 0; i < COMMAND_COUNT; i++) fprintf(file, "  %-10s %s\n", commands[i].name, commands[i].summary);
  fputs(
      "\n  --help, -h print this and exit\n  --version  print the version and exit\n\n"
      "To begin with, 'rondo train' needs no arguments. 'rondo help COMMAND' explains\n"
      "a command, and so does its manual page, rondo-COMMAND(1).\n",
      file);
}

static int print_help(void) {
  write_help(stdout);
  return TOOL_OK;
}

/* The Levenshtein distance of `a` and `b`; 16 if one of them is longer than that. */
static size_t distance(const char *a, const char *b) {
  enum { MOST = 16 };
  size_t row[MOST + 1];
  const size_t length = strlen(b);
  if (length > MOST || strlen(a) > MOST) return MOST;
  for (size_t j = 0; j <= length; j++) row[j] = j;
  for (size_t i = 0; a[i] != '\0'; i++) {
    size_t above = row[0]++;
    for (size_t j = 0; j < length; j++) {
      const size_t changed = above + (a[i] != b[j]);
      above = row[j + 1];
      const size_t shorter = row[j] < above ? row[j] : above;
      row[j + 1] = changed < shorter + 1 ? changed : shorter + 1;
    }
  }
  return row[length];
}

/* The closest command, or the bare word of an option. NULL if the distance is more than two: that would be a guess. */
static const char *closest_to(const char *name) {
  static const char *const bare[] = {"--help", "--version"};
  enum { BARE_COUNT = sizeof bare / sizeof bare[0] };
  const char *closest = NULL;
  size_t least = 3;
  for (size_t i = 0; i < BARE_COUNT + COMMAND_COUNT; i++) {
    const char *shown = i < BARE_COUNT ? bare[i] : commands[i - BARE_COUNT].name;
    const size_t far = distance(name, i < BARE_COUNT ? shown + 2 : shown);
    if (far < least && far < strlen(name)) {
      least = far;
      closest = shown;
    }
  }
  return closest;
}

static int fail_unknown(const char *name) {
  if (name[0] == '-') return tool_fail_usage("there is no option '%s'", name);
  const char *closest = closest_to(name);
  if (closest == NULL) return tool_fail_usage("there is no command '%s'", name);
  return tool_fail_usage("there is no command '%s'; the closest one is %s", name, closest);
}

static int print_version(void) {
  printf("rondo %s\n", rondo_version());
  return TOOL_OK;
}

/* argv[0] is the command's name. */
static int run_command(int argc, char **argv) {
  for (size_t i = 0; i < COMMAND_COUNT; i++) {
    if (strcmp(argv[0], commands[i].name) != 0) continue;
    tool_set_command(commands[i].full_name);
    return commands[i].run(argc, argv);
  }
  return fail_unknown(argv[0]);
}

/* `rondo help bench launch` is `rondo bench launch --help`. */
static int run_help(int argc, char **argv) {
  enum { MOST = 3 };
  static char ask[] = "--help";
  char *asked[MOST + 1] = {0};
  if (argc < 2 || options_ask_for_help(argv[1])) return print_help();
  if (argc > MOST) return tool_fail_usage("unexpected argument '%s'", argv[MOST]);
  for (int i = 1; i < argc; i++) asked[i - 1] = argv[i];
  asked[argc - 1] = ask;
  return run_command(argc, asked);
}

static int run(int argc, char **argv) {
  if (argc < 2) {
    write_help(stderr);
    return TOOL_USAGE;
  }
  if (options_ask_for_help(argv[1])) return print_help();
  if (strcmp(argv[1], "--version") == 0) return print_version();
  if (strcmp(argv[1], "help") == 0) return run_help(argc - 1, argv + 1);
  return run_command(argc - 1, argv + 1);
}

/* Opens /dev/null for each closed standard stream. Otherwise the next opened file would get its descriptor and be
 * written to. Returns whether standard output was open. */
static bool open_standard_streams(void) {
  const bool has_output = fcntl(STDOUT_FILENO, F_GETFD) != -1;
  int descriptor = 0;
  do descriptor = open("/dev/null", O_RDWR);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor > STDERR_FILENO) close(descriptor);
  return has_output;
}

int main(int argc, char **argv) {
  const bool has_output = open_standard_streams();
  signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error, which is reported below */
  signal(SIGXFSZ, SIG_IGN); /* and so is a file above a size limit */
  rondo_log_set_sink(tool_log, NULL, RONDO_LOG_WARNING);
  if (!has_output) return tool_fail("standard output is closed");
  const int result = run(argc, argv);
  tool_clear_progress();
  fflush(stdout);
  const int written = tool_check_output();
  return result ? result : written;
}

/* SPDX-License-Identifier: MIT
 * The sweep of the tool: runs commands of `rondo` once to count the calls of the C library that can fail, then once for
 * each of these calls, which fails wherever it is made: in the tool, the library, or a library that it loads. Each
 * time, the tool must exit with 0 and all of its output, or with 1 and a message. A file that it writes is unchanged or
 * complete.
 *
 *   tool_sweep TOOL RONDO_BENCH PRELOADED GROUP
 *
 * RONDO_TEST_SWEEP=all tries every call. By default, the first hundred calls of a command are tried, and further ones
 * at even distances up to the command's limit. RONDO_TEST_SWEEP=NAME:memory:7 tries one call, and shows the tool's
 * output and where the call was made.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <rondo/rondo.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault/tool/failing_calls.h"

enum { MOST_ARGUMENTS = 48, MOST_SECONDS = 30, FIRST = 100, MOST_FILES = 64, MOST_FAILURES = 10 };

/* A blank separates the words of `arguments`, the files that are `written` and the settings of `environment`. The first
 * word is rondo_bench, or else a command of the tool. */
typedef struct command {
  const char *group, *name, *arguments, *written, *environment;
  size_t limit;    /* how many failures of each kind are tried */
  bool may_differ; /* the number of lines in its text varies: the text reports what was unavailable */
} command;

#define TINY "train text --steps 2 --batch 4 --hidden 8 --embedding 4"
#define GPT "train text --steps 2 --model gpt --context 8 --layers 1 --width 8 --heads 2 --batch 2"
#define LOAD "--load --seconds 0.05 --requests 2 --least 1 --most 2 --median 1 --sizes 1 --clients 2 --table-rows 20"
#define ALL_FILES "--save o.safetensors --checkpoint o.checkpoint --dump-graph o.json --report o.html --trace o.trace"
#define PLAN "plan buffers.csv --steps 10 --threads 2"

static const command commands[] = {
    {"files", "plan", PLAN " --output o.csv --svg o.svg", "o.csv o.svg", "", 300, false},
    {"files", "plan-json", PLAN " --json --offsets", "", "", 300, false},
    {"files", "graph", "graph step.json", "", "", 300, false},
    {"files", "graph-json", "graph step.json --json", "", "", 300, false},
    {"files", "graph-dot", "graph step.json --dot", "", "", 300, false},
    {"files", "check", "check step.json", "", "", 300, false},
    {"files", "check-json", "check step.json --json", "", "", 300, false},
    {"files", "report", "report step.json -o o.html", "o.html", "", 300, false},
    {"devices", "devices", "devices", "", "RONDO_ONEDNN_LIBRARY= RONDO_CBLAS_LIBRARY=", 150, true},
    {"devices", "devices-json", "devices --json", "", "RONDO_ONEDNN_LIBRARY= RONDO_CBLAS_LIBRARY=", 150, true},
    {"devices", "devices-nvidia", "devices", "", "RONDO_CUBLASLT_LIBRARY= RONDO_CUDNN_LIBRARY=", 24, true},
    {"devices", "operators", "devices --operators", "", "", 150, false},
    {"train", "train", TINY " " ALL_FILES, "o.safetensors o.checkpoint o.json o.html o.trace", "", 150, true},
    {"train", "train-json", GPT " --json --explain --save o.safetensors", "o.safetensors", "", 150, false},
    {"train", "train-resume", "train text --steps 4 --resume checkpoint --checkpoint o.checkpoint", "o.checkpoint", "",
     100, true},
    {"libraries", "train-onednn",
     "train text --steps 1 --compare 1 --model gpt --context 16 --layers 1 --width 64 --heads 2 --batch 16", "",
     "RONDO_ONEDNN_LIBRARY= RONDO_CBLAS_LIBRARY=", 150, true},
    {"libraries", "train-cblas", GPT, "", "RONDO_CBLAS_LIBRARY=", 200, true},
    {"train", "train-validation",
     "train text --steps 4 --batch 4 --hidden 8 --embedding 4 --compare 0 --validation 50 --validate-every 1 "
     "--sample-every 3 --save o.safetensors --checkpoint o.checkpoint",
     "o.safetensors o.checkpoint", "", 100, true},
    {"generate", "generate", "generate model --length 12", "", "", 300, true},
    {"generate", "generate-json", "generate model --length 12 --json", "", "", 300, false},
    {"generate", "generate-gpt", "generate gpt --length 12", "", "", 150, true},
    {"generate", "quantize", "quantize model --text text --type int4 --save o.safetensors", "o.safetensors", "", 150,
     true},
    {"session", "session", "session plan --history history --sizes 1", "", "RONDO_CBLAS_LIBRARY=", 100, false},
    {"session", "session-json", "session plan --history history --sizes 1 --model recommender --table-rows 20 --json",
     "", "RONDO_CBLAS_LIBRARY=", 60, false},
    {"serve", "serve-dense", "serve dense " LOAD " --batch-rows 1", "", "RONDO_CBLAS_LIBRARY=", 24, true},
    {"serve_gpt", "serve-gpt", "serve gpt gpt --load --seconds 0.05 --clients 2 --tokens 2 --prompt 2 --lengths 1", "",
     "RONDO_CBLAS_LIBRARY=", 24, true},
    {"serve_page", "serve-recommender", "serve recommender " LOAD " --json --report o.html", "o.html",
     "RONDO_CBLAS_LIBRARY=", 24, false},
#ifdef RONDO_TEST_ONNX
    {"onnx", "onnx-run", "run layer.onnx --input x=x.npy --output . --check y=expected.npy", "y.npy", "", 40, false},
    {"onnx", "onnx-run-json", "run layer.onnx --size rows=3 --json", "", "", 20, false},
    {"onnx", "onnx-mapped", "run table.onnx --json", "", "", 30, false},
    {"onnx", "onnx-info", "info layer.onnx", "", "", 20, false},
    {"onnx", "onnx-report", "report layer.onnx -o o.html", "o.html", "", 24, false},
    {"onnx", "onnx-bench", "bench model layer.onnx --seconds 0.01 --json", "", "", 16, false},
    {"onnx_serve", "onnx-serve", "serve ./layer.onnx --input x=x.npy " LOAD " --batch-rows 1", "",
     "RONDO_CBLAS_LIBRARY=none", 12, true},
#endif
    {"bench", "bench-memory", "bench memory buffers.csv --json", "", "", 200, false},
    {"rondo_bench", "change", "rondo_bench change --seconds 0.01 --nodes 5", "", "", 200, false},
    {"rondo_bench", "patch", "rondo_bench patch --seconds 0.01 --nodes 16 --json", "", "", 150, false},
    {"rondo_bench", "tree", "rondo_bench tree --seconds 0.01 --nodes 32 --shapes 3 --buffers buffers.csv --parts 2", "",
     "", 100, false},
    {"rondo_bench", "training",
     "rondo_bench training --seconds 0.01 --context 8 --layers 1 --width 8 --heads 2 --vocabulary 16 --batch 2 --json",
     "", "", 100, false},
    {"bench", "bench-launch", "bench launch --seconds 0.01 --launches 10", "", "", 24, false},
    {"bench", "bench-gain", "bench gain --seconds 0.01 --json", "", "RONDO_CBLAS_LIBRARY=", 10, false},
    {"rondo_bench_more", "copies", "rondo_bench copies --seconds 0.01 --most 256", "", "", 100, false},
    {"rondo_bench_more", "conv", "rondo_bench conv --seconds 0.01 --batch 1 --most 1", "", "", 60, false},
    {"rondo_bench_more", "executor",
     "rondo_bench executor --seconds 0.01 --rows 2 --table-rows 8 --branches 2 --length 2 "
     "--width 8 --json",
     "", "RONDO_CBLAS_LIBRARY=", 30, false},
    {"rondo_bench_more", "capture", "rondo_bench capture --sizes 2 --rows 64 --rounds 1 --table-rows 20", "",
     "RONDO_CBLAS_LIBRARY=", 30, false},
};

/* A library is only loaded where a command's environment says so. */
static const char bare[] =
    "RONDO_CUDA_LIBRARY=none RONDO_NVRTC_LIBRARY=none RONDO_CUBLASLT_LIBRARY=none "
    "RONDO_CUDNN_LIBRARY=none RONDO_NCCL_LIBRARY=none RONDO_ONEDNN_LIBRARY=none RONDO_CBLAS_LIBRARY=none";

/* These commands create the files that the others use. */
static const char *const preparations[] = {
    TINY " --save model --dump-graph step.json",
    GPT " --save gpt",
    "train text --steps 4 --batch 4 --hidden 8 --embedding 4 --checkpoint checkpoint --stop-after 2",
};

/* Libraries that end the process when one of their calls fails: while loading, or at any time. No caller can prevent
 * that; CONTRIBUTING.md describes each case. */
typedef struct deadly_library {
  const char *name;
  bool at_any_time;
} deadly_library;

static const deadly_library deadly[] = {
    {"libdnnl.", true},      {"libgomp.", false},   {"libgfortran.", false}, {"libopenblas.", true},
    {"libquadmath.", false}, {"libOpenCL.", false}, {"ld-linux", false},     {"libcublasLt.", false},
};

static const char *const kind_names[FAILING_KINDS] = {"memory", "system"};

static failing_calls *calls;
static const char *tool, *benchmarks, *preloaded;
static size_t failure_count, excused_count;

/* Files ----------------------------------------------------------------------------------------------------------- */

static void die(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(2);
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) die(path);
}

/* NULL when there is none. */
static char *read_file(const char *path) {
  char *text = NULL;
  size_t capacity = 0;
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  if (getdelim(&text, &capacity, '\0', file) < 0) { /* it is empty */
    free(text);
    text = strdup("");
  }
  fclose(file);
  if (text == NULL) die(path);
  return text;
}

/* The names of the files in the folder, sorted. */
static int list_files(struct dirent ***out) {
  const int count = scandir(".", out, NULL, alphasort);
  if (count < 0) die("the folder");
  return count;
}

static void free_list(struct dirent **list, int count) {
  for (int i = 0; i < count; i++) free(list[i]);
  free(list);
}

/* Splits at blanks, in place. */
static size_t split(char *text, char **out) {
  size_t count = 0;
  for (char *rest = NULL, *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    if (count == MOST_ARGUMENTS) die("the arguments");
    out[count++] = word;
  }
  return count;
}

static void make_text(void) {
  char text[4001] = "";
  unsigned long state = 0;
  for (size_t i = 0; i < sizeof text - 1; i++) {
    state = (state * 1103515245 + 12345) % 2147483648;
    text[i] = (char)(state % 5 == 0 ? ' ' : 'a' + (i * 7 + state / 65536 % 3) % 26);
  }
  write_file("text", text);
}

/* An ONNX file: y = relu(x w), with x [rows, 2] and w = [[1, 2], [3, 4]]. And x = [[1, 2]] and y = [[7, 10]] as files
 * of NumPy. */
static const char model[] =
    "08083a7d0a140a01780a01771201701a017022064d61744d756c0a0f0a01701201791a0179220452656c7512056c617965722a1b0802080210"
    "01"
    "4201774a100000803f0000004000004040000080405a170a017812120a100801120c0a061204726f77730a02080262170a017912120a100801"
    "12"
    "0c0a061204726f77730a02080242021011";
static const char array_head[] =
    "934e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a2046616c73652c202773686170"
    "65273a2028312c2032297d202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "2020202020202020202020202020200a";
static const char x[] = "0000803f00000040", y[] = "0000e04000002041";

/* y = x t, with t [512, 512] from byte 256 of a file on, from which it is mapped. */
enum { TABLE_BYTES = 512 * 512 * 4 + 256 };
static const char mapped_model[] =
    "08083a770a110a01780a017412017922064d61744d756c1201672a3308800408800410014201746a150a086c6f636174696f6e1209746162"
    "6c652e62696e6a0d0a066f6666736574120332353670015a140a0178120f0a0d080112090a0208010a0308800462140a0179120f0a0d0801"
    "12090a0208010a0308800442040a001011";

static void write_hex(const char *path, const char *head, const char *rest) {
  const char *const parts[] = {head, rest};
  FILE *file = fopen(path, "wb");
  if (file == NULL) die(path);
  for (size_t i = 0; i < 2; i++)
    for (const char *at = parts[i]; *at != '\0'; at += 2) {
      const char digits[] = {at[0], at[1], '\0'};
      if (fputc((int)strtol(digits, NULL, 16), file) == EOF) die(path);
    }
  if (fclose(file) != 0) die(path);
}

static void make_model(void) {
  write_hex("layer.onnx", model, "");
  write_hex("x.npy", array_head, x);
  write_hex("expected.npy", array_head, y);
  write_hex("table.onnx", mapped_model, "");
  write_hex("table.bin", "", "");
  if (truncate("table.bin", TABLE_BYTES) != 0) die("table.bin");
}

/* Runs ------------------------------------------------------------------------------------------------------------ */

static void redirect(const char *path, int flags, int to) {
  const int file = open(path, flags | O_CLOEXEC, 0600);
  if (file < 0 || dup2(file, to) < 0) _exit(98);
}

static void set_environment(char *settings) {
  char *words[MOST_ARGUMENTS];
  const size_t count = split(settings, words);
  for (size_t i = 0; i < count; i++) putenv(words[i]);
}

static void start(const char *arguments, const char *environment) {
  char *words[MOST_ARGUMENTS + 2] = {"rondo"};
  set_environment(strdup(bare));
  set_environment(strdup(environment));
  split(strdup(arguments), words + 1);
  if (setenv("LD_PRELOAD", preloaded, 1) || setenv(FAILING_CALLS_VARIABLE, "calls", 1)) _exit(98);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0});
  redirect("/dev/null", O_RDONLY, STDIN_FILENO);
  redirect("stdout", O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  redirect("stderr", O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
  alarm(MOST_SECONDS);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (words[1] && strcmp(words[1], "rondo_bench") == 0)
    execv(benchmarks, words + 1);
  else
    execv(tool, words);
  _exit(98);
}

/* Returns the status of wait(). */
static int run(const char *arguments, const char *environment, failing_kind kind, size_t at, bool rest) {
  int status = 0;
  memset(calls, 0, sizeof *calls);
  calls->kind = kind;
  calls->at = at;
  calls->rest = rest;
  const pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) start(arguments, environment);
  if (waitpid(child, &status, 0) != child) die("waitpid");
  return status;
}

/* What is expected ------------------------------------------------------------------------------------------------ */

static size_t count_lines(const char *text) {
  size_t count = 0;
  for (; *text; text++) count += *text == '\n';
  return count;
}

static bool ends_with(const char *text, const char *end) {
  const size_t length = strlen(text), tail = strlen(end);
  return length >= tail && strcmp(text + length - tail, end) == 0;
}

static bool is_json(const char *text) {
  json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  json_decref(value);
  return value != NULL;
}

static bool is_set(const char *path) {
  rondo_weights *set = NULL;
  const rondo_status status =
      ends_with(path, ".checkpoint") ? rondo_checkpoint_load(path, NULL, &set) : rondo_weights_load(path, NULL, &set);
  rondo_weights_destroy(set);
  return status == RONDO_OK;
}

/* Two floats after a head of whole lines of 64 bytes. */
static bool is_array(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && found.st_size > 64 && found.st_size % 64 == 8;
}

/* Returns whether a file that the tool writes is complete, judged by its kind. */
static bool is_whole(const char *path, const char *text) {
  if (ends_with(path, ".safetensors") || ends_with(path, ".checkpoint")) return is_set(path);
  if (ends_with(path, ".json") || ends_with(path, ".trace")) return is_json(text);
  if (ends_with(path, ".html")) return ends_with(text, "</html>\n");
  if (ends_with(path, ".svg")) return ends_with(text, "</svg>\n");
  if (ends_with(path, ".npy")) return is_array(path);
  return count_lines(text) == 1 + 5; /* a heading and the buffers, as CSV */
}

/* The state of a file before the run. A checkpoint that is written is absent: the tool would read it first. */
static const char *text_before(const char *path) { return ends_with(path, ".checkpoint") ? NULL : "old"; }

static void restore_files(const command *c) {
  char names[256], *words[MOST_ARGUMENTS];
  snprintf(names, sizeof names, "%s", c->written);
  const size_t count = split(names, words);
  for (size_t i = 0; i < count; i++) {
    unlink(words[i]);
    if (text_before(words[i])) write_file(words[i], text_before(words[i]));
  }
}

/* Returns what is wrong with the files, or NULL. */
static const char *judge_files(const command *c, bool succeeded) {
  static char fault[300];
  char names[256], *words[MOST_ARGUMENTS];
  snprintf(names, sizeof names, "%s", c->written);
  const size_t count = split(names, words);
  for (size_t i = 0; i < count; i++) {
    char *text = read_file(words[i]);
    const char *before = text_before(words[i]);
    const bool is_old = text && before ? strcmp(text, before) == 0 : text == before;
    const bool is_new = !is_old && text && is_whole(words[i], text);
    free(text);
    const bool may_be_cut =
        ends_with(words[i], ".trace"); /* it is written while the tool runs, and read without its end */
    if (is_new || (!succeeded && (is_old || may_be_cut))) continue;
    snprintf(fault, sizeof fault, "%s is %s", words[i], is_old ? "not written" : "cut");
    return fault;
  }
  return NULL;
}

static const char *judge_output(const command *c, const char *text, size_t lines) {
  if (strstr(c->arguments, "--json")) return is_json(text) ? NULL : "exit status 0, and what is printed is no JSON";
  if (lines > 0 && !ends_with(text, "\n")) return "exit status 0, and what is printed is cut";
  if (!c->may_differ && count_lines(text) != lines) return "exit status 0, and lines are missing";
  return NULL;
}

static const char *judge_message(const char *text) {
  if (text[0] == '\0') return "it failed without a message";
  if (strncmp(text, "rondo", 5) != 0 || !ends_with(text, "\n")) return "its message is none of the tool's";
  if (strstr(text, ": Success") || ends_with(text, ": \n")) return "its message gives no reason";
  return NULL;
}

/* `lines`: that the command prints without failures. */
static const char *judge(const command *c, int status, size_t lines) {
  static char death[80];
  if (WIFSIGNALED(status)) {
    snprintf(death, sizeof death, "it %s (signal %d)", WTERMSIG(status) == SIGALRM ? "did not end" : "died",
             WTERMSIG(status));
    return death;
  }
  const int code = WEXITSTATUS(status);
  if (code != 0 && code != 1) return "its exit status is neither 0 nor 1";
  const char *path = code ? "stderr" : "stdout";
  char *text = read_file(path);
  if (text == NULL) die(path);
  const char *fault = code ? judge_message(text) : judge_output(c, text, lines);
  free(text);
  return fault ? fault : judge_files(c, code == 0);
}

static bool starts_with(const char *text, const char *begin) { return strncmp(text, begin, strlen(begin)) == 0; }

/* Returns the line of the stack with the library that made the call, directly or through a language's runtime library.
 * */
static const char *find_caller(void) {
  const char *line = calls->stack;
  while (starts_with(line, "libfailing_calls.") || starts_with(line, "libstdc++.") || starts_with(line, "libc."))
    line += strcspn(line, "\n") + 1;
  return line;
}

/* Returns whether the tool failed because a library ended the process, or may have. */
static bool is_excused(int status) {
  const char *caller = find_caller();
  const bool is_loaded = strstr(caller, " dlopen+") != NULL;
  if (status == 0) return false;
  for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++) {
    if (starts_with(caller, deadly[i].name) && (deadly[i].at_any_time || is_loaded)) return true;
  }
  return false;
}

/* Removes files that were not there before. A temporary file that could not be removed may stay. */
static const char *clean_up(struct dirent **known, int known_count) {
  static char fault[300];
  const char *found = NULL;
  struct dirent **list;
  const int count = list_files(&list);
  for (int i = 0; i < count; i++) {
    bool is_known = false;
    for (int k = 0; k < known_count; k++) is_known = is_known || strcmp(list[i]->d_name, known[k]->d_name) == 0;
    if (is_known) continue;
    unlink(list[i]->d_name);
    snprintf(fault, sizeof fault, "it leaves '%s'", list[i]->d_name);
    const bool may_stay = calls->kind == FAILING_SYSTEM && (calls->rest || strncmp(calls->name, "unlink", 6) == 0);
    if (!may_stay) found = fault;
  }
  free_list(list, count);
  return found;
}

/* The sweep ------------------------------------------------------------------------------------------------------- */

static void show_file(const char *path) {
  char *text = read_file(path);
  printf("%s:\n%s", path, text ? text : "");
  free(text);
}

/* The innermost frames, which are the most useful. */
static void show_stack(void) {
  enum { MOST_FRAMES = 16 };
  const char *end = calls->stack;
  for (size_t i = 0; i < MOST_FRAMES && *end; i++) end += strcspn(end, "\n") + 1;
  printf("%s fails in\n%.*s", calls->name, (int)(end - calls->stack), calls->stack);
}

static void show(const command *c, failing_kind kind, size_t at, bool rest, const char *fault) {
  printf("\n%s:%s:%zu%s: %s\nrondo %s %s\n", c->name, kind_names[kind], at, rest ? "+" : "", fault, c->arguments,
         c->environment);
  show_stack();
  show_file("stderr");
}

static void try_one(const command *c, failing_kind kind, size_t at, bool rest, size_t lines, struct dirent **known,
                    int known_count) {
  restore_files(c);
  const int status = run(c->arguments, c->environment, kind, at, rest);
  const char *fault = judge(c, status, lines), *left = clean_up(known, known_count);
  if (fault == NULL) fault = left;
  if (fault == NULL) return;
  if (is_excused(status)) {
    const char *caller = find_caller();
    printf("%s:%s:%zu: %s, known of %.*s\n", c->name, kind_names[kind], at, fault, (int)strcspn(caller, "\n"), caller);
    excused_count++;
    return;
  }
  show(c, kind, at, rest, fault);
  if (++failure_count == MOST_FAILURES) {
    printf("\nenough\n");
    exit(1);
  }
}

static size_t limit_of(const command *c) {
  const char *asked = getenv("RONDO_TEST_SWEEP");
  return asked && strcmp(asked, "all") == 0 ? SIZE_MAX : c->limit;
}

/* The number of the call that fails in try `i` of `tries`. */
static size_t choose(size_t i, size_t tries, size_t count) {
  const size_t first = tries < FIRST ? tries / 2 : FIRST;
  if (tries == count || i < first) return i + 1;
  return first + 1 + (i - first) * (count - first) / (tries - first);
}

static void sweep_kind(const command *c, failing_kind kind) {
  restore_files(c);
  const int status = run(c->arguments, c->environment, kind, 0, false);
  const size_t count = calls->counts[kind];
  char *text = read_file("stdout");
  const size_t lines = text ? count_lines(text) : 0;
  free(text);
  const char *fault = judge(c, status, lines);
  if (fault || count == 0) {
    printf("%s: without a failure: %s\n", c->name, fault ? fault : "no call is counted");
    show_file("stderr");
    exit(1);
  }
  struct dirent **known;
  const int known_count = list_files(&known);
  const size_t limit = limit_of(c), tries = count < limit ? count : limit;
  for (size_t i = 0; i < tries; i++) try_one(c, kind, choose(i, tries, count), false, lines, known, known_count);
  /* When all later calls fail, it is unknown which of them ended the process. */
  for (size_t i = 0; i < tries && !c->environment[0]; i += 10)
    try_one(c, kind, choose(i, tries, count), true, lines, known, known_count);
  printf("%s: %zu of %zu calls (%s) failed\n", c->name, tries, count, kind_names[kind]);
  free_list(known, known_count);
}

/* Parses NAME:KIND:AT, with a plus for all later ones too. Returns false when the text has another form. */
static bool do_as_asked(void) {
  const char *asked = getenv("RONDO_TEST_SWEEP");
  char name[64] = "", kind[16] = "", plus = ' ';
  size_t at = 0;
  if (asked == NULL || sscanf(asked, "%63[^:]:%15[^:]:%zu%c", name, kind, &at, &plus) < 3) return false;
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    const command *c = &commands[i];
    if (strcmp(c->name, name) != 0) continue;
    const failing_kind which = strcmp(kind, "system") == 0 ? FAILING_SYSTEM : FAILING_MEMORY;
    restore_files(c);
    const int status = run(c->arguments, c->environment, which, at, plus == '+');
    const char *fault = judge(c, status, 0);
    show_file("stdout");
    show(c, which, at, plus == '+', fault ? fault : "as it should");
    printf("status %#x\n", (unsigned)status);
  }
  return true;
}

static char folder[] = "/tmp/rondo-sweep-XXXXXX";

static void remove_folder(void) {
  struct dirent **list;
  const int count = list_files(&list);
  for (int i = 0; i < count; i++) unlink(list[i]->d_name);
  free_list(list, count);
  rmdir(folder);
}

static void enter_folder(void) {
  if (mkdtemp(folder) == NULL || chdir(folder) != 0) die(folder);
  atexit(remove_folder);
}

static void prepare(void) {
  enter_folder();
  const int file = open("calls", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof *calls) < 0) die("calls");
  calls = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (calls == MAP_FAILED) die("calls");
  close(file);
  make_text();
  make_model();
  write_file("history", "1,3\n2\n");
  write_file("buffers.csv", "id,lower,upper,size\na,0,3,400000\nb,1,2,600000\nc,2,5,600000\nd,3,4,0\ne,4,6,400000\n");
  for (size_t i = 0; i < sizeof preparations / sizeof preparations[0]; i++) {
    if (run(preparations[i], "", FAILING_MEMORY, 0, false) == 0) continue;
    show_file("stderr");
    exit(2);
  }
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: %s TOOL RONDO_BENCH PRELOADED GROUP\n", argv[0]);
    return 2;
  }
  tool = argv[1];
  benchmarks = argv[2];
  preloaded = argv[3];
  setvbuf(stdout, NULL, _IOLBF, 0);
  prepare();
  if (do_as_asked()) return 0;
  size_t count = 0;
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    if (strcmp(commands[i].group, argv[4]) != 0 && strcmp(commands[i].name, argv[4]) != 0) continue;
    for (failing_kind kind = 0; kind < FAILING_KINDS; kind++) sweep_kind(&commands[i], kind);
    count++;
  }
  if (count == 0) fprintf(stderr, "there is no group '%s'\n", argv[4]);
  printf("%zu mistakes, %zu deaths in libraries that are known for them\n", failure_count, excused_count);
  return count == 0 || failure_count > 0;
}

/* SPDX-License-Identifier: MIT
 * The table of RONDO_* variables and their values. Values are copied out of the environment at the first use: what
 * getenv returns does not outlive a setenv. A program with raised privileges (setuid) sees none of them: they name
 * libraries to load and files to write, and its caller must not choose those. `loaded` is set behind the last value, so
 * that a getter reads without a lock; what was wrong is said after the lock is released, because the sink is the
 * user's.
 */
#define _GNU_SOURCE
#include "base/environment.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/log.h"

#define AREA "options"
#define PREFIX "RONDO_"
#define TEST_PREFIX "RONDO_TEST_"
#define LONGEST_NAME 64 /* of an unknown variable, when it is compared and printed */

static const rondo_option_row table[RONDO_OPTION_COUNT] = {
    [RONDO_OPTION_LOG] = {.name = "RONDO_LOG",
                          .kind = "text",
                          .default_value = "",
                          .meaning =
                              "highest level that the log sink gets, over what the program asks for; of an area: "
                              "AREA=LEVEL, or AREA for all of it; several with commas between",
                          .choices = "error|warning|info|debug|AREA|AREA=LEVEL",
                          .is_valid = rondo_log_is_setting},
    [RONDO_OPTION_TRACE] = {.name = "RONDO_TRACE",
                            .kind = "text",
                            .default_value = "",
                            .meaning = "file to write a Chrome trace to, from the first device on"},
    [RONDO_OPTION_CPU_WORKERS] = {.name = "RONDO_CPU_WORKERS",
                                  .kind = "number",
                                  .default_value = "0",
                                  .meaning = "worker threads of a CPU device; 0 = processors - 1, at least 1",
                                  .maximum = 256},
    [RONDO_OPTION_CPU_BIND] = {.name = "RONDO_CPU_BIND",
                               .kind = "flag",
                               .default_value = "on",
                               .meaning = "bind the workers of a CPU device to processors"},
    [RONDO_OPTION_CPU_SPIN_US] = {.name = "RONDO_CPU_SPIN_US",
                                  .kind = "number",
                                  .default_value = "1000",
                                  .meaning = "microseconds that an idle worker stays awake",
                                  .maximum = 60000000},
    [RONDO_OPTION_CPU_VECTORS] = {.name = "RONDO_CPU_VECTORS",
                                  .kind = "text",
                                  .default_value = "",
                                  .meaning =
                                      "widest vectors that CPU kernels use, of those that the processor has; the "
                                      "same bits with any",
                                  .choices = "plain|avx2|avx512"},
    [RONDO_OPTION_CPU_MEMORY_LIMIT] = {.name = "RONDO_CPU_MEMORY_LIMIT",
                                       .kind = "number",
                                       .default_value = "0",
                                       .meaning = "bytes of physical memory a CPU device takes; 0 = the machine's",
                                       .maximum = UINT64_MAX},
    [RONDO_OPTION_CPU_LACKS] = {.name = "RONDO_CPU_LACKS",
                                .kind = "text",
                                .default_value = "",
                                .meaning = "what a CPU device pretends not to have, to test programs with",
                                .choices = "memory_nodes|memory_pools"},
    [RONDO_OPTION_CUDA_LIBRARY] = {.name = "RONDO_CUDA_LIBRARY",
                                   .kind = "text",
                                   .default_value = "",
                                   .meaning = "the CUDA driver's library, instead of libcuda.so.1"},
    [RONDO_OPTION_NVRTC_LIBRARY] = {.name = "RONDO_NVRTC_LIBRARY",
                                    .kind = "text",
                                    .default_value = "",
                                    .meaning = "the library that compiles CUDA C, instead of libnvrtc.so"},
    [RONDO_OPTION_CUDA_CACHE] = {.name = "RONDO_CUDA_CACHE",
                                 .kind = "text",
                                 .default_value = "",
                                 .meaning =
                                     "folder of compiled kernels, instead of ~/.cache/rondo; \"none\" = no cache"},
    [RONDO_OPTION_CUDA_CACHE_BYTES] = {.name = "RONDO_CUDA_CACHE_BYTES",
                                       .kind = "number",
                                       .default_value = "268435456",
                                       .meaning = "bytes of compiled kernels that are kept on disk",
                                       .maximum = UINT64_MAX},
    [RONDO_OPTION_CUBLASLT_LIBRARY] = {.name = "RONDO_CUBLASLT_LIBRARY",
                                       .kind = "text",
                                       .default_value = "",
                                       .meaning = "library for matrix products on CUDA, instead of libcublasLt.so; "
                                                  "\"none\" = own kernels"},
    [RONDO_OPTION_CUBLASLT_LEAST] = {.name = "RONDO_CUBLASLT_LEAST",
                                     .kind = "number",
                                     .default_value = "65536",
                                     .meaning = "multiplications in a product from which cuBLASLt makes it, where it "
                                                "keeps the device busy; 1 = all that it can",
                                     .maximum = UINT64_MAX},
    [RONDO_OPTION_CUDNN_LIBRARY] = {.name = "RONDO_CUDNN_LIBRARY",
                                    .kind = "text",
                                    .default_value = "",
                                    .meaning = "library for convolutions on CUDA, instead of libcudnn.so.9; \"none\" = "
                                               "own kernels"},
    [RONDO_OPTION_CUDNN_LEAST] = {.name = "RONDO_CUDNN_LEAST",
                                  .kind = "number",
                                  .default_value = "1048576",
                                  .meaning = "multiplications in a convolution from which cuDNN makes it; 1 = all that "
                                             "it can",
                                  .maximum = UINT64_MAX},
    [RONDO_OPTION_CUDA_TILE] = {.name = "RONDO_CUDA_TILE",
                                .kind = "number",
                                .default_value = "0",
                                .meaning = "rows and columns of the tiles that own kernels on CUDA cut matrix products "
                                           "into: 16, 32, 64 or 128; 0 = by their shapes",
                                .maximum = 128},
    [RONDO_OPTION_NCCL_LIBRARY] = {.name = "RONDO_NCCL_LIBRARY",
                                   .kind = "text",
                                   .default_value = "",
                                   .meaning = "library for collectives on CUDA, instead of libnccl.so.2"},
    [RONDO_OPTION_ONEDNN_LIBRARY] = {.name = "RONDO_ONEDNN_LIBRARY",
                                     .kind = "text",
                                     .default_value = "",
                                     .meaning = "library for large matrix products and convolutions on a CPU, instead "
                                                "of libdnnl.so.2 or .3; \"none\" = CBLAS makes all products"},
    [RONDO_OPTION_ONEDNN_LEAST] = {.name = "RONDO_ONEDNN_LEAST",
                                   .kind = "number",
                                   .default_value = "65536",
                                   .meaning = "multiplications in a convolution from which oneDNN makes it on a CPU, "
                                              "where it is quicker; 1 = all that it can",
                                   .maximum = UINT64_MAX},
    [RONDO_OPTION_CBLAS_LIBRARY] = {.name = "RONDO_CBLAS_LIBRARY",
                                    .kind = "text",
                                    .default_value = "",
                                    .meaning = "library with cblas_sgemm, which then makes all matrix products on a "
                                               "CPU; \"none\" = plain C"},
    [RONDO_OPTION_SYNC] = {.name = "RONDO_SYNC",
                           .kind = "flag",
                           .default_value = "off",
                           .meaning = "synchronise after every operation, for debugging"},
    [RONDO_OPTION_CHECK_ORDERS] = {.name = "RONDO_CHECK_ORDERS",
                                   .kind = "number",
                                   .default_value = "2",
                                   .meaning = "orders that each launch is run in on cpu:check; 1 = run it once",
                                   .maximum = 1000000},
    [RONDO_OPTION_CHECK_SEED] = {.name = "RONDO_CHECK_SEED",
                                 .kind = "number",
                                 .default_value = "1",
                                 .meaning = "what the orders of cpu:check are drawn from",
                                 .maximum = UINT64_MAX},
};

typedef struct option_value {
  char text[PATH_MAX];
  uint64_t number; /* of a flag: 0 or 1 */
  bool bad;        /* the environment's value was refused; this is the default */
} option_value;

static option_value values[RONDO_OPTION_COUNT];
static atomic_bool loaded;
static atomic_bool reported;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

/* Whether `word` is one of the words of `list`, which '|' separates. */
static bool is_among(const char *word, const char *list) {
  const size_t length = strcspn(word, "|");
  if (word[length] != '\0') return false;
  for (const char *at = list; at != NULL; at = strchr(at, '|')) {
    if (*at == '|') at++;
    if (strncmp(at, word, length) == 0 && (at[length] == '|' || at[length] == '\0')) return true;
  }
  return false;
}

static bool parse_number(const char *text, uint64_t maximum, uint64_t *out) {
  if (*text < '0' || *text > '9') return false; /* strtoull takes blanks and signs */
  char *end;
  errno = 0;
  const unsigned long long number = strtoull(text, &end, 10);
  if (errno != 0 || *end != '\0' || number > maximum) return false;
  *out = number;
  return true;
}

static bool parse(const rondo_option_row *row, const char *text, option_value *value) {
  if (strlen(text) >= sizeof value->text) return false;
  if (strcmp(row->kind, "number") == 0) {
    if (!parse_number(text, row->maximum, &value->number)) return false;
  } else if (strcmp(row->kind, "flag") == 0) {
    value->number = is_among(text, "1|on|yes|true");
    if (value->number == 0 && !is_among(text, "0|off|no|false")) return false;
  } else if (*text != '\0' && row->choices != NULL) {
    if (row->is_valid != NULL ? !row->is_valid(text) : !is_among(text, row->choices)) return false;
  }
  strcpy(value->text, text);
  return true;
}

static void load_one(rondo_option option) {
  const rondo_option_row *row = &table[option];
  const char *given = secure_getenv(row->name);
  option_value *value = &values[option];
  value->bad = false;
  if (given != NULL && *given != '\0') {
    if (parse(row, given, value)) return;
    value->bad = true;
  }
  const bool valid = parse(row, row->default_value, value);
  assert(valid);
  (void)valid;
}

static void load(void) {
  pthread_mutex_lock(&loading);
  const bool needed = !atomic_load(&loaded);
  if (needed)
    for (int i = 0; i < RONDO_OPTION_COUNT; i++) load_one((rondo_option)i);
  atomic_store(&loaded, true);
  pthread_mutex_unlock(&loading);
  if (needed) rondo_options_report();
}

static const option_value *get(rondo_option option) {
  assert(option < RONDO_OPTION_COUNT);
  if (!atomic_load_explicit(&loaded, memory_order_acquire)) load();
  return &values[option];
}

static void report_bad_value(const rondo_option_row *row) {
  if (strcmp(row->kind, "number") == 0)
    rondo_log(RONDO_LOG_WARNING, AREA, "%s is ignored: it is no number from 0 to %llu; the default %s holds", row->name,
              (unsigned long long)row->maximum, row->default_value);
  else if (strcmp(row->kind, "flag") == 0)
    rondo_log(RONDO_LOG_WARNING, AREA,
              "%s is ignored: it is none of 1|on|yes|true|0|off|no|false; the default %s holds", row->name,
              row->default_value);
  else if (row->choices != NULL)
    rondo_log(RONDO_LOG_WARNING, AREA, "%s is ignored: it is none of %s", row->name, row->choices);
  else
    rondo_log(RONDO_LOG_WARNING, AREA, "%s is ignored: it is longer than %zu bytes", row->name,
              sizeof values->text - 1);
}

/* Levenshtein's: single letters added, taken away or changed to turn one name into the other. */
static unsigned distance(const char *name, size_t length, const char *known) {
  unsigned row[LONGEST_NAME + 1];
  for (size_t i = 0; i <= length; i++) row[i] = (unsigned)i;
  for (size_t j = 0; known[j] != '\0'; j++) {
    unsigned diagonal = row[0];
    row[0] = (unsigned)j + 1;
    for (size_t i = 1; i <= length; i++) {
      const unsigned changed = diagonal + (name[i - 1] != known[j]);
      const unsigned shorter = (row[i] < row[i - 1] ? row[i] : row[i - 1]) + 1;
      diagonal = row[i];
      row[i] = changed < shorter ? changed : shorter;
    }
  }
  return row[length];
}

static size_t common_prefix(const char *name, size_t length, const char *known) {
  size_t common = 0;
  while (common < length && name[common] == known[common]) common++;
  return common;
}

/* The option with the least distance; of several, the one that begins most like it. */
static const char *closest_name(const char *name, size_t length) {
  const char *closest = table[0].name;
  unsigned least = distance(name, length, closest);
  for (int i = 1; i < RONDO_OPTION_COUNT; i++) {
    const char *known = table[i].name;
    const unsigned away = distance(name, length, known);
    if (away > least) continue;
    if (away == least && common_prefix(name, length, known) <= common_prefix(name, length, closest)) continue;
    least = away;
    closest = known;
  }
  return closest;
}

static void report_unknown(const char *name, size_t length) {
  const size_t kept = length < LONGEST_NAME ? length : LONGEST_NAME;
  rondo_log(RONDO_LOG_WARNING, AREA, "%.*s%s is no option and is ignored; the closest one is %s", (int)kept, name,
            kept < length ? "..." : "", closest_name(name, kept));
}

static bool is_known(const char *name, size_t length) {
  if (strncmp(name, TEST_PREFIX, strlen(TEST_PREFIX)) == 0) return true;
  for (int i = 0; i < RONDO_OPTION_COUNT; i++)
    if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0) return true;
  return false;
}

/* A variable that is set and has no effect because the program runs with raised privileges. */
static void report_not_read(const char *name, size_t length) {
  rondo_log(RONDO_LOG_WARNING, AREA,
            "%.*s is ignored: the program runs with raised privileges (setuid, setgid or file capabilities)",
            (int)(length < LONGEST_NAME ? length : LONGEST_NAME), name);
}

void rondo_options_report(void) {
  if (!atomic_load_explicit(&loaded, memory_order_acquire) || !rondo_log_on(RONDO_LOG_WARNING)) return;
  if (atomic_exchange(&reported, true)) return;
  const bool is_privileged = getauxval(AT_SECURE) != 0;
  for (int i = 0; i < RONDO_OPTION_COUNT; i++)
    if (values[i].bad) report_bad_value(&table[i]);
  for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
    const size_t length = strcspn(*entry, "=");
    if (strncmp(*entry, PREFIX, strlen(PREFIX)) != 0) continue;
    if (is_privileged)
      report_not_read(*entry, length);
    else if (!is_known(*entry, length))
      report_unknown(*entry, length);
  }
}

void rondo_options_reload(void) {
  atomic_store(&loaded, false);
  atomic_store(&reported, false);
  load();
}

const rondo_option_row *rondo_option_table(size_t *count) {
  *count = RONDO_OPTION_COUNT;
  return table;
}

const char *rondo_option_text(rondo_option option) {
  assert(strcmp(table[option].kind, "text") == 0);
  return get(option)->text;
}

uint64_t rondo_option_number(rondo_option option) {
  assert(strcmp(table[option].kind, "number") == 0);
  return get(option)->number;
}

bool rondo_option_flag(rondo_option option) {
  assert(strcmp(table[option].kind, "flag") == 0);
  return get(option)->number != 0;
}

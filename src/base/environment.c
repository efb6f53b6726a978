/* SPDX-License-Identifier: MIT
 * The table of RONDO_* variables and their values. The first use copies the values out of the environment, because a
 * setenv may free what getenv returned. A program with raised privileges (setuid) ignores all of them: they name
 * libraries to load and files to write, which the program's caller must not choose. `loaded` is set after the last
 * value, so that a getter reads without a lock. Warnings are logged after the lock is released, because the sink is the
 * user's code.
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

/* Every option has a name, RONDO_<option>, and a meaning, which the documents print. */
#define OPTION(option, ...) [RONDO_OPTION_##option] = {.name = PREFIX #option, __VA_ARGS__}
#define TEXT(option, choices_, meaning_) \
  OPTION(option, .kind = "text", .default_value = "", .choices = choices_, .meaning = meaning_)
#define NUMBER(option, default_, maximum_, meaning_) \
  OPTION(option, .kind = "number", .default_value = default_, .maximum = maximum_, .meaning = meaning_)
#define FLAG(option, default_, meaning_) OPTION(option, .kind = "flag", .default_value = default_, .meaning = meaning_)

static const rondo_option_row table[RONDO_OPTION_COUNT] = {
    OPTION(LOG, .kind = "text", .default_value = "", .choices = "error|warning|info|debug|AREA|AREA=LEVEL",
           .is_valid = rondo_log_is_setting,
           .meaning = "highest level to log, instead of the program's; AREA=LEVEL for one area, AREA for all levels of "
                      "it; separate several with commas"),
    TEXT(TRACE, NULL, "file to write a Chrome trace to, from the first opened device on"),
    NUMBER(CPU_WORKERS, "0", 256, "worker threads of a CPU device; 0 = processors - 1, at least 1"),
    FLAG(CPU_BIND, "on", "bind the workers of a CPU device to processors"),
    NUMBER(CPU_SPIN_US, "1000", 60000000, "microseconds that an idle worker stays awake"),
    TEXT(CPU_VECTORS, "plain|avx2|avx512", "widest vectors that CPU kernels use, of those that the processor has"),
    NUMBER(CPU_MEMORY_LIMIT, "0", UINT64_MAX, "bytes of physical memory that a CPU device may use; 0 = the machine's"),
    TEXT(CPU_LACKS, "memory_nodes|memory_pools", "feature that a CPU device reports as missing, to test programs"),
    TEXT(CUDA_LIBRARY, NULL, "the CUDA driver's library, instead of libcuda.so.1"),
    TEXT(NVRTC_LIBRARY, NULL, "the library that compiles CUDA C, instead of libnvrtc.so"),
    TEXT(CUDA_CACHE, NULL, "folder of compiled kernels, instead of ~/.cache/rondo; \"none\" = no cache"),
    NUMBER(CUDA_CACHE_BYTES, "268435456", UINT64_MAX, "bytes of compiled kernels to keep on disk"),
    TEXT(CUBLASLT_LIBRARY, NULL,
         "library for matrix products on CUDA, instead of libcublasLt.so; \"none\" = own kernels"),
    NUMBER(CUBLASLT_LEAST, "65536", UINT64_MAX,
           "least multiplications of a matrix product for cuBLASLt, if it keeps the device busy; 1 = every product it "
           "supports"),
    TEXT(CUDNN_LIBRARY, NULL,
         "library for convolutions and attention on CUDA, instead of libcudnn.so.9; \"none\" = own kernels"),
    NUMBER(CUDNN_LEAST, "1048576", UINT64_MAX,
           "least multiplications of a convolution or of attention for cuDNN; 1 = every one it supports"),
    NUMBER(CUDA_TILE, "0", 128, "tile size of Rondo's matrix products on CUDA: 16, 32, 64 or 128; 0 = chosen by shape"),
    TEXT(NCCL_LIBRARY, NULL, "library for collectives on CUDA, instead of libnccl.so.2"),
    TEXT(ONEDNN_LIBRARY, NULL,
         "library for large matrix products and convolutions on a CPU, instead of libdnnl.so.2 or .3; \"none\" = CBLAS "
         "for all products"),
    NUMBER(ONEDNN_LEAST, "65536", UINT64_MAX,
           "least multiplications of a convolution for oneDNN on a CPU, if it is faster; 1 = every one it supports"),
    TEXT(CBLAS_LIBRARY, NULL, "library with cblas_sgemm for all matrix products on a CPU; \"none\" = plain C"),
    FLAG(SYNC, "off", "synchronise after every operation, for debugging"),
    NUMBER(CHECK_ORDERS, "2", 1000000, "number of orders in which cpu:check runs each launch; 1 = run it once"),
    NUMBER(CHECK_SEED, "1", UINT64_MAX, "seed of the orders of cpu:check"),
};

typedef struct option_value {
  char text[PATH_MAX];
  uint64_t number; /* of a flag: 0 or 1 */
  bool bad;        /* the environment's value is invalid; this is the default */
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

bool rondo_parse_number(const char *text, uint64_t maximum, uint64_t *out) {
  if (*text < '0' || *text > '9') return false; /* strtoull accepts blanks and signs */
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
    if (!rondo_parse_number(text, row->maximum, &value->number)) return false;
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
    rondo_log(RONDO_LOG_WARNING, AREA, "%s is ignored: it is not a number from 0 to %llu; the default %s is used",
              row->name, (unsigned long long)row->maximum, row->default_value);
  else if (strcmp(row->kind, "flag") == 0)
    rondo_log(RONDO_LOG_WARNING, AREA,
              "%s is ignored: it is not one of 1|on|yes|true|0|off|no|false; the default %s is used", row->name,
              row->default_value);
  else if (row->choices != NULL)
    rondo_log(RONDO_LOG_WARNING, AREA, "%s is ignored: it is not one of %s", row->name, row->choices);
  else
    rondo_log(RONDO_LOG_WARNING, AREA, "%s is ignored: it is longer than %zu bytes", row->name,
              sizeof values->text - 1);
}

/* The Levenshtein distance: how many single letters must be inserted, removed or changed to turn one name into the
 * other. */
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

/* The option with the smallest distance; of several, the one with the longest common prefix. */
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
  rondo_log(RONDO_LOG_WARNING, AREA, "%.*s%s is not a known variable and is ignored; the closest one is %s", (int)kept,
            name, kept < length ? "..." : "", closest_name(name, kept));
}

static bool is_known(const char *name, size_t length) {
  if (strncmp(name, TEST_PREFIX, strlen(TEST_PREFIX)) == 0) return true;
  for (int i = 0; i < RONDO_OPTION_COUNT; i++)
    if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0) return true;
  return false;
}

/* Reports a variable that is ignored because the program runs with raised privileges. */
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

const char *rondo_environment_get(const char *name) {
  const char *value = secure_getenv(name);
  return value != NULL && *value != '\0' ? value : NULL;
}

/* SPDX-License-Identifier: MIT
 * The one table of RONDO_* environment variables: name, kind, default, meaning. Read once, at the first use. A RONDO_*
 * variable that is not in the table, or whose value does not parse, is ignored and logged once (as soon as a sink
 * accepts warnings). An empty value counts as unset. RONDO_TEST_* variables are for test programs. The documentation
 * lists this table (scripts print it through rondo_option_table).
 * Threads: any, except rondo_options_reload. A getter costs one load once the table is read.
 */
#ifndef RONDO_BASE_ENVIRONMENT_H
#define RONDO_BASE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/component.h"

/* The table in environment.c says what each is: its kind, its default and its meaning. */
typedef enum rondo_option {
  RONDO_OPTION_LOG,
  RONDO_OPTION_TRACE,
  RONDO_OPTION_CPU_WORKERS,
  RONDO_OPTION_CPU_BIND,
  RONDO_OPTION_CPU_SPIN_US,
  RONDO_OPTION_CPU_VECTORS,
  RONDO_OPTION_CPU_MEMORY_LIMIT,
  RONDO_OPTION_CPU_LACKS,
  RONDO_OPTION_CUDA_LIBRARY,
  RONDO_OPTION_NVRTC_LIBRARY,
  RONDO_OPTION_CUDA_CACHE,
  RONDO_OPTION_CUDA_CACHE_BYTES,
  RONDO_OPTION_CUBLASLT_LIBRARY,
  RONDO_OPTION_CUBLASLT_LEAST,
  RONDO_OPTION_CUDNN_LIBRARY,
  RONDO_OPTION_CUDNN_LEAST,
  RONDO_OPTION_CUDA_TILE,
  RONDO_OPTION_NCCL_LIBRARY,
  RONDO_OPTION_ONEDNN_LIBRARY,
  RONDO_OPTION_ONEDNN_LEAST,
  RONDO_OPTION_CBLAS_LIBRARY,
  RONDO_OPTION_SYNC,
  RONDO_OPTION_CHECK_ORDERS,
  RONDO_OPTION_CHECK_SEED,
  RONDO_OPTION_COUNT
} rondo_option;

typedef struct rondo_option_row {
  const char *name;                   /* "RONDO_CPU_WORKERS" */
  const char *kind;                   /* "text", "number" (decimal), "flag" (1, on, yes, true; 0, off, no, false) */
  const char *default_value;          /* as text */
  const char *meaning;                /* one line */
  const char *choices;                /* of a text: "error|warning"; NULL: any text */
  bool (*is_valid)(const char *text); /* checks a value for which `choices` is only a description; NULL: `choices` is
                                       * complete */
  uint64_t maximum;                   /* of a number: the largest valid value */
} rondo_option_row;

const rondo_option_row *rondo_option_table(size_t *count);

/* Each getter is for options of its kind. The text is never NULL, is "" when unset, and is valid until the next reload.
 */
RONDO_PRIVATE const char *rondo_option_text(rondo_option option);
RONDO_PRIVATE uint64_t rondo_option_number(rondo_option option);
bool rondo_option_flag(rondo_option option);

/* A variable of other programs, such as WORLD_SIZE, as it is now. NULL if it is not set or empty, and in a program with
 * raised privileges. Valid until the program changes this variable. Any thread, while none changes the environment. */
const char *rondo_environment_get(const char *name);

/* A number from 0 to `maximum` in decimal digits, without signs and blanks. False for another text. */
bool rondo_parse_number(const char *text, uint64_t maximum, uint64_t *out);

/* Logs the errors in the environment, once, if a sink accepts warnings. The log calls it when a sink is installed. */
void rondo_options_report(void);

/* Reads the environment again; for tests, and only while no other thread uses Rondo. */
void rondo_options_reload(void);

#endif

/* SPDX-License-Identifier: MIT
 * The one table of RONDO_* environment variables: name, kind, default, meaning. Read once, at the first use; a
 * RONDO_* variable that is not in the table, and a value that does not parse, is said once through the log (as soon as
 * a sink takes warnings) and is otherwise ignored. An empty value is as none; RONDO_TEST_* is left to test programs.
 * The table is what the documents list (scripts print it through rondo_option_table).
 * Threads: any, save rondo_options_reload. A getter costs one load once the table is read.
 */
#ifndef RONDO_BASE_ENVIRONMENT_H
#define RONDO_BASE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum rondo_option {
  RONDO_OPTION_LOG,         /* text: error, warning, info, debug; of areas (rondo_log_is_setting) */
  RONDO_OPTION_TRACE,       /* text: path of a Chrome trace file */
  RONDO_OPTION_CPU_WORKERS, /* number: worker threads of a CPU device; 0 = processors - 1, at least 1 */
  RONDO_OPTION_CPU_BIND,    /* flag: bind workers to processors; default on */
  RONDO_OPTION_CPU_SPIN_US, /* number: how long an idle worker stays awake; default 1000 */
  RONDO_OPTION_CPU_VECTORS, /* text: widest vectors of CPU kernels: "plain", "avx2", "avx512"; "" = the processor's */
  RONDO_OPTION_CPU_MEMORY_LIMIT, /* number: bytes of physical memory that a CPU device takes; 0 = what there is */
  RONDO_OPTION_CPU_LACKS,        /* text: "memory_nodes" or "memory_pools", which a CPU device then does not have */
  RONDO_OPTION_CUDA_LIBRARY,     /* text: the CUDA driver's library; "" = libcuda.so.1 */
  RONDO_OPTION_NVRTC_LIBRARY,    /* text: the library that compiles CUDA C; "" = libnvrtc.so.13 or .12 */
  RONDO_OPTION_CUDA_CACHE,       /* text: folder of compiled kernels; "" = the user's cache folder, "none" = no cache */
  RONDO_OPTION_CUDA_CACHE_BYTES, /* number: bytes that it may hold; default 256 MiB */
  RONDO_OPTION_CUBLASLT_LIBRARY, /* text: the library for matrix products on CUDA; "" = libcublasLt.so.13 or .12,
                                    "none" = own kernels */
  RONDO_OPTION_CUBLASLT_LEAST,   /* number: multiplications in a product that it makes, at least; default 2^16 */
  RONDO_OPTION_CUDNN_LIBRARY,    /* text: the library for convolutions on CUDA; "" = libcudnn.so.9, "none" = own
                                    kernels */
  RONDO_OPTION_CUDNN_LEAST,      /* number: multiplications in a convolution that it makes, at least; default 2^20 */
  RONDO_OPTION_CUDA_TILE,        /* number: edge of the tiles of own products on CUDA; default 0: by their shapes */
  RONDO_OPTION_NCCL_LIBRARY,     /* text: the library for collectives on CUDA; "" = libnccl.so.2 */
  RONDO_OPTION_ONEDNN_LIBRARY,   /* text: library with dnnl_sgemm; "" = libdnnl.so.2 or .3, "none" = CBLAS alone */
  RONDO_OPTION_ONEDNN_LEAST,     /* number: multiplications in a convolution that it makes, at least; default 2^16 */
  RONDO_OPTION_CBLAS_LIBRARY,    /* text: library with cblas_sgemm, oneDNN is then left out; "none" = plain C */
  RONDO_OPTION_SYNC,             /* flag: synchronise after every operation, for debugging; default off */
  RONDO_OPTION_CHECK_ORDERS,     /* number: orders that each launch is run in on cpu:check; default 2 */
  RONDO_OPTION_CHECK_SEED,       /* number: what these orders are drawn from; default 1 */
  RONDO_OPTION_COUNT
} rondo_option;

typedef struct rondo_option_row {
  const char *name;                   /* "RONDO_CPU_WORKERS" */
  const char *kind;                   /* "text", "number" (decimal), "flag" (1, on, yes, true; 0, off, no, false) */
  const char *default_value;          /* as text */
  const char *meaning;                /* one line */
  const char *choices;                /* of a text: "error|warning"; NULL when anything goes */
  bool (*is_valid)(const char *text); /* where the choices only say what there may be; NULL: they are all */
  uint64_t maximum;                   /* of a number: the largest that is taken */
} rondo_option_row;

const rondo_option_row *rondo_option_table(size_t *count);

/* Each is for options of its own kind. The text is never NULL, "" when unset, and lives until the next reload. */
const char *rondo_option_text(rondo_option option);
uint64_t rondo_option_number(rondo_option option);
bool rondo_option_flag(rondo_option option);

/* Says, once, through the log what was wrong in the environment, when a sink takes warnings. The log calls it when it
 * gets a sink. */
void rondo_options_report(void);

/* Reads the environment again; for tests, and only while no other thread uses Rondo. */
void rondo_options_reload(void);

#endif

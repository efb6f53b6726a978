/* SPDX-License-Identifier: MIT
 * Patterns: several operators of a program that together compute what one operator computes faster, such as the nine
 * from which exporters build a layer normalization. The compiler finds them in a copy of the program and replaces them
 * (rewritten_program.h). The rows of the table are in tensor/operators/patterns, which includes what is declared here.
 *
 * A pattern is replaced only if nothing else reads the values inside it: no other operator, no gradient, no output.
 * So programs that are differentiated keep what their gradients read.
 *
 * Threads: any; the table is constant.
 */
#ifndef RONDO_TENSOR_COMPILE_REWRITE_OPERATOR_PATTERNS_H
#define RONDO_TENSOR_COMPILE_REWRITE_OPERATOR_PATTERNS_H

#include "tensor/program/program_internal.h"

#define RONDO_PATTERN_MEMBERS 48
#define RONDO_PATTERN_VALUES 8

/* Operators that were found: `members` are replaced, the last of them to run is the root, and the result of the root is
 * what the replacement computes. `find` may list a member more than once. */
typedef struct rondo_pattern_match {
  uint32_t root;
  uint32_t members[RONDO_PATTERN_MEMBERS], member_count;
  bool is_full;                          /* there are more members than fit: no match */
  uint32_t values[RONDO_PATTERN_VALUES]; /* what the replacement reads; RONDO_NO_VALUE: nothing */
  size_t sizes[RONDO_PATTERN_VALUES];    /* numbers of the pattern's own */
  float numbers[3];
  rondo_attributes attributes; /* of an operator that stays */
} rondo_pattern_match;

/* What a program is compiled for: a CUDA device, where some patterns do not pay; with Rondo's own kernels
 * (rondo_compile_options). */
typedef struct rondo_pattern_target {
  bool is_cuda, own_kernels;
} rondo_pattern_target;

/* The program that is searched, and by value how many inputs of operators that run, and outputs, read it. */
typedef struct rondo_pattern_search {
  const rondo_program *program;
  const uint32_t *readers;
  rondo_pattern_target target;
} rondo_pattern_search;

typedef struct rondo_pattern {
  const char *name;

  /* Whether the pattern ends in operation `match->root`. Sets the rest of the match, whose values are RONDO_NO_VALUE on
   * entry. That nothing else reads the members' results is checked afterwards. */
  bool (*find)(const rondo_pattern_search *search, rondo_pattern_match *match);

  /* Adds the replacement. The match has its values in this program. The result has the type and shape of the root's. */
  rondo_status (*replace)(rondo_program *program, const rondo_pattern_match *match, rondo_value *out_value);

  /* Instead of both: rewrites the whole program, after all other patterns. *out_count: operators that changed; with 0,
   * *out is NULL. Otherwise the caller destroys *out. Errors: OUT_OF_MEMORY. */
  rondo_status (*rewrite)(const rondo_program *program, rondo_pattern_target target, uint32_t *out_count,
                          rondo_program **out);
} rondo_pattern;

/* The list of patterns. At each operator, the first one that fits is taken. */
#define RONDO_PATTERNS(ROW) \
  ROW(attention)            \
  ROW(attention_layout)     \
  ROW(layer_norm)           \
  ROW(rms_norm)             \
  ROW(rotary)               \
  ROW(gelu)                 \
  ROW(silu)                 \
  ROW(bias)                 \
  ROW(activation)           \
  ROW(batch_norm)           \
  ROW(attention_mask)       \
  ROW(add_layer_norm)       \
  ROW(quantized)            \
  ROW(blocked_images)

#define RONDO_COUNT_PATTERN(name) RONDO_PATTERN_OF_##name,
enum { RONDO_PATTERNS(RONDO_COUNT_PATTERN) RONDO_PATTERN_COUNT };
#undef RONDO_COUNT_PATTERN

#define RONDO_DECLARE_PATTERN(name) extern const rondo_pattern rondo_pattern_##name;
RONDO_PATTERNS(RONDO_DECLARE_PATTERN)
#undef RONDO_DECLARE_PATTERN

/* A row of the table. */
const rondo_pattern *rondo_pattern_at(size_t index);

/* A set of patterns: bit i is pattern i. */
typedef uint32_t rondo_pattern_set;
#define RONDO_ALL_PATTERNS ((rondo_pattern_set)((UINT32_C(1) << RONDO_PATTERN_COUNT) - 1))

/* Reads names that are separated by commas, or "all"; NULL or "": none. Errors: INVALID_ARGUMENT/UNKNOWN_NAME, which
 * lists the names. */
RONDO_MUST_USE rondo_status rondo_pattern_set_read(const char *names, rondo_pattern_set *out);

/* Finds the pattern that ends in an operation and whose inside nothing else reads. Of the set, the first that fits.
 * RONDO_PATTERN_COUNT: none. claimed: by operation, whether it is in another match. */
size_t rondo_pattern_find(const rondo_pattern_search *search, rondo_pattern_set set, const bool *claimed, uint32_t root,
                          rondo_pattern_match *out);

#endif

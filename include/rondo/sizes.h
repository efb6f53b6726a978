/* SPDX-License-Identifier: MIT
 * Which batch sizes to record. A request of some rows is run by the recording of a size that has room for it, and what
 * is left of the rows is padding: work for nothing. Few sizes waste time, many take memory and take long to record.
 * Given how often requests of how many rows come and what each size costs, the best sizes are found exactly (SE-7).
 *
 * A request costs the least of: the time of the cheapest chosen size with room for it; its time un-recorded, where that
 * is known; and where no chosen size has room, the largest one as often as it takes. Pure functions, no device.
 */
#ifndef RONDO_SIZES_H
#define RONDO_SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rondo/status.h>

RONDO_EXTERN_C_BEGIN

/* A size that could be recorded. */
typedef struct rondo_size_candidate {
  size_t rows;           /* at least 1 */
  double run_us;         /* of its recording, on any rows up to these; above 0 */
  uint64_t bytes;        /* that recording it takes for itself */
  uint64_t shared_bytes; /* that it needs of what all sizes have in common: the chosen ones take the most of these */
  double startup_us;     /* to make it ready */
} rondo_size_candidate;

/* Requests of so many rows. */
typedef struct rondo_size_demand {
  size_t rows;          /* at least 1 */
  uint64_t requests;    /* how many came */
  double unrecorded_us; /* one of them, un-recorded; 0: not known, or not wanted */
} rondo_size_demand;

typedef struct rondo_sizes_problem {
  uint32_t struct_size;                   /* RONDO_SIZES_PROBLEM_INIT sets it; 0 means the library's own */
  uint32_t max_sizes;                     /* how many may be chosen; at least 1 */
  const rondo_size_candidate *candidates; /* in any order, no two of the same rows */
  size_t candidate_count;
  const rondo_size_demand *demands; /* in any order; those of the same rows are added */
  size_t demand_count;
  uint64_t budget_bytes;    /* of the chosen together; 0 = no limit */
  double budget_startup_us; /* likewise */
} rondo_sizes_problem;
#define RONDO_SIZES_PROBLEM_INIT .struct_size = sizeof(rondo_sizes_problem)

typedef struct rondo_sizes_choice {
  uint32_t struct_size;
  uint32_t count;    /* of sizes chosen */
  double mean_us;    /* of a request */
  double bound_us;   /* ... if each had the candidate that is best for it: no choice is better */
  double startup_us; /* of the chosen together, and the next */
  uint64_t bytes;
  uint64_t requests;   /* of the demands, and how many of them */
  uint64_t unrecorded; /* run un-recorded */
  uint64_t split;      /* run by several of the largest size */
  double padding;      /* share of padding in all rows that recordings run */
} rondo_sizes_choice;

/* The sizes for which requests cost least together, as indices of candidates in `chosen`, by ascending rows, which has
 * room for max_sizes of them; of equal costs the fewest sizes. out_choice may be NULL.
 * With no budget it takes time in O(k n² + n d) and memory in O(k n) for n candidates, d demands and k sizes; a budget
 * multiplies both by the number of choices of sizes up to one that none beats in cost, bytes and start-up at once.
 * Thread-safe. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_SIZE (rows of 0), OUT_OF_RANGE (a time that is not
 * finite or not above 0; more than 2^20 candidates or demands), DUPLICATE_NAME (two candidates of the same rows);
 * LIMIT_EXCEEDED (no candidate fits the budgets, and a demand has no time un-recorded; or more than 2^22 choices would
 * have to be kept); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_sizes_choose(const rondo_sizes_problem *problem, size_t *chosen,
                                                         rondo_sizes_choice *out_choice);

RONDO_EXTERN_C_END

#endif

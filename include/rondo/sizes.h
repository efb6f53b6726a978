/* SPDX-License-Identifier: MIT
 * Which batch sizes to record. A request is run by the recording of a size that is large enough; the remaining rows
 * are padding, which wastes work. Few sizes waste time; many take memory and are slow to record. Given how often
 * requests of each number of rows come, and what each size costs, this finds the best sizes exactly (SE-7).
 *
 * A request costs the lowest of: the time of the cheapest chosen size that fits it; its time in an eager run, if
 * that is known; and, if no chosen size fits it, the time of as many launches of the largest size as it needs. Pure
 * functions; no device.
 *
 * Component: rondo-session.
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
  double run_us;         /* of its recording, for any number of rows that fits; above 0 */
  uint64_t bytes;        /* memory of its recording alone */
  uint64_t shared_bytes; /* memory that all sizes share: the chosen sizes need the maximum */
  double startup_us;     /* to record it */
} rondo_size_candidate;

/* Requests with the same number of rows. */
typedef struct rondo_size_demand {
  size_t rows;       /* at least 1 */
  uint64_t requests; /* number of them */
  double eager_us;   /* time of one in an eager run; 0: not known, or not wanted */
} rondo_size_demand;

typedef struct rondo_sizes_problem {
  uint32_t struct_size;                   /* RONDO_SIZES_PROBLEM_INIT sets it; 0 means the library's own */
  uint32_t max_sizes;                     /* maximum number of chosen sizes; at least 1 */
  const rondo_size_candidate *candidates; /* in any order, with distinct rows */
  size_t candidate_count;
  const rondo_size_demand *demands; /* in any order; those with the same rows are added */
  size_t demand_count;
  uint64_t budget_bytes;    /* for the chosen sizes together; 0 = no limit */
  double budget_startup_us; /* likewise */
} rondo_sizes_problem;
#define RONDO_SIZES_PROBLEM_INIT .struct_size = sizeof(rondo_sizes_problem)

typedef struct rondo_sizes_choice {
  uint32_t struct_size;
  uint32_t count;    /* of sizes chosen */
  double mean_us;    /* of one request */
  double bound_us;   /* if each request had its best candidate: a lower bound for every choice */
  double startup_us; /* of the chosen sizes together, as is the next */
  uint64_t bytes;
  uint64_t requests; /* of the demands; the next two: how many of them */
  uint64_t eager;    /* run eagerly */
  uint64_t split;    /* run by several launches of the largest size */
  double padding;    /* as a share of all rows that recordings run */
} rondo_sizes_choice;

/* Finds the sizes with the lowest total cost of all requests; of equal costs, the minimum number of sizes. `chosen`
 * holds max_sizes entries and receives indices of candidates, ascending by rows. out_choice may be NULL. Without a
 * budget it takes O(k n² + n d) time and O(k n) memory for n candidates, d demands and k sizes. A budget multiplies
 * both by the number of choices, up to one size, that no other choice beats in cost, bytes and start-up time at once.
 * Thread-safe. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_SIZE (rows of 0), OUT_OF_RANGE (a time that is not
 * finite or not above 0; more than 2^20 candidates or demands), DUPLICATE_NAME (two candidates with the same rows);
 * LIMIT_EXCEEDED (no candidate fits the budgets, and a demand has no time for eager runs; or more than 2^22 choices to
 * compare); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_sizes_choose(const rondo_sizes_problem *problem, size_t *chosen,
                                                         rondo_sizes_choice *out_choice);

RONDO_EXTERN_C_END

#endif

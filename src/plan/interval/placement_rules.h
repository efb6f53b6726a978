/* SPDX-License-Identifier: MIT
 * Rules: orders of preference in which boxes are placed. bench/bench_plan.c measures which rules suffice for the memory
 * of neural networks; no rule is the best everywhere.
 */
#ifndef RONDO_PLAN_INTERVAL_PLACEMENT_RULES_H
#define RONDO_PLAN_INTERVAL_PLACEMENT_RULES_H

#include "plan/interval/boxes.h"
#include "plan/radix_sort.h"

typedef struct rondo_rule {
  const char *name;
  uint64_t (*key)(const rondo_boxes *boxes, uint32_t box);  /* larger first */
  uint64_t (*then)(const rondo_boxes *boxes, uint32_t box); /* among equals; further ties by the boxes' order */
} rondo_rule;

/* For placement on the lowest skyline, the most successful rule first. */
const rondo_rule *rondo_skyline_rules(size_t *out_count);

/* The first of these rules: the largest areas first. */
const rondo_rule *rondo_area_rule(void);

/* For placing boxes one by one: the largest first. */
const rondo_rule *rondo_first_fit_rule(void);

/* Fills `order`. `entries` holds 2 for each box. */
void rondo_rule_order(const rondo_rule *rule, const rondo_boxes *boxes, rondo_sort_entry *entries, uint32_t *order);

/* The logarithm to base 2 of a number > 0, in units of 1 / 65536, the same on every machine: exact for powers of two,
 * linear in between. */
uint32_t rondo_logarithm(uint64_t value);

#endif

/* SPDX-License-Identifier: MIT
 * Orders of preference: what of a box makes it come early. Which rules, and that they suffice for the memory of neural
 * networks, is measured (bench/bench_plan.c); no rule is best everywhere.
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

/* For lowest-skyline placing, the most successful first. */
const rondo_rule *rondo_skyline_rules(size_t *out_count);

/* The first of these: the largest areas first. */
const rondo_rule *rondo_area_rule(void);

/* For placing boxes one after the other: the largest first. */
const rondo_rule *rondo_first_fit_rule(void);

/* Fills `order`; `entries` has room for 2 a box. */
void rondo_rule_order(const rondo_rule *rule, const rondo_boxes *boxes, rondo_sort_entry *entries, uint32_t *order);

/* The logarithm to base 2 of a number > 0, in units of 1 / 65536, the same on every machine: exact for powers of two,
 * straight in between. */
uint32_t rondo_logarithm(uint64_t value);

#endif

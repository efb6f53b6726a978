/* SPDX-License-Identifier: MIT
 * The table of rules. Keys are integers, or products of two integers that are rounded alike on every machine.
 */
#include "plan/interval/placement_rules.h"

#include <string.h>

/* If crowding is 1 % larger, a life counts as 160 times as long. */
#define CROWDING_POWER UINT64_C(512)

/* Maps positive numbers to integers in the same order. */
static uint64_t ordered(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static uint64_t bytes(const rondo_boxes *boxes, uint32_t box) { return boxes->boxes[box].bytes; }

static uint64_t duration(const rondo_boxes *boxes, uint32_t box) { return boxes->steps[box]; }

static uint64_t sections(const rondo_boxes *boxes, uint32_t box) {
  return boxes->boxes[box].upper - boxes->boxes[box].lower;
}

static uint64_t area(const rondo_boxes *boxes, uint32_t box) {
  return ordered((double)boxes->boxes[box].bytes * (double)boxes->steps[box]);
}

static uint64_t crowding(const rondo_boxes *boxes, uint32_t box) { return boxes->crowding[box]; }

/* The longest lives first, unless crowding differs by more than a little: a product of powers, as a sum of logarithms.
 * */
static uint64_t crowded_duration(const rondo_boxes *boxes, uint32_t box) {
  return rondo_logarithm(boxes->steps[box]) + CROWDING_POWER * rondo_logarithm(boxes->crowding[box]);
}

static const rondo_rule rules[] = {
    {"area", area, duration},     {"crowded duration", crowded_duration, bytes},
    {"crowding", crowding, area}, {"duration", duration, bytes},
    {"bytes", bytes, duration},   {"sections", sections, area},
};

const rondo_rule *rondo_skyline_rules(size_t *out_count) {
  *out_count = sizeof rules / sizeof rules[0];
  return rules;
}

const rondo_rule *rondo_area_rule(void) { return &rules[0]; }

const rondo_rule *rondo_first_fit_rule(void) {
  static const rondo_rule rule = {"first fit", bytes, duration};
  return &rule;
}

static void sort_by(uint64_t (*key)(const rondo_boxes *boxes, uint32_t box), const rondo_boxes *boxes,
                    rondo_sort_entry *entries) {
  for (uint32_t i = 0; i < boxes->count; i++) entries[i].key = UINT64_MAX - key(boxes, entries[i].value);
  rondo_sort_entries(entries, entries + boxes->count, boxes->count);
}

void rondo_rule_order(const rondo_rule *rule, const rondo_boxes *boxes, rondo_sort_entry *entries, uint32_t *order) {
  for (uint32_t i = 0; i < boxes->count; i++) entries[i].value = i;
  sort_by(rule->then, boxes, entries);
  sort_by(rule->key, boxes, entries);
  for (uint32_t i = 0; i < boxes->count; i++) order[i] = entries[i].value;
}

uint32_t rondo_logarithm(uint64_t value) {
  const uint32_t whole = 63 - (uint32_t)__builtin_clzll(value);
  const uint64_t fraction = (value << (63 - whole) << 1) >> 48;
  return whole << 16 | (uint32_t)fraction;
}

/* SPDX-License-Identifier: MIT
 * GX-7: the memory map of a plan as SVG: well-formed, self-contained, each item there with its name, bounded in bytes.
 */
#include <rondo/plan.h>
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_markup.h"

enum { MANY = 50000 };

static const rondo_plan_item few[] = {
    {.bytes = 4096, .lower = 0, .upper = 3}, {.bytes = 1024, .lower = 1, .upper = 2},
    {.bytes = 0, .lower = 1, .upper = 2}, /* takes no place and is not drawn */
    {.bytes = 8192, .lower = 3, .upper = 5}, {.bytes = 100, .lower = 2, .upper = RONDO_PLAN_FOREVER},
};
static const size_t few_offsets[] = {0, 4096, 0, 0, 8192};
#define FEW (sizeof few / sizeof few[0])

static rondo_plan_problem problem_of(const rondo_plan_item *items, size_t count) {
  return (rondo_plan_problem){RONDO_PLAN_PROBLEM_INIT, .items = items, .count = count};
}

static char *draw(const rondo_plan_problem *problem, const size_t *offsets, const rondo_plan_picture_options *options) {
  char *text = NULL, *again = NULL;
  assert_ok(rondo_plan_to_svg(problem, offsets, options, &text));
  assert_well_formed(text);
  assert_self_contained(text);
  assert_ok(rondo_plan_to_svg(problem, offsets, options, &again));
  assert_string_equal(text, again);
  rondo_text_free(again);
  return text;
}

DEVICE_TEST(test_gx7_each_item_is_drawn) {
  const rondo_plan_problem problem = problem_of(few, FEW);
  char *text = draw(&problem, few_offsets, NULL);
  static const char *const said[] = {"Memory map",
                                     "0: 4,096 bytes at 0, from 0 to 3",
                                     "1: 1,024 bytes at 4,096, from 1 to 2",
                                     "3: 8,192 bytes at 0, from 3 to 5",
                                     "4: 100 bytes at 8,192, from 2 on",
                                     "ratio 1.0000",
                                     "8,292 bytes",
                                     "prefers-color-scheme:dark"};
  for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
    if (strstr(text, said[i]) == NULL) fail_msg("'%s' is not in the picture", said[i]);
  assert_null(strstr(text, "2: 0 bytes"));
  rondo_text_free(text);
}

DEVICE_TEST(test_gx7_names_and_times_are_shown) {
  static const char *const names[FEW] = {"<a & \"b\">", "not \xFF UTF-8", NULL, "", "x"};
  static const uint64_t times[] = {0, 10, 20, 30, UINT64_MAX - 1, UINT64_MAX};
  const rondo_plan_problem problem = problem_of(few, FEW);
  const rondo_plan_picture_options options = {RONDO_PLAN_PICTURE_OPTIONS_INIT,
                                              .width = 400,
                                              .height = 320,
                                              .title = "A \"title\" </svg>",
                                              .names = names,
                                              .times = times,
                                              .capacity = 9000};
  char *text = draw(&problem, few_offsets, &options);
  assert_non_null(strstr(text, "A &quot;title&quot; &lt;/svg&gt;"));
  assert_non_null(strstr(text, "&lt;a &amp; &quot;b&quot;&gt;: 4,096 bytes"));
  assert_non_null(strstr(text, "not \xEF\xBF\xBD UTF-8: 1,024 bytes at 4,096, from 10 to 20"));
  assert_non_null(strstr(text, "from 30 to 18446744073709551615"));
  assert_non_null(strstr(text, "9,000 bytes"));
  rondo_text_free(text);
}

DEVICE_TEST(test_gx7_obstacles_and_orders_are_drawn) {
  static const uint32_t starts[] = {0, 1, 2, 3, 3}, successors[] = {1, 2, 3};
  static const rondo_plan_order order = {.node_count = 4, .successor_start = starts, .successors = successors};
  static const rondo_plan_item items[] = {{.bytes = 64, .lower = 0, .upper = 2}, {.bytes = 64, .lower = 2, .upper = 3}};
  static const rondo_plan_obstacle obstacle = {.offset = 32, .bytes = 16, .lower = 0, .upper = RONDO_PLAN_FOREVER};
  rondo_plan_problem problem = problem_of(items, 2);
  problem.order = &order;
  problem.obstacles = &obstacle;
  problem.obstacle_count = 1;
  const size_t offsets[] = {64, 64};
  char *text = draw(&problem, offsets, NULL);
  assert_non_null(strstr(text, "held by others: 16 bytes at 32"));
  assert_non_null(strstr(text, ">node<"));
  rondo_text_free(text);
}

DEVICE_TEST(test_gx7_an_empty_plan_is_drawn) {
  const rondo_plan_problem problem = problem_of(NULL, 0);
  char *text = draw(&problem, NULL, NULL);
  rondo_text_free(text);
}

/* Addresses and times at the ends of their ranges. */
DEVICE_TEST(test_gx7_extremes_are_drawn) {
  static const rondo_plan_item items[] = {
      {.bytes = SIZE_MAX / 2, .lower = 0, .upper = UINT32_MAX - 1},
      {.bytes = 1, .lower = UINT32_MAX - 2, .upper = RONDO_PLAN_FOREVER},
  };
  static const size_t offsets[] = {SIZE_MAX - 5, SIZE_MAX};
  const rondo_plan_problem problem = problem_of(items, 2);
  char *text = draw(&problem, offsets, NULL);
  rondo_text_free(text);
}

DEVICE_TEST(test_gx7_large_pictures_are_bounded) {
  rondo_plan_item *items = calloc(MANY, sizeof *items);
  size_t *offsets = calloc(MANY, sizeof *offsets);
  assert_true(items != NULL && offsets != NULL);
  uint64_t random = 1;
  for (size_t i = 0; i < MANY; i++) {
    const uint32_t lower = test_random_below(&random, 100000);
    items[i] = (rondo_plan_item){.bytes = 1 + test_random_below(&random, 1 << 20),
                                 .lower = lower,
                                 .upper = lower + 1 + test_random_below(&random, 500)};
    offsets[i] = test_random_below(&random, 1 << 26);
  }
  const rondo_plan_problem problem = problem_of(items, MANY);
  char *text = draw(&problem, offsets, NULL);
  assert_true(test_count(text, "<title>") >= MANY);
  assert_true(strlen(text) < (size_t)MANY * 150 + 100000);
  rondo_text_free(text);
  free(offsets);
  free(items);
}

DEVICE_TEST(test_gx7_bad_pictures_are_refused) {
  const rondo_plan_problem problem = problem_of(few, FEW);
  const rondo_plan_item backwards = {.bytes = 1, .lower = 2, .upper = 2};
  const rondo_plan_problem wrong = problem_of(&backwards, 1);
  rondo_plan_picture_options options = {RONDO_PLAN_PICTURE_OPTIONS_INIT, .width = 100};
  char *text = NULL;
  assert_invalid(rondo_plan_to_svg(NULL, few_offsets, NULL, &text), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_plan_to_svg(&problem, NULL, NULL, &text), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_plan_to_svg(&problem, few_offsets, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_plan_to_svg(&problem, few_offsets, &options, &text), RONDO_REASON_BAD_OPTIONS);
  options = (rondo_plan_picture_options){RONDO_PLAN_PICTURE_OPTIONS_INIT, .height = 20001};
  assert_invalid(rondo_plan_to_svg(&problem, few_offsets, &options, &text), RONDO_REASON_BAD_OPTIONS);
  assert_fails(rondo_plan_to_svg(&wrong, few_offsets, NULL, &text), RONDO_INVALID_ARGUMENT);
  assert_null(text);
}

DEVICE_TEST(test_gx7_pictures_survive_a_lack_of_memory) {
  const rondo_plan_problem problem = problem_of(few, FEW);
  test_allocator allocator;
  for (size_t at = 1;; at++) {
    test_allocator_init(&allocator);
    allocator.fail_at = at;
    const rondo_plan_picture_options options = {RONDO_PLAN_PICTURE_OPTIONS_INIT, .allocator = &allocator.table};
    char *text = NULL;
    const rondo_status status = rondo_plan_to_svg(&problem, few_offsets, &options, &text);
    const bool reached = allocator.calls >= at;
    if (reached) {
      assert_int_equal(status, RONDO_OUT_OF_MEMORY);
      assert_null(text);
    } else {
      assert_ok(status);
    }
    rondo_text_free(text);
    assert_true(test_allocator_is_clean(&allocator));
    if (!reached) break;
  }
}

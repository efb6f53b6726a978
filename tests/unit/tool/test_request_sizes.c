/* SPDX-License-Identifier: MIT
 * Random sizes of requests: within their limits, in bounded time, of the requested distribution, the same for the same
 * seed. Files of sizes are tested with the tool (tests/cli/test_serve.sh).
 */
#define _POSIX_C_SOURCE 200809L
#include "serve/request_sizes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/tool.h"
#include "support/rondo_test.h"

/* Nothing here fails or reads a file. */
int tool_fail(const char *format, ...) {
  fail_msg("%s", format);
  return TOOL_FAILURE;
}
int tool_fail_memory(const char *format, ...) {
  fail_msg("%s", format);
  return TOOL_FAILURE;
}
int file_read(const char *path, file_bytes *out) {
  (void)out;
  return tool_fail("%s", path);
}
void file_release(file_bytes *file) { (void)file; }
const char *file_display_name(const char *path) { return path; }

enum { COUNT = 4000 };

static int compare(const void *a, const void *b) {
  const size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

/* Draws within ten seconds, finds the sizes inside, and sorts them. */
static traffic draw(size_t least, size_t most, double median, double spread, uint64_t seed) {
  traffic t;
  alarm(10);
  assert_int_equal(traffic_draw(COUNT, least, most, median, spread, seed, &t), TOOL_OK);
  alarm(0);
  assert_int_equal(t.count, COUNT);
  qsort(t.rows, t.count, sizeof *t.rows, compare);
  assert_true(t.rows[0] >= least && t.rows[COUNT - 1] <= most);
  return t;
}

UNIT_TEST(test_narrow_limits_take_no_time) {
  static const struct {
    size_t least, most;
    double median;
  } cases[] = {{1000000, 1000000, 1e6}, {1, 1, 1}, {999999, 1000000, 1e6}, {1, 2, 2}, {499990, 500010, 5e5}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    traffic t = draw(cases[i].least, cases[i].most, cases[i].median, 4, 1);
    const size_t width = cases[i].most - cases[i].least;
    if (width > 0) assert_true(t.rows[0] < t.rows[COUNT - 1]);
    if (width == 20) { /* all are about as likely as each other */
      assert_true(t.rows[COUNT / 4] >= 499993 && t.rows[COUNT / 4] <= 499997);
      assert_true(t.rows[COUNT / 2] >= 499998 && t.rows[COUNT / 2] <= 500002);
    }
    traffic_destroy(&t);
  }
}

UNIT_TEST(test_usual_limits_give_the_distribution) {
  traffic t = draw(1, 1000000, 350, 0.5, 1);
  assert_true(t.rows[COUNT / 2] > 335 && t.rows[COUNT / 2] < 365);
  assert_true(t.rows[COUNT * 84 / 100] > 540 && t.rows[COUNT * 84 / 100] < 615); /* exp(0.5) times the median */
  traffic again = draw(1, 1000000, 350, 0.5, 1), other = draw(1, 1000000, 350, 0.5, 2);
  assert_memory_equal(t.rows, again.rows, COUNT * sizeof *t.rows);
  assert_true(memcmp(t.rows, other.rows, COUNT * sizeof *t.rows) != 0);
  traffic_destroy(&t);
  traffic_destroy(&again);
  traffic_destroy(&other);
  t = draw(100, 1200, 350, 0, 1);
  assert_true(t.rows[0] == 350 && t.rows[COUNT - 1] == 350);
  traffic_destroy(&t);
}

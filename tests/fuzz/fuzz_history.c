/* SPDX-License-Identifier: MIT
 * The reader of histories for `rondo session plan` and `rondo serve`: any bytes either fail with a message that names
 * the file, and the line if there is one, or give the number of requests that the lines state. A written history reads
 * back as the same requests.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/tool_messages.h"
#include "serve/request_sizes.h"

/* Many requests in few bytes: this limits the counts in lines. */
enum { MOST_REQUESTS = 1 << 20 };

static bool asks_for_too_much(const uint8_t *data, size_t size) {
  unsigned long long sum = 0, number = 0;
  for (size_t i = 0; i < size; i++) {
    const bool is_digit = data[i] >= '0' && data[i] <= '9';
    number = is_digit && number < MOST_REQUESTS ? 10 * number + data[i] - '0' : number;
    if (is_digit && i + 1 < size) continue;
    sum += number;
    number = 0;
  }
  return sum > MOST_REQUESTS;
}

static void require_same(const traffic *a, const traffic *b) {
  REQUIRE(a->count == b->count);
  REQUIRE(memcmp(a->rows, b->rows, a->count * sizeof *a->rows) == 0);
}

/* One line for each run of equal sizes. */
static void require_round_trip(const traffic *t) {
  char *text = NULL;
  size_t bytes = 0;
  traffic again;
  FILE *stream = open_memstream(&text, &bytes);
  REQUIRE(stream != NULL);
  for (size_t i = 0, next; i < t->count; i = next) {
    for (next = i + 1; next < t->count && t->rows[next] == t->rows[i];) next++;
    fprintf(stream, "%zu,%zu\n", t->rows[i], next - i);
  }
  REQUIRE(fclose(stream) == 0);
  REQUIRE(traffic_parse("in", text, bytes, &again) == TOOL_OK);
  require_same(t, &again);
  traffic_destroy(&again);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  traffic t;
  char *text = malloc(size + 1);
  REQUIRE(text != NULL);
  memcpy(text, data, size);
  text[size] = '\0';
  tool_message[0] = '\0';
  if (asks_for_too_much(data, size)) {
    free(text);
    return 0;
  }
  const int result = traffic_parse("in", text, size, &t);
  REQUIRE((result == TOOL_OK) == (tool_message[0] == '\0'));
  if (result == TOOL_OK) {
    REQUIRE(t.count > 0);
    for (size_t i = 0; i < t.count; i++) REQUIRE(t.rows[i] >= 1 && t.rows[i] <= TRAFFIC_MAX_ROWS);
    require_round_trip(&t);
  } else {
    REQUIRE(strncmp(tool_message, "in, line ", 9) == 0 || strncmp(tool_message, "in: ", 4) == 0);
    REQUIRE(t.rows == NULL && t.count == 0);
  }
  traffic_destroy(&t);
  free(text);
  return 0;
}

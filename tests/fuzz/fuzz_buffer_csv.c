/* SPDX-License-Identifier: MIT
 * The CSV reader of `rondo plan`: any bytes either fail with a message that names the file, and the line if there is
 * one, or give buffers that can be planned. A written file reads back as the same buffers, and offsets are accepted
 * exactly when no two buffers overlap.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer_csv.h"
#include "common/tool.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/tool_messages.h"

enum { MOST_PLANNED = 200 };

static int parse(const void *bytes, size_t count, buffer_list *out) {
  file_bytes file = {.bytes = malloc(count + 1), .count = count};
  REQUIRE(file.bytes != NULL);
  memcpy(file.bytes, bytes, count);
  file.bytes[count] = '\0';
  tool_message[0] = '\0';
  const int result = buffer_list_parse("in.csv", file, out);
  REQUIRE((result == TOOL_OK) == (tool_message[0] == '\0'));
  return result;
}

static void require_refusal(const buffer_list *list) {
  REQUIRE(strncmp(tool_message, "in.csv, line ", 13) == 0 ||
          strncmp(tool_message, "in.csv: the file is empty", 25) == 0);
  REQUIRE(list->count == 0 && list->items == NULL && list->ids == NULL && list->file.bytes == NULL);
}

static void require_buffers(const buffer_list *list) {
  for (size_t i = 1; i < list->time_count; i++) REQUIRE(list->times[i - 1] < list->times[i]);
  for (size_t i = 0; i < list->count; i++) {
    REQUIRE(list->ids[i][0] != '\0' && list->lines[i] > (i == 0 ? 1 : list->lines[i - 1]));
    REQUIRE(list->items[i].lower < list->items[i].upper && list->items[i].upper < list->time_count);
    REQUIRE(list->offsets[i] + list->items[i].bytes >= list->offsets[i]);
  }
}

static bool overlap(const buffer_list *list, size_t a, size_t b) {
  const rondo_plan_item *x = &list->items[a], *y = &list->items[b];
  return x->bytes > 0 && y->bytes > 0 && x->lower < y->upper && y->lower < x->upper &&
         list->offsets[a] < list->offsets[b] + y->bytes && list->offsets[b] < list->offsets[a] + x->bytes;
}

/* The offsets in the file, or zeros. */
static void require_check(const buffer_list *list) {
  bool any = false;
  for (size_t a = 0; a < list->count; a++)
    for (size_t b = 0; b < a; b++) any = any || overlap(list, a, b);
  tool_message[0] = '\0';
  REQUIRE((buffer_list_check_offsets("in.csv", list) == TOOL_OK) != any);
  REQUIRE(!any || strncmp(tool_message, "in.csv, line ", 13) == 0);
}

static void require_same(const buffer_list *a, const buffer_list *b, const size_t *offsets) {
  REQUIRE(b->has_offsets && a->count == b->count && a->time_count == b->time_count);
  for (size_t i = 0; i < a->count; i++) {
    REQUIRE(strcmp(a->ids[i], b->ids[i]) == 0 && b->offsets[i] == offsets[i]);
    REQUIRE(a->items[i].bytes == b->items[i].bytes);
    REQUIRE(a->items[i].lower == b->items[i].lower && a->items[i].upper == b->items[i].upper);
  }
  for (size_t i = 0; i < a->time_count; i++) REQUIRE(a->times[i] == b->times[i]);
}

static void require_round_trip(const buffer_list *list, const size_t *offsets) {
  char *text = NULL;
  size_t bytes = 0;
  buffer_list again;
  FILE *stream = open_memstream(&text, &bytes);
  REQUIRE(stream != NULL);
  buffer_list_print(stream, list, offsets);
  REQUIRE(fclose(stream) == 0);
  REQUIRE(parse(text, bytes, &again) == TOOL_OK);
  require_same(list, &again, offsets);
  REQUIRE(buffer_list_check_offsets("in.csv", &again) == TOOL_OK);
  buffer_list_release(&again);
  free(text);
}

static void require_plan(const buffer_list *list) {
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = list->items, .count = list->count};
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .fast_only = true};
  rondo_plan *plan;
  REQUIRE(rondo_plan_make(&problem, &options, &plan) == RONDO_OK);
  require_round_trip(list, rondo_plan_offsets(plan));
  rondo_plan_destroy(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  buffer_list list;
  if (parse(data, size, &list) != TOOL_OK) {
    require_refusal(&list);
    return 0;
  }
  require_buffers(&list);
  if (list.count <= MOST_PLANNED) {
    require_check(&list);
    require_plan(&list);
  }
  buffer_list_release(&list);
  return 0;
}

/* SPDX-License-Identifier: MIT
 * Reads and writes files of buffers. The file is split in place: a NUL replaces the character after each field, and ids
 * point into the file. Every message names the file and the line.
 */
#include "common/buffer_csv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fingerprint.h"
#include "common/text_stream.h"
#include "common/tool.h"

enum { ID, LOWER, UPPER, SIZE, OFFSET, COLUMNS };
enum { MOST_FIELDS = 16, SHOWN_BYTES = 40 };

static const char *const column_names[COLUMNS] = {"id", "lower", "upper", "size", "offset"};

typedef struct csv_reader {
  const char *name; /* of the file, for messages */
  char *at;         /* the unread rest of the file, which ends in NUL */
  char *end;
  uint32_t line;
  char *fields[MOST_FIELDS]; /* of the current line */
  size_t field_count;
  size_t columns[COLUMNS]; /* index of the field with each column; MOST_FIELDS: missing */
  size_t header_count;
} csv_reader;

/* Lines and fields ------------------------------------------------------------------------------------------------- */

static int fail_unquoted(const csv_reader *r, const char *field) {
  return tool_fail("%s, line %" PRIu32 ": the quoted field that begins with \"%.*s is not closed, or has text after it",
                   r->name, r->line, SHOWN_BYTES, field);
}

/* Reads a quoted field from the character after the opening quote and unescapes it in place. Moves *at to the comma or
 * the end of the line. */
static int take_quoted(const csv_reader *r, char **at, char **out) {
  char *from = *at, *to = *at;
  *out = to;
  for (;; from++) {
    if (*from == '\0') return fail_unquoted(r, *out);
    if (*from == '"' && from[1] != '"') break;
    if (*from == '"') from++;
    *to++ = *from;
  }
  from++;
  while (*from == ' ' || *from == '\t') from++;
  if (*from != ',' && *from != '\0') return fail_unquoted(r, *out);
  *at = from;
  *to = '\0';
  return TOOL_OK;
}

static char *take_plain(char **at) {
  char *begin = *at, *end = begin;
  while (*end != ',' && *end != '\0') end++;
  *at = end;
  while (end > begin && (end[-1] == ' ' || end[-1] == '\t')) end--;
  if (end != *at) *end = '\0';
  return begin;
}

/* Splits a NUL-terminated line into fields in place. */
static int cut(csv_reader *r, char *at) {
  r->field_count = 0;
  for (;;) {
    while (*at == ' ' || *at == '\t') at++;
    if (r->field_count == MOST_FIELDS)
      return tool_fail("%s, line %" PRIu32 ": more than %d fields: remove some", r->name, r->line, MOST_FIELDS);
    char **field = &r->fields[r->field_count++];
    if (*at == '"') {
      at++;
      if (take_quoted(r, &at, field) != TOOL_OK) return TOOL_FAILURE;
    } else {
      *field = take_plain(&at);
    }
    if (*at == '\0') return TOOL_OK;
    *at++ = '\0';
  }
}

/* Reads the next line that is not empty and splits it. Sets *out_more to false at the end of the file. */
static int next_line(csv_reader *r, bool *out_more) {
  *out_more = false;
  while (r->at < r->end) {
    char *begin = r->at, *end = memchr(begin, '\n', (size_t)(r->end - begin));
    if (end == NULL) end = r->end;
    r->at = end == r->end ? end : end + 1;
    r->line++;
    if (memchr(begin, '\0', (size_t)(end - begin)) != NULL)
      return tool_fail("%s, line %" PRIu32 ": a NUL byte: this is not a text file", r->name, r->line);
    if (end > begin && end[-1] == '\r') end--;
    *end = '\0';
    if (begin[strspn(begin, " \t")] == '\0') continue;
    *out_more = true;
    return cut(r, begin);
  }
  return TOOL_OK;
}

/* Header line ----------------------------------------------------------------------------------------------------- */

static int take_column(csv_reader *r, size_t field) {
  const char *name = r->fields[field];
  for (size_t c = 0; c < COLUMNS; c++) {
    if (strcmp(name, column_names[c]) != 0) continue;
    if (r->columns[c] != MOST_FIELDS)
      return tool_fail("%s, line %" PRIu32 ": the column '%s' occurs twice", r->name, r->line, name);
    r->columns[c] = field;
    return TOOL_OK;
  }
  return tool_fail("%s, line %" PRIu32
                   ": unknown column '%.*s'; the first line must name id,lower,upper,size and, optionally, offset",
                   r->name, r->line, SHOWN_BYTES, name);
}

static int read_header(csv_reader *r) {
  bool more = false;
  for (size_t c = 0; c < COLUMNS; c++) r->columns[c] = MOST_FIELDS;
  if (r->end - r->at >= 3 && memcmp(r->at, "\xEF\xBB\xBF", 3) == 0) r->at += 3;
  if (next_line(r, &more) != TOOL_OK) return TOOL_FAILURE;
  if (!more) return tool_fail("%s: the file is empty; its first line must be id,lower,upper,size", r->name);
  for (size_t i = 0; i < r->field_count; i++) {
    if (take_column(r, i) != TOOL_OK) return TOOL_FAILURE;
  }
  for (size_t c = 0; c < OFFSET; c++) {
    if (r->columns[c] == MOST_FIELDS)
      return tool_fail("%s, line %" PRIu32 ": there is no column '%s'", r->name, r->line, column_names[c]);
  }
  r->header_count = r->field_count;
  return TOOL_OK;
}

/* Buffers ---------------------------------------------------------------------------------------------------------- */

static int read_number(const csv_reader *r, size_t column, uint64_t *out) {
  const char *text = r->fields[r->columns[column]];
  char *end = NULL;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0) {
    *out = value;
    return TOOL_OK;
  }
  return tool_fail("%s, line %" PRIu32 ": %s is '%.*s', not a whole number from 0 to %" PRIu64, r->name, r->line,
                   column_names[column], SHOWN_BYTES, text, UINT64_MAX);
}

typedef struct raw_buffer {
  const char *id;
  uint64_t lower, upper, size, offset;
} raw_buffer;

static int read_buffer(const csv_reader *r, raw_buffer *out) {
  if (r->field_count != r->header_count)
    return tool_fail("%s, line %" PRIu32 ": %zu field%s, where the first line names %zu", r->name, r->line,
                     r->field_count, r->field_count == 1 ? "" : "s", r->header_count);
  out->id = r->fields[r->columns[ID]];
  out->offset = 0;
  if (out->id[0] == '\0') return tool_fail("%s, line %" PRIu32 ": the id is empty", r->name, r->line);
  if (read_number(r, LOWER, &out->lower) != TOOL_OK || read_number(r, UPPER, &out->upper) != TOOL_OK ||
      read_number(r, SIZE, &out->size) != TOOL_OK) {
    return TOOL_FAILURE;
  }
  if (r->columns[OFFSET] != MOST_FIELDS && read_number(r, OFFSET, &out->offset) != TOOL_OK) return TOOL_FAILURE;
  if (out->lower < out->upper) return TOOL_OK;
  return tool_fail("%s, line %" PRIu32 ": lower is %" PRIu64 " and upper %" PRIu64 ": upper must be larger than lower",
                   r->name, r->line, out->lower, out->upper);
}

static int fail_memory(const csv_reader *r) { return tool_fail_memory("%s", r->name); }

/* Allocates space for one buffer for each line left. `times` holds two times for each buffer, until rank_times replaces
 * them. */
static int allocate(const csv_reader *r, buffer_list *out) {
  size_t lines = 1;
  for (const char *at = r->at; at < r->end; at++) lines += *at == '\n';
  if (lines > UINT32_MAX / 4)
    return tool_fail("%s: %zu lines, and the maximum is %u: split the file", r->name, lines, UINT32_MAX / 4);
  out->ids = calloc(lines, sizeof *out->ids);
  out->lines = calloc(lines, sizeof *out->lines);
  out->items = calloc(lines, sizeof *out->items);
  out->times = calloc(2 * lines, sizeof *out->times);
  out->offsets = calloc(lines, sizeof *out->offsets);
  return out->ids && out->lines && out->items && out->times && out->offsets ? TOOL_OK : fail_memory(r);
}

static int read_buffers(csv_reader *r, buffer_list *out) {
  uint64_t sum = 0;
  bool more = false;
  out->has_offsets = r->columns[OFFSET] != MOST_FIELDS;
  while (next_line(r, &more) == TOOL_OK) {
    raw_buffer raw = {0};
    if (!more) return TOOL_OK;
    if (read_buffer(r, &raw) != TOOL_OK) return TOOL_FAILURE;
    if (__builtin_add_overflow(sum, raw.size, &sum) || sum > SIZE_MAX || raw.offset > SIZE_MAX - raw.size)
      return tool_fail("%s, line %" PRIu32
                       ": the sizes so far, or size and offset, add up to more than fits in %zu bits",
                       r->name, r->line, 8 * sizeof(size_t));
    const size_t i = out->count++;
    out->ids[i] = raw.id;
    out->lines[i] = r->line;
    out->items[i].bytes = (size_t)raw.size;
    out->offsets[i] = (size_t)raw.offset;
    out->times[2 * i] = raw.lower;
    out->times[2 * i + 1] = raw.upper;
  }
  return TOOL_FAILURE;
}

/* Duplicates ------------------------------------------------------------------------------------------------------- */

static uint64_t hash_text(const char *text) {
  const uint64_t hash = fingerprint_add(FINGERPRINT_START, text, strlen(text));
  return hash ^ hash >> 32;
}

/* A hash table with twice as many slots as buffers. A slot holds 1 + the index of a buffer; 0 is empty. */
static int find_duplicate(const csv_reader *r, const buffer_list *list, uint32_t *slots, size_t mask) {
  for (size_t i = 0; i < list->count; i++) {
    size_t slot = (size_t)hash_text(list->ids[i]) & mask;
    for (; slots[slot] != 0; slot = (slot + 1) & mask) {
      const size_t other = slots[slot] - 1;
      if (strcmp(list->ids[i], list->ids[other]) != 0) continue;
      return tool_fail("%s, line %" PRIu32 ": the id '%.*s' is already used in line %" PRIu32, r->name, list->lines[i],
                       SHOWN_BYTES, list->ids[i], list->lines[other]);
    }
    slots[slot] = (uint32_t)i + 1;
  }
  return TOOL_OK;
}

static int check_ids(const csv_reader *r, const buffer_list *list) {
  size_t slot_count = 2;
  while (slot_count < 2 * list->count) slot_count *= 2;
  uint32_t *slots = calloc(slot_count, sizeof *slots);
  const int result = slots ? find_duplicate(r, list, slots, slot_count - 1) : fail_memory(r);
  free(slots);
  return result;
}

/* Times ------------------------------------------------------------------------------------------------------------ */

static int compare_times(const void *left, const void *right) {
  const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return (a > b) - (a < b);
}

static uint32_t place_of(const buffer_list *list, uint64_t time) {
  size_t low = 0, high = list->time_count;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (list->times[middle] <= time) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return (uint32_t)low;
}

/* Replaces times by their rank among all times. */
static int rank_times(const csv_reader *r, buffer_list *list) {
  const size_t count = 2 * list->count;
  uint64_t *given = malloc((count + 1) * sizeof *given);
  if (!given) return fail_memory(r);
  memcpy(given, list->times, count * sizeof *given);
  if (count > 1) qsort(list->times, count, sizeof *list->times, compare_times);
  for (size_t i = 0; i < count; i++) {
    if (i == 0 || list->times[i] != list->times[list->time_count - 1]) list->times[list->time_count++] = list->times[i];
  }
  for (size_t i = 0; i < list->count; i++) {
    list->items[i].lower = place_of(list, given[2 * i]);
    list->items[i].upper = place_of(list, given[2 * i + 1]);
  }
  free(given);
  return TOOL_OK;
}

/* Read and write -------------------------------------------------------------------------------------------------- */

int buffer_list_parse(const char *name, file_bytes file, buffer_list *out) {
  char *bytes = (char *)file.bytes;
  *out = (buffer_list){.file = file};
  csv_reader r = {.name = name, .at = bytes, .end = bytes + file.count};
  int result = read_header(&r);
  if (result == TOOL_OK) result = allocate(&r, out);
  if (result == TOOL_OK) result = read_buffers(&r, out);
  if (result == TOOL_OK) result = check_ids(&r, out);
  if (result == TOOL_OK) result = rank_times(&r, out);
  if (result != TOOL_OK) buffer_list_release(out);
  return result;
}

int buffer_list_read(const char *path, buffer_list *out) {
  file_bytes file;
  *out = (buffer_list){0};
  const int result = file_read(path, &file);
  return result == TOOL_OK ? buffer_list_parse(file_display_name(path), file, out) : result;
}

void buffer_list_release(buffer_list *list) {
  free(list->ids);
  free(list->lines);
  free(list->items);
  free(list->times);
  free(list->offsets);
  file_release(&list->file);
  *list = (buffer_list){0};
}

static bool first_are_a_plan(const buffer_list *list, size_t count) {
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = list->items, .count = count};
  return rondo_plan_check(NULL, &problem, list->offsets) == RONDO_OK;
}

static bool overlap(const buffer_list *list, size_t a, size_t b) {
  const rondo_plan_item *x = &list->items[a], *y = &list->items[b];
  return x->bytes > 0 && y->bytes > 0 && x->lower < y->upper && y->lower < x->upper &&
         list->offsets[a] < list->offsets[b] + y->bytes && list->offsets[b] < list->offsets[a] + x->bytes;
}

int buffer_list_check_offsets(const char *path, const buffer_list *list) {
  if (first_are_a_plan(list, list->count)) return TOOL_OK;
  if (rondo_last_error()->status != RONDO_INVALID_DATA) return tool_fail_status("%s", file_display_name(path));
  /* Binary search: the first `fine` buffers form a valid plan, the first `wrong` do not. */
  size_t fine = 0, wrong = list->count;
  while (wrong - fine > 1) {
    const size_t middle = fine + (wrong - fine) / 2;
    if (first_are_a_plan(list, middle)) {
      fine = middle;
    } else {
      wrong = middle;
    }
  }
  for (size_t i = 0; i < fine; i++) {
    if (!overlap(list, i, fine)) continue;
    return tool_fail("%s, line %" PRIu32 ": buffer '%.*s' overlaps '%.*s' of line %" PRIu32
                     ", which lives at the same time",
                     file_display_name(path), list->lines[fine], SHOWN_BYTES, list->ids[fine], SHOWN_BYTES,
                     list->ids[i], list->lines[i]);
  }
  return tool_fail_status("%s", file_display_name(path));
}

static void write_id(FILE *stream, const char *id) {
  const bool plain = id[strcspn(id, ",\"")] == '\0' && id[0] != ' ' && id[0] != '\t' && id[strlen(id) - 1] != ' ' &&
                     id[strlen(id) - 1] != '\t';
  if (plain) {
    fputs(id, stream);
    return;
  }
  putc('"', stream);
  for (; *id; id++) {
    if (*id == '"') putc('"', stream);
    putc(*id, stream);
  }
  putc('"', stream);
}

void buffer_list_print(FILE *stream, const buffer_list *list, const size_t *offsets) {
  fputs("id,lower,upper,size,offset\n", stream);
  for (size_t i = 0; i < list->count; i++) {
    const rondo_plan_item *item = &list->items[i];
    write_id(stream, list->ids[i]);
    fprintf(stream, ",%" PRIu64 ",%" PRIu64 ",%zu,%zu\n", list->times[item->lower], list->times[item->upper],
            item->bytes, offsets[i]);
  }
}

int buffer_list_write(const char *path, const buffer_list *list, const size_t *offsets) {
  text_stream s;
  FILE *stream = text_stream_open(&s);
  if (stream) buffer_list_print(stream, list, offsets);
  char *text = text_stream_close(&s);
  const int result = text ? file_write(path, text) : tool_fail_memory("%s", path);
  free(text);
  return result;
}

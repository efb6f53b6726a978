/* SPDX-License-Identifier: MIT
 * Finds the entries of a module, reads their parameters, has the flow of addresses in their bodies worked out, and says
 * what it means. Threads: any; nothing is shared.
 */
#include "device/cuda/ptx/ptx_access.h"

#include "base/error.h"
#include "base/hash.h"
#include "device/cuda/ptx/ptx_flow.h"

/* Slots and rules are counted in 32 bits. */
enum { MOST_BYTES = 64 << 20 };

bool ptx_is_text(const char *code) {
  static const char head[] = ".version";
  ptx_cursor cursor = {.at = code, .line = 1};
  size_t count = 0;
  while (code[count] == '\t' || code[count] == '\n' || code[count] == '\r' || (code[count] >= ' ' && code[count] < 127))
    count++;
  cursor.end = code + count;
  (void)ptx_next(&cursor);
  return (size_t)(cursor.end - cursor.at) >= sizeof head - 1 && memcmp(cursor.at, head, sizeof head - 1) == 0;
}

/* Parameters ------------------------------------------------------------------------------------------------------- */

/* The bytes of a type; 0 if the word is not a type. Handles of textures and samplers have 8. */
static uint64_t type_bytes(ptx_word word) {
  if (ptx_word_is(word, ".texref") || ptx_word_is(word, ".surfref") || ptx_word_is(word, ".samplerref")) return 8;
  return word.at[0] == '.' ? ptx_type_bits((ptx_word){word.at + 1, word.count - 1}) / 8 : 0;
}

/* The number of elements of an array; 1 if the parameter is not an array; UINT64_MAX if it is malformed. */
static uint64_t read_array(ptx_cursor *cursor) {
  if (!ptx_take(cursor, '[')) return 1;
  const uint64_t count = ptx_number(ptx_take_word(cursor));
  return ptx_take(cursor, ']') ? count : UINT64_MAX;
}

/* A declaration, up to a comma or the closing parenthesis. False if it is malformed. */
static bool read_parameter(ptx_cursor *cursor, ptx_word *out_name, uint32_t *out_bytes) {
  uint64_t bytes = 0;
  *out_name = (ptx_word){NULL, 0};
  for (char next = ptx_next(cursor); next != ',' && next != ')'; next = ptx_next(cursor)) {
    const ptx_word word = ptx_take_word(cursor);
    if (word.count == 0 || out_name->count > 0 || ptx_word_is(word, ".entry")) return false;
    if (bytes == 0) bytes = type_bytes(word);
    if (word.at[0] != '.' && !(word.at[0] >= '0' && word.at[0] <= '9')) *out_name = word;
    if (out_name->count == 0) continue;
    const uint64_t count = read_array(cursor);
    if (bytes == 0 || count == 0 || count > UINT32_MAX / bytes) return false;
    bytes *= count;
  }
  *out_bytes = (uint32_t)bytes;
  return out_name->count > 0;
}

/* Reads the list, if there is one. *out_is_whole: it is not malformed. */
static rondo_status read_parameters(ptx_cursor *cursor, ptx_flow *flow, bool *out_is_whole) {
  ptx_word name;
  uint32_t bytes;
  *out_is_whole = true;
  if (!ptx_take(cursor, '(') || ptx_take(cursor, ')')) return RONDO_OK;
  do {
    *out_is_whole = read_parameter(cursor, &name, &bytes);
    if (!*out_is_whole) return RONDO_OK;
    RONDO_TRY(ptx_flow_add_parameter(flow, name, bytes));
  } while (ptx_take(cursor, ','));
  *out_is_whole = ptx_take(cursor, ')');
  return RONDO_OK;
}

/* Findings --------------------------------------------------------------------------------------------------------- */

static ptx_site site_of(const ptx_access *access) {
  ptx_site site = {.line = access->line};
  const size_t room = sizeof site.opcode - 1;
  memcpy(site.opcode, access->opcode.at, access->opcode.count < room ? access->opcode.count : room);
  return site;
}

static void note_access(const ptx_flow *flow, const ptx_access *access, ptx_finding *findings) {
  const ptx_value value = flow->values.items[access->slot];
  if (value < PTX_POINTER || value >= PTX_MIXED) return;
  ptx_finding *finding = &findings[value - PTX_POINTER];
  if ((access->how & PTX_READS) != 0 && finding->is_read != PTX_YES) {
    finding->is_read = PTX_YES;
    finding->read = site_of(access);
  }
  if ((access->how & PTX_WRITES) != 0 && finding->is_written != PTX_YES) {
    finding->is_written = PTX_YES;
    finding->write = site_of(access);
  }
}

static rondo_status add_findings(const rondo_allocator *allocator, const ptx_flow *flow, uint64_t entry,
                                 ptx_findings *out) {
  const size_t first = out->count;
  for (uint32_t i = 0; i < flow->parameter_count; i++) {
    const ptx_answer rest = flow->is_lost || flow->escaped.items[i] ? PTX_UNKNOWN : PTX_NO;
    const ptx_finding finding = {
        .entry = entry, .parameter = i, .bytes = flow->sizes.items[i], .is_read = rest, .is_written = rest};
    RONDO_TRY(rondo_array_push(allocator, out, &finding));
  }
  for (size_t i = 0; i < flow->accesses.count && !flow->is_lost; i++)
    note_access(flow, &flow->accesses.items[i], out->items + first);
  return RONDO_OK;
}

/* Entries ---------------------------------------------------------------------------------------------------------- */

static rondo_status read_body(ptx_cursor *cursor, ptx_flow *flow) {
  ptx_statement statement = {.line = 0};
  uint32_t depth = 1;
  bool ended = false;
  rondo_status status = RONDO_OK;
  while (status == RONDO_OK) {
    status = ptx_statement_read(flow->allocator, cursor, &depth, &statement, &ended);
    if (status != RONDO_OK || ended || statement.opcode.count == 0) break;
    status = ptx_flow_add_statement(flow, &statement);
  }
  flow->is_lost = flow->is_lost || ended;
  rondo_array_free(flow->allocator, &statement.atoms);
  return status;
}

/* Skips the directives between the parameters and the body. False if there is no body before the next entry. */
static bool find_body(ptx_cursor *cursor) {
  for (char next = ptx_next(cursor); next != '\0' && next != ';'; next = ptx_next(cursor)) {
    if (next == '{') return true;
    if (next == '"') {
      ptx_skip_string(cursor);
      continue;
    }
    const ptx_word word = ptx_take_word(cursor);
    if (ptx_word_is(word, ".entry")) return false;
    if (word.count == 0) ptx_step(cursor);
  }
  return false;
}

static rondo_status examine_entry(ptx_cursor *cursor, uint64_t entry, ptx_flow *flow, ptx_findings *out) {
  bool is_whole;
  RONDO_TRY(read_parameters(cursor, flow, &is_whole));
  if (!is_whole || flow->parameter_count == 0 || !find_body(cursor)) return RONDO_OK;
  ptx_cursor body = *cursor;
  if (!ptx_skip_braces(cursor)) flow->is_lost = true;
  body.end = cursor->at;
  ptx_step(&body);
  RONDO_TRY(read_body(&body, flow));
  ptx_flow_solve(flow);
  return add_findings(flow->allocator, flow, entry, out);
}

/* The cursor is after ".entry", and then after the name: the rest is passed again, as of an entry that is not wanted.
 */
static rondo_status pass_entry(const rondo_allocator *allocator, ptx_cursor *cursor, const char *name,
                               ptx_findings *out) {
  ptx_flow flow;
  const ptx_word word = ptx_take_word(cursor);
  if (name != NULL && !ptx_word_is(word, name)) return RONDO_OK;
  ptx_cursor rest = *cursor;
  ptx_flow_init(&flow, allocator);
  const rondo_status status = examine_entry(&rest, rondo_hash_bytes(RONDO_HASH_START, word.at, word.count), &flow, out);
  ptx_flow_free(&flow);
  return status;
}

rondo_status ptx_examine(const rondo_allocator *allocator, const char *text, size_t count, const char *name,
                         ptx_findings *out) {
  ptx_cursor cursor = {text, text + count, 1};
  if (count > MOST_BYTES) return RONDO_OK;
  for (char next = ptx_next(&cursor); next != '\0'; next = ptx_next(&cursor)) {
    if (next == '"') {
      ptx_skip_string(&cursor);
    } else if (next == '{') {
      (void)ptx_skip_braces(&cursor);
    } else {
      const ptx_word word = ptx_take_word(&cursor);
      if (word.count == 0) ptx_step(&cursor);
      if (ptx_word_is(word, ".entry")) RONDO_TRY(pass_entry(allocator, &cursor, name, out));
    }
  }
  return RONDO_OK;
}

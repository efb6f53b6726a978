/* SPDX-License-Identifier: MIT
 * Reads words and statements. A statement ends with a semicolon, not with its line. The exceptions are the directives
 * about lines of the source, which end with theirs. Threads: any.
 */
#include "device/cuda/ptx/ptx_text.h"

#include "base/error.h"

bool ptx_word_begins(ptx_word word, const char *text) {
  const size_t count = strlen(text);
  return word.count >= count && memcmp(word.at, text, count) == 0;
}

bool ptx_word_is(ptx_word word, const char *text) {
  return word.count == strlen(text) && memcmp(word.at, text, word.count) == 0;
}

/* Blanks and comments ---------------------------------------------------------------------------------------------- */

static char peek(const ptx_cursor *cursor) { return cursor->at < cursor->end ? *cursor->at : '\0'; }

static char peek_second(const ptx_cursor *cursor) { return cursor->end - cursor->at > 1 ? cursor->at[1] : '\0'; }

void ptx_step(ptx_cursor *cursor) {
  if (cursor->at == cursor->end) return;
  if (*cursor->at == '\n' && cursor->line < UINT32_MAX) cursor->line++;
  cursor->at++;
}

static void skip_line(ptx_cursor *cursor) {
  while (cursor->at < cursor->end && *cursor->at != '\n') ptx_step(cursor);
}

static void skip_comment(ptx_cursor *cursor) {
  ptx_step(cursor);
  ptx_step(cursor);
  while (cursor->at < cursor->end && !(*cursor->at == '*' && peek_second(cursor) == '/')) ptx_step(cursor);
  ptx_step(cursor);
  ptx_step(cursor);
}

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

char ptx_next(ptx_cursor *cursor) {
  while (cursor->at < cursor->end) {
    const char second = peek_second(cursor);
    if (is_blank(*cursor->at))
      ptx_step(cursor);
    else if (*cursor->at == '/' && second == '/')
      skip_line(cursor);
    else if (*cursor->at == '/' && second == '*')
      skip_comment(cursor);
    else
      break;
  }
  return peek(cursor);
}

bool ptx_take(ptx_cursor *cursor, char wanted) {
  if (wanted == '\0' || ptx_next(cursor) != wanted) return false;
  ptx_step(cursor);
  return true;
}

void ptx_skip_string(ptx_cursor *cursor) {
  ptx_step(cursor);
  while (cursor->at < cursor->end && *cursor->at != '"') {
    if (*cursor->at == '\\') ptx_step(cursor);
    ptx_step(cursor);
  }
  ptx_step(cursor);
}

bool ptx_skip_braces(ptx_cursor *cursor) {
  size_t depth = 0;
  while (cursor->at < cursor->end) {
    const char next = ptx_next(cursor);
    if (next == '"') {
      ptx_skip_string(cursor);
      continue;
    }
    ptx_step(cursor);
    if (next == '{') depth++;
    if (next == '}' && --depth == 0) return true;
  }
  return false;
}

/* Words ------------------------------------------------------------------------------------------------------------ */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool begins_name(char c) { return is_letter(c) || c == '_' || c == '$' || c == '%'; }

/* The two colons of a state space, as in shared::cluster, belong to a word; the one of a label does not. */
ptx_word ptx_take_word(ptx_cursor *cursor) {
  (void)ptx_next(cursor);
  const char *const start = cursor->at;
  while (cursor->at < cursor->end) {
    const char c = *cursor->at;
    if (begins_name(c) || is_digit(c) || c == '.')
      cursor->at++;
    else if (c == ':' && peek_second(cursor) == ':')
      cursor->at += 2;
    else
      break;
  }
  return (ptx_word){start, (size_t)(cursor->at - start)};
}

static unsigned digit_of(char c) {
  if (is_digit(c)) return (unsigned)(c - '0');
  if (!is_letter(c)) return 16;
  const char lower = (char)(c | 0x20);
  return lower <= 'f' ? (unsigned)(lower - 'a') + 10 : 16;
}

uint64_t ptx_number(ptx_word word) {
  const bool is_hexadecimal = ptx_word_begins(word, "0x") || ptx_word_begins(word, "0X");
  const unsigned base = is_hexadecimal ? 16 : 10;
  const size_t first = is_hexadecimal ? 2 : 0;
  uint64_t value = 0;
  if (word.count > 0 && (word.at[word.count - 1] == 'U' || word.at[word.count - 1] == 'u')) word.count--;
  if (word.count == first || (base == 10 && word.count > 1 && word.at[0] == '0')) return UINT64_MAX; /* octal, float */
  for (size_t i = first; i < word.count; i++) {
    const unsigned digit = digit_of(word.at[i]);
    if (digit >= base || value > (UINT64_MAX - digit) / base) return UINT64_MAX;
    value = value * base + digit;
  }
  return value;
}

uint32_t ptx_type_bits(ptx_word word) {
  if (word.count < 2 || strchr("usbf", word.at[0]) == NULL) return 0;
  const uint64_t bits = ptx_number((ptx_word){word.at + 1, word.count - 1});
  return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128 ? (uint32_t)bits : 0;
}

/* Statements ------------------------------------------------------------------------------------------------------- */

/* Where in the operands the cursor is. */
typedef struct operand_state {
  uint32_t operand, brackets, braces;
  bool is_negative;
} operand_state;

static rondo_status add_atom(const rondo_allocator *allocator, ptx_word word, const operand_state *state,
                             ptx_atoms *atoms) {
  const bool is_number = is_digit(word.at[0]);
  const uint64_t value = is_number ? ptx_number(word) : 0;
  const ptx_atom atom = {.name = is_number ? (ptx_word){NULL, 0} : word,
                         .number = state->is_negative ? UINT64_C(0) - value : value,
                         .operand = state->operand,
                         .place = state->brackets > 0 ? PTX_ADDRESS
                                  : state->braces > 0 ? PTX_VECTOR
                                                      : PTX_PLAIN};
  return rondo_array_push(allocator, atoms, &atom);
}

/* Keeps the nesting; a comma outside of it begins the next operand. */
static void pass_sign(operand_state *state, char sign) {
  if (sign == '[') state->brackets++;
  if (sign == ']' && state->brackets > 0) state->brackets--;
  if (sign == '{') state->braces++;
  if (sign == '}' && state->braces > 0) state->braces--;
  if (sign == ',' && state->brackets == 0 && state->braces == 0) state->operand++;
  state->is_negative = sign == '-';
}

/* Reads up to the semicolon. *out_ended: the text ends without one. */
static rondo_status read_operands(const rondo_allocator *allocator, ptx_cursor *cursor, ptx_atoms *atoms,
                                  bool *out_ended) {
  operand_state state = {0};
  *out_ended = false;
  for (char next = ptx_next(cursor); next != ';'; next = ptx_next(cursor)) {
    const bool is_stray = next == '\0' || (next == '}' && state.braces == 0);
    if (is_stray) {
      *out_ended = true;
      return RONDO_OK;
    }
    if (!begins_name(next) && !is_digit(next)) {
      pass_sign(&state, next);
      ptx_step(cursor);
      continue;
    }
    RONDO_TRY(add_atom(allocator, ptx_take_word(cursor), &state, atoms));
    state.is_negative = false;
  }
  ptx_step(cursor);
  return RONDO_OK;
}

/* Declarations, and hints to the assembler. */
static void skip_directive(ptx_cursor *cursor) {
  const ptx_word word = ptx_take_word(cursor);
  if (ptx_word_is(word, ".loc") || ptx_word_is(word, ".file")) {
    skip_line(cursor);
    return;
  }
  for (char next = ptx_next(cursor); next != '\0' && next != ';'; next = ptx_next(cursor)) {
    if (next == '"')
      ptx_skip_string(cursor);
    else
      ptx_step(cursor);
  }
  ptx_step(cursor);
}

/* Skips what is not an instruction. False at the end of the body or of the text. */
static bool find_instruction(ptx_cursor *cursor, uint32_t *depth) {
  for (;;) {
    const char next = ptx_next(cursor);
    if (begins_name(next) || next == '@') return true;
    if (next == '\0') return false;
    if (next == '.') {
      skip_directive(cursor);
      continue;
    }
    ptx_step(cursor);
    if (next == '{') (*depth)++;
    if (next == '}' && --*depth == 0) return false;
  }
}

static void skip_predicate(ptx_cursor *cursor) {
  if (!ptx_take(cursor, '@')) return;
  (void)ptx_take(cursor, '!');
  (void)ptx_take_word(cursor);
}

rondo_status ptx_statement_read(const rondo_allocator *allocator, ptx_cursor *cursor, uint32_t *depth,
                                ptx_statement *out, bool *out_ended) {
  out->atoms.count = 0;
  out->opcode = (ptx_word){NULL, 0};
  while (find_instruction(cursor, depth)) {
    skip_predicate(cursor);
    const ptx_word word = ptx_take_word(cursor);
    out->line = cursor->line;
    if (word.count == 0 || ptx_take(cursor, ':')) continue; /* a label */
    out->opcode = word;
    return read_operands(allocator, cursor, &out->atoms, out_ended);
  }
  *out_ended = *depth > 0;
  return RONDO_OK;
}

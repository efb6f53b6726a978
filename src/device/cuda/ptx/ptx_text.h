/* SPDX-License-Identifier: MIT
 * PTX as text: words, comments, and statements with their operands. The bytes are untrusted: nothing reads outside
 * them, and each is read a fixed number of times. What a statement means is not known here (ptx_rules.c). Threads: any;
 * each cursor is used by one thread at a time.
 */
#ifndef RONDO_DEVICE_CUDA_PTX_PTX_TEXT_H
#define RONDO_DEVICE_CUDA_PTX_PTX_TEXT_H

#include <stdint.h>

#include "base/array.h"

/* The rest of a text, and the line where it begins, from 1. */
typedef struct ptx_cursor {
  const char *at, *end;
  uint32_t line;
} ptx_cursor;

/* A piece of the text, without NUL at its end. */
typedef struct ptx_word {
  const char *at;
  size_t count;
} ptx_word;

bool ptx_word_is(ptx_word word, const char *text);
bool ptx_word_begins(ptx_word word, const char *text);

/* Skips blanks and comments. Returns the next byte, or '\0' at the end. */
char ptx_next(ptx_cursor *cursor);

/* Skips one byte, if there is one. */
void ptx_step(ptx_cursor *cursor);

/* Skips this byte after blanks and comments. False if another one is next. */
bool ptx_take(ptx_cursor *cursor, char wanted);

/* The identifier, directive or number that is next. Its count is 0 if something else is next. */
ptx_word ptx_take_word(ptx_cursor *cursor);

/* Skips a string; the cursor is at its first quote. */
void ptx_skip_string(ptx_cursor *cursor);

/* Skips what is in braces, and both braces; the cursor is at the first. False if the text ends before. */
bool ptx_skip_braces(ptx_cursor *cursor);

/* A decimal or hexadecimal integer. Another word, or one that does not fit, is UINT64_MAX. */
uint64_t ptx_number(ptx_word word);

/* The bits of a type: a letter of "usbf" and their number. 0 for another word. */
uint32_t ptx_type_bits(ptx_word word);

typedef enum ptx_place { PTX_PLAIN, PTX_VECTOR, PTX_ADDRESS } ptx_place; /* alone, in braces, in brackets */

/* A name or a number in an operand. */
typedef struct ptx_atom {
  ptx_word name;   /* its count is 0 for a number */
  uint64_t number; /* two's complement */
  uint32_t operand;
  ptx_place place;
} ptx_atom;

typedef RONDO_ARRAY(ptx_atom) ptx_atoms;

/* An instruction. Its predicate is left out: what it may do counts. */
typedef struct ptx_statement {
  ptx_word opcode; /* with its suffixes; its count is 0 if the body has ended */
  uint32_t line;
  ptx_atoms atoms; /* of its operands, in order */
} ptx_statement;

/* Reads the next instruction of a body, after whose first brace the cursor was; `depth` is 1 there. Labels, directives
 * and braces are skipped. The memory of `atoms` is used again. *out_ended: the text ended in the body. Errors:
 * OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status ptx_statement_read(const rondo_allocator *allocator, ptx_cursor *cursor, uint32_t *depth,
                                               ptx_statement *out, bool *out_ended);

#endif

/* SPDX-License-Identifier: MIT
 * Lists the structure of a program. Each list of words begins with its length, or has one that an earlier word decides,
 * so no two structures have the same words. Threads: any.
 */
#include "tensor/compile/program_structure.h"

#include <string.h>

static void put(rondo_structure *to, const uint32_t *words, size_t count) {
  assert(count <= to->capacity - to->count);
  memcpy(to->items + to->count, words, count * sizeof *words);
  to->count += count;
}

static void put_word(rondo_structure *to, uint32_t word) { put(to, &word, 1); }

/* The words of a name after its length; the last one is padded with zeros. */
static size_t name_words(const char *name) { return (strlen(name) + sizeof(uint32_t) - 1) / sizeof(uint32_t); }

static void put_name(rondo_structure *to, const char *name) {
  const size_t words = name_words(name);
  put_word(to, (uint32_t)strlen(name));
  assert(words <= to->capacity - to->count);
  memset(to->items + to->count, 0, words * sizeof *to->items);
  memcpy(to->items + to->count, name, strlen(name));
  to->count += words;
}

enum { OPERATION_WORDS = 1 + RONDO_MAX_OPERANDS + RONDO_MAX_RESULTS + 2 }; /* beside the name */

static void put_operation(rondo_structure *to, const rondo_operation *operation, uint32_t chain, bool has_workspace,
                          bool runs) {
  put_name(to, operation->row->name);
  put(to, operation->inputs, RONDO_MAX_OPERANDS);
  put(to, operation->results, RONDO_MAX_RESULTS);
  put_word(to, chain);
  put_word(to, (uint32_t)operation->row->is_user << 2 | (uint32_t)has_workspace << 1 | (uint32_t)runs);
}

enum { VALUE_WORDS = 2 };

static void put_value(rondo_structure *to, const rondo_program_value *value, uint32_t owner,
                      const rondo_staged_list *staged) {
  const bool is_input = value->kind == RONDO_VALUE_INPUT;
  const uint32_t staging = is_input ? (uint32_t)rondo_staged_how(staged, value->name) : 0;
  put_word(to, owner);
  put_word(to, (uint32_t)value->kind << 8 | staging);
}

enum { HEAD_WORDS = 5 };

static size_t count_words(const rondo_program *program, const rondo_schedule *schedule) {
  size_t words =
      HEAD_WORDS + schedule->operations * OPERATION_WORDS + schedule->values * VALUE_WORDS + program->outputs.count;
  for (size_t i = 0; i < schedule->operations; i++) words += name_words(program->operations.items[i].row->name);
  return words;
}

rondo_status rondo_structure_make(const rondo_program *program, const rondo_layout_options *options,
                                  const rondo_schedule *schedule, const size_t *workspaces, rondo_structure *out) {
  const uint32_t head[HEAD_WORDS] = {(uint32_t)schedule->operations, (uint32_t)schedule->values,
                                     (uint32_t)program->outputs.count, (uint32_t)options->branches,
                                     (uint32_t)options->fusion};
  const size_t words = count_words(program, schedule);
  assert(out->count == 0);
  RONDO_TRY(rondo_array_reserve(&program->allocator, out, words));
  put(out, head, HEAD_WORDS);
  for (size_t i = 0; i < schedule->operations; i++)
    put_operation(out, &program->operations.items[i], schedule->chain_of[i], workspaces[i] > 0, schedule->runs[i]);
  for (size_t i = 0; i < schedule->values; i++)
    put_value(out, &program->values.items[i], schedule->owners[i], &options->staged);
  for (size_t i = 0; i < program->outputs.count; i++) put_word(out, program->outputs.items[i].value);
  assert(out->count == words);
  return RONDO_OK;
}

/* SPDX-License-Identifier: MIT
 * Walks a tree and asserts its invariants. Debug builds do this at the end of public calls: for the path after each
 * call of a function, and for the whole tree after calls that are not part of a replay.
 *
 * Threads: the thread that is inside a call of the tree.
 */
#include "tree/tree_check.h"

#ifndef NDEBUG

#include <assert.h>

#include "tree/record/shared_execs.h"

/* The path --------------------------------------------------------------------------------------------------------- */

static void check_position(const rondo_recorded_call *call) {
  const rondo_recorded_call *parent = call->parent;
  assert(call->function != NULL && call->form != NULL);
  assert(call->depth == (parent == NULL ? 1 : parent->depth + 1));
  assert(call->first_bit == (parent == NULL ? 0 : parent->first_bit + parent->bit_count));
  assert(call->bit_count <= call->output_count);
}

/* A bit is set exactly while a buffer of the path holds the output. */
static void check_bit(const rondo_tree *tree, size_t bit) {
  const rondo_buffer *holder = tree->holders[bit];
  const bool is_live = (tree->live[bit / 64] >> bit % 64 & 1) != 0;
  assert(is_live == (holder != NULL));
  if (holder == NULL) return;
  assert(bit < tree->path_bits);
  assert(holder->bit == bit);
  assert(holder->kind == RONDO_BUFFER_ARENA);
  assert(holder->commons == tree->commons);
  assert(holder->generation == tree->commons->generation);
}

void rondo_path_check(const rondo_tree *tree) {
  assert(tree->bit_capacity % 64 == 0);
  assert(tree->path_bits <= tree->bit_capacity);
  for (size_t bit = 0; bit < tree->bit_capacity; bit++) check_bit(tree, bit);
  if (tree->current == NULL) return;
  /* Outputs of removed recordings stay valid for their step, so the path may have more bits. */
  assert(tree->path_bits >= (size_t)tree->current->first_bit + tree->current->bit_count);
  for (const rondo_recorded_call *at = tree->current; at != NULL; at = at->parent) check_position(at);
}

/* Recordings ------------------------------------------------------------------------------------------------------- */

static bool is_in_table(const rondo_tree *tree, const rondo_recorded_call *call) {
  const rondo_recorded_call *at = tree->table[call->hash & (tree->table_size - 1)];
  while (at != NULL && at != call) at = at->next_in_bucket;
  return at == call;
}

static uint32_t check_siblings(const rondo_recorded_call *siblings, const rondo_recorded_call *parent) {
  uint32_t count = 0;
  for (const rondo_recorded_call *at = siblings; at != NULL; at = at->sibling, count++) assert(at->parent == parent);
  return count;
}

static void check_work(const rondo_recorded_call *call) {
  assert(call->segments != NULL || call->segment_count == 0);
  for (size_t i = 0; i < call->segment_count; i++) {
    assert(call->segments[i].tree_exec != NULL);
    assert(call->segments[i].exec == call->segments[i].tree_exec->exec);
    assert(call->segments[i].tree_exec->references > 0);
  }
  for (size_t i = 0; i < call->bound_count; i++) {
    assert(call->bound[i].input < call->function->options.input_count);
    assert(i == 0 || call->bound[i - 1].input < call->bound[i].input);
  }
}

static void check_recordings(const rondo_tree *tree) {
  const rondo_recorded_call *last = NULL;
  uint32_t count = 0, in_families = check_siblings(tree->roots, NULL);
  for (const rondo_recorded_call *call = tree->first; call != NULL; call = call->next, count++) {
    assert(call->previous == last);
    assert(last == NULL || last->number < call->number);
    assert(is_in_table(tree, call));
    check_position(call);
    check_work(call);
    in_families += check_siblings(call->children, call);
    last = call;
  }
  assert(tree->last == last);
  assert(tree->info.recordings == count);
  assert(in_families == count);
  assert(tree->info.recordings <= tree->options.max_recordings);
}

/* Functions -------------------------------------------------------------------------------------------------------- */

static void check_functions(const rondo_tree *tree) {
  uint32_t functions = 0, recordings = 0;
  for (const rondo_function *function = tree->functions; function != NULL; function = function->next, functions++) {
    uint32_t of_forms = 0;
    assert(function->tree == tree);
    assert(function->options.input_count <= tree->input_capacity);
    for (const rondo_form *form = function->forms; form != NULL; form = form->next) of_forms += form->recordings;
    assert(of_forms == function->info.recordings);
    recordings += function->info.recordings;
  }
  assert(functions == tree->info.functions);
  assert(recordings == tree->info.recordings);
}

/* Execs and buffers ------------------------------------------------------------------------------------------------ */

static void check_execs(const rondo_tree *tree) {
  uint64_t bytes[2] = {0};
  for (const rondo_tree_exec *at = tree->execs; at != NULL; at = at->next) {
    assert(at->exec != NULL && at->references > 0);
    for (size_t i = 0; i < 2; i++) bytes[i] += at->bytes[i];
  }
  assert(bytes[0] == tree->exec_bytes[0] && bytes[1] == tree->exec_bytes[1]);
}

static void check_buffers(const rondo_buffer *list, bool is_of_step) {
  const rondo_buffer *before = NULL;
  for (const rondo_buffer *at = list; at != NULL; at = at->after) {
    assert(at->before == before);
    assert(at->kind == RONDO_BUFFER_OWNED);
    assert((at->generation != RONDO_NO_GENERATION) == is_of_step);
    before = at;
  }
}

void rondo_tree_check(const rondo_tree *tree) {
  assert(atomic_load_explicit(&tree->owner, memory_order_relaxed) != 0);
  assert(tree->commons->tree == tree);
  rondo_path_check(tree);
  check_recordings(tree);
  check_functions(tree);
  check_execs(tree);
  check_buffers(tree->step_buffers, true);
  check_buffers(tree->kept_buffers, false);
}

#endif

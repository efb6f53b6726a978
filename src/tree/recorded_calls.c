/* SPDX-License-Identifier: MIT
 * The recorded calls of a tree: the table that finds a call by its key, the links between calls, and eviction.
 *
 * Invariant: a call is in the table, in the tree's list, and among its parent's children (or the roots), or in none of
 * them.
 */
#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "graph/user_object.h"
#include "tree/record/demote_inputs.h"
#include "tree/record/shared_execs.h"
#include "tree/recorded_calls.h"
#include "tree/recording_key.h"

/* Finding ---------------------------------------------------------------------------------------------------------- */

static bool is_fitting(const rondo_tree *tree, const rondo_recorded_call *call) {
  return rondo_recorded_fits(tree, call->dead_before, call->first_bit);
}

rondo_recorded_call *rondo_recorded_find(const rondo_tree *tree, const uint64_t *key, size_t count, uint64_t hash) {
  if (tree->table_size == 0) return NULL;
  rondo_recorded_call *call = tree->table[hash & (tree->table_size - 1)];
  for (; call != NULL; call = call->next_in_bucket)
    if (call->hash == hash && call->key_count == count && memcmp(call->key, key, count * sizeof *key) == 0 &&
        is_fitting(tree, call))
      return call;
  return NULL;
}

rondo_recorded_call *rondo_recorded_guess(const rondo_tree *tree, const rondo_function *function,
                                          const rondo_resolved_input *inputs) {
  rondo_recorded_call *guess = tree->current == NULL ? tree->guess : tree->current->guess;
  if (guess == NULL || !rondo_key_matches(tree, function, inputs, guess->key)) return NULL;
  return is_fitting(tree, guess) ? guess : NULL;
}

rondo_recorded_call *rondo_recorded_guess_raw(const rondo_tree *tree, const rondo_function *function,
                                              const rondo_input *given) {
  rondo_recorded_call *guess = tree->current == NULL ? tree->guess : tree->current->guess;
  if (guess == NULL || !rondo_key_matches_raw(tree, function, given, guess->key)) return NULL;
  return is_fitting(tree, guess) ? guess : NULL;
}

/* Adding ----------------------------------------------------------------------------------------------------------- */

static void insert_into(rondo_recorded_call **table, size_t places, rondo_recorded_call *call) {
  assert((places & (places - 1)) == 0);
  rondo_recorded_call **place = &table[call->hash & (places - 1)];
  while (*place != NULL) place = &(*place)->next_in_bucket; /* oldest first */
  call->next_in_bucket = NULL;
  *place = call;
}

rondo_status rondo_recorded_reserve(rondo_tree *tree) {
  if (tree->info.recordings < tree->table_size) return RONDO_OK;
  const size_t places = tree->table_size == 0 ? 16 : tree->table_size * 2;
  rondo_recorded_call **table;
  RONDO_TRY(rondo_allocate_items(&tree->allocator, places, sizeof *table, &table));
  for (rondo_recorded_call *call = tree->first; call != NULL; call = call->next) insert_into(table, places, call);
  rondo_release(&tree->allocator, tree->table, tree->table_size, sizeof *tree->table);
  tree->table = table;
  tree->table_size = places;
  return RONDO_OK;
}

void rondo_recorded_add(rondo_tree *tree, rondo_recorded_call *call) {
  assert(tree->info.recordings < tree->table_size);
  assert(call->parent == tree->current);
  assert(call->children == NULL && call->sibling == NULL);
  insert_into(tree->table, tree->table_size, call);
  call->number = ++tree->recordings_made;
  call->depth = call->parent == NULL ? 1 : call->parent->depth + 1;
  rondo_recorded_call **family = call->parent == NULL ? &tree->roots : &call->parent->children;
  call->sibling = *family;
  *family = call;
  call->previous = tree->last;
  if (tree->last == NULL)
    tree->first = call;
  else
    tree->last->next = call;
  tree->last = call;
  tree->info.recordings++;
  tree->steady_paths = 0;
  call->function->info.recordings++;
  call->form->recordings++;
}

/* Removing --------------------------------------------------------------------------------------------------------- */

/* On a device that watches lifetimes, those of slots end with the recording, so its launches must have finished. */
static void wait_where_watched(const rondo_tree *tree) {
  const rondo_stream *stream = rondo_tree_last_stream(tree);
  if (tree->is_watched && stream != NULL)
    rondo_status_ignore(stream->queue->ops->await(stream->queue), "the next synchronization of the stream returns it");
}

void rondo_segment_free(rondo_tree *tree, rondo_segment *segment) {
  rondo_patch_set_destroy(segment->patches);
  segment->patches = NULL;
  rondo_tree_exec_release(tree, segment);
  rondo_status_ignore(rondo_graph_destroy(segment->graph), "it belongs to nobody else");
  segment->graph = NULL;
}

static void free_segments(rondo_tree *tree, rondo_recorded_call *call) {
  if (call->segment_count > 0) wait_where_watched(tree);
  for (size_t i = 0; i < call->segment_count; i++) {
    rondo_segment_free(tree, &call->segments[i]);
  }
  rondo_release(&tree->allocator, call->segments, call->segment_count, sizeof *call->segments);
}

void rondo_recorded_free(rondo_tree *tree, rondo_recorded_call *call) {
  if (call == NULL) return;
  const rondo_allocator *allocator = &tree->allocator;
  free_segments(tree, call);
  rondo_object_list_free(allocator, &call->objects);
  rondo_demoted_free_all(tree, call);
  rondo_release(allocator, call->key, call->key_count, sizeof *call->key);
  rondo_release(allocator, call->dead_before, rondo_bit_words(call->first_bit), sizeof *call->dead_before);
  rondo_release(allocator, call->outputs, call->output_count, sizeof *call->outputs);
  rondo_noted_lifetimes_release(call->noted);
  rondo_release(allocator, call->given, call->given_capacity, sizeof *call->given);
  rondo_release(allocator, call->bound, call->bound_count, sizeof *call->bound);
  rondo_release(allocator, call->addresses, 2 * call->bound_count, sizeof *call->addresses);
  rondo_release(allocator, call, 1, sizeof *call);
}

static void remove_from_table(rondo_tree *tree, rondo_recorded_call *call) {
  rondo_recorded_call **place = &tree->table[call->hash & (tree->table_size - 1)];
  while (*place != call) place = &(*place)->next_in_bucket;
  *place = call->next_in_bucket;
}

static void remove_from_family(rondo_tree *tree, rondo_recorded_call *call) {
  rondo_recorded_call **guess = call->parent == NULL ? &tree->guess : &call->parent->guess;
  if (*guess == call) *guess = NULL;
  rondo_recorded_call **place = call->parent == NULL ? &tree->roots : &call->parent->children;
  while (*place != call) place = &(*place)->sibling;
  *place = call->sibling;
}

static void remove_from_list(rondo_tree *tree, rondo_recorded_call *call) {
  if (call->previous == NULL)
    tree->first = call->next;
  else
    call->previous->next = call->next;
  if (call->next == NULL)
    tree->last = call->previous;
  else
    call->next->previous = call->previous;
}

/* Removes a call without children. */
static void remove_leaf(rondo_tree *tree, rondo_recorded_call *call) {
  assert(call->children == NULL);
  assert(call != tree->current && call != tree->suspended);
  assert(tree->info.recordings > 0 && call->function->info.recordings > 0 && call->form->recordings > 0);
  remove_from_table(tree, call);
  remove_from_family(tree, call);
  remove_from_list(tree, call);
  tree->info.recordings--;
  call->function->info.recordings--;
  call->form->recordings--;
  if (tree->last_call.recording == call->number) tree->last_call.recording = 0;
  rondo_recorded_free(tree, call);
}

void rondo_recorded_remove(rondo_tree *tree, rondo_recorded_call *call) {
  rondo_recorded_call *at = call;
  for (;;) {
    while (at->children != NULL) at = at->children;
    rondo_recorded_call *parent = at->parent;
    const bool is_done = at == call;
    remove_leaf(tree, at);
    if (is_done) return;
    at = parent;
  }
}

size_t rondo_recorded_arena_minimum(const rondo_tree *tree) {
  size_t maximum = 0;
  for (const rondo_recorded_call *call = tree->first; call != NULL; call = call->next)
    if (call->arena_minimum > maximum) maximum = call->arena_minimum;
  return maximum;
}

/* Limits ----------------------------------------------------------------------------------------------------------- */

static bool is_before(const rondo_recorded_call *call, const rondo_recorded_call *end) {
  while (end != NULL && end->depth > call->depth) end = end->parent;
  return end == call;
}

static bool is_on_path(const rondo_tree *tree, const rondo_recorded_call *call) {
  return is_before(call, tree->current) || is_before(call, tree->suspended);
}

/* The least recently used call that is not on a path: a leaf, or any call of the function; NULL: none. */
static rondo_recorded_call *find_oldest(const rondo_tree *tree, const rondo_function *function) {
  rondo_recorded_call *oldest = NULL;
  for (rondo_recorded_call *call = tree->first; call != NULL; call = call->next)
    if ((function == NULL ? call->children == NULL : call->function == function) &&
        (oldest == NULL || call->used < oldest->used) && !is_on_path(tree, call))
      oldest = call;
  return oldest;
}

static void evict_leaf(rondo_tree *tree, rondo_recorded_call *call) {
  rondo_log(RONDO_LOG_INFO, "tree", "recording %u of '%s' is evicted: %u recordings, %llu bytes in execs", call->number,
            call->function->origin->name, tree->info.recordings,
            (unsigned long long)tree->exec_bytes[0] + tree->exec_bytes[1]);
  tree->info.evicted++;
  call->function->evicted++;
  remove_leaf(tree, call);
}

static bool evict_oldest(rondo_tree *tree, const rondo_function *function) {
  rondo_recorded_call *const oldest = find_oldest(tree, function);
  while (oldest != NULL) {
    rondo_recorded_call *leaf = oldest;
    while (leaf->children != NULL) leaf = leaf->children;
    evict_leaf(tree, leaf);
    if (leaf == oldest) return true;
  }
  return false;
}

bool rondo_recorded_evict(rondo_tree *tree) {
  while (tree->info.recordings >= tree->options.max_recordings && evict_oldest(tree, NULL)) continue;
  return tree->info.recordings < tree->options.max_recordings;
}

void rondo_recorded_evict_bytes(rondo_tree *tree, uint64_t limit) {
  while (tree->exec_bytes[0] + tree->exec_bytes[1] >= limit && evict_oldest(tree, NULL)) continue;
}

uint64_t rondo_recorded_exec_bytes(const rondo_function *function) {
  uint64_t bytes = 0;
  for (const rondo_recorded_call *call = function->tree->first; call != NULL; call = call->next)
    for (size_t i = 0; call->function == function && i < call->segment_count; i++) {
      const rondo_tree_exec *at = call->segments[i].tree_exec;
      bytes += (at->bytes[0] + at->bytes[1]) / at->references;
    }
  return bytes;
}

static bool is_beyond(const rondo_function *function, uint32_t most, uint64_t most_bytes) {
  if (function->info.recordings > most) return true;
  return most_bytes > 0 && function->info.recordings > 1 && rondo_recorded_exec_bytes(function) > most_bytes;
}

void rondo_recorded_evict_of(rondo_function *function, uint32_t most, uint64_t most_bytes) {
  while (is_beyond(function, most, most_bytes) && evict_oldest(function->tree, function)) continue;
}

static bool is_superseded(const rondo_tree *tree, const rondo_recorded_call *call, const rondo_recorded_call *by) {
  return call != by && call->function == by->function && call->children == NULL && !is_on_path(tree, call) &&
         call->segment_count == 1 && call->segments[0].tree_exec == by->segments[0].tree_exec;
}

void rondo_recorded_supersede(rondo_tree *tree, const rondo_recorded_call *call) {
  if (call->segment_count != 1) return;
  rondo_recorded_call *at = call->parent == NULL ? tree->roots : call->parent->children;
  while (at != NULL) {
    rondo_recorded_call *const next = at->sibling;
    if (is_superseded(tree, at, call)) remove_leaf(tree, at);
    at = next;
  }
}

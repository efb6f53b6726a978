/* SPDX-License-Identifier: MIT
 * What graphs need of generators: lists that a graph shares with its clones until one of them changes (see
 * random_internal.h). The needs of a child graph become part of its parent's when it is embedded, after what the parent
 * needed before, so that one launch draws in the order of recording.
 */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "exec/api_check.h"
#include "exec/random/random_cells.h"
#include "exec/random/random_internal.h"
#include "graph/graph.h"

/* Lists ----------------------------------------------------------------------------------------------------------- */

static void retain_needs(void *object) {
  atomic_fetch_add_explicit(&((rondo_random_needs *)object)->references, 1, memory_order_relaxed);
}

static void release_needs(void *object) {
  rondo_random_needs *needs = object;
  assert(atomic_load_explicit(&needs->references, memory_order_relaxed) > 0);
  if (atomic_fetch_sub_explicit(&needs->references, 1, memory_order_acq_rel) > 1) return;
  const rondo_allocator allocator = needs->allocator;
  for (size_t i = 0; i < needs->list.count; i++) rondo_generator_release(needs->list.items[i].generator);
  rondo_array_free(&allocator, &needs->list);
  rondo_release(&allocator, needs, 1, sizeof *needs);
}

/* With room for `more`; `from` may be NULL. */
static rondo_status make_needs(const rondo_allocator *allocator, const rondo_random_needs *from, size_t more,
                               rondo_random_needs **out) {
  const size_t count = from == NULL ? 0 : from->list.count;
  rondo_random_needs *needs;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *needs, &needs));
  needs->allocator = *allocator;
  atomic_init(&needs->references, 1);
  const rondo_status status = rondo_array_reserve(allocator, &needs->list, count + more);
  if (status != RONDO_OK) {
    rondo_release(allocator, needs, 1, sizeof *needs);
    return status;
  }
  for (size_t i = 0; i < count; i++) {
    needs->list.items[i] = from->list.items[i];
    rondo_generator_retain(needs->list.items[i].generator);
  }
  needs->list.count = count;
  *out = needs;
  return RONDO_OK;
}

static void hang(rondo_graph *graph, rondo_random_needs *needs) {
  if (graph->random.object != NULL) graph->random.release(graph->random.object);
  graph->random = (rondo_graph_attachment){.object = needs, .retain = retain_needs, .release = release_needs};
}

/* The graph's own, with room for `more`. */
static rondo_status own_needs(rondo_graph *graph, size_t more, rondo_random_needs **out) {
  rondo_random_needs *needs = graph->random.object;
  if (needs != NULL && atomic_load_explicit(&needs->references, memory_order_acquire) == 1) {
    *out = needs;
    return rondo_array_reserve(&needs->allocator, &needs->list, needs->list.count + more);
  }
  RONDO_TRY(make_needs(&graph->allocator, needs, more, out));
  hang(graph, *out);
  return RONDO_OK;
}

static rondo_random_need *find_need(const rondo_random_needs *needs, const rondo_generator *generator) {
  for (size_t i = 0; needs != NULL && i < needs->list.count; i++)
    if (needs->list.items[i].generator == generator) return &needs->list.items[i];
  return NULL;
}

/* Room is there. */
static rondo_random_need *find_or_add(rondo_random_needs *needs, rondo_generator *generator) {
  rondo_random_need *need = find_need(needs, generator);
  if (need != NULL) return need;
  assert(needs->list.count < needs->list.capacity);
  need = &needs->list.items[needs->list.count++];
  *need = (rondo_random_need){.generator = generator};
  rondo_generator_retain(generator);
  return need;
}

/* Each generator once, whole calls of the function, and a child's share within that of the graph around it. */
static void check_needs(const rondo_graph *graph) {
#ifdef NDEBUG
  (void)graph;
#else
  const rondo_random_needs *needs = rondo_random_needs_of(graph);
  const rondo_random_needs *around = graph->parent == NULL ? NULL : rondo_random_needs_of(graph->parent);
  for (size_t i = 0; needs != NULL && i < needs->list.count; i++) {
    const rondo_random_need *need = &needs->list.items[i], *outer = find_need(around, need->generator);
    assert(find_need(needs, need->generator) == need);
    assert(atomic_load_explicit(&need->generator->references, memory_order_relaxed) > 0);
    assert(need->increment % RONDO_RANDOM_STEP == 0 && need->increment <= RONDO_RANDOM_MOST);
    assert(around == NULL || (outer != NULL && need->base + need->increment <= outer->increment));
  }
#endif
}

/* Drawing --------------------------------------------------------------------------------------------------------- */

static rondo_status check_room(const char *call, const rondo_graph *graph, const rondo_generator *generator,
                               uint64_t increment) {
  char label[RONDO_LABEL_BYTES];
  const rondo_random_need *need = find_need(rondo_random_needs_of(graph), generator);
  if (need == NULL || increment <= RONDO_RANDOM_MOST - need->increment) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                    "%s: %s would need over 2^62 random numbers of each subsequence: reserve less, or make several "
                    "graphs",
                    call, rondo_graph_label(label, graph));
}

/* What the graph around needs was settled when the child was embedded. */
static rondo_status refuse_child(const char *call, const rondo_graph *graph) {
  char label[RONDO_LABEL_BYTES];
  if (!graph->is_child) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                    "%s: %s belongs to a child node and cannot draw more random numbers: draw them in the graph "
                    "before it is embedded",
                    call, rondo_graph_label(label, graph));
}

rondo_status rondo_random_draw(const char *call, rondo_graph *graph, rondo_generator *generator, uint64_t increment,
                               uint64_t *out_offset) {
  rondo_random_needs *needs;
  RONDO_TRY(refuse_child(call, graph));
  RONDO_TRY(check_room(call, graph, generator, increment));
  RONDO_TRY(own_needs(graph, 1, &needs));
  rondo_random_need *need = find_or_add(needs, generator);
  *out_offset = need->increment;
  need->increment += increment;
  check_needs(graph);
  return RONDO_OK;
}

void rondo_random_give_back(rondo_graph *graph, const rondo_generator *generator, uint64_t increment, uint64_t offset) {
  rondo_random_need *need = find_need(rondo_random_needs_of(graph), generator);
  if (need != NULL && need->increment == offset + increment) need->increment = offset;
}

rondo_status rondo_graph_get_random_increment(const rondo_graph *graph, const rondo_generator *generator,
                                              uint64_t *out_increment) {
  const char *const call = "rondo_graph_get_random_increment";
  if (out_increment == NULL) return rondo_refuse_null(call, "out_increment");
  *out_increment = 0;
  RONDO_TRY(rondo_check_call(call, "the graph", graph));
  if (generator == NULL) return rondo_refuse_null(call, "the generator");
  const rondo_random_need *need = find_need(rondo_random_needs_of(graph), generator);
  if (need != NULL) *out_increment = need->increment;
  return RONDO_OK;
}

/* Checking -------------------------------------------------------------------------------------------------------- */

static rondo_status check_words(const char *call, const rondo_graph *graph, const rondo_kernel *kernel,
                                const char *value, uint32_t bytes) {
  char label[RONDO_GENERATOR_LABEL], of[RONDO_LABEL_BYTES];
  for (size_t at = 0; at + sizeof(void *) <= bytes; at += sizeof(void *)) {
    const void *word;
    memcpy(&word, value + at, sizeof word);
    const rondo_generator *generator = rondo_generator_find(graph->device, word, label);
    if (generator != NULL && find_need(rondo_random_needs_of(graph), generator) == NULL)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_FOREIGN_ADDRESS,
                        "%s: kernel '%s' is given cells of %s, of which %s reserves nothing: reserve in the graph that "
                        "the node is for",
                        call, kernel->name, label, rondo_graph_label(of, graph));
  }
  return RONDO_OK;
}

rondo_status rondo_random_check_node(const char *call, const rondo_graph *graph, const rondo_node_params *params) {
  if (params->kind != RONDO_NODE_KERNEL || graph->device == NULL || rondo_random_store_made(graph->device) == NULL)
    return RONDO_OK;
  const rondo_kernel_node *node = &params->as.kernel;
  for (uint32_t i = 0; i < node->kernel->parameter_count; i++)
    RONDO_TRY(check_words(call, graph, node->kernel, node->args[i], node->kernel->parameters[i].bytes));
  return RONDO_OK;
}

/* Embedding ------------------------------------------------------------------------------------------------------- */

/* The child's list with its places in the graph's. */
static void place_needs(rondo_random_needs *child, const rondo_random_needs *around) {
  for (size_t i = 0; i < child->list.count; i++) {
    rondo_random_need *need = &child->list.items[i];
    const rondo_random_need *outer = find_need(around, need->generator);
    need->base = outer == NULL ? 0 : outer->increment;
  }
}

rondo_status rondo_random_embed_begin(const char *call, rondo_graph *graph, const rondo_graph *child,
                                      rondo_random_embedding *out) {
  const rondo_random_needs *needs = child == NULL ? NULL : rondo_random_needs_of(child);
  rondo_random_needs *around;
  *out = (rondo_random_embedding){0};
  if (needs == NULL) return RONDO_OK;
  RONDO_TRY(refuse_child(call, graph));
  for (size_t i = 0; i < needs->list.count; i++)
    RONDO_TRY(check_room(call, graph, needs->list.items[i].generator, needs->list.items[i].increment));
  RONDO_TRY(make_needs(&graph->allocator, needs, 0, &out->needs));
  place_needs(out->needs, rondo_random_needs_of(graph));
  const rondo_status status = own_needs(graph, needs->list.count, &around);
  if (status != RONDO_OK) rondo_random_embed_end(graph, NULL, out);
  return status;
}

void rondo_random_embed_end(rondo_graph *graph, rondo_graph *embedded, rondo_random_embedding *embedding) {
  rondo_random_needs *needs = embedding->needs;
  embedding->needs = NULL;
  if (needs == NULL) return;
  if (embedded == NULL) {
    release_needs(needs);
    return;
  }
  for (size_t i = 0; i < needs->list.count; i++)
    find_or_add(graph->random.object, needs->list.items[i].generator)->increment += needs->list.items[i].increment;
  hang(embedded, needs);
  check_needs(graph);
  check_needs(embedded);
}

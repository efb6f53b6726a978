/* SPDX-License-Identifier: MIT
 * What graphs reserve of generators (see random_internal.h): lists that a graph shares with its clones until one of
 * them changes. When a child graph is embedded, its reservations are appended to those of its parent, so that a launch
 * draws in the order of recording.
 */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "exec/api_check.h"
#include "exec/random/random_internal.h"
#include "graph/graph.h"

/* Lists ----------------------------------------------------------------------------------------------------------- */

static void retain_reservations(void *object) {
  atomic_fetch_add_explicit(&((rondo_random_reservations *)object)->references, 1, memory_order_relaxed);
}

static void release_reservations(void *object) {
  rondo_random_reservations *reservations = object;
  assert(atomic_load_explicit(&reservations->references, memory_order_relaxed) > 0);
  if (atomic_fetch_sub_explicit(&reservations->references, 1, memory_order_acq_rel) > 1) return;
  const rondo_allocator allocator = reservations->allocator;
  for (size_t i = 0; i < reservations->list.count; i++) rondo_generator_release(reservations->list.items[i].generator);
  rondo_array_free(&allocator, &reservations->list);
  rondo_release(&allocator, reservations, 1, sizeof *reservations);
}

/* A copy of `from`, which may be NULL, with capacity for `more`. */
static rondo_status make_reservations(const rondo_allocator *allocator, const rondo_random_reservations *from,
                                      size_t more, rondo_random_reservations **out) {
  const size_t count = from == NULL ? 0 : from->list.count;
  rondo_random_reservations *reservations;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *reservations, &reservations));
  reservations->allocator = *allocator;
  atomic_init(&reservations->references, 1);
  const rondo_status status = rondo_array_reserve(allocator, &reservations->list, count + more);
  if (status != RONDO_OK) {
    rondo_release(allocator, reservations, 1, sizeof *reservations);
    return status;
  }
  for (size_t i = 0; i < count; i++) {
    reservations->list.items[i] = from->list.items[i];
    rondo_generator_retain(reservations->list.items[i].generator);
  }
  reservations->list.count = count;
  *out = reservations;
  return RONDO_OK;
}

static void attach(rondo_graph *graph, rondo_random_reservations *reservations) {
  if (graph->random.object != NULL) graph->random.release(graph->random.object);
  graph->random =
      (rondo_graph_attachment){.object = reservations, .retain = retain_reservations, .release = release_reservations};
}

/* A list that the graph shares with no clone, with capacity for `more`. */
static rondo_status own_reservations(rondo_graph *graph, size_t more, rondo_random_reservations **out) {
  rondo_random_reservations *reservations = graph->random.object;
  if (reservations != NULL && atomic_load_explicit(&reservations->references, memory_order_acquire) == 1) {
    *out = reservations;
    return rondo_array_reserve(&reservations->allocator, &reservations->list, reservations->list.count + more);
  }
  RONDO_TRY(make_reservations(&graph->allocator, reservations, more, out));
  attach(graph, *out);
  return RONDO_OK;
}

static rondo_random_reservation *find_reservation(const rondo_random_reservations *reservations,
                                                  const rondo_generator *generator) {
  for (size_t i = 0; reservations != NULL && i < reservations->list.count; i++)
    if (reservations->list.items[i].generator == generator) return &reservations->list.items[i];
  return NULL;
}

/* The list has capacity for one more. */
static rondo_random_reservation *find_or_add(rondo_random_reservations *reservations, rondo_generator *generator) {
  rondo_random_reservation *reservation = find_reservation(reservations, generator);
  if (reservation != NULL) return reservation;
  assert(reservations->list.count < reservations->list.capacity);
  reservation = &reservations->list.items[reservations->list.count++];
  *reservation = (rondo_random_reservation){.generator = generator};
  rondo_generator_retain(generator);
  return reservation;
}

/* Asserts that each generator occurs once, increments are multiples of RONDO_RANDOM_STEP, and the numbers of a child
 * are among those of the graph around it. */
static void check_reservations(const rondo_graph *graph) {
#ifdef NDEBUG
  (void)graph;
#else
  const rondo_random_reservations *reservations = rondo_random_reservations_of(graph);
  const rondo_random_reservations *around = graph->parent == NULL ? NULL : rondo_random_reservations_of(graph->parent);
  for (size_t i = 0; reservations != NULL && i < reservations->list.count; i++) {
    const rondo_random_reservation *reservation = &reservations->list.items[i],
                                   *outer = find_reservation(around, reservation->generator);
    assert(find_reservation(reservations, reservation->generator) == reservation);
    assert(atomic_load_explicit(&reservation->generator->references, memory_order_relaxed) > 0);
    assert(reservation->increment % RONDO_RANDOM_STEP == 0 && reservation->increment <= RONDO_RANDOM_MOST);
    assert(around == NULL || (outer != NULL && reservation->base + reservation->increment <= outer->increment));
  }
#endif
}

/* Drawing --------------------------------------------------------------------------------------------------------- */

static rondo_status check_limit(const char *call, const rondo_graph *graph, const rondo_generator *generator,
                                uint64_t increment) {
  char label[RONDO_LABEL_BYTES];
  const rondo_random_reservation *reservation = find_reservation(rondo_random_reservations_of(graph), generator);
  if (reservation == NULL || increment <= RONDO_RANDOM_MOST - reservation->increment) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                    "%s: %s would draw more than 2^62 random numbers of each subsequence: reserve less, or create "
                    "several graphs",
                    call, rondo_graph_label(label, graph));
}

/* The reservations of the graph around were fixed when the child was embedded. */
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
  rondo_random_reservations *reservations;
  RONDO_TRY(refuse_child(call, graph));
  RONDO_TRY(check_limit(call, graph, generator, increment));
  RONDO_TRY(own_reservations(graph, 1, &reservations));
  rondo_random_reservation *reservation = find_or_add(reservations, generator);
  *out_offset = reservation->increment;
  reservation->increment += increment;
  check_reservations(graph);
  return RONDO_OK;
}

void rondo_random_give_back(rondo_graph *graph, const rondo_generator *generator, uint64_t increment, uint64_t offset) {
  rondo_random_reservation *reservation = find_reservation(rondo_random_reservations_of(graph), generator);
  if (reservation != NULL && reservation->increment == offset + increment) reservation->increment = offset;
}

rondo_status rondo_graph_get_random_increment(const rondo_graph *graph, const rondo_generator *generator,
                                              uint64_t *out_increment) {
  const char *const call = "rondo_graph_get_random_increment";
  if (out_increment == NULL) return rondo_refuse_null(call, "out_increment");
  *out_increment = 0;
  RONDO_TRY(rondo_check_call(call, "the graph", graph));
  if (generator == NULL) return rondo_refuse_null(call, "the generator");
  const rondo_random_reservation *reservation = find_reservation(rondo_random_reservations_of(graph), generator);
  if (reservation != NULL) *out_increment = reservation->increment;
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
    if (generator != NULL && find_reservation(rondo_random_reservations_of(graph), generator) == NULL)
      return rondo_fail(
          RONDO_INVALID_ARGUMENT, RONDO_REASON_FOREIGN_ADDRESS,
          "%s: kernel '%s' gets cells of %s, of which %s reserves nothing: reserve in the graph of the node", call,
          kernel->name, label, rondo_graph_label(of, graph));
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

/* Sets where the child's numbers begin among those of the graph around. */
static void set_bases(rondo_random_reservations *child, const rondo_random_reservations *around) {
  for (size_t i = 0; i < child->list.count; i++) {
    rondo_random_reservation *reservation = &child->list.items[i];
    const rondo_random_reservation *outer = find_reservation(around, reservation->generator);
    reservation->base = outer == NULL ? 0 : outer->increment;
  }
}

rondo_status rondo_random_embed_begin(const char *call, rondo_graph *graph, const rondo_graph *child,
                                      rondo_random_reservations **out) {
  const rondo_random_reservations *own = child == NULL ? NULL : rondo_random_reservations_of(child);
  rondo_random_reservations *around;
  *out = NULL;
  if (own == NULL) return RONDO_OK;
  RONDO_TRY(refuse_child(call, graph));
  for (size_t i = 0; i < own->list.count; i++)
    RONDO_TRY(check_limit(call, graph, own->list.items[i].generator, own->list.items[i].increment));
  RONDO_TRY(make_reservations(&graph->allocator, own, 0, out));
  set_bases(*out, rondo_random_reservations_of(graph));
  const rondo_status status = own_reservations(graph, own->list.count, &around);
  if (status == RONDO_OK) return RONDO_OK;
  release_reservations(*out);
  *out = NULL;
  return status;
}

void rondo_random_embed_end(rondo_graph *graph, rondo_graph *embedded, rondo_random_reservations *reservations) {
  if (reservations == NULL) return;
  if (embedded == NULL) {
    release_reservations(reservations);
    return;
  }
  for (size_t i = 0; i < reservations->list.count; i++) {
    const rondo_random_reservation *added = &reservations->list.items[i];
    find_or_add(graph->random.object, added->generator)->increment += added->increment;
  }
  attach(embedded, reservations);
  check_reservations(graph);
  check_reservations(embedded);
}

/* SPDX-License-Identifier: MIT
 * The cells of execs: which slots an exec has, which addresses they replace, and filling them for a launch.
 *
 * Fills on the launching queue write only the words that differ from those of the last launch: mostly one, the lower
 * half of the offset. Invariant: all fills and launches that touch the slots come before the event, if it was ever
 * recorded, and what comes next on another queue waits for it.
 *
 * Threads: as the exec; cells that an update's draft shares belong to that exec.
 */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "exec/random/random_cells.h"
#include "exec/random/random_internal.h"
#include "graph/graph.h"
#include "graph/node_name.h"
#include "memory/node_addresses.h"

/* A generator that a launch moves on, and what it was at this launch. */
typedef struct random_draw {
  rondo_generator *generator; /* a reference */
  uint64_t increment, seed, offset;
} random_draw;

/* A need of a graph: the cells at the same index. */
typedef struct random_slot {
  const rondo_graph *graph; /* a clone that is lowered */
  size_t draw;
  uint64_t base; /* of its numbers in those of the launch */
} random_slot;

struct rondo_exec_random {
  rondo_allocator allocator;
  RONDO_ARRAY(random_draw) draws;
  RONDO_ARRAY(random_slot) slots;
  rondo_random_cells *cells;
};

/* Slots ----------------------------------------------------------------------------------------------------------- */

static rondo_status add_draws(rondo_exec_random *random, const rondo_random_needs *needs) {
  RONDO_TRY(rondo_array_reserve(&random->allocator, &random->draws, needs->list.count));
  for (size_t i = 0; i < needs->list.count; i++) {
    const rondo_random_need *need = &needs->list.items[i];
    random->draws.items[i] = (random_draw){.generator = need->generator, .increment = need->increment};
    rondo_generator_retain(need->generator);
  }
  random->draws.count = needs->list.count;
  return RONDO_OK;
}

/* A graph around has all that those in it need. */
static size_t find_draw(const rondo_exec_random *random, const rondo_generator *generator) {
  size_t at = 0;
  while (at < random->draws.count && random->draws.items[at].generator != generator) at++;
  assert(at < random->draws.count);
  return at;
}

/* The graph's slot for the generator; NULL when there is none. */
static const random_slot *find_slot(const rondo_exec_random *random, const rondo_graph *graph,
                                    const rondo_generator *generator) {
  for (size_t i = 0; i < random->slots.count; i++) {
    const random_slot *slot = &random->slots.items[i];
    if (slot->graph == graph && random->draws.items[slot->draw].generator == generator) return slot;
  }
  return NULL;
}

/* `around` is NULL for the whole. */
static rondo_status add_slots(rondo_exec_random *random, const rondo_graph *graph, const rondo_graph *around) {
  const rondo_random_needs *needs = rondo_random_needs_of(graph);
  if (needs == NULL) return RONDO_OK;
  for (size_t i = 0; i < needs->list.count; i++) {
    const rondo_random_need *need = &needs->list.items[i];
    const random_slot *outer = around == NULL ? NULL : find_slot(random, around, need->generator);
    const random_slot slot = {.graph = graph,
                              .draw = find_draw(random, need->generator),
                              .base = outer == NULL ? 0 : outer->base + need->base};
    RONDO_TRY(rondo_array_push(&random->allocator, &random->slots, &slot));
  }
  const rondo_graph *child;
  for (uint32_t at = 0; (child = rondo_graph_next_child(graph, &at)) != NULL;)
    RONDO_TRY(add_slots(random, child, graph));
  return RONDO_OK;
}

/* Addresses ------------------------------------------------------------------------------------------------------- */

static uint64_t *address_of(const rondo_exec_random *random, const random_slot *slot) {
  assert(slot >= random->slots.items && slot < random->slots.items + random->slots.count);
  return random->cells->address + 2 * (size_t)(slot - random->slots.items);
}

/* What takes the place of an address of a generator's cells, as the graph's slots have it; NULL for other addresses. */
static char *find_place(const rondo_exec_random *random, const rondo_graph *graph, const char *address) {
  for (size_t i = 0; i < random->slots.count; i++) {
    const random_slot *slot = &random->slots.items[i];
    if (slot->graph != graph) continue;
    const rondo_generator *generator = random->draws.items[slot->draw].generator;
    if (rondo_generator_has_cell(generator, address))
      return (char *)address_of(random, slot) + (address - (const char *)generator->cells);
  }
  return NULL;
}

/* The generator whose cells they are, of those that a launch moves on; NULL when it is none. */
static const rondo_generator *find_owner(const rondo_exec_random *random, const char *address) {
  for (size_t i = 0; i < random->draws.count; i++)
    if (rondo_generator_has_cell(random->draws.items[i].generator, address)) return random->draws.items[i].generator;
  return NULL;
}

static rondo_status fail_unreserved(const rondo_graph *graph, uint32_t slot, const rondo_generator *generator) {
  char label[RONDO_LABEL_BYTES], of[RONDO_GENERATOR_LABEL];
  return rondo_fail_node(RONDO_INVALID_GRAPH, RONDO_REASON_FOREIGN_ADDRESS, rondo_graph_outer_number(graph, NULL, slot),
                         "%s draws from %s, of which its graph reserves nothing: reserve there",
                         rondo_node_label_in(label, graph, NULL, slot), rondo_generator_label(of, generator));
}

/* Pointers are one word; other parameters, also those of kernels that libraries launched, may have some. */
static rondo_status rewrite_words(const rondo_exec_random *random, const rondo_graph *graph, uint32_t slot, char *value,
                                  uint32_t bytes) {
  for (size_t at = 0; at + sizeof(char *) <= bytes; at += sizeof(char *)) {
    const char *word;
    memcpy(&word, value + at, sizeof word);
    const rondo_generator *owner = find_owner(random, word);
    if (owner == NULL) continue;
    const char *place = find_place(random, graph, word);
    if (place == NULL) return fail_unreserved(graph, slot, owner);
    memcpy(value + at, &place, sizeof place);
  }
  return RONDO_OK;
}

static rondo_status rewrite_kernel(const rondo_exec_random *random, const rondo_graph *graph, uint32_t slot) {
  const rondo_graph_node *node = rondo_graph_at(graph, slot);
  const rondo_kernel *kernel = node->params.as.kernel.kernel;
  for (uint32_t i = 0; i < kernel->parameter_count; i++)
    RONDO_TRY(
        rewrite_words(random, graph, slot, (char *)node->arguments + kernel->offsets[i], kernel->parameters[i].bytes));
  return RONDO_OK;
}

static rondo_status rewrite_graph(const rondo_exec_random *random, const rondo_graph *graph) {
  for (uint32_t slot = 0; slot < graph->nodes.count; slot++) {
    const rondo_graph_node *node = &graph->nodes.items[slot];
    if (node->live && node->params.kind == RONDO_NODE_KERNEL) RONDO_TRY(rewrite_kernel(random, graph, slot));
    if (node->live && node->params.kind == RONDO_NODE_CHILD) RONDO_TRY(rewrite_graph(random, node->params.as.child));
  }
  return RONDO_OK;
}

/* Life ------------------------------------------------------------------------------------------------------------ */

/* What runs as the driver captured it cannot be given other addresses. */
static rondo_status refuse_bound(const rondo_graph *graph) {
  char text[RONDO_BOUND_TEXT], label[RONDO_LABEL_BYTES];
  if (!graph->is_bound) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK, "%s cannot draw random numbers: %s",
                    rondo_graph_label(label, graph), rondo_graph_bound_text(graph, text));
}

static rondo_status fill_random(rondo_exec_random *random, rondo_graph *graph, const rondo_exec_random *like) {
  RONDO_TRY(add_draws(random, rondo_random_needs_of(graph)));
  RONDO_TRY(add_slots(random, graph, NULL));
  if (like != NULL && like->slots.count == random->slots.count)
    random->cells = rondo_random_cells_retain(like->cells);
  else
    RONDO_TRY(rondo_random_cells_create(graph->device, random->slots.count, &random->cells));
  assert(random->cells->count == random->slots.count);
  return rewrite_graph(random, graph);
}

rondo_status rondo_exec_random_create(rondo_graph *graph, const rondo_exec_random *like, rondo_exec_random **out) {
  *out = NULL;
  if (!rondo_random_is_drawn(graph)) return RONDO_OK;
  RONDO_TRY(refuse_bound(graph));
  const rondo_allocator *allocator = &graph->device->allocator;
  rondo_exec_random *random;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *random, &random));
  random->allocator = *allocator;
  const rondo_status status = fill_random(random, graph, like);
  if (status != RONDO_OK) {
    rondo_exec_random_destroy(random);
    return status;
  }
  *out = random;
  return RONDO_OK;
}

void rondo_exec_random_destroy(rondo_exec_random *random) {
  if (random == NULL) return;
  const rondo_allocator allocator = random->allocator;
  for (size_t i = 0; i < random->draws.count; i++) rondo_generator_release(random->draws.items[i].generator);
  if (random->cells != NULL) rondo_random_cells_release(random->cells);
  rondo_array_free(&allocator, &random->slots);
  rondo_array_free(&allocator, &random->draws);
  rondo_release(&allocator, random, 1, sizeof *random);
}

uint64_t rondo_exec_random_host_bytes(const rondo_exec_random *random) {
  return sizeof *random + random->draws.capacity * sizeof(random_draw) + random->slots.capacity * sizeof(random_slot) +
         rondo_random_cells_host_bytes(random->cells);
}

uint64_t rondo_exec_random_device_bytes(const rondo_exec_random *random) {
  return random->slots.count * RONDO_CELL_BYTES;
}

/* Launching ------------------------------------------------------------------------------------------------------- */

static void draw(rondo_exec_random *random) {
  for (size_t i = 0; i < random->draws.count; i++) {
    random_draw *at = &random->draws.items[i];
    at->seed = atomic_load_explicit(&at->generator->seed, memory_order_relaxed);
    at->offset = rondo_generator_take(at->generator, at->increment);
  }
}

static void take_back(const rondo_exec_random *random) {
  for (size_t i = 0; i < random->draws.count; i++) {
    const random_draw *at = &random->draws.items[i];
    rondo_generator_untake(at->generator, at->increment, at->offset);
  }
}

static rondo_status fill_slots(const rondo_exec_random *random, rondo_queue *queue) {
  for (size_t i = 0; i < random->slots.count; i++) {
    const random_slot *slot = &random->slots.items[i];
    const random_draw *of = &random->draws.items[slot->draw];
    assert(slot->draw < random->draws.count && slot->base <= of->increment);
    RONDO_TRY(rondo_random_cells_write(random->cells, queue, i, of->seed, of->offset + slot->base));
  }
  return RONDO_OK;
}

rondo_status rondo_exec_random_begin(rondo_exec_random *random, rondo_queue *queue) {
  RONDO_TRY(rondo_random_cells_enter(random->cells, queue));
  draw(random);
  const rondo_status status = fill_slots(random, queue);
  return status == RONDO_OK ? RONDO_OK : rondo_exec_random_end(random, queue, status);
}

rondo_status rondo_exec_random_end(rondo_exec_random *random, rondo_queue *queue, rondo_status launched) {
  if (launched != RONDO_OK) take_back(random);
  return rondo_random_cells_leave(random->cells, queue, launched);
}

/* One node -------------------------------------------------------------------------------------------------------- */

static rondo_status fail_foreign(const char *name, uint32_t parameter) {
  return rondo_fail(RONDO_UPDATE_REFUSED, RONDO_REASON_PARAMETERS_CHANGED,
                    "parameter %u of kernel '%s' has the address of a generator's cells where the exec has none in "
                    "place of it: use what was reserved in the node's own graph, in a parameter declared RONDO_READS",
                    (unsigned)parameter, name);
}

static bool has_cells(const rondo_exec_random *random, const char *value, uint32_t bytes) {
  for (size_t at = 0; at + sizeof(char *) <= bytes; at += sizeof(char *)) {
    const char *word;
    memcpy(&word, value + at, sizeof word);
    if (find_owner(random, word) != NULL) return true;
  }
  return false;
}

rondo_status rondo_exec_random_translate(const rondo_exec_random *random, const rondo_graph *graph,
                                         const rondo_kernel_node *kernel, const void **args, void **addresses) {
  for (uint32_t i = 0; i < kernel->arg_count; i++) {
    const rondo_parameter *parameter = &kernel->kernel->parameters[i];
    if (!has_cells(random, args[i], parameter->bytes)) continue;
    const char *address;
    memcpy(&address, args[i], sizeof address);
    char *place = rondo_parameter_is_pointer(parameter) ? find_place(random, graph, address) : NULL;
    if (place == NULL) return fail_foreign(kernel->kernel->name, i);
    addresses[i] = place;
    args[i] = &addresses[i];
  }
  return RONDO_OK;
}

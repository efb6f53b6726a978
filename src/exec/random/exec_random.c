/* SPDX-License-Identifier: MIT
 * The cells of execs: device memory with a seed and an offset for each reservation of each graph in the exec. This file
 * assigns a slot to each reservation, rewrites addresses of generators' cells to addresses of slots, and fills the
 * slots for a launch.
 *
 * A fill writes only the words that differ from those of the last launch: usually one, the lower half of the offset.
 * Invariant: the event, once it is recorded, comes after all fills and launches that use the slots. Work on another
 * queue waits for it before it uses them.
 *
 * References to cells are counted: an exec and the draft of its update can share them. Cells that no exec uses stay in
 * the device's list until their last launch is done.
 *
 * Threads: as the exec. The device's list has a lock, which is a leaf.
 */
#include <assert.h>
#include <string.h>

#include "exec/api_check.h"
#include "exec/random/random_internal.h"
#include "graph/graph.h"
#include "graph/node_name.h"
#include "memory/device_memory.h"
#include "memory/node_addresses.h"

/* What is in the four words of a slot once the work enqueued so far is done. */
typedef struct slot_words {
  uint32_t words[4];
  bool known[4];
} slot_words;

/* Device memory for slots. */
typedef struct rondo_random_cells {
  rondo_device *device;
  uint32_t references;
  size_t count;
  uint64_t *address;         /* count * {seed, offset} */
  slot_words *written;       /* one for each slot */
  rondo_queue *queue;        /* of the last launch, only compared: it may be destroyed; NULL: no launch is pending */
  rondo_device_event *event; /* after that launch */
  struct rondo_random_cells *next; /* in the device's list */
} random_cells;

/* What a launch draws from a generator. */
typedef struct random_draw {
  rondo_generator *generator; /* a reference */
  uint64_t increment;
  uint64_t seed, offset; /* of the current launch */
} random_draw;

/* One reservation of a graph. Its cells have the same index. */
typedef struct random_slot {
  const rondo_graph *graph; /* a clone that is lowered */
  size_t draw;
  uint64_t base; /* where its numbers begin among those that the launch draws */
} random_slot;

struct rondo_exec_random {
  rondo_allocator allocator;
  RONDO_ARRAY(random_draw) draws;
  RONDO_ARRAY(random_slot) slots;
  random_cells *cells;
};

/* Device memory ---------------------------------------------------------------------------------------------------- */

rondo_status rondo_random_allocate(rondo_device *device, size_t bytes, const char *name, void **out_address) {
  rondo_device_memory *memory;
  RONDO_TRY(rondo_device_memory_of(device, &memory));
  RONDO_TRY(rondo_memory_allocate(memory, NULL, NULL, bytes, name, out_address));
  rondo_device_end_use(device, &rondo_allocation_use);
  return RONDO_OK;
}

void rondo_random_free(rondo_device *device, void *address) {
  rondo_device_memory *memory = atomic_load_explicit(&device->memory.state, memory_order_acquire);
  rondo_device_begin_use(device, &rondo_allocation_use);
  rondo_status_ignore(rondo_memory_free(memory, "freeing cells", NULL, address), "the library's own memory is unused");
}

static void free_cells(random_cells *cells) {
  rondo_device *device = cells->device;
  assert(cells->references <= 1); /* 1: creating it failed */
  if (cells->event != NULL) cells->event->ops->destroy(cells->event);
  if (cells->address != NULL) rondo_random_free(device, cells->address);
  rondo_release(&device->allocator, cells->written, cells->count, sizeof *cells->written);
  rondo_release(&device->allocator, cells, 1, sizeof *cells);
}

/* The device's store ----------------------------------------------------------------------------------------------- */

/* The device closes. */
static void free_store(void *state) {
  rondo_random_store *store = state;
  const rondo_allocator allocator = store->allocator;
  while (store->waiting != NULL) {
    random_cells *cells = store->waiting;
    store->waiting = cells->next;
    rondo_status_ignore(cells->event->ops->synchronize(cells->event), "the work that failed reports it");
    free_cells(cells);
  }
  pthread_mutex_destroy(&store->lock);
  rondo_release(&allocator, store, 1, sizeof *store);
}

static void init_store(void *state, const rondo_allocator *allocator) {
  rondo_random_store *store = state;
  store->allocator = *allocator;
  pthread_mutex_init(&store->lock, NULL);
  atomic_init(&store->first, UINTPTR_MAX);
}

rondo_status rondo_random_store_of(rondo_device *device, rondo_random_store **out) {
  static const rondo_state_kind kind = {sizeof(rondo_random_store), init_store, free_store};
  return rondo_device_state(device, &device->random, &kind, out);
}

static void put(rondo_random_store *store, random_cells *cells) {
  pthread_mutex_lock(&store->lock);
  cells->next = store->waiting;
  store->waiting = cells;
  pthread_mutex_unlock(&store->lock);
}

static bool is_done(const random_cells *cells) {
  return cells->queue == NULL || cells->event->ops->query(cells->event) == RONDO_OK;
}

/* Frees the cells in the list whose launches are done. */
static void sweep(rondo_random_store *store) {
  pthread_mutex_lock(&store->lock);
  random_cells *cells = store->waiting;
  store->waiting = NULL;
  pthread_mutex_unlock(&store->lock);
  while (cells != NULL) {
    random_cells *next = cells->next;
    if (is_done(cells))
      free_cells(cells);
    else
      put(store, cells);
    cells = next;
  }
}

/* Cells ------------------------------------------------------------------------------------------------------------ */

static rondo_status fill_cells(random_cells *cells) {
  rondo_device *device = cells->device;
  void *address;
  RONDO_TRY(rondo_allocate_items(&device->allocator, cells->count, sizeof *cells->written, &cells->written));
  RONDO_TRY(device->ops->event_create(device, false, &cells->event));
  RONDO_TRY(rondo_random_allocate(device, cells->count * RONDO_CELL_BYTES, "random cells of an exec", &address));
  cells->address = address;
  return RONDO_OK;
}

static rondo_status create_cells(rondo_device *device, size_t count, random_cells **out) {
  rondo_random_store *store;
  random_cells *cells;
  RONDO_TRY(rondo_random_store_of(device, &store));
  sweep(store);
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *cells, &cells));
  *cells = (random_cells){.device = device, .references = 1, .count = count};
  const rondo_status status = fill_cells(cells);
  if (status != RONDO_OK) {
    free_cells(cells);
    return status;
  }
  *out = cells;
  return RONDO_OK;
}

/* The last release frees the cells once their launches are done. It does not wait for them. */
static void release_cells(random_cells *cells) {
  rondo_random_store *store = rondo_random_store_made(cells->device);
  assert(cells->references > 0);
  if (--cells->references > 0) return;
  put(store, cells);
  sweep(store);
}

/* Slots ----------------------------------------------------------------------------------------------------------- */

static rondo_status add_draws(rondo_exec_random *random, const rondo_random_reservations *reservations) {
  RONDO_TRY(rondo_array_reserve(&random->allocator, &random->draws, reservations->list.count));
  for (size_t i = 0; i < reservations->list.count; i++) {
    const rondo_random_reservation *reservation = &reservations->list.items[i];
    random->draws.items[i] = (random_draw){.generator = reservation->generator, .increment = reservation->increment};
    rondo_generator_retain(reservation->generator);
  }
  random->draws.count = reservations->list.count;
  return RONDO_OK;
}

/* The outermost graph has the reservations of all graphs inside it. */
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

/* `around` is NULL for the outermost graph. */
static rondo_status add_slots(rondo_exec_random *random, const rondo_graph *graph, const rondo_graph *around) {
  const rondo_random_reservations *reservations = rondo_random_reservations_of(graph);
  if (reservations == NULL) return RONDO_OK;
  for (size_t i = 0; i < reservations->list.count; i++) {
    const rondo_random_reservation *reservation = &reservations->list.items[i];
    const random_slot *outer = around == NULL ? NULL : find_slot(random, around, reservation->generator);
    const random_slot slot = {.graph = graph,
                              .draw = find_draw(random, reservation->generator),
                              .base = outer == NULL ? 0 : outer->base + reservation->base};
    RONDO_TRY(rondo_array_push(&random->allocator, &random->slots, &slot));
  }
  const rondo_graph *child;
  for (uint32_t at = 0; (child = rondo_graph_next_child(graph, &at)) != NULL;)
    RONDO_TRY(add_slots(random, child, graph));
  return RONDO_OK;
}

/* Addresses -------------------------------------------------------------------------------------------------------- */

static uint64_t *address_of(const rondo_exec_random *random, const random_slot *slot) {
  assert(slot >= random->slots.items && slot < random->slots.items + random->slots.count);
  return random->cells->address + 2 * (size_t)(slot - random->slots.items);
}

/* The address in the graph's slots that replaces an address of a generator's cells; NULL for other addresses. */
static char *find_replacement(const rondo_exec_random *random, const rondo_graph *graph, const char *address) {
  for (size_t i = 0; i < random->slots.count; i++) {
    const random_slot *slot = &random->slots.items[i];
    if (slot->graph != graph) continue;
    const rondo_generator *generator = random->draws.items[slot->draw].generator;
    if (rondo_generator_has_cell(generator, address))
      return (char *)address_of(random, slot) + (address - (const char *)generator->cells);
  }
  return NULL;
}

/* Finds the next word of a parameter, from *at on, that is an address of a generator's cells. A pointer is one word;
 * other parameters, also those of kernels that libraries launch, may contain several. Returns the generator, or NULL if
 * there is no such word. */
static const rondo_generator *find_cells(const rondo_exec_random *random, const char *value, uint32_t bytes,
                                         size_t *at) {
  for (; *at + sizeof(char *) <= bytes; *at += sizeof(char *)) {
    const char *word;
    memcpy(&word, value + *at, sizeof word);
    for (size_t i = 0; i < random->draws.count; i++)
      if (rondo_generator_has_cell(random->draws.items[i].generator, word)) return random->draws.items[i].generator;
  }
  return NULL;
}

static rondo_status fail_unreserved(const rondo_graph *graph, uint32_t slot, const rondo_generator *generator) {
  char label[RONDO_LABEL_BYTES], of[RONDO_GENERATOR_LABEL];
  return rondo_fail_node(RONDO_INVALID_GRAPH, RONDO_REASON_FOREIGN_ADDRESS, rondo_graph_outer_number(graph, NULL, slot),
                         "%s draws from %s, of which its graph reserves nothing: reserve there",
                         rondo_node_label_in(label, graph, NULL, slot), rondo_generator_label(of, generator));
}

static rondo_status rewrite_words(const rondo_exec_random *random, const rondo_graph *graph, uint32_t slot, char *value,
                                  uint32_t bytes) {
  const rondo_generator *owner;
  for (size_t at = 0; (owner = find_cells(random, value, bytes, &at)) != NULL; at += sizeof(char *)) {
    const char *word;
    memcpy(&word, value + at, sizeof word);
    const char *replacement = find_replacement(random, graph, word);
    if (replacement == NULL) return fail_unreserved(graph, slot, owner);
    memcpy(value + at, &replacement, sizeof replacement);
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

/* A bound graph runs as the driver captured it, and cannot get other addresses. */
static rondo_status refuse_bound(const rondo_graph *graph) {
  char text[RONDO_BOUND_TEXT], label[RONDO_LABEL_BYTES];
  if (!graph->is_bound) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK, "%s cannot draw random numbers: %s",
                    rondo_graph_label(label, graph), rondo_graph_bound_text(graph, text));
}

static rondo_status fill_random(rondo_exec_random *random, rondo_graph *graph, const rondo_exec_random *like) {
  RONDO_TRY(add_draws(random, rondo_random_reservations_of(graph)));
  RONDO_TRY(add_slots(random, graph, NULL));
  if (like != NULL && like->slots.count == random->slots.count) {
    random->cells = like->cells;
    random->cells->references++;
  } else {
    RONDO_TRY(create_cells(graph->device, random->slots.count, &random->cells));
  }
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
  if (random->cells != NULL) release_cells(random->cells);
  rondo_array_free(&allocator, &random->slots);
  rondo_array_free(&allocator, &random->draws);
  rondo_release(&allocator, random, 1, sizeof *random);
}

uint64_t rondo_exec_random_host_bytes(const rondo_exec_random *random) {
  return sizeof *random + random->draws.capacity * sizeof(random_draw) + random->slots.capacity * sizeof(random_slot) +
         sizeof *random->cells + random->cells->count * sizeof *random->cells->written;
}

uint64_t rondo_exec_random_device_bytes(const rondo_exec_random *random) {
  return random->slots.count * RONDO_CELL_BYTES;
}

/* Launching -------------------------------------------------------------------------------------------------------- */

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

static rondo_status write_word(const random_cells *cells, rondo_queue *queue, size_t index, uint32_t value) {
  const rondo_fill fill = {.dst = (uint32_t *)cells->address + index,
                           .value = value,
                           .element_bytes = sizeof value,
                           .width = 1,
                           .height = 1,
                           .pitch = sizeof value};
  const rondo_node_params work = {.kind = RONDO_NODE_FILL, .name = "random cells", .as.fill = fill};
  return queue->ops->submit(queue, &work);
}

/* Writes the words of a slot that change. */
static rondo_status write_slot(random_cells *cells, rondo_queue *queue, size_t slot, uint64_t seed, uint64_t offset) {
  const uint32_t words[4] = {(uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)offset, (uint32_t)(offset >> 32)};
  slot_words *written = &cells->written[slot];
  assert(slot < cells->count && offset % RONDO_RANDOM_STEP == 0);
  for (size_t i = 0; i < 4; i++) {
    if (written->known[i] && written->words[i] == words[i]) continue;
    written->known[i] = false;
    RONDO_TRY(write_word(cells, queue, 4 * slot + i, words[i]));
    written->words[i] = words[i];
    written->known[i] = true;
  }
  return RONDO_OK;
}

static rondo_status fill_slots(const rondo_exec_random *random, rondo_queue *queue) {
  for (size_t i = 0; i < random->slots.count; i++) {
    const random_slot *slot = &random->slots.items[i];
    const random_draw *of = &random->draws.items[slot->draw];
    assert(slot->draw < random->draws.count && slot->base <= of->increment);
    RONDO_TRY(write_slot(random->cells, queue, i, of->seed, of->offset + slot->base));
  }
  return RONDO_OK;
}

rondo_status rondo_exec_random_begin(rondo_exec_random *random, rondo_queue *queue) {
  const random_cells *cells = random->cells;
  assert(cells->references > 0 && cells->count == random->slots.count);
  if (cells->queue != NULL && cells->queue != queue) RONDO_TRY(queue->ops->wait(queue, cells->event));
  draw(random);
  const rondo_status status = fill_slots(random, queue);
  return status == RONDO_OK ? RONDO_OK : rondo_exec_random_end(random, queue, status);
}

rondo_status rondo_exec_random_end(rondo_exec_random *random, rondo_queue *queue, rondo_status launched) {
  random_cells *cells = random->cells;
  rondo_saved_error first;
  cells->queue = queue;
  if (__builtin_expect(launched == RONDO_OK, 1)) {
    if (__builtin_expect(queue->ops->record(queue, cells->event) == RONDO_OK, 1)) return RONDO_OK;
  } else {
    take_back(random);
    rondo_error_save(&first);
    if (queue->ops->record(queue, cells->event) == RONDO_OK) return rondo_error_raise(&first);
  }
  const rondo_status waited = queue->ops->await(queue); /* the event could not be recorded */
  cells->queue = NULL;
  return launched == RONDO_OK ? waited : rondo_error_raise(&first);
}

/* One node --------------------------------------------------------------------------------------------------------- */

static rondo_status fail_foreign(const char *name, uint32_t parameter) {
  return rondo_fail(RONDO_UPDATE_REFUSED, RONDO_REASON_PARAMETERS_CHANGED,
                    "parameter %u of kernel '%s' has an address of a generator's cells, for which the exec has no "
                    "cells of its own: pass what was reserved in the node's own graph, in a parameter declared "
                    "RONDO_READS",
                    (unsigned)parameter, name);
}

rondo_status rondo_exec_random_translate(const rondo_exec_random *random, const rondo_graph *graph,
                                         const rondo_kernel_node *kernel, const void **args, void **addresses) {
  for (uint32_t i = 0; i < kernel->arg_count; i++) {
    const rondo_parameter *parameter = &kernel->kernel->parameters[i];
    size_t at = 0;
    if (find_cells(random, args[i], parameter->bytes, &at) == NULL) continue;
    const char *address;
    memcpy(&address, args[i], sizeof address);
    char *replacement = rondo_parameter_is_pointer(parameter) ? find_replacement(random, graph, address) : NULL;
    if (replacement == NULL) return fail_foreign(kernel->kernel->name, i);
    addresses[i] = replacement;
    args[i] = &addresses[i];
  }
  return RONDO_OK;
}

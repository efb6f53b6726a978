/* SPDX-License-Identifier: MIT
 * Generators: creating them, their state, and reserving ranges of offsets. An eager reservation is one addition to the
 * offset. While the stream captures, a reservation belongs to the capture's graph (random_reservations.c).
 *
 * Threads: any; the offset is atomic. No thread may draw while another thread sets seed and offset.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/linked_list.h"
#include "base/versioned_struct.h"
#include "exec/capture/capture_internal.h"
#include "exec/random/random_internal.h"

static const rondo_device_use generator_use = {.rank = 10, .name = "generator"};

/* Life ------------------------------------------------------------------------------------------------------------ */

const char *rondo_generator_label(char buffer[RONDO_GENERATOR_LABEL], const rondo_generator *generator) {
  if (generator->name[0] == '\0')
    snprintf(buffer, RONDO_GENERATOR_LABEL, "the generator");
  else
    snprintf(buffer, RONDO_GENERATOR_LABEL, "generator '%.70s'", generator->name);
  return buffer;
}

/* With the lock. Asserts that the list is linked in both directions and all cells are within the store's bounds. */
static void check_list(const rondo_random_store *store) {
#ifdef NDEBUG
  (void)store;
#else
  rondo_generator *const *link = &store->generators;
  for (const rondo_generator *at = store->generators; at != NULL; link = &at->next, at = at->next) {
    assert(at->link == link);
    assert((uintptr_t)at->cells >= atomic_load_explicit(&store->first, memory_order_relaxed));
    assert((uintptr_t)at->cells + RONDO_CELL_BYTES - 1 <= atomic_load_explicit(&store->last, memory_order_relaxed));
  }
#endif
}

/* With the lock. */
static void widen(rondo_random_store *store, const void *cells) {
  const uintptr_t first = (uintptr_t)cells, last = first + RONDO_CELL_BYTES - 1;
  if (first < atomic_load_explicit(&store->first, memory_order_relaxed))
    atomic_store_explicit(&store->first, first, memory_order_relaxed);
  if (last > atomic_load_explicit(&store->last, memory_order_relaxed))
    atomic_store_explicit(&store->last, last, memory_order_relaxed);
}

static void enter(rondo_random_store *store, rondo_generator *generator) {
  pthread_mutex_lock(&store->lock);
  widen(store, generator->cells);
  RONDO_LIST_INSERT(store->generators, generator, next, link);
  check_list(store);
  pthread_mutex_unlock(&store->lock);
}

static void leave(rondo_random_store *store, rondo_generator *generator) {
  pthread_mutex_lock(&store->lock);
  RONDO_LIST_REMOVE(generator, next, link);
  check_list(store);
  pthread_mutex_unlock(&store->lock);
}

const rondo_generator *rondo_generator_find(const rondo_device *device, const void *address,
                                            char label[RONDO_GENERATOR_LABEL]) {
  rondo_random_store *store = rondo_random_store_made(device);
  const uintptr_t at = (uintptr_t)address;
  if (at < atomic_load_explicit(&store->first, memory_order_relaxed) ||
      at > atomic_load_explicit(&store->last, memory_order_relaxed))
    return NULL;
  pthread_mutex_lock(&store->lock);
  const rondo_generator *generator = store->generators;
  while (generator != NULL && !rondo_generator_has_cell(generator, address)) generator = generator->next;
  if (generator != NULL) (void)rondo_generator_label(label, generator);
  pthread_mutex_unlock(&store->lock);
  return generator;
}

static rondo_status fill_generator(rondo_generator *generator, const char *name) {
  rondo_device *device = generator->device;
  char label[RONDO_GENERATOR_LABEL], what[RONDO_GENERATOR_LABEL + 16];
  rondo_random_store *store;
  RONDO_TRY(rondo_random_store_of(device, &store));
  RONDO_TRY(rondo_allocate_text(&device->allocator, name, &generator->name));
  snprintf(what, sizeof what, "cells of %s", rondo_generator_label(label, generator));
  void *address;
  RONDO_TRY(rondo_random_allocate(device, RONDO_CELL_BYTES, what, &address));
  generator->cells = address;
  enter(store, generator);
  rondo_device_info info = {.struct_size = sizeof info};
  device->ops->info(device, &info);
  generator->uniform_groups = info.cuda ? RONDO_UNIFORM_THREADS : 1024;
  return RONDO_OK;
}

static void free_generator(rondo_generator *generator) {
  rondo_device *device = generator->device;
  assert(atomic_load_explicit(&generator->captures, memory_order_relaxed) == 0);
  if (generator->cells != NULL) {
    leave(rondo_random_store_made(device), generator);
    rondo_random_free(device, generator->cells);
  }
  rondo_kernel_release(atomic_load_explicit(&generator->uniform, memory_order_relaxed));
  rondo_release_text(&device->allocator, generator->name);
  rondo_release(&device->allocator, generator, 1, sizeof *generator);
}

void rondo_generator_retain(rondo_generator *generator) {
  atomic_fetch_add_explicit(&generator->references, 1, memory_order_relaxed);
}

void rondo_generator_release(rondo_generator *generator) {
  if (atomic_fetch_sub_explicit(&generator->references, 1, memory_order_acq_rel) == 1) free_generator(generator);
}

rondo_status rondo_generator_create(rondo_device *device, const rondo_generator_options *options,
                                    rondo_generator **out_generator) {
  const char *const call = "rondo_generator_create";
  RONDO_TRY(rondo_check_call(call, "out_generator", out_generator));
  *out_generator = NULL;
  if (device == NULL) return rondo_refuse_null(call, "the device");
  RONDO_TRY(rondo_device_require_own(call, device));
  rondo_generator_options known;
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_generator_options", options, &known));
  rondo_generator *generator;
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *generator, &generator));
  generator->device = device;
  atomic_init(&generator->references, 1);
  atomic_init(&generator->seed, known.seed);
  const rondo_status status = fill_generator(generator, known.name);
  if (status != RONDO_OK) {
    free_generator(generator);
    return rondo_fail_context(status, "%s", call);
  }
  rondo_device_begin_use(device, &generator_use);
  *out_generator = generator;
  return RONDO_OK;
}

void rondo_generator_destroy(rondo_generator *generator) {
  if (generator == NULL || generator->device->is_inherited) return;
  rondo_device *device = generator->device;
  rondo_generator_release(generator);
  rondo_device_end_use(device, &generator_use);
}

/* State ----------------------------------------------------------------------------------------------------------- */

static rondo_status refuse_while_capturing(const char *call, const rondo_generator *generator) {
  char label[RONDO_GENERATOR_LABEL];
  const bool is_drawn = atomic_load_explicit(&generator->captures, memory_order_acquire) > 0;
  const bool is_watched = rondo_capture_watch_spoil(call);
  if (!is_drawn && !is_watched && !rondo_capture_is_begun_here(generator->device)) return RONDO_OK;
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL,
                    "%s: %s, and a launch of the recording would not repeat this call: call it before the capture "
                    "begins or after its end; each launch begins with the state that %s has then",
                    call,
                    is_drawn     ? "an unfinished capture draws from it"
                    : is_watched ? "this thread is in a body that is being recorded"
                                 : "this thread captures on its device",
                    rondo_generator_label(label, generator));
}

static void set_state(rondo_generator *generator, uint64_t seed, uint64_t offset) {
  assert(offset % RONDO_RANDOM_STEP == 0);
  atomic_store_explicit(&generator->seed, seed, memory_order_relaxed);
  atomic_store_explicit(&generator->offset, offset, memory_order_relaxed);
}

rondo_status rondo_generator_seed(rondo_generator *generator, uint64_t seed) {
  const char *const call = "rondo_generator_seed";
  RONDO_TRY(rondo_check_call(call, "the generator", generator));
  RONDO_TRY(refuse_while_capturing(call, generator));
  set_state(generator, seed, 0);
  return RONDO_OK;
}

rondo_status rondo_generator_get_state(const rondo_generator *generator, rondo_generator_state *out_state) {
  const char *const call = "rondo_generator_get_state";
  RONDO_TRY(rondo_check_call(call, "the generator", generator));
  if (out_state == NULL) return rondo_refuse_null(call, "out_state");
  RONDO_TRY(refuse_while_capturing(call, generator));
  const rondo_generator_state state = {.struct_size = sizeof state,
                                       .seed = atomic_load_explicit(&generator->seed, memory_order_relaxed),
                                       .offset = atomic_load_explicit(&generator->offset, memory_order_relaxed)};
  return rondo_versioned_write("rondo_generator_state", &state, out_state, sizeof state);
}

rondo_status rondo_generator_set_state(rondo_generator *generator, const rondo_generator_state *state) {
  const char *const call = "rondo_generator_set_state";
  RONDO_TRY(rondo_check_call(call, "the generator", generator));
  if (state == NULL) return rondo_refuse_null(call, "state");
  rondo_generator_state known;
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_generator_state", state, &known));
  if (known.offset % RONDO_RANDOM_STEP != 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: the offset %" PRIu64 " is not a multiple of %d: pass a state from rondo_generator_get_state",
                      call, known.offset, RONDO_RANDOM_STEP);
  RONDO_TRY(refuse_while_capturing(call, generator));
  set_state(generator, known.seed, known.offset);
  return RONDO_OK;
}

/* Reserving ------------------------------------------------------------------------------------------------------- */

static rondo_status check_reserve(const char *call, const rondo_generator *generator, uint64_t *inout_increment,
                                  rondo_random *out_random) {
  if (out_random == NULL) return rondo_refuse_null(call, "out_random");
  *out_random = (rondo_random){0};
  RONDO_TRY(rondo_check_call(call, "the generator", generator));
  const uint64_t increment = *inout_increment;
  if (increment == 0 || increment > RONDO_RANDOM_MOST)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: an increment of %" PRIu64 ": reserve 1 to 2^62 numbers of each subsequence", call,
                      increment);
  *inout_increment = (increment + RONDO_RANDOM_STEP - 1) / RONDO_RANDOM_STEP * RONDO_RANDOM_STEP;
  return RONDO_OK;
}

/* Notes that the capture draws from the generator, which cannot be seeded before the capture ends. */
static rondo_status note_draw(rondo_capture *capture, rondo_generator *generator) {
  for (size_t i = 0; i < capture->generators.count; i++)
    if (capture->generators.items[i] == generator) return RONDO_OK;
  RONDO_TRY(rondo_array_push(&capture->allocator, &capture->generators, &generator));
  rondo_generator_retain(generator);
  atomic_fetch_add_explicit(&generator->captures, 1, memory_order_release);
  return RONDO_OK;
}

void rondo_capture_release_generators(rondo_capture *capture) {
  for (size_t i = 0; i < capture->generators.count; i++) {
    rondo_generator *generator = capture->generators.items[i];
    atomic_fetch_sub_explicit(&generator->captures, 1, memory_order_release);
    rondo_generator_release(generator);
  }
  rondo_array_free(&capture->allocator, &capture->generators);
}

static rondo_status draw_in_graph(const char *call, rondo_graph *graph, rondo_generator *generator, uint64_t increment,
                                  rondo_random *out) {
  uint64_t offset;
  RONDO_TRY(rondo_random_draw(call, graph, generator, increment, &offset));
  *out = (rondo_random){.cells = generator->cells, .offset = offset};
  return RONDO_OK;
}

static rondo_status draw_captured(const char *call, rondo_capture *capture, rondo_generator *generator,
                                  uint64_t increment, rondo_random *out) {
  RONDO_TRY(rondo_capture_require_active(capture, call));
  RONDO_TRY(note_draw(capture, generator));
  return draw_in_graph(call, capture->graph, generator, increment, out);
}

rondo_status rondo_generator_reserve(rondo_generator *generator, rondo_stream *stream, uint64_t increment,
                                     rondo_random *out_random) {
  const char *const call = "rondo_generator_reserve";
  RONDO_TRY(check_reserve(call, generator, &increment, out_random));
  if (stream == NULL) return rondo_refuse_null(call, "the stream");
  RONDO_TRY(rondo_require_device(call, "the stream", generator->device, stream->device));
  rondo_capture *capture = rondo_stream_find_capture(stream);
  if (capture != NULL) return draw_captured(call, capture, generator, increment, out_random);
  RONDO_TRY(rondo_capture_refuse_stray(stream, call));
  *out_random = (rondo_random){.seed = atomic_load_explicit(&generator->seed, memory_order_relaxed),
                               .offset = rondo_generator_take(generator, increment)};
  return RONDO_OK;
}

void rondo_generator_give_back(rondo_generator *generator, rondo_stream *stream, uint64_t increment,
                               const rondo_random *random) {
  const rondo_capture *capture = rondo_stream_capture(stream);
  if (random->cells == NULL)
    rondo_generator_untake(generator, increment, random->offset);
  else if (capture != NULL)
    rondo_random_give_back(capture->graph, generator, increment, random->offset);
}

rondo_status rondo_generator_reserve_in_graph(rondo_generator *generator, rondo_graph *graph, uint64_t increment,
                                              rondo_random *out_random) {
  const char *const call = "rondo_generator_reserve_in_graph";
  RONDO_TRY(check_reserve(call, generator, &increment, out_random));
  if (graph == NULL) return rondo_refuse_null(call, "the graph");
  RONDO_TRY(rondo_require_device(call, "the graph", generator->device, graph->device));
  return draw_in_graph(call, graph, generator, increment, out_random);
}

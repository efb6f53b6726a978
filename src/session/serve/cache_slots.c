/* SPDX-License-Identifier: MIT
 * Opens, finds, evicts and closes sequences. A handle has the number of the model, the slot and the number of the
 * sequence, which the session uses once. So a stale handle is recognised, also after its model was removed.
 */
#include <assert.h>

#include "base/versioned_struct.h"
#include "exec/api_check.h"
#include "session/serve/cache_slots.h"
#include "session/serve/stream_worker.h"
#include "session/session.h"

rondo_status rondo_cache_slots_make(rondo_session *session, const rondo_model_options *options,
                                    rondo_cache_slots **out) {
  RONDO_TRY(rondo_allocate_items(&session->allocator, 1, sizeof **out, out));
  **out = (rondo_cache_slots){.evicts_idle = options->evict_idle, .max_positions = options->slot_positions};
  pthread_mutex_lock(&session->lock);
  (*out)->model = ++session->slotted_models;
  pthread_mutex_unlock(&session->lock);
  return RONDO_OK;
}

rondo_status rondo_cache_slots_add_cache(rondo_session *session, rondo_cache_slots *slots, const char *name,
                                         uint64_t slot_bytes) {
  char *copy = NULL;
  RONDO_TRY(rondo_array_reserve(&session->allocator, &slots->caches, slots->caches.count + 1));
  RONDO_TRY(rondo_allocate_text(&session->allocator, name, &copy));
  slots->caches.items[slots->caches.count++] = copy;
  slots->slot_bytes += slot_bytes;
  return RONDO_OK;
}

rondo_status rondo_cache_slots_reserve(rondo_session *session, rondo_cache_slots *slots, uint32_t count) {
  assert(slots->count == 0);
  RONDO_TRY(rondo_allocate_items(&session->allocator, count, sizeof *slots->items, &slots->items));
  for (uint32_t i = 0; i < count; i++) slots->items[i].index = i;
  slots->count = count;
  return RONDO_OK;
}

void rondo_cache_slots_free(rondo_session *session, rondo_cache_slots *slots) {
  if (slots == NULL) return;
  for (size_t i = 0; i < slots->caches.count; i++) rondo_release_text(&session->allocator, slots->caches.items[i]);
  rondo_array_free(&session->allocator, &slots->caches);
  rondo_release(&session->allocator, slots->items, slots->count, sizeof *slots->items);
  rondo_release(&session->allocator, slots, 1, sizeof *slots);
}

void rondo_cache_slots_check(const rondo_cache_slots *slots) {
#ifndef NDEBUG
  uint32_t open = 0;
  for (uint32_t i = 0; i < slots->count; i++) {
    const rondo_cache_slot *slot = &slots->items[i];
    assert(slot->index == i && slot->positions <= slots->max_positions);
    assert(slot->number != 0 || (!slot->is_busy && slot->positions == 0 && slot->source == 0));
    open += slot->number != 0;
  }
  assert(open == slots->open);
#else
  (void)slots;
#endif
}

/* Finding ---------------------------------------------------------------------------------------------------------- */

static rondo_status fail_stale(const char *call) {
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STALE_SEQUENCE,
                    "%s: the sequence was closed, its model was removed, or it was evicted while it was idle "
                    "(rondo_model_options.evict_idle): open another one (rondo_sequence_open)",
                    call);
}

/* The slots of a model of the session; NULL: it was removed. */
static rondo_cache_slots *slots_of(const rondo_session *session, uint32_t model) {
  for (const rondo_session_model *m = session->models; m != NULL; m = m->next)
    if (m->slots != NULL && m->slots->model == model) return m->slots;
  return NULL;
}

static rondo_status find(const char *call, const rondo_cache_slots *slots, rondo_sequence sequence,
                         rondo_cache_slot **out) {
  *out = sequence.slot < slots->count ? &slots->items[sequence.slot] : NULL;
  return *out != NULL && sequence.number != 0 && (*out)->number == sequence.number ? RONDO_OK : fail_stale(call);
}

static rondo_status refuse_busy(const char *call, const rondo_cache_slot *slot) {
  if (!slot->is_busy) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                    "%s: a request uses the sequence in slot %u: wait for its answer, or cancel it, first", call,
                    slot->index);
}

rondo_status rondo_cache_slot_find(const char *call, const rondo_session_model *model, rondo_sequence sequence,
                                   rondo_cache_slot **out) {
  const rondo_cache_slots *slots = model->head->slots;
  if (sequence.session == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
                      "%s: model '%s' has sequences, and the request names none: open one (rondo_sequence_open)", call,
                      model->name);
  if (sequence.session != model->session || sequence.model != slots->model) {
    if (sequence.session == model->session && slots_of(model->session, sequence.model) == NULL) return fail_stale(call);
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                      "%s: the sequence is one of another model than '%s', or of another session", call, model->name);
  }
  RONDO_TRY(find(call, slots, sequence, out));
  return refuse_busy(call, *out);
}

rondo_status rondo_cache_slot_check_space(const char *call, const rondo_session_model *model,
                                          const rondo_cache_slot *slot, size_t used, size_t positions) {
  const size_t most = model->head->slots->max_positions;
  if (used <= most && positions <= most - used) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                    "%s: the sequence in slot %u of model '%s' has %zu positions, and %zu more do not fit into %zu "
                    "(rondo_model_options.slot_positions): shorten it (rondo_sequence_truncate) or end it",
                    call, slot->index, model->name, used, positions, most);
}

void rondo_cache_slot_begin_use(rondo_cache_slot *slot) {
  assert(slot->number != 0 && !slot->is_busy);
  slot->is_busy = true;
}

void rondo_cache_slot_end_use(rondo_cache_slots *slots, rondo_cache_slot *slot) {
  assert(slot->is_busy);
  slot->is_busy = false;
  slot->last_use = ++slots->uses;
}

/* Opening and closing ---------------------------------------------------------------------------------------------- */

static void free_slot(rondo_cache_slots *slots, rondo_cache_slot *slot) {
  assert(slot->number != 0 && !slot->is_busy && slots->open > 0);
  *slot = (rondo_cache_slot){.index = slot->index};
  slots->open--;
}

/* A free slot, the lowest first; else that of the least recently used idle sequence, if sequences are evicted. */
static rondo_cache_slot *choose_slot(rondo_cache_slots *slots) {
  rondo_cache_slot *idle = NULL;
  for (uint32_t i = 0; i < slots->count; i++) {
    rondo_cache_slot *slot = &slots->items[i];
    if (slot->number == 0) return slot;
    if (!slot->is_busy && (idle == NULL || slot->last_use < idle->last_use)) idle = slot;
  }
  if (idle == NULL || !slots->evicts_idle) return NULL;
  free_slot(slots, idle);
  slots->evicted++;
  return idle;
}

static rondo_status fail_full(const char *call, const rondo_session_model *model) {
  const rondo_cache_slots *slots = model->head->slots;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_NONE,
                    "%s: the %u slots of model '%s' are taken%s: close a sequence (rondo_sequence_close), or make the "
                    "model with more slots, %llu bytes each",
                    call, slots->count, model->name,
                    slots->evicts_idle ? ", and requests use all of their sequences"
                                       : ", and idle sequences are not evicted (rondo_model_options.evict_idle)",
                    (unsigned long long)slots->slot_bytes);
}

static rondo_status open_sequence(const char *call, rondo_session_model *model, rondo_sequence *out) {
  rondo_session *session = model->session;
  rondo_cache_slots *slots = model->head->slots;
  if (slots == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: model '%s' has no sequences: make it with slots (rondo_model_options.slots)", call,
                      model->name);
  rondo_cache_slot *slot = choose_slot(slots);
  slots->refused += slot == NULL;
  if (slot == NULL) return fail_full(call, model);
  slot->number = ++session->opened_sequences;
  slot->last_use = ++slots->uses;
  slots->open++;
  rondo_cache_slots_check(slots);
  *out = (rondo_sequence){.session = session, .model = slots->model, .slot = slot->index, .number = slot->number};
  return RONDO_OK;
}

rondo_status rondo_sequence_open(rondo_session *session, const char *model, rondo_sequence *out_sequence) {
  static const char call[] = "rondo_sequence_open";
  rondo_session_model *found;
  RONDO_TRY(rondo_require(call, "out_sequence", out_sequence));
  *out_sequence = (rondo_sequence){.session = NULL};
  RONDO_TRY(rondo_session_enter(call, session, model, &found));
  const rondo_status status = open_sequence(call, found, out_sequence);
  pthread_mutex_unlock(&session->lock);
  return status;
}

/* Locks the session and finds the sequence. The lock is held only after success. */
static rondo_status enter(const char *call, rondo_sequence sequence, rondo_cache_slots **out_slots,
                          rondo_cache_slot **out) {
  rondo_session *session = sequence.session;
  RONDO_TRY(rondo_require(call, "the sequence", session));
  RONDO_TRY(rondo_session_front(call, session));
  pthread_mutex_lock(&session->lock);
  *out_slots = slots_of(session, sequence.model);
  const rondo_status status = *out_slots == NULL ? fail_stale(call) : find(call, *out_slots, sequence, out);
  if (status != RONDO_OK) pthread_mutex_unlock(&session->lock);
  return status;
}

rondo_status rondo_sequence_close(rondo_sequence sequence) {
  static const char call[] = "rondo_sequence_close";
  rondo_cache_slots *slots;
  rondo_cache_slot *slot;
  RONDO_TRY(enter(call, sequence, &slots, &slot));
  const rondo_status status = refuse_busy(call, slot);
  if (status == RONDO_OK) free_slot(slots, slot);
  rondo_cache_slots_check(slots);
  rondo_stream_workers_wake_for_rest(sequence.session); /* steps that waited for this one are ready */
  pthread_mutex_unlock(&sequence.session->lock);
  return status;
}

static rondo_status truncate(const char *call, rondo_cache_slot *slot, size_t positions) {
  RONDO_TRY(refuse_busy(call, slot));
  if (positions > slot->positions)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: the sequence in slot %u has %zu positions and cannot keep %zu", call, slot->index,
                      slot->positions, positions);
  slot->positions = positions;
  return RONDO_OK;
}

rondo_status rondo_sequence_truncate(rondo_sequence sequence, size_t positions) {
  static const char call[] = "rondo_sequence_truncate";
  rondo_cache_slots *slots;
  rondo_cache_slot *slot;
  RONDO_TRY(enter(call, sequence, &slots, &slot));
  const rondo_status status = truncate(call, slot, positions);
  pthread_mutex_unlock(&sequence.session->lock);
  return status;
}

rondo_status rondo_sequence_get_info(rondo_sequence sequence, rondo_sequence_info *out_info) {
  static const char call[] = "rondo_sequence_get_info";
  rondo_cache_slots *slots;
  rondo_cache_slot *slot;
  RONDO_TRY(rondo_require(call, "out_info", out_info));
  RONDO_TRY(enter(call, sequence, &slots, &slot));
  const rondo_sequence_info info = {.slot = slot->index,
                                    .positions = slot->positions,
                                    .max_positions = slots->max_positions,
                                    .source_positions = slot->source,
                                    .is_busy = slot->is_busy};
  const rondo_status status = rondo_versioned_write("rondo_sequence_info", &info, out_info, sizeof info);
  pthread_mutex_unlock(&sequence.session->lock);
  return status;
}

/* SPDX-License-Identifier: MIT
 * Each open sequence of the session has an entry, and the session evicts some of them. So an entry is free, or its
 * sequence is open, or stale. A sequence can become stale while its request is on its way to the session, so there are
 * more entries than slots.
 */
#include "triton/sequence_table.h"

#include <assert.h>

#include "base/allocation.h"
#include "base/clock.h"

void rondo_triton_sequences_init(const rondo_allocator *allocator, rondo_triton_sequences *out) {
  *out = (rondo_triton_sequences){.allocator = *allocator};
  pthread_mutex_init(&out->lock, NULL);
}

rondo_status rondo_triton_sequences_reserve(rondo_triton_sequences *sequences, size_t slots, size_t max_idle_ms) {
  RONDO_TRY(rondo_allocate_items(&sequences->allocator, 2 * slots, sizeof *sequences->items, &sequences->items));
  sequences->slots = slots;
  sequences->max_idle_ms = max_idle_ms;
  sequences->count = 2 * slots;
  return RONDO_OK;
}

void rondo_triton_sequences_free(rondo_triton_sequences *sequences) {
  rondo_release(&sequences->allocator, sequences->items, sequences->count, sizeof *sequences->items);
  pthread_mutex_destroy(&sequences->lock);
}

/* All of the following under the lock. */

static bool is_free(const rondo_triton_sequence *entry) { return entry->sequence.session == NULL; }
static void make_free(rondo_triton_sequence *entry) { *entry = (rondo_triton_sequence){.is_used = false}; }

/* Frees the entry, unless the session still uses the sequence. */
static bool close_sequence(rondo_triton_sequence *entry) {
  const rondo_status status = rondo_sequence_close(entry->sequence);
  if (status != RONDO_OK && rondo_last_error()->reason == RONDO_REASON_STILL_IN_USE) return false;
  make_free(entry); /* it was closed, or it was evicted before */
  return true;
}

static bool is_abandoned(const rondo_triton_sequences *sequences, const rondo_triton_sequence *entry, uint64_t now) {
  return sequences->max_idle_ms > 0 && !entry->has_expired && now - entry->used_ns > sequences->max_idle_ms * 1000000;
}

/* The entry stays, so that the next request is told. If the session still uses the sequence, it expires later. */
static void expire(rondo_triton_sequence *entry) {
  entry->has_expired =
      rondo_sequence_close(entry->sequence) == RONDO_OK || rondo_last_error()->reason != RONDO_REASON_STILL_IN_USE;
}

static bool close_ended(rondo_triton_sequences *sequences) {
  bool is_left = false;
  const uint64_t now = rondo_clock_ns();
  for (size_t i = 0; i < sequences->count; i++) {
    rondo_triton_sequence *entry = &sequences->items[i];
    if (is_free(entry) || entry->is_used) continue;
    if (entry->has_ended)
      is_left |= !close_sequence(entry);
    else if (is_abandoned(sequences, entry, now))
      expire(entry);
  }
  return is_left;
}

static rondo_triton_sequence *find(rondo_triton_sequences *sequences, const rondo_triton_correlation *correlation) {
  for (size_t i = 0; i < sequences->count; i++) {
    rondo_triton_sequence *entry = &sequences->items[i];
    if (!is_free(entry) && rondo_triton_is_same_correlation(&entry->correlation, correlation)) return entry;
  }
  return NULL;
}

/* Whether the sequence was evicted; if not, whether the session uses it. */
static bool is_stale(const rondo_triton_sequence *entry, bool *out_is_busy) {
  rondo_sequence_info info = {.struct_size = sizeof info};
  const bool is_open = rondo_sequence_get_info(entry->sequence, &info) == RONDO_OK;
  *out_is_busy = is_open && info.is_busy;
  return !is_open;
}

/* A free entry, or else one of an evicted sequence, whose next request is told so as long as the entry is there. */
static rondo_triton_sequence *find_unused(rondo_triton_sequences *sequences) {
  bool is_busy;
  rondo_triton_sequence *stale = NULL;
  for (size_t i = 0; i < sequences->count; i++) {
    rondo_triton_sequence *entry = &sequences->items[i];
    if (is_free(entry)) return entry;
    if (stale == NULL && !entry->is_used && is_stale(entry, &is_busy)) stale = entry;
  }
  return stale;
}

static rondo_status fail_expired(const rondo_triton_sequences *sequences, const rondo_triton_correlation *correlation) {
  char name[RONDO_TRITON_SEQUENCE_TEXT];
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_STALE_SEQUENCE,
                    "%s had no request for %llu ms, so it has ended (the model's parameter 'max_idle_ms'): begin it "
                    "again, with the start flag and all of its tokens",
                    rondo_triton_sequence_text(correlation, name), (unsigned long long)sequences->max_idle_ms);
}

static rondo_status fail_absent(const rondo_triton_sequences *sequences, const rondo_triton_correlation *correlation,
                                bool was_evicted) {
  char name[RONDO_TRITON_SEQUENCE_TEXT];
  return rondo_fail(
      RONDO_INVALID_ARGUMENT, RONDO_REASON_STALE_SEQUENCE,
      "%s %s, because the model has %zu slots (its parameter 'slots'): begin it again, with the start flag and all of "
      "its tokens",
      rondo_triton_sequence_text(correlation, name),
      was_evicted ? "was evicted for another one, while it was idle"
                  : "is not open. It was not begun, has ended, or was evicted",
      sequences->slots);
}

/* Whether a slot may become free later. Another limit stays exceeded, so waiting would not help. */
static bool is_worth_waiting(rondo_status status) {
  return status == RONDO_LIMIT_EXCEEDED && rondo_last_error()->reason == RONDO_REASON_NONE;
}

static rondo_status open_sequence(rondo_triton_sequences *sequences, rondo_session *session, const char *model,
                                  const rondo_triton_correlation *correlation, rondo_triton_sequence **out) {
  rondo_sequence sequence;
  const rondo_status status = rondo_sequence_open(session, model, &sequence);
  if (is_worth_waiting(status)) return RONDO_NOT_READY;
  RONDO_TRY(status);
  *out = find_unused(sequences);
  if (*out == NULL) {
    RONDO_TRY(rondo_sequence_close(sequence));
    return RONDO_NOT_READY;
  }
  **out = (rondo_triton_sequence){.correlation = *correlation, .sequence = sequence};
  return RONDO_OK;
}

static rondo_status begin(rondo_triton_sequences *sequences, rondo_session *session, const char *model,
                          const rondo_triton_request_options *options, rondo_triton_sequence **out) {
  bool is_busy;
  const bool has_name = rondo_triton_has_correlation(&options->correlation);
  rondo_triton_sequence *entry = has_name ? find(sequences, &options->correlation) : NULL;
  if (entry != NULL && (entry->is_used || entry->has_ended)) return RONDO_NOT_READY;
  if (options->starts) {
    if (entry != NULL && !close_sequence(entry)) return RONDO_NOT_READY; /* it begins again */
    return open_sequence(sequences, session, model, &options->correlation, out);
  }
  if (entry == NULL) return fail_absent(sequences, &options->correlation, false);
  if (is_stale(entry, &is_busy)) {
    const bool has_expired = entry->has_expired;
    make_free(entry);
    if (has_expired) return fail_expired(sequences, &options->correlation);
    return fail_absent(sequences, &options->correlation, true);
  }
  *out = entry;
  return is_busy ? RONDO_NOT_READY : RONDO_OK;
}

rondo_status rondo_triton_sequence_begin(rondo_triton_sequences *sequences, rondo_session *session, const char *model,
                                         const rondo_triton_request_options *options, rondo_triton_sequence **out) {
  *out = NULL;
  pthread_mutex_lock(&sequences->lock);
  (void)close_ended(sequences);
  const rondo_status status = begin(sequences, session, model, options, out);
  if (status == RONDO_OK)
    (*out)->is_used = true;
  else
    *out = NULL;
  pthread_mutex_unlock(&sequences->lock);
  return status;
}

void rondo_triton_sequence_end(rondo_triton_sequences *sequences, rondo_triton_sequence *sequence, bool has_ended) {
  pthread_mutex_lock(&sequences->lock);
  assert(sequence->is_used);
  sequence->is_used = false;
  sequence->used_ns = rondo_clock_ns();
  sequence->has_ended |= has_ended;
  pthread_mutex_unlock(&sequences->lock);
}

bool rondo_triton_sequences_close_ended(rondo_triton_sequences *sequences) {
  pthread_mutex_lock(&sequences->lock);
  const bool is_left = close_ended(sequences);
  pthread_mutex_unlock(&sequences->lock);
  return is_left;
}

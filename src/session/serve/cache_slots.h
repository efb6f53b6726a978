/* SPDX-License-Identifier: MIT
 * The cache slots of a model, and the sequences that have them. A slot has at most one sequence, and a sequence is used
 * by at most one request. The session's lock guards everything.
 *
 * A slot keeps only how many positions are valid. What the caches contain after these does not matter, so taking
 * positions back needs no work on the device.
 */
#ifndef RONDO_SESSION_SERVE_CACHE_SLOTS_H
#define RONDO_SESSION_SERVE_CACHE_SLOTS_H

#include "session/session_internal.h"

typedef struct rondo_cache_slot {
  uint32_t index;
  bool is_busy;      /* a request uses it */
  uint64_t number;   /* of its sequence; 0: free */
  uint64_t last_use; /* by the clock of the slots */
  size_t positions;  /* of its sequence */
  size_t source;     /* positions of the source that was written to the caches; 0: none */
} rondo_cache_slot;

typedef struct rondo_cache_slots {
  uint32_t model; /* number of the model in handles */
  uint32_t count, open;
  bool evicts_idle;
  size_t max_positions;
  uint64_t slot_bytes;
  uint64_t uses, evicted, refused;
  rondo_cache_slot *items;
  RONDO_ARRAY(char *) caches; /* names of the states */
} rondo_cache_slots;

/* No slots yet. NULL is allowed for free. */
RONDO_MUST_USE rondo_status rondo_cache_slots_make(rondo_session *session, const rondo_model_options *options,
                                                   rondo_cache_slots **out);
/* Adds the name of a cache, and what one slot takes in it. */
RONDO_MUST_USE rondo_status rondo_cache_slots_add_cache(rondo_session *session, rondo_cache_slots *slots,
                                                        const char *name, uint64_t slot_bytes);
/* Makes `count` free slots. */
RONDO_MUST_USE rondo_status rondo_cache_slots_reserve(rondo_session *session, rondo_cache_slots *slots, uint32_t count);
void rondo_cache_slots_free(rondo_session *session, rondo_cache_slots *slots);

/* The slot of a sequence of `slots`, which no request may use. */
RONDO_MUST_USE rondo_status rondo_cache_slot_find(const char *call, const rondo_session_model *model,
                                                  rondo_sequence sequence, rondo_cache_slot **out);

/* Checks that so many positions fit into the slot, in addition to `used`. */
RONDO_MUST_USE rondo_status rondo_cache_slot_check_space(const char *call, const rondo_session_model *model,
                                                         const rondo_cache_slot *slot, size_t used, size_t positions);

/* A request begins and ends its use of a sequence. */
void rondo_cache_slot_begin_use(rondo_cache_slot *slot);
void rondo_cache_slot_end_use(rondo_cache_slots *slots, rondo_cache_slot *slot);

/* Asserts the invariant. */
void rondo_cache_slots_check(const rondo_cache_slots *slots);

#endif

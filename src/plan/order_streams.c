/* SPDX-License-Identifier: MIT
 * The chains of a stage, counted over all its parts, go to the streams in turn. Parts of a stage are not ordered, so
 * what another part has of a stream may all be live together with a lifetime.
 */
#include "plan/order_streams.h"

#include "base/error.h"

static const rondo_relation *relation_of(const rondo_streams *streams) { return streams->lives->relation; }

/* Numbers the chains within their stages; returns the most that a stage has. */
static uint32_t number_chains(rondo_streams *streams) {
  const rondo_relation *relation = relation_of(streams);
  uint32_t most = 0;
  uint32_t stage = UINT32_MAX;
  uint32_t next = 0;
  for (size_t p = 0; p < relation->parts.count; p++) {
    const rondo_relation_part *part = &relation->parts.items[p];
    if (part->stage != stage) next = 0;
    stage = part->stage;
    for (uint32_t c = 0; c < part->chain_count; c++) streams->chain_stream[part->first_chain + c] = next++;
    if (next > most) most = next;
  }
  return most;
}

static void note_positions(rondo_streams *streams) {
  const rondo_relation *relation = relation_of(streams);
  for (uint32_t s = 0; s < streams->stage_count; s++) {
    const uint32_t *from = &streams->stage_positions[(size_t)s * streams->count];
    uint32_t *to = &streams->stage_positions[((size_t)s + 1) * streams->count];
    for (uint32_t q = 0; q < streams->count; q++) to[q] = from[q];
    for (uint32_t slot = relation->stage_slot.items[s]; slot < relation->stage_slot.items[s + 1]; slot++) {
      const uint32_t chain = relation->slot_chain[slot];
      if (chain != RONDO_RELATION_LOOSE) streams->slot_position[slot] = to[streams->chain_stream[chain]]++;
    }
  }
}

rondo_status rondo_streams_make(const rondo_allocator *allocator, const rondo_lives *lives, rondo_streams *out) {
  const rondo_relation *relation = lives->relation;
  *out = (rondo_streams){.lives = lives, .stage_count = (uint32_t)relation->stage_slot.count - 1};
  const size_t chains = relation->chain_slot.count;
  RONDO_TRY(rondo_allocate_items(allocator, chains, sizeof(uint32_t), &out->chain_stream));
  const uint32_t count = number_chains(out);
  if (count > RONDO_STREAMS_MOST) return RONDO_OK;
  out->count = count;
  const size_t entries = ((size_t)out->stage_count + 1) * count;
  RONDO_TRY(rondo_allocate_items(allocator, relation->slot_count, sizeof(uint32_t), &out->slot_position));
  RONDO_TRY(rondo_allocate_items(allocator, entries, sizeof(uint32_t), &out->stage_positions));
  note_positions(out);
  return RONDO_OK;
}

void rondo_streams_free(const rondo_allocator *allocator, rondo_streams *streams) {
  if (streams->lives == NULL) return;
  const rondo_relation *relation = relation_of(streams);
  const size_t entries = ((size_t)streams->stage_count + 1) * streams->count;
  rondo_release(allocator, streams->chain_stream, relation->chain_slot.count, sizeof(uint32_t));
  rondo_release(allocator, streams->slot_position, relation->slot_count, sizeof(uint32_t));
  rondo_release(allocator, streams->stage_positions, entries, sizeof(uint32_t));
  *streams = (rondo_streams){0};
}

uint32_t rondo_streams_length(const rondo_streams *streams, uint32_t stream) {
  return streams->stage_positions[(size_t)streams->stage_count * streams->count + stream];
}

/* The chain of a part that belongs to the stream; RONDO_RELATION_LOOSE: none. */
static uint32_t chain_of(const rondo_streams *streams, const rondo_relation_part *part, uint32_t stream) {
  if (part->chain_count == 0) return RONDO_RELATION_LOOSE;
  const uint32_t first = streams->chain_stream[part->first_chain];
  return stream - first < part->chain_count ? part->first_chain + (stream - first) : RONDO_RELATION_LOOSE;
}

rondo_range rondo_streams_range(const rondo_streams *streams, uint32_t stream, uint32_t alloc, uint32_t free) {
  const rondo_relation *relation = relation_of(streams);
  rondo_range range = {0, rondo_streams_length(streams, stream)};
  if (alloc != 0) {
    const rondo_relation_part *part = &relation->parts.items[relation->slot_part[alloc]];
    const uint32_t chain = chain_of(streams, part, stream);
    range.begin = streams->stage_positions[(size_t)part->stage * streams->count + stream];
    if (chain != RONDO_RELATION_LOOSE) {
      range.begin +=
          rondo_relation_past(relation, alloc)[chain - part->first_chain] - relation->chain_slot.items[chain];
    }
  }
  if (free != relation->slot_count - 1) {
    const rondo_relation_part *part = &relation->parts.items[relation->slot_part[free]];
    const uint32_t chain = chain_of(streams, part, stream);
    const uint32_t *from = &streams->stage_positions[(size_t)part->stage * streams->count + stream];
    range.end = from[streams->count];
    if (chain != RONDO_RELATION_LOOSE) {
      const uint32_t *row = rondo_relation_future(relation, free);
      range.end = from[0] + row[chain - part->first_chain] - relation->chain_slot.items[chain];
    }
  }
  return range;
}

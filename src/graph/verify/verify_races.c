/* SPDX-License-Identifier: MIT
 * Races. For each cell it is enough to know the last writer and the readers since then. A reader must come after the
 * writer. The next writer must come after all these readers, or after the last writer if there are none. If each of
 * these pairs is ordered, all earlier accesses are ordered too, because order is transitive. If one is not, this pair
 * is a race.
 *
 * Some rules keep the work small. Of two readers on one chain, only the later one is kept. Reads of the same range of
 * many cells are kept once for all cells. If a node comes after all nodes of a set, so do all nodes with the same only
 * predecessor. If two readers have the same only predecessor and the same only successor, any node that is ordered with
 * one of them is ordered with the other.
 *
 * In clusters with boxes of several rows, cells have no meaning. There each access is compared with those before it,
 * and an access that writes a whole range replaces those inside it. Accesses of unknown extent are kept for each
 * region, and may race with everything that ends after they begin. For them, only the last writer and the readers since
 * then are compared, because this gives only warnings.
 */
#include <assert.h>

#include "base/error.h"
#include "graph/verify/verifier.h"
#include "graph/verify/verifier_internal.h"

#define LOOK_BACK 8 /* readers that a new one is compared with */
#define MANY_CELLS 16

static const rondo_access_use *use_at(const rondo_verifier *verifier, uint32_t access) {
  return &verifier->accesses.items[access];
}

static rondo_status require_order(rondo_verifier *verifier, rondo_mistake_kind kind, uint32_t earlier, uint32_t later) {
  if (rondo_verifier_knows_order(verifier, earlier, later)) return RONDO_OK;
  const uint32_t before = use_at(verifier, earlier)->node, after = use_at(verifier, later)->node;
  if (before == after) {
    verifier->unsure_count++; /* met for this node, not for others */
    return RONDO_OK;
  }
  return rondo_verify_require(verifier, kind, before, after, earlier, later);
}

/* Lists of readers ------------------------------------------------------------------------------------------------ */

/* Adds a reader. It replaces a reader on the same chain if one is among the first of the list. */
static rondo_status add_reader(rondo_verifier *verifier, uint32_t *list, uint32_t access) {
  const uint32_t chain = verifier->order.chain[use_at(verifier, access)->node];
  uint32_t at = *list;
  for (int i = 0; i < LOOK_BACK && at != RONDO_NONE; i++, at = verifier->readers.items[at].next) {
    rondo_reader *reader = &verifier->readers.items[at];
    if (verifier->order.chain[use_at(verifier, reader->access)->node] != chain) continue;
    reader->access = access;
    return RONDO_OK;
  }
  const rondo_reader reader = {.access = access, .next = *list};
  *list = (uint32_t)verifier->readers.count;
  return rondo_array_push(verifier->allocator, &verifier->readers, &reader);
}

/* Cells ----------------------------------------------------------------------------------------------------------- */

static rondo_status read_cell(rondo_verifier *verifier, rondo_cell *cell, uint32_t access) {
  if (cell->writer != RONDO_NONE) RONDO_TRY(require_order(verifier, RONDO_MISTAKE_RACE, cell->writer, access));
  return add_reader(verifier, &cell->readers, access);
}

static rondo_status require_readers(rondo_verifier *verifier, uint32_t readers, uint32_t access) {
  for (uint32_t at = readers; at != RONDO_NONE; at = verifier->readers.items[at].next)
    RONDO_TRY(require_order(verifier, RONDO_MISTAKE_RACE, verifier->readers.items[at].access, access));
  return RONDO_OK;
}

static rondo_status write_cell(rondo_verifier *verifier, rondo_cell *cell, uint32_t access) {
  if (cell->readers == RONDO_NONE && cell->writer != RONDO_NONE)
    RONDO_TRY(require_order(verifier, RONDO_MISTAKE_RACE, cell->writer, access));
  RONDO_TRY(require_readers(verifier, cell->readers, access));
  cell->writer = access;
  cell->readers = RONDO_NONE;
  return RONDO_OK;
}

/* Wide reads ------------------------------------------------------------------------------------------------------ */

static rondo_wide_read *wide_at(const rondo_verifier *verifier, uint32_t wide) {
  return &verifier->wide_reads.items[wide];
}

/* Removes the wide reads within the cells. */
static void forget_wide(const rondo_verifier *verifier, rondo_cluster *cluster, uint32_t first, uint32_t past) {
  uint32_t *link = &cluster->wide;
  while (*link != RONDO_NONE) {
    rondo_wide_read *wide = wide_at(verifier, *link);
    if (wide->first >= first && wide->past <= past)
      *link = wide->next;
    else
      link = &wide->next;
  }
  cluster->open = cluster->last_first = RONDO_NONE;
}

void rondo_verify_forget(rondo_verifier *verifier, uint32_t first, uint32_t past) {
  uint32_t last = RONDO_NONE;
  for (uint32_t i = first; i < past; i++) {
    rondo_cell *cell = &verifier->cells.items[i];
    cell->writer = cell->readers = RONDO_NONE;
    if (cell->cluster != last) forget_wide(verifier, &verifier->clusters.items[cell->cluster], first, past);
    last = cell->cluster;
  }
}

/* True for a read of many cells if the read before it was of the same cells. */
static bool is_wide(rondo_cluster *cluster, uint32_t first, uint32_t past) {
  if (past - first <= MANY_CELLS) return false;
  if (cluster->last_first == first && cluster->last_past == past) return true;
  cluster->last_first = first;
  cluster->last_past = past;
  cluster->open = RONDO_NONE;
  return false;
}

static rondo_status open_wide(rondo_verifier *verifier, rondo_cluster *cluster) {
  const rondo_wide_read fresh = {.first = cluster->last_first,
                                 .past = cluster->last_past,
                                 .readers = RONDO_NONE,
                                 .last_in = RONDO_ORDER_MANY,
                                 .last_out = RONDO_ORDER_MANY,
                                 .reader_predecessor = RONDO_ORDER_MANY,
                                 .writer_predecessor = RONDO_ORDER_MANY,
                                 .next = cluster->wide};
  cluster->open = cluster->wide = (uint32_t)verifier->wide_reads.count;
  return rondo_array_push(verifier->allocator, &verifier->wide_reads, &fresh);
}

static rondo_status follow_writers(rondo_verifier *verifier, rondo_wide_read *wide, uint32_t access,
                                   uint32_t predecessor) {
  const uint64_t unsure = verifier->unsure_count;
  if (predecessor != RONDO_ORDER_MANY && predecessor == wide->reader_predecessor) return RONDO_OK;
  for (uint32_t i = wide->first; i < wide->past; i++) {
    const uint32_t writer = verifier->cells.items[i].writer;
    if (writer != RONDO_NONE) RONDO_TRY(require_order(verifier, RONDO_MISTAKE_RACE, writer, access));
  }
  if (verifier->unsure_count == unsure) wide->reader_predecessor = predecessor;
  return RONDO_OK;
}

static rondo_status read_wide(rondo_verifier *verifier, rondo_cluster *cluster, uint32_t access) {
  const uint32_t node = use_at(verifier, access)->node;
  const uint32_t predecessor = verifier->order.only_predecessor[node], successor = verifier->order.only_successor[node];
  if (cluster->open == RONDO_NONE) RONDO_TRY(open_wide(verifier, cluster));
  rondo_wide_read *wide = wide_at(verifier, cluster->open);
  const bool is_single = predecessor != RONDO_ORDER_MANY && successor != RONDO_ORDER_MANY;
  if (is_single && wide->last_in == predecessor && wide->last_out == successor) return RONDO_OK;
  wide->last_in = predecessor;
  wide->last_out = successor;
  RONDO_TRY(follow_writers(verifier, wide, access, predecessor));
  return add_reader(verifier, &wide->readers, access);
}

/* The writer must come after the wide reads that it touches. Those that it covers are removed. */
static rondo_status follow_wide(rondo_verifier *verifier, rondo_cluster *cluster, uint32_t first, uint32_t past,
                                uint32_t access) {
  const uint32_t predecessor = verifier->order.only_predecessor[use_at(verifier, access)->node];
  for (uint32_t at = cluster->wide; at != RONDO_NONE; at = wide_at(verifier, at)->next) {
    rondo_wide_read *wide = wide_at(verifier, at);
    if (wide->first >= past || wide->past <= first) continue;
    if (predecessor != RONDO_ORDER_MANY && predecessor == wide->writer_predecessor) continue;
    const uint64_t unsure = verifier->unsure_count;
    RONDO_TRY(require_readers(verifier, wide->readers, access));
    if (verifier->unsure_count == unsure) wide->writer_predecessor = predecessor;
  }
  forget_wide(verifier, cluster, first, past);
  return RONDO_OK;
}

static rondo_status touch_cells(rondo_verifier *verifier, uint32_t access, rondo_cluster *cluster) {
  const rondo_access_use *use = use_at(verifier, access);
  const uint32_t first = verifier->points.items[use->begin].cell, past = verifier->points.items[use->end].cell;
  if (!use->writes && is_wide(cluster, first, past)) return read_wide(verifier, cluster, access);
  if (use->writes) RONDO_TRY(follow_wide(verifier, cluster, first, past, access));
  for (uint32_t i = first; i < past; i++) {
    rondo_cell *cell = &verifier->cells.items[i];
    RONDO_TRY(use->writes ? write_cell(verifier, cell, access) : read_cell(verifier, cell, access));
  }
  return RONDO_OK;
}

/* Boxes ----------------------------------------------------------------------------------------------------------- */

static rondo_byte_box box_of(const rondo_verifier *verifier, const rondo_access_use *use) {
  if (use->box != RONDO_NONE) return verifier->boxes.items[use->box];
  const uintptr_t begin = rondo_verifier_address(verifier, use->begin),
                  end = rondo_verifier_address(verifier, use->end);
  return (rondo_byte_box){.begin = begin,
                          .end = end,
                          .width = end - begin,
                          .height = 1,
                          .pitch = end - begin,
                          .depth = 1,
                          .slice_pitch = end - begin};
}

static bool same_box(const rondo_byte_box *a, const rondo_byte_box *b) {
  return a->begin == b->begin && a->end == b->end && a->width == b->width && a->height == b->height &&
         a->pitch == b->pitch && a->depth == b->depth;
}

/* Whether a node that must be ordered with the earlier access must also be ordered with the later one. */
static bool replaces(const rondo_access_use *later, const rondo_byte_box *box, const rondo_byte_box *earlier_box) {
  if (!later->writes) return false;
  if (same_box(box, earlier_box)) return true;
  return rondo_byte_box_is_range(box) && earlier_box->begin >= box->begin && earlier_box->end <= box->end;
}

/* Compares an access with an earlier one. *out_replaced is true if the earlier one does not matter any more. */
static rondo_status compare_box(rondo_verifier *verifier, uint32_t earlier, uint32_t access, const rondo_byte_box *box,
                                bool *out_replaced) {
  const rondo_access_use *before = use_at(verifier, earlier), *use = use_at(verifier, access);
  *out_replaced = false;
  if (!use->writes && !before->writes) return RONDO_OK;
  if (rondo_verifier_address(verifier, before->end) <= box->begin) return RONDO_OK;
  if (rondo_verifier_address(verifier, before->begin) >= box->end) return RONDO_OK;
  const rondo_byte_box earlier_box = box_of(verifier, before);
  const rondo_overlap overlap = rondo_byte_box_overlap(&earlier_box, box);
  *out_replaced = replaces(use, box, &earlier_box);
  if (overlap == RONDO_OVERLAP_NO) return RONDO_OK;
  return require_order(verifier, overlap == RONDO_OVERLAP_YES ? RONDO_MISTAKE_RACE : RONDO_MISTAKE_MAYBE_RACE, earlier,
                       access);
}

static rondo_status touch_boxes(rondo_verifier *verifier, uint32_t access, rondo_cluster *cluster) {
  const rondo_byte_box box = box_of(verifier, use_at(verifier, access));
  uint32_t *link = &cluster->boxed;
  while (*link != RONDO_NONE) {
    rondo_reader *at = &verifier->readers.items[*link];
    bool replaced;
    RONDO_TRY(compare_box(verifier, at->access, access, &box, &replaced));
    if (replaced)
      *link = at->next;
    else
      link = &at->next;
  }
  const rondo_reader reader = {.access = access, .next = cluster->boxed};
  cluster->boxed = (uint32_t)verifier->readers.count;
  return rondo_array_push(verifier->allocator, &verifier->readers, &reader);
}

/* Unknown extents -------------------------------------------------------------------------------------------------- */

static bool may_overlap(const rondo_verifier *verifier, const rondo_access_use *a, const rondo_access_use *b) {
  if (a->end == RONDO_NONE)
    return b->end == RONDO_NONE ||
           rondo_verifier_address(verifier, b->end) > rondo_verifier_address(verifier, a->begin);
  return b->end == RONDO_NONE && rondo_verifier_address(verifier, a->end) > rondo_verifier_address(verifier, b->begin);
}

static rondo_status require_loosely(rondo_verifier *verifier, uint32_t earlier, uint32_t later) {
  if (rondo_verifier_knows_order(verifier, earlier, later)) return RONDO_OK;
  if (!may_overlap(verifier, use_at(verifier, earlier), use_at(verifier, later))) return RONDO_OK;
  return require_order(verifier, RONDO_MISTAKE_MAYBE_RACE, earlier, later);
}

static rondo_status touch_loosely(rondo_verifier *verifier, uint32_t access, rondo_loose_state *state) {
  const rondo_access_use *use = use_at(verifier, access);
  if (state->writer != RONDO_NONE && (!use->writes || state->readers == RONDO_NONE))
    RONDO_TRY(require_loosely(verifier, state->writer, access));
  if (!use->writes) return add_reader(verifier, &state->readers, access);
  for (uint32_t at = state->readers; at != RONDO_NONE; at = verifier->readers.items[at].next)
    RONDO_TRY(require_loosely(verifier, verifier->readers.items[at].access, access));
  state->writer = access;
  state->readers = RONDO_NONE;
  return RONDO_OK;
}

rondo_status rondo_verify_race(rondo_verifier *verifier, uint32_t access) {
  const rondo_access_use *use = use_at(verifier, access);
  if (use->region != RONDO_NONE && verifier->regions.items[use->region].is_loose)
    RONDO_TRY(touch_loosely(verifier, access, &verifier->regions.items[use->region].loose));
  if (use->end == RONDO_NONE) return RONDO_OK;
  const uint32_t cell = verifier->points.items[use->begin].cell;
  rondo_cluster *cluster = &verifier->clusters.items[verifier->cells.items[cell].cluster];
  return cluster->has_boxes ? touch_boxes(verifier, access, cluster) : touch_cells(verifier, access, cluster);
}

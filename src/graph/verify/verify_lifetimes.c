/* SPDX-License-Identifier: MIT
 * Steps 1 and 2 of the verifier: points, cells and regions; what nodes access; which free belongs to which alloc.
 * Everything is collected in one walk over the nodes and sorted once.
 */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "graph/verify/verifier.h"
#include "graph/verify/verifier_internal.h"

/* Points ---------------------------------------------------------------------------------------------------------- */

static size_t slot_of(const rondo_verifier *verifier, uintptr_t address) {
  return (size_t)((uint64_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (verifier->point_capacity - 1);
}

static void enter_point(rondo_verifier *verifier, uint32_t point) {
  size_t at = slot_of(verifier, rondo_verifier_address(verifier, point));
  while (verifier->point_table[at] != 0) at = (at + 1) & (verifier->point_capacity - 1);
  verifier->point_table[at] = point + 1;
}

static rondo_status grow_table(rondo_verifier *verifier) {
  const size_t capacity = verifier->point_capacity == 0 ? 256 : 4 * verifier->point_capacity;
  uint32_t *table;
  RONDO_TRY(rondo_allocate_items(verifier->allocator, capacity, sizeof *table, &table));
  rondo_release(verifier->allocator, verifier->point_table, verifier->point_capacity, sizeof(uint32_t));
  verifier->point_table = table;
  verifier->point_capacity = capacity;
  for (uint32_t i = 0; i < verifier->points.count; i++) enter_point(verifier, i);
  return RONDO_OK;
}

static rondo_status find_point(rondo_verifier *verifier, uintptr_t address, uint32_t *out) {
  if (2 * verifier->points.count >= verifier->point_capacity) RONDO_TRY(grow_table(verifier));
  size_t at = slot_of(verifier, address);
  for (; verifier->point_table[at] != 0; at = (at + 1) & (verifier->point_capacity - 1)) {
    *out = verifier->last_point = verifier->point_table[at] - 1;
    if (rondo_verifier_address(verifier, *out) == address) return RONDO_OK;
  }
  const rondo_point point = {.address = address, .region = RONDO_NONE};
  *out = verifier->last_point = (uint32_t)verifier->points.count;
  RONDO_TRY(rondo_array_push(verifier->allocator, &verifier->points, &point));
  verifier->point_table[at] = *out + 1;
  return RONDO_OK;
}

static inline rondo_status point_at(rondo_verifier *verifier, uintptr_t address, uint32_t *out) {
  *out = verifier->last_point;
  if (*out < verifier->points.count && rondo_verifier_address(verifier, *out) == address) return RONDO_OK;
  return find_point(verifier, address, out);
}

static rondo_status boundary_at(rondo_verifier *verifier, uintptr_t address, uint32_t *out) {
  RONDO_TRY(point_at(verifier, address, out));
  verifier->points.items[*out].is_boundary = true;
  return RONDO_OK;
}

/* Sorts by one byte of the address. */
static void sort_by_byte(const rondo_verifier *verifier, const uint32_t *from, uint32_t *to, unsigned shift) {
  uint32_t starts[257] = {0};
  const size_t count = verifier->points.count;
  for (size_t i = 0; i < count; i++) starts[(rondo_verifier_address(verifier, from[i]) >> shift & 255) + 1]++;
  for (int digit = 0; digit < 256; digit++) starts[digit + 1] += starts[digit];
  for (size_t i = 0; i < count; i++) to[starts[rondo_verifier_address(verifier, from[i]) >> shift & 255]++] = from[i];
}

/* Radix sort over the bytes in which the addresses differ. */
static rondo_status sort_points(rondo_verifier *verifier) {
  const size_t count = verifier->points.count;
  uintptr_t differing = 0;
  uint32_t *other;
  RONDO_TRY(rondo_array_reserve(verifier->allocator, &verifier->sorted, count));
  RONDO_TRY(rondo_allocate_items(verifier->allocator, count, sizeof *other, &other));
  for (uint32_t i = 0; i < count; i++) {
    verifier->sorted.items[i] = i;
    differing |= rondo_verifier_address(verifier, i) ^ rondo_verifier_address(verifier, 0);
  }
  for (unsigned shift = 0; shift < 8 * sizeof differing; shift += 8) {
    if ((differing >> shift & 255) == 0) continue;
    sort_by_byte(verifier, verifier->sorted.items, other, shift);
    memcpy(verifier->sorted.items, other, count * sizeof *other);
  }
  verifier->sorted.count = count;
  rondo_release(verifier->allocator, other, count, sizeof *other);
  return RONDO_OK;
}

/* Accesses -------------------------------------------------------------------------------------------------------- */

/* Adds an access from `begin` to `end`. If `end` is not after `begin`, its extent is unknown. */
static rondo_status add_access(rondo_verifier *verifier, rondo_access_use *use, uintptr_t begin, uintptr_t end) {
  use->region = RONDO_NONE;
  use->end = RONDO_NONE;
  if (end > begin) {
    RONDO_TRY(boundary_at(verifier, begin, &use->begin));
    RONDO_TRY(boundary_at(verifier, end, &use->end));
    verifier->exact_count++;
  } else {
    RONDO_TRY(point_at(verifier, begin, &use->begin));
    verifier->loose_count += !use->is_scanned;
  }
  verifier->points.items[use->begin].is_sought = true;
  return rondo_array_push(verifier->allocator, &verifier->accesses, use);
}

static uintptr_t end_of(uintptr_t begin, size_t bytes) {
  return bytes <= UINTPTR_MAX - begin ? begin + bytes : UINTPTR_MAX;
}

static rondo_status collect_pointers(rondo_verifier *verifier, uint32_t node, const rondo_kernel_node *work) {
  for (uint32_t i = 0; i < work->kernel->parameter_count; i++) {
    const rondo_parameter *parameter = &work->kernel->parameters[i];
    if (parameter->access == RONDO_ACCESS_SCALAR) continue;
    uintptr_t begin;
    memcpy(&begin, work->args[i], sizeof begin);
    if (begin == 0) continue;
    const size_t bytes = work->arg_bytes == NULL ? 0 : work->arg_bytes[i];
    rondo_access_use use = {
        .node = node, .box = RONDO_NONE, .part = (uint16_t)i, .writes = parameter->access != RONDO_ACCESS_READ};
    RONDO_TRY(add_access(verifier, &use, begin, end_of(begin, bytes)));
  }
  return RONDO_OK;
}

static rondo_status collect_boxes(rondo_verifier *verifier, uint32_t node, const rondo_node_params *params) {
  rondo_byte_box boxes[RONDO_MOST_EXTENTS];
  bool writes[RONDO_MOST_EXTENTS];
  const size_t count = rondo_byte_box_of_node(params, boxes, writes);
  for (size_t i = 0; i < count; i++) {
    rondo_access_use use = {.node = node, .box = RONDO_NONE, .part = !writes[i], .writes = writes[i]};
    if (!rondo_byte_box_is_range(&boxes[i])) {
      use.box = (uint32_t)verifier->boxes.count;
      RONDO_TRY(rondo_array_push(verifier->allocator, &verifier->boxes, &boxes[i]));
    }
    RONDO_TRY(add_access(verifier, &use, boxes[i].begin, boxes[i].end));
  }
  return RONDO_OK;
}

/* Operations wait for unordered writes on purpose, so they make no races. */
static rondo_status collect_operations(rondo_verifier *verifier, uint32_t node,
                                       const rondo_memory_operations_node *work) {
  for (size_t i = 0; i < work->count; i++) {
    const rondo_memory_operation *operation = &work->operations[i];
    const uintptr_t begin = (uintptr_t)operation->address;
    rondo_access_use use = {.node = node,
                            .box = RONDO_NONE,
                            .part = (uint16_t)i,
                            .writes = !rondo_operation_waits(operation),
                            .is_atomic = true};
    if (begin != 0) RONDO_TRY(add_access(verifier, &use, begin, end_of(begin, rondo_operation_bytes(operation))));
  }
  return RONDO_OK;
}

/* The addresses whose lifetimes the graph's own nodes determine, from the lowest to one past the highest. */
typedef struct address_span {
  uintptr_t low, high;
} address_span;

static void widen(address_span *span, uintptr_t low, uintptr_t high) {
  if (low < span->low) span->low = low;
  if (high > span->high) span->high = high;
}

static rondo_status collect_scanned(rondo_verifier *verifier, uint32_t node, const rondo_kernel_node *work,
                                    const address_span *span) {
  for (uint32_t i = 0; i < work->kernel->parameter_count; i++) {
    const rondo_parameter *parameter = &work->kernel->parameters[i];
    if (parameter->access != RONDO_ACCESS_SCALAR) continue;
    for (uint32_t offset = 0; offset + sizeof(uint64_t) <= parameter->bytes; offset += sizeof(uint64_t)) {
      uint64_t word;
      memcpy(&word, (const char *)work->args[i] + offset, sizeof word);
      if (word < span->low || word >= span->high) continue;
      rondo_access_use use = {
          .node = node, .box = RONDO_NONE, .part = (uint16_t)i, .offset = (uint16_t)offset, .is_scanned = true};
      RONDO_TRY(add_access(verifier, &use, (uintptr_t)word, 0));
    }
  }
  return RONDO_OK;
}

/* Alloc and free nodes -------------------------------------------------------------------------------------------- */

/* A region of which only the location and the origin are known: an alloc node, or for NONE a range from outside. */
static rondo_region region_of(const void *address, size_t bytes, uint32_t alloc, uint32_t range) {
  const uintptr_t begin = (uintptr_t)address;
  return (rondo_region){.begin = begin,
                        .end = end_of(begin, bytes),
                        .alloc = alloc,
                        .freed = RONDO_NONE,
                        .range = range,
                        .next = RONDO_NONE,
                        .last_user = RONDO_NONE,
                        .last_prior = RONDO_NONE,
                        .loose = {RONDO_NONE, RONDO_NONE}};
}

/* The next region covers cells, so cells begin where it begins and ends. */
static rondo_status cut_cells(rondo_verifier *verifier, uintptr_t begin, uintptr_t end, address_span *span) {
  uint32_t first, past;
  assert(verifier->region_points.count == 2 * verifier->regions.count);
  RONDO_TRY(boundary_at(verifier, begin, &first));
  RONDO_TRY(boundary_at(verifier, end, &past));
  RONDO_TRY(rondo_array_push(verifier->allocator, &verifier->region_points, &first));
  RONDO_TRY(rondo_array_push(verifier->allocator, &verifier->region_points, &past));
  widen(span, begin, end);
  return RONDO_OK;
}

static rondo_status collect_alloc(rondo_verifier *verifier, uint32_t node, const rondo_alloc_node *alloc,
                                  address_span *span) {
  const rondo_region region = region_of(alloc->address, alloc->bytes, node, RONDO_NONE);
  if (alloc->address == NULL) return RONDO_OK;
  RONDO_TRY(cut_cells(verifier, region.begin, region.end, span));
  verifier->alloc_count++;
  return rondo_array_push(verifier->allocator, &verifier->regions, &region);
}

/* An allocation of an alloc node before it is in the span already. */
static void widen_to_freed(const rondo_verifier *verifier, const rondo_point *point, address_span *span) {
  const rondo_verify_input *input = verifier->input;
  rondo_known_range range = {.begin = NULL};
  if (point->is_boundary || input->find == NULL) return;
  if (!input->find(input->user, (const void *)point->address, &range)) return;
  const uintptr_t begin = (uintptr_t)range.begin;
  widen(span, begin, end_of(begin, range.bytes));
}

static rondo_status collect_free(rondo_verifier *verifier, uint32_t node, const void *address, address_span *span) {
  uint32_t point;
  if (address == NULL) return RONDO_OK;
  RONDO_TRY(point_at(verifier, (uintptr_t)address, &point));
  verifier->points.items[point].is_sought = verifier->points.items[point].is_freed = true;
  widen_to_freed(verifier, &verifier->points.items[point], span);
  RONDO_TRY(rondo_array_push(verifier->allocator, &verifier->free_points, &point));
  return rondo_array_push(verifier->allocator, &verifier->frees, &node);
}

/* A region from before the graph. */
static rondo_status add_range(rondo_verifier *verifier, const rondo_known_range *range, uint32_t *out) {
  rondo_region region = region_of(range->begin, range->bytes, RONDO_NONE, (uint32_t)verifier->ranges.count);
  region.is_dead = range->is_dead;
  region.is_refused = range->no_access[0] != '\0';
  *out = (uint32_t)verifier->regions.count;
  RONDO_TRY(rondo_array_push(verifier->allocator, &verifier->ranges, range));
  return rondo_array_push(verifier->allocator, &verifier->regions, &region);
}

/* Allocations around the graph cover cells like alloc nodes do. */
static rondo_status collect_held(rondo_verifier *verifier, address_span *span) {
  const rondo_verify_input *input = verifier->input;
  for (size_t i = 0; i < input->held_count; i++) {
    const rondo_known_range *range = &input->held[i];
    const uintptr_t begin = (uintptr_t)range->begin;
    uint32_t region;
    RONDO_TRY(cut_cells(verifier, begin, end_of(begin, range->bytes), span));
    RONDO_TRY(add_range(verifier, range, &region));
  }
  verifier->covering_count = verifier->regions.count;
  return RONDO_OK;
}

static rondo_status collect_memory_nodes(rondo_verifier *verifier, address_span *span) {
  const rondo_graph *root = verifier->input->root;
  const bool has_none = root != NULL && !root->has_memory;
  for (uint32_t i = 0; i < verifier->input->edges.node_count && !has_none; i++) {
    const rondo_node_params *params = rondo_verifier_params(verifier, i);
    if (params->kind == RONDO_NODE_ALLOC) RONDO_TRY(collect_alloc(verifier, i, &params->as.alloc, span));
    if (params->kind == RONDO_NODE_FREE) RONDO_TRY(collect_free(verifier, i, params->as.free_address, span));
  }
  return collect_held(verifier, span);
}

static rondo_status collect_accesses(rondo_verifier *verifier, const address_span *span) {
  for (uint32_t i = 0; i < verifier->input->edges.node_count; i++) {
    const rondo_node_params *params = rondo_verifier_params(verifier, i);
    if (params->kind == RONDO_NODE_COPY || params->kind == RONDO_NODE_FILL)
      RONDO_TRY(collect_boxes(verifier, i, params));
    if (params->kind == RONDO_NODE_MEMORY_OPERATIONS)
      RONDO_TRY(collect_operations(verifier, i, &params->as.memory_operations));
    if (params->kind != RONDO_NODE_KERNEL) continue;
    RONDO_TRY(collect_pointers(verifier, i, &params->as.kernel));
    if (span->low < span->high) RONDO_TRY(collect_scanned(verifier, i, &params->as.kernel, span));
  }
  return RONDO_OK;
}

/* Cells ----------------------------------------------------------------------------------------------------------- */

/* The cell of a point begins at the last boundary that is not after the point. Cell 0 is before all boundaries. */
static rondo_status make_cells(rondo_verifier *verifier) {
  uint32_t cell = 0;
  for (size_t i = 0; i < verifier->sorted.count; i++) {
    rondo_point *point = &verifier->points.items[verifier->sorted.items[i]];
    cell += point->is_boundary;
    point->cell = cell;
  }
  const size_t count = (size_t)cell + 1;
  RONDO_TRY(rondo_array_reserve(verifier->allocator, &verifier->cells, count));
  for (size_t i = 0; i < count; i++)
    verifier->cells.items[i] = (rondo_cell){RONDO_NONE, RONDO_NONE, RONDO_NONE, RONDO_NONE};
  verifier->cells.count = count;
  return RONDO_OK;
}

static uint32_t cell_at(const rondo_verifier *verifier, uint32_t point) { return verifier->points.items[point].cell; }

/* Numbers the clusters. The sum of joins[0] to joins[i] is the number of ranges over both cell i - 1 and cell i. */
static rondo_status number_clusters(rondo_verifier *verifier, const uint32_t *joins) {
  uint32_t over = 0, cluster = 0;
  for (size_t i = 0; i < verifier->cells.count; i++) {
    over += joins[i];
    if (over == 0 && i > 0) cluster++;
    verifier->cells.items[i].cluster = cluster;
  }
  const size_t count = (size_t)cluster + 1;
  RONDO_TRY(rondo_array_reserve(verifier->allocator, &verifier->clusters, count));
  for (size_t i = 0; i < count; i++)
    verifier->clusters.items[i] =
        (rondo_cluster){.boxed = RONDO_NONE, .wide = RONDO_NONE, .open = RONDO_NONE, .last_first = RONDO_NONE};
  verifier->clusters.count = count;
  return RONDO_OK;
}

static rondo_status make_clusters(rondo_verifier *verifier) {
  uint32_t *joins;
  const size_t count = verifier->exact_count == 0 ? 0 : verifier->accesses.count;
  RONDO_TRY(rondo_allocate_items(verifier->allocator, verifier->cells.count + 1, sizeof *joins, &joins));
  for (size_t i = 0; i < count; i++) {
    const rondo_access_use *use = &verifier->accesses.items[i];
    if (use->end == RONDO_NONE) continue;
    joins[cell_at(verifier, use->begin) + 1]++;
    joins[cell_at(verifier, use->end)]--;
  }
  const rondo_status status = number_clusters(verifier, joins);
  rondo_release(verifier->allocator, joins, verifier->cells.count + 1, sizeof *joins);
  if (status != RONDO_OK || verifier->boxes.count == 0) return status;
  for (size_t i = 0; i < count; i++) {
    const rondo_access_use *use = &verifier->accesses.items[i];
    if (use->box == RONDO_NONE) continue;
    verifier->clusters.items[verifier->cells.items[cell_at(verifier, use->begin)].cluster].has_boxes = true;
  }
  return RONDO_OK;
}

/* Fills loose_before. Only regions that cover cells need it. */
static rondo_status count_loose(rondo_verifier *verifier) {
  const size_t count = verifier->cells.count + 1;
  if (verifier->covering_count == 0) return RONDO_OK;
  RONDO_TRY(rondo_array_reserve(verifier->allocator, &verifier->loose_before, count));
  uint32_t *before = verifier->loose_before.items;
  memset(before, 0, count * sizeof *before);
  for (size_t i = 0; i < verifier->accesses.count; i++) {
    const rondo_access_use *use = &verifier->accesses.items[i];
    if (use->end == RONDO_NONE && !use->is_scanned) before[cell_at(verifier, use->begin) + 1]++;
  }
  for (size_t i = 1; i < count; i++) before[i] += before[i - 1];
  verifier->loose_before.count = count;
  return RONDO_OK;
}

rondo_status rondo_verify_collect(rondo_verifier *verifier) {
  address_span span = {.low = UINTPTR_MAX, .high = 0};
  RONDO_TRY(collect_memory_nodes(verifier, &span));
  RONDO_TRY(collect_accesses(verifier, &span));
  if (verifier->points.count == 0) return RONDO_OK;
  RONDO_TRY(sort_points(verifier));
  RONDO_TRY(make_cells(verifier));
  RONDO_TRY(make_clusters(verifier));
  return count_loose(verifier);
}

/* Regions --------------------------------------------------------------------------------------------------------- */

static void cover_cells_by(rondo_verifier *verifier, size_t index) {
  rondo_region *region = &verifier->regions.items[index];
  const uint32_t first = cell_at(verifier, verifier->region_points.items[2 * index]);
  const uint32_t past = cell_at(verifier, verifier->region_points.items[2 * index + 1]);
  for (uint32_t cell = first; cell < past; cell++) verifier->cells.items[cell].region = (uint32_t)index;
  region->is_loose = verifier->loose_before.items[past] > verifier->loose_before.items[first];
}

/* Each cell gets its first alloc node, or what is allocated there before all of them. */
static void cover_cells(rondo_verifier *verifier) {
  for (size_t i = verifier->alloc_count; i-- > 0;) cover_cells_by(verifier, i);
  for (size_t i = verifier->alloc_count; i < verifier->covering_count; i++) cover_cells_by(verifier, i);
}

/* A point outside of all cells of regions may be in an allocation from outside. Most points follow others of the same
 * allocation. */
static rondo_status find_ranges(rondo_verifier *verifier) {
  const rondo_verify_input *input = verifier->input;
  uint32_t last = RONDO_NONE;
  if (input->find == NULL) return RONDO_OK;
  for (size_t i = 0; i < verifier->sorted.count; i++) {
    rondo_point *point = &verifier->points.items[verifier->sorted.items[i]];
    if (!point->is_sought || verifier->cells.items[point->cell].region != RONDO_NONE) continue;
    if (last == RONDO_NONE || point->address >= verifier->regions.items[last].end ||
        (point->is_freed && point->address != verifier->regions.items[last].begin)) {
      rondo_known_range range = {.begin = NULL};
      if (!input->find(input->user, (const char *)point->address, &range)) continue;
      RONDO_TRY(add_range(verifier, &range, &last));
    }
    point->region = last;
  }
  for (size_t i = 0; i < verifier->accesses.count && verifier->loose_count > 0; i++) {
    const rondo_access_use *use = &verifier->accesses.items[i];
    const uint32_t region = verifier->points.items[use->begin].region;
    if (region != RONDO_NONE && use->end == RONDO_NONE) verifier->regions.items[region].is_loose = true;
  }
  return RONDO_OK;
}

/* Frees ----------------------------------------------------------------------------------------------------------- */

static rondo_status note_free(rondo_verifier *verifier, rondo_mistake_kind kind, uint32_t node, uint32_t region) {
  const bool is_error = kind != RONDO_MISTAKE_FOREIGN || region != RONDO_NONE || verifier->input->knows_all;
  return rondo_verify_note(verifier, kind, is_error, node, region, 0);
}

static rondo_status free_outside(rondo_verifier *verifier, uint32_t node, uint32_t point) {
  const uint32_t at = verifier->points.items[point].region;
  if (at == RONDO_NONE) return note_free(verifier, RONDO_MISTAKE_FOREIGN, node, RONDO_NONE);
  rondo_region *region = &verifier->regions.items[at];
  const bool freeable = verifier->ranges.items[region->range].is_graph_memory;
  if (!freeable || region->begin != rondo_verifier_address(verifier, point))
    return note_free(verifier, RONDO_MISTAKE_FOREIGN, node, at);
  if (region->freed != RONDO_NONE) return note_free(verifier, RONDO_MISTAKE_DOUBLE_FREE, node, at);
  region->freed = node;
  return RONDO_OK;
}

/* For a free without an allocation before it in the order of nodes. An edge from an alloc that comes later in this
 * order may be missing. */
static rondo_status settle_stray(rondo_verifier *verifier, uint32_t node, uint32_t point, uint32_t first_here) {
  uint32_t freed = RONDO_NONE;
  for (uint32_t i = first_here; i != RONDO_NONE; i = verifier->regions.items[i].next) {
    rondo_region *region = &verifier->regions.items[i];
    if (region->freed == RONDO_NONE) {
      region->freed = node;
      return RONDO_OK;
    }
    freed = i;
  }
  if (freed != RONDO_NONE) return note_free(verifier, RONDO_MISTAKE_DOUBLE_FREE, node, freed);
  const uint32_t inside = verifier->cells.items[cell_at(verifier, point)].region;
  if (inside != RONDO_NONE) return note_free(verifier, RONDO_MISTAKE_FOREIGN, node, inside);
  return free_outside(verifier, node, point);
}

typedef struct free_pairing {
  uint32_t *here;  /* by point: list of the regions of alloc nodes that begin there */
  uint32_t *open;  /* by point: the region that is allocated and not freed yet */
  uint32_t *stray; /* indices of frees without an allocation */
  size_t stray_count;
} free_pairing;

/* In the order of the nodes, alloc and free nodes of one address alternate. Graph memory that is allocated when the
 * graph begins may be freed first. */
static void pair_in_order(rondo_verifier *verifier, free_pairing *pairing) {
  size_t alloc = 0;
  for (size_t i = verifier->alloc_count; i < verifier->covering_count; i++)
    if (verifier->ranges.items[verifier->regions.items[i].range].is_graph_memory)
      pairing->open[verifier->region_points.items[2 * i]] = (uint32_t)i;
  for (size_t i = 0; i < verifier->frees.count; i++) {
    const uint32_t node = verifier->frees.items[i], point = verifier->free_points.items[i];
    for (; alloc < verifier->alloc_count && verifier->regions.items[alloc].alloc < node; alloc++)
      pairing->open[verifier->region_points.items[2 * alloc]] = (uint32_t)alloc;
    uint32_t *open = &pairing->open[point];
    if (*open == RONDO_NONE)
      pairing->stray[pairing->stray_count++] = (uint32_t)i;
    else
      verifier->regions.items[*open].freed = node;
    *open = RONDO_NONE;
  }
}

static rondo_status pair_all(rondo_verifier *verifier, free_pairing *pairing) {
  for (size_t i = 0; i < verifier->points.count; i++) pairing->here[i] = pairing->open[i] = RONDO_NONE;
  for (size_t i = verifier->alloc_count; i-- > 0;) {
    uint32_t *here = &pairing->here[verifier->region_points.items[2 * i]];
    verifier->regions.items[i].next = *here;
    *here = (uint32_t)i;
  }
  pair_in_order(verifier, pairing);
  for (size_t i = 0; i < pairing->stray_count; i++) {
    const uint32_t at = pairing->stray[i], point = verifier->free_points.items[at];
    RONDO_TRY(settle_stray(verifier, verifier->frees.items[at], point, pairing->here[point]));
  }
  return RONDO_OK;
}

rondo_status rondo_verify_pair_frees(rondo_verifier *verifier) {
  const size_t points = verifier->points.count, frees = verifier->frees.count;
  if (points == 0) return RONDO_OK;
  cover_cells(verifier);
  RONDO_TRY(find_ranges(verifier));
  if (frees == 0) return RONDO_OK;
  free_pairing pairing = {0};
  RONDO_TRY(rondo_allocate_items(verifier->allocator, 2 * points + frees, sizeof(uint32_t), &pairing.here));
  pairing.open = pairing.here + points;
  pairing.stray = pairing.open + points;
  const rondo_status status = pair_all(verifier, &pairing);
  rondo_release(verifier->allocator, pairing.here, 2 * points + frees, sizeof(uint32_t));
  return status;
}

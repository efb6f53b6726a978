/* SPDX-License-Identifier: MIT
 * Choosing which operations run as one kernel (horizontal fusion). An update that runs early frees its gradient early;
 * one that waits for others keeps it live. So the order is walked once for each row, and an operation is moved later,
 * to the next one of its row, as long as
 *   - nothing that needs it comes before, and
 *   - what it would have freed can stay live without raising the peak of the order.
 * Small operations are moved past the peak too, if together they keep at most one part in RONDO_JOIN_SHARE of it live.
 * In a network these are the biases and norms: about half of the parameters and a hundredth of their bytes. Small and
 * large operations form separate groups, so that a large one that cannot wait does not end a group of small ones.
 *
 * Rows are taken from the end of the table (tensor/program/operators.h), where rows come after those whose results they
 * use: once the later ones have moved, the earlier ones can move further.
 *
 * Operations of an early row that read only permanent values are moved earlier by the same rules, with the order walked
 * from its end; what stays live longer are their results. They have no predecessors, because updates wait for readers.
 *
 * The choice depends only on the program and its sizes. The operations of a group are adjacent in the order. Each
 * depends on the one before it, the first on everything that any of them depends on, and what depends on any of them
 * depends on the last.
 */
#include "tensor/compile/join_updates.h"

#include <assert.h>
#include <string.h>

#include "base/allocation.h"
#include "base/error.h"
#include "tensor/program/operation.h"
#include "tensor/program/operators.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

#define NEVER UINT32_MAX

typedef struct group {
  uint32_t first, last; /* positions: it will run at the last, or, if moved earlier, at the first */
  uint32_t count;
  uint32_t first_after; /* the first position that needs one of them; NEVER: none */
  size_t held;          /* bytes that its operations keep live */
  bool is_small, is_open;
} group;

typedef struct joiner {
  const rondo_program *program;
  rondo_scratch scratch;
  const rondo_schedule_sizes *sizes;
  rondo_schedule *schedule;
  const rondo_operator *row; /* whose operations are being joined */
  size_t most_live;          /* the order's peak, as it was given */
  size_t spare;              /* bytes by which the peak may still rise */
  size_t *bytes;             /* by value: rondo_schedule_bytes */
  uint32_t *born, *died;     /* by value: positions; NEVER: it is not live; the end of the run is the count */
  size_t *live, *cost; /* by position: live bytes; bytes that the operation of the row keeps live when it is moved */
  uint32_t *movers, mover_count; /* the positions of the row's operations that may move, rising */
  uint32_t *first_after;         /* by position: as in a group */
  uint32_t *group_of;            /* by position: its group plus one, 0: none */
  group *groups;
  uint32_t group_count;
  uint32_t *order, *joined, *new_position; /* the new order; by old position, its position in it */
} joiner;

static const rondo_operation *operation_at(const joiner *j, uint32_t position) {
  return rondo_schedule_operation(j->program, j->schedule, j->schedule->order[position]);
}

static bool is_of_row(const joiner *j, uint32_t position) { return operation_at(j, position)->row == j->row; }

static bool reads_permanent_only(const joiner *j, const rondo_operation *operation) {
  RONDO_EACH_INPUT(k, operation) {
    if (rondo_value_is_transient(j->program, j->schedule->owners[operation->inputs[k]])) return false;
  }
  return true;
}

static bool may_move(const joiner *j, uint32_t position) {
  const rondo_join *join = j->row->join;
  if (!is_of_row(j, position)) return false;
  const rondo_operation *operation = operation_at(j, position);
  if (join->takes != NULL && !join->takes(j->program, operation)) return false;
  return !join->is_early || reads_permanent_only(j, operation);
}

/* Live bytes ------------------------------------------------------------------------------------------------------- */

/* A value is live while any operation of a kernel that uses it runs. */
static void use_value(joiner *j, uint32_t value, uint32_t first, uint32_t last) {
  const uint32_t owner = j->schedule->owners[value];
  if (j->born[owner] == NEVER) j->born[owner] = first;
  j->died[owner] = last;
}

static void find_live_ranges(joiner *j) {
  const rondo_schedule *schedule = j->schedule;
  memset(j->born, 0xff, schedule->values * sizeof *j->born);
  for (uint32_t first = 0; first < schedule->count; first += schedule->joined[first]) {
    const uint32_t last = first + schedule->joined[first] - 1;
    for (uint32_t p = first; p <= last; p++) {
      const rondo_operation *operation = operation_at(j, p);
      RONDO_EACH_INPUT(k, operation) use_value(j, operation->inputs[k], first, last);
      for (uint32_t r = 0; r < operation->row->result_count; r++) use_value(j, operation->results[r], first, last);
    }
  }
  for (size_t i = 0; i < j->program->outputs.count; i++)
    j->died[schedule->owners[j->program->outputs.items[i].value]] = schedule->count;
}

/* Finds the live bytes at each position, from differences, which may wrap around. Returns the peak. */
static size_t measure(joiner *j) {
  const uint32_t count = j->schedule->count;
  size_t live = 0, peak = 0;
  find_live_ranges(j);
  memset(j->live, 0, count * sizeof *j->live);
  for (uint32_t i = 0; i < j->schedule->values; i++) {
    if (j->bytes[i] == 0 || j->born[i] == NEVER) continue;
    j->live[j->born[i]] += j->bytes[i];
    if (j->died[i] + 1 < count) j->live[j->died[i] + 1] -= j->bytes[i];
  }
  for (uint32_t p = 0; p < count; p++) {
    live += j->live[p];
    j->live[p] = live + rondo_round_up(j->sizes->workspaces[j->schedule->order[p]], j->sizes->alignment);
    if (j->live[p] > peak) peak = j->live[p];
  }
  return peak;
}

/* Bytes that the operation may keep live. These are its inputs, except those that all of the row share or that are live
 * until the last of the row runs anyway, and its results, which operations of the same kernel may read. */
static size_t cost_of(const joiner *j, const rondo_operation *operation, uint32_t last) {
  const rondo_join *join = j->row->join;
  const uint32_t *owners = j->schedule->owners;
  const uint32_t in_place = j->row->is_in_place ? owners[operation->results[0]] : RONDO_NO_VALUE; /* live anyway */
  size_t cost = 0;
  RONDO_EACH_INPUT(k, operation) {
    const uint32_t owner = owners[operation->inputs[k]];
    if ((join->shared >> k & 1u) == 0 && j->died[owner] < last && owner != in_place) cost += j->bytes[owner];
  }
  for (uint32_t r = 0; r < j->row->result_count; r++) {
    const uint32_t owner = owners[operation->results[r]];
    if (owner != in_place) cost += j->bytes[owner];
  }
  return cost;
}

static void find_costs(joiner *j) {
  const uint32_t last = j->movers[j->mover_count - 1];
  for (uint32_t m = 0; m < j->mover_count; m++) j->cost[j->movers[m]] = cost_of(j, operation_at(j, j->movers[m]), last);
}

/* Groups ----------------------------------------------------------------------------------------------------------- */

static void find_successors(joiner *j) {
  const rondo_edges *before = &j->schedule->before;
  memset(j->first_after, 0xff, j->schedule->count * sizeof *j->first_after);
  for (uint32_t p = 0; p < before->count; p++) {
    for (uint32_t e = before->start[p]; e < before->start[p + 1]; e++) {
      const uint32_t q = before->items[e];
      const bool in_order = j->row->join->in_order || j->row->join->of_parts;
      const bool may_join = in_order && is_of_row(j, p) && is_of_row(j, q);
      if (!may_join && p < j->first_after[q]) j->first_after[q] = p;
    }
  }
}

static size_t sum_up_to(const joiner *j, size_t most) {
  size_t sum = 0;
  for (uint32_t m = 0; m < j->mover_count; m++) {
    const size_t cost = j->cost[j->movers[m]];
    if (cost <= most) sum += cost;
  }
  return sum;
}

/* The maximum size in bytes of a small operation: the largest power of two for which all small operations together fit
 * into the spare bytes. Takes these bytes from the spare ones. */
static size_t take_small(joiner *j) {
  size_t most = 0;
  for (size_t next = 1; next <= j->spare && sum_up_to(j, next) <= j->spare; next *= 2) most = next;
  j->spare -= sum_up_to(j, most);
  return most;
}

static rondo_type type_of(const joiner *j, const rondo_operation *operation) {
  return rondo_program_shape(j->program, operation->inputs[0])->type;
}

static bool may_share_kernel(const joiner *j, const rondo_operation *a, const rondo_operation *b) {
  const uint32_t *owners = j->schedule->owners;
  if (j->row->join->is_typed && type_of(j, a) != type_of(j, b)) return false;
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
    const uint32_t x = a->inputs[k], y = b->inputs[k];
    if ((j->row->join->shared >> k & 1u) == 0 || x == y) continue;
    if (x == RONDO_NO_VALUE || y == RONDO_NO_VALUE || owners[x] != owners[y]) return false;
  }
  if (j->row->join->of_any_attributes) return true;
  rondo_attributes attributes = a->attributes;
  if (j->row->join->of_parts) memcpy(attributes.sizes, b->attributes.sizes, sizeof attributes.sizes);
  return rondo_attributes_same(&attributes, &b->attributes);
}

static group *find_open(const joiner *j, uint32_t position, bool is_small) {
  for (uint32_t g = j->group_count; g > 0; g--) {
    group *mine = &j->groups[g - 1];
    if (mine->is_open && mine->is_small == is_small &&
        may_share_kernel(j, operation_at(j, mine->first), operation_at(j, position)))
      return mine;
  }
  return NULL;
}

static bool can_move_later(const joiner *j, const group *g, uint32_t position) {
  if (g->count == j->row->join->max || g->first_after <= position) return false;
  for (uint32_t p = g->last + 1; p <= position && !g->is_small; p++) {
    if (j->live[p] + g->held > j->most_live) return false;
  }
  return true;
}

/* The same for moving earlier: the results of the group are live from then on. */
static bool can_move_earlier(const joiner *j, const group *g, uint32_t position) {
  if (g->count == j->row->join->max) return false;
  for (uint32_t p = position; p < g->first && !g->is_small; p++) {
    if (j->live[p] + g->held > j->most_live) return false;
  }
  return true;
}

/* A group that an operation of another group depends on must run before it. */
static void note_readers(joiner *j, uint32_t position) {
  const rondo_edges *before = &j->schedule->before;
  for (uint32_t e = before->start[position]; e < before->start[position + 1]; e++) {
    const uint32_t of = j->group_of[before->items[e]];
    if (of != 0 && of != j->group_of[position] && position < j->groups[of - 1].first_after)
      j->groups[of - 1].first_after = position;
  }
}

static void move_later(joiner *j, group *g, uint32_t position) {
  assert(g->last <= position && g->is_open);
  for (uint32_t p = g->last + 1; p <= position && !g->is_small; p++) j->live[p] += g->held;
  if (j->first_after[position] < g->first_after) g->first_after = j->first_after[position];
  g->last = position;
  note_readers(j, position);
}

static void move_earlier(joiner *j, group *g, uint32_t position) {
  assert(position <= g->first && g->is_open);
  for (uint32_t p = position; p < g->first && !g->is_small; p++) j->live[p] += g->held;
  g->first = position;
}

/* Adds the operation to the open group that it can join, or to a new one. Returns whether it joined one. */
static bool find_group(joiner *j, uint32_t position, bool is_small) {
  const bool is_early = j->row->join->is_early;
  group *g = find_open(j, position, is_small);
  const bool joins = g != NULL && (is_early ? can_move_earlier(j, g, position) : can_move_later(j, g, position));
  if (g != NULL && !joins) g->is_open = false;
  if (!joins) {
    g = &j->groups[j->group_count++];
    *g = (group){.first = position, .last = position, .first_after = NEVER, .is_small = is_small, .is_open = true};
  }
  j->group_of[position] = (uint32_t)(g - j->groups) + 1;
  if (is_early)
    move_earlier(j, g, position);
  else
    move_later(j, g, position);
  g->held += j->cost[position];
  g->count++;
  return joins;
}

/* Returns whether any group has more than one operation. */
static bool find_groups(joiner *j) {
  const size_t small_bytes = take_small(j);
  bool any = false;
  memset(j->group_of, 0, j->schedule->count * sizeof *j->group_of);
  j->group_count = 0;
  for (uint32_t m = 0; m < j->mover_count; m++) {
    const uint32_t p = j->movers[j->row->join->is_early ? j->mover_count - 1 - m : m];
    if (find_group(j, p, j->cost[p] <= small_bytes)) any = true;
  }
  return any;
}

/* The new order ---------------------------------------------------------------------------------------------------- */

static const group *group_at(const joiner *j, uint32_t position) {
  return j->group_of[position] == 0 ? NULL : &j->groups[j->group_of[position] - 1];
}

static void place_position(joiner *j, uint32_t *at, uint32_t position, uint32_t joined) {
  assert(*at < j->schedule->count && joined <= RONDO_MAX_JOINED);
  j->order[*at] = j->schedule->order[position];
  j->joined[*at] = joined;
  j->new_position[position] = (*at)++;
}

static void place_all(joiner *j) {
  uint32_t at = 0;
  for (uint32_t p = 0; p < j->schedule->count; p++) {
    const group *g = group_at(j, p);
    if (g == NULL) place_position(j, &at, p, j->schedule->joined[p]);
    if (g == NULL || p != (j->row->join->is_early ? g->first : g->last)) continue;
    for (uint32_t q = g->first; q <= g->last; q++) {
      if (group_at(j, q) == g) place_position(j, &at, q, q == g->first ? g->count : 0);
    }
  }
}

/* Into the list of `at`, which ends at *inout_end: the dependencies of an old position, except those on its own group.
 */
static void add_edges_of(const joiner *j, uint32_t position, rondo_edges *edges, uint32_t at, uint32_t *inout_end) {
  const rondo_edges *before = &j->schedule->before;
  for (uint32_t e = before->start[position]; e < before->start[position + 1]; e++) {
    const uint32_t q = before->items[e];
    const group *g = group_at(j, q);
    if (g == NULL || g != group_at(j, position))
      rondo_edges_insert(edges, at, inout_end, j->new_position[g == NULL ? q : g->last]);
  }
}

/* old: by new position, the old one. */
static void fill_edges(const joiner *j, const uint32_t *old, rondo_edges *edges) {
  uint32_t end = 0;
  for (uint32_t i = 0; i < j->schedule->count; i++) {
    const group *g = group_at(j, old[i]);
    edges->start[i] = end;
    if (g != NULL && old[i] != g->first) {
      rondo_edges_insert(edges, i, &end, i - 1);
      continue;
    }
    for (uint32_t q = old[i]; q <= (g == NULL ? old[i] : g->last); q++) {
      if (q == old[i] || group_at(j, q) == g) add_edges_of(j, q, edges, i, &end);
    }
  }
  edges->start[edges->count] = end;
}

/* Replaces the schedule's order by the new one. */
static rondo_status rewrite(joiner *j) {
  rondo_schedule *schedule = j->schedule;
  const rondo_allocator *allocator = j->scratch.allocator;
  rondo_edges edges;
  uint32_t *old = j->first_after; /* no longer needed */
  place_all(j);
  for (uint32_t p = 0; p < schedule->count; p++) old[j->new_position[p]] = p;
  const size_t capacity = (size_t)schedule->before.start[schedule->count] + schedule->count;
  rondo_status status = rondo_edges_make(allocator, schedule->count, capacity, &edges);
  if (status == RONDO_OK) {
    fill_edges(j, old, &edges);
    status = rondo_edges_reduce(allocator, &edges);
  }
  if (status != RONDO_OK) {
    rondo_edges_free(allocator, &edges);
    return status;
  }
  rondo_edges_free(allocator, &schedule->before);
  schedule->before = edges;
  memcpy(schedule->order, j->order, schedule->count * sizeof *j->order);
  memcpy(schedule->joined, j->joined, schedule->count * sizeof *j->joined);
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static void list_movers(joiner *j) {
  j->mover_count = 0;
  for (uint32_t p = 0; p < j->schedule->count; p++)
    if (may_move(j, p)) j->movers[j->mover_count++] = p;
}

static rondo_status join_row(joiner *j, const rondo_operator *row) {
  j->row = row;
  list_movers(j);
  if (j->mover_count == 0) return RONDO_OK;
  (void)measure(j);
  find_costs(j);
  find_successors(j);
  return find_groups(j) ? rewrite(j) : RONDO_OK;
}

static rondo_status allocate(joiner *j) {
  rondo_scratch *scratch = &j->scratch;
  const size_t values = j->schedule->values, count = j->schedule->count;
  RONDO_TRY(rondo_scratch_take(scratch, values, sizeof *j->bytes, &j->bytes));
  RONDO_TRY(rondo_scratch_take(scratch, values, sizeof *j->born, &j->born));
  RONDO_TRY(rondo_scratch_take(scratch, values, sizeof *j->died, &j->died));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *j->live, &j->live));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *j->cost, &j->cost));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *j->movers, &j->movers));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *j->first_after, &j->first_after));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *j->group_of, &j->group_of));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *j->groups, &j->groups));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *j->order, &j->order));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *j->joined, &j->joined));
  return rondo_scratch_take(scratch, count, sizeof *j->new_position, &j->new_position);
}

/* Allocates, and measures the order. */
static rondo_status begin(joiner *j) {
  RONDO_TRY(allocate(j));
  for (uint32_t i = 0; i < j->schedule->values; i++)
    j->bytes[i] = rondo_schedule_bytes(j->program, j->schedule, i, j->sizes->alignment);
  j->most_live = measure(j);
  return RONDO_OK;
}

static rondo_status join(joiner *j) {
  size_t rows;
  const rondo_operator *const *table = rondo_operator_table(&rows);
  RONDO_TRY(begin(j));
  j->spare = j->most_live / RONDO_JOIN_SHARE;
  for (size_t i = rows; i > 0; i--) {
    if (table[i - 1]->join != NULL) RONDO_TRY(join_row(j, table[i - 1]));
  }
  j->schedule->peak = measure(j);
  return RONDO_OK;
}

rondo_status rondo_joins_make(const rondo_program *program, const rondo_schedule_sizes *sizes,
                              rondo_fusion_policy fusion, rondo_schedule *schedule) {
  RONDO_TRY(
      rondo_allocate_items(&program->allocator, schedule->operations, sizeof *schedule->joined, &schedule->joined));
  for (uint32_t p = 0; p < schedule->count; p++) schedule->joined[p] = 1;
  if (fusion == RONDO_FUSION_NEVER || schedule->count == 0) return RONDO_OK;
  joiner j = {.program = program, .scratch = {.allocator = &program->allocator}, .sizes = sizes, .schedule = schedule};
  const rondo_status status = join(&j);
  rondo_scratch_free(&j.scratch);
  return status;
}

/* Earlier orders --------------------------------------------------------------------------------------------------- */

static rondo_status take_order(const rondo_allocator *allocator, const rondo_earlier_plan *earlier, size_t peak,
                               rondo_schedule *schedule) {
  rondo_edges before;
  const rondo_status status = rondo_edges_copy(allocator, &earlier->before, &before);
  if (status != RONDO_OK) {
    rondo_edges_free(allocator, &before);
    return status;
  }
  rondo_edges_free(allocator, &schedule->before);
  schedule->before = before;
  schedule->peak = peak;
  memcpy(schedule->order, earlier->order, schedule->count * sizeof *schedule->order);
  memcpy(schedule->joined, earlier->joined, schedule->count * sizeof *schedule->joined);
  return RONDO_OK;
}

/* Whether what the earlier program joined may be joined in this one, whose types, constants and shapes may be others.
 */
static bool may_join_alike(joiner *j) {
  const rondo_schedule *schedule = j->schedule;
  for (uint32_t first = 0; first < schedule->count; first += schedule->joined[first]) {
    const uint32_t count = schedule->joined[first];
    j->row = operation_at(j, first)->row;
    for (uint32_t p = first; count > 1 && p < first + count; p++)
      if (!may_move(j, p) || !may_share_kernel(j, operation_at(j, first), operation_at(j, p))) return false;
  }
  return true;
}

rondo_status rondo_joins_prefer(const rondo_program *program, const rondo_schedule_sizes *sizes,
                                const rondo_earlier_plan *earlier, rondo_schedule *schedule, bool *out_taken) {
  const rondo_allocator *allocator = &program->allocator;
  rondo_schedule tried = *schedule;
  joiner j = {.program = program, .scratch = {.allocator = allocator}, .sizes = sizes, .schedule = &tried};
  *out_taken = false;
  if (earlier->positions != schedule->count || schedule->count == 0) return RONDO_OK;
  tried.order = earlier->order;
  tried.joined = earlier->joined;
  tried.before = earlier->before;
  rondo_status status = begin(&j);
  *out_taken =
      status == RONDO_OK && j.most_live <= schedule->peak + schedule->peak / RONDO_EARLIER_SHARE && may_join_alike(&j);
  if (*out_taken) status = take_order(allocator, earlier, j.most_live, schedule);
  rondo_scratch_free(&j.scratch);
  return status;
}

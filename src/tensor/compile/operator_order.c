/* SPDX-License-Identifier: MIT
 * The order of operations. The base order is that of the meaning of a run: what computes in the program's order, then
 * what updates. The dependencies in it make a DAG (a reader behind the writer of the bytes, a writer behind the readers
 * before it), and the orders that are tried are linear extensions of that: updates as early as they can, and greedy
 * ones from the front and from the end, which take next what leaves the fewest bytes live. The one with the lowest peak
 * is taken, the first of equals.
 *
 * List scheduling for registers (Sethi and Ullman 1970; Goodman and Hsu 1988) with bytes in the place of registers.
 */
#include <assert.h>
#include <string.h>

#include "base/allocation.h"
#include "tensor/compile/schedule.h"
#include "tensor/program/operation.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

typedef struct scheduler {
  const rondo_program *program;
  const rondo_allocator *allocator;
  rondo_schedule *schedule;
  uint32_t *base; /* operations in the base order */
  uint32_t count;
  rondo_edges before, after;
  size_t *bytes;           /* one a value: of those that own bytes which come and go, rounded up; else 0 */
  size_t *workspaces;      /* one a position */
  uint32_t *uses;          /* one a value: the positions that use its bytes, and one for ever for an output */
  rondo_edges users;       /* of each value: the positions that use its bytes */
  uint32_t *left, *degree; /* scratch of one walk: one a value, one a position */
  uint32_t *ready, *place; /* a heap; of a position its place in it plus one, 0: it is not ready */
  int64_t *growth;         /* of each position that is ready */
  uint32_t *candidate;
} scheduler;

static const rondo_operation *operation_at(const scheduler *s, uint32_t position) {
  return rondo_schedule_operation(s->program, s->schedule, s->base[position]);
}

/* The owners of bytes that an operation reads, or reads and makes, each once. */
#define MOST_OWNERS (RONDO_MAX_OPERANDS + RONDO_MAX_RESULTS)

static uint32_t add_owner(uint32_t *owners, uint32_t count, uint32_t owner) {
  for (uint32_t i = 0; i < count; i++) {
    if (owners[i] == owner) return count;
  }
  owners[count] = owner;
  return count + 1;
}

static uint32_t list_inputs(const scheduler *s, uint32_t position, uint32_t owners[MOST_OWNERS]) {
  const rondo_operation *operation = operation_at(s, position);
  uint32_t count = 0;
  RONDO_EACH_INPUT(k, operation) count = add_owner(owners, count, s->schedule->owners[operation->inputs[k]]);
  return count;
}

static uint32_t list_owners(const scheduler *s, uint32_t position, uint32_t owners[MOST_OWNERS]) {
  const rondo_operation *operation = operation_at(s, position);
  uint32_t count = list_inputs(s, position, owners);
  for (uint32_t r = 0; r < operation->row->result_count; r++)
    count = add_owner(owners, count, s->schedule->owners[operation->results[r]]);
  return count;
}

/* Dependencies ----------------------------------------------------------------------------------------------------- */

static void sort_rising(uint32_t *items, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    const uint32_t item = items[i];
    uint32_t at = i;
    for (; at > 0 && items[at - 1] > item; at--) items[at] = items[at - 1];
    items[at] = item;
  }
}

/* Of each owner: who wrote it last, and a chain of those that have read it since. */
typedef struct accesses {
  uint32_t *writer, *reader; /* one a value: a position plus one, or an entry of the chain plus one; 0: none */
  struct {
    uint32_t position, next;
  } * chain;
  uint32_t chain_count;
  uint32_t *checks, check_count; /* positions that updates come behind; known when the first update comes */
  bool *is_before_check;         /* one a position */
  bool has_checks;
} accesses;

static void push_edge(const rondo_edges *edges, uint32_t first, uint32_t *count, uint32_t to) {
  for (uint32_t i = first; i < *count; i++) {
    if (edges->items[i] == to) return;
  }
  edges->items[(*count)++] = to;
}

static void depend_on_readers(const accesses *a, uint32_t owner, uint32_t position, rondo_edges *edges, uint32_t first,
                              uint32_t *count) {
  for (uint32_t at = a->reader[owner]; at != 0; at = a->chain[at - 1].next) {
    if (a->chain[at - 1].position != position) push_edge(edges, first, count, a->chain[at - 1].position);
  }
}

static void note_read(accesses *a, uint32_t owner, uint32_t position) {
  a->chain[a->chain_count].position = position;
  a->chain[a->chain_count].next = a->reader[owner];
  a->reader[owner] = ++a->chain_count;
}

static void note_write(accesses *a, uint32_t owner, uint32_t position) {
  a->writer[owner] = position + 1;
  a->reader[owner] = 0;
}

static void note_inputs(const scheduler *s, accesses *a, uint32_t position, rondo_edges *edges, uint32_t first,
                        uint32_t *count) {
  const rondo_operation *operation = operation_at(s, position);
  RONDO_EACH_INPUT(k, operation) {
    const uint32_t owner = s->schedule->owners[operation->inputs[k]];
    if (a->writer[owner] != 0 && a->writer[owner] != position + 1) push_edge(edges, first, count, a->writer[owner] - 1);
    note_read(a, owner, position);
  }
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
    if (!rondo_operation_updates(operation, k) || operation->inputs[k] == RONDO_NO_VALUE) continue;
    const uint32_t owner = s->schedule->owners[operation->inputs[k]];
    depend_on_readers(a, owner, position, edges, first, count);
    note_write(a, owner, position);
  }
}

static bool is_check(const scheduler *s, uint32_t position) { return operation_at(s, position)->row->checks_indices; }

static bool is_update(const scheduler *s, uint32_t position) { return operation_at(s, position)->row->updates != 0; }

/* The checks that no other one comes behind, among the positions up to `end`, which have their edges. */
static void list_last_checks(const scheduler *s, uint32_t end, accesses *a) {
  for (uint32_t q = end; q-- > 0;) {
    const bool leads_on = a->is_before_check[q];
    if (is_check(s, q) && !leads_on) a->checks[a->check_count++] = q;
    for (uint32_t e = s->before.start[q]; (leads_on || is_check(s, q)) && e < s->before.start[q + 1]; e++)
      a->is_before_check[s->before.items[e]] = true;
  }
}

/* An update does nothing in a run that failed, so it comes behind all that may fail, which computes and stands before
 * the updates. */
static void depend_on_checks(const scheduler *s, accesses *a, uint32_t position, rondo_edges *edges, uint32_t *count) {
  const uint32_t first = edges->start[position], end = *count;
  if (!is_update(s, position)) return;
  if (!a->has_checks) list_last_checks(s, position, a);
  a->has_checks = true;
  for (uint32_t c = a->check_count; c > 0; c--) { /* rising */
    bool is_there = false;
    for (uint32_t e = first; e < end && !is_there; e++) is_there = edges->items[e] == a->checks[c - 1];
    if (!is_there) edges->items[(*count)++] = a->checks[c - 1];
  }
}

/* The room holds all pairs of a reader and a writer: each read of a state is seen by one later writer at most; and all
 * of an update and a check. */
static void fill_before(scheduler *s, accesses *a) {
  uint32_t count = 0;
  for (uint32_t position = 0; position < s->count; position++) {
    const uint32_t first = s->before.start[position] = count;
    note_inputs(s, a, position, &s->before, first, &count);
    depend_on_checks(s, a, position, &s->before, &count);
    const rondo_operation *operation = operation_at(s, position);
    for (uint32_t r = 0; r < operation->row->result_count; r++)
      note_write(a, s->schedule->owners[operation->results[r]], position);
    if (count > first) sort_rising(s->before.items + first, count - first);
  }
  s->before.start[s->count] = count;
}

static size_t count_edges(const scheduler *s) {
  size_t checks = 0, updates = 0, reads = 0;
  uint32_t owners[MOST_OWNERS];
  for (uint32_t p = 0; p < s->count; p++) {
    checks += is_check(s, p);
    updates += is_update(s, p);
    reads += list_inputs(s, p, owners);
  }
  return 2 * reads + checks * updates;
}

static rondo_status find_dependencies(scheduler *s) {
  const size_t values = s->schedule->values, entries = (size_t)s->count * RONDO_MAX_OPERANDS;
  accesses a = {0};
  rondo_status status = rondo_edges_make(s->allocator, s->count, count_edges(s), &s->before);
  if (status == RONDO_OK) status = rondo_allocate_items(s->allocator, values, sizeof *a.writer, &a.writer);
  if (status == RONDO_OK) status = rondo_allocate_items(s->allocator, values, sizeof *a.reader, &a.reader);
  if (status == RONDO_OK) status = rondo_allocate_items(s->allocator, entries, sizeof *a.chain, &a.chain);
  if (status == RONDO_OK) status = rondo_allocate_items(s->allocator, s->count, sizeof *a.checks, &a.checks);
  if (status == RONDO_OK)
    status = rondo_allocate_items(s->allocator, s->count, sizeof *a.is_before_check, &a.is_before_check);
  if (status == RONDO_OK) fill_before(s, &a);
  rondo_release(s->allocator, a.writer, values, sizeof *a.writer);
  rondo_release(s->allocator, a.reader, values, sizeof *a.reader);
  rondo_release(s->allocator, a.chain, entries, sizeof *a.chain);
  rondo_release(s->allocator, a.checks, s->count, sizeof *a.checks);
  rondo_release(s->allocator, a.is_before_check, s->count, sizeof *a.is_before_check);
  return status;
}

/* Live bytes ------------------------------------------------------------------------------------------------------- */

/* Of results that have bytes of their own: not of what is made in place. */
static size_t result_bytes(const scheduler *s, uint32_t position) {
  const rondo_operation *operation = operation_at(s, position);
  size_t bytes = 0;
  for (uint32_t r = 0; r < operation->row->result_count; r++) bytes += s->bytes[operation->results[r]];
  return bytes;
}

/* Bytes that die with the operation, when the uses that are left are in `left`. */
static size_t dying_bytes(const scheduler *s, uint32_t position) {
  uint32_t owners[MOST_OWNERS];
  const uint32_t count = list_owners(s, position, owners);
  size_t bytes = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (s->left[owners[i]] == 1) bytes += s->bytes[owners[i]];
  }
  return bytes;
}

static void use_owners(scheduler *s, uint32_t position) {
  uint32_t owners[MOST_OWNERS];
  const uint32_t count = list_owners(s, position, owners);
  for (uint32_t i = 0; i < count; i++) s->left[owners[i]]--;
}

/* Most bytes live at once in an order of all positions. */
static size_t peak_of(scheduler *s, const uint32_t *order) {
  size_t live = 0, peak = 0;
  if (s->schedule->values > 0) memcpy(s->left, s->uses, s->schedule->values * sizeof *s->left);
  for (uint32_t i = 0; i < s->count; i++) {
    live += result_bytes(s, order[i]);
    if (live + s->workspaces[order[i]] > peak) peak = live + s->workspaces[order[i]];
    live -= dying_bytes(s, order[i]);
    use_owners(s, order[i]);
  }
  return peak;
}

/* Orders ----------------------------------------------------------------------------------------------------------- */

/* By how much the live bytes grow when the operation is next: walking forwards, its results come and what dies goes. */
static int64_t growth_forwards(const scheduler *s, uint32_t position) {
  return (int64_t)result_bytes(s, position) - (int64_t)dying_bytes(s, position);
}

/* Walking backwards, its inputs come (those that nobody behind it uses) and its results go. `left` counts the uses that
 * were walked over. */
static int64_t growth_backwards(const scheduler *s, uint32_t position) {
  uint32_t owners[MOST_OWNERS];
  const uint32_t count = list_inputs(s, position, owners);
  int64_t growth = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (s->left[owners[i]] == s->uses[owners[i]]) growth += (int64_t)s->bytes[owners[i]];
  }
  return growth - (int64_t)result_bytes(s, position);
}

/* Updates first, for they free a gradient and need nothing; then as in the program. */
static int64_t growth_early_updates(const scheduler *s, uint32_t position) {
  return rondo_operator_is_update(operation_at(s, position)->row) ? 0 : 1;
}

typedef int64_t (*growth_function)(const scheduler *s, uint32_t position);

/* A list schedule along the edges, or against them. What is ready is a heap with the least growth first, of equals the
 * lowest position, or walking backwards the highest. */
typedef struct list_walk {
  scheduler *s;
  growth_function growth;
  bool backwards;
  uint32_t ready_count;
} list_walk;

static bool goes_first(const list_walk *w, uint32_t a, uint32_t b) {
  const scheduler *s = w->s;
  if (s->growth[a] != s->growth[b]) return s->growth[a] < s->growth[b];
  return w->backwards ? a > b : a < b;
}

static void put_at(list_walk *w, uint32_t at, uint32_t position) {
  assert(at < w->ready_count && position < w->s->count);
  w->s->ready[at] = position;
  w->s->place[position] = at + 1;
  w->s->schedule->looks++;
}

/* The growth of one that is ready can only become less. */
static void move_up(list_walk *w, uint32_t at, uint32_t position) {
  const uint32_t *ready = w->s->ready;
  w->s->growth[position] = w->growth(w->s, position);
  for (; at > 0 && goes_first(w, position, ready[(at - 1) / 2]); at = (at - 1) / 2) put_at(w, at, ready[(at - 1) / 2]);
  put_at(w, at, position);
}

static uint32_t take_ready(list_walk *w) {
  const uint32_t *ready = w->s->ready;
  const uint32_t first = ready[0], last = ready[--w->ready_count];
  uint32_t at = 0;
  w->s->place[first] = 0;
  if (first == last) return first;
  for (uint32_t child = 1; child < w->ready_count; child = 2 * at + 1) {
    if (child + 1 < w->ready_count && goes_first(w, ready[child + 1], ready[child])) child++;
    if (!goes_first(w, ready[child], last)) break;
    put_at(w, at, ready[child]);
    at = child;
  }
  put_at(w, at, last);
  return first;
}

/* One use fewer is left of each owner. Where that changes the growth of other uses, which it does once for an owner,
 * those that are ready move up: forwards when one use is left, backwards when the first one is gone. */
static void use_and_move(list_walk *w, uint32_t position) {
  scheduler *s = w->s;
  uint32_t owners[MOST_OWNERS];
  const uint32_t count = list_owners(s, position, owners);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t owner = owners[i], left = --s->left[owner];
    if (left != (w->backwards ? s->uses[owner] - 1 : 1)) continue;
    for (uint32_t u = s->users.start[owner]; u < s->users.start[owner + 1]; u++) {
      const uint32_t user = s->users.items[u];
      s->schedule->looks++;
      if (s->place[user] != 0) move_up(w, s->place[user] - 1, user);
    }
  }
}

static void list_schedule(scheduler *s, growth_function growth, bool backwards, uint32_t *order) {
  const rondo_edges *blocked_by = backwards ? &s->after : &s->before, *frees = backwards ? &s->before : &s->after;
  list_walk w = {.s = s, .growth = growth, .backwards = backwards};
  memcpy(s->left, s->uses, s->schedule->values * sizeof *s->left);
  memset(s->place, 0, s->count * sizeof *s->place);
  for (uint32_t p = 0; p < s->count; p++) {
    s->degree[p] = blocked_by->start[p + 1] - blocked_by->start[p];
    if (s->degree[p] == 0) move_up(&w, w.ready_count++, p);
  }
  for (uint32_t i = 0; i < s->count; i++) {
    const uint32_t position = take_ready(&w);
    order[backwards ? s->count - 1 - i : i] = position;
    use_and_move(&w, position);
    for (uint32_t e = frees->start[position]; e < frees->start[position + 1]; e++) {
      if (--s->degree[frees->items[e]] == 0) move_up(&w, w.ready_count++, frees->items[e]);
    }
  }
}

static void try_order(scheduler *s, growth_function growth, bool backwards) {
  list_schedule(s, growth, backwards, s->candidate);
  const size_t peak = peak_of(s, s->candidate);
  if (peak >= s->schedule->peak) return;
  s->schedule->peak = peak;
  memcpy(s->schedule->order, s->candidate, s->count * sizeof *s->candidate);
}

/* Into schedule->order, still as positions of the base order. */
static void choose_order(scheduler *s) {
  for (uint32_t p = 0; p < s->count; p++) s->schedule->order[p] = p;
  s->schedule->program_peak = s->schedule->peak = peak_of(s, s->schedule->order);
  if (s->count == 0) return;
  try_order(s, growth_early_updates, false);
  try_order(s, growth_forwards, false);
  try_order(s, growth_backwards, true);
}

/* The result ------------------------------------------------------------------------------------------------------- */

/* The edges, between positions of the order that was chosen; and operations instead of base positions. */
static rondo_status hand_out(scheduler *s) {
  rondo_schedule *schedule = s->schedule;
  uint32_t *place = s->degree, kept = 0; /* of a base position, in the order */
  rondo_edges *edges = &schedule->before;
  schedule->count = s->count;
  RONDO_TRY(rondo_edges_make(s->allocator, s->count, s->before.start[s->count], edges));
  for (uint32_t i = 0; i < s->count; i++) place[schedule->order[i]] = i;
  for (uint32_t i = 0; i < s->count; i++) {
    const uint32_t p = schedule->order[i];
    edges->start[i] = kept;
    for (uint32_t e = s->before.start[p]; e < s->before.start[p + 1]; e++)
      edges->items[kept++] = place[s->before.items[e]];
    if (kept > edges->start[i]) sort_rising(edges->items + edges->start[i], kept - edges->start[i]);
  }
  edges->start[s->count] = kept;
  for (uint32_t i = 0; i < s->count; i++) schedule->order[i] = s->base[schedule->order[i]];
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

/* The number of the step that stands where operation `i` stood; RONDO_NO_VALUE: none. */
static uint32_t step_in_place_of(const rondo_schedule *schedule, uint32_t i) {
  if (schedule->chain_of[i] == 0) return schedule->runs[i] ? i : RONDO_NO_VALUE;
  const rondo_chain *chain = &schedule->chains.items[schedule->chain_of[i] - 1];
  return chain->place == i ? chain->members[chain->count - 1] : RONDO_NO_VALUE;
}

static void list_base(scheduler *s) {
  for (int updates = 0; updates < 2; updates++) {
    for (uint32_t i = 0; i < s->schedule->operations; i++) {
      const bool is_update = rondo_operator_is_update(s->program->operations.items[i].row);
      const uint32_t step = step_in_place_of(s->schedule, i);
      if (step != RONDO_NO_VALUE && is_update == (updates == 1)) s->base[s->count++] = step;
    }
  }
}

static size_t round_up(size_t bytes, size_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

static void weigh(scheduler *s, const rondo_schedule_sizes *sizes) {
  uint32_t owners[MOST_OWNERS];
  for (uint32_t i = 0; i < s->schedule->values; i++) {
    const bool is_result = s->program->values.items[i].kind == RONDO_VALUE_RESULT;
    if (s->schedule->owners[i] == i && is_result && rondo_value_is_made(s->program, i))
      s->bytes[i] = round_up(rondo_shape_bytes(rondo_program_shape(s->program, i)), sizes->alignment);
  }
  for (uint32_t p = 0; p < s->count; p++) {
    s->workspaces[p] = round_up(sizes->workspaces[s->base[p]], sizes->alignment);
    const uint32_t count = list_owners(s, p, owners);
    for (uint32_t i = 0; i < count; i++) s->uses[owners[i]]++;
  }
}

static void use_outputs(scheduler *s) {
  for (size_t i = 0; i < s->program->outputs.count; i++)
    s->uses[s->schedule->owners[s->program->outputs.items[i].value]]++;
}

/* Counts in `uses` are of these, and of outputs, which are added behind. */
static rondo_status list_users(scheduler *s) {
  const uint32_t values = (uint32_t)s->schedule->values;
  uint32_t owners[MOST_OWNERS], total = 0;
  for (uint32_t i = 0; i < values; i++) total += s->uses[i];
  RONDO_TRY(rondo_edges_make(s->allocator, values, total, &s->users));
  for (uint32_t i = 0; i < values; i++) s->users.start[i + 1] = s->users.start[i] + s->uses[i];
  memcpy(s->left, s->uses, values * sizeof *s->left);
  for (uint32_t p = s->count; p > 0; p--) {
    const uint32_t count = list_owners(s, p - 1, owners);
    for (uint32_t i = 0; i < count; i++) s->users.items[s->users.start[owners[i]] + --s->left[owners[i]]] = p - 1;
  }
  return RONDO_OK;
}

static rondo_status allocate(scheduler *s) {
  const rondo_allocator *allocator = s->allocator;
  const size_t operations = s->schedule->operations, values = s->schedule->values;
  RONDO_TRY(rondo_allocate_items(allocator, operations, sizeof(uint32_t), &s->schedule->order));
  RONDO_TRY(rondo_allocate_items(allocator, operations, sizeof(uint32_t), &s->base));
  RONDO_TRY(rondo_allocate_items(allocator, operations, sizeof(uint32_t), &s->degree));
  RONDO_TRY(rondo_allocate_items(allocator, operations, sizeof(uint32_t), &s->ready));
  RONDO_TRY(rondo_allocate_items(allocator, operations, sizeof(uint32_t), &s->place));
  RONDO_TRY(rondo_allocate_items(allocator, operations, sizeof(int64_t), &s->growth));
  RONDO_TRY(rondo_allocate_items(allocator, operations, sizeof(uint32_t), &s->candidate));
  RONDO_TRY(rondo_allocate_items(allocator, operations, sizeof(size_t), &s->workspaces));
  RONDO_TRY(rondo_allocate_items(allocator, values, sizeof(uint32_t), &s->uses));
  RONDO_TRY(rondo_allocate_items(allocator, values, sizeof(uint32_t), &s->left));
  return rondo_allocate_items(allocator, values, sizeof(size_t), &s->bytes);
}

static void release(scheduler *s) {
  const rondo_allocator *allocator = s->allocator;
  const size_t operations = s->schedule->operations, values = s->schedule->values;
  rondo_edges_free(allocator, &s->before);
  rondo_edges_free(allocator, &s->after);
  rondo_edges_free(allocator, &s->users);
  rondo_release(allocator, s->base, operations, sizeof(uint32_t));
  rondo_release(allocator, s->degree, operations, sizeof(uint32_t));
  rondo_release(allocator, s->ready, operations, sizeof(uint32_t));
  rondo_release(allocator, s->place, operations, sizeof(uint32_t));
  rondo_release(allocator, s->growth, operations, sizeof(int64_t));
  rondo_release(allocator, s->candidate, operations, sizeof(uint32_t));
  rondo_release(allocator, s->workspaces, operations, sizeof(size_t));
  rondo_release(allocator, s->uses, values, sizeof(uint32_t));
  rondo_release(allocator, s->left, values, sizeof(uint32_t));
  rondo_release(allocator, s->bytes, values, sizeof(size_t));
}

static rondo_status order(scheduler *s, const rondo_schedule_sizes *sizes) {
  RONDO_TRY(allocate(s));
  list_base(s);
  weigh(s, sizes);
  RONDO_TRY(list_users(s));
  use_outputs(s);
  RONDO_TRY(find_dependencies(s));
  RONDO_TRY(rondo_edges_reduce(s->allocator, &s->before));
  RONDO_TRY(rondo_edges_turn(s->allocator, &s->before, &s->after));
  choose_order(s);
  return hand_out(s);
}

rondo_status rondo_schedule_order(const rondo_program *program, const rondo_schedule_sizes *sizes,
                                  rondo_schedule *schedule) {
  scheduler s = {.program = program, .allocator = &program->allocator, .schedule = schedule};
  rondo_release(s.allocator, schedule->order, schedule->operations, sizeof *schedule->order);
  schedule->order = NULL;
  rondo_edges_free(s.allocator, &schedule->before);
  const rondo_status status = order(&s, sizes);
  release(&s);
  return status;
}

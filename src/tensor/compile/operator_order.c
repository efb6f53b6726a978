/* SPDX-License-Identifier: MIT
 * The order of operations. The base order follows the meaning of a run: first what computes, in the program's order,
 * then what updates. Its dependencies form a DAG: a reader comes after the writer of the bytes, and a writer after the
 * readers before it. The orders that are tried are topological orders of the DAG: updates as early as they can, and
 * greedy ones from the front and from the end, which choose as the next operation the one that leaves the fewest bytes
 * live. The order with the lowest peak is chosen, the first of equals.
 *
 * This is list scheduling for registers (Sethi and Ullman 1970; Goodman and Hsu 1988) with bytes instead of registers.
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
  rondo_scratch scratch;
  rondo_schedule *schedule;
  uint32_t *base; /* operations in the base order */
  uint32_t count;
  rondo_edges before, after;
  rondo_edges touched, users;   /* by position, the values whose bytes it uses; by value, the positions that use it */
  size_t *bytes;                /* by value, of those that own bytes which come and go, rounded up; else 0 */
  size_t *workspaces;           /* by position */
  uint32_t *uses;               /* by value: the positions that use its bytes, and one more for an output */
  uint32_t *left, *degree;      /* of one walk: by value the uses that are left, by position the edges that are left */
  uint32_t *ready, *heap_index; /* a heap; by position, the index in the heap plus one, 0: it is not ready */
  int64_t *growth;              /* by position, of those that are ready */
  uint32_t *candidate;
} scheduler;

static const rondo_operation *operation_at(const scheduler *s, uint32_t position) {
  return rondo_schedule_operation(s->program, s->schedule, s->base[position]);
}

/* Bytes that operations use ---------------------------------------------------------------------------------------- */

static size_t count_touched(const rondo_operation *operation) {
  size_t count = operation->row->result_count + (size_t)1; /* the workspace */
  RONDO_EACH_INPUT(k, operation) count++;
  return count;
}

rondo_status rondo_schedule_touched(const rondo_program *program, const rondo_schedule *schedule, const uint32_t *order,
                                    uint32_t count, const size_t *workspaces, rondo_edges *out) {
  const uint32_t *owners = schedule->owners;
  size_t capacity = 0;
  uint32_t end = 0;
  for (uint32_t p = 0; p < count; p++) capacity += count_touched(rondo_schedule_operation(program, schedule, order[p]));
  RONDO_TRY(rondo_edges_make(&program->allocator, count, capacity, out));
  for (uint32_t p = 0; p < count; p++) {
    const rondo_operation *operation = rondo_schedule_operation(program, schedule, order[p]);
    out->start[p] = end;
    RONDO_EACH_INPUT(k, operation) rondo_edges_insert(out, p, &end, owners[operation->inputs[k]]);
    for (uint32_t r = 0; r < operation->row->result_count; r++)
      rondo_edges_insert(out, p, &end, owners[operation->results[r]]);
    if (workspaces != NULL && workspaces[order[p]] > 0)
      rondo_edges_insert(out, p, &end, (uint32_t)schedule->values + order[p]);
  }
  out->start[count] = end;
  return RONDO_OK;
}

/* Dependencies ----------------------------------------------------------------------------------------------------- */

/* Of each owner: who wrote it last, and a linked list of those that have read it since. */
typedef struct accesses {
  uint32_t *writer, *reader; /* by value: a position plus one, or an entry of the list plus one; 0: none */
  struct {
    uint32_t position, next;
  } * list;
  uint32_t list_count;
  uint32_t *checks, check_count; /* positions that updates come after; found when the first update is reached */
  bool *is_before_check;         /* by position */
  bool has_checks;
} accesses;

static void depend_on_readers(const accesses *a, uint32_t owner, uint32_t position, const rondo_edges *edges,
                              uint32_t *end) {
  for (uint32_t at = a->reader[owner]; at != 0; at = a->list[at - 1].next) {
    if (a->list[at - 1].position != position) rondo_edges_insert(edges, position, end, a->list[at - 1].position);
  }
}

static void note_read(accesses *a, uint32_t owner, uint32_t position) {
  a->list[a->list_count].position = position;
  a->list[a->list_count].next = a->reader[owner];
  a->reader[owner] = ++a->list_count;
}

static void note_write(accesses *a, uint32_t owner, uint32_t position) {
  a->writer[owner] = position + 1;
  a->reader[owner] = 0;
}

static void note_inputs(const scheduler *s, accesses *a, uint32_t position, uint32_t *end) {
  const rondo_operation *operation = operation_at(s, position);
  RONDO_EACH_INPUT(k, operation) {
    const uint32_t owner = s->schedule->owners[operation->inputs[k]], writer = a->writer[owner];
    if (writer != 0 && writer != position + 1) rondo_edges_insert(&s->before, position, end, writer - 1);
    note_read(a, owner, position);
  }
  RONDO_EACH_INPUT(k, operation) {
    const uint32_t owner = s->schedule->owners[operation->inputs[k]];
    if (!rondo_operation_updates(operation, k)) continue;
    depend_on_readers(a, owner, position, &s->before, end);
    note_write(a, owner, position);
  }
}

static bool is_check(const scheduler *s, uint32_t position) { return operation_at(s, position)->row->checks_indices; }

static bool is_update(const scheduler *s, uint32_t position) { return operation_at(s, position)->row->updates != 0; }

/* The checks that no later check depends on, among the positions up to `end`, whose edges are known. */
static void list_last_checks(const scheduler *s, uint32_t end, accesses *a) {
  for (uint32_t q = end; q-- > 0;) {
    const bool leads_on = a->is_before_check[q];
    if (is_check(s, q) && !leads_on) a->checks[a->check_count++] = q;
    for (uint32_t e = s->before.start[q]; (leads_on || is_check(s, q)) && e < s->before.start[q + 1]; e++)
      a->is_before_check[s->before.items[e]] = true;
  }
}

/* Whether it makes the checks before it those of all ranks. */
static bool is_agreement(const scheduler *s, uint32_t position) {
  return is_check(s, position) && operation_at(s, position)->row->is_collective;
}

/* An update does nothing in a run that failed. So it comes after all index checks, which come before all updates in the
 * base order. The same holds for an agreement and the checks before it. */
static void depend_on_checks(const scheduler *s, accesses *a, uint32_t position, uint32_t *end) {
  const bool agrees = is_agreement(s, position);
  if (!is_update(s, position) && !agrees) return;
  if (!a->has_checks) {
    a->check_count = 0;
    list_last_checks(s, position, a);
  }
  a->has_checks = !agrees;
  for (uint32_t c = a->check_count; c > 0; c--) rondo_edges_insert(&s->before, position, end, a->checks[c - 1]);
}

static void fill_before(scheduler *s, accesses *a) {
  uint32_t end = 0;
  for (uint32_t position = 0; position < s->count; position++) {
    s->before.start[position] = end;
    note_inputs(s, a, position, &end);
    depend_on_checks(s, a, position, &end);
    const rondo_operation *operation = operation_at(s, position);
    for (uint32_t r = 0; r < operation->row->result_count; r++)
      note_write(a, s->schedule->owners[operation->results[r]], position);
  }
  s->before.start[s->count] = end;
}

/* An upper bound: each read of a state is seen by one later writer at most, and each update comes after each check. */
static size_t count_edges(const scheduler *s) {
  size_t checks = 0, updates = 0;
  for (uint32_t p = 0; p < s->count; p++) {
    checks += is_check(s, p);
    updates += is_update(s, p) || is_agreement(s, p);
  }
  return 2 * (size_t)s->touched.start[s->count] + checks * updates;
}

static rondo_status find_dependencies(scheduler *s) {
  const size_t values = s->schedule->values, entries = (size_t)s->count * RONDO_MAX_OPERANDS;
  accesses a = {0};
  RONDO_TRY(rondo_edges_make(s->scratch.allocator, s->count, count_edges(s), &s->before));
  RONDO_TRY(rondo_scratch_take(&s->scratch, values, sizeof *a.writer, &a.writer));
  RONDO_TRY(rondo_scratch_take(&s->scratch, values, sizeof *a.reader, &a.reader));
  RONDO_TRY(rondo_scratch_take(&s->scratch, entries, sizeof *a.list, &a.list));
  RONDO_TRY(rondo_scratch_take(&s->scratch, s->count, sizeof *a.checks, &a.checks));
  RONDO_TRY(rondo_scratch_take(&s->scratch, s->count, sizeof *a.is_before_check, &a.is_before_check));
  fill_before(s, &a);
  RONDO_TRY(rondo_edges_reduce(s->scratch.allocator, &s->before));
  return rondo_edges_transpose(s->scratch.allocator, &s->before, s->count, &s->after);
}

/* Live bytes ------------------------------------------------------------------------------------------------------- */

/* Of the results that own their bytes: not of what is made in place. */
static size_t result_bytes(const scheduler *s, uint32_t position) {
  const rondo_operation *operation = operation_at(s, position);
  size_t bytes = 0;
  for (uint32_t r = 0; r < operation->row->result_count; r++) bytes += s->bytes[operation->results[r]];
  return bytes;
}

/* The loop over the values whose bytes a position uses. */
#define EACH_TOUCHED(s, position, value)                 \
  for (uint32_t e = (s)->touched.start[position], value; \
       e < (s)->touched.start[(position) + 1] && (value = (s)->touched.items[e], true); e++)

/* Bytes that die with the operation, by the uses that are left. */
static size_t dying_bytes(const scheduler *s, uint32_t position) {
  size_t bytes = 0;
  EACH_TOUCHED(s, position, owner) {
    if (s->left[owner] == 1) bytes += s->bytes[owner];
  }
  return bytes;
}

/* The peak of live bytes in an order of all positions. */
static size_t peak_of(scheduler *s, const uint32_t *order) {
  size_t live = 0, peak = 0;
  if (s->schedule->values > 0) memcpy(s->left, s->uses, s->schedule->values * sizeof *s->left);
  for (uint32_t i = 0; i < s->count; i++) {
    live += result_bytes(s, order[i]);
    if (live + s->workspaces[order[i]] > peak) peak = live + s->workspaces[order[i]];
    live -= dying_bytes(s, order[i]);
    EACH_TOUCHED(s, order[i], owner) s->left[owner]--;
  }
  return peak;
}

/* Orders ----------------------------------------------------------------------------------------------------------- */

/* By how much the live bytes grow if the operation is next. Walking forwards, its results are born, and what it uses
 * last dies. */
static int64_t growth_forwards(const scheduler *s, uint32_t position) {
  if (operation_at(s, position)->row->is_urgent) return INT64_MIN;
  return (int64_t)result_bytes(s, position) - (int64_t)dying_bytes(s, position);
}

static bool is_result_of(const scheduler *s, uint32_t value, uint32_t position) {
  const rondo_program_value *of = &s->program->values.items[value];
  return of->kind == RONDO_VALUE_RESULT && of->operation == s->base[position];
}

/* Walking backwards, the inputs that nothing later uses become live, and its results end. `left` counts the uses that
 * the walk has not reached. */
static int64_t growth_backwards(const scheduler *s, uint32_t position) {
  int64_t growth = -(int64_t)result_bytes(s, position);
  if (operation_at(s, position)->row->is_urgent) return INT64_MAX;
  EACH_TOUCHED(s, position, owner) {
    if (s->left[owner] == s->uses[owner] && !is_result_of(s, owner, position)) growth += (int64_t)s->bytes[owner];
  }
  return growth;
}

/* Updates first, because they free a gradient and need no memory; then as in the program. */
static int64_t growth_early_updates(const scheduler *s, uint32_t position) {
  const rondo_operator *row = operation_at(s, position)->row;
  return rondo_operator_is_update(row) || row->is_urgent ? 0 : 1;
}

typedef int64_t (*growth_function)(const scheduler *s, uint32_t position);

/* List scheduling along the edges, or against them. The ready positions are in a heap: the least growth first, of
 * equals the lowest position, or, walking backwards, the highest. */
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
  w->s->heap_index[position] = at + 1;
  w->s->schedule->looks++;
}

/* The growth of a ready position can only become less. */
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
  w->s->heap_index[first] = 0;
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

/* Each value that the position uses has one use less. This changes the growth of other users once for each value:
 * forwards when one use is left, backwards after the first. Those that are ready then move up. */
static void use_and_move(list_walk *w, uint32_t position) {
  scheduler *s = w->s;
  EACH_TOUCHED(s, position, owner) {
    const uint32_t left = --s->left[owner];
    if (left != (w->backwards ? s->uses[owner] - 1 : 1)) continue;
    for (uint32_t u = s->users.start[owner]; u < s->users.start[owner + 1]; u++) {
      const uint32_t user = s->users.items[u];
      s->schedule->looks++;
      if (s->heap_index[user] != 0) move_up(w, s->heap_index[user] - 1, user);
    }
  }
}

static void list_schedule(scheduler *s, growth_function growth, bool backwards, uint32_t *order) {
  const rondo_edges *blocked_by = backwards ? &s->after : &s->before, *frees = backwards ? &s->before : &s->after;
  list_walk w = {.s = s, .growth = growth, .backwards = backwards};
  memcpy(s->left, s->uses, s->schedule->values * sizeof *s->left);
  memset(s->heap_index, 0, s->count * sizeof *s->heap_index);
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

static bool has_urgent(const scheduler *s) {
  bool any = false;
  for (uint32_t p = 0; p < s->count; p++) any = any || operation_at(s, p)->row->is_urgent;
  return any;
}

/* Chooses schedule->order, still as positions of the base order. That order itself is no choice if it lets what is
 * urgent wait. */
static void choose_order(scheduler *s) {
  for (uint32_t p = 0; p < s->count; p++) s->schedule->order[p] = p;
  s->schedule->program_peak = s->schedule->peak = peak_of(s, s->schedule->order);
  if (s->count == 0) return;
  if (has_urgent(s)) s->schedule->peak = SIZE_MAX;
  try_order(s, growth_early_updates, false);
  try_order(s, growth_forwards, false);
  try_order(s, growth_backwards, true);
}

/* The result ------------------------------------------------------------------------------------------------------- */

/* Converts from the base order to the order that was chosen: edges between its positions, and its operations. */
static rondo_status convert(scheduler *s) {
  rondo_schedule *schedule = s->schedule;
  uint32_t *position = s->degree, end = 0; /* in the order, by base position */
  rondo_edges *edges = &schedule->before;
  schedule->count = s->count;
  RONDO_TRY(rondo_edges_make(s->scratch.allocator, s->count, s->before.start[s->count], edges));
  for (uint32_t i = 0; i < s->count; i++) position[schedule->order[i]] = i;
  for (uint32_t i = 0; i < s->count; i++) {
    const uint32_t p = schedule->order[i];
    edges->start[i] = end;
    for (uint32_t e = s->before.start[p]; e < s->before.start[p + 1]; e++)
      rondo_edges_insert(edges, i, &end, position[s->before.items[e]]);
  }
  edges->start[s->count] = end;
  for (uint32_t i = 0; i < s->count; i++) schedule->order[i] = s->base[schedule->order[i]];
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

/* The number of the step at the position of operation `i` in the base order; RONDO_NO_VALUE: none. */
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

static void weigh(scheduler *s, const rondo_schedule_sizes *sizes) {
  for (uint32_t i = 0; i < s->schedule->values; i++) {
    s->bytes[i] = rondo_schedule_bytes(s->program, s->schedule, i, sizes->alignment);
    s->uses[i] = s->users.start[i + 1] - s->users.start[i];
  }
  for (uint32_t p = 0; p < s->count; p++)
    s->workspaces[p] = rondo_round_up(sizes->workspaces[s->base[p]], sizes->alignment);
  for (size_t i = 0; i < s->program->outputs.count; i++)
    s->uses[s->schedule->owners[s->program->outputs.items[i].value]]++;
}

static rondo_status allocate(scheduler *s) {
  rondo_scratch *scratch = &s->scratch;
  const size_t operations = s->schedule->operations, values = s->schedule->values;
  RONDO_TRY(rondo_allocate_items(scratch->allocator, operations, sizeof(uint32_t), &s->schedule->order));
  RONDO_TRY(rondo_scratch_take(scratch, operations, sizeof *s->base, &s->base));
  RONDO_TRY(rondo_scratch_take(scratch, operations, sizeof *s->degree, &s->degree));
  RONDO_TRY(rondo_scratch_take(scratch, operations, sizeof *s->ready, &s->ready));
  RONDO_TRY(rondo_scratch_take(scratch, operations, sizeof *s->heap_index, &s->heap_index));
  RONDO_TRY(rondo_scratch_take(scratch, operations, sizeof *s->growth, &s->growth));
  RONDO_TRY(rondo_scratch_take(scratch, operations, sizeof *s->candidate, &s->candidate));
  RONDO_TRY(rondo_scratch_take(scratch, operations, sizeof *s->workspaces, &s->workspaces));
  RONDO_TRY(rondo_scratch_take(scratch, values, sizeof *s->uses, &s->uses));
  RONDO_TRY(rondo_scratch_take(scratch, values, sizeof *s->left, &s->left));
  return rondo_scratch_take(scratch, values, sizeof *s->bytes, &s->bytes);
}

static rondo_status order(scheduler *s, const rondo_schedule_sizes *sizes) {
  const rondo_allocator *allocator = s->scratch.allocator;
  RONDO_TRY(allocate(s));
  list_base(s);
  RONDO_TRY(rondo_schedule_touched(s->program, s->schedule, s->base, s->count, NULL, &s->touched));
  RONDO_TRY(rondo_edges_transpose(allocator, &s->touched, (uint32_t)s->schedule->values, &s->users));
  weigh(s, sizes);
  RONDO_TRY(find_dependencies(s));
  choose_order(s);
  return convert(s);
}

rondo_status rondo_schedule_order(const rondo_program *program, const rondo_schedule_sizes *sizes,
                                  rondo_schedule *schedule) {
  const rondo_allocator *allocator = &program->allocator;
  scheduler s = {.program = program, .scratch = {.allocator = allocator}, .schedule = schedule};
  rondo_release(allocator, schedule->order, schedule->operations, sizeof *schedule->order);
  schedule->order = NULL;
  rondo_edges_free(allocator, &schedule->before);
  const rondo_status status = order(&s, sizes);
  rondo_edges_free(allocator, &s.before);
  rondo_edges_free(allocator, &s.after);
  rondo_edges_free(allocator, &s.touched);
  rondo_edges_free(allocator, &s.users);
  rondo_scratch_free(&s.scratch);
  return status;
}

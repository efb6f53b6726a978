/* SPDX-License-Identifier: MIT
 * A *block* of the model is memory: words with a number of holders, which are handles and parts of it. A block of a
 * step ends with the step or is kept, as the tree's policy says, recorded or not. A handle whose block has ended is
 * stale. The host waits for the streams before it reads, so the model is sequential.
 */
#include "support/test_tree_model.h"

#include <rondo/rondo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_allocator.h"
#include "support/test_kernels.h"

enum { WORDS = 64, AREAS = 4, HANDLES = 16, BLOCKS = 128, STREAMS = 3, MOST_INPUTS = 2, MOST_OUTPUTS = 3 };
enum { MOST_RECORDINGS = 512, MOST_CALLS = 400, MOST_LIVE = HANDLES, FORMS = 7, SCALARS = 4, MENU = 5, PLACES = 256 };

typedef enum function_id {
  AFFINE,   /* a * 3 + 1 */
  COMBINE,  /* a * 31 + b */
  WEIGHTED, /* the same with a static b */
  PARTS,    /* a * 2; its second quarter; the first half of a */
  MUTATE,   /* a = a * 2 + 1; a * 3 */
  CONSUME,  /* a + 1; the body drops a */
  HOPPING,  /* a * 2 + 5, with a host step in the middle */
  SCALED,   /* a * scalar */
  FORWARD,  /* a * 5; a + 7 */
  BACKWARD, /* as COMBINE */
  NESTED,   /* a * 3 + 3, by a nested call of AFFINE */
  FUNCTIONS
} function_id;

typedef enum block_kind {
  FREE,
  CALLERS, /* an area */
  OF_STEP, /* a new output that was not recorded */
  RECORDED,
  KEPT /* of no step */
} block_kind;

typedef struct block {
  block_kind kind;
  uint32_t words[WORDS], count;
  int holders;
  uint32_t recording, output; /* RECORDED */
} block;

typedef struct handle {
  rondo_buffer *buffer; /* NULL: none */
  block *memory;        /* NULL: stale */
  uint32_t offset, count;
  int references;
  bool is_part;
} handle;

/* What must be the same in another call for an input of a recording. */
typedef struct given {
  int way; /* 0: moving; 1: static; 2: an output of the path */
  bool is_sole;
  const void *address; /* NULL for a moving one */
} given;

typedef struct recording {
  uint32_t number, parent, depth;
  function_id function;
  uint32_t count;
  uint64_t scalar;
  given inputs[MOST_INPUTS];
  uint32_t live[MOST_LIVE][2]; /* recording and output */
  int live_count;
  uint32_t moves[MOST_INPUTS];
} recording;

/* The demoted inputs of a function after a recording. */
typedef struct place {
  uint32_t after;
  function_id function;
  bool is_demoted[MOST_INPUTS];
} place;

typedef struct run run;
typedef struct function_user {
  run *run;
  function_id id;
} function_user;

struct run {
  const uint8_t *data;
  size_t left;
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *streams[STREAMS];
  rondo_kernel *affine, *combine;
  rondo_tree *tree;
  rondo_function *functions[FUNCTIONS];
  function_user users[FUNCTIONS];
  uint32_t *areas[AREAS];
  function_id menu[MENU]; /* few functions and sizes in a run, so that many calls are replayed */
  uint8_t menu_sizes[2];
  bool is_exact, clones, is_marking, is_pending, is_off, is_function_off[FUNCTIONS];
  uint32_t most_at_place, demote_after;
  rondo_demotion demotion;
  /* The model. */
  block blocks[BLOCKS]; /* areas first */
  handle handles[HANDLES];
  recording recordings[MOST_RECORDINGS];
  int recording_count;
  place places[PLACES];
  int place_count;
  uint32_t demoted;
  int rounds; /* of call_moving */
  bool is_warm[FUNCTIONS][FORMS][SCALARS];
  uint64_t step, path_step;
  uint32_t current, depth, scopes;
  bool is_eager;
  uint64_t late_bytes; /* released; freed with the next call */
  uint32_t late_count, clone_count, refused;
  int stream; /* of the last call */
};

/* For messages about a mismatch. */
static const char *run_name;
static uint32_t call_number;

#define REQUIRE(condition)                                                                                       \
  do {                                                                                                           \
    if (!(condition)) {                                                                                          \
      fprintf(stderr, "%s:%d: run '%s', call %u: not so: %s; the thread's last error: %s\n", __FILE__, __LINE__, \
              run_name, call_number, #condition, rondo_last_error()->message);                                   \
      abort();                                                                                                   \
    }                                                                                                            \
  } while (0)

static const uint32_t sizes[FORMS] = {1, 2, 4, 8, 16, 33, WORDS};

static uint8_t take(run *r) {
  if (r->left == 0) return 0;
  r->left--;
  return *r->data++;
}

static void require_ok(rondo_status status) { REQUIRE(status == RONDO_OK); }

/* Bodies ----------------------------------------------------------------------------------------------------------- */

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

static rondo_status change(const run *r, rondo_call *call, void *words, size_t bytes, uint32_t factor, uint32_t term) {
  return rondo_launch(rondo_call_stream(call), r->affine, (rondo_grid){(uint32_t)(bytes / 4), 0, 0},
                      RONDO_ARGS(&factor, &term, &words));
}

/* New output = from * factor + term. */
static rondo_status put(const run *r, rondo_call *call, size_t index, const void *from, size_t bytes, uint32_t factor,
                        uint32_t term) {
  void *out;
  TRY(rondo_call_output(call, index, bytes, NULL, &out));
  TRY(rondo_copy_async(rondo_call_stream(call), out, from, bytes));
  return change(r, call, out, bytes, factor, term);
}

static rondo_status put_combined(const run *r, rondo_call *call, const void *a, const void *b, size_t bytes) {
  void *out;
  TRY(rondo_call_output(call, 0, bytes, NULL, &out));
  return rondo_launch(rondo_call_stream(call), r->combine, (rondo_grid){(uint32_t)(bytes / 4), 0, 0},
                      RONDO_ARGS(&a, &b, &out));
}

static rondo_status put_parts(const run *r, rondo_call *call, const rondo_input *a) {
  TRY(put(r, call, 0, a->address, a->bytes, 2, 0));
  TRY(rondo_call_output_of_output(call, 1, 0, a->bytes / 16 * 4, a->bytes / 16 * 4, NULL));
  return rondo_call_output_of_input(call, 2, 0, 0, a->bytes / 8 * 4, NULL);
}

static rondo_status consume(const run *r, rondo_call *call, const rondo_input *a) {
  rondo_stream *stream = rondo_call_stream(call);
  void *scratch;
  TRY(rondo_malloc_async(stream, a->bytes, NULL, &scratch));
  TRY(rondo_copy_async(stream, scratch, a->address, a->bytes));
  TRY(rondo_call_drop_input(call, 0));
  TRY(put(r, call, 0, scratch, a->bytes, 1, 1));
  return rondo_free_async(stream, scratch);
}

static rondo_status count_step(void *user) {
  ++*(uint32_t *)user;
  return RONDO_OK;
}

static rondo_status hop(run *r, rondo_call *call, const rondo_input *a) {
  static uint32_t steps;
  rondo_stream *stream = rondo_call_stream(call);
  void *scratch;
  TRY(rondo_malloc_async(stream, a->bytes, NULL, &scratch));
  TRY(rondo_copy_async(stream, scratch, a->address, a->bytes));
  TRY(change(r, call, scratch, a->bytes, 2, 0));
  TRY(rondo_call_host_step(call, count_step, &steps));
  TRY(put(r, call, 0, scratch, a->bytes, 1, 5));
  return rondo_free_async(stream, scratch);
}

static rondo_status nest(run *r, rondo_call *call, const rondo_input *a) {
  const rondo_input input = {.address = a->address, .bytes = a->bytes};
  rondo_buffer *out;
  void *made;
  TRY(rondo_function_call(r->functions[AFFINE], rondo_call_stream(call), &input, 1, &out, 1));
  rondo_status status = rondo_buffer_address(out, &made);
  if (status == RONDO_OK) status = put(r, call, 0, made, a->bytes, 1, 2);
  rondo_buffer_release(out);
  return status;
}

static rondo_status body(rondo_call *call, void *user) {
  const function_user *self = user;
  run *r = self->run;
  rondo_input a, b;
  TRY(rondo_call_get_input(call, 0, &a));
  switch (self->id) {
    case AFFINE:
      return put(r, call, 0, a.address, a.bytes, 3, 1);
    case COMBINE:
    case WEIGHTED:
    case BACKWARD:
      return put_combined(r, call, a.address, rondo_call_input(call, 1), a.bytes);
    case PARTS:
      return put_parts(r, call, &a);
    case MUTATE:
      TRY(change(r, call, a.address, a.bytes, 2, 1));
      return put(r, call, 0, a.address, a.bytes, 3, 0);
    case CONSUME:
      return consume(r, call, &a);
    case HOPPING:
      return hop(r, call, &a);
    case SCALED:
      TRY(rondo_call_get_input(call, 1, &b));
      return put(r, call, 0, a.address, a.bytes, (uint32_t)b.scalar, 0);
    case FORWARD:
      TRY(put(r, call, 0, a.address, a.bytes, 5, 0));
      return put(r, call, 1, a.address, a.bytes, 1, 7);
    default:
      return nest(r, call, &a);
  }
}

/* Blocks and handles ----------------------------------------------------------------------------------------------- */

static block *new_block(run *r, block_kind kind, uint32_t count) {
  for (int i = AREAS; i < BLOCKS; i++) {
    block *at = &r->blocks[i];
    if (at->kind != FREE) continue;
    *at = (block){.kind = kind, .count = count};
    return at;
  }
  REQUIRE(false && "there are blocks enough");
  return NULL;
}

static bool is_own(const block *at) { return at->kind == OF_STEP || at->kind == KEPT; }

static void drop_block(run *r, block *at) {
  if (at->kind == CALLERS || at->holders > 0) return;
  if (is_own(at)) {
    r->late_bytes += at->count * 4;
    r->late_count++;
  }
  at->kind = FREE;
}

/* Releases the handle's own reference to its block. */
static void leave(run *r, handle *at) {
  block *memory = at->memory;
  *at = (handle){0};
  if (memory == NULL) return;
  memory->holders--;
  drop_block(r, memory);
}

/* Releases one reference of the handle: the buffer was released or given. */
static void forget_reference(run *r, handle *at) {
  if (--at->references > 0) {
    if (at->memory != NULL && !at->is_part) at->memory->holders--;
    return;
  }
  leave(r, at);
}

static handle *free_handle(run *r) {
  for (int i = 0; i < HANDLES; i++)
    if (r->handles[i].buffer == NULL) return &r->handles[i];
  return NULL;
}

static int count_free_handles(const run *r) {
  int count = 0;
  for (int i = 0; i < HANDLES; i++) count += r->handles[i].buffer == NULL;
  return count;
}

static void hold(handle *at, rondo_buffer *buffer, block *memory, uint32_t offset, uint32_t count, bool is_part) {
  *at = (handle){
      .buffer = buffer, .memory = memory, .offset = offset, .count = count, .references = 1, .is_part = is_part};
  memory->holders++;
}

static handle *some_handle(run *r, uint8_t choice) {
  for (int i = 0; i < HANDLES; i++) {
    handle *at = &r->handles[(choice + i) % HANDLES];
    if (at->buffer != NULL) return at;
  }
  return NULL;
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

static bool is_of_path(const block *at) { return (at->kind == OF_STEP || at->kind == RECORDED) && at->holders > 0; }

static bool is_path_dead(const run *r) {
  for (int i = AREAS; i < BLOCKS; i++)
    if (is_of_path(&r->blocks[i])) return false;
  return true;
}

static void expire(run *r, block *at) {
  for (int i = 0; i < HANDLES; i++)
    if (r->handles[i].memory == at) r->handles[i].memory = NULL;
  at->kind = FREE;
}

static void end_path(run *r) {
  for (int i = AREAS; i < BLOCKS; i++) {
    block *at = &r->blocks[i];
    if (!is_of_path(at)) continue;
    r->clone_count += r->clones && at->kind == RECORDED;
    if (r->clones)
      at->kind = KEPT;
    else
      expire(r, at);
  }
  r->current = r->depth = 0;
  r->is_eager = false;
}

/* Whether the path ends with the current call. */
static bool begin_call(run *r) {
  r->late_bytes = r->late_count = 0;
  if (r->scopes == 0 && !r->is_marking && !r->is_pending) r->step++;
  const bool ends = r->step != r->path_step || is_path_dead(r);
  r->path_step = r->step;
  return ends;
}

/* Looking ---------------------------------------------------------------------------------------------------------- */

static void synchronize(run *r) {
  for (int i = 0; i < STREAMS; i++) require_ok(rondo_stream_synchronize(r->streams[i]));
}

static void require_words(run *r, const handle *at) {
  uint32_t words[WORDS];
  rondo_buffer_info info = {.struct_size = sizeof info};
  void *address;
  require_ok(rondo_buffer_get_info(at->buffer, &info));
  REQUIRE(info.bytes == at->count * 4 && info.is_valid == (at->memory != NULL));
  if (at->memory == NULL) {
    REQUIRE(rondo_buffer_address(at->buffer, &address) == RONDO_INVALID_LIFETIME && address == NULL);
    REQUIRE(rondo_last_error()->reason == RONDO_REASON_STALE_BUFFER);
    return;
  }
  synchronize(r);
  require_ok(rondo_buffer_copy(at->buffer, r->streams[0], 0, words, at->count * 4));
  synchronize(r);
  REQUIRE(memcmp(words, at->memory->words + at->offset, at->count * 4) == 0);
}

static void require_area(run *r, int number) {
  uint32_t words[WORDS];
  synchronize(r);
  require_ok(rondo_copy_async(r->streams[0], words, r->areas[number], sizeof words));
  synchronize(r);
  REQUIRE(memcmp(words, r->blocks[number].words, sizeof words) == 0);
}

static void require_figures(run *r) {
  rondo_tree_info info = {.struct_size = sizeof info};
  rondo_memory_statistics memory = {.struct_size = sizeof memory};
  uint32_t live = 0, own = r->late_count;
  uint64_t own_bytes = r->late_bytes, skipped = 0;
  for (int i = AREAS; i < BLOCKS; i++) {
    const block *at = &r->blocks[i];
    live += at->kind == RECORDED;
    own += is_own(at);
    if (is_own(at)) own_bytes += at->count * 4;
  }
  require_ok(rondo_tree_get_info(r->tree, &info));
  require_ok(rondo_memory_get_statistics(r->device, &memory));
  for (int i = 0; i < RONDO_SKIP_ROOM; i++) skipped += info.skipped[i];
  REQUIRE(info.live_outputs == live);
  REQUIRE(info.eager_bytes == own_bytes);
  REQUIRE(memory.live_allocations == AREAS + own);
  REQUIRE(memory.arena_backed == info.arena_bytes && info.arena_used <= info.arena_bytes);
  REQUIRE(info.calls == info.replayed + info.recorded + skipped + r->refused);
  REQUIRE(info.path_length == r->depth && info.clones >= r->clone_count);
  REQUIRE(info.rolled_back == 0 && info.roots <= info.recordings);
  if (!r->is_exact) return;
  REQUIRE(info.recordings == (uint32_t)r->recording_count && info.evicted == 0);
  REQUIRE(info.demoted == r->demoted);
}

/* Foretelling ------------------------------------------------------------------------------------------------------ */

/* A call before it is made. */
typedef struct asked {
  function_id function;
  uint32_t count; /* number of words of each input */
  uint64_t scalar;
  int input_count;
  handle *handles[MOST_INPUTS]; /* NULL: an area */
  int areas[MOST_INPUTS];
  rondo_input inputs[MOST_INPUTS];
  uint32_t words[MOST_INPUTS][WORDS]; /* before it */
  int outputs;                        /* requested outputs */
} asked;

static int form_of(const asked *a) {
  int form = 0;
  while (sizes[form] != a->count) form++;
  return form;
}

static given look_at_input(const run *r, const asked *a, int index, bool ends) {
  const handle *at = a->handles[index];
  const bool is_static = a->function == WEIGHTED && index == 1;
  given out = {.way = is_static ? 1 : 0};
  if (a->function == SCALED && index == 1) return out;
  void *address = at == NULL ? (void *)r->areas[a->areas[index]] : NULL;
  if (at != NULL) require_ok(rondo_buffer_address(at->buffer, &address));
  if (at != NULL && at->memory->kind == RECORDED) {
    out.way = ends ? 0 : 2;
    out.is_sole = !ends && a->inputs[index].give && !at->is_part && at->memory->holders == 1;
  }
  if (out.way != 0) out.address = address;
  return out;
}

static bool is_in(const recording *of, const block *at) {
  for (int i = 0; i < of->live_count; i++)
    if (of->live[i][0] == at->recording && of->live[i][1] == at->output) return true;
  return false;
}

static bool is_fitting(const run *r, const recording *old, const recording *now) {
  if (old->parent != now->parent || old->function != now->function || old->count != now->count ||
      old->scalar != now->scalar)
    return false;
  for (int i = 0; i < MOST_INPUTS; i++)
    if (old->inputs[i].way != now->inputs[i].way || old->inputs[i].is_sole != now->inputs[i].is_sole ||
        old->inputs[i].address != now->inputs[i].address)
      return false;
  for (int i = AREAS; i < BLOCKS; i++)
    if (r->blocks[i].kind == RECORDED && !is_in(old, &r->blocks[i])) return false;
  return true;
}

static int count_siblings(const run *r, const recording *now) {
  int count = 0;
  for (int i = 0; i < r->recording_count; i++)
    count += r->recordings[i].parent == now->parent && r->recordings[i].function == now->function;
  return count;
}

/* Demoting --------------------------------------------------------------------------------------------------------- */

static place *find_place(run *r, function_id function) {
  for (int i = 0; i < r->place_count; i++)
    if (r->places[i].after == r->current && r->places[i].function == function) return &r->places[i];
  return NULL;
}

static bool is_demoted(const place *at, const given *input, int index) {
  return at != NULL && at->is_demoted[index] && input->way == 2;
}

/* Demoted inputs move. */
static void apply_demotion(run *r, recording *now) {
  const place *at = find_place(r, now->function);
  for (int i = 0; i < MOST_INPUTS; i++)
    if (r->demotion == RONDO_DEMOTION_BIND && is_demoted(at, &now->inputs[i], i)) now->inputs[i] = (given){.way = 0};
}

static bool is_skipped_there(run *r, const recording *now) {
  const place *at = find_place(r, now->function);
  for (int i = 0; i < MOST_INPUTS; i++)
    if (r->demotion == RONDO_DEMOTION_SKIP && is_demoted(at, &now->inputs[i], i)) return true;
  return false;
}

/* The number of outputs of the path at another address; -1 if something else differs. */
static int count_moved(const recording *old, const recording *now) {
  int moved = 0;
  if (old->parent != now->parent || old->function != now->function || old->count != now->count ||
      old->scalar != now->scalar)
    return -1;
  for (int i = 0; i < MOST_INPUTS; i++) {
    const given *then = &old->inputs[i], *is = &now->inputs[i];
    if (then->way != is->way || then->is_sole != is->is_sole) return -1;
    if (then->address == is->address) continue;
    if (is->way != 2) return -1;
    moved++;
  }
  return moved;
}

static void count_moves(const run *r, recording *now) {
  const recording *closest = NULL;
  for (int i = r->recording_count - 1; i >= 0; i--) {
    const recording *at = &r->recordings[i];
    const int moved = count_moved(at, now);
    if (moved < 0) continue;
    for (int k = 0; k < MOST_INPUTS; k++)
      if (at->moves[k] > now->moves[k]) now->moves[k] = at->moves[k];
    if (closest == NULL || moved < count_moved(closest, now)) closest = at;
  }
  for (int k = 0; closest != NULL && k < MOST_INPUTS; k++)
    now->moves[k] += closest->inputs[k].address != now->inputs[k].address;
}

static bool is_known(const run *r, uint32_t number) {
  for (int i = 0; i < r->recording_count; i++)
    if (r->recordings[i].number == number) return true;
  return number == 0;
}

/* Removes recordings that have a demoted input as an output of the path, and all recordings after them. */
static void remove_over(run *r, const place *at) {
  int kept = 0;
  const int count = r->recording_count;
  for (int i = 0; i < count; i++) {
    const recording *old = &r->recordings[i];
    bool is_over = false;
    for (int k = 0; k < MOST_INPUTS; k++)
      is_over |= old->parent == r->current && old->function == at->function && is_demoted(at, &old->inputs[k], k);
    r->recording_count = kept;
    if (!is_over && is_known(r, old->parent)) r->recordings[kept++] = *old;
  }
  r->recording_count = kept;
}

static void demote(run *r, recording *now) {
  const uint32_t most = r->most_at_place == 0 ? 128 : r->most_at_place;
  place *at = find_place(r, now->function);
  bool is_any = false;
  if (r->current == 0 || r->demotion == RONDO_DEMOTION_NEVER) return;
  count_moves(r, now);
  for (int i = 0; i < MOST_INPUTS; i++) {
    const bool is_static = now->function == WEIGHTED && i == 1;
    if (now->inputs[i].way != 2 || is_static || is_demoted(at, &now->inputs[i], i) ||
        now->moves[i] < (r->demote_after < most ? r->demote_after : most))
      continue;
    REQUIRE(at != NULL || r->place_count < PLACES);
    if (at == NULL) {
      at = &r->places[r->place_count++];
      *at = (place){.after = r->current, .function = now->function};
    }
    at->is_demoted[i] = is_any = true;
    r->demoted++;
  }
  if (is_any) remove_over(r, at);
  apply_demotion(r, now);
}

static recording describe(run *r, const asked *a, const given inputs[MOST_INPUTS]) {
  recording now = {
      .parent = r->current, .depth = r->depth + 1, .function = a->function, .count = a->count, .scalar = a->scalar};
  memcpy(now.inputs, inputs, sizeof now.inputs);
  for (int i = AREAS; i < BLOCKS; i++) {
    const block *at = &r->blocks[i];
    if (at->kind != RECORDED) continue;
    now.live[now.live_count][0] = at->recording;
    now.live[now.live_count++][1] = at->output;
  }
  apply_demotion(r, &now);
  return now;
}

/* Replays one of the recordings that fit. */
static void require_replayed(const run *r, const recording *now, uint32_t number) {
  for (int i = 0; i < r->recording_count; i++)
    if (r->recordings[i].number == number && is_fitting(r, &r->recordings[i], now)) return;
  REQUIRE(false && "the recording that was replayed fits");
}

static bool is_any_fitting(const run *r, const recording *now) {
  for (int i = 0; i < r->recording_count; i++)
    if (is_fitting(r, &r->recordings[i], now)) return true;
  return false;
}

static rondo_skip foretell_new(run *r, recording *now, const rondo_call_info *info) {
  demote(r, now);
  if (is_any_fitting(r, now))
    REQUIRE(info->outcome == RONDO_CALL_REPLAYED);
  else if (is_skipped_there(r, now))
    return RONDO_SKIP_MOVING_OUTPUT;
  else if (r->most_at_place != 0 && count_siblings(r, now) >= (int)r->most_at_place)
    return RONDO_SKIP_RECORDING_LIMIT;
  else
    REQUIRE(info->outcome == RONDO_CALL_RECORDED);
  return RONDO_SKIP_NONE;
}

static void require_outcome(run *r, const asked *a, recording *now, const rondo_call_info *info) {
  const bool is_off = r->is_off || r->is_function_off[a->function];
  const bool is_warm = r->is_warm[a->function][form_of(a)][a->scalar];
  rondo_skip skip = RONDO_SKIP_NONE;
  if (is_off)
    skip = RONDO_SKIP_DISABLED;
  else if (!is_warm)
    skip = RONDO_SKIP_WARM_UP;
  else if (r->is_eager)
    skip = RONDO_SKIP_AFTER_WARM_UP;
  else if (is_any_fitting(r, now))
    REQUIRE(info->outcome == RONDO_CALL_REPLAYED);
  else
    skip = foretell_new(r, now, info);
  REQUIRE(info->skip == skip);
  REQUIRE((skip != RONDO_SKIP_NONE) == (info->outcome == RONDO_CALL_EAGER));
  if (info->outcome == RONDO_CALL_REPLAYED) require_replayed(r, now, info->recording);
}

static uint32_t depth_of(const run *r, uint32_t number) {
  for (int i = 0; i < r->recording_count; i++)
    if (r->recordings[i].number == number) return r->recordings[i].depth;
  REQUIRE(false && "the recording is known");
  return 0;
}

/* Updates the path after the call. */
static void take_outcome(run *r, const asked *a, recording *now, const rondo_call_info *info) {
  if (r->is_exact) require_outcome(r, a, now, info);
  if (info->skip == RONDO_SKIP_WARM_UP) r->is_warm[a->function][form_of(a)][a->scalar] = true;
  if (info->skip == RONDO_SKIP_WARM_UP || info->skip == RONDO_SKIP_AFTER_WARM_UP) r->is_eager = true;
  if (info->outcome == RONDO_CALL_RECORDED) {
    REQUIRE(r->recording_count < MOST_RECORDINGS);
    now->number = info->recording;
    r->recordings[r->recording_count++] = *now;
  }
  if (info->outcome != RONDO_CALL_EAGER) {
    r->current = info->recording;
    r->depth = depth_of(r, info->recording);
  }
  if (a->function == NESTED && info->outcome == RONDO_CALL_EAGER) { /* results of the nested call */
    r->late_bytes += a->count * 4;
    r->late_count++;
  }
  if (a->function == FORWARD) r->is_pending = true;
  if (a->function == BACKWARD) r->is_pending = false;
}

/* Computing -------------------------------------------------------------------------------------------------------- */

static const int output_counts[FUNCTIONS] = {
    [AFFINE] = 1,  [COMBINE] = 1, [WEIGHTED] = 1, [PARTS] = 3,    [MUTATE] = 1, [CONSUME] = 1,
    [HOPPING] = 1, [SCALED] = 1,  [FORWARD] = 2,  [BACKWARD] = 1, [NESTED] = 1};

static uint32_t compute(const asked *a, uint32_t output, uint32_t i) {
  const uint32_t x = a->words[0][i], y = a->words[1][i];
  switch (a->function) {
    case AFFINE:
      return x * 3 + 1;
    case COMBINE:
    case WEIGHTED:
    case BACKWARD:
      return x * 31 + y;
    case PARTS:
      return x * 2;
    case MUTATE:
      return (x * 2 + 1) * 3;
    case CONSUME:
      return x + 1;
    case HOPPING:
      return x * 2 + 5;
    case SCALED:
      return x * (uint32_t)a->scalar;
    case FORWARD:
      return output == 0 ? x * 5 : x + 7;
    default:
      return x * 3 + 3;
  }
}

/* The memory of an input, if it still exists. */
static block *memory_of(run *r, const asked *a, int index, uint32_t *out_offset) {
  *out_offset = a->handles[index] == NULL ? 0 : a->handles[index]->offset;
  return a->handles[index] == NULL ? &r->blocks[a->areas[index]] : a->handles[index]->memory;
}

static block *make_fresh(run *r, const asked *a, uint32_t output, const rondo_call_info *info) {
  const bool is_recorded = info->outcome != RONDO_CALL_EAGER;
  block *made = new_block(r, is_recorded ? RECORDED : OF_STEP, a->count);
  made->recording = info->recording;
  made->output = output;
  for (uint32_t i = 0; i < a->count; i++) made->words[i] = compute(a, output, i);
  return made;
}

/* The outputs of PARTS after the first: a part of it, and one of the input, whose block may have ended with its step.
 * */
static void take_parts(run *r, const asked *a, rondo_buffer *const *outs, block *whole) {
  uint32_t offset;
  block *input = memory_of(r, a, 0, &offset);
  if (a->outputs > 1) hold(free_handle(r), outs[1], whole, a->count / 4, a->count / 4, true);
  if (a->outputs < 3) return;
  handle *part = free_handle(r);
  block gone = {0};
  const bool is_borrowed = a->handles[0] == NULL;
  hold(part, outs[2], input == NULL ? &gone : input, offset, a->count / 2, !is_borrowed);
  if (input == NULL) part->memory = NULL;
}

static void take_outputs(run *r, const asked *a, rondo_buffer *const *outs, const rondo_call_info *info) {
  const int fresh = a->function == FORWARD ? 2 : 1;
  for (int k = 0; k < fresh; k++) {
    block *made = make_fresh(r, a, (uint32_t)k, info);
    if (k < a->outputs) hold(free_handle(r), outs[k], made, 0, a->count, false);
    if (k == 0 && a->function == PARTS) take_parts(r, a, outs, made);
    drop_block(r, made);
  }
}

static void write_input(run *r, const asked *a) {
  uint32_t offset;
  block *memory = memory_of(r, a, 0, &offset);
  if (a->function != MUTATE || memory == NULL) return;
  for (uint32_t i = 0; i < a->count; i++) memory->words[offset + i] = a->words[0][i] * 2 + 1;
}

/* Calls ------------------------------------------------------------------------------------------------------------ */

static uint32_t round_count(uint32_t most, uint8_t choice) {
  int form = choice % FORMS;
  while (sizes[form] > most) form--;
  return sizes[form];
}

static void choose_input(run *r, asked *a, int index) {
  const uint8_t choice = take(r);
  handle *at = choice % 4 != 0 ? some_handle(r, choice / 4) : NULL;
  if (at != NULL && at->count == 0) at = NULL;
  if (index == 1 && at != NULL && at == a->handles[0] && a->inputs[0].give) at = NULL;
  a->handles[index] = at;
  a->areas[index] = choice / 4 % AREAS;
  a->inputs[index] = at != NULL ? (rondo_input){.buffer = at->buffer, .give = take(r) % 2 == 0}
                                : (rondo_input){.address = r->areas[a->areas[index]]};
}

static void choose_call(run *r, asked *a) {
  const uint8_t choice = take(r), size = r->menu_sizes[choice % 2];
  uint32_t most = WORDS;
  a->function = r->menu[take(r) % MENU];
  const bool has_two = a->function == COMBINE || a->function == WEIGHTED || a->function == BACKWARD;
  a->input_count = has_two || a->function == SCALED ? 2 : 1;
  for (int i = 0; i < (has_two ? 2 : 1); i++) {
    choose_input(r, a, i);
    if (a->handles[i] != NULL && a->handles[i]->count < most) most = a->handles[i]->count;
  }
  a->count = round_count(most, size);
  for (int i = 0; i < (has_two ? 2 : 1); i++) a->inputs[i].bytes = a->count * 4;
  if (a->function == SCALED) a->scalar = 1 + choice / 2 % (SCALARS - 1);
  if (a->function == SCALED) a->inputs[1] = (rondo_input){.scalar = a->scalar};
  const int room = count_free_handles(r), makes = output_counts[a->function];
  a->outputs = take(r) % (makes + 2);
  if (a->outputs > makes) a->outputs = makes;
  if (a->outputs > room) a->outputs = room;
}

static void read_inputs(run *r, asked *a) {
  for (int i = 0; i < a->input_count; i++) {
    uint32_t offset;
    const block *memory = memory_of(r, a, i, &offset);
    if (memory != NULL && (i == 0 || a->function != SCALED)) memcpy(a->words[i], memory->words + offset, a->count * 4);
  }
}

static bool has_stale_input(const asked *a) {
  for (int i = 0; i < a->input_count; i++)
    if (a->handles[i] != NULL && a->handles[i]->memory == NULL) return true;
  return false;
}

static void forget_given(run *r, const asked *a) {
  for (int i = 0; i < a->input_count; i++)
    if (a->handles[i] != NULL && a->inputs[i].give) forget_reference(r, a->handles[i]);
}

static void call_stale(run *r, const asked *a) {
  rondo_buffer *outs[MOST_OUTPUTS];
  REQUIRE(rondo_function_call(r->functions[a->function], r->streams[r->stream], a->inputs, (size_t)a->input_count, outs,
                              (size_t)a->outputs) == RONDO_INVALID_LIFETIME);
  REQUIRE(rondo_last_error()->reason == RONDO_REASON_STALE_BUFFER);
  for (int k = 0; k < a->outputs; k++) REQUIRE(outs[k] == NULL);
  r->refused++;
  forget_given(r, a);
}

static void make_call(run *r, asked *a) {
  rondo_buffer *outs[MOST_OUTPUTS] = {NULL};
  rondo_call_info info = {.struct_size = sizeof info};
  given inputs[MOST_INPUTS] = {{0}};
  read_inputs(r, a);
  const bool ends = begin_call(r);
  for (int i = 0; i < a->input_count; i++) inputs[i] = look_at_input(r, a, i, ends);
  if (ends) end_path(r);
  recording now = describe(r, a, inputs);
  require_ok(rondo_function_call(r->functions[a->function], r->streams[r->stream], a->inputs, (size_t)a->input_count,
                                 outs, (size_t)a->outputs));
  require_ok(rondo_tree_get_last_call(r->tree, &info));
  take_outcome(r, a, &now, &info);
  write_input(r, a);
  take_outputs(r, a, outs, &info);
  forget_given(r, a);
}

static void call_function(run *r) {
  asked a = {0};
  choose_call(r, &a);
  const int stream = take(r) % STREAMS;
  if (a.handles[1] != NULL && a.handles[1] == a.handles[0]) a.inputs[1].give = false; /* there is one reference */
  if (has_stale_input(&a)) {
    call_stale(r, &a);
    return;
  }
  r->stream = stream;
  make_call(r, &a);
}

static void call_look(run *r) {
  const uint8_t choice = take(r);
  const handle *at = some_handle(r, choice);
  if (at != NULL) require_words(r, at);
  require_area(r, choice % AREAS);
}

static void call_release(run *r) {
  handle *at = some_handle(r, take(r));
  if (at == NULL) return;
  rondo_buffer_release(at->buffer);
  forget_reference(r, at);
}

static void call_retain(run *r) {
  handle *at = some_handle(r, take(r));
  if (at == NULL || at->references > 2) return;
  rondo_buffer_retain(at->buffer);
  at->references++;
  if (at->memory != NULL && !at->is_part) at->memory->holders++;
}

static void call_clone(run *r) {
  const handle *from = some_handle(r, take(r));
  handle *to = free_handle(r);
  rondo_buffer *buffer = NULL;
  if (from == NULL || to == NULL || from->count == 0) return;
  synchronize(r);
  const rondo_status status = rondo_buffer_clone(from->buffer, r->streams[r->stream], &buffer);
  REQUIRE((status == RONDO_OK) == (from->memory != NULL) && (buffer != NULL) == (status == RONDO_OK));
  if (status != RONDO_OK) return;
  synchronize(r);
  block *made = new_block(r, KEPT, from->count);
  memcpy(made->words, from->memory->words + from->offset, from->count * 4);
  hold(to, buffer, made, 0, from->count, false);
}

static void call_create(run *r) {
  handle *to = free_handle(r);
  rondo_buffer *buffer = NULL;
  void *address;
  if (to == NULL) return;
  const uint32_t count = sizes[take(r) % FORMS];
  require_ok(rondo_buffer_create(r->tree, count * 4, NULL, &buffer));
  require_ok(rondo_buffer_address(buffer, &address));
  require_ok(rondo_fill_async(r->streams[r->stream],
                              &(rondo_fill){.dst = address, .value = 9, .element_bytes = 4, .width = count}));
  synchronize(r);
  block *made = new_block(r, KEPT, count);
  for (uint32_t i = 0; i < count; i++) made->words[i] = 9;
  hold(to, buffer, made, 0, count, false);
}

static void call_step(run *r) {
  const uint8_t choice = take(r);
  if (choice % 16 == 0) {
    const rondo_status status = rondo_tree_mark_step(r->tree);
    REQUIRE((status == RONDO_OK) == (r->scopes == 0));
    if (status != RONDO_OK) return;
    r->is_marking = true;
    r->is_pending = false;
    r->step++;
  } else if (choice % 16 < (r->scopes == 0 ? 12 : 4)) {
    require_ok(rondo_tree_step_begin(r->tree));
    if (r->scopes++ > 0) return;
    r->is_pending = false;
    r->step++;
  } else {
    const rondo_status status = rondo_tree_step_end(r->tree);
    REQUIRE((status == RONDO_OK) == (r->scopes > 0));
    if (status != RONDO_OK || --r->scopes > 0) return;
    r->is_pending = false;
    r->step++;
  }
}

static void call_switch(run *r) {
  const uint8_t choice = take(r);
  const function_id function = r->menu[choice / 8 % MENU];
  const bool on = choice % 8 != 0;
  if (choice / 64 % 2 == 0) {
    require_ok(rondo_function_set_recording(r->functions[function], on));
    r->is_function_off[function] = !on;
  } else {
    require_ok(rondo_tree_set_recording(r->tree, on));
    r->is_off = !on;
  }
}

/* Steps in which a function receives another of its outputs each time. */
enum { MADE = 4, MOST_ROUNDS = 20 };

static handle *make_one(run *r, int area, uint32_t count) {
  asked a = {.function = AFFINE, .count = count, .input_count = 1, .outputs = 1, .areas = {area}};
  handle *made = free_handle(r);
  a.inputs[0] = (rondo_input){.address = r->areas[area], .bytes = count * 4};
  make_call(r, &a);
  return made;
}

static void use_some(run *r, function_id function, handle *const made[MADE], uint32_t count) {
  const uint8_t choice = take(r);
  const bool has_two = function == COMBINE || function == WEIGHTED || function == BACKWARD;
  asked a = {.function = function, .count = count, .input_count = has_two || function == SCALED ? 2 : 1};
  for (int i = 0; i < (has_two ? 2 : 1); i++) {
    a.handles[i] = made[choice / (i == 0 ? 1 : MADE) % MADE];
    a.inputs[i] = (rondo_input){.buffer = a.handles[i]->buffer, .bytes = count * 4};
  }
  a.inputs[0].give = choice / 64 == 3 && a.handles[0] != a.handles[1];
  if (function == SCALED) a.inputs[1] = (rondo_input){.scalar = a.scalar = 1};
  make_call(r, &a);
}

static void drop_made(run *r, handle *const made[MADE]) {
  for (int i = 0; i < MADE; i++) {
    if (made[i]->buffer == NULL) continue; /* it was given */
    rondo_buffer_release(made[i]->buffer);
    forget_reference(r, made[i]);
  }
}

static void begin_scope(run *r) {
  require_ok(rondo_tree_step_begin(r->tree));
  r->scopes++;
  r->is_pending = false;
  r->step++;
}

static void end_scope(run *r) {
  require_ok(rondo_tree_step_end(r->tree));
  r->scopes--;
  r->is_pending = false;
  r->step++;
}

static void call_moving(run *r, int rounds) {
  const function_id function = r->menu[take(r) % MENU];
  const uint32_t count = sizes[r->menu_sizes[0]];
  if (r->scopes > 0 || count_free_handles(r) < MADE) return;
  for (; rounds > 0 && r->rounds < MOST_ROUNDS; rounds--, r->rounds++) {
    handle *made[MADE];
    begin_scope(r);
    for (int i = 0; i < MADE; i++) made[i] = make_one(r, i % AREAS, count);
    use_some(r, function, made, count);
    drop_made(r, made);
    end_scope(r);
  }
}

static void call_reset(run *r) {
  const uint8_t choice = take(r) % 16;
  if (choice >= 8) call_moving(r, choice - 4);
  if (choice != 0) return;
  require_ok(rondo_tree_reset(r->tree));
  r->is_pending = false;
  r->late_bytes = r->late_count = 0;
  end_path(r);
  r->recording_count = r->place_count = 0;
  r->step++;
}

static void call_write(run *r) {
  const uint8_t number = take(r) % AREAS, value = take(r);
  for (uint32_t i = 0; i < WORDS; i++) r->blocks[number].words[i] = value * 1000u + i;
  synchronize(r);
  require_ok(rondo_copy_async(r->streams[0], r->areas[number], r->blocks[number].words, WORDS * 4));
  synchronize(r);
}

typedef void call_fn(run *r);

static void call_some(run *r) {
  static call_fn *const calls[] = {call_function, call_function, call_function, call_function, call_function,
                                   call_function, call_function, call_function, call_look,     call_look,
                                   call_release,  call_release,  call_release,  call_retain,   call_clone,
                                   call_create,   call_step,     call_step,     call_step,     call_switch,
                                   call_reset,    call_write};
  calls[take(r) % (sizeof calls / sizeof *calls)](r);
}

/* Runs ------------------------------------------------------------------------------------------------------------- */

static void make_functions(run *r, uint8_t binding) {
  static const char *const names[FUNCTIONS] = {"affine", "combine", "weighted", "parts",    "mutate", "consume",
                                               "hop",    "scaled",  "forward",  "backward", "nested"};
  for (int i = 0; i < FUNCTIONS; i++) {
    uint32_t inputs[2] = {RONDO_INPUT_MOVING, RONDO_INPUT_MOVING};
    if (i == WEIGHTED) inputs[1] = RONDO_INPUT_STATIC;
    if (i == MUTATE) inputs[0] |= RONDO_INPUT_MUTATED;
    if (i == SCALED) inputs[1] = RONDO_INPUT_SCALAR;
    const bool has_two = i == COMBINE || i == WEIGHTED || i == BACKWARD || i == SCALED;
    r->users[i] = (function_user){.run = r, .id = (function_id)i};
    const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT,
                                            .name = names[i],
                                            .body = body,
                                            .user = &r->users[i],
                                            .inputs = inputs,
                                            .input_count = has_two ? 2 : 1,
                                            .binding = (rondo_binding)((binding + i) % 3),
                                            .demotion = r->demotion,
                                            .demote_after = r->demote_after,
                                            .kind = i == FORWARD    ? RONDO_FUNCTION_FORWARD
                                                    : i == BACKWARD ? RONDO_FUNCTION_BACKWARD
                                                                    : RONDO_FUNCTION_INFERENCE};
    require_ok(rondo_function_create(r->tree, &options, &r->functions[i]));
  }
}

static void set_up(run *r, const char *device) {
  const uint8_t choice = take(r), binding = take(r);
  test_allocator_init(&r->allocator);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &r->allocator.table};
  require_ok(rondo_device_open(device, &options, &r->device));
  require_ok(rondo_kernel_create(r->device, test_kernel_options(TEST_KERNEL_AFFINE), &r->affine));
  require_ok(rondo_kernel_create(r->device, test_kernel_options(TEST_KERNEL_COMBINE), &r->combine));
  for (int i = 0; i < STREAMS; i++) require_ok(rondo_stream_create(r->device, NULL, &r->streams[i]));
  for (uint32_t i = 0; i < AREAS; i++) {
    void *area;
    require_ok(rondo_malloc(r->device, WORDS * 4, NULL, &area));
    r->areas[i] = area;
    r->blocks[i] = (block){.kind = CALLERS, .count = WORDS};
    for (uint32_t k = 0; k < WORDS; k++) r->blocks[i].words[k] = 100 * i + k;
    require_ok(rondo_copy_async(r->streams[0], area, r->blocks[i].words, WORDS * 4));
  }
  synchronize(r);
  r->clones = choice % 2 == 1;
  r->most_at_place = choice / 2 % 4 == 3 ? 2 : 0;
  r->is_exact = choice / 8 % 4 != 3;
  r->demote_after = choice / 32 % 4 == 0 ? 5 : choice / 32 % 4;
  r->demotion = (rondo_demotion)(binding < 128 ? RONDO_DEMOTION_BIND : binding / 64 - 1);
  const rondo_tree_options tree = {RONDO_TREE_OPTIONS_INIT,
                                   .outputs = r->clones ? RONDO_OUTPUTS_CLONE : RONDO_OUTPUTS_EXPIRE,
                                   .max_recordings_per_parent = r->most_at_place, .max_recordings = r->is_exact ? 0 : 3,
                                   .no_plan_again = true}; /* which the model does not predict */
  require_ok(rondo_tree_create(r->device, &tree, &r->tree));
  make_functions(r, binding);
  for (int i = 0; i < MENU; i++) r->menu[i] = (function_id)(take(r) % FUNCTIONS);
  for (int i = 0; i < 2; i++) r->menu_sizes[i] = take(r) % FORMS;
}

static void require_nothing_left(run *r) {
  rondo_memory_statistics left = {.struct_size = sizeof left};
  require_ok(rondo_memory_trim(r->device));
  require_ok(rondo_memory_get_statistics(r->device, &left));
  REQUIRE(left.live_allocations == 0 && left.pool_reserved == 0 && left.graph_reserved == 0 && left.arena_backed == 0);
}

static void tear_down(run *r) {
  for (int i = 0; i < HANDLES; i++)
    if (r->handles[i].buffer != NULL) require_words(r, &r->handles[i]);
  for (int i = 0; i < AREAS; i++) require_area(r, i);
  require_ok(rondo_tree_destroy(r->tree));
  for (int i = 0; i < HANDLES; i++) {
    handle *at = &r->handles[i];
    void *address;
    if (at->buffer != NULL) REQUIRE(rondo_buffer_address(at->buffer, &address) != RONDO_OK);
    for (; at->references > 0; at->references--) rondo_buffer_release(at->buffer);
  }
  for (int i = 0; i < AREAS; i++) require_ok(rondo_free(r->device, r->areas[i]));
  synchronize(r);
  require_nothing_left(r);
  for (int i = 0; i < STREAMS; i++) require_ok(rondo_stream_destroy(r->streams[i]));
  rondo_kernel_destroy(r->affine);
  rondo_kernel_destroy(r->combine);
  require_ok(rondo_device_close(r->device));
  REQUIRE(r->allocator.live == 0 && r->allocator.faults == 0);
}

void test_tree_model_run(const char *device, const char *name, const uint8_t *data, size_t size) {
  static run r;
  memset(&r, 0, sizeof r);
  run_name = name;
  call_number = 0;
  r.data = data;
  r.left = size;
  set_up(&r, device);
  while (r.left > 0 && call_number++ < MOST_CALLS) {
    call_some(&r);
    require_figures(&r);
  }
  tear_down(&r);
}

/* SPDX-License-Identifier: MIT
 * All of the memory interface: the input is a stream of calls on one small CPU device, some wrong, some out of memory.
 * A model knows what lives: addresses are apart, figures add up, and every allocation is filled with a value of its own
 * in stream order and looked at, also in stream order, before it is freed, by host functions that run whenever the
 * device gets to them. Graphs fill and look at their own. What fails changes nothing; at the end nothing is left.
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/rondo.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuzz/fuzz_target.h"
#include "support/test_allocator.h"

enum {
  MAX_CALLS = 250,
  STREAMS = 3,
  POOLS = 3, /* the first is the default one */
  BLOCKS = 24,
  HOSTS = 3,
  FAMILIES = 4,
  ALLOCS = 3,
  EXECS = 5,
  AT_ONCE = -1,
  OF_GRAPH = -2,
  CHECKS = 2 * MAX_CALLS * ALLOCS + BLOCKS,
  LIMIT = 24 << 20
};

/* What a host function looks for. */
typedef struct check {
  const unsigned char *address;
  size_t bytes;
  unsigned char value;
} check;

/* Memory that lives, or that a graph's alloc node stands for. */
typedef struct block {
  char *address; /* NULL: this entry is empty */
  size_t bytes;
  unsigned char value; /* 0: not written yet */
  unsigned char fresh; /* what its graph writes */
  int stream;          /* that used it last; -1: the host may use it at any time */
  int pool;            /* AT_ONCE, OF_GRAPH; POOLS: a destroyed one's */
  bool kept;           /* of a graph: not freed there */
  bool live;
} block;

/* A graph, its clone or a graph that it is a child of, and what they allocate. */
typedef struct family {
  rondo_graph *graphs[2];
  block allocs[ALLOCS];
  int execs;
} family;

typedef struct fuzz_exec {
  rondo_exec *exec;
  family *of;
  bool auto_free;
} fuzz_exec;

typedef struct fuzz_run {
  const uint8_t *data;
  size_t left;
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *streams[STREAMS];
  rondo_event *event;
  rondo_pool *pools[POOLS];
  block blocks[BLOCKS];
  void *hosts[HOSTS];
  family families[FAMILIES];
  fuzz_exec execs[EXECS];
  rondo_profile *profile; /* of some graph; NULL: none */
  check checks[CHECKS];
  size_t check_count;
  unsigned char last_value;
} fuzz_run;

static uint8_t take(fuzz_run *run) {
  if (run->left == 0) return 0;
  run->left--;
  return *run->data++;
}

static bool is_failure_of_memory(rondo_status status) { return status == RONDO_OUT_OF_MEMORY; }

/* A call that may only fail for want of memory. */
static bool went_well(rondo_status status) {
  REQUIRE(status == RONDO_OK || is_failure_of_memory(status));
  REQUIRE(status == RONDO_OK || rondo_last_error()->message[0] != '\0');
  return status == RONDO_OK;
}

/* The allocator fails only inside of calls that the input chose. */
static void require_ok(fuzz_run *run, rondo_status status) {
  (void)run;
  REQUIRE(status == RONDO_OK);
}

/* Work ------------------------------------------------------------------------------------------------------------ */

static rondo_status look(void *user) {
  const check *self = user;
  const size_t step = self->bytes > 4096 ? 509 : 1;
  for (size_t i = 0; i < self->bytes; i += step) REQUIRE(self->address[i] == self->value);
  REQUIRE(self->address[self->bytes - 1] == self->value);
  return RONDO_OK;
}

static rondo_status dawdle(void *user) {
  const struct timespec time = {.tv_nsec = (long)(uintptr_t)user * 1000};
  (void)nanosleep(&time, NULL);
  return RONDO_OK;
}

static check *new_check(fuzz_run *run, const block *of) {
  REQUIRE(run->check_count < CHECKS);
  check *self = &run->checks[run->check_count++];
  *self = (check){.address = (const unsigned char *)of->address, .bytes = of->bytes, .value = of->value};
  return self;
}

static unsigned char new_value(fuzz_run *run) {
  run->last_value = (unsigned char)(run->last_value % 250 + 1);
  return run->last_value;
}

static rondo_fill fill_of(const block *of) {
  return (rondo_fill){.dst = of->address, .value = of->value, .element_bytes = 1, .width = of->bytes};
}

/* What `to` gets from now on comes after what `from` has. False without memory for it. */
static bool order(fuzz_run *run, int from, int to) {
  if (from == to || from < 0) return true;
  return rondo_event_record(run->event, run->streams[from]) == RONDO_OK &&
         rondo_stream_wait_event(run->streams[to], run->event) == RONDO_OK;
}

/* Moves the block's use to the stream. */
static bool move(fuzz_run *run, block *of, int stream) {
  if (!order(run, of->stream, stream)) return false;
  of->stream = stream;
  return true;
}

static bool write_block(fuzz_run *run, block *of) {
  block next = *of;
  next.value = new_value(run);
  const rondo_fill fill = fill_of(&next);
  if (!went_well(rondo_fill_async(run->streams[of->stream], &fill))) return false;
  *of = next;
  return true;
}

static bool look_at(fuzz_run *run, const block *of) {
  if (of->value == 0) return true;
  return went_well(rondo_host_async(run->streams[of->stream], look, new_check(run, of)));
}

/* The host has waited for all streams. */
static void synchronize_all(fuzz_run *run) {
  for (int i = 0; i < STREAMS; i++) require_ok(run, rondo_stream_synchronize(run->streams[i]));
}

/* The model ------------------------------------------------------------------------------------------------------- */

static bool overlap(const block *a, const block *b) {
  return a->address < b->address + b->bytes && b->address < a->address + a->bytes;
}

/* Whether nothing is left of a graph: then its addresses may be given out again. */
static bool is_gone(const family *of) {
  bool gone = of->graphs[0] == NULL && of->graphs[1] == NULL && of->execs == 0;
  for (int i = 0; i < ALLOCS; i++) gone = gone && !of->allocs[i].live;
  return gone;
}

/* A new allocation lies apart from all that lives, and from what graphs may make live. */
static void require_apart(const fuzz_run *run, const block *made) {
  for (int i = 0; i < BLOCKS; i++) {
    const block *at = &run->blocks[i];
    if (at != made && at->address != NULL) REQUIRE(!overlap(at, made));
  }
  for (int f = 0; f < FAMILIES; f++)
    for (int i = 0; i < ALLOCS; i++) {
      const block *at = &run->families[f].allocs[i];
      const bool of_graphs = made->pool == OF_GRAPH; /* these may share addresses as their order allows */
      if (at->address != NULL && !of_graphs && !is_gone(&run->families[f])) REQUIRE(!overlap(at, made));
    }
}

static bool begins_something(const fuzz_run *run, const char *address) {
  for (int i = 0; i < BLOCKS; i++)
    if (run->blocks[i].address == address) return true;
  for (int f = 0; f < FAMILIES; f++)
    for (int i = 0; i < ALLOCS; i++)
      if (run->families[f].allocs[i].address == address && run->families[f].allocs[i].live) return true;
  return false;
}

static uint64_t rounded(size_t bytes) { return (bytes + 255) / 256 * 256; }

static void require_figures(const fuzz_run *run) {
  rondo_memory_statistics now = {.struct_size = sizeof now};
  REQUIRE(rondo_memory_get_statistics(run->device, &now) == RONDO_OK);
  uint64_t used = 0, live = 0, of_pool[POOLS] = {0};
  for (int i = 0; i < BLOCKS; i++) {
    const block *at = &run->blocks[i];
    if (at->address == NULL) continue;
    live++;
    if (at->pool >= 0) used += rounded(at->bytes);
    if (at->pool >= 0 && at->pool < POOLS) of_pool[at->pool] += rounded(at->bytes);
  }
  REQUIRE(now.live_allocations == live);
  REQUIRE(now.pool_used >= used); /* a block that could not be cut is used whole */
  REQUIRE(now.pool_used <= now.pool_reserved && now.pool_reserved + now.graph_reserved <= LIMIT);
  REQUIRE(now.pool_used <= now.pool_used_high && now.pool_reserved <= now.pool_reserved_high);
  REQUIRE(now.graph_used <= now.graph_used_high && now.graph_reserved <= now.graph_reserved_high);
  for (int i = 0; i < POOLS; i++) {
    rondo_pool_statistics pool = {.struct_size = sizeof pool};
    if (run->pools[i] == NULL) continue;
    REQUIRE(rondo_pool_get_statistics(run->pools[i], &pool) == RONDO_OK);
    REQUIRE(pool.used >= of_pool[i] && pool.used <= pool.reserved);
  }
}

/* Blocks ---------------------------------------------------------------------------------------------------------- */

static size_t some_size(fuzz_run *run) {
  const uint8_t choice = take(run);
  if (choice < 160) return 1 + (size_t)choice * 13;
  if (choice < 230) return (size_t)(choice - 150) << 10;
  if (choice < 254) return (size_t)(choice - 229) << 19;
  return choice == 254 ? (size_t)LIMIT + 1 : SIZE_MAX;
}

static int some_stream(fuzz_run *run) { return take(run) % STREAMS; }

static block *some_block(fuzz_run *run, bool taken) {
  const int first = take(run) % BLOCKS;
  for (int i = 0; i < BLOCKS; i++) {
    block *at = &run->blocks[(first + i) % BLOCKS];
    if ((at->address != NULL) == taken) return at;
  }
  return NULL;
}

static void enter(fuzz_run *run, block *at, void *address, size_t bytes, int stream, int pool) {
  REQUIRE((uintptr_t)address % 256 == 0 && address != NULL);
  *at = (block){.address = address, .bytes = bytes, .stream = stream, .pool = pool, .live = true};
  require_apart(run, at);
}

static void call_malloc(fuzz_run *run, bool at_once) {
  const size_t bytes = some_size(run);
  const int stream = some_stream(run), pool = take(run) % (POOLS + 1) - 1;
  block *at = some_block(run, false);
  void *address = run;
  rondo_status status;
  if (at == NULL) return;
  rondo_pool *current = NULL;
  int counted = AT_ONCE;
  if (at_once) {
    status = rondo_malloc(run->device, bytes, take(run) % 2 == 0 ? "block" : NULL, &address);
  } else {
    REQUIRE(rondo_device_get_pool(run->device, &current) == RONDO_OK);
    rondo_pool *named = pool < 0 ? NULL : run->pools[pool];
    for (int i = 0; i < POOLS; i++)
      if (run->pools[i] == (named == NULL ? current : named)) counted = i;
    REQUIRE(counted >= 0);
    const rondo_malloc_options options = {RONDO_MALLOC_OPTIONS_INIT, .name = "ordered", .pool = named};
    status = rondo_malloc_async(run->streams[stream], bytes, &options, &address);
  }
  REQUIRE((status == RONDO_OK) == (address != NULL));
  if (!went_well(status)) return;
  enter(run, at, address, bytes, at_once ? -1 : stream, counted);
  if (at_once) at->stream = stream;
  if (take(run) % 4 != 0) (void)write_block(run, at);
}

/* Looks at the block and frees it, in one of the ways. */
static void free_block(fuzz_run *run, block *at, uint8_t way, int stream) {
  if (!look_at(run, at)) return;
  rondo_status status;
  if (way % 4 == 0) {
    synchronize_all(run);
    status = rondo_free(run->device, at->address);
  } else {
    if (way % 4 == 1 && !move(run, at, stream)) return;
    status = rondo_free_async(run->streams[at->stream], at->address);
  }
  if (went_well(status)) *at = (block){0};
}

static void call_free(fuzz_run *run) {
  block *at = some_block(run, true);
  const uint8_t way = take(run);
  const int stream = some_stream(run);
  if (at == NULL) return;
  if (at->value == 0 && way >= 240) { /* nobody used it, so nobody needs to be waited for */
    const rondo_status status =
        way % 2 == 0 ? rondo_free(run->device, at->address) : rondo_free_async(run->streams[stream], at->address);
    if (went_well(status)) *at = (block){0};
    return;
  }
  free_block(run, at, way, stream);
}

static void call_write(fuzz_run *run) {
  block *at = some_block(run, true);
  const int stream = some_stream(run);
  if (at == NULL || !look_at(run, at) || !move(run, at, stream)) return;
  (void)write_block(run, at);
}

static void call_host(fuzz_run *run) {
  const int at = take(run) % HOSTS;
  const size_t bytes = 1 + take(run);
  if (run->hosts[at] != NULL) {
    require_ok(run, rondo_host_free(run->device, run->hosts[at]));
    run->hosts[at] = NULL;
  } else if (went_well(rondo_host_malloc(run->device, bytes, &run->hosts[at]))) {
    memset(run->hosts[at], 1, bytes);
  }
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

static family *some_family(fuzz_run *run, bool with_graph) {
  const int first = take(run) % FAMILIES;
  for (int i = 0; i < FAMILIES; i++) {
    family *at = &run->families[(first + i) % FAMILIES];
    if (with_graph && (at->graphs[0] != NULL || at->graphs[1] != NULL)) return at;
    if (!with_graph && is_gone(at)) return at;
  }
  return NULL;
}

/* alloc -> fill -> look -> free, or without the free, for each allocation; side by side or one behind the other. */
static rondo_status build(fuzz_run *run, family *into, rondo_graph *graph, bool chained) {
  rondo_node last = {0};
  for (int i = 0; i < ALLOCS; i++) {
    block at = {.bytes = some_size(run), .value = new_value(run), .pool = OF_GRAPH};
    at.fresh = at.value;
    void *address = NULL;
    const uint8_t choice = take(run);
    const size_t behind = chained && last.id != 0 ? 1 : 0;
    if (choice % 4 == 0 && i > 0) break;
    at.kept = choice % 4 == 1;
    rondo_node node = {0};
    rondo_status status = rondo_graph_add_alloc(graph, &last, behind, at.bytes, "node", &address, &node);
    if (status != RONDO_OK) return status;
    at.address = address;
    const rondo_fill fill = fill_of(&at);
    status = rondo_graph_add_fill(graph, &node, 1, &fill, &node);
    if (status == RONDO_OK) status = rondo_graph_add_host(graph, &node, 1, look, new_check(run, &at), &node);
    if (status == RONDO_OK && !at.kept) status = rondo_graph_add_free(graph, &node, 1, address, &node);
    if (status != RONDO_OK) return status;
    into->allocs[i] = at;
    last = node;
  }
  return RONDO_OK;
}

/* The same by capture, on a stream that is not busy with anything else of the model's. */
static rondo_status capture_work(fuzz_run *run, family *into, rondo_stream *stream) {
  for (int i = 0; i < ALLOCS; i++) {
    block at = {.bytes = some_size(run), .value = new_value(run), .pool = OF_GRAPH};
    at.fresh = at.value;
    void *address = NULL;
    const uint8_t choice = take(run);
    if (choice % 4 == 0 && i > 0) break;
    at.kept = choice % 4 == 1;
    rondo_status status = rondo_malloc_async(stream, at.bytes, NULL, &address);
    if (status != RONDO_OK) return status;
    at.address = address;
    const rondo_fill fill = fill_of(&at);
    status = rondo_fill_async(stream, &fill);
    if (status == RONDO_OK) status = rondo_host_async(stream, look, new_check(run, &at));
    if (status == RONDO_OK && !at.kept) status = rondo_free_async(stream, address);
    if (status != RONDO_OK) return status;
    into->allocs[i] = at;
  }
  return RONDO_OK;
}

static rondo_status capture(fuzz_run *run, family *into, rondo_profile *profile, rondo_graph **out) {
  rondo_stream *stream = run->streams[some_stream(run)];
  const rondo_capture_options options = {RONDO_CAPTURE_OPTIONS_INIT, .mode = RONDO_CAPTURE_RELAXED, .profile = profile};
  rondo_status status = rondo_capture_begin_with(stream, &options);
  if (status != RONDO_OK) return status;
  status = capture_work(run, into, stream);
  const rondo_status ended = rondo_capture_end(stream, out);
  return status == RONDO_OK ? ended : status;
}

static void call_graph(fuzz_run *run) {
  family *into = some_family(run, false);
  const uint8_t choice = take(run);
  rondo_graph *graph = NULL;
  if (into == NULL) return;
  *into = (family){0};
  rondo_status status;
  rondo_profile *profile = choice % 8 >= 4 ? run->profile : NULL;
  if (choice % 2 == 0) {
    const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .profile = profile};
    status = rondo_graph_create(run->device, &options, &graph);
    if (status == RONDO_OK) status = build(run, into, graph, choice % 4 == 0);
  } else {
    status = capture(run, into, profile, &graph);
  }
  if (went_well(status)) {
    into->graphs[0] = graph;
    for (int i = 0; i < ALLOCS; i++)
      if (into->allocs[i].address != NULL) require_apart(run, &into->allocs[i]);
    return;
  }
  require_ok(run, rondo_graph_destroy(graph));
  *into = (family){0};
}

/* Graphs that follow the profile get planned addresses, the others depart from it. */
static void call_profile(fuzz_run *run) {
  const family *of = some_family(run, true);
  if (of == NULL || of->graphs[0] == NULL) return;
  rondo_profile_destroy(run->profile);
  if (!went_well(rondo_profile_create(of->graphs[0], NULL, &run->profile))) REQUIRE(run->profile == NULL);
}

/* A graph whose only node is the other one. */
static rondo_status embed(fuzz_run *run, rondo_graph *inner, rondo_graph **out) {
  rondo_node node;
  rondo_status status = rondo_graph_create(run->device, NULL, out);
  if (status == RONDO_OK) status = rondo_graph_add_child(*out, NULL, 0, inner, &node);
  if (status == RONDO_OK) return status;
  require_ok(run, rondo_graph_destroy(*out));
  *out = NULL;
  return status;
}

/* Clones share the graph's addresses, and so does what it is a child of. */
static void call_clone(fuzz_run *run) {
  family *of = some_family(run, true);
  const uint8_t choice = take(run);
  if (of == NULL || of->graphs[0] == NULL || of->graphs[1] != NULL) return;
  if (choice % 3 == 0)
    (void)went_well(embed(run, of->graphs[0], &of->graphs[1]));
  else
    (void)went_well(rondo_graph_clone(of->graphs[0], &of->graphs[1]));
}

static void call_instantiate(fuzz_run *run) {
  family *of = some_family(run, true);
  const uint8_t choice = take(run);
  fuzz_exec *at = &run->execs[take(run) % EXECS];
  if (of == NULL || at->exec != NULL) return;
  rondo_graph *graph = of->graphs[of->graphs[choice % 2] != NULL ? choice % 2 : 1 - choice % 2];
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .auto_free_on_launch = choice % 4 >= 2,
                                             .upload_stream = choice % 16 == 5 ? run->streams[choice % STREAMS] : NULL};
  if (!went_well(rondo_instantiate(graph, &options, &at->exec))) return;
  at->of = of;
  at->auto_free = options.auto_free_on_launch;
  of->execs++;
}

static void call_launch(fuzz_run *run) {
  const fuzz_exec *at = &run->execs[take(run) % EXECS];
  const int stream = some_stream(run);
  if (at->exec == NULL) return;
  bool refused = false;
  for (int i = 0; i < ALLOCS; i++) {
    block *kept = &at->of->allocs[i];
    if (!kept->live) continue;
    refused = refused || !at->auto_free;
    if (!look_at(run, kept) || !move(run, kept, stream)) return;
  }
  const rondo_status status = rondo_exec_launch(at->exec, run->streams[stream]);
  if (refused) {
    REQUIRE(status == RONDO_INVALID_LIFETIME || is_failure_of_memory(status));
    return;
  }
  if (!went_well(status)) return;
  for (int i = 0; i < ALLOCS; i++) {
    block *kept = &at->of->allocs[i];
    if (!kept->kept) continue;
    kept->live = true;
    kept->stream = stream;
    kept->value = kept->fresh;
    require_apart(run, kept);
  }
}

/* The exec takes a graph over, of its own family or another, or is as before. */
static void call_update(fuzz_run *run) {
  fuzz_exec *at = &run->execs[take(run) % EXECS];
  family *of = some_family(run, true);
  const uint8_t choice = take(run);
  if (at->exec == NULL || of == NULL) return;
  rondo_graph *graph = of->graphs[of->graphs[choice % 2] != NULL ? choice % 2 : 1 - choice % 2];
  const rondo_status status = rondo_exec_update(at->exec, graph, NULL);
  if (status == RONDO_UPDATE_REFUSED || !went_well(status)) return;
  at->of->execs--;
  at->of = of;
  of->execs++;
}

static void call_upload(fuzz_run *run) {
  const fuzz_exec *at = &run->execs[take(run) % EXECS];
  const int stream = some_stream(run);
  if (at->exec != NULL) (void)went_well(rondo_exec_upload(at->exec, run->streams[stream]));
}

static void call_destroy(fuzz_run *run) {
  const uint8_t choice = take(run);
  if (choice % 2 == 0) {
    fuzz_exec *at = &run->execs[take(run) % EXECS];
    if (at->exec == NULL) return;
    rondo_exec_destroy(at->exec);
    at->of->execs--;
    *at = (fuzz_exec){0};
  } else {
    family *of = some_family(run, true);
    if (of == NULL) return;
    rondo_graph **graph = &of->graphs[of->graphs[choice / 2 % 2] != NULL ? choice / 2 % 2 : 1 - choice / 2 % 2];
    require_ok(run, rondo_graph_destroy(*graph));
    *graph = NULL;
  }
}

static block *some_kept(fuzz_run *run) {
  block *at = &run->families[take(run) % FAMILIES].allocs[take(run) % ALLOCS];
  return at->kept ? at : NULL;
}

/* Frees graph memory outside, or by a graph that only does that. */
static rondo_status free_by_graph(fuzz_run *run, const block *at, int stream) {
  rondo_graph *graph = NULL;
  rondo_exec *exec = NULL;
  rondo_node node;
  rondo_status status = rondo_graph_create(run->device, NULL, &graph);
  if (status == RONDO_OK) status = rondo_graph_add_free(graph, NULL, 0, at->address, &node);
  if (status == RONDO_OK) status = rondo_instantiate(graph, NULL, &exec);
  if (status == RONDO_OK) status = rondo_exec_launch(exec, run->streams[stream]);
  rondo_exec_destroy(exec);
  require_ok(run, rondo_graph_destroy(graph));
  return status;
}

static void call_free_kept(fuzz_run *run) {
  block *at = some_kept(run);
  const uint8_t way = take(run);
  const int stream = some_stream(run);
  if (at == NULL) return;
  if (!at->live) { /* a misuse, in all ways, unless the graph is gone and its address somebody else's */
    if (begins_something(run, at->address)) return;
    const rondo_status status =
        way % 2 == 0 ? rondo_free_async(run->streams[stream], at->address) : free_by_graph(run, at, stream);
    REQUIRE(status != RONDO_OK);
    return;
  }
  if (!look_at(run, at) || !move(run, at, stream)) return;
  rondo_status status;
  if (way % 3 == 0) {
    synchronize_all(run);
    status = rondo_free(run->device, at->address);
  } else {
    status = way % 3 == 1 ? rondo_free_async(run->streams[stream], at->address) : free_by_graph(run, at, stream);
  }
  if (went_well(status)) at->live = false;
}

/* Writes graph memory from outside. */
static void call_write_kept(fuzz_run *run) {
  block *at = some_kept(run);
  const int stream = some_stream(run);
  if (at == NULL || !at->live || !look_at(run, at) || !move(run, at, stream)) return;
  (void)write_block(run, at);
}

/* Pools, waiting, misuse ------------------------------------------------------------------------------------------ */

static void call_pool(fuzz_run *run) {
  const uint8_t choice = take(run), value = take(run);
  const int at = choice % POOLS;
  rondo_pool **pool = &run->pools[at];
  if (*pool == NULL) {
    const rondo_pool_options options = {.name = "pool", .release_threshold = value % 2 == 0 ? 0 : UINT64_MAX};
    if (!went_well(rondo_pool_create(run->device, &options, pool))) *pool = NULL;
  } else if (choice < 100) {
    const rondo_pool_attribute attribute = (rondo_pool_attribute)(1 + value % 3);
    REQUIRE(rondo_pool_set_attribute(*pool, attribute, value / 4 % 2) == RONDO_OK);
  } else if (choice < 140) {
    REQUIRE(rondo_pool_trim(*pool, (uint64_t)value << 16) == RONDO_OK);
  } else if (choice < 180) {
    REQUIRE(rondo_device_set_pool(run->device, *pool) == RONDO_OK);
  } else if (choice < 210) {
    REQUIRE(rondo_pool_set_attribute(*pool, RONDO_POOL_RELEASE_THRESHOLD, (uint64_t)value << 17) == RONDO_OK);
  } else if (at > 0) {
    REQUIRE(rondo_pool_destroy(*pool) == RONDO_OK);
    *pool = NULL;
    for (int i = 0; i < BLOCKS; i++)
      if (run->blocks[i].pool == at) run->blocks[i].pool = POOLS; /* no pool's that has a name */
  } else {
    REQUIRE(rondo_pool_destroy(*pool) == RONDO_INVALID_ARGUMENT);
  }
}

static void call_wait(fuzz_run *run) {
  const uint8_t choice = take(run);
  const int stream = some_stream(run), other = some_stream(run);
  switch (choice % 7) {
    case 0:
      require_ok(run, rondo_stream_synchronize(run->streams[stream]));
      break;
    case 1:
      require_ok(run, rondo_device_synchronize(run->device));
      break;
    case 2:
      if (rondo_event_record(run->event, run->streams[stream]) == RONDO_OK)
        require_ok(run, rondo_event_synchronize(run->event));
      break;
    case 3: {
      const rondo_status status = rondo_stream_query(run->streams[stream]);
      REQUIRE(status == RONDO_OK || status == RONDO_NOT_READY);
      break;
    }
    case 4:
      (void)order(run, stream, other);
      break;
    default:
      (void)went_well(rondo_host_async(run->streams[stream], dawdle, (void *)(uintptr_t)(choice / 2)));
  }
}

static void call_trim(fuzz_run *run) {
  const rondo_status status = rondo_graph_memory_trim(run->device);
  (void)went_well(status);
  if (take(run) % 2 == 0) REQUIRE(rondo_memory_reset_highs(run->device) == RONDO_OK);
}

static void require_refused_free(fuzz_run *run, void *address, int stream) {
  if (begins_something(run, address)) return;
  REQUIRE(rondo_free(run->device, address) == RONDO_INVALID_LIFETIME);
  REQUIRE(rondo_free_async(run->streams[stream], address) == RONDO_INVALID_LIFETIME);
  REQUIRE(rondo_host_free(run->device, address) == RONDO_INVALID_LIFETIME);
  REQUIRE(rondo_last_error()->message[0] != '\0');
}

static void call_misuse(fuzz_run *run) {
  const block *at = some_block(run, true);
  const uint8_t choice = take(run);
  const int stream = some_stream(run);
  char outside[8] = {0};
  if (at == NULL) return;
  char *const end = at->address + at->bytes;
  switch (choice % 4) {
    case 0:
      require_refused_free(run, at->address + 1 + choice, stream);
      break;
    case 1:
      require_refused_free(run, outside, stream);
      break;
    case 2:
      REQUIRE(rondo_copy_async(run->streams[stream], outside, end - 1, 8) == RONDO_INVALID_ARGUMENT);
      REQUIRE(rondo_copy_async(run->streams[stream], end - 1, outside, 8) == RONDO_INVALID_ARGUMENT);
      break;
    default: {
      const rondo_fill fill = {.dst = at->address, .element_bytes = 1, .width = at->bytes + 1};
      REQUIRE(rondo_fill_async(run->streams[stream], &fill) == RONDO_INVALID_ARGUMENT);
    }
  }
}

/* A stream ends, and another one begins in its place. */
static void call_stream(fuzz_run *run) {
  rondo_stream **stream = &run->streams[some_stream(run)];
  rondo_stream *next = NULL;
  if (!went_well(rondo_stream_create(run->device, NULL, &next))) return;
  require_ok(run, rondo_stream_destroy(*stream));
  *stream = next;
}

/* Runs ------------------------------------------------------------------------------------------------------------ */

typedef void call_fn(fuzz_run *run);

static void call_malloc_ordered(fuzz_run *run) { call_malloc(run, false); }
static void call_malloc_at_once(fuzz_run *run) { call_malloc(run, true); }

static void call_some(fuzz_run *run) {
  static call_fn *const calls[] = {
      call_malloc_ordered, call_malloc_ordered, call_malloc_at_once, call_free,        call_free,   call_write,
      call_host,           call_graph,          call_clone,          call_instantiate, call_launch, call_launch,
      call_upload,         call_destroy,        call_free_kept,      call_write_kept,  call_pool,   call_wait,
      call_trim,           call_misuse,         call_stream,         call_update,      call_profile};
  const uint8_t choice = take(run);
  const bool fails = choice >= 230;
  const uint8_t fail_at = fails ? take(run) % 16 : 0;
  atomic_store(&run->allocator.calls, 0);
  atomic_store(&run->allocator.fail_at, fails ? 1 + fail_at : 0);
  calls[choice % (sizeof calls / sizeof *calls)](run);
  atomic_store(&run->allocator.fail_at, 0);
}

static void set_up(fuzz_run *run) {
  test_allocator_init(&run->allocator);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1 + take(run) % 2,
                                        .allocator = &run->allocator.table, .memory_limit_bytes = LIMIT};
  REQUIRE(rondo_device_open("cpu", &options, &run->device) == RONDO_OK);
  for (int i = 0; i < STREAMS; i++) REQUIRE(rondo_stream_create(run->device, NULL, &run->streams[i]) == RONDO_OK);
  REQUIRE(rondo_event_create(run->device, NULL, &run->event) == RONDO_OK);
  REQUIRE(rondo_device_get_default_pool(run->device, &run->pools[0]) == RONDO_OK);
  for (int i = 1; i < POOLS; i++) REQUIRE(rondo_pool_create(run->device, NULL, &run->pools[i]) == RONDO_OK);
}

static void free_everything(fuzz_run *run) {
  for (int i = 0; i < BLOCKS; i++)
    if (run->blocks[i].address != NULL) free_block(run, &run->blocks[i], (uint8_t)i, 0);
  for (int f = 0; f < FAMILIES; f++)
    for (int i = 0; i < ALLOCS; i++) {
      block *at = &run->families[f].allocs[i];
      if (at->live) REQUIRE(look_at(run, at) && move(run, at, 0));
      if (at->live) require_ok(run, rondo_free_async(run->streams[0], at->address));
    }
  for (int i = 0; i < HOSTS; i++) require_ok(run, rondo_host_free(run->device, run->hosts[i]));
}

static void take_down(fuzz_run *run) {
  free_everything(run);
  rondo_profile_destroy(run->profile);
  for (int i = 0; i < EXECS; i++) rondo_exec_destroy(run->execs[i].exec);
  for (int f = 0; f < FAMILIES; f++)
    for (int i = 0; i < 2; i++) require_ok(run, rondo_graph_destroy(run->families[f].graphs[i]));
  synchronize_all(run);
  for (int i = 1; i < POOLS; i++) require_ok(run, rondo_pool_destroy(run->pools[i]));
  require_ok(run, rondo_graph_memory_trim(run->device));
  require_ok(run, rondo_pool_trim(run->pools[0], 0));
  rondo_memory_statistics now = {.struct_size = sizeof now};
  require_ok(run, rondo_memory_get_statistics(run->device, &now));
  REQUIRE(now.live_allocations == 0 && now.pool_used == 0 && now.pool_reserved == 0);
  REQUIRE(now.graph_used == 0 && now.graph_reserved == 0);
  rondo_event_destroy(run->event);
  for (int i = 0; i < STREAMS; i++) require_ok(run, rondo_stream_destroy(run->streams[i]));
  require_ok(run, rondo_device_close(run->device));
  REQUIRE(run->allocator.live == 0 && run->allocator.faults == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz_run run;
  run = (fuzz_run){.data = data, .left = size};
  set_up(&run);
  for (int i = 0; i < MAX_CALLS && run.left > 0; i++) {
    call_some(&run);
    require_figures(&run);
  }
  take_down(&run);
  return 0;
}

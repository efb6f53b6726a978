/* SPDX-License-Identifier: MIT
 * All of the memory interface: the input is a stream of calls on one small CPU device, plain or checking, with or
 * without a peer; some are wrong, some out of memory. A model knows the live memory: addresses are disjoint, figures
 * add up, and the bytes of every allocation are checked, in stream order, before they are freed or written again.
 * Graphs fill and check their own memory. A failure changes nothing, and nothing is left at the end.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>
#include <string.h>

#include "fuzz/memory_run.h"

enum { MAX_CALLS = 250, PLAN_STEPS = 300 };

uint8_t take(fuzz_run *run) {
  if (run->left == 0) return 0;
  run->left--;
  return *run->data++;
}

int take_stream(fuzz_run *run) { return take(run) % STREAMS; }

size_t take_size(fuzz_run *run) {
  const uint8_t choice = take(run);
  if (choice < 160) return 1 + (size_t)choice * 13;
  if (choice < 240) return (size_t)(choice - 150) << 10;
  if (choice < 252) return (size_t)(choice - 239) << 16;
  if (choice < 254) return (size_t)3 << 20;
  return choice == 254 ? (size_t)LIMIT + 1 : SIZE_MAX;
}

bool went_well(rondo_status status) {
  REQUIRE(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY);
  REQUIRE(status == RONDO_OK || rondo_last_error()->message[0] != '\0');
  return status == RONDO_OK;
}

void require_ok(rondo_status status) { REQUIRE(status == RONDO_OK); }

/* The host has waited for all streams. */
static void synchronize_all(fuzz_run *run) {
  for (int i = 0; i < STREAMS; i++) require_ok(rondo_stream_synchronize(run->streams[i]));
}

/* Blocks ---------------------------------------------------------------------------------------------------------- */

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

/* The index of the pool; that of the current one for NULL. */
static int number_of(const fuzz_run *run, const rondo_pool *pool) {
  rondo_pool *current = NULL;
  REQUIRE(rondo_device_get_pool(run->device, &current) == RONDO_OK);
  for (int i = 0; i < POOLS; i++)
    if (run->pools[i] == (pool == NULL ? current : pool)) return i;
  abort();
}

static void call_malloc(fuzz_run *run, bool at_once) {
  const size_t bytes = take_size(run);
  const int stream = take_stream(run), pool = take(run) % (POOLS + 1) - 1;
  block *at = some_block(run, false);
  void *address = run;
  rondo_status status;
  int counted = AT_ONCE;
  if (at == NULL) return;
  if (at_once) {
    status = rondo_malloc(run->device, bytes, take(run) % 2 == 0 ? "block" : NULL, &address);
  } else {
    const rondo_malloc_options options = {RONDO_MALLOC_OPTIONS_INIT, .name = "ordered",
                                          .pool = pool < 0 ? NULL : run->pools[pool]};
    counted = number_of(run, options.pool);
    status = rondo_malloc_async(run->streams[stream], bytes, &options, &address);
  }
  REQUIRE((status == RONDO_OK) == (address != NULL));
  if (!went_well(status)) return;
  enter(run, at, address, bytes, stream, counted);
  if (take(run) % 4 != 0) (void)write_block(run, at);
}

/* Checks the block and frees it, in one of the modes. */
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
  const int stream = take_stream(run);
  if (at == NULL) return;
  if (at->value == 0 && way >= 240) { /* nobody used it, so there is nothing to wait for */
    const rondo_status status =
        way % 2 == 0 ? rondo_free(run->device, at->address) : rondo_free_async(run->streams[stream], at->address);
    if (went_well(status)) *at = (block){0};
    return;
  }
  free_block(run, at, way, stream);
}

static void call_write(fuzz_run *run) {
  block *at = some_block(run, true);
  const int stream = take_stream(run);
  if (at == NULL || !look_at(run, at) || !move(run, at, stream)) return;
  (void)write_block(run, at);
}

static void call_host(fuzz_run *run) {
  const int at = take(run) % HOSTS;
  const size_t bytes = 1 + take(run);
  if (run->hosts[at] != NULL) {
    require_ok(rondo_host_free(run->device, run->hosts[at]));
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

/* The index of one of its graphs. */
static int some_graph(const family *of, uint8_t choice) {
  return of->graphs[choice % 2] != NULL ? choice % 2 : 1 - choice % 2;
}

static void call_graph(fuzz_run *run) {
  family *into = some_family(run, false);
  const uint8_t choice = take(run);
  rondo_graph *graph = NULL;
  if (into == NULL) return;
  *into = (family){.moves = choice % 16 >= 12};
  rondo_profile *profile = choice % 8 >= 4 && !into->moves ? run->profile : NULL;
  if (went_well(record_graph(run, into, choice % 2 == 0, profile, &graph))) {
    into->graphs[0] = graph;
    for (int i = 0; i < ALLOCS; i++)
      if (into->allocs[i].address != NULL) require_apart(run, &into->allocs[i]);
    return;
  }
  require_ok(rondo_graph_destroy(graph));
  *into = (family){0};
}

/* The profile of a graph, whose equals then get planned addresses while the others deviate from it, or of a run. */
static void call_profile(fuzz_run *run) {
  static const rondo_plan_options planning = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = PLAN_STEPS};
  const family *of = some_family(run, true);
  const int stream = take_stream(run);
  rondo_profile *made = NULL;
  rondo_status status;
  if (run->profiled >= 0) {
    status = rondo_profile_end(run->streams[run->profiled], &planning, &made);
    run->profiled = -1;
  } else if (of != NULL && of->graphs[0] != NULL && !of->cut[0]) {
    status = rondo_profile_create(of->graphs[0], &planning, &made);
  } else {
    if (went_well(rondo_profile_begin(run->streams[stream]))) run->profiled = stream;
    return;
  }
  REQUIRE((status == RONDO_OK) == (made != NULL));
  if (!went_well(status)) return;
  rondo_profile_destroy(run->profile);
  run->profile = made;
}

/* A graph whose only node is the other one. */
static rondo_status embed(fuzz_run *run, const family *of, rondo_graph **out) {
  rondo_node node;
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .relocate = of->moves};
  rondo_status status = rondo_graph_create(run->device, &options, out);
  if (status == RONDO_OK) status = rondo_graph_add_child(*out, NULL, 0, of->graphs[0], &node);
  if (status == RONDO_OK) return status;
  require_ok(rondo_graph_destroy(*out));
  *out = NULL;
  return status;
}

/* Clones share the graph's addresses, and so does a graph that it is a child of. */
static void call_clone(fuzz_run *run) {
  family *of = some_family(run, true);
  const uint8_t choice = take(run);
  if (of == NULL || of->graphs[0] == NULL || of->graphs[1] != NULL) return;
  if (choice % 3 == 0)
    (void)went_well(embed(run, of, &of->graphs[1]));
  else
    (void)went_well(rondo_graph_clone(of->graphs[0], &of->graphs[1]));
  of->cut[1] = of->cut[0];
}

/* Removes an edge, unless an address relies on it. */
static void call_cut(fuzz_run *run) {
  enum { EDGES = 128 };
  family *of = some_family(run, true);
  const uint8_t choice = take(run), edge = take(run);
  rondo_node from[EDGES], to[EDGES];
  size_t count = EDGES;
  if (of == NULL) return;
  const int number = some_graph(of, choice);
  require_ok(rondo_graph_edges(of->graphs[number], from, to, &count));
  REQUIRE(count <= EDGES);
  if (count == 0) return;
  const rondo_status status = rondo_graph_remove_edges(of->graphs[number], from + edge % count, to + edge % count, 1);
  if (status == RONDO_INVALID_STATE) {
    REQUIRE(!of->moves && rondo_last_error()->reason == RONDO_REASON_EDGE_IN_USE);
  } else if (went_well(status)) {
    of->cut[number] = true;
  }
}

/* Verification may refuse a graph that lacks edges, and no other graph. */
static bool was_accepted(const family *of, int number, rondo_status status) {
  const bool refused = status == RONDO_INVALID_LIFETIME || status == RONDO_INVALID_GRAPH;
  return (refused && of->cut[number]) ? false : went_well(status);
}

static void call_instantiate(fuzz_run *run) {
  static const rondo_plan_options planning = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = PLAN_STEPS};
  family *of = some_family(run, true);
  const uint8_t choice = take(run);
  fuzz_exec *at = &run->execs[take(run) % EXECS];
  if (of == NULL || at->exec != NULL) return;
  const int number = some_graph(of, choice);
  const rondo_instantiate_options options = {
      RONDO_INSTANTIATE_OPTIONS_INIT, .auto_free_on_launch = choice / 2 % 2 == 1,
      .relocate = of->moves || choice / 4 % 2 == 1, .plan = &planning,
      .upload_stream = choice / 8 % 4 == 1 ? run->streams[choice % STREAMS] : NULL};
  if (!was_accepted(of, number, rondo_instantiate(of->graphs[number], &options, &at->exec))) return;
  at->of = of;
  at->auto_free = options.auto_free_on_launch;
  of->execs++;
}

/* Checks the live allocations of the family, which the stream uses from now on. */
static bool move_live(fuzz_run *run, family *of, int stream) {
  for (int i = 0; i < ALLOCS; i++) {
    block *kept = &of->allocs[i];
    if (kept->live && (!look_at(run, kept) || !move(run, kept, stream))) return false;
  }
  return true;
}

static bool has_live(const family *of) {
  bool live = false;
  for (int i = 0; i < ALLOCS; i++) live = live || of->allocs[i].live;
  return live;
}

static void call_launch(fuzz_run *run) {
  const fuzz_exec *at = &run->execs[take(run) % EXECS];
  const int stream = take_stream(run);
  if (at->exec == NULL || !move_live(run, at->of, stream)) return;
  const bool refused = has_live(at->of) && !at->auto_free;
  const rondo_status status = rondo_exec_launch(at->exec, run->streams[stream]);
  if (refused) {
    REQUIRE(status == RONDO_INVALID_LIFETIME || status == RONDO_OUT_OF_MEMORY);
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

/* Updates the exec from a graph, of its own family or another; a failure leaves it unchanged. */
static void call_update(fuzz_run *run) {
  fuzz_exec *at = &run->execs[take(run) % EXECS];
  family *of = some_family(run, true);
  const uint8_t choice = take(run);
  if (at->exec == NULL || of == NULL) return;
  const int number = some_graph(of, choice);
  const rondo_status status = rondo_exec_update(at->exec, of->graphs[number], NULL);
  if (status == RONDO_UPDATE_REFUSED || !was_accepted(of, number, status)) return;
  at->of->execs--;
  at->of = of;
  of->execs++;
}

static void call_upload(fuzz_run *run) {
  const fuzz_exec *at = &run->execs[take(run) % EXECS];
  const int stream = take_stream(run);
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
    const int number = some_graph(of, choice / 2);
    require_ok(rondo_graph_destroy(of->graphs[number]));
    of->graphs[number] = NULL;
    of->cut[number] = false;
  }
}

static block *some_kept(fuzz_run *run) {
  block *at = &run->families[take(run) % FAMILIES].allocs[take(run) % ALLOCS];
  return at->kept ? at : NULL;
}

/* Frees graph memory outside, or with a graph that only does that. */
static rondo_status free_by_graph(fuzz_run *run, const block *at, int stream) {
  rondo_graph *graph = NULL;
  rondo_exec *exec = NULL;
  rondo_node node;
  rondo_status status = rondo_graph_create(run->device, NULL, &graph);
  if (status == RONDO_OK) status = rondo_graph_add_free(graph, NULL, 0, at->address, &node);
  if (status == RONDO_OK) status = rondo_instantiate(graph, NULL, &exec);
  if (status == RONDO_OK) status = rondo_exec_launch(exec, run->streams[stream]);
  rondo_exec_destroy(exec);
  require_ok(rondo_graph_destroy(graph));
  return status;
}

static void call_free_kept(fuzz_run *run) {
  block *at = some_kept(run);
  const uint8_t way = take(run);
  const int stream = take_stream(run);
  if (at == NULL) return;
  if (!at->live) { /* a misuse, in all modes, unless the graph is destroyed and its address reused */
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
  const int stream = take_stream(run);
  if (at == NULL || !at->live || !look_at(run, at) || !move(run, at, stream)) return;
  (void)write_block(run, at);
}

/* Pools, the peer, waiting, misuse -------------------------------------------------------------------------------- */

static void destroy_pool(fuzz_run *run, int number) {
  REQUIRE(rondo_pool_destroy(run->pools[number]) == RONDO_OK);
  run->pools[number] = NULL;
  for (int i = 0; i < BLOCKS; i++) {
    if (run->blocks[i].pool != number) continue;
    run->blocks[i].pool = POOLS; /* not in a pool that has a name */
    run->blocks[i].peer = run->pool_access[number];
  }
  run->pool_access[number] = false;
}

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
    destroy_pool(run, at);
  } else {
    REQUIRE(rondo_pool_destroy(*pool) == RONDO_INVALID_ARGUMENT);
  }
}

static void call_access(fuzz_run *run) {
  const uint8_t choice = take(run);
  const bool access = choice % 2 == 0;
  const int at = choice / 2 % (POOLS + 1);
  if (run->peer == NULL) return;
  if (at == POOLS) {
    require_ok(rondo_memory_set_access(run->device, run->peer, access));
    run->access_at_once = access;
  } else if (run->pools[at] != NULL) {
    bool now = !access;
    require_ok(rondo_pool_set_access(run->pools[at], run->peer, access));
    require_ok(rondo_pool_get_access(run->pools[at], run->peer, &now));
    REQUIRE(now == access);
    run->pool_access[at] = access;
  }
}

static bool peer_has_access(const fuzz_run *run, const block *at) {
  if (at->pool == AT_ONCE) return run->access_at_once;
  return at->pool >= 0 && at->pool < POOLS ? run->pool_access[at->pool] : at->peer;
}

/* The peer uses memory of the device, or fails. */
static void call_peer(fuzz_run *run) {
  block *at = take(run) % 2 == 0 ? some_block(run, true) : some_kept(run);
  const uint8_t way = take(run);
  if (run->peer == NULL || at == NULL || !at->live || at->value == 0) return;
  const bool has = peer_has_access(run, at);
  require_ok(rondo_stream_synchronize(run->streams[at->stream]));
  if (!has && at->pool == OF_GRAPH) return; /* it may have the access of other memory at its address */
  const rondo_status status = way % 2 == 0 ? look_from_peer(run, at) : write_from_peer(run, at);
  if (has) {
    (void)went_well(status);
  } else if (status != RONDO_OUT_OF_MEMORY) {
    REQUIRE(status == RONDO_INVALID_ARGUMENT && rondo_last_error()->reason == RONDO_REASON_NO_ACCESS);
  }
}

static void call_wait(fuzz_run *run) {
  const uint8_t choice = take(run);
  const int stream = take_stream(run), other = take_stream(run);
  switch (choice % 7) {
    case 0:
      require_ok(rondo_stream_synchronize(run->streams[stream]));
      break;
    case 1:
      require_ok(rondo_device_synchronize(run->device));
      break;
    case 2:
      if (rondo_event_record(run->event, run->streams[stream]) == RONDO_OK)
        require_ok(rondo_event_synchronize(run->event));
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
      (void)went_well(rondo_host_async(run->streams[stream], dawdle, (void *)(uintptr_t)(choice / 4)));
  }
}

static void call_trim(fuzz_run *run) {
  (void)went_well(rondo_graph_memory_trim(run->device));
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
  const int stream = take_stream(run);
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

/* Destroys a stream, and creates another one in its place. */
static void call_stream(fuzz_run *run) {
  const int number = take_stream(run);
  rondo_stream *next = NULL;
  if (!went_well(rondo_stream_create(run->device, NULL, &next))) return;
  require_ok(rondo_stream_destroy(run->streams[number]));
  run->streams[number] = next;
  if (run->profiled == number) run->profiled = -1;
}

/* Runs ------------------------------------------------------------------------------------------------------------ */

typedef void call_fn(fuzz_run *run);

static void call_malloc_ordered(fuzz_run *run) { call_malloc(run, false); }
static void call_malloc_at_once(fuzz_run *run) { call_malloc(run, true); }

static void call_some(fuzz_run *run) {
  static call_fn *const calls[] = {call_malloc_ordered, call_malloc_ordered,
                                   call_malloc_at_once, call_free,
                                   call_free,           call_write,
                                   call_host,           call_graph,
                                   call_clone,          call_instantiate,
                                   call_launch,         call_launch,
                                   call_upload,         call_destroy,
                                   call_free_kept,      call_write_kept,
                                   call_pool,           call_wait,
                                   call_trim,           call_misuse,
                                   call_stream,         call_update,
                                   call_profile,        call_access,
                                   call_peer,           call_cut,
                                   call_graph,          call_instantiate,
                                   call_launch};
  const uint8_t choice = take(run);
  const bool fails = choice >= 232;
  const uint8_t fail_at = fails ? take(run) % 16 : 0;
  atomic_store(&run->allocator.calls, 0);
  atomic_store(&run->allocator.fail_at, fails ? 1 + fail_at : 0);
  calls[choice % (sizeof calls / sizeof *calls)](run);
  atomic_store(&run->allocator.fail_at, 0);
}

static void open_device(fuzz_run *run, const char *name, uint64_t seed, rondo_device **out,
                        rondo_kernel *kernels[KERNELS]) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1 + (uint32_t)(seed % 2),
                                        .allocator = &run->allocator.table, .memory_limit_bytes = LIMIT,
                                        .check_seed = seed};
  REQUIRE(rondo_device_open(name, &options, out) == RONDO_OK);
  for (int i = 0; i < KERNELS; i++)
    REQUIRE(rondo_kernel_create(*out, kernel_options((kernel_id)i), &kernels[i]) == RONDO_OK);
}

static void set_up(fuzz_run *run) {
  const uint8_t choice = take(run), seed = take(run);
  const bool checks = choice % 3 == 2;
  test_allocator_init(&run->allocator);
  run->profiled = -1;
  open_device(run, checks ? "cpu:check" : "cpu", seed, &run->device, run->kernels);
  if (choice % 8 >= 5) {
    open_device(run, checks ? "cpu:check:1" : "cpu:1", 0, &run->peer, run->peer_kernels);
    REQUIRE(rondo_stream_create(run->peer, NULL, &run->peer_stream) == RONDO_OK);
  }
  for (int i = 0; i < STREAMS; i++) REQUIRE(rondo_stream_create(run->device, NULL, &run->streams[i]) == RONDO_OK);
  REQUIRE(rondo_event_create(run->device, NULL, &run->event) == RONDO_OK);
  REQUIRE(rondo_device_get_default_pool(run->device, &run->pools[0]) == RONDO_OK);
  for (int i = 1; i < POOLS; i++) REQUIRE(rondo_pool_create(run->device, NULL, &run->pools[i]) == RONDO_OK);
}

static void free_everything(fuzz_run *run) {
  for (int i = 0; i < BLOCKS; i++)
    if (run->blocks[i].address != NULL) free_block(run, &run->blocks[i], (uint8_t)(1 + i % 3), 0);
  for (int f = 0; f < FAMILIES; f++) {
    REQUIRE(move_live(run, &run->families[f], 0));
    for (int i = 0; i < ALLOCS; i++) {
      block *at = &run->families[f].allocs[i];
      if (at->live) require_ok(rondo_free_async(run->streams[0], at->address));
    }
  }
  for (int i = 0; i < HOSTS; i++) require_ok(rondo_host_free(run->device, run->hosts[i]));
}

static void close_devices(fuzz_run *run) {
  rondo_event_destroy(run->event);
  for (int i = 0; i < STREAMS; i++) require_ok(rondo_stream_destroy(run->streams[i]));
  require_ok(rondo_stream_destroy(run->peer_stream));
  for (int i = 0; i < KERNELS; i++) {
    rondo_kernel_destroy(run->kernels[i]);
    rondo_kernel_destroy(run->peer_kernels[i]);
  }
  require_ok(rondo_device_close(run->device));
  require_ok(rondo_device_close(run->peer));
}

static void tear_down(fuzz_run *run) {
  free_everything(run);
  rondo_profile_destroy(run->profile);
  for (int i = 0; i < EXECS; i++) rondo_exec_destroy(run->execs[i].exec);
  for (int f = 0; f < FAMILIES; f++)
    for (int i = 0; i < 2; i++) require_ok(rondo_graph_destroy(run->families[f].graphs[i]));
  synchronize_all(run);
  for (int i = 1; i < POOLS; i++) require_ok(rondo_pool_destroy(run->pools[i]));
  require_ok(rondo_graph_memory_trim(run->device));
  require_ok(rondo_pool_trim(run->pools[0], 0));
  require_nothing_left(run);
  close_devices(run);
  REQUIRE(run->allocator.live == 0 && run->allocator.faults == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz_run run;
  REQUIRE(setenv("RONDO_CPU_SPIN_US", "20", 0) == 0); /* spinning workers would take time from working ones */
  memset(&run, 0, sizeof run);
  run.data = data;
  run.left = size;
  set_up(&run);
  for (int i = 0; i < MAX_CALLS && run.left > 0; i++) {
    call_some(&run);
    require_figures(&run);
  }
  tear_down(&run);
  return 0;
}

/* SPDX-License-Identifier: MIT
 * The model of the memory target: lists of live memory, searched linearly.
 */
#include "fuzz/memory_run.h"

bool is_gone(const family *of) {
  bool gone = of->graphs[0] == NULL && of->graphs[1] == NULL && of->execs == 0;
  for (int i = 0; i < ALLOCS; i++) gone = gone && !of->allocs[i].live;
  return gone;
}

static bool overlap(const block *a, const block *b) {
  return a->address < b->address + b->bytes && b->address < a->address + a->bytes;
}

static bool holds(const family *of, const block *at) { return at >= of->allocs && at < of->allocs + ALLOCS; }

void require_apart(const fuzz_run *run, const block *made) {
  for (int i = 0; i < BLOCKS; i++) {
    const block *at = &run->blocks[i];
    if (at != made && at->address != NULL) REQUIRE(!overlap(at, made));
  }
  for (int f = 0; f < FAMILIES; f++) {
    const family *other = &run->families[f];
    if (holds(other, made) || is_gone(other)) continue; /* those of one graph share as its order allows */
    for (int i = 0; i < ALLOCS; i++)
      if (other->allocs[i].address != NULL) REQUIRE(!overlap(&other->allocs[i], made));
  }
}

bool begins_something(const fuzz_run *run, const char *address) {
  for (int i = 0; i < BLOCKS; i++)
    if (run->blocks[i].address == address) return true;
  for (int f = 0; f < FAMILIES; f++)
    for (int i = 0; i < ALLOCS; i++)
      if (run->families[f].allocs[i].address == address && run->families[f].allocs[i].live) return true;
  return false;
}

static uint64_t rounded(size_t bytes) { return (bytes + 255) / 256 * 256; }

static void require_pool_figures(const fuzz_run *run, const uint64_t of_pool[POOLS]) {
  for (int i = 0; i < POOLS; i++) {
    rondo_pool_statistics pool = {.struct_size = sizeof pool};
    if (run->pools[i] == NULL) continue;
    REQUIRE(rondo_pool_get_statistics(run->pools[i], &pool) == RONDO_OK);
    REQUIRE(pool.used >= of_pool[i] && pool.used <= pool.reserved);
    REQUIRE(pool.used <= pool.used_high && pool.reserved <= pool.reserved_high);
  }
}

void require_figures(const fuzz_run *run) {
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
  require_pool_figures(run, of_pool);
}

void require_nothing_left(const fuzz_run *run) {
  rondo_memory_statistics now = {.struct_size = sizeof now};
  REQUIRE(rondo_memory_get_statistics(run->device, &now) == RONDO_OK);
  REQUIRE(now.live_allocations == 0 && now.pool_used == 0 && now.pool_reserved == 0);
  REQUIRE(now.graph_used == 0 && now.graph_reserved == 0);
}

/* SPDX-License-Identifier: MIT
 * The messages about misuse of memory, and the checks that find it.
 */
#include "memory/memory_errors.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/arena/arena_internal.h"
#include "memory/graph_memory/graph_allocation.h"
#include "memory/peer_access.h"

static size_t offset_in(const char *begin, const void *address) {
  return (size_t)((uintptr_t)address - (uintptr_t)begin);
}

/* "is 4 bytes into", "is the address of"; for a range "begins 4 bytes into", "begins at the address of". */
#define INTO_TEXT 48
static const char *into_text(char buffer[INTO_TEXT], const char *begin, const void *address, bool is_range) {
  const size_t offset = offset_in(begin, address);
  if (offset == 0) return is_range ? "begins at the address of" : "is the address of";
  snprintf(buffer, INTO_TEXT, "%s %zu byte%s into", is_range ? "begins" : "is", offset, offset == 1 ? "" : "s");
  return buffer;
}

/* Frees ----------------------------------------------------------------------------------------------------------- */

/* What an address that cannot be freed is. */
typedef enum address_kind {
  IN_ARENA,
  IN_GRAPH_ALLOCATION,
  IN_ALLOCATION,
  IN_SYMBOL,
  IN_HOST_MEMORY,
  IN_FREED_ALLOCATION,
  ON_OTHER_DEVICE,
  UNKNOWN_ADDRESS,
  ADDRESS_KINDS
} address_kind;

typedef enum free_call { DEVICE_FREE, HOST_FREE, FREE_NODE } free_call;

typedef struct refusal {
  rondo_reason reason;
  const char *advice; /* follows the description of the address; a final comma is followed by the right address */
} refusal;

#define FOREIGN RONDO_REASON_FOREIGN_ADDRESS
#define INTERIOR RONDO_REASON_INTERIOR_ADDRESS
#define WRONG RONDO_REASON_WRONG_MEMORY
static const refusal refusals[][ADDRESS_KINDS] = {
    [DEVICE_FREE][IN_ARENA] = {FOREIGN,
                               ", the memory of recordings: free it inside a recording, or return it to the "
                               "code that gave it to you"},
    [DEVICE_FREE][IN_GRAPH_ALLOCATION] = {INTERIOR, ": free its address,"},
    [DEVICE_FREE][IN_ALLOCATION] = {INTERIOR, ": free its address,"},
    [DEVICE_FREE][IN_SYMBOL] = {WRONG, ", a variable of a kernel's code: it is freed with the kernel"},
    [DEVICE_FREE][IN_HOST_MEMORY] = {WRONG, ": free their address with rondo_host_free,"},
    [DEVICE_FREE][ON_OTHER_DEVICE] = {FOREIGN, ": free it there"},
    [DEVICE_FREE][UNKNOWN_ADDRESS] = {FOREIGN,
                                      " (or of one freed long ago): free the address that the allocation "
                                      "returned"},
    [HOST_FREE][IN_ARENA] = {WRONG, ", the memory of recordings: free it inside a recording"},
    [HOST_FREE][IN_GRAPH_ALLOCATION] = {WRONG, ": free its address with rondo_free or rondo_free_async,"},
    [HOST_FREE][IN_ALLOCATION] = {WRONG, ": free its address with rondo_free or rondo_free_async,"},
    [HOST_FREE][IN_SYMBOL] = {WRONG, ", a variable of a kernel's code: it is freed with the kernel"},
    [HOST_FREE][IN_HOST_MEMORY] = {INTERIOR, ": free their address,"},
    [HOST_FREE][ON_OTHER_DEVICE] = {FOREIGN, ": free it there, with rondo_free or rondo_free_async"},
    [HOST_FREE][UNKNOWN_ADDRESS] = {FOREIGN, ": free the address that rondo_host_malloc returned"},
    [FREE_NODE][IN_ARENA] = {FOREIGN,
                             ", where the graph neither allocates it nor found it alive: memory of an arena "
                             "is freed by the recording that allocates it, or by a later one that has it as "
                             "a block"},
    [FREE_NODE][IN_GRAPH_ALLOCATION] = {FOREIGN, " of an alloc node: free its address,"},
    [FREE_NODE][IN_ALLOCATION] = {FOREIGN,
                                  ", of no alloc node: free it outside of graphs, with rondo_free or "
                                  "rondo_free_async"},
    [FREE_NODE][IN_SYMBOL] = {FOREIGN, ", a variable of a kernel's code: it is freed with the kernel"},
    [FREE_NODE][IN_HOST_MEMORY] = {FOREIGN, ": free them with rondo_host_free"},
    [FREE_NODE][IN_FREED_ALLOCATION] = {FOREIGN, ", freed before: leave it out"},
    [FREE_NODE][ON_OTHER_DEVICE] = {FOREIGN, ": free it there"},
    [FREE_NODE][UNKNOWN_ADDRESS] = {FOREIGN, ": a free node takes the address that the alloc node returned"},
};

/* What the caller of each free expected. */
static const char *const expected[] = {[DEVICE_FREE] = "the address of an allocation of",
                                       [HOST_FREE] = "host memory of",
                                       [FREE_NODE] = "the address of an alloc node on"};

#define ADDRESS_TEXT 192

/* Describes an address that is in no allocation of the device. */
static address_kind describe_foreign(const rondo_device_memory *memory, free_call kind, const void *address,
                                     char text[ADDRESS_TEXT]) {
  const rondo_device *owner = rondo_peers_owner(address);
  const bool is_other = owner != NULL && owner != memory->device;
  const bool is_alike = is_other && strcmp(owner->name, memory->device->name) == 0;
  snprintf(text, ADDRESS_TEXT, "is not %s device %s%s%s", expected[kind], memory->device->name,
           !is_other  ? ""
           : is_alike ? " but belongs to another device opened as "
                      : " but belongs to device ",
           is_other ? owner->name : "");
  return is_other ? ON_OTHER_DEVICE : UNKNOWN_ADDRESS;
}

/* Describes what is at the address, as "is 4 bytes into allocation 'x' (4.0 KiB)". *out_begin is where that begins. */
static address_kind describe_address(const rondo_device_memory *memory, free_call kind, const void *address,
                                     char text[ADDRESS_TEXT], const char **out_begin) {
  char label[RONDO_ALLOCATION_LABEL], into[INTO_TEXT];
  const rondo_arena *arena = rondo_arena_find(memory, address);
  const rondo_allocation *at = rondo_allocation_table_around(&memory->table, address);
  const rondo_allocation *host = rondo_allocation_table_around(&memory->host, address);
  const rondo_freed *freed = kind == FREE_NODE ? rondo_allocation_table_freed_around(&memory->table, address) : NULL;
  if (arena != NULL) {
    *out_begin = rondo_arena_base(arena);
    snprintf(text, ADDRESS_TEXT, "%s %s", into_text(into, *out_begin, address, false), rondo_arena_label(label, arena));
    return IN_ARENA;
  }
  if (host != NULL && at == NULL) {
    *out_begin = host->address;
    snprintf(text, ADDRESS_TEXT, "%s %zu bytes of host memory", into_text(into, *out_begin, address, false),
             host->bytes);
    return IN_HOST_MEMORY;
  }
  if (at == NULL && freed == NULL) return describe_foreign(memory, kind, address, text);
  *out_begin = at != NULL ? at->address : freed->address;
  snprintf(text, ADDRESS_TEXT, "%s allocation %s", into_text(into, *out_begin, address, false),
           at != NULL ? rondo_allocation_label(label, at) : rondo_named_size(label, freed->name, freed->bytes));
  if (at == NULL) return IN_FREED_ALLOCATION;
  if (at->kind == RONDO_ALLOCATION_SYMBOL) return IN_SYMBOL;
  return at->kind == RONDO_ALLOCATION_GRAPH ? IN_GRAPH_ALLOCATION : IN_ALLOCATION;
}

/* Refuses to free an address at which no allocation begins, and says what the address is instead. */
static rondo_status refuse_address(const rondo_device_memory *memory, free_call kind, const char *call,
                                   const void *address) {
  char text[ADDRESS_TEXT], right[32] = "";
  const char *begin = NULL;
  const refusal *why = &refusals[kind][describe_address(memory, kind, address, text, &begin)];
  assert(why->advice != NULL);
  if (why->advice[strlen(why->advice) - 1] == ',') snprintf(right, sizeof right, " %p", (const void *)begin);
  return rondo_fail(kind == FREE_NODE ? RONDO_INVALID_ARGUMENT : RONDO_INVALID_LIFETIME, why->reason, "%s: %p %s%s%s",
                    call, address, text, why->advice, right);
}

rondo_status rondo_memory_refuse_free_node(const rondo_device_memory *memory, const void *address) {
  return refuse_address(memory, FREE_NODE, "a free node", address);
}

static rondo_status refuse_dead_graph_memory(const rondo_graph_allocation *graph, const char *call,
                                             const void *address) {
  char label[RONDO_ALLOCATION_LABEL];
  (void)rondo_allocation_label(label, &graph->base);
  if (atomic_load_explicit(&graph->life, memory_order_relaxed) == RONDO_LIFE_NEVER)
    return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED,
                      "%s: graph allocation %s at %p is not allocated: no launch has left it allocated. Launch its "
                      "graph first; what its graph frees itself cannot be freed outside",
                      call, label, address);
  return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE,
                    "%s: graph allocation %s at %p was freed already: free it once for each launch that allocates it",
                    call, label, address);
}

rondo_status rondo_memory_refuse_free(const rondo_device_memory *memory, const char *call, const void *address) {
  const rondo_graph_allocation *graph = rondo_graph_allocation_at(memory, address);
  const rondo_freed *freed = rondo_allocation_table_freed_at(&memory->table, address);
  char label[RONDO_ALLOCATION_LABEL];
  if (graph != NULL) return refuse_dead_graph_memory(graph, call, address);
  if (freed == NULL || rondo_arena_find(memory, address) != NULL)
    return refuse_address(memory, DEVICE_FREE, call, address);
  return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE,
                    "%s: allocation %s at %p was freed already: free it once, with rondo_free, rondo_free_async or a "
                    "free node",
                    call, rondo_named_size(label, freed->name, freed->bytes), address);
}

rondo_status rondo_memory_refuse_host_free(const rondo_device_memory *memory, const void *address) {
  const char *const call = "rondo_host_free";
  const rondo_freed *freed = rondo_allocation_table_freed_at(&memory->host, address);
  if (freed == NULL) return refuse_address(memory, HOST_FREE, call, address);
  return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE,
                    "%s: the %zu bytes of host memory at %p were freed already: free them once", call, freed->bytes,
                    address);
}

/* Ranges ---------------------------------------------------------------------------------------------------------- */

/* A range that work accesses. */
typedef struct checked_range {
  const char *call, *what;
  const void *address;
  size_t bytes;
  const rondo_freed_marks *since;     /* later frees count even if the addresses were released; or NULL */
  const rondo_graph_allocation *live; /* the live one there that has the highest end */
} checked_range;

#define RANGE_TEXT 160

/* "source of 64 bytes at 0x..."; without an unknown size. */
static const char *range_text(char buffer[RANGE_TEXT], const checked_range *self) {
  char size[32] = "";
  if (self->bytes > 0) snprintf(size, sizeof size, " of %zu bytes", self->bytes);
  snprintf(buffer, RANGE_TEXT, "%.80s%s at %p", self->what, size, self->address);
  return buffer;
}

static rondo_status check_end(const checked_range *self, const rondo_allocation *at) {
  const size_t offset = offset_in(at->address, self->address);
  if (self->bytes <= at->bytes - offset) return RONDO_OK;
  const bool is_named = at->name != NULL && at->name[0] != '\0';
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: the %s of %zu bytes at offset %zu passes the end of %s%.60s%s of %zu bytes: make it smaller, "
                    "or allocate more",
                    self->call, self->what, self->bytes, offset, is_named ? "allocation '" : "an allocation",
                    is_named ? at->name : "", is_named ? "'" : "", at->bytes);
}

static bool find_live(void *owner, void *user) {
  const rondo_allocation *allocation = owner;
  checked_range *self = user;
  const rondo_graph_allocation *graph = (const rondo_graph_allocation *)allocation;
  const bool live = atomic_load_explicit(&graph->life, memory_order_acquire) == RONDO_LIFE_LIVE;
  const char *end = allocation->address + allocation->bytes;
  if (live && (self->live == NULL || end > self->live->base.address + self->live->base.bytes)) self->live = graph;
  return true;
}

/* The range is in graph memory; of its allocations there, `at` has the highest end. */
static rondo_status check_allocated(const rondo_device_memory *memory, checked_range *self,
                                    const rondo_allocation *at) {
  rondo_allocation_table_visit_around(&memory->table, self->address, find_live, self);
  if (self->live != NULL) return check_end(self, &self->live->base);
  char label[RONDO_ALLOCATION_LABEL], text[RANGE_TEXT];
  const rondo_graph_allocation *graph = (const rondo_graph_allocation *)at;
  const bool never = atomic_load_explicit(&graph->life, memory_order_relaxed) == RONDO_LIFE_NEVER;
  return rondo_fail(RONDO_INVALID_LIFETIME, never ? RONDO_REASON_NOT_ALLOCATED : RONDO_REASON_USE_AFTER_FREE,
                    "%s: the %s is in graph allocation %s, which %s: use it in the graph before its free, or launch "
                    "a graph first that allocates it and does not free it",
                    self->call, range_text(text, self), rondo_allocation_label(label, at),
                    never ? "no launch has left allocated" : "was freed");
}

/* Whether the process has mapped all pages of the range. */
static bool is_mapped(const void *address, size_t bytes) {
  const size_t into = (uintptr_t)address % (size_t)sysconf(_SC_PAGESIZE);
  return msync((char *)(uintptr_t)address - into, into + (bytes > 0 ? bytes : 1), MS_ASYNC) == 0;
}

/* Whether a range of the index may contain the address. */
static bool may_have(const rondo_range_index *index, const void *address) {
  return rondo_range_find(index, address) != 0 || atomic_load_explicit(&index->missing, memory_order_relaxed) != 0;
}

/* A freed allocation of the table whose addresses are not in use again. `since` NULL: not known. `is_own`: the device
 * may still own the address. The indexes come first: they are fast, and most addresses are in none. */
static const rondo_freed *find_freed_in(rondo_allocation_table *table, const void *address, size_t bytes, bool is_own,
                                        const uint64_t *since) {
  const rondo_freed *freed = is_own ? rondo_allocation_table_freed_around(table, address) : NULL;
  if (freed == NULL && since != NULL) freed = rondo_allocation_table_freed_since(table, address, *since);
  if (freed != NULL || !may_have(&table->gone, address)) return freed;
  for (rondo_freed *gone; (gone = rondo_allocation_table_gone_around(table, address)) != NULL;) {
    if (!is_mapped(address, bytes)) return gone;
    rondo_allocation_table_note_taken(table, gone);
  }
  return NULL;
}

const rondo_freed *rondo_memory_find_freed(rondo_device_memory *memory, const void *address, size_t bytes,
                                           const rondo_freed_marks *since) {
  const bool is_own = memory->device->ops->guard != NULL || may_have(&memory->own, address);
  const rondo_freed *freed =
      find_freed_in(&memory->table, address, bytes, is_own, since == NULL ? NULL : &since->device);
  if (freed != NULL) return freed;
  return find_freed_in(&memory->host, address, bytes, is_own, since == NULL ? NULL : &since->host);
}

/* Addresses of the device that are in no known allocation: it was freed too long ago for the ring. */
static rondo_status check_own(const rondo_device_memory *memory, const checked_range *self) {
  char text[RANGE_TEXT];
  if (rondo_range_find(&memory->own, self->address) == 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED,
                    "%s: the %s is in no allocation of device %s, which owns these addresses: enqueue the work before "
                    "the memory is freed",
                    self->call, range_text(text, self), memory->device->name);
}

static rondo_status check_freed(rondo_device_memory *memory, const checked_range *self, bool now) {
  const rondo_freed *freed = rondo_memory_find_freed(memory, self->address, self->bytes, self->since);
  if (freed == NULL && now) return check_own(memory, self);
  if (freed == NULL || (freed->kind == RONDO_ALLOCATION_GRAPH && !now)) return RONDO_OK;
  char label[RONDO_ALLOCATION_LABEL], text[RANGE_TEXT], into[INTO_TEXT];
  if (freed->kind == RONDO_ALLOCATION_SPACE)
    return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED,
                      "%s: the %s is in memory of a graph that was destroyed: keep the graph, and launch it first",
                      self->call, range_text(text, self));
  return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE,
                    "%s: the %s %s allocation %s, which was freed: enqueue the work before the free", self->call,
                    range_text(text, self), into_text(into, freed->address, self->address, true),
                    rondo_named_size(label, freed->name, freed->bytes));
}

static bool is_outside(const rondo_range_index *index, const void *address) {
  rondo_range_found found;
  return rondo_range_look(index, address, &found) && found.end == 0;
}

/* The fast check without the lock: the range is inside an allocation, or outside of the device's memory. False means
 * that the slow check decides, for example for graph memory, which may not be allocated `now`. A guarded device also
 * has memory in other address ranges. */
static bool passes_quickly(const rondo_device_memory *memory, const void *address, size_t bytes, bool now) {
  rondo_range_found found;
  if (memory->device->ops->guard != NULL || !rondo_range_look(&memory->table.index, address, &found)) return false;
  if (found.end == 0) {
    if (!is_outside(&memory->own, address) || !is_outside(&memory->table.gone, address)) return false;
    if (!is_outside(&memory->host.gone, address) || !rondo_range_look(&memory->host.index, address, &found))
      return false;
    if (found.end == 0) return true;
  }
  return (found.tag != RONDO_ALLOCATION_GRAPH || !now) && bytes <= found.end - (uintptr_t)address;
}

bool rondo_memory_find_plain(const rondo_device_memory *memory, const void *address, size_t bytes,
                             rondo_range_found *out) {
  return memory->device->ops->guard == NULL && rondo_range_look(&memory->table.index, address, out) && out->end != 0 &&
         out->tag != RONDO_ALLOCATION_GRAPH && out->tag != RONDO_ALLOCATION_ARENA &&
         bytes <= out->end - (uintptr_t)address;
}

bool rondo_memory_is_plain(const rondo_device_memory *memory, const void *address, size_t bytes) {
  rondo_range_found found;
  return rondo_memory_find_plain(memory, address, bytes, &found);
}

/* An arena may have grown when a node runs. */
static rondo_status check_found(const rondo_device_memory *memory, checked_range *self, const rondo_allocation *at,
                                bool now) {
  if (at->kind == RONDO_ALLOCATION_GRAPH && now) return check_allocated(memory, self, at);
  return at->kind == RONDO_ALLOCATION_ARENA && !now ? RONDO_OK : check_end(self, at);
}

static rondo_status check_not_found(rondo_device_memory *memory, const checked_range *self, bool now) {
  const rondo_arena *arena = now ? rondo_arena_find(memory, self->address) : NULL;
  char text[RANGE_TEXT], into[INTO_TEXT], label[RONDO_ARENA_LABEL];
  if (arena == NULL) return check_freed(memory, self, now);
  return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED,
                    "%s: the %s %s %s, of which the first %zu bytes have memory, and nothing is allocated there: use "
                    "the address of a live output",
                    self->call, range_text(text, self), into_text(into, rondo_arena_base(arena), self->address, true),
                    rondo_arena_label(label, arena), arena->allocation.bytes);
}

static rondo_status check_slowly(rondo_device_memory *memory, checked_range *self, bool now) {
  pthread_mutex_lock(&memory->lock);
  const rondo_allocation *at = rondo_allocation_table_around(&memory->table, self->address);
  if (at == NULL) at = rondo_allocation_table_around(&memory->host, self->address);
  const rondo_status status = at == NULL ? check_not_found(memory, self, now) : check_found(memory, self, at, now);
  pthread_mutex_unlock(&memory->lock);
  return status;
}

rondo_status rondo_memory_check_range(rondo_device_memory *memory, const char *call, const char *what,
                                      const void *address, size_t bytes, bool now) {
  if (passes_quickly(memory, address, bytes, now)) return RONDO_OK;
  checked_range self = {.call = call, .what = what, .address = address, .bytes = bytes};
  return check_slowly(memory, &self, now);
}

rondo_status rondo_memory_check_still(rondo_device_memory *memory, const char *call, const char *what,
                                      const void *address, size_t bytes, const rondo_freed_marks *since) {
  checked_range self = {.call = call, .what = what, .address = address, .bytes = bytes, .since = since};
  return check_slowly(memory, &self, true);
}

void rondo_memory_mark_freed(rondo_device_memory *memory, rondo_freed_marks *out) {
  pthread_mutex_lock(&memory->lock);
  *out = (rondo_freed_marks){.device = memory->table.freed_count, .host = memory->host.freed_count};
  pthread_mutex_unlock(&memory->lock);
}

/* Users of the memory ------------------------------------------------------------------------------------------- */

enum { MAX_POOLS = 3, MAX_ALLOCATIONS = 3 };

typedef struct holders {
  char text[640];
  size_t length;
  const rondo_allocation *largest[MAX_ALLOCATIONS]; /* by size, the largest first */
  uint64_t unfreed_bytes;                           /* of graph memory that is allocated */
  size_t unfreed;
} holders;

static void add(holders *self, const char *format, ...) RONDO_PRINTF(2, 3);
static void add(holders *self, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(self->text + self->length, sizeof self->text - self->length, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  self->length += (size_t)length;
  if (self->length >= sizeof self->text) self->length = sizeof self->text - 1;
}

static bool add_allocation(void *owner, void *user) {
  const rondo_allocation *allocation = owner;
  holders *self = user;
  if (allocation->kind == RONDO_ALLOCATION_SYMBOL) return true;
  if (allocation->kind == RONDO_ALLOCATION_GRAPH) {
    const rondo_graph_allocation *graph = (const rondo_graph_allocation *)allocation;
    if (atomic_load_explicit(&graph->life, memory_order_relaxed) != RONDO_LIFE_LIVE) return true;
    self->unfreed++;
    self->unfreed_bytes += allocation->bytes;
  }
  const rondo_allocation *next = allocation;
  for (size_t i = 0; i < MAX_ALLOCATIONS && next != NULL; i++) {
    if (self->largest[i] != NULL && self->largest[i]->bytes >= next->bytes) continue;
    const rondo_allocation *const moved = self->largest[i];
    self->largest[i] = next;
    next = moved;
  }
  return true;
}

/* The pools that reserve the most, with their names. */
static void add_pools(holders *self, const rondo_device_memory *memory) {
  char held[RONDO_SIZE_TEXT], used[RONDO_SIZE_TEXT];
  uint64_t below = UINT64_MAX, others = memory->stream_ordered.reserved;
  for (size_t i = 0; i < MAX_POOLS; i++) {
    const rondo_pool *largest = NULL;
    for (const rondo_pool *pool = &memory->default_pool; pool != NULL; pool = pool->next)
      if (pool->figures.reserved < below && (largest == NULL || pool->figures.reserved > largest->figures.reserved))
        largest = pool;
    if (largest == NULL || largest->figures.reserved == 0) break;
    const char *name = largest == &memory->default_pool ? "default" : largest->name;
    const bool is_named = name[0] != '\0';
    add(self, ", %s by %spool%s%.32s%s (%s used)", rondo_size_text(held, largest->figures.reserved),
        is_named ? "" : "a ", is_named ? " '" : "", name, is_named ? "'" : "",
        rondo_size_text(used, largest->figures.used));
    below = largest->figures.reserved;
    others -= largest->figures.reserved;
  }
  if (others > 0) add(self, ", %s by other pools", rondo_size_text(held, others));
}

static void add_largest(holders *self) {
  char size[RONDO_SIZE_TEXT];
  for (size_t i = 0; i < MAX_ALLOCATIONS && self->largest[i] != NULL; i++) {
    const char *name = self->largest[i]->name;
    rondo_size_text(size, self->largest[i]->bytes);
    add(self, "%s ", i == 0 ? "; the largest allocations are" : ",");
    if (name != NULL && name[0] != '\0')
      add(self, "'%.32s' %s", name, size);
    else
      add(self, "%s without a name", size);
  }
}

/* Under the lock. */
static void describe(holders *self, const rondo_device_memory *memory) {
  char held[RONDO_SIZE_TEXT], unfreed[RONDO_SIZE_TEXT];
  const uint64_t arenas = atomic_load_explicit(&memory->arena_backed.now, memory_order_relaxed);
  const uint64_t both = atomic_load_explicit(&memory->graph_reserved.now, memory_order_relaxed);
  const uint64_t graphs = both > arenas ? both - arenas : 0; /* other threads change them */
  rondo_allocation_table_visit(&memory->table, add_allocation, self);
  add(self, "%s by rondo_malloc", rondo_size_text(held, memory->immediate.figures.reserved));
  add_pools(self, memory);
  add(self, ", %s by graphs (%s in %zu unfreed allocations%s)", rondo_size_text(held, graphs),
      rondo_size_text(unfreed, self->unfreed_bytes), self->unfreed,
      graphs > self->unfreed_bytes ? "; rondo_graph_memory_trim gives back what no launch uses" : "");
  if (arenas > 0) add(self, ", %s by arenas", rondo_size_text(held, arenas));
  add_largest(self);
}

rondo_status rondo_memory_fail_size(size_t bytes) {
  return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_BAD_SIZE, "%zu bytes do not fit the address space: allocate less",
                    bytes);
}

rondo_status rondo_memory_fail_larger(const rondo_device_memory *memory, rondo_reason reason, size_t bytes,
                                      const char *of) {
  char wanted[RONDO_SIZE_TEXT], whole[RONDO_SIZE_TEXT];
  return rondo_fail(RONDO_OUT_OF_MEMORY, reason, "%s%s is more than all memory of device %s (%s): allocate less",
                    rondo_size_text(wanted, bytes), of, memory->device->name,
                    rondo_size_text(whole, memory->limit_bytes));
}

rondo_status rondo_memory_fail_growth(rondo_device_memory *memory, rondo_status status, const char *what,
                                      size_t bytes) {
  if (status != RONDO_OUT_OF_MEMORY) return rondo_fail_context(status, "%s", what);
  /* The driver's advice does not help here. (A limit that was set for the device has no driver code.) */
  const rondo_error *cause = rondo_last_error();
  if (bytes > memory->limit_bytes && cause->driver_code != 0)
    return rondo_fail_context(rondo_memory_fail_larger(memory, cause->reason, bytes, ""), "%s", what);
  holders who = {.length = 0};
  pthread_mutex_lock(&memory->lock);
  const uint64_t held = memory->immediate.figures.reserved + memory->stream_ordered.reserved +
                        atomic_load_explicit(&memory->graph_reserved.now, memory_order_relaxed);
  describe(&who, memory);
  pthread_mutex_unlock(&memory->lock);
  return rondo_fail_context(status, "%s: %zu bytes more on %s, which holds %" PRIu64 " of %" PRIu64 " bytes (%s)", what,
                            bytes, memory->device->name, held, memory->limit_bytes, who.text);
}

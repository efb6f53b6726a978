/* SPDX-License-Identifier: MIT
 * Work on blocks. A target is the destination of work: a stream, where it runs or is captured, or the end of a chain of
 * nodes. All bytes of a small block are written and checked, and a few rows of a large one, because device memory is
 * only backed when it is accessed.
 */
#include "fuzz/memory_run.h"

#include <sched.h>
#include <string.h>

enum { TARGETS = 2, WHOLE = 8192, ROW = 256, ROWS = 3, STEPS = 14 };

typedef struct target {
  rondo_stream *stream; /* NULL: nodes of `graph` after `last` */
  rondo_pool *pool;     /* that a captured allocation names; NULL: the current one */
  rondo_graph *graph;
  rondo_node last; /* none: the first node has nothing before it */
} target;

/* What runs -------------------------------------------------------------------------------------------------------- */

/* The arguments of a kernel in addition to the block's address. */
typedef struct pattern {
  size_t bytes, value;
} pattern;

typedef struct rows {
  size_t width, height, pitch;
} rows;

static rows rows_of(size_t bytes) {
  if (bytes <= WHOLE) return (rows){bytes, 1, bytes};
  return (rows){ROW, ROWS, (bytes - ROW) / (ROWS - 1)};
}

static void look_cpu(rondo_blocks blocks, void *const *args) {
  const unsigned char *address = *(const unsigned char *const *)args[0];
  const pattern *of = args[1];
  const rows at = rows_of(of->bytes);
  (void)blocks;
  for (size_t row = 0; row < at.height; row++, address += at.pitch) {
    REQUIRE(address[0] == of->value);
    REQUIRE(memcmp(address, address + 1, at.width - 1) == 0);
  }
}

static void stamp_cpu(rondo_blocks blocks, void *const *args) {
  unsigned char *address = *(unsigned char *const *)args[0];
  const pattern *of = args[1];
  const rows at = rows_of(of->bytes);
  (void)blocks;
  for (size_t row = 0; row < at.height; row++, address += at.pitch) memset(address, (int)of->value, at.width);
}

const rondo_kernel_options *kernel_options(kernel_id id) {
  static const rondo_kernel_options options[KERNELS] = {
      [LOOK] = {RONDO_KERNEL_OPTIONS_INIT, .name = "look", .cpu = look_cpu,
                .params = {RONDO_READS, RONDO_SCALAR(pattern)}},
      [STAMP] = {RONDO_KERNEL_OPTIONS_INIT, .name = "stamp", .cpu = stamp_cpu,
                 .params = {RONDO_WRITES, RONDO_SCALAR(pattern)}}};
  return &options[id];
}

rondo_status dawdle(void *user) {
  for (uintptr_t turns = (uintptr_t)user; turns > 0; turns--) (void)sched_yield();
  return RONDO_OK;
}

/* Targets ---------------------------------------------------------------------------------------------------------- */

static rondo_status put_kernel(rondo_stream *stream, const rondo_kernel_node *node) {
  const rondo_launch_options options = {RONDO_LAUNCH_OPTIONS_INIT, .arg_bytes = node->arg_bytes};
  return rondo_launch_with(stream, node->kernel, node->grid, node->args, node->arg_count, &options);
}

static rondo_status put(target *into, rondo_node_params *params) {
  if (into->stream == NULL)
    return rondo_graph_add(into->graph, &into->last, into->last.id != 0 ? 1 : 0, params, &into->last);
  const rondo_malloc_options options = {RONDO_MALLOC_OPTIONS_INIT, .pool = into->pool};
  switch (params->kind) {
    case RONDO_NODE_KERNEL:
      return put_kernel(into->stream, &params->as.kernel);
    case RONDO_NODE_FILL:
      return rondo_fill_async(into->stream, &params->as.fill);
    case RONDO_NODE_COPY:
      return rondo_copy_box_async(into->stream, &params->as.copy);
    case RONDO_NODE_HOST:
      return rondo_host_async(into->stream, params->as.host.function, params->as.host.user);
    case RONDO_NODE_ALLOC:
      return rondo_malloc_async(into->stream, params->as.alloc.bytes, &options, &params->as.alloc.address);
    default:
      return rondo_free_async(into->stream, params->as.free_address);
  }
}

static rondo_status put_on_block(target *into, rondo_kernel *kernel, const block *of) {
  const pattern told = {of->bytes, of->value};
  const size_t arg_bytes[] = {of->bytes, 0};
  return put(into, &(rondo_node_params){.kind = RONDO_NODE_KERNEL,
                                        .as.kernel = {.kernel = kernel,
                                                      .grid = {.x = 1},
                                                      .args = (const void *const[]){&of->address, &told},
                                                      .arg_count = 2,
                                                      .arg_bytes = arg_bytes}});
}

/* With a fill or a kernel, depending on the value. */
static rondo_status put_write(target *into, rondo_kernel *const kernels[KERNELS], const block *of) {
  if (of->value % 2 == 0) return put_on_block(into, kernels[STAMP], of);
  const rows at = rows_of(of->bytes);
  return put(into, &(rondo_node_params){.kind = RONDO_NODE_FILL,
                                        .as.fill = {.dst = of->address,
                                                    .value = of->value,
                                                    .element_bytes = 1,
                                                    .width = at.width,
                                                    .height = at.height,
                                                    .pitch = at.pitch}});
}

static rondo_status put_look(target *into, rondo_kernel *const kernels[KERNELS], const block *of) {
  return of->value == 0 ? RONDO_OK : put_on_block(into, kernels[LOOK], of);
}

static unsigned char new_value(fuzz_run *run) {
  run->last_value = (unsigned char)(run->last_value % 250 + 1);
  return run->last_value;
}

/* Blocks ----------------------------------------------------------------------------------------------------------- */

bool order(fuzz_run *run, int from, int to) {
  if (from == to || from < 0) return true;
  return went_well(rondo_event_record(run->event, run->streams[from])) &&
         went_well(rondo_stream_wait_event(run->streams[to], run->event));
}

bool move(fuzz_run *run, block *of, int stream) {
  if (!order(run, of->stream, stream)) return false;
  of->stream = stream;
  return true;
}

bool write_block(fuzz_run *run, block *of) {
  block next = *of;
  target at = {.stream = run->streams[of->stream]};
  next.value = new_value(run);
  if (!went_well(put_write(&at, run->kernels, &next))) return false;
  *of = next;
  return true;
}

bool look_at(fuzz_run *run, const block *of) {
  target at = {.stream = run->streams[of->stream < 0 ? 0 : of->stream]};
  return went_well(put_look(&at, run->kernels, of));
}

rondo_status look_from_peer(fuzz_run *run, const block *of) {
  target at = {.stream = run->peer_stream};
  const rondo_status status = put_look(&at, run->peer_kernels, of);
  require_ok(rondo_stream_synchronize(run->peer_stream));
  return status;
}

rondo_status write_from_peer(fuzz_run *run, block *of) {
  block next = *of;
  target at = {.stream = run->peer_stream};
  next.value = new_value(run);
  const rondo_status status = put_write(&at, run->peer_kernels, &next);
  require_ok(rondo_stream_synchronize(run->peer_stream));
  if (status == RONDO_OK) *of = next;
  return status;
}

/* Recording -------------------------------------------------------------------------------------------------------- */

/* A graph under construction: two branches, between which blocks move as they do between streams. */
typedef struct author {
  fuzz_run *run;
  family *into;
  target targets[TARGETS];
  int made;
  int target_of[ALLOCS];
  bool freed[ALLOCS];
} author;

static rondo_status join(author *self, int from, int to) {
  target *a = &self->targets[from], *b = &self->targets[to];
  if (b->stream != NULL) {
    const rondo_status status = rondo_event_record(self->run->event, a->stream);
    return status == RONDO_OK ? rondo_stream_wait_event(b->stream, self->run->event) : status;
  }
  if (a->last.id == 0 || a->last.id == b->last.id) return RONDO_OK;
  if (b->last.id != 0) {
    const rondo_node before[] = {a->last, b->last};
    return rondo_graph_add_empty(b->graph, before, 2, &b->last);
  }
  b->last = a->last;
  return RONDO_OK;
}

static rondo_status bring(author *self, int number, int to) {
  if (self->target_of[number] == to) return RONDO_OK;
  const rondo_status status = join(self, self->target_of[number], to);
  self->target_of[number] = to;
  return status;
}

/* An allocation that is not freed; -1: none. */
static int some_alloc(const author *self) {
  const int first = take(self->run);
  for (int i = 0; i < self->made; i++) {
    const int number = (first + i) % self->made;
    if (!self->freed[number]) return number;
  }
  return -1;
}

static rondo_status record_alloc(author *self, int to) {
  fuzz_run *run = self->run;
  target *into = &self->targets[to];
  if (self->made == ALLOCS) return RONDO_OK;
  const uint8_t choice = take(run);
  block at = {.bytes = take_size(run), .pool = OF_GRAPH};
  const int pool = choice % POOLS;
  into->pool = run->pools[pool];
  at.peer = into->stream == NULL ? choice % 2 == 0 : into->pool != NULL && run->pool_access[pool];
  if (into->stream != NULL && into->pool == NULL) return RONDO_OK;
  rondo_node_params params = {
      .kind = RONDO_NODE_ALLOC,
      .as.alloc = {.bytes = at.bytes, .name = "node", .peers = at.peer ? rondo_device_peer_bit(run->peer) : 0}};
  const rondo_status status = put(into, &params);
  if (status != RONDO_OK) return status;
  at.address = params.as.alloc.address;
  REQUIRE(at.address != NULL && (uintptr_t)at.address % 256 == 0);
  self->into->allocs[self->made] = at;
  self->target_of[self->made++] = to;
  return RONDO_OK;
}

static rondo_status record_look(author *self, int number) {
  return put_look(&self->targets[self->target_of[number]], self->run->kernels, &self->into->allocs[number]);
}

static rondo_status record_write(author *self, int number) {
  block *at = &self->into->allocs[number];
  at->value = new_value(self->run);
  return put_write(&self->targets[self->target_of[number]], self->run->kernels, at);
}

/* Copies one that was completely written to one that it fills. */
static rondo_status record_copy(author *self, int number) {
  block *to = &self->into->allocs[number];
  const int other = some_alloc(self);
  const block *from = &self->into->allocs[other];
  if (other == number || from->value == 0 || from->bytes > WHOLE || from->bytes < to->bytes) return RONDO_OK;
  const rondo_status status = bring(self, other, self->target_of[number]);
  if (status != RONDO_OK) return status;
  to->value = from->value;
  return put(&self->targets[self->target_of[number]],
             &(rondo_node_params){.kind = RONDO_NODE_COPY,
                                  .as.copy = {.dst = to->address, .src = from->address, .width = to->bytes}});
}

static rondo_status record_free(author *self, int number) {
  const rondo_status status = record_look(self, number);
  self->freed[number] = true;
  if (status != RONDO_OK) return status;
  return put(&self->targets[self->target_of[number]],
             &(rondo_node_params){.kind = RONDO_NODE_FREE, .as.free_address = self->into->allocs[number].address});
}

static rondo_status record_step(author *self) {
  const uint8_t choice = take(self->run);
  const int to = choice % TARGETS, number = choice / TARGETS % 8 < 2 ? -1 : some_alloc(self);
  if (number < 0) return record_alloc(self, to);
  const rondo_status status = bring(self, number, to);
  if (status != RONDO_OK) return status;
  switch (choice / TARGETS % 8) {
    case 2:
    case 3:
      return record_write(self, number);
    case 4:
      return record_copy(self, number);
    case 5:
      return put(&self->targets[to], &(rondo_node_params){.kind = RONDO_NODE_HOST, .as.host = {dawdle, (void *)1}});
    case 6:
      return record_look(self, number);
    default:
      return record_free(self, number);
  }
}

/* Frees or keeps each allocation that is not freed yet. */
static rondo_status record_end(author *self) {
  const uint8_t keep = take(self->run);
  rondo_status status = RONDO_OK;
  for (int i = 0; i < self->made && status == RONDO_OK; i++) {
    block *at = &self->into->allocs[i];
    at->kept = !self->freed[i] && (keep >> i & 1) != 0;
    at->fresh = at->value;
    at->value = 0;
    if (self->freed[i] || at->kept) continue;
    at->value = at->fresh;
    status = record_free(self, i);
  }
  return status == RONDO_OK ? join(self, 1, 0) : status;
}

static rondo_status record_work(author *self) {
  const int steps = 1 + take(self->run) % STEPS;
  rondo_status status = self->targets[0].stream != NULL ? join(self, 0, 1) : RONDO_OK;
  for (int i = 0; i < steps && status == RONDO_OK; i++) status = record_step(self);
  return status == RONDO_OK ? record_end(self) : status;
}

static rondo_status capture(author *self, rondo_profile *profile, rondo_graph **out) {
  const int first = take_stream(self->run);
  for (int i = 0; i < TARGETS; i++) self->targets[i].stream = self->run->streams[(first + i) % STREAMS];
  const rondo_capture_options options = {RONDO_CAPTURE_OPTIONS_INIT, .mode = RONDO_CAPTURE_RELAXED, .profile = profile,
                                         .relocate = self->into->moves};
  rondo_status status = rondo_capture_begin_with(self->targets[0].stream, &options);
  if (status != RONDO_OK) return status;
  status = record_work(self);
  const rondo_status ended = rondo_capture_end(self->targets[0].stream, out);
  return status == RONDO_OK ? ended : status;
}

rondo_status record_graph(fuzz_run *run, family *into, bool captured, rondo_profile *profile, rondo_graph **out) {
  author self = {.run = run, .into = into};
  if (captured) return capture(&self, profile, out);
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .profile = profile, .relocate = into->moves};
  const rondo_status status = rondo_graph_create(run->device, &options, out);
  for (int i = 0; i < TARGETS; i++) self.targets[i].graph = *out;
  return status == RONDO_OK ? record_work(&self) : status;
}

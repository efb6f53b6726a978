/* SPDX-License-Identifier: MIT
 * GM-17: devices that access each other's memory, with the CUDA guide's programs for peer access by the node API and by
 * capture; work without access is refused when it is queued or instantiated. Two devices suffice; with four, third
 * parties are tested too.
 */
#include <stdio.h>
#include <string.h>

#include "support/test_graph_memory.h"

enum { WORDS = 1024, BYTES = WORDS * 4, DEVICES = 4 };

static int device_count = DEVICES; /* that can access each other, 2 at least; of CUDA what there are */

/* Devices from 0 on, of which the fixture's is 0, each with a stream and a kernel out[i] = in[i] * 31 + in[i]. */
typedef struct party {
  test_fixture *t;
  int count, last; /* devices; the last one's number */
  rondo_device *devices[DEVICES];
  rondo_stream *streams[DEVICES];
  rondo_kernel *kernels[DEVICES];
  uint32_t *out[DEVICES]; /* memory of each device's own */
} party;

static const char *driver_of(const test_fixture *t) {
  if (test_device_is("cuda")) return "cuda";
  return test_is_guarded(t) ? "cpu:check" : "cpu";
}

static void join_party(party *self, test_fixture *t) {
  *self = (party){.t = t, .count = device_count, .last = device_count - 1};
  for (int i = 0; i < self->count; i++) {
    char name[48];
    const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &t->allocator.table};
    snprintf(name, sizeof name, "%s:%d", driver_of(t), i);
    if (i == 0)
      self->devices[i] = t->device;
    else
      assert_ok(rondo_device_open(name, &options, &self->devices[i]));
    assert_ok(rondo_stream_create(self->devices[i], NULL, &self->streams[i]));
    assert_ok(rondo_kernel_create(self->devices[i], test_kernel_options(TEST_KERNEL_COMBINE), &self->kernels[i]));
    void *out = NULL;
    assert_ok(rondo_malloc(self->devices[i], BYTES, "out", &out));
    self->out[i] = out;
  }
}

static void leave_party(party *self) {
  for (int i = 0; i < self->count; i++) {
    assert_ok(rondo_device_synchronize(self->devices[i]));
    assert_ok(rondo_free(self->devices[i], self->out[i]));
    rondo_kernel_destroy(self->kernels[i]);
    assert_ok(rondo_stream_destroy(self->streams[i]));
    if (i > 0) assert_ok(rondo_device_close(self->devices[i]));
  }
}

/* Reads `words` on device `i` into its own memory. */
static rondo_status read_on(party *self, int i, const void *words) {
  return rondo_launch(self->streams[i], self->kernels[i], (rondo_grid){WORDS, 0, 0},
                      RONDO_ARGS(&words, &words, &self->out[i]));
}

#define assert_no_access(call) assert_error(call, RONDO_INVALID_ARGUMENT, RONDO_REASON_NO_ACCESS)

TEST(test_gm17_who_can_be_a_peer) {
  party self;
  join_party(&self, t);
  for (int i = 0; i < self.count; i++) {
    assert_int_equal(rondo_device_peer_bit(self.devices[i]), 1 << i);
    for (int k = 0; k < self.count; k++) {
      bool can = false;
      assert_ok(rondo_device_can_access_peer(self.devices[i], self.devices[k], &can));
      assert_true(can);
    }
  }
  bool can = true;
  assert_invalid(rondo_device_can_access_peer(self.devices[0], NULL, &can), RONDO_REASON_NULL_ARGUMENT);
  assert_false(can);
  assert_invalid(rondo_device_can_access_peer(NULL, self.devices[0], &can), RONDO_REASON_NULL_ARGUMENT);
  assert_int_equal(rondo_device_peer_bit(NULL), 0);
  leave_party(&self);
}

/* Adds an alloc node after *node, which becomes it. */
static void *add_alloc(rondo_graph *graph, const char *name, uint64_t peers, rondo_node *node, uint64_t *out_peers) {
  rondo_node_params params = {.kind = RONDO_NODE_ALLOC, .as.alloc = {.bytes = BYTES, .name = name, .peers = peers}};
  assert_ok(rondo_graph_add(graph, node, node->id != 0, &params, node));
  void *const address = params.as.alloc.address;
  assert_ok(rondo_graph_get_params(graph, *node, &params));
  *out_peers = params.as.alloc.peers;
  return address;
}

/* On device `i`, by launches with and without the sizes of what is pointed to, by a copy and by a fill. */
static void assert_out_of_reach(party *self, int i, const char *name, void *memory) {
  const size_t arg_bytes[3] = {BYTES, BYTES, BYTES};
  const rondo_launch_options told = {RONDO_LAUNCH_OPTIONS_INIT, .arg_bytes = arg_bytes};
  assert_no_access(read_on(self, i, memory));
  assert_message(name);
  assert_message("peers");
  assert_no_access(rondo_launch_with(self->streams[i], self->kernels[i], (rondo_grid){WORDS, 0, 0},
                                     RONDO_ARGS(&memory, &memory, &self->out[i]), &told));
  assert_no_access(rondo_copy_async(self->streams[i], self->out[i], memory, BYTES));
  assert_no_access(rondo_fill_async(self->streams[i], &(rondo_fill){.dst = memory, .element_bytes = 1, .width = 4}));
}

/* The guide's program: an allocation resident on device 1, accessible from devices 0, 1 and 2; and one from 1 only. */
TEST(test_gm17_by_the_node_api) {
  party self;
  join_party(&self, t);
  const int readers = self.count < 3 ? self.count : 3;
  rondo_graph *graph = NULL;
  rondo_node node = {0};
  uint64_t peers = 0, kept;
  assert_ok(rondo_graph_create(self.devices[1], NULL, &graph));
  for (int i = 0; i < readers; i++) peers |= rondo_device_peer_bit(self.devices[i]);
  void *const dptr = add_alloc(graph, "shared", peers, &node, &kept);
  assert_int_equal(kept, peers & ~(uint64_t)(1 << 1)); /* the resident device needs no entry */
  void *const closed = add_alloc(graph, "closed", 0, &node, &kept);
  assert_ok(rondo_graph_add_fill(graph, &node, 1,
                                 &(rondo_fill){.dst = dptr, .value = 5, .element_bytes = 4, .width = WORDS}, &node));
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_graph_destroy(graph));
  assert_ok(rondo_exec_launch(exec, self.streams[1]));
  assert_ok(rondo_stream_synchronize(self.streams[1]));
  for (int i = 0; i < readers; i++) assert_ok(read_on(&self, i, dptr));
  assert_out_of_reach(&self, 0, "closed", closed);
  if (self.last >= readers) assert_out_of_reach(&self, self.last, "shared", dptr);
  assert_ok(rondo_stream_synchronize(self.streams[0]));
  test_assert_all(self.t, self.out[0], WORDS, 5 * 32);
  for (int i = 1; i < readers; i++) assert_ok(rondo_stream_synchronize(self.streams[i]));
  assert_ok(rondo_free(self.devices[1], dptr));
  assert_ok(rondo_free(self.devices[1], closed));
  rondo_exec_destroy(exec);
  leave_party(&self);
}

static void *capture_malloc(party *self, const char *name, rondo_pool *pool, rondo_exec **out_exec) {
  void *dptr = NULL;
  const rondo_malloc_options options = {RONDO_MALLOC_OPTIONS_INIT, .name = name, .pool = pool};
  assert_ok(rondo_capture_begin(self->streams[0], RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_malloc_async(self->streams[0], BYTES, &options, &dptr));
  rondo_graph *graph = test_capture_end(self->streams[0]);
  assert_ok(rondo_instantiate(graph, NULL, out_exec));
  assert_ok(rondo_graph_destroy(graph));
  assert_ok(rondo_exec_launch(*out_exec, self->streams[0]));
  return dptr;
}

/* The guide's program: a capture takes the pool's access as it was at the malloc; later changes do not count. */
TEST(test_gm17_by_capture) {
  party self;
  join_party(&self, t);
  rondo_pool *pool = NULL;
  rondo_exec *execs[3];
  assert_ok(rondo_pool_create(self.devices[0], NULL, &pool));
  void *dptr1 = capture_malloc(&self, "dptr1", pool, &execs[0]);
  assert_ok(rondo_pool_set_access(pool, self.devices[1], true));
  void *dptr2 = capture_malloc(&self, "dptr2", pool, &execs[1]);
  assert_ok(rondo_pool_set_access(pool, self.devices[1], false));
  void *dptr3 = capture_malloc(&self, "dptr3", pool, &execs[2]);
  assert_ok(rondo_stream_synchronize(self.streams[0]));
  assert_no_access(read_on(&self, 1, dptr1));
  assert_message("dptr1");
  assert_ok(read_on(&self, 1, dptr2));
  assert_no_access(read_on(&self, 1, dptr3));
  assert_ok(rondo_stream_synchronize(self.streams[1]));
  void *const all[3] = {dptr1, dptr2, dptr3};
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_free(self.devices[0], all[i]));
    rondo_exec_destroy(execs[i]);
  }
  assert_ok(rondo_pool_destroy(pool));
  leave_party(&self);
}

/* P3: settings apply to existing and to later allocations; the device's own access stays. */
TEST(test_gm17_pools_give_access) {
  party self;
  join_party(&self, t);
  rondo_pool *pool = NULL;
  bool access = true;
  assert_ok(rondo_device_get_default_pool(self.devices[0], &pool));
  void *memory = test_allocate_async(self.streams[0], BYTES);
  assert_ok(rondo_stream_synchronize(self.streams[0]));
  assert_ok(rondo_pool_get_access(pool, self.devices[self.last], &access));
  assert_false(access);
  assert_no_access(read_on(&self, self.last, memory));
  assert_ok(rondo_pool_set_access(pool, self.devices[self.last], true));
  assert_ok(rondo_pool_get_access(pool, self.devices[self.last], &access));
  assert_true(access);
  assert_ok(read_on(&self, self.last, memory));
  assert_ok(rondo_stream_synchronize(self.streams[self.last]));
  assert_ok(rondo_pool_set_access(pool, self.devices[self.last], false));
  assert_no_access(read_on(&self, self.last, memory));
  assert_ok(rondo_pool_get_access(pool, self.devices[0], &access));
  assert_true(access);
  assert_ok(rondo_pool_set_access(pool, self.devices[0], true));
  assert_invalid(rondo_pool_set_access(pool, self.devices[0], false), RONDO_REASON_NO_ACCESS);
  assert_invalid(rondo_pool_set_access(pool, NULL, true), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_pool_set_access(NULL, self.devices[1], true), RONDO_REASON_NULL_ARGUMENT);
  assert_ok(rondo_free_async(self.streams[0], memory));
  leave_party(&self);
}

TEST(test_gm17_memory_at_once_is_the_devices_own) {
  party self;
  join_party(&self, t);
  assert_no_access(read_on(&self, 0, self.out[self.last]));
  assert_message("out");
  assert_ok(rondo_memory_set_access(self.devices[self.last], self.devices[0], true));
  assert_ok(read_on(&self, 0, self.out[self.last]));
  assert_ok(rondo_stream_synchronize(self.streams[0]));
  if (self.last > 1) assert_no_access(read_on(&self, 1, self.out[self.last]));
  assert_ok(rondo_memory_set_access(self.devices[self.last], self.devices[0], false));
  assert_no_access(read_on(&self, 0, self.out[self.last]));
  void *host = NULL; /* host memory belongs to no device alone */
  assert_ok(rondo_host_malloc(self.devices[self.last], BYTES, &host));
  memset(host, 0, BYTES);
  assert_ok(rondo_copy_async(self.streams[0], self.out[0], host, BYTES));
  assert_ok(rondo_stream_synchronize(self.streams[0]));
  assert_ok(rondo_host_free(self.devices[self.last], host));
  leave_party(&self);
}

/* Graphs are refused when they are instantiated or updated, also without verification. */
TEST(test_gm17_graphs_need_access) {
  party self;
  join_party(&self, t);
  const rondo_instantiate_options unverified = {RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true};
  rondo_graph *graph = NULL;
  rondo_exec *exec = NULL;
  rondo_node node = {0};
  void *closed = NULL; /* of a pool, to which settings of immediate memory do not apply */
  assert_ok(rondo_malloc_async(self.streams[1], BYTES, NULL, &closed));
  assert_ok(rondo_graph_create(self.devices[0], NULL, &graph));
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, self.kernels[0], (rondo_grid){WORDS, 0, 0},
                                   RONDO_ARGS(&self.out[1], &self.out[1], &self.out[0]), &node));
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_INVALID_GRAPH, RONDO_REASON_NO_ACCESS);
  assert_message("which gives it no access: add the device to rondo_alloc_node.peers");
  assert_int_equal(rondo_last_error()->node, rondo_node_number(node));
  assert_error(rondo_instantiate(graph, &unverified, &exec), RONDO_INVALID_GRAPH, RONDO_REASON_NO_ACCESS);
  assert_ok(rondo_memory_set_access(self.devices[1], self.devices[0], true));
  assert_ok(rondo_instantiate(graph, NULL, &exec));
  assert_ok(rondo_exec_launch(exec, self.streams[0]));
  rondo_node_params params;
  assert_ok(rondo_graph_get_params(graph, node, &params));
  params.as.kernel.args = (const void *const[]){&closed, &closed, &self.out[0]};
  assert_error(rondo_exec_set_params(exec, node, &params), RONDO_INVALID_GRAPH, RONDO_REASON_NO_ACCESS);
  assert_ok(rondo_graph_set_params(graph, node, &params));
  rondo_update_result result = {.struct_size = sizeof result};
  assert_fails(rondo_exec_update(exec, graph, &result), RONDO_UPDATE_REFUSED);
  assert_ok(rondo_exec_launch(exec, self.streams[0]));
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_destroy(graph));
  assert_ok(rondo_free_async(self.streams[1], closed));
  leave_party(&self);
}

/* Allocations that share an address have one mapping, with the accesses of both. */
TEST(test_gm17_a_shared_address_has_both_accesses) {
  party self;
  join_party(&self, t);
  if (test_is_guarded(self.t)) {
    leave_party(&self);
    skip();
  }
  const int peers = self.count < 3 ? 1 : 2; /* 1 and 2 */
  rondo_graph *graph = NULL;
  rondo_node node = {0};
  void *addresses[2];
  uint64_t kept;
  assert_ok(rondo_graph_create(self.devices[0], NULL, &graph));
  for (int i = 0; i < 2; i++) {
    addresses[i] = add_alloc(graph, "alias", i < peers ? rondo_device_peer_bit(self.devices[1 + i]) : 0, &node, &kept);
    if (i == 0) assert_ok(rondo_graph_add_free(graph, &node, 1, addresses[0], &node));
  }
  assert_ptr_equal(addresses[0], addresses[1]);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, self.streams[0]));
  assert_ok(rondo_stream_synchronize(self.streams[0]));
  for (int i = 1; i <= peers; i++) {
    assert_ok(read_on(&self, i, addresses[1]));
    assert_ok(rondo_stream_synchronize(self.streams[i]));
  }
  if (self.last > peers) assert_no_access(read_on(&self, self.last, addresses[1]));
  assert_ok(rondo_free(self.devices[0], addresses[1]));
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_destroy(graph));
  leave_party(&self);
}

/* M5: a list names devices that there are; a dump keeps it. */
TEST(test_gm17_lists_of_peers) {
  rondo_graph *graph = test_graph(t), *read = NULL;
  rondo_node_params params = {.kind = RONDO_NODE_ALLOC, .as.alloc = {.bytes = BYTES, .peers = UINT64_C(1) << 40}};
  rondo_node node = {0};
  assert_invalid(rondo_graph_add(graph, NULL, 0, &params, &node), RONDO_REASON_UNKNOWN_DEVICE);
  assert_message("leave it out");
  params.as.alloc.peers = 1 << 1 | UINT64_C(1) << (device_count - 1);
  assert_ok(rondo_graph_add(graph, NULL, 0, &params, &node));
  char *text = NULL;
  assert_ok(rondo_graph_to_json(graph, false, &text));
  assert_non_null(strstr(text, device_count < DEVICES ? "\"peers\":[1" : "\"peers\":[1,3]"));
  const rondo_status status = rondo_graph_from_json(text, strlen(text), &read);
  if (status != RONDO_UNSUPPORTED) {
    assert_ok(status);
    size_t count = 0;
    assert_ok(rondo_graph_diff(graph, read, true, NULL, &count));
    assert_int_equal(count, 0);
    test_graph_destroy(read);
  }
  rondo_text_free(text);
}

static bool can_access(rondo_device *first, int number) {
  char name[32];
  rondo_device *peer = NULL;
  bool can = false;
  snprintf(name, sizeof name, "cuda:%d", number);
  if (rondo_device_open(name, NULL, &peer) != RONDO_OK) return false;
  can = rondo_device_can_access_peer(first, peer, &can) == RONDO_OK && can;
  return rondo_device_close(peer) == RONDO_OK && can;
}

/* Counted from 0, the devices that the first can access; at most DEVICES. */
static int count_gpus(void) {
  rondo_device *first = NULL;
  int count = 1;
  if (rondo_device_open("cuda:0", NULL, &first) != RONDO_OK) return 0;
  while (count < DEVICES && can_access(first, count)) count++;
  return rondo_device_close(first) == RONDO_OK ? count : 0;
}

int main(void) {
  if (test_device_is("cuda")) device_count = count_gpus();
  if (device_count < 2) return 77;
  return test_run_registered();
}

/* SPDX-License-Identifier: MIT
 * See test_ranks.h.
 */
#include "support/test_ranks.h"

#include <stdio.h>
#include <string.h>

void test_rank_device(uint32_t rank, char *name, size_t bytes) {
  const char *driver = "cpu";
  if (test_device_is("cpu:check")) driver = "cpu:check";
  if (test_device_is("cuda")) driver = "cuda";
  (void)snprintf(name, bytes, "%s:%u", driver, rank);
}

uint32_t test_rank_count(uint32_t most) {
  const char *name, *unavailable;
  uint32_t gpus = 0;
  if (!test_device_is("cuda")) return most;
  for (size_t i = 0; rondo_device_enumerate(i, &name, &unavailable) == RONDO_OK; i++)
    gpus += strncmp(name, "cuda:", 5) == 0 && unavailable[0] == '\0';
  return gpus < most ? gpus : most;
}

static bool open_device(test_rank *rank) {
  char name[48];
  test_allocator_init(&rank->fixture.allocator);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1,
                                        .allocator = &rank->fixture.allocator.table};
  test_rank_device(rank->rank, name, sizeof name);
  const rondo_status status = rondo_device_open(name, &options, &rank->fixture.device);
  if (status != RONDO_OK && test_device_is("cuda") && rank->rank > 0) return false;
  assert_int_equal(status, RONDO_OK);
  assert_ok(rondo_stream_create(rank->fixture.device, NULL, &rank->fixture.stream));
  assert_ok(rondo_malloc(rank->fixture.device, TEST_RANK_BYTES, "source", &rank->src));
  assert_ok(rondo_malloc(rank->fixture.device, TEST_RANK_BYTES, "destination", &rank->dst));
  for (int i = 0; test_device_is("cuda") && i < TEST_KERNEL_COUNT; i++)
    (void)test_kernel(&rank->fixture, (test_kernel_id)i);
  return true;
}

static void close_rank(test_rank *rank) {
  test_fixture *t = &rank->fixture;
  assert_ok(rondo_communicator_destroy(rank->communicator));
  for (int i = 0; i < TEST_KERNEL_COUNT; i++) rondo_kernel_destroy(t->kernels[i]);
  if (rank->src != NULL) assert_ok(rondo_free(t->device, rank->src));
  if (rank->dst != NULL) assert_ok(rondo_free(t->device, rank->dst));
  assert_ok(rondo_stream_destroy(t->stream));
  assert_ok(rondo_device_close(t->device));
  assert_true(test_allocator_is_clean(&t->allocator));
}

void test_ranks_open_devices(test_ranks *self) {
  *self = (test_ranks){.count = test_device_is("cuda") ? 2 : TEST_RANKS};
  for (uint32_t i = 0; i < self->count; i++) {
    self->ranks[i].rank = i;
    self->ranks[i].world_size = self->count;
    if (open_device(&self->ranks[i])) continue;
    self->count = i;
    test_ranks_close(self);
    skip();
  }
}

bool test_ranks_are_missing(rondo_status status) {
  const bool is_missing = test_device_is("cuda") && (status == RONDO_UNAVAILABLE || status == RONDO_UNSUPPORTED);
  if (is_missing) print_message("skipped: %s\n", rondo_last_error()->message);
  return is_missing;
}

void test_ranks_open(test_ranks *self, const rondo_communicator_options *options) {
  rondo_device *devices[TEST_RANKS];
  rondo_communicator *communicators[TEST_RANKS];
  test_ranks_open_devices(self);
  for (uint32_t i = 0; i < self->count; i++) devices[i] = self->ranks[i].fixture.device;
  const rondo_status status = rondo_communicator_create_all(devices, self->count, options, communicators);
  if (test_ranks_are_missing(status)) {
    test_ranks_close(self);
    skip();
  }
  if (status != RONDO_OK) fail_msg("%s", rondo_last_error()->message);
  for (uint32_t i = 0; i < self->count; i++) self->ranks[i].communicator = communicators[i];
}

typedef struct on_rank {
  test_rank *rank;
  test_rank_function function;
  void *user;
} on_rank;

static void run_on_rank(void *user) {
  const on_rank *self = user;
  self->rank->status = self->function(self->rank, self->user);
  self->rank->message[0] = '\0';
  if (self->rank->status != RONDO_OK)
    (void)snprintf(self->rank->message, sizeof self->rank->message, "%s", rondo_last_error()->message);
}

void test_ranks_try(test_ranks *self, test_rank_function function, void *user) {
  on_rank works[TEST_RANKS];
  test_thread threads[TEST_RANKS];
  for (uint32_t i = 0; i < self->count; i++) {
    works[i] = (on_rank){&self->ranks[i], function, user};
    threads[i] = (test_thread){run_on_rank, &works[i]};
  }
  test_on_threads(threads, self->count);
}

void test_ranks_do(test_ranks *self, test_rank_function function, void *user) {
  test_ranks_try(self, function, user);
  for (uint32_t i = 0; i < self->count; i++)
    if (self->ranks[i].status != RONDO_OK) fail_msg("rank %u: %s", i, self->ranks[i].message);
}

/* When NCCL destroys communicators, they may wait for each other. */
static rondo_status leave(test_rank *rank, void *user) {
  (void)user;
  rondo_communicator *communicator = rank->communicator;
  rank->communicator = NULL;
  return rondo_communicator_destroy(communicator);
}

void test_ranks_close(test_ranks *self) {
  if (self->count > 0) test_ranks_do(self, leave, NULL);
  for (uint32_t i = 0; i < self->count; i++) close_rank(&self->ranks[i]);
}

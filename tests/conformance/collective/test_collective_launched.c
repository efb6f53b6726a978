/* SPDX-License-Identifier: MIT
 * Processes as torchrun starts them: the test starts itself again as ranks, each with a GPU, which find each other by
 * the environment, and exchange, captured too, in the group and in parts of it (MM-2, MM-3). Without a real driver
 * there is one rank, because the fake NCCL connects no processes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test_ranks.h"

enum { PROCESSES = 2, COUNT = 1000, SKIPPED = 77, TIMEOUT_SECONDS = 100 };

extern char **environ;

/* A rank ---------------------------------------------------------------------------------------------------------- */

typedef struct launched {
  rondo_device *device;
  rondo_stream *stream;
  rondo_communicator *communicator, *alone;
  rondo_communicator_info info;
  void *src, *dst;
} launched;

static int32_t value_of(uint32_t rank, size_t i) { return (int32_t)(rank * 10000 + i); }

static rondo_status open_rank(launched *self) {
  char name[48];
  test_rank_device((uint32_t)atoi(getenv("RANK")), name, sizeof name);
  self->info.struct_size = sizeof self->info;
  TRY(rondo_device_open(name, NULL, &self->device));
  TRY(rondo_stream_create(self->device, NULL, &self->stream));
  TRY(rondo_malloc(self->device, PROCESSES * COUNT * sizeof(int32_t), "source", &self->src));
  TRY(rondo_malloc(self->device, PROCESSES * COUNT * sizeof(int32_t), "destination", &self->dst));
  TRY(rondo_communicator_from_environment(self->device, NULL, &self->communicator));
  TRY(rondo_communicator_get_info(self->communicator, &self->info));
  return rondo_communicator_split(self->communicator, self->info.rank, 0, &self->alone);
}

static rondo_status close_rank(const launched *self) {
  TRY(rondo_communicator_destroy(self->alone));
  TRY(rondo_communicator_destroy(self->communicator));
  TRY(rondo_free(self->device, self->src));
  TRY(rondo_free(self->device, self->dst));
  TRY(rondo_stream_destroy(self->stream));
  return rondo_device_close(self->device);
}

/* From the rank before to the rank after; then what arrived, alone, back to the source. */
static rondo_status exchange(launched *self) {
  const uint32_t ranks = self->info.world_size, rank = self->info.rank;
  TRY(rondo_send_receive(self->communicator, self->stream, self->src, (rank + 1) % ranks, self->dst,
                         (rank + ranks - 1) % ranks, COUNT, RONDO_I32));
  TRY(rondo_all_to_all(self->alone, self->stream, self->dst, self->src, COUNT, RONDO_I32));
  return rondo_all_reduce(self->communicator, self->stream, self->src, self->src, COUNT, RONDO_I32, RONDO_REDUCE_MAX);
}

static rondo_status exchange_captured(launched *self) {
  rondo_graph *graph;
  rondo_exec *exec;
  TRY(rondo_capture_begin(self->stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(exchange(self));
  TRY(rondo_capture_end(self->stream, &graph));
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(rondo_graph_destroy(graph));
  rondo_status status = rondo_exec_launch(exec, self->stream);
  if (status == RONDO_OK) status = rondo_stream_synchronize(self->stream);
  rondo_exec_destroy(exec);
  return status;
}

static rondo_status run_once(launched *self, bool is_captured) {
  static int32_t words[COUNT];
  const uint32_t ranks = self->info.world_size;
  for (size_t i = 0; i < COUNT; i++) words[i] = value_of(self->info.rank, i);
  TRY(rondo_copy_async(self->stream, self->src, words, sizeof words));
  TRY(rondo_stream_synchronize(self->stream));
  TRY(is_captured ? exchange_captured(self) : exchange(self));
  TRY(rondo_copy_async(self->stream, words, self->src, sizeof words));
  TRY(rondo_stream_synchronize(self->stream));
  for (size_t i = 0; i < COUNT; i++)
    if (words[i] != value_of(ranks - 1, i)) return RONDO_INVALID_DATA;
  return RONDO_OK;
}

/* Ends after a while if another rank is missing. */
static int run_rank(void) {
  launched self = {0};
  (void)alarm(TIMEOUT_SECONDS);
  rondo_status status = open_rank(&self);
  if (test_ranks_are_missing(status)) return SKIPPED;
  for (int i = 0; i < 4 && status == RONDO_OK; i++) status = run_once(&self, i % 2 == 1);
  if (status == RONDO_OK) status = close_rank(&self);
  if (status == RONDO_OK) return EXIT_SUCCESS;
  print_error("rank %s: status %d: %s\n", getenv("RANK"), (int)status, rondo_last_error()->message);
  return EXIT_FAILURE;
}

/* The launcher ---------------------------------------------------------------------------------------------------- */

static void set(const char *name, const char *value) { assert_int_equal(setenv(name, value, 1), 0); }

static void set_number(const char *name, unsigned number) {
  char text[16];
  (void)snprintf(text, sizeof text, "%u", number);
  set(name, text);
}

/* One that is free now. */
static unsigned find_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t bytes = sizeof address;
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  assert_true(file >= 0);
  assert_int_equal(bind(file, (const struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(getsockname(file, (struct sockaddr *)&address, &bytes), 0);
  close(file);
  return ntohs(address.sin_port);
}

static bool has_two_gpus(void) {
  rondo_device *device;
  char name[48];
  test_rank_device(PROCESSES - 1, name, sizeof name);
  if (rondo_device_open(name, NULL, &device) != RONDO_OK) return false;
  assert_ok(rondo_device_close(device));
  return true;
}

static pid_t start(unsigned rank) {
  char program[] = "/proc/self/exe", *arguments[] = {program, NULL};
  pid_t child;
  set_number("RANK", rank);
  assert_int_equal(posix_spawn(&child, program, NULL, NULL, arguments, environ), 0);
  return child;
}

static int await(pid_t child) {
  int state;
  assert_int_equal(waitpid(child, &state, 0), child);
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

UNIT_TEST(test_mm2_processes_find_each_other_by_the_environment) {
  const char *const library = getenv("RONDO_CUDA_LIBRARY");
  const unsigned ranks = library == NULL || *library == '\0' ? PROCESSES : 1;
  pid_t children[PROCESSES];
  if (!test_device_is("cuda") || !has_two_gpus()) skip();
  set_number("WORLD_SIZE", ranks);
  set("MASTER_ADDR", "127.0.0.1");
  set_number("MASTER_PORT", find_port());
  for (unsigned rank = 0; rank < ranks; rank++) children[rank] = start(rank);
  assert_int_equal(unsetenv("RANK"), 0);
  for (unsigned rank = 0; rank < ranks; rank++) {
    const int code = await(children[rank]);
    if (code == SKIPPED) skip();
    assert_int_equal(code, EXIT_SUCCESS);
  }
}

int main(void) { return getenv("RANK") != NULL ? run_rank() : test_run_registered(); }

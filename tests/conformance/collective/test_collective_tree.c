/* SPDX-License-Identifier: MIT
 * Collectives in work that is recorded automatically: a tree on each device with an all-reduce in a function, and a
 * recording on each (TR-16, RC-7). A separate thread drives each rank.
 */
#include <rondo/recording.h>
#include <rondo/tree.h>
#include <string.h>

#include "support/test_ranks.h"

enum { WORDS = 5000, CALLS = 8 };

/* y = the sum of all ranks' 3 x + 1 */
static rondo_status body(rondo_call *call, void *user) {
  test_rank *rank = user;
  rondo_stream *stream = rondo_call_stream(call);
  const uint32_t factor = 3, term = 1;
  void *x = rondo_call_input(call, 0), *y;
  TRY(rondo_call_output(call, 0, WORDS * 4, NULL, &y));
  TRY(rondo_copy_async(stream, y, x, WORDS * 4));
  TRY(rondo_launch(stream, rank->fixture.kernels[TEST_KERNEL_AFFINE], (rondo_grid){.x = WORDS},
                   RONDO_ARGS(&factor, &term, &y)));
  return rondo_all_reduce(rank->communicator, stream, y, y, WORDS, RONDO_I32, RONDO_REDUCE_SUM);
}

static uint32_t input_of(uint32_t rank, int call) { return 10 * rank + (uint32_t)call; }

static uint32_t sum_of(uint32_t ranks, int call) {
  uint32_t sum = 0;
  for (uint32_t rank = 0; rank < ranks; rank++) sum += 3 * input_of(rank, call) + 1;
  return sum;
}

static rondo_status call_once(test_rank *rank, rondo_function *function, int number) {
  static const char *const what[] = {"first", "last"};
  rondo_stream *stream = rank->fixture.stream;
  void *const x = number % 2 == 0 ? rank->src : rank->dst; /* it moves */
  uint32_t got[2];
  rondo_buffer *y;
  void *address;
  const rondo_fill fill = {.dst = x, .value = input_of(rank->rank, number), .element_bytes = 4, .width = WORDS};
  TRY(rondo_fill_async(stream, &fill));
  TRY(rondo_function_call(function, stream, &(rondo_input){.address = x, .bytes = WORDS * 4}, 1, &y, 1));
  TRY(rondo_buffer_address(y, &address));
  TRY(rondo_copy_async(stream, &got[0], address, 4));
  TRY(rondo_copy_async(stream, &got[1], (uint32_t *)address + WORDS - 1, 4));
  TRY(rondo_stream_synchronize(stream));
  rondo_buffer_release(y);
  for (int i = 0; i < 2; i++) {
    if (got[i] == sum_of(rank->world_size, number)) continue;
    print_error("rank %u, call %d: the %s word is %u, expected %u\n", rank->rank, number, what[i], got[i],
                sum_of(rank->world_size, number));
    return RONDO_INVALID_DATA;
  }
  return RONDO_OK;
}

static rondo_status call_in_a_tree(test_rank *rank, void *user) {
  rondo_tree *tree;
  rondo_function *function;
  rondo_tree_info *info = &((rondo_tree_info *)user)[rank->rank];
  const uint32_t inputs[] = {RONDO_INPUT_MOVING};
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT,  .name = "reduce", .body = body, .user = rank, .inputs = inputs, .input_count = 1,
      .record = RONDO_RECORD_ALWAYS};
  TRY(rondo_tree_create(rank->fixture.device, NULL, &tree));
  TRY(rondo_function_create(tree, &options, &function));
  rondo_status status = RONDO_OK;
  for (int i = 0; i < CALLS && status == RONDO_OK; i++) {
    status = rondo_tree_mark_step(tree);
    if (status == RONDO_OK) status = call_once(rank, function, i);
  }
  info->struct_size = sizeof *info;
  if (status == RONDO_OK) status = rondo_tree_get_info(tree, info);
  TRY(status);
  return rondo_tree_destroy(tree);
}

static void make_kernels(test_ranks *self) {
  for (uint32_t i = 0; i < self->count; i++) (void)test_kernel(&self->ranks[i].fixture, TEST_KERNEL_AFFINE);
}

DEVICE_TEST(test_tr16_trees_reduce_among_devices) {
  test_ranks self;
  rondo_tree_info infos[TEST_RANKS] = {{0}};
  test_ranks_open(&self, NULL);
  make_kernels(&self);
  test_ranks_do(&self, call_in_a_tree, infos);
  for (uint32_t i = 0; i < self.count; i++) {
    assert_int_equal(infos[i].calls, CALLS);
    assert_int_equal(infos[i].recorded, 1);
    assert_int_equal(infos[i].replayed, CALLS - 2);
  }
  test_ranks_close(&self);
}

static rondo_status replay_a_recording(test_rank *rank, void *user) {
  rondo_stream *stream = rank->fixture.stream;
  rondo_recording *recording;
  const uint32_t factor = 3, term = 1;
  (void)user;
  const rondo_fill ones = {.dst = rank->src, .value = 1, .element_bytes = 4, .width = WORDS};
  TRY(rondo_fill_async(stream, &ones));
  TRY(rondo_recording_create(rank->fixture.device, NULL, &recording));
  TRY(rondo_recording_capture_begin(recording, stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_launch(stream, rank->fixture.kernels[TEST_KERNEL_AFFINE], (rondo_grid){.x = WORDS},
                   RONDO_ARGS(&factor, &term, &rank->src)));
  TRY(rondo_all_reduce(rank->communicator, stream, rank->src, rank->src, WORDS, RONDO_I32, RONDO_REDUCE_MAX));
  TRY(rondo_recording_capture_end(recording, stream));
  for (int i = 0; i < 3; i++) TRY(rondo_recording_replay(recording, stream));
  TRY(rondo_stream_synchronize(stream));
  return rondo_recording_destroy(recording);
}

DEVICE_TEST(test_rc7_recordings_replay_on_each_device) {
  test_ranks self;
  test_ranks_open(&self, NULL);
  make_kernels(&self);
  test_ranks_do(&self, replay_a_recording, NULL);
  for (uint32_t i = 0; i < self.count; i++)
    assert_int_equal(test_word(&self.ranks[i].fixture, (uint32_t *)self.ranks[i].src + WORDS - 1), 40);
  test_ranks_close(&self);
}

/* SPDX-License-Identifier: MIT
 * The driver calls of a batch, on the fake CUDA driver: one launch of a kernel that copies all rows of all inputs and
 * pads them, and one launch of the graph, for any addresses and any number of requests that fit into one launch.
 * Without that kernel, a copy for each range and a fill for each input's padding (SE-5).
 */
#include <string.h>

#include "exec/stream/copy_list.h"
#include "fake_cuda/fake_fixture.h"
#include "support/test_session.h"
#include "vendor/cuda_driver.h"

enum { MOST = 48, INPUTS = 2, GRAPH_ROWS = 64 };

static test_request requests[MOST];
static rondo_ticket tickets[MOST];

typedef struct asked {
  uint64_t kernels, copies, fills, graphs;
} asked;

static asked count_calls(void) {
  return (asked){.kernels = fake->calls("cuLaunchKernel"),
                 .copies = fake->calls("cuMemcpyAsync") + fake->calls("cuMemcpy3DAsync"),
                 .fills = fake->calls("cuMemsetD8Async"),
                 .graphs = fake->calls("cuGraphLaunch")};
}

static rondo_session *open_session(const test_fixture *t) {
  static const size_t size = GRAPH_ROWS;
  static const double us = 10;
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 1});
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  test_scorer_capture(session, "scorer", &size, 1);
  assert_ok(rondo_session_set_times(session, "scorer", &us, NULL, 1, 1));
  return session;
}

static void submit(test_fixture *t, rondo_session *session, size_t index, size_t rows, bool is_direct) {
  test_request *r = &requests[index];
  test_request_fill(r, rows, 10 + index);
  r->request.mode = RONDO_RUN_RECORDED;
  if (is_direct) {
    test_request_move_input(t->device, r, 0, rows * TEST_FEATURES * sizeof(float));
    test_request_move_input(t->device, r, 1, rows * sizeof(int32_t));
  }
  assert_ok(rondo_session_submit(session, "scorer", &r->request, &tickets[index]));
}

/* Serves so many requests of so many rows at once. Returns the driver calls of the worker. */
static asked serve(test_fixture *t, rondo_session *session, size_t count, size_t rows, bool is_direct) {
  rondo_stream *stream = NULL;
  assert_ok(rondo_session_acquire_stream(session, "scorer", 0, &stream));
  for (size_t i = 0; i < count; i++) submit(t, session, i, rows, is_direct);
  const asked before = count_calls();
  assert_ok(rondo_session_release_stream(session, 0));
  for (size_t i = 0; i < count; i++) {
    rondo_answer answer = {.struct_size = sizeof answer};
    assert_ok(rondo_ticket_wait(tickets[i], &answer));
    assert_true(test_request_is_right(&requests[i]));
    assert_int_equal(answer.batch_requests, count);
    assert_int_equal(answer.padding_rows, GRAPH_ROWS - count * rows);
  }
  const asked after = count_calls();
  for (size_t i = 0; is_direct && i < count * INPUTS; i++)
    assert_ok(rondo_host_free(t->device, (void *)(uintptr_t)requests[i / INPUTS].inputs[i % INPUTS]));
  return (asked){.kernels = after.kernels - before.kernels,
                 .copies = after.copies - before.copies,
                 .fills = after.fills - before.fills,
                 .graphs = after.graphs - before.graphs};
}

#define assert_asked(made, ...) assert_memory_equal(&(made), (&(asked){__VA_ARGS__}), sizeof(asked))

FAKE_TEST(test_se5_one_launch_feeds_a_batch) {
  rondo_session *session = open_session(t);
  for (int is_direct = 0; is_direct < 2; is_direct++) {
    const size_t counts[] = {1, 3, 13};
    for (size_t i = 0; i < 3; i++) {
      const asked made = serve(t, session, counts[i], 4, is_direct > 0);
      assert_asked(made, .kernels = 1, .graphs = 1);
    }
  }
  const asked whole = serve(t, session, 4, GRAPH_ROWS / 4, true); /* without padding */
  assert_asked(whole, .kernels = 1, .graphs = 1);
}

FAKE_TEST(test_se5_more_than_fits_into_one_launch) {
  rondo_session *session = open_session(t);
  assert_in_range(MOST * INPUTS + INPUTS, RONDO_MOST_QUEUED_RANGES + 1, 2 * RONDO_MOST_QUEUED_RANGES);
  const asked made = serve(t, session, MOST, 1, true);
  assert_asked(made, .kernels = 2, .graphs = 1);
}

/* Uses a driver that does not compile the copy kernel. */
static int set_up_without_kernel(void **state) {
  fake = fake_cuda_get();
  fake->reset();
  fake->fail_call("cuModuleLoadDataEx", 3, CU_INVALID_PTX,
                  false); /* the first two modules are the fill and the copies of graphs */
  const int code = test_setup(state);
  fake->fail_call(NULL, 0, CU_OK, false);
  return code;
}

/* The copies are enqueued one by one. */
TEST_DEFINE(test_se5_without_the_kernel_copies_are_enqueued, test_fixture *t, set_up_without_kernel, fake_teardown) {
  rondo_session *session = open_session(t);
  asked made = serve(t, session, 3, 4, true);
  assert_asked(made, .copies = 3 * INPUTS, .fills = INPUTS, .graphs = 1);
  made = serve(t, session, 3, 4, false);
  assert_asked(made, .copies = INPUTS, .graphs = 1);
  assert_ok(rondo_session_destroy(session));
}

/* Copies and fills that are too large for the kernel, or too large byte by byte, are enqueued separately. */
FAKE_TEST(test_se5_large_copies_are_enqueued) {
  enum { LARGE = 2 << 20, LONG = 16 << 10 };
  static rondo_copy_list list;
  void *to, *from;
  assert_ok(rondo_malloc(t->device, LARGE + 1, NULL, &to));
  assert_ok(rondo_host_malloc(t->device, LARGE + 1, &from));
  memset(from, 1, LARGE + 1);
  for (size_t more = 0; more < 2; more++) {
    const asked before = count_calls();
    rondo_copy_list_begin(&list, t->stream, LARGE + more);
    assert_ok(rondo_copy_list_add(&list, to, (char *)from + 1, LONG + more));
    assert_ok(rondo_copy_list_add(&list, (char *)to + LONG + 1, (char *)from + LONG + 1, LARGE - LONG));
    assert_ok(rondo_copy_list_end(&list));
    const asked after = count_calls();
    assert_int_equal(after.kernels - before.kernels, more == 0);
    assert_int_equal(after.copies - before.copies, more * 2);
    rondo_copy_list_begin(&list, t->stream, LARGE);
    assert_ok(
        rondo_copy_list_add(&list, to, (char *)from + 1, LONG + more)); /* enqueued separately if it is one byte more */
    assert_ok(rondo_copy_list_end(&list));
    assert_int_equal(count_calls().copies - after.copies, more);
  }
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_free(t->device, to));
  assert_ok(rondo_host_free(t->device, from));
}

/* A refused launch is an error of the batch. The next batch succeeds. */
FAKE_TEST(test_se5_a_failed_launch_is_reported) {
  rondo_session *session = open_session(t);
  rondo_answer answer = {.struct_size = sizeof answer};
  test_request_fill(&requests[0], 4, 1);
  fake->fail_call("cuLaunchKernel", 1, CU_OUT_OF_MEMORY, false);
  assert_status(rondo_session_run(session, "scorer", &requests[0].request, &answer), RONDO_OUT_OF_MEMORY);
  assert_message("rondo_queued_copies");
  fake->fail_call(NULL, 0, CU_OK, false);
  const asked made = serve(t, session, 3, 4, true);
  assert_asked(made, .kernels = 1, .graphs = 1);
}

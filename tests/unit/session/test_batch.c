/* SPDX-License-Identifier: MIT
 * Which waiting requests form a batch (SE-8): the candidates, and other requests that fit into the padding, anywhere in
 * the queue. A request that is skipped is the first of the next batch.
 */
#include <string.h>

#include "base/clock.h"
#include "session/serve/batch.h"
#include "session/serve/request_queue.h"
#include "session/session_internal.h"
#include "session/sizing/dispatch_table.h"
#include "support/rondo_test.h"
#include "support/test_allocator.h"

enum { SMALL = 64, LARGE = 128, MOST = 96 };
#define SECOND UINT64_C(1000000000)

/* A session with one worker without a thread, and the requests in its queue. */
typedef struct queue {
  test_allocator allocator;
  rondo_session session;
  rondo_session_model model, other;
  rondo_dispatch_table *table;
  rondo_slot slots[MOST];
  size_t count;
  uint64_t now;
} queue;

static queue q;

static int set_up(void **state) {
  const rondo_dispatch_size sizes[] = {{.rows = SMALL, .run_us = 10, .share_us = 10},
                                       {.rows = LARGE, .run_us = 20, .share_us = 20}};
  const rondo_dispatch_input input = {.sizes = sizes, .count = 2};
  (void)state;
  memset(&q, 0, sizeof q);
  test_allocator_init(&q.allocator);
  assert_ok(rondo_dispatch_table_make(&q.allocator.table, &input, &q.table));
  q.session.options.streams = 1;
  q.session.options.max_batch = RONDO_SESSION_MAX_BATCH;
  q.session.next_deadline_ns = UINT64_MAX;
  q.session.workers[0].session = &q.session;
  q.model.session = q.other.session = &q.session;
  q.model.head = &q.model;
  q.other.head = &q.other;
  q.model.next = &q.other;
  q.session.models = &q.model;
  q.model.idle = q.model.loaded = (rondo_dispatch_tables){q.table, q.table};
  q.other.idle = q.other.loaded = q.model.idle;
  q.now = rondo_clock_ns();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  rondo_dispatch_table_free(q.table);
  assert_int_equal(atomic_load(&q.allocator.live) + atomic_load(&q.allocator.faults), 0);
  return 0;
}

static rondo_slot *append_as(rondo_slot request) {
  rondo_slot *slot = &q.slots[q.count++];
  *slot = request;
  slot->session = &q.session;
  slot->state = RONDO_SLOT_QUEUED;
  rondo_queue_append(&q.session, slot);
  return slot;
}

static rondo_slot *append_to(rondo_session_model *model, size_t rows) {
  return append_as((rondo_slot){.model = model, .rows = rows, .accepted_ns = q.now, .deadline_ns = UINT64_MAX});
}

static rondo_slot *append_recorded(size_t rows) {
  return append_as((rondo_slot){
      .model = &q.model, .mode = RONDO_RUN_RECORDED, .rows = rows, .accepted_ns = q.now, .deadline_ns = UINT64_MAX});
}

static rondo_slot *append(size_t rows) { return append_to(&q.model, rows); }

/* Forms a batch and checks that it consists of these requests. */
static void assert_forms(rondo_slot *const *requests, size_t count) {
  const rondo_batch *batch = &q.session.workers[0].batch;
  uint64_t wait_ns;
  assert_true(rondo_batch_form(&q.session, &q.session.workers[0], &wait_ns));
  assert_int_equal(batch->count, count);
  for (size_t i = 0, row = 0; i < count; row += requests[i]->rows, i++) {
    assert_ptr_equal(batch->requests[i], requests[i]);
    assert_int_equal(batch->first[i], row);
    assert_int_equal(requests[i]->state, RONDO_SLOT_RUNNING);
  }
}

#define assert_batch(...) \
  assert_forms((rondo_slot *const[]){__VA_ARGS__}, sizeof((rondo_slot *const[]){__VA_ARGS__}) / sizeof(rondo_slot *))

#define BATCH_TEST(name) TEST_DEFINE(name, void *no_fixture, set_up, tear_down)

/* Both graphs cost the same for each row, so the first request runs alone. The second one would fill the large graph
 * and leave no padding for the third one, which fits into the small graph. */
BATCH_TEST(test_se8_a_request_after_one_that_is_too_large_joins) {
  rondo_slot *first = append(62), *large = append(66), *last = append(2), *next = append(62);
  assert_batch(first, last);
  assert_batch(large, next); /* the oldest leads */
  assert_int_equal(q.session.waiting, 0);
  assert_int_equal(q.model.waiting_rows, 0);
}

BATCH_TEST(test_se8_what_has_no_room_stays) {
  rondo_slot *first = append(62), *large = append(66), *three = append(3);
  assert_batch(first);
  assert_ptr_equal(q.model.waiting.head, large);
  assert_batch(large, three);
}

/* A request that waits for others joins a younger one that is ready. */
BATCH_TEST(test_se8_an_older_request_joins) {
  q.session.options.max_delay_us = 60 * 1000000;
  rondo_slot *older = append(2);
  rondo_slot *urgent = append_as((rondo_slot){
      .model = &q.model, .rows = 62, .accepted_ns = q.now - 20 * SECOND, .deadline_ns = q.now + 10 * SECOND});
  assert_batch(urgent, older);
  assert_int_equal(q.session.waiting, 0);
}

BATCH_TEST(test_se8_others_and_what_asks_for_another_way_stay) {
  rondo_slot *first = append(62), *large = append(66), *foreign = append_to(&q.other, 1), *asking = append_recorded(1);
  assert_batch(first);
  assert_batch(large);
  assert_batch(foreign);
  assert_batch(asking);
}

BATCH_TEST(test_se8_a_batch_has_no_more_requests_than_were_asked_for) {
  q.session.options.max_batch = 2;
  rondo_slot *first = append(62), *large = append(66), *second = append(1), *third = append(1);
  assert_batch(first, second);
  assert_batch(large, third);
}

/* In a long queue, the scan stops, and later requests stay. */
BATCH_TEST(test_se8_the_scan_is_bounded) {
  rondo_slot *first = append(62);
  for (size_t i = 0; i < 80; i++) (void)append_recorded(SMALL);
  rondo_slot *far = append(1);
  assert_batch(first);
  assert_ptr_equal(q.model.waiting.tail, far);
  assert_int_equal(q.model.waiting_rows, 80 * SMALL + 1);
}

/* Requests of other models do not affect the scan. */
BATCH_TEST(test_se8_the_scan_ignores_other_models) {
  rondo_slot *first = append(62), *foreign = append_to(&q.other, SMALL);
  for (size_t i = 0; i < 80; i++) (void)append_to(&q.other, SMALL);
  rondo_slot *far = append(2);
  assert_batch(first, far);
  assert_null(q.model.waiting.head);
  assert_null(q.model.waiting.tail);
  assert_ptr_equal(q.other.waiting.head, foreign);
}

/* After any request is removed, the others keep their order. */
BATCH_TEST(test_se8_a_model_s_requests_keep_their_order) {
  rondo_slot *first = append(SMALL), *second = append(SMALL), *foreign = append_to(&q.other, SMALL),
             *third = append(SMALL), *last = append(SMALL);
  rondo_queue_remove(&q.session, second);
  rondo_queue_remove(&q.session, last);
  assert_ptr_equal(q.model.waiting.tail, third);
  rondo_queue_remove(&q.session, first);
  assert_ptr_equal(q.model.waiting.head, third);
  assert_ptr_equal(q.other.waiting.head, foreign);
  assert_int_equal(q.model.waiting_rows, SMALL);
  assert_batch(foreign);
  assert_batch(third);
}

BATCH_TEST(test_se8_what_no_graph_holds_is_not_passed_over) {
  rondo_slot *larger = append(LARGE + SMALL), *small = append(2);
  assert_batch(larger);
  assert_batch(small);
}

/* In the large and the small graph. With more graphs, a request in the padding would wait for all of them. */
BATCH_TEST(test_se8_others_join_the_last_graph_of_a_larger_request) {
  rondo_slot *larger = append(LARGE + 1), *full = append(SMALL), *small = append(2);
  assert_batch(larger, small);
  assert_batch(full);
  rondo_slot *long_one = append(2 * LARGE + 1), *next = append(2);
  assert_batch(long_one);
  assert_batch(next);
}

/* The graphs take a minute, so the wait is not over during the test. */
BATCH_TEST(test_se8_a_few_rows_wait_while_three_workers_run) {
  const rondo_dispatch_size sizes[] = {{.rows = SMALL, .run_us = 6e7, .share_us = 6e7},
                                       {.rows = LARGE, .run_us = 12e7, .share_us = 12e7}};
  const rondo_dispatch_input input = {.sizes = sizes, .count = 2};
  uint64_t wait_ns;
  rondo_dispatch_table_free(q.table);
  assert_ok(rondo_dispatch_table_make(&q.allocator.table, &input, &q.table));
  q.model.idle = q.model.loaded = (rondo_dispatch_tables){q.table, q.table};
  q.session.options.streams = 4;
  for (size_t i = 1; i <= 3; i++) q.session.workers[i].is_running = true;
  rondo_slot *few = append(2);
  assert_false(rondo_batch_form(&q.session, &q.session.workers[0], &wait_ns));
  assert_in_range(wait_ns, 1, 60 * SECOND);
  q.session.workers[3].is_running = false;
  assert_batch(few);
}

/* SPDX-License-Identifier: MIT
 * Which waiting request runs first (SE-8), compared with a linear search through thousands of random requests, of two
 * models, with deadlines, while workers run or not; and that every path through the tree is short.
 */
#include "session/serve/waiting_requests.h"

#include <string.h>

#include "session/serve/batch_delay.h"
#include "session/serve/request_queue.h"
#include "session/session_internal.h"
#include "session/sizing/dispatch_table.h"
#include "support/rondo_test.h"
#include "support/test_allocator.h"

enum { SMALL = 64, LARGE = 128, MANY = 4096, FLAT = 40 };

/* A session with four workers without threads. */
typedef struct queue {
  test_allocator allocator;
  rondo_session session;
  rondo_session_model models[2];
  rondo_dispatch_table *table;
  rondo_slot slots[MANY];
  size_t count;
  uint64_t now, random;
  uint64_t wait_ns; /* of the last search */
} queue;

static queue q;

/* Sets the times of a small graph and of one for `largest` rows. */
static void decide_for(size_t largest) {
  const rondo_dispatch_size sizes[] = {{.rows = SMALL, .run_us = 100, .share_us = 100},
                                       {.rows = largest, .run_us = 150, .share_us = 150, .eager_us = 1000}};
  const rondo_dispatch_input input = {.sizes = sizes, .count = 2};
  rondo_dispatch_table_free(q.table);
  assert_ok(rondo_dispatch_table_make(&q.allocator.table, &input, &q.table));
  for (size_t i = 0; i < 2; i++) q.models[i].idle = q.models[i].loaded = (rondo_dispatch_tables){q.table, q.table};
}

static int set_up(void **state) {
  (void)state;
  memset(&q, 0, sizeof q);
  test_allocator_init(&q.allocator);
  decide_for(LARGE);
  q.session.options = (rondo_session_options){.streams = 4, .max_batch = RONDO_SESSION_MAX_BATCH, .max_delay_us = 80};
  q.session.next_deadline_ns = UINT64_MAX;
  q.session.models = &q.models[0];
  q.models[0].next = &q.models[1];
  q.models[0].session = q.models[1].session = &q.session;
  for (size_t i = 0; i < 2; i++) q.models[i].head = &q.models[i];
  q.now = 1000000;
  q.random = 7;
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  rondo_dispatch_table_free(q.table);
  assert_int_equal(atomic_load(&q.allocator.live) + atomic_load(&q.allocator.faults), 0);
  return 0;
}

/* Appends a random request. One of eight has no deadline. */
static void append_drawn(size_t max_rows) {
  static const rondo_run_mode modes[] = {RONDO_RUN_AUTO, RONDO_RUN_RECORDED, RONDO_RUN_AUTO, RONDO_RUN_RECORDED,
                                         RONDO_RUN_AUTO, RONDO_RUN_RECORDED, RONDO_RUN_AUTO, RONDO_RUN_EAGER};
  rondo_slot *slot = &q.slots[q.count++];
  const bool has_deadline = test_random_below(&q.random, 8) > 0;
  *slot = (rondo_slot){.session = &q.session,
                       .model = &q.models[test_random_below(&q.random, 2)],
                       .state = RONDO_SLOT_QUEUED,
                       .mode = modes[test_random_below(&q.random, 8)],
                       .rows = 1 + test_random_below(&q.random, (uint32_t)max_rows),
                       .accepted_ns = q.now,
                       .deadline_ns = has_deadline ? q.now + 1 + test_random_below(&q.random, 400000) : UINT64_MAX};
  rondo_queue_append(&q.session, slot);
}

/* The rule for one request ----------------------------------------------------------------------------------------- */

static uint64_t delay_of(const rondo_slot *s) {
  if (q.session.is_draining || s->mode == RONDO_RUN_EAGER || s->model->waiting_rows >= q.table->largest_rows) return 0;
  return (uint64_t)q.session.options.max_delay_us * 1000;
}

static uint64_t worker_wait_of(const rondo_slot *s) {
  const size_t largest = q.table->largest_rows;
  const size_t rows = s->model->waiting_rows < largest ? s->model->waiting_rows : largest;
  size_t running = 0;
  for (size_t i = 0; i < q.session.options.streams; i++) running += q.session.workers[i].is_running;
  if (s->mode == RONDO_RUN_EAGER || s->rows > largest || running < 3) return 0;
  if ((double)q.table->entries[rows].us / (double)rows <= q.table->least_row_us * 1.5) return 0;
  return (uint64_t)((double)q.table->entries[s->rows].us * 1e3);
}

static uint64_t wait_of(const rondo_slot *s) {
  const uint64_t delay = delay_of(s), worker_wait = worker_wait_of(s), half = (s->deadline_ns - s->accepted_ns) / 2;
  const uint64_t wanted = delay > worker_wait ? delay : worker_wait, most = wanted < half ? wanted : half;
  if (q.session.options.max_batch == 1) return 0;
  return q.now - s->accepted_ns >= most ? 0 : most - (q.now - s->accepted_ns);
}

/* The oldest request that is ready; if there is none, the time until one is. */
static rondo_slot *walk(uint64_t *out_wait_ns) {
  *out_wait_ns = UINT64_MAX;
  for (size_t i = 0; i < q.count; i++) {
    if (q.slots[i].state != RONDO_SLOT_QUEUED) continue;
    const uint64_t wait = wait_of(&q.slots[i]);
    if (wait == 0) return &q.slots[i];
    if (wait < *out_wait_ns) *out_wait_ns = wait;
  }
  return NULL;
}

static rondo_slot *assert_first_is_right(void) {
  uint64_t expected_ns;
  rondo_slot *const expected = walk(&expected_ns), *const first =
                                                       rondo_batch_delay_find_ready(&q.session, q.now, &q.wait_ns);
  assert_ptr_equal(first, expected);
  if (first == NULL) assert_int_equal(q.wait_ns, expected_ns);
  return first;
}

static void take(rondo_slot *slot) {
  slot->state = RONDO_SLOT_RUNNING;
  rondo_queue_remove(&q.session, slot);
}

/* Removes a random request. */
static void take_drawn(void) {
  for (size_t scanned = 0, i = test_random_below(&q.random, (uint32_t)q.count); scanned < q.count; scanned++)
    if (q.slots[(i + scanned) % q.count].state == RONDO_SLOT_QUEUED) {
      take(&q.slots[(i + scanned) % q.count]);
      return;
    }
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

#define WAITING_TEST(name) TEST_DEFINE(name, void *no_fixture, set_up, tear_down)

/* Only a few requests wait at a time, so that delays matter, and each request changes which times apply. */
WAITING_TEST(test_se8_the_oldest_ready_request_runs_first) {
  size_t not_ready = 0, younger = 0;
  while (q.count < MANY) {
    if (test_random_below(&q.random, 3) > 0) append_drawn(SMALL / 4);
    q.session.workers[test_random_below(&q.random, 4)].is_running = test_random_below(&q.random, 4) > 0;
    q.now += test_random_below(&q.random, 20000);
    rondo_slot *first = assert_first_is_right();
    not_ready += first == NULL && q.session.waiting > 0;
    younger += first != NULL && first->previous != NULL;
    if (first != NULL && test_random_below(&q.random, 4) > 0) take(first);
    if (q.session.waiting > 12) take_drawn();
  }
  assert_true(not_ready > 100 && younger > 100);
}

WAITING_TEST(test_se8_an_option_or_the_end_makes_all_ready) {
  for (size_t i = 0; i < 20; i++) append_drawn(1);
  q.session.is_draining = true;
  assert_ptr_equal(assert_first_is_right(), &q.slots[0]);
  q.session.is_draining = false;
  q.session.options.max_batch = 1;
  for (size_t i = 0; i < 3; i++) q.session.workers[i].is_running = true;
  assert_ptr_equal(assert_first_is_right(), &q.slots[0]);
}

/* The height of the tree. */
static size_t height(void) {
  size_t longest = 0;
  for (size_t i = 0; i < q.count; i++) {
    size_t steps = 0;
    if (q.slots[i].state != RONDO_SLOT_QUEUED) continue;
    for (const rondo_waiting_node *at = &q.slots[i].waiting; at != NULL; at = at->parent) steps++;
    if (steps > longest) longest = steps;
  }
  return longest;
}

/* Each call follows one path between the root and a leaf. Thousands of requests of one row do not fill a graph, and
 * those that are ready because of their deadlines are anywhere among them. */
WAITING_TEST(test_se8_the_tree_of_thousands_of_requests_is_low) {
  decide_for(MANY);
  q.session.options.max_delay_us = 1000000;
  for (size_t i = 0; i < MANY / 2; i++) append_drawn(1);
  assert_in_range(height(), 1, FLAT);
  (void)assert_first_is_right();
  while (q.session.waiting > MANY / 8) take_drawn();
  assert_in_range(height(), 1, FLAT);
  while (q.count < MANY) append_drawn(1);
  assert_in_range(height(), 1, FLAT);
  while (q.session.waiting > 0) {
    rondo_slot *first = assert_first_is_right();
    if (first != NULL) take(first);
    if (first == NULL) q.now += q.wait_ns;
  }
}

/* Exactly the expired requests are removed, and the next deadline is the minimum of the others. */
WAITING_TEST(test_se8_expired_requests_are_removed) {
  size_t late = 0;
  for (size_t i = 0; i < 300; i++) append_drawn(1);
  q.session.unanswered = (uint32_t)q.count;
  q.models[0].in_use = q.models[1].in_use = (uint32_t)q.count;
  rondo_queue_expire(&q.session, q.now);
  assert_int_equal(q.session.waiting, q.count);
  rondo_session_queue_check(&q.session);
  q.now += 200000;
  rondo_queue_expire(&q.session, q.now);
  for (size_t i = 0; i < q.count; i++) {
    const rondo_slot *s = &q.slots[i];
    late += s->deadline_ns <= q.now;
    assert_int_equal(s->state, s->deadline_ns <= q.now ? RONDO_SLOT_DONE : RONDO_SLOT_QUEUED);
    if (s->deadline_ns > q.now) assert_true(q.session.next_deadline_ns <= s->deadline_ns);
  }
  rondo_session_queue_check(&q.session);
  assert_true(late > 50 && late < 250);
  assert_int_equal(q.session.waiting, q.count - late);
  assert_int_equal(q.models[0].info.timed_out + q.models[1].info.timed_out, late);
}

/* SPDX-License-Identifier: MIT
 * A collective from its start in the engine to its end: polling, timeouts and failures. `is_in_engine` changes only
 * with the turn, and whoever clears it finishes the collective.
 */
#include "exec/collective/engine_progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "exec/collective/collective_reduce.h"

static const uint64_t NS_A_MS = UINT64_C(1000000);
/* How often the progress thread polls, if nobody else does, and lets the engine watch; and how long after the last
 * collective it stops to poll. */
static const uint64_t POLL_NS = UINT64_C(100000), WATCH_NS = UINT64_C(50000000), RELAX_NS = UINT64_C(20000000);
/* How often it polls at least while others poll too: each look takes a processor from them. */
static const uint64_t MOST_POLL_NS = UINT64_C(400000);
/* How long the thread that starts a collective polls itself. A small one is done by then, without another thread. */
static const uint64_t FIRST_NS = UINT64_C(20000);

/* The progress thread only looks. Meanwhile, others compute on its processor. */
static const uint64_t SLICE_NS = UINT64_C(100000);

/* How often a thread polls before it yields or looks for work. */
enum { DESCRIPTION_BYTES = 96, FIRST_POLLS = 16, IDLE_POLLS = 4 };

/* An idle thread polls more often than this between two looks of the progress thread, a busy one less often. */
static const uint64_t IDLE_TURNS = 16;

static bool try_turn(rondo_engine_link *link) {
  return atomic_exchange_explicit(&link->turn, 1, memory_order_acquire) == 0;
}

static void take_turn(rondo_engine_link *link) {
  while (!try_turn(link)) rondo_yield();
}

static void give_turn(rondo_engine_link *link) { atomic_store_explicit(&link->turn, 0, memory_order_release); }

void rondo_engine_link_ring(rondo_engine_link *link) {
  atomic_fetch_add(&link->doorbell, 1);
  rondo_futex_wake(&link->doorbell, 1);
}

/* The engine sums up what is averaged; poll() divides the sum. */
static rondo_collective work_of(const rondo_engine_call *call, const void *src, void *dst) {
  return (rondo_collective){
      .struct_size = sizeof(rondo_collective),
      .operation = (rondo_collective_operation)call->operation,
      .type = (rondo_type)call->type,
      .reduction = call->reduction == RONDO_REDUCE_AVERAGE ? RONDO_REDUCE_SUM : (rondo_reduction)call->reduction,
      .root = call->root,
      .to = call->to,
      .from = call->from,
      .is_average = call->reduction == RONDO_REDUCE_AVERAGE,
      .count = (size_t)call->count,
      .src = src,
      .dst = dst};
}

/* Finishing ------------------------------------------------------------------------------------------------------- */

static void count_done(rondo_engine_link *link, const rondo_engine_call *call) {
  if (call->is_captured != 0) return;
  atomic_fetch_add(&link->done, 1);
  if (!atomic_load(&link->closes)) return;
  atomic_fetch_add(&link->done_signal, 1);
  rondo_futex_wake(&link->done_signal, UINT32_MAX);
}

/* Called without the turn by the thread that ended the collective. The link may be gone afterwards: when the semaphore
 * is raised, what waits for it goes on, and when an eager collective is counted, the user may destroy the communicator.
 * The thread is a worker that runs the kernel, which keeps the link; the progress thread, which is joined; one that
 * polls for the device, which does not touch the link any more; or the user's. */
static void finish(rondo_engine_link *link, bool was_successful) {
  const rondo_engine_call call = link->call;
  const uint64_t number = atomic_load(&link->started);
  if (was_successful) atomic_store_explicit(&link->completed, number, memory_order_release);
  atomic_store_explicit(&link->is_busy, false, memory_order_release);
  if (was_successful) link->device->ops->semaphore->raise(link->event.driver, number);
  count_done(link, &call);
}

/* Failing --------------------------------------------------------------------------------------------------------- */

/* "rank 0 of 2 ('gradients')" */
static const char *name_self(char text[DESCRIPTION_BYTES], const rondo_engine_link *link) {
  const bool has_name = link->name[0] != '\0';
  (void)snprintf(text, DESCRIPTION_BYTES, "rank %" PRIu32 " of %" PRIu32 "%s%.40s%s", link->engine.rank,
                 link->engine.world_size, has_name ? " ('" : "", link->name, has_name ? "')" : "");
  return text;
}

void rondo_engine_link_fail(rondo_engine_link *link, rondo_reason reason, const char *format, ...) {
  uint32_t before = 0;
  if (!atomic_compare_exchange_strong(&link->failed, &before, 1)) return;
  char self[DESCRIPTION_BYTES], what[768];
  rondo_saved_error own;
  va_list arguments;
  va_start(arguments, format);
  (void)rondo_format_cut(what, sizeof what, format, arguments);
  va_end(arguments);
  rondo_error_save(&own);
  (void)rondo_fail(RONDO_EXECUTION_FAILED, reason, "%s: %s", name_self(self, link), what);
  rondo_error_save(&link->failure);
  rondo_error_restore(&own);
  atomic_store(&link->failed, 2);
  if (link->engine.notify != NULL) link->engine.notify(link->engine.user, what);
  take_turn(link);
  const bool was_in_engine = atomic_exchange(&link->is_in_engine, false);
  give_turn(link);
  link->device->ops->semaphore->fail_waits(link->event.driver, &link->failure);
  if (was_in_engine) finish(link, false);
}

/* The engine returned a failure. */
static void fail_by_engine(rondo_engine_link *link) {
  const rondo_error *error = rondo_last_error();
  rondo_engine_link_fail(link, error->reason, "%s", error->message);
}

/* Starting and polling -------------------------------------------------------------------------------------------- */

/* Tests up to `most` times, with the turn. */
static rondo_status test(rondo_engine_link *link, int most, bool *out_is_done) {
  rondo_status status = RONDO_OK;
  for (int i = 0; i < most && !*out_is_done && status == RONDO_OK; i++)
    status = link->engine.test(link->engine.user, out_is_done);
  atomic_store_explicit(&link->polls, atomic_load_explicit(&link->polls, memory_order_relaxed) + 1,
                        memory_order_relaxed);
  if (status == RONDO_OK && *out_is_done && link->call.reduction == RONDO_REDUCE_AVERAGE)
    rondo_reduce_divide((rondo_type)link->call.type, link->dst, (size_t)link->call.count, link->engine.world_size);
  return status;
}

/* Polls up to `most` times. Returns true if nothing is in progress any more, and then the link may be gone. */
static bool poll(rondo_engine_link *link, int most) {
  bool is_done = false;
  rondo_status status = RONDO_OK;
  if (!atomic_load_explicit(&link->is_in_engine, memory_order_acquire)) return true;
  if (!try_turn(link)) return false;
  const bool was_in_engine = atomic_load_explicit(&link->is_in_engine, memory_order_relaxed);
  if (was_in_engine) status = test(link, most, &is_done);
  const bool is_over = is_done || status != RONDO_OK;
  if (is_over) atomic_store_explicit(&link->is_in_engine, false, memory_order_relaxed); /* with the turn */
  give_turn(link);
  if (status != RONDO_OK) fail_by_engine(link);
  if (is_over) finish(link, status == RONDO_OK);
  return is_over || !was_in_engine;
}

bool rondo_engine_link_poll(void *link) { return poll(link, IDLE_POLLS); }

/* By the thread that started the collective. It yields, because other ranks may need its processor. */
static bool poll_on(rondo_engine_link *link) {
  if (link->attach != NULL) return false; /* the engine rings */
  const uint64_t begun_ns = rondo_clock_ns();
  do {
    rondo_yield();
    if (poll(link, FIRST_POLLS)) return true;
  } while (rondo_clock_ns() - begun_ns < FIRST_NS);
  return false;
}

/* The kernel of an overlapping or failed collective: its wait ends with the failure, which is there or comes. */
static void skip(rondo_engine_link *link, const rondo_engine_call *call) {
  link->device->ops->semaphore->ask(link->event.driver, UINT64_MAX);
  count_done(link, call);
}

typedef enum outcome { REFUSED, FAILED, IN_PROGRESS, DONE } outcome;

/* Starts a collective, and tests it at once, with the turn: most small ones need no other. Whoever fails the link
 * afterwards sees with the turn what is in progress. */
static outcome begin(rondo_engine_link *link, const rondo_engine_call *call, const void *src, void *dst) {
  const uint64_t number = atomic_load_explicit(&link->started, memory_order_relaxed) + 1;
  const rondo_collective work = work_of(call, src, dst);
  bool is_done = false;
  if (rondo_engine_link_has_failed(link) || atomic_load_explicit(&link->is_busy, memory_order_acquire)) return REFUSED;
  atomic_store_explicit(&link->is_busy, true, memory_order_relaxed);
  link->call = *call;
  link->src = src;
  link->dst = dst;
  atomic_store_explicit(&link->started, number, memory_order_relaxed);
  link->device->ops->semaphore->ask(link->event.driver, number);
  rondo_status status = link->engine.start(link->engine.user, &work, call->is_captured != 0);
  if (status == RONDO_OK) status = test(link, link->attach == NULL ? FIRST_POLLS : 1, &is_done);
  if (status != RONDO_OK) return FAILED;
  if (!is_done) atomic_store(&link->is_in_engine, true); /* before `sleeps` is read */
  return is_done ? DONE : IN_PROGRESS;
}

/* It overlaps with another one, or the link has failed, after which this changes nothing. */
static void refuse(rondo_engine_link *link, const rondo_engine_call *call) {
  rondo_engine_link_fail(
      link, RONDO_REASON_OVERLAP,
      "%s began while another collective of this communicator was in progress: enqueue them on one stream, "
      "order the streams by events, or use two communicators",
      rondo_collective_operation_name((rondo_collective_operation)call->operation));
  skip(link, call);
}

/* At half a gigabyte per second. */
static uint64_t expect_ns(const rondo_engine_call *call) {
  return 2 * call->count * rondo_type_bytes((rondo_type)call->type);
}

/* Leaves the collective to threads that poll, or to the engine, which rings. */
static void leave(rondo_engine_link *link, uint64_t expected_ns) {
  const rondo_semaphore_ops *semaphore = link->device->ops->semaphore;
  const bool is_polled = link->attach == NULL && semaphore->begin_polling(link->event.driver, expected_ns);
  if (!is_polled || atomic_load(&link->sleeps)) rondo_engine_link_ring(link);
}

void rondo_engine_link_start(rondo_engine_link *link, const rondo_engine_call *call, const void *src, void *dst) {
  take_turn(link);
  const outcome begun = begin(link, call, src, dst);
  give_turn(link);
  if (begun == REFUSED) {
    refuse(link, call);
  } else if (begun == IN_PROGRESS) {
    if (!poll_on(link)) leave(link, expect_ns(call));
  } else {
    if (begun == FAILED) fail_by_engine(link);
    finish(link, begun == DONE);
  }
}

/* The progress thread --------------------------------------------------------------------------------------------- */

static void fail_by_timeout(rondo_engine_link *link, uint64_t number) {
  char description[DESCRIPTION_BYTES], absent[256] = "other ranks did not call it";
  take_turn(link);
  const bool is_late = atomic_load(&link->is_in_engine) && atomic_load(&link->started) == number;
  const rondo_collective work = work_of(&link->call, link->src, link->dst);
  if (is_late && link->engine.absent != NULL) link->engine.absent(link->engine.user, absent, sizeof absent);
  give_turn(link);
  if (!is_late) return;
  rondo_collective_describe(&work, description, sizeof description);
  rondo_engine_link_fail(link, RONDO_REASON_TIMED_OUT,
                         "%s did not end within %" PRIu64 " ms: %s. If a rank is only busy, raise timeout_ms",
                         description, link->timeout_ns / NS_A_MS, absent);
}

/* Nothing is in progress, or it waits. */
static void watch(rondo_engine_link *link) {
  if (link->engine.watch == NULL || rondo_engine_link_has_failed(link) || !try_turn(link)) return;
  const rondo_status status = link->engine.watch(link->engine.user);
  give_turn(link);
  if (status != RONDO_OK) fail_by_engine(link);
}

/* Polls seldom while idle threads do. A busy one polls only between its tasks. */
static void set_pace(rondo_engine_link *link) {
  const uint64_t polls = atomic_load_explicit(&link->polls, memory_order_relaxed);
  if (polls - link->polls_seen < IDLE_TURNS)
    link->poll_ns = POLL_NS;
  else if (link->poll_ns < MOST_POLL_NS)
    link->poll_ns *= 2;
  link->polls_seen = polls;
}

/* Whether nothing is in progress. Idle threads poll too. */
static bool look(rondo_engine_link *link) {
  set_pace(link);
  if (!atomic_load(&link->is_in_engine)) return true;
  const uint64_t number = atomic_load(&link->started), now_ns = rondo_clock_ns();
  if (number != link->watched) link->watched_ns = now_ns;
  link->watched = number;
  if (poll(link, IDLE_POLLS)) return true;
  link->polls_seen = atomic_load_explicit(&link->polls, memory_order_relaxed);
  if (now_ns - link->watched_ns >= link->timeout_ns) fail_by_timeout(link, number);
  return false;
}

/* Until the doorbell rings, or it is time to poll or to watch. */
static void pause_progress(rondo_engine_link *link, uint32_t seen, bool is_idle) {
  const uint64_t waited_ns = rondo_clock_ns() - link->watched_ns;
  const bool polls = link->attach == NULL && (!is_idle || waited_ns < RELAX_NS);
  const uint64_t left_ns = waited_ns < link->timeout_ns ? link->timeout_ns - waited_ns : 0;
  const uint64_t watch_ns = link->engine.watch != NULL ? WATCH_NS : UINT64_MAX;
  if (polls) {
    rondo_futex_wait_for(&link->doorbell, seen, link->poll_ns);
    return;
  }
  atomic_store(&link->sleeps, true);
  if (!is_idle)
    rondo_futex_wait_for(&link->doorbell, seen, left_ns < watch_ns ? left_ns : watch_ns);
  else if (!atomic_load(&link->is_in_engine)) /* else it was started before `sleeps` was set */
    rondo_futex_wait_for(&link->doorbell, seen, watch_ns);
  atomic_store(&link->sleeps, false);
}

void *rondo_engine_link_progress(void *argument) {
  rondo_engine_link *link = argument;
  uint64_t watched_ns = rondo_clock_ns();
  rondo_thread_set_slice(SLICE_NS);
  while (!atomic_load(&link->stop)) {
    const uint32_t seen = atomic_load(&link->doorbell);
    const bool is_idle = look(link);
    const uint64_t now_ns = rondo_clock_ns();
    if (now_ns - watched_ns >= WATCH_NS) {
      watch(link);
      watched_ns = now_ns;
    }
    if (!atomic_load(&link->stop)) pause_progress(link, seen, is_idle);
  }
  return NULL;
}

void rondo_engine_link_check(const rondo_engine_link *link) {
  assert(!atomic_load(&link->is_in_engine));
  assert(atomic_load(&link->done) == atomic_load(&link->queued));
  assert(atomic_load(&link->completed) <= atomic_load(&link->started));
  assert(rondo_engine_link_has_failed(link) || atomic_load(&link->completed) == atomic_load(&link->started));
  assert(link->engine.rank < link->engine.world_size);
  (void)link;
}

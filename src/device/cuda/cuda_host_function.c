/* SPDX-License-Identifier: MIT
 * Host functions. The driver calls the host functions of all streams on one thread, one after another, so one that
 * waits for other work would block all others (docs/cuda-probes.md, 20). Here the driver's thread only posts a function
 * to a thread of the device. The stream or the graph waits for a word in pinned memory, the gate, which the device's
 * thread writes after the function has run.
 *
 * Invariants: while functions are posted, there are as many threads as functions that run or are posted. A thread does
 * not touch a record after it has written the gate.
 */
#include "device/cuda/cuda_host_function.h"

#include <assert.h>

#include "base/allocation.h"
#include "base/log.h"
#include "device/cuda/cuda.h"
#include "device/cuda/cuda_memory.h"

/* Running ---------------------------------------------------------------------------------------------------------- */

static void fail_host_function(const cuda_host_work *work, rondo_status status) {
  (void)rondo_fail_node(RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED, work->node,
                        "%s: %s failed with %s: fix the cause, or let the function return RONDO_OK",
                        (*work->queue)->label, work->label == NULL ? "a host function" : work->label,
                        rondo_status_name(status));
}

void cuda_host_free(const rondo_allocator *allocator, cuda_host_work *work) {
  rondo_release_text(allocator, work->label);
  rondo_release(allocator, work, 1, sizeof *work);
}

static void call_function(const cuda_host_work *work) {
  cuda_queue *queue = *work->queue;
  rondo_callback_enter();
  const rondo_status status = work->host.function(work->host.user);
  rondo_callback_leave();
  if (status == RONDO_OK) return;
  rondo_saved_error failure;
  fail_host_function(work, status);
  rondo_error_save(&failure);
  rondo_first_failure_keep(&queue->failure, &failure);
}

void cuda_call_host(void *user) {
  const cuda_host_work *work = user;
  rondo_callback_enter();
  const rondo_status status = work->host.function(work->host.user);
  rondo_callback_leave();
  if (status != RONDO_OK)
    rondo_log(RONDO_LOG_ERROR, "cuda", "%s failed with %s, in a launch by the driver", work->label,
              rondo_status_name(status));
}

/* Only the owner pops, so the first record that it saw is still the first when it pops (no ABA problem). */
void cuda_host_put_unused(cuda_queue *queue, cuda_host_work *work) {
  work->next = atomic_load_explicit(&queue->unused, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&queue->unused, &work->next, work, memory_order_release,
                                                memory_order_relaxed)) {
  }
  const unsigned left = atomic_fetch_sub_explicit(&queue->hosts_left, 1, memory_order_release);
  assert(left > 0);
  (void)left;
}

static void run_posted(cuda_host_work *work) {
  cuda_gate *const gate = work->gate;
  cuda_queue *const owner = work->owner;
  const uint32_t value = work->value;
  uint32_t state;
  while ((state = atomic_load_explicit(&work->state, memory_order_acquire)) == CUDA_HOST_BEING_QUEUED) rondo_yield();
  const bool is_awaited =
      state == CUDA_HOST_READY || owner == NULL; /* else later functions may have written a higher value */
  if (state == CUDA_HOST_READY) call_function(work);
  if (owner != NULL) cuda_host_put_unused(owner, work);
  if (is_awaited) atomic_store_explicit(gate, value, memory_order_release);
}

/* Threads ---------------------------------------------------------------------------------------------------------- */

struct cuda_host_thread {
  cuda_host_thread *next;
  rondo_thread thread;
};

static cuda_host_work *take_posted(cuda_hosts *hosts) {
  cuda_host_work *work = hosts->first;
  assert(work != NULL && hosts->posted > 0);
  hosts->first = work->next_posted;
  if (hosts->first == NULL) hosts->last = NULL;
  hosts->posted--;
  assert((hosts->first == NULL) == (hosts->posted == 0));
  return work;
}

static void *run_thread(void *argument) {
  cuda_hosts *hosts = &((cuda_device *)argument)->hosts;
  pthread_mutex_lock(&hosts->lock);
  for (;;) {
    while (hosts->first == NULL && !hosts->is_ending) {
      hosts->idle++;
      pthread_cond_wait(&hosts->changed, &hosts->lock);
      hosts->idle--;
    }
    if (hosts->first == NULL) break;
    cuda_host_work *work = take_posted(hosts);
    pthread_mutex_unlock(&hosts->lock);
    run_posted(work);
    pthread_mutex_lock(&hosts->lock);
  }
  pthread_mutex_unlock(&hosts->lock);
  return NULL;
}

static rondo_status start_thread(cuda_device *device) {
  cuda_host_thread *thread;
  RONDO_TRY(rondo_allocate_items(&device->base.allocator, 1, sizeof *thread, &thread));
  const rondo_status status = rondo_thread_start(&thread->thread, "rondo host", run_thread, device);
  if (status != RONDO_OK) {
    rondo_release(&device->base.allocator, thread, 1, sizeof *thread);
    return status;
  }
  pthread_mutex_lock(&device->hosts.lock);
  thread->next = device->hosts.threads;
  device->hosts.threads = thread;
  pthread_mutex_unlock(&device->hosts.lock);
  return RONDO_OK;
}

void cuda_hosts_prepare(cuda_device *device) {
  pthread_mutex_init(&device->hosts.lock, NULL);
  pthread_cond_init(&device->hosts.changed, NULL);
}

rondo_status cuda_hosts_start(cuda_device *device) {
  pthread_mutex_lock(&device->hosts.lock);
  const bool has_thread = device->hosts.threads != NULL;
  pthread_mutex_unlock(&device->hosts.lock);
  return has_thread ? RONDO_OK : start_thread(device);
}

void cuda_hosts_stop(cuda_device *device) {
  cuda_hosts *hosts = &device->hosts;
  pthread_mutex_lock(&hosts->lock);
  hosts->is_ending = true;
  cuda_host_thread *thread = hosts->threads;
  hosts->threads = NULL;
  pthread_cond_broadcast(&hosts->changed);
  pthread_mutex_unlock(&hosts->lock);
  while (thread != NULL) {
    cuda_host_thread *next = thread->next;
    rondo_thread_join(thread->thread);
    rondo_release(&device->base.allocator, thread, 1, sizeof *thread);
    thread = next;
  }
}

/* False if the device is closed. *out_short: there are fewer idle threads than posted functions. */
static bool post(cuda_hosts *hosts, cuda_host_work *work, bool *out_short) {
  pthread_mutex_lock(&hosts->lock);
  const bool is_open = !hosts->is_ending;
  if (is_open) {
    if (work->owner == NULL) atomic_store_explicit(work->gate, 0, memory_order_relaxed); /* left by the launch before */
    work->next_posted = NULL;
    if (hosts->last != NULL)
      hosts->last->next_posted = work;
    else
      hosts->first = work;
    hosts->last = work;
    hosts->posted++;
    pthread_cond_signal(&hosts->changed);
  }
  *out_short = hosts->posted > hosts->idle;
  pthread_mutex_unlock(&hosts->lock);
  return is_open;
}

/* If no thread can be started, the function runs when another thread becomes idle. */
void cuda_post_host(void *user) {
  cuda_host_work *work = user;
  cuda_device *device = work->device;
  bool is_short;
  if (!post(&device->hosts, work, &is_short) || !is_short) return;
  if (start_thread(device) != RONDO_OK)
    rondo_log(RONDO_LOG_WARNING, "cuda", "a host function has to wait for another: %s", rondo_last_error()->message);
}

/* Gates ------------------------------------------------------------------------------------------------------------ */

enum { GATE_BYTES = 64, PAGE_GATES = 64, GATE_WORDS = GATE_BYTES / sizeof(cuda_gate) };

struct cuda_gate_page {
  cuda_gate_page *next;
  cuda_gate *words; /* pinned; gate i is words[i * GATE_WORDS] */
  uint64_t taken;   /* bit i: gate i */
};

/* NULL if all are taken. */
static cuda_gate *take_free(cuda_device *device) {
  cuda_gate *gate = NULL;
  pthread_mutex_lock(&device->lock);
  cuda_gate_page *page = device->gates;
  while (page != NULL && ~page->taken == 0) page = page->next;
  if (page != NULL) {
    const unsigned i = (unsigned)__builtin_ctzll(~page->taken);
    page->taken |= UINT64_C(1) << i;
    gate = &page->words[i * GATE_WORDS];
  }
  pthread_mutex_unlock(&device->lock);
  return gate;
}

static rondo_status add_page(cuda_device *device) {
  const rondo_allocator *allocator = &device->base.allocator;
  cuda_gate_page *page;
  void *words;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *page, &page));
  const rondo_status status = cuda_host_allocate(&device->base, (size_t)PAGE_GATES * GATE_BYTES, &words);
  if (status != RONDO_OK) {
    rondo_release(allocator, page, 1, sizeof *page);
    return status;
  }
  page->words = words;
  pthread_mutex_lock(&device->lock);
  page->next = device->gates;
  device->gates = page;
  pthread_mutex_unlock(&device->lock);
  return RONDO_OK;
}

rondo_status cuda_gate_take(cuda_device *device, cuda_gate **out) {
  *out = NULL;
  while ((*out = take_free(device)) == NULL) RONDO_TRY(add_page(device));
  atomic_store_explicit(*out, 0, memory_order_relaxed);
  return RONDO_OK;
}

void cuda_gate_give(cuda_device *device, cuda_gate *gate) {
  if (gate == NULL) return;
  pthread_mutex_lock(&device->lock);
  cuda_gate_page *page = device->gates;
  while (gate < page->words || gate >= page->words + PAGE_GATES * GATE_WORDS) page = page->next;
  const uint64_t bit = UINT64_C(1) << ((size_t)(gate - page->words) / GATE_WORDS);
  assert((page->taken & bit) != 0);
  page->taken &= ~bit;
  pthread_mutex_unlock(&device->lock);
}

void cuda_gates_free(cuda_device *device) {
  while (device->gates != NULL) {
    cuda_gate_page *page = device->gates;
    device->gates = page->next;
    (void)device->api->host_free(page->words); /* gone already on a lost device */
    rondo_release(&device->base.allocator, page, 1, sizeof *page);
  }
}

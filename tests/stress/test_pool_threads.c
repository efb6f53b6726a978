/* SPDX-License-Identifier: MIT
 * Several threads on the pools of one small device (GM-19, GM-9). Each has a stream, allocates from shared pools and
 * from its own, fills the memory, passes a part of it to other threads with an event, checks the memory that it
 * receives and frees it on its own stream. Meanwhile policies change, pools are trimmed, created and destroyed, and
 * memory runs out. A thread counts each wrong value.
 */
#include "support/rondo_test.h"

#include <pthread.h>

enum { THREADS = 4, STEPS = 1500, SHARED = 2, HELD = 8, BOXES = 6, LIMIT = 24 << 20 };

/* Memory that one thread passes to another, which waits for the event. */
typedef struct parcel {
  uint32_t *words;
  size_t count;
  uint32_t value;
  rondo_event *event;
} parcel;

typedef struct post_office {
  pthread_mutex_t lock;
  parcel boxes[BOXES];
} post_office;

typedef struct held_block {
  uint32_t *words;
  size_t count;
  uint32_t value;
} held_block;

typedef struct pool_user {
  rondo_device *device;
  rondo_kernel *count_wrong;
  post_office *office;
  rondo_pool *pools[SHARED + 1]; /* the last is its own */
  rondo_stream *stream;
  held_block held[HELD];
  uint32_t *wrong; /* on the device */
  uint32_t id, value, out_of_memory;
  uint64_t random;
  rondo_status status;
  char message[256];
} pool_user;

static uint32_t below(pool_user *self, uint32_t bound) { return test_random_below(&self->random, bound); }

static void count_wrong(rondo_blocks blocks, void *const *args) {
  const uint32_t *words = *(uint32_t *const *)args[0];
  const uint64_t count = *(const uint64_t *)args[1];
  const uint32_t value = *(const uint32_t *)args[2];
  uint32_t *wrong = *(uint32_t *const *)args[3];
  (void)blocks;
  for (uint64_t i = 0; i < count; i++) *wrong += words[i] != value;
}

static rondo_status look_and_free(pool_user *self, held_block *at) {
  const uint64_t count = at->count;
  const rondo_status status = rondo_launch(self->stream, self->count_wrong, (rondo_grid){1, 0, 0},
                                           RONDO_ARGS(&at->words, &count, &at->value, &self->wrong));
  void *address = at->words;
  at->words = NULL;
  return status == RONDO_OK ? rondo_free_async(self->stream, address) : status;
}

static rondo_status allocate(pool_user *self, held_block *at) {
  const rondo_malloc_options options = {RONDO_MALLOC_OPTIONS_INIT, .name = "shared",
                                        .pool = self->pools[below(self, SHARED + 1)]};
  void *address = NULL;
  at->count = 1 + below(self, below(self, 12) == 0 ? 1 << 19 : 2000);
  at->value = ++self->value;
  const rondo_status status = rondo_malloc_async(self->stream, at->count * 4, &options, &address);
  if (status == RONDO_OUT_OF_MEMORY) {
    self->out_of_memory++;
    return RONDO_OK;
  }
  if (status != RONDO_OK) return status;
  at->words = address;
  return rondo_fill_async(self->stream,
                          &(rondo_fill){.dst = address, .value = at->value, .element_bytes = 4, .width = at->count});
}

/* Exchanges the held memory with the content of a box. */
static rondo_status exchange(pool_user *self, held_block *at) {
  parcel *box = &self->office->boxes[below(self, BOXES)], got;
  parcel sent = {.words = at->words, .count = at->count, .value = at->value};
  rondo_status status = RONDO_OK;
  if (at->words != NULL) {
    status = rondo_event_create(self->device, NULL, &sent.event);
    if (status == RONDO_OK) status = rondo_event_record(sent.event, self->stream);
    if (status != RONDO_OK) return status;
  }
  pthread_mutex_lock(&self->office->lock);
  got = *box;
  *box = sent;
  pthread_mutex_unlock(&self->office->lock);
  *at = (held_block){.words = got.words, .count = got.count, .value = got.value};
  if (got.words == NULL) return RONDO_OK;
  status = rondo_stream_wait_event(self->stream, got.event);
  rondo_event_destroy(got.event);
  return status;
}

static rondo_status replace_pool(pool_user *self) {
  const rondo_pool_options options = {RONDO_POOL_OPTIONS_INIT, .name = "own",
                                      .release_threshold = below(self, 2) == 0 ? 0 : UINT64_MAX};
  rondo_pool *next = NULL;
  rondo_status status = rondo_pool_create(self->device, &options, &next);
  if (status != RONDO_OK) return status;
  status = rondo_pool_destroy(self->pools[SHARED]);
  self->pools[SHARED] = next;
  return status;
}

static rondo_status keep_house(pool_user *self) {
  rondo_pool *pool = self->pools[below(self, SHARED + 1)];
  rondo_pool_statistics statistics = {.struct_size = sizeof statistics};
  switch (below(self, 8)) {
    case 0:
      return rondo_pool_set_attribute(pool, (rondo_pool_attribute)(1 + below(self, 3)), below(self, 2));
    case 1:
      return rondo_pool_set_attribute(pool, RONDO_POOL_RELEASE_THRESHOLD, (uint64_t)below(self, 3) << 21);
    case 2:
      return rondo_pool_trim(pool, (uint64_t)below(self, 3) << 21);
    case 3:
      return rondo_stream_synchronize(self->stream);
    case 4:
      return below(self, 8) == 0 ? rondo_device_synchronize(self->device) : RONDO_OK;
    case 5:
      return replace_pool(self);
    case 6:
      return rondo_device_set_pool(self->device, self->pools[below(self, SHARED)]);
    default:
      return rondo_pool_get_statistics(pool, &statistics);
  }
}

static rondo_status step(pool_user *self) {
  held_block *at = &self->held[below(self, HELD)];
  const uint32_t choice = below(self, 10);
  if (choice == 0) return keep_house(self);
  if (choice < 3) return exchange(self, at);
  return at->words == NULL ? allocate(self, at) : look_and_free(self, at);
}

static void use_pools(void *user) {
  pool_user *self = user;
  for (int i = 0; i < STEPS && self->status == RONDO_OK; i++) self->status = step(self);
  for (int i = 0; i < HELD; i++)
    if (self->status == RONDO_OK && self->held[i].words != NULL) self->status = look_and_free(self, &self->held[i]);
  if (self->status == RONDO_OK) self->status = rondo_stream_synchronize(self->stream);
  const char *message = rondo_last_error()->message;
  for (size_t i = 0; i + 1 < sizeof self->message && message[i] != '\0'; i++) self->message[i] = message[i];
}

static void empty_boxes(post_office *office, pool_user *user) {
  for (int i = 0; i < BOXES; i++) {
    parcel *box = &office->boxes[i];
    held_block last = {.words = box->words, .count = box->count, .value = box->value};
    if (box->words == NULL) continue;
    assert_ok(rondo_stream_wait_event(user->stream, box->event));
    assert_ok(look_and_free(user, &last));
    rondo_event_destroy(box->event);
  }
  assert_ok(rondo_stream_synchronize(user->stream));
}

static void open_user(pool_user *self, uint32_t id, rondo_device *device, post_office *office, rondo_kernel *kernel,
                      rondo_pool *const *shared) {
  rondo_fill clear = {.element_bytes = 4, .width = 1};
  void *address = NULL;
  *self = (pool_user){.device = device, .office = office, .count_wrong = kernel, .id = id, .value = id << 24};
  self->random = 17 + id;
  for (int i = 0; i < SHARED; i++) self->pools[i] = shared[i];
  assert_ok(rondo_pool_create(device, NULL, &self->pools[SHARED]));
  assert_ok(rondo_stream_create(device, NULL, &self->stream));
  assert_ok(rondo_malloc(device, 4, "wrong", &address));
  clear.dst = self->wrong = address;
  assert_ok(rondo_fill_async(self->stream, &clear));
}

static void close_user(pool_user *self) {
  uint32_t wrong = 1;
  if (self->status != RONDO_OK) fail_msg("thread %u: %s", self->id, self->message);
  assert_ok(rondo_copy_async(self->stream, &wrong, self->wrong, 4));
  assert_ok(rondo_stream_destroy(self->stream));
  assert_int_equal(wrong, 0);
  assert_ok(rondo_free(self->device, self->wrong));
  assert_ok(rondo_pool_destroy(self->pools[SHARED]));
}

UNIT_TEST(test_gm9_gm19_threads_share_pools) {
  static const rondo_kernel_options kernel_options = {
      RONDO_KERNEL_OPTIONS_INIT, .name = "count_wrong", .cpu = count_wrong,
      .params = {RONDO_READS, RONDO_SCALAR(uint64_t), RONDO_SCALAR(uint32_t), RONDO_UPDATES}};
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 2, .memory_limit_bytes = LIMIT};
  post_office office = {.lock = PTHREAD_MUTEX_INITIALIZER};
  rondo_device *device = NULL;
  rondo_kernel *kernel = NULL;
  rondo_pool *shared[SHARED] = {NULL};
  static pool_user users[THREADS];
  test_thread threads[THREADS];
  rondo_memory_statistics now = {.struct_size = sizeof now};
  assert_ok(rondo_device_open("cpu", &options, &device));
  assert_ok(rondo_kernel_create(device, &kernel_options, &kernel));
  for (int i = 0; i < SHARED; i++) assert_ok(rondo_pool_create(device, NULL, &shared[i]));
  for (uint32_t i = 0; i < THREADS; i++) {
    open_user(&users[i], i, device, &office, kernel, shared);
    threads[i] = (test_thread){.function = use_pools, .user = &users[i]};
  }
  test_on_threads(threads, THREADS);
  empty_boxes(&office, &users[0]);
  for (uint32_t i = 0; i < THREADS; i++) close_user(&users[i]);
  for (int i = 0; i < SHARED; i++) assert_ok(rondo_pool_destroy(shared[i]));
  assert_ok(rondo_memory_get_statistics(device, &now));
  assert_int_equal(now.live_allocations, 0);
  assert_int_equal(now.pool_used, 0);
  assert_int_equal(now.pool_reserved, 0);
  rondo_kernel_destroy(kernel);
  assert_ok(rondo_device_close(device));
}

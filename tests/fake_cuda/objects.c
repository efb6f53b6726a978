/* SPDX-License-Identifier: MIT
 * The table of live objects of the fake driver, by handle. A handle is never reused. Requires fake_lock, which is
 * defined here, with the condition and the memory of all objects.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_cuda/fake.h"

enum { BUCKETS = 4096, HANDLE_STEP = 16 };

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed = PTHREAD_COND_INITIALIZER;

static fake_object *buckets[BUCKETS];
static size_t live[FAKE_CUDA_KIND_COUNT];
static uint64_t next_handle = UINT64_C(0x2fa4e0000000);

static const char *const kind_names[FAKE_CUDA_KIND_COUNT] = {
    "context", "stream",      "event",    "module",  "function",    "graph",       "node",
    "exec",    "reservation", "physical", "mapping", "host memory", "pool memory", "semaphore",
};

void *fake_allocate(size_t count, size_t bytes) {
  void *memory = calloc(count > 0 ? count : 1, bytes > 0 ? bytes : 1);
  if (memory == NULL) abort();
  return memory;
}

void *fake_copy_of(const void *from, size_t bytes) {
  void *copy = fake_allocate(1, bytes);
  if (bytes > 0) memcpy(copy, from, bytes);
  return copy;
}

void fake_wait(void) { pthread_cond_wait(&fake_changed, &fake_lock); }

void fake_wait_short(void) {
  struct timespec until;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 50000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  (void)pthread_cond_timedwait(&fake_changed, &fake_lock, &until);
}

void fake_signal(void) { pthread_cond_broadcast(&fake_changed); }

static fake_object **bucket_of(uint64_t handle) { return &buckets[handle / HANDLE_STEP % BUCKETS]; }

void fake_object_add_at(fake_object *object, fake_cuda_kind kind, fake_context *context, uint64_t handle) {
  fake_object **bucket = bucket_of(handle);
  object->kind = kind;
  object->context = context;
  object->handle = handle;
  object->next = *bucket;
  *bucket = object;
  live[kind]++;
}

void fake_object_add(fake_object *object, fake_cuda_kind kind, fake_context *context) {
  fake_object_add_at(object, kind, context, next_handle);
  next_handle += HANDLE_STEP;
}

void fake_object_remove(fake_object *object) {
  fake_object **place = bucket_of(object->handle);
  while (*place != object) place = &(*place)->next;
  *place = object->next;
  object->handle = 0;
  live[object->kind]--;
}

void *fake_find(fake_cuda_kind kind, uint64_t handle) {
  fake_object *object = handle != 0 ? *bucket_of(handle) : NULL;
  while (object != NULL && (object->handle != handle || object->kind != kind)) object = object->next;
  return object;
}

void *fake_need(fake_cuda_kind kind, uint64_t handle) {
  void *object = fake_find(kind, handle);
  if (object == NULL)
    (void)fake_violation(CU_INVALID_HANDLE, "no %s has the handle 0x%" PRIx64 " (any more)", kind_names[kind], handle);
  return object;
}

void *fake_any(fake_cuda_kind kind) {
  for (size_t i = 0; i < BUCKETS && live[kind] > 0; i++) {
    for (fake_object *object = buckets[i]; object != NULL; object = object->next) {
      if (object->kind == kind) return object;
    }
  }
  return NULL;
}

size_t fake_live(fake_cuda_kind kind) {
  size_t sum = 0;
  for (int i = 0; i < FAKE_CUDA_KIND_COUNT; i++) {
    if (kind == FAKE_CUDA_ANY || (int)kind == i) sum += live[i];
  }
  return sum;
}

void fake_each(fake_cuda_kind kind, void (*visit)(void *object, void *user), void *user) {
  for (size_t i = 0; i < BUCKETS; i++) {
    for (fake_object *object = buckets[i]; object != NULL; object = object->next) {
      if (kind == FAKE_CUDA_ANY || object->kind == kind) visit(object, user);
    }
  }
}

typedef struct listing {
  char *text;
  size_t bytes, used;
} listing;

static void list_object(void *argument, void *user) {
  const fake_object *object = argument;
  listing *list = user;
  if (list->used >= list->bytes) return;
  list->used += (size_t)snprintf(list->text + list->used, list->bytes - list->used, "%s 0x%" PRIx64 "\n",
                                 kind_names[object->kind], object->handle);
}

void fake_list(char *text, size_t bytes) {
  listing list = {text, bytes, 0};
  if (bytes > 0) text[0] = '\0';
  fake_each(FAKE_CUDA_ANY, list_object, &list);
}

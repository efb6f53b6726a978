/* SPDX-License-Identifier: MIT
 * A program that does not link Rondo, as an interpreter or a host of plug-ins: it loads the library, uses it and
 * unloads it, several times. A thread in which a call of the library failed ends after the library was unloaded.
 *
 *    loader LIBRARY
 */
#include <dlfcn.h>
#include <pthread.h>
#include <rondo/rondo.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 3 };

typedef struct library {
  void *handle;
  rondo_status (*open)(const char *name, const rondo_device_options *options, rondo_device **out_device);
  rondo_status (*close)(rondo_device *device);
  rondo_status (*create)(rondo_device *device, const rondo_stream_options *options, rondo_stream **out_stream);
  rondo_status (*synchronize)(rondo_stream *stream);
  rondo_status (*destroy)(rondo_stream *stream);
  const rondo_error *(*last_error)(void);
} library;

typedef struct failing {
  const library *with;
  sem_t has_failed, is_gone;
} failing;

static int find(void *handle, const char *name, void *out) {
  void *address = dlsym(handle, name);
  memcpy(out, &address, sizeof address);
  return address != NULL;
}

static int load(const char *path, library *l) {
  l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (l->handle == NULL) fprintf(stderr, "loader: %s\n", dlerror());
  return l->handle != NULL && find(l->handle, "rondo_device_open", &l->open) &&
         find(l->handle, "rondo_device_close", &l->close) && find(l->handle, "rondo_stream_create", &l->create) &&
         find(l->handle, "rondo_stream_synchronize", &l->synchronize) &&
         find(l->handle, "rondo_stream_destroy", &l->destroy) && find(l->handle, "rondo_last_error", &l->last_error);
}

static int fails_in_words(const library *l) {
  rondo_device *device = NULL;
  return l->open("none", NULL, &device) == RONDO_NOT_FOUND && strstr(l->last_error()->message, "'none'") != NULL;
}

static void *fail_and_wait(void *argument) {
  failing *f = argument;
  const int right = fails_in_words(f->with);
  sem_post(&f->has_failed);
  sem_wait(&f->is_gone);
  return right ? f : NULL;
}

static int use(const library *l) {
  rondo_device *device = NULL;
  rondo_stream *stream = NULL;
  return l->open("cpu", NULL, &device) == RONDO_OK && l->create(device, NULL, &stream) == RONDO_OK &&
         l->synchronize(stream) == RONDO_OK && l->destroy(stream) == RONDO_OK && l->close(device) == RONDO_OK;
}

static int is_mapped(const char *name) {
  char line[4096];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) found |= strstr(line, name) != NULL;
  if (maps != NULL) fclose(maps);
  return found;
}

static int round_trip(const char *path) {
  library l;
  failing f = {.with = &l};
  pthread_t thread;
  void *ended = NULL;
  sem_init(&f.has_failed, 0, 0);
  sem_init(&f.is_gone, 0, 0);
  if (!load(path, &l) || pthread_create(&thread, NULL, fail_and_wait, &f) != 0) return 0;
  sem_wait(&f.has_failed);
  const int right = use(&l) && fails_in_words(&l) && dlclose(l.handle) == 0 && !is_mapped("librondo.so");
  sem_post(&f.is_gone);
  pthread_join(thread, &ended);
  sem_destroy(&f.is_gone);
  sem_destroy(&f.has_failed);
  return right && ended != NULL;
}

/* What the library has set for forks went with it. */
static int forks(void) {
  int ended = 1;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  return child > 0 && waitpid(child, &ended, 0) == child && ended == 0;
}

int main(int count, char **arguments) {
  int right = count == 2;
  for (int i = 0; i < ROUNDS && right; i++) right = round_trip(arguments[1]) && forks();
  printf("%s %s\n", RONDO_VERSION_STRING, right ? "ok" : "wrong");
  return right ? 0 : 1;
}

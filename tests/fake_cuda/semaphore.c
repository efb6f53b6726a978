/* SPDX-License-Identifier: MIT
 * External semaphores of the fake driver. The file behind the descriptor is the semaphore: two imports of one file are
 * one semaphore, whose state is the first word of the file. So a test signals and looks with pread and pwrite.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_cuda/fake.h"

struct fake_semaphore {
  fake_object object;
  unsigned references; /* the handle's and those of works */
  bool is_timeline;
  int file;
  _Atomic uint64_t *state; /* a timeline's value; 1 for a binary one that is signalled */
};

static void release(fake_semaphore *semaphore) {
  if (--semaphore->references > 0) return;
  (void)munmap((void *)semaphore->state, sizeof *semaphore->state);
  (void)close(semaphore->file);
  free(semaphore);
}

static bool is_handle_good(const cu_semaphore_handle *handle) {
  struct stat info;
  if (handle == NULL || handle->flags != 0) return false;
  if (handle->type != CU_SEMAPHORE_OPAQUE_FD && handle->type != CU_SEMAPHORE_TIMELINE_FD) return false;
  return fstat(handle->handle.descriptor, &info) == 0 && info.st_size >= (off_t)sizeof(uint64_t);
}

cu_result fake_import_external_semaphore(cu_external_semaphore *out, const cu_semaphore_handle *handle) {
  cu_result code = fake_begin(CALL_import_external_semaphore, FAKE_IN_CONTEXT);
  if (code == CU_OK && (out == NULL || !is_handle_good(handle))) code = CU_INVALID_VALUE;
  void *state = code == CU_OK
                    ? mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, handle->handle.descriptor, 0)
                    : MAP_FAILED;
  if (code == CU_OK && state == MAP_FAILED) code = CU_INVALID_VALUE;
  if (code != CU_OK) return fake_end(code);
  fake_semaphore *semaphore = fake_allocate(1, sizeof *semaphore);
  semaphore->references = 1;
  semaphore->is_timeline = handle->type == CU_SEMAPHORE_TIMELINE_FD;
  semaphore->file = handle->handle.descriptor;
  semaphore->state = state;
  fake_object_add(&semaphore->object, FAKE_CUDA_SEMAPHORE, fake_self.current);
  *out = fake_as(cu_external_semaphore, semaphore);
  return fake_end(CU_OK);
}

cu_result fake_destroy_external_semaphore(cu_external_semaphore handle) {
  cu_result code = fake_begin(CALL_destroy_external_semaphore, FAKE_IN_CONTEXT | FAKE_ALL_THE_SAME);
  fake_semaphore *semaphore = code == CU_OK ? fake_need(FAKE_CUDA_SEMAPHORE, fake_handle(handle)) : NULL;
  if (code == CU_OK && semaphore == NULL) code = CU_INVALID_HANDLE;
  if (semaphore != NULL) {
    fake_object_remove(&semaphore->object);
    release(semaphore);
  }
  return fake_end(code);
}

static cu_result fill_in(const cu_external_semaphore *semaphores, const cu_semaphore_params *params, fake_work *work) {
  for (size_t i = 0; i < work->of.semaphores.count; i++) {
    fake_semaphore *semaphore = fake_need(FAKE_CUDA_SEMAPHORE, fake_handle(semaphores[i]));
    if (semaphore == NULL || params[i].flags != 0) return CU_INVALID_VALUE;
    semaphore->references++;
    work->of.semaphores.items[i] = semaphore;
    work->of.semaphores.values[i] = params[i].value;
  }
  return CU_OK;
}

cu_result fake_work_semaphores(const cu_external_semaphore *semaphores, const cu_semaphore_params *params,
                               unsigned count, cu_node_type type, fake_context *context, fake_work **out) {
  *out = NULL;
  if (semaphores == NULL || params == NULL || count == 0) return CU_INVALID_VALUE;
  fake_work *work = fake_allocate(1, sizeof *work);
  work->references = 1;
  work->type = type;
  work->context = context;
  work->of.semaphores.items = fake_allocate(count, sizeof(fake_semaphore *));
  work->of.semaphores.values = fake_allocate(count, sizeof(uint64_t));
  work->of.semaphores.count = count;
  const cu_result code = fill_in(semaphores, params, work);
  if (code == CU_OK)
    *out = work;
  else
    fake_work_release(work);
  return code;
}

void fake_work_release_semaphores(fake_work *work) {
  for (size_t i = 0; i < work->of.semaphores.count; i++)
    if (work->of.semaphores.items[i] != NULL) release(work->of.semaphores.items[i]);
  free(work->of.semaphores.items);
  free(work->of.semaphores.values);
}

/* A wait for a binary semaphore takes its signal. */
static bool pass(const fake_semaphore *semaphore, uint64_t value) {
  uint64_t signalled = 1;
  if (semaphore->is_timeline) return atomic_load(semaphore->state) >= value;
  return atomic_compare_exchange_strong(semaphore->state, &signalled, 0);
}

bool fake_semaphores_run(const fake_work *work, size_t *inout_done) {
  for (; *inout_done < work->of.semaphores.count; ++*inout_done) {
    fake_semaphore *semaphore = work->of.semaphores.items[*inout_done];
    const uint64_t value = work->of.semaphores.values[*inout_done];
    if (work->type == CU_NODE_SEMAPHORE_SIGNAL)
      atomic_store(semaphore->state, semaphore->is_timeline ? value : 1);
    else if (!pass(semaphore, value))
      return false;
  }
  return true;
}

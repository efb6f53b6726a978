/* SPDX-License-Identifier: MIT
 * See cuda_declared_kernels.h. A declaration is a rondo_kernel without code, with a name or a function.
 */
#include "device/cuda/cuda_declared_kernels.h"

#include <string.h>

#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_kernel.h"

struct cuda_declaration {
  cuda_declaration *next;
  rondo_kernel *kernel; /* a reference */
};

static bool is_of_function(const rondo_kernel *declaration, cu_function function) {
  return declaration->cuda_function != NULL && declaration->cuda_function == (const void *)function;
}

static bool is_of_name(const rondo_kernel *declaration, const char *name) {
  return declaration->cuda_function == NULL && strcmp(declaration->name, name) == 0;
}

/* With the device's lock. */
static cuda_declaration *find(const cuda_device *device, cu_function function, const char *name) {
  cuda_declaration *found = NULL;
  for (cuda_declaration *at = device->declarations; at != NULL; at = at->next) {
    if (is_of_function(at->kernel, function)) return at;
    if (name != NULL && is_of_name(at->kernel, name)) found = at;
  }
  return found;
}

/* The parameters must be those of the function. */
static rondo_status check(cuda_device *device, const rondo_kernel *declaration) {
  CUDA_SCOPE(scope);
  if (declaration->cuda_function == NULL) return RONDO_OK;
  RONDO_TRY(cuda_enter(device, &scope));
  return cuda_kernel_check_parameters(device, declaration, declaration->cuda_function);
}

/* Returns what is to be released without the lock: the declaration that was replaced. */
static rondo_kernel *put(cuda_device *device, cuda_declaration **made, rondo_kernel *declaration) {
  rondo_kernel *replaced = NULL;
  rondo_kernel_retain(declaration);
  pthread_mutex_lock(&device->lock);
  const bool has_function = declaration->cuda_function != NULL;
  cuda_declaration *same =
      find(device, has_function ? declaration->cuda_function : NULL, has_function ? NULL : declaration->name);
  if (same != NULL) {
    replaced = same->kernel;
    same->kernel = declaration;
  } else {
    (*made)->kernel = declaration;
    (*made)->next = device->declarations;
    device->declarations = *made;
    *made = NULL;
  }
  pthread_mutex_unlock(&device->lock);
  return replaced;
}

rondo_status cuda_declare(rondo_device *base, rondo_kernel *declaration) {
  cuda_device *device = cuda_device_of(base);
  cuda_declaration *made;
  RONDO_TRY(check(device, declaration));
  RONDO_TRY(rondo_allocate_items(&base->allocator, 1, sizeof *made, &made));
  rondo_kernel_release(put(device, &made, declaration));
  if (made != NULL) rondo_release(&base->allocator, made, 1, sizeof *made);
  return RONDO_OK;
}

rondo_kernel *cuda_declaration_find(cuda_device *device, cu_function function, const char *name) {
  rondo_kernel *kernel = NULL;
  pthread_mutex_lock(&device->lock);
  const cuda_declaration *found = find(device, function, name);
  if (found != NULL) rondo_kernel_retain(kernel = found->kernel);
  pthread_mutex_unlock(&device->lock);
  return kernel;
}

void cuda_declarations_free(cuda_device *device) {
  while (device->declarations != NULL) {
    cuda_declaration *declaration = device->declarations;
    device->declarations = declaration->next;
    rondo_kernel_release(declaration->kernel);
    rondo_release(&device->base.allocator, declaration, 1, sizeof *declaration);
  }
}

/* SPDX-License-Identifier: MIT
 * Kernels of compiled programs, one for each piece of code, found by the code's address where codes are static, and by
 * a text where they are made for a program. Products and convolutions of libraries and objects of operations, found by
 * the operation's number.
 */
#include "tensor/compile/resources.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

void rondo_resources_init(rondo_resources *resources, const rondo_allocator *allocator, rondo_device *device) {
  *resources = (rondo_resources){.allocator = *allocator, .device = device};
}

void rondo_resources_deinit(rondo_resources *resources) {
  for (size_t i = 0; i < resources->products.count; i++) rondo_product_destroy(resources->products.items[i].product);
  rondo_array_free(&resources->allocator, &resources->products);
  for (size_t i = 0; i < resources->convolutions.count; i++)
    rondo_convolution_destroy(resources->convolutions.items[i].convolution);
  rondo_array_free(&resources->allocator, &resources->convolutions);
  for (size_t i = 0; i < resources->objects.count; i++)
    resources->objects.items[i].destroy(resources->objects.items[i].object);
  rondo_array_free(&resources->allocator, &resources->objects);
}

static void free_made(const rondo_kernel_set *set, const rondo_made_kernel *made) {
  rondo_kernel_destroy(made->kernel);
  rondo_release_text(&set->allocator, made->name);
  rondo_release_text(&set->allocator, made->key);
}

void rondo_kernel_set_free(rondo_kernel_set *set) {
  for (size_t i = 0; i < set->made.count; i++) free_made(set, &set->made.items[i]);
  rondo_array_free(&set->allocator, &set->made);
  for (size_t i = 0; i < set->items.count; i++) rondo_kernel_destroy(set->items.items[i].kernel);
  rondo_array_free(&set->allocator, &set->items);
}

static void note_late(rondo_resources *resources, const char *kind, const char *name) {
  const size_t used = strlen(resources->late);
  (void)snprintf(resources->late + used, sizeof resources->late - used, "%s%s '%s'", used == 0 ? "" : ", ", kind, name);
}

rondo_status rondo_resources_kernel(rondo_resources *resources, const rondo_kernel_options *code,
                                    rondo_kernel **out_kernel) {
  rondo_kernel_set *set = resources->kernels;
  *out_kernel = NULL;
  for (size_t i = 0; i < set->items.count; i++) {
    if (set->items.items[i].code != code) continue;
    *out_kernel = set->items.items[i].kernel;
    return RONDO_OK;
  }
  if (resources->capturing) note_late(resources, "kernel", code->name);
  rondo_ready_kernel ready = {.code = code};
  RONDO_TRY(rondo_kernel_create(resources->device, code, &ready.kernel));
  const rondo_status status = rondo_array_push(&set->allocator, &set->items, &ready);
  if (status != RONDO_OK) {
    rondo_kernel_destroy(ready.kernel);
    return status;
  }
  *out_kernel = ready.kernel;
  return RONDO_OK;
}

static rondo_status make_kernel(const rondo_resources *resources, const rondo_kernel_options *code, const char *key,
                                const char *name, rondo_made_kernel *made) {
  rondo_kernel_set *set = resources->kernels;
  RONDO_TRY(rondo_allocate_text(&set->allocator, key, &made->key));
  RONDO_TRY(rondo_allocate_text(&set->allocator, name, &made->name));
  RONDO_TRY(rondo_kernel_create(resources->device, code, &made->kernel));
  return rondo_array_push(&set->allocator, &set->made, made);
}

rondo_status rondo_resources_made_kernel(rondo_resources *resources, const rondo_kernel_options *code, const char *key,
                                         const char *name, rondo_kernel **out_kernel, const char **out_name) {
  rondo_kernel_set *set = resources->kernels;
  rondo_made_kernel made = {0};
  size_t i = 0;
  while (i < set->made.count && strcmp(set->made.items[i].key, key) != 0) i++;
  if (i == set->made.count) {
    if (resources->capturing) note_late(resources, "kernel", code->name);
    const rondo_status status = make_kernel(resources, code, key, name, &made);
    if (status != RONDO_OK) {
      free_made(set, &made);
      return status;
    }
  }
  *out_kernel = set->made.items[i].kernel;
  *out_name = set->made.items[i].name;
  return RONDO_OK;
}

rondo_status rondo_resources_add_product(rondo_resources *resources, uint32_t operation,
                                         const rondo_product_shape *shape, size_t *out_workspace_bytes) {
  rondo_ready_product ready = {.operation = operation};
  *out_workspace_bytes = 0;
  if (resources->own_kernels) return RONDO_OK;
  RONDO_TRY(rondo_product_create(resources->maker, shape, &ready.product));
  if (ready.product == NULL) return RONDO_OK;
  const rondo_status status = rondo_array_push(&resources->allocator, &resources->products, &ready);
  if (status != RONDO_OK) {
    rondo_product_destroy(ready.product);
    return status;
  }
  *out_workspace_bytes = rondo_product_workspace(ready.product);
  return RONDO_OK;
}

rondo_product *rondo_resources_product(const rondo_resources *resources, uint32_t operation) {
  for (size_t i = 0; i < resources->products.count; i++)
    if (resources->products.items[i].operation == operation) return resources->products.items[i].product;
  return NULL;
}

rondo_status rondo_resources_add_convolution(rondo_resources *resources, uint32_t operation,
                                             const rondo_convolution_shape *shape, size_t *out_workspace_bytes) {
  rondo_ready_convolution ready = {.operation = operation};
  *out_workspace_bytes = 0;
  if (resources->own_kernels) return RONDO_OK;
  RONDO_TRY(rondo_convolution_create(resources->convolution_maker, shape, &ready.convolution));
  if (ready.convolution == NULL) return RONDO_OK;
  const rondo_status status = rondo_array_push(&resources->allocator, &resources->convolutions, &ready);
  if (status != RONDO_OK) {
    rondo_convolution_destroy(ready.convolution);
    return status;
  }
  *out_workspace_bytes = rondo_convolution_workspace(ready.convolution);
  return RONDO_OK;
}

rondo_convolution *rondo_resources_convolution(const rondo_resources *resources, uint32_t operation) {
  for (size_t i = 0; i < resources->convolutions.count; i++)
    if (resources->convolutions.items[i].operation == operation) return resources->convolutions.items[i].convolution;
  return NULL;
}

rondo_status rondo_resources_add_object(rondo_resources *resources, uint32_t operation, void *object,
                                        void (*destroy)(void *object)) {
  const rondo_ready_object ready = {operation, object, destroy};
  const rondo_status status = rondo_array_push(&resources->allocator, &resources->objects, &ready);
  if (status != RONDO_OK) destroy(object);
  return status;
}

void *rondo_resources_object(const rondo_resources *resources, uint32_t operation) {
  for (size_t i = 0; i < resources->objects.count; i++)
    if (resources->objects.items[i].operation == operation) return resources->objects.items[i].object;
  return NULL;
}

/* SPDX-License-Identifier: MIT
 * Kernels of compiled programs, one for each piece of code, found by the code's address where codes are static, and by
 * a text where they are made for a program. Products and convolutions of libraries and objects of operations, found by
 * the operation's number.
 */
#include "tensor/compile/resources.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "tensor/program/operator_registry.h"

rondo_status rondo_resources_init(rondo_resources *resources, const rondo_allocator *allocator, rondo_device *device) {
  rondo_device_info info = {.struct_size = sizeof info};
  *resources = (rondo_resources){.allocator = *allocator, .device = device};
  RONDO_TRY(rondo_device_get_info(device, &info));
  resources->is_cuda = info.cuda;
  resources->is_guarded = info.guarded;
  return RONDO_OK;
}

rondo_status rondo_resources_deinit(rondo_resources *resources) {
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < resources->made.count; i++)
    rondo_status_keep_first(&status, resources->made.items[i].destroy(resources->made.items[i].object));
  rondo_array_free(&resources->allocator, &resources->made);
  for (size_t i = 0; i < resources->operators.count; i++) rondo_operator_release(resources->operators.items[i]);
  rondo_array_free(&resources->allocator, &resources->operators);
  return status;
}

/* Neighbours are often of one operator. */
rondo_status rondo_resources_keep_operator(rondo_resources *resources, const rondo_operator *row, bool *out_is_new) {
  *out_is_new = false;
  for (size_t i = resources->operators.count; i > 0; i--)
    if (resources->operators.items[i - 1] == row) return RONDO_OK;
  RONDO_TRY(rondo_array_push(&resources->allocator, &resources->operators, &row));
  rondo_operator_retain(row);
  *out_is_new = true;
  return RONDO_OK;
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

bool *rondo_kernel_set_has_run(const rondo_kernel_set *set, const rondo_kernel *kernel) {
  for (size_t i = 0; i < set->items.count; i++)
    if (set->items.items[i].kernel == kernel) return &set->items.items[i].has_run;
  for (size_t i = 0; i < set->made.count; i++)
    if (set->made.items[i].kernel == kernel) return &set->made.items[i].has_run;
  return NULL;
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

static size_t find_made(const rondo_kernel_set *set, const char *key) {
  size_t i = 0;
  while (i < set->made.count && strcmp(set->made.items[i].key, key) != 0) i++;
  return i;
}

bool rondo_resources_have_made(const rondo_resources *resources, const char *key) {
  return find_made(resources->kernels, key) < resources->kernels->made.count;
}

rondo_status rondo_resources_made_kernel(rondo_resources *resources, const rondo_kernel_options *code, const char *key,
                                         const char *name, rondo_kernel **out_kernel, const char **out_name) {
  rondo_kernel_set *set = resources->kernels;
  rondo_made_kernel made = {0};
  const size_t i = find_made(set, key);
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

/* Products, convolutions, objects ---------------------------------------------------------------------------------- */

/* The index in `made` of what was made of this kind for the operation; made.count if there is nothing. */
static size_t index_of(const rondo_resources *resources, uint32_t operation, rondo_ready_kind kind) {
  size_t i = 0;
  for (; i < resources->made.count; i++)
    if (resources->made.items[i].operation == operation && resources->made.items[i].kind == kind) break;
  return i;
}

static void *find(const rondo_resources *resources, uint32_t operation, rondo_ready_kind kind) {
  const size_t i = index_of(resources, operation, kind);
  return i == resources->made.count ? NULL : resources->made.items[i].object;
}

/* The object is destroyed where it cannot be kept. */
static rondo_status keep(rondo_resources *resources, const rondo_ready *ready) {
  assert(find(resources, ready->operation, ready->kind) == NULL);
  rondo_status status = rondo_array_push(&resources->allocator, &resources->made, ready);
  if (status != RONDO_OK) rondo_status_keep_first(&status, ready->destroy(ready->object));
  return status;
}

static rondo_status destroy_product(void *product) {
  rondo_product_destroy(product);
  return RONDO_OK;
}

static rondo_status destroy_convolution(void *convolution) {
  rondo_convolution_destroy(convolution);
  return RONDO_OK;
}

rondo_status rondo_resources_add_product(rondo_resources *resources, uint32_t operation,
                                         const rondo_product_shape *shape, size_t *out_workspace_bytes) {
  rondo_product *product;
  *out_workspace_bytes = 0;
  if (resources->own_kernels) return RONDO_OK;
  RONDO_TRY(rondo_product_create(resources->maker, shape, &product));
  if (product == NULL) return RONDO_OK;
  RONDO_TRY(keep(resources, &(rondo_ready){operation, RONDO_READY_PRODUCT, product, destroy_product}));
  *out_workspace_bytes = rondo_product_workspace(product);
  return RONDO_OK;
}

rondo_product *rondo_resources_product(const rondo_resources *resources, uint32_t operation) {
  return find(resources, operation, RONDO_READY_PRODUCT);
}

rondo_status rondo_resources_add_convolution(rondo_resources *resources, uint32_t operation,
                                             const rondo_convolution_shape *shape, size_t *out_workspace_bytes) {
  rondo_convolution *convolution;
  *out_workspace_bytes = 0;
  if (resources->own_kernels) return RONDO_OK;
  RONDO_TRY(rondo_convolution_create(resources->cudnn_maker, shape, &convolution));
  if (convolution == NULL) return RONDO_OK;
  RONDO_TRY(keep(resources, &(rondo_ready){operation, RONDO_READY_CONVOLUTION, convolution, destroy_convolution}));
  *out_workspace_bytes = rondo_convolution_workspace(convolution);
  return RONDO_OK;
}

rondo_convolution *rondo_resources_convolution(const rondo_resources *resources, uint32_t operation) {
  return find(resources, operation, RONDO_READY_CONVOLUTION);
}

rondo_status rondo_resources_add_object(rondo_resources *resources, uint32_t operation, void *object,
                                        rondo_status (*destroy)(void *object)) {
  return keep(resources, &(rondo_ready){operation, RONDO_READY_OBJECT, object, destroy});
}

void *rondo_resources_object(const rondo_resources *resources, uint32_t operation) {
  return find(resources, operation, RONDO_READY_OBJECT);
}

rondo_status rondo_resources_drop_object(rondo_resources *resources, uint32_t operation) {
  const size_t i = index_of(resources, operation, RONDO_READY_OBJECT);
  if (i == resources->made.count) return RONDO_OK;
  const rondo_ready dropped = resources->made.items[i];
  rondo_array_remove(&resources->made, i);
  return dropped.destroy(dropped.object);
}

/* SPDX-License-Identifier: MIT
 * A kernel's code on a CUDA device: a source that is compiled for the GPU's architecture when the kernel is made, an
 * image that is loaded as a module, or a function that the user has loaded. A kernel without CUDA code can be made, and
 * is refused where it is used.
 *
 * Code may go out of use while queues still run it. It is then kept with the number of an epoch, and can be unloaded
 * once no queue has work from before this epoch. So nothing is counted per launch. Loading and unloading wait for all
 * work of the device (docs/cuda-probes.md, 22), so code is unloaded where the device waits anyway: when a kernel is
 * made, when the device is synchronised, and when it closes. What has no code, such as a captured graph, is freed as
 * soon as no queue runs it.
 */
#include "device/cuda/cuda_kernel.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/allocation.h"
#include "base/hash.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_foreign_nodes.h"
#include "device/cuda/cuda_kernel_cache.h"
#include "device/cuda/ptx/ptx_access.h"
#include "graph/launch_config.h"

/* Unloading -------------------------------------------------------------------------------------------------------- */

static void free_kernel(cuda_kernel *kernel) {
  cuda_device *device = kernel->device;
  CUDA_SCOPE(scope);
  cuda_foreign_kernel_free(device, kernel->foreign);
  cuda_captured_free(kernel->captured);
  cuda_enter_to_free(device, &scope);
  /* Gone already on a lost device. */
  if (kernel->module != NULL) (void)device->api->module_unload(kernel->module);
  if (kernel->semaphore != NULL) (void)device->api->destroy_external_semaphore(kernel->semaphore);
  rondo_release(&device->base.allocator, kernel, 1, sizeof *kernel);
}

/* The last epoch whose kernels no queue runs any more. The caller holds the device's lock. */
static uint64_t last_settled(const cuda_device *device) {
  uint64_t settled = UINT64_MAX;
  for (const cuda_queue *queue = device->queues; queue != NULL; queue = queue->next) {
    if (!atomic_load_explicit(&queue->is_busy, memory_order_acquire)) continue;
    const uint64_t epoch = atomic_load_explicit(&queue->settled, memory_order_acquire);
    if (epoch < settled) settled = epoch;
  }
  return settled;
}

/* Removes the kernels that no queue runs any more from the list: those with a module only if `code` is set. */
static cuda_kernel *take_dead(cuda_device *device, bool all, bool code) {
  cuda_kernel *over = NULL;
  pthread_mutex_lock(&device->lock);
  const uint64_t settled = all ? UINT64_MAX : last_settled(device);
  for (cuda_kernel **link = &device->dead_kernels; *link != NULL;) {
    cuda_kernel *kernel = *link;
    if (kernel->epoch > settled || (kernel->module != NULL && !code)) {
      link = &kernel->next;
      continue;
    }
    *link = kernel->next;
    kernel->next = over;
    over = kernel;
  }
  atomic_store_explicit(&device->has_dead_kernels, device->dead_kernels != NULL, memory_order_relaxed);
  pthread_mutex_unlock(&device->lock);
  return over;
}

/* Freeing a library's kernel may add the graph that it was captured in to the list. */
static void reap(cuda_device *device, bool all, bool code) {
  cuda_kernel *over = take_dead(device, all, code);
  while (over != NULL) {
    cuda_kernel *kernel = over;
    over = kernel->next;
    free_kernel(kernel);
    if (over == NULL) over = take_dead(device, all, code);
  }
}

void cuda_kernels_reap(cuda_device *device, bool all) { reap(device, all, true); }

void cuda_kernel_bury(cuda_kernel *kernel) {
  if (kernel == NULL) return;
  cuda_device *device = kernel->device;
  const bool has_code = kernel->module != NULL;
  pthread_mutex_lock(&device->lock);
  assert(kernel->epoch == 0 && kernel->next == NULL); /* it goes out of use once */
  kernel->epoch = atomic_fetch_add(&device->epoch, 1) + 1;
  kernel->next = device->dead_kernels;
  device->dead_kernels = kernel;
  atomic_store_explicit(&device->has_dead_kernels, true, memory_order_relaxed);
  pthread_mutex_unlock(&device->lock);
  if (!has_code) reap(device, false, false);
}

/* Loading ---------------------------------------------------------------------------------------------------------- */

static rondo_status make_kernel(cuda_device *device, cu_function function, cuda_kernel **out) {
  RONDO_TRY(rondo_allocate_items(&device->base.allocator, 1, sizeof **out, out));
  **out = (cuda_kernel){.device = device, .function = function};
  return RONDO_OK;
}

/* Loads the function at once. The driver would load it at the first launch, and wait for other work then. */
static rondo_status load_module(cuda_kernel *kernel, const char *name, const void *image) {
  cuda_device *device = kernel->device;
  char log[512] = "";
  cu_jit_option options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  cu_result code = device->api->module_load(&kernel->module, image, 2, options, values);
  RONDO_TRY(
      cuda_check(device, code, "device '%s' does not load the code of kernel '%s': %s", device->base.name, name, log));
  code = device->api->module_get_function(&kernel->function, kernel->module, name);
  RONDO_TRY(cuda_check(device, code, "the code of kernel '%s' has no extern \"C\" __global__ of that name", name));
  if (device->api->function_load == NULL) return RONDO_OK;
  return cuda_check(device, device->api->function_load(kernel->function), "loading kernel '%s'", name);
}

rondo_status cuda_kernel_load(cuda_device *device, const char *name, const void *image, cuda_kernel **out) {
  cuda_kernel *kernel;
  CUDA_SCOPE(scope);
  *out = NULL;
  RONDO_TRY(cuda_enter(device, &scope));
  RONDO_TRY(make_kernel(device, NULL, &kernel));
  const rondo_status status = load_module(kernel, name, image);
  if (status == RONDO_OK)
    *out = kernel;
  else
    free_kernel(kernel);
  return status;
}

/* Parameters ------------------------------------------------------------------------------------------------------- */

static rondo_status check_parameter(const rondo_kernel *kernel, uint32_t index, size_t offset, size_t bytes) {
  if (offset == kernel->offsets[index] && bytes == kernel->parameters[index].bytes) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "kernel '%s': parameter %u is declared with %u bytes at offset %u, its CUDA code has %zu bytes at "
                    "offset %zu",
                    kernel->name, index, kernel->parameters[index].bytes, kernel->offsets[index], bytes, offset);
}

rondo_status cuda_kernel_check_parameters(const cuda_device *device, const rondo_kernel *kernel, cu_function function) {
  size_t offset = 0, bytes = 0;
  if (device->api->function_param_info == NULL) return RONDO_OK;
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    const cu_result code = device->api->function_param_info(function, i, &offset, &bytes);
    if (code == CU_INVALID_VALUE)
      return rondo_fail_driver(
          RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE, (int32_t)code, cuda_code_name(device->api, code),
          "kernel '%s': %u parameters are declared, its CUDA code has %u", kernel->name, kernel->parameter_count, i);
    if (code != CU_OK) return RONDO_OK;
    RONDO_TRY(check_parameter(kernel, i, offset, bytes));
  }
  if (device->api->function_param_info(function, kernel->parameter_count, &offset, &bytes) != CU_OK) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "kernel '%s': %u parameters are declared, its CUDA code has more", kernel->name,
                    kernel->parameter_count);
}

/* Accesses --------------------------------------------------------------------------------------------------------- */

static const char *const access_names[] = {[RONDO_ACCESS_SCALAR] = "SCALAR",
                                           [RONDO_ACCESS_READ] = "READ",
                                           [RONDO_ACCESS_WRITE] = "WRITE",
                                           [RONDO_ACCESS_READ_WRITE] = "READ_WRITE"};

static rondo_status contradict(const rondo_kernel *kernel, uint32_t index, const char *what, const ptx_site *site,
                               const char *remedy) {
  return rondo_fail(
      RONDO_INVALID_ARGUMENT, RONDO_REASON_CONTRADICTED,
      "kernel '%s': parameter %u is declared RONDO_ACCESS_%s, but its code %s (%s in line %u of the PTX): "
      "%s",
      kernel->name, index, access_names[kernel->parameters[index].access], what, site->opcode, site->line, remedy);
}

/* Whether the code writes or only reads is known only where the finding is definite. */
static rondo_status check_access(const rondo_kernel *kernel, const ptx_finding *finding) {
  const uint32_t index = finding->parameter;
  const rondo_parameter *declared = &kernel->parameters[index];
  const bool is_written = finding->is_written == PTX_YES;
  if (declared->access == RONDO_ACCESS_READ && is_written)
    return contradict(kernel, index, "writes the memory at that address", &finding->write,
                      "declare it RONDO_ACCESS_READ_WRITE, or RONDO_ACCESS_WRITE if it is written before it is read");
  if (declared->access == RONDO_ACCESS_WRITE && finding->is_read == PTX_YES && finding->is_written == PTX_NO)
    return contradict(kernel, index, "reads the memory at that address and never writes it", &finding->read,
                      "declare it RONDO_ACCESS_READ");
  if (declared->access == RONDO_ACCESS_SCALAR && is_written)
    return contradict(kernel, index, "writes memory at that address", &finding->write,
                      "declare it RONDO_ACCESS_WRITE or RONDO_ACCESS_READ_WRITE");
  return RONDO_OK;
}

/* Whether the PTX has the declared parameters: not each driver says which the code has. */
static bool has_parameters(const rondo_kernel *kernel, const ptx_findings *findings, uint64_t entry) {
  uint32_t count = 0;
  for (size_t i = 0; i < findings->count; i++) {
    const ptx_finding *finding = &findings->items[i];
    if (finding->entry != entry) continue;
    if (count >= kernel->parameter_count || finding->bytes != kernel->parameters[count].bytes) return false;
    count++;
  }
  return count == kernel->parameter_count;
}

/* Compares the declared accesses with what the PTX says. */
static rondo_status check_accesses(const rondo_kernel *kernel, const ptx_findings *findings) {
  const uint64_t entry = rondo_hash_text(RONDO_HASH_START, kernel->name);
  if (!has_parameters(kernel, findings, entry)) return RONDO_OK;
  for (size_t i = 0; i < findings->count; i++) {
    const ptx_finding *finding = &findings->items[i];
    if (finding->entry != entry || finding->parameter >= kernel->parameter_count || finding->bytes != sizeof(void *))
      continue;
    RONDO_TRY(check_access(kernel, finding));
  }
  return RONDO_OK;
}

/* An image that is PTX is looked at here, and compiled code when it was compiled. */
static rondo_status examine_image(const rondo_allocator *allocator, const rondo_kernel *kernel, ptx_findings *out) {
  const char *image = kernel->cuda_image;
  if (image == NULL || !ptx_is_text(image)) return RONDO_OK;
  return ptx_examine(allocator, image, strlen(image), kernel->name, out);
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

/* The code may need so many registers that a block of this size does not fit. */
static rondo_status check_threads(const rondo_device *device, const rondo_kernel *kernel, int most, uint64_t threads) {
  if (threads <= (uint64_t)most) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "kernel '%s': blocks of %" PRIu64
                    " threads, its code runs with at most %d on device '%s': use smaller "
                    "blocks, or compile it for larger ones with __launch_bounds__",
                    kernel->name, threads, most, device->name);
}

static rondo_status check_block(cuda_device *device, const rondo_kernel *kernel, cuda_kernel *loaded) {
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code =
      device->api->function_get_attribute(&loaded->most_threads, CU_FUNCTION_ATTRIBUTE_MAX_THREADS, loaded->function);
  RONDO_TRY(cuda_check(device, code, "asking how many threads a block of kernel '%s' may have", kernel->name));
  return check_threads(&device->base, kernel, loaded->most_threads, kernel->block_threads);
}

/* Dynamic shared memory -------------------------------------------------------------------------------------------- */

/* The function's static shared memory leaves so much dynamic shared memory for a block. All of it is allowed at once,
 * because launches from other threads may want more than this one. */
static rondo_status allow_shared(cuda_device *device, const rondo_kernel *kernel, cuda_kernel *loaded) {
  const cuda_api *api = device->api;
  int fixed = 0;
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device, &scope));
  cu_result code = api->function_get_attribute(&fixed, CU_FUNCTION_ATTRIBUTE_SHARED_BYTES, loaded->function);
  const int most = (int)device->base.limits.shared_bytes - fixed;
  if (code == CU_OK)
    code = api->function_set_attribute(loaded->function, CU_FUNCTION_ATTRIBUTE_MAX_DYNAMIC_SHARED_BYTES, most);
  RONDO_TRY(cuda_check(device, code, "allowing kernel '%s' %d bytes of dynamic shared memory", kernel->name, most));
  atomic_store_explicit(&loaded->shared_bytes, (uint32_t)most, memory_order_relaxed);
  return RONDO_OK;
}

static rondo_status check_shared(const rondo_device *device, const rondo_kernel *kernel, cuda_kernel *loaded,
                                 uint32_t bytes) {
  uint32_t most = atomic_load_explicit(&loaded->shared_bytes, memory_order_relaxed);
  if (bytes <= most) return RONDO_OK;
  if (most == 0) RONDO_TRY(allow_shared(loaded->device, kernel, loaded));
  most = atomic_load_explicit(&loaded->shared_bytes, memory_order_relaxed);
  if (bytes <= most) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "kernel '%s': %" PRIu32
                    " bytes of dynamic shared memory for a block, but its static shared memory "
                    "leaves %" PRIu32 " of the %" PRIu32 " of device '%s': use less of either",
                    kernel->name, bytes, most, device->limits.shared_bytes, device->name);
}

/* How many blocks one multiprocessor runs at once, in the low 16 bits. The question is in the others, so that a kernel
 * which is launched again and again with one configuration is asked once. */
static rondo_status ask_resident(cuda_kernel *loaded, const char *name, const rondo_launch_config *config,
                                 uint64_t *out) {
  enum { BLOCK_BITS = 16, SHARED_BITS = 32 };
  const uint64_t threads = rondo_dimensions_volume(config->block);
  const uint64_t question = (threads << SHARED_BITS | config->shared_bytes) << BLOCK_BITS;
  int blocks = 0;
  *out = atomic_load_explicit(&loaded->resident, memory_order_relaxed);
  if (*out >> BLOCK_BITS == question >> BLOCK_BITS) return RONDO_OK;
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(loaded->device, &scope));
  const cu_result code =
      loaded->device->api->function_most_blocks(&blocks, loaded->function, (int)threads, config->shared_bytes);
  RONDO_TRY(cuda_check(loaded->device, code, "asking how many blocks of kernel '%s' run at once", name));
  *out = question | (uint64_t)(uint16_t)blocks;
  atomic_store_explicit(&loaded->resident, *out, memory_order_relaxed);
  return RONDO_OK;
}

static rondo_status check_cooperative(const rondo_device *device, const rondo_kernel_node *node,
                                      const rondo_launch_config *config) {
  cuda_kernel *loaded = node->kernel->driver_data;
  uint64_t resident;
  RONDO_TRY(ask_resident(loaded, node->kernel->name, config, &resident));
  return rondo_device_check_cooperative(device, node, (resident & UINT16_MAX) * (uint64_t)loaded->device->processors);
}

/* What the code of the kernel allows. The library that launched a kernel has set its attributes. */
rondo_status cuda_config_check(const rondo_device *device, const rondo_kernel_node *node) {
  cuda_kernel *loaded = node->kernel->driver_data;
  rondo_launch_config config;
  RONDO_TRY(rondo_device_check_limits(device, node));
  if (loaded == NULL || loaded->foreign != NULL) return RONDO_OK;
  (void)rondo_launch_config_resolve(node, &config);
  RONDO_TRY(check_threads(device, node->kernel, loaded->most_threads, rondo_dimensions_volume(config.block)));
  RONDO_TRY(check_shared(device, node->kernel, loaded, config.shared_bytes));
  if (config.cooperative) RONDO_TRY(check_cooperative(device, node, &config));
  if (rondo_launch_config_has_attributes(&config))
    atomic_store_explicit(&loaded->device->has_attributes, true, memory_order_relaxed);
  return RONDO_OK;
}

/* Symbols ---------------------------------------------------------------------------------------------------------- */

static rondo_status check_symbol(const rondo_kernel *kernel, const rondo_code_symbol *symbol, size_t bytes) {
  if (symbol->bytes == 0 || symbol->bytes == bytes) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "kernel '%s': symbol '%s' is declared with %zu bytes, its CUDA code has %zu", kernel->name,
                    symbol->name, symbol->bytes, bytes);
}

static rondo_status find_symbol(cuda_device *device, const rondo_kernel *kernel, cu_module module,
                                rondo_code_symbol *symbol) {
  cu_address address;
  size_t bytes;
  const cu_result code = device->api->module_get_global(&address, &bytes, module, symbol->name);
  RONDO_TRY(cuda_check(device, code,
                       "the code of kernel '%s' has no variable '%s': declare it extern \"C\" __device__ or "
                       "__constant__, or give the mangled name",
                       kernel->name, symbol->name));
  RONDO_TRY(check_symbol(kernel, symbol, bytes));
  symbol->address = (char *)(uintptr_t)address;
  symbol->bytes = bytes;
  return RONDO_OK;
}

/* A function of the caller's is in a module of the caller's. */
static rondo_status find_symbols(cuda_device *device, rondo_kernel *kernel, const cuda_kernel *loaded) {
  cu_module module = loaded->module;
  CUDA_SCOPE(scope);
  if (kernel->symbol_count == 0) return RONDO_OK;
  RONDO_TRY(cuda_enter(device, &scope));
  if (module == NULL) {
    const cu_result code = device->api->function_get_module(&module, loaded->function);
    RONDO_TRY(cuda_check(device, code, "asking for the module of kernel '%s'", kernel->name));
  }
  for (uint32_t i = 0; i < kernel->symbol_count; i++)
    RONDO_TRY(find_symbol(device, kernel, module, &kernel->symbols[i]));
  return RONDO_OK;
}

static void release_kernel(void *data) { cuda_kernel_bury(data); }

/* Compiles, and keeps what the PTX says instead of the PTX. */
static rondo_status compile(cuda_device *device, const rondo_kernel *kernel, cuda_compiled *out) {
  const rondo_allocator *allocator = &device->base.allocator;
  cuda_code ptx;
  RONDO_TRY(cuda_compile(allocator, kernel->name, kernel->cuda_source, device->major, device->minor, &out->code, &ptx));
  rondo_status status = RONDO_OK;
  if (ptx.count > 0) status = ptx_examine(allocator, ptx.bytes, ptx.count - 1, NULL, &out->findings);
  rondo_release(allocator, ptx.bytes, ptx.count, 1);
  if (status != RONDO_OK) cuda_compiled_free(allocator, out);
  return status;
}

/* Machine code of a source, from the cache on disk or compiled. */
static rondo_status find_code(cuda_device *device, const rondo_kernel *kernel, cuda_compiled *out) {
  const rondo_allocator *allocator = &device->base.allocator;
  cuda_cache_key key = {.major = device->major, .minor = device->minor, .source = kernel->cuda_source};
  RONDO_TRY(cuda_compiler_version(&key.compiler_version));
  if (cuda_cache_find(allocator, &key, out)) {
    atomic_fetch_add_explicit(&device->kernels_cached, 1, memory_order_relaxed);
    return RONDO_OK;
  }
  RONDO_TRY(compile(device, kernel, out));
  atomic_fetch_add_explicit(&device->kernels_compiled, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&device->cache_evictions, cuda_cache_put(&key, out), memory_order_relaxed);
  return RONDO_OK;
}

static rondo_status load_source(cuda_device *device, const rondo_kernel *kernel, ptx_findings *out_findings,
                                cuda_kernel **out) {
  const rondo_allocator *allocator = &device->base.allocator;
  cuda_compiled compiled;
  RONDO_TRY(find_code(device, kernel, &compiled));
  const rondo_status status = cuda_kernel_load(device, kernel->name, compiled.code.bytes, out);
  rondo_release(allocator, compiled.code.bytes, compiled.code.count, 1);
  *out_findings = compiled.findings;
  return status;
}

/* NULL for a kernel without CUDA code. */
static rondo_status load_code(cuda_device *device, const rondo_kernel *kernel, ptx_findings *out_findings,
                              cuda_kernel **out) {
  *out = NULL;
  if (kernel->cuda_function != NULL) return make_kernel(device, kernel->cuda_function, out); /* the caller's own */
  if (kernel->cuda_image != NULL) return cuda_kernel_load(device, kernel->name, kernel->cuda_image, out);
  return kernel->cuda_source[0] != '\0' ? load_source(device, kernel, out_findings, out) : RONDO_OK;
}

static rondo_status check_code(cuda_device *device, const rondo_kernel *kernel, cuda_kernel *loaded,
                               ptx_findings *findings) {
  RONDO_TRY(cuda_kernel_check_parameters(device, kernel, loaded->function));
  RONDO_TRY(check_block(device, kernel, loaded));
  RONDO_TRY(examine_image(&device->base.allocator, kernel, findings));
  return check_accesses(kernel, findings);
}

rondo_status cuda_kernel_prepare(rondo_device *base, rondo_kernel *kernel) {
  cuda_device *device = cuda_device_of(base);
  ptx_findings findings = {0};
  cuda_kernel *loaded;
  if (device->api->test_kernel != NULL)
    (void)device->api->test_kernel(kernel->name, kernel->cpu, kernel->cpu_block, kernel->parameter_count,
                                   kernel->parameters);
  if (device->api->test_symbol != NULL)
    for (uint32_t i = 0; i < kernel->symbol_count; i++)
      (void)device->api->test_symbol(kernel->symbols[i].name, kernel->symbols[i].cpu, kernel->symbols[i].bytes);
  rondo_status status = load_code(device, kernel, &findings, &loaded);
  if (loaded != NULL) {
    cuda_kernels_look(device);
    status = check_code(device, kernel, loaded, &findings);
    if (status == RONDO_OK) status = find_symbols(device, kernel, loaded);
  }
  rondo_array_free(&device->base.allocator, &findings);
  if (status != RONDO_OK) {
    cuda_kernel_bury(loaded);
    return status;
  }
  if (loaded == NULL) return RONDO_OK;
  kernel->driver_data = loaded;
  kernel->driver_release = release_kernel;
  return RONDO_OK;
}

rondo_status cuda_kernel_adopt(cuda_device *device, rondo_kernel *kernel, cu_function function) {
  cuda_kernel *adopted;
  RONDO_TRY(make_kernel(device, function, &adopted));
  kernel->driver_data = adopted;
  kernel->driver_release = release_kernel;
  return RONDO_OK;
}

rondo_status cuda_kernel_check(const rondo_device *device, const rondo_kernel_node *node) {
  const rondo_kernel *kernel = node->kernel;
  if (kernel->driver_data != NULL) return rondo_device_check_grid(device, node);
  return rondo_fail(RONDO_INVALID_GRAPH, RONDO_REASON_NO_FUNCTION,
                    "kernel '%s' has no CUDA code and cannot run on device '%s': give it in "
                    "rondo_kernel_options.cuda_source, cuda_image or cuda_function",
                    kernel->name, device->name);
}

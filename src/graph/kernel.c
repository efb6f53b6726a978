/* SPDX-License-Identifier: MIT
 * Kernels as data: checks the options of rondo_kernel_create, computes the layout of the arguments, counts references.
 * Invariant: parameters are valid, offsets are aligned and ascending, name and cuda_source are never NULL. Except for
 * the count, a kernel is immutable after creation, so any thread may read it.
 */
#include "graph/kernel.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/versioned_struct.h"

#define DEFAULT_BLOCK_THREADS 256
#define MAX_BLOCK_THREADS 1024 /* CUDA's limit on every architecture */
#define MAX_ALIGNMENT 64
#define LEAST_ALIGNMENT 16 /* of the argument block */
#define MAX_BLOCKS (UINT64_C(1) << 40)

const char *const rondo_access_names[RONDO_ACCESS_COUNT] = {"", "scalar", "read", "write", "read_write"};

static rondo_status check_parameter(const char *name, size_t index, const rondo_parameter *parameter) {
  if (parameter->access < RONDO_ACCESS_SCALAR || parameter->access > RONDO_ACCESS_READ_WRITE)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "kernel '%s': parameter %zu has the invalid access %d: use RONDO_SCALAR(type), "
                      "RONDO_READS, RONDO_WRITES or RONDO_UPDATES",
                      name, index, (int)parameter->access);
  if (parameter->alignment == 0 || parameter->alignment > MAX_ALIGNMENT ||
      (parameter->alignment & (parameter->alignment - 1)) != 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "kernel '%s': parameter %zu has the alignment %" PRIu32 ": it must be a power of two, at most %d",
                      name, index, parameter->alignment, MAX_ALIGNMENT);
  if (parameter->bytes == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "kernel '%s': parameter %zu has 0 bytes: give its size", name, index);
  if (parameter->bytes > RONDO_MAX_PARAMETER_BYTES)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "kernel '%s': parameter %zu has %" PRIu32
                      " bytes, and at most %d are possible: pass a pointer to it",
                      name, index, parameter->bytes, RONDO_MAX_PARAMETER_BYTES);
  if (parameter->access != RONDO_ACCESS_SCALAR && parameter->bytes != sizeof(void *))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "kernel '%s': parameter %zu is a pointer of %" PRIu32
                      " bytes, but pointers have %zu: use RONDO_READS, RONDO_WRITES or RONDO_UPDATES",
                      name, index, parameter->bytes, sizeof(void *));
  return RONDO_OK;
}

/* Counts params, which end at the first whose bytes are 0. */
static rondo_status count_inline(const char *name, const rondo_parameter *params, uint32_t *out_count) {
  uint32_t count = 0;
  while (count < RONDO_MAX_INLINE_PARAMETERS && params[count].bytes != 0) count++;
  *out_count = count;
  for (size_t i = count; i < RONDO_MAX_INLINE_PARAMETERS; i++)
    if (params[i].bytes != 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                        "kernel '%s': parameter %" PRIu32 " has 0 bytes but parameter %zu has %" PRIu32
                        ": leave no gap in params",
                        name, count, i, params[i].bytes);
  return RONDO_OK;
}

static rondo_status count_parameters(const rondo_kernel_options *options, uint32_t *out_count) {
  RONDO_TRY(count_inline(options->name, options->params, out_count));
  if (options->param_list == NULL && options->param_count == 0) return RONDO_OK;
  if (*out_count > 0 || options->param_list == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "kernel '%s': %s: set params, or param_list with param_count", options->name,
                      *out_count > 0 ? "it has parameters both in params and in a list" : "param_list is NULL");
  *out_count = options->param_count;
  if (options->param_count <= RONDO_MAX_PARAMETERS) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "kernel '%s': %" PRIu32 " parameters, at most %d are possible: pass a pointer to some of them",
                    options->name, options->param_count, RONDO_MAX_PARAMETERS);
}

static rondo_status lay_out(const char *name, const rondo_parameter *params, uint32_t count, rondo_kernel *kernel) {
  size_t end = 0;
  kernel->argument_alignment = LEAST_ALIGNMENT;
  for (uint32_t i = 0; i < count; i++) {
    RONDO_TRY(check_parameter(name, i, &params[i]));
    const size_t alignment = params[i].alignment;
    const size_t offset = (end + alignment - 1) & ~(alignment - 1);
    kernel->has_gaps |= offset > end;
    end = offset + params[i].bytes;
    if (alignment > kernel->argument_alignment) kernel->argument_alignment = (uint32_t)alignment;
    if (end > RONDO_MAX_PARAMETER_BYTES)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                        "kernel '%s': its first %" PRIu32
                        " parameters take %zu bytes, at most %d fit: pass a pointer to some of them",
                        name, i + 1, end, RONDO_MAX_PARAMETER_BYTES);
    kernel->parameters[i] = params[i];
    kernel->offsets[i] = (uint32_t)offset;
  }
  assert(end <= UINT32_MAX && (kernel->argument_alignment & (kernel->argument_alignment - 1)) == 0);
  kernel->parameter_count = count;
  kernel->argument_bytes = (uint32_t)end;
  return RONDO_OK;
}

/* Symbols ---------------------------------------------------------------------------------------------------------- */

rondo_code_symbol *rondo_kernel_symbol_named(const rondo_kernel *kernel, const char *name) {
  for (uint32_t i = 0; i < kernel->symbol_count; i++)
    if (kernel->symbols[i].name != NULL && strcmp(kernel->symbols[i].name, name) == 0) return &kernel->symbols[i];
  return NULL;
}

const rondo_code_symbol *rondo_kernel_symbol_at(const rondo_kernel *kernel, const void *address) {
  for (uint32_t i = 0; i < kernel->symbol_count; i++) {
    const rondo_code_symbol *symbol = &kernel->symbols[i];
    if (symbol->address != NULL && (uintptr_t)address - (uintptr_t)symbol->address < symbol->bytes) return symbol;
  }
  return NULL;
}

static rondo_status check_symbol(const rondo_kernel *kernel, const rondo_symbol *symbol, uint32_t index) {
  if (symbol->name == NULL || symbol->name[0] == '\0')
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
                      "kernel '%s': symbol %" PRIu32 " has no name: give that of the variable in its code",
                      kernel->name, index);
  if (rondo_kernel_symbol_named(kernel, symbol->name) != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_NAME,
                      "kernel '%s': symbol '%s' is listed twice: list it once", kernel->name, symbol->name);
  if (symbol->bytes <= PTRDIFF_MAX && (symbol->cpu == NULL || symbol->bytes > 0)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "kernel '%s': symbol '%s' has an address on CPU devices and %zu bytes: give the size of the "
                    "variable",
                    kernel->name, symbol->name, symbol->bytes);
}

static rondo_status copy_symbols(rondo_kernel *kernel, const rondo_kernel_options *options) {
  const size_t count = options->symbol_count;
  if (count > RONDO_MAX_SYMBOLS || (count > 0) != (options->symbols != NULL))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "kernel '%s': a list of %zu symbols at %p: set both symbols and symbol_count, at most %d",
                      kernel->name, count, (const void *)options->symbols, RONDO_MAX_SYMBOLS);
  RONDO_TRY(rondo_allocate_items(&kernel->allocator, count, sizeof *kernel->symbols, &kernel->symbols));
  kernel->symbol_count = (uint32_t)count;
  for (uint32_t i = 0; i < kernel->symbol_count; i++) {
    const rondo_symbol *from = &options->symbols[i];
    RONDO_TRY(check_symbol(kernel, from, i));
    RONDO_TRY(rondo_allocate_text(&kernel->allocator, from->name, &kernel->symbols[i].name));
    kernel->symbols[i].cpu = from->cpu;
    kernel->symbols[i].bytes = from->bytes;
  }
  return RONDO_OK;
}

static void free_symbols(rondo_kernel *kernel) {
  for (uint32_t i = 0; i < kernel->symbol_count; i++) rondo_release_text(&kernel->allocator, kernel->symbols[i].name);
  rondo_release(&kernel->allocator, kernel->symbols, kernel->symbol_count, sizeof *kernel->symbols);
}

/* Options ---------------------------------------------------------------------------------------------------------- */

static rondo_status read_options(const rondo_kernel_options *given, rondo_kernel_options *out) {
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_kernel_options", given, out));
  if (out->name == NULL || out->name[0] == '\0')
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
        "the kernel has no name: set rondo_kernel_options.name, which messages, dumps and CUDA source use");
  if (out->block_threads > MAX_BLOCK_THREADS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "kernel '%s': blocks of %" PRIu32 " threads, at most %d are possible: use more blocks", out->name,
                      out->block_threads, MAX_BLOCK_THREADS);
  if (out->cpu != NULL && out->cpu_block != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "kernel '%s': its code for CPUs is given in more than one form: set one of cpu and cpu_block",
                      out->name);
  const bool has_source = out->cuda_source != NULL && out->cuda_source[0] != '\0';
  if (has_source + (out->cuda_image != NULL) + (out->cuda_function != NULL) > 1)
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
        "kernel '%s': its CUDA code is given in more than one form: set one of cuda_source, cuda_image and "
        "cuda_function",
        out->name);
  return RONDO_OK;
}

static rondo_status fill_in(rondo_kernel *kernel, const rondo_kernel_options *options) {
  const rondo_parameter *params = options->param_list != NULL ? options->param_list : options->params;
  uint32_t count;
  RONDO_TRY(count_parameters(options, &count));
  RONDO_TRY(lay_out(options->name, params, count, kernel));
  RONDO_TRY(rondo_allocate_text(&kernel->allocator, options->name, &kernel->name));
  RONDO_TRY(rondo_allocate_text(&kernel->allocator, options->cuda_source, &kernel->cuda_source));
  kernel->cpu = options->cpu;
  kernel->cpu_block = options->cpu_block;
  kernel->cuda_image = options->cuda_image;
  kernel->cuda_function = options->cuda_function;
  kernel->block_threads = options->block_threads == 0 ? DEFAULT_BLOCK_THREADS : options->block_threads;
  return copy_symbols(kernel, options);
}

rondo_status rondo_kernel_make(rondo_device *device, const rondo_allocator *allocator,
                               const rondo_kernel_options *options, rondo_kernel **out) {
  rondo_kernel *kernel;
  rondo_kernel_options known;
  *out = NULL;
  RONDO_TRY(read_options(options, &known));
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *kernel, &kernel));
  atomic_init(&kernel->references, 1);
  kernel->allocator = *allocator;
  kernel->device = device;
  const rondo_status status = fill_in(kernel, &known);
  if (status != RONDO_OK) {
    rondo_kernel_release(kernel);
    return status;
  }
  *out = kernel;
  return RONDO_OK;
}

bool rondo_kernel_try_retain(rondo_kernel *kernel) {
  unsigned references = atomic_load_explicit(&kernel->references, memory_order_relaxed);
  while (references > 0)
    if (atomic_compare_exchange_weak_explicit(&kernel->references, &references, references + 1, memory_order_relaxed,
                                              memory_order_relaxed))
      return true;
  return false;
}

void rondo_kernel_release(rondo_kernel *kernel) {
  if (kernel == NULL) return;
  assert(atomic_load_explicit(&kernel->references, memory_order_relaxed) > 0);
  if (atomic_fetch_sub_explicit(&kernel->references, 1, memory_order_acq_rel) != 1) return;
  if (kernel->forget_symbols != NULL) kernel->forget_symbols(kernel);
  if (kernel->driver_release != NULL) kernel->driver_release(kernel->driver_data);
  if (kernel->kept_release != NULL) kernel->kept_release(kernel->kept);
  const rondo_allocator allocator = kernel->allocator;
  free_symbols(kernel);
  rondo_release_text(&allocator, kernel->name);
  rondo_release_text(&allocator, kernel->cuda_source);
  rondo_release(&allocator, kernel, 1, sizeof *kernel);
}

rondo_status rondo_grid_check(const char *kernel_name, rondo_grid grid, rondo_grid *out) {
  *out = rondo_grid_resolve(grid);
  if (grid.x == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "kernel '%s': a grid of 0 blocks in x: skip the launch if there is nothing to do", kernel_name);
  uint64_t blocks;
  if (__builtin_mul_overflow((uint64_t)out->x * out->y, out->z, &blocks) || blocks > MAX_BLOCKS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "kernel '%s': a grid of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                      " blocks, at most 2^40 are possible: give each block more work",
                      kernel_name, out->x, out->y, out->z);
  return RONDO_OK;
}

const char *rondo_kernel_name(const rondo_kernel *kernel) { return kernel == NULL ? "" : kernel->name; }

const rondo_parameter *rondo_kernel_parameters(const rondo_kernel *kernel, size_t *out_count) {
  if (out_count != NULL) *out_count = kernel == NULL ? 0 : kernel->parameter_count;
  return kernel == NULL ? NULL : kernel->parameters;
}

/* SPDX-License-Identifier: MIT
 * Functions of work: kernels that get their block, copies, fills and host functions. Copies and fills are divided into
 * blocks of about 256 KiB, by bytes if they are one row, else by rows, so that workers can share large ones.
 */
#include <stdio.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "device/cpu/cpu_shared_memory.h"
#include "device/cpu/cpu_work.h"
#include "graph/node_name.h"

enum { BLOCK_BYTES = 256 * 1024 };

void cpu_run_nothing(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  (void)args;
}

/* Kernels that get their block ------------------------------------------------------------------------------------- */

void cpu_run_block(rondo_blocks blocks, void *const *args) {
  const cpu_block_work *work = args[0];
  rondo_thread_block block = work->block;
  uint32_t piece = 0;
  if (block.shared_bytes > 0) block.shared = cpu_shared_memory_take(work->memory, &piece);
  work->function(blocks, &block, work->args);
  if (block.shared_bytes > 0) cpu_shared_memory_give(work->memory, piece);
}

rondo_cpu_function cpu_prepare_block(cpu_device *device, const rondo_kernel_node *work, void **args, void *values,
                                     void *const **out_args) {
  const rondo_kernel *kernel = work->kernel;
  cpu_block_work *block =
      (void *)((unsigned char *)values + cpu_align(kernel->argument_bytes, alignof(cpu_block_work)));
  rondo_launch_config config;
  (void)rondo_launch_config_resolve(work, &config);
  *block = (cpu_block_work){.function = kernel->cpu_block,
                            .args = args,
                            .block = {.threads = config.block, .shared_bytes = config.shared_bytes},
                            .memory = atomic_load_explicit(&device->shared_memory, memory_order_acquire)};
  assert(block->memory != NULL); /* kernel_prepare made it */
  args[kernel->parameter_count] = block;
  *out_args = &args[kernel->parameter_count];
  return cpu_run_block;
}

/* Host functions --------------------------------------------------------------------------------------------------- */

static void fail_host_function(const cpu_host_work *work, rondo_status status) {
  char label[RONDO_LABEL_BYTES];
  (void)rondo_fail_node(
      RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED, work->is_node ? work->where.number : RONDO_NO_NODE,
      "%s: %s failed with %s: fix the cause, or let the function return RONDO_OK", (*work->queue)->label,
      rondo_kind_label(label, RONDO_NODE_HOST, work->name, work->is_node ? &work->where : NULL),
      rondo_status_name(status));
  rondo_saved_error failure;
  rondo_error_save(&failure);
  rondo_first_failure_keep(&(*work->queue)->failure, &failure);
}

/* A waiting thread may run it too. The thread's last error stays, because its wait may succeed. */
void cpu_run_host(rondo_blocks blocks, void *const *args) {
  const cpu_host_work *work = args[0];
  rondo_saved_error before;
  (void)blocks;
  rondo_error_save(&before);
  rondo_callback_enter();
  const rondo_status status = work->host.function(work->host.user);
  rondo_callback_leave();
  if (status != RONDO_OK) fail_host_function(work, status);
  rondo_error_restore(&before);
}

/* Copies and fills ------------------------------------------------------------------------------------------------- */

/* How many rows of `width` bytes are a block. */
static uint64_t rows_a_block(size_t width) { return width >= BLOCK_BYTES ? 1 : BLOCK_BYTES / width; }

static uint64_t block_count(size_t width, uint64_t rows) {
  if (rows == 1) return (width + BLOCK_BYTES - 1) / BLOCK_BYTES;
  const uint64_t each = rows_a_block(width);
  return (rows + each - 1) / each;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static void copy_row_part(const rondo_copy *copy, rondo_blocks blocks) {
  const size_t first = blocks.first * BLOCK_BYTES;
  const size_t last = smaller(blocks.last * BLOCK_BYTES, copy->width);
  memcpy((char *)copy->dst + first, (const char *)copy->src + first, last - first);
}

void cpu_run_copy(rondo_blocks blocks, void *const *args) {
  const rondo_copy *copy = args[0];
  const size_t height = copy->height, rows = height * copy->depth;
  if (rows == 1) {
    copy_row_part(copy, blocks);
    return;
  }
  const size_t each = (size_t)rows_a_block(copy->width);
  const size_t last = smaller(blocks.last * each, rows);
  for (size_t row = blocks.first * each; row < last; row++) {
    const size_t y = row % height, z = row / height;
    memcpy((char *)copy->dst + z * copy->dst_slice_pitch + y * copy->dst_pitch,
           (const char *)copy->src + z * copy->src_slice_pitch + y * copy->src_pitch, copy->width);
  }
}

static void fill_elements(char *dst, uint32_t value, uint32_t element_bytes, size_t count) {
  if (element_bytes == 1) {
    memset(dst, (int)(value & 0xff), count);
  } else if (element_bytes == 2) {
    const uint16_t element = (uint16_t)value;
    for (size_t i = 0; i < count; i++) memcpy(dst + i * sizeof element, &element, sizeof element);
  } else {
    for (size_t i = 0; i < count; i++) memcpy(dst + i * sizeof value, &value, sizeof value);
  }
}

void cpu_run_fill(rondo_blocks blocks, void *const *args) {
  const rondo_fill *fill = args[0];
  const size_t rows = fill->height, row_bytes = fill->width * fill->element_bytes;
  if (rows == 1) {
    const size_t first = blocks.first * BLOCK_BYTES; /* a multiple of the size of any element */
    const size_t last = smaller(blocks.last * BLOCK_BYTES, row_bytes);
    fill_elements((char *)fill->dst + first, fill->value, fill->element_bytes, (last - first) / fill->element_bytes);
    return;
  }
  const size_t each = (size_t)rows_a_block(row_bytes);
  const size_t last = smaller(blocks.last * each, rows);
  for (size_t row = blocks.first * each; row < last; row++)
    fill_elements((char *)fill->dst + row * fill->pitch, fill->value, fill->element_bytes, fill->width);
}

cpu_description cpu_describe(const rondo_node_params *params) {
  const rondo_copy *copy = &params->as.copy;
  const rondo_fill *fill = &params->as.fill;
  if (params->kind == RONDO_NODE_COPY)
    return (cpu_description){cpu_run_copy, block_count(copy->width, (uint64_t)copy->height * copy->depth), copy,
                             sizeof *copy};
  return (cpu_description){cpu_run_fill, block_count(fill->width * fill->element_bytes, fill->height), fill,
                           sizeof *fill};
}

/* SPDX-License-Identifier: MIT
 * See symbol_memory.h. A kernel that is being freed waits for the lock to leave the table, so one that is found there
 * can be retained, unless its last reference is gone.
 */
#include "memory/symbol_memory.h"

#include <inttypes.h>

#include "graph/graph.h"
#include "memory/node_addresses.h"

/* A symbol in the table of allocations, and in the index of symbols. */
typedef struct symbol_record {
  rondo_allocation allocation;
  rondo_kernel *kernel;
  uint32_t index_node; /* in rondo_device_memory.symbols */
} symbol_record;

/* Leaves the tables with all symbols of the kernel. Work that was enqueued keeps the code that has them. */
static void forget_symbols(rondo_kernel *kernel) {
  rondo_device_memory *memory = rondo_device_memory_made(kernel->device);
  for (uint32_t i = 0; i < kernel->symbol_count; i++) {
    symbol_record *record = kernel->symbols[i].known;
    if (record == NULL) continue;
    pthread_mutex_lock(&memory->lock);
    rondo_range_leave(&memory->symbols, record->index_node);
    rondo_allocation_table_remove(&memory->table, &record->allocation);
    rondo_allocation_table_note_freed(&memory->table, &record->allocation);
    rondo_memory_note_ended(memory);
    pthread_mutex_unlock(&memory->lock);
    rondo_release(&memory->allocator, record, 1, sizeof *record);
  }
}

/* Under the lock. */
static rondo_status enter(rondo_device_memory *memory, rondo_kernel *kernel, rondo_code_symbol *symbol,
                          symbol_record *record) {
  *record = (symbol_record){
      .allocation = {
          .address = symbol->address, .bytes = symbol->bytes, .name = symbol->name, .kind = RONDO_ALLOCATION_SYMBOL}};
  record->kernel = kernel;
  record->index_node =
      rondo_range_enter(&memory->allocator, &memory->symbols, symbol->address, symbol->bytes, 0, record);
  if (record->index_node == 0) {
    rondo_range_leave(&memory->symbols, 0);
    return RONDO_OUT_OF_MEMORY;
  }
  rondo_allocation_table_insert(&memory->allocator, &memory->table, &record->allocation);
  kernel->forget_symbols = forget_symbols;
  symbol->known = record;
  return RONDO_OK;
}

static rondo_status make_known(rondo_device_memory *memory, rondo_kernel *kernel, rondo_code_symbol *symbol) {
  symbol_record *record;
  RONDO_TRY(rondo_allocate_items(&memory->allocator, 1, sizeof *record, &record));
  pthread_mutex_lock(&memory->lock);
  const bool is_new = symbol->known == NULL;
  const rondo_status status = is_new ? enter(memory, kernel, symbol, record) : RONDO_OK;
  pthread_mutex_unlock(&memory->lock);
  if (!is_new || status != RONDO_OK) rondo_release(&memory->allocator, record, 1, sizeof *record);
  if (status == RONDO_OK) return RONDO_OK;
  return rondo_fail(status, RONDO_REASON_ALLOCATION_FAILED, "no host memory is left to note symbol '%s' of kernel '%s'",
                    symbol->name, kernel->name);
}

static rondo_status find_symbol(const char *call, const rondo_kernel *kernel, const char *name,
                                rondo_code_symbol **out) {
  *out = rondo_kernel_symbol_named(kernel, name);
  if (*out == NULL)
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME,
                      "%s: kernel '%s' has no symbol '%.80s' among its %" PRIu32
                      ": list it in rondo_kernel_options.symbols",
                      call, kernel->name, name, kernel->symbol_count);
  if ((*out)->address != NULL) return RONDO_OK;
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_NO_FUNCTION,
                    "%s: symbol '%s' of kernel '%s' has no address on device '%s': give its rondo_symbol.cpu for CPU "
                    "devices, and the kernel's CUDA code for GPUs",
                    call, name, kernel->name, kernel->device->name);
}

rondo_status rondo_kernel_symbol(rondo_kernel *kernel, const char *name, void **out_address, size_t *out_bytes) {
  const char *const call = "rondo_kernel_symbol";
  rondo_code_symbol *symbol;
  rondo_device_memory *memory;
  if (out_bytes != NULL) *out_bytes = 0;
  RONDO_TRY(rondo_require(call, "out_address", out_address));
  *out_address = NULL;
  RONDO_TRY(rondo_require(call, "the kernel", kernel));
  RONDO_TRY(rondo_require(call, "name", name));
  RONDO_TRY(rondo_refuse_in_callback(call));
  RONDO_TRY(rondo_device_require_own(call, kernel->device));
  RONDO_TRY(find_symbol(call, kernel, name, &symbol));
  RONDO_TRY(rondo_fail_context(rondo_device_memory_of(kernel->device, &memory), "%s", call));
  RONDO_TRY(rondo_fail_context(make_known(memory, kernel, symbol), "%s", call));
  *out_address = symbol->address;
  if (out_bytes != NULL) *out_bytes = symbol->bytes;
  return RONDO_OK;
}

/* Retaining -------------------------------------------------------------------------------------------------------- */

/* The kernel of the symbol at the address, with a reference; or NULL. */
static rondo_kernel *take_kernel(rondo_device_memory *memory, const void *address) {
  rondo_kernel *kernel = NULL;
  pthread_mutex_lock(&memory->lock);
  const symbol_record *record = rondo_range_around(&memory->symbols, address);
  if (record != NULL && rondo_kernel_try_retain(record->kernel)) kernel = record->kernel;
  pthread_mutex_unlock(&memory->lock);
  return kernel;
}

rondo_status rondo_symbols_retain_slowly(rondo_graph *graph, const rondo_device *device,
                                         const rondo_node_params *params) {
  rondo_device_memory *memory = rondo_device_memory_made(device);
  rondo_node_address named[RONDO_MAX_PARAMETERS];
  const size_t count = rondo_node_addresses(params, named);
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < count && status == RONDO_OK; i++) {
    rondo_kernel *kernel = take_kernel(memory, named[i].address);
    if (kernel == NULL) continue;
    status = rondo_graph_retain_kernel(graph, kernel);
    rondo_kernel_release(kernel);
  }
  return status;
}

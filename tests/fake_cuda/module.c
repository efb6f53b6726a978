/* SPDX-License-Identifier: MIT
 * Code of the fake driver: modules made from images of the fake compiler, functions by name, and the CPU functions that
 * run for them. A function is bound to the CPU function of its name when it is looked up, or else at its first use, so
 * that a later kernel of the same name does not change it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda/fake.h"
#include "fake_cuda/image.h"

static fake_kernel *kernels; /* the newest first */

static bool describes(const fake_kernel *kernel, const char *name, rondo_cpu_function function,
                      rondo_cpu_block_function block_function, size_t count, const rondo_parameter *parameters) {
  return strcmp(kernel->name, name) == 0 && kernel->function == function && kernel->block_function == block_function &&
         kernel->count == count &&
         (count == 0 || memcmp(kernel->parameters, parameters, count * sizeof *parameters) == 0);
}

static void lay_out(fake_kernel *kernel) {
  for (size_t i = 0; i < kernel->count; i++) {
    const size_t alignment = kernel->parameters[i].alignment;
    kernel->offsets[i] = (kernel->bytes + alignment - 1) / alignment * alignment;
    kernel->bytes = kernel->offsets[i] + kernel->parameters[i].bytes;
  }
}

static void register_kernel(const char *name, rondo_cpu_function function, rondo_cpu_block_function block_function,
                            size_t count, const rondo_parameter *parameters) {
  fake_kernel **place = &kernels;
  while (*place != NULL && !describes(*place, name, function, block_function, count, parameters))
    place = &(*place)->next;
  fake_kernel *kernel = *place;
  if (kernel != NULL) {
    *place = kernel->next;
  } else {
    kernel = fake_allocate(1, sizeof *kernel);
    kernel->name = fake_copy_of(name, strlen(name) + 1);
    kernel->function = function;
    kernel->block_function = block_function;
    kernel->count = count;
    if (count > 0) memcpy(kernel->parameters, parameters, count * sizeof *parameters);
    kernel->faults = strncmp(name, "fault_", strlen("fault_")) == 0;
    lay_out(kernel);
  }
  kernel->next = kernels;
  kernels = kernel;
}

static bool are_parameters_good(size_t count, const rondo_parameter *parameters) {
  if (count > RONDO_MAX_PARAMETERS || (count > 0 && parameters == NULL)) return false;
  for (size_t i = 0; i < count; i++) {
    const uint32_t alignment = parameters[i].alignment;
    if (parameters[i].bytes == 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) return false;
  }
  return true;
}

/* No call of the driver's: it is neither counted nor made to fail. */
cu_result fake_test_kernel(const char *name, rondo_cpu_function function, rondo_cpu_block_function block_function,
                           size_t count, const rondo_parameter *parameters) {
  if (name == NULL || (function == NULL && block_function == NULL) || !are_parameters_good(count, parameters))
    return CU_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  register_kernel(name, function, block_function, count, parameters);
  pthread_mutex_unlock(&fake_lock);
  return CU_OK;
}

fake_kernel *fake_function_kernel(fake_function *function) {
  fake_kernel *kernel = kernels;
  if (function->kernel != NULL) return function->kernel;
  while (kernel != NULL && strcmp(kernel->name, function->name) != 0) kernel = kernel->next;
  function->kernel = kernel;
  return kernel;
}

fake_cuda_attributes fake_kernel_ran(const char *name) {
  const fake_kernel *kernel = kernels;
  while (kernel != NULL && strcmp(kernel->name, name) != 0) kernel = kernel->next;
  return kernel != NULL ? kernel->ran : (fake_cuda_attributes){0};
}

void fake_function_release(fake_function *function) {
  if (--function->references > 0) return;
  free(function->name);
  free(function);
}

void fake_module_free(fake_module *module) {
  while (module->globals != NULL) {
    fake_global *global = module->globals;
    module->globals = global->next;
    global->symbol->modules--;
    free(global);
  }
  while (module->functions != NULL) {
    fake_function *function = module->functions;
    module->functions = function->next;
    fake_object_remove(&function->object);
    fake_function_release(function);
  }
  fake_object_remove(&module->object);
  free(module->image);
  free(module);
}

/* Variables -------------------------------------------------------------------------------------------------------- */

static fake_symbol *symbols;

static fake_symbol *find_symbol(const char *name) {
  fake_symbol *symbol = symbols;
  while (symbol != NULL && strcmp(symbol->name, name) != 0) symbol = symbol->next;
  return symbol;
}

bool fake_symbol_contains(uint64_t address) {
  for (const fake_symbol *symbol = symbols; symbol != NULL; symbol = symbol->next)
    if (symbol->modules > 0 && address - fake_handle(symbol->address) < symbol->bytes) return true;
  return false;
}

/* No call of the driver's, like the one for kernels. The first registration of a name counts. */
cu_result fake_test_symbol(const char *name, void *address, size_t bytes) {
  if (name == NULL || address == NULL || bytes == 0) return CU_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  if (find_symbol(name) == NULL) {
    fake_symbol *symbol = fake_allocate(1, sizeof *symbol);
    *symbol = (fake_symbol){symbols, fake_copy_of(name, strlen(name) + 1), address, bytes, 0};
    symbols = symbol;
  }
  pthread_mutex_unlock(&fake_lock);
  return CU_OK;
}

static void note_global(fake_module *module, fake_symbol *symbol) {
  for (const fake_global *at = module->globals; at != NULL; at = at->next)
    if (at->symbol == symbol) return;
  fake_global *global = fake_allocate(1, sizeof *global);
  *global = (fake_global){module->globals, symbol};
  module->globals = global;
  symbol->modules++;
}

cu_result fake_module_get_global(cu_address *address, size_t *bytes, cu_module handle, const char *name) {
  cu_result code = fake_begin(CALL_module_get_global, FAKE_IN_CONTEXT);
  if (code == CU_OK && name == NULL) code = CU_INVALID_VALUE;
  fake_module *module = code == CU_OK ? fake_need(FAKE_CUDA_MODULE, fake_handle(handle)) : NULL;
  if (code == CU_OK && module == NULL) code = CU_INVALID_HANDLE;
  fake_symbol *symbol = code == CU_OK ? find_symbol(name) : NULL;
  if (code == CU_OK && symbol == NULL) code = CU_NOT_FOUND;
  if (code != CU_OK) return fake_end(code);
  note_global(module, symbol);
  if (address != NULL) *address = fake_handle(symbol->address);
  if (bytes != NULL) *bytes = symbol->bytes;
  return fake_end(CU_OK);
}

cu_result fake_function_get_module(cu_module *module, cu_function handle) {
  cu_result code = fake_begin(CALL_function_get_module, FAKE_IN_CONTEXT);
  if (code == CU_OK && module == NULL) code = CU_INVALID_VALUE;
  const fake_function *function = code == CU_OK ? fake_need(FAKE_CUDA_FUNCTION, fake_handle(handle)) : NULL;
  if (code == CU_OK && function == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) *module = fake_as(cu_module, function->module);
  return fake_end(code);
}

/* Loading ---------------------------------------------------------------------------------------------------------- */

/* Fills the error log that the caller may have given. */
static void write_log(unsigned count, const cu_jit_option *options, void **values) {
  static const char text[] = "error: the image was not made by the fake compiler";
  char *log = NULL;
  size_t *bytes = NULL;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == CU_JIT_ERROR_LOG) log = values[i];
    if (options[i] == CU_JIT_ERROR_LOG_BYTES) bytes = (size_t *)&values[i];
  }
  if (log == NULL || bytes == NULL || *bytes == 0) return;
  (void)snprintf(log, *bytes, "%s", text);
  *bytes = strlen(log) + 1;
}

static bool begins_with(const char *text, const char *beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

static cu_result load(cu_module *out, const char *image, unsigned count, const cu_jit_option *options, void **values) {
  if (!begins_with(image, FAKE_IMAGE_HEAD) && !begins_with(image, FAKE_PTX_HEAD)) {
    write_log(count, options, values);
    return CU_INVALID_IMAGE;
  }
  fake_module *module = fake_allocate(1, sizeof *module);
  module->image = fake_copy_of(image, strlen(image) + 1);
  fake_object_add(&module->object, FAKE_CUDA_MODULE, fake_self.current);
  *out = fake_as(cu_module, module);
  return CU_OK;
}

cu_result fake_module_load(cu_module *out, const void *image, unsigned option_count, cu_jit_option *options,
                           void **values) {
  cu_result code = fake_begin(CALL_module_load, FAKE_IN_CONTEXT);
  if (code == CU_OK && (out == NULL || image == NULL || (option_count > 0 && (options == NULL || values == NULL))))
    code = CU_INVALID_VALUE;
  if (code == CU_OK) code = fake_gate_unsafe();
  if (code == CU_OK) fake_context_drain(fake_self.current); /* docs/cuda-probes.md, 22 */
  if (code == CU_OK) code = load(out, image, option_count, options, values);
  return fake_end(code);
}

cu_result fake_module_unload(cu_module handle) {
  cu_result code = fake_begin(CALL_module_unload, FAKE_IN_CONTEXT | FAKE_ALL_THE_SAME);
  fake_module *module = code == CU_OK ? fake_need(FAKE_CUDA_MODULE, fake_handle(handle)) : NULL;
  if (code == CU_OK && module == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) code = fake_gate_unsafe();
  if (code == CU_OK) fake_context_drain(fake_self.current);
  if (code == CU_OK) fake_module_free(module);
  return fake_end(code);
}

/* Whether PTX has an entry of this name. */
static bool has_entry(const char *text, const char *name) {
  static const char entry[] = ".entry ";
  const size_t length = strlen(name);
  while ((text = strstr(text, entry)) != NULL) {
    text += sizeof entry - 1;
    if (strncmp(text, name, length) == 0 && (text[length] == '(' || text[length] == '\n')) return true;
  }
  return false;
}

/* Whether a line of the image is this name. */
static bool has_name(const char *image, const char *name) {
  const size_t length = strlen(name);
  if (begins_with(image, FAKE_PTX_HEAD)) return has_entry(image, name);
  const char *line = strchr(image, '\n');
  while (line != NULL && line[1] != '\0') {
    line++;
    if (length > 0 && strncmp(line, name, length) == 0 && (line[length] == '\n' || line[length] == '\0')) return true;
    line = strchr(line, '\n');
  }
  return false;
}

static bool is_named(const fake_function *function, const char *beginning) {
  return strncmp(function->name, beginning, strlen(beginning)) == 0;
}

static int static_shared_of(const fake_function *function) {
  return is_named(function, "static_") ? FAKE_STATIC_SHARED : 0;
}

static fake_function *find_function(fake_module *module, const char *name) {
  fake_function *function = module->functions;
  while (function != NULL && strcmp(function->name, name) != 0) function = function->next;
  if (function != NULL || !has_name(module->image, name)) return function;
  function = fake_allocate(1, sizeof *function);
  function->references = 1;
  function->name = fake_copy_of(name, strlen(name) + 1);
  function->max_dynamic_shared = FAKE_DEFAULT_SHARED - static_shared_of(function);
  function->module = module;
  function->next = module->functions;
  module->functions = function;
  fake_object_add(&function->object, FAKE_CUDA_FUNCTION, module->object.context);
  return function;
}

cu_result fake_module_get_function(cu_function *out, cu_module handle, const char *name) {
  cu_result code = fake_begin(CALL_module_get_function, FAKE_IN_CONTEXT);
  if (code == CU_OK && (out == NULL || name == NULL)) code = CU_INVALID_VALUE;
  fake_module *module = code == CU_OK ? fake_need(FAKE_CUDA_MODULE, fake_handle(handle)) : NULL;
  if (code == CU_OK && module == NULL) code = CU_INVALID_HANDLE;
  if (code != CU_OK) return fake_end(code);
  fake_function *function = find_function(module, name);
  if (function == NULL) return fake_end(CU_NOT_FOUND);
  (void)fake_function_kernel(function);
  *out = fake_as(cu_function, function);
  return fake_end(CU_OK);
}

cu_result fake_function_load(cu_function handle) {
  cu_result code = fake_begin(CALL_function_load, FAKE_IN_CONTEXT);
  if (code == CU_OK && fake_need(FAKE_CUDA_FUNCTION, fake_handle(handle)) == NULL) code = CU_INVALID_HANDLE;
  return fake_end(code);
}

/* Threads of a block are fewer for a kernel named heavy_..., and one named static_... has static shared memory. */
static cu_result read_attribute(const fake_function *function, cu_function_attribute attribute, int *value) {
  switch (attribute) {
    case CU_FUNCTION_ATTRIBUTE_MAX_THREADS:
      *value = is_named(function, "heavy_") ? FAKE_MAX_HEAVY_THREADS : FAKE_MAX_BLOCK_THREADS;
      return CU_OK;
    case CU_FUNCTION_ATTRIBUTE_SHARED_BYTES:
      *value = static_shared_of(function);
      return CU_OK;
    case CU_FUNCTION_ATTRIBUTE_MAX_DYNAMIC_SHARED_BYTES:
      *value = function->max_dynamic_shared;
      return CU_OK;
    default:
      return CU_INVALID_VALUE;
  }
}

cu_result fake_function_get_attribute(int *value, cu_function_attribute attribute, cu_function handle) {
  cu_result code = fake_begin(CALL_function_get_attribute, FAKE_IN_CONTEXT);
  if (code == CU_OK && value == NULL) code = CU_INVALID_VALUE;
  const fake_function *function = code == CU_OK ? fake_need(FAKE_CUDA_FUNCTION, fake_handle(handle)) : NULL;
  if (code == CU_OK && function == NULL) code = CU_INVALID_HANDLE;
  return fake_end(code == CU_OK ? read_attribute(function, attribute, value) : code);
}

int fake_function_blocks(const fake_function *function, unsigned threads, size_t shared_bytes) {
  enum { THREADS = 2048, BLOCKS = 32, WARP = 32, SHARED = 228 << 10, RESERVED = 1 << 10 };
  const unsigned by_threads = THREADS / ((threads + WARP - 1) / WARP * WARP);
  const size_t each = shared_bytes + (size_t)static_shared_of(function) + RESERVED;
  const size_t blocks = SHARED / each < by_threads ? SHARED / each : by_threads;
  return blocks < BLOCKS ? (int)blocks : BLOCKS;
}

cu_result fake_function_most_blocks(int *blocks, cu_function handle, int threads, size_t shared_bytes) {
  cu_result code = fake_begin(CALL_function_most_blocks, FAKE_IN_CONTEXT);
  const fake_function *function = code == CU_OK ? fake_need(FAKE_CUDA_FUNCTION, fake_handle(handle)) : NULL;
  if (code == CU_OK && function == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK && (blocks == NULL || threads <= 0 || threads > FAKE_MAX_BLOCK_THREADS)) code = CU_INVALID_VALUE;
  if (code == CU_OK) *blocks = fake_function_blocks(function, (unsigned)threads, shared_bytes);
  return fake_end(code);
}

cu_result fake_function_set_attribute(cu_function handle, cu_function_attribute attribute, int value) {
  cu_result code = fake_begin(CALL_function_set_attribute, FAKE_IN_CONTEXT);
  fake_function *function = code == CU_OK ? fake_need(FAKE_CUDA_FUNCTION, fake_handle(handle)) : NULL;
  if (code == CU_OK && function == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK && attribute != CU_FUNCTION_ATTRIBUTE_MAX_DYNAMIC_SHARED_BYTES) code = CU_INVALID_VALUE;
  if (code == CU_OK && (value < 0 || value > FAKE_MAX_SHARED - static_shared_of(function))) code = CU_INVALID_VALUE;
  if (code == CU_OK) function->max_dynamic_shared = value;
  return fake_end(code);
}

cu_result fake_function_param_info(cu_function handle, size_t index, size_t *offset, size_t *bytes) {
  cu_result code = fake_begin(CALL_function_param_info, FAKE_ANYWHERE);
  if (code == CU_OK && offset == NULL) code = CU_INVALID_VALUE;
  fake_function *function = code == CU_OK ? fake_need(FAKE_CUDA_FUNCTION, fake_handle(handle)) : NULL;
  if (code == CU_OK && function == NULL) code = CU_INVALID_HANDLE;
  if (code != CU_OK) return fake_end(code);
  const fake_kernel *kernel = fake_function_kernel(function);
  if (kernel == NULL) return fake_end(CU_NOT_FOUND);
  if (index >= kernel->count) return fake_end(CU_INVALID_VALUE);
  *offset = kernel->offsets[index];
  if (bytes != NULL) *bytes = kernel->parameters[index].bytes;
  return fake_end(CU_OK);
}

cu_result fake_function_get_name(const char **name, cu_function handle) {
  cu_result code = fake_begin(CALL_function_get_name, FAKE_ANYWHERE);
  if (code == CU_OK && name == NULL) code = CU_INVALID_VALUE;
  const fake_function *function = code == CU_OK ? fake_need(FAKE_CUDA_FUNCTION, fake_handle(handle)) : NULL;
  if (code == CU_OK && function == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) *name = function->name;
  return fake_end(code);
}

/* There are no library objects here. */
cu_result fake_kernel_get_function(cu_function *function, cu_kernel kernel) {
  const cu_result code = fake_begin(CALL_kernel_get_function, FAKE_IN_CONTEXT);
  (void)function;
  (void)kernel;
  return fake_end(code == CU_OK ? CU_INVALID_HANDLE : code);
}

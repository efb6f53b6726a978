/* SPDX-License-Identifier: MIT
 * Graphs from JSON (<rondo/graph.h> describes the format). The text comes from outside and may be anything. Every field
 * is looked up by name and has a type and a range, and unknown fields are refused. The length of the text bounds what
 * the reader allocates, except for the holes that removed nodes leave, which have a bound of their own.
 */
#include "graph/graph_json_read.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/json_parse.h"
#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/graph_check.h"
#include "graph/launch_config.h"
#include "graph/node.h"
#include "graph/node_fields.h"
#include "graph/node_params.h"
#include "graph/semaphore_data.h"

#define MAX_NODES (UINT32_C(1) << 20) /* in a document, with all child graphs */
#define MAX_HOLES (UINT32_C(1) << 16)
#define SHOWN_BYTES 64 /* of text from the document, in a message */
static const rondo_node_fields no_fields = {0};

typedef struct json_reader {
  rondo_allocator allocator;
  RONDO_ARRAY(rondo_kernel *) kernels;
  uint32_t nodes, holes; /* so far */
  rondo_graph *graph;    /* whose nodes are being read */
  uintptr_t next_symbol; /* the address of the next symbol */
  unsigned depth;        /* of the child graph that is being read */
} json_reader;

/* Fields ---------------------------------------------------------------------------------------------------------- */

static rondo_status fail_field(const char *key, const char *what) {
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "field '%s' %s", key, what);
}

/* Text from the document, made printable for messages. */
static const char *shown(char buffer[SHOWN_BYTES], const char *text) {
  rondo_json_escape(buffer, SHOWN_BYTES, text);
  return buffer;
}

static rondo_status require_object(const rondo_json_value *value) {
  if (rondo_json_is(value, RONDO_JSON_OBJECT)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "an object is expected here");
}

static bool is_listed(const char *key, const char *const *keys) {
  while (*keys != NULL && strcmp(key, *keys) != 0) keys++;
  return *keys != NULL;
}

static bool is_field(const char *key, rondo_node_fields fields) {
  size_t i = 0;
  while (i < fields.count && strcmp(key, fields.items[i].name) != 0) i++;
  return i < fields.count;
}

/* Every key of the object must be in the list, which ends with NULL, or name one of the fields. */
static rondo_status check_keys(const rondo_json_value *object, const char *const *keys, rondo_node_fields fields) {
  RONDO_TRY(require_object(object));
  const rondo_json_value *member = rondo_json_first(object);
  for (size_t i = 0; i < object->count; i++, member = rondo_json_next(rondo_json_next(member))) {
    char buffer[SHOWN_BYTES];
    if (!is_listed(member->as.string, keys) && !is_field(member->as.string, fields))
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "field '%s' is not known here",
                        shown(buffer, member->as.string));
  }
  return RONDO_OK;
}

/* `key` names the field only in messages. */
static rondo_status read_integer(const rondo_json_value *value, const char *key, uint64_t max, uint64_t *out) {
  *out = 0;
  if (value == NULL) return fail_field(key, "is missing");
  const bool is_unsigned = rondo_json_is(value, RONDO_JSON_UNSIGNED);
  if (!is_unsigned && !rondo_json_is(value, RONDO_JSON_INTEGER)) return fail_field(key, "must be a whole number");
  if (!is_unsigned && value->as.integer < 0)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OUT_OF_RANGE,
                      "field '%s' is %" PRId64 ": it must be between 0 and %" PRIu64, key, value->as.integer, max);
  *out = is_unsigned ? value->as.unsigned_integer : (uint64_t)value->as.integer;
  if (*out > max)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OUT_OF_RANGE,
                      "field '%s' is %" PRIu64 ": it must be between 0 and %" PRIu64, key, *out, max);
  return RONDO_OK;
}

static rondo_status read_u32(const rondo_json_value *value, const char *key, uint32_t *out) {
  uint64_t integer;
  RONDO_TRY(read_integer(value, key, UINT32_MAX, &integer));
  *out = (uint32_t)integer;
  return RONDO_OK;
}

static rondo_status get_u32(const rondo_json_value *object, const char *key, uint32_t *out) {
  return read_u32(rondo_json_get(object, key), key, out);
}

static rondo_status get_i32(const rondo_json_value *object, const char *key, int32_t *out) {
  const rondo_json_value *value = rondo_json_get(object, key);
  const bool is_negative = rondo_json_is(value, RONDO_JSON_INTEGER) && value->as.integer < 0;
  uint64_t integer;
  if (is_negative && value->as.integer < INT32_MIN)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OUT_OF_RANGE,
                      "field '%s' is %" PRId64 ": it must be between %" PRId32 " and %" PRId32, key, value->as.integer,
                      INT32_MIN, INT32_MAX);
  if (!is_negative) RONDO_TRY(read_integer(value, key, INT32_MAX, &integer));
  *out = is_negative ? (int32_t)value->as.integer : (int32_t)integer;
  return RONDO_OK;
}

static rondo_status get_text(const rondo_json_value *object, const char *key, const char **out) {
  const rondo_json_value *value = rondo_json_get(object, key);
  *out = rondo_json_text_of(value);
  if (*out != NULL) return RONDO_OK;
  return fail_field(key, value == NULL ? "is missing" : "must be a string");
}

static rondo_status get_flag(const rondo_json_value *object, const char *key, bool *out) {
  const rondo_json_value *value = rondo_json_get(object, key);
  if (!rondo_json_is(value, RONDO_JSON_BOOLEAN))
    return fail_field(key, value == NULL ? "is missing" : "must be true or false");
  *out = value->as.boolean;
  return RONDO_OK;
}

static rondo_status get_array(const rondo_json_value *object, const char *key, const rondo_json_value **out) {
  *out = rondo_json_get(object, key);
  if (rondo_json_is(*out, RONDO_JSON_ARRAY)) return RONDO_OK;
  return fail_field(key, *out == NULL ? "is missing" : "must be an array");
}

static int hex_digit(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

/* "0x" and 1 to 16 digits. */
static rondo_status read_address(const rondo_json_value *value, const char *key, uintptr_t *out) {
  const char *text = rondo_json_text_of(value);
  const size_t length = text == NULL ? 0 : strlen(text);
  uintptr_t address = 0;
  bool right = length >= 3 && length <= 2 + 2 * sizeof address && text[0] == '0' && text[1] == 'x';
  for (size_t i = 2; right && i < length; i++) {
    const int digit = hex_digit(text[i]);
    right = digit >= 0;
    address = address << 4 | (uintptr_t)(digit & 15);
  }
  if (!right) return fail_field(key, "must be an address like \"0x7f00\"");
  *out = address;
  return RONDO_OK;
}

/* NULL if the field is missing; addresses are optional. */
static rondo_status get_address(const rondo_json_value *object, const char *key, void **out) {
  const rondo_json_value *value = rondo_json_get(object, key);
  uintptr_t address = 0;
  if (value != NULL) RONDO_TRY(read_address(value, key, &address));
  memcpy(out, &address, sizeof *out);
  return RONDO_OK;
}

static rondo_status get_kernel(const json_reader *reader, const rondo_json_value *object, rondo_kernel **out) {
  uint32_t index;
  RONDO_TRY(get_u32(object, "kernel", &index));
  if (index >= reader->kernels.count)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OUT_OF_RANGE,
                      "field 'kernel' is %" PRIu32 " but the document has %zu kernels", index, reader->kernels.count);
  *out = reader->kernels.items[index];
  return RONDO_OK;
}

/* {"kernel":0, "symbol":"table", "offset":16} */
static rondo_status read_symbol_address(json_reader *reader, const rondo_json_value *value, uintptr_t *out) {
  static const char *const keys[] = {"kernel", "symbol", "offset", NULL};
  rondo_kernel *kernel;
  const char *name;
  uint64_t offset;
  char buffer[SHOWN_BYTES];
  RONDO_TRY(check_keys(value, keys, no_fields));
  RONDO_TRY(get_kernel(reader, value, &kernel));
  RONDO_TRY(get_text(value, "symbol", &name));
  const rondo_code_symbol *symbol = rondo_kernel_symbol_named(kernel, name);
  if (symbol == NULL)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME, "the kernel has no symbol '%s'",
                      shown(buffer, name));
  if (symbol->bytes == 0) return fail_field("symbol", "names a symbol of 0 bytes");
  RONDO_TRY(read_integer(rondo_json_get(value, "offset"), "offset", symbol->bytes - 1, &offset));
  RONDO_TRY(rondo_graph_retain_kernel(reader->graph, kernel));
  *out = (uintptr_t)symbol->address + (uintptr_t)offset;
  return RONDO_OK;
}

/* An address of memory: a number, or an offset in a symbol. */
static rondo_status read_memory_address(json_reader *reader, const rondo_json_value *value, const char *key,
                                        uintptr_t *out) {
  if (!rondo_json_is(value, RONDO_JSON_OBJECT)) return read_address(value, key, out);
  return rondo_fail_context(read_symbol_address(reader, value, out), "%s", key);
}

static rondo_status get_memory_address(json_reader *reader, const rondo_json_value *object, const char *key,
                                       void **out) {
  const rondo_json_value *value = rondo_json_get(object, key);
  uintptr_t address = 0;
  if (value != NULL) RONDO_TRY(read_memory_address(reader, value, key, &address));
  memcpy(out, &address, sizeof *out);
  return RONDO_OK;
}

/* Kernels --------------------------------------------------------------------------------------------------------- */

static rondo_status read_access(const rondo_json_value *object, rondo_access *out) {
  const char *name;
  RONDO_TRY(get_text(object, "access", &name));
  for (int access = RONDO_ACCESS_SCALAR; access < RONDO_ACCESS_COUNT; access++) {
    if (strcmp(name, rondo_access_names[access]) != 0) continue;
    *out = (rondo_access)access;
    return RONDO_OK;
  }
  return fail_field("access", "must be \"scalar\", \"read\", \"write\" or \"read_write\"");
}

static rondo_status read_parameter(const rondo_json_value *object, rondo_parameter *out) {
  static const char *const keys[] = {"access", "bytes", "alignment", NULL};
  RONDO_TRY(check_keys(object, keys, no_fields));
  RONDO_TRY(read_access(object, &out->access));
  RONDO_TRY(get_u32(object, "bytes", &out->bytes));
  RONDO_TRY(get_u32(object, "alignment", &out->alignment));
  return out->bytes > 0 ? RONDO_OK : fail_field("bytes", "is 0");
}

/* Optional. */
static rondo_status read_symbols(const rondo_json_value *object, rondo_symbol *list, rondo_kernel_options *out) {
  static const char *const keys[] = {"name", "bytes", NULL};
  const rondo_json_value *symbols;
  if (rondo_json_get(object, "symbols") == NULL) return RONDO_OK;
  RONDO_TRY(get_array(object, "symbols", &symbols));
  if (symbols->count > RONDO_MAX_SYMBOLS) return fail_field("symbols", "has more entries than a kernel has symbols");
  const rondo_json_value *item = rondo_json_first(symbols);
  for (size_t i = 0; i < symbols->count; i++, item = rondo_json_next(item)) {
    uint64_t bytes;
    RONDO_TRY(rondo_fail_context(check_keys(item, keys, no_fields), "symbols[%zu]", i));
    RONDO_TRY(rondo_fail_context(get_text(item, "name", &list[i].name), "symbols[%zu]", i));
    RONDO_TRY(read_integer(rondo_json_get(item, "bytes"), "bytes", PTRDIFF_MAX, &bytes));
    list[i].bytes = (size_t)bytes;
  }
  out->symbols = symbols->count == 0 ? NULL : list;
  out->symbol_count = symbols->count;
  return RONDO_OK;
}

static rondo_status read_kernel_options(const rondo_json_value *object, rondo_parameter *list,
                                        rondo_kernel_options *out) {
  static const char *const keys[] = {"name", "block_threads", "parameters", "symbols", NULL};
  const rondo_json_value *parameters;
  RONDO_TRY(check_keys(object, keys, no_fields));
  RONDO_TRY(get_text(object, "name", &out->name));
  RONDO_TRY(get_u32(object, "block_threads", &out->block_threads));
  RONDO_TRY(get_array(object, "parameters", &parameters));
  const size_t count = parameters->count;
  if (count > RONDO_MAX_PARAMETERS)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OUT_OF_RANGE,
                      "field 'parameters' has %zu entries, but a kernel has at most %d: pass a pointer to some of them",
                      count, RONDO_MAX_PARAMETERS);
  const rondo_json_value *item = rondo_json_first(parameters);
  for (size_t i = 0; i < parameters->count; i++, item = rondo_json_next(item)) {
    RONDO_TRY(rondo_fail_context(read_parameter(item, &list[i]), "parameters[%zu]", i));
  }
  out->param_list = list;
  out->param_count = (uint32_t)count;
  return RONDO_OK;
}

/* An invalid graph in a text from outside is invalid data. */
static rondo_status as_invalid_data(rondo_status status) {
  if (status != RONDO_INVALID_ARGUMENT) return status;
  rondo_saved_error error;
  rondo_error_save(&error);
  error.status = RONDO_INVALID_DATA;
  return rondo_error_raise(&error);
}

/* Symbols of a kernel that is only data get addresses that no memory has, which tell them apart. */
static rondo_status place_symbols(json_reader *reader, rondo_kernel *kernel) {
  for (uint32_t i = 0; i < kernel->symbol_count; i++) {
    rondo_code_symbol *symbol = &kernel->symbols[i];
    const uintptr_t end = UINTPTR_MAX - (UINTPTR_MAX >> 8);
    if (symbol->bytes > end - reader->next_symbol)
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OUT_OF_RANGE,
                        "symbols of %zu bytes and more: together they exceed the address space", symbol->bytes);
    memcpy(&symbol->address, &reader->next_symbol, sizeof symbol->address);
    reader->next_symbol += symbol->bytes;
  }
  return RONDO_OK;
}

static rondo_status read_kernel(json_reader *reader, const rondo_json_value *object) {
  rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT};
  rondo_parameter list[RONDO_MAX_PARAMETERS];
  rondo_symbol symbols[RONDO_MAX_SYMBOLS] = {{0}};
  rondo_kernel *kernel;
  RONDO_TRY(read_kernel_options(object, list, &options));
  RONDO_TRY(read_symbols(object, symbols, &options));
  RONDO_TRY(as_invalid_data(rondo_kernel_make(NULL, &reader->allocator, &options, &kernel)));
  rondo_status status = place_symbols(reader, kernel);
  if (status == RONDO_OK) status = rondo_array_push(&reader->allocator, &reader->kernels, &kernel);
  if (status != RONDO_OK) rondo_kernel_release(kernel);
  return status;
}

static rondo_status read_kernels(json_reader *reader, const rondo_json_value *document) {
  const rondo_json_value *kernels;
  RONDO_TRY(get_array(document, "kernels", &kernels));
  const rondo_json_value *item = rondo_json_first(kernels);
  for (size_t i = 0; i < kernels->count; i++, item = rondo_json_next(item)) {
    RONDO_TRY(rondo_fail_context(read_kernel(reader, item), "kernels[%zu]", i));
  }
  return RONDO_OK;
}

/* Nodes by kind --------------------------------------------------------------------------------------------------- */

/* The parameters of a node that is being read, and memory for what they point to. */
typedef struct node_draft {
  rondo_node_params params;
  uint16_t device_number; /* rondo_graph_node.device_number */
  unsigned char *values;  /* of a kernel's arguments, zeroed; value_bytes in total */
  size_t value_bytes;
  const void *args[RONDO_MAX_PARAMETERS];
  size_t arg_bytes[RONDO_MAX_PARAMETERS];
  rondo_launch_config config;
  rondo_memory_operation operations[RONDO_MAX_MEMORY_OPERATIONS];
  rondo_semaphore_value semaphores[RONDO_MAX_SEMAPHORES]; /* references; zeros after the last */
} node_draft;

static rondo_status read_bytes(const rondo_json_value *value, unsigned char *out, size_t count) {
  const char *text = rondo_json_text_of(value);
  bool right = text != NULL && strlen(text) == 2 * count;
  for (size_t i = 0; right && i < count; i++) {
    const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    right = high >= 0 && low >= 0;
    out[i] = (unsigned char)((high & 15) << 4 | (low & 15));
  }
  if (right) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "must be the %zu hexadecimal digits of %zu bytes",
                    2 * count, count);
}

static rondo_status read_argument(json_reader *reader, const rondo_json_value *value, const rondo_parameter *parameter,
                                  unsigned char *out) {
  if (parameter->access == RONDO_ACCESS_SCALAR) return read_bytes(value, out, parameter->bytes);
  if (rondo_json_is(value, RONDO_JSON_NULL)) return RONDO_OK;
  uintptr_t address;
  RONDO_TRY(read_memory_address(reader, value, "arguments", &address));
  memcpy(out, &address, sizeof address);
  return RONDO_OK;
}

static rondo_status make_values(json_reader *reader, const rondo_kernel *kernel, node_draft *draft) {
  draft->value_bytes = kernel->argument_bytes;
  return rondo_allocate_items(&reader->allocator, draft->value_bytes, 1, &draft->values);
}

static rondo_status read_arguments(json_reader *reader, const rondo_json_value *object, const rondo_kernel *kernel,
                                   node_draft *draft) {
  const rondo_json_value *arguments;
  RONDO_TRY(get_array(object, "arguments", &arguments));
  const size_t count = arguments->count;
  if (count != kernel->parameter_count)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_ARGUMENT_COUNT,
                      "field 'arguments' has %zu entries, but the kernel has %" PRIu32 " parameters", count,
                      kernel->parameter_count);
  const rondo_json_value *item = rondo_json_first(arguments);
  for (size_t i = 0; i < arguments->count; i++, item = rondo_json_next(item)) {
    unsigned char *value = draft->values + kernel->offsets[i];
    RONDO_TRY(rondo_fail_context(read_argument(reader, item, &kernel->parameters[i], value), "arguments[%zu]", i));
    draft->args[i] = value;
  }
  draft->params.as.kernel.args = draft->args;
  draft->params.as.kernel.arg_count = count;
  return RONDO_OK;
}

/* Optional. If missing, nothing is known. */
static rondo_status read_argument_bytes(const rondo_json_value *object, const rondo_kernel *kernel, node_draft *draft) {
  const rondo_json_value *bytes;
  draft->params.as.kernel.arg_bytes = NULL;
  if (rondo_json_get(object, "argument_bytes") == NULL) return RONDO_OK;
  RONDO_TRY(get_array(object, "argument_bytes", &bytes));
  if (bytes->count != kernel->parameter_count)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_ARGUMENT_COUNT,
                      "field 'argument_bytes' has %" PRIu32 " entries, but the kernel has %" PRIu32 " parameters",
                      bytes->count, kernel->parameter_count);
  const rondo_json_value *item = rondo_json_first(bytes);
  for (size_t i = 0; i < bytes->count; i++, item = rondo_json_next(item)) {
    uint64_t value;
    RONDO_TRY(read_integer(item, "argument_bytes", PTRDIFF_MAX, &value));
    draft->arg_bytes[i] = (size_t)value;
  }
  draft->params.as.kernel.arg_bytes = draft->arg_bytes;
  return RONDO_OK;
}

static rondo_status read_three(const rondo_json_value *object, const char *key, uint32_t *x, uint32_t *y, uint32_t *z) {
  const rondo_json_value *array;
  RONDO_TRY(get_array(object, key, &array));
  if (array->count != 3) return fail_field(key, "must have three entries");
  RONDO_TRY(read_u32(rondo_json_item(array, 0), key, x));
  RONDO_TRY(read_u32(rondo_json_item(array, 1), key, y));
  return read_u32(rondo_json_item(array, 2), key, z);
}

static rondo_status read_config_field(const rondo_json_value *config, const rondo_config_field *field,
                                      rondo_launch_config *out) {
  void *value = rondo_config_field_at(out, field);
  rondo_dimensions *size = value;
  if (rondo_json_get(config, field->name) == NULL) return RONDO_OK;
  switch (field->type) {
    case RONDO_CONFIG_DIMENSIONS:
      return read_three(config, field->name, &size->x, &size->y, &size->z);
    case RONDO_CONFIG_U32:
      return get_u32(config, field->name, value);
    case RONDO_CONFIG_I32:
      return get_i32(config, field->name, value);
    case RONDO_CONFIG_FLAG:
      return get_flag(config, field->name, value);
  }
  return RONDO_OK;
}

/* Optional, and so is each of its fields. If missing, it is the default. */
static rondo_status read_config(const rondo_json_value *object, node_draft *draft) {
  const rondo_json_value *config = rondo_json_get(object, "config");
  const char *keys[RONDO_CONFIG_FIELDS + 1] = {NULL};
  draft->params.as.kernel.config = NULL;
  draft->config = (rondo_launch_config){0};
  if (config == NULL) return RONDO_OK;
  for (size_t i = 0; i < RONDO_CONFIG_FIELDS; i++) keys[i] = rondo_config_fields[i].name;
  RONDO_TRY(rondo_fail_context(check_keys(config, keys, no_fields), "config"));
  for (size_t i = 0; i < RONDO_CONFIG_FIELDS; i++)
    RONDO_TRY(read_config_field(config, &rondo_config_fields[i], &draft->config));
  draft->params.as.kernel.config = &draft->config;
  return RONDO_OK;
}

static rondo_status read_kernel_node(json_reader *reader, const rondo_json_value *object, node_draft *draft) {
  rondo_kernel *kernel;
  RONDO_TRY(get_kernel(reader, object, &kernel));
  draft->params.as.kernel.kernel = kernel;
  rondo_grid *grid = &draft->params.as.kernel.grid;
  RONDO_TRY(read_three(object, "grid", &grid->x, &grid->y, &grid->z));
  RONDO_TRY(read_config(object, draft));
  RONDO_TRY(make_values(reader, kernel, draft));
  RONDO_TRY(read_arguments(reader, object, kernel, draft));
  return read_argument_bytes(object, kernel, draft);
}

/* The index of a name in a list. */
static rondo_status read_name(const rondo_json_value *object, const char *key, const char *const *names, int first,
                              int last, int *out) {
  const char *name;
  char buffer[SHOWN_BYTES];
  RONDO_TRY(get_text(object, key, &name));
  for (*out = first; *out <= last; ++*out)
    if (strcmp(name, names[*out]) == 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "field '%s' is '%s', which is not known", key,
                    shown(buffer, name));
}

static rondo_status read_operation(json_reader *reader, const rondo_json_value *object, rondo_memory_operation *out) {
  static const char *const keys[] = {"kind", "condition", "address", "value", NULL};
  int kind, condition = 0;
  RONDO_TRY(check_keys(object, keys, no_fields));
  RONDO_TRY(read_name(object, "kind", rondo_operation_names, RONDO_OPERATION_WAIT_32, RONDO_OPERATION_WRITE_64, &kind));
  *out = (rondo_memory_operation){.kind = (rondo_memory_operation_kind)kind};
  if (rondo_operation_waits(out))
    RONDO_TRY(read_name(object, "condition", rondo_condition_names, 0, RONDO_WAIT_NOR, &condition));
  out->condition = (rondo_wait_condition)condition;
  RONDO_TRY(get_memory_address(reader, object, "address", &out->address));
  return read_integer(rondo_json_get(object, "value"), "value", UINT64_MAX, &out->value);
}

static rondo_status read_operations(json_reader *reader, const rondo_json_value *object, node_draft *draft) {
  const rondo_json_value *list;
  RONDO_TRY(get_array(object, "operations", &list));
  if (list->count > RONDO_MAX_MEMORY_OPERATIONS) return fail_field("operations", "has more entries than a node");
  const rondo_json_value *item = rondo_json_first(list);
  for (size_t i = 0; i < list->count; i++, item = rondo_json_next(item))
    RONDO_TRY(rondo_fail_context(read_operation(reader, item, &draft->operations[i]), "operations[%zu]", i));
  draft->params.as.memory_operations =
      (rondo_memory_operations_node){.operations = draft->operations, .count = list->count};
  return RONDO_OK;
}

/* A semaphore that is only data. */
static rondo_status read_semaphore(const json_reader *reader, const rondo_json_value *object,
                                   rondo_semaphore_value *out) {
  static const char *const keys[] = {"name", "value", NULL};
  const char *name;
  RONDO_TRY(check_keys(object, keys, no_fields));
  RONDO_TRY(get_text(object, "name", &name));
  RONDO_TRY(read_integer(rondo_json_get(object, "value"), "value", UINT64_MAX, &out->value));
  RONDO_TRY(rondo_semaphore_make(NULL, &reader->allocator, name, &out->semaphore));
  out->semaphore->is_timeline = true;
  return RONDO_OK;
}

static rondo_status read_semaphores(const json_reader *reader, const rondo_json_value *object, node_draft *draft) {
  const rondo_json_value *list;
  RONDO_TRY(get_array(object, "semaphores", &list));
  if (list->count > RONDO_MAX_SEMAPHORES) return fail_field("semaphores", "has more entries than a node");
  draft->params.as.semaphores = (rondo_semaphores_node){.values = draft->semaphores, .count = list->count};
  const rondo_json_value *item = rondo_json_first(list);
  for (size_t i = 0; i < list->count; i++, item = rondo_json_next(item))
    RONDO_TRY(rondo_fail_context(read_semaphore(reader, item, &draft->semaphores[i]), "semaphores[%zu]", i));
  return RONDO_OK;
}

static void release_semaphores(const node_draft *draft) {
  for (size_t i = 0; i < RONDO_MAX_SEMAPHORES; i++) rondo_semaphore_release(draft->semaphores[i].semaphore);
}

/* Device numbers, each at most once and below 64. Optional. */
static rondo_status read_peers(const rondo_json_value *object, uint64_t *out) {
  const rondo_json_value *peers;
  *out = 0;
  if (rondo_json_get(object, "peers") == NULL) return RONDO_OK;
  RONDO_TRY(get_array(object, "peers", &peers));
  const rondo_json_value *item = rondo_json_first(peers);
  for (size_t i = 0; i < peers->count; i++, item = rondo_json_next(item)) {
    uint64_t peer;
    RONDO_TRY(read_integer(item, "peers", 63, &peer));
    if ((*out >> peer & 1) != 0) return fail_field("peers", "names a device twice");
    *out |= UINT64_C(1) << peer;
  }
  return RONDO_OK;
}

/* The number of another device than the graph's, plus 1. Optional. */
static rondo_status read_device(const rondo_json_value *object, const rondo_node_params *params, uint16_t *out) {
  const rondo_json_value *value = rondo_json_get(object, "device");
  const bool runs_on_none = params->kind == RONDO_NODE_HOST || params->kind == RONDO_NODE_EMPTY;
  uint64_t number;
  *out = 0;
  if (value == NULL) return RONDO_OK;
  if (runs_on_none || rondo_node_is_memory(params)) return fail_field("device", "is of a node that cannot have one");
  RONDO_TRY(read_integer(value, "device", UINT16_MAX - 1, &number));
  *out = (uint16_t)(number + 1);
  return RONDO_OK;
}

/* Reads a field into the draft. SPECIAL fields were read before. */
static rondo_status read_field(json_reader *reader, const rondo_json_value *object, const rondo_node_field *field,
                               node_draft *draft) {
  void *out = (char *)&draft->params + field->offset, *dropped;
  const rondo_json_value *value = rondo_json_get(object, field->name);
  switch (field->type) {
    case RONDO_FIELD_SPECIAL:
      return RONDO_OK;
    case RONDO_FIELD_ADDRESS:
      return get_memory_address(reader, object, field->name, out);
    case RONDO_FIELD_HANDLE:
    case RONDO_FIELD_FUNCTION:
      return get_address(object, field->name, &dropped);
    case RONDO_FIELD_FLAG:
      return get_flag(object, field->name, out);
    case RONDO_FIELD_TEXT:
      return get_text(object, field->name, out);
    case RONDO_FIELD_PEERS:
      return read_peers(object, out);
    case RONDO_FIELD_U32:
      return read_u32(value, field->name, out);
    case RONDO_FIELD_SIZE:
      return read_integer(value, field->name, PTRDIFF_MAX, out);
    case RONDO_FIELD_PITCH:
      return read_integer(value, field->name, SIZE_MAX, out);
  }
  return RONDO_OK;
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

static rondo_status read_kind(const rondo_json_value *object, rondo_node_kind *out) {
  const char *name;
  RONDO_TRY(get_text(object, "kind", &name));
  for (int kind = RONDO_NODE_KERNEL; kind <= RONDO_NODE_LAST; kind++) {
    if (strcmp(name, rondo_node_kind_name((rondo_node_kind)kind)) != 0) continue;
    *out = (rondo_node_kind)kind;
    return RONDO_OK;
  }
  char buffer[SHOWN_BYTES];
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_NODE_KIND, "field 'kind' is '%s', which is not a kind of node",
                    shown(buffer, name));
}

/* Numbers ascend. Missing numbers are removed nodes. */
static rondo_status read_number(json_reader *reader, const rondo_graph *graph, const rondo_json_value *object,
                                uint32_t *out) {
  RONDO_TRY(get_u32(object, "number", out));
  if (*out < graph->nodes.count)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OUT_OF_RANGE,
                      "field 'number' is %" PRIu32 " after %zu: numbers must ascend", *out, graph->nodes.count - 1);
  const uint32_t holes = *out - (uint32_t)graph->nodes.count;
  if (holes > MAX_HOLES - reader->holes)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "field 'number' is %" PRIu32 " after %zu: a document may skip at most %" PRIu32
                      " numbers: renumber the nodes",
                      *out, graph->nodes.count, MAX_HOLES);
  if (reader->nodes == MAX_NODES)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "a document may have at most %" PRIu32 " nodes: split the graph", MAX_NODES);
  reader->holes += holes;
  reader->nodes++;
  return RONDO_OK;
}

static rondo_status read_child(json_reader *reader, const rondo_json_value *object, node_draft *draft);

static rondo_status read_params(json_reader *reader, const rondo_json_value *object, node_draft *draft) {
  const rondo_node_fields fields = rondo_node_fields_of(draft->params.kind);
  if (draft->params.kind == RONDO_NODE_KERNEL) RONDO_TRY(read_kernel_node(reader, object, draft));
  if (draft->params.kind == RONDO_NODE_CHILD) RONDO_TRY(read_child(reader, object, draft));
  if (draft->params.kind == RONDO_NODE_MEMORY_OPERATIONS) RONDO_TRY(read_operations(reader, object, draft));
  if (rondo_node_names_semaphores(&draft->params)) RONDO_TRY(read_semaphores(reader, object, draft));
  for (size_t i = 0; i < fields.count; i++) RONDO_TRY(read_field(reader, object, &fields.items[i], draft));
  return RONDO_OK;
}

static rondo_status add_node(json_reader *reader, rondo_graph *graph, uint32_t number, const rondo_json_value *object,
                             node_draft *draft) {
  RONDO_TRY(read_params(reader, object, draft));
  rondo_status status = as_invalid_data(rondo_node_shape_check("its parameters", &draft->params));
  if (status == RONDO_OK) status = rondo_graph_insert_at(graph, number, &draft->params);
  if (status == RONDO_OK) graph->nodes.items[number].device_number = draft->device_number;
  if (status != RONDO_OK && draft->params.kind == RONDO_NODE_CHILD) rondo_graph_free(draft->params.as.child);
  return status;
}

static rondo_status read_node(json_reader *reader, rondo_graph *graph, const rondo_json_value *object) {
  static const char *const keys[] = {"number", "kind", "name", "device", "dependencies", "programmatic", NULL};
  node_draft draft = {.params = {.kind = RONDO_NODE_EMPTY}};
  uint32_t number;
  RONDO_TRY(require_object(object));
  RONDO_TRY(read_kind(object, &draft.params.kind));
  RONDO_TRY(check_keys(object, keys, rondo_node_fields_of(draft.params.kind)));
  RONDO_TRY(read_number(reader, graph, object, &number));
  RONDO_TRY(get_text(object, "name", &draft.params.name));
  RONDO_TRY(read_device(object, &draft.params, &draft.device_number));
  const rondo_status status = add_node(reader, graph, number, object, &draft);
  rondo_release(&reader->allocator, draft.values, draft.value_bytes, 1);
  release_semaphores(&draft);
  return status;
}

/* An edge to a missing node is an error of the graph, not of the text. */
static rondo_status as_invalid_graph(rondo_status status, const char *list, size_t index) {
  rondo_saved_error error;
  if (status == RONDO_OK) return RONDO_OK;
  rondo_error_save(&error);
  if (status == RONDO_INVALID_ARGUMENT) error.status = RONDO_INVALID_GRAPH;
  return rondo_fail_context(rondo_error_raise(&error), "%s[%zu]", list, index);
}

static rondo_status read_dependencies(rondo_graph *graph, uint32_t number, const rondo_json_value *object) {
  const rondo_json_value *dependencies;
  RONDO_TRY(get_array(object, "dependencies", &dependencies));
  const rondo_json_value *item = rondo_json_first(dependencies);
  for (size_t i = 0; i < dependencies->count; i++, item = rondo_json_next(item)) {
    uint32_t from;
    RONDO_TRY(read_u32(item, "dependencies", &from));
    RONDO_TRY(as_invalid_graph(rondo_graph_link_edges(graph, &from, &number, 1), "dependencies", i));
  }
  return RONDO_OK;
}

static rondo_status read_port(const rondo_json_value *value, uint8_t *out) {
  uint64_t port;
  RONDO_TRY(read_integer(value, "programmatic", UINT8_MAX, &port));
  *out = (uint8_t)port;
  return RONDO_OK;
}

/* Optional. If missing, there are none. */
static rondo_status read_programmatic(rondo_graph *graph, uint32_t number, const rondo_json_value *object) {
  const rondo_json_value *edges;
  if (rondo_json_get(object, "programmatic") == NULL) return RONDO_OK;
  RONDO_TRY(get_array(object, "programmatic", &edges));
  const rondo_json_value *item = rondo_json_first(edges);
  for (size_t i = 0; i < edges->count; i++, item = rondo_json_next(item)) {
    const rondo_json_value *entry = item;
    rondo_programmatic_edge edge = {.to = number};
    uint8_t orders = 0;
    if (!rondo_json_is(entry, RONDO_JSON_ARRAY) || (entry->count != 4 && entry->count != 5))
      return fail_field("programmatic", "must contain arrays of four numbers, or five");
    RONDO_TRY(read_u32(rondo_json_item(entry, 0), "programmatic", &edge.from));
    RONDO_TRY(read_port(rondo_json_item(entry, 1), &edge.from_port));
    RONDO_TRY(read_port(rondo_json_item(entry, 2), &edge.to_port));
    RONDO_TRY(read_port(rondo_json_item(entry, 3), &edge.type));
    if (entry->count == 5) RONDO_TRY(read_port(rondo_json_item(entry, 4), &orders));
    const rondo_edge_data data = {.from_port = edge.from_port, .to_port = edge.to_port, .type = edge.type};
    const rondo_status status = orders != 0 ? rondo_graph_link_edges_with(graph, &edge.from, &number, &data, 1)
                                            : rondo_graph_link_programmatic(graph, &edge);
    RONDO_TRY(as_invalid_graph(status, "programmatic", i));
  }
  return RONDO_OK;
}

static rondo_status read_edges(rondo_graph *graph, uint32_t number, const rondo_json_value *object) {
  RONDO_TRY(read_dependencies(graph, number, object));
  return read_programmatic(graph, number, object);
}

/* Reads all nodes before all edges, because an edge may come from a node that is later in the text. */
static rondo_status read_nodes(json_reader *reader, rondo_graph *graph, const rondo_json_value *object) {
  const rondo_json_value *nodes;
  RONDO_TRY(get_array(object, "nodes", &nodes));
  const rondo_json_value *item = rondo_json_first(nodes);
  for (size_t i = 0; i < nodes->count; i++, item = rondo_json_next(item)) {
    RONDO_TRY(rondo_fail_context(read_node(reader, graph, item), "nodes[%zu]", i));
  }
  uint32_t number = 0;
  item = rondo_json_first(nodes);
  for (size_t i = 0; i < nodes->count; i++, number++, item = rondo_json_next(item)) {
    while (!graph->nodes.items[number].live) number++;
    RONDO_TRY(rondo_fail_context(read_edges(graph, number, item), "nodes[%zu]", i));
  }
  return RONDO_OK;
}

/* Reads a graph from an object with the fields "name" and "nodes". */
static rondo_status read_graph(json_reader *reader, const rondo_json_value *object, rondo_graph **out) {
  const char *name;
  *out = NULL;
  RONDO_TRY(get_text(object, "name", &name));
  RONDO_TRY(rondo_graph_make(NULL, &reader->allocator, name, out));
  rondo_graph *outer = reader->graph;
  reader->graph = *out;
  const rondo_status status = read_nodes(reader, *out, object);
  reader->graph = outer;
  if (status == RONDO_OK) return RONDO_OK;
  rondo_graph_free(*out);
  *out = NULL;
  return status;
}

static rondo_status read_child_graph(json_reader *reader, const rondo_json_value *child, rondo_graph **out) {
  static const char *const keys[] = {"name", "nodes", NULL};
  *out = NULL;
  if (reader->depth == RONDO_GRAPH_MAX_NESTING)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "child graphs nest deeper than %d levels: nest fewer", RONDO_GRAPH_MAX_NESTING);
  RONDO_TRY(check_keys(child, keys, no_fields));
  reader->depth++;
  const rondo_status status = read_graph(reader, child, out);
  reader->depth--;
  return status;
}

static rondo_status read_child(json_reader *reader, const rondo_json_value *object, node_draft *draft) {
  const rondo_json_value *child = rondo_json_get(object, "child");
  draft->params.as.child = NULL;
  if (child == NULL) return fail_field("child", "is missing");
  const rondo_status status = read_child_graph(reader, child, &draft->params.as.child);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "child");
}

static rondo_status read_document(json_reader *reader, const rondo_json_value *document, rondo_graph **out) {
  static const char *const keys[] = {"rondo_graph", "name", "kernels", "nodes", NULL};
  uint32_t version;
  RONDO_TRY(require_object(document));
  RONDO_TRY(get_u32(document, "rondo_graph", &version));
  if (version != RONDO_GRAPH_JSON_VERSION)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OUT_OF_RANGE,
                      "field 'rondo_graph' is %" PRIu32 ": this version of the library reads format %d", version,
                      RONDO_GRAPH_JSON_VERSION);
  RONDO_TRY(check_keys(document, keys, no_fields));
  RONDO_TRY(read_kernels(reader, document));
  return read_graph(reader, document, out);
}

rondo_status rondo_graph_read_json(const rondo_allocator *allocator, const char *bytes, size_t count,
                                   rondo_graph **out) {
  json_reader reader = {.allocator = *allocator, .next_symbol = UINTPTR_MAX / 2 + 1};
  rondo_json_document document;
  *out = NULL;
  rondo_status status = rondo_json_parse(allocator, bytes, count, &document);
  if (status == RONDO_OK) status = read_document(&reader, rondo_json_root(&document), out);
  for (size_t i = 0; i < reader.kernels.count; i++) rondo_kernel_release(reader.kernels.items[i]);
  rondo_array_free(allocator, &reader.kernels);
  rondo_json_document_free(&document);
  if (status == RONDO_OK) rondo_graph_check(*out);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "graph from JSON");
}

rondo_status rondo_graph_from_json(const char *bytes, size_t count, rondo_graph **out_graph) {
  RONDO_TRY(rondo_require("rondo_graph_from_json", "the out-parameter", out_graph));
  *out_graph = NULL;
  RONDO_TRY(rondo_require("rondo_graph_from_json", "the text", bytes));
  const rondo_allocator allocator = rondo_allocator_default();
  return rondo_graph_read_json(&allocator, bytes, count, out_graph);
}

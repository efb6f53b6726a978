/* SPDX-License-Identifier: MIT
 * Reading, completing and checking of configurations. The server has validated the text against its own description, so
 * what is missing or of another kind here counts as not given.
 */
#include "triton/model_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

/* Reading ---------------------------------------------------------------------------------------------------------- */

/* Numbers of 64 bits are numbers or texts in JSON of protocol buffers. */
static int64_t integer_of(const rondo_json_value *value, int64_t otherwise) {
  if (rondo_json_is(value, RONDO_JSON_INTEGER)) return value->as.integer;
  const char *text = rondo_json_text_of(value);
  if (text == NULL) return otherwise;
  char *end;
  errno = 0;
  const long long number = strtoll(text, &end, 10);
  return errno == 0 && end != text && *end == '\0' ? (int64_t)number : otherwise;
}

rondo_status rondo_triton_config_read(const char *text, size_t bytes, rondo_triton_config *out) {
  const rondo_allocator allocator = rondo_allocator_default();
  *out = (rondo_triton_config){0};
  RONDO_TRY(rondo_json_parse(&allocator, text, bytes, &out->document));
  const rondo_json_value *root = rondo_json_root(&out->document);
  const int64_t size = integer_of(rondo_json_get(root, "max_batch_size"), 0);
  out->max_batch_size = size > 0 ? (size_t)size : 0;
  const rondo_json_value *decoupled = rondo_json_get(rondo_json_get(root, "model_transaction_policy"), "decoupled");
  out->is_decoupled = rondo_json_is(decoupled, RONDO_JSON_BOOLEAN) && decoupled->as.boolean;
  const rondo_json_value *sequences = rondo_json_get(root, "sequence_batching");
  out->is_direct = sequences != NULL && rondo_json_get(sequences, "oldest") == NULL;
  out->inputs = rondo_json_get(root, "input");
  out->outputs = rondo_json_get(root, "output");
  return RONDO_OK;
}

void rondo_triton_config_free(rondo_triton_config *config) {
  rondo_json_document_free(&config->document);
  *config = (rondo_triton_config){0};
}

const char *rondo_triton_config_parameter(const rondo_triton_config *config, const char *key) {
  const rondo_json_value *parameters = rondo_json_get(rondo_json_root(&config->document), "parameters");
  return rondo_json_text_of(rondo_json_get(rondo_json_get(parameters, key), "string_value"));
}

bool rondo_triton_parse_number(const char *text, size_t least, size_t most, size_t *out) {
  char *end;
  errno = 0;
  const unsigned long long number = strtoull(text, &end, 10);
  if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || number < least || number > most) return false;
  *out = (size_t)number;
  return true;
}

rondo_status rondo_triton_config_number(const rondo_triton_config *config, const char *key, size_t least, size_t most,
                                        size_t otherwise, size_t *out) {
  const char *text = rondo_triton_config_parameter(config, key);
  *out = otherwise;
  if (text == NULL || rondo_triton_parse_number(text, least, most, out)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "parameter '%s' of the configuration is '%s': give a number from %zu to %zu", key, text, least,
                    most);
}

static const rondo_json_value *items_of(const rondo_json_value *array, size_t *out_count) {
  const bool is_array = rondo_json_is(array, RONDO_JSON_ARRAY) && array->count > 0;
  *out_count = is_array ? array->count : 0;
  return is_array ? rondo_json_first(array) : NULL;
}

static size_t count_instances(const rondo_triton_config *config, const char *kind) {
  size_t groups, instances = 0;
  const rondo_json_value *group =
      items_of(rondo_json_get(rondo_json_root(&config->document), "instance_group"), &groups);
  for (size_t i = 0; i < groups; i++, group = rondo_json_next(group)) {
    const char *its = rondo_json_text_of(rondo_json_get(group, "kind"));
    const int64_t count = integer_of(rondo_json_get(group, "count"), 1);
    if (its != NULL && strcmp(its, kind) == 0 && count > 0) instances += (size_t)count;
  }
  return instances;
}

bool rondo_triton_config_has_instances(const rondo_triton_config *config, const char *kind) {
  return count_instances(config, kind) > 0;
}

size_t rondo_triton_config_instances(const rondo_triton_config *config, const char *kind) {
  const size_t instances = count_instances(config, kind);
  return instances == 0 ? 1 : instances;
}

static bool is_given(const rondo_json_value *tensors) {
  return rondo_json_is(tensors, RONDO_JSON_ARRAY) && tensors->count > 0;
}

bool rondo_triton_config_is_incomplete(const rondo_triton_config *config) {
  return !is_given(config->inputs) || !is_given(config->outputs);
}

/* Completing ------------------------------------------------------------------------------------------------------- */

/* Writes a value of the document. Its depth is bounded by the parser. */
static void write_value(rondo_text *text, const rondo_json_value *value);

static void write_items(rondo_text *text, const rondo_json_value *container) {
  const rondo_json_value *item = container->count == 0 ? NULL : rondo_json_first(container);
  const bool is_object = container->kind == RONDO_JSON_OBJECT;
  for (size_t i = 0; i < container->count; i++, item = rondo_json_next(item)) {
    if (is_object) {
      rondo_json_key(text, item->as.string);
      item = rondo_json_next(item);
    }
    write_value(text, item);
  }
}

static void write_value(rondo_text *text, const rondo_json_value *value) {
  switch (value->kind) {
    case RONDO_JSON_ARRAY:
      rondo_json_array_begin(text);
      write_items(text, value);
      rondo_json_array_end(text);
      break;
    case RONDO_JSON_OBJECT:
      rondo_json_object_begin(text);
      write_items(text, value);
      rondo_json_object_end(text);
      break;
    case RONDO_JSON_INTEGER:
      rondo_json_i64(text, value->as.integer);
      break;
    case RONDO_JSON_UNSIGNED:
      rondo_json_u64(text, value->as.unsigned_integer);
      break;
    case RONDO_JSON_BOOLEAN:
      rondo_json_bool(text, value->as.boolean);
      break;
    case RONDO_JSON_STRING:
      rondo_json_string(text, value->as.string);
      break;
    case RONDO_JSON_REAL: /* tensors have none */
    case RONDO_JSON_NULL:
      rondo_json_string(text, NULL);
      break;
  }
}

static void write_tensor(rondo_text *text, const rondo_triton_tensor *tensor, bool has_batch) {
  rondo_json_object_begin(text);
  rondo_json_key(text, "name");
  rondo_json_string(text, tensor->name);
  rondo_json_key(text, "data_type");
  rondo_json_string(text, rondo_triton_type_name(tensor->type));
  rondo_json_key(text, "dims");
  rondo_json_array_begin(text);
  if (!has_batch) rondo_json_i64(text, -1);
  for (size_t i = 0; i < tensor->rank; i++) rondo_json_i64(text, tensor->dims[i]);
  rondo_json_array_end(text);
  if (tensor->is_of_source) {
    rondo_json_key(text, "optional");
    rondo_json_bool(text, true);
  }
  rondo_json_object_end(text);
}

static void write_tensors(rondo_text *text, const char *key, const rondo_json_value *given,
                          const rondo_triton_tensors *tensors, bool has_batch) {
  rondo_json_key(text, key);
  if (is_given(given)) {
    write_value(text, given);
    return;
  }
  rondo_json_array_begin(text);
  for (size_t i = 0; i < tensors->count; i++) write_tensor(text, &tensors->items[i], has_batch);
  rondo_json_array_end(text);
}

/* A choice that was made has to be repeated. */
static void write_scheduler(rondo_text *text, const rondo_json_value *root) {
  static const char *const keys[] = {"dynamic_batching", "sequence_batching"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    if (rondo_json_get(root, keys[i]) == NULL) continue;
    rondo_json_key(text, keys[i]);
    rondo_json_object_begin(text);
    rondo_json_object_end(text);
  }
}

rondo_status rondo_triton_config_complete(const rondo_triton_config *config, const rondo_triton_tensors *inputs,
                                          const rondo_triton_tensors *outputs, size_t default_batch_size,
                                          char **out_text) {
  rondo_text text;
  const rondo_json_value *root = rondo_json_root(&config->document);
  const bool is_free = !is_given(config->inputs) && !is_given(config->outputs);
  const size_t batch = config->max_batch_size == 0 && is_free ? default_batch_size : config->max_batch_size;
  rondo_text_init(&text, NULL);
  rondo_json_object_begin(&text);
  rondo_json_key(&text, "max_batch_size");
  rondo_json_u64(&text, batch);
  write_tensors(&text, "input", config->inputs, inputs, batch > 0);
  write_tensors(&text, "output", config->outputs, outputs, batch > 0);
  write_scheduler(&text, root);
  rondo_json_object_end(&text);
  const rondo_status status = rondo_text_take(&text, out_text);
  rondo_text_deinit(&text);
  return status;
}

/* Checking --------------------------------------------------------------------------------------------------------- */

static rondo_status check_type(const char *what, const rondo_triton_tensor *tensor, const rondo_json_value *given) {
  const char *type = rondo_json_text_of(rondo_json_get(given, "data_type"));
  if (type != NULL && strcmp(type, rondo_triton_type_name(tensor->type)) == 0) return RONDO_OK;
  if (type != NULL && strcmp(type, "TYPE_STRING") == 0)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE,
                      "%s '%s' is TYPE_STRING in the configuration: Rondo's models have no strings", what,
                      tensor->name);
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE,
                    "%s '%s' is %s in the configuration and %s in the model: correct the configuration", what,
                    tensor->name, type == NULL ? "without a type" : type, rondo_triton_type_name(tensor->type));
}

/* A size of -1 is any, which the model says. */
static rondo_status check_dims(const char *what, const rondo_triton_tensor *tensor, const rondo_json_value *given,
                               bool has_batch) {
  char wanted[RONDO_TRITON_SHAPE_TEXT];
  size_t count;
  const rondo_json_value *dims = items_of(rondo_json_get(given, "dims"), &count);
  const size_t first = has_batch ? 0 : 1;
  bool fits = count == tensor->rank + first;
  for (size_t i = 0; i < count && fits; i++, dims = rondo_json_next(dims)) {
    const int64_t size = integer_of(dims, 0);
    fits = i < first || size == -1 || tensor->dims[i - first] == -1 || size == tensor->dims[i - first];
  }
  if (fits) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "the dims of %s '%s' in the configuration do not fit the model, where a row is %s: give %s", what,
                    tensor->name, rondo_triton_shape_text(wanted, tensor->dims, tensor->rank),
                    has_batch ? "these" : "-1 for the rows, then these");
}

/* Requests after the first one of a sequence have no source. */
static rondo_status check_optional(const rondo_triton_tensor *tensor, const rondo_json_value *given) {
  const rondo_json_value *optional = rondo_json_get(given, "optional");
  if (!tensor->is_of_source || (rondo_json_is(optional, RONDO_JSON_BOOLEAN) && optional->as.boolean)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "input '%s' is that of the source, which is read once for a sequence: say optional: true in the "
                    "configuration",
                    tensor->name);
}

static rondo_status check_tensors(const char *what, const rondo_json_value *given, const rondo_triton_tensors *tensors,
                                  bool has_batch) {
  size_t count;
  const rondo_json_value *item = items_of(given, &count);
  for (size_t i = 0; i < count; i++, item = rondo_json_next(item)) {
    const char *name = rondo_json_text_of(rondo_json_get(item, "name"));
    const rondo_triton_tensor *tensor = rondo_triton_find_tensor(tensors, name == NULL ? "" : name);
    if (tensor == NULL)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME,
                        "%s '%s' of the configuration is not one of the model's", what, name == NULL ? "" : name);
    RONDO_TRY(check_type(what, tensor, item));
    RONDO_TRY(check_dims(what, tensor, item, has_batch));
    RONDO_TRY(check_optional(tensor, item));
  }
  return RONDO_OK;
}

static rondo_status require_inputs(const rondo_json_value *given, const rondo_triton_tensors *inputs) {
  for (size_t i = 0; i < inputs->count; i++) {
    size_t count;
    bool is_there = false;
    const rondo_json_value *item = items_of(given, &count);
    for (size_t k = 0; k < count; k++, item = rondo_json_next(item)) {
      const char *name = rondo_json_text_of(rondo_json_get(item, "name"));
      is_there |= name != NULL && strcmp(name, inputs->items[i].name) == 0;
    }
    if (!is_there)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME,
                        "the configuration lacks input '%s' of the model: add it, or leave all inputs out to have them "
                        "completed",
                        inputs->items[i].name);
  }
  return RONDO_OK;
}

rondo_status rondo_triton_config_check(const rondo_triton_config *config, const rondo_triton_tensors *inputs,
                                       const rondo_triton_tensors *outputs) {
  const bool has_batch = config->max_batch_size > 0;
  RONDO_TRY(check_tensors("input", config->inputs, inputs, has_batch));
  RONDO_TRY(check_tensors("output", config->outputs, outputs, has_batch));
  return require_inputs(config->inputs, inputs);
}

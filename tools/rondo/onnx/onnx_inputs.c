/* SPDX-License-Identifier: MIT
 * Inputs of models, by the options of commands: read from files, or made up. A sequence is an input for each element.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"
#include "onnx/onnx_program.h"
#include "onnx/tensor_read.h"

enum { MOST_ELEMENTS = 65536 };

/* Options ---------------------------------------------------------------------------------------------------------- */

static const char *find_value(const option_list *list, const char *name) {
  const char *found = NULL;
  for (size_t i = 0; i < list->count; i++) {
    const char *value = option_value_of(list->items[i], name);
    if (value) found = value;
  }
  return found;
}

static bool names_input(const onnx_program *of, const char *item) {
  for (size_t i = 0; i < of->input_count; i++)
    if (option_value_of(item, of->inputs[i].value.name)) return true;
  rondo_onnx_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_onnx_get_input(of->model, i, &value) == RONDO_OK; i++)
    if (option_value_of(item, value.name)) return true;
  return false;
}

static bool names_dimension(const onnx_program *of, const char *item) {
  for (size_t i = 0; i < of->length_count; i++)
    if (option_value_of(item, of->lengths[i].name)) return true;
  for (size_t i = 0; i < of->input_count; i++) {
    const rondo_onnx_value *value = &of->inputs[i].value;
    for (size_t d = 0; value->has_shape && d < value->rank; d++)
      if (value->dimensions[d].name[0] != '\0' && option_value_of(item, value->dimensions[d].name)) return true;
  }
  return false;
}

/* Each item must be for something that the model has. */
static int check_items(const onnx_program *of, const onnx_input_settings *settings) {
  for (size_t i = 0; i < settings->inputs.count; i++)
    if (!names_input(of, settings->inputs.items[i]))
      return tool_fail("--input '%s': %s has no such input; use NAME=VALUE with a name that 'rondo info' lists",
                       settings->inputs.items[i], of->path);
  for (size_t i = 0; i < settings->sizes.count; i++)
    if (!names_dimension(of, settings->sizes.items[i]))
      return tool_fail("--size '%s': %s has no such dynamic dimension; use NAME=N with a name that 'rondo info' lists",
                       settings->sizes.items[i], of->path);
  return TOOL_OK;
}

static int parse_size(const char *name, const char *text, size_t *out) {
  char *end = NULL;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
    return tool_fail_usage("--size %s=%s: the size is a whole number", name, text);
  *out = (size_t)value;
  return TOOL_OK;
}

/* Elements --------------------------------------------------------------------------------------------------------- */

static bool is_kind(const rondo_onnx_value *value, const char *kind) {
  return value && strcmp(value->type_name, kind) == 0;
}

static bool is_sequence(const rondo_onnx_value *value) {
  const rondo_onnx_value *element = is_kind(value, "sequence") ? value->element : NULL;
  return element && !element->element && !is_kind(element, "map") && !is_kind(element, "sparse");
}

/* Kinds that programs take: sequences and optionals of tensors, and optionals of sequences of them. */
static bool is_list(const rondo_onnx_value *value) {
  if (is_sequence(value)) return true;
  return is_kind(value, "optional") && value->element && (is_sequence(value->element) || !value->element->element);
}

/* "NAME[INDEX]", or "NAME[]" for NO_INDEX; NULL without memory. */
#define NO_INDEX SIZE_MAX
static char *element_name(const char *name, size_t index) {
  const size_t bytes = strlen(name) + 24;
  char *out = malloc(bytes);
  if (out && index == NO_INDEX) snprintf(out, bytes, "%s[]", name);
  if (out && index != NO_INDEX) snprintf(out, bytes, "%s[%zu]", name, index);
  return out;
}

/* Adds an input: a tensor, or an element of a sequence, which has a name of its own. */
static onnx_input *add_input(onnx_program *of, const rondo_onnx_value *value, size_t value_index, size_t element) {
  onnx_input *inputs = realloc(of->inputs, (of->input_count + 1) * sizeof *inputs);
  if (!inputs) return NULL;
  of->inputs = inputs;
  onnx_input *added = &inputs[of->input_count++];
  *added = (onnx_input){.value = *value, .value_index = value_index};
  if (element == NO_INDEX) return added;
  added->value.name = added->element_name = element_name(value->name, element);
  return added->element_name ? added : NULL;
}

static int add_length(onnx_program *of, const char *name, size_t length) {
  rondo_onnx_dimension_size *lengths = realloc(of->lengths, (of->length_count + 1) * sizeof *lengths);
  if (!lengths) return tool_fail_memory("the inputs");
  of->lengths = lengths;
  char *text = element_name(name, NO_INDEX);
  if (!text) return tool_fail_memory("the inputs");
  lengths[of->length_count++] = (rondo_onnx_dimension_size){.name = text, .size = length};
  return TOOL_OK;
}

/* The elements of a file, which is all of the input. */
static int read_elements(onnx_program *of, const rondo_onnx_value *value, size_t value_index, bool is_named,
                         const char *path, const char *source) {
  const rondo_onnx_value *tensor = value;
  while (tensor->element) tensor = tensor->element;
  for (size_t i = 0;; i++) {
    host_tensor read;
    bool exists;
    if (tensor_read_element(path, value, i, &read, &exists) != TOOL_OK) return TOOL_FAILURE;
    if (!exists) return is_kind(value, "sequence") || (is_named && i > 0) ? add_length(of, value->name, i) : TOOL_OK;
    onnx_input *input = add_input(of, tensor, value_index, is_named ? i : NO_INDEX);
    if (!input) {
      host_tensor_destroy(&read);
      return tool_fail_memory("the inputs");
    }
    input->tensor = read;
    input->is_file = true;
    input->source = source;
  }
}

/* How many elements the options say, by their names or by --size "NAME[]=N". */
static int find_length(const rondo_onnx_value *value, const onnx_input_settings *settings, size_t *out,
                       bool *is_known) {
  const size_t bytes = strlen(value->name);
  char *dimension = element_name(value->name, NO_INDEX);
  if (!dimension) return tool_fail_memory("the inputs");
  const char *given = find_value(&settings->sizes, dimension);
  const int result = given ? parse_size(dimension, given, out) : TOOL_OK;
  free(dimension);
  *is_known = given != NULL;
  for (size_t i = 0; i < settings->inputs.count && !given; i++) {
    const char *item = settings->inputs.items[i];
    char *end = NULL;
    if (strncmp(item, value->name, bytes) != 0 || item[bytes] != '[' || item[bytes + 1] < '0' || item[bytes + 1] > '9')
      continue;
    const unsigned long long index = strtoull(item + bytes + 1, &end, 10);
    if (end[0] != ']' || end[1] != '=') continue;
    if (index >= MOST_ELEMENTS)
      return tool_fail("--input '%s': a sequence has at most %d elements", item, MOST_ELEMENTS);
    if (index >= *out) *out = (size_t)index + 1;
    *is_known = true;
  }
  return result;
}

/* An optional tensor is there if it is given; elements of sequences as often as the options say. */
static int add_elements(onnx_program *of, const rondo_onnx_value *value, size_t value_index, bool is_named,
                        const onnx_input_settings *settings) {
  const rondo_onnx_value *tensor = value;
  bool is_known = false;
  size_t length = 0;
  while (tensor->element) tensor = tensor->element;
  if (!is_named) {
    const char *given = find_value(&settings->inputs, value->name);
    if (given && !tensor->has_shape)
      return tool_fail("--input '%s=%s': the model does not say which shape this optional has; give a file",
                       value->name, given);
    return !given || add_input(of, tensor, value_index, NO_INDEX) ? TOOL_OK : tool_fail_memory("the inputs");
  }
  const int found = find_length(value, settings, &length, &is_known);
  if (found != TOOL_OK) return found;
  if (!is_known && is_sequence(value)) {
    is_known = true;
    length = 1;
  }
  if (length > MOST_ELEMENTS)
    return tool_fail("--size '%s[]=%zu': a sequence has at most %d elements", value->name, length, MOST_ELEMENTS);
  for (size_t i = 0; i < length; i++)
    if (!add_input(of, tensor, value_index, i)) return tool_fail_memory("the inputs");
  return is_known ? add_length(of, value->name, length) : TOOL_OK;
}

static int list_input(onnx_program *of, const rondo_onnx_value *value, size_t index,
                      const onnx_input_settings *settings, const char *folder) {
  char path[ONNX_PATH];
  if (!is_list(value)) return add_input(of, value, index, NO_INDEX) ? TOOL_OK : tool_fail_memory("the inputs");
  const bool is_named = is_sequence(value) || is_sequence(value->element);
  const char *given = find_value(&settings->inputs, value->name);
  if (given && strcmp(given, "random") != 0 && strcmp(given, "zeros") != 0)
    return read_elements(of, value, index, is_named, given, given);
  if (given && is_named)
    return tool_fail("--input '%s=%s': it is a sequence; give its elements, '%s[0]=%s' and so on", value->name, given,
                     value->name, given);
  if (!given && folder && onnx_find_file(folder, "input", value->name, index, path))
    return read_elements(of, value, index, is_named, path, "a file of the folder");
  return add_elements(of, value, index, is_named, settings);
}

static int list_inputs(onnx_program *of, const onnx_input_settings *settings, const char *folder) {
  int result = TOOL_OK;
  for (size_t i = 0; i < of->info.inputs && result == TOOL_OK; i++) {
    rondo_onnx_value value = {.struct_size = sizeof value};
    if (rondo_onnx_get_input(of->model, i, &value)) return tool_fail_status("%s", of->path);
    result = list_input(of, &value, i, settings, folder);
  }
  return result;
}

/* Values ----------------------------------------------------------------------------------------------------------- */

/* The size of a named dimension in the files that were read; 1 if none has it. */
static size_t size_in_files(const onnx_program *of, const char *name) {
  for (size_t i = 0; i < of->input_count; i++) {
    const onnx_input *input = &of->inputs[i];
    const bool is_known = input->is_file && input->value.has_shape && input->value.rank == input->tensor.rank;
    for (size_t d = 0; is_known && d < input->value.rank; d++)
      if (strcmp(input->value.dimensions[d].name, name) == 0) return input->tensor.shape[d];
  }
  return 1;
}

static int find_size(const onnx_program *of, const option_list *sizes, const rondo_onnx_dimension *dimension,
                     size_t *out) {
  *out = dimension->size;
  if (!dimension->is_dynamic) return TOOL_OK;
  *out = 1;
  if (dimension->name[0] == '\0') return TOOL_OK;
  const char *given = find_value(sizes, dimension->name);
  if (given) return parse_size(dimension->name, given, out);
  *out = size_in_files(of, dimension->name);
  return TOOL_OK;
}

static bool is_double(const rondo_onnx_value *value) { return strcmp(value->type_name, "double") == 0; }

/* Of the tensor in memory; 0: programs have no such values. */
static rondo_type type_of(const rondo_onnx_value *value) { return is_double(value) ? RONDO_F64 : value->program_type; }

/* Others cannot be imported, which building the program says. */
static bool is_tensor(const rondo_onnx_value *value) {
  static const char *const others[] = {"sequence", "optional", "map", "sparse"};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (strcmp(value->type_name, others[i]) == 0) return false;
  return true;
}

/* Reads what was not read with a whole sequence, or what replaces an element of it. */
static int read_input(onnx_program *of, size_t index, const option_list *inputs, const char *folder) {
  onnx_input *input = &of->inputs[index];
  const char *given = find_value(inputs, input->value.name);
  char path[ONNX_PATH];
  if (input->is_file && (!given || !input->element_name)) return TOOL_OK;
  host_tensor_destroy(&input->tensor);
  input->is_file = false;
  input->source = "none";
  if (!is_tensor(&input->value)) return TOOL_OK;
  input->source = given;
  if (!input->source && folder && onnx_find_file(folder, "input", input->value.name, input->value_index, path)) {
    input->source = "a file of the folder";
    input->is_file = true;
    if (tensor_read(path, &input->tensor) != TOOL_OK) return TOOL_FAILURE;
  }
  if (!input->source) input->source = "random";
  if (input->is_file || strcmp(input->source, "random") == 0 || strcmp(input->source, "zeros") == 0) return TOOL_OK;
  input->is_file = true;
  return tensor_read(input->source, &input->tensor);
}

/* A file has the type of the model, or one that is converted to it. */
static int fit_input(onnx_input *input) {
  char what[300];
  input->has_shape = true;
  if (type_of(&input->value) == 0) return TOOL_OK;
  snprintf(what, sizeof what, "input '%s'", input->value.name);
  input->has_tensor = true;
  return host_tensor_convert(what, type_of(&input->value), &input->tensor);
}

static int make_input(const onnx_program *of, onnx_input *input, const onnx_input_settings *settings, uint64_t seed) {
  const rondo_onnx_value *value = &input->value;
  size_t shape[RONDO_MAX_DIMENSIONS];
  if (!value->has_shape) return TOOL_OK;
  if (value->rank > RONDO_MAX_DIMENSIONS)
    return tool_fail("input '%s' has %zu dimensions, and the tool takes %d", value->name, value->rank,
                     RONDO_MAX_DIMENSIONS);
  for (size_t d = 0; d < value->rank; d++) {
    const int found = find_size(of, &settings->sizes, &value->dimensions[d], &shape[d]);
    if (found != TOOL_OK) return found;
  }
  if (type_of(value) == 0) { /* building the program says that it has no such type */
    memcpy(input->tensor.shape, shape, value->rank * sizeof *shape);
    input->tensor.rank = value->rank;
    input->has_shape = true;
    return TOOL_OK;
  }
  if (host_tensor_create(value->name, type_of(value), shape, value->rank, &input->tensor) != TOOL_OK)
    return TOOL_FAILURE;
  input->has_tensor = true;
  if (strcmp(input->source, "random") == 0) host_tensor_draw(&input->tensor, seed);
  return TOOL_OK;
}

#define HINT_END ": they have the size 1"

/* Adds a name to the hint, once. */
static void hint_at(onnx_program *of, const char *name) {
  static const char begin[] = "; no --size and no file gives the dimensions ", end[] = HINT_END;
  char item[80];
  snprintf(item, sizeof item, "'%.60s'", name);
  const size_t used = strlen(of->hint);
  if (strstr(of->hint, item) || used + sizeof begin + sizeof item + sizeof end > sizeof of->hint) return;
  snprintf(of->hint + used, sizeof of->hint - used, "%s%s", used == 0 ? begin : ", ", item);
}

/* Dimensions whose sizes nothing gives may not fit the others. The first ones are batch sizes, which fit. */
static void write_hint(onnx_program *of, const option_list *sizes) {
  for (size_t i = 0; i < of->input_count; i++) {
    const rondo_onnx_value *value = &of->inputs[i].value;
    for (size_t d = 1; value->has_shape && d < value->rank; d++) {
      const rondo_onnx_dimension *dimension = &value->dimensions[d];
      const bool is_named = dimension->is_dynamic && dimension->name[0] != '\0' && !of->inputs[i].is_file;
      if (is_named && !find_value(sizes, dimension->name) && size_in_files(of, dimension->name) == 1)
        hint_at(of, dimension->name);
    }
  }
  if (of->hint[0] != '\0') strcat(of->hint, HINT_END);
}

int onnx_program_take_inputs(onnx_program *of, const onnx_input_settings *settings, const char *folder) {
  int result = list_inputs(of, settings, folder);
  if (result == TOOL_OK) result = check_items(of, settings);
  for (size_t i = 0; i < of->input_count && result == TOOL_OK; i++)
    result = read_input(of, i, &settings->inputs, folder);
  for (size_t i = 0; i < of->input_count && result == TOOL_OK; i++)
    result = of->inputs[i].is_file ? fit_input(&of->inputs[i])
                                   : make_input(of, &of->inputs[i], settings, settings->seed + i);
  write_hint(of, &settings->sizes);
  return result;
}

void onnx_program_free_inputs(onnx_program *of) {
  for (size_t i = 0; i < of->input_count; i++) {
    host_tensor_destroy(&of->inputs[i].tensor);
    free(of->inputs[i].element_name);
  }
  for (size_t i = 0; i < of->length_count; i++) free((char *)of->lengths[i].name);
  free(of->inputs);
  free(of->lengths);
}

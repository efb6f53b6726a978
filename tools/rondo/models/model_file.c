/* SPDX-License-Identifier: MIT
 * The language model as a safetensors file. Before anything is allocated, the shapes of the tensors are checked against
 * the metadata.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"
#include "models/model_quantized.h"

#define FORMAT_VERSION "1"

static void write_hexadecimal(const unsigned char *bytes, size_t count, char *out) {
  for (size_t i = 0; i < count; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static rondo_status set_number(rondo_weights *weights, const char *key, uint32_t value) {
  char text[16];
  snprintf(text, sizeof text, "%u", value);
  return rondo_weights_set_metadata(weights, key, text);
}

rondo_status model_describe(const language_model *model, rondo_weights *weights) {
  char text[2 * MODEL_MAX_CONTEXT + 1] = "";
  TOOL_TRY(rondo_weights_set_metadata(weights, "format", model->kind->format));
  TOOL_TRY(rondo_weights_set_metadata(weights, "version", FORMAT_VERSION));
  for (size_t i = 0; i < MODEL_SIZES; i++) {
    if (model->sizes[i] > 0) TOOL_TRY(set_number(weights, model_size_rows[i].name, model->sizes[i]));
  }
  TOOL_TRY(model_describe_quantization(model, weights));
  write_hexadecimal(model->vocabulary.byte_of, model->vocabulary.count, text);
  TOOL_TRY(rondo_weights_set_metadata(weights, "vocabulary", text));
  write_hexadecimal(model->opening, model->sizes[MODEL_CONTEXT], text);
  return rondo_weights_set_metadata(weights, "opening", text);
}

rondo_status model_gather(const language_model *model, rondo_compiled *compiled, rondo_weights **out) {
  TOOL_TRY(rondo_weights_create(NULL, out));
  rondo_status status = model_describe(model, *out);
  if (!status) status = rondo_weights_gather(*out, compiled, model_is_parameter, NULL);
  if (!status) return RONDO_OK;
  rondo_weights_destroy(*out);
  *out = NULL;
  return status;
}

/* Loading --------------------------------------------------------------------------------------------------------- */

static const char *metadata_of(const char *path, const rondo_weights *weights, const char *key) {
  const char *text = rondo_weights_get_metadata(weights, key);
  if (!text) tool_fail("%s: this is not a model of rondo train: its metadata has no '%s'", path, key);
  return text;
}

static int read_format(const char *path, const rondo_weights *weights, language_model *out) {
  const char *format = metadata_of(path, weights, "format");
  if (!format) return TOOL_FAILURE;
  out->kind = model_kind_of_format(format);
  if (!out->kind)
    return tool_fail("%s: its format '%s' is unknown: use a file written by rondo train --save", path, format);
  const char *version = metadata_of(path, weights, "version");
  if (!version) return TOOL_FAILURE;
  if (strcmp(version, FORMAT_VERSION) == 0) return TOOL_OK;
  return tool_fail("%s: its format has version '%s'; this rondo reads version " FORMAT_VERSION, path, version);
}

static int read_number(const char *path, const rondo_weights *weights, const char *key, uint32_t maximum,
                       uint32_t *out) {
  const char *text = metadata_of(path, weights, key);
  if (!text) return TOOL_FAILURE;
  const size_t length = strspn(text, "0123456789");
  const unsigned long value = length > 0 && length < 10 && text[length] == '\0' ? strtoul(text, NULL, 10) : 0;
  *out = (uint32_t)value;
  if (value >= 1 && value <= maximum) return TOOL_OK;
  return tool_fail("%s: the %s in its metadata is '%s', not a number from 1 to %u", path, key, text, maximum);
}

static int digit_value(char digit) {
  const char *digits = "0123456789abcdef";
  const char *place = digit ? strchr(digits, digit) : NULL;
  return place ? (int)(place - digits) : -1;
}

/* Decodes up to `limit` bytes. Sets *out_count to SIZE_MAX if the text is not hexadecimal or too long. */
static void read_hexadecimal(const char *text, unsigned char *out, size_t limit, size_t *out_count) {
  size_t count = 0;
  for (; text[2 * count]; count++) {
    const int high = digit_value(text[2 * count]);
    const int low = high < 0 ? -1 : digit_value(text[2 * count + 1]);
    if (low < 0 || count == limit) {
      *out_count = SIZE_MAX;
      return;
    }
    out[count] = (unsigned char)(high * 16 + low);
  }
  *out_count = count;
}

static int read_vocabulary(const char *path, const rondo_weights *weights, vocabulary *out) {
  const char *text = metadata_of(path, weights, "vocabulary");
  if (!text) return TOOL_FAILURE;
  unsigned char bytes[256], occurs[256] = {0};
  size_t count = 0;
  read_hexadecimal(text, bytes, sizeof bytes, &count);
  bool is_rising = count != SIZE_MAX && count >= 2;
  for (size_t i = 0; is_rising && i < count; i++) {
    is_rising = i == 0 || bytes[i] > bytes[i - 1];
    occurs[bytes[i]] = 1;
  }
  if (!is_rising)
    return tool_fail("%s: the vocabulary in its metadata must be two or more bytes in ascending order", path);
  *out = vocabulary_create(occurs);
  return TOOL_OK;
}

static int read_opening(const char *path, const rondo_weights *weights, language_model *out) {
  const char *text = metadata_of(path, weights, "opening");
  if (!text) return TOOL_FAILURE;
  const uint32_t context = out->sizes[MODEL_CONTEXT];
  size_t count = 0;
  read_hexadecimal(text, out->opening, context, &count);
  bool is_known = count == context;
  for (size_t i = 0; is_known && i < count; i++) is_known = out->vocabulary.token_of[out->opening[i]] >= 0;
  if (is_known) return TOOL_OK;
  return tool_fail("%s: the opening in its metadata must be %u bytes of its vocabulary", path, context);
}

static int read_sizes(const char *path, const rondo_weights *weights, language_model *out) {
  for (size_t i = 0; i < MODEL_SIZES; i++) {
    if (out->kind->sizes[i] == 0) continue;
    const model_size_row *row = &model_size_rows[i];
    if (read_number(path, weights, row->name, row->most, &out->sizes[i]) != TOOL_OK) return TOOL_FAILURE;
  }
  char why[MODEL_WHY_BYTES];
  if (model_sizes_fit(out, why)) return TOOL_OK;
  return tool_fail("%s: the sizes in its metadata are invalid: %s", path, why);
}

static int read_metadata(const char *path, const rondo_weights *weights, language_model *out) {
  int result = read_format(path, weights, out);
  if (!result) result = read_sizes(path, weights, out);
  if (!result) result = model_read_quantization(path, weights, out);
  if (!result) result = read_vocabulary(path, weights, &out->vocabulary);
  if (!result) result = read_opening(path, weights, out);
  return result;
}

static void format_shape(size_t rank, const size_t *shape, char *out, size_t bytes) {
  size_t length = 0;
  out[0] = '\0';
  for (size_t i = 0; i < rank && length < bytes; i++) {
    length += (size_t)snprintf(out + length, bytes - length, "%s%zu", i ? ", " : "", shape[i]);
  }
}

typedef struct wanted_tensor {
  const char *name;
  rondo_type type;
  size_t rank;
  const size_t *shape;
} wanted_tensor;

static int check_tensor(const char *path, const rondo_weights *weights, const wanted_tensor *wanted) {
  rondo_weight found = {0};
  const rondo_status status = rondo_weights_find(weights, wanted->name, &found);
  if (status == RONDO_UNSUPPORTED) return tool_fail_status("%s cannot be used", path);
  if (status != RONDO_OK) {
    return tool_fail("%s: it has no tensor '%s'", path, wanted->name);
  }
  if (found.type != wanted->type) {
    return tool_fail("%s: tensor '%s' has type %s, not %s", path, wanted->name, rondo_type_name(found.type),
                     rondo_type_name(wanted->type));
  }
  if (found.rank == wanted->rank && memcmp(found.shape, wanted->shape, wanted->rank * sizeof found.shape[0]) == 0) {
    return TOOL_OK;
  }
  char has[96], needs[96];
  format_shape(found.rank, found.shape, has, sizeof has);
  format_shape(wanted->rank, wanted->shape, needs, sizeof needs);
  return tool_fail("%s: tensor '%s' has the shape [%s]; its metadata require [%s]", path, wanted->name, has, needs);
}

static int check_parameter(const char *path, const rondo_weights *weights, const language_model *model, size_t index,
                           const model_parameter *p) {
  stored_parameter stored;
  char scales[MODEL_SCALES_NAME];
  if (model_stored_parameter(model, index, p, &stored)) return tool_fail_status("%s: '%s'", path, p->name);
  const wanted_tensor values = {p->name, stored.type, stored.rank, stored.shape};
  const int result = check_tensor(path, weights, &values);
  if (result != TOOL_OK || stored.scales[0] == 0) return result;
  model_scales_name(p->name, scales);
  return check_tensor(path, weights, &(wanted_tensor){scales, RONDO_F32, 2, stored.scales});
}

int model_check(const char *path, const rondo_weights *weights, const language_model *model) {
  model_parameter parameter;
  for (size_t i = 0; model->kind->parameter(model, i, &parameter); i++) {
    if (check_parameter(path, weights, model, i, &parameter) != TOOL_OK) return TOOL_FAILURE;
  }
  return TOOL_OK;
}

int model_read(const char *path, const rondo_weights *weights, language_model *out) {
  *out = (language_model){.type = RONDO_F32};
  const int result = read_metadata(path, weights, out);
  return result == TOOL_OK ? model_check(path, weights, out) : result;
}

int model_load(const char *path, language_model *out, rondo_weights **out_weights) {
  if (rondo_weights_load(path, NULL, out_weights)) return tool_fail_status("the model could not be loaded");
  const int result = model_read(path, *out_weights, out);
  if (result != TOOL_OK) {
    rondo_weights_destroy(*out_weights);
    *out_weights = NULL;
  }
  return result;
}

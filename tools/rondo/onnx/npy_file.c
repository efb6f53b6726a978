/* SPDX-License-Identifier: MIT
 * NumPy's files. The header is parsed by a cursor that never passes its end.
 */
#include "onnx/npy_file.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/tool.h"

enum { MAGIC_BYTES = 6, ALIGNMENT = 64, HEADER_MAX = 65536 };
static const unsigned char magic[MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* The types, as a header writes them. Foreign integers are read as a type that holds them. */
typedef struct npy_type {
  const char *text;
  rondo_type type;
  foreign_integer foreign;
} npy_type;

static const npy_type types[] = {
    {"<f4", RONDO_F32, FOREIGN_NONE}, {"<f8", RONDO_F64, FOREIGN_NONE}, {"<f2", RONDO_F16, FOREIGN_NONE},
    {"<i8", RONDO_I64, FOREIGN_NONE}, {"<i4", RONDO_I32, FOREIGN_NONE}, {"|b1", RONDO_BOOL, FOREIGN_NONE},
    {"|i1", RONDO_I8, FOREIGN_NONE},  {"|u1", RONDO_U8, FOREIGN_NONE},  {"<i2", RONDO_I32, FOREIGN_I16},
    {"<u2", RONDO_I32, FOREIGN_U16},  {"<u4", RONDO_I64, FOREIGN_U32},  {"<u8", RONDO_I64, FOREIGN_U64}};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

/* A header while it is parsed. */
typedef struct npy_header {
  const char *name, *at, *end;
  bool has_type, has_order, has_shape;
  rondo_type type;
  foreign_integer foreign;
  bool is_fortran;
  size_t rank, shape[RONDO_MAX_DIMENSIONS];
} npy_header;

/* Parsing ---------------------------------------------------------------------------------------------------------- */

static int fail_header(const npy_header *h) {
  return tool_fail("%s: its header is not that of a NumPy array: write it with numpy.save", h->name);
}

static void skip_blanks(npy_header *h) {
  while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t')) h->at++;
}

/* Skips blanks and this character, if it comes next. */
static bool take(npy_header *h, char character) {
  skip_blanks(h);
  if (h->at == h->end || *h->at != character) return false;
  h->at++;
  return true;
}

static bool take_word(npy_header *h, const char *word) {
  const size_t length = strlen(word);
  skip_blanks(h);
  if ((size_t)(h->end - h->at) < length || memcmp(h->at, word, length) != 0) return false;
  h->at += length;
  return true;
}

/* A quoted text without escapes, which is cut to fit. */
static bool take_text(npy_header *h, char *out, size_t bytes) {
  size_t length = 0;
  const char quote = take(h, '\'') ? '\'' : '"';
  if (quote == '"' && !take(h, '"')) return false;
  for (; h->at < h->end && *h->at != quote; h->at++)
    if (length + 1 < bytes) out[length++] = *h->at;
  out[length] = '\0';
  return take(h, quote);
}

static bool take_number(npy_header *h, size_t *out) {
  skip_blanks(h);
  const char *begin = h->at;
  uint64_t value = 0;
  for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++) {
    const unsigned digit = (unsigned)(*h->at - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = 10 * value + digit;
  }
  *out = (size_t)value;
  const bool is_number = h->at > begin;
  if (h->at < h->end && *h->at == 'L') h->at++; /* Python 2 wrote 3L */
  return is_number;
}

static int take_type(npy_header *h) {
  char text[32] = ""; /* the names of types are compared from their second character on */
  skip_blanks(h);
  if (h->at < h->end && *h->at == '[') return tool_fail("%s: an array of structures: save one of its fields", h->name);
  if (!take_text(h, text, sizeof text)) return fail_header(h);
  for (size_t i = 0; i < TYPE_COUNT; i++) {
    if (strcmp(text + 1, types[i].text + 1) != 0) continue;
    h->type = types[i].type;
    h->foreign = types[i].foreign;
    h->has_type = text[0] == types[i].text[0] || rondo_type_bytes(h->type) == 1;
  }
  if (h->has_type) return TOOL_OK;
  if (text[0] == '>')
    return tool_fail("%s: numbers are big-endian ('%s'): use a.astype('<%s')", h->name, text, text + 1);
  return tool_fail(
      "%s: the type '%s' cannot be read: convert the array with a.astype('float32'), or to float64, float16, bool or "
      "an "
      "integer of 8 to 64 bits",
      h->name, text);
}

static int take_shape(npy_header *h) {
  if (!take(h, '(')) return fail_header(h);
  while (!take(h, ')')) {
    if (h->rank == RONDO_MAX_DIMENSIONS)
      return tool_fail("%s: it has more than %d dimensions", h->name, RONDO_MAX_DIMENSIONS);
    if (!take_number(h, &h->shape[h->rank++])) return fail_header(h);
    if (take(h, ',')) continue;
    if (take(h, ')')) break;
    return fail_header(h);
  }
  h->has_shape = true;
  return TOOL_OK;
}

static int take_order(npy_header *h) {
  h->is_fortran = take_word(h, "True");
  h->has_order = h->is_fortran || take_word(h, "False");
  return h->has_order ? TOOL_OK : fail_header(h);
}

static int take_entry(npy_header *h) {
  char key[32];
  if (!take_text(h, key, sizeof key) || !take(h, ':')) return fail_header(h);
  if (strcmp(key, "descr") == 0 && !h->has_type) return take_type(h);
  if (strcmp(key, "fortran_order") == 0 && !h->has_order) return take_order(h);
  if (strcmp(key, "shape") == 0 && !h->has_shape) return take_shape(h);
  return fail_header(h);
}

static int parse_header(npy_header *h) {
  if (!take(h, '{')) return fail_header(h);
  while (!take(h, '}')) {
    if (take_entry(h) != TOOL_OK) return TOOL_FAILURE;
    if (take(h, ',')) continue;
    if (take(h, '}')) break;
    return fail_header(h);
  }
  return h->has_type && h->has_order && h->has_shape ? TOOL_OK : fail_header(h);
}

/* Finds the header's text, and where the elements begin. */
static int find_header(npy_header *h, const unsigned char *bytes, size_t count, size_t *out_begin) {
  enum { SHORT = MAGIC_BYTES + 4, LONG = MAGIC_BYTES + 6 };
  if (count < LONG || memcmp(bytes, magic, MAGIC_BYTES) != 0) return tool_fail("%s: it is not a NumPy file", h->name);
  const unsigned version = bytes[MAGIC_BYTES];
  if (version < 1 || version > 3) return tool_fail("%s: it has version %u; 1 to 3 are known", h->name, version);
  size_t length = bytes[8] | (size_t)bytes[9] << 8, begin = SHORT;
  if (version > 1) {
    length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    begin = LONG;
  }
  if (length > HEADER_MAX || length > count - begin) return tool_fail("%s: it ends in its header", h->name);
  h->at = (const char *)bytes + begin;
  h->end = h->at + length;
  *out_begin = begin + length;
  return TOOL_OK;
}

/* Elements --------------------------------------------------------------------------------------------------------- */

static size_t element_bytes(const npy_header *h) {
  return h->foreign != FOREIGN_NONE ? foreign_integer_bytes(h->foreign) : rondo_type_bytes(h->type);
}

/* Copies from Fortran order, in which the first index changes fastest. */
static void transpose(const npy_header *h, const unsigned char *from, size_t count, char *to) {
  const size_t bytes = element_bytes(h);
  for (size_t i = 0; i < count; i++) {
    size_t rest = i, source = 0;
    for (size_t d = h->rank; d-- > 0; rest /= h->shape[d]) {
      size_t stride = 1;
      for (size_t k = 0; k < d; k++) stride *= h->shape[k];
      source += rest % h->shape[d] * stride;
    }
    memcpy(to + i * bytes, from + source * bytes, bytes);
  }
}

static void copy_plain(const npy_header *h, const unsigned char *bytes, size_t count, size_t elements, void *out) {
  if (h->is_fortran)
    transpose(h, bytes, elements, out);
  else if (count > 0)
    memcpy(out, bytes, count);
}

static int copy_foreign(const npy_header *h, const unsigned char *bytes, size_t count, host_tensor *out) {
  void *plain = malloc(count > 0 ? count : 1);
  if (!plain) return tool_fail_memory("%s", h->name);
  copy_plain(h, bytes, count, out->count, plain);
  const int result = host_tensor_take_foreign(h->name, h->foreign, plain, out);
  free(plain);
  return result;
}

static int copy_elements(const npy_header *h, const unsigned char *bytes, size_t count, host_tensor *out) {
  if (out->count * element_bytes(h) != count)
    return tool_fail("%s: it has %zu bytes of elements; its shape takes %zu", h->name, count,
                     out->count * element_bytes(h));
  if (h->foreign != FOREIGN_NONE) return copy_foreign(h, bytes, count, out);
  copy_plain(h, bytes, count, out->count, out->data);
  return TOOL_OK;
}

/* The bytes of an array of this shape, which the file must have before memory is taken for them. */
static bool fits(const npy_header *h, size_t count) {
  size_t bytes = element_bytes(h);
  for (size_t i = 0; i < h->rank; i++)
    if (h->shape[i] == 0) return true;
  for (size_t i = 0; i < h->rank; i++) {
    if (h->shape[i] > count / bytes) return false;
    bytes *= h->shape[i];
  }
  return bytes <= count;
}

int npy_parse(const char *name, const unsigned char *bytes, size_t count, host_tensor *out) {
  npy_header h = {.name = name};
  size_t begin = 0;
  *out = (host_tensor){0};
  if (find_header(&h, bytes, count, &begin) != TOOL_OK || parse_header(&h) != TOOL_OK) return TOOL_FAILURE;
  if (!fits(&h, count - begin)) {
    char shape[SHAPE_TEXT];
    return tool_fail("%s: it has %zu bytes of elements, too few for its shape %s", name, count - begin,
                     shape_write(h.shape, h.rank, shape));
  }
  if (host_tensor_create(name, h.type, h.shape, h.rank, out) != TOOL_OK) return TOOL_FAILURE;
  const int result = copy_elements(&h, bytes + begin, count - begin, out);
  if (result != TOOL_OK) host_tensor_destroy(out);
  return result;
}

int npy_read(const char *path, host_tensor *out) {
  file_bytes file;
  *out = (host_tensor){0};
  if (file_read(path, &file) != TOOL_OK) return TOOL_FAILURE;
  const int result = npy_parse(file_display_name(path), file.bytes, file.count, out);
  file_release(&file);
  return result;
}

/* Writing ---------------------------------------------------------------------------------------------------------- */

static const char *type_text(rondo_type type) {
  for (size_t i = 0; i < TYPE_COUNT; i++)
    if (types[i].type == type && types[i].foreign == FOREIGN_NONE) return types[i].text;
  return type == RONDO_BF16 ? "<f4" : "|V1";
}

/* Returns the bytes of the header, which are a multiple of ALIGNMENT. */
static size_t write_header(const host_tensor *t, char *out, size_t bytes) {
  const size_t begin = MAGIC_BYTES + 4;
  size_t at = begin + (size_t)snprintf(out + begin, bytes - begin, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                                       type_text(t->type));
  for (size_t i = 0; i < t->rank; i++) at += (size_t)snprintf(out + at, bytes - at, "%zu, ", t->shape[i]);
  at += (size_t)snprintf(out + at, bytes - at, "), }");
  for (; (at + 1) % ALIGNMENT != 0; at++) out[at] = ' ';
  out[at++] = '\n';
  memcpy(out, magic, MAGIC_BYTES);
  out[MAGIC_BYTES] = 1;
  out[MAGIC_BYTES + 1] = 0;
  out[MAGIC_BYTES + 2] = (char)((at - begin) & 0xff);
  out[MAGIC_BYTES + 3] = (char)((at - begin) >> 8);
  return at;
}

static void write_elements(const host_tensor *t, char *out) {
  if (t->type != RONDO_BF16) {
    if (t->bytes > 0) memcpy(out, t->data, t->bytes);
    return;
  }
  for (size_t i = 0; i < t->count; i++) {
    const float wide = (float)host_tensor_at(t, i);
    memcpy(out + i * sizeof wide, &wide, sizeof wide);
  }
}

int npy_write(const char *path, const host_tensor *tensor) {
  char header[512];
  const size_t head = write_header(tensor, header, sizeof header);
  const size_t bytes = tensor->type == RONDO_BF16 ? 2 * tensor->bytes : tensor->bytes;
  char *file = malloc(head + bytes);
  if (!file) return tool_fail_memory("%s", path);
  memcpy(file, header, head);
  write_elements(tensor, file + head);
  const rondo_status status = rondo_file_write(path, file, head + bytes);
  free(file);
  return status ? tool_fail("%s", rondo_last_error()->message) : TOOL_OK;
}

/* SPDX-License-Identifier: MIT
 * The encoding is that of Protocol Buffers (protobuf.dev, "Encoding"): a message is a sequence of fields, each a key
 * (number and wire type) and a payload; a nested message is a payload with its length before it. The length of a
 * condensed message is known after it was written, so five bytes are left for it: a number may have leading zeros.
 */
#include "onnx/format/wire_reader.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"

#define LENGTH_BYTES 5  /* of a length below 2^35; protobuf-c reads no more */
#define NUMBER_BYTES 10 /* of 64 bits */

typedef enum wire_type { WIRE_NUMBER = 0, WIRE_8_BYTES = 1, WIRE_LENGTH = 2, WIRE_4_BYTES = 5 } wire_type;

typedef struct condenser {
  rondo_allocator allocator;
  const uint8_t *file;
  RONDO_ARRAY(uint8_t) out;
} condenser;

/* A message of the file that is being read, or the payload of a field. */
typedef struct message {
  const ProtobufCMessageDescriptor *kind;
  const uint8_t *at, *end;
} message;

typedef struct field {
  const ProtobufCFieldDescriptor *known; /* NULL: onnx.proto does not name it */
  const uint8_t *key;                    /* where it begins */
  const uint8_t *payload, *end;          /* without a length */
  wire_type wire;
} field;

/* Errors ----------------------------------------------------------------------------------------------------------- */

static rondo_status fail_at(const condenser *self, const uint8_t *at, const message *in, rondo_reason reason,
                            const char *what) {
  return rondo_fail(RONDO_INVALID_DATA, reason, "byte %zu, in a message '%s': %s", (size_t)(at - self->file),
                    in->kind->short_name, what);
}

static rondo_status fail_field(const condenser *self, const field *of, const message *in, rondo_reason reason,
                               const char *what) {
  return rondo_fail(RONDO_INVALID_DATA, reason, "byte %zu, field '%s' of a message '%s': %s",
                    (size_t)(of->key - self->file), of->known->name, in->kind->short_name, what);
}

/* Reading ---------------------------------------------------------------------------------------------------------- */

static rondo_status read_number(const condenser *self, message *in, uint64_t *out) {
  const uint8_t *const begin = in->at;
  uint64_t value = 0;
  for (unsigned i = 0; i < NUMBER_BYTES; i++) {
    if (in->at == in->end) return fail_at(self, begin, in, RONDO_REASON_TRUNCATED, "a number ends with the message");
    const uint8_t byte = *in->at++;
    value |= (uint64_t)(byte & 0x7f) << (7 * i);
    if (byte >= 0x80) continue;
    if (i == NUMBER_BYTES - 1 && byte > 1) break;
    *out = value;
    return RONDO_OK;
  }
  return fail_at(self, begin, in, RONDO_REASON_MALFORMED, "a number has more than 64 bits");
}

static rondo_status read_payload(const condenser *self, message *in, field *out) {
  uint64_t bytes = 0;
  out->payload = in->at;
  switch (out->wire) {
    case WIRE_NUMBER:
      RONDO_TRY(read_number(self, in, &bytes));
      break;
    case WIRE_8_BYTES:
      bytes = 8;
      break;
    case WIRE_4_BYTES:
      bytes = 4;
      break;
    case WIRE_LENGTH:
      RONDO_TRY(read_number(self, in, &bytes));
      break;
    default:
      return fail_at(self, out->key, in, RONDO_REASON_MALFORMED, "a field has an unknown encoding");
  }
  if (out->wire == WIRE_NUMBER) {
    out->end = in->at;
    return RONDO_OK;
  }
  if (bytes > (uint64_t)(in->end - in->at))
    return fail_at(self, out->key, in, RONDO_REASON_TRUNCATED, "a field is longer than its message");
  out->payload = in->at;
  out->end = in->at = in->at + bytes;
  return RONDO_OK;
}

static rondo_status read_field(const condenser *self, message *in, field *out) {
  uint64_t key = 0;
  *out = (field){.key = in->at};
  RONDO_TRY(read_number(self, in, &key));
  if (key >> 3 == 0 || key > UINT32_MAX)
    return fail_at(self, out->key, in, RONDO_REASON_MALFORMED, "a field has no valid number");
  out->wire = (wire_type)(key & 7);
  out->known = protobuf_c_message_descriptor_get_field(in->kind, (unsigned)(key >> 3));
  return read_payload(self, in, out);
}

static wire_type wire_of(ProtobufCType type) {
  switch (type) {
    case PROTOBUF_C_TYPE_MESSAGE:
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
      return WIRE_LENGTH;
    case PROTOBUF_C_TYPE_FLOAT:
      return WIRE_4_BYTES;
    case PROTOBUF_C_TYPE_DOUBLE:
      return WIRE_8_BYTES;
    default:
      return WIRE_NUMBER;
  }
}

/* Repeated numbers are one field each, or one field with all of them. */
static bool has_right_wire(const field *of) {
  const wire_type one = wire_of(of->known->type);
  if (of->wire == one) return true;
  return of->wire == WIRE_LENGTH && of->known->label == PROTOBUF_C_LABEL_REPEATED;
}

static rondo_status check_text(const condenser *self, const field *of, const message *in) {
  const uint8_t *at = of->payload;
  while (at < of->end) {
    const size_t length = rondo_utf8_length((const char *)at, (size_t)(of->end - at));
    if (length == 0) return fail_field(self, of, in, RONDO_REASON_MALFORMED, "the text is not UTF-8");
    const bool is_c1 = at[0] == 0xc2 && at[1] < 0xa0; /* U+0080 to U+009F, which terminals obey, too */
    if (*at < 0x20 || *at == 0x7f || is_c1)
      return fail_field(self, of, in, RONDO_REASON_MALFORMED, "the text has a control character");
    at += length;
  }
  return RONDO_OK;
}

/* Writing ---------------------------------------------------------------------------------------------------------- */

/* protobuf-c counts the bytes of a message as an int. */
static rondo_status write_bytes(condenser *self, const void *bytes, size_t count) {
  if (count > INT_MAX - self->out.count)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "the file has more than 2 GiB without the elements of its tensors: store the tensors as raw or "
                      "external data");
  RONDO_TRY(rondo_array_reserve(&self->allocator, &self->out, self->out.count + count));
  memcpy(self->out.items + self->out.count, bytes, count);
  self->out.count += count;
  return RONDO_OK;
}

static rondo_status write_number(condenser *self, uint64_t value) {
  uint8_t bytes[NUMBER_BYTES];
  size_t count = 0;
  for (; value >= 0x80; value >>= 7) bytes[count++] = (uint8_t)(value | 0x80);
  bytes[count++] = (uint8_t)value;
  return write_bytes(self, bytes, count);
}

static rondo_status write_key(condenser *self, const field *of) {
  return write_number(self, (uint64_t)of->known->id << 3 | (uint64_t)of->wire);
}

static void write_length_at(condenser *self, size_t at, size_t length) {
  for (size_t i = 0; i < LENGTH_BYTES; i++)
    self->out.items[at + i] = (uint8_t)((length >> (7 * i) & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
}

static rondo_status condense(condenser *self, message in, unsigned depth);

static rondo_status condense_nested(condenser *self, const field *of, const message *in, unsigned depth) {
  static const uint8_t room[LENGTH_BYTES];
  if (depth == RONDO_ONNX_MOST_NESTED)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "byte %zu, field '%s' of a message '%s': messages are nested more than %d deep",
                      (size_t)(of->key - self->file), of->known->name, in->kind->short_name, RONDO_ONNX_MOST_NESTED);
  RONDO_TRY(write_bytes(self, room, sizeof room));
  const size_t begin = self->out.count;
  const message nested = {.kind = of->known->descriptor, .at = of->payload, .end = of->end};
  RONDO_TRY(condense(self, nested, depth + 1));
  const size_t length = self->out.count - begin;
  write_length_at(self, begin - LENGTH_BYTES, length);
  return RONDO_OK;
}

static rondo_status write_place(condenser *self, const field *of) {
  const rondo_onnx_place place = {.offset = (uint64_t)(of->payload - self->file),
                                  .bytes = (uint64_t)(of->end - of->payload)};
  RONDO_TRY(write_number(self, sizeof place));
  return write_bytes(self, &place, sizeof place);
}

static rondo_status write_payload(condenser *self, const field *of) {
  const size_t count = (size_t)(of->end - of->payload);
  if (of->wire == WIRE_LENGTH) RONDO_TRY(write_number(self, count));
  return write_bytes(self, of->payload, count);
}

static bool is_elements(const field *of, const message *in) {
  return in->kind == &rondo_onnx__tensor__descriptor && strcmp(of->known->name, "raw_data") == 0;
}

static rondo_status condense_field(condenser *self, const field *of, const message *in, unsigned depth) {
  if (!has_right_wire(of))
    return fail_field(self, of, in, RONDO_REASON_MALFORMED, "the encoding is that of another type");
  if (of->known->type == PROTOBUF_C_TYPE_STRING) RONDO_TRY(check_text(self, of, in));
  RONDO_TRY(write_key(self, of));
  if (of->known->type == PROTOBUF_C_TYPE_MESSAGE) return condense_nested(self, of, in, depth);
  return is_elements(of, in) ? write_place(self, of) : write_payload(self, of);
}

/* A nested message that is no list may be there once. protobuf-c would merge several, with memory for all that it has
 * merged before, each time. */
static rondo_status check_once(const condenser *self, const field *of, const message *in, uint64_t *inout_seen) {
  const uint64_t bit = UINT64_C(1) << (of->known - in->kind->fields);
  assert(in->kind->n_fields <= 64);
  if (of->known->type != PROTOBUF_C_TYPE_MESSAGE || of->known->label == PROTOBUF_C_LABEL_REPEATED) return RONDO_OK;
  if ((*inout_seen & bit) != 0)
    return fail_field(self, of, in, RONDO_REASON_MALFORMED, "the field is there twice, and is no list");
  *inout_seen |= bit;
  return RONDO_OK;
}

/* Recursion is limited by RONDO_ONNX_MOST_NESTED. */
static rondo_status condense(condenser *self, message in, unsigned depth) {
  uint64_t seen = 0;
  while (in.at < in.end) {
    field next;
    RONDO_TRY(read_field(self, &in, &next));
    if (next.known == NULL) continue;
    RONDO_TRY(check_once(self, &next, &in, &seen));
    RONDO_TRY(condense_field(self, &next, &in, depth));
  }
  return RONDO_OK;
}

/* Unpacking -------------------------------------------------------------------------------------------------------- */

/* protobuf-c asks for no bytes where a field is empty, and takes NULL for a failure. */
static void *take_from_scratch(void *scratch, size_t bytes) {
  void *memory = NULL;
  return rondo_scratch_take(scratch, bytes + (bytes == 0), 1, &memory) == RONDO_OK ? memory : NULL;
}

static void leave_in_scratch(void *scratch, void *pointer) {
  (void)scratch;
  (void)pointer;
}

/* A condensed message is whole, and no required field exists: what can be wrong is inside packed numbers. */
static rondo_status unpack(rondo_scratch *scratch, const condenser *self, const ProtobufCMessageDescriptor *descriptor,
                           ProtobufCMessage **out) {
  ProtobufCAllocator allocator = {.alloc = take_from_scratch, .free = leave_in_scratch, .allocator_data = scratch};
  const uint64_t before = rondo_error_number();
  *out = protobuf_c_message_unpack(descriptor, &allocator, self->out.count, self->out.items);
  if (*out != NULL) return RONDO_OK;
  if (rondo_error_number() != before) return RONDO_OUT_OF_MEMORY;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                    "a message '%s' has a list of numbers that is not valid", descriptor->short_name);
}

rondo_status rondo_onnx_read_message(rondo_scratch *scratch, const uint8_t *file, size_t count,
                                     const ProtobufCMessageDescriptor *descriptor, ProtobufCMessage **out) {
  static const uint8_t nothing[1];
  if (count == 0) file = nothing; /* an empty file is not mapped, and an empty message is valid */
  condenser self = {.allocator = *scratch->allocator, .file = file};
  const message whole = {.kind = descriptor, .at = file, .end = file + count};
  *out = NULL;
  rondo_status status = condense(&self, whole, 0);
  if (status == RONDO_OK) status = unpack(scratch, &self, descriptor, out);
  rondo_array_free(&self.allocator, &self.out);
  return status;
}

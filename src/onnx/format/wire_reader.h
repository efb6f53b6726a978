/* SPDX-License-Identifier: MIT
 * From the bytes of a file to the messages of onnx.proto. protobuf-c trusts its input in three ways that a file from
 * elsewhere must not be trusted: it recurses as deep as messages are nested, it copies what nobody reads, and it says
 * only that something is wrong. So the bytes are first checked and condensed: what onnx.proto does not name is dropped,
 * and the elements of tensors are replaced by their place in the file. What is left is small, and is unpacked by
 * protobuf-c.
 *
 * Threads: any; a scratch belongs to one at a time.
 */
#ifndef RONDO_ONNX_FORMAT_WIRE_READER_H
#define RONDO_ONNX_FORMAT_WIRE_READER_H

#include "base/allocation.h"
#include "onnx/format/onnx.pb-c.h"

/* How deep messages may be nested. A graph in an attribute of a node takes three levels. */
#define RONDO_ONNX_MOST_NESTED 96

/* What `raw_data` of an unpacked tensor holds: where its elements are in the file. */
typedef struct rondo_onnx_place {
  uint64_t offset, bytes;
} rondo_onnx_place;

/* A text of a message; "" if the message has none. */
static inline const char *rondo_onnx_text(const char *text) { return text != NULL ? text : ""; }

/* Reads a message of the kind `descriptor`. The message and everything in it is memory of the scratch, which stays
 * valid after a failure; it is never freed by itself. Texts are UTF-8 without control characters. Errors: INVALID_DATA
 * with TRUNCATED or MALFORMED, naming the byte, the message and the field; LIMIT_EXCEEDED (nested too deep; 2 GiB and
 * more without the elements of tensors); OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onnx_read_message(rondo_scratch *scratch, const uint8_t *file, size_t count,
                                                    const ProtobufCMessageDescriptor *descriptor,
                                                    ProtobufCMessage **out);

#endif

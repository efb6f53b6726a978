/* SPDX-License-Identifier: MIT
 * A backend of Triton Inference Server that only copies: output `y` of each request is input `x`. It is the least that
 * a backend does, so bench/serving_overhead.py measures Rondo's beside it. The server's functions are those of the
 * process that loads it. The server's own thread runs it, and nothing is kept.
 */
#include <string.h>

#include "fake_triton/fake_triton.h" /* declares the server's functions */

#define TRY(call)                      \
  do {                                 \
    triton_error *error_ = (call);     \
    if (error_ != NULL) return error_; \
  } while (0)

static triton_error *copy_pieces(triton_input *input, uint32_t count, char *to) {
  for (uint32_t i = 0; i < count; i++) {
    const void *piece;
    uint64_t bytes;
    triton_memory_type type = TRITON_MEMORY_CPU;
    int64_t id = 0;
    TRY(TRITONBACKEND_InputBuffer(input, i, &piece, &bytes, &type, &id));
    memcpy(to, piece, bytes);
    to += bytes;
  }
  return NULL;
}

static triton_error *answer(triton_request *request, triton_response *response) {
  triton_input *input;
  triton_output *output;
  const char *name;
  triton_data_type type;
  const int64_t *shape;
  uint32_t rank, pieces;
  uint64_t bytes;
  void *buffer;
  triton_memory_type memory = TRITON_MEMORY_CPU;
  int64_t id = 0;
  TRY(TRITONBACKEND_RequestInput(request, "x", &input));
  TRY(TRITONBACKEND_InputProperties(input, &name, &type, &shape, &rank, &bytes, &pieces));
  TRY(TRITONBACKEND_ResponseOutput(response, &output, "y", type, shape, rank));
  TRY(TRITONBACKEND_OutputBuffer(output, &buffer, bytes, &memory, &id));
  return copy_pieces(input, pieces, buffer);
}

TRITON_EXPORT triton_error *TRITONBACKEND_ModelInstanceExecute(triton_instance *instance, triton_request **requests,
                                                               uint32_t count) {
  (void)instance;
  for (uint32_t i = 0; i < count; i++) {
    triton_response *response;
    TRY(TRITONBACKEND_ResponseNew(&response, requests[i])); /* of the first request only, if it fails */
    TRY(TRITONBACKEND_ResponseSend(response, TRITON_RESPONSE_COMPLETE_FINAL, answer(requests[i], response)));
    TRY(TRITONBACKEND_RequestRelease(requests[i], TRITON_REQUEST_RELEASE_ALL));
  }
  return NULL;
}

/* SPDX-License-Identifier: MIT
 * The session calls rondo_triton_generation_next after each step, in the thread that ran it, without a lock. Only then,
 * and when the request is answered, the flight's responses are made.
 */
#include "triton/token_generation.h"

#include <string.h>

#include "triton/request_binding.h"
#include "triton/server_functions.h"

static const rondo_triton_source *source_of(const rondo_triton_flight *flight) {
  return &flight->instance->served->model->source;
}

static rondo_status refuse(const char *why) {
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE, "the request has the parameter max_tokens, but %s", why);
}

static rondo_status check_request(const rondo_triton_flight *flight) {
  const rondo_triton_model_state *model = flight->instance->served->model;
  const rondo_triton_tensors *outputs = &model->source.outputs;
  if (!model->source.generates) return refuse("the model does not say which of its outputs is the next input");
  if (!model->config.is_decoupled && flight->options.max_tokens > 1)
    return refuse(
        "each token is a response: add model_transaction_policy { decoupled: true } to the configuration, and "
        "ask by gRPC streaming or generate_stream");
  for (size_t i = 0; i < outputs->count; i++)
    if ((flight->wanted >> i & 1) != 0 && outputs->items[i].has_length)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                        "output '%s' has as many positions as the prompt: do not request it with max_tokens",
                        outputs->items[i].name);
  return RONDO_OK;
}

/* The output that is the next input is needed, whether it is wanted or not. */
static bool needs(const rondo_triton_flight *flight, size_t output) {
  return (flight->wanted >> output & 1) != 0 || output == source_of(flight)->next_output;
}

enum { ALIGNMENT = 16 };
static size_t rounded(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

rondo_status rondo_triton_generation_prepare(rondo_triton_flight *flight) {
  const rondo_triton_tensors *outputs = &source_of(flight)->outputs;
  size_t bytes = 0;
  RONDO_TRY(check_request(flight));
  for (size_t i = 0; i < outputs->count; i++)
    if (needs(flight, i)) bytes += rounded(outputs->items[i].row_bytes);
  RONDO_TRY(rondo_allocate_items(&flight->instance->served->allocator, bytes, 1, &flight->step_outputs));
  flight->step_bytes = bytes;
  char *at = flight->step_outputs;
  for (size_t i = 0; i < outputs->count; i++) {
    if (!needs(flight, i)) continue;
    flight->outputs[i] = at;
    at += rounded(outputs->items[i].row_bytes);
  }
  return RONDO_OK;
}

/* Responses -------------------------------------------------------------------------------------------------------- */

static rondo_status make_response(rondo_triton_flight *flight) {
  const rondo_triton_tensors *outputs = &source_of(flight)->outputs;
  RONDO_TRY(rondo_triton_check(rondo_triton_server.response_new(&flight->response, flight->handle),
                               "TRITONBACKEND_ResponseNew"));
  for (size_t i = 0; i < outputs->count; i++) {
    void *buffer;
    if ((flight->wanted >> i & 1) == 0) continue;
    RONDO_TRY(rondo_triton_make_output(flight, &outputs->items[i], 1, 1, &buffer));
    memcpy(buffer, flight->outputs[i], outputs->items[i].row_bytes);
  }
  return RONDO_OK;
}

rondo_status rondo_triton_generation_finish(rondo_triton_flight *flight) {
  if (!flight->is_broken) return make_response(flight);
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NONE, "a token could not be sent (the server's log says why)");
}

/* After a failure the response is the flight's; the request ends with it. */
static bool send_token(rondo_triton_flight *flight) {
  rondo_status status = make_response(flight);
  if (status == RONDO_OK) {
    triton_response *response = flight->response;
    flight->response = NULL;
    status = rondo_triton_check(rondo_triton_server.response_send(response, 0, NULL), "TRITONBACKEND_ResponseSend");
  }
  if (status != RONDO_OK) rondo_triton_log(TRITON_LOG_ERROR, "%s", rondo_last_error()->message);
  return status == RONDO_OK;
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

static bool is_end_token(const rondo_triton_flight *flight, const rondo_triton_tensor *tensor, const void *token) {
  int32_t narrow;
  int64_t wide;
  if (!flight->options.has_end_token) return false;
  if (tensor->type == TRITON_TYPE_INT64) {
    memcpy(&wide, token, sizeof wide);
    return wide == flight->options.end_token;
  }
  memcpy(&narrow, token, sizeof narrow);
  return narrow == flight->options.end_token;
}

size_t rondo_triton_generation_next(void *user, const rondo_answer *answer) {
  rondo_triton_flight *flight = user;
  const rondo_triton_source *source = source_of(flight);
  const rondo_triton_tensor *tensor = &source->outputs.items[source->next_output];
  const void *token = flight->outputs[source->next_output];
  if (answer->steps >= flight->most_tokens || is_end_token(flight, tensor, token)) return 0;
  if (!send_token(flight)) {
    flight->is_broken = true;
    return 0;
  }
  memcpy(flight->gathered[source->next_input], token, tensor->row_bytes);
  return 1;
}

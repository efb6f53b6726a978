/* SPDX-License-Identifier: MIT
 * Binding of requests. The server has checked names, types and shapes against the configuration, but sizes in bytes are
 * the client's, and what a model without a batch size gets is not checked. So all of it is checked here against the
 * model.
 *
 * An input in one piece of memory is not copied here: the session copies it to where the recording reads it. Outputs
 * are written to the server's buffers by the session. Only an input in several pieces, as large bodies of HTTP can
 * arrive, is put together first.
 */
#include "triton/request_binding.h"

#include <stdio.h>
#include <string.h>

#include "triton/server_functions.h"
#include "triton/token_generation.h"

/* Inputs ----------------------------------------------------------------------------------------------------------- */

/* What the server says of an input. */
typedef struct given_input {
  triton_input *handle;
  triton_data_type type;
  const int64_t *shape;
  uint32_t rank, buffers;
  uint64_t bytes;
} given_input;

static rondo_status find_input(rondo_triton_flight *flight, const rondo_triton_tensor *tensor, given_input *out) {
  const char *name;
  *out = (given_input){0};
  RONDO_TRY(rondo_triton_check(rondo_triton_server.request_input(flight->handle, tensor->name, &out->handle),
                               "a request lacks an input"));
  return rondo_triton_check(rondo_triton_server.input_properties(out->handle, &name, &out->type, &out->shape,
                                                                 &out->rank, &out->bytes, &out->buffers),
                            "TRITONBACKEND_InputProperties");
}

/* The sizes of a request, which its first inputs give. */
typedef struct request_size {
  size_t rows, length;
} request_size;

static bool has_row_shape(const rondo_triton_tensor *tensor, const given_input *given) {
  const size_t first = tensor->has_length ? 1 : 0;
  if (given->rank != tensor->rank + 1 || (first == 1 && given->shape[1] <= 0)) return false;
  return memcmp(given->shape + 1 + first, tensor->dims + first, (tensor->rank - first) * sizeof *tensor->dims) == 0;
}

static rondo_status check_shape(const rondo_triton_tensor *tensor, const given_input *given) {
  char is[RONDO_TRITON_SHAPE_TEXT], row[RONDO_TRITON_SHAPE_TEXT];
  if (given->type != tensor->type)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "input '%s' is %s: the model has %s", tensor->name,
                      rondo_triton_type_name(given->type), rondo_triton_type_name(tensor->type));
  if (has_row_shape(tensor, given) && given->shape[0] > 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "input '%s' has the shape %s: give at least one row of %s%s", tensor->name,
                    rondo_triton_shape_text(is, given->shape, given->rank),
                    rondo_triton_shape_text(row, tensor->dims, tensor->rank),
                    tensor->has_length ? ", where -1 is any length from 1" : "");
}

/* The first input says how many rows there are, and the first one with a length how long they are. */
static rondo_status check_input(const rondo_triton_tensor *tensor, const given_input *given, request_size *inout) {
  size_t bytes;
  RONDO_TRY(check_shape(tensor, given));
  if (inout->rows == 0) inout->rows = (size_t)given->shape[0];
  if ((size_t)given->shape[0] != inout->rows)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "input '%s' has %lld rows and another input of the request has %zu: give as many", tensor->name,
                      (long long)given->shape[0], inout->rows);
  if (tensor->has_length && inout->length == 0) inout->length = (size_t)given->shape[1];
  if (tensor->has_length && (size_t)given->shape[1] != inout->length)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "input '%s' has the length %lld and another input of the request has %zu: give the same",
                      tensor->name, (long long)given->shape[1], inout->length);
  RONDO_TRY(rondo_triton_tensor_bytes(tensor, inout->rows, inout->length, &bytes));
  if (given->bytes == bytes) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "input '%s' has %llu bytes: %zu rows of %zu are needed", tensor->name,
                    (unsigned long long)given->bytes, inout->rows, bytes / inout->rows);
}

/* Where a value is, as the server says. */
typedef struct memory_place {
  triton_memory_type type;
  int64_t id;
} memory_place;

/* Memory of a GPU must be that of the session's device, and in one piece, which is used where it is. */
static rondo_status check_place(const rondo_triton_flight *flight, const char *kind, const char *name,
                                const memory_place *place, bool may_be_device) {
  const rondo_triton_served *served = flight->instance->served;
  char device[RONDO_TRITON_DEVICE_NAME];
  (void)snprintf(device, sizeof device, "cuda:%d", (int)place->id);
  if (place->type != TRITON_MEMORY_GPU) return RONDO_OK;
  if (may_be_device && strcmp(served->device_name, device) == 0) return RONDO_OK;
  return rondo_fail(
      RONDO_UNSUPPORTED, RONDO_REASON_WRONG_MEMORY,
      "%s '%s' is in memory of a GPU, %s, and model '%s' is on %s%s: use system shared memory, or send it", kind, name,
      device, served->model->name, served->device_name,
      may_be_device ? "" : " and reads or writes this value on the host");
}

static rondo_status read_piece(const given_input *given, uint32_t index, const void **out, uint64_t *out_bytes,
                               memory_place *out_place) {
  *out_place = (memory_place){.type = TRITON_MEMORY_CPU};
  return rondo_triton_check(
      rondo_triton_server.input_buffer(given->handle, index, out, out_bytes, &out_place->type, &out_place->id),
      "TRITONBACKEND_InputBuffer");
}

static rondo_status gather(rondo_triton_flight *flight, const rondo_triton_tensor *tensor, const given_input *given,
                           size_t index) {
  rondo_triton_served *served = flight->instance->served;
  uint64_t done = 0;
  RONDO_TRY(rondo_allocate(&served->allocator, (size_t)given->bytes, 1, &flight->gathered[index]));
  flight->gathered_bytes[index] = (size_t)given->bytes;
  for (uint32_t i = 0; i < given->buffers; i++) {
    const void *piece;
    uint64_t bytes;
    memory_place place;
    RONDO_TRY(read_piece(given, i, &piece, &bytes, &place));
    RONDO_TRY(check_place(flight, "input", tensor->name, &place, false));
    if (bytes > given->bytes - done) break;
    if (bytes > 0) memcpy((char *)flight->gathered[index] + done, piece, (size_t)bytes);
    done += bytes;
  }
  flight->inputs[index] = flight->gathered[index];
  if (done == given->bytes) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "the pieces of input '%s' do not have its %llu bytes", tensor->name,
                    (unsigned long long)given->bytes);
}

/* An input that steps change is copied. */
static rondo_status bind_input(rondo_triton_flight *flight, size_t index, request_size *inout) {
  const rondo_triton_source *source = &flight->instance->served->model->source;
  const rondo_triton_tensor *tensor = &source->inputs.items[index];
  const bool changes = flight->options.max_tokens > 0 && source->generates && index == source->next_input;
  given_input given;
  memory_place place;
  uint64_t bytes = 0;
  RONDO_TRY(find_input(flight, tensor, &given));
  RONDO_TRY(check_input(tensor, &given, inout));
  if (given.buffers != 1 || changes) return gather(flight, tensor, &given, index);
  RONDO_TRY(read_piece(&given, 0, &flight->inputs[index], &bytes, &place));
  RONDO_TRY(check_place(flight, "input", tensor->name, &place, source->options.build_sized == NULL));
  if (place.type == TRITON_MEMORY_GPU) flight->device_inputs |= UINT64_C(1) << index;
  if (bytes == given.bytes) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "the piece of input '%s' does not have its %llu bytes", tensor->name,
                    (unsigned long long)given.bytes);
}

/* Outputs ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_triton_make_output(rondo_triton_flight *flight, const rondo_triton_tensor *tensor, size_t rows,
                                      size_t length, void **out) {
  triton_output *output;
  const bool is_cuda = strncmp(flight->instance->served->device_name, "cuda", 4) == 0;
  memory_place place = {.type = is_cuda ? TRITON_MEMORY_CPU_PINNED : TRITON_MEMORY_CPU};
  int64_t shape[RONDO_MAX_DIMENSIONS + 2] = {(int64_t)rows};
  size_t bytes;
  memcpy(shape + 1, tensor->dims, tensor->rank * sizeof *shape);
  if (tensor->has_length) shape[1] = (int64_t)length;
  RONDO_TRY(rondo_triton_tensor_bytes(tensor, rows, length, &bytes));
  RONDO_TRY(rondo_triton_check(rondo_triton_server.response_output(flight->response, &output, tensor->name,
                                                                   tensor->type, shape, (uint32_t)tensor->rank + 1),
                               "TRITONBACKEND_ResponseOutput"));
  RONDO_TRY(rondo_triton_check(rondo_triton_server.output_buffer(output, out, bytes, &place.type, &place.id),
                               "TRITONBACKEND_OutputBuffer"));
  const rondo_triton_source *source = &flight->instance->served->model->source;
  RONDO_TRY(check_place(flight, "output", tensor->name, &place, source->options.build_sized == NULL));
  if (place.type == TRITON_MEMORY_GPU) flight->device_outputs |= UINT64_C(1) << (tensor - source->outputs.items);
  return RONDO_OK;
}

/* Which outputs are wanted. */
static rondo_status read_wanted(rondo_triton_flight *flight) {
  const rondo_triton_tensors *outputs = &flight->instance->served->model->source.outputs;
  uint32_t count;
  flight->wanted = 0;
  RONDO_TRY(rondo_triton_check(rondo_triton_server.request_output_count(flight->handle, &count),
                               "TRITONBACKEND_RequestOutputCount"));
  for (uint32_t i = 0; i < count; i++) {
    const char *name;
    RONDO_TRY(rondo_triton_check(rondo_triton_server.request_output_name(flight->handle, i, &name),
                                 "TRITONBACKEND_RequestOutputName"));
    const rondo_triton_tensor *tensor = rondo_triton_find_tensor(outputs, name);
    if (tensor == NULL)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME, "the model has no output '%s'", name);
    flight->wanted |= UINT64_C(1) << (tensor - outputs->items);
  }
  return RONDO_OK;
}

/* An output that is not wanted stays NULL. */
static rondo_status bind_outputs(rondo_triton_flight *flight, const request_size *size) {
  const rondo_triton_tensors *outputs = &flight->instance->served->model->source.outputs;
  RONDO_TRY(read_wanted(flight));
  if (flight->options.max_tokens > 0) return rondo_triton_generation_prepare(flight);
  RONDO_TRY(rondo_triton_check(rondo_triton_server.response_new(&flight->response, flight->handle),
                               "TRITONBACKEND_ResponseNew"));
  for (size_t i = 0; i < outputs->count; i++)
    if ((flight->wanted >> i & 1) != 0)
      RONDO_TRY(rondo_triton_make_output(flight, &outputs->items[i], size->rows, size->length, &flight->outputs[i]));
  return RONDO_OK;
}

/* Requests --------------------------------------------------------------------------------------------------------- */

/* The time that the client gives counts from its call, of which the server has used a part that is not known. */
static rondo_status read_timeout(const rondo_triton_flight *flight, uint64_t *out_us) {
  *out_us = 0;
  if (rondo_triton_server.request_timeout == NULL) return RONDO_OK;
  return rondo_triton_check(rondo_triton_server.request_timeout(flight->handle, out_us),
                            "TRITONBACKEND_InferenceRequestTimeoutMicroseconds");
}

/* Whether the request has the first input of the source; then it has the others as well. */
static bool has_source(const rondo_triton_flight *flight) {
  const rondo_triton_source *source = &flight->instance->served->model->source;
  triton_input *input;
  if (source->step_inputs == source->inputs.count) return false;
  triton_error *absent =
      rondo_triton_server.request_input(flight->handle, source->inputs.items[source->step_inputs].name, &input);
  rondo_triton_ignore(absent);
  return absent == NULL;
}

/* Steps that follow have no source. */
static rondo_status bind_source(rondo_triton_flight *flight, uint64_t timeout_us) {
  const rondo_triton_source *source = &flight->instance->served->model->source;
  request_size size = {0};
  flight->source = (rondo_request){RONDO_REQUEST_INIT};
  if (!has_source(flight)) return RONDO_OK;
  for (size_t i = source->step_inputs; i < source->inputs.count; i++) RONDO_TRY(bind_input(flight, i, &size));
  flight->source = (rondo_request){RONDO_REQUEST_INIT,        .rows = size.rows,
                                   .length = size.length,     .inputs = flight->inputs + source->step_inputs,
                                   .deadline_us = timeout_us, .user = flight};
  return RONDO_OK;
}

static rondo_status refuse_cancelled(const rondo_triton_flight *flight) {
  bool is_cancelled = false;
  if (rondo_triton_server.request_is_cancelled == NULL) return RONDO_OK;
  RONDO_TRY(rondo_triton_check(rondo_triton_server.request_is_cancelled(flight->handle, &is_cancelled),
                               "TRITONBACKEND_RequestIsCancelled"));
  if (!is_cancelled) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ABORTED, "the request was cancelled");
}

/* Choosing sizes takes processor time and memory from all clients, so the configuration must allow it. */
static rondo_status check_choice(const rondo_triton_served *served) {
  const char *name = served->model->name;
  if (served->choice.fixed_by != NULL)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                      "the request has the parameter choose_sizes, but the sizes of model '%s' are fixed, by %s: leave "
                      "it out",
                      name, served->choice.fixed_by);
  if (served->choice.takes_requests) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                    "the request has the parameter choose_sizes, which model '%s' does not allow: leave it out, or "
                    "give the model's configuration the parameter 'allow_choose_sizes' with the value 1",
                    name);
}

static rondo_status read_options(rondo_triton_flight *flight) {
  const rondo_triton_served *served = flight->instance->served;
  RONDO_TRY(rondo_triton_read_options(flight->handle, served->sequences.items != NULL, &flight->options));
  if (!flight->options.chooses_sizes) return RONDO_OK;
  const rondo_status status = check_choice(served);
  if (status != RONDO_OK) flight->options.chooses_sizes = false;
  return status;
}

rondo_status rondo_triton_bind(rondo_triton_flight *flight) {
  const rondo_triton_source *source = &flight->instance->served->model->source;
  request_size size = {0};
  uint64_t timeout_us;
  flight->device_inputs = flight->device_outputs = 0;
  RONDO_TRY(refuse_cancelled(flight));
  RONDO_TRY(read_timeout(flight, &timeout_us));
  RONDO_TRY(read_options(flight));
  for (size_t i = 0; i < source->step_inputs; i++) RONDO_TRY(bind_input(flight, i, &size));
  RONDO_TRY(bind_source(flight, timeout_us));
  RONDO_TRY(bind_outputs(flight, &size));
  flight->request = (rondo_request){RONDO_REQUEST_INIT,
                                    .rows = size.rows,
                                    .length = size.length,
                                    .inputs = flight->inputs,
                                    .outputs = flight->outputs,
                                    .device_inputs = flight->device_inputs,
                                    .device_outputs = flight->device_outputs,
                                    .deadline_us = timeout_us,
                                    .next = flight->options.max_tokens > 0 ? rondo_triton_generation_next : NULL,
                                    .user = flight};
  return RONDO_OK;
}

void rondo_triton_unbind(rondo_triton_flight *flight) {
  const rondo_allocator *allocator = &flight->instance->served->allocator;
  for (size_t i = 0; i < RONDO_SESSION_MAX_VALUES; i++)
    rondo_release(allocator, flight->gathered[i], flight->gathered_bytes[i], 1);
  rondo_release(allocator, flight->step_outputs, flight->step_bytes, 1);
  flight->step_outputs = NULL;
  memset(flight->gathered, 0, sizeof flight->gathered);
  memset(flight->outputs, 0, sizeof flight->outputs);
}

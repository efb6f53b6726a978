/* SPDX-License-Identifier: MIT
 * Staged values: buffers in one block of host memory and one of device memory, each at a multiple of 256.
 */
#include "tensor/run/staged_values.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "tensor/compile/emitter.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

/* Checking --------------------------------------------------------------------------------------------------------- */

/* Finds the value of an input, or the number of an output. */
static bool find_named(const rondo_program *program, const char *name, bool *out_is_input, uint32_t *out_index) {
  *out_is_input = false;
  for (uint32_t i = 0; i < program->outputs.count; i++) {
    *out_index = i;
    if (strcmp(program->outputs.items[i].name, name) == 0) return true;
  }
  *out_is_input = true;
  for (uint32_t i = 0; i < program->values.count; i++) {
    *out_index = i;
    const rondo_program_value *value = &program->values.items[i];
    if (value->kind == RONDO_VALUE_INPUT && strcmp(value->name, name) == 0) return true;
  }
  return false;
}

static const rondo_program_value *shown_by(const rondo_program *program, uint32_t output) {
  const rondo_program_value *value = &program->values.items[program->outputs.items[output].value];
  while (value->view_of != RONDO_NO_VALUE) value = &program->values.items[value->view_of];
  return value;
}

static rondo_status check_output(const rondo_program *program, const rondo_staged_value *staged, uint32_t output) {
  if (staged->staging == RONDO_STAGING_DEVICE)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "rondo_compile: output '%s' cannot be staged in device memory, where it is already: use "
                      "RONDO_STAGING_HOST or leave it",
                      staged->name);
  if (shown_by(program, output)->kind == RONDO_VALUE_RESULT) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "rondo_compile: output '%s' shows '%s', which no operator computes, so it cannot be staged: read "
                    "it between runs",
                    staged->name,
                    shown_by(program, output)->name == NULL ? "a constant" : shown_by(program, output)->name);
}

static rondo_status check_one(const rondo_program *program, const rondo_staged_value *staged) {
  bool is_input;
  uint32_t index;
  RONDO_TRY(rondo_require("rondo_compile", "the name of a staged value", staged->name));
  if (!find_named(program, staged->name, &is_input, &index))
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME,
                      "rondo_compile: %s has no input or output '%s' to be staged", program->label, staged->name);
  if (staged->staging > RONDO_STAGING_DEVICE)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "rondo_compile: '%s' has the staging %d, which does not exist: use a RONDO_STAGING_ name",
                      staged->name, (int)staged->staging);
  if (is_input || staged->staging == RONDO_STAGING_SLOT) return RONDO_OK;
  return check_output(program, staged, index);
}

rondo_status rondo_feeds_check(const rondo_program *program, const rondo_staged_list *staged) {
  if (staged->count > 0) RONDO_TRY(rondo_require("rondo_compile", "the list of staged values", staged->items));
  for (size_t i = 0; i < staged->count; i++) {
    RONDO_TRY(check_one(program, &staged->items[i]));
    for (size_t k = 0; k < i; k++) {
      if (strcmp(staged->items[k].name, staged->items[i].name) != 0) continue;
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_NAME,
                        "rondo_compile: '%s' is staged twice: name it once", staged->items[i].name);
    }
  }
  return RONDO_OK;
}

/* Making ----------------------------------------------------------------------------------------------------------- */

/* The slot's bytes fit, so those of all slots together and their roundings do: they are in one arena. */
static size_t append(size_t bytes, size_t *total) {
  const size_t offset = *total;
  size_t rounded = 0;
  const bool fits = rondo_checked_align(bytes, RONDO_VALUE_ALIGNMENT, &rounded);
  assert(fits);
  (void)fits;
  *total += rounded;
  return offset;
}

static rondo_status add_input(const rondo_program *program, const rondo_layout *layout, uint32_t value,
                              rondo_staging staging, rondo_compiled *compiled) {
  rondo_feeds *feeds = &compiled->feeds;
  rondo_staged_input input = {.staging = staging,
                              .value = value,
                              .slot = rondo_layout_address(layout, compiled, value),
                              .bytes = rondo_shape_bytes(rondo_program_shape(program, value))};
  if (staging == RONDO_STAGING_DEVICE) RONDO_TRY(rondo_event_create(compiled->device, NULL, &input.written));
  const rondo_status status = rondo_array_push(&compiled->allocator, &feeds->inputs, &input);
  if (status != RONDO_OK) rondo_event_destroy(input.written);
  return status;
}

static rondo_status add_output(const rondo_program *program, const rondo_layout *layout, uint32_t output,
                               rondo_compiled *compiled) {
  const uint32_t owner = layout->schedule.owners[program->outputs.items[output].value];
  rondo_staged_output staged = {.output = output,
                                .operation = layout->schedule.makers[owner],
                                .slot = rondo_layout_address(layout, compiled, owner),
                                .bytes = rondo_shape_bytes(rondo_program_shape(program, owner))};
  RONDO_TRY(rondo_event_create(compiled->device, NULL, &staged.ready));
  const rondo_status status = rondo_array_push(&compiled->allocator, &compiled->feeds.outputs, &staged);
  if (status != RONDO_OK) rondo_event_destroy(staged.ready);
  return status;
}

static rondo_status list_staged(const rondo_program *program, const rondo_layout *layout,
                                const rondo_staged_list *staged, rondo_compiled *compiled) {
  for (size_t i = 0; i < staged->count; i++) {
    const rondo_staged_value *value = &staged->items[i];
    bool is_input;
    uint32_t index;
    if (value->staging == RONDO_STAGING_SLOT || !find_named(program, value->name, &is_input, &index)) continue;
    RONDO_TRY(is_input ? add_input(program, layout, index, value->staging, compiled)
                       : add_output(program, layout, index, compiled));
  }
  return RONDO_OK;
}

/* First with offsets for addresses, then with the blocks. */
static rondo_status make_buffers(rondo_compiled *compiled) {
  rondo_feeds *feeds = &compiled->feeds;
  void *host = NULL, *memory = NULL;
  for (size_t i = 0; i < feeds->inputs.count; i++) {
    const rondo_staged_input *input = &feeds->inputs.items[i];
    (void)append(input->bytes, input->staging == RONDO_STAGING_HOST ? &feeds->host_bytes : &feeds->memory_bytes);
  }
  for (size_t i = 0; i < feeds->outputs.count; i++) (void)append(feeds->outputs.items[i].bytes, &feeds->host_bytes);
  if (feeds->host_bytes > 0) {
    const rondo_status status = rondo_host_malloc(compiled->device, feeds->host_bytes, &host);
    RONDO_TRY(rondo_compiled_fail_memory(compiled, status, "host buffers of staged values", feeds->host_bytes));
  }
  feeds->host = host;
  if (feeds->memory_bytes > 0) {
    const rondo_status status = rondo_malloc(compiled->device, feeds->memory_bytes, "staging", &memory);
    RONDO_TRY(rondo_compiled_fail_memory(compiled, status, "device buffers of staged inputs", feeds->memory_bytes));
  }
  feeds->memory = memory;
  return RONDO_OK;
}

static void place_buffers(rondo_feeds *feeds) {
  size_t host = 0, memory = 0;
  for (size_t i = 0; i < feeds->inputs.count; i++) {
    rondo_staged_input *input = &feeds->inputs.items[i];
    input->buffer = input->staging == RONDO_STAGING_HOST ? feeds->host + append(input->bytes, &host)
                                                         : feeds->memory + append(input->bytes, &memory);
  }
  for (size_t i = 0; i < feeds->outputs.count; i++)
    feeds->outputs.items[i].buffer = feeds->host + append(feeds->outputs.items[i].bytes, &host);
}

/* For what is fed into device memory. */
static rondo_status make_stream(rondo_compiled *compiled) {
  rondo_feeds *feeds = &compiled->feeds;
  const rondo_stream_options options = {RONDO_STREAM_OPTIONS_INIT, .name = "feed"};
  if (feeds->memory_bytes == 0) return RONDO_OK;
  RONDO_TRY(rondo_stream_create(compiled->device, &options, &feeds->stream));
  RONDO_TRY(rondo_event_create(compiled->device, NULL, &feeds->fed));
  const rondo_status status = rondo_bounce_init(&feeds->bounce, compiled->device, feeds->memory_bytes);
  return rondo_compiled_fail_memory(compiled, status, "memory for feeding inputs", rondo_bounce_bytes(&feeds->bounce));
}

rondo_status rondo_feeds_init(const rondo_program *program, const rondo_layout *layout, const rondo_staged_list *staged,
                              rondo_compiled *compiled) {
  RONDO_TRY(list_staged(program, layout, staged, compiled));
  RONDO_TRY(make_buffers(compiled));
  place_buffers(&compiled->feeds);
  if (compiled->feeds.inputs.count > 0) RONDO_TRY(rondo_event_create(compiled->device, NULL, &compiled->feeds.taken));
  return make_stream(compiled);
}

rondo_status rondo_feeds_deinit(rondo_compiled *compiled) {
  rondo_feeds *feeds = &compiled->feeds;
  rondo_status status = rondo_stream_destroy(feeds->stream);
  for (size_t i = 0; i < feeds->inputs.count; i++) {
    const rondo_staged_input *input = &feeds->inputs.items[i];
    if (input->is_written) rondo_status_keep_first(&status, rondo_event_synchronize(input->written));
  }
  rondo_status_keep_first(&status, rondo_bounce_deinit(&feeds->bounce));
  if (feeds->host != NULL) rondo_status_keep_first(&status, rondo_host_free(compiled->device, feeds->host));
  rondo_status_keep_first(&status, rondo_free(compiled->device, feeds->memory));
  for (size_t i = 0; i < feeds->inputs.count; i++) rondo_event_destroy(feeds->inputs.items[i].written);
  for (size_t i = 0; i < feeds->outputs.count; i++) rondo_event_destroy(feeds->outputs.items[i].ready);
  rondo_event_destroy(feeds->taken);
  rondo_event_destroy(feeds->fed);
  rondo_array_free(&compiled->allocator, &feeds->inputs);
  rondo_array_free(&compiled->allocator, &feeds->outputs);
  return status;
}

rondo_status rondo_feeds_clear(rondo_compiled *compiled) {
  const rondo_feeds *feeds = &compiled->feeds;
  if (feeds->host != NULL) memset(feeds->host, 0, feeds->host_bytes);
  if (feeds->memory == NULL) return RONDO_OK;
  const rondo_fill zeros = {.dst = feeds->memory, .element_bytes = 4, .width = feeds->memory_bytes / 4};
  return rondo_fill_async(compiled->stream, &zeros);
}

rondo_staged_input *rondo_feeds_input(const rondo_feeds *feeds, uint32_t value) {
  for (size_t i = 0; i < feeds->inputs.count; i++)
    if (feeds->inputs.items[i].value == value) return &feeds->inputs.items[i];
  return NULL;
}

rondo_staged_output *rondo_feeds_output(const rondo_feeds *feeds, uint32_t output) {
  for (size_t i = 0; i < feeds->outputs.count; i++)
    if (feeds->outputs.items[i].output == output) return &feeds->outputs.items[i];
  return NULL;
}

/* Enqueuing -------------------------------------------------------------------------------------------------------- */

rondo_status rondo_feeds_enqueue_input(const rondo_staged_input *input, rondo_stream *stream) {
  assert(input->slot != NULL && input->buffer != NULL);
  return rondo_copy_async(stream, input->slot, input->buffer, input->bytes);
}

rondo_status rondo_feeds_enqueue_output(const rondo_staged_output *output, rondo_stream *stream) {
  return rondo_copy_async(stream, output->buffer, output->slot, output->bytes);
}

rondo_status rondo_feeds_fetch(const rondo_staged_output *output, rondo_stream *stream) {
  RONDO_TRY(rondo_feeds_enqueue_output(output, stream));
  return rondo_event_record(output->ready, stream);
}

rondo_status rondo_feeds_enqueue_inputs(const rondo_compiled *compiled) {
  const rondo_feeds *feeds = &compiled->feeds;
  for (size_t i = 0; i < feeds->inputs.count; i++)
    RONDO_TRY(rondo_feeds_enqueue_input(&feeds->inputs.items[i], compiled->stream));
  return feeds->taken == NULL ? RONDO_OK : rondo_event_record(feeds->taken, compiled->stream);
}

rondo_status rondo_feeds_enqueue_outputs(const rondo_compiled *compiled) {
  const rondo_feeds *feeds = &compiled->feeds;
  for (size_t i = 0; i < feeds->outputs.count; i++)
    RONDO_TRY(rondo_feeds_fetch(&feeds->outputs.items[i], compiled->stream));
  return RONDO_OK;
}

static bool is_anything_fed(const rondo_feeds *feeds) {
  bool is_fed = feeds->has_fed;
  for (size_t i = 0; i < feeds->inputs.count; i++) is_fed |= feeds->inputs.items[i].is_written;
  return is_fed;
}

rondo_status rondo_feeds_refuse_mapped(const rondo_compiled *compiled, const char *call) {
  for (size_t i = 0; i < compiled->values.count; i++) {
    const rondo_named_value *value = &compiled->values.items[i];
    if (value->input == NULL || !value->input->is_mapped) continue;
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                      "%s: '%s' of %s is mapped: call rondo_compiled_unmap first", call, value->name, compiled->label);
  }
  return RONDO_OK;
}

rondo_status rondo_feeds_before_run(rondo_compiled *compiled, const char *call) {
  rondo_feeds *feeds = &compiled->feeds;
  RONDO_TRY(rondo_feeds_refuse_mapped(compiled, call));
  feeds->is_free = false;
  if (!is_anything_fed(feeds)) return RONDO_OK;
  RONDO_TRY(rondo_compiled_refuse_capturing(compiled, call));
  if (feeds->has_fed) {
    RONDO_TRY(rondo_event_record(feeds->fed, feeds->stream));
    RONDO_TRY(rondo_stream_wait_event(compiled->stream, feeds->fed));
    feeds->has_fed = false;
  }
  for (size_t i = 0; i < feeds->inputs.count; i++) {
    rondo_staged_input *input = &feeds->inputs.items[i];
    if (input->is_written) RONDO_TRY(rondo_stream_wait_event(compiled->stream, input->written));
    input->is_written = false;
  }
  return RONDO_OK;
}

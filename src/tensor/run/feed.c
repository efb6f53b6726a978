/* SPDX-License-Identifier: MIT
 * The calls that feed and fetch (<rondo/feed.h>). Two writers of one buffer, the stream of feeds and one that it is
 * mapped for, wait for each other by the events `fed` and `written`.
 */
#include <rondo/feed.h>
#include <string.h>

#include "base/error.h"
#include "device/device.h"
#include "exec/capture/stray_work.h"
#include "tensor/run/arena_use.h"
#include "tensor/run/named_values.h"

/* Feeding ---------------------------------------------------------------------------------------------------------- */

static rondo_status refuse_mapped(const rondo_compiled *compiled, const rondo_named_value *value, const char *call) {
  if (!value->input->is_mapped) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                    "%s: '%s' of %s is mapped: call rondo_compiled_unmap first", call, value->name, compiled->label);
}

/* Orders the feed stream after the copies of the last run, and after what another stream wrote for the next run. */
static rondo_status order_feed(rondo_feeds *feeds, rondo_staged_input *input) {
  if (!feeds->is_free) RONDO_TRY(rondo_stream_wait_event(feeds->stream, feeds->taken));
  feeds->is_free = true;
  if (!input->is_written) return RONDO_OK;
  RONDO_TRY(rondo_stream_wait_event(feeds->stream, input->written));
  feeds->has_fed = true;
  input->is_written = false;
  return RONDO_OK;
}

rondo_status rondo_feeds_write(rondo_compiled *compiled, const rondo_named_value *value, const char *call,
                               const void *data) {
  rondo_feeds *feeds = &compiled->feeds;
  rondo_staged_input *input = value->input;
  RONDO_TRY(rondo_capture_watch_refuse(compiled->stream, call));
  RONDO_TRY(refuse_mapped(compiled, value, call));
  if (input->staging == RONDO_STAGING_HOST) {
    RONDO_TRY(rondo_event_synchronize(feeds->taken));
    memcpy(input->buffer, data, input->bytes);
    return RONDO_OK;
  }
  RONDO_TRY(order_feed(feeds, input));
  feeds->has_fed = true;
  return rondo_bounce_write(&feeds->bounce, feeds->stream, input->buffer, data, input->bytes);
}

rondo_status rondo_compiled_feed(rondo_compiled *compiled, const char *name, const void *data, size_t bytes) {
  static const char call[] = "rondo_compiled_feed";
  rondo_named_value *value;
  RONDO_TRY(rondo_values_find_sized(compiled, call, name, "i", data, bytes, &value));
  return value->input == NULL ? rondo_values_write(compiled, value, data)
                              : rondo_feeds_write(compiled, value, call, data);
}

/* Fetching --------------------------------------------------------------------------------------------------------- */

rondo_status rondo_compiled_fetch(rondo_compiled *compiled, const char *name, void *data, size_t bytes) {
  rondo_named_value *value;
  RONDO_TRY(rondo_values_find_sized(compiled, "rondo_compiled_fetch", name, "sco", data, bytes, &value));
  if (value->output == NULL) return rondo_compiled_read(compiled, name, data, bytes);
  RONDO_TRY(rondo_event_synchronize(value->output->ready));
  const rondo_status status = rondo_stream_query(compiled->stream);
  if (status != RONDO_OK && status != RONDO_NOT_READY) return status;
  memcpy(data, value->output->buffer, bytes);
  return RONDO_OK;
}

/* Mapping ---------------------------------------------------------------------------------------------------------- */

static rondo_status find_staged(rondo_compiled *compiled, const char *call, const char *name, rondo_named_value **out) {
  RONDO_TRY(rondo_values_find(compiled, call, name, "i", out));
  if ((*out)->input != NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NONE,
                    "%s: input '%s' of %s is not staged: add it to rondo_compile_options.staged, or write it", call,
                    name, compiled->label);
}

static rondo_status check_host_stream(const rondo_stream *stream, const char *call, const char *name) {
  if (stream == NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: '%s' is staged in host memory, which only the caller writes, not a stream: pass NULL", call,
                    name);
}

static rondo_status check_writer(const rondo_compiled *compiled, rondo_stream *stream, const char *call,
                                 const char *name) {
  rondo_capture_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_require(call, "the stream that will write", stream));
  if (rondo_stream_device(stream) != compiled->device)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                      "%s: '%s' of %s is on device '%s' and cannot be written by a stream of '%s': "
                      "use one of the same rondo_device",
                      call, name, compiled->label, compiled->device->name, rondo_stream_device(stream)->name);
  if (stream == compiled->stream)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: '%s' is written while runs execute: give another stream than the program's own", call, name);
  RONDO_TRY(rondo_capture_get_info(stream, &info));
  if (info.state == RONDO_CAPTURE_NONE) return RONDO_OK;
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL,
                    "%s: '%s' of %s for a stream that captures: each replay would write it, whatever run has "
                    "it; map it outside of the capture",
                    call, name, compiled->label);
}

/* Orders the stream after the copies of the last run, and after what was written or fed for the next run. */
static rondo_status order_writer(rondo_feeds *feeds, const rondo_staged_input *input, rondo_stream *stream) {
  RONDO_TRY(rondo_stream_wait_event(stream, feeds->taken));
  if (input->is_written) RONDO_TRY(rondo_stream_wait_event(stream, input->written));
  if (!feeds->has_fed) return RONDO_OK;
  RONDO_TRY(rondo_event_record(feeds->fed, feeds->stream));
  return rondo_stream_wait_event(stream, feeds->fed);
}

rondo_status rondo_compiled_map(rondo_compiled *compiled, const char *name, rondo_stream *stream, void **out_address) {
  static const char call[] = "rondo_compiled_map";
  rondo_named_value *value;
  RONDO_TRY(rondo_require(call, "out_address", out_address));
  *out_address = NULL;
  RONDO_TRY(find_staged(compiled, call, name, &value));
  const bool is_host = value->input->staging == RONDO_STAGING_HOST;
  RONDO_TRY(is_host ? check_host_stream(stream, call, name) : check_writer(compiled, stream, call, name));
  RONDO_TRY(refuse_mapped(compiled, value, call));
  RONDO_TRY(rondo_capture_watch_refuse(compiled->stream, call));
  RONDO_TRY(is_host ? rondo_event_synchronize(compiled->feeds.taken)
                    : order_writer(&compiled->feeds, value->input, stream));
  value->input->is_mapped = true;
  value->input->writer = stream;
  *out_address = value->input->buffer;
  return RONDO_OK;
}

rondo_status rondo_compiled_unmap(rondo_compiled *compiled, const char *name) {
  static const char call[] = "rondo_compiled_unmap";
  rondo_named_value *value;
  RONDO_TRY(find_staged(compiled, call, name, &value));
  rondo_staged_input *input = value->input;
  if (!input->is_mapped)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE, "%s: '%s' of %s is not mapped", call, name,
                      compiled->label);
  if (input->writer != NULL) {
    RONDO_TRY(rondo_event_record(input->written, input->writer));
    input->is_written = true;
  }
  input->is_mapped = false;
  return RONDO_OK;
}

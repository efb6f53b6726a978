/* SPDX-License-Identifier: MIT
 * Meters warm-ups and decides from the result. In a metered run, a body that waits for the device waits slightly
 * longer, once. A body with host steps is not metered, because they wait too.
 */
#include "tree/record/record_gain.h"

#include "base/log.h"
#include "exec/capture/capture_internal.h"
#include "tree/function.h"
#include "tree/record/function_body.h"

#define MAX_GATE_NS UINT64_C(5000000)

void rondo_estimate_begin(rondo_form *form, rondo_call *call) {
  if (form == NULL || !call->is_warm_up || form->warm_ups != 1) return;
  if (call->function->options.record != RONDO_RECORD_AUTO) return;
  rondo_saved_error before;
  rondo_error_save(&before);
  rondo_meter_free(&form->meter); /* of an earlier warm-up */
  if (rondo_meter_begin(&form->meter, call->stream, MAX_GATE_NS) == RONDO_OK) call->meter = &form->meter;
  rondo_error_restore(&before);
}

void rondo_estimate_end(rondo_form *form, rondo_call *call, rondo_status status) {
  if (call->meter == NULL) return;
  rondo_saved_error before;
  rondo_error_save(&before);
  const bool is_whole = status == RONDO_OK && call->host_steps == 0;
  if (!is_whole || rondo_meter_end(&form->meter) != RONDO_OK) rondo_meter_free(&form->meter);
  call->meter = NULL;
  rondo_error_restore(&before);
}

/* Waits in relaxed mode, which leaves captures of other threads alone. */
static rondo_status estimate(const rondo_function *function, rondo_form *form) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  rondo_costs costs = {.struct_size = sizeof costs};
  rondo_gain gain = {.struct_size = sizeof gain};
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  rondo_status status = rondo_meter_read(&form->meter, &gain);
  if (status == RONDO_OK) status = rondo_device_get_costs(function->tree->device, &costs);
  if (status == RONDO_OK) status = rondo_gain_estimate(&costs, &gain);
  rondo_status_ignore(rondo_capture_exchange_thread_mode(&mode), "it was the thread's previous mode");
  if (status != RONDO_OK) return status;
  form->gain = gain;
  form->has_gain = true;
  return RONDO_OK;
}

rondo_status rondo_estimate_decide(const rondo_function *function, rondo_form *form) {
  const rondo_gain_bar bar = {.least = function->options.least_gain, .runs = function->options.expected_runs};
  char message[RONDO_GAIN_MESSAGE];
  if (form->meter.stream == NULL) return RONDO_OK;
  rondo_saved_error before;
  rondo_error_save(&before);
  const rondo_status status = estimate(function, form);
  rondo_meter_free(&form->meter);
  if (status == RONDO_DEVICE_LOST) return status;
  if (status != RONDO_OK) {
    rondo_log(RONDO_LOG_INFO, "tree", "'%s' is recorded without an estimate: %s", function->origin->name,
              rondo_last_error()->message);
    rondo_error_restore(&before);
    return RONDO_OK;
  }
  if (rondo_gain_pays(&form->gain, bar.least, bar.runs)) return RONDO_OK;
  rondo_gain_explain(&form->gain, bar, message, sizeof message);
  rondo_form_skip(form, RONDO_SKIP_NO_GAIN, message);
  return RONDO_OK;
}

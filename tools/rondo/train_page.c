/* SPDX-License-Identifier: MIT
 * Results of a training as a page: the recorded step with the time of each node.
 */
#include <math.h>
#include <stdlib.h>

#include "file.h"
#include "tool.h"
#include "train.h"

/* So often that it takes a second or two, but at least a few times. */
static uint32_t count_repeats(training *t) {
  const double step_us = samples_summarize(&t->recorded.times.step).median;
  return (uint32_t)fmax(3, fmin(100, 2e6 / fmax(1, step_us)));
}

static rondo_status make_page(training *t, rondo_node_time *times, size_t count, char **out_text) {
  rondo_exec *exec = rondo_compiled_exec(t->compiled);
  TOOL_TRY(rondo_exec_measure(exec, rondo_compiled_stream(t->compiled), count_repeats(t), times, &count));
  const rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .title = "rondo train: the recorded step",
                                        .times = times, .time_count = count};
  return rondo_compiled_report(t->compiled, &options, out_text);
}

int train_write_page(training *t) {
  size_t count = 0;
  char *text = NULL;
  if (rondo_exec_measure(rondo_compiled_exec(t->compiled), NULL, 0, NULL, &count)) return tool_fail_status("the page");
  rondo_node_time *times = calloc(count, sizeof *times);
  if (!times) return tool_fail("there is no memory for the times of %zu nodes", count);
  int result = make_page(t, times, count, &text) ? tool_fail_status("the page") : TOOL_OK;
  if (result == TOOL_OK) result = file_write(t->settings.report, text);
  rondo_text_free(text);
  free(times);
  return result;
}

/* SPDX-License-Identifier: MIT
 * A mistake that CUDA does not detect: one stream fills scratch memory, another sums it, and the memory is freed
 * without waiting for the sum. Rondo refuses the graph before anything runs, and names the nodes and the missing
 * dependency. With the wait in the right place, the graph is correct. The program writes the wrong graph to FILE, as
 * input for `rondo check`.
 *
 *   forgotten_wait [FILE]
 *
 * Prints the error and: refused, then right
 */
#include <stdbool.h>
#include <stdio.h>

#include <rondo/rondo.h>

#define TRY(call)                           \
  do {                                      \
    const rondo_status try_status = (call); \
    if (try_status) return try_status;      \
  } while (0)

enum { COUNT = 1024 };

static void sum_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(const float *const *)args[0];
  float *out = *(float *const *)args[1];
  (void)blocks;
  *out = 0;
  for (size_t i = 0; i < COUNT; i++) *out += x[i];
}

typedef struct program {
  rondo_device *device;
  rondo_stream *stream, *side;
  rondo_event *ready, *summed;
  rondo_kernel *sum;
  void *out;
} program;

static rondo_status queue(const program *p, bool waits_in_time) {
  const rondo_malloc_options named = {RONDO_MALLOC_OPTIONS_INIT, .name = "scratch"};
  void *scratch;
  TRY(rondo_malloc_async(p->stream, COUNT * sizeof(float), &named, &scratch));
  TRY(rondo_fill_async(p->stream, &(rondo_fill){.dst = scratch, .element_bytes = 4, .width = COUNT}));
  TRY(rondo_event_record(p->ready, p->stream));
  TRY(rondo_stream_wait_event(p->side, p->ready));
  TRY(rondo_launch(p->side, p->sum, (rondo_grid){.x = 1}, RONDO_ARGS(&scratch, &p->out)));
  TRY(rondo_event_record(p->summed, p->side));
  if (waits_in_time) TRY(rondo_stream_wait_event(p->stream, p->summed));
  TRY(rondo_free_async(p->stream, scratch));
  if (!waits_in_time) TRY(rondo_stream_wait_event(p->stream, p->summed)); /* too late */
  return RONDO_OK;
}

static rondo_status capture(const program *p, bool waits_in_time, rondo_graph **out_graph) {
  TRY(rondo_capture_begin(p->stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(queue(p, waits_in_time));
  return rondo_capture_end(p->stream, out_graph);
}

static rondo_status dump(const rondo_graph *graph, const char *name) {
  char *text;
  TRY(rondo_graph_to_json(graph, true, &text));
  FILE *file = fopen(name, "w");
  const bool written = file != NULL && fputs(text, file) >= 0;
  const bool closed = file == NULL || fclose(file) == 0;
  rondo_text_free(text);
  return written && closed ? RONDO_OK : RONDO_INVALID_STATE;
}

static rondo_status set_up(program *p) {
  const rondo_kernel_options sum = {RONDO_KERNEL_OPTIONS_INIT, .name = "sum", .cpu = sum_cpu,
                                    .params = {RONDO_READS, RONDO_WRITES}};
  TRY(rondo_device_open("cpu", NULL, &p->device));
  TRY(rondo_stream_create(p->device, NULL, &p->stream));
  TRY(rondo_stream_create(p->device, NULL, &p->side));
  TRY(rondo_event_create(p->device, NULL, &p->ready));
  TRY(rondo_event_create(p->device, NULL, &p->summed));
  TRY(rondo_kernel_create(p->device, &sum, &p->sum));
  return rondo_malloc(p->device, sizeof(float), "out", &p->out);
}

static rondo_status tear_down(program *p) {
  TRY(rondo_free(p->device, p->out));
  rondo_kernel_destroy(p->sum);
  rondo_event_destroy(p->summed);
  rondo_event_destroy(p->ready);
  TRY(rondo_stream_destroy(p->side));
  TRY(rondo_stream_destroy(p->stream));
  return rondo_device_close(p->device);
}

static rondo_status run(program *p, const char *file) {
  rondo_graph *graph;
  rondo_exec *exec;
  TRY(set_up(p));
  TRY(capture(p, false, &graph));
  if (file != NULL) TRY(dump(graph, file));
  const rondo_status refused = rondo_instantiate(graph, NULL, &exec);
  printf("%s: %s\n", rondo_status_name(refused), rondo_last_error()->message);
  TRY(rondo_graph_destroy(graph));

  TRY(capture(p, true, &graph));
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(rondo_exec_launch(exec, p->stream));
  TRY(rondo_stream_synchronize(p->stream));
  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));
  printf("%s\n", refused == RONDO_INVALID_LIFETIME ? "refused, then right" : "not refused");
  return tear_down(p);
}

int main(int argc, char **argv) {
  program p = {.device = NULL};
  if (run(&p, argc > 1 ? argv[1] : NULL) == RONDO_OK) return 0;
  fprintf(stderr, "%s\n", rondo_last_error()->message);
  return 1;
}

/* SPDX-License-Identifier: MIT
 * A model in a shared object, for tests of the backend of Triton: y [rows, 2] = x [rows, 2] * 2, or * 4 if FOUR is
 * defined. With the parameter "counts", it adds how many requests came before, a state that each request changes. If
 * the folder has a file "broken", it does not load.
 */
#include <rondo/operators.h>
#include <rondo/triton.h>
#include <stdio.h>
#include <unistd.h>

#define TRY(call)                            \
  do {                                       \
    const rondo_status status_ = (call);     \
    if (status_ != RONDO_OK) return status_; \
  } while (0)

/* y + the state `count`, which becomes one more. */
static rondo_status add_count(rondo_program *program, rondo_value y, rondo_value *out) {
  static const size_t shape[] = {1};
  rondo_value count, more;
  TRY(rondo_program_state(program, "count", RONDO_F32, shape, 1, &count));
  TRY(rondo_op_add_constant(program, count, 1, &more));
  TRY(rondo_program_assign(program, count, more));
  return rondo_op_add(program, y, count, out);
}

static int described; /* models that were described and not released */
static bool counts;

static rondo_status build(void *user, size_t rows, rondo_program *program) {
  const size_t shape[] = {rows, 2};
  rondo_value x, y;
  (void)user;
  TRY(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  TRY(rondo_op_add(program, x, x, &y));
#ifdef FOUR
  TRY(rondo_op_add(program, y, y, &y));
#endif
  if (counts) TRY(add_count(program, y, &y));
  return rondo_program_output(program, "y", y);
}

static void release(rondo_triton_description *description) { --*(int *)description->user; }

rondo_status rondo_triton_model(const char *folder, rondo_triton_description *out) {
  static const size_t history[] = {1, 4};
  char path[256];
  (void)snprintf(path, sizeof path, "%s/broken", folder);
  if (access(path, F_OK) == 0)
    return rondo_error_set(&(rondo_error){
        .status = RONDO_INVALID_DATA, .node = RONDO_NO_NODE, .message = "the scorer's folder says that it is broken"});
  described++;
  counts = out->parameter(out->configuration, "counts") != NULL;
  out->model.build = build;
  out->model.history = history;
  out->model.history_count = 2;
  out->release = release;
  out->user = &described;
  return RONDO_OK;
}

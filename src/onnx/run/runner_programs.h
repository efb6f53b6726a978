/* SPDX-License-Identifier: MIT
 * The programs of a runner: one for each form of inputs, or, of a model that must wait for values (model_part.h), one
 * for each part, found by the part before it and the values that were read there.
 *
 * Invariant: programs that recordings may have captured stay until the runner is destroyed, and so do those before
 * them. All of them are compiled for the runner's stream, and share the states of the first one.
 * Threads: one at a time, together with the stream.
 */
#ifndef RONDO_ONNX_RUN_RUNNER_PROGRAMS_H
#define RONDO_ONNX_RUN_RUNNER_PROGRAMS_H

#include "base/array.h"
#include "onnx/import/build_result.h"
#include "onnx/import/model_part.h"
#include "onnx/run/kept_options.h"

/* The shape of an input of a call. */
typedef struct rondo_onnx_input_form {
  size_t rank, shape[RONDO_TREE_MAX_RANK];
} rondo_onnx_input_form;

typedef struct rondo_onnx_runner_program {
  struct rondo_onnx_runner_program *before; /* the part before; NULL: it is the whole model, or the first part */
  rondo_onnx_input_form *forms;             /* of the runner's inputs; NULL of later parts */
  rondo_onnx_build *build;
  rondo_compiled *compiled;  /* NULL: nothing depends on a run */
  unsigned char *cut_values; /* of the last run: what the host read after it */
  bool is_kept, has_run;
} rondo_onnx_runner_program;

/* What a program is found by: forms of the inputs, or the part before and what was read after it. */
typedef struct rondo_onnx_program_key {
  const rondo_onnx_input_form *forms;
  rondo_onnx_runner_program *before;
} rondo_onnx_program_key;

struct rondo_onnx_runner {
  rondo_allocator allocator;
  rondo_scratch scratch; /* of the options */
  const rondo_onnx_model *model;
  rondo_stream *stream;
  rondo_onnx_build_options options;
  rondo_compile_options compile;
  rondo_onnx_input_list listed; /* the inputs of the model */
  size_t *inputs;               /* those of them that calls have */
  size_t input_count;
  uint32_t max_programs;
  RONDO_ARRAY(rondo_onnx_runner_program *) programs;
  rondo_onnx_runner_info info;
};

/* Finds a program, or makes one: one that is kept if there is room, otherwise one that the caller frees after its run
 * (is_kept is false). Errors: those of building and compiling; rondo_call_refuse's for one that is not kept. */
RONDO_MUST_USE rondo_status rondo_onnx_take_program(rondo_onnx_runner *runner, const rondo_onnx_program_key *key,
                                                    rondo_call *call, rondo_onnx_runner_program **out);

/* After its runs are complete. NULL is fine. */
RONDO_MUST_USE rondo_status rondo_onnx_free_program(const rondo_onnx_runner *runner,
                                                    rondo_onnx_runner_program *program);

/* The first program with states and an arena, which others share; NULL before it is compiled. */
rondo_compiled *rondo_onnx_find_shared(const rondo_onnx_runner *runner);

/* The name of an input of calls. */
const char *rondo_onnx_call_input_name(const rondo_onnx_runner *runner, size_t index);

#endif

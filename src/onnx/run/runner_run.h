/* SPDX-License-Identifier: MIT
 * Runs of a runner's programs: inputs of a call are copied into a program, and results to the outputs of the call. A
 * model with parts runs one after the other; between two, the host waits, and reads what the next one must know.
 * Threads: one at a time, together with the stream.
 */
#ifndef RONDO_ONNX_RUN_RUNNER_RUN_H
#define RONDO_ONNX_RUN_RUNNER_RUN_H

#include "onnx/run/runner_programs.h"

/* Enqueues the run of a whole model, or captures it. */
RONDO_MUST_USE rondo_status rondo_onnx_run_whole(const rondo_onnx_runner *runner,
                                                 const rondo_onnx_runner_program *program, rondo_call *call);

/* Runs all parts, from the first one on, which the caller frees if it is not kept. The last one is only enqueued.
 * Errors: INVALID_STATE/NOT_RECORDED while the stream captures; those of building, and of the runs. */
RONDO_MUST_USE rondo_status rondo_onnx_run_parts(rondo_onnx_runner *runner, rondo_onnx_runner_program *first,
                                                 rondo_call *call);

#endif

/* SPDX-License-Identifier: MIT
 * Feeding compiled programs: copies inputs to the device and outputs to the host while other runs execute (FW-3).
 *
 * By default, rondo_compiled_write enqueues a copy on the program's stream, which starts when all earlier runs are
 * done. A staged input (rondo_compile_options.staged) has a staging buffer instead. Each run starts with a copy from
 * the staging buffer into the input's slot; this copy is a node of the recorded graph. After these copies the graph
 * records an event. From then on the staging buffers can be written for the next run, while the current run continues.
 *
 * - RONDO_STAGING_HOST: the buffer is host memory at a fixed address, page-locked on CUDA. The run copies it to the
 *   device.
 * - RONDO_STAGING_DEVICE: the buffer is device memory, and a second stream writes it. The transfer from the host is
 *   then finished before the run starts. Of two batches, one is in the slot, used by the current run, and one is in
 *   the buffer, for the next run.
 *
 * The slot of a staged input occupies memory only while the run reads it. Each run copies a staged output
 * (RONDO_STAGING_HOST only) to host memory as soon as it is computed, not only when the run is done.
 *
 *   const rondo_staged_value staged[] = {{"x", RONDO_STAGING_DEVICE}, {"loss", RONDO_STAGING_HOST}};
 *   const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = staged, .staged_count = 2};
 *   TRY(rondo_compile(program, device, &options, &compiled));
 *   TRY(rondo_compiled_feed(compiled, "x", batch, bytes));
 *   for (...) {
 *     TRY(rondo_compiled_run(compiled));
 *     TRY(rondo_compiled_feed(compiled, "x", next_batch, bytes));            // while the run executes
 *     TRY(rondo_compiled_fetch(compiled, "loss", &loss, sizeof loss));
 *   }
 *
 * All later runs use what was fed, until it is fed again. All calls are thread-compatible with all other calls on the
 * compiled program and on those that share memory with it. While its stream captures, they are refused with
 * CAPTURE_REFUSED/UNSUPPORTED_CALL, and the capture continues (RC-5). A captured run reads the staging buffers at each
 * replay. Capturing a run is refused in the same way while something is fed that no run has used.
 *
 * Component: rondo-tensor.
 */
#ifndef RONDO_FEED_H
#define RONDO_FEED_H

#include <rondo/program.h>

RONDO_EXTERN_C_BEGIN

/* Writes an input; `data` may be reused after the call. An input that is not staged: as rondo_compiled_write. DEVICE:
 * enqueued on the second stream; waits for a run only if so much was fed in advance that the intermediate memory is
 * full (four times the bytes of all such inputs, at most 16 MiB). HOST: waits until the last enqueued run has read the
 * buffer, so a call waits while two runs are enqueued. Errors: NOT_FOUND/UNKNOWN_NAME, INVALID_ARGUMENT/BAD_SIZE,
 * CAPTURE_REFUSED/UNSUPPORTED_CALL, INVALID_STATE/STILL_IN_USE (the input is mapped), and as rondo_copy_async. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_feed(rondo_compiled *compiled, const char *name, const void *data,
                                                          size_t bytes);

/* Copies an output of the last enqueued run to `data`. For a staged output, waits until the run has computed and copied
 * it, not until the run is done. Failures that are found later, such as an index out of range, are returned by the next
 * rondo_compiled_synchronize. Otherwise as rondo_compiled_read. Errors as rondo_compiled_read. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_fetch(rondo_compiled *compiled, const char *name, void *data,
                                                           size_t bytes);

/* Gives the caller the buffer of a staged input, to write it directly, until rondo_compiled_unmap.
 *   HOST:   stream is NULL; waits until the last run has read the buffer, so the caller may write at once.
 *   DEVICE: work enqueued on `stream` from now on may write it, for example copies from the host or kernels that
 *           produce the input. `stream` may be any stream of the device except the program's own. It waits until the
 *           last run has read the buffer. The next run waits for the work that is on `stream` when the input is
 *           unmapped.
 * Errors, with *out_address = NULL: NOT_FOUND/UNKNOWN_NAME; INVALID_ARGUMENT with NONE (not staged), NULL_ARGUMENT (a
 * stream is required), OTHER_DEVICE, BAD_OPTIONS (a stream for host memory, or the program's own stream);
 * INVALID_STATE/STILL_IN_USE (mapped already); CAPTURE_REFUSED/UNSUPPORTED_CALL, also where `stream` captures; and as
 * rondo_event_synchronize or rondo_stream_wait_event. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_map(rondo_compiled *compiled, const char *name,
                                                         rondo_stream *stream, void **out_address);

/* Ends rondo_compiled_map. No run can be enqueued while an input is mapped. Errors: NOT_FOUND/UNKNOWN_NAME;
 * INVALID_STATE/NONE (not mapped); CAPTURE_REFUSED/UNSUPPORTED_CALL; as rondo_event_record, after which the input is
 * still mapped. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_unmap(rondo_compiled *compiled, const char *name);

RONDO_EXTERN_C_END

#endif

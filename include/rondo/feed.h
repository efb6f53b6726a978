/* SPDX-License-Identifier: MIT
 * Feeding compiled programs: how the bytes of an input get into its slot, and those of an output to the host, while
 * other runs are under way (FW-3).
 *
 * By default rondo_compiled_write puts a copy in front of the next run, on the program's stream: it begins when the
 * runs so far are done. An input that is staged (rondo_compile_options.staged) has a buffer of its own instead, and
 * each run begins with a copy from there into the slot, as a node of the recorded graph; behind it the graph records an
 * event: the buffers are taken, and may be written for the next run while this one goes on.
 *
 * - RONDO_STAGING_HOST: the buffer is host memory at a fixed address, pinned on CUDA. A run brings it to the device.
 * - RONDO_STAGING_DEVICE: the buffer is device memory, written by a stream beside the program's: the way from the host
 *   is gone by the time the run begins. So of two batches, one is in the slot, in use by a run, and one in the buffer,
 *   for the next.
 *
 * A slot that is filled so holds no memory for longer than the run reads it. Of a staged output (RONDO_STAGING_HOST
 * alone) each run leaves a copy in host memory, as soon as it is computed, and not only when the run is over.
 *
 *   const rondo_staged_value staged[] = {{"x", RONDO_STAGING_DEVICE}, {"loss", RONDO_STAGING_HOST}};
 *   const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = staged, .staged_count = 2};
 *   TRY(rondo_compile(program, device, &options, &compiled));
 *   TRY(rondo_compiled_feed(compiled, "x", batch, bytes));
 *   for (...) {
 *     TRY(rondo_compiled_run(compiled));
 *     TRY(rondo_compiled_feed(compiled, "x", next_batch, bytes));            // while the run goes on
 *     TRY(rondo_compiled_fetch(compiled, "loss", &loss, sizeof loss));
 *   }
 *
 * What is fed is for the runs that follow, until it is fed again. All calls are thread-compatible with all others on
 * the compiled program (and those that share with it), and refused with CAPTURE_REFUSED/UNSUPPORTED_CALL while its
 * stream captures, with which the capture goes on (RC-5). A run that is captured takes what is in the buffers at each
 * replay, and is refused so while something is fed that no run has taken.
 */
#ifndef RONDO_FEED_H
#define RONDO_FEED_H

#include <rondo/program.h>

RONDO_EXTERN_C_BEGIN

/* Gives an input its bytes; `data` may be reused at once. Into a slot: as rondo_compiled_write. DEVICE: queued beside
 * the runs; waits for a run only where so much was fed ahead that the memory in between is full (as much as four times
 * what all such inputs hold; 16 MiB at most). HOST: waits until the last run that was queued has taken what is there,
 * thus while two runs are queued. Errors: NOT_FOUND/UNKNOWN_NAME, INVALID_ARGUMENT/BAD_SIZE,
 * CAPTURE_REFUSED/UNSUPPORTED_CALL, INVALID_STATE/STILL_IN_USE (it is mapped), and as rondo_copy_async. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_feed(rondo_compiled *compiled, const char *name, const void *data,
                                                          size_t bytes);

/* Copies the last queued run's output to `data`. Of a staged one it waits until the run has computed and copied it, not
 * until it is over; failures that show only later come out at the next rondo_compiled_synchronize, as wrong indices do.
 * Otherwise as rondo_compiled_read. Errors as rondo_compiled_read. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_fetch(rondo_compiled *compiled, const char *name, void *data,
                                                           size_t bytes);

/* Lends the buffer of a staged input, to be written without a copy in between, until rondo_compiled_unmap.
 *   HOST:   stream is NULL; waits until the buffer is taken, so that the caller may write at once.
 *   DEVICE: what is queued on `stream` (any of the device but the program's own) from now on may write it: copies from
 *           the host or kernels that produce the input; the stream waits for the buffer to be taken. The next run waits
 *           for what was queued there when it was unmapped.
 * Errors, with *out_address = NULL: NOT_FOUND/UNKNOWN_NAME; INVALID_ARGUMENT with NONE (not staged), NULL_ARGUMENT
 * (a stream is wanted), OTHER_DEVICE, BAD_OPTIONS (a stream for host memory, or the program's own);
 * INVALID_STATE/STILL_IN_USE (mapped already); CAPTURE_REFUSED/UNSUPPORTED_CALL, also where `stream` captures; and as
 * rondo_event_synchronize or rondo_stream_wait_event. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_map(rondo_compiled *compiled, const char *name,
                                                         rondo_stream *stream, void **out_address);

/* Ends rondo_compiled_map; no run may be queued before. Errors: NOT_FOUND/UNKNOWN_NAME; INVALID_STATE/NONE (not
 * mapped); CAPTURE_REFUSED/UNSUPPORTED_CALL; as rondo_event_record, with which it is mapped still. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_unmap(rondo_compiled *compiled, const char *name);

RONDO_EXTERN_C_END

#endif

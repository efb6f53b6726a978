/* SPDX-License-Identifier: MIT
 * Graphed callables (TR-12): several functions, each with a backward if it has one, recorded once in a fixed order,
 * with memory in common, and called one by one in that order from then on. The model is PyTorch's
 * torch.cuda.make_graphed_callables.
 *
 *   static const uint32_t kinds[] = {RONDO_INPUT_MOVING, RONDO_INPUT_STATIC};
 *   const rondo_callable parts[] = {
 *     {.name = "encoder", .user = &encoder, .forward = forward, .inputs = kinds, .samples = encoder_samples,
 *      .input_count = 2, .output_count = 1,
 *      .backward = backward, .gradients = kinds, .gradient_samples = encoder_gradients, .gradient_count = 1,
 *      .backward_output_count = 2},
 *     {.name = "decoder", ...}};
 *   rondo_callables_create(device, stream, &(rondo_callables_options){RONDO_CALLABLES_OPTIONS_INIT,
 *                          .callables = parts, .callable_count = 2}, &callables);
 *   for (;;) {
 *     rondo_callables_forward(callables, 0, stream, x, 2, &hidden, 1);
 *     rondo_callables_forward(callables, 1, stream, ...);
 *     ... the loss and its gradient, by work of the caller's ...
 *     rondo_callables_backward(callables, 1, stream, &gradient, 1, gradients, 2);
 *     rondo_callables_backward(callables, 0, stream, ...);
 *   }
 *
 * Rounds. A *round* is all calls in the order, once each: forward of each callable, then backward in the opposite order
 * unless rondo_callables_options.order says otherwise. A call out of order is refused, naming the one that is due, and
 * changes nothing; rondo_callables_restart gives a round up, as after a forward alone.
 *
 * Creating takes `warm_ups` rounds of the bodies as they are and one in which they are recorded, on the samples. All
 * inputs that are declared RONDO_INPUT_MUTATED, and the generators drawn from (<rondo/random.h>), are afterwards what
 * they were. From then on no body is called again.
 *
 * Inputs. The memory of a sample is where the recorded work has that input for ever. A call that gives another address
 * has its bytes copied there in front of the work (and back behind it, when it is declared mutated); one that gives the
 * same does not. So the samples' memory is the caller's, must live as long as the callables, and holds what was given
 * last.
 *
 * Outputs are at fixed addresses too: one each, for ever. They are handed out as buffers of a round (<rondo/tree.h>):
 * reading one when the first call of a later round was made is an error (STALE_BUFFER), where PyTorch lets gradients
 * that somebody accumulates change silently. With RONDO_OUTPUTS_CLONE those that somebody holds are copied out first
 * and stay valid. To accumulate over rounds, add them to memory of the caller's, or hold them with that policy.
 *
 * A backward's body sees, by rondo_call_input: the gradients that its caller gives, then the forward's inputs, then the
 * forward's outputs of this round, which live until the round is over whoever releases them.
 *
 * What is recorded must be able to be: any reason not to (rondo_skip) is an error of rondo_callables_create.
 * Thread-compatible; other trees and callables are independent.
 */
#ifndef RONDO_CALLABLES_H
#define RONDO_CALLABLES_H

#include <rondo/tree.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_callables rondo_callables;

/* One of them. Kinds of inputs are RONDO_INPUT_MOVING, or RONDO_INPUT_STATIC, which are refused elsewhere than at their
 * sample, by | with RONDO_INPUT_MUTATED. Samples are memory with an address, no buffers; type and shape may be zero. */
typedef struct rondo_callable {
  const char *name;            /* required, not empty; copied */
  void *user;                  /* for both bodies; must outlive the callables' creation, with host steps them */
  rondo_function_body forward; /* required */
  const uint32_t *inputs;      /* of forward: what each is; copied, as the samples */
  const rondo_input *samples;
  size_t input_count;
  size_t output_count;          /* that forward makes, from 0 on */
  rondo_function_body backward; /* NULL = none */
  const uint32_t *gradients;    /* what its caller gives */
  const rondo_input *gradient_samples;
  size_t gradient_count;
  size_t backward_output_count;
  void *reserved[2];
} rondo_callable;

typedef struct rondo_callables_options {
  uint32_t struct_size; /* RONDO_CALLABLES_OPTIONS_INIT sets it; 0 means the library's own */
  uint32_t warm_ups;    /* rounds; 0 = 3 */
  const char *name;     /* for messages; copied; may be NULL */
  const rondo_callable *callables;
  size_t callable_count;
  const int32_t *order; /* a round: i + 1 is the forward of callable i, -(i + 1) its backward; each once, a backward
                           behind its forward; NULL = all forwards, then all backwards the other way round */
  size_t order_count;
  uint64_t max_bytes;          /* of memory in common; 0 = as the device has */
  rondo_output_policy outputs; /* what becomes of outputs that are held when the next round begins */
} rondo_callables_options;
#define RONDO_CALLABLES_OPTIONS_INIT .struct_size = sizeof(rondo_callables_options)

/* Warms up and records all, on the stream. The caller destroys them before the device is closed. Errors:
 * INVALID_ARGUMENT (NULL; BAD_OPTIONS naming the callable: no name or forward, a kind of input that cannot be, a sample
 * without memory or with a buffer, an order that is none; OTHER_DEVICE); UNSUPPORTED/NOT_RECORDED with the reason;
 * INVALID_STATE/NO_OUTPUT and INVALID_ARGUMENT/ARGUMENT_COUNT (fewer outputs than are said); what a body returns;
 * CAPTURE_REFUSED (the stream captures); OUT_OF_MEMORY; IN_CALLBACK. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_callables_create(rondo_device *device, rondo_stream *stream,
                                                             const rondo_callables_options *options,
                                                             rondo_callables **out_callables);

/* Waits for their work. Outputs that are still held can only be released then. NULL is fine. Errors as
 * rondo_tree_destroy. */
RONDO_API RONDO_MUST_USE rondo_status rondo_callables_destroy(rondo_callables *callables);

/* Calls callable `index`, queued on the stream behind all calls before. The caller owns a reference to each of the
 * first `output_count` outputs. Errors, with nothing queued but for the last two: INVALID_STATE/CALL_ORDER: another
 * call is due, which the message names, with the round; INVALID_ARGUMENT: NULL, OUT_OF_RANGE (no such callable, or it
 * has no backward), ARGUMENT_COUNT (inputs, or more outputs than there are), BAD_SIZE (other bytes than the sample),
 * SHAPE (another type or shape, where one is given), FOREIGN_ADDRESS (a static input elsewhere), OTHER_DEVICE, OVERLAP
 * (an input in the memory of another one's sample, whose bytes would be lost);
 *   INVALID_LIFETIME/STALE_BUFFER (an input of an earlier round); CAPTURE_REFUSED (the stream captures);
 *   INVALID_STATE/CONCURRENT_USE, IN_CALLBACK;
 *   those of rondo_copy_async (an input that overlaps its sample's memory), and of rondo_function_call. */
RONDO_API RONDO_MUST_USE rondo_status rondo_callables_forward(rondo_callables *callables, size_t index,
                                                              rondo_stream *stream, const rondo_input *inputs,
                                                              size_t input_count, rondo_buffer **outputs,
                                                              size_t output_count);
RONDO_API RONDO_MUST_USE rondo_status rondo_callables_backward(rondo_callables *callables, size_t index,
                                                               rondo_stream *stream, const rondo_input *gradients,
                                                               size_t gradient_count, rondo_buffer **outputs,
                                                               size_t output_count);

/* The next call is the first of a round. Errors: INVALID_ARGUMENT, CONCURRENT_USE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_callables_restart(rondo_callables *callables);

typedef struct rondo_callables_info {
  uint32_t struct_size;
  uint32_t callables, calls_per_round;
  uint32_t position;                    /* calls of the round under way that were made */
  const char *next;                     /* the callable that is due; valid as long as the callables */
  bool is_backward;                     /* ... its backward */
  uint64_t rounds;                      /* that were called to their end */
  uint64_t calls;                       /* all replays */
  uint64_t bodies;                      /* times a body ran, for creating */
  uint64_t copied_inputs, copied_bytes; /* into the samples' memory */
  uint64_t arena_bytes;                 /* memory that all have in common */
  uint64_t exec_host_bytes, exec_device_bytes;
} rondo_callables_info;

/* Errors: INVALID_ARGUMENT, CONCURRENT_USE. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_callables_get_info(rondo_callables *callables,
                                                               rondo_callables_info *out_info);

RONDO_EXTERN_C_END

#endif

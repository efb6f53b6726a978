/* SPDX-License-Identifier: MIT
 * Graphed callables (TR-12): several functions, each with an optional backward function. They are recorded once in a
 * fixed order, share memory, and are then called one by one in that order. The model is PyTorch's
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
 *     ... the caller's own work computes the loss and its gradient ...
 *     rondo_callables_backward(callables, 1, stream, &gradient, 1, gradients, 2);
 *     rondo_callables_backward(callables, 0, stream, ...);
 *   }
 *
 * Rounds. A *round* consists of all calls in order, once each: the forward of each callable, then the backwards in the
 * opposite order, unless rondo_callables_options.order says otherwise. A call out of order is refused and changes
 * nothing; the error names the call that is due. rondo_callables_restart abandons a round, for example after a forward
 * pass without a backward pass.
 *
 * Creating the callables runs `warm_ups` rounds of the bodies eagerly, and then one round in which they are recorded,
 * with the samples as inputs. Afterwards, all inputs that are declared RONDO_INPUT_MUTATED, and the generators that
 * were drawn from (<rondo/random.h>), have their previous state. The bodies are not called again.
 *
 * Inputs. The recorded work always reads an input at the address of its sample. If a call passes another address, its
 * bytes are copied there before the work (and copied back after it if the input is declared mutated). If a call passes
 * the same address, nothing is copied. The memory of the samples belongs to the caller, must live as long as the
 * callables, and holds the inputs of the last call.
 *
 * Outputs have fixed addresses too. They are returned as buffers of a round (<rondo/tree.h>). Reading one after the
 * first call of a later round is an error (STALE_BUFFER); in PyTorch, gradients that are accumulated would change
 * silently. With RONDO_OUTPUTS_CLONE, outputs that are still held are first copied out and stay valid. To accumulate
 * over several rounds, add the outputs to the caller's own memory, or hold them with that policy.
 *
 * With rondo_call_input, the body of a backward function gets the gradients that its caller passes, then the forward's
 * inputs, then the forward's outputs of this round. These outputs live until the round ends, even if all holders
 * release them.
 *
 * Everything must be recordable: any reason to skip recording (rondo_skip) is an error of rondo_callables_create.
 * Thread-compatible; other trees and callables are independent.
 */
#ifndef RONDO_CALLABLES_H
#define RONDO_CALLABLES_H

#include <rondo/tree.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_callables rondo_callables;

/* One callable. The kind of an input is RONDO_INPUT_MOVING, or RONDO_INPUT_STATIC, which must be at the address of its
 * sample; each may be combined by | with RONDO_INPUT_MUTATED. Samples are memory with an address, not buffers; type and
 * shape may be zero. */
typedef struct rondo_callable {
  const char *name; /* required, not empty; copied */
  void *user;       /* for both bodies; must outlive rondo_callables_create, or the callables if there are host steps */
  rondo_function_body forward; /* required */
  const uint32_t *inputs;      /* of forward: the kind of each; copied, like the samples */
  const rondo_input *samples;
  size_t input_count;
  size_t output_count;          /* that forward creates, from index 0 */
  rondo_function_body backward; /* NULL = none */
  const uint32_t *gradients;    /* the kinds of the gradients that the caller passes */
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
  const int32_t *order; /* of a round: i + 1 is the forward of callable i, -(i + 1) its backward; each once, a backward
                           after its forward; NULL = all forwards, then all backwards in the opposite order */
  size_t order_count;
  uint64_t max_bytes;          /* of shared memory; 0 = as much as the device has */
  rondo_output_policy outputs; /* for outputs that are still held when the next round begins */
} rondo_callables_options;
#define RONDO_CALLABLES_OPTIONS_INIT .struct_size = sizeof(rondo_callables_options)

/* Warms up and records all callables on the stream. The caller destroys them before it closes the device. Errors:
 * INVALID_ARGUMENT (NULL; BAD_OPTIONS naming the callable: no name or no forward, an invalid kind of input, a sample
 * without memory or with a buffer, an invalid order; OTHER_DEVICE); UNSUPPORTED/NOT_RECORDED with the reason;
 * INVALID_STATE/NO_OUTPUT and INVALID_ARGUMENT/ARGUMENT_COUNT (the body created fewer outputs than declared); what a
 * body returns; CAPTURE_REFUSED (the stream captures); OUT_OF_MEMORY; IN_CALLBACK. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_callables_create(rondo_device *device, rondo_stream *stream,
                                                             const rondo_callables_options *options,
                                                             rondo_callables **out_callables);

/* Waits for the work of the callables and frees them. Outputs that are still held can then only be released. NULL is
 * fine. Errors as rondo_tree_destroy. */
RONDO_API RONDO_MUST_USE rondo_status rondo_callables_destroy(rondo_callables *callables);

/* Calls callable `index`. The work is enqueued on the stream after all earlier calls. The caller owns a reference to
 * each of the first `output_count` outputs. Errors, where all but the last two enqueue nothing:
 * INVALID_STATE/CALL_ORDER: another call is due, which the message names, with the round; INVALID_ARGUMENT: NULL,
 * OUT_OF_RANGE (no such callable, or it has no backward), ARGUMENT_COUNT (of inputs, or more outputs than there are),
 * BAD_SIZE (other bytes than the sample), SHAPE (another type or shape than the sample, if it has one), FOREIGN_ADDRESS
 * (a static input at another address), OTHER_DEVICE, OVERLAP (an input in the memory of another input's sample, whose
 * bytes would be lost);
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

/* Begins a new round: the next call is the first of a round. Errors: INVALID_ARGUMENT, CONCURRENT_USE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_callables_restart(rondo_callables *callables);

typedef struct rondo_callables_info {
  uint32_t struct_size;
  uint32_t callables, calls_per_round;
  uint32_t position;                    /* calls made so far in the current round */
  const char *next;                     /* the callable that is due; valid as long as the callables */
  bool is_backward;                     /* whether its backward is due */
  uint64_t rounds;                      /* completed rounds */
  uint64_t calls;                       /* all replays */
  uint64_t bodies;                      /* how often bodies ran, while the callables were created */
  uint64_t copied_inputs, copied_bytes; /* to the samples' memory */
  uint64_t arena_bytes;                 /* memory that all callables share */
  uint64_t exec_host_bytes, exec_device_bytes;
} rondo_callables_info;

/* Errors: INVALID_ARGUMENT, CONCURRENT_USE. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_callables_get_info(rondo_callables *callables,
                                                               rondo_callables_info *out_info);

RONDO_EXTERN_C_END

#endif

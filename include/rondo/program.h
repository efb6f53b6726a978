/* SPDX-License-Identifier: MIT
 * Programs: networks written as operators (<rondo/operators.h>) on tensors, differentiated, compiled into one arena of
 * fixed addresses, and run either kernel by kernel or as one recorded graph.
 *
 *   #define TRY(call) do { const rondo_status status = (call); if (status != RONDO_OK) return status; } while (0)
 *
 *   TRY(rondo_program_create(NULL, &program));
 *   TRY(rondo_program_input(program, "tokens", RONDO_I32, shape, 2, &tokens));
 *   TRY(rondo_program_state(program, "table", RONDO_F32, shape, 2, &table));       // weights: kept between runs
 *   TRY(rondo_program_cell(program, "rate", 0.001f, &rate));
 *   TRY(rondo_op_embedding(program, table, tokens, &x));
 *   ...
 *   TRY(rondo_op_cross_entropy(program, logits, labels, &loss));
 *   TRY(rondo_program_output(program, "loss", loss));
 *   const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate};
 *   TRY(rondo_program_adam(program, loss, &adam));                                 // gradients and updates
 *   TRY(rondo_compile(program, device, NULL, &compiled));
 *   TRY(rondo_compiled_write(compiled, "tokens", data, bytes));
 *   TRY(rondo_compiled_run(compiled));
 *   TRY(rondo_compiled_read(compiled, "loss", &value, sizeof value));
 *
 * A run means: what operators compute, each from the states as they were before the run; then the updates of states
 * (optimizers), in the order in which they were added. Operators whose results neither an output nor an update needs do
 * not run; of operators that compute the same, one runs. Within this meaning the order is chosen so that little memory
 * is live at once, and independent operators may run side by side.
 *
 * A program is thread-compatible and needs no device. A compiled program is thread-compatible; it owns a stream.
 */
#ifndef RONDO_PROGRAM_H
#define RONDO_PROGRAM_H

#include <rondo/exec.h>
#include <rondo/executor.h>
#include <rondo/gain.h>
#include <rondo/type.h>

RONDO_EXTERN_C_BEGIN

#define RONDO_MAX_DIMENSIONS 6

typedef struct rondo_program rondo_program;
typedef struct rondo_compiled rondo_compiled;

/* A value of a program: a tensor that exists when the program runs. Plain tag; the zero value is none. A tag of another
 * program is found and refused. */
typedef struct rondo_value {
  uint64_t id;
} rondo_value;

typedef struct rondo_program_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char *name;                 /* copied; may be NULL */
  const rondo_allocator *allocator; /* NULL = the C library's */
} rondo_program_options;
#define RONDO_PROGRAM_OPTIONS_INIT .struct_size = sizeof(rondo_program_options)

/* An empty program. options may be NULL. The caller destroys it. Thread-safe. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY.
 */
RONDO_API RONDO_MUST_USE rondo_status rondo_program_create(const rondo_program_options *options,
                                                           rondo_program **out_program);
/* Compiled programs made from it live on. NULL is fine. */
RONDO_API void rondo_program_destroy(rondo_program *program);

/* Named values. Names are copied, not empty, and unique among inputs, states, cells and outputs. Shapes have 0 to
 * RONDO_MAX_DIMENSIONS dimensions, each at least 1; rank 0 is a scalar. Errors of all: INVALID_ARGUMENT with SHAPE,
 * TYPE, DUPLICATE_NAME, NULL_ARGUMENT (no name), UNKNOWN_NAME (a value of another program); LIMIT_EXCEEDED (bytes do
 * not fit); OUT_OF_MEMORY.
 *   input:  written by the user before runs, at a fixed address (its slot). Starts as zeros.
 *   state:  kept from run to run: weights, moments. Starts as zeros; rondo_compiled_write sets it.
 *   cell:   a scalar of type F32 in device memory that the user changes between runs without touching the graph:
 *           learning rate, momentum (FW-5). Starts as `initial`.
 *   output: a value that can be read after a run; of a state or cell, what it is then, and of one that is reshaped,
 * what it was in the run. Zeros before the first run. */
RONDO_API RONDO_MUST_USE rondo_status rondo_program_input(rondo_program *program, const char *name, rondo_type type,
                                                          const size_t *shape, size_t rank, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_program_state(rondo_program *program, const char *name, rondo_type type,
                                                          const size_t *shape, size_t rank, rondo_value *out_value);

/* A state with options: a frozen one is updated by no optimizer, such as a table of constants (the cosines of rotary
 * positions) or weights that are not to be trained further. Other states of type F32 are trained where a loss depends
 * on them. rondo_program_gradients gives gradients of both. options may be NULL. Errors as above; INVALID_ARGUMENT with
 * BAD_OPTIONS. */
typedef struct rondo_state_options {
  uint32_t struct_size;
  bool frozen;
} rondo_state_options;
#define RONDO_STATE_OPTIONS_INIT .struct_size = sizeof(rondo_state_options)
RONDO_API RONDO_MUST_USE rondo_status rondo_program_state_with(rondo_program *program, const char *name,
                                                               rondo_type type, const size_t *shape, size_t rank,
                                                               const rondo_state_options *options,
                                                               rondo_value *out_value);

RONDO_API RONDO_MUST_USE rondo_status rondo_program_cell(rondo_program *program, const char *name, float initial,
                                                         rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_program_output(rondo_program *program, const char *name, rondo_value value);

/* Type and shape of a value; out_shape has room for RONDO_MAX_DIMENSIONS. Errors: INVALID_ARGUMENT with NULL_ARGUMENT,
 * UNKNOWN_NAME (a value of another program). Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_value_shape(const rondo_program *program, rondo_value value,
                                                        rondo_type *out_type, size_t *out_shape, size_t *out_rank);

/* Reverse-mode differentiation (Griewank and Walther, Evaluating Derivatives, 2nd ed., 2008, chapter 3): adds the
 * operators that compute the gradient of the scalar `loss`, F32, with respect to each of `count` values of a type of
 * float, in out_gradients (an array of its own). A gradient has its value's type; where the value has several readers
 * it is the sum of what comes from each, computed in F32 and rounded to the type at each addition. Readers of a part of
 * the value (slices, splits, gathers and embeddings of up to 64 picks) add to one tensor in place, so that n of them
 * cost as much as all elements that they read, not n times the value. Values that are computed alike count as one, so
 * gradients pass once through what each step of a loop computes again. A value that the loss does not depend on gets a
 * gradient of zeros. Errors: INVALID_ARGUMENT with SHAPE (loss is not a scalar), TYPE, UNKNOWN_NAME; UNSUPPORTED (an
 * operator without a gradient on the way, named; gradients have none themselves); OUT_OF_MEMORY. The program is then as
 * before. */
RONDO_API RONDO_MUST_USE rondo_status rondo_program_gradients(rondo_program *program, rondo_value loss,
                                                              const rondo_value *values, size_t count,
                                                              rondo_value *out_gradients);

/* What happens to gradients before an optimizer gets them, on the device, without touching the graph. Zero: nothing.
 *
 * - accumulate: so many runs make one update, with the mean of their gradients, which are summed in states
 *   "<name>.accumulated"; 0 is 1. The state "gradient.runs", I32, counts those of the round.
 * - max_norm: all gradients are multiplied by max_norm / (norm + 1e-6) where the norm of all of them together is larger
 *   (Pascanu, Mikolov and Bengio 2013). 0: not.
 * - scale_loss: for losses computed with F16: gradients are those of the loss times the state "gradient.scale" F32, and
 *   divided by it again in the optimizer. Where they are not all finite, the update is left out and the scale halved,
 *   down to 2^-126; after growth_interval (0: 2000) updates, counted in the state "gradient.good_updates", I32, it is
 *   doubled, up to 2^126. It starts as initial_scale (0: 65536). Micikevicius et al. 2018, with the numbers that
 *   PyTorch's GradScaler has.
 * - norm_output: the name of an output that is the norm of all gradients together, before clipping; NULL: none.
 *
 * With any of max_norm, scale_loss and norm_output, an update whose gradients are not all finite is left out. Their
 * squares are added up in F32, as they are: scaled, and summed over the round. Where the sum is infinite, which it is
 * of a norm above 2^64, they count as not finite, and the norm as infinite; below 2^-75 the norm may be 0. */
typedef struct rondo_gradient_options {
  uint32_t struct_size;
  uint32_t accumulate;
  float max_norm;
  bool scale_loss;
  float initial_scale;
  uint32_t growth_interval;
  const char *norm_output; /* copied */
} rondo_gradient_options;
#define RONDO_GRADIENT_OPTIONS_INIT .struct_size = sizeof(rondo_gradient_options)

/* How a learning rate follows the steps of an optimizer: s is how many updates it has made, t = s - warm_up. The first
 * warm_up updates rise in a line: rate (s + 1) / warm_up. Then:
 *
 * - CONSTANT: rate
 * - LINEAR: in a line from rate to `last` over `period` updates, then `last` (PyTorch: LinearLR)
 * - COSINE: last + (rate - last) (1 + cos(pi t / period)) / 2, then `last`; with `restarts` from rate again after each
 *   period (Loshchilov and Hutter, SGDR, ICLR 2017, equation 5; PyTorch: CosineAnnealingLR)
 * - STEPS: rate factor^k, k = t / period rounded down (PyTorch: StepLR)
 * - INVERSE_SQRT: rate sqrt(warm_up / (s + 1)), where warm_up of 0 counts as 1 (Vaswani et al. 2017, section 5.3) */
typedef enum rondo_rate_kind {
  RONDO_RATE_CONSTANT,
  RONDO_RATE_LINEAR,
  RONDO_RATE_COSINE,
  RONDO_RATE_STEPS,
  RONDO_RATE_INVERSE_SQRT
} rondo_rate_kind;

typedef struct rondo_rate_options {
  uint32_t struct_size;
  rondo_rate_kind kind;
  float rate;         /* the highest; above 0 */
  float last;         /* of LINEAR and COSINE: at least 0, at most rate */
  float factor;       /* of STEPS: above 0, at most 1; 0 is 0.1 */
  uint32_t warm_up;   /* this and period in updates */
  uint32_t period;    /* of LINEAR, COSINE and STEPS: at least 1 */
  bool restarts;      /* of COSINE */
  const char *output; /* the name of an output that is the rate of the run; copied; NULL: none */
} rondo_rate_options;
#define RONDO_RATE_OPTIONS_INIT .struct_size = sizeof(rondo_rate_options)

/* The rate of the update behind `updates` others. A CPU device computes the same bits; CUDA may differ in the last.
 * Thread-safe. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, OUT_OF_RANGE (naming the number), BAD_OPTIONS. */
RONDO_API RONDO_MUST_USE rondo_status rondo_rate_at(const rondo_rate_options *options, uint64_t updates,
                                                    float *out_rate);

typedef struct rondo_sgd_options {
  uint32_t struct_size;
  float weight_decay;                      /* times the parameter, added to its gradient */
  rondo_value learning_rate;               /* a scalar F32, such as a cell; none with a schedule */
  rondo_value momentum;                    /* the same, or no value for none */
  const rondo_gradient_options *gradients; /* may be NULL */
  const rondo_rate_options *schedule;      /* the rate is computed on the device; NULL: it is learning_rate */
  const rondo_value *states; /* to train, state_count of them, in any order; read during the call. NULL: */
  size_t state_count;        /* ... all F32 states that are not frozen and that the loss depends on */
} rondo_sgd_options;
#define RONDO_SGD_OPTIONS_INIT .struct_size = sizeof(rondo_sgd_options)

typedef struct rondo_adam_options {
  uint32_t struct_size;
  float beta1, beta2, epsilon; /* 0 = 0.9, 0.999, 1e-8 */
  rondo_value learning_rate;   /* a scalar F32, such as a cell; none with a schedule */
  float weight_decay; /* a parameter loses the rate times this of itself (AdamW: Loshchilov and Hutter 2019); 0: none */
  uint32_t reserved;
  const rondo_gradient_options *gradients; /* may be NULL */
  const rondo_rate_options *schedule;      /* the rate is computed on the device; NULL: it is learning_rate */
  const rondo_value *states;               /* as of rondo_sgd_options */
  size_t state_count;
} rondo_adam_options;
#define RONDO_ADAM_OPTIONS_INIT .struct_size = sizeof(rondo_adam_options)

/* Adds the gradients of `loss` for the states that the options list, or for all F32 states that it depends on and that
 * are not frozen (rondo_state_options), and one update for each, so that a run of the program is a whole training step
 * (FW-4); a gradient needs no zeroing, for each run writes it anew. Without a list, states to which no gradient comes
 * are left as they are, such as the running statistics that a batch_norm of inference is given, or what is used behind
 * rondo_op_stop_gradient alone. rondo_compiled_explain lists what is updated.
 * SGD: p -= rate g; with momentum (Polyak 1964) v = momentum v + g, p -= rate v, where v is the state
 * "<name>.momentum". Adam (Kingma and Ba 2015, algorithm 1, with bias correction) keeps its moments as states
 * "<name>.m", "<name>.v" and its step as the I32 state "adam.step", counted on the device. With a schedule, SGD counts
 * its updates in the I32 state "sgd.step"; the host writes nothing between runs, and updates that are left out
 * (overflow, accumulation) do not count (FW-5, RC-6). Errors as rondo_program_gradients; INVALID_ARGUMENT when the loss
 * has a gradient for no F32 state (NONE), when a rate or momentum is no F32 (TYPE) or no scalar (SHAPE), when there is
 * a rate and a schedule (BAD_OPTIONS) or neither (NULL_ARGUMENT), when a number is out of range (OUT_OF_RANGE), when an
 * entry of the list is no state or not F32 (TYPE), has no gradient (NONE), is frozen (BAD_OPTIONS) or is there twice,
 * DUPLICATE_NAME when a state or output of these names is there; INVALID_STATE when the program has an optimizer
 * already. The program is then as before. */
RONDO_API RONDO_MUST_USE rondo_status rondo_program_sgd(rondo_program *program, rondo_value loss,
                                                        const rondo_sgd_options *options);
RONDO_API RONDO_MUST_USE rondo_status rondo_program_adam(rondo_program *program, rondo_value loss,
                                                         const rondo_adam_options *options);

/* Compiled programs ----------------------------------------------------------------------------------------------- */

/* Whether independent operators become parallel branches of the recorded graph. Values that may be live together then
 * share no memory, which can take more of it. Branches of several widths are tried, the widest first, until one fits.
 * How long that may take is bounded by a budget of steps, not by the clock, and programs of more than 16,384 operators
 * have none: rondo_compiled_info.branches_ended_early and rondo_compiled_explain say so. */
typedef enum rondo_branch_policy {
  RONDO_BRANCHES_AUTO = 0, /* where they take at most a tenth more memory */
  RONDO_BRANCHES_NEVER = 1,
  RONDO_BRANCHES_ALWAYS = 2
} rondo_branch_policy;

/* Whether operators that work element by element are joined into chains: one kernel goes through them for each element,
 * rounding behind each, and only the last result is in memory. The results have the same bits, and the arena's peak
 * (order_peak) does not rise. Joined are unary operators, those of two or three inputs with broadcasting, comparisons,
 * select, cast, expand and dropout, and the gradients of these, where a result is read within its chain alone and is no
 * output. On CUDA a kernel is made of each kind of chain, which is compiled once a machine, as others are.
 *
 * And whether updates of an optimizer, and what is done to gradients before, are joined into few kernels with the same
 * bits: those of small parameters, whose gradients wait for each other, by which order_peak rises by a sixty-fourth at
 * most, and those of large ones where that does not rise. */
typedef enum rondo_fusion_policy {
  RONDO_FUSION_AUTO = 0, /* where the memory allows */
  RONDO_FUSION_NEVER = 1 /* each operator by itself */
} rondo_fusion_policy;

/* How an input's bytes get to its slot, or an output's to the host (<rondo/feed.h>). */
typedef enum rondo_staging {
  RONDO_STAGING_SLOT = 0,  /* they are written to the slot between runs, and read from it */
  RONDO_STAGING_HOST = 1,  /* by a buffer in host memory and a copy in the graph */
  RONDO_STAGING_DEVICE = 2 /* by a buffer in device memory and a copy in the graph; inputs only */
} rondo_staging;

typedef struct rondo_staged_value {
  const char *name; /* of an input, or of an output that an operator computes */
  rondo_staging staging;
} rondo_staged_value;

typedef struct rondo_compile_options {
  uint32_t struct_size;
  rondo_record_policy record; /* what is not recorded runs kernel by kernel */
  rondo_branch_policy branches;
  rondo_fusion_policy fusion;
  rondo_compiled *share;  /* share the memory of this one (see below); NULL: have memory of its own */
  double least_gain;      /* for RONDO_RECORD_WHERE_IT_PAYS, as `least` and */
  uint64_t expected_runs; /* ... `runs` of rondo_gain_pays (<rondo/gain.h>) */
  bool allow_tf32;        /* on CUDA, cuBLASLt and cuDNN may round the factors of F32 products and convolutions to TF32,
                             which has 10 bits of mantissa: quicker on tensor cores, with relative errors of about 2^-11
                             a factor */
  const rondo_staged_value *staged; /* staged_count of them; what is not named is not staged. Read during the call */
  size_t staged_count;
  bool share_states_only; /* share states and cells, and have a stream and arena of its own (see below) */
  rondo_executor_policy executor_policy; /* when un-recorded runs go */
  rondo_executor *executor; /* ... by this one (<rondo/executor.h>), which outlives the program; NULL: in a line */
  bool own_kernels;         /* no library makes convolutions, nor products on CUDA (rondo_library_enumerate) */
} rondo_compile_options;
#define RONDO_COMPILE_OPTIONS_INIT .struct_size = sizeof(rondo_compile_options)

/* Sharing: programs compiled one after the other for a device, such as one for each batch size, or one for training and
 * one for inference, that have states and the arena in common. Each names one of those before it.
 * - States and cells of the same name are the same ones, and keep what they hold; type and shape must be the same too.
 *   Others are added, as zeros or with their initial numbers. All stay until the last of the programs is destroyed, in
 *   whatever order.
 * - The arena is the largest one there is, if it is large enough, else a new one: compile the largest program first.
 *   An arena goes with the last program that uses it.
 * - All use one stream, so their runs come one after another; of all of them together only one thread may call at a
 *   time.
 * - Compiling, writing an input and running overwrite the inputs and outputs of the others. So an input is written
 *   before each run that follows another program's, and an output read before another program is used; where that was
 *   not done, running and reading return INVALID_STATE/OVERWRITTEN. What is launched by rondo_compiled_exec, or copied
 *   to an address, is not seen by this.
 * With share_states_only none of this holds but for the states and cells that are there when it is compiled: those are
 * the same ones. Such programs, and those that share with them in turn, may run at once, from threads of their own, as
 * long as none of them changes a state; a state is written while nothing runs, and rondo_compiled_synchronize of the
 * program it was written by comes before a run of another. Compiling one, and destroying the last program of a stream,
 * needs one thread for all. */

/* Compiles (FW-1): plans the arena, gives every value its fixed address, warms up once (states are as before
 * afterwards), captures a run on a stream of its own, instantiates and uploads. The program may be changed, compiled
 * again or destroyed afterwards. options may be NULL. Waits, but disturbs no capture of another thread. With
 * RONDO_RECORD_WHERE_IT_PAYS it is run some times more and recorded if that is predicted to pay (FW-8); also where the
 * device's costs are not known and cannot be measured, as another thread captures. Errors: INVALID_ARGUMENT (no output
 * and no update; BAD_OPTIONS; OUT_OF_RANGE: least_gain), OUT_OF_MEMORY with the bytes wanted, INVALID_STATE/UNPREPARED
 * (something allocated or made ready while capturing; named, FW-2), UNSUPPORTED/NO_FUNCTION (an operator without a
 * kernel for the device, named). With share: INVALID_ARGUMENT with OTHER_DEVICE, or SHAPE, TYPE or DUPLICATE_NAME for a
 * state that differs; CAPTURE_REFUSED/UNSUPPORTED_CALL while its stream captures, with which the capture goes on; what
 * failed in runs that nobody has waited for. States are then as before. With staged:
 * NOT_FOUND/UNKNOWN_NAME; INVALID_ARGUMENT with NULL_ARGUMENT, DUPLICATE_NAME (a name twice), or BAD_OPTIONS (no such
 * staging, or none for an output; an output that shows an input, state or cell).
 *
 * Matrix products on a CPU device are made on tiles, which never depend on the workers: results have the same bits for
 * any number of them, and recorded or not, but not with another library. On x86-64 oneDNN makes the larger ones when
 * libdnnl.so.2 or libdnnl.so.3 is found, and CBLAS the others when libopenblas.so.0, libcblas.so.3 or libblas.so.3 is;
 * RONDO_ONEDNN_LIBRARY and RONDO_CBLAS_LIBRARY name others, which are then the only ones tried; with
 * RONDO_CBLAS_LIBRARY set its library makes all ("none": plain C). rondo_library_enumerate (<rondo/operators.h>) tells
 * which are used. The same holds for convolutions of F32, which oneDNN 2 makes where it is quicker
 * (RONDO_ONEDNN_LEAST), with workspaces in the program's arena; not with own_kernels. OpenBLAS is told once to use one
 * thread, which holds for all of the process: a program that calls OpenBLAS too, with more threads, sets
 * RONDO_CBLAS_LIBRARY to another build or to "none". Other BLAS libraries are used as they are set: give one that is
 * single-threaded, or tell it to be.
 *
 * While oneDNN before release 3.11.2 computes on x86-64, all signals of the computing thread are blocked but SIGSEGV
 * and SIGBUS, because such a release keeps the stack pointer outside of the stack: handlers run up to one tile later.
 * This includes the threads that wait for a run, which compute meanwhile. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compile(rondo_program *program, rondo_device *device,
                                                    const rondo_compile_options *options,
                                                    rondo_compiled **out_compiled);

/* What became of the exec. */
typedef struct rondo_recompile_result {
  uint32_t struct_size;
  bool updated;        /* in place: the topology is the same; else there is a new one, if it was recorded */
  rondo_reason reason; /* why it was not updated, as rondo_update_result; NONE where there was none to update */
} rondo_recompile_result;

/* Compiles a program in the place of the one that this was compiled from (FW-6): the same with another batch size or
 * other constants, or any other. What the compiled program was told in rondo_compile_options holds on, by the names of
 * staged values. States and cells of the same name, type and shape keep what they hold, new ones start as ever, and
 * those that the program lacks stay for a later one. The arena is used again where it is large enough, else a larger
 * one takes its place. The work is captured anew; where the topology is the same, the exec is updated in place and
 * keeps its handle, else it is instantiated anew. Inputs and outputs are zeros, staged ones too. Waits; disturbs no
 * capture of another thread. For several shapes in turn, compile a program for each, with share. out_result may be
 * NULL. Thread-compatible. Errors: those of rondo_compile with share and staged; INVALID_STATE/STILL_IN_USE (an input
 * is mapped); what failed in runs that nobody has waited for, as rondo_compiled_synchronize. All is then as before, but
 * that inputs and outputs that are not staged may be overwritten (see Sharing). */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_recompile(rondo_compiled *compiled, rondo_program *program,
                                                               rondo_recompile_result *out_result);

/* Waits for its runs. Those that share with it live on. NULL is fine. Errors: what rondo_compiled_synchronize would
 * return; it is gone all the same. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_destroy(rondo_compiled *compiled);

/* Copies between host memory and a named value, ordered behind the runs so far; both return when `data` may be reused.
 * `bytes` must be the value's. write: inputs, states, cells; does not wait for the runs so far unless much is written,
 * or an input is staged: then it is rondo_compiled_feed.
 * read: outputs, states, cells; waits. Errors: NOT_FOUND/UNKNOWN_NAME (lists the names), INVALID_ARGUMENT/BAD_SIZE;
 * CAPTURE_REFUSED/UNSUPPORTED_CALL while its stream captures, with which the capture goes on; and for read
 * INVALID_STATE/OVERWRITTEN (see Sharing) and any asynchronous failure: what rondo_stream_synchronize returns, or
 * EXECUTION_FAILED/OUT_OF_RANGE naming the operator, the index and its position when a run met a wrong index. Kernels
 * leave a wrong index in host memory of the program's, and read, synchronize and destroy look at it after waiting
 * (rondo_stream_synchronize alone does not); it is told once. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_write(rondo_compiled *compiled, const char *name, const void *data,
                                                           size_t bytes);
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_read(rondo_compiled *compiled, const char *name, void *data,
                                                          size_t bytes);

/* Queues a run: one launch when recorded, kernel by kernel when not. Does not wait. Errors: as rondo_exec_launch, or as
 * rondo_launch when not recorded; INVALID_STATE/OVERWRITTEN (see Sharing). Thread-compatible.
 *
 * A run that meets a wrong index fails as a whole: it changes no state, so weights, moments, counters, running means,
 * caches and the random numbers' position are bit for bit what they were before it. What it writes into outputs is not
 * defined. Runs that were queued before and behind it count as if it had not been there. The failure is told by the
 * next call that waits; several failed runs before it are told as one. This does not cover a call that fails to queue a
 * run, or a lost device: then part of the run may have changed states. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_run(rondo_compiled *compiled);

/* Queues a run kernel by kernel even when recorded; same arena, same addresses, same results bit for bit (FW-9). Where
 * it goes by an executor, it returns when the last operator has been queued, on a CPU device when the last expensive
 * one has been computed. Errors: as rondo_launch, the first failure of an operator; those that were under way are over
 * then, or come before whatever is queued next; INVALID_STATE/OVERWRITTEN (see Sharing). Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_run_unrecorded(rondo_compiled *compiled);

/* Waits for all queued. Errors: any asynchronous failure, as rondo_compiled_read. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_synchronize(rondo_compiled *compiled);

/* What belongs to it, until it is recompiled: its stream (of all that share), the graph that was recorded and its exec
 * (NULL when not). Do not destroy them; they go with it. NULL for NULL. Thread-safe. */
RONDO_API rondo_stream *rondo_compiled_stream(const rondo_compiled *compiled);
RONDO_API rondo_graph *rondo_compiled_graph(const rondo_compiled *compiled);
RONDO_API rondo_exec *rondo_compiled_exec(const rondo_compiled *compiled);

/* Why runs go kernel by kernel. */
typedef enum rondo_unrecorded {
  RONDO_UNRECORDED_NONE = 0,   /* they do not */
  RONDO_UNRECORDED_ASKED = 1,  /* RONDO_RECORD_NEVER */
  RONDO_UNRECORDED_NO_GAIN = 2 /* RONDO_RECORD_WHERE_IT_PAYS, and it does not */
} rondo_unrecorded;

/* Why these go in a line on one stream. */
typedef enum rondo_unexecuted {
  RONDO_UNEXECUTED_NONE = 0,      /* they do not: they go by the executor */
  RONDO_UNEXECUTED_NOT_ASKED = 1, /* no executor was given */
  RONDO_UNEXECUTED_SLOWER = 2,    /* RONDO_EXECUTOR_WHERE_FASTER, and it was not */
  RONDO_UNEXECUTED_LINE = 3,      /* likewise: operators depend on each other in one line, and nothing is staged */
  RONDO_UNEXECUTED_BUSY = 4       /* likewise: the executor had other runs when the two were to be compared */
} rondo_unexecuted;

typedef struct rondo_compiled_info {
  uint32_t struct_size;
  uint32_t kernels;        /* kernels of one run; those of libraries when it was recorded */
  uint64_t parameters;     /* elements of all states that an optimizer updates (or of all states when none does) */
  uint64_t state_bytes;    /* states, cells and constants: live for ever */
  uint64_t arena_bytes;    /* planned: intermediate values (inputs, outputs, activations, gradients), each rounded up to
                              256 bytes, here and below */
  uint64_t lower_bound;    /* most bytes of intermediate values live at once, in the order, or with branches in any */
  uint64_t sum_bytes;      /* what they would take without sharing */
  uint64_t order_peak;     /* most bytes of results and workspaces live at once in the order that was chosen, */
  uint64_t program_peak;   /* and in the order in which operators were added, updates last */
  uint64_t straight_bytes; /* arena_bytes without branches */
  uint32_t operators;      /* that run, a chain of them being one */
  uint32_t dependencies;   /* between them, without those that others imply */
  bool has_branches;       /* the recorded graph has those dependencies, and is not one line */
  uint64_t shared_bytes;   /* of state_bytes and arena_bytes, what was there already when it was compiled to share it */
  rondo_unrecorded unrecorded; /* why there is no recorded graph */
  uint32_t nodes;              /* of the recorded graph; 0: there is none */
  uint64_t branch_bytes;       /* arena_bytes with branches, the narrowest that were tried, or where that is too much
                                  anyhow, a lower bound of it; 0: none were */
  uint32_t chains;             /* of operators joined into one kernel (rondo_fusion_policy), */
  uint32_t joined;             /* operators in them, */
  uint32_t chain_kernels;      /* and kernels made for them: chains alike, also of those that share memory, have one */
  uint64_t staging_host_bytes; /* buffers of staged values, beside the arena */
  uint64_t staging_device_bytes;
  uint64_t captures;       /* so far: at compilation and at each rondo_compiled_recompile that was recorded; of them */
  uint64_t updates;        /* ... those that updated the exec in place, */
  uint64_t instantiations; /* ... and those that made a new one */
  rondo_unexecuted unexecuted; /* why un-recorded runs go in a line; with an executor: */
  uint32_t expensive;          /* nodes of a run that are expensive, */
  double line_us, executor_us; /* the least that a run took until it was done, both ways, when it was compiled; 0: not
                                  measured */
  uint64_t host_bytes; /* host memory that the device reaches, pinned on CUDA: staging_host_bytes, that through which
                          writes go, and 8 bytes for each operator that looks for wrong indices */
  bool branches_ended_early; /* there are no branches, and not all widths of them were tried: there are more than 16,384
                                operators, or the search for their memory used up its budget (rondo_branch_policy) */
} rondo_compiled_info;

/* Its sizes, fixed when it was compiled or recompiled. Thread-safe while it is not recompiled. Errors:
 * INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_get_info(const rondo_compiled *compiled,
                                                              rondo_compiled_info *out_info);

/* Measures what recording gains: runs both ways, `repeats` times each as rondo_gain_measure, on what is in memory,
 * which is afterwards as it was before: states do not train on. Un-recorded runs are measured in a line. What is not
 * recorded is predicted. The device must have memory for a copy of states and arena. Waits. out_gain may be NULL.
 * Thread-compatible. Errors: as rondo_gain_measure; OUT_OF_MEMORY with the bytes wanted; INVALID_STATE/STILL_IN_USE (an
 * input is mapped); what rondo_exec_launch returns. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_measure(rondo_compiled *compiled, uint32_t repeats,
                                                             rondo_gain *out_gain);

/* What is known of that: as rondo_compiled_measure found it last, or as it was predicted for
 * RONDO_RECORD_WHERE_IT_PAYS. Errors: INVALID_ARGUMENT; INVALID_STATE (neither). Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_get_gain(const rondo_compiled *compiled, rondo_gain *out_gain);

/* All that is known of how it runs, as a text, which is freed with rondo_text_free (<rondo/allocator.h>): what is
 * recorded, what is not and why, what that gains (rondo_compiled_get_gain), and what would raise it. Nothing is run.
 * Texts have a line or more for each, for people. JSON, in this order; later versions add fields behind those of an
 * object and nothing else:
 *   {"rondo_compiled":1, "name":"", "device":"cpu:0", "recorded":true, "policy":"always", "reason":null, "message":"",
 *    "kernels":12, "operators":10, "nodes":12, "dependencies":11, "branches":"none", "arena_bytes":4096,
 *    "branch_bytes":0, "state_bytes":1024, "inputs":2, "input_bytes":512,
 *    "staged_inputs":0,
 *    "gain":{"works":12, "host_us":4.1, "device_us":20.5, "total_us":22.3, "recorded_host_us":0.2,
 *      "recorded_total_us":15.2, "record_us":180.0, "host_gain":20.5, "total_gain":1.47, "runs_to_repay":26,
 *      "is_measured":true},
 *    "advice":[{"kind":"JOIN_WORKS", "message":"..."}],
 *    "executor":{"used":false, "reason":"SLOWER", "expensive":3, "line_us":20.5, "executor_us":24.1},
 *    "memory":{"lower_bound":4096, "straight_bytes":4096, "order_peak":3072, "program_peak":5120},
 *    "updates":[{"optimizer":"adam", "states":["w", "b"]}]}
 * The policy is "always", "never" or "where it pays"; the reason ASKED or NO_GAIN (rondo_unrecorded), null when it is
 * recorded; the message says it in words. Branches are "taken", "none", "refused" (RONDO_BRANCHES_NEVER), "memory"
 * (they would need branch_bytes or more) or "budget" (not all were tried: branches_ended_early). Inputs are those that
 * are not staged. The gain is null while it is not known. Advice is of the kinds MEASURE, RECORD, LARGER_PIECE,
 * JOIN_WORKS, WORK_BOUND, BRANCHES and INPUTS. The executor is null when none was given; its reason is SLOWER, LINE or
 * BUSY (rondo_unexecuted), null when it is used. The memory's are those of rondo_compiled_info. Updates list the states
 * that each optimizer ("adam", "sgd" or "sgd_momentum") trains, without its moments and counters; a text names eight at
 * most. Errors: INVALID_ARGUMENT (NULL, another format), OUT_OF_MEMORY. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_explain(const rondo_compiled *compiled,
                                                             rondo_explain_format format, char **out_text);

/* A named value of a compiled program. */
typedef struct rondo_compiled_value {
  uint32_t struct_size;
  char kind; /* 's' state, 'c' cell, 'i' input, 'o' output */
  rondo_type type;
  const char *name; /* the compiled program's own */
  size_t rank, shape[RONDO_MAX_DIMENSIONS];
  size_t bytes;
  void *address; /* fixed; device memory. Where it is staged, the buffer's: host memory with RONDO_STAGING_HOST */
  rondo_staging staging;
} rondo_compiled_value;

/* The named value at the index: states first, then cells, inputs, outputs. Thread-safe. Errors: NOT_FOUND past the
 * last, INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_get_value(const rondo_compiled *compiled, size_t index,
                                                               rondo_compiled_value *out_value);

RONDO_EXTERN_C_END

#endif

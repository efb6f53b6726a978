/* SPDX-License-Identifier: MIT
 * Programs: networks that are written as operators (<rondo/operators.h>) on tensors, differentiated, compiled into one
 * arena with fixed addresses, and run eagerly or as one recorded graph.
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
 * A run first computes the operators, each from the states as they were before the run. Then it applies the updates of
 * states (optimizers, assignments), in the order in which they were added. Operators whose results are not needed by an
 * output or an update do not run; of several operators that compute the same value, one runs. Within these rules the
 * order is chosen so that little memory is live at once, and independent operators may run in parallel.
 *
 * A program is thread-compatible and needs no device. A compiled program is thread-compatible; it owns a stream.
 *
 * Component: rondo-tensor.
 */
#ifndef RONDO_PROGRAM_H
#define RONDO_PROGRAM_H

#include <rondo/exec.h>
#include <rondo/executor.h>
#include <rondo/gain.h>
#include <rondo/report.h>
#include <rondo/type.h>

RONDO_EXTERN_C_BEGIN

#define RONDO_MAX_DIMENSIONS 6

typedef struct rondo_program rondo_program;
typedef struct rondo_compiled rondo_compiled;

/* A handle of a value of a program: a tensor that exists while the program runs. The zero value is no value. Handles of
 * another program are detected and refused. */
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

/* Creates an empty program. options may be NULL. The caller destroys it. Thread-safe. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_program_create(const rondo_program_options *options,
                                                           rondo_program **out_program);
/* Destroys a program. Compiled programs that were created from it live on. NULL is fine. */
RONDO_API void rondo_program_destroy(rondo_program *program);

/* Named values. Names are copied, not empty, and unique among inputs, states, cells and outputs. Shapes have 0 to
 * RONDO_MAX_DIMENSIONS dimensions, each at least 1; rank 0 is a scalar. Errors of all: INVALID_ARGUMENT with SHAPE,
 * TYPE, DUPLICATE_NAME, NULL_ARGUMENT (no name), UNKNOWN_NAME (a value of another program); LIMIT_EXCEEDED (bytes do
 * not fit); OUT_OF_MEMORY.
 *   input:  written by the caller before runs, at a fixed address (its slot). Initially zeros.
 *   state:  kept from run to run: weights, moments. Initially zeros; rondo_compiled_write sets it.
 *   cell:   a scalar of type F32 in device memory that the caller may change between runs of the same graph: learning
 *           rate, momentum (FW-5). Initially `initial`.
 *   output: a value that can be read after a run. For a state or cell, its current value; for a reshaped state or cell,
 *           its value in the run. Zeros before the first run. */
RONDO_API RONDO_MUST_USE rondo_status rondo_program_input(rondo_program *program, const char *name, rondo_type type,
                                                          const size_t *shape, size_t rank, rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_program_state(rondo_program *program, const char *name, rondo_type type,
                                                          const size_t *shape, size_t rank, rondo_value *out_value);

/* A state with options. No optimizer updates a frozen state, for example a table of constants (the cosines of rotary
 * positions) or weights that should not be trained. Other states of type F32 are trained if a loss depends on them.
 * rondo_program_gradients gives gradients of both. options may be NULL.
 *
 * sparse (PyTorch: nn.Embedding(sparse=True)): a table of type F32, [rows, columns]. An optimizer updates the rows
 * alone that the run's look-ups read, so a step costs what these touch, not the table (PR-7). rondo_program_sgd without
 * momentum, _adagrad and _adam can: Adam is lazy, so moments of other rows are not decayed, as in PyTorch's SparseAdam.
 * Rows that are read several times get the sum of their gradients, in the order of the indices, with the same bits for
 * any number of workers. Clipping and scaled losses work as usual. Weight decay is refused, and so is training if
 * anything but embedding and embedding_bag reads the table. The option concerns optimizers only: gradients of
 * rondo_program_gradients are whole. In a data-parallel program it takes effect with shard_rows; without it, ranks
 * reduce whole gradients.
 *
 * Accumulation (rondo_gradient_options.accumulate) keeps the gradients of the rows that each run touched, and the
 * update changes all of these rows: with SGD and Adagrad, with the bits of accumulated dense gradients. The gradients
 * are in "<name>.accumulated", F32, [accumulate * indices, columns], and their rows in "<name>.accumulated_rows", I64;
 * -1: none. Checkpoints have both within a round only, because each round begins without any. `indices` is max_indices:
 * how many indices the look-ups of one run have at most. 0: as many as those of this program. Programs of different
 * batch sizes that share the states need the same max_indices. Of a table whose rows are divided between ranks
 * (shard_rows), max_indices are those of one rank, and each rank has slots for what it gets from all of them
 * (<rondo/data_parallel.h>, Accumulation).
 *
 * shard_rows: the ranks of a data-parallel program divide the rows of the table between them (MM-3;
 * <rondo/data_parallel.h>, Tables). Each look-up sends at most capacity_factor * n / ranks of a rank's n indices to one
 * owner; 0: any number.
 *
 * Errors as above; INVALID_ARGUMENT with BAD_OPTIONS; for sparse SHAPE (not 2 dimensions), TYPE (not F32); for
 * shard_rows SHAPE (not 2 dimensions), TYPE (not a float), OUT_OF_RANGE (capacity_factor is negative); INVALID_STATE
 * (the program is not data-parallel yet). */
typedef struct rondo_state_options {
  uint32_t struct_size;
  bool frozen;
  bool shard_rows;
  bool sparse;
  float capacity_factor;
  size_t max_indices;
} rondo_state_options;
#define RONDO_STATE_OPTIONS_INIT .struct_size = sizeof(rondo_state_options)
RONDO_API RONDO_MUST_USE rondo_status rondo_program_state_with(rondo_program *program, const char *name,
                                                               rondo_type type, const size_t *shape, size_t rank,
                                                               const rondo_state_options *options,
                                                               rondo_value *out_value);

RONDO_API RONDO_MUST_USE rondo_status rondo_program_cell(rondo_program *program, const char *name, float initial,
                                                         rondo_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_program_output(rondo_program *program, const char *name, rondo_value value);

/* Returns the type and shape of a value; out_shape must hold RONDO_MAX_DIMENSIONS entries. Errors: INVALID_ARGUMENT
 * with NULL_ARGUMENT, UNKNOWN_NAME (a value of another program). Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_value_shape(const rondo_program *program, rondo_value value,
                                                        rondo_type *out_type, size_t *out_shape, size_t *out_rank);

/* Reverse-mode differentiation (Griewank and Walther, Evaluating Derivatives, 2nd ed., 2008, chapter 3): adds the
 * operators that compute the gradient of the scalar `loss`, F32, with respect to each of `count` values of a float
 * type, in the array out_gradients. A gradient has the type of its value. If a value has several readers, its gradient
 * is the sum of the gradients from each, computed in F32 and rounded to the type at each addition. Readers of parts of
 * a value (slices, splits, gathers and embeddings of up to 64 picks) add to one tensor in place, so the cost grows with
 * the elements that they read, not with the number of readers times the size of the value. Values that are computed in
 * the same way count as one: if each step of a loop computes a value again, gradients pass through it only once. A
 * value that the loss does not depend on gets a gradient of zeros. Errors: INVALID_ARGUMENT with SHAPE (loss is not a
 * scalar), TYPE, UNKNOWN_NAME; UNSUPPORTED (an operator on the path has no gradient; it is named; gradients themselves
 * have none); OUT_OF_MEMORY. After an error the program is unchanged. */
RONDO_API RONDO_MUST_USE rondo_status rondo_program_gradients(rondo_program *program, rondo_value loss,
                                                              const rondo_value *values, size_t count,
                                                              rondo_value *out_gradients);

/* What happens to gradients before an optimizer uses them, on the device and in the same graph. Zero: nothing.
 *
 * - accumulate: this many runs make one update, with the mean of their gradients, which are summed in states
 *   "<name>.accumulated"; 0 means 1. The state "gradient.runs", I32, counts the runs since the last update.
 * - max_norm: if the norm of all gradients together is larger than max_norm, all gradients are multiplied by max_norm /
 *   (norm + 1e-6) (Pascanu, Mikolov and Bengio 2013). 0: no clipping.
 * - scale_loss: for losses computed with F16. The loss is multiplied by the state "gradient.scale", F32, before
 *   gradients are computed, and the optimizer divides the gradients by it. If they are not all finite, the update is
 *   skipped and the scale is halved, down to 2^-126. After growth_interval (0: 2000) updates, counted in the state
 *   "gradient.good_updates", I32, the scale is doubled, up to 2^126. Initially it is initial_scale (0: 65536).
 *   Micikevicius et al. 2018, with the numbers of PyTorch's GradScaler.
 * - norm_output: the name of an output with the norm of all gradients together, before clipping; NULL: none.
 *
 * With max_norm, scale_loss or norm_output, an update is skipped if its gradients are not all finite. The test is
 * the sum of the squares of the scaled gradients, in F32, over all accumulated runs. If this sum is infinite,
 * as for a norm above 2^64, the gradients count as not finite, and the norm as infinite. Below 2^-75 it may be 0. */
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

/* The learning rate of each update of an optimizer. s is the number of updates so far, t = s - warm_up. The rate of the
 * first warm_up updates rises linearly: rate (s + 1) / warm_up. Then:
 *
 * - CONSTANT: rate
 * - LINEAR: linearly from rate to `last` over `period` updates, then `last` (PyTorch: LinearLR)
 * - COSINE: last + (rate - last) (1 + cos(pi t / period)) / 2, then `last`; with `restarts`, from rate again after each
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
  const char *output; /* the name of an output with the rate of the run; copied; NULL: none */
} rondo_rate_options;
#define RONDO_RATE_OPTIONS_INIT .struct_size = sizeof(rondo_rate_options)

/* Returns the rate of the update after `updates` others. CPU devices compute the same bits; CUDA may differ in the last
 * bit. Thread-safe. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, OUT_OF_RANGE (naming the number), BAD_OPTIONS. */
RONDO_API RONDO_MUST_USE rondo_status rondo_rate_at(const rondo_rate_options *options, uint64_t updates,
                                                    float *out_rate);

/* Trained states whose options differ from the optimizer's own, as PyTorch's parameter groups (PR-1). Zero: the
 * optimizer's. Arrays and values are read during the call.
 *
 * - learning_rate, schedule: the rate. Schedules count the same updates.
 * - weight_decay applies to all states of the group, also to those of fewer dimensions than decay_dimensions;
 *   no_decay: none.
 * - max_norm: the norm of the group's gradients alone is clipped. The max_norm of rondo_gradient_options then concerns
 *   the other states alone. */
typedef struct rondo_parameter_group {
  const rondo_value *states; /* state_count states, at least one; none is in another list or group */
  size_t state_count;
  rondo_value learning_rate;
  const rondo_rate_options *schedule;
  float weight_decay;
  float max_norm;
  bool no_decay;
} rondo_parameter_group;

typedef struct rondo_sgd_options {
  uint32_t struct_size;
  float weight_decay;                      /* times the parameter, added to its gradient; at least 0 */
  rondo_value learning_rate;               /* a scalar F32, such as a cell; no value with a schedule */
  rondo_value momentum;                    /* likewise; no value: no momentum */
  const rondo_gradient_options *gradients; /* may be NULL */
  const rondo_rate_options *schedule;      /* computes the rate on the device; NULL: the rate is learning_rate */
  const rondo_value *states; /* state_count states to train, in any order; read during the call. NULL: all F32 states
                                that are not frozen and that the loss depends on. States of groups are trained too */
  size_t state_count;
  uint32_t decay_dimensions; /* weight_decay applies to states of at least so many dimensions: 2 leaves out biases and
                                the parameters of norms; 0: to all */
  const rondo_parameter_group *groups; /* group_count groups */
  size_t group_count;
} rondo_sgd_options;
#define RONDO_SGD_OPTIONS_INIT .struct_size = sizeof(rondo_sgd_options)

typedef struct rondo_adam_options {
  uint32_t struct_size;
  float beta1, beta2, epsilon; /* 0 = 0.9, 0.999, 1e-8; for a beta of 0, give FLT_MIN, which has the same effect */
  rondo_value learning_rate;   /* a scalar F32, such as a cell; no value with a schedule */
  float weight_decay; /* an update subtracts rate * weight_decay * p (AdamW: Loshchilov and Hutter 2019); 0: none */
  uint32_t decay_dimensions; /* this and the rest as in rondo_sgd_options */
  const rondo_gradient_options *gradients;
  const rondo_rate_options *schedule;
  const rondo_value *states;
  size_t state_count;
  const rondo_parameter_group *groups;
  size_t group_count;
} rondo_adam_options;
#define RONDO_ADAM_OPTIONS_INIT .struct_size = sizeof(rondo_adam_options)

typedef struct rondo_adagrad_options {
  uint32_t struct_size;
  float epsilon;      /* 0 = 1e-10 */
  float rate_decay;   /* the rate is divided by 1 + rate_decay * (the number of updates before); PyTorch: lr_decay */
  float initial_sum;  /* of squares; PyTorch: initial_accumulator_value */
  float weight_decay; /* this and the rest as in rondo_sgd_options */
  uint32_t decay_dimensions;
  rondo_value learning_rate;
  const rondo_gradient_options *gradients;
  const rondo_rate_options *schedule;
  const rondo_value *states;
  size_t state_count;
  const rondo_parameter_group *groups;
  size_t group_count;
} rondo_adagrad_options;
#define RONDO_ADAGRAD_OPTIONS_INIT .struct_size = sizeof(rondo_adagrad_options)

typedef struct rondo_rmsprop_options {
  uint32_t struct_size;
  float alpha, epsilon; /* 0 = 0.99, 1e-8 */
  bool centered;        /* divide by the standard deviation of the gradient: subtract the square of its mean */
  float weight_decay;   /* this and the rest as in rondo_sgd_options */
  uint32_t decay_dimensions;
  rondo_value learning_rate;
  rondo_value momentum;
  const rondo_gradient_options *gradients;
  const rondo_rate_options *schedule;
  const rondo_value *states;
  size_t state_count;
  const rondo_parameter_group *groups;
  size_t group_count;
} rondo_rmsprop_options;
#define RONDO_RMSPROP_OPTIONS_INIT .struct_size = sizeof(rondo_rmsprop_options)

/* Adds the gradients of `loss` and one update for each trained state, so that a run of the program is a whole training
 * step (FW-4). The trained states are those that the options and their groups list, or otherwise all F32 states that
 * the loss depends on and that are not frozen (rondo_state_options). Gradients need no zeroing, because each run writes
 * them again. Without a list, states that get no gradient do not change, for example the running statistics of a
 * batch_norm in inference, or states that are only used through rondo_op_stop_gradient. rondo_compiled_explain lists
 * what is updated.
 *
 * SGD: p -= rate g; with momentum (Polyak 1964) v = momentum v + g, p -= rate v, where v is the state
 * "<name>.momentum". Adam (Kingma and Ba 2015, algorithm 1, with bias correction) keeps its moments as states
 * "<name>.m", "<name>.v" and its step as the I32 state "adam.step", counted on the device. With a schedule, SGD counts
 * its updates in the I32 state "sgd.step". The host writes nothing between runs. Skipped updates (overflow,
 * accumulation) do not count (FW-5, RC-6).
 *
 * Adagrad (Duchi, Hazan and Singer 2011): s += g g, p -= rate g / (sqrt(s) + epsilon), where s is the state
 * "<name>.sum". RMSprop (Tieleman and Hinton 2012): s = alpha s + (1 - alpha) g g, p -= rate g / (sqrt(s) + epsilon),
 * where s is "<name>.square". centered: the root is of s - m m, at least 0, where m = alpha m + (1 - alpha) g is
 * "<name>.mean". With momentum v = momentum v + g / (..), p -= rate v, where v is "<name>.momentum". Both add
 * weight_decay p to g before. Updates are counted in "adagrad.step" and "rmsprop.step" where a rate depends on them.
 * These are PyTorch's definitions.
 *
 * Errors as rondo_program_gradients. INVALID_ARGUMENT: no F32 state has a gradient of the loss (NONE); a rate or
 * momentum is not F32 (TYPE) or not a scalar (SHAPE); there is both a rate and a schedule (BAD_OPTIONS) or neither
 * (NULL_ARGUMENT); a number is out of range (OUT_OF_RANGE); an entry of the list is not a state or not F32 (TYPE), has
 * no gradient (NONE), is frozen or is assigned (BAD_OPTIONS); the list or a group is empty, or a group has both a
 * weight_decay and no_decay (BAD_OPTIONS); an entry is in lists or groups twice, or a state or output of these names
 * exists (DUPLICATE_NAME); a sparse state does not fit the options (BAD_OPTIONS). UNSUPPORTED: something else than
 * look-ups reads a sparse state. INVALID_STATE: the program already has an optimizer. After an error the program is
 * unchanged. */
RONDO_API RONDO_MUST_USE rondo_status rondo_program_sgd(rondo_program *program, rondo_value loss,
                                                        const rondo_sgd_options *options);
RONDO_API RONDO_MUST_USE rondo_status rondo_program_adam(rondo_program *program, rondo_value loss,
                                                         const rondo_adam_options *options);
RONDO_API RONDO_MUST_USE rondo_status rondo_program_adagrad(rondo_program *program, rondo_value loss,
                                                            const rondo_adagrad_options *options);
RONDO_API RONDO_MUST_USE rondo_status rondo_program_rmsprop(rondo_program *program, rondo_value loss,
                                                            const rondo_rmsprop_options *options);

/* At the end of a run, `state` becomes `value`, which has its type and shape (PR-3): moving averages, optimizers of the
 * program's own (with rondo_program_gradients), the memory of a network that reads a stream. For a moving average of
 * weights:
 *
 *   TRY(rondo_op_scale(program, average, 0.999f, &kept));
 *   TRY(rondo_op_scale(program, weights, 0.001f, &part));
 *   TRY(rondo_op_add(program, kept, part, &sum));
 *   TRY(rondo_program_assign(program, average, sum));
 *
 * An assignment is an update: all operators and all other assignments read the states as they were before the run, so
 * two states may exchange their values, and the average above is one of weights before each run. A run that fails
 * changes nothing. A state is changed in one way: by one assignment, by the optimizer, or by an operator (the running
 * statistics of batch_norm, the caches of attention). Optimizers would train an F32 state on which the loss
 * depends, so declare it as frozen or list the states to train.
 *
 * In a data-parallel program each rank assigns its own value. The states stay the same on all ranks if the values are
 * computed from states alone; a value computed from a rank's part of the batch is that rank's.
 *
 * Errors: INVALID_ARGUMENT with TYPE (not a state; other types), SHAPE, NULL_ARGUMENT, UNKNOWN_NAME, BAD_OPTIONS (a
 * table with shard_rows); INVALID_STATE (it is changed already); OUT_OF_MEMORY. After an error the program is
 * unchanged. Later calls that would change the state return INVALID_ARGUMENT with BAD_OPTIONS. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_program_assign(rondo_program *program, rondo_value state,
                                                           rondo_value value);

/* Compiled programs ----------------------------------------------------------------------------------------------- */

/* Whether independent operators become parallel branches of the recorded graph. Values that may then be live at the
 * same time share no memory, which can take more of it. Branches of several widths are tried, the widest first, until
 * one fits. A budget of steps (not of time) limits how long that takes, and programs of more than 16,384 operators have
 * no branches: rondo_compiled_info.branches_ended_early and rondo_compiled_explain report both. */
typedef enum rondo_branch_policy {
  RONDO_BRANCHES_AUTO = 0, /* if they take at most 10 % more memory */
  RONDO_BRANCHES_NEVER = 1,
  RONDO_BRANCHES_ALWAYS = 2
} rondo_branch_policy;

/* Whether element-wise operators are fused into chains. One kernel executes the whole chain for each element, rounding
 * after each operator, and writes only the last result to memory. The results have the same bits, and the arena's peak
 * (order_peak) does not rise. The following are fused, if their result is only read within the chain and is not
 * an output: unary operators, operators of two or three inputs with broadcasting, comparisons, select, cast, expand,
 * dropout, and the gradients of these. On CUDA, a kernel is generated for each kind of chain, and compiled once on a
 * machine like other kernels.
 *
 * The policy also says whether updates of an optimizer, and the operations on gradients before them, are combined into
 * few kernels with the same bits: updates of small parameters, whose gradients then wait for each other, if order_peak
 * rises by at most 1/64; and updates of large parameters if it does not rise. */
typedef enum rondo_fusion_policy {
  RONDO_FUSION_AUTO = 0, /* if memory allows */
  RONDO_FUSION_NEVER = 1 /* each operator has its own kernel */
} rondo_fusion_policy;

/* Patterns: operators that together compute what one operator computes faster. Exporters and programs written by hand
 * spell many of them out. Compiling replaces them in its own copy of the program, if nothing else reads the values
 * inside them: no other operator, no gradient, no output. RONDO_FUSION_NEVER replaces none,
 * rondo_compile_options.without_patterns leaves some out, rondo_compiled_explain lists how often each was replaced.
 * Programs with an optimizer and data-parallel programs keep their operators, and so does a CUDA device where they are
 * as fast: biases and activations of convolutions.
 *
 *   attention   softmax(scale q k' + mask) v, with or without scale and additive mask (or a select of one number):
 *               rondo_op_attention
 *   attention_layout  permutes of q, of both k and v, or of the result of rondo_op_attention, between [b, h, t, d] and
 *               [b, t, h, d], as products have it: the operator reads and writes either
 *   layer_norm  (x - mean) / sqrt(variance + epsilon), with or without scale and shift: rondo_op_layer_norm
 *   rms_norm    x / sqrt(mean of x^2 + epsilon), with or without scale: rondo_op_rms_norm
 *   rotary      cosines and sines times the halves of x [b, n, t, d], F32, as rondo_op_rotary, or as Llama does it:
 *               x cos(a) + concat(-x2, x1) sin(a), a = concat(f, f)
 *   gelu        x (1 + erf(x / sqrt(2))) / 2, and the form with tanh: rondo_op_gelu
 *   silu        x sigmoid(x): rondo_op_silu
 *   bias        a sum of a product or convolution and one number for each column or channel: their bias
 *   activation  relu, gelu or silu of a product or convolution: computed with it
 *   batch_norm  a batch_norm in inference of a convolution with fewer weights than results: a convolution with scaled
 *               weights
 *   attention_mask  on CUDA, a BOOL mask of rondo_op_attention of 16 bits, or one that is broadcast to rows of q:
 *               numbers of q's type for each row, which layers with the same mask share
 *   add_layer_norm  on CUDA, a layer_norm of a sum of two values of one shape: rondo_op_add_layer_norm
 *   quantized   on a CPU, a matmul or conv of dequantize_linear of x and of a state, with bias and relu, and with a
 *               quantize_linear after it: rondo_op_matmul_integer or rondo_op_conv_integer; a quantize_linear of a sum
 *               of two dequantize_linear: rondo_op_add_integer. The scales of x, the sum and the result are numbers;
 *               that of the state may have an element for each column or output channel
 *   blocked_images  images [n, c, h, w] of F32 between convolutions by oneDNN on a CPU become [n, c / b, h, w, b], the
 *               layout in which it computes, where c is a multiple of b: 8 with AVX2; c, which may be any number, with
 *               AVX-512. On CUDA, images of 16 bits between convolutions by cuDNN become [n, h, w, c], where c is a
 *               multiple of 8, and a convolution is computed with the sum and the relu after it. Element-wise
 * operators, pooling, batch_norm in inference (F32 only), concatenation of channels and reductions over h and w between
 * them work on it, and with AVX-512 transposed convolutions whose windows do not overlap. On a CPU, images of I8 or U8
 * between conv_integer of one group become [n, 1, h, w, c], with add_integer, maxima and concatenations of them. Not in
 * programs with gradients. Counts the convolutions
 *
 * Numbers such as epsilon are found if they are in the program: of rondo_op_scale, rondo_op_add_constant and
 * rondo_op_full, and scalars of ONNX files. Results differ in rounding only: in F32 by at most 1e-5 of the largest
 * element of the same row, and a quantised result by a step. A row of attention whose mask hides all keys by -infinity
 * becomes zeros, not NaN; a row that sees a NaN of q or k is NaN, even if the program puts zeros in place of NaN after
 * the softmax. Messages name the operator that ends the pattern. */

/* How an input is written to its slot, and how an output is read (<rondo/feed.h>). */
typedef enum rondo_staging {
  RONDO_STAGING_SLOT = 0,  /* written to the slot, or read from it, between runs */
  RONDO_STAGING_HOST = 1,  /* through a buffer in host memory and a copy in the graph */
  RONDO_STAGING_DEVICE = 2 /* through a buffer in device memory and a copy in the graph; inputs only */
} rondo_staging;

typedef struct rondo_staged_value {
  const char *name; /* of an input, or of an output that an operator computes */
  rondo_staging staging;
} rondo_staged_value;

typedef struct rondo_compile_options {
  uint32_t struct_size;
  rondo_record_policy record; /* without a recording, the program runs eagerly */
  rondo_branch_policy branches;
  rondo_fusion_policy fusion;
  rondo_compiled *share;  /* share the memory of this program (see below); NULL: its own memory */
  double least_gain;      /* for RONDO_RECORD_AUTO: `least` of rondo_gain_pays (<rondo/gain.h>) */
  uint64_t expected_runs; /* likewise: `runs` */
  bool allow_tf32;        /* on CUDA, cuBLASLt and cuDNN may round the factors of F32 products and convolutions to TF32,
                             which has 10 bits of mantissa: faster on tensor cores, with relative errors of about 2^-11
                             per factor */
  const rondo_staged_value *staged; /* staged_count entries; other values are not staged. Read during the call */
  size_t staged_count;
  bool share_states_only;                /* share states and cells, but have its own stream and arena (see below) */
  rondo_executor_policy executor_policy; /* when eager runs use `executor` */
  rondo_executor *executor; /* <rondo/executor.h>; must outlive the program; NULL: operators run one after the other */
  bool own_kernels;         /* use no library for convolutions, nor for products on CUDA (rondo_library_enumerate) */
  rondo_stream *stream;     /* the program runs on this stream of the caller's, such as one that was adopted
                               (rondo_stream_adopt), in order with its other work. It must outlive the program. NULL: on a
                               stream of its own (see Streams) */
  const char *without_patterns; /* names of patterns that are not replaced (see Patterns), separated by commas, as in
                                   "gelu,bias"; "all"; NULL: all are replaced. Read during the call */
  bool plain_states;            /* no state is packed, so all have a fixed address (see Packed states) */
} rondo_compile_options;
#define RONDO_COMPILE_OPTIONS_INIT .struct_size = sizeof(rondo_compile_options)

/* Sharing: several programs for one device, for example one for each batch size, or one for training and one for
 * inference, can share states and the arena. They are compiled one after the other, and each names an earlier one.
 * - States and cells of the same name are the same memory, and keep their contents; type and shape must be the same
 *   too. Others are added, as zeros or with their initial values. All of them exist until the last of the programs is
 *   destroyed. Programs may be destroyed in any order.
 * - A program uses the largest existing arena if it is large enough, otherwise a new one: compile the largest program
 *   first. An arena is freed with the last program that uses it.
 * - All use one stream, so their runs execute one after the other. Only one thread at a time may call any of them.
 * - Compiling, writing an input and running overwrite the inputs and outputs of the other programs. So write an input
 *   before each run that follows another program's run, and read an output before you use another program. Otherwise
 *   running and reading return INVALID_STATE/OVERWRITTEN. Launches of rondo_compiled_exec, and copies to an address,
 *   are not detected.
 * With share_states_only, programs share only the states and cells that exist when they are compiled. Such programs,
 * and those that share with them in turn, may run at the same time, on different threads, as long as none of them
 * changes a state. Write a state while nothing runs, and call rondo_compiled_synchronize of the program that wrote it
 * before another one runs. Compiling a program, and destroying the last program of a stream, must not overlap with
 * other calls. */

/* Packed states: on a CPU device, convolutions by oneDNN, conv_integer and matmul_integer want weights in orders of
 * their own. If such operators with one order are the only readers of a state, and the program neither changes it nor
 * returns it as an output, the state is stored in that order, so no run copies it, and no run has memory for a copy.
 * This holds for programs without an optimizer that are not data-parallel. Names, shapes, bytes and all calls are the
 * same: rondo_compiled_write and the reading of weights and checkpoints pack the elements, rondo_compiled_read and
 * saving unpack them. Such a state has no fixed address for the caller (rondo_compiled_value.address is NULL).
 * plain_states keeps all states as rows at fixed addresses.
 *
 * The form is chosen with the first program that has the state. If a later one shares a packed state and needs its rows
 * (to train it, for example, or for another operator), the rows are stored besides, and both are kept up to date. If it
 * shares a state that has rows, its convolutions copy the weights in each run. So compile the program that trains
 * first, or give each a state of its own, where memory matters. A program with plain_states cannot share a packed
 * state: INVALID_ARGUMENT/BAD_OPTIONS. */

/* Streams. With a stream of the caller's, calls of the program use it, so they and the caller's use of the stream are
 * one thread's at a time, as for any stream. Calls that wait for the program also wait for the caller's work there, and
 * may return a failure of it, as rondo_stream_synchronize does. Fed inputs are still copied on a stream of the
 * program's own, and executors have theirs: the stream waits for them by events. Several programs may run on one
 * stream. The default stream of a thread works on this thread alone, and the legacy default stream only with
 * RONDO_RECORD_NEVER, because it cannot be captured. */

/* Compiles a program (FW-1): plans the arena, gives every value its fixed address, warms up once (states keep their
 * values), captures a run on its own stream, instantiates and uploads. The program may then be changed, compiled again
 * or destroyed. options may be NULL. Waits, but disturbs no capture of another thread. With RONDO_RECORD_AUTO it runs
 * some more times, and is recorded if the prediction says that it pays (FW-8); it is also recorded if the device's
 * costs are not known and cannot be measured, because another thread captures. Errors: INVALID_ARGUMENT (no output and
 * no update; BAD_OPTIONS; OUT_OF_RANGE: least_gain), OUT_OF_MEMORY with the requested bytes, INVALID_STATE/UNPREPARED
 * (something was allocated or initialized during the capture; it is named, FW-2), UNSUPPORTED/NO_FUNCTION (an operator
 * without a kernel for the device, named). With share: INVALID_ARGUMENT with OTHER_DEVICE, or SHAPE, TYPE or
 * DUPLICATE_NAME for a state that differs; CAPTURE_REFUSED/UNSUPPORTED_CALL while its stream captures, where the
 * capture continues; with a stream: INVALID_ARGUMENT with OTHER_DEVICE, or BAD_OPTIONS (another one than that of the
 * program to share with); CAPTURE_REFUSED/UNSUPPORTED_CALL (it captures, and continues to; it is the legacy default
 * stream, and the program is to be recorded); WRONG_THREAD; failures of runs that nobody has waited for. States are
 * then unchanged. With staged: NOT_FOUND/UNKNOWN_NAME; INVALID_ARGUMENT with NULL_ARGUMENT, DUPLICATE_NAME (a name
 * twice), or BAD_OPTIONS (an invalid staging, or one that outputs do not have; an output that is an input, state or
 * cell).
 *
 * Matrix products on a CPU device are computed in tiles, which never depend on the workers: results have the same bits
 * for any number of workers, recorded or eager, but not with another library. On x86-64, oneDNN computes the larger
 * products if libdnnl.so.2 or libdnnl.so.3 is found. CBLAS computes the others if libopenblas.so.0, libcblas.so.3 or
 * libblas.so.3 is found. RONDO_ONEDNN_LIBRARY and RONDO_CBLAS_LIBRARY name other libraries, which are then the only
 * ones tried. If RONDO_CBLAS_LIBRARY is set, its library computes all products ("none": plain C).
 * rondo_library_enumerate (<rondo/operators.h>) lists the libraries in use. The same holds for convolutions of F32,
 * which oneDNN 2 computes where it is faster (RONDO_ONEDNN_LEAST), with workspaces in the program's arena; not with
 * own_kernels. Rondo sets OpenBLAS once to use one thread, for the whole process. A program that also calls OpenBLAS,
 * with more threads, should set RONDO_CBLAS_LIBRARY to another build or to "none". Other BLAS libraries are used as
 * they are configured: use a single-threaded one, or configure it so.
 *
 * While a release of oneDNN before 3.11.2 computes on x86-64, all signals of the computing thread except SIGSEGV and
 * SIGBUS are blocked, because such a release moves the stack pointer off the stack: signal handlers run up to one tile
 * later. This includes threads that wait for a run, which compute meanwhile. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compile(rondo_program *program, rondo_device *device,
                                                    const rondo_compile_options *options,
                                                    rondo_compiled **out_compiled);

/* What rondo_compiled_recompile did with the exec. */
typedef struct rondo_recompile_result {
  uint32_t struct_size;
  bool updated;        /* the exec was updated in place, as the topology is the same; otherwise there is a new exec if
                          the program is recorded */
  rondo_reason reason; /* why it was not updated, as in rondo_update_result; NONE if there was no exec to update */
} rondo_recompile_result;

/* Replaces the program that this was compiled from (FW-6): by the same program with another batch size or other
 * constants, or by any other. The options of rondo_compile_options stay in effect, by the names of staged values.
 * States and cells of the same name, type and shape keep their contents. New ones are initialized as usual, and those
 * that the new program lacks are kept for a later one. The arena is reused if it is large enough, otherwise replaced by
 * a larger one. The work is captured again. If the topology is the same, the exec is updated in place and keeps its
 * handle; otherwise it is instantiated again. Inputs and outputs become zeros, staged ones too. What does not depend on
 * sizes is reused (PR-6), also by rondo_compile with share: kernels; where the programs differ in sizes only, the plan
 * of memory, which may take a few % more than a new one; and nothing runs to warm up if the program calls no library,
 * no executor is measured and its kernels have been run, or the device is a CPU. Waits; disturbs no capture of another
 * thread. For several alternating shapes, compile a program for each, with share. out_result may be NULL.
 * Thread-compatible. Errors: those of rondo_compile with share and staged; INVALID_STATE/STILL_IN_USE (an input is
 * mapped); failures of runs that nobody has waited for, as rondo_compiled_synchronize. After an error nothing has
 * changed, except that inputs and outputs that are not staged may be overwritten (see Sharing). */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_recompile(rondo_compiled *compiled, rondo_program *program,
                                                               rondo_recompile_result *out_result);

/* Waits for the runs and frees the compiled program. Programs that share memory with it live on. NULL is fine. Errors:
 * those of rondo_compiled_synchronize; it is freed nevertheless. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_destroy(rondo_compiled *compiled);

/* Copy between host memory and a named value, after the runs enqueued so far; `data` may be reused after the call.
 * `bytes` must be those of the value. write: inputs, states, cells. It does not wait for the runs, unless much is
 * written. For a staged input it is rondo_compiled_feed. read: outputs, states, cells; waits. Errors:
 * NOT_FOUND/UNKNOWN_NAME (lists the names), INVALID_ARGUMENT/BAD_SIZE; CAPTURE_REFUSED/UNSUPPORTED_CALL while its
 * stream captures, where the capture continues. read also returns INVALID_STATE/OVERWRITTEN (see Sharing) and any
 * asynchronous failure: those of rondo_stream_synchronize, or EXECUTION_FAILED/OUT_OF_RANGE naming the operator, the
 * index and its position if a run found an index out of range. Kernels store such an index in host memory of the
 * program. read, synchronize and destroy check it after waiting (rondo_stream_synchronize does not); it is reported
 * once. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_write(rondo_compiled *compiled, const char *name, const void *data,
                                                           size_t bytes);
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_read(rondo_compiled *compiled, const char *name, void *data,
                                                          size_t bytes);

/* Enqueues a run: one launch if the program is recorded, otherwise an eager run. Does not wait. Errors: as
 * rondo_exec_launch, or as rondo_launch if not recorded; INVALID_STATE/OVERWRITTEN (see Sharing). Thread-compatible.
 *
 * A run that finds an index out of range fails as a whole. It changes no state: weights, moments, counters, running
 * means, caches and the position of the random numbers have the same bits as before. Its outputs are undefined. Runs
 * enqueued before and after it behave as if it had not been there. The next call that waits returns the failure;
 * several failed runs are reported as one. This does not hold if a call fails to enqueue a run, or if the device is
 * lost: part of the run may then have changed states. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_run(rondo_compiled *compiled);

/* Enqueues an eager run, even if the program is recorded: the same arena, addresses and bits (FW-9). With an executor,
 * it returns when the last operator has been enqueued; on a CPU device, when the last expensive operator has been
 * computed. Errors: as rondo_launch, the first failure of an operator; operators in flight are then done, or execute
 * before any later work; INVALID_STATE/OVERWRITTEN (see Sharing). Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_run_eager(rondo_compiled *compiled);

/* Waits for all enqueued runs and copies. Errors: asynchronous failures, as rondo_compiled_read. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_synchronize(rondo_compiled *compiled);

/* Objects of the compiled program, until it is recompiled: its stream (shared by all programs that share memory), the
 * recorded graph and its exec (NULL if not recorded). Do not destroy them; the compiled program owns them. NULL for
 * NULL. Thread-safe. */
RONDO_API rondo_stream *rondo_compiled_stream(const rondo_compiled *compiled);
RONDO_API rondo_graph *rondo_compiled_graph(const rondo_compiled *compiled);
RONDO_API rondo_exec *rondo_compiled_exec(const rondo_compiled *compiled);

/* Why a program runs eagerly. */
typedef enum rondo_eager_reason {
  RONDO_EAGER_NONE = 0,      /* it is recorded */
  RONDO_EAGER_REQUESTED = 1, /* RONDO_RECORD_NEVER */
  RONDO_EAGER_NO_GAIN = 2    /* RONDO_RECORD_AUTO, and recording does not pay */
} rondo_eager_reason;

/* Why eager runs execute their operators one after the other on one stream. */
typedef enum rondo_sequential_reason {
  RONDO_SEQUENTIAL_NONE = 0,        /* they do not: they use the executor */
  RONDO_SEQUENTIAL_NO_EXECUTOR = 1, /* no executor was given */
  RONDO_SEQUENTIAL_FASTER = 2,      /* RONDO_EXECUTOR_AUTO, and the executor was not faster */
  RONDO_SEQUENTIAL_CHAIN = 3,       /* likewise: each operator depends on the previous one, and nothing is staged */
  RONDO_SEQUENTIAL_BUSY = 4         /* likewise: the executor was busy with other runs during the comparison */
} rondo_sequential_reason;

typedef struct rondo_compiled_info {
  uint32_t struct_size;
  uint32_t kernels;        /* kernels of one run; if recorded, including those of libraries */
  uint64_t parameters;     /* elements of the states that optimizers update; without an optimizer, of all states */
  uint64_t state_bytes;    /* states, cells and constants, which always exist */
  uint64_t arena_bytes;    /* of the plan: intermediate values (inputs, outputs, activations, gradients); each value is
                              rounded up to 256 bytes, here and below */
  uint64_t lower_bound;    /* most bytes of intermediate values that are live at once; with branches, in any order */
  uint64_t sum_bytes;      /* bytes of all intermediate values, without sharing memory */
  uint64_t order_peak;     /* most bytes of results and workspaces that are live at once in the chosen order */
  uint64_t program_peak;   /* the same in the order in which operators were added, updates last */
  uint64_t straight_bytes; /* arena_bytes without branches */
  uint32_t operators;      /* that run; a fused chain counts as one */
  uint32_t dependencies;   /* between operators, without those that others imply */
  bool has_branches;       /* the recorded graph has these dependencies, and is not a single chain */
  uint64_t shared_bytes;   /* of state_bytes and arena_bytes, what existed already and is shared */
  rondo_eager_reason eager_reason; /* why there is no recorded graph */
  uint32_t nodes;                  /* of the recorded graph; 0 if the program is not recorded */
  uint64_t branch_bytes;           /* arena_bytes with the narrowest branches that were tried, or a lower bound of it if
                                      that is already too much; 0: none were tried */
  uint32_t chains;                 /* chains of operators that are fused into one kernel (rondo_fusion_policy) */
  uint32_t joined;                 /* operators in these chains */
  uint32_t chain_kernels;          /* kernels for these chains; equal chains share one, also across shared programs */
  uint64_t staging_host_bytes;     /* buffers of staged values, in addition to the arena */
  uint64_t staging_device_bytes;
  uint64_t captures;       /* so far: when it was compiled, and at each rondo_compiled_recompile that recorded */
  uint64_t updates;        /* captures that updated the exec in place */
  uint64_t instantiations; /* captures that made a new exec */
  rondo_sequential_reason sequential_reason; /* why eager runs do not use an executor */
  uint32_t expensive;                        /* expensive nodes of a run */
  double sequential_us, executor_us;         /* minimum time of a run, sequential and with the executor, measured at
                                          compilation; 0: not measured */
  uint64_t host_bytes; /* host memory that the device uses, page-locked on CUDA: staging_host_bytes, the buffer for
                          writes, and 8 bytes for each operator that checks indices */
  bool branches_ended_early; /* there are no branches, and not all widths were tried: there are more than 16,384
                                operators, or the search used up its budget (rondo_branch_policy) */
  uint32_t ranks;            /* that train together (<rondo/data_parallel.h>); 0: the program is not data-parallel */
  uint32_t buckets;          /* of gradients that are reduced together */
  uint64_t reduced_bytes;    /* of the buffers of a run's collectives on buckets */
  uint64_t optimizer_bytes;  /* of state_bytes, what the optimizer keeps on this rank: moments, sums of gradients */
  uint32_t reused_plans;     /* of memory, 0 to 2, that were made from those of an earlier program without a search
                                (rondo_compiled_recompile) */
  bool skipped_warm_up;  /* at most libraries ran: it is on a CPU, or programs that it shares with had run all of its
                            kernels */
  uint32_t patterns;     /* that were replaced by one operator (see Patterns) */
  uint64_t packed_bytes; /* of state_bytes, states that are packed (see Packed states) */
  uint64_t
      constant_bytes; /* of state_bytes, never shared: constants, and what index checks need to hold back updates */
} rondo_compiled_info;

/* Reads the sizes, which are fixed when the program is compiled or recompiled. Thread-safe while it is not recompiled.
 * Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_get_info(const rondo_compiled *compiled,
                                                              rondo_compiled_info *out_info);

/* Measures what recording gains: runs the program eagerly and recorded, `repeats` times each as rondo_gain_measure,
 * with the current contents of memory, which are restored afterwards: states are not trained. Eager runs are measured
 * without an executor. If the program is not recorded, the recorded times are predicted. The device must have memory
 * for a copy of states and arena. Waits. out_gain may be NULL. Thread-compatible. Errors: as rondo_gain_measure and
 * rondo_exec_launch; OUT_OF_MEMORY with the requested bytes; INVALID_STATE/STILL_IN_USE (an input is mapped). */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_measure(rondo_compiled *compiled, uint32_t repeats,
                                                             rondo_gain *out_gain);

/* Returns the gain that rondo_compiled_measure measured last, or that was predicted for RONDO_RECORD_AUTO.
 * Errors: INVALID_ARGUMENT; INVALID_STATE (neither). Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_get_gain(const rondo_compiled *compiled, rondo_gain *out_gain);

/* Explains how the program runs, as text: what is recorded, what is not and why, what recording gains
 * (rondo_compiled_get_gain), and what would increase the gain. Nothing is run. Free the text with rondo_text_free
 * (<rondo/allocator.h>). The text format is for people, with a line or more for each item. JSON has these fields in
 * this order; later versions only add fields at the end of objects:
 *   {"rondo_compiled":1, "name":"", "device":"cpu:0", "recorded":true, "policy":"always", "reason":null, "message":"",
 *    "kernels":12, "operators":10, "nodes":12, "dependencies":11, "branches":"none", "arena_bytes":4096,
 *    "branch_bytes":0, "state_bytes":1024, "inputs":2, "input_bytes":512,
 *    "staged_inputs":0,
 *    "gain":{"works":12, "host_us":4.1, "device_us":20.5, "total_us":22.3, "recorded_host_us":0.2,
 *      "recorded_total_us":15.2, "record_us":180.0, "host_gain":20.5, "total_gain":1.47, "runs_to_repay":26,
 *      "is_measured":true},
 *    "advice":[{"kind":"JOIN_WORKS", "message":"..."}],
 *    "executor":{"used":false, "reason":"SEQUENTIAL_FASTER", "expensive":3, "sequential_us":20.5, "executor_us":24.1},
 *    "memory":{"lower_bound":4096, "straight_bytes":4096, "order_peak":3072, "program_peak":5120,
 *      "packed_bytes":0},
 *    "updates":[{"optimizer":"adam", "states":["w", "b"], "group":null}],
 *    "data_parallel":{"ranks":4, "buckets":3, "reduced_bytes":4096, "optimizer_bytes":1024},
 *    "patterns":[{"name":"layer_norm", "count":25}]}
 * The policy is "always", "never" or "auto". The reason is REQUESTED or NO_GAIN (rondo_eager_reason), or null if
 * the program is recorded; the message explains it. Branches are "taken", "none", "refused" (RONDO_BRANCHES_NEVER),
 * "memory" (they would need branch_bytes or more) or "budget" (not all were tried: branches_ended_early). Inputs are
 * those that are not staged. The gain is null while it is not known. Advice has the kinds MEASURE, RECORD,
 * LARGER_PIECE, JOIN_WORKS, WORK_BOUND, BRANCHES and INPUTS. The executor is null if the program has none; its reason
 * is SEQUENTIAL_FASTER, CHAIN or EXECUTOR_BUSY (rondo_sequential_reason), or null if it is used. The memory fields are
 * those of rondo_compiled_info. Updates list the states that the optimizer ("adam", "sgd", "sgd_momentum", "adagrad" or
 * "rmsprop") trains, without its moments and counters, for each of its groups; the group is its number, from 0 on, or
 * null for the optimizer's own options. The optimizer "assign" lists the states of rondo_program_assign. The text
 * format names at most eight states. data_parallel has fields of rondo_compiled_info, or is null if the program is not
 * data-parallel. Patterns are those that were replaced. Errors: INVALID_ARGUMENT (NULL, another format), OUT_OF_MEMORY.
 * Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_explain(const rondo_compiled *compiled,
                                                             rondo_explain_format format, char **out_text);

/* Writes the report of a compiled program's recorded graph, as rondo_graph_report. After the ranges of the options, the
 * memory map shows the arena: each input and result, by its name or that of its operator, and its number. Errors: as
 * rondo_graph_report; INVALID_STATE if the program is not recorded. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_report(const rondo_compiled *compiled,
                                                            const rondo_report_options *options, char **out_text);

/* A named value of a compiled program. */
typedef struct rondo_compiled_value {
  uint32_t struct_size;
  char kind; /* 's' state, 'c' cell, 'i' input, 'o' output */
  rondo_type type;
  const char *name; /* the compiled program's own */
  size_t rank, shape[RONDO_MAX_DIMENSIONS];
  size_t bytes;
  void *address; /* fixed; device memory. If staged, the buffer's: host memory with RONDO_STAGING_HOST. NULL: a state
                    that is packed (see Packed states) */
  rondo_staging staging;
} rondo_compiled_value;

/* Returns the named value at an index: states first, then cells, inputs, outputs. Thread-safe. Errors: NOT_FOUND past
 * the last, INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_get_value(const rondo_compiled *compiled, size_t index,
                                                               rondo_compiled_value *out_value);

/* A pattern that was replaced (see Patterns), and how often. */
typedef struct rondo_compiled_pattern {
  uint32_t struct_size;
  uint32_t count;
  const char *name; /* static */
} rondo_compiled_pattern;

/* Returns a pattern that was replaced by its index, in the order of the list above. Thread-safe. Errors: NOT_FOUND past
 * the last, INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_get_pattern(const rondo_compiled *compiled, size_t index,
                                                                 rondo_compiled_pattern *out_pattern);

RONDO_EXTERN_C_END

#endif

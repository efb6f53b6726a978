/* SPDX-License-Identifier: MIT
 * The frame of all optimizers (optimizer.c) and what happens to gradients before the updates (gradient_setup.c). An
 * optimizer (optimizer_methods.c) describes its updates by a rondo_optimizer; it adds nothing itself. Made and freed in
 * one call of a public function.
 */
#ifndef RONDO_TENSOR_PROGRAM_OPTIMIZER_H
#define RONDO_TENSOR_PROGRAM_OPTIMIZER_H

#include "tensor/program/buckets.h"
#include "tensor/program/optimizer_parts.h"

/* What the public options of all optimizers have. */
typedef struct rondo_training_options {
  rondo_value learning_rate;
  const rondo_rate_options *schedule;
  const rondo_gradient_options *gradients;
  float weight_decay;
  uint32_t decay_dimensions;
  const rondo_value *states; /* NULL: all that can be trained */
  size_t state_count;
  const rondo_parameter_group *groups;
  size_t group_count;
} rondo_training_options;
#define RONDO_TRAINING_OPTIONS(given)                                                                             \
  (rondo_training_options) {                                                                                      \
    .learning_rate = (given).learning_rate, .schedule = (given).schedule, .gradients = (given).gradients,         \
    .weight_decay = (given).weight_decay, .decay_dimensions = (given).decay_dimensions, .states = (given).states, \
    .state_count = (given).state_count, .groups = (given).groups, .group_count = (given).group_count              \
  }

#define RONDO_COMPANIONS 3

/* An optimizer. The inputs of its updates are the parameter, the gradient, the rate, the control (or no value), the
 * extra value, and the companions. */
typedef struct rondo_optimizer {
  const char *call; /* the public function */
  const rondo_operator *row;
  const rondo_operator *sparse_row; /* of sparse gradients, whose keys are the last input; NULL: it takes none */
  const char *companions[RONDO_COMPANIONS]; /* suffixes of the states that belong to each trained one; NULL: none */
  float initial;                            /* what companions begin with */
  uint32_t extra;                           /* a value that all updates read, or RONDO_NO_VALUE */
  rondo_attributes attributes;              /* of all updates; the number `decay` is that of the group */
  uint32_t decay;
  float rate_decay; /* the rate is divided by 1 + rate_decay * updates */
  const char *step; /* the state that counts updates */

  /* Adds the operator that counts the updates in `step`, and sets the extra value. NULL: they are counted if a rate
   * depends on them, and there is no such operator. */
  rondo_status (*count)(rondo_program *program, uint32_t step, uint32_t control, struct rondo_optimizer *optimizer);
} rondo_optimizer;

/* States with the same options. */
typedef struct rondo_trained_group {
  const rondo_value *states; /* as given; NULL: all that are in no other group */
  size_t state_count;
  bool is_used, is_scheduled;
  rondo_rate_options schedule;
  uint32_t rate; /* RONDO_NO_VALUE: that of the first group */
  float decay, max_norm;
  uint32_t decay_dimensions; /* states of fewer dimensions have no decay */
  uint32_t control;          /* of its updates; RONDO_NO_VALUE: none */
} rondo_trained_group;

/* Values that the gradient options add to the program before the updates; RONDO_NO_VALUE: not added. */
typedef struct rondo_gradient_setup {
  rondo_gradient_options given;
  uint32_t runs, scale, good, control;
  uint32_t most_runs; /* that ranks accumulate, before the sums begin again; 0: any number */
} rondo_gradient_setup;

/* The states to train, their groups and their gradients. */
typedef struct rondo_trainees {
  rondo_program *program;
  const char *call;
  rondo_trained_group *groups; /* the first has the optimizer's own options */
  size_t group_count;
  uint32_t *states;
  uint32_t *gradients;
  uint32_t *keys; /* as in rondo_update_part */
  size_t count;
  size_t capacity;
  rondo_update_part *parts; /* what is updated; whole states, unless the program is data-parallel */
  size_t part_count;
  rondo_buckets buckets; /* of a data-parallel program */
  rondo_gradient_setup setup;
} rondo_trainees;

/* The group of a part's state. */
rondo_trained_group *rondo_trainees_group(const rondo_trainees *t, const rondo_update_part *part);

/* The body of the public functions, after their own checks. */
RONDO_MUST_USE rondo_status rondo_optimizer_add(rondo_program *program, rondo_value loss,
                                                const rondo_training_options *options, rondo_optimizer *optimizer);

/* Resolves a scalar F32; `what` names it in messages. */
RONDO_MUST_USE rondo_status rondo_optimizer_scalar(const rondo_program *program, rondo_value value, const char *call,
                                                   const char *what, uint32_t *out_index);

/* Declares a state that belongs to `state`, whose name it has with the suffix. */
RONDO_MUST_USE rondo_status rondo_optimizer_state(rondo_program *program, uint32_t state, const char *suffix,
                                                  const rondo_shape *shape, float initial, uint32_t *out_index);

/* Declares a state of the same shape as the part's. Its name is that of this state with the suffix. If the bucket has a
 * flat state for all of its parts, that is the companion. */
RONDO_MUST_USE rondo_status rondo_optimizer_companion(rondo_program *program, const rondo_update_part *part,
                                                      const char *suffix, float initial, uint32_t *out_index);

/* Gradients (gradient_setup.c) ------------------------------------------------------------------------------------- */

/* Reads and checks the options, which may be NULL, into the setup. The groups are known. */
RONDO_MUST_USE rondo_status rondo_gradients_read(rondo_trainees *t, const rondo_gradient_options *options);

/* Declares the states that must exist before the loss is differentiated. */
RONDO_MUST_USE rondo_status rondo_gradients_declare(rondo_trainees *t);

/* Replaces the gradients of whole states by sums that are kept in states of their own. */
RONDO_MUST_USE rondo_status rondo_gradients_accumulate(rondo_trainees *t);

/* Of several ranks: only the last run of a round reduces the sums, and everything from here on is only in that run. */
RONDO_MUST_USE rondo_status rondo_gradients_end_run(rondo_trainees *t);

/* Adds the norms and the controls of the groups. */
RONDO_MUST_USE rondo_status rondo_gradients_control(rondo_trainees *t);

#endif

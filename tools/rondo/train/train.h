/* SPDX-License-Identifier: MIT
 * Shared by the files of rondo train: a training with its settings, its device, its compiled step and the results of
 * its runs.
 *
 *   command_train.c     the command line, setup and cleanup
 *   train_run.c         the runs: eager runs to compare, then recorded ones, with interrupts and checkpoints
 *   train_checkpoint.c  checkpoints
 *   train_validation.c  the loss over a part of the text that is kept from training, early stop
 *   train_sample.c      samples of text
 *   train_ranks.c       data-parallel training: the ranks, and what they exchange; train_mpi.c loads MPI
 *   train_show.c        results as text and JSON, and how to resume
 *   train_page.c        results as an HTML page
 */
#ifndef RONDO_TOOL_TRAIN_H
#define RONDO_TOOL_TRAIN_H

#include <stdbool.h>

#include "common/json.h"
#include "common/launcher.h"
#include "common/options.h"
#include "common/timed_runs.h"
#include "models/model.h"
#include "models/text_generator.h"
#include "train/corpus.h"
#include "train/train_mpi.h"

#define TRAIN_MOST_STEPS 10000000
#define TRAIN_MOST_LOSSES 1000000 /* in a checkpoint: those of the last steps */
#define TRAIN_COMPARE_UNSET UINT64_MAX

typedef struct train_settings {
  const char *model, *device, *save, *dump_graph, *trace, *report, *checkpoint, *resume, *mpi;
  uint64_t sizes[MODEL_SIZES], steps, seed, batch, workers; /* 0 in sizes, steps, batch: the model's own */
  uint64_t compare;                      /* TRAIN_COMPARE_UNSET: the default depends on the other options */
  uint64_t checkpoint_every, stop_after; /* 0: the default */
  uint64_t validation;                   /* percent of the text; 0: none */
  uint64_t validate_every, patience;     /* in steps, and in validations; 0: the default, and no early stop */
  uint64_t sample_every;                 /* 0: no samples */
  double learning_rate;                  /* 0: the model's own */
  double timeout;                        /* in seconds: how long a rank waits for the others */
  bool explain, json, data_parallel, shard_states;
} train_settings;

/* The steps from `first` up to, but not including, `end`. The arrays have space for all steps of the training and are
 * indexed by step. */
typedef struct training_run {
  uint64_t first, end;
  float *losses, *step_us;
  uint64_t begin_ns, aside_ns; /* when it began, and what validation, samples and files took since */
  run_times times;             /* without that */
} training_run;

/* The validation with the least loss. */
typedef struct train_best {
  uint64_t step;  /* 0: there was no validation */
  uint64_t since; /* validations after it */
  float loss;
} train_best;

/* The progress of a training. A checkpoint stores it with the states. */
typedef struct train_progress {
  uint64_t step;         /* completed steps */
  draw_source batches;   /* state of the random numbers for the next step's batch */
  float first_loss;      /* of the first step */
  uint64_t loss_history; /* fingerprint of the losses of all steps */
  train_best best;
} train_progress;

/* What this command validated. */
typedef struct train_validation {
  corpus text;              /* the end of the training's, whose bytes it shares */
  rondo_compiled *compiled; /* the loss of a batch */
  uint64_t *steps;
  float *losses; /* after these steps */
  size_t count;
  rondo_weights *best; /* the model with the least loss, for --save and --checkpoint; else NULL */
} train_validation;

enum { TRAIN_SAMPLE_BYTES = 200 };
typedef struct train_sample {
  uint64_t step;
  char text[TRAIN_SAMPLE_BYTES + 1];
} train_sample;

typedef struct train_samples {
  writer writer;
  float *scores;
  train_sample *items;
  size_t count;
} train_samples;

/* What a rank is, and how the recorded run goes on it. */
typedef struct train_rank {
  char host[64], device[96]; /* letters, digits and some signs that need no escape */
  uint32_t workers;
  float loss; /* of its part of the last step's batch */
  double us;  /* all steps so far */
} train_rank;

/* What a rank tells the others after a step. */
typedef struct train_rank_step {
  float loss, step_us;
  int32_t signal;
} train_rank_step;

typedef struct train_ranks {
  launcher started; /* size 0: --data-parallel was not given; 1: it trains alone */
  char device[16];  /* of --device cuda */
  char trace[4096]; /* the file of this rank's trace */
  train_mpi mpi;
  bool has_begun;                   /* MPI */
  bool is_lost;                     /* the ranks could not agree, and the last error is why */
  rondo_communicator *communicator; /* NULL: it trains alone */
  rondo_communicator_info info;
  rondo_stream *stream; /* of what the ranks exchange, with memory of the device */
  void *sent, *received;
  train_rank *all;
  train_rank_step *steps;
} train_ranks;

typedef struct training {
  train_settings settings;
  const char *path;
  const option_table *table;
  char *const *arguments; /* of the command line, to print the command that resumes */
  int argument_count;
  corpus corpus;
  uint64_t text_fingerprint;
  language_model model;
  corpus_batch batch;
  rondo_device *device;
  rondo_device_info device_info;
  rondo_compiled *compiled;
  rondo_compiled_info info;
  int32_t *tokens, *labels; /* a batch */
  train_ranks ranks;
  int signal;              /* that stops the training on all ranks; 0: none */
  rondo_weights *resumed;  /* the checkpoint from which it resumes; NULL: it starts from the beginning */
  uint64_t resumed_steps;  /* the total number of steps of that checkpoint's training */
  train_progress progress; /* of the recorded run */
  uint64_t kept_step;      /* step of the file of --checkpoint; 0: none yet */
  float *losses;           /* of all steps so far from losses_from on, by step; with space for all steps */
  uint64_t losses_from;    /* losses of steps before it are not in the checkpoint */
  char *loss_text;         /* space for the losses of a checkpoint; NULL: none is written */
  train_validation validation;
  train_samples samples;
  training_run eager, recorded;
  bool is_identical, is_saved; /* whether the losses of both runs are equal; whether --save was written */
  double loss_first, loss_last;
  char *explanation; /* text of --explain in the format of the results; may be NULL */
} training;

/* Functions that return int return an exit status: TOOL_OK, TOOL_FAILURE after a message, or, during training, the
 * status of an interrupt (interrupt.h). */

/* train_run.c. Call it between interrupt_begin and interrupt_end. train_evaluate finds whether the steps of --compare
 * are the same in both runs. */
int train_both(training *t);
/* Writes the checkpoint to --checkpoint and the model to --save. Tries each even if the other fails. */
int train_keep(training *t);
/* Writes a model to --save. All ranks call it; rank 0 writes it, and all return the same. Returns false if that failed:
 * `problem` has the reason. */
#define TRAIN_PROBLEM_BYTES 600
bool train_save_model(training *t, const rondo_weights *model, char problem[TRAIN_PROBLEM_BYTES]);
/* Writes the batch in `tokens` and `labels` to the inputs of a program. Validation and samples overwrite those of the
 * step. */
rondo_status train_write_batch(const training *t, rondo_compiled *compiled);
/* Fails because the loss after a step, of the run or the validation that `label` names, is not a number. */
int train_fail_not_a_number(const training *t, const char *label);
/* Whether training stopped before its last step, because of --stop-after or --patience. */
bool train_is_cut_short(const training *t);

/* train_validation.c. Without --validation, these do nothing. train_validation_split takes the text's end from the
 * training; train_validation_prepare compiles; train_validate_when_due validates after a step of the recorded run, and
 * writes the model to --save when its loss is the least so far. */
int train_validation_split(training *t);
int train_validation_prepare(training *t);
int train_validate_when_due(training *t);
int train_validation_end(training *t);
/* Whether --patience ends the training. */
bool train_has_no_patience(const training *t);

/* train_sample.c. Without --sample-every, these do nothing. */
int train_samples_prepare(training *t);
int train_sample_when_due(training *t);
int train_samples_end(training *t);

/* A setting that affects the numbers. The option of the same name sets it. */
enum { TRAIN_TRAIT_BYTES = 32, TRAIN_MOST_TRAITS = MODEL_SIZES + 8 + 9 }; /* 8 of any training, 9 of ranks */
typedef struct train_trait {
  const char *name;
  char value[TRAIN_TRAIT_BYTES];
} train_trait;

typedef struct train_traits {
  train_trait items[TRAIN_MOST_TRAITS];
  size_t count;
} train_traits;

train_trait *train_traits_add(train_traits *all, const char *name);
void train_traits_add_number(train_traits *all, const char *name, uint64_t value);
train_traits train_traits_of(const training *t);

/* train_checkpoint.c. Reads the checkpoint of --resume before anything is compiled, and checks that it belongs to this
 * training. The number of steps may differ; if --steps was not given, it is taken from the checkpoint. */
int train_checkpoint_load(training *t);
/* The second half of train_checkpoint_load: checks the checkpoint in `resumed`. */
int train_checkpoint_check(training *t);
/* Sets states and progress from the loaded checkpoint. */
int train_checkpoint_apply(training *t);
/* train_checkpoint.c. The size of loss_text for a training of so many steps. */
size_t train_loss_text_bytes(uint64_t steps);
/* Writes a checkpoint to --checkpoint. All ranks call it; rank 0 writes it, and all return the same. Returns false if
 * that failed: `problem` has the reason, and the previous file is unchanged. */
bool train_checkpoint_write(training *t, char problem[TRAIN_PROBLEM_BYTES]);

/* train_ranks.c. Without --data-parallel, or with one rank, these do nothing. train_ranks_begin begins MPI, from which
 * on a rank that fails calls train_ranks_abort to end all; train_ranks_choose divides the batch and the processors;
 * train_ranks_join makes the communicator, and checks that all ranks have the same text and options. */
int train_ranks_begin(training *t);
int train_ranks_choose(training *t);
int train_ranks_join(training *t);
/* Makes the program data-parallel, before the model and its optimizer are added. */
rondo_status train_ranks_apply(const training *t, rondo_program *program);
/* Before a run: sends the states of rank 0 to all. */
rondo_status train_ranks_restart(training *t);
/* After a step: makes *loss the mean of all ranks' losses, and tells all about signals. */
rondo_status train_ranks_step(training *t, float *loss, float step_us);
/* Makes a number the mean of all ranks'. */
rondo_status train_ranks_mean(training *t, float *number);
/* Whether it is OK on all ranks. */
bool train_ranks_agree(training *t, bool is_ok);
/* Does not return if MPI has begun. */
void train_ranks_abort(training *t, int result);
/* After the compiled step was destroyed, before the device is closed. */
rondo_status train_ranks_end(training *t);

/* train_show.c. train_compared_count: how many steps both runs made. */
uint64_t train_compared_count(const training *t);
void train_evaluate(training *t);
/* Measures both ways once more without changing any state, and keeps the library's explanation. */
int train_explain(training *t);
int train_show(training *t);
/* Prints the command that resumes the training to standard error. */
void train_show_how_to_resume(const training *t);

/* train_page.c. Its measurement continues the training: do not read or save states after it. */
int train_write_page(training *t);

#endif

/* SPDX-License-Identifier: MIT
 * Shared by the files of rondo train: a training with its settings, its device, its compiled step and the results of
 * its runs.
 *
 *   command_train.c     the command line, setup and cleanup
 *   train_run.c         the runs: eager runs to compare, then recorded ones, with interrupts and checkpoints
 *   train_checkpoint.c  checkpoints, and the command that resumes
 *   train_show.c        results as text and JSON
 *   train_page.c        results as an HTML page
 */
#ifndef RONDO_TOOL_TRAIN_H
#define RONDO_TOOL_TRAIN_H

#include <stdbool.h>

#include "common/json.h"
#include "common/timed_runs.h"
#include "models/model.h"
#include "train/corpus.h"

#define TRAIN_MOST_STEPS 10000000
#define TRAIN_COMPARE_UNSET UINT64_MAX

typedef struct train_settings {
  const char *model, *device, *save, *dump_graph, *trace, *report, *checkpoint, *resume;
  uint64_t sizes[MODEL_SIZES], steps, seed, batch, workers; /* 0 in sizes, steps, batch: the model's own */
  uint64_t compare;                      /* TRAIN_COMPARE_UNSET: the default depends on the other options */
  uint64_t checkpoint_every, stop_after; /* 0: the default */
  double learning_rate;                  /* 0: the model's own */
  bool explain, json;
} train_settings;

/* The steps from `first` up to, but not including, `end`. The arrays have space for all steps of the training and are
 * indexed by step. */
typedef struct training_run {
  uint64_t first, end;
  float *losses, *step_us;
  run_times times;
} training_run;

/* The progress of a training. A checkpoint stores it with the states. */
typedef struct train_progress {
  uint64_t step;         /* completed steps */
  draw_source batches;   /* state of the random numbers for the next step's batch */
  float first_loss;      /* of the first step */
  uint64_t loss_history; /* fingerprint of the losses of all steps */
} train_progress;

typedef struct training {
  train_settings settings;
  const char *path;
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
  rondo_weights *resumed;   /* the checkpoint from which it resumes; NULL: it starts from the beginning */
  uint64_t resumed_steps;   /* the total number of steps of that checkpoint's training */
  train_progress progress;  /* of the recorded run */
  uint64_t kept_step;       /* step of the file of --checkpoint; 0: none yet */
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
/* Whether training stopped before its last step because of --stop-after. */
bool train_is_cut_short(const training *t);

/* train_checkpoint.c. Reads the checkpoint of --resume before anything is compiled, and checks that it belongs to this
 * training. The number of steps may differ; if --steps was not given, it is taken from the checkpoint. */
int train_checkpoint_load(training *t);
/* The second half of train_checkpoint_load: checks the checkpoint in `resumed`. */
int train_checkpoint_check(training *t);
/* Sets states and progress from the loaded checkpoint. */
int train_checkpoint_apply(training *t);
/* Writes a checkpoint to --checkpoint. Returns false if that failed: `problem` has the reason, and the previous file is
 * unchanged. */
#define TRAIN_PROBLEM_BYTES 600
bool train_checkpoint_write(training *t, char problem[TRAIN_PROBLEM_BYTES]);
/* Prints the command that resumes the training to standard error. */
void train_show_how_to_resume(const training *t);

/* train_show.c */
void train_evaluate(training *t);
/* Measures both ways once more without changing any state, and keeps the library's explanation. */
int train_explain(training *t);
int train_show(training *t);

/* train_page.c. Its measurement continues the training: do not read or save states after it. */
int train_write_page(training *t);

#endif

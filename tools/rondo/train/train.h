/* SPDX-License-Identifier: MIT
 * What the files of rondo train share: a training with its settings, its device, its compiled step and what the runs
 * of it gave.
 *
 *   command_train.c     the command line, making ready and taking down
 *   train_run.c         the runs: eager runs to compare, then recorded ones, with interrupts and checkpoints
 *   train_checkpoint.c  what is kept to go on from
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
  uint64_t compare;                                         /* TRAIN_COMPARE_UNSET: what goes with the other options */
  uint64_t checkpoint_every, stop_after;                    /* 0: likewise */
  double learning_rate;                                     /* 0: the model's own */
  bool explain, json;
} train_settings;

/* Steps `first` to before `end`; arrays have room for all steps of the training and are indexed by step. */
typedef struct training_run {
  uint64_t first, end;
  float *losses, *step_us;
  run_times times;
} training_run;

/* How far a training is: what a checkpoint says beside the states. */
typedef struct train_progress {
  uint64_t step;         /* steps that are done */
  draw_source batches;   /* of the next step */
  float first_loss;      /* of the first step */
  uint64_t loss_history; /* fingerprint of the losses of all steps */
} train_progress;

typedef struct training {
  train_settings settings;
  const char *path;
  char *const *arguments; /* of the command line, for the command that goes on */
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
  rondo_weights *resumed;   /* the checkpoint that it goes on from; NULL: it begins */
  uint64_t resumed_steps;   /* that this checkpoint's training was to have */
  train_progress progress;  /* of the recorded run */
  uint64_t kept_step;       /* of the checkpoint at --checkpoint; 0: none yet */
  training_run eager, recorded;
  bool is_identical, is_saved; /* both runs' losses; the model, to --save */
  double loss_first, loss_last;
  char *explanation; /* of --explain, in the form of the results; or NULL */
} training;

/* All functions that return int return an exit status: TOOL_OK, TOOL_FAILURE having said why, and those of training
 * also that of an interrupt, see interrupt.h. */

/* train_run.c, between interrupt_begin and interrupt_end. Whether the steps that --compare asks for are the same in
 * both runs is found by train_evaluate. */
int train_both(training *t);
/* Writes where the training stands to --checkpoint and the model to --save: the one even when the other fails. */
int train_keep(training *t);
/* The training stopped before its last step because --stop-after asked for it. */
bool train_is_cut_short(const training *t);

/* train_checkpoint.c: reads the checkpoint of --resume and finds out whether it is of this training, which may have
 * another number of steps, and has the checkpoint's unless it was given; before anything is compiled. */
int train_checkpoint_load(training *t);
/* Its second half: of the checkpoint in `resumed`. */
int train_checkpoint_check(training *t);
/* Sets states and progress to those of the checkpoint that was loaded. */
int train_checkpoint_apply(training *t);
/* Writes one to --checkpoint. False: it could not be written, `problem` says why, and the one before is as it was. */
#define TRAIN_PROBLEM_BYTES 600
bool train_checkpoint_write(training *t, char problem[TRAIN_PROBLEM_BYTES]);
/* Says on standard error by which command the training goes on. */
void train_show_how_to_go_on(const training *t);

/* train_show.c */
void train_evaluate(training *t);
/* Measures both ways once more, which leaves no trace, and keeps what the library says of it. */
int train_explain(training *t);
int train_show(training *t);

/* train_page.c: measuring trains on, so nothing is read or saved after it. */
int train_write_page(training *t);

#endif

/* SPDX-License-Identifier: MIT
 * Chooses how a graph runs on the CPU: in a plain loop by one thread, or by work stealing. README.md describes the
 * rules.
 *
 * A trial is open until there are enough samples of both methods. A sample of stealing counts only if helpers came in
 * time. Other samples are repeated, so that one bad measurement does not decide. Then the choice holds for a number of
 * runs, which grows while trials end with the same result.
 *
 * Invariant: a closed trial has samples of the loop. Threads: the owner of the queue that runs the graph.
 */
#ifndef RONDO_DEVICE_CPU_CPU_CHOICE_H
#define RONDO_DEVICE_CPU_CPU_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

enum { CPU_SAMPLES = 3, CPU_MOST_PROBES = 8 };

typedef struct cpu_choice {
  bool steals;                  /* how runs that are not samples run */
  bool is_closed;               /* the trial is over */
  bool relies_on_helpers;       /* stealing was chosen because helpers made it faster */
  uint8_t loops, helped, alone; /* samples of the trial: of the loop, and of stealing with and without helpers */
  uint8_t probes;               /* runs under contention that were timed */
  uint32_t runs;                /* since the trial was closed, or, while it is open, since the last sample */
  uint32_t holds;               /* runs until the next trial */
  uint32_t lonely;              /* consecutive runs that relied on helpers that did not come */
  uint64_t loop_ns, helped_ns;  /* the median of the samples */
  uint64_t alone_ns;            /* the shortest */
  uint64_t loop_samples[CPU_SAMPLES], helped_samples[CPU_SAMPLES];
} cpu_choice;

/* Opens a trial: the next runs are samples. */
void cpu_choice_open(cpu_choice *choice);

/* For cpu_choice_begin, if a trial is open or must be opened. */
bool cpu_choice_begin_trial(cpu_choice *choice, bool *out_steals);

/* Call it before a run. *out_steals says how to run. True if the run is a sample, which must be timed and noted. */
static inline bool cpu_choice_begin(cpu_choice *choice, bool *out_steals) {
  *out_steals = choice->steals;
  if (++choice->runs > choice->holds || !choice->is_closed) return cpu_choice_begin_trial(choice, out_steals);
  return false;
}
void cpu_choice_note_loop(cpu_choice *choice, uint64_t ns);
void cpu_choice_note_steal(cpu_choice *choice, uint64_t ns, bool in_time);

/* Call it after a stealing run that was not a sample: whether helpers came in time. */
void cpu_choice_note_helpers(cpu_choice *choice, bool in_time);

/* A probe is a plain loop that was timed under contention. One shorter than `brief_ns` ends the trial. */
void cpu_choice_note_probe(cpu_choice *choice, uint64_t ns, uint64_t brief_ns);

/* Whether the nodes are known to be short: they take less than a few times what it costs to exchange a node. */
bool cpu_choice_is_short(const cpu_choice *choice, uint32_t nodes);

/* Whether to wake a sleeping worker: while samples are taken, and if stealing saves more than a wake costs. */
bool cpu_choice_wakes(const cpu_choice *choice);

#endif

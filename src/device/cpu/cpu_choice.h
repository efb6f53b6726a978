/* SPDX-License-Identifier: MIT
 * How a graph runs on the CPU: in a plain loop, by one thread, or by work stealing. README.md says what the choice
 * rests on.
 *
 * A trial is open until there are enough samples of both ways. A sample of stealing counts as one only if helpers came
 * in time; others are repeated, so that one unlucky measurement decides nothing. Then the choice holds for a number of
 * runs, which grows while trials end alike.
 *
 * Invariant: a closed trial has samples of the loop. Threads: the owner of the queue that runs the graph.
 */
#ifndef RONDO_DEVICE_CPU_CPU_CHOICE_H
#define RONDO_DEVICE_CPU_CPU_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

enum { CPU_SAMPLES = 3, CPU_MOST_PROBES = 8 };

typedef struct cpu_choice {
  bool steals;                  /* what runs do that are no samples */
  bool is_closed;               /* the trial is over */
  bool relies_on_helpers;       /* stealing was chosen because helpers made it faster */
  uint8_t loops, helped, alone; /* samples of the trial: of the loop, and of stealing with and without helpers */
  uint8_t probes;               /* runs under contention that were timed */
  uint32_t runs;                /* since the trial was closed; while it is open, since the last sample */
  uint32_t holds;               /* runs until the next trial */
  uint32_t lonely;              /* runs in a row that relied on helpers who did not come */
  uint64_t loop_ns, helped_ns;  /* the middle ones of the samples */
  uint64_t alone_ns;            /* the shortest */
  uint64_t loop_samples[CPU_SAMPLES], helped_samples[CPU_SAMPLES];
} cpu_choice;

/* Opens a trial: at the next run, samples are taken. */
void cpu_choice_open(cpu_choice *choice);

/* For cpu_choice_begin: while a trial is open, or has to be opened. */
bool cpu_choice_begin_trial(cpu_choice *choice, bool *out_steals);

/* Before a run. *out_steals says how it runs. Returns true if it is a sample, which has to be timed and noted. */
static inline bool cpu_choice_begin(cpu_choice *choice, bool *out_steals) {
  *out_steals = choice->steals;
  if (++choice->runs > choice->holds || !choice->is_closed) return cpu_choice_begin_trial(choice, out_steals);
  return false;
}
void cpu_choice_note_loop(cpu_choice *choice, uint64_t ns);
void cpu_choice_note_steal(cpu_choice *choice, uint64_t ns, bool in_time);

/* After a stealing run that was no sample: whether helpers came in time. */
void cpu_choice_note_helpers(cpu_choice *choice, bool in_time);

/* A probe is a plain loop that was timed under contention. One shorter than `brief_ns` ends the trial. */
void cpu_choice_note_probe(cpu_choice *choice, uint64_t ns, uint64_t brief_ns);

/* Whether so many nodes are known to be short, less than a few times what it costs to exchange one. */
bool cpu_choice_is_short(const cpu_choice *choice, uint32_t nodes);

/* Whether a sleeping worker is worth waking: it is while samples are taken, and where stealing saves more than a wake
 * costs. */
bool cpu_choice_wakes(const cpu_choice *choice);

#endif

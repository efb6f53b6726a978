/* SPDX-License-Identifier: MIT
 * Choosing between the plain loop and work stealing.
 */
#include "device/cpu/cpu_choice.h"

#include <assert.h>

enum {
  MOST_ALONE = 48,  /* after so many samples without helpers, none are expected */
  SPREAD = 16,      /* if stealing alone is slow, one run of so many is such a sample */
  ALONE_COST = 16,  /* stealing alone is as good as the loop if it takes at most this fraction longer */
  MOST_LONELY = 64, /* runs */
  HOLDS_AT_LEAST = 16,
  HOLDS_AT_MOST = 20000,
  WAKE_GAIN_NS = 20 * 1000,
  SHORT_NS = 2000 /* a node */
};

void cpu_choice_open(cpu_choice *choice) {
  choice->is_closed = false;
  choice->loops = choice->helped = choice->alone = choice->probes = 0;
  choice->runs = choice->lonely = 0;
}

/* Notes a sample. With the last one, *median_ns becomes the median. So one disturbed sample has no effect, but a
 * disturbance of most samples has. */
static void note_sample(uint8_t *count, uint64_t samples[CPU_SAMPLES], uint64_t ns, uint64_t *median_ns) {
  assert(*count < CPU_SAMPLES);
  samples[(*count)++] = ns;
  if (*count < CPU_SAMPLES) return;
  const uint64_t low = samples[0] < samples[1] ? samples[0] : samples[1];
  const uint64_t high = samples[0] < samples[1] ? samples[1] : samples[0];
  *median_ns = ns < low ? low : (ns > high ? high : ns);
}

/* A repeated result holds for longer each time, and a clear one for much longer. A new result is tried again soon,
 * because a busy machine may have caused it. */
static void close_trial(cpu_choice *choice, bool steals, bool is_clear) {
  const uint32_t longer = choice->holds * (is_clear ? 8 : 2);
  choice->holds = HOLDS_AT_LEAST;
  if (steals == choice->steals && longer > HOLDS_AT_LEAST)
    choice->holds = longer < HOLDS_AT_MOST ? longer : HOLDS_AT_MOST;
  choice->steals = steals;
  choice->relies_on_helpers = steals && choice->helped == CPU_SAMPLES;
  choice->is_closed = true;
  choice->runs = choice->lonely = 0;
}

static bool is_cheap_alone(const cpu_choice *choice) {
  return choice->alone > 0 && choice->alone_ns <= choice->loop_ns + choice->loop_ns / ALONE_COST;
}

/* Without helpers, stealing takes more than twice as long as the loop, which helpers cannot make up for. */
static bool is_hopeless(const cpu_choice *choice) {
  return choice->helped == 0 && choice->alone >= CPU_SAMPLES && choice->alone_ns > 2 * choice->loop_ns;
}

static void decide(cpu_choice *choice) {
  const bool has_helpers = choice->helped == CPU_SAMPLES;
  const uint64_t steal_ns = has_helpers ? choice->helped_ns : choice->alone_ns;
  const bool is_clear = choice->loop_ns > 2 * steal_ns || steal_ns > 2 * choice->loop_ns;
  assert(choice->loops > 0 && choice->helped + choice->alone > 0);
  close_trial(choice, has_helpers ? steal_ns < choice->loop_ns : is_cheap_alone(choice), is_clear);
}

bool cpu_choice_begin_trial(cpu_choice *choice, bool *out_steals) {
  if (choice->is_closed) cpu_choice_open(choice);
  const bool is_spread = choice->alone >= CPU_SAMPLES && !is_cheap_alone(choice);
  const bool is_sample = !is_spread || choice->runs >= SPREAD;
  *out_steals = is_sample && choice->loops == CPU_SAMPLES;
  return is_sample;
}

void cpu_choice_note_loop(cpu_choice *choice, uint64_t ns) {
  assert(!choice->is_closed && choice->loops < CPU_SAMPLES);
  note_sample(&choice->loops, choice->loop_samples, ns, &choice->loop_ns);
  choice->runs = 0;
}

void cpu_choice_note_steal(cpu_choice *choice, uint64_t ns, bool in_time) {
  assert(!choice->is_closed && choice->loops == CPU_SAMPLES);
  if (in_time)
    note_sample(&choice->helped, choice->helped_samples, ns, &choice->helped_ns);
  else if (choice->alone++ == 0 || ns < choice->alone_ns)
    choice->alone_ns = ns;
  choice->runs = 0;
  if (choice->helped == CPU_SAMPLES || choice->alone == MOST_ALONE || is_hopeless(choice)) decide(choice);
}

void cpu_choice_note_helpers(cpu_choice *choice, bool in_time) {
  choice->lonely = in_time || !choice->relies_on_helpers ? 0 : choice->lonely + 1;
  if (choice->lonely == MOST_LONELY) cpu_choice_open(choice);
}

void cpu_choice_note_probe(cpu_choice *choice, uint64_t ns, uint64_t brief_ns) {
  assert(!choice->is_closed && choice->probes < CPU_MOST_PROBES);
  choice->probes++;
  if (ns >= brief_ns) return;
  choice->loop_ns = ns;
  close_trial(choice, false, false);
}

bool cpu_choice_wakes(const cpu_choice *choice) {
  if (!choice->is_closed) return true;
  return choice->relies_on_helpers && choice->loop_ns > choice->helped_ns + WAKE_GAIN_NS;
}

bool cpu_choice_is_short(const cpu_choice *choice, uint32_t nodes) {
  return choice->loop_ns > 0 && choice->loop_ns < (uint64_t)SHORT_NS * nodes;
}

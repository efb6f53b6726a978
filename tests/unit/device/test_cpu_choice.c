/* SPDX-License-Identifier: MIT
 * The choice between the plain loop and stealing, without threads: which samples it takes, what it concludes from them,
 * and that an unlucky sample is corrected.
 */
#include "device/cpu/cpu_choice.h"
#include "support/rondo_test.h"

/* How long runs take. `alone` is stealing without helpers. */
typedef struct world {
  uint64_t loop_ns, helped_ns, alone_ns;
  bool has_helpers;
} world;

enum { NODES = 32 };

typedef struct tally {
  unsigned stolen, samples;
} tally;

static tally run(cpu_choice *choice, const world *w, unsigned runs) {
  tally t = {0};
  for (unsigned i = 0; i < runs; i++) {
    bool steals;
    const bool is_sample = cpu_choice_begin(choice, &steals);
    t.samples += is_sample;
    t.stolen += steals;
    if (!steals && is_sample)
      cpu_choice_note_loop(choice, w->loop_ns);
    else if (is_sample)
      cpu_choice_note_steal(choice, w->has_helpers ? w->helped_ns : w->alone_ns, w->has_helpers);
    else if (steals)
      cpu_choice_note_helpers(choice, w->has_helpers);
  }
  return t;
}

static const world useful = {32000, 17000, 33000, true}, away = {32000, 17000, 33000, false},
                   useless = {50, 900, 400, true}, dear = {32000, 17000, 40000, false};

UNIT_TEST(stealing_that_is_faster_is_chosen) {
  cpu_choice choice = {0};
  const tally first = run(&choice, &useful, 6);
  assert_int_equal(first.samples, 6);
  assert_int_equal(first.stolen, 3);
  assert_true(choice.is_closed && choice.steals && choice.relies_on_helpers);
  assert_int_equal(choice.loop_ns, useful.loop_ns);
  assert_int_equal(choice.helped_ns, useful.helped_ns);
  assert_int_equal(run(&choice, &useful, 10).stolen, 10);
}

UNIT_TEST(the_loop_is_kept_where_helpers_make_it_slower) {
  cpu_choice choice = {0};
  (void)run(&choice, &useless, 6);
  assert_true(choice.is_closed && !choice.steals);
  assert_in_range(run(&choice, &useless, 100000).samples, 6, 60); /* trials become rare */
}

/* Runs without helpers show nothing about stealing with helpers, and cost nothing where stealing is cheap alone. */
UNIT_TEST(helpers_that_come_later_are_used) {
  cpu_choice choice = {0};
  (void)run(&choice, &away, 200);
  assert_true(choice.steals && !choice.relies_on_helpers);
  assert_int_equal(run(&choice, &useful, 1000).samples < 100, true);
  assert_true(choice.steals && choice.relies_on_helpers);
}

/* Where stealing alone is slow, the loop runs meanwhile, and one run of sixteen tries whether helpers come. */
UNIT_TEST(dear_samples_are_spread) {
  cpu_choice choice = {0};
  (void)run(&choice, &dear, 6);
  const tally t = run(&choice, &dear, 160);
  assert_false(choice.is_closed);
  assert_int_equal(t.samples, 10);
  assert_int_equal(t.stolen, 10);
  (void)run(&choice, &useful, 60);
  assert_true(choice.is_closed && choice.steals && choice.relies_on_helpers);
}

/* All samples of a trial are unlucky: the helper lost its processor in each. The next trial comes soon. */
UNIT_TEST(an_unlucky_trial_is_corrected) {
  cpu_choice choice = {0};
  const world unlucky = {32000, 3000000, 33000, true};
  (void)run(&choice, &unlucky, 6);
  assert_true(choice.is_closed && !choice.steals);
  (void)run(&choice, &useful, 30);
  assert_true(choice.steals && choice.relies_on_helpers);
}

UNIT_TEST(helpers_that_stay_away_are_noticed) {
  cpu_choice choice = {0};
  (void)run(&choice, &useful, 20000);
  assert_true(choice.relies_on_helpers);
  (void)run(&choice, &dear, 2000);
  assert_false(choice.steals);
}

UNIT_TEST(sleepers_are_woken_where_that_pays) {
  cpu_choice choice = {0};
  assert_true(cpu_choice_wakes(&choice));
  (void)run(&choice, &useful, 6);
  assert_false(cpu_choice_wakes(&choice)); /* it saves less than a wake costs */
  const world long_one = {320000, 170000, 330000, true};
  choice = (cpu_choice){0};
  (void)run(&choice, &long_one, 6);
  assert_true(cpu_choice_wakes(&choice));
  assert_true(cpu_choice_is_short(&choice, 10 * NODES));
  assert_false(cpu_choice_is_short(&choice, NODES));
}

UNIT_TEST(probes_end_the_trial_of_what_is_brief) {
  cpu_choice choice = {0};
  cpu_choice_note_probe(&choice, 40000, 20000);
  assert_false(choice.is_closed);
  cpu_choice_note_probe(&choice, 300, 20000);
  assert_true(choice.is_closed && !choice.steals);
  assert_int_equal(choice.loop_ns, 300);
}

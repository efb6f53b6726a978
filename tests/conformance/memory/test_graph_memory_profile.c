/* SPDX-License-Identifier: MIT
 * Profiles: an earlier recording's sizes and order give the addresses of the next one (GM-2, GM-11), down to the lower
 * bound; a recording that deviates is placed safely and counted.
 */
#include <string.h>

#include "support/test_cleanup.h"
#include "support/test_graph_memory.h"

/* Units are whole pages on every device; of each block the first words are read. */
enum { UNIT = 2 << 20, UNITS = UNIT / 4, READS = 4096 };

/* Counted in steps, so that plans do not depend on how busy the machine is. */
static const rondo_plan_options planning = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 50000};

/* The allocations and frees of a sequential recording: 'A' allocates block A and writes it, 'a' reads and frees it. */
typedef struct script {
  const char *steps;
  size_t units[26]; /* by letter */
} script;

/* Online, C does not fit where A was; the plan puts A next to B and C over both ends. */
static const script packs_badly = {.steps = "ABaCbcDd", .units = {1, 1, 2, 3}};

typedef struct recording {
  test_fixture *t;
  rondo_graph *graph;
  rondo_node last;
  uint32_t *words[26];
} recording;

static void record_step(recording *self, const script *work, char step, uint32_t *out) {
  const bool frees = step >= 'a';
  const int block = frees ? step - 'a' : step - 'A';
  const size_t units = work->units[block];
  if (!frees) {
    const test_allocation made =
        test_add_alloc(self->graph, &self->last, self->last.id != 0, units * UNIT, (char[]){step, '\0'});
    self->words[block] = made.words;
    self->last =
        test_add_set(self->t, self->graph, made.node, made.words, (uint32_t)units * UNITS, 10 + (uint32_t)block);
    return;
  }
  self->last = test_add_read(self->t, self->graph, self->last, self->words[block], out + block * READS, READS);
  self->last = test_add_free(self->graph, self->last, self->words[block]);
}

static rondo_graph *record(test_fixture *t, const script *work, rondo_profile *profile, uint32_t *out) {
  recording self = {.t = t};
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .name = "recording", .profile = profile};
  assert_ok(rondo_graph_create(t->device, &options, &self.graph));
  test_leave_kind(TEST_LEFT_GRAPH, self.graph, NULL);
  for (const char *step = work->steps; *step != '\0'; step++) record_step(&self, work, *step, out);
  return self.graph;
}

static rondo_profile *make_profile(const rondo_graph *graph) {
  rondo_profile *profile = NULL;
  assert_ok(rondo_profile_create(graph, &planning, &profile));
  return profile;
}

static rondo_profile_info profile_info(const rondo_profile *profile) {
  rondo_profile_info info = {.struct_size = sizeof info};
  assert_ok(rondo_profile_get_info(profile, &info));
  return info;
}

static uint64_t graph_bytes(const rondo_exec *exec) { return test_exec_info(exec).graph_bytes; }

/* Runs the graph and compares what each block read. */
static void run_and_check(test_fixture *t, rondo_graph *graph, const script *work, uint32_t *out) {
  rondo_exec *exec = test_instantiate(graph);
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  for (uint32_t block = 0; block < 26 && work->units[block] > 0; block++)
    test_assert_all(t, out + block * READS, READS, (10 + block) * 32);
  rondo_exec_destroy(exec);
}

/* The plan needs the live bytes, and the recording needs exactly these: physical bytes too. */
TEST(test_gm11_a_recording_gets_planned_addresses) {
  if (test_is_guarded(t)) skip();
  uint32_t *out = test_words(t, 26 * READS);
  rondo_graph *online = record(t, &packs_badly, NULL, out);
  rondo_profile *profile = make_profile(online);
  rondo_profile_info info = profile_info(profile);
  assert_int_equal(info.allocations, 4);
  assert_int_equal(info.lower_bound, 3 * UNIT);
  assert_int_equal(info.peak, 3 * UNIT);
  assert_int_equal(info.sum, 7 * UNIT);
  assert_true(info.optimal || info.peak == info.lower_bound);
  rondo_graph *planned = record(t, &packs_badly, profile, out);
  info = profile_info(profile);
  assert_int_equal(info.placed, 4);
  assert_int_equal(info.departures, 0);
  rondo_exec *execs[2] = {test_instantiate(online), test_instantiate(planned)};
  assert_int_equal(graph_bytes(execs[0]), 4 * UNIT);
  assert_int_equal(graph_bytes(execs[1]), 3 * UNIT);
  assert_ok(rondo_exec_launch(execs[1], t->stream));
  assert_int_equal(test_memory_statistics(t).graph_reserved, 3 * UNIT);
  assert_int_equal(test_memory_statistics(t).profiled_allocations, 4);
  run_and_check(t, planned, &packs_badly, out);
  rondo_profile_destroy(profile);
}

/* The same by capture: a warm-up that is thrown away, then the recording. */
TEST(test_gm7_a_capture_follows_its_warm_up) {
  if (test_is_guarded(t)) skip();
  uint32_t *out = test_words(t, 2 * READS);
  rondo_profile *profile = NULL;
  rondo_graph *graph = NULL;
  uint64_t online = 0;
  for (int round = 0; round < 2; round++) {
    const uint32_t values[3] = {3, 4, 5};
    void *blocks[3] = {NULL};
    const rondo_capture_options options = {RONDO_CAPTURE_OPTIONS_INIT, .profile = profile};
    assert_ok(rondo_capture_begin_with(t->stream, &options));
    for (int i = 0; i < 3; i++) {
      const uint32_t words = i == 2 ? 2 * UNITS : UNITS;
      if (i == 2) assert_ok(rondo_free_async(t->stream, blocks[0]));
      assert_ok(rondo_malloc_async(t->stream, words * 4, NULL, &blocks[i]));
      assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_SET), (rondo_grid){words, 0, 0},
                             RONDO_ARGS(&values[i], &blocks[i])));
    }
    for (int i = 1; i < 3; i++) {
      uint32_t *to = out + (i - 1) * READS;
      assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){READS, 0, 0},
                             RONDO_ARGS(&blocks[i], &blocks[i], &to)));
      assert_ok(rondo_free_async(t->stream, blocks[i]));
    }
    graph = test_capture_end(t->stream);
    rondo_exec *exec = test_instantiate(graph);
    if (round == 0) {
      online = graph_bytes(exec);
      profile = make_profile(graph);
      test_graph_destroy(graph);
    } else {
      assert_true(graph_bytes(exec) < online);
      assert_int_equal(graph_bytes(exec), profile_info(profile).lower_bound);
      assert_ok(rondo_exec_launch(exec, t->stream));
      test_assert_all(t, out, READS, 4 * 32);
      test_assert_all(t, out + READS, READS, 5 * 32);
      test_graph_destroy(graph);
    }
    rondo_exec_destroy(exec);
  }
  assert_int_equal(profile_info(profile).placed, 3);
  rondo_profile_destroy(profile);
}

/* Another size, one allocation more, or fewer: found, counted once a recording, placed safely, and planned afresh. */
TEST(test_gm11_departures_are_found_and_counted) {
  if (test_is_guarded(t)) skip();
  static const script departing[] = {
      {.steps = "ABaCbcDd", .units = {1, 1, 3, 3}}, /* C is larger */
      {.steps = "ABaCbDcd", .units = {1, 1, 2, 3}}, /* D begins before C ends */
      {.steps = "ABaCbcDdEe", .units = {1, 1, 2, 3, 1}},
  };
  uint32_t *out = test_words(t, 26 * READS);
  rondo_graph *online = record(t, &packs_badly, NULL, out);
  rondo_profile *profile = make_profile(online);
  test_graph_destroy(online);
  for (size_t i = 0; i < sizeof departing / sizeof *departing; i++) {
    rondo_graph *graph = record(t, &departing[i], profile, out);
    assert_int_equal(profile_info(profile).departures, i + 1);
    assert_int_equal(test_memory_statistics(t).profile_departures, i + 1);
    run_and_check(t, graph, &departing[i], out);
    rondo_profile *fresh = make_profile(graph); /* what the deviating recording showed */
    assert_int_equal(test_memory_statistics(t).profiles, i + 2);
    assert_int_equal(test_memory_statistics(t).profiles_renewed, i + 1);
    rondo_graph *again = record(t, &departing[i], fresh, out);
    assert_int_equal(profile_info(fresh).departures, 0);
    assert_int_equal(profile_info(fresh).placed, profile_info(fresh).allocations);
    run_and_check(t, again, &departing[i], out);
    rondo_profile_destroy(fresh);
    test_graph_destroy(graph);
    test_graph_destroy(again);
  }
  static const script shorter = {.steps = "ABab", .units = {1, 1}};
  rondo_graph *graph = record(t, &shorter, profile, out);
  assert_int_equal(profile_info(profile).departures, 3);
  run_and_check(t, graph, &shorter, out);
  rondo_profile_destroy(profile);
}

/* The sizes are as planned but the order is not: memory that the plan reuses may still be alive, so it is not used. */
TEST(test_gm11_an_unsafe_order_departs) {
  if (test_is_guarded(t)) skip();
  static const script line = {.steps = "AaBb", .units = {1, 1}};
  uint32_t *out = test_words(t, 26 * READS);
  rondo_graph *online = record(t, &line, NULL, out), *apart = NULL;
  rondo_profile *profile = make_profile(online);
  assert_int_equal(profile_info(profile).peak, UNIT);
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .profile = profile};
  assert_ok(rondo_graph_create(t->device, &options, &apart));
  test_leave_kind(TEST_LEFT_GRAPH, apart, NULL);
  const test_allocation first = test_add_alloc(apart, NULL, 0, UNIT, "first");
  test_add_free(apart, first.node, first.words);
  const test_allocation second = test_add_alloc(apart, NULL, 0, UNIT, "second");
  assert_true(second.words >= first.words + UNITS || second.words + UNITS <= first.words);
  assert_int_equal(profile_info(profile).placed, 1);
  assert_int_equal(profile_info(profile).departures, 1);
  rondo_profile_destroy(profile);
}

/* A refused node, whatever its size, changes nothing: the graph continues with its profile. */
TEST(test_gm11_a_refused_node_does_not_depart) {
  if (test_is_guarded(t)) skip();
  static const script line = {.steps = "AB", .units = {1, 1}};
  uint32_t *out = test_words(t, 26 * UNITS);
  rondo_graph *online = record(t, &line, NULL, out), *graph = NULL;
  rondo_profile *profile = make_profile(online);
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .profile = profile};
  assert_ok(rondo_graph_create(t->device, &options, &graph));
  test_leave_kind(TEST_LEFT_GRAPH, graph, NULL);
  const test_allocation first = test_add_alloc(graph, NULL, 0, UNIT, "A");
  const rondo_node twice[2] = {first.node, first.node};
  for (size_t units = 1; units <= 2; units++) {
    void *address = NULL;
    rondo_node node = {0};
    assert_invalid(rondo_graph_add_alloc(graph, twice, 2, units * UNIT, "B", &address, &node),
                   RONDO_REASON_DUPLICATE_EDGE);
    assert_int_equal(profile_info(profile).placed, 1);
    assert_int_equal(profile_info(profile).departures, 0);
  }
  test_add_alloc(graph, &first.node, 1, UNIT, "B");
  assert_int_equal(profile_info(profile).placed, 2);
  assert_int_equal(profile_info(profile).departures, 0);
  assert_int_equal(test_memory_statistics(t).profile_departures, 0);
  rondo_profile_destroy(profile);
}

/* On any device, work recorded with a profile computes the same as without. */
TEST(test_gm11_a_profile_changes_no_result) {
  uint32_t *out = test_words(t, 26 * READS);
  rondo_graph *online = record(t, &packs_badly, NULL, out);
  rondo_profile *profile = make_profile(online);
  rondo_graph *planned = record(t, &packs_badly, profile, out);
  run_and_check(t, planned, &packs_badly, out);
  rondo_profile_destroy(profile);
}

/* A profile outlives the graphs that use it, they outlive it, and clones are independent. */
TEST(test_gm20_clones_do_not_follow_a_profile) {
  uint32_t *out = test_words(t, 26 * READS);
  rondo_graph *online = record(t, &packs_badly, NULL, out), *graph = NULL, *clone = NULL;
  rondo_profile *profile = make_profile(online);
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .profile = profile};
  assert_ok(rondo_graph_create(t->device, &options, &graph));
  test_leave_kind(TEST_LEFT_GRAPH, graph, NULL);
  rondo_profile_destroy(profile);
  const test_allocation first = test_add_alloc(graph, NULL, 0, UNIT, "A");
  assert_ok(rondo_graph_clone(graph, &clone));
  test_leave_kind(TEST_LEFT_GRAPH, clone, NULL);
  const test_allocation cloned = test_add_alloc(clone, NULL, 0, UNIT, "B"),
                        own = test_add_alloc(graph, NULL, 0, UNIT, "B");
  assert_true(cloned.words != own.words && cloned.words != first.words && own.words != first.words);
}

/* A dump with its addresses is as good as the graph, a dump without is refused. */
TEST(test_gm11_a_dump_is_profiled) {
  if (test_is_guarded(t)) skip();
  uint32_t *out = test_words(t, 26 * READS);
  rondo_graph *online = record(t, &packs_badly, NULL, out), *read = NULL;
  rondo_profile *profile = NULL;
  for (int with_addresses = 0; with_addresses < 2; with_addresses++) {
    char *text = NULL;
    assert_ok(rondo_graph_to_json(online, with_addresses == 1, &text));
    const rondo_status status = rondo_graph_from_json(text, strlen(text), &read);
    rondo_text_free(text);
    if (status == RONDO_UNSUPPORTED) break; /* built without the reader */
    assert_ok(status);
    if (with_addresses == 0)
      assert_fails(rondo_profile_create(read, NULL, &profile), RONDO_INVALID_ARGUMENT);
    else
      assert_ok(rondo_profile_create(read, &planning, &profile));
    test_graph_destroy(read);
  }
  if (profile != NULL) {
    rondo_graph *planned = record(t, &packs_badly, profile, out);
    assert_int_equal(profile_info(profile).placed, 4);
    test_graph_destroy(planned);
  }
  rondo_profile_destroy(profile);
}

TEST(test_gm18_misuse_of_profiles) {
  rondo_graph *graph = test_graph(t), *other = (rondo_graph *)t;
  rondo_profile *profile = (rondo_profile *)t;
  rondo_profile_info info = {.struct_size = sizeof info};
  assert_invalid(rondo_profile_create(NULL, NULL, &profile), RONDO_REASON_NULL_ARGUMENT);
  assert_null(profile);
  assert_invalid(rondo_profile_create(graph, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_profile_get_info(NULL, &info), RONDO_REASON_NULL_ARGUMENT);
  const test_allocation memory = test_add_alloc(graph, NULL, 0, UNIT, "backwards");
  const rondo_node freed = test_add_free(graph, (rondo_node){0}, memory.words);
  assert_ok(rondo_graph_add_edges(graph, &freed, &memory.node, 1));
  assert_error(rondo_profile_create(graph, NULL, &profile), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
  assert_message("backwards");
  rondo_graph *empty = test_graph(t);
  profile = make_profile(empty);
  assert_int_equal(profile_info(profile).peak, 0);
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .profile = profile, .relocate = true};
  assert_invalid(rondo_graph_create(t->device, &options, &other), RONDO_REASON_BAD_OPTIONS);
  assert_null(other);
  assert_fails(rondo_device_close(t->device), RONDO_INVALID_STATE); /* the profile is the device's */
  rondo_profile_destroy(profile);
  rondo_profile_destroy(NULL);
}

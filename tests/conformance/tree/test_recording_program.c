/* SPDX-License-Identifier: MIT
 * Recording a program that runs in batches: from the second batch on (RC-4), fed and fetched outside of the capture
 * (RC-5), with a learning rate that changes (RC-6), host decisions that are refused by name (RC-8), a smaller last
 * batch, background work and freed host memory (RC-9).
 */
#include "support/foreign_library.h"
#include "support/rondo_test.h"
#include "support/test_program.h"

#include <string.h>

enum { ROWS = 32, BATCHES = 6, LAST_ROWS = 20 };

/* A program by hand: sum = sum * 31 + out, where out = in * 3 + 1, for any number of rows. */
typedef struct program {
  test_fixture *t;
  rondo_recording *recording;
  uint32_t *in, *out, *sum;
  uint32_t expected[ROWS]; /* of the sum */
} program;

static program make_program(test_fixture *t) {
  program made = {.t = t, .in = test_words(t, ROWS), .out = test_words(t, ROWS), .sum = test_words(t, ROWS)};
  const rondo_recording_options options = {RONDO_RECORDING_OPTIONS_INIT, .name = "batch"};
  made.recording = test_recording(t, &options);
  return made;
}

/* Through scratch memory, of stream order while it runs and of the graph while it is captured. */
static void run(program *p, uint32_t rows) {
  test_fixture *t = p->t;
  void *scratch = test_allocate_async(t->stream, ROWS * sizeof(uint32_t));
  assert_ok(rondo_copy_async(t->stream, scratch, p->in, rows * sizeof(uint32_t)));
  test_affine(t, t->stream, scratch, rows, 3, 1);
  assert_ok(rondo_copy_async(t->stream, p->out, scratch, rows * sizeof(uint32_t)));
  assert_ok(rondo_free_async(t->stream, scratch));
  assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){.x = rows},
                         RONDO_ARGS(&p->sum, &p->out, &p->sum)));
}

static void write_input(program *p, uint32_t batch, uint32_t rows) {
  uint32_t values[ROWS];
  for (uint32_t i = 0; i < rows; i++) {
    values[i] = batch * 1000 + i;
    p->expected[i] = p->expected[i] * 31 + values[i] * 3 + 1;
  }
  test_write(p->t, p->in, values, rows * sizeof *values);
}

static void begin(program *p) {
  assert_ok(rondo_recording_capture_begin(p->recording, p->t->stream, RONDO_CAPTURE_THREAD_LOCAL));
}

static void end(program *p) { assert_ok(rondo_recording_capture_end(p->recording, p->t->stream)); }
static void replay(program *p) { assert_ok(rondo_recording_replay(p->recording, p->t->stream)); }

static void refuse_end(program *p, rondo_status status, rondo_reason reason) {
  assert_error(rondo_recording_capture_end(p->recording, p->t->stream), status, reason);
  assert_message("recording 'batch'");
  assert_null(rondo_recording_exec(p->recording));
}

static void assert_sum(program *p) { assert_words(p->t, p->sum, p->expected, ROWS); }

/* Batches --------------------------------------------------------------------------------------------------------- */

/* RC-4: the first batch runs, the second is captured and then replayed, and those after it replayed; RC-9: the last,
 * shorter one runs, in between replays too. */
TEST(test_rc4_recorded_from_the_second_batch_on) {
  program p = make_program(t);
  for (uint32_t batch = 0; batch < BATCHES; batch++) {
    const bool is_short = batch == 3 || batch == BATCHES - 1;
    write_input(&p, batch, is_short ? LAST_ROWS : ROWS);
    if (batch == 0 || is_short) {
      run(&p, is_short ? LAST_ROWS : ROWS);
    } else {
      if (batch == 1) {
        begin(&p);
        run(&p, ROWS);
        end(&p);
      }
      replay(&p);
    }
    assert_sum(&p);
  }
}

/* RC-4: without the replay the captured batch was not run. */
TEST(test_rc4_a_captured_batch_is_not_run) {
  program p = make_program(t);
  write_input(&p, 0, ROWS);
  run(&p, ROWS);
  begin(&p);
  run(&p, ROWS);
  end(&p);
  assert_sum(&p);
  write_input(&p, 1, ROWS);
  replay(&p);
  assert_sum(&p);
}

/* RC-9: the runtime's own work does not get into the recording, although the capture begins with the first work:
 * freeing memory of pools, retired graphs, recreated kernels and events, and another thread's work. */
static void keep_house(void *user) {
  test_fixture *t = user;
  void *address = NULL;
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  rondo_stream *stream = NULL;
  rondo_status status = rondo_capture_exchange_thread_mode(&mode);
  if (status == RONDO_OK) status = rondo_stream_create(t->device, NULL, &stream);
  if (status == RONDO_OK) status = rondo_malloc_async(stream, 1 << 20, NULL, &address);
  if (status == RONDO_OK) status = rondo_free_async(stream, address);
  if (status == RONDO_OK) status = rondo_stream_synchronize(stream);
  if (status == RONDO_OK) status = rondo_graph_memory_trim(t->device);
  assert_int_equal(status, RONDO_OK);
  assert_int_equal(rondo_stream_destroy(stream), RONDO_OK);
}

TEST(test_rc9_house_keeping_is_not_recorded) {
  program p = make_program(t);
  void *address = NULL;
  rondo_event *event = test_event(t);
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 4096, "retired", &address, &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, address, &node));
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_malloc_async(t->stream, 1 << 20, NULL, &address));
  assert_ok(rondo_free_async(t->stream, address));
  begin(&p);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  rondo_event_destroy(event);
  test_on_thread(keep_house, t);
  run(&p, ROWS);
  end(&p);
  rondo_recording_info info = test_recording_info(p.recording);
  assert_int_equal(info.node_count, 6); /* alloc, copy, kernel, copy, free, kernel */
  write_input(&p, 4, ROWS);
  replay(&p);
  assert_sum(&p);
}

/* Feeding and fetching -------------------------------------------------------------------------------------------- */

/* RC-5: host memory of nobody knows whom, to read and to write; each time with the remedy. */
TEST(test_rc5_feeding_while_capturing_is_refused) {
  program p = make_program(t);
  static uint32_t feed[ROWS], fetch[ROWS];
  for (int i = 0; i < 3; i++) {
    begin(&p);
    if (i == 0) assert_ok(rondo_copy_async(p.t->stream, p.in, feed, sizeof feed));
    run(&p, ROWS);
    if (i == 1) assert_ok(rondo_copy_async(p.t->stream, fetch, p.out, sizeof fetch));
    if (i == 2) assert_fails(rondo_stream_synchronize(p.t->stream), RONDO_CAPTURE_REFUSED);
    if (i < 2) {
      refuse_end(&p, RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_MEMORY);
      assert_message(i == 0 ? "reads host memory" : "writes host memory");
      assert_message("allocated before it");
      assert_int_not_equal(rondo_last_error()->node, RONDO_NO_NODE);
    } else {
      refuse_end(&p, RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
      assert_message("rondo_stream_synchronize");
      assert_message("inputs and outputs must be in memory that is allocated before the capture");
    }
  }
  begin(&p);
  run(&p, ROWS);
  end(&p);
  write_input(&p, 1, ROWS);
  replay(&p);
  assert_sum(&p);
}

/* RC-5: also in the memory of a child graph. */
TEST(test_rc5_copies_in_child_graphs) {
  program p = make_program(t);
  static uint32_t feed[ROWS];
  rondo_graph *graph = test_graph(p.t);
  rondo_node node;
  const rondo_copy copy = {.dst = p.in, .src = feed, .width = sizeof feed};
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &copy, &node));
  rondo_exec *exec = test_instantiate(graph);
  begin(&p);
  assert_ok(rondo_exec_launch(exec, p.t->stream));
  refuse_end(&p, RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_MEMORY);
}

/* Memory of the library's, or that the caller promises to keep: its contents at each replay count. */
TEST(test_rc5_host_memory_that_lasts) {
  program p = make_program(t);
  static uint32_t foreign[ROWS];
  void *own = NULL;
  assert_ok(rondo_host_malloc(p.t->device, sizeof foreign, &own));
  for (int i = 0; i < 2; i++) {
    uint32_t *feed = i == 0 ? own : foreign;
    assert_ok(rondo_recording_destroy(p.recording));
    const rondo_recording_options options = {RONDO_RECORDING_OPTIONS_INIT, .lasting_host_memory = i == 1};
    p.recording = test_recording(p.t, &options);
    begin(&p);
    assert_ok(rondo_copy_async(p.t->stream, p.in, feed, sizeof foreign));
    run(&p, ROWS);
    end(&p);
    for (uint32_t batch = 0; batch < 3; batch++) {
      for (uint32_t k = 0; k < ROWS; k++) {
        feed[k] = batch * 77 + k;
        p.expected[k] = p.expected[k] * 31 + feed[k] * 3 + 1;
      }
      replay(&p);
      assert_sum(&p);
    }
  }
  rondo_recording_reset(p.recording);
  assert_ok(rondo_host_free(p.t->device, own));
}

/* RC-5: memory that others have page-locked is known to a driver, where there is one. */
TEST(test_rc5_page_locked_memory_of_others) {
  program p = make_program(t);
  void *feed = NULL;
  const uint32_t values[ROWS] = {5};
  rondo_device *other = test_device(test_device_name(), NULL);
  assert_ok(rondo_host_malloc(other, sizeof values, &feed));
  memcpy(feed, values, sizeof values);
  begin(&p);
  assert_ok(rondo_copy_async(p.t->stream, p.in, feed, sizeof values));
  if (test_device_is("cuda")) {
    end(&p);
    replay(&p);
    assert_words(p.t, p.in, values, ROWS);
  } else {
    refuse_end(&p, RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_MEMORY);
  }
  rondo_recording_reset(p.recording);
  assert_ok(rondo_host_free(other, feed));
}

/* RC-5: memory that a library allocates during a capture is not host memory, although it may have no pages yet. */
TEST(test_rc5_memory_of_libraries) {
  program p = make_program(t);
  void *native = rondo_stream_native(p.t->stream), *memory = NULL;
  foreign_library *library = test_device_is("cuda") ? foreign_open() : NULL;
  if (library == NULL) {
    skip();
  }
  begin(&p);
  assert_int_equal(foreign_allocate(library, native, 4096, &memory), 0);
  assert_int_equal(foreign_copy(library, native, memory, p.in, ROWS * sizeof(uint32_t)), 0);
  assert_int_equal(foreign_copy(library, native, p.out, memory, ROWS * sizeof(uint32_t)), 0);
  assert_int_equal(foreign_free(library, native, memory), 0);
  end(&p);
  assert_int_equal(test_recording_info(p.recording).foreign_bytes, 4096);
  write_input(&p, 3, ROWS);
  replay(&p);
  assert_int_equal(test_word(p.t, p.out + 2), 3002);
  foreign_close(library);
}

/* RC-9: the replay detects it, names the node, and does nothing. Other host memory may be allocated and freed. */
TEST(test_rc9_host_memory_freed_after_the_capture) {
  program p = make_program(t);
  uint32_t *feed = NULL, *unrelated = NULL;
  assert_ok(rondo_host_malloc(p.t->device, ROWS * sizeof(uint32_t), (void **)&feed));
  assert_ok(rondo_host_malloc(p.t->device, ROWS * sizeof(uint32_t), (void **)&unrelated));
  for (uint32_t i = 0; i < ROWS; i++) {
    feed[i] = i;
    p.expected[i] = i * 3 + 1;
  }
  begin(&p);
  run(&p, ROWS); /* so that the copy is not the first node */
  assert_ok(rondo_recording_capture_end(p.recording, p.t->stream));
  rondo_recording_reset(p.recording);
  begin(&p);
  assert_ok(rondo_fill_async(p.t->stream, &(rondo_fill){.dst = p.out, .element_bytes = 4, .width = ROWS}));
  assert_ok(rondo_copy_async(p.t->stream, p.in, feed + 1, (ROWS - 1) * sizeof(uint32_t)));
  assert_ok(rondo_copy_async(p.t->stream, p.in, feed, ROWS * sizeof(uint32_t)));
  run(&p, ROWS);
  end(&p);
  replay(&p);
  assert_sum(&p);
  assert_ok(rondo_host_free(p.t->device, unrelated));
  for (uint32_t i = 0; i < ROWS; i++) p.expected[i] = p.expected[i] * 31 + i * 3 + 1;
  replay(&p);
  assert_sum(&p);
  assert_ok(rondo_host_free(p.t->device, feed));
  for (int i = 0; i < 2; i++) {
    assert_error(rondo_recording_replay(p.recording, p.t->stream), RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE);
    assert_int_equal(rondo_last_error()->node, 1);
    assert_message("128 B of rondo_host_malloc");
  }
  assert_sum(&p);
  rondo_recording_reset(p.recording);
  begin(&p);
  run(&p, ROWS);
  end(&p);
  write_input(&p, 9, ROWS);
  replay(&p);
  assert_sum(&p);
}

/* RC-9: freed during the capture. */
TEST(test_rc9_host_memory_freed_while_capturing) {
  program p = make_program(t);
  void *feed = NULL;
  assert_ok(rondo_host_malloc(p.t->device, ROWS * sizeof(uint32_t), &feed));
  assert_ok(rondo_recording_capture_begin(p.recording, p.t->stream, RONDO_CAPTURE_RELAXED));
  assert_ok(rondo_copy_async(p.t->stream, p.in, feed, ROWS * sizeof(uint32_t)));
  assert_ok(rondo_host_free(p.t->device, feed));
  refuse_end(&p, RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_MEMORY);
  assert_message("rondo_host_free");
}

/* Numbers that change --------------------------------------------------------------------------------------------- */

/* RC-6: y += rate * x, where the rate is a word in device memory that the kernel reads. */
TEST(test_rc6_a_schedule_in_a_cell) {
  program p = make_program(t);
  uint32_t *rate = test_words(t, 1), expected = 0, seen[1];
  begin(&p);
  assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){.x = 1},
                         RONDO_ARGS(&p.sum, &rate, &p.sum)));
  end(&p);
  for (uint32_t step = 1; step < 8; step++) {
    const uint32_t scheduled = 100 / step;
    test_write(t, rate, &scheduled, sizeof scheduled);
    replay(&p);
    expected = expected * 31 + scheduled;
    test_read(t, seen, p.sum, sizeof seen);
    assert_int_equal(seen[0], expected);
  }
}

/* As many numbers as there are rows, drawn plain or by a replay. */
static void draw(program *p, rondo_generator *generator, bool plain, float out[ROWS]) {
  void *words = p->in;
  if (plain)
    assert_ok(rondo_random_uniform(generator, p->t->stream, words, ROWS, 0, 1));
  else
    replay(p);
  test_read(p->t, out, words, ROWS * sizeof *out);
}

/* TR-13: plain runs and replays draw on from one another, and capturing draws nothing. */
TEST(test_replays_draw_as_eager_runs) {
  program p = make_program(t);
  rondo_generator *generator = NULL;
  float plain[4][ROWS], mixed[4][ROWS];
  const rondo_generator_options options = {RONDO_GENERATOR_OPTIONS_INIT, .seed = 5};
  assert_ok(rondo_generator_create(p.t->device, &options, &generator));
  for (int i = 0; i < 4; i++) draw(&p, generator, true, plain[i]);
  assert_ok(rondo_generator_seed(generator, 5));
  draw(&p, generator, true, mixed[0]);
  begin(&p);
  assert_ok(rondo_random_uniform(generator, p.t->stream, (float *)(void *)p.in, ROWS, 0, 1));
  end(&p);
  draw(&p, generator, false, mixed[1]);
  draw(&p, generator, true, mixed[2]);
  draw(&p, generator, false, mixed[3]);
  assert_memory_equal(mixed, plain, sizeof plain);
  rondo_generator_destroy(generator);
}

enum { WIDTH = 4, FEED = 8 };

/* loss = cross entropy of x w, trained with SGD at the rate of a cell. */
static rondo_compiled *make_model(test_fixture *t) {
  const size_t inputs[] = {FEED, WIDTH}, labels[] = {FEED}, weights[] = {WIDTH, WIDTH};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER};
  float w[WIDTH * WIDTH];
  rondo_value x, y, state, rate, loss;
  rondo_program *source = test_new_program();
  assert_ok(rondo_program_input(source, "x", RONDO_F32, inputs, 2, &x));
  assert_ok(rondo_program_input(source, "y", RONDO_I32, labels, 1, &y));
  assert_ok(rondo_program_state(source, "w", RONDO_F32, weights, 2, &state));
  assert_ok(rondo_program_cell(source, "rate", 0, &rate));
  assert_ok(rondo_op_matmul(source, x, state, (rondo_value){0}, &loss));
  assert_ok(rondo_op_cross_entropy(source, loss, y, &loss));
  assert_ok(rondo_program_output(source, "loss", loss));
  assert_ok(rondo_program_sgd(source, loss, &(rondo_sgd_options){RONDO_SGD_OPTIONS_INIT, .learning_rate = rate}));
  rondo_compiled *compiled = test_compile(source, t->device, &options);
  for (int i = 0; i < WIDTH * WIDTH; i++) w[i] = (float)(i % 5) * 0.25f - 0.5f;
  assert_ok(rondo_compiled_write(compiled, "w", w, sizeof w));
  return compiled;
}

static void write_batch(rondo_compiled *compiled, uint32_t batch) {
  float x[FEED * WIDTH];
  int32_t y[FEED];
  const float rate = 1.0f / (float)(batch + 1);
  for (uint32_t i = 0; i < FEED * WIDTH; i++) x[i] = (float)((i * 7 + batch * 3) % 11) * 0.125f;
  for (uint32_t i = 0; i < FEED; i++) y[i] = (int32_t)((i + batch) % WIDTH);
  assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
  assert_ok(rondo_compiled_write(compiled, "y", y, sizeof y));
  assert_ok(rondo_compiled_write(compiled, "rate", &rate, sizeof rate));
}

/* While its stream captures, values of the program are neither written nor read, and the capture continues (RC-5). */
static void refuse_values(rondo_compiled *compiled) {
  float value = 1;
  assert_error(rondo_compiled_write(compiled, "rate", &value, sizeof value), RONDO_CAPTURE_REFUSED,
               RONDO_REASON_UNSUPPORTED_CALL);
  assert_message("'rate'");
  assert_error(rondo_compiled_read(compiled, "loss", &value, sizeof value), RONDO_CAPTURE_REFUSED,
               RONDO_REASON_UNSUPPORTED_CALL);
}

/* RC-4, RC-5, RC-6: one run of a compiled program, recorded from the second batch on with a rate that falls, has the
 * bits of the same batches that run eagerly. */
TEST(test_rc4_rc6_a_compiled_program) {
  program p = make_program(t);
  rondo_compiled *recorded = make_model(p.t), *plain = make_model(p.t);
  float losses[2], weights[2][WIDTH * WIDTH];
  for (uint32_t batch = 0; batch < BATCHES; batch++) {
    write_batch(recorded, batch);
    write_batch(plain, batch);
    assert_ok(rondo_compiled_run(plain));
    if (batch == 0) {
      assert_ok(rondo_compiled_run(recorded));
    } else {
      rondo_stream *stream = rondo_compiled_stream(recorded);
      if (batch == 1) {
        assert_ok(rondo_recording_capture_begin(p.recording, stream, RONDO_CAPTURE_THREAD_LOCAL));
        refuse_values(recorded);
        assert_ok(rondo_compiled_run(recorded));
        assert_ok(rondo_recording_capture_end(p.recording, stream));
      }
      assert_ok(rondo_recording_replay(p.recording, stream));
    }
    assert_ok(rondo_compiled_read(recorded, "loss", &losses[0], sizeof losses[0]));
    assert_ok(rondo_compiled_read(plain, "loss", &losses[1], sizeof losses[1]));
    assert_memory_equal(&losses[0], &losses[1], sizeof losses[0]);
  }
  assert_ok(rondo_compiled_read(recorded, "w", weights[0], sizeof weights[0]));
  assert_ok(rondo_compiled_read(plain, "w", weights[1], sizeof weights[1]));
  assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
  rondo_recording_reset(p.recording);
}

/* Decisions ------------------------------------------------------------------------------------------------------- */

/* RC-8: each by its name, with its remedy; outside of captures they are no matter. */
TEST(test_rc8_decisions_of_the_host) {
  static const struct {
    rondo_decision decision;
    const char *what, *remedy;
  } rows[] = {{RONDO_DECISION_CONDITIONAL, "a conditional, 'found_inf'", "record each branch separately"},
              {RONDO_DECISION_LOOP, "a loop that values end, 'found_inf'", "record the body of the loop"},
              {RONDO_DECISION_LOSS_SCALE, "a loss scale that changes, 'found_inf'", "in a cell of device memory"}};
  program p = make_program(t);
  rondo_stream *stream = p.t->stream;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_ok(rondo_recording_note_decision(stream, rows[i].decision, "found_inf"));
    begin(&p);
    run(&p, ROWS);
    assert_error(rondo_recording_note_decision(stream, rows[i].decision, "found_inf"), RONDO_UNSUPPORTED,
                 RONDO_REASON_HOST_DECISION);
    assert_message("would keep one outcome for all replays. The capture is now invalid");
    assert_message(rows[i].what);
    assert_message(rows[i].remedy);
    assert_fails(rondo_recording_note_decision(stream, rows[i].decision, NULL), RONDO_CAPTURE_INVALID);
    refuse_end(&p, RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
    assert_message(rows[i].what);
  }
  assert_reason(rondo_recording_note_decision(stream, (rondo_decision)0, NULL), RONDO_REASON_BAD_OPTIONS);
  assert_message("0 is not a decision: use a RONDO_DECISION_ name");
  assert_reason(rondo_recording_note_decision(NULL, RONDO_DECISION_LOOP, NULL), RONDO_REASON_NULL_ARGUMENT);
}

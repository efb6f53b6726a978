/* SPDX-License-Identifier: MIT
 * Bodies with host steps (TR-14), after the graph-partition tests of PyTorch's CUDAGraph Trees, whose names and numbers
 * the tests have. The peer's compiler divides a program at operations of the host; Rondo's bodies mark host steps, and
 * the work between them is recorded. In assert_seen, each letter is a call: e eager, r recorded, p replayed.
 */
#include <string.h>

#include "support/test_scene.h"

/* The data of host steps: host memory that earlier work wrote, and a count. */
typedef struct host_work {
  test_scene *scene;
  uint32_t steps, runs, step_limit;
  uint32_t words[SCENE_WORDS], sum;
} host_work;

static rondo_status add_up(void *user) {
  host_work *host = user;
  host->steps++;
  host->sum = 0;
  for (int i = 0; i < SCENE_WORDS; i++) host->sum += host->words[i];
  return RONDO_OK;
}

/* a = x * 2; the host sums a; out = a + 1, through memory from before the step. */
static rondo_status hop_body(rondo_call *call, void *user) {
  host_work *host = user;
  rondo_stream *stream = rondo_call_stream(call);
  host->runs++;
  void *scratch = test_allocate_async(stream, SCENE_BYTES);
  assert_ok(rondo_copy_async(stream, scratch, scene_input(call, 0), SCENE_BYTES));
  scene_change(call, scratch, 2, 0);
  assert_ok(rondo_copy_async(stream, host->words, scratch, SCENE_BYTES));
  assert_ok(rondo_call_host_step(call, add_up, host));
  scene_put(call, 0, scratch, 1, 1);
  return rondo_free_async(stream, scratch);
}

static rondo_function *make_hop(test_scene *s, host_work *host) {
  *host = (host_work){.scene = s};
  return SCENE_FUNCTION(s, "hop", hop_body, host, RONDO_INPUTS(RONDO_INPUT_MOVING));
}

static void call_hop(test_scene *s, rondo_function *f, host_work *host, uint32_t first) {
  const uint32_t steps = host->steps;
  rondo_buffer *out = scene_call(s, f, scene_at(scene_words(s, first)));
  assert_int_equal(host->steps, steps + 1);
  assert_int_equal(host->sum, 2 * (SCENE_WORDS * first + SCENE_WORDS * (SCENE_WORDS - 1) / 2));
  assert_counts(s, out, 2 * first + 1, 2);
  rondo_buffer_release(out);
}

/* 158 test_graph_partition, 164 ..._index_put_cpu_indices, 201 ..._simple, 211 ..._item, 112
 * test_incompatible_cudagraph_ops_item, 27 test_index_put_boolean_fallback_partitions_cudagraphs, 193
 * ..._custom_op_mutation_late_free: the host reads a result in the middle; five calls are right, the body runs twice,
 * and memory lives across the step. */
SCENE_TEST(test_tr14_peer_158_the_host_in_the_middle) {
  host_work host;
  rondo_function *f = make_hop(s, &host);
  for (uint32_t i = 0; i < 6; i++) call_hop(s, f, &host, 10 * i);
  assert_seen(s, "erpppp");
  assert_int_equal(host.runs, 2);
  assert_int_equal(scene_info(s).recordings, 1);
  assert_int_equal(scene_info(s).live_outputs, 0);
}

/* out = input * 3. */
static rondo_status put_tripled(rondo_call *call, const host_work *host, rondo_input input) {
  void *out;
  assert_ok(rondo_call_output(call, 0, input.bytes, NULL, &out));
  assert_ok(rondo_copy_async(rondo_call_stream(call), out, input.address, input.bytes));
  test_affine(host->scene->fixture, rondo_call_stream(call), out, input.bytes / sizeof(uint32_t), 3, 0);
  return RONDO_OK;
}

/* 189 test_graph_partition_cpu_op_and_dynamic_shapes, 194 ..._custom_op_dynamoc_shapes: two forms, each in segments. */
static rondo_status sized_body(rondo_call *call, void *user) {
  host_work *host = user;
  rondo_input input;
  host->runs++;
  assert_ok(rondo_call_get_input(call, 0, &input));
  assert_ok(rondo_copy_async(rondo_call_stream(call), host->words, input.address, input.bytes));
  assert_ok(rondo_call_host_step(call, add_up, host));
  return put_tripled(call, host, input);
}
SCENE_TEST(test_tr14_peer_189_194_forms_in_segments) {
  host_work host = {.scene = s};
  rondo_function *f = SCENE_FUNCTION(s, "f", sized_body, &host, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (size_t i = 0; i < 12; i++) {
    rondo_buffer *out;
    const size_t words = (size_t)8 << i % 3;
    for (size_t k = 0; k < SCENE_WORDS; k++) host.words[k] = 0;
    SCENE_CALL(s, f, &out, 1, {.address = (void *)(uintptr_t)x, .bytes = words * sizeof *x});
    assert_int_equal(host.sum, words * (words + 1) / 2);
    test_assert_buffer(s->fixture, out, 3, 3);
    rondo_buffer_release(out);
  }
  assert_seen(s, "eeerrrpppppp");
  assert_int_equal(host.runs, 6);
}

/* 159 test_graph_partition_device_put_fallback, 160 to 163 ..._cross_device_...: each call reads the host's data again,
 * with a recorded copy from memory that the host step filled. */
static rondo_status fill_words(void *user) {
  host_work *host = user;
  host->steps++;
  for (uint32_t i = 0; i < SCENE_WORDS; i++) host->words[i] = 100 * host->steps + i;
  return RONDO_OK;
}
static rondo_status from_host_body(rondo_call *call, void *user) {
  host_work *host = user;
  host->runs++;
  assert_ok(rondo_call_host_step(call, fill_words, host));
  void *words = test_allocate_async(rondo_call_stream(call), SCENE_BYTES);
  assert_ok(rondo_copy_async(rondo_call_stream(call), words, host->words, SCENE_BYTES));
  scene_combine(call, 0, scene_input(call, 0), words);
  return rondo_free_async(rondo_call_stream(call), words);
}
SCENE_TEST(test_tr14_peer_159_to_163_from_the_host) {
  host_work host = {.scene = s};
  rondo_function *f = SCENE_FUNCTION(s, "f", from_host_body, &host, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (uint32_t i = 1; i <= 5; i++) {
    scene_check(s, f, scene_at(x), 31 + 100 * i, 32);
  }
  assert_seen(s, "erppp");
  assert_int_equal(host.steps, 5);
}

/* 28 test_index_put_boolean_mutation_across_partitions, 29 ..._mutation_with_cudagraph_unsafe, 192
 * ..._custom_op_mutation: a buffer is written by a segment, by the host, and read by the next segment. */
static rondo_status change_words(void *user) {
  host_work *host = user;
  host->steps++;
  for (uint32_t i = 0; i < SCENE_WORDS; i++) host->words[i] += 1000;
  return RONDO_OK;
}
static rondo_status mutate_body(rondo_call *call, void *user) {
  host_work *host = user;
  host->runs++;
  uint32_t *cell = scene_input(call, 1);
  scene_change(call, cell, 2, 0);
  assert_ok(rondo_copy_async(rondo_call_stream(call), host->words, cell, SCENE_BYTES));
  assert_ok(rondo_call_host_step(call, change_words, host));
  assert_ok(rondo_copy_async(rondo_call_stream(call), cell, host->words, SCENE_BYTES));
  scene_change(call, cell, 1, 3);
  assert_ok(rondo_call_host_step(call, add_up, host));
  scene_combine(call, 0, scene_input(call, 0), cell);
  return RONDO_OK;
}
/* Calls a function of mutate_body on a cell that begins as 0; each call takes two host steps. */
static void call_mutate(test_scene *s, rondo_function *f, const host_work *host, uint32_t calls) {
  uint32_t *cell = scene_words(s, 0), first = 0, step = 1;
  for (uint32_t i = 0; i < calls; i++) {
    rondo_buffer *out;
    SCENE_CALL(s, f, &out, 1, scene_at(scene_words(s, i)), scene_at(cell));
    first = first * 2 + 1003;
    step *= 2;
    scene_assert_words(s, cell, first, step);
    assert_counts(s, out, 31 * i + first, 31 + step);
    assert_int_equal(host->steps, 2 * (i + 1));
    rondo_buffer_release(out);
  }
}
SCENE_TEST(test_tr14_peer_28_29_192_written_across_segments) {
  static const uint32_t kinds[] = {RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED, RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED};
  for (int way = 0; way < 2; way++) {
    host_work host = {.scene = s};
    const uint32_t inputs[] = {RONDO_INPUT_MOVING, kinds[way]};
    rondo_function *f = SCENE_FUNCTION(s, "f", mutate_body, &host, .inputs = inputs, .input_count = 2);
    call_mutate(s, f, &host, 5);
    assert_seen(s, "erppp");
  }
}

static rondo_function *make_training(test_scene *s, host_work *host, rondo_function **out_backward) {
  *out_backward = SCENE_FUNCTION(s, "backward", test_body_affine, scene_work(s, 5, 2), .kind = RONDO_FUNCTION_BACKWARD,
                                 RONDO_INPUTS(RONDO_INPUT_MOVING));
  return SCENE_FUNCTION(s, "forward", hop_body, host, .kind = RONDO_FUNCTION_FORWARD, RONDO_INPUTS(RONDO_INPUT_MOVING));
}

/* 178 test_graph_partition_forward_backward, 179 to 183 (values), 186 ..._forward_backward_not_called: a forward with a
 * host step, and a backward that reads what its segments produced; one forward in two has none. */
SCENE_TEST(test_tr14_peer_178_to_183_forward_and_backward) {
  host_work host = {.scene = s};
  rondo_function *backward, *forward = make_training(s, &host, &backward);
  for (uint32_t i = 0; i < 5; i++) {
    rondo_buffer *unused = scene_call(s, forward, scene_at(scene_words(s, 50)));
    rondo_buffer *saved = scene_call(s, forward, scene_at(scene_words(s, i)));
    rondo_buffer *gradient = scene_call(s, backward, scene_of(saved));
    assert_counts(s, unused, 101, 2);
    assert_counts(s, gradient, 5 * (2 * i + 1) + 2, 10);
    rondo_buffer_release(unused);
    rondo_buffer_release(saved);
    rondo_buffer_release(gradient);
  }
  assert_seen(s, "eeerrrppppppppp");
  assert_int_equal(scene_info(s).recordings, 3);
  assert_int_equal(host.steps, 10);
}

/* 185 test_graph_partition_forward_with_skipped_cudagraphed_backward: the backward of a forward in segments is not
 * recorded, and ends the step all the same. */
SCENE_TEST(test_tr14_peer_185_the_backward_is_not_recorded) {
  host_work host = {.scene = s};
  rondo_function *backward, *forward = make_training(s, &host, &backward);
  assert_ok(rondo_function_set_recording(backward, false));
  for (uint32_t i = 0; i < 5; i++) {
    rondo_buffer *saved = scene_call(s, forward, scene_at(scene_words(s, i)));
    rondo_buffer *gradient = scene_call(s, backward, scene_given(saved));
    assert_skip(s->tree, DISABLED);
    assert_counts(s, gradient, 5 * (2 * i + 1) + 2, 10);
    rondo_buffer_release(gradient);
    assert_int_equal(scene_info(s).steps, i + 1);
    assert_int_equal(host.steps, i + 1);
  }
  assert_seen(s, "eerepepepe");
  assert_int_equal(scene_info(s).recordings, 1);
}

/* 197 test_graph_partition_reorder_cpu_and_gpu, 198 ..._interleave: the peer's compiler groups operations of the host,
 * so that fewer graphs result. Here only the device waits for the host work, and the body queues it as host functions:
 * they are nodes, and five parts in alternation are one segment. The memory that they change is pinned, because copies
 * queued after them read it. */
static void assert_segments(const test_scene *s, const char *expected) {
  char *text = NULL;
  assert_ok(rondo_tree_explain(s->tree, RONDO_EXPLAIN_JSON, &text));
  const bool is_there = strstr(text, expected) != NULL;
  rondo_text_free(text);
  assert_true(is_there);
}
static rondo_status interleaved_body(rondo_call *call, void *user) {
  host_work *host = user;
  rondo_stream *stream = rondo_call_stream(call);
  void *out;
  host->runs++;
  assert_ok(rondo_call_output(call, 0, SCENE_BYTES, NULL, &out));
  assert_ok(rondo_copy_async(stream, host->words, scene_input(call, 0), SCENE_BYTES));
  for (int i = 0; i < 2; i++) {
    assert_ok(rondo_host_async(stream, change_words, host));
    assert_ok(rondo_copy_async(stream, out, host->words, SCENE_BYTES));
    scene_change(call, out, 2, 0);
    assert_ok(rondo_copy_async(stream, host->words, out, SCENE_BYTES));
  }
  return RONDO_OK;
}
SCENE_TEST(test_tr14_peer_197_198_the_host_in_the_graph) {
  void *pinned;
  assert_ok(rondo_host_malloc(s->fixture->device, sizeof(host_work), &pinned));
  host_work *host = pinned;
  *host = (host_work){.scene = s};
  rondo_function *f = SCENE_FUNCTION(s, "f", interleaved_body, host, RONDO_INPUTS(RONDO_INPUT_MOVING));
  for (uint32_t i = 0; i < 5; i++) {
    rondo_buffer *out = scene_call(s, f, scene_at(scene_words(s, i)));
    assert_counts(s, out, 2 * (2 * (i + 1000) + 1000), 4);
    assert_int_equal(host->steps, 2 * (i + 1));
    rondo_buffer_release(out);
  }
  assert_seen(s, "erppp");
  assert_int_equal(host->runs, 2);
  assert_segments(s, "\"segments\":1,");
  assert_ok(rondo_host_free(s->fixture->device, pinned));
}

/* 199 test_graph_partition_reorder_custom_op_with_no_dependency, 200 ..._dependency1: work that must not be recorded
 * and depends on nothing is first in the body: one recording for each of two shapes, which a third call uses again. */
static rondo_status step_first_body(rondo_call *call, void *user) {
  host_work *host = user;
  rondo_input input;
  host->runs++;
  assert_ok(rondo_call_host_step(call, fill_words, host));
  assert_ok(rondo_call_get_input(call, 0, &input));
  return put_tripled(call, host, input);
}
SCENE_TEST(test_tr14_peer_199_200_the_step_comes_first) {
  host_work host = {.scene = s};
  rondo_function *f = SCENE_FUNCTION(s, "f", step_first_body, &host, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (uint32_t i = 0; i < 9; i++) {
    rondo_buffer *out;
    const size_t words = i % 3 == 1 ? 16 : 8;
    SCENE_CALL(s, f, &out, 1, {.address = (void *)(uintptr_t)x, .bytes = words * sizeof *x});
    test_assert_buffer(s->fixture, out, 3, 3);
    assert_int_equal(host.steps, i + 1);
    rondo_buffer_release(out);
  }
  assert_seen(s, "eerprpppp");
  assert_int_equal(scene_info(s).recordings, 2);
  assert_int_equal(host.runs, 4);
}

/* 203 test_graph_partition_condition_op: data decides which of two branches is taken. The caller reads the first
 * function's output and calls one of two others: a separate path each, for inputs of one size and of two. */
SCENE_TEST(test_tr2_peer_203_branches_by_data) {
  rondo_function *predicate = scene_affine(s, "predicate", 3, 1);
  rondo_function *branches[] = {scene_affine(s, "even", 2, 0), scene_affine(s, "odd", 5, 7)};
  uint32_t *x = scene_words(s, 0);
  for (uint32_t i = 0; i < 16; i++) {
    uint32_t word;
    rondo_buffer *made;
    scene_set(s, x, i);
    scene_begin(s);
    SCENE_CALL(s, predicate, &made, 1, {.address = x, .bytes = i < 8 ? SCENE_BYTES : SCENE_BYTES / 2});
    assert_ok(rondo_buffer_copy(made, s->stream, 0, &word, sizeof word));
    assert_ok(rondo_stream_synchronize(s->stream));
    assert_int_equal(word, 3 * i + 1);
    rondo_buffer *out = scene_call(s, branches[word % 2], scene_given(made));
    test_assert_buffer(s->fixture, out, word % 2 == 0 ? 2 * word : 5 * word + 7, word % 2 == 0 ? 6 : 15);
    rondo_buffer_release(out);
    scene_end(s);
  }
  assert_seen(s, "eereprprppppppppeereprprpppppppp");
  assert_int_equal(scene_info(s).recordings, 6);
  assert_int_equal(scene_info(s).roots, 2);
}

/* 184 test_graph_partition_cpu_only: a body that has only host steps. */
static rondo_status host_only_body(rondo_call *call, void *user) {
  host_work *host = user;
  host->runs++;
  assert_ok(rondo_call_host_step(call, fill_words, host));
  return rondo_call_host_step(call, add_up, host);
}
SCENE_TEST(test_tr14_peer_184_nothing_but_the_host) {
  host_work host = {.scene = s};
  rondo_function *f = SCENE_FUNCTION(s, "f", host_only_body, &host, .input_count = 0);
  for (uint32_t i = 0; i < 4; i++) {
    assert_ok(rondo_function_call(f, s->stream, NULL, 0, NULL, 0));
    assert_int_equal(host.steps, 2 * (i + 1));
  }
  assert_int_equal(host.runs, 2);
}

/* 191 test_graph_partition_custom_op, 45 ..._with_memory_plan_reuse, 212 ..._buffer_reuse: three segments whose memory
 * is used again from one to the next, and is no more than the largest needs. */
static rondo_status chain_body(rondo_call *call, void *user) {
  host_work *host = user;
  rondo_stream *stream = rondo_call_stream(call);
  void *from = scene_input(call, 0), *kept[3];
  host->runs++;
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_malloc_async(stream, SCENE_BYTES, NULL, &kept[i]));
    void *scratch = test_allocate_async(stream, SCENE_BYTES);
    assert_ok(rondo_copy_async(stream, scratch, from, SCENE_BYTES));
    scene_change(call, scratch, 2, 1);
    assert_ok(rondo_copy_async(stream, kept[i], scratch, SCENE_BYTES));
    assert_ok(rondo_free_async(stream, scratch));
    if (i > 0) assert_ok(rondo_free_async(stream, from));
    from = kept[i];
    if (i < 2) assert_ok(rondo_call_host_step(call, add_up, host));
  }
  scene_put(call, 0, from, 1, 0);
  return rondo_free_async(stream, from);
}
SCENE_TEST(test_tr14_peer_45_191_212_memory_of_segments) {
  host_work host = {.scene = s};
  rondo_function *f = SCENE_FUNCTION(s, "f", chain_body, &host, RONDO_INPUTS(RONDO_INPUT_MOVING));
  for (uint32_t i = 0; i < 5; i++) {
    scene_check(s, f, scene_at(scene_words(s, i)), 8 * i + 7, 8);
  }
  assert_seen(s, "erppp");
  assert_int_equal(host.steps, 10);
  if (!test_is_guarded(s->fixture)) assert_true(scene_info(s).arena_used <= 5 * 256);
}

/* 42 test_graph_partition_custom_rule: the peer's compiler has a list of operations that divide a graph. A body whose
 * host steps differ from those of its warm-up is CHANGED: it runs eagerly, and the next call records it. */
static rondo_status changing_body(rondo_call *call, void *user) {
  host_work *host = user;
  rondo_status status = RONDO_OK;
  host->runs++;
  scene_put(call, 0, scene_input(call, 0), 2, 0);
  for (uint32_t i = 0; status == RONDO_OK && i < host->step_limit; i++)
    status = rondo_call_host_step(call, add_up, host);
  return status;
}
SCENE_TEST(test_tr14_peer_42_host_steps_change) {
  host_work host = {.scene = s, .step_limit = 1};
  rondo_function *f = SCENE_FUNCTION(s, "f", changing_body, &host, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 5; i++) {
    if (i == 1) host.step_limit = 2;
    scene_check(s, f, scene_at(x), 2, 2);
    if (i == 1) assert_skip(s->tree, CHANGED);
  }
  assert_seen(s, "eerpp");
  assert_int_equal(scene_info(s).rolled_back, 1);
}

/* TR-15: a recording that is abandoned after its host steps has run none of them, nor the work before them: each runs
 * once in a call, also one that changes in place what it reads. */
static rondo_status refusing_body(rondo_call *call, void *user) {
  const host_work *host = user;
  const rondo_status status = mutate_body(call, user);
  if (status != RONDO_OK || host->runs != host->step_limit) return status;
  return rondo_call_refuse(call, RONDO_SKIP_UNSAFE, "the end");
}
SCENE_TEST(test_tr15_steps_are_taken_once_a_call) {
  host_work host = {.scene = s, .step_limit = 2};
  rondo_function *f = SCENE_FUNCTION(s, "f", refusing_body, &host,
                                     RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED));
  call_mutate(s, f, &host, 4);
  assert_seen(s, "eeee");
  assert_int_equal(scene_info(s).rolled_back, 1);
  assert_int_equal(host.runs, 5);
}

/* A step that fails is the call's failure, in each state; the next call is right. */
static rondo_status fail_step(void *user) {
  host_work *host = user;
  host->steps++;
  if (host->steps != host->step_limit) return RONDO_OK;
  void *address;
  return rondo_malloc(NULL, 1, NULL, &address);
}
static rondo_status failing_body(rondo_call *call, void *user) {
  host_work *host = user;
  host->runs++;
  const uint32_t *half = scene_put(call, 0, scene_input(call, 0), 2, 0);
  const rondo_status status = rondo_call_host_step(call, fail_step, host);
  if (status != RONDO_OK) return status;
  scene_put(call, 1, half, 1, 5);
  return RONDO_OK;
}
SCENE_TEST(test_tr14_steps_that_fail) {
  for (uint32_t at = 1; at <= 4; at++) {
    host_work host = {.scene = s, .step_limit = at};
    rondo_function *f = SCENE_FUNCTION(s, "f", failing_body, &host, RONDO_INPUTS(RONDO_INPUT_MOVING));
    const uint32_t *x = scene_words(s, 1);
    for (uint32_t i = 1; i <= 6; i++) {
      rondo_buffer *outs[2];
      if (i == at) {
        const rondo_input input = scene_at(x);
        assert_invalid(rondo_function_call(f, s->stream, &input, 1, outs, 2), RONDO_REASON_NULL_ARGUMENT);
        assert_null(outs[0]);
        assert_null(outs[1]);
        continue;
      }
      SCENE_CALL(s, f, outs, 2, scene_at(x));
      assert_counts(s, outs[0], 2, 2);
      assert_counts(s, outs[1], 7, 2);
      for (int k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
    }
    assert_outcome(s->tree, RONDO_CALL_REPLAYED);
    s->calls = 0;
  }
}

/* A step or a body that fails without a message still gets one, in each state, and not that of an older error with the
 * same status or another. */
static rondo_status fail_alone(void *user) {
  host_work *host = user;
  return ++host->steps == host->step_limit ? RONDO_NOT_FOUND : RONDO_OK;
}
static rondo_status body_failing_alone(rondo_call *call, void *user) {
  scene_put(call, 0, scene_input(call, 0), 2, 0);
  return rondo_call_host_step(call, fail_alone, user);
}
SCENE_TEST(test_tr14_steps_that_fail_without_words) {
  for (uint32_t at = 1; at <= 4; at++) {
    rondo_device *none;
    host_work host = {.scene = s, .step_limit = at};
    rondo_function *f = SCENE_FUNCTION(s, "wordless", body_failing_alone, &host, RONDO_INPUTS(RONDO_INPUT_MOVING));
    const uint32_t *x = scene_words(s, 1);
    for (uint32_t i = 1; i < at; i++) {
      rondo_buffer *out;
      SCENE_CALL(s, f, &out, 1, scene_at(x));
      rondo_buffer_release(out);
    }
    rondo_buffer *out;
    const rondo_input input = scene_at(x);
    if (at % 2 == 0) assert_fails(rondo_stream_synchronize(NULL), RONDO_INVALID_ARGUMENT);
    if (at % 2 != 0) assert_fails(rondo_device_open("no device", NULL, &none), RONDO_NOT_FOUND);
    assert_error(rondo_function_call(f, s->stream, &input, 1, &out, 1), RONDO_NOT_FOUND,
                 RONDO_REASON_HOST_FUNCTION_FAILED);
    assert_non_null(strstr(rondo_last_error()->message, "'wordless' returned NOT_FOUND"));
    s->calls = 0;
  }
}

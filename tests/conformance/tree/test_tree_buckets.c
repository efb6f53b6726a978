/* SPDX-License-Identifier: MIT
 * Padding to buckets (TR-7, and of lengths PR-5): inputs with rows are padded to the next bucket, whose recording runs,
 * and outputs are returned as their first rows. Inputs with a length are padded in their second dimension, too. In
 * assert_seen, each letter is a call: e eager, r recorded, p replayed.
 */
#include "support/test_scene.h"

enum { ROW = 3 };
static const size_t buckets[] = {4, 8, 16};

/* rows of ROW words: out = in * 3 + 1, with the same number of rows; and one word: a sum that shows the content of
 * padded rows. */
static rondo_status body(rondo_call *call, void *user) {
  test_work *work = scene_enter(user);
  rondo_input input;
  assert_ok(rondo_call_get_input(call, 0, &input));
  const rondo_output_options options = {RONDO_OUTPUT_OPTIONS_INIT, .rank = 2, .flags = RONDO_OUTPUT_ROWS,
                                        .shape = {input.shape[0], ROW}};
  const size_t words = input.bytes / sizeof(uint32_t);
  void *out, *whole;
  assert_int_equal(input.shape[0] * ROW, words);
  assert_ok(rondo_call_output(call, 0, input.bytes, &options, &out));
  assert_ok(rondo_copy_async(rondo_call_stream(call), out, input.address, input.bytes));
  test_affine(work->fixture, rondo_call_stream(call), out, words, 3, 1);
  assert_ok(rondo_call_output(call, 1, input.bytes, NULL, &whole));
  assert_ok(rondo_copy_async(rondo_call_stream(call), whole, input.address, input.bytes));
  if (work->factor != 0) test_affine(work->fixture, rondo_call_stream(call), input.address, words, work->factor, 0);
  return RONDO_OK;
}

static rondo_function *make(test_scene *s, uint32_t kind, uint32_t factor, uint32_t padding) {
  return SCENE_FUNCTION(s, "rows", body, scene_work(s, factor, 0), .inputs = &kind, .input_count = 1,
                        .buckets = buckets, .bucket_count = 3, .padding = padding);
}

static rondo_input rows_at(const uint32_t *words, size_t rows) {
  return (rondo_input){
      .address = (void *)(uintptr_t)words, .bytes = rows * ROW * sizeof *words, .rank = 2, .shape = {rows, ROW}};
}

/* Words of the output: the first rows; and the whole bucket as the body saw it. */
static void check(test_scene *s, rondo_buffer *outs[2], size_t rows, size_t bucket, uint32_t first, uint32_t padding) {
  uint32_t words[16 * ROW];
  rondo_buffer_info info = test_buffer_info(outs[0]);
  assert_int_equal(info.bytes, rows * ROW * sizeof words[0]);
  assert_int_equal(info.shape[0], rows);
  assert_ok(rondo_buffer_copy(outs[0], s->stream, 0, words, info.bytes));
  assert_ok(rondo_stream_synchronize(s->stream));
  for (uint32_t i = 0; i < rows * ROW; i++) assert_int_equal(words[i], 3 * (first + i) + 1);
  assert_ok(rondo_buffer_copy(outs[1], s->stream, 0, words, bucket * ROW * sizeof words[0]));
  assert_ok(rondo_stream_synchronize(s->stream));
  for (uint32_t i = 0; i < bucket * ROW; i++) assert_int_equal(words[i], i < rows * ROW ? first + i : padding);
}

static size_t bucket_of(size_t rows) { return rows <= 4 ? 4 : rows <= 8 ? 8 : rows <= 16 ? 16 : rows; }

static rondo_bucket_info bucket_info(const rondo_function *f, size_t index) {
  rondo_bucket_info info = {.struct_size = sizeof info};
  assert_ok(rondo_function_get_bucket(f, index, &info));
  return info;
}

static void call_rows(test_scene *s, rondo_function *f, size_t rows, uint32_t padding) {
  uint32_t *words = scene_words(s, (uint32_t)rows);
  rondo_buffer *outs[2];
  SCENE_CALL(s, f, outs, 2, rows_at(words, rows));
  check(s, outs, rows, bucket_of(rows), (uint32_t)rows, padding);
  for (size_t i = 0; i < 2; i++) rondo_buffer_release(outs[i]);
}

/* Ten sizes, three recordings. */
SCENE_TEST(test_tr7_sizes_share_a_buckets_recording) {
  static const uint32_t paddings[] = {0, 7};
  for (size_t p = 0; p < 2; p++) {
    rondo_function *f = make(s, RONDO_INPUT_MOVING | RONDO_INPUT_ROWS, 0, paddings[p]);
    static const size_t sizes[] = {3, 5, 9, 4, 8, 10, 1, 7, 2, 6};
    for (size_t i = 0; i < 10; i++) call_rows(s, f, sizes[i], paddings[p]);
    assert_seen(s, "eeerrrpppp");
    const rondo_function_info info = test_function_info(f);
    assert_int_equal(info.recordings, 3);
    assert_int_equal(info.shapes, 3);
    assert_int_equal(info.bodies, 6);
    const rondo_bucket_info four = bucket_info(f, 0), eight = bucket_info(f, 1), sixteen = bucket_info(f, 2);
    assert_true(four.rows == 4 && four.calls == 4 && four.given_rows == 10 && four.padded_rows == 6);
    assert_true(eight.rows == 8 && eight.calls == 4 && eight.given_rows == 26 && eight.padded_rows == 6);
    assert_true(sixteen.rows == 16 && sixteen.calls == 2 && sixteen.given_rows == 19 && sixteen.padded_rows == 13);
  }
}

/* Written rows are copied back to the caller's rows only. When prepared, a bucket replays immediately and nothing
 * counts. */
SCENE_TEST(test_tr7_rows_that_are_written) {
  rondo_function *f = make(s, RONDO_INPUT_MOVING | RONDO_INPUT_ROWS | RONDO_INPUT_MUTATED, 5, 0);
  for (uint32_t i = 0; i < 4; i++) {
    uint32_t *words = scene_words(s, 10 * i), after[SCENE_WORDS];
    const rondo_input input = rows_at(words, 3);
    rondo_buffer *outs[2];
    if (i == 0) assert_ok(rondo_function_prepare(f, s->stream, &input, 1));
    scene_assert_words(s, words, 10 * i, 1);
    SCENE_CALL(s, f, outs, 2, input);
    check(s, outs, 3, 4, 10 * i, 0);
    test_read(s->fixture, after, words, sizeof after);
    for (uint32_t k = 0; k < SCENE_WORDS; k++) assert_int_equal(after[k], k < 3 * ROW ? 5 * (10 * i + k) : 10 * i + k);
    for (size_t k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
  }
  assert_seen(s, "pppp");
  assert_int_equal(bucket_info(f, 0).calls, 4);
}

/* One function's rows are the next one's on a path; the padded rows still have the requested value. */
SCENE_TEST(test_tr7_rows_on_a_path) {
  rondo_function *f = make(s, RONDO_INPUT_MOVING | RONDO_INPUT_ROWS, 0, 0);
  rondo_function *g = make(s, RONDO_INPUT_MOVING | RONDO_INPUT_ROWS, 0, 9);
  static const size_t sizes[] = {3, 3, 2, 4, 4, 1, 4};
  for (size_t i = 0; i < 7; i++) {
    rondo_buffer *a[2], *b[2];
    uint32_t words[4 * ROW];
    scene_begin(s);
    SCENE_CALL(s, f, a, 2, rows_at(scene_words(s, 0), sizes[i]));
    SCENE_CALL(s, g, b, 2, {.buffer = a[0], .rank = 2, .shape = {sizes[i], ROW}, .type = 1});
    assert_ok(rondo_buffer_copy(b[1], s->stream, 0, words, sizeof words));
    assert_ok(rondo_stream_synchronize(s->stream));
    for (uint32_t k = 0; k < 4 * ROW; k++) assert_int_equal(words[k], k < sizes[i] * ROW ? 3 * k + 1 : 9);
    check(s, a, sizes[i], 4, 0, 0);
    for (size_t k = 0; k < 2; k++) {
      rondo_buffer_release(a[k]);
      rondo_buffer_release(b[k]);
    }
    scene_end(s);
  }
  assert_outcome(s->tree, RONDO_CALL_REPLAYED);
}

/* More rows than the last bucket, and exactly as many, are not padded. */
SCENE_TEST(test_tr7_rows_beyond_all_buckets) {
  static const size_t two[] = {2, 4};
  static const uint32_t kind = RONDO_INPUT_MOVING | RONDO_INPUT_ROWS;
  rondo_function *f = SCENE_FUNCTION(s, "rows", body, scene_work(s, 0, 0), .inputs = &kind, .input_count = 1,
                                     .buckets = two, .bucket_count = 2);
  for (size_t i = 0; i < 6; i++) {
    rondo_buffer *outs[2];
    const size_t rows = i % 2 == 0 ? 7 : 4;
    SCENE_CALL(s, f, outs, 2, rows_at(scene_words(s, 5), rows));
    check(s, outs, rows, rows, 5, 0);
    for (size_t k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
  }
  assert_seen(s, "eerrpp");
  assert_int_equal(bucket_info(f, 1).padded_rows, 0);
  assert_int_equal(bucket_info(f, 1).calls, 3);
}

/* The rows, and as a part of them the last one of the bucket. */
static rondo_status last_row_body(rondo_call *call, void *user) {
  rondo_input input;
  void *out;
  scene_enter(user);
  assert_ok(rondo_call_get_input(call, 0, &input));
  const rondo_output_options options = {RONDO_OUTPUT_OPTIONS_INIT, .rank = 2, .flags = RONDO_OUTPUT_ROWS,
                                        .shape = {input.shape[0], ROW}};
  const size_t row_bytes = ROW * sizeof(uint32_t);
  assert_ok(rondo_call_output(call, 0, input.bytes, &options, &out));
  assert_ok(rondo_copy_async(rondo_call_stream(call), out, input.address, input.bytes));
  return rondo_call_output_of_output(call, 1, 0, input.bytes - row_bytes, row_bytes, NULL);
}

SCENE_TEST(test_tr9_a_clone_has_the_parts_beyond_the_rows) {
  static const uint32_t kind = RONDO_INPUT_MOVING | RONDO_INPUT_ROWS;
  SCENE_TREE(s, .outputs = RONDO_OUTPUTS_CLONE);
  rondo_function *f = SCENE_FUNCTION(s, "rows", last_row_body, scene_work(s, 0, 0), .inputs = &kind, .input_count = 1,
                                     .buckets = buckets, .bucket_count = 3, .padding = 7);
  rondo_buffer *held[2] = {NULL, NULL}, *outs[2];
  for (uint32_t i = 0; i < 5; i++) {
    SCENE_CALL(s, f, outs, 2, rows_at(scene_words(s, 10 * i), 1));
    for (size_t k = 0; k < 2; k++) {
      uint32_t words[ROW];
      if (i > 0) {
        assert_ok(rondo_buffer_copy(held[k], s->stream, 0, words, sizeof words));
        assert_ok(rondo_stream_synchronize(s->stream));
        for (uint32_t w = 0; w < ROW; w++) assert_int_equal(words[w], k == 1 ? 7 : 10 * (i - 1) + w);
      }
      rondo_buffer_release(held[k]);
      held[k] = outs[k];
    }
  }
  for (size_t k = 0; k < 2; k++) rondo_buffer_release(held[k]);
  assert_seen(s, "erppp");
}

/* Lengths ---------------------------------------------------------------------------------------------------------- */

enum { ROWS_AND_LENGTH = RONDO_INPUT_MOVING | RONDO_INPUT_ROWS | RONDO_INPUT_LENGTH, MOST_TEXTS = 4 * 8 };

static const size_t two_rows[] = {2, 4}, lengths[] = {4, 8};

/* out = in, [rows, length]; then the input is multiplied. */
static rondo_status texts_body(rondo_call *call, void *user) {
  test_work *work = scene_enter(user);
  rondo_input input;
  void *out;
  assert_ok(rondo_call_get_input(call, 0, &input));
  assert_int_equal(input.shape[0] * input.shape[1] * sizeof(uint32_t), input.bytes);
  const rondo_output_options options = {RONDO_OUTPUT_OPTIONS_INIT, .rank = 2, .flags = RONDO_OUTPUT_ROWS,
                                        .shape = {input.shape[0], input.shape[1]}};
  assert_ok(rondo_call_output(call, 0, input.bytes, &options, &out));
  assert_ok(rondo_copy_async(rondo_call_stream(call), out, input.address, input.bytes));
  if (work->factor != 0)
    test_affine(work->fixture, rondo_call_stream(call), input.address, input.bytes / sizeof(uint32_t), work->factor, 0);
  return RONDO_OK;
}

static rondo_function *make_texts(test_scene *s, const uint32_t *kind, uint32_t factor, uint32_t padding) {
  const bool has_rows = (*kind & RONDO_INPUT_ROWS) != 0;
  return SCENE_FUNCTION(s, "texts", texts_body, scene_work(s, factor, 0), .inputs = kind, .input_count = 1,
                        .buckets = has_rows ? two_rows : NULL, .bucket_count = has_rows ? 2 : 0, .lengths = lengths,
                        .length_count = 2, .padding = padding);
}

/* The output has the rows of the call, and the length of the bucket. */
static void check_texts(test_scene *s, rondo_buffer *out, const size_t *shape, size_t length, uint32_t first,
                        uint32_t padding) {
  uint32_t words[MOST_TEXTS];
  const rondo_buffer_info info = test_buffer_info(out);
  assert_true(info.shape[0] == shape[0] && info.shape[1] == length);
  assert_int_equal(info.bytes, shape[0] * length * sizeof words[0]);
  assert_ok(rondo_buffer_copy(out, s->stream, 0, words, info.bytes));
  assert_ok(rondo_stream_synchronize(s->stream));
  for (size_t i = 0; i < shape[0] * length; i++) {
    const size_t row = i / length, at = i % length;
    assert_int_equal(words[i], at < shape[1] ? first + row * shape[1] + at : padding);
  }
}

static rondo_input texts_at(const uint32_t *words, size_t rows, size_t length) {
  return (rondo_input){
      .address = (void *)(uintptr_t)words, .bytes = rows * length * sizeof *words, .rank = 2, .shape = {rows, length}};
}

static void call_texts(test_scene *s, rondo_function *f, size_t rows, size_t length, size_t padded, uint32_t padding) {
  rondo_buffer *out;
  SCENE_CALL(s, f, &out, 1, texts_at(scene_words(s, (uint32_t)length), rows, length));
  check_texts(s, out, (const size_t[]){rows, length}, padded, (uint32_t)length, padding);
  rondo_buffer_release(out);
}

/* Twelve shapes, four recordings. */
SCENE_TEST(test_pr5_lengths_share_a_buckets_recording) {
  static const uint32_t kind = ROWS_AND_LENGTH;
  rondo_function *f = make_texts(s, &kind, 0, 7);
  static const size_t shapes[][2] = {{1, 2}, {3, 3}, {2, 5}, {4, 8}, {2, 3}, {4, 4},
                                     {1, 6}, {3, 7}, {2, 4}, {3, 1}, {2, 8}, {4, 5}};
  for (size_t i = 0; i < 12; i++) call_texts(s, f, shapes[i][0], shapes[i][1], shapes[i][1] <= 4 ? 4 : 8, 7);
  assert_seen(s, "eeeerrrrpppp");
  const rondo_function_info info = test_function_info(f);
  assert_int_equal(info.recordings, 4);
  const rondo_bucket_info first = bucket_info(f, 0), second = bucket_info(f, 1), last = bucket_info(f, 3);
  assert_true(first.rows == 2 && first.length == 4 && first.calls == 3);
  assert_true(first.given_rows == 5 && first.padded_rows == 1 && first.given_lengths == 9 && first.padded_lengths == 3);
  assert_true(second.rows == 2 && second.length == 8 && bucket_info(f, 2).rows == 4 && bucket_info(f, 2).length == 4);
  assert_true(last.rows == 4 && last.length == 8 && last.given_lengths == 20 && last.padded_lengths == 4);
}

/* Only the length is padded: any number of rows has recordings of its own. */
SCENE_TEST(test_pr5_lengths_without_buckets_of_rows) {
  static const uint32_t kind = RONDO_INPUT_MOVING | RONDO_INPUT_LENGTH;
  rondo_function *f = make_texts(s, &kind, 0, 0);
  for (size_t i = 1; i <= 4; i++) call_texts(s, f, 3, i, 4, 0);
  call_texts(s, f, 2, 3, 4, 0);
  call_texts(s, f, 2, 9, 9, 0); /* longer than the last bucket */
  assert_seen(s, "erppee");
  assert_true(bucket_info(f, 0).rows == 0 && bucket_info(f, 0).length == 4 && bucket_info(f, 0).calls == 5);
  assert_int_equal(bucket_info(f, 1).calls, 0);
}

/* Written positions are copied back to the caller's, and to nothing else. */
SCENE_TEST(test_pr5_lengths_that_are_written) {
  static const uint32_t kind = ROWS_AND_LENGTH | RONDO_INPUT_MUTATED;
  rondo_function *f = make_texts(s, &kind, 5, 1);
  for (uint32_t i = 0; i < 4; i++) {
    uint32_t *words = scene_words(s, 10 * i), after[SCENE_WORDS];
    rondo_buffer *out;
    SCENE_CALL(s, f, &out, 1, texts_at(words, 3, 3));
    check_texts(s, out, (const size_t[]){3, 3}, 4, 10 * i, 1);
    test_read(s->fixture, after, words, sizeof after);
    for (uint32_t k = 0; k < SCENE_WORDS; k++) assert_int_equal(after[k], k < 3 * 3 ? 5 * (10 * i + k) : 10 * i + k);
    rondo_buffer_release(out);
  }
  assert_seen(s, "erpp");
}

SCENE_TEST(test_pr5_lengths_that_are_refused) {
  static const uint32_t kind = RONDO_INPUT_MOVING | RONDO_INPUT_LENGTH, fixed = RONDO_INPUT_STATIC | RONDO_INPUT_LENGTH;
  static const size_t falling[] = {8, 4};
  rondo_function *f = NULL;
  rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT, .name = "texts", .body = texts_body, .inputs = &kind,
                                    .input_count = 1};
  assert_invalid(rondo_function_create(s->tree, &options, &f), RONDO_REASON_BAD_OPTIONS);
  assert_message("an input that is RONDO_INPUT_LENGTH, but no lengths");
  options.lengths = falling;
  options.length_count = 2;
  assert_invalid(rondo_function_create(s->tree, &options, &f), RONDO_REASON_BAD_OPTIONS);
  assert_message("length 1 has 4 positions after one of 8");
  options.inputs = &fixed;
  options.lengths = lengths;
  assert_invalid(rondo_function_create(s->tree, &options, &f), RONDO_REASON_BAD_OPTIONS);
  f = make_texts(s, &kind, 0, 0);
  rondo_buffer *out;
  rondo_input input = texts_at(scene_words(s, 0), 3, 3);
  input.rank = 1;
  assert_invalid(rondo_function_call(f, s->stream, &input, 1, &out, 1), RONDO_REASON_SHAPE);
  assert_message("the second dimension of its shape must be the number of positions");
  input.rank = 2;
  input.shape[1] = 7;
  assert_invalid(rondo_function_call(f, s->stream, &input, 1, &out, 1), RONDO_REASON_SHAPE);
  call_texts(s, f, 3, 3, 4, 0);
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

static void assert_no_function(test_scene *s, const uint32_t *kind, const size_t *sizes, size_t count) {
  rondo_function *f;
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT, .name = "rows", .body = body, .inputs = kind, .input_count = 1, .buckets = sizes,
      .bucket_count = count};
  assert_invalid(rondo_function_create(s->tree, &options, &f), RONDO_REASON_BAD_OPTIONS);
  assert_null(f);
}

SCENE_TEST(test_tr7_what_is_refused) {
  static const uint32_t rows = RONDO_INPUT_MOVING | RONDO_INPUT_ROWS, moving = RONDO_INPUT_MOVING;
  static const uint32_t fixed = RONDO_INPUT_STATIC | RONDO_INPUT_ROWS;
  static const size_t falling[] = {4, 4}, none[] = {0};
  assert_no_function(s, &rows, NULL, 0);
  assert_no_function(s, &moving, buckets, 3);
  assert_no_function(s, &fixed, buckets, 3);
  assert_no_function(s, &rows, falling, 2);
  assert_no_function(s, &rows, none, 1);
  rondo_function *f = make(s, rows, 0, 0);
  rondo_buffer *outs[2];
  rondo_input input = rows_at(scene_words(s, 0), 3);
  rondo_bucket_info info = {.struct_size = sizeof info};
  input.rank = 0;
  assert_invalid(rondo_function_call(f, s->stream, &input, 1, outs, 2), RONDO_REASON_SHAPE);
  input.rank = 2;
  input.shape[0] = 7;
  assert_invalid(rondo_function_call(f, s->stream, &input, 1, outs, 2), RONDO_REASON_SHAPE);
  assert_message("input 0 of 'rows'");
  assert_invalid(rondo_function_get_bucket(f, 3, &info), RONDO_REASON_OUT_OF_RANGE);
  call_rows(s, f, 3, 0);
}

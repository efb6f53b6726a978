/* SPDX-License-Identifier: MIT
 * Whole models of texts that PyTorch exports, with dynamic lengths, in sessions (ON-9, PR-5): requests of two lengths
 * in one batch, padded by a mask or because the model is causal, and requests of exact lengths. All have the outputs
 * that onnxruntime gives. A request has the bits that it has alone, if the same rows of the same graph run it. The
 * models are those of `make models`, in small sizes; without them the test is skipped.
 *
 *   RONDO_TEST_WHOLE_MODELS=FOLDER   other models of that kind
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/onnx.h>
#include <rondo/session.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/rondo_test.h"
#include "support/test_session.h"

enum { SETS = 2, MOST_VALUES = 8, PATH_BYTES = 1024, STEP = 16 };

/* `mask` is NULL for causal models. */
typedef struct text_model {
  const char *name, *mask;
} text_model;

static const text_model models[] = {{"bert", "mask"}, {"bert.traced", "mask"}, {"gpt2", NULL}};
enum { MODELS = sizeof models / sizeof *models };

/* Files ------------------------------------------------------------------------------------------------------------ */

static const char *path_of(char out[PATH_BYTES], const text_model *m, const char *file) {
  const char *folder = getenv("RONDO_TEST_WHOLE_MODELS");
  (void)snprintf(out, PATH_BYTES, "%s/%s/%s", folder != NULL ? folder : RONDO_TEST_MODELS, m->name, file);
  return out;
}

static bool exists(const text_model *m) {
  char path[PATH_BYTES];
  return access(path_of(path, m, "tolerance"), R_OK) == 0;
}

static rondo_onnx_tensor_file *load_tensor(const text_model *m, size_t set, const char *kind, size_t index,
                                           rondo_onnx_tensor_info *out) {
  char path[PATH_BYTES], file[64];
  rondo_onnx_tensor_file *tensor = NULL;
  (void)snprintf(file, sizeof file, "test_data_set_%zu/%s_%zu.pb", set, kind, index);
  *out = (rondo_onnx_tensor_info){.struct_size = sizeof *out};
  assert_ok(rondo_onnx_tensor_load(path_of(path, m, file), NULL, &tensor));
  assert_ok(rondo_onnx_tensor_get_info(tensor, out));
  return tensor;
}

static size_t longest_of(const text_model *m) {
  size_t longest = 0;
  for (size_t i = 0; i < SETS; i++) {
    rondo_onnx_tensor_info info;
    rondo_onnx_tensor_file *file = load_tensor(m, i, "input", 0, &info);
    if (info.shape[1] > longest) longest = info.shape[1];
    rondo_onnx_tensor_destroy(file);
  }
  return longest;
}

/* A set of inputs as a request, and what onnxruntime computes from them. */
typedef struct text_request {
  rondo_onnx_tensor_file *files[2 * MOST_VALUES];
  size_t file_count, inputs, outputs;
  const void *given[MOST_VALUES];
  rondo_onnx_tensor_info expected[MOST_VALUES];
  void *made[MOST_VALUES], *alone[MOST_VALUES];
  rondo_request request;
} text_request;

static void load_request(const text_model *m, const rondo_onnx_info *info, size_t set, text_request *out) {
  rondo_onnx_tensor_info tensor;
  *out = (text_request){.inputs = info->inputs, .outputs = info->outputs};
  assert_true(info->inputs <= MOST_VALUES && info->outputs <= MOST_VALUES);
  for (size_t i = 0; i < info->inputs; i++) {
    out->files[out->file_count++] = load_tensor(m, set, "input", i, &tensor);
    out->given[i] = tensor.data;
    assert_true(tensor.rank == 2);
  }
  for (size_t i = 0; i < info->outputs; i++) {
    out->files[out->file_count++] = load_tensor(m, set, "output", i, &out->expected[i]);
    out->made[i] = calloc(1, out->expected[i].bytes);
    out->alone[i] = calloc(1, out->expected[i].bytes);
    assert_true(out->made[i] != NULL && out->alone[i] != NULL && out->expected[i].type == RONDO_F32);
  }
  out->request = (rondo_request){RONDO_REQUEST_INIT,        .mode = RONDO_RUN_RECORDED, .rows = tensor.shape[0],
                                 .length = tensor.shape[1], .inputs = out->given,       .outputs = out->made};
}

static void free_request(text_request *r) {
  for (size_t i = 0; i < r->file_count; i++) rondo_onnx_tensor_destroy(r->files[i]);
  for (size_t i = 0; i < r->outputs; i++) {
    free(r->made[i]);
    free(r->alone[i]);
  }
}

static bool is_near(const text_model *m, const text_request *r, size_t output) {
  double relative, absolute;
  char path[PATH_BYTES];
  FILE *file = fopen(path_of(path, m, "tolerance"), "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%lf %lf", &relative, &absolute), 2);
  assert_int_equal(fclose(file), 0);
  for (size_t i = 0; i < r->expected[output].count; i++) {
    const double is = (double)((const float *)r->made[output])[i];
    const double should = (double)((const float *)r->expected[output].data)[i];
    if (fabs(is - should) <= absolute + relative * fabs(should)) continue;
    print_error("%s, length %zu, output %zu [%zu] is %.9g, not %.9g\n", m->name, r->request.length, output, i, is,
                should);
    return false;
  }
  return true;
}

static bool are_near(const text_model *m, const text_request *r) {
  bool are_near = true;
  for (size_t i = 0; i < r->outputs; i++) are_near &= is_near(m, r, i);
  return are_near;
}

static bool have_bits_of_alone(const text_request *r) {
  bool are_same = true;
  for (size_t i = 0; i < r->outputs; i++) are_same &= memcmp(r->made[i], r->alone[i], r->expected[i].bytes) == 0;
  return are_same;
}

/* Sessions --------------------------------------------------------------------------------------------------------- */

typedef struct served {
  rondo_onnx_model *model;
  rondo_onnx_builder *builder;
  rondo_session *session;
  text_request requests[SETS];
} served;

static void open_model(test_fixture *t, const text_model *m, const rondo_onnx_builder_options *options,
                       const size_t *lengths, size_t count, served *out) {
  char path[PATH_BYTES];
  rondo_onnx_info info = {.struct_size = sizeof info};
  rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .lengths = lengths, .length_count = count};
  *out = (served){.model = NULL};
  assert_ok(rondo_onnx_load(path_of(path, m, "model.onnx"), NULL, &out->model));
  assert_ok(rondo_onnx_get_info(out->model, &info));
  assert_ok(rondo_onnx_builder_create(out->model, options, &out->builder));
  assert_ok(rondo_onnx_builder_fill_model(out->builder, &model));
  assert_ok(rondo_session_create(t->device, NULL, &out->session));
  assert_ok(rondo_session_add_model(out->session, "text", &model));
  for (size_t i = 0; i < SETS; i++) load_request(m, &info, i, &out->requests[i]);
}

static void close_model(served *s) {
  assert_ok(rondo_session_destroy(s->session));
  for (size_t i = 0; i < SETS; i++) free_request(&s->requests[i]);
  rondo_onnx_builder_destroy(s->builder);
  rondo_onnx_destroy(s->model);
}

static void capture(const served *s, size_t rows, size_t length, const text_request *with) {
  rondo_request request = with->request;
  request.rows = rows;
  request.length = length;
  assert_ok(rondo_session_run(s->session, "text", &request, NULL));
}

static rondo_answer run(const served *s, const text_request *r, rondo_run_mode mode, void *const *outputs) {
  rondo_answer answer = {.struct_size = sizeof answer};
  rondo_request request = r->request;
  request.outputs = outputs;
  request.mode = mode;
  assert_ok(rondo_session_run(s->session, "text", &request, &answer));
  return answer;
}

/* In one graph, which has a row for each. */
static void run_together(const served *s, size_t length) {
  const rondo_request *requests[SETS];
  rondo_ticket tickets[SETS];
  rondo_stream *stream;
  size_t accepted = 0;
  for (size_t i = 0; i < SETS; i++) requests[i] = &s->requests[i].request;
  assert_ok(rondo_session_acquire_stream(s->session, "text", 0, &stream));
  assert_ok(rondo_session_submit_batch(s->session, "text", requests, SETS, tickets, &accepted));
  assert_ok(rondo_session_release_stream(s->session, 0));
  for (size_t i = 0; i < SETS; i++) {
    rondo_answer answer = {.struct_size = sizeof answer};
    assert_ok(rondo_ticket_wait(tickets[i], &answer));
    assert_int_equal(answer.batch_requests, SETS);
    assert_int_equal(answer.length, length);
    assert_int_equal(answer.padding_rows, 0);
  }
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

static bool is_padded_right(test_fixture *t, const text_model *m) {
  const size_t longest = longest_of(m), length = (longest / STEP + 1) * STEP;
  const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .mask = m->mask,
                                              .is_causal = m->mask == NULL};
  served s;
  bool right = true;
  open_model(t, m, &options, &length, 1, &s);
  assert_ok(rondo_session_capture_begin(s.session, "text"));
  capture(&s, s.requests[0].request.rows + s.requests[1].request.rows, length, &s.requests[0]);
  assert_ok(rondo_session_capture_end(s.session));
  for (size_t i = 0; i < SETS; i++) run(&s, &s.requests[i], RONDO_RUN_RECORDED, s.requests[i].alone);
  run_together(&s, length);
  for (size_t i = 0; i < SETS; i++) right &= are_near(m, &s.requests[i]);
  right &= have_bits_of_alone(&s.requests[0]);
  close_model(&s);
  return right;
}

/* A graph of the longest length; the other one runs eagerly. */
static bool is_exact_right(test_fixture *t, const text_model *m) {
  const size_t length = longest_of(m);
  served s;
  bool right = true;
  open_model(t, m, NULL, &length, 1, &s);
  assert_ok(rondo_session_capture_begin(s.session, "text"));
  capture(&s, 1, length, &s.requests[0]);
  assert_ok(rondo_session_capture_end(s.session));
  for (size_t i = 0; i < SETS; i++) {
    const text_request *r = &s.requests[i];
    const rondo_answer answer = run(&s, r, RONDO_RUN_AUTO, r->made);
    assert_int_equal(answer.length, r->request.length);
    run(&s, r, RONDO_RUN_EAGER, r->alone);
    right &= are_near(m, r) && have_bits_of_alone(r);
  }
  close_model(&s);
  return right;
}

static void check_all(test_fixture *t, bool (*check)(test_fixture *t, const text_model *m)) {
  size_t checked = 0, wrong = 0;
  for (size_t i = 0; i < MODELS; i++) {
    if (!exists(&models[i])) continue;
    checked++;
    if (check(t, &models[i])) continue;
    print_error("%s: other outputs\n", models[i].name);
    wrong++;
  }
  if (checked == 0) skip();
  assert_int_equal(wrong, 0);
}

TEST(test_on9_texts_of_several_lengths_in_one_batch) { check_all(t, is_padded_right); }

TEST(test_on9_texts_of_exact_lengths) { check_all(t, is_exact_right); }

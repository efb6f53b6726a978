/* SPDX-License-Identifier: MIT
 * Whole models that PyTorch exports, as functions of a tree and in sessions (ON-9): for two forms of inputs, a batch of
 * one and a larger one, eager and recorded runs have the same bits, in a tree also the replayed call at other
 * addresses, and all have the outputs that onnxruntime gives. A session also runs some rows with a graph of more. The
 * models are those of `make models`, in small sizes; without them the test is skipped.
 *
 *   RONDO_TEST_WHOLE_MODELS=FOLDER   other models of that kind
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/onnx.h>
#include <rondo/session.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/test_tree.h"

enum { CALLS = 3, SETS = 2, MOST_VALUES = 16, PATH_BYTES = 1024, SHARE = 6 };

typedef struct whole_model {
  test_fixture *t;
  const char *name, *folder;
  rondo_tree *tree;
  rondo_function *function;
  size_t inputs, outputs;
  double relative, absolute; /* how far outputs may be from the expected ones */
} whole_model;

static const char *models_folder(void) {
  const char *folder = getenv("RONDO_TEST_WHOLE_MODELS");
  return folder != NULL ? folder : RONDO_TEST_MODELS;
}

/* Tensors in files ------------------------------------------------------------------------------------------------- */

static rondo_onnx_tensor_file *load_tensor(const whole_model *m, size_t set, const char *kind, size_t index,
                                           rondo_onnx_tensor_info *out) {
  char path[PATH_BYTES];
  rondo_onnx_tensor_file *file = NULL;
  (void)snprintf(path, sizeof path, "%s/test_data_set_%zu/%s_%zu.pb", m->folder, set, kind, index);
  *out = (rondo_onnx_tensor_info){.struct_size = sizeof *out};
  assert_ok(rondo_onnx_tensor_load(path, NULL, &file));
  assert_ok(rondo_onnx_tensor_get_info(file, out));
  return file;
}

/* In new device memory. */
static rondo_input place_input(const whole_model *m, size_t set, size_t index) {
  rondo_onnx_tensor_info info;
  rondo_onnx_tensor_file *file = load_tensor(m, set, "input", index, &info);
  rondo_input input = {.bytes = info.bytes, .type = (uint32_t)info.type, .rank = (uint32_t)info.rank};
  assert_true(info.has_type && info.rank <= RONDO_TREE_MAX_RANK);
  for (size_t i = 0; i < info.rank; i++) input.shape[i] = info.shape[i];
  assert_ok(rondo_malloc(m->t->device, info.bytes, NULL, &input.address));
  assert_ok(rondo_copy_async(m->t->stream, input.address, info.data, info.bytes));
  assert_ok(rondo_stream_synchronize(m->t->stream));
  rondo_onnx_tensor_destroy(file);
  return input;
}

static bool is_expected(const whole_model *m, size_t set, size_t index, const void *actual, size_t bytes) {
  rondo_onnx_tensor_info info;
  rondo_onnx_tensor_file *file = load_tensor(m, set, "output", index, &info);
  bool is_right = info.bytes == bytes;
  if (is_right && info.type != RONDO_F32) is_right = memcmp(actual, info.data, bytes) == 0;
  for (size_t i = 0; is_right && info.type == RONDO_F32 && i < info.count; i++) {
    const double is = (double)((const float *)actual)[i], should = (double)((const float *)info.data)[i];
    is_right = fabs(is - should) <= m->absolute + m->relative * fabs(should);
    if (!is_right) print_error("%s, set %zu, output %zu [%zu] is %.9g, not %.9g\n", m->name, set, index, i, is, should);
  }
  rondo_onnx_tensor_destroy(file);
  return is_right;
}

/* Calls ------------------------------------------------------------------------------------------------------------ */

/* The bytes of an output, which is released. The caller frees them. */
static void *take_output(const whole_model *m, rondo_buffer *output, size_t *out_bytes) {
  rondo_buffer_info info = {.struct_size = sizeof info};
  assert_ok(rondo_buffer_get_info(output, &info));
  void *bytes = malloc(info.bytes + 1);
  assert_non_null(bytes);
  if (info.bytes > 0) assert_ok(rondo_buffer_copy(output, m->t->stream, 0, bytes, info.bytes));
  assert_ok(rondo_stream_synchronize(m->t->stream));
  rondo_buffer_release(output);
  *out_bytes = info.bytes;
  return bytes;
}

/* The first call keeps its outputs in `first` and compares them with what is expected; others compare with those. */
static bool call(const whole_model *m, size_t set, bool is_first, void **first) {
  rondo_input inputs[MOST_VALUES];
  rondo_buffer *outputs[MOST_VALUES] = {NULL};
  bool is_right = true;
  for (size_t i = 0; i < m->inputs; i++) inputs[i] = place_input(m, set, i);
  assert_ok(rondo_function_call(m->function, m->t->stream, inputs, m->inputs, outputs, m->outputs));
  for (size_t i = 0; i < m->outputs; i++) {
    size_t bytes;
    void *output = take_output(m, outputs[i], &bytes);
    is_right &= is_first ? is_expected(m, set, i, output, bytes) : memcmp(output, first[i], bytes) == 0;
    if (is_first)
      first[i] = output;
    else
      free(output);
  }
  for (size_t i = 0; i < m->inputs; i++) assert_ok(rondo_free(m->t->device, inputs[i].address));
  return is_right;
}

static bool is_set_right(const whole_model *m, size_t set) {
  static const rondo_call_outcome outcomes[CALLS] = {RONDO_CALL_EAGER, RONDO_CALL_RECORDED, RONDO_CALL_REPLAYED};
  void *first[MOST_VALUES] = {NULL};
  bool is_right = true;
  for (size_t i = 0; i < CALLS; i++) {
    is_right &= call(m, set, i == 0, first);
    is_right &= test_last_call(m->tree).outcome == outcomes[i];
  }
  for (size_t i = 0; i < m->outputs; i++) free(first[i]);
  return is_right;
}

/* Models ----------------------------------------------------------------------------------------------------------- */

static void read_tolerance(whole_model *m) {
  char path[PATH_BYTES];
  (void)snprintf(path, sizeof path, "%s/tolerance", m->folder);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%lf %lf", &m->relative, &m->absolute), 2);
  assert_int_equal(fclose(file), 0);
}

static rondo_onnx_model *load_model(whole_model *m) {
  char path[PATH_BYTES];
  rondo_onnx_model *model = NULL;
  rondo_onnx_info info = {.struct_size = sizeof info};
  (void)snprintf(path, sizeof path, "%s/model.onnx", m->folder);
  assert_ok(rondo_onnx_load(path, NULL, &model));
  assert_ok(rondo_onnx_get_info(model, &info));
  m->inputs = info.inputs;
  m->outputs = info.outputs;
  assert_true(m->inputs <= MOST_VALUES && m->outputs <= MOST_VALUES);
  return model;
}

/* The second set first: programs share an arena if the first shapes are the largest. */
static bool is_right(whole_model *m) {
  uint32_t kinds[MOST_VALUES];
  rondo_onnx_model *model = load_model(m);
  rondo_onnx_runner *runner = NULL;
  bool right = true;
  for (size_t i = 0; i < MOST_VALUES; i++) kinds[i] = RONDO_INPUT_MOVING;
  m->tree = test_tree(m->t, NULL);
  read_tolerance(m);
  assert_ok(rondo_onnx_runner_create(model, m->t->stream, NULL, &runner));
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT,
                                          .name = m->name,
                                          .body = rondo_onnx_run,
                                          .user = runner,
                                          .inputs = kinds,
                                          .input_count = m->inputs,
                                          .binding = RONDO_BINDING_PATCH};
  assert_ok(rondo_function_create(m->tree, &options, &m->function));
  for (size_t set = SETS; set-- > 0;) right &= is_set_right(m, set);
  assert_ok(rondo_onnx_runner_synchronize(runner));
  test_tree_destroy(m->tree);
  assert_ok(rondo_onnx_runner_destroy(runner));
  rondo_onnx_destroy(model);
  return right;
}

/* Sessions --------------------------------------------------------------------------------------------------------- */

/* The host memory of a request. */
typedef struct request_memory {
  rondo_onnx_tensor_file *files[MOST_VALUES];
  const void *inputs[MOST_VALUES];
  void *eager[MOST_VALUES], *recorded[MOST_VALUES];
  size_t rows, row_bytes[MOST_VALUES]; /* of the outputs */
} request_memory;

static void make_memory(const whole_model *m, rondo_session *session, size_t set, request_memory *out) {
  *out = (request_memory){.rows = 0};
  for (size_t i = 0; i < m->inputs; i++) {
    rondo_onnx_tensor_info info;
    out->files[i] = load_tensor(m, set, "input", i, &info);
    out->inputs[i] = info.data;
    out->rows = info.shape[0];
  }
  for (size_t i = 0; i < m->outputs; i++) {
    rondo_model_value value = {.struct_size = sizeof value};
    assert_ok(rondo_session_get_output(session, m->name, i, &value));
    out->row_bytes[i] = value.row_bytes;
    out->eager[i] = calloc(out->rows, value.row_bytes);
    out->recorded[i] = calloc(out->rows, value.row_bytes);
    assert_true(out->eager[i] != NULL && out->recorded[i] != NULL);
  }
}

static void free_memory(const whole_model *m, request_memory *memory) {
  for (size_t i = 0; i < m->inputs; i++) rondo_onnx_tensor_destroy(memory->files[i]);
  for (size_t i = 0; i < m->outputs; i++) {
    free(memory->eager[i]);
    free(memory->recorded[i]);
  }
}

static void run_rows(const whole_model *m, rondo_session *session, rondo_run_mode mode, size_t rows,
                     const request_memory *memory) {
  const rondo_request request = {RONDO_REQUEST_INIT, .mode = mode, .rows = rows, .inputs = memory->inputs,
                                 .outputs = (void **)(mode == RONDO_RUN_EAGER ? memory->eager : memory->recorded)};
  assert_ok(rondo_session_run(session, m->name, &request, NULL));
}

/* All rows by a graph of as many. With fewer rows, the graph has padding, which does not change the others. */
static bool is_request_right(const whole_model *m, rondo_session *session, size_t set, const request_memory *memory) {
  bool is_right = true;
  run_rows(m, session, RONDO_RUN_EAGER, memory->rows, memory);
  run_rows(m, session, RONDO_RUN_RECORDED, memory->rows, memory);
  for (size_t i = 0; i < m->outputs; i++) {
    const size_t bytes = memory->rows * memory->row_bytes[i];
    is_right &= memcmp(memory->eager[i], memory->recorded[i], bytes) == 0;
    is_right &= is_expected(m, set, i, memory->eager[i], bytes);
  }
  for (size_t i = 0; i < m->outputs; i++) memset(memory->recorded[i], 0, (memory->rows - 1) * memory->row_bytes[i]);
  if (memory->rows > 1) run_rows(m, session, RONDO_RUN_RECORDED, memory->rows - 1, memory);
  for (size_t i = 0; i < m->outputs; i++)
    is_right &= is_expected(m, set, i, memory->recorded[i], memory->rows * memory->row_bytes[i]);
  return is_right;
}

static bool serve_set(const whole_model *m, rondo_session *session, size_t set) {
  request_memory memory;
  make_memory(m, session, set, &memory);
  assert_ok(rondo_session_capture_begin(session, m->name));
  run_rows(m, session, RONDO_RUN_AUTO, memory.rows, &memory);
  assert_ok(rondo_session_capture_end(session));
  const bool right = is_request_right(m, session, set, &memory);
  free_memory(m, &memory);
  return right;
}

/* The first dimensions are the rows; the set of inputs says the sizes of the others. */
static size_t list_sizes(const whole_model *m, const rondo_onnx_model *model, size_t set,
                         rondo_onnx_dimension_size *out) {
  size_t count = 0;
  for (size_t i = 0; i < m->inputs; i++) {
    rondo_onnx_value value = {.struct_size = sizeof value};
    rondo_onnx_tensor_info info;
    assert_ok(rondo_onnx_get_input(model, i, &value));
    rondo_onnx_tensor_file *file = load_tensor(m, set, "input", i, &info);
    for (size_t d = 1; d < value.rank; d++)
      if (value.dimensions[d].is_dynamic)
        out[count++] = (rondo_onnx_dimension_size){value.dimensions[d].name, info.shape[d]};
    rondo_onnx_tensor_destroy(file);
  }
  return count;
}

static bool is_served_right(whole_model *m, size_t set) {
  rondo_onnx_dimension_size sizes[MOST_VALUES * RONDO_TREE_MAX_RANK];
  rondo_onnx_model *model = load_model(m);
  rondo_onnx_builder *builder = NULL;
  rondo_session *session = NULL;
  read_tolerance(m);
  const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = sizes,
                                          .dimension_count = list_sizes(m, model, set, sizes)};
  const rondo_onnx_builder_options of_rows = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .build = &build};
  assert_ok(rondo_onnx_builder_create(model, &of_rows, &builder));
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .build = rondo_onnx_builder_build, .user = builder,
                                       .weights = rondo_onnx_builder_weights(builder)};
  assert_ok(rondo_session_create(m->t->device, NULL, &session));
  assert_ok(rondo_session_add_model(session, m->name, &options));
  const bool right = serve_set(m, session, set);
  assert_ok(rondo_session_destroy(session));
  rondo_onnx_builder_destroy(builder);
  rondo_onnx_destroy(model);
  return right;
}

static bool is_served(whole_model *m) {
  bool right = true;
  for (size_t set = 0; set < SETS; set++) right &= is_served_right(m, set);
  return right;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The names of the models, sorted; the caller frees them. */
static size_t list_models(char *names[64]) {
  size_t count = 0;
  DIR *directory = opendir(models_folder());
  for (const struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s/tolerance", models_folder(), entry->d_name);
    if (strstr(entry->d_name, ".partial") == NULL && access(path, R_OK) == 0 && count < 64)
      names[count++] = strdup(entry->d_name);
  }
  if (directory != NULL) closedir(directory);
  qsort(names, count, sizeof *names, compare_names);
  return count;
}

/* On devices that take long, some of them. */
static void check_all(test_fixture *t, bool (*check)(whole_model *model)) {
  char *names[64], folder[PATH_BYTES];
  const size_t count = list_models(names), step = strcmp(test_device_name(), "cpu") == 0 ? 1 : SHARE;
  size_t wrong = 0;
  if (count == 0) skip();
  for (size_t i = 0; i < count; i += step) {
    whole_model model = {.t = t, .name = names[i], .folder = folder};
    (void)snprintf(folder, sizeof folder, "%s/%s", models_folder(), names[i]);
    if (check(&model)) continue;
    print_error("%s: other bits, outputs that are not expected, or no replay\n", names[i]);
    wrong++;
  }
  for (size_t i = 0; i < count; i++) free(names[i]);
  assert_int_equal(wrong, 0);
}

TEST(test_on9_whole_models_in_trees) { check_all(t, is_right); }

TEST(test_on9_whole_models_in_sessions) { check_all(t, is_served); }

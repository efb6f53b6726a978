/* SPDX-License-Identifier: MIT
 * Weights in files beside a model (ON-2). Where the device allows it, a program maps large ones instead of copying them
 * (rondo_onnx_build_move_weights). Either way it computes the same, needs neither the model nor the file's name any
 * more, and what is written to the states does not reach the file. A session does the same (rondo_model_options).
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/onnx.h>
#include <rondo/session.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_onnx.h"
#include "support/test_program.h"

enum { FLOAT = 1, INT64 = 7 };
enum { ROWS = 1500, COLUMNS = 256, TOKENS = 2, PADDING = 256, PATH = 64 };
enum { LARGE_MEGABYTES = 64, LARGE_ROWS = LARGE_MEGABYTES << 10 }; /* of a kilobyte */

#define NAMES(...) ((const char *[]){__VA_ARGS__, NULL})
#define DIMS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static const int64_t tokens[TOKENS] = {3, ROWS - 1};

/* Small integers, so that sums are exact. */
static float element(size_t row, size_t column) { return (float)((row * 7 + column * column) % 13) - 6; }

/* Files ------------------------------------------------------------------------------------------------------------ */

typedef struct files {
  char folder[PATH], data[2 * PATH];
} files;

static void write_table(const files *in, size_t padding) {
  FILE *file = fopen(in->data, "wb");
  assert_non_null(file);
  for (size_t i = 0; i < padding; i++) assert_int_equal(fputc(0, file), 0);
  for (size_t r = 0; r < ROWS; r++) {
    float row[COLUMNS];
    for (size_t c = 0; c < COLUMNS; c++) row[c] = element(r, c);
    assert_int_equal(fwrite(row, sizeof row, 1, file), 1);
  }
  assert_int_equal(fclose(file), 0);
}

static files made_files(size_t padding) {
  files made = {.folder = "onnx_mapped.XXXXXX"};
  assert_non_null(mkdtemp(made.folder));
  (void)snprintf(made.data, sizeof made.data, "%s/table.bin", made.folder);
  write_table(&made, padding);
  return made;
}

static void remove_files(const files *made) {
  assert_int_equal(unlink(made->data), 0);
  assert_int_equal(rmdir(made->folder), 0);
}

static void add_pair(onnx_bytes *tensor, const char *key, const char *value) {
  onnx_bytes pair = {0};
  onnx_text(&pair, 1, key);
  onnx_text(&pair, 2, value);
  onnx_nest(tensor, ONNX_TENSOR_EXTERNAL, &pair);
}

/* Models ----------------------------------------------------------------------------------------------------------- */

static void add_table(onnx_bytes *graph, size_t rows, size_t padding) {
  char offset[16];
  onnx_bytes table = onnx_tensor("table", FLOAT, DIMS((int64_t)rows, COLUMNS));
  (void)snprintf(offset, sizeof offset, "%zu", padding);
  add_pair(&table, "location", "table.bin");
  add_pair(&table, "offset", offset);
  onnx_number(&table, ONNX_TENSOR_LOCATION, 1);
  onnx_nest(graph, ONNX_GRAPH_INITIALIZER, &table);
}

/* rows = table[tokens], y = rows tableT, as language models end. */
static onnx_bytes tied_graph(size_t padding) {
  onnx_bytes graph = {0};
  add_table(&graph, ROWS, padding);
  onnx_add_input(&graph, "tokens", INT64, DIMS(TOKENS));
  onnx_add_node(&graph, "Gather", NAMES("table", "tokens"), NAMES("rows"));
  onnx_add_node(&graph, "Transpose", NAMES("table"), NAMES("turned"));
  onnx_add_node(&graph, "MatMul", NAMES("rows", "turned"), NAMES("y"));
  onnx_add_output(&graph, "rows");
  onnx_add_output(&graph, "y");
  return graph;
}

/* A compiled program with its weights; the model and what was built are destroyed. */
static rondo_compiled *loaded(test_fixture *t, const files *in, size_t padding) {
  const onnx_bytes graph = tied_graph(padding), bytes = onnx_model(&graph);
  const rondo_onnx_options options = {RONDO_ONNX_OPTIONS_INIT, .folder = in->folder};
  rondo_onnx_build_info info = {.struct_size = sizeof info};
  rondo_program *program = test_new_program();
  rondo_onnx_model *model = NULL;
  rondo_onnx_build *build = NULL;
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, &options, &model));
  assert_ok(rondo_onnx_build_program(model, NULL, program, &build));
  assert_ok(rondo_onnx_build_get_info(build, &info));
  assert_int_equal(info.states, 1);   /* the product reads the table, too, */
  assert_int_equal(info.foldings, 0); /* and its transpose is not computed */
  rondo_compiled *of = test_compile_kept(program, t->device, NULL);
  assert_ok(rondo_onnx_build_move_weights(build, of));
  rondo_onnx_build_destroy(build);
  rondo_onnx_destroy(model);
  return of;
}

static void assert_results(rondo_compiled *of) {
  static float rows[TOKENS][COLUMNS], y[TOKENS][ROWS];
  assert_ok(rondo_compiled_write(of, "tokens", tokens, sizeof tokens));
  assert_ok(rondo_compiled_run(of));
  assert_ok(rondo_compiled_read(of, "rows", rows, sizeof rows));
  assert_ok(rondo_compiled_read(of, "y", y, sizeof y));
  for (size_t i = 0; i < TOKENS; i++) {
    for (size_t c = 0; c < COLUMNS; c++) assert_true(rows[i][c] == element((size_t)tokens[i], c));
    for (size_t r = 0; r < ROWS; r++) {
      float sum = 0;
      for (size_t c = 0; c < COLUMNS; c++) sum += element((size_t)tokens[i], c) * element(r, c);
      assert_near(&y[i][r], &sum, 1, 1e-5f);
    }
  }
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

/* At offsets that can be mapped, with and without bytes of other pages at the ends, and at one that cannot. */
TEST(test_on2_weights_stay_in_their_file) {
  static const size_t paddings[] = {0, PADDING, 4096, 4};
  static float table[ROWS][COLUMNS];
  for (size_t i = 0; i < sizeof paddings / sizeof *paddings; i++) {
    const files in = made_files(paddings[i]);
    rondo_compiled *of = loaded(t, &in, paddings[i]);
    remove_files(&in);
    assert_results(of);
    assert_ok(rondo_compiled_read(of, "table", table, sizeof table));
    for (size_t r = 0; r < ROWS; r++)
      for (size_t c = 0; c < COLUMNS; c++) assert_true(table[r][c] == element(r, c));
  }
}

/* The state is written, and read again; the file is as before. */
TEST(test_on2_writing_a_state_does_not_change_its_file) {
  static float table[ROWS][COLUMNS];
  const files in = made_files(PADDING);
  rondo_compiled *of = loaded(t, &in, PADDING);
  assert_ok(rondo_compiled_write(of, "table", table, sizeof table)); /* zeros */
  memset(table, 0xff, sizeof table);
  assert_ok(rondo_compiled_read(of, "table", table, sizeof table));
  for (size_t r = 0; r < ROWS; r++)
    for (size_t c = 0; c < COLUMNS; c++) assert_true(table[r][c] == 0);
  rondo_compiled *again = loaded(t, &in, PADDING);
  remove_files(&in);
  assert_results(again);
}

/* Sessions --------------------------------------------------------------------------------------------------------- */

/* A table whose rows are zeros, except for the last one. */
static files made_sparse_file(void) {
  files made = {.folder = "onnx_mapped.XXXXXX"};
  float row[COLUMNS];
  assert_non_null(mkdtemp(made.folder));
  (void)snprintf(made.data, sizeof made.data, "%s/table.bin", made.folder);
  for (size_t c = 0; c < COLUMNS; c++) row[c] = element(LARGE_ROWS - 1, c);
  FILE *file = fopen(made.data, "wb");
  assert_non_null(file);
  assert_int_equal(fseek(file, (long)((LARGE_ROWS - 1) * sizeof row), SEEK_SET), 0);
  assert_int_equal(fwrite(row, sizeof row, 1, file), 1);
  assert_int_equal(fclose(file), 0);
  return made;
}

static void destroy_model(void *model) { rondo_onnx_destroy(model); }

static void destroy_builder(void *builder) { rondo_onnx_builder_destroy(builder); }

/* y = table[tokens] for any number of tokens. */
static rondo_onnx_builder *look_up_builder(const files *in) {
  const rondo_onnx_options options = {RONDO_ONNX_OPTIONS_INIT, .folder = in->folder};
  rondo_onnx_model *model = NULL;
  rondo_onnx_builder *builder = NULL;
  onnx_bytes graph = {0};
  add_table(&graph, LARGE_ROWS, 0);
  onnx_add_input(&graph, "tokens", INT64, DIMS(-1));
  onnx_add_node(&graph, "Gather", NAMES("table", "tokens"), NAMES("y"));
  onnx_add_output(&graph, "y");
  const onnx_bytes bytes = onnx_model(&graph);
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, &options, &model));
  test_leave(destroy_model, model);
  assert_ok(rondo_onnx_builder_create(model, NULL, &builder));
  return test_leave(destroy_builder, builder);
}

static rondo_session *look_up_session(test_fixture *t, rondo_onnx_builder *builder) {
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 2};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = rondo_onnx_builder_build, .user = builder,
                                     .weights = rondo_onnx_builder_weights(builder)};
  rondo_session *session = NULL;
  assert_ok(rondo_session_create(t->device, &options, &session));
  assert_ok(rondo_session_add_model(session, "table", &model));
  return session;
}

enum { MOST = 8 };
static const int64_t wanted[MOST] = {LARGE_ROWS - 1, 0, 5, LARGE_ROWS - 1, 1, 2, 3, 4};
static float found[MOST][COLUMNS];

static void look_up(rondo_session *session, size_t rows) {
  const rondo_request request = {RONDO_REQUEST_INIT, .rows = rows, .inputs = (const void *[]){wanted},
                                 .outputs = (void *[]){found}};
  assert_ok(rondo_session_run(session, "table", &request, NULL));
}

static void assert_looks_up(rondo_session *session, size_t rows) {
  look_up(session, rows);
  for (size_t i = 0; i < rows; i++)
    for (size_t c = 0; c < COLUMNS; c++)
      assert_true(found[i][c] == (wanted[i] == LARGE_ROWS - 1 ? element(LARGE_ROWS - 1, c) : 0));
}

/* Megabytes that the process has in memory. */
static size_t resident(void) {
  char line[128];
  size_t kilobytes = 0;
  FILE *file = fopen("/proc/self/status", "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, "VmRSS:", 6) == 0) kilobytes = strtoul(line + 6, NULL, 10);
  assert_int_equal(fclose(file), 0);
  return kilobytes >> 10;
}

/* All streams and batch sizes read the pages of the file that their requests need; there is no other copy. Two sessions
 * can use the weights of one builder. */
TEST(test_on2_sessions_share_the_pages_of_the_file) {
  const files in = made_sparse_file();
  rondo_onnx_builder *builder = look_up_builder(&in);
  remove_files(&in);
  const size_t before = resident();
  rondo_session *first = look_up_session(t, builder), *second = look_up_session(t, builder);
  assert_ok(rondo_session_capture_begin(first, "table"));
  for (size_t rows = 1; rows <= MOST; rows *= 2) look_up(first, rows); /* records */
  assert_ok(rondo_session_capture_end(first));
  for (size_t rows = 1; rows <= MOST; rows++) {
    assert_looks_up(first, rows);
    assert_looks_up(second, rows);
  }
  const bool has_own_memory_only = test_effort_divisor() == 1 && !test_is_guarded(t); /* sanitizers use some, too */
  if (test_device_is("cpu") && has_own_memory_only) assert_in_range(resident(), before, before + LARGE_MEGABYTES / 4);
  assert_ok(rondo_session_destroy(first));
  assert_ok(rondo_session_destroy(second));
}

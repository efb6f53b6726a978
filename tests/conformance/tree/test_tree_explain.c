/* SPDX-License-Identifier: MIT
 * A tree explains itself: rondo_tree_explain as text and as JSON, whose fields are those that the header documents; and
 * the log's area "tree" (TR-8).
 */
#include <jansson.h>
#include <string.h>

#include "support/test_tree.h"

enum { WORDS = 64, BYTES = WORDS * 4 };

/* A tree with a path of two recordings, one form that is warming up and one that is not recorded. */
typedef struct scene {
  test_fixture *t;
  rondo_tree *tree;
  rondo_function *first, *second, *refused;
  test_work work[2];
  uint32_t *words;
  rondo_buffer *held[2];
} scene;

static rondo_status fill(rondo_stream *stream, void *dst, size_t words) {
  return rondo_fill_async(stream, &(rondo_fill){.dst = dst, .value = 1, .element_bytes = 4, .width = words});
}

static rondo_status refuse(rondo_call *call, void *user) {
  (void)user;
  void *out;
  assert_ok(rondo_call_output(call, 0, BYTES, NULL, &out));
  assert_ok(fill(rondo_call_stream(call), out, WORDS));
  return rondo_call_refuse(call, RONDO_SKIP_UNKNOWN_SHAPE, "a \"sum\"\nof 2 parts");
}

/* One step: both functions, one after the other; their outputs are held. */
static void run_step(scene *s) {
  for (size_t i = 0; i < 2; i++) rondo_buffer_release(s->held[i]);
  assert_ok(rondo_tree_mark_step(s->tree));
  s->held[0] = test_call_words(s->t, s->first, s->words, WORDS);
  s->held[1] = test_call_buffer(s->t, s->second, s->held[0]);
}

static void set_up(scene *s, test_fixture *t) {
  *s = (scene){.t = t, .work = {{t, 3, 5, 0}, {t, 2, 1, 0}}};
  s->tree = test_tree(t, &(rondo_tree_options){RONDO_TREE_OPTIONS_INIT, .name = "a\ttree"});
  s->first = test_tree_function(s->tree, "odd \"name\" \xc3\xa4\xff", RONDO_INPUT_MOVING, &s->work[0]);
  s->second = test_tree_function(s->tree, "second", RONDO_INPUT_MOVING, &s->work[1]);
  assert_ok(rondo_function_create(
      s->tree, &(rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .name = "refused", .body = refuse}, &s->refused));
  s->words = test_words(t, WORDS);
  assert_ok(fill(t->stream, s->words, WORDS));
  for (size_t i = 0; i < 4; i++) run_step(s);
}

static void call_refused(const scene *s) {
  rondo_buffer *out = NULL;
  assert_ok(rondo_function_call(s->refused, s->t->stream, NULL, 0, &out, 1));
  rondo_buffer_release(out);
}

static void tear_down(scene *s) {
  for (size_t i = 0; i < 2; i++) rondo_buffer_release(s->held[i]);
  test_tree_destroy(s->tree);
  test_words_free(s->t, s->words);
}

static char *explain(rondo_tree *tree, rondo_explain_format format) {
  char *text = NULL;
  assert_ok(rondo_tree_explain(tree, format, &text));
  assert_non_null(text);
  return text;
}

static json_t *explain_json(rondo_tree *tree) {
  json_error_t error;
  char *text = explain(tree, RONDO_EXPLAIN_JSON);
  json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  if (root == NULL) print_error("%s at %d in %s\n", error.text, error.position, text);
  assert_non_null(root);
  rondo_text_free(text);
  return root;
}

/* The names of an object's fields, in their order. */
static void assert_fields(json_t *object, const char *expected) {
  char names[512] = "";
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    if (names[0] != '\0') strcat(names, " ");
    strcat(names, key);
  }
  assert_string_equal(names, expected);
}

static json_t *field(json_t *object, const char *key) {
  json_t *value = json_object_get(object, key);
  if (value == NULL) print_error("no field '%s'\n", key);
  assert_non_null(value);
  return value;
}
static json_int_t number(json_t *object, const char *key) { return json_integer_value(field(object, key)); }
static const char *string(json_t *object, const char *key) { return json_string_value(field(object, key)); }
static json_t *item(json_t *object, const char *key, size_t index) {
  json_t *value = json_array_get(field(object, key), index);
  assert_non_null(value);
  return value;
}

static void check_tree(json_t *root) {
  assert_fields(root,
                "rondo_tree name device outputs recording strict deterministic host_steps share_execs bounds calls "
                "steps prepared evicted rolled_back allocations reasons inputs bytes path functions recordings");
  assert_int_equal(number(root, "rondo_tree"), 1);
  assert_string_equal(string(root, "name"), "a\ttree");
  assert_string_equal(string(root, "outputs"), "expire");
  assert_fields(field(root, "bounds"), "recordings recordings_per_parent arena_bytes exec_bytes");
  assert_int_equal(number(field(root, "bounds"), "recordings"), 4096);
  json_t *calls = field(root, "calls");
  assert_fields(calls, "all replayed recorded eager");
  assert_int_equal(number(calls, "all"),
                   number(calls, "replayed") + number(calls, "recorded") + number(calls, "eager"));
  assert_fields(field(root, "inputs"), "patched copied copied_bytes clones cloned_bytes demoted");
  json_t *bytes = field(root, "bytes");
  assert_fields(bytes,
                "arena_backed arena_used arena_minimum eager exec_host exec_device shared_execs exec_switches "
                "planned_paths planned_before planned_after warmed_up_paths exec_overruns");
  assert_true(number(bytes, "arena_minimum") > 0);
  assert_true(number(bytes, "arena_used") >= number(bytes, "arena_minimum"));
  assert_true(number(bytes, "arena_backed") >= number(bytes, "arena_used"));
  assert_fields(field(root, "path"), "step length recording live_outputs");
  assert_int_equal(number(field(root, "path"), "length"), 2);
  assert_int_equal(number(field(root, "path"), "live_outputs"), 2);
}

static void check_functions(json_t *root) {
  assert_int_equal(json_array_size(field(root, "functions")), 3);
  json_t *first = item(root, "functions", 0);
  assert_fields(first,
                "name kind binding recording calls replayed recorded eager bodies prepared reasons forms demoted moved "
                "region");
  assert_string_equal(string(first, "name"), "odd \"name\" \xc3\xa4\xef\xbf\xbd");
  assert_string_equal(string(first, "kind"), "inference");
  assert_string_equal(string(first, "binding"), "automatic");
  assert_int_equal(number(first, "calls"), 4);
  assert_fields(item(first, "reasons", 0), "reason calls message");
  assert_string_equal(string(item(first, "reasons", 0), "reason"), "WARM_UP");
  json_t *form = item(first, "forms", 0);
  assert_fields(form, "form state warm_ups recordings reason message inputs gain key key_bytes");
  assert_string_equal(string(form, "state"), "recorded");
  assert_true(json_is_null(field(form, "reason")));
  assert_true(json_is_null(field(form, "key")) && json_is_null(field(first, "region")));
  assert_fields(item(form, "inputs", 0), "kind bytes type shape");
  assert_string_equal(string(item(form, "inputs", 0), "kind"), "moving");
  assert_int_equal(number(item(form, "inputs", 0), "bytes"), BYTES);
}

/* A reason's last message is kept with it, and the form's for good. */
static void check_refused(json_t *root) {
  json_t *refused = item(root, "functions", 2);
  json_t *form = item(refused, "forms", 0);
  assert_string_equal(string(refused, "name"), "refused");
  assert_string_equal(string(form, "state"), "eager");
  assert_string_equal(string(form, "reason"), "UNKNOWN_SHAPE");
  assert_non_null(strstr(string(form, "message"), "a \"sum\"\nof 2 parts"));
  json_t *reason = item(refused, "reasons", json_array_size(field(refused, "reasons")) - 1);
  assert_string_equal(string(reason, "reason"), "UNKNOWN_SHAPE");
  assert_non_null(strstr(string(reason, "message"), "of 2 parts"));
}

static void check_recordings(json_t *root) {
  assert_int_equal(json_array_size(field(root, "recordings")), 2);
  json_t *first = item(root, "recordings", 0), *second = item(root, "recordings", 1);
  assert_fields(first,
                "number parent path is_on_path function form replays nodes segments arena_bytes arena_minimum "
                "exec_host_bytes exec_device_bytes inputs outputs findings slot_bytes idle_slot_bytes");
  assert_int_equal(number(first, "slot_bytes"), BYTES);
  assert_int_equal(number(first, "idle_slot_bytes"),
                   strcmp(string(item(first, "inputs", 0), "way"), "patched") == 0 ? BYTES : 0);
  assert_int_equal(number(second, "slot_bytes"), 0);
  assert_true(json_is_null(field(first, "parent")));
  assert_int_equal(number(second, "parent"), number(first, "number"));
  assert_int_equal(json_array_size(field(second, "path")), 2);
  assert_true(json_is_true(field(second, "is_on_path")));
  assert_true(number(first, "nodes") >= 3);
  assert_int_equal(number(first, "segments"), 1);
  assert_fields(item(first, "inputs", 0), "kind bytes type shape way nodes");
  assert_true(number(item(first, "inputs", 0), "nodes") >= 1);
  json_t *managed = item(second, "inputs", 0);
  assert_fields(managed, "kind bytes type shape recording output");
  assert_int_equal(number(managed, "recording"), number(first, "number"));
  assert_int_equal(number(managed, "output"), 0);
  json_t *output = item(second, "outputs", 0);
  assert_fields(output, "place bytes offset is_live");
  assert_string_equal(string(output, "place"), "arena");
  assert_int_equal(number(output, "bytes"), BYTES);
  assert_true(json_is_true(field(output, "is_live")));
}

TREE_TEST(test_tr8_json_has_its_fields) {
  scene s;
  set_up(&s, t);
  json_t *root = explain_json(s.tree);
  check_tree(root);
  check_functions(root);
  check_recordings(root);
  json_decref(root);
  for (size_t i = 0; i < 2; i++) call_refused(&s);
  root = explain_json(s.tree);
  check_refused(root);
  json_decref(root);
  tear_down(&s);
}

/* Static inputs have an address, scalars a value, parts of inputs the input that contains them. */
static rondo_status share(rondo_call *call, void *user) {
  (void)user;
  return rondo_call_output_of_input(call, 0, 0, 16, 8, NULL);
}

static rondo_status share_and_work(rondo_call *call, void *user) {
  assert_ok(share(call, user));
  void *out;
  assert_ok(rondo_call_output(call, 1, 0, NULL, &out));
  return fill(rondo_call_stream(call), rondo_call_input(call, 0), 1);
}

TREE_TEST(test_tr8_kinds_of_inputs_and_outputs) {
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function;
  static const uint32_t kinds[] = {RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED, RONDO_INPUT_SCALAR, RONDO_INPUT_OPAQUE};
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT, .name = "kinds", .body = share_and_work,
                                          .inputs = kinds, .input_count = 3};
  assert_ok(rondo_function_create(tree, &options, &function));
  uint32_t *words = test_words(t, WORDS);
  const rondo_input inputs[] = {
      {.address = words, .bytes = BYTES, .type = 9, .rank = 2, .shape = {4, 16}}, {.scalar = 42}, {.address = tree}};
  for (size_t i = 0; i < 3; i++) assert_ok(rondo_function_call(function, t->stream, inputs, 3, NULL, 0));
  json_t *root = explain_json(tree), *recording = item(root, "recordings", 0);
  assert_fields(item(recording, "inputs", 0), "kind bytes type shape address");
  assert_int_equal(number(item(recording, "inputs", 0), "type"), 9);
  assert_int_equal(json_integer_value(item(item(recording, "inputs", 0), "shape", 1)), 16);
  assert_int_equal(number(item(recording, "inputs", 1), "value"), 42);
  assert_fields(item(recording, "inputs", 2), "kind");
  assert_string_equal(string(item(recording, "outputs", 0), "place"), "input");
  assert_int_equal(number(item(recording, "outputs", 0), "offset"), 16);
  assert_int_equal(number(item(recording, "outputs", 0), "of"), 0);
  assert_string_equal(string(item(recording, "outputs", 1), "place"), "empty");
  json_decref(root);
}

/* Values that are fixed in the recording are reported, with node, parameter and remedy (TR-6). */
static void add_cpu(rondo_blocks blocks, void *const *args) {
  const uint32_t *in = *(const uint32_t **)args[0], more = *(const uint32_t *)args[2];
  uint32_t *out = *(uint32_t **)args[1];
  for (size_t i = blocks.first; i < blocks.last; i++) out[i] = in[i] + more;
}
static const char add_cuda[] =
    "extern \"C\" __global__ void add(const unsigned *in, unsigned *out, unsigned more) {\n"
    "  out[blockIdx.x] = in[blockIdx.x] + more;\n"
    "}\n";

typedef struct counting {
  rondo_kernel *kernel;
  uint32_t runs;
} counting;

static rondo_status add_count(rondo_call *call, void *user) {
  counting *c = user;
  const uint32_t more = ++c->runs;
  void *in = rondo_call_input(call, 0), *out;
  assert_ok(rondo_call_output(call, 0, BYTES, NULL, &out));
  return rondo_launch(rondo_call_stream(call), c->kernel, (rondo_grid){.x = WORDS}, RONDO_ARGS(&in, &out, &more));
}

TREE_TEST(test_tr6_frozen_values_are_explained) {
  counting c = {.kernel = NULL};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function;
  static const uint32_t moving = RONDO_INPUT_MOVING;
  const rondo_kernel_options kernel = {
      RONDO_KERNEL_OPTIONS_INIT, .name = "add",      .cpu = add_cpu,
      .cuda_source = add_cuda,   .block_threads = 1, .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(uint32_t)}};
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT, .name = "counts",  .body = add_count, .user = &c,
      .freezes_values = true,      .inputs = &moving, .input_count = 1,  .find_inputs = true};
  assert_ok(rondo_kernel_create(t->device, &kernel, &c.kernel));
  assert_ok(rondo_function_create(tree, &options, &function));
  uint32_t *words = test_words(t, WORDS);
  for (size_t i = 0; i < 2; i++) rondo_buffer_release(test_call_words(t, function, words, WORDS));
  json_t *root = explain_json(tree), *finding = item(item(root, "recordings", 0), "findings", 0);
  assert_fields(finding, "segment kind node parameter input message");
  assert_string_equal(string(finding, "kind"), "frozen");
  assert_int_equal(number(finding, "parameter"), 2);
  assert_true(json_is_null(field(finding, "input")));
  assert_non_null(strstr(string(finding, "message"), "'add'"));
  json_decref(root);
  char *text = explain(tree, RONDO_EXPLAIN_TEXT);
  assert_non_null(strstr(text, "frozen: "));
  rondo_text_free(text);
  rondo_kernel_destroy(c.kernel);
}

static rondo_status make_parts(rondo_call *call, void *user) {
  void *out;
  (void)user;
  assert_ok(rondo_call_output(call, 0, BYTES, NULL, &out));
  assert_ok(rondo_copy_async(rondo_call_stream(call), out, rondo_call_input(call, 0), BYTES));
  assert_ok(rondo_call_output_of_input(call, 1, 0, 8, 16, NULL));
  assert_ok(rondo_call_output_of_output(call, 2, 0, 4, 32, NULL));
  return rondo_call_output(call, 3, 0, NULL, &out);
}

/* Every kind of input and every place of an output has its words. */
TREE_TEST(test_tr8_text_names_inputs_and_parts) {
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *parts;
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT, .name = "parts", .body = make_parts,
                                          RONDO_INPUTS(RONDO_INPUT_STATIC, RONDO_INPUT_SCALAR, RONDO_INPUT_OPAQUE)};
  uint32_t *words = test_words(t, WORDS);
  assert_ok(rondo_function_create(tree, &options, &parts));
  for (int i = 0; i < 3; i++) {
    const rondo_input inputs[] = {{.address = words, .bytes = BYTES}, {.scalar = 7}, {.address = tree}};
    rondo_buffer *out[4];
    assert_ok(rondo_function_call(parts, t->stream, inputs, 3, out, 4));
    for (int k = 0; k < 4; k++) rondo_buffer_release(out[k]);
  }
  char *text = explain(tree, RONDO_EXPLAIN_TEXT);
  static const char *const lines[] = {"static 256 B",
                                      "scalar 7",
                                      "opaque",
                                      "output 0: 256 B at ",
                                      "output 1: 16 B at 8 of input 0\n",
                                      "output 2: 32 B at 4 of output 0\n",
                                      "output 3: 0 B\n"};
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
    if (strstr(text, lines[i]) == NULL) fail_msg("the text has no '%s':\n%s", lines[i], text);
  rondo_text_free(text);
}

TREE_TEST(test_tr8_text_reads) {
  scene s;
  set_up(&s, t);
  call_refused(&s);
  call_refused(&s);
  char *text = explain(s.tree, RONDO_EXPLAIN_TEXT);
  static const char *const parts[] = {"tree 'a\\ttree' on ",
                                      "3 functions, 2 recordings, 1 root\n",
                                      "\n  calls        ",
                                      "\nfunction 'odd \\\"name\\\" ",
                                      "\nfunction 'second', calls 4: ",
                                      "form 1 ",
                                      "recorded; inputs: moving 256 B\n",
                                      "UNKNOWN_SHAPE",
                                      "a \\\"sum\\\"\\nof 2 parts",
                                      "\nrecordings\n  1 (path 1, now) 'odd ",
                                      "\n    2 (path 1 > 2, now) 'second' form 1, replayed ",
                                      ", from 1 'odd ",
                                      " that live at once at most\n",
                                      " live\n"};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    if (strstr(text, parts[i]) == NULL) print_error("no \"%s\" in:\n%s\n", parts[i], text);
    assert_non_null(strstr(text, parts[i]));
  }
  for (const char *at = text; *at != '\0'; at++) assert_true(*at == '\n' || (unsigned char)*at >= ' ');
  assert_int_equal(text[strlen(text) - 1], '\n');
  rondo_text_free(text);
  tear_down(&s);
}

TREE_TEST(test_tr8_an_empty_tree_and_mistakes) {
  rondo_tree *tree = test_tree(t, NULL);
  json_t *root = explain_json(tree);
  assert_int_equal(json_array_size(field(root, "functions")), 0);
  assert_true(json_is_null(field(field(root, "path"), "recording")));
  json_decref(root);
  rondo_text_free(explain(tree, RONDO_EXPLAIN_TEXT));
  char *text = (char *)tree;
  assert_int_equal(rondo_tree_explain(tree, (rondo_explain_format)2, &text), RONDO_INVALID_ARGUMENT);
  assert_null(text);
  assert_int_equal(rondo_tree_explain(NULL, RONDO_EXPLAIN_TEXT, &text), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_tree_explain(tree, RONDO_EXPLAIN_TEXT, NULL), RONDO_INVALID_ARGUMENT);
}

/* The log ---------------------------------------------------------------------------------------------------------- */

typedef struct heard {
  char lines[4096];
} heard;

static void hear(void *user, rondo_log_level level, const char *area, const char *message) {
  (void)level;
  heard *h = user;
  if (strcmp(area, "tree") != 0) return;
  strncat(h->lines, message, sizeof h->lines - strlen(h->lines) - 1);
  strncat(h->lines, "\n", sizeof h->lines - strlen(h->lines) - 1);
}

/* Each decision is one line. */
TREE_TEST(test_tr8_the_log_has_each_decision) {
  static heard h;
  scene s;
  h.lines[0] = '\0';
  rondo_log_set_sink(hear, &h, RONDO_LOG_DEBUG);
  set_up(&s, t);
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  static const char *const parts[] = {"'second' runs eagerly: WARM_UP\n", "'second' is recorded: number 2 after 1, ",
                                      "'second' is replayed: number 2\n"};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    if (strstr(h.lines, parts[i]) == NULL) print_error("no \"%s\" in:\n%s\n", parts[i], h.lines);
    assert_non_null(strstr(h.lines, parts[i]));
  }
  tear_down(&s);
}

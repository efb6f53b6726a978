/* SPDX-License-Identifier: MIT
 * Operators of ONNX that are newer than the models of libonnx-testdata (ON-3). `make pypi` runs the cases of the newest
 * suite; these are few, and need no packages.
 */
#include <rondo/onnx.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_onnx.h"
#include "support/test_program.h"

enum { FLOAT = 1, INT64 = 7, UINT64 = 13, OPSET = 28, MOST = 32 };

#define NAMES(...) ((const char *[]){__VA_ARGS__, NULL})
#define DIMS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static void add_text(onnx_bytes *node, const char *name, const char *text) {
  onnx_bytes attribute = {0};
  onnx_text(&attribute, 1, name);
  onnx_number(&attribute, 20, 3);
  onnx_text(&attribute, 4, text);
  onnx_nest(node, ONNX_NODE_ATTRIBUTE, &attribute);
}

static void add_ints(onnx_bytes *node, const char *name, const int64_t *numbers, size_t count) {
  onnx_bytes attribute = {0};
  onnx_text(&attribute, 1, name);
  onnx_number(&attribute, 20, 7);
  for (size_t i = 0; i < count; i++) onnx_number(&attribute, 8, (uint64_t)numbers[i]);
  onnx_nest(node, ONNX_NODE_ATTRIBUTE, &attribute);
}

static void destroy_model(void *model) { rondo_onnx_destroy(model); }

/* A model of one node, whose output is "y". */
static rondo_onnx_model *model_of(onnx_bytes *graph, const onnx_bytes *node) {
  onnx_bytes model = {0}, opset = {0}, preview = {0}, classical = {0};
  rondo_onnx_model *made = NULL;
  onnx_text(&preview, 1, "ai.onnx.preview");
  onnx_number(&preview, 2, 1);
  onnx_text(&classical, 1, "ai.onnx.ml");
  onnx_number(&classical, 2, 3);
  onnx_nest(graph, ONNX_GRAPH_NODE, node);
  onnx_add_output(graph, "y");
  onnx_number(&opset, 2, OPSET);
  onnx_number(&model, ONNX_MODEL_IR_VERSION, 10);
  onnx_nest(&model, ONNX_MODEL_GRAPH, graph);
  onnx_nest(&model, ONNX_MODEL_OPSET, &opset);
  onnx_nest(&model, ONNX_MODEL_OPSET, &preview);
  onnx_nest(&model, ONNX_MODEL_OPSET, &classical);
  assert_ok(rondo_onnx_parse(model.bytes, model.count, NULL, &made));
  return test_leave(destroy_model, made);
}

typedef struct given {
  const char *name;
  const void *data;
  size_t bytes;
} given;

/* Runs the model with these inputs; y is near what is expected. */
static void assert_runs(test_fixture *t, const rondo_onnx_model *model, const given *inputs, size_t count,
                        const float *expected, size_t elements) {
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = NULL;
  float y[MOST];
  assert_true(elements <= MOST);
  assert_ok(rondo_onnx_build_program(model, NULL, program, &build));
  rondo_compiled *of = test_compile_kept(program, t->device, NULL);
  assert_ok(rondo_weights_apply(rondo_onnx_build_weights(build), of, NULL, NULL));
  rondo_onnx_build_destroy(build);
  for (size_t i = 0; i < count; i++)
    assert_ok(rondo_compiled_write(of, inputs[i].name, inputs[i].data, inputs[i].bytes));
  assert_ok(rondo_compiled_run(of));
  assert_ok(rondo_compiled_read(of, "y", y, elements * sizeof *y));
  assert_near(y, expected, elements, 1e-5f);
}

static void assert_refused(const rondo_onnx_model *model, const char *message) {
  rondo_onnx_build *build = NULL;
  assert_error(rondo_onnx_build_program(model, NULL, test_new_program(), &build), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
  assert_message(message);
  rondo_onnx_build_destroy(build);
}

TEST(test_on3_swiglu_is_a_gate_times_a_value) {
  static const float a[] = {0, 1, -2}, b[] = {5, 2, 3}, y[] = {0, 1.4621172f, -0.7152177f};
  onnx_bytes graph = {0}, other = {0};
  const onnx_bytes node = onnx_node("it", "SwiGLU", NAMES("a", "b"), NAMES("y"));
  const given inputs[] = {{"a", a, sizeof a}, {"b", b, sizeof b}};
  onnx_add_input(&graph, "a", FLOAT, DIMS(3));
  onnx_add_input(&graph, "b", FLOAT, DIMS(3));
  assert_runs(t, model_of(&graph, &node), inputs, 2, y, 3);
  onnx_add_input(&other, "a", FLOAT, DIMS(3));
  onnx_add_input(&other, "b", FLOAT, DIMS(1));
  assert_refused(model_of(&other, &node), "its inputs have different shapes");
}

TEST(test_on3_cumprod_in_both_directions) {
  static const float x[] = {1, 2, 3, 4}, forward[] = {1, 2, 6, 24}, back[] = {24, 12, 4, 1};
  static const int64_t axis = 0;
  const given input = {"x", x, sizeof x};
  for (int reversed = 0; reversed < 2; reversed++) {
    onnx_bytes graph = {0}, node = onnx_node("it", "CumProd", NAMES("x", "axis"), NAMES("y"));
    onnx_add_int(&node, "reverse", reversed);
    onnx_add_int(&node, "exclusive", reversed);
    onnx_add_input(&graph, "x", FLOAT, DIMS(4));
    onnx_add_initializer(&graph, "axis", INT64, &axis, sizeof axis, NULL, 0);
    assert_runs(t, model_of(&graph, &node), &input, 1, reversed ? back : forward, 4);
  }
}

/* Two caches of three rows of two; two rows are written to each. */
static rondo_onnx_model *cache(const char *mode, const int64_t *update, size_t rank, bool has_indices) {
  onnx_bytes graph = {0},
             node = onnx_node("it", "TensorScatter", NAMES("past", "update", has_indices ? "at" : ""), NAMES("y"));
  add_text(&node, "mode", mode);
  onnx_add_input(&graph, "past", FLOAT, DIMS(2, 3, 2));
  onnx_add_input(&graph, "update", FLOAT, update, rank);
  if (has_indices) onnx_add_input(&graph, "at", INT64, DIMS(2));
  return model_of(&graph, &node);
}

TEST(test_on3_tensor_scatter_updates_caches) {
  static const float past[12] = {0}, update[] = {1, 2, 3, 4, 5, 6, 7, 8};
  static const float first[] = {1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 0, 0};
  static const float linear[] = {0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0};
  static const float circular[] = {3, 4, 0, 0, 1, 2, 0, 0, 5, 6, 7, 8};
  static const int64_t fitting[] = {1, 0}, wrapping[] = {2, 4};
  given inputs[] = {{"past", past, sizeof past}, {"update", update, sizeof update}, {"at", fitting, sizeof fitting}};
  assert_runs(t, cache("linear", DIMS(2, 2, 2), false), inputs, 2, first, 12);
  assert_runs(t, cache("linear", DIMS(2, 2, 2), true), inputs, 3, linear, 12);
  inputs[2].data = wrapping;
  assert_runs(t, cache("circular", DIMS(2, 2, 2), true), inputs, 3, circular, 12);
  assert_refused(cache("linear", DIMS(2, 4, 2), true), "the update does not fit the cache along axis 1");
  assert_refused(cache("round", DIMS(2, 2, 2), true), "it is 'round'");
}

/* Half of the transform of 1, 2, 3, 4, and back. */
TEST(test_on3_dft_back_to_real_numbers) {
  static const float x[] = {10, 0, -2, 2, -2, 0}, y[] = {1, 2, 3, 4};
  static const int64_t axis = 1;
  const given input = {"x", x, sizeof x};
  onnx_bytes graph = {0}, node = onnx_node("it", "DFT", NAMES("x", "", "axis"), NAMES("y"));
  onnx_add_int(&node, "inverse", 1);
  onnx_add_int(&node, "onesided", 1);
  onnx_add_input(&graph, "x", FLOAT, DIMS(1, 3, 2));
  onnx_add_initializer(&graph, "axis", INT64, &axis, sizeof axis, NULL, 0);
  assert_runs(t, model_of(&graph, &node), &input, 1, y, 4);
}

/* Transforms are computed in F32, and are values of the type of the signal. */
TEST(test_on3_transforms_have_the_type_of_the_signal) {
  enum { FLOAT16 = 10 };
  static const char *const ops[] = {"DFT", "STFT"};
  static const int64_t step = 4;
  for (size_t i = 0; i < 2; i++) {
    const char *const second = i == 0 ? "" : "step", *const last = i == 0 ? "axis" : "step";
    onnx_bytes graph = {0},
               node = onnx_node("it", ops[i], i == 0 ? NAMES("x", second, last) : NAMES("x", second, "", last),
                                NAMES("y"));
    rondo_onnx_build *build = NULL;
    rondo_onnx_built_value y = {.struct_size = sizeof y};
    static const int64_t axis = 1;
    onnx_add_input(&graph, "x", FLOAT16, DIMS(1, 4, 1));
    onnx_add_initializer(&graph, "axis", INT64, &axis, sizeof axis, NULL, 0);
    onnx_add_initializer(&graph, "step", INT64, &step, sizeof step, NULL, 0);
    rondo_program *program = test_new_program();
    assert_ok(rondo_onnx_build_program(model_of(&graph, &node), NULL, program, &build));
    rondo_compiled *of = test_compile_kept(program, t->device, NULL);
    assert_ok(rondo_onnx_build_get_output(build, 0, &y));
    assert_int_equal(y.type, RONDO_F16);
    assert_int_equal(test_compiled_value(of, 'o', "y").type, RONDO_F16);
    rondo_onnx_build_destroy(build);
  }
}

/* The loss of a target that is ignored is 0, whatever the scores of class 0 are. */
TEST(test_on3_ignored_targets_have_no_loss) {
  static const float scores[] = {-INFINITY, -1, -2, -INFINITY, -3, -4};
  static const int64_t targets[] = {1, -1};
  static const struct {
    const char *reduction;
    float y[2];
    size_t count;
  } cases[] = {{"none", {1, 0}, 2}, {"sum", {1}, 1}, {"mean", {1}, 1}};
  const given inputs[] = {{"x", scores, sizeof scores}, {"t", targets, sizeof targets}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    onnx_bytes graph = {0}, node = onnx_node("it", "NegativeLogLikelihoodLoss", NAMES("x", "t"), NAMES("y"));
    onnx_add_int(&node, "ignore_index", -1);
    add_text(&node, "reduction", cases[i].reduction);
    onnx_add_input(&graph, "x", FLOAT, DIMS(2, 3));
    onnx_add_input(&graph, "t", INT64, DIMS(2));
    assert_runs(t, model_of(&graph, &node), inputs, 2, cases[i].y, cases[i].count);
  }
}

/* A window of 2 x 2 over 3 x 3, with all weights 1. */
static rondo_onnx_model *deformed(bool has_mask, const int64_t *offset, size_t rank) {
  static const float weight[] = {1, 1, 1, 1}, bias[] = {0.5f};
  onnx_bytes graph = {0},
             node = onnx_node("it", "DeformConv", NAMES("x", "w", "offset", "b", has_mask ? "mask" : ""), NAMES("y"));
  const int64_t kernel[] = {2, 2};
  add_ints(&node, "kernel_shape", kernel, 2);
  onnx_add_input(&graph, "x", FLOAT, DIMS(1, 1, 3, 3));
  onnx_add_input(&graph, "offset", FLOAT, offset, rank);
  if (has_mask) onnx_add_input(&graph, "mask", FLOAT, DIMS(1, 4, 2, 2));
  onnx_add_initializer(&graph, "w", FLOAT, weight, sizeof weight, DIMS(1, 1, 2, 2));
  onnx_add_initializer(&graph, "b", FLOAT, bias, sizeof bias, DIMS(1));
  return model_of(&graph, &node);
}

TEST(test_on3_deform_conv_moves_the_elements_of_windows) {
  static const float x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  static const float plain[] = {8.5f, 12.5f, 20.5f, 24.5f};
  float offset[4 * 2 * 4] = {0}, mask[4 * 4];
  for (size_t i = 0; i < 16; i++) mask[i] = 1;
  given inputs[] = {{"x", x, sizeof x}, {"offset", offset, sizeof offset}, {"mask", mask, sizeof mask}};
  assert_runs(t, deformed(false, DIMS(1, 8, 2, 2)), inputs, 2, plain, 4);
  /* Tap 0 of the first place, element 0, half an element down and a quarter to the right: 3 / 2 + 1 / 4. Tap 3 of the
   * last place, element 8, out of the image. Tap 1 of the second place counts half. */
  offset[0] = 0.5f;
  offset[4] = 0.25f;
  offset[(3 * 2 + 1) * 4 + 3] = 1;
  mask[1 * 4 + 1] = 0.5f;
  static const float moved[] = {8.5f + 1.75f, 12.5f - 1, 20.5f, 24.5f - 8};
  assert_runs(t, deformed(true, DIMS(1, 8, 2, 2)), inputs, 3, moved, 4);
  assert_refused(deformed(false, DIMS(1, 4, 2, 2)), "input 2 is not [1, 8, 2, 2]");
}

/* FlexAttention ---------------------------------------------------------------------------------------------------- */

/* A graph "s" -> "o" of one node, whose second operand is a number. */
static onnx_bytes graph_of(const char *op, float number) {
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "s", FLOAT, DIMS(1, 2, 1, 2));
  onnx_add_initializer(&graph, "k", FLOAT, &number, sizeof number, DIMS(1));
  onnx_add_node(&graph, op, NAMES("s", "k"), NAMES("o"));
  onnx_add_output(&graph, "o");
  return graph;
}

/* Two heads of one query each, which share a head of two keys; values of `width` elements. */
static rondo_onnx_model *flex_model(onnx_bytes *node, int64_t width) {
  onnx_bytes graph = {0};
  onnx_text(node, 7, "ai.onnx.preview");
  onnx_add_input(&graph, "q", FLOAT, DIMS(1, 2, 1, 1));
  onnx_add_input(&graph, "k", FLOAT, DIMS(1, 1, 2, 1));
  onnx_add_input(&graph, "v", FLOAT, DIMS(1, 1, 2, width));
  return model_of(&graph, node);
}

static onnx_bytes flex_node(const onnx_bytes *score, const onnx_bytes *probability) {
  onnx_bytes node = onnx_node("it", "FlexAttention", NAMES("q", "k", "v"), NAMES("y"));
  if (score != NULL) onnx_add_graph(&node, "score_mod", score);
  if (probability != NULL) onnx_add_graph(&node, "prob_mod", probability);
  return node;
}

TEST(test_on3_flex_attention_runs_scores_and_probabilities_through_graphs) {
  static const float q[] = {1, 2}, k[] = {0, 1}, v[] = {10, 20}, wide[] = {10, 1, 20, 2};
  static const float plain[] = {17.310586f, 18.807971f}, both[] = {25.0f / 3, 9};
  static const float steps[] = {17.310586f, 1.7310586f, 18.807971f, 1.8807971f};
  given inputs[] = {{"q", q, sizeof q}, {"k", k, sizeof k}, {"v", v, sizeof v}};
  const onnx_bytes score = graph_of("Mul", 0.6931472f), probability = graph_of("Mul", 0.5f);
  onnx_bytes with_graphs = flex_node(&score, &probability), kernel = flex_node(NULL, NULL), other = kernel;
  assert_runs(t, flex_model(&with_graphs, 1), inputs, 3, both, 2);
  assert_runs(t, flex_model(&kernel, 1), inputs, 3, plain, 2);
  inputs[2] = (given){"v", wide, sizeof wide};
  assert_runs(t, flex_model(&other, 2), inputs, 3, steps, 4);
}

TEST(test_on3_flex_attention_that_cannot_be) {
  const onnx_bytes good = graph_of("Mul", 1), compares = graph_of("Less", 1), unknown = graph_of("NoSuchOperator", 1);
  onnx_bytes two_inputs = good, node = flex_node(&compares, NULL);
  onnx_add_input(&two_inputs, "more", FLOAT, DIMS(1));
  assert_refused(flex_model(&node, 1), "attribute 'score_mod': its output has another type or shape");
  node = flex_node(NULL, &two_inputs);
  assert_refused(flex_model(&node, 1), "attribute 'prob_mod': it has 2 inputs and 1 outputs");
  node = flex_node(&unknown, NULL);
  assert_refused(flex_model(&node, 1), "there is no operator 'NoSuchOperator'");
  node = flex_node(NULL, &unknown);
  assert_refused(flex_model(&node, 1), "there is no operator 'NoSuchOperator'");
  node = flex_node(NULL, NULL);
  onnx_add_int(&node, "softmax_precision", INT64);
  assert_refused(flex_model(&node, 1), "type 7 is no float");
  node = flex_node(&good, NULL);
  onnx_add_float(&node, "scale", -1);
  assert_refused(flex_model(&node, 1), "attribute 'scale': it is -1");
  onnx_bytes graph = {0};
  node = onnx_node("it", "FlexAttention", NAMES("k", "q", "q"), NAMES("y"));
  onnx_text(&node, 7, "ai.onnx.preview");
  onnx_add_input(&graph, "q", FLOAT, DIMS(1, 2, 1, 1));
  onnx_add_input(&graph, "k", FLOAT, DIMS(1, 1, 2, 1));
  assert_refused(model_of(&graph, &node), "the shapes float [1, 1, 2, 1], float [1, 2, 1, 1] and float [1, 2, 1, 1]");
  (void)t;
}

/* TfIdfVectorizer -------------------------------------------------------------------------------------------------- */

typedef struct ngram_lists {
  const char *mode;
  int64_t begins[2], columns[3], most, skips;
  bool has_weights;
} ngram_lists;

/* The n-grams 7; 7 8; 8 9 of one row of five, or of rows of `rank` dimensions. */
static rondo_onnx_model *ngrams(const ngram_lists *of, const int64_t *dims, size_t rank) {
  static const int64_t pool[] = {7, 7, 8, 8, 9};
  static const float weights[] = {1, 10, 100, 1000};
  onnx_bytes graph = {0}, node = onnx_node("it", "TfIdfVectorizer", NAMES("x"), NAMES("y")), list = {0};
  add_text(&node, "mode", of->mode);
  add_ints(&node, "pool_int64s", pool, 5);
  add_ints(&node, "ngram_counts", of->begins, 2);
  add_ints(&node, "ngram_indexes", of->columns, 3);
  onnx_add_int(&node, "min_gram_length", 1);
  onnx_add_int(&node, "max_gram_length", of->most);
  onnx_add_int(&node, "max_skip_count", of->skips);
  if (of->has_weights) {
    onnx_text(&list, 1, "weights");
    onnx_number(&list, 20, 6);
    onnx_data(&list, 7, weights, sizeof weights);
    onnx_nest(&node, ONNX_NODE_ATTRIBUTE, &list);
  }
  onnx_add_input(&graph, "x", INT64, dims, rank);
  return model_of(&graph, &node);
}

/* Column 2 has no n-gram. */
TEST(test_on3_ngrams_are_counted_and_weighted) {
  static const int64_t x[] = {7, 8, 7, 9, 7};
  const given input = {"x", x, sizeof x};
  static const struct {
    ngram_lists lists;
    float y[4];
  } cases[] = {
      {{"TF", {0, 1}, {0, 1, 3}, 2, 0, false}, {3, 1, 0, 0}},
      {{"TF", {0, 1}, {0, 1, 3}, 2, 1, false}, {3, 1, 0, 1}},
      {{"TF", {0, 1}, {0, 1, 3}, 1, 1, false}, {3, 0, 0, 0}},
      {{"IDF", {0, 1}, {0, 1, 3}, 2, 1, false}, {1, 1, 0, 1}},
      {{"IDF", {0, 1}, {0, 1, 3}, 2, 1, true}, {1, 10, 0, 1000}},
      {{"TFIDF", {0, 1}, {0, 1, 3}, 2, 1, true}, {3, 10, 0, 1000}},
      {{"TF", {0, 1}, {0, 1, 3}, 2, 9, false}, {3, 1, 0, 1}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_runs(t, ngrams(&cases[i].lists, DIMS(5)), &input, 1, cases[i].y, 4);
}

TEST(test_on3_ngrams_that_cannot_be_counted) {
  static const struct {
    ngram_lists lists;
    const char *text;
  } cases[] = {
      {{"DF", {0, 1}, {0, 1, 2}, 2, 0, false}, "it is 'DF'"},
      {{"TF", {0, 2}, {0, 1, 2}, 2, 0, false}, "it does not divide the 5 elements of the pool"},
      {{"TF", {0, 5}, {0, 1, 2}, 2, 0, false}, "it has 3 numbers for 5 n-grams"},
      {{"TF", {0, 1}, {0, 1, 1}, 2, 0, false}, "two n-grams have the column 1"},
      {{"TF", {0, 1}, {0, 1, -1}, 2, 0, false}, "-1 is no column"},
      {{"TF", {0, 1}, {0, 1, 2}, 0, 0, false}, "n-grams of 1 to 0 elements"},
      {{"TF", {0, 1}, {0, 1, 2}, 2, 1000, false}, "with 1000 skips"},
      {{"IDF", {0, 1}, {0, 1, 9}, 2, 0, true}, "it has 4 numbers for 10 columns"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_refused(ngrams(&cases[i].lists, DIMS(5)), cases[i].text);
  assert_refused(ngrams(&(const ngram_lists){"TF", {0, 1}, {0, 1, 2}, 2, 0, false}, DIMS(1, 1, 5)), "has 3 dimensions");
  assert_refused(ngrams(&(const ngram_lists){"TF", {0, 1}, {0, 1, 2}, 2, 0, false}, DIMS(0)), "has no elements");
  (void)t;
}

/* Classical machine learning, and remainders ----------------------------------------------------------------------- */

TEST(test_on3_columns_are_chosen_and_compared_with_a_threshold) {
  static const float x[] = {1, 2, 3, 4, 5, 6}, chosen[] = {3, 1, 6, 4}, above[] = {0, 0, 1, 1, 1, 1};
  static const int64_t columns[] = {2, 0};
  const given inputs[] = {{"x", x, sizeof x}, {"c", columns, sizeof columns}};
  onnx_bytes extracts = {0}, compares = {0};
  onnx_bytes extractor = onnx_node("it", "ArrayFeatureExtractor", NAMES("x", "c"), NAMES("y"));
  onnx_bytes binarizer = onnx_node("it", "Binarizer", NAMES("x"), NAMES("y"));
  onnx_text(&extractor, 7, "ai.onnx.ml");
  onnx_text(&binarizer, 7, "ai.onnx.ml");
  onnx_add_float(&binarizer, "threshold", 2);
  onnx_add_input(&extracts, "x", FLOAT, DIMS(2, 3));
  onnx_add_input(&extracts, "c", INT64, DIMS(1, 2));
  onnx_add_input(&compares, "x", FLOAT, DIMS(2, 3));
  assert_runs(t, model_of(&extracts, &extractor), inputs, 2, chosen, 4);
  assert_runs(t, model_of(&compares, &binarizer), inputs, 1, above, 6);
}

TEST(test_on3_a_remainder_of_zero_has_the_sign_of_the_divisor) {
  static const float a[] = {4, -4, 4, 5}, b[] = {2, 2, -2, -3};
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = NULL;
  onnx_bytes graph = {0};
  const onnx_bytes node = onnx_node("it", "Mod", NAMES("a", "b"), NAMES("y"));
  float y[4];
  onnx_add_input(&graph, "a", FLOAT, DIMS(4));
  onnx_add_input(&graph, "b", FLOAT, DIMS(4));
  assert_ok(rondo_onnx_build_program(model_of(&graph, &node), NULL, program, &build));
  rondo_onnx_build_destroy(build);
  rondo_compiled *of = test_compile_kept(program, t->device, NULL);
  assert_ok(rondo_compiled_write(of, "a", a, sizeof a));
  assert_ok(rondo_compiled_write(of, "b", b, sizeof b));
  assert_ok(rondo_compiled_run(of));
  assert_ok(rondo_compiled_read(of, "y", y, sizeof y));
  assert_true(y[0] == 0 && !signbit(y[0]) && y[1] == 0 && !signbit(y[1]));
  assert_true(y[2] == 0 && signbit(y[2]) && y[3] == -1);
}

/* Inputs of wrong types and ranks ---------------------------------------------------------------------------------- */

TEST(test_on10_dropout_whose_mode_is_a_string) {
  enum { STRING = 8, TENSOR_STRINGS = 6 };
  onnx_bytes graph = {0}, mode = onnx_tensor("mode", STRING, NULL, 0);
  const onnx_bytes node = onnx_node("it", "Dropout", NAMES("x", "", "mode"), NAMES("y"));
  onnx_text(&mode, TENSOR_STRINGS, "train");
  onnx_add_input(&graph, "x", FLOAT, DIMS(2));
  onnx_nest(&graph, ONNX_GRAPH_INITIALIZER, &mode);
  assert_refused(model_of(&graph, &node), "input 2 (training_mode) is not one bool");
  (void)t;
}

/* An LSTM of one state, with an input that has a dimension more than it needs. */
TEST(test_on10_weights_of_a_recurrent_layer_with_a_wrong_rank) {
  static const struct { size_t input, ranks[4]; } cases[] = {{1, {4, 3, 2, 2}}, {3, {3, 3, 3, 2}}, {7, {3, 3, 2, 3}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char message[64];
    onnx_bytes graph = {0};
    onnx_bytes node = onnx_node("it", "LSTM", NAMES("x", "w", "r", "b", "", "", "", "p"), NAMES("y"));
    onnx_add_int(&node, "hidden_size", 1);
    onnx_add_input(&graph, "x", FLOAT, DIMS(2, 1, 1));
    onnx_add_input(&graph, "w", FLOAT, (const int64_t[]){1, 4, 1, 1}, cases[i].ranks[0]);
    onnx_add_input(&graph, "r", FLOAT, (const int64_t[]){1, 4, 1, 1}, cases[i].ranks[1]);
    onnx_add_input(&graph, "b", FLOAT, (const int64_t[]){1, 8, 1}, cases[i].ranks[2]);
    onnx_add_input(&graph, "p", FLOAT, (const int64_t[]){1, 3, 1}, cases[i].ranks[3]);
    (void)snprintf(message, sizeof message, "input %zu does not fit 1 directions", cases[i].input);
    assert_refused(model_of(&graph, &node), message);
  }
  (void)t;
}

TEST(test_on3_one_hot_with_values_of_two_dimensions) {
  static const int64_t depth = 3, at[] = {2, 0}, shapes[][2] = {{1, 2}, {2, 1}};
  static const float values[] = {-1, 5}, y[] = {-1, -1, 5, 5, -1, -1};
  const given input = {"at", at, sizeof at};
  for (size_t i = 0; i < 2; i++) {
    onnx_bytes graph = {0};
    const onnx_bytes node = onnx_node("it", "OneHot", NAMES("at", "depth", "values"), NAMES("y"));
    onnx_add_input(&graph, "at", INT64, DIMS(2));
    onnx_add_initializer(&graph, "depth", INT64, &depth, sizeof depth, NULL, 0);
    onnx_add_initializer(&graph, "values", FLOAT, values, sizeof values, shapes[i], 2);
    assert_runs(t, model_of(&graph, &node), &input, 1, y, 6);
  }
}

TEST(test_on10_a_cache_of_a_rotary_embedding_with_a_wrong_rank) {
  for (size_t rank = 0; rank < 5; rank++) {
    onnx_bytes graph = {0};
    const onnx_bytes node = onnx_node("it", "RotaryEmbedding", NAMES("x", "cos", "sin"), NAMES("y"));
    if (rank == 3) continue;
    onnx_add_input(&graph, "x", FLOAT, DIMS(1, 1, 1, 2));
    onnx_add_input(&graph, "cos", FLOAT, (const int64_t[]){1, 1, 1, 1}, rank);
    onnx_add_input(&graph, "sin", FLOAT, (const int64_t[]){1, 1, 1, 1}, 3);
    assert_refused(model_of(&graph, &node), "dimensions, not 3");
  }
  (void)t;
}

/* More dimensions than programs have ------------------------------------------------------------------------------- */

TEST(test_on3_elementwise_operators_of_eight_dimensions) {
  static const float a[] = {0, 1, -2, 3}, b[] = {2, 2, 2, 2};
  static const struct {
    const char *op;
    size_t inputs;
    float y[4];
  } cases[] = {{"Gelu", 1, {0, 0.8413447f, -0.0455003f, 2.9959502f}},
               {"SwiGLU", 2, {0, 1.4621172f, -0.4768117f, 5.7154448f}},
               {"Mod", 2, {0, 1, 0, 1}},
               {"Pow", 2, {0, 1, 4, 9}},
               {"IsInf", 1, {0, 0, 0, 0}}};
  const given inputs[] = {{"a", a, sizeof a}, {"b", b, sizeof b}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const bool is_bool = strcmp(cases[i].op, "IsInf") == 0;
    onnx_bytes graph = {0}, node = onnx_node("it", cases[i].op, NAMES("a", cases[i].inputs > 1 ? "b" : NULL),
                                             NAMES(is_bool ? "is" : "y"));
    onnx_add_input(&graph, "a", FLOAT, DIMS(1, 2, 1, 1, 1, 1, 1, 2));
    if (cases[i].inputs > 1) onnx_add_input(&graph, "b", FLOAT, DIMS(1, 2, 1, 1, 1, 1, 1, 2));
    if (is_bool) {
      onnx_bytes cast = onnx_node("cast", "Cast", NAMES("is"), NAMES("y"));
      onnx_add_int(&cast, "to", FLOAT);
      onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
      node = cast;
    }
    assert_runs(t, model_of(&graph, &node), inputs, cases[i].inputs, cases[i].y, 4);
  }
}

TEST(test_on3_bits_of_eight_dimensions) {
  enum { INT32 = 6 };
  static const uint64_t one[] = {1}, x[] = {1, 2, 3, 4};
  static const float f[] = {1, -2, 0.5f, 3};
  const given words = {"x", x, sizeof x}, floats = {"x", f, sizeof f};
  onnx_bytes shifts = {0}, casts = {0};
  onnx_bytes shift = onnx_node("shift", "BitShift", NAMES("x", "one"), NAMES("s"));
  onnx_bytes to_float = onnx_node("it", "Cast", NAMES("s"), NAMES("y"));
  onnx_bytes to_bits = onnx_node("bits", "BitCast", NAMES("x"), NAMES("b"));
  onnx_bytes from_bits = onnx_node("it", "BitCast", NAMES("b"), NAMES("y"));
  add_text(&shift, "direction", "LEFT");
  onnx_add_int(&to_float, "to", FLOAT);
  onnx_add_int(&to_bits, "to", INT32);
  onnx_add_int(&from_bits, "to", FLOAT);
  onnx_add_input(&shifts, "x", UINT64, DIMS(1, 2, 1, 1, 1, 1, 1, 2));
  onnx_add_initializer(&shifts, "one", UINT64, one, sizeof one, DIMS(1));
  onnx_nest(&shifts, ONNX_GRAPH_NODE, &shift);
  assert_runs(t, model_of(&shifts, &to_float), &words, 1, (const float[]){2, 4, 6, 8}, 4);
  onnx_add_input(&casts, "x", FLOAT, DIMS(1, 2, 1, 1, 1, 1, 1, 2));
  onnx_nest(&casts, ONNX_GRAPH_NODE, &to_bits);
  assert_runs(t, model_of(&casts, &from_bits), &floats, 1, f, 4);
}

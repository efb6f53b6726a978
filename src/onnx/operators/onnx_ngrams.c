/* SPDX-License-Identifier: MIT
 * TfIdfVectorizer: how often each n-gram of a list is in a row of integers. For each length of n-grams and each
 * distance between their elements, all places are compared with all n-grams of the list.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

#define MOST_PASSES 256        /* lengths of n-grams times distances */
#define MOST_COLUMNS (1 << 22) /* of the result */

typedef enum ngram_mode { COUNTS, PRESENCE, WEIGHTED } ngram_mode;

typedef struct ngrams {
  rondo_onnx_node *node;
  rondo_program *program;
  const int64_t *pool, *begins, *columns; /* the n-grams; where those of each length begin; the place of each's count */
  const float *weights;                   /* of columns; NULL: none */
  size_t pool_count, lengths, column_count, weight_count;
  int64_t least, most, skips;
  ngram_mode mode;
  size_t rows, row_elements, results; /* columns of a row of the result */
} ngrams;

/* Attributes ------------------------------------------------------------------------------------------------------- */

static rondo_status read_mode(ngrams *of) {
  static const char *const names[] = {"TF", "IDF", "TFIDF"};
  const char *name;
  RONDO_TRY(rondo_onnx_attribute_text(of->node, "mode", "", &name));
  for (size_t i = 0; i < 3; i++) {
    of->mode = (ngram_mode)i;
    if (strcmp(name, names[i]) == 0) return RONDO_OK;
  }
  return rondo_onnx_refuse_attribute(of->node, "mode", "it is '%s'", name);
}

static rondo_status read_attributes(ngrams *of) {
  rondo_onnx_node *node = of->node;
  RONDO_TRY(read_mode(of));
  if (rondo_onnx_has_attribute(node, "pool_strings"))
    return rondo_onnx_refuse_attribute(node, "pool_strings", "programs have no values of the type 'string'");
  RONDO_TRY(rondo_onnx_attribute_ints(node, "pool_int64s", &of->pool, &of->pool_count));
  RONDO_TRY(rondo_onnx_attribute_ints(node, "ngram_counts", &of->begins, &of->lengths));
  RONDO_TRY(rondo_onnx_attribute_ints(node, "ngram_indexes", &of->columns, &of->column_count));
  RONDO_TRY(rondo_onnx_attribute_floats(node, "weights", &of->weights, &of->weight_count));
  RONDO_TRY(rondo_onnx_attribute_int(node, "min_gram_length", 1, &of->least));
  RONDO_TRY(rondo_onnx_attribute_int(node, "max_gram_length", 1, &of->most));
  RONDO_TRY(rondo_onnx_attribute_int(node, "max_skip_count", 0, &of->skips));
  if (of->least < 1 || of->most < of->least || of->skips < 0 || of->most > MOST_PASSES || of->skips >= MOST_PASSES ||
      of->most * (of->skips + 1) > MOST_PASSES)
    return rondo_onnx_refuse(node, "n-grams of %lld to %lld elements with %lld skips", (long long)of->least,
                             (long long)of->most, (long long)of->skips);
  return RONDO_OK;
}

/* The n-grams of `length` elements: the first element in the pool, and how many there are. */
static size_t count_ngrams(const ngrams *of, size_t length, size_t *out_begin) {
  const size_t begin = (size_t)of->begins[length - 1];
  const size_t end = length < of->lengths ? (size_t)of->begins[length] : of->pool_count;
  *out_begin = begin;
  return (end - begin) / length;
}

static rondo_status check_pool(const ngrams *of) {
  size_t all = 0, begin;
  for (size_t i = 0; i < of->lengths; i++) {
    const int64_t end = i + 1 < of->lengths ? of->begins[i + 1] : (int64_t)of->pool_count;
    if (of->begins[i] < 0 || of->begins[i] > end || (end - of->begins[i]) % (int64_t)(i + 1) != 0)
      return rondo_onnx_refuse_attribute(of->node, "ngram_counts", "it does not divide the %zu elements of the pool",
                                         of->pool_count);
    all += count_ngrams(of, i + 1, &begin);
  }
  if (all == of->column_count && all > 0) return RONDO_OK;
  return rondo_onnx_refuse_attribute(of->node, "ngram_indexes", "it has %zu numbers for %zu n-grams", of->column_count,
                                     all);
}

/* Columns ---------------------------------------------------------------------------------------------------------- */

/* For each column of the result, the n-gram that is counted there; `counted`, the number of those that are counted,
 * where there is none. N-grams of other lengths are not counted. */
static rondo_status find_sources(ngrams *of, size_t counted, int64_t **out) {
  size_t begin, id = 0, at = 0;
  for (size_t i = 0; i < of->column_count; i++) {
    if (of->columns[i] < 0 || of->columns[i] >= MOST_COLUMNS)
      return rondo_onnx_refuse_attribute(of->node, "ngram_indexes", "%lld is no column", (long long)of->columns[i]);
    if ((size_t)of->columns[i] >= of->results) of->results = (size_t)of->columns[i] + 1;
  }
  RONDO_TRY(rondo_scratch_take(&of->node->importer->scratch, of->results, sizeof **out, out));
  for (size_t i = 0; i < of->results; i++) (*out)[i] = (int64_t)counted;
  for (size_t length = 1; length <= of->lengths; length++) {
    const size_t count = count_ngrams(of, length, &begin);
    const bool is_counted = (int64_t)length >= of->least && (int64_t)length <= of->most;
    for (size_t i = 0; i < count && is_counted; i++) {
      int64_t *source = &(*out)[of->columns[id + i]];
      if (*source != (int64_t)counted)
        return rondo_onnx_refuse_attribute(of->node, "ngram_indexes", "two n-grams have the column %lld",
                                           (long long)of->columns[id + i]);
      *source = (int64_t)at++;
    }
    id += count;
  }
  return RONDO_OK;
}

static size_t count_wanted(const ngrams *of) {
  size_t count = 0, begin;
  for (size_t length = (size_t)of->least; length <= (size_t)of->most && length <= of->lengths; length++)
    count += count_ngrams(of, length, &begin);
  return count;
}

/* Counts ----------------------------------------------------------------------------------------------------------- */

static rondo_status constant_value(ngrams *of, rondo_onnx_type type, size_t count, const void *elements, size_t bytes,
                                   rondo_value *out) {
  const rondo_onnx_shape shape = {.type = type, .rank = 1, .dims = {count}};
  rondo_onnx_constant *constant;
  void *copy;
  RONDO_TRY(rondo_onnx_constant_make(of->node->importer, &shape, &constant, &copy));
  memcpy(copy, elements, bytes);
  return rondo_onnx_constant_operand(of->node, constant, out);
}

/* Element `part` of all n-grams of a length, [count]. */
static rondo_status ngram_elements(ngrams *of, size_t length, size_t part, rondo_value *out) {
  size_t begin;
  const size_t count = count_ngrams(of, length, &begin);
  int64_t *elements;
  RONDO_TRY(rondo_scratch_take(&of->node->importer->scratch, count, sizeof *elements, &elements));
  for (size_t i = 0; i < count; i++) elements[i] = of->pool[begin + i * length + part];
  return constant_value(of, RONDO_ONNX_INT64, count, elements, count * sizeof *elements, out);
}

/* How often each n-gram is in each row, [rows, n-grams], with this distance between its elements; added to *inout. */
static rondo_status add_matches(ngrams *of, rondo_value x, size_t length, size_t distance, rondo_value *inout) {
  const size_t places = of->row_elements - (length - 1) * distance, step[] = {1, 1, 1}, one = 1;
  const size_t lengths[] = {of->rows, places, 1};
  rondo_value matches = {0}, window, elements, sum;
  for (size_t part = 0; part < length; part++) {
    const size_t start[] = {0, part * distance, 0};
    RONDO_TRY(rondo_op_slice(of->program, x, start, lengths, step, &window));
    RONDO_TRY(ngram_elements(of, length, part, &elements));
    RONDO_TRY(rondo_op_equal(of->program, window, elements, &window));
    if (part > 0) RONDO_TRY(rondo_op_logical_and(of->program, matches, window, &window));
    matches = window;
  }
  RONDO_TRY(rondo_op_cast(of->program, matches, RONDO_F32, &matches));
  RONDO_TRY(rondo_op_sum(of->program, matches, &one, 1, false, &sum));
  if (inout->id != 0) return rondo_op_add(of->program, *inout, sum, inout);
  *inout = sum;
  return RONDO_OK;
}

/* Distances do not matter to n-grams of one element. */
static rondo_status add_length(ngrams *of, rondo_value x, size_t length, rondo_value *out) {
  const size_t distances = length == 1 ? 1 : (size_t)of->skips + 1;
  size_t begin;
  *out = (rondo_value){0};
  for (size_t distance = 1; distance <= distances; distance++)
    if ((length - 1) * distance < of->row_elements) RONDO_TRY(add_matches(of, x, length, distance, out));
  const size_t dims[] = {of->rows, count_ngrams(of, length, &begin)};
  return out->id != 0 ? RONDO_OK : rondo_op_full(of->program, RONDO_F32, dims, 2, 0, out);
}

/* Counts of all n-grams, and a column of zeros behind them, [rows, counted + 1]. */
static rondo_status add_counts(ngrams *of, rondo_value x, rondo_value *out) {
  const size_t column[] = {of->rows, 1};
  size_t count = 0, begin;
  rondo_value *parts;
  RONDO_TRY(rondo_scratch_take(&of->node->importer->scratch, of->lengths + 1, sizeof *parts, &parts));
  for (size_t length = (size_t)of->least; length <= (size_t)of->most && length <= of->lengths; length++)
    if (count_ngrams(of, length, &begin) > 0) RONDO_TRY(add_length(of, x, length, &parts[count++]));
  RONDO_TRY(rondo_op_full(of->program, RONDO_F32, column, 2, 0, &parts[count++]));
  *out = parts[0];
  return count > 1 ? rondo_op_concat(of->program, parts, count, 1, out) : RONDO_OK;
}

static rondo_status add_weights(ngrams *of, rondo_value *inout) {
  rondo_value zero, weights;
  if (of->mode == COUNTS) return RONDO_OK;
  if (of->mode == PRESENCE) {
    RONDO_TRY(rondo_op_full(of->program, RONDO_F32, NULL, 0, 0, &zero));
    RONDO_TRY(rondo_op_greater(of->program, *inout, zero, inout));
    RONDO_TRY(rondo_op_cast(of->program, *inout, RONDO_F32, inout));
  }
  if (of->weights == NULL) return RONDO_OK;
  if (of->weight_count < of->results)
    return rondo_onnx_refuse_attribute(of->node, "weights", "it has %zu numbers for %zu columns", of->weight_count,
                                       of->results);
  RONDO_TRY(
      constant_value(of, RONDO_ONNX_FLOAT, of->results, of->weights, of->results * sizeof *of->weights, &weights));
  return rondo_op_mul(of->program, *inout, weights, inout);
}

static rondo_status add_ngrams(ngrams *of, rondo_value *out) {
  const size_t dims[] = {of->rows, of->row_elements, 1};
  int64_t *sources;
  rondo_value x, columns;
  RONDO_TRY(find_sources(of, count_wanted(of), &sources));
  RONDO_TRY(rondo_onnx_operand(of->node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(of->node, &of->program));
  RONDO_TRY(rondo_op_cast(of->program, x, RONDO_I64, &x));
  RONDO_TRY(rondo_onnx_reshape(of->node, x, dims, 3, &x));
  RONDO_TRY(add_counts(of, x, out));
  RONDO_TRY(constant_value(of, RONDO_ONNX_INT64, of->results, sources, of->results * sizeof *sources, &columns));
  RONDO_TRY(rondo_op_index_select(of->program, *out, columns, 1, out));
  return add_weights(of, out);
}

static rondo_status add_tfidf(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  ngrams of = {.node = node};
  rondo_value y;
  (void)data;
  if (have->rank > 2) return rondo_onnx_refuse(node, "its input has %zu dimensions, not 1 or 2", have->rank);
  RONDO_TRY(read_attributes(&of));
  RONDO_TRY(check_pool(&of));
  of.rows = have->rank == 2 ? have->dims[0] : 1;
  of.row_elements = have->rank > 0 ? have->dims[have->rank - 1] : 1;
  if (of.rows == 0 || of.row_elements == 0) return rondo_onnx_refuse(node, "its input has no elements");
  RONDO_TRY(add_ngrams(&of, &y));
  const size_t dims[] = {of.rows, of.results};
  RONDO_TRY(rondo_onnx_reshape(node, y, have->rank == 2 ? dims : dims + 1, have->rank == 2 ? 2 : 1, &y));
  return rondo_onnx_set_typed(node, 0, y, RONDO_ONNX_FLOAT);
}

static const rondo_onnx_row rows[] = {
    {"TfIdfVectorizer", 9, 0, 1, 1, 0, add_tfidf, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_ngrams, rows);

/* SPDX-License-Identifier: MIT
 * Padding to buckets. The memory for padded inputs has a fixed address, so recordings need no patches. Calls of a tree
 * run one after another, so one block for each input is enough.
 */
#include "tree/pad_to_bucket.h"

#include <inttypes.h>
#include <string.h>

#include "base/versioned_struct.h"
#include "exec/api_check.h"
#include "tree/path/owned_buffer.h"

/* Making ----------------------------------------------------------------------------------------------------------- */

rondo_status rondo_padding_check(const rondo_function_options *options) {
  bool has_rows = false;
  size_t last = 0;
  for (size_t i = 0; i < options->input_count; i++) has_rows |= (options->inputs[i] & RONDO_INPUT_ROWS) != 0;
  if (has_rows != (options->bucket_count > 0) || (options->bucket_count > 0 && options->buckets == NULL))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "rondo_function_create: function '%s' has %s: give both buckets and RONDO_INPUT_ROWS for each "
                      "padded input, or neither",
                      options->name,
                      has_rows ? "an input that is RONDO_INPUT_ROWS, but no buckets"
                               : "buckets, but no input that is RONDO_INPUT_ROWS");
  for (size_t i = 0; i < options->bucket_count; i++) {
    if (options->buckets[i] <= last)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                        "rondo_function_create: '%s': bucket %zu has %zu rows after one of %zu: give them in "
                        "ascending order, from 1 on",
                        options->name, i, options->buckets[i], last);
    last = options->buckets[i];
  }
  return RONDO_OK;
}

static rondo_status fill(const rondo_allocator *allocator, const rondo_function_options *options,
                         rondo_padding *padding) {
  padding->word = options->padding;
  RONDO_TRY(rondo_allocate_items(allocator, options->input_count, sizeof *padding->inputs, &padding->inputs));
  padding->input_count = options->input_count;
  RONDO_TRY(rondo_allocate_items(allocator, options->bucket_count, sizeof *padding->buckets, &padding->buckets));
  padding->bucket_count = options->bucket_count;
  for (size_t i = 0; i < padding->bucket_count; i++) padding->buckets[i].rows = options->buckets[i];
  return RONDO_OK;
}

rondo_status rondo_padding_create(const rondo_tree *tree, const rondo_function_options *options, rondo_padding **out) {
  *out = NULL;
  if (options->bucket_count == 0) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&tree->allocator, 1, sizeof **out, out));
  return fill(&tree->allocator, options, *out);
}

/* Frees the memory after the tree's work. */
static void free_memory(rondo_tree *tree, rondo_padded_input *input) {
  if (input->memory == NULL) return;
  rondo_owned_free_address(tree, rondo_tree_last_stream(tree), input->memory);
  input->memory = NULL;
  input->capacity = 0;
}

void rondo_padding_free(rondo_tree *tree, rondo_padding *padding) {
  if (padding == NULL) return;
  for (size_t i = 0; i < padding->input_count; i++) free_memory(tree, &padding->inputs[i]);
  rondo_release(&tree->allocator, padding->inputs, padding->input_count, sizeof *padding->inputs);
  rondo_release(&tree->allocator, padding->buckets, padding->bucket_count, sizeof *padding->buckets);
  rondo_release(&tree->allocator, padding, 1, sizeof *padding);
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

static bool has_rows(const rondo_function *function, size_t index) {
  return (function->options.inputs[index] & RONDO_INPUT_ROWS) != 0;
}

static rondo_status check_rows(const char *call, const rondo_function *function, size_t index, size_t *inout_rows) {
  const rondo_resolved_input *input = &function->tree->inputs[index];
  const bool is_first = *inout_rows == SIZE_MAX;
  if (input->rank > 0 && (is_first || *inout_rows == input->shape[0]) &&
      (input->shape[0] == 0 ? input->bytes == 0 : input->bytes % input->shape[0] == 0)) {
    *inout_rows = input->shape[0];
    return RONDO_OK;
  }
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "%s: input %zu of '%s' is declared RONDO_INPUT_ROWS: the first dimension of its shape must be the "
                    "number of rows, be the same for all such inputs, and divide its bytes",
                    call, index, function->origin->name);
}

static rondo_status find_rows(const char *call, const rondo_function *function, size_t *out_rows) {
  *out_rows = SIZE_MAX;
  for (size_t i = 0; i < function->options.input_count; i++)
    if (has_rows(function, i)) RONDO_TRY(check_rows(call, function, i, out_rows));
  return RONDO_OK;
}

static rondo_bucket *find_bucket(const rondo_padding *padding, size_t rows) {
  for (size_t i = 0; i < padding->bucket_count; i++)
    if (rows <= padding->buckets[i].rows) return &padding->buckets[i];
  return NULL;
}

/* Inputs ----------------------------------------------------------------------------------------------------------- */

/* Memory for the input with as many rows as the largest bucket has. */
static rondo_status reserve(rondo_tree *tree, rondo_stream *stream, const rondo_padding *padding, size_t row_bytes,
                            rondo_padded_input *input) {
  size_t capacity;
  if (__builtin_mul_overflow(row_bytes, padding->buckets[padding->bucket_count - 1].rows, &capacity))
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_BAD_SIZE,
                      "rondo_function_call: an input of the largest bucket, %zu rows of %zu bytes, does not fit the "
                      "address space: remove that bucket",
                      padding->buckets[padding->bucket_count - 1].rows, row_bytes);
  if (capacity <= input->capacity) return RONDO_OK;
  void *memory;
  RONDO_TRY(rondo_owned_allocate(tree, stream, capacity, "a padded input", &memory));
  free_memory(tree, input);
  input->memory = memory;
  input->capacity = capacity;
  return RONDO_OK;
}

static rondo_status fill_rest(const rondo_padding *padding, rondo_stream *stream, char *from, size_t bytes) {
  const bool has_words = (uintptr_t)from % sizeof padding->word == 0 && bytes % sizeof padding->word == 0;
  const size_t element = has_words ? sizeof padding->word : 1;
  const rondo_fill fill = {.dst = from,
                           .value = has_words ? padding->word : (padding->word & 0xff),
                           .element_bytes = (uint32_t)element,
                           .width = bytes / element,
                           .height = 1};
  return rondo_fill_async(stream, &fill);
}

/* Copies the input to the function's memory, with the bucket's rows. */
static rondo_status pad(rondo_tree *tree, rondo_stream *stream, const rondo_padding *padding,
                        rondo_padded_input *padded, rondo_resolved_input *input) {
  const size_t row_bytes = input->bytes / padding->rows, bytes = row_bytes * padding->padded_rows;
  RONDO_TRY(reserve(tree, stream, padding, row_bytes, padded));
  if (input->bytes > 0) RONDO_TRY(rondo_copy_async(stream, padded->memory, input->address, input->bytes));
  if (bytes > input->bytes) RONDO_TRY(fill_rest(padding, stream, padded->memory + input->bytes, bytes - input->bytes));
  padded->given = input->is_of_ending ? NULL : input->address;
  padded->given_bytes = input->bytes;
  memcpy(padded->shape, input->shape, input->rank * sizeof padded->shape[0]);
  padded->shape[0] = padding->padded_rows;
  input->role = RONDO_ROLE_MOVING;
  input->is_sole = input->is_of_ending = false;
  input->buffer = NULL;
  input->address = padded->memory;
  input->bytes = bytes;
  input->shape = padded->shape;
  return RONDO_OK;
}

static rondo_status pad_all(const rondo_function *function, rondo_stream *stream) {
  rondo_padding *padding = function->padding;
  for (size_t i = 0; i < padding->input_count; i++)
    if (has_rows(function, i))
      RONDO_TRY(pad(function->tree, stream, padding, &padding->inputs[i], &function->tree->inputs[i]));
  return RONDO_OK;
}

rondo_status rondo_padding_begin(const char *call, rondo_function *function, rondo_stream *stream, bool counts) {
  rondo_padding *padding = function->padding;
  size_t rows;
  if (padding == NULL) return RONDO_OK;
  padding->rows = padding->padded_rows = 0;
  RONDO_TRY(find_rows(call, function, &rows));
  rondo_bucket *bucket = find_bucket(padding, rows);
  if (bucket == NULL || rows == 0) return RONDO_OK;
  if (counts) {
    bucket->calls++;
    bucket->given_rows += rows;
  }
  if (bucket->rows == rows) return RONDO_OK;
  padding->rows = rows;
  padding->padded_rows = bucket->rows;
  const rondo_status status = pad_all(function, stream);
  if (status != RONDO_OK) padding->rows = padding->padded_rows = 0;
  return status;
}

rondo_status rondo_padding_end(const rondo_function *function, rondo_stream *stream, bool writes_back) {
  rondo_padding *padding = function->padding;
  if (padding == NULL || padding->rows == 0) return RONDO_OK;
  padding->rows = padding->padded_rows = 0;
  for (size_t i = 0; writes_back && i < padding->input_count; i++) {
    const rondo_padded_input *input = &padding->inputs[i];
    const bool is_written = has_rows(function, i) && (function->options.inputs[i] & RONDO_INPUT_MUTATED) != 0;
    if (is_written && input->given != NULL && input->given_bytes > 0)
      RONDO_TRY(rondo_copy_async(stream, input->given, input->memory, input->given_bytes));
  }
  return RONDO_OK;
}

/* Outputs ---------------------------------------------------------------------------------------------------------- */

void rondo_padding_cut(const rondo_function *function, rondo_buffer_layout *extent) {
  const rondo_padding *padding = function->padding;
  if (!extent->has_rows || padding == NULL || padding->rows == 0 || extent->shape[0] != padding->padded_rows) return;
  extent->bytes = extent->bytes / padding->padded_rows * padding->rows;
  extent->shape[0] = padding->rows;
}

/* Queries ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_function_get_bucket(const rondo_function *function, size_t index, rondo_bucket_info *out_info) {
  const char *const call = "rondo_function_get_bucket";
  RONDO_TRY(rondo_check_call(call, "the function", function));
  RONDO_TRY(rondo_require(call, "out_info", out_info));
  const rondo_padding *padding = function->padding;
  if (padding == NULL || index >= padding->bucket_count)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: there is no bucket %zu: '%s' has %zu",
                      call, index, function->origin->name, padding == NULL ? 0 : padding->bucket_count);
  const rondo_bucket *bucket = &padding->buckets[index];
  const rondo_bucket_info info = {.rows = bucket->rows,
                                  .calls = bucket->calls,
                                  .given_rows = bucket->given_rows,
                                  .padded_rows = bucket->calls * bucket->rows - bucket->given_rows};
  return rondo_versioned_write("rondo_bucket_info", &info, out_info, sizeof info);
}

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

/* What the options and inputs of a dimension are called. */
static const struct {
  uint32_t flag;
  const char *name, *sizes, *entry, *unit;
} dimensions[RONDO_PADDED_DIMS] = {{RONDO_INPUT_ROWS, "RONDO_INPUT_ROWS", "buckets", "bucket", "rows"},
                                   {RONDO_INPUT_LENGTH, "RONDO_INPUT_LENGTH", "lengths", "length", "positions"}};

static rondo_padded_sizes sizes_of(const rondo_function_options *options, size_t dim) {
  return dim == RONDO_PADDED_ROWS ? (rondo_padded_sizes){(size_t *)(uintptr_t)options->buckets, options->bucket_count}
                                  : (rondo_padded_sizes){(size_t *)(uintptr_t)options->lengths, options->length_count};
}

static rondo_status check_sizes(const rondo_function_options *options, size_t dim) {
  const rondo_padded_sizes sizes = sizes_of(options, dim);
  const char *flag = dimensions[dim].name, *name = dimensions[dim].sizes;
  bool is_used = false;
  size_t last = 0;
  for (size_t i = 0; i < options->input_count; i++) is_used |= (options->inputs[i] & dimensions[dim].flag) != 0;
  if (is_used != (sizes.count > 0) || (sizes.count > 0 && sizes.items == NULL))
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
        "rondo_function_create: function '%s' has %s%s%s%s: give both %s and %s for each padded input, or "
        "neither",
        options->name, is_used ? "an input that is " : "", is_used ? flag : name,
        is_used ? ", but no " : ", but no input that is ", is_used ? name : flag, name, flag);
  for (size_t i = 0; i < sizes.count; i++) {
    if (sizes.items[i] <= last)
      return rondo_fail(
          RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
          "rondo_function_create: '%s': %s %zu has %zu %s after one of %zu: give them in ascending order, from "
          "1 on",
          options->name, dimensions[dim].entry, i, sizes.items[i], dimensions[dim].unit, last);
    last = sizes.items[i];
  }
  return RONDO_OK;
}

rondo_status rondo_padding_check(const rondo_function_options *options) {
  RONDO_TRY(check_sizes(options, RONDO_PADDED_ROWS));
  return check_sizes(options, RONDO_PADDED_LENGTH);
}

static size_t at_least_1(size_t count) { return count == 0 ? 1 : count; }

static rondo_status fill(const rondo_allocator *allocator, const rondo_function_options *options,
                         rondo_padding *padding) {
  padding->word = options->padding;
  RONDO_TRY(rondo_allocate_items(allocator, options->input_count, sizeof *padding->inputs, &padding->inputs));
  padding->input_count = options->input_count;
  for (size_t d = 0; d < RONDO_PADDED_DIMS; d++) {
    const rondo_padded_sizes given = sizes_of(options, d);
    rondo_padded_sizes *sizes = &padding->sizes[d];
    RONDO_TRY(rondo_allocate_copy(allocator, given.items, given.count, sizeof *sizes->items, &sizes->items));
    sizes->count = given.count;
  }
  size_t count;
  if (__builtin_mul_overflow(at_least_1(options->bucket_count), at_least_1(options->length_count), &count))
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_BAD_SIZE,
                      "rondo_function_create: '%s' has %zu numbers of rows and %zu lengths: give fewer", options->name,
                      options->bucket_count, options->length_count);
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *padding->buckets, &padding->buckets));
  padding->bucket_count = count;
  return RONDO_OK;
}

rondo_status rondo_padding_create(const rondo_tree *tree, const rondo_function_options *options, rondo_padding **out) {
  *out = NULL;
  if (options->bucket_count == 0 && options->length_count == 0) return RONDO_OK;
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
  for (size_t d = 0; d < RONDO_PADDED_DIMS; d++)
    rondo_release(&tree->allocator, padding->sizes[d].items, padding->sizes[d].count, sizeof(size_t));
  rondo_release(&tree->allocator, padding->buckets, padding->bucket_count, sizeof *padding->buckets);
  rondo_release(&tree->allocator, padding, 1, sizeof *padding);
}

/* Sizes ------------------------------------------------------------------------------------------------------------ */

static bool has_dim(const rondo_function *function, size_t index, size_t dim) {
  return (function->options.inputs[index] & dimensions[dim].flag) != 0;
}

static bool is_padded(const rondo_function *function, size_t index) {
  return has_dim(function, index, RONDO_PADDED_ROWS) || has_dim(function, index, RONDO_PADDED_LENGTH);
}

/* Whether the first `dims` dimensions divide the input's bytes. */
static bool divide_bytes(const rondo_resolved_input *input, size_t dims) {
  size_t count = 1;
  for (size_t d = 0; d < dims; d++)
    if (__builtin_mul_overflow(count, input->shape[d], &count)) return false;
  return count == 0 ? input->bytes == 0 : input->bytes % count == 0;
}

static rondo_status check_size(const char *call, const rondo_function *function, size_t index, size_t dim,
                               size_t *inout_size) {
  const rondo_resolved_input *input = &function->tree->inputs[index];
  const bool is_first = *inout_size == SIZE_MAX;
  if (input->rank > dim && (is_first || *inout_size == input->shape[dim]) && divide_bytes(input, dim + 1)) {
    *inout_size = input->shape[dim];
    return RONDO_OK;
  }
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "%s: input %zu of '%s' is declared %s: the %s dimension of its shape must be the number of %s, be "
                    "the same for all such inputs, and divide its bytes with those before it",
                    call, index, function->origin->name, dimensions[dim].name, dim == 0 ? "first" : "second",
                    dimensions[dim].unit);
}

static rondo_status find_size(const char *call, const rondo_function *function, size_t dim, size_t *out_size) {
  *out_size = SIZE_MAX;
  for (size_t i = 0; i < function->options.input_count; i++)
    if (has_dim(function, i, dim)) RONDO_TRY(check_size(call, function, i, dim, out_size));
  return RONDO_OK;
}

/* Sets given and to. NULL: there is no bucket. */
static rondo_status find_bucket(const char *call, const rondo_function *function, rondo_bucket **out) {
  rondo_padding *padding = function->padding;
  size_t index = 0;
  *out = NULL;
  for (size_t d = 0; d < RONDO_PADDED_DIMS; d++) {
    const rondo_padded_sizes *sizes = &padding->sizes[d];
    size_t i = 0;
    padding->given[d] = padding->to[d] = 0;
    if (sizes->count == 0) continue;
    RONDO_TRY(find_size(call, function, d, &padding->given[d]));
    while (i < sizes->count && sizes->items[i] < padding->given[d]) i++;
    if (i == sizes->count || padding->given[d] == 0) return RONDO_OK;
    padding->to[d] = sizes->items[i];
    index = index * sizes->count + i;
  }
  *out = &padding->buckets[index];
  return RONDO_OK;
}

/* Inputs ----------------------------------------------------------------------------------------------------------- */

/* Bytes of the input with these sizes of the padded dimensions, which are not smaller than its own; SIZE_MAX: too many.
 */
static size_t bytes_with(const rondo_function *function, size_t index, const size_t *sizes) {
  const rondo_resolved_input *input = &function->tree->inputs[index];
  size_t bytes = input->bytes;
  for (size_t d = 0; d < RONDO_PADDED_DIMS; d++)
    if (has_dim(function, index, d) && __builtin_mul_overflow(bytes / input->shape[d], sizes[d], &bytes))
      return SIZE_MAX;
  return bytes;
}

/* Memory for the input with as many rows, and as long, as the largest bucket. */
static rondo_status reserve(const rondo_function *function, rondo_stream *stream, size_t index) {
  const rondo_padding *padding = function->padding;
  rondo_tree *tree = function->tree;
  rondo_padded_input *input = &padding->inputs[index];
  size_t largest[RONDO_PADDED_DIMS] = {0};
  for (size_t d = 0; d < RONDO_PADDED_DIMS; d++)
    if (padding->sizes[d].count > 0) largest[d] = padding->sizes[d].items[padding->sizes[d].count - 1];
  const size_t capacity = bytes_with(function, index, largest);
  if (capacity == SIZE_MAX)
    return rondo_fail(
        RONDO_OUT_OF_MEMORY, RONDO_REASON_BAD_SIZE,
        "rondo_function_call: input %zu of '%s' with the largest bucket, %zu rows of length %zu, does not "
        "fit the address space: remove that bucket",
        index, function->origin->name, largest[RONDO_PADDED_ROWS], largest[RONDO_PADDED_LENGTH]);
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

static rondo_padded_lines lines_of(const rondo_function *function, size_t index, size_t padded_bytes) {
  const rondo_padding *padding = function->padding;
  const rondo_resolved_input *input = &function->tree->inputs[index];
  const bool is_longer = has_dim(function, index, RONDO_PADDED_LENGTH) &&
                         padding->to[RONDO_PADDED_LENGTH] > padding->given[RONDO_PADDED_LENGTH];
  if (!is_longer || input->bytes == 0) return (rondo_padded_lines){1, input->bytes, padded_bytes};
  const bool has_rows = has_dim(function, index, RONDO_PADDED_ROWS);
  const size_t rows = has_rows ? padding->to[RONDO_PADDED_ROWS] : input->shape[0];
  return (rondo_padded_lines){input->shape[0], input->bytes / input->shape[0], padded_bytes / rows};
}

/* Between the caller's memory and the block. */
static rondo_status copy_lines(rondo_stream *stream, const rondo_padded_lines *lines, char *block, char *given,
                               bool is_back) {
  if (lines->bytes == 0) return RONDO_OK;
  if (lines->count == 1)
    return rondo_copy_async(stream, is_back ? given : block, is_back ? block : given, lines->bytes);
  const rondo_copy copy = {.dst = is_back ? given : block,
                           .src = is_back ? block : given,
                           .width = lines->bytes,
                           .height = lines->count,
                           .depth = 1,
                           .dst_pitch = is_back ? lines->bytes : lines->bytes_of_line,
                           .src_pitch = is_back ? lines->bytes_of_line : lines->bytes};
  return rondo_copy_box_async(stream, &copy);
}

/* The padding of one line is behind it. That of several is between and behind them, so all of the block is filled
 * first. */
static rondo_status fill_block(const rondo_padding *padding, rondo_stream *stream, const rondo_padded_input *padded,
                               size_t bytes) {
  const size_t from = padded->lines.count == 1 ? padded->lines.bytes : 0;
  return bytes == from ? RONDO_OK : fill_rest(padding, stream, padded->memory + from, bytes - from);
}

/* Copies the input to the function's memory, with the bucket's rows and length. */
static rondo_status pad(const rondo_function *function, rondo_stream *stream, size_t index) {
  const rondo_padding *padding = function->padding;
  rondo_padded_input *padded = &padding->inputs[index];
  rondo_resolved_input *input = &function->tree->inputs[index];
  const size_t bytes = bytes_with(function, index, padding->to);
  RONDO_TRY(reserve(function, stream, index));
  padded->lines = lines_of(function, index, bytes);
  RONDO_TRY(fill_block(padding, stream, padded, bytes));
  RONDO_TRY(copy_lines(stream, &padded->lines, padded->memory, input->address, false));
  padded->given = input->is_of_ending ? NULL : input->address;
  memcpy(padded->shape, input->shape, input->rank * sizeof padded->shape[0]);
  for (size_t d = 0; d < RONDO_PADDED_DIMS; d++)
    if (has_dim(function, index, d)) padded->shape[d] = padding->to[d];
  input->role = RONDO_ROLE_MOVING;
  input->is_sole = input->is_of_ending = false;
  input->buffer = NULL;
  input->address = padded->memory;
  input->bytes = bytes;
  input->shape = padded->shape;
  return RONDO_OK;
}

static rondo_status pad_all(const rondo_function *function, rondo_stream *stream) {
  for (size_t i = 0; i < function->padding->input_count; i++)
    if (is_padded(function, i)) RONDO_TRY(pad(function, stream, i));
  return RONDO_OK;
}

rondo_status rondo_padding_begin(const char *call, rondo_function *function, rondo_stream *stream, bool counts) {
  rondo_padding *padding = function->padding;
  rondo_bucket *bucket;
  if (padding == NULL) return RONDO_OK;
  padding->is_padding = false;
  RONDO_TRY(find_bucket(call, function, &bucket));
  if (bucket == NULL) return RONDO_OK;
  bucket->calls += counts;
  for (size_t d = 0; d < RONDO_PADDED_DIMS; d++) bucket->given[d] += counts ? padding->given[d] : 0;
  if (memcmp(padding->given, padding->to, sizeof padding->to) == 0) return RONDO_OK;
  padding->is_padding = true;
  const rondo_status status = pad_all(function, stream);
  if (status != RONDO_OK) padding->is_padding = false;
  return status;
}

rondo_status rondo_padding_end(const rondo_function *function, rondo_stream *stream, bool writes_back) {
  rondo_padding *padding = function->padding;
  if (padding == NULL || !padding->is_padding) return RONDO_OK;
  padding->is_padding = false;
  for (size_t i = 0; writes_back && i < padding->input_count; i++) {
    const rondo_padded_input *input = &padding->inputs[i];
    const bool is_written = is_padded(function, i) && (function->options.inputs[i] & RONDO_INPUT_MUTATED) != 0;
    if (is_written && input->given != NULL)
      RONDO_TRY(copy_lines(stream, &input->lines, input->memory, input->given, true));
  }
  return RONDO_OK;
}

/* Outputs ---------------------------------------------------------------------------------------------------------- */

void rondo_padding_cut(const rondo_function *function, rondo_buffer_layout *extent) {
  const rondo_padding *padding = function->padding;
  if (!extent->has_rows || padding == NULL || !padding->is_padding) return;
  const size_t padded = padding->to[RONDO_PADDED_ROWS];
  if (padded == 0 || extent->shape[0] != padded) return;
  extent->bytes = extent->bytes / padded * padding->given[RONDO_PADDED_ROWS];
  extent->shape[0] = padding->given[RONDO_PADDED_ROWS];
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
  const rondo_padded_sizes *rows = &padding->sizes[RONDO_PADDED_ROWS], *lengths = &padding->sizes[RONDO_PADDED_LENGTH];
  rondo_bucket_info info = {.calls = bucket->calls,
                            .rows = rows->count == 0 ? 0 : rows->items[index / at_least_1(lengths->count)],
                            .length = lengths->count == 0 ? 0 : lengths->items[index % lengths->count],
                            .given_rows = bucket->given[RONDO_PADDED_ROWS],
                            .given_lengths = bucket->given[RONDO_PADDED_LENGTH]};
  info.padded_rows = info.calls * info.rows - info.given_rows;
  info.padded_lengths = info.calls * info.length - info.given_lengths;
  return rondo_versioned_write("rondo_bucket_info", &info, out_info, sizeof info);
}

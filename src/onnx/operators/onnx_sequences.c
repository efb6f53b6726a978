/* SPDX-License-Identifier: MIT
 * Sequences and optionals: lists of values, which exist at import alone. Positions and lengths must be known there.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/graph_import.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/joined_tensors.h"
#include "onnx/operators/operator_families.h"

static rondo_status check_sequence(rondo_onnx_node *node, size_t index) {
  if (rondo_onnx_has_input(node, index) && node->inputs[index].kind == RONDO_ONNX_SEQUENCE) return RONDO_OK;
  return rondo_onnx_refuse(node, "input %zu is no sequence", index);
}

/* Items are tensors. */
static rondo_status check_item(rondo_onnx_node *node, size_t index) {
  if (node->inputs[index].kind == RONDO_ONNX_TENSOR_VALUE) return RONDO_OK;
  return rondo_onnx_refuse(node, "input %zu is a sequence or an optional, not a tensor", index);
}

/* A sequence with room for `count` items. */
static rondo_status make_sequence(rondo_onnx_node *node, size_t count, rondo_onnx_import_value *out) {
  rondo_scratch *scratch = &node->importer->scratch;
  *out = (rondo_onnx_import_value){.kind = RONDO_ONNX_SEQUENCE, .item_count = count};
  RONDO_TRY(rondo_onnx_count_values(node->importer, count));
  RONDO_TRY(rondo_scratch_take(scratch, 1, sizeof *out->list, &out->list));
  out->list->count = out->list->capacity = count;
  return rondo_scratch_take(scratch, count, sizeof *out->list->items, &out->list->items);
}

static void copy_items(rondo_onnx_import_value *to, const rondo_onnx_import_value *from, size_t count) {
  if (count > 0) memcpy(to, from, count * sizeof *to);
}

/* A position counts from the end if it is negative; `count` itself is one where items are inserted. */
static rondo_status find_position(rondo_onnx_node *node, size_t input, size_t count, bool may_be_end, size_t *out) {
  const int64_t *known;
  size_t known_count;
  RONDO_TRY(rondo_onnx_known_integers(node, input, &known, &known_count));
  if (known_count != 1) return rondo_onnx_refuse(node, "it has %zu positions, not one", known_count);
  const int64_t position = known[0] < 0 ? known[0] + (int64_t)count : known[0];
  if (position < 0 || (uint64_t)position >= count + (may_be_end ? 1 : 0))
    return rondo_onnx_refuse(node, "position %lld of %zu items", (long long)known[0], count);
  *out = (size_t)position;
  return RONDO_OK;
}

/* Sequences -------------------------------------------------------------------------------------------------------- */

static rondo_status add_construct(rondo_onnx_node *node, const void *data) {
  rondo_onnx_import_value sequence;
  (void)data;
  for (size_t i = 0; i < rondo_onnx_input_count(node); i++) RONDO_TRY(check_item(node, i));
  RONDO_TRY(make_sequence(node, rondo_onnx_input_count(node), &sequence));
  copy_items(sequence.list->items, node->inputs, sequence.item_count);
  rondo_onnx_set_value(node, 0, &sequence);
  return RONDO_OK;
}

static rondo_status add_empty(rondo_onnx_node *node, const void *data) {
  rondo_onnx_import_value sequence;
  int64_t type;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "dtype", RONDO_ONNX_FLOAT, &type));
  RONDO_TRY(make_sequence(node, 0, &sequence));
  rondo_onnx_set_value(node, 0, &sequence);
  return RONDO_OK;
}

static rondo_status add_at(rondo_onnx_node *node, const void *data) {
  size_t position;
  (void)data;
  RONDO_TRY(check_sequence(node, 0));
  RONDO_TRY(find_position(node, 1, node->inputs[0].item_count, false, &position));
  rondo_onnx_set_value(node, 0, &node->inputs[0].list->items[position]);
  return RONDO_OK;
}

/* Adds an item after the last one. *inout has the first items of its list, and no other sequence has more. */
static rondo_status append_item(rondo_onnx_node *node, const rondo_onnx_import_value *item,
                                rondo_onnx_import_value *inout) {
  rondo_onnx_item_list *list = inout->list;
  rondo_onnx_import_value *items;
  assert(inout->item_count == list->count);
  if (list->count == list->capacity) {
    const size_t capacity = list->capacity < 4 ? 4 : 2 * list->capacity;
    RONDO_TRY(rondo_onnx_count_values(node->importer, capacity));
    RONDO_TRY(rondo_scratch_take(&node->importer->scratch, capacity, sizeof *items, &items));
    copy_items(items, list->items, list->count);
    list->items = items;
    list->capacity = capacity;
  }
  list->items[list->count] = *item;
  inout->item_count = ++list->count;
  return RONDO_OK;
}

static rondo_status add_insert(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_import_value *from = &node->inputs[0];
  size_t position = from->item_count;
  rondo_onnx_import_value sequence = *from;
  (void)data;
  RONDO_TRY(check_sequence(node, 0));
  RONDO_TRY(check_item(node, 1));
  if (rondo_onnx_has_input(node, 2)) RONDO_TRY(find_position(node, 2, from->item_count, true, &position));
  if (position == from->item_count && position == from->list->count) {
    RONDO_TRY(append_item(node, &node->inputs[1], &sequence));
  } else {
    RONDO_TRY(make_sequence(node, from->item_count + 1, &sequence));
    copy_items(sequence.list->items, from->list->items, position);
    sequence.list->items[position] = node->inputs[1];
    copy_items(sequence.list->items + position + 1, from->list->items + position, from->item_count - position);
  }
  rondo_onnx_set_value(node, 0, &sequence);
  return RONDO_OK;
}

static rondo_status add_erase(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_import_value *from = &node->inputs[0];
  rondo_onnx_import_value sequence;
  size_t position;
  (void)data;
  RONDO_TRY(check_sequence(node, 0));
  if (from->item_count == 0) return rondo_onnx_refuse(node, "the sequence is empty");
  position = from->item_count - 1;
  if (rondo_onnx_has_input(node, 1)) RONDO_TRY(find_position(node, 1, from->item_count, false, &position));
  RONDO_TRY(make_sequence(node, from->item_count - 1, &sequence));
  copy_items(sequence.list->items, from->list->items, position);
  copy_items(sequence.list->items + position, from->list->items + position + 1, sequence.item_count - position);
  rondo_onnx_set_value(node, 0, &sequence);
  return RONDO_OK;
}

static rondo_status add_length(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape scalar = {.type = RONDO_ONNX_INT64};
  rondo_onnx_constant *constant;
  void *elements;
  (void)data;
  RONDO_TRY(check_sequence(node, 0));
  const int64_t length = (int64_t)node->inputs[0].item_count;
  RONDO_TRY(rondo_onnx_constant_make(node->importer, &scalar, &constant, &elements));
  memcpy(elements, &length, sizeof length);
  rondo_onnx_set_constant(node, 0, constant);
  return RONDO_OK;
}

/* ConcatFromSequence ----------------------------------------------------------------------------------------------- */

static rondo_status add_concat(rondo_onnx_node *node, const void *data) {
  int64_t axis, is_new;
  rondo_onnx_import_value joined;
  (void)data;
  RONDO_TRY(check_sequence(node, 0));
  const rondo_onnx_import_value *sequence = &node->inputs[0];
  if (sequence->item_count == 0) return rondo_onnx_refuse(node, "the sequence is empty");
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", 0, &axis));
  RONDO_TRY(rondo_onnx_attribute_int(node, "new_axis", 0, &is_new));
  RONDO_TRY(rondo_onnx_join(node, sequence->list->items, sequence->item_count, axis, is_new != 0, &joined));
  rondo_onnx_set_value(node, 0, &joined);
  return RONDO_OK;
}

/* SplitToSequence -------------------------------------------------------------------------------------------------- */

/* One length for all parts, of which the last may be shorter, or a list; without input 1, all are 1. */
static rondo_status find_lengths(rondo_onnx_node *node, size_t size, size_t **out, size_t *out_count) {
  const int64_t one = 1, *given = &one;
  size_t count = 1, sum = 0;
  const bool is_list = rondo_onnx_has_input(node, 1) && rondo_onnx_input_shape(node, 1)->rank > 0;
  if (rondo_onnx_has_input(node, 1)) RONDO_TRY(rondo_onnx_known_integers(node, 1, &given, &count));
  if (!is_list && given[0] < 1) return rondo_onnx_refuse(node, "the length %lld", (long long)given[0]);
  *out_count = is_list ? count : size / (size_t)given[0] + (size % (size_t)given[0] != 0);
  if (*out_count > RONDO_ONNX_MOST_VALUES)
    return rondo_onnx_refuse(node, "%zu parts, and at most %u are supported", *out_count, RONDO_ONNX_MOST_VALUES);
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, *out_count, sizeof **out, out));
  for (size_t i = 0; i < *out_count; i++) {
    const int64_t length = given[is_list ? i : 0];
    if (length < 0 || (is_list && (uint64_t)length > size - sum))
      return rondo_onnx_refuse(node, "the length %lld of part %zu, of %zu", (long long)length, i, size);
    (*out)[i] = is_list || (size_t)length < size - sum ? (size_t)length : size - sum;
    sum += (*out)[i];
  }
  return sum == size ? RONDO_OK : rondo_onnx_refuse(node, "its lengths add up to %zu, not to %zu", sum, size);
}

static rondo_status add_split(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  int64_t given, keeps;
  size_t axis, *lengths, count = 0;
  rondo_onnx_import_value sequence;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", 0, &given));
  RONDO_TRY(rondo_onnx_attribute_int(node, "keepdims", 1, &keeps));
  RONDO_TRY(rondo_onnx_axis(given, have->rank, &axis));
  RONDO_TRY(find_lengths(node, have->dims[axis], &lengths, &count));
  RONDO_TRY(make_sequence(node, count, &sequence));
  for (size_t i = 0, first = 0; i < count; first += lengths[i++]) {
    const rondo_onnx_part part = {axis, first, lengths[i], keeps == 0 && !rondo_onnx_has_input(node, 1)};
    RONDO_TRY(rondo_onnx_take_part(node, &node->inputs[0], &part, &sequence.list->items[i]));
  }
  rondo_onnx_set_value(node, 0, &sequence);
  return RONDO_OK;
}

/* SequenceMap ------------------------------------------------------------------------------------------------------ */

typedef struct sequence_map {
  rondo_onnx_node *node;
  const RondoOnnx__Graph *body;
  size_t inputs, outputs;                    /* of the body */
  rondo_onnx_import_value *values, *results; /* of one call of it */
  rondo_onnx_import_value *sequences;        /* of all results */
} sequence_map;

/* All sequences have as many elements as the first; other inputs are the same for each element. */
static rondo_status check_map(const sequence_map *of) {
  rondo_onnx_node *node = of->node;
  const size_t length = node->inputs[0].item_count;
  RONDO_TRY(check_sequence(node, 0));
  if (of->body->n_input != of->inputs || of->body->n_output < of->outputs)
    return rondo_onnx_refuse(node, "its body has %zu inputs and %zu outputs, for %zu and %zu", of->body->n_input,
                             of->body->n_output, of->inputs, of->outputs);
  for (size_t i = 1; i < of->inputs; i++)
    if (node->inputs[i].kind == RONDO_ONNX_SEQUENCE && node->inputs[i].item_count != length)
      return rondo_onnx_refuse(node, "input %zu has %zu elements, and input 0 has %zu", i, node->inputs[i].item_count,
                               length);
  return RONDO_OK;
}

static rondo_status map_element(const sequence_map *of, size_t element) {
  rondo_onnx_node *node = of->node;
  for (size_t i = 0; i < of->inputs; i++) {
    const rondo_onnx_import_value *input = &node->inputs[i];
    of->values[i] = input->kind == RONDO_ONNX_SEQUENCE ? input->list->items[element] : *input;
  }
  RONDO_TRY(rondo_onnx_import_graph(node->importer, of->body, of->values, of->inputs, of->results));
  for (size_t i = 0; i < of->outputs; i++) {
    if (of->results[i].kind == RONDO_ONNX_UNKNOWN)
      node->is_unknown = true;
    else if (of->results[i].kind != RONDO_ONNX_TENSOR_VALUE)
      return rondo_onnx_refuse(node, "output %zu of its body is a sequence or an optional, not a tensor", i);
    of->sequences[i].list->items[element] = of->results[i];
  }
  return RONDO_OK;
}

static rondo_status add_map(rondo_onnx_node *node, const void *data) {
  rondo_scratch *scratch = &node->importer->scratch;
  sequence_map of = {.node = node, .inputs = rondo_onnx_input_count(node), .outputs = rondo_onnx_output_count(node)};
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_graph(node, "body", &of.body));
  if (of.body == NULL) return rondo_onnx_refuse_attribute(node, "body", "it is missing");
  RONDO_TRY(check_map(&of));
  RONDO_TRY(rondo_scratch_take(scratch, of.inputs, sizeof *of.values, &of.values));
  RONDO_TRY(rondo_scratch_take(scratch, of.body->n_output, sizeof *of.results, &of.results));
  RONDO_TRY(rondo_scratch_take(scratch, of.outputs, sizeof *of.sequences, &of.sequences));
  const size_t length = node->inputs[0].item_count;
  for (size_t i = 0; i < of.outputs; i++) RONDO_TRY(make_sequence(node, length, &of.sequences[i]));
  for (size_t i = 0; i < length && !node->is_unknown; i++) RONDO_TRY(map_element(&of, i));
  for (size_t i = 0; i < of.outputs && !node->is_unknown; i++) rondo_onnx_set_value(node, i, &of.sequences[i]);
  return RONDO_OK;
}

/* Optionals -------------------------------------------------------------------------------------------------------- */

/* An optional with a value is the value itself. */
static rondo_status add_optional(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_import_value nothing = {.kind = RONDO_ONNX_NOTHING};
  (void)data;
  (void)rondo_onnx_attribute_of(node, "type");
  rondo_onnx_set_value(node, 0, rondo_onnx_has_input(node, 0) ? &node->inputs[0] : &nothing);
  return RONDO_OK;
}

static rondo_status add_has_element(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape scalar = {.type = RONDO_ONNX_BOOL};
  rondo_onnx_constant *constant;
  void *elements;
  (void)data;
  RONDO_TRY(rondo_onnx_constant_make(node->importer, &scalar, &constant, &elements));
  *(unsigned char *)elements = rondo_onnx_has_input(node, 0);
  rondo_onnx_set_constant(node, 0, constant);
  return RONDO_OK;
}

static rondo_status add_get_element(rondo_onnx_node *node, const void *data) {
  (void)data;
  if (!rondo_onnx_has_input(node, 0)) return rondo_onnx_refuse(node, "the optional is empty");
  rondo_onnx_set_input(node, 0, 0);
  return RONDO_OK;
}

/* The table -------------------------------------------------------------------------------------------------------- */

#define ONCE RONDO_ONNX_ROW_ONCE

static const rondo_onnx_row rows[] = {
    {"ConcatFromSequence", 11, 0, 1, 1, ONCE, add_concat, NULL},
    {"Optional", 15, 0, 0, 1, ONCE, add_optional, NULL},
    {"OptionalGetElement", 15, 0, 0, 1, ONCE, add_get_element, NULL},
    {"OptionalHasElement", 15, 0, 0, 1, ONCE, add_has_element, NULL},
    {"SequenceAt", 11, 0, 2, 2, ONCE, add_at, NULL},
    {"SequenceConstruct", 11, 0, RONDO_ONNX_ANY_NUMBER, RONDO_ONNX_ANY_NUMBER, ONCE, add_construct, NULL},
    {"SequenceEmpty", 11, 0, 0, 0, ONCE, add_empty, NULL},
    {"SequenceErase", 11, 0, 1, 2, ONCE, add_erase, NULL},
    {"SequenceInsert", 11, 0, 2, 3, ONCE, add_insert, NULL},
    {"SequenceLength", 11, 0, 1, 1, ONCE, add_length, NULL},
    {"SequenceMap", 17, 0, RONDO_ONNX_ANY_NUMBER, RONDO_ONNX_ANY_NUMBER, ONCE, add_map, NULL},
    {"SplitToSequence", 11, 0, 1, 2, ONCE, add_split, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_sequences, rows);

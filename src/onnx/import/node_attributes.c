/* SPDX-License-Identifier: MIT
 * Reads attributes.
 */
#include "onnx/import/node_attributes.h"

#include <string.h>

#include "base/error.h"

static const RondoOnnx__Attribute *find_among(RondoOnnx__Attribute *const *attributes, size_t count, const char *name) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(attributes[i]->name, name) == 0) return attributes[i];
  return NULL;
}

/* What an attribute of a node in this scope is: itself, or what the calls of functions give for it, or NULL. */
static const RondoOnnx__Attribute *resolve(const rondo_onnx_scope *scope, const RondoOnnx__Attribute *attribute) {
  while (attribute != NULL && rondo_onnx_text(attribute->ref_attr_name)[0] != '\0') {
    assert(scope->function != NULL);
    const char *const name = attribute->ref_attr_name;
    attribute = find_among(scope->call->attribute, scope->call->n_attribute, name);
    if (attribute == NULL)
      return find_among(scope->function->attribute_proto, scope->function->n_attribute_proto, name);
    scope = scope->outer;
  }
  return attribute;
}

const RondoOnnx__Attribute *rondo_onnx_attribute_of(rondo_onnx_node *node, const char *name) {
  for (size_t i = 0; i < node->message->n_attribute; i++) {
    if (strcmp(node->message->attribute[i]->name, name) != 0) continue;
    node->read_attributes |= UINT64_C(1) << i; /* there are at most RONDO_ONNX_MOST_ATTRIBUTES */
    return resolve(node->importer->scope, node->message->attribute[i]);
  }
  return NULL;
}

bool rondo_onnx_has_attribute(rondo_onnx_node *node, const char *name) {
  return rondo_onnx_attribute_of(node, name) != NULL;
}

/* The attribute, or NULL where there is none. */
static rondo_status find(rondo_onnx_node *node, const char *name, rondo_onnx_attribute_type type,
                         const RondoOnnx__Attribute **out) {
  *out = rondo_onnx_attribute_of(node, name);
  if (*out == NULL || (*out)->type == (int32_t)type) return RONDO_OK;
  return rondo_onnx_refuse_attribute(node, name, "it has a type with the number %d, not %d", (*out)->type, (int)type);
}

rondo_status rondo_onnx_attribute_int(rondo_onnx_node *node, const char *name, int64_t otherwise, int64_t *out) {
  const RondoOnnx__Attribute *attribute;
  RONDO_TRY(find(node, name, RONDO_ONNX_ATTRIBUTE_INT, &attribute));
  *out = attribute != NULL ? attribute->i : otherwise;
  return RONDO_OK;
}

rondo_status rondo_onnx_attribute_float(rondo_onnx_node *node, const char *name, float otherwise, float *out) {
  const RondoOnnx__Attribute *attribute;
  RONDO_TRY(find(node, name, RONDO_ONNX_ATTRIBUTE_FLOAT, &attribute));
  *out = attribute != NULL ? attribute->f : otherwise;
  return RONDO_OK;
}

rondo_status rondo_onnx_attribute_text(rondo_onnx_node *node, const char *name, const char *otherwise,
                                       const char **out) {
  const RondoOnnx__Attribute *attribute;
  char *text;
  RONDO_TRY(find(node, name, RONDO_ONNX_ATTRIBUTE_STRING, &attribute));
  *out = otherwise;
  if (attribute == NULL) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, attribute->s.len + 1, 1, &text));
  if (attribute->s.len > 0) memcpy(text, attribute->s.data, attribute->s.len);
  *out = text;
  return RONDO_OK;
}

rondo_status rondo_onnx_attribute_ints(rondo_onnx_node *node, const char *name, const int64_t **out,
                                       size_t *out_count) {
  const RondoOnnx__Attribute *attribute;
  RONDO_TRY(find(node, name, RONDO_ONNX_ATTRIBUTE_INTS, &attribute));
  *out = attribute != NULL ? attribute->ints : NULL;
  *out_count = attribute != NULL ? attribute->n_ints : 0;
  return RONDO_OK;
}

rondo_status rondo_onnx_attribute_floats(rondo_onnx_node *node, const char *name, const float **out,
                                         size_t *out_count) {
  const RondoOnnx__Attribute *attribute;
  RONDO_TRY(find(node, name, RONDO_ONNX_ATTRIBUTE_FLOATS, &attribute));
  *out = attribute != NULL ? attribute->floats : NULL;
  *out_count = attribute != NULL ? attribute->n_floats : 0;
  return RONDO_OK;
}

rondo_status rondo_onnx_attribute_graph(rondo_onnx_node *node, const char *name, const RondoOnnx__Graph **out) {
  const RondoOnnx__Attribute *attribute;
  RONDO_TRY(find(node, name, RONDO_ONNX_ATTRIBUTE_GRAPH, &attribute));
  if (attribute != NULL && attribute != rondo_onnx_find_attribute(node->message, name))
    return rondo_onnx_refuse_attribute(node, name,
                                       "a function gets the graph from its call, whose values it does not see");
  *out = attribute != NULL ? attribute->g : NULL;
  return RONDO_OK;
}

rondo_status rondo_onnx_check_attributes_read(rondo_onnx_node *node) {
  for (size_t i = 0; i < node->message->n_attribute; i++)
    if ((node->read_attributes >> i & 1) == 0)
      return rondo_onnx_refuse_attribute(node, node->message->attribute[i]->name, "the operator does not have it");
  return RONDO_OK;
}

/* SPDX-License-Identifier: MIT
 * The table of the kinds of nodes, and the functions that depend on the type of a field alone.
 */
#include "graph/node_fields.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"

#define FIELD(key, type, member) \
  { key, RONDO_FIELD_##type, offsetof(rondo_node_params, as.member) }
#define SPECIAL(key) \
  { .name = key }
#define FIELDS(list) \
  { list, sizeof(list) / sizeof(list)[0] }

static const rondo_node_field kernel_fields[] = {SPECIAL("kernel"), SPECIAL("grid"), SPECIAL("arguments"),
                                                 SPECIAL("argument_bytes"), SPECIAL("config")};
static const rondo_node_field host_fields[] = {FIELD("function", FUNCTION, host.function),
                                               FIELD("user", HANDLE, host.user)};
static const rondo_node_field copy_fields[] = {FIELD("dst", ADDRESS, copy.dst),
                                               FIELD("src", ADDRESS, copy.src),
                                               FIELD("width", SIZE, copy.width),
                                               FIELD("height", SIZE, copy.height),
                                               FIELD("depth", SIZE, copy.depth),
                                               FIELD("dst_pitch", PITCH, copy.dst_pitch),
                                               FIELD("src_pitch", PITCH, copy.src_pitch),
                                               FIELD("dst_slice_pitch", PITCH, copy.dst_slice_pitch),
                                               FIELD("src_slice_pitch", PITCH, copy.src_slice_pitch)};
static const rondo_node_field fill_fields[] = {FIELD("dst", ADDRESS, fill.dst),
                                               FIELD("value", U32, fill.value),
                                               FIELD("element_bytes", U32, fill.element_bytes),
                                               FIELD("width", SIZE, fill.width),
                                               FIELD("height", SIZE, fill.height),
                                               FIELD("pitch", PITCH, fill.pitch)};
static const rondo_node_field child_fields[] = {SPECIAL("child")};
static const rondo_node_field event_fields[] = {FIELD("event", HANDLE, event)};
static const rondo_node_field alloc_fields[] = {
    FIELD("bytes", SIZE, alloc.bytes), FIELD("allocation", TEXT, alloc.name), FIELD("peers", PEERS, alloc.peers),
    FIELD("address", ADDRESS, alloc.address)};
static const rondo_node_field free_fields[] = {FIELD("address", ADDRESS, free_address)};
static const rondo_node_field foreign_fields[] = {
    FIELD("what", TEXT, foreign.what), FIELD("bytes", SIZE, foreign.bytes), FIELD("bound", FLAG, foreign.is_bound),
    FIELD("address", ADDRESS, foreign.address)};

static const rondo_node_field semaphores_fields[] = {SPECIAL("semaphores")};
static const rondo_node_field operations_fields[] = {SPECIAL("operations")};

static const struct {
  const char *name;
  rondo_node_fields fields;
} kinds[] = {
    [RONDO_NODE_KERNEL] = {"kernel", FIELDS(kernel_fields)},
    [RONDO_NODE_HOST] = {"host", FIELDS(host_fields)},
    [RONDO_NODE_COPY] = {"copy", FIELDS(copy_fields)},
    [RONDO_NODE_FILL] = {"fill", FIELDS(fill_fields)},
    [RONDO_NODE_EMPTY] = {"empty", {NULL, 0}},
    [RONDO_NODE_CHILD] = {"child", FIELDS(child_fields)},
    [RONDO_NODE_EVENT_RECORD] = {"event_record", FIELDS(event_fields)},
    [RONDO_NODE_EVENT_WAIT] = {"event_wait", FIELDS(event_fields)},
    [RONDO_NODE_ALLOC] = {"alloc", FIELDS(alloc_fields)},
    [RONDO_NODE_FREE] = {"free", FIELDS(free_fields)},
    [RONDO_NODE_FOREIGN] = {"foreign", FIELDS(foreign_fields)},
    [RONDO_NODE_MEMORY_OPERATIONS] = {"memory_operations", FIELDS(operations_fields)},
    [RONDO_NODE_SEMAPHORE_SIGNAL] = {"semaphore_signal", FIELDS(semaphores_fields)},
    [RONDO_NODE_SEMAPHORE_WAIT] = {"semaphore_wait", FIELDS(semaphores_fields)},
};

const char *const rondo_operation_names[] = {"", "wait_32", "write_32", "flush", "wait_64", "write_64"};
const char *const rondo_condition_names[] = {">=", "==", "&", "nor"};

static bool is_kind(rondo_node_kind kind) { return kind >= RONDO_NODE_KERNEL && kind <= RONDO_NODE_LAST; }

const char *rondo_node_kind_name(rondo_node_kind kind) { return is_kind(kind) ? kinds[kind].name : "unknown"; }

rondo_node_fields rondo_node_fields_of(rondo_node_kind kind) {
  return is_kind(kind) ? kinds[kind].fields : (rondo_node_fields){0};
}

/* The size of the value; 0 for SPECIAL. */
static size_t field_bytes(const rondo_node_field *field) {
  static const unsigned char bytes[] = {
      [RONDO_FIELD_ADDRESS] = sizeof(void *),    [RONDO_FIELD_HANDLE] = sizeof(void *),
      [RONDO_FIELD_FUNCTION] = sizeof(void *),   [RONDO_FIELD_FLAG] = sizeof(bool),
      [RONDO_FIELD_TEXT] = sizeof(const char *), [RONDO_FIELD_PEERS] = sizeof(uint64_t),
      [RONDO_FIELD_U32] = sizeof(uint32_t),      [RONDO_FIELD_SIZE] = sizeof(uint64_t),
      [RONDO_FIELD_PITCH] = sizeof(uint64_t)};
  _Static_assert(sizeof(size_t) == sizeof(uint64_t), "sizes are read as 64 bits");
  _Static_assert(sizeof(rondo_host_function) == sizeof(void *), "functions are read as addresses");
  return bytes[field->type];
}

static const char *text_in(const rondo_node_field *field, const rondo_node_params *params) {
  const char *text = *(const char *const *)rondo_node_field_in(params, field);
  return text == NULL ? "" : text;
}

bool rondo_node_field_same(const rondo_node_field *field, const rondo_node_params *a, const rondo_node_params *b,
                           bool ignore_addresses) {
  assert(a->kind == b->kind);
  if (ignore_addresses && (field->type == RONDO_FIELD_ADDRESS || field->type == RONDO_FIELD_HANDLE)) return true;
  if (field->type == RONDO_FIELD_TEXT) return strcmp(text_in(field, a), text_in(field, b)) == 0;
  return memcmp(rondo_node_field_in(a, field), rondo_node_field_in(b, field), field_bytes(field)) == 0;
}

uint64_t rondo_node_field_number(const rondo_node_field *field, const rondo_node_params *params) {
  const void *at = rondo_node_field_in(params, field);
  assert(field->type >= RONDO_FIELD_PEERS);
  return field->type == RONDO_FIELD_U32 ? *(const uint32_t *)at : *(const uint64_t *)at;
}

uint64_t rondo_node_field_hash(uint64_t state, const rondo_node_field *field, const rondo_node_params *params) {
  if (field->type < RONDO_FIELD_TEXT) return state;
  if (field->type == RONDO_FIELD_TEXT) return rondo_hash_text(state, text_in(field, params));
  return rondo_hash_u64(state, rondo_node_field_number(field, params));
}

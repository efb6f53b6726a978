/* SPDX-License-Identifier: MIT
 * Finding sites: the words in the parameters of an exec's nodes that are addresses in its inputs. Each word is
 * classified once: by its declaration or, if there are other recordings of the same work, by its values there.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/binary_search.h"
#include "exec/launch/exec_relocate.h"
#include "exec/patch/patch_internal.h"
#include "graph/node_params.h"
#include "memory/allocation_lookup.h"
#include "memory/node_addresses.h"

enum { NO_SLOT = UINT32_MAX, SEVERAL_SLOTS = UINT32_MAX - 1 };
enum { NOW = 0, MOVED = 1, AGAIN = 2, RECORDINGS = 3 };
enum { WORD = sizeof(uint64_t), MESSAGE = 768 };

typedef struct found_site {
  uint32_t slot;
  rondo_patch_site site;
} found_site;

typedef struct slot_address {
  uint64_t address;
  uint32_t slot;
} slot_address;

typedef struct finder {
  const char *call;
  rondo_patch_set *set;
  const rondo_patch_input *inputs;
  slot_address *by_address;
  rondo_lowering other[RECORDINGS]; /* of MOVED and AGAIN, if they are given */
  bool is_compared;                 /* at least with MOVED */
  RONDO_ARRAY(found_site) found;
} finder;

/* At most 8 bytes of a node's parameters, with their value in each recording. */
typedef struct word {
  uint32_t node;      /* its index in the exec */
  uint32_t parameter; /* of a kernel, or RONDO_SITE_DST, RONDO_SITE_SRC or RONDO_PATCH_NO_PARAMETER */
  uint32_t offset, bytes;
  bool is_pointer; /* as declared */
  bool is_written; /* the memory that it points to, as declared */
  bool is_foreign; /* of a library's kernel */
  bool can_change;
  uint64_t values[RECORDINGS];
} word;

/* Findings -------------------------------------------------------------------------------------------------------- */

const char *rondo_patch_slot_label(char buffer[RONDO_SLOT_LABEL], const rondo_patch_set *set, uint32_t slot) {
  if (set->slots[slot].name[0] != '\0')
    (void)snprintf(buffer, RONDO_SLOT_LABEL, "input '%.*s'", RONDO_SLOT_LABEL - 16, set->slots[slot].name);
  else
    (void)snprintf(buffer, RONDO_SLOT_LABEL, "input %" PRIu32, slot);
  return buffer;
}

static void describe_word(const rondo_exec *exec, const word *at, char *buffer, size_t capacity) {
  const rondo_node_params *params = rondo_exec_params(exec, at->node);
  char label[RONDO_LABEL_BYTES];
  (void)rondo_lowering_label(&exec->lowering, at->node, label);
  if (params->kind == RONDO_NODE_KERNEL && params->as.kernel.kernel->is_foreign)
    (void)snprintf(buffer, capacity, "%s, which a library launched, at byte %" PRIu32 " of its arguments", label,
                   at->offset);
  else if (params->kind == RONDO_NODE_KERNEL)
    (void)snprintf(buffer, capacity, "%s, argument %" PRIu32 " at byte %" PRIu32, label, at->parameter, at->offset);
  else if (params->kind == RONDO_NODE_FOREIGN)
    (void)snprintf(buffer, capacity, "%s, which a library enqueued,", label);
  else if (params->kind == RONDO_NODE_HOST)
    (void)snprintf(buffer, capacity, "%s, its user pointer", label);
  else if (at->bytes < WORD || !at->is_pointer)
    (void)snprintf(buffer, capacity, "%s, its value", label);
  else
    (void)snprintf(buffer, capacity, "%s, its %s", label, at->parameter == RONDO_SITE_SRC ? "source" : "address");
}

static rondo_status keep_finding(finder *f, const rondo_patch_finding *finding, const char *message) {
  rondo_patch_set *set = f->set;
  char *kept;
  if (set->finding_count++ >= RONDO_PATCH_MOST_FINDINGS) return RONDO_OK;
  RONDO_TRY(rondo_array_reserve(&set->allocator, &set->findings, set->findings.count + 1));
  RONDO_TRY(rondo_allocate_text(&set->allocator, message, &kept));
  rondo_patch_finding *out = &set->findings.items[set->findings.count++];
  *out = *finding;
  out->struct_size = sizeof *out;
  out->message = kept;
  return RONDO_OK;
}

/* `why` follows the description of the word. */
static rondo_status report(finder *f, const word *at, rondo_patch_finding_kind kind, uint32_t slot, const char *why,
                           ...) RONDO_PRINTF(5, 6);
static rondo_status report(finder *f, const word *at, rondo_patch_finding_kind kind, uint32_t slot, const char *why,
                           ...) {
  const rondo_exec *exec = f->set->exec;
  const bool is_kernel = rondo_exec_params(exec, at->node)->kind == RONDO_NODE_KERNEL;
  const rondo_patch_finding finding = {.kind = kind,
                                       .node = exec->lowering.origins.items[at->node].tag,
                                       .parameter = is_kernel ? at->parameter : RONDO_PATCH_NO_PARAMETER,
                                       .offset = at->offset,
                                       .bytes = at->bytes,
                                       .input = slot,
                                       .value = at->values[NOW],
                                       .moved_value = at->values[MOVED]};
  char message[MESSAGE], where[RONDO_LABEL_BYTES + 64], reason[MESSAGE / 2];
  va_list arguments;
  va_start(arguments, why);
  (void)vsnprintf(reason, sizeof reason, why, arguments);
  va_end(arguments);
  describe_word(exec, at, where, sizeof where);
  (void)snprintf(message, sizeof message, "%s %s", where, reason);
  if (slot != RONDO_PATCH_NO_INPUT) f->set->slots[slot].is_patchable = false;
  return keep_finding(f, &finding, message);
}

static rondo_status report_fixed(finder *f, const word *at, uint32_t slot, const char *why) {
  char label[RONDO_SLOT_LABEL];
  return report(f, at, RONDO_PATCH_FIXED, slot, "is an address in %s, and %s: copy the input to the recorded address",
                rondo_patch_slot_label(label, f->set, slot), why);
}

static rondo_status report_suspected(finder *f, const word *at, uint32_t slot) {
  char label[RONDO_SLOT_LABEL];
  const char *remedy = f->is_compared
                           ? "but did not move with it: the work may not get it from its inputs"
                           : "but is not declared as one: declare it (RONDO_READS and others), or pass other "
                             "recordings to compare with (rondo_patch_options)";
  return report(f, at, RONDO_PATCH_SUSPECTED, slot, "looks like an address in %s, %s; until then, copy the input",
                rondo_patch_slot_label(label, f->set, slot), remedy);
}

static rondo_status report_frozen(finder *f, const word *at) {
  const bool moved = at->values[MOVED] != at->values[NOW];
  return report(f, at, RONDO_PATCH_FROZEN, RONDO_PATCH_NO_INPUT,
                "is 0x%0*" PRIx64 " here and 0x%0*" PRIx64
                " in another recording of the work, and is neither an input nor memory of the device: launches use the "
                "first value; keep it in memory that the kernel reads, or set it before launches "
                "(rondo_exec_set_params)",
                (int)(2 * at->bytes), at->values[NOW], (int)(2 * at->bytes), at->values[moved ? MOVED : AGAIN]);
}

/* Sites ----------------------------------------------------------------------------------------------------------- */

static rondo_status add_site(finder *f, const word *at, uint32_t slot) {
  assert(slot < f->set->slot_count && at->bytes == WORD);
  if (!at->can_change) return report_fixed(f, at, slot, "the node does not allow changing it");
  const found_site found = {.slot = slot,
                            .site = {.node = at->node,
                                     .parameter = (uint16_t)at->parameter,
                                     .offset = (uint16_t)at->offset,
                                     .addend = at->values[NOW] - f->set->current[slot]}};
  if (at->is_written) f->set->slots[slot].is_written = true;
  return rondo_array_push(&f->set->allocator, &f->found, &found);
}

/* The slot that contains the address. */
static uint32_t slot_around(const finder *f, uint64_t address) {
  size_t low = 0, high = f->set->slot_count;
  RONDO_BINARY_SEARCH(low, high, middle, f->by_address[middle].address <= address)
  if (low == 0) return NO_SLOT;
  const slot_address *at = &f->by_address[low - 1];
  return address - at->address < f->set->slots[at->slot].bytes ? at->slot : NO_SLOT;
}

static uint64_t distance_of(const finder *f, uint32_t slot) {
  return (uint64_t)(uintptr_t)f->inputs[slot].moved - f->set->current[slot];
}

/* The slot that moved as far as the word did. `around` is preferred. */
static uint32_t slot_by_distance(const finder *f, const word *at, uint32_t around) {
  const uint64_t distance = at->values[MOVED] - at->values[NOW];
  uint32_t found = NO_SLOT;
  if (around != NO_SLOT && distance_of(f, around) == distance) return around;
  for (uint32_t slot = 0; slot < f->set->slot_count; slot++) {
    if (f->set->slots[slot].is_copied || distance_of(f, slot) != distance) continue;
    if (found != NO_SLOT) return SEVERAL_SLOTS;
    found = slot;
  }
  return found;
}

/* Also true for reserved addresses without an allocation: they occur in a recording that is only compared. */
static bool is_memory_of(const rondo_device *device, const void *at) {
  rondo_device_memory *memory = rondo_device_memory_made(device);
  rondo_known_range range;
  rondo_range_found reserved;
  if (memory == NULL) return false;
  if (rondo_memory_find_range(memory, at, &range)) return true;
  return rondo_range_look(&memory->own, at, &reserved) && reserved.end != 0;
}

static bool is_memory(const finder *f, uint64_t address) {
  const rondo_exec *exec = f->set->exec;
  const void *at = (const void *)(uintptr_t)address;
  bool found = is_memory_of(exec->device, at);
  for (size_t i = 0; i < exec->graph->others.count && !found; i++)
    found = is_memory_of(exec->graph->others.items[i].device, at);
  return found;
}

static bool is_memory_throughout(const finder *f, const word *at) {
  return is_memory(f, at->values[NOW]) && is_memory(f, at->values[MOVED]) && is_memory(f, at->values[AGAIN]);
}

/* Words ----------------------------------------------------------------------------------------------------------- */

static rondo_status classify_declared(finder *f, const word *at, uint32_t slot) {
  if (slot == NO_SLOT) return RONDO_OK;
  return at->is_pointer ? add_site(f, at, slot) : report_suspected(f, at, slot);
}

static rondo_status classify_same(finder *f, const word *at, uint32_t around) {
  if (around == NO_SLOT) return RONDO_OK;
  return at->is_pointer ? report_fixed(f, at, around, "did not move with the input") : report_suspected(f, at, around);
}

/* The word differs between two recordings with the inputs at the same addresses. */
static rondo_status classify_varying(finder *f, const word *at, uint32_t around) {
  if (at->is_foreign) {
    f->set->noise++;
    return RONDO_OK;
  }
  if (around != NO_SLOT) return report_fixed(f, at, around, "differs in every recording of the work");
  return is_memory_throughout(f, at) ? RONDO_OK : report_frozen(f, at);
}

static rondo_status report_several(finder *f, const word *at) {
  for (uint32_t slot = 0; slot < f->set->slot_count; slot++)
    if (!f->set->slots[slot].is_copied && distance_of(f, slot) == at->values[MOVED] - at->values[NOW])
      RONDO_TRY(report_fixed(f, at, slot, "as well an address in another input that moved as far"));
  return RONDO_OK;
}

static rondo_status classify_moved(finder *f, const word *at, uint32_t around) {
  const uint32_t slot = slot_by_distance(f, at, around);
  if (slot == SEVERAL_SLOTS) return report_several(f, at);
  if (slot != NO_SLOT && slot != around && is_memory(f, at->values[NOW]))
    return report_fixed(f, at, slot, "as well an address in other memory, which moved as far");
  if (slot != NO_SLOT) return add_site(f, at, slot);
  if (around != NO_SLOT) return report_fixed(f, at, around, "did not move as far as the input");
  return is_memory_throughout(f, at) ? RONDO_OK : report_frozen(f, at);
}

static rondo_status classify_word(finder *f, const word *at) {
  const uint32_t around = slot_around(f, at->values[NOW]);
  if (around != NO_SLOT && f->set->slots[around].is_copied) return RONDO_OK; /* it stays at its recorded address */
  if (!f->is_compared) return classify_declared(f, at, around);
  if (at->values[NOW] != at->values[AGAIN]) return classify_varying(f, at, around);
  return at->values[NOW] == at->values[MOVED] ? classify_same(f, at, around) : classify_moved(f, at, around);
}

/* The last bytes of a parameter, too few for an address. */
static rondo_status classify_part(finder *f, const word *at) {
  const bool is_steady = at->values[NOW] == at->values[AGAIN];
  if (is_steady && at->values[NOW] == at->values[MOVED]) return RONDO_OK;
  if (!at->is_foreign || is_steady) return report_frozen(f, at);
  f->set->noise++;
  return RONDO_OK;
}

/* Nodes ----------------------------------------------------------------------------------------------------------- */

/* The parameters of a node in each recording; for a missing recording, those in the exec. */
typedef struct seen_node {
  const rondo_node_params *params[RECORDINGS];
} seen_node;

/* Classifies at->bytes bytes, which are at where[i] in recording i. */
static rondo_status classify_values(finder *f, const void *const where[RECORDINGS], word *at) {
  for (int i = 0; i < RECORDINGS; i++) {
    at->values[i] = 0;
    memcpy(&at->values[i], where[i], at->bytes);
  }
  return at->bytes == WORD ? classify_word(f, at) : classify_part(f, at);
}

static rondo_status visit_parameter(finder *f, const seen_node *node, word *at) {
  const uint32_t bytes = node->params[NOW]->as.kernel.kernel->parameters[at->parameter].bytes;
  for (at->offset = 0; at->offset < bytes; at->offset += WORD) {
    const void *where[RECORDINGS];
    at->bytes = bytes - at->offset < WORD ? bytes - at->offset : WORD;
    for (int i = 0; i < RECORDINGS; i++)
      where[i] = (const char *)node->params[i]->as.kernel.args[at->parameter] + at->offset;
    RONDO_TRY(classify_values(f, where, at));
  }
  return RONDO_OK;
}

/* If one address of a copied range is the recorded address of a copied input, the other address is its site. */
static rondo_status visit_range(finder *f, const rondo_range_copy *range, bool is_back, word *at) {
  const uint64_t address = (uint64_t)(uintptr_t)(is_back ? range->src : (const void *)range->dst);
  const uint32_t slot = slot_around(f, address);
  if (slot == NO_SLOT || !f->set->slots[slot].is_copied || f->set->current[slot] != address) return RONDO_OK;
  at->offset += (uint32_t)(is_back ? offsetof(rondo_range_copy, dst) : offsetof(rondo_range_copy, src));
  at->values[NOW] = (uint64_t)(uintptr_t)(is_back ? (const void *)range->dst : range->src);
  return add_site(f, at, slot);
}

static rondo_status visit_ranges(finder *f, const seen_node *node, word *at) {
  const rondo_range_copies *copies = node->params[NOW]->as.kernel.args[0];
  at->bytes = WORD;
  at->can_change = true;
  at->parameter = 0;
  for (uint32_t i = 0; i < copies->count; i++) {
    at->offset = (uint32_t)(offsetof(rondo_range_copies, ranges) + i * sizeof *copies->ranges);
    RONDO_TRY(visit_range(f, &copies->ranges[i], copies->is_back, at));
  }
  return RONDO_OK;
}

static rondo_status visit_kernel(finder *f, const seen_node *node, word *at) {
  const rondo_kernel *kernel = node->params[NOW]->as.kernel.kernel;
  if (kernel->copies_ranges) return visit_ranges(f, node, at);
  at->is_foreign = kernel->is_foreign;
  at->can_change = true;
  for (at->parameter = 0; at->parameter < kernel->parameter_count; at->parameter++) {
    const rondo_parameter *parameter = &kernel->parameters[at->parameter];
    at->is_pointer = rondo_parameter_is_pointer(parameter);
    at->is_written = parameter->access == RONDO_ACCESS_WRITE || parameter->access == RONDO_ACCESS_READ_WRITE;
    RONDO_TRY(visit_parameter(f, node, at));
  }
  return RONDO_OK;
}

/* The words of nodes other than kernels: addresses, and the value of a fill. */
static const struct {
  rondo_node_kind kind;
  size_t offset;      /* in the parameters */
  uint32_t parameter; /* as in `word` */
  uint32_t bytes;
  bool is_pointer, is_written;
} node_words[] = {
    {RONDO_NODE_COPY, offsetof(rondo_node_params, as.copy.dst), RONDO_SITE_DST, WORD, true, true},
    {RONDO_NODE_COPY, offsetof(rondo_node_params, as.copy.src), RONDO_SITE_SRC, WORD, true, false},
    {RONDO_NODE_FILL, offsetof(rondo_node_params, as.fill.dst), RONDO_SITE_DST, WORD, true, true},
    {RONDO_NODE_FILL, offsetof(rondo_node_params, as.fill.value), RONDO_SITE_DST, sizeof(uint32_t), true, true},
    {RONDO_NODE_HOST, offsetof(rondo_node_params, as.host.user), RONDO_PATCH_NO_PARAMETER, WORD, false, false},
    {RONDO_NODE_FOREIGN, offsetof(rondo_node_params, as.foreign.user), RONDO_PATCH_NO_PARAMETER, WORD, false, false},
    {RONDO_NODE_FREE, offsetof(rondo_node_params, as.free_address), RONDO_PATCH_NO_PARAMETER, WORD, true, false},
};

/* A batch of memory operations, for example, has addresses that the driver does not show. Any may be an input's. */
static rondo_status report_unknown(finder *f, const word *at) {
  char label[RONDO_SLOT_LABEL];
  for (uint32_t slot = 0; slot < f->set->slot_count; slot++) {
    if (f->set->slots[slot].is_copied) continue;
    f->set->slots[slot].is_unknown = true;
    RONDO_TRY(report(f, at, RONDO_PATCH_SUSPECTED, slot,
                     "may use %s, because its addresses are not known: copy the input",
                     rondo_patch_slot_label(label, f->set, slot)));
  }
  return RONDO_OK;
}

/* Words of memory operations do not move: an input that one is in must be copied. */
static rondo_status visit_operations(finder *f, const seen_node *node, word *at) {
  const rondo_memory_operations_node *now = &node->params[NOW]->as.memory_operations;
  at->parameter = RONDO_PATCH_NO_PARAMETER;
  at->bytes = WORD;
  for (size_t i = 0; i < now->count; i++) {
    const void *address[RECORDINGS], *value[RECORDINGS];
    for (int k = 0; k < RECORDINGS; k++) {
      const rondo_memory_operation *operation = &node->params[k]->as.memory_operations.operations[i];
      address[k] = &operation->address;
      value[k] = &operation->value;
    }
    at->is_pointer = true;
    at->is_written = !rondo_operation_waits(&now->operations[i]);
    RONDO_TRY(classify_values(f, address, at));
    at->is_pointer = at->is_written = false;
    RONDO_TRY(classify_values(f, value, at));
  }
  return RONDO_OK;
}

/* Values of timelines are numbers, and an exec of a recording has the semaphores that were recorded. */
static rondo_status visit_semaphores(finder *f, const seen_node *node, word *at) {
  at->parameter = RONDO_PATCH_NO_PARAMETER;
  at->bytes = WORD;
  for (size_t i = 0; i < node->params[NOW]->as.semaphores.count; i++) {
    for (int k = 0; k < RECORDINGS; k++) at->values[k] = node->params[k]->as.semaphores.values[i].value;
    if (at->values[MOVED] != at->values[NOW] || at->values[AGAIN] != at->values[NOW]) RONDO_TRY(report_frozen(f, at));
  }
  return RONDO_OK;
}

static rondo_status visit_node(finder *f, uint32_t index, const seen_node *node) {
  const rondo_node_params *now = node->params[NOW];
  word at = {.node = index};
  if (now->kind == RONDO_NODE_KERNEL) return visit_kernel(f, node, &at);
  if (now->kind == RONDO_NODE_FOREIGN && now->as.foreign.is_opaque) return report_unknown(f, &at);
  if (now->kind == RONDO_NODE_MEMORY_OPERATIONS) return visit_operations(f, node, &at);
  if (rondo_node_names_semaphores(now)) return visit_semaphores(f, node, &at);
  at.can_change = (now->kind == RONDO_NODE_COPY || now->kind == RONDO_NODE_FILL) && rondo_node_is_plain(now);
  for (size_t i = 0; i < sizeof node_words / sizeof node_words[0]; i++) {
    const void *where[RECORDINGS];
    if (node_words[i].kind != now->kind) continue;
    at.parameter = node_words[i].parameter;
    at.bytes = node_words[i].bytes;
    at.is_pointer = node_words[i].is_pointer;
    at.is_written = node_words[i].is_written;
    for (int k = 0; k < RECORDINGS; k++) where[k] = (const char *)node->params[k] + node_words[i].offset;
    RONDO_TRY(classify_values(f, where, &at));
  }
  return RONDO_OK;
}

/* Recordings ------------------------------------------------------------------------------------------------------ */

/* RONDO_REASON_NONE if the two differ only in addresses and values. */
static rondo_reason compare_forms(const rondo_node_params *now, const rondo_node_params *then) {
  rondo_node_params alike = *then;
  if (now->kind != then->kind) return RONDO_REASON_NODE_KIND_CHANGED;
  if (now->kind == RONDO_NODE_MEMORY_OPERATIONS)
    return rondo_operations_alike(&now->as.memory_operations, &then->as.memory_operations)
               ? RONDO_REASON_NONE
               : RONDO_REASON_PARAMETERS_CHANGED;
  if (rondo_node_names_semaphores(now))
    return now->as.semaphores.count == then->as.semaphores.count ? RONDO_REASON_NONE : RONDO_REASON_PARAMETERS_CHANGED;
  alike.name = now->name;
  if (now->kind == RONDO_NODE_FILL) alike.as.fill.value = now->as.fill.value;
  const int difference = rondo_node_params_compare(now, &alike, true);
  if (difference == RONDO_DIFFERENCE_KERNEL) return RONDO_REASON_FUNCTION_CHANGED;
  return difference == 0 || now->kind == RONDO_NODE_KERNEL ? RONDO_REASON_NONE : RONDO_REASON_PARAMETERS_CHANGED;
}

static rondo_status check_forms(const finder *f, const rondo_lowering *other, const char *which) {
  const rondo_exec *exec = f->set->exec;
  char now[RONDO_LABEL_BYTES], then[RONDO_LABEL_BYTES];
  for (size_t i = 0; i < other->nodes.count; i++) {
    const rondo_reason reason = compare_forms(rondo_exec_params(exec, i), other->nodes.items[i].params);
    if (reason != RONDO_REASON_NONE)
      return rondo_fail_node(RONDO_UPDATE_REFUSED, reason, exec->lowering.nodes.items[i].where.number,
                             "%s: the %s recording is of other work: it has %s where the exec has %s", f->call, which,
                             rondo_lowering_label(other, i, then), rondo_lowering_label(&exec->lowering, i, now));
  }
  return RONDO_OK;
}

static rondo_status open_recording(finder *f, const rondo_graph *graph, int recording, const char *which) {
  const rondo_lowering *own = &f->set->exec->lowering;
  rondo_lowering *other = &f->other[recording];
  RONDO_TRY(rondo_lower((rondo_graph *)(uintptr_t)graph, other)); /* it is only read */
  if (own->nodes.count != other->nodes.count)
    return rondo_fail(RONDO_UPDATE_REFUSED, RONDO_REASON_TOPOLOGY_CHANGED,
                      "%s: the %s recording has %zu nodes with its children, the exec has %zu: record the same work",
                      f->call, which, other->nodes.count - other->join_count, own->nodes.count - own->join_count);
  if (rondo_lowering_find_other_edges(own, other) != RONDO_INDEX_NONE || !rondo_lowering_same_programmatic(own, other))
    return rondo_fail(
        RONDO_UPDATE_REFUSED, RONDO_REASON_TOPOLOGY_CHANGED,
        "%s: nodes of the %s recording have other dependencies than those of the exec: record the same work", f->call,
        which);
  return check_forms(f, other, which);
}

static rondo_status open_recordings(finder *f, const rondo_patch_options *options) {
  if (options->moved == NULL) return RONDO_OK;
  f->is_compared = true;
  RONDO_TRY(open_recording(f, options->moved, MOVED, "moved"));
  return options->again == NULL ? RONDO_OK : open_recording(f, options->again, AGAIN, "second");
}

static const rondo_node_params *params_in(const finder *f, int recording, size_t index) {
  return f->other[recording].nodes.count > 0 ? f->other[recording].nodes.items[index].params
                                             : rondo_exec_given_params(f->set->exec, index);
}

/* Finding all ----------------------------------------------------------------------------------------------------- */

static int compare_addresses(const void *a, const void *b) {
  const slot_address *x = a, *y = b;
  return (x->address > y->address) - (x->address < y->address);
}

static rondo_status sort_slots(finder *f) {
  rondo_patch_set *set = f->set;
  char one[RONDO_SLOT_LABEL], other[RONDO_SLOT_LABEL];
  if (set->slot_count == 0) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&set->allocator, set->slot_count, sizeof *f->by_address, &f->by_address));
  for (uint32_t i = 0; i < set->slot_count; i++) f->by_address[i] = (slot_address){set->current[i], i};
  qsort(f->by_address, set->slot_count, sizeof *f->by_address, compare_addresses);
  for (uint32_t i = 1; i < set->slot_count; i++) {
    const slot_address *before = &f->by_address[i - 1], *at = &f->by_address[i];
    if (at->address - before->address < set->slots[before->slot].bytes)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                        "%s: %s and %s overlap: pass each buffer once", f->call,
                        rondo_patch_slot_label(one, set, before->slot), rondo_patch_slot_label(other, set, at->slot));
  }
  return RONDO_OK;
}

static int compare_found(const void *a, const void *b) {
  const found_site *x = a, *y = b;
  if (x->slot != y->slot) return x->slot < y->slot ? -1 : 1;
  if (x->site.node != y->site.node) return x->site.node < y->site.node ? -1 : 1;
  const uint32_t left = (uint32_t)x->site.parameter << 16 | x->site.offset;
  const uint32_t right = (uint32_t)y->site.parameter << 16 | y->site.offset;
  return (left > right) - (left < right);
}

/* Copies the sites into the set. */
static rondo_status keep_sites(finder *f) {
  rondo_patch_set *set = f->set;
  if (f->found.count >= UINT32_MAX)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "%s: %zu sites are too many for a set: split the graph", f->call, f->found.count);
  if (f->found.count == 0) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&set->allocator, f->found.count, sizeof *set->sites, &set->sites));
  set->site_count = (uint32_t)f->found.count;
  qsort(f->found.items, f->found.count, sizeof *f->found.items, compare_found);
  for (uint32_t i = 0; i < set->site_count; i++) {
    const found_site *found = &f->found.items[i];
    rondo_patch_slot *slot = &set->slots[found->slot];
    if (slot->count == 0) slot->first = i;
    if (slot->count == 0 || set->sites[i - 1].node != found->site.node) slot->nodes++;
    slot->count++;
    set->sites[i] = found->site;
  }
  return RONDO_OK;
}

static rondo_status find_all(finder *f, const rondo_patch_options *options) {
  const rondo_exec *exec = f->set->exec;
  RONDO_TRY(sort_slots(f));
  RONDO_TRY(open_recordings(f, options));
  for (size_t i = 0; i < exec->lowering.nodes.count; i++) {
    seen_node node = {{rondo_exec_given_params(exec, i)}};
    node.params[MOVED] = params_in(f, MOVED, i);
    node.params[AGAIN] = params_in(f, AGAIN, i);
    RONDO_TRY(visit_node(f, (uint32_t)i, &node));
  }
  return keep_sites(f);
}

rondo_status rondo_patch_find_sites(const char *call, rondo_patch_set *set, const rondo_patch_input *inputs,
                                    const rondo_patch_options *options) {
  finder f = {.call = call, .set = set, .inputs = inputs};
  const rondo_status status = find_all(&f, options);
  rondo_release(&set->allocator, f.by_address, set->slot_count, sizeof *f.by_address);
  rondo_array_free(&set->allocator, &f.found);
  for (int i = MOVED; i < RECORDINGS; i++) rondo_lowering_free(&f.other[i]);
  return status;
}

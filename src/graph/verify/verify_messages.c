/* SPDX-License-Identifier: MIT
 * From mistakes to findings: which nodes they concern, which edge would correct them, and the message. Mistakes are
 * sorted by their nodes, errors first. Only findings that are kept get messages.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/node_name.h"
#include "graph/verify/verifier_internal.h"
#include "graph/verify/verify_messages.h"

#define NODE_TEXT RONDO_LABEL_BYTES
#define ALLOCATION_TEXT (RONDO_LABEL_BYTES + 128)
#define PART_TEXT 96

/* A finding that is being written, and what most messages need: the node with the mistake, and the access and the
 * allocation if there are any. */
typedef struct report {
  rondo_verifier *verifier;
  const rondo_mistake *mistake;
  const rondo_access_use *use; /* NULL: none */
  const rondo_region *region;  /* NULL: none */
  char node[NODE_TEXT];
  char allocation[ALLOCATION_TEXT];
  rondo_finding finding;
  uint32_t number; /* of finding.node, or of the child node that contains it, in the graph that is verified */
  char message[RONDO_FINDING_MESSAGE];
  char remedy[400];
} report;

/* Nodes ----------------------------------------------------------------------------------------------------------- */

static const rondo_flat_node *flat_node(const rondo_verifier *verifier, uint32_t node) {
  return &verifier->input->nodes[node];
}

static rondo_node tag_in(const rondo_verifier *verifier, const rondo_graph *graph, uint32_t slot) {
  if (!verifier->input->clone_tags) return rondo_graph_id(graph, slot);
  return (rondo_node){.id = (uint64_t)graph->source_serial << 32 | slot};
}

static rondo_node tag_of(const rondo_verifier *verifier, uint32_t node) {
  const rondo_flat_node *at = flat_node(verifier, node);
  return at->graph == NULL ? (rondo_node){0} : tag_in(verifier, at->graph, at->slot);
}

static rondo_node_where where_of(char buffer[RONDO_INSIDE_BYTES], const rondo_verifier *verifier, uint32_t node) {
  const rondo_flat_node *at = flat_node(verifier, node);
  return rondo_node_where_in(buffer, at->graph, verifier->input->root, at->slot);
}

/* "kernel 'saxpy' (node 2)" */
static const char *node_text(char buffer[NODE_TEXT], const rondo_verifier *verifier, uint32_t node) {
  char inside[RONDO_INSIDE_BYTES];
  const rondo_node_where where = where_of(inside, verifier, node);
  return rondo_node_label_at(buffer, flat_node(verifier, node)->params, &where);
}

/* "node 2" */
static const char *where_text(char buffer[NODE_TEXT], const rondo_verifier *verifier, uint32_t node) {
  char inside[RONDO_INSIDE_BYTES];
  const rondo_node_where where = where_of(inside, verifier, node);
  return rondo_node_where_text(buffer, &where);
}

static unsigned depth_of(const rondo_graph *graph) {
  unsigned depth = 0;
  for (; graph->parent != NULL; graph = graph->parent) depth++;
  return depth;
}

static void step_up(const rondo_graph **graph, uint32_t *slot) {
  *slot = (*graph)->parent_slot;
  *graph = (*graph)->parent;
}

/* Finds the edge between two nodes of one graph that would order the two. False if one node contains the other. */
static bool find_edge(const rondo_verifier *verifier, uint32_t before, uint32_t after, const rondo_graph **out_graph,
                      uint32_t *out_from, uint32_t *out_to) {
  const rondo_graph *from = flat_node(verifier, before)->graph, *to = flat_node(verifier, after)->graph;
  if (from == NULL || to == NULL) return false;
  *out_from = flat_node(verifier, before)->slot;
  *out_to = flat_node(verifier, after)->slot;
  while (depth_of(from) > depth_of(to)) step_up(&from, out_from);
  while (depth_of(to) > depth_of(from)) step_up(&to, out_to);
  while (from != to) {
    step_up(&from, out_from);
    step_up(&to, out_to);
  }
  *out_graph = from;
  return *out_from != *out_to;
}

static rondo_status is_ordered(const rondo_verifier *verifier, uint32_t before, uint32_t after, bool *out) {
  rondo_order_pair pair = {.before = before, .after = after};
  RONDO_TRY(rondo_verify_order_check(&verifier->order, &pair, 1));
  *out = pair.ordered;
  return RONDO_OK;
}

/* Remedies -------------------------------------------------------------------------------------------------------- */

static void name_graph(char *buffer, size_t capacity, const rondo_graph *graph, const rondo_graph *root) {
  char inside[RONDO_INSIDE_BYTES];
  const char *const path = rondo_graph_inside(inside, graph, root);
  snprintf(buffer, capacity, "%s%s", path == NULL ? "" : " in ", path == NULL ? "" : path);
}

/* `before` must come before `after`, but does not. Suggests an edge, unless `after` already comes before it; then
 * suggests `else_do` too. */
static rondo_status suggest_edge(report *self, uint32_t before, uint32_t after, const char *else_do) {
  const rondo_verifier *verifier = self->verifier;
  const rondo_graph *graph = NULL;
  uint32_t from = RONDO_NO_NODE, to = RONDO_NO_NODE;
  bool backwards;
  char where[RONDO_INSIDE_BYTES + 8];
  self->finding.before = tag_of(verifier, before);
  self->finding.after = tag_of(verifier, after);
  RONDO_TRY(is_ordered(verifier, after, before, &backwards));
  if (!find_edge(verifier, before, after, &graph, &from, &to)) {
    snprintf(self->remedy, sizeof self->remedy, "%s", else_do);
    return RONDO_OK;
  }
  name_graph(where, sizeof where, graph, verifier->input->root);
  if (backwards) {
    snprintf(self->remedy, sizeof self->remedy, "Remove the %s %" PRIu32 " -> %" PRIu32 "%s%s%s",
             rondo_graph_has_edge(graph, to, from) ? "edge" : "order", to, from, where,
             else_do[0] == '\0' ? "" : " or ", else_do);
    return RONDO_OK;
  }
  self->finding.from = tag_in(verifier, graph, from);
  self->finding.to = tag_in(verifier, graph, to);
  snprintf(self->remedy, sizeof self->remedy, "Add an edge %" PRIu32 " -> %" PRIu32 "%s", from, to, where);
  return RONDO_OK;
}

/* Allocations ----------------------------------------------------------------------------------------------------- */

static const char *region_name(const rondo_verifier *verifier, const rondo_region *region) {
  if (region->range != RONDO_NONE) return verifier->ranges.items[region->range].name;
  const char *name = rondo_verifier_params(verifier, region->alloc)->as.alloc.name;
  return name == NULL ? "" : name;
}

/* "allocation 'scratch' (4.0 KiB, node 0)" */
static const char *region_text(char buffer[ALLOCATION_TEXT], const rondo_verifier *verifier, uint32_t index) {
  const rondo_region *region = &verifier->regions.items[index];
  const char *name = region_name(verifier, region);
  char size[RONDO_SIZE_TEXT], node[NODE_TEXT] = "";
  const bool is_made = region->alloc != RONDO_NONE;
  if (is_made) where_text(node, verifier, region->alloc);
  rondo_size_text(size, region->end - region->begin);
  if (name[0] == '\0')
    snprintf(buffer, ALLOCATION_TEXT, "the allocation at 0x%" PRIxPTR " (%s%s%s)", region->begin, size,
             is_made ? ", " : "", node);
  else
    snprintf(buffer, ALLOCATION_TEXT, "allocation '%.60s' (%s%s%s)", name, size, is_made ? ", " : "", node);
  return buffer;
}

/* Messages -------------------------------------------------------------------------------------------------------- */

static void say(report *self, const char *format, ...) RONDO_PRINTF(2, 3);

static void say(report *self, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  (void)rondo_format_cut(self->message, sizeof self->message, format, arguments);
  va_end(arguments);
}

/* What the node does with the memory. */
static const char *verb_of(const rondo_access_use *use) {
  if (use->is_scanned) return "gets an address in";
  return use->writes ? "writes" : "reads";
}

static const char *scanned_text(char buffer[PART_TEXT], const rondo_access_use *use) {
  buffer[0] = '\0';
  if (use->is_scanned)
    snprintf(buffer, PART_TEXT, " (byte %u of parameter %u, which is not declared a pointer)", use->offset, use->part);
  return buffer;
}

static void set_other(report *self, uint32_t node) { self->finding.other = tag_of(self->verifier, node); }

/* An access that is not after the alloc, or not before the free. */
static rondo_status report_access(report *self) {
  const rondo_verifier *verifier = self->verifier;
  const bool early = self->mistake->kind == RONDO_MISTAKE_BEFORE;
  const uint32_t node = self->use->node, other = early ? self->region->alloc : self->region->freed;
  char part[PART_TEXT], instead[NODE_TEXT + 24], where[NODE_TEXT];
  bool wrong_way;
  set_other(self, other);
  snprintf(instead, sizeof instead, "%s %s", early ? "allocate before" : "free after",
           where_text(where, verifier, node));
  RONDO_TRY(suggest_edge(self, early ? other : node, early ? node : other, instead));
  RONDO_TRY(is_ordered(verifier, early ? node : other, early ? other : node, &wrong_way));
  const char *order = early       ? wrong_way ? "ordered before its alloc" : "not ordered after its alloc"
                      : wrong_way ? "ordered after its free"
                                  : "not ordered before its free";
  say(self, "%s %s %s%s but is %s (%s). %s", self->node, verb_of(self->use), self->allocation,
      scanned_text(part, self->use), order, where_text(where, verifier, other), self->remedy);
  return RONDO_OK;
}

static rondo_status report_life(report *self) {
  const rondo_region *region = self->region;
  char where[NODE_TEXT];
  set_other(self, region->alloc);
  RONDO_TRY(suggest_edge(self, region->alloc, region->freed, "free it later"));
  say(self, "%s frees %s but is not ordered after its alloc (%s). %s", self->node, self->allocation,
      where_text(where, self->verifier, region->alloc), self->remedy);
  return RONDO_OK;
}

static rondo_status report_reuse(report *self) {
  const rondo_verifier *verifier = self->verifier;
  const rondo_region *earlier = &verifier->regions.items[self->mistake->subject];
  char first[ALLOCATION_TEXT], where[NODE_TEXT];
  region_text(first, verifier, self->mistake->subject);
  if (self->mistake->kind == RONDO_MISTAKE_STILL_ALIVE) {
    if (earlier->alloc != RONDO_NONE) set_other(self, earlier->alloc);
    say(self, "%s gets bytes of %s, which %s. Free that first, or launch the two in separate graphs", self->allocation,
        first,
        earlier->alloc == RONDO_NONE ? "is allocated when the graph begins and not freed by it"
                                     : "the graph does not free");
    return RONDO_OK;
  }
  set_other(self, earlier->freed);
  RONDO_TRY(suggest_edge(self, earlier->freed, self->region->alloc, "order the two"));
  say(self,
      "%s gets bytes of %s but is not ordered after its free (%s). %s. A graph with memory nodes cannot be twice in "
      "branches that may run at once",
      self->allocation, first, where_text(where, verifier, earlier->freed), self->remedy);
  return RONDO_OK;
}

static rondo_status report_double_free(report *self) {
  char where[NODE_TEXT];
  set_other(self, self->region->freed);
  say(self, "%s frees %s, which %s frees too. Remove one of them", self->node, self->allocation,
      where_text(where, self->verifier, self->region->freed));
  return RONDO_OK;
}

static rondo_status report_foreign(report *self) {
  const void *address = rondo_verifier_params(self->verifier, self->mistake->node)->as.free_address;
  const bool inside = self->region != NULL && self->region->begin != (uintptr_t)address;
  if (inside) self->finding.reason = RONDO_REASON_INTERIOR_ADDRESS;
  self->finding.address = address;
  if (self->region == NULL)
    say(self,
        "%s frees 0x%" PRIxPTR
        ", where no known alloc node has an allocation. Free an address from an alloc node, while its graph or an exec "
        "of it exists",
        self->node, (uintptr_t)address);
  else
    say(self, "%s frees 0x%" PRIxPTR ", which is %s %s. A free node must free an address from an alloc node",
        self->node, (uintptr_t)address, inside ? "inside" : "the address of", self->allocation);
  return RONDO_OK;
}

static rondo_status report_beyond(report *self) {
  const uintptr_t begin = rondo_verifier_address(self->verifier, self->use->begin), start = self->region->begin;
  say(self, "%s %s %" PRIuPTR " bytes from %s%" PRIuPTR " of %s, and so exceeds its %s. Access less, or allocate more",
      self->node, verb_of(self->use), rondo_verifier_address(self->verifier, self->use->end) - begin,
      begin < start ? "byte -" : "byte ", begin < start ? start - begin : begin - start, self->allocation,
      begin < start ? "beginning" : "end");
  return RONDO_OK;
}

static rondo_status report_no_access(report *self) {
  say(self,
      "%s %s %s, which is on device '%s' and not accessible from the graph's device. Give this device access to it, or "
      "copy it",
      self->node, verb_of(self->use), self->allocation, self->verifier->ranges.items[self->region->range].no_access);
  return RONDO_OK;
}

static rondo_status report_dead(report *self) {
  const rondo_verifier *verifier = self->verifier;
  const uintptr_t begin = rondo_verifier_address(verifier, self->use->begin);
  const char *name = region_name(verifier, self->region);
  const bool is_named = name[0] != '\0';
  char part[PART_TEXT], access[NODE_TEXT + PART_TEXT + 64];
  (void)snprintf(access, sizeof access, "%s %s%s 0x%" PRIxPTR ", byte %" PRIuPTR " of", self->node, verb_of(self->use),
                 scanned_text(part, self->use), begin, begin - self->region->begin);
  if (verifier->ranges.items[self->region->range].was_freed)
    say(self, "%s %s, which was freed. Launch before it is freed, or pass memory that is allocated", access,
        self->allocation);
  else
    say(self,
        "%s %s%s%s, where the recording has no allocation: it was freed, or belongs to another recording. List it "
        "among "
        "what is allocated when the recording begins, or keep it alive",
        access, is_named ? "arena '" : "an arena", name, is_named ? "'" : "");
  return RONDO_OK;
}

static rondo_status report_no_address(report *self) {
  say(self,
      "%s has no address, and no other node has one, so accesses to memory were not checked. Dump the graph with its "
      "addresses",
      self->node);
  return RONDO_OK;
}

/* "bytes 0 to 4096 of allocation 'x' (...)": the bytes that both touch, if they are known and consecutive. */
static void shared_text(char *buffer, size_t capacity, const rondo_verifier *verifier, const rondo_access_use *a,
                        const rondo_access_use *b) {
  const uintptr_t a_begin = rondo_verifier_address(verifier, a->begin);
  const uintptr_t b_begin = rondo_verifier_address(verifier, b->begin);
  const uintptr_t begin = a_begin > b_begin ? a_begin : b_begin;
  const uint32_t region = b->region;
  const uintptr_t base = region == RONDO_NONE ? 0 : verifier->regions.items[region].begin;
  char allocation[ALLOCATION_TEXT] = "memory outside of known allocations", bytes[80];
  if (region != RONDO_NONE) region_text(allocation, verifier, region);
  uintptr_t end = UINTPTR_MAX;
  if (a->end != RONDO_NONE) end = rondo_verifier_address(verifier, a->end);
  if (b->end != RONDO_NONE && rondo_verifier_address(verifier, b->end) < end)
    end = rondo_verifier_address(verifier, b->end);
  if (end == UINTPTR_MAX)
    snprintf(bytes, sizeof bytes, "bytes from %" PRIuPTR " on", begin - base);
  else if (region == RONDO_NONE)
    snprintf(bytes, sizeof bytes, "bytes 0x%" PRIxPTR " to 0x%" PRIxPTR, begin, end);
  else
    snprintf(bytes, sizeof bytes, "bytes %" PRIuPTR " to %" PRIuPTR, begin - base, end - base);
  snprintf(buffer, capacity, "%s of %s", bytes, allocation);
}

static rondo_status report_race(report *self) {
  const rondo_verifier *verifier = self->verifier;
  const rondo_access_use *earlier = &verifier->accesses.items[self->mistake->subject], *later = self->use;
  const bool sure = self->mistake->kind == RONDO_MISTAKE_RACE;
  char first[NODE_TEXT], shared[ALLOCATION_TEXT + 96];
  set_other(self, earlier->node);
  RONDO_TRY(suggest_edge(self, earlier->node, later->node, "order the two"));
  shared_text(shared, sizeof shared, verifier, earlier, later);
  say(self, "%s %s and %s %s%s %s, and nothing orders the two. %s%s", node_text(first, verifier, earlier->node),
      verb_of(earlier), self->node, sure ? "" : "may ",
      sure            ? verb_of(later)
      : later->writes ? "write"
                      : "read",
      shared, self->remedy, sure ? "" : ", or declare how many bytes they access");
  return RONDO_OK;
}

/* Kinds of mistakes ------------------------------------------------------------------------------------------------ */

/* Selects a number of a mistake. */
typedef enum which { NEITHER, SUBJECT, OBJECT } which;

static const struct {
  rondo_status (*write)(report *self);
  rondo_status status;
  rondo_reason reason;
  which access, region; /* for an access without a region here: the region of the access */
} kinds[] = {
    [RONDO_MISTAKE_LIFE] = {report_life, RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED, NEITHER, SUBJECT},
    [RONDO_MISTAKE_REUSE] = {report_reuse, RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED, NEITHER, OBJECT},
    [RONDO_MISTAKE_STILL_ALIVE] = {report_reuse, RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED, NEITHER, OBJECT},
    [RONDO_MISTAKE_BEFORE] = {report_access, RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED, SUBJECT, OBJECT},
    [RONDO_MISTAKE_AFTER] = {report_access, RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE, SUBJECT, OBJECT},
    [RONDO_MISTAKE_RACE] = {report_race, RONDO_INVALID_GRAPH, RONDO_REASON_RACE, OBJECT, NEITHER},
    [RONDO_MISTAKE_MAYBE_RACE] = {report_race, RONDO_INVALID_GRAPH, RONDO_REASON_RACE, OBJECT, NEITHER},
    [RONDO_MISTAKE_DOUBLE_FREE] = {report_double_free, RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE, NEITHER,
                                   SUBJECT},
    [RONDO_MISTAKE_FOREIGN] = {report_foreign, RONDO_INVALID_LIFETIME, RONDO_REASON_FOREIGN_ADDRESS, NEITHER, SUBJECT},
    [RONDO_MISTAKE_BEYOND] = {report_beyond, RONDO_INVALID_GRAPH, RONDO_REASON_OUT_OF_RANGE, SUBJECT, OBJECT},
    [RONDO_MISTAKE_NO_ACCESS] = {report_no_access, RONDO_INVALID_GRAPH, RONDO_REASON_NO_ACCESS, SUBJECT, OBJECT},
    [RONDO_MISTAKE_DEAD] = {report_dead, RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE, SUBJECT, OBJECT},
    [RONDO_MISTAKE_NO_ADDRESS] = {report_no_address, RONDO_INVALID_GRAPH, RONDO_REASON_NO_ADDRESS, NEITHER, NEITHER},
};

static uint32_t number_in(const rondo_mistake *mistake, which of) {
  if (of == NEITHER) return RONDO_NONE;
  return of == SUBJECT ? mistake->subject : mistake->object;
}

static void set_region(report *self, uint32_t index) {
  const rondo_region *region = self->region = &self->verifier->regions.items[index];
  region_text(self->allocation, self->verifier, index);
  self->finding.allocation = region_name(self->verifier, region);
  self->finding.allocation_bytes = region->end - region->begin;
  self->finding.address = (const char *)region->begin;
  if (region->alloc != RONDO_NONE) self->finding.alloc = tag_of(self->verifier, region->alloc);
}

/* Writes the common part of all findings; the function of the kind writes the message. */
static rondo_status write_report(report *self, const rondo_mistake *mistake) {
  const rondo_verifier *verifier = self->verifier;
  const rondo_flat_node *at = flat_node(verifier, mistake->node);
  const uint32_t access = number_in(mistake, kinds[mistake->kind].access);
  uint32_t region = number_in(mistake, kinds[mistake->kind].region);
  self->mistake = mistake;
  self->finding.status = kinds[mistake->kind].status;
  self->finding.reason = kinds[mistake->kind].reason;
  self->finding.node = tag_of(verifier, mistake->node);
  self->number = rondo_graph_outer_number(at->graph, verifier->input->root, at->slot);
  node_text(self->node, verifier, mistake->node);
  if (access != RONDO_NONE) self->use = &verifier->accesses.items[access];
  if (self->use != NULL && kinds[mistake->kind].region == NEITHER) region = self->use->region;
  if (region != RONDO_NONE) set_region(self, region);
  if (self->use != NULL) self->finding.address = (const char *)rondo_verifier_address(verifier, self->use->begin);
  return kinds[mistake->kind].write(self);
}

/* Putting together ------------------------------------------------------------------------------------------------- */

static int compare_mistakes(const void *left, const void *right) {
  const rondo_mistake *a = left, *b = right;
  if (a->is_error != b->is_error) return a->is_error ? -1 : 1;
  if (a->node != b->node) return a->node < b->node ? -1 : 1;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  if (a->subject != b->subject) return a->subject < b->subject ? -1 : 1;
  return (a->object > b->object) - (a->object < b->object);
}

/* All races between the same two nodes are one mistake. */
static bool is_same(const rondo_verifier *verifier, const rondo_mistake *a, const rondo_mistake *b) {
  if (a->kind != b->kind || a->node != b->node) return false;
  const rondo_access_use *accesses = verifier->accesses.items;
  if (a->kind == RONDO_MISTAKE_RACE || a->kind == RONDO_MISTAKE_MAYBE_RACE)
    return accesses[a->subject].node == accesses[b->subject].node &&
           accesses[a->object].region == accesses[b->object].region;
  return a->subject == b->subject && a->object == b->object;
}

rondo_status rondo_verify_report(rondo_verifier *verifier, rondo_findings *findings) {
  const size_t count = verifier->mistakes.count;
  if (count == 0) return RONDO_OK;
  rondo_findings_count_more(findings, verifier->dropped_errors, verifier->dropped_warnings);
  const rondo_mistake *mistakes = verifier->mistakes.items;
  qsort(verifier->mistakes.items, count, sizeof *mistakes, compare_mistakes);
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && is_same(verifier, &mistakes[i], &mistakes[i - 1])) continue;
    report self = {.verifier = verifier, .finding = {.allocation = ""}};
    self.finding.severity = mistakes[i].is_error ? RONDO_SEVERITY_ERROR : RONDO_SEVERITY_WARNING;
    if (!rondo_findings_count_one(findings, self.finding.severity)) continue;
    RONDO_TRY(write_report(&self, &mistakes[i]));
    self.finding.message = self.message;
    RONDO_TRY(rondo_findings_add(findings, &self.finding, self.number));
  }
  return RONDO_OK;
}

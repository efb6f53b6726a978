/* SPDX-License-Identifier: MIT
 * From mistakes to findings: which nodes, which edge would mend it, and the words. Mistakes are put into the order of
 * the nodes whose they are, errors first; only those that are kept get words.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/node_name.h"
#include "graph/verify/verifier_internal.h"
#include "graph/verify/verify_messages.h"

#define NODE_TEXT RONDO_LABEL_BYTES
#define ALLOCATION_TEXT (RONDO_LABEL_BYTES + 128)
#define PART_TEXT 96

/* A finding that is being written. */
typedef struct report {
  rondo_verifier *verifier;
  rondo_finding finding;
  uint32_t number; /* of finding.node, or of the child node around it, in the graph that is verified */
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

/* The edge between two nodes of one graph that orders the two; false when they stand in one another. */
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

static bool has_edge(const rondo_graph *graph, uint32_t from, uint32_t to) {
  const rondo_slots *dependents = &rondo_graph_at(graph, from)->dependents;
  for (size_t i = 0; i < dependents->count; i++)
    if (dependents->items[i] == to) return true;
  return false;
}

static rondo_status is_ordered(const rondo_verifier *verifier, uint32_t before, uint32_t after, bool *out) {
  rondo_order_pair pair = {.before = before, .after = after};
  RONDO_TRY(rondo_verify_order_check(&verifier->order, &pair, 1));
  *out = pair.ordered;
  return RONDO_OK;
}

/* Remedies -------------------------------------------------------------------------------------------------------- */

static void name_graph(char *buffer, size_t room, const rondo_graph *graph, const rondo_graph *root) {
  char inside[RONDO_INSIDE_BYTES];
  const char *const path = rondo_graph_inside(inside, graph, root);
  snprintf(buffer, room, "%s%s", path == NULL ? "" : " in ", path == NULL ? "" : path);
}

/* `before` must come before `after` and does not: an edge mends it, unless it comes behind; then `else_do` says what
 * else there is to do. */
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
             has_edge(graph, to, from) ? "edge" : "order", to, from, where, else_do[0] == '\0' ? "" : " or ", else_do);
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

static void set_region(report *self, uint32_t index) {
  if (index == RONDO_NONE) return;
  const rondo_region *region = &self->verifier->regions.items[index];
  self->finding.allocation = region_name(self->verifier, region);
  self->finding.allocation_bytes = region->end - region->begin;
  self->finding.address = (const char *)region->begin;
  if (region->alloc != RONDO_NONE) self->finding.alloc = tag_of(self->verifier, region->alloc);
}

static void set_nodes(report *self, uint32_t node, uint32_t other) {
  const rondo_flat_node *at = flat_node(self->verifier, node);
  self->number = rondo_graph_outer_number(at->graph, self->verifier->input->root, at->slot);
  self->finding.node = tag_of(self->verifier, node);
  if (other != RONDO_NONE) self->finding.other = tag_of(self->verifier, other);
}

static void set_kind(report *self, rondo_status status, rondo_reason reason) {
  self->finding.status = status;
  self->finding.reason = reason;
}

/* Messages -------------------------------------------------------------------------------------------------------- */

static void say(report *self, const char *format, ...) RONDO_PRINTF(2, 3);

static void say(report *self, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  (void)rondo_format_cut(self->message, sizeof self->message, format, arguments);
  va_end(arguments);
}

/* What the node does: "reads", "writes", or is given. */
static const char *verb_of(const rondo_access_use *use) {
  if (use->is_scanned) return "is given an address in";
  return use->writes ? "writes" : "reads";
}

static const char *scanned_text(char buffer[PART_TEXT], const rondo_access_use *use) {
  buffer[0] = '\0';
  if (use->is_scanned)
    snprintf(buffer, PART_TEXT, " (byte %u of parameter %u, which is not declared a pointer)", use->offset, use->part);
  return buffer;
}

static void begin_access(report *self, uint32_t access, uint32_t region) {
  const rondo_verifier *verifier = self->verifier;
  const rondo_access_use *use = &verifier->accesses.items[access];
  set_region(self, region);
  self->finding.address = (const char *)rondo_verifier_address(verifier, use->begin);
}

static rondo_status report_access(report *self, const rondo_mistake *mistake) {
  const rondo_verifier *verifier = self->verifier;
  const rondo_region *region = &verifier->regions.items[mistake->object];
  const rondo_access_use *use = &verifier->accesses.items[mistake->subject];
  const bool early = mistake->kind == RONDO_MISTAKE_BEFORE;
  const uint32_t other = early ? region->alloc : region->freed;
  char node[NODE_TEXT], allocation[ALLOCATION_TEXT], part[PART_TEXT], instead[NODE_TEXT + 24], where[NODE_TEXT];
  bool wrong_way;
  begin_access(self, mistake->subject, mistake->object);
  set_nodes(self, use->node, other);
  set_kind(self, RONDO_INVALID_LIFETIME, early ? RONDO_REASON_NOT_ALLOCATED : RONDO_REASON_USE_AFTER_FREE);
  snprintf(instead, sizeof instead, "%s %s", early ? "allocate before" : "free after",
           where_text(where, verifier, use->node));
  RONDO_TRY(suggest_edge(self, early ? other : use->node, early ? use->node : other, instead));
  RONDO_TRY(is_ordered(verifier, early ? use->node : other, early ? other : use->node, &wrong_way));
  const char *order = early       ? wrong_way ? "ordered before its alloc" : "not ordered after its alloc"
                      : wrong_way ? "ordered after its free"
                                  : "not ordered before its free";
  say(self, "%s %s %s%s but is %s (%s). %s", node_text(node, verifier, use->node), verb_of(use),
      region_text(allocation, verifier, mistake->object), scanned_text(part, use), order,
      where_text(where, verifier, other), self->remedy);
  return RONDO_OK;
}

static rondo_status report_life(report *self, const rondo_mistake *mistake) {
  const rondo_verifier *verifier = self->verifier;
  const rondo_region *region = &verifier->regions.items[mistake->subject];
  char node[NODE_TEXT], allocation[ALLOCATION_TEXT], where[NODE_TEXT];
  set_region(self, mistake->subject);
  set_nodes(self, region->freed, region->alloc);
  set_kind(self, RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
  RONDO_TRY(suggest_edge(self, region->alloc, region->freed, "free it later"));
  say(self, "%s frees %s but is not ordered after its alloc (%s). %s", node_text(node, verifier, region->freed),
      region_text(allocation, verifier, mistake->subject), where_text(where, verifier, region->alloc), self->remedy);
  return RONDO_OK;
}

static rondo_status report_reuse(report *self, const rondo_mistake *mistake) {
  const rondo_verifier *verifier = self->verifier;
  const rondo_region *earlier = &verifier->regions.items[mistake->subject];
  const rondo_region *later = &verifier->regions.items[mistake->object];
  char first[ALLOCATION_TEXT], second[ALLOCATION_TEXT], where[NODE_TEXT];
  set_region(self, mistake->object);
  set_nodes(self, later->alloc, earlier->freed == RONDO_NONE ? earlier->alloc : earlier->freed);
  set_kind(self, RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED);
  region_text(first, verifier, mistake->subject);
  region_text(second, verifier, mistake->object);
  if (mistake->kind == RONDO_MISTAKE_STILL_ALIVE) {
    say(self,
        "%s is given bytes of %s, which %s. Free that before, or launch the two in graphs of "
        "their own",
        second, first,
        earlier->alloc == RONDO_NONE ? "lives when the graph begins and is not freed by it"
                                     : "the graph does not free");
    return RONDO_OK;
  }
  RONDO_TRY(suggest_edge(self, earlier->freed, later->alloc, "order the two"));
  say(self,
      "%s is given bytes of %s but is not ordered after its free (%s). %s. One memory graph cannot stand twice in "
      "branches that may run at once",
      second, first, where_text(where, verifier, earlier->freed), self->remedy);
  return RONDO_OK;
}

static rondo_status report_double_free(report *self, const rondo_mistake *mistake) {
  const rondo_verifier *verifier = self->verifier;
  const uint32_t first = verifier->regions.items[mistake->subject].freed;
  char node[NODE_TEXT], allocation[ALLOCATION_TEXT], where[NODE_TEXT];
  set_region(self, mistake->subject);
  set_nodes(self, mistake->node, first);
  set_kind(self, RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE);
  say(self, "%s frees %s, which %s frees too. Remove one of them", node_text(node, verifier, mistake->node),
      region_text(allocation, verifier, mistake->subject), where_text(where, verifier, first));
  return RONDO_OK;
}

static rondo_status report_foreign(report *self, const rondo_mistake *mistake) {
  const rondo_verifier *verifier = self->verifier;
  const void *address = rondo_verifier_params(verifier, mistake->node)->as.free_address;
  const bool inside =
      mistake->subject != RONDO_NONE && verifier->regions.items[mistake->subject].begin != (uintptr_t)address;
  char node[NODE_TEXT], allocation[ALLOCATION_TEXT];
  set_region(self, mistake->subject);
  set_nodes(self, mistake->node, RONDO_NONE);
  set_kind(self, RONDO_INVALID_LIFETIME, inside ? RONDO_REASON_INTERIOR_ADDRESS : RONDO_REASON_FOREIGN_ADDRESS);
  self->finding.address = address;
  node_text(node, verifier, mistake->node);
  if (mistake->subject == RONDO_NONE)
    say(self,
        "%s frees 0x%" PRIxPTR
        ", where no alloc node that is known has an allocation. Free what an alloc node "
        "returned, while its graph or an exec of it exists",
        node, (uintptr_t)address);
  else
    say(self, "%s frees 0x%" PRIxPTR ", which is %s %s. Free nodes free what alloc nodes returned", node,
        (uintptr_t)address, inside ? "inside" : "the address of", region_text(allocation, verifier, mistake->subject));
  return RONDO_OK;
}

static rondo_status report_beyond(report *self, const rondo_mistake *mistake) {
  const rondo_verifier *verifier = self->verifier;
  const rondo_access_use *use = &verifier->accesses.items[mistake->subject];
  const uintptr_t begin = rondo_verifier_address(verifier, use->begin);
  const uintptr_t start = verifier->regions.items[mistake->object].begin;
  char node[NODE_TEXT], allocation[ALLOCATION_TEXT];
  begin_access(self, mistake->subject, mistake->object);
  set_nodes(self, use->node, RONDO_NONE);
  set_kind(self, RONDO_INVALID_GRAPH, RONDO_REASON_OUT_OF_RANGE);
  say(self, "%s %s %" PRIuPTR " bytes from %s%" PRIuPTR " of %s, and so passes its %s. Access less, or allocate more",
      node_text(node, verifier, use->node), verb_of(use), rondo_verifier_address(verifier, use->end) - begin,
      begin < start ? "byte -" : "byte ", begin < start ? start - begin : begin - start,
      region_text(allocation, verifier, mistake->object), begin < start ? "beginning" : "end");
  return RONDO_OK;
}

static rondo_status report_no_access(report *self, const rondo_mistake *mistake) {
  const rondo_verifier *verifier = self->verifier;
  const rondo_access_use *use = &verifier->accesses.items[mistake->subject];
  const rondo_region *region = &verifier->regions.items[mistake->object];
  char node[NODE_TEXT], allocation[ALLOCATION_TEXT];
  begin_access(self, mistake->subject, mistake->object);
  set_nodes(self, use->node, RONDO_NONE);
  set_kind(self, RONDO_INVALID_GRAPH, RONDO_REASON_NO_ACCESS);
  say(self,
      "%s %s %s, which is on device '%s' and not accessible from the graph's. Give this device access to it, or "
      "copy it",
      node_text(node, verifier, use->node), verb_of(use), region_text(allocation, verifier, mistake->object),
      verifier->ranges.items[region->range].no_access);
  return RONDO_OK;
}

static rondo_status report_dead(report *self, const rondo_mistake *mistake) {
  const rondo_verifier *verifier = self->verifier;
  const rondo_access_use *use = &verifier->accesses.items[mistake->subject];
  const rondo_region *region = &verifier->regions.items[mistake->object];
  const uintptr_t begin = rondo_verifier_address(verifier, use->begin);
  const char *name = region_name(verifier, region);
  const bool is_named = name[0] != '\0';
  char node[NODE_TEXT], part[PART_TEXT];
  begin_access(self, mistake->subject, mistake->object);
  set_nodes(self, use->node, RONDO_NONE);
  set_kind(self, RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE);
  if (verifier->ranges.items[region->range].was_freed) {
    char allocation[ALLOCATION_TEXT];
    say(self,
        "%s %s%s 0x%" PRIxPTR ", byte %" PRIuPTR
        " of %s, which was freed. Instantiate before the free and launch "
        "before it, or give the node memory that is allocated",
        node_text(node, verifier, use->node), verb_of(use), scanned_text(part, use), begin, begin - region->begin,
        region_text(allocation, verifier, mistake->object));
    return RONDO_OK;
  }
  say(self,
      "%s %s%s 0x%" PRIxPTR ", byte %" PRIuPTR
      " of %s%s%s, where nothing lives that the recording was told of: it was freed, or belongs to another "
      "recording. Name it among what lives when the recording begins, or keep it alive",
      node_text(node, verifier, use->node), verb_of(use), scanned_text(part, use), begin, begin - region->begin,
      is_named ? "arena '" : "an arena", name, is_named ? "'" : "");
  return RONDO_OK;
}

static rondo_status report_no_address(report *self, const rondo_mistake *mistake) {
  char node[NODE_TEXT];
  set_nodes(self, mistake->node, RONDO_NONE);
  set_kind(self, RONDO_INVALID_GRAPH, RONDO_REASON_NO_ADDRESS);
  say(self,
      "%s has no address, and no other node has one: what touches which memory is not known, and was not looked at. "
      "Dump the graph with its addresses",
      node_text(node, self->verifier, mistake->node));
  return RONDO_OK;
}

/* "bytes 0 to 4096 of allocation 'x' (...)": what both touch, if that is known and in one piece. */
static void shared_text(char *buffer, size_t room, const rondo_verifier *verifier, const rondo_access_use *a,
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
  snprintf(buffer, room, "%s of %s", bytes, allocation);
}

static rondo_status report_race(report *self, const rondo_mistake *mistake) {
  const rondo_verifier *verifier = self->verifier;
  const rondo_access_use *earlier = &verifier->accesses.items[mistake->subject];
  const rondo_access_use *later = &verifier->accesses.items[mistake->object];
  const bool sure = mistake->kind == RONDO_MISTAKE_RACE;
  char first[NODE_TEXT], second[NODE_TEXT], shared[ALLOCATION_TEXT + 96];
  begin_access(self, mistake->object, later->region);
  set_nodes(self, later->node, earlier->node);
  set_kind(self, RONDO_INVALID_GRAPH, RONDO_REASON_RACE);
  RONDO_TRY(suggest_edge(self, earlier->node, later->node, "order the two"));
  shared_text(shared, sizeof shared, verifier, earlier, later);
  say(self, "%s %s and %s %s%s %s, and nothing orders the two. %s%s", node_text(first, verifier, earlier->node),
      verb_of(earlier), node_text(second, verifier, later->node), sure ? "" : "may ",
      sure            ? verb_of(later)
      : later->writes ? "write"
                      : "read",
      shared, self->remedy, sure ? "" : ", or declare how many bytes they access");
  return RONDO_OK;
}

static rondo_status write_report(report *self, const rondo_mistake *mistake) {
  switch (mistake->kind) {
    case RONDO_MISTAKE_LIFE:
      return report_life(self, mistake);
    case RONDO_MISTAKE_REUSE:
    case RONDO_MISTAKE_STILL_ALIVE:
      return report_reuse(self, mistake);
    case RONDO_MISTAKE_BEFORE:
    case RONDO_MISTAKE_AFTER:
      return report_access(self, mistake);
    case RONDO_MISTAKE_RACE:
    case RONDO_MISTAKE_MAYBE_RACE:
      return report_race(self, mistake);
    case RONDO_MISTAKE_DOUBLE_FREE:
      return report_double_free(self, mistake);
    case RONDO_MISTAKE_FOREIGN:
      return report_foreign(self, mistake);
    case RONDO_MISTAKE_BEYOND:
      return report_beyond(self, mistake);
    case RONDO_MISTAKE_NO_ACCESS:
      return report_no_access(self, mistake);
    case RONDO_MISTAKE_DEAD:
      return report_dead(self, mistake);
    case RONDO_MISTAKE_NO_ADDRESS:
      return report_no_address(self, mistake);
  }
  return RONDO_OK;
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

/* Two races of the same two nodes are one mistake, whatever they access. */
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

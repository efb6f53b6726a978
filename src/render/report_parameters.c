/* SPDX-License-Identifier: MIT
 * Describes one node of a report in words, for the tooltip and the table.
 */
#include <inttypes.h>
#include <string.h>

#include "render/report_parts.h"

enum { BRIEF_POINTERS = 4, MOST_DEPENDENCIES = 24, WORD_BYTES = 8 };

typedef struct describer {
  rondo_text *text;
  bool with_addresses;
  uint32_t most_pointers;
} describer;

void rondo_report_add_number(rondo_text *text, const rondo_report_model *model, uint32_t graph, uint32_t slot) {
  const rondo_report_graph *of = &model->graphs.items[graph];
  if (of->parent != RONDO_NO_NODE) {
    rondo_report_add_number(text, model, of->parent, of->parent_slot);
    rondo_text_add(text, ".");
  }
  rondo_text_add(text, "%" PRIu32, slot);
}

static void add_address(const describer *d, const char *what, const void *address) {
  if (d->with_addresses && address != NULL) rondo_text_add(d->text, ", %s 0x%" PRIxPTR, what, (uintptr_t)address);
}

/* A scalar of up to a word as a number, its bytes in memory order taken as little-endian. */
static void add_scalar(const describer *d, const unsigned char *value, uint32_t bytes) {
  if (bytes > WORD_BYTES) {
    rondo_text_add(d->text, ", %" PRIu32 " bytes", bytes);
    return;
  }
  uint64_t word = 0;
  for (uint32_t i = bytes; i > 0; i--) word = word << 8 | value[i - 1];
  rondo_text_add(d->text, ", 0x%" PRIx64, word);
}

static void add_kernel(const describer *d, const rondo_kernel_node *node, const char *name) {
  static const char *const access_names[] = {"", "", "reads", "writes", "updates"};
  if (strcmp(name, node->kernel->name) != 0) rondo_text_add(d->text, "of %s, ", RONDO_REPORT_NAME(node->kernel->name));
  rondo_text_add(d->text, "%" PRIu32 " \xC3\x97 %" PRIu32 " \xC3\x97 %" PRIu32 " blocks", node->grid.x, node->grid.y,
                 node->grid.z);
  for (uint32_t i = 0; i < node->kernel->parameter_count && i < d->most_pointers; i++) {
    const rondo_parameter *parameter = &node->kernel->parameters[i];
    void *address;
    if (parameter->access == RONDO_ACCESS_SCALAR) {
      add_scalar(d, node->args[i], parameter->bytes);
      continue;
    }
    memcpy(&address, node->args[i], sizeof address);
    add_address(d, access_names[parameter->access], address);
  }
  if (node->kernel->parameter_count > d->most_pointers) rondo_text_add(d->text, ", ...");
}

static void add_copy(const describer *d, const rondo_copy *copy) {
  rondo_text_add(d->text, "%s bytes", RONDO_GROUPED(copy->width));
  if (copy->height > 1 || copy->depth > 1)
    rondo_text_add(d->text, " \xC3\x97 %zu rows \xC3\x97 %zu slices", copy->height, copy->depth);
  add_address(d, "to", copy->dst);
  add_address(d, "from", copy->src);
}

static void add_fill(const describer *d, const rondo_fill *fill) {
  rondo_text_add(d->text, "%s \xC3\x97 %" PRIu32 " bytes", RONDO_GROUPED(fill->width), fill->element_bytes);
  if (fill->height > 1) rondo_text_add(d->text, " \xC3\x97 %zu rows", fill->height);
  rondo_text_add(d->text, " of 0x%" PRIx32, fill->value);
  add_address(d, "to", fill->dst);
}

static void add_alloc(const describer *d, const rondo_alloc_node *alloc, const char *name) {
  if (strcmp(name, alloc->name) != 0) rondo_text_add(d->text, "of %s, ", RONDO_REPORT_NAME(alloc->name));
  rondo_text_add(d->text, "%s bytes", RONDO_GROUPED(alloc->bytes));
  add_address(d, "at", alloc->address);
}

static void add_foreign(const describer *d, const rondo_foreign_node *foreign) {
  rondo_text_add(d->text, "a %s", RONDO_REPORT_NAME(foreign->what));
  if (foreign->bytes > 0) rondo_text_add(d->text, " of %s bytes", RONDO_GROUPED(foreign->bytes));
  add_address(d, "at", foreign->address);
}

static void add_child(const describer *d, const rondo_graph *child) {
  rondo_text_add(d->text, "%" PRIu32 " node%s inside", child->live_count, child->live_count == 1 ? "" : "s");
  if (child->name[0] != '\0') rondo_text_add(d->text, ", graph %s", RONDO_REPORT_NAME(child->name));
}

void rondo_report_add_parameters(rondo_text *text, const rondo_report_model *model, uint32_t place, bool brief) {
  const rondo_node_params *params = rondo_report_params(model, place);
  const describer d = {text, !model->options->no_addresses, brief ? BRIEF_POINTERS : RONDO_MAX_PARAMETERS};
  switch (params->kind) {
    case RONDO_NODE_KERNEL:
      add_kernel(&d, &params->as.kernel, params->name);
      break;
    case RONDO_NODE_COPY:
      add_copy(&d, &params->as.copy);
      break;
    case RONDO_NODE_FILL:
      add_fill(&d, &params->as.fill);
      break;
    case RONDO_NODE_HOST:
      rondo_text_add(text, "a host function");
      add_address(&d, "user", params->as.host.user);
      break;
    case RONDO_NODE_EVENT_RECORD:
    case RONDO_NODE_EVENT_WAIT:
      rondo_text_add(text, "an event");
      add_address(&d, "at", params->as.event);
      break;
    case RONDO_NODE_ALLOC:
      add_alloc(&d, &params->as.alloc, params->name);
      break;
    case RONDO_NODE_FREE:
      rondo_text_add(text, "an allocation");
      add_address(&d, "at", params->as.free_address);
      break;
    case RONDO_NODE_CHILD:
      add_child(&d, params->as.child);
      break;
    case RONDO_NODE_FOREIGN:
      add_foreign(&d, &params->as.foreign);
      break;
    case RONDO_NODE_EMPTY:
      rondo_text_add(text, "nothing");
      break;
  }
}

static void add_dependencies(rondo_text *text, const rondo_slots *dependencies) {
  for (size_t i = 0; i < dependencies->count && i < MOST_DEPENDENCIES; i++)
    rondo_text_add(text, "%s%" PRIu32, i == 0 ? "; after " : ", ", dependencies->items[i]);
  if (dependencies->count > MOST_DEPENDENCIES)
    rondo_text_add(text, " and %zu more", dependencies->count - MOST_DEPENDENCIES);
}

void rondo_report_add_node(rondo_text *text, const rondo_report_model *model, uint32_t place, bool brief) {
  const rondo_report_node *node = &model->nodes.items[place];
  const rondo_graph_node *of = &model->graphs.items[node->graph].graph->nodes.items[node->slot];
  rondo_text_add(text, "%s%s%s (node ", rondo_node_kind_name(of->params.kind), of->params.name[0] != '\0' ? " " : "",
                 RONDO_REPORT_NAME(of->params.name));
  rondo_report_add_number(text, model, node->graph, node->slot);
  rondo_text_add(text, "): ");
  rondo_report_add_parameters(text, model, place, brief);
  add_dependencies(text, &of->dependencies);
  if (node->timed) rondo_text_add(text, "; %s", RONDO_REPORT_TIME(node->us, 2));
}

/* SPDX-License-Identifier: MIT
 * The parameters of a node in words. DOT escapes names as JSON does. HTML also groups the digits of numbers, and shows
 * the scalars of kernels. Both name the devices that may access an allocation.
 */
#include "render/node_details.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/semaphore_data.h"

enum { DOT_NAME_BYTES = 240, WORD_BYTES = 8 };

/* What is being written. */
typedef struct writer {
  const rondo_node_details *details;
  rondo_text *text;
  const char *times; /* the multiplication sign */
  bool has_items;
} writer;

/* Begins an item. The caller adds it to the returned text. */
static rondo_text *begin_item(writer *w) {
  rondo_text_add(w->text, w->details->is_dot ? "\\n" : w->has_items ? ", " : "");
  w->has_items = true;
  return w->text;
}

void rondo_dot_add_name(rondo_text *text, const char *name) {
  char escaped[DOT_NAME_BYTES];
  rondo_text_add_bytes(text, escaped, rondo_json_escape(escaped, sizeof escaped, name));
}

static void add_name(const writer *w, const char *name) {
  if (w->details->is_dot)
    rondo_dot_add_name(w->text, name);
  else
    rondo_text_add_markup(w->text, name, RONDO_DETAILS_HTML_NAME_BYTES);
}

static const char *number_text(const writer *w, char out[RONDO_NUMBER_TEXT], uint64_t number) {
  if (!w->details->is_dot) return rondo_grouped_text(out, number);
  (void)snprintf(out, RONDO_NUMBER_TEXT, "%" PRIu64, number);
  return out;
}

#define NUMBER(w, number) number_text((w), (char[RONDO_NUMBER_TEXT]){""}, (number))

/* An address in a symbol, which is the same in each process. */
static bool add_symbol(writer *w, const char *what, const void *address) {
  const rondo_kernel *kernel;
  const rondo_code_symbol *symbol = rondo_graph_symbol_at(w->details->graph, address, &kernel);
  if (symbol == NULL) return false;
  const size_t offset = (uintptr_t)address - (uintptr_t)symbol->address;
  rondo_text_add(begin_item(w), "%s ", what);
  add_name(w, symbol->name);
  if (offset > 0) rondo_text_add(w->text, " + %zu", offset);
  return true;
}

static void add_address(writer *w, const char *what, const void *address) {
  if (address == NULL || add_symbol(w, what, address)) return;
  if (w->details->with_addresses) rondo_text_add(begin_item(w), "%s 0x%" PRIxPTR, what, (uintptr_t)address);
}

/* The name of a kernel or an allocation, if the node has another. */
static void add_other_name(writer *w, const rondo_node_params *params, const char *name) {
  if (strcmp(params->name, name) == 0) return;
  rondo_text_add(begin_item(w), "of ");
  add_name(w, name);
}

/* A scalar of up to a word as a number. Its bytes in memory are read as little-endian. */
static void add_scalar(writer *w, const unsigned char *value, uint32_t bytes) {
  uint64_t word = 0;
  for (uint32_t i = bytes; bytes <= WORD_BYTES && i > 0; i--) word = word << 8 | value[i - 1];
  if (bytes <= WORD_BYTES)
    rondo_text_add(begin_item(w), "0x%" PRIx64, word);
  else
    rondo_text_add(begin_item(w), "%" PRIu32 " bytes", bytes);
}

static void add_config(writer *w, const rondo_launch_config *config) {
  if (config == NULL) return;
  rondo_text_add(begin_item(w), "%" PRIu32 " %s %" PRIu32 " %s %" PRIu32 " threads", config->block.x, w->times,
                 config->block.y, w->times, config->block.z);
  if (config->shared_bytes > 0)
    rondo_text_add(begin_item(w), "%s bytes of shared memory", NUMBER(w, config->shared_bytes));
  if (config->shared_percent > 0)
    rondo_text_add(begin_item(w), "%" PRIu32 " %% for shared memory", config->shared_percent);
  if (config->cluster.x > 0)
    rondo_text_add(begin_item(w), "clusters of %" PRIu32 " %s %" PRIu32 " %s %" PRIu32, config->cluster.x, w->times,
                   config->cluster.y, w->times, config->cluster.z);
  if (config->priority != 0) rondo_text_add(begin_item(w), "priority %" PRId32, config->priority);
  if (config->memory_domain == RONDO_MEMORY_DOMAIN_REMOTE) rondo_text_add(begin_item(w), "remote memory domain");
  if (config->cooperative) rondo_text_add(begin_item(w), "cooperative");
  if (config->programmatic) rondo_text_add(begin_item(w), "programmatic");
}

static void add_kernel(writer *w, const rondo_node_params *params) {
  static const char *const access_names[] = {"", "", "reads", "writes", "updates"};
  const rondo_kernel_node *node = &params->as.kernel;
  const rondo_kernel *kernel = node->kernel;
  add_other_name(w, params, kernel->name);
  rondo_text_add(begin_item(w), "%" PRIu32 " %s %" PRIu32 " %s %" PRIu32 " blocks", node->grid.x, w->times,
                 node->grid.y, w->times, node->grid.z);
  add_config(w, node->config);
  for (uint32_t i = 0; i < kernel->parameter_count && i < w->details->max_parameters; i++) {
    void *address;
    if (kernel->parameters[i].access != RONDO_ACCESS_SCALAR) {
      memcpy(&address, node->args[i], sizeof address);
      add_address(w, access_names[kernel->parameters[i].access], address);
    } else if (!w->details->is_dot) {
      add_scalar(w, node->args[i], kernel->parameters[i].bytes);
    }
  }
  if (kernel->parameter_count > w->details->max_parameters) rondo_text_add(w->text, ", ...");
}

static void add_copy(writer *w, const rondo_copy *copy) {
  rondo_text_add(begin_item(w), "%s bytes", NUMBER(w, copy->width));
  if (copy->height > 1 || copy->depth > 1)
    rondo_text_add(w->text, " %s %zu rows %s %zu slices", w->times, copy->height, w->times, copy->depth);
  add_address(w, "to", copy->dst);
  add_address(w, "from", copy->src);
}

static void add_fill(writer *w, const rondo_fill *fill) {
  rondo_text_add(begin_item(w), "%s %s %" PRIu32 " bytes", NUMBER(w, fill->width), w->times, fill->element_bytes);
  if (fill->height > 1) rondo_text_add(w->text, " %s %zu rows", w->times, fill->height);
  rondo_text_add(w->text, " of 0x%" PRIx32, fill->value);
  add_address(w, "to", fill->dst);
}

static void add_alloc(writer *w, const rondo_node_params *params) {
  const rondo_alloc_node *alloc = &params->as.alloc;
  add_other_name(w, params, alloc->name);
  rondo_text_add(begin_item(w), "%s bytes", NUMBER(w, alloc->bytes));
  if (alloc->peers != 0) rondo_text_add(begin_item(w), "for devices");
  for (unsigned i = 0; i < 64; i++)
    if ((alloc->peers >> i & 1) != 0) rondo_text_add(w->text, " %u", i);
  add_address(w, "at", alloc->address);
}

static void add_host(writer *w, const rondo_host_node *host) {
  const void *function;
  _Static_assert(sizeof function == sizeof host->function, "POSIX keeps both in one size");
  memcpy(&function, &host->function, sizeof function);
  if (w->details->is_dot) add_address(w, "function", function);
  add_address(w, "user", host->user);
}

static void add_foreign(writer *w, const rondo_foreign_node *foreign) {
  rondo_text_add(begin_item(w), w->details->is_dot ? "" : "a ");
  add_name(w, foreign->what);
  if (foreign->bytes > 0) rondo_text_add(w->text, " of %s bytes", NUMBER(w, foreign->bytes));
  add_address(w, "at", foreign->address);
}

/* "waits for 0x7f00 >= 1", "writes 2 to 0x7f04" */
static void add_operation(writer *w, const rondo_memory_operation *operation) {
  static const char *const conditions[] = {"&gt;= ", "= ", "&amp; ", "nor "}, *const dot_conditions[] = {">= ", "= ",
                                                                                                         "& ", "nor "};
  if (operation->kind == RONDO_OPERATION_FLUSH) {
    rondo_text_add(begin_item(w), "flushes");
  } else if (rondo_operation_waits(operation)) {
    rondo_text_add(begin_item(w), "waits for %s%" PRIu64,
                   (w->details->is_dot ? dot_conditions : conditions)[operation->condition], operation->value);
    add_address(w, "at", operation->address);
  } else {
    rondo_text_add(begin_item(w), "writes %" PRIu64, operation->value);
    add_address(w, "to", operation->address);
  }
}

static void add_operations(writer *w, const rondo_memory_operations_node *node) {
  for (size_t i = 0; i < node->count && i < w->details->max_parameters; i++) add_operation(w, &node->operations[i]);
  if (node->count > w->details->max_parameters) rondo_text_add(w->text, ", ...");
}

/* "'frames' 3" */
static void add_semaphores(writer *w, const rondo_semaphores_node *node) {
  for (size_t i = 0; i < node->count && i < w->details->max_parameters; i++) {
    const rondo_external_semaphore *semaphore = node->values[i].semaphore;
    rondo_text_add(begin_item(w), semaphore->name[0] == '\0' ? "a semaphore" : "semaphore ");
    add_name(w, semaphore->name);
    if (node->values[i].value > 0) rondo_text_add(w->text, " %" PRIu64, node->values[i].value);
  }
  if (node->count > w->details->max_parameters) rondo_text_add(w->text, ", ...");
}

/* DOT has a cluster for the child instead. */
static void add_child(writer *w, const rondo_graph *child) {
  if (w->details->is_dot) return;
  rondo_text_add(begin_item(w), "%" PRIu32 " node%s inside", child->live_count, child->live_count == 1 ? "" : "s");
  if (child->name[0] == '\0') return;
  rondo_text_add(w->text, ", graph ");
  add_name(w, child->name);
}

/* What HTML says of kinds that have hardly any parameters. */
static const char *const kind_words[] = {
    [RONDO_NODE_HOST] = "a host function", [RONDO_NODE_EVENT_RECORD] = "an event", [RONDO_NODE_EVENT_WAIT] = "an event",
    [RONDO_NODE_FREE] = "an allocation",   [RONDO_NODE_EMPTY] = "nothing",         [RONDO_NODE_LAST] = NULL};

static void add_device(writer *w, const rondo_graph_node *node) {
  if (node->device_number != 0) rondo_text_add(begin_item(w), "on device %d", node->device_number - 1);
}

void rondo_node_details_add(const rondo_node_details *details, const rondo_graph_node *node) {
  const rondo_node_params *params = &node->params;
  writer w = {.details = details, .text = details->text, .times = details->is_dot ? "x" : "\xC3\x97"};
  if (!details->is_dot && kind_words[params->kind] != NULL)
    rondo_text_add(begin_item(&w), "%s", kind_words[params->kind]);
  switch (params->kind) {
    case RONDO_NODE_KERNEL:
      add_kernel(&w, params);
      break;
    case RONDO_NODE_COPY:
      add_copy(&w, &params->as.copy);
      break;
    case RONDO_NODE_FILL:
      add_fill(&w, &params->as.fill);
      break;
    case RONDO_NODE_HOST:
      add_host(&w, &params->as.host);
      break;
    case RONDO_NODE_EVENT_RECORD:
    case RONDO_NODE_EVENT_WAIT:
      add_address(&w, details->is_dot ? "event" : "at", params->as.event);
      break;
    case RONDO_NODE_ALLOC:
      add_alloc(&w, params);
      break;
    case RONDO_NODE_FREE:
      add_address(&w, "at", params->as.free_address);
      break;
    case RONDO_NODE_CHILD:
      add_child(&w, params->as.child);
      break;
    case RONDO_NODE_FOREIGN:
      add_foreign(&w, &params->as.foreign);
      break;
    case RONDO_NODE_MEMORY_OPERATIONS:
      add_operations(&w, &params->as.memory_operations);
      break;
    case RONDO_NODE_SEMAPHORE_SIGNAL:
    case RONDO_NODE_SEMAPHORE_WAIT:
      add_semaphores(&w, &params->as.semaphores);
      break;
    case RONDO_NODE_EMPTY:
      break;
  }
  add_device(&w, node);
}

/* SPDX-License-Identifier: MIT
 * Patch sets compared with a model. The input is a graph of kernels, copies and fills in a chain, some in a child, and
 * a stream of calls: launches with inputs at random addresses, plain launches, other parameters for a node, updates,
 * rebasing, further sets, enabling and disabling nodes, captures. The model knows the address of each reference of each
 * node, and the set and input that know it. It runs the launches in a plain loop, and all words must be the same
 * whenever the stream is waited for. Invalid calls fail and change nothing.
 */
#include <rondo/rondo.h>
#include <stdbool.h>
#include <string.h>

#include "fuzz/fuzz_target.h"

enum { PLACES = 6, WORDS = 64, SLOTS = 3, NODES = 8, REFERENCES = 2 * NODES, SETS = 2, MAX_CALLS = 120, NO_SLOT = -1 };

typedef struct reference {
  int place;
  uint32_t word;
} reference;

typedef struct model_node {
  rondo_node_kind kind;
  rondo_node tag;
  reference to, from; /* a fill has no `from` */
  uint32_t value;
  bool enabled;
} model_node;

/* The state of a set: the slot of each reference, and the address of each slot. */
typedef struct model_set {
  rondo_patch_set *set;
  int slot_of[REFERENCES];
  int held[SLOTS];
} model_set;

typedef struct fuzz_run {
  const uint8_t *data;
  size_t left;
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *kernel;
  uint32_t *places[PLACES], words[PLACES][WORDS];
  rondo_graph *graph;
  rondo_exec *exec;
  model_node nodes[NODES], recorded[NODES];
  int count;
  model_set sets[SETS];
  model_set *current;
} fuzz_run;

static uint8_t take(fuzz_run *run) {
  if (run->left == 0) return 0;
  run->left--;
  return *run->data++;
}

static uint32_t *address_of(const fuzz_run *run, reference at) { return run->places[at.place] + at.word; }

/* to[0] = to[0] * value + from[0] */
static void mix_cpu(rondo_blocks blocks, void *const *args) {
  uint32_t *to = *(uint32_t *const *)args[1];
  (void)blocks;
  *to = *to * *(const uint32_t *)args[0] + **(const uint32_t *const *)args[2];
}

static const rondo_kernel_options mix = {RONDO_KERNEL_OPTIONS_INIT, .name = "mix", .cpu = mix_cpu,
                                         .params = {RONDO_SCALAR(uint32_t), RONDO_UPDATES, RONDO_READS}};

/* The model ------------------------------------------------------------------------------------------------------- */

static reference *reference_at(fuzz_run *run, int index) {
  model_node *node = &run->nodes[index / 2];
  return index % 2 == 0 ? &node->to : &node->from;
}

static bool has_reference(const fuzz_run *run, int index) {
  return index / 2 < run->count && (index % 2 == 0 || run->nodes[index / 2].kind != RONDO_NODE_FILL);
}

static void run_model(fuzz_run *run, bool all_enabled) {
  for (int i = 0; i < run->count; i++) {
    const model_node *node = &run->nodes[i];
    uint32_t *to = &run->words[node->to.place][node->to.word];
    if (!node->enabled && !all_enabled) continue;
    if (node->kind == RONDO_NODE_KERNEL) *to = *to * node->value + run->words[node->from.place][node->from.word];
    if (node->kind == RONDO_NODE_COPY) *to = run->words[node->from.place][node->from.word];
    if (node->kind == RONDO_NODE_FILL) *to = node->value;
  }
}

/* Asserts that all references of the set have the addresses of its slots, or those of `places` that are not negative.
 * */
static bool is_true(fuzz_run *run, const model_set *set, const int *places) {
  for (int i = 0; i < REFERENCES; i++) {
    const int slot = has_reference(run, i) ? set->slot_of[i] : NO_SLOT;
    if (slot == NO_SLOT) continue;
    const int place = places != NULL && places[slot] >= 0 ? places[slot] : set->held[slot];
    if (reference_at(run, i)->place != place) return false;
  }
  return true;
}

/* Sites move with their slots. A copy onto itself cannot result, since source and destination are different words. */
static void move_slots(fuzz_run *run, model_set *set, const int *places) {
  for (int i = 0; i < REFERENCES; i++) {
    const int slot = has_reference(run, i) ? set->slot_of[i] : NO_SLOT;
    if (slot != NO_SLOT && places[slot] >= 0) reference_at(run, i)->place = places[slot];
  }
  for (int slot = 0; slot < SLOTS; slot++)
    if (places[slot] >= 0) set->held[slot] = places[slot];
}

static void compare_words(const fuzz_run *run) {
  REQUIRE(rondo_stream_synchronize(run->stream) == RONDO_OK);
  for (int i = 0; i < PLACES; i++) REQUIRE(memcmp(run->places[i], run->words[i], sizeof run->words[i]) == 0);
}

/* Nodes ----------------------------------------------------------------------------------------------------------- */

/* `from` has odd words and `to` even ones. */
static model_node take_node(fuzz_run *run) {
  static const rondo_node_kind kinds[] = {RONDO_NODE_KERNEL, RONDO_NODE_COPY, RONDO_NODE_FILL};
  const uint8_t choice = take(run), to = take(run), from = take(run);
  return (model_node){.kind = kinds[choice % 3],
                      .to = {to % PLACES, 2u * (to / PLACES % (WORDS / 2u))},
                      .from = {from % PLACES, 2u * (from / PLACES % (WORDS / 2u)) + 1},
                      .value = 1 + choice / 3,
                      .enabled = true};
}

/* A node's parameters, and the data that they point to. */
typedef struct node_params {
  uint32_t value;
  uint32_t *to, *from;
  const void *args[3];
  rondo_node_params params;
} node_params;

static const rondo_node_params *params_of(const fuzz_run *run, const model_node *node, node_params *out) {
  *out = (node_params){.value = node->value, .to = address_of(run, node->to), .from = address_of(run, node->from)};
  out->args[0] = &out->value;
  out->args[1] = &out->to;
  out->args[2] = &out->from;
  out->params = (rondo_node_params){.kind = node->kind};
  if (node->kind == RONDO_NODE_KERNEL)
    out->params.as.kernel =
        (rondo_kernel_node){.kernel = run->kernel, .grid = {1, 1, 1}, .args = out->args, .arg_count = 3};
  if (node->kind == RONDO_NODE_COPY) out->params.as.copy = (rondo_copy){.dst = out->to, .src = out->from, .width = 4};
  if (node->kind == RONDO_NODE_FILL)
    out->params.as.fill = (rondo_fill){.dst = out->to, .value = node->value, .element_bytes = 4, .width = 1};
  return &out->params;
}

static void add_node(const fuzz_run *run, rondo_graph *graph, model_node *node, rondo_node *last) {
  node_params params;
  (void)params_of(run, node, &params);
  REQUIRE(rondo_graph_add(graph, last, last->id != 0, &params.params, &node->tag) == RONDO_OK);
  *last = node->tag;
}

/* The last `inside` nodes are a child's. */
static void make_graph(fuzz_run *run, int inside) {
  rondo_node last = {0}, last_inside = {0};
  rondo_graph *child = NULL;
  REQUIRE(rondo_graph_create(run->device, NULL, &run->graph) == RONDO_OK);
  for (int i = 0; i < run->count - inside; i++) add_node(run, run->graph, &run->nodes[i], &last);
  if (inside == 0) return;
  REQUIRE(rondo_graph_create(run->device, NULL, &child) == RONDO_OK);
  for (int i = run->count - inside; i < run->count; i++) add_node(run, child, &run->nodes[i], &last_inside);
  REQUIRE(rondo_graph_add_child(run->graph, &last, last.id != 0, child, &last) == RONDO_OK);
  rondo_node_params params;
  REQUIRE(rondo_graph_get_params(run->graph, last, &params) == RONDO_OK);
  for (int i = run->count - inside; i < run->count; i++)
    REQUIRE(rondo_graph_find_in_clone(params.as.child, run->nodes[i].tag, &run->nodes[i].tag) == RONDO_OK);
  REQUIRE(rondo_graph_destroy(child) == RONDO_OK);
}

/* Calls ----------------------------------------------------------------------------------------------------------- */

static void take_places(fuzz_run *run, int places[SLOTS], const void *addresses[SLOTS]) {
  for (int i = 0; i < SLOTS; i++) {
    places[i] = take(run) % (PLACES + 1) - 1;
    addresses[i] = places[i] < 0 ? NULL : run->places[places[i]];
  }
}

static model_set *some_set(fuzz_run *run) { return &run->sets[take(run) % SETS]; }

static void require_stale(rondo_status status) {
  REQUIRE(status == RONDO_INVALID_STATE && rondo_last_error()->reason == RONDO_REASON_STALE_PATCHES);
}

static void call_launch(fuzz_run *run) {
  model_set *set = some_set(run);
  int places[SLOTS];
  const void *addresses[SLOTS];
  take_places(run, places, addresses);
  if (set->set == NULL) return;
  const rondo_status status = rondo_patch_set_launch(set->set, run->stream, addresses);
  if (set != run->current || !is_true(run, set, NULL)) {
    require_stale(status);
    return;
  }
  REQUIRE(status == RONDO_OK);
  move_slots(run, set, places);
  run_model(run, false);
}

static void call_plain_launch(fuzz_run *run) {
  REQUIRE(rondo_exec_launch(run->exec, run->stream) == RONDO_OK);
  run_model(run, false);
}

static void call_set_params(fuzz_run *run) {
  model_node *node = &run->nodes[take(run) % run->count];
  const uint8_t choice = take(run);
  node_params params;
  node->value = choice;
  if (choice % 4 == 0) node->to.place = choice / 4 % PLACES;
  if (choice % 4 == 1) node->from.place = choice / 4 % PLACES;
  REQUIRE(rondo_exec_set_params(run->exec, node->tag, params_of(run, node, &params)) == RONDO_OK);
}

/* Back to the graph that the exec was instantiated from. */
static void call_update(fuzz_run *run) {
  REQUIRE(rondo_exec_update(run->exec, run->graph, NULL) == RONDO_OK);
  for (int i = 0; i < run->count; i++) {
    const bool enabled = run->nodes[i].enabled;
    run->nodes[i] = run->recorded[i];
    run->nodes[i].enabled = enabled;
  }
}

static void call_rebase(fuzz_run *run) {
  model_set *set = some_set(run);
  int places[SLOTS];
  const void *addresses[SLOTS];
  take_places(run, places, addresses);
  const bool guesses = take(run) % 2 == 0;
  for (int i = 0; i < REFERENCES && set->set != NULL && !guesses; i++) {
    const int slot = has_reference(run, i) ? set->slot_of[i] : NO_SLOT;
    if (slot == NO_SLOT) continue;
    places[slot] = reference_at(run, i)->place;
    addresses[slot] = run->places[places[slot]];
  }
  if (set->set == NULL) return;
  const rondo_status status = rondo_patch_set_rebase(set->set, addresses);
  if (!is_true(run, set, places)) {
    require_stale(status);
    return;
  }
  REQUIRE(status == RONDO_OK);
  for (int i = 0; i < SLOTS; i++)
    if (places[i] >= 0) set->held[i] = places[i];
  run->current = set;
}

static void drop_set(fuzz_run *run, model_set *set) {
  rondo_patch_set_destroy(set->set);
  set->set = NULL;
  if (run->current == set) run->current = NULL;
}

static bool has_twice(const int places[SLOTS]) {
  return places[0] == places[1] || places[0] == places[2] || places[1] == places[2];
}

static void call_make_set(fuzz_run *run) {
  model_set *set = some_set(run);
  rondo_patch_input inputs[SLOTS];
  int places[SLOTS];
  if (set->set != NULL) drop_set(run, set);
  for (int i = 0; i < SLOTS; i++) {
    places[i] = take(run) % PLACES;
    inputs[i] = (rondo_patch_input){.address = run->places[places[i]], .bytes = WORDS * sizeof(uint32_t)};
  }
  const rondo_status status = rondo_patch_set_create(run->exec, inputs, SLOTS, NULL, &set->set);
  if (has_twice(places)) {
    REQUIRE(status == RONDO_INVALID_ARGUMENT && set->set == NULL);
    return;
  }
  REQUIRE(status == RONDO_OK);
  memcpy(set->held, places, sizeof places);
  for (int i = 0; i < REFERENCES; i++) {
    set->slot_of[i] = NO_SLOT;
    for (int slot = 0; slot < SLOTS && has_reference(run, i); slot++)
      if (reference_at(run, i)->place == places[slot]) set->slot_of[i] = slot;
  }
  run->current = set;
}

static void call_switch(fuzz_run *run) {
  model_node *node = &run->nodes[take(run) % run->count];
  node->enabled = !node->enabled;
  REQUIRE(rondo_exec_set_enabled(run->exec, node->tag, node->enabled) == RONDO_OK);
}

static bool all_are_enabled(const fuzz_run *run) {
  for (int i = 0; i < run->count; i++)
    if (!run->nodes[i].enabled) return false;
  return true;
}

/* The captured launch runs from the graph; the exec is unchanged. */
static void call_capture(fuzz_run *run) {
  model_set *set = run->current;
  rondo_graph *graph = NULL;
  rondo_exec *exec = NULL;
  int places[SLOTS];
  const void *addresses[SLOTS];
  take_places(run, places, addresses);
  if (set == NULL || !all_are_enabled(run) || !is_true(run, set, NULL)) return;
  REQUIRE(rondo_capture_begin(run->stream, RONDO_CAPTURE_RELAXED) == RONDO_OK);
  REQUIRE(rondo_patch_set_launch(set->set, run->stream, addresses) == RONDO_OK);
  REQUIRE(rondo_capture_end(run->stream, &graph) == RONDO_OK);
  REQUIRE(rondo_instantiate(graph, NULL, &exec) == RONDO_OK);
  REQUIRE(rondo_exec_launch(exec, run->stream) == RONDO_OK);
  model_node kept[NODES];
  const model_set kept_set = *set;
  memcpy(kept, run->nodes, sizeof kept);
  move_slots(run, set, places);
  run_model(run, true);
  memcpy(run->nodes, kept, sizeof kept);
  *set = kept_set;
  rondo_exec_destroy(exec);
  REQUIRE(rondo_graph_destroy(graph) == RONDO_OK);
}

static void call(fuzz_run *run) {
  switch (take(run) % 16) {
    case 0:
      call_plain_launch(run);
      break;
    case 1:
      call_set_params(run);
      break;
    case 2:
      call_update(run);
      break;
    case 3:
    case 4:
      call_rebase(run);
      break;
    case 5:
      call_make_set(run);
      break;
    case 6:
      drop_set(run, some_set(run));
      break;
    case 7:
      call_switch(run);
      break;
    case 8:
      call_capture(run);
      break;
    case 9:
      compare_words(run);
      break;
    default:
      call_launch(run);
  }
}

/* Together -------------------------------------------------------------------------------------------------------- */

static void open_all(fuzz_run *run) {
  const bool checks = take(run) % 4 == 3;
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 2};
  REQUIRE(rondo_device_open(checks ? "cpu:check" : "cpu", &options, &run->device) == RONDO_OK);
  REQUIRE(rondo_stream_create(run->device, NULL, &run->stream) == RONDO_OK);
  REQUIRE(rondo_kernel_create(run->device, &mix, &run->kernel) == RONDO_OK);
  for (uint32_t i = 0; i < PLACES; i++) {
    REQUIRE(rondo_malloc(run->device, sizeof run->words[i], NULL, (void **)&run->places[i]) == RONDO_OK);
    for (uint32_t k = 0; k < WORDS; k++) run->places[i][k] = run->words[i][k] = 1000 * i + k;
  }
  run->count = 1 + take(run) % NODES;
  for (int i = 0; i < run->count; i++) run->nodes[i] = take_node(run);
  make_graph(run, take(run) % (run->count + 1));
  memcpy(run->recorded, run->nodes, sizeof run->recorded);
  REQUIRE(rondo_instantiate(run->graph, NULL, &run->exec) == RONDO_OK);
}

static void close_all(fuzz_run *run) {
  const bool exec_first = take(run) % 2 == 0;
  if (exec_first) rondo_exec_destroy(run->exec);
  for (int i = 0; i < SETS; i++) rondo_patch_set_destroy(run->sets[i].set);
  if (!exec_first) rondo_exec_destroy(run->exec);
  REQUIRE(rondo_graph_destroy(run->graph) == RONDO_OK);
  for (int i = 0; i < PLACES; i++) REQUIRE(rondo_free(run->device, run->places[i]) == RONDO_OK);
  rondo_kernel_destroy(run->kernel);
  REQUIRE(rondo_stream_destroy(run->stream) == RONDO_OK);
  REQUIRE(rondo_device_close(run->device) == RONDO_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_run run = {.data = data, .left = size};
  open_all(&run);
  call_make_set(&run);
  for (int i = 0; i < MAX_CALLS && run.left > 0; i++) call(&run);
  compare_words(&run);
  close_all(&run);
  return 0;
}

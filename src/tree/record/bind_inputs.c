/* SPDX-License-Identifier: MIT
 * Turns a captured graph into an exec whose moving inputs can get new addresses at each launch. If all nodes that use
 * an input are known, from declarations or from find_inputs.c, the address is patched in these nodes. Otherwise a node
 * at the start of the graph copies the input into its slot, and the source of this node is patched. This node is a copy
 * node or, on devices that have one, a kernel for several inputs. Another node at the end of the graph copies mutated
 * inputs back. If the graph cannot get such nodes, or if they cost more, copies are enqueued around the launch.
 *
 * Invariant: the binding of an input is chosen once for each recording, here. replay.c deviates from it only for single
 * calls.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "exec/cost/device_costs.h"
#include "tree/call_inputs.h"
#include "tree/record/bind_inputs.h"
#include "tree/record/find_inputs.h"
#include "tree/record/record_call.h"
#include "tree/record/shared_execs.h"
#include "tree/recorded_calls.h"
#include "tree/replay.h"

/* What is known about an input, and its binding. */
typedef struct rondo_binding_choice {
  rondo_patch_input_info info;
  size_t bytes;     /* to copy; a mutated input is copied back as well */
  bool is_in_graph; /* if it is copied, a node of the graph copies it */
  bool is_patched;
} rondo_binding_choice;

static double patch_cost(const rondo_costs *costs, const rondo_binding_choice *choice) {
  return costs->input_patched_node * choice->info.nodes;
}

static double copy_cost(const rondo_costs *costs, const rondo_binding_choice *choice) {
  const double each = choice->is_in_graph ? costs->input_copied_each : costs->input_queued_each;
  return each + costs->input_copied_kib * (double)choice->bytes / 1024;
}

static double cost_of_all(const rondo_costs *costs, const rondo_binding_choice *choices, size_t count) {
  bool has_patches = false, has_copies = false;
  double sum = 0;
  for (size_t i = 0; i < count; i++) {
    const rondo_binding_choice *choice = &choices[i];
    has_patches = has_patches || (choice->is_patched && choice->info.nodes > 0);
    has_copies = has_copies || (!choice->is_patched && choice->is_in_graph);
    sum += choice->is_patched ? patch_cost(costs, choice) : copy_cost(costs, choice);
  }
  return sum + (has_patches ? costs->input_patched : 0) + (has_copies ? costs->input_copied : 0);
}

/* RONDO_BINDING_AUTOMATIC binds each input in the cheaper way. */
static void bind_each(const rondo_costs *costs, rondo_binding_choice *choices, size_t count, rondo_binding policy) {
  for (size_t i = 0; i < count; i++) {
    rondo_binding_choice *choice = &choices[i];
    const bool pays = policy == RONDO_BINDING_PATCH ||
                      (policy == RONDO_BINDING_AUTOMATIC && patch_cost(costs, choice) <= copy_cost(costs, choice));
    choice->is_patched = choice->info.is_patchable && pays;
  }
}

/* Chooses the cheapest of three: all patched, all copied, or each input by itself. No other choice can cost less,
 * because the fixed cost of each mechanism is paid once. */
static void choose(rondo_device *device, rondo_binding_choice *choices, size_t count) {
  static const rondo_binding policies[] = {RONDO_BINDING_PATCH, RONDO_BINDING_AUTOMATIC, RONDO_BINDING_COPY};
  double least = INFINITY;
  rondo_binding best = RONDO_BINDING_PATCH;
  rondo_costs costs;
  rondo_costs_known(device, &costs);
  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
    bind_each(&costs, choices, count, policies[i]);
    const double sum = cost_of_all(&costs, choices, count);
    if (sum >= least) continue;
    least = sum;
    best = policies[i];
  }
  bind_each(&costs, choices, count, best);
}

/* Acquires an exec of the graph, new or shared. During a trial, nothing is evicted for it. */
static rondo_status acquire_exec(rondo_recorder *recorder, rondo_graph *graph, bool is_trial, rondo_segment *segment) {
  bool is_made;
  const rondo_status status = rondo_tree_exec_acquire(recorder->function, graph, is_trial, segment, &is_made);
  if (status == RONDO_OK && is_made)
    for (int i = 0; i < 2; i++) recorder->made->exec_bytes[i] += segment->tree_exec->bytes[i];
  if (status == RONDO_OK || status == RONDO_DEVICE_LOST) return status;
  const rondo_skip skip = rondo_skip_of_error();
  return rondo_recorder_abandon_for_error(recorder, skip, skip != RONDO_SKIP_MEMORY_LIMIT);
}

static const char *input_label(char buffer[64], const rondo_recorder *recorder, uint32_t input) {
  (void)snprintf(buffer, 64, "input %" PRIu32 " of '%.40s'", input, recorder->function->origin->name);
  return buffer;
}

/* By bound input: its description for the patch set, and whether a kernel of the graph copies it. */
typedef struct rondo_input_lists {
  rondo_patch_input *inputs;
  bool *is_kernel_copied;
} rondo_input_lists;

static rondo_status create_patches(const rondo_recorder *recorder, rondo_exec *exec, const rondo_input_lists *lists,
                                   rondo_patch_set **out) {
  const rondo_recorded_call *made = recorder->made;
  for (size_t i = 0; i < made->bound_count; i++) {
    lists->inputs[i] = (rondo_patch_input){.address = made->bound[i].recorded,
                                           .bytes = made->bound[i].bytes,
                                           .moved = recorder->moved == NULL ? NULL : recorder->elsewhere[i]};
    lists->is_kernel_copied[i] = recorder->tree->has_copy_kernel && made->bound[i].method == RONDO_BOUND_COPIED;
  }
  const rondo_patch_options options = {RONDO_PATCH_OPTIONS_INIT, .moved = recorder->moved, .again = recorder->again};
  return rondo_patch_create("rondo_function_call", exec, lists->inputs, made->bound_count, lists->is_kernel_copied,
                            &options, out);
}

static rondo_status find_patches(rondo_recorder *recorder, rondo_exec *exec, const rondo_input_lists *lists,
                                 rondo_patch_set **out) {
  const rondo_status status = create_patches(recorder, exec, lists, out);
  if (status != RONDO_UPDATE_REFUSED || recorder->moved == NULL) return status;
  rondo_log(RONDO_LOG_WARNING, "tree",
            "only declared addresses of the inputs of '%s' are patched, because its body does not always do the same "
            "work: %s",
            recorder->function->origin->name, rondo_last_error()->message);
  rondo_recorder_find_free(recorder);
  return create_patches(recorder, exec, lists, out);
}

/* Finds the uses of the inputs by the addresses that the exec has now. */
static rondo_status make_patches(rondo_recorder *recorder, rondo_exec *exec, rondo_patch_set **out) {
  const rondo_allocator *allocator = &recorder->tree->allocator;
  const size_t count = recorder->made->bound_count;
  rondo_input_lists lists = {0};
  rondo_status status = rondo_allocate_items(allocator, count, sizeof *lists.inputs, &lists.inputs);
  if (status == RONDO_OK)
    status = rondo_allocate_items(allocator, count, sizeof *lists.is_kernel_copied, &lists.is_kernel_copied);
  if (status == RONDO_OK) status = find_patches(recorder, exec, &lists, out);
  rondo_release(allocator, lists.inputs, count, sizeof *lists.inputs);
  rondo_release(allocator, lists.is_kernel_copied, count, sizeof *lists.is_kernel_copied);
  return status;
}

/* Choosing --------------------------------------------------------------------------------------------------------- */

static rondo_status refuse_written(rondo_recorder *recorder, const rondo_bound_input *bound) {
  char label[64];
  recorder->form->written_input = bound->input;
  return rondo_recorder_abandon(recorder, RONDO_SKIP_MUTATED_INPUT, true,
                                "it writes to %s, whose address moves: declare it RONDO_INPUT_MUTATED, so that the "
                                "caller sees the result, or make "
                                "it a static input or an output of the tree",
                                input_label(label, recorder, bound->input));
}

/* False if another input shares bytes with this one, because addresses then do not distinguish the two. False also for
 * an output of the ended path, because the recording does not keep its memory. */
static bool can_be_source(const rondo_recorder *recorder, size_t index) {
  const rondo_bound_input *bound = recorder->made->bound;
  const char *begin = recorder->given[bound[index].input].address;
  for (size_t i = 0; i < recorder->made->bound_count; i++) {
    const char *other = recorder->given[bound[i].input].address;
    if (i != index && begin < other + bound[i].bytes && other < begin + bound[index].bytes) return false;
  }
  return !recorder->given[bound[index].input].is_of_ending;
}

/* Whether other work also uses the address, for a static input or for memory that the body knows. */
static rondo_status is_used(const rondo_recorder *recorder, rondo_exec *exec, size_t index, bool *out) {
  const rondo_bound_input *bound = &recorder->made->bound[index];
  rondo_patch_use look;
  RONDO_TRY(
      rondo_patch_find_use("rondo_function_call", exec, recorder->given[bound->input].address, bound->bytes, &look));
  *out = look.is_used;
  return RONDO_OK;
}

/* Whether a copy node in the graph can have the input's address as its source, and be found by that address. */
static rondo_status is_source(const rondo_recorder *recorder, rondo_exec *exec, size_t index, bool *out) {
  bool has_others = true;
  *out = false;
  if (!can_be_source(recorder, index)) return RONDO_OK;
  RONDO_TRY(is_used(recorder, exec, index, &has_others));
  *out = !has_others;
  return RONDO_OK;
}

/* Reads how the exec uses an input. Refuses the recording if the exec writes an input that is not declared mutated. */
static rondo_status inspect_input(rondo_recorder *recorder, const rondo_patch_set *patches, size_t index,
                                  rondo_patch_input_info *out) {
  const rondo_bound_input *bound = &recorder->made->bound[index];
  *out = (rondo_patch_input_info){.struct_size = sizeof *out};
  RONDO_TRY(rondo_patch_set_get_input(patches, (uint32_t)index, out));
  return out->is_written && !bound->is_mutated ? refuse_written(recorder, bound) : RONDO_OK;
}

/* Up to so many bytes, a copy kernel in the graph is better than enqueuing copies. Setting its sources takes the host
 * 0.3 us for all inputs together; enqueuing takes 4 us for each copy. For more bytes, both take the same time
 * (bench/results/2026-11-22-h200-copies.md), unless the kernel has to copy byte by byte. */
enum { MAX_BYTES_BY_KERNEL = 64 << 20, MAX_BYTES_ONE_BY_ONE = 4 << 20, PIECE = 16 };

static size_t max_bytes_by_kernel(const void *from, const void *to) {
  return ((uintptr_t)from - (uintptr_t)to) % PIECE == 0 ? MAX_BYTES_BY_KERNEL : MAX_BYTES_ONE_BY_ONE;
}

/* Whether copying in a node of the graph is possible, and better than enqueuing a copy before the launch. Without a
 * copy kernel it is not on a GPU, whose driver takes 6 us to change the source of a copy node. */
static rondo_status is_copied_in_graph(const rondo_recorder *recorder, rondo_exec *exec, size_t index, bool *out) {
  const rondo_bound_input *bound = &recorder->made->bound[index];
  const rondo_tree *tree = recorder->tree;
  const rondo_resolved_input *given = &recorder->given[bound->input];
  *out = false;
  if (tree->has_copy_kernel) {
    *out = bound->bytes <= max_bytes_by_kernel(given->address, bound->slot) &&
           rondo_input_can_be_copied(tree, given->address, given->bytes);
    return RONDO_OK;
  }
  return tree->device->ops->call_library == NULL ? is_source(recorder, exec, index, out) : RONDO_OK;
}

static rondo_status inspect_inputs(rondo_recorder *recorder, rondo_exec *exec, const rondo_patch_set *patches,
                                   rondo_binding_choice *choices) {
  for (size_t i = 0; i < recorder->made->bound_count; i++) {
    const rondo_bound_input *bound = &recorder->made->bound[i];
    choices[i].bytes = bound->bytes << bound->is_mutated;
    RONDO_TRY(inspect_input(recorder, patches, i, &choices[i].info));
    RONDO_TRY(is_copied_in_graph(recorder, exec, i, &choices[i].is_in_graph));
  }
  return RONDO_OK;
}

static void bind_as_chosen(rondo_recorder *recorder, const rondo_binding_choice *choices) {
  for (size_t i = 0; i < recorder->made->bound_count; i++) {
    const rondo_binding_choice *choice = &choices[i];
    rondo_bound_input *bound = &recorder->made->bound[i];
    const rondo_bound_method copied = choice->is_in_graph ? RONDO_BOUND_COPIED : RONDO_BOUND_COPIED_BEFORE;
    bound->method = choice->is_patched ? RONDO_BOUND_PATCHED : copied;
    bound->sites = choice->is_patched ? choice->info.sites : 1U + bound->is_mutated;
  }
}

/* Chooses the binding of each input with the patch set of the first exec. */
static rondo_status decide(rondo_recorder *recorder, rondo_exec *exec, rondo_patch_set *patches) {
  const rondo_allocator *allocator = &recorder->tree->allocator;
  const rondo_binding policy = recorder->function->options.binding;
  const size_t count = recorder->made->bound_count;
  rondo_binding_choice *choices;
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *choices, &choices));
  const rondo_status status = inspect_inputs(recorder, exec, patches, choices);
  if (status == RONDO_OK) {
    if (policy == RONDO_BINDING_AUTOMATIC)
      choose(recorder->tree->device, choices, count);
    else
      bind_each(NULL, choices, count, policy);
    bind_as_chosen(recorder, choices);
  }
  rondo_release(allocator, choices, count, sizeof *choices);
  RONDO_TRY(status);
  /* The addresses are NULL: the exec keeps its current ones. */
  return rondo_patch_set_rebase(patches, recorder->made->addresses);
}

/* Copies in the graph ---------------------------------------------------------------------------------------------- */

/* The nodes without predecessors, or for `is_end` without successors. */
typedef struct rondo_graph_border {
  rondo_node *nodes;
  size_t count, capacity;
} rondo_graph_border;

static rondo_status keep_border(const rondo_graph *graph, bool is_end, rondo_graph_border *border) {
  border->count = 0;
  for (size_t i = 0; i < border->capacity; i++) {
    const rondo_node node = border->nodes[i];
    size_t neighbours = 0;
    RONDO_TRY(is_end ? rondo_graph_dependents(graph, node, NULL, &neighbours)
                     : rondo_graph_dependencies(graph, node, NULL, &neighbours));
    if (neighbours == 0) border->nodes[border->count++] = node;
  }
  return RONDO_OK;
}

static rondo_status find_border(const rondo_recorder *recorder, const rondo_graph *graph, bool is_end,
                                rondo_graph_border *border) {
  RONDO_TRY(rondo_graph_nodes(graph, NULL, &border->capacity));
  RONDO_TRY(rondo_allocate_items(&recorder->tree->allocator, border->capacity, sizeof(rondo_node), &border->nodes));
  RONDO_TRY(rondo_graph_nodes(graph, border->nodes, &border->capacity));
  return keep_border(graph, is_end, border);
}

static void free_border(const rondo_recorder *recorder, const rondo_graph_border *border) {
  rondo_release(&recorder->tree->allocator, border->nodes, border->capacity, sizeof(rondo_node));
}

/* Makes the node a predecessor of the whole graph. */
static rondo_status put_first(rondo_graph *graph, const rondo_graph_border *roots, rondo_node node) {
  for (size_t i = 0; i < roots->count; i++) RONDO_TRY(rondo_graph_add_edges(graph, &node, &roots->nodes[i], 1));
  return RONDO_OK;
}

/* Copies a moving input into its slot before all recorded work, or back after it. */
static rondo_status add_copy(const rondo_recorder *recorder, rondo_graph *graph, const rondo_graph_border *border,
                             const rondo_bound_input *bound, bool is_back) {
  char *source = recorder->given[bound->input].address;
  const rondo_copy copy = {
      .dst = is_back ? source : bound->slot, .src = is_back ? bound->slot : source, .width = bound->bytes};
  rondo_node node;
  RONDO_TRY(rondo_graph_add_copy(graph, border->nodes, is_back ? border->count : 0, &copy, &node));
  return is_back ? RONDO_OK : put_first(graph, border, node);
}

/* Adds one kernel. Each range is its own source until the source is patched. */
static rondo_status add_kernel(const rondo_recorder *recorder, rondo_graph *graph, const rondo_graph_border *border,
                               const rondo_range_copies *copies) {
  const rondo_device *device = recorder->tree->device;
  rondo_grid grid = {.x = 1, .y = copies->count, .z = 1};
  rondo_kernel *kernel = NULL;
  rondo_node node;
  for (uint32_t i = 0; i < copies->count; i++) {
    uint32_t blocks;
    kernel = device->ops->copy_kernel(device, copies->ranges[i].bytes, &blocks);
    if (blocks > grid.x) grid.x = blocks;
  }
  const size_t dependencies = copies->is_back ? border->count : 0;
  RONDO_TRY(rondo_graph_add_kernel(graph, border->nodes, dependencies, kernel, grid, RONDO_ARGS(copies), &node));
  return copies->is_back ? RONDO_OK : put_first(graph, border, node);
}

/* Fills the ranges of one kernel, from bound input `*index` on. Sets *index to the first input that did not fit. */
static void fill_ranges(const rondo_recorded_call *made, bool is_back, size_t *index, rondo_range_copies *out) {
  *out = (rondo_range_copies){.is_back = is_back};
  for (; *index < made->bound_count && out->count < RONDO_MOST_RANGES; (*index)++) {
    const rondo_bound_input *bound = &made->bound[*index];
    if (bound->method == RONDO_BOUND_COPIED && (!is_back || bound->is_mutated))
      out->ranges[out->count++] = (rondo_range_copy){.dst = bound->slot, .src = bound->slot, .bytes = bound->bytes};
  }
}

static rondo_status add_kernels(const rondo_recorder *recorder, rondo_graph *graph, const rondo_graph_border *border,
                                bool is_back) {
  rondo_range_copies copies;
  for (size_t i = 0; i < recorder->made->bound_count;) {
    fill_ranges(recorder->made, is_back, &i, &copies);
    if (copies.count > 0) RONDO_TRY(add_kernel(recorder, graph, border, &copies));
  }
  return RONDO_OK;
}

static rondo_status add_copy_nodes(const rondo_recorder *recorder, rondo_graph *graph, const rondo_graph_border *border,
                                   bool is_back) {
  for (size_t i = 0; i < recorder->made->bound_count; i++) {
    const rondo_bound_input *bound = &recorder->made->bound[i];
    if (bound->method == RONDO_BOUND_COPIED && (!is_back || bound->is_mutated))
      RONDO_TRY(add_copy(recorder, graph, border, bound, is_back));
  }
  return RONDO_OK;
}

static rondo_status add_one_way(const rondo_recorder *recorder, rondo_graph *graph, bool is_back) {
  rondo_graph_border border = {0};
  rondo_status status = find_border(recorder, graph, is_back, &border);
  if (status == RONDO_OK)
    status = recorder->tree->has_copy_kernel ? add_kernels(recorder, graph, &border, is_back)
                                             : add_copy_nodes(recorder, graph, &border, is_back);
  free_border(recorder, &border);
  return status;
}

static rondo_status add_copies(const rondo_recorder *recorder, rondo_graph *graph) {
  if (graph == NULL) return RONDO_OK;
  RONDO_TRY(add_one_way(recorder, graph, true));
  return add_one_way(recorder, graph, false);
}

/* Notes the addresses that the exec has for patched inputs. A copy kernel has the slots as its sources. */
static void note_recorded(rondo_recorder *recorder) {
  for (size_t i = 0; i < recorder->made->bound_count; i++) {
    rondo_bound_input *bound = &recorder->made->bound[i];
    const bool is_source = bound->method == RONDO_BOUND_COPIED && !recorder->tree->has_copy_kernel;
    bound->recorded = is_source ? recorder->given[bound->input].address : bound->slot;
  }
}

static bool has_copies(const rondo_recorded_call *made) {
  for (size_t i = 0; i < made->bound_count; i++)
    if (made->bound[i].method == RONDO_BOUND_COPIED) return true;
  return false;
}

static void copy_before(rondo_recorder *recorder) {
  for (size_t i = 0; i < recorder->made->bound_count; i++)
    if (recorder->made->bound[i].method == RONDO_BOUND_COPIED)
      recorder->made->bound[i].method = RONDO_BOUND_COPIED_BEFORE;
}

/* Binding ---------------------------------------------------------------------------------------------------------- */

/* Whether nodes can be added to the graph and to the graphs that it is compared with. */
static bool takes_nodes(const rondo_recorder *recorder, const rondo_graph *graph) {
  if (graph->is_bound) return false;
  if (recorder->moved == NULL) return true;
  return recorder->tree->has_copy_kernel && !recorder->moved->is_bound &&
         (recorder->again == NULL || !recorder->again->is_bound);
}

/* Checks that each input still has the uses that were found. If not, no input is patched, and all are copied into their
 * slots. */
static rondo_status confirm(rondo_recorder *recorder, const rondo_patch_set *patches) {
  rondo_recorded_call *made = recorder->made;
  bool is_as_decided = true;
  for (size_t i = 0; i < made->bound_count; i++) {
    rondo_patch_input_info info = {.struct_size = sizeof info};
    RONDO_TRY(rondo_patch_set_get_input(patches, (uint32_t)i, &info));
    if (made->bound[i].method != RONDO_BOUND_COPIED_BEFORE)
      is_as_decided = is_as_decided && info.is_patchable && info.sites == made->bound[i].sites;
  }
  if (is_as_decided) return RONDO_OK;
  for (size_t i = 0; i < made->bound_count; i++) made->bound[i].method = RONDO_BOUND_COPIED_BEFORE;
  rondo_log(RONDO_LOG_WARNING, "tree", "the inputs of '%s' are copied: copies in its graph changed their addresses",
            recorder->function->origin->name);
  return RONDO_OK;
}

static rondo_status bind_with_copies(rondo_recorder *recorder, rondo_graph *graph, rondo_segment *out) {
  RONDO_TRY(add_copies(recorder, graph));
  RONDO_TRY(add_copies(recorder, recorder->moved));
  RONDO_TRY(add_copies(recorder, recorder->again));
  rondo_segment_free(recorder->tree, out);
  recorder->made->exec_bytes[0] = recorder->made->exec_bytes[1] = 0;
  note_recorded(recorder);
  RONDO_TRY(acquire_exec(recorder, graph, false, out));
  RONDO_TRY(make_patches(recorder, out->exec, &out->patches));
  return confirm(recorder, out->patches);
}

static rondo_status bind_whole(rondo_recorder *recorder, rondo_graph *graph, rondo_segment *out) {
  note_recorded(recorder);
  RONDO_TRY(make_patches(recorder, out->exec, &out->patches));
  RONDO_TRY(decide(recorder, out->exec, out->patches));
  rondo_recorder_log_findings(recorder, out->patches);
  if (has_copies(recorder->made) && takes_nodes(recorder, graph)) return bind_with_copies(recorder, graph, out);
  copy_before(recorder);
  if (recorder->made->exec_bytes[0] + recorder->made->exec_bytes[1] > 0) rondo_tree_exec_keep(recorder->tree, out);
  return RONDO_OK;
}

/* One of several segments reads its inputs from their slots. */
static rondo_status bind_segment(rondo_recorder *recorder, rondo_exec *exec) {
  rondo_patch_set *patches;
  rondo_patch_input_info info;
  copy_before(recorder);
  note_recorded(recorder);
  RONDO_TRY(make_patches(recorder, exec, &patches));
  rondo_status status = RONDO_OK;
  for (size_t i = 0; status == RONDO_OK && i < recorder->made->bound_count; i++)
    status = inspect_input(recorder, patches, i, &info);
  rondo_patch_set_destroy(patches);
  return status;
}

/* The code of a region has the caller's addresses at hand. A recording with one would read the same memory forever. */
static rondo_status refuse_own_address(rondo_recorder *recorder, rondo_exec *exec, uint32_t index) {
  const rondo_resolved_input *input = &recorder->given[index];
  rondo_patch_use look;
  RONDO_TRY(rondo_patch_find_use("rondo_region_end", exec, input->address, input->bytes, &look));
  if (!look.is_used) return RONDO_OK;
  return rondo_recorder_abandon(recorder, RONDO_SKIP_OTHER_WORK, true,
                                look.is_unknown
                                    ? "it has work of a library that may use moving input %" PRIu32
                                      " at the address that the caller passed, which would be frozen: do that work in "
                                      "a host step (rondo_call_host_step), or declare the input RONDO_INPUT_STATIC"
                                    : "its code uses moving input %" PRIu32
                                      " at the address that the caller passed, which would be frozen: use the address "
                                      "of rondo_call_input, or declare it RONDO_INPUT_STATIC",
                                index);
}

static bool has_frozen_inputs(const rondo_recorder *recorder) {
  return recorder->function->region != NULL && !recorder->function->always_captures;
}

static rondo_status refuse_own_addresses(rondo_recorder *recorder, rondo_exec *exec) {
  for (size_t i = 0; has_frozen_inputs(recorder) && i < recorder->made->bound_count; i++)
    RONDO_TRY(refuse_own_address(recorder, exec, recorder->made->bound[i].input));
  return RONDO_OK;
}

rondo_status rondo_recorder_refuse_own_user(rondo_recorder *recorder, const void *user) {
  for (size_t i = 0; has_frozen_inputs(recorder) && i < recorder->made->bound_count; i++) {
    const rondo_bound_input *bound = &recorder->made->bound[i];
    if ((uintptr_t)user - (uintptr_t)recorder->given[bound->input].address < bound->bytes)
      return rondo_recorder_abandon(recorder, RONDO_SKIP_OTHER_WORK, true,
                                    "a host step gets moving input %" PRIu32
                                    " at the address that the caller passed, which would be frozen: let it read a copy "
                                    "in other memory, or declare the input RONDO_INPUT_STATIC",
                                    bound->input);
  }
  return RONDO_OK;
}

rondo_status rondo_recorder_bind(rondo_recorder *recorder, rondo_graph *graph, bool is_whole, rondo_segment *out) {
  const bool is_trial = is_whole && recorder->made->bound_count > 0;
  RONDO_TRY(acquire_exec(recorder, graph, is_trial, out));
  RONDO_TRY(refuse_own_addresses(recorder, out->exec));
  if (recorder->made->bound_count == 0) return RONDO_OK;
  return is_whole ? bind_whole(recorder, graph, out) : bind_segment(recorder, out->exec);
}

/* SPDX-License-Identifier: MIT
 * Deciding how eager runs are executed. The cost of a node is the least time of a few runs: on CUDA the host's time to
 * enqueue it, on a CPU device the time until it is done.
 */
#include "tensor/run/eager_run.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "device/device.h"
#include "tensor/run/run_nodes.h"

enum { COST_ROUNDS = 3, MIN_ROUNDS = 2, MAX_ROUNDS = 9 };
#define ROUNDS_END_NS UINT64_C(100000000)
#define MIN_GAIN 1.05

rondo_status rondo_executed_keep(rondo_compiled *compiled, const rondo_compile_options *given) {
  if ((unsigned)given->executor_policy > RONDO_EXECUTOR_ALWAYS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "rondo_compile: executor policy %u does not exist: use a RONDO_EXECUTOR_ name",
                      (unsigned)given->executor_policy);
  compiled->executed.policy = given->executor_policy;
  compiled->executed.executor = given->executor;
  if (given->executor == NULL || rondo_executor_device(given->executor) == compiled->device) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                    "rondo_compile: the executor was created for device '%s', and %s is compiled for '%s': both "
                    "must be of one rondo_device",
                    rondo_executor_device(given->executor)->name, compiled->label, compiled->device->name);
}

/* Costs ------------------------------------------------------------------------------------------------------------ */

static rondo_status time_node(rondo_compiled *compiled, const rondo_run_node *node, uint64_t *inout_ns) {
  const uint64_t begin = rondo_clock_ns();
  RONDO_TRY(rondo_run_node_enqueue(compiled, node, compiled->stream));
  if (rondo_executor_computes(compiled->executed.executor)) RONDO_TRY(rondo_stream_synchronize(compiled->stream));
  const uint64_t ns = rondo_clock_ns() - begin;
  if (ns < *inout_ns) *inout_ns = ns;
  return RONDO_OK;
}

static rondo_status time_nodes(rondo_compiled *compiled, uint64_t *ns) {
  const rondo_executed *executed = &compiled->executed;
  for (uint32_t i = 0; i < executed->count; i++) ns[i] = UINT64_MAX;
  for (int round = 0; round < COST_ROUNDS; round++) {
    for (uint32_t i = 0; i < executed->count; i++) RONDO_TRY(time_node(compiled, &executed->nodes[i], &ns[i]));
    RONDO_TRY(rondo_stream_synchronize(compiled->stream));
  }
  return RONDO_OK;
}

/* Copies are never expensive: their work is the device's. */
static rondo_status find_expensive(rondo_compiled *compiled, bool *is_expensive) {
  const rondo_executed *executed = &compiled->executed;
  const uint64_t least = rondo_executor_expensive_ns(executed->executor);
  uint64_t *ns;
  RONDO_TRY(rondo_allocate_items(&compiled->allocator, executed->count, sizeof *ns, &ns));
  const rondo_status status = time_nodes(compiled, ns);
  compiled->info.expensive = 0;
  for (uint32_t i = 0; status == RONDO_OK && i < executed->count; i++) {
    is_expensive[i] = executed->nodes[i].kind == RONDO_RUN_STEPS && ns[i] >= least;
    compiled->info.expensive += is_expensive[i];
  }
  rondo_release(&compiled->allocator, ns, executed->count, sizeof *ns);
  return status;
}

/* Plans ------------------------------------------------------------------------------------------------------------ */

/* rondo_executor_run_node; user: the compiled program. */
static rondo_status enqueue_node(void *user, uint32_t node, rondo_stream *stream) {
  rondo_compiled *compiled = user;
  return rondo_run_node_enqueue(compiled, &compiled->executed.nodes[node], stream);
}

static rondo_purpose purpose_of(const rondo_compiled *compiled, const rondo_run_node *node) {
  switch (node->kind) {
    case RONDO_RUN_INPUT:
      if (compiled->feeds.inputs.items[node->first].staging == RONDO_STAGING_DEVICE)
        return RONDO_PURPOSE_DEVICE_TO_DEVICE;
      return RONDO_PURPOSE_HOST_TO_DEVICE;
    case RONDO_RUN_TAKEN:
      return purpose_of(compiled, node - 1); /* the last input */
    case RONDO_RUN_OUTPUT:
      return RONDO_PURPOSE_DEVICE_TO_HOST;
    case RONDO_RUN_STEPS:
      break;
  }
  return RONDO_PURPOSE_COMPUTE;
}

static rondo_status make_plan(rondo_compiled *compiled, const rondo_edges *before, rondo_purpose *purposes,
                              bool *is_expensive) {
  rondo_executed *executed = &compiled->executed;
  for (uint32_t i = 0; i < executed->count; i++) purposes[i] = purpose_of(compiled, &executed->nodes[i]);
  RONDO_TRY(find_expensive(compiled, is_expensive));
  const rondo_executor_work work = {.count = executed->count,
                                    .before_start = before->start,
                                    .before = before->items,
                                    .purposes = purposes,
                                    .is_expensive = is_expensive,
                                    .run_node = enqueue_node};
  return rondo_executor_plan_create(executed->executor, &work, &executed->plan);
}

static rondo_status plan(rondo_compiled *compiled, const rondo_edges *before) {
  const rondo_allocator *allocator = &compiled->allocator;
  const size_t count = compiled->executed.count;
  rondo_purpose *purposes = NULL;
  bool *is_expensive = NULL;
  rondo_status status = rondo_allocate_items(allocator, count, sizeof *purposes, &purposes);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, count, sizeof *is_expensive, &is_expensive);
  if (status == RONDO_OK) status = make_plan(compiled, before, purposes, is_expensive);
  rondo_release(allocator, purposes, count, sizeof *purposes);
  rondo_release(allocator, is_expensive, count, sizeof *is_expensive);
  return status;
}

/* Deciding --------------------------------------------------------------------------------------------------------- */

static rondo_status time_run(rondo_compiled *compiled, bool by_executor, bool *inout_ran, double *inout_us) {
  bool has_run = true;
  const uint64_t begin = rondo_clock_ns();
  RONDO_TRY(by_executor ? rondo_executor_run(compiled->executed.plan, compiled->stream, compiled, &has_run)
                        : rondo_compiled_enqueue(compiled));
  RONDO_TRY(rondo_stream_synchronize(compiled->stream));
  const double us = (double)(rondo_clock_ns() - begin) / 1e3;
  if (*inout_us == 0 || us < *inout_us) *inout_us = us;
  *inout_ran &= has_run;
  return RONDO_OK;
}

/* Measures the least time of sequential runs and of runs by the executor, in alternation; other load of the machine
 * only adds to it. *out_ran is false if another caller used the executor. */
static rondo_status compare(rondo_compiled *compiled, bool *out_ran) {
  rondo_compiled_info *info = &compiled->info;
  const uint64_t begin = rondo_clock_ns();
  *out_ran = true;
  for (int round = 0; round < MAX_ROUNDS && *out_ran; round++) {
    if (round >= MIN_ROUNDS && rondo_clock_ns() - begin > ROUNDS_END_NS) break;
    RONDO_TRY(time_run(compiled, false, out_ran, &info->sequential_us));
    RONDO_TRY(time_run(compiled, true, out_ran, &info->executor_us));
  }
  return rondo_executor_settle(compiled->executed.plan);
}

static rondo_sequential_reason decide(const rondo_compiled_info *info, bool has_run) {
  if (!has_run) return RONDO_SEQUENTIAL_BUSY;
  return info->sequential_us >= MIN_GAIN * info->executor_us ? RONDO_SEQUENTIAL_NONE : RONDO_SEQUENTIAL_FASTER;
}

static void drop_plan(rondo_compiled *compiled) {
  rondo_executed *executed = &compiled->executed;
  rondo_executor_plan_destroy(executed->plan);
  rondo_release(&compiled->allocator, executed->nodes, executed->count, sizeof *executed->nodes);
  executed->plan = NULL;
  executed->nodes = NULL;
  executed->count = 0;
}

static rondo_status choose(rondo_compiled *compiled) {
  rondo_compiled_info *info = &compiled->info;
  bool has_run;
  if (compiled->executed.policy == RONDO_EXECUTOR_ALWAYS) return RONDO_OK;
  RONDO_TRY(compare(compiled, &has_run));
  info->sequential_reason = decide(info, has_run);
  if (info->sequential_reason == RONDO_SEQUENTIAL_NONE) return RONDO_OK;
  rondo_log(RONDO_LOG_INFO, "tensor", "eager runs of %s are sequential: %.1f us, %.1f us by its executor",
            compiled->label, info->sequential_us, info->executor_us);
  drop_plan(compiled);
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

/* If each node depends on the one before it, and all are on one stream, an executor gains nothing. */
static bool is_sequential(const rondo_compiled *compiled, const rondo_run_nodes *nodes) {
  return compiled->feeds.inputs.count + compiled->feeds.outputs.count == 0 && rondo_edges_are_chain(&nodes->before);
}

static rondo_status make(rondo_compiled *compiled, rondo_run_nodes *nodes) {
  rondo_executed *executed = &compiled->executed;
  if (executed->policy == RONDO_EXECUTOR_AUTO && is_sequential(compiled, nodes)) {
    compiled->info.sequential_reason = RONDO_SEQUENTIAL_CHAIN;
    return RONDO_OK;
  }
  executed->nodes = nodes->items;
  executed->count = nodes->count;
  nodes->items = NULL;
  RONDO_TRY(plan(compiled, &nodes->before));
  return choose(compiled);
}

rondo_status rondo_executed_make(const rondo_program *program, const rondo_layout *layout, rondo_compiled *compiled) {
  rondo_run_nodes nodes;
  compiled->info.sequential_reason = RONDO_SEQUENTIAL_NO_EXECUTOR;
  if (compiled->executed.executor == NULL) return RONDO_OK;
  compiled->info.sequential_reason = RONDO_SEQUENTIAL_NONE;
  rondo_status status = rondo_run_nodes_make(program, layout, compiled, &nodes);
  if (status == RONDO_OK) status = make(compiled, &nodes);
  rondo_run_nodes_free(&compiled->allocator, &nodes);
  return status;
}

void rondo_executed_deinit(rondo_compiled *compiled) {
  drop_plan(compiled);
  compiled->executed.executor = NULL;
}

rondo_status rondo_executed_enqueue(rondo_compiled *compiled) {
  bool has_run = false;
  if (compiled->executed.plan != NULL)
    RONDO_TRY(rondo_executor_run(compiled->executed.plan, compiled->stream, compiled, &has_run));
  return has_run ? RONDO_OK : rondo_compiled_enqueue(compiled);
}

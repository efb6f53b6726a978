/* SPDX-License-Identifier: MIT
 * Compiling a program (FW-1): layout, memory, steps, warm-up, capture, instantiate, upload. After the
 * warm-up the memory is initialized again: before the first run, states are zeros, and cells and constants have their
 * initial numbers. Shared states are saved and restored (tensor/run/state_guard.h). A program on a CPU, or of kernels
 * that earlier ones have run, warms up its calls of libraries alone.
 *
 * Compiling runs in the thread mode RELAXED, so that it does not disturb captures of other threads. Only the capture
 * itself uses THREAD_LOCAL, in which calls that must not happen while capturing are refused (FW-2).
 */
#include <string.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "device/device.h"
#include "memory/new_memory.h"
#include "tensor/compile/compile.h"
#include "tensor/compile/compile_ranks.h"
#include "tensor/compile/emitter.h"
#include "tensor/compile/program_gain.h"
#include "tensor/compile/program_record.h"
#include "tensor/compile/rewrite/rewritten_program.h"
#include "tensor/program/operators.h"
#include "tensor/program/program.h"
#include "tensor/program/program_check.h"
#include "tensor/program/shape.h"
#include "tensor/run/state_guard.h"

typedef struct compiler {
  const char *call;
  const rondo_program *program; /* the caller's, or `rewritten` */
  rondo_program *rewritten;     /* with its patterns replaced; NULL: there are none */
  rondo_compiled *replaced;     /* the program that this one replaces; NULL: none */
  rondo_recompile_result result;
  rondo_staged_list staged;
  rondo_layout layout;
  rondo_compiled *compiled;
  bool is_plan;        /* only the layout is made */
  bool has_new_states; /* the memory of states is zero until the warm-up, */
  bool has_new_arena;  /* and so is the arena */
} compiler;

/* Memory ---------------------------------------------------------------------------------------------------------- */

static rondo_status allocate_block(const compiler *c, size_t bytes, const char *what, unsigned char **out) {
  void *address = NULL;
  *out = NULL;
  if (bytes == 0) return RONDO_OK;
  const rondo_status status = rondo_malloc(c->compiled->device, bytes, what, &address);
  RONDO_TRY(rondo_compiled_fail_memory(c->compiled, status, what, bytes));
  *out = address;
  return RONDO_OK;
}

static rondo_status take_arena(compiler *c, size_t bytes) {
  rondo_compiled *compiled = c->compiled;
  if (bytes == 0) return RONDO_OK;
  const rondo_status status = rondo_sharing_take_arena(compiled->sharing, bytes, &compiled->arena);
  RONDO_TRY(rondo_compiled_fail_memory(compiled, status, "arena", bytes));
  if (compiled->arena->users > 1) compiled->info.shared_bytes += bytes;
  c->has_new_arena =
      compiled->arena->users == 1 && rondo_memory_is_zero_at_first(compiled->device, compiled->arena->memory);
  return RONDO_OK;
}

/* Bytes of the inputs that are written to their slots. */
static size_t input_bytes(const compiler *c) {
  size_t bytes = 0;
  for (size_t i = 0; i < c->program->values.count; i++) {
    const rondo_program_value *value = &c->program->values.items[i];
    if (value->kind != RONDO_VALUE_INPUT) continue;
    if (rondo_staged_how(&c->staged, value->name) == RONDO_STAGING_SLOT) bytes += rondo_shape_bytes(&value->shape);
  }
  return bytes;
}

/* Host memory that the device can access: for writes of values, for staged values, and for wrong indices that kernels
 * find. */
static rondo_status allocate_host_memory(const compiler *c) {
  rondo_compiled *compiled = c->compiled;
  rondo_bounce *bounce = &compiled->bounce;
  rondo_index_checks *checks = &compiled->checks;
  const size_t cells = c->layout.check_count;
  rondo_status status = rondo_bounce_init(bounce, compiled->device, input_bytes(c));
  RONDO_TRY(rondo_compiled_fail_memory(compiled, status, "memory for writes", rondo_bounce_bytes(bounce)));
  RONDO_TRY(rondo_feeds_init(c->program, &c->layout, &c->staged, compiled));
  status = rondo_index_checks_init(checks, &compiled->allocator, compiled->device, cells);
  RONDO_TRY(rondo_compiled_fail_memory(compiled, status, "cells for wrong indices", cells * sizeof *checks->cells));
  compiled->info.staging_host_bytes = compiled->feeds.host_bytes;
  compiled->info.staging_device_bytes = compiled->feeds.memory_bytes;
  compiled->info.host_bytes = compiled->feeds.host_bytes + rondo_bounce_bytes(bounce) +
                              rondo_bounce_bytes(&compiled->feeds.bounce) + checks->capacity * sizeof *checks->cells;
  return RONDO_OK;
}

/* Gives packed states their memory. The rows of one that is shared stay after a failure. */
static rondo_status place_packed(const compiler *c) {
  const rondo_compiled *compiled = c->compiled;
  for (uint32_t i = 0; i < c->layout.schedule.values; i++) {
    const rondo_location *location = &c->layout.locations[i];
    if (location->packed == NULL || c->layout.schedule.owners[i] != i) continue;
    if (location->reads_rows) RONDO_TRY(rondo_packed_state_need_rows(location->packed));
    if (location->block != RONDO_BLOCK_STATES) continue;
    location->packed->device = compiled->device;
    location->packed->address = rondo_layout_address(&c->layout, compiled, i);
  }
  return RONDO_OK;
}

static rondo_status allocate_states(compiler *c) {
  RONDO_TRY(allocate_block(c, c->layout.state_bytes, "states", &c->compiled->states));
  c->has_new_states =
      c->compiled->states != NULL && rondo_memory_is_zero_at_first(c->compiled->device, c->compiled->states);
  return RONDO_OK;
}

static rondo_status allocate_memory(compiler *c) {
  rondo_compiled *compiled = c->compiled;
  const rondo_layout *layout = &c->layout;
  RONDO_TRY(allocate_states(c));
  RONDO_TRY(rondo_fail_context(place_packed(c), "%s", compiled->label));
  RONDO_TRY(allocate_block(c, layout->own_bytes, "constants", &compiled->own));
  if (layout->gate_bytes > 0) compiled->gate = (void *)(compiled->own + layout->gate_offset);
  compiled->gate_bytes = layout->gate_bytes;
  RONDO_TRY(take_arena(c, layout->arena_bytes));
  return allocate_host_memory(c);
}

static rondo_status fill(const compiler *c, void *address, size_t bytes, uint32_t value) {
  const rondo_fill zeros = {
      .dst = address, .value = value, .element_bytes = sizeof value, .width = bytes / sizeof value};
  return bytes == 0 ? RONDO_OK : rondo_fill_async(c->compiled->stream, &zeros);
}

static rondo_status clear_in_arena(const compiler *c, uint32_t value) {
  const rondo_location *location = &c->layout.locations[value];
  if (location->block != RONDO_BLOCK_ARENA) return RONDO_OK;
  return fill(c, rondo_location_address(location, c->compiled), location->bytes, 0);
}

/* Other values of the arena are written before they are read. */
static rondo_status clear_arena(const compiler *c) {
  for (uint32_t i = 0; i < c->program->values.count; i++)
    if (c->program->values.items[i].kind == RONDO_VALUE_INPUT) RONDO_TRY(clear_in_arena(c, i));
  for (size_t i = 0; i < c->program->outputs.count; i++)
    RONDO_TRY(clear_in_arena(c, c->program->outputs.items[i].value));
  return RONDO_OK;
}

/* Writes the value of a state, cell or constant before the first run, which is not zeros. */
static rondo_status write_initial(const compiler *c, uint32_t number) {
  const rondo_program_value *value = &c->program->values.items[number];
  const size_t bytes = rondo_shape_bytes(&value->shape);
  void *const address = rondo_layout_address(&c->layout, c->compiled, number);
  uint32_t bits = 0;
  if (value->elements != NULL) return rondo_copy_async(c->compiled->stream, address, value->elements, bytes);
  memcpy(&bits, &value->initial, sizeof bits);
  return fill(c, address, bytes, bits);
}

/* Sets what can be read before the first run, and is not shared, to its contents then. */
static rondo_status initialise(const compiler *c) {
  if (!c->has_new_states || !c->compiled->info.skipped_warm_up)
    RONDO_TRY(fill(c, c->compiled->states, c->layout.state_bytes, 0));
  RONDO_TRY(fill(c, c->compiled->own, c->layout.own_bytes, 0));
  RONDO_TRY(rondo_feeds_clear(c->compiled));
  if (!c->has_new_arena || !c->compiled->info.skipped_warm_up) RONDO_TRY(clear_arena(c));
  for (uint32_t i = 0; i < c->program->values.count; i++) {
    const rondo_program_value *value = &c->program->values.items[i];
    const rondo_block block = c->layout.locations[i].block;
    const bool is_elsewhere = block == RONDO_BLOCK_SHARED || block == RONDO_BLOCK_BORROWED;
    const bool is_zeros = value->initial == 0 && value->elements == NULL;
    if (!rondo_value_is_transient(c->program, i) && !is_elsewhere && !is_zeros) RONDO_TRY(write_initial(c, i));
  }
  RONDO_TRY(rondo_stream_synchronize(c->compiled->stream));
  rondo_index_checks_clear(&c->compiled->checks);
  return RONDO_OK;
}

/* Shares the states and cells that are not shared yet. */
static rondo_status share_states(const compiler *c) {
  rondo_compiled *compiled = c->compiled;
  const size_t capacity = c->program->values.count;
  rondo_shared_value *values;
  size_t count = 0;
  RONDO_TRY(rondo_allocate_items(&compiled->allocator, capacity, sizeof *values, &values));
  for (uint32_t i = 0; i < capacity; i++) {
    const rondo_program_value *value = &c->program->values.items[i];
    if (c->layout.locations[i].block != RONDO_BLOCK_STATES) continue;
    rondo_packed_state *packed = c->layout.locations[i].packed;
    values[count++] =
        (rondo_shared_value){.kind = rondo_value_letter(value->kind),
                             .name = value->name,
                             .shape = value->shape,
                             .address = packed != NULL ? NULL : rondo_layout_address(&c->layout, compiled, i),
                             .packed = packed};
  }
  const rondo_status status =
      count == 0 ? RONDO_OK : rondo_sharing_adopt(compiled->sharing, compiled->states, values, count);
  rondo_release(&compiled->allocator, values, capacity, sizeof *values);
  if (status == RONDO_OK) compiled->states = NULL;
  return status;
}

/* Named values ---------------------------------------------------------------------------------------------------- */

static void link_staged(const rondo_feeds *feeds, uint32_t value, uint32_t output, rondo_named_value *named) {
  if (named->kind == 'i') named->input = rondo_feeds_input(feeds, value);
  if (named->kind == 'o') named->output = rondo_feeds_output(feeds, output);
  if (named->input == NULL && named->output == NULL) return;
  named->address = named->input != NULL ? named->input->buffer : named->output->buffer;
  named->in_arena = false;
}

/* output: its number, for an output. */
static rondo_status name_value(const compiler *c, char kind, const char *name, uint32_t value, uint32_t output) {
  rondo_compiled *compiled = c->compiled;
  const rondo_program_value *of = &c->program->values.items[value];
  rondo_packed_state *packed = kind == 's' ? c->layout.locations[value].packed : NULL;
  if (packed != NULL) RONDO_TRY(rondo_resources_kernel(&compiled->resources, &rondo_pack_code, &compiled->packer));
  rondo_named_value named = {.kind = kind,
                             .shape = *rondo_program_shape(c->program, value),
                             .address = packed != NULL ? NULL : rondo_layout_address(&c->layout, compiled, value),
                             .packed = packed,
                             .trained_by = kind != 's'       ? NULL
                                           : of->trained     ? c->program->optimizer
                                           : of->is_assigned ? rondo_operator_assign.name
                                                             : NULL,
                             .group = of->group,
                             .is_sharded = of->is_sharded,
                             .is_summed = of->is_summed,
                             .of_round = of->of_round,
                             .in_arena = c->layout.locations[value].block == RONDO_BLOCK_ARENA};
  link_staged(&compiled->feeds, value, output, &named);
  RONDO_TRY(rondo_allocate_text(&compiled->allocator, name, &named.name));
  const rondo_status status = rondo_array_push(&compiled->allocator, &compiled->values, &named);
  if (status != RONDO_OK) rondo_release_text(&compiled->allocator, named.name);
  return status;
}

static rondo_status name_values(const compiler *c) {
  static const char kinds[] = {'s', 'c', 'i'};
  const rondo_program *program = c->program;
  for (size_t k = 0; k < sizeof kinds; k++) {
    for (uint32_t i = 0; i < program->values.count; i++) {
      const rondo_program_value *value = &program->values.items[i];
      if (rondo_value_letter(value->kind) == kinds[k]) RONDO_TRY(name_value(c, kinds[k], value->name, i, 0));
    }
  }
  for (uint32_t i = 0; i < program->outputs.count; i++)
    RONDO_TRY(name_value(c, 'o', program->outputs.items[i].name, program->outputs.items[i].value, i));
  return RONDO_OK;
}

static uint64_t count_parameters(const rondo_program *program) {
  uint64_t trained = 0;
  uint64_t all = 0;
  for (size_t i = 0; i < program->values.count; i++) {
    const rondo_program_value *value = &program->values.items[i];
    if (value->kind != RONDO_VALUE_STATE) continue;
    all += rondo_shape_elements(&value->shape);
    if (value->trained) trained += rondo_shape_elements(&value->shape);
  }
  return program->optimizer != NULL ? trained : all;
}

/* Of what optimizers keep for each trained state. */
static uint64_t count_optimizer_bytes(const rondo_program *program) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < program->values.count; i++) {
    const rondo_program_value *value = &program->values.items[i];
    if (value->of_optimizer) bytes += rondo_round_up(rondo_shape_bytes(&value->shape), RONDO_VALUE_ALIGNMENT);
  }
  return bytes;
}

/* The whole ------------------------------------------------------------------------------------------------------- */

static void fill_info(const compiler *c) {
  rondo_compiled_info *info = &c->compiled->info; /* kernels are counted when they are emitted */
  info->parameters = count_parameters(c->program);
  info->state_bytes = c->layout.state_bytes + c->layout.shared_bytes + c->layout.own_bytes + c->layout.rows_bytes;
  info->packed_bytes = c->layout.packed_bytes;
  info->constant_bytes = c->layout.own_bytes;
  info->shared_bytes = c->layout.shared_bytes;
  info->arena_bytes = c->layout.arena_bytes;
  info->lower_bound = c->layout.arena_bound;
  info->sum_bytes = c->layout.arena_sum;
  info->order_peak = c->layout.schedule.peak;
  info->program_peak = c->layout.schedule.program_peak;
  info->straight_bytes = c->layout.straight_bytes;
  info->branch_bytes = c->layout.branch_bytes;
  info->branches_ended_early = c->layout.ended_early;
  info->reused_plans = c->layout.reused_plans;
  info->operators = c->layout.schedule.count;
  info->dependencies = c->layout.schedule.before.start[c->layout.schedule.count];
  info->has_branches = c->layout.has_branches;
  info->ranks = c->program->ranks.count;
  info->buckets = c->program->ranks.buckets;
  info->reduced_bytes = c->program->ranks.reduced_bytes;
  info->optimizer_bytes = count_optimizer_bytes(c->program);
  info->chains = (uint32_t)c->layout.schedule.chains.count;
  for (uint32_t i = 0; i < info->chains; i++) info->joined += c->layout.schedule.chains.items[i].count;
}

static rondo_status find_sharing(compiler *c, const rondo_compile_options *given) {
  rondo_compiled *compiled = c->compiled;
  if (given->share != NULL) RONDO_TRY(rondo_stream_synchronize(given->share->stream));
  if (given->share != NULL && given->share_states_only) {
    RONDO_TRY(rondo_sharing_borrow(given->share->sharing, given->stream, compiled->name, &compiled->sharing));
  } else if (given->share != NULL) {
    compiled->sharing = given->share->sharing;
    compiled->sharing->users++;
  } else {
    RONDO_TRY(rondo_sharing_create(&compiled->allocator, compiled->device, given->stream, compiled->name,
                                   &compiled->sharing));
  }
  compiled->stream = compiled->sharing->stream;
  compiled->resources.kernels = &compiled->sharing->kernels;
  compiled->resources.own_kernels = given->own_kernels;
  compiled->resources.maker = &compiled->sharing->maker;
  compiled->resources.maker->allow_tf32 = given->allow_tf32;
  compiled->resources.cudnn_maker = &compiled->sharing->cudnn_maker;
  compiled->resources.cudnn_maker->allow_tf32 = given->allow_tf32;
  return RONDO_OK;
}

static rondo_status lay_out(compiler *c, const rondo_compile_options *given) {
  const rondo_layout_options options = {.resources = &c->compiled->resources,
                                        .branches = given->branches,
                                        .fusion = given->fusion,
                                        .sharing = c->compiled->sharing,
                                        .plans = &c->compiled->sharing->plans,
                                        .staged = c->staged,
                                        .plain_states = given->plain_states};
  RONDO_TRY(rondo_layout_make(c->program, &options, &c->layout));
  fill_info(c);
  return RONDO_OK;
}

static rondo_status record(const compiler *c) {
  RONDO_TRY(rondo_executed_make(c->program, &c->layout, c->compiled));
  bool is_recorded;
  RONDO_TRY(rondo_record_decide(c->compiled, &is_recorded));
  return is_recorded ? rondo_record(c->program, &c->layout, c->compiled) : rondo_record_keep(&c->layout, c->compiled);
}

static rondo_status make_recording(const compiler *c) {
  if (c->compiled->arena != NULL) c->compiled->arena->holder = c->compiled;
  RONDO_TRY(initialise(c));
  RONDO_TRY(rondo_warm_up(c->compiled));
  return record(c);
}

/* Continues the counts of the program that is replaced. */
static rondo_status replace_exec(compiler *c) {
  rondo_update_result update = {.struct_size = sizeof update};
  rondo_compiled_info *info = &c->compiled->info;
  const rondo_compiled_info *before = &c->replaced->info;
  info->captures += before->captures;
  info->updates = before->updates;
  info->instantiations = before->instantiations;
  RONDO_TRY(rondo_record_replace(c->compiled, c->replaced, &update));
  c->result.updated = info->updates > before->updates;
  c->result.reason = update.reason;
  return RONDO_OK;
}

/* Shares the states; takes that back if the exec cannot be made. */
static rondo_status finish(compiler *c) {
  rondo_compiled *compiled = c->compiled;
  const size_t before = compiled->sharing->values.count;
  RONDO_TRY(share_states(c));
  rondo_status status = rondo_record_instantiate_short(compiled);
  if (status == RONDO_OK) status = c->replaced == NULL ? rondo_record_instantiate(compiled) : replace_exec(c);
  if (status != RONDO_OK && compiled->sharing->values.count > before)
    compiled->states = rondo_sharing_give_back(compiled->sharing, before);
  return status;
}

/* Restores shared states also after a failure. */
static rondo_status make_guarded_recording(const compiler *c) {
  rondo_state_guard guard;
  RONDO_TRY(rondo_state_guard_begin(c->program, &c->layout, c->compiled, &guard));
  const rondo_status status = make_recording(c);
  rondo_saved_error error;
  rondo_error_save(&error);
  const rondo_status back = rondo_state_guard_end(c->compiled, &guard);
  return status == RONDO_OK ? back : rondo_error_raise(&error);
}

/* If all kernels are warm, at most calls of libraries run, which change no state, so none needs to be kept. */
static rondo_status warm_up_and_record(compiler *c) {
  rondo_compiled *compiled = c->compiled;
  const bool measures = compiled->policy == RONDO_RECORD_AUTO || compiled->executed.executor != NULL;
  compiled->info.skipped_warm_up = !measures && compiled->ranks.count == 0 && rondo_is_warm(compiled);
  if (!compiled->info.skipped_warm_up) return make_guarded_recording(c);
  if (compiled->arena != NULL) compiled->arena->holder = compiled;
  bool any;
  RONDO_TRY(rondo_warm_up_calls(compiled, &any));
  c->has_new_arena = c->has_new_arena && !any;
  return record(c);
}

/* Replaces the program by a copy without its patterns, if it has some. */
static rondo_status replace_patterns(compiler *c) {
  rondo_compiled *compiled = c->compiled;
  const bool fuses = compiled->fusion != RONDO_FUSION_NEVER;
  const rondo_pattern_set set = fuses ? RONDO_ALL_PATTERNS & ~compiled->without_patterns : 0;
  const rondo_pattern_target target = {.is_cuda = compiled->resources.is_cuda, .own_kernels = compiled->own_kernels};
  RONDO_TRY(rondo_program_rewrite(c->program, set, target, &compiled->patterns, &c->rewritten));
  for (size_t i = 0; i < RONDO_PATTERN_COUNT; i++) compiled->info.patterns += compiled->patterns.of[i];
  if (c->rewritten != NULL) c->program = c->rewritten;
  return RONDO_OK;
}

static rondo_status compile(compiler *c, const rondo_compile_options *given) {
  rondo_compiled *compiled = c->compiled;
  rondo_program_check(c->program);
  RONDO_TRY(rondo_record_options_keep(compiled, given));
  RONDO_TRY(replace_patterns(c));
  RONDO_TRY(rondo_compile_check_ranks(c->call, c->program, compiled->device, given));
  RONDO_TRY(rondo_executed_keep(compiled, given));
  RONDO_TRY(rondo_allocate_text(&compiled->allocator, c->program->name, &compiled->name));
  RONDO_TRY(rondo_program_make_label(&compiled->allocator, c->program->name, &compiled->label));
  RONDO_TRY(find_sharing(c, given));
  RONDO_TRY(lay_out(c, given));
  if (c->is_plan) return RONDO_OK;
  RONDO_TRY(allocate_memory(c));
  RONDO_TRY(name_values(c));
  RONDO_TRY(rondo_ranks_keep(c->program, compiled));
  RONDO_TRY(rondo_emit_all(c->program, &c->layout, compiled));
  RONDO_TRY(rondo_held_list(c->program, &c->layout, compiled));
  RONDO_TRY(rondo_ranks_compare(c->program, compiled));
  RONDO_TRY(warm_up_and_record(c));
  RONDO_TRY(initialise(c));
  return finish(c);
}

/* Destroys the program, and returns the error that made compiling fail. */
static rondo_status abandon(rondo_compiled *compiled) {
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status_ignore(rondo_compiled_destroy(compiled), "the first failure is the one to return");
  return rondo_error_raise(&error);
}

static rondo_status check_shared(const compiler *c, const rondo_compiled *shared, const rondo_device *device) {
  if (shared == NULL) return RONDO_OK;
  if (shared->device == device) return rondo_compiled_refuse_capturing(shared, c->call);
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                    "%s: %s, which is to be shared, was compiled for device '%s', but this program is for '%s': "
                    "programs that share must be compiled for one rondo_device",
                    c->call, shared->label, shared->device->name, device->name);
}

/* In the thread mode RELAXED. */
static rondo_status compile_relaxed(compiler *c, const rondo_compile_options *given) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  const rondo_status status = compile(c, given);
  const rondo_status back = rondo_capture_exchange_thread_mode(&mode);
  return status == RONDO_OK ? back : status;
}

/* Sets c->compiled, NULL after a failure. */
static rondo_status make_compiled(compiler *c, rondo_device *device, const rondo_allocator *allocator,
                                  const rondo_compile_options *given) {
  RONDO_TRY(check_shared(c, given->share, device));
  const rondo_sharing *joined = given->share == NULL || given->share_states_only ? NULL : given->share->sharing;
  RONDO_TRY(rondo_sharing_check_stream(c->call, c->program->label, device, joined, given->stream));
  c->staged = (rondo_staged_list){given->staged, given->staged_count};
  RONDO_TRY(rondo_feeds_check(c->program, &c->staged));
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *c->compiled, &c->compiled));
  c->compiled->allocator = *allocator;
  c->compiled->device = device;
  rondo_device_begin_use(device, &rondo_compiled_use);
  rondo_status status = rondo_resources_init(&c->compiled->resources, allocator, device);
  if (status == RONDO_OK) status = compile_relaxed(c, given);
  rondo_layout_free(c->program, &c->layout);
  rondo_program_destroy(c->rewritten);
  if (status == RONDO_OK && !c->is_plan) rondo_compiled_check(c->compiled);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_compiled *const failed = c->compiled;
  c->compiled = NULL;
  return abandon(failed);
}

rondo_status rondo_compile(rondo_program *program, rondo_device *device, const rondo_compile_options *options,
                           rondo_compiled **out_compiled) {
  compiler c = {.call = "rondo_compile", .program = program};
  RONDO_TRY(rondo_require(c.call, "out_compiled", out_compiled));
  *out_compiled = NULL;
  RONDO_TRY(rondo_require(c.call, "program", program));
  RONDO_TRY(rondo_require(c.call, "device", device));
  rondo_compile_options given;
  RONDO_TRY(rondo_versioned_read("rondo_compile_options", options, &given, sizeof given));
  const rondo_status status = make_compiled(&c, device, &program->allocator, &given);
  *out_compiled = c.compiled;
  return status;
}

rondo_status rondo_compile_plan(rondo_program *program, rondo_device *device, const rondo_compile_options *options,
                                rondo_compiled_info *out_info) {
  compiler c = {.call = "rondo_compile", .program = program, .is_plan = true};
  RONDO_TRY(make_compiled(&c, device, &program->allocator, options));
  *out_info = c.compiled->info;
  return rondo_compiled_destroy(c.compiled);
}

/* Again ------------------------------------------------------------------------------------------------------------ */

/* Lists how values are staged now; `compiled` owns the names. */
static size_t list_staged(const rondo_compiled *compiled, rondo_staged_value *staged) {
  size_t count = 0;
  for (size_t i = 0; i < compiled->values.count; i++) {
    const rondo_named_value *value = &compiled->values.items[i];
    if (value->input != NULL)
      staged[count++] = (rondo_staged_value){value->name, value->input->staging};
    else if (value->output != NULL)
      staged[count++] = (rondo_staged_value){value->name, RONDO_STAGING_HOST};
  }
  return count;
}

/* Moves the new program into the handle, and destroys the old one. */
static void take_place(rondo_compiled *compiled, rondo_compiled *made) {
  const rondo_compiled before = *compiled;
  *compiled = *made;
  *made = before;
  if (compiled->arena != NULL && compiled->arena->holder == made) compiled->arena->holder = compiled;
  rondo_status_ignore(rondo_compiled_destroy(made), "its work was waited for and has not failed");
}

static rondo_status recompile(compiler *c, rondo_compiled *compiled, const rondo_staged_value *staged, size_t count) {
  const rondo_compile_options given = {RONDO_COMPILE_OPTIONS_INIT,
                                       .record = compiled->policy,
                                       .branches = compiled->branches,
                                       .fusion = compiled->fusion,
                                       .share = compiled,
                                       .least_gain = compiled->bar.least,
                                       .expected_runs = compiled->bar.runs,
                                       .allow_tf32 = compiled->allow_tf32,
                                       .own_kernels = compiled->own_kernels,
                                       .plain_states = compiled->plain_states,
                                       .without_patterns = compiled->pattern_names,
                                       .executor = compiled->executed.executor,
                                       .executor_policy = compiled->executed.policy,
                                       .staged = staged,
                                       .staged_count = count};
  RONDO_TRY(make_compiled(c, compiled->device, &compiled->allocator, &given));
  take_place(compiled, c->compiled);
  return RONDO_OK;
}

static rondo_status check_recompile(const char *call, rondo_compiled *compiled, const rondo_program *program) {
  RONDO_TRY(rondo_require(call, "compiled", compiled));
  RONDO_TRY(rondo_require(call, "program", program));
  RONDO_TRY(rondo_compiled_refuse_capturing(compiled, call));
  RONDO_TRY(rondo_feeds_refuse_mapped(compiled, call));
  return rondo_compiled_synchronize(compiled);
}

rondo_status rondo_compiled_recompile(rondo_compiled *compiled, rondo_program *program,
                                      rondo_recompile_result *out_result) {
  compiler c = {.call = "rondo_compiled_recompile", .program = program, .replaced = compiled};
  rondo_staged_value *staged;
  if (out_result != NULL)
    RONDO_TRY(rondo_versioned_write("rondo_recompile_result", &c.result, out_result, sizeof c.result));
  RONDO_TRY(check_recompile(c.call, compiled, program));
  const rondo_allocator allocator = compiled->allocator;
  const size_t capacity = compiled->values.count;
  RONDO_TRY(rondo_allocate_items(&allocator, capacity, sizeof *staged, &staged));
  const rondo_status status = recompile(&c, compiled, staged, list_staged(compiled, staged));
  rondo_release(&allocator, staged, capacity, sizeof *staged);
  if (status != RONDO_OK || out_result == NULL) return status;
  return rondo_versioned_write("rondo_recompile_result", &c.result, out_result, sizeof c.result);
}

/* SPDX-License-Identifier: MIT
 * Noting the values of launches, and comparing two runs. See frozen_values.h.
 */
#include "exec/patch/frozen_values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "graph/launch_config.h"
#include "graph/node_params.h"

enum { WORD = sizeof(uint64_t) };

/* Life ------------------------------------------------------------------------------------------------------------- */

void rondo_launch_values_begin(rondo_launch_values *values, const rondo_allocator *allocator) {
  *values = (rondo_launch_values){.allocator = *allocator, .outer = rondo_this_thread.values, .is_complete = true};
  rondo_this_thread.values = values;
  rondo_thread_watch();
}

void rondo_launch_values_end(rondo_launch_values *values) {
  rondo_thread_unwatch();
  rondo_this_thread.values = values->outer;
}

void rondo_launch_values_free(rondo_launch_values *values) {
  if (values->launches.items != NULL) rondo_array_free(&values->allocator, &values->launches);
  if (values->values.items != NULL) rondo_array_free(&values->allocator, &values->values);
  *values = (rondo_launch_values){0};
}

rondo_launch_values *rondo_launch_values_pause(void) {
  rondo_launch_values *paused = rondo_this_thread.values;
  rondo_this_thread.values = NULL;
  return paused;
}

void rondo_launch_values_resume(rondo_launch_values *paused) { rondo_this_thread.values = paused; }

/* Noting ----------------------------------------------------------------------------------------------------------- */

/* Addresses of user space are below 2^57, and nothing is in the first page. Floating-point numbers and pairs of them
 * are above 2^57, except for tiny magnitudes. */
static bool may_be_address(uint64_t word) { return word >= 4096 && word >> 57 == 0; }

static rondo_status add_value(rondo_launch_values *values, const rondo_launch_value *value) {
  if (values->values.count == RONDO_LAUNCH_VALUES_MOST)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE, "too many values to note");
  return rondo_array_push(&values->allocator, &values->values, value);
}

static rondo_status add_launch(rondo_launch_values *values, const rondo_noted_launch *launch) {
  if (values->launches.count == RONDO_LAUNCH_VALUES_MOST)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE, "too many launches to note");
  return rondo_array_push(&values->allocator, &values->launches, launch);
}

static rondo_status add_argument(rondo_launch_values *values, uint32_t parameter, const void *argument,
                                 uint32_t bytes) {
  for (uint32_t offset = 0; offset < bytes; offset += WORD) {
    const uint32_t part = bytes - offset < WORD ? bytes - offset : WORD;
    rondo_launch_value value = {.parameter = (uint16_t)parameter, .offset = (uint16_t)offset, .bytes = (uint8_t)part};
    memcpy(&value.value, (const char *)argument + offset, part);
    RONDO_TRY(add_value(values, &value));
  }
  return RONDO_OK;
}

/* Whether a generator's arguments begin here: cells, a seed and an offset, which every draw changes
 * (RONDO_RANDOM_PARAMETERS). */
static bool is_random(const rondo_kernel *kernel, size_t at) {
  const rondo_parameter *parameters = kernel->parameters;
  return at + 2 < kernel->parameter_count && parameters[at].access == RONDO_ACCESS_READ &&
         parameters[at + 1].access == RONDO_ACCESS_SCALAR && parameters[at + 1].bytes == WORD &&
         parameters[at + 2].access == RONDO_ACCESS_SCALAR && parameters[at + 2].bytes == WORD;
}

static bool is_given(const rondo_kernel_node *node) {
  if (node->kernel == NULL || node->arg_count != node->kernel->parameter_count) return false;
  for (size_t i = 0; i < node->arg_count; i++)
    if (node->args == NULL || node->args[i] == NULL) return false;
  return true;
}

static rondo_status note_kernel(rondo_launch_values *values, const rondo_kernel_node *node,
                                rondo_noted_launch *launch) {
  const rondo_kernel *kernel = node->kernel;
  (void)snprintf(launch->name, sizeof launch->name, "%s", kernel->name);
  launch->kind = rondo_hash_text(RONDO_HASH_START, kernel->name);
  const rondo_grid grid = rondo_grid_resolve(node->grid);
  launch->sizes[0] = grid.x;
  launch->sizes[1] = grid.y;
  launch->sizes[2] = grid.z;
  launch->kind = rondo_hash_u64(launch->kind, kernel->parameter_count);
  rondo_launch_config config;
  if (rondo_launch_config_resolve(node, &config)) launch->kind = rondo_launch_config_hash(launch->kind, &config);
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    if (is_random(kernel, i))
      i += 2;
    else if (kernel->parameters[i].access == RONDO_ACCESS_SCALAR)
      RONDO_TRY(add_argument(values, i, node->args[i], kernel->parameters[i].bytes));
  }
  return RONDO_OK;
}

static rondo_status note_fill(rondo_launch_values *values, const rondo_fill *fill, rondo_noted_launch *launch) {
  launch->kind = fill->element_bytes;
  launch->sizes[0] = fill->width;
  launch->sizes[1] = fill->height > 1 ? fill->height : 1;
  const uint32_t bytes = fill->element_bytes > 0 && fill->element_bytes < 4 ? fill->element_bytes : 4;
  rondo_launch_value value = {.bytes = (uint8_t)bytes};
  memcpy(&value.value, &fill->value, bytes);
  return add_value(values, &value);
}

static void note_copy(const rondo_copy *copy, rondo_noted_launch *launch) {
  launch->sizes[0] = copy->width;
  launch->sizes[1] = copy->height > 1 ? copy->height : 1;
  launch->sizes[2] = copy->depth > 1 ? copy->depth : 1;
}

/* A word of 8 bytes that is written may be an address; one that is waited for is a number. */
static rondo_status note_operations(rondo_launch_values *values, const rondo_memory_operations_node *node,
                                    rondo_noted_launch *launch) {
  launch->kind = rondo_hash_u64(RONDO_HASH_START, node->count);
  for (size_t i = 0; i < node->count; i++) {
    const rondo_memory_operation *operation = &node->operations[i];
    const rondo_launch_value value = {.value = operation->value,
                                      .parameter = (uint16_t)i,
                                      .bytes = (uint8_t)rondo_operation_bytes(operation),
                                      .is_number = rondo_operation_waits(operation)};
    launch->kind = rondo_hash_u64(launch->kind, (uint64_t)operation->kind << 32 | (uint64_t)operation->condition);
    RONDO_TRY(add_value(values, &value));
  }
  return RONDO_OK;
}

static rondo_status note_semaphores(rondo_launch_values *values, const rondo_semaphores_node *node,
                                    rondo_noted_launch *launch) {
  launch->kind = rondo_hash_u64(RONDO_HASH_START, node->count);
  for (size_t i = 0; i < node->count; i++) {
    const rondo_launch_value value = {
        .value = node->values[i].value, .parameter = (uint16_t)i, .bytes = WORD, .is_number = true};
    RONDO_TRY(add_value(values, &value));
  }
  return RONDO_OK;
}

/* The work is not checked yet. */
static rondo_status note(rondo_launch_values *values, const rondo_node_params *work) {
  rondo_noted_launch launch = {.work = work->kind, .first = (uint32_t)values->values.count};
  const rondo_memory_operations_node *operations = &work->as.memory_operations;
  const rondo_semaphores_node *semaphores = &work->as.semaphores;
  if (work->kind == RONDO_NODE_KERNEL && is_given(&work->as.kernel))
    RONDO_TRY(note_kernel(values, &work->as.kernel, &launch));
  else if (work->kind == RONDO_NODE_COPY)
    note_copy(&work->as.copy, &launch);
  else if (work->kind == RONDO_NODE_FILL)
    RONDO_TRY(note_fill(values, &work->as.fill, &launch));
  else if (work->kind == RONDO_NODE_MEMORY_OPERATIONS && operations->operations != NULL &&
           operations->count <= RONDO_MAX_MEMORY_OPERATIONS)
    RONDO_TRY(note_operations(values, operations, &launch));
  else if (rondo_node_names_semaphores(work) && semaphores->values != NULL && semaphores->count <= RONDO_MAX_SEMAPHORES)
    RONDO_TRY(note_semaphores(values, semaphores, &launch));
  else
    return RONDO_OK;
  return add_launch(values, &launch);
}

void rondo_launch_values_note(const rondo_node_params *work) {
  rondo_launch_values *values = rondo_this_thread.values;
  rondo_saved_error before;
  if (!values->is_complete) return;
  rondo_error_save(&before);
  values->is_complete = note(values, work) == RONDO_OK;
  if (!values->is_complete) rondo_error_restore(&before);
}

/* Comparing -------------------------------------------------------------------------------------------------------- */

static bool are_comparable(const rondo_launch_values *a, const rondo_launch_values *b) {
  if (!a->is_complete || !b->is_complete) return false;
  if (a->launches.count != b->launches.count || a->values.count != b->values.count) return false;
  for (size_t i = 0; i < a->launches.count; i++)
    if (a->launches.items[i].work != b->launches.items[i].work ||
        a->launches.items[i].kind != b->launches.items[i].kind)
      return false;
  return true;
}

static bool is_same(const rondo_launch_value *a, const rondo_launch_value *b) {
  if (a->value == b->value) return true;
  return a->bytes == WORD && !a->is_number && may_be_address(a->value) && may_be_address(b->value);
}

/* Writes the value as a floating-point number if it is one of a kernel or fill and looks like one, else as an integer.
 */
static void write_value(char *out, size_t capacity, const rondo_noted_launch *launch, const rondo_launch_value *value) {
  float number = 0;
  double wide = 0;
  const bool is_any = launch->work == RONDO_NODE_KERNEL || launch->work == RONDO_NODE_FILL;
  if (is_any && value->bytes == sizeof number) memcpy(&number, &value->value, sizeof number);
  if (is_any && value->bytes == sizeof wide) memcpy(&wide, &value->value, sizeof wide);
  const double magnitude = (number < 0 ? -(double)number : (double)number) + (wide < 0 ? -wide : wide);
  if (magnitude > 1e-30 && magnitude < 1e30)
    (void)snprintf(out, capacity, "%.9g", value->bytes == sizeof number ? (double)number : wide);
  else
    (void)snprintf(out, capacity, "%" PRIu64, value->value);
}

static void describe_place(char *out, size_t capacity, const rondo_noted_launch *launch,
                           const rondo_launch_value *value) {
  if (launch->work == RONDO_NODE_FILL)
    (void)snprintf(out, capacity, "the value of a fill");
  else if (launch->work == RONDO_NODE_MEMORY_OPERATIONS)
    (void)snprintf(out, capacity, "the value of memory operation %u", value->parameter);
  else if (launch->work != RONDO_NODE_KERNEL)
    (void)snprintf(out, capacity, "value %u of a %s of semaphores", value->parameter,
                   launch->work == RONDO_NODE_SEMAPHORE_SIGNAL ? "signal" : "wait");
  else if (value->offset == 0)
    (void)snprintf(out, capacity, "argument %u of kernel '%s'", value->parameter, launch->name);
  else
    (void)snprintf(out, capacity, "argument %u of kernel '%s', at byte %u,", value->parameter, launch->name,
                   value->offset);
}

static void describe(char *message, size_t capacity, const rondo_noted_launch *launch, const rondo_launch_value *before,
                     const rondo_launch_value *now) {
  char where[96], was[32], is[32];
  const bool is_of_memory = launch->work == RONDO_NODE_KERNEL || launch->work == RONDO_NODE_FILL;
  write_value(was, sizeof was, launch, before);
  write_value(is, sizeof is, launch, now);
  describe_place(where, sizeof where, launch, now);
  (void)snprintf(
      message, capacity,
      "%s was %s in the run before and is %s now, and is not an input: a recording would freeze one value; make it "
      "an input of the function (RONDO_INPUT_SCALAR), or %s",
      where, was, is,
      is_of_memory ? "keep it in device memory that the kernel reads" : "enqueue this work outside of the body");
}

static void describe_size(char *message, size_t capacity, const rondo_noted_launch *before,
                          const rondo_noted_launch *now, size_t i) {
  static const char *const of_kernel[] = {"grid.x", "grid.y", "grid.z"}, *const of_memory[] = {"width", "height",
                                                                                               "depth"};
  const bool is_kernel = now->work == RONDO_NODE_KERNEL;
  char name[64] = "copy";
  if (now->work == RONDO_NODE_FILL) (void)snprintf(name, sizeof name, "fill");
  if (is_kernel) (void)snprintf(name, sizeof name, "kernel '%s'", now->name);
  (void)snprintf(message, capacity,
                 "%s of %s%s was %" PRIu64 " in the run before and is %" PRIu64
                 " now, though the inputs have the same form: a recording would freeze one size; take it from the "
                 "shape of an input, or from an input that is RONDO_INPUT_SCALAR, or enqueue this work outside of the "
                 "body",
                 is_kernel ? of_kernel[i] : of_memory[i], is_kernel ? "" : "a ", name, before->sizes[i], now->sizes[i]);
}

static bool do_sizes_differ(const rondo_launch_values *earlier, const rondo_launch_values *later, char *message,
                            size_t capacity) {
  for (size_t i = 0; i < later->launches.count; i++) {
    const rondo_noted_launch *before = &earlier->launches.items[i], *now = &later->launches.items[i];
    for (size_t k = 0; k < sizeof now->sizes / sizeof now->sizes[0]; k++) {
      if (before->sizes[k] == now->sizes[k]) continue;
      describe_size(message, capacity, before, now, k);
      return true;
    }
  }
  return false;
}

bool rondo_launch_values_differ(const rondo_launch_values *earlier, const rondo_launch_values *later, char *message,
                                size_t capacity) {
  if (!are_comparable(earlier, later)) return false;
  if (do_sizes_differ(earlier, later, message, capacity)) return true;
  size_t launch = 0;
  for (size_t i = 0; i < later->values.count; i++) {
    while (launch + 1 < later->launches.count && later->launches.items[launch + 1].first <= i) launch++;
    if (is_same(&earlier->values.items[i], &later->values.items[i])) continue;
    describe(message, capacity, &later->launches.items[launch], &earlier->values.items[i], &later->values.items[i]);
    return true;
  }
  return false;
}

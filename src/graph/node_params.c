/* SPDX-License-Identifier: MIT
 * Parameters of nodes: the checks of public calls (B2 to B4), defaults for zeros, and comparing. The same functions
 * serve nodes and stream operations.
 *
 * Threads: any. Nothing here allocates or keeps state.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "graph/byte_box.h"
#include "graph/launch_config.h"
#include "graph/node.h"
#include "graph/node_fields.h"
#include "graph/node_params.h"
#include "graph/semaphore_data.h"

uint32_t rondo_node_number(rondo_node node) { return node.id == 0 ? RONDO_NO_NODE : (uint32_t)node.id; }

static rondo_status fail_null(const char *where, const char *what) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "%s: %s", where, what);
}

/* Boxes ----------------------------------------------------------------------------------------------------------- */

/* One side of a copy, or a fill: rows of `width` bytes, `height` to a slice, `depth` slices. */
typedef struct box_shape {
  size_t width, height, depth;
  size_t pitch, slice_pitch;
} box_shape;

/* Replaces zeros by their defaults, and also values without effect. False if a size does not fit. */
static bool resolve_box(box_shape *box) {
  if (box->height == 0) box->height = 1;
  if (box->depth == 0) box->depth = 1;
  if (box->pitch == 0) box->pitch = box->width;
  if (box->depth > 1 && box->slice_pitch == 0 && !rondo_checked_multiply(box->pitch, box->height, &box->slice_pitch))
    return false;
  if (box->height == 1) box->pitch = box->width;
  return box->depth > 1 || rondo_checked_multiply(box->pitch, box->height, &box->slice_pitch);
}

/* The bytes from the first to one past the last of a resolved box. False if they exceed PTRDIFF_MAX. */
static bool measure_box(const box_shape *box, size_t *out) {
  size_t slices, rows, slice, total;
  if (!rondo_checked_multiply(box->depth - 1, box->slice_pitch, &slices)) return false;
  if (!rondo_checked_multiply(box->height - 1, box->pitch, &rows)) return false;
  if (!rondo_checked_add(rows, box->width, &slice) || !rondo_checked_add(slices, slice, &total)) return false;
  *out = total;
  return total <= PTRDIFF_MAX && box->pitch <= PTRDIFF_MAX && box->slice_pitch <= PTRDIFF_MAX;
}

/* What the box is of. */
typedef enum box_role { BOX_DESTINATION, BOX_SOURCE, BOX_FILL } box_role;

static const char *const box_names[] = {
    [BOX_DESTINATION] = "destination", [BOX_SOURCE] = "source", [BOX_FILL] = "fill"};

/* The width of a fill counts elements. */
static rondo_status fail_empty(const char *where, box_role role, const box_shape *box) {
  const bool is_fill = role == BOX_FILL;
  const char *const kind = is_fill ? "fill" : "copy";
  const size_t height = box->height == 0 ? 1 : box->height, depth = box->depth == 0 ? 1 : box->depth;
  char rows[64] = "";
  if (height > 1 || depth > 1) (void)snprintf(rows, sizeof rows, " x %zu rows x %zu slices", height, depth);
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "%s: a %s of 0 %s%s: pass at least 1, or omit the %s", where, kind, is_fill ? "elements" : "bytes",
                    rows, kind);
}

/* Resolves the box and checks its geometry. */
static rondo_status check_box(const char *where, box_role role, box_shape *box, size_t *out_extent) {
  const char *const what = box_names[role];
  *out_extent = 0;
  const size_t given = box->pitch;
  if (box->width == 0) return fail_empty(where, role, box);
  if (!resolve_box(box) || (box->pitch >= box->width && !measure_box(box, out_extent)))
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
        "%s: the %s of %zu bytes x %zu rows x %zu slices with a pitch of %zu bytes does not fit the address "
        "space",
        where, what, box->width, box->height, box->depth, given);
  if (box->pitch < box->width)
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
        "%s: the %s has rows of %zu bytes but a pitch of %zu: the pitch must be at least the width of a row", where,
        what, box->width, box->pitch);
  const size_t slice = (box->height - 1) * box->pitch + box->width;
  if (box->depth > 1 && box->slice_pitch < slice)
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
        "%s: the %s has slices of %zu bytes but a slice pitch of %zu: it must be at least the size of a slice", where,
        what, slice, box->slice_pitch);
  return RONDO_OK;
}

static box_shape destination_box(const rondo_copy *copy) {
  return (box_shape){copy->width, copy->height, copy->depth, copy->dst_pitch, copy->dst_slice_pitch};
}
static box_shape source_box(const rondo_copy *copy) {
  return (box_shape){copy->width, copy->height, copy->depth, copy->src_pitch, copy->src_slice_pitch};
}

/* A fill's box in bytes. False if its rows do not fit. */
static bool fill_box(const rondo_fill *fill, box_shape *out) {
  *out = (box_shape){.height = fill->height, .depth = 1, .pitch = fill->pitch};
  return rondo_checked_multiply(fill->width, fill->element_bytes, &out->width);
}

/* Shapes ---------------------------------------------------------------------------------------------------------- */

static rondo_status check_argument_bytes(const char *where, const rondo_kernel_node *node) {
  const rondo_kernel *kernel = node->kernel;
  if (node->arg_bytes == NULL) return RONDO_OK;
  for (size_t i = 0; i < node->arg_count; i++) {
    const bool scalar = kernel->parameters[i].access == RONDO_ACCESS_SCALAR;
    if (node->arg_bytes[i] > (scalar ? 0 : PTRDIFF_MAX))
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE, "%s: arg_bytes[%zu] of kernel '%s' is %zu, %s",
                        where, i, kernel->name, node->arg_bytes[i],
                        scalar ? "but the argument is not a pointer: pass 0" : "which does not fit the address space");
  }
  return RONDO_OK;
}

static rondo_status check_kernel_shape(const char *where, const rondo_kernel_node *node) {
  if (node->kernel == NULL) return fail_null(where, "the kernel is NULL");
  const rondo_kernel *kernel = node->kernel;
  rondo_grid grid;
  rondo_status status = rondo_grid_is_small(node->grid) ? RONDO_OK : rondo_grid_check(kernel->name, node->grid, &grid);
  if (status == RONDO_OK && node->config != NULL) status = rondo_launch_config_check(node);
  if (status != RONDO_OK) return rondo_fail_context(status, "%s", where);
  if (node->arg_count != kernel->parameter_count)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT,
                      "%s: kernel '%s' has %" PRIu32 " parameter%s, but %zu %s passed: pass one for each parameter",
                      where, kernel->name, kernel->parameter_count, kernel->parameter_count == 1 ? "" : "s",
                      node->arg_count, node->arg_count == 1 ? "argument was" : "arguments were");
  if (node->arg_count > 0 && node->args == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
                      "%s: the list of the %zu arguments of kernel '%s' is NULL", where, node->arg_count, kernel->name);
  for (size_t i = 0; i < node->arg_count; i++)
    if (node->args[i] == NULL)
      return rondo_fail(
          RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
          "%s: argument %zu of kernel '%s' is NULL: pass the address of its value, also if the value is a "
          "pointer",
          where, i, kernel->name);
  return check_argument_bytes(where, node);
}

static rondo_status fail_number(const char *where, const rondo_kernel *kernel, size_t number) {
  if (kernel->parameter_count == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT,
                      "%s: kernel '%s' has no argument %zu: it has no arguments at all", where, kernel->name, number);
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT,
                    "%s: kernel '%s' has no argument %zu: pass 0 for its first argument, up to %" PRIu32
                    " for its last one",
                    where, kernel->name, number, kernel->parameter_count - 1);
}

rondo_status rondo_node_params_exchange(const char *where, const rondo_node_params *now, size_t number,
                                        const void *value, const void **args, rondo_node_params *out) {
  if (now->kind != RONDO_NODE_KERNEL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NODE_KIND,
                      "%s: the node is of kind '%s', and only kernels have arguments: pass a kernel node, or set all "
                      "parameters",
                      where, rondo_node_kind_name(now->kind));
  const rondo_kernel *kernel = now->as.kernel.kernel;
  if (number >= kernel->parameter_count) return fail_number(where, kernel, number);
  if (value == NULL) return fail_null(where, "the value is NULL: pass its address, also if it is a pointer");
  memcpy(args, now->as.kernel.args, kernel->parameter_count * sizeof *args);
  args[number] = value;
  *out = *now;
  out->as.kernel.args = args;
  return RONDO_OK;
}

/* A copy's boxes, resolved, and the bytes from the first to one past the last of each. */
typedef struct copy_boxes {
  box_shape destination, source;
  size_t destination_bytes, source_bytes;
} copy_boxes;

static rondo_status check_copy_shape(const char *where, const rondo_copy *copy, copy_boxes *out) {
  *out = (copy_boxes){.destination = destination_box(copy), .source = source_box(copy)};
  RONDO_TRY(check_box(where, BOX_DESTINATION, &out->destination, &out->destination_bytes));
  return check_box(where, BOX_SOURCE, &out->source, &out->source_bytes);
}

static rondo_status check_fill_shape(const char *where, const rondo_fill *fill, size_t *out_bytes) {
  if (fill->element_bytes != 1 && fill->element_bytes != 2 && fill->element_bytes != 4)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: a fill with elements of %" PRIu32 " bytes: 1, 2 and 4 are possible", where,
                      fill->element_bytes);
  box_shape box;
  if (!fill_box(fill, &box))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: a fill of %zu elements of %" PRIu32 " bytes does not fit the address space", where,
                      fill->width, fill->element_bytes);
  RONDO_TRY(check_box(where, BOX_FILL, &box, out_bytes));
  if (box.pitch % fill->element_bytes != 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: a fill with elements of %" PRIu32
                      " bytes and a pitch of %zu: the pitch must be a multiple of %" PRIu32,
                      where, fill->element_bytes, box.pitch, fill->element_bytes);
  return RONDO_OK;
}

static rondo_status check_alloc_shape(const char *where, const rondo_alloc_node *alloc) {
  if (alloc->bytes == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: an allocation of 0 bytes: pass at least 1, or omit the alloc node", where);
  if (alloc->bytes > PTRDIFF_MAX)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: an allocation of %zu bytes does not fit the address space", where, alloc->bytes);
  return RONDO_OK;
}

static rondo_status check_foreign_shape(const char *where, const rondo_foreign_node *foreign) {
  if (foreign->what == NULL) return fail_null(where, "the foreign node has no name of its kind");
  if (foreign->bytes > PTRDIFF_MAX)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: a foreign node '%s' with an allocation of %" PRIu64
                      " bytes, which does not fit the address space",
                      where, foreign->what, foreign->bytes);
  return RONDO_OK;
}

static rondo_status check_operation_form(const char *where, size_t index, const rondo_memory_operation *operation) {
  const bool waits = rondo_operation_waits(operation), flushes = operation->kind == RONDO_OPERATION_FLUSH;
  const bool is_known = operation->kind >= RONDO_OPERATION_WAIT_32 && operation->kind <= RONDO_OPERATION_WRITE_64;
  if (!is_known || operation->condition > (waits ? RONDO_WAIT_NOR : 0))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: memory operation %zu of the kind %d with the condition %d: use RONDO_OPERATION_, and "
                      "RONDO_WAIT_ for waits alone",
                      where, index, (int)operation->kind, (int)operation->condition);
  if (flushes && (operation->address != NULL || operation->value != 0))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: memory operation %zu is a flush with an address or a value: it has neither", where, index);
  const size_t bytes = rondo_operation_bytes(operation);
  if ((uintptr_t)operation->address % (bytes == 0 ? 1 : bytes) != 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: memory operation %zu is on a word of %zu bytes at %p: align the address to %zu", where,
                      index, bytes, operation->address, bytes);
  if (bytes == sizeof(uint32_t) && operation->value > UINT32_MAX)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: memory operation %zu has the value %" PRIu64
                      ", but its word has 4 bytes: use a kind with 64",
                      where, index, operation->value);
  return RONDO_OK;
}

static rondo_status check_operations_form(const char *where, const rondo_memory_operations_node *node) {
  if (node->count == 0 || node->count > RONDO_MAX_MEMORY_OPERATIONS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: %zu memory operations: pass 1 to %d, and use another node for more", where, node->count,
                      RONDO_MAX_MEMORY_OPERATIONS);
  if (node->operations == NULL) return fail_null(where, "the list of memory operations is NULL");
  for (size_t i = 0; i < node->count; i++) RONDO_TRY(check_operation_form(where, i, &node->operations[i]));
  return RONDO_OK;
}

static rondo_status check_semaphores_form(const char *where, const rondo_semaphores_node *node) {
  if (node->count == 0 || node->count > RONDO_MAX_SEMAPHORES)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: %zu semaphores: pass 1 to %d, and use another node for more", where, node->count,
                      RONDO_MAX_SEMAPHORES);
  return node->values == NULL ? fail_null(where, "the list of semaphores is NULL") : RONDO_OK;
}

rondo_status rondo_node_shape_check(const char *where, const rondo_node_params *params) {
  copy_boxes boxes;
  size_t bytes;
  switch (params->kind) {
    case RONDO_NODE_KERNEL:
      return check_kernel_shape(where, &params->as.kernel);
    case RONDO_NODE_COPY:
      return check_copy_shape(where, &params->as.copy, &boxes);
    case RONDO_NODE_FILL:
      return check_fill_shape(where, &params->as.fill, &bytes);
    case RONDO_NODE_CHILD:
      return params->as.child == NULL ? fail_null(where, "the child graph is NULL") : RONDO_OK;
    case RONDO_NODE_ALLOC:
      return check_alloc_shape(where, &params->as.alloc);
    case RONDO_NODE_HOST:
    case RONDO_NODE_EMPTY:
    case RONDO_NODE_EVENT_RECORD:
    case RONDO_NODE_EVENT_WAIT:
    case RONDO_NODE_FREE:
      return RONDO_OK;
    case RONDO_NODE_FOREIGN:
      return check_foreign_shape(where, &params->as.foreign);
    case RONDO_NODE_MEMORY_OPERATIONS:
      return check_operations_form(where, &params->as.memory_operations);
    case RONDO_NODE_SEMAPHORE_SIGNAL:
    case RONDO_NODE_SEMAPHORE_WAIT:
      return check_semaphores_form(where, &params->as.semaphores);
  }
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NODE_KIND,
                    "%s: %d is not a kind of node: use one of RONDO_NODE_", where, (int)params->kind);
}

/* Identities: addresses, functions, devices ----------------------------------------------------------------------- */

static rondo_status check_device(const char *where, const rondo_device *device, const rondo_device *other,
                                 const char *what, const char *name) {
  if (device == other) return RONDO_OK;
  const bool is_named = name[0] != '\0';
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                    "%s: %s%s%s%s%s was made %s: use one that was made %s", where, is_named ? "" : "the ", what,
                    is_named ? " '" : "", name, is_named ? "'" : "",
                    other == NULL ? "without a device" : "for another device",
                    device == NULL ? "without a device" : "for this device");
}

/* The range must not run past the end of the address space. */
static rondo_status check_range(const char *where, const char *what, const void *address, size_t extent) {
  if (address == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "%s: the %s is NULL", where, what);
  if (extent - 1 <= UINTPTR_MAX - (uintptr_t)address) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "%s: the %s of %zu bytes at %p runs past the end of the address space", where, what, extent,
                    address);
}

/* Boxes of different pitches with too many rows to compare are accepted without a check. */
static bool have_common_bytes(const rondo_copy *copy, const copy_boxes *boxes) {
  const box_shape *destination = &boxes->destination, *source = &boxes->source;
  rondo_byte_box to, from;
  return rondo_byte_box_make(copy->dst, destination->width, destination->height, destination->pitch, destination->depth,
                             destination->slice_pitch, &to) &&
         rondo_byte_box_make(copy->src, source->width, source->height, source->pitch, source->depth,
                             source->slice_pitch, &from) &&
         rondo_byte_box_overlap(&to, &from) == RONDO_OVERLAP_YES;
}

static rondo_status check_copy(const char *where, const rondo_copy *copy) {
  copy_boxes boxes;
  RONDO_TRY(check_copy_shape(where, copy, &boxes));
  RONDO_TRY(check_range(where, "destination", copy->dst, boxes.destination_bytes));
  RONDO_TRY(check_range(where, "source", copy->src, boxes.source_bytes));
  if (have_common_bytes(copy, &boxes))
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
        "%s: the destination of %zu bytes at %p and the source of %zu bytes at %p overlap: copy through a "
        "third buffer",
        where, boxes.destination_bytes, copy->dst, boxes.source_bytes, copy->src);
  return RONDO_OK;
}

static rondo_status check_fill(const char *where, const rondo_fill *fill) {
  size_t bytes;
  RONDO_TRY(check_fill_shape(where, fill, &bytes));
  RONDO_TRY(check_range(where, "fill", fill->dst, bytes));
  if ((uintptr_t)fill->dst % fill->element_bytes != 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: a fill with elements of %" PRIu32 " bytes at %p: the address must be a multiple of %" PRIu32,
                      where, fill->element_bytes, fill->dst, fill->element_bytes);
  return RONDO_OK;
}

static rondo_status check_operations(const char *where, const rondo_memory_operations_node *node) {
  RONDO_TRY(check_operations_form(where, node));
  for (size_t i = 0; i < node->count; i++)
    if (node->operations[i].address == NULL && node->operations[i].kind != RONDO_OPERATION_FLUSH)
      return fail_null(where, "the address of a memory operation is NULL");
  return RONDO_OK;
}

static rondo_status check_semaphore(const char *where, const rondo_device *device, const rondo_semaphore_value *value) {
  const rondo_external_semaphore *semaphore = value->semaphore;
  if (semaphore == NULL) return fail_null(where, "a semaphore is NULL");
  RONDO_TRY(check_device(where, device, semaphore->device, "semaphore", semaphore->name));
  if (semaphore->is_timeline || value->value == 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: the binary semaphore '%s' with the value %" PRIu64 ": only timelines have values, pass 0",
                    where, semaphore->name, value->value);
}

static rondo_status check_semaphores(const char *where, const rondo_device *device, const rondo_semaphores_node *node) {
  RONDO_TRY(check_semaphores_form(where, node));
  for (size_t i = 0; i < node->count; i++) RONDO_TRY(check_semaphore(where, device, &node->values[i]));
  return RONDO_OK;
}

static rondo_status check_kernel(const char *where, const rondo_device *device, const rondo_kernel_node *node) {
  RONDO_TRY(check_kernel_shape(where, node));
  return check_device(where, device, node->kernel->device, "kernel", node->kernel->name);
}

static __attribute__((noinline)) rondo_status check_others(const char *where, const rondo_device *device,
                                                           const rondo_node_params *params) {
  switch (params->kind) {
    case RONDO_NODE_COPY:
      return check_copy(where, &params->as.copy);
    case RONDO_NODE_FILL:
      return check_fill(where, &params->as.fill);
    case RONDO_NODE_CHILD:
      RONDO_TRY(rondo_node_shape_check(where, params));
      return check_device(where, device, params->as.child->device, "child graph", params->as.child->name);
    case RONDO_NODE_HOST:
      return params->as.host.function == NULL ? fail_null(where, "the host function is NULL") : RONDO_OK;
    case RONDO_NODE_EVENT_RECORD:
    case RONDO_NODE_EVENT_WAIT:
      return params->as.event == NULL ? fail_null(where, "the event is NULL") : RONDO_OK;
    case RONDO_NODE_MEMORY_OPERATIONS:
      return check_operations(where, &params->as.memory_operations);
    case RONDO_NODE_SEMAPHORE_SIGNAL:
    case RONDO_NODE_SEMAPHORE_WAIT:
      return check_semaphores(where, device, &params->as.semaphores);
    case RONDO_NODE_FREE:
      return params->as.free_address == NULL ? fail_null(where, "the address to free is NULL") : RONDO_OK;
    default:
      return rondo_node_shape_check(where, params);
  }
}

/* Kernels are the most frequent nodes. */
rondo_status rondo_node_params_check(const char *where, const rondo_device *device, const rondo_node_params *params) {
  if (params == NULL) return rondo_refuse_null(where, "the node's parameters");
  return params->kind == RONDO_NODE_KERNEL ? check_kernel(where, device, &params->as.kernel)
                                           : check_others(where, device, params);
}

/* Extents --------------------------------------------------------------------------------------------------------- */

static size_t add_extent(const char *what, const void *address, box_shape box, rondo_extent *out) {
  *out = (rondo_extent){.what = what, .address = address};
  if (address == NULL || box.width == 0 || !resolve_box(&box) || !measure_box(&box, &out->bytes)) return 0;
  return 1;
}

size_t rondo_node_extents(const rondo_node_params *params, rondo_extent out[RONDO_MOST_EXTENTS]) {
  if (params->kind == RONDO_NODE_COPY) {
    const rondo_copy *copy = &params->as.copy;
    const size_t count = add_extent("destination", copy->dst, destination_box(copy), &out[0]);
    return count + add_extent("source", copy->src, source_box(copy), &out[count]);
  }
  box_shape box;
  if (params->kind != RONDO_NODE_FILL || !fill_box(&params->as.fill, &box)) return 0;
  return add_extent("fill", params->as.fill.dst, box, &out[0]);
}

/* Defaults -------------------------------------------------------------------------------------------------------- */

static void resolve_copy(rondo_copy *copy) {
  box_shape destination = destination_box(copy), source = source_box(copy);
  const bool fits = resolve_box(&destination) && resolve_box(&source);
  assert(fits);
  (void)fits;
  copy->height = destination.height;
  copy->depth = destination.depth;
  copy->dst_pitch = destination.pitch;
  copy->src_pitch = source.pitch;
  copy->dst_slice_pitch = destination.slice_pitch;
  copy->src_slice_pitch = source.slice_pitch;
}

static void resolve_fill(rondo_fill *fill) {
  box_shape box;
  const bool fits = fill_box(fill, &box) && resolve_box(&box);
  assert(fits);
  (void)fits;
  fill->height = box.height;
  fill->pitch = box.pitch;
  if (fill->element_bytes < sizeof fill->value) fill->value &= (UINT32_C(1) << (8 * fill->element_bytes)) - 1;
}

void rondo_node_params_resolve(rondo_node_params *params) {
  if (params->kind == RONDO_NODE_KERNEL) {
    params->as.kernel.grid = rondo_grid_resolve(params->as.kernel.grid);
  } else if (params->kind == RONDO_NODE_COPY) {
    resolve_copy(&params->as.copy);
  } else if (params->kind == RONDO_NODE_FILL) {
    resolve_fill(&params->as.fill);
  }
}

/* Comparing ------------------------------------------------------------------------------------------------------- */

/* Compares descriptions as in a dump, because two recordings, or two processes, make kernels of their own. */
static bool same_kernel_description(const rondo_kernel *a, const rondo_kernel *b) {
  if (strcmp(a->name, b->name) != 0 || a->block_threads != b->block_threads) return false;
  if (a->parameter_count != b->parameter_count) return false;
  for (uint32_t i = 0; i < a->parameter_count; i++) {
    const rondo_parameter *x = &a->parameters[i], *y = &b->parameters[i];
    if (x->access != y->access || x->bytes != y->bytes || x->alignment != y->alignment) return false;
  }
  return true;
}

static size_t argument_bytes(const rondo_kernel_node *node, uint32_t index) {
  return node->arg_bytes == NULL ? 0 : node->arg_bytes[index];
}

bool rondo_kernel_same_code(const rondo_kernel *a, const rondo_kernel *b) {
  return a == b || (a->cuda_function != NULL && a->cuda_function == b->cuda_function && same_kernel_description(a, b));
}

static int compare_kernel_nodes(const rondo_kernel_node *a, const rondo_kernel_node *b, bool ignore_addresses) {
  const bool same = a->kernel == b->kernel || (ignore_addresses && same_kernel_description(a->kernel, b->kernel));
  if (!same || a->grid.x != b->grid.x || a->grid.y != b->grid.y || a->grid.z != b->grid.z)
    return RONDO_DIFFERENCE_KERNEL;
  if (!rondo_launch_config_same(a->config, b->config)) return RONDO_DIFFERENCE_KERNEL;
  for (uint32_t i = 0; i < a->kernel->parameter_count; i++) {
    const rondo_parameter *parameter = &a->kernel->parameters[i];
    if (argument_bytes(a, i) != argument_bytes(b, i)) return RONDO_DIFFERENCE_PARAMS;
    if (ignore_addresses && parameter->access != RONDO_ACCESS_SCALAR) continue;
    if (memcmp(a->args[i], b->args[i], parameter->bytes) != 0) return RONDO_DIFFERENCE_PARAMS;
  }
  return 0;
}

static bool same_operations(const rondo_memory_operations_node *a, const rondo_memory_operations_node *b,
                            bool ignore_addresses) {
  if (!rondo_operations_alike(a, b)) return false;
  for (size_t i = 0; i < a->count; i++) {
    const rondo_memory_operation *x = &a->operations[i], *y = &b->operations[i];
    if (x->condition != y->condition || x->value != y->value) return false;
    if (!ignore_addresses && x->address != y->address) return false;
  }
  return true;
}

static bool same_semaphores(const rondo_semaphores_node *a, const rondo_semaphores_node *b, bool ignore_addresses) {
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; i++) {
    if (a->values[i].value != b->values[i].value) return false;
    if (!ignore_addresses && a->values[i].semaphore != b->values[i].semaphore) return false;
  }
  return true;
}

static bool same_text(const char *a, const char *b) { return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0; }

/* Whether the plain fields of two nodes of one kind are the same. Usually all bytes are. */
static bool same_fields(const rondo_node_params *a, const rondo_node_params *b, bool ignore_addresses) {
  const rondo_node_fields fields = rondo_node_fields_of(a->kind);
  if (memcmp(&a->as, &b->as, sizeof a->as) == 0) return true;
  for (size_t i = 0; i < fields.count; i++)
    if (!rondo_node_field_same(&fields.items[i], a, b, ignore_addresses)) return false;
  return true;
}

int rondo_node_params_compare(const rondo_node_params *a, const rondo_node_params *b, bool ignore_addresses) {
  if (a->kind != b->kind) return RONDO_DIFFERENCE_KIND;
  if (a->device != b->device) return RONDO_DIFFERENCE_PARAMS;
  if (a->kind == RONDO_NODE_KERNEL) {
    const int difference = compare_kernel_nodes(&a->as.kernel, &b->as.kernel, ignore_addresses);
    if (difference != 0) return difference;
  }
  if (a->kind == RONDO_NODE_MEMORY_OPERATIONS &&
      !same_operations(&a->as.memory_operations, &b->as.memory_operations, ignore_addresses))
    return RONDO_DIFFERENCE_PARAMS;
  if (rondo_node_names_semaphores(a) && !same_semaphores(&a->as.semaphores, &b->as.semaphores, ignore_addresses))
    return RONDO_DIFFERENCE_PARAMS;
  return same_fields(a, b, ignore_addresses) && same_text(a->name, b->name) ? 0 : RONDO_DIFFERENCE_PARAMS;
}

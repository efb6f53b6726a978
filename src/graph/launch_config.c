/* SPDX-License-Identifier: MIT
 * Launch configurations as data: the table of their fields, and what depends on the type of a field alone.
 */
#include "graph/launch_config.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>

#include "base/hash.h"
#include "graph/kernel.h"

/* CUDA's limits on every architecture. */
enum { MOST_THREADS = 1024, MOST_X = 1024, MOST_Y = 1024, MOST_Z = 64 };

#define FIELD(member, type) \
  { #member, RONDO_CONFIG_##type, offsetof(rondo_launch_config, member) }

const rondo_config_field rondo_config_fields[RONDO_CONFIG_FIELDS] = {FIELD(block, DIMENSIONS),
                                                                     FIELD(shared_bytes, U32)};

static rondo_dimensions dimensions_in(const rondo_launch_config *config, const rondo_config_field *field) {
  return *(const rondo_dimensions *)rondo_config_field_in(config, field);
}

static uint32_t u32_in(const rondo_launch_config *config, const rondo_config_field *field) {
  return *(const uint32_t *)rondo_config_field_in(config, field);
}

bool rondo_config_field_is_zero(const rondo_launch_config *config, const rondo_config_field *field) {
  return field->type == RONDO_CONFIG_DIMENSIONS ? dimensions_in(config, field).x == 0 : u32_in(config, field) == 0;
}

/* Checking --------------------------------------------------------------------------------------------------------- */

static rondo_dimensions resolve(rondo_dimensions size) {
  return (rondo_dimensions){size.x, size.y == 0 ? 1 : size.y, size.z == 0 ? 1 : size.z};
}

/* x = 0 means the default, and then y and z have no meaning. */
static rondo_status check_dimensions(const char *name, const char *what, rondo_dimensions size) {
  if (size.x != 0 || (size.y == 0 && size.z == 0)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "kernel '%s': a %s of 0 x %" PRIu32 " x %" PRIu32
                    ": set x too, or leave all three 0 for the default",
                    name, what, size.y, size.z);
}

static rondo_status check_block(const rondo_kernel *kernel, rondo_dimensions given) {
  RONDO_TRY(check_dimensions(kernel->name, "block", given));
  const rondo_dimensions block = resolve(given);
  if (block.x <= MOST_X && block.y <= MOST_Y && block.z <= MOST_Z && rondo_dimensions_volume(block) <= MOST_THREADS)
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "kernel '%s': a block of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                    " threads, at most %d are possible, %d in x, %d in y and %d in z: use more and smaller blocks",
                    kernel->name, block.x, block.y, block.z, MOST_THREADS, MOST_X, MOST_Y, MOST_Z);
}

rondo_status rondo_launch_config_check(const rondo_kernel_node *node) {
  if (node->config == NULL) return RONDO_OK;
  return check_block(node->kernel, node->config->block);
}

/* Defaults --------------------------------------------------------------------------------------------------------- */

bool rondo_launch_config_resolve(const rondo_kernel_node *node, rondo_launch_config *out) {
  const rondo_launch_config *given = node->config;
  const rondo_dimensions standard = {node->kernel->block_threads, 1, 1};
  *out = (rondo_launch_config){.block = standard};
  if (given == NULL) return false;
  if (given->block.x != 0) out->block = resolve(given->block);
  out->shared_bytes = given->shared_bytes;
  return rondo_launch_config_differs(out, &(const rondo_launch_config){.block = standard});
}

/* Comparing -------------------------------------------------------------------------------------------------------- */

static bool is_field_same(const rondo_config_field *field, const rondo_launch_config *a, const rondo_launch_config *b) {
  if (field->type == RONDO_CONFIG_U32) return u32_in(a, field) == u32_in(b, field);
  const rondo_dimensions x = dimensions_in(a, field), y = dimensions_in(b, field);
  return x.x == y.x && x.y == y.y && x.z == y.z;
}

bool rondo_launch_config_differs(const rondo_launch_config *a, const rondo_launch_config *b) {
  if (a == NULL || b == NULL) return a != b;
  for (size_t i = 0; i < RONDO_CONFIG_FIELDS; i++)
    if (!is_field_same(&rondo_config_fields[i], a, b)) return true;
  return false;
}

uint64_t rondo_launch_config_hash(uint64_t state, const rondo_launch_config *config) {
  if (config == NULL) return state;
  for (size_t i = 0; i < RONDO_CONFIG_FIELDS; i++) {
    const rondo_config_field *field = &rondo_config_fields[i];
    state = rondo_hash_u64(state, i);
    if (field->type == RONDO_CONFIG_U32) {
      state = rondo_hash_u64(state, u32_in(config, field));
      continue;
    }
    const rondo_dimensions size = dimensions_in(config, field);
    state = rondo_hash_u64(rondo_hash_u64(state, (uint64_t)size.x << 32 | size.y), size.z);
  }
  return state;
}

/* SPDX-License-Identifier: MIT
 * Launch configurations as data: the table of their fields, and what depends on the type of a field alone.
 */
#include "graph/launch_config.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "graph/kernel.h"

/* CUDA's limits on every architecture. */
enum { MOST_THREADS = 1024, MOST_X = 1024, MOST_Y = 1024, MOST_Z = 64, MOST_CLUSTER = 16 };

#define FIELD(member, type) \
  { #member, RONDO_CONFIG_##type, offsetof(rondo_launch_config, member) }

const rondo_config_field rondo_config_fields[RONDO_CONFIG_FIELDS] = {
    FIELD(block, DIMENSIONS),   FIELD(shared_bytes, U32),  FIELD(cluster, DIMENSIONS), FIELD(priority, I32),
    FIELD(shared_percent, U32), FIELD(memory_domain, U32), FIELD(cooperative, FLAG),   FIELD(programmatic, FLAG)};

static rondo_dimensions dimensions_in(const rondo_launch_config *config, const rondo_config_field *field) {
  return *(const rondo_dimensions *)rondo_config_field_in(config, field);
}

/* The value of a field that is one number, as bits. */
static uint32_t bits_in(const rondo_launch_config *config, const rondo_config_field *field) {
  const void *value = rondo_config_field_in(config, field);
  uint32_t bits;
  _Static_assert(sizeof(rondo_memory_domain) == sizeof bits, "it is read as a number");
  if (field->type == RONDO_CONFIG_FLAG) return *(const bool *)value;
  memcpy(&bits, value, sizeof bits);
  return bits;
}

bool rondo_config_field_is_zero(const rondo_launch_config *config, const rondo_config_field *field) {
  return field->type == RONDO_CONFIG_DIMENSIONS ? dimensions_in(config, field).x == 0 : bits_in(config, field) == 0;
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

static bool is_multiple(rondo_grid grid, rondo_dimensions of) {
  return grid.x % of.x == 0 && grid.y % of.y == 0 && grid.z % of.z == 0;
}

static rondo_status check_cluster(const rondo_kernel_node *node, rondo_dimensions given) {
  const char *const name = node->kernel->name;
  RONDO_TRY(check_dimensions(name, "cluster", given));
  if (given.x == 0) return RONDO_OK;
  const rondo_dimensions cluster = resolve(given);
  const rondo_grid grid = rondo_grid_resolve(node->grid);
  if (cluster.x > MOST_CLUSTER || cluster.y > MOST_CLUSTER || cluster.z > MOST_CLUSTER ||
      rondo_dimensions_volume(cluster) > MOST_CLUSTER)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "kernel '%s': a cluster of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                      " blocks, at most %d are possible: use smaller clusters",
                      name, cluster.x, cluster.y, cluster.z, MOST_CLUSTER);
  if (is_multiple(grid, cluster)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "kernel '%s': a grid of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                    " blocks is no multiple of its cluster of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                    ": round the grid up, and let the other blocks do nothing",
                    name, grid.x, grid.y, grid.z, cluster.x, cluster.y, cluster.z);
}

static rondo_status check_numbers(const char *name, const rondo_launch_config *config) {
  if (config->shared_percent > 100)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "kernel '%s': shared_percent is %" PRIu32 ": pass 1 to 100, or 0 for the driver's choice", name,
                      config->shared_percent);
  if (config->memory_domain == RONDO_MEMORY_DOMAIN_DEFAULT || config->memory_domain == RONDO_MEMORY_DOMAIN_REMOTE)
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "kernel '%s': memory_domain is %d: use one of RONDO_MEMORY_DOMAIN_", name,
                    (int)config->memory_domain);
}

rondo_status rondo_launch_config_check(const rondo_kernel_node *node) {
  if (node->config == NULL) return RONDO_OK;
  RONDO_TRY(check_block(node->kernel, node->config->block));
  RONDO_TRY(check_cluster(node, node->config->cluster));
  return check_numbers(node->kernel->name, node->config);
}

/* Defaults --------------------------------------------------------------------------------------------------------- */

bool rondo_launch_config_resolve(const rondo_kernel_node *node, rondo_launch_config *out) {
  const rondo_launch_config *given = node->config;
  const rondo_dimensions standard = {node->kernel->block_threads, 1, 1};
  *out = (rondo_launch_config){.block = standard};
  if (given == NULL) return false;
  *out = *given;
  out->block = given->block.x == 0 ? standard : resolve(given->block);
  if (given->cluster.x != 0) out->cluster = resolve(given->cluster);
  return rondo_launch_config_differs(out, &(const rondo_launch_config){.block = standard});
}

/* Comparing -------------------------------------------------------------------------------------------------------- */

static bool is_field_same(const rondo_config_field *field, const rondo_launch_config *a, const rondo_launch_config *b) {
  if (field->type != RONDO_CONFIG_DIMENSIONS) return bits_in(a, field) == bits_in(b, field);
  const rondo_dimensions x = dimensions_in(a, field), y = dimensions_in(b, field);
  return x.x == y.x && x.y == y.y && x.z == y.z;
}

bool rondo_launch_config_differs(const rondo_launch_config *a, const rondo_launch_config *b) {
  if (a == NULL || b == NULL) return a != b;
  if (memcmp(a, b, sizeof *a) == 0) return false; /* usually; bytes between the fields may differ */
  for (size_t i = 0; i < RONDO_CONFIG_FIELDS; i++)
    if (!is_field_same(&rondo_config_fields[i], a, b)) return true;
  return false;
}

static rondo_launch_config attributes_of(const rondo_launch_config *config) {
  rondo_launch_config attributes = {0};
  if (config != NULL) attributes = *config;
  attributes.block = (rondo_dimensions){0};
  attributes.shared_bytes = 0;
  attributes.programmatic = false;
  return attributes;
}

bool rondo_launch_config_same_attributes(const rondo_launch_config *a, const rondo_launch_config *b) {
  const rondo_launch_config of_a = attributes_of(a), of_b = attributes_of(b);
  return !rondo_launch_config_differs(&of_a, &of_b);
}

uint64_t rondo_launch_config_hash(uint64_t state, const rondo_launch_config *config) {
  if (config == NULL) return state;
  for (size_t i = 0; i < RONDO_CONFIG_FIELDS; i++) {
    const rondo_config_field *field = &rondo_config_fields[i];
    if (rondo_config_field_is_zero(config, field)) continue;
    const bool is_one = field->type != RONDO_CONFIG_DIMENSIONS;
    const rondo_dimensions size =
        is_one ? (rondo_dimensions){bits_in(config, field), 0, 0} : dimensions_in(config, field);
    state = rondo_hash_u64(state, i);
    state = rondo_hash_u64(rondo_hash_u64(state, (uint64_t)size.x << 32 | size.y), size.z);
  }
  return state;
}

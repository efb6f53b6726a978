/* SPDX-License-Identifier: MIT
 * Launch configurations as data. A table lists the fields, in the order in which JSON writes them, and the functions
 * that compare, hash, write and read configurations walk over it: a new field is one line there.
 *
 * A configuration is *resolved* if its block and cluster have no zeros that mean defaults. NULL is the default, and a
 * resolved configuration is never the default. Nodes of graphs contain resolved ones. Resolving is idempotent, so a
 * driver may resolve what it gets.
 *
 * Threads: any. Nothing here allocates or keeps state.
 */
#ifndef RONDO_GRAPH_LAUNCH_CONFIG_H
#define RONDO_GRAPH_LAUNCH_CONFIG_H

#include <rondo/graph.h>

#include "base/error.h"

typedef enum rondo_config_type {
  RONDO_CONFIG_DIMENSIONS,
  RONDO_CONFIG_U32, /* or an enumeration */
  RONDO_CONFIG_I32,
  RONDO_CONFIG_FLAG
} rondo_config_type;

typedef struct rondo_config_field {
  const char *name; /* in JSON */
  rondo_config_type type;
  size_t offset;
} rondo_config_field;

#define RONDO_CONFIG_FIELDS 8
extern const rondo_config_field rondo_config_fields[RONDO_CONFIG_FIELDS];

static inline void *rondo_config_field_at(rondo_launch_config *config, const rondo_config_field *field) {
  return (char *)config + field->offset;
}
static inline const void *rondo_config_field_in(const rondo_launch_config *config, const rondo_config_field *field) {
  return (const char *)config + field->offset;
}
bool rondo_config_field_is_zero(const rondo_launch_config *config, const rondo_config_field *field);

/* INVALID_ARGUMENT if no device could launch the kernel so: what holds for every GPU. */
RONDO_MUST_USE rondo_status rondo_launch_config_check(const rondo_kernel_node *node);

/* Fills in the defaults of the node's configuration, which has passed the check. False if it is the default: then *out
 * has the kernel's block, and all else is zero. */
bool rondo_launch_config_resolve(const rondo_kernel_node *node, rondo_launch_config *out);

/* Whether two resolved configurations are the same. NULL is the default. */
bool rondo_launch_config_differs(const rondo_launch_config *a, const rondo_launch_config *b);
static inline bool rondo_launch_config_same(const rondo_launch_config *a, const rondo_launch_config *b) {
  return a == b || !rondo_launch_config_differs(a, b);
}

/* Whether two resolved configurations give a node the same attributes of the driver. Other blocks and shared memory are
 * parameters, and `programmatic` changes edges. */
bool rondo_launch_config_same_attributes(const rondo_launch_config *a, const rondo_launch_config *b);

/* Adds a resolved configuration to a hash. The default adds nothing. */
uint64_t rondo_launch_config_hash(uint64_t state, const rondo_launch_config *config);

/* Whether a launch needs more than a block and shared memory: an attribute of the driver. */
static inline bool rondo_launch_config_has_attributes(const rondo_launch_config *config) {
  return config->cluster.x != 0 || config->priority != 0 || config->shared_percent != 0 ||
         config->memory_domain != RONDO_MEMORY_DOMAIN_DEFAULT || config->cooperative || config->programmatic;
}

static inline uint64_t rondo_dimensions_volume(rondo_dimensions size) { return (uint64_t)size.x * size.y * size.z; }

#endif

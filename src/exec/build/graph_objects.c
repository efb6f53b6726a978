/* SPDX-License-Identifier: MIT
 * The public calls of user objects: they check arguments; the work is in graph/user_object.h. Retired objects, which
 * execs leave, are in device/retired_objects.h. Threads: objects any, graphs one at a time.
 */
#include <rondo/user_object.h>

#include "exec/api_check.h"
#include "graph/graph.h"
#include "graph/user_object.h"

rondo_status rondo_user_object_create(void *user, void (*release)(void *user), uint32_t count,
                                      const rondo_allocator *allocator, rondo_user_object **out_object) {
  const char *const call = "rondo_user_object_create";
  rondo_allocator resolved;
  RONDO_TRY(rondo_check_call(call, "out_object", out_object));
  *out_object = NULL;
  if (release == NULL) return rondo_refuse_null(call, "release");
  RONDO_TRY(rondo_fail_context(rondo_allocator_resolve(allocator, &resolved), "%s", call));
  return rondo_user_object_make(call, &resolved, user, release, count, out_object);
}

rondo_status rondo_user_object_retain(rondo_user_object *object, uint32_t count) {
  const char *const call = "rondo_user_object_retain";
  RONDO_TRY(rondo_check_call(call, "the object", object));
  return rondo_user_object_add(call, object, count);
}

rondo_status rondo_user_object_release(rondo_user_object *object, uint32_t count) {
  const char *const call = "rondo_user_object_release";
  RONDO_TRY(rondo_check_call(call, "the object", object));
  return rondo_user_object_remove(call, object, count);
}

static rondo_status check(const char *call, const rondo_graph *graph, const rondo_user_object *object) {
  RONDO_TRY(rondo_check_call(call, "the graph", graph));
  RONDO_TRY(rondo_device_require_own(call, graph->device));
  return object == NULL ? rondo_refuse_null(call, "the object") : RONDO_OK;
}

rondo_status rondo_graph_retain_object(rondo_graph *graph, rondo_user_object *object, uint32_t count, bool give) {
  const char *const call = "rondo_graph_retain_object";
  RONDO_TRY(check(call, graph, object));
  return rondo_object_list_add(call, &graph->allocator, &graph->objects, object, count, give);
}

rondo_status rondo_graph_release_object(rondo_graph *graph, rondo_user_object *object, uint32_t count) {
  const char *const call = "rondo_graph_release_object";
  RONDO_TRY(check(call, graph, object));
  return rondo_object_list_remove(call, &graph->objects, object, count);
}

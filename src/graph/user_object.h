/* SPDX-License-Identifier: MIT
 * User objects, and the lists by which graphs, captures and execs retain them. The caller's references and those of
 * lists are counted apart, so that a caller cannot release what a list needs. An entry of a list counts once, however
 * many references it has.
 *
 * Threads: objects any, lists as their owners. Releasing the last reference calls the user's function, so no lock may
 * be held then.
 */
#ifndef RONDO_GRAPH_USER_OBJECT_H
#define RONDO_GRAPH_USER_OBJECT_H

#include <rondo/user_object.h>

#include "graph/graph_internal.h"

/* Make an object; add and remove references of the caller. Errors as the public calls; they name `call`. */
RONDO_MUST_USE rondo_status rondo_user_object_make(const char *call, const rondo_allocator *allocator, void *user,
                                                   void (*release)(void *user), uint32_t count,
                                                   rondo_user_object **out);
RONDO_MUST_USE rondo_status rondo_user_object_add(const char *call, rondo_user_object *object, uint32_t count);
RONDO_MUST_USE rondo_status rondo_user_object_remove(const char *call, rondo_user_object *object, uint32_t count);

/* Adds references to a list; with `give` they are the caller's. */
RONDO_MUST_USE rondo_status rondo_object_list_add(const char *call, const rondo_allocator *allocator,
                                                  rondo_object_list *list, rondo_user_object *object, uint32_t count,
                                                  bool give);
/* Removes references from a list. */
RONDO_MUST_USE rondo_status rondo_object_list_remove(const char *call, rondo_object_list *list,
                                                     rondo_user_object *object, uint32_t count);
/* Copies a list into an empty one. */
RONDO_MUST_USE rondo_status rondo_object_list_copy(const rondo_allocator *allocator, rondo_object_list *to,
                                                   const rondo_object_list *from);
/* Adds what the graph and its children retain. After a failure, the list has some of it. */
RONDO_MUST_USE rondo_status rondo_object_list_gather(const rondo_allocator *allocator, rondo_object_list *list,
                                                     const rondo_graph *graph);
/* Releases all references. */
void rondo_object_list_free(const rondo_allocator *allocator, rondo_object_list *list);

/* Whether the list has an object with this `user`. */
bool rondo_object_list_has(const rondo_object_list *list, const void *user);
/* Whether the graph or a child retains objects. */
bool rondo_graph_has_objects(const rondo_graph *graph);

/* Asserts the invariant. */
void rondo_object_list_check(const rondo_object_list *list);

#endif

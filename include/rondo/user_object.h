/* SPDX-License-Identifier: MIT
 * User objects: memory or handles of the program that graphs use, such as the `user` of a host function, the host
 * memory of a copy, or a library's workspace. Graphs retain them. They are released with the last reference, so nobody
 * has to know when that is.
 *
 * References are counted. The creator of an object has some; each graph, clone and child graph has its own; so has each
 * exec, until the last launch that may use the object has ended. An exec gets the objects of its graph when it is
 * created. After an update (rondo_exec_update, rondo_exec_set_params of a child node) it has those of the new graph
 * instead. A capture retains an object in the graph of rondo_capture_info (<rondo/capture.h>), also in the body of a
 * tree's function that is recorded, and in a region.
 *
 * `release` is called once, when no reference is left, in a call of Rondo by a thread of the program, or by a thread of
 * a session that runs the program's functions: never on a thread that runs host functions or belongs to a driver, and
 * never while a lock of the library is held. It is
 * - the call that releases the last reference: rondo_user_object_release, rondo_graph_release_object,
 *   rondo_graph_destroy, or whatever else destroys a graph, such as removing a child node; or
 * - if that was an exec: a later call on the same device that finds its launches ended: any call that makes, updates or
 *   destroys an exec, or waits for a stream or the device, also inside trees, regions, recordings and executors. Unless
 *   another thread looks at the same moment, rondo_stream_synchronize and rondo_device_synchronize find the launches
 *   that they have waited for. What is left when the device closes is released by rondo_device_close.
 * `release` may destroy objects of Rondo, except for the device, but must not wait or enqueue work, and must not use
 * what the call is about. The thread's last error stays.
 *
 * An object is thread-safe. Errors are listed at each call; NULL is refused with INVALID_ARGUMENT/NULL_ARGUMENT, and
 * calls in host functions with INVALID_STATE/IN_CALLBACK.
 */
#ifndef RONDO_USER_OBJECT_H
#define RONDO_USER_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include <rondo/allocator.h>
#include <rondo/graph.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_user_object rondo_user_object;

/* Creates an object with `count` references of the caller. `user` is passed to `release`, and may be NULL. The object
 * itself takes its memory from `allocator`, which may be NULL (<rondo/allocator.h>). Errors: INVALID_ARGUMENT with
 * BAD_SIZE (a count of 0); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_user_object_create(void *user, void (*release)(void *user), uint32_t count,
                                                               const rondo_allocator *allocator,
                                                               rondo_user_object **out_object);

/* Adds and removes references of the caller. Removing the last reference of all destroys the object. Errors:
 * INVALID_ARGUMENT with BAD_SIZE (a count of 0), OUT_OF_RANGE (the caller has fewer references: those of graphs are
 * not the caller's); LIMIT_EXCEEDED/OUT_OF_RANGE (more than 2^32 - 1 references). Nothing changes then. */
RONDO_API RONDO_MUST_USE rondo_status rondo_user_object_retain(rondo_user_object *object, uint32_t count);
RONDO_API RONDO_MUST_USE rondo_status rondo_user_object_release(rondo_user_object *object, uint32_t count);

/* Adds references of the graph. With `give`, they are the caller's, which has as many fewer; otherwise they are
 * additional. Clones, children and execs that are made later retain the object too, those made before do not.
 * Thread-compatible with respect to the graph. Errors: INVALID_ARGUMENT with BAD_SIZE (a count of 0), OUT_OF_RANGE
 * (`give`, and the caller has fewer references); LIMIT_EXCEEDED/OUT_OF_RANGE; OUT_OF_MEMORY. Nothing changes then. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_retain_object(rondo_graph *graph, rondo_user_object *object,
                                                                uint32_t count, bool give);

/* Removes references of the graph; its clones, children and execs keep theirs. Errors: INVALID_ARGUMENT with BAD_SIZE
 * (a count of 0), OUT_OF_RANGE (the graph has fewer references to the object, or none). Nothing changes then.
 * Thread-compatible with respect to the graph. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_release_object(rondo_graph *graph, rondo_user_object *object,
                                                                 uint32_t count);

RONDO_EXTERN_C_END

#endif

/* SPDX-License-Identifier: MIT
 * Profiles: planned addresses for graph memory. A graph gives each alloc node its address when the node is created,
 * before the later nodes are known. So it can only reuse memory that is free by then, and uses more memory than the
 * work needs. If the same work ran or was recorded before, all sizes and their order are known. A profile contains this
 * knowledge as a plan (<rondo/plan.h>), and a graph that is created with it gives its alloc nodes the planned
 * addresses.
 *
 *   rondo_profile_begin(stream);
 *   ... run the work: rondo_malloc_async, rondo_launch, rondo_free_async ...
 *   rondo_profile_end(stream, NULL, &profile);
 *   rondo_capture_begin_with(stream, &(rondo_capture_options){RONDO_CAPTURE_OPTIONS_INIT, .profile = profile});
 *
 * Alternatively, rondo_instantiate can choose the addresses (rondo_instantiate_options.relocate).
 */
#ifndef RONDO_PROFILE_H
#define RONDO_PROFILE_H

#include <rondo/graph.h>
#include <rondo/plan.h>
#include <rondo/stream.h>

RONDO_EXTERN_C_BEGIN

/* Plans the memory of a graph's own alloc nodes, in the order of their numbers; child graphs are not included. Two
 * allocations share bytes if the free node of one comes before the alloc node of the other. An allocation that the
 * graph does not free shares no bytes with later ones. The graph may be destroyed afterwards. It may be only data, if
 * it has its addresses. plan_options may be NULL. The caller destroys the profile. Thread-compatible with respect to
 * the graph. Errors: INVALID_ARGUMENT (NULL; a graph read from a dump without addresses), INVALID_GRAPH/CYCLE,
 * INVALID_LIFETIME/NOT_ALLOCATED (a free node before its alloc node), OUT_OF_MEMORY, LIMIT_EXCEEDED, IN_CALLBACK, those
 * of rondo_plan_make for its options. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_create(const rondo_graph *graph,
                                                           const rondo_plan_options *plan_options,
                                                           rondo_profile **out_profile);

/* Begins a profile of work that runs. Until the profile ends, it logs the sizes, order and streams of allocations by
 * rondo_malloc_async and of frees by rondo_free_async. Streams that wait for an event which was recorded on the stream
 * after the beginning take part from then on, as in a capture; they need not be joined again. A stream takes part in
 * one profile: its own, otherwise the one that began first. Captured work of the stream is not part of the profile.
 * Logging takes at most 64 MiB of host memory, and never makes a call fail. Destroying the stream ends the profile
 * without a result. Thread-compatible with respect to the stream; other threads may use the streams that take part.
 * Errors: INVALID_ARGUMENT; INVALID_STATE with ALREADY_PROFILING, ALREADY_CAPTURING; UNSUPPORTED (a device without
 * memory pools); OUT_OF_MEMORY, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_begin(rondo_stream *stream);

/* Ends the profile and plans the logged allocations, as rondo_profile_create does for a recording of the same calls:
 * the same allocations in the same order, and the same lower bound. With several streams the peak may differ a little,
 * because a recording has more nodes to express the order. Two allocations share bytes if one was freed before the
 * other was made, on the same stream, or if the other's stream had by then waited for an event after the free. An
 * allocation shares no bytes with later ones if it is not freed before the end, or is freed by rondo_free, on a
 * stream that takes no part, or on a stream that does not come after it. Frees of older memory, rondo_malloc and
 * launched graphs do not count. The host need not wait for the work. plan_options may be NULL. The caller destroys the
 * profile. Threads as rondo_profile_begin; a simultaneous call of another thread on a stream that takes part may be
 * logged or not. Errors after which the profile continues: INVALID_ARGUMENT, IN_CALLBACK and those of a struct_size.
 * Without a profile: INVALID_STATE/NOT_PROFILING. Errors after which the profile has ended: OUT_OF_MEMORY (also if
 * there was no memory to log a call), LIMIT_EXCEEDED (more than a million allocations and frees), those of
 * rondo_plan_make for options. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_end(rondo_stream *stream, const rondo_plan_options *plan_options,
                                                        rondo_profile **out_profile);

/* Destroys a profile. Graphs that were created with it keep what they need. NULL is fine. Thread-safe. */
RONDO_API void rondo_profile_destroy(rondo_profile *profile);

typedef struct rondo_profile_info {
  uint32_t struct_size;
  bool optimal;         /* proven: no plan has a lower peak */
  size_t allocations;   /* number of planned allocations */
  uint64_t peak;        /* bytes of the planned arena */
  uint64_t lower_bound; /* maximum number of bytes that are live at the same time: the minimum for any plan */
  uint64_t sum;         /* bytes of all allocations without sharing */
  uint64_t placed;      /* alloc nodes that got their planned address so far, in all graphs created with the profile */
  uint64_t departures;  /* graphs that departed from it so far (see rondo_graph_options.profile) */
} rondo_profile_info;

/* Reads the figures of the plan and of its use. Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_get_info(const rondo_profile *profile,
                                                             rondo_profile_info *out_info);

RONDO_EXTERN_C_END

#endif

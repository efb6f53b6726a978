/* SPDX-License-Identifier: MIT
 * Profiles: planned addresses for graph memory. A graph gives each alloc node its address when the node is made, before
 * it is known what will follow; so it can only use again what is free by then, and holds more than the work needs. When
 * the same work ran or was recorded before, all sizes and their order are known: a profile is that knowledge with a
 * plan (<rondo/plan.h>), and a graph made with it gives its alloc nodes the planned addresses.
 *
 *   rondo_profile_begin(stream);
 *   ... the work, which runs: rondo_malloc_async, rondo_launch, rondo_free_async ...
 *   rondo_profile_end(stream, NULL, &profile);
 *   rondo_capture_begin_with(stream, &(rondo_capture_options){RONDO_CAPTURE_OPTIONS_INIT, .profile = profile});
 *
 * The other way to the least memory is to let instantiating choose the addresses (rondo_instantiate_options.relocate).
 */
#ifndef RONDO_PROFILE_H
#define RONDO_PROFILE_H

#include <rondo/graph.h>
#include <rondo/plan.h>
#include <rondo/stream.h>

RONDO_EXTERN_C_BEGIN

/* Plans the memory of a graph's own alloc nodes, in the order of their numbers; children keep to their own graphs. Two
 * allocations share bytes when the free node of one comes before the alloc node of the other; one that the graph does
 * not free shares with none after it. The graph may be destroyed afterwards; it may be one of data only that has its
 * addresses. plan_options may be NULL. The caller destroys the profile. Thread-compatible with respect to the graph.
 * Errors: INVALID_ARGUMENT (NULL; a graph read from a dump without addresses), INVALID_GRAPH/CYCLE,
 * INVALID_LIFETIME/NOT_ALLOCATED (a free node before its alloc node), OUT_OF_MEMORY, LIMIT_EXCEEDED, IN_CALLBACK, those
 * of rondo_plan_make for its options. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_create(const rondo_graph *graph,
                                                           const rondo_plan_options *plan_options,
                                                           rondo_profile **out_profile);

/* Begins a profile of work that runs: until the end, the sizes, order and streams of what rondo_malloc_async allocates
 * and rondo_free_async frees are noted. Streams that wait for an event recorded on the stream after the begin take part
 * from then on, as in a capture, and need not be joined again. A stream takes part in one profile: its own, else the
 * one begun first. What the stream captures meanwhile is no part of it. Noting takes at most 64 MiB of host memory, and
 * no call fails for it. Destroying the stream ends the profile without making one. Thread-compatible with respect to
 * the stream; the streams that take part may be used by other threads. Errors: INVALID_ARGUMENT; INVALID_STATE with
 * ALREADY_PROFILING, ALREADY_CAPTURING; UNSUPPORTED (a device without memory pools); OUT_OF_MEMORY, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_begin(rondo_stream *stream);

/* Ends it and plans what was noted, as rondo_profile_create does for a recording of the same calls: the same
 * allocations in the same order, and the same lower bound; of several streams the peak may differ by a little, because
 * a recording has more nodes to say the order with. Two allocations share bytes when one was freed on the other's
 * stream before the other was made, or on a stream that its stream comes behind by events. An allocation that is not
 * freed before the end, or freed by rondo_free or on a stream that takes no part or does not come behind it, shares
 * with none after it; frees of memory from before the begin, rondo_malloc and launched graphs do not count. The host
 * need not wait for the work. plan_options may be NULL. The caller destroys the profile. Threads as
 * rondo_profile_begin; a call that another thread makes meanwhile on a stream that takes part may be noted or not.
 * Errors: INVALID_ARGUMENT, IN_CALLBACK and those of a struct_size: the profile goes on; INVALID_STATE/NOT_PROFILING;
 * with which the profile is over: OUT_OF_MEMORY (also when there was none to note a call), LIMIT_EXCEEDED (more than a
 * million mallocs and frees), those of rondo_plan_make for its options. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_end(rondo_stream *stream, const rondo_plan_options *plan_options,
                                                        rondo_profile **out_profile);

/* Graphs made with it keep what they need of it. NULL is fine. Thread-safe. */
RONDO_API void rondo_profile_destroy(rondo_profile *profile);

typedef struct rondo_profile_info {
  uint32_t struct_size;
  bool optimal;         /* proven: no plan has a lower peak */
  size_t allocations;   /* planned */
  uint64_t peak;        /* bytes of the arena that hold them all */
  uint64_t lower_bound; /* most bytes live at once: no plan needs less */
  uint64_t sum;         /* of all allocations: what they take without sharing */
  uint64_t placed;      /* alloc nodes that got their planned address, in all graphs made with the profile so far */
  uint64_t departures;  /* graphs that departed from it so far (see rondo_graph_options.profile) */
} rondo_profile_info;

/* Figures of the plan and of its use, as they are now. Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_get_info(const rondo_profile *profile,
                                                             rondo_profile_info *out_info);

RONDO_EXTERN_C_END

#endif

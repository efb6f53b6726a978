/* SPDX-License-Identifier: MIT
 * Rondo: records work for a GPU or a CPU once, as a graph with its memory planned, and replays it.
 *
 * Conventions of all headers:
 * - Ownership. `create` and `instantiate` give the caller an object that `destroy` (or `close`) frees; accessors lend.
 *   NULL is accepted by destroy. Text and structs handed in are copied unless said otherwise.
 * - Options. A struct's zero is the default; begin it with its INIT macro. struct_size 0 means the size that the
 *   library itself was built with: for programs that are built together with it. Structs only ever grow at their end;
 *   one longer than the library knows is refused if its tail is not zero. Versions 0.x each have a binary interface of
 *   their own: a struct that is shorter than the library's is refused, before the call does anything. Of a longer
 *   struct that the library fills, the tail is not touched. Reserved fields must be zero.
 * - Out-parameters come last and are set to NULL or 0 before anything else.
 * - Errors. See <rondo/status.h>. No call prints, exits or aborts.
 * - Threads. "Thread-safe": any threads at once. "Thread-compatible": one thread at a time per object, different
 *   objects are independent. "Thread-bound": the thread that began it.
 * - Loading. A program may load the library while it runs (dlopen), and unload it when all devices are closed, the
 *   trace's file too, no thread is inside a call, and threads in which a call failed have been joined; of those that
 *   go on, a kilobyte each is not freed.
 */
#ifndef RONDO_H
#define RONDO_H

#include <rondo/allocator.h>
#include <rondo/audit.h>
#include <rondo/callables.h>
#include <rondo/capture.h>
#include <rondo/checkpoint.h>
#include <rondo/collective.h>
#include <rondo/device.h>
#include <rondo/exec.h>
#include <rondo/executor.h>
#include <rondo/feed.h>
#include <rondo/files.h>
#include <rondo/gain.h>
#include <rondo/graph.h>
#include <rondo/kernel.h>
#include <rondo/log.h>
#include <rondo/memory.h>
#include <rondo/operators.h>
#include <rondo/patch.h>
#include <rondo/placement.h>
#include <rondo/plan.h>
#include <rondo/profile.h>
#include <rondo/program.h>
#include <rondo/random.h>
#include <rondo/recording.h>
#include <rondo/report.h>
#include <rondo/session.h>
#include <rondo/sizes.h>
#include <rondo/status.h>
#include <rondo/stream.h>
#include <rondo/trace.h>
#include <rondo/tree.h>
#include <rondo/type.h>
#include <rondo/verify.h>
#include <rondo/version.h>
#include <rondo/weights.h>

#endif

/* SPDX-License-Identifier: MIT
 * Rondo records work for a GPU or a CPU once, as a graph with planned memory, and replays it.
 *
 * Conventions of all headers:
 * - Ownership. `create` and `instantiate` return an object that the caller frees with `destroy` (or `close`), which
 *   accepts NULL. Other functions return pointers that the object owns. Strings and structs that are passed in are
 *   copied unless stated otherwise.
 * - Options. Zero is the default of every field; initialize a struct with its INIT macro. struct_size 0 means the size
 *   with which the library was built, for programs that are built together with it. Structs only grow at their end. A
 *   struct that is longer than the library's is refused if its tail is not zero. Each version 0.x has its own binary
 *   interface: a struct that is shorter than the library's is refused before the call does anything. If the library
 *   fills a longer struct, it does not touch the tail. Reserved fields must be zero.
 * - Out-parameters come last, and are set to NULL or 0 first.
 * - Errors. See <rondo/status.h>. No call prints, exits or aborts.
 * - Threads. "Thread-safe": any threads at the same time. "Thread-compatible": one thread at a time for each object;
 *   different objects are independent. "Thread-bound": only the thread that began it.
 * - Components. The core, librondo.so, has graphs, memory, plans, execs and trees. The header of another function says
 *   at the end of its head which component it belongs to: for `Component: rondo-tensor`, link with librondo_tensor.so,
 *   which is CMake's rondo::tensor and pkg-config's rondo-tensor. This header includes all headers of the core, of
 *   rondo-tensor and of rondo-session that are installed. All components of a program must be of one release: with
 *   another one's, the dynamic linker refuses to start it.
 * - Loading. A program may load the library at run time (dlopen). It may unload it when all devices and the trace's
 *   file are closed, no thread is inside a call, and all threads in which a call failed have been joined. Each
 *   such thread that continues keeps about one kilobyte, which is not freed.
 */
#ifndef RONDO_H
#define RONDO_H

#include <rondo/access.h>
#include <rondo/allocator.h>
#include <rondo/callables.h>
#include <rondo/capture.h>
#include <rondo/collective.h>
#include <rondo/collective_engine.h>
#include <rondo/device.h>
#include <rondo/exec.h>
#include <rondo/executor.h>
#include <rondo/external_semaphore.h>
#include <rondo/files.h>
#include <rondo/gain.h>
#include <rondo/graph.h>
#include <rondo/kernel.h>
#include <rondo/log.h>
#include <rondo/memory.h>
#include <rondo/native_graph.h>
#include <rondo/patch.h>
#include <rondo/plan.h>
#include <rondo/profile.h>
#include <rondo/random.h>
#include <rondo/recording.h>
#include <rondo/region.h>
#include <rondo/report.h>
#include <rondo/status.h>
#include <rondo/stream.h>
#include <rondo/trace.h>
#include <rondo/tree.h>
#include <rondo/type.h>
#include <rondo/user_object.h>
#include <rondo/verify.h>
#include <rondo/version.h>

/* Components that are not installed have no headers. */
#if __has_include(<rondo/program.h>)
#include <rondo/checkpoint.h>
#include <rondo/data_parallel.h>
#include <rondo/feed.h>
#include <rondo/operators.h>
#include <rondo/placement.h>
#include <rondo/program.h>
#include <rondo/quantized.h>
#include <rondo/user_operator.h>
#include <rondo/weights.h>
#endif
#if __has_include(<rondo/session.h>)
#include <rondo/audit.h>
#include <rondo/session.h>
#include <rondo/sizes.h>
#endif
#if __has_include(<rondo/onnx.h>)
#include <rondo/onnx.h>
#endif

#endif

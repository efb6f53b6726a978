/* SPDX-License-Identifier: MIT
 * Patches: launch an exec with its input buffers at other addresses, without copying them.
 *
 * A patch set is created for an exec and a list of inputs. It knows the *sites* of each input: the positions in the
 * parameters of nodes, including those of child graphs, that hold an address in the input, and the offset from its
 * beginning. A launch names the current address of each input. The sites of inputs that moved get the new addresses,
 * which travel with the launch: launches in flight keep theirs. A patch stays in effect until the next patch, also for
 * rondo_exec_launch.
 *
 * Sites are found in two ways.
 * - By declaration: pointer parameters of kernels (RONDO_READS, RONDO_WRITES, RONDO_UPDATES), copies and fills. A word
 *   of 8 bytes in a scalar parameter, or the user pointer of a host function, is *suspected* if it points into an
 *   input, and is never patched.
 * - By comparing recordings (rondo_patch_options.moved, .again): the same work is captured with all inputs at other
 *   addresses, and once more with the inputs at the original addresses. A word that moved by the same distance as an
 *   input, and is equal in both recordings with the original addresses, is a site of that input, whatever its parameter
 *   was declared as. This finds the addresses in kernels of libraries. A word of a library's kernel that differs
 *   between the two recordings with the original addresses is noise in bytes that were never set, and is ignored. Any
 *   other word that changed and is not an address is a *frozen* value: the exec keeps the value of the first recording.
 * Neither way finds addresses that are stored in memory (arrays of pointers) or that host functions keep.
 *
 * An input's new address must differ from that in the exec by a multiple of RONDO_PATCH_ALIGNMENT, because kernels are
 * chosen by alignment; otherwise copy the input. The new buffer must have as many bytes, and outlive the launch.
 */
#ifndef RONDO_PATCH_H
#define RONDO_PATCH_H

#include <rondo/exec.h>

RONDO_EXTERN_C_BEGIN

#define RONDO_PATCH_ALIGNMENT 256

typedef struct rondo_patch_set rondo_patch_set;

/* An input. Inputs must not overlap. */
typedef struct rondo_patch_input {
  const char *name;    /* for messages; copied; NULL = its number */
  const void *address; /* its current address in the exec */
  size_t bytes;        /* at least 1 */
  const void *moved;   /* its address in rondo_patch_options.moved, not the exec's; NULL without such a graph */
} rondo_patch_input;

typedef struct rondo_patch_options {
  uint32_t struct_size;     /* RONDO_PATCH_OPTIONS_INIT sets it; 0 means the library's own */
  const rondo_graph *moved; /* the exec's work, recorded with all inputs at other addresses; NULL = by declaration */
  const rondo_graph *again; /* ... recorded once more with the exec's addresses; NULL = noise is not detected. Needs
                               `moved` */
} rondo_patch_options;
#define RONDO_PATCH_OPTIONS_INIT .struct_size = sizeof(rondo_patch_options)

typedef enum rondo_patch_finding_kind {
  RONDO_PATCH_SUSPECTED = 1, /* points into an input, but is not declared as an address, or is work of a
                                library with unknown addresses: the input is not patched */
  RONDO_PATCH_FIXED = 2,     /* is an address in an input, and cannot be changed: the input is not patched */
  RONDO_PATCH_FROZEN = 3     /* changed between the recordings and is not an address: the exec keeps the first value */
} rondo_patch_finding_kind;

#define RONDO_PATCH_NO_PARAMETER UINT32_MAX
#define RONDO_PATCH_NO_INPUT UINT32_MAX

/* A reason why an input cannot be patched, or a value that may be wrong. */
typedef struct rondo_patch_finding {
  uint32_t struct_size;
  rondo_patch_finding_kind kind;
  rondo_node node;        /* of the graph that the exec was created from, or of a child graph in it */
  uint32_t parameter;     /* of a kernel; RONDO_PATCH_NO_PARAMETER for other nodes */
  uint32_t offset, bytes; /* of the value in that parameter */
  uint32_t input;         /* RONDO_PATCH_NO_INPUT for frozen values */
  uint64_t value;         /* in the exec; its first 8 bytes */
  uint64_t moved_value;   /* in the recording `moved`; equal to `value` without one */
  const char *message;    /* the complete finding as text, with the fix; valid as long as the set */
} rondo_patch_finding;

typedef struct rondo_patch_input_info {
  uint32_t struct_size;
  const char *name;    /* valid as long as the set */
  const void *address; /* of the next launch, as far as this set knows */
  size_t bytes;
  uint32_t sites, nodes; /* number of sites, and of nodes that have them */
  bool is_written;       /* by the declared access of parameters */
  bool is_patchable;     /* nothing of it is suspected or fixed */
} rondo_patch_input_info;

typedef struct rondo_patch_info {
  uint32_t struct_size;
  uint32_t inputs, sites;
  uint32_t findings, found; /* how many can be read, at most 256; and how many there are */
  uint32_t noise;           /* words of libraries' kernels that are ignored as noise */
  uint64_t patched;         /* inputs that launches have patched so far */
  uint64_t host_bytes;      /* host memory of the set */
} rondo_patch_info;

/* Finds the sites of the inputs and creates a patch set, which becomes the exec's current one. An input without a site
 * is allowed: no node has its address. options may be NULL. The recordings must be the same work as the exec, node by
 * node: the same topology, kinds, kernels by name, grids, and sizes of copies and fills. They are read during the call.
 * The caller destroys the set, before or after the exec. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_SIZE,
 * OUT_OF_RANGE (inputs overlap), BAD_OPTIONS (an input's address in `moved` is missing, or there is one without such a
 * graph), MISALIGNED, OTHER_DEVICE; UPDATE_REFUSED with TOPOLOGY_CHANGED, NODE_KIND_CHANGED, FUNCTION_CHANGED or
 * PARAMETERS_CHANGED (a recording of other work, naming the node); INVALID_STATE (a stream captures into a recording;
 * the exec does not run, as rondo_exec_update failed); OUT_OF_MEMORY. Thread-compatible, as the exec. */
RONDO_API RONDO_MUST_USE rondo_status rondo_patch_set_create(rondo_exec *exec, const rondo_patch_input *inputs,
                                                             size_t count, const rondo_patch_options *options,
                                                             rondo_patch_set **out_set);

/* Destroys a patch set. The exec keeps its current addresses. NULL is fine. */
RONDO_API void rondo_patch_set_destroy(rondo_patch_set *set);

/* Launches the exec with input i at addresses[i]; NULL keeps the address of the last launch. Otherwise as
 * rondo_exec_launch. A stream that captures gets a child graph with these addresses, and the exec keeps its own.
 * Addresses that change are checked (rondo_patch_set_check). A warm launch does not allocate and takes no lock, while
 * the new addresses are in allocations of rondo_malloc or rondo_malloc_async.
 * Errors: as rondo_exec_launch and rondo_patch_set_check; INVALID_STATE/STALE_PATCHES: an update or
 * rondo_exec_set_params gave a site another address, another set is the exec's current one, or the exec is destroyed.
 * After an error the exec has its previous addresses. If the work itself fails, on a synchronous device, it may have
 * the new ones; rondo_patch_set_get_input returns them. */
RONDO_API RONDO_MUST_USE rondo_status rondo_patch_set_launch(rondo_patch_set *set, rondo_stream *stream,
                                                             const void *const *addresses);

/* Checks whether an input may be at the address: it must be patchable and keep its alignment; and, unless the exec was
 * created without verification, as many bytes as were recorded must be allocated there, and accessible to the device.
 * Addresses in no known allocation are accepted. The input's current address is always accepted.
 * Errors: INVALID_ARGUMENT with OUT_OF_RANGE (no such input, or the bytes pass the end of their allocation), MISALIGNED
 * or NO_ACCESS; INVALID_LIFETIME with NOT_ALLOCATED or USE_AFTER_FREE; UPDATE_REFUSED/NOT_UPDATABLE with the finding
 * about the input; INVALID_STATE/STALE_PATCHES (the exec is destroyed). Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_patch_set_check(const rondo_patch_set *set, uint32_t input,
                                                            const void *address);

/* Tells the set, after rondo_exec_update or rondo_exec_set_params, that the exec now has input i at addresses[i]; NULL
 * means the address that the set knows. New addresses must keep the alignment of these. Makes the set the exec's
 * current one; of several sets, the current one launches. Errors: INVALID_STATE/STALE_PATCHES, naming the first node
 * that has another address there; nothing changes then. */
RONDO_API RONDO_MUST_USE rondo_status rondo_patch_set_rebase(rondo_patch_set *set, const void *const *addresses);

/* Read the figures of the set, of one of its inputs, and the findings, in the order of nodes. Errors: INVALID_ARGUMENT
 * (NULL, OUT_OF_RANGE). Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_patch_set_get_info(const rondo_patch_set *set, rondo_patch_info *out_info);
RONDO_API RONDO_MUST_USE rondo_status rondo_patch_set_get_input(const rondo_patch_set *set, uint32_t input,
                                                                rondo_patch_input_info *out_info);
RONDO_API RONDO_MUST_USE rondo_status rondo_patch_set_get_finding(const rondo_patch_set *set, size_t index,
                                                                  rondo_patch_finding *out_finding);

RONDO_EXTERN_C_END

#endif

/* SPDX-License-Identifier: MIT
 * Patching: launching an exec with its input buffers at other addresses, without copying them.
 *
 * A patch set is made for an exec and a list of inputs. It knows the *sites* of each input: the places in the
 * parameters of nodes, in child graphs too, that hold an address in it, with the distance from its beginning. A launch
 * names where each input is now; sites of those that moved get the new address, and travel with that launch: launches
 * that are under way keep theirs. What is patched stays until it is patched again, also for rondo_exec_launch.
 *
 * Sites are found in two ways.
 * - By what is declared: pointer parameters of kernels (RONDO_READS, RONDO_WRITES, RONDO_UPDATES), copies and fills. A
 *   word of 8 bytes in a scalar parameter, or a host function's user pointer, that points into an input is *suspected*
 *   and never patched.
 * - By comparing recordings (rondo_patch_options.moved, .again): the same work captured with all inputs elsewhere, and
 *   once more where they were. A word that moved by exactly as much as an input did, and is the same in both recordings
 *   of the same place, is a site of it, whatever its parameter was declared as; this finds the addresses in kernels of
 *   libraries. A word of a library's kernel that differs between the two recordings of the same place is noise in bytes
 *   that nobody set, and is left alone. What changed otherwise, and is no address of memory, is a *frozen* value: the
 *   exec goes on with what it was when the first recording was made.
 * Neither way finds addresses that stand in memory (arrays of pointers) or that host functions keep.
 *
 * An input's new address must differ from that in the exec by a multiple of RONDO_PATCH_ALIGNMENT, since kernels are
 * chosen by alignment; copy the input where it does not. It must have as many bytes, and outlive the launch.
 */
#ifndef RONDO_PATCH_H
#define RONDO_PATCH_H

#include <rondo/exec.h>

RONDO_EXTERN_C_BEGIN

#define RONDO_PATCH_ALIGNMENT 256

typedef struct rondo_patch_set rondo_patch_set;

/* An input. Inputs have no byte in common. */
typedef struct rondo_patch_input {
  const char *name;    /* for messages; copied; NULL = its number */
  const void *address; /* where the exec has it now */
  size_t bytes;        /* at least 1 */
  const void *moved;   /* where rondo_patch_options.moved has it, not where the exec does; NULL without such a graph */
} rondo_patch_input;

typedef struct rondo_patch_options {
  uint32_t struct_size;     /* RONDO_PATCH_OPTIONS_INIT sets it; 0 means the library's own */
  const rondo_graph *moved; /* the exec's work, recorded with all inputs elsewhere; NULL = sites are what is declared */
  const rondo_graph *again; /* ... and once more where the exec has them; NULL = noise cannot be told. Needs `moved` */
} rondo_patch_options;
#define RONDO_PATCH_OPTIONS_INIT .struct_size = sizeof(rondo_patch_options)

typedef enum rondo_patch_finding_kind {
  RONDO_PATCH_SUSPECTED =
      1,                 /* points into an input, but nothing says that it is an address: the input is not patched */
  RONDO_PATCH_FIXED = 2, /* is an address in an input and cannot be changed: the input is not patched */
  RONDO_PATCH_FROZEN = 3 /* changed between the recordings and is no address: the exec keeps the first value */
} rondo_patch_finding_kind;

#define RONDO_PATCH_NO_PARAMETER UINT32_MAX
#define RONDO_PATCH_NO_INPUT UINT32_MAX

/* What stands in the way, or might be meant otherwise. */
typedef struct rondo_patch_finding {
  uint32_t struct_size;
  rondo_patch_finding_kind kind;
  rondo_node node;        /* of the graph the exec was made of, or of a child graph in it */
  uint32_t parameter;     /* of a kernel; RONDO_PATCH_NO_PARAMETER for other nodes */
  uint32_t offset, bytes; /* of the value in that parameter */
  uint32_t input;         /* RONDO_PATCH_NO_INPUT for frozen values */
  uint64_t value;         /* in the exec; its first 8 bytes */
  uint64_t moved_value;   /* in the moved recording; as `value` without one */
  const char *message;    /* the whole of it in words, with the remedy; valid as long as the set */
} rondo_patch_finding;

typedef struct rondo_patch_input_info {
  uint32_t struct_size;
  const char *name;    /* valid as long as the set */
  const void *address; /* that launches have now, as far as this set knows */
  size_t bytes;
  uint32_t sites, nodes; /* how many sites, and in how many nodes */
  bool is_written;       /* by what nodes declare of their parameters */
  bool is_patchable;     /* nothing suspected or fixed stands in the way */
} rondo_patch_input_info;

typedef struct rondo_patch_info {
  uint32_t struct_size;
  uint32_t inputs, sites;
  uint32_t findings, found; /* that can be read, 256 at most; and all there were */
  uint32_t noise;           /* words of libraries' kernels that are left alone as noise */
  uint64_t patched;         /* inputs that launches had to patch, so far */
  uint64_t host_bytes;      /* host memory of the set */
} rondo_patch_info;

/* Finds the sites of the inputs and makes a set of them, which becomes the exec's current one. An input without a site
 * is fine: no node has its address. options may be NULL. The recordings must be the exec's work node by node: the same
 * topology, kinds, kernels by name and grids; sizes of copies and fills too. They are read during the call.
 * The caller destroys the set, before or after the exec.
 * Errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_SIZE, OUT_OF_RANGE (inputs with bytes in common), BAD_OPTIONS (where
 * an input moved to is missing, or where it was), MISALIGNED, OTHER_DEVICE; UPDATE_REFUSED with TOPOLOGY_CHANGED,
 * NODE_KIND_CHANGED, FUNCTION_CHANGED or PARAMETERS_CHANGED (a recording of other work, naming the node); INVALID_STATE
 * (a stream captures into a recording; the exec does not run, as rondo_exec_update failed); OUT_OF_MEMORY.
 * Thread-compatible, as the exec. */
RONDO_API RONDO_MUST_USE rondo_status rondo_patch_set_create(rondo_exec *exec, const rondo_patch_input *inputs,
                                                             size_t count, const rondo_patch_options *options,
                                                             rondo_patch_set **out_set);

/* What launches patched stays in the exec. NULL is fine. */
RONDO_API void rondo_patch_set_destroy(rondo_patch_set *set);

/* Launches the exec with input i at addresses[i]; NULL leaves it where the last launch had it. Otherwise as
 * rondo_exec_launch; a stream that captures gets a child graph with these addresses, and the exec keeps those it has.
 * Addresses that change are checked (rondo_patch_set_check). Does not allocate and takes no lock once warm, while the
 * new addresses are in allocations of rondo_malloc or rondo_malloc_async.
 * Errors: as rondo_exec_launch and rondo_patch_set_check; INVALID_STATE/STALE_PATCHES: an update or
 * rondo_exec_set_params gave a site another address, another set of the exec is its current one, or the exec is
 * destroyed. The exec then has the addresses that it had; but where the work itself fails, on a synchronous device,
 * perhaps the new ones: rondo_patch_set_get_input says which. */
RONDO_API RONDO_MUST_USE rondo_status rondo_patch_set_launch(rondo_patch_set *set, rondo_stream *stream,
                                                             const void *const *addresses);

/* Whether an input may be at the address: it is patchable; the alignment is kept; and, unless the exec was made without
 * verification, as many bytes as were recorded live there, which the device may access. Addresses in no known
 * allocation pass. Where the input is now is always fine.
 * Errors: INVALID_ARGUMENT with OUT_OF_RANGE (no such input; the bytes pass the end of their allocation), MISALIGNED or
 * NO_ACCESS; INVALID_LIFETIME with NOT_ALLOCATED or USE_AFTER_FREE; UPDATE_REFUSED/NOT_UPDATABLE with what was found of
 * the input; INVALID_STATE/STALE_PATCHES (the exec is destroyed). Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_patch_set_check(const rondo_patch_set *set, uint32_t input,
                                                            const void *address);

/* After rondo_exec_update or rondo_exec_set_params: the exec has input i at addresses[i] now, NULL where the set knows
 * it to be; new addresses must keep the alignment of these. Makes the set the exec's current one: of several sets the
 * one that launches. Errors: INVALID_STATE/STALE_PATCHES naming the first node that has another address there, and
 * everything is as before. */
RONDO_API RONDO_MUST_USE rondo_status rondo_patch_set_rebase(rondo_patch_set *set, const void *const *addresses);

/* Figures of the set; of one of its inputs; what was found, in the order of nodes. Errors: INVALID_ARGUMENT (NULL,
 * OUT_OF_RANGE). Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_patch_set_get_info(const rondo_patch_set *set, rondo_patch_info *out_info);
RONDO_API RONDO_MUST_USE rondo_status rondo_patch_set_get_input(const rondo_patch_set *set, uint32_t input,
                                                                rondo_patch_input_info *out_info);
RONDO_API RONDO_MUST_USE rondo_status rondo_patch_set_get_finding(const rondo_patch_set *set, size_t index,
                                                                  rondo_patch_finding *out_finding);

RONDO_EXTERN_C_END

#endif

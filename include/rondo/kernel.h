/* SPDX-License-Identifier: MIT
 * Kernels: functions that run over a grid of blocks.
 *
 * A kernel has a name, the layout and access of its parameters, and code for each kind of device. On a CPU device the
 * code is a C function that runs a range of blocks. The device calls it from several threads at once. The ranges do not
 * overlap, together cover the grid, and may come in any order. The result must not depend on how the grid is divided
 * into ranges.
 */
#ifndef RONDO_KERNEL_H
#define RONDO_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rondo/status.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_device rondo_device;
typedef struct rondo_kernel rondo_kernel;

/* The number of blocks in each dimension. y and z of 0 count as 1; x must be at least 1; x*y*z is at most 2^40. A GPU
 * has its own limits, today 2^31 - 1 in x and 65,535 in y and in z. A grid beyond them is refused
 * (INVALID_ARGUMENT/BAD_SIZE) when it is launched, added to a graph or set. */
typedef struct rondo_grid {
  uint32_t x, y, z;
} rondo_grid;

/* The blocks first <= b < last of a grid. x varies fastest: block b is at (b % x, b / x % y, b / (x * y)). `grid` has
 * no zeros. */
typedef struct rondo_blocks {
  size_t first, last;
  rondo_grid grid;
} rondo_blocks;

/* args[i] points to the value of parameter i: `*(const float *)args[0]`, `*(float **)args[1]`. The values are the
 * launch's own copies and must not be written. The function must not call Rondo. */
typedef void (*rondo_cpu_function)(rondo_blocks blocks, void *const *args);

/* Three sizes. y and z of 0 count as 1. */
typedef struct rondo_dimensions {
  uint32_t x, y, z;
} rondo_dimensions;

/* The blocks of a launch, as a CPU function sees them. */
typedef struct rondo_thread_block {
  rondo_dimensions threads; /* of a block, without zeros. The function does the work of all threads itself */
  uint32_t shared_bytes;
  void *shared; /* dynamic shared memory, aligned to 128 bytes. The call may use it for one block after another. What it
                   contains at the beginning of the call is undefined. NULL for 0 bytes */
} rondo_thread_block;

/* A CPU function that gets its block too. */
typedef void (*rondo_cpu_block_function)(rondo_blocks blocks, const rondo_thread_block *block, void *const *args);

/* Domains of memory synchronisation. A fence of a kernel waits for the writes of kernels in its domain only. */
typedef enum rondo_memory_domain {
  RONDO_MEMORY_DOMAIN_DEFAULT = 0,
  RONDO_MEMORY_DOMAIN_REMOTE = 1 /* for kernels that communicate with other devices */
} rondo_memory_domain;

/* How the blocks of a launch run. All zeros is the default: a block of the kernel's block_threads, without dynamic
 * shared memory. A launch beyond the limits of the device is refused with the limit before the driver gets it:
 * INVALID_ARGUMENT with BAD_SIZE, OUT_OF_RANGE or BAD_OPTIONS, and for what the GPU does not have
 * UNSUPPORTED/NOT_SUPPORTED.
 * CPU devices have the limits of an H100, so what runs there fits that GPU: blocks of 1,024 threads (1,024 in x and in
 * y, 64 in z), 232,448 bytes of shared memory, clusters of 8 blocks, cooperative grids that fit 132 multiprocessors,
 * priorities from -5 to 0. Only `block` and `shared_bytes` have an effect there: each function does the work of its
 * blocks in order, so it cannot wait for other blocks. The code of a kernel for a GPU may have lower limits, which only
 * this GPU knows: registers and static shared memory. */
typedef struct rondo_launch_config {
  rondo_dimensions block;   /* threads of a block; x = 0 (then y = z = 0): the kernel's block_threads */
  uint32_t shared_bytes;    /* dynamic shared memory of each block. On CUDA, more than 48 KiB needs no other call: the
                               first use of a kernel with dynamic shared memory sets its attribute */
  rondo_dimensions cluster; /* blocks of a cluster, for GPUs of compute capability 9.0 and newer: at most 8, and the
                               grid is a multiple of it in each dimension; x = 0 (then y = z = 0): none */
  int32_t priority; /* of blocks that wait for processors: lower numbers first, as in rondo_stream_options; 0: that of
                       the stream, and in nodes that are added by hand the last. If a node of a graph is given one,
                       the graph's execs run each node with its own priority, else with that of the launch's stream */
  uint32_t shared_percent; /* preferred share of shared memory in the memory that it shares with the L1 cache: 1 to 100
                              per cent; 0: the driver's choice. A hint, which drivers before 12.5 do not take */
  rondo_memory_domain memory_domain;
  bool cooperative; /* all blocks run at once, so they may wait for each other; the grid must fit the device */
  /* Programmatic dependent launch: the kernel may begin before the kernels that it comes directly after have ended. It
   * waits for them itself, before it uses memory and before it ends (cudaGridDependencySynchronize). So graphs have
   * ordinary edges to it, on which verification and planning rely. On CPU devices, and on GPUs before compute
   * capability 9.0, it begins after them. */
  bool programmatic;
} rondo_launch_config;

/* How a kernel uses a parameter. Verification and memory planning rely on how pointers are accessed. */
typedef enum rondo_access {
  RONDO_ACCESS_SCALAR = 1, /* a value, not a pointer to memory */
  RONDO_ACCESS_READ = 2,
  RONDO_ACCESS_WRITE = 3,     /* written before it is read */
  RONDO_ACCESS_READ_WRITE = 4 /* read and written */
} rondo_access;

typedef struct rondo_parameter {
  rondo_access access;
  uint32_t bytes;     /* of the argument itself: sizeof(float); of a pointer always sizeof(void *) */
  uint32_t alignment; /* a power of two, at most 64 */
} rondo_parameter;

#ifdef __cplusplus
#define RONDO_ALIGNOF(type) alignof(type)
#define RONDO_PARAMETER(access, bytes, alignment) \
  rondo_parameter { access, (uint32_t)(bytes), (uint32_t)(alignment) }
#else
#define RONDO_ALIGNOF(type) _Alignof(type)
#define RONDO_PARAMETER(access, bytes, alignment) \
  { access, (uint32_t)(bytes), (uint32_t)(alignment) }
#endif
#define RONDO_SCALAR(type) RONDO_PARAMETER(RONDO_ACCESS_SCALAR, sizeof(type), RONDO_ALIGNOF(type))
#define RONDO_READS RONDO_PARAMETER(RONDO_ACCESS_READ, sizeof(void *), RONDO_ALIGNOF(void *))
#define RONDO_WRITES RONDO_PARAMETER(RONDO_ACCESS_WRITE, sizeof(void *), RONDO_ALIGNOF(void *))
#define RONDO_UPDATES RONDO_PARAMETER(RONDO_ACCESS_READ_WRITE, sizeof(void *), RONDO_ALIGNOF(void *))

/* A variable of a kernel's code: __device__ or __constant__ on CUDA, a global variable of the program on CPU devices.
 * rondo_kernel_symbol returns its address. */
typedef struct rondo_symbol {
  const char *name; /* as the CUDA code calls it: that of an extern "C" variable, or a mangled one; copied */
  void *cpu;    /* its address on CPU devices, where it must exist as long as the program; NULL: it has none there */
  size_t bytes; /* its size. On CUDA the code must have the same; 0: as in the code. On CPU devices required */
} rondo_symbol;

#define RONDO_MAX_INLINE_PARAMETERS 24
#define RONDO_MAX_PARAMETERS 128
#define RONDO_MAX_SYMBOLS 256
/* All arguments of a kernel together, with their alignment. GPUs before compute capability 7.0 take 4,096 bytes, and so
 * does code from compilers before CUDA 12.1. */
#define RONDO_MAX_PARAMETER_BYTES 32764

typedef struct rondo_kernel_options {
  uint32_t struct_size;    /* RONDO_KERNEL_OPTIONS_INIT sets it; 0 means the library's own */
  uint32_t block_threads;  /* threads in a block if a launch does not say otherwise (rondo_launch_config), at most 1024
                              and on CUDA what the registers of the code allow; 0 = 256 */
  const char *name;        /* required; copied */
  rondo_cpu_function cpu;  /* code for CPU devices, or NULL */
  const char *cuda_source; /* code for CUDA devices: CUDA C with an extern "C" __global__ `name`; copied; or NULL */
  rondo_parameter
      params[RONDO_MAX_INLINE_PARAMETERS]; /* ends at the first whose bytes are 0; all after it must be 0 too */
  const void *cuda_image; /* code for CUDA devices in place of a source: PTX (a string), a cubin or a fatbin with a
                             function `name`; read during the call; or NULL */
  void *cuda_function;    /* the same, already loaded: a CUfunction of the GPU's primary context, which must stay
                             loaded as long as the kernel and everything that uses it; or NULL */
  const rondo_parameter *param_list; /* in place of params, if there are more: param_count of them, at most
                                        RONDO_MAX_PARAMETERS; copied; or NULL */
  uint32_t param_count;
  uint32_t reserved;
  rondo_cpu_block_function cpu_block; /* in place of cpu: code for CPU devices that gets its block; or NULL */
  const rondo_symbol *symbols;        /* variables of the code whose addresses will be asked for; copied; or NULL */
  size_t symbol_count;                /* of them; at most RONDO_MAX_SYMBOLS */
} rondo_kernel_options;
#define RONDO_KERNEL_OPTIONS_INIT .struct_size = sizeof(rondo_kernel_options)

/* Creates a kernel for `device`. The caller owns it. Graphs, execs and enqueued work keep what they need of it, so it
 * may be destroyed before them. A kernel may have no code for the device: graphs may then contain it, but launching or
 * instantiating it is refused, and the error names it. On CUDA the driver loads the code, which waits for all work of
 * the device: create kernels before you enqueue work that waits for the caller.
 * Thread-safe; the kernel is immutable. Errors: INVALID_ARGUMENT (NULL, no name, a bad struct_size, a parameter of a
 * bad size, alignment or access, too many parameters or bytes, parameters both in params and in a list, a block of too
 * many threads; two forms of code for CPUs or for CUDA; a symbol without a name, or that is listed twice, or has an
 * address and no bytes; on CUDA, parameters or sizes of symbols that differ from those of the code, or more bytes than
 * the GPU takes; INVALID_ARGUMENT/CONTRADICTED: a declared access that the code contradicts, below),
 * OUT_OF_MEMORY; on CUDA INVALID_DATA (the source does not compile, with the compiler's log; the code does not load, or
 * has no such function or symbol), UNAVAILABLE (there is no NVRTC, or it is too old for the GPU).
 * On CUDA, the declared accesses are compared with PTX, where Rondo has it: of a source, or of an image that is PTX,
 * and not of a cubin, a fatbin or a function. Refused are RONDO_ACCESS_READ and a RONDO_ACCESS_SCALAR of 8 bytes if the
 * code has an instruction that writes memory at an address from this parameter alone, whether or not it ever runs; and
 * RONDO_ACCESS_WRITE if the code reads that memory and has no instruction that could write it. Where the PTX leaves it
 * open, as for addresses that are kept in memory or passed to functions, the declaration counts. */
RONDO_API RONDO_MUST_USE rondo_status rondo_kernel_create(rondo_device *device, const rondo_kernel_options *options,
                                                          rondo_kernel **out_kernel);

/* Releases the caller's reference. NULL is fine. Thread-safe. */
RONDO_API void rondo_kernel_destroy(rondo_kernel *kernel);

/* The kernel's name; valid as long as the kernel. "" for NULL. Thread-safe. */
RONDO_API const char *rondo_kernel_name(const rondo_kernel *kernel);

/* The parameters, and their number in *out_count (may be NULL). Valid as long as the kernel. NULL and 0 for NULL.
 * Thread-safe. */
RONDO_API const rondo_parameter *rondo_kernel_parameters(const rondo_kernel *kernel, size_t *out_count);

/* Returns the address of a symbol on the kernel's device, and its bytes in *out_bytes (may be NULL). From then on the
 * memory is used like an allocation that is called as the symbol: eager, captured and added copies, fills and arguments
 * of kernels that name it are checked against its end, and verified. It is freed with the kernel, not by rondo_free.
 * Graphs and their execs keep the kernel of an address that was in a node when the node was added or changed, or when
 * the graph was captured, if the kernel's device is one of the graph's then; enqueued work does too.
 *
 * What a kernel's code does with its symbols by itself is not known: order it and copies by edges or streams, or pass
 * the address as an argument too. On CUDA, each kernel from a source or an image has variables of its own, and kernels
 * from functions of one module (cuda_function) share them; on CPU devices all kernels share them.
 * Thread-safe. Errors: INVALID_ARGUMENT with NULL_ARGUMENT; NOT_FOUND with UNKNOWN_NAME (not a symbol of the kernel),
 * NO_FUNCTION (the symbol has no address, or the kernel no code, on the device); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_kernel_symbol(rondo_kernel *kernel, const char *name, void **out_address,
                                                          size_t *out_bytes);

/* RONDO_ARGS(&a, &x, &y): the addresses of the arguments' values and their number, the last two parameters of
 * rondo_launch. The values are copied during the call. RONDO_NO_ARGS for a kernel without parameters. */
#ifdef __cplusplus
RONDO_EXTERN_C_END
template <size_t count>
struct rondo_argument_list {
  const void *addresses[count];
};
template <class... T>
inline rondo_argument_list<sizeof...(T)> rondo_make_arguments(const T *...addresses) {
  return {{static_cast<const void *>(addresses)...}};
}
template <class... T>
inline constexpr size_t rondo_count_arguments(const T *...) {
  return sizeof...(T);
}
RONDO_EXTERN_C_BEGIN
#define RONDO_ARGS(...) rondo_make_arguments(__VA_ARGS__).addresses, rondo_count_arguments(__VA_ARGS__)
#else
#define RONDO_ARGS(...) \
  (const void *const[]){__VA_ARGS__}, sizeof((const void *const[]){__VA_ARGS__}) / sizeof(const void *)
#endif
#define RONDO_NO_ARGS NULL, 0

RONDO_EXTERN_C_END

#endif

/* SPDX-License-Identifier: MIT
 * The part of the CUDA driver's binary interface that Rondo uses: handles, codes, parameter structures. It is written
 * from the documentation of the driver API (CUDA Toolkit 12.4 to 13.0), so Rondo builds without NVIDIA's headers.
 * tests/gpu/abi_layout.c and abi_calls.c compare sizes, offsets, values and prototypes with a real cuda.h. Names are
 * the driver's, in lower case with underscores. Enumerations are the integers that are passed.
 */
#ifndef RONDO_VENDOR_CUDA_DRIVER_ABI_H
#define RONDO_VENDOR_CUDA_DRIVER_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned cu_result;
typedef unsigned cu_attribute, cu_function_attribute, cu_granularity, cu_jit_option, cu_capture_mode, cu_capture_status,
    cu_pointer_attribute, cu_launch_attribute_id;
typedef int cu_device;
typedef unsigned long long cu_address;  /* CUdeviceptr */
typedef unsigned long long cu_physical; /* CUmemGenericAllocationHandle */
typedef struct CUctx_st *cu_context;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function;
typedef struct CUkern_st *cu_kernel;
typedef struct CUstream_st *cu_stream;
typedef struct CUevent_st *cu_event;
typedef struct CUgraph_st *cu_graph;
typedef struct CUgraphNode_st *cu_graph_node;
typedef struct CUgraphExec_st *cu_graph_exec;
typedef struct CUextSemaphore_st *cu_external_semaphore;
typedef void (*cu_host_function)(void *user);

/* Codes. All others are passed on by number and name. */
enum {
  CU_OK = 0,
  CU_INVALID_VALUE = 1,
  CU_OUT_OF_MEMORY = 2,
  CU_NOT_INITIALIZED = 3,
  CU_DEINITIALIZED = 4,
  CU_STUB_LIBRARY = 34,
  CU_CALL_REQUIRES_NEWER_DRIVER = 36,
  CU_NO_DEVICE = 100,
  CU_INVALID_DEVICE = 101,
  CU_INVALID_IMAGE = 200,
  CU_INVALID_CONTEXT = 201,
  CU_NO_BINARY_FOR_GPU = 209,
  CU_ECC_UNCORRECTABLE = 214,
  CU_INVALID_PTX = 218,
  CU_NVLINK_UNCORRECTABLE = 220,
  CU_UNSUPPORTED_PTX_VERSION = 222,
  CU_CONTAINED = 226,
  CU_INVALID_HANDLE = 400,
  CU_ILLEGAL_STATE = 401,
  CU_NOT_FOUND = 500,
  CU_NOT_READY = 600,
  CU_ILLEGAL_ADDRESS = 700,
  CU_LAUNCH_OUT_OF_RESOURCES = 701,
  CU_LAUNCH_TIMEOUT = 702,
  CU_CONTEXT_IS_DESTROYED = 709,
  CU_ASSERT = 710,
  CU_HARDWARE_STACK_ERROR = 714,
  CU_ILLEGAL_INSTRUCTION = 715,
  CU_MISALIGNED_ADDRESS = 716,
  CU_INVALID_ADDRESS_SPACE = 717,
  CU_INVALID_PC = 718,
  CU_LAUNCH_FAILED = 719,
  CU_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  CU_TENSOR_MEMORY_LEAK = 721,
  CU_NOT_PERMITTED = 800,
  CU_NOT_SUPPORTED = 801,
  CU_STREAM_CAPTURE_UNSUPPORTED = 900,
  CU_STREAM_CAPTURE_INVALIDATED = 901,
  CU_STREAM_CAPTURE_MERGE = 902,
  CU_STREAM_CAPTURE_UNMATCHED = 903,
  CU_STREAM_CAPTURE_UNJOINED = 904,
  CU_STREAM_CAPTURE_ISOLATION = 905,
  CU_STREAM_CAPTURE_IMPLICIT = 906,
  CU_CAPTURED_EVENT = 907,
  CU_STREAM_CAPTURE_WRONG_THREAD = 908,
  CU_GRAPH_EXEC_UPDATE_FAILURE = 910,
  CU_INVALID_CLUSTER_SIZE = 912,
  CU_UNKNOWN = 999
};

/* Device attributes */
enum {
  CU_ATTRIBUTE_MAX_GRID_X = 5,
  CU_ATTRIBUTE_MAX_GRID_Y = 6,
  CU_ATTRIBUTE_MAX_GRID_Z = 7,
  CU_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
  CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
  CU_ATTRIBUTE_FLUSH_REMOTE_WRITES = 98,
  CU_ATTRIBUTE_MAX_SHARED_BYTES = 97, /* of a block that opts in */
  CU_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT = 102,
  CU_ATTRIBUTE_MEMORY_POOLS = 115,
  CU_ATTRIBUTE_CLUSTER_LAUNCH = 120,
  CU_ATTRIBUTE_64_BIT_MEMORY_OPERATIONS = 122,
  CU_ATTRIBUTE_WAIT_VALUE_NOR = 123
};

/* Function attributes */
enum {
  CU_FUNCTION_ATTRIBUTE_MAX_THREADS = 0,
  CU_FUNCTION_ATTRIBUTE_SHARED_BYTES = 1, /* static */
  CU_FUNCTION_ATTRIBUTE_MAX_DYNAMIC_SHARED_BYTES = 8
};

enum { CU_STREAM_FLAG_DEFAULT = 0, CU_STREAM_FLAG_NON_BLOCKING = 1 };
enum { CU_LEGACY_STREAM = 1, CU_THREAD_STREAM = 2 }; /* handles; the legacy stream is also 0 */
enum { CU_EVENT_FLAG_DEFAULT = 0, CU_EVENT_FLAG_BLOCKING_SYNC = 1, CU_EVENT_FLAG_DISABLE_TIMING = 2 };
enum { CU_RECORD_EXTERNAL = 1, CU_WAIT_EXTERNAL = 1 };
enum { CU_CAPTURE_STATUS_NONE = 0, CU_CAPTURE_STATUS_ACTIVE = 1, CU_CAPTURE_STATUS_INVALIDATED = 2 };
enum { CU_CAPTURE_MODE_GLOBAL = 0, CU_CAPTURE_MODE_THREAD_LOCAL = 1, CU_CAPTURE_MODE_RELAXED = 2 };
enum { CU_CAPTURE_DEPENDENCIES_ADD = 0, CU_CAPTURE_DEPENDENCIES_SET = 1 };
enum { CU_MEMORY_HOST = 1, CU_MEMORY_DEVICE = 2, CU_MEMORY_ARRAY = 3, CU_MEMORY_UNIFIED = 4 };
enum { CU_LOCATION_DEVICE = 1, CU_LOCATION_HOST = 2 };
enum { CU_ALLOCATION_PINNED = 1 };
enum { CU_GRANULARITY_MINIMUM = 0, CU_GRANULARITY_RECOMMENDED = 1 };
enum { CU_ACCESS_NONE = 0, CU_ACCESS_READ = 1, CU_ACCESS_READ_WRITE = 3 };
enum { CU_HOST_ALLOC_PORTABLE = 1 };
enum { CU_POINTER_MEMORY_TYPE = 2, CU_POINTER_DEVICE_ORDINAL = 9 };
enum { CU_JIT_ERROR_LOG = 5, CU_JIT_ERROR_LOG_BYTES = 6 };
enum { CU_INSTANTIATE_AUTO_FREE = 1, CU_INSTANTIATE_UPLOAD = 2, CU_INSTANTIATE_NODE_PRIORITY = 8 };
enum { CU_PROC_ADDRESS_DEFAULT = 0 };
enum { CU_WAIT_VALUE_GREATER_OR_EQUAL = 0, CU_WAIT_VALUE_EQUAL = 1, CU_WAIT_VALUE_AND = 2, CU_WAIT_VALUE_NOR = 3 };
enum {
  CU_OPERATION_WAIT_VALUE_32 = 1,
  CU_OPERATION_WRITE_VALUE_32 = 2,
  CU_OPERATION_FLUSH = 3,
  CU_OPERATION_WAIT_VALUE_64 = 4,
  CU_OPERATION_WRITE_VALUE_64 = 5
};

typedef struct cu_uuid {
  unsigned char bytes[16];
} cu_uuid;

typedef struct cu_location {
  int type; /* CU_LOCATION_ */
  int id;
} cu_location;

typedef struct cu_allocation_properties {
  int type; /* CU_ALLOCATION_PINNED */
  int handle_types;
  cu_location location;
  void *windows;
  struct {
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
} cu_allocation_properties;

typedef struct cu_access {
  cu_location location;
  int flags; /* CU_ACCESS_ */
} cu_access;

typedef struct cu_copy {
  size_t src_x, src_y, src_z, src_lod;
  int src_type; /* CU_MEMORY_ */
  const void *src_host;
  cu_address src_device;
  void *src_array;
  void *reserved_source;
  size_t src_pitch, src_height;
  size_t dst_x, dst_y, dst_z, dst_lod;
  int dst_type;
  void *dst_host;
  cu_address dst_device;
  void *dst_array;
  void *reserved_destination;
  size_t dst_pitch, dst_height;
  size_t width, height, depth; /* bytes, rows, slices */
} cu_copy;

typedef struct cu_kernel_params {
  cu_function function;
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  void **params;
  void **extra;
  void *kernel;
  cu_context context;
} cu_kernel_params;

/* Attributes of launches and of kernel nodes */
enum {
  CU_LAUNCH_COOPERATIVE = 2,
  CU_LAUNCH_CLUSTER = 4,
  CU_LAUNCH_PROGRAMMATIC = 6, /* of launches alone */
  CU_LAUNCH_PRIORITY = 8,
  CU_LAUNCH_MEMORY_DOMAIN = 10,
  CU_LAUNCH_SHARED_PERCENT = 14
};

typedef union cu_launch_value {
  char padding[64];
  int number;
  struct {
    unsigned x, y, z;
  } size;
  uint64_t alignment;
} cu_launch_value;

typedef struct cu_launch_attribute {
  cu_launch_attribute_id id; /* CU_LAUNCH_ */
  char padding[4];
  cu_launch_value value;
} cu_launch_attribute;

typedef struct cu_launch_config {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  cu_stream stream;
  cu_launch_attribute *attributes;
  unsigned attribute_count;
} cu_launch_config;

typedef struct cu_memset_params {
  cu_address dst;
  size_t pitch;
  unsigned value, element_bytes;
  size_t width, height; /* elements, rows */
} cu_memset_params;

typedef struct cu_host_params {
  cu_host_function function;
  void *user;
} cu_host_params;

/* CUDA_MEM_ALLOC_NODE_PARAMS, with the properties of the pool inline */
typedef struct cu_alloc_params {
  int type; /* CU_ALLOCATION_PINNED */
  int handle_types;
  cu_location location;
  void *windows;
  size_t most_bytes;
  unsigned short usage;
  unsigned char reserved[54];
  const cu_access *access;
  size_t access_count, bytes;
  cu_address address; /* out */
} cu_alloc_params;

/* CUstreamBatchMemOpParams: waiting for a value and writing a value have the same layout. */
typedef union cu_memory_operation {
  struct {
    int operation; /* CU_OPERATION_ */
    cu_address address;
    uint64_t value;
    unsigned flags; /* CU_WAIT_VALUE_ */
    cu_address alias;
  } of;
  uint64_t words[6];
} cu_memory_operation;

typedef struct cu_memory_operations_params {
  cu_context context;
  unsigned count;
  cu_memory_operation *operations;
  unsigned flags;
} cu_memory_operations_params;

enum { CU_SEMAPHORE_OPAQUE_FD = 1, CU_SEMAPHORE_TIMELINE_FD = 9 };

typedef struct cu_semaphore_handle {
  int type; /* CU_SEMAPHORE_ */
  union {
    int descriptor;
    struct {
      void *handle;
      const void *name;
    } windows;
  } handle;
  unsigned flags, reserved[16];
} cu_semaphore_handle;

/* Signalling and waiting have the same layout, as far as it is used. */
typedef struct cu_semaphore_params {
  uint64_t value, others[8];
  unsigned flags, reserved[16];
} cu_semaphore_params;

typedef cu_semaphore_params cu_signal_params, cu_wait_params;

typedef struct cu_semaphores_params {
  cu_external_semaphore *semaphores;
  const cu_semaphore_params *params;
  unsigned count;
} cu_semaphores_params;
typedef cu_semaphores_params cu_signals_params, cu_waits_params;

/* All fields are zero for a dependency on full completion. */
typedef struct cu_edge_data {
  unsigned char from_port, to_port, type, reserved[5];
} cu_edge_data;

enum { CU_PORT_PROGRAMMATIC = 1, CU_EDGE_PROGRAMMATIC = 1 };

typedef enum cu_node_type {
  CU_NODE_KERNEL = 0,
  CU_NODE_COPY = 1,
  CU_NODE_MEMSET = 2,
  CU_NODE_HOST = 3,
  CU_NODE_GRAPH = 4,
  CU_NODE_EMPTY = 5,
  CU_NODE_EVENT_WAIT = 6,
  CU_NODE_EVENT_RECORD = 7,
  CU_NODE_SEMAPHORE_SIGNAL = 8,
  CU_NODE_SEMAPHORE_WAIT = 9,
  CU_NODE_ALLOC = 10,
  CU_NODE_FREE = 11,
  CU_NODE_BATCH_MEMORY_OPERATION = 12,
  CU_NODE_CONDITIONAL = 13
} cu_node_type;

typedef struct cu_instantiate_params {
  uint64_t flags; /* CU_INSTANTIATE_ */
  cu_stream upload_stream;
  cu_graph_node error_node;
  int result;
} cu_instantiate_params;

enum {
  CU_INSTANTIATE_SUCCESS = 0,
  CU_INSTANTIATE_ERROR = 1,
  CU_INSTANTIATE_INVALID_STRUCTURE = 2,
  CU_INSTANTIATE_OPERATION_NOT_SUPPORTED = 3,
  CU_INSTANTIATE_MULTIPLE_CONTEXTS = 4,
  CU_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED = 5
};

typedef struct cu_update_result {
  int result;
  cu_graph_node error_node;
  cu_graph_node error_from_node;
} cu_update_result;

enum {
  CU_UPDATE_SUCCESS = 0,
  CU_UPDATE_ERROR = 1,
  CU_UPDATE_TOPOLOGY_CHANGED = 2,
  CU_UPDATE_NODE_TYPE_CHANGED = 3,
  CU_UPDATE_FUNCTION_CHANGED = 4,
  CU_UPDATE_PARAMETERS_CHANGED = 5,
  CU_UPDATE_NOT_SUPPORTED = 6,
  CU_UPDATE_UNSUPPORTED_FUNCTION_CHANGE = 7,
  CU_UPDATE_ATTRIBUTES_CHANGED = 8
};

#endif

/* SPDX-License-Identifier: MIT
 * The part of cuDNN that Rondo uses, as cudnn_graph.h of cuDNN 9 declares it ("cuDNN Backend API"). Rondo builds
 * without that header. A test compares the two if a real header is installed.
 *
 * The interface consists of descriptors. A descriptor has a type, is given attributes, and is then finalized. An
 * attribute is an array of elements of one type. Its name begins with the name of its descriptor.
 */
#ifndef RONDO_TENSOR_VENDOR_CUDNN_ABI_H
#define RONDO_TENSOR_VENDOR_CUDNN_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Enumerations are ints in the interface. */
enum {
  CUDNN_OK = 0,                /* CUDNN_STATUS_SUCCESS */
  CUDNN_BAD_VALUE = 2000,      /* CUDNN_STATUS_BAD_PARAM */
  CUDNN_NO_SUCH = 3000,        /* CUDNN_STATUS_NOT_SUPPORTED, the first code of its range */
  CUDNN_BROKEN = 4000,         /* CUDNN_STATUS_INTERNAL_ERROR, likewise */
  CUDNN_NO_HOST_MEMORY = 4003, /* CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED */
  CUDNN_NO_MEMORY = 4004,      /* CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED */
  CUDNN_NOT_RUN = 5000,        /* CUDNN_STATUS_EXECUTION_FAILED, likewise */

  CUDNN_F32 = 0,               /* CUDNN_DATA_FLOAT */
  CUDNN_F16 = 2,               /* CUDNN_DATA_HALF */
  CUDNN_BF16 = 9,              /* CUDNN_DATA_BFLOAT16 */
  CUDNN_CORRELATION = 1,       /* CUDNN_CROSS_CORRELATION */
  CUDNN_HEURISTIC_LEARNED = 3, /* CUDNN_HEUR_MODE_A */
  CUDNN_HEURISTIC_SAFE = 2,    /* CUDNN_HEUR_MODE_FALLBACK */

  /* Types of an attribute's elements. */
  CUDNN_OF_HANDLE = 0,      /* CUDNN_TYPE_HANDLE */
  CUDNN_OF_TYPE = 1,        /* CUDNN_TYPE_DATA_TYPE */
  CUDNN_OF_INT64 = 3,       /* CUDNN_TYPE_INT64 */
  CUDNN_OF_FLOAT = 4,       /* CUDNN_TYPE_FLOAT */
  CUDNN_OF_ADDRESS = 6,     /* CUDNN_TYPE_VOID_PTR */
  CUDNN_OF_MODE = 7,        /* CUDNN_TYPE_CONVOLUTION_MODE */
  CUDNN_OF_HEURISTIC = 8,   /* CUDNN_TYPE_HEUR_MODE */
  CUDNN_OF_NOTE = 11,       /* CUDNN_TYPE_NUMERICAL_NOTE */
  CUDNN_OF_DESCRIPTOR = 15, /* CUDNN_TYPE_BACKEND_DESCRIPTOR */

  /* Numerical notes: properties of an engine's arithmetic. */
  CUDNN_NOTE_TENSOR_CORE = 0,       /* CUDNN_NUMERICAL_NOTE_TENSOR_CORE */
  CUDNN_NOTE_ROUNDS_FACTORS = 1,    /* CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS */
  CUDNN_NOTE_FOURIER = 3,           /* CUDNN_NUMERICAL_NOTE_FFT */
  CUDNN_NOTE_WINOGRAD = 5,          /* CUDNN_NUMERICAL_NOTE_WINOGRAD, with one of its tile */
  CUDNN_NOTE_WINOGRAD_4 = 6,        /* CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 */
  CUDNN_NOTE_WINOGRAD_6 = 7,        /* CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 */
  CUDNN_NOTE_STRICT_NOT_NUMBER = 9, /* CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP */
  CUDNN_NOTES = 10,                 /* CUDNN_NUMERICAL_NOTE_TYPE_COUNT */

  CUDNN_TENSOR = 17,            /* CUDNN_BACKEND_TENSOR_DESCRIPTOR */
  CUDNN_TENSOR_ALIGNMENT = 900, /* CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t */
  CUDNN_TENSOR_TYPE = 901,      /* CUDNN_ATTR_TENSOR_DATA_TYPE */
  CUDNN_TENSOR_SIZES = 902,     /* CUDNN_ATTR_TENSOR_DIMENSIONS, int64_t */
  CUDNN_TENSOR_STRIDES = 903,   /* CUDNN_ATTR_TENSOR_STRIDES, int64_t */
  CUDNN_TENSOR_NUMBER = 906,    /* CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t */

  CUDNN_WINDOW = 1,            /* CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR */
  CUDNN_WINDOW_COMPUTE = 100,  /* CUDNN_ATTR_CONVOLUTION_COMP_TYPE */
  CUDNN_WINDOW_MODE = 101,     /* CUDNN_ATTR_CONVOLUTION_CONV_MODE */
  CUDNN_WINDOW_DILATION = 102, /* CUDNN_ATTR_CONVOLUTION_DILATIONS, int64_t for each axis */
  CUDNN_WINDOW_STRIDE = 103,   /* CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, likewise */
  CUDNN_WINDOW_AFTER = 104,    /* CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, likewise */
  CUDNN_WINDOW_BEFORE = 105,   /* CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, likewise */
  CUDNN_WINDOW_AXES = 106,     /* CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t */

  /* The attributes alpha (float), beta (float), window, weight, x and y of these have consecutive numbers. */
  CUDNN_FORWARD = 10,                /* CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR */
  CUDNN_FORWARD_ALPHA = 700,         /* CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA */
  CUDNN_INPUT_GRADIENT = 12,         /* CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR */
  CUDNN_INPUT_GRADIENT_ALPHA = 706,  /* CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA */
  CUDNN_WEIGHT_GRADIENT = 11,        /* CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR */
  CUDNN_WEIGHT_GRADIENT_ALPHA = 712, /* CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA */
  CUDNN_AFTER_ALPHA_BETA = 1,
  CUDNN_AFTER_ALPHA_WINDOW = 2,
  CUDNN_AFTER_ALPHA_WEIGHT = 3,
  CUDNN_AFTER_ALPHA_X = 4,
  CUDNN_AFTER_ALPHA_Y = 5,

  CUDNN_GRAPH = 15,             /* CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR */
  CUDNN_GRAPH_HANDLE = 800,     /* CUDNN_ATTR_OPERATIONGRAPH_HANDLE */
  CUDNN_GRAPH_OPERATIONS = 801, /* CUDNN_ATTR_OPERATIONGRAPH_OPS */

  CUDNN_HEURISTIC = 4,           /* CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR */
  CUDNN_HEURISTIC_MODE = 200,    /* CUDNN_ATTR_ENGINEHEUR_MODE */
  CUDNN_HEURISTIC_GRAPH = 201,   /* CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH */
  CUDNN_HEURISTIC_RESULTS = 202, /* CUDNN_ATTR_ENGINEHEUR_RESULTS, the best first */

  CUDNN_ENGINE = 2,          /* CUDNN_BACKEND_ENGINE_DESCRIPTOR */
  CUDNN_ENGINE_NOTES = 1303, /* CUDNN_ATTR_ENGINE_NUMERICAL_NOTE */

  CUDNN_CONFIG = 3,          /* CUDNN_BACKEND_ENGINECFG_DESCRIPTOR */
  CUDNN_CONFIG_ENGINE = 300, /* CUDNN_ATTR_ENGINECFG_ENGINE */

  CUDNN_PLAN = 5,             /* CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR */
  CUDNN_PLAN_HANDLE = 400,    /* CUDNN_ATTR_EXECUTION_PLAN_HANDLE */
  CUDNN_PLAN_CONFIG = 401,    /* CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG */
  CUDNN_PLAN_WORKSPACE = 402, /* CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, int64_t */

  CUDNN_PACK = 16,             /* CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR */
  CUDNN_PACK_NUMBERS = 1000,   /* CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, int64_t */
  CUDNN_PACK_ADDRESSES = 1001, /* CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS */
  CUDNN_PACK_WORKSPACE = 1003  /* CUDNN_ATTR_VARIANT_PACK_WORKSPACE */
};

typedef int cudnn_status;       /* cudnnStatus_t */
typedef int cudnn_kind;         /* cudnnBackendDescriptorType_t */
typedef int cudnn_attribute;    /* cudnnBackendAttributeName_t */
typedef int cudnn_element_type; /* cudnnBackendAttributeType_t */

typedef struct cudnn_context *cudnn_handle; /* cudnnHandle_t */
typedef void *cudnn_descriptor;             /* cudnnBackendDescriptor_t */
typedef struct cudnn_queue *cudnn_stream;   /* cudaStream_t, which is a CUstream */

/* ROW(result, member, symbol, (arguments)) */
#define CUDNN_FUNCTIONS(ROW)                                                                                    \
  ROW(const char *, status_name, cudnnGetErrorString, (cudnn_status status))                                    \
  ROW(void, last_words, cudnnGetLastErrorString, (char *message, size_t room))                                  \
  ROW(cudnn_status, create, cudnnCreate, (cudnn_handle * out))                                                  \
  ROW(cudnn_status, destroy, cudnnDestroy, (cudnn_handle handle))                                               \
  ROW(cudnn_status, set_stream, cudnnSetStream, (cudnn_handle handle, cudnn_stream stream))                     \
  ROW(cudnn_status, descriptor_create, cudnnBackendCreateDescriptor, (cudnn_kind kind, cudnn_descriptor * out)) \
  ROW(cudnn_status, descriptor_destroy, cudnnBackendDestroyDescriptor, (cudnn_descriptor descriptor))           \
  ROW(cudnn_status, descriptor_set, cudnnBackendSetAttribute,                                                   \
      (cudnn_descriptor descriptor, cudnn_attribute attribute, cudnn_element_type type, int64_t count,          \
       const void *elements))                                                                                   \
  ROW(cudnn_status, descriptor_get, cudnnBackendGetAttribute,                                                   \
      (const cudnn_descriptor descriptor, cudnn_attribute attribute, cudnn_element_type type, int64_t room,     \
       int64_t *count, void *elements))                                                                         \
  ROW(cudnn_status, finalize, cudnnBackendFinalize, (cudnn_descriptor descriptor))                              \
  ROW(cudnn_status, execute, cudnnBackendExecute, (cudnn_handle handle, cudnn_descriptor plan, cudnn_descriptor pack))

#endif

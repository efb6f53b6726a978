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
  CUDNN_I32 = 4,               /* CUDNN_DATA_INT32 */
  CUDNN_BF16 = 9,              /* CUDNN_DATA_BFLOAT16 */
  CUDNN_BOOLEAN = 11,          /* CUDNN_DATA_BOOLEAN */
  CUDNN_CORRELATION = 1,       /* CUDNN_CROSS_CORRELATION */
  CUDNN_HEURISTIC_LEARNED = 3, /* CUDNN_HEUR_MODE_A */
  CUDNN_HEURISTIC_SAFE = 2,    /* CUDNN_HEUR_MODE_FALLBACK */

  /* Types of an attribute's elements. */
  CUDNN_OF_HANDLE = 0,      /* CUDNN_TYPE_HANDLE */
  CUDNN_OF_TYPE = 1,        /* CUDNN_TYPE_DATA_TYPE */
  CUDNN_OF_BOOLEAN = 2,     /* CUDNN_TYPE_BOOLEAN */
  CUDNN_OF_INT64 = 3,       /* CUDNN_TYPE_INT64 */
  CUDNN_OF_FLOAT = 4,       /* CUDNN_TYPE_FLOAT */
  CUDNN_OF_ADDRESS = 6,     /* CUDNN_TYPE_VOID_PTR */
  CUDNN_OF_MODE = 7,        /* CUDNN_TYPE_CONVOLUTION_MODE */
  CUDNN_OF_HEURISTIC = 8,   /* CUDNN_TYPE_HEUR_MODE */
  CUDNN_OF_NOT_NUMBER = 10, /* CUDNN_TYPE_NAN_PROPOGATION */
  CUDNN_OF_NOTE = 11,       /* CUDNN_TYPE_NUMERICAL_NOTE */
  CUDNN_OF_POINTWISE = 14,  /* CUDNN_TYPE_POINTWISE_MODE */
  CUDNN_OF_DESCRIPTOR = 15, /* CUDNN_TYPE_BACKEND_DESCRIPTOR */
  CUDNN_OF_REDUCTION = 18,  /* CUDNN_TYPE_REDUCTION_OPERATOR_TYPE */

  /* Numerical notes: properties of an engine's arithmetic. */
  CUDNN_NOTE_TENSOR_CORE = 0,       /* CUDNN_NUMERICAL_NOTE_TENSOR_CORE */
  CUDNN_NOTE_ROUNDS_FACTORS = 1,    /* CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS */
  CUDNN_NOTE_FOURIER = 3,           /* CUDNN_NUMERICAL_NOTE_FFT */
  CUDNN_NOTE_WINOGRAD = 5,          /* CUDNN_NUMERICAL_NOTE_WINOGRAD, with one of its tile */
  CUDNN_NOTE_WINOGRAD_4 = 6,        /* CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 */
  CUDNN_NOTE_WINOGRAD_6 = 7,        /* CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 */
  CUDNN_NOTE_STRICT_NOT_NUMBER = 9, /* CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP */
  CUDNN_NOTES = 10,                 /* CUDNN_NUMERICAL_NOTE_TYPE_COUNT */

  CUDNN_TENSOR = 17,              /* CUDNN_BACKEND_TENSOR_DESCRIPTOR */
  CUDNN_TENSOR_ALIGNMENT = 900,   /* CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t */
  CUDNN_TENSOR_TYPE = 901,        /* CUDNN_ATTR_TENSOR_DATA_TYPE */
  CUDNN_TENSOR_SIZES = 902,       /* CUDNN_ATTR_TENSOR_DIMENSIONS, int64_t */
  CUDNN_TENSOR_STRIDES = 903,     /* CUDNN_ATTR_TENSOR_STRIDES, int64_t */
  CUDNN_TENSOR_NUMBER = 906,      /* CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t */
  CUDNN_TENSOR_IS_VIRTUAL = 907,  /* CUDNN_ATTR_TENSOR_IS_VIRTUAL, bool: it is not stored */
  CUDNN_TENSOR_IS_BY_VALUE = 908, /* CUDNN_ATTR_TENSOR_IS_BY_VALUE, bool: a number in host memory */

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

  CUDNN_POINTWISE = 0,            /* CUDNN_BACKEND_POINTWISE_DESCRIPTOR */
  CUDNN_POINTWISE_MODE = 0,       /* CUDNN_ATTR_POINTWISE_MODE */
  CUDNN_POINTWISE_COMPUTE = 1,    /* CUDNN_ATTR_POINTWISE_MATH_PREC */
  CUDNN_POINTWISE_NOT_NUMBER = 2, /* CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, of relu; CUDNN_KEEPS_NOT_NUMBER */
  CUDNN_POINTWISE_AXIS = 9,       /* CUDNN_ATTR_POINTWISE_AXIS, int64_t */
  CUDNN_POINTWISE_OPERATION = 13, /* CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR */
  CUDNN_POINTWISE_OF = 750,       /* CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR */
  CUDNN_POINTWISE_X = 751,        /* CUDNN_ATTR_OPERATION_POINTWISE_XDESC */
  CUDNN_POINTWISE_B = 752,        /* CUDNN_ATTR_OPERATION_POINTWISE_BDESC, the second operand */
  CUDNN_POINTWISE_Y = 753,        /* CUDNN_ATTR_OPERATION_POINTWISE_YDESC */
  CUDNN_POINTWISE_T = 758,        /* CUDNN_ATTR_OPERATION_POINTWISE_TDESC, the condition */

  /* Modes of pointwise operations, and operators of reductions. */
  CUDNN_ADD = 0,                /* CUDNN_POINTWISE_ADD */
  CUDNN_MUL = 1,                /* CUDNN_POINTWISE_MUL */
  CUDNN_DIV = 6,                /* CUDNN_POINTWISE_DIV */
  CUDNN_SUB = 9,                /* CUDNN_POINTWISE_SUB */
  CUDNN_EXP = 13,               /* CUDNN_POINTWISE_EXP */
  CUDNN_LOG = 15,               /* CUDNN_POINTWISE_LOG */
  CUDNN_RELU = 100,             /* CUDNN_POINTWISE_RELU_FWD */
  CUDNN_GREATER = 302,          /* CUDNN_POINTWISE_CMP_GT */
  CUDNN_GREATER_OR_EQUAL = 303, /* CUDNN_POINTWISE_CMP_GE */
  CUDNN_INDICES = 501,          /* CUDNN_POINTWISE_GEN_INDEX */
  CUDNN_SELECT = 601,           /* CUDNN_POINTWISE_BINARY_SELECT */
  CUDNN_KEEPS_NOT_NUMBER = 1,   /* CUDNN_PROPAGATE_NAN */
  CUDNN_REDUCE_ADD = 0,         /* CUDNN_REDUCE_TENSOR_ADD */
  CUDNN_REDUCE_MAX = 3,         /* CUDNN_REDUCE_TENSOR_MAX */

  CUDNN_MATMUL = 18,               /* CUDNN_BACKEND_MATMUL_DESCRIPTOR */
  CUDNN_MATMUL_COMPUTE = 1500,     /* CUDNN_ATTR_MATMUL_COMP_TYPE */
  CUDNN_MATMUL_OPERATION = 19,     /* CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR */
  CUDNN_MATMUL_A = 1520,           /* CUDNN_ATTR_OPERATION_MATMUL_ADESC */
  CUDNN_MATMUL_B = 1521,           /* CUDNN_ATTR_OPERATION_MATMUL_BDESC */
  CUDNN_MATMUL_C = 1522,           /* CUDNN_ATTR_OPERATION_MATMUL_CDESC */
  CUDNN_MATMUL_OF = 1523,          /* CUDNN_ATTR_OPERATION_MATMUL_DESC */
  CUDNN_REDUCTION = 21,            /* CUDNN_BACKEND_REDUCTION_DESCRIPTOR */
  CUDNN_REDUCTION_OPERATOR = 1600, /* CUDNN_ATTR_REDUCTION_OPERATOR */
  CUDNN_REDUCTION_COMPUTE = 1601,  /* CUDNN_ATTR_REDUCTION_COMP_TYPE */
  CUDNN_REDUCTION_OPERATION = 22,  /* CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR */
  CUDNN_REDUCTION_X = 1610,        /* CUDNN_ATTR_OPERATION_REDUCTION_XDESC */
  CUDNN_REDUCTION_Y = 1611,        /* CUDNN_ATTR_OPERATION_REDUCTION_YDESC */
  CUDNN_REDUCTION_OF = 1612,       /* CUDNN_ATTR_OPERATION_REDUCTION_DESC */
  CUDNN_RESHAPE_OPERATION = 31,    /* CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR */
  CUDNN_RESHAPE_X = 2200,          /* CUDNN_ATTR_OPERATION_RESHAPE_XDESC */
  CUDNN_RESHAPE_Y = 2201,          /* CUDNN_ATTR_OPERATION_RESHAPE_YDESC */

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
  ROW(size_t, version, cudnnGetVersion, (void)) /* 91002: 9.10.2 */                                             \
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

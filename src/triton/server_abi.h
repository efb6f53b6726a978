/* SPDX-License-Identifier: MIT
 * The part of Triton Inference Server's binary interface that the backend uses: types, numbers and functions of
 * triton/core/tritonserver.h and tritonbackend.h (versions 1.x), by the terms of their documentation. Objects are
 * opaque. Every function returns an error, which its receiver deletes, or NULL. tests/triton/abi_triton.c compares this
 * file with the real headers.
 */
#ifndef RONDO_TRITON_SERVER_ABI_H
#define RONDO_TRITON_SERVER_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TRITONSERVER_Error triton_error;
typedef struct TRITONSERVER_Message triton_message; /* a JSON text */
typedef struct TRITONSERVER_Parameter triton_parameter;
typedef struct TRITONSERVER_MetricFamily triton_metric_family;
typedef struct TRITONSERVER_Metric triton_metric;
typedef struct TRITONBACKEND_Backend triton_backend;
typedef struct TRITONBACKEND_BackendAttribute triton_backend_attribute;
typedef struct TRITONBACKEND_Model triton_model;
typedef struct TRITONBACKEND_ModelInstance triton_instance;
typedef struct TRITONBACKEND_Request triton_request;
typedef struct TRITONBACKEND_Input triton_input;
typedef struct TRITONBACKEND_Response triton_response;
typedef struct TRITONBACKEND_Output triton_output;

enum { TRITON_API_MAJOR = 1 };

typedef enum triton_error_code {
  TRITON_ERROR_UNKNOWN,
  TRITON_ERROR_INTERNAL,
  TRITON_ERROR_NOT_FOUND,
  TRITON_ERROR_INVALID_ARGUMENT,
  TRITON_ERROR_UNAVAILABLE,
  TRITON_ERROR_UNSUPPORTED,
  TRITON_ERROR_ALREADY_EXISTS,
  TRITON_ERROR_CANCELLED
} triton_error_code;

typedef enum triton_log_level {
  TRITON_LOG_INFO,
  TRITON_LOG_WARN,
  TRITON_LOG_ERROR,
  TRITON_LOG_VERBOSE
} triton_log_level;

typedef enum triton_data_type {
  TRITON_TYPE_INVALID,
  TRITON_TYPE_BOOL,
  TRITON_TYPE_UINT8,
  TRITON_TYPE_UINT16,
  TRITON_TYPE_UINT32,
  TRITON_TYPE_UINT64,
  TRITON_TYPE_INT8,
  TRITON_TYPE_INT16,
  TRITON_TYPE_INT32,
  TRITON_TYPE_INT64,
  TRITON_TYPE_FP16,
  TRITON_TYPE_FP32,
  TRITON_TYPE_FP64,
  TRITON_TYPE_BYTES,
  TRITON_TYPE_BF16
} triton_data_type;

typedef enum triton_memory_type { TRITON_MEMORY_CPU, TRITON_MEMORY_CPU_PINNED, TRITON_MEMORY_GPU } triton_memory_type;

typedef enum triton_instance_kind {
  TRITON_INSTANCE_AUTO,
  TRITON_INSTANCE_CPU,
  TRITON_INSTANCE_GPU,
  TRITON_INSTANCE_MODEL
} triton_instance_kind;

typedef enum triton_artifact_type { TRITON_ARTIFACT_FILESYSTEM } triton_artifact_type;
typedef enum triton_parameter_type {
  TRITON_PARAMETER_STRING,
  TRITON_PARAMETER_INT,
  TRITON_PARAMETER_BOOL
} triton_parameter_type;
typedef enum triton_metric_kind { TRITON_METRIC_COUNTER, TRITON_METRIC_GAUGE } triton_metric_kind;

enum { TRITON_REQUEST_RELEASE_ALL = 1, TRITON_RESPONSE_COMPLETE_FINAL = 1, TRITON_CONFIG_VERSION = 1 };
enum { TRITON_SEQUENCE_START = 1, TRITON_SEQUENCE_END = 2 }; /* flags of a request */

/* The functions, as lists of rows: result, member of the table, symbol, arguments. */
#define TRITON_FUNCTIONS(ROW)                                                                                         \
  ROW(triton_error *, error_new, TRITONSERVER_ErrorNew, (triton_error_code, const char *))                            \
  ROW(void, error_delete, TRITONSERVER_ErrorDelete, (triton_error *))                                                 \
  ROW(const char *, error_message, TRITONSERVER_ErrorMessage, (triton_error *))                                       \
  ROW(triton_error_code, error_code, TRITONSERVER_ErrorCode, (triton_error *))                                        \
  ROW(triton_error *, log_message, TRITONSERVER_LogMessage, (triton_log_level, const char *, int, const char *))      \
  ROW(triton_error *, message_new, TRITONSERVER_MessageNewFromSerializedJson,                                         \
      (triton_message **, const char *, size_t))                                                                      \
  ROW(triton_error *, message_delete, TRITONSERVER_MessageDelete, (triton_message *))                                 \
  ROW(triton_error *, message_text, TRITONSERVER_MessageSerializeToJson, (triton_message *, const char **, size_t *)) \
  ROW(triton_error *, api_version, TRITONBACKEND_ApiVersion, (uint32_t *, uint32_t *))                                \
  ROW(triton_error *, backend_config, TRITONBACKEND_BackendConfig, (triton_backend *, triton_message **))             \
  ROW(triton_error *, backend_state, TRITONBACKEND_BackendState, (triton_backend *, void **))                         \
  ROW(triton_error *, backend_set_state, TRITONBACKEND_BackendSetState, (triton_backend *, void *))                   \
  ROW(triton_error *, model_name, TRITONBACKEND_ModelName, (triton_model *, const char **))                           \
  ROW(triton_error *, model_version, TRITONBACKEND_ModelVersion, (triton_model *, uint64_t *))                        \
  ROW(triton_error *, model_repository, TRITONBACKEND_ModelRepository,                                                \
      (triton_model *, triton_artifact_type *, const char **))                                                        \
  ROW(triton_error *, model_config, TRITONBACKEND_ModelConfig, (triton_model *, uint32_t, triton_message **))         \
  ROW(triton_error *, model_auto_complete, TRITONBACKEND_ModelAutoCompleteConfig, (triton_model *, bool *))           \
  ROW(triton_error *, model_set_config, TRITONBACKEND_ModelSetConfig, (triton_model *, uint32_t, triton_message *))   \
  ROW(triton_error *, model_backend, TRITONBACKEND_ModelBackend, (triton_model *, triton_backend **))                 \
  ROW(triton_error *, model_state, TRITONBACKEND_ModelState, (triton_model *, void **))                               \
  ROW(triton_error *, model_set_state, TRITONBACKEND_ModelSetState, (triton_model *, void *))                         \
  ROW(triton_error *, instance_kind, TRITONBACKEND_ModelInstanceKind, (triton_instance *, triton_instance_kind *))    \
  ROW(triton_error *, instance_device, TRITONBACKEND_ModelInstanceDeviceId, (triton_instance *, int32_t *))           \
  ROW(triton_error *, instance_model, TRITONBACKEND_ModelInstanceModel, (triton_instance *, triton_model **))         \
  ROW(triton_error *, instance_state, TRITONBACKEND_ModelInstanceState, (triton_instance *, void **))                 \
  ROW(triton_error *, instance_set_state, TRITONBACKEND_ModelInstanceSetState, (triton_instance *, void *))           \
  ROW(triton_error *, report_request, TRITONBACKEND_ModelInstanceReportStatistics,                                    \
      (triton_instance *, triton_request *, bool, uint64_t, uint64_t, uint64_t, uint64_t))                            \
  ROW(triton_error *, report_batch, TRITONBACKEND_ModelInstanceReportBatchStatistics,                                 \
      (triton_instance *, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))                                          \
  ROW(triton_error *, request_input, TRITONBACKEND_RequestInput, (triton_request *, const char *, triton_input **))   \
  ROW(triton_error *, request_output_count, TRITONBACKEND_RequestOutputCount, (triton_request *, uint32_t *))         \
  ROW(triton_error *, request_output_name, TRITONBACKEND_RequestOutputName,                                           \
      (triton_request *, uint32_t, const char **))                                                                    \
  ROW(triton_error *, request_release, TRITONBACKEND_RequestRelease, (triton_request *, uint32_t))                    \
  ROW(triton_error *, input_properties, TRITONBACKEND_InputProperties,                                                \
      (triton_input *, const char **, triton_data_type *, const int64_t **, uint32_t *, uint64_t *, uint32_t *))      \
  ROW(triton_error *, input_buffer, TRITONBACKEND_InputBuffer,                                                        \
      (triton_input *, uint32_t, const void **, uint64_t *, triton_memory_type *, int64_t *))                         \
  ROW(triton_error *, response_new, TRITONBACKEND_ResponseNew, (triton_response **, triton_request *))                \
  ROW(triton_error *, response_output, TRITONBACKEND_ResponseOutput,                                                  \
      (triton_response *, triton_output **, const char *, triton_data_type, const int64_t *, uint32_t))               \
  ROW(triton_error *, response_send, TRITONBACKEND_ResponseSend, (triton_response *, uint32_t, triton_error *))       \
  ROW(triton_error *, output_buffer, TRITONBACKEND_OutputBuffer,                                                      \
      (triton_output *, void **, uint64_t, triton_memory_type *, int64_t *))

/* Those that older servers lack, or servers without metrics. They are NULL then. */
#define TRITON_OPTIONAL_FUNCTIONS(ROW)                                                                              \
  ROW(triton_error *, request_is_cancelled, TRITONBACKEND_RequestIsCancelled, (triton_request *, bool *))           \
  ROW(triton_error *, request_timeout, TRITONBACKEND_InferenceRequestTimeoutMicroseconds,                           \
      (triton_request *, uint64_t *))                                                                               \
  ROW(triton_error *, request_flags, TRITONBACKEND_RequestFlags, (triton_request *, uint32_t *))                    \
  ROW(triton_error *, request_correlation, TRITONBACKEND_RequestCorrelationId, (triton_request *, uint64_t *))      \
  ROW(triton_error *, request_correlation_text, TRITONBACKEND_RequestCorrelationIdString,                           \
      (triton_request *, const char **))                                                                            \
  ROW(triton_error *, request_parameter_count, TRITONBACKEND_RequestParameterCount, (triton_request *, uint32_t *)) \
  ROW(triton_error *, request_parameter, TRITONBACKEND_RequestParameter,                                            \
      (triton_request *, uint32_t, const char **, triton_parameter_type *, const void **))                          \
  ROW(triton_error *, prefer_instances, TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup,                    \
      (triton_backend_attribute *, triton_instance_kind, uint64_t, const uint64_t *, uint64_t))                     \
  ROW(triton_parameter *, parameter_new, TRITONSERVER_ParameterNew,                                                 \
      (const char *, triton_parameter_type, const void *))                                                          \
  ROW(void, parameter_delete, TRITONSERVER_ParameterDelete, (triton_parameter *))                                   \
  ROW(triton_error *, metric_family_new, TRITONSERVER_MetricFamilyNew,                                              \
      (triton_metric_family **, triton_metric_kind, const char *, const char *))                                    \
  ROW(triton_error *, metric_family_delete, TRITONSERVER_MetricFamilyDelete, (triton_metric_family *))              \
  ROW(triton_error *, metric_new, TRITONSERVER_MetricNew,                                                           \
      (triton_metric **, triton_metric_family *, const triton_parameter **, uint64_t))                              \
  ROW(triton_error *, metric_delete, TRITONSERVER_MetricDelete, (triton_metric *))                                  \
  ROW(triton_error *, metric_increment, TRITONSERVER_MetricIncrement, (triton_metric *, double))                    \
  ROW(triton_error *, metric_set, TRITONSERVER_MetricSet, (triton_metric *, double))

/* What the server looks up in the backend. */
#define TRITON_ENTRY_POINTS(ROW)                                                                       \
  ROW(triton_error *, initialize, TRITONBACKEND_Initialize, (triton_backend *))                        \
  ROW(triton_error *, finalize, TRITONBACKEND_Finalize, (triton_backend *))                            \
  ROW(triton_error *, get_backend_attribute, TRITONBACKEND_GetBackendAttribute,                        \
      (triton_backend *, triton_backend_attribute *))                                                  \
  ROW(triton_error *, model_initialize, TRITONBACKEND_ModelInitialize, (triton_model *))               \
  ROW(triton_error *, model_finalize, TRITONBACKEND_ModelFinalize, (triton_model *))                   \
  ROW(triton_error *, instance_initialize, TRITONBACKEND_ModelInstanceInitialize, (triton_instance *)) \
  ROW(triton_error *, instance_finalize, TRITONBACKEND_ModelInstanceFinalize, (triton_instance *))     \
  ROW(triton_error *, instance_execute, TRITONBACKEND_ModelInstanceExecute,                            \
      (triton_instance *, triton_request **, uint32_t))

#define TRITON_EXPORT __attribute__((visibility("default")))
#define TRITON_DECLARE_ENTRY(result, member, symbol, arguments) TRITON_EXPORT result symbol arguments;
TRITON_ENTRY_POINTS(TRITON_DECLARE_ENTRY)
#undef TRITON_DECLARE_ENTRY

#endif

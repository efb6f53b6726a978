/* SPDX-License-Identifier: MIT
 * The fake driver itself, its devices and their primary contexts. A context keeps its handle when it is released and
 * retained again. After a fault it is lost until its last release.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda/fake.h"

fake_device fake_devices[FAKE_MAX_DEVICES];
int fake_device_count;
int fake_driver_version;
bool fake_is_initialized;
uint64_t fake_seed;
bool fake_is_serial;
int fake_capability = 9;

typedef struct code_name {
  cu_result code;
  const char *name;
} code_name;

static const code_name code_names[] = {
    {CU_OK, "CUDA_SUCCESS"},
    {CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
    {CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
    {CU_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED"},
    {CU_STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY"},
    {CU_CALL_REQUIRES_NEWER_DRIVER, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"},
    {CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
    {CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
    {CU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
    {CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
    {CU_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {CU_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE"},
    {CU_INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
    {CU_NVLINK_UNCORRECTABLE, "CUDA_ERROR_NVLINK_UNCORRECTABLE"},
    {CU_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
    {CU_CONTAINED, "CUDA_ERROR_CONTAINED"},
    {CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {CU_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE"},
    {FAKE_LOSSY_QUERY, "CUDA_ERROR_LOSSY_QUERY"},
    {CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {CU_NOT_READY, "CUDA_ERROR_NOT_READY"},
    {CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {CU_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
    {CU_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    {CU_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
    {CU_ASSERT, "CUDA_ERROR_ASSERT"},
    {CU_HARDWARE_STACK_ERROR, "CUDA_ERROR_HARDWARE_STACK_ERROR"},
    {CU_ILLEGAL_INSTRUCTION, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
    {CU_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    {CU_INVALID_ADDRESS_SPACE, "CUDA_ERROR_INVALID_ADDRESS_SPACE"},
    {CU_INVALID_PC, "CUDA_ERROR_INVALID_PC"},
    {CU_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
    {CU_TENSOR_MEMORY_LEAK, "CUDA_ERROR_TENSOR_MEMORY_LEAK"},
    {CU_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED"},
    {CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
    {CU_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {CU_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    {CU_STREAM_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE"},
    {CU_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
    {CU_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
    {CU_STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
    {CU_STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
    {CU_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT"},
    {CU_STREAM_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"},
    {CU_GRAPH_EXEC_UPDATE_FAILURE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"},
    {CU_UNKNOWN, "CUDA_ERROR_UNKNOWN"},
};

static uint64_t environment_number(const char *name, uint64_t otherwise, uint64_t most) {
  const char *text = getenv(name);
  char *end = NULL;
  if (text == NULL) return otherwise;
  const unsigned long long value = strtoull(text, &end, 10);
  return end == text || *end != '\0' || value > most ? otherwise : value;
}

__attribute__((constructor)) static void set_up(void) {
  fake_device_count = (int)environment_number("RONDO_TEST_FAKE_CUDA_DEVICES", 2, FAKE_MAX_DEVICES);
  fake_driver_version = (int)environment_number("RONDO_TEST_FAKE_CUDA_VERSION", 13000, INT_MAX);
  fake_seed = environment_number("RONDO_TEST_FAKE_CUDA_SEED", 0, UINT64_MAX);
  fake_is_serial = environment_number("RONDO_TEST_FAKE_CUDA_SERIAL", 0, 1) == 1;
  fake_late = environment_number("RONDO_TEST_FAKE_CUDA_LATE", 0, UINT64_MAX);
  fake_hang = getenv("RONDO_TEST_FAKE_CUDA_HANG");
  const uint64_t memory = environment_number("RONDO_TEST_FAKE_CUDA_MEMORY", UINT64_C(8) << 30, INT64_MAX);
  for (int i = 0; i < fake_device_count; i++) {
    fake_devices[i].ordinal = i;
    fake_devices[i].memory = memory;
    fake_devices[i].context.device = &fake_devices[i];
  }
}

fake_device *fake_device_at(int ordinal) {
  return ordinal >= 0 && ordinal < fake_device_count ? &fake_devices[ordinal] : NULL;
}

cu_result fake_init(unsigned flags) {
  cu_result code = fake_begin(CALL_init, FAKE_BEFORE_START);
  if (code == CU_OK && flags != 0) code = CU_INVALID_VALUE;
  if (code == CU_OK && fake_device_count == 0) code = CU_NO_DEVICE;
  if (code == CU_OK) fake_is_initialized = true;
  return fake_end(code);
}

cu_result fake_driver_get_version(int *version) {
  cu_result code = fake_begin(CALL_driver_get_version, FAKE_BEFORE_START);
  if (code == CU_OK && version == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) *version = fake_driver_version;
  return fake_end(code);
}

cu_result fake_get_error_name(cu_result code, const char **name) {
  cu_result result = fake_begin(CALL_get_error_name, FAKE_BEFORE_START);
  if (result != CU_OK || name == NULL) return fake_end(result == CU_OK ? CU_INVALID_VALUE : result);
  *name = NULL;
  for (size_t i = 0; i < sizeof code_names / sizeof code_names[0]; i++) {
    if (code_names[i].code == code) *name = code_names[i].name;
  }
  return fake_end(*name != NULL ? CU_OK : CU_INVALID_VALUE);
}

cu_result fake_device_get_count(int *count) {
  cu_result code = fake_begin(CALL_device_get_count, FAKE_ANYWHERE);
  if (code == CU_OK && count == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) *count = fake_device_count;
  return fake_end(code);
}

cu_result fake_device_get(cu_device *device, int ordinal) {
  cu_result code = fake_begin(CALL_device_get, FAKE_ANYWHERE);
  if (code == CU_OK && device == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK && fake_device_at(ordinal) == NULL) code = CU_INVALID_DEVICE;
  if (code == CU_OK) *device = ordinal;
  return fake_end(code);
}

cu_result fake_device_get_name(char *name, int bytes, cu_device device) {
  cu_result code = fake_begin(CALL_device_get_name, FAKE_ANYWHERE);
  if (code == CU_OK && (name == NULL || bytes <= 0)) code = CU_INVALID_VALUE;
  if (code == CU_OK && fake_device_at(device) == NULL) code = CU_INVALID_DEVICE;
  if (code == CU_OK) (void)snprintf(name, (size_t)bytes, "Fake CUDA device %d", device);
  return fake_end(code);
}

/* The same in each process. */
cu_result fake_device_get_uuid(cu_uuid *uuid, cu_device device) {
  cu_result code = fake_begin(CALL_device_get_uuid, FAKE_ANYWHERE);
  if (code == CU_OK && uuid == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK && fake_device_at(device) == NULL) code = CU_INVALID_DEVICE;
  if (code == CU_OK) *uuid = (cu_uuid){{'f', 'a', 'k', 'e', [15] = (unsigned char)(device + 1)}};
  return fake_end(code);
}

static cu_result read_attribute(cu_attribute attribute, int *value) {
  static const struct {
    cu_attribute attribute;
    int value;
  } rows[] = {{CU_ATTRIBUTE_MAX_GRID_X, FAKE_MAX_GRID_X},
              {CU_ATTRIBUTE_MAX_GRID_Y, FAKE_MAX_GRID_YZ},
              {CU_ATTRIBUTE_MAX_GRID_Z, FAKE_MAX_GRID_YZ},
              {CU_ATTRIBUTE_MULTIPROCESSOR_COUNT, FAKE_MULTIPROCESSORS},
              {CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
              {CU_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
              {CU_ATTRIBUTE_MAX_SHARED_BYTES, FAKE_MAX_SHARED},
              {CU_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT, 1},
              {CU_ATTRIBUTE_64_BIT_MEMORY_OPERATIONS, 1},
              {CU_ATTRIBUTE_WAIT_VALUE_NOR, 1},
              {CU_ATTRIBUTE_FLUSH_REMOTE_WRITES, 0},
              {CU_ATTRIBUTE_MEMORY_POOLS, 0}}; /* memory nodes are not the fake driver's */
  if (attribute == CU_ATTRIBUTE_CLUSTER_LAUNCH || attribute == CU_ATTRIBUTE_COOPERATIVE_LAUNCH) {
    *value = fake_capability >= (attribute == CU_ATTRIBUTE_CLUSTER_LAUNCH ? 9 : 6);
    return CU_OK;
  }
  if (attribute == CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
    *value = fake_capability;
    return CU_OK;
  }
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (rows[i].attribute != attribute) continue;
    *value = rows[i].value;
    return CU_OK;
  }
  return CU_INVALID_VALUE;
}

cu_result fake_device_get_attribute(int *value, cu_attribute attribute, cu_device device) {
  cu_result code = fake_begin(CALL_device_get_attribute, FAKE_ANYWHERE);
  if (code == CU_OK && value == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK && fake_device_at(device) == NULL) code = CU_INVALID_DEVICE;
  if (code == CU_OK) code = read_attribute(attribute, value);
  return fake_end(code);
}

cu_result fake_device_total_mem(size_t *bytes, cu_device device) {
  cu_result code = fake_begin(CALL_device_total_mem, FAKE_ANYWHERE);
  if (code == CU_OK && bytes == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK && fake_device_at(device) == NULL) code = CU_INVALID_DEVICE;
  if (code == CU_OK) *bytes = fake_devices[device].memory;
  return fake_end(code);
}

cu_result fake_device_can_access_peer(int *can, cu_device device, cu_device peer) {
  cu_result code = fake_begin(CALL_device_can_access_peer, FAKE_ANYWHERE);
  if (code == CU_OK && can == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK && (fake_device_at(device) == NULL || fake_device_at(peer) == NULL)) code = CU_INVALID_DEVICE;
  if (code == CU_OK) *can = device != peer;
  return fake_end(code);
}

static fake_context *retain(fake_device *device) {
  fake_context *context = &device->context;
  if (context->retained++ > 0) return context;
  const uint64_t handle = context->object.handle;
  context->object.handle = 0;
  if (handle == 0)
    fake_object_add(&context->object, FAKE_CUDA_CONTEXT, context);
  else
    fake_object_add_at(&context->object, FAKE_CUDA_CONTEXT, context, handle);
  return context;
}

cu_result fake_primary_retain(cu_context *out, cu_device device) {
  cu_result code = fake_begin(CALL_primary_retain, FAKE_BEFORE_START);
  if (code == CU_OK && !fake_is_initialized) code = CU_NOT_INITIALIZED;
  if (code == CU_OK && out == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK && fake_device_at(device) == NULL) code = CU_INVALID_DEVICE;
  if (code == CU_OK) code = fake_devices[device].context.lost;
  if (code == CU_OK) *out = fake_as(cu_context, retain(&fake_devices[device]));
  return fake_end(code);
}

void fake_context_drain(const fake_context *context) {
  for (;;) {
    fake_stream *busy = NULL;
    for (fake_stream *stream = fake_streams_first(); stream != NULL; stream = stream->next) {
      if (stream->object.context == context && stream->completed < stream->submitted) busy = stream;
    }
    if (busy == NULL) return;
    fake_context_want(context);
    fake_wait();
  }
}

static void forget_peers(fake_context *context) {
  for (int i = 0; i < fake_device_count; i++) {
    context->reaches[i] = false;
    fake_devices[i].context.reaches[context->device->ordinal] = false;
  }
}

/* What is still queued is left out. The handle is kept for the next time; only the table forgets it. */
static void release(fake_context *context) {
  if (--context->retained > 0) return;
  fake_signal();
  fake_context_drain(context);
  const uint64_t handle = context->object.handle;
  fake_streams_end_defaults(context);
  context->lost = CU_OK;
  forget_peers(context);
  fake_object_remove(&context->object);
  context->object.handle = handle;
}

cu_result fake_primary_release(cu_device device) {
  cu_result code = fake_begin(CALL_primary_release, FAKE_BEFORE_START | FAKE_ALL_THE_SAME);
  if (code == CU_OK && fake_device_at(device) == NULL) code = CU_INVALID_DEVICE;
  if (code == CU_OK && fake_devices[device].context.retained == 0)
    code = fake_violation(CU_INVALID_CONTEXT, "primary context of device %d released more often than retained", device);
  if (code == CU_OK) release(&fake_devices[device].context);
  return fake_end(code);
}

cu_result fake_context_get_current(cu_context *context) {
  cu_result code = fake_begin(CALL_context_get_current, FAKE_BEFORE_START);
  if (code == CU_OK && context == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) *context = fake_self.current != NULL ? fake_as(cu_context, fake_self.current) : NULL;
  return fake_end(code);
}

/* A context that was released may be set again: a thread may have had it current all the time. */
static fake_context *find_context(cu_context handle) {
  for (int i = 0; i < fake_device_count; i++) {
    if (fake_devices[i].context.object.handle == fake_handle(handle)) return &fake_devices[i].context;
  }
  (void)fake_violation(CU_INVALID_CONTEXT, "no context has the handle %p", (void *)handle);
  return NULL;
}

cu_result fake_context_set_current(cu_context handle) {
  cu_result code = fake_begin(CALL_context_set_current, FAKE_BEFORE_START);
  fake_context *context = NULL;
  if (code == CU_OK && handle != NULL && (context = find_context(handle)) == NULL) code = CU_INVALID_CONTEXT;
  if (code == CU_OK) fake_self.current = context;
  return fake_end(code);
}

cu_result fake_context_get_device(cu_device *device) {
  cu_result code = fake_begin(CALL_context_get_device, FAKE_IN_CONTEXT);
  if (code == CU_OK && device == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) *device = fake_self.current->device->ordinal;
  return fake_end(code);
}

/* It is remembered, no more: mappings have access of their own. */
cu_result fake_context_enable_peer(cu_context handle, unsigned flags) {
  cu_result code = fake_begin(CALL_context_enable_peer, FAKE_IN_CONTEXT);
  const fake_context *peer = code == CU_OK ? find_context(handle) : NULL;
  if (code == CU_OK && (peer == NULL || peer == fake_self.current)) code = CU_INVALID_CONTEXT;
  if (code == CU_OK && flags != 0) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = fake_gate_unsafe();
  if (code == CU_OK && fake_self.current->reaches[peer->device->ordinal]) code = FAKE_CUDA_PEER_IS_ENABLED;
  if (code == CU_OK) fake_self.current->reaches[peer->device->ordinal] = true;
  return fake_end(code);
}

cu_result fake_context_synchronize(void) {
  cu_result code = fake_begin(CALL_context_synchronize, FAKE_IN_CONTEXT | FAKE_ALL_THE_SAME);
  if (code == CU_OK) code = fake_gate_context(fake_self.current);
  if (code == CU_OK) {
    fake_context_drain(fake_self.current);
    code = fake_self.current->lost;
  }
  return fake_end(code);
}

void fake_context_lose(fake_context *context, cu_result code) {
  if (context->lost == CU_OK && context->retained > 0) context->lost = code;
  fake_signal();
  while (context->running > 0) fake_wait();
}

bool fake_context_works(const fake_context *context) { return context->retained > 0 && context->lost == CU_OK; }

void fake_contexts_reset(void) {
  for (int i = 0; i < fake_device_count; i++) {
    fake_context *context = &fake_devices[i].context;
    if (context->retained == 0) continue;
    context->retained = 1;
    release(context);
  }
}

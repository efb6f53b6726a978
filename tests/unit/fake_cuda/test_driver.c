/* SPDX-License-Identifier: MIT
 * The fake CUDA driver itself: finding functions, devices, contexts, calls that fail, misuse, the table of live
 * objects.
 */
#include "unit/fake_cuda/fake_test.h"

typedef cu_result (*get_address_fn)(const char *symbol, void **out, int version, uint64_t flags, int *found);

static get_address_fn get_address_function(void) {
  void *symbol = foreign_symbol("cuGetProcAddress_v2");
  get_address_fn function;
  memcpy(&function, &symbol, sizeof function);
  return function;
}

FAKE_TEST(every_row_is_found_at_its_version) {
  const get_address_fn get_address = get_address_function();
  int found = -1;
  void *address = NULL;
#define required(member, symbol, version, arguments)                     \
  assert_cu_ok(get_address(#symbol, &address, version, 0, &found));      \
  assert_non_null(address);                                              \
  assert_int_equal(found, 0);                                            \
  assert_ptr_equal(address, foreign_symbol(#symbol));                    \
  assert_cu_ok(get_address(#symbol, &address, version - 10, 0, &found)); \
  assert_null(address);                                                  \
  assert_int_equal(found, 2);
#define optional required
#include "vendor/cuda_driver_symbols.h"
#undef optional
#undef required
}

FAKE_TEST(unknown_and_hidden_names_are_not_found) {
  const get_address_fn get_address = get_address_function();
  int found = -1;
  void *address = &found;
  assert_cu_ok(get_address("cuNoSuchThing", &address, 12000, 0, &found));
  assert_null(address);
  assert_int_equal(found, 1);
  f->fake->hide("cuMemMap");
  assert_cu_ok(get_address("cuMemMap", &address, 12000, 0, &found));
  assert_null(address);
  assert_code(get_address("cuMemUnmap", &address, 99000, 0, &found), CU_INVALID_VALUE);
  assert_code(get_address(NULL, &address, 12000, 0, &found), CU_INVALID_VALUE);
  f->fake->forget();
  assert_cu_ok(get_address("cuMemMap", &address, 12000, 0, &found));
  assert_non_null(address);
}

FAKE_TEST(devices_say_what_they_are) {
  int count = 0, value = 0, can = -1;
  cu_device device = -1;
  char name[64];
  size_t bytes = 0;
  assert_cu_ok(f->api->device_get_count(&count));
  assert_int_equal(count, 2);
  assert_cu_ok(f->api->device_get(&device, 1));
  assert_code(f->api->device_get(&device, 2), CU_INVALID_DEVICE);
  assert_cu_ok(f->api->device_get_name(name, sizeof name, 1));
  assert_string_equal(name, "Fake CUDA device 1");
  assert_cu_ok(f->api->device_get_attribute(&value, CU_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  assert_int_equal(value, 132);
  assert_cu_ok(f->api->device_get_attribute(&value, CU_ATTRIBUTE_MAX_GRID_X, 0));
  assert_int_equal(value, INT32_MAX);
  assert_cu_ok(f->api->device_get_attribute(&value, CU_ATTRIBUTE_MAX_GRID_Y, 0));
  assert_int_equal(value, UINT16_MAX);
  assert_code(f->api->device_get_attribute(&value, 100000, 0), CU_INVALID_VALUE);
  assert_cu_ok(f->api->device_total_mem(&bytes, 0));
  assert_true(bytes == (size_t)8 << 30);
  assert_cu_ok(f->api->device_can_access_peer(&can, 0, 1));
  assert_int_equal(can, 1);
  assert_cu_ok(f->api->device_can_access_peer(&can, 1, 1));
  assert_int_equal(can, 0);
  assert_string_equal(cuda_code_name(f->api, CU_STREAM_CAPTURE_IMPLICIT), "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT");
  assert_string_equal(cuda_code_name(f->api, 12345), "CUDA_ERROR_UNKNOWN");
}

FAKE_TEST(contexts_are_counted_and_current_for_a_thread) {
  cu_context again = NULL, current = NULL;
  cu_stream stream = NULL;
  assert_cu_ok(f->api->primary_retain(&again, 0));
  assert_ptr_equal(again, f->context);
  assert_cu_ok(f->api->primary_release(0));
  assert_cu_ok(f->api->context_get_current(&current));
  assert_ptr_equal(current, f->context);
  assert_cu_ok(f->api->context_set_current(NULL));
  assert_code(f->api->stream_create(&stream, 0), CU_INVALID_CONTEXT);
  expect_violations(f, 1);
  assert_code(f->api->context_set_current((cu_context)f->stream), CU_INVALID_CONTEXT);
  assert_code(f->api->primary_release(1), CU_INVALID_CONTEXT);
  expect_violations(f, 2);
  assert_cu_ok(f->api->context_set_current(f->context));
}

FAKE_TEST(a_released_context_is_noticed_and_comes_back) {
  cu_context context = NULL, again = NULL;
  cu_event event = NULL;
  assert_cu_ok(f->api->primary_retain(&context, 1));
  assert_cu_ok(f->api->context_set_current(context));
  assert_cu_ok(f->api->primary_release(1));
  assert_code(f->api->event_create(&event, 0), CU_CONTEXT_IS_DESTROYED);
  expect_violations(f, 1);
  assert_cu_ok(f->api->primary_retain(&again, 1));
  assert_ptr_equal(again, context);
  assert_cu_ok(f->api->event_create(&event, 0));
  assert_cu_ok(f->api->event_destroy(event));
  assert_cu_ok(f->api->primary_release(1));
  assert_cu_ok(f->api->context_set_current(f->context));
}

FAKE_TEST(the_ledger_lists_what_is_alive) {
  cu_event event = NULL;
  char text[1024];
  assert_int_equal(f->fake->live(FAKE_CUDA_STREAM), 2);
  assert_cu_ok(f->api->event_create(&event, 0));
  assert_int_equal(f->fake->live(FAKE_CUDA_EVENT), 1);
  assert_int_equal(f->fake->live(FAKE_CUDA_ANY), 4);
  f->fake->list(text, sizeof text);
  assert_non_null(strstr(text, "event 0x"));
  assert_non_null(strstr(text, "context 0x"));
  assert_cu_ok(f->api->event_destroy(event));
  assert_int_equal(f->fake->live(FAKE_CUDA_EVENT), 0);
}

FAKE_TEST(destroyed_and_foreign_handles_are_violations) {
  cu_event event = NULL;
  char text[1024];
  assert_cu_ok(f->api->event_create(&event, 0));
  assert_cu_ok(f->api->event_destroy(event));
  assert_code(f->api->event_destroy(event), CU_INVALID_HANDLE);
  assert_code(f->api->event_query(event), CU_INVALID_HANDLE);
  assert_code(f->api->stream_query((cu_stream)event), CU_INVALID_HANDLE);
  f->fake->list_violations(text, sizeof text);
  assert_non_null(strstr(text, "no event has the handle"));
  expect_violations(f, 3);
}

FAKE_TEST(the_nth_call_fails) {
  cu_event events[3] = {NULL};
  const uint64_t before = f->fake->calls("cuEventCreate");
  f->fake->fail_call("cuEventCreate", 2, CU_OUT_OF_MEMORY, false);
  assert_cu_ok(f->api->event_create(&events[0], 0));
  assert_null(f->fake->failed());
  assert_code(f->api->event_create(&events[1], 0), CU_OUT_OF_MEMORY);
  assert_non_null(f->fake->failed());
  assert_cu_ok(f->api->event_create(&events[2], 0));
  assert_true(f->fake->calls("cuEventCreate") == before + 3);
  f->fake->fail_call(NULL, 1, CU_UNKNOWN, true);
  assert_code(f->api->stream_query(f->stream), CU_UNKNOWN);
  assert_code(f->api->event_query(events[0]), CU_UNKNOWN);
  f->fake->fail_call(NULL, 0, CU_OK, false);
  assert_cu_ok(f->api->event_destroy(events[0]));
  assert_cu_ok(f->api->event_destroy(events[2]));
}

/* As calls of a driver that hand on an asynchronous error: what is given back is gone. */
FAKE_TEST(what_gives_back_does_so_although_it_fails) {
  cu_event event = NULL;
  cu_graph graph = NULL;
  assert_cu_ok(f->api->event_create(&event, 0));
  f->fake->fail_call("cuEventDestroy", 1, CU_UNKNOWN, false);
  assert_code(f->api->event_destroy(event), CU_UNKNOWN);
  assert_int_equal(f->fake->live(FAKE_CUDA_EVENT), 0);
  assert_cu_ok(f->api->capture_begin(f->stream, CU_CAPTURE_MODE_RELAXED));
  f->fake->fail_call("cuStreamEndCapture", 1, CU_UNKNOWN, false);
  assert_code(f->api->capture_end(f->stream, &graph), CU_UNKNOWN);
  assert_null(graph);
  assert_int_equal(f->fake->live(FAKE_CUDA_GRAPH), 0);
  assert_cu_ok(f->api->stream_query(f->stream));
}

RUINS_TEST(a_losing_failure_loses_the_context) {
  cu_event event = NULL;
  cu_context context = NULL;
  f->fake->fail_call("cuEventCreate", 1, CU_LAUNCH_FAILED, false);
  assert_code(f->api->event_create(&event, 0), CU_LAUNCH_FAILED);
  assert_code(f->api->stream_query(f->stream), CU_LAUNCH_FAILED);
  assert_code(f->api->context_synchronize(), CU_LAUNCH_FAILED);
  assert_code(f->api->stream_destroy(f->stream), CU_LAUNCH_FAILED);
  assert_int_equal(f->fake->live(FAKE_CUDA_STREAM), 1);
  assert_code(f->api->primary_retain(&context, 0), CU_LAUNCH_FAILED);
  assert_cu_ok(f->api->primary_release(0));
  assert_cu_ok(f->api->primary_retain(&context, 0));
  assert_cu_ok(f->api->event_create(&event, 0));
  assert_int_equal(f->fake->violations(), 0);
}

/* Work that a released context left is dropped, and what fails after the release loses nothing. */
RUINS_TEST(a_released_context_begins_again) {
  const cu_address memory = make_memory(f);
  cu_context context = NULL;
  _Atomic uint32_t held = 0; /* for good: a host function would be waited for */
  assert_cu_ok(f->api->stream_wait_value_32(f->stream, (uintptr_t)&held, 1, CU_WAIT_VALUE_EQUAL));
  assert_cu_ok(f->api->memset_32_async(memory, 1, 1, f->stream));
  free_memory(f, memory);
  assert_cu_ok(f->api->primary_release(0));
  f->fake->fail_call("cuCtxSetCurrent", 1, CU_LAUNCH_FAILED, false);
  assert_code(f->api->context_set_current(NULL), CU_LAUNCH_FAILED);
  f->fake->settle();
  assert_cu_ok(f->api->primary_retain(&context, 0));
  assert_cu_ok(f->api->context_synchronize());
}

RUINS_TEST(a_lost_device_leaves_the_others_alone) {
  cu_context second = NULL;
  cu_event event = NULL;
  assert_cu_ok(f->api->primary_retain(&second, 1));
  f->fake->lose(0, CU_ILLEGAL_ADDRESS);
  assert_code(f->api->event_create(&event, 0), CU_ILLEGAL_ADDRESS);
  assert_cu_ok(f->api->context_set_current(second));
  assert_cu_ok(f->api->event_create(&event, 0));
  assert_code(f->api->event_record(event, f->stream), CU_INVALID_HANDLE);
  assert_code(f->api->stream_synchronize(f->stream), CU_ILLEGAL_ADDRESS);
}

/* SPDX-License-Identifier: MIT
 * The size rules of <rondo/rondo.h>. struct_size 0 means this version's struct. A longer struct is accepted if its tail
 * is zero; a shorter one is an error. The library never writes past this version's struct. Also invalid values of enums
 * and options.
 */
#include "support/rondo_test.h"

#include <string.h>

/* A struct of a later version of the header: `type` and more members after it. */
#define LATER_VERSION(type) \
  struct {                  \
    type known;             \
    uint64_t tail[4];       \
  }

typedef LATER_VERSION(rondo_device_options) later_device_options;
typedef LATER_VERSION(rondo_stream_options) later_stream_options;
typedef LATER_VERSION(rondo_event_options) later_event_options;
typedef LATER_VERSION(rondo_kernel_options) later_kernel_options;
typedef LATER_VERSION(rondo_graph_options) later_graph_options;
typedef LATER_VERSION(rondo_malloc_options) later_malloc_options;
typedef LATER_VERSION(rondo_instantiate_options) later_instantiate_options;
typedef LATER_VERSION(rondo_recording_options) later_recording_options;
typedef LATER_VERSION(rondo_patch_options) later_patch_options;
typedef LATER_VERSION(rondo_communicator_options) later_communicator_options;
typedef LATER_VERSION(rondo_communicator_info) later_communicator_info;
typedef LATER_VERSION(rondo_collective_engine) later_engine;

#define assert_bad_options(call) assert_error(call, RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS)

TEST(test_device_options_of_any_version) {
  later_device_options later = {.known = {.struct_size = sizeof later}};
  rondo_device *device = NULL;
  assert_ok(rondo_device_open(test_device_name(), &later.known, &device));
  assert_ok(rondo_device_close(device));
  later.known.struct_size = 0;
  assert_ok(rondo_device_open(test_device_name(), &later.known, &device));
  assert_ok(rondo_device_close(device));
  later.known.struct_size = sizeof later;
  later.tail[3] = 1;
  assert_bad_options(rondo_device_open(test_device_name(), &later.known, &device));
  assert_null(device);
}

TEST(test_stream_options_of_any_version) {
  later_stream_options later = {.known = {.struct_size = sizeof later, .name = "later"}};
  rondo_stream *stream = NULL;
  assert_ok(rondo_stream_create(t->device, &later.known, &stream));
  test_stream_destroy(stream);
  later.known.struct_size = 0;
  assert_ok(rondo_stream_create(t->device, &later.known, &stream));
  test_stream_destroy(stream);
  later.known.struct_size = sizeof later;
  later.tail[0] = 1;
  assert_bad_options(rondo_stream_create(t->device, &later.known, &stream));
  assert_null(stream);
}

TEST(test_communicator_structs_of_any_version) {
  later_communicator_options later = {.known = {.struct_size = sizeof later}};
  later_communicator_info info = {.known = {.struct_size = sizeof info}};
  rondo_communicator *communicator = NULL;
  if (test_device_is("cuda")) skip();
  info.tail[0] = 5;
  assert_ok(rondo_communicator_create_all(&t->device, 1, &later.known, &communicator));
  assert_ok(rondo_communicator_get_info(communicator, &info.known));
  assert_int_equal(info.known.world_size, 1);
  assert_ok(rondo_communicator_destroy(communicator));
  later.tail[3] = 1;
  assert_bad_options(rondo_communicator_create_all(&t->device, 1, &later.known, &communicator));
  assert_null(communicator);
  later_engine engine = {.known = {.struct_size = sizeof engine, .world_size = 1}};
  engine.tail[2] = 1;
  assert_bad_options(rondo_communicator_from_engine(t->device, &engine.known, NULL, &communicator));
  assert_null(communicator);
}

TEST(test_event_options_of_any_version) {
  later_event_options later = {.known = {.struct_size = sizeof later}};
  rondo_event *event = NULL;
  assert_ok(rondo_event_create(t->device, &later.known, &event));
  rondo_event_destroy(event);
  later.tail[1] = 1;
  assert_bad_options(rondo_event_create(t->device, &later.known, &event));
  assert_null(event);
}

TEST(test_kernel_options_of_any_version) {
  later_kernel_options later = {.known = *test_kernel_options(TEST_KERNEL_SET)};
  later.known.struct_size = sizeof later;
  rondo_kernel *kernel = test_kernel_make(t, &later.known);
  rondo_kernel_destroy(kernel);
  later.known.struct_size = 0;
  assert_ok(rondo_kernel_create(t->device, &later.known, &kernel));
  rondo_kernel_destroy(kernel);
  later.known.struct_size = sizeof later;
  later.tail[2] = 1;
  assert_bad_options(rondo_kernel_create(t->device, &later.known, &kernel));
  assert_null(kernel);
}

TEST(test_graph_options_of_any_version) {
  later_graph_options later = {.known = {.struct_size = sizeof later, .name = "later"}};
  rondo_graph *graph = NULL;
  assert_ok(rondo_graph_create(t->device, &later.known, &graph));
  test_graph_destroy(graph);
  later.tail[0] = 1;
  assert_bad_options(rondo_graph_create(t->device, &later.known, &graph));
  assert_null(graph);
}

TEST(test_recording_options_of_any_version) {
  later_recording_options later = {.known = {.struct_size = sizeof later, .name = "later"}};
  rondo_recording *recording = test_recording(t, &later.known);
  assert_ok(rondo_recording_destroy(recording));
  later.tail[0] = 1;
  assert_bad_options(rondo_recording_create(t->device, &later.known, &recording));
  assert_null(recording);
}

TEST(test_malloc_options_of_any_version) {
  later_malloc_options later = {.known = {.struct_size = sizeof later, .name = "later"}};
  void *address = NULL;
  assert_ok(rondo_malloc_async(t->stream, 256, &later.known, &address));
  assert_ok(rondo_free_async(t->stream, address));
  later.tail[0] = 1;
  assert_bad_options(rondo_malloc_async(t->stream, 256, &later.known, &address));
  assert_null(address);
}

TEST(test_instantiate_options_of_any_version) {
  rondo_graph *graph = test_graph(t);
  later_instantiate_options later = {.known = {.struct_size = sizeof later}};
  rondo_exec *exec = test_instantiate_with(graph, &later.known);
  rondo_exec_destroy(exec);
  later.tail[0] = 1;
  assert_bad_options(rondo_instantiate(graph, &later.known, &exec));
  assert_null(exec);
}

/* A size that ends within the struct's own size field is no version. */
TEST(test_an_impossible_size_is_refused) {
  const rondo_stream_options options = {.struct_size = 2};
  rondo_stream *stream = NULL;
  assert_bad_options(rondo_stream_create(t->device, &options, &stream));
  assert_null(stream);
}

/* A size that ends inside a pointer is no version's: half of the pointer would be used. */
TEST(test_a_size_that_cuts_a_field_is_refused) {
  rondo_stream *stream = NULL;
  rondo_graph *graph = NULL;
  rondo_program *program = NULL;
  void *address = NULL;
  const rondo_stream_options named = {.struct_size = offsetof(rondo_stream_options, name) + 4, .name = "cut"};
  assert_bad_options(rondo_stream_create(t->device, &named, &stream));
  assert_message("this version's struct has");
  const rondo_graph_options allocated = {.struct_size = offsetof(rondo_graph_options, allocator) + 4};
  assert_bad_options(rondo_graph_create(t->device, &allocated, &graph));
  const rondo_malloc_options malloced = {.struct_size = offsetof(rondo_malloc_options, name) + 4, .name = "cut"};
  assert_bad_options(rondo_malloc_async(t->stream, 256, &malloced, &address));
  const rondo_program_options programmed = {.struct_size = offsetof(rondo_program_options, name) + 4, .name = "cut"};
  assert_bad_options(rondo_program_create(&programmed, &program));
}

TEST(test_reserved_fields_must_be_zero) {
  rondo_device *device = NULL;
  rondo_graph *graph = NULL;
  rondo_kernel *kernel = NULL;
  rondo_program *program = NULL;
  rondo_generator *generator = NULL;
  rondo_weights *weights = NULL;
  rondo_pool *pool = NULL;
  void *address = NULL;
  rondo_kernel_options code = *test_kernel_options(TEST_KERNEL_SET);
  code.reserved = 1;
  assert_bad_options(rondo_device_open(test_device_name(), &(rondo_device_options){.reserved = 1}, &device));
  assert_message("rondo_device_options: 'reserved' is set");
  assert_bad_options(rondo_graph_create(t->device, &(rondo_graph_options){.reserved = 1}, &graph));
  assert_bad_options(rondo_kernel_create(t->device, &code, &kernel));
  assert_bad_options(rondo_program_create(&(rondo_program_options){.reserved = 1}, &program));
  assert_bad_options(rondo_generator_create(t->device, &(rondo_generator_options){.reserved = 1}, &generator));
  assert_bad_options(rondo_weights_parse("", 0, &(rondo_weights_options){.reserved = 1}, &weights));
  assert_bad_options(rondo_pool_create(t->device, &(rondo_pool_options){.reserved = 1}, &pool));
  assert_bad_options(rondo_malloc_async(t->stream, 256, &(rondo_malloc_options){.reserved = 1}, &address));
  rondo_kernel *set = test_kernel(t, TEST_KERNEL_SET);
  assert_bad_options(rondo_launch_with(t->stream, set, (rondo_grid){1, 0, 0}, RONDO_ARGS(&address, &address),
                                       &(rondo_launch_options){.reserved = 1}));
}

#define UNTOUCHED 0xee

/* Makes the call with a struct of each size up to that of a later version. Shorter structs are refused and unchanged;
 * longer ones are filled except for their tails. */
#define CHECK_FILLED(type, call)                                                            \
  do {                                                                                      \
    LATER_VERSION(type) later;                                                              \
    type *const out = &later.known;                                                         \
    const unsigned char *bytes = (const unsigned char *)&later;                             \
    for (uint32_t size = 1; size <= sizeof later; size++) {                                 \
      memset(&later, UNTOUCHED, sizeof later);                                              \
      out->struct_size = size;                                                              \
      if (size < sizeof(type))                                                              \
        assert_bad_options(call);                                                           \
      else                                                                                  \
        assert_ok(call);                                                                    \
      assert_int_equal(out->struct_size, size);                                             \
      const size_t filled = size < sizeof(type) ? sizeof out->struct_size : sizeof(type);   \
      for (size_t i = filled; i < sizeof later; i++) assert_int_equal(bytes[i], UNTOUCHED); \
    }                                                                                       \
  } while (false)

static rondo_status count_work(rondo_stream *stream, void *user) {
  (void)stream;
  ++*(int *)user;
  return RONDO_OK;
}

static uint64_t allocations_of(rondo_device *device) {
  rondo_device_statistics statistics = {.struct_size = sizeof statistics};
  assert_ok(rondo_device_get_statistics(device, &statistics));
  return statistics.host_allocations;
}

/* A call that does something refuses the struct first. */
TEST(test_a_refused_struct_comes_before_the_work) {
  rondo_gain gain = {.struct_size = sizeof gain - 4};
  rondo_costs costs = {.struct_size = sizeof costs - 4};
  int works = 0;
  assert_bad_options(rondo_gain_measure(t->stream, count_work, &works, 1, &gain));
  assert_message("rondo_gain: struct_size is");
  assert_int_equal(works, 0);
  assert_ok(rondo_device_set_costs(t->device, NULL));
  const uint64_t allocations = allocations_of(t->device);
  assert_bad_options(rondo_device_get_costs(t->device, &costs));
  assert_message("rondo_costs: struct_size is");
  assert_int_equal(allocations_of(t->device), allocations);
}

TEST(test_patch_options_of_any_version) {
  rondo_graph *graph = test_graph(t);
  rondo_exec *exec = test_instantiate(graph);
  later_patch_options options = {.known = {.struct_size = sizeof options}};
  rondo_patch_set *set = NULL;
  assert_ok(rondo_patch_set_create(exec, NULL, 0, &options.known, &set));
  CHECK_FILLED(rondo_patch_info, rondo_patch_set_get_info(set, out));
  rondo_patch_set_destroy(set);
  options.tail[0] = 1;
  assert_bad_options(rondo_patch_set_create(exec, NULL, 0, &options.known, &set));
  assert_null(set);
}

/* CHECK_FILLED asserts for each size of the struct what is accepted and which bytes are written. */
TEST(test_filled_structs_of_any_version) {
  rondo_graph *graph = test_graph(t);
  rondo_exec *exec = test_instantiate(graph);
  CHECK_FILLED(rondo_device_info, rondo_device_get_info(t->device, out));
  CHECK_FILLED(rondo_device_statistics, rondo_device_get_statistics(t->device, out));
  CHECK_FILLED(rondo_memory_statistics, rondo_memory_get_statistics(t->device, out));
  CHECK_FILLED(rondo_exec_info, rondo_exec_get_info(exec, out));
  CHECK_FILLED(rondo_capture_info, rondo_capture_get_info(t->stream, out));
  CHECK_FILLED(rondo_update_result, rondo_exec_update(exec, graph, out));
}

TEST(test_filled_structs_of_size_zero_are_filled_whole) {
  rondo_device_info info = {.struct_size = 0};
  rondo_device_statistics statistics = {.struct_size = 0};
  assert_ok(rondo_device_get_info(t->device, &info));
  assert_true(info.graph_memory || info.page_bytes != 0);
  assert_ok(rondo_device_get_statistics(t->device, &statistics));
  assert_true(statistics.host_allocations > 0);
}

TEST(test_null_arguments_are_refused) {
  rondo_stream *stream = (rondo_stream *)t;
  rondo_event *event = (rondo_event *)t;
  rondo_graph *graph = (rondo_graph *)t;
  rondo_exec *exec = (rondo_exec *)t;
  void *address = t;
#define assert_null_refused(call) assert_error(call, RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT)
  assert_null_refused(rondo_stream_create(NULL, NULL, &stream));
  assert_null(stream);
  assert_null_refused(rondo_stream_create(t->device, NULL, NULL));
  assert_null_refused(rondo_event_create(NULL, NULL, &event));
  assert_null(event);
  assert_null_refused(rondo_graph_create(t->device, NULL, NULL));
  assert_null_refused(rondo_instantiate(NULL, NULL, &exec));
  assert_null(exec);
  assert_null_refused(rondo_malloc(NULL, 64, NULL, &address));
  assert_null(address);
  assert_null_refused(rondo_malloc(t->device, 64, NULL, NULL));
  assert_null_refused(rondo_device_get_info(t->device, NULL));
  assert_null_refused(rondo_device_get_info(NULL, &(rondo_device_info){0}));
  assert_null_refused(rondo_stream_synchronize(NULL));
  assert_null_refused(rondo_capture_begin(NULL, RONDO_CAPTURE_RELAXED));
  assert_null_refused(rondo_capture_end(NULL, &graph));
  assert_null(graph);
  assert_null_refused(rondo_exec_launch(NULL, t->stream));
#undef assert_null_refused
}

TEST(test_destroying_null_is_fine) {
  assert_ok(rondo_stream_destroy(NULL));
  assert_ok(rondo_graph_destroy(NULL));
  rondo_event_destroy(NULL);
  rondo_exec_destroy(NULL);
  rondo_kernel_destroy(NULL);
  rondo_text_free(NULL);
}

TEST(test_modes_that_do_not_exist_are_refused) {
  assert_fails(rondo_capture_begin(t->stream, (rondo_capture_mode)17), RONDO_INVALID_ARGUMENT);
  rondo_capture_mode mode = (rondo_capture_mode)17;
  assert_fails(rondo_capture_exchange_thread_mode(&mode), RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_capture_exchange_thread_mode(NULL), RONDO_INVALID_ARGUMENT);
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  rondo_node_params params = {.kind = (rondo_node_kind)77};
  assert_fails(rondo_graph_add(graph, NULL, 0, &params, &node), RONDO_INVALID_ARGUMENT);
  assert_true(node.id == 0);
}

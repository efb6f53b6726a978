/* SPDX-License-Identifier: MIT
 * Errors that a checking device finds while work runs (GM-5, GM-18): accesses outside a lifetime, and past the end or
 * before the beginning of an allocation, by kernels whose pointers are not declared, by copies, by host functions. Each
 * is named, and the process and the device remain usable. Also the initial contents of its memory, and its maximum
 * number of allocations.
 */
#define _GNU_SOURCE
#include "support/rondo_test.h"
#include "support/test_effort.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 4096, POISON = 0x7ffcdead };

/* Kernels that are given an address inside of a plain value. Each block of the first writes `count` bytes of its own.
 */

typedef struct poke {
  unsigned char *address;
  int64_t offset;
  uint32_t count, value;
} poke;

static void poke_cpu(rondo_blocks blocks, void *const *args) {
  const poke *self = args[0];
  for (size_t b = blocks.first; b < blocks.last; b++)
    for (uint32_t i = 0; i < self->count; i++)
      self->address[self->offset + (int64_t)(b * self->count + i)] = (unsigned char)self->value;
}

/* *out = the byte at the address. */
static void peek_cpu(rondo_blocks blocks, void *const *args) {
  const unsigned char *address = *(const unsigned char *const *)args[0];
  uint32_t *out = *(uint32_t *const *)args[1];
  if (blocks.first == 0) *out = *address;
}

static const rondo_kernel_options poke_options = {RONDO_KERNEL_OPTIONS_INIT, .name = "poke", .cpu = poke_cpu,
                                                  .params = {RONDO_SCALAR(poke)}};
static const rondo_kernel_options peek_options = {RONDO_KERNEL_OPTIONS_INIT, .name = "peek", .cpu = peek_cpu,
                                                  .params = {RONDO_SCALAR(void *), RONDO_WRITES}};

static void poke_on(test_fixture *t, rondo_stream *stream, void *address, int64_t offset, uint32_t count) {
  rondo_kernel *kernel = test_kernel_make(t, &poke_options);
  const poke self = {.address = address, .offset = offset, .count = count, .value = 7};
  assert_ok(rondo_launch(stream, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&self)));
  rondo_kernel_destroy(kernel);
}

static rondo_node add_poke(test_fixture *t, rondo_graph *graph, const rondo_node *dependencies, size_t count,
                           void *address, int64_t offset, uint32_t bytes) {
  rondo_kernel *kernel = test_kernel_make(t, &poke_options);
  const poke self = {.address = address, .offset = offset, .count = bytes, .value = 7};
  rondo_node node = {0};
  assert_ok(
      rondo_graph_add_kernel(graph, dependencies, count, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&self), &node));
  rondo_kernel_destroy(kernel);
  return node;
}

/* The next synchronisation says what happened, the one after that nothing, and the device works. */
static void assert_found(test_fixture *t, rondo_reason reason, const char *work, const char *allocation) {
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, reason);
  assert_message(work);
  assert_message(allocation);
  assert_ok(rondo_device_synchronize(t->device));
  uint32_t *words = test_words(t, 8);
  test_affine(t, t->stream, words, 8, 1, 5);
  assert_int_equal(test_word(t, words + 7), 5);
  test_words_free(t, words);
}

/* Work on streams -------------------------------------------------------------------------------------------------- */

TEST(test_gm18_use_after_an_immediate_free) {
  void *gone = test_allocate(t, BYTES, "gone");
  assert_ok(rondo_free(t->device, gone));
  poke_on(t, t->stream, gone, 100, 1);
  assert_found(t, RONDO_REASON_USE_AFTER_FREE, "kernel 'poke'", "writes byte 100 of allocation 'gone' (4.0 KiB)");
  gone = test_allocate(t, BYTES, NULL);
  assert_ok(rondo_free(t->device, gone));
  poke_on(t, t->stream, gone, 100, 1);
  assert_found(t, RONDO_REASON_USE_AFTER_FREE, "kernel 'poke'", "byte 100 of allocation (no name, 4.0 KiB)");
}

TEST(test_gm18_use_after_a_stream_ordered_free) {
  void *gone = NULL;
  const rondo_malloc_options options = {RONDO_MALLOC_OPTIONS_INIT, .name = "gone"};
  assert_ok(rondo_malloc_async(t->stream, BYTES, &options, &gone));
  poke_on(t, t->stream, gone, 0, BYTES); /* in its lifetime */
  assert_ok(rondo_free_async(t->stream, gone));
  assert_ok(rondo_stream_synchronize(t->stream));
  void *other = NULL; /* does not get the same address, as a stale pointer would otherwise hit it */
  assert_ok(rondo_malloc_async(t->stream, BYTES, NULL, &other));
  assert_ptr_not_equal(other, gone);
  poke_on(t, t->stream, gone, 8, 1);
  assert_found(t, RONDO_REASON_USE_AFTER_FREE, "kernel 'poke'", "byte 8 of allocation 'gone'");
  assert_ok(rondo_free_async(t->stream, other));
}

/* GM-3: a stream-ordered lifetime begins at the position of the allocation in its stream. */
TEST_WORKERS(test_gm3_use_before_a_stream_ordered_malloc_is_reached) {
  rondo_stream *other = test_stream(t, "other");
  void *early = NULL;
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, other);
  const rondo_malloc_options options = {RONDO_MALLOC_OPTIONS_INIT, .name = "early"};
  assert_ok(rondo_malloc_async(other, BYTES, &options, &early));
  poke_on(t, t->stream, early, 0, 1); /* no event orders it after the allocation */
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_NOT_ALLOCATED);
  assert_message("'early'");
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(other));
  uint32_t first = 0;
  test_read(t, &first, early, sizeof first);
  assert_int_equal(first, POISON); /* what was written too early is not there */
  assert_ok(rondo_free_async(other, early));
}

/* Past the end by one byte: inside the page, where the canaries are. */
TEST(test_a_byte_past_the_end) {
  void *small = test_allocate(t, 1000, "small");
  poke_on(t, t->stream, small, 999, 2);
  assert_found(t, RONDO_REASON_OUT_OF_RANGE, "kernel 'poke'", "1 byte past its end");
  poke_on(t, t->stream, small, -1, 1);
  assert_found(t, RONDO_REASON_OUT_OF_RANGE, "'small' (1000 B)", "1 byte before its beginning");
  assert_ok(rondo_free(t->device, small));
}

/* As far as its alignment allows, an allocation ends at the end of a page: then reading past it is found too. */
TEST(test_a_page_past_the_end) {
  void *whole = test_allocate(t, 2 * BYTES, "whole");
  uint32_t *out = test_words(t, 1);
  rondo_kernel *peek = test_kernel_make(t, &peek_options);
  const char *past = (const char *)whole + 2 * BYTES;
  assert_ok(rondo_launch(t->stream, peek, (rondo_grid){1, 0, 0}, RONDO_ARGS(&past, &out)));
  assert_found(t, RONDO_REASON_OUT_OF_RANGE, "kernel 'peek'", "reads 1 byte past the end of allocation 'whole'");
  poke_on(t, t->stream, whole, 3 * BYTES, 1);
  assert_found(t, RONDO_REASON_OUT_OF_RANGE, "kernel 'poke'", "writes 4097 bytes past the end of allocation 'whole'");
  poke_on(t, t->stream, whole, -BYTES, 1);
  assert_found(t, RONDO_REASON_OUT_OF_RANGE, "kernel 'poke'", "4096 bytes before the beginning of allocation 'whole'");
  rondo_kernel_destroy(peek);
  test_words_free(t, out);
  assert_ok(rondo_free(t->device, whole));
}

/* Damage by the host, which no work is to blame for, is seen at the next synchronisation. */
TEST(test_damage_is_seen_at_a_synchronisation) {
  unsigned char *small = test_allocate(t, 100, "small");
  small[100]++;
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
  assert_message("'small' (100 B) was written outside of its bounds, 1 byte past its end");
  assert_ok(rondo_stream_synchronize(t->stream));
  small[101]++;
  assert_ok(rondo_free(t->device, small)); /* and at the end of its lifetime, to be said at the next */
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
  assert_message("2 bytes past its end");
}

/* Wherever it is, and whatever the distances of the allocation's ends from a word's or a page's. */
TEST(test_damage_to_any_byte_is_seen) {
  static const ptrdiff_t sizes[] = {1, 100, 248, 255};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    unsigned char *small = test_allocate(t, (size_t)sizes[i], "small");
    for (ptrdiff_t at = 256 - BYTES; at < 256; at += at < 272 - BYTES || at >= -16 ? 1 : 61) {
      char distance[64];
      if (at >= 0 && at < sizes[i]) continue;
      const int past = at >= 0, bytes = (int)(past ? at - sizes[i] + 1 : -at);
      (void)snprintf(distance, sizeof distance, "%d byte%s %s its", bytes, bytes == 1 ? "" : "s",
                     past ? "past" : "before");
      small[at]++;
      assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
      assert_message(distance);
      assert_ok(rondo_stream_synchronize(t->stream));
    }
    assert_ok(rondo_free(t->device, small));
  }
}

static rondo_status touch_host(void *user) {
  ((volatile unsigned char *)user)[16] = 1;
  return RONDO_OK;
}

TEST(test_a_host_function_is_watched) {
  void *gone = test_allocate(t, BYTES, "gone");
  assert_ok(rondo_free(t->device, gone));
  assert_ok(rondo_host_async(t->stream, touch_host, gone));
  assert_found(t, RONDO_REASON_USE_AFTER_FREE, "host", "byte 16 of allocation 'gone'");
}

/* Blocks of one kernel, on workers and on the thread that waits, each with its fault. */
TEST_WORKERS(test_faults_on_all_threads) {
  void *gone = test_allocate(t, 64 * BYTES, "gone");
  assert_ok(rondo_free(t->device, gone));
  for (int round = 0; round < 20; round++) {
    rondo_kernel *kernel = test_kernel_make(t, &poke_options);
    const poke self = {.address = gone, .count = BYTES, .value = 1};
    assert_ok(rondo_launch(t->stream, kernel, (rondo_grid){64, 0, 0}, RONDO_ARGS(&self)));
    rondo_kernel_destroy(kernel);
    assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_USE_AFTER_FREE);
  }
  assert_true(test_statistics(t).findings >= 20);
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

static const rondo_instantiate_options unverified = {RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true};

static rondo_exec *instantiate_unverified(rondo_graph *graph) {
  rondo_exec *exec = test_instantiate_with(graph, &unverified);
  test_graph_destroy(graph);
  return exec;
}

/* The kernel is ordered after the free, and nothing that a verifier sees says that it uses the memory. */
TEST(test_gm18_a_stale_pointer_in_a_graph) {
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  void *scratch = NULL;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, BYTES, "scratch", &scratch, &node));
  node = add_poke(t, graph, &node, 1, scratch, 0, 64);
  assert_ok(rondo_graph_add_free(graph, &node, 1, scratch, &node));
  const rondo_node late = add_poke(t, graph, &node, 1, scratch, 12, 1);
  rondo_exec *exec = instantiate_unverified(graph);
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_USE_AFTER_FREE);
    assert_int_equal(rondo_last_error()->node, rondo_node_number(late));
    assert_message("kernel 'poke' (node 3) writes byte 12 of allocation 'scratch' (4.0 KiB) after it was freed");
  }
  assert_ok(rondo_exec_set_enabled(exec, late, false)); /* without the mistake the same exec is fine */
  test_launch(t, exec);
}

TEST(test_gm18_use_before_the_alloc_node) {
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0}, alloc = {0};
  void *scratch = NULL;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, BYTES, "scratch", &scratch, &alloc));
  const rondo_node early = add_poke(t, graph, NULL, 0, scratch, 40, 1);
  assert_ok(rondo_graph_add_edges(graph, &early, &alloc, 1));
  assert_ok(rondo_graph_add_free(graph, &alloc, 1, scratch, &node));
  rondo_exec *exec = instantiate_unverified(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_found(t, RONDO_REASON_NOT_ALLOCATED, "kernel 'poke' (node 1)", "byte 40 of allocation 'scratch'");
}

/* A copy whose destination is gone when it runs. */
TEST(test_gm18_a_copy_to_freed_graph_memory) {
  uint32_t *words = test_words(t, 16);
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  void *scratch = NULL;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, BYTES, "scratch", &scratch, &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, scratch, &node));
  const rondo_copy copy = {.dst = scratch, .src = words, .width = 64};
  assert_ok(rondo_graph_add_copy(graph, &node, 1, &copy, &node));
  rondo_exec *exec = instantiate_unverified(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_found(t, RONDO_REASON_USE_AFTER_FREE, "copy (node 2) writes", "of allocation 'scratch' (4.0 KiB)");
}

TEST(test_the_node_that_wrote_too_far_is_named) {
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  void *first = NULL, *second = NULL;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 300, "first", &first, &node));
  assert_ok(rondo_graph_add_alloc(graph, &node, 1, 300, "second", &second, &node));
  node = add_poke(t, graph, &node, 1, first, 0, 300);
  node = add_poke(t, graph, &node, 1, second, 0, 301);
  assert_ok(rondo_graph_add_free(graph, &node, 1, first, &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, second, &node));
  rondo_exec *exec = instantiate_unverified(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_found(t, RONDO_REASON_OUT_OF_RANGE, "kernel 'poke' (node 3)",
               "'second' (300 B) was written outside of its bounds, 1 byte");
}

/* Memory that outlives its graph: freed in stream order, then stale. */
TEST(test_gm8_a_stale_pointer_to_memory_that_outlived_its_graph) {
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  void *kept = NULL;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, BYTES, "kept", &kept, &node));
  rondo_exec *exec = instantiate_unverified(graph);
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    poke_on(t, t->stream, kept, 0, BYTES);
    assert_ok(rondo_stream_synchronize(t->stream));
    if (i % 2 == 0)
      assert_ok(rondo_free_async(t->stream, kept));
    else
      assert_ok(rondo_free(t->device, kept));
    poke_on(t, t->stream, kept, 5, 1);
    assert_found(t, RONDO_REASON_USE_AFTER_FREE, "kernel 'poke'", "byte 5 of allocation 'kept'");
  }
  rondo_exec_destroy(exec);
  poke_on(t, t->stream, kept, 5, 1); /* also when graph and exec are gone */
  assert_found(t, RONDO_REASON_USE_AFTER_FREE, "kernel 'poke'", "byte 5 of allocation 'kept'");
}

/* Contents -------------------------------------------------------------------------------------------------------- */

TEST(test_fresh_memory_is_poisoned) {
  uint32_t *words = test_allocate(t, BYTES, "fresh"), *out = test_words(t, 4), first = 0;
  test_read(t, &first, words + 1023, sizeof first);
  assert_int_equal(first, POISON);
  /* in a graph at each launch, whatever the last launch left */
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  void *scratch = NULL;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, BYTES, "scratch", &scratch, &node));
  const rondo_copy copy = {.dst = out, .src = scratch, .width = 16};
  assert_ok(rondo_graph_add_copy(graph, &node, 1, &copy, &node));
  const rondo_fill fill = {.dst = scratch, .value = 1, .element_bytes = 4, .width = 1024};
  assert_ok(rondo_graph_add_fill(graph, &node, 1, &fill, &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, scratch, &node));
  rondo_exec *exec = test_exec_of(graph);
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    for (int k = 0; k < 4; k++) assert_int_equal(test_word(t, out + k), POISON);
  }
  rondo_exec_destroy(exec);
  assert_ok(rondo_free(t->device, words));
}

/* Devices and handlers -------------------------------------------------------------------------------------------- */

TEST(test_devices_are_checked_each_for_itself) {
  rondo_device *other = NULL;
  rondo_stream *stream = NULL;
  void *theirs = NULL;
  assert_ok(rondo_device_open("cpu:check:1", NULL, &other));
  rondo_device_info info = test_device_info(other);
  assert_string_equal(info.name, "cpu:check:1");
  assert_true(info.guarded && info.index == 1);
  assert_ok(rondo_stream_create(other, NULL, &stream));
  assert_ok(rondo_malloc(other, BYTES, "theirs", &theirs));
  assert_ok(rondo_free(other, theirs));
  poke_on(t, t->stream, theirs, 9, 1); /* a kernel of one at an address of the other */
  assert_found(t, RONDO_REASON_USE_AFTER_FREE, "kernel 'poke'", "byte 9 of allocation 'theirs'");
  assert_ok(rondo_stream_synchronize(stream));
  assert_ok(rondo_stream_destroy(stream));
  assert_ok(rondo_device_close(other));
  void *mine = test_allocate(t, 256, "mine");
  poke_on(t, t->stream, mine, 256, 1); /* the handler is still there */
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_free(t->device, mine));
}

static unsigned char *guarded_page;
static volatile sig_atomic_t handled;

static void open_page(int number, siginfo_t *info, void *context) {
  (void)number;
  (void)context;
  const unsigned char *at = info->si_addr;
  handled++;
  if (at < guarded_page || at >= guarded_page + BYTES) _exit(9);
  (void)mprotect(guarded_page, BYTES, PROT_READ | PROT_WRITE);
}

static void close_and_touch(unsigned char value) {
  assert_int_equal(mprotect(guarded_page, BYTES, PROT_NONE), 0);
  *(volatile unsigned char *)guarded_page = value;
  assert_int_equal(*guarded_page, value);
}

static void touch_page_cpu(rondo_blocks blocks, void *const *args) {
  unsigned char *page = *(unsigned char *const *)args[0];
  if (blocks.first == 0) *page = 3;
}

/* A program's own handler gets what is not the device's, before, while and after a checking device is open. */
TEST(test_handlers_of_the_program_keep_working) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "touch_page", .cpu = touch_page_cpu,
                                        .params = {RONDO_SCALAR(void *)}};
  struct sigaction own = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO}, before;
  guarded_page = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(guarded_page != MAP_FAILED);
  assert_int_equal(sigaction(SIGSEGV, &own, &before), 0);
  void *gone = test_allocate(t, BYTES, "gone");
  assert_ok(rondo_free(t->device, gone));
  handled = 0;
  poke_on(t, t->stream, gone, 0, 1); /* the device's */
  assert_found(t, RONDO_REASON_USE_AFTER_FREE, "kernel 'poke'", "'gone'");
  assert_int_equal(handled, 0);
  close_and_touch(1); /* the program's, outside of any work and inside */
  assert_int_equal(handled, 1);
  rondo_kernel *kernel = test_kernel_make(t, &options);
  assert_int_equal(mprotect(guarded_page, BYTES, PROT_NONE), 0);
  assert_ok(rondo_launch(t->stream, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&guarded_page)));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_true(handled == 2 && *guarded_page == 3);
  rondo_kernel_destroy(kernel);
  assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
  assert_int_equal(munmap(guarded_page, BYTES), 0);
}

static sigjmp_buf back;
static volatile sig_atomic_t mask_was_honoured;

static void jump_back(int number) {
  sigset_t now;
  sigemptyset(&now);
  (void)pthread_sigmask(SIG_SETMASK, NULL, &now);
  mask_was_honoured = sigismember(&now, SIGUSR2) == 1 && sigismember(&now, number) == 1;
  handled++;
  siglongjmp(back, 1);
}

/* A program that recovers from its faults by a jump gets every one of them, with its mask, as without the device. */
TEST(test_a_handler_may_jump_each_time) {
  struct sigaction own = {.sa_handler = jump_back}, before;
  sigemptyset(&own.sa_mask);
  sigaddset(&own.sa_mask, SIGUSR2);
  unsigned char *page = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(page != MAP_FAILED);
  assert_int_equal(sigaction(SIGSEGV, &own, &before), 0);
  void *gone = test_allocate(t, BYTES, "gone");
  assert_ok(rondo_free(t->device, gone));
  handled = 0;
  for (int i = 0; i < 6; i++) {
    if (i % 2 == 0) { /* the device's own faults are found in between */
      poke_on(t, t->stream, gone, 0, 1);
      assert_found(t, RONDO_REASON_USE_AFTER_FREE, "kernel 'poke'", "'gone'");
    }
    mask_was_honoured = 0;
    if (sigsetjmp(back, 1) == 0) *(volatile unsigned char *)page = 1;
    assert_int_equal(handled, i + 1);
    assert_true(mask_was_honoured);
  }
  assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
  assert_int_equal(munmap(page, BYTES), 0);
}

/* A signal that was sent and that the program ignores stays ignored. */
TEST(test_an_ignored_signal_stays_ignored) {
  const struct sigaction ignored = {.sa_handler = SIG_IGN};
  struct sigaction before;
  assert_int_equal(sigaction(SIGSEGV, &ignored, &before), 0);
  void *mine = test_allocate(t, 256, "mine");
  poke_on(t, t->stream, mine, 0, 1); /* the device's handler is in front */
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(raise(SIGSEGV), 0);
  assert_int_equal(raise(SIGSEGV), 0);
  assert_ok(rondo_free(t->device, mine));
  assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

static volatile sig_atomic_t on_other_stack;
static char other_stack[1 << 16];

static void look_at_stack(int number) {
  const char here = (char)number, *at = &here;
  on_other_stack = at >= other_stack && at < other_stack + sizeof other_stack;
  handled++;
}

/* The alternate stack is for handlers that ask for it; SA_RESETHAND is for once. */
TEST(test_flags_of_handlers_are_honoured) {
  const stack_t mine = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
  stack_t stack_before;
  struct sigaction own = {.sa_handler = look_at_stack}, before, now;
  assert_int_equal(sigaltstack(&mine, &stack_before), 0);
  assert_int_equal(sigaction(SIGSEGV, NULL, &before), 0);
  for (int asks = 0; asks < 2; asks++) {
    own.sa_flags = asks ? SA_ONSTACK | (int)SA_RESETHAND : 0;
    assert_int_equal(sigaction(SIGSEGV, &own, NULL), 0);
    void *words = test_allocate(t, 256, "words");
    poke_on(t, t->stream, words, 0, 1);
    assert_ok(rondo_stream_synchronize(t->stream));
    handled = 0;
    assert_int_equal(raise(SIGSEGV), 0);
    assert_int_equal(handled, 1);
    assert_int_equal(on_other_stack, asks);
    assert_ok(rondo_free(t->device, words));
  }
  assert_int_equal(sigaction(SIGSEGV, NULL, &now), 0);
  assert_true(now.sa_handler == SIG_DFL);
  assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
  assert_int_equal(sigaltstack(&stack_before, NULL), 0);
}

/* The last checking device removes the handler, and restores the previous one. */
DEVICE_TEST(test_the_handler_goes_with_the_last_device) {
  struct sigaction own = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO}, before, now;
  rondo_device *device = NULL;
  assert_int_equal(sigaction(SIGSEGV, &own, &before), 0);
  assert_ok(rondo_device_open(test_device_name(), NULL, &device));
  assert_int_equal(sigaction(SIGSEGV, NULL, &now), 0);
  assert_true(now.sa_sigaction != open_page);
  assert_ok(rondo_device_close(device));
  assert_int_equal(sigaction(SIGSEGV, NULL, &now), 0);
  assert_true(now.sa_sigaction == open_page);
  assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

/* Limits ---------------------------------------------------------------------------------------------------------- */

TEST(test_too_many_allocations_are_refused) {
  const size_t most = test_most_mappings();
  if (most > test_effort(200000)) skip(); /* it would take too long to get there */
  void **addresses = calloc(most, sizeof *addresses);
  assert_non_null(addresses);
  unsigned long count = 0;
  rondo_status status = RONDO_OK;
  while (status == RONDO_OK && count < most) {
    status = rondo_malloc(t->device, 1, "many", &addresses[count]);
    count += status == RONDO_OK;
  }
  assert_true(count >= most / 4 && count < most / 2);
  assert_error(rondo_malloc(t->device, 1, "many", &addresses[count]), RONDO_LIMIT_EXCEEDED, RONDO_REASON_ADDRESS_SPACE);
  assert_null(addresses[count]);
  assert_message("vm.max_map_count");
  assert_ok(rondo_free(t->device, addresses[--count])); /* one less, and one more can be had */
  assert_ok(rondo_malloc(t->device, 1, "many", &addresses[count++]));
  while (count > 0) assert_ok(rondo_free(t->device, addresses[--count]));
  free(addresses);
}

int main(void) {
  if (!test_device_is("cpu:check")) return 77;
  return test_run_registered();
}

/* SPDX-License-Identifier: MIT
 * Signal handlers of the program run at any instant: thousands of signals reach the thread that waits for products,
 * convolutions and training steps, computed by the available libraries, and the bits are those of a run without
 * signals. A handler that runs on an alternate stack first checks the stack pointer of the interrupted code. That is
 * harmless, and names the cause where plain handlers would corrupt memory (FW-4, FW-9).
 *
 * A second thread sends the signals. Only the test's thread receives them, because only host threads do not block
 * signals.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_program.h"
#include "tensor/operators/matmul/gemm.h"

enum { ENOUGH_SIGNALS = 3000, MOST_SECONDS = 20, EDGE = 256, IMAGES = 4, CHANNELS = 64, PLANE = 14, FEATURES = 384 };

static const int sent[] = {SIGALRM, SIGUSR1, SIGPROF, SIGURG};
enum { KINDS = sizeof sent / sizeof sent[0] };

/* Signals -----------------------------------------------------------------------------------------------------------*/

static atomic_uint taken, astray; /* signals; those with a foreign stack pointer */
static atomic_bool is_over;
static const char *stack_begin, *stack_end;
static pthread_t target;

static void find_stack(void) {
  pthread_attr_t attributes;
  void *begin;
  size_t bytes;
  assert_int_equal(pthread_getattr_np(pthread_self(), &attributes), 0);
  assert_int_equal(pthread_attr_getstack(&attributes, &begin, &bytes), 0);
  assert_int_equal(pthread_attr_destroy(&attributes), 0);
  stack_begin = begin;
  stack_end = stack_begin + bytes;
}

static const char *stack_pointer(const ucontext_t *context) {
#if defined(__x86_64__)
  return (const char *)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
  return (const char *)context->uc_mcontext.sp;
#else
  (void)context;
  return stack_begin;
#endif
}

static void look(int number, siginfo_t *info, void *context) {
  const char *at = stack_pointer(context);
  (void)number;
  (void)info;
  atomic_fetch_add(&taken, 1);
  if (at < stack_begin || at > stack_end) atomic_fetch_add(&astray, 1);
}

/* Uses a large part of its stack. */
static void note(int number) {
  volatile char room[2048];
  memset((void *)(uintptr_t)room, number, sizeof room);
  atomic_fetch_add(&taken, 1);
}

static void *send_signals(void *unused) {
  uint64_t seed = 26;
  while (!atomic_load(&is_over)) {
    const struct timespec pause = {.tv_nsec = (long)test_random_below(&seed, 50000)};
    (void)nanosleep(&pause, NULL);
    (void)pthread_kill(target, sent[test_random_below(&seed, KINDS)]);
  }
  return unused;
}

typedef struct storm {
  pthread_t sender;
  struct sigaction before[KINDS];
  stack_t stack_before;
} storm;

static void begin_storm(storm *s, const struct sigaction *action) {
  static char stack[1 << 16];
  const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  find_stack();
  target = pthread_self();
  atomic_store(&is_over, false);
  atomic_store(&taken, 0);
  atomic_store(&astray, 0);
  assert_int_equal(sigaltstack(&alternate, &s->stack_before), 0);
  for (size_t i = 0; i < KINDS; i++) assert_int_equal(sigaction(sent[i], action, &s->before[i]), 0);
  assert_int_equal(pthread_create(&s->sender, NULL, send_signals, NULL), 0);
}

static void end_storm(storm *s) {
  atomic_store(&is_over, true);
  assert_int_equal(pthread_join(s->sender, NULL), 0);
  for (size_t i = 0; i < KINDS; i++) assert_int_equal(sigaction(sent[i], &s->before[i], NULL), 0);
  assert_int_equal(sigaltstack(&s->stack_before, NULL), 0);
}

/* Works until enough signals were received. Handlers that check the stack are not interrupted by others. */
static void work_under(const struct sigaction *action, void (*work)(void *), void *with) {
  struct sigaction taken_by = *action;
  storm s;
  if (test_effort_divisor() >= 20) skip(); /* ThreadSanitizer delays signals until a call that it knows */
  if ((action->sa_flags & SA_ONSTACK) != 0) sigfillset(&taken_by.sa_mask);
  begin_storm(&s, &taken_by);
  const time_t end = time(NULL) + MOST_SECONDS;
  while (atomic_load(&taken) < ENOUGH_SIGNALS && time(NULL) < end) work(with);
  end_storm(&s);
  print_message("%u signals\n", atomic_load(&taken));
  assert_true(atomic_load(&taken) > 0);
  assert_int_equal(atomic_load(&astray), 0);
}

static const struct sigaction looks = {.sa_sigaction = look, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
static const struct sigaction notes = {.sa_handler = note, .sa_flags = SA_RESTART};

/* Products ----------------------------------------------------------------------------------------------------------*/

typedef struct product {
  rondo_gemm gemm;
  float *a, *b, *c, *expected;
} product;

static float *draw(size_t count, uint64_t seed) {
  float *values = malloc(count * sizeof *values);
  assert_non_null(values);
  for (size_t i = 0; i < count; i++) values[i] = (float)test_random_below(&seed, 2001) / 1000.0f - 1.0f;
  return values;
}

static void multiply(void *with) {
  product *p = with;
  rondo_gemm_run(&p->gemm);
  if (memcmp(p->c, p->expected, EDGE * EDGE * sizeof *p->c) != 0)
    fail_msg("a product has other bits after %u signals", atomic_load(&taken));
}

static void check_products(const struct sigaction *action) {
  product p = {.a = draw(EDGE * EDGE, 1),
               .b = draw(EDGE * EDGE, 2),
               .c = draw(EDGE * EDGE, 3),
               .expected = draw(EDGE * EDGE, 4)};
  rondo_gemm_prepare();
  for (unsigned way = 0; way < 4; way++) {
    p.gemm = (rondo_gemm){EDGE,
                          EDGE,
                          EDGE,
                          .a = {p.a, EDGE, (way & 1) != 0},
                          .b = {p.b, EDGE, (way & 2) != 0},
                          .c = {p.expected, EDGE, false}};
    rondo_gemm_run(&p.gemm);
    p.gemm.c.at = p.c;
    work_under(action, multiply, &p);
  }
  free(p.a);
  free(p.b);
  free(p.c);
  free(p.expected);
}

DEVICE_TEST(test_fw4_the_stack_is_the_threads_in_products) { check_products(&looks); }

DEVICE_TEST(test_fw4_products_are_the_same_under_signals) { check_products(&notes); }

/* Networks ----------------------------------------------------------------------------------------------------------*/

/* Convolutions, then products; each trained, so that all their gradients are computed. */
static rondo_value build(rondo_program *program, bool convolves) {
  const rondo_conv_options same = {RONDO_CONV_OPTIONS_INIT, .padding = {1, 1}};
  rondo_value x, weight, none = {0}, loss;
  if (convolves) {
    assert_ok(rondo_program_state(program, "x", RONDO_F32, (size_t[]){IMAGES, CHANNELS, PLANE, PLANE}, 4, &x));
    assert_ok(rondo_program_state(program, "3x3", RONDO_F32, (size_t[]){CHANNELS, CHANNELS, 3, 3}, 4, &weight));
    assert_ok(rondo_op_conv(program, x, weight, &same, &x));
    assert_ok(rondo_program_state(program, "1x1", RONDO_F32, (size_t[]){CHANNELS, CHANNELS, 1, 1}, 4, &weight));
    assert_ok(rondo_op_conv(program, x, weight, NULL, &x));
  } else {
    assert_ok(rondo_program_state(program, "x", RONDO_F32, (size_t[]){FEATURES, FEATURES}, 2, &x));
    for (int i = 0; i < 2; i++) {
      assert_ok(rondo_program_state(program, i == 0 ? "first" : "second", RONDO_F32, (size_t[]){FEATURES, FEATURES}, 2,
                                    &weight));
      assert_ok(rondo_op_matmul(program, x, weight, none, &x));
      assert_ok(rondo_op_tanh(program, x, &x));
    }
  }
  assert_ok(rondo_op_square(program, x, &loss));
  assert_ok(rondo_op_mean(program, loss, (size_t[]){0, 1, 2, 3}, convolves ? 4 : 2, false, &loss));
  return loss;
}

static const char *const names[2][3] = {{"x", "first", "second"}, {"x", "3x3", "1x1"}};

typedef struct network {
  bool convolves;
  rondo_compiled *compiled;
  unsigned char *start[3], *expected[3], *found;
  size_t bytes[3];
} network;

enum { STEPS = 3 };

/* From the same states each time. */
static void train(network *n) {
  for (int i = 0; i < 3; i++)
    assert_ok(rondo_compiled_write(n->compiled, names[n->convolves][i], n->start[i], n->bytes[i]));
  for (int i = 0; i < STEPS; i++) assert_ok(rondo_compiled_run(n->compiled));
}

static void train_and_compare(void *with) {
  network *n = with;
  train(n);
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_compiled_read(n->compiled, names[n->convolves][i], n->found, n->bytes[i]));
    if (memcmp(n->found, n->expected[i], n->bytes[i]) != 0)
      fail_msg("'%s' has other bits after %u signals", names[n->convolves][i], atomic_load(&taken));
  }
}

static void compile(network *n, rondo_device *device) {
  rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  const rondo_value loss = build(program, n->convolves);
  assert_ok(rondo_program_cell(program, "rate", 5.0f, &sgd.learning_rate));
  assert_ok(rondo_program_sgd(program, loss, &sgd));
  assert_ok(rondo_compile(program, device, NULL, &n->compiled));
  rondo_program_destroy(program);
}

static void remember(network *n) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  size_t most = 0;
  for (size_t i = 0; rondo_compiled_get_value(n->compiled, i, &value) == RONDO_OK; i++) {
    for (int k = 0; k < 3; k++)
      if (strcmp(value.name, names[n->convolves][k]) == 0) n->bytes[k] = value.bytes;
  }
  for (int i = 0; i < 3; i++) {
    n->start[i] = (unsigned char *)draw(n->bytes[i] / sizeof(float), 5 + (uint64_t)i);
    n->expected[i] = malloc(n->bytes[i]);
    assert_non_null(n->expected[i]);
    if (n->bytes[i] > most) most = n->bytes[i];
  }
  n->found = malloc(most);
  assert_non_null(n->found);
  train(n);
  for (int i = 0; i < 3; i++)
    assert_ok(rondo_compiled_read(n->compiled, names[n->convolves][i], n->expected[i], n->bytes[i]));
}

static void check_network(bool convolves) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1};
  network n = {.convolves = convolves};
  rondo_device *device;
  assert_ok(rondo_device_open(test_device_name(), &options, &device));
  compile(&n, device);
  remember(&n);
  work_under(&looks, train_and_compare, &n);
  work_under(&notes, train_and_compare, &n);
  assert_ok(rondo_compiled_destroy(n.compiled));
  assert_ok(rondo_device_close(device));
  for (int i = 0; i < 3; i++) {
    free(n.start[i]);
    free(n.expected[i]);
  }
  free(n.found);
}

DEVICE_TEST(test_fw9_training_of_products_under_signals) { check_network(false); }

DEVICE_TEST(test_fw9_training_of_convolutions_under_signals) { check_network(true); }

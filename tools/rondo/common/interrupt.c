/* SPDX-License-Identifier: MIT
 * Catches signals. The handler restores all previous handlers, so that a second signal has its usual effect. If the
 * signal interrupts the thread that called interrupt_begin, the handler runs on its own stack: library code may use the
 * stack pointer for other purposes at that moment.
 */
#define _XOPEN_SOURCE 700
#include "common/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};
enum { WATCHED = sizeof watched / sizeof watched[0] };

static atomic_int noted; /* set in a signal handler, on any thread */
static struct sigaction before[WATCHED];
static stack_t stack_before;
static char stack[1 << 16]; /* a signal frame with all registers of the processor takes about 12 KiB */

static void put_back(void) {
  for (size_t i = 0; i < WATCHED; i++) sigaction(watched[i], &before[i], NULL);
}

static void note(int number) {
  atomic_store(&noted, number);
  put_back();
}

void interrupt_begin(void) {
  atomic_store(&noted, 0);
  const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART | SA_ONSTACK};
  /* A sanitizer may have set a stack. */
  if (sigaltstack(NULL, &stack_before) == 0 && (stack_before.ss_flags & SS_DISABLE) != 0)
    (void)sigaltstack(&alternate, NULL);
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < WATCHED; i++) sigaddset(&action.sa_mask, watched[i]);
  for (size_t i = 0; i < WATCHED; i++) {
    sigaction(watched[i], NULL, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(watched[i], &action, NULL);
  }
}

void interrupt_end(void) {
  put_back();
  if ((stack_before.ss_flags & SS_DISABLE) != 0) (void)sigaltstack(&stack_before, NULL);
  atomic_store(&noted, 0);
}

int interrupt_signal(void) { return atomic_load(&noted); }

int interrupt_status(int signal) { return 128 + signal; }

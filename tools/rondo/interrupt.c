/* SPDX-License-Identifier: MIT
 * Noting signals. The handler puts all of them back, so that the second one does what it does by itself.
 */
#define _POSIX_C_SOURCE 200809L
#include "interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};
enum { WATCHED = sizeof watched / sizeof watched[0] };

static atomic_int noted; /* signals come in any thread */
static struct sigaction before[WATCHED];

static void put_back(void) {
  for (size_t i = 0; i < WATCHED; i++) sigaction(watched[i], &before[i], NULL);
}

static void note(int number) {
  atomic_store(&noted, number);
  put_back();
}

void interrupt_begin(void) {
  atomic_store(&noted, 0);
  struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < WATCHED; i++) sigaddset(&action.sa_mask, watched[i]);
  for (size_t i = 0; i < WATCHED; i++) {
    sigaction(watched[i], NULL, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(watched[i], &action, NULL);
  }
}

void interrupt_end(void) {
  put_back();
  atomic_store(&noted, 0);
}

int interrupt_signal(void) { return atomic_load(&noted); }

int interrupt_status(void) { return 128 + interrupt_signal(); }

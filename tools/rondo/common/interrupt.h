/* SPDX-License-Identifier: MIT
 * Catches SIGINT (Ctrl-C), SIGTERM and SIGHUP, so that work can stop at a point from which it can be resumed. The first
 * signal is only stored; the second ends the process at once, as it would without a handler. One user at a time.
 */
#ifndef RONDO_TOOL_INTERRUPT_H
#define RONDO_TOOL_INTERRUPT_H

/* interrupt_begin catches SIGINT, SIGTERM and SIGHUP until interrupt_end, which also forgets a caught signal. A signal
 * that is ignored stays ignored. */
void interrupt_begin(void);
void interrupt_end(void);

/* The number of the caught signal; 0: none. */
int interrupt_signal(void);

/* The exit status after an interrupt by this signal: 128 plus the signal number, as in a shell. */
int interrupt_status(int signal);

#endif

/* SPDX-License-Identifier: MIT
 * Ctrl-C, SIGTERM and SIGHUP, so that work ends where it can be gone on from. The first one is only noted; the second
 * ends the process at once, as it would have without this. One user at a time.
 */
#ifndef RONDO_TOOL_INTERRUPT_H
#define RONDO_TOOL_INTERRUPT_H

/* From here on, until interrupt_end, which also forgets what was noted. A signal that is ignored stays so. */
void interrupt_begin(void);
void interrupt_end(void);

/* The number of the signal that came; 0: none. */
int interrupt_signal(void);

/* The exit status of a command that ends for it: 128 and its number, as shells say it. */
int interrupt_status(void);

#endif

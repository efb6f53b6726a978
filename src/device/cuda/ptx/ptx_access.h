/* SPDX-License-Identifier: MIT
 * What the PTX of a kernel says about its parameters: which are addresses of memory that the kernel reads or writes.
 * The answers are conservative. YES: an instruction accepts an address that can come from this parameter only; whether
 * it ever runs is not known. NO: no instruction does. Else, as where an address is stored or passed to a function, the
 * answer is UNKNOWN. The bytes of the PTX are untrusted; the time is proportional to their number. Threads: any.
 */
#ifndef RONDO_DEVICE_CUDA_PTX_PTX_ACCESS_H
#define RONDO_DEVICE_CUDA_PTX_PTX_ACCESS_H

#include <stdint.h>

#include "base/array.h"

typedef enum ptx_answer { PTX_NO, PTX_YES, PTX_UNKNOWN } ptx_answer;

/* The first instruction of its kind. */
typedef struct ptx_site {
  uint32_t line;   /* of the PTX, from 1 */
  char opcode[36]; /* with its suffixes, as far as they fit, and a NUL */
} ptx_site;

/* One parameter. The disk cache stores it as it is: it has no gaps. A parameter of another size than 8 bytes is not
 * looked into, and is UNKNOWN if addresses may be in it. */
typedef struct ptx_finding {
  uint64_t entry; /* rondo_hash_text of the kernel's name */
  uint32_t parameter, bytes;
  uint32_t is_read, is_written; /* ptx_answer */
  ptx_site read, write;         /* if the answer is PTX_YES */
} ptx_finding;

typedef RONDO_ARRAY(ptx_finding) ptx_findings;

/* Whether code is PTX: a text that begins with .version, after comments. Reads no byte after the first NUL, and stops
 * at the first that cannot begin PTX. */
bool ptx_is_text(const char *code);

/* Adds what is found about the parameters of the entry `name`, or of all entries if it is NULL: one finding for each
 * parameter, in their order. There are none if there is no such entry, or its parameters are malformed. A NUL
 * ends the text. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status ptx_examine(const rondo_allocator *allocator, const char *text, size_t count,
                                        const char *name, ptx_findings *out);

#endif

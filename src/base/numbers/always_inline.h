/* SPDX-License-Identifier: MIT
 * A function that is always inlined, so that a function compiled for a wider instruction set can use it.
 */
#ifndef RONDO_BASE_NUMBERS_ALWAYS_INLINE_H
#define RONDO_BASE_NUMBERS_ALWAYS_INLINE_H

#ifdef __GNUC__
#define RONDO_INLINE static inline __attribute__((always_inline))
#else
#define RONDO_INLINE static inline
#endif

#endif

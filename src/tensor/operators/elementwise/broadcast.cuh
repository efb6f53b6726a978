/* SPDX-License-Identifier: MIT
 * Kernels of operators that broadcast their inputs (broadcast.h). `function` is a lambda of elements. Elements are
 * processed in packs if the last dimension allows it. Indices have 32 bits if they fit, because 32-bit division is
 * faster.
 */
#include "tensor/operators/common/element.cuh"

#define MAX_TERMS 3
#define MAX_DIMENSIONS 6

struct broadcast {
  size_t count, rank;
  size_t dims[MAX_DIMENSIONS];
  size_t strides[MAX_TERMS][MAX_DIMENSIONS];
};

/* Stands for a missing input. */
struct no_term {};

struct term_offsets {
  size_t of[MAX_TERMS];
};

template <class index>
__device__ inline term_offsets offsets_at(const broadcast &shape, index position) {
  term_offsets offsets = {{0, 0, 0}};
  for (unsigned d = (unsigned)shape.rank - 1; d > 0; d--) {
    const index rest = position / (index)shape.dims[d];
    const index at = position - rest * (index)shape.dims[d];
#pragma unroll
    for (unsigned t = 0; t < MAX_TERMS; t++) offsets.of[t] += at * shape.strides[t][d];
    position = rest;
  }
#pragma unroll
  for (unsigned t = 0; t < MAX_TERMS; t++) offsets.of[t] += position * shape.strides[t][0];
  return offsets;
}

template <class T>
__device__ inline pack<T> load_pack(const T *x, bool repeats) {
  if (!repeats) return *(const pack<T> *)x;
  pack<T> all;
  const T one = *x;
#pragma unroll
  for (unsigned k = 0; k < PACK; k++) all.at[k] = one;
  return all;
}

template <class T>
__device__ inline T load_one(const T *x) {
  return *x;
}

__device__ inline pack<no_term> load_pack(const no_term *, bool) { return pack<no_term>(); }
__device__ inline no_term load_one(const no_term *) { return no_term(); }

/* y[i] = of(a, b, c) */
template <class index, class A, class B, class C, class R, class function>
__device__ inline void walk(const broadcast &shape, const A *__restrict__ a, const B *__restrict__ b,
                            const C *__restrict__ c, R *__restrict__ y, function of) {
  const unsigned last = (unsigned)shape.rank - 1;
  const index count = (index)shape.count, stride = (index)element_stride(), first = (index)first_element();
  const index packs = last == 0 || shape.dims[last] % PACK == 0 ? count / PACK : 0;
  const bool repeats_a = shape.strides[0][last] == 0, repeats_b = shape.strides[1][last] == 0,
             repeats_c = shape.strides[2][last] == 0;
  for (index i = first; i < packs; i += stride) {
    const term_offsets at = offsets_at<index>(shape, i * PACK);
    const pack<A> pa = load_pack(a + at.of[0], repeats_a);
    const pack<B> pb = load_pack(b + at.of[1], repeats_b);
    const pack<C> pc = load_pack(c + at.of[2], repeats_c);
    pack<R> out;
#pragma unroll
    for (unsigned k = 0; k < PACK; k++) out.at[k] = of(pa.at[k], pb.at[k], pc.at[k]);
    ((pack<R> *)y)[i] = out;
  }
  for (index i = packs * PACK + first; i < count; i += stride) {
    const term_offsets at = offsets_at<index>(shape, i);
    y[i] = of(load_one(a + at.of[0]), load_one(b + at.of[1]), load_one(c + at.of[2]));
  }
}

template <class A, class B, class C, class R, class function>
__device__ inline void broadcast_3(const broadcast &shape, const A *a, const B *b, const C *c, R *y, function of) {
  if (shape.count < 0x7fffffffu) {
    walk<unsigned>(shape, a, b, c, y, of);
  } else {
    walk<size_t>(shape, a, b, c, y, of);
  }
}

template <class A, class B, class R, class function>
__device__ inline void broadcast_2(const broadcast &shape, const A *a, const B *b, R *y, function of) {
  broadcast_3(shape, a, b, (const no_term *)0, y, [of](A p, B q, no_term) { return of(p, q); });
}

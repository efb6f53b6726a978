/* SPDX-License-Identifier: MIT
 * The CUDA kernels of concat.c.
 */
#include "tensor/operators/common/units.cuh"

#define PARTS 8

struct parts_shape {
  size_t rows, width, parts;
  size_t starts[PARTS + 1];
  size_t unit_bytes;
};

template <class number>
struct part_place {
  unsigned part;
  number start, width;
};

/* Calls work.copy<unit>(part, unit of the part, unit of the whole) for each unit of the whole. */
template <class T>
struct walk_parts {
  const parts_shape &shape;
  const T &work;

  /* The part that contains a unit of a row. The loop is unrolled so that the shape is indexed by constants; else each
   * thread would keep a copy of it. */
  template <class number>
  __device__ part_place<number> part_at(number at) const {
    part_place<number> place = {0, 0, (number)shape.starts[1]};
#pragma unroll
    for (unsigned k = 1; k < PARTS; k++) {
      const number start = (number)shape.starts[k];
      if (k >= shape.parts || at < start) break;
      place = {k, start, (number)shape.starts[k + 1] - start};
    }
    return place;
  }

  template <class unit, class number>
  __device__ void walk() const {
    const size_t count = shape.rows * shape.width;
    for (size_t i = first_element(); i < count; i += element_stride()) {
      const number row = (number)i / (number)shape.width, at = (number)i - row * (number)shape.width;
      const part_place<number> place = part_at<number>(at);
      work.template copy<unit>(place.part, (size_t)row * place.width + (at - place.start), i);
    }
  }

  template <class unit>
  __device__ void run() const {
    walk_by_count<unit>(shape.rows * shape.width, *this);
  }
};

/* Pointers to the parts, without an array in memory. */
template <class T>
struct part_list {
  T *a, *b, *c, *d, *e, *f, *g, *h;

  __device__ T *at(unsigned part) const {
    if (part < 4) return part < 2 ? (part == 0 ? a : b) : (part == 2 ? c : d);
    return part < 6 ? (part == 4 ? e : f) : (part == 6 ? g : h);
  }
};

struct put_together {
  const part_list<const void> &parts;
  void *whole;

  template <class unit>
  __device__ void copy(unsigned part, size_t in_part, size_t in_whole) const {
    ((unit *)whole)[in_whole] = ((const unit *)parts.at(part))[in_part];
  }
};

struct take_apart {
  const part_list<void> &parts;
  const void *whole;

  template <class unit>
  __device__ void copy(unsigned part, size_t in_part, size_t in_whole) const {
    unit *to = (unit *)parts.at(part);
    if (to != 0) to[in_part] = ((const unit *)whole)[in_whole]; /* a part without an address is never read */
  }
};

extern "C" __global__ void concat(parts_shape shape, void *whole, const void *a, const void *b, const void *c,
                                  const void *d, const void *e, const void *f, const void *g, const void *h) {
  const part_list<const void> parts = {a, b, c, d, e, f, g, h};
  const put_together work = {parts, whole};
  const walk_parts<put_together> walk = {shape, work};
  run_by_unit(shape.unit_bytes, walk);
}

extern "C" __global__ void split(parts_shape shape, const void *whole, void *a, void *b, void *c, void *d, void *e,
                                 void *f, void *g, void *h) {
  const part_list<void> parts = {a, b, c, d, e, f, g, h};
  const take_apart work = {parts, whole};
  const walk_parts<take_apart> walk = {shape, work};
  run_by_unit(shape.unit_bytes, walk);
}

/* SPDX-License-Identifier: MIT
 * The part of oneDNN's C interface (oneapi/dnnl/dnnl.h and dnnl_types.h) that Rondo uses, so Rondo builds without its
 * headers. Products have the same signature in all releases from 1.0 on. Convolutions use the interface that all
 * releases named libdnnl.so.2 share. Of descriptors of operations only the size is known.
 */
#ifndef RONDO_TENSOR_VENDOR_ONEDNN_ABI_H
#define RONDO_TENSOR_VENDOR_ONEDNN_ABI_H

#include <stddef.h>
#include <stdint.h>

#define ONEDNN_MOST_DIMS 12

typedef int64_t onednn_dims[ONEDNN_MOST_DIMS];
typedef struct onednn_layout { /* dnnl_memory_desc_t */
  int rank;
  onednn_dims dims;
  int type;
  onednn_dims padded_dims, padded_offsets;
  int64_t offset;
  int kind;
  struct { /* of ONEDNN_BLOCKED */
    onednn_dims strides;
    int count; /* of inner blocks, the outermost first */
    onednn_dims sizes, axes;
  } blocks;
  uint64_t extra[10]; /* the first one: flags */
} onednn_layout;
_Static_assert(sizeof(onednn_layout) == 696, "the size of dnnl_memory_desc_t");
typedef struct onednn_description { /* dnnl_convolution_desc_t */
  uint64_t words[747];
} onednn_description;

typedef struct dnnl_engine *onednn_engine;
typedef struct dnnl_stream *onednn_stream;
typedef struct dnnl_memory *onednn_memory;
typedef struct dnnl_primitive *onednn_primitive;
typedef struct dnnl_primitive_desc *onednn_way; /* how a primitive computes */
typedef struct dnnl_primitive_attr *onednn_attributes;
typedef struct dnnl_post_ops *onednn_post_ops; /* what a primitive does with its result before it stores it */

typedef struct onednn_argument { /* dnnl_exec_arg_t */
  int which;
  onednn_memory memory;
} onednn_argument;

enum { ONEDNN_OK = 0, ONEDNN_NO_MEMORY = 1, ONEDNN_UNIMPLEMENTED = 3 };
enum { ONEDNN_CPU = 1 };
enum { ONEDNN_IN_ORDER = 1 };
enum { ONEDNN_F32 = 3 };
enum { /* tags of layouts; BLOCKED_n: images [n, c / n, h, w, n] */
       ONEDNN_ANY_LAYOUT = 1,
       ONEDNN_BLOCKED_16 = 69,
       ONEDNN_BLOCKED_8 = 93
};
enum { ONEDNN_BLOCKED = 2 }; /* a kind of layout */
enum { ONEDNN_FORWARD = 96, ONEDNN_BACKWARD_DATA = 160, ONEDNN_BACKWARD_WEIGHTS = 192 };
enum { ONEDNN_DIRECT = 1 };
enum { ONEDNN_SCRATCH_OF_CALLER = 1 };
enum { ONEDNN_SWISH = 0xdf }; /* an element-wise operation: x / (1 + exp(-alpha x)) */
enum {                        /* queries of a way; NAME: its own, a string that the library owns */
       ONEDNN_OF_NAME = 8,
       ONEDNN_OF_SRC = 129,
       ONEDNN_OF_DIFF_SRC,
       ONEDNN_OF_WEIGHTS,
       ONEDNN_OF_DIFF_WEIGHTS,
       ONEDNN_OF_DST,
       ONEDNN_OF_DIFF_DST,
       ONEDNN_OF_SCRATCH = 136
};
enum { /* arguments of primitives */
       ONEDNN_SRC = 1,
       ONEDNN_DST = 17,
       ONEDNN_WEIGHTS = 33,
       ONEDNN_BIAS = 41,
       ONEDNN_SCRATCH = 80,
       ONEDNN_DIFF_SRC = 129,
       ONEDNN_DIFF_DST = 145,
       ONEDNN_DIFF_WEIGHTS = 161
};

/* ROW(result, member, symbol, (arguments)); an int is a status, except that of layout_equal. */
#define ONEDNN_FUNCTIONS(ROW)                                                                                         \
  ROW(int, engine_create, dnnl_engine_create, (onednn_engine * out, int kind, size_t index))                          \
  ROW(int, stream_create, dnnl_stream_create, (onednn_stream * out, onednn_engine engine, unsigned flags))            \
  ROW(int, stream_destroy, dnnl_stream_destroy, (onednn_stream stream))                                               \
  ROW(int, layout_by_tag, dnnl_memory_desc_init_by_tag,                                                               \
      (onednn_layout * out, int rank, const int64_t *dims, int type, int tag))                                        \
  ROW(int, layout_by_strides, dnnl_memory_desc_init_by_strides,                                                       \
      (onednn_layout * out, int rank, const int64_t *dims, int type, const int64_t *strides))                         \
  ROW(int, layout_equal, dnnl_memory_desc_equal, (const onednn_layout *a, const onednn_layout *b)) /* not 0: equal */ \
  ROW(int, memory_create, dnnl_memory_create,                                                                         \
      (onednn_memory * out, const onednn_layout *layout, onednn_engine engine, void *bytes))                          \
  ROW(int, memory_set, dnnl_memory_set_data_handle, (onednn_memory memory, void *bytes))                              \
  ROW(int, memory_destroy, dnnl_memory_destroy, (onednn_memory memory))                                               \
  ROW(int, describe_forward, dnnl_dilated_convolution_forward_desc_init,                                              \
      (onednn_description * out, int pass, int algorithm, const onednn_layout *src, const onednn_layout *weights,     \
       const onednn_layout *bias, const onednn_layout *dst, const int64_t *strides, const int64_t *dilates,           \
       const int64_t *before, const int64_t *after))                                                                  \
  ROW(int, describe_backward_data, dnnl_dilated_convolution_backward_data_desc_init,                                  \
      (onednn_description * out, int algorithm, const onednn_layout *src, const onednn_layout *weights,               \
       const onednn_layout *dst, const int64_t *strides, const int64_t *dilates, const int64_t *before,               \
       const int64_t *after))                                                                                         \
  ROW(int, describe_backward_weights, dnnl_dilated_convolution_backward_weights_desc_init,                            \
      (onednn_description * out, int algorithm, const onednn_layout *src, const onednn_layout *weights,               \
       const onednn_layout *bias, const onednn_layout *dst, const int64_t *strides, const int64_t *dilates,           \
       const int64_t *before, const int64_t *after))                                                                  \
  ROW(int, way_create, dnnl_primitive_desc_create,                                                                    \
      (onednn_way * out, const onednn_description *description, onednn_attributes attributes, onednn_engine engine,   \
       onednn_way forward))                                                                                           \
  ROW(int, way_create_reorder, dnnl_reorder_primitive_desc_create,                                                    \
      (onednn_way * out, const onednn_layout *from, onednn_engine from_engine, const onednn_layout *to,               \
       onednn_engine to_engine, onednn_attributes attributes))                                                        \
  ROW(int, way_destroy, dnnl_primitive_desc_destroy, (onednn_way way))                                                \
  ROW(int, primitive_create, dnnl_primitive_create, (onednn_primitive * out, onednn_way way))                         \
  ROW(int, primitive_destroy, dnnl_primitive_destroy, (onednn_primitive primitive))                                   \
  ROW(int, primitive_execute, dnnl_primitive_execute,                                                                 \
      (onednn_primitive primitive, onednn_stream stream, int count, const onednn_argument *arguments))                \
  ROW(int, attributes_create, dnnl_primitive_attr_create, (onednn_attributes * out))                                  \
  ROW(int, attributes_set_scratch, dnnl_primitive_attr_set_scratchpad_mode, (onednn_attributes attributes, int mode)) \
  ROW(int, attributes_set_post_ops, dnnl_primitive_attr_set_post_ops,                                                 \
      (onednn_attributes attributes, onednn_post_ops post_ops))                                                       \
  ROW(int, attributes_destroy, dnnl_primitive_attr_destroy, (onednn_attributes attributes))                           \
  ROW(int, post_ops_create, dnnl_post_ops_create, (onednn_post_ops * out))                                            \
  ROW(int, post_ops_append, dnnl_post_ops_append_eltwise,                                                             \
      (onednn_post_ops post_ops, float scale, int kind, float alpha, float beta))                                     \
  ROW(int, post_ops_destroy, dnnl_post_ops_destroy, (onednn_post_ops post_ops))                                       \
  ROW(size_t, layout_bytes, dnnl_memory_desc_get_size, (const onednn_layout *layout))                                 \
  ROW(int, way_query, dnnl_primitive_desc_query, (onednn_way way, int what, int index, void *out))                    \
  ROW(const onednn_layout *, way_layout, dnnl_primitive_desc_query_md, (onednn_way way, int what, int index))

typedef struct onednn_version { /* dnnl_version_t */
  int major, minor, patch;
  const char *hash;
  unsigned cpu_runtime, gpu_runtime;
} onednn_version;

enum { ONEDNN_RUNTIME_SEQUENTIAL = 1, ONEDNN_RUNTIME_OPENMP = 2 }; /* of a version's cpu_runtime */

/* The last one is not in the library's headers but exported by releases since 1.3, and may be missing. Other libraries
 * call it, too. */
enum { ONEDNN_OPTIONAL_PRODUCTS = 1 };
#define ONEDNN_PRODUCT_FUNCTIONS(ROW)                                                                       \
  ROW(int, sgemm, dnnl_sgemm,                                                                               \
      (char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,    \
       int64_t a_stride, const float *b, int64_t b_stride, float beta, float *c, int64_t c_stride))         \
  ROW(const onednn_version *, version, dnnl_version, (void))                                                \
  ROW(int, gemm_bf16, dnnl_gemm_bf16bf16f32,                                                                \
      (char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const uint16_t *a, \
       int64_t a_stride, const uint16_t *b, int64_t b_stride, float beta, float *c, int64_t c_stride))

#endif

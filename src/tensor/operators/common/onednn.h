/* SPDX-License-Identifier: MIT
 * What convolutions use of oneDNN 2's C interface (oneapi/dnnl/dnnl.h and dnnl_types.h, the same in all of its releases
 * that are called libdnnl.so.2), written down here so that no header of it is needed. Descriptors are never looked
 * into: their sizes alone are known. The library is that of gemm_onednn.h.
 *
 * Threads: any; the table is constant once it was asked for.
 */
#ifndef RONDO_TENSOR_OPERATORS_COMMON_ONEDNN_H
#define RONDO_TENSOR_OPERATORS_COMMON_ONEDNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ONEDNN_MOST_DIMS 12

typedef int64_t onednn_dims[ONEDNN_MOST_DIMS];
typedef struct onednn_layout { /* dnnl_memory_desc_t */
  uint64_t words[87];
} onednn_layout;
typedef struct onednn_description { /* dnnl_convolution_desc_t */
  uint64_t words[747];
} onednn_description;

typedef struct dnnl_engine *onednn_engine;
typedef struct dnnl_stream *onednn_stream;
typedef struct dnnl_memory *onednn_memory;
typedef struct dnnl_primitive *onednn_primitive;
typedef struct dnnl_primitive_desc *onednn_way; /* how a primitive is to compute */
typedef struct dnnl_primitive_attr *onednn_attributes;

typedef struct onednn_argument { /* dnnl_exec_arg_t */
  int which;
  onednn_memory memory;
} onednn_argument;

enum { ONEDNN_OK = 0, ONEDNN_NO_MEMORY = 1 };
enum { ONEDNN_CPU = 1 };
enum { ONEDNN_IN_ORDER = 1 };
enum { ONEDNN_F32 = 3 };
enum { ONEDNN_ANY_LAYOUT = 1 };
enum { ONEDNN_FORWARD = 96, ONEDNN_BACKWARD_DATA = 160, ONEDNN_BACKWARD_WEIGHTS = 192 };
enum { ONEDNN_DIRECT = 1 };
enum { ONEDNN_SCRATCH_OF_CALLER = 1 };
enum { /* what a way is asked for */
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

/* FUNCTION(member, symbol, arguments): all give a status, but for the two that are listed behind them. */
#define ONEDNN_FUNCTIONS(FUNCTION)                                                                                     \
  FUNCTION(engine_create, dnnl_engine_create, (onednn_engine * out, int kind, size_t index))                           \
  FUNCTION(stream_create, dnnl_stream_create, (onednn_stream * out, onednn_engine engine, unsigned flags))             \
  FUNCTION(stream_destroy, dnnl_stream_destroy, (onednn_stream stream))                                                \
  FUNCTION(layout_by_tag, dnnl_memory_desc_init_by_tag,                                                                \
           (onednn_layout * out, int rank, const int64_t *dims, int type, int tag))                                    \
  FUNCTION(layout_by_strides, dnnl_memory_desc_init_by_strides,                                                        \
           (onednn_layout * out, int rank, const int64_t *dims, int type, const int64_t *strides))                     \
  FUNCTION(layout_equal, dnnl_memory_desc_equal, (const onednn_layout *a, const onednn_layout *b)) /* not 0: equal */  \
  FUNCTION(memory_create, dnnl_memory_create,                                                                          \
           (onednn_memory * out, const onednn_layout *layout, onednn_engine engine, void *bytes))                      \
  FUNCTION(memory_set, dnnl_memory_set_data_handle, (onednn_memory memory, void *bytes))                               \
  FUNCTION(memory_destroy, dnnl_memory_destroy, (onednn_memory memory))                                                \
  FUNCTION(describe_forward, dnnl_dilated_convolution_forward_desc_init,                                               \
           (onednn_description * out, int pass, int algorithm, const onednn_layout *src, const onednn_layout *weights, \
            const onednn_layout *bias, const onednn_layout *dst, const int64_t *strides, const int64_t *dilates,       \
            const int64_t *before, const int64_t *behind))                                                             \
  FUNCTION(describe_backward_data, dnnl_dilated_convolution_backward_data_desc_init,                                   \
           (onednn_description * out, int algorithm, const onednn_layout *src, const onednn_layout *weights,           \
            const onednn_layout *dst, const int64_t *strides, const int64_t *dilates, const int64_t *before,           \
            const int64_t *behind))                                                                                    \
  FUNCTION(describe_backward_weights, dnnl_dilated_convolution_backward_weights_desc_init,                             \
           (onednn_description * out, int algorithm, const onednn_layout *src, const onednn_layout *weights,           \
            const onednn_layout *bias, const onednn_layout *dst, const int64_t *strides, const int64_t *dilates,       \
            const int64_t *before, const int64_t *behind))                                                             \
  FUNCTION(way_create, dnnl_primitive_desc_create,                                                                     \
           (onednn_way * out, const onednn_description *description, onednn_attributes attributes,                     \
            onednn_engine engine, onednn_way forward))                                                                 \
  FUNCTION(way_create_reorder, dnnl_reorder_primitive_desc_create,                                                     \
           (onednn_way * out, const onednn_layout *from, onednn_engine from_engine, const onednn_layout *to,           \
            onednn_engine to_engine, onednn_attributes attributes))                                                    \
  FUNCTION(way_destroy, dnnl_primitive_desc_destroy, (onednn_way way))                                                 \
  FUNCTION(primitive_create, dnnl_primitive_create, (onednn_primitive * out, onednn_way way))                          \
  FUNCTION(primitive_destroy, dnnl_primitive_destroy, (onednn_primitive primitive))                                    \
  FUNCTION(primitive_execute, dnnl_primitive_execute,                                                                  \
           (onednn_primitive primitive, onednn_stream stream, int count, const onednn_argument *arguments))            \
  FUNCTION(attributes_create, dnnl_primitive_attr_create, (onednn_attributes * out))                                   \
  FUNCTION(attributes_set_scratch, dnnl_primitive_attr_set_scratchpad_mode, (onednn_attributes attributes, int mode))  \
  FUNCTION(attributes_destroy, dnnl_primitive_attr_destroy, (onednn_attributes attributes))

#define ONEDNN_SIZE_SYMBOL "dnnl_memory_desc_get_size"
typedef size_t (*onednn_layout_bytes_function)(const onednn_layout *layout);
#define ONEDNN_QUERY_SYMBOL "dnnl_primitive_desc_query_md"
typedef const onednn_layout *(*onednn_way_layout_function)(onednn_way way, int what, int index);

typedef struct onednn_api {
#define ONEDNN_MEMBER(member, symbol, arguments) int(*member) arguments;
  ONEDNN_FUNCTIONS(ONEDNN_MEMBER)
#undef ONEDNN_MEMBER
  onednn_layout_bytes_function layout_bytes;
  onednn_way_layout_function way_layout;
  onednn_engine engine; /* never destroyed, as the library is never closed */
} onednn_api;

/* Whether oneDNN 2 is in use for products, has all these functions and makes an engine: rondo_onednn_convolutions of
 * tensor/vendor/libraries.h is found. Why not is said once through the log. */
bool rondo_onednn_makes_convolutions(void);

extern onednn_api rondo_onednn; /* constant once that was true */

/* Says through the log, for debugging, that there is no way of a pass of a convolution. */
void rondo_onednn_say_no_way(int pass, int code);

#endif

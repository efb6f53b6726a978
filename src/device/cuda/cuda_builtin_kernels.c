/* SPDX-License-Identifier: MIT
 * The device's built-in kernels: one fills memory, one copies ranges. They are PTX, which every driver compiles by
 * itself, so that no NVRTC is needed. They are loaded when the device is opened, because loading waits for everything
 * that the device runs.
 *
 * The fill kernel runs fill nodes: the driver takes no memset node on memory that is not mapped yet, and maps graph
 * memory at the first launch. A kernel node takes any address.
 *
 * The copy kernel copies several ranges at once. It is compiled twice, for different numbers of ranges. One is a node
 * of recorded work and copies inputs to where the work reads them: one call of the driver sets its ranges, where a copy
 * node with another source takes many times as long. The other is enqueued, also for ranges of host memory, where each
 * copy would be a call. What these load is constant until the device closes.
 */
#include "device/cuda/cuda_builtin_kernels.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "device/cuda/cuda_kernel.h"

/* A kernel in a graph gets about as many blocks as run at once. An enqueued copy, which may read host memory, gets as
 * many as keep the bus busy: more would not copy faster, and while they wait for the bus, work of other streams has no
 * room on the processors (bench/results/2026-11-23-h200-feed.md). */
enum { THREADS = 256, PIECE = 16, BLOCKS_A_PROCESSOR = 16, MOST_QUEUED_BLOCKS = 64 };

/* So many that each thread has a piece, at most `most`. */
static uint32_t blocks_for(uint64_t pieces, uint64_t most) {
  const uint64_t blocks = (pieces + THREADS - 1) / THREADS;
  assert(pieces > 0 && most > 0);
  return (uint32_t)(blocks < most ? blocks : most);
}

/* Parts of the code ------------------------------------------------------------------------------------------------ */

/* clang-format off */
/* Sets %first to the number of the thread in its row or range, and %step to how many these have. Uses %a to %c. */
#define SET_FIRST_AND_STEP           \
  "  mov.u32 %a, %ctaid.x;\n"        \
  "  mov.u32 %b, %ntid.x;\n"         \
  "  mul.wide.u32 %first, %a, %b;\n" \
  "  mov.u32 %a, %tid.x;\n"          \
  "  cvt.u64.u32 %c, %a;\n"          \
  "  add.u64 %first, %first, %c;\n"  \
  "  mov.u32 %a, %nctaid.x;\n"       \
  "  mul.wide.u32 %step, %a, %b;\n"

/* Shifts the byte of %value for an offset in a row to the lowest bits of %byte. Uses %a. */
#define SET_BYTE(offset)            \
  "  cvt.u32.u64 %a, " offset ";\n" \
  "  and.b32 %a, %a, 3;\n"          \
  "  shl.b32 %a, %a, 3;\n"          \
  "  shr.u32 %byte, %value, %a;\n"

/* Copies one piece at an offset, or sets it to zero, with values of a type in these registers. */
#define COPY_PIECE(offset, type, values)              \
  "  add.u64 %from, %src, " offset ";\n"              \
  "  add.u64 %to, %dst, " offset ";\n"                \
  "  @%has ld.global." type " " values ", [%from];\n" \
  "  st.global." type " [%to], " values ";\n"

/* Copies the pieces at %at, %at + %c and so on that begin before %body, then continues at `done`. */
#define COPY_PIECES(label, done, type, values) \
  label ":\n"                                  \
  "  setp.ge.u64 %done, %at, %body;\n"         \
  "  @%done bra " done ";\n"                   \
  COPY_PIECE("%at", type, values)              \
  "  add.u64 %at, %at, %c;\n"                  \
  "  bra " label ";\n"
/* clang-format on */

/* Filling ---------------------------------------------------------------------------------------------------------- */

/* Writes the part of each row that is aligned to 16 in pieces of 16 bytes, and the bytes before and after it one by
 * one. `value` is the element repeated to four bytes. Rows begin with an element, so the byte at offset k of a row is
 * byte k % 4 of the value. */
static const char fill_source[] =
    ".version 6.3\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".visible .entry " CUDA_FILL_NAME
    "(.param .u64 p_dst, .param .u64 p_pitch, .param .u64 p_width, .param .u64 p_height, .param .u32 p_value)\n"
    "{\n"
    "  .reg .pred %done;\n"
    "  .reg .b32 %value, %a, %b, %byte;\n"
    "  .reg .b64 %dst, %pitch, %width, %height, %first, %step, %rows, %y, %row, %end, %head, %body, %tail, %at, %c;\n"
    "  ld.param.u64 %dst, [p_dst];\n"
    "  ld.param.u64 %pitch, [p_pitch];\n"
    "  ld.param.u64 %width, [p_width];\n"
    "  ld.param.u64 %height, [p_height];\n"
    "  ld.param.u32 %value, [p_value];\n"
    SET_FIRST_AND_STEP
    "  mov.u32 %a, %nctaid.y;\n"
    "  cvt.u64.u32 %rows, %a;\n"
    "  mov.u32 %a, %ctaid.y;\n"
    "  cvt.u64.u32 %y, %a;\n"
    "next_row:\n"
    "  setp.ge.u64 %done, %y, %height;\n"
    "  @%done bra finished;\n"
    "  mad.lo.u64 %row, %y, %pitch, %dst;\n"
    "  add.u64 %end, %row, %width;\n"
    "  neg.s64 %head, %row;\n"
    "  and.b64 %head, %head, 15;\n"
    "  min.u64 %head, %head, %width;\n" /* bytes before the aligned part */
    "  add.u64 %body, %row, %head;\n"
    "  sub.u64 %c, %end, %body;\n"
    "  and.b64 %c, %c, -16;\n"
    "  add.u64 %tail, %body, %c;\n" /* where the aligned part ends */
    "  shl.b64 %c, %first, 4;\n"
    "  add.u64 %at, %body, %c;\n"
    "  shl.b64 %c, %step, 4;\n"
    "next_piece:\n"
    "  setp.ge.u64 %done, %at, %tail;\n"
    "  @%done bra edges;\n"
    "  st.global.v4.u32 [%at], {%value, %value, %value, %value};\n"
    "  add.u64 %at, %at, %c;\n"
    "  bra next_piece;\n"
    "edges:\n"
    "  setp.ge.u64 %done, %first, %head;\n"
    "  @%done bra after;\n"
    SET_BYTE("%first")
    "  add.u64 %at, %row, %first;\n"
    "  st.global.u8 [%at], %byte;\n"
    "after:\n"
    "  add.u64 %at, %tail, %first;\n"
    "  setp.ge.u64 %done, %at, %end;\n"
    "  @%done bra row_done;\n"
    "  sub.u64 %c, %at, %row;\n"
    SET_BYTE("%c")
    "  st.global.u8 [%at], %byte;\n"
    "row_done:\n"
    "  add.u64 %y, %y, %rows;\n"
    "  bra next_row;\n"
    "finished:\n"
    "  ret;\n"
    "}\n";

enum { FILL_MAX_ROWS = 65535 };

rondo_status cuda_fill_load(cuda_device *device) {
  return cuda_kernel_load(device, CUDA_FILL_NAME, fill_source, &device->fill);
}

static uint32_t repeat_element(const rondo_fill *fill) {
  if (fill->element_bytes == 1) return (fill->value & 0xff) * UINT32_C(0x01010101);
  if (fill->element_bytes == 2) return (fill->value & 0xffff) * UINT32_C(0x00010001);
  return fill->value;
}

void cuda_fill_params(const cuda_device *device, const rondo_fill *fill, cuda_fill *out) {
  const uint64_t width = fill->width * fill->element_bytes, height = fill->height;
  const unsigned rows = height < FILL_MAX_ROWS ? (unsigned)height : FILL_MAX_ROWS;
  const uint64_t most = (uint64_t)device->processors * BLOCKS_A_PROCESSOR / rows + 1;
  *out = (cuda_fill){.dst = cuda_address(fill->dst),
                     .pitch = fill->pitch,
                     .width = width,
                     .height = height,
                     .value = repeat_element(fill)};
  void *const addresses[] = {&out->dst, &out->pitch, &out->width, &out->height, &out->value};
  for (size_t i = 0; i < 5; i++) out->addresses[i] = addresses[i];
  out->params = (cu_kernel_params){.function = device->fill->function,
                                   .grid_x = blocks_for((width + PIECE - 1) / PIECE, most),
                                   .grid_y = rows,
                                   .grid_z = 1,
                                   .block_x = THREADS,
                                   .block_y = 1,
                                   .block_z = 1,
                                   .params = out->addresses};
}

/* Copying ---------------------------------------------------------------------------------------------------------- */

/* Block (x, y) copies a part of range y. A thread copies the piece with its own number among the threads of the range,
 * then every piece that is a step further on. The argument, p_copies, is eight bytes, then 24 for each range. A range
 * without a source is set to zero: the values stay as they are initialised here.
 *
 * Ranges may begin anywhere. If source and destination are equally far from a multiple of 16 (or 4), pieces of that
 * size are copied, and the bytes before the first and after the last piece one by one. Otherwise all are copied one by
 * one. */
static const char copy_body[] =
    "{\n"
    "  .reg .pred %done, %has;\n"
    "  .reg .b32 %a, %b, %v0, %v1, %v2, %v3;\n"
    "  .reg .b64 %dst, %src, %bytes, %first, %step, %unit, %head, %body, %at, %from, %to, %c;\n"
    "  mov.u32 %a, %ctaid.y;\n"
    "  mul.wide.u32 %c, %a, 24;\n"
    "  mov.u64 %at, p_copies;\n"
    "  add.u64 %at, %at, %c;\n"
    "  ld.param.u64 %dst, [%at+8];\n"
    "  ld.param.u64 %src, [%at+16];\n"
    "  ld.param.u64 %bytes, [%at+24];\n"
    "  setp.eq.u64 %done, %dst, %src;\n"
    "  @%done bra finished;\n"
    SET_FIRST_AND_STEP
    "  mov.u64 %unit, 16;\n"
    "  mov.u32 %v0, 0;\n"
    "  mov.u32 %v1, 0;\n"
    "  mov.u32 %v2, 0;\n"
    "  mov.u32 %v3, 0;\n"
    "  setp.ne.u64 %has, %src, 0;\n"
    "  @!%has bra units;\n"
    "  xor.b64 %c, %dst, %src;\n"
    "  and.b64 %at, %c, 15;\n"
    "  setp.eq.u64 %done, %at, 0;\n"
    "  @%done bra units;\n"
    "  mov.u64 %unit, 4;\n"
    "  and.b64 %at, %c, 3;\n"
    "  setp.eq.u64 %done, %at, 0;\n"
    "  @%done bra units;\n"
    "  mov.u64 %unit, 1;\n"
    "units:\n"
    "  sub.u64 %c, %unit, 1;\n"
    "  neg.s64 %head, %dst;\n"
    "  and.b64 %head, %head, %c;\n"
    "  min.u64 %head, %head, %bytes;\n" /* bytes before the first piece */
    "  not.b64 %c, %c;\n"
    "  sub.u64 %body, %bytes, %head;\n"
    "  and.b64 %body, %body, %c;\n"
    "  add.u64 %body, %body, %head;\n" /* where the last piece ends */
    "  mul.lo.u64 %at, %first, %unit;\n"
    "  add.u64 %at, %at, %head;\n"
    "  mul.lo.u64 %c, %step, %unit;\n"
    "  setp.eq.u64 %done, %unit, 4;\n"
    "  @%done bra next_word;\n"
    "  setp.eq.u64 %done, %unit, 1;\n"
    "  @%done bra next_byte;\n"
    COPY_PIECES("next_piece", "edges", "v4.u32", "{%v0, %v1, %v2, %v3}")
    COPY_PIECES("next_word", "edges", "u32", "%v0")
    COPY_PIECES("next_byte", "finished", "u8", "%v0") /* no bytes are left over */
    "edges:\n" /* fewer than 16 bytes each, of which a block's threads are more */
    "  setp.ge.u64 %done, %first, %head;\n"
    "  @%done bra after;\n"
    COPY_PIECE("%first", "u8", "%v0")
    "after:\n"
    "  add.u64 %at, %body, %first;\n"
    "  setp.ge.u64 %done, %at, %bytes;\n"
    "  @%done bra finished;\n"
    COPY_PIECE("%at", "u8", "%v0")
    "finished:\n"
    "  ret;\n"
    "}\n";

/* For the fake driver, which runs CPU functions: the first block of a range copies all of it. */
static void copy_ranges(rondo_blocks blocks, const rondo_range_copy *ranges) {
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_range_copy *range = &ranges[block / blocks.grid.x];
    if (block % blocks.grid.x > 0 || range->dst == range->src) continue;
    if (range->src == NULL)
      memset(range->dst, 0, range->bytes);
    else
      memcpy(range->dst, range->src, range->bytes);
  }
}

static void copy_cpu(rondo_blocks blocks, void *const *args) {
  copy_ranges(blocks, ((const rondo_range_copies *)args[0])->ranges);
}

static void copy_queued_cpu(rondo_blocks blocks, void *const *args) {
  copy_ranges(blocks, ((const rondo_queued_ranges *)args[0])->ranges);
}

static const rondo_kernel_options copies = {RONDO_KERNEL_OPTIONS_INIT, .name = "rondo_copies", .block_threads = THREADS,
                                            .cpu = copy_cpu, .params = {RONDO_SCALAR(rondo_range_copies)}};
static const rondo_kernel_options queued_copies = {RONDO_KERNEL_OPTIONS_INIT, .name = "rondo_queued_copies",
                                                   .block_threads = THREADS, .cpu = copy_queued_cpu,
                                                   .params = {RONDO_SCALAR(rondo_queued_ranges)}};

/* The kernel belongs to no user, and the device does not count it. */
static rondo_status make_kernel(cuda_device *device, const rondo_kernel_options *of, rondo_kernel **out) {
  char source[sizeof copy_body + 128];
  rondo_kernel_options options = *of;
  const int length = snprintf(source, sizeof source,
                              ".version 6.3\n.target sm_52\n.address_size 64\n"
                              ".visible .entry %s(.param .align 8 .b8 p_copies[%u])\n%s",
                              of->name, of->params[0].bytes, copy_body);
  assert(length > 0 && (size_t)length < sizeof source);
  (void)length;
  options.cuda_image = source;
  RONDO_TRY(rondo_kernel_make(&device->base, &device->base.allocator, &options, out));
  const rondo_status status = cuda_kernel_prepare(&device->base, *out);
  (*out)->cuda_image = NULL;
  if (status == RONDO_OK) return RONDO_OK;
  rondo_kernel_release(*out);
  *out = NULL;
  return status;
}

static rondo_status load(cuda_device *device, const rondo_kernel_options *options, rondo_kernel **out) {
  rondo_saved_error before;
  rondo_error_save(&before);
  const rondo_status status = make_kernel(device, options, out);
  if (status != RONDO_INVALID_DATA) return status;
  rondo_log(RONDO_LOG_WARNING, "cuda", "inputs are copied on device '%s' by queued copies: %s", device->base.name,
            rondo_last_error()->message);
  rondo_error_restore(&before);
  return RONDO_OK;
}

rondo_status cuda_copies_load(cuda_device *device) {
  static_assert(offsetof(rondo_range_copies, ranges) == 8 && offsetof(rondo_queued_ranges, ranges) == 8 &&
                    sizeof(rondo_range_copy) == 24 && offsetof(rondo_range_copy, src) == 8 &&
                    offsetof(rondo_range_copy, bytes) == 16,
                "the code above reads them so");
  static_assert(sizeof(rondo_queued_ranges) <= 4096, "what every driver takes");
  RONDO_TRY(load(device, &copies, &device->copies));
  if (device->copies != NULL) device->copies->copies_ranges = true;
  return device->reads_host ? load(device, &queued_copies, &device->queued_copies) : RONDO_OK;
}

void cuda_copies_unload(cuda_device *device) {
  rondo_kernel_release(device->copies);
  rondo_kernel_release(device->queued_copies);
  device->copies = device->queued_copies = NULL;
}

rondo_kernel *cuda_copy_kernel(const rondo_device *base, size_t bytes, uint32_t *out_blocks) {
  const cuda_device *device = (const cuda_device *)base;
  *out_blocks = blocks_for(bytes / PIECE + 1, (uint64_t)device->processors * BLOCKS_A_PROCESSOR);
  return device->copies;
}

rondo_kernel *cuda_queued_copy_kernel(const rondo_device *base) { return ((const cuda_device *)base)->queued_copies; }

/* All ranges get as many blocks as the largest one. Those that a small range does not need end at once. */
uint32_t cuda_queued_copy_blocks(const rondo_device *device, size_t bytes, size_t largest) {
  (void)device;
  const uint64_t share = bytes == 0 ? 0 : (uint64_t)MOST_QUEUED_BLOCKS * largest / bytes;
  return blocks_for(largest / PIECE + 1, share + 1);
}

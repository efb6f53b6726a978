/* SPDX-License-Identifier: MIT
 * The kernels that copy inputs in front of recorded work, several ranges at once: one is a node of the work's graph,
 * whose places are set by one call of the driver, where a copy node that is to have another source takes many times
 * that; one is queued, also for ranges of the host's memory, where each copy would be a call. They are the same text,
 * but for how many ranges they are told. Like the fill it is text that every driver compiles by itself, and is loaded
 * when the device is opened.
 *
 * Ranges may begin anywhere. Where source and destination are as far behind a multiple of 16 (or of 4) as each other,
 * pieces of that size are copied, and the bytes in front of the first and behind the last one by one; else all are.
 */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "device/cuda/cuda.h"
#include "device/cuda/cuda_input_copies.h"
#include "device/cuda/cuda_kernel.h"

/* Block (x, y) has a share of range y; a piece of a range is the thread's whose number among those of the range it has,
 * and again a step further on. The argument, p_copies: eight bytes, then 24 a range. What has no source is zeros: the
 * values stay as they are set here. */
static const char body[] =
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
    "  mov.u32 %a, %ctaid.x;\n"
    "  mov.u32 %b, %ntid.x;\n"
    "  mul.wide.u32 %first, %a, %b;\n"
    "  mov.u32 %a, %tid.x;\n"
    "  cvt.u64.u32 %c, %a;\n"
    "  add.u64 %first, %first, %c;\n" /* this thread among those of the range */
    "  mov.u32 %a, %nctaid.x;\n"
    "  mul.wide.u32 %step, %a, %b;\n"
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
    "  min.u64 %head, %head, %bytes;\n" /* bytes in front of the first piece */
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
    "next_piece:\n"
    "  setp.ge.u64 %done, %at, %body;\n"
    "  @%done bra edges;\n"
    "  add.u64 %from, %src, %at;\n"
    "  add.u64 %to, %dst, %at;\n"
    "  @%has ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%from];\n"
    "  st.global.v4.u32 [%to], {%v0, %v1, %v2, %v3};\n"
    "  add.u64 %at, %at, %c;\n"
    "  bra next_piece;\n"
    "next_word:\n"
    "  setp.ge.u64 %done, %at, %body;\n"
    "  @%done bra edges;\n"
    "  add.u64 %from, %src, %at;\n"
    "  add.u64 %to, %dst, %at;\n"
    "  @%has ld.global.u32 %v0, [%from];\n"
    "  st.global.u32 [%to], %v0;\n"
    "  add.u64 %at, %at, %c;\n"
    "  bra next_word;\n"
    "next_byte:\n"
    "  setp.ge.u64 %done, %at, %body;\n"
    "  @%done bra finished;\n" /* no bytes are left over */
    "  add.u64 %from, %src, %at;\n"
    "  add.u64 %to, %dst, %at;\n"
    "  @%has ld.global.u8 %v0, [%from];\n"
    "  st.global.u8 [%to], %v0;\n"
    "  add.u64 %at, %at, %c;\n"
    "  bra next_byte;\n"
    "edges:\n" /* fewer than 16 bytes each, of which a block's threads are more */
    "  setp.ge.u64 %done, %first, %head;\n"
    "  @%done bra behind;\n"
    "  add.u64 %from, %src, %first;\n"
    "  add.u64 %to, %dst, %first;\n"
    "  @%has ld.global.u8 %v0, [%from];\n"
    "  st.global.u8 [%to], %v0;\n"
    "behind:\n"
    "  add.u64 %at, %body, %first;\n"
    "  setp.ge.u64 %done, %at, %bytes;\n"
    "  @%done bra finished;\n"
    "  add.u64 %from, %src, %at;\n"
    "  add.u64 %to, %dst, %at;\n"
    "  @%has ld.global.u8 %v0, [%from];\n"
    "  st.global.u8 [%to], %v0;\n"
    "finished:\n"
    "  ret;\n"
    "}\n";

/* Blocks: a node's as many as run at once, about. Of a queued kernel, which may read the host's memory, so many that
 * the bus is busy: more would copy no sooner, and while they wait for it other streams' work has no room on the
 * processors (bench/results/2026-11-23-h200-feed.md). */
enum { THREADS = 256, PIECE = 16, BLOCKS_A_PROCESSOR = 16, MOST_QUEUED_BLOCKS = 64 };

/* Where kernels run as their CPU functions: the first block of a range does it all. */
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

/* It is no user's and is not counted by the device. */
static rondo_status make_kernel(cuda_device *device, const rondo_kernel_options *of, rondo_kernel **out) {
  char source[sizeof body + 128];
  rondo_kernel_options options = *of;
  const int length = snprintf(source, sizeof source,
                              ".version 6.3\n.target sm_52\n.address_size 64\n"
                              ".visible .entry %s(.param .align 8 .b8 p_copies[%u])\n%s",
                              of->name, of->params[0].bytes, body);
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

/* So many that each thread has a piece, or as many as may be. */
static uint32_t blocks_for(uint64_t bytes, uint64_t most) {
  const uint64_t pieces = bytes / PIECE + 1, blocks = (pieces + THREADS - 1) / THREADS;
  return (uint32_t)(blocks < most ? blocks : most);
}

rondo_kernel *cuda_copy_kernel(const rondo_device *base, size_t bytes, uint32_t *out_blocks) {
  const cuda_device *device = (const cuda_device *)base;
  *out_blocks = blocks_for(bytes, (uint64_t)device->processors * BLOCKS_A_PROCESSOR);
  return device->copies;
}

rondo_kernel *cuda_queued_copy_kernel(const rondo_device *base) { return ((const cuda_device *)base)->queued_copies; }

/* All ranges get as many as the largest, of which those of a small one end at once: the largest has its share. */
uint32_t cuda_queued_copy_blocks(const rondo_device *device, size_t bytes, size_t largest) {
  (void)device;
  const uint64_t share = bytes == 0 ? 0 : (uint64_t)MOST_QUEUED_BLOCKS * largest / bytes;
  return blocks_for(largest, share + 1);
}

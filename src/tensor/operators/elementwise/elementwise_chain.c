/* SPDX-License-Identifier: MIT
 * The kernel of chains (tensor/compile/chain_plan.h). On a CPU, one function runs all chains. Its chunks are so small
 * that intermediate results stay in the first-level cache, and it calls the function of each step once for each chunk.
 * On CUDA, each chain has a source of its own (chain_source.h). The arguments are the form, the inputs and the result.
 * Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/elementwise/elementwise_chain.h"

#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/elementwise/broadcast.h"
#include "tensor/operators/elementwise/chain_scaled.h"
#include "tensor/operators/elementwise/chain_source.h"
#include "tensor/program/operator_registry.h"

/* Elements of a block, which has the work of several operators. */
#define GRAIN ((rondo_grain){2048, RONDO_CHAIN_PACK * RONDO_CUDA_THREADS})

#define MAX_VALUES (RONDO_CHAIN_INPUTS + RONDO_CHAIN_STEPS)

/* Chunks ----------------------------------------------------------------------------------------------------------- */

/* Rounds numbers as if they had been stored and read again. */
static void round_chunk(uint32_t type, void *chunk, size_t count) {
  float *floats = chunk;
  int64_t *integers = chunk;
  switch (type) {
    case RONDO_F16:
      RONDO_EACH_LANE(i, lane, count, floats[i] = rondo_from_f16(rondo_to_f16(floats[i])));
      break;
    case RONDO_BF16:
      RONDO_EACH_LANE(i, lane, count, floats[i] = rondo_from_bf16(rondo_to_bf16(floats[i])));
      break;
    case RONDO_F8_E4M3:
      RONDO_EACH_LANE(i, lane, count, floats[i] = rondo_from_f8_e4m3(rondo_to_f8_e4m3(floats[i])));
      break;
    case RONDO_F8_E5M2:
      RONDO_EACH_LANE(i, lane, count, floats[i] = rondo_from_f8_e5m2(rondo_to_f8_e5m2(floats[i])));
      break;
    case RONDO_I32:
      RONDO_EACH_LANE(i, lane, count, integers[i] = (int32_t)(uint32_t)integers[i]);
      break;
    case RONDO_I8:
      RONDO_EACH_LANE(i, lane, count, integers[i] = (int8_t)(uint8_t)integers[i]);
      break;
    case RONDO_U8:
      RONDO_EACH_LANE(i, lane, count, integers[i] = (uint8_t)integers[i]);
      break;
    case RONDO_BOOL:
      RONDO_EACH_LANE(i, lane, count, integers[i] = integers[i] != 0);
      break;
    default:
      break;
  }
}

/* Kernel ----------------------------------------------------------------------------------------------------------- */

/* The numbers of each input and step for one chunk. */
typedef struct passage {
  const rondo_chain_form *form;
  void *const *args;
  const void *values[MAX_VALUES];
  rondo_repeated_row held[RONDO_CHAIN_INPUTS]; /* by the buffers of inputs */
  rondo_chunk_buffer buffers[MAX_VALUES];
} passage;

static rondo_layout layout_of(const rondo_chain_form *form, uint32_t number) {
  const rondo_chain_layout *of = &form->layouts[number];
  return (rondo_layout){of->rank, of->dims, of->strides};
}

static void load_inputs(passage *p, size_t first, size_t count) {
  for (uint32_t i = 0; i < p->form->input_count; i++) {
    const rondo_chain_input *input = &p->form->inputs[i];
    const void *memory = *(const void *const *)p->args[1 + i];
    if (input->reading == RONDO_CHAIN_WHOLE) {
      p->values[i] = memory;
    } else if (input->reading == RONDO_CHAIN_EACH) {
      p->values[i] = rondo_load_numbers(input->type, memory, first, count, &p->buffers[i]);
    } else {
      const rondo_layout layout = layout_of(p->form, input->reading - RONDO_CHAIN_LAYOUT);
      p->values[i] = rondo_load_layout(&layout, input->type, memory, first, count, &p->buffers[i], &p->held[i]);
    }
  }
}

static uint32_t type_of(const rondo_chain_form *form, uint32_t term) {
  return term < RONDO_CHAIN_INPUTS ? form->inputs[term].type : form->steps[term - RONDO_CHAIN_INPUTS].type;
}

static void compute_step(const passage *p, uint32_t number, size_t first, size_t count, void *result) {
  const rondo_chain_step *step = &p->form->steps[number];
  const rondo_operator *row = rondo_operator_at(step->row);
  const rondo_chain_numbers *numbers = &p->form->numbers[number];
  rondo_chunk_call call = {.row = row,
                           .result_type = (rondo_type)step->type,
                           .result = result,
                           .first = first,
                           .count = count,
                           .numbers = {numbers->numbers[0], numbers->numbers[1]},
                           .size = numbers->size};
  for (uint32_t t = 0; t < row->required; t++) {
    call.terms[t] = p->values[step->terms[t]];
    call.types[t] = (rondo_type)type_of(p->form, step->terms[t]);
  }
  assert(row->element.compute != NULL && row->required <= RONDO_MAX_TERMS);
  row->element.compute(&call);
}

static void run_chunk(passage *p, size_t first, size_t count) {
  const rondo_chain_form *form = p->form;
  const uint32_t last = form->step_count - 1u;
  void *y = *(void *const *)p->args[1 + form->input_count];
  load_inputs(p, first, count);
  for (uint32_t s = 0; s < last; s++) {
    rondo_chunk_buffer *mine = &p->buffers[RONDO_CHAIN_INPUTS + s];
    compute_step(p, s, first, count, mine);
    round_chunk(form->steps[s].type, mine, count);
    p->values[RONDO_CHAIN_INPUTS + s] = mine;
  }
  const rondo_type type = (rondo_type)form->result_type;
  void *to = rondo_numbers_of(type, y, first, &p->buffers[RONDO_CHAIN_INPUTS + last]);
  compute_step(p, last, first, count, to);
  rondo_store_numbers(type, y, first, count, to);
}

static size_t chunk_at(const rondo_chain_form *form, size_t at, size_t last) {
  size_t length = rondo_chunk_length(at, last);
  for (uint32_t i = 0; i < form->layout_count; i++) {
    const rondo_layout layout = layout_of(form, i);
    length = rondo_layout_chunk(&layout, at, length);
  }
  return length;
}

static void chain_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_chain_form *form = args[0];
  passage p;
  p.form = form;
  p.args = args;
  memset(p.held, 0, sizeof p.held);
  assert(form->step_count > 0 && form->step_count <= RONDO_CHAIN_STEPS && form->input_count <= RONDO_CHAIN_INPUTS);
  const rondo_span span = rondo_blocks_span(blocks, form->count, RONDO_LANES);
  if (rondo_chain_is_scaled(form)) {
    rondo_chain_scaled_cpu(form, span, args);
    return;
  }
  for (size_t at = span.first, length; at < span.last; at += length) {
    length = chunk_at(form, at, span.last);
    run_chunk(&p, at, length);
  }
}

/* Row -------------------------------------------------------------------------------------------------------------- */

typedef struct chain_texts {
  rondo_text key, source;
} chain_texts;

static rondo_status emit_texts(rondo_emitter *emitter, const rondo_chain *chain, void *const *addresses,
                               const chain_texts *texts, const char *kernel_name) {
  const rondo_chain_form *form = &chain->form;
  char name[RONDO_CHAIN_NAME];
  const void *args[RONDO_CHAIN_INPUTS + 2] = {form};
  rondo_kernel_options code = {RONDO_KERNEL_OPTIONS_INIT,
                               .name = kernel_name,
                               .cpu = chain_cpu,
                               .block_threads = RONDO_CUDA_THREADS,
                               .cuda_source = rondo_emit_is_cuda(emitter) ? texts->source.bytes : NULL,
                               .params = {RONDO_SCALAR(rondo_chain_form)}};
  rondo_emit_chain_name(emitter, chain, name, sizeof name);
  for (uint32_t i = 0; i <= form->input_count; i++) {
    const bool is_result = i == form->input_count;
    args[1 + i] = &addresses[i];
    code.params[1 + i] = is_result ? (rondo_parameter)RONDO_WRITES : (rondo_parameter)RONDO_READS;
  }
  return rondo_emit_made_kernel(emitter, &code, texts->key.bytes, name, rondo_emit_grid(emitter, form->count, GRAIN),
                                args, form->input_count + 2u);
}

static rondo_status make_texts(rondo_emitter *emitter, const rondo_chain *chain, void *const *addresses,
                               chain_texts *texts) {
  char name[RONDO_CHAIN_KERNEL_NAME];
  rondo_chain_kernel_name(&chain->form, name);
  rondo_chain_add_kernel(&chain->form, name, &texts->key);
  RONDO_TRY(texts->key.failed);
  if (rondo_emit_is_cuda(emitter) && !rondo_emit_is_made(emitter, texts->key.bytes)) {
    rondo_chain_add_functions(&chain->form, &texts->source);
    rondo_chain_add_kernel(&chain->form, name, &texts->source);
    RONDO_TRY(texts->source.failed);
  }
  return emit_texts(emitter, chain, addresses, texts, name);
}

rondo_status rondo_emit_chain_at(rondo_emitter *emitter, const rondo_chain *chain, void *const *addresses) {
  chain_texts texts;
  rondo_text_init(&texts.key, rondo_emit_allocator(emitter));
  rondo_text_init(&texts.source, rondo_emit_allocator(emitter));
  const rondo_status status = make_texts(emitter, chain, addresses, &texts);
  rondo_text_deinit(&texts.key);
  rondo_text_deinit(&texts.source);
  return status;
}

static rondo_status emit_chain(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_chain *chain = rondo_emit_chain(emitter);
  void *addresses[RONDO_CHAIN_INPUTS + 1];
  for (uint32_t i = 0; i <= chain->form.input_count; i++)
    addresses[i] =
        rondo_emit_address(emitter, i == chain->form.input_count ? operation->results[0] : operation->inputs[i]);
  return rondo_emit_chain_at(emitter, chain, addresses);
}

RONDO_OPERATOR(chain, .result_count = 1, .emit = emit_chain);

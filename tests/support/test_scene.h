/* SPDX-License-Identifier: MIT
 * A scene for the tests of trees: a fixture, a tree, functions and words for them, and the outcome of each call as a
 * letter. The teardown destroys the tree.
 *
 * All buffers have SCENE_WORDS words that count up. Expected contents are a first word and a step.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_SCENE_H
#define RONDO_TESTS_SUPPORT_TEST_SCENE_H

#include "support/test_tree.h"

enum { SCENE_WORDS = 32, SCENE_BYTES = SCENE_WORDS * sizeof(uint32_t), SCENE_PLACES = 64, SCENE_CALLS = 256 };

typedef struct test_scene {
  test_fixture *fixture;
  rondo_stream *stream; /* for calls; the fixture's unless the test sets another */
  rondo_tree *tree;
  char seen[SCENE_CALLS + 1]; /* one letter for each call: e eager, r recorded, p replayed */
  size_t calls;
  test_work works[SCENE_PLACES];
  uint32_t *places[SCENE_PLACES]; /* the words of scene_words */
  size_t work_count, place_count;
  bool fails_inside; /* calls inside bodies may fail and change the thread's last error */
} test_scene;

int scene_setup(void **state);
int scene_setup_workers(void **state); /* for tests that block a stream */
int scene_teardown(void **state);
/* Tests with a scene, which is `s`. */
#define SCENE_TEST(name) TEST_DEFINE(name, test_scene *s, scene_setup, scene_teardown)
#define SCENE_TEST_WORKERS(name) TEST_DEFINE(name, test_scene *s, scene_setup_workers, scene_teardown)

/* Replaces the scene's tree. */
void scene_use(test_scene *scene, rondo_tree_options options);
#define SCENE_TREE(scene, ...) scene_use((scene), (rondo_tree_options){RONDO_TREE_OPTIONS_INIT, __VA_ARGS__})

/* Words of the device that count up from `first`. scene_set writes them again. */
uint32_t *scene_words(test_scene *scene, uint32_t first);
void scene_set(test_scene *scene, uint32_t *words, uint32_t first);

/* The `user` of a body. */
test_work *scene_work(test_scene *scene, uint32_t factor, uint32_t term);

/* A function; `fields` are further options. */
rondo_function *scene_make(test_scene *scene, const rondo_function_options *options);
#define SCENE_FUNCTION(scene, title, its_body, its_work, ...)                                                     \
  scene_make((scene), &(rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .name = (title), .body = (its_body), \
                                                .user = (its_work), __VA_ARGS__})
/* Output 0 = input 0 * factor + term. The input moves. */
rondo_function *scene_affine(test_scene *scene, const char *name, uint32_t factor, uint32_t term);

/* In a body: new output `index` = `from` * factor + term. Returns its address. */
uint32_t *scene_put(rondo_call *call, size_t index, const uint32_t *from, uint32_t factor, uint32_t term);
/* In a body: changes words in place. */
void scene_change(rondo_call *call, uint32_t *words, uint32_t factor, uint32_t term);
/* In a body: new output `index` = a * 31 + b. */
uint32_t *scene_combine(rondo_call *call, size_t index, const uint32_t *a, const uint32_t *b);
/* A body: input 0 = input 0 * 2 + 1 in place; output 0 = that * 3. */
rondo_status scene_body_mutate(rondo_call *call, void *user);
/* A body: output 0 = input 0 * 31 + input 1. */
rondo_status scene_body_combine(rondo_call *call, void *user);
/* A body: creates outputs of the given numbers of bytes. `user` is a size_t array that ends with 0. */
rondo_status scene_body_outputs(rondo_call *call, void *user);
/* In a body: returns its test_work, whose runs it counts, and its input. */
test_work *scene_enter(void *user);
uint32_t *scene_input(rondo_call *call, size_t index);

/* Inputs of calls. */
rondo_input scene_at(const uint32_t *words);
rondo_input scene_of(rondo_buffer *buffer);
rondo_input scene_given(rondo_buffer *buffer);

/* Calls, which must succeed. */
#define SCENE_CALL(scene, function, outputs, output_count, ...)           \
  scene_call_all((scene), (function), (const rondo_input[]){__VA_ARGS__}, \
                 sizeof((const rondo_input[]){__VA_ARGS__}) / sizeof(rondo_input), (outputs), (output_count))
void scene_call_all(test_scene *scene, rondo_function *function, const rondo_input *inputs, size_t input_count,
                    rondo_buffer **outputs, size_t output_count);
/* One input, one output. */
rondo_buffer *scene_call(test_scene *scene, rondo_function *function, rondo_input input);

/* The same; the output must count up from `first` by `step` (see assert_counts) and is released. */
void scene_check(test_scene *scene, rondo_function *function, rondo_input input, uint32_t first, uint32_t step);

/* The outcomes of the calls since the last assert_seen, as letters. */
#define assert_seen(scene, expected) scene_assert_seen((scene), (expected), __FILE__, __LINE__)
void scene_assert_seen(test_scene *scene, const char *expected, const char *file, int line);

/* The buffer's words count up from `first` by `step`. */
#define assert_counts(scene, buffer, first, step) \
  scene_assert_counts((scene), (buffer), (first), (step), __FILE__, __LINE__)
void scene_assert_counts(test_scene *scene, const rondo_buffer *buffer, uint32_t first, uint32_t step, const char *file,
                         int line);
void scene_assert_words(test_scene *scene, const uint32_t *words, uint32_t first, uint32_t step);

/* The buffer is stale: reading it fails, and the message names the function that made it. */
void scene_assert_stale(const rondo_buffer *buffer, const char *function);

void *scene_address(const rondo_buffer *buffer);
rondo_tree_info scene_info(const test_scene *scene);

/* A step. */
void scene_begin(test_scene *scene);
void scene_end(test_scene *scene);

#endif
